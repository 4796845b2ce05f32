"""The matcher: kingfisher with its bundled rules and ours, over many texts at once. Offline; it only ever scans."""

from __future__ import annotations

import hashlib
import threading
from bisect import bisect_right
from collections.abc import Sequence
from importlib import metadata, resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING

from coatcheck.compaction import effort
from coatcheck.compaction.redaction import own_rules as own_rules_file
from coatcheck.domain.canonical import scalar_text
from coatcheck.domain.errors import RedactionFailed
from coatcheck.domain.values import value
from coatcheck.ops import ordinary_files

if TYPE_CHECKING:
    from kingfisher_sdk import Finding, Scanner

CHUNK_CHARS = 32 * 1024
OVERLAP_CHARS = 4 * 1024
SCAN_TIMEOUT_S = 20.0
"""For one chunk, which takes milliseconds: reached only when the machine is on its knees."""

UNTIMED_BYTES = 8 * 1024
"""A chunk so short cannot take long, the engine being linear, and looking at the clock costs it a third of its speed."""

_DISTRIBUTION = "kingfisher-secret-scanner"
_BREAK = b"\n" + b"\x1c" * 72 + b"\n"
"""Between two texts in one scan. Views hold no such character, and no rule's context reaches across so many."""


_CONTINUATIONS = bytes(range(0x80, 0xC0))
"""The bytes of UTF-8 that begin no character."""


@value
class Hit:
    """A match: ``text[start:end]`` of the text it was found in."""

    rule: str
    start: int
    end: int
    decoded: str | None = None
    """The match itself, where it was found inside Base64; start and end then span the encoded run."""
    cut: bool = False
    """Whether the match ends with its chunk, and so may go on."""


@value
class _Piece:
    """A stretch of one text inside a chunk of bytes."""

    text: int
    start: int
    content: str
    at_byte: int


class Detector:
    """Loads its rules at the first scan, once, and keeps the compiled ones in ``cache_dir`` (private to this user)."""

    def __init__(self, cache_dir: Path, own_rules: Path | None = None) -> None:
        """``own_rules``: the operator's, beside the others. Raises RefusedToStart where one of them would do nothing."""
        self._cache_dir = cache_dir
        self._own_rules = own_rules
        self._own_content = own_rules_file.read(own_rules) if own_rules is not None else b""
        self._lock = threading.Lock()
        self._scanner: Scanner | None = None
        self._revision: str | None = None

    @property
    def revision(self) -> str:
        """A hash of the rules, of this package's code and of kingfisher's version: what a finding depends on."""
        if self._revision is None:
            digest = hashlib.sha256(metadata.version(_DISTRIBUTION).encode())
            for source in sorted(_package_files(), key=lambda file: file.name):
                digest.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
            digest.update(self._own_content)
            self._revision = digest.hexdigest()[:16]
        return self._revision

    def warm(self) -> None:
        """Compiles the rules and fills the cache: seconds the first time, half a second later on."""
        self._loaded()

    def scan(self, texts: Sequence[str]) -> list[list[Hit]]:
        """The matches in each text. Raises RedactionFailed; there is never a partial result."""
        hits: list[list[Hit]] = [[] for _ in texts]
        for data, pieces in _chunks(texts):
            effort.check()
            self._scan_chunk(data, pieces, hits)
        return hits

    def _scan_chunk(self, data: bytes, pieces: list[_Piece], hits: list[list[Hit]]) -> None:
        try:
            findings = self._loaded().scan(data, timeout=SCAN_TIMEOUT_S if len(data) > UNTIMED_BYTES else None)
        except (RuntimeError, TimeoutError, ValueError, OSError) as error:
            raise RedactionFailed("The scanner for secrets did not finish.") from error
        if not findings:
            return
        starts = [piece.at_byte for piece in pieces]
        by_piece: dict[int, list[tuple[int, int, Finding]]] = {}
        for finding in findings:
            location = finding.location
            first = location["start_offset"]
            at = bisect_right(starts, first) - 1
            by_piece.setdefault(at, []).append((first - starts[at], location["end_offset"] - starts[at], finding))
        for at, located in by_piece.items():
            piece = pieces[at]
            length = len(piece.content)
            to_chars = None if piece.content.isascii() else _characters(piece.content, located)
            for first, last, finding in located:
                start, end = (first, last) if to_chars is None else (to_chars[first], to_chars[last])
                if start < min(end, length):
                    inside = finding.secret if finding.is_base64_encoded else None
                    hits[piece.text].append(
                        Hit(finding.rule_id, piece.start + start, piece.start + min(end, length), inside, end >= length)
                    )

    def _loaded(self) -> Scanner:
        if self._scanner is None:
            with self._lock:
                if self._scanner is None:
                    self._scanner = self._load()
        return self._scanner

    def _load(self) -> Scanner:
        from kingfisher_sdk import Rules, Scanner

        cache_dir = _private(self._cache_dir)
        try:
            self._check_own_rules()
            with resources.as_file(resources.files(__package__) / "rules.yml") as ours:
                paths = [ours] if self._own_rules is None else [ours, self._own_rules]
                scanner = Scanner(Rules(paths, cache=cache_dir is not None, cache_dir=cache_dir), base64=True)
            self._check_own_rules()
        except (RuntimeError, ValueError, OSError) as error:
            raise RedactionFailed("The rules for secrets could not be loaded.") from error
        return scanner

    def _check_own_rules(self) -> None:
        """The revision says what is looked for: not another file's rules, where it was changed while this process started."""
        if self._own_rules is not None and ordinary_files.read(self._own_rules, own_rules_file.MOST_BYTES) != self._own_content:
            raise RedactionFailed("The operator's rules were changed after the start: start again.")


