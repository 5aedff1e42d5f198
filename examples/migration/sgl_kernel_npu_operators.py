# adopt: (head) c7a1208ec771
"""Operators of sgl-kernel-npu, registered with ascend_graph.

Written by ``ascend-graph adopt``. Import the library that defines the operators first. A region that is changed
is kept when adopt runs again; complete the lines that are marked as undecided.
"""

import math
from pathlib import Path

import torch

import ascend_graph

# An installed operator package has the prototypes; a checkout is read where there is one.
_SOURCES = Path(__file__).resolve().parent / "../../build/migration/sgl-kernel-npu"
for _source in (
    "csrc/attentions/csrc/ops/laser_attention/op_host/laser_attention_def.cpp",
):
    if (_SOURCES / _source).exists():
        ascend_graph.load_prototypes(_SOURCES / _source)

# adopt: attentions::ada_block_sparse_attention 5cf23577780e bd811840
# schema: csrc/attentions/csrc/plugin/register_ops.cpp:35
# shape: what the kernel allocates, csrc/attentions/csrc/plugin/ada_block_sparse_attention.cpp:24
# no GE operator: actual_seq_lengths is computed in the call
ascend_graph.register_kernel(eager=torch.ops.attentions.ada_block_sparse_attention, shape="query[*s] -> y[*s]: query")

# adopt: attentions::la 0ab1b2154169 b93cccba
# schema: csrc/attentions/csrc/plugin/register_ops.cpp:23
# shape: what the kernel allocates, csrc/attentions/csrc/plugin/la.cpp:28
# prototype: csrc/attentions/csrc/ops/laser_attention/op_host/laser_attention_def.cpp:20; the call of aclnnLaserAttention agrees
ascend_graph.register_op(
    "LaserAttention", eager=torch.ops.attentions.la,
    shape="query[query0, query1, query2, query3] -> softmax_log_max_sum[query0, query1, query2]: float32, attention_out[query0, query1, query2, query3]: float32",
)

# adopt: attentions::layernorm b34ffb767902 f251cb8a
# schema: csrc/attentions/csrc/plugin/register_ops.cpp:51
# no GE operator: aclnnLayerNormWithImplMode is called, and no prototype of LayerNormWithImplMode is in this repository
# meta function: what the kernel allocates, csrc/attentions/csrc/plugin/layernorm.cpp:23; as a relation: y1: it depends on dimensions that only the call knows
def _layernorm(input, normalized_shape, weight=None, bias=None, eps=1e-05, impl_mode=0):
    return input.new_empty((*input.shape,), dtype=input.dtype), (input.new_empty((math.prod((*input.shape[:(input.dim() - len(normalized_shape))],)),), dtype=input.dtype) if (math.prod((*input.shape[:(input.dim() - len(normalized_shape))],)) <= 0) else input.new_empty((*input.shape[:(input.dim() - len(normalized_shape))], *(1,) * (input.dim() - (input.dim() - len(normalized_shape)))), dtype=input.dtype)), (input.new_empty((math.prod((*input.shape[:(input.dim() - len(normalized_shape))],)),), dtype=input.dtype) if (math.prod((*input.shape[:(input.dim() - len(normalized_shape))],)) <= 0) else input.new_empty((*input.shape[:(input.dim() - len(normalized_shape))], *(1,) * (input.dim() - (input.dim() - len(normalized_shape)))), dtype=input.dtype))

ascend_graph.register_kernel(eager=torch.ops.attentions.layernorm, meta=_layernorm)

# adopt: attentions::rainfusionattention 4cb7cb337f97 7bd90211
# schema: csrc/attentions/csrc/plugin/register_ops.cpp:29
# shape: what the kernel allocates, csrc/attentions/csrc/plugin/rainfusionattention.cpp:27
# no GE operator: aclnnRainFusionAttention is called, and no prototype of RainFusionAttention is in this repository
ascend_graph.register_kernel(
    eager=torch.ops.attentions.rainfusionattention,
    shape="query[query0, query1, query2, *query_rest] -> y0[query0, query1, query2, *query_rest]: query, y1[query0, query1, query2]: query",
)

