"""The same text in many sessions is one hit of a recall, which says where else it is, of the places that the caller may read."""

from __future__ import annotations

import httpx
import pytest_asyncio

from coatcheck.app.compose import App
from coatcheck.domain.canonical import sha256_of
from tests import apps
from tests.apps import Caller
from tests.contract.kept import hand_in
from tests.contract.recalling import hits, recall, said

SAME = "The medlar gateway listens on 9443 since the move."
OTHER = "The medlar gateway is restarted by whoever is on call."
COPIES = 24
"""More than a recall verifies at once."""


async def told(http: httpx.AsyncClient, session: str, *texts: str, visibility: str = "conversation") -> str:
    """Something of the session's own beside the texts, so that there is something to gain."""
    own = f"Nothing else in {session}. " + f"{session} goes on and on. " * 60
    made = await hand_in(
        http, session, {"messages": [said(own), *(said(text, "assistant") for text in texts)]}, visibility=visibility
    )
    return str(made["session_id"])


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def crowd(app: App) -> tuple[Caller, list[str]]:
    """One text in many sessions of somebody, and another one in one of them."""
    caller = await apps.new_tenant(app)
    async with apps.client(app, caller) as http:
        sessions = [await told(http, f"crowd-{number}", SAME) for number in range(COPIES)]
        await told(http, "alone", OTHER)
    return caller, sessions


async def test_a_text_takes_one_place_however_many_sessions_hold_it(app: App, crowd: tuple[Caller, list[str]]) -> None:
    caller, sessions = crowd

    async with apps.client(app, caller) as http:
        found = await hits(http, "medlar gateway", top_k=2)

    assert {hit["text"] for hit in found} == {SAME, OTHER}
    folded = next(hit for hit in found if hit["text"] == SAME)
    assert folded["sha256"] == sha256_of(SAME)
    assert folded["places"] == COPIES
    places = [folded["session_id"], *(place["session_id"] for place in folded["also_in"])]
    assert len(places) == len(set(places)) == 11
    assert set(places) <= set(sessions)
    alone = next(hit for hit in found if hit["text"] == OTHER)
    assert (alone["places"], alone["also_in"]) == (1, [])


async def test_each_place_is_where_the_text_stands(app: App, crowd: tuple[Caller, list[str]]) -> None:
    caller, _ = crowd

    async with apps.client(app, caller) as http:
        (folded,) = [hit for hit in await hits(http, "medlar gateway") if hit["text"] == SAME]
        for place in folded["also_in"]:
            page = (await http.get(f"/v1/manifests/{place['manifest_id']}/entries?text=true")).json()
            assert page["entries"][place["ordinal"]]["text"] == SAME


async def test_within_a_session_it_is_a_hit_of_that_session(app: App, crowd: tuple[Caller, list[str]]) -> None:
    caller, sessions = crowd

    async with apps.client(app, caller) as http:
        (here,) = [hit for hit in await hits(http, "medlar gateway", session=sessions[3]) if hit["text"] == SAME]

    assert (here["session_id"], here["places"], here["also_in"]) == (sessions[3], 1, [])


async def test_a_paste_of_the_hits_says_how_often_a_text_was_found(app: App, crowd: tuple[Caller, list[str]]) -> None:
    caller, _ = crowd

    async with apps.client(app, caller) as http:
        rendered = (await recall(http, "medlar gateway"))["rendered"]

    assert rendered.count(SAME) == 1
    assert f", in {COPIES} sessions]" in rendered


async def test_only_places_that_the_caller_may_read_count(app: App, operator: Caller, http: httpx.AsyncClient) -> None:
    colleague = await apps.new_principal(app, operator.tenant_id)
    await told(http, "mine alone", SAME)
    shared = await told(http, "for all", SAME, visibility="public")
    async with apps.client(app, colleague) as theirs:
        own = await told(theirs, "own", SAME)
        (found,) = [hit for hit in await hits(theirs, "medlar gateway") if hit["text"] == SAME]

    assert found["places"] == 2
    assert {found["session_id"], *(place["session_id"] for place in found["also_in"])} == {shared, own}
