"""What must be nowhere: planted secrets in no row, point, file, answer or log line; ordinary words in no log, metric or problem."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest_asyncio
import sqlalchemy as sa
import structlog
from prometheus_client.parser import text_string_to_metric_families

from coatcheck.api.edge import DOORS, METHODS, PROBES, UNROUTED
from coatcheck.app.compose import App
from coatcheck.ops.logging import configure
from coatcheck.store.engine import with_driver
from tests.index.asking import everything
from tests.isolation import secret
from tests.isolation.planting import FORMATS, Planted
from tests.isolation.town import Person, Town
from tests.postgres import Postgres
from tests.windows import request, window

OPENAPI = Path(__file__).parents[2] / "docs" / "openapi.json"
WORD = "canary-" + secret.word(16)
"""An ordinary word: kept in the tables, since that is what is asked for, and repeated nowhere else."""


@contextmanager
def logged() -> Iterator[io.StringIO]:
    """Everything that the service and its libraries log meanwhile, at the lowest level, as in production."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    stream = io.StringIO()
    configure("debug", stream=stream)
    try:
        yield stream
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
        structlog.reset_defaults()


@pytest_asyncio.fixture(scope="module", loop_scope="package")
async def lived(town: Town) -> AsyncIterator[tuple[Planted, str, list[str]]]:
    """A life with secrets in it: windows of every format handed in, searched, read, exported, rescanned, erased. Its log and
    what was answered."""
    planted, answers = Planted(), []
    with logged() as stream:
        for name, make in FORMATS.items():
            answers += await _life_of(town.alice, name, make(planted))
        for kind in ("scan", "repair", "redact-rescan", "reconcile"):
            answers.append((await town.operator.http.post(f"/v1/admin/{kind}")).text)
        for path in ("/metrics", "/progressz", "/readyz?verbose", "/livez"):
            answers.append((await town.alice.http.get(path)).text)
        yield planted, stream.getvalue(), answers


async def _life_of(person: Person, name: str, planted: dict[str, Any]) -> list[str]:
    answers = []
    for mark in ("kept", "erased"):
        body = {"session": f"{name} {mark}", "window": planted, "focus": "the password", "max_handoff_chars": 4_000}
        made = await person.http.post("/v1/compactions", json=body)
        assert made.status_code == 201, made.text
        session_id, manifest_id = made.json()["session_id"], made.json()["manifest_id"]
        answers.append(made.text)
        for path in (f"/v1/manifests/{manifest_id}", f"/v1/manifests/{manifest_id}/entries?text=true&page_size=200",
                     f"/v1/manifests/{manifest_id}/window", f"/v1/sessions/{session_id}/export"):  # fmt: skip
            answers.append((await person.http.get(path)).text)
        answers.append((await person.http.post("/v1/recall", json={"query": "password token", "session": session_id})).text)
    assert (await person.http.delete(f"/v1/sessions/{session_id}")).status_code == 204
    return answers


async def test_no_planted_secret_is_answered(lived: tuple[Planted, str, list[str]]) -> None:
    planted, _, answers = lived

    said = "\n".join(answers)

    assert len(planted.secrets) > 40
    assert [one for one in planted.secrets if one in said] == []


async def test_T35_no_planted_secret_is_logged(lived: tuple[Planted, str, list[str]]) -> None:
    planted, log, _ = lived

    assert '"route": "/v1/compactions"' in log
    assert [one for one in planted.secrets if one in log] == []


async def test_no_planted_secret_is_in_any_column_of_any_table(
    lived: tuple[Planted, str, list[str]], town: Town, postgres: Postgres, shared_database: str
) -> None:
    planted, _, _ = lived

    rows = _every_value(postgres, shared_database)

    assert {"segments", "entries", "runs", "sessions", "blobs", "tombstones", "outbox", "audit"} <= set(rows)
    assert rows["segments"]
    for table, values in rows.items():
        held = b"\0".join(values)
        assert [one for one in planted.secrets if one.encode() in held] == [], table


