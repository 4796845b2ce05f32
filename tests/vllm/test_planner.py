"""Our planner against vLLM's own, on the article's recurrent state."""

from __future__ import annotations

from typing import Any

import pytest

from coatcheck.gpu.nvfp4 import flash_next
from coatcheck.gpu.nvfp4.planner import KvFormat
from tests.vllm.environment import ask, needs_vllm

pytestmark = needs_vllm


@pytest.fixture(scope="module")
def answers() -> dict[str, Any]:
    found: dict[str, Any] = ask("planner.py")
    return found


def test_the_recurrent_state_has_the_size_that_ours_has(answers: dict[str, Any]) -> None:
    [state] = flash_next.planned(KvFormat.BF16).states

    assert answers["state_bytes"] == state.state_bytes == 3_207_168


def test_the_plugin_finds_that_vllms_own_nvfp4_takes_what_the_planner_counts(answers: dict[str, Any]) -> None:
    assert answers["nvfp4-cache"] == "a token of 2 heads of 256 takes 576 bytes, as the planner counts"


@pytest.mark.parametrize("kind", KvFormat)
def test_blocks_pages_and_padding_are_vllms(kind: KvFormat, answers: dict[str, Any]) -> None:
    ours = flash_next.planned(kind)

    theirs = answers[kind]

    assert theirs["bytes_per_token"] == ours.tokens[0].bytes_per_token
    assert theirs["block_tokens"] == ours.block_tokens[0]
    assert theirs["page_bytes"] == ours.page_bytes
    assert theirs["padded_to"] == (ours.page_bytes if ours.padding_bytes else None)
    assert {KvFormat.BF16: 1_568, KvFormat.FP8: 3_136, KvFormat.NVFP4: 5_568}[kind] == theirs["block_tokens"]
