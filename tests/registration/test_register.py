"""register_op as a transaction: what is kept, refused, taken back; from threads, and while compiled graphs run."""

from __future__ import annotations

import functools
import importlib
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import ascend_graph
from ascend_graph import AscendGraphError
from ascend_graph.dispatch.fake import existing_meta
from ascend_graph.dispatch.fitting import MetaError
from ascend_graph.dispatch.torchair import ConverterError, existing_converter
from ascend_graph.host.kernels import host_kernel
from ascend_graph.registration import (
    BindingError,
    ConversionError,
    GradientError,
    RegistrationError,
    ReplacedConverterWarning,
    SchemaError,
    make_converter,
)
from ascend_graph.registration.cost import FlopsError
from ascend_graph.shapes import RelationError

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what torch itself deprecates, in modules that torchair imports
    import torch_npu  # noqa: F401 - torchair can only be imported after it
    import torchair.npu_fx_compiler

pytestmark = pytest.mark.filterwarnings("default")

HEADER = """
REG_OP(TxnTwice)
    .INPUT(x, TensorType({DT_FLOAT}))
    .OUTPUT(y, TensorType({DT_FLOAT}))
    .ATTR(times, Int, 2)
    .OP_END_FACTORY_REG(TxnTwice)

REG_OP(TxnTwiceGrad)
    .INPUT(y_grad, TensorType({DT_FLOAT}))
    .OUTPUT(x_grad, TensorType({DT_FLOAT}))
    .ATTR(times, Int, 2)
    .OP_END_FACTORY_REG(TxnTwiceGrad)

REG_OP(TxnMul)
    .INPUT(a, TensorType({DT_FLOAT}))
    .INPUT(b, TensorType({DT_FLOAT}))
    .OUTPUT(y, TensorType({DT_FLOAT}))
    .OP_END_FACTORY_REG(TxnMul)

REG_OP(TxnMulGrad)
    .INPUT(dy, TensorType({DT_FLOAT}))
    .INPUT(a, TensorType({DT_FLOAT}))
    .INPUT(b, TensorType({DT_FLOAT}))
    .OUTPUT(db, TensorType({DT_FLOAT}))
    .OUTPUT(da, TensorType({DT_FLOAT}))
    .OP_END_FACTORY_REG(TxnMulGrad)

REG_OP(TxnMix)
    .INPUT(a, TensorType({DT_FLOAT}))
    .OPTIONAL_INPUT(b, TensorType({DT_FLOAT}))
    .DYNAMIC_INPUT(cs, TensorType({DT_FLOAT}))
    .OUTPUT(y, TensorType({DT_FLOAT}))
    .DYNAMIC_OUTPUT(zs, TensorType({DT_FLOAT}))
    .REQUIRED_ATTR(times, Int)
    .OP_END_FACTORY_REG(TxnMix)

REG_OP(TxnMixGrad)
    .DYNAMIC_INPUT(cs, TensorType({DT_FLOAT}))
    .INPUT(a, TensorType({DT_FLOAT}))
    .INPUT(grad_y, TensorType({DT_FLOAT}))
    .DYNAMIC_INPUT(grad_zs, TensorType({DT_FLOAT}))
    .OPTIONAL_INPUT(b, TensorType({DT_FLOAT}))
    .DYNAMIC_OUTPUT(dcs, TensorType({DT_FLOAT}))
    .OUTPUT(da, TensorType({DT_FLOAT}))
    .OUTPUT(db, TensorType({DT_FLOAT}))
    .REQUIRED_ATTR(times, Int)
    .OP_END_FACTORY_REG(TxnMixGrad)
"""


@host_kernel("TxnTwice", "TxnTwiceGrad")
def _twice(x, *, times=2):
    return x * times


@host_kernel("TxnMul")
def _mul(a, b):
    return a * b


@host_kernel("TxnMulGrad")
def _mul_grad(dy, a, b):
    return dy * a, dy * b


SHAPE = "x[*s] -> y[*s]"
Define = Callable[..., Any]


@pytest.fixture(scope="module", autouse=True)
def library() -> Iterator[torch.library.Library]:
    ascend_graph.load_prototypes(HEADER)
    library = torch.library.Library("txn", "DEF")
    yield library
    library._destroy()


