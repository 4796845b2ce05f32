"""The first key of an installation with a database of its own: made once, where nobody could make one otherwise."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from pathlib import Path
from uuid import UUID

import pytest

from coatcheck.app.bootstrap import LOCAL_TENANT, ensure_first_key, ensure_local_key
from coatcheck.app.compose import App
from coatcheck.app.data_dir import DataDirectory
from coatcheck.domain.errors import RefusedToStart
from coatcheck.identity import private_file
from coatcheck.identity.credentials import new_api_key, parse_api_key
from coatcheck.identity.operations import EVERYTHING
from coatcheck.identity.scopes import tenant_scope
from coatcheck.memory.collaborators import Collaborators
from coatcheck.memory.keys import add_operators_key
from coatcheck.ops import faults
from coatcheck.store import directory
from coatcheck.store.database import WorkerTransaction
from coatcheck.store.directory import Tenant
from tests import apps
from tests.apps import Caller
from tests.faults.points import named


async def tenants_seen_with(app: App, key: str) -> list[str]:
    headers = {"Authorization": f"Bearer {key}"}
    async with apps.client(app) as http:
        answer = await http.get("/v1/admin/tenants", headers=headers)
    assert answer.status_code == 200, answer.text
    return [tenant["name"] for tenant in answer.json()["tenants"]]


async def keys_made(app: App) -> int:
    (tenant,) = await app.parts.database.directory(directory.tenants)
    keys = await app.parts.database.work(
        tenant_scope(tenant.tenant_id), lambda tx: directory.page_keys(tx, None, 10, None, None)
    )  # fmt: skip
    return len(keys)


async def test_a_fresh_database_has_its_first_key_left_in_the_data_directory_once(fresh_database_url: str, tmp_path: Path) -> None:
    async with apps.app(fresh_database_url, tmp_path) as app:
        await ensure_first_key(app.parts, app.directory)
        key = app.directory.key_file.read_text("ascii").strip()
        mode = app.directory.key_file.stat().st_mode & 0o777

        app.directory.key_file.unlink()
        await ensure_first_key(app.parts, app.directory)

        assert await tenants_seen_with(app, key) == ["local"]
        assert mode == 0o600
        assert not app.directory.key_file.exists()


async def test_a_database_with_a_tenant_gets_none(fresh_database_url: str, tmp_path: Path) -> None:
    async with apps.app(fresh_database_url, tmp_path) as app:
        caller: Caller = await apps.new_tenant(app)

        await ensure_first_key(app.parts, app.directory)

        assert not app.directory.key_file.exists()
        assert len(await tenants_seen_with(app, caller.key)) == 1


async def test_a_key_of_another_installation_is_not_written_over(fresh_database_url: str, tmp_path: Path) -> None:
    async with apps.app(fresh_database_url, tmp_path) as app:
        app.directory.key_file.write_text("of another one")

        with pytest.raises(RefusedToStart, match="another one's"):
            await ensure_first_key(app.parts, app.directory)

        assert app.directory.key_file.read_text() == "of another one"


async def breaks_off(app: App, point: str) -> None:
    faults.arm(f"{point}=raise")
    try:
        with pytest.raises(faults.InjectedFault):
            await ensure_first_key(app.parts, app.directory)
    finally:
        faults.disarm()


Ensure = Callable[[Collaborators, DataDirectory], Awaitable[None]]


@pytest.mark.parametrize(
    ("point", "ensure"), [*((point, ensure_first_key) for point in named("first key")), ("after-first-key", ensure_local_key)]
)
async def test_a_start_that_breaks_off_is_gone_on_with_by_the_next(
    fresh_database_url: str, tmp_path: Path, point: str, ensure: Ensure
) -> None:
    async with apps.app(fresh_database_url, tmp_path) as app:
        await breaks_off(app, point)
        pending = app.directory.pending_key_file
        left = (pending.read_text("ascii"), pending.stat().st_mode & 0o777, app.directory.key_file.exists())

        await ensure(app.parts, app.directory)

        key = app.directory.key_file.read_text("ascii")
        assert left == (left[0], 0o600, False)
        assert (key == left[0]) is (point == "after-first-key")
        assert not pending.exists()
        assert app.directory.key_file.stat().st_mode & 0o777 == 0o600
        assert await tenants_seen_with(app, key.strip()) == ["local"]
        assert await keys_made(app) == 1


async def test_what_the_server_is_still_committing_is_waited_for(fresh_database_url: str, tmp_path: Path) -> None:
    """Its process died at the commit, and the next start looks before that is done."""
    async with apps.app(fresh_database_url, tmp_path) as app:
        await breaks_off(app, "before-first-key")
        pending = parse_api_key(app.directory.pending_key_file.read_text("ascii").strip())
        assert pending is not None
        added, go_on = asyncio.Event(), asyncio.Event()

        async def commits_late(tx: WorkerTransaction) -> None:
            await add_operators_key(app.parts, tx, pending, "local", EVERYTHING)
            added.set()
            await go_on.wait()

        late = asyncio.create_task(app.parts.database.work(tenant_scope(pending.tenant_id), commits_late))
        await asyncio.wait_for(added.wait(), 10)
        start = asyncio.create_task(ensure_first_key(app.parts, app.directory))
        await asyncio.wait({start}, timeout=0.2)
        go_on.set()
        await asyncio.gather(late, start)

        assert app.directory.key_file.read_text("ascii").strip() == pending.text


async def test_a_start_whose_key_another_one_was_faster_with_leaves_none(fresh_database_url: str, tmp_path: Path) -> None:
    faster = DataDirectory(tmp_path / "faster")
    faster.path.mkdir(mode=0o700)
    async with apps.app(fresh_database_url, tmp_path) as app:
        await breaks_off(app, "before-first-key")
        await ensure_first_key(app.parts, faster)

        await ensure_first_key(app.parts, app.directory)

        assert faster.key_file.exists()
        assert not app.directory.key_file.exists()
        assert not app.directory.pending_key_file.exists()


async def test_a_local_key_is_made_anew_for_an_operator_that_is_active(fresh_database_url: str, tmp_path: Path) -> None:
    async with apps.app(fresh_database_url, tmp_path) as app:
        await ensure_local_key(app.parts, app.directory)
        first = app.directory.key_file.read_text("ascii").strip()
        async with apps.client(app, Caller(UUID(int=1), UUID(int=1), first)) as http:
            (operator,) = (await http.get("/v1/admin/principals")).json()["principals"]
            other = (await http.post("/v1/admin/principals", json={"name": "boss", "role": "operator"})).json()["principal_id"]
            key = (await http.post("/v1/admin/keys", json={"name": "k", "principal_id": other})).json()["key"]
        async with apps.client(app, Caller(UUID(int=1), UUID(int=1), key)) as http:
            path = f"/v1/admin/principals/{operator['principal_id']}"
            assert (await http.patch(path, json={"status": "inactive"})).status_code == 200

        app.directory.key_file.unlink()
        await ensure_local_key(app.parts, app.directory)

        assert await tenants_seen_with(app, app.directory.key_file.read_text("ascii").strip()) == ["local"]


async def test_a_pending_key_that_was_revoked_is_no_key(fresh_database_url: str, tmp_path: Path) -> None:
    async with apps.app(fresh_database_url, tmp_path) as app:
        await breaks_off(app, "after-first-key")
        pending = parse_api_key(app.directory.pending_key_file.read_text("ascii").strip())
        assert pending is not None
        await app.parts.database.work(
            tenant_scope(pending.tenant_id), lambda tx: directory.revoke_key(tx, pending.key_id, app.parts.clock())
        )

        await ensure_first_key(app.parts, app.directory)

        assert not app.directory.key_file.exists()
        assert not app.directory.pending_key_file.exists()


async def test_a_pending_key_of_another_installation_stays(fresh_database_url: str, tmp_path: Path) -> None:
    contents, cases = (new_api_key(UUID(int=7), UUID(int=7)).text, "no key"), (ensure_first_key, ensure_local_key)
    async with apps.app(fresh_database_url, tmp_path) as app:
        for content, ensure in itertools.product(contents, cases):
            app.directory.pending_key_file.unlink(missing_ok=True)
            private_file.create(app.directory.pending_key_file, content.encode())

            with pytest.raises(RefusedToStart, match="another one's"):
                await ensure(app.parts, app.directory)

            assert app.directory.pending_key_file.read_text() == content
        assert await app.parts.database.directory(directory.tenants) == []


async def test_of_processes_that_find_the_tenant_without_its_key_one_leaves_it(fresh_database_url: str, tmp_path: Path) -> None:
    folders = [DataDirectory(tmp_path / f"replica-{n}") for n in range(4)]
    for folder in folders:
        folder.path.mkdir(mode=0o700)
    async with apps.app(fresh_database_url, tmp_path) as app:
        local = Tenant(app.parts.new_id(), LOCAL_TENANT, "active", app.parts.keyring.fingerprint(), app.parts.clock())
        assert await app.parts.database.directory(lambda tx: directory.insert_tenant(tx, local))

        await asyncio.gather(*(ensure_first_key(app.parts, folder) for folder in folders))

        (left,) = [folder.key_file for folder in folders if folder.key_file.exists()]
        assert await tenants_seen_with(app, left.read_text("ascii").strip()) == ["local"]
