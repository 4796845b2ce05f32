"""A checked window without its secrets, as parts: redaction, and the earlier handoffs that it leaves alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby
from uuid import UUID

from coatcheck.compaction.handoffs import HandoffSpan, may_hold_one, put_back, set_aside
from coatcheck.compaction.pairing import Link, pair
from coatcheck.compaction.window import MESSAGES, SYSTEM, CheckedWindow
from coatcheck.domain.canonical import JsonObject, JsonValue, Path
from coatcheck.domain.messages import Message, Part, Site, WireFormat, frame
from coatcheck.domain.placeholders import PlaceholderKeys
from coatcheck.domain.ports import Redacting

Spans = Mapping[Path, tuple[HandoffSpan, ...]]
Redact = Callable[[JsonValue], tuple[JsonValue, Mapping[str, int]]]


@dataclass(frozen=True, slots=True)
class OpenedWindow:
    """The redacted messages as parts, the system field (if any) first; where earlier handoffs stand; what was redacted."""

    messages: tuple[Message, ...]
    handoffs: Mapping[tuple[int, int], tuple[HandoffSpan, ...]]
    """By position in ``messages`` and part."""
    redactions: Mapping[str, int]


def read(
    window: CheckedWindow,
    times: Sequence[datetime],
    wire: WireFormat,
    redactor: Redacting,
    keys: PlaceholderKeys,
    known_handoffs: Mapping[str, UUID],
) -> OpenedWindow:
    """Redacts the window and opens it. Raises RedactionFailed, and InvalidRequest for a secret in a structural field."""
    opening = _Opening(known_handoffs)

    if window.system is not None:

        def redact_system(system: JsonValue) -> tuple[JsonValue, Mapping[str, int]]:
            redacted = redactor.redact_system(wire, system, keys, at=SYSTEM)
            return redacted.system, redacted.counts

        system, spans = opening.redact(window.system, lambda value: wire.read_system(value).sites, redact_system)
        sites = wire.read_system(system).sites
        opening.add(Message("system", frame(system, sites), times[0], is_system_field=True), sites, spans)

    redacted = opening.redact_messages(window, wire, redactor, keys)
    unchanged = [now is before for (now, _), before in zip(redacted, window.messages, strict=True)]
    sites_by_message = [
        reading.sites if same else wire.read(message).sites
        for (message, _), same, reading in zip(redacted, unchanged, window.readings, strict=True)
    ]
    links_by_message = window.links if all(unchanged) else pair(sites_by_message)
    for index, (message, spans) in enumerate(redacted):
        sites, links = sites_by_message[index], links_by_message[index]
        framed = frame(message, sites, window.canonical[index] if unchanged[index] else None)
        parts = tuple(_linked(part, link) for part, link in zip(framed, links, strict=True))
        opening.add(Message(wire.role(message), parts, times[index]), sites, spans)
    return OpenedWindow(tuple(opening.messages), opening.handoffs, opening.redactions)


@dataclass(slots=True)
class _Opening:
    known_handoffs: Mapping[str, UUID]
    messages: list[Message] = field(default_factory=list)
    handoffs: dict[tuple[int, int], tuple[HandoffSpan, ...]] = field(default_factory=dict)
    redactions: Counter[str] = field(default_factory=Counter)

    def add(self, message: Message, sites: Sequence[Site], spans: Spans) -> None:
        for part_index, site in enumerate(sites):
            if site.path in spans:
                self.handoffs[len(self.messages), part_index] = spans[site.path]
        self.messages.append(message)

    def redact_messages(
        self, window: CheckedWindow, wire: WireFormat, redactor: Redacting, keys: PlaceholderKeys
    ) -> Sequence[tuple[JsonObject, Spans]]:
        """Messages that may hold an earlier handoff one by one, and what stands between them together."""
        messages, redacted = window.messages, []
        holding = [bool(self.known_handoffs) and may_hold_one(message) for message in messages]
        for holds, numbers in groupby(range(len(messages)), holding.__getitem__):
            run = list(numbers)
            if holds:
                redacted += [self.redact_message(index, messages[index], wire, redactor, keys) for index in run]
                continue
            some = slice(run[0], run[-1] + 1)
            together = redactor.redact_messages(
                wire, messages[some], keys, at=MESSAGES, readings=window.readings[some], first=run[0]
            )
            for of_one in together:
                if of_one.counts:
                    self.redactions.update(of_one.counts)
            redacted += [(of_one.message, {}) for of_one in together]
        return redacted

    def redact_message(
        self, index: int, message: JsonObject, wire: WireFormat, redactor: Redacting, keys: PlaceholderKeys
    ) -> tuple[JsonObject, Spans]:
        def redact(value: JsonValue) -> tuple[JsonValue, Mapping[str, int]]:
            redacted = redactor.redact_message(wire, _object(value), keys, at=(*MESSAGES, index))
            return redacted.message, redacted.counts

        value, spans = self.redact(message, lambda value: wire.read(_object(value)).sites, redact)
        return _object(value), spans

    def redact(self, value: JsonValue, sites_of: Callable[[JsonValue], Sequence[Site]], redact: Redact) -> tuple[JsonValue, Spans]:
        """Redacts a value around its earlier handoffs; where that cannot be done, the whole of it."""
        if self.known_handoffs and may_hold_one(value):
            aside = set_aside(value, sites_of(value), self.known_handoffs)
            if aside is not None:
                without, counts = redact(aside.value)
                restored = put_back(without, aside)
                if restored is not None:
                    self.redactions.update(counts)
                    return restored
        redacted, counts = redact(value)
        if counts:
            self.redactions.update(counts)
        return redacted, {}


def _linked(part: Part, link: Link | None) -> Part:
    if link is None:
        return part
    return Part(
        part.kind,
        part.role,
        part.text,
        part.encoding,
        part.frame_before,
        part.frame_after,
        part.call_id,
        link.group_id,
        part.name or link.name,
        part.media_type,
    )


def _object(value: JsonValue) -> JsonObject:
    if not isinstance(value, dict):
        raise TypeError("a message is an object")
    return value
