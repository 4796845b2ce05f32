"""How much room is left where this process writes: what comes in is refused before a write fails half way.

Files that are mapped into memory cannot report a full disk: the process dies of SIGBUS at the page that has no place.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from coatcheck.domain.errors import StorageFull

MIB = 1024 * 1024


class Disk:
    """The folders that this process writes to, and how much has to stay free in each. 0 is no limit."""

    def __init__(self, folders: Sequence[Path], min_free_bytes: int) -> None:
        self._folders = tuple(folders)
        self.min_free_bytes = min_free_bytes

    def free_bytes(self) -> int:
        """What is left to this user in the fullest of them."""
        return min(free_bytes(folder) for folder in self._folders)

    @property
    def is_low(self) -> bool:
        return self.free_bytes() < self.min_free_bytes

    def require_room(self) -> None:
        """Raises StorageFull: for whatever adds, and for nothing that takes away."""
        if self.is_low:
            raise StorageFull("The service has too little disk left to take anything in. Nothing of this was stored.")


def free_bytes(folder: Path) -> int:
    """Of the file system that the folder is in, or will be in once it is made."""
    for existing in (folder, *folder.parents):
        if existing.exists():
            return shutil.disk_usage(existing).free
    raise FileNotFoundError(folder)
