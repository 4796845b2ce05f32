"""The same request at the same time, from clients of one app and of two: one handoff."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from coatcheck.ops import faults
from tests import apps
from tests.faults.pair import Scene
from tests.windows import request, window

pytestmark = pytest.mark.asyncio(loop_scope="module")

BODY = request("s", window(calls=3))


def handoffs(answers: list[httpx.Response]) -> set[tuple[str, str]]:
    assert {answer.status_code for answer in answers} <= {200, 201}, [answer.text for answer in answers]
    return {(answer.json()["manifest_id"], answer.json()["handoff"]["text"]) for answer in answers}


async def test_two_clients_of_one_app_get_one_handoff_and_one_of_them_made_it(at: Scene) -> None:
    answers = await asyncio.gather(*(at.one.post("/v1/compactions", json=BODY) for _ in range(4)))

    assert len(handoffs(answers)) == 1
    assert sorted(answer.status_code for answer in answers) == [200, 200, 200, 201]
    assert len(await at.runs()) == 1
    await at.assert_agreement()


@pytest.mark.parametrize("session", ["new", "known"])
async def test_clients_of_two_apps_get_one_handoff(at: Scene, session: str) -> None:
    if session == "known":
        await at.one.post("/v1/compactions", json=request("s", window(mark="earlier")))
    before = len(await at.runs())

    clients = [at.one, at.two, at.one, at.two]
    answers = await asyncio.gather(*(client.post("/v1/compactions", json=BODY) for client in clients))

    assert len(handoffs(answers)) == 1
    assert [answer.status_code for answer in answers].count(201) == 1
    assert len(await at.runs()) == before + 1
    assert len((await at.one.get("/v1/sessions")).json()["sessions"]) == 1
    await at.assert_agreement()


async def test_while_one_app_holds_the_work_the_other_waits_and_then_says_that_it_is_in_progress(at: Scene) -> None:
    async with faults.held("before-acknowledge", first_alone=True) as hold:
        first = asyncio.create_task(at.one.post("/v1/compactions", json=BODY))
        await hold.reached()
        waiting = await at.brief.post("/v1/compactions", json=BODY)
        hold.release()
        made = await first

    assert (waiting.status_code, waiting.json()["type"].rsplit(":", 1)[-1]) == (409, "in-progress")
    assert waiting.json()["retryable"]
    assert made.status_code == 201
    assert len(handoffs([made, await at.two.post("/v1/compactions", json=BODY)])) == 1


async def test_different_windows_of_one_session_at_the_same_time_are_each_stored_once(at: Scene) -> None:
    """They share most of their text, so they meet at the same rows."""
    bodies = [request("s", [*window(calls=6), {"role": "user", "content": f"Number {n}: go on."}]) for n in range(6)]

    answers = await asyncio.gather(*((at.one, at.two)[n % 2].post("/v1/compactions", json=body) for n, body in enumerate(bodies)))

    assert [answer.status_code for answer in answers] == [201] * 6, [answer.text for answer in answers]
    assert len(handoffs(answers)) == 6
    await at.assert_agreement()
    for body, answer in zip(bodies, answers, strict=True):
        back = (await at.two.get(f"/v1/manifests/{answer.json()['manifest_id']}/window")).json()
        assert back["messages"] == body["window"]["messages"]


async def test_a_key_that_reaches_less_does_not_get_the_answer_of_one_that_reaches_further(at: Scene) -> None:
    """The same principal with a key for another session alone: it may not join what its other key is having done."""
    elsewhere = (await at.one.post("/v1/compactions", json=request("elsewhere", window(mark="other")))).json()["session_id"]
    narrow = {"name": "narrow", "operations": ["compact", "read"], "sessions": [elsewhere]}
    key = (await at.one.post("/v1/admin/keys", json={**narrow, "principal_id": str(at.caller.principal_id)})).json()
    async with (
        apps.client(at.pair.first) as restricted,
        faults.held("before-persist", first_alone=True) as hold,
    ):
        wide = asyncio.create_task(at.one.post("/v1/compactions", json=BODY))
        await hold.reached()
        answer = await restricted.post("/v1/compactions", json=BODY, headers={"Authorization": f"Bearer {key['key']}"})
        hold.release()
        made = await wide

    assert made.status_code == 201
    assert answer.status_code == 404


async def test_who_may_no_longer_read_the_session_while_it_waits_is_told_nothing_of_it(at: Scene) -> None:
    """Not that it was erased: it was not."""
    session = (await at.one.post("/v1/compactions", json=request("shared", window(mark="first")))).json()["session_id"]
    bob = await apps.new_principal(at.pair.first, at.caller.tenant_id)
    await at.one.patch(f"/v1/sessions/{session}", json={"participants": [str(bob.principal_id)]})
    body = request(session, window(mark="bobs"))
    async with (
        apps.client(at.pair.first, bob) as here,
        apps.client(at.pair.second, bob) as there,
        faults.held("before-acknowledge", first_alone=True) as hold,
    ):
        first = asyncio.create_task(here.post("/v1/compactions", json=body))
        await hold.reached()
        waiting = asyncio.create_task(there.post("/v1/compactions", json=body))
        await asyncio.sleep(0.3)
        narrowed = await at.one.patch(f"/v1/sessions/{session}", json={"participants": []})
        answer = await waiting
        hold.release()
        await first

    assert narrowed.status_code == 200
    assert answer.status_code == 404