# adopt: attentions::sparse_block_estimate c41e5035546a 2190f6e7
# schema: csrc/attentions/csrc/plugin/register_ops.cpp:43
# shape: what the kernel allocates, csrc/attentions/csrc/plugin/sparse_block_estimate.cpp:31
# no GE operator: actual_seq_lengths is computed in the call
ascend_graph.register_kernel(
    eager=torch.ops.attentions.sparse_block_estimate,
    shape='query[query0, query1, query2, *query_rest] -> y0[query0, (query1 if input_layout == "BNSD" else (query2 if input_layout == "BSND" else num_heads)), (((query2 if input_layout == "BNSD" else query1) + sparse_size) - 1) // sparse_size, ((((((query2 if input_layout == "BNSD" else query1) + sparse_size) - 1) // sparse_size) + 31) // 32) * 32]: int8, y1[query0, (query1 if input_layout == "BNSD" else (query2 if input_layout == "BSND" else num_heads)), (((query2 if input_layout == "BNSD" else query1) + sparse_size) - 1) // sparse_size]: int32',
)

# adopt: npu::alloc_extend a49da8c2ec9c b50def93
# schema: csrc/pytorch_extensions.cpp:31
# no GE operator: csrc/alloc_extend/op_host/alloc_extend_tiling.cpp:41 launches alloc_extend; name a prototype with register_op
ascend_graph.register_kernel(eager=torch.ops.npu.alloc_extend, shape="->")

# adopt: npu::apply_token_bitmask 2d6662502469 319083b0
# schema: csrc/pytorch_extensions.cpp:97
# written, which the schema does not say: logits, bitmask; returned, which the schema does not say: logits
# shape: what the kernel allocates, csrc/pytorch_extensions.cpp:245
# no GE operator: csrc/pytorch_extensions.cpp:245 launches apply_token_bitmask_bf16, apply_token_bitmask_fp16, apply_token_bitmask_fp32; name a prototype with register_op
ascend_graph.register_kernel(
    eager=ascend_graph.define_from_function("npu_writes::apply_token_bitmask(Tensor(a0!) logits, Tensor(a1!) bitmask, Tensor? indices=None) -> Tensor(a0!)", torch.ops.npu.apply_token_bitmask),
    shape="logits -> logits",
)

# adopt: npu::assign_cache_op 56f9bdcff75d fadcdada
# schema: csrc/pytorch_extensions.cpp:43
# impossible: it returns something else than tensors, and graphs hold tensors

# adopt: npu::batch_matmul_transpose 782a99ede569 0528b209
# schema: csrc/pytorch_extensions.cpp:117
# no GE operator: csrc/batch_matmul_transpose/op_host/batch_matmul_transpose.cpp:46 launches batch_matmul_transpose; name a prototype with register_op
# only with defined(SGL_KERNEL_ENABLE_A3_ONLY_OPS)
if hasattr(torch.ops.npu, "batch_matmul_transpose"):
    ascend_graph.register_kernel(eager=torch.ops.npu.batch_matmul_transpose, shape="->")

# adopt: npu::bgmv_expand 71f8d9e8fc77 51e44e99
# schema: csrc/pytorch_extensions.cpp:65
# returned, which the schema does not say: y
# shape: what the kernel allocates, csrc/lora/op_host/bgmv_expand.cpp:47
# no GE operator: csrc/lora/op_host/bgmv_expand.cpp:47 launches bgmv_expand_bfloat16_t, bgmv_expand_half; name a prototype with register_op
ascend_graph.register_kernel(
    eager=ascend_graph.define_from_function("npu_writes::bgmv_expand(Tensor! x, Tensor! weight, Tensor! indices, Tensor(a3!) y, int slice_offset, int slice_size) -> Tensor(a3!)", torch.ops.npu.bgmv_expand),
    shape="y -> y",
)