@pytest.fixture
def define(library: torch.library.Library, request: pytest.FixtureRequest) -> Iterator[Define]:
    """``define(schema, kernel)``: an operator with an NPU kernel; what is registered for it goes with the test."""
    made: list[Any] = []

    def one(schema: str = "(Tensor x, int times=2) -> Tensor", kernel: Any = None) -> Any:
        name = f"{request.node.name.split('[')[0]}_{len(made)}_{abs(hash(request.node.name)) % 10**6}"
        library.define(name + schema)
        library.impl(name, kernel or (lambda x, times=2: x * times), "PrivateUse1")
        made.append(getattr(torch.ops.txn, name).default)
        return made[-1]

    yield one
    for registered in ascend_graph.registered_ops():
        if registered.overload in made:
            registered.unregister()
    torch._dynamo.reset()


def state(overload: Any) -> tuple[Any, ...]:
    keys = ("Meta", "Autograd", "AutogradPrivateUse1")
    kernels = tuple(torch._C._dispatch_has_kernel_for_dispatch_key(overload.name(), key) for key in keys)
    return (existing_meta(overload), existing_converter(overload), *kernels)


def ge(function: Callable[..., Any]) -> Callable[..., Any]:
    return torch.compile(function, backend=torchair.get_npu_backend(), dynamic=False, fullgraph=True)


def test_registers_and_takes_back(define: Define) -> None:
    overload = define()
    before = state(overload)
    registered = ascend_graph.register_op("TxnTwice", eager=overload, shape=SHAPE)
    assert registered.registered
    assert registered in ascend_graph.registered_ops()
    assert state(overload) != before
    assert torch.equal(ge(lambda x: overload(x, 3))(torch.ones(2).npu()).cpu(), torch.full((2,), 3.0))
    registered.unregister()
    registered.unregister()
    assert state(overload) == before
    assert not registered.registered


def test_the_same_call_is_one_registration(define: Define) -> None:
    overload = define()
    first = ascend_graph.register_op("TxnTwice", eager=overload, shape=SHAPE)
    assert ascend_graph.register_op("TxnTwice", eager=overload.overloadpacket, shape="x[*s]->y[*s]") is first


def test_another_call_is_refused_or_replaces(define: Define) -> None:
    overload = define()
    first = ascend_graph.register_op("TxnTwice", eager=overload, shape=SHAPE)
    with pytest.raises(RegistrationError, match=r"registered already, differently(.|\n)*shape: registered x\[\*s\]"):
        ascend_graph.register_op("TxnTwice", eager=overload, shape="x[n] -> y[n]")
    assert first.registered
    second = ascend_graph.register_op("TxnTwice", eager=overload, shape="x[n] -> y[n]", override=True)
    assert second.registered
    assert not first.registered
    second.unregister()
    assert existing_meta(overload) is None


def test_a_replacement_that_fails_leaves_the_first(define: Define) -> None:
    overload = define()
    first = ascend_graph.register_op("TxnTwice", eager=overload, shape=SHAPE)
    before = state(overload)
    with pytest.raises(AscendGraphError):
        ascend_graph.register_op("TxnTwice", eager=overload, shape="nobody[n] -> y[n]", override=True)
    assert first.registered
    assert state(overload) == before


