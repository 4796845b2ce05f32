"""The window's order: one entry for each stretch of each part, with all that is needed to rebuild the window."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from coatcheck.domain.messages import Encoding, PartKind, Role
from coatcheck.domain.routes import Decision, Route
from coatcheck.domain.values import value


@value
class Entry:
    """One stretch of one part at its place in the window.

    Exactly one of ``segment_sha256``, ``blob_sha256`` and ``handoff_manifest_id`` is set, or none: for a dropped segment
    (its text is gone: ``dropped_sha256`` and ``chars`` are its tombstone) and for an empty part.
    """

    ordinal: int
    message_index: int
    part_index: int
    segment_index: int
    role: Role
    kind: PartKind
    encoding: Encoding
    decision: Decision
    segment_sha256: str | None = None
    blob_sha256: str | None = None
    handoff_manifest_id: UUID | None = None
    """Set where an earlier handoff of the session stood: it is rebuilt from its run, and its text is not stored again."""
    frame_before: str = ""
    """On a part's first entry: the message's JSON text before the part."""
    frame_after: str = ""
    """On a message's last entry: the JSON text after the part."""
    call_id: str | None = None
    group_id: str | None = None
    name: str | None = None
    occurred_at: datetime | None = None
    is_system_field: bool = False
    chars: int = 0
    dropped_sha256: str | None = None
    """The hash of a dropped segment's text: whoever has the text can still show that it stood here."""

    @property
    def dropped(self) -> bool:
        return self.decision.route is Route.DROP
