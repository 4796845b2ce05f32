"""Names of the settings and the models behind them."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from coatcheck.domain.errors import RefusedToStart, StageUnavailable
from coatcheck.models import build_embedder, build_reranker, packaged, registry
from coatcheck.models.fastembed import FastembedEmbedder
from coatcheck.models.hashing import HashingEmbedder
from coatcheck.models.reranker import FastembedReranker


@pytest.fixture
def no_weights_and_no_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packaged, "DISTRIBUTION", "a-distribution-that-is-not-installed")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


def test_auto_takes_the_packaged_weights() -> None:
    embedder, reranker = build_embedder("auto").model, build_reranker("auto").model

    assert isinstance(embedder, FastembedEmbedder)
    assert isinstance(reranker, FastembedReranker)
    assert embedder.revision.startswith("bge-small-en-v1.5-int8@")


def test_the_default_models_name_means_the_packaged_weights_too() -> None:
    model = build_embedder("BAAI/bge-small-en-v1.5").model

    assert isinstance(model, FastembedEmbedder)
    assert model.revision.startswith("bge-small-en-v1.5-int8@")


def test_none_is_none_and_says_so() -> None:
    for built in (build_embedder("none"), build_reranker("none")):
        assert built.model is None
        assert built.reason == "switched off"


def test_hashing_needs_nothing() -> None:
    assert isinstance(build_embedder("hashing").model, HashingEmbedder)


@pytest.mark.usefixtures("no_weights_and_no_hub")
def test_auto_without_weights_and_hub_is_none_with_a_reason(tmp_path: Path) -> None:
    for built in (build_embedder("auto", cache_dir=tmp_path), build_reranker("auto", cache_dir=tmp_path)):
        assert built.model is None
        assert "hub" in built.reason


@pytest.mark.usefixtures("no_weights_and_no_hub")
@pytest.mark.parametrize("name", ["BAAI/bge-base-en-v1.5", "no/such-model"])
def test_a_named_model_that_cannot_be_had_refuses_to_start(name: str, tmp_path: Path) -> None:
    """Going on without it would begin another generation of the index."""
    with pytest.raises(RefusedToStart, match=name):
        build_embedder(name, cache_dir=tmp_path)
    with pytest.raises(RefusedToStart, match=name):
        build_reranker(name, cache_dir=tmp_path)


def test_a_hub_that_does_not_answer_is_left_after_the_limit() -> None:
    started = time.monotonic()

    with pytest.raises(StageUnavailable, match="in time"):
        registry._within(lambda: time.sleep(3), 0.05)

    assert time.monotonic() - started < 3  # the work itself was not waited for


def test_naming_models_imports_no_model_library() -> None:
    code = (
        "import sys; from coatcheck.models import build_embedder, build_reranker; "
        "build_embedder('auto'); build_embedder('hashing'); build_reranker('auto'); "
        "sys.exit(any(name in sys.modules for name in ('fastembed', 'onnxruntime', 'numpy', 'tokenizers')))"
    )

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
