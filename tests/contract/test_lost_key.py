"""A lost key of an installation with a database of its own: the way back that docs/operations.md tells of is a way."""

from __future__ import annotations

import re
from pathlib import Path

import psycopg

from coatcheck.app.bootstrap import ensure_first_key
from tests import apps

DOCS = Path(__file__).parents[2] / "docs" / "operations.md"


async def test_where_every_key_is_lost_the_serving_login_makes_room_for_another_first_one(
    fresh_database_url: str, tmp_path: Path
) -> None:
    written = re.search(r"```sql\n(BEGIN;.*?COMMIT;)\n```", DOCS.read_text("utf-8"), re.DOTALL)
    assert written is not None
    async with apps.app(fresh_database_url, tmp_path) as app:
        await ensure_first_key(app.parts, app.directory)
        lost = app.directory.key_file.read_text("ascii").strip()
        app.directory.key_file.unlink()
        await ensure_first_key(app.parts, app.directory)
        assert not app.directory.key_file.exists()

        with psycopg.connect(fresh_database_url.replace("+psycopg", ""), autocommit=True) as serving:
            serving.execute(written[1])
        await ensure_first_key(app.parts, app.directory)

        found = app.directory.key_file.read_text("ascii").strip()
        async with apps.client(app) as http:
            path = "/v1/admin/tenants"
            answers = [await http.get(path, headers={"Authorization": f"Bearer {key}"}) for key in (lost, found)]
        assert [answer.status_code for answer in answers] == [401, 200]
