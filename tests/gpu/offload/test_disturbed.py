"""Cancelled, late, out of slots, shut down, without a worker: in every schedule each slot comes back once, and nobody hangs."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from functools import cache
from typing import cast

import pytest

from coatcheck.domain.errors import StageUnavailable
from coatcheck.gpu.offload.explorer import Actor, Exploration, explore
from coatcheck.gpu.offload.job import Holder
from coatcheck.gpu.offload.ledger import Ledger
from coatcheck.gpu.offload.modelled import Array
from coatcheck.gpu.offload.steps import Steps
from tests.gpu.offload.world import World

DONE, FAILED, FULL = "done", "stage-unavailable", "overloaded"
DEPTH = 2


def cancelled(world: World) -> None:
    def cancel() -> None:
        job = world.jobs.get(2)
        if job is not None:
            world.offload.cancel(job)

    world.disturb("canceller", cancel)


def without_worker(world: World) -> None:
    world.disturb("killer", world.worker.die)


def late(world: World) -> None:
    def pass_time() -> None:
        world.time = 10.0

    world.ends_at = 5.0
    world.disturb("clock", pass_time)


def shut_down(world: World) -> None:
    world.actors.append(Actor("closer", world.offload.passes.close(StageUnavailable("Closing."), math.inf, 1.0)))


def shut_down_late(world: World) -> None:
    shut_down(world)
    late(world)


def worker_raises(world: World) -> None:
    def compute(inputs: Array, rows: Array) -> None:
        if inputs[0] == 2:
            raise ArithmeticError("a row that cannot be computed")
        rows[:] = 10 * inputs

    world.offload.passes._compute = compute


@cache
def explored(disturb: Callable[[World], None], own_preparation: bool, passes: int) -> Exploration:
    def make() -> World:
        world = World(passes, DEPTH, own_preparation=own_preparation)
        disturb(world)
        return world

    return explore(make)


def ends(found: Exploration, number: int) -> set[str]:
    """The ways in which a pass ended, over all schedules."""
    outcomes = cast("list[tuple[tuple[tuple[int, str], ...], Hashable, Hashable]]", list(found.outcomes))
    return {dict(ended)[number] for ended, _, _ in outcomes}


@pytest.mark.parametrize(
    ("disturb", "own_preparation", "passes"),
    [
        *((disturb, False, 2) for disturb in (cancelled, without_worker, late, shut_down, worker_raises)),
        (worker_raises, True, 2),
        (shut_down_late, True, 1),
        *(pytest.param(disturb, True, 2, marks=pytest.mark.accept) for disturb in (cancelled, without_worker, late, shut_down)),
        pytest.param(shut_down_late, False, 2, marks=pytest.mark.accept),
    ],
)
def test_whatever_happens_each_slot_comes_back_once_and_every_pass_ends(
    disturb: Callable[[World], None], own_preparation: bool, passes: int
) -> None:
    """``own_preparation``: inputs come on a stream of their own, which may be behind or ahead of the model's."""
    found = explored(disturb, own_preparation, passes)

    for outcome in found.outcomes:
        ended, own_inputs, free = cast(tuple[tuple[tuple[int, str], ...], bool, tuple[int, ...]], outcome)
        assert [number for number, _ in ended] == list(range(1, passes + 1)), outcome
        assert own_inputs
        assert free == tuple(range(DEPTH))


@pytest.mark.parametrize(
    ("disturb", "first", "second"),
    [
        (cancelled, {DONE}, {DONE, FAILED}),
        (without_worker, {DONE, FAILED}, {DONE, FAILED}),
        (late, {DONE, FAILED}, {DONE, FAILED, FULL}),
        (shut_down, {DONE, FAILED}, {DONE, FAILED}),
        (worker_raises, {DONE}, {FAILED}),
    ],
)
def test_a_pass_ends_in_no_other_way_than_these(disturb: Callable[[World], None], first: set[str], second: set[str]) -> None:
    found = explored(disturb, False, 2)

    assert ends(found, 1) <= first
    assert ends(found, 2) <= second
    assert FAILED in ends(found, 2)


def test_who_finds_no_slot_in_time_has_changed_nothing() -> None:
    """Two launchers, one slot: whoever is refused leaves the other's pass as it is."""

    def make() -> World:
        world = World(1, 1, ends_at=5.0)

        def another() -> Steps[None]:
            yield None
            yield from world.offload.passes.submit(world.inputs, world.target, world.preparation, world.model, 0.0)

        world.actors.append(Actor("another", another()))
        return world

    found = explore(make)

    ways = {cast(tuple[tuple[tuple[int, str], ...], bool, Hashable], outcome)[:2] for outcome in found.outcomes}
    assert (((1, DONE),), True) in ways
    assert {ended for ended, _ in ways} <= {((1, DONE),), ((1, FULL),)}


def test_a_planted_slot_that_goes_back_too_early_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the explorer says of ours means something: it finds slots given away that the model's stream still reads."""
    monkeypatch.setattr(Ledger, "_consumer_passed", lambda self, job: Holder.CONSUMER in job.holders and self._launched(job))

    found = explore(lambda: World(2, 1))

    assert any(FAILED in str(outcome) for outcome in found.outcomes)
