"""The operator in GE graphs, by one call: import it before torch.compile."""

from pathlib import Path

import torch

import ascend_graph
import custom_ops  # defines torch.ops.myops

ascend_graph.load_prototypes(Path(__file__).with_name("custom_reg_op.h"))
# The Meta implementation and the gradient are there already, in C++; they are kept.
ascend_graph.register_op("AddCustom", eager=torch.ops.myops.my_op, arguments={"self": "x", "other": "y"})
