"""Files that hold a secret: mode 0600, written whole or not at all, and not read when others could have read them."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from coatcheck.domain.errors import RefusedToStart
from coatcheck.ops.folders import sync_folder
from coatcheck.ops.unfinished import file_beside

MAX_BYTES = 4_096


def create(path: Path, content: bytes) -> bool:
    """Writes a new file, on disk when this returns. False, and nothing changed, where the file exists.

    The content appears under its name all at once (a hard link to a finished temporary file), so that of two processes that
    start together one creates and the other reads a whole key.
    """
    with file_beside(path, 0o600) as temporary:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(temporary, path)
        except FileExistsError:
            return False
    sync_folder(path.parent)
    return True


def rename(path: Path, to: Path) -> None:
    """Returns once the new name is on disk."""
    path.rename(to)
    sync_folder(to.parent)


def read(path: Path) -> bytes:
    """The content. Raises RefusedToStart where there is none, or where somebody else can read, write or replace it."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise RefusedToStart(f"The file {path} cannot be read ({error.strerror}).") from error
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise RefusedToStart(f"{path} is no ordinary file.")
        if status.st_uid not in (os.geteuid(), 0):
            raise RefusedToStart(f"The file {path} belongs to another user.")
        if stat.S_IMODE(status.st_mode) & 0o077:
            raise RefusedToStart(f"The file {path} can be read by others: give it mode 0600.")
        content = os.read(descriptor, MAX_BYTES + 1)
    finally:
        os.close(descriptor)
    if len(content) > MAX_BYTES:
        raise RefusedToStart(f"The file {path} is too long to hold a key.")
    return content
