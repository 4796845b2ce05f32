"""What the routers add to the use cases, over the whole app: statuses, headers, pages, streams."""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack
from typing import Any
from uuid import uuid4

import httpx
import pytest

from coatcheck.api.dependencies import THREAD_FROM_BYTES
from coatcheck.api.gate import BODIES_AT_ONCE
from tests import apps
from tests.api.conftest import Served
from tests.windows import request, window

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def compacted(served: Served, session: str, **more: Any) -> dict[str, Any]:
    made = await served.http.post("/v1/compactions", json=request(session, **more), headers=served.operator.headers)
    assert made.status_code == 201, made.text
    body: dict[str, Any] = made.json()
    return body


async def pages(served: Served, path: str, name: str, page_size: int) -> list[list[Any]]:
    """Every page of a list, one after the other."""
    found: list[list[Any]] = []
    token = None
    while True:
        parameters: dict[str, Any] = {"page_size": page_size} | ({"page_token": token} if token else {})
        answer = await served.http.get(path, params=parameters, headers=served.operator.headers)
        assert answer.status_code == 200, answer.text
        found.append(answer.json()[name])
        token = answer.json()["next_page_token"]
        if token is None:
            return found


async def test_a_completed_duplicate_is_200_with_the_same_body_and_key_quoted_or_bare(served: Served) -> None:
    body = request("duplicate")
    answers = [
        await served.http.post("/v1/compactions", json=body, headers={**served.operator.headers, "Idempotency-Key": key})
        for key in ("k-1", '"k-1"')
    ]

    assert [answer.status_code for answer in answers] == [201, 200]
    assert answers[0].content == answers[1].content


async def test_large_bodies_are_parsed_by_turns_and_small_ones_wait_for_none_of_them(served: Served) -> None:
    somebody, large = uuid4(), {"query": "x" * THREAD_FROM_BYTES}
    async with AsyncExitStack() as held:
        for _ in range(BODIES_AT_ONCE):
            await held.enter_async_context(served.app.gate.parsing.of(somebody))
        waiting = {
            path: asyncio.create_task(served.http.post(path, json=large, headers=served.operator.headers))
            for path in ("/v1/recall", "/v1/cache/lookup", "/mcp")
        }
        small = await served.http.post("/v1/recall", json={"query": 7}, headers=served.operator.headers)
        await asyncio.sleep(0.2)

        assert small.status_code == 422
        assert not any(task.done() for task in waiting.values())
    answers = {path: (await task).status_code for path, task in waiting.items()}

    assert answers == {"/v1/recall": 422, "/v1/cache/lookup": 422, "/mcp": 400}


async def test_lone_surrogates_and_nul_come_back_over_every_door(served: Served) -> None:
    odd = "before \ud800 \0 \udfff after " * 40
    messages = [{"role": "user", "content": odd}, *window()]
    raw = json.dumps(request("odd", messages)).encode()

    made = await served.http.post("/v1/compactions", content=raw, headers=served.operator.headers)
    manifest = made.json()["manifest_id"]
    back = await served.http.get(f"/v1/manifests/{manifest}/window", headers=served.operator.headers)
    entries = await served.http.get(f"/v1/manifests/{manifest}/entries?text=1", headers=served.operator.headers)
    first = entries.json()["entries"][0]
    segment = await served.http.get(f"/v1/segments/{first['sha256']}", headers=served.operator.headers)

    assert back.content.isascii()
    assert back.json()["messages"] == messages
    assert first["text"] == segment.json()["text"] == odd


async def test_what_is_asked_for_may_be_broken_text_too(served: Served) -> None:
    broken = "the pool is exhausted \ud83d"
    asked = json.dumps({"query": broken, "session": "broken"}).encode()
    body = json.dumps(request("broken", window(), focus=broken)).encode()

    made = await served.http.post("/v1/compactions", content=body, headers=served.operator.headers)
    found = await served.http.post("/v1/recall", content=asked, headers=served.operator.headers)

    assert made.status_code == 201
    assert "the pool is exhausted" in found.json()["hits"][0]["text"]


