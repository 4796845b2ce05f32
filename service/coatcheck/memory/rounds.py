"""The worker's rounds: every tenant gets a turn, several at a time, and nobody's long work holds up another's turn.

A tenant whose turn has not ended is left out of the rounds that follow; the others have theirs meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from uuid import UUID

import structlog

from coatcheck.domain.errors import CoatcheckError
from coatcheck.domain.scopes import TenantScope
from coatcheck.identity.scopes import tenant_scope
from coatcheck.store import directory
from coatcheck.store.database import Database
from coatcheck.store.offboarding import ERASING

log = structlog.get_logger(__name__)
AT_ONCE = 4
"""Tenants whose turns run at the same time."""


class Rounds:
    """Calls ``turn`` for each tenant, again and again. A turn says whether it did anything: then the next round comes at once."""

    def __init__(
        self,
        database: Database,
        ready: Callable[[], Awaitable[None]],
        turn: Callable[[TenantScope], Awaitable[bool]],
        pause_s: float,
    ) -> None:
        self._database = database
        self._ready = ready
        self._turn = turn
        self._pause_s = pause_s
        self._places = asyncio.Semaphore(AT_ONCE)
        self._turns: dict[UUID, asyncio.Task[bool]] = {}
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        self._stopping.set()

    @property
    def is_stopping(self) -> bool:
        return self._stopping.is_set()

    async def run(self) -> None:
        """Until ``stop``; turns under way end first. Cancelled, it cancels them and waits for that."""
        try:
            while not self._stopping.is_set():
                if not await self._round():
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(self._stopping.wait(), self._pause_s)
            if self._turns:
                await asyncio.wait(self._turns.values())
        finally:
            for turn in self._turns.values():
                turn.cancel()
            await asyncio.gather(*self._turns.values(), return_exceptions=True)

    async def _round(self) -> bool:
        """Starts a turn for each tenant that has none under way; waits for a while. Whether any turn did anything."""
        try:
            await self._ready()
            tenants = await self._database.directory(directory.tenants)
        except CoatcheckError as error:
            log.warning("reconcile.failed", problem=error.slug)
            return False
        for tenant in tenants:
            # Of one that goes nothing is written any more.
            if tenant.tenant_id not in self._turns and tenant.status != ERASING:
                self._turns[tenant.tenant_id] = asyncio.create_task(self._one(tenant_scope(tenant.tenant_id)))
        if self._turns:
            await asyncio.wait(self._turns.values(), timeout=self._pause_s)
        ended = {tenant_id: turn for tenant_id, turn in self._turns.items() if turn.done()}
        for tenant_id in ended:
            del self._turns[tenant_id]
        return any([turn.result() for turn in ended.values()])

    async def _one(self, scope: TenantScope) -> bool:
        async with self._places:
            if self._stopping.is_set():
                return False
            try:
                return await self._turn(scope)
            except CoatcheckError as error:
                log.warning("reconcile.failed", problem=error.slug)
                return False
