"""Message-safe windows: the middle of a live conversation, and a whole conversation cut into pieces.

A window never splits a call from its result, nor a batch of parallel calls. What cannot stand in any window (an unanswered
call, a result without its call) is named, never dropped in silence.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from coatcheck_client.pairing import Group, groups
from coatcheck_client.sizes import text_chars

DEFAULT_WINDOW_CHARS = 100_000
DEFAULT_KEEP_LAST = 6
HANDOFF_CHARS = 1_900
"""The default bound of a handoff: a window shorter than this cannot gain anything."""
MAX_WINDOW_BYTES = 24 * 1024 * 1024
"""Below the service's body limit of 32 MiB, images included."""


@dataclass(frozen=True, slots=True)
class Window:
    """Messages of a conversation that can be handed in together. ``indices`` are their places in it, ascending."""

    indices: tuple[int, ...]
    messages: tuple[Any, ...]
    chars: int
    """As ``sizes`` counts them."""

    @property
    def start(self) -> int:
        return self.indices[0]

    @property
    def stop(self) -> int:
        return self.indices[-1] + 1

    def replaced(self, conversation: Sequence[Any], handoff_message: Any) -> list[Any]:
        """The conversation with the handoff's message in this window's place. Raises ValueError when the window has gaps."""
        if self.stop - self.start != len(self.indices):
            raise ValueError("messages inside this window belong to no window, so that nothing can stand in its place")
        return [*conversation[: self.start], handoff_message, *conversation[self.stop :]]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Messages that no window can hold, and why."""

    indices: tuple[int, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class Cut:
    """A conversation cut up: the windows in order, and what is in none of them."""

    windows: tuple[Window, ...]
    left_out: tuple[LeftOut, ...]


def plan_window(
    messages: Sequence[Any],
    *,
    keep_first: int | None = None,
    keep_last: int = DEFAULT_KEEP_LAST,
    min_chars: int = 2 * HANDOFF_CHARS,
) -> Window | None:
    """The middle of a live conversation that is worth handing in; null where there is none.

    ``keep_first`` messages stay as the head (by default the leading system and developer messages and the first user
    message, the task), ``keep_last`` at least as the tail. Both grow until no group is split. Where a broken group stands in
    the middle, the larger side of it is taken.
    """
    head = _head(messages) if keep_first is None else keep_first
    tail = len(messages) - keep_last
    parts = groups(messages)
    best_chars, best = 0, slice(0, 0)
    chars, first = 0, 0
    for position, group in enumerate(parts):
        if group.start < head or group.stop > tail or group.flaw is not None:
            chars, first = 0, position + 1
            continue
        chars += _chars(messages, group)
        if chars > best_chars:
            best_chars, best = chars, slice(first, position + 1)
    return _window(messages, parts[best]) if best_chars >= max(1, min_chars) else None


def cut_windows(messages: Sequence[Any], window_chars: int = DEFAULT_WINDOW_CHARS) -> Cut:
    """A whole conversation as windows of about ``window_chars`` characters, in order.

    A window is larger where one group is, or where it would else be shorter than a handoff; a tail shorter than a handoff
    joins the window before it.
    """
    if window_chars < 1:
        raise ValueError("a window holds at least one character")
    cut: list[list[Group]] = []
    left_out: list[LeftOut] = []
    current: list[Group] = []
    chars = size = 0
    for group in groups(messages):
        if group.flaw is not None:
            left_out.append(LeftOut(tuple(range(group.start, group.stop)), group.flaw.value))
            continue
        group_chars, group_bytes = _chars(messages, group), _size_bytes(messages, group)
        is_full = chars + group_chars > window_chars and chars >= HANDOFF_CHARS
        if current and (is_full or size + group_bytes > MAX_WINDOW_BYTES):
            cut.append(current)
            current, chars, size = [], 0, 0
        current.append(group)
        chars += group_chars
        size += group_bytes
    if current and cut and chars < HANDOFF_CHARS and size + sum(_size_bytes(messages, g) for g in cut[-1]) <= MAX_WINDOW_BYTES:
        cut[-1] += current
    elif current:
        cut.append(current)
    return Cut(tuple(_window(messages, part) for part in cut), tuple(left_out))


def _head(messages: Sequence[Any]) -> int:
    index = 0
    while index < len(messages) and _role(messages[index]) in ("system", "developer"):
        index += 1
    return index + 1 if index < len(messages) and _role(messages[index]) == "user" else index


def _role(message: Any) -> Any:
    return message.get("role") if isinstance(message, dict) else None


def _window(messages: Sequence[Any], parts: Sequence[Group]) -> Window:
    indices = tuple(index for group in parts for index in range(group.start, group.stop))
    return Window(indices, tuple(messages[index] for index in indices), sum(_chars(messages, group) for group in parts))


def _chars(messages: Sequence[Any], group: Group) -> int:
    return sum(text_chars(message) for message in messages[group.start : group.stop])


def _size_bytes(messages: Sequence[Any], group: Group) -> int:
    return sum(len(json.dumps(message, default=str)) for message in messages[group.start : group.stop])
