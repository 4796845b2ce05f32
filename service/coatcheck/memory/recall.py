"""Ask by meaning: two legs, one order, every hit verified against PostgreSQL before it leaves, each text once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress

from coatcheck.domain.canonical import decode, scalar_text
from coatcheck.domain.errors import CoatcheckError, NotFound, Overloaded, StageUnavailable
from coatcheck.domain.passages import IndexHit, RecallFilter
from coatcheck.domain.ports import RerankWorker
from coatcheck.identity.context import RequestContext
from coatcheck.identity.operations import Operation
from coatcheck.index.lexical import analyse_query
from coatcheck.memory.access import find_session
from coatcheck.memory.collaborators import Collaborators
from coatcheck.memory.folding import Folded, Verified, fold, unfolded
from coatcheck.memory.fusion import Candidate, SegmentKey, fuse
from coatcheck.memory.later_corrections import speaking_of
from coatcheck.memory.presenting import Presented, Presenter
from coatcheck.memory.rendering import fit, render
from coatcheck.memory.reranking import excerpt, order, suits
from coatcheck.memory.spread import Spread
from coatcheck.memory.supersession import Said, find_superseding
from coatcheck.store.candidates import find_candidates
from coatcheck_client.wire import Place, Ranks, RecallHit, RecallRequest, RecallResponse, SupersededBy, WarningOut

MIN_CANDIDATES = 100
"""Passages asked of each leg at least: a segment may be several, and some may not survive verification."""
RERANK_CANDIDATES = 20
BEYOND_LIMIT_S = 0.5
"""Ten times what it takes: a hint is not worth a recall that is late."""
MAX_PLACES = 10
"""Other places of a text that its hit names; the rest it counts."""
MAX_VERIFIED = 4
"""Times as many as are wanted are looked at, where one source has what stands first."""


class Recall:
    """The use case behind ``POST /v1/recall``."""

    def __init__(self, parts: Collaborators, presenter: Presenter) -> None:
        self._parts = parts
        self._presenter = presenter

    async def __call__(self, context: RequestContext, request: RecallRequest, deadline_s: float) -> RecallResponse:
        """Raises NotFound for a session that is unknown or foreign, IndexUnavailable when no leg can be asked.

        The caller ends it at its deadline; a reranker gets no more than half of what is left by then.
        """
        ends_at = time.monotonic() + deadline_s
        context.require(Operation.RECALL)
        await self._parts.limiter.require_embedding(context.tenant_scope)
        async with self._parts.working.of(context.tenant_id):
            return await self._recall(context, request, ends_at)

    async def _recall(self, context: RequestContext, request: RecallRequest, ends_at: float) -> RecallResponse:
        narrow = await self._narrow(context, request)
        query = scalar_text(request.query)
        settings = self._parts.settings
        legs, states = await self._ask(context, query, narrow, max(MIN_CANDIDATES, request.top_k * settings.recall_over_fetch))
        weights = {"dense": settings.fusion_dense_weight, "lexical": settings.fusion_lexical_weight}
        candidates = fuse(legs, weights, settings.fusion_rrf_k)
        verified = await self._verify(context, request, candidates)
        for position, one in enumerate(verified, 1):
            one.best.candidate.ranks["fused"] = position
        ordered, states["rerank"], warnings = await self._rerank(context, query, request, verified, ends_at)
        shown: Spread[Folded] = Spread(context.principal_id, request.top_k)
        shown.add((one.source(context.principal_id), one) for one in ordered)
        hits = await self._hits(context, request, shown.best(), verified, is_reranked=states["rerank"] == "used")
        if self._parts.state.building:
            detail = "The index is being filled anew; not every segment can be found."
            warnings.append(WarningOut(code="index-rebuilding", detail=detail))
        return RecallResponse(hits=hits, rendered=render(hits), legs=states, warnings=warnings)

    async def _narrow(self, context: RequestContext, request: RecallRequest) -> RecallFilter:
        session_ids = tuple(context.sessions) if context.sessions is not None else None
        if request.session is not None:
            name = request.session
            session = await self._parts.database.read(context.scope, lambda tx: find_session(context, tx, name))
            if session is None:
                raise NotFound
            session_ids = (session.session_id,)
        return RecallFilter(session_ids=session_ids, roles=tuple(request.roles or ()), since=request.since, until=request.until)

    async def _ask(
        self, context: RequestContext, query: str, narrow: RecallFilter, limit: int
    ) -> tuple[dict[str, list[IndexHit]], dict[str, str]]:
        settings, generation = self._parts.settings, self._parts.generation.number
        states: dict[str, str] = {}
        asked: dict[str, asyncio.Task[list[IndexHit]]] = {}
        if settings.fusion_lexical_weight > 0:
            asked["lexical"] = asyncio.create_task(
                self._parts.index.search_lexical(context.scope, generation, analyse_query(query), narrow, limit)
            )
        lanes = self._parts.lanes
        if settings.fusion_dense_weight > 0 and lanes is not None:
            asked["dense"] = asyncio.create_task(self._dense(context, query, narrow, limit))
        for leg, weight in (("dense", settings.fusion_dense_weight), ("lexical", settings.fusion_lexical_weight)):
            states[leg] = "used" if leg in asked else "off" if weight <= 0 else "unavailable: no embedding model"
        results = await asyncio.gather(*asked.values(), return_exceptions=True)
        legs: dict[str, list[IndexHit]] = {}
        failures: list[CoatcheckError] = []
        for leg, result in zip(asked, results, strict=True):
            if isinstance(result, CoatcheckError):
                states[leg] = f"unavailable: {result.slug}"
                failures.append(result)
            elif isinstance(result, BaseException):
                raise result
            else:
                legs[leg] = result
        if failures and not legs:
            raise failures[0]
        return legs, states

    async def _dense(self, context: RequestContext, query: str, narrow: RecallFilter, limit: int) -> list[IndexHit]:
        assert self._parts.lanes is not None
        vector = await self._parts.lanes.embed_query(context.tenant_scope, query)
        return await self._parts.index.search_dense(context.scope, self._parts.generation.number, vector, narrow, limit)

    async def _verify(self, context: RequestContext, request: RecallRequest, candidates: Sequence[Candidate]) -> list[Folded]:
        """The best candidates that PostgreSQL confirms, in their order; what it does not confirm is counted, never shown."""
        wanted, reduced = max(request.top_k, RERANK_CANDIDATES), request.representation == "reduced"
        confirmed: list[Verified] = []
        verified: Spread[Folded] = Spread(context.principal_id, wanted)
        for start in range(0, len(candidates), wanted):
            if verified.is_full or len(confirmed) >= MAX_VERIFIED * wanted:
                break
            confirmed += await self._confirmed(context, candidates[start : start + wanted], reduced)
            verified = Spread(context.principal_id, wanted)
            verified.add((one.source(context.principal_id), one) for one in fold(confirmed))
        return verified.best()

    async def _confirmed(self, context: RequestContext, candidates: Sequence[Candidate], reduced: bool) -> list[Verified]:
        keys = [candidate.key for candidate in candidates]
        found = await self._parts.database.read(
            context.scope, lambda tx: find_candidates(tx, keys, reduced=reduced), plan_once=True
        )
        confirmed: list[Verified] = []
        for candidate in candidates:
            row, entry = found.get(candidate.key, (None, None))
            if not context.reaches(candidate.session_id):
                self._parts.metrics.foreign_candidates.inc()
            elif row is None or entry is None or not row.is_whole:
                self._parts.metrics.stale_candidates.inc()
            else:
                confirmed.append(Verified(candidate, row, entry))
        return confirmed

    async def _rerank(
        self, context: RequestContext, query: str, request: RecallRequest, verified: list[Folded], ends_at: float
    ) -> tuple[list[Folded], str, list[WarningOut]]:
        """The hits in the reranker's order; where it gives none, in their own, with the reason and a warning."""
        reranker = self._parts.reranker
        if request.rerank == "off" or (request.rerank == "auto" and not self._pays(reranker, query, verified)):
            return verified, "off", []
        head = verified[:RERANK_CANDIDATES]
        try:
            if reranker is None:
                raise StageUnavailable(self._parts.absent.get("reranker", "no reranking model"))
            texts = [excerpt(query, scalar_text(decode(one.best.stored.segment.raw))) for one in head]
            limit_s = min(self._parts.settings.rerank_limit_s, (ends_at - time.monotonic()) / 2)
            scores = await reranker.score(context.tenant_scope, query, texts, limit_s)
        except (StageUnavailable, Overloaded) as error:
            detail = f"reranker: {error.detail} The hits keep their fused order."
            return verified, f"unavailable: {error.slug}", [WarningOut(code=StageUnavailable.slug, detail=detail)]
        ordered = order(scores)
        for rank, position in enumerate(ordered, 1):
            head[position].best.candidate.ranks["rerank"] = rank
        return [head[position] for position in ordered] + verified[RERANK_CANDIDATES:], "used", []

    def _pays(self, reranker: RerankWorker | None, query: str, verified: Sequence[Folded]) -> bool:
        return reranker is not None and len(verified) > 1 and suits(query, english_only=reranker.english_only)

    async def _hits(
        self,
        context: RequestContext,
        request: RecallRequest,
        chosen: Sequence[Folded],
        verified: Sequence[Folded],
        *,
        is_reranked: bool,
    ) -> list[RecallHit]:
        wanted = request.representation
        presented = [
            await self._presenter.present(context, one.best.stored, one.best.candidate.session_id, wanted) for one in chosen
        ]
        said = [await self._said(context, one.best) for one in chosen]
        beyond = await self._beyond(context, request, said, unfolded(verified)) if is_reranked else []
        superseding = find_superseding(said, [await self._said(context, one) for one in unfolded(verified)], beyond)
        hits = [self._hit(one, shown, superseding) for one, shown in zip(chosen, presented, strict=True)]
        return fit(hits, request.max_chars)

    async def _beyond(
        self, context: RequestContext, request: RecallRequest, said: Sequence[Said], verified: Sequence[Verified]
    ) -> list[Said]:
        """What speaks of the same as the hits and was not found. Some milliseconds; the hits do not wait for it much longer."""
        known = {one.candidate.key for one in verified}
        with suppress(TimeoutError, CoatcheckError):
            async with asyncio.timeout(BEYOND_LIMIT_S):
                found = await speaking_of(self._parts, context.scope, said, known, request.until)
                more = await self._confirmed(context, fuse({"lexical": found}, {"lexical": 1.0}, 1), reduced=False) if found else []
                return [await self._said(context, one) for one in more]
        return []

    async def _said(self, context: RequestContext, one: Verified) -> Said:
        shown = await self._presenter.present(context, one.stored, one.candidate.session_id)
        return Said(
            session_id=one.candidate.session_id,
            sha256=one.candidate.sha256,
            manifest_id=one.entry.manifest_id,
            ordinal=one.entry.ordinal,
            role=one.entry.role,
            at=one.entry.occurred_at or one.stored.stored_at,
            text=shown.text,
        )

    def _hit(self, found: Folded, shown: Presented, superseding: dict[SegmentKey, SupersededBy]) -> RecallHit:
        one, *others = found.places
        ranks = one.candidate.ranks
        return RecallHit(
            sha256=shown.sha256,
            text=shown.text,
            truncated=False,
            representation=shown.representation,
            role=one.entry.role,
            kind=one.entry.kind.value,
            session_id=one.candidate.session_id,
            manifest_id=one.entry.manifest_id,
            ordinal=one.entry.ordinal,
            occurred_at=one.entry.occurred_at,
            stored_at=one.stored.stored_at,
            ranks=Ranks(
                dense=ranks.get("dense"), lexical=ranks.get("lexical"), fused=ranks.get("fused"), rerank=ranks.get("rerank")
            ),
            superseded_by=superseding.get(one.candidate.key),
            places=len(found.places),
            also_in=[_place(other) for other in others[:MAX_PLACES]],
        )


def _place(one: Verified) -> Place:
    return Place(
        session_id=one.candidate.session_id,
        manifest_id=one.entry.manifest_id,
        ordinal=one.entry.ordinal,
        occurred_at=one.entry.occurred_at,
    )
