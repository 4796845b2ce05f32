"""Triton kernels: the writer packs BF16 keys and values into their slots, the reader attends to selected slots as they lie packed.

Shapes and strides are those of ``cache.py``: pages are bytes ``(blocks, 2, page_size, heads, vector)``, keys before values; slot
``s`` is row ``s % page_size`` of block ``s // page_size``. What is outside of ``[0, capacity)`` is no slot: it is neither written
nor read. Each step is ``codec.py``'s, in its order, so that the bytes are the same.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def write_kernel(
    keys, values, slots, pages, capacity, page_size,
    key_token, key_head, value_token, value_head, page_block, page_kind, page_token, page_head,
    key_scale, value_scale,
    GROUPS: tl.constexpr, GROUPS_PADDED: tl.constexpr, SCALE_FLOOR: tl.constexpr,
):  # fmt: skip
    """One program a token and head: two vectors."""
    token, head = tl.program_id(0).to(tl.int64), tl.program_id(1).to(tl.int64)
    slot = tl.load(slots + token)
    written = (slot >= 0) & (slot < capacity)
    slot = tl.where(written, slot, 0).to(tl.int32)
    # A count in the place of a mask: a scalar condition does not combine with a block of them in the interpreter.
    groups = tl.where(written, GROUPS, 0)
    target = _vector_at(pages, slot, page_size, page_block, page_token) + head * page_head
    _pack(keys + token * key_token + head * key_head, target, groups, key_scale, GROUPS, GROUPS_PADDED, SCALE_FLOOR)
    value = values + token * value_token + head * value_head
    _pack(value, target + page_kind, groups, value_scale, GROUPS, GROUPS_PADDED, SCALE_FLOOR)


@triton.jit
def _vector_at(pages, slot, page_size, page_block, page_token):
    """The slot's first byte. The division is the narrow one, the offset is not: caches are larger than 2 GiB."""
    return pages + (slot // page_size).to(tl.int64) * page_block + (slot % page_size).to(tl.int64) * page_token


@triton.jit
def _pack(source, target, groups, global_scale, GROUPS: tl.constexpr, GROUPS_PADDED: tl.constexpr, SCALE_FLOOR: tl.constexpr):
    group = tl.arange(0, GROUPS_PADDED)
    pair = group[:, None] * 8 + tl.arange(0, 8)[None, :]
    within = group < groups
    even = tl.load(source + 2 * pair, mask=within[:, None], other=0.0).to(tl.float32)
    odd = tl.load(source + 2 * pair + 1, mask=within[:, None], other=0.0).to(tl.float32)

    largest = tl.maximum(tl.max(tl.abs(even), axis=1), tl.max(tl.abs(odd), axis=1))
    wanted = tl.minimum(tl.div_rn(largest * global_scale, 6.0), 448.0)
    wanted = tl.where(largest > 0.0, tl.maximum(wanted, SCALE_FLOOR), 0.0)
    scales = wanted.to(tl.float8e4nv)
    rounded = scales.to(tl.float32)
    factors = tl.where(rounded > 0.0, tl.div_rn(global_scale, tl.where(rounded > 0.0, rounded, 1.0)), 0.0)

    packed = _e2m1(even * factors[:, None]) | (_e2m1(odd * factors[:, None]) << 4)
    tl.store(target + pair, packed.to(tl.uint8), mask=within[:, None])
    tl.store(target + GROUPS * 8 + group, scales.to(tl.uint8, bitcast=True), mask=within)


@triton.jit
def _e2m1(value):
    """The nearest code, ties to the even one; what is too large becomes the largest."""
    size = tl.abs(value)
    code = (size > 0.25).to(tl.int32) + (size >= 0.75).to(tl.int32) + (size > 1.25).to(tl.int32) + (size >= 1.75).to(tl.int32)
    code += (size > 2.5).to(tl.int32) + (size >= 3.5).to(tl.int32) + (size > 5.0).to(tl.int32)
    return code | (((value.to(tl.int32, bitcast=True) >> 31) & 1) << 3)


@triton.jit
def read_kernel(
    queries, selected, pages, out, capacity, page_size, selected_count, query_heads,
    query_row, query_head, selected_row, selected_head, out_row, out_head, page_block, page_kind, page_token, page_head,
    score_scale, value_scale,
    HALF: tl.constexpr, HALF_PADDED: tl.constexpr, HEADS_PADDED: tl.constexpr, POSITIONS: tl.constexpr,
):  # fmt: skip
    """One program a query row and KV head, with all query heads that share it. Softmax in float32, in base 2.

    ``score_scale`` holds the softmax scale, log2(e) and the keys' global scale; ``query_heads`` is how many share a KV head.
    """
    row, kv_head = tl.program_id(0).to(tl.int64), tl.program_id(1).to(tl.int64)
    member, byte = tl.arange(0, HEADS_PADDED), tl.arange(0, HALF_PADDED)
    head = kv_head * query_heads + member
    here = (member < query_heads)[:, None] & (byte < HALF)[None, :]
    # Even and odd elements apart, as the low and the high nibbles come: nothing has to be put in turns.
    query = queries + row * query_row + head[:, None] * query_head + 2 * byte[None, :]
    even = tl.load(query, mask=here, other=0.0)
    odd = tl.load(query + 1, mask=here, other=0.0)

    highest = tl.full((HEADS_PADDED,), float("-inf"), tl.float32)
    total = tl.zeros((HEADS_PADDED,), tl.float32)
    low = tl.zeros((HEADS_PADDED, HALF_PADDED), tl.float32)
    high = tl.zeros((HEADS_PADDED, HALF_PADDED), tl.float32)
    for start in tl.range(0, selected_count, POSITIONS):
        position = start + tl.arange(0, POSITIONS)
        picked = selected + row * selected_row + kv_head * selected_head + position
        slot = tl.load(picked, mask=position < selected_count, other=-1)
        valid = (slot >= 0) & (slot < capacity)
        slot = tl.where(valid, slot, 0).to(tl.int32)
        vector = _vector_at(pages, slot, page_size, page_block, page_token) + kv_head * page_head

        key_low, key_high = _unpack(vector, valid, HALF, HALF_PADDED)
        scores = tl.dot(even, tl.trans(key_low.to(tl.bfloat16)))
        scores = tl.dot(odd, tl.trans(key_high.to(tl.bfloat16)), scores)
        scores = tl.where(valid[None, :], scores * score_scale, float("-inf"))
        new_highest = tl.maximum(highest, tl.max(scores, axis=1))
        shift = tl.where(new_highest == float("-inf"), 0.0, new_highest)
        # Weights lie in [0, 1] and decoded values fit into float16 exactly: two bits more than bfloat16 has, and two more again.
        weights = tl.exp2(scores - shift[:, None]).to(tl.float16)
        fade = tl.exp2(highest - shift)
        total = total * fade + tl.sum(weights.to(tl.float32), axis=1)
        value_low, value_high = _unpack(vector + page_kind, valid, HALF, HALF_PADDED)
        low = tl.dot(weights, value_low.to(tl.float16), low * fade[:, None])
        high = tl.dot(weights, value_high.to(tl.float16), high * fade[:, None])
        highest = new_highest

    divisor = tl.where(total > 0.0, total, 1.0)[:, None] * value_scale
    target = out + row * out_row + head[:, None] * out_head + 2 * byte[None, :]
    tl.store(target, (low / divisor).to(out.dtype.element_ty), mask=here)
    tl.store(target + 1, (high / divisor).to(out.dtype.element_ty), mask=here)


@triton.jit
def _unpack(vector, valid, HALF: tl.constexpr, HALF_PADDED: tl.constexpr):
    """The vectors' even and odd elements times their group's scale, in float32 and exact; without the global scale."""
    byte = tl.arange(0, HALF_PADDED)
    mask = valid[:, None] & (byte < HALF)[None, :]
    packed = tl.load(vector[:, None] + byte[None, :], mask=mask, other=0).to(tl.int32)
    scales = tl.load(vector[:, None] + HALF + (byte // 8)[None, :], mask=mask, other=0)
    scales = scales.to(tl.float8e4nv, bitcast=True).to(tl.float32)
    return _e2m1_value(packed & 15) * scales, _e2m1_value(packed >> 4) * scales


@triton.jit
def _e2m1_value(code):
    """0, 0.5, 1, 1.5, 2, 3, 4, 6 in three straight pieces, and the sign."""
    size = (code & 7).to(tl.float32)
    value = tl.where(size < 4.0, size * 0.5, tl.where(size < 6.0, size - 2.0, size * 2.0 - 8.0))
    return tl.where(code >= 8, -value, value)
