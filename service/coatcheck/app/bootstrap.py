"""A fresh installation: a local tenant, its operator, and a key in the data directory where the CLI finds it.

The key is in a file before it counts, as ``local.key.pending``, and takes its name once it does. So a process that dies in between
leaves what its next start needs: the pending key becomes the local one where the database has it, and goes where it has not.
"""

from __future__ import annotations

import asyncio

import structlog

from coatcheck.app.data_dir import DataDirectory
from coatcheck.domain.errors import RefusedToStart
from coatcheck.identity import private_file
from coatcheck.identity.credentials import new_api_key, parse_api_key
from coatcheck.identity.operations import EVERYTHING
from coatcheck.identity.scopes import tenant_scope
from coatcheck.memory.collaborators import Collaborators
from coatcheck.memory.keys import add_operators_key
from coatcheck.ops.faults import reach_async
from coatcheck.store import directory, permission
from coatcheck.store.database import WorkerTransaction
from coatcheck.store.directory import ApiKeyRow, Tenant

LOCAL_TENANT = "local"

log = structlog.get_logger(__name__)


async def ensure_local_key(parts: Collaborators, data: DataDirectory) -> None:
    """Leaves a key of the local tenant in the data directory, mode 0600; a key file that was lost is made anew.

    Raises RefusedToStart where another installation's pending key lies there.
    """
    if not data.key_file.exists() and not await _settled(parts, data):
        await _leave_key(parts, data, is_first=False)


async def ensure_first_key(parts: Collaborators, data: DataDirectory) -> None:
    """With a database of one's own: the same, once, on a database that nobody has a key to yet. Nobody could make one otherwise.

    Of several processes that start at once one leaves a key. Raises RefusedToStart where another installation's key lies in the
    data directory.
    """
    if await _settled(parts, data) or (await _nobody_has_one(parts) and await _leave_key(parts, data, is_first=True)):
        log.warning("the first key was made, and is in local.key of the data directory", folder=str(data.path))


async def _nobody_has_one(parts: Collaborators) -> bool:
    tenants = await parts.database.directory(directory.tenants)
    if not tenants:
        return True
    is_fresh = [tenant.name for tenant in tenants] == [LOCAL_TENANT]
    return is_fresh and not await parts.database.work(tenant_scope(tenants[0].tenant_id), _keys)


async def _keys(tx: WorkerTransaction) -> list[ApiKeyRow]:
    return await directory.page_keys(tx, None, 1, None, None)


async def _leave_key(parts: Collaborators, data: DataDirectory, *, is_first: bool) -> bool:
    """False where a first key was asked for and another process had made it."""
    for path in (data.key_file, data.pending_key_file):
        if path.exists():
            raise RefusedToStart(f"This database knows nothing of the key in {path}, which is another one's: move it away.")
    tenant = await _local_tenant(parts)
    fresh = new_api_key(tenant.tenant_id, parts.new_id())
    await asyncio.to_thread(private_file.create, data.pending_key_file, fresh.text.encode() + b"\n")
    await reach_async("before-first-key")

    async def work(tx: WorkerTransaction) -> None:
        await permission.lock(tx)  # between a tenant and its first key another process may have started
        if not (is_first and await _keys(tx)):
            await add_operators_key(parts, tx, fresh, "local", EVERYTHING)
            await reach_async("inside-first-key")

    await parts.database.work(tenant_scope(tenant.tenant_id), work)
    await reach_async("after-first-key")
    return await _settled(parts, data)


async def _settled(parts: Collaborators, data: DataDirectory) -> bool:
    """Whether a pending key has become the local one. One that never counted is removed; another database's is left alone."""
    if data.key_file.exists() or not data.pending_key_file.exists():
        return False
    content = await asyncio.to_thread(private_file.read, data.pending_key_file)
    key = parse_api_key(content.decode("ascii", "replace").strip())
    if key is None:
        return False

    async def work(tx: WorkerTransaction) -> bool | None:
        await permission.lock(tx)  # the server may not be done yet with the commit at which its process died
        row = await directory.find_key(tx, key.key_id)
        is_ours = await directory.find_tenant(tx) is not None
        return (row is not None and row.revoked_at is None) if is_ours else None

    counts = await parts.database.work(tenant_scope(key.tenant_id), work)
    if counts:
        await asyncio.to_thread(private_file.rename, data.pending_key_file, data.key_file)
    elif counts is not None:
        data.pending_key_file.unlink()
    return bool(counts)


async def _local_tenant(parts: Collaborators) -> Tenant:
    """The one that there is, or a new one."""
    made = Tenant(parts.new_id(), LOCAL_TENANT, "active", parts.keyring.fingerprint(), parts.clock())
    if await parts.database.directory(lambda tx: directory.insert_tenant(tx, made)):
        return made
    return next(one for one in await parts.database.directory(directory.tenants) if one.name == LOCAL_TENANT)
