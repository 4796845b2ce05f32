"""Files that may be anybody's: ordinary ones are opened and nothing else. A pipe would keep its reader waiting for ever, and some
devices never end."""

from __future__ import annotations

import errno
import json
import os
import stat
from io import BufferedReader
from pathlib import Path
from typing import Any


def opened(path: Path) -> BufferedReader:
    """To read. Raises OSError, also for a pipe, a device, a socket and a folder, unopened: some would take note of it."""
    _require_ordinary(path, path.stat().st_mode)
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        _require_ordinary(path, os.fstat(descriptor).st_mode)  # another one may have taken its name meanwhile
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def read(path: Path, most_bytes: int) -> bytes:
    """Raises OSError, also for a file that holds more."""
    with opened(path) as file:
        content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise OSError(errno.EFBIG, f"too long: over {most_bytes:,} bytes", str(path))
    return content


def read_json(path: Path, most_bytes: int) -> Any:
    """Raises OSError as ``read`` does, and ValueError for what is no JSON or is nested beyond any use."""
    content = read(path, most_bytes)
    try:
        return json.loads(content)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _require_ordinary(path: Path, mode: int) -> None:
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "no ordinary file", str(path))
