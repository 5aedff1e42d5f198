"""Registered operators in GE graphs whose inputs are conjugated, negated or zero tensors: what eager calls compute."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from writing_operators import assert_as_eager, captured, ge

import ascend_graph
from ascend_graph.host.kernels import host_kernel
from ascend_graph.registration.conversion.lazy_inputs import PlainInputs, with_plain_inputs

T = torch.Tensor
pytestmark = [pytest.mark.filterwarnings("default"), pytest.mark.usefixtures("compiled_anew")]

HEADER = """
REG_OP(LazyShift)
    .INPUT(x, TensorType({DT_FLOAT, DT_COMPLEX64}))
    .OUTPUT(y, TensorType({DT_FLOAT, DT_COMPLEX64}))
    .OP_END_FACTORY_REG(LazyShift)

REG_OP(LazySum)
    .DYNAMIC_INPUT(xs, TensorType({DT_FLOAT, DT_COMPLEX64}))
    .OUTPUT(y, TensorType({DT_FLOAT, DT_COMPLEX64}))
    .OP_END_FACTORY_REG(LazySum)
"""


@host_kernel("LazyShift")
def _shift(x: T) -> T:
    return x + (1 + 2j if x.is_complex() else 1)


@host_kernel("LazySum", dynamic=("xs",))
def _sum(xs: list[T]) -> T:
    return torch.stack(xs).sum(0)


@pytest.fixture(scope="module")
def ops() -> Iterator[SimpleNamespace]:
    ascend_graph.load_prototypes(HEADER)
    library = torch.library.Library("lazy_inputs", "DEF")
    library.define("shift(Tensor x) -> Tensor")
    library.define("total(Tensor[] xs) -> Tensor")
    for key in ("CPU", "PrivateUse1"):
        library.impl("shift", _shift, key)
        library.impl("total", _sum, key)
    shift, total = torch.ops.lazy_inputs.shift.default, torch.ops.lazy_inputs.total.default
    registered = [
        ascend_graph.register_op(
            "LazyShift", eager=shift, shape="x[...] -> y[...]", backward=lambda ctx, grad: grad * 2j
        ),
        ascend_graph.register_op("LazySum", eager=total, shape="xs[i][...] -> y[...]"),
    ]
    yield SimpleNamespace(shift=shift, total=total)
    for registration in registered:
        registration.unregister()
    library._destroy()


COMPLEX = torch.complex(torch.arange(6.0), torch.arange(6.0) + 1).reshape(2, 3)
ARRANGED: dict[str, Callable[[T], T]] = {
    "conjugated": torch.conj,
    "negated": torch._neg_view,
    "from an offset": lambda x: x[1:].conj(),
    "transposed": lambda x: x.t().conj(),
    "imaginary part": lambda x: x.conj().imag,
}


@pytest.mark.parametrize("arranged", ARRANGED.values(), ids=ARRANGED)
@pytest.mark.parametrize("dynamic", [False, True])
def test_lazy_inputs_are_read_as_they_are(ops: Any, arranged: Callable[[T], T], dynamic: bool) -> None:
    def program(x: T) -> Any:
        return ops.shift(x), ops.total([x, ops.shift(x)]), x[:1]

    assert_as_eager(program, ge(program, dynamic=dynamic), (COMPLEX,), (COMPLEX + 1,), arranged=arranged)


@pytest.mark.parametrize("arranged", ARRANGED.values(), ids=ARRANGED)
def test_lazy_inputs_are_written_as_they_are(ops: Any, arranged: Callable[[T], T]) -> None:
    def program(x: T) -> Any:
        x.add_(ops.shift(x))
        return x * 2

    assert_as_eager(program, ge(program), (COMPLEX,), arranged=arranged)


def test_the_bit_may_come_with_a_later_call(ops: Any) -> None:
    compiled = ge(ops.shift)
    for x in (COMPLEX, COMPLEX.conj(), COMPLEX):
        given = COMPLEX.npu().conj() if x.is_conj() else COMPLEX.npu()
        torch.testing.assert_close(compiled(given).cpu(), ops.shift(x))


@pytest.mark.parametrize("compiler", [ge, captured])
def test_a_zero_tensor_has_zeros(ops: Any, compiler: Callable[..., Any]) -> None:
    compiled = compiler(lambda x: ops.shift(x) + x)
    for _ in range(2):
        given = torch._efficientzerotensor(4, device="npu")
        torch.testing.assert_close(compiled(given).cpu(), torch.ones(4))


def test_a_gradient_from_outside_may_be_conjugated(ops: Any) -> None:
    def gradient(function: Callable[[T], T], device: str) -> T:
        x = COMPLEX.to(device).requires_grad_()
        (found,) = torch.autograd.grad(function(x), x, COMPLEX.to(device).conj())
        return found.cpu()

    torch.testing.assert_close(gradient(ge(ops.shift), "npu"), gradient(ops.shift, "cpu"))


def test_graphs_without_lazy_inputs_are_called_as_they_are() -> None:
    graph = torch.fx.Graph()
    for name, value in (("x", COMPLEX), ("y", COMPLEX.conj())):
        graph.placeholder(name).meta["val"] = value
    compiled = with_plain_inputs(graph, torch.neg, registered=True)
    assert isinstance(compiled, PlainInputs)
    assert compiled.__name__ == "neg"
    assert with_plain_inputs(graph, torch.neg, registered=False) is torch.neg


PROGRAM = """
import warnings

warnings.simplefilter("ignore")
import sys
import torch
import torch_npu
import ascend_graph

ascend_graph.load_prototypes('REG_OP(LazySin).INPUT(x, TensorType({DT_FLOAT})).OUTPUT(y, TensorType({DT_FLOAT})).OP_END_FACTORY_REG(LazySin)')
library = torch.library.Library("lazy_first", "DEF")
library.define("sine(Tensor x) -> Tensor")
library.impl("sine", torch.sin, "PrivateUse1")
sine = torch.ops.lazy_first.sine.default
ascend_graph.register_op("LazySin", eager=sine, shape="x[...] -> y[...]")
assert "torchair.npu_fx_compiler" not in sys.modules

from ascend_graph.host.kernels import host_kernel

host_kernel("LazySin")(lambda x: torch.sin(x))
import torchair

compiled = torch.compile(sine, backend=torchair.get_npu_backend())
x = torch.ones(3, device="npu")
torch.testing.assert_close(compiled(torch._neg_view(x)).cpu(), torch.sin(-torch.ones(3)))
print("compared")
"""


@pytest.mark.slow
def test_torchair_may_be_loaded_after_the_registration() -> None:
    # Not in a fork of the preloaded server, which has imported torchair.
    command = [sys.executable, "-c", PROGRAM]
    result = subprocess.run(
        command, capture_output=True, text=True, cwd=Path(__file__).parent, timeout=600, check=False
    )
    assert result.stdout.splitlines()[-1:] == ["compared"], result.stderr[-2000:]
