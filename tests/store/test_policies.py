"""What the catalogue says of the migrated database: row security everywhere, and keys that begin with the tenant."""

from __future__ import annotations

import re
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


def test_what_is_not_set_lets_nothing_pass(catalogue: psycopg.Connection) -> None:
    """Nothing is asked of a setting but to be equal to, or among, what stands in the row."""
    for table, policy, condition in _conditions(catalogue):
        open_ends = set(re.findall(r"\(?([^()\s]+|'[^']*')\)* IS (?:NOT )?NULL", condition))
        assert open_ends <= {"erased_at", "session_id"}, (table, policy)
        assert condition.count("current_setting('app.tenant_id'") == 1, (table, policy)
        assert " OR " not in condition.replace("(session_id IS NULL) OR (EXISTS", ""), (table, policy)


def test_a_row_becomes_nothing_that_it_could_not_have_been(catalogue: psycopg.Connection) -> None:
    rows = catalogue.execute("SELECT tablename, qual, with_check FROM pg_policies WHERE cmd IN ('UPDATE', 'ALL')").fetchall()

    assert rows
    assert [table for table, using, check in rows if using != check] == []


TIES = {
    "app_select": {
        "runs": {"s.tenant_id = runs.tenant_id", "s.session_id = runs.session_id"},
        "projections": {"s.tenant_id = projections.tenant_id", "s.session_id = projections.session_id"},
        "cache_entries": {"s.tenant_id = cache_entries.tenant_id", "s.session_id = cache_entries.session_id"},
        "entries": {"r.tenant_id = entries.tenant_id", "r.manifest_id = entries.manifest_id"},
        "segments": {
            "e.tenant_id = segments.tenant_id", "e.session_id = segments.session_id", "e.segment_sha256 = segments.sha256",
        },
        "blobs": {"e.tenant_id = blobs.tenant_id", "e.session_id = blobs.session_id", "e.blob_sha256 = blobs.sha256"},
        "reductions": {
            "g.tenant_id = reductions.tenant_id", "g.session_id = reductions.session_id", "g.sha256 = reductions.exact_sha256",
        },
    },
    "app_insert": {
        **{
            table: {f"s.tenant_id = {table}.tenant_id", f"s.session_id = {table}.session_id"}
            for table in ("outbox", "runs", "segments", "blobs", "reductions", "cache_entries")
        },
        "cache_ties": {"c.tenant_id = cache_ties.tenant_id", "c.entry_id = cache_ties.entry_id"},
        "entries": {
            "s.tenant_id = r.tenant_id", "s.session_id = r.session_id", "r.tenant_id = entries.tenant_id",
            "r.manifest_id = entries.manifest_id", "r.session_id = entries.session_id",
        },
    },
    "app_update": {"runs": {"s.tenant_id = runs.tenant_id", "s.session_id = runs.session_id"}},
}  # fmt: skip
"""What a policy's subquery has in common with its row: the whole key, the tenant with it."""


def test_every_subquery_is_tied_to_its_row_by_the_whole_key(catalogue: psycopg.Connection) -> None:
    for table, policy, condition in _conditions(catalogue):
        assert set(re.findall(r"\b[a-z]\.\w+ = \w+\.\w+", condition)) == TIES.get(policy, {}).get(table, set()), (table, policy)
        assert condition.count("EXISTS") == (1 if table in TIES.get(policy, {}) else 0), (table, policy)


def _conditions(catalogue: psycopg.Connection) -> list[tuple[str, str, str]]:
    """Each condition of each policy, as PostgreSQL writes it."""
    rows = catalogue.execute("SELECT tablename, policyname, qual, with_check FROM pg_policies").fetchall()
    return [(table, policy, condition) for table, policy, *both in rows for condition in both if condition is not None]
