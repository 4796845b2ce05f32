"""The same names, words and idempotency keys in several hands: each is the first, and none is another's."""

from __future__ import annotations

import asyncio
import json
from itertools import pairwise
from typing import Any

import httpx
import pytest

from tests.isolation.town import Person, Town
from tests.windows import request, window

KEY = {"Idempotency-Key": '"one-key-for-all"'}


async def hand_in(person: Person, session: str, messages: list[dict[str, Any]]) -> httpx.Response:
    return await person.http.post("/v1/compactions", json=request(session, messages), headers=KEY)


async def entries_of(person: Person, manifest_id: str) -> list[dict[str, Any]]:
    page = await person.http.get(f"/v1/manifests/{manifest_id}/entries?text=true&page_size=200")
    assert page.status_code == 200, page.text
    entries: list[dict[str, Any]] = page.json()["entries"]
    return entries


async def test_T12_everybody_is_the_first_to_store_the_same_window_under_the_same_name_and_key(town: Town) -> None:
    messages = window(mark="same")

    answers = [await hand_in(person, "same", messages) for person in town.everybody.values()]

    assert [answer.status_code for answer in answers] == [201] * 5
    bodies = [answer.json() for answer in answers]
    assert {body["segments"]["already_stored"] for body in bodies} == {0}
    for one, other in pairwise(bodies):
        assert one["segments"] == other["segments"]
        assert one["redactions"] == other["redactions"]
    assert len({body["session_id"] for body in bodies}) == len({body["manifest_id"] for body in bodies}) == 5


async def test_T17_everybody_at_once_is_still_everybody_by_itself(town: Town) -> None:
    messages = window(mark="at-once")

    answers = await asyncio.gather(*(hand_in(person, "at once", messages) for person in town.everybody.values() for _ in (1, 2)))

    bodies = [answer.json() for answer in answers]
    assert sorted(answer.status_code for answer in answers) == [200] * 5 + [201] * 5
    assert len({body["manifest_id"] for body in bodies}) == 5
    assert {body["segments"]["already_stored"] for body in bodies} == {0}


async def test_a_name_means_the_callers_own_session(town: Town) -> None:
    for person in (town.alice, town.bob, town.dave):
        await person.compact("named", window(mark=f"of-{person.name}"))

    for person in (town.alice, town.bob, town.dave):
        texts = [hit["text"] for hit in await person.recall("of health failed", "named", top_k=50)]
        assert texts
        assert all(f"of-{person.name}" in text for text in texts)


async def test_T23_the_same_hash_is_read_by_everybody_from_its_own_session(town: Town) -> None:
    messages = window(mark="hashed")
    made = {person.name: await person.compact("hashed", messages) for person in (town.alice, town.bob, town.dave)}
    sha256 = (await entries_of(town.alice, made["alice"]["manifest_id"]))[0]["sha256"]

    for person in (town.alice, town.bob, town.dave):
        for digits in (sha256, sha256[:12]):
            segment = (await person.http.get(f"/v1/segments/{digits}")).json()
            assert (segment["session_id"], segment["manifest_id"]) == (
                made[person.name]["session_id"],
                made[person.name]["manifest_id"],
            )


@pytest.mark.parametrize("whole", [True, False], ids=["session", "manifest"])
async def test_T23_erasing_ones_own_leaves_the_others_whole(town: Town, whole: bool) -> None:
    name, messages = f"erased-{whole}", window(mark=f"erased-{whole}")
    made = {person.name: await person.compact(name, messages) for person in (town.alice, town.bob, town.dave)}
    mine = made["alice"]
    entries = await entries_of(town.alice, mine["manifest_id"])

    path = f"/v1/sessions/{mine['session_id']}" if whole else f"/v1/manifests/{mine['manifest_id']}"
    assert (await town.alice.http.delete(path)).status_code == 204

    assert {(await town.alice.http.get(f"/v1/segments/{entry['sha256']}")).status_code for entry in entries} == {410}
    assert not [hit for hit in await town.alice.recall(f"{name} health", top_k=50) if name in hit["text"]]
    for person in (town.bob, town.dave):
        manifest_id = made[person.name]["manifest_id"]
        assert (await person.http.get(f"/v1/manifests/{manifest_id}/window")).json()["messages"] == messages
        assert [entry["text"] for entry in await entries_of(person, manifest_id)] == [entry["text"] for entry in entries]
        assert any(name in hit["text"] for hit in await person.recall(f"{name} health", name))
    scan = await finished(town.operator, "scan")
    assert (scan["status"], scan["findings_total"]) == ("done", 0), scan