@pytest.mark.parametrize(
    ("error", "match", "options"),
    [
        (LookupError, "did you mean 'TxnTwice'", {"op_type": "TxnTwise"}),
        (BindingError, "nothing feeds the required input b", {"op_type": "TxnMul"}),
        (BindingError, "not a mix", {"shape": "x[n], w[n] -> y[n]"}),
        (AscendGraphError, "expected", {"shape": "x[n -> y[n]"}),
        (RegistrationError, "pass one of them", {"shape": lambda x: x, "meta": lambda x: x}),
        (MetaError, r"has the parameters \(a\): .* write def meta\(x, times\)", {"shape": lambda a: a}),
        (GradientError, "pass a function", {"backward": 3}),
        (GradientError, "Function is a class; .*Function.backward", {"backward": torch.autograd.Function}),
        (GradientError, "is not an argument", {"backward": torch.ops.aten.mm.default}),
        (SchemaError, "is not a torch operator; pass an overload", {"eager": 3}),
        (SchemaError, "pass the operator, not its name: torch.ops.txn.twice", {"eager": "txn::twice"}),
        (SchemaError, "an operator made of the function, .*define_from_function", {"eager": lambda a: a}),
        (SchemaError, "an operator made of the function", {"eager": functools.partial(torch.mul, 2)}),
        (SchemaError, "an operator made of the function", {"eager": torch.nn.ReLU().forward}),
        (LookupError, "op_type=3 must be a string, the name in REG_OP", {"op_type": 3}),
        (RelationError, r"a shape relation must be a text, got \['a\[n\]'\]", {"shape": ["a[n]"]}),
        (RelationError, "a dimension must be at least 0, got -1; write a name", {"shape": "x[-1] -> y[-1]"}),
        (BindingError, "Did you mean float32", {"shape": "x[n] -> y[n]: float33"}),
        (RegistrationError, r"arguments=\['a'\] must be a mapping", {"arguments": ["a"]}),
        (SchemaError, "overloads; pass one of them", {"eager": torch.ops.aten.add}),
        (RegistrationError, "must be a function; pass one, not a class", {"shape": torch.nn.ReLU}),
        (RegistrationError, "must be a function; pass one, not a class", {"meta": int}),
        (RegistrationError, "must be a function; pass one, not a class", {"converter": int}),
        (GradientError, "Function is a class; .*Function.jvp", {"forward": torch.autograd.Function}),
        (RegistrationError, r"samples=3 must be a list of \(args, kwargs\)", {"samples": 3}),
        (RegistrationError, r'batch=3 must be names of dimensions; write batch=\("n",\)', {"batch": 3}),
        (RegistrationError, r"reduce=\[3\] must be names of dimensions", {"reduce": [3]}),
        (FlopsError, "flops='' is empty; write a formula", {"flops": ""}),
        (
            ConverterError,
            r"has the parameters \(\): .* write def converter\(x, .*meta_outputs=None\)",
            {"converter": lambda: 3},
        ),
    ],
)
def test_a_failure_changes_nothing(define: Define, error: type[Exception], match: str, options: dict[str, Any]) -> None:
    overload = define()
    before, registered = state(overload), ascend_graph.registered_ops()
    call = {"op_type": "TxnTwice", "eager": overload, "shape": SHAPE} | options
    with pytest.raises(error, match=match):
        ascend_graph.register_op(call.pop("op_type"), **call)
    assert state(overload) == before
    assert ascend_graph.registered_ops() == registered


def test_a_failure_half_way_is_taken_back(define: Define, monkeypatch: pytest.MonkeyPatch) -> None:
    overload = define()
    before = state(overload)

    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("no")

    monkeypatch.setattr("ascend_graph.registration.planning.register_gradient", fail)
    with pytest.raises(RuntimeError, match="no"):
        ascend_graph.register_op("TxnTwice", eager=overload, shape=SHAPE, backward=lambda ctx, grad: grad)
    assert state(overload) == before


def test_a_replacement_that_fails_half_way_leaves_the_first(define: Define, monkeypatch: pytest.MonkeyPatch) -> None:
    overload = define()
    first = ascend_graph.register_op("TxnTwice", eager=overload, shape=SHAPE)

    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("no")

    monkeypatch.setattr("ascend_graph.registration.planning.register_gradient", fail)
    with pytest.raises(RuntimeError, match="no"):
        ascend_graph.register_op(
            "TxnTwice", eager=overload, shape="x[n] -> y[n]", backward=lambda ctx, grad: grad, override=True
        )
    assert first.registered
    assert overload(torch.empty(2, 2, device="meta")).shape == (2, 2), "its own relation is in force again"
    first.unregister()
    assert existing_meta(overload) is None


def test_what_exists_is_kept(define: Define) -> None:
    overload = define()
    ours = ascend_graph.register_op("TxnTwice", eager=torch.ops.npu.npu_fast_gelu, arguments={"times": 3})
    try:
        assert "kept" in ours.evidence["meta"]
        assert "kept" in ours.evidence["converter"]
        assert ours.converter is None
    finally:
        ours.unregister()
    torch.library.register_fake(overload, lambda x, times=2: torch.empty_like(x))
    with pytest.raises(RegistrationError, match="meta function already"):
        ascend_graph.register_op("TxnTwice", eager=overload, shape=SHAPE)


