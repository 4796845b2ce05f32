"""The settings' names of the models that shorten text: what each may be, and what a start says of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import SecretStr

from coatcheck.domain.errors import RefusedToStart
from coatcheck.models import checkpoints, registry, stage_models
from coatcheck.models.cards import card
from coatcheck.models.registry import Built
from coatcheck.models.stage_models import Endpoint
from coatcheck.outbound.client import Outbound
from coatcheck.outbound.guard import Allowance

COMMIT = "0123456789abcdef0123456789abcdef01234567"
ENDPOINT = Endpoint("small", SecretStr("k"), Outbound(Allowance(loopback=True)))
STAGES = ("router", "compressor", "entailment", "summariser")


def _build(stage: str, name: str, cache_dir: Path) -> Built[object]:
    if stage == "summariser":
        return stage_models.build_summariser(name, ENDPOINT, cache_dir=cache_dir)  # type: ignore[return-value]
    found: Built[object] = getattr(stage_models, f"build_{stage}")(name, cache_dir=cache_dir)
    return found


def _files(folder: Path, weights: bytes = b"weights") -> Path:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(weights)
    (folder / "README.md").write_text("---\nlicense: mit\n---\n")
    return folder


@pytest.mark.parametrize("stage", STAGES)
def test_none_is_none_and_what_may_change_refuses_to_start(stage: str, tmp_path: Path) -> None:
    assert _build(stage, "none", tmp_path).reason == "switched off"
    for name in ("org/name", "org/name@main", "model.gguf", "file:///model"):
        with pytest.raises(RefusedToStart, match=f"COATCHECK_{stage.upper()}"):
            _build(stage, name, tmp_path)


@pytest.mark.parametrize("stage", STAGES)
def test_a_model_that_is_not_here_is_none_with_a_reason(stage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage_models, "LIBRARIES", dict.fromkeys(STAGES, "pytest"))

    assert "nowhere" in _build(stage, str(tmp_path / "nowhere"), tmp_path).reason
    assert "models pull" in _build(stage, f"org/name@{COMMIT}", tmp_path).reason
    monkeypatch.setattr(stage_models, "LIBRARIES", dict.fromkeys(STAGES, "a_library_that_is_not_there"))
    assert "coatcheck[models]" in _build(stage, str(_files(tmp_path / "here")), tmp_path).reason


@pytest.mark.parametrize("stage", STAGES)
def test_a_model_that_is_here_has_its_revision_before_it_is_loaded(
    stage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage_models, "LIBRARIES", dict.fromkeys(STAGES, "pytest"))
    _files(tmp_path / "models--org--name" / "snapshots" / COMMIT)

    pulled = _build(stage, f"org/name@{COMMIT}", tmp_path).model
    local = _build(stage, str(_files(tmp_path / "mine")), tmp_path).model

    assert getattr(pulled, "revision", "").startswith("org/name@")
    assert getattr(local, "revision", "").startswith("mine@")


def test_an_endpoint_is_asked_for_a_model_that_somebody_has_chosen(tmp_path: Path) -> None:
    url = "http://127.0.0.1:9/v1"

    built = stage_models.build_summariser(url, ENDPOINT)

    assert built.model is not None
    assert built.model.is_remote
    assert built.model.revision.startswith("small")
    with pytest.raises(RefusedToStart, match="COATCHECK_SUMMARISER_MODEL"):
        stage_models.build_summariser(url, Endpoint(None, None, ENDPOINT.outbound))
    with pytest.raises(RefusedToStart, match="endpoint"):
        stage_models.build_summariser(url, Endpoint("small", None, Outbound(Allowance())))
    with pytest.raises(RefusedToStart, match="COATCHECK_ROUTER"):
        stage_models.build_router(url)


@pytest.mark.parametrize("stage", ["embedder", "reranker"])
def test_a_pinned_embedder_or_reranker_refuses_to_start_where_it_cannot_be_had(stage: str, tmp_path: Path) -> None:
    """Here for want of its library, in the other environment for want of its files."""
    build = registry.build_embedder if stage == "embedder" else registry.build_reranker

    for name in (f"org/name@{COMMIT}", str(tmp_path / "nowhere"), "org/name@main"):
        with pytest.raises(RefusedToStart, match=f"COATCHECK_{stage.upper()}"):
            build(name, cache_dir=tmp_path)


@pytest.mark.parametrize("stage", ["embedder", *STAGES])
def test_a_folders_card_has_its_licence_and_hash(stage: str, tmp_path: Path) -> None:
    folder = _files(tmp_path / "mine")

    found = card(stage, str(folder))

    assert (found.state, found.name, found.source, found.licence) == ("here", "mine", "folder", "mit")
    assert found.revision == checkpoints.locate(checkpoints.parse("S", str(folder)), tmp_path).revision
    assert len(found.sha256) == 64
    assert card(stage, str(tmp_path / "nowhere")).state == "absent"
    assert card("router", "none").state == "off"


def test_a_pulled_model_is_held_against_the_hash_that_the_hub_keeps_it_under(tmp_path: Path) -> None:
    snapshot = _files(tmp_path / "models--org--name" / "snapshots" / COMMIT)
    blobs = tmp_path / "models--org--name" / "blobs"
    blobs.mkdir()
    weights = snapshot / "model.safetensors"
    blob = blobs / card("router", f"org/name@{COMMIT}", cache_dir=tmp_path).sha256
    weights.rename(blob)
    weights.symlink_to(blob)

    right = card("router", f"org/name@{COMMIT}", cache_dir=tmp_path)
    blob.write_bytes(b"others")
    wrong = card("router", f"org/name@{COMMIT}", cache_dir=tmp_path)

    assert (right.state, right.revision, right.source) == ("verified", f"org/name@{COMMIT}", "hub")
    assert (wrong.state, wrong.sha256 != right.sha256) == ("failed", True)


def test_an_endpoints_card_says_that_nothing_is_here() -> None:
    found = card("summariser", "https://models.example/v1")

    assert (found.state, found.source, found.sha256) == ("here", "endpoint", "")


def test_a_bucket_above_what_any_router_reads_refuses_to_start_by_the_settings_name(tmp_path: Path) -> None:
    assert stage_models.build_router(registry.NONE, buckets=[64, 1_024]).model is None

    with pytest.raises(RefusedToStart, match=r"COATCHECK_ROUTER_BUCKETS: 2,048 .* above the 1,024"):
        stage_models.build_router(registry.NONE, buckets=[64, 2_048])
