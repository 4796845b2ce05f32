"""Starts that find less than they should: a lost index, a generation that nobody came to fill, an index short of points."""

from __future__ import annotations

import asyncio
import dataclasses
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from uuid import uuid4

import pytest

from coatcheck.app.compose import App
from coatcheck.app.data_dir import DataDirectory
from coatcheck.app.storage import open_index
from coatcheck.domain.passages import StoredPoint
from coatcheck.identity.scopes import tenant_scope
from coatcheck.memory.integrity import Scanner
from coatcheck.ops import faults
from coatcheck.settings import load
from tests import apps
from tests.apps import Caller
from tests.contract.damage import Damage
from tests.faults.embedded import note_embedded
from tests.postgres import Postgres
from tests.windows import request


@asynccontextmanager
async def started(database_url: str, folder: Path, *, was_clean: bool = True, embedder: str = "hashing") -> AsyncIterator[App]:
    """The app of a data directory, as a start finds it that owns it alone."""
    async with apps.foundations(database_url, folder, embedder=embedder) as on:
        index = dataclasses.replace(on.index, was_clean=was_clean, flushed_at=None)
        async with apps.app_on(dataclasses.replace(on, index=index), alone=True) as app:
            yield app


async def handed_in(app: App) -> Caller:
    caller = await apps.new_tenant(app)
    async with apps.client(app, caller) as http:
        assert (await http.post("/v1/compactions", json=request("s"))).status_code == 201
    return caller


async def assert_whole(app: App, caller: Caller, dense: str) -> None:
    """Nothing is owed, rows and points agree, and a recall finds the window by the legs there are."""
    scope = tenant_scope(caller.tenant_id)
    for _ in range(500):
        if not (await app.use_cases.reconciler.stats(scope)).pending and not app.parts.state.building:
            break
        await asyncio.sleep(0.02)
    report = await Scanner(app.parts).scan(scope, index=True)
    assert (report.findings_by_kind, report.points > 0) == ({}, True)
    async with apps.client(app, caller) as http:
        found = (await http.post("/v1/recall", json={"query": "alpha health 10.2.0.1:8443 failed with 501"})).json()
    assert "/alpha/health on 10.2.0.1:8443 failed with 501" in "".join(hit["text"] for hit in found["hits"])
    assert found["legs"]["dense"].startswith(dense)
    assert found["warnings"] == []


async def test_an_index_that_was_lost_is_filled_again_from_the_rows(fresh_database_url: str, tmp_path: Path) -> None:
    async with started(fresh_database_url, tmp_path) as app:
        caller = await handed_in(app)
    shutil.rmtree(tmp_path / "data" / "index")

    async with started(fresh_database_url, tmp_path, was_clean=False) as app:
        await assert_whole(app, caller, "used")


async def a_point_is_missing(damage: Damage) -> None:
    damage.remove(await damage.point_of_segment())


async def readers_are_those_of_before(damage: Damage) -> None:
    damage.relabel(await damage.point_of_segment(), acl=["public"])


async def a_point_is_of_an_older_context(damage: Damage) -> None:
    damage.relabel(await damage.point_of_segment(), content_version="0123456789abcdef")


async def a_point_is_back(damage: Damage) -> None:
    damage.plant(await damage.point_of_segment(), uuid4(), exact_sha256="0" * 64)


@pytest.mark.parametrize("lost", [a_point_is_missing, readers_are_those_of_before, a_point_is_of_an_older_context, a_point_is_back])
async def test_what_a_power_cut_took_back_from_the_index_is_written_again_before_it_is_ready(
    postgres: Postgres,
    fresh_database_url: str,
    tmp_path: Path,
    lost: Callable[[Damage], Awaitable[None]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And nothing else is: one segment's text at most is embedded again."""
    embedded = note_embedded(monkeypatch)
    async with started(fresh_database_url, tmp_path) as app:
        caller = await handed_in(app)
        damage = Damage(postgres, fresh_database_url, app, caller.tenant_id)
        before = await seen(damage)
        await lost(damage)
        assert await seen(damage) != before
    assert len(embedded) > 1
    embedded.clear()

    async with started(fresh_database_url, tmp_path, was_clean=False) as app:
        after = await seen(Damage(postgres, fresh_database_url, app, caller.tenant_id))
        await assert_whole(app, caller, "used")

    assert after == before
    assert len(embedded) <= (0 if lost is a_point_is_back else 1)


async def seen(damage: Damage) -> list[StoredPoint]:
    return sorted(await damage.points(), key=lambda point: point.point_id)


async def interrupted(point: str, start: AbstractAsyncContextManager[App]) -> None:
    """A start that dies at the point."""
    faults.arm(f"{point}=raise@1")
    with pytest.raises(faults.InjectedFault):
        async with start:
            pass
    faults.disarm()


async def test_an_index_in_the_place_of_a_lost_one_does_not_count_as_closed_cleanly(tmp_path: Path) -> None:
    settings = load({}, data_dir=tmp_path / "data", embedded=True)
    with DataDirectory(settings.data_dir) as directory:
        new = await open_index(settings, directory)
        await new.index.close()
        again = await open_index(settings, directory)
        await again.index.close()

    assert (new.was_clean, again.was_clean) == (False, True)


async def test_a_recovery_that_was_interrupted_is_finished_by_the_next_start(fresh_database_url: str, tmp_path: Path) -> None:
    async with started(fresh_database_url, tmp_path) as app:
        caller = await handed_in(app)
    shutil.rmtree(tmp_path / "data" / "index")
    await interrupted("inside-recovery", started(fresh_database_url, tmp_path, was_clean=False))

    async with started(fresh_database_url, tmp_path, was_clean=False) as app:
        await assert_whole(app, caller, "used")


async def test_a_recovery_that_was_interrupted_leaves_no_point_that_no_row_tells_of(
    postgres: Postgres, fresh_database_url: str, tmp_path: Path
) -> None:
    """Of a session that has lost all its own: its rows go, and without any it is not looked at again."""
    async with started(fresh_database_url, tmp_path) as app:
        caller = await handed_in(app)
        damage = Damage(postgres, fresh_database_url, app, caller.tenant_id)
        own = await damage.points()
        damage.plant(own[0], uuid4(), exact_sha256="0" * 64)
        for point in own:
            damage.remove(point)
    await interrupted("inside-recovery", started(fresh_database_url, tmp_path, was_clean=False))

    async with started(fresh_database_url, tmp_path, was_clean=False) as app:
        await assert_whole(app, caller, "used")


async def test_a_generation_that_was_opened_and_not_filled_is_filled_by_the_next_start(
    fresh_database_url: str, tmp_path: Path
) -> None:
    async with started(fresh_database_url, tmp_path) as app:
        caller = await handed_in(app)
    await interrupted("before-fill", started(fresh_database_url, tmp_path, embedder="none"))

    async with started(fresh_database_url, tmp_path, embedder="none") as app:
        await assert_whole(app, caller, "unavailable")
        count = [p async for page in app.parts.index.scroll() for p in page]

    assert {point.generation for point in count} == {2}
