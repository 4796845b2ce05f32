"""Names of a per-layer-embedding table's tensors: numbered shards or the complete table, under the long or the short name.

``...ngram_embedding.shard_12.weight`` is a shard, ``...ngram_embedding.shard_.weight`` (an index that is empty) the complete table;
either may come without all that stands before ``shard_``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from coatcheck.domain.errors import GpuRefused

EXPECTED = ("ngram_embedding.shard_<number>.weight", "ngram_embedding.shard_.weight", "shard_<number>.weight", "shard_.weight")
BESIDE = frozenset({"weight_scale"})
"""What stands beside the table under its name and is loaded as any other weight."""
_OF_THE_TABLE = re.compile(r"(?:(?:.*\.)?ngram_embedding\.|(?=shard_[^.]*\.))(?P<rest>.+)")
_PIECE = re.compile(r"shard_(?P<number>[0-9]*)\.weight")


@dataclass(frozen=True, slots=True)
class PieceName:
    """One tensor of the table. ``shard`` is None for the complete one."""

    name: str
    shard: int | None


def piece_of(name: str) -> PieceName | None:
    """The piece that a tensor's name stands for, or None where it is no part of a table.

    Raises GpuRefused for a name under the table that is none of those expected: it may be a piece of a layout that nobody knows
    here, and would be missing without a word.
    """
    of_the_table = _OF_THE_TABLE.fullmatch(name)
    if of_the_table is None or of_the_table["rest"] in BESIDE:
        return None
    piece = recognised(name)
    if piece is None:
        raise GpuRefused(f"The tensor {name!r} stands under the embedding table and is none of {', '.join(EXPECTED)}.")
    return piece


def recognised(name: str) -> PieceName | None:
    """As ``piece_of``, for whoever leaves what stands under the table in another layout to somebody else: None for that too."""
    of_the_table = _OF_THE_TABLE.fullmatch(name)
    piece = _PIECE.fullmatch(of_the_table["rest"]) if of_the_table else None
    if piece is None:
        return None
    return PieceName(name, int(piece["number"]) if piece["number"] else None)
