"""What every command shares: quick help, exit codes, output that no terminal can break."""

from __future__ import annotations

import importlib.metadata
import io
import json
import os
import resource
import subprocess
import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path
from uuid import UUID

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from coatcheck.cli import output
from coatcheck.cli.failures import failure_text
from coatcheck.cli.main import app
from coatcheck.domain.errors import FieldError, InvalidRequest

COMMANDS = {
    "serve", "demo", "cache", "compact", "recall", "show", "window", "scan", "repair", "reconcile", "redact", "keys", "tenants",
    "sessions", "principals", "teams", "issuers", "delegations", "audit",
    "export", "import", "migrate", "restore", "models", "gpu", "doctor", "mcp",
}  # fmt: skip
GROUPS = {
    "keys": {"create", "list", "revoke", "rotate", "rotate-root"},
    "tenants": {"create", "list", "limits", "delete"},
    "sessions": {"list", "show", "delete", "visibility", "retention"},
    "cache": {"stats", "purge"},
    "principals": {"create", "list", "change", "deactivate", "activate"},
    "teams": {"create", "list", "members", "join", "leave", "delete"},
    "issuers": {"create", "list", "delete"},
    "delegations": {"create", "list", "revoke"},
    "gpu": {"status", "audit", "budget", "compile", "plan", "plugin", "quantize"},
    "models": {"status", "warm", "list", "pull", "verify"},
}


def run(*arguments: str, environment: dict[str, str] | None = None, encoding: str = "utf-8") -> subprocess.CompletedProcess[bytes]:
    """A command in a process of its own, without this process's settings."""
    names = {name: value for name, value in os.environ.items() if not name.startswith("COATCHECK_")}
    return subprocess.run(
        [sys.executable, "-c", "from coatcheck.cli import main; main()", *arguments],
        capture_output=True,
        env={**names, "PYTHONIOENCODING": encoding, **(environment or {})},
        timeout=120,
        check=False,
    )


def leaves() -> list[list[str]]:
    return [[c] for c in sorted(COMMANDS - set(GROUPS))] + [[g, c] for g, cs in GROUPS.items() for c in sorted(cs)]


def test_every_command_of_the_contract_is_there() -> None:
    root = get_command(app)

    assert set(root.commands) == COMMANDS  # type: ignore[attr-defined]
    for group, commands in GROUPS.items():
        assert set(root.commands[group].commands) == commands  # type: ignore[attr-defined]


@pytest.mark.parametrize("command", leaves(), ids=" ".join)
def test_every_command_takes_json_and_explains_itself(command: list[str]) -> None:
    shown = CliRunner().invoke(app, [*command, "--help"])

    assert shown.exit_code == 0
    assert "--json" in shown.output


def test_help_imports_nothing_heavy_and_is_quick() -> None:
    code = (
        "import sys\nfrom coatcheck.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print([m for m in ('fastapi', 'sqlalchemy', 'numpy', 'httpx', 'pydantic', 'rich', 'uvicorn') if m in sys.modules])"
    )
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, "-c", code, "--help"], capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)

    assert done.stdout.splitlines()[-1] == "[]"
    # Half a second by itself. Of the processor: the tests' machine is shared.
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 2


def test_no_arguments_is_usage() -> None:
    assert run().returncode == 2


@pytest.mark.parametrize(
    "arguments",
    [["nonsense"], ["compact"], ["compact", "/no/such/file"], ["window", "no-uuid"], ["recall", "x", "--top-k", "0"], ["redact"]],
)
def test_a_wrong_use_exits_with_2(arguments: list[str]) -> None:
    assert run(*arguments).returncode == 2


