"""A checkpoint quantised: what becomes of each tensor, what is recorded, and that a refusal leaves nothing behind."""

from __future__ import annotations

import hashlib
import json
import os
import resource
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from coatcheck.domain.errors import GpuRefused
from coatcheck.gpu.fp8 import record, reference
from coatcheck.gpu.fp8.audit import audit
from coatcheck.gpu.fp8.layout import RECORD_FILE, WEIGHTS_FILE
from coatcheck.gpu.fp8.loading import empty_model, load_quantised
from coatcheck.gpu.fp8.quantise import quantise
from coatcheck.gpu.fp8.reading import PIECE_BYTES, opened
from coatcheck.gpu.fp8.writing import file_bytes
from coatcheck.ops.unfinished import folder_beside
from tests.torch.gpu.fp8 import checkpoints
from tests.torch.gpu.fp8.checkpoints import ATTENTION, configured, rewritten, tensors_of

Tensors = dict[str, torch.Tensor]
PROJECTIONS = ("q", "k", "v", "o", "wi_0", "wi_1", "wo")


def test_of_24_blocks_168_matrices_are_quantised_and_every_other_tensor_is_byte_equal(deep: Path, deep_fp8: Path) -> None:
    before, after = tensors_of(deep / "model.safetensors"), tensors_of(deep_fp8 / WEIGHTS_FILE)

    quantised = {name for name, tensor in after.items() if tensor.dtype == torch.float8_e4m3fn}

    assert len(quantised) == 168
    assert {name.split(".")[-2] for name in quantised} == set(PROJECTIONS)
    assert set(after) == set(before) | {f"{name}_scale" for name in quantised}
    for name in set(before) - quantised:
        assert after[name].dtype == torch.bfloat16
        assert torch.equal(after[name].view(torch.int16), before[name].view(torch.int16)), name


def test_what_was_quantised_is_its_source_within_half_a_step_of_its_channel_s_scale(deep: Path, deep_fp8: Path) -> None:
    before, after = tensors_of(deep / "model.safetensors"), tensors_of(deep_fp8 / WEIGHTS_FILE)

    for name in (name for name in after if name.endswith("weight_scale")):
        weight, scale = before[name.removesuffix("_scale")].float(), after[name]
        error = (after[name.removesuffix("_scale")].float() * scale - weight).abs()

        assert scale.shape == (len(weight), 1)
        assert torch.equal(scale[:, 0], torch.div(weight.abs().amax(dim=1), torch.tensor(448.0)))
        # Three bits of mantissa; below 2**-6 of the scale's unit E4M3 is evenly spaced, by 2**-9. And two roundings of float32.
        assert (error <= torch.maximum(weight.abs() * 2**-4, scale * 2**-10) * (1 + 2**-20)).all(), name


def test_matrices_that_are_larger_than_a_piece_are_quantised_and_loaded_as_if_they_were_read_at_once(tmp_path: Path) -> None:
    source = checkpoints.gliclass(tmp_path / "bf16", blocks=1, feed_forward=16_400)
    forward = "model.encoder_model.encoder.block.0.layer.1.DenseReluDense"

    quantise(source, tmp_path / "fp8")

    before, after = tensors_of(source / "model.safetensors"), tensors_of(tmp_path / "fp8" / WEIGHTS_FILE)
    model = empty_model(tmp_path / "fp8")
    load_quantised(model, tmp_path / "fp8")
    for name in (f"{forward}.wi_0", f"{forward}.wo"):
        codes, scales = reference.quantise(before[f"{name}.weight"])
        assert codes.numel() * 2 > PIECE_BYTES
        for found in (after[f"{name}.weight"], model.get_submodule(name).quantised):
            assert torch.equal(found.view(torch.uint8), codes.view(torch.uint8))
        assert torch.equal(after[f"{name}.weight_scale"], scales)
    assert audit(source, tmp_path / "fp8").findings == ()


def test_the_file_is_as_large_as_its_shapes_say(deep_fp8: Path) -> None:
    with opened((deep_fp8 / WEIGHTS_FILE,)) as checkpoint:
        assert file_bytes(checkpoint.headers) == (deep_fp8 / WEIGHTS_FILE).stat().st_size


