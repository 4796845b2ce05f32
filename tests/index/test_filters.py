"""What a search asks of a point: one value that says tenant, generation and reader, and never nothing."""

from __future__ import annotations

import pytest

from coatcheck.domain.passages import RecallFilter
from coatcheck.domain.scopes import NIL, Scope
from coatcheck.index import filters
from coatcheck.index.filters import AnyOf, Condition, Equals, OneOf
from coatcheck.index.points import microseconds, readers, to_payload
from tests.index.making import ANN, BEN, EVE, NOON, named, point, sha


def test_T11_what_a_scope_may_read_names_tenant_generation_and_reader_in_one_value() -> None:
    scope = Scope(ANN.tenant, ANN.principal, (ANN.key, "public"))

    asked = filters.readable(scope, 7)

    assert asked == (OneOf("readers", (f"7/{ANN.tenant}/{ANN.key}", f"7/{ANN.tenant}/public")),)


@pytest.mark.parametrize(
    ("tenant", "generation", "acl"),
    [(EVE.tenant, 1, ANN.key), (ANN.tenant, 2, ANN.key), (ANN.tenant, 1, BEN.key), (ANN.tenant, 11, ANN.key)],
    ids=["tenant", "generation", "reader", "generation that begins alike"],
)
def test_T11_nobody_elses_value_is_mine(tenant: object, generation: int, acl: str) -> None:
    mine = readers(ANN.tenant, 1, (ANN.key, "public"))

    assert not set(mine) & set(readers(tenant, generation, (acl,)))  # type: ignore[arg-type]


def test_T10_a_principals_scope_that_lost_its_tenant_makes_no_filter() -> None:
    scope = Scope(ANN.tenant, ANN.principal, (ANN.key,))
    object.__setattr__(scope, "tenant_id", NIL)

    with pytest.raises(ValueError, match="tenant"):
        filters.readable(scope, 1)


def test_a_filter_is_what_must_hold_and_one_of_what_may() -> None:
    narrow = filters.narrowing(RecallFilter(session_ids=(named("a"),)))

    one_of, others = filters.parted((OneOf("readers", ("x", "y")), *narrow))

    assert one_of == [Equals("readers", "x"), Equals("readers", "y")]
    assert others == [AnyOf("session_id", (str(named("a")),))]


@pytest.mark.parametrize(
    "conditions",
    [(), (OneOf("readers", ()),), (OneOf("readers", ()), Equals("a", "b")), (OneOf("readers", ("x",)), OneOf("a", ("y",)))],
    ids=["none", "no choice", "no choice beside another condition", "two choices, of which the engine would take either"],
)
def test_T10_a_filter_that_would_match_more_than_it_says_is_refused(conditions: tuple[Condition, ...]) -> None:
    with pytest.raises(ValueError, match="a filter needs conditions"):
        filters.parted(conditions)


def test_a_point_carries_what_is_asked_of_it_by_name() -> None:
    """Renamed, a field is one that no filter finds: points that are stored keep the names they were written with."""
    payload = to_payload(point(ANN, "alpha", session="s", passage=3, roles=("tool", "odd\ud800"), hours=1, lasts_hours=2))

    assert payload == {
        "tenant_id": str(ANN.tenant), "session_id": str(named("s")), "readers": [f"1/{ANN.tenant}/{ANN.key}"],
        "exact_sha256": sha("alpha"), "reduced_sha256": None, "kinds": ["text"],
        "roles": ["tool", "odd\ufffd"], "first_at": microseconds(NOON) + 3_600_000_000,
        "last_at": microseconds(NOON) + 3 * 3_600_000_000, "passage": 3, "start": 0, "end": 5,
        "generation": 1, "content_version": "v1",
    }  # fmt: skip
    assert type(microseconds(NOON)) is int