# adopt: npu::bgmv_shrink 662bf7edad92 645014ec
# schema: csrc/pytorch_extensions.cpp:69
# no GE operator: csrc/lora/op_host/bgmv_shrink.cpp:46 launches bgmv_shrink_bfloat16_t, bgmv_shrink_half; name a prototype with register_op
ascend_graph.register_kernel(eager=torch.ops.npu.bgmv_shrink, shape="->")

# adopt: npu::build_tree_kernel_efficient b3896de858f8 39022c54
# schema: csrc/pytorch_extensions.cpp:47
# written, which the schema does not say: tree_mask, positions, retrive_index, retrive_next_token, retrive_next_sibling
# no GE operator: csrc/build_tree/op_host/build_tree.cpp:49 launches build_tree_efficient; name a prototype with register_op
ascend_graph.register_kernel(
    eager=ascend_graph.define_from_function("npu_writes::build_tree_kernel_efficient(Tensor parent_list, Tensor selected_index, Tensor verified_seq_len, Tensor(a3!) tree_mask, Tensor(a4!) positions, Tensor(a5!) retrive_index, Tensor(a6!) retrive_next_token, Tensor(a7!) retrive_next_sibling, int topk, int depth, int draft_token_num, int tree_mask_mode) -> ()", torch.ops.npu.build_tree_kernel_efficient),
    shape="->",
)

# adopt: npu::cache_loc_assign 2be947c89a8f 40ffa5e6
# schema: csrc/pytorch_extensions.cpp:35
# written, which the schema does not say: token_pool, out_cache_loc; returned, which the schema does not say: token_pool
# shape: what the kernel allocates, csrc/cache_location_assign/op_host/cache_loc_assign.cpp:88
# no GE operator: csrc/cache_location_assign/op_host/cache_loc_assign.cpp:88 launches cache_loc_assign; name a prototype with register_op
ascend_graph.register_kernel(
    eager=ascend_graph.define_from_function("npu_writes::cache_loc_assign(Tensor req_indices, Tensor(a1!) token_pool, Tensor start_offset, Tensor end_offset, Tensor(a4!) out_cache_loc) -> Tensor(a1!)", torch.ops.npu.cache_loc_assign),
    shape="token_pool -> token_pool",
)

# adopt: npu::cache_loc_update 046cb4dbfc25 a26d6295
# schema: csrc/pytorch_extensions.cpp:39
# written, which the schema does not say: token_pool, out_cache_loc; returned, which the schema does not say: out_cache_loc
# shape: what the kernel allocates, csrc/cache_location_assign/op_host/cache_loc_assign.cpp:102
# no GE operator: csrc/cache_location_assign/op_host/cache_loc_assign.cpp:102 launches cache_loc_assign; name a prototype with register_op
ascend_graph.register_kernel(
    eager=ascend_graph.define_from_function("npu_writes::cache_loc_update(Tensor req_indices, Tensor(a1!) token_pool, Tensor start_offset, Tensor end_offset, Tensor(a4!) out_cache_loc) -> Tensor(a4!)", torch.ops.npu.cache_loc_update),
    shape="out_cache_loc -> out_cache_loc",
)

# adopt: npu::catlass_matmul_basic b934d27c5613 7b38c384
# schema: csrc/pytorch_extensions.cpp:193
# no GE operator: csrc/catlass/op_host/catlass_matmul_basic.cpp:64 launches catlass_matmul_basic; name a prototype with register_op
# only with defined(BUILD_CATLASS_MODULE)
if hasattr(torch.ops.npu, "catlass_matmul_basic"):
    ascend_graph.register_kernel(eager=torch.ops.npu.catlass_matmul_basic, shape="->")

