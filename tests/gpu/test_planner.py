"""The cache planner: the article's hybrid page, vLLM's answers, mixtures, and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck.domain.errors import GpuRefused
from coatcheck.gpu.nvfp4 import flash_next
from coatcheck.gpu.nvfp4.planner import GIB, KvFormat, StateLayers, TokenLayers, full_attention, gated_delta_net, plan

STATE = gated_delta_net("gated delta net", 36, 16, 48)
PACKED = full_attention("full attention", 12, 2, 256, KvFormat.NVFP4)


@pytest.mark.parametrize(("kind", "size"), [(KvFormat.BF16, 2_048), (KvFormat.FP8, 1_024), (KvFormat.NVFP4, 576)])
def test_a_token_of_two_heads_of_256_takes_the_article_s_bytes(kind: KvFormat, size: int) -> None:
    assert full_attention("full attention", 1, 2, 256, kind).bytes_per_token == size


def test_the_article_s_page_holds_5568_packed_tokens_and_nothing_is_padded() -> None:
    found = plan([PACKED], [STATE])

    assert STATE.state_bytes == 3_207_168
    assert found.page_bytes == 3_207_168
    assert found.block_tokens == (5_568,)
    assert found.padding_bytes == 0


def test_the_article_s_failed_page_is_refused_with_its_figures_and_what_would_do() -> None:
    with pytest.raises(GpuRefused) as refused:
        plan([PACKED], [STATE], block_tokens=3_136)

    for figure in ("gated delta net", "3,207,168", "3,136 tokens x 576 bytes = 1,806,336", "5,568 tokens would do"):
        assert figure in refused.value.detail


@pytest.mark.parametrize(
    ("kind", "tokens", "page", "padding", "block_bytes", "blocks"),
    [
        (KvFormat.BF16, 1_568, 3_211_264, 4_096, 38_535_168, 1_114),
        (KvFormat.FP8, 3_136, 3_211_264, 4_096, 38_535_168, 1_114),
        (KvFormat.NVFP4, 5_568, 3_207_168, 0, 38_486_016, 1_115),
    ],
)
def test_the_plan_is_vllm_s_on_the_same_state_page(
    kind: KvFormat, tokens: int, page: int, padding: int, block_bytes: int, blocks: int
) -> None:
    """Its answers for 36 + 12 layers and 40 GiB (0.32 and 0.33, measured on the CPU)."""
    found = flash_next.planned(kind)

    assert (found.block_tokens, found.page_bytes, found.padding_bytes) == ((tokens,), page, padding)
    assert found.blocks(40 * GIB) == blocks == 40 * GIB // block_bytes


def test_the_shortest_prefix_hit_is_a_whole_block_of_every_kind() -> None:
    draft = full_attention("draft", 12, 2, 256, KvFormat.FP8)

    assert plan([PACKED], [STATE]).shortest_prefix_hit == 5_568
    assert plan([PACKED, draft], [STATE]).block_tokens == (5_632, 3_168)
    assert plan([PACKED, draft], [STATE]).shortest_prefix_hit == 9 * 5_632 == 16 * 3_168


def test_formats_are_compared_at_equal_bytes() -> None:
    per_gib = {kind: flash_next.planned(kind).tokens_per_gib for kind in KvFormat}

    assert per_gib == {KvFormat.BF16: 43_690, KvFormat.FP8: 87_381, KvFormat.NVFP4: 155_344}
    assert round(per_gib[KvFormat.NVFP4] / per_gib[KvFormat.BF16], 2) == 3.56
    assert round(per_gib[KvFormat.NVFP4] / per_gib[KvFormat.FP8], 2) == 1.78


def test_the_article_s_pool_ratio_lies_below_the_planned_one_which_lies_below_the_format_s() -> None:
    assert round(flash_next.observed_ratio(), 2) == 2.32
    assert flash_next.observed_ratio() < flash_next.planned_ratio() < 2_048 / 576
    beside = flash_next.bytes_beside(flash_next.observed_ratio())
    assert round((12 * 2_048 + beside) / (12 * 576 + beside), 2) == 2.32


def test_layers_of_several_sizes_share_one_page_that_each_fills() -> None:
    wide = full_attention("draft", 1, 2, 256, KvFormat.BF16)
    narrow = full_attention("other heads", 6, 4, 128, KvFormat.NVFP4)

    found = plan([PACKED, wide, narrow], [STATE, StateLayers("other state", 2, 100_000)])

    assert found.page_bytes >= 3_207_168
    assert all(count % 16 == 0 for count in found.block_tokens)
    used = [count * kind.bytes_per_token for count, kind in zip(found.block_tokens, found.tokens, strict=True)]
    assert used == [found.page_bytes] * 3


def test_a_layer_that_cannot_fill_the_page_is_refused_by_name() -> None:
    wide = full_attention("draft", 1, 2, 256, KvFormat.BF16)

    with pytest.raises(GpuRefused, match=r"full attention: whole blocks of 16 tokens x 576 bytes do not fill a page of 3,211,264"):
        plan([PACKED, wide], [STATE], block_tokens=1_568)


@pytest.mark.parametrize("tokens", [0, -16, 17])
def test_a_block_of_no_whole_kernel_blocks_is_refused(tokens: int) -> None:
    with pytest.raises(GpuRefused, match="do not fill"):
        plan([PACKED], block_tokens=tokens)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: plan([]),
        lambda: plan([PACKED], align=0),
        lambda: TokenLayers("empty", 0, 576),
        lambda: TokenLayers("empty", 1, 0),
        lambda: StateLayers("empty", 1, 0),
        lambda: full_attention("no heads", 1, 0, 256, KvFormat.BF16),
        lambda: full_attention("head size", 1, 2, 250, KvFormat.NVFP4),
        lambda: full_attention("head size", 1, 2, 0, KvFormat.FP8),
    ],
)
def test_what_keeps_nothing_is_refused(wrong: object) -> None:
    assert callable(wrong)
    with pytest.raises(GpuRefused):
        wrong()


def test_without_states_a_page_is_one_kernel_block() -> None:
    found = plan([PACKED])

    assert (found.block_tokens, found.padding_bytes) == ((16,), 0)


@given(
    sizes=st.lists(st.integers(1, 64).map(lambda size: 36 * size), min_size=1, max_size=3),
    state=st.integers(1, 5_000_000),
    align=st.sampled_from([1, 16, 64]),
)
def test_no_smaller_page_would_do(sizes: list[int], state: int, align: int) -> None:
    layers = [TokenLayers(f"kind {number}", 1, size) for number, size in enumerate(sizes)]

    found = plan(layers, [StateLayers("state", 1, state)], align=align)

    step = found.page_bytes
    for kind, count in zip(found.tokens, found.block_tokens, strict=True):
        assert count * kind.bytes_per_token == found.page_bytes
        assert count % align == 0
    assert found.page_bytes >= state
    widest = max(sizes)
    smaller = [count for count in range(align, step // widest, align) if count * widest >= state]
    for count in smaller[:50]:
        with pytest.raises(GpuRefused):
            plan(layers, [StateLayers("state", 1, state)], block_tokens=count, align=align)
