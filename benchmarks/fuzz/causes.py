"""Causes for which a graph may refuse a program that the CPU accepts: TorchAir's and PyTorch's own messages."""

from __future__ import annotations

import re

from benchmarks.fuzz.programs import FuzzProgram

#: Messages as regular expressions, and causes, which may use the groups of the match.
CAUSES: tuple[tuple[str, str], ...] = (
    (r"Failed to auto-generated converter for (?P<op>aten\.[\w.]+) to AscendIR", "TorchAir has no converter for {op}"),
    (r"torch\.ops\.(?P<op>aten\.[\w.]+) ge_converter is not (implemented|supported)", "TorchAir has no converter for {op}"),
    (r"Failed to converter? (?P<op>[\w.]+) to AscendIR: can not find registered AscendIR", "TorchAir has no converter for {op}"),
    (r"unsupported operator: (?P<op>[\w.]+)", "TorchAir has no converter for {op}"),
    (r"cannot be captured: torch_npu has no kernel of it for the device", "torch_npu computes an operator on the CPU, which a capture does not take"),
    (r"an argument is named 'mode', and the operator writes to an argument", "PyTorch takes no operator that writes and has an argument called mode (W16)"),
    (r"it writes to an argument and returns a list of tensors", "PyTorch takes no operator that writes and returns a list of tensors (W17)"),
    (r"required parameter '(?P<name>\w+)' is null\s+arguments: .*\b(?P=name)=\[\]", "an empty list is a null pointer, which the function refuses where the list is required"),
    (r"node \w+ \((?P<op>\w+)\): \w+ is DOUBLE; expected FLOAT", "GE's {op} has no DOUBLE"),
    (r"depends on a symbolic size, and an attr of a GE node is fixed", "an attr that is a symbolic size, which a GE graph cannot hold"),
    (r"ValueError: unable to parse expression: unsupported binOP", "TorchAir has no form for the expression of a size"),
    (r"AssertionError: Inputs data type mismatch \d+ vs\. \d+\s+While executing %eq", "TorchAir compares no tensors of two dtypes (aten.eq.Tensor)"),
    (r"mutable TensorLists with negation inputs.*aten::_foreach_copy_", "npugraph_ex copies later inputs into earlier ones, and PyTorch's copy of lists takes none by its negation"),
    (r"EmbeddingDenseGrad is not support when num_weights or padding_idx is Tensor", "TorchAir takes no gradient of an embedding whose rows change in number"),
    (r"Cannot run aclop operators during NPU graph capture", "torch_npu has an aclop alone, which a capture does not take"),
)  # fmt: skip


def cause_of(message: str, program: FuzzProgram) -> str:
    """Return the cause that a refusal names, or an empty text."""
    silent = any(not (op.backward or op.forward) for op in program.operators)
    if silent and re.search(r"forward[- ]mode|forward AD|jvp", message):
        return "forward mode over an operator that has no forward rule"
    if "Batching rule not implemented" in message and any(op.batch is None for op in program.operators):
        return "torch.vmap over an operator that declares no batch="
    writes = any(not node.targets for node in program.nodes) or any(op.in_place for op in program.operators)
    if writes and "modified by an inplace operation" in message and any(op.backward for op in program.operators):
        return "a program that writes to a tensor that backward= keeps"
    for pattern, cause in CAUSES:
        if found := re.search(pattern, message):
            return cause.format(**found.groupdict())
    return ""
