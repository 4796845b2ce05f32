"""A cache scope is whole or it is none: unknown is not empty, and no circumstance is taken for another."""

from __future__ import annotations

import dataclasses
import itertools
import subprocess
import sys
from typing import Any, get_type_hints
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck.domain.errors import Forbidden
from coatcheck.domain.response_cache import CacheScope, Dimension, Dimensions, Sharing, Stated, Ties
from coatcheck.identity.cache_scopes import cache_scope, conversation_tag, prompt_print, source_tags
from coatcheck.identity.context import RequestContext
from coatcheck.identity.keyring import Keyring
from tests.identity.test_context import context

ROOT, OTHER_ROOT = bytes(range(32)), bytes(range(1, 33))
TENANT, TEAM = UUID(int=0xA), UUID(int=0x7)
PRINTS = Keyring(ROOT).cache_fingerprints(TENANT)
STATED = Stated(conversation={}, sources=[], model="m", instructions="", tools=[], settings={})
TIES = Ties(None, (), ())
ASKED = [field.name for field in dataclasses.fields(Stated)]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=3), max_leaves=6
)


def scope(who: RequestContext | None = None, stated: Stated = STATED, sharing: str = "principal") -> CacheScope:
    made = cache_scope(who or context(), PRINTS, Sharing.parse(sharing), stated, TIES, "rules")
    assert isinstance(made, CacheScope)
    return made


@pytest.mark.parametrize("name", ASKED)
def test_what_is_unknown_makes_no_scope_and_what_is_empty_does(name: str) -> None:
    unknown = cache_scope(context(), PRINTS, Sharing("principal"), dataclasses.replace(STATED, **{name: None}), TIES, "rules")

    assert unknown == Dimension(name)
    assert isinstance(cache_scope(context(), PRINTS, Sharing("principal"), STATED, TIES, "rules"), CacheScope)


@pytest.mark.parametrize("name", ASKED)
def test_each_circumstance_makes_another_scope(name: str) -> None:
    changed: dict[str, Any] = {name: ["other"]}
    other = scope(stated=dataclasses.replace(STATED, **changed))

    assert other.digest != scope().digest
    assert scope().dimensions.first_difference(other.dimensions) == Dimension(name)