def test_a_file_of_no_known_shape_is_a_failure_in_one_line(tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    file.write_text('{"a": 1}', "utf-8")

    done = run("compact", str(file))

    assert done.returncode == 1
    assert done.stderr.decode().splitlines() == [
        f"coatcheck: {file}: no list of messages under messages, history, input; the keys are: a "
        "(`coatcheck compact --help` says what is read)"
    ]


def test_a_service_that_is_not_there_is_a_failure_in_one_line() -> None:
    done = run("recall", "x", environment={"COATCHECK_URL": "http://me:word@127.0.0.1:9", "COATCHECK_API_KEY": "k"})

    assert done.returncode == 1
    (line,) = done.stderr.decode().splitlines()
    assert line.startswith("coatcheck: the service at http://127.0.0.1:9 did not answer: ")
    assert line.endswith("is it running, and is this its address?")


def test_rules_that_would_do_nothing_are_refused_in_one_line(tmp_path: Path) -> None:
    rules = tmp_path / "mine.yml"
    rules.write_text("rules: []")

    done = run("recall", "x", environment={"COATCHECK_DATA_DIR": str(tmp_path / "data"), "COATCHECK_REDACTION_RULES": str(rules)})

    assert done.returncode == 1
    assert done.stderr.decode().splitlines() == [f"coatcheck: COATCHECK_REDACTION_RULES: {rules} holds no list of rules."]


def test_an_unknown_setting_is_named_before_anything_starts(tmp_path: Path) -> None:
    done = run("recall", "x", environment={"COATCHECK_QUUXFRED": "1", "COATCHECK_DATADIR": str(tmp_path)})

    assert done.returncode == 1
    assert done.stderr.decode() == "coatcheck: Unknown settings: COATCHECK_DATADIR (COATCHECK_DATA_DIR?), COATCHECK_QUUXFRED.\n"


def test_a_data_directory_that_cannot_be_used_is_named_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")

    done = run("recall", "x", environment={"COATCHECK_DATA_DIR": str(tmp_path / "file" / "data")})

    assert done.returncode == 1
    assert done.stderr.decode().splitlines() == [
        f"coatcheck: The data directory {tmp_path}/file/data cannot be used: Not a directory. "
        "Name a folder that this user may write to with COATCHECK_DATA_DIR."
    ]


def test_a_service_that_is_told_of_no_storage_names_both_choices(tmp_path: Path) -> None:
    done = run("serve", environment={"COATCHECK_DATA_DIR": str(tmp_path / "data")})

    assert done.returncode == 1
    assert b"--embedded" in done.stderr
    assert b"COATCHECK_DATABASE_URL" in done.stderr


def test_what_comes_from_stdin_needs_a_name() -> None:
    done = run("compact", "-")

    assert done.returncode == 2
    assert b"--session" in done.stderr


def test_an_error_of_the_file_system_names_the_file(tmp_path: Path) -> None:
    error = FileNotFoundError(2, "No such file or directory", str(tmp_path / "gone"))

    assert failure_text(error) == f"No such file or directory: {tmp_path}/gone"
    assert failure_text(KeyError("ours")) is None


def test_a_place_is_named_once_and_further_places_have_their_lines() -> None:
    errors = [FieldError("/query", "is required"), FieldError("/top_k", "must be at most 50")]

    said = failure_text(InvalidRequest("/query is required.", errors=errors))

    assert said == "/query is required.\n  /top_k: must be at most 50"


def test_what_the_sentence_says_already_is_not_said_again_of_its_place() -> None:
    error = InvalidRequest("The issuer speaks for a tenant already.", errors=[FieldError("/issuer", "speaks for a tenant already")])

    assert failure_text(error) == "The issuer speaks for a tenant already."


def test_the_version_is_printed() -> None:
    done = run("--version")

    assert done.stdout.decode() == f"coatcheck {importlib.metadata.version('coatcheck')}\n"


def test_gpu_status_says_what_this_machine_lacks_and_fails_where_something_is_missing() -> None:
    done = run("gpu", "status", "--json")

    said = json.loads(done.stdout)
    assert said["available"] is (said["missing"] == [])
    assert done.returncode == (0 if said["available"] else 1)
    assert any("GPU" in line for line in said["missing"]) is (not any(Path("/dev").glob("nvidia[0-9]*")))


def test_a_code_page_that_lacks_the_characters_shows_escapes() -> None:
    code = (
        "from coatcheck.cli import output\noutput.prepare_streams()\n"
        "output.say('порог \\ud83d 漢 ok')\noutput.warn('порог \\udfff')\noutput.print_json({'t': 'порог \\ud83d \\U0001f600'})"
    )

    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, env={**os.environ, "PYTHONIOENCODING": "cp1252"}, check=True
    )

    said, as_json = done.stdout.decode("cp1252").splitlines()
    assert said.endswith("\\ud83d \\u6f22 ok")
    assert json.loads(as_json) == {"t": "порог \ud83d \U0001f600"}
    assert b"\\udfff" in done.stderr


