"""Normalization, rotation and quantization fused with the write to a cache."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from ascend_graph.host.kernels.attention.cache import put_tokens
from ascend_graph.host.kernels.checks import (
    check_choice,
    check_count,
    check_dtype,
    check_range,
    check_shape,
    refuse_given,
)
from ascend_graph.host.kernels.registry import host_kernel

T = torch.Tensor


def rotated(x: T) -> T:
    """Return the halves of the last dimension exchanged, the second negated."""
    first, second = x.chunk(2, -1)
    return torch.cat([-second, first], -1)


_PACKED = ("PA_NZ", "PA_BLK_NZ")


_BY_BLOCK = ("PA_BLK_BNSD", "PA_BLK_NZ")


@host_kernel("KvRmsNormRopeCache", writes={"k_cache": 0, "ckv_cache": 1})
def kv_rms_norm_rope_cache(
    kv: T,
    gamma: T,
    cos: T,
    sin: T,
    index: T,
    k_cache: T,
    ckv_cache: T,
    k_rope_scale: T | None = None,
    c_kv_scale: T | None = None,
    k_rope_offset: T | None = None,
    c_kv_offset: T | None = None,
    v: T | None = None,
    *,
    epsilon: float = 1e-5,
    cache_mode: str = "Norm",
    is_output_kv: bool = False,
) -> tuple[T, T, T, T]:
    """Normalize the first part, rotate the rest, and write both to the caches.

    The rest's interleaved pairs become halves before the rotation.
    """
    check_choice("cache_mode", cache_mode, "Norm", "PA", "PA_BNSD", *_PACKED, *_BY_BLOCK)
    refuse_given("not supported on the host", v=v)
    size = gamma.numel()
    check_shape("kv", kv, ("batch", 1, "length", size + cos.size(-1)), why="the sizes of gamma and cos together")
    wide = kv.float()
    normal, rope = wide[..., :size], wide[..., size:]
    c_kv = normal * torch.rsqrt(normal.square().mean(-1, keepdim=True) + epsilon) * gamma.float()
    halves = torch.cat([rope[..., ::2], rope[..., 1::2]], -1)
    k_rope = halves * cos.float() + rotated(halves) * sin.float()
    if not kv.is_meta:
        for values, cache, scale, offset in (
            (k_rope, k_cache, k_rope_scale, k_rope_offset),
            (c_kv, ckv_cache, c_kv_scale, c_kv_offset),
        ):
            _to_cache(values[:, 0], cache, index, cache_mode, scale, offset)
    if is_output_kv:
        return k_cache, ckv_cache, k_rope.to(kv.dtype), c_kv.to(kv.dtype)
    # Outputs with their shapes, which nobody writes.
    return k_cache, ckv_cache, kv.new_empty(k_rope.shape), kv.new_empty(c_kv.shape)


def _to_cache(values: T, cache: T, index: T, mode: str, scale: T | None, offset: T | None) -> None:
    """Write rows of [batch, length, numbers] to a cache, quantized to 8 bits if a scale is given."""
    if scale is not None:
        values = values * scale.float()
        values = torch.round(values if offset is None else values + offset.float()).clamp(-128, 127)
    batch, length, size = values.shape
    rows = values.reshape(-1, size).to(cache.dtype)
    if mode == "Norm":
        if cache.shape[:2] != (batch, 1) or index.shape != (batch, length):
            raise ValueError(
                f"index {tuple(index.shape)}, cache {tuple(cache.shape)}: expected [{batch}, {length}] and [{batch}, "
                "1, …]"
            )
        lines, slots = torch.arange(batch).repeat_interleave(length), index.reshape(-1).long()
        _check_slots(slots, cache.size(2))
        kept = slots >= 0
        cache[lines[kept], 0, slots[kept]] = rows[kept]
        return
    block = cache.size(1)
    if mode in _BY_BLOCK:
        starts = index.reshape(batch, -1)
        blocks = -(-length // block)
        if starts.size(1) != blocks:
            raise ValueError(
                f"index has {starts.size(1)} blocks for a sequence; expected {blocks}, for {length} tokens"
            )
        places = torch.arange(length)
        first = starts[:, places // block]
        slots = torch.where(first < 0, -1, first + places % block).reshape(-1).long()
    else:
        slots = index.reshape(-1).long()
    check_count("index", slots, rows.size(0), "token")
    _check_slots(slots, cache.size(0) * block)
    kept = slots >= 0
    pages, places = slots[kept] // block, slots[kept] % block
    if mode in _PACKED:  # in memory [blocks, size / last, block size, last]
        last = 32 // cache.element_size()
        view = cache.view(cache.size(0), size // last, block, last)
        view[pages, :, places] = rows[kept].reshape(-1, size // last, last)
    else:
        cache.view(cache.size(0), block, size)[pages, places] = rows[kept]


def _check_slots(slots: T, count: int) -> None:
    check_range("index", slots, count, -1)


def _check_queries(
    q_out: T, heads: Sequence[int], qkv_size: list[int], q_gamma: T, k_gamma: T, cos: T, sin: T, qkv: T
) -> None:
    """Raise if the parts of queries and keys do not fit one another."""
    if q_out.size(-1) != heads[0] * qkv_size[3] or q_gamma.numel() != qkv_size[3]:
        raise ValueError(
            f"q_out {tuple(q_out.shape)}, q_gamma {tuple(q_gamma.shape)}: there are {heads[0]} heads of {qkv_size[3]} numbers"
        )
    alike = {"q_gamma": q_gamma, "k_gamma": k_gamma, "cos": cos, "sin": sin, "q_out": q_out}
    for name, tensor in alike.items():
        check_dtype(name, tensor, "qkv", qkv.dtype)


def _blocks_of(k_cache: T, v_cache: T, length: int, batch: int) -> tuple[int, int]:
    """Return the number of blocks of both caches and their size."""
    blocks, block = k_cache.size(0), k_cache.size(2)
    if v_cache.size(0) != blocks or v_cache.size(2) != block:
        raise ValueError(
            f"v_cache {tuple(v_cache.shape)} and k_cache {tuple(k_cache.shape)} must have as many blocks of the same "
            "size"
        )
    lasts = [32 // cache.element_size() for cache in (k_cache, v_cache)]
    if block % max(lasts) or blocks < -(-length // block) * batch:
        raise ValueError(
            f"k_cache of {blocks} blocks of {block}: a block is a multiple of {max(lasts)}, and {batch} sequences of {length} tokens "
            "need blocks of their own"
        )
    return blocks, block


@host_kernel("QkvRmsNormRopeCache", writes={"q_out": 0, "k_cache": 1, "v_cache": 2})
def qkv_rms_norm_rope_cache(
    qkv: T,
    q_gamma: T,
    k_gamma: T,
    cos: T,
    sin: T,
    index: T,
    q_out: T,
    k_cache: T,
    v_cache: T,
    k_scale: T | None = None,
    v_scale: T | None = None,
    k_offset: T | None = None,
    v_offset: T | None = None,
    *,
    qkv_size: list[int],
    head_nums: list[int],
    epsilon: float = 1e-6,
    cache_mode: str = "PA_NZ",
    is_output_qkv: bool = False,
) -> tuple[T, T, T, T, T, T]:
    """Normalize and rotate queries and keys of one tensor; write keys and values to the caches."""
    check_choice("cache_mode", cache_mode, "PA_NZ")
    check_choice("is_output_qkv", is_output_qkv, False)
    heads = _heads_of(qkv, qkv_size, head_nums)
    _check_queries(q_out, heads, qkv_size, q_gamma, k_gamma, cos, sin, qkv)
    targets = (
        ("k_cache", k_cache, k_scale, k_offset, heads[1]),
        ("v_cache", v_cache, v_scale, v_offset, heads[2]),
    )
    batch, length, size = qkv_size[0], qkv_size[1], qkv_size[3]
    for name, cache, scale, offset, count in targets:
        _check_packed_cache(name, cache, scale, offset, qkv.dtype, (count, size))
    blocks, block = _blocks_of(k_cache, v_cache, length, batch)
    if not qkv.is_meta:
        slots = index.long()
        _check_slots(slots, blocks * block)
        used = slots[slots >= 0]
        if used.unique().numel() != used.numel():
            raise ValueError(f"index {slots.tolist()} names a place twice; expected each at most once")
        q, k, v = qkv.float().unflatten(-1, (-1, size)).split(heads, 1)
        factors = [f.float().unsqueeze(1) for f in (cos, sin)]
        q, k = (_normal_and_rotated(part, gamma, epsilon, factors) for part, gamma in ((q, q_gamma), (k, k_gamma)))
        places = (used // block, used % block, slots >= 0)
        rows = [
            _by_scale(part, scale, offset).to(cache.dtype)
            for part, (_, cache, scale, offset, _) in zip((k, v), targets, strict=True)
        ]
        q_out.copy_(q.flatten(1))
        for tokens, cache in zip(rows, (k_cache, v_cache), strict=True):
            put_tokens(tokens, cache, places, True)
    nothing = [qkv.new_empty(()) for _ in range(3)]  # as the meta function of torch_npu says
    return q_out, k_cache, v_cache, nothing[0], nothing[1], nothing[2]


def _heads_of(qkv: T, qkv_size: list[int], head_nums: list[int]) -> list[int]:
    """Return the numbers of heads of queries, keys and values."""
    if len(qkv_size) != 4 or len(head_nums) != 3 or min((*qkv_size, *head_nums)) < 1:
        raise ValueError(f"qkv_size {qkv_size}, head_nums {head_nums}: expected four and three positive numbers")
    batch, length, count, size = qkv_size
    if sum(head_nums) != count or head_nums[1] != head_nums[2] or size != 128:
        raise ValueError(
            f"head_nums {head_nums}, qkv_size {qkv_size}: there are as many heads of keys as of values, {count} in all, of 128 numbers"
        )
    if qkv.shape != (batch * length, count * size):
        raise ValueError(
            f"qkv of shape {tuple(qkv.shape)}: by qkv_size {qkv_size} valid is {(batch * length, count * size)}"
        )
    return head_nums


def _check_packed_cache(
    name: str, cache: T, scale: T | None, offset: T | None, dtype: torch.dtype, row: tuple[int, int]
) -> None:
    if cache.dtype not in (dtype, torch.int8):
        raise ValueError(f"{name} is {cache.dtype}; {dtype} and torch.int8 are supported")
    last, numbers = 32 // cache.element_size(), row[0] * row[1]
    check_shape(name, cache, ("blocks", numbers // last, "size", last))
    if (scale is not None) != (cache.dtype is torch.int8) or (offset is not None and scale is None):
        raise ValueError(f"{name} is {cache.dtype}: int8 has a scale, and may have an offset; others have neither")
    for kind, values in (("scale", scale), ("offset", offset)):
        if values is not None:
            check_shape(f"{name[0]}_{kind}", values, row)
    if scale is not None and not scale.is_meta and bool((scale == 0).any()):
        raise ValueError(f"{name[0]}_scale has a 0; expected numbers other than 0, which can be divided by")


def _normal_and_rotated(x: T, gamma: T, epsilon: float, factors: list[T]) -> T:
    normal = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + epsilon) * gamma.float()
    return normal * factors[0] + rotated(normal) * factors[1]


def _by_scale(x: T, scale: T | None, offset: T | None) -> T:
    if scale is None:
        return x
    y = x / scale
    return torch.round(y if offset is None else y + offset).clamp(-128, 127)


@host_kernel("DequantRopeQuantKvcache", writes={"k_cache": 3, "v_cache": 4})
def dequant_rope_quant_kv_cache(
    x: T,
    cos: T,
    sin: T,
    k_cache: T,
    v_cache: T,
    indices: T,
    scale_k: T,
    scale_v: T,
    offset_k: T | None = None,
    offset_v: T | None = None,
    weight_scale: T | None = None,
    activation_scale: T | None = None,
    bias: T | None = None,
    *,
    size_splits: list[int],
    quant_mode: str = "static",
    layout: str = "BSND",
    kv_output: bool = False,
    cache_mode: str = "contiguous",
) -> tuple[T, T, T, T, T]:
    """Split one tensor into queries, keys and values, rotate queries and keys, and cache keys and values.

    The caches hold quantized values.
    """
    check_choice("quant_mode", quant_mode, "static")
    check_choice("layout", layout, "BSND")
    check_choice("cache_mode", cache_mode, "contiguous", "page")
    size, heads = k_cache.size(-1), k_cache.size(-2)
    if len(size_splits) != 3 or sum(size_splits) != x.size(-1) or size_splits[1] != heads * size:
        raise ValueError(
            f"size_splits {size_splits}: expected three, the second one {heads * size}, {x.size(-1)} in all"
        )
    if k_cache.shape != v_cache.shape or size_splits[1] != size_splits[2]:
        raise ValueError(
            f"k_cache {tuple(k_cache.shape)} and v_cache {tuple(v_cache.shape)} must have one shape, and size_splits "
            f"{size_splits} one size for both"
        )
    wide = x.float()
    if x.dtype == torch.int32:
        if weight_scale is None:
            raise ValueError("weight_scale is required with x of int32")
        if bias is not None and not bias.dtype.is_floating_point:
            wide = (x + bias).float()
        wide = wide * weight_scale.float()
        if activation_scale is not None:
            wide = wide * activation_scale.float().reshape(*x.shape[:-1], 1)
    if bias is not None and bias.dtype.is_floating_point:
        wide = wide + bias.float()
    q, k, v = (part.unflatten(-1, (-1, size)) for part in wide.split(size_splits, -1))
    factors = [f.float().reshape(*q.shape[:-2], 1, size) for f in (cos, sin)]
    q, k = (part * factors[0] + rotated(part) * factors[1] for part in (q, k))
    if not x.is_meta:
        for values, cache, scale, offset in ((k, k_cache, scale_k, offset_k), (v, v_cache, scale_v, offset_v)):
            numbers = values / scale.float().reshape(-1, size)
            if offset is not None:
                numbers = numbers + offset.float().reshape(-1, size)
            _to_rows(torch.round(numbers).clamp(-128, 127).to(torch.int8), cache, indices.long(), cache_mode == "page")
    q, k, v = (part.to(cos.dtype) for part in (q, k, v))
    return (q, k, v, k_cache, v_cache) if kv_output else (q, k.new_empty(0), v.new_empty(0), k_cache, v_cache)


def _to_rows(values: T, cache: T, indices: T, in_pages: bool) -> None:
    """Write tokens to a cache: from a start in each sequence on, or each token to a slot of its own."""
    if in_pages:
        rows, places = values.flatten(0, -3), indices.flatten()
        check_count("indices", places, rows.size(0), "token")
        _check_slots(places, cache.size(0) * cache.size(1))
        cache.view(-1, *cache.shape[2:])[places] = rows
        return
    tokens = values if values.dim() == 4 else values.unsqueeze(1)
    starts = indices.flatten().tolist()
    if len(starts) != tokens.size(0) or tokens.size(0) > cache.size(0):
        raise ValueError(f"indices {starts}: there are {tokens.size(0)} sequences, and {cache.size(0)} in the cache")
    if min(starts) < 0 or max(starts) + tokens.size(1) > cache.size(1):
        raise ValueError(
            f"indices {starts} are out of range; expected 0 to {cache.size(1) - tokens.size(1)}, for the cache holds "
            f"{cache.size(1)} tokens"
        )
    for row, start in enumerate(starts):
        cache[row, start : start + tokens.size(1)] = tokens[row]
