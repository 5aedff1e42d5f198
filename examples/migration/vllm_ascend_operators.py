# adopt: (head) 0db0b175f799
"""Operators of vllm-ascend, registered with ascend_graph.

Written by ``ascend-graph adopt``. Import the library that defines the operators first. A region that is changed
is kept when adopt runs again; complete the lines that are marked as undecided.
"""

from pathlib import Path

import torch

import ascend_graph

# An installed operator package has the prototypes; a checkout is read where there is one.
_SOURCES = Path(__file__).resolve().parent / "../../build/migration/vllm-ascend"
for _source in (
    "csrc/attention/compressor/op_host/compressor_def.cpp",
    "csrc/attention/compressor_metadata/op_host/compressor_metadata_def.cpp",
    "csrc/attention/indexer_compress_epilog_v2/op_host/indexer_compress_epilog_v2_def.cpp",
    "csrc/attention/kv_quant_sparse_flash_attention/op_host/kv_quant_sparse_flash_attention_def.cpp",
    "csrc/attention/lightning_indexer_quant/op_host/lightning_indexer_quant_def.cpp",
    "csrc/attention/recurrent_gated_delta_rule/op_host/recurrent_gated_delta_rule_def.cpp",
    "csrc/attention/recurrent_gated_delta_rule_v310/op_host/recurrent_gated_delta_rule_v310_def.cpp",
    "csrc/attention/rms_norm_dynamic_quant/op_host/rms_norm_dynamic_quant_def.cpp",
    "csrc/attention/sparse_attention_score/op_host/sparse_attention_score_def.cpp",
    "csrc/attention/sparse_attn_sharedkv/op_host/sparse_attn_sharedkv_def.cpp",
    "csrc/attention/sparse_flash_attention/op_host/sparse_flash_attention_def.cpp",
    "csrc/attention/vllm_quant_lightning_indexer/op_host/vllm_quant_lightning_indexer_def.cpp",
    "csrc/moe/add_rms_norm_bias/op_host/add_rms_norm_bias_def.cpp",
    "csrc/moe/hc_post/op_host/hc_post_def.cpp",
    "csrc/moe/hc_pre/op_host/hc_pre_def.cpp",
    "csrc/moe/moe_gating_top_k/op_host/moe_gating_top_k_def.cpp",
):
    if (_SOURCES / _source).exists():
        ascend_graph.load_prototypes(_SOURCES / _source)

# adopt: _C_ascend::batch_matmul_transpose b6923a73c887 df460873
# schema: csrc/torch_binding.cpp:2000
# written, which the schema does not say: tensor_c
# no GE operator: csrc/batch_matmul_transpose/batch_matmul_transpose_torch_adpt.h:22 launches batch_matmul_transpose; name a prototype with register_op
# only with not (defined(ASCEND_PLATFORM_310P)) and defined(VLLM_ENABLE_ATB_AND_DIRECT_KERNELS)
if hasattr(torch.ops._C_ascend, "batch_matmul_transpose"):
    ascend_graph.register_kernel(
        eager=ascend_graph.define_from_function("_C_ascend_writes::batch_matmul_transpose(Tensor tensor_a, Tensor tensor_b, Tensor(a2!) tensor_c, str? format_mode=None, str? quant_mode=None) -> ()", torch.ops._C_ascend.batch_matmul_transpose),
        shape="->",
    )

# adopt: _C_ascend::bgmv_expand ec6c4ec0d842 51e44e99
# schema: csrc/torch_binding.cpp:1973
# returned, which the schema does not say: y
# shape: what the kernel allocates, csrc/torch_binding.cpp:362
# no GE operator: csrc/torch_binding.cpp:362 launches bgmv_expand_bfloat16_t, bgmv_expand_half; name a prototype with register_op
# only with not (defined(ASCEND_PLATFORM_310P)) and defined(VLLM_ENABLE_ATB_AND_DIRECT_KERNELS)
if hasattr(torch.ops._C_ascend, "bgmv_expand"):
    ascend_graph.register_kernel(
        eager=ascend_graph.define_from_function("_C_ascend_writes::bgmv_expand(Tensor! x, Tensor! weight, Tensor! indices, Tensor(a3!) y, int slice_offset, int slice_size) -> Tensor(a3!)", torch.ops._C_ascend.bgmv_expand),
        shape="y -> y",
    )

# adopt: _C_ascend::bgmv_shrink fbb21e6e2722 645014ec
# schema: csrc/torch_binding.cpp:1970
# no GE operator: csrc/torch_binding.cpp:322 launches bgmv_shrink_bfloat16_t, bgmv_shrink_half; name a prototype with register_op
# only with not (defined(ASCEND_PLATFORM_310P)) and defined(VLLM_ENABLE_ATB_AND_DIRECT_KERNELS)
if hasattr(torch.ops._C_ascend, "bgmv_shrink"):
    ascend_graph.register_kernel(eager=torch.ops._C_ascend.bgmv_shrink, shape="->")

# adopt: _C_ascend::chunk_fwd_o 752b40647f2d f4e8025b
# schema: csrc/torch_binding.cpp:1933
# shape: what the kernel allocates, csrc/torch_binding.cpp:1855
# no GE operator: o holds values before the call of aclnnChunkFwdO, and an output of a node holds none; add .InitValue(0) to Output("o") if the kernel counts on zeros, or name it with register_op
ascend_graph.register_kernel(eager=torch.ops._C_ascend.chunk_fwd_o, shape="v[*s] -> y[*s]: v", override=True)

# adopt: _C_ascend::chunk_gated_delta_rule_fwd_h a6c6488dc840 34ceaaf0
# schema: csrc/torch_binding.cpp:1928
# no GE operator: ChunkGatedDeltaRuleFwdH ↔ aclnnChunkGatedDeltaRuleFwdH: nothing says what bool saveNewValue is; nothing says what bool useExp2 is; nothing says what bool transposeStateLayout is; nothing takes the attr Int inital_state_stride0
# meta kept: csrc/torch_binding_meta.cpp:1486; h_out: it depends on len of chunk_indices
ascend_graph.register_kernel(eager=torch.ops._C_ascend.chunk_gated_delta_rule_fwd_h)

# adopt: _C_ascend::compressor bdcf0fa81197 f5492d7e
# schema: csrc/torch_binding.cpp:2225
# prototype: csrc/attention/compressor/op_host/compressor_def.cpp:14; the call of aclnnCompressor agrees
# meta kept: csrc/torch_binding_meta.cpp:1549; dimensions of x are read in some calls only, and others may not have them
# only with not (defined(ASCEND_PLATFORM_310P))
if hasattr(torch.ops._C_ascend, "compressor"):
    ascend_graph.register_op(
        "Compressor", eager=torch.ops._C_ascend.compressor,
        arguments={"state_cache_stride_dim0": lambda arguments: arguments["state_cache"].stride(0)},
    )

# adopt: _C_ascend::compressor_metadata d50367671bef 6366dff3
# schema: csrc/torch_binding.cpp:2238
# shape: what the kernel allocates, csrc/torch_binding.cpp:952
# no GE operator: _C_ascend::compressor_metadata ↔ CompressorMetadata: nothing takes the argument int num_compressed_tokens; 'shape only' is for an argument that only shapes need
# only with not (defined(ASCEND_PLATFORM_310P))
if hasattr(torch.ops._C_ascend, "compressor_metadata"):
    ascend_graph.register_kernel(
        eager=torch.ops._C_ascend.compressor_metadata,
        shape="rope_cos[rope_cos0, rope_cos1], rope_sin -> y0[num_compressed_tokens, 1, 1, rope_cos1]: rope_cos, y1[num_compressed_tokens, 1, 1, rope_cos1]: rope_sin, y2[num_compressed_tokens, 2] if slot_mapping_format == 2 else [num_compressed_tokens]: int32",
        override=True,
    )

