"""Token issuers: who may speak for a tenant. The installation's operator says so, for every tenant."""

from __future__ import annotations

from coatcheck.domain.errors import FieldError, InvalidRequest, NotFound, OutboundRefused
from coatcheck.identity.context import RequestContext
from coatcheck.identity.operations import Operation
from coatcheck.identity.scopes import tenant_scope
from coatcheck.memory.collaborators import Collaborators
from coatcheck.memory.standing import require_standing_alone
from coatcheck.store import audit, directory, issuers, permission
from coatcheck.store.database import WorkerTransaction
from coatcheck.store.issuers import IssuerRow
from coatcheck_client.wire import IssuerCreate, IssuerOut, IssuerPage


class Issuers:
    """The use cases behind ``/v1/admin/issuers``."""

    def __init__(self, parts: Collaborators) -> None:
        self._parts = parts

    async def page(self, context: RequestContext, page_size: int, page_token: str | None) -> IssuerPage:
        """All of the installation, by name."""
        context.require_for_tenant(Operation.TENANTS)
        cursor = self._parts.keyring.cursor(context.tenant_id)
        after = cursor.open("issuers", str(context.tenant_id), page_token) if page_token else None
        rows = await self._parts.database.directory(lambda tx: issuers.page(tx, after, page_size + 1))
        shown = rows[:page_size]
        token = cursor.seal("issuers", str(context.tenant_id), shown[-1].issuer) if len(rows) > page_size else None
        return IssuerPage(issuers=[_out(row) for row in shown], next_page_token=token)

    async def create(self, context: RequestContext, asked: IssuerCreate) -> IssuerOut:
        """Raises InvalidRequest for an issuer that is taken or an address that is never fetched from, NotFound for the tenant."""
        context.require_for_tenant(Operation.TENANTS)
        try:
            self._parts.outbound.check(asked.jwks_uri)
        except OutboundRefused as error:
            raise InvalidRequest(error.detail, errors=[FieldError("/jwks_uri", error.detail)]) from None
        tenant_id = asked.tenant_id or context.tenant_id
        row = IssuerRow(asked.issuer, tenant_id, asked.jwks_uri, asked.audience, self._parts.clock())

        async def work(tx: WorkerTransaction) -> None:
            if await directory.find_tenant(tx) is None:
                raise NotFound
            if not await issuers.insert(tx, row):
                detail = "speaks for a tenant already"
                raise InvalidRequest(f"The issuer {detail}.", errors=[FieldError("/issuer", detail)])
            await self._changed(tx, context, "issuer.create", row.issuer)

        await self._parts.database.work(context.tenant_scope, lambda tx: require_standing_alone(tx, context, self._parts.clock))
        await self._parts.database.work(tenant_scope(tenant_id), work)
        return _out(row)

    async def delete(self, context: RequestContext, issuer: str) -> None:
        """Its tokens, and the delegates that they made, count no more from the next request on. Raises NotFound."""
        context.require_for_tenant(Operation.TENANTS)
        found = await self._parts.database.directory(lambda tx: issuers.find(tx, issuer))
        if found is None:
            raise NotFound

        async def work(tx: WorkerTransaction) -> None:
            if not await issuers.delete(tx, issuer):
                raise NotFound
            await self._changed(tx, context, "issuer.delete", issuer)

        await self._parts.database.work(tenant_scope(found.tenant_id), work)

    async def _changed(self, tx: WorkerTransaction, context: RequestContext, action: str, issuer: str) -> None:
        await permission.of_issuer(tx, issuer)
        await audit.record(tx, self._parts.new_id(), context.actor, action, "issuer", issuer)


def _out(row: IssuerRow) -> IssuerOut:
    return IssuerOut(
        issuer=row.issuer, tenant_id=row.tenant_id, jwks_uri=row.jwks_uri, audience=row.audience, created_at=row.created_at
    )