def test_a_recalled_text_cannot_steer_the_terminal() -> None:
    assert output.for_terminal("a\x1b[2Jb\x9b\x07\tc\nd") == "a\\x1b[2Jb\\x9b\\x07\tc\nd"


@pytest.mark.parametrize("columns", ["40", "80", "120"])
def test_a_table_on_a_terminal_cuts_no_id_and_no_word_of_a_long_cell(monkeypatch: pytest.MonkeyPatch, columns: str) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    shown = Terminal()
    ids, operations = [str(UUID(int=1)), str(UUID(int=2))], [f"operation{number}" for number in range(12)]
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setattr(sys, "stdout", shown)

    output.table(("key", "owner", "operations"), [[*ids, " ".join(operations)]])

    assert all(id in shown.getvalue() for id in ids)
    assert all(operation in shown.getvalue() for operation in operations)


def test_a_piped_table_is_a_header_and_whole_lines_aligned(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    at = datetime(2026, 11, 30, 21, 40, 12, 345_678, timezone(timedelta(hours=2)))

    output.table(("at", "name", "what"), [[at, "短い", ["recall", "read"]], [None, "two\nlines\t", "x" * 90]])

    assert capsys.readouterr().out.splitlines() == [
        "at                    name          what",
        "2026-11-30T19:40:12Z  短い          recall,read",
        f"                      two\\nlines\\t  {'x' * 90}",
    ]


def test_an_empty_table_is_its_header(capsys: pytest.CaptureFixture[str]) -> None:
    output.table(("key", "name"), [])

    assert capsys.readouterr().out == "key  name\n"


def test_every_list_is_printed_by_the_one_table() -> None:
    """What prints rows of its own has no header, or other times than the rest."""
    sources = {path.name: path.read_text("utf-8") for path in Path(output.__file__).parent.rglob("*.py")}

    assert [name for name, source in sources.items() if "strftime" in source or ":%Y" in source] == []
    assert [name for name, source in sources.items() if "rich.table" in source] == ["output.py"]


def test_a_reader_that_leaves_early_is_no_crash() -> None:
    code = "from coatcheck.cli import main; main()"

    done = subprocess.run(["bash", "-c", f'{sys.executable} -c "{code}" --help | true'], capture_output=True, check=False)

    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("--version >&-", 0),
        ("--help >&-", 0),
        ("models list >&-", 0),
        ("models list --json >&- 2>&-", 0),
        ("compact - --session s <&-", 1),
        ("compact /nowhere/at/all.json 2>&-", 2),
        ("--version <&- >&- 2>&-", 0),
        ("models list --json >/dev/full", 1),
    ],
)
def test_standard_streams_that_are_closed_or_full_are_no_crash(tmp_path: Path, command: str, code: int) -> None:
    program = f"{sys.executable} -c 'from coatcheck.cli import main; main()'"
    environment = {**os.environ, "COATCHECK_DATA_DIR": str(tmp_path / "data")}

    done = subprocess.run(["bash", "-c", f"{program} {command}"], capture_output=True, env=environment, check=False)

    assert done.returncode == code, done.stderr
    assert b"Traceback" not in done.stderr
    assert done.stdout == b""
