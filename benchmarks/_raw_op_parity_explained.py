"""Explained differences between the nodes of the wheel's raw ops and ours, with the reason for each.

Each entry names a function of torch_npu 2.13.0 and the fields that differ. The benchmark fails on a difference that is
missing here, and reports an entry that no longer differs.
"""

from __future__ import annotations

#: Docstrings in the wheel that are not valid REG_OPs: the wrong text and its replacement.
REPAIRED_DOCSTRINGS = {
    "WeightQuantBatchMatmulV2": (".ATRR(", ".ATTR("),
    "GroupedDynamicBlockQuant": ("TensorType({DT_INT32})\n", "TensorType({DT_INT32}))\n"),
    "MoeUpdateExpert": (
        ".OUTPUT(balanced_expert_ids, TensorType({DT_BOOL}))",
        ".OUTPUT(balanced_active_mask, TensorType({DT_BOOL}))",
    ),
}

#: Fields that differ, by reason and function.
_BY_REASON: dict[str, dict[str, tuple[str, ...]]] = {
    "the wheel's function takes node_name and dependencies and passes neither on": {
        "GeluV2": (
            "input",
            "input.length",
            "name",
            "returned",
        ),
        "GeluGradV2": (
            "input",
            "input.length",
            "name",
            "returned",
        ),
        "DynamicQuant": (
            "input",
            "input.length",
            "name",
            "returned",
        ),
    },
    "the wheel's function takes node_name and does not pass it on": {
        "MaskedCausalConv1d": (
            "name",
            "returned",
        ),
        "FusedCausalConv1d": (
            "name",
            "returned",
        ),
        "InplaceFusedCausalConv1d": (
            "name",
            "returned",
        ),
        "FusedMatMul": (
            "name",
            "returned",
        ),
        "AddLora": (
            "name",
            "returned",
        ),
        "TransposeBatchMatMul": (
            "name",
            "returned",
        ),
        "TransposeQuantBatchMatMul": (
            "name",
            "returned",
        ),
        "HcomReduceScatterV": (
            "name",
            "returned",
        ),
        "BatchNormGradV3": (
            "name",
            "returned",
        ),
        "ApplyRotaryPosEmb": (
            "name",
            "returned",
        ),
        "RotaryPositionEmbeddingGrad": (
            "name",
            "returned",
        ),
        "RmsNormDynamicMxQuant": (
            "name",
            "returned",
        ),
        "GroupNormGrad": (
            "name",
            "returned",
        ),
        "GroupNormV2": (
            "name",
            "returned",
        ),
        "MaxPoolWithArgmaxV3": (
            "name",
            "returned",
        ),
        "MaxPoolGradWithArgmaxV3": (
            "name",
            "returned",
        ),
        "GeGluV2": (
            "name",
            "returned",
        ),
        "GroupedDynamicMxQuant": (
            "name",
            "returned",
        ),
        "Bitcast": (
            "name",
            "returned",
        ),
        "QuantMatmulDequant": (
            "name",
            "returned",
        ),
        "QuantGroupedMatmulDequant": (
            "name",
            "returned",
        ),
        "TransQuantParamV2": (
            "name",
            "returned",
        ),
        "GroupedMatmulFinalizeRouting": (
            "name",
            "returned",
        ),
        "DistributeBarrier": (
            "name",
            "returned",
        ),
        "Cmo": ("name",),
        "QkvRmsNormRopeCache": (
            "name",
            "returned",
        ),
        "DequantSwigluQuant": (
            "name",
            "returned",
        ),
        "SwigluMxQuant": (
            "name",
            "returned",
        ),
        "AttentionUpdate": (
            "name",
            "returned",
        ),
        "FfnWorkerScheduler": (
            "name",
            "returned",
        ),
        "AttentionWorkerScheduler": (
            "name",
            "returned",
        ),
        "MoeUpdateExpert": (
            "name",
            "returned",
        ),
        "AddRmsNormDynamicMxQuant": (
            "name",
            "returned",
        ),
        "AddRmsNormDynamicQuant": (
            "name",
            "returned",
        ),
        "AddRmsNormCast": (
            "name",
            "returned",
        ),
        "QuantBatchMatmulInplaceAdd": (
            "name",
            "returned",
        ),
        "AttentionToFFN": ("name",),
        "FFNToAttention": ("name",),
        "MatmulAlltoAll": (
            "name",
            "returned",
        ),
        "RotateQuant": (
            "name",
            "returned",
        ),
        "RmsNormGradQuant": (
            "name",
            "returned",
        ),
    },
    "the wheel's default went through std::to_string, which keeps six decimals; ours is the prototype's": {
        "IsClose": (
            "attr[atol].f",
            "signature.atol.default",
        ),
        "CosineSimilarity": (
            "attr[eps].f",
            "signature.eps.default",
        ),
        "FusedBiasLeakyRelu": (
            "attr[scale].f",
            "signature.scale.default",
        ),
        "FusedBiasLeakyReluGrad": (
            "attr[scale].f",
            "signature.scale.default",
        ),
        "BlendFaceBgPartTwo": (
            "attr[epsilon].f",
            "signature.epsilon.default",
        ),
        "LpNorm": (
            "attr[epsilon].f",
            "signature.epsilon.default",
        ),
        "LpNormV2": (
            "attr[epsilon].f",
            "signature.epsilon.default",
        ),
        "LpNormReduce": (
            "attr[epsilon].f",
            "signature.epsilon.default",
        ),
        "LpNormReduceV2": (
            "attr[epsilon].f",
            "signature.epsilon.default",
        ),
        "LpNormUpdate": (
            "attr[epsilon].f",
            "signature.epsilon.default",
        ),
        "LpNormUpdateV2": (
            "attr[epsilon].f",
            "signature.epsilon.default",
        ),
        "AttentionLnQKV": (
            "attr[epsilon].f",
            "signature.epsilon.default",
        ),
        "SwinTransformerLnQKV": (
            "attr[epsilon].f",
            "signature.epsilon.default",
        ),
        "Pinverse": (
            "attr[rcond].f",
            "signature.rcond.default",
        ),
        "MVN": (
            "attr[eps].f",
            "signature.eps.default",
        ),
        "MVNV2": (
            "attr[eps].f",
            "signature.eps.default",
        ),
        "Normalize": (
            "attr[eps].f",
            "signature.eps.default",
        ),
        "LayerNorm": (
            "attr[epsilon].f",
            "signature.epsilon.default",
        ),
        "PoissonNllLoss": (
            "attr[eps].f",
            "signature.eps.default",
        ),
    },
    "edited by hand: the permutations default to empty lists and are then written as such": {
        "TransposeQuantBatchMatMul": (
            "question",
            "attr[perm_x1]",
            "attr[perm_x1].list",
            "attr[perm_x1].list.val_type",
            "attr[perm_x2]",
            "attr[perm_x2].list",
            "attr[perm_x2].list.val_type",
            "attr[perm_y]",
            "attr[perm_y].list",
            "attr[perm_y].list.val_type",
            "signature.perm_x1.default",
            "signature.perm_x2.default",
            "signature.perm_y.default",
        ),
    },
    "edited by hand: it demands an argument that has a default in its docstring": {
        "IndexByTensor": (
            "error",
            "signature.indices_mask.default",
        ),
        "MoeInitRoutingV3": (
            "error",
            "signature.active_expert_range.default",
            "signature.active_num.default",
            "signature.drop_pad_mode.default",
            "signature.expert_capacity.default",
            "signature.expert_num.default",
            "signature.expert_tokens_num_flag.default",
            "signature.expert_tokens_num_type.default",
            "signature.quant_mode.default",
            "signature.row_idx_type.default",
        ),
        "FfnWorkerBatching": (
            "error",
            "signature.layer_num.default",
            "signature.need_schedule.default",
            "signature.token_dtype.default",
        ),
    },
    (
        "the wheel writes val_type VT_LIST_NONE (0) for a list of strings, and GE skips such an attr "
        "when it reads the graph"
    ): {
        "EmbeddingTableImport": ("attr[table_name].list.val_type",),
        "EmbeddingTableExport": ("attr[table_name].list.val_type",),
        "EmbeddingComputeVarExport": ("attr[table_name].list.val_type",),
        "EmbeddingComputeVarImport": ("attr[table_name].list.val_type",),
        "FixPipe": (
            "attr[fusion_op_list].list.val_type",
            "attr[unit_list].list.val_type",
        ),
        "_ParseSingleExample": (
            "attr[dense_keys].list.val_type",
            "attr[sparse_keys].list.val_type",
        ),
        "RaggedTensorToTensor": ("attr[row_partition_types].list.val_type",),
        "CommonLSTM": ("attr[activations].list.val_type",),
        "CommonGRU": ("attr[activations].list.val_type",),
        "StringNormalizer": ("attr[stopwords].list.val_type",),
        "TfIdfVectorizer": ("attr[pool_strings].list.val_type",),
    },
    "written by hand: the node has other input names than the prototype of its docstring": {
        "_ForeachAddcdivScalar": ("input_desc.name",),
        "_ForeachAddcdivScalarList": ("input_desc.name",),
        "_ForeachAddcdivList": ("input_desc.name",),
        "_ForeachAddcmulScalarList": ("input_desc.name",),
        "_ForeachAddcmulList": ("input_desc.name",),
        "_ForeachNorm": ("input_desc.name",),
    },
    "edited by hand: its parameters are not those of its docstring": {
        "_ForeachLerpList": ("signature",),
        "ScatterPaKvCache": (
            "signature",
            "signature.offsets.default",
            "signature.strides.default",
        ),
        "BatchNormV3": ("signature",),
        "RotaryPositionEmbedding": (
            "signature",
            "signature.rotate.default",
            "signature.rotate.kind",
        ),
        "DynamicQuantV2": ("signature",),
        "GeluQuant": (
            "signature",
            "signature.input_offset.default",
            "signature.input_offset.kind",
            "signature.input_scale.default",
            "signature.input_scale.kind",
        ),
        "DequantRopeQuantKvcache": (
            "signature",
            "signature.activation_scale.default",
            "signature.bias.default",
            "signature.offset_k.default",
            "signature.offset_v.default",
            "signature.weight_scale.default",
        ),
        "TomeMerge": (
            "signature",
            "signature.dependencies.kind",
            "signature.node_name.kind",
        ),
        "TomeUnmerge": ("signature",),
        "QuantMatmulReduceSum": (
            "signature.bias.default",
            "signature.bias.kind",
            "signature.dtype.default",
            "signature.x1_offset.default",
            "signature.x1_offset.kind",
            "signature.x1_scale.default",
            "signature.x1_scale.kind",
            "signature.x2_offset.default",
            "signature.x2_offset.kind",
            "signature.x2_scale.default",
            "signature.x2_scale.kind",
            "signature.x2_table.default",
            "signature.x2_table.kind",
            "signature.y_offset.default",
            "signature.y_offset.kind",
            "signature.y_scale.default",
            "signature.y_scale.kind",
        ),
        "FlatQuant": ("signature",),
        "MoeGatingTopKSoftmaxV2": (
            "signature",
            "signature.finished.kind",
        ),
        "MoeFinalizeRoutingV2": ("signature",),
        "MoeDistributeCombineV2": ("signature",),
        "MoeDistributeCombineAddRmsNorm": ("signature",),
        "AttentionWorkerCombine": (
            "signature",
            "signature.hidden_size.default",
            "signature.token_dtype.default",
        ),
        "RecurrentGatedDeltaRule": (
            "signature",
            "signature.g.default",
            "signature.g.kind",
            "signature.gk.default",
            "signature.gk.kind",
            "signature.num_accepted_tokens.default",
            "signature.num_accepted_tokens.kind",
        ),
        "AlltoAllMatmul": (
            "signature",
            "signature.comm_mode.default",
        ),
        "QuantMax": (
            "signature",
            "signature.group_list.default",
            "signature.group_list.kind",
        ),
    },
    "written by hand: the node has another op type than the prototype of its docstring": {
        "_ForeachACos": (
            "name",
            "returned",
            "type",
        ),
        "_ForeachASin": (
            "name",
            "returned",
            "type",
        ),
        "_ForeachATan": (
            "name",
            "returned",
            "type",
        ),
    },
    "edited by hand: marks its node so that TorchAir does not remove it": {
        "HcomSend": (
            "attr[_force_skip_prune]",
            "attr[_force_skip_prune].b",
        ),
    },
    "the wheel's function was written by hand without the index types that its prototype implies": {
        "QuantUpdateScatter": (
            "Const.attr[_readable_value].s",
            "Const.attr[value].t.data",
            "Const.attr[value].t.desc.dtype",
            "Const.output_desc.dtype",
            "input",
        ),
        "GroupQuant": (
            "Const.attr[_readable_value].s",
            "Const.attr[value].t.data",
            "Const.attr[value].t.desc.dtype",
            "Const.output_desc.dtype",
            "input",
        ),
        "GroupedDynamicMxQuant": (
            "Const.attr[_readable_value].s",
            "Const.attr[value].t.data",
            "Const.attr[value].t.desc.dtype",
            "Const.output_desc.dtype",
            "input",
        ),
        "EmbeddingBag": (
            "Const.attr[_readable_value].s",
            "Const.attr[value].t.data",
            "Const.attr[value].t.desc.dtype",
            "Const.output_desc.dtype",
            "input",
        ),
        "MoeReRouting": (
            "Const.attr[_readable_value].s",
            "Const.attr[value].t.data",
            "Const.attr[value].t.desc.dtype",
            "Const.output_desc.dtype",
            "input",
        ),
    },
    "its docstring says the input x is optional, its decorator refuses None": {
        "RotaryPositionEmbeddingGrad": ("error",),
    },
    "an output is named output_index, as a local variable of the generated function: it raises TypeError": {
        "MultiMerge": ("error",),
        "SingleMerge": ("error",),
    },
    "edited by hand: its default is not that of its docstring": {
        "DynamicBlockQuant": (
            "attr[dst_type].i",
            "signature.dst_type.default",
        ),
        "MatmulReduceScatterV2": (
            "attr[y_dtype].i",
            "signature.y_dtype.default",
        ),
        "AllGatherMatmulV2": (
            "attr[comm_mode]",
            "attr[comm_mode].s",
            "signature.comm_mode.default",
        ),
        "FusedQuantMatMul": (
            "attr[group_size].i",
            "signature.group_size.default",
        ),
        "QuantMatmulDequant": (
            "signature.bias.default",
            "signature.smooth_scale.default",
            "signature.x_offset.default",
            "signature.x_scale.default",
        ),
        "QuantGroupedMatmulDequant": (
            "signature.bias.default",
            "signature.smooth_scale.default",
            "signature.x_offset.default",
            "signature.x_scale.default",
        ),
        "MoeComputeExpertTokens": ("signature.num_experts.default",),
        "GroupedMatMulAlltoAllv": (
            "attr[comm_mode]",
            "attr[comm_mode].s",
            "signature.comm_mode.default",
        ),
        "AlltoAllvGroupedMatMul": (
            "attr[comm_mode]",
            "attr[comm_mode].s",
            "signature.comm_mode.default",
        ),
        "AddRmsNormDynamicQuant": ("signature.dst_type.default",),
        "QuantBatchMatmulV4": (
            "attr[group_size].i",
            "signature.group_size.default",
        ),
        "DynamicDualLevelMxQuant": ("signature.smooth_scale.default",),
        "GroupedDynamicBlockQuant": (
            "attr[dst_type].i",
            "signature.dst_type.default",
        ),
        "MatmulAlltoAll": ("signature.comm_mode.default",),
        "AlltoAllvQuantGroupedMatMul": (
            "attr[comm_mode]",
            "attr[comm_mode].s",
            "signature.comm_mode.default",
        ),
        "QuantGroupedMatMulAlltoAllv": (
            "attr[comm_mode]",
            "attr[comm_mode].s",
            "signature.comm_mode.default",
        ),
        "RotateQuant": ("signature.alpha.default",),
    },
    "edited by hand: writes the attr block_size under the name blocksize": {
        "DynamicMxQuant": (
            "attr[block_size]",
            "attr[block_size].i",
            "attr[blocksize]",
            "attr[blocksize].i",
        ),
    },
    "edited by hand: None stands for no dependencies": {
        "ReduceStdV2": ("signature.dependencies.default",),
        "AlltoAllvGroupedMatMul": ("signature.dependencies.default",),
        "RotateQuant": ("signature.dependencies.default",),
    },
    "edited by hand: None stands for the defaults": {
        "ReduceStdV2": ("signature.dim.default",),
    },
    "edited by hand: sets an attr that its prototype does not have": {
        "TopKV2": (
            "attr[sort_policy]",
            "attr[sort_policy].i",
        ),
    },
    "the docstring has a typing error, which is corrected before it is read": {
        "WeightQuantBatchMatmulV2": ("docstring",),
        "MoeUpdateExpert": ("docstring",),
        "GroupedDynamicBlockQuant": ("docstring",),
    },
    "renamed by hand: the function of DequantBias": {
        "dequant_bias": (
            "name",
            "signature.activate_scale.default",
            "signature.bias.default",
        ),
    },
    "edited by hand: writes the attr dtype as a Type, its docstring says Int": {
        "ConstPlaceHolder": (
            "attr[dtype].dt",
            "attr[dtype].i",
        ),
    },
    "edited by hand: inputs added to the docstring later are left out of the node where they are absent": {
        "FusedInferAttentionScore": (
            "input",
            "input.length",
            "input_desc.attr[_is_unfed_optional]",
            "input_desc.attr[_is_unfed_optional].i",
            "input_desc.dtype",
            "input_desc.layout",
            "input_desc.length",
            "input_desc.name",
            "input_desc.shape",
        ),
    },
    "edited by hand: its last input is left out where it is absent, and an output has another name": {
        "MoeGatingTopK": (
            "input",
            "input.length",
            "input_desc.attr[_is_unfed_optional]",
            "input_desc.attr[_is_unfed_optional].i",
            "input_desc.dtype",
            "input_desc.layout",
            "input_desc.length",
            "input_desc.name",
            "input_desc.shape",
            "output_desc.name",
        ),
    },
    "edited by hand: attrs are compared with other defaults than those of its docstring": {
        "DequantSwigluQuant": (
            "question",
            "attr[activate_dim]",
            "attr[activate_dim].i",
            "attr[dst_type]",
            "attr[dst_type].i",
            "attr[round_mode]",
            "attr[round_mode].s",
        ),
    },
    "its docstring says smooth_scale is dynamic, its decorator and node say it is optional: lists fail": {
        "GroupedMatmulSwigluQuantV2": ("error",),
    },
}

#: Reasons by function and field.
EXPLAINED: dict[str, dict[str, str]] = {}
for _reason, _functions in _BY_REASON.items():
    for _function, _fields in _functions.items():
        EXPLAINED.setdefault(_function, {}).update(dict.fromkeys(_fields, _reason))
