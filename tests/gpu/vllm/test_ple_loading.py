"""A complete table goes to vLLM's loader as the shards that it knows; everything else goes as it came."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from coatcheck.domain.errors import GpuRefused
from coatcheck.gpu.vllm import plugin
from tests.gpu.vllm.standin import PLE, PLE_SOURCE, write

ROWS, WIDTH, SHARDS = 10, 4, 3
TABLE = np.arange(ROWS * WIDTH, dtype=np.float32).reshape(ROWS, WIDTH)
"""NumPy's arrays do here: shapes, types and slices are all that is asked of a tensor."""
WRONG = {"rows": TABLE[:9], "width": TABLE[:, :3], "type": TABLE.astype(np.float16), "flat": TABLE.reshape(-1)}


@pytest.fixture
def holder(installed: Path) -> Any:
    """vLLM's class, changed, with a table of 10 rows in 3 shards."""
    write(installed, {PLE: PLE_SOURCE})
    plugin.register()
    made = importlib.import_module(PLE).Qwen4ExpNGramEmbedding()
    made.split_ngram_parts = SHARDS
    made.ngram_embedding = SimpleNamespace(org_vocab_size=ROWS, embedding_dim=WIDTH, weight=np.empty((5, WIDTH), np.float32))
    return made


@pytest.mark.parametrize("name", ["ngram_embedding.shard_.weight", "shard_.weight", "model.ple.ngram_embedding.shard_.weight"])
def test_a_complete_table_is_loaded_as_numbered_shards_without_a_copy(name: str, holder: Any) -> None:
    other = np.zeros(2)

    loaded = holder.load_weights(iter([("layer_multipliers", other), (name, TABLE)]))

    assert loaded == {"layer_multipliers", *(f"ngram_embedding.shard_{number}.weight" for number in range(SHARDS))}
    shards = [weight for name, weight in holder.loaded if "shard_" in name]
    assert [len(shard) for shard in shards] == [4, 4, 2]
    assert np.array_equal(np.concatenate(shards), TABLE)
    assert all(np.shares_memory(shard, TABLE) for shard in shards)
    assert holder.loaded[0][1] is other


def test_numbered_shards_go_as_they_came_under_the_name_that_vllm_knows(holder: Any) -> None:
    holder.load_weights([("ngram_embedding.shard_0.weight", TABLE[:4]), ("shard_1.weight", TABLE[4:8])])

    assert [name for name, _ in holder.loaded] == ["ngram_embedding.shard_0.weight", "ngram_embedding.shard_1.weight"]


def test_what_else_stands_under_the_table_is_left_to_vllm(holder: Any) -> None:
    names = [
        "ngram_embedding.weight_scale",
        "ngram_embedding.shard_3.weight_packed",
        "ngram_embedding.shard_x.weight",
        "conv.weight",
    ]

    holder.load_weights([(name, TABLE) for name in names])

    assert [name for name, _ in holder.loaded] == names


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_a_complete_table_of_another_shape_or_type_is_refused_before_any_of_it_goes_on(wrong: Any, holder: Any) -> None:
    with pytest.raises(GpuRefused, match="the configuration says"):
        holder.load_weights([("shard_.weight", wrong)])

    assert not hasattr(holder, "loaded")


@pytest.mark.parametrize("first", ["shard_.weight", "shard_1.weight"])
def test_a_complete_table_beside_other_pieces_is_refused(first: str, holder: Any) -> None:
    second = "shard_1.weight" if first == "shard_.weight" else "shard_.weight"

    with pytest.raises(GpuRefused, match="other pieces"):
        holder.load_weights([(first, TABLE), (second, TABLE)])


def test_a_table_smaller_than_its_shards_is_cut_into_those_that_have_rows(holder: Any) -> None:
    holder.split_ngram_parts = 64

    holder.load_weights([("shard_.weight", TABLE)])

    assert [len(weight) for _, weight in holder.loaded] == [1] * ROWS
