"""Segments and what is stored beside them."""

from __future__ import annotations

from dataclasses import dataclass, field

from coatcheck.domain.canonical import encode, sha256_hex
from coatcheck.domain.values import value

SEGMENT_MAX_CHARS = 3_800
"""The largest segment, in code points (seeds, "Smaller Context, Recoverable History")."""


@value
class Segment:
    """A retained piece of a part: exact bytes after redaction, named by their SHA-256. Unique within its session."""

    raw: bytes
    sha256: str
    chars: int
    rule_revision: str
    """The revision of the redaction rules that this text was last scanned with."""

    @classmethod
    def of(cls, text: str, rule_revision: str) -> Segment:
        raw = encode(text)
        return cls(raw, sha256_hex(raw), len(text), rule_revision)


@dataclass(frozen=True, slots=True)
class Reduction:
    """An accepted shorter form of a segment, with the verdicts that accepted it."""

    exact_sha256: str
    raw: bytes
    sha256: str
    reducer_revision: str
    verdicts: dict[str, float | str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Blob:
    """Encoded binary content of a message (a data URL, base64), exactly as it stood there; stored once by hash."""

    raw: bytes
    sha256: str
    media_type: str | None

    @classmethod
    def of(cls, text: str, media_type: str | None) -> Blob:
        raw = encode(text)
        return cls(raw, sha256_hex(raw), media_type)
