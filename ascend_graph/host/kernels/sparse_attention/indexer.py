"""Lightning indexer of quantized numbers: it scores the keys for sparse attention.

Documented: https://gitcode.com/cann/ops-transformer, attention/quant_lightning_indexer.
"""

from __future__ import annotations

import torch

from ascend_graph.host.kernels.quantization.hifloat8 import decoded
from ascend_graph.host.kernels.registry import host_kernel
from ascend_graph.host.kernels.sparse_attention.flash import EVERYTHING, lightning_indexer
from ascend_graph.prototypes import DataType

T = torch.Tensor

_F16, _BF16, F32 = torch.float16, torch.bfloat16, torch.float32


def _check_quantized(
    query_quant_mode: int,
    key_quant_mode: int,
    weights: T,
    query_dequant_scale: T,
    key_dequant_scale: T,
    query: T,
    key: T,
    sparse_count: int,
    layout_key: str,
) -> None:
    """Raise if dtypes, scales or shapes are not those of the documents."""
    if query_quant_mode or key_quant_mode:
        raise ValueError(
            f"queryQuantMode {query_quant_mode}, keyQuantMode {key_quant_mode}: 0, a scale for each token and head, is valid"
        )
    given = (weights.dtype, query_dequant_scale.dtype, key_dequant_scale.dtype)
    halves, wide = (_F16, _F16, _F16), (_BF16, F32, F32)
    valid = {torch.int8: (halves,), torch.float8_e4m3fn: (wide, halves), torch.uint8: (wide,)}.get(query.dtype, ())
    if query.dtype != key.dtype or given not in valid:
        raise ValueError(
            f"query {query.dtype}, key {key.dtype}; weights, queryDequantScale, keyDequantScale {given}: expected int8 "
            f"with {halves}, "
            f"float8_e4m3fn with {wide} or {halves}, or hifloat8 with {wide}"
        )
    if not 1 <= sparse_count <= 2048 or query.size(-1) != 128 or not 1 <= query.size(-2) <= 64:
        raise ValueError(
            f"sparseCount {sparse_count} (1 to 2048), query {tuple(query.shape)} (1 to 64 heads, 128 wide): no other is supported"
        )
    if query_dequant_scale.shape != query.shape[:-1] or key_dequant_scale.shape != key.shape[:-1]:
        raise ValueError(
            f"queryDequantScale {tuple(query_dequant_scale.shape)}, keyDequantScale {tuple(key_dequant_scale.shape)}: "
            "expected one for each of "
            f"{tuple(query.shape[:-1])} and {tuple(key.shape[:-1])}"
        )
    if layout_key == "PA_BSND" and (key.size(1) % 16 or key.size(1) > 1024):
        raise ValueError(f"a page of {key.size(1)} keys: valid are multiples of 16 up to 1024")


@host_kernel("QuantLightningIndexer")
def quant_lightning_indexer(
    query: T,
    key: T,
    weights: T,
    query_dequant_scale: T,
    key_dequant_scale: T,
    actual_seq_lengths_query: T | None = None,
    actual_seq_lengths_key: T | None = None,
    block_table: T | None = None,
    *,
    query_quant_mode: int,
    key_quant_mode: int,
    layout_query: str = "BSND",
    layout_key: str = "BSND",
    sparse_count: int = 2048,
    sparse_mode: int = 3,
    pre_tokens: int = EVERYTHING,
    next_tokens: int = EVERYTHING,
) -> T:
    """Return the keys with the largest index scores, from 8-bit numbers with a scale for each token and head."""
    _check_quantized(
        query_quant_mode,
        key_quant_mode,
        weights,
        query_dequant_scale,
        key_dequant_scale,
        query,
        key,
        sparse_count,
        layout_key,
    )
    numbers, scores = (
        (decoded(x) if getattr(x, "ge_dtype", None) == DataType.HIFLOAT8 else x.float()) * scale.float().unsqueeze(-1)
        for x, scale in ((query, query_dequant_scale), (key, key_dequant_scale))
    )
    indices, _ = lightning_indexer(
        numbers,
        scores,
        weights,
        actual_seq_lengths_query,
        actual_seq_lengths_key,
        block_table,
        layout_query=layout_query,
        layout_key=layout_key,
        sparse_count=sparse_count,
        sparse_mode=sparse_mode,
        pre_tokens=pre_tokens,
        next_tokens=next_tokens,
    )
    return indices
