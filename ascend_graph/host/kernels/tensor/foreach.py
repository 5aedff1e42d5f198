"""Operators on lists of tensors, applied to corresponding elements, as optimizers use them."""

from __future__ import annotations

from collections.abc import Callable

import torch

from ascend_graph.host.kernels.checks import check_choice
from ascend_graph.host.kernels.registry import host_kernel
from ascend_graph.host.kernels.tensor.elementwise import scalar, wide

T = torch.Tensor
Binary = Callable[[T, T], T]

_UNARY: dict[str, Callable[[T], T]] = {
    "Abs": torch.abs,
    "ACos": torch.acos,
    "ASin": torch.asin,
    "ATan": torch.atan,
    "Acos": torch.acos,
    "Asin": torch.asin,
    "Atan": torch.atan,
    "Cos": torch.cos,
    "Cosh": torch.cosh,
    "Erf": torch.erf,
    "Erfc": torch.erfc,
    "Exp": torch.exp,
    "Expm1": torch.expm1,
    "Log": torch.log,
    "Log10": torch.log10,
    "Log1p": torch.log1p,
    "Log2": torch.log2,
    "Neg": torch.neg,
    "Reciprocal": torch.reciprocal,
    "Sigmoid": torch.sigmoid,
    "Sign": torch.sign,
    "Sin": torch.sin,
    "Sinh": torch.sinh,
    "Sqrt": torch.sqrt,
    "Tan": torch.tan,
    "Tanh": torch.tanh,
}
_BINARY: dict[str, Binary] = {
    "Div": torch.div,
    "Maximum": lambda x, y: torch.maximum(x, y.to(x.dtype)),
    "Minimum": lambda x, y: torch.minimum(x, y.to(x.dtype)),
    "Mul": torch.mul,
    "Pow": torch.pow,
}
_SUM: dict[str, Binary] = {"Add": torch.add, "Sub": torch.sub}
_ROUND: dict[int, Callable[[T], T]] = {2: torch.floor, 3: torch.ceil, 4: torch.round, 5: torch.trunc, 7: torch.frac}


def _unary(name: str, function: Callable[[T], T]) -> None:
    @host_kernel(f"Foreach{name}", dynamic=("x",))
    def kernel(x: list[T]) -> list[T]:
        return [function(t) for t in x]


def _with_scalars(name: str, function: Binary) -> None:
    @host_kernel(f"Foreach{name}Scalar", dynamic=("x",))
    def kernel(x: list[T], scalar_: T) -> list[T]:
        return [function(t, scalar(scalar_)) for t in x]

    @host_kernel(f"Foreach{name}ScalarList", dynamic=("x",))
    def kernel_list(x: list[T], scalars: T) -> list[T]:
        return [function(t, s) for t, s in zip(x, scalars.unbind(), strict=True)]


def _with_list(name: str, function: Binary) -> None:
    @host_kernel(f"Foreach{name}List", dynamic=("x1", "x2"))
    def kernel(x1: list[T], x2: list[T]) -> list[T]:
        return [function(a, b) for a, b in zip(x1, x2, strict=True)]


def _with_scaled_list(name: str, function: Binary) -> None:
    @host_kernel(f"Foreach{name}List", dynamic=("x1", "x2"))
    def kernel(x1: list[T], x2: list[T], alpha: T) -> list[T]:
        return [function(a, (b * scalar(alpha)).to(b.dtype)) for a, b in zip(x1, x2, strict=True)]


def _ternary(name: str, function: Callable[[T, T, T, T], T]) -> None:
    others = [("x", "x1", "x2", "scalar"), ("x1", "x2", "x3", "scalars"), ("x", "x1", "x2", "scalars")]

    @host_kernel(
        *(f"Foreach{name}{form}" for form in ("Scalar", "ScalarList", "List")),
        dynamic=("x1", "x2", "x3"),
        other_inputs=others,
    )
    def kernel(x1: list[T], x2: list[T], x3: list[T], scalar: T) -> list[T]:
        factors = scalar.reshape(-1).expand(len(x1)).unbind()
        return [
            function(wide(a), wide(f), wide(b), wide(c)).to(a.dtype)
            for a, b, c, f in zip(x1, x2, x3, factors, strict=True)
        ]


for _name, _function in _UNARY.items():
    _unary(_name, _function)
for _name, _binary in {**_BINARY, **_SUM}.items():
    _with_scalars(_name, _binary)
for _name, _binary in _BINARY.items():
    _with_list(_name, _binary)
for _name, _binary in _SUM.items():
    _with_scaled_list(_name, _binary)
_ternary("Addcdiv", lambda x, factor, y, z: x + factor * y / z)
_ternary("Addcmul", lambda x, factor, y, z: x + factor * y * z)


@host_kernel("ForeachLerpScalar", dynamic=("x1", "x2"))
def lerp_scalar(x1: list[T], x2: list[T], weight: T) -> list[T]:
    return [torch.lerp(a, b, scalar(weight).to(a.dtype)) for a, b in zip(x1, x2, strict=True)]


@host_kernel("ForeachLerpList", dynamic=("x1", "x2", "weight"))
def lerp_list(x1: list[T], x2: list[T], weight: list[T]) -> list[T]:
    return [torch.lerp(a, b, w) for a, b, w in zip(x1, x2, weight, strict=True)]


@host_kernel("ForeachPowScalarAndTensor", dynamic=("x",))
def pow_scalar_and_tensor(scalar_: T, x: list[T]) -> list[T]:
    return [torch.pow(scalar(scalar_), t) for t in x]


@host_kernel("ForeachNorm", dynamic=("x",), values=("scalar",), other_inputs=[("x1", "scalar")])
def norm(x: list[T], scalar: T) -> list[T]:
    return [torch.linalg.vector_norm(t, scalar.item()) for t in x]


@host_kernel("ForeachRoundOffNumber", dynamic=("x",), values=("roundMode",))
def round_off_number(x: list[T], roundMode: T) -> list[T]:  # noqa: N803
    mode = int(roundMode)
    check_choice("roundMode", mode, *_ROUND)
    return [_ROUND[mode](t) for t in x]


@host_kernel("ForeachCopy", dynamic=("x",))
def copy(x: list[T]) -> list[T]:
    return [t.clone() for t in x]
