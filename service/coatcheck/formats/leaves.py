"""The shared walk of a value of no fixed form: every string leaf, every key, and what class each string has by itself."""

from __future__ import annotations

from collections.abc import Iterator

from coatcheck.domain.canonical import JsonValue, Path
from coatcheck.domain.messages import Field, FieldClass
from coatcheck.formats.strings import class_of, is_base64, is_binary_media, is_ciphertext

MEDIA_KEYS = ("media_type", "mime_type", "mimeType")


def walk(value: JsonValue, path: Path, sealed: frozenset[str] = frozenset()) -> Iterator[Field]:
    """Every string leaf and every key of a value, whatever its depth; ``sealed`` keys hold ciphertext."""
    if isinstance(value, str):
        yield Field(path, class_of(value))
    open_holders = [(path, value, _entries(value))]
    while open_holders:
        here, holder, entries = open_holders[-1]
        for step, item in entries:
            at = (*here, step)
            if isinstance(holder, dict):
                yield Field(at, FieldClass.CONTENT, is_key=True)
            if isinstance(item, str):
                yield Field(at, _class_in(holder, step, item, sealed))
            elif isinstance(item, dict | list):
                open_holders.append((at, item, _entries(item)))
                break
        else:
            open_holders.pop()


def strings(value: JsonValue, sealed: frozenset[str] = frozenset()) -> Iterator[tuple[str, FieldClass]]:
    """Every string leaf of a value with its class, in no order: what decides how the value is read."""
    if isinstance(value, str):
        yield value, class_of(value)
    pending = [value]
    while pending:
        holder = pending.pop()
        for step, item in _entries(holder):
            if isinstance(item, str):
                yield item, _class_in(holder, step, item, sealed)
            elif isinstance(item, dict | list):
                pending.append(item)


def _entries(holder: JsonValue) -> Iterator[tuple[str | int, JsonValue]]:
    if isinstance(holder, dict):
        return iter(holder.items())
    return iter(enumerate(holder)) if isinstance(holder, list) else iter(())


def _class_in(holder: JsonValue, step: str | int, item: str, sealed: frozenset[str]) -> FieldClass:
    if step in sealed and is_ciphertext(item):
        return FieldClass.CIPHERTEXT
    if step == "data" and isinstance(holder, dict) and any(is_binary_media(holder.get(key)) for key in MEDIA_KEYS):
        return FieldClass.BLOB if is_base64(item) else class_of(item)
    return class_of(item)