async def test_entries_come_in_pages_without_gap_and_without_text_unless_asked(served: Served) -> None:
    manifest = (await compacted(served, "paged"))["manifest_id"]

    whole = await pages(served, f"/v1/manifests/{manifest}/entries", "entries", 200)
    small = await pages(served, f"/v1/manifests/{manifest}/entries", "entries", 3)

    assert [entry for page in small for entry in page] == whole[0]
    assert {len(page) for page in small[:-1]} == {3}
    assert all(entry["text"] is None for entry in whole[0])


async def test_sessions_come_in_pages_without_gap(served: Served) -> None:
    for number in range(4):
        await compacted(served, f"listed {number}")

    whole = await pages(served, "/v1/sessions", "sessions", 200)
    small = await pages(served, "/v1/sessions", "sessions", 3)

    assert [session for page in small for session in page] == whole[0]


async def test_a_token_serves_its_own_list_alone(served: Served) -> None:
    headers = served.operator.headers
    one, other = [(await compacted(served, f"token {number}"))["manifest_id"] for number in range(2)]
    first = await served.http.get(f"/v1/manifests/{one}/entries?page_size=1", headers=headers)
    token = first.json()["next_page_token"]

    mine = await served.http.get(f"/v1/manifests/{one}/entries", params={"page_token": token}, headers=headers)
    answers = [
        await served.http.get(path, params={"page_token": token}, headers=headers)
        for path in (f"/v1/manifests/{other}/entries", "/v1/sessions", "/v1/admin/keys")
    ]

    assert mine.status_code == 200
    assert [answer.status_code for answer in answers] == [422] * 3


async def test_a_recall_beyond_its_deadline_is_given_up_and_may_be_tried_again(served: Served) -> None:
    answer = await served.http.post(
        "/v1/recall", json={"query": "pool"}, headers={**served.operator.headers, "Coatcheck-Deadline": "0.000001"}
    )

    assert answer.status_code == 503
    assert answer.json()["retryable"] is True


async def test_an_export_is_lines_that_an_import_takes_back(served: Served) -> None:
    made = await compacted(served, "exported")
    other = await apps.new_tenant(served.app)

    export = await served.http.get(f"/v1/sessions/{made['session_id']}/export", headers=served.operator.headers)
    imported = await served.http.post("/v1/import", content=export.content, headers=other.headers)
    again = await served.http.post("/v1/import", content=export.content, headers=other.headers)
    back = await served.http.get(f"/v1/manifests/{made['manifest_id']}/window", headers=other.headers)

    assert export.headers["Content-Type"].startswith("application/x-ndjson")
    assert len(export.content.splitlines()) == 3
    assert (imported.status_code, imported.json()["manifests"]) == (200, 1), imported.text
    assert (again.status_code, again.json()["skipped"]) == (200, 1), again.text
    assert back.json()["messages"] == window()


@pytest.mark.parametrize("line", [b"{", b'{"type":"x"}', b'{"a":1,"a":1}', b"\xff", b"[]"])
async def test_an_import_of_anything_else_is_refused_in_our_words(served: Served, line: bytes) -> None:
    answer = await served.http.post("/v1/import", content=line + b"\n", headers=served.operator.headers)

    assert answer.status_code in (400, 422)
    assert answer.headers["Content-Type"] == "application/problem+json"


async def ended(served: Served, path: str) -> dict[str, Any]:
    for _ in range(500):
        job: dict[str, Any] = (await served.http.get(path, headers=served.operator.headers)).json()
        if job["status"] != "running":
            return job
        await asyncio.sleep(0.02)
    raise AssertionError(f"{path} does not end")


@pytest.mark.parametrize("kind", ["scan", "repair", "reconcile", "redact-rescan"])
async def test_a_job_is_started_followed_and_found_under_its_own_kind_alone(served: Served, kind: str) -> None:
    headers = served.operator.headers

    started = await served.http.post(f"/v1/admin/{kind}", headers=headers)
    job = await ended(served, started.headers["Location"])
    elsewhere = [
        await served.http.get(f"/v1/admin/{other}/{job['job_id']}", headers=headers)
        for other in {"scan", "repair", "reconcile", "redact-rescan"} - {kind}
    ]

    assert started.status_code == 202
    assert started.headers["Location"] == f"/v1/admin/{kind}/{job['job_id']}"
    assert (job["kind"], job["status"], job["findings_total"]) == (kind, "done", 0)
    assert {answer.status_code for answer in elsewhere} == {404}


