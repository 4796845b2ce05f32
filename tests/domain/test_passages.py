"""The ids of points: the same whether one is asked for or many."""

from __future__ import annotations

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from coatcheck.domain.passages import PointIds, point_id

_SESSIONS = st.sampled_from([UUID(int=n) for n in (1, 2, 3)])
_HASHES = st.sampled_from([f"{n:064x}" for n in (1, 2)])


@given(asked=st.lists(st.tuples(_SESSIONS, _HASHES, st.integers(0, 12)), max_size=20), generation=st.integers(0, 3))
def test_many_ids_are_what_each_alone_is(asked: list[tuple[UUID, str, int]], generation: int) -> None:
    tenant_id = UUID(int=9)
    ids = PointIds(tenant_id, generation)

    assert [ids.of(*one) for one in asked] == [point_id(tenant_id, *one, generation) for one in asked]


def test_an_id_never_changes_with_a_release() -> None:
    found = point_id(UUID(int=1), UUID(int=2), "a" * 64, 3, 4)

    assert found == PointIds(UUID(int=1), 4).of(UUID(int=2), "a" * 64, 3)
    assert str(found) == "ef5e31c9-3ee4-543c-9df4-699b4bbd2c36"
