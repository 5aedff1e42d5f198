"""Operators that examples/serving calls, in plain PyTorch for the CPU, as one would write them without an NPU."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch.nn import functional

T = torch.Tensor


def npu_rms_norm(x: T, gamma: T) -> tuple[T, None]:
    """Return the RMS norm; the second result is unused."""
    return functional.rms_norm(x, gamma.shape, gamma, 1e-6), None


def npu_add_rms_norm(x: T, residual: T, gamma: T) -> tuple[T, None, T]:
    """Return the norm of a sum, and the sum."""
    total = x + residual
    return functional.rms_norm(total, gamma.shape, gamma, 1e-6), None, total


def npu_dynamic_quant(x: T) -> tuple[T, T]:
    """Quantize rows to 8-bit integers, each with its own scale."""
    scale = x.float().abs().amax(-1, keepdim=True) / 127
    return torch.round(x.float() / scale).to(torch.int8), scale.squeeze(-1)


def npu_quant_matmul(x: T, weight: T, scale: T, *, pertoken_scale: T, output_dtype: torch.dtype) -> T:
    """Return a matmul of integers, scaled for each row and column."""
    return (torch._int_mm(x, weight).float() * scale * pertoken_scale.unsqueeze(-1)).to(output_dtype)


def npu_swiglu(x: T) -> T:
    """Gate one half by the other."""
    gate, up = x.chunk(2, -1)
    return functional.silu(gate) * up


def npu_apply_rotary_pos_emb(q: T, k: T, cosines: T, sines: T) -> tuple[T, T]:
    """Rotate halves by angles."""
    return _turned(q, cosines, sines), _turned(k, cosines, sines)


def _turned(x: T, cosines: T, sines: T) -> T:
    a, b = x.chunk(2, -1)
    return x * cosines + torch.cat([-b, a], -1) * sines


def npu_scatter_pa_kv_cache(key: T, value: T, keys: T, values: T, slots: T, *, cache_mode: str) -> None:
    """Write rows to their slots in the pages."""
    assert cache_mode == "Norm"
    keys.flatten(0, 1).index_copy_(0, slots.long(), key)
    values.flatten(0, 1).index_copy_(0, slots.long(), value)


def npu_fused_infer_attention_score(
    q: T,
    keys: T,
    values: T,
    *,
    atten_mask: T | None,
    actual_seq_lengths_kv: Sequence[int],
    block_table: T,
    num_heads: int,
    num_key_value_heads: int,
    scale: float,
    input_layout: str,
    sparse_mode: int,
    block_size: int,
) -> tuple[T, None]:
    """Return the attention over the pages of each sequence; queries are the last tokens of their sequence."""
    assert input_layout == "BSND"
    assert sparse_mode == (0 if atten_mask is None else 3)
    results = []
    for query, pages, length in zip(q, block_table, actual_seq_lengths_kv, strict=True):
        used = pages[: math.ceil(length / block_size)]
        k, v = (
            x[used].flatten(0, 1)[:length].unflatten(1, (num_key_value_heads, -1)).transpose(0, 1)
            for x in (keys, values)
        )
        mask = None
        if atten_mask is not None:
            mask = torch.ones(query.size(0), length, dtype=torch.bool).tril(length - query.size(0))
        results.append(
            functional.scaled_dot_product_attention(
                query.transpose(0, 1).unsqueeze(0),
                k.unsqueeze(0),
                v.unsqueeze(0),
                mask,
                scale=scale,
                enable_gqa=num_heads != num_key_value_heads,
            )[0].transpose(0, 1)
        )
    return torch.stack(results), None
