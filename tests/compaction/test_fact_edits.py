"""Generated edits of conversation in three languages: every harmful one is refused, most of the shortenings are let through."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from coatcheck.compaction.fact_guard import compare
from tests.compaction import edits, prose

_TEXTS = {
    "English": (edits.ENGLISH, tuple(prose.english())),
    "Russian": (edits.RUSSIAN, prose.RUSSIAN),
    "Chinese": (edits.CHINESE, prose.CHINESE),
}


def _tried(name: str, count: int, seed: int) -> tuple[Counter[str], list[tuple[str, str, str]], int, list[tuple[str, str]]]:
    """Harmful edits by name, those let through, the number of shortenings and those refused with the reason."""
    language, texts = _TEXTS[name]
    tried: Counter[str] = Counter()
    let_through: list[tuple[str, str, str]] = []
    shortenings = 0
    refused: list[tuple[str, str]] = []
    for text, harm, shortening in edits.rounds(texts, language, random.Random(seed)):
        if harm is not None and tried.total() < count:
            tried[harm[0]] += 1
            if compare(text, harm[1]).kept:
                let_through.append((harm[0], text, harm[1]))
        if shortening is not None and shortenings < count:
            shortenings += 1
            verdict = compare(text, shortening)
            if not verdict.kept:
                refused.append((shortening, " ".join(map(str, verdict.faults))))
        if tried.total() == count and shortenings == count:
            return tried, let_through, shortenings, refused
    raise AssertionError


def _check(name: str, count: int, seed: int) -> str:
    tried, let_through, shortenings, refused = _tried(name, count, seed)

    assert let_through == []
    assert len(tried) >= 12, tried
    assert len(refused) <= 0.2 * shortenings, refused[:5]
    accepted = shortenings - len(refused)
    return f"{name}: {tried.total()} harmful refused ({len(tried)} kinds), {accepted} of {shortenings} harmless accepted"


@pytest.mark.parametrize("name", _TEXTS)
def test_harmful_edits_are_refused_and_shortenings_accepted(name: str) -> None:
    _check(name, 60, seed=20261130)


@pytest.mark.accept
def test_two_thousand_edits_in_three_languages() -> None:
    for name in _TEXTS:
        print(_check(name, 334, seed=4))