# adopt: _C_ascend::compressor_metadata_out bb85279c48ab 0ef05a0f
# schema: csrc/torch_binding.cpp:2248
# shape: what the kernel allocates, csrc/torch_binding.cpp:982
# prototype: csrc/attention/compressor_metadata/op_host/compressor_metadata_def.cpp:8; the call of aclnnCompressorMetadata agrees
# only with not (defined(ASCEND_PLATFORM_310P))
if hasattr(torch.ops._C_ascend, "compressor_metadata_out"):
    ascend_graph.register_op(
        "CompressorMetadata", eager=torch.ops._C_ascend.compressor_metadata_out,
        shape="compress_cos, compress_sin, slot_mapping -> compress_cos, compress_sin, slot_mapping",
        arguments={"compress_ratio": "cmpRatio", "num_reqs_actual": "actualNumReqs", "compress_cos": "compressCos", "compress_sin": "compressSin"},
    )

# adopt: _C_ascend::device_print b0bbfe87f107 3df2b276
# schema: csrc/torch_binding.cpp:2013
# only with not (defined(ASCEND_PLATFORM_310P))
# impossible: it has neither tensors nor returns: nothing to register

# adopt: _C_ascend::device_print_tensor 269c2e25f64d da50fad0
# schema: csrc/torch_binding.cpp:2017
# it writes no tensor; its calls stay in graphs
# no GE operator: a GE graph drops a node that neither returns nor writes
# only with not (defined(ASCEND_PLATFORM_310P))
if hasattr(torch.ops._C_ascend, "device_print_tensor"):
    ascend_graph.register_kernel(eager=torch.ops._C_ascend.device_print_tensor, shape="->", override=True)

# adopt: _C_ascend::dispatch_ffn_combine f5d041d629ca d97a51ae
# schema: csrc/torch_binding.cpp:2127
# returned, which the schema does not say: out, expert_token_nums
# shape: what the kernel allocates, csrc/mc2/dispatch_ffn_combine/dispatch_ffn_combine_torch_adpt.h:20
# no GE operator: csrc/mc2/dispatch_ffn_combine/dispatch_ffn_combine_torch_adpt.h:20 calls 3 functions: aclnnDispatchFFNCombine, aclnnDispatchFFNCombineBF16, aclnnDispatchFFNCombineW4A8
# only with not (defined(ASCEND_PLATFORM_310P))
if hasattr(torch.ops._C_ascend, "dispatch_ffn_combine"):
    ascend_graph.register_kernel(
        eager=ascend_graph.define_from_function("_C_ascend_writes::dispatch_ffn_combine(Tensor x, Tensor[] weight1, Tensor[] weight2, Tensor expert_idx, Tensor[] scale1, Tensor[] scale2, Tensor[] bias1, Tensor[] bias2, Tensor probs, str group, int max_output_size, Tensor(a11!) out, Tensor(a12!) expert_token_nums, Tensor? x_active_mask=None, float swiglu_limit=1000000.0) -> (Tensor(a11!) out, Tensor(a12!) expert_token_nums)", torch.ops._C_ascend.dispatch_ffn_combine),
        shape="out, expert_token_nums -> out, expert_token_nums",
    )

# adopt: _C_ascend::get_npu_storage_shape bc34db272315 65908e9f
# schema: csrc/torch_binding.cpp:2021
# only with not (defined(ASCEND_PLATFORM_310P))
# impossible: it returns something else than tensors, and graphs hold tensors

# adopt: _C_ascend::grouped_matmul_swiglu_quant 3db12cef3b99 dc76f790
# schema: csrc/torch_binding.cpp:2025
# shape: what the kernel allocates, csrc/gmm/grouped_matmul_swiglu_quant_weight_nz_tensor_list/grouped_matmul_swiglu_quant_torch_adpt.h:53
# no GE operator: aclnnGroupedMatmulSwigluQuantWeightNZ is called, and no prototype of GroupedMatmulSwigluQuantWeightNZ is in this repository
# only with not (defined(ASCEND_PLATFORM_310P))
if hasattr(torch.ops._C_ascend, "grouped_matmul_swiglu_quant"):
    ascend_graph.register_kernel(
        eager=torch.ops._C_ascend.grouped_matmul_swiglu_quant,
        shape="x[x0, *x_rest], weight[weight0, weight1, weight2, *weight_rest] -> output[x0, ((weight2 * 8) if (dtype(x) == int8) and (dtype(weight) == int32) else weight2) // 2]: int8, output_scale[x0]: float32, output_offset[]: float32",
        override=True,
    )

# adopt: _C_ascend::grouped_matmul_swiglu_quant_v2 fec2694e8152 31ec8e27
# schema: csrc/torch_binding.cpp:2047
# no GE operator: aclnnGroupedMatmulSwigluQuantWeightNzV2 is called, and no prototype of GroupedMatmulSwigluQuantWeightNzV2 is in this repository
# meta kept: csrc/torch_binding_meta.cpp:1521; output: it depends on weight_scale[0], a tensor of a list
# only with not (defined(ASCEND_PLATFORM_310P))
if hasattr(torch.ops._C_ascend, "grouped_matmul_swiglu_quant_v2"):
    ascend_graph.register_kernel(eager=torch.ops._C_ascend.grouped_matmul_swiglu_quant_v2)

# adopt: _C_ascend::grouped_matmul_swiglu_quant_weight_nz 831d58ced263 1faee6de
# schema: csrc/torch_binding.cpp:2032
# shape: what the kernel allocates, csrc/gmm/grouped_matmul_swiglu_quant_weight_nz_tensor_list/grouped_matmul_swiglu_quant_torch_adpt.h:20
# no GE operator: aclnnGroupedMatmulSwigluQuantWeightNZ is called, and no prototype of GroupedMatmulSwigluQuantWeightNZ is in this repository
# only with not (defined(ASCEND_PLATFORM_310P))
if hasattr(torch.ops._C_ascend, "grouped_matmul_swiglu_quant_weight_nz"):
    ascend_graph.register_kernel(
        eager=torch.ops._C_ascend.grouped_matmul_swiglu_quant_weight_nz,
        shape="x[m, *x_rest], weight[weight0, weight1, n, *weight_rest] -> output[m, ((n * 8) if (dtype(x) == int8) and (dtype(weight) == int32) else n) // 2]: int8, output_scale[m]: float32, output_offset[]: float32",
        override=True,
    )

# adopt: _C_ascend::grouped_matmul_swiglu_quant_weight_nz_tensor_list df2f8eb82422 b9bfd7fe
# schema: csrc/torch_binding.cpp:2039
# no GE operator: GroupedMatmulSwigluQuantWeightNzTensorList ↔ aclnnGroupedMatmulSwigluQuantWeightNzTensorList: nothing says what const aclTensor *bias is; nothing says what const aclTensor *offset is; nothing says what aclTensor *output is; nothing says what aclTensor *outputScale is; nothing says what aclTensor *outputOffset is; nothing takes the output y; nothing takes the output y_scale
# meta kept: csrc/torch_binding_meta.cpp:1519; output: it depends on weight[0], a tensor of a list
# only with not (defined(ASCEND_PLATFORM_310P))
if hasattr(torch.ops._C_ascend, "grouped_matmul_swiglu_quant_weight_nz_tensor_list"):
    ascend_graph.register_kernel(eager=torch.ops._C_ascend.grouped_matmul_swiglu_quant_weight_nz_tensor_list)

# adopt: _C_ascend::indexer_compress_epilog_v2 0fc5f35f9a5b de817629
# schema: csrc/torch_binding.cpp:2484
# prototype: csrc/attention/indexer_compress_epilog_v2/op_host/indexer_compress_epilog_v2_def.cpp:18; the call of aclnnIndexerCompressEpilogV2 agrees
# only with not (defined(ASCEND_PLATFORM_310P))
if hasattr(torch.ops._C_ascend, "indexer_compress_epilog_v2"):
    ascend_graph.register_op(
        "IndexerCompressEpilogV2", eager=torch.ops._C_ascend.indexer_compress_epilog_v2, shape="->",
        arguments={"block_stride": lambda arguments: arguments["indexer_compress_cache"].stride(0)}, override=True,
    )

