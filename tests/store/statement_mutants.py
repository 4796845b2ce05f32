"""Ways to get the statements wrong that put a scope in force and that take rights back, made from the statements themselves."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import sqlalchemy as sa

from coatcheck.store import database, permission

OF_CLAIM: tuple[tuple[str, str, str], ...] = (
    # Whether a transaction may write ends with it whatever is said.
    ("outlives the transaction", r"(?<!%\(read_only\)s), true\)", ", false)"),
    ("claims no role", r"set_config\('role', [^\n]*, true\)", "''"),
    ("claims no tenant", r"set_config\('app\.tenant_id', [^\n]*, true\)", "''"),
    ("claims no keys", r"set_config\('app\.acl', [^\n]*, true\)", "''"),
    ("is not read only", r"set_config\('transaction_read_only', [^\n]*, true\)", "''"),
    ("is the worker's", r"%\(role\)s", "'coatcheck_worker'"),
    ("is of a tenant of its own", r"%\(tenant_id\)s", f"'{'0' * 8}-0000-4000-8000-{'0' * 12}'"),
    ("reads what is public alone", r"%\(acl\)s", "'{public}'"),
    ("may always write", r"%\(read_only\)s", "'off'"),
)
# A tenant's principals are row security's to keep apart, whatever these say of the tenant; the table of tenants has none.
OF_PERMISSION: tuple[tuple[str, str, str], ...] = (
    ("raises nothing", r"\+ 1", "+ 0"),
    ("concerns every tenant", r"(?<=UPDATE tenants SET permission_revision = permission_revision \+ 1) WHERE .*", ""),
    ("concerns every principal", r" AND principal_id = :principal", ""),
    ("concerns every principal", r" AND principal_id IN \(.*\)", ""),
    ("concerns every principal", r" AND issuer = :issuer", ""),
    ("concerns members of any team", r" AND team_id = :team", ""),
    ("concerns nobody", r"(?:team_id|issuer|principal_id) = :\w+", "false"),
)


@dataclass(frozen=True, slots=True)
class Mistake:
    """One statement, made wrong at one place."""

    name: str
    module: ModuleType
    statement: str
    wrong: str

    def __str__(self) -> str:
        return self.name

    @contextmanager
    def made(self) -> Iterator[None]:
        right: Any = getattr(self.module, self.statement)
        setattr(self.module, self.statement, self.wrong if isinstance(right, str) else sa.text(self.wrong))
        try:
            yield
        finally:
            setattr(self.module, self.statement, right)


def mistakes() -> list[Mistake]:
    """All of them."""
    found = list(_of(database, "_CLAIM", OF_CLAIM))
    for statement in ("_OF_TENANT", "_OF_PRINCIPAL", "_OF_MEMBERS", "_OF_SUBJECTS"):
        found += _of(permission, statement, OF_PERMISSION)
    return found


def _of(module: ModuleType, statement: str, edits: tuple[tuple[str, str, str], ...]) -> Iterator[Mistake]:
    right = str(getattr(module, statement))
    for name, pattern, instead in edits:
        for place, match in enumerate(re.finditer(pattern, right), 1):
            wrong = right[: match.start()] + instead + right[match.end() :]
            yield Mistake(f"{statement} {name} ({place})", module, statement, wrong)
