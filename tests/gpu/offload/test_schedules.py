"""The connector in every schedule: at each depth, slots used again, nobody fails, stands still or reads another's inputs."""

from __future__ import annotations

import pytest

from coatcheck.gpu.offload.explorer import explore
from tests.gpu.offload.world import World


@pytest.mark.parametrize(
    ("depth", "passes", "own_preparation"),
    [
        (1, 2, False),
        (2, 3, False),
        (3, 4, False),
        (1, 2, True),
        (2, 3, True),
        pytest.param(3, 4, True, marks=pytest.mark.accept),
    ],
)
def test_every_pass_is_done_with_its_own_inputs_in_every_schedule(depth: int, passes: int, own_preparation: bool) -> None:
    """``own_preparation``: inputs come on a stream of their own, which may be behind or ahead of the model's."""
    found = explore(lambda: World(passes, depth, own_preparation=own_preparation))

    all_done = tuple((number, "done") for number in range(1, passes + 1))
    assert set(found.outcomes) == {(all_done, True, tuple(range(depth)))}
