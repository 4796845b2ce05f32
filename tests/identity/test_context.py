"""What a verified caller carries."""

from __future__ import annotations

import dataclasses
from datetime import timedelta
from uuid import UUID

import pytest

from coatcheck.domain.actors import Actor
from coatcheck.domain.errors import Forbidden
from coatcheck.domain.scopes import TenantScope
from coatcheck.identity.context import LEEWAY, Credential, CredentialKind, RequestContext
from coatcheck.identity.operations import DELEGABLE, EVERYTHING, MEMBER, OPERATOR, OPERATORS_CORE, Operation, Role
from tests.identity.directory import NOW


def context(**changes: object) -> RequestContext:
    plain = RequestContext(UUID(int=1), UUID(int=2), Credential(CredentialKind.KEY, "3", None), MEMBER, None, frozenset(), 0, 0)
    return dataclasses.replace(plain, **changes)  # type: ignore[arg-type]


def test_the_scope_holds_the_principal_its_teams_and_what_is_public() -> None:
    scope = context(teams=frozenset({UUID(int=5), UUID(int=4)})).scope

    assert scope.tenant_id == UUID(int=1)
    assert scope.acl == (f"p:{UUID(int=2)}", f"t:{UUID(int=4)}", f"t:{UUID(int=5)}", "public")


def test_what_is_done_for_the_tenant_is_done_for_the_callers_own() -> None:
    assert context().tenant_scope == TenantScope(UUID(int=1))


def test_the_audit_names_the_principal_and_the_delegation_that_it_acted_by() -> None:
    reference = str(UUID(int=9))

    for kind in (CredentialKind.KEY, CredentialKind.TOKEN):
        assert context(credential=Credential(kind, reference, None)).actor == Actor(UUID(int=2), None)
    delegated = context(credential=Credential(CredentialKind.DELEGATION, reference, None))
    assert delegated.actor == Actor(UUID(int=2), UUID(int=9))


@pytest.mark.parametrize("kind", list(CredentialKind))
def test_a_credential_is_over_at_its_end_and_a_token_when_two_clocks_may_agree_on_it(kind: CredentialKind) -> None:
    credential = Credential(kind, "3", NOW)
    leeway = LEEWAY if kind is CredentialKind.TOKEN else timedelta()

    assert not Credential(kind, "3", None).is_over(NOW)
    assert not credential.is_over(NOW + leeway - timedelta(microseconds=1))
    assert credential.is_over(NOW + leeway)
    assert timedelta(seconds=30) == LEEWAY


def test_a_context_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        context().tenant_id = UUID(int=9)  # type: ignore[misc]


def test_an_operation_that_is_not_granted_is_forbidden() -> None:
    caller = context(operations=frozenset({"read"}))

    caller.require(Operation.READ)
    for operation in set(Operation) - {Operation.READ}:
        with pytest.raises(Forbidden):
            caller.require(operation)


def test_roles_are_the_planned_ones() -> None:
    assert {"compact", "recall", "read", "sessions", "erase", "publish", "export", "cache", "delegate"} == MEMBER
    assert {"tenants"} == EVERYTHING - OPERATOR
    assert context(operations=OPERATOR).is_operator
    assert context(operations=EVERYTHING).is_operator
    assert not context(operations=MEMBER).is_operator


def test_a_credential_kept_to_sessions_reaches_those_alone() -> None:
    one, other = UUID(int=6), UUID(int=7)

    assert context().reaches(one)
    assert context(sessions=frozenset({one})).reaches(one)
    assert not context(sessions=frozenset({one})).reaches(other)
    assert not context(sessions=frozenset()).reaches(one)


def test_a_credential_kept_to_sessions_does_nothing_for_the_tenant_as_a_whole() -> None:
    context(operations=EVERYTHING).require_for_tenant(Operation.SCAN)
    for caller in (context(operations=EVERYTHING, sessions=frozenset({UUID(int=6)})), context(operations=frozenset({"read"}))):
        with pytest.raises(Forbidden):
            caller.require_for_tenant(Operation.SCAN)


def test_a_context_covers_another_when_nothing_was_taken_away() -> None:
    team, session = UUID(int=5), UUID(int=6)
    begun_with = context(teams=frozenset({team}), sessions=frozenset({session}))

    for wider in (
        begun_with,
        context(teams=frozenset({team, UUID(int=9)}), operations=EVERYTHING),
        context(teams=frozenset({team})),
    ):
        assert wider.covers(begun_with)
    for narrower in (
        context(teams=frozenset({team}), operations=MEMBER - {"read"}),
        context(),
        context(teams=frozenset({team}), sessions=frozenset()),
        context(teams=frozenset({team}), principal_id=UUID(int=8)),
        context(teams=frozenset({team}), tenant_id=UUID(int=8)),
    ):
        assert not narrower.covers(begun_with)
    assert not context(sessions=frozenset({session})).covers(context())


def test_an_operator_stays_one_when_operations_come_and_no_delegate_is_one() -> None:
    assert context(operations=OPERATORS_CORE).is_operator
    for operation in OPERATORS_CORE:
        assert not context(operations=EVERYTHING - {operation}).is_operator
    assert not context(operations=DELEGABLE).is_operator
    assert {"keys", "principals", "tenants", "audit", "import"}.isdisjoint(DELEGABLE)
    assert MEMBER >= DELEGABLE


def test_a_role_is_a_ceiling_and_a_token_gets_what_it_grants() -> None:
    assert (Role.MEMBER.grants, Role.MEMBER.ceiling) == (MEMBER, MEMBER)
    assert (Role.OPERATOR.grants, Role.OPERATOR.ceiling) == (OPERATOR, EVERYTHING)
