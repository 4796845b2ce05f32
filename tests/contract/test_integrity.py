"""Scan and repair over the routes: every kind of damage is planted, named, and mended where rows can mend it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from uuid import UUID, uuid4

import httpx
import pytest
import pytest_asyncio

from coatcheck.app.compose import App
from coatcheck.domain.scopes import PUBLIC
from coatcheck.identity.operations import MEMBER
from coatcheck.index.points import readers
from tests import apps
from tests.apps import Caller
from tests.contract.damage import Damage, stranger
from tests.contract.stored import rows
from tests.contract.working import job, kinds
from tests.postgres import Postgres
from tests.windows import request, window

OTHER_SHA = "0" * 64


@pytest_asyncio.fixture(loop_scope="module")
async def damage(postgres: Postgres, database_url: str, app: App, operator: Caller, http: httpx.AsyncClient) -> Damage:
    """A tenant's memory of two sessions, to be spoiled."""
    for session, mark in (("one", "alpha"), ("two", "beta")):
        made = await http.post("/v1/compactions", json=request(session, window(calls=2, filler=2, mark=mark)))
        assert made.status_code == 201, made.text
    return Damage(postgres, database_url, app, operator.tenant_id)


async def text_missing(damage: Damage) -> None:
    session_id, sha = damage.any_segment()
    damage.sql("UPDATE segments SET raw = NULL WHERE tenant_id = :tenant AND session_id = :s AND sha256 = :h", s=session_id, h=sha)


async def row_missing(damage: Damage) -> None:
    session_id, sha = damage.any_segment()
    for table, column in (("projections", "segment_sha256"), ("segments", "sha256")):
        damage.sql(
            f"""SET LOCAL session_replication_role = replica;
                DELETE FROM {table} WHERE tenant_id = '{damage.tenant_id}' AND session_id = '{session_id}' AND {column} = '{sha}'"""
        )
    for point in await damage.points():
        if point.exact_sha256 == sha and point.session_id == session_id:
            damage.remove(point)


async def exact_hash(damage: Damage) -> None:
    session_id, sha = damage.any_segment()
    damage.sql(
        "UPDATE segments SET raw = raw || 'x' WHERE tenant_id = :tenant AND session_id = :s AND sha256 = :h", s=session_id, h=sha
    )


async def projection_missing(damage: Damage) -> None:
    session_id, sha = damage.any_segment()
    damage.sql("DELETE FROM projections WHERE tenant_id = :tenant AND session_id = :s AND segment_sha256 = :h", s=session_id, h=sha)


async def point_missing(damage: Damage) -> None:
    damage.remove(await damage.point_of_segment())


async def wrong_tenant(damage: Damage) -> None:
    damage.relabel(await damage.point_of_segment(), tenant_id=stranger())


async def wrong_session(damage: Damage) -> None:
    damage.relabel(await damage.point_of_segment(), session_id=stranger())


async def another_of_my_sessions(damage: Damage) -> None:
    point = await damage.point_of_segment()
    other = next(p.session_id for p in await damage.points() if p.session_id != point.session_id)
    damage.relabel(point, session_id=str(other))


async def wrong_hash(damage: Damage) -> None:
    damage.relabel(await damage.point_of_segment(), exact_sha256=OTHER_SHA)


async def wrong_reduced_hash(damage: Damage) -> None:
    damage.relabel(await damage.point_of_segment(), reduced_sha256=OTHER_SHA)


async def wrong_acl(damage: Damage) -> None:
    damage.relabel(await damage.point_of_segment(), acl=["public"])


async def readers_of_another_tenant(damage: Damage) -> None:
    point = await damage.point_of_segment()
    damage.relabel(point, readers=list(readers(UUID(stranger()), point.generation, point.acl)))


async def one_reader_of_another_tenant_too_many(damage: Damage) -> None:
    point = await damage.point_of_segment()
    whose = ((point.tenant_id, point.acl), (UUID(stranger()), (PUBLIC,)))
    damage.relabel(point, readers=[key for tenant_id, acl in whose for key in readers(tenant_id, point.generation, acl)])


async def readers_of_another_generation(damage: Damage) -> None:
    point = await damage.point_of_segment()
    damage.relabel(point, readers=list(readers(point.tenant_id, point.generation + 1, point.acl)))


