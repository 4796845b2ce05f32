"""A checkpoint that does not load costs its stage one try a minute, and no compaction seconds each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coatcheck.domain.errors import CoatcheckError
from coatcheck.models import stage_models
from coatcheck.models.registry import Built
from coatcheck.models.stage_models import Endpoint
from coatcheck.outbound.client import Outbound
from coatcheck.outbound.guard import Allowance
from tests.torch import tiny, tiny_transformers, token_classifiers

TEXTS = ["the port is 8443"]


def _summariser(name: str) -> Built[Any]:
    return stage_models.build_summariser(name, Endpoint(None, None, Outbound(Allowance())))


@pytest.mark.parametrize(
    ("make", "build"),
    [
        (lambda folder: tiny.gliclass(folder, TEXTS, ["facts"]), stage_models.build_router),
        (lambda folder: token_classifiers.bert(folder, TEXTS), stage_models.build_compressor),
        (tiny_transformers.classifier, stage_models.build_entailment),
        (tiny_transformers.summariser, _summariser),
    ],
)
def test_a_load_reads_the_weights_and_fails_where_they_are_torn(
    tmp_path: Path, make: Callable[[Path], object], build: Callable[[str], Built[Any]]
) -> None:
    make(tmp_path)
    sound = build(str(tmp_path)).model
    assert sound is not None
    assert sound.load().revision == sound.revision

    weights = tmp_path / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-200])

    torn = build(str(tmp_path)).model
    assert torn is not None
    with pytest.raises(CoatcheckError):
        torn.load()
