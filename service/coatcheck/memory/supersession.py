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

_CORRECTION = re.compile(
    r"\bcorrection\b|\bcorrected\b|\bsupersed\w+|\breplaces? the (?:earlier|previous|old)|\bno longer\b|\binstead of\b"
    r"|\bnot \S+ (?:but|any ?more)\b|\bchanged (?:from|to)\b|\bwas wrong\b|\brevis(?:ion|ed)\b|\bactually,"
    r"|исправлен|поправк|вместо\b|больше не\b|заменя|отменя|更正|改为|不再|取代|修正",
    re.IGNORECASE,
)
_TERM = re.compile(r"[^\W_](?:[\w./:-]*[^\W_])?")
_IDENTIFIER = re.compile(r"[\d_./:-]|[a-z][A-Z]")
MIN_SHARED_TERMS = 2
RARE_TERM_MIN_CHARS = 4


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
    """For each hit that a later one of the pool corrects, the newest such. Rare means: in at most half of the pool, or three."""
    frequency: Counter[str] = Counter(term for said in pool for term in _terms(said.text))
    rare_in = max(3, len(pool) // 2)
    corrections = [said for said in pool if _CORRECTION.search(said.text)]
    found: dict[SegmentKey, SupersededBy] = {}
    for hit in hits:
        terms = {term for term in _terms(hit.text) if frequency[term] <= rare_in}
        for later in sorted(corrections, key=lambda said: said.at):
            if later.session_id == hit.session_id and later.at > hit.at and later.sha256 != hit.sha256:
                reason = _shared_subject(terms, _terms(later.text))
                if reason is not None:
                    found[hit.key] = SupersededBy(sha256=later.sha256, manifest_id=later.manifest_id, reason=reason)
    return found


def _terms(text: str) -> set[str]:
    return {term.group().lower() for term in _TERM.finditer(text) if len(term.group()) >= RARE_TERM_MIN_CHARS}


def _shared_subject(earlier: set[str], later: set[str]) -> str | None:
    shared = sorted(earlier & later, key=len, reverse=True)
    identifiers = [term for term in shared if _IDENTIFIER.search(term)]
    if len(shared) >= MIN_SHARED_TERMS + 1 or (identifiers and len(shared) >= MIN_SHARED_TERMS):
        return f"a later correction speaks of {', '.join(shared[:3])}"
    return None
