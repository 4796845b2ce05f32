"""What is not whole yet, beside the name that it will take: locked while somebody works on it, else removed by the next one.

The kernel lets go of the lock when its process ends, however it ends (flock(2)): so what a killed run left is told from what a
living one holds without asking for a number of a process, which in another container means nothing. On a file system without such
locks nobody gets one, and then nothing of anybody's is removed.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import secrets
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

_NO_LOCKS = frozenset({errno.EBADF, errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL})
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@contextmanager
def folder_beside(target: Path, mode: int = 0o777) -> Iterator[Path]:
    """A new, empty folder for what becomes ``target`` by a rename; removed at the end unless that came. Raises OSError."""
    with _beside(target, lambda path: path.mkdir(mode)) as path:
        yield path


@contextmanager
def file_beside(target: Path, mode: int = 0o666) -> Iterator[Path]:
    """As ``folder_beside``, an empty file."""
    with _beside(target, lambda path: path.touch(mode, exist_ok=False)) as path:
        yield path


def remove_left_behind(folder: Path, name: str | None = None) -> None:
    """Removes what dead runs left in the folder, of all targets or of one. Raises nothing: what cannot be removed stays."""
    named = re.compile(r"\." + (r".+" if name is None else re.escape(name)) + r"\.[0-9a-f]{8}\.partial", re.DOTALL)
    with contextlib.suppress(OSError):
        for path in [path for path in folder.iterdir() if named.fullmatch(path.name)]:
            with contextlib.suppress(OSError):
                _remove_dead(path)


@contextmanager
def _beside(target: Path, make: Callable[[Path], None]) -> Iterator[Path]:
    remove_left_behind(target.parent, target.name)
    path, descriptor = _made_and_held(target, make)
    try:
        yield path
    finally:
        _remove(path)
        if descriptor is not None:
            os.close(descriptor)


def _made_and_held(target: Path, make: Callable[[Path], None]) -> tuple[Path, int | None]:
    """Another run may come in between the making and the lock, take it for a dead one's and remove it: then there is another."""
    while True:
        path = target.with_name(f".{target.name}.{secrets.token_hex(4)}.partial")
        make(path)
        try:
            descriptor = _held(path)
        except (BlockingIOError, FileNotFoundError):
            continue
        except OSError as error:
            if error.errno in _NO_LOCKS:
                return path, None
            raise
        if _is_at(descriptor, path):
            return path, descriptor
        os.close(descriptor)


def _held(path: Path) -> int:
    """Raises BlockingIOError where somebody else holds it; OSError."""
    descriptor = os.open(path, _OPEN)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _remove_dead(path: Path) -> None:
    found = path.lstat()
    if found.st_uid != os.geteuid() or not (stat.S_ISDIR(found.st_mode) or stat.S_ISREG(found.st_mode)):
        return
    descriptor = _held(path)
    try:
        _remove(path)
    finally:
        os.close(descriptor)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except FileNotFoundError:
        return False
