"""A quantised checkpoint loaded into its model and run on a CPU: close to BF16, nothing at random, nothing unscaled."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from coatcheck.domain.errors import GpuRefused
from coatcheck.gpu.fp8.layout import EMBEDDINGS, RECORD_FILE, WEIGHTS_FILE
from coatcheck.gpu.fp8.linear import Fp8Linear
from coatcheck.gpu.fp8.loading import empty_model, is_quantised, load_quantised
from coatcheck.gpu.fp8.quantise import quantise
from tests.torch.gpu.fp8 import checkpoints
from tests.torch.gpu.fp8.checkpoints import asked, bf16_model, inputs, rewritten, tensors_of


def loaded(folder: Path) -> torch.nn.Module:
    model: torch.nn.Module = empty_model(folder)
    load_quantised(model, folder)
    return model


def test_24_blocks_run_with_168_fp8_layers_and_answer_nearly_as_in_bf16(deep: Path, deep_fp8: Path) -> None:
    model = empty_model(deep_fp8)

    names = load_quantised(model, deep_fp8)

    assert len(names) == 168
    assert sum(isinstance(module, Fp8Linear) for module in model.modules()) == 168
    given = inputs(deep)
    found, expected = asked(model, given), asked(bf16_model(deep), given)
    assert found.shape == (3, 4)
    assert torch.cosine_similarity(found.flatten(), expected.flatten(), dim=0) > 0.99  # 0.9993 was measured
    assert not torch.equal(found, expected)


def test_each_layer_stands_for_its_weight_and_not_for_its_codes(shallow: Path, tmp_path: Path) -> None:
    """Each by itself, on the same activations; T5's ``wo`` in its own feed-forward layer, which would cast them unscaled."""
    quantise(shallow, tmp_path / "fp8")
    model, original = loaded(tmp_path / "fp8"), bf16_model(shallow)
    generator = torch.Generator().manual_seed(5)
    compared = [name for name, module in model.named_modules() if isinstance(module, Fp8Linear)]
    compared += [name.removesuffix(".wo") for name in compared if name.endswith(".wo")]

    assert len(compared) == 14 + 2
    for name in compared:
        plain, fp8 = original.get_submodule(name), model.get_submodule(name)
        width = (plain.wi_0 if hasattr(plain, "wi_0") else plain).in_features
        values = torch.randn(6, width, generator=generator).bfloat16()
        with torch.inference_mode():
            assert torch.cosine_similarity(fp8(values).float(), plain(values).float(), dim=1).min() > 0.99, name


def test_the_whole_model_answers_through_triton_s_kernels_as_through_their_reference(
    shallow: Path, tmp_path: Path, kernel_device: str
) -> None:
    quantise(shallow, tmp_path / "fp8")
    model = empty_model(tmp_path / "fp8")
    load_quantised(model, tmp_path / "fp8", device=kernel_device, backend="triton")
    given = inputs(shallow, ("thanks",))

    found = asked(model, {name: tensor.to(kernel_device) for name, tensor in given.items()}).cpu()

    expected = asked(loaded(tmp_path / "fp8"), given)
    if kernel_device == "cpu":
        assert torch.equal(found, expected)
    else:
        assert torch.cosine_similarity(found.flatten(), expected.flatten(), dim=0) > 0.99


def test_the_embeddings_are_one_matrix_under_whichever_name_they_stand(shallow: Path, tmp_path: Path) -> None:
    shared, embedded = EMBEDDINGS
    found = []
    for number, names in enumerate(((shared,), (embedded,), (shared, embedded))):
        rewritten(shallow, lambda tensors, names=names: _rename(tensors, names))  # type: ignore[misc]
        quantise(shallow, tmp_path / str(number))
        model = loaded(tmp_path / str(number))
        assert model.get_parameter(shared) is model.get_parameter(embedded)
        found.append(asked(model, inputs(shallow)))

    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[2])


def _rename(tensors: dict[str, torch.Tensor], names: tuple[str, ...]) -> None:
    matrix = next(tensors[name] for name in EMBEDDINGS if name in tensors)
    for name in EMBEDDINGS:
        tensors.pop(name, None)
    tensors.update({name: matrix.clone() for name in names})


def test_two_matrices_that_differ_as_embeddings_are_refused(shallow: Path, tmp_path: Path) -> None:
    rewritten(shallow, lambda tensors: tensors.update({EMBEDDINGS[1]: tensors[EMBEDDINGS[0]] + 1}))
    quantise(shallow, tmp_path / "fp8")

    with pytest.raises(GpuRefused, match="two different matrices"):
        loaded(tmp_path / "fp8")


def test_a_tensor_that_the_checkpoint_lacks_is_named_and_not_left_at_random(shallow: Path, tmp_path: Path) -> None:
    """Which tensors a scorer has only the model knows."""
    name = "model.scorer.q_norm.weight"
    rewritten(shallow, lambda tensors: tensors.__delitem__(name))
    quantise(shallow, tmp_path / "fp8")
    drawn_at_random = bf16_model(shallow)

    for model in (empty_model(tmp_path / "fp8"), drawn_at_random):
        with pytest.raises(GpuRefused, match=name):
            load_quantised(model, tmp_path / "fp8")


def test_a_byte_that_changed_since_it_was_written_is_found_by_its_tensor(shallow: Path, tmp_path: Path) -> None:
    quantise(shallow, tmp_path / "fp8")
    path = tmp_path / "fp8" / WEIGHTS_FILE
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(bytes(data))

    with pytest.raises(GpuRefused, match="is not the one that its record was written for"):
        loaded(tmp_path / "fp8")


def test_a_model_of_other_sizes_is_refused_by_the_layer(shallow: Path, tmp_path: Path) -> None:
    quantise(shallow, tmp_path / "fp8")
    other = checkpoints.gliclass(tmp_path / "other", blocks=2, feed_forward=48)

    with pytest.raises(GpuRefused, match=r"wi_0'.*\(48, 32\).*\(64, 32\)"):
        load_quantised(empty_model(other), tmp_path / "fp8")


def test_a_checkpoint_is_known_by_its_two_files(shallow: Path, tmp_path: Path) -> None:
    quantise(shallow, tmp_path / "fp8")

    assert is_quantised(tmp_path / "fp8")
    assert not is_quantised(shallow)
    (tmp_path / "fp8" / RECORD_FILE).unlink()
    assert not is_quantised(tmp_path / "fp8")


def test_a_scale_that_is_missing_is_named(shallow: Path, tmp_path: Path) -> None:
    from safetensors.torch import save_file

    quantise(shallow, tmp_path / "fp8")
    tensors = tensors_of(tmp_path / "fp8" / WEIGHTS_FILE)
    name = f"{checkpoints.ATTENTION}.k.weight_scale"
    del tensors[name]
    save_file(tensors, tmp_path / "fp8" / WEIGHTS_FILE, {"format": "pt"})

    with pytest.raises(GpuRefused, match=name):
        loaded(tmp_path / "fp8")
    assert json.loads((tmp_path / "fp8" / RECORD_FILE).read_text())["tensors"][name]