def _private(directory: Path) -> Path | None:
    """The directory, made and closed to other users; None where none can be made, and rules are compiled at each start."""
    try:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        if directory.stat().st_mode & 0o077:
            directory.chmod(0o700)
    except OSError:
        return directory if directory.is_dir() else None
    return directory


def _characters(content: str, located: list[tuple[int, int, Finding]]) -> dict[int, int]:
    """Byte offsets of findings to positions of characters, in one pass over the text.

    The engine matches bytes, and some of its matches end inside of a character: that one counts as begun, so that all that comes
    after it keeps its place.
    """
    raw = content.encode()
    characters: dict[int, int] = {}
    at_byte = position = 0
    for offset in sorted({offset for first, last, _ in located for offset in (first, last)}):
        position += len(raw[at_byte:offset].translate(None, _CONTINUATIONS))
        characters[offset] = position
        at_byte = offset
    return characters


def _package_files() -> list[Traversable]:
    return [file for file in resources.files(__package__ or "").iterdir() if file.name.endswith((".py", ".yml"))]


def _chunks(texts: Sequence[str]) -> list[tuple[bytes, list[_Piece]]]:
    """Packs texts into chunks: many short ones into one, a long one into several that overlap."""
    if len(texts) == 1 and len(texts[0]) <= CHUNK_CHARS:
        content = scalar_text(texts[0])
        return [(content.encode(), [_Piece(0, 0, content, 0)])] if content else []
    chunks: list[tuple[bytes, list[_Piece]]] = []
    parts: list[bytes] = []
    pieces: list[_Piece] = []
    size = 0
    for number, text in enumerate(texts):
        for start, content in _stretches(text):
            if size and size + len(content) > CHUNK_CHARS:
                chunks.append((b"".join(parts), pieces))
                parts, pieces, size = [], [], 0
            if parts:
                parts.append(_BREAK)
                size += len(_BREAK)
            content = scalar_text(content)
            encoded = content.encode()
            pieces.append(_Piece(number, start, content, size))
            parts.append(encoded)
            size += len(encoded)
    if parts:
        chunks.append((b"".join(parts), pieces))
    return chunks


def _stretches(text: str) -> list[tuple[int, str]]:
    if len(text) <= CHUNK_CHARS:
        return [(0, text)] if text else []
    stretches = []
    start = 0
    while True:
        end = start + CHUNK_CHARS
        if end >= len(text):
            stretches.append((start, text[start:]))
            return stretches
        end = max(
            text.rfind("\n", end - OVERLAP_CHARS // 4, end),
            text.rfind(" ", end - OVERLAP_CHARS // 4, end),
            end - OVERLAP_CHARS // 4,
        )
        stretches.append((start, text[start:end]))
        start = end - OVERLAP_CHARS
