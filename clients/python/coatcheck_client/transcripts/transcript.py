"""A transcript: a whole conversation as its provider's messages, and what its reader had to leave out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from coatcheck_client.wire import FormatName

_ANTHROPIC_BLOCKS = frozenset(
    {"tool_use", "tool_result", "thinking", "redacted_thinking", "server_tool_use", "document", "image", "search_result"}
)
_TIME_KEYS = ("timestamp", "ts", "created_at", "time")
_MILLISECONDS_FROM = 100_000_000_000
"""An epoch time above this is in milliseconds: in seconds it would lie in the year 5138."""


@dataclass(frozen=True, slots=True)
class Transcript:
    """``times`` has one entry per message, null where the log names none. ``source`` is the shape that was read."""

    format: FormatName
    system: Any
    messages: tuple[Any, ...]
    times: tuple[datetime | None, ...]
    source: str
    warnings: tuple[str, ...] = ()


def detect_format(messages: Sequence[Any]) -> FormatName:
    """The wire format that these messages are in; plain ``{role, content}`` messages are OpenAI chat."""
    for message in messages:
        if not isinstance(message, dict):
            continue
        if "role" not in message or message.get("type") == "message":
            return "openai-responses"
        if message.get("role") in ("tool", "function") or "tool_calls" in message or "function_call" in message:
            return "openai-chat"
        for block in message["content"] if isinstance(message.get("content"), list) else ():
            kind = block.get("type") if isinstance(block, dict) else None
            if kind in _ANTHROPIC_BLOCKS:
                return "anthropic"
            if kind in ("input_text", "output_text", "input_image", "input_file"):
                return "openai-responses"
    return "openai-chat"


def time_of(record: Any) -> datetime | None:
    """The time that a log's record names: ISO 8601, or seconds or milliseconds since the epoch; UTC where no zone is given."""
    if not isinstance(record, dict):
        return None
    for key in _TIME_KEYS:
        value = record.get(key)
        try:
            if isinstance(value, str):
                parsed = datetime.fromisoformat(value)
                return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)
            if isinstance(value, int | float) and not isinstance(value, bool):
                return datetime.fromtimestamp(value / 1_000 if value > _MILLISECONDS_FROM else value, UTC)
        except (ValueError, OverflowError, OSError):
            continue
    return None
