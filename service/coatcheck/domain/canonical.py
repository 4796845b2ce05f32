"""The one JSON reader and the two JSON writers: what *canonical* means for rebuilding and for digests.

Rebuilding keeps the order of keys, exact integers and the shortest form of floats (Python's ``repr``). Digests use the same
with sorted keys. Text becomes bytes as UTF-8 with ``surrogatepass``, so that a lone surrogate has bytes, and a hash.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import NoReturn, Union

from coatcheck.domain.errors import MalformedJson

JsonScalar = None | bool | int | float | str
JsonValue = Union[JsonScalar, list["JsonValue"], dict[str, "JsonValue"]]  # noqa: UP007 - a recursive alias
JsonObject = dict[str, JsonValue]
Path = tuple[str | int, ...]
"""The way to a value inside a JSON document: keys and positions, outermost first."""

_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
"""Made once: ``json.dumps`` makes one at each call, which is most of the cost of writing a key."""


def parse(raw: bytes) -> JsonValue:
    """Reads JSON text in UTF-8. Raises MalformedJson on bad UTF-8, duplicate keys, NaN, infinities and absurd nesting."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise MalformedJson("The body is not valid UTF-8.") from error
    return parse_text(text)


def parse_text(text: str) -> JsonValue:
    """Reads JSON text. Raises MalformedJson; its detail never repeats the content."""
    try:
        value: JsonValue = json.loads(
            text, object_pairs_hook=_object_without_duplicates, parse_constant=_refuse_constant, parse_float=_finite_float
        )
    except MalformedJson:
        raise
    except RecursionError as error:
        raise MalformedJson("The JSON is nested too deeply.") from error
    except json.JSONDecodeError as error:
        raise MalformedJson(f"The JSON is malformed at character {error.pos}.") from error
    except ValueError as error:
        raise MalformedJson("The JSON holds a number that cannot be read.") from error
    return value


def to_text(value: JsonValue) -> str:
    """The canonical JSON text for rebuilding: keys in their order, no white space, nothing escaped that need not be."""
    return _ENCODER.encode(value)


def to_bytes(value: JsonValue) -> bytes:
    """The canonical bytes for rebuilding."""
    return encode(to_text(value))


def to_sorted_bytes(value: JsonValue) -> bytes:
    """The canonical bytes for digests: as for rebuilding, keys sorted."""
    return encode(json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False, sort_keys=True))


def encode(text: str) -> bytes:
    """Text to the bytes that are stored and hashed."""
    return text.encode("utf-8", "surrogatepass")


def decode(raw: bytes) -> str:
    """The inverse of encode."""
    return raw.decode("utf-8", "surrogatepass")


def sha256_hex(raw: bytes) -> str:
    """SHA-256 as 64 lower-case hex digits."""
    return hashlib.sha256(raw).hexdigest()


def sha256_of(text: str) -> str:
    """SHA-256 of a text's stored bytes."""
    return sha256_hex(encode(text))


def scalar_text(text: str) -> str:
    """A copy in which everything that is no Unicode scalar value is U+FFFD; same length in code points.

    For models, detectors and the index, none of which take a lone surrogate.
    """
    if text.isascii():
        return text
    return "".join("�" if "\ud800" <= char <= "\udfff" else char for char in text) if _has_surrogate(text) else text


def pointer(path: Sequence[str | int]) -> str:
    """The JSON pointer (RFC 6901) of a path."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)


def value_at(document: JsonValue, path: Path) -> JsonValue:
    """The value at a path. Raises LookupError where there is none."""
    value = document
    for step in path:
        if (isinstance(value, dict) and isinstance(step, str)) or (isinstance(value, list) and isinstance(step, int)):
            value = value[step]  # type: ignore[index]
        else:
            raise LookupError(pointer(path))
    return value


def _has_surrogate(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False


def _object_without_duplicates(pairs: list[tuple[str, JsonValue]]) -> JsonObject:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise MalformedJson("The JSON holds an object with a duplicate key.")
    return result


def _refuse_constant(name: str) -> NoReturn:
    raise MalformedJson(f"{name} is not JSON.")


def _finite_float(digits: str) -> float:
    number = float(digits)
    if number in (float("inf"), float("-inf")):
        raise MalformedJson("The JSON holds a number beyond the range of a double.")
    return number
