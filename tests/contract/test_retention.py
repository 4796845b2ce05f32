"""Retention over HTTP and by the worker, under a clock that the test moves."""

from __future__ import annotations

import asyncio
import dataclasses
from datetime import datetime, timedelta
from typing import Any

import httpx
import pytest

from coatcheck.app.compose import App
from coatcheck.domain.identifiers import utc_now
from coatcheck.identity.operations import MEMBER
from coatcheck.identity.scopes import tenant_scope
from coatcheck.memory.housekeeping import Housekeeper
from coatcheck.memory.retention import Retention
from coatcheck.ops.faults import held
from coatcheck.store import audit, limits
from tests import apps
from tests.apps import Caller
from tests.contract.stored import rows
from tests.contract.working import settled
from tests.windows import request, window


async def compacted(http: httpx.AsyncClient, session: str, mark: str = "alpha", **more: object) -> dict[str, Any]:
    made = await http.post("/v1/compactions", json=request(session, window(mark=mark), **more))
    assert made.status_code == 201, made.text
    body: dict[str, Any] = made.json()
    return body


async def keep(http: httpx.AsyncClient, **days: int | None) -> None:
    changed = await http.put("/v1/admin/retention", json=days)
    assert changed.status_code == 200, changed.text


def later(app: App, **by: float) -> Retention:
    """The worker's part, so much later."""
    clock = lambda: utc_now() + timedelta(**by)  # noqa: E731
    return Retention(dataclasses.replace(app.parts, clock=clock))


async def test_what_has_had_its_time_is_erased_with_a_receipt_and_on_record(
    app: App, operator: Caller, http: httpx.AsyncClient
) -> None:
    made = await compacted(http, "old")
    await keep(http, conversation=30)

    early = await later(app, days=29, hours=23).apply(tenant_scope(operator.tenant_id))
    expired = await later(app, days=30, hours=1).apply(tenant_scope(operator.tenant_id))
    await settled(http)

    assert (early, expired) == (0, 1)
    assert (await http.get(f"/v1/sessions/{made['session_id']}")).status_code == 410
    left = await rows(app, operator.tenant_id)
    assert {table for table, count in left.items() if count} == {"tombstones"}
    receipt = (await http.delete(f"/v1/sessions/{made['session_id']}?receipt=true")).json()
    assert (receipt["reason"], receipt["requested_by"], receipt["status"]) == ("retention", None, "complete")
    assert receipt["counts"]["manifests"] == 1
    lines = await app.parts.database.work(tenant_scope(operator.tenant_id), lambda tx: audit.page(tx, None, 100))
    assert [(line.action, line.principal_id) for line in lines if line.action == "session.expire"] == [("session.expire", None)]
    assert [line.principal_id for line in lines if line.action == "retention.change"] == [operator.principal_id]


@pytest.mark.parametrize("kind", ["conversation", "personal", "team", "public"])
async def test_each_kind_has_its_own_time(app: App, operator: Caller, kind: str) -> None:
    from uuid import uuid4

    team = uuid4()
    caller = await apps.new_principal(app, operator.tenant_id, MEMBER | {"retention"}, teams=(team,))
    async with apps.client(app, caller) as http:
        kinds = ("conversation", "personal", "team", "public")
        made = {
            one: await compacted(http, one, one, visibility=f"team:{team}" if one == "team" else one) for one in kinds
        }  # fmt: skip
        await keep(http, **{kind: 7})

        expired = await later(app, days=8).apply(tenant_scope(operator.tenant_id))

        statuses = {one: (await http.get(f"/v1/sessions/{made[one]['session_id']}")).status_code for one in kinds}
        assert expired == 1
        assert statuses == {one: 410 if one == kind else 200 for one in kinds}


async def test_a_session_is_as_young_as_the_last_thing_that_was_added(app: App, operator: Caller, http: httpx.AsyncClient) -> None:
    scope = tenant_scope(operator.tenant_id)
    made = await compacted(http, "s")

    async def age(tx: Any) -> None:
        import sqlalchemy as sa

        await tx.connection.execute(
            sa.text("UPDATE sessions SET created_at = now() - interval '400 days' WHERE tenant_id = :t"), {"t": operator.tenant_id}
        )

    await app.parts.database.work(scope, age)
    await keep(http, conversation=30)

    assert await later(app, days=0).apply(scope) == 0
    assert (await http.get(f"/v1/sessions/{made['session_id']}")).status_code == 200
    assert await later(app, days=31).apply(scope) == 1


