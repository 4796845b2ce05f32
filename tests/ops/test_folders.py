"""Folders of our own: private when they are made, and refused where somebody else gets in."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from coatcheck.app.data_dir import DataDirectory
from coatcheck.domain.errors import RefusedToStart
from coatcheck.ops.folders import make_private, require_unshared


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_folder_is_made_private_and_what_was_made_above_it_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b" / "data"

    made = make_private(folder)

    assert mode(folder) == 0o700
    assert set(made) == {tmp_path / "a", tmp_path / "a" / "b"}
    assert make_private(folder) == []


def test_an_empty_folder_that_others_get_into_is_closed(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    folder.chmod(0o777)

    make_private(folder)

    assert mode(folder) == 0o700


@pytest.mark.parametrize(("given", "does"), [(0o755, "look into"), (0o750, "look into"), (0o770, "write to"), (0o1777, "write to")])
def test_one_with_something_in_it_that_others_get_into_is_refused_and_left_as_it_is(tmp_path: Path, given: int, does: str) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "something").touch()
    folder.chmod(given)

    with pytest.raises(RefusedToStart, match=f"Others can {does}"), DataDirectory(folder):
        raise AssertionError("not to be entered")

    assert mode(folder) == given
    assert sorted(path.name for path in folder.iterdir()) == ["something"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives folders away")
def test_somebody_elses_folder_is_refused_also_by_root(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir(mode=0o700)
    os.chown(folder, 12_345, 12_345)

    with pytest.raises(RefusedToStart, match="belongs to another user"), DataDirectory(folder):
        raise AssertionError("not to be entered")

    assert folder.stat().st_uid == 12_345
    assert list(folder.iterdir()) == []


def test_files_of_the_data_directory_are_the_owners_alone(tmp_path: Path) -> None:
    with DataDirectory(tmp_path / "data") as data:
        data.publish_url("http://127.0.0.1:1")

        assert {path.name: mode(path) for path in data.path.iterdir()} == {"lock": 0o600, "run.json": 0o600}


def test_a_key_that_was_half_made_when_its_process_was_killed_is_gone_when_the_directory_is_opened_again(tmp_path: Path) -> None:
    with DataDirectory(tmp_path / "data") as data:
        (data.path / ".root.key.0123abcd.partial").write_text("half")

    with DataDirectory(tmp_path / "data") as data:
        assert [path.name for path in data.path.iterdir()] == ["lock"]


def test_a_journal_that_everybody_can_write_to_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)

    with pytest.raises(RefusedToStart, match="chmod o-w"):
        require_unshared(tmp_path)