async def test_no_planted_secret_is_in_the_index_or_in_any_file(lived: tuple[Planted, str, list[str]], town: Town) -> None:
    planted, _, _ = lived
    await town.app.parts.index.flush()

    payloads = "\n".join(map(repr, await everything(town.app.parts.index)))
    files = [path for path in _files(town.app)]

    assert payloads
    assert [one for one in planted.secrets if one in payloads] == []
    for path in files:
        held = path.read_bytes()
        assert [one for one in planted.secrets if one.encode() in held] == [], path


def _wordy() -> list[dict[str, Any]]:
    """The word in every place of a window that holds words."""
    function = {"name": WORD, "arguments": json.dumps({WORD: WORD})}
    return [
        *window(mark=WORD),
        {"role": "user", "name": WORD, "content": [{"type": "text", "text": WORD}], "metadata": {WORD: {"title": WORD}}},
        {"role": "user", "content": [{"type": "file", "file": {"filename": f"{WORD}.txt", "file_id": WORD}}]},
        {"role": "assistant", "content": WORD, "tool_calls": [{"id": f"call-{WORD}", "type": "function", "function": function}]},
        {"role": "tool", "tool_call_id": f"call-{WORD}", "content": WORD},
    ]


async def test_T24_words_are_in_the_tables_and_in_no_point_file_log_line_or_metric(town: Town) -> None:
    with logged() as stream:
        made = await town.alice.compact(f"session {WORD}", _wordy(), focus=f"focus {WORD}")
        assert await town.alice.recall(f"query {WORD}", f"session {WORD}")
        for path in (f"/v1/manifests/{made['manifest_id']}/window", f"/v1/sessions/{made['session_id']}/export"):
            assert WORD in (await town.alice.http.get(path)).text
        chained = await town.alice.compact(f"session {WORD}", [made["handoff"]["message"], *_wordy()])
        await town.alice.http.delete(f"/v1/manifests/{chained['manifest_id']}")
        await town.app.use_cases.reconciler.drain_tenant(town.alice.tenant_id)
        metrics = (await town.alice.http.get("/metrics")).text
    await town.app.parts.index.flush()

    assert len(stream.getvalue().splitlines()) > 5
    assert WORD not in stream.getvalue() + metrics
    assert WORD not in "\n".join(map(repr, await everything(town.app.parts.index)))
    assert all(WORD.encode() not in path.read_bytes() for path in _files(town.app))


async def test_T13_no_metric_tells_one_tenant_from_another(town: Town) -> None:
    """Labels are names of our own code. ``tenant`` stands in them as part of a route's template and nowhere else."""
    for person in (town.alice, town.dave, town.operator):
        await person.compact(f"session {WORD}", window(mark=WORD))
        for path in (f"/v1/sessions/{WORD}", f"/v1/{WORD}/{person.tenant_id}", f"/v1/admin/tenants/{person.tenant_id}/limits"):
            await person.http.request(WORD.upper(), path)
            await person.http.get(path, headers={"Authorization": f"Bearer ck_{person.tenant_id.hex}_{WORD}"})
            await person.http.get(path)
    text = (await town.alice.http.get("/metrics")).text

    labels = {
        ("segment's route" if name == "route" and one.name.startswith("coatcheck_segments") else name, value)
        for family in text_string_to_metric_families(text)
        for one in family.samples
        for name, value in one.labels.items()
    }
    ids = [one for person in town.everybody.values() for one in (person.tenant_id, person.principal_id)]
    said = [str(one) for one in ids] + [one.hex for one in ids] + list(town.everybody) + [WORD, WORD.upper(), str(town.team_id)]
    assert [one for one in said if one in text] == []
    assert {name for name, _ in labels} <= {
        "method",
        "route",
        "segment's route",
        "status",
        "outcome",
        "stage",
        "kind",
        "limit",
        "legs",
        "le",
    }
    assert {value for name, value in labels if name == "method"} <= METHODS | {"OTHER"}
    routes = {value for name, value in labels if name == "route"}
    assert "/v1/admin/tenants/{tenant_id}/limits" in routes
    assert routes <= {*json.loads(OPENAPI.read_text())["paths"], *PROBES, *DOORS, UNROUTED}


