"""Shorter forms of texts by the method of LLMLingua-2: an encoder says how much each word is needed, the least needed go.

Which words it may choose from is the fact guard's to say (``compaction.expendable``), and what is left is put together from the
text's own code points (``compaction.abridging``). Pan et al., "LLMLingua-2: Data Distillation for Efficient and Faithful
Task-Agnostic Prompt Compression", 2024; why its library is not used: docs/decisions/023.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from coatcheck.compaction.abridging import abridged
from coatcheck.compaction.expendable import Word, words
from coatcheck.domain.budgets import Budget
from coatcheck.domain.canonical import scalar_text
from coatcheck.domain.errors import StageUnavailable
from coatcheck.domain.values import value
from coatcheck.models.native import native
from coatcheck.models.token_classifier import TokenClassifier, Tokens, chunks

STAGE = "compressor"
_NEEDED = 0.5
"""A word that the model would rather keep stays, whatever the rate: of most texts the facts are more than the rate leaves, and all
the rest would go."""
_SENTENCE_ENDS = re.compile(r"[.!?。！？\n]")


@value
class _Judged:
    """A word, how much it is needed (None where the model has no token for it), and how many tokens it is."""

    word: Word
    needed: float | None
    tokens: int


class LlmlinguaCompressor:
    """Compressor port, from a local folder. The same text at the same rate gives the same answer, whatever is asked beside it.

    Loads when it is made. Raises StageUnavailable. Safe from several threads.
    """

    def __init__(self, folder: Path, *, revision: str = "", choice: Callable[[str], list[Word]] = words) -> None:
        """``choice`` says which words of a text may go."""
        self.revision = revision or folder.name
        self._choice = choice
        with native(STAGE):
            self._classifier = TokenClassifier(folder, STAGE)

    def compress(self, texts: Sequence[str], rate: float, budget: Budget) -> list[str]:
        """For each text a shorter form, or the text itself; of its tokens at least ``rate`` stay."""
        with native(STAGE):
            return [self._shortened(text, rate, budget) for text in texts]

    def _shortened(self, text: str, rate: float, budget: Budget) -> str:
        text = scalar_text(text)
        found = self._choice(text)
        if not any(word.may_go for word in found):
            return text
        tokens = self._classifier.tokens(text)
        needed: list[float] = []
        for start, end in chunks(_breaks(text, found, tokens), self._classifier.room):
            if budget.left_s() <= 0:
                raise StageUnavailable(f"The model of the stage {STAGE} was late.")
            needed += self._classifier.needed(tokens.ids[start:end])
        return abridged(text, found, _least_needed(_judged(found, tokens, needed), (1 - rate) * len(tokens.ids)))


def _least_needed(judged: Sequence[_Judged], allowed: float) -> list[bool]:
    """Which words go: the least needed of those that may, as long as no more than ``allowed`` tokens go with them."""
    gone = [False] * len(judged)
    order = sorted((one.needed, place) for place, one in enumerate(judged) if one.word.may_go and one.needed is not None)
    left = allowed
    for needed, place in order:
        left -= judged[place].tokens
        if needed >= _NEEDED or left < 0:
            break
        gone[place] = True
    return gone


def _judged(found: Sequence[Word], tokens: Tokens, needed: Sequence[float]) -> list[_Judged]:
    """Each word with the mean of its tokens, some of which may be another's as well."""
    sums, counts = [0.0] * len(found), [0] * len(found)
    first = 0
    for (start, end), likely in zip(tokens.offsets, needed, strict=True):
        while first < len(found) and found[first].end <= start:
            first += 1
        place = first
        while place < len(found) and found[place].start < end:
            sums[place] += likely
            counts[place] += 1
            place += 1
    return [_Judged(word, total / count if count else None, count) for word, total, count in zip(found, sums, counts, strict=True)]


def _breaks(text: str, found: Sequence[Word], tokens: Tokens) -> list[int]:
    """How good a place before each token is to cut at, as ``chunks`` asks it."""
    breaks: list[int] = []
    place, inside = 0, -1
    for start, _ in tokens.offsets:
        while place < len(found) and found[place].end <= start:
            place += 1
        is_new = place != inside
        inside = place
        ended = place > 0 and is_new and _SENTENCE_ENDS.search(text, found[place - 1].end - 1, max(start, found[place - 1].end))
        breaks.append(2 if ended else 1 if is_new else 0)
    return breaks
