"""Pages of the administration's lists: one row more than asked for, and a sealed token to go on from the last one shown."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from coatcheck.identity.context import RequestContext
from coatcheck.memory.collaborators import Collaborators
from coatcheck.store.database import WorkerTransaction

Row = TypeVar("Row")


async def page_of(
    parts: Collaborators,
    context: RequestContext,
    listing: str,
    size: int,
    token: str | None,
    rows_after: Callable[[WorkerTransaction, str | None, int], Awaitable[list[Row]]],
    position: Callable[[Row], str],
) -> tuple[list[Row], str | None]:
    """The page and the next one's token. Raises InvalidRequest for a token of another list or another tenant."""
    cursor = parts.keyring.cursor(context.tenant_id)
    after = cursor.open(listing, str(context.tenant_id), token) if token else None
    rows = await parts.database.work(context.tenant_scope, lambda tx: rows_after(tx, after, size + 1))
    shown = rows[:size]
    following = cursor.seal(listing, str(context.tenant_id), position(shown[-1])) if len(rows) > size else None
    return shown, following
