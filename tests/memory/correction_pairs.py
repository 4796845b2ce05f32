"""The made pairs of corrections/*.yaml, and what a rule marks of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal
from uuid import UUID

import yaml

from coatcheck.memory.fusion import SegmentKey
from coatcheck.memory.supersession import Said, find_superseding
from coatcheck_client.wire import SupersededBy

SESSION = UUID(int=1)
DAY = datetime(2026, 11, 1, tzinfo=UTC)
LANGUAGES = ("english", "russian", "chinese")
Half = Literal["tuning", "held_out"]


@dataclass(frozen=True, slots=True)
class Pair:
    """What was said first and what was said later; ``why`` it is no correction, empty where it is one."""

    language: str
    half: Half
    earlier: str
    later: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class Measured:
    """Of ``corrected`` pairs ``found`` were marked, and ``wrong`` of what was marked is no correction."""

    corrected: int
    found: int
    wrong: tuple[Pair, ...]
    missed: tuple[Pair, ...]

    @property
    def precision(self) -> float:
        return self.found / max(1, self.found + len(self.wrong))

    @property
    def recall(self) -> float:
        return self.found / self.corrected


def read_pairs() -> list[Pair]:
    """Entries 1, 3, 5 ... of each list are the tuning half."""
    halves: tuple[Half, Half] = ("tuning", "held_out")
    pairs = []
    for language in LANGUAGES:
        lists = yaml.safe_load((Path(__file__).parent / "corrections" / f"{language}.yaml").read_text())
        for name in ("corrected", "near_misses"):
            pairs += [Pair(language, halves[at % 2], **entry) for at, entry in enumerate(lists[name])]
    return pairs


def said(name: str, text: str, day: int, session: UUID = SESSION) -> Said:
    return Said(session, name, UUID(int=day + 1), 3, "user", DAY + timedelta(days=day), text)


def each_alone(pairs: list[Pair]) -> Measured:
    """Each pair in a pool of its own: nothing else says which of its words are rare."""
    marked = {pair for pair in pairs if _marked(pair)}
    corrected = [pair for pair in pairs if not pair.why]
    return Measured(
        len(corrected),
        sum(pair in marked for pair in corrected),
        tuple(pair for pair in pairs if pair in marked and pair.why),
        tuple(pair for pair in corrected if pair not in marked),
    )


def all_together(pairs: list[Pair]) -> Measured:
    """All of them in one session, first everything earlier, then everything later: each earlier text with any later one."""
    earlier = [said(f"earlier {at}", pair.earlier, 0) for at, pair in enumerate(pairs)]
    later = [said(f"later {at}", pair.later, 1 + at) for at, pair in enumerate(pairs)]
    marks = find_superseding(earlier, [*earlier, *later])
    right = {at for at, pair in enumerate(pairs) if not pair.why and _names(marks, at) == f"later {at}"}
    wrong = [at for at in range(len(pairs)) if _names(marks, at) is not None and at not in right]
    corrected = [at for at, pair in enumerate(pairs) if not pair.why]
    return Measured(
        len(corrected),
        len(right),
        tuple(Pair("mixed", pairs[at].half, pairs[at].earlier, _text(_names(marks, at), pairs), "another") for at in wrong),
        tuple(pairs[at] for at in corrected if at not in right),
    )


def _marked(pair: Pair) -> bool:
    pool = [said("earlier", pair.earlier, 0), said("later", pair.later, 1)]
    return (SESSION, "earlier") in find_superseding(pool, pool)


def _names(marks: Mapping[SegmentKey, SupersededBy], at: int) -> str | None:
    mark = marks.get((SESSION, f"earlier {at}"))
    return None if mark is None else mark.sha256


def _text(name: str | None, pairs: list[Pair]) -> str:
    return "" if name is None else pairs[int(name.split()[1])].later
