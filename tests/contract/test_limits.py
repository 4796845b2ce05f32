"""A tenant's limits over HTTP: refused in the contract's words, nothing stored, nobody else concerned."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import pytest

from coatcheck.app.compose import App
from coatcheck.domain.identifiers import uuid7
from coatcheck.identity.operations import OPERATOR
from tests import apps, rpc
from tests.apps import Caller
from tests.contract.stored import rows
from tests.windows import request, window


async def limited(http: httpx.AsyncClient, caller: Caller, **limits: float | int | None) -> dict[str, Any]:
    changed = await http.put(f"/v1/admin/tenants/{caller.tenant_id}/limits", json=limits)
    assert changed.status_code == 200, changed.text
    body: dict[str, Any] = changed.json()
    return body


def refused(answer: httpx.Response) -> int:
    """The seconds after which the same request helps."""
    body = answer.json()
    assert (answer.status_code, body["type"]) == (429, "urn:coatcheck:problem:rate-limited"), answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert body["retryable"] is True
    return int(answer.headers["retry-after"])


def full(answer: httpx.Response) -> bool:
    """Whether it is refused for what is stored, which no waiting changes."""
    body = answer.json()
    assert "retry-after" not in answer.headers
    return (answer.status_code, body["type"], body["retryable"]) == (429, "urn:coatcheck:problem:quota-exceeded", False)


async def chunks(body: bytes) -> AsyncIterator[bytes]:
    """A body whose length no header announces."""
    yield body


async def neighbour(app: App) -> tuple[Caller, httpx.AsyncClient]:
    caller = await apps.new_tenant(app)
    return caller, apps.client(app, caller)


async def test_by_default_there_are_no_limits(http: httpx.AsyncClient, operator: Caller) -> None:
    found = (await http.get(f"/v1/admin/tenants/{operator.tenant_id}/limits")).json()

    nothing = dict.fromkeys(
        ("requests_per_minute", "bytes_per_minute", "embedding_seconds_per_minute", "max_segments", "max_bytes")
    )
    assert found == {
        "tenant_id": str(operator.tenant_id), "own": nothing, "effective": nothing, "stored": {"segments": 0, "bytes": 0},
    }  # fmt: skip


async def test_T34_who_asks_more_often_than_it_may_is_told_when_to_ask_again(
    app: App, http: httpx.AsyncClient, operator: Caller
) -> None:
    caller, theirs = await neighbour(app)
    await limited(http, caller, requests_per_minute=3)
    async with theirs:
        for _ in range(3):
            assert (await theirs.get("/v1/sessions")).status_code == 200
        before = await rows(app, caller.tenant_id)

        late = [
            await theirs.get("/v1/sessions"),
            await theirs.post("/v1/compactions", json=request("s")),
            await theirs.post("/v1/compactions", content=b"\xff no JSON"),
            await theirs.post("/mcp", json=rpc.message("tools/list", {}), headers=rpc.HEADERS),
        ]

        assert {refused(answer) for answer in late} <= {19, 20}
        assert await rows(app, caller.tenant_id) == before
        assert (await http.get("/v1/sessions")).status_code == 200
        await limited(http, caller)
        assert (await theirs.post("/v1/compactions", json=request("s"))).status_code == 201


async def test_who_sets_limits_can_undo_one_that_shuts_its_own_tenant_out(
    app: App, http: httpx.AsyncClient, operator: Caller
) -> None:
    path = f"/v1/admin/tenants/{operator.tenant_id}/limits"
    without = await apps.new_principal(app, operator.tenant_id, OPERATOR)
    await limited(http, operator, requests_per_minute=1, bytes_per_minute=1)
    await http.get("/v1/sessions")  # all that there is for this minute

    refused(await http.get("/v1/sessions"))
    async with apps.client(app, without) as others:
        refused(await others.get(path))
    seen = await http.get(path)
    undone = await http.put(path, content=chunks(b"{}"))

    assert (seen.status_code, undone.status_code) == (200, 200)
    assert (await http.get("/v1/sessions")).status_code == 200


async def test_a_stranger_is_refused_as_a_stranger_and_costs_nobody_anything(app: App, http: httpx.AsyncClient) -> None:
    caller, theirs = await neighbour(app)
    await limited(http, caller, requests_per_minute=2)
    async with theirs:
        wrong = {"Authorization": f"Bearer {caller.key[:-2]}xx"}
        for _ in range(5):
            assert (await theirs.get("/v1/sessions", headers=wrong)).status_code == 401
        assert (await theirs.get("/readyz")).status_code == 200

        assert (await theirs.get("/v1/sessions")).status_code == 200


async def test_a_body_beyond_the_tenants_bytes_is_not_even_read(app: App, http: httpx.AsyncClient) -> None:
    caller, theirs = await neighbour(app)
    await limited(http, caller, bytes_per_minute=10_000)
    body = b'{"session": "s", "window": {"messages": []}}'.ljust(8_000)
    read: list[int] = []

    async def pieces() -> AsyncIterator[bytes]:
        for number in range(100):
            read.append(number)
            yield body[:1_000]

    async with theirs:
        assert (await theirs.post("/v1/compactions", content=body)).status_code == 422
        before = await rows(app, caller.tenant_id)

        announced = await theirs.post("/v1/compactions", content=body)
        unannounced = await theirs.post("/v1/compactions", content=pieces())

        assert refused(announced) in (35, 36)  # 6,000 bytes at 10,000 a minute
        refused(unannounced)
        assert len(read) < 10
        assert await rows(app, caller.tenant_id) == before


async def test_a_window_that_does_not_fit_is_refused_and_nothing_of_it_is_stored(
    app: App, http: httpx.AsyncClient, operator: Caller
) -> None:
    made = (await http.post("/v1/compactions", json=request("first"))).json()
    stored = (await http.get(f"/v1/admin/tenants/{operator.tenant_id}/limits")).json()["stored"]
    await limited(http, operator, max_segments=stored["segments"] + 2)
    before = await rows(app, operator.tenant_id)

    too_much = await http.post("/v1/compactions", json=request("second", window(mark="beta")))
    again = await http.post("/v1/compactions", json=request("first"))

    assert stored["segments"] == made["segments"]["total"] - made["segments"]["already_stored"]
    assert full(too_much)
    assert await rows(app, operator.tenant_id) == before
    assert (again.status_code, again.json()["manifest_id"]) == (200, made["manifest_id"])


async def test_bytes_are_counted_as_stored_and_erasing_makes_room(http: httpx.AsyncClient, operator: Caller) -> None:
    first = (await http.post("/v1/compactions", json=request("first"))).json()
    stored = (await http.get(f"/v1/admin/tenants/{operator.tenant_id}/limits")).json()["stored"]
    await limited(http, operator, max_bytes=stored["bytes"])
    entries = (await http.get(f"/v1/manifests/{first['manifest_id']}/entries?text=true&page_size=200")).json()["entries"]
    texts = {entry["sha256"]: len(entry["text"].encode()) for entry in entries}

    assert full(await http.post("/v1/compactions", json=request("second", window(mark="beta"))))
    assert (await http.delete(f"/v1/sessions/{first['session_id']}")).status_code == 204
    after = await http.post("/v1/compactions", json=request("second", window(mark="beta")))

    assert stored == {"segments": len(texts), "bytes": sum(texts.values())}
    assert after.status_code == 201
    assert (await http.delete(f"/v1/manifests/{after.json()['manifest_id']}")).status_code == 204
    left = (await http.get(f"/v1/admin/tenants/{operator.tenant_id}/limits")).json()["stored"]
    assert left == {"segments": 0, "bytes": 0}


async def test_two_windows_at_once_do_not_both_take_the_last_room(app: App, http: httpx.AsyncClient) -> None:
    import asyncio

    caller, theirs = await neighbour(app)
    async with theirs:
        first = (await theirs.post("/v1/compactions", json=request("first"))).json()
        one = first["segments"]["total"]
        await limited(http, caller, max_segments=2 * one + one // 2)

        answers = await asyncio.gather(
            *(theirs.post("/v1/compactions", json=request(f"s{n}", window(mark=f"mark{n}"))) for n in range(4))
        )

        assert sorted(answer.status_code for answer in answers) == [201, 429, 429, 429]
        stored = (await http.get(f"/v1/admin/tenants/{caller.tenant_id}/limits")).json()["stored"]
        assert stored["segments"] == 2 * one


async def test_the_embedders_time_is_charged_afterwards_and_holds_back_what_needs_it(app: App, http: httpx.AsyncClient) -> None:
    caller, theirs = await neighbour(app)
    await limited(http, caller, embedding_seconds_per_minute=1e-6)
    async with theirs:
        made = await theirs.post("/v1/compactions", json=request("s"))
        before = await rows(app, caller.tenant_id)

        held_back = [
            await theirs.post("/v1/compactions", json=request("t")),
            await theirs.post("/v1/recall", json={"query": "pool"}),
            await theirs.post("/v1/import", content=b""),
        ]

        assert made.status_code == 201
        for answer in held_back:
            refused(answer)
        assert await rows(app, caller.tenant_id) == before
        assert (await theirs.get(f"/v1/manifests/{made.json()['manifest_id']}/window")).status_code == 200


async def test_the_rerankers_time_is_charged_with_the_embedders(database_url: str, tmp_path: Path) -> None:
    settings = {"reranker": "auto", "rerank_limit_s": 60, "fusion_dense_weight": 0}
    async with (
        apps.foundations(database_url, tmp_path, **settings) as on,
        apps.app_on(on, alone=True) as one,
        apps.client(one, caller := await apps.new_tenant(one)) as mine,
    ):
        assert (await mine.post("/v1/compactions", json=request("s"))).status_code == 201
        asked = {"query": "which pool is exhausted", "session": "s"}
        await mine.post("/v1/recall", json={**asked, "rerank": "off"})  # what the window cost is taken
        without = on.models.embedding.take(caller.tenant_id)

        reranked = await mine.post("/v1/recall", json={**asked, "rerank": "on"})

        assert reranked.json()["legs"]["rerank"] == "used"
        assert without == 0
        assert on.models.embedding.take(caller.tenant_id) > 0


async def test_T13_the_metrics_count_refusals_without_a_tenants_name(app: App, http: httpx.AsyncClient) -> None:
    caller, theirs = await neighbour(app)
    await limited(http, caller, requests_per_minute=1)
    async with theirs:
        await theirs.get("/v1/sessions")
        await theirs.get("/v1/sessions")

        said = (await theirs.get("/metrics")).text

    assert 'coatcheck_limited_total{limit="requests_per_minute"}' in said
    assert str(caller.tenant_id) not in said


async def test_limits_are_for_tenants_that_exist_and_for_numbers_that_make_sense(http: httpx.AsyncClient, operator: Caller) -> None:
    unknown = await http.put(f"/v1/admin/tenants/{uuid7()}/limits", json={})
    wrong = [
        await http.put(f"/v1/admin/tenants/{operator.tenant_id}/limits", json=body)
        for body in (
            {"requests_per_minute": 0}, {"max_segments": -1}, {"max_bytes": 1.5}, {"requests": 5},
            {"requests_per_minute": 5e-324}, {"bytes_per_minute": 9e-7}, {"embedding_seconds_per_minute": 1.1e12},
            {"max_segments": 2**62 + 1}, {"max_bytes": 10**30},
        )
    ]  # fmt: skip

    assert unknown.status_code == 404
    assert [answer.status_code for answer in wrong] == [422] * len(wrong)
    assert (await http.get("/v1/sessions")).status_code == 200


@pytest.mark.parametrize(
    "limits",
    [
        dict.fromkeys(("requests_per_minute", "bytes_per_minute", "embedding_seconds_per_minute"), 1e12),
        dict.fromkeys(("max_segments", "max_bytes"), 2**62),
    ],
)
async def test_the_greatest_limits_limit_nothing(app: App, http: httpx.AsyncClient, limits: dict[str, float]) -> None:
    caller, theirs = await neighbour(app)
    await limited(http, caller, **limits)

    async with theirs:
        assert (await theirs.post("/v1/compactions", json=request("s"))).status_code == 201


async def test_the_least_rate_lets_one_request_in_and_names_a_wait(app: App, http: httpx.AsyncClient) -> None:
    caller, theirs = await neighbour(app)
    await limited(http, caller, requests_per_minute=1e-6)

    async with theirs:
        first, second = await theirs.get("/v1/sessions"), await theirs.get("/v1/sessions")
        await limited(http, caller, requests_per_minute=1e6)
        corrected = await theirs.get("/v1/sessions")

    assert first.status_code == 200
    assert 50_000_000 < refused(second) <= 60_000_000
    assert corrected.status_code == 200


async def test_what_is_stored_may_reach_its_limit_and_not_pass_it_by_one(app: App, http: httpx.AsyncClient) -> None:
    caller, theirs = await neighbour(app)
    async with theirs:
        assert (await theirs.post("/v1/compactions", json=request("one", window(mark="alpha")))).status_code == 201
        used = (await http.get(f"/v1/admin/tenants/{caller.tenant_id}/limits")).json()["stored"]
        for name in ("segments", "bytes"):
            await limited(http, caller, **{f"max_{name}": 2 * used[name] - 1})
            assert full(await theirs.post("/v1/compactions", json=request("two", window(mark="omega"))))
        await limited(http, caller, max_segments=2 * used["segments"], max_bytes=2 * used["bytes"])
        made = await theirs.post("/v1/compactions", json=request("two", window(mark="omega")))
        more = await theirs.post("/v1/compactions", json=request("three", window(mark="gamma")))

    assert made.status_code == 201
    assert full(more)


async def test_a_change_is_on_record(app: App, http: httpx.AsyncClient, operator: Caller) -> None:
    from coatcheck.identity.scopes import tenant_scope
    from coatcheck.store import audit

    changed = await limited(http, operator, max_segments=5)

    lines = await app.parts.database.work(tenant_scope(operator.tenant_id), lambda tx: audit.page(tx, None, 100))
    assert changed["own"]["max_segments"] == changed["effective"]["max_segments"] == 5
    assert [(line.action, UUID(line.target_id)) for line in lines] == [("tenant.limits", operator.tenant_id)]
