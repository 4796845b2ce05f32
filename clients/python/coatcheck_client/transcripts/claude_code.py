"""Claude Code logs (JSON lines): a graph of lines, one content block each, whose main chain is the conversation.

``parentUuid`` leads from a line to the one it follows, ``logicalParentUuid`` over a compaction's boundary. The chain from
the newest line to the root is the conversation. Two kinds of lines belong to it though they hang beside it: the other blocks
of a message that is on it (one ``message.id``), and the results of its parallel calls, each of which follows its own call.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from coatcheck_client.errors import TranscriptError
from coatcheck_client.transcripts.transcript import Transcript, time_of

_ENVELOPES = frozenset({"user", "assistant", "system", "progress", "attachment", "summary", "file-history-snapshot"})


def is_record(record: Any) -> bool:
    """Whether this is a line of a Claude Code log."""
    if not isinstance(record, dict) or record.get("type") not in _ENVELOPES:
        return False
    return ("uuid" in record and "parentUuid" in record) or ("leafUuid" in record and record["type"] == "summary")


def from_records(records: Sequence[dict[str, Any]], warnings: Sequence[str] = ()) -> Transcript:
    """The main chain as Anthropic messages. Raises TranscriptError when no line of it holds a message."""
    notes = list(warnings)
    spoken = [record for record in records if _is_spoken(record)]
    main = [record for record in spoken if not record.get("isSidechain")]
    if not main:
        raise TranscriptError("the Claude Code log holds no message outside its sidechains")
    chain = _chain(records, main, notes)
    messages, used = _messages(chain, main)
    notes += _left_out(records, spoken, main, used)
    return Transcript(
        "anthropic",
        None,
        tuple({"role": m.role, "content": m.content} for m in messages),
        tuple(m.time for m in messages),
        "claude-code",
        tuple(notes),
    )


@dataclass(slots=True)
class _Draft:
    """A message that is being put together from its lines."""

    role: str
    content: Any
    time: datetime | None
    call_ids: list[str] = field(default_factory=list)

    def add(self, content: Any) -> None:
        self.content = [*_blocks(self.content), *_blocks(content)]


def _chain(records: Sequence[dict[str, Any]], main: Sequence[dict[str, Any]], notes: list[str]) -> list[dict[str, Any]]:
    """The lines from the root to the newest message, in order."""
    by_uuid: dict[str, dict[str, Any]] = {}
    place: dict[str, int] = {}
    for position, record in enumerate(records):
        uuid = record.get("uuid")
        if isinstance(uuid, str) and uuid not in by_uuid:
            by_uuid[uuid], place[uuid] = record, position
    chain: list[dict[str, Any]] = []
    seen: set[str] = set()
    current: dict[str, Any] | None = main[-1]
    while current is not None and current["uuid"] not in seen:
        seen.add(current["uuid"])
        chain.append(current)
        parent = current.get("parentUuid") or current.get("logicalParentUuid")
        following = by_uuid.get(parent) if parent else None
        if following is None and (parent or _is_boundary(current)):
            # The line that it follows is not in the file: what was written before it is the best there is.
            here = place[current["uuid"]]
            before = [r for r in main if place[r["uuid"]] < here and r["uuid"] not in seen]
            following = before[-1] if before else None
            if following is not None:
                notes.append("a line follows one that is not in the file; the line written before it was taken")
        current = following
    return chain[::-1]


def _messages(chain: Sequence[dict[str, Any]], main: Sequence[dict[str, Any]]) -> tuple[list[_Draft], set[str]]:
    """The chain's messages, and the uuids of all lines that went into them."""
    fragments: dict[str, list[dict[str, Any]]] = {}
    results: dict[str, dict[str, Any]] = {}
    place = {record["uuid"]: position for position, record in enumerate(main)}
    on_chain = {record["uuid"] for record in chain}
    for record in sorted(main, key=lambda r: r["uuid"] not in on_chain):
        for call_id in _ids(record["message"]["content"], "tool_result", "tool_use_id"):
            results.setdefault(call_id, record)
    for record in main:
        if record["type"] == "assistant" and _message_id(record):
            fragments.setdefault(_message_id(record), []).append(record)
    drafts: list[_Draft] = []
    used: set[str] = set()
    for record in chain:
        if record["uuid"] in used or not _is_spoken(record) or record.get("isSidechain"):
            continue
        lines = fragments.get(_message_id(record), [record]) if record["type"] == "assistant" else [record]
        draft = _joined(lines, used)
        drafts.append(draft)
        # Results stand right after their calls, in one message: Anthropic takes them nowhere else.
        answers = {place[results[call_id]["uuid"]] for call_id in draft.call_ids if call_id in results}
        lines = [main[position] for position in sorted(answers) if main[position]["uuid"] not in used]
        if lines:
            drafts.append(_joined(lines, used))
    return drafts, used


def _joined(lines: Sequence[dict[str, Any]], used: set[str]) -> _Draft:
    first = lines[0]
    draft = _Draft(first["message"]["role"], first["message"]["content"], time_of(first))
    for line in lines[1:]:
        draft.add(line["message"]["content"])
    used.update(line["uuid"] for line in lines)
    draft.call_ids = _ids(draft.content, "tool_use", "id")
    return draft


def _left_out(
    records: Sequence[dict[str, Any]], spoken: Sequence[dict[str, Any]], main: Sequence[dict[str, Any]], used: set[str]
) -> list[str]:
    kinds = Counter(str(record.get("type")) for record in records if not _is_spoken(record))
    notes = [f"{count} lines of type {kind} were left out" for kind, count in sorted(kinds.items())]
    if len(spoken) > len(main):
        notes.append(f"{len(spoken) - len(main)} lines of sidechains were left out")
    abandoned = sum(record["uuid"] not in used for record in main)
    if abandoned:
        notes.append(f"{abandoned} lines of abandoned branches were left out")
    return notes


def _is_spoken(record: dict[str, Any]) -> bool:
    message = record.get("message")
    return (
        record.get("type") in ("user", "assistant")
        and isinstance(record.get("uuid"), str)
        and isinstance(message, dict)
        and message.get("role") in ("user", "assistant")
        and isinstance(message.get("content"), str | list)
    )


def _is_boundary(record: dict[str, Any]) -> bool:
    return record.get("subtype") == "compact_boundary" or bool(record.get("isCompactSummary"))


def _message_id(record: dict[str, Any]) -> str:
    return str(record["message"].get("id") or "")


def _blocks(content: str | list[Any]) -> list[Any]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _ids(content: str | list[Any], kind: str, key: str) -> list[str]:
    return [str(b[key]) for b in _blocks(content) if isinstance(b, dict) and b.get("type") == kind and key in b]
