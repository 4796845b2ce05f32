"""A job of offload and the slot that it owns: events, signal and memory belong to one job from admission to release."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Generic

from coatcheck.domain.errors import CoatcheckError
from coatcheck.gpu.offload.streams import B, Event, Signal
from coatcheck.ops.progress import Piece


@dataclass(frozen=True, slots=True)
class Memory(Generic[B]):
    """What one slot has of memory. All but ``device_tag`` is the host's, and page-locked where there is a device."""

    inputs: B
    """The snapshot that the worker reads: nobody writes here but the job's own copy."""
    rows: B
    tag: B
    """The sequence of the rows; the negative of it says that there are none."""
    device_tag: B
    seen: B
    """The tag as it came back from the consumer's stream."""


class Holder(Enum):
    """Who still touches a job's slot."""

    LAUNCHER = "launcher"
    SNAPSHOT = "snapshot"
    """The stream that the inputs are copied on: it lets go when the copy is done, also for a job that failed before."""
    WORKER = "worker"
    CONSUMER = "consumer"
    """The stream that reads the rows: it lets go when it has passed the job's last operation."""


class Stage(Enum):
    """Where a job stands."""

    LAUNCHING = "launching"
    QUEUED = "queued"
    """Its inputs are on their way, or the worker is at another job's."""
    COMPUTING = "computing"
    CONSUMING = "consuming"
    RELEASED = "released"


@dataclass(slots=True, eq=False)
class Slot(Generic[B]):
    """Made once, owned by one job at a time."""

    number: int
    memory: Memory[B]
    inputs_ready: Event
    consumed: Event
    rows_ready: Signal


@dataclass(slots=True, eq=False)
class Job(Generic[B]):
    """One pass's work. Its sequence is its identity: no two jobs of a connector have the same."""

    sequence: int
    size: int
    ends_at: float
    slot: Slot[B]
    piece: Piece
    stage_since: float
    stage: Stage = Stage.LAUNCHING
    holders: set[Holder] = field(default_factory=lambda: set(Holder))
    consumed: bool = False
    """Whether its own rows were handed to the consumer."""
    failure: CoatcheckError | None = None

    @property
    def settled(self) -> bool:
        """Whether its outcome stands. Its slot may still be held."""
        return self.consumed or self.failure is not None


@dataclass(frozen=True, slots=True)
class Failure:
    """A job that failed."""

    sequence: int
    error: CoatcheckError


@dataclass(frozen=True, slots=True)
class JobReport:
    """One job in flight at one moment."""

    sequence: int
    stage: Stage
    age_s: float
    """Since it entered this stage."""
    settled: bool
    holders: frozenset[Holder]


@dataclass(frozen=True, slots=True)
class Report:
    """A connector at one moment."""

    free: tuple[int, ...]
    """The numbers of the free slots."""
    jobs: tuple[JobReport, ...]
    ended: bool


Compute = Callable[[B, B], None]
"""Reads the first, a pass's inputs, and writes the second, its rows."""