def test_a_relation_beside_the_meta_function_that_is_kept(define: Define) -> None:
    """What a library compiled its Meta kernel from is known to checks, and the kernel stays."""
    operator = define()
    with pytest.raises(RegistrationError, match='has no meta function to keep: leave meta="kept" out'):
        ascend_graph.register_op("TxnTwice", eager=operator, shape=SHAPE, meta="kept")
    torch.library.register_fake(operator, lambda x, times=2: x.new_empty(7))
    op = ascend_graph.register_op("TxnTwice", eager=operator, shape=SHAPE, meta="kept")
    try:
        assert str(op.relation) == SHAPE
        assert op.evidence["meta"].startswith("kept: ")
        assert operator(torch.empty(3, device="meta")).shape == (7,)
    finally:
        op.unregister()
    with pytest.raises(RegistrationError, match=r'TxnTwice: meta="kept" says .* pass both'):
        ascend_graph.register_op("TxnTwice", eager=operator, meta="kept")
    with pytest.raises(RegistrationError, match="meta='keep' must be a function"):
        ascend_graph.register_op("TxnTwice", eager=operator, meta="keep")  # type: ignore[arg-type]


def test_a_hand_written_converter_comes_back() -> None:
    overload = torch.ops.npu.npu_fast_gelu.default
    theirs = existing_converter(overload)
    ours = ascend_graph.register_op("TxnTwice", eager=overload, arguments={"times": 3}, override=True)
    assert existing_converter(overload) is not theirs
    ours.unregister()
    assert existing_converter(overload) is theirs


def test_a_replaced_converter_that_builds_other_nodes_is_told_of() -> None:
    overload = torch.ops.npu.npu_fast_gelu.default
    ours = ascend_graph.register_op("TxnTwice", eager=overload, arguments={"times": 3}, override=True)
    try:
        assert "compared with those of torchair" in ours.evidence["converter"]
        with pytest.warns(
            ReplacedConverterWarning, match=r"npu::npu_fast_gelu → TxnTwice.*theirs FastGelu, ours TxnTwice"
        ):
            result = ge(overload)(torch.ones(2).npu())
        assert result.cpu().tolist() == [3, 3]
    finally:
        ours.unregister()


def test_a_replaced_converter_that_builds_the_same_is_not_told_of() -> None:
    text = (
        "REG_OP(FastGelu).INPUT(x, TensorType({DT_FLOAT})).OUTPUT(y, "
        "TensorType({DT_FLOAT})).OP_END_FACTORY_REG(FastGelu)"
    )
    ascend_graph.load_prototypes(text)
    overload = torch.ops.npu.npu_fast_gelu.default
    ours = ascend_graph.register_op("FastGelu", eager=overload, override=True)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", ReplacedConverterWarning)
            result = ge(overload)(torch.ones(2).npu())
        torch.testing.assert_close(
            result.cpu(), torch.ones(2) * torch.sigmoid(torch.tensor(1.702)), rtol=1e-3, atol=1e-3
        )
    finally:
        ours.unregister()


def test_relation_found_by_running(define: Define) -> None:
    overload = define(kernel=lambda x, times=2: (x * times).to(x.dtype))
    registered = ascend_graph.register_op("TxnTwice", eager=overload)
    assert "runs of the eager kernel" in registered.evidence["meta"]
    assert torch.equal(ge(registered.overload)(torch.ones(2).npu()).cpu(), torch.full((2,), 2.0))


def test_a_value_that_ge_has_no_place_for(define: Define) -> None:
    overload = define("(Tensor x, int times=2, str note='') -> Tensor", lambda x, times=2, note="": x * times)
    registered = ascend_graph.register_op("TxnTwice", eager=overload, shape=SHAPE)
    assert registered.binding.unused == (2,)
    with pytest.raises(Exception, match="note='hello' has no place in GE; expected ''"):
        ge(lambda x: overload(x, 2, "hello"))(torch.ones(2).npu())


def test_a_default_that_is_a_list_may_be_passed(define: Define) -> None:
    overload = define("(Tensor x, int times=2, int[] pads=[0, 0]) -> Tensor", lambda x, times=2, pads=(): x * times)
    ascend_graph.register_op("TxnTwice", eager=overload, shape=SHAPE)
    compiled = ge(lambda x: overload(x, 3, [0, 0]))
    assert compiled(torch.ones(2).npu()).cpu().tolist() == [3, 3]


