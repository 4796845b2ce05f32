"""Take a session out and bring one in: NDJSON, one line a run, each a whole redacted window with its hashes.

An import trusts nothing: hashes are verified, every window is redacted and planned again, ids are kept where they are free.
What has no end mark is refused at its end: the runs that came stand, and the whole export, later, brings the rest.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from coatcheck.domain.canonical import JsonValue, sha256_hex, to_bytes
from coatcheck.domain.errors import CoatcheckError, Erased, InvalidRequest, NoProgress, NotFound, TooLarge
from coatcheck.domain.runs import Run
from coatcheck.domain.sessions import Session, Visibility
from coatcheck.identity.context import RequestContext
from coatcheck.identity.operations import Operation
from coatcheck.memory.access import session_by_id
from coatcheck.memory.collaborators import Collaborators
from coatcheck.memory.export_lines import VERSION, CutOffLine, EndLine, Lines, RunLine, SessionLine, read, write
from coatcheck.memory.importing import Importer
from coatcheck.memory.reading import Reading
from coatcheck.memory.stored_window import window_times
from coatcheck.store import audit, entries, runs
from coatcheck.store.database import ReadTransaction
from coatcheck_client.wire import ImportResponse, WarningOut

PAGE = 20


@dataclass(slots=True)
class _Tally:
    sessions: int = 0
    manifests: int = 0
    segments: int = 0
    skipped: int = 0
    warnings: list[WarningOut] = field(default_factory=list)

    def warn(self, code: str, detail: str) -> None:
        self.warnings.append(WarningOut(code=code, detail=detail))


@dataclass(slots=True)
class _Section:
    """A session of an import and what came of it so far. ``has_end``: its version says where it ends."""

    session: Session
    has_end: bool
    lines: Lines = field(default_factory=Lines)
    is_over: bool = False
    is_recorded: bool = False
    """In the audit, which it is before anything of it is stored."""

    def close(self, line: EndLine, number: int) -> None:
        if self.lines.end() != line:
            raise InvalidRequest(
                f"Line {number}: this end was written for other lines than came before it: some are missing, or were changed."
            )
        self.is_over = True


class Transfer:
    """The use cases behind ``GET /v1/sessions/{id}/export`` and ``POST /v1/import``."""

    def __init__(self, parts: Collaborators, reading: Reading, importer: Importer) -> None:
        self._parts = parts
        self._reading = reading
        self._importer = importer

    async def export_session(self, context: RequestContext, session_id: UUID) -> AsyncIterator[bytes]:
        """The lines, oldest run first. Raises NotFound, Erased, Forbidden before the first line; an erasure meanwhile ends it."""
        context.require(Operation.EXPORT)
        session = await self._parts.database.read(context.scope, lambda tx: session_by_id(context, tx, session_id))
        await self._record(context, "session.export", session_id)
        return self._lines(context, session)

    async def import_lines(self, context: RequestContext, lines: AsyncIterator[bytes]) -> ImportResponse:
        """Each run is stored and projected as a compaction is; what stands already is skipped. Raises InvalidRequest."""
        context.require(Operation.IMPORT)
        await self._parts.limiter.require_embedding(context.tenant_scope)
        tally = _Tally()
        section: _Section | None = None
        number = 0
        async for raw in lines:
            number += 1
            if len(raw) > 2 * self._parts.settings.max_body_bytes:
                raise TooLarge(
                    f"Line {number} has {len(raw):,} bytes, and {2 * self._parts.settings.max_body_bytes:,} are taken "
                    "(twice COATCHECK_MAX_BODY_BYTES)."
                )
            line = read(raw, number)
            if isinstance(line, SessionLine):
                _require_whole(section, number - 1)
                section = _Section(await self._session(context, line), has_end=line.version == VERSION)
                tally.sessions += 1
            elif section is None or section.is_over:
                raise InvalidRequest(f"Line {number} is a run or an end, and no session stands before it.")
            elif isinstance(line, EndLine):
                section.close(line, number)
                continue
            else:
                if not section.is_recorded:
                    await self._record(context, "session.import", section.session.session_id)
                    section.is_recorded = True
                await self._run(context, section.session, line, number, tally)
            section.lines.add(raw, is_run=isinstance(line, RunLine))
        if section is None:
            raise InvalidRequest("The export is empty: not even a session stands in it.")
        _require_whole(section, number)
        if not section.has_end:
            tally.warn("no-end-mark", "This export is of version 1, which had no end mark: nothing shows whether it is whole.")
        return ImportResponse(
            sessions=tally.sessions,
            manifests=tally.manifests,
            segments=tally.segments,
            skipped=tally.skipped,
            warnings=tally.warnings,
        )

    async def _record(self, context: RequestContext, action: str, session_id: UUID) -> None:
        await self._parts.database.work(
            context.tenant_scope,
            lambda tx: audit.record(tx, self._parts.new_id(), context.actor, action, "session", str(session_id)),
        )

    async def _session(self, context: RequestContext, line: SessionLine) -> Session:
        return await self._importer.session(context, line.session_id, line.name, Visibility.parse(line.visibility))

    async def _lines(self, context: RequestContext, session: Session) -> AsyncIterator[bytes]:
        lines = Lines()
        head = SessionLine(
            session_id=session.session_id, name=session.name, visibility=str(session.visibility), created_at=session.created_at
        )
        lines.add(raw := write(head), is_run=False)
        yield raw + b"\n"
        after: tuple[datetime, UUID] | None = None
        while True:
            try:
                page = await self._page(context, session.session_id, after)
            except (Erased, NotFound) as error:  # meanwhile: what came so far is not the session, and says so
                yield write(CutOffLine(problem=error.slug, detail=f"The export ends here. {error.detail.rstrip('.')}.")) + b"\n"
                return
            for run in page:
                line = await self._run_line(context, run.manifest_id)
                if line is not None:
                    lines.add(raw := write(line), is_run=True)
                    yield raw + b"\n"
            if not page:
                yield write(lines.end()) + b"\n"
                return
            after = (page[-1].created_at, page[-1].manifest_id)

    async def _page(self, context: RequestContext, session_id: UUID, after: tuple[datetime, UUID] | None) -> list[Run]:
        """The next runs. Raises Erased, NotFound once the session is not the caller's to read any more."""

        async def work(tx: ReadTransaction) -> list[Run]:
            await session_by_id(context, tx, session_id)
            return await runs.page(tx, session_id, after, PAGE)

        return await self._parts.database.read(context.scope, work)

    async def _run_line(self, context: RequestContext, manifest_id: UUID) -> RunLine | None:
        try:
            window = await self._reading.window(context, manifest_id)
        except (Erased, NotFound):  # erased meanwhile, or no longer the caller's to read
            return None

        async def work(tx: ReadTransaction) -> RunLine | None:
            run = await runs.find(tx, manifest_id)
            if run is None:
                return None
            rows = await entries.all(tx, manifest_id)
            return RunLine(
                manifest_id=run.manifest_id,
                parent_manifest_id=run.parent_manifest_id,
                format=run.window_format,
                created_at=run.created_at,
                max_handoff_chars=run.max_handoff_chars,
                times=window_times(rows),
                system=window.system,
                messages=window.messages,
                window_sha256=_window_hash(window.system, window.messages),
                handoff_sha256=run.handoff.sha256,
                segment_sha256s=list(dict.fromkeys(entry.segment_sha256 for entry in rows if entry.segment_sha256)),
            )

        return await self._parts.database.read(context.scope, work)

    async def _run(self, context: RequestContext, session: Session, line: RunLine, number: int, tally: _Tally) -> None:
        if _window_hash(line.system, line.messages) != line.window_sha256:
            raise InvalidRequest(f"Line {number}: the window does not have the SHA-256 that stands beside it.")
        try:
            run = await self._importer.run(context, session, line)
        except NoProgress:
            tally.warn("no-progress", f"Line {number}: its handoff would be longer than its window.")
            tally.skipped += 1
            return
        except CoatcheckError as error:
            if error.retryable:
                raise
            raise InvalidRequest(f"Line {number}: {error.detail}") from error
        if run is None:
            tally.skipped += 1
            return
        tally.manifests += 1
        tally.segments += run.counts.segments
        if run.missing_segments:
            tally.warn("redacted-again", f"Line {number}: {run.missing_segments} segments changed under today's rules.")


def _window_hash(system: JsonValue, messages: JsonValue) -> str:
    return sha256_hex(to_bytes([system, messages]))


def _require_whole(section: _Section | None, number: int) -> None:
    if section is not None and section.has_end and not section.is_over:
        raise InvalidRequest(
            f"The export was cut off: no end mark follows line {number}. "
            "What came before it is stored; the whole export brings the rest."
        )