async def no_payload(damage: Damage) -> None:
    damage.blank(await damage.point_of_segment())


async def orphan_of_no_session(damage: Damage) -> None:
    point = await damage.point_of_segment()
    damage.plant(point, uuid4(), session_id=stranger())


async def orphan_of_an_unknown_segment(damage: Damage) -> None:
    damage.plant(await damage.point_of_segment(), uuid4(), exact_sha256=OTHER_SHA)


async def orphan_twin(damage: Damage) -> None:
    """A second point that says the same as one that is right, under another id."""
    damage.plant(await damage.point_of_segment(), uuid4())


async def orphan_of_an_old_generation(damage: Damage) -> None:
    damage.plant(await damage.point_of_segment(), uuid4(), generation=0)


Plant = Callable[[Damage], Awaitable[None]]

LOST: list[tuple[str, Plant]] = [
    ("text-missing", text_missing),
    ("text-missing", row_missing),
    ("exact-hash-mismatch", exact_hash),
]
IN_ROWS: list[tuple[str, Plant]] = [("projection-missing", projection_missing)]
IN_POINTS: list[tuple[str, Plant]] = [
    ("point-missing", point_missing),
    ("point-wrong-tenant", wrong_tenant),
    ("point-wrong-tenant", no_payload),
    ("point-wrong-session", wrong_session),
    ("point-wrong-session", another_of_my_sessions),
    ("point-wrong-hash", wrong_hash),
    ("point-wrong-hash", wrong_reduced_hash),
    ("point-wrong-acl", wrong_acl),
    ("point-wrong-acl", readers_of_another_tenant),
    ("point-wrong-acl", one_reader_of_another_tenant_too_many),
    ("point-wrong-acl", readers_of_another_generation),
    ("point-orphan", orphan_of_no_session),
    ("point-orphan", orphan_of_an_unknown_segment),
    ("point-orphan", orphan_twin),
    ("point-orphan", orphan_of_an_old_generation),
]


def cases(*groups: list[tuple[str, Plant]]) -> list[object]:
    return [pytest.param(kind, plant, id=plant.__name__) for group in groups for kind, plant in group]


async def test_a_whole_memory_has_no_finding_and_everything_is_counted(
    app: App, operator: Caller, http: httpx.AsyncClient, damage: Damage
) -> None:
    stored = await rows(app, operator.tenant_id)

    scanned = await job(http, "scan")

    assert (scanned["findings_total"], scanned["findings"]) == (0, [])
    assert scanned["progress"] == {"segments": stored["segments"], "points": len(await damage.points())}
    assert stored["segments"] > 0


@pytest.mark.parametrize(("kind", "plant"), cases(LOST, IN_ROWS, IN_POINTS))
async def test_each_damage_is_named_once_and_by_its_name(http: httpx.AsyncClient, damage: Damage, kind: str, plant: Plant) -> None:
    session_id, sha = damage.any_segment()
    await plant(damage)

    scanned = await job(http, "scan")

    # A missing text cannot be projected any more, and may be named as that too.
    assert kind in kinds(scanned)
    assert set(kinds(scanned)) <= {kind, "projection-missing"}
    assert scanned["findings_total"] == len(scanned["findings"])
    finding = next(finding for finding in scanned["findings"] if finding["kind"] == kind)
    assert finding["repaired"] is False
    if kind != "point-orphan":
        assert (UUID(finding["session_id"]), finding["sha256"]) == (session_id, sha)
        assert kinds(scanned).count(kind) == 1


async def test_a_reduction_that_is_not_its_hash_is_named_and_given_up_for_the_exact_text(
    http: httpx.AsyncClient, damage: Damage
) -> None:
    sha = damage.add_reduction()
    assert kinds(await job(http, "scan")) == ["point-wrong-hash"]
    assert (await job(http, "repair"))["progress"]["remaining"] == 0
    damage.sql("UPDATE reductions SET raw = raw || 'x' WHERE tenant_id = :tenant")

    scanned = await job(http, "scan")
    repaired = await job(http, "repair")

    assert kinds(scanned) == ["reduced-hash-mismatch"]
    assert repaired["progress"]["remaining"] == 0
    assert (await http.get(f"/v1/segments/{sha}")).json()["reduced_sha256"] is None


