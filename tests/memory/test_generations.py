"""Another embedder is another generation: filled beside what is read, complete before the old one goes. And an unclean stop."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import pytest
import qdrant_edge as engine
import sqlalchemy as sa

from coatcheck.app.compose import App, Foundations
from coatcheck.app.data_dir import DataDirectory
from coatcheck.app.models import Models
from coatcheck.app.storage import OpenedIndex
from coatcheck.domain.scopes import principal_key
from coatcheck.identity import root_key
from coatcheck.identity.keyring import Keyring
from coatcheck.identity.scopes import tenant_scope
from coatcheck.index.edge import EdgeIndex
from coatcheck.memory.integrity import Scanner
from coatcheck.memory.startup import open_generation
from coatcheck.models.hashing import HashingEmbedder
from coatcheck.models.lanes import EmbeddingLanes
from coatcheck.ops import faults
from coatcheck.ops.progress import ProgressBoard, standard_stages
from coatcheck.store.database import Database, DirectoryTransaction, WorkerTransaction
from tests import apps
from tests.apps import Caller, rules, settings_for
from tests.windows import request, window

QUESTION = "GET /alpha/health on 10.2.0.1:8443 failed with 501"


class Narrow(HashingEmbedder):
    """Another embedder with fewer dimensions."""

    revision = "narrow-1"
    dimensions = 96

    def embed_passages(self, texts: Sequence[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        wide = super().embed_query(text)
        folded = [sum(wide[at :: self.dimensions]) for at in range(self.dimensions)]
        length = sum(value * value for value in folded) ** 0.5
        return [value / length for value in folded] if length else [1.0] + [0.0] * (self.dimensions - 1)


@asynccontextmanager
async def serving(database_url: str, folder: Path, embedder: HashingEmbedder | None, **overrides: object) -> AsyncIterator[App]:
    """As ``apps.app``, with an embedder given by value."""
    settings = settings_for(database_url, folder, **overrides)
    board = ProgressBoard(standard_stages(settings.stage_limit_s))
    lanes = EmbeddingLanes(embedder, board, batch=8) if embedder is not None else None
    models = Models(lanes, None, {})
    database = await Database.connect(database_url, pool_size=1)
    try:
        generation = await open_generation(database, settings, models.embedder_revision, models.dimensions)
    finally:
        await database.close()
    assert settings.root_key is not None
    keyring = Keyring(root_key.parse(settings.root_key.get_secret_value()))
    with DataDirectory(settings.data_dir) as data:
        index = EdgeIndex.open(data.index)
        try:
            opened = OpenedIndex(index, index.was_clean and index.flushed_at is not None, index.flushed_at)
            on = Foundations(settings, data, database_url, keyring, models, generation, opened, rules(), board)
            async with apps.app_on(on, alone=True) as app:
                yield app
        finally:
            await index.close()
            await models.close(10)


async def stored(app: App, caller: Caller, *marks: str) -> list[dict[str, Any]]:
    made = []
    async with apps.client(app, caller) as http:
        for mark in marks:
            answer = await http.post("/v1/compactions", json=request("s", window(mark=mark)))
            assert answer.status_code == 201, answer.text
            made.append(answer.json())
    return made


async def recalled(app: App, caller: Caller, query: str = QUESTION) -> dict[str, Any]:
    async with apps.client(app, caller) as http:
        answer = await http.post("/v1/recall", json={"query": query, "top_k": 20})
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


async def points(app: App) -> Counter[int]:
    """How many points each generation has."""
    return Counter([point.generation async for page in app.parts.index.scroll() for point in page])


async def recorded(app: App, caller: Caller) -> Counter[int]:
    """How many points each generation is recorded to have."""

    async def work(tx: WorkerTransaction) -> Counter[int]:
        rows = await tx.connection.execute(sa.text("SELECT generation, sum(passages) AS n FROM projections GROUP BY 1"))
        return Counter({row.generation: row.n for row in rows})

    return await app.parts.database.work(tenant_scope(caller.tenant_id), work)


async def built(app: App) -> None:
    """Returns when the generation serves."""
    async with asyncio.timeout(30):
        while app.parts.state.building:  # noqa: ASYNC110
            await asyncio.sleep(0.02)


async def findings(app: App, caller: Caller) -> dict[str, int]:
    return (await Scanner(app.parts).scan(tenant_scope(caller.tenant_id), index=True)).findings_by_kind


def warned(recall: dict[str, Any]) -> list[str]:
    return [warning["code"] for warning in recall["warnings"]]


@pytest.mark.parametrize(
    ("before", "after"),
    [(None, HashingEmbedder()), (HashingEmbedder(), None), (HashingEmbedder(), Narrow())],
    ids=["on", "off", "other"],
)
async def test_another_embedder_fills_a_generation_of_its_own_and_the_old_one_goes(
    fresh_database_url: str, tmp_path: Path, before: HashingEmbedder | None, after: HashingEmbedder | None
) -> None:
    async with serving(fresh_database_url, tmp_path, before) as app:
        caller = await apps.new_tenant(app)
        (made,) = await stored(app, caller, "alpha")
        assert warned(await recalled(app, caller)) == []
        old = await points(app)

    async with faults.held("after-claim") as hold, serving(fresh_database_url, tmp_path, after) as app:
        await hold.reached()
        building = await recalled(app, caller)
        still_readable = await window_of(app, caller, made)
        scanned = await findings(app, caller)
        new = await stored(app, caller, "beta")
        found_at_once = await recalled(app, caller, "GET /beta/health on 10.2.0.1:8443 failed with 501")

        hold.release()
        await built(app)
        done = await recalled(app, caller)

        assert warned(building) == ["index-rebuilding"]
        assert still_readable == window()
        assert scanned == {}
        assert "/beta/health on 10.2.0.1:8443 failed with 501" in str(found_at_once["hits"])
        assert warned(done) == []
        assert "/alpha/health on 10.2.0.1:8443 failed with 501" in str(done["hits"])
        assert done["legs"]["dense"] == ("used" if after is not None else "unavailable: no embedding model")
        assert new[0]["index"]["generation"] == 2
        assert set(old) == {1}
        assert await points(app) == await recorded(app, caller)
        assert set(await points(app)) == {2}
        assert await findings(app, caller) == {}


async def test_points_that_were_laid_out_otherwise_are_written_anew_and_missed_by_nobody_who_is_not_told(
    fresh_database_url: str, tmp_path: Path
) -> None:
    """Such points answer no search of today: a start that took them for its own would find nothing and say nothing."""
    async with serving(fresh_database_url, tmp_path, HashingEmbedder()) as app:
        caller = await apps.new_tenant(app)
        await stored(app, caller, "alpha")
        await laid_out_as_once(app, caller)
        assert (await recalled(app, caller))["hits"] == []

    async with faults.held("after-claim") as hold, serving(fresh_database_url, tmp_path, HashingEmbedder()) as app:
        await hold.reached()
        meanwhile = await recalled(app, caller)
        hold.release()
        await built(app)

        assert warned(meanwhile) == ["index-rebuilding"]
        assert "/alpha/health on 10.2.0.1:8443 failed with 501" in str((await recalled(app, caller))["hits"])
        assert set(await points(app)) == {2}
        assert await findings(app, caller) == {}


async def laid_out_as_once(app: App, caller: Caller) -> None:
    """Points and generation as the first layout had them: with an acl beside their tenant, and no readers."""
    index = app.parts.index
    assert isinstance(index, EdgeIndex)
    ids: list[int | UUID | str] = [point.point_id async for page in index.scroll() for point in page]
    index._shard.update(engine.UpdateOperation.set_payload(ids, {"acl": [principal_key(caller.principal_id)]}))
    index._shard.update(engine.UpdateOperation.delete_payload(ids, ["readers"]))

    async def work(tx: DirectoryTransaction) -> None:
        await tx.connection.execute(sa.text("UPDATE generations SET analyser_revision = 'lexical-1'"))

    await app.parts.database.directory(work)


async def window_of(app: App, caller: Caller, made: dict[str, Any]) -> list[dict[str, Any]]:
    async with apps.client(app, caller) as http:
        answer: httpx.Response = await http.get(f"/v1/manifests/{made['manifest_id']}/window")
    messages: list[dict[str, Any]] = answer.json()["messages"]
    return messages


async def test_the_same_embedder_is_the_same_generation(fresh_database_url: str, tmp_path: Path) -> None:
    async with serving(fresh_database_url, tmp_path, HashingEmbedder()) as app:
        caller = await apps.new_tenant(app)
        await stored(app, caller, "alpha")
        before = await points(app)

    async with serving(fresh_database_url, tmp_path, HashingEmbedder()) as app:
        assert not app.parts.state.building
        assert await points(app) == before
        assert await findings(app, caller) == {}


async def test_an_embedder_that_changes_again_before_its_generation_is_complete_leaves_nothing_behind(
    fresh_database_url: str, tmp_path: Path
) -> None:
    async with serving(fresh_database_url, tmp_path, None) as app:
        caller = await apps.new_tenant(app)
        await stored(app, caller, "alpha", "beta", "gamma")
    async with faults.held("before-fill") as hold:
        hold.release()
        async with serving(fresh_database_url, tmp_path, HashingEmbedder(), reconcile_interval_s=600) as app:
            await app.use_cases.reconciler.batch(tenant_scope(caller.tenant_id))
            assert app.parts.state.building
            half = await points(app)

    async with serving(fresh_database_url, tmp_path, Narrow()) as app:
        await built(app)

        assert set(half) == {1, 2}
        assert set(await points(app)) == {3}
        assert await points(app) == await recorded(app, caller)
        assert await findings(app, caller) == {}
        assert "/gamma/health" in str(await recalled(app, caller, "GET /gamma/health on 10.2.0.1:8443 failed"))


async def test_a_start_that_died_before_it_asked_for_the_filling_is_made_good_by_the_next(
    fresh_database_url: str, tmp_path: Path
) -> None:
    async with serving(fresh_database_url, tmp_path, None) as app:
        caller = await apps.new_tenant(app)
        await stored(app, caller, "alpha")
    faults.arm("before-fill=raise")
    try:
        with pytest.raises(faults.InjectedFault):
            async with serving(fresh_database_url, tmp_path, HashingEmbedder()):
                pass
    finally:
        faults.disarm()

    async with serving(fresh_database_url, tmp_path, HashingEmbedder()) as app:
        await built(app)

        assert set(await points(app)) == {2}
        assert await findings(app, caller) == {}


async def test_a_start_that_died_while_it_took_the_old_points_out_is_made_good_by_the_next(
    fresh_database_url: str, tmp_path: Path
) -> None:
    async with serving(fresh_database_url, tmp_path, None) as app:
        caller = await apps.new_tenant(app)
        await stored(app, caller, "alpha")
    async with serving(fresh_database_url, tmp_path, HashingEmbedder(), reconcile_interval_s=600) as app:
        await app.use_cases.reconciler.drain_tenant(caller.tenant_id)
        await app.parts.index.delete_generation(1)
        assert app.parts.state.building

    async with serving(fresh_database_url, tmp_path, HashingEmbedder()) as app:
        await built(app)

        assert set(await points(app)) == {2}
        assert await recorded(app, caller) == await points(app)
        assert await findings(app, caller) == {}


async def test_T25_what_is_erased_while_a_generation_is_filled_is_in_neither(fresh_database_url: str, tmp_path: Path) -> None:
    async with serving(fresh_database_url, tmp_path, None) as app:
        caller = await apps.new_tenant(app)
        first, second = await stored(app, caller, "alpha", "beta")
    async with (
        serving(fresh_database_url, tmp_path, HashingEmbedder(), reconcile_interval_s=600, lease_s=1) as app,
        apps.client(app, caller) as http,
    ):
        assert (await http.delete(f"/v1/manifests/{first['manifest_id']}")).status_code == 204
        during = str(await recalled(app, caller))

    async with serving(fresh_database_url, tmp_path, HashingEmbedder()) as app:
        await built(app)

        assert "/alpha/health" not in during
        assert "/alpha/health" not in str(await recalled(app, caller))
        assert await recorded(app, caller) == await points(app)
        assert await findings(app, caller) == {}
        assert await window_of(app, caller, second) == window(mark="beta")


async def test_after_an_unclean_stop_that_lost_half_the_points_the_start_projects_them_again(
    fresh_database_url: str, tmp_path: Path
) -> None:
    async with serving(fresh_database_url, tmp_path, HashingEmbedder()) as app:
        caller = await apps.new_tenant(app)
        await stored(app, caller, "alpha", "beta")
        before = await points(app)
        ids = [point.point_id async for page in app.parts.index.scroll() for point in page]
        await app.parts.index.delete_points(tenant_scope(caller.tenant_id), ids[::2])
        assert await findings(app, caller) == {"point-missing": len(ids[::2])}
    stopped_uncleanly(tmp_path)

    async with serving(fresh_database_url, tmp_path, HashingEmbedder()) as app:
        # Before anybody is served: the start itself has done it.
        assert await points(app) == before
        assert await findings(app, caller) == {}
        assert "/alpha/health on 10.2.0.1:8443 failed with 501" in str(await recalled(app, caller))


async def test_after_an_unclean_stop_of_an_index_that_was_lost_whole_the_start_projects_everything_again(
    fresh_database_url: str, tmp_path: Path
) -> None:
    async with serving(fresh_database_url, tmp_path, HashingEmbedder()) as app:
        caller = await apps.new_tenant(app)
        await stored(app, caller, "alpha", "beta")
        before = await points(app)
    moved_away(tmp_path)

    async with serving(fresh_database_url, tmp_path, HashingEmbedder()) as app:
        assert await points(app) == before
        assert await findings(app, caller) == {}


def stopped_uncleanly(folder: Path) -> None:
    index = folder / "data" / "index"
    (index / "closed-cleanly").unlink()
    (index / "flushed-at").write_text(datetime(2000, 1, 1, tzinfo=UTC).isoformat())


def moved_away(folder: Path) -> None:
    """What the refusal to load a broken index advises."""
    (folder / "data" / "index").rename(folder / "broken-index")
