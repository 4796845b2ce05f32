"""OpenAI Responses items: messages, calls and their outputs, reasoning, and items of types that do not exist yet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from coatcheck.domain.canonical import JsonObject, JsonValue, Path
from coatcheck.domain.messages import PartKind, Reading, Role, WindowFormat
from coatcheck.formats import blocks
from coatcheck.formats.checks import (
    check_content,
    check_no_system,
    check_tool_output,
    refuse,
    require_message,
    require_role,
    require_string,
    string_in,
)
from coatcheck.formats.rules import (
    Finding,
    Place,
    Rule,
    blob,
    ciphertext,
    extra,
    free,
    members,
    of_thinking,
    or_whole,
    parts_of,
    reading_of,
    structural,
    text,
    words_or_json,
)

_ROLES: Mapping[str, Role] = {"user": "user", "assistant": "assistant", "system": "system", "developer": "developer"}

_CALL_KEYS = ("arguments", "input", "action", "actions", "operation", "code")
"""Where the items that call a tool say what with: function, custom, shell and computer, patch, program."""
_OUTPUT_KEYS = ("output", "result")
_HOSTED: Mapping[str, tuple[str, str]] = {"mcp_call": ("arguments", "output"), "code_interpreter_call": ("code", "outputs")}
"""Tools that the provider runs: call and result are one item, which its ``id`` links to itself."""


class OpenAIResponses:
    """The ``input`` items of the responses API."""

    name: WindowFormat = "openai-responses"

    def check(self, message: JsonValue, at: Path) -> JsonObject:
        item = require_message(message, at)
        kind = item.get("type")
        if kind is not None and not isinstance(kind, str):
            refuse((*at, "type"), "type must be a string")
        if _is_message(item):
            require_role(item, at, _ROLES)
            check_content(item.get("content"), (*at, "content"))
        elif kind is None and not isinstance(item.get("id"), str):
            refuse((*at, "type"), "an item needs a type, or a role and content")
        elif kind in ("function_call", "custom_tool_call"):
            require_string(item, "call_id", at)
            require_string(item, "name", at)
        elif _is_output(item):
            check_tool_output(item.get("output"), (*at, "output"))
        return item

    def read(self, message: JsonObject) -> Reading:
        return reading_of(_read(message))

    def role(self, message: JsonObject) -> Role:
        return _role(message)

    def check_system(self, system: JsonValue, at: Path) -> None:
        check_no_system(system, at)

    def read_system(self, system: JsonValue) -> Reading:
        return Reading((), ())

    def thinking_marker(self, block: JsonValue, marker: str) -> JsonValue:
        """A message: a reasoning item whose text no longer fits its encrypted content would be refused by the provider."""
        if isinstance(block, dict) and block.get("type") != "reasoning":
            return {"type": "output_text", "text": marker}
        return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": marker}]}

    def handoff_message(self, text: str) -> JsonObject:
        return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}


def _role(item: JsonObject) -> Role:
    """An item without a role was made by the model, but for what its tools and its user answered."""
    stated = item.get("role")
    if isinstance(stated, str) and stated in _ROLES:
        return _ROLES[stated]
    if _is_output(item):
        return "tool"
    return "user" if item.get("type") == "mcp_approval_response" else "assistant"


def _is_message(item: JsonObject) -> bool:
    return item.get("type") == "message" or (item.get("type") is None and "role" in item)


def _is_output(item: JsonObject) -> bool:
    """``function_call_output`` and every other answer to a call."""
    kind = item.get("type")
    return isinstance(kind, str) and kind.endswith("_output")


def _is_call(item: JsonObject) -> bool:
    """A call that the client answers: what the provider runs itself has no ``call_id``."""
    kind = item.get("type")
    is_call = isinstance(kind, str) and (kind.endswith("_call") or kind == "program")
    return is_call and isinstance(item.get("call_id"), str)


def _read(item: JsonObject) -> Iterator[Finding]:
    role = _role(item)
    if _is_message(item):
        return _message(item, Place(role))
    kind = item.get("type")
    if kind == "reasoning":
        return _reasoning(item)
    if _is_output(item):
        return _output(item)
    if _is_call(item):
        return _call(item)
    hosted = _HOSTED.get(kind) if isinstance(kind, str) else None
    if hosted is not None and _has_both_in_order(item, *hosted):
        return _hosted(item, *hosted)
    if kind == "image_generation_call" and isinstance(item.get("result"), str):
        return _generated_image(item)
    sealed = ("encrypted_content",) if isinstance(kind, str) and "compaction" in kind else ()
    return blocks.opaque(item, (), Place(role), *sealed)


def _message(item: JsonObject, place: Place) -> Iterator[Finding]:
    rules: Mapping[str, Rule] = {"type": structural, "role": structural, "content": blocks.content(place)}
    return parts_of(item, (), place, rules, PartKind.OPAQUE)


def _reasoning(item: JsonObject) -> Iterator[Finding]:
    """The item is the thinking block: its encrypted content belongs to exactly this text."""
    place = Place("assistant", PartKind.THINKING)
    rules: Mapping[str, Rule] = {
        "type": structural,
        "summary": blocks.content(place),
        "content": blocks.content(place),
        "encrypted_content": ciphertext,
    }
    whole = place.site((), "json", kind=PartKind.OPAQUE)
    return of_thinking((), or_whole(whole, members(item, (), rules, free)))


def _call(item: JsonObject) -> Iterator[Finding]:
    place = Place("assistant", PartKind.TOOL_CALL, string_in(item, "call_id"), string_in(item, "name"))
    rules: dict[str, Rule] = {"type": structural, "call_id": structural, "fingerprint": ciphertext}
    for key in _first_of(_CALL_KEYS, item):
        rules[key] = words_or_json(place)
    return parts_of(item, (), place, rules)


def _output(item: JsonObject) -> Iterator[Finding]:
    # A local shell's output has no call_id: its id is the call's.
    call_id = string_in(item, "call_id") or (string_in(item, "id") if item.get("type") == "local_shell_call_output" else None)
    kind = PartKind.TOOL_RESULT if call_id else PartKind.TEXT
    place = Place("tool", kind, call_id, string_in(item, "name"))
    rules: dict[str, Rule] = {"type": structural, "call_id": structural}
    for key in _first_of(_OUTPUT_KEYS, item):
        rules[key] = blocks.content(place)
    return parts_of(item, (), place, rules)


def _hosted(item: JsonObject, call_key: str, result_key: str) -> Iterator[Finding]:
    call = Place("assistant", PartKind.TOOL_CALL, string_in(item, "id"), string_in(item, "name"))
    result = Place("tool", PartKind.TOOL_RESULT, call.call_id, call.name)
    output = blocks.content(result)
    rules: Mapping[str, Rule] = {
        "type": structural,
        "id": structural,
        call_key: words_or_json(call),
        result_key: lambda value, path: or_whole(result.site(path, "json"), output(value, path)),
    }
    return members(item, (), rules, extra(call))


def _generated_image(item: JsonObject) -> Iterator[Finding]:
    place = Place("assistant")
    form = string_in(item, "output_format")
    rules: Mapping[str, Rule] = {
        "type": structural,
        "result": blob(place, f"image/{form}" if form else None),
        "revised_prompt": text(place),
    }
    return parts_of(item, (), place, rules, PartKind.OPAQUE)


def _has_both_in_order(item: JsonObject, call_key: str, result_key: str) -> bool:
    keys = list(item)
    is_answered = item.get(result_key) is not None and isinstance(item.get("id"), str)
    return is_answered and call_key in item and keys.index(call_key) < keys.index(result_key)


def _first_of(keys: tuple[str, ...], item: JsonObject) -> tuple[str, ...]:
    """The first of these keys that the item has, one that says something before one that is null: an item is one call or result."""
    return tuple(sorted((key for key in keys if key in item), key=lambda key: item[key] is None))[:1]