# adopt: _C_ascend::inplace_partial_rotary_mul b54d23e5dd05 27b63a91
# schema: csrc/torch_binding.cpp:2377
# no GE operator: aclnnInplacePartialRotaryMul does not run in some calls, and a node always
# only with not (defined(ASCEND_PLATFORM_310P))
if hasattr(torch.ops._C_ascend, "inplace_partial_rotary_mul"):
    ascend_graph.register_kernel(eager=torch.ops._C_ascend.inplace_partial_rotary_mul, shape="->", override=True)

# adopt: _C_ascend::kv_compress_epilog a5f6c9e0f469 632ca94a
# schema: csrc/torch_binding.cpp:2395
# no GE operator: _C_ascend::kv_compress_epilog ↔ KvCompressEpilog: nothing takes the argument bool round_scale_flag; 'shape only' is for an argument that only shapes need
# only with not (defined(ASCEND_PLATFORM_310P))
if hasattr(torch.ops._C_ascend, "kv_compress_epilog"):
    ascend_graph.register_kernel(eager=torch.ops._C_ascend.kv_compress_epilog, shape="->", override=True)

# adopt: _C_ascend::mla_preprocess 0107dac8d078 29681cf9
# schema: csrc/torch_binding.cpp:1986
# returned, which the schema does not say: q_out0, kv_cache_out0, q_out1, kv_cache_out1, inner_out
# shape: what the kernel allocates, csrc/mla_preprocess/mla_preprocess_torch_adpt.h:26
# no GE operator: csrc/mla_preprocess/mla_preprocess_torch_adpt.h:26 launches mla_preprocess; name a prototype with register_op
# only with not (defined(ASCEND_PLATFORM_310P)) and defined(VLLM_ENABLE_ATB_AND_DIRECT_KERNELS)
if hasattr(torch.ops._C_ascend, "mla_preprocess"):
    ascend_graph.register_kernel(
        eager=ascend_graph.define_from_function("_C_ascend_writes::mla_preprocess(Tensor hiddenState, Tensor wdqkv, Tensor? descale0, Tensor gamma1, Tensor? beta1, Tensor wuq, Tensor? descale1, Tensor gamma2, Tensor? cos, Tensor? sin, Tensor wuk, Tensor kv_cache, Tensor kv_cache_rope, Tensor slotmapping, Tensor? quant_scale0, Tensor? quant_offset0, Tensor? bias0, Tensor? quant_scale1, Tensor? quant_offset1, Tensor? bias1, Tensor? ctkv_scale, Tensor? q_nope_scale, str? cache_mode, str? quant_mode, bool? enable_inner_out, Tensor(a25!) q_out0, Tensor(a26!) kv_cache_out0, Tensor(a27!) q_out1, Tensor(a28!) kv_cache_out1, Tensor(a29!) inner_out) -> (Tensor(a25!) q_out0, Tensor(a26!) kv_cache_out0, Tensor(a27!) q_out1, Tensor(a28!) kv_cache_out1, Tensor(a29!) inner_out)", torch.ops._C_ascend.mla_preprocess),
        shape="q_out0, kv_cache_out0, q_out1, kv_cache_out1, inner_out -> q_out0, kv_cache_out0, q_out1, kv_cache_out1, inner_out",
    )

# adopt: _C_ascend::moe_gating_top_k 7aa90791dc6f 325dee9f
# schema: csrc/torch_binding.cpp:2135
# shape: what the kernel allocates, csrc/moe/moe_gating_top_k/moe_gating_top_k_torch_adpt.h:19
# prototype: csrc/moe/moe_gating_top_k/op_host/moe_gating_top_k_def.cpp:18; the call of aclnnMoeGatingTopK agrees
# only with not (defined(ASCEND_PLATFORM_310P))
if hasattr(torch.ops._C_ascend, "moe_gating_top_k"):
    ascend_graph.register_op(
        "MoeGatingTopK", eager=torch.ops._C_ascend.moe_gating_top_k,
        shape="x[rows, expert_num] -> y[rows, k]: x, expert_idx[rows, k]: int32, out[rows, expert_num]: float32",
        override=True,
    )

# adopt: _C_ascend::moe_gating_top_k_hash a626d7e80da2 d7f9f694
# schema: csrc/torch_binding.cpp:2206
# shape: what the kernel allocates, csrc/torch_binding.cpp:696
# no GE operator: group_select_mode is routed_scaling_factor in the call, and group_select_mode by names
# only with not (defined(ASCEND_PLATFORM_310P))
if hasattr(torch.ops._C_ascend, "moe_gating_top_k_hash"):
    ascend_graph.register_kernel(
        eager=torch.ops._C_ascend.moe_gating_top_k_hash,
        shape="x[rows, expert_num] -> y[rows, k]: x, expert_idx[rows, k]: int32, out[rows, expert_num]: float32",
        override=True,
    )

# adopt: _C_ascend::moe_grouped_matmul 8f642ee86dfe 7e243a15
# schema: csrc/torch_binding.cpp:2193
# no GE operator: aclnnMoeGroupedMatmulWeightNz is called, and no prototype of MoeGroupedMatmulWeightNz is in this repository
# meta kept: csrc/torch_binding_meta.cpp:1547; it returns a list of tensors, which a relation does not express
# only with not (defined(ASCEND_PLATFORM_310P))
if hasattr(torch.ops._C_ascend, "moe_grouped_matmul"):
    ascend_graph.register_kernel(eager=torch.ops._C_ascend.moe_grouped_matmul)

# adopt: _C_ascend::npu_add_rms_norm_bias daf54d1ee10d d16faafd
# schema: csrc/torch_binding.cpp:2152
# prototype: csrc/moe/add_rms_norm_bias/op_host/add_rms_norm_bias_def.cpp:18; the call of aclnnAddRmsNormBias agrees
# meta kept: csrc/torch_binding_meta.cpp:1537; rstd: its size or dtype comes from `new_shape`, which is not followed
# only with not (defined(ASCEND_PLATFORM_310P))
if hasattr(torch.ops._C_ascend, "npu_add_rms_norm_bias"):
    ascend_graph.register_op("AddRmsNormBias", eager=torch.ops._C_ascend.npu_add_rms_norm_bias)

# adopt: _C_ascend::npu_causal_conv1d_310 e9e1dd589571 821c285d
# schema: csrc/torch_binding.cpp:1900
# written by aclnnCausalConv1dV310, which the schema does not say: conv_states
# shape: what the kernel allocates, csrc/moe/causal_conv1d_v310/causal_conv1d_310_torch_adpt.h:20
# no GE operator: _C_ascend_writes::npu_causal_conv1d_310 ↔ CausalConv1dV310: the schema writes conv_states, but no output of CausalConv1dV310 holds its new value (outputs: y). If the operator only reads it, write: _C_ascend_writes::npu_causal_conv1d_310(Tensor x, Tensor weight, Tensor? bias, Tensor conv_states, Tensor? query_start_loc, Tensor? cache_indices, Tensor? initial_state_mode, Tensor? num…
# only with defined(ASCEND_PLATFORM_310P)
if hasattr(torch.ops._C_ascend, "npu_causal_conv1d_310"):
    ascend_graph.register_kernel(
        eager=ascend_graph.define_from_function("_C_ascend_writes::npu_causal_conv1d_310(Tensor x, Tensor weight, Tensor? bias, Tensor(a3!) conv_states, Tensor? query_start_loc, Tensor? cache_indices, Tensor? initial_state_mode, Tensor? num_accepted_tokens, int activation_mode, int pad_slot_id, int run_mode) -> (Tensor output)", torch.ops._C_ascend.npu_causal_conv1d_310),
        shape="x[*s] -> output[*s]: x",
    )

