"""The drill: a backup from before an erasure is restored, and what was erased does not come back."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import sqlalchemy as sa

from coatcheck.app.compose import App, composed
from coatcheck.app.offline import erase_again
from coatcheck.domain.errors import RefusedToStart
from tests import apps
from tests.apps import Caller
from tests.caching import lookup, store
from tests.contract.routes import everything_said, statuses
from tests.contract.stored import rows
from tests.contract.working import job, settled
from tests.postgres import Postgres
from tests.windows import request, window

QUERIES = ["alpha worker heartbeat ok queue depth", "GET /beta/health on 10.2.0.1:8443 failed with 501"]


@contextmanager
def backup(postgres: Postgres, database_url: str) -> Iterator[str]:
    """A copy of a database that nobody is connected to; the login's URL to it."""
    name = f"coatcheck_test_{secrets.token_hex(6)}"
    postgres.execute(f"CREATE DATABASE {name} TEMPLATE {sa.make_url(database_url).database}")
    try:
        yield postgres.login_url(name)
    finally:
        postgres.execute(f"DROP DATABASE {name} WITH (FORCE)")


@asynccontextmanager
async def serving(database_url: str, folder: Path, caller: Caller) -> AsyncIterator[tuple[App, httpx.AsyncClient]]:
    async with apps.app(database_url, folder) as app, apps.client(app, caller) as http:
        yield app, http


@asynccontextmanager
async def restoring(database_url: str, folder: Path) -> AsyncIterator[App]:
    """As ``coatcheck restore`` opens it: nobody is served."""
    async with apps.foundations(database_url, folder) as on, composed(on, alone=True, replays_journal=True) as app:
        yield app


async def compacted(http: httpx.AsyncClient, session: str, mark: str, **more: object) -> dict[str, Any]:
    made = await http.post("/v1/compactions", json=request(session, window(mark=mark), **more))
    assert made.status_code == 201, made.text
    body: dict[str, Any] = made.json()
    return body


@pytest.mark.parametrize("index_restored_too", [False, True])
async def test_T38_a_restored_backup_is_refused_until_it_was_erased_again(
    postgres: Postgres, fresh_database_url: str, tmp_path: Path, index_restored_too: bool
) -> None:
    async with apps.app(fresh_database_url, tmp_path) as app:
        caller, bystander = await apps.new_tenant(app), await apps.new_tenant(app)
        async with apps.client(app, caller) as http, apps.client(app, bystander) as theirs:
            gone = await compacted(http, "gone", "alpha")
            thinned = await compacted(http, "kept", "beta")
            kept = await compacted(http, "kept", "gamma")
            await compacted(theirs, "gone", "alpha")
            assert (await store(theirs, "an answer of then"))["stored"]
    shutil.copytree(tmp_path / "data" / "index", tmp_path / "index-backup")

    with backup(postgres, fresh_database_url) as restored_url:
        async with serving(fresh_database_url, tmp_path, caller) as (app, http):
            newcomer = await apps.new_tenant(app)
            async with apps.client(app, newcomer) as newcomers:
                await compacted(newcomers, "unknown to the backup", "epsilon")
            assert (await http.delete(f"/v1/sessions/{gone['session_id']}")).status_code == 204
            assert (await http.delete(f"/v1/manifests/{thinned['manifest_id']}")).status_code == 204
            await http.patch(f"/v1/sessions/{kept['session_id']}", json={"visibility": "public"})
            await settled(http)
            await compacted(http, "later", "delta")
        if index_restored_too:
            shutil.rmtree(tmp_path / "data" / "index")
            shutil.copytree(tmp_path / "index-backup", tmp_path / "data" / "index")

        with pytest.raises(RefusedToStart, match="coatcheck restore") as refusal:
            async with serving(restored_url, tmp_path, caller):
                pass
        async with restoring(restored_url, tmp_path) as app:
            erased = await erase_again(app)
            again = await erase_again(app)
            owners = {point.tenant_id async for page in app.parts.index.scroll() for point in page}

        assert "2 erasures" in refusal.value.detail
        assert (erased, again) == (2, 0)
        assert owners == {caller.tenant_id, bystander.tenant_id}
        async with serving(restored_url, tmp_path, caller) as (app, http):
            found = await statuses(http, session_id=gone["session_id"], manifest_id=thinned["manifest_id"])
            assert set(found.values()) == {410}
            said = await everything_said(http, QUERIES)
            assert "/alpha/health" not in said
            assert "/beta/health" not in said
            assert (await http.get(f"/v1/manifests/{kept['manifest_id']}/window")).json()["messages"] == window(mark="gamma")
            assert (await http.post("/v1/compactions", json=request("gone", window(mark="alpha")))).status_code == 410
            assert (await job(http, "scan"))["findings"] == []
            left = await rows(app, caller.tenant_id)
            assert (left["sessions"], left["runs"], left["outbox"]) == (1, 1, 0)
        async with serving(restored_url, tmp_path, bystander) as (_, theirs):
            assert (await lookup(theirs))["answer"] is None
            assert "/alpha/health" in await everything_said(theirs, QUERIES)
            assert (await job(theirs, "scan"))["findings"] == []


async def test_a_journal_that_another_root_key_wrote_is_refused(
    postgres: Postgres, fresh_database_url: str, tmp_path: Path
) -> None:
    async with apps.app(fresh_database_url, tmp_path) as app:
        caller = await apps.new_tenant(app)
        async with apps.client(app, caller) as http:
            made = await compacted(http, "s", "alpha")
            await http.delete(f"/v1/sessions/{made['session_id']}")
    journal = next((tmp_path / "journal").iterdir())
    journal.write_bytes(journal.read_bytes().replace(made["session_id"].encode(), b"0" * 36))

    with pytest.raises(RefusedToStart, match="root key"):
        async with apps.app(fresh_database_url, tmp_path):
            pass


async def test_a_start_after_erasures_needs_no_restore(fresh_database_url: str, tmp_path: Path) -> None:
    async with apps.app(fresh_database_url, tmp_path) as app:
        caller = await apps.new_tenant(app)
        async with apps.client(app, caller) as http:
            made = await compacted(http, "s", "alpha")
            assert (await http.delete(f"/v1/manifests/{made['manifest_id']}")).status_code == 204
            assert (await http.delete(f"/v1/sessions/{made['session_id']}")).status_code == 204

    async with serving(fresh_database_url, tmp_path, caller) as (_, http):
        assert (await http.get(f"/v1/sessions/{made['session_id']}")).status_code == 410