async def test_a_word_of_the_caller_is_no_id_of_a_tombstone(town: Town, postgres: Postgres, shared_database: str) -> None:
    """What is left of an erased session names it by ids and keyed hashes: not one word, and no hash that could be guessed."""
    word = "canary-" + secret.word(16)
    made = await town.bob.compact(f"session {word}", window(mark=word))
    sha256s = [hit["sha256"] for hit in await town.bob.recall(word, f"session {word}", top_k=50)]

    assert (await town.bob.http.delete(f"/v1/sessions/{made['session_id']}")).status_code == 204

    assert sha256s
    for table, values in _every_value(postgres, shared_database).items():
        held = b"\0".join(values)
        assert [one for one in (word, *sha256s) if one.encode() in held] == [], table


async def test_a_secret_where_nothing_may_be_rewritten_is_refused_and_nothing_is_stored(
    town: Town, postgres: Postgres, shared_database: str
) -> None:
    planted = Planted()
    structural: list[dict[str, Any]] = [
        request(planted.token()),
        request("s", window(), focus="f", visibility=planted.token()),
        {"session": "s", "window": {"messages": _calls(planted.token())}},
        {"session": "s", "window": {"format": "anthropic", "messages": _tool_use(planted.token())}},
        {"session": "s", "window": {"format": "openai-responses", "messages": _items(planted.token())}},
        {**request("s"), planted.token(): 1},
    ]

    with logged() as stream:
        answers = [await town.bob.http.post("/v1/compactions", json=body) for body in structural]

    assert {answer.status_code for answer in answers} == {422}
    said = "".join(answer.text for answer in answers) + stream.getvalue()
    assert [one for one in planted.secrets if one in said] == []
    held = b"\0".join(value for values in _every_value(postgres, shared_database).values() for value in values)
    assert [one for one in planted.secrets if one.encode() in held] == []


def _bad_requests() -> list[tuple[str, str, dict[str, Any]]]:
    """The word in every place of a request that is refused."""
    body = request("s", window(mark=WORD))
    bad_window = [{"role": WORD, "content": WORD}]
    return [
        ("POST", "/v1/compactions", {"content": f'{{"session": "{WORD}", "session": 1}}'}),
        ("POST", "/v1/compactions", {"content": f'{{"{WORD}"'}),
        ("POST", "/v1/compactions", {"json": {**body, WORD: WORD}}),
        ("POST", "/v1/compactions", {"json": {**body, "visibility": WORD}}),
        ("POST", "/v1/compactions", {"json": {**body, "parent_manifest_id": WORD}}),
        ("POST", "/v1/compactions", {"json": request(WORD, bad_window)}),
        ("POST", "/v1/compactions", {"json": request(WORD, [{"role": "tool", "tool_call_id": WORD, "content": WORD}])}),
        ("POST", "/v1/compactions", {"json": request(WORD, [{"role": "user", "content": WORD}])}),
        ("POST", "/v1/compactions", {"json": {"session": WORD, "window": {"format": WORD, "messages": []}}}),
        ("POST", "/v1/compactions", {"json": body, "headers": {"Idempotency-Key": f"{WORD} {WORD}"}}),
        ("POST", "/v1/compactions", {"json": body, "headers": {"Coatcheck-Deadline": WORD}}),
        ("POST", "/v1/recall", {"json": {"query": WORD, "session": WORD}}),
        ("POST", "/v1/recall", {"json": {"query": WORD, "roles": [WORD]}}),
        ("POST", "/v1/recall", {"json": {"query": WORD, "since": WORD}}),
        ("GET", f"/v1/manifests/{WORD}", {}),
        ("GET", f"/v1/segments/{WORD}", {}),
        ("GET", f"/v1/sessions?page_token={WORD}", {}),
        ("GET", f"/{WORD}", {}),
        ("POST", f"/v1/{WORD}", {"json": {WORD: WORD}}),
        ("POST", "/v1/import", {"content": f'{{"type": "session", "name": "{WORD}"}}\n'}),
        ("POST", "/v1/admin/keys", {"json": {"name": WORD, "operations": [WORD]}}),
        ("POST", "/mcp", {"json": {"jsonrpc": "2.0", "id": 1, "method": WORD, "params": {"arguments": {WORD: WORD}}}}),
        ("POST", "/mcp", {"json": {"jsonrpc": "2.0", "id": 1, WORD: WORD}}),
        ("POST", "/mcp", {"json": [WORD]}),
        ("POST", "/mcp", {"json": _mcp("recall_memory", {"query": WORD, WORD: WORD})}),
        ("POST", "/mcp", {"json": _mcp("compact_context", request(WORD, bad_window))}),
        ("POST", "/mcp", {"json": _mcp(WORD, {WORD: WORD})}),
    ]