# adopt: npu::causal_conv1d 93910ad04234 245df9a4
# schema: csrc/pytorch_extensions.cpp:175
# written, which the schema does not say: conv_states
# shape: what the kernel allocates, csrc/pytorch_extensions.cpp:284
# no GE operator: csrc/pytorch_extensions.cpp:284 launches causal_conv1d; name a prototype with register_op
# only with defined(SGL_KERNEL_ENABLE_A3_ONLY_OPS)
if hasattr(torch.ops.npu, "causal_conv1d"):
    ascend_graph.register_kernel(
        eager=ascend_graph.define_from_function("npu_writes::causal_conv1d(Tensor x, Tensor weight, Tensor(a2!) conv_states, Tensor? bias=None, Tensor? query_start_loc=None, Tensor? cache_indices=None, Tensor? has_initial_state=None, Tensor? num_accepted_tokens=None, int activation_mode=0, int pad_slot_id=-1, int run_mode=0) -> Tensor", torch.ops.npu.causal_conv1d),
        shape="x[*s] -> y like x",
    )

# adopt: npu::causal_conv1d_update 590227033b34 2a06ec30
# schema: csrc/pytorch_extensions.cpp:99
# shape: what the kernel allocates, csrc/pytorch_extensions.cpp:250
# no GE operator: csrc/pytorch_extensions.cpp:250 launches causal_conv1d_update_bfloat16_t, causal_conv1d_update_half; name a prototype with register_op
ascend_graph.register_kernel(eager=torch.ops.npu.causal_conv1d_update, shape="x[x0, x1, x2] -> y like x")

