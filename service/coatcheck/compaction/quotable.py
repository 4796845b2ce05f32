"""What a handoff may quote: the segments of texts, tool calls and results, and whether the turn they belong to is over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from coatcheck.compaction.lexicon import Signal, hits, lower
from coatcheck.compaction.quoting import ELLIPSIS, stretch
from coatcheck.compaction.requests import asks
from coatcheck.domain.messages import Message, PartKind, Role
from coatcheck.domain.values import value

_QUOTED_KINDS = frozenset((PartKind.TEXT, PartKind.TOOL_CALL, PartKind.TOOL_RESULT))

CLOSED = "[closed] "
OPEN = "[open] "
EARLIER = "[earlier] "

_LEFT_TO_DO = frozenset((Signal.OPEN,))


@value
class Quotable:
    """One segment that may be quoted, at its first place in the window."""

    sha256: str
    text: str
    role: Role
    kind: PartKind
    position: int
    """Of the message in the window."""
    begins_message: bool
    source: str | None
    """The tool that a call or result belongs to."""
    answered: bool
    """Whether the assistant ended a turn after it."""
    in_last_turn: bool
    begins_within: bool = False
    """Whether its first line began in the segment before it."""
    ends_within: bool = False
    """Whether its last line goes on in the segment behind it."""

    def quote(self, start: int, end: int) -> str:
        """[start, end) of its text as one line, with an ellipsis on each side on which the line goes on."""
        line = stretch(self.text, start, end)
        if self.begins_within and "\n" not in self.text[:start]:
            line = ELLIPSIS + line.removeprefix(ELLIPSIS)
        if self.ends_within and "\n" not in self.text[end:]:
            line = line.removesuffix(ELLIPSIS) + ELLIPSIS
        return line


def is_quoted_kind(kind: PartKind) -> bool:
    """Thinking is the model's own, blobs and opaque parts are no text: none of them is quoted."""
    return kind in _QUOTED_KINDS


@dataclass(frozen=True, slots=True)
class Turns:
    """Where the conversation's turns end, by position of the messages."""

    last_end: int
    last_user: int

    @classmethod
    def of(cls, messages: Sequence[Message]) -> Turns:
        """A turn ends with an assistant's text that no call accompanies or follows directly."""
        last_end = last_user = -1
        for position, message in enumerate(messages):
            kinds = {part.kind for part in message.parts}
            if message.role == "user" and PartKind.TEXT in kinds:
                last_user = position
            elif message.role == "assistant" and PartKind.TEXT in kinds and PartKind.TOOL_CALL not in kinds:
                following = messages[position + 1].role if position + 1 < len(messages) else "user"
                if following not in ("assistant", "tool"):
                    last_end = position
        return cls(last_end, last_user)

    def answered(self, position: int) -> bool:
        return self.last_end > position

    def in_last(self, position: int) -> bool:
        return position >= self.last_user


def with_state(quotable: Quotable, line: str) -> str:
    """A line that asks for something, or says what is left to do, marked by whether that still stands."""
    if quotable.role == "user" and asks(line):
        return (CLOSED if quotable.answered else OPEN) + line
    if quotable.role == "assistant" and not quotable.in_last_turn and _LEFT_TO_DO.intersection(_signals(line)):
        return EARLIER + line
    return line


def _signals(line: str) -> set[Signal]:
    return {hit.signal for hit in hits(lower(line), _LEFT_TO_DO, limit=1)}
