"""The embedded index's folder: the engine's shard, a mark that it was closed cleanly, and the time of its last flush."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TypeVar

import qdrant_edge as engine

from coatcheck.domain.errors import RefusedToStart
from coatcheck.index.points import INDEXED_FIELDS, LEXICAL, IndexedField, dense_name
from coatcheck.ops.disk import MIB, free_bytes
from coatcheck.ops.folders import sync_folder

OPEN_BYTES = 96 * MIB
"""The engine maps 64 MiB of log that it has not written yet, and dies of SIGBUS where they have no place (0.9.0: 66 MB are too few,

72 MB are enough)."""


@dataclass(frozen=True, slots=True)
class OpenedShard:
    """A loaded shard and how its predecessor left it."""

    shard: engine.EdgeShard
    was_clean: bool
    """False after a crash: what was written since ``flushed_at`` may be missing."""
    flushed_at: datetime | None
    """Everything written before this is on the disk; None where nothing is known."""


class EdgeFolder:
    """One folder, mode 0700, for one process at a time: the engine holds a lock on its log."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._shard = path / "shard"
        self._clean = path / "closed-cleanly"
        self._flushed = path / "flushed-at"

    def open(self) -> OpenedShard:
        """Loads the shard, or makes it. Raises RefusedToStart when it is in use or cannot be read."""
        self._path.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._path.chmod(0o700)
        if (free := free_bytes(self._path)) < OPEN_BYTES:
            raise RefusedToStart(
                f"The index in {self._path} takes {OPEN_BYTES // MIB} MiB of disk to open, and {free // MIB} are free: make room."
            )
        is_new = not (self._shard / "edge_config.json").exists()
        if is_new:
            shutil.rmtree(self._shard, ignore_errors=True)
            self._shard.mkdir()
            self._flushed.unlink(missing_ok=True)
        shard = translate(lambda: _create(self._shard) if is_new else _load(self._shard), self._refusal)
        opened = OpenedShard(shard, was_clean=is_new or self._clean.exists(), flushed_at=self._read_flushed())
        self._clean.unlink(missing_ok=True)
        sync_folder(self._path)
        return opened

    def mark_flushed(self, started_at: datetime) -> None:
        """Records that everything written before this time is on the disk."""
        _write(self._flushed, started_at.isoformat())

    def mark_clean(self) -> None:
        _write(self._clean, "")

    def _read_flushed(self) -> datetime | None:
        try:
            return datetime.fromisoformat(self._flushed.read_text())
        except (FileNotFoundError, ValueError):
            return None

    def _refusal(self, error: Exception) -> RefusedToStart:
        if "WouldBlock" in str(error):
            return RefusedToStart(f"The index in {self._path} is in use by another process.")
        return RefusedToStart(
            f"The index in {self._path} cannot be loaded. It holds nothing that the database lacks: move it away, start again."
        )


T = TypeVar("T")


def translate(work: Callable[[], T], to: Callable[[Exception], Exception]) -> T:
    """Runs engine calls. The engine raises bare ``Exception`` and nothing else; any other error is ours and passes."""
    try:
        return work()
    except Exception as error:
        if type(error) is not Exception:
            raise
        raise to(error) from error


def add_dense(shard: engine.EdgeShard, length: int) -> None:
    """Makes room for embeddings of this length, where there is none yet.

    Sixteen bits a dimension (docs/decisions/011): every vector is still compared, at a third of the time of thirty-two. A folder
    from before keeps its thirty-two: both answer, and a vector's kind cannot be changed in place.
    """
    kind = engine.VectorStorageDatatype.Turbo16
    try:
        shard.update(engine.UpdateOperation.create_dense_vector(dense_name(length), length, engine.Distance.Cosine, datatype=kind))
    except Exception as error:
        if type(error) is not Exception or "already exists" not in str(error):
            raise


def _create(path: Path) -> engine.EdgeShard:
    # Dense vectors are added by their length when the first one arrives. No graph is ever built: search is exact.
    config = engine.EdgeConfig(
        sparse_vectors={LEXICAL: engine.EdgeSparseVectorParams(modifier=engine.Modifier.Idf)},
        hnsw_config=engine.HnswIndexConfig(m=0, ef_construct=4, full_scan_threshold=10_000, payload_m=0),
    )
    return _with_fields(engine.EdgeShard.create(str(path), config))


def _load(path: Path) -> engine.EdgeShard:
    return _with_fields(engine.EdgeShard.load(str(path)))


def _with_fields(shard: engine.EdgeShard) -> engine.EdgeShard:
    present = shard.info().payload_schema
    for field in INDEXED_FIELDS:
        if field.name not in present:
            shard.update(engine.UpdateOperation.create_field_index(field.name, _schema(field)))
    return shard


def _schema(field: IndexedField) -> engine.KeywordIndexParams | engine.IntegerIndexParams:
    if field.kind in ("tenant", "keyword"):
        return engine.KeywordIndexParams(is_tenant=field.kind == "tenant")
    return engine.IntegerIndexParams(lookup=field.kind == "number", range=field.kind == "range")


def _write(path: Path, text: str) -> None:
    """Writes a small file whole or not at all, and durably."""
    fresh = path.with_suffix(".new")
    with fresh.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
    sync_folder(path.parent)
