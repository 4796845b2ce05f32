"""Who may reuse an answer, by the acl key that its entry bears; and what no scope can be made of."""

from __future__ import annotations

import dataclasses
from uuid import UUID

import pytest

from coatcheck.domain.errors import InvalidRequest
from coatcheck.domain.response_cache import CacheScope, Dimension, Dimensions, Fingerprint, Sharing, Ties
from coatcheck.domain.scopes import Scope

ME, TEAM = UUID(int=1), UUID(int=7)
MINE, OURS = f"p:{ME}", f"t:{TEAM}"
PRINT = Fingerprint("a" * 64)
SAME = Dimensions(**{one.value: PRINT for one in Dimension})


@pytest.mark.parametrize(
    ("text", "key", "is_private"), [("principal", MINE, True), (f"team:{TEAM}", OURS, False), ("tenant", "public", False)]
)
def test_a_sharing_scope_is_read_by_one_key(text: str, key: str, is_private: bool) -> None:
    sharing = Sharing.parse(text)

    assert (sharing.acl_key(ME), sharing.is_private, str(sharing)) == (key, is_private, text)


@pytest.mark.parametrize("text", ["", "public", "Tenant", "PRINCIPAL", "team", "team:us", "everybody", "principal:x"])
def test_any_other_word_is_no_sharing_scope(text: str) -> None:
    with pytest.raises(InvalidRequest):
        Sharing.parse(text)


@pytest.mark.parametrize(
    ("sharing", "acl"),
    [(Sharing("tenant"), (MINE,)), (Sharing("team", TEAM), (MINE, "public")), (Sharing("team", TEAM), (MINE, f"t:{UUID(int=8)}"))],
)
def test_nobody_makes_a_scope_that_its_principal_does_not_read(sharing: Sharing, acl: tuple[str, ...]) -> None:
    within = Scope(UUID(int=9), ME, acl)

    with pytest.raises(ValueError, match="reads"):
        CacheScope(within, sharing, SAME, PRINT, Ties(None, (), ()))


def test_a_scope_bears_the_key_of_its_sharing() -> None:
    within = Scope(UUID(int=9), ME, (MINE, OURS, "public"))

    keys = [CacheScope(within, Sharing(*kind), SAME, PRINT, Ties(None, (), ())).acl_key for kind in (
        ("principal",), ("team", TEAM), ("tenant",),
    )]  # fmt: skip

    assert keys == [MINE, OURS, "public"]


@pytest.mark.parametrize("one", Dimension)
def test_each_dimension_is_a_whole_fingerprint_and_makes_a_difference(one: Dimension) -> None:
    changed = dataclasses.replace(SAME, **{one.value: Fingerprint("b" * 64)})

    assert SAME.first_difference(changed) == one
    assert SAME.first_difference(SAME) is None
    assert SAME.as_json()[one.value] == PRINT
    for wrong in ("a" * 63, "a" * 65, ""):
        with pytest.raises(ValueError, match="fingerprint"):
            dataclasses.replace(SAME, **{one.value: Fingerprint(wrong)})


def test_the_first_of_several_differences_is_named() -> None:
    other = dataclasses.replace(SAME, schema=Fingerprint("b" * 64), sources=Fingerprint("b" * 64))

    assert SAME.first_difference(other) == Dimension.SOURCES
