"""Strings that are JSON documents themselves (a tool's arguments): read as a tree, written back in the form they came in."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from coatcheck.compaction.redaction.names import NameClass, classify
from coatcheck.domain.canonical import JsonValue, Path, parse_text, to_text, value_at
from coatcheck.domain.errors import MalformedJson

_HOLDERS = frozenset(("value", "values", "default", "current", "stringValue", "StringValue", "S", "#text", "_text", "$t"))
"""Keys that hold the value of what the key above them names: Terraform's outputs, typed attributes, XML as JSON."""
_ESCAPED = re.compile(r'[\x00-\x1f"\\]')
_FORMS: tuple[tuple[tuple[str, str], int | None, bool], ...] = tuple(
    (separators, indent, escaped)
    for escaped in (False, True)
    for separators, indent in (((",", ":"), None), ((", ", ": "), None), ((",", ": "), 2), ((",", ": "), 4), ((",", ": "), 1))
)


@dataclass(frozen=True, slots=True)
class Inner:
    """A string inside a document: where, under which key, and what it says."""

    path: Path
    key: str | None
    text: str


def parse_container(text: str) -> JsonValue:
    """The object or list that a text is, or None."""
    stripped = text.strip()
    if len(stripped) < 2 or stripped[0] + stripped[-1] not in ("{}", "[]"):
        return None
    try:
        value = parse_text(stripped)
    except MalformedJson:
        return None
    return value if isinstance(value, (dict, list)) else None


def inner_strings(document: JsonValue, raw: str) -> Iterator[Inner]:
    """The strings that reading the raw text does not read as well: escaped ones, and those whose key says what they are."""
    hidden = "\\u00" in raw or "\\/" in raw
    pending: list[tuple[Path, JsonValue]] = [((), document)]
    while pending:
        path, value = pending.pop()
        if isinstance(value, dict):
            pending.extend(((*path, key), item) for key, item in value.items())
        elif isinstance(value, list):
            pending.extend(((*path, at), item) for at, item in enumerate(value))
        elif isinstance(value, str) and len(value) >= 4:
            key = key_of(document, path)
            escaped = "\\" in raw and (hidden or _ESCAPED.search(value) is not None or not value.isascii())
            if escaped or (key is not None and classify(key)[0] is not NameClass.NOTHING):
                yield Inner(path, key, value)


def key_of(document: JsonValue, path: Path) -> str | None:
    """What names the value at a path: its key, the ``name`` beside a ``value``, or the flag before it in a list of arguments."""
    if not path:
        return None
    last = path[-1]
    parent = value_at(document, path[:-1])
    if isinstance(parent, list) and isinstance(last, int) and last > 0:
        before = parent[last - 1]
        if isinstance(before, str) and before.startswith("-") and len(before) <= 60:
            return before
    if isinstance(parent, dict) and "kty" in parent and last in ("d", "p", "q", "dp", "dq", "qi", "k"):
        return "private_key"  # a JSON web key
    if isinstance(parent, dict) and isinstance(last, str) and last.lower() == "value":
        for name_key in ("name", "key", "Name", "Key", "header", "field"):
            name = parent.get(name_key)
            if isinstance(name, str) and len(name) <= 100:
                return name
    named = [step for step in reversed(path) if isinstance(step, str)]
    return next((step for step in named if step not in _HOLDERS), named[0] if named else None)


def rewritten(raw: str, document: JsonValue, texts: Mapping[Path, str]) -> str:
    """The raw text with other strings at some paths, in the white space and escaping that it had, if that is a common one."""
    body = raw.strip()
    before, after = raw[: raw.index(body)], raw[raw.index(body) + len(body) :]
    form = next((form for form in _FORMS if _written(document, form) == body), None)
    changed = _with_texts(document, (), texts)
    return before + (to_text(changed) if form is None else _written(changed, form)) + after


def _with_texts(value: JsonValue, path: Path, texts: Mapping[Path, str]) -> JsonValue:
    if isinstance(value, dict):
        return {key: _with_texts(item, (*path, key), texts) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_texts(item, (*path, at), texts) for at, item in enumerate(value)]
    return texts.get(path, value) if isinstance(value, str) else value


def with_value(document: JsonValue, path: Path, value: JsonValue) -> JsonValue:
    """A document with another value at a path; what lies elsewhere is shared."""
    if not path:
        return value
    step = path[0]
    if isinstance(document, dict) and isinstance(step, str):
        return {**document, step: with_value(document[step], path[1:], value)}
    if isinstance(document, list) and isinstance(step, int):
        return [*document[:step], with_value(document[step], path[1:], value), *document[step + 1 :]]
    raise LookupError("a path leads nowhere")


def with_key(document: JsonValue, path: Path, key: str) -> JsonValue:
    """A document in which the key that a path ends in is another one, at the same place; a number is added when it is taken."""
    parent = value_at(document, path[:-1])
    if not isinstance(parent, dict):
        raise LookupError("a path leads nowhere")
    free, number = key, 2
    while free in parent:
        free, number = f"{key}-{number}", number + 1
    return with_value(document, path[:-1], {free if old == path[-1] else old: item for old, item in parent.items()})


def _written(document: JsonValue, form: tuple[tuple[str, str], int | None, bool]) -> str:
    separators, indent, escaped = form
    return json.dumps(document, separators=separators, indent=indent, ensure_ascii=escaped, allow_nan=False)
