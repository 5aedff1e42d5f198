"""Paged caches of keys and values."""

from __future__ import annotations

import torch

from ascend_graph.host.kernels.checks import check_choice, check_count, check_dtype, check_range
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
        raise ValueError(
            "compressed caches are not supported on the host; leave out compress_lens, compress_seq_offset and "
            "seq_lens, and give key as "
            "[tokens, heads, size]"
        )
    if scatter_mode not in ("", "None") or any(s != 1 for s in strides or []) or any(offsets or []):
        raise ValueError(
            f"scatter_mode {scatter_mode!r}, strides {strides}, offsets {offsets} are not supported on the host; "
            "expected None, 1 and 0"
        )
    check_choice("cache_mode", cache_mode, "", "Norm", "PA_NZ")
    for name, tokens, cache in (("key_cache", key, key_cache), ("value_cache", value, value_cache)):
        _check_pages(name, tokens, cache, cache_mode == "PA_NZ")
    check_count("slot_mapping", slot_mapping, key.size(0), "token of key")
    check_count("slot_mapping", slot_mapping, value.size(0), "token of value")
    if not key.is_meta:
        packed = cache_mode == "PA_NZ"
        places = places_of(slot_mapping, key_cache, packed)
        alike = key_cache.shape == value_cache.shape
        others = places if alike else places_of(slot_mapping, value_cache, packed)
        put_tokens(key, key_cache, places, packed)
        put_tokens(value, value_cache, others, packed)
    return key_cache, value_cache


def _check_pages(name: str, tokens: T, cache: T, packed: bool) -> None:
    check_dtype(name, cache, "the tokens that are written to it", tokens.dtype)
    row = tokens.size(1) * tokens.size(2)
    room = (
        cache.size(1) * cache.size(3) if packed and cache.dim() == 4 else cache[0, 0].numel() if cache.dim() >= 3 else 0
    )
    if room != row:
        raise ValueError(
            f"{name} of shape {tuple(cache.shape)} has {room} elements for a token; expected {row}, as tokens of shape "
            f"{tuple(tokens.shape)} have"
        )


Places = tuple[T, T, T | None]


def places_of(slot_mapping: T, cache: T, packed: bool) -> Places:
    """Return the page and the row in it of each token with a slot, and a mask of these tokens.

    Slot -1 means that a token is not written. The mask is None if all tokens are.
    """
    block = cache.size(2) if packed else cache.size(1)
    slots = slot_mapping.reshape(-1).long()
    least = int(slots.min()) if slots.numel() else 0
    check_range("slot_mapping", slots, cache.size(0) * block, -1)
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
    check_count("slot_mapping", slot_mapping, key.size(0), "token of key")
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
    check_choice("cache_mode", cache_mode, "Norm", "PA_NZ")
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
                f"sequence {row} has tokens {start} to {start + length}; expected at most "
                f"{block_tables.size(1) * block}, as block_tables has pages for"
            )
        tokens = torch.arange(start, start + length)
        pages.append(block_tables[row].long()[tokens // block])
        places.append(tokens % block)
    page, place = torch.cat(pages), torch.cat(places)
    if page.numel() and not 0 <= int(page.min()) <= int(page.max()) < key_cache.size(0):
        raise ValueError(
            f"block_tables name pages {int(page.min())} to {int(page.max())}; expected 0 to {key_cache.size(0) - 1}"
        )
    if page.numel() > key.size(0):
        raise ValueError(f"key has {key.size(0)} rows; expected at least {page.numel()}, one for each token")
    for target, cache in ((key, key_cache), (value, value_cache)):
        rows = cache[page, :, place] if packed else cache[page, place]
        target[: page.numel()] = rows.reshape(page.numel(), *target.shape[1:])
    return key, value


_PREFETCH = 6


@host_kernel("Cmo")
def cmo(src: T, *, max_size: int, type: int = _PREFETCH, offset: int = 0) -> tuple[()]:
    """Check a prefetch into the device's cache; the host changes no value."""
    size = src.numel() * src.element_size()
    check_choice("type", type, _PREFETCH)
    if max_size <= 0 or not 0 <= offset < size:
        raise ValueError(
            f"max_size {max_size}, offset {offset}: expected a max_size above 0 and an offset from 0 to {size - 1}"
        )
    return ()
