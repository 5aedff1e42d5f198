from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Operator:
    """What ``register_op`` is told about one operator."""

    op_type: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


OPERATORS: dict[str, Operator] = {
    "_npu_distribute_barrier": Operator("DistributeBarrier"),  # a
    "_npu_dtype_cast": Operator("Cast"),  # c
    "_npu_dtype_cast_backward": Operator("Cast"),  # c
    "_npu_rms_norm_backward_quant": Operator("RmsNormGradQuant"),  # c
    "attention_worker_scheduler": Operator("AttentionWorkerScheduler"),  # g1
    "batch_norm_gather_stats_update": Operator("SyncBatchNormGatherStats"),  # e
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
    "npu_add_rms_norm_v2_functional": Operator("AddRmsNorm"),  # g1
    "npu_all_gather_base_mm": Operator("AllGatherMatmul"),  # g3
    "npu_all_gather_quant_mm": Operator("AllGatherMatmulV2"),  # g2
    "npu_all_to_all_matmul": Operator("AlltoAllMatmul"),  # f
    "npu_all_to_all_quant_matmul": Operator("AlltoAllMatmul"),  # g2
    "npu_alltoallv_gmm": Operator("AlltoAllvGroupedMatMul"),  # b
    "npu_alltoallv_quant_gmm": Operator("AlltoAllvQuantGroupedMatMul"),  # g2
    "npu_anti_mx_quant": Operator("AntiMxQuant"),  # g2
    "npu_anti_quant": Operator("AscendAntiQuantV2"),  # g2
    "npu_apply_rotary_pos_emb": Operator("ApplyRotaryPosEmb"),  # g4
    "npu_attention_to_ffn": Operator("AttentionToFFN"),  # a
    "npu_attention_update": Operator("AttentionUpdate"),  # f
    "npu_attention_worker_combine": Operator("AttentionWorkerCombine"),  # a
    "npu_batch_gather_matmul": Operator("AddLora"),  # b
    "npu_chunk_gated_delta_rule": Operator("?"),  # h
    "npu_clipped_swiglu": Operator("ClippedSwiglu"),  # a
    "npu_dequant_bias": Operator("dequant_bias"),  # c
    "npu_dequant_rope_quant_kvcache": Operator("DequantRopeQuantKvcache"),  # c
    "npu_dequant_swiglu_quant": Operator("DequantSwigluQuant"),  # g2
    "npu_dtype_cast": Operator("Cast"),  # g2
    "npu_dtype_cast_backward": Operator("Cast"),  # g2
    "npu_dynamic_block_mx_quant": Operator("DynamicBlockMxQuant"),  # g2
    "npu_dynamic_block_quant": Operator("DynamicBlockQuant"),  # c
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
    "npu_fused_causal_conv1d": Operator("FusedCausalConv1d"),  # c
    "npu_fused_causal_conv1d_v2": Operator("InplaceFusedCausalConv1d"),  # c
    "npu_fused_infer_attention_score": Operator("FusedInferAttentionScore"),  # g2
    "npu_fused_infer_attention_score_v2": Operator("FusedInferAttentionScore"),  # g2
    "npu_fused_matmul": Operator("FusedMatMul"),  # f
    "npu_fusion_attention": Operator("FlashAttentionScore"),  # g4
    "npu_fusion_attention_grad": Operator("FlashAttentionScoreGrad"),  # d
    "npu_gather_backward": Operator("ScatterElements"),  # g4
    "npu_geglu": Operator("GeGluV2"),  # b
    "npu_gelu": Operator("GeluV2"),  # b
    "npu_gelu_backward": Operator("GeluGradV2"),  # b
    "npu_gelu_quant": Operator("GeluQuant"),  # c
    "npu_gmm_alltoallv": Operator("GroupedMatMulAlltoAllv"),  # b
    "npu_group_norm_silu": Operator("GroupNormSilu"),  # b
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
    "npu_kv_rmsnorm_rope_cache": Operator("KvRmsNormRopeCache"),  # a
    "npu_kv_rmsnorm_rope_cache_v2_functional": Operator("KvRmsNormRopeCache"),  # g1
    "npu_lightning_indexer": Operator("LightningIndexer"),  # b
    "npu_linear": Operator("MatMul"),  # f
    "npu_masked_causal_conv1d": Operator("MaskedCausalConv1d"),  # a
    "npu_masked_softmax_with_rel_pos_bias": Operator("MaskedSoftmaxWithRelPosBias"),  # a
    "npu_matmul_all_to_all": Operator("MatmulAlltoAll"),  # f
    "npu_mla_prolog": Operator("MlaProlog"),  # a
    "npu_mla_prolog_v2": Operator("MlaPrologV2"),  # a
    "npu_mla_prolog_v3": Operator("MlaPrologV3"),  # g2
    "npu_mla_prolog_v3_functional": Operator("MlaPrologV3"),  # g2
    "npu_mm_all_reduce_base": Operator("MatmulAllReduce"),  # g2
    "npu_mm_reduce_scatter_base": Operator("MatmulReduceScatter"),  # g3
    "npu_moe_compute_expert_tokens": Operator("MoeComputeExpertTokens"),  # a
    "npu_moe_distribute_combine": Operator("MoeDistributeCombine"),  # a
    "npu_moe_distribute_combine_add_rms_norm": Operator("MoeDistributeCombineAddRmsNorm"),  # b
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
    "npu_qkv_rms_norm_rope_cache_functional": Operator("QkvRmsNormRopeCache"),  # g1
    "npu_quant_conv2d": Operator("QuantConv2D"),  # c
    "npu_quant_gmm_alltoallv": Operator("QuantGroupedMatMulAlltoAllv"),  # g2
    "npu_quant_grouped_matmul_dequant": Operator("QuantGroupedMatmulDequant"),  # b
    "npu_quant_lightning_indexer": Operator("Bitcast"),  # g2
    "npu_quant_matmul": Operator("QuantBatchMatmulV4"),  # g3
    "npu_quant_matmul_all_to_all": Operator("MatmulAlltoAll"),  # g2
    "npu_quant_matmul_dequant": Operator("QuantMatmulDequant"),  # b
    "npu_quant_matmul_reduce_sum": Operator("QuantMatmulReduceSum"),  # f
    "npu_quant_max": Operator("QuantMax"),  # c
    "npu_quant_mm_reduce_scatter": Operator("MatmulReduceScatterV2"),  # g2
    "npu_quant_scatter": Operator("QuantUpdateScatter"),  # g2
    "npu_quant_scatter_": Operator("QuantUpdateScatter"),  # b
    "npu_quantize": Operator("Unsqueeze"),  # g3
    "npu_recurrent_gated_delta_rule": Operator("RecurrentGatedDeltaRule"),  # a
    "npu_recurrent_gated_delta_rule_functional": Operator("RecurrentGatedDeltaRule"),  # g1
    "npu_rms_norm": Operator("RmsNorm"),  # b
    "npu_rms_norm_backward": Operator("RmsNormGrad"),  # b
    "npu_rms_norm_dynamic_mx_quant": Operator("RmsNormDynamicMxQuant"),  # g2
    "npu_rope_quant_kvcache": Operator("DequantRopeQuantKvcache"),  # c
    "npu_rotary_mul": Operator("RotaryPositionEmbedding"),  # g3
    "npu_rotary_mul_backward": Operator("RotaryPositionEmbeddingGrad"),  # g3
    "npu_rotate_quant": Operator("RotateQuant"),  # g2
    "npu_scatter_list": Operator("ScatterList"),  # g4
    "npu_scatter_nd_update": Operator("ScatterNdUpdate"),  # g1
    "npu_scatter_nd_update_": Operator("ScatterNdUpdate"),  # b
    "npu_scatter_pa_kv_cache_functional": Operator("ScatterPaKvCache"),  # g1
    "npu_sparse_flash_attention": Operator("SparseFlashAttention"),  # a
    "npu_swiglu": Operator("SwiGlu"),  # b
    "npu_swiglu_backward": Operator("SwiGluGrad"),  # a
    "npu_swiglu_mx_quant": Operator("SwigluMxQuant"),  # g2
    "npu_trans_quant_param": Operator("TransQuantParamV2"),  # a
    "npu_transpose_batchmatmul": Operator("TransposeBatchMatMul"),  # f
    "npu_transpose_quant_batchmatmul": Operator("TransposeQuantBatchMatMul"),  # g2
    "npu_weight_quant_batchmatmul": Operator("WeightQuantBatchMatmulV2"),  # g2
    "scatter_update": Operator("Scatter"),  # g1
    "scatter_update_": Operator("Scatter"),  # f
}

WRITTEN_BY_HAND: dict[str, str] = {}
