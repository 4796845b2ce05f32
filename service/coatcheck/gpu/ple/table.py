"""A per-layer-embedding table: which tensors make it up, checked whole from a checkpoint's headers, then copied row by row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from coatcheck.domain.errors import GpuRefused
from coatcheck.gpu.ple.names import EXPECTED, PieceName, piece_of

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True)
class Header:
    """What a checkpoint says of a tensor ahead of its bytes; ``dtype`` in safetensors' words (BF16, F8_E4M3, ...)."""

    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True, slots=True)
class TableShape:
    """The table as the model's configuration has it. ``shards``: how many a numbered checkpoint cuts it into."""

    rows: int
    width: int
    dtype: str
    shards: int

    @property
    def shard_rows(self) -> int:
        """Of every shard but the last, which has what is left."""
        return -(-self.rows // self.shards)


@dataclass(frozen=True, slots=True)
class Partition:
    """The rows that this process holds, from ``start`` to before ``end``."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class TablePlan:
    """Where each tensor of the table stands in it, and the names that are others' business."""

    shape: TableShape
    first_rows: Mapping[str, int]
    others: tuple[str, ...]


def plan_table(headers: Mapping[str, Header], shape: TableShape) -> TablePlan:
    """Raises GpuRefused unless the headers name every row of the table exactly once, in its width and its type."""
    if shape.rows < 1 or shape.width < 1 or shape.shards < 1 or (shape.shards - 1) * shape.shard_rows >= shape.rows:
        raise GpuRefused(f"A table of {shape.rows} rows of {shape.width} cannot be cut into {shape.shards} shards.")
    pieces, others = [], []
    for name in headers:
        piece = piece_of(name)
        if piece is None:
            others.append(name)
        else:
            pieces.append(piece)
    first_rows = _complete(pieces) if any(piece.shard is None for piece in pieces) else _numbered(pieces, shape)
    for name, first_row in first_rows.items():
        complete = len(first_rows) == 1 and shape.shards != 1
        rows = shape.rows if complete else min(shape.shard_rows, shape.rows - first_row)
        _check(name, headers[name], Header((rows, shape.width), shape.dtype))
    return TablePlan(shape, first_rows, tuple(others))


def copy_piece(plan: TablePlan, name: str, source: Tensor, target: Tensor, partition: Partition) -> int:
    """Copies what of this tensor lies in the partition; how many rows that is. ``target`` starts with the partition's first row.

    Raises GpuRefused, before a byte is copied, where the tensor is not what its header said, or the target has no room for it.
    """
    if not 0 <= partition.start <= partition.end <= plan.shape.rows:
        raise GpuRefused(f"The rows {partition.start} to {partition.end} are no part of a table of {plan.shape.rows}.")
    if name not in plan.first_rows:
        raise GpuRefused(f"The tensor {name!r} is no piece of the table.")
    first = plan.first_rows[name]
    rows = plan.shape.rows if len(plan.first_rows) == 1 else min(plan.shape.shard_rows, plan.shape.rows - first)
    if tuple(source.shape) != (rows, plan.shape.width):
        raise GpuRefused(
            f"The tensor {name!r} has the shape {tuple(source.shape)}, and its header said {(rows, plan.shape.width)}."
        )
    if source.dtype != target.dtype:
        raise GpuRefused(f"The tensor {name!r} is {source.dtype}, and the table is {target.dtype}: a copy would convert it.")
    if target.shape[0] < partition.end - partition.start or tuple(target.shape[1:]) != (plan.shape.width,):
        raise GpuRefused(f"A table of the shape {tuple(target.shape)} has no room for rows {partition.start} to {partition.end}.")
    begin, end = max(first, partition.start), min(first + rows, partition.end)
    if begin >= end:
        return 0
    target[begin - partition.start : end - partition.start].copy_(source[begin - first : end - first])
    return end - begin


def _complete(pieces: list[PieceName]) -> dict[str, int]:
    if len(pieces) != 1:
        names = ", ".join(repr(piece.name) for piece in pieces[:4])
        raise GpuRefused(f"A complete table and other pieces of it stand in one checkpoint: {names}.")
    return {pieces[0].name: 0}


def _numbered(pieces: list[PieceName], shape: TableShape) -> dict[str, int]:
    by_number: dict[int, str] = {}
    for piece in pieces:
        number = piece.shard or 0
        if number in by_number:
            raise GpuRefused(f"Two tensors are shard {number} of the table: {by_number[number]!r} and {piece.name!r}.")
        by_number[number] = piece.name
    missing = [number for number in range(shape.shards) if number not in by_number]
    beyond = sorted(number for number in by_number if number >= shape.shards)
    if missing or beyond:
        found = f"{len(by_number)} of {shape.shards} shards are there"
        which = f"missing, among others: {missing[:4]}" if missing else f"not expected: {beyond[:4]}"
        raise GpuRefused(f"{found}; {which}. Expected are {' or '.join(EXPECTED)}.")
    return {by_number[number]: number * shape.shard_rows for number in range(shape.shards)}


def _check(name: str, found: Header, expected: Header) -> None:
    if found != expected:
        raise GpuRefused(
            f"The tensor {name!r} is {found.dtype} of the shape {found.shape}; the configuration says {expected.dtype} of "
            f"{expected.shape}."
        )
