"""A message as parts, and the frame that turns the parts back into the message, byte for byte."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Literal, Protocol

from coatcheck.domain.canonical import JsonObject, JsonValue, Path, to_text, value_at
from coatcheck.domain.values import value

Role = Literal["system", "developer", "user", "assistant", "tool"]
WindowFormat = Literal["openai-chat", "openai-responses", "anthropic"]
Encoding = Literal["string", "json"]
"""How a part's text stands in its message: as a JSON string's value, or as JSON text itself."""


_FEW_SITES = 4
"""So many are looked for in their message's text, each time from its start; more are found on one walk."""


class PartKind(StrEnum):
    """What a part is. Blobs, thinking and opaque parts are carried; only the first three are read by models."""

    TEXT = "text"
    TOOL_CALL = "tool_call"
    TOOL_RESULT = "tool_result"
    THINKING = "thinking"
    BLOB = "blob"
    OPAQUE = "opaque"


class FieldClass(StrEnum):
    """What redaction does with a string leaf of a message."""

    CONTENT = "content"
    """Redacted."""
    STRUCTURAL = "structural"
    """A role, a type, a call id: validated, never rewritten; a secret in one refuses the request."""
    CIPHERTEXT = "ciphertext"
    """Encrypted content, signatures, redacted thinking: carried untouched, never indexed."""
    BLOB = "blob"
    """Encoded binary content: carried untouched, stored once by hash."""


@value
class Field:
    """One string leaf of a message: where it stands and what redaction does with it."""

    path: Path
    field_class: FieldClass
    thinking_block: Path | None = None
    """The thinking block that this leaf belongs to: a secret in it replaces the block whole."""
    is_key: bool = False
    """True when the leaf is the object key that ``path`` ends in, and not the value there (which may be anything)."""


@value
class Site:
    """Where one part's text stands in its message."""

    path: Path
    kind: PartKind
    encoding: Encoding
    role: Role
    call_id: str | None = None
    name: str | None = None
    """The tool's name for a call (and its result where the format says it), the file's name for a blob."""
    media_type: str | None = None


@value
class Reading:
    """What one reading of a message finds."""

    fields: tuple[Field, ...]
    """Every string leaf, and every object key that the format does not define, in document order.

    A key comes before the value under it. A path may so come twice: once with ``is_key``, once without.
    """
    sites: tuple[Site, ...]
    """Where the parts stand, in document order; at least one, and none inside another.

    A call is a site of kind TOOL_CALL, and its result is every site of role ``tool`` with the same ``call_id``: a result that
    holds nothing but an image is a BLOB.
    """


@value
class Part:
    """One piece of a message.

    ``frame_before`` is the canonical JSON text between the previous part of the message (or its start) and this one;
    ``frame_after``, on the last part, what follows to the message's end.
    """

    kind: PartKind
    role: Role
    text: str
    encoding: Encoding
    frame_before: str
    frame_after: str = ""
    call_id: str | None = None
    group_id: str | None = None
    """One assistant batch of calls and its results share a group: it is kept or cut as one."""
    name: str | None = None
    media_type: str | None = None


@value
class Message:
    """One message of a window, as parts in their order."""

    role: Role
    parts: tuple[Part, ...]
    occurred_at: datetime | None = None
    is_system_field: bool = False
    """True for Anthropic's ``system``, which stands outside the list of messages."""

    @property
    def said_by(self) -> Role:
        """A tool, where nothing but its results stand in the message: some formats carry them under the user's role."""
        return "tool" if all(part.role == "tool" for part in self.parts) else self.role


class WireFormat(Protocol):
    """What the pipeline needs to know of one wire format. Raises InvalidRequest, with a JSON pointer, on a bad shape."""

    name: WindowFormat

    def check(self, message: JsonValue, at: Path) -> JsonObject:
        """The message, when its shape is one this format knows."""
        ...

    def read(self, message: JsonObject) -> Reading:
        """The fields and the sites of a message."""
        ...

    def role(self, message: JsonObject) -> Role: ...

    def check_system(self, system: JsonValue, at: Path) -> None:
        """Raises InvalidRequest unless this format has a system field of this shape (Anthropic's ``system``)."""
        ...

    def read_system(self, system: JsonValue) -> Reading:
        """As ``read``, of the bare value of the system field."""
        ...

    def thinking_marker(self, block: JsonValue, marker: str) -> JsonValue:
        """The block that stands in for a thinking block that held a secret."""
        ...

    def handoff_message(self, text: str) -> JsonObject:
        """The handoff as a message, in a role that the provider takes at the window's place."""
        ...


def frame(message: JsonValue, sites: Sequence[Site], canonical: str | None = None) -> tuple[Part, ...]:
    """Cuts a message's canonical text, which the caller may have at hand, at its sites. ``assemble`` is the inverse."""
    found = None
    if len(sites) <= _FEW_SITES:
        found = _found_by_text(message, sites, to_text(message) if canonical is None else canonical)
    return found or _found_by_path(message, sites)


def _found_by_text(message: JsonValue, sites: Sequence[Site], canonical: str) -> tuple[Part, ...] | None:
    """The parts, where each site's text stands once in the canonical text: a few look-ups instead of a walk."""
    parts: list[Part] = []
    position = 0
    for site in sites:
        value = value_at(message, site.path)
        body = to_text(value)
        text = value if site.encoding == "string" else body
        start = canonical.find(body)
        if not isinstance(text, str) or start < position or start != canonical.rfind(body):
            return None
        end = start + len(body)
        is_last = len(parts) == len(sites) - 1
        parts.append(_part(site, text, canonical[position:start], canonical[end:] if is_last else ""))
        position = end
    return tuple(parts)


def _part(site: Site, text: str, before: str, after: str) -> Part:
    return Part(site.kind, site.role, text, site.encoding, before, after, site.call_id, None, site.name, site.media_type)


def _found_by_path(message: JsonValue, sites: Sequence[Site]) -> tuple[Part, ...]:
    by_path = {site.path: site for site in sites}
    holders = {path[:length] for path in by_path for length in range(len(path))}
    found: list[tuple[Site, str, str]] = []
    literal: list[str] = []

    def walk(value: JsonValue, path: Path) -> None:
        site = by_path.get(path)
        if site is not None:
            text = value if site.encoding == "string" else to_text(value)
            if not isinstance(text, str):
                raise TypeError("a site with encoding 'string' must stand at a string")
            found.append((site, text, "".join(literal)))
            literal.clear()
        elif path not in holders:
            literal.append(to_text(value))
        elif isinstance(value, dict):
            for position, (key, item) in enumerate(value.items()):
                literal.append(("{" if position == 0 else ",") + to_text(key) + ":")
                walk(item, (*path, key))
            literal.append("}" if value else "{}")
        elif isinstance(value, list):
            for position, item in enumerate(value):
                literal.append("[" if position == 0 else ",")
                walk(item, (*path, position))
            literal.append("]" if value else "[]")
        else:
            literal.append(to_text(value))

    walk(message, ())
    if len(found) != len(by_path):
        raise ValueError("a site names a place that the message does not have")
    last = len(found) - 1
    return tuple(
        _part(site, text, before, "".join(literal) if position == last else "")
        for position, (site, text, before) in enumerate(found)
    )


def encode_in_message(text: str, encoding: Encoding) -> str:
    """A part's text as it stands in the canonical text of its message."""
    return to_text(text) if encoding == "string" else text


def assemble(parts: Sequence[Part]) -> str:
    """The canonical JSON text of the message that ``frame`` cut into these parts."""
    return "".join(p.frame_before + encode_in_message(p.text, p.encoding) + p.frame_after for p in parts)
