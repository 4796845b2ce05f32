"""Files that may be anybody's: what is none is refused at once, by every reader of them."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from coatcheck.compaction import policy_document
from coatcheck.compaction.redaction import own_rules
from coatcheck.domain.errors import RefusedToStart, StageUnavailable
from coatcheck.memory.journal import ErasureJournal
from coatcheck.models import checkpoints, pretrained
from coatcheck.models.packaged import BGE_SMALL, verify
from coatcheck.ops import ordinary_files
from coatcheck.settings import unread_file
from tests.folders import open_folder


def pipe(path: Path) -> None:
    os.mkfifo(path)


def folder(path: Path) -> None:
    path.mkdir()


def listening(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


KINDS = [pipe, folder, listening, device]


def within(work: Callable[[], object]) -> object:
    """What it gives or raises, and not after a wait."""
    found: list[object] = []

    def run() -> None:
        try:
            found.append(work())
        except Exception as error:
            found.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(10)
    assert found, "it waits"
    return found[0]


@pytest.mark.parametrize("make", KINDS)
@pytest.mark.parametrize("read", [ordinary_files.opened, lambda path: ordinary_files.read_json(path, 10)])
def test_what_is_no_ordinary_file_is_not_opened(make: Callable[[Path], None], read: Callable[[Path], object]) -> None:
    with open_folder() as at:
        make(at / "x")

        found = within(lambda: read(at / "x"))

    assert isinstance(found, OSError)
    assert found.strerror == "no ordinary file"


def test_an_ordinary_file_is_read_to_its_bound_and_not_beyond(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"[1, 2]")
    (tmp_path / "link").symlink_to("x")

    assert ordinary_files.read(tmp_path / "link", 6) == b"[1, 2]"
    with pytest.raises(OSError, match="over 5 bytes"):
        ordinary_files.read(tmp_path / "x", 5)


def test_json_that_is_nested_beyond_any_use_is_none(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"[" * 200_000)

    with pytest.raises(ValueError, match="nested"):
        ordinary_files.read_json(tmp_path / "x", 1_000_000)


@pytest.mark.parametrize("make", KINDS)
@pytest.mark.parametrize(
    "read",
    [policy_document.read, own_rules.read, lambda path: list(ErasureJournal(path.parent, "owner", b"key").lines())],
    ids=["policy", "rules", "journal"],
)
def test_a_file_that_a_setting_names_refuses_the_start_where_it_is_none(
    make: Callable[[Path], None], read: Callable[[Path], object]
) -> None:
    with open_folder() as at:
        make(at / "x.ndjson")

        found = within(lambda: read(at / "x.ndjson"))

    assert isinstance(found, RefusedToStart)
    assert "no ordinary file" in found.detail


@pytest.mark.parametrize("make", KINDS)
def test_a_working_directory_whose_env_file_is_a_pipe_keeps_no_command_waiting(
    make: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_folder() as at:
        make(at / ".env")
        monkeypatch.chdir(at)

        assert within(unread_file) is None
        monkeypatch.undo()


@pytest.mark.parametrize("make", KINDS)
@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "model-2.safetensors", "1_Pooling/config.json", "README.md"])
def test_a_model_with_anything_but_files_under_the_names_of_files_is_refused(make: Callable[[Path], None], name: str) -> None:
    with open_folder() as at:
        for whole in ("config.json", "model.safetensors"):
            (at / whole).write_text("{}")
        (at / "1_Pooling").mkdir()
        (at / name).unlink(missing_ok=True)
        make(at / name)

        found = within(lambda: checkpoints.locate(checkpoints.parse("S", str(at)), at).licence)

        if (make, name) == (folder, "README.md"):
            assert found == "unknown"
        else:
            assert isinstance(found, StageUnavailable)
            assert name in found.detail
            assert "no ordinary file" in found.detail


@pytest.mark.parametrize("make", KINDS)
def test_a_load_that_finds_another_thing_in_a_files_place_than_its_start_did_does_not_wait(make: Callable[[Path], None]) -> None:
    with open_folder() as at:
        make(at / "config.json")

        assert isinstance(within(lambda: pretrained.config_of(at)), RefusedToStart)
        assert isinstance(within(lambda: verify(BGE_SMALL, at)), RefusedToStart)


def test_a_weight_that_cannot_be_read_is_a_model_that_is_not_here(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").symlink_to("/proc/self/mem")  # an ordinary file whose first byte nobody can read

    found = checkpoints.locate(checkpoints.parse("S", str(tmp_path)), tmp_path)

    with pytest.raises(StageUnavailable, match=r"model\.safetensors.*cannot be read"):
        _ = found.revision
