"""The FP8 linear layer: both backends and both products beside the exact product, and what it refuses."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from coatcheck.domain.errors import GpuRefused
from coatcheck.gpu.fp8 import reference
from coatcheck.gpu.fp8.linear import Fp8Linear, Gemm
from coatcheck.gpu.kernels.backends import Backend


def layer(
    backend: Backend = "torch", gemm: Gemm = "scale-out", *, inputs: int = 64, channels: int = 48, device: str = "cpu"
) -> tuple[Fp8Linear, torch.Tensor]:
    """And the weight that it was made of."""
    weight = torch.randn(channels, inputs, generator=torch.Generator().manual_seed(1)).bfloat16()
    codes, scales = reference.quantise(weight)
    return Fp8Linear("the layer", codes.to(device), scales.reshape(1, -1).to(device), backend=backend, gemm=gemm), weight


def activations(*shape: int, seed: int = 2) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).bfloat16()


@pytest.mark.parametrize("gemm", ["scale-out", "row-wise"])
def test_the_product_is_the_exact_one_of_what_was_quantised(gemm: Gemm) -> None:
    made, weight = layer(gemm=gemm)
    values = activations(2, 5, 64)

    found = made(values)

    (codes, scales), (weights, channels) = reference.quantise(values.reshape(10, 64)), reference.quantise(weight)
    exact = (codes.double() * scales.double()) @ (weights.double() * channels.double()).t()
    assert found.shape == (2, 5, 48)
    assert found.dtype == torch.bfloat16
    # One rounding to BF16, eight bits of mantissa, and the order of additions in float32.
    assert torch.allclose(found.reshape(10, 48).double(), exact, rtol=2**-8, atol=1e-5)
    unquantised = values.reshape(10, 64).double() @ weight.double().t()
    assert torch.cosine_similarity(found.reshape(10, 48).double(), unquantised, dim=1).min() > 0.997


@pytest.mark.parametrize("gemm", ["scale-out", "row-wise"])
def test_triton_s_layer_is_the_reference_s_to_the_bit(kernel_device: str, gemm: Gemm) -> None:
    values = activations(13, 64)

    found = layer("triton", gemm, device=kernel_device)[0](values.to(kernel_device))

    assert torch.equal(found, layer("torch", gemm, device=kernel_device)[0](values.to(kernel_device)))


@pytest.mark.parametrize("backend", ["torch", "triton"])
@pytest.mark.parametrize("gemm", ["scale-out", "row-wise"])
def test_no_token_gives_no_row(kernel_device: str, backend: Backend, gemm: Gemm) -> None:
    found = layer(backend, gemm, device=kernel_device)[0](activations(0, 64).to(kernel_device))

    assert found.shape == (0, 48)


def test_a_token_that_is_no_number_makes_no_other_token_so() -> None:
    values = activations(4, 64)
    values[1, 7] = float("nan")
    values[2, 7] = float("inf")

    found = layer()[0](values)

    assert found.isnan().all(dim=1).tolist() == [False, True, True, False]
    assert found[[0, 3]].isfinite().all()


@pytest.mark.parametrize("values", [activations(2, 64).float(), activations(2, 48)], ids=["float32", "another width"])
def test_other_activations_are_refused_by_the_layer_s_name(values: torch.Tensor) -> None:
    with pytest.raises(GpuRefused, match="'the layer'"):
        layer()[0](values)


@pytest.mark.parametrize("conversion", [torch.nn.Module.float, torch.nn.Module.bfloat16])
def test_a_layer_whose_codes_were_converted_to_numbers_is_refused_and_not_used(conversion: object) -> None:
    """``model.float()`` would make of every code its value, and of every scale another one."""
    made, _ = layer()
    conversion(made)  # type: ignore[operator]

    with pytest.raises(GpuRefused, match="load it again"):
        made(activations(2, 64))


def test_it_waits_for_no_device_and_has_no_shape_that_hangs_on_what_it_reads() -> None:
    """As tensors that hold nothing: whatever would look into one fails."""
    made, _ = layer(gemm="row-wise")

    assert made.to("meta")(activations(3, 64).to("meta")).shape == (3, 48)


class Products(TorchDispatchMode):  # type: ignore[misc]
    """Notes the left side of each FP8 product, and whether it may add in less than float32."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[tuple[int, ...], bool]] = []

    def __torch_dispatch__(self, operation: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if operation.name() == "aten::_scaled_mm":
            self.seen.append((tuple(args[0].shape), args[7:] == (True,)))  # the last of its arguments, all of which have a place
        return operation(*args, **(kwargs or {}))


def test_rows_are_multiplied_by_the_sixteen_and_added_in_float32() -> None:
    made, _ = layer(gemm="row-wise")

    with Products() as products:
        found = made(activations(13, 64))

    assert found.shape == (13, 48)
    assert products.seen == [((16, 64), False)]


def test_the_sums_of_a_gpu_are_added_in_float32_too() -> None:
    """On tensors of a GPU that need not be there: they hold nothing."""
    with FakeTensorMode():
        codes, scales = torch.empty(48, 64, dtype=torch.float8_e4m3fn, device="cuda"), torch.empty(1, 48, device="cuda")
        made = Fp8Linear("the layer", codes, scales, backend="torch", gemm="scale-out")
        with Products() as products:
            found = made._sums(torch.empty(16, 64, dtype=torch.float8_e4m3fn, device="cuda"))

    assert (found.shape, found.dtype) == ((16, 48), torch.float32)
    assert products.seen == [((16, 64), False)]