# adopt: _C_ascend::npu_causal_conv1d_custom 1dba2de002f4 fd782a94
# schema: csrc/torch_binding.cpp:2179
# written by aclnnCausalConv1d, which the schema does not say: output, conv_state; returned, which the schema does not say: output
# shape: what the kernel allocates, csrc/torch_binding.cpp:632
# no GE operator: _C_ascend_writes::npu_causal_conv1d_custom ↔ CausalConv1d: the schema writes conv_state, but no output of CausalConv1d holds its new value (outputs: y). If the operator only reads it, write: _C_ascend_writes::npu_causal_conv1d_custom(Tensor(a0!) output, Tensor x, Tensor weight, Tensor conv_state, Tensor? bias_opt, Tensor? query_start_loc_opt, Tensor? cache_indices_opt, Tensor? ini…
# only with not (defined(ASCEND_PLATFORM_310P))
if hasattr(torch.ops._C_ascend, "npu_causal_conv1d_custom"):
    ascend_graph.register_kernel(
        eager=ascend_graph.define_from_function("_C_ascend_writes::npu_causal_conv1d_custom(Tensor(a0!) output, Tensor x, Tensor weight, Tensor(a3!) conv_state, Tensor? bias_opt, Tensor? query_start_loc_opt, Tensor? cache_indices_opt, Tensor? initial_state_mode_opt, Tensor? num_accepted_tokens_opt, int activation_mode, int pad_slot_id, int run_mode) -> (Tensor(a0!) output)", torch.ops._C_ascend.npu_causal_conv1d_custom),
        shape="output -> output",
    )

# adopt: _C_ascend::npu_copy_and_expand_eagle_inputs c3d036507708 1b791148
# schema: csrc/torch_binding.cpp:2170
# the meta function at csrc/torch_binding_meta.cpp:1543 says otherwise: target_token_ids[total_input_tokens, *target_token_ids_rest], query_start_loc[query_start_loc0, *query_start_loc_rest] -> out_input_ids[total_draft_tokens]: target_token_ids, out_positions[total_draft_tokens]: target_token_ids, out_is_rejected_token_mask[total_draft_tokens]: int8, out_is_masked_token_mask[total_draft_tokens]: i…
# shape: what the kernel allocates, csrc/torch_binding.cpp:598
# no GE operator: out_input_ids holds values before the call of aclnnCopyAndExpandEagleInputs, and an output of a node holds none; add .InitValue(0) to Output("out_input_ids") if the kernel counts on zeros, or name it with register_op
# only with not (defined(ASCEND_PLATFORM_310P))
if hasattr(torch.ops._C_ascend, "npu_copy_and_expand_eagle_inputs"):
    ascend_graph.register_kernel(
        eager=torch.ops._C_ascend.npu_copy_and_expand_eagle_inputs,
        shape="target_token_ids[total_input_tokens, *target_token_ids_rest], query_start_loc[query_start_loc0, *query_start_loc_rest] -> out_input_ids[total_draft_tokens]: int32, out_positions[total_draft_tokens]: int32, out_is_rejected_token_mask[total_draft_tokens]: int8, out_is_masked_token_mask[total_draft_tokens]: int8, out_new_token_indices[(query_start_loc0 - 1) * num_padding_slots_per_request]: int32, out_hidden_state_mapping[total_input_tokens]: int32",
        override=True,
    )

# adopt: _C_ascend::npu_dequant_swiglu_quant 052c72c6d059 645122e2
# schema: csrc/torch_binding.cpp:2495
# shape: what the kernel allocates, csrc/torch_binding.cpp:1714
# no GE operator: csrc/torch_binding.cpp:1714 calls 2 functions: aclnnDequantSwigluQuant, aclnnDequantSwigluQuantV2
# only with not (defined(ASCEND_PLATFORM_310P))
if hasattr(torch.ops._C_ascend, "npu_dequant_swiglu_quant"):
    ascend_graph.register_kernel(
        eager=torch.ops._C_ascend.npu_dequant_swiglu_quant,
        shape="x[*x_rest, x_last] -> y[*x_rest, x_last // 2]: int8, scale[*x_rest]: float32", override=True,
    )

# adopt: _C_ascend::npu_gemma_rms_norm 85e66e77f502 2d636724
# schema: csrc/torch_binding.cpp:1945
# no GE operator: aclnnGemmaRmsNorm is called, and no prototype of GemmaRmsNorm is in this repository
# meta kept: csrc/torch_binding_meta.cpp:1496; rstd: its size or dtype comes from `new_shape`, which is not followed
# only with not (defined(ASCEND_PLATFORM_310P))
if hasattr(torch.ops._C_ascend, "npu_gemma_rms_norm"):
    ascend_graph.register_kernel(eager=torch.ops._C_ascend.npu_gemma_rms_norm)

# adopt: _C_ascend::npu_hc_post 8934d6dd1b18 8706fc47
# schema: csrc/torch_binding.cpp:2358
# the meta function at csrc/torch_binding_meta.cpp:1555 says otherwise: residual[*s] -> out[*s]: residual
# shape: what the kernel allocates, csrc/torch_binding.cpp:1276
# prototype: csrc/moe/hc_post/op_host/hc_post_def.cpp:20; the call of aclnnHcPost agrees
# only with not (defined(ASCEND_PLATFORM_310P))
if hasattr(torch.ops._C_ascend, "npu_hc_post"):
    ascend_graph.register_op(
        "HcPost", eager=torch.ops._C_ascend.npu_hc_post,
        shape="residual[residual0, residual1, residual2, residual3] -> y[residual0, residual1, residual2, residual3]: residual",
        override=True,
    )

# adopt: _C_ascend::npu_hc_pre_v2 44e7fdf14d8b d2dfa06c
# schema: csrc/torch_binding.cpp:2368
# prototype: csrc/moe/hc_pre/op_host/hc_pre_def.cpp:20; the call of aclnnHcPre agrees
# meta kept: csrc/torch_binding_meta.cpp:1556; dimensions of x are read in some calls only, and others may not have them
# only with not (defined(ASCEND_PLATFORM_310P))
if hasattr(torch.ops._C_ascend, "npu_hc_pre_v2"):
    ascend_graph.register_op("HcPre", eager=torch.ops._C_ascend.npu_hc_pre_v2)

# adopt: _C_ascend::npu_k2q_csr e7e4f988b165 f4828f63
# schema: csrc/torch_binding.cpp:2072
# shape: the meta function, csrc/torch_binding_meta.cpp:1304
# no GE operator: csrc/attention/k2q_csr/k2q_csr_torch_adpt.h:123 calls 5 functions: aclnnK2qCsrHist, aclnnK2qCsrMeta, aclnnK2qCsrRowPrefix, aclnnK2qCsrScatter, aclnnK2qCsrTilePrefix
# only with not (defined(ASCEND_PLATFORM_310P))
if hasattr(torch.ops._C_ascend, "npu_k2q_csr"):
    ascend_graph.register_kernel(
        eager=torch.ops._C_ascend.npu_k2q_csr,
        shape="q2k[H, T, topk] -> row_ptr[H, (total_rows if total_rows >= 0 else 1) + 1]: int32, q_ind[H, T * topk]: int32, slot[H, T * topk]: int32",
        override=True,
    )

# adopt: _C_ascend::npu_kv_quant_sparse_attn_sharedkv 2d9fbe9623bc bd487194
# schema: csrc/torch_binding.cpp:2408
# shape: what the kernel allocates, csrc/torch_binding.cpp:1485
# no GE operator: ori_kv_stride0 is computed in the call
# only with not (defined(ASCEND_PLATFORM_310P))
if hasattr(torch.ops._C_ascend, "npu_kv_quant_sparse_attn_sharedkv"):
    ascend_graph.register_kernel(
        eager=torch.ops._C_ascend.npu_kv_quant_sparse_attn_sharedkv,
        shape="q[*q_rest, q_last] -> out[*q_rest, q_last]: q, softmax_lse[*q_rest, 1] if return_softmax_lse else [0]: float32",
        override=True,
    )

