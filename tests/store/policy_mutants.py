"""Ways to get the policies wrong, made from store/policies.py: each removes or widens something that keeps people apart.

A new policy is mutated like the others; a new kind of mistake is one line in ``EDITS`` or ``AROUND``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from coatcheck.store import policies
from coatcheck.store.policies import ACL, TENANT, Policy
from coatcheck.store.schema import APP_ROLE, LOGIN_ROLE, WORKER_ROLE

UNSET = "nullif(current_setting('app.tenant_id', true), '') IS NULL"
NO_KEYS = "nullif(current_setting('app.acl', true), '') IS NULL"

EDITS: tuple[tuple[str, str, str], ...] = (
    ("the tenant is not asked for", re.escape(TENANT), "true"),
    ("an unset tenant is every tenant", re.escape(TENANT), f"({TENANT} OR {UNSET})"),
    ("a tenant is enough", rf"{re.escape(TENANT)} AND", f"{TENANT} OR"),
    ("the reading keys are not asked for", rf"\bacl && {re.escape(ACL)}", "true"),
    ("no keys read everything", rf"\bacl && {re.escape(ACL)}", f"(acl && {ACL} OR {NO_KEYS})"),
    ("the writing keys are not asked for", rf"(?:s\.)?writers && {re.escape(ACL)}", "true"),
    ("who reads writes", r"(s\.)?\bwriters &&", r"\1acl &&"),
    ("what is erased counts", "erased_at IS NULL", "true"),
    ("the owner may be another", rf"{re.escape(ACL)} @> ARRAY\['p:' \|\| (?:c\.)?\w+::text\]", "true"),
    ("one condition less between two rows", r"\b[a-z]\.\w+ = \w+\.\w+", "true"),
    ("an answer for several", r"cardinality\(acl\) = 1", "true"),
    ("an answer for others", rf"acl <@ {re.escape(ACL)}", "true"),
    ("everything", r".*", "true"),
)
"""What is written instead of what matches, once at each place where it does."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One mistake: the statements that make it, and the table that it is about."""

    name: str
    table: str
    statements: tuple[str, ...]


def mutants() -> list[Mutant]:
    """All of them, each once."""
    found = {mutant.statements: mutant for mutant in (*_of_policies(), *_around())}
    return list(found.values())


def _of_policies() -> Iterator[Mutant]:
    for policy in policies.policies():
        for part in ("using", "check"):
            condition = getattr(policy, part)
            for name, pattern, instead in EDITS:
                for match in re.finditer(pattern, condition or ""):
                    if match[0]:
                        edited = condition[: match.start()] + match.expand(_literal(instead)) + condition[match.end() :]
                        yield _instead(f"{part}: {name}", policy, replace(policy, **{part: edited}))
            if condition and (span := _subquery(condition)):
                edited = condition[: span[0]] + "true" + condition[span[1] :]
                yield _instead(f"{part}: any session will do", policy, replace(policy, **{part: edited}))
        yield _instead("for everybody", policy, replace(policy, role="PUBLIC"))
        if policy.check:
            yield _instead("without WITH CHECK", policy, replace(policy, check=None))
        if policy.command == "SELECT":
            yield _instead("for every command", policy, replace(policy, command="ALL"))
        yield Mutant("a second policy lets everything pass", policy.table, (f"CREATE POLICY more ON {policy.table} USING (true)",))


def _around() -> Iterator[Mutant]:
    """Beside the policies: row security itself, privileges, roles, and ways past a table."""
    for table in policies.tables_with_row_security():
        yield Mutant("no FORCE", table, (f"ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY",))
        yield Mutant("no row security", table, (f"ALTER TABLE {table} DISABLE ROW LEVEL SECURITY",))
        for privilege in ("UPDATE", "DELETE", "TRUNCATE"):
            yield Mutant(f"the app may {privilege}", table, (f"GRANT {privilege} ON {table} TO {APP_ROLE}",))
        for role in (LOGIN_ROLE, "PUBLIC"):
            yield Mutant(f"{role} may read", table, (f"GRANT SELECT ON {table} TO {role}",))
        yield Mutant("a view of its owner's", table, (f"CREATE VIEW around AS SELECT * FROM {table}",))
        yield Mutant(
            "the app owns it", table, (f"GRANT CREATE ON SCHEMA public TO {APP_ROLE}", f"ALTER TABLE {table} OWNER TO {APP_ROLE}")
        )
    for role in (APP_ROLE, WORKER_ROLE, LOGIN_ROLE):
        for attribute in ("BYPASSRLS", "SUPERUSER", "CREATEROLE"):
            yield Mutant(f"{role} is {attribute}", "sessions", (f"ALTER ROLE {role} {attribute}",))
    yield Mutant(
        "a function with its owner's rights",
        "sessions",
        ("CREATE FUNCTION around() RETURNS bigint LANGUAGE sql SECURITY DEFINER AS 'SELECT count(*) FROM sessions'",),
    )
    yield Mutant("the app reads keys", "api_keys", (f"GRANT SELECT ON api_keys TO {APP_ROLE}",))


def _instead(name: str, policy: Policy, mutated: Policy) -> Mutant:
    return Mutant(f"{policy.name}, {name}", policy.table, (f"DROP POLICY {policy.name} ON {policy.table}", mutated.statement))


def _subquery(condition: str) -> tuple[int, int] | None:
    """Where the condition's subquery stands."""
    start = condition.find("EXISTS (")
    if start < 0:
        return None
    depth = 0
    for place in range(start, len(condition)):
        depth += {"(": 1, ")": -1}.get(condition[place], 0)
        if depth == 0 and condition[place] == ")":
            return start, place + 1
    raise ValueError("a bracket is missing")


def _literal(instead: str) -> str:
    """As a template for ``expand``: only our own back references are references."""
    return re.sub(r"\\(?!1)", r"\\\\", instead)
