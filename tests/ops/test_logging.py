"""Logs carry ids and decisions, never content."""

from __future__ import annotations

import ast
import io
import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import UUID

import pytest
import structlog

from coatcheck.domain.routes import Route
from coatcheck.ops.logging import configure

CANARY = "canary-" + "7f3e" * 4
SOURCE = Path(__file__).parents[2] / "service" / "coatcheck"
Lines = Callable[[], list[dict[str, object]]]


@pytest.fixture
def lines() -> Iterator[Lines]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    stream = io.StringIO()
    configure("info", stream=stream)
    yield lambda: [json.loads(line) for line in stream.getvalue().splitlines()]
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


def test_a_line_holds_its_event_ids_and_figures(lines: Lines) -> None:
    tenant = UUID(int=7)

    structlog.get_logger().info("compacted", tenant_id=tenant, segments=24, ms=1.5, reason="protected:tool-role", route=Route.KEEP)

    (line,) = lines()
    assert line["event"] == "compacted"
    assert line["tenant_id"] == str(tenant)
    assert (line["segments"], line["ms"], line["reason"], line["route"]) == (24, 1.5, "protected:tool-role", "keep")
    assert line["level"] == "info"
    assert str(line["timestamp"]).endswith("Z")


@pytest.mark.parametrize(
    "fields",
    [
        {"text": CANARY},
        {"session": CANARY},
        {"reason": CANARY * 20},
        {"reason": f"two\n{CANARY}"},
        {"reason": f"\x1b[31m{CANARY}"},
        {"body": CANARY.encode()},
        {"body": {"text": CANARY}},
        {"items": [CANARY]},
        {"items": [[{"text": CANARY}]]},
        {"session_id": CANARY},
        {"error": ValueError(CANARY)},
    ],
)
def test_what_may_be_content_is_left_out_and_counted(lines: Lines, fields: dict[str, object]) -> None:
    structlog.get_logger().warning("went wrong", **fields)

    (line,) = lines()
    assert CANARY not in json.dumps(line)
    assert line["left_out"] == 1


def test_an_exception_is_its_types_and_frames_without_its_message(lines: Lines) -> None:
    try:
        try:
            raise ValueError(f"cannot parse {CANARY}")
        except ValueError as error:
            raise KeyError(CANARY) from error
    except KeyError:
        structlog.get_logger().exception("request failed")

    (line,) = lines()
    assert CANARY not in json.dumps(line)
    assert line["exception"] == ["builtins.KeyError", "builtins.ValueError"]
    frames = line["frames"]
    assert isinstance(frames, list)
    assert "test_an_exception_is_its_types_and_frames_without_its_message" in frames[-1]


def test_another_librarys_record_keeps_its_place_and_loses_its_words(lines: Lines) -> None:
    logging.getLogger("sqlalchemy.pool").error("bad row %s", CANARY)
    logging.getLogger("uvicorn.error").info("Application startup complete.")

    foreign, own = lines()
    assert CANARY not in json.dumps(foreign)
    assert foreign["logger"] == "sqlalchemy.pool"
    assert own["event"] == "Application startup complete."


def test_the_access_log_of_the_server_is_off(lines: Lines) -> None:
    logging.getLogger("uvicorn.access").info("GET /v1/segments/%s", CANARY)

    assert lines() == []


def test_every_event_in_the_source_is_a_literal() -> None:
    """An event that is put together at run time could hold content."""
    methods = {"debug", "info", "warning", "error", "exception", "critical"}
    calls = [
        (path.name, node.lineno, node.args[0])
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in methods
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id in {"log", "logger", "_log"}
    ]

    assert calls
    assert [(name, line) for name, line, event in calls if not isinstance(event, ast.Constant)] == []


@pytest.mark.parametrize(("level", "said"), [("info", False), ("debug", True)])
def test_what_a_migration_says_of_each_step_is_for_who_asks_for_details(level: str, said: bool) -> None:
    stream, root, library = io.StringIO(), logging.getLogger(), logging.getLogger("alembic")
    before = root.handlers[:], root.level, library.level
    configure(level, stream=stream)

    logging.getLogger("alembic.runtime.migration").info("Running upgrade 0001 -> 0002")
    logging.getLogger("alembic.runtime.migration").warning("something is wrong")

    root.handlers[:] = before[0]
    root.setLevel(before[1])
    library.setLevel(before[2])
    structlog.reset_defaults()
    assert ("Running upgrade" in stream.getvalue()) is said
    assert "something is wrong" in stream.getvalue()
