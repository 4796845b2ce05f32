"""The first key of an installation with a database of its own: made once, where nobody could make one otherwise."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from coatcheck.app.bootstrap import LOCAL_TENANT, ensure_first_key
from coatcheck.app.compose import App
from coatcheck.app.data_dir import DataDirectory
from coatcheck.domain.errors import RefusedToStart
from coatcheck.store import directory
from coatcheck.store.directory import Tenant
from tests import apps
from tests.apps import Caller


async def tenants_seen_with(app: App, key: str) -> list[str]:
    headers = {"Authorization": f"Bearer {key}"}
    async with apps.client(app) as http:
        answer = await http.get("/v1/admin/tenants", headers=headers)
    assert answer.status_code == 200, answer.text
    return [tenant["name"] for tenant in answer.json()["tenants"]]


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
