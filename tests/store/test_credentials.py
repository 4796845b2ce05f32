"""Credentials as authentication finds them: everything that is stored of one, and of those above it what is narrower."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from uuid import UUID, uuid4

from coatcheck.domain.scopes import TenantScope
from coatcheck.identity.doors import EVERY_DOOR, Door
from coatcheck.identity.operations import MEMBER, Role
from coatcheck.identity.ports import KeyRecord, RightsRecord
from coatcheck.store import credentials, delegations, directory, issuers, principals
from coatcheck.store.database import Database, WorkerTransaction
from coatcheck.store.delegations import DelegationRow
from coatcheck.store.directory import ApiKeyRow
from coatcheck.store.issuers import IssuerRow
from coatcheck.store.principals import Principal
from tests.tenants import EPOCH, Tenancy

ENDS = EPOCH + timedelta(days=1)
ISSUER = "https://login.example/"


def delegation(ada: Principal, name: str, **options: object) -> DelegationRow:
    row = DelegationRow(
        uuid4(), ada.principal_id, None, None, None, 1, name, name.encode(), 3, MEMBER, None, frozenset(Door), EPOCH, ENDS, None
    )  # fmt: skip
    return replace(row, **options)  # type: ignore[arg-type]


async def rights_of(tx: WorkerTransaction, ada: Principal, **options: object) -> RightsRecord:
    """Ada's own, with what a credential of hers says."""
    tenant, now = await directory.find_tenant(tx), await principals.find(tx, ada.principal_id)
    assert tenant is not None
    assert now is not None
    assert now.permission_revision not in (0, tenant.permission_revision)
    rights = RightsRecord(
        tx.scope.tenant_id, ada.principal_id, Role.OPERATOR, True, True, frozenset(), tenant.permission_revision,
        now.permission_revision, None, None, None, None, EVERY_DOOR,
    )  # fmt: skip
    return replace(rights, **options)  # type: ignore[arg-type]


async def test_a_credential_is_found_with_all_that_is_stored_of_it(database: Database, tenant: Tenancy) -> None:
    await tenant.principal()  # so that the tenant's revision is another one than Ada's
    ada = Principal(uuid4(), "ada", "operator", "active", f"{ISSUER}{tenant.tenant_id}", "ada", EPOCH)
    key = ApiKeyRow(
        uuid4(), ada.principal_id, "laptop", b"of the key", 2, frozenset({"read", "recall"}), frozenset({UUID(int=5)}), EPOCH,
        ENDS, None,
    )  # fmt: skip
    agent = delegation(ada, "agent", parent_key_id=key.key_id, audience=frozenset({"api", "a door to come"}))
    helper = delegation(ada, "helper", parent_delegation_id=agent.delegation_id, depth=2, expires_at=EPOCH, revoked_at=EPOCH)
    of_token = delegation(ada, "of a token", parent_issuer=ada.issuer)

    async def work(tx: WorkerTransaction) -> None:
        await issuers.insert(tx, IssuerRow(str(ada.issuer), tenant.tenant_id, "https://keys.example/", "us", EPOCH))
        await principals.add(tx, ada)
        await directory.insert_key(tx, key)
        for row in (agent, helper, of_token):
            await delegations.insert(tx, row, forget_before=EPOCH)
        await delegations.revoke(tx, helper, EPOCH)

        own = await rights_of(tx, ada)
        of_key = replace(own, operations=key.operations, sessions=key.sessions, expires_at=ENDS)
        assert await credentials.find_key(tx, key.key_id) == KeyRecord(key.key_id, b"of the key", 2, of_key)
        narrowed = replace(of_key, doors=frozenset({Door.API}))
        found = await credentials.find_delegation(tx, agent.delegation_id)
        assert found == KeyRecord(agent.delegation_id, b"agent", 3, narrowed)
        ended = replace(narrowed, expires_at=EPOCH, revoked_at=EPOCH)
        found = await credentials.find_delegation(tx, helper.delegation_id)
        assert found == KeyRecord(helper.delegation_id, b"helper", 3, ended)
        unkept = replace(own, operations=MEMBER, expires_at=ENDS)
        found = await credentials.find_delegation(tx, of_token.delegation_id)
        assert found == KeyRecord(of_token.delegation_id, b"of a token", 3, unkept)
        assert await credentials.find_subject(tx, str(ada.issuer), "ada") == own

    await database.work(tenant.scope, work)


async def test_what_is_not_there_is_not_found_be_it_a_tenant_that_is_missing(database: Database, tenant: Tenancy) -> None:
    async def work(tx: WorkerTransaction) -> None:
        assert await credentials.find_key(tx, uuid4()) is None
        assert await credentials.find_delegation(tx, uuid4()) is None
        assert await credentials.find_subject(tx, ISSUER, "ada") is None

    for scope in (tenant.scope, TenantScope(uuid4())):
        await database.work(scope, work)
