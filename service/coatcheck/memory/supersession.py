"""Which hit a later segment of its session corrects: only where the later one says so, and speaks of the same thing.

Both are asked for: an explicit correction (a policy list in three languages) and a shared subject, that is an identifier or two
rare terms of the earlier segment. It never hides a hit. Precision on made pairs: tests/memory/test_supersession.py.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from coatcheck.memory.fusion import SegmentKey
from coatcheck_client.wire import SupersededBy

_PHRASES = (
    "correction", "corrected", "supersede", "replaces the earlier", "replaces the previous", "replaces the old", "no longer",
    "instead of", "changed from", "changed to", "was wrong", "revised", "revision", "actually,", "any more", "anymore",
    "исправлен", "поправк", "вместо", "больше не", "заменя", "отменя", "更正", "改为", "不再", "取代", "修正",
)  # fmt: skip
_TERM = re.compile(r"[^\W_](?:[\w./:-]*[^\W_])?")
_IDENTIFIER = re.compile(r"\d|[^\W\d_][._/:-][^\W\d_]|[a-z][A-Z]")
_NUMBER = re.compile(r"[\d.,:]+")
RARE_IN = 2
"""A term that more of the segments that correct nothing hold says nothing of this pair: boilerplate is shared by many."""
TERM_MIN_CHARS = 4
READ_CHARS = 2_000
"""A correction and its subject stand near each other; the rest of a long segment would only add words to share."""


@dataclass(frozen=True, slots=True)
class Said:
    """One segment as said: where, when and what."""

    session_id: UUID
    sha256: str
    manifest_id: UUID
    at: datetime
    text: str

    @property
    def key(self) -> SegmentKey:
        return self.session_id, self.sha256


def find_superseding(hits: Sequence[Said], pool: Sequence[Said]) -> dict[SegmentKey, SupersededBy]:
    """For each hit that a later one of the pool corrects, the newest such."""
    corrections = [said for said in pool if _says_correction(said.text)]
    if not corrections:
        return {}
    terms = {said.key: _terms(said.text) for said in {one.key: one for one in (*pool, *hits)}.values()}
    correcting = {said.key for said in corrections}
    frequency: Counter[str] = Counter(term for key, of_one in terms.items() if key not in correcting for term in of_one)
    found: dict[SegmentKey, SupersededBy] = {}
    for hit in hits:
        rare = {term for term in terms[hit.key] if frequency[term] <= RARE_IN}
        for later in sorted(corrections, key=lambda said: said.at):
            if later.session_id == hit.session_id and later.at > hit.at and later.sha256 != hit.sha256:
                reason = _shared_subject(rare, terms[later.key])
                if reason is not None:
                    found[hit.key] = SupersededBy(sha256=later.sha256, manifest_id=later.manifest_id, reason=reason)
    return found


def _says_correction(text: str) -> bool:
    lowered = text[:READ_CHARS].lower()
    return any(phrase in lowered for phrase in _PHRASES)


def _terms(text: str) -> set[str]:
    return {term for term in _TERM.findall(text[:READ_CHARS]) if len(term) >= TERM_MIN_CHARS and not _NUMBER.fullmatch(term)}


def _shared_subject(rare: set[str], later: set[str]) -> str | None:
    """An identifier with another rare term, or three rare terms: what one sentence about the same thing shares."""
    lowered = {term.lower() for term in later}
    shared = sorted((term for term in rare if term in later or term.lower() in lowered), key=lambda term: (-len(term), term))
    identifiers = [term for term in shared if _IDENTIFIER.search(term)]
    if len(shared) >= 3 or (identifiers and len(shared) >= 2):
        return f"a later correction speaks of {', '.join(shared[:3])}"
    return None
