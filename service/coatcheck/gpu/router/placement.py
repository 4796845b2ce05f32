"""Where a quantised router runs, and why not on a GPU."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from coatcheck.domain.errors import GpuUnsupported
from coatcheck.gpu.fp8.layout import WEIGHTS_FILE
from coatcheck.gpu.graphs.backend import GraphBackend
from coatcheck.gpu.kernels.backends import Backend

LEAST_CAPABILITY = (8, 9)
"""Of a GPU that multiplies FP8: Ada, Hopper, Blackwell."""
MARGIN_BYTES = 512 * 1024 * 1024
"""Beside the weights: graphs, activations, the libraries' own. Chosen, not measured."""


@dataclass(frozen=True, slots=True)
class Placement:
    """``graphs`` makes what a runner captures with; None runs without graphs."""

    device: str
    fp8: Backend
    graphs: Callable[[], GraphBackend] | None = None
    runners: int = 1
    """As many requests at a time."""


REFERENCE = Placement("cpu", "torch")


@dataclass(frozen=True, slots=True)
class Device:
    """A GPU, as far as it matters here."""

    capability: tuple[int, int]
    free_bytes: int


def gpu(folder: Path) -> Placement:
    """The GPU that torch uses, for the checkpoint of this folder. Raises GpuUnsupported where it cannot run there."""
    refused = refusal(_device(), (folder / WEIGHTS_FILE).stat().st_size, has_triton=importlib.util.find_spec("triton") is not None)
    if refused is not None:
        raise GpuUnsupported(refused)
    from coatcheck.gpu.graphs.cuda import CudaGraphs

    return Placement("cuda", "triton", CudaGraphs)


def refusal(device: Device | None, weights_bytes: int, *, has_triton: bool) -> str | None:
    """Why a checkpoint of this size does not run on the device; None where it does."""
    if device is None:
        return "There is no CUDA device."
    if device.capability < LEAST_CAPABILITY:
        return f"The GPU is of capability {'.'.join(map(str, device.capability))}; FP8 products need 8.9 or newer."
    if not has_triton:
        return "triton is not installed (coatcheck[gpu])."
    if device.free_bytes < weights_bytes + MARGIN_BYTES:
        return f"The GPU has {device.free_bytes:,} bytes free; the router needs {weights_bytes + MARGIN_BYTES:,}."
    return None


def _device() -> Device | None:
    import torch

    if not torch.cuda.is_available():
        return None
    try:
        return Device(torch.cuda.get_device_capability(), torch.cuda.mem_get_info()[0])
    except RuntimeError as error:  # the first call that reaches the driver: one that is full, held by another, or broken
        raise GpuUnsupported("There is a CUDA device, and it does not answer.") from error
