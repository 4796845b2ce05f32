"""Codex rollouts (JSON lines): OpenAI Responses items in envelopes of a timestamp, a type and a payload."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from coatcheck_client.errors import TranscriptError
from coatcheck_client.transcripts.transcript import Transcript, time_of

_ENVELOPES = frozenset({"session_meta", "turn_context", "response_item", "event_msg", "compacted"})


def is_record(record: Any) -> bool:
    """Whether this is a line of a Codex rollout."""
    return isinstance(record, dict) and record.get("type") in _ENVELOPES and isinstance(record.get("payload"), dict)


def from_records(records: Sequence[dict[str, Any]], warnings: Sequence[str] = ()) -> Transcript:
    """The response items in their order; everything else is counted and left out. Raises TranscriptError."""
    items = [record for record in records if record.get("type") == "response_item" and isinstance(record.get("payload"), dict)]
    if not items:
        raise TranscriptError("the rollout holds no response items")
    others = Counter(str(record.get("type")) for record in records if record.get("type") != "response_item")
    notes = [f"{count} lines of type {kind} were left out" for kind, count in sorted(others.items())]
    return Transcript(
        "openai-responses",
        None,
        tuple(record["payload"] for record in items),
        tuple(time_of(record) for record in items),
        "codex",
        (*warnings, *notes),
    )
