"""What a GPU's FP8 product refuses is refused at load, by the layer's name, on a machine whose CPU would take it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from coatcheck.domain.errors import GpuRefused
from coatcheck.gpu.fp8 import contract
from coatcheck.gpu.fp8.linear import Fp8Linear
from coatcheck.gpu.fp8.loading import empty_model, load_quantised
from coatcheck.gpu.fp8.quantise import quantise
from tests.torch.gpu.fp8 import checkpoints

E4M3 = torch.float8_e4m3fn


def codes(channels: int, inputs: int, kind: torch.dtype = E4M3) -> torch.Tensor:
    return torch.zeros(channels, inputs, dtype=kind)


@pytest.mark.parametrize(("channels", "inputs"), [(16, 16), (48, 2_048), (5_120, 2_048)])
def test_multiples_of_16_in_rows_that_lie_next_to_one_another_are_taken(channels: int, inputs: int) -> None:
    contract.check("the layer", codes(channels, inputs), torch.ones(1, channels))


@pytest.mark.parametrize(
    ("weight", "scales", "said"),
    [
        (codes(32, 40), torch.ones(1, 32), "divisible by 16"),
        (codes(40, 32), torch.ones(1, 40), "divisible by 16"),
        (codes(32, 48).t(), torch.ones(1, 48), "col_major"),
        (codes(32, 96)[:, ::2], torch.ones(1, 32), "col_major"),
        (codes(32, 32), torch.ones(64)[::2].reshape(1, 32), "contiguous"),
        (codes(32, 32), torch.ones(32, 1), "scales"),
        (codes(32, 32), torch.ones(1, 1), "scales"),
        (codes(32, 32), torch.ones(1, 32).bfloat16(), "float32"),
        (codes(32, 32, torch.float8_e5m2), torch.ones(1, 32), "E4M3"),
        (codes(32, 32, torch.bfloat16), torch.ones(1, 32), "E4M3"),
    ],
)
def test_what_a_gpu_refuses_is_refused_by_the_layer_s_name(weight: torch.Tensor, scales: torch.Tensor, said: str) -> None:
    with pytest.raises(GpuRefused, match=rf"'the layer'.*{said}"):
        Fp8Linear("the layer", weight, scales)


def test_a_cpu_would_have_taken_the_sides_that_a_gpu_refuses() -> None:
    """So that the refusal above is no double of one that would have come anyway."""
    found = torch._scaled_mm(codes(3, 40), codes(40, 40).t(), torch.ones(3, 1), torch.ones(1, 40), out_dtype=torch.bfloat16)

    assert found.shape == (3, 40)


def test_a_checkpoint_with_sides_that_no_gpu_multiplies_is_refused_at_load_by_its_first_layer(tmp_path: Path) -> None:
    checkpoints.gliclass(tmp_path / "bf16", blocks=1, feed_forward=72)
    quantise(tmp_path / "bf16", tmp_path / "fp8")

    with pytest.raises(GpuRefused, match=r"DenseReluDense\.wi_0'.*divisible by 16"):
        load_quantised(empty_model(tmp_path / "fp8"), tmp_path / "fp8")
