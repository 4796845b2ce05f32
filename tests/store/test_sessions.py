"""Sessions: names, reading, writing, erasure."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

from coatcheck.domain.sessions import Visibility
from coatcheck.store import sessions
from coatcheck.store.database import Database
from tests.store.made import session_of, store_run, store_session
from tests.tenants import EPOCH, Tenancy


async def test_a_session_comes_back_as_it_was_stored(database: Database, tenant: Tenancy) -> None:
    scope = await tenant.principal()
    session = session_of(scope, name="checkout-bot/42 ☕", participants=[uuid4()])

    stored = await database.write(scope, lambda tx: sessions.insert(tx, session))

    assert stored
    assert await database.read(scope, lambda tx: sessions.find(tx, session.session_id)) == session
    assert await database.read(scope, lambda tx: sessions.find_by_name(tx, scope.principal_id, session.name)) == session


async def test_a_name_is_unique_for_its_owner_and_free_for_anybody_else(database: Database, tenant: Tenancy) -> None:
    mine, yours = await tenant.principal(), await tenant.principal()
    await store_session(database, mine, name="the same")

    again = await database.write(mine, lambda tx: sessions.insert(tx, session_of(mine, name="the same")))
    elsewhere = await database.write(yours, lambda tx: sessions.insert(tx, session_of(yours, name="the same")))

    assert (again, elsewhere) == (False, True)


async def test_a_name_is_free_again_once_its_session_is_erased(database: Database, tenant: Tenancy) -> None:
    scope = await tenant.principal()
    first = await store_session(database, scope, name="again")

    erased = await database.work(tenant.scope, lambda tx: sessions.mark_erased(tx, first.session_id, EPOCH))
    second = await store_session(database, scope, name="again")

    assert erased is not None
    assert erased.erased_at == EPOCH
    found = await database.read(scope, lambda tx: sessions.find_by_name(tx, scope.principal_id, "again"))
    assert found == second


async def test_an_erased_session_is_unreachable_but_for_the_worker_and_is_erased_once(database: Database, tenant: Tenancy) -> None:
    scope = await tenant.principal()
    session = await store_session(database, scope)

    await database.work(tenant.scope, lambda tx: sessions.mark_erased(tx, session.session_id, EPOCH))

    assert await database.read(scope, lambda tx: sessions.find(tx, session.session_id)) is None
    assert await database.work(tenant.scope, lambda tx: sessions.find(tx, session.session_id)) is None
    left = await database.work(tenant.scope, lambda tx: sessions.find_any(tx, session.session_id))
    assert left is not None
    again = await database.work(tenant.scope, lambda tx: sessions.mark_erased(tx, session.session_id, EPOCH + timedelta(days=1)))
    assert again is None


async def test_pages_go_from_the_newest_to_the_oldest_with_counts(database: Database, tenant: Tenancy) -> None:
    scope = await tenant.principal()
    made = [await store_session(database, scope) for _ in range(5)]
    await store_run(database, scope, made[0], ["one", "two", "two"])

    first = await database.read(scope, lambda tx: sessions.page(tx, None, 3))
    last = first[-1].session
    second = await database.read(scope, lambda tx: sessions.page(tx, (last.created_at, last.session_id), 3))

    shown = [*first, *second]
    assert [s.session.session_id for s in shown] == sorted((s.session_id for s in made), reverse=True)
    counted = {s.session.session_id: (s.manifests, s.segments) for s in shown}
    assert counted[made[0].session_id] == (1, 2)
    assert counted[made[1].session_id] == (0, 0)
    assert await database.read(scope, lambda tx: sessions.summary(tx, made[0].session_id)) in shown


async def test_a_page_within_some_sessions_shows_no_other(database: Database, tenant: Tenancy) -> None:
    scope = await tenant.principal()
    made = [await store_session(database, scope) for _ in range(3)]

    within = frozenset({made[1].session_id})
    found = await database.read(scope, lambda tx: sessions.page(tx, None, 10, within))

    assert [s.session for s in found] == [made[1]]
    assert await database.read(scope, lambda tx: sessions.page(tx, None, 10, frozenset())) == []


async def test_narrowing_closes_a_session_at_once(database: Database, tenant: Tenancy) -> None:
    owner, reader = await tenant.principal(), await tenant.principal()
    session = await store_session(database, owner, participants=[reader.principal_id])
    assert await database.read(reader, lambda tx: sessions.find(tx, session.session_id)) is not None

    personal = Visibility("personal")
    keys = personal.readers(owner.principal_id, ())
    changed = await database.work(
        tenant.scope, lambda tx: sessions.set_visibility(tx, session.session_id, personal, [], keys, keys)
    )

    assert changed is not None
    assert (changed.visibility, changed.participants, changed.acl) == (personal, (), keys)
    assert await database.read(reader, lambda tx: sessions.find(tx, session.session_id)) is None


async def test_deleting_leaves_no_row_of_the_session(database: Database, tenant: Tenancy) -> None:
    scope = await tenant.principal()
    doomed, spared = await store_session(database, scope), await store_session(database, scope)
    for session in (doomed, spared):
        await store_run(database, scope, session, ["the same text", "and another"])

    await database.work(tenant.scope, lambda tx: sessions.delete(tx, doomed.session_id))

    assert await database.work(tenant.scope, lambda tx: sessions.find_any(tx, doomed.session_id)) is None
    summary = await database.read(scope, lambda tx: sessions.summary(tx, spared.session_id))
    assert summary is not None
    assert (summary.manifests, summary.segments) == (1, 2)
