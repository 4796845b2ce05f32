"""What is done while nothing serves: replaying the erasure journal after a backup was restored."""

from __future__ import annotations

from coatcheck.app.compose import composed, foundations
from coatcheck.memory.restore import Restore
from coatcheck.settings import Settings


async def restore(settings: Settings) -> int:
    """How many erasures were done again. Raises RefusedToStart while a service owns the data directory."""
    async with foundations(settings) as opened, composed(opened, replays_journal=True) as app:
        return await Restore(app.parts, app.use_cases.eraser).replay()
