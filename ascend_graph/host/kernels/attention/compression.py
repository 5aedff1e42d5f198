"""Compression of keys and values along a sequence, for native sparse attention (https://arxiv.org/abs/2502.11089)."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from ascend_graph.host.kernels.registry import host_kernel

T = torch.Tensor


def _checked(weight: T, block: int, stride: int, layout: str) -> None:
    if layout != "TND":
        raise ValueError(f"layout '{layout}' is not supported; TND is")
    if weight.size(0) != block:
        raise ValueError(f"weight of {weight.size(0)} rows: valid is compressBlockSize, {block}")
    if not 0 < stride <= block:
        raise ValueError(f"compressStride={stride}: valid are 1 to {block}, and CANN takes multiples of 16")


def _windows(tokens: T, ends: Sequence[int], block: int, stride: int) -> list[T]:
    """Return the token indices of each sequence's windows, (windows, block)."""
    if list(ends) != sorted(ends) or not ends or ends[-1] != tokens.size(0):
        raise ValueError(
            f"ends of sequences {list(ends)}: valid are ascending ones up to {tokens.size(0)}, the tokens there are"
        )
    found = []
    for start, end in zip([0, *ends[:-1]], ends, strict=True):
        first = torch.arange(start, end - block + 1, stride, device=tokens.device) if end - start >= block else None
        if first is not None:
            found.append(first[:, None] + torch.arange(block, device=tokens.device))
    return found or [torch.zeros(0, block, dtype=torch.long, device=tokens.device)]


@host_kernel("NsaCompress")
def nsa_compress(
    input: T,
    weight: T,
    *,
    act_seq_len: list[int],
    layout: str,
    compress_block_size: int,
    compress_stride: int,
    act_seq_len_type: int,
) -> T:
    """Sum the tokens of each window of (tokens, heads, width), weighted by position and head."""
    _checked(weight, compress_block_size, compress_stride, layout)
    _ends_only(act_seq_len_type)
    places = torch.cat(_windows(input, act_seq_len, compress_block_size, compress_stride))
    return torch.einsum("wlnd,ln->wnd", input.float()[places], weight.float()).to(input.dtype)


def _ends_only(kind: int) -> None:
    if kind != 0:
        raise ValueError(f"actSeqLenType={kind} is not supported; 0, the ends of the sequences, is")


@host_kernel("NsaCompressGrad")
def nsa_compress_grad(
    output_grad: T,
    input: T,
    weight: T,
    *,
    act_seq_len: list[int],
    layout: str,
    compress_block_size: int,
    compress_stride: int,
    act_seq_len_type: int,
) -> tuple[T, T]:
    """Return the gradients of the tokens and of the weights."""
    _checked(weight, compress_block_size, compress_stride, layout)
    _ends_only(act_seq_len_type)
    places = torch.cat(_windows(input, act_seq_len, compress_block_size, compress_stride))
    grad, tokens = output_grad.float(), input.float()
    spread = torch.einsum("wnd,ln->wlnd", grad, weight.float())
    of_input = torch.zeros_like(tokens).index_add(0, places.flatten(), spread.flatten(0, 1))
    of_weight = torch.einsum("wnd,wlnd->ln", grad, tokens[places])
    return of_input.to(input.dtype), of_weight.to(weight.dtype)


@host_kernel("NsaCompressWithCache", writes=("output_cache",))
def nsa_compress_with_cache(
    input: T,
    weight: T,
    slot_mapping: T,
    output_cache: T,
    block_table: T | None = None,
    *,
    act_seq_len: list[int],
    layout: str,
    compress_block_size: int,
    compress_stride: int,
    act_seq_len_type: int,
    page_block_size: int,
) -> T:
    """Write each sequence's last window to its cache slot, if the newest token completes it.

    Tokens are (tokens, heads, width), or pages of these given by the block table.
    """
    _checked(weight, compress_block_size, compress_stride, layout)
    if act_seq_len_type != 1:
        raise ValueError(f"actSeqLenType={act_seq_len_type} is not supported; 1, the lengths of the sequences, is")
    if len(act_seq_len) != slot_mapping.numel():
        raise ValueError(f"{len(act_seq_len)} lengths and {slot_mapping.numel()} slots: valid are as many")
    if output_cache.is_meta:
        return output_cache
    tokens = input.flatten(0, 1) if block_table is not None else input
    slots = output_cache.view(-1, *input.shape[-2:])
    done: list[tuple[int, T]] = []
    start = 0
    for number, length in enumerate(act_seq_len):
        window = torch.arange(length - compress_block_size, length)
        if length >= compress_block_size and (length - compress_block_size) % compress_stride == 0:
            places = window + start if block_table is None else _paged(window, block_table[number], page_block_size)
            slot = int(slot_mapping[number])
            _in_range("slot", slot, len(slots))
            _in_range("token", int(places.min()), len(tokens))
            _in_range("token", int(places.max()), len(tokens))
            done.append((slot, torch.einsum("lnd,ln->nd", tokens[places].float(), weight.float())))
        start += length
    for slot, value in done:  # all are in range, or nothing is written
        slots[slot] = value.to(slots.dtype)
    return output_cache


def _paged(places: T, table: T, size: int) -> T:
    pages = places // size
    _in_range("page of a sequence", int(pages.max()), len(table))
    return table.long()[pages] * size + places % size


def _in_range(what: str, value: int, count: int) -> None:
    if not 0 <= value < count:
        raise ValueError(f"{what} {value}: valid are 0 to {count - 1}")
