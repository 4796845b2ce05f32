"""A token says who asks, and may say less than that one may do, never more (over HTTP: tests/contract/test_tokens.py)."""

from __future__ import annotations

import base64
import json
import time
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from coatcheck.domain.errors import Unauthenticated
from coatcheck.identity.context import LEEWAY, Credential, CredentialKind
from coatcheck.identity.doors import Door
from coatcheck.identity.operations import MEMBER, OPERATOR, Role
from coatcheck.identity.tokens import MAX_KID_CHARS
from tests.identity.issuers import ADA, TENANT, Issuers
from tests.identity.issuing import ISSUER, claims, private_key, token, unsigned


@pytest.fixture
async def issuers() -> Issuers:
    return Issuers()


async def refused(issuers: Issuers, text: str) -> bool:
    with pytest.raises(Unauthenticated) as refusal:
        await issuers.verifier.context_of(text)
    return refusal.value.detail == Unauthenticated().detail


async def test_a_token_gives_its_subjects_rights_as_they_are_now(issuers: Issuers) -> None:
    ends_at = int(time.time()) + 300

    context = await issuers.verifier.context_of(token(claims(exp=ends_at)))

    assert (context.tenant_id, context.principal_id, context.sessions) == (TENANT, ADA, None)
    assert context.credential == Credential(
        CredentialKind.TOKEN, ISSUER, datetime.fromtimestamp(ends_at, UTC), Door.API, "ada", None
    )  # fmt: skip
    assert (context.operations, context.teams) == (MEMBER, frozenset({UUID(int=7)}))
    assert (context.permission_revision, context.own_revision) == (3, 2)
    assert issuers.asked == [(TENANT, ISSUER, "ada")]


NOW = 1_800_000_000
LEEWAY_S = LEEWAY.total_seconds()
DURING: dict[str, Any] = {"iat": NOW - 60, "nbf": NOW - 60, "exp": NOW + 60}


@pytest.mark.parametrize(
    ("changes", "is_in_time"),
    [
        ({"exp": NOW - LEEWAY_S}, False),
        ({"exp": NOW - LEEWAY_S + 1}, True),
        ({"exp": NOW - LEEWAY_S + 0.5}, True),
        ({"nbf": NOW + LEEWAY_S}, True),
        ({"nbf": NOW + LEEWAY_S + 1}, False),
        ({"nbf": NOW + LEEWAY_S + 0.5}, False),
        ({"nbf": None}, True),
        ({"iat": NOW + LEEWAY_S}, True),
        ({"iat": NOW + LEEWAY_S + 1}, False),
        ({"iat": -(10**30)}, True),
        ({"exp": True}, False),
        ({"exp": str(NOW + 60)}, False),
        ({"exp": [NOW + 60]}, False),
        ({"exp": 10**400}, False),
        ({"exp": 0}, False),
        ({"nbf": str(NOW - 60)}, False),
        ({"nbf": {}}, False),
        ({"iat": "0"}, False),
        ({"iat": False}, False),
    ],
)
async def test_a_tokens_time_is_told_by_the_services_clock(issuers: Issuers, changes: dict[str, Any], is_in_time: bool) -> None:
    issuers.now = lambda: datetime.fromtimestamp(NOW, UTC)
    text = token(claims(**{**DURING, **changes}))

    if is_in_time:
        assert (await issuers.verifier.context_of(text)).principal_id == ADA
    else:
        assert await refused(issuers, text)


@pytest.mark.parametrize("hours", [-2, 2])
async def test_a_clock_that_jumps_takes_tokens_along(issuers: Issuers, hours: int) -> None:
    """A token is one of its own time."""
    issuers.now = lambda: datetime.fromtimestamp(NOW, UTC)
    text = token(claims(**DURING))
    await issuers.verifier.context_of(text)

    issuers.now = lambda: datetime.fromtimestamp(NOW + hours * 3_600, UTC)
    assert await refused(issuers, text)

    moved: dict[str, Any] = {name: at + hours * 3_600 for name, at in DURING.items()}
    assert (await issuers.verifier.context_of(token(claims(**moved)))).principal_id == ADA


@pytest.mark.parametrize(
    ("role", "scope", "operations"),
    [
        (Role.MEMBER, "read recall", {"read", "recall"}),
        (Role.MEMBER, "read keys tenants *", {"read"}),
        (Role.MEMBER, "openid profile", set()),
        (Role.MEMBER, "", set()),
        (Role.OPERATOR, "keys tenants", {"keys"}),
        (Role.OPERATOR, None, OPERATOR),
    ],
)
async def test_a_scope_narrows_what_the_role_grants(issuers: Issuers, role: Role, scope: str | None, operations: set[str]) -> None:
    issuers.knows(role=role)

    assert (await issuers.verifier.context_of(token(claims(scope=scope)))).operations == operations


