"""Per-layer embeddings: a table that a checkpoint holds whole, handed to vLLM's loader as the numbered shards that it knows.

vLLM's loader (``Qwen4ExpNGramEmbedding.load_weights``) takes ``ngram_embedding.shard_12.weight``. Under an empty index, or without
what stands before ``shard_``, it takes the table for some other weight and refuses to load. Nothing is copied here: the shards are
views.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Protocol

from coatcheck.domain.errors import GpuRefused
from coatcheck.gpu.ple.names import recognised
from coatcheck.gpu.ple.table import Header, TableShape, plan_table
from coatcheck.gpu.vllm.parts import Outcome, Part, State

if TYPE_CHECKING:
    from torch import Tensor

CLASS = "Qwen4ExpNGramEmbedding"
LONG_NAME = "ngram_embedding.shard_{}.weight"
"""The one that vLLM's loader knows."""


class _Table(Protocol):
    org_vocab_size: int
    embedding_dim: int
    weight: Tensor


class _Holder(Protocol):
    ngram_embedding: _Table
    split_ngram_parts: int


def part() -> Part:
    """Changed wherever a build of vLLM has the class."""
    files = [f"{where}.{name}" for where in ("nvidia", "amd", "cpu") for name in ("ple_layer", "ngram_embedding")]
    return Part(
        "ple-loading",
        "loads a per-layer-embedding table that its checkpoint holds whole",
        tuple(f"vllm.models.qwen4_exp.{file}" for file in files),
        _apply,
    )


def _apply(module: ModuleType) -> Outcome:
    found = getattr(module, CLASS, None)
    original = getattr(found, "load_weights", None)
    if not isinstance(found, type) or not callable(original):
        return Outcome(State.UNSUITABLE, f"no {CLASS} with a load_weights")
    if found.__module__ != module.__name__:
        return Outcome(State.NOT_NEEDED, f"its {CLASS} is {found.__module__}'s")
    if not hasattr(original, "__wrapped__"):

        @functools.wraps(original)
        def load_weights(holder: _Holder, weights: Iterable[tuple[str, Tensor]]) -> object:
            return original(holder, as_numbered(holder, weights))

        setattr(found, "load_weights", load_weights)  # noqa: B010 - a type checker knows no such attribute
    return Outcome(State.APPLIED, "a complete table is loaded as its shards")


def as_numbered(holder: _Holder, weights: Iterable[tuple[str, Tensor]]) -> Iterator[tuple[str, Tensor]]:
    """The same weights, the table's under the names that vLLM knows, a complete one in views of its rows.

    Raises GpuRefused, before any of it goes on, for a complete table of another shape or type than the model's, and for one that
    comes with other pieces.
    """
    complete: str | None = None
    numbered: str | None = None
    for name, weight in weights:
        piece = recognised(name)
        if piece is None:
            yield name, weight
            continue
        if complete is not None or (piece.shard is None and numbered is not None):
            raise GpuRefused(
                f"A complete table and other pieces of it stand in one checkpoint: {complete or numbered!r}, {name!r}."
            )
        if piece.shard is None:
            complete = name
            yield from _cut(holder, name, weight)
        else:
            numbered = name
            yield LONG_NAME.format(piece.shard), weight


def _cut(holder: _Holder, name: str, weight: Tensor) -> Iterator[tuple[str, Tensor]]:
    table, shards = holder.ngram_embedding, holder.split_ngram_parts
    shape = TableShape(table.org_vocab_size, table.embedding_dim, str(table.weight.dtype), 1)
    plan_table({name: Header(tuple(weight.shape), str(weight.dtype))}, shape)
    step = -(-shape.rows // shards)
    for first in range(0, shape.rows, step):
        yield LONG_NAME.format(first // step), weight[first : first + step]