async def test_a_session_stays_to_the_very_end_of_its_last_day_and_goes_the_moment_after(
    app: App, operator: Caller, http: httpx.AsyncClient
) -> None:
    scope = tenant_scope(operator.tenant_id)
    await compacted(http, "s")
    await keep(http, conversation=30)
    newest = await app.parts.database.work(scope, _newest)

    def at(**beyond: float) -> Retention:
        return Retention(dataclasses.replace(app.parts, clock=lambda: newest + timedelta(days=30, **beyond)))

    early = [await at(minutes=-1).apply(scope), await at(microseconds=-1).apply(scope), await at().apply(scope)]
    late = await at(microseconds=1).apply(scope)

    assert (early, late) == ([0, 0, 0], 1)


async def _newest(tx: Any) -> datetime:
    """When anything was last added to the tenant's sessions."""
    import sqlalchemy as sa

    found: datetime = await tx.connection.scalar(
        sa.text("SELECT max(greatest(created_at, acknowledged_at)) FROM runs WHERE tenant_id = :t"), {"t": tx.scope.tenant_id}
    )
    return found


@pytest.mark.parametrize("days", [1, 36_500])
async def test_the_least_and_the_most_days_are_kept_to(app: App, operator: Caller, http: httpx.AsyncClient, days: int) -> None:
    scope = tenant_scope(operator.tenant_id)
    await compacted(http, "s")
    await keep(http, conversation=days)

    assert await later(app, days=days - 1).apply(scope) == 0
    assert await later(app, days=days, minutes=1).apply(scope) == 1


@pytest.mark.parametrize("days", [0, -1, 36_501, 2**31, 2**63, 1.5, "30d", [1]])
async def test_days_that_are_none_are_refused_and_change_nothing(http: httpx.AsyncClient, days: object) -> None:
    await keep(http, conversation=30)

    answer = await http.put("/v1/admin/retention", json={"conversation": days, "personal": 1})

    assert answer.status_code == 422
    assert (await http.get("/v1/admin/retention")).json() == {"conversation": 30, "personal": None, "team": None, "public": None}


async def test_a_window_whose_session_has_its_time_while_it_is_planned_is_kept_in_a_new_one(
    app: App, operator: Caller, http: httpx.AsyncClient
) -> None:
    """Retention comes between the plan, which named the old session, and its storing: nothing is lost and nothing comes back."""
    scope = tenant_scope(operator.tenant_id)
    old = await compacted(http, "s")
    await keep(http, conversation=30)
    async with held("before-persist") as hold:
        more = asyncio.create_task(compacted(http, "s", "beta"))
        await hold.reached()

        expired = await later(app, days=31).apply(scope)

        hold.release()
        made = await more
    await settled(http)

    assert expired == 1
    assert made["session_id"] != old["session_id"]
    assert (await http.get(f"/v1/manifests/{old['manifest_id']}")).status_code == 410
    window = (await http.get(f"/v1/manifests/{made['manifest_id']}/window")).text
    assert "beta" in window
    found = (await http.post("/v1/recall", json={"query": "alpha service pool"})).json()["hits"]
    assert [hit for hit in found if "alpha" in hit["text"]] == []


async def test_a_session_that_somebody_works_on_stays(app: App, operator: Caller, http: httpx.AsyncClient) -> None:
    scope = tenant_scope(operator.tenant_id)
    await compacted(http, "s")
    await keep(http, conversation=1)
    async with held("before-acknowledge") as hold:
        more = asyncio.create_task(compacted(http, "s", "beta"))
        await hold.reached()
        parts = dataclasses.replace(app.parts, clock=lambda: utc_now() + timedelta(days=2))
        # Its lease is alive by the clock of whoever looks: as long as the owner renews it.
        await app.parts.database.work(scope, lambda tx: _lease_until(tx, operator, days=3))

        expired = await Retention(parts).apply(scope)

        hold.release()
        made = await more
    assert expired == 0
    assert (await http.get(f"/v1/manifests/{made['manifest_id']}")).status_code == 200


