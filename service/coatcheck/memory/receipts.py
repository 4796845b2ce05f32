"""Receipts of erasures: what went, when, on whose word, tagged so that a copy can be verified later. Never content.

Readable by those who could have erased it: the owner of what was there, and operators.
"""

from __future__ import annotations

import dataclasses
import hmac
from collections.abc import Mapping
from datetime import datetime
from uuid import UUID

from coatcheck.domain.erasures import Erasure, ErasureKind, ErasureReason
from coatcheck.domain.errors import NotFound
from coatcheck.identity.context import RequestContext
from coatcheck.identity.operations import Operation
from coatcheck.memory.collaborators import Collaborators
from coatcheck.store import erasures
from coatcheck.store.database import WorkerTransaction
from coatcheck_client.wire import ErasureOut, ReceiptIn, VerifiedOut


@dataclasses.dataclass(frozen=True, slots=True)
class Cause:
    """Who asked for an erasure, nobody where the service did it by itself, and the reason."""

    principal_id: UUID | None
    reason: ErasureReason


class Receipts:
    """The use cases behind ``/v1/erasures``."""

    def __init__(self, parts: Collaborators) -> None:
        self._parts = parts

    async def one(self, context: RequestContext, erasure_id: UUID) -> ErasureOut:
        """Raises NotFound, also for one whose subject the caller could not have erased."""
        context.require(Operation.ERASE)
        found = await self._parts.database.work(context.tenant_scope, lambda tx: erasures.find(tx, erasure_id))
        return _out(_readable(context, found))

    async def of_target(self, context: RequestContext, kind: ErasureKind, target_id: UUID) -> ErasureOut:
        """As ``one``, by what was erased."""
        context.require(Operation.ERASE)
        found = await self._parts.database.work(context.tenant_scope, lambda tx: erasures.of_target(tx, kind, target_id))
        return _out(_readable(context, found))

    async def verify(self, context: RequestContext, receipt: ReceiptIn) -> VerifiedOut:
        """Whether the service wrote this receipt, every field of it, for the caller's tenant. Asks no table."""
        context.require(Operation.ERASE)
        claimed = _of_wire(receipt)
        held = claimed.key_version is not None and self._parts.keyring.has_version(claimed.key_version)
        if claimed.tag is None or claimed.tenant_id != context.tenant_id or not held:
            return VerifiedOut(valid=False)
        return VerifiedOut(valid=hmac.compare_digest(_tag(self._parts, claimed), claimed.tag))


async def begin(
    parts: Collaborators,
    tx: WorkerTransaction,
    kind: ErasureKind,
    target_id: UUID,
    cause: Cause,
    at: datetime,
    counts: Mapping[str, int],
    *,
    session_id: UUID | None = None,
    owner_id: UUID | None = None,
) -> UUID:
    """In the transaction that marks: the erasure goes on record. Returns its id, an earlier one's where there was one."""
    erasure = Erasure(
        erasure_id=parts.new_id(),
        tenant_id=tx.scope.tenant_id,
        kind=kind,
        target_id=target_id,
        session_id=session_id,
        owner_id=owner_id,
        requested_by=cause.principal_id,
        reason=cause.reason,
        requested_at=at,
        counts=counts,
    )
    await erasures.begin(tx, erasure)
    recorded = await erasures.of_target(tx, kind, target_id)
    return recorded.erasure_id if recorded is not None else erasure.erasure_id


async def complete(parts: Collaborators, tx: WorkerTransaction, kind: ErasureKind, target_id: UUID, journal_mac: str) -> None:
    """In the transaction that takes the last rows: the receipt stands from this commit on."""
    begun = await erasures.of_target(tx, kind, target_id)
    if begun is not None and begun.completed_at is None:
        version = parts.keyring.version
        done = dataclasses.replace(begun, completed_at=parts.clock(), journal_mac=journal_mac, key_version=version)
        await erasures.complete(tx, dataclasses.replace(done, tag=_tag(parts, done)))


def _tag(parts: Collaborators, erasure: Erasure) -> str:
    return parts.keyring.receipt_tag(erasure.tenant_id, erasure.signed_bytes(), erasure.key_version)


def _readable(context: RequestContext, found: Erasure | None) -> Erasure:
    if found is None or (found.session_id is not None and not context.reaches(found.session_id)):
        raise NotFound
    if found.kind == "tenant":
        if "tenants" not in context.operations or context.sessions is not None:
            raise NotFound
        return found
    if found.owner_id != context.principal_id and not context.is_operator:
        raise NotFound
    return found


def _out(erasure: Erasure) -> ErasureOut:
    return ErasureOut(
        erasure_id=erasure.erasure_id,
        tenant_id=erasure.tenant_id,
        kind=erasure.kind,
        target_id=erasure.target_id,
        session_id=erasure.session_id,
        reason=erasure.reason,
        requested_by=erasure.requested_by,
        requested_at=erasure.requested_at,
        completed_at=erasure.completed_at,
        status="pending" if erasure.completed_at is None else "complete",
        counts=dict(erasure.counts),
        journal_mac=erasure.journal_mac,
        key_version=erasure.key_version,
        tag=erasure.tag,
    )


def _of_wire(receipt: ReceiptIn) -> Erasure:
    fields = {field.name for field in dataclasses.fields(Erasure)} - {"owner_id"}
    return Erasure(owner_id=None, **receipt.model_dump(include=fields))
