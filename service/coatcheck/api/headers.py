"""The request headers that are part of the contract: read strictly, refused without being repeated."""

from __future__ import annotations

import re
from collections.abc import Iterable

from coatcheck.domain.errors import FieldError, InvalidRequest, MalformedJson, Unauthenticated

DEADLINE = "coatcheck-deadline"
IDEMPOTENCY_KEY = "idempotency-key"
_SECONDS = re.compile(r"\d{1,9}(?:\.\d{1,9})?")
_KEY = re.compile(r"[\x21-\x7e]{1,255}")
_QUOTED = re.compile(r'"((?:[^"\\]|\\["\\])*)"')

RawHeaders = Iterable[tuple[bytes, bytes]]


def authorization(headers: RawHeaders) -> str | None:
    """The credential's header. Raises Unauthenticated where there are several: which one counts must not be a guess."""
    values = _values(headers, "authorization")
    if len(values) > 1:
        raise Unauthenticated
    return values[0] if values else None


def announced_length(headers: RawHeaders) -> int | None:
    """Content-Length, where given. Raises MalformedJson for what is no length."""
    values = _values(headers, "content-length")
    if not values:
        return None
    if len(set(values)) > 1 or not re.fullmatch(r"[0-9]{1,18}", values[0]):
        raise MalformedJson("The Content-Length is no length.")
    return int(values[0])


def has_two_lengths(headers: RawHeaders) -> bool:
    """Whether a body is both announced and chunked (RFC 9112, section 6.3): who reads which is a guess."""
    names = {name.lower() for name, _ in headers}
    return {b"content-length", b"transfer-encoding"} <= names


def deadline_s(headers: RawHeaders, default_s: float, max_s: float) -> float:
    """Coatcheck-Deadline: seconds from now, more than 0, at most the service's maximum. Raises InvalidRequest."""
    value = _single(headers, DEADLINE)
    if value is None:
        return default_s
    seconds = float(value) if _SECONDS.fullmatch(value) else 0.0
    if not 0 < seconds <= max_s:
        raise _invalid(DEADLINE, f"must be a number of seconds, more than 0 and at most {max_s:g}")
    return seconds


def idempotency_key(headers: RawHeaders) -> str | None:
    """Idempotency-Key: a structured field's string (RFC 9651) or the bare value, 1 to 255 visible ASCII characters.

    Both ways of writing it give the same key. Raises InvalidRequest.
    """
    value = _single(headers, IDEMPOTENCY_KEY)
    if value is None:
        return None
    key: str | None = value
    if value.startswith('"'):
        quoted = _QUOTED.fullmatch(value)
        key = re.sub(r"\\(.)", r"\1", quoted[1]) if quoted else None
    if key is None or not _KEY.fullmatch(key):
        raise _invalid(IDEMPOTENCY_KEY, "must be 1 to 255 visible ASCII characters, bare or as a quoted string")
    return key


def _single(headers: RawHeaders, name: str) -> str | None:
    values = _values(headers, name)
    if len(values) > 1:
        raise _invalid(name, "must be given once")
    return values[0] if values else None


def _values(headers: RawHeaders, name: str) -> list[str]:
    wanted = name.encode()
    return [value.decode("latin-1").strip(" \t") for key, value in headers if key.lower() == wanted]


def _invalid(name: str, detail: str) -> InvalidRequest:
    return InvalidRequest(f"The header {name} {detail}.", errors=[FieldError(f"/header/{name}", detail)])
