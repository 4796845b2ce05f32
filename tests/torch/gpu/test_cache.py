"""The cache's checked front: what it refuses and leaves as it was, and its bytes under a pool that hands slots out."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest
import torch

from coatcheck.domain.errors import GpuRefused, GpuUnsupported
from coatcheck.gpu.nvfp4.cache import PackedCache
from coatcheck.gpu.nvfp4.slots import SlotPool


def vectors(tokens: int, seed: int = 1) -> torch.Tensor:
    return torch.randn((tokens, 2, 32), generator=torch.Generator().manual_seed(seed)).bfloat16()


def small_cache(**options: Any) -> PackedCache:
    return PackedCache(blocks=2, page_size=4, heads=2, head_size=32, device="cpu", **options)


def spoiled(value: float) -> torch.Tensor:
    given = vectors(2)
    given[1, 1, 31] = value
    return given


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"slots": torch.tensor([3, 3])}, "named twice"),
        ({"slots": torch.tensor([0, 8])}, "beyond the cache"),
        ({"slots": torch.tensor([0.0, 1.0])}, "int32 or int64"),
        ({"slots": torch.tensor([[0, 1]])}, "1-dimensional"),
        ({"slots": torch.tensor([0, 1, 2])}, "keys are"),
        ({"keys": spoiled(float("nan"))}, "keys hold NaN"),
        ({"values": spoiled(float("inf"))}, "values hold NaN"),
        ({"keys": vectors(2).float()}, "keys are"),
        ({"keys": vectors(2).to("meta")}, "keys lie on meta"),
        ({"slots": torch.tensor([0, 1]).to("meta")}, "slots lie on meta"),
        ({"values": vectors(2)[:, :1]}, "values are"),
        ({"values": vectors(2)[..., :16]}, "values are"),
    ],
    ids=lambda given: given if isinstance(given, str) else None,
)
def test_what_would_be_written_wrongly_is_refused_and_nothing_is_written(wrong: dict[str, torch.Tensor], said: str) -> None:
    cache = small_cache()
    given = {"keys": vectors(2), "values": vectors(2, seed=2), "slots": torch.tensor([0, 5]), **wrong}

    with pytest.raises(GpuRefused, match=said):
        cache.write(**given)

    assert not cache.pages.any()


def test_a_padded_token_may_hold_anything_and_be_named_by_any_negative_number() -> None:
    cache = small_cache()

    cache.write(spoiled(float("nan")), spoiled(float("inf")), torch.tensor([6, -1]))
    cache.write(vectors(2), vectors(2), torch.tensor([-1, -1]))

    assert cache.pages.any(-1).sum() == 4


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"queries": vectors(1)[:, :, :16]}, "queries are"),
        ({"queries": vectors(1).float()}, "queries are"),
        ({"queries": vectors(1)[:, :1]}, "a multiple of 2 heads"),
        ({"queries": vectors(1)[0]}, "a multiple of 2 heads"),
        ({"queries": vectors(2)}, "Selected slots"),
        ({"queries": vectors(1) * float("inf")}, "NaN or infinity"),
        ({"selected": torch.full((1, 2, 3), 8)}, "beyond the cache"),
        ({"selected": torch.zeros(1, 3, dtype=torch.int64)}, "3-dimensional"),
        ({"selected": torch.zeros(1, 1, 3, dtype=torch.int64)}, "Selected slots"),
        ({"softmax_scale": float("nan")}, "softmax scale"),
        ({"out_type": torch.int32}, "in torch.int32"),
        ({"out_type": torch.float8_e4m3fn}, "in torch.float8"),
    ],
    ids=lambda given: given if isinstance(given, str) else None,
)
def test_what_cannot_be_read_is_refused(wrong: dict[str, Any], said: str) -> None:
    given: dict[str, Any] = {"queries": vectors(1), "selected": torch.zeros(1, 2, 3, dtype=torch.int64), **wrong}

    with pytest.raises(GpuRefused, match=said):
        small_cache().read(**given)


def test_a_cuda_graph_cannot_record_a_checked_call() -> None:
    cache = small_cache(is_capturing=lambda: True)

    with pytest.raises(GpuRefused, match="CUDA graph"):
        cache.write(vectors(1), vectors(1), torch.tensor([0]))
    with pytest.raises(GpuRefused, match="CUDA graph"):
        cache.read(vectors(1), torch.zeros(1, 2, 1, dtype=torch.int64))


@pytest.mark.gpu
def test_a_real_capture_is_noticed() -> None:
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    cache = PackedCache(2, device="cuda")
    graph = torch.cuda.CUDAGraph()

    with pytest.raises(GpuRefused, match="CUDA graph"), torch.cuda.graph(graph):
        cache.write(torch.zeros(1, 2, 256, dtype=torch.bfloat16), torch.zeros(1, 2, 256, dtype=torch.bfloat16), torch.tensor([0]))


@pytest.mark.parametrize("shape", [(0, 4, 2, 32), (2, 0, 2, 32), (2, 4, 0, 32), (2, 4, 2, 0), (2, 4, 2, 40), (2**27, 16, 2, 32)])
def test_a_cache_that_holds_nothing_no_groups_or_too_much_is_refused(shape: tuple[int, int, int, int]) -> None:
    with pytest.raises(GpuRefused):
        PackedCache(*shape, device="cpu")


@pytest.mark.parametrize("scale", [0.0, float("nan"), -1.0])
def test_a_global_scale_that_is_none_is_refused_for_either_side(scale: float) -> None:
    for scales in ((scale, 1.0), (1.0, scale)):
        with pytest.raises(GpuRefused, match="global scale"):
            small_cache(global_scales=scales)


def test_a_machine_without_a_gpu_or_triton_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    if not torch.cuda.is_available():
        with pytest.raises(GpuUnsupported, match="CUDA"):
            PackedCache(2)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)

    with pytest.raises(GpuUnsupported, match="triton"):
        small_cache(backend="triton")


def test_a_token_takes_the_bytes_that_the_planner_counts() -> None:
    from coatcheck.gpu.nvfp4.planner import KvFormat, full_attention

    cache = PackedCache(3, 16, device="cpu")

    assert cache.bytes_per_token == full_attention("full attention", 1, 2, 256, KvFormat.NVFP4).bytes_per_token == 576
    assert cache.pages.numel() == cache.slots * 576


def test_a_sequence_that_reuses_a_prefix_reads_the_first_ones_bytes_and_its_own() -> None:
    cache, pool = small_cache(), SlotPool(2, 4)
    of_token = {token: vectors(1, seed=token) for token in range(8)}

    def put(name: str, tokens: list[int]) -> None:
        write = pool.append(name, tokens)
        given = torch.cat([of_token[token] for token in tokens])
        cache.write(given, given.flip(-1), torch.tensor(write.slots))
        pool.settle(write)

    pool.admit("first", [0, 1, 2, 3, 4])
    put("first", [0, 1, 2, 3, 4])
    pool.release("first")
    there = pool.admit("second", [0, 1, 2, 3, 5])
    put("second", [0, 1, 2, 3, 5][there:])

    assert there == 4
    keys, values = cache.decoded(torch.tensor(pool.slots_of("second")))
    for position, token in enumerate([0, 1, 2, 3, 5]):
        alone = small_cache()
        alone.write(of_token[token], of_token[token].flip(-1), torch.tensor([0]))
        expected = alone.decoded(torch.tensor([0]))
        assert torch.equal(keys[position], expected[0][0])
        assert torch.equal(values[position], expected[1][0])


def test_only_what_was_asked_for_is_decoded() -> None:
    with pytest.raises(GpuRefused, match="negative slot"):
        small_cache().decoded(torch.tensor([-1]))
    with pytest.raises(GpuRefused, match="beyond"):
        small_cache().decoded(torch.tensor([8]))