# adopt: _C_ascend::npu_kv_quant_sparse_attn_sharedkv_metadata 1ad8d45b37cc 103d6429
# schema: csrc/torch_binding.cpp:2441
# no GE operator: KvQuantSparseAttnSharedkvMetadata ↔ aclnnKvQuantSparseAttnSharedkvMetadata: nothing takes the attr String soc_version; nothing takes the attr Int aic_core_num; nothing takes the attr Int aiv_core_num
# meta kept: csrc/torch_binding_meta.cpp:1561; y: its size or dtype comes from `at::Device(std::string(device))`, which is not followed
# only with not (defined(ASCEND_PLATFORM_310P))
if hasattr(torch.ops._C_ascend, "npu_kv_quant_sparse_attn_sharedkv_metadata"):
    ascend_graph.register_kernel(eager=torch.ops._C_ascend.npu_kv_quant_sparse_attn_sharedkv_metadata)

# adopt: _C_ascend::npu_kv_quant_sparse_flash_attention 3e1d14d0742e 80771aac
# schema: csrc/torch_binding.cpp:2103
# prototype: csrc/attention/kv_quant_sparse_flash_attention/op_host/kv_quant_sparse_flash_attention_def.cpp:19; the call of aclnnKvQuantSparseFlashAttention agrees
# meta kept: csrc/torch_binding_meta.cpp:1530; dimensions of query are read in some calls only, and others may not have them
# only with not (defined(ASCEND_PLATFORM_310P))
if hasattr(torch.ops._C_ascend, "npu_kv_quant_sparse_flash_attention"):
    ascend_graph.register_op("KvQuantSparseFlashAttention", eager=torch.ops._C_ascend.npu_kv_quant_sparse_flash_attention)

# adopt: _C_ascend::npu_lightning_indexer 3ebf45edab33 7baf5c04
# schema: csrc/torch_binding.cpp:2055
# no GE operator: its kernel is not C++ that is found here
# meta kept: csrc/torch_binding_meta.cpp:1523; its kernel is not found
# only with not (defined(ASCEND_PLATFORM_310P))
if hasattr(torch.ops._C_ascend, "npu_lightning_indexer"):
    ascend_graph.register_kernel(eager=torch.ops._C_ascend.npu_lightning_indexer)

# adopt: _C_ascend::npu_lightning_indexer_quant 707cec864832 51ef2c3f
# schema: csrc/torch_binding.cpp:2523
# prototype: csrc/attention/lightning_indexer_quant/op_host/lightning_indexer_quant_def.cpp:20; the call of aclnnLightningIndexerQuant agrees
# meta kept: csrc/torch_binding_meta.cpp:1568; dimensions of query are read in some calls only, and others may not have them
# only with not (defined(ASCEND_PLATFORM_310P))
if hasattr(torch.ops._C_ascend, "npu_lightning_indexer_quant"):
    ascend_graph.register_op("LightningIndexerQuant", eager=torch.ops._C_ascend.npu_lightning_indexer_quant)

# adopt: _C_ascend::npu_recurrent_gated_delta_rule 180d5b7284f5 bd80be0f
# schema: csrc/torch_binding.cpp:1953
# shape: what the kernel allocates, csrc/attention/recurrent_gated_delta_rule/recurrent_gated_delta_rule_torch_adpt.h:21
# prototype: csrc/attention/recurrent_gated_delta_rule/op_host/recurrent_gated_delta_rule_def.cpp:17; the call of aclnnRecurrentGatedDeltaRule agrees
# only with not (defined(ASCEND_PLATFORM_310P))
if hasattr(torch.ops._C_ascend, "npu_recurrent_gated_delta_rule"):
    ascend_graph.register_op(
        "RecurrentGatedDeltaRule", eager=torch.ops._C_ascend.npu_recurrent_gated_delta_rule,
        shape="value[*s] -> out[*s]: bfloat16", arguments={"scale": "scale_value"}, override=True,
    )

# adopt: _C_ascend::npu_recurrent_gated_delta_rule_310 364050608fce 535cda00
# schema: csrc/torch_binding.cpp:1914
# written by aclnnRecurrentGatedDeltaRuleV310, which the schema does not say: state
# shape: what the kernel allocates, csrc/attention/recurrent_gated_delta_rule_v310/recurrent_gated_delta_rule_310_torch_adpt.h:20
# prototype: csrc/attention/recurrent_gated_delta_rule_v310/op_host/recurrent_gated_delta_rule_v310_def.cpp:17; the call of aclnnRecurrentGatedDeltaRuleV310 agrees
# only with defined(ASCEND_PLATFORM_310P)
if hasattr(torch.ops._C_ascend, "npu_recurrent_gated_delta_rule_310"):
    ascend_graph.register_op(
        "RecurrentGatedDeltaRuleV310",
        eager=ascend_graph.define_from_function("_C_ascend_writes::npu_recurrent_gated_delta_rule_310(Tensor query, Tensor key, Tensor value, Tensor beta, Tensor(a4!) state, Tensor actual_seq_lengths, Tensor ssm_state_indices, Tensor? g, Tensor? gk, Tensor? num_accepted_tokens, float scale_value=1.0) -> (Tensor output)", torch.ops._C_ascend.npu_recurrent_gated_delta_rule_310),
        shape="value[*s] -> out[*s]: value",
    )

# adopt: _C_ascend::npu_rms_norm_dynamic_quant 92f4ae3e0574 d9da8202
# schema: csrc/torch_binding.cpp:2384
# the meta function at csrc/torch_binding_meta.cpp:1558 says otherwise: x[*x_rest, x_last] -> y_out like x, scale_out[*x_rest]: float32
# shape: what the kernel allocates, csrc/torch_binding.cpp:1403
# prototype: csrc/attention/rms_norm_dynamic_quant/op_host/rms_norm_dynamic_quant_def.cpp:18; the call of aclnnRmsNormDynamicQuant agrees
# only with not (defined(ASCEND_PLATFORM_310P))
if hasattr(torch.ops._C_ascend, "npu_rms_norm_dynamic_quant"):
    ascend_graph.register_op(
        "RmsNormDynamicQuant", eager=torch.ops._C_ascend.npu_rms_norm_dynamic_quant,
        shape="x[*x_rest, x_last] -> y1 like x: int8, scale1[*x_rest]: float32",
        arguments={"smooth_scale": "smooth_scale1", "->": ("y1", "scale1")}, override=True,
    )

# adopt: _C_ascend::npu_scatter_nd_update_v2 49641aa8f2d8 cc117130
# schema: csrc/torch_binding.cpp:2514
# no GE operator: ScatterNdUpdateV2 ↔ aclnnScatterNdUpdateV2: nothing takes the attr Bool use_locking
# only with not (defined(ASCEND_PLATFORM_310P))
if hasattr(torch.ops._C_ascend, "npu_scatter_nd_update_v2"):
    ascend_graph.register_kernel(eager=torch.ops._C_ascend.npu_scatter_nd_update_v2, shape="->", override=True)

# adopt: _C_ascend::npu_sign_bits_pack 65316f264d15 f3d1f242
# schema: csrc/torch_binding.cpp:2162
# shape: what the kernel allocates, csrc/torch_binding.cpp:496
# no GE operator: aclnnSignBitsPack is called, and no prototype of SignBitsPack is in this repository
# only with not (defined(ASCEND_PLATFORM_310P))
if hasattr(torch.ops._C_ascend, "npu_sign_bits_pack"):
    ascend_graph.register_kernel(
        eager=torch.ops._C_ascend.npu_sign_bits_pack,
        shape="input[input0, *input_rest] -> y[size, ((((input0 + 7) // 8) // size) if size != 0 else 0)]: uint8",
        override=True,
    )

