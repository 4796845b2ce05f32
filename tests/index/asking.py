"""Asking an index in tests."""

from __future__ import annotations

from coatcheck.domain.passages import RecallFilter, StoredPoint
from coatcheck.domain.ports import VectorIndex
from coatcheck.domain.scopes import Scope
from coatcheck.index.lexical import analyse_query
from tests.index.making import hashes

EVERYTHING = RecallFilter()


async def lexical(
    index: VectorIndex, scope: Scope, query: str, narrow: RecallFilter = EVERYTHING, generation: int = 1
) -> list[str]:
    """Hashes of the lexical leg's hits, best first."""
    return hashes(await index.search_lexical(scope, generation, analyse_query(query), narrow, 10))


async def everything(index: VectorIndex, page_size: int = 1_000) -> list[StoredPoint]:
    return [stored async for page in index.scroll(page_size=page_size) for stored in page]
