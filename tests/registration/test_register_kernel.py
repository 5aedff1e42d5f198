"""Operators with a schema and an eager kernel alone: neither prototype nor aclnn function."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

import ascend_graph
from ascend_graph import register_kernel
from ascend_graph.checks.kinds.graph_checks import compile_for_ge_once
from ascend_graph.registration import BindingError, MetaError, RegisteredOp, RegistrationError, SchemaError

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what torch itself deprecates, in modules that torchair imports
    import torch_npu  # noqa: F401 - torchair can only be imported after it
    import torchair

T = torch.Tensor
# Compiling warns of much that is torch's and torchair's own affair.
pytestmark = pytest.mark.filterwarnings("default")

SCHEMAS = """
quantize(Tensor x, Tensor? scale=None, *, ScalarType dst=int8) -> (Tensor y, Tensor? row_max)
put(Tensor(a!) cache, Tensor x, int? start=None) -> ()
grow_(Tensor(a!) x, float by=1.) -> Tensor(a!)
split_rows(Tensor[] xs, int parts) -> Tensor[]
double(Tensor x) -> Tensor
scale(Tensor x, *, Tensor w) -> Tensor
notify(Tensor x) -> ()
sizes(Tensor x) -> int[]
"""


def _quantize(x: T, scale: T | None = None, *, dst: torch.dtype = torch.int8) -> tuple[T, T | None]:
    y = x if scale is None else x * scale
    return y.to(dst, copy=True), None if scale is None else y.abs().amax(-1).float()


def _put(cache: T, x: T, start: int | None = None) -> None:
    cache[start or 0 :][: len(x)] = x


def _grow(x: T, by: float = 1.0) -> T:
    return x.add_(by)


def _split_rows(xs: list[T], parts: int) -> list[T]:
    return [x.reshape(parts, -1, *x.shape[1:]).clone() for x in xs]


def _double(x: T) -> T:
    return x * 2


def _notify(x: T) -> None:
    pass


KERNELS = {
    "quantize": _quantize,
    "put": _put,
    "grow_": _grow,
    "split_rows": _split_rows,
    "double": _double,
    "scale": lambda x, *, w: x * w,
    "notify": _notify,
    "sizes": lambda x: list(x.shape),
}


@pytest.fixture(scope="module", autouse=True)
def _ge_first() -> None:
    compile_for_ge_once()


@pytest.fixture
def ops() -> Iterator[Any]:
    library = torch.library.Library("kernel_tests", "DEF")
    for schema in SCHEMAS.strip().splitlines():
        name = library.define(schema)
        library.impl(name, KERNELS[name], "PrivateUse1")
    torch._dynamo.reset()
    yield torch.ops.kernel_tests
    for op in reversed(ascend_graph.registered_ops()):
        if op.overload.namespace == "kernel_tests":
            op.unregister()
    library._destroy()


def test_the_relation_gives_dtypes_absent_outputs_and_strides(ops: Any) -> None:
    op = register_kernel(
        eager=ops.quantize,
        shape="x[*s, d], scale[d] -> y[*s, d]: dst, row_max[*s]: float32 if scale is not None else None",
    )
    assert isinstance(op, RegisteredOp)
    assert (op.op_type, op.prototype, op.call) == ("kernel_tests::quantize", None, None)
    y, row_max = ops.quantize(torch.empty(2, 3, 4, device="meta"), dst=torch.float16)
    assert (y.shape, y.dtype, row_max) == ((2, 3, 4), torch.float16, None)
    with pytest.raises(Exception, match="scale"):
        ops.quantize(torch.empty(2, 4, device="meta"), torch.empty(5, device="meta"))
    transposed = torch.empty(4, 3, device="meta").t()
    assert ops.quantize(transposed)[0].is_contiguous()
    assert ascend_graph.opcheck(op, checks=("arguments", "meta", "npugraph_ex", "export"), count=2).ok


def test_arguments_are_written_in_every_mode_without_ge(ops: Any) -> None:
    put = register_kernel(eager=ops.put, shape="cache[n, d], x[m, d] ->")
    assert ascend_graph.opcheck(put, checks=("runs", "arguments", "meta"), count=2).ok
    register_kernel(eager=ops.grow_, shape="x[*s] -> x")

    def f(cache: T, x: T) -> T:
        ops.put(cache, x, 1)
        return ops.grow_(cache[:2]) * 1

    def run(how: Any) -> tuple[list[Any], list[Any]]:
        cache = torch.zeros(3, 2).npu()
        made = how(f)(cache, torch.ones(2, 2).npu())
        return made.tolist(), cache.tolist()

    expected = run(lambda f: f)
    assert expected[1] == [[1, 1], [2, 2], [1, 1]]
    for backend in ("npugraph_ex", "aot_eager"):
        assert run(lambda f, b=backend: torch.compile(f, backend=b, fullgraph=True)) == expected, backend


def test_lists_and_several_names_of_outputs(ops: Any) -> None:
    op = register_kernel(eager=ops.split_rows.default, shape="xs[i][n[i], d[i]] -> ys[i][parts, n[i] // parts, d[i]]")
    xs = [torch.rand(4, 3).npu(), torch.rand(2, 5).npu()]
    metas = ops.split_rows([x.to("meta") for x in xs], 2)
    assert [tuple(m.shape) for m in metas] == [(2, 2, 3), (2, 1, 5)]
    assert [o.name for o in op.binding.prototype.outputs] == ["ys"]


def test_the_relation_is_found_by_running(ops: Any) -> None:
    op = register_kernel(eager=ops.double)
    assert "found by" in op.evidence["meta"]
    assert ops.double(torch.empty(2, 3, device="meta")).shape == (2, 3)


def test_vmap_cost_and_gradient(ops: Any) -> None:
    op = register_kernel(
        eager=ops.double,
        shape="x[*s] -> y[*s]",
        batch=("*s",),
        flops="numel(x)",
        backward=lambda ctx, grad: 2 * grad,
    )
    x = torch.rand(3, 2).npu().requires_grad_()
    ops.double(x).sum().backward()
    assert x.grad.tolist() == [[2, 2]] * 3
    torch.testing.assert_close(torch.vmap(ops.double)(x), 2 * x)
    with FlopCounterMode(display=False) as counter:
        ops.double(x)
    assert counter.get_total_flops() == 6
    assert op.cost(x).bytes == 2 * 6 * 4
    report = ascend_graph.opcheck(op, reference=lambda x: x * 2, count=1)
    states = {o.check: (o.state.name, o.message) for o in report.outcomes}
    assert states["ge"] == ("SKIPPED", "TorchAir has no converter for it")
    ran = ("reference", "meta", "vmap", "sharding", "gradient", "npugraph_ex", "export", "gradient_in_graphs")
    assert {states[name][0] for name in ran} == {"PASSED"}
    assert op.independent_dims is not None
    assert op.independent_dims.written == "s"


def test_a_ge_graph_names_the_line_to_write(ops: Any) -> None:
    register_kernel(eager=ops.double, shape="x[*s] -> y[*s]")
    register_kernel(eager=ops.grow_, shape="x[*s] -> x")
    for f, name in ((lambda x: ops.double(x), "double"), (lambda x: ops.grow_(x * 1) + 1, "grow_")):
        with pytest.raises(Exception, match=rf'register_op\("OpType", eager=torch.ops.kernel_tests.{name}, …\)'):
            torch.compile(f, backend=torchair.get_npu_backend())(torch.rand(2).npu())
        torch._dynamo.reset()


def test_a_converter_of_others_stays_in_force(ops: Any) -> None:
    op = register_kernel(eager=ops.double, shape="x[*s] -> y[*s]")

    @torchair.register_fx_node_ge_converter(ops.double.default)
    def convert(x: Any, meta_outputs: Any = None) -> Any:
        return torchair.ge.custom_op("Add", x, x)

    f = torch.compile(lambda x: ops.double(x), backend=torchair.get_npu_backend())
    assert f(torch.ones(2).npu()).tolist() == [2, 2]
    op.unregister()
    assert ops.double.default._ge_converter is not None
    del ops.double.default._ge_converter


def test_what_registering_refuses_and_keeps(ops: Any) -> None:
    with pytest.raises(BindingError, match="mentions z, which is not an argument; expected one of x"):
        register_kernel(eager=ops.double, shape="z[*s] -> y[*s]")
    op = register_kernel(eager=ops.double, shape="x[*s] -> y[*s]")
    assert register_kernel(eager=ops.double, shape="x[*s] -> y[*s]") is op
    with pytest.raises(RegistrationError, match="registered already, differently"):
        register_kernel(eager=ops.double, shape="x[n] -> y[n]")
    page = str(ascend_graph.explain(op))
    assert "registered by its schema and kernel" in page
    op.unregister()
    with pytest.raises(NotImplementedError):
        ops.double(torch.empty(2, device="meta"))
    with pytest.raises(ascend_graph.InferenceError, match='shape="->"'):
        register_kernel(eager=ops.notify)
    assert "outputs that are inputs" in register_kernel(eager=ops.put).evidence["meta"]
    with pytest.warns(ascend_graph.BindingWarning, match=r"notify\(Tensor\(a!\) x\)"):
        register_kernel(eager=ops.notify, shape="->")
    with pytest.raises(MetaError, match=r"output n is a List\[int\], which no relation gives; pass a function instead"):
        register_kernel(eager=ops.sizes, shape="x -> n = 0")
    register_kernel(eager=ops.sizes, shape=lambda x: list(x.shape))
    assert ops.sizes(torch.empty(2, 3, device="meta")) == [2, 3]
    with pytest.raises(RegistrationError, match="pass both"):
        register_kernel(eager=ops.quantize, meta="kept")
    with pytest.raises(RegistrationError, match=r"batch= of kernel_tests::scale: .* keyword-only tensors \(w\); make"):
        register_kernel(eager=ops.scale, shape="x[*s, d], w[d] -> y[*s, d]", batch=("*s",))
    register_kernel(eager=ops.scale, shape="x[*s, d], w[d] -> y[*s, d]")


@pytest.mark.parametrize("name", ["lambda", "from", "self"])
def test_a_keyword_that_no_graph_can_contain_is_refused(name: str) -> None:
    operator = ascend_graph.define_from_function(
        f"kernel_keywords::by_{name}(Tensor x, *, float {name}=1.0) -> Tensor", lambda x, **attrs: x * 2
    )
    with pytest.raises(SchemaError, match=f"keyword-only argument {name}, .* Write {name}_ in the schema, or make it"):
        register_kernel(eager=operator, shape="x[*s] -> y[*s]")
    assert not any("kernel_keywords" in str(op) for op in ascend_graph.registered_ops())


ALIASING = {
    "itself(Tensor x) -> Tensor": (lambda x: x, "result 0 shares memory with the argument x"),
    "rows(Tensor x) -> Tensor": (lambda x: x[1:], "result 0 shares memory with the argument x"),
    "element(Tensor[] xs) -> Tensor[]": (lambda xs: [xs[0] * 2, xs[1]], "result 0 shares memory with the argument xs"),
    "twice(Tensor x) -> (Tensor y, Tensor z)": (lambda x: (y := x * 2, y.t()), "z shares memory with y"),
    "unsaid(Tensor(a!) x) -> Tensor": (lambda x: x.add_(1), "result 0 shares memory with the argument x"),
}


@pytest.mark.parametrize("schema", ALIASING)
def test_a_function_that_returns_memory_of_its_arguments_is_refused(schema: str) -> None:
    """Eager calls would give the caller's tensor, graphs a new one: a later write changes other values."""
    function, match = ALIASING[schema]
    op = ascend_graph.define_from_function(f"aliasing::{schema}", function)
    x = torch.ones(3, 3).npu()
    with pytest.raises(
        ascend_graph.AscendGraphError, match=rf"{match}; expected memory of its own.* Write: a clone\(\)"
    ):
        op([x, x + 1] if "[]" in schema else x)


