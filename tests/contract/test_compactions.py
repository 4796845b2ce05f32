"""Compactions over the routes: one window, one handoff, whatever happens in between."""

from __future__ import annotations

import httpx

from coatcheck.app.compose import App
from tests import apps
from tests.apps import Caller
from tests.windows import request, window


async def test_a_window_becomes_a_short_handoff_and_comes_back_whole(http: httpx.AsyncClient) -> None:
    messages = window()

    made = await http.post("/v1/compactions", json=request("checkout-bot/42", messages))

    assert made.status_code == 201, made.text
    body = made.json()
    assert body["handoff"]["chars"] == len(body["handoff"]["text"]) <= 1_900
    assert body["window"]["messages"] == len(messages)
    back = await http.get(f"/v1/manifests/{body['manifest_id']}/window")
    assert back.json() == {"format": "openai-chat", "system": None, "messages": messages}


async def test_the_same_request_again_gives_the_same_handoff(http: httpx.AsyncClient) -> None:
    first = await http.post("/v1/compactions", json=request("s"))

    again = await http.post("/v1/compactions", json=request("s"))

    assert (first.status_code, again.status_code) == (201, 200)
    assert again.json() == first.json()


async def test_the_same_key_with_another_body_is_a_conflict_and_stores_nothing(http: httpx.AsyncClient) -> None:
    headers = {"Idempotency-Key": '"one"'}
    await http.post("/v1/compactions", json=request("s"), headers=headers)

    other = await http.post("/v1/compactions", json=request("s", window(mark="beta")), headers=headers)

    assert other.status_code == 422
    assert other.json()["type"].endswith("idempotency-conflict")
    assert (await http.get("/v1/sessions")).json()["sessions"][0]["manifests"] == 1


async def test_an_exact_detail_is_recalled_by_meaning_by_manifest_and_by_hash(http: httpx.AsyncClient) -> None:
    body = (await http.post("/v1/compactions", json=request("s"))).json()

    found = (await http.post("/v1/recall", json={"query": "10.2.0.2:8443 failed with 502", "session": "s"})).json()

    hit = found["hits"][0]
    assert "GET /alpha/health on 10.2.0.2:8443 failed with 502\n" in hit["text"]
    entries = (await http.get(f"/v1/manifests/{body['manifest_id']}/entries?text=true")).json()["entries"]
    assert hit["text"] in [entry["text"] for entry in entries]
    assert (await http.get(f"/v1/segments/{hit['sha256'][:12]}")).json()["text"] == hit["text"]


async def test_a_handoff_in_the_next_window_chains_and_is_not_stored_again(http: httpx.AsyncClient) -> None:
    first = (await http.post("/v1/compactions", json=request("s"))).json()

    second_window = [first["handoff"]["message"], *window(mark="beta")]
    second = (await http.post("/v1/compactions", json=request("s", second_window))).json()

    assert second["parent_manifest_id"] == first["manifest_id"]
    back = (await http.get(f"/v1/manifests/{second['manifest_id']}/window")).json()
    assert back["messages"] == second_window
    entries = (await http.get(f"/v1/manifests/{second['manifest_id']}/entries")).json()["entries"]
    assert entries[0]["handoff_manifest_id"] == first["manifest_id"]
    assert entries[0]["sha256"] is None
    assert f"Manifest {second['manifest_id']} (follows {first['manifest_id']})" in second["handoff"]["text"]


async def test_the_tenth_handoff_in_a_row_is_no_longer_than_the_first_and_recall_reaches_all(http: httpx.AsyncClient) -> None:
    previous: list[dict[str, object]] = []
    lengths = []
    for number in range(10):
        body = (await http.post("/v1/compactions", json=request("s", [*previous, *window(mark=f"mark{number}")]))).json()
        lengths.append(body["handoff"]["chars"])
        previous = [body["handoff"]["message"]]

    found = (await http.post("/v1/recall", json={"query": "mark0 health 10.2.0.1:8443 failed", "session": "s"})).json()

    assert max(lengths) <= max(1_900, lengths[0])
    assert lengths[9] <= 1_900
    assert "/mark0/health" in found["hits"][0]["text"]


async def test_fifty_equal_results_are_fifty_entries_of_one_segment(http: httpx.AsyncClient) -> None:
    messages = window(calls=50, filler=1)
    for message in messages:
        if message["role"] == "tool":
            message["content"] = '{"status":"ok"}'

    body = (await http.post("/v1/compactions", json=request("s", messages))).json()

    page = (await http.get(f"/v1/manifests/{body['manifest_id']}/entries?page_size=200")).json()
    results = [entry for entry in page["entries"] if entry["kind"] == "tool_result"]
    assert len(results) == 50
    assert len({entry["sha256"] for entry in results}) == 1
    assert (await http.get(f"/v1/manifests/{body['manifest_id']}/window")).json()["messages"] == messages


async def test_another_principal_with_the_same_words_stores_its_own_first(
    app: App, operator: Caller, http: httpx.AsyncClient
) -> None:
    other = await apps.new_principal(app, operator.tenant_id)
    mine = (await http.post("/v1/compactions", json=request("s"))).json()

    async with apps.client(app, other) as second:
        theirs = (await second.post("/v1/compactions", json=request("s"))).json()

    assert theirs["session_id"] != mine["session_id"]
    assert theirs["segments"]["already_stored"] == mine["segments"]["already_stored"] == 0
