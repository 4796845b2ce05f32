"""Principals: made, listed, changed. Whatever is taken away here counts from the next request on."""

from __future__ import annotations

import dataclasses
from typing import Literal, cast
from uuid import UUID

from coatcheck.domain.errors import FieldError, Forbidden, InvalidRequest, NotFound
from coatcheck.identity.context import RequestContext
from coatcheck.identity.operations import Operation, Role
from coatcheck.memory.collaborators import Collaborators
from coatcheck.memory.pages import page_of
from coatcheck.memory.standing import require_standing_alone
from coatcheck.store import audit, delegations, principals
from coatcheck.store.database import WorkerTransaction
from coatcheck.store.principals import Principal
from coatcheck_client.wire import PrincipalCreate, PrincipalOut, PrincipalPage, PrincipalPatch

_TAKEN = "is another principal's"


class Principals:
    """The use cases behind ``/v1/admin/principals``."""

    def __init__(self, parts: Collaborators) -> None:
        self._parts = parts

    async def page(self, context: RequestContext, page_size: int, page_token: str | None) -> PrincipalPage:
        context.require_for_tenant(Operation.PRINCIPALS)

        async def after(tx: WorkerTransaction, position: str | None, limit: int) -> list[Principal]:
            return await principals.page(tx, UUID(position) if position else None, limit)

        rows, token = await page_of(
            self._parts, context, "principals", page_size, page_token, after, lambda row: str(row.principal_id)
        )
        return PrincipalPage(principals=[_out(row) for row in rows], next_page_token=token)

    async def one(self, context: RequestContext, principal_id: UUID) -> PrincipalOut:
        context.require_for_tenant(Operation.PRINCIPALS)
        found = await self._parts.database.work(context.tenant_scope, lambda tx: principals.find(tx, principal_id))
        if found is None:
            raise NotFound
        return _out(found)

    async def create(self, context: RequestContext, asked: PrincipalCreate) -> PrincipalOut:
        """Raises Forbidden for a role whose rights the caller does not hold, InvalidRequest for a subject that is taken."""
        context.require_for_tenant(Operation.PRINCIPALS)
        _check_identity(asked.issuer, asked.subject)
        made = Principal(
            self._parts.new_id(), asked.name, asked.role, "active", asked.issuer, asked.subject, self._parts.clock()
        )  # fmt: skip
        _require_rights_of(context, made)
        if made.subject is not None:
            _require_operator(context)

        async def work(tx: WorkerTransaction) -> None:
            await require_standing_alone(tx, context, self._parts.clock)
            if not await principals.add(tx, made):
                raise _taken()
            await self._record(tx, context, "principal.create", made)

        await self._parts.database.work(context.tenant_scope, work)
        return _out(made)

    async def patch(self, context: RequestContext, principal_id: UUID, patch: PrincipalPatch) -> PrincipalOut:
        """Raises NotFound, Forbidden (as ``create``, and for ending one's own rights), InvalidRequest."""
        context.require_for_tenant(Operation.PRINCIPALS)
        asked = patch.model_dump(exclude_unset=True)
        for name in ("name", "role", "status"):
            if asked.get(name, "") is None:
                del asked[name]

        async def work(tx: WorkerTransaction) -> Principal:
            await require_standing_alone(tx, context, self._parts.clock)
            old = await principals.lock(tx, principal_id)
            if old is None:
                raise NotFound
            new = dataclasses.replace(old, **asked)
            _check_identity(new.issuer, new.subject)
            _require_rights_of(context, old)
            _require_rights_of(context, new)
            if (old.issuer, old.subject) != (new.issuer, new.subject):
                _require_operator(context)
            if principal_id == context.principal_id and (new.role, new.status) != (old.role, old.status):
                raise Forbidden("Nobody ends its own rights: another operator does.")
            changes = _changes(old, new)
            if changes:
                if not await principals.update(tx, new):
                    raise _taken()
                if (old.issuer, old.subject) != (new.issuer, new.subject):
                    await delegations.revoke_of_tokens(tx, principal_id, self._parts.clock())
                for change in changes:
                    await self._record(tx, context, change, new)
            return new

        return _out(await self._parts.database.work(context.tenant_scope, work))

    async def _record(self, tx: WorkerTransaction, context: RequestContext, action: str, on: Principal) -> None:
        await audit.record(tx, self._parts.new_id(), context.actor, action, "principal", str(on.principal_id))


def _changes(old: Principal, new: Principal) -> list[str]:
    """What the audit says: which right changed and to what, never a name or a subject."""
    changes = []
    if old.name != new.name:
        changes.append("principal.rename")
    if old.role != new.role:
        changes.append(f"principal.role.{new.role}")
    if old.status != new.status:
        changes.append("principal.activate" if new.status == "active" else "principal.deactivate")
    if (old.issuer, old.subject) != (new.issuer, new.subject):
        changes.append("principal.subject")
    return changes


def _check_identity(issuer: str | None, subject: str | None) -> None:
    if (issuer is None) != (subject is None):
        detail = "goes with the issuer that means it, and the issuer with it"
        raise InvalidRequest("The subject and its issuer go together.", errors=[FieldError("/subject", detail)])


def _require_rights_of(context: RequestContext, principal: Principal) -> None:
    """Nobody makes, changes or takes away what it does not hold itself."""
    if Role(principal.role).grants - context.operations:
        raise Forbidden("The credential does not grant all that this role does.")


def _require_operator(context: RequestContext) -> None:
    """Whoever sets a subject says who may come in as this principal."""
    if not context.is_operator:
        raise Forbidden("Only an operator says whose tokens speak for a principal.")


def _taken() -> InvalidRequest:
    return InvalidRequest(f"The subject {_TAKEN}.", errors=[FieldError("/subject", _TAKEN)])


def _out(row: Principal) -> PrincipalOut:
    return PrincipalOut(
        principal_id=row.principal_id,
        name=row.name,
        role=cast(Literal["member", "operator"], row.role),
        status="active" if row.status == "active" else "inactive",
        issuer=row.issuer,
        subject=row.subject,
        teams=sorted(row.teams),
        created_at=row.created_at,
    )
