"""Routes that no kernel can be led astray by, with the contribution of padding kept at nothing."""

from __future__ import annotations

import pytest
import torch

from coatcheck.domain.errors import GpuRefused
from coatcheck.gpu.moe.routes import Routes


@pytest.mark.parametrize("kind", [torch.int32, torch.int64])
def test_the_case_of_the_article(kind: torch.dtype) -> None:
    routes = Routes(512, "cpu")

    ids, weights = routes.safe(torch.tensor([[-1, 7, 512]], dtype=kind), torch.tensor([[0.4, 0.5, 0.6]], dtype=torch.bfloat16))

    assert ids.tolist() == [[0, 7, 0]]
    assert (ids.dtype, weights.dtype) == (kind, torch.bfloat16)
    assert torch.equal(weights, torch.tensor([[0.0, 0.5, 0.0]], dtype=torch.bfloat16))


def test_valid_routes_keep_ids_and_weights_to_the_bit() -> None:
    given = torch.tensor([[0, 511], [7, 7]]), torch.tensor([[0.1, -0.0], [3e38, 1e-40]])
    routes = Routes(512, "cpu")

    ids, weights = routes.safe(*given)

    assert torch.equal(ids, given[0])
    assert torch.equal(weights.view(torch.int32), given[1].view(torch.int32))
    assert routes.above() == 0


def test_ids_above_the_range_are_counted_and_padding_is_not() -> None:
    routes = Routes(8, "cpu")

    for _ in range(3):
        routes.safe(torch.tensor([-1, 8, 2**31 - 1, 7]), torch.ones(4))

    assert routes.above() == 6


def test_the_weight_of_an_invalid_route_is_nothing_whatever_it_was() -> None:
    _, weights = Routes(8, "cpu").safe(torch.tensor([-1, 9]), torch.tensor([float("nan"), float("inf")]))

    assert weights.tolist() == [0.0, 0.0]


def test_padding_adds_nothing_to_what_the_experts_give() -> None:
    torch.manual_seed(1)
    experts, tokens = torch.randn(8, 4, 4), torch.randn(5, 4)
    ids, weights = torch.randint(0, 8, (5, 2)), torch.rand(5, 2)
    padded_ids = torch.cat([ids, torch.full((5, 1), -1), torch.full((5, 1), 8)], dim=1)
    padded_weights = torch.cat([weights, torch.rand(5, 2)], dim=1)

    def mixed(ids: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        return torch.einsum("tk,tkoi,ti->to", weights, experts[ids], tokens)

    assert torch.equal(mixed(*Routes(8, "cpu").safe(padded_ids, padded_weights)), mixed(ids, weights))


@pytest.mark.parametrize(
    ("ids", "weights"),
    [
        (torch.zeros(3, 2), torch.zeros(3, 2)),
        (torch.zeros(3, 2, dtype=torch.int32), torch.zeros(3, 1)),
        (torch.zeros(2) > 0, torch.zeros(2)),
    ],
)
def test_what_names_no_experts_is_refused(ids: torch.Tensor, weights: torch.Tensor) -> None:
    with pytest.raises(GpuRefused):
        Routes(8, "cpu").safe(ids, weights)
