"""Where a quantised router runs: on which GPUs, and what is said of others."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from coatcheck.domain.errors import GpuUnsupported
from coatcheck.gpu.fp8.layout import WEIGHTS_FILE
from coatcheck.gpu.router import gpu
from coatcheck.gpu.router.placement import MARGIN_BYTES, Device, refusal

GIB = 1024**3
ENOUGH = 2 * GIB + MARGIN_BYTES


@pytest.mark.parametrize("capability", [(8, 9), (9, 0), (10, 0), (12, 0)])
def test_gpus_that_multiply_fp8_take_a_checkpoint_that_fits(capability: tuple[int, int]) -> None:
    assert refusal(Device(capability, ENOUGH), 2 * GIB, has_triton=True) is None


@pytest.mark.parametrize(
    ("device", "has_triton", "said"),
    [
        (None, True, "no CUDA device"),
        (Device((8, 6), ENOUGH), True, "8.6; FP8 products need 8.9"),
        (Device((9, 0), ENOUGH), False, "triton"),
        (Device((9, 0), ENOUGH - 1), True, "bytes free"),
    ],
)
def test_others_are_refused_in_words(device: Device | None, has_triton: bool, said: str) -> None:
    found = refusal(device, 2 * GIB, has_triton=has_triton)

    assert found is not None
    assert said in found


def test_a_gpu_that_does_not_answer_is_one_that_cannot_be_run_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("CUDA-capable device(s) is/are busy or unavailable")

    (tmp_path / WEIGHTS_FILE).write_bytes(b"weights")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", broken)

    with pytest.raises(GpuUnsupported, match="does not answer"):
        gpu(tmp_path)


@pytest.mark.skipif(torch.cuda.is_available(), reason="a device is here")
def test_a_machine_without_a_gpu_says_so(tmp_path: Path) -> None:
    (tmp_path / WEIGHTS_FILE).write_bytes(b"weights")

    with pytest.raises(GpuUnsupported, match="no CUDA device"):
        gpu(tmp_path)
