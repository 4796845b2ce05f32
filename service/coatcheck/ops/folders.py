"""Folders of our own: whom they belong to, who gets in, and that a new name in one outlives a power cut."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from coatcheck.domain.errors import RefusedToStart

OTHERS = 0o067
"""What a private folder gives to nobody. Its group may pass through: root's embedded server runs as a user of its own."""
WRITE = 0o022


def make_private(folder: Path) -> list[Path]:
    """Makes a folder with mode 0700 where there is none; one of ours that is empty becomes so too. Returns what was made above it.

    Raises RefusedToStart for one that is another user's, or that others can look or write into; OSError.
    """
    made_above = [parent for parent in folder.parents if not parent.exists()]
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.stat()
    if found.st_uid == os.geteuid() and stat.S_IMODE(found.st_mode) & OTHERS and not any(folder.iterdir()):
        folder.chmod(0o700)
    require_private(folder)
    return made_above


def require_private(folder: Path) -> None:
    """Raises RefusedToStart. Root may own it too: whatever root wants to see, it sees."""
    found = folder.stat()
    if found.st_uid not in (os.geteuid(), 0):
        raise RefusedToStart(
            f"The folder {folder} belongs to another user ({found.st_uid}), who could put anything into it: "
            "run as that user, or name another folder."
        )
    mode = stat.S_IMODE(found.st_mode)
    if mode & OTHERS:
        does = "write to" if mode & OTHERS & WRITE else "look into"
        raise RefusedToStart(
            f"Others can {does} the folder {folder} (mode {mode:04o}): chmod go= {folder}, or name a folder inside it."
        )


def require_unshared(folder: Path) -> None:
    """Raises RefusedToStart for a folder that everybody can write to."""
    mode = stat.S_IMODE(folder.stat().st_mode)
    if mode & stat.S_IWOTH:
        raise RefusedToStart(f"Everybody can write to the folder {folder} (mode {mode:04o}): chmod o-w {folder}")


def sync_folder(folder: Path) -> None:
    """Returns once the names in the folder are on the disk (fsync(2))."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
