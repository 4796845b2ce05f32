"""The embedded index on a file system that is full in fact: it refuses, and the process lives."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

MOUNTED = ["unshare", "--mount", "--map-root-user"]
"""A mount that only the process and its children see."""
SIZE = "160m"

FILL = """
import asyncio, shutil, sys
from pathlib import Path
from coatcheck.domain.errors import CoatcheckError
from coatcheck.domain.passages import RecallFilter
from coatcheck.index.edge import EdgeIndex
from coatcheck.index.lexical import analyse_query
from tests.index.making import ANN, point

folder = Path(sys.argv[1])

def leave(size):
    with open(folder / "ballast", "ab", buffering=0) as file:
        while (free := shutil.disk_usage(folder).free) > size:
            file.write(b"x" * min(1024 * 1024, free - size))
"""


def on_a_small_disk(folder: Path, script: str) -> subprocess.CompletedProcess[str]:
    mounted = f'mount -t tmpfs -o size={SIZE} none "$0" && exec "$1" -c "$2" "$0"'
    source = FILL + textwrap.dedent(script)
    return subprocess.run(
        [*MOUNTED, "sh", "-c", mounted, str(folder), sys.executable, source],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), *sys.path])},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture(scope="module")
def small_disk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("small")
    if shutil.which("unshare") is None or on_a_small_disk(folder, "").returncode != 0:
        pytest.skip("no file system can be mounted here")
    return folder


def test_an_index_refuses_to_open_where_what_it_maps_has_no_place(small_disk: Path) -> None:
    done = on_a_small_disk(
        small_disk,
        """
        index = EdgeIndex.open(folder / "index")
        asyncio.run(index.upsert(ANN.tenant_scope, [point(ANN, "alpha")]))
        asyncio.run(index.close())
        leave(40 * 1024 * 1024)
        try:
            EdgeIndex.open(folder / "index")
        except CoatcheckError as error:
            print(error.slug, error.detail)
        """,
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("refused-to-start")
    assert "make room" in done.stdout


def test_an_open_index_is_searched_and_erased_from_on_a_disk_with_a_megabyte_left(small_disk: Path) -> None:
    done = on_a_small_disk(
        small_disk,
        """
        async def work():
            index = EdgeIndex.open(folder / "index")
            await index.upsert(ANN.tenant_scope, [point(ANN, "alpha"), point(ANN, "beta", session="other")])
            leave(1024 * 1024)
            found = await index.search_lexical(ANN.scope, 1, analyse_query("alpha"), RecallFilter(), 10)
            await index.delete_tenant(ANN.tenant_scope)
            await index.flush()
            left = await index.search_lexical(ANN.scope, 1, analyse_query("alpha"), RecallFilter(), 10)
            print(len(found), len(left))
        asyncio.run(work())
        """,
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["1", "0"]
