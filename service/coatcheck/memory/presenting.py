"""How a stored segment is shown: its exact text, or its reduction; scanned again where the redaction rules have moved on."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from coatcheck.compaction.redaction.redactor import Redactor
from coatcheck.domain.canonical import decode
from coatcheck.identity.context import RequestContext
from coatcheck.identity.keyring import Keyring
from coatcheck.store.segments import StoredSegment

Representation = Literal["exact", "reduced"]


@dataclass(frozen=True, slots=True)
class Presented:
    """A segment's text as it leaves, under the hash of the exact segment."""

    sha256: str
    text: str
    representation: Representation


class Presenter:
    """Shows segments of one caller's scope."""

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
            keys = self._keyring.placeholder_keys(context.tenant_id, session_id)
            text = (await asyncio.to_thread(self._redactor.redact_text, text, keys)).text
        return Presented(stored.segment.sha256, text, shown)
