"""Names of models in settings, and the files behind them."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from coatcheck.domain.errors import RefusedToStart, StageUnavailable
from coatcheck.models import checkpoints
from coatcheck.models.checkpoints import Named

COMMIT = "0123456789abcdef0123456789abcdef01234567"
WEIGHTS = b"weights"


def _folder(path: Path, card: str = "---\nlicense: apache-2.0\n---\n# A model\n") -> Path:
    path.mkdir(parents=True)
    (path / "config.json").write_text("{}")
    (path / "model.safetensors").write_bytes(WEIGHTS)
    (path / "README.md").write_text(card)
    return path


def test_a_folder_is_named_by_its_path_and_a_hubs_model_by_its_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    assert checkpoints.parse("S", str(tmp_path / "m")) == Named("m", tmp_path / "m")
    assert checkpoints.parse("S", "./m") == Named("m", tmp_path / "m")
    assert checkpoints.parse("S", f"org/name@{COMMIT}") == Named("org/name", None, COMMIT)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("org/name", "no revision"),
        ("org/name@main", "no commit"),
        (f"org/name@{COMMIT[:12]}", "no commit"),
        ("org/name@", "no commit"),
        ("models/org/name", "neither a folder"),
        (f"https://hub/org/name@{COMMIT}", "neither a folder"),
        (f"../name@{COMMIT}x/../../etc", ""),
    ],
)
def test_a_name_that_may_be_another_model_tomorrow_refuses_to_start(value: str, said: str) -> None:
    if not said:
        assert checkpoints.parse("COATCHECK_ROUTER", value).folder is not None
        return
    with pytest.raises(RefusedToStart, match=f"COATCHECK_ROUTER.*{said}"):
        checkpoints.parse("COATCHECK_ROUTER", value)


def test_the_revision_is_of_every_file_that_a_load_reads(tmp_path: Path) -> None:
    folder = _folder(tmp_path / "m")
    named = checkpoints.parse("S", str(folder))
    first = checkpoints.locate(named, tmp_path)
    first_revision = first.revision

    (folder / "notes.md").write_text("read by nobody")
    same = checkpoints.locate(named, tmp_path)
    same_revision = same.revision
    (folder / "config.json").write_text('{"id2label": {}}')
    other = checkpoints.locate(named, tmp_path)

    assert first_revision.startswith("m@")
    assert same_revision == first_revision
    assert other.revision != first_revision
    assert other.sha256 == first.sha256 == hashlib.sha256(WEIGHTS).hexdigest()
    assert first.licence == "apache-2.0"


def test_a_hubs_model_is_found_where_its_library_keeps_it(tmp_path: Path) -> None:
    _folder(tmp_path / "models--org--name" / "snapshots" / COMMIT, card="no front matter")

    found = checkpoints.locate(checkpoints.parse("S", f"org/name@{COMMIT}"), tmp_path)

    assert (found.commit, found.licence) == (COMMIT, "unknown")
    assert found.revision.startswith("org/name@")


def test_what_is_not_here_says_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "pickled").mkdir()
    (tmp_path / "pickled" / "config.json").write_text("{}")
    (tmp_path / "pickled" / "pytorch_model.bin").write_bytes(WEIGHTS)

    for value, said in (
        (str(tmp_path / "nowhere"), "no model in the folder"),
        (str(tmp_path / "pickled"), "safetensors"),
        (f"org/name@{COMMIT}", "models pull"),
    ):
        with pytest.raises(StageUnavailable, match=said):
            checkpoints.locate(checkpoints.parse("S", value), tmp_path)


def test_a_hub_that_cannot_be_reached_is_no_crash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")

    with pytest.raises(StageUnavailable, match="could not be had"):
        checkpoints.pull(checkpoints.parse("S", f"org/name@{COMMIT}"), tmp_path)
