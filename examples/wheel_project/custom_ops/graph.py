"""The operator in GE graphs, by one call: import it before torch.compile."""

from pathlib import Path

import torch

import ascend_graph
import custom_ops  # defines torch.ops.myops

ascend_graph.load_prototypes(Path(__file__).with_name("custom_reg_op.h"))
ascend_graph.register_op(
    "AddCustom",
    eager=torch.ops.myops.my_op,
    arguments={"self": "x", "other": "y"},
    shape="x[...], y[...] -> z[...]",
)
