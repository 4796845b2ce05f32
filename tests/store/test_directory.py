"""Tenants, keys, principals and teams; generations and the audit."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from coatcheck.domain.actors import THE_SERVICE, Actor
from coatcheck.domain.errors import CoatcheckError
from coatcheck.store import audit, directory, generations, principals, teams
from coatcheck.store.database import Database, WorkerTransaction
from coatcheck.store.directory import ApiKeyRow, Tenant
from coatcheck.store.generations import GenerationRow
from coatcheck.store.principals import Principal
from tests.tenants import EPOCH, Tenancy


def key_of(principal_id: object, **options: object) -> ApiKeyRow:
    row = ApiKeyRow(uuid4(), principal_id, "laptop", b"\0hash", 2, frozenset({"read", "recall"}), None, EPOCH, None, None)  # type: ignore[arg-type]
    return replace(row, **options)  # type: ignore[arg-type]


async def revision(database: Database, tenant: Tenancy) -> int:
    row = await database.work(tenant.scope, directory.find_tenant)
    assert row is not None
    return row.permission_revision


async def test_a_tenant_is_made_once_for_each_name(database: Database) -> None:
    tenant = Tenant(uuid4(), f"name {uuid4()}", "active", "fingerprint", EPOCH)
    namesake = replace(tenant, tenant_id=uuid4())

    made = [await database.directory(lambda tx, t=t: directory.insert_tenant(tx, t)) for t in (tenant, namesake)]  # type: ignore[misc]

    assert made == [True, False]
    assert tenant in await database.directory(directory.tenants)


async def test_a_key_comes_back_as_it_was_stored_and_under_its_tenant_alone(
    database: Database, tenant: Tenancy, other_tenant: Tenancy
) -> None:
    scope = await tenant.principal()
    key = key_of(scope.principal_id, sessions=frozenset({uuid4(), uuid4()}), expires_at=EPOCH + timedelta(days=1))

    await database.work(tenant.scope, lambda tx: directory.insert_key(tx, key))

    assert await database.work(tenant.scope, lambda tx: directory.find_key(tx, key.key_id)) == key
    assert await database.work(other_tenant.scope, lambda tx: directory.find_key(tx, key.key_id)) is None
    with pytest.raises(CoatcheckError, match="42501"):
        await database.read(scope, lambda tx: directory.find_key(tx, key.key_id))  # type: ignore[arg-type]


async def test_a_key_is_revoked_at_its_first_revocation(database: Database, tenant: Tenancy) -> None:
    scope = await tenant.principal()
    key = key_of(scope.principal_id)
    await database.work(tenant.scope, lambda tx: directory.insert_key(tx, key))

    first = await database.work(tenant.scope, lambda tx: directory.revoke_key(tx, key.key_id, EPOCH))
    second = await database.work(tenant.scope, lambda tx: directory.revoke_key(tx, key.key_id, EPOCH + timedelta(days=1)))

    assert first == second == replace(key, revoked_at=EPOCH)
    assert await database.work(tenant.scope, lambda tx: directory.revoke_key(tx, uuid4(), EPOCH)) is None


async def test_keys_are_paged_by_id(database: Database, tenant: Tenancy) -> None:
    scope = await tenant.principal()
    keys = sorted((key_of(scope.principal_id) for _ in range(5)), key=lambda key: key.key_id)
    for key in keys:
        await database.work(tenant.scope, lambda tx, key=key: directory.insert_key(tx, key))  # type: ignore[misc]

    first = await database.work(tenant.scope, lambda tx: directory.page_keys(tx, None, 3, None, None))
    second = await database.work(tenant.scope, lambda tx: directory.page_keys(tx, first[-1].key_id, 3, None, None))

    assert [*first, *second] == keys


async def test_principals_have_the_teams_they_joined_and_have_not_left(database: Database, tenant: Tenancy) -> None:
    principal_id, stays, leaves = uuid4(), uuid4(), uuid4()

    async def work(tx: WorkerTransaction) -> None:
        await principals.insert(tx, principal_id, "ada")
        await principals.insert(tx, principal_id, "another name")
        for team_id in (stays, leaves):
            await teams.insert(tx, team_id, "team", EPOCH)
            await teams.join(tx, principal_id, team_id, EPOCH)
        await teams.leave(tx, principal_id, leaves)

    await database.work(tenant.scope, work)

    found = await database.work(tenant.scope, lambda tx: principals.find(tx, principal_id))
    assert found is not None
    assert found == Principal(principal_id, "ada", "member", "active", None, None, found.created_at, frozenset({stays}), 4)
    known = await database.work(tenant.scope, lambda tx: principals.existing(tx, [principal_id, uuid4()]))
    assert known == {principal_id}


async def test_the_first_operator_is_the_oldest_that_is_one_and_active(database: Database, tenant: Tenancy) -> None:
    member, left, first, second = (
        Principal(uuid4(), "somebody", role, status, None, None, EPOCH + timedelta(days=day))
        for day, (role, status) in enumerate([("member", "active"), ("operator", "inactive"), *[("operator", "active")] * 2])
    )

    async def add(tx: WorkerTransaction, *who: Principal) -> UUID | None:
        for one in who:
            await principals.add(tx, one)
            await principals.update(tx, one)
        return await principals.first_operator(tx)

    assert await database.work(tenant.scope, lambda tx: add(tx, member, left)) is None
    assert await database.work(tenant.scope, lambda tx: add(tx, second, first)) == first.principal_id


async def rename(tx: WorkerTransaction, principal_id: UUID) -> None:
    found = await principals.lock(tx, principal_id)
    assert found is not None
    assert await principals.update(tx, replace(found, name="another"))


async def test_a_change_of_rights_raises_the_revision_of_those_whom_it_concerns(database: Database, tenant: Tenancy) -> None:
    one, other = await tenant.principal(), await tenant.principal()
    team_id, key = uuid4(), key_of(one.principal_id)
    await database.work(tenant.scope, lambda tx: teams.insert(tx, team_id, "team", EPOCH))
    changes = [
        lambda tx: directory.insert_key(tx, key),
        lambda tx: directory.revoke_key(tx, key.key_id, EPOCH),
        lambda tx: teams.join(tx, one.principal_id, team_id, EPOCH),
        lambda tx: teams.leave(tx, one.principal_id, team_id),
        lambda tx: teams.join(tx, one.principal_id, team_id, EPOCH),
        lambda tx: teams.delete(tx, team_id),
        lambda tx: rename(tx, one.principal_id),
    ]

    async def revisions() -> list[int]:
        async def work(tx: WorkerTransaction) -> list[int]:
            found = [await principals.find(tx, who.principal_id) for who in (one, other)]
            return [principal.permission_revision for principal in found if principal is not None]

        return await database.work(tenant.scope, work)

    for change in changes:
        before = await revisions()
        await database.work(tenant.scope, change)
        after = await revisions()
        assert after[0] > before[0]
        assert after[1] == before[1]


async def test_every_change_of_rights_raises_the_permission_revision(database: Database, tenant: Tenancy) -> None:
    scope = await tenant.principal()
    team_id, key = uuid4(), key_of(scope.principal_id)
    changes = [
        lambda tx: directory.insert_key(tx, key),
        lambda tx: directory.revoke_key(tx, key.key_id, EPOCH),
        lambda tx: principals.insert(tx, uuid4(), "new"),
        lambda tx: teams.insert(tx, team_id, "team", EPOCH),
        lambda tx: teams.join(tx, scope.principal_id, team_id, EPOCH),
        lambda tx: teams.leave(tx, scope.principal_id, team_id),
        lambda tx: teams.delete(tx, team_id),
        lambda tx: rename(tx, scope.principal_id),
    ]

    for change in changes:
        before = await revision(database, tenant)
        await database.work(tenant.scope, change)
        assert await revision(database, tenant) > before


async def test_the_current_generation_is_the_newest(fresh_database_url: str) -> None:
    database = await Database.connect(fresh_database_url)
    first = GenerationRow(1, "embedder-1", 384, "analyser-1", {"dense": 1.0, "lexical": 2.0, "k": 60}, "serving")
    second = replace(first, generation=2, embedder_revision="embedder-2", status="building")

    assert await database.directory(generations.current) is None
    for row in (first, second):
        await database.directory(lambda tx, row=row: generations.insert(tx, row))  # type: ignore[misc]
        assert await database.directory(generations.current) == row
    await database.directory(lambda tx: generations.set_status(tx, 2, "serving"))

    assert await database.directory(generations.current) == replace(second, status="serving")
    await database.close()


async def test_the_audit_is_written_by_everybody_and_read_by_operators(database: Database, tenant: Tenancy) -> None:
    scope = await tenant.principal()
    first, second = sorted([uuid4(), uuid4()])
    delegate = uuid4()

    await database.write(
        scope, lambda tx: audit.record(tx, first, Actor(scope.principal_id, delegate), "session.patch", "session", "an id")
    )
    await database.work(tenant.scope, lambda tx: audit.record(tx, second, THE_SERVICE, "key.revoke", "key", "another"))

    rows = await database.work(tenant.scope, lambda tx: audit.page(tx, None, 10))
    assert [(row.audit_id, row.principal_id, row.delegation_id, row.action) for row in rows] == [
        (first, scope.principal_id, delegate, "session.patch"),
        (second, None, None, "key.revoke"),
    ]
    assert [row.audit_id for row in await database.work(tenant.scope, lambda tx: audit.page(tx, first, 10))] == [second]
    with pytest.raises(CoatcheckError, match="42501"):
        await database.read(scope, lambda tx: audit.page(tx, None, 10))  # type: ignore[arg-type]
