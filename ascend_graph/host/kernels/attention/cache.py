"""Paged caches of keys and values."""

from __future__ import annotations

import torch

from ascend_graph.host.kernels.registry import host_kernel

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
    """Write each token's keys and values to the slot given by ``slot_mapping``."""
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
        places = places_of(slot_mapping, key_cache, packed)
        alike = key_cache.shape == value_cache.shape
        others = places if alike else places_of(slot_mapping, value_cache, packed)
        put_tokens(key, key_cache, places, packed)
        put_tokens(value, value_cache, others, packed)
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


Places = tuple[T, T, T | None]


def places_of(slot_mapping: T, cache: T, packed: bool) -> Places:
    """Return the page and the row in it of each token with a slot, and a mask of these tokens.

    Slot -1 means that a token is not written. The mask is None if all tokens are.
    """
    block = cache.size(2) if packed else cache.size(1)
    slots = slot_mapping.reshape(-1).long()
    least, largest = (int(slot) for slot in slots.aminmax()) if slots.numel() else (0, -1)
    if least < -1 or largest >= cache.size(0) * block:
        raise ValueError(f"slot_mapping {slots.tolist()}: the cache has slots 0 to {cache.size(0) * block - 1}")
    used = slots >= 0 if least < 0 else None
    if used is not None:
        slots = slots[used]
    return slots // block, slots % block, used


def put_tokens(tokens: T, cache: T, places: Places, packed: bool) -> None:
    pages, rows, used = places
    tokens = tokens if used is None else tokens[used]
    if packed:  # [blocks, numbers / last, block size, last]
        cache[pages, :, rows] = tokens.reshape(tokens.size(0), cache.size(1), cache.size(3))
    else:
        cache[pages, rows] = tokens.reshape(tokens.size(0), *cache.shape[2:])


@host_kernel("ScatterPaCache", writes={"key_cache": 0})
def scatter_pa_cache(
    key: T,
    key_cache: T,
    slot_mapping: T,
    compress_lens: T | None = None,
    compress_seq_offset: T | None = None,
    seq_lens: T | None = None,
    *,
    cache_mode: str = "Norm",
) -> T:
    """Write each token's keys to the slot given by ``slot_mapping``."""
    if compress_lens is not None or compress_seq_offset is not None or seq_lens is not None or cache_mode != "Norm":
        raise ValueError(
            f"compressed caches (compress_lens, seq_lens), cache_mode {cache_mode!r}: only Norm is supported"
        )
    _check_pages("key_cache", key, key_cache, False)
    if slot_mapping.numel() != key.size(0):
        raise ValueError(f"slot_mapping has {slot_mapping.numel()} numbers for {key.size(0)} keys")
    if not key.is_meta:
        put_tokens(key, key_cache, places_of(slot_mapping, key_cache, False), False)
    return key_cache


@host_kernel("GatherPaKvCache", writes={"key": 0, "value": 1})
def gather_pa_kv_cache(
    key_cache: T,
    value_cache: T,
    block_tables: T,
    seq_lens: T,
    key: T,
    value: T,
    seq_offset: T | None = None,
    *,
    cache_mode: str = "Norm",
    is_seq_lens_cumsum: bool = False,
) -> tuple[T, T]:
    """Gather the tokens of each sequence, one sequence after the other, from its pages in ``block_tables``."""
    if cache_mode not in ("Norm", "PA_NZ"):
        raise ValueError(f"cache_mode {cache_mode!r} is not one of Norm, PA_NZ")
    if key.is_meta:
        return key, value
    packed = cache_mode == "PA_NZ"
    block = key_cache.size(2 if packed else 1)
    lengths = (seq_lens.diff() if is_seq_lens_cumsum else seq_lens).tolist()
    starts = [0] * len(lengths) if seq_offset is None else seq_offset.tolist()
    pages, places = [], []
    for row, (length, start) in enumerate(zip(lengths, starts, strict=True)):
        if length < 0 or start < 0 or start + length > block_tables.size(1) * block:
            raise ValueError(
                f"sequence {row} has tokens {start} to {start + length}; its pages have {block_tables.size(1) * block}"
            )
        tokens = torch.arange(start, start + length)
        pages.append(block_tables[row].long()[tokens // block])
        places.append(tokens % block)
    page, place = torch.cat(pages), torch.cat(places)
    if page.numel() and not 0 <= int(page.min()) <= int(page.max()) < key_cache.size(0):
        raise ValueError(f"block_tables name pages {int(page.min())} to {int(page.max())} of {key_cache.size(0)}")
    if page.numel() > key.size(0):
        raise ValueError(f"key has {key.size(0)} rows for {page.numel()} tokens")
    for target, cache in ((key, key_cache), (value, value_cache)):
        rows = cache[page, :, place] if packed else cache[page, place]
        target[: page.numel()] = rows.reshape(page.numel(), *target.shape[1:])
    return key, value


_PREFETCH = 6


@host_kernel("Cmo")
def cmo(src: T, *, max_size: int, type: int = _PREFETCH, offset: int = 0) -> tuple[()]:
    """Check a prefetch into the device's cache; the host changes no value."""
    size = src.numel() * src.element_size()
    if type != _PREFETCH or max_size <= 0 or not 0 <= offset < size:
        raise ValueError(f"type {type} ({_PREFETCH}), max_size {max_size} (above 0), offset {offset} (0 to {size - 1})")
    return ()
