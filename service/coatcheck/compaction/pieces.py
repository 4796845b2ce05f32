"""The parts of a window cut into pieces: segments, and around them earlier handoffs, blobs and empty parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from uuid import UUID

from coatcheck.compaction import segmentation
from coatcheck.compaction.handoffs import HandoffSpan
from coatcheck.compaction.reading import OpenedWindow
from coatcheck.domain.messages import Part, PartKind
from coatcheck.domain.values import value


@value
class Piece:
    """One future entry. ``position`` is the message's in the opened window; pieces stand in the window's order."""

    position: int
    part_index: int
    segment_index: int
    part: Part
    text: str
    handoff_manifest_id: UUID | None = None

    @property
    def is_segment(self) -> bool:
        return self.handoff_manifest_id is None and self.part.kind is not PartKind.BLOB and self.text != ""


def cut(window: OpenedWindow) -> list[Piece]:
    """Every part has at least one piece, and its pieces' texts together are its text."""
    pieces: list[Piece] = []
    for position, message in enumerate(window.messages):
        for part_index, part in enumerate(message.parts):
            spans = window.handoffs.get((position, part_index), ())
            for segment_index, (text, manifest_id) in enumerate(_cut_part(part, spans)):
                pieces.append(Piece(position, part_index, segment_index, part, text, manifest_id))
    return pieces


def _cut_part(part: Part, handoffs: Sequence[HandoffSpan]) -> Iterator[tuple[str, UUID | None]]:
    if part.kind is PartKind.BLOB or not part.text:
        yield part.text, None
        return
    position = 0
    for span in handoffs:
        for text in segmentation.split(part.text[position : span.start]):
            yield text, None
        yield part.text[span.start : span.end], span.manifest_id
        position = span.end
    for text in segmentation.split(part.text[position:] if position else part.text):
        yield text, None
