"""A tiny random model, served by a real vLLM on the CPU with the plugin in each of its processes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.vllm.acceptance.__main__ import main as accept
from tests.vllm.environment import Serving, chat, needs_vllm, serving

pytestmark = needs_vllm
PARTS = ("ple-loading", "expert-routes", "expert-workspaces", "nvfp4-cache", "page-plan")
PROCESSES = ("EngineCore", "Worker")


@pytest.fixture(scope="module")
def llama(models: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    log = tmp_path_factory.mktemp("served") / "llama.log"
    with serving(models["llama"], log, "--max-model-len", "2048", "--kv-cache-dtype", "auto") as server:
        yield server


def test_the_tiny_model_answers_with_the_plugin_in_every_process(llama: Serving) -> None:
    answer = chat(llama, "Which port does staging use?")

    assert answer["choices"][0]["message"]["content"]
    assert answer["usage"]["completion_tokens"] == 16
    for part in PARTS:
        said = [line for line in llama.lines(f"coatcheck {part}:") if "blocks of" not in line]
        # The API server's come before it has a log, and without the name that it gives its lines.
        assert [line for line in said if line.startswith("coatcheck ")], f"the API server says nothing of {part}"
        for process in PROCESSES:
            assert [line for line in said if process in line], f"{process} says nothing of {part}"


def test_each_process_says_each_part_once_when_it_is_armed(llama: Serving) -> None:
    before_the_log = [line for line in llama.lines("coatcheck ") if line.startswith("coatcheck ")]
    said = [re.findall(r"pid=(\d+)\).*(coatcheck [\w-]+:.*)$", line) for line in llama.lines("pid=", "coatcheck ")]

    assert len(before_the_log) == len(set(before_the_log)) == len(PARTS)
    assert len(said) >= len(PROCESSES) * len(PARTS)
    assert len(said) == len({tuple(line) for line in said})


def test_the_acceptance_run_passes_against_it(llama: Serving, tmp_path: Path) -> None:
    file = tmp_path / "result.json"

    code = accept(["--endpoint", llama.url, "--max-tokens", "32", "--limit", "120", "--json", str(file)])

    found = json.loads(file.read_text("utf-8"))
    assert (code, found["findings"]) == (0, [])
    assert [(one["answered"], one["in_flight"]) for one in found["rounds"]] == [(16, 16)] * 3
    assert found["server"]["away"] == 0
