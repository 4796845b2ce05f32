"""Issue 4: a gate that was trained for some minutes refuses most harmful edits by itself, and lets most shortenings through.

The fact guard is left aside here: it refuses every one of these edits (``tests/compaction/test_fact_edits.py``). What is shown is
that a gate of the adapter's kind is worth having behind it.
"""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from uuid import UUID

import pytest

from coatcheck.compaction import fact_guard
from coatcheck.compaction.policy_document import shipped
from coatcheck.compaction.reduction import passes
from coatcheck.domain.budgets import Budget
from coatcheck.models.entailment import CrossEncoderEntailment
from tests.compaction import prose
from tests.torch.entailment_pairs import Pair, pairs
from tests.torch.trained_entailment import WHEEL, packaged, train

STEPS = 1_600


@pytest.mark.accept
def test_a_gate_trained_for_minutes_refuses_harmful_edits_and_lets_shortenings_through(tmp_path: Path) -> None:
    source = packaged()
    if source is None:
        pytest.skip(f"{WHEEL} is not installed")
    train(tmp_path, source, steps=STEPS, seed=7)
    gate = CrossEncoderEntailment(tmp_path, revision="trained@1")
    transcript = tuple(text for text in prose.english() if len(text) < 600)

    made = _judged("made texts, another seed", gate, pairs(random.Random(99), 400))
    other = _judged("texts of the shipped transcript", gate, pairs(random.Random(99), 200, transcript))

    assert made["refused"] >= 0.8
    assert made["accepted"] >= 0.8
    assert other["refused"] - (1 - other["accepted"]) >= 0.2, "on texts of another kind it should still tell the two apart"


def _judged(name: str, gate: CrossEncoderEntailment, held_out: list[Pair]) -> dict[str, float]:
    """The shares of harmful edits that are refused and of harmless ones that are let through; by kind in the output."""
    verdicts = gate.judge([(pair.premise, pair.hypothesis) for pair in held_out], Budget.of(UUID(int=1), 600))
    right: Counter[str] = Counter()
    count: Counter[str] = Counter()
    past_both = 0
    for pair, verdict in zip(held_out, verdicts, strict=True):
        let_through = passes(verdict, shipped())
        past_both += let_through and not pair.entailed and fact_guard.survives(pair.premise, pair.hypothesis)
        for kind in ("accepted" if pair.entailed else "refused", pair.what):
            count[kind] += 1
            right[kind] += let_through is pair.entailed
    print(f"\n{name}: " + ", ".join(f"{kind} {right[kind]}/{count[kind]}" for kind in count) + f"; past both gates {past_both}")
    assert past_both == 0
    return {kind: right[kind] / count[kind] for kind in ("accepted", "refused")}
