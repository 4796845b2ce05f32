"""The planner's stages, measured on a small window."""

from __future__ import annotations

from benchmark.compaction import measure_stages, segment_texts
from benchmark.corpus import diagnostics_window
from coatcheck.compaction.redaction.redactor import Redactor


def test_the_texts_to_encode_are_those_of_the_segments_calls_included() -> None:
    messages = diagnostics_window(1)

    texts = segment_texts(messages, Redactor())

    results = [m["content"] for m in messages if isinstance(m, dict) and m["role"] == "tool"]
    assert len(texts) == 48
    assert set(map(str, results)) <= set(texts)
    assert '{"record":0}' in texts


def test_every_stage_is_timed_against_the_floor() -> None:
    stages = measure_stages(diagnostics_window(1), rounds=1)

    assert stages.segments == 48
    assert stages.size_bytes > 56_443
    assert set(stages.seconds) == {
        "floor", "window checks", "redaction", "redaction and parts", "segmentation", "protection", "whole plan"
    }  # fmt: skip
    assert stages.seconds["whole plan"] > stages.seconds["floor"]
