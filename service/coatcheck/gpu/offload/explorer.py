"""The schedule explorer: runs threads and streams in every order that is possible, and says how each of them can end.

Threads are steps, streams are modelled. A state is where every thread stands, what every stream has before it, and what memory
holds; whoever could act there acts, one after the other, and a state that was met before is not walked through again. So every
schedule is covered, and every state is checked. Steps cannot be taken back: a branch is walked by running its prefix anew.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from coatcheck.gpu.offload.modelled import ModelledStreams
from coatcheck.gpu.offload.steps import Late, Steps, Until

STANDS_STILL = "stands still"
"""How a schedule ends in which somebody waits for what nobody can do any more."""
LATE = ", late"


@dataclass(slots=True, eq=False)
class Actor:
    """One thread of a scenario, between two of its steps."""

    name: str
    steps: Steps[object]
    background: bool = False
    """Whether the scenario is over although this one still waits."""
    waits: Until | None = None
    ended: bool = False
    error: BaseException | None = None

    def choice(self, now: float) -> str | None:
        """What it would do now: its next step, its next step as one that comes late, or nothing."""
        if self.ended:
            return None
        waits = self.waits
        if waits is None or waits.ready():
            return self.name
        return self.name + LATE if waits.ends_at is not None and waits.ends_at <= now else None

    def act(self, *, late: bool) -> None:
        waits, self.waits = self.waits, None
        try:
            self.waits = self.steps.throw(Late(waits.what)) if late and waits is not None else self.steps.send(None)
        except StopIteration:
            self.ended = True
        except Exception as error:
            self.ended, self.error = True, error

    def die(self) -> None:
        """The thread ends where it stands; what its steps do on the way out is done."""
        self.ended = True
        self.steps.close()


class Scenario(Protocol):
    """A fresh world for each run, made the same each time."""

    streams: ModelledStreams
    actors: list[Actor]

    def now(self) -> float:
        """The time of its clock, which its own actors move."""

    def state(self) -> Hashable:
        """All that decides what can happen, threads and streams excepted: ledgers, memory."""

    def check(self) -> None:
        """Raises AssertionError in a state that must not be."""

    def outcome(self) -> Hashable:
        """How a schedule that came to its end has ended."""


@dataclass(slots=True)
class Exploration:
    """What all schedules together came to."""

    states: int = 0
    transitions: int = 0
    schedules: int = 0
    """How many different orders there are, from the first state to an end."""
    outcomes: dict[Hashable, tuple[str, ...]] = field(default_factory=dict)
    """Each way to end, with the first schedule that was found for it."""


class _Run:
    """One run of a scenario, as far as it has come."""

    def __init__(self, make: Callable[[], Scenario]) -> None:
        self.scenario = make()
        self.scenario.check()
        self._by_name = {actor.name: actor for actor in self.scenario.actors}
        self._streams = {stream.name: stream for stream in self.scenario.streams.streams}

    def choices(self) -> tuple[str, ...]:
        now = self.scenario.now()
        actors = tuple(choice for choice in (actor.choice(now) for actor in self.scenario.actors) if choice is not None)
        return actors + tuple(stream.name for stream in self.scenario.streams.streams if stream.can_go_on())

    def choose(self, choice: str) -> None:
        late = choice.endswith(LATE)
        actor = self._by_name.get(choice.removesuffix(LATE))
        if actor is not None:
            actor.act(late=late)
        else:
            self._streams[choice].go_on()

    def state(self) -> Hashable:
        scenario = self.scenario
        actors = tuple((actor.ended, repr(actor.error), _place(actor.steps)) for actor in scenario.actors)
        return actors, scenario.streams.state(), scenario.state()

    def outcome(self) -> Hashable:
        scenario = self.scenario
        waits = any(not actor.ended and not actor.background for actor in scenario.actors)
        if waits or any(stream.operations for stream in scenario.streams.streams):
            return STANDS_STILL, scenario.outcome()
        return scenario.outcome()


def explore(make: Callable[[], Scenario], *, most_states: int = 1_000_000) -> Exploration:
    """Walks through every schedule. Raises AssertionError with the schedule in its notes where a state fails its check."""
    found = Exploration()
    following: dict[Hashable, list[Hashable]] = {}
    left: list[tuple[str, ...]] = [()]
    while left:
        prefix = left.pop()
        run = _Run(make)
        path: list[str] = []
        try:
            for name in prefix[:-1]:
                run.choose(name)
                path.append(name)
            came_from = run.state() if prefix else None
            _walk(run, path, prefix[-1:], came_from, following, left, found)
        except AssertionError as error:
            error.add_note(f"Schedule: {' '.join(path)}")
            raise
        if len(following) > most_states:
            raise RuntimeError(f"More than {most_states:,} states.")
    found.states = len(following)
    found.schedules = _schedules(following)
    return found


def _walk(
    run: _Run,
    path: list[str],
    first: tuple[str, ...],
    came_from: Hashable,
    following: dict[Hashable, list[Hashable]],
    left: list[tuple[str, ...]],
    found: Exploration,
) -> None:
    """On from here until a state that is known, or an end; what else could have been done on the way is left for later."""
    for name in first:
        path.append(name)
        run.choose(name)
        run.scenario.check()
        found.transitions += 1
    while True:
        state = run.state()
        if came_from is not None:
            following[came_from].append(state)
        if state in following:
            return
        following[state] = []
        choices = run.choices()
        if not choices:
            found.outcomes.setdefault(run.outcome(), tuple(path))
            return
        left.extend((*path, other) for other in choices[1:])
        came_from = state
        path.append(choices[0])
        run.choose(choices[0])
        run.scenario.check()
        found.transitions += 1


def _schedules(following: Mapping[Hashable, list[Hashable]]) -> int:
    """How many paths lead from the first state to an end. Raises RuntimeError where steps go round without end."""
    first = next(iter(following))
    counts: dict[Hashable, int] = {}
    stack, entered = [first], set[Hashable]()
    while stack:
        state = stack[-1]
        if state in counts:
            stack.pop()
            continue
        ahead = [after for after in following[state] if after not in counts]
        if ahead and state in entered:
            raise RuntimeError("A schedule goes round: its steps come to where they were.")
        entered.add(state)
        stack.extend(ahead)
        if not ahead:
            counts[state] = sum(counts[after] for after in following[state]) or 1
            stack.pop()
    return counts[first]


def _place(steps: Generator[Any, Any, Any]) -> Hashable:
    """Where the steps stand: each frame's place and what its variables hold, as far as they decide anything."""
    found: list[Hashable] = []
    inner: Any = steps
    while inner is not None and getattr(inner, "gi_frame", None) is not None:
        frame = inner.gi_frame
        held = tuple((name, _digest(value)) for name, value in sorted(frame.f_locals.items()))
        found.append((frame.f_code.co_qualname, frame.f_lasti, held))
        inner = inner.gi_yieldfrom
    return tuple(found)


def _digest(value: object) -> Hashable:
    if isinstance(value, int | float | str | bool | None):
        return value
    sequence = getattr(value, "sequence", None)
    if isinstance(sequence, int):
        return sequence
    if isinstance(value, list | tuple):
        return tuple(_digest(one) for one in value)
    return type(value).__name__
