"""API keys and tenants: made, listed, revoked, rotated. A key is shown once; what is stored cannot be turned back into it."""

from __future__ import annotations

from datetime import datetime
from typing import Literal
from uuid import UUID

from coatcheck.domain.errors import Forbidden, InvalidRequest, NotFound
from coatcheck.identity.context import RequestContext
from coatcheck.identity.credentials import new_api_key
from coatcheck.identity.operations import EVERYTHING, OPERATOR
from coatcheck.identity.scopes import tenant_scope
from coatcheck.memory.collaborators import Collaborators
from coatcheck.store import audit, directory, principals
from coatcheck.store.database import WorkerTransaction
from coatcheck.store.directory import ApiKeyRow, Tenant
from coatcheck_client.wire import KeyCreate, KeyOut, KeyPage, TenantCreate, TenantOut, TenantPage


class Keys:
    """The use cases behind ``/v1/admin/keys``."""

    def __init__(self, parts: Collaborators) -> None:
        self._parts = parts

    async def page(self, context: RequestContext, page_size: int, page_token: str | None) -> KeyPage:
        context.require("keys")
        cursor = self._parts.keyring.cursor(context.tenant_id)
        after = UUID(cursor.open("keys", str(context.tenant_id), page_token)) if page_token else None
        rows = await self._parts.database.work(context.tenant_scope, lambda tx: directory.page_keys(tx, after, page_size + 1))
        page = rows[:page_size]
        token = cursor.seal("keys", str(context.tenant_id), str(page[-1].key_id)) if len(rows) > page_size else None
        return KeyPage(keys=[_key_out(row) for row in page], next_page_token=token)

    async def create(self, context: RequestContext, asked: KeyCreate) -> KeyOut:
        """A key never grants what its maker does not hold. Raises Forbidden, InvalidRequest."""
        context.require("keys")
        operations = frozenset(asked.operations) if asked.operations is not None else context.operations
        if operations - EVERYTHING:
            raise InvalidRequest("An operation is not known.")
        if operations - context.operations:
            raise Forbidden("A key cannot grant an operation that its maker does not hold.")
        reach = frozenset(asked.sessions) if asked.sessions is not None else context.sessions
        if context.sessions is not None and (reach is None or reach - context.sessions):
            raise Forbidden("A key cannot reach a session that its maker does not.")
        principal_id = asked.principal_id or context.principal_id
        return await self._insert(context, asked.name, principal_id, operations, reach, asked.expires_at, is_new=asked.principal_id)

    async def revoke(self, context: RequestContext, key_id: UUID) -> KeyOut:
        """Effective with the next request. Revoking a revoked key changes nothing."""
        context.require("keys")

        async def work(tx: WorkerTransaction) -> ApiKeyRow:
            row = await directory.revoke_key(tx, key_id, self._parts.clock())
            if row is None:
                raise NotFound
            await audit.record(tx, self._parts.new_id(), context.principal_id, "key.revoke", "key", str(key_id))
            return row

        return _key_out(await self._parts.database.work(context.tenant_scope, work))

    async def rotate(self, context: RequestContext, key_id: UUID) -> KeyOut:
        """A new key with the old one's rights; the old one is revoked in the same transaction. Raises NotFound."""
        context.require("keys")
        fresh = new_api_key(context.tenant_id, self._parts.new_id())

        async def work(tx: WorkerTransaction) -> ApiKeyRow:
            old = await directory.find_key(tx, key_id)
            if old is None or old.revoked_at is not None:
                raise NotFound
            await directory.revoke_key(tx, key_id, self._parts.clock())
            row = await self._store(
                tx, fresh.key_id, fresh.secret, old.name, old.principal_id, old.operations, old.sessions, old.expires_at
            )
            await audit.record(tx, self._parts.new_id(), context.principal_id, "key.rotate", "key", str(key_id))
            return row

        row = await self._parts.database.work(context.tenant_scope, work)
        return _key_out(row, fresh.text)

    async def _insert(
        self, context: RequestContext, name: str, principal_id: UUID, operations: frozenset[str],
        reach: frozenset[UUID] | None, expires_at: datetime | None, *, is_new: UUID | None,
    ) -> KeyOut:  # fmt: skip
        fresh = new_api_key(context.tenant_id, self._parts.new_id())

        async def work(tx: WorkerTransaction) -> ApiKeyRow:
            if is_new is not None and not await principals.existing(tx, [principal_id]):
                raise InvalidRequest("The principal is not known.")
            row = await self._store(tx, fresh.key_id, fresh.secret, name, principal_id, operations, reach, expires_at)
            await audit.record(tx, self._parts.new_id(), context.principal_id, "key.create", "key", str(fresh.key_id))
            return row

        row = await self._parts.database.work(context.tenant_scope, work)
        return _key_out(row, fresh.text)

    async def _store(
        self, tx: WorkerTransaction, key_id: UUID, secret: str, name: str, principal_id: UUID, operations: frozenset[str],
        reach: frozenset[UUID] | None, expires_at: datetime | None,
    ) -> ApiKeyRow:  # fmt: skip
        row = ApiKeyRow(
            key_id=key_id,
            principal_id=principal_id,
            name=name,
            secret_hash=self._parts.keyring.key_hash(tx.scope.tenant_id, secret),
            key_version=self._parts.keyring.version,
            operations=operations,
            sessions=reach,
            created_at=self._parts.clock(),
            expires_at=expires_at,
            revoked_at=None,
        )
        await directory.insert_key(tx, row)
        return row