def test_the_record_names_the_upstream_revision_and_every_file_and_tensor_by_its_hash(shallow: Path, tmp_path: Path) -> None:
    commit = "0123456789abcdef0123456789abcdef01234567"
    cached = tmp_path / "models--someone--a-model" / "snapshots" / commit
    shutil.copytree(shallow, cached)
    (cached / "pytorch_model.bin").write_bytes(b"pickled")

    made = quantise(cached, tmp_path / "fp8")

    assert record.read(tmp_path / "fp8") == made
    assert made.upstream == f"someone/a-model@{commit}"
    assert made.left_out == ("pytorch_model.bin",)
    for listed, folder in ((made.source_files, cached), (made.files, tmp_path / "fp8")):
        for name, one in listed.items():
            data = (folder / name).read_bytes()
            assert (one.sha256, one.size_bytes) == (hashlib.sha256(data).hexdigest(), len(data))
    assert {path.name for path in (tmp_path / "fp8").iterdir()} == {*made.files, RECORD_FILE}
    assert (tmp_path / "fp8" / "config.json").read_bytes() == (cached / "config.json").read_bytes()
    before = tensors_of(cached / "model.safetensors")
    for name, tensor in before.items():
        assert (
            made.tensors[name].source_sha256 == hashlib.sha256(tensor.reshape(-1).view(torch.uint8).numpy().tobytes()).hexdigest()
        )


def test_an_upstream_is_a_name_at_a_commit_or_it_is_refused(shallow: Path, tmp_path: Path) -> None:
    given = f"someone/a-model@{'a' * 40}"

    assert quantise(shallow, tmp_path / "named", upstream=given).upstream == given
    assert quantise(shallow, tmp_path / "unnamed").upstream is None
    with pytest.raises(GpuRefused, match="NAME@COMMIT"):
        quantise(shallow, tmp_path / "refused", upstream="someone/a-model@main")


def test_shards_are_read_as_one_checkpoint_and_one_that_is_missing_is_named(shallow: Path, tmp_path: Path) -> None:
    from safetensors.torch import save_file

    whole = quantise(shallow, tmp_path / "whole")
    tensors = tensors_of(shallow / "model.safetensors")
    (shallow / "model.safetensors").unlink()
    names = sorted(tensors)
    shards = {f"model-0000{number + 1}-of-00002.safetensors": names[number::2] for number in (0, 1)}
    for file, held in shards.items():
        save_file({name: tensors[name] for name in held}, shallow / file, {"format": "pt"})
    index = {"weight_map": {name: file for file, held in shards.items() for name in held}}
    (shallow / "model.safetensors.index.json").write_text(json.dumps(index))

    made = quantise(shallow, tmp_path / "sharded")

    assert made.tensors == whole.tensors
    assert made.files[WEIGHTS_FILE] == whole.files[WEIGHTS_FILE]
    (shallow / "model-00002-of-00002.safetensors").unlink()
    with pytest.raises(GpuRefused, match=r"model-00002-of-00002\.safetensors is missing"):
        quantise(shallow, tmp_path / "refused")


def poisoned(name: str, value: float) -> Callable[[Tensors], None]:
    def change(tensors: Tensors) -> None:
        tensors[name].view(-1)[-1] = value

    return change


def replaced(name: str, change: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[Tensors], None]:
    return lambda tensors: tensors.update({name: change(tensors[name])})


def without(name: str) -> Callable[[Tensors], None]:
    return lambda tensors: tensors.__delitem__(name)


NORM = "model.encoder_model.encoder.block.1.layer.1.layer_norm.weight"
REFUSED = {
    "NaN in a matrix": (poisoned(f"{ATTENTION}.q.weight", float("nan")), f"{ATTENTION}.q.weight.*NaN"),
    "infinity in a norm": (poisoned(NORM, float("inf")), f"{NORM}.*infinity"),
    "float32": (replaced(f"{ATTENTION}.v.weight", torch.Tensor.float), f"{ATTENTION}.v.weight.*F32"),
    "float16 elsewhere": (replaced("model.logit_scale", torch.Tensor.half), "model.logit_scale.*F16"),
    "another shape": (replaced(f"{ATTENTION}.o.weight", lambda one: one[:16].clone()), f"{ATTENTION}.o.weight.*shape"),
    "a matrix missing": (without(f"{ATTENTION}.k.weight"), f"lacks 1 .*{ATTENTION}.k.weight"),
    "no embeddings": (without("model.encoder_model.shared.weight"), "lacks 1 .*shared.weight"),
    "a head missing": (without("model.logit_scale"), "lacks 1 .*model.logit_scale"),
    "an unknown tensor": (
        lambda tensors: tensors.update({f"{ATTENTION}.q.bias": torch.zeros(32).bfloat16()}),
        f"{ATTENTION}.q.bias",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_tensor_that_is_not_as_it_should_be_is_named_and_nothing_is_left(shallow: Path, tmp_path: Path, case: str) -> None:
    change, said = REFUSED[case]
    rewritten(shallow, change)

    with pytest.raises(GpuRefused, match=said):
        quantise(shallow, tmp_path / "fp8")

    assert [path.name for path in tmp_path.iterdir()] == ["bf16"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"encoder": {"model_type": "bert"}}, "only an mT5"),
        ({"encoder": {"feed_forward_proj": "relu"}}, "gated"),
        ({"encoder": {"num_layers": 3}}, "block.2"),
        ({"encoder": {"num_layers": "two"}}, "num_layers is 'two'"),
        ({"encoder": {"num_layers": 10**9}}, "num_layers is 1,000,000,000"),
        ({"architecture_type": "bi-encoder"}, "uni-encoder"),
    ],
)
def test_a_configuration_of_another_model_is_refused(shallow: Path, tmp_path: Path, changes: dict[str, object], said: str) -> None:
    configured(shallow, **changes)

    with pytest.raises(GpuRefused, match=said):
        quantise(shallow, tmp_path / "fp8")


