"""Content blocks: the pieces of a message's ``content``, of a tool's output, of a document. One dispatch for all formats.

The formats' names for blocks do not clash, and agents mix them (thinking blocks in chat messages, image_url in tool results),
so each format reads them all. A block of an unknown type is carried: its ``text`` and ``content`` strings are parts, and
where it has neither it is one opaque part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from coatcheck.domain.canonical import JsonObject, JsonValue, Path
from coatcheck.domain.messages import FieldClass, PartKind
from coatcheck.formats.leaves import strings, walk
from coatcheck.formats.rules import (
    Finding,
    Place,
    Rule,
    as_json,
    blob,
    blob_within,
    ciphertext,
    each,
    extra,
    free,
    members,
    of_thinking,
    or_whole,
    parts_of,
    structural,
    text,
)
from coatcheck.formats.strings import is_binary_media, is_label

SEALED = frozenset(("encrypted_content", "encrypted_index", "encrypted_stdout"))
"""What a provider's own tools return encrypted. In a client's tool result these keys mean nothing, and are content."""

_MANY_LEAVES = 200
"""A tool's JSON with more strings than this stays one part: a part for each would say nothing by itself."""
_PROSE_CHARS = 200


def content(place: Place, sealed: frozenset[str] = frozenset()) -> Rule:
    """A string, one block, or a list of blocks; null has no part. A tool's list without any typed block is its own JSON."""

    def one(value: JsonValue, path: Path) -> Iterator[Finding]:
        return text(place)(value, path) if isinstance(value, str) else block(place, sealed)(value, path)

    def rule(value: JsonValue, path: Path) -> Iterator[Finding]:
        if value is None or value == []:
            return iter(())
        is_json = place.kind is PartKind.TOOL_RESULT and isinstance(value, list) and not any(map(_is_typed, value))
        return _tool_json(value, path, place, sealed) if is_json else each(one)(value, path)

    return rule


def block(place: Place, sealed: frozenset[str] = frozenset()) -> Rule:
    """One content block, by its type."""

    def rule(value: JsonValue, path: Path) -> Iterator[Finding]:
        kind = value.get("type") if isinstance(value, dict) else None
        reader = _READERS.get(kind) if isinstance(kind, str) else None
        if reader is not None and isinstance(value, dict):
            return reader(value, path, place)
        return unknown(place, sealed)(value, path)

    return rule


def unknown(place: Place, sealed: frozenset[str] = frozenset()) -> Rule:
    """A block of a type nobody told us about."""

    def rule(value: JsonValue, path: Path) -> Iterator[Finding]:
        if place.kind is PartKind.TOOL_RESULT:
            return _tool_json(value, path, place, sealed)
        rules: Mapping[str, Rule] = {"text": _only_string(place), "content": _only_string(place)}
        return parts_of(value, path, place, rules, PartKind.OPAQUE)

    return rule


def thinking(value: JsonValue, path: Path, place: Place) -> Iterator[Finding]:
    """A thinking block, redacted or not, or one of a list of reasoning details."""
    inner = replace(place, kind=PartKind.THINKING)
    words = text(inner)
    rules: Mapping[str, Rule] = {
        "type": structural,
        "thinking": each(lambda item, at: words(item, at) if isinstance(item, str) else _text_block(item, at, inner)),
        "text": words,
        "summary": words,
        "signature": ciphertext,
        "data": ciphertext,
        "encrypted_content": ciphertext,
    }
    return of_thinking(path, members(value, path, rules, free))


def opaque(value: JsonValue, path: Path, place: Place, *sealed: str) -> Iterator[Finding]:
    """A value that is carried whole, as JSON; ``sealed`` keys of it hold ciphertext."""
    yield place.site(path, "json", kind=PartKind.OPAQUE)
    yield from members(value, path, dict.fromkeys(sealed, ciphertext), free)


# --- blocks whose types are known


def _text_block(value: JsonValue, path: Path, place: Place) -> Iterator[Finding]:
    words = text(place)
    rules: Mapping[str, Rule] = {"type": structural, "text": words, "refusal": words, "citations": each(_citation)}
    return members(value, path, rules, extra(place))


def _citation(value: JsonValue, path: Path) -> Iterator[Finding]:
    return members(value, path, {"encrypted_index": ciphertext}, free)


