"""What was erased is gone: by every route at once, and then from every table, every point and every handoff."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest
import pytest_asyncio

from coatcheck.app.compose import App
from coatcheck.app.storage import OpenedIndex
from coatcheck.domain.canonical import sha256_of
from coatcheck.identity.operations import OPERATOR
from tests import apps, rpc
from tests.apps import Caller
from tests.contract.damage import Damage
from tests.contract.routes import everything_said, statuses
from tests.contract.stored import rows
from tests.contract.working import job, settled
from tests.faults.troubled_index import TroubledIndex
from tests.postgres import Postgres
from tests.windows import request, window

QUERIES = ["alpha worker heartbeat ok queue depth", "GET /alpha/health on 10.2.0.1:8443 failed with 501", "service alpha fails"]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def app(database_url: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[App]:
    async with apps.foundations(database_url, tmp_path_factory.mktemp("app")) as on:
        troubled = dataclasses.replace(on, index=OpenedIndex(TroubledIndex(on.index.index)))
        async with apps.app_on(troubled, alone=True) as one:
            yield one


@pytest.fixture
def index(app: App) -> Iterator[TroubledIndex]:
    found = app.parts.index
    assert isinstance(found, TroubledIndex)
    yield found
    found.calm()


async def compacted(http: httpx.AsyncClient, session: str, messages: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    made = await http.post("/v1/compactions", json=request(session, messages))
    assert made.status_code == 201, made.text
    body: dict[str, Any] = made.json()
    return body


async def entries(http: httpx.AsyncClient, manifest_id: str) -> list[dict[str, Any]]:
    answer = await http.get(f"/v1/manifests/{manifest_id}/entries?text=true&page_size=200")
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["entries"]
    return found


async def points(app: App, caller: Caller) -> int:
    return sum([sum(1 for p in page if p.tenant_id == caller.tenant_id) async for page in app.parts.index.scroll()])


async def test_T25_an_erased_session_is_gone_by_every_route_and_its_name_is_free(http: httpx.AsyncClient) -> None:
    made = await compacted(http, "s")
    sha = (await entries(http, made["manifest_id"]))[0]["sha256"]
    names = {"session_id": made["session_id"], "manifest_id": made["manifest_id"], "sha256": sha}
    before = await statuses(http, **names)

    erased = await http.delete(f"/v1/sessions/{made['session_id']}")

    assert set(before.values()) == {200}
    assert (erased.status_code, erased.content) == (204, b"")
    assert set((await statuses(http, **names)).values()) == {410}
    assert (await http.delete(f"/v1/sessions/{made['session_id']}")).status_code == 410
    assert (await http.delete(f"/v1/manifests/{made['manifest_id']}")).status_code == 410
    assert (await http.get(f"/v1/segments/{sha[:12]}")).status_code == 404
    assert (await http.get("/v1/sessions")).json()["sessions"] == []
    assert (await http.post("/v1/recall", json={"query": "failed", "session": "s"})).status_code == 404
    assert "/alpha/health" not in await everything_said(http, QUERIES)


async def test_an_erased_manifest_is_gone_by_every_route_and_its_session_stays(http: httpx.AsyncClient) -> None:
    kept = await compacted(http, "s", window(mark="beta"))
    made = await compacted(http, "s")
    sha = (await entries(http, made["manifest_id"]))[0]["sha256"]

    erased = await http.delete(f"/v1/manifests/{made['manifest_id']}")

    assert erased.status_code == 204
    assert set((await statuses(http, manifest_id=made["manifest_id"], sha256=sha)).values()) == {410}
    assert set((await statuses(http, session_id=made["session_id"], manifest_id=kept["manifest_id"])).values()) == {200}
    assert (await http.get(f"/v1/segments/{sha[:12]}")).status_code == 404
    assert "/alpha/health" not in await everything_said(http, QUERIES)
    assert "/alpha/health" not in (await http.get(f"/v1/sessions/{made['session_id']}/export")).text
    assert (await http.get(f"/v1/sessions/{made['session_id']}")).json()["manifests"] == 1


async def test_who_could_not_read_it_learns_nothing_of_its_erasure(app: App, operator: Caller, http: httpx.AsyncClient) -> None:
    made = await compacted(http, "s")
    sha = (await entries(http, made["manifest_id"]))[0]["sha256"]
    colleague = await apps.new_principal(app, operator.tenant_id)
    stranger = await apps.new_tenant(app)
    await http.delete(f"/v1/sessions/{made['session_id']}")

    for caller in (colleague, stranger):
        async with apps.client(app, caller) as theirs:
            found = await statuses(theirs, session_id=made["session_id"], manifest_id=made["manifest_id"], sha256=sha)
            assert set(found.values()) == {404}, found
            assert (await theirs.delete(f"/v1/sessions/{made['session_id']}")).status_code == 404
            assert (await theirs.delete(f"/v1/manifests/{made['manifest_id']}")).status_code == 404


async def test_T25_nothing_is_left_but_tombstones_an_audit_line_and_ids_in_the_journal(
    app: App, operator: Caller, http: httpx.AsyncClient, postgres: Postgres, database_url: str
) -> None:
    image = "data:image/png;base64,iVBORw0KGgo" + "A" * 400
    picture = {"role": "user", "content": [{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": image}}]}
    first = await compacted(http, "secret-session-name", [picture, *window()])
    await compacted(http, "secret-session-name", [first["handoff"]["message"], *window(mark="beta")])

    assert (await http.delete(f"/v1/sessions/{first['session_id']}")).status_code == 204

    left = await rows(app, operator.tenant_id)
    assert {table: count for table, count in left.items() if count} == {"tombstones": left["tombstones"]}
    assert await points(app, operator) == 0
    journal = "".join(path.read_text() for path in app.parts.settings.erasure_journal.iterdir())  # type: ignore[union-attr]
    assert first["session_id"] in journal
    for content in ("alpha", "beta", "secret-session-name", "handoff", "HANDOFF"):
        assert content not in journal
    said = str(Damage(postgres, database_url, app, operator.tenant_id).everything())
    for content in ("alpha", "beta", "secret-session-name", "iVBOR"):
        assert content not in said
    # Only keyed hashes of what was erased: nobody without the key can confirm a guess at a text.
    assert sha256_of(window()[0]["content"]) not in said


async def test_descendants_handoffs_lose_the_erased_lines_and_are_still_known_by_their_old_text(http: httpx.AsyncClient) -> None:
    rule = {"role": "user", "content": "Decision: never restart the alpha database on a Friday, whatever the pager says."}
    first = await compacted(http, "s", [*window(), rule])
    second = await compacted(http, "s", [first["handoff"]["message"], *window(mark="beta")])
    third = await compacted(http, "s", [second["handoff"]["message"], *window(mark="gamma")])
    assert all("alpha" in made["handoff"]["text"] for made in (second, third))
    assert f"(follows {first['manifest_id']})" in second["handoff"]["text"]

    assert (await http.delete(f"/v1/manifests/{first['manifest_id']}")).status_code == 204

    for made, mark in ((second, "beta"), (third, "gamma")):
        now = (await http.get(f"/v1/manifests/{made['manifest_id']}")).json()["handoff"]
        assert "alpha" not in now["text"]
        assert first["manifest_id"] not in now["text"]
        assert mark in now["text"]
        assert now["sha256"] == sha256_of(now["text"]) != made["handoff"]["sha256"]
        assert "alpha" not in json.dumps((await http.get(f"/v1/manifests/{made['manifest_id']}/window")).json())
    again = await http.post("/v1/compactions", json=request("s", [first["handoff"]["message"], *window(mark="beta")]))
    assert (again.status_code, again.json()["manifest_id"]) == (200, second["manifest_id"])
    assert "alpha" not in again.text

    # An agent that still carries the old texts hands them in again: they chain, and not a line of them is stored.
    for old, parent in ((third, third), (second, second), (first, first)):
        fourth = await compacted(http, "s", [old["handoff"]["message"], *window(mark=f"delta{parent['manifest_id'][-4:]}")])
        assert fourth["parent_manifest_id"] == parent["manifest_id"]
        assert "alpha" not in fourth["handoff"]["text"]
        stored = await entries(http, fourth["manifest_id"])
        assert stored[0]["handoff_manifest_id"] == parent["manifest_id"]
        assert "alpha" not in "".join(entry["text"] or "" for entry in stored)
    assert "alpha" not in await everything_said(http, QUERIES)
    assert "alpha" not in (await http.get(f"/v1/sessions/{first['session_id']}/export")).text


async def test_the_old_text_is_known_to_who_came_to_the_session_later(app: App, operator: Caller, http: httpx.AsyncClient) -> None:
    first = await compacted(http, "s")
    second = await compacted(http, "s", [first["handoff"]["message"], *window(mark="beta")])
    await http.delete(f"/v1/manifests/{first['manifest_id']}")
    colleague = await apps.new_principal(app, operator.tenant_id)
    joined = await http.patch(f"/v1/sessions/{first['session_id']}", json={"participants": [str(colleague.principal_id)]})
    assert joined.status_code == 200

    async with apps.client(app, colleague) as theirs:
        third = await compacted(theirs, first["session_id"], [second["handoff"]["message"], *window(mark="gamma")])
        stored = await entries(theirs, third["manifest_id"])

    assert third["parent_manifest_id"] == second["manifest_id"]
    assert "alpha" not in "".join(entry["text"] or "" for entry in stored)


async def test_a_segment_that_another_manifest_holds_stays_and_moves_to_its_next_context(
    app: App, operator: Caller, http: httpx.AsyncClient, postgres: Postgres, database_url: str
) -> None:
    shared = {"role": "user", "content": "The standing order is that zebra deployments wait for the harbour master."}
    first = await compacted(http, "s", [*window(), shared])
    second = await compacted(http, "s", [*window(mark="beta"), shared])
    sha = sha256_of(shared["content"])
    damage = Damage(postgres, database_url, app, operator.tenant_id)
    before = damage.projection(sha)

    assert (await http.delete(f"/v1/manifests/{first['manifest_id']}")).status_code == 204
    await settled(http)

    after = damage.projection(sha)
    assert str(before.context_manifest_id) == first["manifest_id"]
    assert str(after.context_manifest_id) == second["manifest_id"]
    assert before.content_version != after.content_version
    assert (await http.get(f"/v1/segments/{sha}")).json()["manifest_id"] == second["manifest_id"]
    hits = (await http.post("/v1/recall", json={"query": "zebra deployments harbour master"})).json()["hits"]
    assert hits[0]["sha256"] == sha
    # The erased window's last turn no longer leads to it.
    assert "pool is exhausted" in window()[-1]["content"]
    live = [p async for page in app.parts.index.scroll() for p in page if p.exact_sha256 == sha]
    assert {p.content_version for p in live if p.tenant_id == operator.tenant_id} == {after.content_version}
    assert (await job(http, "scan"))["findings_total"] == 0


async def test_T25_while_the_index_is_down_it_is_unreachable_at_once_and_completed_later(
    app: App, operator: Caller, http: httpx.AsyncClient, index: TroubledIndex
) -> None:
    made = await compacted(http, "s")
    manifest = await compacted(http, "t", window(mark="beta"))
    await compacted(http, "t", window(mark="gamma"))
    index.gone = True

    session_erased = await http.delete(f"/v1/sessions/{made['session_id']}")
    manifest_erased = await http.delete(f"/v1/manifests/{manifest['manifest_id']}")

    for answer in (session_erased, manifest_erased):
        assert (answer.status_code, answer.json()["type"].rsplit(":", 1)[-1]) == (503, "erase-pending")
        assert answer.json()["retryable"] is True
        assert "retry-after" in answer.headers
    gone = await statuses_over_http(http, made, manifest)
    assert set(gone.values()) == {410}, gone
    index.calm()
    await settled(http)
    left = await rows(app, operator.tenant_id)
    assert (left["sessions"], left["runs"], left["outbox"]) == (1, 1, 0)
    assert (await job(http, "scan"))["findings_total"] == 0
    assert "alpha" not in await everything_said(http, QUERIES)


async def statuses_over_http(http: httpx.AsyncClient, session: dict[str, Any], manifest: dict[str, Any]) -> dict[str, int]:
    paths = [
        f"/v1/sessions/{session['session_id']}", f"/v1/sessions/{session['session_id']}/export",
        *(f"/v1/manifests/{one['manifest_id']}{part}" for one in (session, manifest) for part in ("", "/entries", "/window")),
    ]  # fmt: skip
    return {path: (await http.get(path)).status_code for path in paths}


async def test_an_operator_may_erase_what_it_may_not_read(app: App, operator: Caller) -> None:
    owner = await apps.new_principal(app, operator.tenant_id)
    other = await apps.new_principal(app, operator.tenant_id, OPERATOR)
    async with apps.client(app, owner) as theirs, apps.client(app, other) as operators:
        made = await compacted(theirs, "s")
        await compacted(theirs, "s", window(mark="beta"))

        assert (await operators.get(f"/v1/manifests/{made['manifest_id']}")).status_code == 404
        assert (await operators.delete(f"/v1/manifests/{made['manifest_id']}")).status_code == 204
        assert (await theirs.get(f"/v1/manifests/{made['manifest_id']}")).status_code == 410
        assert (await operators.delete(f"/v1/sessions/{made['session_id']}")).status_code == 204
        assert (await theirs.get(f"/v1/sessions/{made['session_id']}")).status_code == 410


async def test_a_participant_may_read_and_write_but_not_erase(app: App, operator: Caller, http: httpx.AsyncClient) -> None:
    made = await compacted(http, "s")
    colleague = await apps.new_principal(app, operator.tenant_id)
    await http.patch(f"/v1/sessions/{made['session_id']}", json={"participants": [str(colleague.principal_id)]})

    async with apps.client(app, colleague) as theirs:
        read = await theirs.get(f"/v1/manifests/{made['manifest_id']}")
        erased = [
            await theirs.delete(f"/v1/manifests/{made['manifest_id']}"), await theirs.delete(f"/v1/sessions/{made['session_id']}"),
        ]  # fmt: skip

    assert read.status_code == 200
    assert [answer.status_code for answer in erased] == [403, 403]
    assert (await http.get(f"/v1/manifests/{made['manifest_id']}")).status_code == 200


async def test_mcp_says_erased_as_http_does(http: httpx.AsyncClient) -> None:
    made = await compacted(http, "s")
    await http.delete(f"/v1/manifests/{made['manifest_id']}")

    result = await rpc.call(http, "read_manifest", manifest_id=made["manifest_id"])

    assert result["isError"] is True
    assert result["structuredContent"]["type"].endswith(":erased")
