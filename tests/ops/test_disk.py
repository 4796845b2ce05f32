"""How much room is left, of the folders that a process writes to, made or not."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from coatcheck.domain.errors import StorageFull
from coatcheck.ops.disk import Disk, free_bytes


def test_a_folder_that_is_not_made_yet_has_the_room_of_the_one_it_will_be_in(tmp_path: Path) -> None:
    before = shutil.disk_usage(tmp_path).free

    found = free_bytes(tmp_path / "not" / "made" / "yet")

    assert abs(found - before) < 64 * 1024 * 1024


def test_there_is_room_down_to_the_mark_and_none_below_it(tmp_path: Path) -> None:
    Disk([tmp_path], 1).require_room()
    Disk([tmp_path], 0).require_room()

    with pytest.raises(StorageFull):
        Disk([Path("/"), tmp_path], 2**62).require_room()
