"""Which tensors make up a per-layer-embedding table: known from names, shapes and types, before a byte is copied."""

from __future__ import annotations

import pytest

from coatcheck.domain.errors import GpuRefused
from coatcheck.gpu.ple.names import piece_of
from coatcheck.gpu.ple.table import Header, TableShape, plan_table

LONG = "model.language_model.layers.1.ple.ple_embedding.ngram_embedding."
SHAPE = TableShape(rows=10, width=4, dtype="F8_E4M3", shards=4)
"""Shards of 3, 3, 3 and 1 rows."""
BESIDE = {f"{LONG}weight_scale": Header((1,), "F32"), "model.language_model.norm.weight": Header((4,), "BF16")}


def numbered(prefix: str = LONG) -> dict[str, Header]:
    return {f"{prefix}shard_{number}.weight": Header((rows, 4), "F8_E4M3") for number, rows in enumerate((3, 3, 3, 1))}


def complete(prefix: str = LONG) -> dict[str, Header]:
    return {f"{prefix}shard_.weight": Header((10, 4), "F8_E4M3")}


@pytest.mark.parametrize("prefix", [LONG, "ngram_embedding.", ""], ids=["whole path", "long", "short"])
def test_numbered_shards_stand_one_after_the_other_under_either_name(prefix: str) -> None:
    plan = plan_table(numbered(prefix) | BESIDE, SHAPE)

    assert list(plan.first_rows.values()) == [0, 3, 6, 9]
    assert plan.others == tuple(BESIDE)


@pytest.mark.parametrize("prefix", [LONG, "ngram_embedding.", ""], ids=["whole path", "long", "short"])
def test_a_complete_table_is_the_tensor_whose_index_is_empty(prefix: str) -> None:
    plan = plan_table(complete(prefix) | BESIDE, SHAPE)

    assert plan.first_rows == {f"{prefix}shard_.weight": 0}
    assert plan.others == tuple(BESIDE)


def test_shards_are_ordered_by_number_and_not_by_name() -> None:
    shape = TableShape(rows=12, width=1, dtype="BF16", shards=12)

    plan = plan_table({f"shard_{number}.weight": Header((1, 1), "BF16") for number in sorted(range(12), key=str)}, shape)

    assert plan.first_rows["shard_10.weight"] == 10


@pytest.mark.parametrize(
    ("headers", "says"),
    [
        pytest.param({}, "0 of 4 shards", id="no table"),
        pytest.param(
            {name: header for name, header in numbered().items() if "shard_2" not in name}, "missing", id="a shard is missing"
        ),
        pytest.param(numbered() | {f"{LONG}shard_4.weight": Header((3, 4), "F8_E4M3")}, "not expected", id="a shard too many"),
        pytest.param(numbered() | complete(), "A complete table and other", id="both layouts"),
        pytest.param(complete() | complete(""), "A complete table and other", id="two complete tables"),
        pytest.param(
            numbered() | {"shard_1.weight": Header((3, 4), "F8_E4M3")}, "Two tensors are shard 1", id="twice, by both names"
        ),
        pytest.param(numbered() | {f"{LONG}shard_01.weight": Header((3, 4), "F8_E4M3")}, "Two tensors are", id="twice, by a zero"),
        pytest.param({f"{LONG}shard_.weight": Header((9, 4), "F8_E4M3")}, "of the shape", id="complete, rows"),
        pytest.param({f"{LONG}shard_.weight": Header((4, 10), "F8_E4M3")}, "of the shape", id="complete, transposed"),
        pytest.param({f"{LONG}shard_.weight": Header((40,), "F8_E4M3")}, "of the shape", id="complete, flat"),
        pytest.param({f"{LONG}shard_.weight": Header((10, 4), "BF16")}, "is BF16", id="complete, type"),
        pytest.param(numbered() | {f"{LONG}shard_3.weight": Header((3, 4), "F8_E4M3")}, "of the shape", id="last shard, rows"),
        pytest.param(numbered() | {f"{LONG}shard_a.weight": Header((3, 4), "F8_E4M3")}, "is none of", id="unknown index"),
        pytest.param(numbered() | {f"{LONG}blocks.3": Header((3, 4), "F8_E4M3")}, "is none of", id="unknown layout"),
        pytest.param(numbered() | {"shard_3.bias": Header((3, 4), "F8_E4M3")}, "is none of", id="unknown short name"),
    ],
)
def test_a_checkpoint_that_is_not_the_table_of_the_configuration_is_refused(headers: dict[str, Header], says: str) -> None:
    with pytest.raises(GpuRefused, match=says):
        plan_table(headers, SHAPE)


def test_an_unknown_name_is_refused_with_the_names_that_were_expected() -> None:
    with pytest.raises(GpuRefused, match=r"ngram_embedding\.shard_<number>\.weight, ngram_embedding\.shard_\.weight, shard_"):
        piece_of("ngram_embedding.table.weight")


@pytest.mark.parametrize("name", ["model.layers.3.mlp.shard_3.weight", "model.embed_tokens.weight", "shard", "my_shard_3.weight"])
def test_other_weights_are_nobodys_pieces(name: str) -> None:
    assert piece_of(name) is None


@pytest.mark.parametrize("shape", [TableShape(5, 4, "BF16", 4), TableShape(0, 4, "BF16", 1), TableShape(4, 4, "BF16", 0)])
def test_a_table_that_cannot_be_cut_so_is_refused(shape: TableShape) -> None:
    with pytest.raises(GpuRefused):
        plan_table({}, shape)
