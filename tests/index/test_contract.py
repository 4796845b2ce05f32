"""What every adapter of the VectorIndex port promises."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from datetime import timedelta
from random import Random
from uuid import UUID

import pytest

from coatcheck.domain.passages import RecallFilter, SparseVector, StoredPoint
from coatcheck.domain.ports import VectorIndex
from coatcheck.domain.scopes import Scope, TenantScope
from coatcheck.index.edge import EdgeIndex
from coatcheck.index.lexical import analyse_query
from tests.index.making import ANN, BEN, EVE, NOON, hashes, named, point, sha

EVERYTHING = RecallFilter()


async def lexical(
    index: VectorIndex, scope: Scope, query: str, narrow: RecallFilter = EVERYTHING, generation: int = 1
) -> list[str]:
    return hashes(await index.search_lexical(scope, generation, analyse_query(query), narrow, 10))


async def everything(index: VectorIndex, page_size: int = 1_000) -> list[StoredPoint]:
    return [stored async for page in index.scroll(page_size=page_size) for stored in page]


async def test_the_lexical_leg_finds_the_text_that_says_it_first(index: VectorIndex) -> None:
    texts = ["the port is 8443", "the database runs in Frankfurt", "nobody knows the password"]
    await index.upsert(ANN.tenant_scope, [point(ANN, text) for text in texts])

    found = await lexical(index, ANN.scope, "where do the databases run?")

    assert found == [sha("the database runs in Frankfurt")]


async def test_the_dense_leg_orders_by_likeness_and_knows_only_points_that_have_a_vector(index: VectorIndex) -> None:
    near, far = point(ANN, "near", dense=[1, 0.1, 0]), point(ANN, "far", dense=[0, 0.1, 1])
    await index.upsert(ANN.tenant_scope, [far, near, point(ANN, "without a vector")])

    hits = await index.search_dense(ANN.scope, 1, [1, 0, 0], EVERYTHING, 10)

    assert hashes(hits) == [sha("near"), sha("far")]


async def test_a_hit_says_which_passage_of_which_session_and_when(index: VectorIndex) -> None:
    await index.upsert(ANN.tenant_scope, [point(ANN, "alpha", session="s", passage=3, hours=1, lasts_hours=2)])

    (hit,) = await index.search_lexical(ANN.scope, 1, analyse_query("alpha"), EVERYTHING, 10)

    assert (hit.session_id, hit.exact_sha256, hit.passage) == (named("s"), sha("alpha"), 3)
    assert hit.last_at == NOON + timedelta(hours=3)


async def test_times_come_back_to_the_microsecond(index: VectorIndex) -> None:
    at = NOON + timedelta(microseconds=123_457)
    await index.upsert(ANN.tenant_scope, [replace(point(ANN, "alpha"), last_at=at)])

    (hit,) = await index.search_lexical(ANN.scope, 1, analyse_query("alpha"), EVERYTHING, 10)

    assert hit.last_at == at


async def test_writing_a_point_again_writes_it_in_place(index: VectorIndex) -> None:
    await index.upsert(ANN.tenant_scope, [point(ANN, "alpha", context="earlier", dense=[1, 0], version="old")])

    await index.upsert(ANN.tenant_scope, [point(ANN, "alpha", context="later", version="new")])

    (stored,) = await everything(index)
    assert stored.content_version == "new"
    assert await lexical(index, ANN.scope, "earlier") == []
    assert await lexical(index, ANN.scope, "later") == [sha("alpha")]
    assert await index.search_dense(ANN.scope, 1, [1, 0], EVERYTHING, 10) == []


async def test_another_tenants_and_another_principals_points_never_appear(index: VectorIndex) -> None:
    for owner in (ANN, BEN, EVE):
        mine = [point(owner, f"secret of {owner.principal} number {n}", dense=[1, n]) for n in range(5)]
        await index.upsert(owner.tenant_scope, mine)

    for owner in (ANN, BEN, EVE):
        mine_only = {sha(f"secret of {owner.principal} number {n}") for n in range(5)}
        assert set(await lexical(index, owner.scope, "secret number")) == mine_only
        assert set(hashes(await index.search_dense(owner.scope, 1, [1, 1], EVERYTHING, 100))) == mine_only


async def test_the_same_acl_key_in_another_tenant_opens_nothing(index: VectorIndex) -> None:
    await index.upsert(ANN.tenant_scope, [point(ANN, "alpha", dense=[1, 0])])
    stranger = Scope(EVE.tenant, ANN.principal, (ANN.key, "public"))

    assert await lexical(index, stranger, "alpha") == []
    assert await index.search_dense(stranger, 1, [1, 0], EVERYTHING, 10) == []


async def test_any_acl_key_of_the_scope_opens_a_point(index: VectorIndex) -> None:
    shared = replace(point(ANN, "alpha"), acl=(ANN.key, "t:team"))
    await index.upsert(ANN.tenant_scope, [shared])

    assert await lexical(index, Scope(BEN.tenant, BEN.principal, (BEN.key, "t:team")), "alpha") == [sha("alpha")]
    assert await lexical(index, BEN.scope, "alpha") == []


@pytest.mark.parametrize("foreign", [BEN, EVE], ids=["of the same tenant", "of another tenant"])
async def test_words_that_the_scope_may_not_read_move_no_order(index: VectorIndex, foreign: object) -> None:
    """IDF over the whole collection would make the rare word of the query the common one."""
    owner = BEN if foreign is BEN else EVE
    await index.upsert(ANN.tenant_scope, [point(ANN, "heron"), point(ANN, "osprey")])
    await index.upsert(ANN.tenant_scope, [point(ANN, f"osprey number{n}") for n in range(6)])
    before = await lexical(index, ANN.scope, "osprey heron")

    await index.upsert(owner.tenant_scope, [point(owner, f"heron count{n}") for n in range(60)])

    assert before[0] == sha("heron")
    assert await lexical(index, ANN.scope, "osprey heron") == before


async def test_a_recall_narrows_by_session_role_and_time(index: VectorIndex) -> None:
    await index.upsert(
        ANN.tenant_scope,
        [
            point(ANN, "alpha one", session="a", roles=("user",), hours=0, dense=[1, 0]),
            point(ANN, "alpha two", session="b", roles=("assistant", "tool"), hours=10, lasts_hours=4, dense=[1, 0]),
            point(ANN, "alpha three", session="c", roles=("system",), hours=20, dense=[1, 0]),
        ],
    )
    one, two, three = sha("alpha one"), sha("alpha two"), sha("alpha three")
    expected = {
        RecallFilter(session_ids=(named("a"), named("c"))): {one, three},
        RecallFilter(roles=("tool", "system")): {two, three},
        RecallFilter(since=NOON + timedelta(hours=12)): {two, three},
        RecallFilter(since=NOON + timedelta(hours=14)): {two, three},
        RecallFilter(since=NOON + timedelta(hours=14, microseconds=1)): {three},
        RecallFilter(until=NOON + timedelta(hours=10)): {one, two},
        RecallFilter(until=NOON + timedelta(hours=10) - timedelta(microseconds=1)): {one},
        RecallFilter(session_ids=(named("b"),), roles=("user",)): set(),
    }

    for narrow, hits in expected.items():
        assert set(await lexical(index, ANN.scope, "alpha", narrow)) == hits
        assert set(hashes(await index.search_dense(ANN.scope, 1, [1, 0], narrow, 10))) == hits


async def test_the_limit_cuts_after_the_best(index: VectorIndex) -> None:
    await index.upsert(ANN.tenant_scope, [point(ANN, f"alpha {n}", dense=[1, n]) for n in range(20)])

    assert len(await index.search_lexical(ANN.scope, 1, analyse_query("alpha"), EVERYTHING, 3)) == 3
    assert hashes(await index.search_dense(ANN.scope, 1, [1, 0], EVERYTHING, 2)) == [sha("alpha 0"), sha("alpha 1")]


async def test_among_equals_the_newest_stands_first(index: VectorIndex) -> None:
    order = [3, 1, 4, 0, 2]
    await index.upsert(ANN.tenant_scope, [point(ANN, f"alpha {n}", session=f"s{n}", hours=n, dense=[1, 0]) for n in order])
    newest_first = [sha(f"alpha {n}") for n in (4, 3, 2, 1, 0)]

    assert await lexical(index, ANN.scope, "alpha") == newest_first
    assert hashes(await index.search_dense(ANN.scope, 1, [1, 0], EVERYTHING, 10)) == newest_first


async def test_a_query_without_terms_finds_nothing(index: VectorIndex) -> None:
    await index.upsert(ANN.tenant_scope, [point(ANN, "alpha")])

    assert await index.search_lexical(ANN.scope, 1, SparseVector((), ()), EVERYTHING, 10) == []


async def test_an_index_without_any_vector_of_this_length_finds_nothing(index: VectorIndex) -> None:
    await index.upsert(ANN.tenant_scope, [point(ANN, "alpha")])

    assert await index.search_dense(ANN.scope, 1, [1, 0, 0, 0, 0], EVERYTHING, 10) == []


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


async def test_another_tenants_points_and_sessions_cannot_be_deleted(index: VectorIndex) -> None:
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


async def test_a_search_without_a_principals_scope_is_refused(index: VectorIndex) -> None:
    await index.upsert(ANN.tenant_scope, [point(ANN, "alpha", dense=[1, 0])])
    emptied = Scope(ANN.tenant, ANN.principal, (ANN.key,))
    object.__setattr__(emptied, "acl", ())

    for scope in (emptied, TenantScope(ANN.tenant)):
        with pytest.raises(ValueError, match="scope"):
            await index.search_lexical(scope, 1, analyse_query("alpha"), EVERYTHING, 10)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="scope"):
            await index.search_dense(scope, 1, [1, 0], EVERYTHING, 10)  # type: ignore[arg-type]


async def test_a_scope_without_a_tenant_deletes_nothing(index: VectorIndex) -> None:
    await index.upsert(ANN.tenant_scope, [point(ANN, "alpha")])
    nobody = TenantScope(ANN.tenant)
    object.__setattr__(nobody, "tenant_id", UUID(int=0))

    with pytest.raises(ValueError, match="tenant"):
        await index.delete_session(nobody, named("session"))

    assert len(await everything(index)) == 1


async def test_reads_and_writes_at_the_same_time_agree_in_the_end(index: VectorIndex) -> None:
    async def write(n: int) -> None:
        await index.upsert(ANN.tenant_scope, [point(ANN, f"alpha {n}", dense=[1, n])])
        await index.search_dense(ANN.scope, 1, [1, n], EVERYTHING, 5)

    await asyncio.gather(*(write(n) for n in range(30)))
    await index.flush()
    await index.check()

    assert await index.count(ANN.tenant_scope, named("session"), 1) == 30


async def test_ten_thousand_points_are_written_and_searched_in_good_time(index: VectorIndex) -> None:
    if not isinstance(index, EdgeIndex):
        pytest.skip("the client's in-memory engine is a stand-in for tests, not for size")
    random = Random(7)
    words = [f"word{n}" for n in range(400)]
    points = [
        point(ANN, f"{n} " + " ".join(random.choices(words, k=12)), dense=[random.random() for _ in range(64)])
        for n in range(10_000)
    ]

    started = time.monotonic()
    await index.upsert(ANN.tenant_scope, points)
    written_s = time.monotonic() - started
    started = time.monotonic()
    for n in range(50):
        await index.search_lexical(ANN.scope, 1, points[n].lexical, EVERYTHING, 40)
        assert (await index.search_dense(ANN.scope, 1, points[n].dense or (), EVERYTHING, 40))[0].exact_sha256 == points[
            n
        ].exact_sha256
    searched_s = (time.monotonic() - started) / 100

    assert written_s < 30
    assert searched_s < 0.25
