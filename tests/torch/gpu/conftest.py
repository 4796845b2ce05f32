"""Devices for the accelerated runtime's tests: the CPU with triton's mended interpreter, and a GPU where there is one."""

from __future__ import annotations

import pytest

NO_GPU = "no CUDA device: `python -m pytest -m gpu tests/torch` on a machine with one runs these same tests"


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def kernel_device(request: pytest.FixtureRequest) -> str:
    """Where triton's kernels run: interpreted on the CPU, or compiled on a GPU."""
    pytest.importorskip("triton")
    import torch

    from tests.torch.gpu.mended_triton import mend

    device = str(request.param)
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip(NO_GPU)
    if device == "cpu":
        if torch.cuda.is_available():
            pytest.skip("a GPU is here: the same tests run on it (cuda)")
        mend()
    return device
