"""Two walks over the same points have the same tally; a point more, less or other shows in its bucket."""

from __future__ import annotations

from uuid import UUID, uuid4

from hypothesis import given
from hypothesis import strategies as st

from coatcheck.memory.tally import BUCKET_BITS, Tally, bucket_of

_POINTS = st.lists(st.uuids(), unique=True, max_size=30)


def tally(points: list[UUID]) -> Tally:
    made = Tally()
    made.add(points)
    return made


@given(points=_POINTS, draw=st.data())
def test_the_order_of_a_walk_does_not_matter(points: list[UUID], draw: st.DataObject) -> None:
    assert tally(points).differing(tally(draw.draw(st.permutations(points)))) == frozenset()


@given(mine=_POINTS, theirs=_POINTS)
def test_the_buckets_that_differ_are_those_of_the_points_that_one_walk_alone_met(mine: list[UUID], theirs: list[UUID]) -> None:
    differing = tally(mine).differing(tally(theirs))

    assert differing == {bucket_of(point) for point in set(mine) ^ set(theirs)}


def test_a_point_in_place_of_another_shows_in_one_bucket() -> None:
    shared = [uuid4() for _ in range(50)]
    one, other = (UUID(int=(7 << 128 - BUCKET_BITS) + n) for n in (1, 2))

    assert tally([*shared, one]).differing(tally([*shared, other])) == {7}
