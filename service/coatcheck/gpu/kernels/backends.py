"""What computes: a part's kernels in triton, or their reference in plain torch, which is the oracle and runs everywhere."""

from __future__ import annotations

import importlib
import importlib.util
from types import ModuleType
from typing import Literal

from coatcheck.domain.errors import GpuUnsupported

Backend = Literal["triton", "torch"]


def by_device(device_type: str) -> Backend:
    """Triton's on a GPU, torch's elsewhere."""
    return "triton" if device_type == "cuda" else "torch"


def module_of(backend: Backend, part: str) -> ModuleType:
    """``launch`` or ``reference`` of this package: the same functions, the same bytes. Raises GpuUnsupported without triton."""
    if backend == "triton":
        require_triton()
    return importlib.import_module(f"{part}.{'launch' if backend == 'triton' else 'reference'}")


def require_triton() -> None:
    if importlib.util.find_spec("triton") is None:
        raise GpuUnsupported("triton is not installed (coatcheck[gpu]).")
