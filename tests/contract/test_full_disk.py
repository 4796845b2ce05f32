"""A disk with less room than has to stay: nothing comes in, all that is there can be read and erased, and everybody is told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import sqlalchemy as sa

from coatcheck.api.probes import RECENT_S
from coatcheck.app.compose import App
from coatcheck.identity.scopes import tenant_scope
from coatcheck.store import outbox, projections
from coatcheck.store.database import WorkerTransaction
from tests import apps
from tests.windows import request, window

NO_DISK_HAS_THIS = 2**62


@contextmanager
def full(app: App) -> Iterator[None]:
    """As if the disk had filled up."""
    before, app.parts.disk.min_free_bytes = app.parts.disk.min_free_bytes, NO_DISK_HAS_THIS
    try:
        yield
    finally:
        app.parts.disk.min_free_bytes = before


@asynccontextmanager
async def filled(app: App) -> AsyncIterator[tuple[httpx.AsyncClient, dict[str, Any]]]:
    """A client of a tenant that handed one window in while there was room."""
    async with apps.client(app, await apps.new_tenant(app)) as http:
        made = await http.post("/v1/compactions", json=request("s"))
        assert made.status_code == 201, made.text
        yield http, made.json()


def slug(answer: httpx.Response) -> str:
    return str(answer.json()["type"]).rsplit(":", 1)[-1]


async def test_nothing_comes_in_and_the_same_request_does_once_there_is_room(app: App) -> None:
    async with filled(app) as (http, made):
        export = (await http.get(f"/v1/sessions/{made['session_id']}/export")).content
        more = request("s", window(mark="beta"))
        other = await apps.new_tenant(app)

        with full(app):
            refused = await http.post("/v1/compactions", json=more)
            async with apps.client(app, other) as theirs:
                not_imported = await theirs.post("/v1/import", content=export)
        taken = await http.post("/v1/compactions", json=more)

    for answer in (refused, not_imported):
        assert (answer.status_code, slug(answer), answer.json()["retryable"]) == (503, "storage-full", True)
        assert int(answer.headers["Retry-After"]) > 0
    assert taken.status_code == 201


async def test_what_is_there_is_read_recalled_and_erased(app: App) -> None:
    async with filled(app) as (http, made):
        with full(app):
            repeated = await http.post("/v1/compactions", json=request("s"))
            found = await http.post("/v1/recall", json={"query": "alpha health failed with 501"})
            shown = await http.get(f"/v1/manifests/{made['manifest_id']}/window")
            erased = await http.delete(f"/v1/sessions/{made['session_id']}")
            gone = await http.get(f"/v1/manifests/{made['manifest_id']}")

    assert (repeated.status_code, found.status_code, shown.status_code) == (200, 200, 200)
    assert "failed with 501" in "".join(hit["text"] for hit in found.json()["hits"])
    assert (erased.status_code, gone.status_code) == (204, 410)


async def test_the_probe_says_so_and_the_service_stays_in_use(app: App) -> None:
    async with apps.client(app) as http:
        with full(app):
            await asyncio.sleep(RECENT_S)
            low = await http.get("/readyz?verbose")
        metrics = (await http.get("/metrics")).text
        await asyncio.sleep(RECENT_S)
        well = await http.get("/readyz?verbose")

    assert (low.status_code, low.json()["status"], low.json()["checks"]["disk"]) == (200, "degraded", "low")
    assert (well.json()["status"], well.json()["checks"]["disk"]) == ("ready", "ok")
    (said,) = [line for line in metrics.splitlines() if line.startswith("coatcheck_disk_free_bytes ")]
    assert float(said.split()[1]) == low.json()["disk"]["free_bytes"] > 0


async def test_what_is_owed_to_the_index_waits_for_room_and_no_attempt_counts(fresh_database_url: str, tmp_path: Path) -> None:
    async with apps.app(fresh_database_url, tmp_path, reconcile_interval_s=600) as app:
        caller = await apps.new_tenant(app)
        scope = tenant_scope(caller.tenant_id)
        async with apps.client(app, caller) as http:
            made = (await http.post("/v1/compactions", json=request("s"))).json()
            other = (await http.post("/v1/compactions", json=request("other", window(mark="beta")))).json()
            await app.parts.database.work(scope, lambda tx: projections.delete_session(tx, UUID(made["session_id"])))
            await app.parts.database.work(scope, outbox.enqueue_every_run)

            with full(app):
                waiting = await app.use_cases.reconciler.drain_tenant(caller.tenant_id)
                erased = await http.delete(f"/v1/sessions/{other['session_id']}")
            (left,) = await app.parts.database.work(scope, owed)
            await app.parts.database.work(scope, now_due)
            finished = await app.use_cases.reconciler.drain_tenant(caller.tenant_id)

    # The other session's points were all current: nothing was to be written for it.
    assert (waiting.completed, waiting.failed, waiting.quarantined) == (1, 0, 0)
    assert erased.status_code == 204
    assert (left.kind, left.attempts, left.last_error) == ("upsert", 0, None)
    assert finished.completed == 1


async def owed(tx: WorkerTransaction) -> list[Any]:
    return list((await tx.connection.execute(sa.text("SELECT kind, attempts, last_error FROM outbox"))).all())


async def now_due(tx: WorkerTransaction) -> None:
    await tx.connection.execute(sa.text("UPDATE outbox SET next_attempt_at = 'epoch'"))
