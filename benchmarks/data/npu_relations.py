"""Shape relations for the operators with hand-written meta functions in torch_npu.

There is one entry per registration in torch_npu/op_plugin/meta/_meta_registrations.py with no output, no branch, or few
branches: the relation expresses the function in one to three lines. ``attrs`` are values to compare with, in addition to the
schema's defaults; ``optional`` are the inputs that may be absent (by default all optional arguments in the relation).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch


@dataclass(frozen=True, slots=True)
class RelationEntry:
    """Relation with the attr values and dtypes to try it with."""

    relation: str
    attrs: Mapping[str, Sequence[object]] = field(default_factory=dict)
    #: Inputs that are always given although they are optional in the schema.
    given: Sequence[str] = ()
    dtypes: Sequence[str] = ("float16", "float32", "bfloat16")
    #: Sizes to choose dimensions from, if the default sizes do not suffice.
    sizes: Sequence[int] = ()


NONE = RelationEntry("->")
LIKE_INPUT = RelationEntry("input -> y like input")
INPUT_ITSELF = RelationEntry("input -> input")
LIKE_X = RelationEntry("x -> y like x")

NO_OUTPUT: dict[str, RelationEntry] = {
    "npu_scatter_pa_kv_cache": NONE,
    "npu_prefetch": RelationEntry("-> where max_size > 0, offset >= 0", {"max_size": [1, 1024], "offset": [0, 16]}),
    "npu_fused_causal_conv1d_v2": NONE,
    "npu_attention_to_ffn": NONE,
    "npu_ffn_to_attention": NONE,
}

LIKE_AN_INPUT: dict[str, RelationEntry] = {
    "ffn_worker_scheduler_": INPUT_ITSELF,
    "attention_worker_scheduler_": INPUT_ITSELF,
    "ffn_worker_scheduler": LIKE_INPUT,
    "attention_worker_scheduler": LIKE_INPUT,
    "npu_softmax_cross_entropy_with_logits_backward": LIKE_INPUT,
    "_npu_index_add": LIKE_INPUT,
    "_npu_index_add_": INPUT_ITSELF,
    "npu_fused_floyd_attention_backward": RelationEntry(
        "query_ik, key_ij, value_ij, key_jk, value_jk -> dq like query_ik, dk0 like key_ij, dv0 like value_ij, "
        "dk1 like key_jk, dv1 like value_jk"
    ),
    "npu_lightning_indexer_grad": RelationEntry(
        "query[*q], key[*k], weights[*w] -> dq[*q], dk[*k]: key, dw[*w]: weights"
    ),
    "npu_rotary_mul": RelationEntry("input[*s] -> y[*s]"),
    "npu_rotary_mul_backward": RelationEntry("input, r1, r2 -> dx like input, dr1 like r1: input, dr2 like r2: input"),
    "fast_gelu": LIKE_INPUT,
    "npu_fast_gelu_backward": LIKE_INPUT,
    "npu_fast_gelu": LIKE_INPUT,
    "npu_gelu": LIKE_INPUT,
    "npu_gelu_backward": LIKE_INPUT,
    "npu_silu": LIKE_INPUT,
    "npu_silu_backward": RelationEntry("grad_output -> dx like grad_output"),
    "npu_layer_norm_eval": LIKE_INPUT,
    "_npu_format_cast": RelationEntry("input[*s] -> y[*s]"),
    "_npu_format_cast.aclnn": RelationEntry("input[*s] -> y[*s]"),
    "_npu_format_cast.input_dtype": RelationEntry("input[*s] -> y[*s]"),
    "npu_block_sparse_attention_backward": RelationEntry(
        "query[*q], key[*k], value[*v] -> dq[*q], dk[*k]: key, dv[*v]: value"
    ),
    "npu_transpose": RelationEntry(
        "input[*s@perm] -> y[*s]", {"perm": [[0], [1, 0], [0, 2, 1], [2, 0, 1], [3, 1, 0, 2]]}
    ),
    "npu_deep_norm_backward": RelationEntry(
        "x, gx, gamma -> dx like x, dgx like gx, dbeta like gamma, dgamma like gamma"
    ),
    "npu_rms_norm_backward": RelationEntry("input, gamma -> dx like input, dgamma like gamma: float32"),
    "scatter_update": LIKE_INPUT,
    "scatter_update_": INPUT_ITSELF,
    "npu_quant_scatter": LIKE_INPUT,
    "npu_quant_scatter_": INPUT_ITSELF,
    "npu_scatter_list_": RelationEntry("mask ->", {"reduce": ["add"], "axis": [-1]}, given=["mask"]),
    "npu_scatter_nd_update": LIKE_INPUT,
    "npu_scatter_nd_update_": INPUT_ITSELF,
    "npu_scatter_pa_kv_cache_functional": RelationEntry(
        "key_cache, value_cache -> k like key_cache, v like value_cache"
    ),
    "npu_geglu_grad": RelationEntry(
        "input -> dx like input", {"dim": [0], "approximate": [0], "activate_left": [True]}
    ),
    "npu_dropout_backward": RelationEntry("grad_output -> dx like grad_output"),
    "npu_masked_softmax_with_rel_pos_bias": LIKE_X,
    "npu_scaled_masked_softmax": LIKE_X,
    "npu_scaled_masked_softmax_backward": RelationEntry("y_grad -> dx like y_grad"),
    "_npu_distribute_barrier": RelationEntry("x_ref -> y like x_ref"),
    "npu_grouped_matmul_add_": RelationEntry("input -> input where group_type == 2"),
    "npu_add_quant_gmm_": RelationEntry("input, x1[m, _], x2[k, n] -> input"),
    "npu_add_quant_gmm": RelationEntry("input, x1[m, _], x2[k, n] -> y like input"),
    "npu_add_quant_matmul_": INPUT_ITSELF,
    "npu_add_quant_matmul": LIKE_INPUT,
    "obfuscation_calculate": RelationEntry("x -> y like x", {"obf_coefficient": [0.5]}),
    "obfuscation_finalize": RelationEntry("fd_to_close -> y like fd_to_close"),
    "npu_apply_rotary_pos_emb": RelationEntry("query, key -> q like query, k like key"),
    "npu_swiglu_backward": LIKE_INPUT,
    "npu_masked_causal_conv1d": LIKE_INPUT,
    "npu_masked_causal_conv1d_backward": RelationEntry(
        "grad_output, weight -> dx like grad_output, dw like weight: grad_output"
    ),
    "npu_fused_causal_conv1d": LIKE_X,
    "npu_interleave_rope": LIKE_X,
    "npu_batch_gather_matmul": LIKE_INPUT,
    "npu_batch_gather_matmul_": INPUT_ITSELF,
    "npu_attention_update": RelationEntry("lse[i][*l], local_out[i][*s] -> y[*s]: local_out, lse_out[*l]: lse"),
    "npu_ring_attention_update": RelationEntry(
        "prev_attn_out[a, b, c]: (float16, float32, bfloat16), prev_softmax_max[*s, 8]: float32, "
        "prev_softmax_sum[*s, 8]: float32, cur_attn_out[a, b, c]: prev_attn_out, cur_softmax_max[*s, 8]: float32, "
        "cur_softmax_sum[*s, 8]: float32, actual_seq_qlen: int64 -> attn like prev_attn_out, "
        "max like prev_softmax_max, sum like prev_softmax_sum "
        'where input_layout in ("SBH", "TND"), input_softmax_layout in ("", "SBH", "TND"), '
        'rank(prev_softmax_max) == (4 if input_layout == "SBH" else 3), actual_seq_qlen or input_layout == "SBH"',
        {"input_layout": ["SBH", "TND"], "input_softmax_layout": ["", "SBH", "TND"]},
    ),
    "npu_mrope": RelationEntry("query, key -> q like query, k like key"),
    "npu_top_k_top_p": RelationEntry("logits, p, k -> y like logits", given=["p", "k"]),
    "npu_gather_pa_kv_cache_functional": RelationEntry("key[*k], value[*v] -> key_out[*k], value_out[*v]: value"),
    "npu_sim_exponential_": INPUT_ITSELF,
    "npu_grouped_matmul_add": RelationEntry("input -> y like input where group_type == 2"),
    "npu_cross_entropy_loss_backward": RelationEntry("log_prob -> dx like log_prob"),
    "npu_apply_adam_w.out": RelationEntry("out[i][*s[i]] -> var = out[0], m = out[1], v = out[2] where len(out) == 3"),
    "repeat_interleave_backward_int": LIKE_INPUT,
    "kl_div_backward": LIKE_INPUT,
    "npu_dropout_with_add_softmax": RelationEntry(
        "input[...], x1[...] -> mask[prod(...)]: uint8, softmax[...]: promote(input, x1), y[...]: promote(input, x1)",
        {"dim": [-1]},
    ),
    "l1_loss_backward": LIKE_INPUT,
    "npu_linear_backward": RelationEntry("input, weight -> dx like input, dw like weight"),
    "npu_fused_attention_score_backward": RelationEntry(
        "grad_output -> dq like grad_output, dk like grad_output, dv like grad_output"
    ),
}

_LIGHTNING = RelationEntry(
    "query_index[*q], key_index[*k], weights[*w] -> dq[*q], dk[*k]: key_index, dw[*w]: weights, loss[1]: float32"
)
_ROPE_CACHE = (
    "k_cache[_, _, h, d], v_cache -> q[*t, size_splits[0] // d if d != 0 else 0, d]: cos, "
    "k[*t, h, d] if kv_output else [0]: cos, v[*t, h, d] if kv_output else [0]: cos, kc = k_cache, vc = v_cache "
    "where rank(x) in (2, 3), len(size_splits) == 3, size_splits[0] >= 0"
)
_ROPE_ATTRS: dict[str, Sequence[object]] = {"kv_output": [False, True], "size_splits": [[64, 16, 16], [0, 8, 8]]}

FROM_SIZES: dict[str, RelationEntry] = {
    "batch_norm_gather_stats_update": RelationEntry("input[_, c, *rest], mean -> m[c]: mean, invstd[c]: mean"),
    "npu_mhc_post": RelationEntry("x[*s] -> y[*s]"),
    "npu_softmax_cross_entropy_with_logits": RelationEntry("input[n, *rest] -> loss[n]: float32"),
    "npu_fused_floyd_attention": RelationEntry(
        "query_ik[b, n, s, t, *d] -> max[b, n, s, t, 8]: float32, sum[b, n, s, t, 8]: float32, y like query_ik"
    ),
    "npu_sparse_lightning_indexer_grad_kl_loss": _LIGHTNING,
    "npu_dense_lightning_indexer_grad_kl_loss": _LIGHTNING,
    "npu_gelu_mul": RelationEntry("input[*s, n] -> y[*s, n // 2]"),
    "npu_bmmV2": RelationEntry("input[b, m, k], mat2[b, k, n] -> y[b, m, n]"),
    "_npu_dropout": RelationEntry("input -> y like input, mask[ceildiv(numel(input), 128) * 16]: uint8"),
    "npu_geglu": RelationEntry(
        "input[*s, n@dim] -> y[*s, (n // 2)@dim], gelu[*s, (n // 2)@dim] where n % 2 == 0", {"dim": [-1, 0, 1, -2]}
    ),
    "npu_moe_distribute_combine": RelationEntry("expand_x[_, h], expert_ids[bs, _] -> y[bs, h]"),
    "npu_moe_distribute_combine_v2": RelationEntry("expand_x[_, h], expert_ids[bs, _] -> y[bs, h]"),
    "npu_moe_distribute_combine_add_rms_norm": RelationEntry(
        "expand_x[_, h], expert_ids[bs, _] -> y[bs, 1, h], rstd[bs, 1, 1]: float32, x[bs, 1, h]"
    ),
    "npu_moe_update_expert": RelationEntry("expert_ids[m, k] -> ids[m, k], mask[m, k]: bool"),
    "npu_matmul_compress_dequant": RelationEntry(
        "x1[m, _]: int8, x2[_]: int8, compress_index[_]: int8, bias[_, n]: int32, scale[_, _]: uint64 "
        "-> y[m, n]: float16"
    ),
    "npu_quant_matmul_dequant": RelationEntry(
        "x[m, k]: float16, quantized_weight[n, k]: int8, weight_scale[n]: float32 -> y[m, n]"
    ),
    "npu_quant_matmul_reduce_sum": RelationEntry(
        "x1[b, m, k], x2[b, k, n], x1_scale[_, _], x2_scale[_] -> y[m, n]: bfloat16 where x1_scale and x2_scale"
    ),
    "npu_quant_grouped_matmul_dequant": RelationEntry(
        "x[m, k]: float16, quantized_weight[e, n, k]: int8, weight_scale[e, n]: float32 -> y[m, n]"
    ),
    "npu_linear": RelationEntry("input[m, k], weight[n, k] -> y[m, n]"),
    "npu_dequant_rope_quant_kvcache": RelationEntry(f"x[*t, _]: int32, cos, {_ROPE_CACHE}", _ROPE_ATTRS),
    "npu_rope_quant_kvcache": RelationEntry(f"x[*t, _], cos, {_ROPE_CACHE}", _ROPE_ATTRS),
    "_npu_moe_token_unpermute": RelationEntry(
        "permuted_tokens[_, h], sorted_indices[n], probs[_, k] -> y[n // k if probs else n, h], p = permuted_tokens"
    ),
    "npu_moe_token_permute_grad": RelationEntry(
        "tokens[n, d], grad_permuted_tokens[_, _], indices, sorted_indices[_] -> dx[n, d] where rank(indices) in (1, 2)"
    ),
    "npu_grouped_matmul_swiglu_quant": RelationEntry(
        "x[m, *k], weight_scale[*e, n] -> y[m, n // 2]: int8, scale[m]: float32, offset[]: float32"
    ),
    "npu_recurrent_gated_delta_rule": RelationEntry("value[t, h, d] -> y[t, h, d]: bfloat16"),
    "npu_recurrent_gated_delta_rule_functional": RelationEntry(
        "value[t, h, d], state[a, b, c, e] -> y[t, h, d]: bfloat16, final[a, b, c, e]: state"
    ),
    "batch_norm_reduce": RelationEntry("input[_, c, *rest] -> sum[c]: float32, square_sum[c]: float32"),
    "npu_chunk_gated_delta_rule": RelationEntry(
        "value[t, h, d], initial_state[a, b, c, e] -> y[t, h, d]: bfloat16, final[a, b, c, e]: initial_state",
        given=["initial_state"],
    ),
    "npu_lstm_cell": RelationEntry(
        "input[b, *x], w_hh[_, g, *rest] -> y[1, b, n], h[b, n], c[b, n], i[1, b, n], j[1, b, n], f[1, b, n], "
        "o[1, b, n], tanhc[1, b, n] where n = g // 4"
    ),
    "npu_lstm_cell_backward": RelationEntry(
        "input, w_ih, w_hh, h, c, y_output[_, _, n] -> dx like input, dw_ih like w_ih, dw_hh like w_hh, "
        "db_ih[4 * n], db_hh[4 * n], dh like h, dc like c"
    ),
    "npu_fused_attention_score_fwd": RelationEntry(
        "query_layer[b, n, s, d] -> y[b * s, n * d], softmax[b, n, s, s], mask[b * n * s * s]: uint8"
    ),
    "npu_fused_attention_score": RelationEntry("query_layer[b, n, s, d] -> y[b * s, n * d]"),
    "npu_iou": RelationEntry("bboxes[m, *x], gtboxes[n, *y] -> iou[n, m]"),
    "_npu_matmul_abft_verify": RelationEntry(
        "a[m, k]: T, b[k, n]: T, c[m, n]: float32, checksum_weight[n]: T "
        "-> y[ceildiv(m, 8) * ceildiv(n, 256)]: uint8 where dtype(a) in (float16, bfloat16, float32), e_max >= 0"
    ),
}

_ALL_TO_ALL = "where k != 0, n != 0, world_size != 0"

FROM_ATTRS: dict[str, RelationEntry] = {
    "npu_moe_init_routing": RelationEntry(
        "x[n, h], row_idx[_, k] -> ex[min(n, active_num) * k, h], er[n * k]: row_idx, ee[n * k]: row_idx",
        {"active_num": [1, 4, 99]},
    ),
    "npu_reshape": RelationEntry("input -> y[*shape]", {"shape": [[6], [2, 3], [4, 1, 5]]}),
    "npu_group_norm_swish": RelationEntry(
        "input[n, *s] -> y like input, mean[n, num_groups], rstd[n, num_groups]", {"num_groups": [1, 2, 4]}
    ),
    "npu_matmul_all_to_all": RelationEntry(
        f"x1[m, k], x2[k, n] -> y[m * world_size, n // world_size] {_ALL_TO_ALL}, n % world_size == 0",
        {"world_size": [1, 2, 4]},
    ),
    "npu_moe_compute_expert_tokens": RelationEntry("-> y[num_expert]: int32", {"num_expert": [1, 8]}),
    "npu_moe_token_unpermute_with_routing_map": RelationEntry(
        "permuted_tokens -> y[restore_shape[0], restore_shape[1]]", {"restore_shape": [[4, 8], [16, 3]]}
    ),
    "npu_conv2d": RelationEntry(
        "input[n, _, h, w], weight[o, _, kh, kw] -> y[n, o, ho, wo] "
        "where ho = (h + 2 * padding[0] - dilation[0] * (kh - 1) - 1) // stride[0] + 1, "
        "wo = (w + 2 * padding[1] - dilation[1] * (kw - 1) - 1) // stride[1] + 1, ho > 0 and wo > 0",
        {"stride": [[1, 1], [2, 3]], "padding": [[0, 0], [1, 2]], "dilation": [[1, 1], [2, 1]]},
    ),
    "npu_ps_roi_pooling": RelationEntry(
        "input, rois[b, _, n] -> y[b * n, output_dim, group_size, group_size]",
        {"group_size": [3, 7], "output_dim": [8, 21]},
    ),
    "npu_multi_head_attention_backward": RelationEntry(
        "query[n, *x], key, value, query_weight, key_weight, value_weight, out_proj_weight -> "
        "dqw[e, e]: query_weight, dkw[e, e]: key_weight, dvw[e, e]: value_weight, dow[e, e]: out_proj_weight, "
        "dq[n, e], dk[b * src_len, e]: key, dv[b * src_len, e]: value, "
        "dqb[1, e], dkb[1, e]: key, dvb[1, e]: value, dob[1, e] "
        "where e = attn_head_num * attn_dim_per_head, b = n // tgt_len",
        {"attn_head_num": [2, 8], "attn_dim_per_head": [16, 64], "src_len": [1, 4], "tgt_len": [1, 2]},
    ),
    "_npu_dtype_cast": RelationEntry("input[*s] -> y[*s]: dtype", {"dtype": ["float16", "int8"]}),
    "_npu_dtype_cast_backward": RelationEntry("grad[*s] -> y[*s]: dtype", {"dtype": ["float16", "int8"]}),
    "_npu_rms_norm_backward_quant": RelationEntry(
        "dy[*s], gamma[*g] -> dx[*s]: dst_type, dgamma[*g]: float32", {"dst_type": [1, 291, 292]}
    ),
    "npu_moe_token_permute_grad_v2": RelationEntry(
        "grad_permuted_tokens[_, d], sorted_indices[_] -> dx[tokens_size_0, d]: tokens_dtype",
        {"tokens_size_0": [4, 9], "tokens_dtype": ["float16", "bfloat16"]},
    ),
}

_ROUTED = "restore_shape[0], restore_shape[1]"

BY_PRESENCE: dict[str, RelationEntry] = {
    "npu_sparse_flash_attention_grad": RelationEntry(
        "query[*q], key[*k], value[*v], query_rope[*qr], key_rope[*kr] -> dq[*q], dk[*k]: key, "
        "dv[*v]: value if value else [0]: query, dqr[*qr]: query_rope if query_rope else [0]: query, "
        "dkr[*kr]: key_rope if key_rope else [0]: key",
        given=["value"],  # its absence is refused below CANN 9.2
    ),
    "npu_moe_gating_top_k": RelationEntry(
        "x[m, n], bias[_], input_ids[m], tid2eid[_, k] -> y[m, k], expert_idx[m, k]: int32, out[m, n]: float32 "
        "where (input_ids is None) == (tid2eid is None)",
        {"k": [1, 4, 8]},
    ),
    "npu_fusion_attention_grad": RelationEntry(
        "query[*q], key[*k], value[*v], sink[*s] -> dq[*q], dk[*k], dv[*v], dpse None, "
        "dsink[*s]: sink if sink else [0]: float32"
    ),
    "npu_quant_fusion_attention_backward": RelationEntry(
        "query, key, value -> dq like query: bfloat16, dk like key: bfloat16, dv like value: bfloat16, dpse[0]: bfloat16, "
        "dq_rope[0]: bfloat16, dk_rope[0]: bfloat16, dsink None"
    ),
    "npu_fusion_attention_grad_v2": RelationEntry(
        "query, key, value, sink -> dq like query, dk like key: query, dv like value: query, dpse[0], dq_rope[0], "
        "dk_rope[0], dsink like sink if sink else None"
    ),
    "npu_group_norm_silu": RelationEntry(
        "input[n, *s], weight, bias -> y like input, mean[n, group]: weight if weight and bias else input, "
        "rstd[n, group]: bias if weight and bias else input",
        {"group": [1, 4]},
    ),
    "npu_moe_token_permute_with_routing_map_grad": RelationEntry(
        "permuted_token_out_grad[_, h], probs_grad -> dx[tokens_num, h], "
        "dp[tokens_num, experts_num]: probs_grad if probs_grad else None",
        {"tokens_num": [4, 7], "experts_num": [2, 8]},
    ),
    "npu_moe_token_unpermute": RelationEntry(
        "permuted_tokens[_, h], sorted_indices[n], probs[_, k] -> y[n // k if probs else n, h]"
    ),
    "npu_moe_token_unpermute_grad": RelationEntry(
        "permuted_tokens[_, _], grad_unpermuted_tokens[_, _], sorted_indices[_], probs -> dx like permuted_tokens, "
        "dp like probs if probs else None"
    ),
    "npu_moe_token_unpermute_grad_v2": RelationEntry(
        "grad_unpermuted_tokens[_, h], sorted_indices[_], probs[_, _] -> "
        "dx[permuted_tokens_size_0, h]: permuted_tokens_dtype, dp like probs if probs else None",
        {"permuted_tokens_size_0": [4, 7], "permuted_tokens_dtype": ["float16", "bfloat16"]},
    ),
    "_npu_moe_token_unpermute_with_routing_map": RelationEntry(
        f"permuted_tokens, sorted_indices[*s], probs -> y[{_ROUTED}], out_index[*s]: sorted_indices, "
        "token_id[*s]: sorted_indices, p[*s]: probs if probs else None",
        {"restore_shape": [[4, 8], [16, 3]]},
    ),
    "npu_moe_token_unpermute_with_routing_map_grad": RelationEntry(
        "unpermuted_tokens_grad[_, h], out_index[n, *x], probs[*p] -> dx[n, h], dp[*p] if probs else None",
        {"restore_shape": [[4, 8]]},
    ),
    "npu_weight_quant_preprocess": RelationEntry(
        "weight, weight_scale, weight_offset, bias -> w like weight, scale like weight_scale, "
        "offset like weight_offset if weight_offset else [0]: weight, b like bias if bias else [0]: weight"
    ),
}

_QUERY = (
    'query[b, s, _, *x] if input_layout == "BSH" else [s, b, _, *x] if input_layout == "SBH" else [b, _, s, *x], '
    "key[_, _, _, *y] -> "
)
_SOFTMAX = "max[b, head_num, s, 8]: float32, sum[b, head_num, s, 8]: float32, "
_LAYOUTS: dict[str, Sequence[object]] = {"input_layout": ["BSH", "SBH", "BNSD"], "head_num": [1, 4]}
_QKV = (
    "q[t, head_nums[0] * d] if is_output_qkv else [], k[t, head_nums[1] * d] if is_output_qkv else [], "
    "v[t, head_nums[2] * d] if is_output_qkv else []"
)
_QKV_INPUTS = "qkv[t, _], q_gamma[_], k_gamma[_], cos[_, _], sin[_, _]"
_QKV_WHERE = "where len(qkv_size) == 4, len(head_nums) == 3, d = qkv_size[3]"
_QKV_ATTRS: dict[str, Sequence[object]] = {
    "qkv_size": [[2, 4, 8, 64], [1, 1, 6, 16]],
    "head_nums": [[4, 2, 2]],
    "is_output_qkv": [False, True],
}
_CIOU = "[n, m] if is_cross else [1, m]"
_CIOU_ATTRS: dict[str, Sequence[object]] = {"is_cross": [False, True]}

BY_ATTRS: dict[str, RelationEntry] = {
    "npu_ffn_worker_batching": RelationEntry(
        "-> y[m, max_out_shape[3]]: bfloat16 if token_dtype == 1 else int8 if token_dtype == 2 else float16, "
        "group_list[expert_num, 2]: int64, session_ids[m]: int32, micro_batch_ids[m]: int32, token_ids[m]: int32, "
        "offsets[m]: int32, scale[m]: float32, count[1]: int64 "
        "where m = max_out_shape[0] * max_out_shape[1] * max_out_shape[2]",
        {"expert_num": [2, 8], "max_out_shape": [[2, 3, 4, 64]], "token_dtype": [0, 1, 2]},
    ),
    "npu_quant_fusion_attention": RelationEntry(
        f"{_QUERY}y like query: bfloat16, {_SOFTMAX}softmax[0]: bfloat16, seed = 0, offset = 0, numels = 0", _LAYOUTS
    ),
    "npu_fusion_attention_v2": RelationEntry(
        f"{_QUERY}y like query, {_SOFTMAX}softmax[0], seed = seed, offset = offset, numels = 0", _LAYOUTS
    ),
    "npu_dense_lightning_indexer_softmax_lse": RelationEntry(
        'query_index[t, *q] if layout == "TND" else [b, s, *q], key_index[_, n, *k] if layout == "TND" else [_, _, n, *k]'
        ' -> max[n, t] if layout == "TND" else [b, n, s]: float32, sum[n, t] if layout == "TND" else [b, n, s]: float32',
        {"layout": ["TND", "BSND"]},
    ),
    "npu_gelu_quant": RelationEntry(
        'input[*s, _], input_scale -> y like input: dst_type, scale[*s]: float32 if quant_mode == "dynamic" else None '
        'where quant_mode in ("dynamic", "static"), input_scale or quant_mode == "dynamic"',
        {"quant_mode": ["dynamic", "static"], "dst_type": [1, 291, 292]},
    ),
    "npu_quant_matmul_all_to_all": RelationEntry(
        "x1[m, k], x2[k, n] -> y[m * world_size, n // world_size]: float32 if y_dtype is None else y_dtype "
        f"{_ALL_TO_ALL}, m != 0, n % world_size == 0",
        {"world_size": [1, 2, 4], "y_dtype": [None, 5, 15]},
    ),
    "npu_all_to_all_matmul": RelationEntry(
        "x1[m, k], x2[k * world_size, n] -> y[m // world_size, n], "
        f"a[m // world_size, k * world_size] if all2all_out_flag else None {_ALL_TO_ALL}, m % world_size == 0",
        {"world_size": [1, 2, 4], "all2all_out_flag": [False, True]},
    ),
    "npu_transpose_quant_batchmatmul": RelationEntry(
        "x1[*a], x2[*b] -> "
        "y[m, p, n] if batch_split_factor <= 1 else [batch_split_factor, m, p * n // batch_split_factor]: dtype "
        "where rank(x1) == 3, rank(x2) == 3, "
        "m = a[index(perm_x1, 1)], p = a[index(perm_x1, 0)], n = b[index(perm_x2, 2)]",
        {
            "dtype": [5, 15],
            "perm_x1": [[1, 0, 2], [0, 1, 2]],
            "perm_x2": [[0, 1, 2], [0, 2, 1]],
            "batch_split_factor": [1, 2],
        },
    ),
    "npu_qkv_rms_norm_rope_cache": RelationEntry(f"{_QKV_INPUTS} -> {_QKV} {_QKV_WHERE}", _QKV_ATTRS),
    "npu_qkv_rms_norm_rope_cache_functional": RelationEntry(
        f"{_QKV_INPUTS}, q_out, k_cache, v_cache -> {_QKV}, qo like q_out, kc like k_cache, vc like v_cache {_QKV_WHERE}",
        _QKV_ATTRS,
    ),
    "npu_moe_finalize_routing": RelationEntry(
        "expanded_permuted_rows[_, _, h] if drop_pad_mode in (1, 3) else [_, h], scales[r, *x], "
        "expanded_src_to_dst_row[n] -> y[r if scales else n // k if k > 0 else n, h]",
        {"drop_pad_mode": [0, 1, 2, 3], "k": [0, 1, 2]},
    ),
    "npu_dequant_bias": RelationEntry(
        "x -> y like x: float16 if output_dtype is None else output_dtype "
        "where output_dtype is None or dtype(output_dtype) in (float16, bfloat16)",
        {"output_dtype": [None, "float16", "bfloat16"]},
    ),
    "npu_moe_token_permute_with_routing_map": RelationEntry(
        "tokens[t, h], routing_map[a, b], probs -> y[m, h], p[m]: probs if probs else None, indices[m]: int32 "
        "where c = b if drop_and_pad else a, m = (t if num_out_tokens is None else num_out_tokens) // c * c",
        {"num_out_tokens": [None, 16, 100], "drop_and_pad": [False, True]},
    ),
    "npu_attention_worker_combine": RelationEntry(
        "expert_scales[b, *x], layer_id[n, *y] -> y[b, hidden_size]: bfloat16 if token_dtype == 1 else float16, "
        "next_layer_id[n]: int32",
        {"hidden_size": [64, 128], "token_dtype": [0, 1]},
    ),
    "npu_add_rms_norm_quant": RelationEntry(
        "x1[*s] -> y1[*s]: int8 if dst_type is None else dst_type, y2[*s]: int8 if dst_type is None else dst_type, "
        "x[*s] where axis == -1",
        {"dst_type": [None, 1, 291]},
    ),
    "npu_moe_token_permute": RelationEntry(
        "tokens[_, h], indices -> y[m, h], sorted[n]: int32 "
        "where rank(indices) in (1, 2), n = numel(indices), wanted = 0 if num_out_tokens is None else num_out_tokens, "
        "m = min(wanted, n) if wanted > 0 else wanted + n",
        {"num_out_tokens": [None, 0, 3, 1000, -2]},
    ),
    "npu_cross_entropy_loss": RelationEntry(
        'input[n, *s] -> loss[n] if reduction == "none" else [1], log_prob[n, *s], '
        'zloss[n] if reduction == "none" else [1], lse[n]',
        {"reduction": ["mean", "none", "sum"]},
    ),
    "npu_conv2d_backward": RelationEntry(
        "input[*x], weight[o, *w] -> dx[*x], dw[o, *w]: weight, db[o] if output_mask[2] else None",
        {"output_mask": [[True, True, True], [True, True, False]], "stride": [[1, 1]], "padding": [[0, 0]]},
    ),
    "npu_deformable_conv2d": RelationEntry(
        "input[n, c, h, w], weight[o, _, kh, kw], offset[_, _, _, _, *x] -> y[n, o, ho, wo], d[n, c, ho * kh, wo * kw] "
        "where len(stride) >= 4, len(dilation) >= 4, "
        "ho = (h + padding[0] + padding[1] - (kh - 1) * dilation[2] - 1) // stride[2] + 1, "
        "wo = (w + padding[2] + padding[3] - (kw - 1) * dilation[3] - 1) // stride[3] + 1",
        {
            "stride": [[1, 1, 2, 2]],
            "padding": [[1, 1, 2, 2]],
            "dilation": [[1, 1, 1, 1], [1, 1, 2, 2]],
            "kernel_size": [[3, 3]],
        },
    ),
    "npu_multi_head_attention": RelationEntry(
        "query[n, *x] -> y[n, e], mask[b * attn_head_num * tgt_len * src_len // 8]: uint8, "
        "q[b, attn_head_num, tgt_len, attn_dim_per_head], k[b, attn_head_num, src_len, attn_dim_per_head], "
        "v[b, attn_head_num, src_len, attn_dim_per_head], "
        "scores[b, attn_head_num, tgt_len, src_len]: float32 if softmax_use_float else query, "
        "res[b, attn_head_num, tgt_len, src_len], context[n, e] "
        "where e = attn_head_num * attn_dim_per_head, b = n // tgt_len",
        {
            "attn_head_num": [2, 8],
            "attn_dim_per_head": [16, 64],
            "src_len": [1, 4],
            "tgt_len": [1, 2],
            "softmax_use_float": [False, True],
        },
    ),
    "_npu_ciou": RelationEntry(f"input[_, m], gtboxes[_, n] -> ciou{_CIOU}, atan_sub{_CIOU}", _CIOU_ATTRS),
    "npu_ciou": RelationEntry(f"input[_, m], gtboxes[_, n] -> ciou{_CIOU}", _CIOU_ATTRS),
}

BY_RANK_OR_DTYPE: dict[str, RelationEntry] = {
    "npu_incre_flash_attention": RelationEntry(
        "query, quant_scale2 -> y like query: int8 if quant_scale2 else float16 if dtype(query) == int8 else query",
        dtypes=["float16", "int8", "bfloat16"],
    ),
    "npu_mhc_sinkhorn": RelationEntry(
        "x[t, *s, n] -> y[t, *s, n], norm[r * n * 8] if out_flag else None, sum[r * 8] if out_flag else None "
        "where rank(x) in (3, 4), n in (4, 6, 8), num_iters > 0, num_iters <= 100, "
        "r = 2 * num_iters * (t * s[0] if rank(x) == 4 else t)",
        {"num_iters": [1, 20, 100], "out_flag": [0, 1]},
        sizes=(4, 6, 8, 16, 32, 48),
    ),
    "npu_moe_gating_top_k_softmax": RelationEntry(
        "x[*s, _] -> y[*s, k], expert_idx[*s, k]: int32, row_idx[*s, k]: int32 where rank(x) in (2, 3)", {"k": [1, 4]}
    ),
    "npu_block_sparse_attention": RelationEntry(
        "query[*s, _], value[*v, d] -> y[*s, d], lse[*s, 1]: float32 where rank(query) in (3, 4), "
        "len(block_shape) >= 2, block_shape[1] % 128 == 0, dtype(query) != bfloat16 or inner_precise == 0",
        {"block_shape": [[128, 128], [64, 256]], "inner_precise": [0, 1]},
    ),
    "npu_anti_mx_quant": RelationEntry(
        "x[*s, n] -> y like x: dst_type if dtype(x) in (float8_e5m2, float8_e4m3fn) else [*s, n * 2]: dst_type "
        "where axis >= -rank(x), axis < rank(x)",
        {"dst_type": [15, 5], "axis": [-1, 0]},
        dtypes=["uint8", "float8_e5m2", "float8_e4m3fn"],
    ),
    "npu_swiglu_group_quant_backward": RelationEntry(
        "x, weight -> dx like x, dw like weight if weight and numel(weight) > 0 else [0]: float32"
    ),
    "npu_dynamic_block_quant": RelationEntry(
        "x[*s, m, n] -> y[*s, m, n]: dst_type, "
        "scale[*s, ceildiv(m, row_block_size), ceildiv(n, col_block_size)]: float32 where rank(x) in (2, 3)",
        {"dst_type": [1, 291], "row_block_size": [1, 128], "col_block_size": [64, 128]},
    ),
    "npu_grouped_dynamic_block_quant": RelationEntry(
        "x[*s, m, n], group_list[g, *x_] -> y[*s, m, n]: dst_type, "
        "scale[*s, m // row_block_size + g, ceildiv(n, col_block_size)]: float32 where rank(x) in (2, 3)",
        {"dst_type": [291, 292], "row_block_size": [1, 128], "col_block_size": [64, 128]},
    ),
}

BRANCH_FREE: dict[str, RelationEntry] = NO_OUTPUT | LIKE_AN_INPUT | FROM_SIZES | FROM_ATTRS
SMALL_BRANCHES: dict[str, RelationEntry] = BY_PRESENCE | BY_ATTRS | BY_RANK_OR_DTYPE


@dataclass(frozen=True, slots=True)
class Fix:
    """Fix of a hand-written function that, as registered, raises for every input."""

    #: Reason why no call through the dispatcher can return.
    reason: str
    #: Global names that the function reads and its module lacks, or that replace the ones it meant.
    names: Mapping[str, object] = field(default_factory=dict)


class _Torch:
    """Module torch in which ``empty_like`` of a list of sizes is ``empty``."""

    def __getattr__(self, name: str) -> object:
        return getattr(torch, name)

    @staticmethod
    def empty_like(like: torch.Tensor | list[int], **options: Any) -> torch.Tensor:
        return torch.empty(like, **options) if isinstance(like, list) else torch.empty_like(like, **options)


#: Functions of the wheel that cannot return. They are called as Python functions instead, by the names of their
#: parameters and with these names fixed; results beyond the schema's returns are left out.
FIXES: dict[str, Fix] = {
    "npu_scatter_list_": Fix("it returns its argument, the schema returns nothing"),
    "npu_geglu_grad": Fix("it returns two tensors, the schema one; and two of its parameters lack their defaults"),
    "obfuscation_calculate": Fix("its parameter cmd is not in the schema, and obf_coefficient is not a parameter"),
    # The kernels of these two return bfloat16, whatever the arguments.
    "npu_quant_fusion_attention": Fix("out_dtype is defined nowhere", {"out_dtype": 1}),
    "npu_quant_fusion_attention_backward": Fix(
        "out_dtype and sink are defined nowhere; empty_like([0])", {"out_dtype": 1, "sink": None, "torch": _Torch()}
    ),
    "npu_fusion_attention_grad_v2": Fix("empty_like([0], …) of a list", {"torch": _Torch()}),
}
