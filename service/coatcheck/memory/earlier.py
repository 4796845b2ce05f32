"""The earlier handoffs of a session that stand in a window, and what the next one carries on of them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence, Set
from dataclasses import dataclass, field
from uuid import UUID

from coatcheck.domain.runs import HandoffLine, Run
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

    async def work(tx: ReadTransaction) -> tuple[dict[str, UUID], list[Run], set[UUID]]:
        known = await runs.handoffs_by_sha(tx, session_id, hashes)
        found = [run for manifest_id in set(known.values()) if (run := await runs.find(tx, manifest_id)) is not None]
        return known, found, await runs.standing(tx, [line.manifest_id for run in found for line in run.handoff.lines])

    known, found, standing = await parts.database.read(scope, work)
    return EarlierHandoffs(known, await lines_of(parts, scope.tenant_id, session_id, found, standing))


async def lines_of(
    parts: Collaborators, tenant_id: UUID, session_id: UUID, found: Sequence[Run], standing: Set[UUID]
) -> tuple[HandoffLine, ...]:
    """What handoffs quote of runs that stand, oldest handoff first, without what today's rules find in it."""
    keys = parts.keyring.placeholder_keys(tenant_id, session_id)
    lines: list[HandoffLine] = []
    for run in sorted(found, key=lambda run: (run.created_at, run.manifest_id)):
        for line in run.handoff.lines:
            if line.manifest_id in standing:
                if run.revisions.get("redaction") != parts.redactor.revision:
                    text = (await asyncio.to_thread(parts.redactor.redact_text, line.text, keys)).text
                    line = HandoffLine(text, line.sha256, line.manifest_id)
                lines.append(line)
    return tuple(lines)
