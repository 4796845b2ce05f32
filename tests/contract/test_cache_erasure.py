"""What leaves the cache: with what it rests on, by purge, by age, with its tenant (T25, T37)."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import Any
from uuid import UUID

import httpx
import pytest
import sqlalchemy as sa

from coatcheck.app.compose import App
from coatcheck.domain.errors import IndexUnavailable
from coatcheck.identity.operations import MEMBER
from coatcheck.identity.scopes import tenant_scope
from coatcheck.memory.cache_expiry import CacheExpiry
from coatcheck.store import offboarding
from coatcheck.store.database import WorkerTransaction
from tests import apps
from tests.apps import Caller
from tests.caching import circumstances, lookup, store, why
from tests.windows import request, window

MARKER = "marker-" + "5eed" * 4


async def kept_rows(app: App, caller: Caller) -> int:
    """How many entries the tenant has, whoever may find them."""

    async def count(tx: WorkerTransaction) -> int:
        return int(await tx.connection.scalar(sa.text("SELECT count(*) FROM cache_entries")) or 0)

    return await app.parts.database.work(tenant_scope(caller.tenant_id), count)


async def compacted(http: httpx.AsyncClient, session: str, **more: object) -> dict[str, Any]:
    body: dict[str, Any] = (await http.post("/v1/compactions", json=request(session, window(mark=session), **more))).json()
    return body


async def test_T25_an_answer_goes_with_its_session(app: App, http: httpx.AsyncClient, operator: Caller) -> None:
    session = (await compacted(http, "conversation"))["session_id"]
    await store(http, MARKER, session=session)

    gone = await http.delete(f"/v1/sessions/{session}")
    found = await http.post("/v1/cache/lookup", json=circumstances(session=session))

    assert gone.status_code == 204
    assert found.status_code == 410
    assert await kept_rows(app, operator) == 0


@pytest.mark.parametrize("named", ["session_id", "manifest_id"])
@pytest.mark.parametrize("erased", ["sessions", "manifests"])
async def test_T25_an_answer_goes_with_the_session_or_manifest_that_it_rests_on(
    app: App, http: httpx.AsyncClient, operator: Caller, named: str, erased: str
) -> None:
    """Also another principal's answer: it was made of what is erased."""
    made = await compacted(http, "source", visibility="public")
    other = await apps.new_principal(app, operator.tenant_id)
    sources = [{"id": made[named].upper(), "revision": "1"}]
    async with apps.client(app, other) as theirs:
        await store(theirs, MARKER, sources=sources)
        before = await lookup(theirs, sources=sources)

        gone = await http.delete(f"/v1/{erased}/{made['session_id' if erased == 'sessions' else 'manifest_id']}")
        after = await lookup(theirs, sources=sources)

    assert gone.status_code == 204
    assert (before["outcome"], after["answer"]) == ("hit-exact", None)
    assert await kept_rows(app, operator) == 0


async def test_an_answer_of_a_session_goes_with_any_of_its_manifests(app: App, http: httpx.AsyncClient, operator: Caller) -> None:
    made = await compacted(http, "one of")
    await store(http, MARKER, session="one of")

    await http.delete(f"/v1/manifests/{made['manifest_id']}")

    assert await kept_rows(app, operator) == 0
    assert (await lookup(http, session="one of"))["answer"] is None


