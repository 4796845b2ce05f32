"""The acceptance run against real HTTP servers: one that serves, and each way in which one fails."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from deploy.vllm.acceptance import rounds, watching
from deploy.vllm.acceptance.__main__ import main
from deploy.vllm.acceptance.rounds import Answer, Load, Round
from deploy.vllm.acceptance.verdict import findings
from deploy.vllm.acceptance.watching import Watched
from tests.deploy.model_server import ModelServer

TWO_DEVICES = "printf '100, 900\\n300, 700\\n'"


def run(server: ModelServer, folder: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    """Exit code and result of two rounds of four."""
    file = folder / "result.json"
    with server.running():
        code = main(
            [
                "--endpoint", server.url, "--rounds", "2", "--at-once", "4", "--limit", "5", "--every", "0.05",
                "--memory-command", "false", "--json", str(file), *arguments,
            ]
        )  # fmt: skip
    found: dict[str, Any] = json.loads(file.read_text("utf-8"))
    return code, found


def test_a_server_that_answers_everything_passes_and_its_requests_overlapped(tmp_path: Path) -> None:
    code, found = run(ModelServer(), tmp_path, "--memory-command", TWO_DEVICES)

    assert (code, found["passed"], found["findings"]) == (0, True, [])
    assert [one["answered"] for one in found["rounds"]] == [4, 4]
    assert [one["in_flight"] for one in found["rounds"]] == [4, 4]
    assert found["load"]["model"] == "tiny"
    assert found["memory"]["most_used_mib"] == {"0": 100, "1": 300}
    assert found["memory"]["least_free_mib"] == {"0": 900, "1": 700}
    assert found["memory"]["samples"] >= 3
    assert found["server"]["restarts"] == 0


@pytest.mark.parametrize(
    ("server", "said"),
    [
        (ModelServer(text="", wrong_from=7), "round 2: 1 of 4: an empty answer (finish reason stop)"),
        (ModelServer(text=" \n", wrong_from=4), "round 2: 4 of 4: an empty answer"),
        (ModelServer(text=None, finish_reason="length", wrong_from=4), "round 2: 4 of 4: an empty answer (finish reason length)"),
        (ModelServer(status=500, wrong_from=6), "round 2: 2 of 4: status 500"),
        (ModelServer(finish_reason=None), "no finish reason"),
        (ModelServer(body="<html>"), "no chat completion"),
        (ModelServer(body='{"choices": []}'), "no chat completion"),
        (ModelServer(body="[" * 100_000), "no chat completion"),
        (ModelServer(text="", finish_reason="\x1b[2J" + "x" * 1_000), f"(finish reason ?[2J{'x' * 36})"),
        (ModelServer(takes_s=30, wrong_from=7), "round 2: 1 of 4: no whole answer within 1 s"),
        (ModelServer(restarts_at=5), "the server was started 1 times more"),
        (ModelServer(dies_at=6), "its engine dead"),
    ],
    ids=[
        "one empty",
        "blank",
        "no text",
        "500",
        "no finish",
        "no JSON",
        "no choice",
        "deep",
        "speaks to the terminal",
        "hangs",
        "restarts",
        "engine dead",
    ],
)
def test_whatever_goes_wrong_fails_the_run_and_is_said(server: ModelServer, said: str, tmp_path: Path) -> None:
    code, found = run(server, tmp_path, "--limit", "1")

    assert (code, found["passed"]) == (1, False)
    assert any(said in finding for finding in found["findings"]), found["findings"]


def test_a_server_that_is_not_there_fails_the_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "result.json"
    server = ModelServer()
    with server.running():
        address = server.url

    code = main(["--endpoint", address, "--model", "tiny", "--rounds", "1", "--at-once", "2", "--json", str(file)])

    assert code == 1
    found = json.loads(file.read_text("utf-8"))
    assert "away" in " ".join(found["findings"])
    assert "the connection failed" in " ".join(found["findings"])
    assert "FAILED" in capsys.readouterr().out


def test_an_answer_is_read_to_a_bound_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "MOST_BYTES", 1_000)

    code, found = run(ModelServer(text="x" * 2_000), tmp_path)

    assert code == 1
    assert "round 1: 4 of 4: an answer of more than 1,000 bytes" in found["findings"]


def test_a_look_at_a_server_that_trickles_and_a_driver_that_hangs_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "HEALTH_LIMIT_S", 0.3)

    began = time.monotonic()
    code, found = run(ModelServer(trickles=True), tmp_path, "--memory-command", "sleep 60", "--container", "none-such")

    assert time.monotonic() - began < 20
    assert code == 0
    assert found["server"]["slow"] >= 2  # the first and the last; one under way ends with the rounds
    assert found["memory"]["samples"] == 0


@pytest.mark.parametrize("named", ["[]", '{"data": {}}', '{"data": [7]}', "[" * 900, "x" * 2_000, ""])
def test_an_endpoint_that_names_its_models_otherwise_ends_the_run_before_it_begins(
    named: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(rounds, "MOST_BYTES", 1_000)

    with ModelServer(models=named).running() as server:
        code = main(["--endpoint", server.url])

    assert code == 2
    assert "could not begin" in capsys.readouterr().err


@pytest.mark.parametrize(("option", "value"), [("--limit", "nan"), ("--limit", "0"), ("--every", "-1"), ("--temperature", "inf")])
def test_numbers_that_are_none_are_refused_as_usage(option: str, value: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--endpoint", "http://127.0.0.1:1/v1", option, value])

    assert ended.value.code == 2


def test_a_result_that_cannot_be_written_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with ModelServer(takes_s=0.01).running() as server:
        code = main(
            ["--endpoint", server.url, "--rounds", "1", "--at-once", "1", "--memory-command", "false", "--json", str(tmp_path)]
        )

    assert code == 2
    assert "could not be written" in capsys.readouterr().err


def test_what_was_not_seen_is_said_and_not_taken_for_fine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = run(ModelServer(tells_its_start=False), tmp_path)

    assert code == 0
    assert found["server"]["restarts"] is None
    assert found["memory"]["samples"] == 0
    said = capsys.readouterr().out
    assert "restarts: not counted" in said
    assert "device memory: not sampled" in said


def test_requests_that_did_not_overlap_are_no_proof() -> None:
    load = Load("tiny", rounds=1, at_once=2, max_tokens=1, temperature=0.0, limit_s=1.0)
    one_after_the_other = Round(1, (Answer(0.0, 1.0, "stop", 9, None), Answer(1.0, 2.0, "stop", 9, None)))
    together = Round(1, (Answer(0.0, 1.0, "stop", 9, None), Answer(0.9, 2.0, "stop", 9, None)))

    assert "1 of 2 requests overlapped" in findings(load, [one_after_the_other], Watched())[0]
    assert findings(load, [together], Watched()) == []


def test_an_endpoint_that_names_no_model_is_told_from_a_failed_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--endpoint", "http://127.0.0.1:1/v1"]) == 2
    assert "could not begin" in capsys.readouterr().err
