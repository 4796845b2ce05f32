"""What a string looks like: a label, ciphertext, base64, a data URL. Each answers False to a value that is no string."""

from __future__ import annotations

import re

from coatcheck.domain.canonical import JsonValue
from coatcheck.domain.messages import FieldClass

_LABEL = re.compile(r"[A-Za-z0-9_.:/+=@~|-]{0,200}")
_CIPHERTEXT = re.compile(r"[!-~]+")
_BASE64 = re.compile(r"[A-Za-z0-9+/\r\n]++={0,2}[\r\n]*+")
_DATA_URL = re.compile(r"data:([a-z]+/[a-z0-9.+-]+)(?:;[a-z0-9-]+=[^;,\s]{0,100})*;base64,", re.IGNORECASE)
_BINARY_MEDIA = re.compile(r"image/|audio/|video/|font/|application/(?:pdf|zip|gzip|octet-stream|vnd\.)", re.IGNORECASE)


def is_label(value: JsonValue) -> bool:
    """Short, and neither white space nor anything else that ids and enumerations have no use for."""
    return isinstance(value, str) and _LABEL.fullmatch(value) is not None


def is_ciphertext(value: JsonValue) -> bool:
    """Printable ASCII without white space: providers write base64 of one kind or another, some with a prefix."""
    return isinstance(value, str) and _CIPHERTEXT.fullmatch(value) is not None


def is_base64(value: JsonValue) -> bool:
    return isinstance(value, str) and _BASE64.fullmatch(value) is not None


def is_binary_media(value: JsonValue) -> bool:
    return isinstance(value, str) and _BINARY_MEDIA.match(value) is not None


def data_url_media(value: JsonValue) -> str | None:
    """The media type of a base64 data URL; None where the value is none, from its first character to its last."""
    prefix = _DATA_URL.match(value) if isinstance(value, str) else None
    if prefix is None or not isinstance(value, str) or _BASE64.fullmatch(value, prefix.end()) is None:
        return None
    return prefix[1].lower()


def class_of(value: str) -> FieldClass:
    """Of a string at no known place: a data URL is a blob when its media are binary; one of text is text, only encoded."""
    if value[:5].lower() != "data:":
        return FieldClass.CONTENT
    return FieldClass.BLOB if is_binary_media(data_url_media(value)) else FieldClass.CONTENT
