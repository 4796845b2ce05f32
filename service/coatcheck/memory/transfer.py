"""Take a session out and bring one in: NDJSON, one line a run, each a whole redacted window with its hashes.

An import trusts nothing: hashes are verified, every window is redacted and planned again, ids are kept where they are free.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from coatcheck.domain.canonical import JsonValue, parse, sha256_hex, to_bytes
from coatcheck.domain.errors import CoatcheckError, Erased, InvalidRequest, NoProgress, NotFound, TooLarge
from coatcheck.domain.runs import Run
from coatcheck.domain.sessions import Session, Visibility
from coatcheck.identity.context import RequestContext
from coatcheck.memory.access import session_by_id
from coatcheck.memory.collaborators import Collaborators
from coatcheck.memory.importing import Importer
from coatcheck.memory.reading import Reading
from coatcheck.memory.stored_window import window_times
from coatcheck.store import entries, runs
from coatcheck.store.database import ReadTransaction
from coatcheck_client.wire import ImportResponse, Moment, SessionName, WarningOut

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
VERSION = 1
PAGE = 20


class SessionLine(BaseModel):
    """The first line of a session's export."""

    model_config = ConfigDict(extra="forbid")

    type: Literal["session"] = "session"
    version: Literal[1] = 1
    session_id: UUID
    name: SessionName
    visibility: str
    created_at: Moment


class RunLine(BaseModel):
    """One run of the session that the last session line named."""

    model_config = ConfigDict(extra="forbid")

    type: Literal["run"] = "run"
    manifest_id: UUID
    parent_manifest_id: UUID | None
    format: Literal["openai-chat", "openai-responses", "anthropic"]
    created_at: Moment
    max_handoff_chars: int = Field(ge=600, le=4_000)
    times: list[Moment | None]
    system: Any = None
    messages: list[Any]
    window_sha256: Sha256
    handoff_sha256: Sha256
    segment_sha256s: list[Sha256]


class CutOffLine(BaseModel):
    """The last line of an export that is not whole. An import refuses it."""

    model_config = ConfigDict(extra="forbid")

    type: Literal["error"] = "error"
    problem: str
    detail: str


@dataclass(slots=True)
class _Tally:
    sessions: int = 0
    manifests: int = 0
    segments: int = 0
    skipped: int = 0
    warnings: list[WarningOut] = field(default_factory=list)

    def warn(self, code: str, detail: str) -> None:
        self.warnings.append(WarningOut(code=code, detail=detail))


class Transfer:
    """The use cases behind ``GET /v1/sessions/{id}/export`` and ``POST /v1/import``."""

    def __init__(self, parts: Collaborators, reading: Reading, importer: Importer) -> None:
        self._parts = parts
        self._reading = reading
        self._importer = importer

    async def export_session(self, context: RequestContext, session_id: UUID) -> AsyncIterator[bytes]:
        """The lines, oldest run first. Raises NotFound, Erased, Forbidden before the first line; an erasure meanwhile ends it."""
        context.require("export")
        session = await self._parts.database.read(context.scope, lambda tx: session_by_id(context, tx, session_id))
        return self._lines(context, session)

    async def import_lines(self, context: RequestContext, lines: AsyncIterator[bytes]) -> ImportResponse:
        """Each run is stored and projected as a compaction is; what stands already is skipped. Raises InvalidRequest."""
        context.require("import")
        await self._parts.limiter.require_embedding(context.tenant_scope)
        tally = _Tally()
        session: Session | None = None
        number = 0
        async for raw in lines:
            number += 1
            if len(raw) > 2 * self._parts.settings.max_body_bytes:
                raise TooLarge(f"Line {number} is larger than this service takes.")
            line = _read(raw, number)
            if isinstance(line, SessionLine):
                session = await self._importer.session(context, line.session_id, line.name, Visibility.parse(line.visibility))
                tally.sessions += 1
            elif session is None:
                raise InvalidRequest(f"Line {number} is a run, and no session stands before it.")
            else:
                await self._run(context, session, line, number, tally)
        if session is None:
            raise InvalidRequest("The export is empty: not even a session stands in it.")
        return ImportResponse(
            sessions=tally.sessions,
            manifests=tally.manifests,
            segments=tally.segments,
            skipped=tally.skipped,
            warnings=tally.warnings,
        )

    async def _lines(self, context: RequestContext, session: Session) -> AsyncIterator[bytes]:
        yield _line(
            SessionLine(
                session_id=session.session_id, name=session.name, visibility=str(session.visibility), created_at=session.created_at
            )
        )
        after: tuple[datetime, UUID] | None = None
        while True:
            try:
                page = await self._page(context, session.session_id, after)
            except (Erased, NotFound) as error:  # meanwhile: what came so far is not the session, and says so
                yield _line(CutOffLine(problem=error.slug, detail=f"The export ends here. {error.detail.rstrip('.')}."))
                return
            for run in page:
                line = await self._run_line(context, run.manifest_id)
                if line is not None:
                    yield _line(line)
            if not page:
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


def _read(raw: bytes, number: int) -> SessionLine | RunLine:
    value = parse(raw)
    if isinstance(value, dict) and value.get("type") == "error":
        raise InvalidRequest(f"Line {number} says that the export was cut off: it is not whole.")
    try:
        if isinstance(value, dict) and value.get("type") == "session":
            return SessionLine.model_validate(value)
        return RunLine.model_validate(value)
    except ValidationError as error:
        raise InvalidRequest(f"Line {number} is neither a session nor a run of version {VERSION}.") from error


def _line(model: BaseModel) -> bytes:
    plain = model.model_dump(mode="json", exclude={"system", "messages"})
    if isinstance(model, RunLine):
        plain |= {"system": model.system, "messages": model.messages}
    return json.dumps(plain, separators=(",", ":")).encode() + b"\n"


def _window_hash(system: JsonValue, messages: JsonValue) -> str:
    return sha256_hex(to_bytes([system, messages]))
