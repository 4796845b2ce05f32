"""Scan and repair beside everything else: what is under way is no damage, and is not mended away."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from coatcheck.app.compose import App
from coatcheck.identity.scopes import tenant_scope
from coatcheck.memory.recording import owe
from coatcheck.ops import faults
from tests import apps
from tests.apps import Caller
from tests.contract.damage import Damage, stranger
from tests.contract.working import job, kinds, settled
from tests.postgres import Postgres
from tests.windows import request, window


async def compacted(http: httpx.AsyncClient, session: str, mark: str) -> dict[str, Any]:
    made = await http.post("/v1/compactions", json=request(session, window(calls=2, filler=6, mark=mark)))
    assert made.status_code in (200, 201), made.text
    body: dict[str, Any] = made.json()
    return body


@pytest.mark.parametrize("point", ["before-upsert", "after-upsert", "before-acknowledge"])
async def test_a_compaction_under_way_is_no_damage_and_its_points_stay(http: httpx.AsyncClient, point: str) -> None:
    await compacted(http, "s", "alpha")
    async with faults.held(point) as hold:
        under_way = asyncio.create_task(compacted(http, "s", "beta"))
        await hold.reached()

        scanned = await job(http, "scan")
        repaired = await job(http, "repair")

        hold.release()
        await under_way
    await settled(http)
    assert kinds(scanned) == []
    assert kinds(repaired) == []
    assert kinds(await job(http, "scan")) == []


@pytest.mark.parametrize("point", ["after-erase-mark", "after-journal", "after-points-erased"])
@pytest.mark.parametrize("whole", [True, False])
async def test_an_erasure_under_way_is_no_damage(http: httpx.AsyncClient, point: str, whole: bool) -> None:
    made = await compacted(http, "s", "alpha")
    await compacted(http, "s", "beta")
    path = f"/v1/sessions/{made['session_id']}" if whole else f"/v1/manifests/{made['manifest_id']}"
    async with faults.held(point) as hold:
        under_way = asyncio.create_task(http.delete(path))
        await hold.reached()

        scanned = await job(http, "scan")

        hold.release()
        assert (await under_way).status_code == 204
    await settled(http)
    assert kinds(scanned) == []
    assert kinds(await job(http, "scan")) == []


async def test_a_change_of_readers_that_the_index_has_not_followed_is_no_damage(http: httpx.AsyncClient) -> None:
    made = await compacted(http, "s", "alpha")
    async with faults.held("after-claim") as hold:
        await http.patch(f"/v1/sessions/{made['session_id']}", json={"visibility": "public"})
        await hold.reached()

        scanned = await job(http, "scan")

    await settled(http)
    assert kinds(scanned) == []
    assert kinds(await job(http, "scan")) == []


async def test_a_repair_ends_when_what_the_background_has_in_hand_is_done(
    postgres: Postgres, database_url: str, app: App, operator: Caller, http: httpx.AsyncClient
) -> None:
    """As it has what a repair has just left owed, where it comes first."""
    await compacted(http, "s", "alpha")
    damage = Damage(postgres, database_url, app, operator.tenant_id)
    session_id, sha = damage.any_segment()
    async with faults.held("after-claim") as hold:
        await app.parts.database.work(
            tenant_scope(operator.tenant_id), lambda tx: owe(tx, app.parts.new_id, session_id, [sha])
        )  # fmt: skip
        await hold.reached()

        repairing = asyncio.create_task(job(http, "repair"))
        early, _ = await asyncio.wait({repairing}, timeout=0.3)
        hold.release()
        repaired = await repairing

    assert not early
    assert kinds(repaired) == []
    assert damage.projection(sha).passages == 1


async def test_a_point_under_a_wrong_name_is_gone_before_its_row_asks_for_another(
    postgres: Postgres, database_url: str, app: App, operator: Caller, http: httpx.AsyncClient
) -> None:
    """With no row that tells of it, a scan would take it for an orphan, and a repair would remove what comes in its place."""
    await compacted(http, "s", "alpha")
    damage = Damage(postgres, database_url, app, operator.tenant_id)
    point = await damage.point_of_segment()
    damage.relabel(point, session_id=stranger())
    async with faults.held("after-claim") as hold:
        repairing = asyncio.create_task(job(http, "repair"))
        await hold.reached()

        scanned = await job(http, "scan")

        hold.release()
        repaired = await repairing

    assert kinds(scanned) == []
    assert (kinds(repaired), repaired["progress"]["remaining"]) == (["point-wrong-session"], 0)
    assert point in await damage.points()


async def test_repairs_beside_compactions_and_erasures_leave_everything_whole(
    app: App, operator: Caller, http: httpx.AsyncClient
) -> None:
    async def work(number: int) -> None:
        for turn in range(3):
            made = await compacted(http, f"s{number}", f"mark{number}{turn}")
            if turn == 1:
                assert (await http.delete(f"/v1/manifests/{made['manifest_id']}")).status_code == 204

    async def repair() -> list[str]:
        found: list[str] = []
        for _ in range(4):
            found += kinds(await job(http, "repair"))
        return found

    *_, found = await asyncio.gather(*(work(number) for number in range(4)), repair())
    await settled(http)

    assert found == []
    assert kinds(await job(http, "scan")) == []
    said = (await http.post("/v1/recall", json={"query": "GET /mark32/health on 10.2.0.1:8443 failed", "top_k": 50})).text
    assert "/mark32/health" in said
    async with apps.client(app, operator) as again:
        for number in range(4):
            for turn in (0, 2):
                found_again = await compacted(again, f"s{number}", f"mark{number}{turn}")
                shown = await http.get(f"/v1/manifests/{found_again['manifest_id']}/window")
                assert shown.json()["messages"] == window(calls=2, filler=6, mark=f"mark{number}{turn}")
