"""What a statement does must not depend on how the planner joins its tables: a claim once leased more than its limit in one plan.

Tables of a few rows in a test are planned as large ones never are, and the other way round; so the tests of the rows run under
each way of joining alone.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import sqlalchemy as sa

from coatcheck.store.embedded import EmbeddedServer
from tests.folders import open_folder

ROOT = Path(__file__).parents[2]
WAYS = {
    "nested loops over indexes": ("hashjoin", "mergejoin", "sort", "hashagg", "material", "memoize"),
    "merged after sorting": ("hashjoin", "nestloop", "hashagg"),
    "hashed from whole tables": ("mergejoin", "nestloop", "indexscan", "indexonlyscan", "bitmapscan"),
}


@pytest.mark.accept
@pytest.mark.parametrize("off", WAYS.values(), ids=WAYS)
def test_the_rows_are_the_same_in_every_plan(off: tuple[str, ...]) -> None:
    with open_folder() as folder:
        server = EmbeddedServer.start(folder)
        try:
            engine = sa.create_engine(server.owner_url, poolclass=sa.NullPool, isolation_level="AUTOCOMMIT")
            with engine.connect() as connection:
                for way in off:
                    connection.exec_driver_sql(f"ALTER SYSTEM SET enable_{way} = off")
                connection.exec_driver_sql("SELECT pg_reload_conf()")
            tests = subprocess.run(
                [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "2", "tests/store", "tests/memory"],
                cwd=ROOT, env={**os.environ, "COATCHECK_TEST_DATABASE_URL": server.owner_url}, capture_output=True, text=True,
                timeout=900, check=False,
            )  # fmt: skip
        finally:
            server.stop()

    assert tests.returncode == 0, tests.stdout[-8_000:]
