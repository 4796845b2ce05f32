"""Folders for tests whose embedded PostgreSQL runs as another user, as it does when the tests run as root."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil


@contextmanager
def open_folder() -> Iterator[Path]:
    """A folder that goes with the block.

    Short, so that a socket's path fits in; and not pytest's: each session of pytest that begins closes the folder that all its
    folders are in to other users, those of the sessions that run beside it too.
    """
    folder = Path(tempfile.mkdtemp(prefix="cc-", dir="/tmp"))
    try:
        yield folder
    finally:
        for process in servers_in(folder):  # of a test that failed, or of one that kills
            process.kill()
        shutil.rmtree(folder)


def servers_in(folder: Path) -> list[psutil.Process]:
    """PostgreSQL's processes that run in the folder."""
    found = []
    for process in psutil.process_iter(["name"]):
        try:
            if process.info["name"] == "postgres" and Path(process.cwd()).is_relative_to(folder.resolve()):
                found.append(process)
        except (psutil.NoSuchProcess, psutil.ZombieProcess):
            continue
    return found
