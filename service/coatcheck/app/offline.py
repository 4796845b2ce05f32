"""What is done while nothing serves: replaying the erasure journal after a backup was restored, and a new root key."""

from __future__ import annotations

from collections.abc import Set
from uuid import UUID

from coatcheck.app.compose import App, composed, foundations
from coatcheck.app.data_dir import DataDirectory
from coatcheck.app.keys import keeps_its_own, rotate_file
from coatcheck.domain.scopes import NIL
from coatcheck.identity.scopes import tenant_scope
from coatcheck.memory.restore import Restore
from coatcheck.ops import logging
from coatcheck.settings import Settings
from coatcheck.store import cache_purge, directory


async def restore(settings: Settings) -> int:
    """How many erasures were done again. Raises RefusedToStart while a service owns the data directory."""
    _log_to_stderr(settings)
    async with foundations(settings) as opened, composed(opened, alone=settings.embedded, replays_journal=True) as app:
        return await erase_again(app)


async def rotate_root_key(settings: Settings) -> int:
    """A new root key in the data directory, or the one that the settings give beside the earlier ones. Returns its version.

    Raises RefusedToStart while a service owns the data directory, and when an earlier key is missing.
    """
    _log_to_stderr(settings)
    if keeps_its_own(settings):
        with DataDirectory(settings.data_dir) as directory:
            rotate_file(directory)
    async with foundations(settings) as opened:
        return opened.keyring.version


async def erase_again(app: App) -> int:
    """Replays the journal; then brings the index, which is newer or older than the backup, to what the rows say."""
    erased = await Restore(app.parts, app.use_cases.eraser, app.use_cases.offboarding).replay()
    tenants = {tenant.tenant_id for tenant in await app.parts.database.directory(directory.tenants)}
    for tenant_id in tenants:
        # Answers of a backup rest on what stood then; none of them is worth asking what of it is gone.
        await app.parts.database.work(tenant_scope(tenant_id), lambda tx: cache_purge.purge(tx, None))
        await app.use_cases.repair.repair(tenant_scope(tenant_id), index=True, progress=lambda report: None)
    await _remove_unknown(app, tenants)
    return erased


async def _remove_unknown(app: App, tenants: Set[UUID]) -> None:
    """Points of tenants that the backup does not know: no scan of a tenant would ever name them."""
    async for page in app.parts.index.scroll():
        unknown = sorted({point.tenant_id for point in page} - tenants - {NIL})
        for tenant_id in unknown:
            ids = [point.point_id for point in page if point.tenant_id == tenant_id]
            await app.parts.index.delete_points(tenant_scope(tenant_id), ids)


def _log_to_stderr(settings: Settings) -> None:
    """What a command says on stdout is its answer alone."""
    logging.configure("error" if settings.log_level == "error" else "warning")
