"""What CANN's documents call invalid is refused with its error code, by name, and nothing is written.

Each operator has a call that is valid; a case changes one argument of it. https://gitcode.com/cann has the documents
(ops-transformer, ops-nn: docs/aclnnX.md), https://gitcode.com/Ascend/op-plugin those of ``torch_npu.npu_x``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import torch
import torch_npu
import torchair
from operator_modes import is_before_2_13, to_npu

T = torch.Tensor
Arguments = dict[str, Any]
HALF, INT8, INT32 = torch.float16, torch.int8, torch.int32

#: ACLNN_ERR_PARAM_INVALID, before anything runs; ACLNN_ERR_INNER, where values decide, which the first half of a call
#: does not read.
PARAMETER, VALUES = 161002, 561000


def half(*shape: int) -> T:
    return torch.randn(shape, generator=torch.Generator().manual_seed(len(shape))).to(HALF)


def numbers(*values: Any) -> T:
    return torch.tensor(values, dtype=INT32)


def narrower(dim: int) -> Callable[[T], T]:
    """One less in a dimension."""
    return lambda x: x.narrow(dim, 0, x.size(dim) - 1).contiguous()


def wider(dim: int) -> Callable[[T], T]:
    """One more in a dimension."""
    return lambda x: torch.cat([x, x.narrow(dim, 0, 1)], dim)


def flatter(x: T) -> T:
    """A dimension less."""
    return x[0].contiguous()


def ending(value: int) -> Callable[[T], T]:
    """Another last number."""

    def change(x: T) -> T:
        flat = x.flatten().clone()
        flat[-1] = value
        return flat.reshape(x.shape)

    return change


def becoming(value: Any) -> Callable[[Any], Any]:
    """Something else altogether."""
    return lambda _: value


def fused_attention(**more: Any) -> Arguments:
    heads = {"num_heads": 4, "num_key_value_heads": 2, "input_layout": "BNSD", "scale": 0.25}
    return {"query": half(2, 4, 3, 16), "key": half(2, 2, 6, 16), "value": half(2, 2, 6, 16), **heads, **more}


def in_pages() -> Arguments:
    pages = {name: torch.zeros(5, 8, 32, dtype=HALF) for name in ("key", "value")}
    table = {"block_table": numbers([0, 3], [1, 4]), "block_size": 8, "actual_seq_lengths_kv": [10, 9]}
    return fused_attention(query=half(2, 4, 1, 16), **pages, **table)


def packed() -> Arguments:
    tensors = {"query": half(7, 4, 16), "key": half(9, 4, 16), "value": half(9, 4, 16), "head_num": 4}
    return {**tensors, "input_layout": "TND", "actual_seq_qlen": [3, 7], "actual_seq_kvlen": [4, 9]}


def trained() -> Arguments:
    return {
        "query": half(2, 4, 3, 16),
        "key": half(2, 4, 5, 16),
        "value": half(2, 4, 5, 16),
        "head_num": 4,
        "input_layout": "BNSD",
    }


def gradient() -> Arguments:
    x = half(2, 4, 3, 16)
    statistics = torch.ones(2, 4, 3, 8)
    return {
        "query": x,
        "key": x,
        "value": x,
        "dy": x,
        "head_num": 4,
        "input_layout": "BNSD",
        "softmax_max": statistics,
        "softmax_sum": statistics,
        "attention_in": x,
    }


def scattered() -> Arguments:
    caches = {name: torch.zeros(3, 8, 2, 32, dtype=HALF) for name in ("key_cache", "value_cache")}
    return {
        "key": half(2, 2, 32),
        "value": half(2, 2, 32),
        **caches,
        "slot_mapping": numbers(1, 9),
        "cache_mode": "Norm",
    }


def indexer() -> Arguments:
    lengths = {"actual_seq_lengths_query": numbers(3, 2), "actual_seq_lengths_key": numbers(20, 20)}
    tensors = {"query": half(2, 3, 8, 128), "key": half(4, 16, 1, 128), "weights": half(2, 3, 8), **lengths}
    return {
        **tensors,
        "block_table": numbers([0, 1], [3, 2]),
        "layout_query": "BSND",
        "layout_key": "PA_BSND",
        "sparse_count": 4,
    }


def sparse() -> Arguments:
    wide, rope = {name: half(2, 8, 1, 512) for name in ("key", "value")}, {"key_rope": half(2, 8, 1, 64)}
    queries = {
        "query": half(2, 3, 4, 512),
        "query_rope": half(2, 3, 4, 64),
        "sparse_indices": torch.zeros(2, 3, 1, 2, dtype=INT32),
    }
    return {**queries, **wide, **rope, "scale_value": 0.1, "attention_mode": 2}


def grouped() -> Arguments:
    group_list = torch.tensor([2, 3, 6])
    modes = {"split_item": 2, "group_type": 0, "group_list_type": 0}
    return {"x": [half(6, 16)], "weight": [half(3, 16, 8)], "group_list": group_list, **modes}


def quantized() -> Arguments:
    x, w = torch.ones(4, 32, dtype=INT8), torch.ones(32, 8, dtype=INT8)
    return {"x1": x, "x2": w, "scale": torch.ones(8), "pertoken_scale": torch.ones(4), "output_dtype": HALF}


def antiquantized(mode: int, scale: T) -> Arguments:
    integers = {name: torch.ones(2, 2, 6, 16, dtype=INT8) for name in ("key", "value")}
    scales = {f"{name}_antiquant_{what}": scale for name in ("key", "value") for what in ("scale", "offset")}
    modes = {f"{name}_antiquant_mode": mode for name in ("key", "value")}
    return fused_attention(query=half(2, 4, 1, 16), **integers, **scales, **modes)


def prolog() -> Arguments:
    sizes = {
        "weight_dq": (64, 32),
        "weight_dkv_kr": (64, 32),
        "rmsnorm_gamma_cq": (32,),
        "rmsnorm_gamma_ckv": (16,),
        "rope_sin": (5, 16),
        "rope_cos": (5, 16),
        "weight_uk": (2, 16, 16),
        "token_x": (5, 64),
    }
    return {
        **{name: half(*shape).bfloat16() for name, shape in sizes.items()},
        "weight_uq_qr": torch.ones(32, 64, dtype=INT8),
        "weight_quant_mode": 1,
        "dequant_scale_w_uq_qr": torch.ones(1, 64),
        "smooth_scales_cq": torch.ones(1, 32),
        "kv_cache": torch.zeros(3, 4, 1, 16).bfloat16(),
        "kr_cache": torch.zeros(3, 4, 1, 16).bfloat16(),
        "cache_index": torch.arange(5),
    }


def feed_forward() -> Arguments:
    return {
        "x": torch.ones(8, 16, dtype=INT8),
        "weight1": torch.ones(3, 16, 32, dtype=INT8),
        "weight2": torch.ones(3, 32, 16, dtype=INT8),
        "activation": "relu",
        "expert_tokens": [3, 0, 5],
        "scale": torch.ones(3),
        "offset": torch.zeros(3),
        "deq_scale1": torch.ones(3, 32),
        "deq_scale2": torch.ones(3, 16),
    }


def ring(packed: bool) -> Arguments:
    """Two parts of 4 tokens: two sequences of two heads, or one after the other."""
    statistics, result = torch.ones((4, 2, 8) if packed else (2, 2, 4, 8)), half(4, 2, 32)
    parts = {
        f"{part}_{name}": value
        for part in ("prev", "cur")
        for name, value in (("attn_out", result), ("softmax_max", statistics), ("softmax_sum", statistics))
    }
    layout = {"input_layout": "TND", "input_softmax_layout": "TND", "actual_seq_qlen": torch.tensor([0, 1, 4])}
    return {**parts, **(layout if packed else {})}


def antiquantized_weight() -> Arguments:
    scales = {f"antiquant_{name}": half(2, 8) for name in ("scale", "offset")}
    return {"x": half(4, 64), "weight": torch.ones(64, 8, dtype=INT8), **scales, "antiquant_group_size": 32}


def antiquantized_groups() -> Arguments:
    scales = {f"antiquant_{name}": [half(3, 8)] for name in ("scale", "offset")}
    return {**grouped(), "weight": [torch.ones(3, 16, 8, dtype=INT8)], **scales}


VALID: dict[str, Callable[[], Arguments]] = {
    "npu_fused_infer_attention_score": fused_attention,
    "npu_fused_infer_attention_score in pages": in_pages,
    "npu_fusion_attention": trained,
    "npu_fusion_attention of packed sequences": packed,
    "npu_fusion_attention_grad": gradient,
    "npu_fused_infer_attention_score by channel": lambda: antiquantized(0, half(2, 16)),
    "npu_fused_infer_attention_score by token": lambda: antiquantized(1, torch.ones(1, 2, 6)),
    "npu_fused_infer_attention_score by head": lambda: antiquantized(2, half(2)),
    "npu_mla_prolog_v3": prolog,
    "npu_ffn": feed_forward,
    "npu_ring_attention_update": lambda: ring(False),
    "npu_ring_attention_update of packed sequences": lambda: ring(True),
    "npu_weight_quant_batchmatmul": antiquantized_weight,
    "npu_grouped_matmul of floats and integers": antiquantized_groups,
    "npu_prompt_flash_attention": lambda: {
        "query": half(2, 4, 3, 16),
        "key": half(2, 4, 6, 16),
        "value": half(2, 4, 6, 16),
        "num_heads": 4,
        "input_layout": "BNSD",
    },
    "npu_incre_flash_attention": lambda: {
        "query": half(2, 4, 1, 16),
        "key": half(2, 4, 6, 16),
        "value": half(2, 4, 6, 16),
        "num_heads": 4,
        "input_layout": "BNSD",
    },
    "npu_lightning_indexer": indexer,
    "npu_sparse_flash_attention": sparse,
    "npu_scatter_pa_kv_cache": scattered,
    "npu_kv_rmsnorm_rope_cache": lambda: {
        "kv": half(2, 1, 1, 576),
        "gamma": half(512),
        "cos": half(2, 1, 1, 64),
        "sin": half(2, 1, 1, 64),
        "index": torch.tensor([0, 3]),
        "k_cache": torch.zeros(4, 8, 1, 64, dtype=HALF),
        "ckv_cache": torch.zeros(4, 8, 1, 512, dtype=HALF),
        "cache_mode": "PA",
    },
    "npu_scatter_nd_update_": lambda: {
        "input": torch.zeros(5, 4, 3),
        "indices": torch.tensor([[0, 1], [4, 3]]),
        "updates": torch.ones(2, 3),
    },
    "npu_rotary_mul": lambda: {"input": half(2, 3, 4, 16), "r1": half(1, 3, 1, 16), "r2": half(1, 3, 1, 16)},
    "npu_interleave_rope": lambda: {"x": half(2, 4, 1, 64), "cos": half(2, 1, 1, 64), "sin": half(2, 1, 1, 64)},
    "npu_apply_rotary_pos_emb": lambda: {
        "query": half(2, 3, 4, 128),
        "key": half(2, 3, 1, 128),
        "cos": half(2, 3, 1, 128),
        "sin": half(2, 3, 1, 128),
        "layout": "BSND",
    },
    "npu_moe_init_routing_v2": lambda: {
        "x": half(4, 8),
        "expert_idx": numbers([0, 1], [2, 1], [5, 0], [3, 2]),
        "active_num": 8,
        "expert_num": 6,
        "expert_tokens_num_type": 1,
        "expert_tokens_num_flag": True,
        "active_expert_range": [0, 6],
        "quant_mode": -1,
        "row_idx_type": 0,
    },
    "npu_moe_finalize_routing": lambda: {
        "expanded_permuted_rows": half(8, 16),
        "skip1": half(4, 16),
        "skip2": half(4, 16),
        "bias": half(6, 16),
        "scales": half(4, 2),
        "expanded_src_to_dst_row": torch.arange(8, dtype=INT32),
        "export_for_source_row": numbers([0, 1], [2, 1], [5, 0], [3, 2]),
    },
    "npu_moe_token_permute": lambda: {"tokens": half(4, 8), "indices": torch.tensor([[0, 1], [2, 1], [3, 0], [3, 2]])},
    "npu_moe_token_unpermute": lambda: {
        "permuted_tokens": half(8, 16),
        "sorted_indices": torch.arange(8, dtype=INT32),
        "probs": half(4, 2),
    },
    "npu_moe_gating_top_k_softmax": lambda: {"x": half(4, 8), "finished": torch.zeros(4, dtype=torch.bool), "k": 2},
    "npu_moe_gating_top_k": lambda: {"x": half(4, 8), "bias": half(8), "k": 2},
    "npu_moe_compute_expert_tokens": lambda: {"sorted_expert_for_source_row": numbers(0, 1, 1, 3), "num_expert": 4},
    "npu_grouped_matmul": grouped,
    "npu_quant_matmul": quantized,
    "npu_rms_norm": lambda: {"input": half(3, 8), "gamma": half(8)},
    "npu_add_rms_norm": lambda: {"x1": half(3, 8), "x2": half(3, 8), "gamma": half(8)},
    "npu_top_k_top_p": lambda: {"logits": half(3, 16), "p": half(3).abs(), "k": numbers(2, 3, 4)},
}


class Case(NamedTuple):
    valid: str
    argument: str
    change: Callable[[Any], Any]
    code: int
    text: str


FIA, PAGES, FA, TND, GRAD, CHANNEL, TOKEN, HEAD = (name for name in VALID if "infer" in name or "fusion" in name)
CASES = [
    Case(FIA, "query", narrower(3), PARAMETER, "key of shape (2, 2, 6, 16) has heads of 16; expected 15, as query has"),
    Case(FIA, "key", narrower(0), PARAMETER, "key has the shape [1, 2, 6, 16]; expected [2, 2, _, _]"),
    Case(FIA, "key", wider(1), PARAMETER, "key has the shape [2, 3, 6, 16]; expected [2, 2, _, _]"),
    Case(FIA, "value", narrower(2), PARAMETER, "must differ in the last dimension only"),
    Case(
        FIA, "num_key_value_heads", becoming(3), PARAMETER, "num_key_value_heads 3: expected a divisor of num_heads, 4"
    ),
    Case(PAGES, "key", narrower(1), PARAMETER, "key has the shape [5, 7, 32]; expected [_, 8, _]"),
    Case(PAGES, "key", narrower(2), PARAMETER, "must be a multiple of 2, the number of heads"),
    Case(
        PAGES,
        "block_table",
        flatter,
        PARAMETER,
        "block_table has the shape [2]; expected [batch, blocks of a sequence]",
    ),
    Case(PAGES, "block_table", narrower(0), VALUES, "block_table has 1 rows; expected 2"),
    Case(PAGES, "block_table", ending(5), VALUES, "expected blocks 0 to 4, which key has"),
    Case(PAGES, "block_table", ending(-1), VALUES, "expected blocks 0 to 4, which key has"),
    Case(PAGES, "block_size", becoming(16), PARAMETER, "key has the shape [5, 8, 32]; expected [_, 16, _]"),
    Case(PAGES, "actual_seq_lengths_kv", becoming([10, 17]), VALUES, "each must be from 0 to 16"),
    Case(FA, "key", narrower(3), PARAMETER, "key[b, n, sk, d]: dimension 3 is 15, but dimension d is 16 by query[3]"),
    Case(FA, "key", narrower(0), PARAMETER, "key[b, n, sk, d]: dimension 0 is 1, but dimension b is 2 by query[0]"),
    Case(FA, "value", narrower(2), PARAMETER, "value[b, n, sk, dv]: dimension 2 is 4, but dimension sk is 5"),
    Case(FA, "head_num", becoming(2), PARAMETER, "dimension head_num is 2 by attr head_num"),
    Case(TND, "actual_seq_qlen", becoming([3, 8]), VALUES, "as many sequences in both, up to 7 queries"),
    Case(TND, "actual_seq_kvlen", becoming([6, 4]), VALUES, "must not fall"),
    Case(GRAD, "dy", wider(2), PARAMETER, "dy[b, head_num, sq, dv]: dimension 2 is 4, but dimension sq is 3"),
    Case(GRAD, "softmax_max", narrower(3), PARAMETER, "softmax_max[b, head_num, sq, 8]"),
    Case(GRAD, "attention_in", narrower(1), PARAMETER, "attention_in[b, head_num, sq, dv]"),
    Case(
        CHANNEL,
        "key_antiquant_scale",
        narrower(1),
        PARAMETER,
        "key_antiquant_scale of shape (2, 15) is not valid; expected [1] or [32] or [2, 16] or [2, 1, 16]",
    ),
    Case(
        CHANNEL,
        "value_antiquant_offset",
        narrower(0),
        PARAMETER,
        "value_antiquant_offset of shape (1, 16) must have the shape of the scale, (2, 16)",
    ),
    Case(CHANNEL, "key", lambda x: x.to(HALF), PARAMETER, ""),
    Case(CHANNEL, "value_antiquant_mode", becoming(2), PARAMETER, "they are the same, or 0 and 1"),
    Case(
        TOKEN,
        "key_antiquant_scale",
        narrower(2),
        PARAMETER,
        "key_antiquant_scale of shape (1, 2, 5) is not valid; expected [2, 6], as mode 1, by token",
    ),
    Case(
        TOKEN,
        "value_antiquant_scale",
        narrower(1),
        PARAMETER,
        "value_antiquant_scale of shape (1, 1, 6) is not valid; expected [2, 6]",
    ),
    Case(
        HEAD,
        "key_antiquant_scale",
        narrower(0),
        PARAMETER,
        "key_antiquant_scale of shape (1,) is not valid; expected [2]",
    ),
    Case(HEAD, "key_antiquant_scale", becoming(None), PARAMETER, "antiquant_scale absent; integers need it"),
    Case(
        "npu_mla_prolog_v3",
        "dequant_scale_w_uq_qr",
        narrower(1),
        PARAMETER,
        "dequant_scale_w_uq_qr[1, u]: dimension 1 is 63",
    ),
    Case("npu_mla_prolog_v3", "smooth_scales_cq", flatter, PARAMETER, "smooth_scales_cq[1, hcq]"),
    Case("npu_mla_prolog_v3", "rope_cos", narrower(0), PARAMETER, "*t"),
    Case("npu_mla_prolog_v3", "cache_index", ending(12), VALUES, "slot_mapping has 12; expected -1 to 11"),
    Case("npu_ffn", "deq_scale1", narrower(1), PARAMETER, "deq_scale1[experts, n1]: dimension 1 is 31"),
    Case("npu_ffn", "deq_scale2", narrower(0), PARAMETER, "deq_scale2[experts, n2]: dimension 0 is 2"),
    Case("npu_ffn", "scale", narrower(0), PARAMETER, "scale[experts]: dimension 0 is 2"),
    Case("npu_ffn", "offset", narrower(0), PARAMETER, "offset[experts]: dimension 0 is 2"),
    Case("npu_ffn", "weight2", narrower(1), PARAMETER, "must hold; activation is 'relu', n1 is 32, k2 is 31"),
    Case("npu_ffn", "expert_tokens", becoming([3, 5]), PARAMETER, "expert_tokens[experts]: dimension 0 is 2"),
    Case("npu_ffn", "expert_tokens", becoming([3, 0, 6]), VALUES, "nor exceed 8 rows"),
    Case(
        "npu_ring_attention_update of packed sequences",
        "actual_seq_qlen",
        ending(5),
        VALUES,
        "must not fall, nor exceed T, 4",
    ),
    Case("npu_weight_quant_batchmatmul", "antiquant_scale", narrower(0), PARAMETER, ""),
    Case(
        "npu_weight_quant_batchmatmul",
        "antiquant_scale",
        wider(0),
        PARAMETER,
        "antiquant_scale of shape (3, 8) is not valid; expected [2, 8], for groups of 32 of 64 rows",
    ),
    Case("npu_weight_quant_batchmatmul", "antiquant_offset", wider(0), PARAMETER, "antiquant_offset of shape (3, 8)"),
    Case(
        "npu_grouped_matmul of floats and integers",
        "antiquant_scale",
        lambda s: [narrower(1)(s[0])],
        PARAMETER,
        "antiquant_scale of shape (3, 7) is not valid; expected [3, 8]",
    ),
    Case(
        "npu_grouped_matmul of floats and integers",
        "antiquant_offset",
        lambda s: [narrower(0)(s[0])],
        PARAMETER,
        "antiquant_offset of shape (2, 8) is not valid; expected [3, 8]",
    ),
    Case(
        "npu_prompt_flash_attention",
        "value",
        narrower(1),
        PARAMETER,
        "value has the shape [2, 3, 6, 16]; expected [2, 4, _, _]",
    ),
    Case("npu_incre_flash_attention", "key", narrower(0), PARAMETER, "key"),
    Case("npu_lightning_indexer", "weights", narrower(2), PARAMETER, "weights[b, s, n]: dimension 2 is 7"),
    Case("npu_lightning_indexer", "block_table", narrower(0), PARAMETER, "block_table[b, _]: dimension 0 is 1"),
    Case("npu_lightning_indexer", "block_table", ending(4), VALUES, "there are 4 blocks of 16"),
    Case(
        "npu_sparse_flash_attention", "query_rope", narrower(1), PARAMETER, "query_rope[b, s, n, dr]: dimension 1 is 2"
    ),
    Case("npu_sparse_flash_attention", "key_rope", narrower(1), PARAMETER, "key_rope[b, y, 1, dr]: dimension 1 is 7"),
    Case("npu_scatter_pa_kv_cache", "key", narrower(2), PARAMETER, "key_cache[blocks, size, h, d]: dimension 3 is 32"),
    Case("npu_scatter_pa_kv_cache", "slot_mapping", narrower(0), PARAMETER, "slot_mapping[t]: dimension 0 is 1"),
    Case("npu_scatter_pa_kv_cache", "slot_mapping", ending(24), VALUES, "slot_mapping has 24; expected -1 to 23"),
    Case(
        "npu_scatter_pa_kv_cache", "value_cache", narrower(3), PARAMETER, "value_cache[_, _, h, dv]: dimension 3 is 31"
    ),
    Case("npu_kv_rmsnorm_rope_cache", "kv", narrower(3), PARAMETER, "w == g + r must hold; w is 575"),
    Case("npu_kv_rmsnorm_rope_cache", "cos", narrower(0), PARAMETER, "cos[b, 1, sc, r]: dimension 0 is 1"),
    Case("npu_kv_rmsnorm_rope_cache", "index", ending(32), VALUES, "index has 32; expected -1 to 31"),
    Case("npu_scatter_nd_update_", "updates", narrower(1), PARAMETER, "updates of (2, 3) are expected"),
    Case("npu_scatter_nd_update_", "indices", ending(4), VALUES, "indices of dimension 1 has 4; expected 0 to 3"),
    Case("npu_scatter_nd_update_", "indices", ending(-1), VALUES, "indices of dimension 1 has -1; expected 0 to 3"),
    Case("npu_rotary_mul", "r1", narrower(3), PARAMETER, "dimension"),
    Case("npu_interleave_rope", "cos", narrower(3), PARAMETER, "cos[b, nc, sc, d]: dimension 3 is 63"),
    Case("npu_apply_rotary_pos_emb", "cos", flatter, PARAMETER, ""),
    Case("npu_moe_init_routing_v2", "expert_idx", narrower(0), PARAMETER, "expert_idx[n, k]: dimension 0 is 3"),
    Case("npu_moe_init_routing_v2", "expert_idx", ending(7), VALUES, "expert_idx has 7; expected 0 to 6"),
    Case("npu_moe_finalize_routing", "scales", narrower(0), PARAMETER, "scales[n, chosen]: dimension 0 is 3"),
    Case("npu_moe_finalize_routing", "expanded_src_to_dst_row", narrower(0), PARAMETER, "must hold; choices is 7"),
    Case("npu_moe_finalize_routing", "expanded_src_to_dst_row", ending(8), VALUES, "there are rows 0 to 7"),
    Case("npu_moe_finalize_routing", "export_for_source_row", ending(6), VALUES, "expert_idx has 6; expected 0 to 5"),
    Case("npu_moe_token_permute", "indices", narrower(0), PARAMETER, "indices[t, k]: dimension 0 is 3"),
    Case("npu_moe_token_unpermute", "sorted_indices", narrower(0), PARAMETER, "must hold; choices is 7"),
    Case("npu_moe_token_unpermute", "sorted_indices", ending(-1), VALUES, "must not be negative"),
    Case("npu_moe_gating_top_k", "k", becoming(9), PARAMETER, "k 9"),
    Case("npu_moe_compute_expert_tokens", "sorted_expert_for_source_row", ending(0), VALUES, "must not fall"),
    Case(
        "npu_grouped_matmul",
        "weight",
        lambda w: [narrower(1)(w[0])],
        PARAMETER,
        "x [6, 16] and weight [3, 15, 8] cannot be multiplied",
    ),
    Case("npu_grouped_matmul", "group_list", narrower(0), PARAMETER, "group_list of shape (2,): expected [3]"),
    Case("npu_grouped_matmul", "group_list", ending(2), VALUES, "must not be negative"),
    Case("npu_grouped_matmul", "group_list", ending(7), VALUES, "nor exceed 6 rows"),
    Case("npu_quant_matmul", "scale", narrower(0), PARAMETER, "scale has 7 numbers"),
    Case("npu_quant_matmul", "pertoken_scale", narrower(0), PARAMETER, ""),
    Case("npu_rms_norm", "gamma", narrower(0), PARAMETER, "dimension 0 of *r is 7 by gamma, but 8 by x"),
    Case("npu_rms_norm", "input", lambda x: x.double(), PARAMETER, "x is DOUBLE; expected FLOAT, FLOAT16, BF16"),
    Case("npu_add_rms_norm", "x2", narrower(0), PARAMETER, "dimension 0 of *s is 3 by x1, but 2 by x2[*s]"),
    Case("npu_top_k_top_p", "k", narrower(0), PARAMETER, "k[b]: dimension 0 is 2"),
]


def called(valid: str, arguments: Arguments) -> None:
    name = valid.partition(" ")[0]
    if not hasattr(torch_npu, name) and is_before_2_13():
        pytest.skip(f"torch_npu {torch_npu.__version__} has no {name}")
    getattr(torch_npu, name)(**arguments)
    torch.npu.synchronize()


@pytest.mark.parametrize("valid", VALID)
def test_a_valid_call_runs(valid: str) -> None:
    called(valid, {name: to_npu(value) for name, value in VALID[valid]().items()})


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.valid}-{case.argument}")
def test_an_invalid_argument_is_refused_by_code_and_name(case: Case) -> None:
    arguments = VALID[case.valid]()
    arguments[case.argument] = case.change(arguments[case.argument])
    given = {name: to_npu(value) for name, value in arguments.items()}
    with pytest.raises(RuntimeError) as caught:
        called(case.valid, given)
    assert f"error code is {case.code}" in str(caught.value)
    assert case.text in str(caught.value)
    for name, value in given.items():
        if isinstance(value, T):
            assert torch.equal(value.cpu(), arguments[name]), f"{name} was written to"


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_graph_with_a_shape_that_does_not_fit_is_refused_by_its_node(dynamic: bool) -> None:
    graph = torch.compile(
        lambda x, row_idx, expert_idx: torch_npu.npu_moe_init_routing(x, row_idx, expert_idx, active_num=4)[0],
        backend=torchair.get_npu_backend(),
        dynamic=dynamic,
        fullgraph=True,
    )
    rows = torch.arange(8, dtype=INT32).reshape(2, 4).t().contiguous()
    experts = numbers([0, 1], [2, 1], [5, 0], [3, 2])
    assert graph(*to_npu([half(4, 8), rows, experts])).shape == (8, 8)
    with pytest.raises(RuntimeError, match=r"MoeInitRouting.*row_idx\[n, k\]: dimension 0 is 3, but dimension n is 4"):
        graph(*to_npu([half(4, 8), rows[:3], experts]))


def test_a_graph_with_a_dtype_that_documents_leave_out_is_refused_by_its_node() -> None:
    graph = torch.compile(
        lambda x: torch_npu.npu_swiglu(x), backend=torchair.get_npu_backend(), dynamic=False, fullgraph=True
    )
    assert graph(half(3, 8).npu()).shape == (3, 4)
    with pytest.raises(RuntimeError, match=r"SwiGlu.*: x is DOUBLE; expected FLOAT, FLOAT16, BF16"):
        graph(half(3, 8).double().npu())
