EXPLAINED: dict = {}
REPAIRED_DOCSTRINGS = {
    "WeightQuantBatchMatmulV2": (".ATRR(", ".ATTR("),
    "GroupedDynamicBlockQuant": ("TensorType({DT_INT32})\n", "TensorType({DT_INT32}))\n"),
    "MoeUpdateExpert": (
        ".OUTPUT(balanced_expert_ids, TensorType({DT_BOOL}))",
        ".OUTPUT(balanced_active_mask, TensorType({DT_BOOL}))",
    ),
}
