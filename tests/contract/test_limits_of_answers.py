"""Cached answers among what a tenant stores: they count, and they make room for windows."""

from __future__ import annotations

import httpx

from tests import caching
from tests.apps import Caller
from tests.contract.test_limits import full, limited
from tests.windows import request, window


async def test_cached_answers_count_and_what_does_not_fit_is_not_kept(http: httpx.AsyncClient, operator: Caller) -> None:
    path = f"/v1/admin/tenants/{operator.tenant_id}/limits"
    await http.post("/v1/compactions", json=request("first"))
    windows = (await http.get(path)).json()["stored"]

    assert (await caching.store(http, "x" * 1_000, prompt="one"))["stored"]
    one = (await http.get(path)).json()["stored"]
    await limited(http, operator, max_bytes=one["bytes"] + 500)
    refused_answer = await caching.store(http, "y" * 1_000, prompt="two")
    small = await caching.store(http, "z", prompt="three")
    no_more = await http.post("/v1/compactions", json=request("second", window(mark="beta")))
    await http.post("/v1/cache/purge", json={"whose": "own"})

    assert one == {"segments": windows["segments"], "bytes": windows["bytes"] + 1_002}
    assert (refused_answer["stored"], refused_answer["reason"]) == (False, "quota")
    assert small["stored"]
    assert full(no_more)
    assert (await http.get(path)).json()["stored"] == windows
    assert (await caching.lookup(http, prompt="two"))["answer"] is None


async def test_cached_answers_make_room_for_a_window_the_oldest_first(http: httpx.AsyncClient, operator: Caller) -> None:
    path = f"/v1/admin/tenants/{operator.tenant_id}/limits"
    await http.post("/v1/compactions", json=request("first"))
    first = (await http.get(path)).json()["stored"]["bytes"]
    for prompt in ("oldest", "older", "newest"):
        assert (await caching.store(http, prompt[0] * first, prompt=prompt))["stored"]
    full_now = (await http.get(path)).json()["stored"]["bytes"]
    await limited(http, operator, max_bytes=full_now)

    second = await http.post("/v1/compactions", json=request("second", window(mark="beta")))

    left = [(await caching.lookup(http, prompt=prompt))["answer"] for prompt in ("oldest", "older", "newest")]
    added = second.json()["segments"]["total"] - second.json()["segments"]["already_stored"]
    assert second.status_code == 201
    assert added > 0
    assert left[0] is None
    assert left[2] == "n" * first
    assert (await http.get(path)).json()["stored"]["bytes"] <= full_now


async def test_answers_stay_where_all_of_them_would_not_make_room(http: httpx.AsyncClient, operator: Caller) -> None:
    await http.post("/v1/compactions", json=request("first"))
    assert (await caching.store(http, "x" * 10, prompt="one"))["stored"]
    stored = (await http.get(f"/v1/admin/tenants/{operator.tenant_id}/limits")).json()["stored"]

    await limited(http, operator, max_bytes=stored["bytes"])
    no_bytes = await http.post("/v1/compactions", json=request("second", window(mark="beta")))
    await limited(http, operator, max_segments=stored["segments"])
    no_segments = await http.post("/v1/compactions", json=request("second", window(mark="beta")))

    assert full(no_bytes)
    assert full(no_segments)
    assert (await caching.lookup(http, prompt="one"))["answer"] == "x" * 10
