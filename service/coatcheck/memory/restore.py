"""After a restored backup: what the journal says was erased is erased again, before anybody is served."""

from __future__ import annotations

from coatcheck.domain.outbox import OutboxItem, OutboxKind
from coatcheck.identity.scopes import tenant_scope
from coatcheck.memory.collaborators import Collaborators
from coatcheck.memory.erasing import Eraser
from coatcheck.memory.forget import mark_manifest, mark_session
from coatcheck.memory.journal import JournalLine
from coatcheck.memory.offboarding import Offboarding
from coatcheck.memory.receipts import Cause
from coatcheck.memory.startup import unreplayed
from coatcheck.store import outbox, runs, sessions, tombstones
from coatcheck.store.database import WorkerTransaction


class Restore:
    """Replays the erasure journal."""

    def __init__(self, parts: Collaborators, eraser: Eraser, offboarding: Offboarding) -> None:
        self._parts = parts
        self._offboarding = offboarding
        self._eraser = eraser

    async def replay(self) -> int:
        """How many erasures were done again. Twice does nothing the second time."""
        lines = [line async for line in unreplayed(self._parts.database, self._parts.journal)]
        for line in lines:
            if line.kind == "tenant":
                await self._offboarding.again(line.tenant_id)
                continue
            scope = tenant_scope(line.tenant_id)
            with self._eraser.alone_with(line.session_id, line.target_id if line.kind == "manifest" else None):
                item = await self._parts.database.work(scope, lambda tx, line=line: self._mark(tx, line))  # type: ignore[misc]
                if item is not None:
                    await self._eraser.erase(scope, item)
        return len(lines)

    async def _mark(self, tx: WorkerTransaction, line: JournalLine) -> OutboxItem | None:
        session = await sessions.find_any(tx, line.session_id)
        if line.kind == "session" and session is not None:
            await sessions.mark_erased(tx, line.session_id, line.erased_at)
            await mark_session(self._parts, tx, session, line.erased_at, Cause(None, "restore"))
            return await outbox.enqueue(tx, self._parts.new_id(), OutboxKind.ERASE, line.session_id)
        run = await runs.find(tx, line.target_id) if line.kind == "manifest" else None
        if run is not None and session is not None:
            await runs.mark_erased(tx, line.target_id, line.erased_at)
            await mark_manifest(self._parts, tx, session, run, line.erased_at, Cause(None, "restore"))
            return await outbox.enqueue(tx, self._parts.new_id(), OutboxKind.ERASE, line.session_id, manifest_id=line.target_id)
        # The backup is older than what was erased: nothing to erase, and nobody who could have read it.
        await tombstones.insert(tx, line.kind, [str(line.target_id)], line.session_id, None, (), line.erased_at)
        return None
