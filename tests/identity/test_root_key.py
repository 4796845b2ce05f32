"""The root key is created once, whole and private, or the service does not start."""

from __future__ import annotations

import base64
import multiprocessing
import os
import stat
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from coatcheck.domain.errors import RefusedToStart
from coatcheck.identity import private_file, root_key

KEY = bytes(range(32))


@pytest.mark.parametrize(
    "text",
    [
        KEY.hex(),
        KEY.hex().upper() + "\n",
        base64.b64encode(KEY).decode(),
        base64.b64encode(KEY).decode().rstrip("="),
        base64.urlsafe_b64encode(KEY).decode(),
    ],
)
def test_a_key_is_read_in_hex_and_in_either_base64(text: str) -> None:
    assert root_key.parse(text) == KEY


@pytest.mark.parametrize(
    "text", ["", "short", KEY.hex()[:-2], KEY.hex() + "00", "g" * 64, base64.b64encode(KEY[:31]).decode(), "\u00e9" * 44]
)
def test_what_is_no_key_is_refused_without_being_repeated(text: str) -> None:
    with pytest.raises(RefusedToStart) as refusal:
        root_key.parse(text)

    assert not text or text not in refusal.value.detail


def test_the_first_start_makes_a_private_file_and_the_second_finds_the_same_key(tmp_path: Path) -> None:
    path = tmp_path / "root.key"

    first = root_key.load_or_create(path)
    second = root_key.load_or_create(path)

    assert first == second
    assert len(first) == 32
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["root.key"]


def test_a_loose_umask_does_not_make_the_file_readable(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        private_file.create(tmp_path / "key", b"x")
    finally:
        os.umask(before)

    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o644, 0o666])
def test_a_file_that_others_can_read_or_write_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "root.key"
    root_key.load_or_create(path)
    path.chmod(mode)

    with pytest.raises(RefusedToStart, match="0600"):
        root_key.load(path)


def test_a_missing_file_a_folder_and_a_long_file_are_refused(tmp_path: Path) -> None:
    (tmp_path / "long").write_bytes(b"0" * 5_000)
    (tmp_path / "long").chmod(0o600)
    (tmp_path / "binary").write_bytes(b"\xff" * 32)
    (tmp_path / "binary").chmod(0o600)

    for name in ("missing", ".", "long", "binary"):
        with pytest.raises(RefusedToStart):
            root_key.load(tmp_path / name)


def test_a_file_is_never_written_over(tmp_path: Path) -> None:
    path = tmp_path / "root.key"
    private_file.create(path, b"first")

    created = private_file.create(path, b"second")

    assert not created
    assert private_file.read(path) == b"first"


def _start(path: Path, answer: Connection) -> None:
    answer.send(root_key.load_or_create(path))


def test_processes_that_start_together_agree_on_one_key(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    path = tmp_path / "root.key"
    pipes = [context.Pipe() for _ in range(8)]
    processes = [context.Process(target=_start, args=(path, child)) for _, child in pipes]

    for process in processes:
        process.start()
    keys = {parent.recv() for parent, _ in pipes}
    for process in processes:
        process.join()

    assert len(keys) == 1