def test_a_symbolic_size_for_an_attr(define: Define) -> None:
    overload = define("(Tensor x, SymInt times=2) -> Tensor")
    ascend_graph.register_op("TxnTwice", eager=overload, shape=SHAPE)
    compiled = torch.compile(lambda x: overload(x, x.shape[0]), backend=torchair.get_npu_backend(), dynamic=True)
    with pytest.raises(Exception, match="times depends on a symbolic size"):
        compiled(torch.ones(3).npu())


def test_a_table_refuses_other_values(define: Define) -> None:
    overload = define("(Tensor x, str mode) -> Tensor", lambda x, mode: x * {"two": 2, "three": 3}[mode])
    ascend_graph.register_op(
        "TxnTwice", eager=overload, shape=SHAPE, arguments={"mode": ("times", {"two": 2, "three": 3})}
    )
    x = torch.ones(2).npu()
    assert torch.equal(ge(lambda x: overload(x, "three"))(x).cpu(), torch.full((2,), 3.0))
    with pytest.raises(Exception, match="mode='four' is not one of 'two', 'three'"):
        ge(lambda x: overload(x, "four"))(x)


def test_a_converter_of_ones_own(define: Define) -> None:
    overload = define()
    calls = []

    def converter(x: Any, times: int = 2, meta_outputs: Any = None) -> Any:
        calls.append(times)
        return ascend_graph.raw_ops.TxnTwice(x, times=times + 1)

    ascend_graph.register_op("TxnTwice", eager=overload, shape=SHAPE, converter=converter)
    assert torch.equal(ge(lambda x: overload(x, 3))(torch.ones(2).npu()).cpu(), torch.full((2,), 4.0))
    assert calls == [3]


# -------------------------------------------------------------------------------------------------------------
# gradients


def gradients(function: Callable[..., torch.Tensor], *tensors: torch.Tensor) -> list[torch.Tensor]:
    leaves = [tensor.clone().requires_grad_() for tensor in tensors]
    result = function(*leaves)
    result.backward(torch.ones_like(result))
    return [leaf.grad.cpu() for leaf in leaves if leaf.grad is not None]


@pytest.mark.parametrize("compiled", [False, True])
def test_gradient_function(define: Define, compiled: bool) -> None:
    overload = define()

    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        return grad * ctx.arguments["times"]

    ascend_graph.register_op("TxnTwice", eager=overload, shape=SHAPE, backward=backward)

    def function(x: torch.Tensor) -> torch.Tensor:
        return overload(x, 3)

    assert gradients(ge(function) if compiled else function, torch.ones(2).npu())[0].tolist() == [3, 3]


@pytest.mark.parametrize("compiled", [False, True])
def test_gradient_with_a_context_of_ones_own(define: Define, compiled: bool) -> None:
    overload = define()

    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.factor = inputs[1]

    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        return grad * ctx.factor, None

    ascend_graph.register_op("TxnTwice", eager=overload, shape=SHAPE, backward=(backward, setup_context))

    def function(x: torch.Tensor) -> torch.Tensor:
        return overload(x, 5)

    assert gradients(ge(function) if compiled else function, torch.ones(2).npu())[0].tolist() == [5, 5]


@pytest.mark.parametrize("compiled", [False, True])
def test_gradient_operator(define: Define, compiled: bool) -> None:
    """Arguments and returns of the gradient are found by name: here its returns are in the other order."""
    mul = define("(Tensor a, Tensor b) -> Tensor", lambda a, b: a * b)
    mul_grad = define("(Tensor dy, Tensor a, Tensor b) -> (Tensor, Tensor)", lambda dy, a, b: (dy * a, dy * b))
    grad = ascend_graph.register_op("TxnMulGrad", eager=mul_grad, shape="dy[*s], a[*s], b[*s] -> db[*s], da[*s]")
    ascend_graph.register_op("TxnMul", eager=mul, shape="a[*s], b[*s] -> y[*s]", backward=grad)
    a, b = torch.tensor([2.0, 3.0]).npu(), torch.tensor([5.0, 7.0]).npu()
    found = gradients(ge(mul) if compiled else mul, a, b)
    assert [g.tolist() for g in found] == [[5, 7], [2, 3]]


