"""Labelled conversations, LoCoMo-shaped: dated sessions of two people's turns, and questions with their evidence turns.

LoCoMo: Maharana et al., ACL 2024. The data is not part of this project; its licence (CC BY-NC 4.0) allows evaluation only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pydantic import BaseModel, TypeAdapter, ValidationError

from coatcheck.domain.canonical import JsonValue

CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
_TURN_ID = re.compile(r"D\d+:\d+")
_SESSION = re.compile(r"session_(\d+)")


@dataclass(frozen=True, slots=True)
class Turn:
    """One utterance. ``at`` is its session's time plus its place, a minute a turn."""

    turn_id: str
    role: str
    text: str
    at: datetime

    def as_message(self) -> JsonValue:
        """As a chat message: the speaker's name is part of what was said."""
        return {"role": self.role, "content": self.text}


@dataclass(frozen=True, slots=True)
class LabelledQuestion:
    """A question and the ids of the turns that answer it; ``evidence`` may name turns that the file does not have."""

    text: str
    category: str
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Conversation:
    """All sessions of one pair of speakers, in order."""

    name: str
    sessions: tuple[tuple[Turn, ...], ...]
    questions: tuple[LabelledQuestion, ...]

    @property
    def turn_ids(self) -> frozenset[str]:
        return frozenset(turn.turn_id for session in self.sessions for turn in session)

    def windows(self, window_chars: int) -> Iterator[tuple[Turn, ...]]:
        """Whole sessions together, up to about ``window_chars`` characters; a short rest joins the window before it."""
        gathered: list[list[Turn]] = []
        chars = window_chars
        for session in self.sessions:
            if chars >= window_chars:
                gathered.append([])
                chars = 0
            gathered[-1] += session
            chars += sum(len(turn.text) for turn in session)
        if len(gathered) > 1 and chars < window_chars / 2:
            rest = gathered.pop()
            gathered[-1] += rest
        return (tuple(window) for window in gathered)


def read_conversations(path: Path) -> list[Conversation]:
    """Raises ValueError on a file of another shape; the message names the place, not the content."""
    try:
        samples = _SAMPLES.validate_json(path.read_bytes())
    except ValidationError as error:
        raise ValueError(
            f"{path.name} is not LoCoMo-shaped: {error.error_count()} faults, first at {error.errors()[0]['loc']}"
        ) from error
    return [_conversation(sample) for sample in samples]


class _Utterance(BaseModel):
    speaker: str
    dia_id: str
    text: str


class _Asked(BaseModel):
    question: str
    category: int
    evidence: list[str] = []


class _Sample(BaseModel):
    sample_id: str
    conversation: dict[str, list[_Utterance] | str]
    qa: list[_Asked]


_SAMPLES = TypeAdapter(list[_Sample])


def _conversation(sample: _Sample) -> Conversation:
    numbers = sorted(int(found[1]) for name in sample.conversation if (found := _SESSION.fullmatch(name)))
    return Conversation(
        sample.sample_id,
        tuple(_session(sample.conversation, number) for number in numbers),
        tuple(
            LabelledQuestion(asked.question, CATEGORIES.get(asked.category, str(asked.category)), evidence)
            for asked in sample.qa
            if (evidence := tuple(dict.fromkeys(turn_id for entry in asked.evidence for turn_id in _TURN_ID.findall(entry))))
        ),
    )


def _session(conversation: dict[str, list[_Utterance] | str], number: int) -> tuple[Turn, ...]:
    utterances, said_at = conversation[f"session_{number}"], conversation[f"session_{number}_date_time"]
    if isinstance(utterances, str) or not isinstance(said_at, str):
        raise ValueError(f"session_{number} is not LoCoMo-shaped")
    start = datetime.strptime(said_at, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
    first_speaker = conversation.get("speaker_a")
    return tuple(
        Turn(
            said.dia_id,
            "user" if said.speaker == first_speaker else "assistant",
            f"{said.speaker}: {said.text}",
            start + timedelta(minutes=place),
        )
        for place, said in enumerate(utterances)
    )
