"""For each operator of torch.ops.npu with a hand-written converter: the GE name, and the ``arguments=`` that names need."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from ascend_graph import Argument, dtype_number


@dataclass(frozen=True)
class Operator:
    """What ``register_op`` is told about one operator."""

    op_type: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


#: What the hand-written converters of the causal convolutions know; every other string is 0 to them.
ACTIVATIONS = defaultdict(int, {"silu": 1, "swish": 2})
CONV_MODES = defaultdict(int, {"pangu": 1})

#: Prototypes that the wheel has no docstring for: what its converters build by hand.
MORE_PROTOTYPES = """
REG_OP(LightningIndexer)
    .INPUT(query, TensorType({DT_FLOAT16, DT_BF16}))
    .INPUT(key, TensorType({DT_FLOAT16, DT_BF16}))
    .INPUT(weights, TensorType({DT_FLOAT16, DT_BF16, DT_FLOAT}))
    .OPTIONAL_INPUT(actual_seq_lengths_query, TensorType({DT_INT32}))
    .OPTIONAL_INPUT(actual_seq_lengths_key, TensorType({DT_INT32}))
    .OPTIONAL_INPUT(block_table, TensorType({DT_INT32}))
    .OUTPUT(sparse_indices, TensorType({DT_INT32}))
    .OUTPUT(sparse_values, TensorType({DT_FLOAT16, DT_BF16}))
    .ATTR(layout_query, String, "BSND")
    .ATTR(layout_key, String, "BSND")
    .ATTR(sparse_count, Int, 2048)
    .ATTR(sparse_mode, Int, 3)
    .ATTR(pre_tokens, Int, 9223372036854775807)
    .ATTR(next_tokens, Int, 9223372036854775807)
    .ATTR(return_values, Bool, false)
    .OP_END_FACTORY_REG(LightningIndexer)

REG_OP(SparseFlashAttention)
    .INPUT(query, TensorType({DT_FLOAT16, DT_BF16}))
    .INPUT(key, TensorType({DT_FLOAT16, DT_BF16}))
    .INPUT(value, TensorType({DT_FLOAT16, DT_BF16}))
    .INPUT(sparse_indices, TensorType({DT_INT32}))
    .OPTIONAL_INPUT(block_table, TensorType({DT_INT32}))
    .OPTIONAL_INPUT(actual_seq_lengths_query, TensorType({DT_INT32}))
    .OPTIONAL_INPUT(actual_seq_lengths_kv, TensorType({DT_INT32}))
    .OPTIONAL_INPUT(query_rope, TensorType({DT_FLOAT16, DT_BF16}))
    .OPTIONAL_INPUT(key_rope, TensorType({DT_FLOAT16, DT_BF16}))
    .OPTIONAL_INPUT(sinks, TensorType({DT_FLOAT}))
    .OUTPUT(attention_out, TensorType({DT_FLOAT16, DT_BF16}))
    .OUTPUT(softmax_max, TensorType({DT_FLOAT}))
    .OUTPUT(softmax_sum, TensorType({DT_FLOAT}))
    .REQUIRED_ATTR(scale_value, Float)
    .ATTR(sparse_block_size, Int, 1)
    .ATTR(layout_query, String, "BSND")
    .ATTR(layout_kv, String, "BSND")
    .ATTR(sparse_mode, Int, 3)
    .ATTR(pre_tokens, Int, 9223372036854775807)
    .ATTR(next_tokens, Int, 9223372036854775807)
    .ATTR(attention_mode, Int, 0)
    .ATTR(return_softmax_lse, Bool, false)
    .OP_END_FACTORY_REG(SparseFlashAttention)
