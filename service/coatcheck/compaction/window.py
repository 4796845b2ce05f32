"""The window as it came in: checked before anything else happens to it; and as it comes out, rebuilt from its entries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby

from coatcheck.compaction.pairing import Link, pair
from coatcheck.domain.canonical import JsonObject, JsonValue, Path, encode, parse_text, pointer, to_text, value_at
from coatcheck.domain.entries import Entry
from coatcheck.domain.errors import EmptyWindow, FieldError, InvalidRequest, TooLarge
from coatcheck.domain.messages import PartKind, Reading, Site, WireFormat, encode_in_message

MESSAGES: Path = ("window", "messages")
SYSTEM: Path = ("window", "system")
TIMES: Path = ("window", "times")

SYSTEM_INDEX = -1
"""The ``message_index`` of entries of the system field, which stands before the list of messages."""

_STRUCTURAL_KEYS = frozenset(("role", "type", "id", "name", "status", "object"))


@dataclass(frozen=True, slots=True)
class CheckedWindow:
    """Messages of a known shape and size, with every tool call beside its result, and something in them."""

    messages: tuple[JsonObject, ...]
    readings: tuple[Reading, ...]
    """Of each message."""
    canonical: tuple[str, ...]
    """The text of each message."""
    links: Sequence[Sequence[Link | None]]
    """Of each message's sites."""
    system: JsonValue


def check(wire: WireFormat, messages: Sequence[JsonValue], system: JsonValue, max_message_bytes: int) -> CheckedWindow:
    """Takes the window whole or not at all.

    Raises TooLarge, InvalidRequest, InvalidWindow or EmptyWindow, each with the JSON pointer of the message.
    """
    checked: list[JsonObject] = []
    canonical: list[str] = []
    for index, message in enumerate(messages):
        at = (*MESSAGES, index)
        canonical.append(_sized(message, at, max_message_bytes))
        checked.append(wire.check(message, at))
    _sized(system, SYSTEM, max_message_bytes)
    wire.check_system(system, SYSTEM)
    readings = tuple(wire.read(message) for message in checked)
    if all(_is_empty(message, reading.sites) for message, reading in zip(checked, readings, strict=True)):
        raise EmptyWindow(errors=[FieldError(pointer(MESSAGES), "No message in the window has any content.")])
    links = pair([reading.sites for reading in readings])
    return CheckedWindow(tuple(checked), readings, tuple(canonical), links, system)


def moments(times: Sequence[datetime | None] | None, received_at: datetime, count: int) -> list[datetime]:
    """When each message occurred: as stated, and when it arrived at the latest. Raises InvalidRequest when the lengths differ.

    A time to come would be the newest of all for ever.
    """
    if times is None:
        return [received_at] * count
    if len(times) != count:
        detail = f"There are {len(times)} times for {count} messages."
        raise InvalidRequest("times needs one entry for each message.", errors=[FieldError(pointer(TIMES), detail)])
    return [min(_aware(time), received_at) if time is not None else received_at for time in times]


def rebuild(entries: Iterable[Entry], text_of: Callable[[Entry], str | None]) -> tuple[JsonValue, list[JsonValue]]:
    """The redacted window, system field and messages, from its entries in any order.

    ``text_of`` gives the text of a segment, a blob or an earlier handoff; where it gives None, and where a segment was
    dropped, a mark says how much is missing.
    """
    system: JsonValue = None
    messages: list[JsonValue] = []
    for is_system_field, text in rebuild_texts(entries, text_of):
        if is_system_field:
            system = parse_text(text)
        else:
            messages.append(parse_text(text))
    return system, messages


def rebuild_texts(entries: Iterable[Entry], text_of: Callable[[Entry], str | None]) -> Iterator[tuple[bool, str]]:
    """As ``rebuild``, the canonical JSON text of each message, with whether it is the system field."""
    ordered = sorted(entries, key=lambda entry: entry.ordinal)
    for (is_system_field, _), of_message in groupby(ordered, key=lambda entry: (entry.is_system_field, entry.message_index)):
        pieces = (_rebuild_part(list(of_part), text_of) for _, of_part in groupby(of_message, key=lambda entry: entry.part_index))
        yield is_system_field, "".join(pieces)


def _rebuild_part(entries: list[Entry], text_of: Callable[[Entry], str | None]) -> str:
    texts = [_entry_text(entry, text_of) for entry in entries]
    encoding = entries[0].encoding
    if encoding == "json" and None in texts:
        # What is left of a JSON text is no JSON; a string that says so is.
        body = to_text(_mark(entries[0].dropped, sum(entry.chars for entry in entries)))
    else:
        marked = (_mark(entry.dropped, entry.chars) if text is None else text for entry, text in zip(entries, texts, strict=True))
        body = encode_in_message("".join(marked), encoding)
    return entries[0].frame_before + body + entries[-1].frame_after


def _entry_text(entry: Entry, text_of: Callable[[Entry], str | None]) -> str | None:
    if entry.dropped:
        return None
    if entry.segment_sha256 is None and entry.blob_sha256 is None and entry.handoff_manifest_id is None:
        return ""
    return text_of(entry)


def _mark(dropped: bool, chars: int) -> str:
    return f"[{'DROPPED' if dropped else 'MISSING'}: {chars} characters]"


def _sized(value: JsonValue, at: Path, max_message_bytes: int) -> str:
    """The canonical text of a value that is not too large."""
    try:
        text = to_text(value)
    except RecursionError as error:
        raise InvalidRequest(errors=[FieldError(pointer(at), "This is nested too deeply.")]) from error
    size_bytes = len(text) if text.isascii() else len(encode(text))
    if size_bytes > max_message_bytes:
        detail = f"has {size_bytes:,} bytes, and {max_message_bytes:,} are taken (COATCHECK_MAX_MESSAGE_BYTES)."
        raise TooLarge(
            f"One message is larger than this service takes: {pointer(at)} {detail}", errors=[FieldError(pointer(at), detail)]
        )
    return text


def _is_empty(message: JsonObject, sites: Sequence[Site]) -> bool:
    return all(_is_empty_site(message, site) for site in sites)


def _is_empty_site(message: JsonObject, site: Site) -> bool:
    if site.kind in (PartKind.TOOL_CALL, PartKind.TOOL_RESULT):
        return False
    value = value_at(message, site.path)
    if isinstance(value, str):
        return not value.strip()
    return isinstance(value, dict) and all(key in _STRUCTURAL_KEYS or item in (None, "", [], {}) for key, item in value.items())


def _aware(time: datetime) -> datetime:
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)
