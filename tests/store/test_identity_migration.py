"""Keys and principals from before there were roles: what they could do they still can, and no more than that."""

from __future__ import annotations

from uuid import uuid4

import sqlalchemy as sa
from alembic import command

from coatcheck.identity.operations import MEMBER, OPERATORS_CORE
from coatcheck.store.migrate import config, owner_connection
from tests.postgres import Postgres

OLD_MEMBER = ["compact", "recall", "read", "sessions", "erase", "publish", "export"]
OLD_OPERATOR = [*OLD_MEMBER, "import", "keys", "scan", "repair", "reconcile", "redact"]


def test_old_keys_keep_what_they_grant_and_their_principals_get_the_role_for_it(postgres: Postgres) -> None:
    tenant, rows = uuid4(), {name: uuid4() for name in ("operator", "member", "bot", "reader", "keyless")}
    granted = {"operator": OLD_OPERATOR, "member": OLD_MEMBER, "bot": ["scan"], "reader": ["read"]}
    with postgres.empty_database() as name, owner_connection(postgres.owner_url(name)) as connection:
        command.upgrade(config(connection), "0005")
        connection.commit()
        with sa.create_engine(postgres.owner_url(name), poolclass=sa.NullPool).begin() as before:
            before.execute(sa.text("INSERT INTO tenants (tenant_id, name, key_fingerprint) VALUES (:t, 't', 'f')"), {"t": tenant})
            for who, principal in rows.items():
                before.execute(
                    sa.text("INSERT INTO principals (tenant_id, principal_id, name, subject) VALUES (:t, :p, :n, :n)"),
                    {"t": tenant, "p": principal, "n": who},
                )
            for who, operations in granted.items():
                before.execute(
                    sa.text(
                        "INSERT INTO api_keys (tenant_id, key_id, principal_id, name, secret_hash, operations)"
                        " VALUES (:t, :k, :p, :n, 'hash', :o)"
                    ),
                    {"t": tenant, "k": uuid4(), "p": rows[who], "n": who, "o": operations},
                )

        command.upgrade(config(connection), "head")
        connection.commit()
        with sa.create_engine(postgres.owner_url(name), poolclass=sa.NullPool).connect() as after:
            roles = {name: role for name, role in after.execute(sa.text("SELECT name, role FROM principals"))}
            subjects = set(after.scalars(sa.text("SELECT subject FROM principals")))
            grants = {name: set(given) for name, given in after.execute(sa.text("SELECT name, operations FROM api_keys"))}
            forced = set(
                after.scalars(sa.text("SELECT relforcerowsecurity FROM pg_class WHERE relname IN ('principals', 'api_keys')"))
            )

    assert roles == {"operator": "operator", "bot": "operator", "member": "member", "reader": "member", "keyless": "member"}
    assert subjects == {None}
    assert grants["operator"] >= set(OLD_OPERATOR) | {"principals", "audit", "delegate"} >= OPERATORS_CORE
    assert grants["member"] == set(MEMBER)
    assert (grants["bot"], grants["reader"]) == ({"scan"}, {"read"})
    assert forced == {True}
