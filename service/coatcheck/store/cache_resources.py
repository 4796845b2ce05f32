"""What is kept here and an answer may rest on: sessions and manifests, with a revision that changes whenever they do."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from uuid import UUID

import sqlalchemy as sa

from coatcheck.store.database import ReadTransaction

_SESSIONS = sa.text("""
    SELECT s.session_id, s.acl, count(r.manifest_id) AS runs,
           (array_agg(r.manifest_id ORDER BY r.created_at DESC, r.manifest_id DESC))[1] AS newest
      FROM sessions s LEFT JOIN runs r ON r.tenant_id = s.tenant_id AND r.session_id = s.session_id
     WHERE s.tenant_id = :tenant AND s.session_id = ANY (:ids) AND s.erased_at IS NULL
     GROUP BY s.tenant_id, s.session_id
""")

_MANIFESTS = sa.text("""
    SELECT r.manifest_id, r.session_id, r.handoff_sha256, s.acl
      FROM runs r JOIN sessions s ON s.tenant_id = r.tenant_id AND s.session_id = r.session_id
     WHERE r.tenant_id = :tenant AND r.manifest_id = ANY (:ids) AND r.erased_at IS NULL
""")


@dataclass(frozen=True, slots=True)
class Resource:
    """A session, or a manifest of one. ``revision`` names its contents and its readers; ``acl`` is its session's."""

    session_id: UUID
    acl: frozenset[str]
    revision: str


async def find(tx: ReadTransaction, ids: Collection[UUID]) -> dict[UUID, Resource]:
    """Those of the ids that are sessions or manifests which may be read."""
    if not ids:
        return {}
    parameters = {"tenant": tx.scope.tenant_id, "ids": list(ids)}
    found = {
        row.session_id: Resource(row.session_id, frozenset(row.acl), _revision(row.acl, str(row.runs), str(row.newest)))
        for row in await tx.connection.execute(_SESSIONS, parameters)
    }
    for row in await tx.connection.execute(_MANIFESTS, parameters):
        found[row.manifest_id] = Resource(row.session_id, frozenset(row.acl), _revision(row.acl, row.handoff_sha256))
    return found


def _revision(acl: list[str], *contents: str) -> str:
    return "/".join((*contents, ",".join(sorted(acl))))
