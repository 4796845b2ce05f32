"""The override of attention types: asked for, logged, and honest about what it proves."""

from __future__ import annotations

import logging

import pytest

from coatcheck.domain.errors import GpuRefused
from coatcheck.gpu.attention_types import FULL, LINEAR, SPARSE, sparse_as_full


def test_twelve_sparse_layers_become_full_and_the_log_says_what_that_does_not_prove(caplog: pytest.LogCaptureFixture) -> None:
    layers = [SPARSE if number % 4 == 3 else LINEAR for number in range(48)]

    with caplog.at_level(logging.WARNING, "coatcheck.gpu"):
        override = sparse_as_full(layers)

    assert override.changed == tuple(range(3, 48, 4))
    assert [kind for kind in override.layer_types if kind != LINEAR] == [FULL] * 12
    assert all(override.layer_types[layer] == kind for layer, kind in enumerate(layers) if kind == LINEAR)
    [said] = caplog.records
    assert said.levelno == logging.WARNING
    assert "in 12 layers" in said.getMessage()
    assert "does not prove" in said.getMessage()


@pytest.mark.parametrize("layers", [[SPARSE, "sliding_attention"], [FULL, LINEAR], []])
def test_an_unknown_type_and_nothing_to_change_are_refused(layers: list[str]) -> None:
    with pytest.raises(GpuRefused):
        sparse_as_full(layers)
