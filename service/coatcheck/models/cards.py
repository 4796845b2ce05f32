"""What a model is, for an operator: its name, where it comes from, its revision, licence, and the hash of its weights."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from coatcheck.domain.errors import CoatcheckError
from coatcheck.models import checkpoints, registry
from coatcheck.models.packaged import BGE_SMALL, MS_MARCO, PackagedModel, file_sha256, folder_of, verify
from coatcheck.models.unlisted import make_known

if TYPE_CHECKING:
    from coatcheck.domain.ports import Embedder, Reranker

State = Literal["here", "verified", "absent", "off", "failed"]

_STAGES = {
    "embedder": (BGE_SMALL, registry.DEFAULT_EMBEDDER),
    "reranker": (MS_MARCO, registry.DEFAULT_RERANKER),
}
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Card:
    """``sha256`` is that of the weights as they lie there; empty where they do not."""

    stage: str
    state: State
    name: str
    source: str = ""
    revision: str = ""
    licence: str = ""
    sha256: str = ""
    detail: str = ""

    def as_dict(self) -> dict[str, str]:
        return asdict(self)


def card(stage: str, name: str, *, cache_dir: Path | None = None, pull: bool = False) -> Card:
    """Of the model that the settings name for a stage. A hub is asked with ``pull`` alone. Never raises for what is wrong with it.

    A packaged model's files are verified by the hashes that are pinned in this code; a hub's weights by the hash that the hub
    gives them, which their file in its cache is named by.
    """
    if name == registry.NONE:
        return Card(stage, "off", name)
    if name.startswith(("https://", "http://")):
        return Card(stage, "here", name, "endpoint", detail="Asked over the network: there are no weights here.")
    if stage not in _STAGES or checkpoints.is_pinned(name):
        return _checkpoint(stage, name, cache_dir or registry.models_dir(), pull)
    packaged, default = _STAGES[stage]
    if name == registry.HASHING and stage == "embedder":
        return Card(stage, "here", name, "built in", "hashing-1", "Apache-2.0")
    if name in (registry.AUTO, default) and (folder := folder_of(packaged)) is not None:
        return _packaged(stage, packaged, folder)
    return _from_hub(stage, default if name == registry.AUTO else name, cache_dir, pull)


def _packaged(stage: str, packaged: PackagedModel, folder: Path) -> Card:
    known = {"source": "wheel", "revision": packaged.revision, "licence": packaged.licence}
    try:
        verify(packaged, folder)
    except CoatcheckError as error:
        return Card(stage, "failed", packaged.name, **known, detail=error.detail)
    return Card(stage, "verified", packaged.name, **known, sha256=packaged.files["model.onnx"])


def _checkpoint(stage: str, name: str, cache_dir: Path, pull: bool) -> Card:
    """A hub keeps each file under the hash that it gave it; of a folder there is nothing to hold the weights against."""
    source = "folder" if checkpoints.is_folder(name) else "hub"
    try:
        named = checkpoints.parse(f"COATCHECK_{stage.upper()}", name)
        found = (checkpoints.pull if pull else checkpoints.locate)(named, cache_dir)
        revision = found.revision if named.folder is not None else f"{named.name}@{named.commit}"
        known = Card(stage, "here", named.name, source, revision, found.licence, found.sha256)
        given = {path: path.resolve().name for path in found.weights} if named.folder is None else {}
        hashes = {path: file_sha256(path) for path, expected in given.items() if _SHA256.fullmatch(expected)}
    except (CoatcheckError, OSError) as error:
        return Card(
            stage, "absent", name, source, detail=error.detail if isinstance(error, CoatcheckError) else "It cannot be read."
        )
    if not hashes:
        return known
    return _marked(known, "verified" if all(given[path] == found for path, found in hashes.items()) else "failed")


def _from_hub(stage: str, name: str, cache_dir: Path | None, pull: bool) -> Card:
    try:
        model = _pulled(stage, name, cache_dir) if pull else registry.cached(stage, name, cache_dir)
        assert model.weights is not None
        found = file_sha256(model.weights)
    except (CoatcheckError, OSError) as error:
        detail = error.detail if isinstance(error, CoatcheckError) else "The weights cannot be read."
        return Card(stage, "absent", name, "hub", licence=_licence(stage, name), detail=detail)
    parts = model.weights.parts
    commit = parts[parts.index("snapshots") + 1] if "snapshots" in parts[:-1] else model.revision
    known = Card(stage, "here", name, "hub", commit, _licence(stage, name), found)
    expected = model.weights.resolve().name
    if not _SHA256.fullmatch(expected):
        return known
    return _marked(known, "verified" if expected == found else "failed")


def _marked(known: Card, state: State) -> Card:
    detail = "The weights are not what the hub gave: their hash differs." if state == "failed" else ""
    return Card(known.stage, state, known.name, known.source, known.revision, known.licence, known.sha256, detail)


def _pulled(stage: str, name: str, cache_dir: Path | None) -> Embedder | Reranker:
    build = registry.build_embedder if stage == "embedder" else registry.build_reranker
    built = build(name, cache_dir=cache_dir)
    assert built.model is not None  # a name that is neither ``auto`` nor ``none`` gives a model or raises
    return built.model


def _licence(stage: str, name: str) -> str:
    """As the library's list of models has it."""
    from fastembed import TextEmbedding
    from fastembed.rerank.cross_encoder import TextCrossEncoder

    make_known()
    listed = (TextEmbedding if stage == "embedder" else TextCrossEncoder).list_supported_models()
    return next((str(model["license"]) for model in listed if str(model["model"]).lower() == name.lower()), "unknown")
