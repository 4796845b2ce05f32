"""Work in the outbox that says the same as other work: one is done for all, and none that is needed is left out."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest

from coatcheck.domain.outbox import OutboxItem, OutboxKind
from coatcheck.store import outbox
from coatcheck.store.database import Database, WorkerTransaction
from tests.store.test_outbox import AFTER, claim
from tests.tenants import Tenancy


async def test_of_several_that_say_the_same_one_is_done_and_what_is_held_or_put_aside_stays(
    database: Database, tenant: Tenancy
) -> None:
    session_id, other = uuid4(), uuid4()

    async def enqueued(tx: WorkerTransaction) -> list[OutboxItem]:
        wanted = [*[(OutboxKind.ACL, session_id)] * 5, (OutboxKind.ACL, other), (OutboxKind.SWEEP, session_id)]
        return [await outbox.enqueue(tx, uuid4(), kind, session) for kind, session in wanted]

    made = await database.work(tenant.scope, enqueued)
    bad, mine, held = await claim(database, tenant, "a", 3)
    await database.work(tenant.scope, lambda tx: outbox.fail(tx, bad, "poison", AFTER, True))

    await database.work(tenant.scope, lambda tx: outbox.forget_same(tx, mine))

    assert await database.work(tenant.scope, lambda tx: outbox.complete(tx, held))
    left = await claim(database, tenant, "b")
    assert [item.item_id for item in left] == [made[5].item_id, made[6].item_id]
    assert (await database.work(tenant.scope, outbox.stats)).quarantined == 1


async def added(database: Database, tenant: Tenancy, session_id: UUID, kind: OutboxKind = OutboxKind.ACL) -> bool:
    return await database.work(tenant.scope, lambda tx: outbox.enqueue_unless_waiting(tx, uuid4(), kind, session_id))


async def test_what_waits_to_be_begun_is_not_added_again_and_everything_else_is(database: Database, tenant: Tenancy) -> None:
    session_id = uuid4()

    first, again = await added(database, tenant, session_id), await added(database, tenant, session_id)
    elsewhere = await added(database, tenant, uuid4())
    otherwise = await added(database, tenant, session_id, OutboxKind.SWEEP)

    assert (first, again, elsewhere, otherwise) == (True, False, True, True)


@pytest.mark.parametrize("how", ["begun", "put off", "put aside"])
async def test_what_was_begun_or_put_off_does_not_stand_for_what_came_since(database: Database, tenant: Tenancy, how: str) -> None:
    """Who holds it may have read already; what failed may wait for minutes, or for ever."""
    session_id = uuid4()
    assert await added(database, tenant, session_id)
    [item] = await claim(database, tenant, "a")
    if how != "begun":
        await database.work(tenant.scope, lambda tx: outbox.fail(tx, item, "late", AFTER, how == "put aside"))

    assert await added(database, tenant, session_id)
