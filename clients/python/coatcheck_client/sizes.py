"""How long a message is: the code points of its text, counted as the service counts a window (``window.chars``).

Text is what was said, thought, called with and returned. What a tool is called with counts as compact JSON where it is no
string, and so does a block that holds nothing known. Names, ids, signatures, fields that no provider defines and encoded binary
content do not count. The service counts after redaction, which may make a text a little longer or shorter.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_SAID = (
    "content", "text", "refusal", "reasoning", "reasoning_content", "thinking", "thinking_blocks", "reasoning_details", "summary",
    "transcript", "audio", "tool_calls", "function_call", "function", "custom", "output", "outputs",
)  # fmt: skip
_CALLED_WITH = ("arguments", "input", "action", "actions", "operation", "code")
_CALLS = ("_call", "tool_use")
_BINARY = ("data", "file_data")
_SEALED = ("redacted_thinking", "image_generation_call")
_DATA_URL = ";base64,"
_PROSE_CHARS, _MANY_STRINGS = 200, 200
"""As the service cuts data into parts."""


def text_chars(value: Any) -> int:
    """The code points of a message, of a list of them, or of what one holds."""
    if isinstance(value, str):
        return 0 if _is_data_url(value) else len(value)
    if isinstance(value, list | tuple):
        return _data_chars(value) if _is_data(value) else sum(map(text_chars, value))
    return _of_object(value) if isinstance(value, Mapping) else 0


def _of_object(value: Mapping[str, Any]) -> int:
    held = [text_chars(value[key]) for key in _SAID if value.get(key) not in (None, [])]
    if _is_call(value):
        held += [_json_chars(value[key]) for key in _CALLED_WITH if key in value][:1]
    source = value.get("source")
    if isinstance(source, Mapping) and source.get("type") in ("text", "content"):
        held.append(text_chars(source.get("data") or source.get("content")))
    if held:
        return sum(held)
    return 0 if _is_binary(value) else _json_chars(value)


def _is_data(values: Sequence[Any]) -> bool:
    """A list that a tool returned, and not one of blocks or messages."""
    return bool(values) and all(isinstance(item, Mapping) and "type" not in item and "role" not in item for item in values)


def _data_chars(value: Any) -> int:
    """Of what a tool returned as data: its strings where prose is among them, else its JSON."""
    strings = list(_strings(value))
    has_prose = any("\n" in item or len(item) > _PROSE_CHARS for item in strings)
    return sum(map(len, strings)) if has_prose and len(strings) <= _MANY_STRINGS else _json_chars(value)


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from _strings(item)


def _is_call(value: Mapping[str, Any]) -> bool:
    """A call as an item or a block, or the body of one in a chat message; an agent's message may have such keys of its own."""
    return str(value.get("type")).endswith(_CALLS) or ("name" in value and "role" not in value)


def _is_binary(value: Any) -> bool:
    """Whether encoded binary content, or what only a provider reads, stands anywhere in it."""
    if isinstance(value, Mapping):
        return value.get("type") in _SEALED or any(key in _BINARY or _is_binary(item) for key, item in value.items())
    return isinstance(value, str) and _is_data_url(value)


def _is_data_url(text: str) -> bool:
    return text.startswith("data:") and _DATA_URL in text[:200]


def _json_chars(value: Any) -> int:
    return len(value) if isinstance(value, str) else len(json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str))
