"""What a served process does by itself once it is ready."""

from __future__ import annotations

import socket
import sys
import time
from pathlib import Path

import pytest

from tests.cli.serving import Machine
from tests.faults.served import service
from tests.folders import open_folder

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


@pytest.mark.accept
def test_a_port_that_is_taken_is_named_with_what_to_do_and_nothing_is_left_running() -> None:
    with open_folder() as folder, socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

        done = Machine(folder / "data").run("serve", "--embedded", "--port", str(port))

        assert done.code == 1
        assert f"coatcheck: Nothing can be served on 127.0.0.1:{port}: another process listens there. Name another" in done.err
        assert not (folder / "data" / "run.json").exists()
