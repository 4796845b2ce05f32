"""What a served process does by itself once it is ready."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from tests.faults.served import service

LOADED_WITHIN_S = 30


@pytest.mark.skipif(sys.platform != "linux", reason="what a process has loaded is read from /proc")
def test_a_model_is_loaded_before_anybody_asks() -> None:
    with service(COATCHECK_RERANKER="auto") as one:
        process = one.begin()
        mapped = Path(f"/proc/{process.pid}/maps")

        gives_up = time.monotonic() + LOADED_WITHIN_S
        while "onnxruntime" not in mapped.read_text() and time.monotonic() < gives_up:
            assert process.poll() is None, one.said()
            time.sleep(0.05)

        assert "onnxruntime" in mapped.read_text()
