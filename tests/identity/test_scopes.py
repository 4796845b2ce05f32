"""Scopes are made by identity alone: a search of the source, since a type cannot say it."""

from __future__ import annotations

import ast
from pathlib import Path
from uuid import UUID

import pytest

from coatcheck.domain.scopes import NIL, Scope, TenantScope, kind_or_team
from coatcheck.identity.scopes import tenant_scope

SOURCE = Path(__file__).parents[2] / "service" / "coatcheck"


def test_nothing_outside_identity_makes_a_scope() -> None:
    makers = [
        f"{path.relative_to(SOURCE)}:{node.lineno}"
        for path in SOURCE.rglob("*.py")
        if path.relative_to(SOURCE).parts[0] != "identity"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and _name(node.func) in {"Scope", "TenantScope"}
    ]

    assert makers == []


def test_T10_a_scope_without_a_tenant_or_its_own_key_cannot_be_made() -> None:
    one = UUID(int=1)

    for make in (
        lambda: tenant_scope(NIL),
        lambda: TenantScope(NIL),
        lambda: Scope(NIL, one, (f"p:{one}",)),
        lambda: Scope(one, NIL, (f"p:{NIL}",)),
        lambda: Scope(one, one, ()),
        lambda: Scope(one, one, ("public",)),
        lambda: Scope(one, one, (f"p:{one}", "*")),
    ):
        with pytest.raises(ValueError, match=r"scope|acl"):
            make()


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("conversation", ("conversation", None)),
        (f"team:{UUID(int=7)}", ("team", UUID(int=7))),
        ("team", None),
        ("team:", None),
        ("team:everybody", None),
        (f"team:{UUID(int=7)}:{UUID(int=8)}", None),
        (f"teams:{UUID(int=7)}", None),
        ("tenant", None),
        ("conversation:x", None),
        ("", None),
    ],
)
def test_whom_something_is_for_is_one_of_the_kinds_or_one_team(text: str, meant: object) -> None:
    assert kind_or_team(text, ("conversation", "public")) == meant


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""
