"""A service as a process of its own, started and stopped by its command, and commands run against it."""

from __future__ import annotations

import io
import json
import logging
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import structlog

from coatcheck.cli import main

COATCHECK = [sys.executable, "-c", "from coatcheck.cli import main; main()"]
STOP_LIMIT_S = 30


def environment(data_dir: Path, **more: str) -> dict[str, str]:
    """This process's environment with the product's own names as the test wants them."""
    names = {name: value for name, value in os.environ.items() if not name.startswith("COATCHECK_")}
    return {**names, "COATCHECK_DATA_DIR": str(data_dir), "COATCHECK_EMBEDDER": "hashing", "COATCHECK_RERANKER": "none", **more}


@dataclass(frozen=True)
class Done:
    """A command that ran to its end."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@dataclass(frozen=True)
class Machine:
    """One data directory, with or without a service on it."""

    data_dir: Path

    def run(self, *arguments: str, **more: str) -> Done:
        """A command in a process of its own."""
        done = subprocess.run(
            [*COATCHECK, *arguments],
            capture_output=True,
            env=environment(self.data_dir, **more),
            stdin=subprocess.DEVNULL,
            timeout=180,
            check=False,
        )
        return Done(done.returncode, done.stdout.decode("utf-8"), done.stderr.decode("utf-8"))

    def here(self, *arguments: str, **more: str) -> Done:
        """A command in this process, which spares the import of everything: for commands that talk to a running service."""
        out, err = _Stream(), _Stream()
        handlers = [*logging.getLogger().handlers]
        with (
            mock.patch.dict(os.environ, environment(self.data_dir, **more), clear=True),
            mock.patch.multiple(sys, argv=["coatcheck", *arguments], stdin=io.StringIO(), stdout=out, stderr=err),
        ):
            try:
                main()
                code = 0
            except SystemExit as ended:
                code = int(ended.code or 0)
            finally:
                # A command that started the app writes its log to this stream, which nobody may write to once it is closed.
                structlog.reset_defaults()
                logging.getLogger().handlers[:] = handlers
        return Done(code, out.text, err.text)

    def ok(self, *arguments: str) -> Any:
        """What a command prints with --json; fails unless it went well."""
        done = self.here(*arguments, "--json")
        assert done.code == 0, done.err
        return done.json


class _Stream(io.TextIOWrapper):
    """A standard stream that is kept."""

    def __init__(self) -> None:
        self._kept = tempfile.TemporaryFile("w+b", buffering=0)  # noqa: SIM115
        super().__init__(self._kept, "utf-8", newline="\n", write_through=True)

    @property
    def text(self) -> str:
        self.flush()
        self._kept.seek(0)
        text = self._kept.read().decode("utf-8")
        self.close()
        return text


@contextmanager
def served(data_dir: Path) -> Iterator[dict[str, Any]]:
    """A served data directory, and what the command said when it served."""
    log = (data_dir.parent / "serve.log").open("wb")
    process = subprocess.Popen(
        [*COATCHECK, "serve", "--embedded", "--port", "0", "--json"],
        env=environment(data_dir),
        stdout=subprocess.PIPE,
        stderr=log,
    )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        assert line, (data_dir.parent / "serve.log").read_text("utf-8")
        yield json.loads(line)
        process.send_signal(signal.SIGTERM)
        assert process.wait(STOP_LIMIT_S) == 0
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        log.close()
