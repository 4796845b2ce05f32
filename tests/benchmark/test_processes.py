"""Watching processes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmark.processes import cpu_s, imported_by, peak_mib, reset_peak, resident_mib, seconds_of


def test_the_imports_of_a_command_are_named(tmp_path: Path) -> None:
    modules = imported_by(["-c", "import json.decoder"], tmp_path)

    assert {"json", "json.decoder"} <= modules
    assert "sqlite3" not in modules


def test_a_command_that_fails_gives_no_time(tmp_path: Path) -> None:
    with pytest.raises(subprocess.CalledProcessError):
        seconds_of(["-c", "raise SystemExit(3)"], tmp_path)


def test_a_peak_is_forgotten_when_reset() -> None:
    holder = "import sys; block = bytearray(80 << 20); del block; print('ready', flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", holder], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()

        before = peak_mib(process.pid)
        reset_peak(process.pid)
        after = peak_mib(process.pid)
        now = resident_mib(process.pid)
        assert process.stdin is not None
        process.stdin.close()

    assert before > after + 60
    assert after >= now > 1


def test_processor_time_counts_work_and_not_waiting() -> None:
    before, worked_before = cpu_s(os.getpid()), time.process_time()
    time.sleep(0.3)
    while time.process_time() - worked_before < 0.3:
        pass

    assert 0.2 < cpu_s(os.getpid()) - before < 0.45
