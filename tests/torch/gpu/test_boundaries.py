"""Reading and writing at every edge: pages, lengths, fragments, masks, reuse, the smallest and the largest numbers.

Each case runs triton's kernels, interpreted or on a GPU, against plain torch: bytes equal, attention within its bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
import torch

from coatcheck.gpu.nvfp4 import reference
from coatcheck.gpu.nvfp4.cache import PackedCache

pytest.importorskip("triton")

PAGE = 16
BLOCKS = 3
LAST = BLOCKS * PAGE - 1


def normal(*shape: int, seed: int = 1, scale: float = 1.0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)) * scale


def alternating(*shape: int, size: float) -> torch.Tensor:
    values = torch.full(shape, size)
    values[..., 1::2] *= -1
    return values


def one_outlier(*shape: int) -> torch.Tensor:
    values = normal(*shape, scale=0.1)
    values[..., 3] = 500.0
    return values


Make = Callable[..., torch.Tensor]
NUMBERS: dict[str, Make] = {
    "normal": normal,
    "zeros": torch.zeros,
    "negative zeros": lambda *shape: -torch.zeros(shape),
    "smallest bfloat16": lambda *shape: torch.full(shape, 9.2e-41),
    "below the smallest scale": lambda *shape: normal(*shape, scale=2.0**-12),
    "subnormal scales": lambda *shape: normal(*shape, scale=2.0**-6),
    "ties": lambda *shape: alternating(*shape, size=0.25) + (torch.arange(shape[-1]) % 16 == 0) * 6.0,
    "at the largest": lambda *shape: alternating(*shape, size=2688.0),
    "beyond the largest": lambda *shape: alternating(*shape, size=3.0e38),
    "one outlier": one_outlier,
}


@dataclass(frozen=True)
class Written:
    """Slots to write into, in order; what stands there before; the numbers; and the shape of a token."""

    slots: tuple[int, ...]
    numbers: str = "normal"
    heads: int = 1
    head_size: int = 32
    before: tuple[int, ...] = ()
    global_scale: float = 1.0
    int32: bool = False
    strided: bool = False


WRITES = {
    "no token": Written(()),
    "one token, first slot": Written((0,)),
    "one token, last slot": Written((LAST,)),
    "last of a page": Written((PAGE - 1,)),
    "first of the next": Written((PAGE,)),
    "over a page's edge": Written((PAGE - 1, PAGE)),
    "page less one": Written(tuple(range(PAGE - 1))),
    "full page": Written(tuple(range(PAGE))),
    "page and one": Written(tuple(range(PAGE + 1))),
    "a full second page": Written(tuple(range(PAGE, 2 * PAGE))),
    "backwards": Written((5, 4, 3, 2)),
    "fragments of three pages": Written((40, 3, 17, 47, 16, 0)),
    "masked at the beginning": Written((-1, 7)),
    "masked in the middle": Written((6, -1, 8)),
    "masked at the end": Written((9, -1)),
    "all masked": Written((-1, -1, -1)),
    "masked by another negative": Written((-7, 2)),
    "a slot again": Written((7,), before=(7,)),
    "a slot again by smaller numbers": Written((7,), numbers="below the smallest scale", before=(7,)),
    "its neighbours stay": Written((8,), before=(7, 9)),
    "slots in int32": Written((3, 30), int32=True),
    "values that are not dense": Written((3, 30), heads=2, strided=True),
    "four heads": Written((1, 20), heads=4),
    "head of 64": Written((1, 20), head_size=64),
    "head of 96": Written((1, 20), head_size=96),
    "head of 256": Written((1, 20), head_size=256, heads=2),
    "head of 16": Written((1, 20), head_size=16),
    "global scale 0.37": Written((1, 20), global_scale=0.37),
    "global scale 8.96": Written((1, 20), global_scale=8.96),
    **{f"numbers: {name}": Written((2, 33), numbers=name) for name in NUMBERS},
}


@pytest.mark.parametrize("case", WRITES.values(), ids=WRITES)
def test_a_write_leaves_the_reference_s_bytes_and_no_other(kernel_device: str, case: Written) -> None:
    shape, scales = (BLOCKS, PAGE, case.heads, case.head_size), (case.global_scale, case.global_scale)
    written = PackedCache(*shape, kernel_device, global_scales=scales, backend="triton")
    expected = PackedCache(*shape, "cpu", global_scales=scales)
    for cache in (written, expected):
        _write(cache, case.before, normal(len(case.before), case.heads, case.head_size, seed=9), case)
    before = written.pages.cpu().clone()

    for cache in (written, expected):
        _write(cache, case.slots, NUMBERS[case.numbers](len(case.slots), case.heads, case.head_size), case)

    assert torch.equal(written.pages.cpu(), expected.pages)
    touched = {slot for slot in case.slots if slot >= 0}
    changed = (written.pages.cpu() != before).any(-1).any(-1).any(1).flatten().nonzero().flatten().tolist()
    assert set(changed) <= touched


def _write(cache: PackedCache, slots: tuple[int, ...], numbers: torch.Tensor, case: Written) -> None:
    keys = numbers.bfloat16().to(cache.device)
    if case.strided:
        keys = torch.stack([keys, keys], dim=-1)[..., 0]
    where = torch.tensor(slots, dtype=torch.int32 if case.int32 else torch.int64, device=cache.device)
    cache.write(keys, keys.flip(0), where)


@dataclass(frozen=True)
class Read:
    """How many tokens are there, in which slots, which of them are selected by each row, and the shape of the heads."""

    tokens: int = 20
    selected: tuple[tuple[int, ...], ...] = field(default=(tuple(range(20)),))
    numbers: str = "normal"
    queries: float = 1.0
    heads: int = 1
    shared: int = 1
    head_size: int = 32
    scattered: bool = False
    softmax_scale: float | None = None
    global_scale: float = 1.0
    int32: bool = False


EVERY = tuple(range(20))
READS = {
    "no row": Read(selected=()),
    "no place": Read(selected=((),)),
    "one token": Read(1, ((0,),)),
    "one of many": Read(selected=((13,),)),
    "page less one": Read(15, (tuple(range(15)),)),
    "full page": Read(16, (tuple(range(16)),)),
    "page and one": Read(17, (tuple(range(17)),)),
    "all of three pages": Read(48, (tuple(range(48)),)),
    "a page's edge": Read(selected=((15, 16),)),
    "only the second page": Read(32, (tuple(range(16, 32)),)),
    "fragmented pages": Read(40, (tuple(range(40)),), scattered=True),
    "fragmented pages, few selected": Read(40, ((39, 3, 17, 8),), scattered=True),
    "backwards": Read(selected=(EVERY[::-1],)),
    "masked at the beginning": Read(selected=((-1, -1, 3, 4),)),
    "masked between": Read(selected=((1, -1, 3, -1),)),
    "masked at the end": Read(selected=((1, 2, -1, -1),)),
    "a whole block of places masked": Read(selected=((-1,) * 16 + (4,),)),
    "all masked": Read(selected=((-1,) * 4,)),
    "one row of three all masked": Read(selected=((0, 1), (-1, -1), (5, -1))),
    "one token twice": Read(selected=((3, 3, 8),)),
    "seventeen places": Read(selected=(EVERY[:17],)),
    "three rows of their own": Read(selected=((0, 1, 2), (7, 19, -1), (4, 4, 5))),
    "two KV heads": Read(heads=2),
    "six query heads share": Read(shared=6, heads=2),
    "seventeen query heads share": Read(shared=17),
    "head of 16": Read(head_size=16),
    "head of 64": Read(head_size=64),
    "head of 96": Read(head_size=96),
    "head of 256": Read(head_size=256, shared=2),
    "slots in int32": Read(int32=True),
    "another softmax scale": Read(softmax_scale=1.5),
    "no softmax scale: the mean": Read(softmax_scale=0.0),
    "large queries": Read(queries=40.0),
    "global scale 0.37": Read(global_scale=0.37),
    "global scale 8.96": Read(global_scale=8.96),
    "numbers: zeros": Read(numbers="zeros"),
    "numbers: subnormal scales": Read(numbers="subnormal scales"),
    "numbers: below the smallest scale": Read(numbers="below the smallest scale"),
    "numbers: one outlier": Read(numbers="one outlier"),
    "numbers: at the largest": Read(numbers="at the largest", queries=0.001),
}


@pytest.mark.parametrize("case", READS.values(), ids=READS)
def test_a_read_is_dense_attention_over_what_is_decoded(kernel_device: str, case: Read) -> None:
    scales = (case.global_scale, case.global_scale)
    shape = BLOCKS, PAGE, case.heads, case.head_size, kernel_device
    filled = PackedCache(*shape, global_scales=scales, backend="torch")
    cache = PackedCache(*shape, global_scales=scales, backend="triton")
    where = torch.randperm(LAST + 1, generator=torch.Generator().manual_seed(4)) if case.scattered else torch.arange(LAST + 1)
    keys, values = (
        NUMBERS[case.numbers](case.tokens, case.heads, case.head_size).roll(turn, 0).bfloat16().to(kernel_device) for turn in (0, 1)
    )
    filled.write(keys, values, where[: case.tokens].to(kernel_device))
    cache.pages.copy_(filled.pages)
    queries = (normal(len(case.selected), case.heads * case.shared, case.head_size, seed=6) * case.queries).bfloat16()
    selected = _selected(case, where).to(kernel_device)

    found = cache.read(queries.to(kernel_device), selected, case.softmax_scale, torch.float32)

    expected = torch.empty_like(found)
    scale = 1 / math.sqrt(case.head_size) if case.softmax_scale is None else case.softmax_scale
    reference.read(cache.pages, queries.to(kernel_device), selected, scales, scale, expected)
    largest = max(1.0, float(expected.abs().max())) if expected.numel() else 1.0
    assert not found.isnan().any()
    assert found.shape == queries.shape
    if expected.any():
        assert float((found - expected).abs().max()) <= 0.004 * largest
        assert float(torch.cosine_similarity(found.flatten().double(), expected.flatten().double(), dim=0)) >= 0.99999
    else:
        assert not found.any()


def _selected(case: Read, where: torch.Tensor) -> torch.Tensor:
    """Each row's places as slots, for every KV head; the second head takes them in another order."""
    width = max((len(row) for row in case.selected), default=0)
    chosen = torch.tensor(case.selected, dtype=torch.int64).reshape(len(case.selected), 1, width)
    slots = torch.where(chosen >= 0, where[chosen.clamp(min=0)], -1)
    both = torch.cat([slots.roll(head, -1) for head in range(case.heads)], dim=1)
    return both.to(torch.int32) if case.int32 else both


def test_there_are_as_many_cases_as_the_acceptance_asks_for() -> None:
    assert len(WRITES) >= 28
    assert len(READS) >= 27
