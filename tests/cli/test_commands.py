"""The commands against a served data directory, and without one."""

from __future__ import annotations

import asyncio
import importlib.metadata
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from coatcheck_client import Coatcheck
from tests.cli.serving import COATCHECK, Machine, environment, served
from tests.folders import open_folder

LINE = "the standby listens on 10.20.30.40:6543 since Tuesday"


@pytest.fixture(scope="module")
def machine() -> Iterator[Machine]:
    with open_folder() as folder, served(folder / "data") as said:
        assert said["url"].startswith("http://127.0.0.1:")
        yield Machine(folder / "data")


def conversation(turns: int = 60) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "Be exact."},
        {"role": "user", "content": "Look at the standby."},
    ]
    for turn in range(turns):
        call = {"id": f"call-{turn}", "type": "function", "function": {"name": "run", "arguments": json.dumps({"n": turn})}}
        log = "\n".join(f"{turn:02d}:{second:02d} worker {turn * second % 7} finished job {turn}-{second}" for second in range(20))
        messages += [
            {"role": "assistant", "content": f"Step {turn}.", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"call-{turn}", "content": f"{log}\n{LINE}" if turn == 31 else log},
        ]
    return messages


@pytest.fixture(scope="module")
def compacted(machine: Machine, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    file = tmp_path_factory.mktemp("files") / "standby day.json"
    file.write_text(json.dumps({"messages": conversation()}), "utf-8")
    answers: list[dict[str, Any]] = machine.ok("compact", str(file), "--window-chars", "20000")
    return answers


def test_a_file_becomes_windows_in_order_and_each_comes_back_as_it_was(machine: Machine, compacted: list[dict[str, Any]]) -> None:
    assert len(compacted) > 1
    assert all(answer["handoff"]["chars"] <= 1_900 for answer in compacted)

    rebuilt = [machine.ok("window", answer["manifest_id"]) for answer in compacted]

    assert {window["format"] for window in rebuilt} == {"openai-chat"}
    assert [m for window in rebuilt for m in window["messages"]] == conversation()


def test_the_same_file_again_gives_the_same_handoffs(machine: Machine, compacted: list[dict[str, Any]], tmp_path: Path) -> None:
    file = tmp_path / "standby day.json"
    file.write_text(json.dumps({"messages": conversation()}), "utf-8")

    again = machine.ok("compact", str(file), "--window-chars", "20000")

    assert [a["manifest_id"] for a in again] == [a["manifest_id"] for a in compacted]


def test_a_handoff_is_printed_for_a_person(machine: Machine, tmp_path: Path) -> None:
    file = tmp_path / "short.json"
    file.write_text(json.dumps(conversation(20)), "utf-8")

    done = machine.here("compact", str(file), "--session", "for-a-person")

    assert done.code == 0
    assert done.out.startswith("[CONTEXT HANDOFF: reference only, not an instruction]")
    assert "1 of 1 windows kept" in done.out


def test_an_exact_line_is_recalled(machine: Machine, compacted: list[dict[str, Any]]) -> None:
    found = machine.ok("recall", "where does the standby listen", "--session", "standby-day", "--top-k", "3")
    shown = machine.here("recall", "where does the standby listen", "--session", "standby-day")

    assert any(LINE in hit["text"].split("\n") for hit in found["hits"])
    assert len(found["hits"]) <= 3
    assert f"   {LINE}" in shown.out.split("\n")


def test_show_takes_a_manifest_a_session_and_a_hash(machine: Machine, compacted: list[dict[str, Any]]) -> None:
    hit = machine.ok("recall", "where does the standby listen", "--session", "standby-day")["hits"][0]

    assert machine.ok("show", compacted[0]["manifest_id"])["handoff"]["text"] == compacted[0]["handoff"]["text"]
    assert machine.ok("show", compacted[0]["session_id"])["name"] == "standby-day"
    assert machine.ok("show", "standby-day")["session_id"] == compacted[0]["session_id"]
    assert machine.ok("show", hit["sha256"][:12])["text"] == hit["text"]
    assert machine.here("show", hit["sha256"]).out == hit["text"] + "\n"


def test_what_is_not_there_is_a_failure_in_one_line(machine: Machine) -> None:
    done = machine.here("show", str(UUID(int=7)))

    assert done.code == 1
    (line,) = done.err.splitlines()
    assert "`coatcheck sessions list`" in line


def test_a_hash_that_is_cut_too_short_is_told_how_many_digits_are_needed(machine: Machine) -> None:
    short = machine.here("show", "65cc")
    unknown = machine.here("show", "65cc65cc65cc")

    assert (short.code, unknown.code) == (2, 1)
    assert "12 or more" in short.err


def test_redacting_again_says_what_it_needs(machine: Machine) -> None:
    assert "without --rescan" in machine.here("redact", "--help").out
    assert "coatcheck redact --rescan" in machine.here("redact").err


def test_a_wrong_key_is_told_where_a_right_one_is(machine: Machine) -> None:
    done = machine.here("recall", "x", COATCHECK_URL=_url(machine), COATCHECK_API_KEY="wrong")

    assert done.code == 1
    assert "local.key" in done.err


def test_an_operation_that_does_not_exist_has_those_that_do_listed(machine: Machine) -> None:
    done = machine.here("keys", "create", "ci", "--operation", "memory")

    assert done.code == 2
    assert "recall" in done.err


def test_an_export_of_nothing_leaves_no_file(machine: Machine, tmp_path: Path) -> None:
    done = machine.here("export", "no-such-session", "--output", str(tmp_path / "out.ndjson"))

    assert done.code == 1
    assert list(tmp_path.iterdir()) == []


def test_a_transcript_comes_from_stdin_under_a_name_that_is_given(machine: Machine, tmp_path: Path) -> None:
    command = [*COATCHECK, "compact", "-", "--session", "from-stdin", "--json"]

    done = subprocess.run(
        command, input=json.dumps(conversation(20)).encode(), capture_output=True, env=environment(machine.data_dir), check=True
    )

    (answer,) = json.loads(done.stdout)
    assert machine.ok("sessions", "show", "from-stdin")["session_id"] == answer["session_id"]


def hears_interrupts() -> None:
    """What a shell starts in the background ignores them, and so would all that the tests start."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_handoffs_are_printed_as_they_come_and_an_interrupt_leaves_those_that_came(machine: Machine, tmp_path: Path) -> None:
    file = tmp_path / "long.json"
    file.write_text(json.dumps(conversation(400)), "utf-8")
    command = [*COATCHECK, "compact", str(file), "--session", "interrupted", "--window-chars", "5000"]

    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(machine.data_dir),
        preexec_fn=hears_interrupts,
    )
    assert process.stdout is not None
    first = process.stdout.readline().decode()
    process.send_signal(signal.SIGINT)
    rest, said = process.communicate(timeout=60)

    assert process.returncode == 130
    assert first.startswith("[CONTEXT HANDOFF")
    assert rest.count(b"[END HANDOFF]") < 100
    assert said.decode().splitlines()[-1] == "coatcheck: interrupted"
    assert "window 1 of " in said.decode()
    assert machine.ok("sessions", "show", "interrupted")["manifests"] >= 1


def test_whoever_pipes_handoffs_has_those_that_were_there_when_a_later_window_fails(machine: Machine, tmp_path: Path) -> None:
    file = tmp_path / "too-large.json"
    too_large = {"role": "user", "content": "word " * 1_100_000}
    file.write_text(json.dumps([*conversation(20), too_large]), "utf-8")

    done = machine.here("compact", str(file), "--window-chars", "5000", "--json")

    assert done.code == 1
    assert "larger than this service takes" in done.err.splitlines()[-1]
    kept = machine.ok("sessions", "show", "too-large")["manifests"]
    assert len({answer["manifest_id"] for answer in done.json}) == kept > 1


def test_a_scan_of_a_sound_memory_finds_nothing(machine: Machine, compacted: list[dict[str, Any]]) -> None:
    scanned = machine.ok("scan")
    without = machine.here("scan", "--no-index")

    assert scanned["findings"] == []
    assert scanned["findings_total"] == 0
    assert scanned["counts"]["segments"] >= sum(answer["segments"]["total"] for answer in compacted) // 2
    assert without.code == 0
    assert "0 findings" in without.out


@pytest.mark.parametrize("command", [["repair"], ["reconcile"], ["redact", "--rescan"]])
def test_the_other_jobs_run_to_their_end(machine: Machine, compacted: list[dict[str, Any]], command: list[str]) -> None:
    assert machine.ok(*command)["status"] == "done"


def test_sessions_are_listed_shared_and_erased(machine: Machine, tmp_path: Path) -> None:
    file = tmp_path / "passing.json"
    file.write_text(json.dumps(conversation(12)), "utf-8")
    machine.ok("compact", str(file))

    assert "passing" in [session["name"] for session in machine.ok("sessions", "list")]
    assert machine.ok("sessions", "visibility", "passing", "personal")["visibility"] == "personal"
    assert machine.here("sessions", "delete", "passing").code == 2
    assert machine.ok("sessions", "show", "passing")["manifests"] == 1
    machine.ok("sessions", "delete", "passing", "--yes")
    assert machine.here("sessions", "show", "passing").code == 1


def test_an_export_is_taken_in_again_under_a_free_name(machine: Machine, compacted: list[dict[str, Any]], tmp_path: Path) -> None:
    file = tmp_path / "out.ndjson"

    said = machine.ok("export", "standby-day", "--output", str(file))
    piped = machine.here("export", "standby-day")
    taken = machine.ok("import", str(file))
    again = machine.here("import", str(file)).out

    assert again.startswith("0 manifests, 0 segments of 1 session taken in; ")
    assert "erased here" in again
    assert said["bytes"] == file.stat().st_size
    assert piped.out.encode() == file.read_bytes()
    assert [path.name for path in tmp_path.iterdir()] == ["out.ndjson"]
    assert taken["manifests"] + taken["skipped"] >= len(compacted)


def test_an_export_into_a_pipe_leaves_it_a_pipe(machine: Machine, compacted: list[dict[str, Any]], tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()), daemon=True)
    reader.start()

    said = machine.ok("export", "standby-day", "--output", str(pipe))

    reader.join(20)
    assert [len(content) for content in read] == [said["bytes"]]
    assert pipe.is_fifo()


def test_keys_and_tenants_are_made_and_taken_back(machine: Machine) -> None:
    made = machine.ok("keys", "create", "ci", "--operation", "recall")

    assert made["key"].startswith("ck_")
    assert made["operations"] == ["recall"]
    listed = {key["key_id"]: key for key in machine.ok("keys", "list")}
    assert listed[made["key_id"]]["key"] is None
    rotated = machine.ok("keys", "rotate", made["key_id"])
    assert rotated["key"] not in (None, made["key"])
    machine.ok("keys", "revoke", rotated["key_id"])
    assert machine.here("recall", "x", COATCHECK_URL=_url(machine), COATCHECK_API_KEY=rotated["key"]).code == 1

    tenant = machine.ok("tenants", "create", "acme")
    assert tenant["key"].startswith("ck_")
    assert "acme" in [t["name"] for t in machine.ok("tenants", "list")]


def test_text_that_no_terminal_can_show_goes_in_and_comes_out(machine: Machine, tmp_path: Path) -> None:
    messages = [*conversation(20), {"role": "user", "content": "half a pair \ud83d and NUL \x00 and порог"}]
    file = tmp_path / "strange.json"
    file.write_text(json.dumps(messages), "ascii")

    (answer,) = machine.ok("compact", str(file))

    assert machine.ok("window", answer["manifest_id"])["messages"] == messages
    assert machine.run("window", answer["manifest_id"], PYTHONIOENCODING="cp1252").code == 0


def test_one_window_that_is_refused_never_blocks_the_next(machine: Machine, tmp_path: Path) -> None:
    broken = {"role": "user", "content": "x" * 6_000_000}
    file = tmp_path / "broken.json"
    file.write_text(json.dumps([*conversation(12), broken, *conversation(12)[2:]]), "utf-8")

    done = machine.here("compact", str(file), "--window-chars", "10000", "--json")

    assert done.code == 1
    assert len(done.json) >= 2
    assert "window" in done.err


def test_the_sdk_finds_the_service_and_its_key(machine: Machine, compacted: list[dict[str, Any]]) -> None:
    with Coatcheck(data_dir=machine.data_dir) as client:
        assert client.window(compacted[0]["manifest_id"]).format == "openai-chat"
        assert client.readiness()["status"] == "ready"


def test_an_env_file_names_the_data_directory_to_the_service_and_to_its_commands(machine: Machine, tmp_path: Path) -> None:
    file = tmp_path / "settings.env"
    file.write_text(f"COATCHECK_DATA_DIR={machine.data_dir}\n", "utf-8")
    names = {**environment(machine.data_dir), "COATCHECK_ENV_FILE": str(file)}
    del names["COATCHECK_DATA_DIR"]

    done = subprocess.run([*COATCHECK, "keys", "list", "--json"], capture_output=True, cwd=tmp_path, env=names, check=False)

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == machine.ok("keys", "list")


def test_settings_that_lie_in_the_working_directory_are_not_read_and_that_is_said(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".env").write_text("COATCHECK_EMBEDDER=none\nCOATCHECK_NO_SUCH_SETTING=1\n", "utf-8")
    monkeypatch.chdir(tmp_path)

    done = machine.here("keys", "list", "--json")

    assert done.code == 0
    assert f"the settings in {tmp_path / '.env'} are not read" in done.err


def test_a_second_service_on_the_same_data_is_refused_in_one_line(machine: Machine) -> None:
    done = machine.run("serve", "--embedded", "--port", "0")

    assert done.code == 1
    (line,) = [line for line in done.err.splitlines() if "Another process owns the data directory" in line]
    assert f"serves on {_url(machine)}" in line
    assert "COATCHECK_DATA_DIR" in line


def test_doctor_finds_a_sound_machine(machine: Machine) -> None:
    checked = machine.ok("doctor")

    assert checked["ok"] is True
    assert {"python", "settings", "data directory", "local.key", "embedder", "postgresql", "index"} <= {
        check["name"] for check in checked["checks"]
    }
    (service,) = [check for check in checked["checks"] if check["name"] == "service"]
    assert (service["state"], service["detail"]) == ("ok", f"ready, at {_url(machine)}")


def test_mcp_over_stdio_offers_the_tools_and_answers(machine: Machine, compacted: list[dict[str, Any]]) -> None:
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    async def talk() -> tuple[set[str], Any, Any]:
        server = StdioServerParameters(command=COATCHECK[0], args=[*COATCHECK[1:], "mcp"], env=environment(machine.data_dir))
        async with stdio_client(server, errlog=sys.stderr) as pipes, ClientSession(*pipes) as host:
            assert (await host.initialize()).server_info.version == importlib.metadata.version("coatcheck")
            tools = await host.list_tools()
            found = await host.call_tool("recall_memory", {"query": "where does the standby listen", "session": "standby-day"})
            missing = await host.call_tool("read_manifest", {"manifest_id": str(UUID(int=7))})
            return {tool.name for tool in tools.tools}, found, missing

    tools, found, missing = asyncio.run(talk())

    assert tools == {"recall_memory", "read_manifest", "read_segment", "compact_context"}
    assert LINE in found.content[0].text
    assert missing.is_error


def _url(machine: Machine) -> str:
    url: str = json.loads((machine.data_dir / "run.json").read_text("utf-8"))["url"]
    return url


class TestWithoutAService:
    """A command starts the app in its own process, on data that a service has left, and stops it."""

    def test_a_command_works_alone_and_sees_what_the_service_kept(self, tmp_path: Path) -> None:
        file = tmp_path / "day.json"
        file.write_text(json.dumps(conversation(20)), "utf-8")

        with open_folder() as folder:
            alone = Machine(folder / "data")
            with served(alone.data_dir):
                (answer,) = alone.ok("compact", str(file))
                member = alone.ok("principals", "create", "Mia", "--role", "member")
                key = alone.ok("keys", "create", "mia", "--principal", member["principal_id"])["key"]
            assert not (alone.data_dir / "run.json").exists()

            assert alone.run("window", answer["manifest_id"], "--json").json["messages"] == conversation(20)
            # A service that died left its file behind; nothing answers there.
            (alone.data_dir / "run.json").write_text(json.dumps({"url": "http://127.0.0.1:9", "pid": 1}), "utf-8")
            assert [s["name"] for s in alone.run("sessions", "list", "--json").json] == ["day"]

            (service,) = [check for check in alone.here("doctor", "--json").json["checks"] if check["name"] == "service"]
            assert (service["state"], service["detail"][:15]) == ("absent", "none is running")

            # The key that is set is the one that is used: the local one opens everything.
            unknown = alone.here("recall", "standby", COATCHECK_API_KEY="ck_bad")
            assert (unknown.code, unknown.out) == (1, "")
            assert "credential" in unknown.err
            assert alone.here("keys", "list", "--json", COATCHECK_API_KEY=key).code == 1
            assert alone.here("sessions", "list", "--json", COATCHECK_API_KEY=key).json == []


def test_the_cache_is_looked_at_and_purged(machine: Machine) -> None:
    stats = machine.here("cache", "stats")
    purged = machine.ok("cache", "purge", "--tenant", "--source", "contract-17")
    contradiction = machine.here("cache", "purge", "--tenant", "--principal", str(UUID(int=7)))

    assert stats.out.startswith("off; 0 answers")
    assert purged == {"purged": 0}
    assert contradiction.code == 2
