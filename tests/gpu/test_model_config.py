"""A model's configuration as the planner reads it, and what it refuses rather than leave layers out."""

from __future__ import annotations

from typing import Any

import pytest

from coatcheck.domain.errors import GpuRefused
from coatcheck.gpu.nvfp4 import flash_next
from coatcheck.gpu.nvfp4.model_config import planned
from coatcheck.gpu.nvfp4.planner import KvFormat

HYBRID: dict[str, Any] = {
    "num_hidden_layers": 48, "full_attention_interval": 4, "num_key_value_heads": 2, "head_dim": 256, "linear_num_key_heads": 16,
    "linear_num_value_heads": 48, "linear_key_head_dim": 128, "linear_value_head_dim": 128, "linear_conv_kernel_dim": 4,
}  # fmt: skip


def without(name: str) -> dict[str, Any]:
    return {key: value for key, value in HYBRID.items() if key != name}


@pytest.mark.parametrize("kind", KvFormat)
def test_the_article_s_model_is_read_as_it_is_described(kind: KvFormat) -> None:
    found, described = planned(HYBRID, kind), flash_next.planned(kind)

    assert (found.page_bytes, found.block_tokens, found.bytes_per_token) == (
        described.page_bytes, described.block_tokens, described.bytes_per_token,
    )  # fmt: skip
    assert found.blocks_of(10_000) == described.blocks_of(10_000)


def test_listed_layers_and_a_text_part_say_the_same() -> None:
    listed = {**HYBRID, "layer_types": (["linear_attention"] * 3 + ["full_attention"]) * 12}

    assert planned({"text_config": listed}, KvFormat.NVFP4) == planned(HYBRID, KvFormat.NVFP4)


def test_a_model_without_linear_layers_has_no_state_and_may_say_its_heads_by_its_width() -> None:
    found = planned(
        {"num_hidden_layers": 2, "num_key_value_heads": 4, "hidden_size": 1_024, "num_attention_heads": 8}, KvFormat.FP8
    )

    assert found.states == ()
    assert found.tokens[0].bytes_per_token == 2 * 4 * 128


def test_a_state_in_bfloat16_is_half_as_large_but_for_the_convolution() -> None:
    wide, narrow = (planned({**HYBRID, "mamba_ssm_dtype": kind}, KvFormat.NVFP4).states[0] for kind in ("float32", "bfloat16"))

    assert wide.state_bytes - narrow.state_bytes == 48 * 128 * 128 * 2


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ([], "no JSON object"),
        ({"text_config": 3}, "text_config"),
        *((without(name), name) for name in HYBRID if name not in ("head_dim", "full_attention_interval")),
        (without("head_dim"), "hidden_size"),
        ({**HYBRID, "num_key_value_heads": "2"}, "num_key_value_heads"),
        ({**HYBRID, "num_hidden_layers": True}, "num_hidden_layers"),
        ({**HYBRID, "full_attention_interval": 0}, "full_attention_interval"),
        ({**HYBRID, "full_attention_interval": 100}, "no layer with full attention"),
        ({**HYBRID, "layer_types": ["full_attention"]}, "layer_types"),
        ({**HYBRID, "layer_types": ["full_attention", "sliding_attention"] * 24}, "sliding_attention"),
        ({**HYBRID, "mamba_ssm_dtype": "int8"}, "mamba_ssm_dtype"),
    ],
    ids=lambda given: given if isinstance(given, str) else None,
)
def test_what_cannot_be_planned_is_refused_by_name(config: object, said: str) -> None:
    with pytest.raises(GpuRefused, match=said):
        planned(config, KvFormat.NVFP4)
