"""The override of attention types: asked for, logged, and honest about what it proves."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import structlog
from structlog.testing import capture_logs

from coatcheck.domain.errors import GpuRefused
from coatcheck.gpu.attention_types import FULL, LINEAR, SPARSE, sparse_as_full


@pytest.fixture
def _logging_as_it_comes() -> Iterator[None]:
    """Whatever level a service of another test in this process was given."""
    before = structlog.get_config()
    structlog.reset_defaults()
    yield
    structlog.configure(**before)


@pytest.mark.usefixtures("_logging_as_it_comes")
def test_twelve_sparse_layers_become_full_and_the_log_says_what_that_does_not_prove() -> None:
    layers = [SPARSE if number % 4 == 3 else LINEAR for number in range(48)]

    with capture_logs() as logs:
        override = sparse_as_full(layers)

    assert override.changed == tuple(range(3, 48, 4))
    assert [kind for kind in override.layer_types if kind != LINEAR] == [FULL] * 12
    assert all(override.layer_types[layer] == kind for layer, kind in enumerate(layers) if kind == LINEAR)
    assert logs[0]["log_level"] == "warning"
    assert "does not prove" in logs[0]["not_proven"]


@pytest.mark.parametrize("layers", [[SPARSE, "sliding_attention"], [FULL, LINEAR], []])
def test_an_unknown_type_and_nothing_to_change_are_refused(layers: list[str]) -> None:
    with pytest.raises(GpuRefused):
        sparse_as_full(layers)
