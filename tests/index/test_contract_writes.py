"""What every adapter of the VectorIndex port writes, changes, removes and counts."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from uuid import UUID

import pytest

from coatcheck.domain.passages import RecallFilter, StoredPoint
from coatcheck.domain.ports import VectorIndex
from coatcheck.domain.scopes import TenantScope
from tests.index.asking import EVERYTHING, everything, lexical
from tests.index.making import ANN, BEN, EVE, hashes, named, point, sha


async def test_writing_a_point_again_writes_it_in_place(index: VectorIndex) -> None:
    await index.upsert(ANN.tenant_scope, [point(ANN, "alpha", context="earlier", dense=[1, 0], version="old")])

    await index.upsert(ANN.tenant_scope, [point(ANN, "alpha", context="later", version="new")])

    (stored,) = await everything(index)
    assert stored.content_version == "new"
    assert await lexical(index, ANN.scope, "earlier") == []
    assert await lexical(index, ANN.scope, "later") == [sha("alpha")]
    assert await index.search_dense(ANN.scope, 1, [1, 0], EVERYTHING, 10) == []


async def test_a_text_without_terms_can_be_stored(index: VectorIndex) -> None:
    await index.upsert(ANN.tenant_scope, [point(ANN, "?!", dense=[1, 0])])

    assert len(await everything(index)) == 1
    assert await lexical(index, ANN.scope, "alpha") == []


async def test_a_role_with_a_lone_surrogate_is_stored_and_found_as_the_replacement_character(index: VectorIndex) -> None:
    await index.upsert(ANN.tenant_scope, [point(ANN, "alpha", roles=("odd\ud800",))])

    assert await lexical(index, ANN.scope, "alpha", RecallFilter(roles=("odd\ud800",))) == [sha("alpha")]


async def test_a_changed_acl_opens_and_closes_a_session(index: VectorIndex) -> None:
    await index.upsert(ANN.tenant_scope, [point(ANN, "alpha one", session="a"), point(ANN, "alpha two", session="b")])

    await index.set_acl(ANN.tenant_scope, named("a"), (BEN.key,))

    assert await lexical(index, BEN.scope, "alpha") == [sha("alpha one")]
    assert await lexical(index, ANN.scope, "alpha") == [sha("alpha two")]


async def test_a_changed_acl_holds_in_every_generation(index: VectorIndex) -> None:
    await index.upsert(ANN.tenant_scope, [point(ANN, "alpha", session="a", generation=n, dense=[1, 0]) for n in (1, 2, 12)])

    await index.set_acl(ANN.tenant_scope, named("a"), (BEN.key, "public"))

    for generation in (1, 2, 12):
        assert await lexical(index, ANN.scope, "alpha", generation=generation) == []
        assert await lexical(index, BEN.scope, "alpha", generation=generation) == [sha("alpha")]
        assert len(await index.search_dense(BEN.scope, generation, [1, 0], EVERYTHING, 10)) == 1
    assert {stored.acl for stored in await everything(index)} == {(BEN.key, "public")}


async def test_the_acl_of_another_tenants_session_is_out_of_reach(index: VectorIndex) -> None:
    await index.upsert(ANN.tenant_scope, [point(ANN, "alpha", session="a")])

    await index.set_acl(EVE.tenant_scope, named("a"), (EVE.key,))

    assert await lexical(index, ANN.scope, "alpha") == [sha("alpha")]


async def test_deleted_points_are_gone_and_the_rest_stays(index: VectorIndex) -> None:
    gone, stays = point(ANN, "alpha gone", dense=[1, 0]), point(ANN, "alpha stays", dense=[1, 0])
    await index.upsert(ANN.tenant_scope, [gone, stays])

    await index.delete_points(ANN.tenant_scope, [gone.point_id, named("never there")])
    await index.delete_points(ANN.tenant_scope, [])

    assert await lexical(index, ANN.scope, "alpha") == [sha("alpha stays")]
    assert hashes(await index.search_dense(ANN.scope, 1, [1, 0], EVERYTHING, 10)) == [sha("alpha stays")]


async def test_a_session_is_deleted_whole_and_alone(index: VectorIndex) -> None:
    await index.upsert(ANN.tenant_scope, [point(ANN, f"alpha {n}", session="a", generation=n) for n in (1, 2)])
    await index.upsert(ANN.tenant_scope, [point(ANN, "alpha other", session="b")])

    await index.delete_session(ANN.tenant_scope, named("a"))

    assert [stored.session_id for stored in await everything(index)] == [named("b")]


async def test_T04_another_tenants_points_and_sessions_cannot_be_deleted(index: VectorIndex) -> None:
    mine = point(ANN, "alpha", session="a")
    await index.upsert(ANN.tenant_scope, [mine])

    await index.delete_points(EVE.tenant_scope, [mine.point_id])
    await index.delete_session(EVE.tenant_scope, named("a"))

    assert await lexical(index, ANN.scope, "alpha") == [sha("alpha")]


async def test_retrieve_gives_the_points_that_exist_as_they_were_written(index: VectorIndex) -> None:
    written = replace(point(ANN, "alpha", session="s", passage=2, version="v7"), reduced_sha256=sha("a"))
    await index.upsert(ANN.tenant_scope, [written])

    found = await index.retrieve(ANN.tenant_scope, [written.point_id, named("never there")])

    assert found == [
        StoredPoint(
            point_id=written.point_id,
            tenant_id=ANN.tenant,
            session_id=named("s"),
            exact_sha256=sha("alpha"),
            reduced_sha256=sha("a"),
            acl=(ANN.key,),
            passage=2,
            generation=1,
            content_version="v7",
        )
    ]


async def test_retrieve_does_not_hide_a_point_whose_payload_names_another_tenant(index: VectorIndex) -> None:
    foreign = point(EVE, "alpha")
    await index.upsert(EVE.tenant_scope, [foreign])

    (found,) = await index.retrieve(ANN.tenant_scope, [foreign.point_id])

    assert found.tenant_id == EVE.tenant


async def test_the_operators_scroll_sees_every_tenants_points_once(index: VectorIndex) -> None:
    written = {owner: [point(owner, f"text {n}", session=str(owner.principal)) for n in range(7)] for owner in (ANN, BEN, EVE)}
    for owner, points in written.items():
        await index.upsert(owner.tenant_scope, points)
    expected = sorted(one.point_id for points in written.values() for one in points)

    seen = [stored.point_id for stored in await everything(index, page_size=4)]
    rest = [stored.point_id async for page in index.scroll(after=expected[9], page_size=4) for stored in page]

    assert seen == expected
    assert rest == expected[10:]


async def test_the_ids_of_a_tenants_points_come_once_and_nobody_elses(index: VectorIndex) -> None:
    mine = [point(owner, f"text {n}", session=str(owner.principal), generation=n % 2) for owner in (ANN, BEN) for n in range(7)]
    await index.upsert(ANN.tenant_scope, mine)
    await index.upsert(EVE.tenant_scope, [point(EVE, f"text {n}") for n in range(7)])

    pages = [page async for page in index.scroll_ids(ANN.tenant_scope, page_size=4)]

    assert [len(page) for page in pages] == [4, 4, 4, 2]
    assert [point_id for page in pages for point_id in page] == sorted(one.point_id for one in mine)


async def test_the_ids_of_one_session_are_those_of_its_points_alone(index: VectorIndex) -> None:
    mine = [point(ANN, f"text {n}", session="a", generation=n % 2) for n in range(5)]
    await index.upsert(ANN.tenant_scope, [*mine, point(ANN, "text 0", session="b")])
    await index.upsert(EVE.tenant_scope, [point(EVE, "text 0", session="a")])

    pages = [page async for page in index.scroll_ids(ANN.tenant_scope, page_size=4, session_id=named("a"))]

    assert [point_id for page in pages for point_id in page] == sorted(one.point_id for one in mine)


async def test_count_counts_one_session_of_one_generation(index: VectorIndex) -> None:
    await index.upsert(ANN.tenant_scope, [point(ANN, f"alpha {n}", session="a") for n in range(4)])
    await index.upsert(ANN.tenant_scope, [point(ANN, "alpha", session="a", generation=2), point(ANN, "alpha", session="b")])
    await index.upsert(EVE.tenant_scope, [point(EVE, "alpha", session="a")])

    assert await index.count(ANN.tenant_scope, named("a"), 1) == 4
    assert await index.count(ANN.tenant_scope, named("a"), 2) == 1
    assert await index.count(ANN.tenant_scope, named("c"), 1) == 0


async def test_generations_lie_side_by_side_even_with_vectors_of_other_lengths(index: VectorIndex) -> None:
    await index.upsert(ANN.tenant_scope, [point(ANN, "alpha", generation=1, dense=[1, 0])])
    await index.upsert(ANN.tenant_scope, [point(ANN, "alpha", generation=2, dense=[1, 0, 0])])

    assert len(await index.search_dense(ANN.scope, 1, [1, 0], EVERYTHING, 10)) == 1
    assert len(await index.search_dense(ANN.scope, 2, [1, 0, 0], EVERYTHING, 10)) == 1
    assert len(await lexical(index, ANN.scope, "alpha", generation=2)) == 1
    await index.delete_generation(1)
    assert await lexical(index, ANN.scope, "alpha", generation=1) == []
    assert len(await lexical(index, ANN.scope, "alpha", generation=2)) == 1


async def test_a_point_of_another_tenant_is_refused_and_nothing_is_written(index: VectorIndex) -> None:
    with pytest.raises(ValueError, match="tenant"):
        await index.upsert(ANN.tenant_scope, [point(ANN, "alpha"), point(EVE, "beta")])

    assert await everything(index) == []


async def test_a_point_that_nobody_may_read_is_refused(index: VectorIndex) -> None:
    with pytest.raises(ValueError, match="acl"):
        await index.upsert(ANN.tenant_scope, [replace(point(ANN, "alpha"), acl=())])


async def test_T10_a_scope_without_a_tenant_deletes_nothing(index: VectorIndex) -> None:
    await index.upsert(ANN.tenant_scope, [point(ANN, "alpha")])
    nobody = TenantScope(ANN.tenant)
    object.__setattr__(nobody, "tenant_id", UUID(int=0))

    for scope in (nobody, None, "*"):
        with pytest.raises(ValueError, match="tenant"):
            await index.delete_session(scope, named("session"))  # type: ignore[arg-type]

    assert len(await everything(index)) == 1


async def test_reads_and_writes_at_the_same_time_agree_in_the_end(index: VectorIndex) -> None:
    async def write(n: int) -> None:
        await index.upsert(ANN.tenant_scope, [point(ANN, f"alpha {n}", dense=[1, n])])
        await index.search_dense(ANN.scope, 1, [1, n], EVERYTHING, 5)

    await asyncio.gather(*(write(n) for n in range(30)))
    await index.flush()
    await index.check()

    assert await index.count(ANN.tenant_scope, named("session"), 1) == 30
