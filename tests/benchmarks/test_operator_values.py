"""The references that built operators are compared with: whose they are, and what counts as a difference."""

from __future__ import annotations

import pytest
import torch

from ascend_graph.prototypes import OpPrototype, parse_text
from benchmarks import _operator_values as values


def operator(name: str, dtypes: str = "DT_FLOAT, DT_INT32", attr: str = "", output: str = "") -> OpPrototype:
    tensors = f".INPUT(x, TensorType({{{dtypes}}})).OUTPUT(y, TensorType({{{output or dtypes}}}))"
    return parse_text(f"REG_OP({name}){tensors}{attr}.OP_END_FACTORY_REG({name})").prototypes[0]


@pytest.mark.parametrize(
    ("name", "function"), [("Sinh", torch.sinh), ("TanV3", torch.tan), ("LogicalNot", torch.logical_not)]
)
def test_an_operator_has_the_function_of_its_name(name: str, function: object) -> None:
    reference = values._reference(operator(name))
    assert reference is not None
    assert reference.function is function


@pytest.mark.parametrize(
    "given", [operator("Strange"), operator("Split"), operator("Cumsum", attr=".REQUIRED_ATTR(axis, Int)")]
)
def test_what_torch_does_not_have_by_that_name_has_no_reference(given: OpPrototype) -> None:
    assert values._reference(given) is None


def test_results_come_in_double_precision_and_in_a_dtype_of_the_operator() -> None:
    reference = values._reference(operator("Sqrt"))
    assert reference is not None
    calls = list(values._calls(operator("Sqrt"), reference))
    assert {inputs[0].dtype for inputs, _ in calls} == {torch.float32, torch.int32}
    for inputs, result in calls:
        assert result.dtype is torch.float32
        assert torch.equal(result, torch.sqrt(inputs[0].double()).float())


@pytest.mark.parametrize(
    ("given", "expected", "said"),
    [
        (torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.0001]), ""),
        (torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.1]), "1 of 2 differ; at 1 2.0 for"),
        (torch.tensor([1.0, float("nan")]), torch.tensor([1.0, float("nan")]), ""),
        (torch.tensor([1, 2]), torch.tensor([1, 3]), "1 of 2 differ; at 1 2 for 3"),
        (torch.tensor([1.0]), torch.tensor([1]), "float32"),
    ],
)
def test_a_difference_is_said(given: torch.Tensor, expected: torch.Tensor, said: str) -> None:
    found = values._difference(given, expected)
    assert (said in found) if said else not found