# adopt: _C_ascend::npu_sparse_attention_score cc87f8e90817 5e36ec33
# schema: csrc/torch_binding.cpp:2555
# shape: what the kernel allocates, csrc/attention/sparse_attention_score/sparse_attention_score_torch_adpt.h:130
# prototype: csrc/attention/sparse_attention_score/op_host/sparse_attention_score_def.cpp:15; the call of aclnnSparseAttentionScore agrees
# only with not (defined(ASCEND_PLATFORM_310P))
if hasattr(torch.ops._C_ascend, "npu_sparse_attention_score"):
    ascend_graph.register_op(
        "SparseAttentionScore", eager=torch.ops._C_ascend.npu_sparse_attention_score,
        shape="query[query0, query1, query2] -> attentionOut[query0, query1, query2]: float16 if dtype(query) == float8_e4m3fn else query",
        arguments={"->": ("attentionOut",)}, override=True,
    )

# adopt: _C_ascend::npu_sparse_attention_score_prefill 181295a54528 e05dbae2
# schema: csrc/torch_binding.cpp:2080
# shape: what the kernel allocates, csrc/attention/sparse_attention_score_prefill/sparse_attention_score_prefill_torch_adpt.h:10
# no GE operator: aclnnSparseAttentionScorePrefill is called, and no prototype of SparseAttentionScorePrefill is in this repository
# only with not (defined(ASCEND_PLATFORM_310P))
if hasattr(torch.ops._C_ascend, "npu_sparse_attention_score_prefill"):
    ascend_graph.register_kernel(
        eager=torch.ops._C_ascend.npu_sparse_attention_score_prefill, shape="query[*s] -> y[*s]: query", override=True,
    )

# adopt: _C_ascend::npu_sparse_attn_sharedkv b844f0e27140 ec78889e
# schema: csrc/torch_binding.cpp:2276
# shape: what the kernel allocates, csrc/torch_binding.cpp:1099
# prototype: csrc/attention/sparse_attn_sharedkv/op_host/sparse_attn_sharedkv_def.cpp:19; the call of aclnnSparseAttnSharedkv agrees
# only with not (defined(ASCEND_PLATFORM_310P))
if hasattr(torch.ops._C_ascend, "npu_sparse_attn_sharedkv"):
    ascend_graph.register_op(
        "SparseAttnSharedkv", eager=torch.ops._C_ascend.npu_sparse_attn_sharedkv,
        shape="q[*q_rest, q_last] -> attn_out[*q_rest, q_last]: q, softmax_lse[*q_rest, 1] if return_softmax_lse else [0]: float32",
        arguments={"ori_kv_stride": lambda arguments: arguments["ori_kv"].stride(0) if arguments["ori_kv"] is not None else 0, "cmp_kv_stride": lambda arguments: arguments["cmp_kv"].stride(0) if arguments["cmp_kv"] is not None else 0},
        override=True,
    )

# adopt: _C_ascend::npu_sparse_attn_sharedkv_metadata 5070c9aafe59 95e5ddd9
# schema: csrc/torch_binding.cpp:2305
# no GE operator: SparseAttnSharedkvMetadata ↔ aclnnSparseAttnSharedkvMetadata: nothing takes the attr String soc_version; nothing takes the attr Int aic_core_num; nothing takes the attr Int aiv_core_num
# meta kept: csrc/torch_binding_meta.cpp:1554; metadata: its size or dtype comes from `at::Device(std::string(device))`, which is not followed
# only with not (defined(ASCEND_PLATFORM_310P))
if hasattr(torch.ops._C_ascend, "npu_sparse_attn_sharedkv_metadata"):
    ascend_graph.register_kernel(eager=torch.ops._C_ascend.npu_sparse_attn_sharedkv_metadata)

# adopt: _C_ascend::npu_sparse_flash_attention d5cbebbd3874 4ce23567
# schema: csrc/torch_binding.cpp:2090
# prototype: csrc/attention/sparse_flash_attention/op_host/sparse_flash_attention_def.cpp:19; the call of aclnnSparseFlashAttention agrees
# meta kept: csrc/torch_binding_meta.cpp:1525; dimensions of query are read in some calls only, and others may not have them
# only with not (defined(ASCEND_PLATFORM_310P))
if hasattr(torch.ops._C_ascend, "npu_sparse_flash_attention"):
    ascend_graph.register_op("SparseFlashAttention", eager=torch.ops._C_ascend.npu_sparse_flash_attention)

# adopt: _C_ascend::npu_swiglu_group_quant f83fef8001e5 a5cb44da
# schema: csrc/torch_binding.cpp:2474
# no GE operator: dst_type is computed in the call
# meta kept: csrc/torch_binding_meta.cpp:1563; y: its size or dtype comes from `at::ScalarType::Float4_e2m1fn_x2`, which is not followed
# only with not (defined(ASCEND_PLATFORM_310P))
if hasattr(torch.ops._C_ascend, "npu_swiglu_group_quant"):
    ascend_graph.register_kernel(eager=torch.ops._C_ascend.npu_swiglu_group_quant)

# adopt: _C_ascend::npu_vllm_quant_lightning_indexer 60d0b8d23900 a882280a
# schema: csrc/torch_binding.cpp:2258
# prototype: csrc/attention/vllm_quant_lightning_indexer/op_host/vllm_quant_lightning_indexer_def.cpp:19; the call of aclnnVllmQuantLightningIndexer agrees
# meta kept: csrc/torch_binding_meta.cpp:1551; dimensions of query are read in some calls only, and others may not have them
# only with not (defined(ASCEND_PLATFORM_310P))
if hasattr(torch.ops._C_ascend, "npu_vllm_quant_lightning_indexer"):
    ascend_graph.register_op(
        "VllmQuantLightningIndexer", eager=torch.ops._C_ascend.npu_vllm_quant_lightning_indexer,
        arguments={"return_value": "return_values", "stride": lambda arguments: arguments["key"].stride(0), "scale_stride": lambda arguments: arguments["key_dequant_scale"].stride(0)},
    )

# adopt: _C_ascend::npu_vllm_quant_lightning_indexer_metadata 8e5e526a15b0 5f0b5552
# schema: csrc/torch_binding.cpp:2334
# no GE operator: VllmQuantLightningIndexerMetadata ↔ aclnnVllmQuantLightningIndexerMetadata: nothing takes the attr Int aic_core_num; nothing takes the attr Int aiv_core_num; nothing takes the attr String soc_version
# meta kept: csrc/torch_binding_meta.cpp:1552; metadata: its size or dtype comes from `at::Device(std::string(device))`, which is not followed
# only with not (defined(ASCEND_PLATFORM_310P))
if hasattr(torch.ops._C_ascend, "npu_vllm_quant_lightning_indexer_metadata"):
    ascend_graph.register_kernel(eager=torch.ops._C_ascend.npu_vllm_quant_lightning_indexer_metadata)

# adopt: _C_ascend::sgmv_expand bd43ac22ebe7 d79ceee9
# schema: csrc/torch_binding.cpp:1981
# returned, which the schema does not say: y
# shape: what the kernel allocates, csrc/torch_binding.cpp:450
# no GE operator: csrc/torch_binding.cpp:450 launches sgmv_expand_bfloat16_t, sgmv_expand_half; name a prototype with register_op
# only with not (defined(ASCEND_PLATFORM_310P)) and defined(VLLM_ENABLE_ATB_AND_DIRECT_KERNELS)
if hasattr(torch.ops._C_ascend, "sgmv_expand"):
    ascend_graph.register_kernel(
        eager=ascend_graph.define_from_function("_C_ascend_writes::sgmv_expand(Tensor! x, Tensor! weight, Tensor! lora_indices, Tensor! seq_len, Tensor(a4!) y, int slice_offset, int slice_size) -> Tensor(a4!)", torch.ops._C_ascend.sgmv_expand),
        shape="y -> y",
    )

