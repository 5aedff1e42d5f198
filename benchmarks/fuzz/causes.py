"""Causes for which a graph may refuse a program that the CPU accepts: TorchAir's and PyTorch's own messages."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import torch

from benchmarks.fuzz.operators import FuzzOperator
from benchmarks.fuzz.programs import FuzzProgram, make_arguments
from benchmarks.operators.trees import tensors

#: Messages as regular expressions, and causes, which may use the groups of the match.
CAUSES: tuple[tuple[str, str], ...] = (
    (r"Failed to auto-generated converter for (?P<op>aten\.[\w.]+) to AscendIR", "TorchAir has no converter for {op}"),
    (r"Failed to auto-generated converter for <function (?P<op>\w+) at", "TorchAir has no converter for {op}"),
    (r"torch\.ops\.(?P<op>aten\.[\w.]+) ge_converter is not (implemented|supported)", "TorchAir has no converter for {op}"),
    (r"Failed to converter? (?P<op>[\w.]+) to AscendIR: can not find registered AscendIR", "TorchAir has no converter for {op}"),
    (r"unsupported operator: (?P<op>[\w.]+)", "TorchAir has no converter for {op}"),
    (r"cannot be captured: torch_npu has no kernel of it for the device", "torch_npu computes an operator on the CPU, which a capture does not take"),
    (r"an argument is named 'mode', and the operator writes to an argument", "PyTorch takes no operator that writes and has an argument called mode (W16)"),
    (r"it writes to an argument and returns a list of tensors", "PyTorch takes no operator that writes and returns a list of tensors (W17)"),
    (r"required parameter '(?P<name>\w+)' is null\s+arguments: .*\b(?P=name)=\[\]", "an empty list is a null pointer, which the function refuses where the list is required"),
    (r"node \w+ \((?P<op>\w+)\): \w+ is (?P<dtype>DOUBLE|BF16); expected FLOAT", "GE's {op} has no {dtype}"),
    (r"depends on a symbolic size, and an attr of a GE node is fixed", "an attr that is a symbolic size, which a GE graph cannot hold"),
    (r"AssertionError: ge_outputs must be list or a tuple\.\s+While executing %sym_float", "TorchAir has no converter for torch.sym_float"),
    (r"ValueError: unable to parse expression: unsupported (binOP|function)", "TorchAir has no form for the expression of a size"),
    (r"AssertionError: Inputs data type mismatch \d+ vs\. \d+\s+While executing %eq", "TorchAir compares no tensors of two dtypes (aten.eq.Tensor)"),
    (r"mutable TensorLists with negation inputs.*aten::_foreach_copy_", "npugraph_ex copies later inputs into earlier ones, and PyTorch's copy of lists takes none by its negation"),
    (r"AssertionError: unsupported case for reshape\.", "TorchAir's optimization of views finds no node for a size"),
    (r"EmbeddingDenseGrad is not support when num_weights or padding_idx is Tensor", "TorchAir takes no gradient of an embedding whose rows change in number"),
    (r"it writes two arguments that may share memory, .* parts of one tensor", "two written parts of a tensor with another bit or dtype, which may overlap"),
    (r"and is a view of a tensor with sizes .*, in which GE has no such view", "a written view of an input that GE cannot express"),
    (r"one in memory, which GE holds apart", "an input that ATen writes and whose elements share memory, next to registered operators"),
    (r"as_strided with storage_offset= sees its memory from the start|as_strided takes elements of size .* which alone GE has", "as_strided next to registered operators, of elements that the graph is not given"),
    (r"Cannot run aclop operators during NPU graph capture", "torch_npu has an aclop alone, which a capture does not take"),
)  # fmt: skip


def writes_what_is_kept(program: FuzzProgram) -> bool:
    """Return whether the program writes to a tensor that ``backward=`` keeps of an earlier call of the operator.

    An operator keeps its inputs, and in the form ``saved`` its outputs, too; autograd goes by the same versions.
    """
    kept: list[tuple[torch.Tensor, int]] = []
    scope = program.scope()

    def keeping(op: FuzzOperator, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            outputs = function(*args, **kwargs)
            kept.extend((t, t._version) for t in tensors([args, outputs if op.form == "saved" else None]))
            return outputs

        return call if op.backward else function

    scope |= {f"op{i}": keeping(op, scope[f"op{i}"]) for i, op in enumerate(program.operators)}
    scope.update(zip(program.names(), make_arguments(program, 0), strict=True))
    exec("\n".join(node.line() for node in program.nodes), scope)
    return any(t._version != version for t, version in kept)


def cause_of(message: str, program: FuzzProgram) -> str:
    """Return the cause that a refusal names, or an empty text."""
    silent = any(not (op.backward or op.forward) for op in program.operators)
    if silent and re.search(r"forward[- ]mode|forward AD|jvp", message):
        return "forward mode over an operator that has no forward rule"
    if "Batching rule not implemented" in message and any(op.batch is None for op in program.operators):
        return "torch.vmap over an operator that declares no batch="
    if "modified by an inplace operation" in message and writes_what_is_kept(program):
        return "a program that writes to a tensor that backward= keeps"
    if "pickle" in message and ("input_inplace_pass", False) in program.setting.captures:
        return "npugraph_ex keeps no graph with an operator that writes where input_inplace_pass is off (W33)"
    for pattern, cause in CAUSES:
        if found := re.search(pattern, message):
            return cause.format(**found.groupdict())
    return ""