@pytest.mark.parametrize(
    "changes",
    [
        {"own_revision": 99},
        {"operations": frozenset({"cache"})},
        {"sessions": frozenset({UUID(int=9)})},
        {"teams": frozenset({TEAM})},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_each_right_of_the_credential_makes_another_private_scope(changes: dict[str, Any]) -> None:
    assert scope().dimensions.first_difference(scope(context(**changes)).dimensions) == Dimension.PERMISSION


def test_a_private_scope_follows_its_principals_revision_and_a_shared_one_the_tenants() -> None:
    others, own = context(permission_revision=99), context(own_revision=99)

    assert scope(others) == dataclasses.replace(scope(), within=others.scope)
    assert scope(own, sharing="tenant") == dataclasses.replace(scope(sharing="tenant"), within=own.scope)
    assert scope().dimensions.first_difference(scope(own).dimensions) == Dimension.PERMISSION
    assert scope(sharing="tenant").dimensions.first_difference(scope(others, sharing="tenant").dimensions) == Dimension.PERMISSION


def test_a_scope_keeps_what_its_entries_are_tied_to() -> None:
    ties = Ties(UUID(int=5), (UUID(int=5),), source_tags(PRINTS, ["a"]))

    made = cache_scope(context(), PRINTS, Sharing("principal"), STATED, ties, "rules")

    assert isinstance(made, CacheScope)
    assert made.ties == ties


def test_principals_tenants_and_roots_have_no_scope_in_common() -> None:
    digests = [
        scope().digest,
        scope(context(principal_id=UUID(int=0xBB))).digest,
        *(
            made.digest
            for prints in (Keyring(ROOT).cache_fingerprints(UUID(int=0xB)), Keyring(OTHER_ROOT).cache_fingerprints(TENANT))
            if isinstance(made := cache_scope(context(), prints, Sharing("principal"), STATED, TIES, "rules"), CacheScope)
        ),
    ]

    assert len(set(digests)) == 4


def test_members_of_a_team_have_one_scope_whatever_else_they_may_do() -> None:
    one = scope(context(teams=frozenset({TEAM})), sharing=f"team:{TEAM}")
    other = scope(context(principal_id=UUID(int=0xBB), teams=frozenset({TEAM, UUID(int=8)})), sharing=f"team:{TEAM}")

    assert one.digest == other.digest


@pytest.mark.parametrize(
    ("who", "sharing"),
    [
        (context(), f"team:{TEAM}"),
        (context(teams=frozenset({TEAM}), sessions=frozenset({UUID(int=9)})), f"team:{TEAM}"),
        (context(sessions=frozenset({UUID(int=9)})), "tenant"),
    ],
)
def test_nobody_has_a_scope_of_others(who: RequestContext, sharing: str) -> None:
    with pytest.raises(Forbidden):
        scope(who, sharing=sharing)


def test_scopes_and_tags_are_the_same_in_every_release() -> None:
    """Entries are found and purged by these. Whoever changes how one is made raises ``CACHE_SCHEMA``, and writes it here anew."""
    rights = {"sessions": frozenset({UUID(int=9), UUID(int=8)}), "teams": frozenset({TEAM, UUID(int=8)})}
    made = [
        scope().digest,
        scope(context(**rights)).digest,
        scope(context(permission_revision=3), sharing="tenant").digest,
        prompt_print(PRINTS, "p:1", "prompt", "value"),
        conversation_tag(PRINTS, UUID(int=1), UUID(int=2)),
        conversation_tag(PRINTS, UUID(int=1), "name"),
        *source_tags(PRINTS, ["a", "b"]),
    ]

    assert [digest[:16] for digest in made] == [
        "d602c96a559a5ec7", "41ab79f4b0d58db9", "a2564b223ce9e2f5", "c80a333526447018", "28a6f6f08a9189cd", "17e06d242aabfde5",
        "11431f09ad4f8f4e", "f31c505842c82259",
    ]  # fmt: skip


def test_a_digest_of_one_thing_is_none_of_another() -> None:
    labels = ("prompt", "frame", "guard")
    digests = [prompt_print(PRINTS, owner, label, "value") for owner, label in itertools.product(("p:1", "p:2"), labels)]

    assert len(set(digests)) == len(digests)


@given(JSON, JSON)
def test_values_have_one_fingerprint_exactly_where_they_are_one_value(one: Any, other: Any) -> None:
    """Of one type as well: JSON's true is not its 1."""
    assert (PRINTS.of("label", one) == PRINTS.of("label", other)) == (repr(one) == repr(other))


def test_no_part_of_a_scope_may_be_missing() -> None:
    for kind in (CacheScope, Dimensions):
        hints = get_type_hints(kind)
        for field in dataclasses.fields(kind):
            assert "None" not in str(hints[field.name]), field.name
            assert field.default is dataclasses.MISSING
            assert field.default_factory is dataclasses.MISSING
    with pytest.raises(ValueError, match="fingerprint"):
        Dimensions(**{field.name: "" for field in dataclasses.fields(Dimensions)})  # type: ignore[arg-type]


def test_a_lookup_without_a_whole_scope_does_not_type_check(tmp_path: Any) -> None:
    """What the application would have to write to search without one; the last line is how it is written."""
    wrong = [
        "await cache.find_exact(tx, None, prompt, now)",
        "await cache.find_exact(tx, prompt=prompt, now=now)",
        "await cache.find_exact(tx, tx.scope, prompt, now)",
        "await cache.find_exact(tx, unknown, prompt, now)",
        "await cache.comparable(tx, maybe, frame, 'embedder', now, 1)",
    ]
    lines = [
        "from datetime import datetime",
        "from coatcheck.domain.response_cache import CacheScope, Dimension, Fingerprint, PromptPrint",
        "from coatcheck.store import response_cache as cache",
        "from coatcheck.store.database import ReadTransaction",
        "async def f(tx: ReadTransaction, whole: CacheScope, maybe: CacheScope | Dimension, unknown: Dimension,",
        "            prompt: PromptPrint, frame: Fingerprint, now: datetime) -> None:",
        *(f"    {line}" for line in wrong),
        "    await cache.find_exact(tx, whole, prompt, now)",
    ]
    file = tmp_path / "asking.py"
    file.write_text("\n".join(lines) + "\n")

    # In a process of its own: what mypy holds of the program, a gigabyte, it would hold to the end of the suite.
    command = [sys.executable, "-m", "mypy", str(file), "--no-error-summary", "--hide-error-context"]
    said = subprocess.run(command, capture_output=True, text=True, check=False).stdout

    errors = {int(line.split(":")[1]) for line in said.splitlines() if ": error:" in line}
    assert errors == {lines.index(f"    {line}") + 1 for line in wrong}, said
