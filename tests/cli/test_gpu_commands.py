"""``coatcheck gpu`` from outside: the article's model planned, its failed page, what does not fit, and what needs torch."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from coatcheck.cli.main import app
from coatcheck.domain.errors import GpuRefused, GpuUnsupported


def planned(*arguments: str) -> list[dict[str, float | str]]:
    done = CliRunner().invoke(app, ["gpu", "plan", "--json", *arguments])
    if done.exception is not None:
        raise done.exception
    found: list[dict[str, float | str]] = json.loads(done.stdout)
    return found


def test_the_article_s_model_is_planned_in_three_formats() -> None:
    bf16, fp8, nvfp4 = planned()

    assert [one["block_tokens"] for one in (bf16, fp8, nvfp4)] == [1_568, 3_136, 5_568]
    assert (nvfp4["page_bytes"], nvfp4["padding_bytes"], nvfp4["shortest_prefix_hit"]) == (3_207_168, 0, 5_568)
    assert bf16["times_first"] == 1.0
    assert 2.32 < float(nvfp4["times_first"]) < 3.56


def test_a_person_is_told_that_short_prompts_find_no_prefix() -> None:
    done = CliRunner().invoke(app, ["gpu", "plan", "--format", "nvfp4"])

    assert "5568" in done.stdout
    assert "whole blocks" in done.stdout


def test_a_page_that_the_state_does_not_fit_into_is_refused() -> None:
    done = CliRunner().invoke(app, ["gpu", "plan", "--format", "nvfp4", "--block-tokens", "3136"])

    assert isinstance(done.exception, GpuRefused)
    assert "1,806,336" in done.exception.detail


def test_what_is_no_format_is_refused_and_no_memory_holds_no_token() -> None:
    done = CliRunner().invoke(app, ["gpu", "plan", "--format", "int4"])

    assert isinstance(done.exception, GpuRefused)
    assert planned("--memory-gib", "0", "--linear-layers", "0")[0]["pool_tokens"] == 0


def test_a_model_is_planned_by_its_configuration_and_a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps({"num_hidden_layers": 2, "num_key_value_heads": 4, "head_dim": 128}))

    assert planned("--config", str(file), "--format", "fp8")[0]["bytes_per_token"] == 1_024
    for wrong in (tmp_path / "absent", tmp_path):
        assert isinstance(CliRunner().invoke(app, ["gpu", "plan", "--config", str(wrong)]).exception, GpuRefused)


@pytest.mark.skipif(find_spec("torch") is not None, reason="torch is installed")
@pytest.mark.parametrize("command", ["quantize", "audit"])
def test_a_checkpoint_is_quantised_and_audited_only_where_torch_is(tmp_path: Path, command: str) -> None:
    done = CliRunner().invoke(app, ["gpu", command, str(tmp_path), str(tmp_path / "fp8")])

    assert isinstance(done.exception, GpuUnsupported)
    assert "coatcheck[gpu]" in done.exception.detail


def budgeted(max_length: int, max_sequences: int, utilisation: float) -> tuple[int, dict[str, Any]]:
    """The article's device and, by what it says of its first launch, its model."""
    done = CliRunner().invoke(
        app,
        [
            "gpu", "budget", "--json", "--device-gib", "94.97", "--weights-gib", "83.24", "--cache-per-token", "29437",
            "--state-bytes", str(36 * 3_207_168), "--max-length", str(max_length), "--max-sequences", str(max_sequences),
            "--utilisation", str(utilisation),
        ],
    )  # fmt: skip
    found: dict[str, Any] = json.loads(done.stdout)
    return done.exit_code, found


def test_a_launch_that_fits_and_one_that_does_not_differ_by_their_exit_codes() -> None:
    fits, found = budgeted(131_072, 16, 0.92)
    fails, problems = budgeted(200_000, 32, 0.94)

    assert (fits, found["fits"], found["findings"]) == (0, True, [])
    assert (fails, problems["fits"], [one["problem"] for one in problems["findings"]]) == (1, False, ["margin"])


@pytest.mark.parametrize("size", ["inf", "1e300", "nan", "-1"])
def test_a_memory_that_no_machine_has_is_refused_as_usage(size: str) -> None:
    others = ["--weights-gib", "1", "--cache-per-token", "1", "--max-length", "1", "--max-sequences", "1"]

    done = [
        CliRunner().invoke(app, ["gpu", "plan", "--memory-gib", size]),
        CliRunner().invoke(app, ["gpu", "budget", "--device-gib", size, *others]),
    ]

    assert [one.exit_code for one in done] == [2, 2]


def test_a_configuration_without_an_end_is_refused() -> None:
    done = CliRunner().invoke(app, ["gpu", "plan", "--config", "/dev/zero"])

    assert isinstance(done.exception, GpuRefused)
