"""What a report says, and what it leaves out."""

from __future__ import annotations

import json
import socket
from io import StringIO
from pathlib import Path

from rich.console import Console

from benchmark.report import Report, Table, json_text, rounded, show


def report() -> Report:
    table = Table("Times", ("what", "ms", "of"), (("ours", 1.23456, 2_000), ("theirs", None, None)))
    return Report(
        "made", {"ours": {"ms": 1.2}}, {"rounds": 3}, {"sha256": "ab"}, {"embedder": "bge"}, (table,), None, ("read [me]",)
    )


def test_the_json_names_environment_corpus_settings_revisions_and_results() -> None:
    written = json.loads(json_text(report()))

    assert written["results"] == {"ours": {"ms": 1.2}}
    assert written["settings"] == {"rounds": 3}
    assert written["corpus"] == {"sha256": "ab"}
    assert written["revisions"] == {"embedder": "bge"}
    assert {"python", "cpus", "packages", "measured_at"} <= set(written["environment"])


def test_the_json_names_neither_this_machine_nor_a_path_of_it() -> None:
    text = json_text(report())

    assert socket.gethostname() not in text
    assert str(Path.cwd()) not in text


def test_what_was_not_measured_is_absent_and_an_empty_cell() -> None:
    printed = StringIO()

    show(report(), Console(file=printed, width=100))

    assert rounded({"a": 0.123456, "b": None}) == {"a": 0.1235}
    assert "1.235" in printed.getvalue()
    assert "None" not in printed.getvalue()
    assert "read [me]" in printed.getvalue()
