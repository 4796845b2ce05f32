"""The reranker behind its worker: scores within a limit, or says why there are none."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from uuid import UUID

from coatcheck.domain.errors import Overloaded, StageUnavailable
from coatcheck.domain.ports import Reranker
from coatcheck.domain.scopes import TenantScope
from coatcheck.models.worker import CLOSE_LIMIT_S, BatchLimits, ModelWorker
from coatcheck.ops.progress import ProgressBoard

STAGE = "rerank"
CAPACITY = 16
"""At a third of a second each, more could not be answered within a recall's patience."""
LIMITS = BatchLimits(inputs=10, size=32_000)
"""Half of a recall's candidates: enough for the threads of the model itself, and the rest of a late call is left."""

WARM_LIMIT_S = 60.0
NOBODY = UUID(int=0)
"""Whose turn the warming is."""

Pair = tuple[str, str]
"""A query and a passage."""


class RerankWorker:
    """RerankWorker port over a Reranker."""

    def __init__(
        self,
        reranker: Reranker,
        progress: ProgressBoard,
        *,
        capacity: int = CAPACITY,
        worked: Callable[[UUID, float], None] = lambda tenant_id, seconds: None,
    ) -> None:
        """``worked`` is told, by the worker's thread, for which tenant the model worked how many seconds."""
        self.revision = reranker.revision
        self.english_only = reranker.english_only
        self._reranker = reranker
        self._worker: ModelWorker[Pair, float] = ModelWorker(
            STAGE,
            self._score,
            progress,
            capacity=capacity,
            limits=LIMITS,
            size_of=lambda pair: len(pair[1]),
            sound=_is_score,
            worked=worked,
        )

    async def score(self, scope: TenantScope, query: str, passages: Sequence[str], limit_s: float) -> list[float]:
        """Raises StageUnavailable, Overloaded."""
        return await self._worker.run(scope.tenant_id, [(query, passage) for passage in passages], limit_s)

    async def warm(self) -> None:
        """Loads the model before a recall waits for it. One that cannot be loaded says so to the recall."""
        with suppress(StageUnavailable, Overloaded):
            await self._worker.run(NOBODY, [("warm", "warm")], WARM_LIMIT_S)

    async def close(self, limit_s: float = CLOSE_LIMIT_S) -> None:
        await asyncio.to_thread(self._worker.close, limit_s)

    def _score(self, pairs: Sequence[Pair]) -> Sequence[float]:
        """A batch is of one job, and so of one query."""
        return self._reranker.score(pairs[0][0], [passage for _, passage in pairs])


def _is_score(score: object) -> bool:
    return isinstance(score, float) and math.isfinite(score)
