"""The earlier handoffs of a session that stand in a window, and what the next one carries on of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

from coatcheck.domain.runs import HandoffLine
from coatcheck.domain.scopes import Scope
from coatcheck.memory.collaborators import Collaborators
from coatcheck.store import runs
from coatcheck.store.database import ReadTransaction


@dataclass(frozen=True, slots=True)
class EarlierHandoffs:
    """``known``: hash of the text as it stood to its manifest. ``lines``: those that stand, oldest handoff first."""

    known: dict[str, UUID] = field(default_factory=dict)
    lines: tuple[HandoffLine, ...] = ()


async def earlier_handoffs(parts: Collaborators, scope: Scope, session_id: UUID, hashes: Sequence[str]) -> EarlierHandoffs:
    """Those of the candidates that are handoffs of this session and that the caller may read."""
    if not hashes:
        return EarlierHandoffs()

    async def work(tx: ReadTransaction) -> EarlierHandoffs:
        known = await runs.handoffs_by_sha(tx, session_id, hashes)
        found = [run for manifest_id in set(known.values()) if (run := await runs.find(tx, manifest_id)) is not None]
        found.sort(key=lambda run: (run.created_at, run.manifest_id))
        lines = [line for run in found for line in run.handoff.lines]
        standing = await runs.standing(tx, [line.manifest_id for line in lines])
        return EarlierHandoffs(known, tuple(line for line in lines if line.manifest_id in standing))

    return await parts.database.read(scope, work)
