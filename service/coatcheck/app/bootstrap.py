"""A fresh installation: a local tenant, its operator, and a key in the data directory where the CLI finds it."""

from __future__ import annotations

import asyncio

import structlog

from coatcheck.app.data_dir import DataDirectory
from coatcheck.domain.errors import RefusedToStart
from coatcheck.identity import private_file
from coatcheck.identity.credentials import new_api_key
from coatcheck.identity.operations import EVERYTHING
from coatcheck.identity.scopes import tenant_scope
from coatcheck.memory.collaborators import Collaborators
from coatcheck.memory.keys import add_operators_key
from coatcheck.store import directory, permission
from coatcheck.store.database import WorkerTransaction
from coatcheck.store.directory import ApiKeyRow, Tenant

LOCAL_TENANT = "local"

log = structlog.get_logger(__name__)


async def ensure_local_key(parts: Collaborators, data: DataDirectory) -> None:
    """Leaves a key of the local tenant in the data directory, mode 0600; a key file that was lost is made anew."""
    if not data.key_file.exists():
        await _leave_key(parts, data, is_first=False)


async def ensure_first_key(parts: Collaborators, data: DataDirectory) -> None:
    """With a database of one's own: the same, once, on a database that nobody has a key to yet. Nobody could make one otherwise.

    Of several processes that start at once one leaves a key. Raises RefusedToStart where another installation's key lies in the
    data directory.
    """
    tenants = await parts.database.directory(directory.tenants)
    if len(tenants) > 1 or (tenants and (tenants[0].name != LOCAL_TENANT or await _has_key(parts, tenants[0]))):
        return
    if data.key_file.exists():
        raise RefusedToStart(f"Nobody has a key to this database yet, and {data.key_file} is another one's: move it away.")
    if await _leave_key(parts, data, is_first=True):
        log.warning("the first key was made, and is in local.key of the data directory", folder=str(data.path))


async def _has_key(parts: Collaborators, tenant: Tenant) -> bool:
    return bool(await parts.database.work(tenant_scope(tenant.tenant_id), _keys))


async def _keys(tx: WorkerTransaction) -> list[ApiKeyRow]:
    return await directory.page_keys(tx, None, 1, None, None)


async def _leave_key(parts: Collaborators, data: DataDirectory, *, is_first: bool) -> bool:
    """False where a first key was asked for and another process had made it."""
    key = await _new_key(parts, await _local_tenant(parts), is_first=is_first)
    if key is not None:
        await asyncio.to_thread(private_file.create, data.key_file, key.encode() + b"\n")
    return key is not None


async def _local_tenant(parts: Collaborators) -> Tenant:
    """The one that there is, or a new one."""
    made = Tenant(parts.new_id(), LOCAL_TENANT, "active", parts.keyring.fingerprint(), parts.clock())
    if await parts.database.directory(lambda tx: directory.insert_tenant(tx, made)):
        return made
    return next(one for one in await parts.database.directory(directory.tenants) if one.name == LOCAL_TENANT)


async def _new_key(parts: Collaborators, tenant: Tenant, *, is_first: bool) -> str | None:
    fresh = new_api_key(tenant.tenant_id, parts.new_id())

    async def work(tx: WorkerTransaction) -> bool:
        await permission.lock(tx)  # between a tenant and its first key another process may have started
        if is_first and await _keys(tx):
            return False
        await add_operators_key(parts, tx, fresh, "local", EVERYTHING)
        return True

    return fresh.text if await parts.database.work(tenant_scope(tenant.tenant_id), work) else None