class Tenants:
    """The use cases behind ``/v1/admin/tenants``."""

    def __init__(self, parts: Collaborators) -> None:
        self._parts = parts

    async def page(self, context: RequestContext) -> TenantPage:
        context.require("tenants")
        tenants = await self._parts.database.directory(directory.tenants)
        return TenantPage(tenants=[_tenant_out(tenant) for tenant in tenants])

    async def create(self, context: RequestContext, asked: TenantCreate) -> TenantOut:
        """A tenant with its first operator and that operator's key."""
        context.require("tenants")
        tenant, key = await create_tenant(self._parts, asked.name, OPERATOR)
        return _tenant_out(tenant, key)


async def create_tenant(parts: Collaborators, name: str, operations: frozenset[str]) -> tuple[Tenant, str]:
    """A tenant, its first principal and that one's key. Raises InvalidRequest when the name is taken."""
    tenant = Tenant(parts.new_id(), name, "active", parts.keyring.fingerprint(), parts.clock())
    if not await parts.database.directory(lambda tx: directory.insert_tenant(tx, tenant)):
        raise InvalidRequest("A tenant of this name exists.")
    principal_id = parts.new_id()
    fresh = new_api_key(tenant.tenant_id, parts.new_id())
    row = ApiKeyRow(
        key_id=fresh.key_id,
        principal_id=principal_id,
        name="first",
        secret_hash=parts.keyring.key_hash(tenant.tenant_id, fresh.secret),
        key_version=parts.keyring.version,
        operations=operations,
        sessions=None,
        created_at=parts.clock(),
        expires_at=None,
        revoked_at=None,
    )

    async def work(tx: WorkerTransaction) -> None:
        await principals.insert(tx, principal_id, "operator")
        await directory.insert_key(tx, row)

    await parts.database.work(tenant_scope(tenant.tenant_id), work)
    return tenant, fresh.text


def _key_out(row: ApiKeyRow, key: str | None = None) -> KeyOut:
    return KeyOut(
        key_id=row.key_id, name=row.name, principal_id=row.principal_id, operations=sorted(row.operations),
        sessions=None if row.sessions is None else sorted(row.sessions), created_at=row.created_at, expires_at=row.expires_at,
        revoked_at=row.revoked_at, key=key,
    )  # fmt: skip


def _tenant_out(tenant: Tenant, key: str | None = None) -> TenantOut:
    status: Literal["active", "suspended"] = "active" if tenant.status == "active" else "suspended"
    return TenantOut(tenant_id=tenant.tenant_id, name=tenant.name, status=status, created_at=tenant.created_at, key=key)
