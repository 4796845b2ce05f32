"""Shape checks that the formats share. Each raises InvalidRequest with one JSON pointer; no detail repeats content."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NoReturn

from coatcheck.domain.canonical import JsonObject, JsonValue, Path, pointer
from coatcheck.domain.errors import FieldError, InvalidRequest
from coatcheck.domain.messages import Role

MAX_DEPTH = 200
"""Objects and lists inside each other: far beyond what any provider takes, and safe for every walk of a message."""

TEXT_TYPES = frozenset(("text", "input_text", "output_text"))


def refuse(path: Path, detail: str) -> NoReturn:
    raise InvalidRequest("The window has a shape that its format does not know.", errors=[FieldError(pointer(path), detail)])


def require_object(value: JsonValue, at: Path, what: str) -> JsonObject:
    if not isinstance(value, dict):
        refuse(at, f"{what} must be an object")
    return value


def require_message(value: JsonValue, at: Path) -> JsonObject:
    message = require_object(value, at, "a message")
    _require_depth(message, at)
    return message


def require_string(holder: JsonObject, key: str, at: Path) -> str:
    value = holder.get(key)
    if not isinstance(value, str):
        refuse((*at, key), f"{key} must be a string")
    return value


def string_in(holder: JsonObject, key: str) -> str | None:
    """The string under the key; None for anything else."""
    value = holder.get(key)
    return value if isinstance(value, str) else None


def role_in(message: JsonObject, known: Mapping[str, Role]) -> Role:
    """The message's role by its format's names; what was not checked is a user's."""
    return known.get(string_in(message, "role") or "", "user")


def require_role(message: JsonObject, at: Path, known: Collection[str]) -> str:
    role = require_string(message, "role", at)
    if role not in known:
        refuse((*at, "role"), f"role must be one of {', '.join(sorted(known))}")
    return role


def check_content(value: JsonValue, at: Path) -> None:
    """Null, a string, or a list of blocks that each have a type, and text where the type says so."""
    if value is None or isinstance(value, str):
        return
    if not isinstance(value, list):
        refuse(at, "content must be a string, a list of blocks or null")
    for position, item in enumerate(value):
        here = (*at, position)
        kind = require_string(require_object(item, here, "a block"), "type", here)
        check_text_block(item, kind, here)


def check_text_block(item: JsonValue, kind: str, at: Path) -> None:
    if kind in TEXT_TYPES and isinstance(item, dict):
        require_string(item, "text", at)


def check_tool_output(value: JsonValue, at: Path) -> None:
    """What a tool returned: text, blocks, or any JSON object or list that an agent wrote down as it came."""
    if not (value is None or isinstance(value, str | list | dict)):
        refuse(at, f"{at[-1]} must be a string, a list, an object or null")
    for position, item in enumerate(value if isinstance(value, list) else ()):
        kind = item.get("type") if isinstance(item, dict) else None
        if isinstance(kind, str):
            check_text_block(item, kind, (*at, position))


def check_no_system(system: JsonValue, at: Path) -> None:
    if system is not None:
        refuse(at, "only the anthropic format has a system field; here the system prompt is a message")


def _require_depth(message: JsonObject, at: Path) -> None:
    level: list[JsonValue] = [message]
    for _ in range(MAX_DEPTH):
        level = [
            item
            for holder in level
            for item in (holder.values() if isinstance(holder, dict) else holder if isinstance(holder, list) else ())
            if isinstance(item, dict | list)
        ]
        if not level:
            return
    refuse(at, f"a message may be nested {MAX_DEPTH} levels deep at most")
