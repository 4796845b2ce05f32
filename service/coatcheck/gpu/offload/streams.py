"""Streams, as offload needs them: what CUDA promises about order, and nothing else.

Two things stand behind this protocol: CUDA (``cuda``), and a deterministic model of CUDA's ordering (``modelled``).
"""

from __future__ import annotations

from typing import Protocol, TypeVar

B = TypeVar("B")
"""A piece of memory, on the host or on the device; its first dimension counts tokens."""


class Stream:
    """A queue of operations that the device executes in the order in which they were put in."""

    __slots__ = ()


class Event:
    """A point in a stream. It stands for its newest recording, and is complete where it was never recorded."""

    __slots__ = ()


class Signal:
    """A number that only grows, raised by the host, waited for by streams. It starts at 0."""

    __slots__ = ()


class Streams(Protocol[B]):
    """Operations on streams return at once; what they do happens later, in the stream's order."""

    def event(self) -> Event: ...

    def signal(self) -> Signal: ...

    def record(self, stream: Stream, event: Event) -> None:
        """The event stands for this point of the stream from now on, whatever it stood for before."""

    def wait(self, stream: Stream, event: Event) -> None:
        """The stream goes on when what the event stands for *now* is complete; recording it anew changes nothing."""

    def wait_signal(self, stream: Stream, signal: Signal, sequence: int) -> None:
        """The stream goes on when the signal has reached the sequence."""

    def copy(self, stream: Stream, source: B, target: B) -> None:
        """Copies all of the source, in the stream's order, between equal shapes."""

    def completed(self, event: Event) -> bool:
        """The host's question. It never blocks, also not while another thread waits for room in a stream."""

    def raise_signal(self, signal: Signal, sequence: int) -> None:
        """The host's word to streams. It never blocks."""

    def stamp(self, tag: B, sequence: int) -> None:
        """The host writes a sequence into a tag of its own memory."""

    def stamped(self, tag: B) -> int:
        """The sequence in a tag of the host's memory."""

    def size(self, memory: B) -> int:
        """How many tokens it has room for."""

    def part(self, memory: B, size: int) -> B:
        """Its first tokens, without a copy."""