#: Functions whose result is not the argument that the schema names.
NOT_THE_ARGUMENT: dict[str, tuple[str, Any]] = {
    "another tensor": ("-> Tensor(a!)", lambda x, y: x + y),
    "a copy": ("-> Tensor(a!)", lambda x, y: x.add_(y).clone()),
    "a view": ("-> Tensor(a!)", lambda x, y: x.add_(y).t()),
    "another argument": ("-> Tensor(a!)", lambda x, y: (x.add_(1), y)[1]),
    "nothing": ("-> Tensor(a!)", lambda x, y: (x.add_(y), None)[1]),
    "both in another order": ("-> (Tensor(a!), Tensor(b!))", lambda x, y: (y.add_(1), x.add_(1))),
    "one of a list": ("[] -> Tensor(a!)[]", lambda xs, y: [xs[0].add_(y), xs[1] + y]),
}


@pytest.mark.parametrize("kind", NOT_THE_ARGUMENT)
@pytest.mark.parametrize("from_operator", [False, True])
def test_a_function_that_does_not_return_the_argument_that_its_schema_says_is_refused(
    kind: str, from_operator: bool
) -> None:
    """Eager calls would give the function's tensor, graphs the argument."""
    result, function = NOT_THE_ARGUMENT[kind]
    listed, result = ("[]" if "[]" in result else ""), result.removeprefix("[] ")
    name = f"{kind.replace(' ', '_')}_{int(from_operator)}"
    library = torch.library.Library("unsaid", "FRAGMENT")
    if from_operator:
        library.define(f"{name}(Tensor{listed} x, Tensor y) {re.sub(r'.[ab]!.', '', result)}")
        library.impl(name, function, "PrivateUse1")
        function = getattr(torch.ops.unsaid, name)
    marked = "Tensor(b!)" if "b!" in result else "Tensor"
    op = ascend_graph.define_from_function(f"aliasing::{name}(Tensor(a!){listed} x, {marked} y) {result}", function)
    x, y = torch.ones(3, 3).npu(), torch.ones(3, 3).npu()
    try:
        with pytest.raises(
            ascend_graph.AscendGraphError,
            match="result 0 is not the argument x; expected that tensor.* Write: return x ",
        ):
            op([x, x + 1] if listed else x, y)
    finally:
        library._destroy()