# adopt: npu::compressor aa360975c375 96a065ab
# schema: csrc/pytorch_extensions.cpp:165
# no GE operator: csrc/compressor/op_host/compressor.cpp:157 launches compressor; name a prototype with register_op
# meta function: what the kernel allocates, csrc/compressor/op_host/compressor.cpp:157; as a relation: dimensions of x are read in some calls only, and others may not have them
# only with defined(SGL_KERNEL_ENABLE_A3_ONLY_OPS)
def _compressor(x, wkv, wgate, state_cache, ape, norm_weight, rope_sin, rope_cos, state_block_table=None, cu_seqlens=None, seqused=None, start_pos=None, rope_head_dim=64, cmp_ratio=4, coff=1, norm_eps=1e-06, rotary_mode=1, cache_mode=1, state_cache_stride_dim0=0):
    return (x.new_empty((min(x.shape[0], ((x.shape[0] // cmp_ratio) + ((cu_seqlens.shape[0] - 1) if (cu_seqlens is not None and (cu_seqlens.numel() >= 2)) else 1))), norm_weight.shape[0]), dtype=x.dtype) if (x.dim() != 3) else x.new_empty((x.shape[0], (((x.shape[1] + cmp_ratio) - 1) // cmp_ratio), norm_weight.shape[0]), dtype=x.dtype))

if hasattr(torch.ops.npu, "compressor"):
    ascend_graph.register_kernel(eager=torch.ops.npu.compressor, meta=_compressor)

# adopt: npu::helloworld cc78498c4bd9 e1ec97de
# schema: csrc/pytorch_extensions.cpp:29
# shape: what the kernel allocates, csrc/helloworld/op_host/helloworld.cpp:19
# no GE operator: csrc/helloworld/op_host/helloworld.cpp:19 launches helloworld; name a prototype with register_op
ascend_graph.register_kernel(eager=torch.ops.npu.helloworld, shape="x[*s] -> y_out like x")

# adopt: npu::lightning_indexer 91deb21b642f 88adae82
# schema: csrc/pytorch_extensions.cpp:148
# no GE operator: csrc/lightning_indexer/op_host/lightning_indexer.cpp:61 launches lightning_indexer; name a prototype with register_op
# only with defined(SGL_KERNEL_ENABLE_A3_ONLY_OPS)
# undecided: no meta function, and the shape of its outputs is not certain: y: its size or dtype comes from `LightningIndexer('lightning_indexer')`, which is not followed
# ascend_graph.register_kernel(eager=torch.ops.npu.lightning_indexer, shape="…")

# adopt: npu::mega_chunk_gdn df746a1f15cc 75e8861f
# schema: csrc/pytorch_extensions.cpp:128
# no GE operator: csrc/mega_chunk_gdn/op_host/mega_chunk_gdn.cpp:71 launches launch_mega_kernel; name a prototype with register_op
# only with defined(SGL_KERNEL_ENABLE_A3_ONLY_OPS)
if hasattr(torch.ops.npu, "mega_chunk_gdn"):
    ascend_graph.register_kernel(eager=torch.ops.npu.mega_chunk_gdn, shape="->")

# adopt: npu::mla_preprocess d5e2a46099e9 ace3890f
# schema: csrc/pytorch_extensions.cpp:105
# shape: what the kernel allocates, csrc/mla_preprocess/op_host/mla_preprocess.cpp:623
# no GE operator: csrc/mla_preprocess/op_host/mla_preprocess.cpp:623 launches mla_preprocess; name a prototype with register_op
# only with defined(SGL_KERNEL_ENABLE_A3_ONLY_OPS)
if hasattr(torch.ops.npu, "mla_preprocess"):
    ascend_graph.register_kernel(
        eager=torch.ops.npu.mla_preprocess,
        shape="q_out0, kv_cache_out0, q_out1, kv_cache_out1 -> q_out0, kv_cache_out0, q_out1, kv_cache_out1",
    )

# adopt: npu::npu_sparse_attention_score f399fc6ec601 9e3a40e8
# schema: csrc/pytorch_extensions.cpp:141
# shape: what the kernel allocates, csrc/sparse_attention_score/op_host/sparse_attention_score.cpp:42
# no GE operator: csrc/sparse_attention_score/op_host/sparse_attention_score.cpp:42 launches sparse_attention_score; name a prototype with register_op
# only with defined(SGL_KERNEL_ENABLE_A3_ONLY_OPS)
if hasattr(torch.ops.npu, "npu_sparse_attention_score"):
    ascend_graph.register_kernel(
        eager=torch.ops.npu.npu_sparse_attention_score,
        shape="query[*s] -> y[*s]: float16 if dtype(query) == float8_e4m3fn else query",
    )

# adopt: npu::recurrent_gated_delta_rule b1f6e782bbdf 4ec9ca79
# schema: csrc/pytorch_extensions.cpp:121
# shape: what the kernel allocates, csrc/recurrent_gated_delta_rule/op_host/recurrent_gated_delta_rule.cpp:33
# no GE operator: csrc/recurrent_gated_delta_rule/op_host/recurrent_gated_delta_rule.cpp:33 launches recurrent_gated_delta_rule; name a prototype with register_op
# only with defined(SGL_KERNEL_ENABLE_A3_ONLY_OPS)
if hasattr(torch.ops.npu, "recurrent_gated_delta_rule"):
    ascend_graph.register_kernel(
        eager=torch.ops.npu.recurrent_gated_delta_rule,
        shape="mix_qkv[b, s, d], recurrent_state[recurrent_state0, recurrent_state1, dv, dk] -> y[b, s, nv, dv]: mix_qkv",
    )

# adopt: npu::sgemmc_expand 901c4c1b680d 6688ebcf
# schema: csrc/pytorch_extensions.cpp:89
# returned, which the schema does not say: y
# shape: what the kernel allocates, csrc/lora/op_host/sgemmc_expand.cpp:27
# no GE operator: csrc/lora/op_host/sgemmc_expand.cpp:27 launches sgemmc_expand; name a prototype with register_op
ascend_graph.register_kernel(
    eager=ascend_graph.define_from_function("npu_writes::sgemmc_expand(Tensor! x, Tensor! weight, Tensor! lora_indices, Tensor! seq_len, Tensor! lora_ranks, Tensor! sliceOffsets, Tensor(a6!) y) -> Tensor(a6!)", torch.ops.npu.sgemmc_expand),
    shape="y -> y",
)

# adopt: npu::sgemmc_shrink d8848520e4e2 7b07df5d
# schema: csrc/pytorch_extensions.cpp:93
# no GE operator: csrc/lora/op_host/sgemmc_shrink.cpp:27 launches sgemmc_shrink; name a prototype with register_op
ascend_graph.register_kernel(eager=torch.ops.npu.sgemmc_shrink, shape="->")

# adopt: npu::sgemmv_expand af54e4a5f931 add94f44
# schema: csrc/pytorch_extensions.cpp:81
# returned, which the schema does not say: y
# shape: what the kernel allocates, csrc/lora/op_host/sgemmv_expand.cpp:49
# no GE operator: csrc/lora/op_host/sgemmv_expand.cpp:49 launches sgemmv_expand_bfloat16_t, sgemmv_expand_half; name a prototype with register_op
ascend_graph.register_kernel(
    eager=ascend_graph.define_from_function("npu_writes::sgemmv_expand(Tensor! x, Tensor! weight, Tensor! lora_indices, Tensor! seq_len, Tensor! lora_ranks, Tensor! sliceOffsets, Tensor(a6!) y) -> Tensor(a6!)", torch.ops.npu.sgemmv_expand),
    shape="y -> y",
)

# adopt: npu::sgemmv_shrink c6fa7807abac 63333e5d
# schema: csrc/pytorch_extensions.cpp:85
# no GE operator: csrc/lora/op_host/sgemmv_shrink.cpp:48 launches sgemmv_shrink_bfloat16_t, sgemmv_shrink_half; name a prototype with register_op
ascend_graph.register_kernel(eager=torch.ops.npu.sgemmv_shrink, shape="->")

# adopt: npu::sgl_kernel_npu_print_version 86e8b2c3de63 f0afe97c
# schema: csrc/pytorch_extensions.cpp:26
# impossible: it has neither tensors nor returns: nothing to register

# adopt: npu::sgl_kernel_npu_version 56f9bdcff75d 1d9826db
# schema: csrc/pytorch_extensions.cpp:27
# impossible: it returns something else than tensors, and graphs hold tensors

# adopt: npu::sgmv_expand 071994216c03 d79ceee9
# schema: csrc/pytorch_extensions.cpp:73
# returned, which the schema does not say: y
# shape: what the kernel allocates, csrc/lora/op_host/sgmv_expand.cpp:47
# no GE operator: csrc/lora/op_host/sgmv_expand.cpp:47 launches sgmv_expand_bfloat16_t, sgmv_expand_half; name a prototype with register_op
ascend_graph.register_kernel(
    eager=ascend_graph.define_from_function("npu_writes::sgmv_expand(Tensor! x, Tensor! weight, Tensor! lora_indices, Tensor! seq_len, Tensor(a4!) y, int slice_offset, int slice_size) -> Tensor(a4!)", torch.ops.npu.sgmv_expand),
    shape="y -> y",
)

# adopt: npu::sgmv_shrink 6f730b97e2cd 256cd113
# schema: csrc/pytorch_extensions.cpp:77
# no GE operator: csrc/lora/op_host/sgmv_shrink.cpp:46 launches sgmv_shrink_bfloat16_t, sgmv_shrink_half; name a prototype with register_op
ascend_graph.register_kernel(eager=torch.ops.npu.sgmv_shrink, shape="->")

# adopt: npu::softfp8_w8a16_grouped_matmul 3ede6a830613 4b91735c
# schema: csrc/pytorch_extensions.cpp:198
# shape: what the kernel allocates, csrc/catlass/op_host/catlass_gmm_fp8.cpp:26
# no GE operator: csrc/catlass/op_host/catlass_gmm_fp8.cpp:26 launches catlass_fp8w8a16_gmm_bfloat16_t; name a prototype with register_op
# only with defined(BUILD_CATLASS_MODULE) and defined(SGL_KERNEL_ENABLE_A3_ONLY_OPS)
if hasattr(torch.ops.npu, "softfp8_w8a16_grouped_matmul"):
    ascend_graph.register_kernel(
        eager=torch.ops.npu.softfp8_w8a16_grouped_matmul,
        shape='mat1[m64, k64], mat2[g64, mat21, n64] -> y[m64, n64]: float32 if c == "float32" else float16 if c == "float16" else int8 if c == "int8" else int32 if c == "int32" else bfloat16 if c == "bf16" else float16',
    )

# adopt: npu::softfp8_w8a16_matmul baf9d16f52c7 18fe2097
# schema: csrc/pytorch_extensions.cpp:196
# shape: what the kernel allocates, csrc/catlass/op_host/catlass_matmul_fp8.cpp:26
# no GE operator: csrc/catlass/op_host/catlass_matmul_fp8.cpp:26 launches catlass_fp8w8a16_matmul_bfloat16_t; name a prototype with register_op
# only with defined(BUILD_CATLASS_MODULE) and defined(SGL_KERNEL_ENABLE_A3_ONLY_OPS)
if hasattr(torch.ops.npu, "softfp8_w8a16_matmul"):
    ascend_graph.register_kernel(
        eager=torch.ops.npu.softfp8_w8a16_matmul,
        shape='mat1[m64, k64], mat2[mat20, n64] -> y[m64, n64]: float32 if c == "float32" else float16 if c == "float16" else int8 if c == "int8" else int32 if c == "int32" else bfloat16 if c == "bf16" else float16',
    )

# adopt: npu::sparse_attn_sharedkv 754a6e024937 31762a75
# schema: csrc/pytorch_extensions.cpp:154
# shape: what the kernel allocates, csrc/sparse_attn_sharedkv/op_host/sparse_attn_sharedkv.cpp:49
# no GE operator: csrc/sparse_attn_sharedkv/op_host/sparse_attn_sharedkv.cpp:49 launches sparse_attn_sharedkv; name a prototype with register_op
# only with defined(SGL_KERNEL_ENABLE_A3_ONLY_OPS)
if hasattr(torch.ops.npu, "sparse_attn_sharedkv"):
    ascend_graph.register_kernel(eager=torch.ops.npu.sparse_attn_sharedkv, shape="q[*s] -> y0 like q, y1[0]: float32")

# adopt: npu::sparse_attn_sharedkv_metadata_host 7f298ed9e253 b5a95d62
# schema: csrc/pytorch_extensions.cpp:181
# shape: what the kernel allocates, csrc/sparse_attn_sharedkv_metadata/op_host/sparse_attn_sharedkv_metadata.cpp:871
# no GE operator: csrc/sparse_attn_sharedkv_metadata/op_host/sparse_attn_sharedkv_metadata.cpp:871 calls no aclnn function
# only with defined(SGL_KERNEL_ENABLE_A3_ONLY_OPS)
if hasattr(torch.ops.npu, "sparse_attn_sharedkv_metadata_host"):
    ascend_graph.register_kernel(eager=torch.ops.npu.sparse_attn_sharedkv_metadata_host, shape="-> y[1024]: int32")

# adopt: npu::transfer_kv_dim_exchange 2ed93b9a985f 3b161272
# schema: csrc/pytorch_extensions.cpp:52
# written, which the schema does not say: device_k, host_k, device_v, host_v
# no GE operator: csrc/transfer_kv_dim_exchange/op_host/transfer_kv_dim_exchange.cpp:28 calls no aclnn function
ascend_graph.register_kernel(
    eager=ascend_graph.define_from_function("npu_writes::transfer_kv_dim_exchange(Tensor(a0!) device_k, Tensor(a1!) host_k, Tensor(a2!) device_v, Tensor(a3!) host_v, Tensor device_indices, Tensor host_indices, int page_size, int direct, int flags) -> ()", torch.ops.npu.transfer_kv_dim_exchange),
    shape="->",
)

# adopt: npu::transfer_state_all_layer_direct_lf_pf 271d284b5083 d61a4fdd
# schema: csrc/pytorch_extensions.cpp:61
# written, which the schema does not say: device_states, host_states
# no GE operator: csrc/transfer_state_dim_exchange/op_host/transfer_state_dim_exchange.cpp:328 calls no aclnn function
ascend_graph.register_kernel(
    eager=ascend_graph.define_from_function("npu_writes::transfer_state_all_layer_direct_lf_pf(Tensor(a0!)[] device_states, Tensor(a1!)[] host_states, Tensor device_indices, Tensor host_indices, int flags) -> ()", torch.ops.npu.transfer_state_all_layer_direct_lf_pf),
    shape="->",
)

# adopt: npu::transfer_state_per_layer_direct_pf_lf f74a3924eb87 6cda8f3d
# schema: csrc/pytorch_extensions.cpp:57
# written, which the schema does not say: dst
# no GE operator: csrc/transfer_state_dim_exchange/op_host/transfer_state_dim_exchange.cpp:321 calls no aclnn function
ascend_graph.register_kernel(
    eager=ascend_graph.define_from_function("npu_writes::transfer_state_per_layer_direct_pf_lf(Tensor src, Tensor(a1!) dst, Tensor src_indices, Tensor dst_indices, int layer_id, int flags) -> ()", torch.ops.npu.transfer_state_per_layer_direct_pf_lf),
    shape="->",
)

# adopt: npu::triangular_inverse d5ccd71ac93d 11cd6be7
# schema: csrc/pytorch_extensions.cpp:173
# shape: what the kernel allocates, csrc/tri_inv/op_host/tri_inv.cpp:39
# no GE operator: csrc/tri_inv/op_host/tri_inv.cpp:39 launches tri_inv_col_sweep_fp16, tri_inv_col_sweep_fp32; name a prototype with register_op
# only with defined(SGL_KERNEL_ENABLE_A3_ONLY_OPS)
if hasattr(torch.ops.npu, "triangular_inverse"):
    ascend_graph.register_kernel(eager=torch.ops.npu.triangular_inverse, shape="x[*s] -> y like x")

# adopt: end attentions::ada_block_sparse_attention, attentions::la, attentions::layernorm, attentions::rainfusionattention, attentions::sparse_block_estimate, npu::alloc_extend, npu::apply_token_bitmask, npu::assign_cache_op, npu::batch_matmul_transpose, npu::bgmv_expand, npu::bgmv_shrink, npu::build_tree_kernel_efficient, npu::cache_loc_assign, npu::cache_loc_update, npu::catlass_matmul_basic, npu::causal_conv1d, npu::causal_conv1d_update, npu::compressor, npu::helloworld, npu::lightning_indexer, npu::mega_chunk_gdn, npu::mla_preprocess, npu::npu_sparse_attention_score, npu::recurrent_gated_delta_rule, npu::sgemmc_expand, npu::sgemmc_shrink, npu::sgemmv_expand, npu::sgemmv_shrink, npu::sgl_kernel_npu_print_version, npu::sgl_kernel_npu_version, npu::sgmv_expand, npu::sgmv_shrink, npu::softfp8_w8a16_grouped_matmul, npu::softfp8_w8a16_matmul, npu::sparse_attn_sharedkv, npu::sparse_attn_sharedkv_metadata_host, npu::transfer_kv_dim_exchange, npu::transfer_state_all_layer_direct_lf_pf, npu::transfer_state_per_layer_direct_pf_lf, npu::triangular_inverse
