"""The root key is rotated: what the old one made stands, what is new is made under the new one, and neither can be left out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
import sqlalchemy as sa

from coatcheck.app.compose import App
from coatcheck.app.data_dir import DataDirectory
from coatcheck.app.keys import RootKeys, root_keys, rotate_file
from coatcheck.domain.errors import RefusedToStart
from coatcheck.identity.scopes import tenant_scope
from coatcheck.settings import load
from coatcheck.store.database import WorkerTransaction
from tests import apps
from tests.apps import Caller
from tests.caching import circumstances, lookup, store
from tests.windows import request, window

OLD, NEW, OTHER = "ab" * 32, "cd" * 32, "ef" * 32
ROTATED = {"root_key": NEW, "root_key_previous": OLD}
SECRET = "ghp_" + "k9Xq2LmN7vRt4WzP8sYb3HcD6fGj1AeUoTi5"


async def compacted(http: httpx.AsyncClient, session: str, mark: str, *more: dict[str, Any]) -> httpx.Response:
    return await http.post("/v1/compactions", json=request(session, [*window(mark=mark), *more]))


async def left_under_the_old_key(app: App) -> tuple[Caller, dict[str, Any]]:
    caller = await apps.new_tenant(app)
    async with apps.client(app, caller) as http:
        kept = (await compacted(http, "kept", "zebra", {"role": "user", "content": f"The token is {SECRET}."})).json()
        gone = (await compacted(http, "gone", "okapi")).json()
        entries = (await http.get(f"/v1/manifests/{gone['manifest_id']}/entries")).json()["entries"]
        for number in range(3):
            await compacted(http, f"more {number}", f"mark{number}")
        page = (await http.get("/v1/sessions?page_size=2")).json()
        receipt = (await http.delete(f"/v1/sessions/{gone['session_id']}?receipt=true")).json()
    return caller, {
        "kept": kept, "gone": gone, "sha256": entries[0]["sha256"], "token": page["next_page_token"], "receipt": receipt,
    }  # fmt: skip


async def test_what_the_old_key_made_stands_after_a_rotation(fresh_database_url: str, tmp_path: Path) -> None:
    async with apps.app(fresh_database_url, tmp_path, root_key=OLD) as app:
        caller, left = await left_under_the_old_key(app)

    async with apps.app(fresh_database_url, tmp_path, **ROTATED) as app, apps.client(app, caller) as http:
        assert app.parts.keyring.version == 2
        again = await compacted(http, "kept", "zebra", {"role": "user", "content": f"The token is {SECRET}."})
        assert (again.status_code, again.json()["manifest_id"]) == (200, left["kept"]["manifest_id"])
        assert (await compacted(http, "gone", "okapi")).status_code == 410
        assert (await http.get(f"/v1/segments/{left['sha256']}")).status_code == 410
        assert len((await http.get(f"/v1/sessions?page_size=2&page_token={left['token']}")).json()["sessions"]) == 2
        assert (await http.post("/v1/erasures/verify", json=left["receipt"])).json() == {"valid": True}
        found = (await http.post("/v1/recall", json={"query": "zebra health failed"})).json()["hits"]
        assert any("/zebra/health" in hit["text"] for hit in found)


async def test_what_is_new_is_made_under_the_new_key_and_placeholders_only_unlink(fresh_database_url: str, tmp_path: Path) -> None:
    said = {"role": "user", "content": f"The token is {SECRET}."}
    async with apps.app(fresh_database_url, tmp_path, root_key=OLD) as app:
        caller = await apps.new_tenant(app)
        async with apps.client(app, caller) as http:
            before = (await compacted(http, "s", "zebra", said)).json()

    async with apps.app(fresh_database_url, tmp_path, **ROTATED) as app, apps.client(app, caller) as http:
        after = (await compacted(http, "s", "okapi", said)).json()
        windows = [(await http.get(f"/v1/manifests/{m['manifest_id']}/window")).text for m in (before, after)]
        key = (await http.post("/v1/admin/keys", json={"name": "new"})).json()["key"]
        erased = (await http.delete(f"/v1/manifests/{after['manifest_id']}?receipt=true")).json()
    with_the_new_key = Caller(caller.tenant_id, caller.principal_id, key)
    async with apps.app(fresh_database_url, tmp_path, **ROTATED) as app, apps.client(app, with_the_new_key) as http:
        assert app.parts.keyring.version == 2  # a second start rotates nothing
        assert (await http.get("/v1/sessions")).status_code == 200
        assert (await http.get(f"/v1/manifests/{before['manifest_id']}")).status_code == 200

    assert erased["key_version"] == 2
    assert not any(SECRET in text for text in windows)
    placeholders = [next(word for word in text.split('"') if "The token is" in word) for text in windows]
    assert placeholders[0] != placeholders[1]


async def test_what_was_cached_under_the_old_key_is_nobodys_and_leaves(fresh_database_url: str, tmp_path: Path) -> None:
    """Also with ``semantic``: neither the prompt's fingerprint nor its frame is that of the new key's."""
    asked = {"prompt": "Summarize the renewal terms", "semantic": True}
    async with apps.app(fresh_database_url, tmp_path, root_key=OLD) as app:
        caller = await apps.new_tenant(app)
        async with apps.client(app, caller) as http:
            before = await lookup(http, **asked)
            assert (await store(http, "under the old key", **asked))["stored"]
            assert (await lookup(http, **asked))["answer"] == "under the old key"

    async with apps.app(fresh_database_url, tmp_path, **ROTATED) as app, apps.client(app, caller) as http:
        found = await lookup(http, **asked)
        late = await http.post(
            "/v1/cache/store", json={**circumstances(**asked), "answer": "made under the old key", "scope": before["scope"]}
        )
        assert (await store(http, "under the new key", **asked))["stored"]
        assert (await lookup(http, **asked))["answer"] == "under the new key"
        purged = (await http.post("/v1/cache/purge", json={"whose": "own"})).json()
        kept = await app.parts.database.work(tenant_scope(caller.tenant_id), _answers)

    assert (found["outcome"], found["answer"]) == ("ineligible", None)
    assert found["scope"] != before["scope"]
    assert (late.json()["stored"], late.json()["reason"]) == (False, "scope-changed")
    assert (purged, kept) == ({"purged": 2}, 0)


async def _answers(tx: WorkerTransaction) -> int:
    return int(await tx.connection.scalar(sa.text("SELECT count(*) FROM cache_entries")) or 0)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"root_key": NEW}, "version 1"),
        ({"root_key": NEW, "root_key_previous": OTHER}, "version 1"),
        ({"root_key": OTHER}, "version 1, 2"),
        ({"root_key": OLD}, "version 2"),
        ({"root_key": OLD, "root_key_previous": NEW}, "not the newest"),
        ({"root_key": OTHER, "root_key_previous": NEW}, "version 1"),
    ],
)
async def test_a_missing_key_or_another_order_is_refused_and_changes_nothing(
    fresh_database_url: str, tmp_path: Path, keys: dict[str, str], said: str
) -> None:
    async with apps.app(fresh_database_url, tmp_path, root_key=OLD) as app:
        caller = await apps.new_tenant(app)
    async with apps.app(fresh_database_url, tmp_path, **ROTATED):
        pass

    with pytest.raises(RefusedToStart, match=said):
        async with apps.app(fresh_database_url, tmp_path, **keys):
            pass

    async with apps.app(fresh_database_url, tmp_path, **ROTATED) as app, apps.client(app, caller) as http:
        assert app.parts.keyring.version == 2
        assert (await http.get("/v1/sessions")).status_code == 200


async def test_a_wrong_key_alone_is_no_rotation(fresh_database_url: str, tmp_path: Path) -> None:
    async with apps.app(fresh_database_url, tmp_path, root_key=OLD) as app:
        await apps.new_tenant(app)

    with pytest.raises(RefusedToStart, match="COATCHECK_ROOT_KEY_PREVIOUS"):
        async with apps.app(fresh_database_url, tmp_path, root_key=NEW):
            pass


async def test_it_is_rotated_again_and_again(fresh_database_url: str, tmp_path: Path) -> None:
    async with apps.app(fresh_database_url, tmp_path, root_key=OLD) as app:
        caller, left = await left_under_the_old_key(app)
    async with apps.app(fresh_database_url, tmp_path, **ROTATED):
        pass

    thrice = {"root_key": OTHER, "root_key_previous": f"{NEW},{OLD}"}
    async with apps.app(fresh_database_url, tmp_path, **thrice) as app, apps.client(app, caller) as http:
        assert app.parts.keyring.version == 3
        assert (await compacted(http, "gone", "okapi")).status_code == 410
        assert (await http.post("/v1/erasures/verify", json=left["receipt"])).json() == {"valid": True}


def test_a_data_directorys_own_key_is_replaced_and_the_old_one_kept_beside_it(tmp_path: Path) -> None:
    settings = load({}, data_dir=tmp_path / "data", embedded=True)

    def held() -> RootKeys:
        with DataDirectory(settings.data_dir) as directory:
            return root_keys(settings, directory)

    first = held()
    seen = [first.current]
    for number in range(1, 3):
        with DataDirectory(settings.data_dir) as directory:
            rotate_file(directory)
        now = held()
        assert now.current not in seen
        assert sorted(now.previous) == sorted(seen)
        assert len(seen) == number
        seen.append(now.current)
    modes = {path.name: path.stat().st_mode & 0o777 for path in settings.data_dir.glob("root.key*")}
    assert set(modes.values()) == {0o600}
    assert len(modes) == 3
    assert first.previous == []


def test_a_crash_before_the_new_key_counts_is_gone_on_with(tmp_path: Path) -> None:
    settings = load({}, data_dir=tmp_path / "data", embedded=True)
    with DataDirectory(settings.data_dir) as directory:
        before = root_keys(settings, directory)
        from coatcheck.identity import root_key

        following = root_key.load_or_create(directory.root_key_file.with_name("root.key.next"))
        assert root_keys(settings, directory).current == before.current

        rotate_file(directory)

        after = root_keys(settings, directory)
    assert after.current == following
    assert list(after.previous) == [before.current]
