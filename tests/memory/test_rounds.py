"""The worker's rounds: long work of one tenant holds up nobody else's turn."""

from __future__ import annotations

import asyncio
from uuid import UUID

from coatcheck.domain.errors import IndexUnavailable
from coatcheck.domain.scopes import TenantScope
from coatcheck.memory.rounds import Rounds
from coatcheck.store.database import Database
from tests.tenants import Tenancy


async def nothing() -> None: ...


async def until(seen: dict[UUID, int], tenant: Tenancy, times: int) -> None:
    async with asyncio.timeout(10):
        while seen.get(tenant.tenant_id, 0) < times:  # noqa: ASYNC110 - counted by somebody else
            await asyncio.sleep(0.005)


async def test_a_turn_that_does_not_end_keeps_no_other_tenant_from_its_turns(
    database: Database, tenant: Tenancy, other_tenant: Tenancy
) -> None:
    seen: dict[UUID, int] = {}
    end = asyncio.Event()

    async def turn(scope: TenantScope) -> bool:
        seen[scope.tenant_id] = seen.get(scope.tenant_id, 0) + 1
        if scope.tenant_id == tenant.tenant_id:
            await end.wait()
        return True

    rounds = Rounds(database, nothing, turn, 0.01)
    running = asyncio.create_task(rounds.run())
    await until(seen, other_tenant, 5)

    assert seen[tenant.tenant_id] == 1
    rounds.stop()
    await asyncio.sleep(0.05)
    assert not running.done()  # the turn under way ends first
    end.set()
    await asyncio.wait_for(running, 20)


async def test_a_turn_that_fails_is_that_tenants_alone(database: Database, tenant: Tenancy, other_tenant: Tenancy) -> None:
    seen: dict[UUID, int] = {}

    async def turn(scope: TenantScope) -> bool:
        seen[scope.tenant_id] = seen.get(scope.tenant_id, 0) + 1
        if scope.tenant_id == tenant.tenant_id:
            raise IndexUnavailable
        return False

    rounds = Rounds(database, nothing, turn, 0.01)
    running = asyncio.create_task(rounds.run())
    await until(seen, other_tenant, 3)
    await until(seen, tenant, 3)

    rounds.stop()
    await asyncio.wait_for(running, 20)


async def test_cancelled_it_cancels_the_turns_and_waits_for_them(database: Database, tenant: Tenancy) -> None:
    began, gave_back = asyncio.Event(), 0

    async def turn(scope: TenantScope) -> bool:
        nonlocal gave_back
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.02)
            gave_back += 1
        return True

    running = asyncio.create_task(Rounds(database, nothing, turn, 0.01).run())
    await asyncio.wait_for(began.wait(), 10)

    running.cancel()
    await asyncio.gather(running, return_exceptions=True)

    assert gave_back


async def test_with_nothing_to_do_turns_are_spread_over_the_pause_and_each_tenant_has_one_in_it(
    database: Database, tenant: Tenancy, other_tenant: Tenancy
) -> None:
    pause_s = 0.4
    began: dict[UUID, list[float]] = {tenant.tenant_id: [], other_tenant.tenant_id: []}
    loop = asyncio.get_running_loop()

    async def turn(scope: TenantScope) -> bool:
        began.setdefault(scope.tenant_id, []).append(loop.time())
        return False

    rounds = Rounds(database, nothing, turn, pause_s)
    running = asyncio.create_task(rounds.run())
    async with asyncio.timeout(10):
        while len(began[tenant.tenant_id]) < 3 or len(began[other_tenant.tenant_id]) < 3:  # noqa: ASYNC110 - counted above
            await asyncio.sleep(0.01)
    rounds.stop()
    await asyncio.wait_for(running, 20)

    (first, second), (third, fourth) = ([times[1], times[2]] for times in (began[tenant.tenant_id], began[other_tenant.tenant_id]))
    # A turn may begin late on a busy machine, and the next one in time: all at once they would be apart by next to nothing.
    assert abs(first - third) >= 0.5 * pause_s / len(began)
    assert second - first >= 0.5 * pause_s
    assert fourth - third >= 0.5 * pause_s


async def test_whoever_stops_the_rounds_waits_for_no_pause(database: Database, tenant: Tenancy) -> None:
    seen: dict[UUID, int] = {}

    async def turn(scope: TenantScope) -> bool:
        seen[scope.tenant_id] = seen.get(scope.tenant_id, 0) + 1
        return False

    rounds = Rounds(database, nothing, turn, 600)
    running = asyncio.create_task(rounds.run())
    await until(seen, tenant, 1)

    rounds.stop()

    await asyncio.wait_for(running, 20)