# adopt: _C_ascend::sgmv_shrink 4f02135b64f8 256cd113
# schema: csrc/torch_binding.cpp:1978
# no GE operator: csrc/torch_binding.cpp:408 launches sgmv_shrink_bfloat16_t, sgmv_shrink_half; name a prototype with register_op
# only with not (defined(ASCEND_PLATFORM_310P)) and defined(VLLM_ENABLE_ATB_AND_DIRECT_KERNELS)
if hasattr(torch.ops._C_ascend, "sgmv_shrink"):
    ascend_graph.register_kernel(eager=torch.ops._C_ascend.sgmv_shrink, shape="->")

# adopt: _C_ascend::store_kv_block 3e4c16357896 0f7cf012
# schema: csrc/torch_binding.cpp:2550
# written by aclnnStoreKVBlock, which the schema does not say: key_cache_in
# no GE operator: _C_ascend_writes::store_kv_block ↔ StoreKVBlock: the schema writes key_cache_in, but no output of StoreKVBlock holds its new value (outputs: none). If the operator only reads it, write: _C_ascend_writes::store_kv_block(Tensor key_in, Tensor key_cache_in, Tensor group_len, Tensor group_key_idx,Tensor group_key_cache_idx, int block_size=0) -> ()
# only with not (defined(ASCEND_PLATFORM_310P))
if hasattr(torch.ops._C_ascend, "store_kv_block"):
    ascend_graph.register_kernel(
        eager=ascend_graph.define_from_function("_C_ascend_writes::store_kv_block(Tensor key_in, Tensor(a1!) key_cache_in, Tensor group_len, Tensor group_key_idx,Tensor group_key_cache_idx, int block_size=0) -> ()", torch.ops._C_ascend.store_kv_block),
        shape="->",
    )

# adopt: _C_ascend::store_kv_block_metadata bad15cd65d52 e2e04e70
# schema: csrc/torch_binding.cpp:2544
# only with not (defined(ASCEND_PLATFORM_310P))
# undecided: its schema says that nothing is written, and aclnnStoreKvBlockMetadata is called, and csrc/attention/store_kv_block_metadata/op_api/aclnn_store_kv_block_metadata.h:20 does not tell what it writes: write (a!) at what it writes, and uncomment
# ascend_graph.register_kernel(
#     eager=ascend_graph.define_from_function("_C_ascend_writes::store_kv_block_metadata(Tensor slot_mapping_npu, Tensor group_len, Tensor group_key_idx, Tensor group_key_cache_idx, int block_size=0) -> ()", torch.ops._C_ascend.store_kv_block_metadata),
#     shape="->",
# )

# adopt: _C_ascend::swap_blocks 1b0a5017d47d 2ba53215
# schema: csrc/torch_binding.cpp:2004
# no GE operator: csrc/torch_binding.cpp:300 calls no aclnn function
# only with not (defined(ASCEND_PLATFORM_310P)) and defined(VLLM_ENABLE_ATB_AND_DIRECT_KERNELS)
if hasattr(torch.ops._C_ascend, "swap_blocks"):
    ascend_graph.register_kernel(eager=torch.ops._C_ascend.swap_blocks, shape="->")

# adopt: _C_ascend::swap_blocks_batch ffcea4d265be ce056ebb
# schema: csrc/torch_binding.cpp:2011
# only with not (defined(ASCEND_PLATFORM_310P))
# undecided: it writes y, which its schema does not say, and it passes src_ptrs, dst_ptrs, sizes to aclrtMemcpyBatchAsync, which is not known here: write (a!) at what it writes, and uncomment
# ascend_graph.register_kernel(
#     eager=ascend_graph.define_from_function("_C_ascend_writes::swap_blocks_batch(Tensor x, Tensor(a1!) y, Tensor z, int direction) -> ()", torch.ops._C_ascend.swap_blocks_batch),
#     shape="->",
# )

# adopt: _C_ascend::transpose_kv_cache_by_block d1c40f755aeb 29132030
# schema: csrc/torch_binding.cpp:2165
# only with not (defined(ASCEND_PLATFORM_310P))
# undecided: its schema says that nothing is written, and what the kernel of TransposeKvCacheByBlock does with KCache, VCache is not understood: write (a!) at what it writes, and uncomment
# ascend_graph.register_kernel(
#     eager=ascend_graph.define_from_function("_C_ascend_writes::transpose_kv_cache_by_block(Tensor[] kCache, Tensor[] vCache, Tensor blockIDs, int blockSize, int headNum, int headDim, int splitNum, int layerNum) -> ()", torch.ops._C_ascend.transpose_kv_cache_by_block),
#     shape="->",
# )

# adopt: vllm::ascend_eplb_map_to_physical 7928cb95b9ec 406c4801
# schema: vllm_ascend/ops/fused_moe/eplb.py:121
# shape: the meta function, vllm_ascend/ops/fused_moe/eplb.py:114
# no GE operator: its kernel is Python
ascend_graph.register_kernel(
    eager=torch.ops.vllm.ascend_eplb_map_to_physical, shape="topk_ids[*s] -> y like topk_ids", override=True,
)

# adopt: vllm::dsa_forward 7d92b5ca7b25 ecd82e8a
# schema: vllm_ascend/ops/dsa.py:200
# no GE operator: its kernel is Python
ascend_graph.register_kernel(eager=torch.ops.vllm.dsa_forward, shape="->", override=True)

# adopt: vllm::maybe_all_gather_and_maybe_unpad cfa66400a713 a7f25ee6
# schema: vllm_ascend/ops/register_custom_ops.py:175
# no GE operator: its kernel is Python
# meta kept: vllm_ascend/ops/register_custom_ops.py:178; its size or dtype comes from `[x[idx, :size] for idx, size in enumerate(local_sizes)]`, which is not followed
ascend_graph.register_kernel(eager=torch.ops.vllm.maybe_all_gather_and_maybe_unpad)

# adopt: vllm::maybe_pad_and_reduce f74ddd19db0d 5383c819
# schema: vllm_ascend/ops/register_custom_ops.py:183
# no GE operator: its kernel is Python
# meta kept: vllm_ascend/ops/register_custom_ops.py:186; its size or dtype comes from `tensor_model_parallel_all_reduce(x)`, which is not followed
ascend_graph.register_kernel(eager=torch.ops.vllm.maybe_pad_and_reduce)

# adopt: vllm::minimax_m3_sparse_forward fbcbcd808c73 9f1d510e
# schema: vllm_ascend/models/minimax_m3/msa_m3.py:1155
# no GE operator: its kernel is Python
ascend_graph.register_kernel(eager=torch.ops.vllm.minimax_m3_sparse_forward, shape="->", override=True)

# adopt: vllm::mla_forward 2e673d50c34d 9711125f
# schema: vllm_ascend/ops/mla.py:183
# no GE operator: its kernel is Python
ascend_graph.register_kernel(eager=torch.ops.vllm.mla_forward, shape="->", override=True)

# adopt: vllm::muls_add dee394e6ca8f 3423d5c8
# schema: vllm_ascend/ops/register_custom_ops.py:207
# shape: what the kernel allocates, vllm_ascend/ops/triton/muls_add.py:29
# no GE operator: its kernel is Python
ascend_graph.register_kernel(eager=torch.ops.vllm.muls_add, shape="x[*s] -> y_out like x", override=True)

# adopt: vllm::npu_rotary_embedding af1b0cf59809 33b3286a
# schema: vllm_ascend/ops/register_custom_ops.py:199
# shape: the meta function, vllm_ascend/ops/register_custom_ops.py:155
# no GE operator: its kernel is Python
ascend_graph.register_kernel(
    eager=torch.ops.vllm.npu_rotary_embedding, shape="query, key -> y0 like query, y1 like key", override=True,
)

