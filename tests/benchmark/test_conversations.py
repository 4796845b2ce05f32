"""Reading labelled conversations."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from benchmark.conversations import Conversation, read_conversations


def sample(turns_a_session: int = 3, sessions: int = 3) -> dict[str, object]:
    """One made conversation of Ann and Ben; every turn has forty letters."""
    conversation: dict[str, object] = {"speaker_a": "Ann", "speaker_b": "Ben"}
    for number in range(1, sessions + 1):
        conversation[f"session_{number}_date_time"] = f"1:{number:02d} pm on {number} May, 2023"
        conversation[f"session_{number}"] = [
            {"speaker": "Ben" if turn % 2 else "Ann", "dia_id": f"D{number}:{turn + 1}", "text": f"{number}.{turn} ".ljust(40, "x")}
            for turn in range(turns_a_session)
        ]
    questions = [
        {"question": "who?", "answer": "Ann", "evidence": ["D1:1; D2:1", "D1:1"], "category": 1},
        {"question": "never?", "evidence": [], "category": 5},
        {"question": "when?", "answer": 2022, "evidence": ["D3:2", "D"], "category": 2},
    ]
    return {"sample_id": "made-1", "conversation": conversation, "qa": questions}


def read(folder: Path, *samples: object) -> list[Conversation]:
    file = folder / "data.json"
    file.write_text(json.dumps(samples))
    return read_conversations(file)


def test_turns_carry_their_speaker_their_role_and_a_time_that_rises(tmp_path: Path) -> None:
    (conversation,) = read(tmp_path, sample())

    first, second = conversation.sessions[1][:2]
    assert (first.turn_id, first.role, first.text[:9]) == ("D2:1", "user", "Ann: 2.0 ")
    assert second.role == "assistant"
    assert first.at == datetime(2023, 5, 2, 13, 2, tzinfo=UTC)
    assert second.at > first.at


def test_evidence_is_taken_apart_and_questions_without_any_are_left_out(tmp_path: Path) -> None:
    (conversation,) = read(tmp_path, sample())

    assert [(q.text, q.category, q.evidence) for q in conversation.questions] == [
        ("who?", "multi-hop", ("D1:1", "D2:1")),
        ("when?", "temporal", ("D3:2",)),
    ]


def test_windows_hold_whole_sessions_in_order_and_a_short_rest_joins_the_one_before(tmp_path: Path) -> None:
    (conversation,) = read(tmp_path, sample(turns_a_session=3, sessions=9))

    windows = [[turn.turn_id for turn in window] for window in conversation.windows(500)]

    assert [len(window) for window in windows] == [12, 15]
    assert [turn for window in windows for turn in window] == [f"D{s}:{t}" for s in range(1, 10) for t in range(1, 4)]


def test_sessions_are_ordered_by_number_not_by_name(tmp_path: Path) -> None:
    (conversation,) = read(tmp_path, sample(turns_a_session=1, sessions=11))

    assert [session[0].turn_id for session in conversation.sessions] == [f"D{n}:1" for n in range(1, 12)]


def test_a_file_of_another_shape_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"data\.json is not LoCoMo-shaped"):
        read(tmp_path, {"sample_id": "x", "qa": []})