@pytest.mark.parametrize("kind", ["scan", "repair"])
async def test_a_scan_and_a_repair_look_at_the_index_unless_told_not_to(served: Served, kind: str) -> None:
    headers = served.operator.headers
    await compacted(served, f"scanned {kind}")

    jobs = [
        await ended(served, (await served.http.post(f"/v1/admin/{kind}", headers=headers, content=body)).headers["Location"])
        for body in (b"", b"{}", b'{"index":true}', b'{"index":false}')
    ]

    assert [job["progress"]["points"] > 0 for job in jobs] == [True, True, True, False]


async def test_a_key_is_made_used_rotated_and_revoked(served: Served) -> None:
    headers = served.operator.headers

    async def status(key: str) -> int:
        return (await served.http.get("/v1/sessions", headers={"Authorization": f"Bearer {key}"})).status_code

    made = await served.http.post("/v1/admin/keys", json={"name": "ci"}, headers=headers)
    before = await status(made.json()["key"])
    rotated = await served.http.post(f"/v1/admin/keys/{made.json()['key_id']}/rotate", json={}, headers=headers)
    old, new = await status(made.json()["key"]), await status(rotated.json()["key"])
    revoked = await served.http.delete(f"/v1/admin/keys/{rotated.json()['key_id']}", headers=headers)
    after = await status(rotated.json()["key"])
    listed = [key for page in await pages(served, "/v1/admin/keys", "keys", 2) for key in page]

    assert (made.status_code, rotated.status_code, revoked.status_code) == (201, 201, 204)
    assert (before, old, new, after) == (200, 401, 200, 401)
    assert all(key["key"] is None for key in listed)
    assert len({key["key_id"] for key in listed}) == len(listed) >= 3


async def test_a_tenant_is_made_with_a_key_that_works_and_is_shown_once(served: Served) -> None:
    name = f"tenant {uuid4()}"

    made = await served.http.post("/v1/admin/tenants", json={"name": name}, headers=served.operator.headers)
    theirs = httpx.Headers({"Authorization": f"Bearer {made.json()['key']}"})
    empty = await served.http.get("/v1/sessions", headers=theirs)
    listed = await served.http.get("/v1/admin/tenants", headers=served.operator.headers)
    forbidden = await served.http.get("/v1/admin/tenants", headers=theirs)

    assert (made.status_code, empty.status_code, forbidden.status_code) == (201, 200, 403)
    assert empty.json()["sessions"] == []
    assert made.json()["key"] not in listed.text
    assert name in [tenant["name"] for tenant in listed.json()["tenants"]]


async def test_what_is_erased_answers_204_and_then_410(served: Served) -> None:
    headers = served.operator.headers
    made = await compacted(served, "erased")

    run = await served.http.delete(f"/v1/manifests/{made['manifest_id']}", headers=headers)
    run_again = await served.http.get(f"/v1/manifests/{made['manifest_id']}", headers=headers)
    session = await served.http.delete(f"/v1/sessions/{made['session_id']}", headers=headers)
    session_again = await served.http.get(f"/v1/sessions/{made['session_id']}", headers=headers)

    assert (run.status_code, run.content, run_again.status_code) == (204, b"", 410)
    assert (session.status_code, session.content, session_again.status_code) == (204, b"", 410)


async def test_mcp_stands_behind_the_same_edge(served: Served) -> None:
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    accept = {"Accept": "application/json, text/event-stream"}

    stranger = await served.http.post("/mcp", json=call, headers=accept)
    caller = await served.http.post("/mcp", json=call, headers={**accept, **served.operator.headers})

    assert stranger.status_code == 401
    assert stranger.json()["type"].endswith(":unauthenticated")
    assert caller.status_code == 200, caller.text
    assert "recall_memory" in caller.text
    counted = (await served.http.get("/metrics")).text
    assert 'coatcheck_requests_total{method="POST",route="/mcp",status="200"}' in counted
    assert 'coatcheck_requests_total{method="POST",route="/mcp",status="401"}' in counted
