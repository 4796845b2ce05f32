"""Earlier handoffs inside a window: recognised by hash, set aside while the rest is redacted, and put back untouched.

A handoff is recognised when the block between its markers, inside a text part, has the hash of a stored handoff. Anything else
with such markers is ordinary text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from coatcheck.compaction.quoting import END_MARKER, MARKER
from coatcheck.compaction.window import MESSAGES, SYSTEM
from coatcheck.domain.canonical import JsonValue, Path, sha256_of, to_text, value_at
from coatcheck.domain.messages import PartKind, Site, WireFormat

_LONGEST_BLOCK_CHARS = 4_096
"""A little more than the longest handoff there is (4,000)."""
_SHORTEST_BLOCK_CHARS = 200
_PRIVATE_USE = range(0xE000, 0xF8FF)


@dataclass(frozen=True, slots=True)
class HandoffSpan:
    """Where an earlier handoff stands in a part's text: [start, end) in code points."""

    start: int
    end: int
    manifest_id: UUID


@dataclass(frozen=True, slots=True)
class SetAside:
    """A value without its earlier handoffs: at each path, marks stand where they stood."""

    value: JsonValue
    texts: Mapping[Path, tuple[_Mark, ...]]


@dataclass(frozen=True, slots=True)
class _Mark:
    mark: str
    handoff: str
    manifest_id: UUID


def handoff_candidates(wire: WireFormat, messages: Sequence[JsonValue], system: JsonValue = None) -> list[str]:
    """The SHA-256 of every block between handoff markers in a text part: what the store should look up, each once.

    Raises InvalidRequest on a message of an unknown shape.
    """
    found: dict[str, None] = {}
    for index, message in enumerate(messages):
        if may_hold_one(message):
            checked = wire.check(message, (*MESSAGES, index))
            found.update((sha256_of(text[start:end]), None) for _, text, start, end in _blocks(checked, wire.read(checked).sites))
    if system is not None and may_hold_one(system):
        wire.check_system(system, SYSTEM)
        found.update((sha256_of(text[start:end]), None) for _, text, start, end in _blocks(system, wire.read_system(system).sites))
    return list(found)


def set_aside(value: JsonValue, sites: Sequence[Site], known: Mapping[str, UUID]) -> SetAside | None:
    """Takes the known handoffs out of a message (or the system field); None where it has none."""
    spans: dict[Path, list[HandoffSpan]] = {}
    for path, text, start, end in _blocks(value, sites):
        manifest_id = known.get(sha256_of(text[start:end]))
        if manifest_id is not None:
            spans.setdefault(path, []).append(HandoffSpan(start, end, manifest_id))
    marks: dict[Path, tuple[_Mark, ...]] = {}
    for path, of_text in spans.items():
        text = str(value_at(value, path))
        sign = next((chr(code) for code in _PRIVATE_USE if chr(code) not in text), None)
        if sign is None:
            continue
        marks[path] = tuple(
            _Mark(f"\n{sign}{number}{sign}\n", text[span.start : span.end], span.manifest_id) for number, span in enumerate(of_text)
        )
        value = _replaced(value, path, _without(text, of_text, marks[path]))
    return SetAside(value, marks) if marks else None


def put_back(redacted: JsonValue, aside: SetAside) -> tuple[JsonValue, dict[Path, tuple[HandoffSpan, ...]]] | None:
    """The redacted value with its handoffs back in place, and where they stand; None when redaction took a mark away.

    Then somebody wrapped a handoff into what is a secret, and the whole is ordinary text.
    """
    spans: dict[Path, tuple[HandoffSpan, ...]] = {}
    for path, marks in aside.texts.items():
        try:
            text = value_at(redacted, path)
        except LookupError:
            return None
        if not isinstance(text, str) or any(text.count(mark.mark) != 1 for mark in marks):
            return None
        restored: list[str] = []
        of_text: list[HandoffSpan] = []
        position = 0
        for mark in marks:
            before, found, text = text.partition(mark.mark)
            if not found:
                return None
            restored += (before, mark.handoff)
            position += len(before)
            of_text.append(HandoffSpan(position, position + len(mark.handoff), mark.manifest_id))
            position += len(mark.handoff)
        spans[path] = tuple(of_text)
        redacted = _replaced(redacted, path, "".join(restored) + text)
    return redacted, spans


def blank_handoff(manifest_id: UUID, chars: int) -> str:
    """What can stand in a window for a handoff whose text is gone: known as that manifest's, as long as it was, and empty."""
    head, tail = f"{MARKER}\nManifest {manifest_id}\n", f"\n{END_MARKER}"
    return head + "." * (max(chars, _SHORTEST_BLOCK_CHARS) - len(head) - len(tail)) + tail


def may_hold_one(value: JsonValue) -> bool:
    """A quick look: whether the opening marker occurs anywhere."""
    try:
        return MARKER in to_text(value)
    except RecursionError:  # such a message is refused when the window is checked
        return False


def _blocks(value: JsonValue, sites: Iterable[Site]) -> Iterator[tuple[Path, str, int, int]]:
    """(path, text, start, end) of every block that may be a handoff."""
    for site in sites:
        if site.kind is PartKind.TEXT and site.encoding == "string":
            text = value_at(value, site.path)
            if isinstance(text, str):
                for start, end in _marked(text):
                    yield site.path, text, start, end


def _marked(text: str) -> Iterator[tuple[int, int]]:
    start = text.find(MARKER)
    while start >= 0:
        following = text.find(MARKER, start + len(MARKER))
        end = text.find(END_MARKER, start, start + _LONGEST_BLOCK_CHARS)
        if end >= 0 and (following < 0 or end < following):
            end += len(END_MARKER)
            if end - start >= _SHORTEST_BLOCK_CHARS:
                yield start, end
        start = following


def _without(text: str, spans: Sequence[HandoffSpan], marks: Sequence[_Mark]) -> str:
    pieces: list[str] = []
    position = 0
    for span, mark in zip(spans, marks, strict=True):
        pieces += (text[position : span.start], mark.mark)
        position = span.end
    return "".join(pieces) + text[position:]


def _replaced(value: JsonValue, path: Path, text: str) -> JsonValue:
    """A copy of a value with the string at a path replaced; what is not on the way is shared."""
    if not path:
        return text
    step, rest = path[0], path[1:]
    if isinstance(value, dict) and isinstance(step, str):
        return {**value, step: _replaced(value[step], rest, text)}
    if isinstance(value, list) and isinstance(step, int):
        return [*value[:step], _replaced(value[step], rest, text), *value[step + 1 :]]
    raise LookupError(step)
