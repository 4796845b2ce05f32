"""A window that cannot be planned again, redacted piece by piece: what stands in one segment alone goes for good all the same.

It cannot where some of its text was dropped or lost, or where a secret stands in what may not be rewritten, as a call id. Frames
(names, titles, keys), thinking and JSON texts keep what they hold, and every read goes on covering them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Literal

from coatcheck.compaction.navigation import HandoffIdentity, Overview, render_handoff
from coatcheck.compaction.redaction.redactor import Redactor
from coatcheck.domain.entries import Entry
from coatcheck.domain.messages import PartKind
from coatcheck.domain.placeholders import PlaceholderKeys
from coatcheck.domain.runs import Handoff, HandoffLine, Run
from coatcheck.domain.segments import Segment
from coatcheck.memory.stored_window import StoredWindow

_READABLE = (PartKind.TEXT, PartKind.TOOL_CALL, PartKind.TOOL_RESULT)


@dataclass(frozen=True, slots=True)
class Pieces:
    """What stands in the run's place: other segments at some of its entries, its handoff with other lines."""

    by_ordinal: dict[int, Segment]
    handoff: Handoff
    redactions: Counter[str]


def redacted(redactor: Redactor, keys: PlaceholderKeys, public_url: str | None, stored: StoredWindow) -> Pieces | None:
    """None where today's rules find nothing that can go. Raises RedactionFailed."""
    counts: Counter[str] = Counter()
    anew: dict[str, Segment] = {}
    changeable = [entry for entry in stored.rows if _may_change(entry)]
    for sha in dict.fromkeys(entry.segment_sha256 for entry in changeable if entry.segment_sha256 in stored.texts):
        assert sha is not None
        found = redactor.redact_text(stored.texts[sha], keys)
        if found.counts:  # with its placeholders it may be a little longer than a segment is cut
            counts += found.counts
            anew[sha] = Segment.of(found.text, redactor.revision)
    handoff = _handoff(redactor, keys, public_url, stored, anew)
    if not anew and handoff.sha256 == stored.run.handoff.sha256:
        return None
    by_ordinal = {entry.ordinal: anew[entry.segment_sha256] for entry in changeable if entry.segment_sha256 in anew}
    return Pieces(by_ordinal, handoff, counts)


def _may_change(entry: Entry) -> bool:
    return entry.segment_sha256 is not None and entry.encoding == "string" and entry.kind in _READABLE


def _handoff(
    redactor: Redactor, keys: PlaceholderKeys, public_url: str | None, stored: StoredWindow, anew: dict[str, Segment]
) -> Handoff:
    """The handoff rendered again: lines and overview covered, and naming the segments as they are now."""
    run: Run = stored.run
    if not anew and not redactor.redact_text(run.handoff.text, keys).counts:
        return run.handoff

    def now(sha: str | None) -> str | None:
        return anew[sha].sha256 if sha is not None and sha in anew else sha

    def line(one: HandoffLine) -> HandoffLine:
        text = redactor.redact_text(one.text, keys).text
        sha = now(one.sha256)
        if one.sha256 is not None and sha is not None:
            text = text.replace(one.sha256[:12], sha[:12])
        return HandoffLine(text, sha, one.manifest_id)

    source: Literal["generated", "excerpt"] = "generated" if run.handoff.overview_source == "generated" else "excerpt"
    overview = Overview(
        redactor.redact_text(run.handoff.overview, keys).text,
        source,
        tuple(now(sha) or sha for sha in run.handoff.overview_sha256s),
    )
    identity = HandoffIdentity(
        run.manifest_id, run.session_id, stored.session.name, run.created_at, public_url, run.parent_manifest_id
    )
    return render_handoff(identity, run.counts, overview, [line(one) for one in run.handoff.lines], run.max_handoff_chars)
