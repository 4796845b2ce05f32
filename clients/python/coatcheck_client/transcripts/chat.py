"""Logs that hold a provider's messages as they are: a bare list, a request, SWE-agent, OpenHands, cline, or one a line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from coatcheck_client.errors import TranscriptError
from coatcheck_client.transcripts.transcript import Transcript, detect_format, time_of

_LIST_KEYS = ("messages", "history", "input")
_SYSTEM_KEYS = ("system", "system_prompt")
_ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})


def is_message(record: Any) -> bool:
    """Whether this is one message of a conversation, or one item of OpenAI Responses."""
    if not isinstance(record, dict):
        return False
    if record.get("role") in _ROLES:
        return "content" in record or "tool_calls" in record or "function_call" in record
    kind = record.get("type")
    return isinstance(kind, str) and (kind in ("reasoning", "compaction") or kind.endswith(("_call", "_output")))


def _is_item(record: Any) -> bool:
    """Whether this can be nothing but an item of OpenAI Responses."""
    return is_message(record) and ("role" not in record or record.get("type") == "message")


def _is_item_to_come(record: Any) -> bool:
    """Whether this is what the service takes for an item among items, though its type be one that nobody knows yet."""
    if not isinstance(record, dict) or "role" in record:
        return False
    kind = record.get("type")
    return isinstance(kind, str) if kind is not None else isinstance(record.get("id"), str)


def from_document(document: Any) -> Transcript:
    """A transcript from one JSON document. Raises TranscriptError on an unknown shape."""
    if isinstance(document, list):
        return _transcript(document, None, "messages")
    if not isinstance(document, dict):
        raise TranscriptError("a transcript is a list of messages or an object that holds one")
    key = next((k for k in _LIST_KEYS if isinstance(document.get(k), list)), None)
    if key is None:
        keys = ", ".join(sorted(str(k) for k in document)[:8]) or "none"
        raise TranscriptError(f"no list of messages under {', '.join(_LIST_KEYS)}; the keys are: {keys}")
    system = next((document[k] for k in _SYSTEM_KEYS if document.get(k)), None)
    return _transcript(document[key], system, key, _not_messages(document))


def from_records(records: Sequence[dict[str, Any]], warnings: Sequence[str] = ()) -> Transcript:
    """A transcript from JSON lines that each hold one message. Raises TranscriptError."""
    return _transcript(list(records), None, "message lines", warnings)


def _transcript(messages: list[Any], system: Any, source: str, warnings: Sequence[str] = ()) -> Transcript:
    if not messages:
        raise TranscriptError("the list of messages is empty")
    among_items = source == "input" or any(_is_item(message) for message in messages)
    for position, message in enumerate(messages):
        if not is_message(message) and not (among_items and _is_item_to_come(message)):
            raise TranscriptError(f"entry {position} is no message of a known format but {_described(message)}")
    wire_format = detect_format(messages)
    if system is not None and wire_format == "openai-chat" and not _has_system(messages):
        # Only Anthropic keeps the system prompt outside the list.
        wire_format = "anthropic"
    if system is not None and wire_format != "anthropic":
        system, warnings = None, [*warnings, "the system prompt stands outside the messages and was left out"]
    times = tuple(time_of(message) for message in messages)
    return Transcript(wire_format, system, tuple(messages), times, source, tuple(warnings))


def _described(entry: Any) -> str:
    """What stands in a message's place, by what would have made it one."""
    if not isinstance(entry, dict):
        return _json_kind(entry)
    named = next((f"{name} {entry[name]!r}" for name in ("type", "role") if name in entry), "neither type nor role")
    return f"an object of {named}"[:80]


def _has_system(messages: Sequence[Any]) -> bool:
    return any(message.get("role") in ("system", "developer", "tool") for message in messages)


def _not_messages(document: dict[str, Any]) -> list[str]:
    warnings = []
    if isinstance(document.get("response"), dict):
        warnings.append("the log's response is not among its messages and was left out")
    if document.get("instructions"):
        warnings.append("the request's instructions are not among its items and were left out")
    return warnings


def _json_kind(value: Any) -> str:
    """What JSON calls it."""
    kinds = {str: "a string", bool: "true or false", int: "a number", float: "a number", list: "a list"}
    return kinds.get(type(value), "null")
