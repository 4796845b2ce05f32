"""What the pieces become: entries in the window's order, segments and blobs once by content, and what a handoff may quote."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from coatcheck.compaction.pieces import Piece
from coatcheck.compaction.quotable import Quotable, Turns, is_quoted_kind
from coatcheck.compaction.reading import OpenedWindow
from coatcheck.compaction.window import SYSTEM_INDEX
from coatcheck.domain.canonical import sha256_of
from coatcheck.domain.entries import Entry
from coatcheck.domain.messages import PartKind
from coatcheck.domain.routes import Decision, Route
from coatcheck.domain.segments import Blob, Segment


@dataclass(slots=True)
class Stored:
    """What the pieces become."""

    entries: list[Entry] = field(default_factory=list)
    segments: dict[str, Segment] = field(default_factory=dict)
    """By text."""
    blobs: dict[str, Blob] = field(default_factory=dict)
    dropped: set[str] = field(default_factory=set)


def store(opened: OpenedWindow, cut: Sequence[Piece], decisions: Sequence[Decision], rule_revision: str) -> Stored:
    """Entries in the window's order; segments and blobs once by content."""
    stored = Stored()
    system_fields = sum(1 for message in opened.messages if message.is_system_field)
    for ordinal, (piece, decision) in enumerate(zip(cut, decisions, strict=True)):
        message, part = opened.messages[piece.position], piece.part
        following = cut[ordinal + 1] if ordinal + 1 < len(cut) else None
        ends_message = following is None or following.position != piece.position
        segment_sha256 = blob_sha256 = dropped_sha256 = None
        if piece.is_segment and decision.route is Route.DROP:
            stored.dropped.add(piece.text)
            dropped_sha256 = sha256_of(piece.text)
        elif piece.is_segment:
            segment = stored.segments.get(piece.text)
            if segment is None:
                segment = stored.segments[piece.text] = Segment.of(piece.text, rule_revision)
            segment_sha256 = segment.sha256
        elif part.kind is PartKind.BLOB and piece.text:
            blob = stored.blobs.get(piece.text)
            if blob is None:
                blob = stored.blobs[piece.text] = Blob.of(piece.text, part.media_type)
            blob_sha256 = blob.sha256
        stored.entries.append(
            Entry(
                ordinal=ordinal,
                message_index=SYSTEM_INDEX if message.is_system_field else piece.position - system_fields,
                part_index=piece.part_index,
                segment_index=piece.segment_index,
                role=part.role,
                kind=part.kind,
                encoding=part.encoding,
                decision=decision,
                segment_sha256=segment_sha256,
                blob_sha256=blob_sha256,
                handoff_manifest_id=piece.handoff_manifest_id,
                frame_before=part.frame_before if piece.segment_index == 0 else "",
                frame_after=part.frame_after if ends_message else "",
                call_id=part.call_id,
                group_id=part.group_id,
                name=part.name,
                occurred_at=message.occurred_at,
                is_system_field=message.is_system_field,
                chars=len(piece.text),
                dropped_sha256=dropped_sha256,
            )
        )
    return stored


def quotables_of(opened: OpenedWindow, cut: Sequence[Piece], stored: Stored) -> list[Quotable]:
    """Every stored segment that may be quoted, once, at its last place in the window."""
    turns = Turns.of(opened.messages)
    found: dict[str, Quotable] = {}
    for ordinal, piece in enumerate(cut):
        segment = stored.segments.get(piece.text) if piece.is_segment and is_quoted_kind(piece.part.kind) else None
        if segment is not None:
            found.pop(segment.sha256, None)
            found[segment.sha256] = Quotable(
                sha256=segment.sha256,
                text=piece.text,
                role=piece.part.role,
                kind=piece.part.kind,
                position=piece.position,
                begins_message=piece.part_index == 0 and piece.segment_index == 0,
                source=piece.part.name if piece.part.kind in (PartKind.TOOL_CALL, PartKind.TOOL_RESULT) else None,
                answered=turns.answered(piece.position),
                in_last_turn=turns.in_last(piece.position),
                begins_within=ordinal > 0 and _line_runs_on(cut[ordinal - 1], piece),
                ends_within=ordinal + 1 < len(cut) and _line_runs_on(piece, cut[ordinal + 1]),
            )
    return list(found.values())


def _line_runs_on(piece: Piece, following: Piece) -> bool:
    """Whether a line of their part was cut between the two."""
    is_same_part = following.segment_index > 0
    return is_same_part and piece.is_segment and following.is_segment and not piece.text.endswith("\n")
