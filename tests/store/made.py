"""Values to store, made up: small, whole and valid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from uuid import UUID, uuid4

from coatcheck.domain.canonical import sha256_of
from coatcheck.domain.entries import Entry
from coatcheck.domain.messages import PartKind, Role
from coatcheck.domain.outbox import OutboxKind
from coatcheck.domain.routes import Decision, Route
from coatcheck.domain.runs import Handoff, HandoffLine, Lease, Run, RunCounts, RunStatus
from coatcheck.domain.scopes import Scope
from coatcheck.domain.segments import Segment
from coatcheck.domain.sessions import Session, Visibility
from coatcheck.store import entries, outbox, runs, segments, sessions
from coatcheck.store.database import Database, WriteTransaction
from tests.tenants import EPOCH

RULES = "rules-1"
KEEP = Decision(Route.KEEP, "protected:tool-role", "tool-role")


def session_of(scope: Scope, name: str = "", visibility: str = "conversation", participants: Sequence[UUID] = ()) -> Session:
    kind = Visibility.parse(visibility)
    owner = scope.principal_id
    return Session(
        session_id=uuid4(),
        name=name or f"session {uuid4()}",
        owner_id=owner,
        visibility=kind,
        acl=kind.readers(owner, tuple(participants)),
        writers=kind.writers(owner, tuple(participants)),
        participants=tuple(participants),
        created_at=EPOCH,
    )


def segment_of(text: str) -> Segment:
    return Segment.of(text, RULES)


def handoff_of(text: str, lines: Sequence[HandoffLine] = (), overview_of: Sequence[str] = ()) -> Handoff:
    return Handoff(text, sha256_of(text), "excerpt", "what happened", tuple(overview_of), tuple(lines))


def run_of(session: Session, *, created_at: datetime = EPOCH, lease_s: float = 30, owner: str = "worker-a") -> Run:
    manifest_id = uuid4()
    return Run(
        manifest_id=manifest_id,
        session_id=session.session_id,
        principal_id=session.owner_id,
        parent_manifest_id=None,
        idempotency_key=f"key-{manifest_id}",
        request_digest="d" * 64,
        status=RunStatus.PERSISTED,
        lease=Lease(owner, 1, created_at + timedelta(seconds=lease_s)),
        window_format="openai-chat",
        max_handoff_chars=1_900,
        handoff=handoff_of(f"Manifest {manifest_id}"),
        counts=RunCounts(2, 2, 40, 10, "heuristic", True, {"user": 1, "assistant": 1}, 2, 2, 0, 0, 0, {"github-token": 1}),
        revisions={"rules": RULES},
        warnings=({"code": "stage-unavailable", "detail": "router: model not installed"},),
        timings_ms={"plan": 4},
        created_at=created_at,
    )


def entries_of(texts: Sequence[str], *, role: Role = "tool", kind: PartKind = PartKind.TOOL_RESULT) -> list[Entry]:
    """One message for each text."""
    return [
        Entry(
            ordinal=index,
            message_index=index,
            part_index=0,
            segment_index=0,
            role=role,
            kind=kind,
            encoding="string",
            decision=KEEP,
            segment_sha256=sha256_of(text),
            frame_before='{"role":"tool","content":',
            frame_after="}",
            chars=len(text),
        )
        for index, text in enumerate(texts)
    ]


async def store_session(database: Database, scope: Scope, **options: object) -> Session:
    """A session that stands."""
    session = session_of(scope, **options)  # type: ignore[arg-type]
    assert await database.write(scope, lambda tx: sessions.insert(tx, session))
    return session


async def store_run(
    database: Database,
    scope: Scope,
    session: Session,
    texts: Sequence[str],
    *,
    run: Run | None = None,
    window: Sequence[Entry] = (),
) -> Run:
    """A persisted run with its segments, entries and outbox row, as a compaction stores it."""
    made = run or run_of(session)

    async def work(tx: WriteTransaction) -> Run:
        distinct = {segment.sha256: segment for segment in map(segment_of, texts)}
        new = await segments.insert(tx, session.session_id, distinct.values())
        stored = replace(made, counts=replace(made.counts, already_stored=len(distinct) - new))
        assert await runs.insert(tx, stored)
        await entries.insert(tx, session.session_id, made.manifest_id, window or entries_of(texts))
        await outbox.enqueue(tx, uuid4(), OutboxKind.UPSERT, session.session_id, manifest_id=made.manifest_id)
        return stored

    return await database.write(scope, work)