def test_a_file_that_was_cut_off_is_refused_by_name(shallow: Path, tmp_path: Path) -> None:
    file = shallow / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-100])

    with pytest.raises(GpuRefused, match=r"model\.safetensors cannot be read"):
        quantise(shallow, tmp_path / "fp8")


@pytest.mark.parametrize("name", ["config.json", "model.safetensors.index.json"])
def test_a_pipe_in_the_place_of_a_file_keeps_nobody_waiting(shallow: Path, tmp_path: Path, name: str) -> None:
    (shallow / name).unlink(missing_ok=True)
    os.mkfifo(shallow / name)
    asked = threading.Thread(target=lambda: done.append(_refusal(shallow, tmp_path / "fp8")), daemon=True)
    done: list[str | None] = []

    asked.start()
    asked.join(20)

    assert done == [f"{shallow / name} cannot be read as JSON." if name == "config.json" else None]


def _refusal(source: Path, target: Path) -> str | None:
    try:
        quantise(source, target)
    except GpuRefused as error:
        return error.detail
    return None


def test_a_head_beyond_any_checkpoint_s_is_refused_before_it_is_read(shallow: Path, tmp_path: Path) -> None:
    with (shallow / "model.safetensors").open("r+b") as file:
        file.write((99_000_000).to_bytes(8, "little"))
        file.truncate(100_000_000)

    with pytest.raises(GpuRefused, match="99,000,000 bytes"):
        quantise(shallow, tmp_path / "fp8")


def test_a_target_behind_links_in_a_circle_is_refused(shallow: Path, tmp_path: Path) -> None:
    (tmp_path / "circle").symlink_to("circle")

    with pytest.raises(GpuRefused, match="Nothing can be written beside"):
        quantise(shallow, tmp_path / "circle" / "fp8")


def test_a_target_that_exists_is_refused_and_left_as_it_is(shallow: Path, tmp_path: Path) -> None:
    target = tmp_path / "fp8"
    target.mkdir()
    (target / "kept.txt").write_text("kept")

    with pytest.raises(GpuRefused, match="exists"):
        quantise(shallow, target)

    assert [path.name for path in target.iterdir()] == ["kept.txt"]


def test_what_a_killed_run_left_goes_with_the_next_one_and_what_a_living_one_holds_stays(shallow: Path, tmp_path: Path) -> None:
    target = tmp_path / "fp8"

    def left_by_a_killed_run() -> None:
        (tmp_path / ".fp8.0123abcd.partial").mkdir()
        (tmp_path / ".fp8.0123abcd.partial" / WEIGHTS_FILE).write_bytes(b"half")

    left_by_a_killed_run()
    with folder_beside(target) as living:
        quantise(shallow, target)

        assert {path.name for path in tmp_path.iterdir()} == {"bf16", "fp8", living.name}
        left_by_a_killed_run()
        with pytest.raises(GpuRefused, match="exists"):
            quantise(shallow, target)
        assert {path.name for path in tmp_path.iterdir()} == {"bf16", "fp8", living.name}


def test_a_target_inside_of_its_source_is_refused(shallow: Path) -> None:
    with pytest.raises(GpuRefused, match="inside"):
        quantise(shallow, shallow / "fp8")

    assert "fp8" not in {path.name for path in shallow.iterdir()}


def test_a_disk_that_takes_no_more_leaves_no_folder(shallow: Path, tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))

    try:
        with pytest.raises(GpuRefused, match="could not be written"):
            quantise(shallow, tmp_path / "fp8")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    assert [path.name for path in tmp_path.iterdir()] == ["bf16"]


def test_transformers_does_not_take_it_for_a_checkpoint_of_its_own(deep_fp8: Path) -> None:
    """It would load the weights without their scales, and say nothing."""
    with pytest.raises(OSError, match=r"model\.safetensors"):
        checkpoints.loaded_by_gliclass(deep_fp8)
