"""Projections: which segments the index has, in which generation, and of what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from coatcheck.store import bulk, tables
from coatcheck.store.database import WorkerTransaction

_EACH = (
    "session_id", "segment_sha256", "generation", "passages", "content_version", "context_manifest_id", "context_ordinal",
)  # fmt: skip
_COLUMNS = ", ".join(_EACH)

# A segment that was erased meanwhile has no projection to record.
_RECORD = sa.text(f"""
    INSERT INTO projections (tenant_id, {_COLUMNS})
    SELECT g.tenant_id, {", ".join(f"row.{name}" for name in _EACH)}
      FROM {bulk.unnested(tables.projections, _EACH)}
      JOIN segments g ON g.tenant_id = :tenant AND g.session_id = row.session_id AND g.sha256 = row.segment_sha256
     ORDER BY row.session_id, row.segment_sha256, row.generation
    ON CONFLICT (tenant_id, session_id, segment_sha256, generation)
    DO UPDATE SET passages = excluded.passages, content_version = excluded.content_version,
                  context_manifest_id = excluded.context_manifest_id, context_ordinal = excluded.context_ordinal,
                  projected_at = now()
""")

_OF_SEGMENTS = sa.text(f"""
    SELECT {_COLUMNS} FROM projections
     WHERE tenant_id = :tenant AND session_id = :session AND segment_sha256 = ANY (:shas) AND generation = :generation
""")

_ALL_OF = sa.text(f"""
    SELECT {_COLUMNS} FROM projections
     WHERE tenant_id = :tenant AND session_id = :session AND segment_sha256 = ANY (:shas)
     ORDER BY segment_sha256, generation
""")

_OF_SESSION = sa.text(f"SELECT {_COLUMNS} FROM projections WHERE tenant_id = :tenant AND session_id = :session")

_WITH_CONTEXT_OF = sa.text("""
    SELECT DISTINCT segment_sha256 FROM projections
     WHERE tenant_id = :tenant AND session_id = :session AND context_manifest_id = :manifest ORDER BY 1
""")

_PASSAGES_OF = sa.text("""
    SELECT coalesce(sum(passages), 0) FROM projections
     WHERE tenant_id = :tenant AND generation = :generation
       AND session_id = (SELECT session_id FROM runs WHERE tenant_id = :tenant AND manifest_id = :manifest)
       AND segment_sha256 = ANY (ARRAY(
           SELECT segment_sha256 FROM entries WHERE tenant_id = :tenant AND manifest_id = :manifest))
""")

_PASSAGES_BY_KEY = sa.text("""
    SELECT p.session_id, p.segment_sha256, p.generation, p.passages
      FROM unnest(CAST(:session_ids AS uuid[]), CAST(:shas AS text[]), CAST(:generations AS integer[]))
        AS asked(session_id, sha256, generation)
      JOIN projections p ON p.tenant_id = :tenant AND p.session_id = asked.session_id
                        AND p.segment_sha256 = asked.sha256 AND p.generation = asked.generation
""")

_SESSIONS_SINCE = sa.text("""
    SELECT session_id, sum(passages) AS passages FROM projections
     WHERE tenant_id = :tenant AND generation = :generation
     GROUP BY session_id
    HAVING CAST(:since AS timestamptz) IS NULL OR max(projected_at) >= :since
     ORDER BY session_id
""")

_DELETE = sa.text("""
    DELETE FROM projections WHERE tenant_id = :tenant AND session_id = :session AND segment_sha256 = ANY (:shas)