@pytest.mark.parametrize(("kind", "plant"), cases(IN_ROWS, IN_POINTS))
async def test_what_rows_can_mend_is_mended_and_twice_is_as_good_as_once(
    http: httpx.AsyncClient, damage: Damage, kind: str, plant: Plant
) -> None:
    before = sorted(await damage.points(), key=lambda point: point.point_id)
    await plant(damage)

    once = await job(http, "repair")
    twice = await job(http, "repair")

    assert kind in kinds(once)
    assert all(finding["repaired"] for finding in once["findings"])
    assert (once["progress"]["remaining"], once["findings_total"]) == (0, 0)
    assert (twice["findings"], twice["findings_total"]) == ([], 0)
    assert sorted(await damage.points(), key=lambda point: point.point_id) == before


@pytest.mark.parametrize(("kind", "plant"), cases(LOST))
async def test_a_lost_text_is_not_made_up_and_stays_named(http: httpx.AsyncClient, damage: Damage, kind: str, plant: Plant) -> None:
    _, sha = damage.any_segment()
    await plant(damage)

    await job(http, "repair")
    again = await job(http, "repair")

    assert kind in kinds(again)
    assert [finding["repaired"] for finding in again["findings"] if finding["kind"] == kind] == [False]
    assert again["findings_total"] >= 1
    assert kind in kinds(await job(http, "scan"))
    if kind == "text-missing":
        assert (await http.get(f"/v1/segments/{sha}")).status_code == 404


@pytest.mark.parametrize(("kind", "plant"), cases(LOST))
async def test_a_lost_text_that_is_handed_in_again_is_whole_again(
    http: httpx.AsyncClient, damage: Damage, kind: str, plant: Plant
) -> None:
    _, sha = damage.any_segment()
    before = await http.get(f"/v1/segments/{sha}")
    await plant(damage)
    assert kind in kinds(await job(http, "scan"))

    # Both sessions, since the damaged segment is in one of them; each window is new by its last message.
    for session, mark in (("one", "alpha"), ("two", "beta")):
        again = [*window(calls=2, filler=2, mark=mark), {"role": "user", "content": "And once more, please, from the top."}]
        assert (await http.post("/v1/compactions", json=request(session, again))).status_code == 201

    assert (await http.get(f"/v1/segments/{sha}")).json()["text"] == before.json()["text"]
    assert kinds(await job(http, "scan")) == []


@pytest.mark.parametrize(("kind", "plant"), cases(LOST, IN_ROWS))
async def test_a_scan_without_the_index_finds_what_rows_tell(
    http: httpx.AsyncClient, damage: Damage, kind: str, plant: Plant
) -> None:
    await plant(damage)

    scanned = await job(http, "scan", index=False)

    assert kind in kinds(scanned)
    assert scanned["progress"]["points"] == 0


@pytest.mark.parametrize(("kind", "plant"), cases(IN_POINTS))
async def test_a_scan_without_the_index_does_not_ask_it(http: httpx.AsyncClient, damage: Damage, kind: str, plant: Plant) -> None:
    await plant(damage)

    assert kinds(await job(http, "scan", index=False)) == []


async def test_a_damaged_point_is_not_found_where_it_says_it_belongs(app: App, http: httpx.AsyncClient, damage: Damage) -> None:
    stranger = await apps.new_tenant(app)
    damage.relabel(await damage.point_of_segment(), tenant_id=str(stranger.tenant_id), acl=["public"])

    async with apps.client(app, stranger) as theirs:
        found = (await theirs.post("/v1/recall", json={"query": "alpha worker heartbeat health failed", "top_k": 50})).json()
        scanned = await job(theirs, "scan")

    assert found["hits"] == []
    assert kinds(scanned) == ["point-orphan"]
    assert kinds(await job(http, "scan")) == ["point-wrong-tenant"]


