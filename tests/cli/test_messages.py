"""What a command says when something is wrong, or when it waits: one sentence, once, with what to do."""

from __future__ import annotations

import contextlib
import json
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import pytest
from typer.testing import CliRunner

from coatcheck.cli import connection, output, sessions
from coatcheck.cli.failures import failure_text
from coatcheck.cli.main import app
from coatcheck_client.errors import TranscriptError, problem_error
from coatcheck_client.transcripts import parse_transcript
from coatcheck_client.wire import Problem, SessionOut
from tests.cli.serving import Machine

URN = "urn:coatcheck:problem:"


def problem(slug: str, title: str, detail: str, *, retryable: bool = False) -> Problem:
    return Problem(type=URN + slug, title=title, status=400, detail=detail, instance="urn:uuid:0", retryable=retryable)


@pytest.mark.parametrize(
    ("detail", "said"),
    [
        ("One message is larger than this service takes.", "One message is larger than this service takes."),
        ("/query must have more.", "The request does not fit the contract: /query must have more."),
        ("", "The request does not fit the contract"),
    ],
)
def test_a_detail_that_is_a_sentence_is_said_without_its_title(detail: str, said: str) -> None:
    error = problem_error(problem("invalid-request", "The request does not fit the contract", detail))

    assert failure_text(error) == said


@pytest.mark.parametrize(
    ("url", "step"),
    [
        ("https://proxy.test/memory", "COATCHECK_URL has the path /memory"),
        ("https://named.test/", "a name means a session of your own"),
        ("", "a name means a session of your own"),
    ],
)
def test_what_is_not_found_below_a_path_may_be_the_path(monkeypatch: pytest.MonkeyPatch, url: str, step: str) -> None:
    monkeypatch.setenv("COATCHECK_URL", url)

    said = failure_text(problem_error(problem("not-found", "There is no such thing", "There is no such thing.")))

    assert said is not None
    assert f"({step}" in said


def test_whoever_waits_is_told_why_and_a_short_wait_is_none_to_speak_of(capsys: pytest.CaptureFixture[str]) -> None:
    told = connection.retries().told
    assert told is not None

    told(problem("storage-full", "The service has no room left", "There is too little disk left.", retryable=True), 15.0)
    told(problem("overloaded", "The service is busy", "The service is busy", retryable=True), 1.0)

    assert capsys.readouterr().err == "coatcheck: There is too little disk left; again in 15 s\n"


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"role": "alien", "content": "x"}, "an object of role 'alien'"),
        ({"type": "odd", "content": "x"}, "an object of type 'odd'"),
        ({"content": "x"}, "an object of neither type nor role"),
        ("x", "a string"),
    ],
)
def test_an_entry_that_is_no_message_is_described_by_what_would_have_made_it_one(entry: object, said: str) -> None:
    with pytest.raises(TranscriptError, match=said):
        parse_transcript(json.dumps([{"role": "user", "content": "hello"}, entry]).encode())


@pytest.mark.parametrize(
    ("values", "ended_by", "said"),
    [
        ([], None, []),
        ([1, {"a": 2}], None, [1, {"a": 2}]),
        ([1, {"a": 2}], KeyboardInterrupt, [1, {"a": 2}]),
        ([], ValueError, None),
    ],
)
def test_a_list_is_whole_however_it_ends_and_none_where_nothing_was_done(
    capsys: pytest.CaptureFixture[str], values: list[object], ended_by: type[BaseException] | None, said: list[object] | None
) -> None:
    shown = []

    with contextlib.suppress(KeyboardInterrupt, ValueError), output.json_list() as add:
        for value in values:
            add(value)
            shown.append(capsys.readouterr().out)
        if ended_by is not None:
            raise ended_by

    text = "".join(shown) + capsys.readouterr().out
    assert (json.loads(text) if text else None) == said
    assert [json.loads(piece.lstrip("[,\n")) for piece in shown] == values  # each as soon as it was there


def test_an_export_into_a_folder_that_is_not_there_names_the_folder(tmp_path: Path) -> None:
    said = CliRunner().invoke(app, ["export", "day-1", "-o", str(tmp_path / "gone" / "out.ndjson")])

    assert said.exit_code == 2
    assert f"there is no folder {tmp_path / 'gone'}" in " ".join(said.output.split())


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (f"principals change {UUID(int=1)}", "give --name, --role"),
        ("principals create ada --role admin", "Invalid value for '--role'"),
        ("delegations create agent --operation recall --door http", "Invalid value for '--door'"),
    ],
)
def test_a_mistake_in_an_option_is_told_by_the_name_that_was_typed(command: str, said: str) -> None:
    done = CliRunner().invoke(app, command.split())

    assert done.exit_code == 2
    assert said in " ".join(done.output.split())


@pytest.mark.parametrize(
    ("visibility", "said"),
    [("conversation", "participants"), ("personal", "participants (of a conversation, which this is not now)")],
)
def test_a_session_is_described_with_those_who_take_part_and_whether_that_counts(
    capsys: pytest.CaptureFixture[str], visibility: str, said: str
) -> None:
    at = datetime(2026, 11, 30, 20, 15, tzinfo=UTC)
    owner, other = UUID(int=1), UUID(int=2)

    sessions.describe(
        SessionOut(
            session_id=UUID(int=3),
            name="day-1",
            owner_id=owner,
            visibility=visibility,
            participants=[other],
            created_at=at,
            manifests=1,
            segments=2,
        )
    )

    assert capsys.readouterr().out.splitlines() == [
        f"day-1  {UUID(int=3)}",
        f"{visibility}, owner {owner}; 1 manifest, 2 segments; since 2026-11-30T20:15:00Z",
        f"{said}: {other}",
    ]


def test_a_window_that_nobody_acknowledged_is_named_with_how_to_go_on(tmp_path: Path) -> None:
    file = tmp_path / "day-1.json"
    file.write_text(json.dumps([{"role": "user", "content": "word " * 800}]), "utf-8")
    nobody = {"COATCHECK_URL": "http://127.0.0.1:1", "COATCHECK_API_KEY": "key"}

    done = Machine(tmp_path / "data").here("compact", str(file), **nobody)

    assert done.code == 1
    first, second = done.err.splitlines()
    assert first == "coatcheck: window 1 of 1, messages 0 to 0: not acknowledged; the same command again goes on from here"
    assert "did not answer" in second
