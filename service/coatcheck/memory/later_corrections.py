"""Corrections of what was found that a query did not find itself: asked for by the identifiers that the hits speak of.

A correction need not hold a word of the query. One look-up of the lexical leg, for all hits together and within their sessions,
brings what else speaks of the same identifiers; the caller verifies it as any candidate. Hits without identifiers cost nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime

from coatcheck.domain.passages import IndexHit, RecallFilter, SparseVector
from coatcheck.domain.scopes import Scope
from coatcheck.index.lexical import analyse_query
from coatcheck.memory.collaborators import Collaborators
from coatcheck.memory.corrections import READ_CHARS
from coatcheck.memory.fusion import SegmentKey
from coatcheck.memory.supersession import Said
from coatcheck.memory.terms import terms_in

HITS = 10
"""Of the first ones alone a correction is looked for beyond what was found."""
IDENTIFIERS_OF_ONE = 6
PASSAGES = 16
CUE_WEIGHT = 0.5
CUES = "correction corrected instead longer wrong changed revised вместо исправление больше изменили отменили 更正 改为 不再 取代"
"""What a correction is likely to say: of many that speak of an identifier, those come first."""


async def speaking_of(
    parts: Collaborators, scope: Scope, hits: Sequence[Said], known: Collection[SegmentKey], until: datetime | None
) -> list[IndexHit]:
    """Passages later than the oldest of the hits, of segments that are not known. Raises IndexUnavailable."""
    first = hits[:HITS]
    wanted = {term: 1.0 for said in first for term in _identifiers(said.text)}
    if not wanted:
        return []
    cues = analyse_query(CUES)
    vector = _vector({**dict.fromkeys(cues.indices, CUE_WEIGHT), **wanted})
    narrow = RecallFilter(
        session_ids=tuple(sorted({said.session_id for said in first})), since=min(said.at for said in first), until=until
    )
    found = await parts.index.search_lexical(scope, parts.generation.number, vector, narrow, PASSAGES)
    return [hit for hit in found if (hit.session_id, hit.exact_sha256) not in known]


def _identifiers(text: str) -> Iterable[int]:
    found = [term for term, named in terms_in(text[:READ_CHARS]).items() if named.is_identifier]
    return found[:IDENTIFIERS_OF_ONE]


def _vector(weights: dict[int, float]) -> SparseVector:
    ordered = sorted(weights.items())
    return SparseVector(tuple(term for term, _ in ordered), tuple(weight for _, weight in ordered))