# adopt: vllm::qkv_rmsnorm_rope 6d7694205537 69187e03
# schema: vllm_ascend/ops/triton/linearnorm/split_qkv_rmsnorm_rope.py:384
# shape: what the kernel allocates, vllm_ascend/ops/triton/linearnorm/split_qkv_rmsnorm_rope.py:264
# no GE operator: its kernel is Python
ascend_graph.register_kernel(
    eager=torch.ops.vllm.qkv_rmsnorm_rope,
    shape="input[batch_size, *input_rest] -> y0[batch_size, q_hidden_size]: input, y1[batch_size, kv_hidden_size]: input, y2[batch_size, kv_hidden_size]: input",
    override=True,
)

# adopt: vllm::qkv_rmsnorm_rope_simt ba09b6315593 bf1bc574
# schema: vllm_ascend/ops/triton/linearnorm/split_qkv_rmsnorm_rope_simt.py:380
# shape: what the kernel allocates, vllm_ascend/ops/triton/linearnorm/split_qkv_rmsnorm_rope_simt.py:259
# no GE operator: its kernel is Python
ascend_graph.register_kernel(
    eager=torch.ops.vllm.qkv_rmsnorm_rope_simt,
    shape="input[batch_size, *input_rest] -> y0[batch_size, q_hidden_size]: input, y1[batch_size, kv_hidden_size]: input, y2[batch_size, kv_hidden_size]: input",
    override=True,
)

# adopt: vllm::quantize 4c8587db4461 662e5883
# schema: vllm_ascend/ops/register_custom_ops.py:191
# no GE operator: its kernel is Python
# meta kept: vllm_ascend/ops/register_custom_ops.py:194; its size or dtype comes from `torch.qint8`, which is not followed
ascend_graph.register_kernel(eager=torch.ops.vllm.quantize)

# adopt: vllm::split_qkv_tp_rmsnorm_rope 294d1aeab03e 689af28c
# schema: vllm_ascend/ops/triton/linearnorm/split_qkv_tp_rmsnorm_rope.py:370
# shape: what the kernel allocates, vllm_ascend/ops/triton/linearnorm/split_qkv_tp_rmsnorm_rope.py:254
# no GE operator: its kernel is Python
ascend_graph.register_kernel(
    eager=torch.ops.vllm.split_qkv_tp_rmsnorm_rope,
    shape="input[num_tokens, *input_rest] -> y0[num_tokens, q_hidden_size]: input, y1[num_tokens, kv_hidden_size]: input, y2[num_tokens, kv_hidden_size]: input",
    override=True,
)

# adopt: vllm::triton_split_qkv_rmsnorm_mrope 4369d64f4673 a730e86d
# schema: vllm_ascend/ops/triton/linearnorm/split_qkv_rmsnorm_mrope.py:421
# shape: what the kernel allocates, vllm_ascend/ops/triton/linearnorm/split_qkv_rmsnorm_mrope.py:282
# no GE operator: its kernel is Python
ascend_graph.register_kernel(
    eager=torch.ops.vllm.triton_split_qkv_rmsnorm_mrope,
    shape="qkv[num_tokens, *qkv_rest] -> y0[num_tokens, num_q_heads * head_size]: qkv, y1[num_tokens, num_kv_heads * head_size]: qkv, y2[num_tokens, num_kv_heads * head_size]: qkv, y3[num_tokens, ((num_q_heads * head_size) if has_gate else 0)]: qkv",
    override=True,
)

# adopt: vllm::unquantized_gemm be56419b5381 a4ca5f85
# schema: vllm_ascend/ops/linear.py:70
# shape: the meta function, vllm_ascend/ops/linear.py:61
# no GE operator: its kernel is Python
ascend_graph.register_kernel(
    eager=torch.ops.vllm.unquantized_gemm, shape="x[x0, *x_rest], weight[weight0, *weight_rest] -> y[x0, weight0]: x",
    override=True,
)

# adopt: vllm_ascend::compute_lru_resident_addrs 98d8e0a67b3b 58b52013
# bound without a schema: vllm_ascend/distributed/kv_transfer/sparse_kv_offload/sparse_kv_offload.cpp:334
# schema: the declaration of the function, vllm_ascend/distributed/kv_transfer/sparse_kv_offload/sparse_kv_offload.cpp:237
# written: gvas_buffer, addr_buffer, num_tokens_buffer
# impossible: it returns something else than tensors, and graphs hold tensors

# adopt: end _C_ascend::batch_matmul_transpose, _C_ascend::bgmv_expand, _C_ascend::bgmv_shrink, _C_ascend::chunk_fwd_o, _C_ascend::chunk_gated_delta_rule_fwd_h, _C_ascend::compressor, _C_ascend::compressor_metadata, _C_ascend::compressor_metadata_out, _C_ascend::device_print, _C_ascend::device_print_tensor, _C_ascend::dispatch_ffn_combine, _C_ascend::get_npu_storage_shape, _C_ascend::grouped_matmul_swiglu_quant, _C_ascend::grouped_matmul_swiglu_quant_v2, _C_ascend::grouped_matmul_swiglu_quant_weight_nz, _C_ascend::grouped_matmul_swiglu_quant_weight_nz_tensor_list, _C_ascend::indexer_compress_epilog_v2, _C_ascend::inplace_partial_rotary_mul, _C_ascend::kv_compress_epilog, _C_ascend::mla_preprocess, _C_ascend::moe_gating_top_k, _C_ascend::moe_gating_top_k_hash, _C_ascend::moe_grouped_matmul, _C_ascend::npu_add_rms_norm_bias, _C_ascend::npu_causal_conv1d_310, _C_ascend::npu_causal_conv1d_custom, _C_ascend::npu_copy_and_expand_eagle_inputs, _C_ascend::npu_dequant_swiglu_quant, _C_ascend::npu_gemma_rms_norm, _C_ascend::npu_hc_post, _C_ascend::npu_hc_pre_v2, _C_ascend::npu_k2q_csr, _C_ascend::npu_kv_quant_sparse_attn_sharedkv, _C_ascend::npu_kv_quant_sparse_attn_sharedkv_metadata, _C_ascend::npu_kv_quant_sparse_flash_attention, _C_ascend::npu_lightning_indexer, _C_ascend::npu_lightning_indexer_quant, _C_ascend::npu_recurrent_gated_delta_rule, _C_ascend::npu_recurrent_gated_delta_rule_310, _C_ascend::npu_rms_norm_dynamic_quant, _C_ascend::npu_scatter_nd_update_v2, _C_ascend::npu_sign_bits_pack, _C_ascend::npu_sparse_attention_score, _C_ascend::npu_sparse_attention_score_prefill, _C_ascend::npu_sparse_attn_sharedkv, _C_ascend::npu_sparse_attn_sharedkv_metadata, _C_ascend::npu_sparse_flash_attention, _C_ascend::npu_swiglu_group_quant, _C_ascend::npu_vllm_quant_lightning_indexer, _C_ascend::npu_vllm_quant_lightning_indexer_metadata, _C_ascend::sgmv_expand, _C_ascend::sgmv_shrink, _C_ascend::store_kv_block, _C_ascend::store_kv_block_metadata, _C_ascend::swap_blocks, _C_ascend::swap_blocks_batch, _C_ascend::transpose_kv_cache_by_block, vllm::ascend_eplb_map_to_physical, vllm::dsa_forward, vllm::maybe_all_gather_and_maybe_unpad, vllm::maybe_pad_and_reduce, vllm::minimax_m3_sparse_forward, vllm::mla_forward, vllm::muls_add, vllm::npu_rotary_embedding, vllm::qkv_rmsnorm_rope, vllm::qkv_rmsnorm_rope_simt, vllm::quantize, vllm::split_qkv_tp_rmsnorm_rope, vllm::triton_split_qkv_rmsnorm_mrope, vllm::unquantized_gemm, vllm_ascend::compute_lru_resident_addrs
