"""The progress board: which stage has work in flight, how old the oldest is, and when the last piece was completed.

A stage is *vital* (plan, persist, project, the event loop) or *optional* (each model stage). It is *stuck* when its oldest
piece in flight has outlived the stage's limit and nothing was completed or advanced within the limit either: a slow stage
that moves is not stuck, whatever its backlog; and one whose model is being loaded stands no more still than its disk does.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

EVENT_LOOP = "event-loop"
LOADING_LIMIT_S = 300.0
"""Gigabytes from a cold disk on a busy machine; what takes longer than that has come to a stop."""
RERANK_LIMIT_S = 10.0
"""Some thirty times what one takes: while the stage stands still, recalls need not each wait to learn it."""


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage and its limit in seconds."""

    name: str
    vital: bool
    limit_s: float


@dataclass(frozen=True, slots=True)
class StageReport:
    """One stage at one moment. Ages in seconds; ``None`` where there is nothing to have an age."""

    name: str
    vital: bool
    in_flight: int
    oldest_age_s: float | None
    completions: int
    last_completion_age_s: float | None
    stuck: bool
    failing: bool
    """Whether what the stage tried last has failed."""
    loading: bool
    """Whether its model is still being loaded although the stage's limit has passed: not stuck, and nothing new is taken on."""


def standard_stages(limit_s: float) -> tuple[Stage, ...]:
    """The stages of this service, all under one limit; reranking's is what a recall could wait for at most."""
    vital = ("plan", "persist", "project", EVENT_LOOP)
    optional = ("embed", "rerank", "router", "compressor", "entailment", "summariser")
    limits_s = {"rerank": min(limit_s, RERANK_LIMIT_S)}
    return tuple(Stage(n, True, limit_s) for n in vital) + tuple(Stage(n, False, limits_s.get(n, limit_s)) for n in optional)


@dataclass(slots=True)
class _Ledger:
    stage: Stage
    moved_at: float
    """When something was last completed or advanced; at first, when the board was made."""
    started: dict[int, float] = field(default_factory=dict)
    completions: int = 0
    completed_at: float | None = None
    failing: bool = False
    loading_since: list[float] = field(default_factory=list)


class Piece:
    """One piece of work in flight, from ``ProgressBoard.begin``."""

    __slots__ = ("_board", "_number", "_stage")

    def __init__(self, board: ProgressBoard, stage: str, number: int) -> None:
        self._board = board
        self._stage = stage
        self._number = number

    def advance(self) -> None:
        """Says that this piece moved on: one of its slices is done."""
        self._board.advance(self._stage)

    @contextmanager
    def aside(self) -> Iterator[None]:
        """For a piece that waits for what is watched elsewhere: it is in flight again after that, and young."""
        self.withdraw()
        try:
            yield
        finally:
            self._number = self._board.begin(self._stage)._number

    def failed(self) -> None:
        """Says that the stage failed at it; the stage counts as failing until something advances."""
        self._board.fail(self._stage)

    def withdraw(self) -> None:
        """Ends a piece that nothing was done for: no completion, and no sign that the stage moves."""
        self._board.withdraw(self._stage, self._number)

    def done(self) -> None:
        """Ends the piece, however it went. A second call does nothing."""
        self._board.end(self._stage, self._number)


class ProgressBoard:
    """Counts pieces of work by stage; every method is safe from any thread."""

    def __init__(self, stages: Iterable[Stage], monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._numbers = itertools.count()
        self._ledgers = {stage.name: _Ledger(stage, monotonic()) for stage in stages}

    @contextmanager
    def stage(self, name: str) -> Iterator[Piece]:
        """One piece of work of a stage, for as long as the block runs."""
        piece = self.begin(name)
        try:
            yield piece
        finally:
            piece.done()

    def begin(self, name: str) -> Piece:
        """Starts a piece that ends elsewhere. Raises KeyError for a stage the board was not made with."""
        with self._lock:
            number = next(self._numbers)
            self._ledgers[name].started[number] = self._monotonic()
        return Piece(self, name, number)

    @contextmanager
    def loading(self, name: str) -> Iterator[None]:
        """For as long as the stage's model is being loaded; the stage has its whole limit for its work after that."""
        began = self._monotonic()
        with self._lock:
            self._ledgers[name].loading_since.append(began)
        try:
            yield
        finally:
            with self._lock:
                self._ledgers[name].loading_since.remove(began)
                self._ledgers[name].moved_at = self._monotonic()

    def advance(self, name: str) -> None:
        """Says that some piece of the stage moved on."""
        with self._lock:
            self._ledgers[name].moved_at = self._monotonic()
            self._ledgers[name].failing = False

    def fail(self, name: str) -> None:
        """Says that the stage failed at what it tried last."""
        with self._lock:
            self._ledgers[name].failing = True

    def withdraw(self, name: str, number: int) -> None:
        with self._lock:
            self._ledgers[name].started.pop(number, None)

    def end(self, name: str, number: int) -> None:
        with self._lock:
            ledger = self._ledgers[name]
            if ledger.started.pop(number, None) is not None:
                ledger.completions += 1
                ledger.moved_at = ledger.completed_at = self._monotonic()

    def accepts(self, name: str) -> bool:
        """Whether the stage takes new work: a stuck one does not, nor one that has been loading for as long."""
        with self._lock:
            report = self._report(self._ledgers[name])
        return not report.stuck and not report.loading

    def reports(self) -> tuple[StageReport, ...]:
        with self._lock:
            return tuple(self._report(ledger) for ledger in self._ledgers.values())

    def stuck(self, *, vital: bool) -> tuple[str, ...]:
        """The names of the stuck stages of one kind."""
        return tuple(report.name for report in self.reports() if report.stuck and report.vital is vital)

    def loading_long(self) -> tuple[str, ...]:
        """The names of the stages that take nothing on because their models are still being loaded."""
        return tuple(report.name for report in self.reports() if report.loading)

    def failing(self) -> tuple[str, ...]:
        """The names of the stages that failed at what they tried last."""
        return tuple(report.name for report in self.reports() if report.failing)

    def _report(self, ledger: _Ledger) -> StageReport:
        now = self._monotonic()
        oldest = next(iter(ledger.started.values()), None)
        limit = ledger.stage.limit_s
        still = oldest is not None and now - oldest > limit and now - ledger.moved_at > limit
        loads = bool(ledger.loading_since) and now - ledger.loading_since[0] <= max(limit, LOADING_LIMIT_S)
        return StageReport(
            name=ledger.stage.name,
            vital=ledger.stage.vital,
            in_flight=len(ledger.started),
            oldest_age_s=None if oldest is None else now - oldest,
            completions=ledger.completions,
            last_completion_age_s=None if ledger.completed_at is None else now - ledger.completed_at,
            stuck=still and not loads,
            failing=ledger.failing,
            loading=still and loads,
        )
