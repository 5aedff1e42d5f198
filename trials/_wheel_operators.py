"""Operators of public wheels: called in each mode, and compared with plain PyTorch."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from trials import _fbgemm_calls, _mindiesd_calls, _vllm_ascend_calls
from trials._wheel_calls import OperatorCall, Tensor, TriedOperator

#: Operators by op type.
OPERATORS: Mapping[str, TriedOperator] = {
    **_fbgemm_calls.OPERATORS,
    **_mindiesd_calls.OPERATORS,
    **_vllm_ascend_calls.OPERATORS,
}

_TYPES = {"int64_t": "int", "double": "float", "float": "float", "bool": "bool", "char": "str"}


def registered(op_type: str) -> Callable[..., Any]:
    """Register an operator and return the function that calls it."""
    import ascend_graph

    tried = OPERATORS[op_type]
    if tried.writes:
        one = ascend_graph.register_aclnn(f"aclnn{op_type}", schema=_written_schema(op_type))
    else:
        one = ascend_graph.register_op(op_type, shape=tried.relation)
    function: Callable[..., Any] = one.overload
    return function


def _written_schema(op_type: str) -> str:
    """Return a schema with the function's outputs as arguments that it writes."""
    from ascend_graph.aclnn.catalog import process_catalog
    from ascend_graph.prototypes import find_prototype

    parameters = process_catalog.find(f"aclnn{op_type}").parameters
    outputs = {one.name for one in parameters[-len(find_prototype(op_type).outputs) :]}
    texts, marks = [], iter("abcdefgh")
    for one in parameters:
        optional = "?" if one.name.endswith("Optional") and one.name not in outputs else ""
        if one.name in outputs:
            texts.append(f"Tensor({next(marks)}!) {one.name}")
        elif "Tensor" in str(one.type):
            texts.append(f"Tensor[] {one.name}" if "List" in str(one.type) else f"Tensor{optional} {one.name}")
        elif "IntArray" in str(one.type):
            texts.append(f"int[]{optional} {one.name}")
        else:
            texts.append(f"{next(_TYPES[word] for word in _TYPES if word in str(one.type))} {one.name}")
    return f"{op_type.lower()}({', '.join(texts)}) -> ()"


def problems(op_type: str, mode: str) -> list[str]:
    """Call an operator in one mode and return how its results differ from the references.

    Raises:
        Exception: Whatever the registration or a call raises.
    """
    torch.manual_seed(0)
    function, found = registered(op_type), []
    for call in OPERATORS[op_type].calls():
        results = _results(function, call, mode)
        for number, (got, expected) in enumerate(zip(results, call.expected, strict=True)):
            if expected is not None and (text := differs(got.cpu(), expected, call.tolerance)):
                found.append(f"output {number}: {text}")
    return found


def _results(function: Callable[..., Any], call: OperatorCall, mode: str) -> Sequence[Tensor]:
    inputs = [_on_npu(one) for one in call.inputs]
    written = [one.npu() for one in call.outputs]

    def run(*tensors: Any) -> Any:
        if not written:
            return function(*tensors, **call.attrs)
        return function(*tensors[: len(inputs)], *call.attrs.values(), *tensors[len(inputs) :])

    got = _compiled(run, mode)(*inputs, *written)
    return written or (got if isinstance(got, (tuple, list)) else [got])


def _on_npu(value: Any) -> Any:
    if isinstance(value, list):
        return [_on_npu(one) for one in value]
    return value.npu() if isinstance(value, Tensor) else value


def _compiled(function: Callable[..., Any], mode: str) -> Callable[..., Any]:
    if mode == "eager":
        return function
    import torchair

    torch._dynamo.reset()
    backend = "npugraph_ex" if mode == "npugraph_ex" else torchair.get_npu_backend()
    compiled: Callable[..., Any] = torch.compile(function, backend=backend, dynamic=False, fullgraph=True)
    return compiled


def differs(got: Tensor, expected: Tensor, tolerance: float) -> str:
    """Return how a result differs from its reference; "" if it does not."""
    if got.shape != expected.shape or got.dtype != expected.dtype:
        return f"{got.dtype}{list(got.shape)}; expected {expected.dtype}{list(expected.shape)}"
    if tolerance == 0 and torch.equal(got, expected):
        return ""
    error = (got.double() - expected.double()).abs().max().item() if got.numel() else 0.0
    scale = expected.double().abs().max().item() if got.numel() else 0.0
    return "" if not math.isnan(error) and error <= tolerance * max(scale, 1.0) else f"error {error:g} of {scale:g}"


def main() -> None:
    """Try an operator in the modes that it has, and print a line of JSON for each."""
    op_type = sys.argv[1]
    # GE's graphs first: torchair cannot register what they need after npugraph_ex's.
    for mode in ("eager", "ge", "npugraph_ex"):
        if mode == "ge" and (OPERATORS[op_type].writes or not OPERATORS[op_type].tells_dtypes):
            continue
        try:
            print(json.dumps({"mode": mode, "problems": problems(op_type, mode)}), flush=True)
        except Exception as error:
            print(json.dumps({"mode": mode, "refused": f"{type(error).__name__}: {error}"[:1500]}), flush=True)


if __name__ == "__main__":
    import torch_npu  # noqa: F401

    main()
