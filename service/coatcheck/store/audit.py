"""The audit: who did what to which id, never content."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from coatcheck.domain.actors import Actor
from coatcheck.store.database import AnyWriteTransaction, WorkerTransaction

_RECORD = sa.text("""
    INSERT INTO audit (tenant_id, audit_id, principal_id, delegation_id, action, target_kind, target_id)
    VALUES (:tenant, :audit, :principal, :delegation, :action, :target_kind, :target_id)
""")

_PAGE = sa.text("""
    SELECT audit_id, principal_id, delegation_id, action, target_kind, target_id, occurred_at FROM audit
     WHERE tenant_id = :tenant AND (CAST(:after AS uuid) IS NULL OR audit_id > :after)
     ORDER BY audit_id LIMIT :limit
""")


_NEWEST = sa.text("""
    SELECT audit_id, principal_id, delegation_id, action, target_kind, target_id, occurred_at FROM audit
     WHERE tenant_id = :tenant AND (CAST(:principal AS uuid) IS NULL OR principal_id = :principal)
       AND (CAST(:action AS text) IS NULL OR action = :action OR starts_with(action, :action || '.'))
       AND (CAST(:since AS timestamptz) IS NULL OR occurred_at >= :since)
       AND (CAST(:before AS uuid) IS NULL OR audit_id < :before)
     ORDER BY audit_id DESC LIMIT :limit
""")


@dataclass(frozen=True, slots=True)
class AuditRow:
    """One thing that was done."""

    audit_id: UUID
    principal_id: UUID | None
    delegation_id: UUID | None
    action: str
    target_kind: str
    target_id: str
    occurred_at: datetime


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which records: of one principal, of one action or of all that begin with it and a dot, from a time on; None is all."""

    principal_id: UUID | None = None
    action: str | None = None
    since: datetime | None = None


async def record(tx: AnyWriteTransaction, audit_id: UUID, actor: Actor, action: str, target_kind: str, target_id: str) -> None:
    """Records in the same transaction what it does."""
    await tx.connection.execute(
        _RECORD,
        {
            "tenant": tx.scope.tenant_id,
            "audit": audit_id,
            "principal": actor.principal_id,
            "delegation": actor.delegation_id,
            "action": action,
            "target_kind": target_kind,
            "target_id": target_id,
        },
    )


async def page(tx: WorkerTransaction, after: UUID | None, limit: int) -> list[AuditRow]:
    """What was done, by id (and so by age) behind ``after``."""
    parameters = {"tenant": tx.scope.tenant_id, "after": after, "limit": limit}
    return [_row(row) for row in await tx.connection.execute(_PAGE, parameters)]


async def newest(tx: WorkerTransaction, wanted: Wanted, before: UUID | None, limit: int) -> list[AuditRow]:
    """What was done, newest first, before ``before``."""
    parameters = {
        "tenant": tx.scope.tenant_id,
        "principal": wanted.principal_id,
        "action": wanted.action,
        "since": wanted.since,
        "before": before,
        "limit": limit,
    }
    return [_row(row) for row in await tx.connection.execute(_NEWEST, parameters)]


def _row(row: sa.Row[Any]) -> AuditRow:
    return AuditRow(**row._mapping)
