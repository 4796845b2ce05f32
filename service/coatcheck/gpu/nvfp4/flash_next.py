"""The hybrid model of the article on NVFP4 caches, as the planner sees it: 12 full-attention layers among 48.

Its figures are that article's (design and observed pools, one RTX PRO 6000 Blackwell): what it measured, not we.
"""

from __future__ import annotations

from coatcheck.gpu.nvfp4.planner import GIB, KvFormat, Plan, full_attention, gated_delta_net, plan

MAX_LENGTH = 169_984
OBSERVED_POOLS = {KvFormat.BF16: (5.85, 189_904), KvFormat.NVFP4: (5.84, 439_958)}
"""GiB for the cache, and the tokens that the server reported."""


def planned(kind: KvFormat) -> Plan:
    """36 gated delta nets with 16 key and 48 value heads of 128; 12 attention layers with 2 KV heads of 256."""
    return plan([full_attention("full attention", 12, 2, 256, kind)], [gated_delta_net("gated delta net", 36, 16, 48)])


def observed_ratio() -> float:
    """Of tokens in the pool, NVFP4 to BF16."""
    return OBSERVED_POOLS[KvFormat.NVFP4][1] / OBSERVED_POOLS[KvFormat.BF16][1]


def planned_ratio(memory_gib: float = OBSERVED_POOLS[KvFormat.BF16][0]) -> float:
    """The same by our plan, with nothing in the pool but attention and states: an upper bound of what a server can report."""
    memory_bytes = int(memory_gib * GIB)
    pools = [planned(kind).pool_tokens(memory_bytes, MAX_LENGTH) for kind in (KvFormat.NVFP4, KvFormat.BF16)]
    return pools[0] / pools[1]


def bytes_beside(ratio: float) -> float:
    """Bytes per token that keep their size in both formats, which would bring the ratio of attention bytes down to this one."""
    wide, packed = (planned(kind).bytes_per_token for kind in (KvFormat.BF16, KvFormat.NVFP4))
    return (wide - ratio * packed) / (ratio - 1)
