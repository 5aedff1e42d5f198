"""aclnn functions of elements, which programs without PyTorch call: values, in place and not, dtypes and shapes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from ascend_graph.environment import HostRuntimeError
from ascend_graph.host.runtime.aclnn_functions.call import prepare
from ascend_graph.host.runtime.aclnn_functions.table import functions

T = torch.Tensor
UNARY = [
    "Abs",
    "Acos",
    "Acosh",
    "Asin",
    "Asinh",
    "Atan",
    "Atanh",
    "Ceil",
    "Cos",
    "Cosh",
    "Erf",
    "Erfc",
    "Erfinv",
    "Exp",
    "Expm1",
    "Floor",
    "Log",
    "Log1p",
    "Neg",
    "Reciprocal",
    "Round",
    "Rsqrt",
    "Sign",
    "Sin",
    "Sinh",
    "Sqrt",
    "Tan",
    "Tanh",
    "Trunc",
    "LogicalNot",
    "Sigmoid",
    "Relu",
    "IsFinite",
]
BINARY: dict[str, Callable[[T, T], T]] = {
    "Mul": torch.mul, "Maximum": torch.maximum, "Minimum": torch.minimum, "EqTensor": torch.eq, "NeTensor": torch.ne,
    "LtTensor": torch.lt, "LeTensor": torch.le, "GtTensor": torch.gt, "GeTensor": torch.ge,
    "LogicalAnd": torch.logical_and, "LogicalOr": torch.logical_or, "Atan2": torch.atan2, "PowTensorTensor": torch.pow,
    "FloorDivide": torch.floor_divide, "RemainderTensorTensor": torch.remainder,
}  # fmt: skip
BITWISE = {
    "BitwiseAndTensor": torch.bitwise_and,
    "BitwiseOrTensor": torch.bitwise_or,
    "BitwiseXorTensor": torch.bitwise_xor,
}


def reference(name: str, x: T) -> T:
    function: Callable[[T], T] = getattr(
        torch, {"IsFinite": "isfinite", "LogicalNot": "logical_not"}.get(name, name.lower())
    )
    return function(x)


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_functions_of_one_tensor_agree_with_pytorch(name: str, dtype: torch.dtype) -> None:
    x = torch.tensor([0.25, 1.5, -0.75, 0.0, -2.5, float("nan"), float("inf")], dtype=dtype)
    expected = reference(name, x)
    out = torch.full_like(expected, 7)
    prepare(name, [x, out])()
    torch.testing.assert_close(out, expected, equal_nan=True)
    if f"Inplace{name}" in functions() and expected.dtype == dtype:
        prepare(f"Inplace{name}", [x])()
        torch.testing.assert_close(x, expected, equal_nan=True)


@pytest.mark.parametrize("name", [*BINARY, *BITWISE])
def test_functions_of_two_tensors_broadcast(name: str) -> None:
    numbers = torch.tensor([[3, -7, 0], [5, 2, 9]])
    x, y = numbers, torch.tensor([2, 3, 4])
    if name in BINARY:
        x, y = x + 0.5, y.float()
    function = BINARY.get(name) or BITWISE[name]
    expected = function(x, y)
    out = torch.zeros_like(expected)
    prepare(name, [x, y, out])()
    torch.testing.assert_close(out, expected, equal_nan=True)
    if f"Inplace{name}" in functions() and expected.dtype == x.dtype:
        prepare(f"Inplace{name}", [x, y])()
        torch.testing.assert_close(x, expected, equal_nan=True)


def test_integers_become_floats_where_the_function_has_no_integers() -> None:
    x, out = torch.tensor([1, 2, 3], dtype=torch.int32), torch.zeros(3)
    prepare("Sin", [x, out])()
    torch.testing.assert_close(out, torch.sin(x))
    with pytest.raises(HostRuntimeError, match="aclnnInplaceSin"):
        prepare("InplaceSin", [x])()
    assert x.tolist() == [1, 2, 3]


def test_functions_that_move_elements() -> None:
    x = torch.arange(24.0).reshape(2, 3, 4)
    out = torch.zeros(4, 2, 3)
    prepare("Permute", [x, [2, 0, 1], out])()
    assert torch.equal(out, x.permute(2, 0, 1))
    out = torch.zeros(2, 6, 4)
    prepare("Cat", [[x, -x], 1, out])()
    assert torch.equal(out, torch.cat([x, -x], 1))
    for name, function in (("Tril", torch.tril), ("Triu", torch.triu)):
        out = torch.zeros_like(x)
        prepare(name, [x, -1, out])()
        assert torch.equal(out, function(x, -1))
    out = torch.zeros_like(x)
    prepare("Flip", [x, [0, -1], out])()
    assert torch.equal(out, x.flip(0, -1))


def test_a_dtype_that_documents_leave_out_is_refused() -> None:
    with pytest.raises(HostRuntimeError, match="aclnnBitwiseAndTensor"):
        prepare("BitwiseAndTensor", [torch.ones(2), torch.ones(2), torch.ones(2)])()
