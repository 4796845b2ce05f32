"""A fresh installation: a local tenant, its operator, and a key in the data directory where the CLI finds it."""

from __future__ import annotations

import asyncio
import contextlib

import structlog

from coatcheck.app.data_dir import DataDirectory
from coatcheck.domain.errors import InvalidRequest, RefusedToStart
from coatcheck.identity import private_file
from coatcheck.identity.credentials import new_api_key
from coatcheck.identity.operations import EVERYTHING
from coatcheck.identity.scopes import tenant_scope
from coatcheck.memory.collaborators import Collaborators
from coatcheck.memory.keys import create_tenant
from coatcheck.store import directory, principals
from coatcheck.store.database import WorkerTransaction
from coatcheck.store.directory import ApiKeyRow, Tenant

LOCAL_TENANT = "local"

log = structlog.get_logger(__name__)


async def ensure_local_key(parts: Collaborators, data: DataDirectory) -> None:
    """Leaves a key of the local tenant in the data directory, mode 0600; a key file that was lost is made anew."""
    if data.key_file.exists():
        return
    tenants = await parts.database.directory(directory.tenants)
    local = next((tenant for tenant in tenants if tenant.name == LOCAL_TENANT), None)
    key = await _another_key(parts, local) if local is not None else (await create_tenant(parts, LOCAL_TENANT, EVERYTHING))[1]
    await asyncio.to_thread(private_file.create, data.key_file, key.encode() + b"\n")


async def ensure_first_key(parts: Collaborators, data: DataDirectory) -> None:
    """With a database of one's own: the same, once, on a database that nobody has a key to yet. Nobody could make one otherwise.

    Raises RefusedToStart where another installation's key lies in the data directory.
    """
    tenants = await parts.database.directory(directory.tenants)
    if len(tenants) > 1 or (tenants and (tenants[0].name != LOCAL_TENANT or await _has_key(parts, tenants[0]))):
        return
    if data.key_file.exists():
        raise RefusedToStart(f"Nobody has a key to this database yet, and {data.key_file} is another one's: move it away.")
    # Of two processes that start at once, one makes the tenant and its key.
    with contextlib.suppress(InvalidRequest):
        await ensure_local_key(parts, data)
        log.warning("the first key was made, and is in local.key of the data directory", folder=str(data.path))


async def _has_key(parts: Collaborators, tenant: Tenant) -> bool:
    return bool(await parts.database.work(tenant_scope(tenant.tenant_id), lambda tx: directory.page_keys(tx, None, 1, None, None)))


async def _another_key(parts: Collaborators, tenant: Tenant) -> str:
    fresh = new_api_key(tenant.tenant_id, parts.new_id())

    async def work(tx: WorkerTransaction) -> None:
        principal_id = await principals.first(tx) or parts.new_id()
        await principals.insert(tx, principal_id, "operator", "operator")
        row = ApiKeyRow(
            key_id=fresh.key_id,
            principal_id=principal_id,
            name="local",
            secret_hash=parts.keyring.key_hash(tenant.tenant_id, fresh.secret),
            key_version=parts.keyring.version,
            operations=EVERYTHING,
            sessions=None,
            created_at=parts.clock(),
            expires_at=None,
            revoked_at=None,
        )
        await directory.insert_key(tx, row)

    await parts.database.work(tenant_scope(tenant.tenant_id), work)
    return fresh.text