"""

#: Docstrings older than the function they stand in: what its signature and its node have that they have not.
AMENDED_DOCSTRINGS: dict[str, tuple[str, str]] = {
    "DequantRopeQuantKvcache": (".ATTR(kv_output", '.ATTR(cache_mode, String, "contiguous")\n.ATTR(kv_output'),
    "MoeDistributeCombineAddRmsNorm": (
        ".OPTIONAL_INPUT(tp_send_counts",
        ".INPUT(residual_x, TensorType({DT_BF16}))\n.INPUT(gamma, TensorType({DT_BF16}))\n.OPTIONAL_INPUT(tp_send_counts",
    ),
    "MoeGatingTopK": (".OUTPUT(y2", ".OUTPUT(out"),
}

OPERATORS: dict[str, Operator] = {
    "_npu_distribute_barrier": Operator("DistributeBarrier", {"x_ref": Argument("x_ref", copy=False)}),  # a
    "_npu_dtype_cast": Operator("Cast"),  # c
    "_npu_dtype_cast_backward": Operator("Cast", {"grad": "x", "dtype": ("dst_type", dtype_number)}),  # c
    "_npu_rms_norm_backward_quant": Operator("RmsNormGradQuant"),  # c
    "attention_worker_scheduler": Operator("AttentionWorkerScheduler"),  # g1
    "batch_norm_gather_stats_update": Operator("SyncBatchNormGatherStats", {"mean": "total_sum", "invstd": "total_square_sum", "counts": "sample_count", "running_mean": "mean", "running_var": "variance", "->": ("batch_mean", "batch_invstd")}),  # e
    "batch_norm_reduce": Operator("?"),  # h
    "fast_gelu": Operator("FastGelu"),  # a
    "ffn_worker_scheduler": Operator("FfnWorkerScheduler"),  # g1
    "npu_add_quant_gmm": Operator("QuantGroupedMatmulInplaceAdd"),  # g2
    "npu_add_quant_gmm_": Operator("QuantGroupedMatmulInplaceAdd"),  # g2
    "npu_add_quant_matmul": Operator("QuantBatchMatmulInplaceAdd"),  # g2
    "npu_add_quant_matmul_": Operator("QuantBatchMatmulInplaceAdd"),  # g2
    "npu_add_rms_norm": Operator("AddRmsNorm"),  # a
    "npu_add_rms_norm_cast": Operator("AddRmsNormCast"),  # a
    "npu_add_rms_norm_dynamic_mx_quant": Operator("AddRmsNormDynamicMxQuant"),  # g2
    "npu_add_rms_norm_dynamic_quant": Operator("AddRmsNormDynamicQuant"),  # g2
    "npu_add_rms_norm_v2_functional": Operator("AddRmsNorm", {"x1": Argument("x1", copy=True), "x2": Argument("x2", copy=True), "->": ("rstd", "y", "x")}),  # g1
    "npu_all_gather_base_mm": Operator("AllGatherMatmul"),  # g3
    "npu_all_gather_quant_mm": Operator("AllGatherMatmulV2"),  # g2
    "npu_all_to_all_matmul": Operator("AlltoAllMatmul", {"all2all_out_flag": "alltoall_out_flag", "y_dtype": lambda a: a["x1"].dtype}),  # f
    "npu_all_to_all_quant_matmul": Operator("AlltoAllMatmul"),  # g2
    "npu_alltoallv_gmm": Operator("AlltoAllvGroupedMatMul"),  # b
    "npu_alltoallv_quant_gmm": Operator("AlltoAllvQuantGroupedMatMul"),  # g2
    "npu_anti_mx_quant": Operator("AntiMxQuant"),  # g2
    "npu_anti_quant": Operator("AscendAntiQuantV2"),  # g2
    "npu_apply_rotary_pos_emb": Operator("ApplyRotaryPosEmb"),  # g4
    "npu_attention_to_ffn": Operator("AttentionToFFN"),  # a
    "npu_attention_update": Operator("AttentionUpdate", {"local_out": "go", "sp": lambda a: len(a["lse"])}),  # f
    "npu_attention_worker_combine": Operator("AttentionWorkerCombine", {"token_dtype": ("token_dtype", int)}),  # a
    "npu_batch_gather_matmul": Operator("AddLora", {"input": Argument("y", copy=False)}),  # b
    "npu_chunk_gated_delta_rule": Operator("?"),  # h
    "npu_clipped_swiglu": Operator("ClippedSwiglu"),  # a
    "npu_dequant_bias": Operator("DequantBias", {"activation_scale": "activate_scale", "output_dtype": Argument("output_dtype", dtype_number, default=torch.float16)}),  # c
    "npu_dequant_rope_quant_kvcache": Operator("DequantRopeQuantKvcache", {"quant_mode": ("quant_mode", lambda v: "static" if v == 0 else "dynamic"), "input_layout": "layout", "k_cache": Argument("k_cache", copy=False), "v_cache": Argument("v_cache", copy=False), "->": ("q", "k", "v", "k_cache", "v_cache")}),  # c
    "npu_dequant_swiglu_quant": Operator("DequantSwigluQuant"),  # g2
    "npu_dtype_cast": Operator("Cast"),  # g2
    "npu_dtype_cast_backward": Operator("Cast"),  # g2
    "npu_dynamic_block_mx_quant": Operator("DynamicBlockMxQuant"),  # g2
    "npu_dynamic_block_quant": Operator("DynamicBlockQuant", {"dst_type": ("dst_type", dtype_number)}),  # c
    "npu_dynamic_dual_level_mx_quant": Operator("DynamicDualLevelMxQuant"),  # g2
    "npu_dynamic_mx_quant": Operator("DynamicMxQuant"),  # g2
    "npu_dynamic_mx_quant_with_dual_axis": Operator("DynamicMxQuantWithDualAxis"),  # g2
    "npu_dynamic_quant": Operator("DynamicQuant"),  # g3
    "npu_dynamic_quant_asymmetric": Operator("DynamicQuantV2"),  # g2
    "npu_fast_gelu": Operator("FastGelu"),  # a
    "npu_fast_gelu_backward": Operator("FastGeluGrad"),  # b
    "npu_ffn": Operator("FFN"),  # g4
    "npu_ffn_to_attention": Operator("FFNToAttention"),  # a
    "npu_ffn_worker_batching": Operator("FfnWorkerBatching"),  # a
    "npu_fused_causal_conv1d": Operator("FusedCausalConv1d", {"activation": ("activation_mode", ACTIVATIONS), "conv_mode": ("conv_mode", CONV_MODES)}),  # c
    "npu_fused_causal_conv1d_v2": Operator("InplaceFusedCausalConv1d", {"activation": ("activation_mode", ACTIVATIONS), "conv_mode": ("conv_mode", CONV_MODES)}),  # c
    "npu_fused_infer_attention_score": Operator("FusedInferAttentionScore"),  # g2
    "npu_fused_infer_attention_score_v2": Operator("FusedInferAttentionScore"),  # g2
    "npu_fused_matmul": Operator("FusedMatMul", {"enable_hf32": lambda a: torch.npu.matmul.allow_hf32}),  # f
    "npu_fusion_attention": Operator("FlashAttentionScore"),  # g4
    "npu_fusion_attention_grad": Operator("FlashAttentionScoreGrad", {}),  # d
    "npu_gather_backward": Operator("ScatterElements"),  # g4
    "npu_geglu": Operator("GeGluV2"),  # b
    "npu_gelu": Operator("GeluV2"),  # b
    "npu_gelu_backward": Operator("GeluGradV2"),  # b
    "npu_gelu_quant": Operator("GeluQuant", {"dst_type": Argument("dst_type", dtype_number, default=torch.int8)}),  # c
    "npu_gmm_alltoallv": Operator("GroupedMatMulAlltoAllv"),  # b
    "npu_group_norm_silu": Operator("GroupNormSilu", {"group": "num_groups", "weight": "gamma", "bias": "beta"}),  # b
    "npu_group_quant": Operator("GroupQuant"),  # g2
    "npu_grouped_dynamic_block_quant": Operator("GroupedDynamicBlockQuant"),  # c
    "npu_grouped_dynamic_mx_quant": Operator("GroupedDynamicMxQuant"),  # g2
    "npu_grouped_matmul.List": Operator("GroupedMatmul"),  # g2
    "npu_grouped_matmul": Operator("GroupedMatmul"),  # g2
    "npu_grouped_matmul_finalize_routing": Operator("GroupedMatmulFinalizeRouting"),  # g2
    "npu_grouped_matmul_swiglu_quant_v2": Operator("GroupedMatmulSwigluQuantV2"),  # g2
    "npu_incre_flash_attention": Operator("IncreFlashAttention"),  # d
    "npu_interleave_rope": Operator("InterleaveRope"),  # a
    "npu_kronecker_quant": Operator("FlatQuant"),  # g2
    "npu_kv_quant_sparse_flash_attention": Operator("Bitcast"),  # g2
    "npu_kv_rmsnorm_rope_cache": Operator("KvRmsNormRopeCache", {"k_cache": Argument("k_cache", copy=False), "ckv_cache": Argument("ckv_cache", copy=False), "->": ("k_cache", "ckv_cache", "k_rope", "c_kv")}),  # a
    "npu_kv_rmsnorm_rope_cache_v2_functional": Operator("KvRmsNormRopeCache", {"->": ("k_rope", "c_kv", "k_cache", "ckv_cache")}),  # g1
    "npu_lightning_indexer": Operator("LightningIndexer", {"return_value": "return_values"}),  # b
    "npu_linear": Operator("MatMul", {"weight": "x2", "transpose_x2": True}),  # f
    "npu_masked_causal_conv1d": Operator("MaskedCausalConv1d"),  # a
    "npu_masked_softmax_with_rel_pos_bias": Operator("MaskedSoftmaxWithRelPosBias"),  # a
    "npu_matmul_all_to_all": Operator("MatmulAlltoAll", {"y_dtype": lambda a: a["x1"].dtype}),  # f
    "npu_mla_prolog": Operator("MlaProlog", {"kv_cache": Argument("kv_cache", copy=False), "kr_cache": Argument("kr_cache", copy=False), "->": ("query", "query_rope", "kv_cache", "kr_cache")}),  # a
    "npu_mla_prolog_v2": Operator("MlaPrologV2", {"kv_cache": Argument("kv_cache", copy=False), "kr_cache": Argument("kr_cache", copy=False), "->": ("query", "query_rope", "kv_cache", "kr_cache", "dequant_scale_q_nope")}),  # a
    "npu_mla_prolog_v3": Operator("MlaPrologV3"),  # g2
    "npu_mla_prolog_v3_functional": Operator("MlaPrologV3"),  # g2
    "npu_mm_all_reduce_base": Operator("MatmulAllReduce"),  # g2
    "npu_mm_reduce_scatter_base": Operator("MatmulReduceScatter"),  # g3
    "npu_moe_compute_expert_tokens": Operator("MoeComputeExpertTokens", {"sorted_expert_for_source_row": "sorted_experts", "num_expert": "num_experts"}),  # a
    "npu_moe_distribute_combine": Operator("MoeDistributeCombine"),  # a
    "npu_moe_distribute_combine_add_rms_norm": Operator("MoeDistributeCombineAddRmsNorm", {"expand_idx": "assist_info"}),  # b
    "npu_moe_distribute_combine_v2": Operator("MoeDistributeCombineV2"),  # f
    "npu_moe_distribute_dispatch": Operator("MoeDistributeDispatch"),  # a
    "npu_moe_distribute_dispatch_v2": Operator("MoeDistributeDispatchV2"),  # g2
    "npu_moe_finalize_routing": Operator("MoeFinalizeRouting"),  # g3
    "npu_moe_gating_top_k": Operator("MoeGatingTopK"),  # a
    "npu_moe_gating_top_k_softmax": Operator("MoeGatingTopKSoftmax"),  # a
    "npu_moe_gating_top_k_softmax_v2": Operator("MoeGatingTopKSoftmax"),  # a
    "npu_moe_init_routing": Operator("MoeInitRouting"),  # a
    "npu_moe_init_routing_v2": Operator("MoeInitRoutingV3"),  # g2
    "npu_moe_re_routing": Operator("MoeReRouting"),  # g2
    "npu_moe_update_expert": Operator("MoeUpdateExpert"),  # a
    "npu_prefetch": Operator("Cmo"),  # g4
    "npu_prompt_flash_attention": Operator("PromptFlashAttention"),  # g4
    "npu_qkv_rms_norm_rope_cache": Operator("QkvRmsNormRopeCache"),  # a
    "npu_qkv_rms_norm_rope_cache_functional": Operator("QkvRmsNormRopeCache", {"->": ("q_out_before_quant", "k_out_before_quant", "v_out_before_quant", "q_out", "k_cache", "v_cache")}),  # g1
    "npu_quant_conv2d": Operator("QuantConv2D", {"weight": "filter", "strides": ("strides", lambda v: [1, 1, *v]), "pads": ("pads", lambda v: [v[0], v[0], v[1], v[1]]), "dilations": ("dilations", lambda v: [1, 1, *v]), "output_dtype": ("dtype", dtype_number), "data_format": "NCHW"}),  # c
    "npu_quant_gmm_alltoallv": Operator("QuantGroupedMatMulAlltoAllv"),  # g2
    "npu_quant_grouped_matmul_dequant": Operator("QuantGroupedMatmulDequant", {"quant_mode": "x_quant_mode"}),  # b
    "npu_quant_lightning_indexer": Operator("Bitcast"),  # g2
    "npu_quant_matmul": Operator("QuantBatchMatmulV4"),  # g3
    "npu_quant_matmul_all_to_all": Operator("MatmulAlltoAll"),  # g2
    "npu_quant_matmul_dequant": Operator("QuantMatmulDequant", {"quant_mode": "x_quant_mode"}),  # b
    "npu_quant_matmul_reduce_sum": Operator("QuantMatmulReduceSum", {"dims": [0], "dtype": dtype_number(torch.bfloat16)}),  # f
    "npu_quant_max": Operator("QuantMax", {"group_list": None}),  # c
    "npu_quant_mm_reduce_scatter": Operator("MatmulReduceScatterV2"),  # g2
    "npu_quant_scatter": Operator("QuantUpdateScatter"),  # g2
    "npu_quant_scatter_": Operator("QuantUpdateScatter"),  # b
    "npu_quantize": Operator("Unsqueeze"),  # g3
    "npu_recurrent_gated_delta_rule": Operator("RecurrentGatedDeltaRule", {"scale": "scale_value"}),  # a
    "npu_recurrent_gated_delta_rule_functional": Operator("RecurrentGatedDeltaRule", {"scale": "scale_value", "->": ("out", "state")}),  # g1
    "npu_rms_norm": Operator("RmsNorm"),  # b
    "npu_rms_norm_backward": Operator("RmsNormGrad"),  # b
    "npu_rms_norm_dynamic_mx_quant": Operator("RmsNormDynamicMxQuant"),  # g2
    "npu_rope_quant_kvcache": Operator("DequantRopeQuantKvcache", {"quant_mode": ("quant_mode", lambda v: "static" if v == 0 else "dynamic"), "input_layout": "layout", "k_cache": Argument("k_cache", copy=False), "v_cache": Argument("v_cache", copy=False), "->": ("q", "k", "v", "k_cache", "v_cache")}),  # c
    "npu_rotary_mul": Operator("RotaryPositionEmbedding"),  # g3
    "npu_rotary_mul_backward": Operator("RotaryPositionEmbeddingGrad"),  # g3
    "npu_rotate_quant": Operator("RotateQuant"),  # g2
    "npu_scatter_list": Operator("ScatterList"),  # g4
    "npu_scatter_nd_update": Operator("ScatterNdUpdate"),  # g1
    "npu_scatter_nd_update_": Operator("ScatterNdUpdate"),  # b
    "npu_scatter_pa_kv_cache_functional": Operator("ScatterPaKvCache", {"compress_seq_offsets": "compress_seq_offset", "->": ("key_cache", "value_cache")}),  # g1
    "npu_sparse_flash_attention": Operator("SparseFlashAttention"),  # a
    "npu_swiglu": Operator("SwiGlu"),  # b
    "npu_swiglu_backward": Operator("SwiGluGrad"),  # a
    "npu_swiglu_mx_quant": Operator("SwigluMxQuant"),  # g2
    "npu_trans_quant_param": Operator("TransQuantParamV2"),  # a
    "npu_transpose_batchmatmul": Operator("TransposeBatchMatMul", {"weight": "x2", "enable_hf32": lambda a: torch.npu.matmul.allow_hf32}),  # f
    "npu_transpose_quant_batchmatmul": Operator("TransposeQuantBatchMatMul"),  # g2
    "npu_weight_quant_batchmatmul": Operator("WeightQuantBatchMatmulV2"),  # g2
    "scatter_update": Operator("Scatter", {"reduce": "update"}),  # g1
    "scatter_update_": Operator("Scatter", {"reduce": "update"}),  # f
}

#: Operators whose hand-written converter does nothing on other devices than the Ascend 950.
FOR_A5_ONLY = ("npu_fused_matmul",)

#: Why an operator is not equal; "hand-written:" where it is the hand-written converter that is wrong.
EXPLAINED: dict[str, str] = {}
