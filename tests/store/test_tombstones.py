"""Tombstones: what was erased is known, and to whom."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

from coatcheck.domain.scopes import principal_key
from coatcheck.store import tombstones
from coatcheck.store.database import Database
from coatcheck.store.tombstones import Tombstone
from tests.tenants import EPOCH, Tenancy


async def test_a_stone_says_what_it_was_given(database: Database, tenant: Tenancy) -> None:
    scope = await tenant.principal()
    session_id, manifest_id = uuid4(), uuid4()
    acl = (principal_key(scope.principal_id),)

    await database.work(
        tenant.scope, lambda tx: tombstones.insert(tx, "manifest", ["a", "b", "a"], session_id, manifest_id, acl, EPOCH)
    )
    await database.work(tenant.scope, lambda tx: tombstones.insert(tx, "manifest", [], session_id, None, acl, EPOCH))

    found = await database.read(scope, lambda tx: tombstones.find(tx, "manifest", "b"))
    assert found == Tombstone("manifest", "b", session_id, manifest_id, acl, EPOCH)
    assert await database.read(scope, lambda tx: tombstones.find(tx, "session", "b")) is None
    asked = [("manifest", "a"), ("manifest", "c"), ("session", "a")]
    assert await database.work(tenant.scope, lambda tx: tombstones.existing(tx, asked)) == {("manifest", "a")}
    assert await database.work(tenant.scope, lambda tx: tombstones.existing(tx, [])) == set()


async def test_the_same_text_erased_from_two_sessions_is_known_to_the_readers_of_both(database: Database, tenant: Tenancy) -> None:
    one, other, nobody = await tenant.principal(), await tenant.principal(), await tenant.principal()
    first = uuid4()

    for scope, session_id, at in ((one, first, EPOCH), (other, uuid4(), EPOCH + timedelta(days=1))):
        acl = [principal_key(scope.principal_id)]
        await database.work(
            tenant.scope,
            lambda tx, acl=acl, s=session_id, at=at: tombstones.insert(tx, "segment", ["sha"], s, None, acl, at),  # type: ignore[misc]
        )

    found = [await database.read(scope, lambda tx: tombstones.find(tx, "segment", "sha")) for scope in (one, other, nobody)]
    assert found[2] is None
    assert found[0] == found[1]
    assert found[0] is not None
    assert (found[0].session_id, found[0].erased_at) == (first, EPOCH)
