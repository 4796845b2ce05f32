"""Which hit a later segment of its session corrects: only where the later one says so, and speaks of the same thing.

Both are asked for: an explicit correction (``corrections``) and a shared subject, within two sentences of either side: an
identifier and what else was said of it or, where the correction is announced, three rare words. What a correction names as no
longer so, the earlier segment has to have said. It never hides a hit. Precision on made pairs: tests/memory/test_supersession.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from uuid import UUID

from coatcheck.compaction.instructions import reads_like_an_instruction
from coatcheck.compaction.quoting import one_line, shorten
from coatcheck.memory.correction_words import PLACES
from coatcheck.memory.corrections import READ_CHARS, Correction, corrections, sentences_of
from coatcheck.memory.fusion import SegmentKey
from coatcheck.memory.terms import Terms, are_siblings, terms_in, together
from coatcheck_client.wire import SupersededBy

RARE_IN = 2
"""A term that more of the segments that correct nothing hold says nothing of this pair: boilerplate is shared by many."""
ENOUGH = 3.0
"""What a shared subject weighs at least; ``subjects`` has the weights."""
NAMED = 3
QUOTED_CHARS = 160
WHO = {
    "user": "The user",
    "assistant": "The assistant",
    "tool": "A tool's result",
    "system": "A system message",
    "developer": "A developer message",
}


@dataclass(frozen=True, slots=True)
class Said:
    """One segment as said: where, when and what."""

    session_id: UUID
    sha256: str
    manifest_id: UUID
    ordinal: int
    role: str
    at: datetime
    text: str
    """As it may leave: a reason quotes it."""

    @property
    def key(self) -> SegmentKey:
        return self.session_id, self.sha256


def find_superseding(hits: Sequence[Said], pool: Sequence[Said], beyond: Sequence[Said] = ()) -> dict[SegmentKey, SupersededBy]:
    """For each hit that a later one corrects, the newest such: one of the pool, which says what is rare, or of what is beyond."""
    by_key = {said.key: said for said in (*beyond, *pool, *hits)}
    correcting = {key: said for key in {said.key for said in (*pool, *beyond)} if (said := corrections(by_key[key].text))}
    later = sorted((by_key[key] for key in correcting), key=lambda said: said.at)
    frequency: Counter[int] | None = None
    found: dict[SegmentKey, SupersededBy] = {}
    for hit in hits:
        for one in later:
            if not _may_correct(one, hit) or not _shared(hit.text, correcting[one.key], Counter()):
                continue
            if frequency is None:
                around = {said.key: said for said in (*pool, *hits)}
                frequency = _frequency([said for key, said in around.items() if key not in correcting])
            if shared := _shared(hit.text, correcting[one.key], frequency):
                found[hit.key] = SupersededBy(
                    sha256=one.sha256, manifest_id=one.manifest_id, ordinal=one.ordinal, reason=_reason(one, *shared)
                )
    return found


def _reason(later: Said, correction: Correction, terms: Sequence[str]) -> str:
    """Who corrected it, when, about what and in which words; those of an instruction are left out."""
    at = later.at.astimezone(UTC).strftime("%Y-%m-%dT%H:%MZ")
    said = f"{WHO.get(later.role, later.role)} corrected this at {at} ({', '.join(map(one_line, terms[:NAMED]))})"
    sentence = one_line(correction.sentence)
    return f"{said}." if reads_like_an_instruction(sentence, later.role) else f'{said}: "{shorten(sentence, QUOTED_CHARS)}"'


def _may_correct(later: Said, hit: Said) -> bool:
    return later.session_id == hit.session_id and later.at > hit.at and later.sha256 != hit.sha256


def _frequency(pool: Sequence[Said]) -> Counter[int]:
    """In how many of the texts each term stands."""
    return Counter(chain.from_iterable(terms_in(said.text[:READ_CHARS]) for said in pool))


def _shared(text: str, of_later: Sequence[Correction], frequency: Counter[int]) -> tuple[Correction, list[str]] | None:
    """The correction that speaks of the same as the earlier text, and what that is; None where it is not enough."""
    said = [terms_in(sentence) for sentence in sentences_of(text)]
    rare = {term for sentence in said for term in sentence if frequency[term] <= RARE_IN}
    for correction in of_later:
        if correction.sentence in text or _elsewhere(text, correction.near):
            continue
        near = terms_in(correction.near)
        if are_siblings(together(said), near):
            continue
        for at in range(len(said)):
            shared = _subject(together(said[at : at + 2]), rare, correction, near)
            if shared:
                return correction, shared
    return None


def _subject(said: Terms, rare: Set[int], correction: Correction, near: Terms) -> list[str]:
    gone = _said_of(said, rare, correction)
    telling = rare | gone
    if any(said[term].is_number for term in gone):
        # The very value that is taken back: an identifier beside it tells the subject, however many others speak of that.
        telling |= {term for term in said if said[term].is_identifier}
    shared = {term for term in said if term in telling and term in near and not near[term].is_number}
    weight = sum(said[term].weight for term in shared) + sum(said[term].is_number for term in gone)
    if not correction.announced:
        is_named = any(said[term].is_identifier for term in shared) or any(said[term].is_number for term in gone)
        is_otherwise = bool(gone) if correction.taken_back else _gives_others(said, near)
        if not is_named or not is_otherwise:
            return []
    elif not gone:
        weight += _gives_others(said, near)
    if weight < ENOUGH:
        return []
    named = sorted((said[term] for term in shared | gone), key=lambda term: (-term.weight, -len(term.shown), term.shown))
    return [term.shown for term in named]


def _said_of(said: Terms, rare: Set[int], correction: Correction) -> set[int]:
    """What the correction takes back and was said; of a stretch with numbers, its numbers."""
    gone: set[int] = set()
    for stretch in map(terms_in, correction.taken_back):
        numbers = {term for term in stretch if stretch[term].is_number}
        gone |= {
            term
            for term in numbers or stretch
            if term in said and (term in rare or said[term].is_identifier or said[term].is_number)
        }
    return gone


def _gives_others(said: Terms, near: Terms) -> bool:
    """Whether both give numbers, and the later one others."""
    earlier = {term for term in said if said[term].is_number}
    return bool(earlier) and any(near[term].is_number for term in near.keys() - earlier)


def _elsewhere(earlier: str, later: str) -> bool:
    """Whether one speaks of staging alone, say, and the other of production alone."""
    for places in PLACES:
        in_earlier, in_later = ({place for place in places if place.search(text)} for text in (earlier, later))
        if in_earlier and in_later and not in_earlier & in_later:
            return True
    return False
