"""Anthropic messages: content blocks, tool results inside user messages, signed thinking, a system prompt outside the list."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from coatcheck.domain.canonical import JsonObject, JsonValue, Path
from coatcheck.domain.messages import PartKind, Reading, Role, WindowFormat
from coatcheck.formats import blocks
from coatcheck.formats.checks import (
    check_content,
    check_tool_output,
    refuse,
    require_message,
    require_role,
    require_string,
    role_in,
    string_in,
)
from coatcheck.formats.rules import (
    Finding,
    Place,
    Rule,
    as_json,
    each,
    or_whole,
    parts_of,
    reading_of,
    structural,
    text,
)

_ROLES: Mapping[str, Role] = {"user": "user", "assistant": "assistant", "system": "system"}
"""``system`` inside the list: newer models take instructions in the middle of a conversation."""


class Anthropic:
    """The ``messages`` and the ``system`` of the messages API."""

    name: WindowFormat = "anthropic"

    def check(self, message: JsonValue, at: Path) -> JsonObject:
        checked = require_message(message, at)
        require_role(checked, at, _ROLES)
        content = checked.get("content")
        check_content(content, (*at, "content"))
        for position, block in enumerate(content if isinstance(content, list) else ()):
            if isinstance(block, dict):
                _check_tool_block(block, (*at, "content", position))
        return checked

    def read(self, message: JsonObject) -> Reading:
        return reading_of(_read(message))

    def role(self, message: JsonObject) -> Role:
        return role_in(message, _ROLES)

    def check_system(self, system: JsonValue, at: Path) -> None:
        if not (system is None or isinstance(system, str | list)):
            refuse(at, "system must be a string, a list of text blocks or null")
        check_content(system, at)

    def read_system(self, system: JsonValue) -> Reading:
        return reading_of(_read_system(system))

    def thinking_marker(self, block: JsonValue, marker: str) -> JsonValue:
        """Text: a thinking block without its signature would be refused by the provider."""
        return {"type": "text", "text": marker}

    def handoff_message(self, text: str) -> JsonObject:
        return {"role": "user", "content": [{"type": "text", "text": text}]}


def _is_call(kind: JsonValue) -> bool:
    """``tool_use``, and what the provider runs itself: ``server_tool_use``, ``mcp_tool_use``."""
    return isinstance(kind, str) and kind.endswith("tool_use")


def _is_result(kind: JsonValue) -> bool:
    """``tool_result``, and ``web_search_tool_result`` and its kind, which stand in the assistant's own message."""
    return isinstance(kind, str) and kind.endswith("tool_result")


def _check_tool_block(block: JsonObject, at: Path) -> None:
    if _is_call(block.get("type")):
        require_string(block, "id", at)
        require_string(block, "name", at)
    elif _is_result(block.get("type")):
        require_string(block, "tool_use_id", at)
        check_tool_output(block.get("content"), (*at, "content"))


def _read(message: JsonObject) -> Iterator[Finding]:
    place = Place(role_in(message, _ROLES))
    rules: Mapping[str, Rule] = {"role": structural, "content": _content(place)}
    return parts_of(message, (), place, rules, PartKind.OPAQUE)


def _read_system(system: JsonValue) -> Iterator[Finding]:
    place = Place("system")
    return or_whole(place.site((), "json", kind=PartKind.OPAQUE), blocks.content(place)(system, ()))


def _content(place: Place) -> Rule:
    def one(value: JsonValue, path: Path) -> Iterator[Finding]:
        if isinstance(value, str):
            return text(place)(value, path)
        if isinstance(value, dict) and _is_call(value.get("type")):
            return _call(value, path, place.role)
        if isinstance(value, dict) and _is_result(value.get("type")):
            return _result(value, path)
        return blocks.block(place)(value, path)

    return each(one)


def _call(block: JsonObject, path: Path, role: Role) -> Iterator[Finding]:
    place = Place(role, PartKind.TOOL_CALL, string_in(block, "id"), string_in(block, "name"))
    rules: Mapping[str, Rule] = {"type": structural, "id": structural, "input": as_json(place)}
    return parts_of(block, path, place, rules)


def _result(block: JsonObject, path: Path) -> Iterator[Finding]:
    place = Place("tool", PartKind.TOOL_RESULT, string_in(block, "tool_use_id"), string_in(block, "name"))
    sealed = frozenset[str]() if block.get("type") == "tool_result" else blocks.SEALED
    rules: Mapping[str, Rule] = {
        "type": structural,
        "tool_use_id": structural,
        "content": blocks.content(place, sealed),
    }
    return parts_of(block, path, place, rules)