async def test_what_is_added_while_the_worker_looks_is_seen(app: App, operator: Caller, http: httpx.AsyncClient) -> None:
    """The check is made again under the session's lock, after which nobody adds to what is marked."""
    scope = tenant_scope(operator.tenant_id)
    made = await compacted(http, "s")
    await keep(http, conversation=30)
    worker = later(app, days=31)

    found = await worker.apply(scope)
    again = await http.post("/v1/compactions", json=request("s", window(mark="beta")))

    assert found == 1
    assert again.status_code == 201
    assert again.json()["session_id"] != made["session_id"]


async def test_without_a_policy_nothing_is_ever_too_old(app: App, operator: Caller, http: httpx.AsyncClient) -> None:
    await compacted(http, "s")
    assert (await http.get("/v1/admin/retention")).json() == dict.fromkeys(("conversation", "personal", "team", "public"))

    assert await later(app, days=36_000).apply(tenant_scope(operator.tenant_id)) == 0
    await keep(http, conversation=3)
    await keep(http)
    assert await later(app, days=36_000).apply(tenant_scope(operator.tenant_id)) == 0


async def test_a_policy_is_the_operators_and_of_its_tenant_alone(app: App, operator: Caller, http: httpx.AsyncClient) -> None:
    other = await apps.new_tenant(app)
    member = await apps.new_principal(app, operator.tenant_id, MEMBER)
    async with apps.client(app, other) as theirs, apps.client(app, member) as members:
        kept = await compacted(theirs, "theirs")
        await keep(http, conversation=1)

        refused = await members.put("/v1/admin/retention", json={"conversation": 1})
        await later(app, days=2).apply(tenant_scope(other.tenant_id))

        assert refused.status_code == 403
        assert (await theirs.get("/v1/admin/retention")).json()["conversation"] is None
        assert (await theirs.get(f"/v1/sessions/{kept['session_id']}")).status_code == 200


@pytest.mark.parametrize("body", [{"conversation": 0}, {"team": -1}, {"public": 1.5}, {"private": 3}, {"personal": 10**6}])
async def test_a_policy_that_makes_no_sense_is_refused(http: httpx.AsyncClient, body: dict[str, object]) -> None:
    assert (await http.put("/v1/admin/retention", json=body)).status_code == 422


async def test_the_housekeeper_applies_it_and_folds_the_ledger(app: App, operator: Caller, http: httpx.AsyncClient) -> None:
    scope = tenant_scope(operator.tenant_id)
    made = await compacted(http, "s")
    await compacted(http, "young", visibility="personal")
    await keep(http, conversation=1)
    parts = dataclasses.replace(app.parts, clock=lambda: utc_now() + timedelta(days=2))

    async def fill(tx: Any) -> None:
        import sqlalchemy as sa

        await tx.connection.execute(
            sa.text(
                "INSERT INTO stored_usage (tenant_id, segments, bytes)"
                " SELECT :t, CASE WHEN n % 2 = 0 THEN 1 ELSE -1 END, 0 FROM generate_series(1, 400) n"
            ),
            {"t": operator.tenant_id},
        )

    await app.parts.database.work(scope, fill)
    before = await app.parts.database.work(scope, limits.stored)

    await Housekeeper(parts, Retention(parts), app.use_cases.offboarding).walk()

    assert (await http.get(f"/v1/sessions/{made['session_id']}")).status_code == 410
    assert await app.parts.database.work(scope, _ledger_rows) < limits.FOLD_FROM
    await settled(http)
    after = await app.parts.database.work(scope, limits.stored)
    assert 0 < after.segments < before.segments


async def _lease_until(tx: Any, operator: Caller, days: int) -> None:
    import sqlalchemy as sa

    await tx.connection.execute(
        sa.text("UPDATE runs SET lease_until = now() + make_interval(days => :d) WHERE tenant_id = :t AND lease_until IS NOT NULL"),
        {"t": operator.tenant_id, "d": days},
    )


async def _ledger_rows(tx: Any) -> int:
    import sqlalchemy as sa

    return int(await tx.connection.scalar(sa.text("SELECT count(*) FROM stored_usage")))