async def test_it_is_out_of_reach_with_the_mark_though_the_index_is_down(
    app: App, http: httpx.AsyncClient, operator: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = (await compacted(http, "marked"))["session_id"]
    await store(http, MARKER, session=session)

    async def out(*_: object) -> None:
        raise IndexUnavailable

    with monkeypatch.context() as patched:
        patched.setattr(app.parts.index, "delete_session", out)
        pending = await http.delete(f"/v1/sessions/{session}")
        found = await http.post("/v1/cache/lookup", json=circumstances(session=session))
        rows = await kept_rows(app, operator)

    assert pending.json()["type"].endswith(":erase-pending")
    assert found.status_code == 410
    assert rows == 0


async def test_stores_and_erasures_at_once_leave_nothing(app: App, http: httpx.AsyncClient, operator: Caller) -> None:
    """Whoever comes first: an answer that rests on a session is not there when the session is not."""
    for turn in range(6):
        made = await compacted(http, f"race {turn}")
        sources = [{"id": made["session_id"], "revision": "1"}]
        scopes = [(await lookup(http, sources=sources, prompt=f"prompt {n}"))["scope"] for n in range(4)]
        stores = [
            http.post(
                "/v1/cache/store", json={**circumstances(sources=sources, prompt=f"prompt {n}"), "answer": MARKER, "scope": scope}
            )
            for n, scope in enumerate(scopes)
        ]
        await asyncio.gather(*stores[:2], http.delete(f"/v1/sessions/{made['session_id']}"), *stores[2:])

        assert await kept_rows(app, operator) == 0


async def test_a_principal_purges_its_own_and_nobody_elses(app: App, http: httpx.AsyncClient, operator: Caller) -> None:
    member = await apps.new_principal(app, operator.tenant_id)
    async with apps.client(app, member) as theirs:
        await store(theirs, "theirs")
        await store(http, "mine")

        purged = await theirs.post("/v1/cache/purge", json={})

        assert purged.json() == {"purged": 1}
        assert (await lookup(theirs))["answer"] is None
        assert (await lookup(http))["answer"] == "mine"


async def test_a_key_kept_to_a_session_counts_and_purges_of_that_session_alone(
    app: App, http: httpx.AsyncClient, operator: Caller
) -> None:
    mine, elsewhere = [(await compacted(http, name))["session_id"] for name in ("mine", "elsewhere")]
    made = (await http.post("/v1/admin/keys", json={"name": "narrow", "sessions": [mine]})).json()
    for session in (mine, elsewhere, "not kept here"):
        await store(http, MARKER, session=session)

    async with apps.client(app, Caller(operator.tenant_id, operator.principal_id, made["key"])) as narrow:
        seen = (await narrow.get("/v1/cache")).json()["entries"]
        refused = [
            (await narrow.post("/v1/cache/purge", json=names)).status_code
            for names in ({}, {"source": "contract-17"}, {"session": elsewhere}, {"session": "not kept here"}, {"whose": "tenant"})
        ]
        left = await kept_rows(app, operator)
        purged = (await narrow.post("/v1/cache/purge", json={"session": mine})).json()

    assert seen == 1
    assert refused == [403, 403, 404, 404, 403]
    assert (left, purged) == (3, {"purged": 1})


async def test_a_purge_takes_what_all_of_its_names_name(http: httpx.AsyncClient) -> None:
    kept = (await compacted(http, "kept here"))["session_id"]
    a, b = [{"id": "a", "revision": "1"}], [{"id": "a", "revision": "1"}, {"id": "b", "revision": "1"}]
    for session in ("elsewhere", kept):
        for sources in (a, b, []):
            await store(http, "an answer", session=session, sources=sources)

    def purge(**names: object) -> Any:
        return http.post("/v1/cache/purge", json=names)

    purged = [
        (await purge(session="nobody's")).json(),
        (await purge(source="c")).json(),
        (await purge(session="kept here", source="b")).json(),
        (await purge(source="a")).json(),
        (await purge(session=kept)).json(),
        (await purge(session="elsewhere")).json(),
    ]

    assert [one["purged"] for one in purged] == [0, 0, 1, 3, 1, 1]


@pytest.mark.parametrize("whose", ["principal", "tenant"])
async def test_only_an_operator_purges_what_others_have_stored(
    app: App, http: httpx.AsyncClient, operator: Caller, whose: str
) -> None:
    member = await apps.new_principal(app, operator.tenant_id, MEMBER)
    names = {"whose": whose, **({"principal_id": str(member.principal_id)} if whose == "principal" else {})}
    other_tenant = await apps.new_tenant(app)
    async with apps.client(app, member) as theirs, apps.client(app, other_tenant) as foreign:
        await store(theirs, "theirs")
        await store(http, "mine")
        await store(foreign, "foreign")

        refused = await theirs.post("/v1/cache/purge", json=names)
        elsewhere = await foreign.post("/v1/cache/purge", json=names)
        purged = await http.post("/v1/cache/purge", json=names)

        assert refused.status_code == 403
        assert elsewhere.json() == {"purged": 0 if whose == "principal" else 1}
        assert purged.json() == {"purged": 1 if whose == "principal" else 2}
        assert (await lookup(theirs))["answer"] is None


async def test_an_operator_purges_a_conversation_that_it_may_not_read(app: App, http: httpx.AsyncClient, operator: Caller) -> None:
    member = await apps.new_principal(app, operator.tenant_id, MEMBER)
    async with apps.client(app, member) as theirs:
        session = (await compacted(theirs, "not the operator's"))["session_id"]
        await store(theirs, "theirs", session=session)

        own = await http.post("/v1/cache/purge", json={"session": session})
        tenants = await http.post("/v1/cache/purge", json={"whose": "tenant", "session": session})

    assert own.status_code == 404
    assert tenants.json() == {"purged": 1}


@pytest.mark.parametrize("body", [{"whose": "principal"}, {"principal_id": str(UUID(int=7))}, {"whose": "everybody"}])
async def test_a_purge_that_contradicts_itself_is_refused(http: httpx.AsyncClient, body: dict[str, str]) -> None:
    assert (await http.post("/v1/cache/purge", json=body)).status_code == 422


async def test_what_has_expired_is_deleted_on_the_next_walk(app: App, http: httpx.AsyncClient, operator: Caller) -> None:
    await store(http, "short", session="short", ttl_s=0.01)
    await store(http, "long", session="long")
    await asyncio.sleep(0.05)

    assert await CacheExpiry(app.parts).walk() >= 1
    assert await kept_rows(app, operator) == 1
    assert (await lookup(http, session="long"))["answer"] == "long"


async def test_what_was_kept_for_longer_than_is_allowed_by_now_is_deleted_on_the_next_walk(
    app: App, http: httpx.AsyncClient, operator: Caller
) -> None:
    await store(http, "for the old time", session="old", ttl_s=3_600)
    await store(http, "for no longer than now", session="new", ttl_s=30)
    shorter = app.parts.settings.model_copy(update={"response_cache_ttl_s": 60})

    await CacheExpiry(dataclasses.replace(app.parts, settings=shorter)).walk()

    assert await kept_rows(app, operator) == 1
    assert (await lookup(http, session="new"))["answer"] == "for no longer than now"


async def test_a_rescan_keeps_nothing_that_other_rules_have_seen(app: App, http: httpx.AsyncClient, operator: Caller) -> None:
    await store(http, "an answer")

    async def age(tx: WorkerTransaction) -> None:
        await tx.connection.execute(sa.text("UPDATE cache_entries SET schema = repeat('0', 64)"))

    await app.parts.database.work(tenant_scope(operator.tenant_id), age)
    found = await lookup(http)
    job = (await http.post("/v1/admin/redact-rescan")).json()
    while job["status"] == "running":
        job = (await http.get(f"/v1/admin/redact-rescan/{job['job_id']}")).json()

    assert why(found) == "ineligible:schema"
    assert job["status"] == "done"
    assert await kept_rows(app, operator) == 0


async def test_a_tenants_answers_go_with_the_tenant(app: App, http: httpx.AsyncClient, operator: Caller) -> None:
    await store(http, "an answer")

    async def off_board(tx: WorkerTransaction) -> None:
        await offboarding.begin(tx, operator.tenant_id, None)
        await offboarding.delete_tenant(tx)

    await app.parts.database.work(tenant_scope(operator.tenant_id), off_board)

    assert await kept_rows(app, operator) == 0
