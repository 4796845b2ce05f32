"""A compressor that was trained for some seconds is of use: on prose it never saw, what it proposes passes the fact guard."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmark.reduction import any_word, measure
from coatcheck.models.llmlingua import LlmlinguaCompressor
from tests.compaction.prose import CHINESE, RUSSIAN, english
from tests.torch import labelled, token_classifiers


@pytest.mark.accept
def test_what_a_trained_compressor_proposes_passes_the_fact_guard(tmp_path: Path) -> None:
    seen = [*labelled.paragraphs(300), *RUSSIAN[:8], *CHINESE[:8]]
    unseen = [*english(), *RUSSIAN[8:], *CHINESE[8:]]
    folder = token_classifiers.bert(tmp_path / "made", seen, hidden_size=64, intermediate_size=128, initializer_range=0.02)
    told = token_classifiers.train(folder, seen, steps=120, rate=3e-3)

    held = measure(LlmlinguaCompressor(folder), unseen, 0.6)
    free = measure(LlmlinguaCompressor(folder, choice=any_word), unseen, 0.6)

    print(f"{told:.3f} of the tokens it was trained on; guarded {held.as_json()}; not guarded {free.as_json()}")
    assert told > 0.95
    assert held.accepted == held.proposed
    assert held.accepted > 0.8 * held.texts
    assert held.saved_chars > 0.1 * held.chars
    assert free.accepted < 0.9 * free.proposed