async def test_all_damage_at_once_is_all_named_and_all_but_the_lost_text_mended(http: httpx.AsyncClient, damage: Damage) -> None:
    _, lost = damage.any_segment()
    await text_missing(damage)
    points = [point for point in await damage.points() if point.exact_sha256 != lost]
    damage.remove(points[0])
    damage.relabel(points[1], tenant_id=stranger())
    damage.relabel(points[2], session_id=stranger())
    damage.relabel(points[3], exact_sha256=OTHER_SHA)
    damage.relabel(points[4], acl=[])
    await orphan_twin(damage)
    damage.sql("DELETE FROM projections WHERE tenant_id = :tenant AND segment_sha256 = :h", h=points[5].exact_sha256)

    scanned = await job(http, "scan")
    await job(http, "repair")

    assert set(kinds(scanned)) >= {
        "text-missing", "point-missing", "point-wrong-tenant", "point-wrong-session", "point-wrong-hash", "point-wrong-acl",
        "point-orphan", "projection-missing",
    }  # fmt: skip
    assert set(kinds(await job(http, "scan"))) <= {"text-missing", "projection-missing"}


async def test_another_tenants_damage_is_not_mine(app: App, http: httpx.AsyncClient, damage: Damage) -> None:
    other = await apps.new_tenant(app)
    await text_missing(damage)
    await point_missing(damage)

    async with apps.client(app, other) as theirs:
        scanned = await job(theirs, "scan")

    assert scanned["findings_total"] == 0
    assert scanned["progress"] == {"segments": 0, "points": 0}
    assert len(kinds(await job(http, "scan"))) == 2


async def test_a_spoiled_blob_and_a_spoiled_handoff_are_named(http: httpx.AsyncClient, damage: Damage) -> None:
    image = "data:image/png;base64," + "iVBORw0KGgo" + "A" * 400
    picture = {"role": "user", "content": [{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": image}}]}
    made = await http.post("/v1/compactions", json=request("pictures", [picture, *window(mark="gamma")]))
    assert made.status_code == 201, made.text
    assert kinds(await job(http, "scan")) == []

    damage.sql("UPDATE blobs SET raw = raw || 'x' WHERE tenant_id = :tenant")
    damage.sql(
        "UPDATE runs SET handoff_text = handoff_text || 'x' WHERE tenant_id = :tenant AND manifest_id = :m",
        m=made.json()["manifest_id"],
    )

    scanned = await job(http, "scan", index=False)

    assert kinds(scanned) == ["exact-hash-mismatch", "exact-hash-mismatch"]


async def test_a_reconcile_says_what_it_did_and_what_is_left(http: httpx.AsyncClient, damage: Damage) -> None:
    done = await job(http, "reconcile")

    assert set(done["progress"]) == {"completed", "failed", "pending", "quarantined"}
    assert (done["progress"]["pending"], done["progress"]["quarantined"]) == (0, 0)


async def test_a_rescan_under_the_same_rules_changes_nothing(
    app: App, operator: Caller, http: httpx.AsyncClient, damage: Damage
) -> None:
    before = await rows(app, operator.tenant_id)

    done = await job(http, "redact-rescan")

    assert done["progress"] == {"runs": 0, "changed": 0, "left": 0}
    assert await rows(app, operator.tenant_id) == before


@pytest.mark.parametrize("kind", ["scan", "repair", "reconcile", "redact-rescan"])
async def test_a_job_is_its_tenants_and_its_kinds_alone(app: App, operator: Caller, http: httpx.AsyncClient, kind: str) -> None:
    started = (await http.post(f"/v1/admin/{kind}")).json()
    other = await apps.new_tenant(app)
    member = await apps.new_principal(app, operator.tenant_id, MEMBER)

    async with apps.client(app, other) as theirs, apps.client(app, member) as members:
        foreign = await theirs.get(f"/v1/admin/{kind}/{started['job_id']}")
        unknown = await theirs.get(f"/v1/admin/{kind}/{uuid4()}")
        forbidden = [await members.post(f"/v1/admin/{kind}"), await members.get(f"/v1/admin/{kind}/{started['job_id']}")]
    misnamed = "scan" if kind != "scan" else "repair"

    assert (foreign.status_code, unknown.status_code) == (404, 404)
    assert {answer.status_code for answer in forbidden} == {403}
    assert (await http.get(f"/v1/admin/{misnamed}/{started['job_id']}")).status_code == 404
