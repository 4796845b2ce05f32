"""The environment that holds vLLM for the CPU: asked by scripts that run in it, and servers that it runs."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

ROOT = Path(__file__).parents[2]
ASKED = Path(__file__).parent / "asked"
BIN = Path(os.environ.get("COATCHECK_TEST_VLLM", ROOT / ".venv-vllm")) / "bin"
ASK_LIMIT_S = 600.0
START_LIMIT_S = 600.0
STOP_LIMIT_S = 30.0
needs_vllm = [
    pytest.mark.accept,
    pytest.mark.skipif(not (BIN / "vllm").exists(), reason="no vLLM: make setup-vllm (about 3.1 GB, some minutes)"),
]


@dataclass(frozen=True, slots=True)
class Serving:
    """A server that is ready, and where its log is."""

    url: str
    log: Path

    def lines(self, *words: str) -> list[str]:
        """Of the log, those that hold all of these."""
        return [line for line in self.log.read_text("utf-8", "replace").splitlines() if all(word in line for word in words)]


def ask(script: str, *arguments: str, plugins: str = "coatcheck") -> Any:
    """What a script prints last, as JSON. It runs in vLLM's environment, with this source tree."""
    command = [str(BIN / "python"), str(ASKED / script), *arguments]
    done = subprocess.run(command, env=_environment(plugins), capture_output=True, text=True, timeout=ASK_LIMIT_S, check=False)
    assert done.returncode == 0, done.stderr[-4_000:]
    return json.loads(done.stdout.splitlines()[-1])


@contextmanager
def serving(model: Path, log: Path, *options: str, plugins: str = "coatcheck") -> Iterator[Serving]:
    """``deploy/vllm/serve`` of this folder on the CPU, ready; it and its processes are gone afterwards."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        str(ROOT / "deploy/vllm/serve"), str(model), "--host", "127.0.0.1", "--port", str(port), "--served-model-name", "tiny",
        "--enforce-eager", "--dtype", "bfloat16", *options,
    ]  # fmt: skip
    with log.open("wb") as out:
        process = subprocess.Popen(command, env=_environment(plugins), stdout=out, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            _wait_until_ready(process, port, log)
            yield Serving(f"http://127.0.0.1:{port}/v1", log)
        finally:
            _stop(process)


def chat(server: Serving, text: str, **more: object) -> Any:
    """One chat completion of 16 tokens at temperature zero, or as told."""
    body = {"model": "tiny", "messages": [{"role": "user", "content": text}], "max_tokens": 16, "temperature": 0, **more}
    answer = httpx.post(f"{server.url}/chat/completions", json=body, timeout=120, trust_env=False)
    assert answer.status_code == httpx.codes.OK, answer.text
    return answer.json()


def _environment(plugins: str) -> dict[str, str]:
    own = {
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": f"{ROOT / 'service'}{os.pathsep}{ROOT}",
        "VLLM_PLUGINS": plugins,
        "HF_HUB_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "OMP_NUM_THREADS": "1",
    }
    return {**os.environ, **own}


def _wait_until_ready(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    began = time.monotonic()
    while time.monotonic() - began < START_LIMIT_S:
        if process.poll() is not None:
            break
        try:
            if httpx.get(f"http://127.0.0.1:{port}/health", timeout=5, trust_env=False).status_code == httpx.codes.OK:
                return
        except httpx.HTTPError:
            pass
        time.sleep(0.5)
    pytest.fail(f"vllm serve is not ready:\n{log.read_text('utf-8', 'replace')[-4_000:]}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    """The server's whole session: its engine and workers are processes of their own."""
    for how in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, how)
        except ProcessLookupError:
            break
        try:
            process.wait(STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            continue
    process.wait(STOP_LIMIT_S)
