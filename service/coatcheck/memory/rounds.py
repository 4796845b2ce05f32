"""The worker's rounds: every tenant gets a turn, several at a time, and nobody's long work holds up another's turn.

A tenant whose turn has not ended is left out of the rounds that follow; the others have theirs meanwhile. While there is nothing to
do the turns of a round are spread over the pause: all at once, those of fifty tenants hold up whoever asks just then.
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
            busy = True
            while not self._stopping.is_set():
                busy = await self._round(0.0 if busy else self._pause_s)
            if self._turns:
                await asyncio.wait(self._turns.values())
        finally:
            for turn in self._turns.values():
                turn.cancel()
            await asyncio.gather(*self._turns.values(), return_exceptions=True)

    async def _round(self, spread_s: float) -> bool:
        """Starts a turn for each tenant that has none under way, within that time; waits for a while. Whether any did anything."""
        try:
            await self._ready()
            tenants = await self._database.directory(directory.tenants)
        except CoatcheckError as error:
            log.warning("reconcile.failed", problem=error.slug)
            await self._pause(self._pause_s)
            return False
        for tenant in tenants:
            await self._pause(spread_s / len(tenants))
            # Of one that goes nothing is written any more.
            if tenant.tenant_id not in self._turns and tenant.status != ERASING and not self._stopping.is_set():
                self._turns[tenant.tenant_id] = asyncio.create_task(self._one(tenant_scope(tenant.tenant_id)))
        if not tenants:
            await self._pause(self._pause_s)
        if self._turns:
            await asyncio.wait(self._turns.values(), timeout=self._pause_s)
        ended = {tenant_id: turn for tenant_id, turn in self._turns.items() if turn.done()}
        for tenant_id in ended:
            del self._turns[tenant_id]
        return any([turn.result() for turn in ended.values()])

    async def _pause(self, seconds: float) -> None:
        """Shorter where the rounds are to stop."""
        if seconds:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), seconds)

    async def _one(self, scope: TenantScope) -> bool:
        async with self._places:
            if self._stopping.is_set():
                return False
            try:
                return await self._turn(scope)
            except CoatcheckError as error:
                log.warning("reconcile.failed", problem=error.slug)
                return False