@pytest.mark.parametrize("kind", [kind for kind, (result, _) in NOT_THE_ARGUMENT.items() if "[]" not in result])
@pytest.mark.parametrize("backend", ["npugraph_ex", "aot_eager"])
def test_graphs_refuse_an_operator_that_does_not_return_the_argument_that_its_schema_says(
    kind: str, backend: str
) -> None:
    result, function = NOT_THE_ARGUMENT[kind]
    compile_for_ge_once()
    library = torch.library.Library("not_returned", "DEF")
    library.define(f"op(Tensor(a!) x, {'Tensor(b!)' if 'b!' in result else 'Tensor'} y) {result}")
    library.impl("op", function, "PrivateUse1")
    registered = register_kernel(eager=torch.ops.not_returned.op)
    x, y = torch.ones(3, 3).npu(), torch.ones(3, 3).npu()
    torch._dynamo.reset()
    try:
        with pytest.raises(ascend_graph.AscendGraphError, match="not_returned::op: result 0 is not the argument x"):
            torch.compile(torch.ops.not_returned.op, backend=backend)(x, y)
    finally:
        registered.unregister()
        library._destroy()


def test_parts_of_one_new_memory_and_returned_arguments_are_results() -> None:
    parts = ascend_graph.define_from_function(
        "aliasing::parts(Tensor x) -> Tensor[]", lambda x: list((x * 2).chunk(3, -1))
    )
    grow = ascend_graph.define_from_function("aliasing::grow_(Tensor(a!) x) -> Tensor(a!)", lambda x: x.add_(1))
    x = torch.arange(12.0).reshape(2, 6).npu()
    torch.testing.assert_close(torch.cat(parts(x), -1), x * 2)
    assert grow(x) is x
    viewed = ascend_graph.define_from_function("aliasing::viewed_(Tensor(a!) x) -> Tensor(a!)", lambda x: x.view_as(x))
    torch.testing.assert_close(viewed(x), x)
