"""What every adapter of the VectorIndex port finds, in which order, and for whom."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import timedelta
from random import Random

import pytest

from coatcheck.domain.passages import RecallFilter, SparseVector
from coatcheck.domain.ports import VectorIndex
from coatcheck.domain.scopes import Scope, TenantScope
from coatcheck.index.edge import EdgeIndex
from coatcheck.index.lexical import analyse_query
from tests.index.asking import EVERYTHING, lexical
from tests.index.making import ANN, BEN, EVE, NOON, Reader, hashes, named, point, sha


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


async def test_T11_another_tenants_and_another_principals_points_never_appear(index: VectorIndex) -> None:
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
async def test_words_that_the_scope_may_not_read_move_no_order(index: VectorIndex, foreign: Reader) -> None:
    """IDF over the whole collection would make the rare word of the query the common one."""
    await index.upsert(ANN.tenant_scope, [point(ANN, "heron"), point(ANN, "osprey")])
    await index.upsert(ANN.tenant_scope, [point(ANN, f"osprey number{n}") for n in range(6)])
    before = await lexical(index, ANN.scope, "osprey heron")

    await index.upsert(foreign.tenant_scope, [point(foreign, f"heron count{n}") for n in range(60)])

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
        RecallFilter(session_ids=()): set(),
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


async def test_T10_a_search_without_a_principals_scope_is_refused(index: VectorIndex) -> None:
    await index.upsert(ANN.tenant_scope, [point(ANN, "alpha", dense=[1, 0])])
    emptied = Scope(ANN.tenant, ANN.principal, (ANN.key,))
    object.__setattr__(emptied, "acl", ())

    for scope in (emptied, TenantScope(ANN.tenant)):
        with pytest.raises(ValueError, match="scope"):
            await index.search_lexical(scope, 1, analyse_query("alpha"), EVERYTHING, 10)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="scope"):
            await index.search_dense(scope, 1, [1, 0], EVERYTHING, 10)  # type: ignore[arg-type]


async def test_ten_thousand_points_are_written_and_searched_in_good_time(index: VectorIndex) -> None:
    if not isinstance(index, EdgeIndex):
        pytest.skip("the client's in-memory engine is a stand-in for tests, not for size")
    random = Random(7)
    words = [f"word{n}" for n in range(400)]
    points = [
        point(ANN, f"{n} " + " ".join(random.choices(words, k=12)), dense=[random.random() for _ in range(64)])
        for n in range(10_000)
    ]

    started = time.process_time()
    await index.upsert(ANN.tenant_scope, points)
    written_s = time.process_time() - started
    started = time.process_time()
    for n in range(50):
        await index.search_lexical(ANN.scope, 1, points[n].lexical, EVERYTHING, 40)
        assert (await index.search_dense(ANN.scope, 1, points[n].dense or (), EVERYTHING, 40))[0].exact_sha256 == points[
            n
        ].exact_sha256
    searched_s = (time.process_time() - started) / 100

    assert written_s < 30
    assert searched_s < 0.25
