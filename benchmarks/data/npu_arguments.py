"""GE names and ``arguments=`` for the operators of torch.ops.npu with a hand-written converter."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from ascend_graph import Argument, dtype_number


@dataclass(frozen=True)
class OperatorArguments:
    """Arguments of ``register_op`` for one operator."""

    op_type: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


#: Values that the hand-written converters of the causal convolutions know; every other string is 0.
ACTIVATIONS = defaultdict(int, {"silu": 1, "swish": 2})
CONV_MODES = defaultdict(int, {"pangu": 1})

#: Prototypes without a docstring in the wheel, whose nodes its converters build by hand.
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

#: Outdated docstrings: the text to replace, and its replacement from the function's signature and node.
AMENDED_DOCSTRINGS: dict[str, tuple[str, str]] = {
    "MoeDistributeCombineAddRmsNorm": (
        ".OPTIONAL_INPUT(tp_send_counts",
        ".INPUT(residual_x, TensorType({DT_BF16}))\n.INPUT(gamma, TensorType({DT_BF16}))\n.OPTIONAL_INPUT(tp_send_counts",
    ),
    "MoeGatingTopK": (".OUTPUT(y2", ".OUTPUT(out"),
}

OPERATORS: dict[str, OperatorArguments] = {
    "_npu_distribute_barrier": OperatorArguments("DistributeBarrier", {"x_ref": Argument("x_ref", copy=False)}),
    "_npu_dtype_cast": OperatorArguments("Cast"),
    "_npu_dtype_cast_backward": OperatorArguments("Cast", {"grad": "x", "dtype": ("dst_type", dtype_number)}),
    "_npu_rms_norm_backward_quant": OperatorArguments(
        # The hand-written converter does not write HIFLOAT8 into the output description; nor does a plain hook.
        "RmsNormGradQuant",
        {"dst_type": ("dst_type", lambda value: int(dtype_number(value)))},
    ),
    "attention_worker_scheduler": OperatorArguments("AttentionWorkerScheduler"),
    "batch_norm_gather_stats_update": OperatorArguments(
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
    "batch_norm_reduce": OperatorArguments("?"),
    "fast_gelu": OperatorArguments("FastGelu"),
    "ffn_worker_scheduler": OperatorArguments("FfnWorkerScheduler"),
    "npu_add_quant_gmm": OperatorArguments("QuantGroupedMatmulInplaceAdd"),
    "npu_add_quant_gmm_": OperatorArguments("QuantGroupedMatmulInplaceAdd"),
    "npu_add_quant_matmul": OperatorArguments("QuantBatchMatmulInplaceAdd"),
    "npu_add_quant_matmul_": OperatorArguments("QuantBatchMatmulInplaceAdd"),
    "npu_add_rms_norm": OperatorArguments("AddRmsNorm"),
    "npu_add_rms_norm_cast": OperatorArguments("AddRmsNormCast"),
    "npu_add_rms_norm_dynamic_mx_quant": OperatorArguments("AddRmsNormDynamicMxQuant"),
    "npu_add_rms_norm_dynamic_quant": OperatorArguments("AddRmsNormDynamicQuant"),
    "npu_add_rms_norm_v2_functional": OperatorArguments(
        "AddRmsNorm", {"x1": Argument("x1", copy=True), "x2": Argument("x2", copy=True), "->": ("rstd", "y", "x")}
    ),
    "npu_all_gather_base_mm": OperatorArguments("AllGatherMatmul"),
    "npu_all_gather_quant_mm": OperatorArguments("AllGatherMatmulV2"),
    "npu_all_to_all_matmul": OperatorArguments(
        "AlltoAllMatmul", {"all2all_out_flag": "alltoall_out_flag", "y_dtype": lambda a: a["x1"].dtype}
    ),
    "npu_all_to_all_quant_matmul": OperatorArguments("AlltoAllMatmul"),
    "npu_alltoallv_gmm": OperatorArguments("AlltoAllvGroupedMatMul"),
    "npu_alltoallv_quant_gmm": OperatorArguments("AlltoAllvQuantGroupedMatMul"),
    "npu_anti_mx_quant": OperatorArguments("AntiMxQuant"),
    "npu_anti_quant": OperatorArguments("AscendAntiQuantV2"),
    "npu_apply_rotary_pos_emb": OperatorArguments("ApplyRotaryPosEmb"),
    "npu_attention_to_ffn": OperatorArguments("AttentionToFFN"),
    "npu_attention_update": OperatorArguments("AttentionUpdate", {"local_out": "go", "sp": lambda a: len(a["lse"])}),
    "npu_attention_worker_combine": OperatorArguments("AttentionWorkerCombine", {"token_dtype": ("token_dtype", int)}),
    "npu_batch_gather_matmul": OperatorArguments("AddLora", {"input": Argument("y", copy=False)}),
    "npu_chunk_gated_delta_rule": OperatorArguments("?"),
    "npu_clipped_swiglu": OperatorArguments("ClippedSwiglu"),
    "npu_dequant_bias": OperatorArguments(
        "DequantBias",
        {
            "activation_scale": "activate_scale",
            "output_dtype": Argument("output_dtype", dtype_number, default=torch.float16),
        },
    ),
    "npu_dequant_rope_quant_kvcache": OperatorArguments(
        "DequantRopeQuantKvcache",
        {
            "quant_mode": ("quant_mode", lambda v: "static" if v == 0 else "dynamic"),
            "input_layout": "layout",
            "k_cache": Argument("k_cache", copy=False),
            "v_cache": Argument("v_cache", copy=False),
            "->": ("q", "k", "v", "k_cache", "v_cache"),
        },
    ),
    "npu_dequant_swiglu_quant": OperatorArguments("DequantSwigluQuant"),
    "npu_dtype_cast": OperatorArguments("Cast"),
    "npu_dtype_cast_backward": OperatorArguments("Cast"),
    "npu_dynamic_block_mx_quant": OperatorArguments("DynamicBlockMxQuant"),
    "npu_dynamic_block_quant": OperatorArguments("DynamicBlockQuant", {"dst_type": ("dst_type", dtype_number)}),
    "npu_dynamic_dual_level_mx_quant": OperatorArguments("DynamicDualLevelMxQuant"),
    "npu_dynamic_mx_quant": OperatorArguments("DynamicMxQuant"),
    "npu_dynamic_mx_quant_with_dual_axis": OperatorArguments("DynamicMxQuantWithDualAxis"),
    "npu_dynamic_quant": OperatorArguments("DynamicQuant"),
    "npu_dynamic_quant_asymmetric": OperatorArguments("DynamicQuantV2"),
    "npu_fast_gelu": OperatorArguments("FastGelu"),
    "npu_fast_gelu_backward": OperatorArguments("FastGeluGrad"),
    "npu_ffn": OperatorArguments("FFN"),
    "npu_ffn_to_attention": OperatorArguments("FFNToAttention"),
    "npu_ffn_worker_batching": OperatorArguments("FfnWorkerBatching"),
    "npu_fused_causal_conv1d": OperatorArguments(
        "FusedCausalConv1d", {"activation": ("activation_mode", ACTIVATIONS), "conv_mode": ("conv_mode", CONV_MODES)}
    ),
    "npu_fused_causal_conv1d_v2": OperatorArguments(
        "InplaceFusedCausalConv1d",
        {"activation": ("activation_mode", ACTIVATIONS), "conv_mode": ("conv_mode", CONV_MODES)},
    ),
    "npu_fused_infer_attention_score": OperatorArguments("FusedInferAttentionScore"),
    "npu_fused_infer_attention_score_v2": OperatorArguments("FusedInferAttentionScore"),
    "npu_fused_matmul": OperatorArguments("FusedMatMul", {"enable_hf32": lambda a: torch.npu.matmul.allow_hf32}),
    "npu_fusion_attention": OperatorArguments("FlashAttentionScore"),
    "npu_fusion_attention_grad": OperatorArguments(
        "FlashAttentionScoreGrad", {"pse": None, "q_start_idx": [0], "kv_start_idx": [0]}
    ),
    "npu_gather_backward": OperatorArguments("ScatterElements"),
    "npu_geglu": OperatorArguments("GeGluV2"),
    "npu_gelu": OperatorArguments("GeluV2"),
    "npu_gelu_backward": OperatorArguments("GeluGradV2"),
    "npu_gelu_quant": OperatorArguments(
        "GeluQuant", {"dst_type": Argument("dst_type", dtype_number, default=torch.int8)}
    ),
    "npu_gmm_alltoallv": OperatorArguments("GroupedMatMulAlltoAllv"),
    "npu_group_norm_silu": OperatorArguments(
        "GroupNormSilu", {"group": "num_groups", "weight": "gamma", "bias": "beta"}
    ),
    "npu_group_quant": OperatorArguments("GroupQuant"),
    "npu_grouped_dynamic_block_quant": OperatorArguments("GroupedDynamicBlockQuant"),
    "npu_grouped_dynamic_mx_quant": OperatorArguments("GroupedDynamicMxQuant"),
    "npu_grouped_matmul.List": OperatorArguments("GroupedMatmul"),
    "npu_grouped_matmul": OperatorArguments("GroupedMatmul"),
    "npu_grouped_matmul_finalize_routing": OperatorArguments("GroupedMatmulFinalizeRouting"),
    "npu_grouped_matmul_swiglu_quant_v2": OperatorArguments("GroupedMatmulSwigluQuantV2"),
    "npu_incre_flash_attention": OperatorArguments("IncreFlashAttention"),
    "npu_interleave_rope": OperatorArguments("InterleaveRope"),
    "npu_kronecker_quant": OperatorArguments("FlatQuant"),
    "npu_kv_quant_sparse_flash_attention": OperatorArguments("Bitcast"),
    "npu_kv_rmsnorm_rope_cache": OperatorArguments(
        "KvRmsNormRopeCache",
        {
            "k_cache": Argument("k_cache", copy=False),
            "ckv_cache": Argument("ckv_cache", copy=False),
            "->": ("k_cache", "ckv_cache", "k_rope", "c_kv"),
        },
    ),
    "npu_kv_rmsnorm_rope_cache_v2_functional": OperatorArguments(
        "KvRmsNormRopeCache",
        {"->": ("k_rope", "c_kv", "k_cache", "ckv_cache"), "k_cache_dtype": None, "ckv_cache_dtype": None},
    ),
    "npu_lightning_indexer": OperatorArguments("LightningIndexer", {"return_value": "return_values"}),
    "npu_linear": OperatorArguments("MatMul", {"weight": "x2", "transpose_x2": True}),
    "npu_masked_causal_conv1d": OperatorArguments("MaskedCausalConv1d"),
    "npu_masked_softmax_with_rel_pos_bias": OperatorArguments("MaskedSoftmaxWithRelPosBias"),
    "npu_matmul_all_to_all": OperatorArguments("MatmulAlltoAll", {"y_dtype": lambda a: a["x1"].dtype}),
    "npu_mla_prolog": OperatorArguments(
        "MlaProlog",
        {
            "kv_cache": Argument("kv_cache", copy=False),
            "kr_cache": Argument("kr_cache", copy=False),
            "->": ("query", "query_rope", "kv_cache", "kr_cache"),
        },
    ),
    "npu_mla_prolog_v2": OperatorArguments(
        "MlaPrologV2",
        {
            "kv_cache": Argument("kv_cache", copy=False),
            "kr_cache": Argument("kr_cache", copy=False),
            "->": ("query", "query_rope", "kv_cache", "kr_cache", "dequant_scale_q_nope"),
        },
    ),
    "npu_mla_prolog_v3": OperatorArguments("MlaPrologV3"),
    "npu_mla_prolog_v3_functional": OperatorArguments("MlaPrologV3"),
    "npu_mm_all_reduce_base": OperatorArguments("MatmulAllReduce"),
    "npu_mm_reduce_scatter_base": OperatorArguments("MatmulReduceScatter"),
    "npu_moe_compute_expert_tokens": OperatorArguments(
        "MoeComputeExpertTokens", {"sorted_expert_for_source_row": "sorted_experts", "num_expert": "num_experts"}
    ),
    "npu_moe_distribute_combine": OperatorArguments("MoeDistributeCombine"),
    "npu_moe_distribute_combine_add_rms_norm": OperatorArguments(
        "MoeDistributeCombineAddRmsNorm", {"expand_idx": "assist_info"}
    ),
    "npu_moe_distribute_combine_v2": OperatorArguments("MoeDistributeCombineV2"),
    "npu_moe_distribute_dispatch": OperatorArguments("MoeDistributeDispatch"),
    "npu_moe_distribute_dispatch_v2": OperatorArguments("MoeDistributeDispatchV2"),
    "npu_moe_finalize_routing": OperatorArguments("MoeFinalizeRouting"),
    "npu_moe_gating_top_k": OperatorArguments("MoeGatingTopK"),
    "npu_moe_gating_top_k_softmax": OperatorArguments("MoeGatingTopKSoftmax"),
    "npu_moe_gating_top_k_softmax_v2": OperatorArguments("MoeGatingTopKSoftmax"),
    "npu_moe_init_routing": OperatorArguments("MoeInitRouting"),
    "npu_moe_init_routing_v2": OperatorArguments("MoeInitRoutingV3"),
    "npu_moe_re_routing": OperatorArguments("MoeReRouting"),
    "npu_moe_update_expert": OperatorArguments("MoeUpdateExpert"),
    "npu_prefetch": OperatorArguments("Cmo"),
    "npu_prompt_flash_attention": OperatorArguments("PromptFlashAttention"),
    "npu_qkv_rms_norm_rope_cache": OperatorArguments("QkvRmsNormRopeCache"),
    "npu_qkv_rms_norm_rope_cache_functional": OperatorArguments(
        "QkvRmsNormRopeCache",
        {"->": ("q_out_before_quant", "k_out_before_quant", "v_out_before_quant", "q_out", "k_cache", "v_cache")},
    ),
    "npu_quant_conv2d": OperatorArguments(
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
    "npu_quant_gmm_alltoallv": OperatorArguments("QuantGroupedMatMulAlltoAllv"),
    "npu_quant_grouped_matmul_dequant": OperatorArguments("QuantGroupedMatmulDequant", {"quant_mode": "x_quant_mode"}),
    "npu_quant_lightning_indexer": OperatorArguments("Bitcast"),
    "npu_quant_matmul": OperatorArguments("QuantBatchMatmulV4"),
    "npu_quant_matmul_all_to_all": OperatorArguments("MatmulAlltoAll"),
    "npu_quant_matmul_dequant": OperatorArguments("QuantMatmulDequant", {"quant_mode": "x_quant_mode"}),
    "npu_quant_matmul_reduce_sum": OperatorArguments(
        "QuantMatmulReduceSum", {"dims": [0], "dtype": dtype_number(torch.bfloat16)}
    ),
    "npu_quant_max": OperatorArguments("QuantMax", {"group_list": None}),
    "npu_quant_mm_reduce_scatter": OperatorArguments("MatmulReduceScatterV2"),
    "npu_quant_scatter": OperatorArguments("QuantUpdateScatter"),
    "npu_quant_scatter_": OperatorArguments("QuantUpdateScatter", {"dst_type": None}),
    "npu_quantize": OperatorArguments("Unsqueeze"),
    "npu_recurrent_gated_delta_rule": OperatorArguments("RecurrentGatedDeltaRule", {"scale": "scale_value"}),
    "npu_recurrent_gated_delta_rule_functional": OperatorArguments(
        "RecurrentGatedDeltaRule", {"scale": "scale_value", "->": ("out", "state")}
    ),
    "npu_rms_norm": OperatorArguments("RmsNorm"),
    "npu_rms_norm_backward": OperatorArguments("RmsNormGrad"),
    "npu_rms_norm_dynamic_mx_quant": OperatorArguments("RmsNormDynamicMxQuant"),
    "npu_rope_quant_kvcache": OperatorArguments(
        "DequantRopeQuantKvcache",
        {
            "quant_mode": ("quant_mode", lambda v: "static" if v == 0 else "dynamic"),
            "input_layout": "layout",
            "k_cache": Argument("k_cache", copy=False),
            "v_cache": Argument("v_cache", copy=False),
            "->": ("q", "k", "v", "k_cache", "v_cache"),
        },
    ),
    "npu_rotary_mul": OperatorArguments("RotaryPositionEmbedding"),
    "npu_rotary_mul_backward": OperatorArguments("RotaryPositionEmbeddingGrad"),
    "npu_rotate_quant": OperatorArguments(
        "RotateQuant", {"dst_dtype": Argument("y_dtype", dtype_number, default=torch.int8)}
    ),
    "npu_scatter_list": OperatorArguments("ScatterList"),
    "npu_scatter_nd_update": OperatorArguments("ScatterNdUpdate"),
    "npu_scatter_nd_update_": OperatorArguments("ScatterNdUpdate"),
    "npu_scatter_pa_kv_cache_functional": OperatorArguments(
        "ScatterPaKvCache", {"compress_seq_offsets": "compress_seq_offset", "->": ("key_cache", "value_cache")}
    ),
    "npu_sparse_flash_attention": OperatorArguments("SparseFlashAttention"),
    "npu_swiglu": OperatorArguments("SwiGlu"),
    "npu_swiglu_backward": OperatorArguments("SwiGluGrad"),
    "npu_swiglu_mx_quant": OperatorArguments("SwigluMxQuant"),
    "npu_trans_quant_param": OperatorArguments("TransQuantParamV2"),
    "npu_transpose_batchmatmul": OperatorArguments(
        "TransposeBatchMatMul", {"weight": "x2", "enable_hf32": lambda a: torch.npu.matmul.allow_hf32}
    ),
    "npu_transpose_quant_batchmatmul": OperatorArguments("TransposeQuantBatchMatMul"),
    "npu_weight_quant_batchmatmul": OperatorArguments("WeightQuantBatchMatmulV2"),
    "scatter_update": OperatorArguments("Scatter", {"reduce": "update"}),
    "scatter_update_": OperatorArguments("Scatter", {"reduce": "update"}),
}

#: Operators whose hand-written converter only works on the Ascend 950.
FOR_A5_ONLY = ("npu_fused_matmul",)

#: Reasons why an operator is not equal; "hand-written:" marks a fault of the hand-written converter.
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
    "npu_prefetch": "a dependency that is not an input, but a control edge",
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
