"""What the catalogue says of the migrated database: row security everywhere, and keys that begin with the tenant."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from coatcheck.store import policies
from coatcheck.store.schema import APP_ROLE, LOGIN_ROLE, OWNER_ROLE, WORKER_ROLE
from tests.postgres import Postgres

OPEN_TABLES = {"alembic_version", "tenants", "issuers", "generations", "root_keys"}


@pytest.fixture(scope="module")
def catalogue(postgres: Postgres) -> Iterator[psycopg.Connection]:
    with postgres.clone() as name, psycopg.connect(postgres.owner_url(name).replace("+psycopg", "")) as connection:
        yield connection


def test_T15_row_security_is_enabled_and_forced_on_every_table_but_five(catalogue: psycopg.Connection) -> None:
    rows = catalogue.execute(
        "SELECT relname, relrowsecurity, relforcerowsecurity FROM pg_class"
        " WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')"
    ).fetchall()

    assert {name for name, enabled, forced in rows if not (enabled and forced)} == OPEN_TABLES
    assert not {name for name, enabled, forced in rows if enabled != forced}
    assert policies.WITHOUT_ROW_SECURITY == OPEN_TABLES


def test_T15_no_relation_is_a_way_around_row_security(catalogue: psycopg.Connection) -> None:
    kinds = catalogue.execute(
        "SELECT relkind, count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace GROUP BY relkind"
    ).fetchall()
    functions = catalogue.execute(
        "SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace AND prosecdef"
    ).fetchall()

    assert {kind for kind, _ in kinds} == {"r", "i"}  # no view, no materialised view, no sequence, no foreign table
    assert functions == []


def test_T15_no_role_that_serves_owns_anything_or_bypasses_anything(catalogue: psycopg.Connection) -> None:
    roles = catalogue.execute(
        "SELECT rolname, rolsuper, rolbypassrls, rolcreaterole, rolcreatedb, rolcanlogin FROM pg_roles WHERE rolname = ANY (%s)",
        [[APP_ROLE, WORKER_ROLE, LOGIN_ROLE, OWNER_ROLE]],
    ).fetchall()
    owners = catalogue.execute("SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname = 'public'").fetchall()
    members = catalogue.execute(
        "SELECT m.rolname FROM pg_auth_members JOIN pg_roles m ON m.oid = member JOIN pg_roles r ON r.oid = roleid"
        " WHERE r.rolname = %s AND NOT m.rolsuper",
        [OWNER_ROLE],
    ).fetchall()

    assert len(roles) == 4
    assert {row[0]: any(row[1:5]) for row in roles} == dict.fromkeys((APP_ROLE, WORKER_ROLE, LOGIN_ROLE, OWNER_ROLE), False)
    assert {row[0] for row in roles if row[5]} == {LOGIN_ROLE}
    assert owners == [(OWNER_ROLE,)]
    assert members == []


def test_every_policy_tests_what_its_command_needs_and_names_the_tenant(catalogue: psycopg.Connection) -> None:
    rows = catalogue.execute(
        "SELECT tablename, policyname, permissive, roles, cmd, qual, with_check FROM pg_policies WHERE schemaname = 'public'"
    ).fetchall()

    needs = {"SELECT": (True, False), "INSERT": (False, True), "UPDATE": (True, True), "ALL": (True, True), "DELETE": (True, False)}
    assert rows
    for table, policy, permissive, roles, command, using, check in rows:
        assert permissive == "PERMISSIVE"
        assert roles in ([APP_ROLE], [WORKER_ROLE]), (table, policy)
        assert (using is not None, check is not None) == needs[command], (table, policy)
        for condition in (using, check):
            assert condition is None or "current_setting('app.tenant_id'" in condition, (table, policy)


def test_the_tables_of_a_session_ask_for_its_acl_to_read_and_its_writers_to_write(catalogue: psycopg.Connection) -> None:
    rows = catalogue.execute(
        "SELECT tablename, cmd, coalesce(qual, '') || coalesce(with_check, '') FROM pg_policies WHERE roles = ARRAY[%s]::name[]",
        [APP_ROLE],
    ).fetchall()
    conditions = {(table, command): condition for table, command, condition in rows}

    for table in ("sessions", "runs", "segments", "reductions", "blobs", "entries", "outbox"):
        assert "writers && " in conditions[table, "INSERT"], table
    assert "acl && " in conditions["sessions", "SELECT"]
    assert "acl && " in conditions["tombstones", "SELECT"]
    assert "writers && " in conditions["runs", "UPDATE"]
    assert not [key for key in conditions if key[1] in ("ALL", "DELETE")]


def test_T12_every_unique_index_and_foreign_key_of_a_tenants_table_begins_with_the_tenant(catalogue: psycopg.Connection) -> None:
    firsts = catalogue.execute("""
        SELECT t.relname, i.relname, a.attname
          FROM pg_index x JOIN pg_class t ON t.oid = x.indrelid JOIN pg_class i ON i.oid = x.indexrelid
          JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = x.indkey[0]
         WHERE t.relnamespace = 'public'::regnamespace AND x.indisunique
        UNION ALL
        SELECT t.relname, c.conname, a.attname
          FROM pg_constraint c JOIN pg_class t ON t.oid = c.conrelid
          JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = c.conkey[1]
         WHERE t.relnamespace = 'public'::regnamespace AND c.contype = 'f'
        UNION ALL
        SELECT t.relname, c.conname || ' (referenced)', a.attname
          FROM pg_constraint c JOIN pg_class t ON t.oid = c.conrelid
          JOIN pg_attribute a ON a.attrelid = c.confrelid AND a.attnum = c.confkey[1]
         WHERE t.relnamespace = 'public'::regnamespace AND c.contype = 'f'
    """).fetchall()

    tenant_tables = [row for row in firsts if row[0] not in OPEN_TABLES]
    assert len({row[0] for row in tenant_tables}) == len(policies.tables_with_row_security())
    assert [row for row in tenant_tables if row[2] != "tenant_id"] == []


def test_the_app_may_change_nothing_but_leases_and_delete_nothing(catalogue: psycopg.Connection) -> None:
    tables = catalogue.execute(
        "SELECT table_name, privilege_type FROM information_schema.role_table_grants WHERE grantee = %s", [APP_ROLE]
    ).fetchall()
    columns = catalogue.execute(
        "SELECT table_name, column_name FROM information_schema.column_privileges WHERE grantee = %s AND privilege_type = 'UPDATE'",
        [APP_ROLE],
    ).fetchall()

    assert {privilege for _, privilege in tables} == {"SELECT", "INSERT"}
    assert not [table for table, _ in tables if table in OPEN_TABLES or table == "api_keys"]
    assert sorted(columns) == [("runs", "lease_fence"), ("runs", "lease_owner"), ("runs", "lease_until")]


def test_the_login_and_the_public_hold_nothing(catalogue: psycopg.Connection) -> None:
    held = catalogue.execute(
        "SELECT grantee, table_name FROM information_schema.role_table_grants"
        " WHERE table_schema = 'public' AND grantee IN (%s, 'PUBLIC')",
        [LOGIN_ROLE],
    ).fetchall()

    assert held == []
