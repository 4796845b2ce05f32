"""The journal's disk is full: an erasure waits with everything still in its place, unreachable, and completes later."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from tests.faults.erased import assert_unreachable, handed, own_segments
from tests.faults.pair import Scene

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_a_full_disk_leaves_the_erasure_pending_and_it_completes_when_there_is_room(at: Scene) -> None:
    one = await handed(at.one, "alpha")
    segments = await own_segments(at.one, one)
    journal = at.pair.first.parts.settings.erasure_journal
    assert journal is not None
    before = await at.points()

    with full(journal, "first"), full(journal, "second"):
        answer = await at.one.delete(one.session)
        await at.reconcile_now("erase")
        points, owed = await at.points(), await at.owed()
        await assert_unreachable(at, one, segments, session_too=True)

    assert (answer.status_code, answer.json()["type"].rsplit(":", 1)[-1]) == (503, "erase-pending")
    assert points == before
    assert [(kind, error) for kind, _, error in owed] == [("erase", None)]
    await at.assert_agreement()
    assert (await at.texts(), await at.points()) == (0, 0)
    await assert_unreachable(at, one, segments, session_too=True)
    assert one.answer["session_id"] in "".join(path.read_text() for path in journal.glob("*.ndjson"))


class full:
    """The owner's file of the journal takes nothing: a node like full(4), or where that may not be made, a folder."""

    def __init__(self, journal: Path, owner: str) -> None:
        self._file = journal / f"{owner}.ndjson"
        self._kept = journal / f"{owner}.kept"

    def __enter__(self) -> None:
        self._file.parent.mkdir(exist_ok=True)
        if self._file.exists():
            self._file.rename(self._kept)
        try:
            os.mknod(self._file, stat.S_IFCHR | 0o600, os.makedev(1, 7))
        except PermissionError:
            self._file.mkdir()

    def __exit__(self, *_: object) -> None:
        if self._file.is_dir():
            self._file.rmdir()
        else:
            self._file.unlink()
        if self._kept.exists():
            self._kept.rename(self._file)
