"""Caches of keys and values, in pages of blocks."""

from __future__ import annotations

import torch

from ascend_graph.host.ops.registry import host_kernel

T = torch.Tensor


@host_kernel("ScatterPaKvCache", writes={"key_cache": 0, "value_cache": 1})
def scatter_pa_kv_cache(
    key: T,
    key_cache: T,
    slot_mapping: T,
    value: T,
    value_cache: T,
    compress_lens: T | None = None,
    compress_seq_offset: T | None = None,
    seq_lens: T | None = None,
    *,
    cache_mode: str = "Norm",
    scatter_mode: str = "None",
    strides: list[int] | None = None,
    offsets: list[int] | None = None,
) -> tuple[T, T]:
    """Each token's keys and values to the place that ``slot_mapping`` names."""
    if compress_lens is not None or compress_seq_offset is not None or seq_lens is not None or key.dim() != 3:
        raise ValueError("compressed caches (compress_lens, seq_lens) are not supported on the host")
    if scatter_mode not in ("", "None") or any(s != 1 for s in strides or []) or any(offsets or []):
        raise ValueError(
            f"scatter_mode {scatter_mode!r}, strides {strides}, offsets {offsets}: not supported on the host"
        )
    if cache_mode not in ("", "Norm", "PA_NZ"):
        raise ValueError(f"cache_mode {cache_mode!r} is not one of Norm, PA_NZ")
    for name, tokens, cache in (("key_cache", key, key_cache), ("value_cache", value, value_cache)):
        _check_pages(name, tokens, cache, cache_mode == "PA_NZ")
    if key.size(0) != value.size(0) or slot_mapping.numel() != key.size(0):
        raise ValueError(
            f"slot_mapping has {slot_mapping.numel()} numbers for {key.size(0)} keys and {value.size(0)} values"
        )
    if not key.is_meta:
        packed = cache_mode == "PA_NZ"
        slots = _slots(slot_mapping, key_cache, packed), _slots(slot_mapping, value_cache, packed)
        _put(key, key_cache, slots[0], packed)
        _put(value, value_cache, slots[1], packed)
    return key_cache, value_cache


def _check_pages(name: str, tokens: T, cache: T, packed: bool) -> None:
    if tokens.dtype != cache.dtype:
        raise ValueError(f"{name} is {cache.dtype}, what is written to it {tokens.dtype}")
    row = tokens.size(1) * tokens.size(2)
    room = (
        cache.size(1) * cache.size(3) if packed and cache.dim() == 4 else cache[0, 0].numel() if cache.dim() >= 3 else 0
    )
    if room != row:
        raise ValueError(
            f"{name} of shape {tuple(cache.shape)} has {room} numbers for a token; {tuple(tokens.shape)} has {row}"
        )


def _slots(slot_mapping: T, cache: T, packed: bool) -> T:
    """Of tokens that have a place, the number of the token and the place; -1 is no place."""
    block = cache.size(2) if packed else cache.size(1)
    slots = slot_mapping.reshape(-1).long()
    if bool(((slots < -1) | (slots >= cache.size(0) * block)).any()):
        raise ValueError(f"slot_mapping {slots.tolist()}: the cache has slots 0 to {cache.size(0) * block - 1}")
    return slots


def _put(tokens: T, cache: T, slots: T, packed: bool) -> None:
    used = slots >= 0
    rows = tokens[used]
    block = cache.size(2) if packed else cache.size(1)
    pages, places = slots[used] // block, slots[used] % block
    if packed:  # [blocks, numbers / last, block size, last]
        cache[pages, :, places] = rows.reshape(rows.size(0), cache.size(1), cache.size(3))
    else:
        cache[pages, places] = rows.reshape(rows.size(0), *cache.shape[2:])
