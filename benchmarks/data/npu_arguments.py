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
    "MoeDistributeCombineAddRmsNorm": (
        ".OPTIONAL_INPUT(tp_send_counts",
        ".INPUT(residual_x, TensorType({DT_BF16}))\n.INPUT(gamma, TensorType({DT_BF16}))\n.OPTIONAL_INPUT(tp_send_counts",
    ),
    "MoeGatingTopK": (".OUTPUT(y2", ".OUTPUT(out"),
}

OPERATORS: dict[str, Operator] = {
    "_npu_distribute_barrier": Operator("DistributeBarrier", {"x_ref": Argument("x_ref", copy=False)}),
    "_npu_dtype_cast": Operator("Cast"),
    "_npu_dtype_cast_backward": Operator("Cast", {"grad": "x", "dtype": ("dst_type", dtype_number)}),
    "_npu_rms_norm_backward_quant": Operator(
        # The hand-written converter does not write HIFLOAT8 into the output description; nor does a plain hook.
        "RmsNormGradQuant",
        {"dst_type": ("dst_type", lambda value: int(dtype_number(value)))},
    ),
    "attention_worker_scheduler": Operator("AttentionWorkerScheduler"),
    "batch_norm_gather_stats_update": Operator(
        "SyncBatchNormGatherStats",
        {
            "mean": "total_sum",
            "invstd": "total_square_sum",
            "counts": "sample_count",
            "running_mean": "mean",
            "running_var": "variance",
            "->": ("batch_mean", "batch_invstd"),
        },
    ),
    "batch_norm_reduce": Operator("?"),
    "fast_gelu": Operator("FastGelu"),
    "ffn_worker_scheduler": Operator("FfnWorkerScheduler"),
    "npu_add_quant_gmm": Operator("QuantGroupedMatmulInplaceAdd"),
    "npu_add_quant_gmm_": Operator("QuantGroupedMatmulInplaceAdd"),
    "npu_add_quant_matmul": Operator("QuantBatchMatmulInplaceAdd"),
    "npu_add_quant_matmul_": Operator("QuantBatchMatmulInplaceAdd"),
    "npu_add_rms_norm": Operator("AddRmsNorm"),
    "npu_add_rms_norm_cast": Operator("AddRmsNormCast"),
    "npu_add_rms_norm_dynamic_mx_quant": Operator("AddRmsNormDynamicMxQuant"),
    "npu_add_rms_norm_dynamic_quant": Operator("AddRmsNormDynamicQuant"),
    "npu_add_rms_norm_v2_functional": Operator(
        "AddRmsNorm", {"x1": Argument("x1", copy=True), "x2": Argument("x2", copy=True), "->": ("rstd", "y", "x")}
    ),
    "npu_all_gather_base_mm": Operator("AllGatherMatmul"),
    "npu_all_gather_quant_mm": Operator("AllGatherMatmulV2"),
    "npu_all_to_all_matmul": Operator(
        "AlltoAllMatmul", {"all2all_out_flag": "alltoall_out_flag", "y_dtype": lambda a: a["x1"].dtype}
    ),
    "npu_all_to_all_quant_matmul": Operator("AlltoAllMatmul"),
    "npu_alltoallv_gmm": Operator("AlltoAllvGroupedMatMul"),
    "npu_alltoallv_quant_gmm": Operator("AlltoAllvQuantGroupedMatMul"),
    "npu_anti_mx_quant": Operator("AntiMxQuant"),
    "npu_anti_quant": Operator("AscendAntiQuantV2"),
    "npu_apply_rotary_pos_emb": Operator("ApplyRotaryPosEmb"),
    "npu_attention_to_ffn": Operator("AttentionToFFN"),
    "npu_attention_update": Operator("AttentionUpdate", {"local_out": "go", "sp": lambda a: len(a["lse"])}),
    "npu_attention_worker_combine": Operator("AttentionWorkerCombine", {"token_dtype": ("token_dtype", int)}),
    "npu_batch_gather_matmul": Operator("AddLora", {"input": Argument("y", copy=False)}),
    "npu_chunk_gated_delta_rule": Operator("?"),
    "npu_clipped_swiglu": Operator("ClippedSwiglu"),
    "npu_dequant_bias": Operator(
        "DequantBias",
        {
            "activation_scale": "activate_scale",
            "output_dtype": Argument("output_dtype", dtype_number, default=torch.float16),
        },
    ),
    "npu_dequant_rope_quant_kvcache": Operator(
        "DequantRopeQuantKvcache",
        {
            "quant_mode": ("quant_mode", lambda v: "static" if v == 0 else "dynamic"),
            "input_layout": "layout",
            "k_cache": Argument("k_cache", copy=False),
            "v_cache": Argument("v_cache", copy=False),
            "->": ("q", "k", "v", "k_cache", "v_cache"),
        },
    ),
    "npu_dequant_swiglu_quant": Operator("DequantSwigluQuant"),
    "npu_dtype_cast": Operator("Cast"),
    "npu_dtype_cast_backward": Operator("Cast"),
    "npu_dynamic_block_mx_quant": Operator("DynamicBlockMxQuant"),
    "npu_dynamic_block_quant": Operator("DynamicBlockQuant", {"dst_type": ("dst_type", dtype_number)}),
    "npu_dynamic_dual_level_mx_quant": Operator("DynamicDualLevelMxQuant"),
    "npu_dynamic_mx_quant": Operator("DynamicMxQuant"),
    "npu_dynamic_mx_quant_with_dual_axis": Operator("DynamicMxQuantWithDualAxis"),
    "npu_dynamic_quant": Operator("DynamicQuant"),
    "npu_dynamic_quant_asymmetric": Operator("DynamicQuantV2"),
    "npu_fast_gelu": Operator("FastGelu"),
    "npu_fast_gelu_backward": Operator("FastGeluGrad"),
    "npu_ffn": Operator("FFN"),
    "npu_ffn_to_attention": Operator("FFNToAttention"),
    "npu_ffn_worker_batching": Operator("FfnWorkerBatching"),
    "npu_fused_causal_conv1d": Operator(
        "FusedCausalConv1d", {"activation": ("activation_mode", ACTIVATIONS), "conv_mode": ("conv_mode", CONV_MODES)}
    ),
    "npu_fused_causal_conv1d_v2": Operator(
        "InplaceFusedCausalConv1d",
        {"activation": ("activation_mode", ACTIVATIONS), "conv_mode": ("conv_mode", CONV_MODES)},
    ),
    "npu_fused_infer_attention_score": Operator("FusedInferAttentionScore"),
    "npu_fused_infer_attention_score_v2": Operator("FusedInferAttentionScore"),
    "npu_fused_matmul": Operator("FusedMatMul", {"enable_hf32": lambda a: torch.npu.matmul.allow_hf32}),
    "npu_fusion_attention": Operator("FlashAttentionScore"),
    "npu_fusion_attention_grad": Operator(
        "FlashAttentionScoreGrad", {"pse": None, "q_start_idx": [0], "kv_start_idx": [0]}
    ),
    "npu_gather_backward": Operator("ScatterElements"),
    "npu_geglu": Operator("GeGluV2"),
    "npu_gelu": Operator("GeluV2"),
    "npu_gelu_backward": Operator("GeluGradV2"),
    "npu_gelu_quant": Operator("GeluQuant", {"dst_type": Argument("dst_type", dtype_number, default=torch.int8)}),
    "npu_gmm_alltoallv": Operator("GroupedMatMulAlltoAllv"),
    "npu_group_norm_silu": Operator("GroupNormSilu", {"group": "num_groups", "weight": "gamma", "bias": "beta"}),
    "npu_group_quant": Operator("GroupQuant"),
    "npu_grouped_dynamic_block_quant": Operator("GroupedDynamicBlockQuant"),
    "npu_grouped_dynamic_mx_quant": Operator("GroupedDynamicMxQuant"),
    "npu_grouped_matmul.List": Operator("GroupedMatmul"),
    "npu_grouped_matmul": Operator("GroupedMatmul"),
    "npu_grouped_matmul_finalize_routing": Operator("GroupedMatmulFinalizeRouting"),
    "npu_grouped_matmul_swiglu_quant_v2": Operator("GroupedMatmulSwigluQuantV2"),
    "npu_incre_flash_attention": Operator("IncreFlashAttention"),
    "npu_interleave_rope": Operator("InterleaveRope"),
    "npu_kronecker_quant": Operator("FlatQuant"),
    "npu_kv_quant_sparse_flash_attention": Operator("Bitcast"),
    "npu_kv_rmsnorm_rope_cache": Operator(
        "KvRmsNormRopeCache",
        {
            "k_cache": Argument("k_cache", copy=False),
            "ckv_cache": Argument("ckv_cache", copy=False),
            "->": ("k_cache", "ckv_cache", "k_rope", "c_kv"),
        },
    ),
    "npu_kv_rmsnorm_rope_cache_v2_functional": Operator(
        "KvRmsNormRopeCache",
        {"->": ("k_rope", "c_kv", "k_cache", "ckv_cache"), "k_cache_dtype": None, "ckv_cache_dtype": None},
    ),
    "npu_lightning_indexer": Operator("LightningIndexer", {"return_value": "return_values"}),
    "npu_linear": Operator("MatMul", {"weight": "x2", "transpose_x2": True}),
    "npu_masked_causal_conv1d": Operator("MaskedCausalConv1d"),
    "npu_masked_softmax_with_rel_pos_bias": Operator("MaskedSoftmaxWithRelPosBias"),
    "npu_matmul_all_to_all": Operator("MatmulAlltoAll", {"y_dtype": lambda a: a["x1"].dtype}),
    "npu_mla_prolog": Operator(
        "MlaProlog",
        {
            "kv_cache": Argument("kv_cache", copy=False),
            "kr_cache": Argument("kr_cache", copy=False),
            "->": ("query", "query_rope", "kv_cache", "kr_cache"),
        },
    ),
    "npu_mla_prolog_v2": Operator(
        "MlaPrologV2",
        {
            "kv_cache": Argument("kv_cache", copy=False),
            "kr_cache": Argument("kr_cache", copy=False),
            "->": ("query", "query_rope", "kv_cache", "kr_cache", "dequant_scale_q_nope"),
        },
    ),
    "npu_mla_prolog_v3": Operator("MlaPrologV3"),
    "npu_mla_prolog_v3_functional": Operator("MlaPrologV3"),
    "npu_mm_all_reduce_base": Operator("MatmulAllReduce"),
    "npu_mm_reduce_scatter_base": Operator("MatmulReduceScatter"),
    "npu_moe_compute_expert_tokens": Operator(
        "MoeComputeExpertTokens", {"sorted_expert_for_source_row": "sorted_experts", "num_expert": "num_experts"}
    ),
    "npu_moe_distribute_combine": Operator("MoeDistributeCombine"),
    "npu_moe_distribute_combine_add_rms_norm": Operator(
        "MoeDistributeCombineAddRmsNorm", {"expand_idx": "assist_info"}
    ),
    "npu_moe_distribute_combine_v2": Operator("MoeDistributeCombineV2"),
    "npu_moe_distribute_dispatch": Operator("MoeDistributeDispatch"),
    "npu_moe_distribute_dispatch_v2": Operator("MoeDistributeDispatchV2"),
    "npu_moe_finalize_routing": Operator("MoeFinalizeRouting"),
    "npu_moe_gating_top_k": Operator("MoeGatingTopK"),
    "npu_moe_gating_top_k_softmax": Operator("MoeGatingTopKSoftmax"),
    "npu_moe_gating_top_k_softmax_v2": Operator("MoeGatingTopKSoftmax"),
    "npu_moe_init_routing": Operator("MoeInitRouting"),
    "npu_moe_init_routing_v2": Operator("MoeInitRoutingV3"),
    "npu_moe_re_routing": Operator("MoeReRouting"),
    "npu_moe_update_expert": Operator("MoeUpdateExpert"),
    "npu_prefetch": Operator("Cmo"),
    "npu_prompt_flash_attention": Operator("PromptFlashAttention"),
    "npu_qkv_rms_norm_rope_cache": Operator("QkvRmsNormRopeCache"),
    "npu_qkv_rms_norm_rope_cache_functional": Operator(
        "QkvRmsNormRopeCache",
        {"->": ("q_out_before_quant", "k_out_before_quant", "v_out_before_quant", "q_out", "k_cache", "v_cache")},
    ),
    "npu_quant_conv2d": Operator(
        "QuantConv2D",
        {
            "weight": "filter",
            "strides": ("strides", lambda v: [1, 1, *v]),
            "pads": ("pads", lambda v: [v[0], v[0], v[1], v[1]]),
            "dilations": ("dilations", lambda v: [1, 1, *v]),
            "output_dtype": ("dtype", dtype_number),
            "data_format": "NCHW",
        },
    ),
    "npu_quant_gmm_alltoallv": Operator("QuantGroupedMatMulAlltoAllv"),
    "npu_quant_grouped_matmul_dequant": Operator("QuantGroupedMatmulDequant", {"quant_mode": "x_quant_mode"}),
    "npu_quant_lightning_indexer": Operator("Bitcast"),
    "npu_quant_matmul": Operator("QuantBatchMatmulV4"),
    "npu_quant_matmul_all_to_all": Operator("MatmulAlltoAll"),
    "npu_quant_matmul_dequant": Operator("QuantMatmulDequant", {"quant_mode": "x_quant_mode"}),
    "npu_quant_matmul_reduce_sum": Operator(
        "QuantMatmulReduceSum", {"dims": [0], "dtype": dtype_number(torch.bfloat16)}
    ),
    "npu_quant_max": Operator("QuantMax", {"group_list": None}),
    "npu_quant_mm_reduce_scatter": Operator("MatmulReduceScatterV2"),
    "npu_quant_scatter": Operator("QuantUpdateScatter"),
    "npu_quant_scatter_": Operator("QuantUpdateScatter", {"dst_type": None}),
    "npu_quantize": Operator("Unsqueeze"),
    "npu_recurrent_gated_delta_rule": Operator("RecurrentGatedDeltaRule", {"scale": "scale_value"}),
    "npu_recurrent_gated_delta_rule_functional": Operator(
        "RecurrentGatedDeltaRule", {"scale": "scale_value", "->": ("out", "state")}
    ),
    "npu_rms_norm": Operator("RmsNorm"),
    "npu_rms_norm_backward": Operator("RmsNormGrad"),
    "npu_rms_norm_dynamic_mx_quant": Operator("RmsNormDynamicMxQuant"),
    "npu_rope_quant_kvcache": Operator(
        "DequantRopeQuantKvcache",
        {
            "quant_mode": ("quant_mode", lambda v: "static" if v == 0 else "dynamic"),
            "input_layout": "layout",
            "k_cache": Argument("k_cache", copy=False),
            "v_cache": Argument("v_cache", copy=False),
            "->": ("q", "k", "v", "k_cache", "v_cache"),
        },
    ),
    "npu_rotary_mul": Operator("RotaryPositionEmbedding"),
    "npu_rotary_mul_backward": Operator("RotaryPositionEmbeddingGrad"),
    "npu_rotate_quant": Operator("RotateQuant", {"dst_dtype": Argument("y_dtype", dtype_number, default=torch.int8)}),
    "npu_scatter_list": Operator("ScatterList"),
    "npu_scatter_nd_update": Operator("ScatterNdUpdate"),
    "npu_scatter_nd_update_": Operator("ScatterNdUpdate"),
    "npu_scatter_pa_kv_cache_functional": Operator(
        "ScatterPaKvCache", {"compress_seq_offsets": "compress_seq_offset", "->": ("key_cache", "value_cache")}
    ),
    "npu_sparse_flash_attention": Operator("SparseFlashAttention"),
    "npu_swiglu": Operator("SwiGlu"),
    "npu_swiglu_backward": Operator("SwiGluGrad"),
    "npu_swiglu_mx_quant": Operator("SwigluMxQuant"),
    "npu_trans_quant_param": Operator("TransQuantParamV2"),
    "npu_transpose_batchmatmul": Operator(
        "TransposeBatchMatMul", {"weight": "x2", "enable_hf32": lambda a: torch.npu.matmul.allow_hf32}
    ),
    "npu_transpose_quant_batchmatmul": Operator("TransposeQuantBatchMatMul"),
    "npu_weight_quant_batchmatmul": Operator("WeightQuantBatchMatmulV2"),
    "scatter_update": Operator("Scatter", {"reduce": "update"}),
    "scatter_update_": Operator("Scatter", {"reduce": "update"}),
}