def test_a_gradient_function_asks_for_what_it_needs(define: Define) -> None:
    """Keyword-only parameters are inputs, outputs and attrs by name; nothing else is kept, absent inputs are None."""
    overload = define("(Tensor a, Tensor? b, Tensor[] cs, int times) -> (Tensor y, Tensor[] zs)", _mix)
    seen = []

    def backward(ctx: Any, grad_y: torch.Tensor, grad_zs: Any, *, cs: Any, b: Any, y: Any, times: int) -> Any:
        seen.append((len(cs), b is None, y.tolist(), times))
        return grad_y * times, None if b is None else grad_y, [g * c for g, c in zip(grad_zs, cs, strict=True)], None

    ascend_graph.register_op("TxnMix", eager=overload, meta=_mix, backward=backward)
    for b in (None, torch.ones(2).npu().requires_grad_()):
        a = torch.ones(2).npu().requires_grad_()
        cs = [torch.full((2,), v).npu().requires_grad_() for v in (2.0, 3.0, 4.0)]
        y, zs = overload(a, b, cs, 3)
        with torch.no_grad():
            zs[0].zero_()
        (y.sum() + sum(z.sum() for z in zs)).backward()
        assert a.grad.tolist() == [3, 3]
        assert [c.grad.tolist() for c in cs] == [[2, 2], [3, 3], [4, 4]]
        assert b is None or b.grad.tolist() == [1, 1]
    assert seen == [(3, True, [3, 3], 3), (3, False, [4, 4], 3)]


def test_saved_tensors_of_a_function_have_slots(define: Define) -> None:
    """What is absent is None where it would stand; what comes after does not move up."""
    overload = define("(Tensor a, Tensor? b, Tensor[] cs, int times) -> (Tensor y, Tensor[] zs)", _mix)
    seen = []

    def backward(ctx: Any, grad_y: torch.Tensor, grad_zs: Any) -> Any:
        seen.append([None if t is None else t.tolist() for t in ctx.saved_tensors])
        return grad_y * ctx.arguments["times"], None, [None, None]

    ascend_graph.register_op("TxnMix", eager=overload, meta=_mix, backward=backward)
    a = torch.ones(1).npu().requires_grad_()
    overload(a, None, [torch.full((1,), v).npu() for v in (5.0, 6.0)], 3)[0].sum().backward()
    assert seen == [[[1], None, [5], [6], [3], [10], [12]]]


def _mix(a: torch.Tensor, b: torch.Tensor | None, cs: list[torch.Tensor], times: int) -> Any:
    return (a * times if b is None else a * times + b), [c * 2 for c in cs]


def test_an_operator_with_lists_is_the_gradient_of_one_with_lists(define: Define) -> None:
    """Lists and absent tensors take the places that they have: nothing shifts."""
    overload = define("(Tensor a, Tensor? b, Tensor[] cs, int times) -> (Tensor y, Tensor[] zs)", _mix)

    def gradient(cs: Any, a: Any, grad_y: Any, grad_zs: Any, times: int, b: Any = None) -> Any:
        return [g * 2 * c / c for g, c in zip(grad_zs, cs, strict=True)], grad_y * times * a / a, grad_y * 1

    grad = define(
        "(Tensor[] cs, Tensor a, Tensor grad_y, Tensor[] grad_zs, int times, Tensor? b=None) -> (Tensor[] dcs, "
        "Tensor da, Tensor db)",
        gradient,
    )
    ascend_graph.register_op("TxnMixGrad", eager=grad, meta=gradient)
    ascend_graph.register_op("TxnMix", eager=overload, meta=_mix, backward="TxnMixGrad")
    for b in (None, torch.ones(2).npu().requires_grad_()):
        for count in (1, 3):
            a = torch.full((2,), 7.0).npu().requires_grad_()
            cs = [torch.full((2,), 2.0 + v).npu().requires_grad_() for v in range(count)]
            y, zs = overload(a, b, cs, 3)
            (y.sum() + sum(z.sum() for z in zs)).backward()
            assert a.grad.tolist() == [3, 3]
            assert [c.grad.tolist() for c in cs] == [[2, 2]] * count


