"""The pool's connections: time-outs as connection options, whatever else the URL asks for."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from coatcheck.store import engine

SETTINGS = sa.text("""
    SELECT current_setting('statement_timeout'), current_setting('lock_timeout'),
           current_setting('idle_in_transaction_session_timeout'), current_setting('work_mem'),
           current_setting('application_name')
""")


async def test_time_outs_are_set_beside_the_urls_own_options_and_survive_the_reset(database_url: str) -> None:
    url = sa.make_url(database_url).update_query_dict({"options": "-c work_mem=5MB"}).render_as_string(hide_password=False)
    pool = engine.build(url, pool_size=1, statement_timeout_s=40, pool_timeout_s=1)

    found = []
    for _ in range(2):  # the second is the same connection, reset
        async with pool.connect() as connection:
            found.append(tuple((await connection.execute(SETTINGS)).one()))
            await connection.execute(sa.text("SET statement_timeout = 1"))
            await connection.commit()
    await pool.dispose()

    assert found == [("40s", "10s", "80s", "5MB", "coatcheck")] * 2


@pytest.mark.parametrize("url", ["postgresql://u@/d?host=/s", "postgres://u@/d?host=/s", "postgresql+psycopg://u@/d?host=/s"])
def test_every_name_of_postgresql_means_the_same_driver(url: str) -> None:
    assert engine.with_driver(url).render_as_string() == "postgresql+psycopg://u@/d?host=%2Fs"
