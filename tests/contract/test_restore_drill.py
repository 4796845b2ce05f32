"""T38, the drill: database and index from before erasures and an off-boarding are restored; the journal is replayed.

Nothing erased comes back, and not a byte of anybody else's rows is another.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import sqlalchemy as sa

from coatcheck.app.offline import erase_again
from coatcheck.domain.errors import RefusedToStart
from coatcheck.store.engine import with_driver
from coatcheck.store.tables import metadata
from tests import apps
from tests.apps import Caller
from tests.contract.routes import everything_said, statuses
from tests.contract.test_restore import backup, compacted, restoring, serving
from tests.contract.working import job
from tests.postgres import Postgres
from tests.windows import window

QUERIES = ["zebra worker heartbeat ok queue depth", "GET /okapi/health on 10.2.0.1:8443 failed with 501"]


def rows_of(owner_url: str, caller: Caller) -> dict[str, list[str]]:
    """Every row of a tenant, by table, as text."""
    engine = sa.create_engine(with_driver(owner_url), poolclass=sa.NullPool)
    with engine.connect() as connection:
        found = {
            table.name: sorted(
                connection.scalars(
                    sa.text(f"SELECT t::text FROM {table.name} t WHERE tenant_id = :tenant"), {"tenant": caller.tenant_id}
                )
            )
            for table in metadata.sorted_tables
            if "tenant_id" in table.columns
        }
    engine.dispose()
    return found


@pytest.mark.parametrize("index_restored_too", [False, True])
async def test_T38_a_restored_backup_gives_nothing_erased_back_and_touches_nobody_else(
    postgres: Postgres, fresh_database_url: str, tmp_path: Path, index_restored_too: bool
) -> None:
    async with apps.app(fresh_database_url, tmp_path) as app:
        operator, caller = await apps.new_tenant(app), await apps.new_tenant(app)
        leaving, bystander = await apps.new_tenant(app), await apps.new_tenant(app)
        async with apps.client(app, caller) as http:
            erased = await compacted(http, "erased", "zebra")
            thinned = await compacted(http, "kept", "okapi")
            await compacted(http, "kept", "gnu")
        for other in (leaving, bystander):
            async with apps.client(app, other) as http:
                theirs = await compacted(http, "theirs", "zebra")
                await compacted(http, "theirs", "okapi")
    shutil.copytree(tmp_path / "data" / "index", tmp_path / "index-backup")
    owner_url = postgres.owner_url(sa.make_url(fresh_database_url).database or "")
    before = rows_of(owner_url, bystander)

    with backup(postgres, fresh_database_url) as restored_url:
        restored_owner_url = postgres.owner_url(sa.make_url(restored_url).database or "")
        async with serving(fresh_database_url, tmp_path, caller) as (app, http):
            assert (await http.delete(f"/v1/sessions/{erased['session_id']}")).status_code == 204
            assert (await http.delete(f"/v1/manifests/{thinned['manifest_id']}")).status_code == 204
            async with apps.client(app, operator) as operators:
                assert (await operators.delete(f"/v1/admin/tenants/{leaving.tenant_id}")).status_code == 200
        if index_restored_too:
            shutil.rmtree(tmp_path / "data" / "index")
            shutil.copytree(tmp_path / "index-backup", tmp_path / "data" / "index")

        with pytest.raises(RefusedToStart, match="3 erasures"):
            async with serving(restored_url, tmp_path, caller):
                pass
        async with restoring(restored_url, tmp_path) as app:
            assert await erase_again(app) == 3
            assert await erase_again(app) == 0
            owners = {point.tenant_id async for page in app.parts.index.scroll() for point in page}

        assert owners == {caller.tenant_id, bystander.tenant_id}
        assert rows_of(restored_owner_url, bystander) == before
        assert not any(rows_of(restored_owner_url, leaving).values())
        async with serving(restored_url, tmp_path, caller) as (app, http):
            found = await statuses(http, session_id=erased["session_id"], manifest_id=thinned["manifest_id"])
            assert set(found.values()) == {410}
            said = await everything_said(http, QUERIES)
            assert "/zebra/health" not in said
            assert "/okapi/health" not in said
            assert (await job(http, "scan"))["findings"] == []
            async with apps.client(app, leaving) as gone:
                assert (await gone.get("/v1/sessions")).status_code == 401
            async with apps.client(app, bystander) as others:
                assert "/zebra/health" in await everything_said(others, QUERIES)
                back = await others.get(f"/v1/manifests/{theirs['manifest_id']}/window")
                assert back.json()["messages"] == window(mark="zebra")
                assert (await job(others, "scan"))["findings"] == []


async def test_a_start_in_the_middle_of_an_off_boarding_goes_on_with_it_instead_of_refusing(
    fresh_database_url: str, tmp_path: Path
) -> None:
    from coatcheck.ops import faults

    async with apps.app(fresh_database_url, tmp_path) as app:
        operator, leaving = await apps.new_tenant(app), await apps.new_tenant(app)
        async with apps.client(app, leaving) as http:
            made = await compacted(http, "s", "zebra")
            assert (await http.delete(f"/v1/sessions/{made['session_id']}")).status_code == 204
            await compacted(http, "t", "okapi")
        faults.arm("before-tenant-goes=raise")
        try:
            with pytest.raises(faults.InjectedFault):
                await app.use_cases.offboarding.erase(await apps.context_of(app, operator), leaving.tenant_id)
        finally:
            faults.disarm()

    async with apps.app(fresh_database_url, tmp_path) as app, apps.client(app, operator) as http:
        await app.use_cases.housekeeper.walk()
        named = {tenant["tenant_id"] for tenant in (await http.get("/v1/admin/tenants")).json()["tenants"]}
        points = [point async for page in app.parts.index.scroll() for point in page]

    assert named == {str(operator.tenant_id)}
    assert points == []
