"""Embedded servers for tests: another process that starts one, and what one kept."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from coatcheck.store.embedded import EmbeddedServer

HOLDER = textwrap.dedent("""
    import sys, time
    from pathlib import Path
    import psycopg
    from coatcheck.ops import logging
    from coatcheck.store.embedded import EmbeddedServer

    logging.configure("warning")  # to stderr: what stands on stdout is for the test
    server = EmbeddedServer.start(Path(sys.argv[1]))
    url = server.owner_url.replace("+psycopg", "")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS kept (n integer)")
        connection.execute("INSERT INTO kept VALUES (1)")
        open_transaction = psycopg.connect(url)
        open_transaction.execute("INSERT INTO kept VALUES (99)")
        print("ready", flush=True)
        time.sleep(600)
""")


@contextmanager
def holder(data_dir: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that started the server and has a transaction open."""
    process = subprocess.Popen([sys.executable, "-c", HOLDER, str(data_dir)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def kept(server: EmbeddedServer) -> list[int]:
    with psycopg.connect(server.owner_url.replace("+psycopg", "")) as connection:
        return [n for (n,) in connection.execute("SELECT n FROM kept ORDER BY 1")]
