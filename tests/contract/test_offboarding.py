"""A tenant is off-boarded: nobody of it is let in, nothing of it is left, its name begins anew, and a crash only delays it."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
import sqlalchemy as sa

from coatcheck.app.compose import App
from coatcheck.identity.scopes import tenant_scope
from coatcheck.ops import faults
from coatcheck.store import tables
from coatcheck.store.database import WorkerTransaction
from coatcheck.store.engine import with_driver
from tests import apps
from tests.apps import Caller
from tests.contract.routes import everything_said
from tests.contract.working import job
from tests.faults.points import named
from tests.index.asking import everything
from tests.isolation.rows import mentioning
from tests.postgres import Postgres
from tests.windows import request, window


async def compacted(http: httpx.AsyncClient, session: str, mark: str, **more: object) -> dict[str, Any]:
    made = await http.post("/v1/compactions", json=request(session, window(mark=mark), **more))
    assert made.status_code == 201, made.text
    body: dict[str, Any] = made.json()
    return body


async def inhabited(app: App) -> Caller:
    """A tenant with some of everything."""
    caller = await apps.new_tenant(app)
    async with apps.client(app, caller) as http:
        first = await compacted(http, "s", "zebra")
        await compacted(http, "s", "okapi")
        thinned = await compacted(http, "t", "quagga")
        assert (await http.delete(f"/v1/manifests/{thinned['manifest_id']}")).status_code == 204
        assert (await http.put("/v1/admin/retention", json={"team": 9})).status_code == 200
        assert (await http.post("/v1/admin/keys", json={"name": "zebra key"})).status_code == 201
        await http.patch(f"/v1/sessions/{first['session_id']}", json={"visibility": "public"})
        await job(http, "scan")
    return caller


async def points(app: App, caller: Caller) -> int:
    return sum([sum(1 for p in page if p.tenant_id == caller.tenant_id) async for page in app.parts.index.scroll()])


def mentions(postgres: Postgres, database_url: str, caller: Caller) -> set[str]:
    """The rows of every table that name the tenant, but for those of who off-boarded it."""
    owner_url = postgres.owner_url(sa.make_url(database_url).database or "")
    found = mentioning(owner_url, [str(caller.tenant_id), str(caller.principal_id), "zebra", "okapi"])
    return {row.partition(":")[0] for row in found}


async def test_an_off_boarded_tenant_leaves_nothing_behind_but_a_receipt(
    app: App, operator: Caller, http: httpx.AsyncClient, postgres: Postgres, database_url: str
) -> None:
    gone, bystander = await inhabited(app), await apps.new_tenant(app)
    async with apps.client(app, bystander) as theirs:
        kept = await compacted(theirs, "s", "zebra")
    live = await points(app, gone)

    answer = await http.delete(f"/v1/admin/tenants/{gone.tenant_id}")

    receipt = answer.json()
    assert answer.status_code == 200, answer.text
    assert (receipt["kind"], receipt["target_id"], receipt["status"]) == ("tenant", str(gone.tenant_id), "complete")
    assert (receipt["tenant_id"], receipt["reason"]) == (str(operator.tenant_id), "off-boarding")
    assert (receipt["counts"]["sessions"], receipt["counts"]["manifests"], receipt["counts"]["points"]) == (2, 2, live)
    assert receipt["counts"]["keys"] == 2
    assert live > 0
    assert (await http.post("/v1/erasures/verify", json=receipt)).json() == {"valid": True}
    assert await points(app, gone) == 0
    async with apps.client(app, bystander) as theirs:
        assert (await theirs.get(f"/v1/manifests/{kept['manifest_id']}/window")).json()["messages"] == window(mark="zebra")
        assert (await theirs.delete(f"/v1/sessions/{kept['session_id']}")).status_code == 204
    assert mentions(postgres, database_url, gone) == {"audit", "erasures"}
    async with apps.client(app, gone) as theirs:
        assert (await theirs.get("/v1/sessions")).status_code == 401
    assert (await http.delete(f"/v1/admin/tenants/{gone.tenant_id}")).json() == receipt
    assert (await http.get(f"/v1/erasures/{receipt['erasure_id']}")).json() == receipt


async def test_every_table_that_has_a_tenant_is_emptied_of_it(app: App, http: httpx.AsyncClient, database_url: str) -> None:
    """Also those that come later: the list is the models'."""
    gone = await inhabited(app)

    assert (await http.delete(f"/v1/admin/tenants/{gone.tenant_id}")).status_code == 200

    with_tenant = [table for table in tables.metadata.sorted_tables if "tenant_id" in table.columns]
    assert len(with_tenant) >= 20

    async def left(tx: Any) -> dict[str, int]:
        return {
            table.name: await tx.connection.scalar(
                sa.select(sa.func.count()).select_from(table).where(table.columns.tenant_id == gone.tenant_id)
            )
            for table in with_tenant
        }

    assert set((await app.parts.database.work(tenant_scope(gone.tenant_id), left)).values()) == {0}
    assert with_driver(database_url)


