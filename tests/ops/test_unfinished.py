"""What is not whole yet: removed after a run that was killed, and left alone while one lives."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from coatcheck.ops.unfinished import file_beside, folder_beside, remove_left_behind

WORKS = """
import sys, time
from pathlib import Path
from coatcheck.ops import unfinished
with getattr(unfinished, sys.argv[1])(Path(sys.argv[2])) as path:
    (path / "weights" if path.is_dir() else path).write_text("half")
    print(path, flush=True)
    time.sleep(60)
"""


@contextmanager
def another_process(kind: str, target: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """One that is at work on the target, and what it has made."""
    process = subprocess.Popen([sys.executable, "-c", WORKS, kind, str(target)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process, Path(process.stdout.readline().strip())
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.mark.parametrize("kind", ["folder_beside", "file_beside"])
def test_what_a_living_run_holds_stays_and_what_it_leaves_when_it_is_killed_goes_with_the_next_run(
    tmp_path: Path, kind: str
) -> None:
    target = tmp_path / "fp8"
    with another_process(kind, target) as (process, made):
        with folder_beside(target):
            assert made.exists()
        process.kill()
        process.wait()
        assert made.exists()

        with folder_beside(target) as mine:
            assert list(tmp_path.iterdir()) == [mine]

    assert list(tmp_path.iterdir()) == []


def test_two_at_once_in_one_process_leave_each_other_alone(tmp_path: Path) -> None:
    with folder_beside(tmp_path / "a") as first, folder_beside(tmp_path / "a") as second, file_beside(tmp_path / "a") as third:
        remove_left_behind(tmp_path)

        assert {first, second, third} == set(tmp_path.iterdir())
        second.rename(tmp_path / "a")

    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_many_that_begin_at_the_same_time_each_have_their_own(tmp_path: Path) -> None:
    """Between its making and its lock a folder looks like a dead run's: whoever loses it there makes another."""
    lost: list[str] = []

    def work() -> None:
        for _ in range(40):
            with folder_beside(tmp_path / "a") as folder:
                try:
                    (folder / "weights").write_text("mine")
                except OSError as error:
                    lost.append(str(error))

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert lost == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", [".a.0123abcd.partial2", "a.0123abcd.partial", ".b.0123abcd.partial", ".a.b.0123abcd.partial"])
def test_what_is_another_targets_or_has_only_a_similar_name_stays(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()

    remove_left_behind(tmp_path, "a")

    assert (tmp_path / name).exists()


def test_a_link_under_such_a_name_stays_and_so_does_what_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / ".a.0123abcd.partial").symlink_to(tmp_path / "theirs")
    os.mkfifo(tmp_path / ".a.4567abcd.partial")

    remove_left_behind(tmp_path)

    assert len(list(tmp_path.iterdir())) == 3