async def test_T35_no_refusal_and_no_log_line_repeats_what_was_sent(town: Town) -> None:
    answers: list[tuple[str, httpx.Response]] = []
    with logged() as stream:
        for method, path, sent in _bad_requests():
            headers = {"Accept": "application/json", **sent.pop("headers", {})}
            answers.append((f"{method} {path}", await town.operator.http.request(method, path, headers=headers, **sent)))
        answers.append(("GET /metrics", await town.operator.http.get("/metrics")))

    for asked, answer in answers:
        said = answer.text + str(answer.headers)
        is_unknown_method = '"Method not found"' in said  # the protocol's own answer names the method, and nothing else
        assert WORD not in said or is_unknown_method, (asked, said)
    assert len(stream.getvalue().splitlines()) >= len(answers) - 1
    assert WORD not in stream.getvalue()


def _every_value(postgres: Postgres, database: str) -> dict[str, list[bytes]]:
    """Every value of every column of every table, as bytes, read by the owner of all of them."""
    engine = sa.create_engine(with_driver(postgres.owner_url(database)), poolclass=sa.NullPool)
    with engine.connect() as connection:
        tables = list(connection.scalars(sa.text("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")))
        found = {table: connection.execute(sa.text(f"SELECT * FROM {table}")).all() for table in tables}
    engine.dispose()
    return {table: [_as_bytes(value) for row in rows for value in row] for table, rows in found.items()}


def _as_bytes(value: object) -> bytes:
    if isinstance(value, bytes | memoryview):
        return bytes(value)
    return (value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)).encode(errors="surrogatepass")


def _files(app: App) -> list[Path]:
    """What the app keeps beside the database: the index, the journal, what stands in its data directory."""
    journal = app.parts.settings.erasure_journal
    assert journal is not None
    return [path for folder in (app.parts.settings.data_dir, journal) for path in folder.rglob("*") if path.is_file()]


def _calls(call_id: str) -> list[dict[str, Any]]:
    function = {"name": "f", "arguments": "{}"}
    return [
        {"role": "assistant", "content": "x " * 900, "tool_calls": [{"id": call_id, "type": "function", "function": function}]},
        {"role": "tool", "tool_call_id": call_id, "content": "done"},
    ]


def _tool_use(call_id: str) -> list[dict[str, Any]]:
    return [
        {"role": "assistant", "content": [{"type": "tool_use", "id": call_id, "name": "f", "input": {"x": "y " * 900}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call_id, "content": "done"}]},
    ]


def _items(call_id: str) -> list[dict[str, Any]]:
    return [
        {"type": "function_call", "call_id": call_id, "name": "f", "arguments": json.dumps({"x": "y " * 900})},
        {"type": "function_call_output", "call_id": call_id, "output": "done"},
    ]


def _mcp(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