async def test_T37_the_same_name_begins_anew(app: App, http: httpx.AsyncClient) -> None:
    made = (await http.post("/v1/admin/tenants", json={"name": "acme"})).json()
    first = Caller(made["tenant_id"], made["tenant_id"], made["key"])
    async with apps.client(app, first) as theirs:
        await compacted(theirs, "s", "zebra")
        scan = await theirs.post("/v1/admin/scan")
    assert (await http.post("/v1/admin/tenants", json={"name": "acme"})).status_code == 422
    assert (await http.delete(f"/v1/admin/tenants/{made['tenant_id']}")).status_code == 200
    # By its id, which the next tenant does not get: its own look-ups would not find what was left.
    assert UUID(made["tenant_id"]) not in {point.tenant_id for point in await everything(app.parts.index)}

    again = (await http.post("/v1/admin/tenants", json={"name": "acme"})).json()

    assert again["tenant_id"] != made["tenant_id"]
    second = Caller(again["tenant_id"], again["tenant_id"], again["key"])
    async with apps.client(app, second) as theirs:
        assert (await theirs.get("/v1/sessions")).json()["sessions"] == []
        said = await everything_said(theirs, ["zebra worker heartbeat ok", "GET /zebra/health failed"])
        assert "/zebra/health" not in said
        assert (await theirs.get(scan.headers["location"])).status_code == 404
        assert (await theirs.get(f"/v1/admin/tenants/{again['tenant_id']}/limits")).status_code == 403
        assert (await compacted(theirs, "s", "zebra"))["segments"]["already_stored"] == 0
    async with apps.client(app, first) as theirs:
        assert (await theirs.get("/v1/sessions")).status_code == 401


async def test_nobody_off_boards_its_own_tenant_or_without_the_operation(
    app: App, operator: Caller, http: httpx.AsyncClient
) -> None:
    from coatcheck.identity.operations import OPERATOR

    other = await apps.new_tenant(app)
    colleague = await apps.new_principal(app, operator.tenant_id, OPERATOR)
    async with apps.client(app, colleague) as theirs:
        refused = await theirs.delete(f"/v1/admin/tenants/{other.tenant_id}")

    own = await http.delete(f"/v1/admin/tenants/{operator.tenant_id}")

    assert (own.status_code, refused.status_code) == (403, 403)
    assert (await http.get("/v1/sessions")).status_code == 200
    async with apps.client(app, other) as theirs:
        assert (await theirs.get("/v1/sessions")).status_code == 200


@pytest.mark.parametrize("point", named("off-boarding"))
async def test_a_crash_in_the_middle_is_gone_on_with(
    app: App, operator: Caller, http: httpx.AsyncClient, postgres: Postgres, database_url: str, point: str
) -> None:
    gone = await inhabited(app)
    faults.arm(f"{point}=raise")
    try:
        with pytest.raises(faults.InjectedFault):
            await app.use_cases.offboarding.erase(await apps.context_of(app, operator), gone.tenant_id)
    finally:
        faults.disarm()
    async with apps.client(app, gone) as theirs:
        assert (await theirs.get("/v1/sessions")).status_code == 401

    await app.use_cases.housekeeper.walk()

    assert await points(app, gone) == 0
    assert mentions(postgres, database_url, gone) == {"audit", "erasures"}
    receipt = (await http.delete(f"/v1/admin/tenants/{gone.tenant_id}")).json()
    assert (receipt["status"], receipt["counts"]["manifests"], receipt["counts"]["sessions"]) == ("complete", 2, 2)
    assert (await http.post("/v1/erasures/verify", json=receipt)).json() == {"valid": True}


async def test_work_under_way_ends_before_the_tenant_does(app: App, http: httpx.AsyncClient) -> None:
    gone = await apps.new_tenant(app)
    async with apps.client(app, gone) as theirs, faults.held("before-acknowledge") as hold:
        late = asyncio.create_task(theirs.post("/v1/compactions", json=request("s")))
        await hold.reached()
        pending = await http.delete(f"/v1/admin/tenants/{gone.tenant_id}")
        hold.release()
        await late

    assert (pending.status_code, pending.json()["type"].rsplit(":", 1)[-1]) == (503, "erase-pending")
    assert (await http.delete(f"/v1/admin/tenants/{gone.tenant_id}")).status_code == 200
    assert await points(app, gone) == 0


async def test_a_worker_that_is_about_to_end_is_waited_for(app: App, http: httpx.AsyncClient) -> None:
    gone = await apps.new_tenant(app)
    async with apps.client(app, gone) as theirs, faults.held("before-acknowledge") as hold:
        late = asyncio.create_task(theirs.post("/v1/compactions", json=request("s")))
        await hold.reached()
        end = asyncio.create_task(http.delete(f"/v1/admin/tenants/{gone.tenant_id}"))
        await asyncio.sleep(0.3)
        hold.release()
        await late
        answer = await end

    assert (answer.status_code, answer.json()["status"]) == (200, "complete")
    assert await points(app, gone) == 0


async def test_what_came_in_at_the_last_moment_goes_with_the_tenant(app: App, http: httpx.AsyncClient) -> None:
    """Counted rows too, which a foreign key's cascade would not be let delete."""
    gone = await inhabited(app)
    scope, session_id = tenant_scope(gone.tenant_id), uuid4()
    late = [
        "INSERT INTO sessions (tenant_id, session_id, name, owner_id, visibility, acl, writers)"
        f" VALUES (:tenant, '{session_id}', 'late', '{gone.principal_id}', 'personal', ARRAY['p'], ARRAY['p'])",
        "INSERT INTO segments (tenant_id, session_id, sha256, raw, chars, rule_revision)"
        f" VALUES (:tenant, '{session_id}', 'late', 'late', 4, 'rules')",
    ]

    async def came_in(tx: WorkerTransaction) -> None:
        for statement in late:
            await tx.connection.execute(sa.text(statement), {"tenant": gone.tenant_id})

    async with faults.held("before-tenant-goes") as hold:
        end = asyncio.create_task(http.delete(f"/v1/admin/tenants/{gone.tenant_id}"))
        await hold.reached()
        await app.parts.database.work(scope, came_in)
        hold.release()
        answer = await end

    assert (answer.status_code, answer.json()["status"]) == (200, "complete")

    async def left(tx: WorkerTransaction) -> int:
        return int(await tx.connection.scalar(sa.text("SELECT count(*) FROM segments WHERE sha256 = 'late'")) or 0)

    assert await app.parts.database.work(scope, left) == 0
