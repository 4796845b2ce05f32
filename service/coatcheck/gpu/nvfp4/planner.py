"""How a hybrid model's cache is cut into pages: what the backend allocates is what the planner counts, packed bytes and all.

One page size serves every kind of layer. A full-attention layer fills its page with whole tokens; a linear-attention layer keeps
its recurrent state in one, padded. So a page is the least multiple of every attention layer's ``align x bytes per token`` that
holds the largest state. With one kind of attention that is vLLM's own rule (0.32 and 0.33 were asked; docs/gpu.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from coatcheck.domain.errors import GpuRefused
from coatcheck.gpu.nvfp4.layout import VectorLayout

GIB = 1024**3
ALIGN_TOKENS = 16
"""Tokens that a kernel's block holds at least, so that a page is made of whole blocks."""


class KvFormat(StrEnum):
    """How a key or value vector is kept."""

    BF16 = "bf16"
    FP8 = "fp8"
    NVFP4 = "nvfp4"

    def vector_bytes(self, head_size: int) -> int:
        if head_size < 1:
            raise GpuRefused(f"A head size of {head_size} is no size.")
        if self is KvFormat.NVFP4:
            return VectorLayout(head_size).size_bytes
        return head_size * (2 if self is KvFormat.BF16 else 1)


@dataclass(frozen=True, slots=True)
class TokenLayers:
    """Layers that keep something for each token: full attention, an indexer, a draft model's attention."""

    name: str
    layers: int
    bytes_per_token: int
    """In one layer."""

    def __post_init__(self) -> None:
        if self.layers < 1 or self.bytes_per_token < 1:
            raise GpuRefused(f"{self.name}: {self.layers} layers of {self.bytes_per_token} bytes per token keep nothing.")


@dataclass(frozen=True, slots=True)
class StateLayers:
    """Layers that keep one state for each sequence, however long it is: linear attention."""

    name: str
    layers: int
    state_bytes: int
    """In one layer."""

    def __post_init__(self) -> None:
        if self.layers < 1 or self.state_bytes < 1:
            raise GpuRefused(f"{self.name}: {self.layers} layers of {self.state_bytes} bytes of state keep nothing.")


@dataclass(frozen=True, slots=True)
class Plan:
    """One page size, and how many tokens each attention layer has in a page."""

    tokens: tuple[TokenLayers, ...]
    states: tuple[StateLayers, ...]
    page_bytes: int

    @property
    def block_tokens(self) -> tuple[int, ...]:
        """By kind of attention layer, in their order."""
        return tuple(self.page_bytes // kind.bytes_per_token for kind in self.tokens)

    @property
    def padding_bytes(self) -> int:
        """Of a page with the largest state; 0 where there is none."""
        return self.page_bytes - max((kind.state_bytes for kind in self.states), default=self.page_bytes)

    @property
    def shortest_prefix_hit(self) -> int:
        """Tokens that two prompts must share before the second finds any of the first's: hits come in whole blocks of every kind.

        The second prompt is at least one token longer: its last token is computed in any case.
        """
        return math.lcm(*self.block_tokens)

    @property
    def bytes_per_token(self) -> int:
        """Of all attention layers, without states and padding."""
        return sum(kind.layers * kind.bytes_per_token for kind in self.tokens)

    @property
    def tokens_per_gib(self) -> int:
        return GIB // self.bytes_per_token

    def blocks(self, memory_bytes: int) -> int:
        """A block is a page in each layer of a group; groups are of one size and take turns in the pool's blocks."""
        return memory_bytes // (self._group_layers * self.page_bytes)

    def blocks_of(self, length: int) -> int:
        """That a sequence of this many tokens holds; its states take one a group."""
        size = self._group_layers
        held = sum(
            math.ceil(kind.layers / size) * math.ceil(length / tokens)
            for kind, tokens in zip(self.tokens, self.block_tokens, strict=True)
        )
        return held + sum(math.ceil(kind.layers / size) for kind in self.states)

    def pool_tokens(self, memory_bytes: int, length: int) -> int:
        """Tokens of sequences of this length that the memory holds, as servers report their pools: a part of one counts."""
        return self.blocks(memory_bytes) * length // self.blocks_of(length)

    @property
    def _group_layers(self) -> int:
        return min([kind.layers for kind in self.tokens] + [kind.layers for kind in self.states])


def full_attention(name: str, layers: int, kv_heads: int, head_size: int, kind: KvFormat) -> TokenLayers:
    """Keys and values of every KV head."""
    if kv_heads < 1:
        raise GpuRefused(f"{name}: {kv_heads} KV heads keep nothing.")
    return TokenLayers(name, layers, 2 * kv_heads * kind.vector_bytes(head_size))


def gated_delta_net(
    name: str, layers: int, key_heads: int, value_heads: int, key_size: int = 128, value_size: int = 128, *,
    convolution: int = 4, convolution_element_bytes: int = 2, state_element_bytes: int = 4,
) -> StateLayers:  # fmt: skip
    """A gated delta net's state: what its convolution still needs (BF16), and a matrix for each value head (float32)."""
    channels = 2 * key_heads * key_size + value_heads * value_size
    kept = (convolution - 1) * channels * convolution_element_bytes
    return StateLayers(name, layers, kept + value_heads * key_size * value_size * state_element_bytes)


def plan(
    tokens: Sequence[TokenLayers],
    states: Sequence[StateLayers] = (),
    block_tokens: int | None = None,
    align: int = ALIGN_TOKENS,
) -> Plan:
    """The smallest page that all layers can use, or the one that ``block_tokens`` of the widest attention layer make.

    Raises GpuRefused where a layer cannot use the page: a state that does not fit in, tokens that do not fill it.
    """
    if not tokens:
        raise GpuRefused("A plan needs a layer that keeps tokens.")
    if align < 1:
        raise GpuRefused(f"Tokens cannot be aligned to {align}.")
    unit = math.lcm(*(align * kind.bytes_per_token for kind in tokens))
    largest = max((kind.state_bytes for kind in states), default=1)
    fitting = Plan(tuple(tokens), tuple(states), unit * math.ceil(largest / unit))
    if block_tokens is None:
        return fitting
    widest = max(tokens, key=lambda kind: kind.bytes_per_token)
    asked = Plan(tuple(tokens), tuple(states), block_tokens * widest.bytes_per_token)
    would_do = f"{fitting.page_bytes // widest.bytes_per_token:,} tokens would do"
    for state in states:
        if state.state_bytes > asked.page_bytes:
            made = f"{block_tokens:,} tokens x {widest.bytes_per_token:,} bytes = {asked.page_bytes:,} bytes"
            raise GpuRefused(f"{state.name}: its state of {state.state_bytes:,} bytes does not fit into {made}; {would_do}.")
    for kind in tokens:
        if asked.page_bytes < 1 or asked.page_bytes % (align * kind.bytes_per_token):
            whole = f"whole blocks of {align} tokens x {kind.bytes_per_token:,} bytes"
            raise GpuRefused(f"{kind.name}: {whole} do not fill a page of {asked.page_bytes:,} bytes; {would_do}.")
    return asked