""")

_DELETE_BEFORE = sa.text("DELETE FROM projections WHERE tenant_id = :tenant AND generation < :generation")

_DELETE_SESSION = sa.text("DELETE FROM projections WHERE tenant_id = :tenant AND session_id = :session")


ProjectionKey = tuple[UUID, str, int]
"""Session, segment and generation."""


@dataclass(frozen=True, slots=True)
class ProjectionRow:
    """One segment in one generation of the index: how many points, and which text and context they were made from."""

    session_id: UUID
    segment_sha256: str
    generation: int
    passages: int
    content_version: str
    context_manifest_id: UUID
    context_ordinal: int


async def record(tx: WorkerTransaction, rows: Sequence[ProjectionRow]) -> int:
    """Records what the index has now, in the place of what it had. Returns how many segments are still there."""
    if not rows:
        return 0
    columns = {name: [getattr(row, name) for row in rows] for name in _EACH}
    return (await tx.connection.execute(_RECORD, {"tenant": tx.scope.tenant_id, **columns})).rowcount


async def of_segments(tx: WorkerTransaction, session_id: UUID, shas: Sequence[str], generation: int) -> dict[str, ProjectionRow]:
    """The projections of these segments in one generation, by hash."""
    parameters = {"tenant": tx.scope.tenant_id, "session": session_id, "shas": list(shas), "generation": generation}
    return {row.segment_sha256: _row(row) for row in await tx.connection.execute(_OF_SEGMENTS, parameters)}


async def all_of(tx: WorkerTransaction, session_id: UUID, shas: Sequence[str]) -> list[ProjectionRow]:
    """The projections of these segments in every generation."""
    parameters = {"tenant": tx.scope.tenant_id, "session": session_id, "shas": list(shas)}
    return [_row(row) for row in await tx.connection.execute(_ALL_OF, parameters)]


async def of_session(tx: WorkerTransaction, session_id: UUID) -> list[ProjectionRow]:
    """Every projection of a session, in every generation."""
    rows = await tx.connection.execute(_OF_SESSION, {"tenant": tx.scope.tenant_id, "session": session_id})
    return [_row(row) for row in rows]


async def with_context_of(tx: WorkerTransaction, session_id: UUID, manifest_id: UUID) -> list[str]:
    """The segments whose points carry a context out of this run."""
    parameters = {"tenant": tx.scope.tenant_id, "session": session_id, "manifest": manifest_id}
    return list(await tx.connection.scalars(_WITH_CONTEXT_OF, parameters))


async def passages_of(tx: WorkerTransaction, manifest_id: UUID, generation: int) -> int:
    """How many points stand for a run's segments."""
    parameters = {"tenant": tx.scope.tenant_id, "manifest": manifest_id, "generation": generation}
    return int(await tx.connection.scalar(_PASSAGES_OF, parameters))


async def passages_by_key(tx: WorkerTransaction, keys: Sequence[ProjectionKey]) -> dict[ProjectionKey, int]:
    """How many points stand for each (session, segment, generation) that is projected."""
    distinct = list(dict.fromkeys(keys))
    parameters = {
        "tenant": tx.scope.tenant_id,
        "session_ids": [session_id for session_id, _, _ in distinct],
        "shas": [sha for _, sha, _ in distinct],
        "generations": [generation for _, _, generation in distinct],
    }
    rows = await tx.connection.execute(_PASSAGES_BY_KEY, parameters)
    return {(row.session_id, row.segment_sha256, row.generation): row.passages for row in rows}


async def sessions_since(tx: WorkerTransaction, generation: int, since: datetime | None) -> dict[UUID, int]:
    """Sessions with a projection recorded since then (or ever), each with all its points."""
    parameters = {"tenant": tx.scope.tenant_id, "generation": generation, "since": since}
    return {row.session_id: row.passages for row in await tx.connection.execute(_SESSIONS_SINCE, parameters)}


async def delete(tx: WorkerTransaction, session_id: UUID, shas: Sequence[str]) -> None:
    """Forgets that these segments were projected, in every generation."""
    await tx.connection.execute(_DELETE, {"tenant": tx.scope.tenant_id, "session": session_id, "shas": list(shas)})


async def delete_before(tx: WorkerTransaction, generation: int) -> None:
    """Forgets every projection of the generations before this one."""
    await tx.connection.execute(_DELETE_BEFORE, {"tenant": tx.scope.tenant_id, "generation": generation})


async def delete_session(tx: WorkerTransaction, session_id: UUID) -> None:
    """Forgets every projection of a session."""
    await tx.connection.execute(_DELETE_SESSION, {"tenant": tx.scope.tenant_id, "session": session_id})


def _row(row: sa.Row[Any]) -> ProjectionRow:
    return ProjectionRow(**{name: getattr(row, name) for name in _EACH})
