"""What a folder holds, on the disk: a new name in it outlives a power cut only once the folder itself was written."""

from __future__ import annotations

import os
from pathlib import Path


def sync_folder(folder: Path) -> None:
    """Returns once the names in the folder are on the disk (fsync(2))."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