@pytest.mark.parametrize(
    ("backward", "match"),
    [
        (
            lambda ctx: None,
            r"has the signature \(ctx\): too many positional arguments; it is called with \(ctx, grad0\)",
        ),
        (lambda ctx, grad, more: None, "missing a required argument: 'more'"),
        (lambda ctx, grad, *, gamma: None, "asks for gamma; there are the arguments x, times and the outputs y"),
        ((lambda ctx, grad: None, lambda ctx, values, output: None), "missing a required argument: 'values'|inputs"),
        ("TxnNobody", "no operator is registered under that name; register it first"),
        ("TxnMul(", "names no operator"),
        ("aten::mul.Tensor", "its argument other is not an argument"),
        ("aten::neg", r'Write: backward="aten::neg\(self: grad_y\); unused: times"'),
        ("aten::relu_", "it must neither write to its arguments nor return them"),
    ],
)
def test_gradients_that_cannot_be_called_are_refused_at_registration(define: Define, backward: Any, match: str) -> None:
    overload = define()
    before = state(overload)
    with pytest.raises(GradientError, match=match):
        ascend_graph.register_op("TxnTwice", eager=overload, shape=SHAPE, backward=backward)
    assert state(overload) == before


def test_the_line_that_a_refusal_proposes_gives_a_gradient(define: Define) -> None:
    """Followed as it stands, in the form that a call of ``register_op`` has."""
    overload = define()
    with pytest.raises(GradientError) as caught:
        ascend_graph.register_op("TxnTwice", eager=overload, shape=SHAPE, backward="aten::neg")
    line = str(caught.value).partition("Write: ")[2]
    exec(
        f"ascend_graph.register_op('TxnTwice', eager=overload, shape=SHAPE, {line})", globals(), {"overload": overload}
    )
    x = torch.tensor([1.0, 2.0]).npu().requires_grad_()
    overload(x, 3).sum().backward()
    assert x.grad.tolist() == [-1, -1]


def test_operators_that_write_take_no_gradient(define: Define) -> None:
    overload = define("(Tensor(a!) x, int times) -> ()", lambda x, times: x.mul_(times))
    with pytest.raises(GradientError, match="writes x in place: backward= is for operators that write nothing"):
        ascend_graph.register_op("TxnTwice", eager=overload, meta=lambda x, times: None, backward=lambda ctx: None)


# ------------------------------------------------------------------------------------------- threads, graphs, first
# graph


def test_threads(define: Define) -> None:
    overloads = [define() for _ in range(8)]
    shared = define()
    found: list[Any] = []
    errors: list[BaseException] = []

    def work(overload: Any) -> None:
        try:
            for _ in range(5):
                one = ascend_graph.register_op("TxnTwice", eager=overload, shape=SHAPE)
                found.append(ascend_graph.register_op("TxnTwice", eager=shared, shape=SHAPE))
                one.unregister()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(overload,)) for overload in overloads]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert len({id(registered) for registered in found}) == 1
    assert all(existing_meta(overload) is None for overload in overloads)


def test_compiled_graphs_outlive_the_registration(define: Define) -> None:
    overload = define()
    registered = ascend_graph.register_op("TxnTwice", eager=overload, shape=SHAPE, backward=lambda ctx, grad: grad * 2)
    compiled = ge(lambda x: overload(x, 4))
    x = torch.ones(2).npu()
    assert compiled(x).cpu().tolist() == [4, 4]
    registered.unregister()
    assert compiled(x).cpu().tolist() == [4, 4], "a graph keeps what it was compiled with"
    assert overload(x, 4).cpu().tolist() == [4, 4]
    torch._dynamo.reset()
    again = ascend_graph.register_op("TxnTwice", eager=overload, shape=SHAPE)
    assert ge(lambda x: overload(x, 4))(x).cpu().tolist() == [4, 4]
    assert again.registered


def test_registering_after_a_graph_was_compiled_without(define: Define) -> None:
    overload = define()
    torch.library.register_fake(overload, lambda x, times=2: torch.empty_like(x))
    x = torch.ones(2).npu()
    with pytest.raises(Exception, match=r"TxnTwice|AscendIR|converter"):
        ge(lambda x: overload(x, 4))(x)
    ascend_graph.register_op("TxnTwice", eager=overload)
    torch._dynamo.reset()
    assert ge(lambda x: overload(x, 4))(x).cpu().tolist() == [4, 4]


