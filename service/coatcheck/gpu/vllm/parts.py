"""The parts of the plugin: which module of vLLM each one changes, and what became of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from types import ModuleType


class State(StrEnum):
    """What became of a part at one place, worst last."""

    APPLIED = "applied"
    NOT_NEEDED = "not-needed"
    """What is installed does it by itself: left alone."""
    WAITING = "waiting"
    """The place is there, and is changed when it is imported, which is for vLLM to do."""
    UNSUITABLE = "unsuitable"
    """The module is there and is built otherwise than this part knows: left alone."""
    ABSENT = "absent"
    """What is installed has no such module."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a part at one place, and why."""

    state: State
    detail: str


@dataclass(frozen=True, slots=True)
class Part:
    """One thing that the plugin does, and the modules that may hold what it changes.

    ``apply`` takes such a module, imported. It may be handed the same one again, and changes nothing twice.
    """

    name: str
    purpose: str
    places: tuple[str, ...]
    apply: Callable[[ModuleType], Outcome]


@dataclass(frozen=True, slots=True)
class PlaceReport:
    """One module that a part looked at."""

    module: str
    state: State
    detail: str


@dataclass(frozen=True, slots=True)
class PartReport:
    """One part, and what became of it at each of its places."""

    name: str
    purpose: str
    places: tuple[PlaceReport, ...]

    @property
    def state(self) -> State:
        """The best of its places: a part needs only one of them."""
        return min((place.state for place in self.places), key=list(State).index)


@dataclass(frozen=True, slots=True)
class Report:
    """What the plugin did in this process. ``vllm`` is None where no vLLM is installed."""

    vllm: str | None
    parts: tuple[PartReport, ...]
