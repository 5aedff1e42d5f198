"""Operators that write to arguments, and programs that call them: registered by ascend_graph, or by torch.library
and TorchAir alone."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import ascend_graph
from ascend_graph.host.kernels import host_kernel

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what torch itself deprecates, in modules that torchair imports
    import torch_npu  # noqa: F401 - torchair can only be imported after it
    import torchair

T = torch.Tensor

HEADER = """
REG_OP(WritesPair)
    .INPUT(q, TensorType({DT_FLOAT}))
    .INPUT(k, TensorType({DT_FLOAT}))
    .OUTPUT(q, TensorType({DT_FLOAT}))
    .OUTPUT(k, TensorType({DT_FLOAT}))
    .OP_END_FACTORY_REG(WritesPair)

REG_OP(WritesTotal)
    .INPUT(total, TensorType({DT_FLOAT}))
    .INPUT(x, TensorType({DT_FLOAT}))
    .OUTPUT(total, TensorType({DT_FLOAT}))
    .OP_END_FACTORY_REG(WritesTotal)

REG_OP(WritesOptional)
    .INPUT(x, TensorType({DT_FLOAT}))
    .OPTIONAL_INPUT(acc, TensorType({DT_FLOAT}))
    .OPTIONAL_INPUT(count, TensorType({DT_FLOAT}))
    .OUTPUT(acc, TensorType({DT_FLOAT}))
    .OUTPUT(count, TensorType({DT_FLOAT}))
    .OUTPUT(y, TensorType({DT_FLOAT}))
    .OP_END_FACTORY_REG(WritesOptional)

REG_OP(WritesList)
    .DYNAMIC_INPUT(xs, TensorType({DT_FLOAT}))
    .INPUT(x, TensorType({DT_FLOAT}))
    .DYNAMIC_OUTPUT(xs, TensorType({DT_FLOAT}))
    .OP_END_FACTORY_REG(WritesList)

REG_OP(WritesNamed)
    .INPUT(total, TensorType({DT_FLOAT}))
    .INPUT(x, TensorType({DT_FLOAT}))
    .OUTPUT(total, TensorType({DT_FLOAT}))
    .REQUIRED_ATTR(amount, Int)
    .ATTR(ctx, Int, 1)
    .ATTR(keyset, Int, 1)
    .OP_END_FACTORY_REG(WritesNamed)