@pytest.mark.parametrize("changes", [{"principal_active": False}, {"tenant_active": False}], ids=lambda changes: str(*changes))
async def test_who_does_not_stand_is_refused(issuers: Issuers, changes: dict[str, object]) -> None:
    issuers.knows(**changes)

    assert await refused(issuers, token())


async def test_an_issuer_or_a_subject_that_is_not_known_is_refused(issuers: Issuers) -> None:
    assert await refused(issuers, token(claims("bob")))
    assert await refused(issuers, token(claims(iss="https://login.example.com/")))
    issuers.issuer = None
    assert await refused(issuers, token())


@pytest.mark.parametrize(
    "changes",
    [
        {"aud": "https://other.example.org"},
        {"exp": 1_000_000_000},
        {"nbf": 4_000_000_000},
        {"sub": ""},
        {"sub": "x" * 256},
        {"sub": "a\nb"},
        {"sub": 7},
        {"scope": ["read"]},
        {"iss": None},
        {"iss": ["https://login.example.org/"]},
        {"sub": None},
        {"aud": None},
        {"exp": None},
        {"iat": None},
    ],
    ids=str,
)
async def test_a_claim_that_is_missing_or_wrong_is_refused(issuers: Issuers, changes: dict[str, Any]) -> None:
    assert await refused(issuers, token(claims(**changes)))


async def test_a_scope_of_null_is_refused_and_none_at_all_is_not(issuers: Issuers) -> None:
    assert await refused(issuers, token({**claims(), "scope": None}))
    assert (await issuers.verifier.context_of(token())).operations == MEMBER


@pytest.mark.parametrize("typ", ["jwt", "JWT", "at+jwt", "application/at+jwt", None])
async def test_a_token_says_that_it_is_one_or_nothing(issuers: Issuers, typ: str | None) -> None:
    assert (await issuers.verifier.context_of(token(typ=typ))).principal_id == ADA


@pytest.mark.parametrize(
    "header",
    [
        {"typ": "logout+jwt"},
        {"typ": 1},
        {"crit": ["x"], "x": 1},
        {"b64": False},
        {"kid": ""},
        {"kid": "two"},
        {"kid": "o" * (MAX_KID_CHARS + 1)},
        {"kid": None},
    ],
    ids=lambda header: str(header)[:30],
)
async def test_a_header_of_another_kind_or_key_is_refused(issuers: Issuers, header: dict[str, Any]) -> None:
    assert await refused(issuers, token(**{"kid": "one", **header}))


async def test_a_key_signs_by_its_own_algorithm_alone(issuers: Issuers) -> None:
    assert (await issuers.verifier.context_of(token(algorithm="EdDSA", kid="ed"))).principal_id == ADA
    for text in (
        token(algorithm="EdDSA", kid="one"),
        token(algorithm="ES256", kid="ed"),
        token(key=private_key("ES256", 9)),
        token(algorithm="HS256", key="k" * 32),
        unsigned(claims()),
        unsigned(claims(), alg="ES256", kid=7) + "AAAA",
        unsigned(claims(), alg=["ES256"]) + "AAAA",
    ):
        assert await refused(issuers, text)


@pytest.mark.parametrize("part", [0, 1])
async def test_a_part_that_is_no_object_or_says_a_thing_twice_is_refused(issuers: Issuers, part: int) -> None:
    parts = token().split(".")
    plain = base64.urlsafe_b64decode(parts[part] + "==")
    twice = b'{"' + (b"kid" if part == 0 else b"sub") + b'": "x", ' + plain[1:]

    for wrong in (b"[]", b"1", b"{", b"\xff", twice, json.dumps([json.loads(plain)]).encode()):
        changed = [*parts]
        changed[part] = base64.urlsafe_b64encode(wrong).rstrip(b"=").decode()
        assert await refused(issuers, ".".join(changed))


@pytest.mark.parametrize("text", ["", "a.b", "a.b.c.d", "a.b.", "a b.c.d", "=.=.=", "\u00e9.a.b"])
async def test_what_has_not_the_form_of_a_token_is_refused(issuers: Issuers, text: str) -> None:
    assert await refused(issuers, text)
