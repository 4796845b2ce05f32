"""Loads a quantised checkpoint into a GLiClass model, tensor by tensor: no copy in BF16 is ever made of what is quantised."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import torch

from coatcheck.domain.errors import GpuUnfit, GpuUnsupported
from coatcheck.gpu.fp8 import reading, record
from coatcheck.gpu.fp8.config import encoder_shape
from coatcheck.gpu.fp8.layout import EMBEDDINGS, RECORD_FILE, SCALE_SUFFIX, WEIGHTS_FILE
from coatcheck.gpu.fp8.linear import Fp8Linear, Gemm
from coatcheck.gpu.fp8.reading import TYPES, Checkpoint, bytes_of
from coatcheck.gpu.kernels.backends import Backend


def is_quantised(folder: Path) -> bool:
    """Whether the folder holds what ``coatcheck gpu quantize`` writes. Opens nothing."""
    return (folder / WEIGHTS_FILE).is_file() and (folder / RECORD_FILE).is_file()


def empty_model(folder: Path) -> Any:
    """The checkpoint's GLiClass model without any weight, on the meta device: no memory, and nothing is drawn at random.

    Asks no network and runs nothing of the folder. Raises GpuRefused for what is no mT5 uni-encoder, and
    GpuUnsupported without gliclass.
    """
    encoder_shape(folder)  # before the library reads it: it would load code by name for an encoder that it does not know
    try:
        from gliclass import GLiClassModel, GLiClassModelConfig
    except ImportError as error:
        raise GpuUnsupported("gliclass is not installed (coatcheck[models]).") from error

    config = GLiClassModelConfig.from_pretrained(folder, local_files_only=True)
    config.encoder_model_name = str(folder)  # the library looks for adapters there, and fails where it is None
    config.encoder_config.vocab_size = config.vocab_size  # to another size it would be brought by statistics of the weights
    with torch.device("meta"):
        return GLiClassModel(config)


def load_quantised(
    model: torch.nn.Module,
    folder: Path,
    *,
    device: str | torch.device = "cpu",
    backend: Backend | None = None,
    gemm: Gemm = "scale-out",
) -> tuple[str, ...]:
    """Fills the model from the folder, an ``Fp8Linear`` in the place of each quantised layer; returns their names, in order.

    The model is built from the folder's ``config.json``, best by ``empty_model``, and is ready to be asked afterwards. Each tensor
    is held against its hash. Raises GpuRefused, which names the tensor or the layer; then the model is not to be used.
    """
    where = torch.device(device)
    if where.type == "cuda" and not torch.cuda.is_available():
        raise GpuUnsupported("There is no CUDA device on this machine; device='cpu' runs the reference.")
    made = record.read(folder)
    shape = encoder_shape(folder)
    with reading.opened((folder / WEIGHTS_FILE,)) as checkpoint:
        shape.check_quantised(checkpoint.headers)
        matrices = shape.matrices()
        for name in matrices:
            layer = name.removesuffix(".weight")
            codes, scales = (_read(part, checkpoint, made, where) for part in (name, name + SCALE_SUFFIX))
            _replace(model, layer, Fp8Linear(layer, codes, scales.reshape(1, -1), backend=backend, gemm=gemm))
        kept = [name for name in checkpoint.headers if name.removesuffix(SCALE_SUFFIX) not in matrices]
        for name in kept:
            _assign(model, name, _read(name, checkpoint, made, where))
    layers = tuple(name.removesuffix(".weight") for name in matrices)
    _tie_embeddings(model, kept)
    _require_filled(model, {*kept, *EMBEDDINGS}, set(layers))
    model.eval()
    return layers


def _read(name: str, checkpoint: Checkpoint, made: record.Record, device: torch.device) -> torch.Tensor:
    header = checkpoint.headers[name]
    tensor = torch.empty(header.shape, dtype=TYPES[header.dtype], device=device)
    digest, row = hashlib.sha256(), 0
    for piece in checkpoint.pieces(name):
        digest.update(bytes_of(piece))
        if piece.dim():
            tensor[row : row + len(piece)].copy_(piece)
            row += len(piece)
        else:
            tensor.copy_(piece)
    recorded = made.tensors.get(name)
    if recorded is None or recorded.sha256 != digest.hexdigest():
        raise GpuUnfit(f"The tensor {name!r} is not the one that its record was written for.")
    return tensor


def _replace(model: torch.nn.Module, name: str, layer: Fp8Linear) -> None:
    found = _module(model, name)
    if not isinstance(found, torch.nn.Linear) or found.bias is not None:
        raise GpuUnfit(f"The model's {name!r} is no linear layer without bias.")
    if tuple(found.weight.shape) != tuple(layer.quantised.shape):
        raise GpuUnfit(f"The model's {name!r} is {tuple(found.weight.shape)}, its checkpoint's {tuple(layer.quantised.shape)}.")
    parent, _, own = name.rpartition(".")
    setattr(_module(model, parent), own, layer)


def _assign(model: torch.nn.Module, name: str, tensor: torch.Tensor) -> None:
    parent, _, own = name.rpartition(".")
    module = _module(model, parent)
    found = dict(module.named_parameters(recurse=False)).get(own)
    if found is None:
        raise GpuUnfit(f"The checkpoint has the tensor {name!r}, and the model has no place for it.")
    if found.shape != tensor.shape:
        raise GpuUnfit(f"The model's {name!r} is {tuple(found.shape)}, its checkpoint's {tuple(tensor.shape)}.")
    setattr(module, own, torch.nn.Parameter(tensor, requires_grad=False))


def _module(model: torch.nn.Module, name: str) -> Any:
    try:
        return model.get_submodule(name)
    except AttributeError as error:
        raise GpuUnfit(f"The model has no {name!r}.") from error


def _tie_embeddings(model: torch.nn.Module, kept: list[str]) -> None:
    """T5's two names are one matrix: what the checkpoint has under either becomes both."""
    there = [model.get_parameter(name) for name in EMBEDDINGS if name in kept]
    if len(there) > 1 and not torch.equal(there[0], there[1]):
        raise GpuUnfit(f"The checkpoint has two different matrices as {EMBEDDINGS[0]!r} and {EMBEDDINGS[1]!r}.")
    for name in EMBEDDINGS:
        _module(model, name.removesuffix(".weight")).weight = there[0]


def _require_filled(model: torch.nn.Module, filled: set[str], layers: set[str]) -> None:
    """Whatever the checkpoint does not have would stay as it was made: at random, or without memory."""
    names = [name for name in model.state_dict() if name.rpartition(".")[0] not in layers]
    names += [name for name, tensor in model.named_buffers() if tensor.device.type == "meta"]
    unfilled = [name for name in names if name not in filled]
    if unfilled:
        raise GpuUnfit(f"The model has {len(unfilled)} tensors that its checkpoint lacks, such as {unfilled[0]!r}.")
