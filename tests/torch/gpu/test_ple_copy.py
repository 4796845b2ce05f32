"""Rows of a per-layer-embedding table reach the partition that holds them, whatever the checkpoint is cut into."""

from __future__ import annotations

import pytest
import torch

from coatcheck.domain.errors import GpuRefused
from coatcheck.gpu.ple.table import Header, Partition, TableShape, copy_piece, plan_table

ROWS, WIDTH = 10, 4
SHAPE = TableShape(ROWS, WIDTH, "BF16", 4)
TABLE = torch.arange(ROWS * WIDTH, dtype=torch.bfloat16).reshape(ROWS, WIDTH)
PIECES = {
    "numbered": {f"ngram_embedding.shard_{number}.weight": TABLE[3 * number : 3 * number + 3] for number in range(4)},
    "complete": {"shard_.weight": TABLE},
}


@pytest.mark.parametrize("partition", [(0, 10), (0, 5), (5, 10), (2, 4), (3, 6), (9, 10), (4, 4)], ids=str)
@pytest.mark.parametrize("layout", PIECES)
def test_a_partition_gets_its_own_rows_and_nothing_beyond_them(layout: str, partition: tuple[int, int]) -> None:
    start, end = partition
    pieces = PIECES[layout]
    plan = plan_table({name: Header(tuple(piece.shape), "BF16") for name, piece in pieces.items()}, SHAPE)
    target = torch.full((end - start + 2, WIDTH), -1, dtype=torch.bfloat16)
    """Padded, as a partition's table may be."""

    copied = sum(copy_piece(plan, name, piece, target, Partition(start, end)) for name, piece in pieces.items())

    assert copied == end - start
    assert torch.equal(target[: end - start], TABLE[start:end])
    assert bool((target[end - start :] == -1).all())


@pytest.mark.parametrize(
    ("source", "target", "partition"),
    [
        pytest.param(TABLE[:9], torch.zeros(10, 4, dtype=torch.bfloat16), Partition(0, 10), id="not what the header said"),
        pytest.param(TABLE.float(), torch.zeros(10, 4, dtype=torch.bfloat16), Partition(0, 10), id="would be converted"),
        pytest.param(TABLE, torch.zeros(9, 4, dtype=torch.bfloat16), Partition(0, 10), id="no room"),
        pytest.param(TABLE, torch.zeros(10, 5, dtype=torch.bfloat16), Partition(0, 10), id="another width"),
        pytest.param(TABLE, torch.zeros(11, 4, dtype=torch.bfloat16), Partition(0, 11), id="beyond the table"),
        pytest.param(TABLE, torch.zeros(10, 4, dtype=torch.bfloat16), Partition(5, 3), id="backwards"),
    ],
)
def test_what_does_not_fit_is_refused_and_nothing_was_copied(
    source: torch.Tensor, target: torch.Tensor, partition: Partition
) -> None:
    plan = plan_table({"shard_.weight": Header((10, 4), "BF16")}, SHAPE)

    with pytest.raises(GpuRefused):
        copy_piece(plan, "shard_.weight", source, target, partition)

    assert bool((target == 0).all())


def test_a_tensor_that_is_no_piece_is_refused() -> None:
    plan = plan_table({"shard_.weight": Header((10, 4), "BF16")}, SHAPE)

    with pytest.raises(GpuRefused, match="no piece"):
        copy_piece(plan, "norm.weight", TABLE, torch.zeros(10, 4, dtype=torch.bfloat16), Partition(0, 10))
