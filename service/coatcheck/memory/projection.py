"""From rows to points: what a segment looks like in the index, written in place and recorded.

A projection is current while its content version is equal: the version covers the embedded text and everything of the context
that went into the point. So a readiness check compares versions, never the mere existence of a row.

The stage ``project`` moves with each step: what was read, each point that was built, what was written. While the embedder or a core
is waited for it is aside, since both are watched where they work: a machine may be slow for as long as it likes.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from uuid import UUID

from coatcheck.domain.canonical import decode, scalar_text, sha256_of
from coatcheck.domain.errors import Erased
from coatcheck.domain.outbox import OutboxItem
from coatcheck.domain.passages import IndexPoint, PassageSpan, point_id
from coatcheck.domain.scopes import TenantScope
from coatcheck.domain.sessions import Session
from coatcheck.index.lexical import analyse_document
from coatcheck.index.passages import dense_worthy, split
from coatcheck.memory.collaborators import Collaborators
from coatcheck.memory.context import lexical_context
from coatcheck.memory.recording import Written, owe, record
from coatcheck.models.batching import batches_of
from coatcheck.ops.faults import reach_async
from coatcheck.ops.progress import Piece
from coatcheck.store import projections, segment_contexts, segments, sessions
from coatcheck.store.database import WorkerTransaction
from coatcheck.store.projections import ProjectionRow
from coatcheck.store.segment_contexts import SegmentContext
from coatcheck.store.segments import StoredSegment

STAGE = "project"
READ_SEGMENTS = 64
"""Segments read at a time: bounds memory for a window of thousands."""
SLICE_CHARS = 64_000
"""Of their text, what is embedded, built, written and recorded at a time: the points of a slice take many times its text, and the
longest segments are hundreds of times the usual ones."""


@dataclass(frozen=True, slots=True)
class _Source:
    sha256: str
    stored: StoredSegment
    context: SegmentContext
    version: str
    recorded: ProjectionRow | None
    """The projection that stands, which is not current."""


class Projector:
    """Writes the points of segments that are not current, and records what it wrote."""

    def __init__(self, parts: Collaborators) -> None:
        self._parts = parts

    async def project(
        self,
        scope: TenantScope,
        session_id: UUID,
        sha256s: Sequence[str],
        *,
        still_ours: Callable[[], None] = lambda: None,
        item: OutboxItem | None = None,
    ) -> None:
        """Returns when every point has reached the index and is recorded. A segment whose projection is current is left as it is.

        Each slice is recorded once it has reached the index, so that another attempt goes on where this one ended. ``still_ours``
        is asked before each write, and raises when the work has become another owner's. Raises Erased when the session went,
        IndexUnavailable, StageUnavailable, Overloaded, StoreUnavailable; writing again after any of them is safe.
        """
        with self._parts.progress.stage(STAGE) as piece:
            for start in range(0, len(sha256s), READ_SEGMENTS):
                async with self._core(scope, piece):
                    session, outstanding = await self._outstanding(scope, session_id, sha256s[start : start + READ_SEGMENTS])
                piece.advance()
                for sources in _slices(outstanding):
                    points = await self._points(scope, session, sources, piece)
                    await reach_async("before-upsert")
                    async with self._core(scope, piece):
                        still_ours()
                        self._parts.disk.require_room()
                        await self._parts.index.upsert(scope, [point for group in points for point in group])
                        piece.advance()
                        await self._parts.index.delete_points(scope, _left_over(scope, sources, points))
                    await reach_async("after-upsert")
                    written = [self._written(session, source, len(group)) for source, group in zip(sources, points, strict=True)]
                    with piece.aside():  # each statement has a limit of its own
                        await self._record(scope, session, written, item)

    async def _record(self, scope: TenantScope, session: Session, written: Sequence[Written], item: OutboxItem | None) -> None:
        """What was erased or redacted while its points were being written leaves the index again, whoever holds the lease then."""
        async with self._parts.working.of(scope.tenant_id):
            held = await self._parts.database.work(scope, lambda tx: record(tx, self._parts.new_id, session, written, item))
        if held is None:
            await self._parts.index.delete_session(scope, session.session_id)
            raise Erased
        await self.remove(scope, session.session_id, [one.row for one in written if one.row.segment_sha256 not in held])

    @asynccontextmanager
    async def _core(self, scope: TenantScope, piece: Piece) -> AsyncIterator[None]:
        """A slot to work in; who waits for its turn stands still no more than those who work before it."""
        async with AsyncExitStack() as held:
            with piece.aside():
                await held.enter_async_context(self._parts.working.of(scope.tenant_id))
            yield

    async def remove(self, scope: TenantScope, session_id: UUID, rows: Sequence[ProjectionRow]) -> None:
        """As ``remove_points``, of these projections."""
        ids = [
            (row.segment_sha256, point_id(scope.tenant_id, session_id, row.segment_sha256, number, row.generation))
            for row in rows
            for number in range(row.passages)
        ]
        await self.remove_points(scope, session_id, ids)

    async def remove_points(self, scope: TenantScope, session_id: UUID, points: Sequence[tuple[str, UUID]]) -> None:
        """Takes points (segment, id) out of the index. What a living run came to hold meanwhile is owed again."""
        if not points:
            return
        await self._parts.index.delete_points(scope, [point for _, point in points])

        async def work(tx: WorkerTransaction) -> None:
            await sessions.lock(tx, session_id)
            await owe(tx, self._parts.new_id, session_id, [sha for sha, _ in points])

        await self._parts.database.work(scope, work)

    async def _outstanding(self, scope: TenantScope, session_id: UUID, sha256s: Sequence[str]) -> tuple[Session, list[_Source]]:
        """The session as it stands, and what is not current of these segments. Raises Erased."""
        generation = self._parts.generation.number

        async def work(tx: WorkerTransaction) -> tuple[Session, list[_Source]]:
            session = await sessions.find_any(tx, session_id)
            if session is None or session.erased_at is not None:
                raise Erased
            # The projections first: who records another after this was read is noticed, whatever contexts it saw.
            current = await projections.of_segments(tx, session_id, sha256s, generation)
            stored = await segments.find(tx, session_id, sha256s)
            contexts = await segment_contexts.contexts(tx, session_id, sha256s)
            sources = [
                _Source(sha, stored[sha], contexts[sha], _version(stored[sha], contexts[sha]), current.get(sha))
                for sha in dict.fromkeys(sha256s)
                if sha in stored and stored[sha].is_whole and sha in contexts
            ]
            return session, [s for s in sources if s.recorded is None or s.recorded.content_version != s.version]

        return await self._parts.database.work(scope, work)

    async def _points(
        self, scope: TenantScope, session: Session, sources: Sequence[_Source], piece: Piece
    ) -> list[list[IndexPoint]]:
        texts = [scalar_text(_embedded_text(source.stored)) for source in sources]
        with piece.aside():
            spans = await self._spans(scope, texts)
            passages = [text[span.start : span.end] for text, group in zip(texts, spans, strict=True) for span in group]
            vectors = iter(await self._vectors(scope, passages))

        def point(source: _Source, text: str, span: PassageSpan) -> IndexPoint:
            built = self._point(scope, session, source, text[span.start : span.end], span, next(vectors))
            piece.advance()
            return built

        def build() -> list[list[IndexPoint]]:
            return [
                [point(source, text, span) for span in group] for source, text, group in zip(sources, texts, spans, strict=True)
            ]

        # The lexical analysis of a slice takes a tenth of a second: beside the event loop.
        async with self._core(scope, piece):
            return await asyncio.to_thread(build)

    async def _spans(self, scope: TenantScope, texts: Sequence[str]) -> list[list[PassageSpan]]:
        lanes = self._parts.lanes
        worthy = [lanes is not None and dense_worthy(text) for text in texts]
        read = [text for text, wanted in zip(texts, worthy, strict=True) if wanted]
        offsets = iter(await lanes.token_offsets(scope, read) if lanes is not None and read else [])
        return [
            split(text, next(offsets), lanes.input_tokens) if wanted and lanes is not None else [PassageSpan(0, 0, len(text))]
            for text, wanted in zip(texts, worthy, strict=True)
        ]

    async def _vectors(self, scope: TenantScope, pieces: Sequence[str]) -> list[list[float] | None]:
        lanes = self._parts.lanes
        wanted = [position for position, piece in enumerate(pieces) if lanes is not None and dense_worthy(piece)]
        vectors: list[list[float] | None] = [None] * len(pieces)
        if lanes is not None and wanted:
            found = await lanes.embed_passages(scope, [pieces[position] for position in wanted])
            for position, vector in zip(wanted, found, strict=True):
                vectors[position] = vector
        return vectors

    def _point(
        self, scope: TenantScope, session: Session, source: _Source, text: str, span: PassageSpan, dense: list[float] | None
    ) -> IndexPoint:
        context = source.context
        reduction = source.stored.reduction
        return IndexPoint(
            tenant_id=scope.tenant_id,
            session_id=session.session_id,
            exact_sha256=source.sha256,
            reduced_sha256=reduction.sha256 if reduction else None,
            acl=session.acl,
            kinds=context.kinds,
            roles=context.roles,
            first_at=context.first_at,
            last_at=context.last_at,
            span=span,
            generation=self._parts.generation.number,
            content_version=source.version,
            dense=dense,
            lexical=analyse_document(text, lexical_context(context)),
        )

    def _written(self, session: Session, source: _Source, passages: int) -> Written:
        row = ProjectionRow(
            session_id=session.session_id,
            segment_sha256=source.sha256,
            generation=self._parts.generation.number,
            passages=passages,
            content_version=source.version,
            context_manifest_id=source.context.manifest_id,
            context_ordinal=source.context.ordinal,
        )
        return Written(row, source.recorded.content_version if source.recorded is not None else None)


def _slices(sources: Sequence[_Source]) -> list[list[_Source]]:
    texts = [_embedded_text(source.stored) for source in sources]
    cut = batches_of(texts, range(len(texts)), lambda: SLICE_CHARS, READ_SEGMENTS)
    return [[sources[position] for position in positions] for positions in cut]


def _left_over(scope: TenantScope, sources: Sequence[_Source], points: Sequence[Sequence[IndexPoint]]) -> list[UUID]:
    """The last points of segments that were more passages before."""
    return [
        point_id(scope.tenant_id, row.session_id, row.segment_sha256, number, row.generation)
        for source, group in zip(sources, points, strict=True)
        if (row := source.recorded) is not None
        for number in range(len(group), row.passages)
    ]


def _embedded_text(stored: StoredSegment) -> str:
    return decode(stored.reduction.raw if stored.reduction else stored.segment.raw)


def _version(stored: StoredSegment, context: SegmentContext) -> str:
    reduced = stored.reduction.sha256 if stored.reduction else ""
    seen = (
        stored.segment.sha256, reduced, str(context.manifest_id), str(context.ordinal), context.first_at.isoformat(),
        context.last_at.isoformat(), ",".join(context.roles), ",".join(context.kinds), sha256_of(lexical_context(context)),
    )  # fmt: skip
    return hashlib.sha256("\0".join(seen).encode()).hexdigest()[:16]