#: Operators whose hand-written converter does nothing on other devices than the Ascend 950.
FOR_A5_ONLY = ("npu_fused_matmul",)

#: Why an operator is not equal; "hand-written:" where it is the hand-written converter that is wrong.
EXPLAINED: dict[str, str] = {
    "npu_grouped_matmul.List": "fills absent lists with an empty tensor made by Fill and Cast",
    "batch_norm_gather_stats_update": "casts an input and writes layouts into attrs of the node",
    "npu_dynamic_mx_quant": "hand-written: the raw op writes the attr blocksize, the prototype calls it block_size",
    "npu_ffn": "numbers output_dtype in its own way, and takes two lists for one input",
    "npu_fusion_attention_grad": "hand-written: returns four tensors, the schema five: TorchAir refuses every graph with it",
    "npu_grouped_matmul_finalize_routing": "has a numbering of its own for dtype, and [0] for an absent tuning_config",
    "npu_grouped_matmul_swiglu_quant_v2": "fills in an absent weight_assist_matrix and translates dequant_mode from the dtypes",
    "npu_moe_gating_top_k_softmax_v2": "hand-written: passes renorm to a raw op that has no such parameter, and always fails",
    "npu_moe_init_routing_v2": "Bitcasts the scale where x_dtype or the dtype of x calls for it",
    "npu_prefetch": "a dependency that is no input, but a control edge",
    "npu_prompt_flash_attention": "casts atten_mask from float16 to uint8 and reads inner_precise out of sparse_mode",
    "npu_quant_conv2d": "input_dtype and weight_dtype change the description of an input, not of the node",
    "npu_quant_max": "builds GroupedQuantMax instead where group_list is given",
    "npu_quant_scatter": "takes dst_type for the dtype of what it writes to, and Bitcasts it",
    **dict.fromkeys(
        ["batch_norm_reduce", "npu_chunk_gated_delta_rule"],
        "only raises",
    ),
    **dict.fromkeys(
        [
            "npu_add_quant_gmm",
            "npu_add_quant_gmm_",
            "npu_add_quant_matmul",
            "npu_add_quant_matmul_",
            "npu_add_rms_norm_dynamic_quant",
            "npu_all_gather_quant_mm",
            "npu_all_to_all_quant_matmul",
            "npu_alltoallv_quant_gmm",
            "npu_anti_quant",
            "npu_dequant_swiglu_quant",
            "npu_dtype_cast",
            "npu_dtype_cast_backward",
            "npu_dynamic_quant_asymmetric",
            "npu_fused_infer_attention_score_v2",
            "npu_grouped_dynamic_mx_quant",
            "npu_grouped_matmul",
            "npu_kronecker_quant",
            "npu_kv_quant_sparse_flash_attention",
            "npu_mla_prolog_v3",
            "npu_mla_prolog_v3_functional",
            "npu_mm_all_reduce_base",
            "npu_moe_distribute_dispatch_v2",
            "npu_moe_re_routing",
            "npu_quant_gmm_alltoallv",
            "npu_quant_lightning_indexer",
            "npu_quant_matmul_all_to_all",
            "npu_quant_mm_reduce_scatter",
            "npu_transpose_quant_batchmatmul",
            "npu_weight_quant_batchmatmul",
        ],
        "Bitcast, Shape and Reshape nodes around the op, for dtypes that torch stores as another one",
    ),
    **dict.fromkeys(
        [
            "npu_all_gather_base_mm",
            "npu_dynamic_quant",
            "npu_mm_reduce_scatter_base",
            "npu_moe_finalize_routing",
            "npu_quant_matmul",
            "npu_quantize",
            "npu_rotary_mul",
            "npu_rotary_mul_backward",
        ],
        "chooses between several GE ops",
    ),
    **dict.fromkeys(
        ["npu_apply_rotary_pos_emb", "npu_fusion_attention", "npu_gather_backward", "npu_scatter_list"],
        "attrs computed from the values of several arguments",
    ),
}
