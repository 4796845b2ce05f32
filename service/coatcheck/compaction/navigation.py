"""The handoff's text: exactly in the contract's shape, within its bounds, valid Unicode, and the same for the same plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal
from uuid import UUID

from coatcheck.compaction.quoting import END_MARKER, MARKER, escape_delimiters, one_line, shorten
from coatcheck.domain.canonical import scalar_text, sha256_of
from coatcheck.domain.runs import Handoff, HandoffLine, RunCounts

LINES_HEADING = "Worth recalling:"

_ROLES = ("system", "developer", "user", "assistant", "tool")
_LONGEST_NAME_CHARS = 200
_SHORTEST_NAME_CHARS = 8
_LEAST_OVERVIEW_CHARS = 40
_HTTP_NEEDS_CHARS = 240
"""What must be left after the line with the HTTP routes: else they would crowd out what they lead to."""
_FOLLOWS_NEEDS_CHARS = 480
"""As much where the manifest before this one is named: what is carried on of its handoff is worth more than its id."""
_OVERVIEW_SHARE = 0.34


@dataclass(frozen=True, slots=True)
class HandoffIdentity:
    """What the handoff says of itself. ``session_name`` is the caller's own."""

    manifest_id: UUID
    session_id: UUID
    session_name: str
    created_at: datetime
    public_url: str | None = None
    follows: UUID | None = None
    """The manifest before this one: its parent."""


@dataclass(frozen=True, slots=True)
class Overview:
    """What the window was about, on one line, and the segments that this quotes or rests on."""

    text: str
    source: Literal["generated", "excerpt"]
    sha256s: tuple[str, ...] = ()


def render_handoff(
    identity: HandoffIdentity, counts: RunCounts, overview: Overview, lines: Sequence[HandoffLine], max_chars: int
) -> Handoff:
    """Renders what fits into ``max_chars`` code points: the frame always, then the overview, then the lines in their order."""
    head, tail = _frame(identity, counts, max_chars)
    room = max_chars - _length(head) - _length(tail)
    overview_line, quoted_overview = "", ""
    if room > _LEAST_OVERVIEW_CHARS:
        quoted_overview = shorten(_clean(overview.text) or "nothing in this window can be quoted.", _overview_room(room))
        overview_line = f"Overview: {quoted_overview}"
        room -= len(overview_line) + 1
    kept = _fitting(lines, room)
    body = [overview_line] if overview_line else []
    if kept:
        body += [LINES_HEADING, *(f"- {line.text}" for line in kept)]
    text = "\n".join((*head, *body, *tail))
    return Handoff(
        text=text,
        sha256=sha256_of(text),
        overview_source=overview.source,
        overview=quoted_overview,
        overview_sha256s=overview.sha256s if quoted_overview else (),
        lines=tuple(kept),
    )


def overview_room(identity: HandoffIdentity, counts: RunCounts, max_chars: int) -> int:
    """How many code points the overview may have in a handoff of this size."""
    head, tail = _frame(identity, counts, max_chars)
    return _overview_room(max_chars - _length(head) - _length(tail))


def lines_room(identity: HandoffIdentity, counts: RunCounts, overview: Overview, max_chars: int) -> int:
    """How many code points the lines may have together, each counted with its dash and line break."""
    head, tail = _frame(identity, counts, max_chars)
    room = max_chars - _length(head) - _length(tail)
    if room > _LEAST_OVERVIEW_CHARS:
        room -= len("Overview: ") + len(shorten(_clean(overview.text), _overview_room(room))) + 1
    return max(0, room - len(LINES_HEADING) - 1)


def line_cost(text: str) -> int:
    """What one line takes of ``lines_room``."""
    return len(text) + 3


def _frame(identity: HandoffIdentity, counts: RunCounts, max_chars: int) -> tuple[list[str], list[str]]:
    """The lines before and after the overview and the quoted lines."""
    created_at = identity.created_at.astimezone(UTC).strftime("%Y-%m-%dT%H:%MZ")
    covers = _covers(counts)
    tail = [
        f'To read what was left out: recall_memory(query, session="{identity.session_id}"), '
        f'read_manifest("{identity.manifest_id}"), read_segment(sha256 or 12 digits).',
        END_MARKER,
    ]

    follows = f" (follows {identity.follows})" if identity.follows is not None else ""

    def head(name: str) -> list[str]:
        return [MARKER, f"Manifest {identity.manifest_id}{follows}  session {name} ({identity.session_id})  {created_at}", covers]

    if max_chars - _length(head(identity.session_name)) - _length(tail) < _FOLLOWS_NEEDS_CHARS:
        follows = ""
    name_room = max_chars - _length(head("")) - _length(tail) - _LEAST_OVERVIEW_CHARS - len("Overview: ") - 1
    name = shorten(_clean(identity.session_name), max(_SHORTEST_NAME_CHARS, min(_LONGEST_NAME_CHARS, name_room)))
    if identity.public_url:
        url = _clean(identity.public_url).rstrip("/")
        http = f"Over HTTP: POST {url}/v1/recall, GET {url}/v1/manifests/{identity.manifest_id}, GET {url}/v1/segments/<sha256>."
        if max_chars - _length(head(name)) - _length(tail) - len(http) - 1 >= _HTTP_NEEDS_CHARS:
            tail.insert(1, http)
    return head(name), tail


def _covers(counts: RunCounts) -> str:
    by_role = ", ".join(f"{counts.messages_by_role[role]:,} {role}" for role in _ROLES if counts.messages_by_role.get(role))
    segments = f"kept in {_plural(counts.segments, 'segment')}"
    if counts.drop:  # the characters are the whole window's, those of dropped segments among them
        segments = f"in {_plural(counts.segments, 'segment')}, {counts.drop:,} of them dropped"
    return f"Covers {_plural(counts.messages, 'message')}: {by_role}; {_plural(counts.chars, 'character')} {segments}."


def _plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _overview_room(room: int) -> int:
    return max(_LEAST_OVERVIEW_CHARS - len("Overview: "), int(room * _OVERVIEW_SHARE))


def _fitting(lines: Sequence[HandoffLine], room: int) -> list[HandoffLine]:
    room -= len(LINES_HEADING) + 1
    kept: list[HandoffLine] = []
    for line in lines:
        text = _clean(line.text)
        if line_cost(text) <= room:
            room -= line_cost(text)
            kept.append(line if text == line.text else HandoffLine(text, line.sha256, line.manifest_id))
    return kept


def _clean(text: str) -> str:
    return one_line(escape_delimiters(scalar_text(text)))


def _length(lines: Sequence[str]) -> int:
    """Of lines each with its line break; the last of a text has none, which leaves one to spare."""
    return sum(len(line) + 1 for line in lines)
