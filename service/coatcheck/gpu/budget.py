"""The memory budget of a model on a device: whether a longest sequence and so many at once fit, said before the launch.

Two things are checked that a runtime's own start does not check together: the pool that it cuts out for the cache must hold one
sequence of the longest length, and what stays outside of the pool must hold what is allocated only while it generates.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from coatcheck.domain.errors import GpuRefused

GIB = 1024**3
STATES_IN_FLIGHT = 2
"""Copies of a sequence's recurrent state that a forward may hold for a while beside the pool: what goes in and what comes out. A
margin, and no measurement: by one copy the article's run that failed at 32 sequences at once would have passed, not by two."""


class Problem(StrEnum):
    """Why a configuration will not do."""

    CACHE = "cache"
    """The pool does not hold one sequence of the longest length."""
    MARGIN = "margin"
    """What stays outside of the pool does not hold what generating allocates for a while."""
    ALLOCATOR = "allocator"
    """Expandable segments beside an offload worker in a process of its own: mapping memory into it was refused there."""


@dataclass(frozen=True, slots=True)
class ModelNeeds:
    """What a model needs, in bytes."""

    weights: int
    workspaces: int
    graphs: int
    cache_per_token: int
    """Of all layers that keep something for each token."""
    state_per_sequence: int
    """Recurrent state of all layers."""


@dataclass(frozen=True, slots=True)
class Device:
    """Its memory, and what others than this model hold of it, in bytes."""

    total: int
    others: int


@dataclass(frozen=True, slots=True)
class Launch:
    """How the model is to be launched."""

    max_length: int
    max_sequences: int
    utilisation: float
    """The share of the device's memory that the runtime may cut up: weights, workspaces, graphs and the pool."""
    expandable_segments: bool = False
    offload_worker: bool = False
    """Whether embeddings are looked up by a worker in a process of its own."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that will not do, with its figures."""

    problem: Problem
    detail: str


@dataclass(frozen=True, slots=True)
class Budget:
    """The figures of a launch, in bytes."""

    pool: int
    pool_needed: int
    longest: int
    """Tokens of the longest sequence that the pool holds."""
    sequences_of_full_length: int
    """How many of the longest length the pool holds at once, up to the launch's limit; others wait or are preempted."""
    outside: int
    outside_needed: int
    findings: tuple[Finding, ...]

    @property
    def fits(self) -> bool:
        return not self.findings


def budget(needs: ModelNeeds, device: Device, launch: Launch) -> Budget:
    """Raises GpuRefused for a launch of no tokens, no sequences, or more or less of the device than there is."""
    if launch.max_length < 1 or launch.max_sequences < 1 or not 0 < launch.utilisation <= 1:
        size = f"{launch.max_sequences} sequences of {launch.max_length} tokens"
        raise GpuRefused(f"A launch of {size} with {launch.utilisation} of a device is none.")
    allowed = int(launch.utilisation * device.total)
    pool = max(0, allowed - needs.weights - needs.workspaces - needs.graphs)
    needed = launch.max_length * needs.cache_per_token + needs.state_per_sequence
    outside = device.total - allowed
    outside_needed = device.others + STATES_IN_FLIGHT * launch.max_sequences * needs.state_per_sequence
    longest = max(0, pool - needs.state_per_sequence) // needs.cache_per_token
    findings = []
    if needed > pool:
        findings.append(
            Finding(
                Problem.CACHE,
                f"A sequence of {launch.max_length:,} tokens needs {_gib(needed)} of cache, and {_gib(pool)} are left for it: "
                f"{longest:,} tokens at most.",
            )
        )
    if outside_needed > outside:
        findings.append(
            Finding(
                Problem.MARGIN,
                f"Outside of the pool {_gib(outside)} are left; {launch.max_sequences} sequences at once, with what others hold, "
                f"may need {_gib(outside_needed)}: lower the sequences or the utilisation.",
            )
        )
    if launch.expandable_segments and launch.offload_worker:
        findings.append(
            Finding(Problem.ALLOCATOR, "Expandable segments and an offload worker together were seen to fail at the start.")
        )
    full = min(launch.max_sequences, pool // needed)
    return Budget(pool, needed, longest, full, outside, outside_needed, tuple(findings))


def _gib(size: int) -> str:
    return f"{size / GIB:.2f} GiB"