"""


@host_kernel("WritesPair", writes=("q", "k"))
def _pair(q: T, k: T) -> tuple[T, T]:
    return q.mul_(10).add_(1), k.mul_(10).add_(2)


@host_kernel("WritesTotal", writes=("total",))
def _total(total: T, x: T) -> T:
    return total.mul_(10).add_(x)  # what overlaps with ``total`` is no longer what it was when it is added


@host_kernel("WritesOptional", writes=("acc", "count"))
def _optional(x: T, acc: T | None = None, count: T | None = None) -> tuple[T, T, T]:
    y = x + 1
    written = (
        torch.empty(0) if acc is None else acc.mul_(10).add_(x),
        torch.empty(0) if count is None else count.add_(1),
    )
    return *written, y


@host_kernel("WritesList", writes=("xs",), dynamic=("xs",))
def _list(xs: list[T], x: T) -> list[T]:
    for n, tensor in enumerate(xs):
        tensor.mul_(10).add_(x + n)
    return xs


@host_kernel("WritesNamed", writes=("total",))
def _named(total: T, x: T, *, amount: int, ctx: int = 1, keyset: int = 1) -> T:
    return total.mul_(amount).add_(x * ctx).sub_(keyset)


def _nothing(function: Callable[..., Any]) -> Callable[..., None]:
    return lambda *args, **attrs: (function(*args, **attrs), None)[1]


#: Op type, schema, kernel, converter as one writes it by hand, meta function.
OPERATORS: dict[str, tuple[str, str, Callable[..., Any], Callable[..., Any], Callable[..., Any] | None]] = {
    "pair": (
        "WritesPair",
        "(Tensor(a!) q, Tensor(b!) k) -> ()",
        _nothing(_pair),
        lambda q, k: ascend_graph.raw_ops.WritesPair(q, k),
        None,
    ),
    "total": (
        "WritesTotal",
        "(Tensor(a!) total, Tensor x) -> ()",
        _nothing(_total),
        lambda total, x: ascend_graph.raw_ops.WritesTotal(total, x),
        None,
    ),
    "optional": (
        "WritesOptional",
        "(Tensor x, Tensor(a!)? acc=None, Tensor(b!)? count=None) -> Tensor",
        lambda x, acc=None, count=None: _optional(x, acc, count)[2],
        lambda x, acc=None, count=None: ascend_graph.raw_ops.WritesOptional(x, acc, count)[2],
        lambda x, acc=None, count=None: torch.empty_like(x),
    ),
    "list": (
        "WritesList",
        "(Tensor(a!)[] xs, Tensor x) -> ()",
        _nothing(_list),
        lambda xs, x: ascend_graph.raw_ops._WritesList(xs, x, size_of_xs=len(xs)),
        None,
    ),
    # Its attrs have the names that parameters of dispatcher rules have.
    "named": (
        "WritesNamed",
        "(Tensor(a!) total, Tensor x, *, int amount, int ctx=1, int keyset=1) -> ()",
        _nothing(_named),
        lambda total, x, *, amount, ctx, keyset: ascend_graph.raw_ops.WritesNamed(
            total, x, amount=amount, ctx=ctx, keyset=keyset
        ),
        None,
    ),
}

#: Others return what they write, which PyTorch does not compile before 2.13.
RETURNING: dict[str, tuple[str, str, Callable[..., Any]]] = {
    "returning": ("WritesTotal", "(Tensor(a!) total, Tensor x) -> Tensor(a!)", _total),
    "returning_named": (
        "WritesNamed",
        "(Tensor(a!) total, Tensor x, *, int amount, int ctx=1, int keyset=1) -> Tensor(a!)",
        _named,
    ),
}


def define(library: torch.library.Library, registered: bool) -> SimpleNamespace:
    """Define the operators in a library, with kernels; the overloads by name, and how to take registrations back."""
    ascend_graph.load_prototypes(HEADER)
    defined = SimpleNamespace(registrations=[])
    for name, (op_type, schema, kernel, converter, meta) in OPERATORS.items():
        overload = _defined(library, name, schema, kernel)
        setattr(defined, name, overload)
        if registered:
            defined.registrations.append(ascend_graph.register_op(op_type, eager=overload, meta=meta))
            continue
        if meta is not None:
            torch.library.register_fake(overload, meta, lib=library)
        torchair.register_fx_node_ge_converter(overload)(converter)
    if registered:
        for name, (op_type, schema, kernel) in RETURNING.items():
            overload = _defined(library, name, schema, kernel)
            setattr(defined, name, overload)
            defined.registrations.append(ascend_graph.register_op(op_type, eager=overload))
    return defined


def _defined(library: torch.library.Library, name: str, schema: str, kernel: Callable[..., Any]) -> Any:
    library.define(name + schema)
    for key in ("CPU", "PrivateUse1"):
        library.impl(name, kernel, key)
    return getattr(getattr(torch.ops, library.ns), name).default


def ge(function: Callable[..., Any], dynamic: bool = False) -> Callable[..., Any]:
    return torch.compile(function, backend=torchair.get_npu_backend(), dynamic=dynamic, fullgraph=True)


def captured(function: Callable[..., Any], dynamic: bool = False) -> Callable[..., Any]:
    return torch.compile(function, backend="npugraph_ex", dynamic=dynamic, fullgraph=True)


#: The ways of compiling.
MODES = [
    pytest.param(ge, id="GE"),
    pytest.param(lambda f: ge(f, dynamic=True), id="GE-dynamic"),
    pytest.param(captured, id="npugraph_ex"),
    pytest.param(lambda f: captured(f, dynamic=True), id="npugraph_ex-dynamic"),
]


def numbers(*sizes: int) -> T:
    return torch.arange(1.0, 1.0 + torch.Size(sizes).numel()).reshape(sizes)


def assert_as_eager(
    program: Callable[..., Any],
    compiled: Callable[..., Any],
    *calls: tuple[Any, ...],
    arranged: Callable[[T], T] = lambda tensor: tensor,
) -> None:
    """Compare results, and arguments after the calls, with those of the program on the CPU."""
    for call in calls:
        memory = [a.clone() if isinstance(a, T) else a for a in call]
        on_device = [a.clone().npu() if isinstance(a, T) else a for a in call]
        expected = program(*(arranged(a) if isinstance(a, T) else a for a in memory))
        results = compiled(*(arranged(a) if isinstance(a, T) else a for a in on_device))
        for given, right in zip(_flat(results) + on_device, _flat(expected) + memory, strict=True):
            if isinstance(right, T):
                torch.testing.assert_close(given.cpu(), right)


def _flat(value: Any) -> list[Any]:
    return list(value) if isinstance(value, tuple | list) else [value]


def assert_apart(compiled: Callable[..., T], x: T, z: T) -> None:
    """Assert that a compiled program returns a tensor that does not change with its first argument."""
    x, z = x.clone().npu(), z.npu()
    returned = compiled(x, z)
    before = returned.cpu()
    x.zero_()
    torch.testing.assert_close(returned.cpu(), before)
