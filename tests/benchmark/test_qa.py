"""The comparison, whole, through the product's routes; and what counts as found."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from benchmark import qa
from benchmark.corpus import Question
from benchmark.qa import Material

PORT = Question("port", "which port?", "50501", "port")
PASSWORD = Question("unknown", "what is the password?", None, "password")


def options(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    qa.add_arguments(parser)
    return parser.parse_args(arguments)


def test_a_value_counts_only_in_the_part_that_is_searched() -> None:
    material = Material("recall", PORT, "handoff says 50501\n\nrecalled: nothing", "recalled: nothing", False)

    assert not material.value_present
    assert replace(material, searched="grpc_port = 50501").value_present


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("Its password was never written down", False),
        ("Its password is kept in the vault", False),
        ("the password of the fax bridge", False),
        ("password: heron-quay-7", True),
        ("The password is heron", True),
    ],
)
def test_for_the_unanswerable_question_any_stated_password_counts(text: str, stated: bool) -> None:
    assert Material("recall", PASSWORD, text, text, True).value_present is stated


def test_the_comparison_runs_without_a_model_and_says_so() -> None:
    report = qa.run(options("--embedder", "hashing", "--seed", "3"))

    results = report.results
    assert (results["segments"], results["by_hash"], results["by_manifest"]) == (49, 49, 49)
    arms = results["arms"]
    assert isinstance(arms, dict)
    assert list(arms) == ["full", "handoff", "recall", "verbatim"]
    for arm in arms.values():
        assert isinstance(arm, dict)
        assert {"input_chars", "evidence_top5", "value_present"} <= arm.keys()
        assert "answers" not in arm
    full = arms["full"]
    assert isinstance(full, dict)
    assert (full["evidence_top5"], full["value_present"]) == (12, 11)
    assert any("retrieval part ran alone" in note for note in report.notes)


class Forgetful(BaseHTTPRequestHandler):
    """A model server that answers UNKNOWN to everything, and counts words as tokens."""

    def do_GET(self) -> None:
        self._answer({"data": [{"id": "forgetful"}]})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        words = len(body["messages"][1]["content"].split())
        self._answer({"choices": [{"message": {"content": "unknown."}}], "usage": {"prompt_tokens": words}})

    def log_message(self, format: str, *args: object) -> None:
        pass

    def _answer(self, body: object) -> None:
        raw = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)


@pytest.fixture
def endpoint() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Forgetful) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
        server.shutdown()
        thread.join()


def test_with_an_endpoint_the_arms_asked_for_are_answered_scored_and_counted_in_tokens(endpoint: str) -> None:
    report = qa.run(options("--embedder", "hashing", "--arms", "full", "handoff", "--endpoint", endpoint, "--repeat", "2"))

    arms = report.results["arms"]
    assert isinstance(arms, dict)
    assert list(arms) == ["full", "handoff"]
    assert "recall_input_share" not in report.results
    full, handoff = arms["full"], arms["handoff"]
    assert isinstance(full, dict)
    assert isinstance(handoff, dict)
    assert isinstance(full["answers"], dict)
    assert isinstance(handoff["answers"], dict)
    assert (full["answers"]["asked"], full["answers"]["correct"]) == (24, 2)
    assert int(str(full["answers"]["input_tokens"])) > 10 * int(str(handoff["answers"]["input_tokens"]))
    assert report.revisions["answering-model"].startswith("forgetful")
    assert report.notes == ()