def _media(value: JsonObject, path: Path, place: Place) -> Iterator[Finding]:
    """An image, a sound or a file of any format. Where nothing of it is here (a URL, a file id), it is an opaque part."""
    file, media_type = value.get("file"), value.get("mimeType") or value.get("media_type")
    name = value.get("filename") or value.get("title") or (file.get("filename") if isinstance(file, dict) else None)
    here = _named(place, name)
    rules: Mapping[str, Rule] = {
        "type": structural,
        "source": lambda item, at: _source(item, at, here),
        "image_url": lambda item, at: _holder(item, at, here),
        "input_audio": lambda item, at: _holder(item, at, here),
        "file": lambda item, at: _holder(item, at, here),
        "file_data": blob(here),
        "data": blob(here, media_type) if is_binary_media(media_type) else _only_string(here),
        "content": _only_string(_named(here, value.get("path"))),
    }
    whole = place.site(path, "json", kind=PartKind.OPAQUE)
    return or_whole(whole, members(value, path, rules, extra(here)))


def _holder(value: JsonValue, path: Path, place: Place) -> Iterator[Finding]:
    """``image_url``, ``input_audio``, ``file``: a string, or an object that holds the data. A remote URL is carried."""
    if not isinstance(value, dict):
        return extra(place)(value, path)
    sound = value.get("format")
    media_type = f"audio/{sound}" if isinstance(sound, str) and is_label(sound) else None
    rules: Mapping[str, Rule] = {"file_data": blob(place), "data": blob(place, media_type)}
    return members(value, path, rules, extra(place))


def _source(value: JsonValue, path: Path, place: Place) -> Iterator[Finding]:
    """The source of an image or a document: base64, plain text, blocks, a URL or a file id."""
    if not isinstance(value, dict):
        return text(place)(value, path)
    data = text(place) if value.get("type") == "text" else blob(place, value.get("media_type"))
    return members(value, path, {"type": structural, "data": data, "content": content(place)}, extra(place))


def _search_result(value: JsonObject, path: Path, place: Place) -> Iterator[Finding]:
    words = text(place)
    rules: Mapping[str, Rule] = {"type": structural, "source": words, "title": words, "content": content(place)}
    return members(value, path, rules, extra(place))


def _sealed(value: JsonObject, path: Path, place: Place) -> Iterator[Finding]:
    """A provider's own compaction, or what one agent wrote to another: only the provider can read it, or put it back."""
    return opaque(value, path, place, "encrypted_content", "signature")


_Reader = Callable[[JsonObject, Path, Place], Iterator[Finding]]

_READERS: Mapping[str, _Reader] = {
    **dict.fromkeys(("text", "input_text", "output_text", "summary_text", "reasoning_text", "refusal"), _text_block),
    **dict.fromkeys(("image", "image_url", "input_image", "input_audio", "file", "input_file", "document"), _media),
    **dict.fromkeys(("thinking", "redacted_thinking"), thinking),
    "search_result": _search_result,
    **dict.fromkeys(("compaction", "encrypted_content"), _sealed),
}


# --- helpers


def _only_string(place: Place) -> Rule:
    """A string as a part; anything else carried, binary data in it as blobs."""
    words, other = text(place), extra(place)
    return lambda value, path: words(value, path) if isinstance(value, str) else other(value, path)


def _is_typed(value: JsonValue) -> bool:
    return isinstance(value, dict) and isinstance(value.get("type"), str)


def _named(place: Place, name: JsonValue) -> Place:
    return replace(place, name=name) if isinstance(name, str) else place


def _tool_json(value: JsonValue, path: Path, place: Place, sealed: frozenset[str]) -> Iterator[Finding]:
    """What a tool returned as JSON: one part; prose in it, or what may not be read with the rest, splits it by its strings."""
    found = list(strings(value, sealed))
    has_unread = any(field_class is not FieldClass.CONTENT for _, field_class in found)
    has_prose = any("\n" in item or len(item) > _PROSE_CHARS for item, _ in found)
    if not has_unread and not (has_prose and len(found) <= _MANY_LEAVES):
        yield from as_json(place)(value, path)
        return
    for field in walk(value, path, sealed):
        yield field
        if field.field_class is FieldClass.BLOB:
            yield blob_within(value, path, field.path, place)
        elif field.field_class is FieldClass.CONTENT and not field.is_key and field.path[-1] != "type":
            yield place.site(field.path)
