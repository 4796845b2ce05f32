"""A tiny random model, and a hybrid that is a configuration alone, served by a real vLLM on the CPU with the plugin."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from coatcheck.gpu.nvfp4 import flash_next
from coatcheck.gpu.nvfp4.planner import KvFormat
from deploy.vllm.acceptance.__main__ import main as accept
from tests.vllm.environment import Serving, ask, needs_vllm, serving

pytestmark = needs_vllm
PARTS = ("ple-loading", "expert-routes", "expert-workspaces", "page-plan")
PROCESSES = ("APIServer", "EngineCore", "Worker")


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("models")
    written: dict[str, str] = ask("tiny_models.py", str(folder))
    return {name: Path(path) for name, path in written.items()}


@pytest.fixture(scope="module")
def llama(models: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    log = tmp_path_factory.mktemp("served") / "llama.log"
    with serving(models["llama"], log, "--max-model-len", "2048", "--max-num-seqs", "16") as server:
        yield server


def chat(server: Serving, text: str, **more: object) -> Any:
    body = {"model": "tiny", "messages": [{"role": "user", "content": text}], "max_tokens": 16, "temperature": 0, **more}
    answer = httpx.post(f"{server.url}/chat/completions", json=body, timeout=120, trust_env=False)
    assert answer.status_code == httpx.codes.OK, answer.text
    return answer.json()


def test_the_tiny_model_answers_with_the_plugin_in_every_process(llama: Serving) -> None:
    answer = chat(llama, "Which port does staging use?")

    assert answer["choices"][0]["message"]["content"]
    assert answer["usage"]["completion_tokens"] == 16
    for process in PROCESSES:
        for part in PARTS:
            armed = [line for line in llama.lines(process, f"coatcheck {part}:") if "blocks of" not in line]
            assert armed, f"{process} says nothing of {part}"


def test_each_process_says_each_part_once_when_it_is_armed(llama: Serving) -> None:
    said = [re.sub(r"^.*?(\(\w+ pid=\d+\)).*?(coatcheck [\w-]+:.*)$", r"\1 \2", line) for line in llama.lines("coatcheck ")]

    assert len(said) == len(set(said))


def test_the_acceptance_run_passes_against_it(llama: Serving, tmp_path: Path) -> None:
    file = tmp_path / "result.json"

    code = accept(["--endpoint", llama.url, "--max-tokens", "32", "--limit", "120", "--json", str(file)])

    found = json.loads(file.read_text("utf-8"))
    assert (code, found["findings"]) == (0, [])
    assert [(one["answered"], one["in_flight"]) for one in found["rounds"]] == [(16, 16)] * 3
    assert found["server"]["away"] == 0


def test_a_hybrid_that_is_a_configuration_alone_gets_the_block_that_our_planner_says(
    models: dict[str, Path], tmp_path: Path
) -> None:
    """FP8 keys and values: the CPU has no NVFP4 cache."""
    options = ("--load-format", "dummy", "--kv-cache-dtype", "fp8", "--block-size", "32", "--max-model-len", "8192")
    expected = flash_next.planned(KvFormat.FP8).block_tokens[0]

    with serving(models["hybrid"], tmp_path / "hybrid.log", *options) as server:
        answer = chat(server, "Which port does staging use?", max_tokens=4)

    assert answer["usage"]["completion_tokens"] == 4
    assert server.lines(f"Setting attention block size to {expected} tokens")
    told = server.lines("coatcheck page-plan: blocks of")
    assert told
    assert f"blocks of {expected:,} tokens in fp8 (the least that holds a state: {expected:,})" in told[0]
