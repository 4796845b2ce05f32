"""OpenAI chat messages: roles, string or list content, tool calls with JSON-string arguments, the legacy function calls.

Also what agents and gateways add to them: reasoning as a string or as blocks, several call ids on one tool message, and keys
of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from coatcheck.domain.canonical import JsonObject, JsonValue, Path
from coatcheck.domain.messages import PartKind, Reading, Role, WindowFormat
from coatcheck.formats import blocks
from coatcheck.formats.checks import (
    check_content,
    check_no_system,
    check_tool_output,
    refuse,
    require_message,
    require_object,
    require_role,
    require_string,
    role_in,
)
from coatcheck.formats.rules import (
    Finding,
    Place,
    Rule,
    blob,
    ciphertext,
    each,
    extra,
    members,
    of_thinking,
    parts_of,
    reading_of,
    structural,
    text,
    words_or_json,
)

_ROLES: Mapping[str, Role] = {
    "system": "system",
    "developer": "developer",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}


class OpenAIChat:
    """The ``messages`` of the chat completions API."""

    name: WindowFormat = "openai-chat"

    def check(self, message: JsonValue, at: Path) -> JsonObject:
        checked = require_message(message, at)
        role = require_role(checked, at, _ROLES)
        if role == "tool":
            check_tool_output(checked.get("content"), (*at, "content"))
            if _result_id(checked) is None:
                refuse((*at, "tool_call_id"), "a tool message needs the id of the call that it answers")
        else:
            check_content(checked.get("content"), (*at, "content"))
        if role == "assistant":
            _check_calls(checked, at)
        return checked

    def read(self, message: JsonObject) -> Reading:
        return reading_of(_read(message))

    def role(self, message: JsonObject) -> Role:
        return role_in(message, _ROLES)

    def check_system(self, system: JsonValue, at: Path) -> None:
        check_no_system(system, at)

    def read_system(self, system: JsonValue) -> Reading:
        return Reading((), ())

    def thinking_marker(self, block: JsonValue, marker: str) -> JsonValue:
        if not isinstance(block, dict):
            return marker
        kind = block.get("type")
        is_detail = isinstance(kind, str) and kind.startswith("reasoning.")
        return {"type": "reasoning.text" if is_detail else "text", "text": marker}

    def handoff_message(self, text: str) -> JsonObject:
        return {"role": "user", "content": text}


def _check_calls(message: JsonObject, at: Path) -> None:
    calls = message.get("tool_calls")
    if calls is not None and not isinstance(calls, list):
        refuse((*at, "tool_calls"), "tool_calls must be a list")
    for position, item in enumerate(calls or ()):
        here = (*at, "tool_calls", position)
        call = require_object(item, here, "a tool call")
        require_string(call, "id", here)
        body = "custom" if call.get("type") == "custom" else "function"
        require_string(require_object(call.get(body), (*here, body), body), "name", (*here, body))
    legacy = message.get("function_call")
    if legacy is not None:
        require_string(require_object(legacy, (*at, "function_call"), "function_call"), "name", (*at, "function_call"))


def _result_id(message: JsonObject) -> str | None:
    """The call that a tool message answers. Some agents write a list of ids: the first one stands for it."""
    ids = message.get("tool_call_ids")
    for call_id in (message.get("tool_call_id"), *(ids if isinstance(ids, list) else ())):
        if isinstance(call_id, str):
            return call_id
    return None


def _read(message: JsonObject) -> Iterator[Finding]:
    role = role_in(message, _ROLES)
    name = message.get("name")
    is_result = role == "tool"
    place = Place(role)
    if is_result:
        place = Place(role, PartKind.TOOL_RESULT, _result_id(message), name if isinstance(name, str) else None)
    rules = {key: _RULES[key](place) for key in message if key in _RULES}
    if role == "assistant":
        # Not where it is null: an SDK that writes out every field of its type says by it that there is no call.
        rules |= {key: rule for key, rule in _ASSISTANT_RULES.items() if message.get(key) is not None}
    return parts_of(message, (), place, rules, PartKind.TOOL_RESULT if is_result else PartKind.OPAQUE)


def _reasoning(place: Place) -> Rule:
    """Reasoning as a string: the string is the thinking block."""
    words, other = text(Place(place.role, PartKind.THINKING)), extra(Place(place.role))
    return lambda value, path: of_thinking(path, words(value, path) if isinstance(value, str) else other(value, path))


def _call(value: JsonValue, path: Path) -> Iterator[Finding]:
    """One of ``tool_calls``: a function's arguments, or a custom tool's input."""
    call_id = value.get("id") if isinstance(value, dict) else None
    place = Place("assistant", PartKind.TOOL_CALL, call_id if isinstance(call_id, str) else None)
    rules: Mapping[str, Rule] = {
        "id": structural,
        "type": structural,
        **{key: _body(place, inner) for key, inner in _BODIES.items() if isinstance(value, dict) and value.get(key) is not None},
        "extra_content": _signed,
    }
    return parts_of(value, path, place, rules)


def _body(place: Place, key: str) -> Rule:
    return lambda value, path: _called(value, path, place, key)


def _called(value: JsonValue, path: Path, place: Place, key: str) -> Iterator[Finding]:
    """The name and the arguments of a call. Arguments are a JSON string; some servers write the object itself."""
    name = value.get("name") if isinstance(value, dict) else None
    here = Place(place.role, place.kind, place.call_id, name) if isinstance(name, str) else place
    return parts_of(value, path, here, {key: words_or_json(here)})


def _signed(value: JsonValue, path: Path) -> Iterator[Finding]:
    """A gateway's ``extra_content``, where Gemini's thought signatures stand."""
    signature: Mapping[str, Rule] = {"thought_signature": ciphertext}
    other = extra(Place("assistant"))
    return members(value, path, {"google": lambda item, at: members(item, at, signature, other)}, other)


def _spoken(value: JsonValue, path: Path, place: Place) -> Iterator[Finding]:
    """What the assistant said aloud, and its transcript."""
    return members(value, path, {"data": blob(place), "transcript": text(place)}, extra(place))


_CALLS = Place("assistant", PartKind.TOOL_CALL)
_BODIES: Mapping[str, str] = {"function": "arguments", "custom": "input"}
"""Under which key a call's body stands, and where in it what the tool is called with."""
_RULES: Mapping[str, Callable[[Place], Rule]] = {
    "role": lambda _: structural,
    "tool_call_id": lambda _: structural,
    "tool_call_ids": lambda _: each(structural),
    "content": blocks.content,
    "refusal": text,
    "reasoning_content": _reasoning,
    "reasoning": _reasoning,
    "thinking_blocks": lambda place: each(lambda item, at: blocks.thinking(item, at, place)),
    "reasoning_details": lambda place: each(lambda item, at: blocks.thinking(item, at, place)),
    "audio": lambda place: lambda item, at: _spoken(item, at, place),
}
"""A message's keys that are read by a rule of their own, made only where the message has them."""

_ASSISTANT_RULES: Mapping[str, Rule] = {
    "tool_calls": each(_call),
    "function_call": lambda item, at: _called(item, at, _CALLS, "arguments"),
}
