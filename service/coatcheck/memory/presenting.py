"""How what is stored is shown: segments, handoffs and windows, scanned again where the redaction rules have moved on."""

from __future__ import annotations

import asyncio
import dataclasses
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from coatcheck.compaction.redaction.redactor import Redactor
from coatcheck.domain.canonical import JsonValue, decode, sha256_of
from coatcheck.domain.entries import Entry
from coatcheck.domain.errors import InvalidRequest
from coatcheck.domain.messages import WireFormat
from coatcheck.domain.placeholders import PlaceholderKeys
from coatcheck.domain.runs import Run
from coatcheck.formats import get
from coatcheck.identity.context import RequestContext
from coatcheck.identity.keyring import Keyring
from coatcheck.store.segments import StoredSegment

Representation = Literal["exact", "reduced"]
HIDDEN = "[REDACTED: this message's structure holds a secret]"


@dataclass(frozen=True, slots=True)
class Presented:
    """A segment's text as it leaves, under the hash of the exact segment."""

    sha256: str
    text: str
    representation: Representation


class Presenter:
    """Shows what one caller's scope holds."""

    def __init__(self, redactor: Redactor, keyring: Keyring) -> None:
        self._redactor = redactor
        self._keyring = keyring

    async def present(
        self, context: RequestContext, stored: StoredSegment, session_id: UUID, wanted: Representation = "exact"
    ) -> Presented:
        """The text. A secret that only newer rules know is covered on the way out; a rescan makes that permanent."""
        shown: Representation = "reduced" if wanted == "reduced" and stored.reduction else "exact"
        raw = stored.reduction.raw if shown == "reduced" and stored.reduction else stored.segment.raw
        text = decode(raw)
        if stored.segment.rule_revision != self._redactor.revision:
            text = await self.covered(context, session_id, text)
        return Presented(stored.segment.sha256, text, shown)

    async def covered(self, context: RequestContext, session_id: UUID, text: str) -> str:
        """A text without what today's rules find in it."""
        keys = self._keyring.placeholder_keys(context.tenant_id, session_id)
        return (await asyncio.to_thread(self._redactor.redact_text, text, keys)).text

    def is_current(self, run: Run) -> bool:
        """Whether the run's window and handoff were last scanned under today's rules."""
        return run.revisions.get("redaction") == self._redactor.revision

    async def run(self, context: RequestContext, run: Run) -> Run:
        """The run with its handoff as it may leave."""
        text = run.handoff.text if self.is_current(run) else await self.covered(context, run.session_id, run.handoff.text)
        if text == run.handoff.text:
            return run
        return dataclasses.replace(run, handoff=dataclasses.replace(run.handoff, text=text, sha256=sha256_of(text)))

    async def entry(self, context: RequestContext, run: Run, entry: Entry) -> Entry:
        """An entry with its name and ids as they may leave."""
        if self.is_current(run):
            return entry

        async def covered(text: str | None) -> str | None:
            return None if text is None else await self.covered(context, run.session_id, text)

        return dataclasses.replace(
            entry, name=await covered(entry.name), call_id=await covered(entry.call_id), group_id=await covered(entry.group_id)
        )

    async def window(
        self, context: RequestContext, run: Run, system: JsonValue, messages: list[JsonValue]
    ) -> tuple[JsonValue, list[JsonValue]]:
        """A rebuilt window as it may leave: names, keys and titles too. Raises RedactionFailed."""
        if self.is_current(run):
            return system, messages
        keys = self._keyring.placeholder_keys(context.tenant_id, run.session_id)
        return await asyncio.to_thread(self._window, get(run.window_format), keys, system, messages)

    def _window(
        self, wire: WireFormat, keys: PlaceholderKeys, system: JsonValue, messages: list[JsonValue]
    ) -> tuple[JsonValue, list[JsonValue]]:
        if system is not None:
            system = self._redactor.redact_system(wire, system, keys, at=()).system
        return system, [self._message(wire, keys, message) for message in messages]

    def _message(self, wire: WireFormat, keys: PlaceholderKeys, message: JsonValue) -> JsonValue:
        assert isinstance(message, dict)
        try:
            return self._redactor.redact_message(wire, message, keys, at=()).message
        except InvalidRequest:
            # A call id that today's rules take for a secret: a new window with it would be refused, this one is not shown.
            return {"role": message.get("role"), "content": HIDDEN}
