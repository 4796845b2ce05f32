"""The article's table, of every schedule: a larger queue repairs one symptom, ownership repairs the fault."""

from __future__ import annotations

import pytest

from coatcheck.gpu.offload.explorer import STANDS_STILL, explore
from tests.gpu.offload.article import Article

NEITHER, OWN = (0, 0), (1, 2)


@pytest.mark.parametrize(
    ("capacity", "own_events", "snapshots", "insertion_fails", "circular_wait", "wrong_inputs"),
    [
        pytest.param(1, False, False, True, True, True, id="original, capacity 1"),
        pytest.param(8, False, False, False, True, True, id="original, capacity 8"),
        pytest.param(8, True, False, False, False, True, id="own events without snapshots"),
        pytest.param(8, True, True, False, False, False, id="own events and snapshots"),
    ],
)
def test_the_table_of_the_article(
    capacity: int, own_events: bool, snapshots: bool, insertion_fails: bool, circular_wait: bool, wrong_inputs: bool
) -> None:
    found = explore(lambda: Article(capacity, own_events=own_events, snapshots=snapshots))

    still = {outcome[1] for outcome in found.outcomes if isinstance(outcome, tuple) and outcome[0] == STANDS_STILL}
    done = {outcome for outcome in found.outcomes if isinstance(outcome, tuple) and outcome[0] != STANDS_STILL}
    every = still | done
    assert any(failed for failed, _ in every) is insertion_fails
    assert any(not failed for failed, _ in still) is circular_wait
    assert any(read not in (0, number) for _, reads in every for number, read in enumerate(reads, 1)) is wrong_inputs
    assert bool(still) is circular_wait


def test_a_rejected_pass_has_already_broken_the_one_before_it() -> None:
    found = explore(lambda: Article(1, own_events=False, snapshots=False))

    assert (STANDS_STILL, (True, NEITHER)) in found.outcomes


def test_what_repairs_it_completes_both_passes_with_their_own_inputs_in_every_schedule() -> None:
    found = explore(lambda: Article(8, own_events=True, snapshots=True))

    assert set(found.outcomes) == {(False, OWN)}
    assert found.schedules > 1_000
