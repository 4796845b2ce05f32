"""What the tests of the formats look at: a message's parts, the classes of its leaves, and the laws that hold for all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import pytest

from coatcheck.domain.canonical import JsonObject, JsonValue, Path, pointer, to_text, value_at
from coatcheck.domain.errors import InvalidRequest
from coatcheck.domain.messages import Field, Part, Site, assemble, frame
from coatcheck.formats import get

AT: Path = ("window", "messages", 3)
PIXEL = "iVBORw0KGgoAAAANSUhEUg=="
PIXEL_URL = f"data:image/png;base64,{PIXEL}"


def parts(format_name: str, message: JsonValue) -> tuple[Part, ...]:
    """The parts of a message that passes the check."""
    wire = get(format_name)
    checked = wire.check(message, AT)
    return frame(checked, wire.read(checked).sites)


def seen(format_name: str, message: JsonValue) -> list[tuple[str, str, str]]:
    """Role, kind and text of each part."""
    return [(part.role, part.kind.value, part.text) for part in parts(format_name, message)]


def classes(format_name: str, message: JsonObject) -> dict[str, str]:
    """The class of each string leaf, by JSON pointer."""
    return {pointer(field.path): field.field_class.value for field in get(format_name).read(message).fields if not field.is_key}


def keys(format_name: str, message: JsonObject) -> set[str]:
    """The pointers of the keys that redaction is shown."""
    return {pointer(field.path) for field in get(format_name).read(message).fields if field.is_key}


def refused_at(format_name: str, message: JsonValue) -> str:
    """The pointer that the check refuses this message with."""
    with pytest.raises(InvalidRequest) as caught:
        get(format_name).check(message, AT)
    assert len(caught.value.errors) == 1
    return caught.value.errors[0].pointer


def assert_laws(value: JsonValue, fields: Sequence[Field], sites: tuple[Site, ...]) -> None:
    """The parts give the value back; sites lie in document order, apart; every string is a field, exactly once."""
    assert assemble(frame(value, sites)) == to_text(value)
    assert sites
    assert [site.path for site in sites] == sorted((site.path for site in sites), key=_order(value))
    for site, following in pairwise(sites):
        assert following.path[: len(site.path)] != site.path
    for site in sites:
        assert site.encoding == "json" or isinstance(value_at(value, site.path), str)
    assert [field.path for field in fields if not field.is_key] == list(string_leaves(value))
    for field in fields:
        value_at(value, field.path)


def assert_message_laws(format_name: str, message: JsonValue) -> None:
    wire = get(format_name)
    checked = wire.check(message, AT)
    assert_laws(checked, wire.read(checked).fields, wire.read(checked).sites)


def string_leaves(value: JsonValue, path: Path = ()) -> Iterator[Path]:
    if isinstance(value, str):
        yield path
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from string_leaves(item, (*path, key))
    elif isinstance(value, list):
        for position, item in enumerate(value):
            yield from string_leaves(item, (*path, position))


class _order:
    """Sorts paths as the places they name stand in the document."""

    def __init__(self, document: JsonValue) -> None:
        self.document = document

    def __call__(self, path: Path) -> list[int]:
        value, positions = self.document, []
        for step in path:
            positions.append(list(value).index(str(step)) if isinstance(value, dict) else int(step))
            value = value_at(value, (step,))
        return positions
