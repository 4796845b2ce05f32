"""The demo, whole, on the embedded defaults: the first run and the one after it."""

from __future__ import annotations

from pathlib import Path

import pytest

from coatcheck.cli.demo.command import default_folder, private_folder
from coatcheck.cli.demo.edition import digest_of, session_name
from coatcheck.domain.errors import RefusedToStart
from tests.cli.serving import Machine
from tests.folders import open_folder


def test_the_demo_keeps_every_promise_and_does_so_again_also_with_an_index_that_is_filled_anew() -> None:
    """The third time as after an upgrade: what the folder's index was written with is not what this start writes with."""
    models = {"COATCHECK_EMBEDDER": "auto", "COATCHECK_RERANKER": "auto"}

    with open_folder() as folder:
        machine = Machine(folder / "data")
        first = machine.run("demo", "--json", **models)
        second = machine.run("demo", "--json", **models)
        upgraded = machine.run("demo", "--json", COATCHECK_EMBEDDER="hashing", COATCHECK_RERANKER="none")

    assert first.code == second.code == upgraded.code == 0, first.err + second.err + upgraded.err
    said = first.json
    assert said["reduction"] >= 97
    assert said["exact_lines"] == 3
    assert said["window_equal"] is True
    assert said["scan_findings"] == 0
    assert said["secrets_redacted"] == 2
    assert said["secrets_left"] is False
    assert second.json["manifest_id"] == upgraded.json["manifest_id"] == said["manifest_id"]
    assert upgraded.json["exact_lines"] == 3


def test_another_edition_of_what_decides_has_a_session_of_its_own_in_the_same_folder() -> None:
    today = {"pipeline": "5", "policy": "policy/1"}

    assert session_name(today) == session_name(dict(reversed(today.items())))
    assert session_name(today) != session_name(today | {"pipeline": "6"})
    assert session_name(today) != session_name(today | {"router": "router/1"})


def test_an_edition_is_every_file_and_nothing_that_python_compiles_from_them(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("one")
    before = digest_of([tmp_path])

    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "a.pyc").write_text("compiled")
    assert digest_of([tmp_path]) == before

    (tmp_path / "a.py").write_text("two")
    changed = digest_of([tmp_path])
    (tmp_path / "a.py").rename(tmp_path / "b.py")
    assert len({before, changed, digest_of([tmp_path])}) == 3


def test_the_demo_has_a_folder_of_its_own_in_the_data_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("COATCHECK_DATA_DIR", str(tmp_path))

    assert default_folder() == tmp_path / "demo"


def test_a_folder_whose_name_was_taken_by_a_link_is_refused(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "demo").symlink_to(elsewhere)

    with pytest.raises(RefusedToStart):
        private_folder(tmp_path / "demo")


def test_a_private_folder_is_made_once_and_for_its_owner_alone(tmp_path: Path) -> None:
    made = private_folder(tmp_path / "demo")

    assert made.stat().st_mode & 0o777 == 0o700
    assert private_folder(made) == made
