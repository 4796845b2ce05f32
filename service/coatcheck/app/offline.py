"""What is done while nothing serves: replaying the erasure journal after a backup was restored."""

from __future__ import annotations

from coatcheck.app.compose import App, composed, foundations
from coatcheck.identity.scopes import tenant_scope
from coatcheck.memory.restore import Restore
from coatcheck.settings import Settings
from coatcheck.store import directory


async def restore(settings: Settings) -> int:
    """How many erasures were done again. Raises RefusedToStart while a service owns the data directory."""
    async with foundations(settings) as opened, composed(opened, replays_journal=True) as app:
        return await erase_again(app)


async def erase_again(app: App) -> int:
    """Replays the journal; then brings the index, which is newer or older than the backup, to what the rows say."""
    erased = await Restore(app.parts, app.use_cases.eraser).replay()
    for tenant in await app.parts.database.directory(directory.tenants):
        await app.use_cases.repair.repair(tenant_scope(tenant.tenant_id), index=True, progress=lambda report: None)
    return erased
