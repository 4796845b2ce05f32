"""Evidence recall, whole, through the product's routes, on a made conversation."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from benchmark import recall

TOPICS = ("kayak", "violin", "orchard", "telescope", "pottery", "marathon", "sourdough", "glacier", "chess", "lighthouse")


def made_conversation(name: str) -> dict[str, object]:
    """Ten sessions of four turns; the third turn of each tells of its topic, and one question asks for it."""
    conversation: dict[str, object] = {"speaker_a": "Ann", "speaker_b": "Ben"}
    questions = []
    for number, topic in enumerate(TOPICS, start=1):
        said = (
            "Good to hear from you again, how was the week over there?",
            "Busy as ever, and the weather did not help at all. And yours?",
            f"I finally took up the {topic} that my aunt left me in {name}.",
            "What a lovely idea, you must tell me all about it some day.",
        )
        conversation[f"session_{number}_date_time"] = f"3:15 pm on {number} June, 2023"
        conversation[f"session_{number}"] = [
            {"speaker": "Ben" if turn % 2 else "Ann", "dia_id": f"D{number}:{turn + 1}", "text": text}
            for turn, text in enumerate(said)
        ]
        questions.append({"question": f"Who took up the {topic}?", "evidence": [f"D{number}:3"], "category": 1 + number % 2})
    questions.append({"question": "Is there more?", "evidence": ["D99:1"], "category": 4})
    return {"sample_id": name, "conversation": conversation, "qa": questions}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    file = tmp_path / "conversations.json"
    file.write_text(json.dumps([made_conversation("Oslo"), made_conversation("Porto")]))
    return file


def options(data: Path, *arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    recall.add_arguments(parser)
    return parser.parse_args(["--data", str(data), "--tuning", "1", *arguments])


def test_every_leg_is_measured_and_the_halves_stand_apart(data: Path) -> None:
    report = recall.run(options(data, "--embedder", "hashing"))

    results = report.results
    assert results["turns"] == 80
    assert results["segments"] == 2 * (3 + len(TOPICS))  # equal turns of a session are one segment
    assert results["questions_with_unknown_evidence"] == 2
    for arm in ("dense", "lexical", "fused"):
        figures = results[arm]
        assert isinstance(figures, dict)
        assert figures["questions"] == 22
        assert {"recall@1", "recall@5", "recall@10", "ndcg@10", "latency_p50_ms", "latency_p95_ms"} <= figures.keys()
        assert isinstance(figures["tuning"], dict)
        assert isinstance(figures["held_out"], dict)
        assert figures["tuning"]["questions"] == figures["held_out"]["questions"] == 11
    assert isinstance(results["lexical"], dict)
    assert results["lexical"]["recall@5"] == pytest.approx(20 / 22, abs=1e-4)


def test_a_leg_that_does_not_run_is_absent_and_named(data: Path) -> None:
    report = recall.run(options(data, "--embedder", "none"))

    assert "lexical" in report.results
    assert "dense" not in report.results
    assert "fused" not in report.results
    assert any(note.startswith("dense: not measured") for note in report.notes)