@pytest.mark.slow
def test_the_first_graph_of_a_process(tmp_path: Path) -> None:
    """TorchAir's automatic path asks GE before it runs and fails; an operator that is registered never meets it."""
    script = tmp_path / "first.py"
    script.write_text(
        "import torch, torch_npu, torchair, ascend_graph\n"
        "from ascend_graph.host.kernels import host_kernel\n"
        "@host_kernel('FirstOp')\n"
        "def first(x): return x + 1\n"
        "ascend_graph.load_prototypes('REG_OP(FirstOp).INPUT(x, TensorType({DT_FLOAT}))'\n"
        "    '.OUTPUT(y, TensorType({DT_FLOAT})).OP_END_FACTORY_REG(FirstOp)')\n"
        "library = torch.library.Library('first', 'DEF')\n"
        "library.define('op(Tensor x) -> Tensor')\n"
        "library.impl('op', lambda x: x + 1, 'PrivateUse1')\n"
        "ascend_graph.register_op('FirstOp', eager=torch.ops.first.op, shape='x[*s] -> y[*s]')\n"
        "f = torch.compile(lambda x: torch.ops.first.op(x), backend=torchair.get_npu_backend(), dynamic=False)\n"
        "print('result', f(torch.ones(2).npu()).tolist())\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "ascend_graph.host", str(script)],
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert "result [2.0, 2.0]" in done.stdout, done.stderr


def test_errors_of_a_converter_have_their_own_class(define: Define) -> None:
    overload = define("(Tensor x, int times=2, str note='') -> Tensor", lambda x, times=2, note="": x)
    registered = ascend_graph.register_op("TxnTwice", eager=overload, shape=SHAPE)
    with torchair.ge._ge_graph.GeGraph() as graph:
        before = len(graph.op)
        with pytest.raises(ConversionError):
            make_converter(registered.binding)(None)
        with pytest.raises(ConversionError):
            make_converter(registered.binding)(torchair.ge.Const(1.0), 2, "hello")
        assert len(graph.op) == before + 1, "nothing but the Const"


# ------------------------------------------------------------------------------------------------------------ older
# CANN


@pytest.fixture
def older_cann(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """A CANN whose TxnTwice has no attr times; what it is asked."""
    asked: list[tuple[Any, ...]] = []

    def is_cann_compat(op_type: str, inputs: tuple[str, ...], attrs: tuple[str, ...]) -> str:
        asked.append((op_type, inputs, attrs))
        return "the installed CANN has no attr times" if "times" in attrs else ""

    compat = importlib.import_module("torchair._ge_concrete_graph.compat_ir")
    monkeypatch.setattr(compat, "is_cann_compat", is_cann_compat)
    return asked


def test_an_attr_that_an_older_cann_lacks(define: Define, older_cann: list[tuple[Any, ...]]) -> None:
    """Unused it is left out of the node, used it is refused."""
    overload = define()
    ascend_graph.register_op("TxnTwice", eager=overload, shape=SHAPE)
    x = torch.ones(2).npu()
    assert ge(lambda x: overload(x, 2))(x).cpu().tolist() == [2, 2]
    assert older_cann == [("TxnTwice", (), ())]
    with pytest.raises(Exception, match="the installed CANN has no attr times"):
        ge(lambda x: overload(x, 3))(x)


# ------------------------------------------------------------------------------------------- operators without eager=


def test_without_an_eager_operator(tmp_path: Path) -> None:
    """The operator is defined from the prototype, and goes when it is unregistered."""
    prototype = ascend_graph.find_prototype("TxnTwice")
    registered = ascend_graph.register_op("TxnTwice", shape=SHAPE)
    try:
        assert registered.overload is torch.ops.ascend.txn_twice.default
        assert registered.evidence["eager"].startswith("aclnnTxnTwice")
        assert registered is ascend_graph.register_op("TxnTwice", shape=SHAPE)
        assert prototype == registered.prototype
    finally:
        registered.unregister()
    assert not hasattr(torch.ops.ascend, "txn_twice")