async def test_an_export_holds_its_session_and_an_import_of_it_stores_anew(town: Town) -> None:
    messages = window(mark="exported")
    mine = await town.alice.compact("exported", messages)
    await town.bob.compact("exported", window(mark="not-exported"))

    lines = (await town.alice.http.get(f"/v1/sessions/{mine['session_id']}/export")).content
    taken_in = await town.dave.http.post("/v1/import", content=lines)

    assert b"not-exported" not in lines
    assert [json.loads(line)["type"] for line in lines.splitlines()] == ["session", "run", "end"]
    assert (taken_in.json()["manifests"], taken_in.json()["segments"]) == (1, mine["segments"]["total"])
    assert (await town.alice.http.get(f"/v1/manifests/{mine['manifest_id']}/window")).json()["messages"] == messages
    theirs = await town.dave.http.get(f"/v1/manifests/{mine['manifest_id']}")
    assert theirs.json()["session_id"] == mine["session_id"]  # its ids were free in that tenant: they are unique within one
    assert (await town.dave.http.delete(f"/v1/sessions/{mine['session_id']}")).status_code == 204
    assert (await town.alice.http.get(f"/v1/manifests/{mine['manifest_id']}/window")).json()["messages"] == messages
    assert any("exported" in hit["text"] for hit in await town.alice.recall("exported health", "exported"))


async def test_an_import_into_ids_that_a_colleague_has_takes_others(town: Town) -> None:
    mine = await town.alice.compact("imported", window(mark="imported"))
    lines = (await town.alice.http.get(f"/v1/sessions/{mine['session_id']}/export")).content

    taken_in = await town.operator.http.post("/v1/import", content=lines)

    assert taken_in.json()["manifests"] == 1
    sessions = (await town.operator.http.get("/v1/sessions")).json()["sessions"]
    theirs = next(session for session in sessions if session["name"] == "imported")
    assert theirs["session_id"] != mine["session_id"]
    assert theirs["manifests"] == 1
    assert (await town.operator.http.get(f"/v1/manifests/{mine['manifest_id']}")).status_code == 404


async def test_a_handoff_of_another_is_ordinary_text(town: Town) -> None:
    """Only a handoff of the same session, readable to the caller, is recognised; no other one tells that it is known."""
    theirs = await town.alice.compact("handoff", window(mark="handed"))

    mine = await town.bob.compact("handoff", [theirs["handoff"]["message"], *window(mark="mine")])

    assert mine["parent_manifest_id"] is None
    entries = await entries_of(town.bob, mine["manifest_id"])
    assert all(entry["handoff_manifest_id"] is None for entry in entries)
    named = await town.bob.http.post(
        "/v1/compactions", json=request("handoff", window(mark="named"), parent_manifest_id=theirs["manifest_id"])
    )
    assert named.status_code == 422


async def finished(person: Person, kind: str) -> dict[str, Any]:
    """A job, run to its end."""
    job: dict[str, Any] = (await person.http.post(f"/v1/admin/{kind}")).json()
    while job["status"] == "running":
        await asyncio.sleep(0.02)
        job = (await person.http.get(f"/v1/admin/{kind}/{job['job_id']}")).json()
    return job
