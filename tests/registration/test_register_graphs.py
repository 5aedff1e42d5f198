"""What register_op is for: the same numbers eager, in GE graphs and in aclgraph, for every kind of argument."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

import ascend_graph
from ascend_graph.host.kernels import host_kernel
from ascend_graph.registration import ConversionError, RegisteredOp

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what torch itself deprecates, in modules that torchair imports
    import torch_npu  # noqa: F401 - torchair can only be imported after it
    import torchair.npu_fx_compiler

# Compiling warns of much that is torch's and torchair's own affair.
pytestmark = pytest.mark.filterwarnings("default")

HEADER = """
REG_OP(RegScale)
    .INPUT(x, TensorType({DT_FLOAT, DT_FLOAT16}))
    .OPTIONAL_INPUT(bias, TensorType({DT_FLOAT, DT_FLOAT16}))
    .OUTPUT(y, TensorType({DT_FLOAT, DT_FLOAT16}))
    .REQUIRED_ATTR(factor, Float)
    .ATTR(mode, Int, 0)
    .ATTR(axes, ListInt, {})
    .OP_END_FACTORY_REG(RegScale)

REG_OP(RegAccumulate)
    .INPUT(total, TensorType({DT_FLOAT}))
    .INPUT(x, TensorType({DT_FLOAT}))
    .OUTPUT(total, TensorType({DT_FLOAT}))
    .OP_END_FACTORY_REG(RegAccumulate)

REG_OP(RegSum)
    .INPUT(total, TensorType({DT_FLOAT}))
    .INPUT(x, TensorType({DT_FLOAT}))
    .OUTPUT(result, TensorType({DT_FLOAT}))
    .OP_END_FACTORY_REG(RegSum)

REG_OP(RegCat)
    .DYNAMIC_INPUT(tensors, TensorType({DT_FLOAT}))
    .OUTPUT(y, TensorType({DT_FLOAT}))
    .ATTR(axis, Int, 0)
    .OP_END_FACTORY_REG(RegCat)

REG_OP(RegSplit)
    .INPUT(x, TensorType({DT_FLOAT}))
    .DYNAMIC_OUTPUT(y, TensorType({DT_FLOAT}))
    .REQUIRED_ATTR(num, Int)
    .OP_END_FACTORY_REG(RegSplit)

REG_OP(RegTwo)
    .INPUT(x, TensorType({DT_FLOAT}))
    .OUTPUT(low, TensorType({DT_FLOAT}))
    .OUTPUT(high, TensorType({DT_FLOAT}))
    .OP_END_FACTORY_REG(RegTwo)

REG_OP(RegAdd)
    .INPUT(x1, TensorType({DT_FLOAT, DT_FLOAT16, DT_INT32}))
    .INPUT(x2, TensorType({DT_FLOAT, DT_FLOAT16, DT_INT32}))
    .OUTPUT(y, TensorType({DT_FLOAT, DT_FLOAT16, DT_INT32}))
    .OP_END_FACTORY_REG(RegAdd)

REG_OP(RegCastTo)
    .INPUT(x, TensorType({DT_FLOAT, DT_FLOAT16, DT_BF16}))
    .OUTPUT(y, TensorType({DT_FLOAT, DT_FLOAT16, DT_BF16}))
    .REQUIRED_ATTR(dst_type, Int)
    .OP_END_FACTORY_REG(RegCastTo)

REG_OP(RegWeigh)
    .INPUT(x, TensorType({DT_FLOAT}))
    .OUTPUT(y, TensorType({DT_FLOAT}))
    .ATTR(acc_type, Type, DT_FLOAT16)
    .OP_END_FACTORY_REG(RegWeigh)

REG_OP(RegExpand)
    .INPUT(x, TensorType({DT_FLOAT}))
    .INPUT(shape, TensorType({DT_INT32, DT_INT64}))
    .OUTPUT(y, TensorType({DT_FLOAT}))
    .OP_END_FACTORY_REG(RegExpand)
"""


@host_kernel("RegScale")
def _scale(x, bias=None, *, factor, mode=0, axes=()):
    y = x * factor + mode + sum(axes)
    return y if bias is None else y + bias


@host_kernel("RegAccumulate", writes=("total",))
def _accumulate(total, x):
    return total.add_(x)


@host_kernel("RegSum")
def _sum(total, x):
    return total + x


@host_kernel("RegCat", dynamic=("tensors",))
def _cat(tensors, *, axis=0):
    return torch.cat(tensors, axis)


@host_kernel("RegSplit")
def _split(x, *, num):
    return [part.clone() for part in x.chunk(num)]


@host_kernel("RegTwo")
def _two(x):
    return x - 1, x + 1


@host_kernel("RegAdd")
def _add(x1, x2):
    assert x1.dtype == x2.dtype, "GE hands a kernel what the prototype says: one dtype"
    return x1 + x2


@host_kernel("RegCastTo")
def _cast_to(x, *, dst_type):
    return x.to({0: torch.float32, 1: torch.float16, 27: torch.bfloat16}[dst_type])


@host_kernel("RegWeigh")
def _weigh(x, *, acc_type=1):
    return x * acc_type


@host_kernel("RegExpand", values=("shape",))
def _expand(x, shape):
    return x.expand(shape.tolist()).clone()


Define = Callable[..., RegisteredOp]


@pytest.fixture(scope="module")
def library() -> Iterator[torch.library.Library]:
    ascend_graph.load_prototypes(HEADER)
    library = torch.library.Library("reg_graphs", "DEF")
    yield library
    library._destroy()


@pytest.fixture
def define(library: torch.library.Library, request: pytest.FixtureRequest) -> Iterator[Define]:
    """``define(op_type, schema, kernel, **register_op's)``: an operator with an eager kernel, registered for the
    test."""
    made: list[RegisteredOp] = []
    serial = iter(range(100))

    def one(op_type: str, schema: str, kernel: Callable[..., Any], **options: Any) -> RegisteredOp:
        name = f"{request.node.name.split('[')[0]}_{next(serial)}_{abs(hash(request.node.name)) % 10**6}"
        library.define(name + schema)
        library.impl(name, kernel, "PrivateUse1")
        made.append(ascend_graph.register_op(op_type, eager=getattr(torch.ops.reg_graphs, name), **options))
        return made[-1]

    yield one
    for registered in made:
        registered.unregister()
    torch._dynamo.reset()


def ge(function: Callable[..., Any], dynamic: bool = False) -> Callable[..., Any]:
    return torch.compile(function, backend=torchair.get_npu_backend(), dynamic=dynamic, fullgraph=True)


def aclgraph(function: Callable[..., Any]) -> Callable[..., Any]:
    return torch.compile(function, backend="npugraph_ex", dynamic=False, fullgraph=True)


MODES = [pytest.param(ge, id="GE"), pytest.param(aclgraph, id="aclgraph")]


def npu(*sizes: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.arange(1.0, 1.0 + torch.Size(sizes).numel()).reshape(sizes).to(dtype).npu()


@pytest.mark.parametrize("mode", MODES)
def test_attrs_and_optional_inputs(define: Define, mode: Any) -> None:
    op = define(
        "RegScale",
        "(Tensor self, float scale, *, Tensor? bias=None, int mode=0, int[] axes=[]) -> Tensor",
        lambda self, scale, *, bias=None, mode=0, axes=(): _scale(self, bias, factor=scale, mode=mode, axes=axes),
        arguments={"scale": "factor"},
        shape="x[*s] -> y[*s]",
    )
    x, bias = npu(2, 3), npu(3)
    for call in (
        lambda x, b: op.overload(x, 2.0),
        lambda x, b: op.overload(x, 0.5, bias=b),
        lambda x, b: op.overload(x, -1.0, bias=b, mode=3, axes=[1, 2]),
    ):
        torch._dynamo.reset()
        assert torch.equal(mode(call)(x, bias).cpu(), call(x, bias).cpu())


def test_dynamic_shapes_compile_once(define: Define) -> None:
    op = define("RegTwo", "(Tensor x) -> (Tensor low, Tensor high)", _two, shape="x[*s] -> low[*s], high[*s]")
    torch._dynamo.utils.counters.clear()
    compiled = ge(op.overload, dynamic=True)
    for n in (2, 5, 9):
        low, high = compiled(npu(n, 3))
        assert torch.equal(low.cpu() + 2, high.cpu())
        assert low.shape == (n, 3)
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1


@pytest.mark.parametrize("mode", MODES)
def test_lists_of_tensors(define: Define, mode: Any) -> None:
    cat = define(
        "RegCat",
        "(Tensor[] tensors, int dim=0) -> Tensor",
        lambda tensors, dim=0: torch.cat(tensors, dim),
        meta=lambda tensors, dim=0: torch.cat(tensors, dim),
    )
    a, b = npu(2, 3), npu(1, 3)
    assert torch.equal(mode(lambda a, b: cat.overload([a, b, a]))(a, b).cpu(), torch.cat([a, b, a]).cpu())


@pytest.mark.parametrize("mode", MODES)
def test_dynamic_outputs(define: Define, mode: Any) -> None:
    split = define(
        "RegSplit",
        "(Tensor x, int num) -> Tensor[]",
        lambda x, num: [part.clone() for part in x.chunk(num)],
        meta=lambda x, num: [torch.empty_like(part) for part in x.chunk(num)],
    )
    x = npu(6, 2)
    made = mode(lambda x: split.overload(x, 3))(x)
    assert [part.cpu().tolist() for part in made] == [part.cpu().tolist() for part in x.chunk(3)]


@pytest.mark.parametrize("mode", MODES)
def test_outputs_by_name_and_dropped(define: Define, mode: Any) -> None:
    swapped = define(
        "RegTwo", "(Tensor x) -> (Tensor high, Tensor low)", lambda x: _two(x)[::-1], shape="x[*s] -> high[*s], low[*s]"
    )
    high, low = mode(swapped.overload)(npu(3))
    assert torch.equal(high.cpu(), low.cpu() + 2)
    torch._dynamo.reset()
    one = define(
        "RegTwo", "(Tensor x) -> Tensor", lambda x: _two(x)[1], arguments={"->": "high"}, shape="x[*s] -> high[*s]"
    )
    assert one.binding.dropped == (0,)
    assert torch.equal(mode(one.overload)(npu(3)).cpu(), npu(3).cpu() + 1)


# ------------------------------------------------------------------------------------------------------------- in-place


def in_place(total: torch.Tensor, x: torch.Tensor) -> None:
    total.add_(x)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("op_type", ["RegAccumulate", "RegSum"])
def test_schema_writes(define: Define, mode: Any, op_type: str) -> None:
    """Tensor(a!), with a prototype that writes its input and with one that does not: the caller's tensor changes."""
    op = define(op_type, "(Tensor(a!) total, Tensor x) -> ()", in_place)

    def step(total: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        op.overload(total, x)
        op.overload(total, x)
        return total * 2

    total, x = npu(4), npu(4)
    result = mode(step)(total, x)
    assert torch.equal(total.cpu(), 3 * x.cpu())
    assert torch.equal(result.cpu(), 6 * x.cpu())


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("op_type", ["RegAccumulate", "RegSum"])
def test_schema_writes_and_returns(define: Define, mode: Any, op_type: str) -> None:
    """torch does not functionalize an operator that returns what it writes; here it does, and the argument changes."""
    op = define(op_type, "(Tensor(a!) total, Tensor x) -> Tensor(a!)", lambda total, x: total.add_(x))

    def step(total: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return op.overload(op.overload(total, x), x) * 2

    total, x = npu(4), npu(4)
    result = mode(step)(total, x)
    assert torch.equal(total.cpu(), 3 * x.cpu())
    assert torch.equal(result.cpu(), 6 * x.cpu())
    op.unregister()
    total = npu(4)
    assert op.overload(total, x) is total
    assert torch.equal(total.cpu(), 2 * x.cpu())


@pytest.mark.parametrize("mode", MODES)
def test_schema_writes_a_view(define: Define, mode: Any) -> None:
    op = define("RegAccumulate", "(Tensor(a!) total, Tensor x) -> ()", in_place)

    def step(total: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        op.overload(total[0], x)
        return total + 0

    total, x = npu(2, 4), npu(4)
    expected = total.cpu().clone()
    expected[0] += x.cpu()
    result = mode(step)(total, x)
    assert torch.equal(total.cpu(), expected)
    assert torch.equal(result.cpu(), expected)


@pytest.mark.parametrize("mode", MODES)
def test_only_the_prototype_writes(define: Define, mode: Any) -> None:
    op = define(
        "RegAccumulate",
        "(Tensor total, Tensor x) -> Tensor",
        lambda total, x: total + x,
        shape="total[*s], x[*s] -> total[*s]",
    )
    total, x = npu(4), npu(4)
    result = mode(op.overload)(total, x)
    assert torch.equal(total.cpu(), npu(4).cpu()), "the caller's tensor stays"
    assert torch.equal(result.cpu(), 2 * x.cpu())


# --------------------------------------------------------------------------------------------------------------- dtypes


@pytest.mark.parametrize("mode", MODES)
def test_promotion(define: Define, mode: Any) -> None:
    op = define(
        "RegAdd",
        "(Tensor self, Tensor other) -> Tensor",
        torch.add,
        arguments={"other": "x2"},
        shape="x1[...], x2[...] -> y[...]: promote(x1, x2)",
    )
    a, b = npu(3, dtype=torch.float16), npu(3)
    result = mode(op.overload)(a, b)
    assert result.dtype == torch.float32
    assert torch.equal(result.cpu(), 2 * b.cpu())


def test_a_dtype_that_the_prototype_forbids(define: Define) -> None:
    op = define(
        "RegAdd",
        "(Tensor self, Tensor other) -> Tensor",
        torch.add,
        arguments={"other": "x2"},
        shape="x1[...], x2[...] -> y[...]",
    )
    x = npu(3).to(torch.int64)
    with pytest.raises(Exception, match=r"input x1 is DT_INT64; allowed are DT_FLOAT, DT_FLOAT16, DT_INT32") as caught:
        ge(lambda x: op.overload(x, x))(x)
    chain = []
    error: BaseException | None = caught.value
    while error is not None:
        chain.append(error)
        error = error.__cause__ or error.__context__
    assert any(isinstance(error, ConversionError) for error in chain)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_dtype_arguments(define: Define, mode: Any, dtype: torch.dtype) -> None:
    op = define(
        "RegCastTo",
        "(Tensor x, ScalarType dtype) -> Tensor",
        lambda x, dtype: x.to(dtype, copy=True),
        shape="x[*s] -> y[*s]: dtype",
    )
    result = mode(lambda x: op.overload(x, dtype))(npu(3))
    assert result.dtype == dtype
    assert result.tolist() == [1, 2, 3]


@pytest.mark.parametrize("mode", MODES)
def test_a_dtype_that_is_a_choice_of_the_kernel_is_taken(define: Define, mode: Any) -> None:
    op = define(
        "RegWeigh",
        "(Tensor x, ScalarType acc_type) -> Tensor",
        lambda x, acc_type: x * {torch.float16: 1, torch.bfloat16: 27}[acc_type],
        shape="x[*s] -> y[*s]",
    )
    assert mode(lambda x: op.overload(x, torch.bfloat16))(npu(3)).tolist() == [27, 54, 81]


def test_a_dtype_that_no_output_has_is_refused(define: Define) -> None:
    op = define(
        "RegCastTo",
        "(Tensor x, ScalarType dtype) -> Tensor",
        lambda x, dtype: x.to(dtype, copy=True),
        shape="x[*s] -> y[*s]: dtype",
    )
    with pytest.raises(Exception, match="return 0 is DT_INT32 by the meta function"):
        ge(lambda x: op.overload(x, torch.int32))(npu(3))


# ----------------------------------------------------------------------------------------------------------- gradients


@pytest.mark.parametrize("unused", [0, 1])
@pytest.mark.parametrize("mode", MODES)
def test_an_output_without_a_gradient_gets_zeros(define: Define, mode: Any, unused: int) -> None:
    op = define(
        "RegTwo",
        "(Tensor x) -> (Tensor low, Tensor high)",
        _two,
        shape="x[*s] -> low[*s], high[*s]",
        backward=lambda ctx, low, high: low * 2 + high * 3,
    )
    x = npu(2, 3).requires_grad_()
    # npugraph_ex refuses a graph in which constants, as PyTorch's own zeros, meet tensors.
    mode(lambda x: op.overload(x)[1 - unused] * 5)(x).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [[(3, 2)[unused] * 5.0] * 3] * 2


def test_a_gradient_may_ask_for_no_zeros(define: Define) -> None:
    seen = []

    def backward(ctx: Any, low: Any, high: Any) -> Any:
        seen.append((low, high))
        return low

    op = define(
        "RegTwo",
        "(Tensor x) -> (Tensor low, Tensor high)",
        _two,
        shape="x[*s] -> low[*s], high[*s]",
        backward=(backward, lambda ctx, inputs, output: ctx.set_materialize_grads(False)),
    )
    op.overload(npu(2).requires_grad_())[0].sum().backward()
    ((low, high),) = seen
    assert low is not None
    assert high is None


# ------------------------------------------------------------------------------------------------- numbers that are
# inputs


@pytest.mark.parametrize("mode", MODES)
def test_a_list_of_ints_for_an_input(define: Define, mode: Any) -> None:
    op = define(
        "RegExpand",
        "(Tensor x, SymInt[] shape) -> Tensor",
        lambda x, shape: x.expand(shape).clone(),
        meta=lambda x, shape: x.new_empty(shape),
    )
    result = mode(lambda x: op.overload(x, [4, 3]))(npu(3))
    assert torch.equal(result.cpu(), npu(3).cpu().expand(4, 3))


def test_symbolic_sizes_for_an_input(define: Define) -> None:
    op = define(
        "RegExpand",
        "(Tensor x, SymInt[] shape) -> Tensor",
        lambda x, shape: x.expand(shape).clone(),
        meta=lambda x, shape: x.new_empty(shape),
    )
    torch._dynamo.utils.counters.clear()
    compiled = ge(lambda x, like: op.overload(x, [like.shape[0], like.shape[1]]), dynamic=True)
    for n in (4, 7):
        assert compiled(npu(1, 1), npu(n, 3)).shape == (n, 3)
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1


@pytest.mark.parametrize("mode", MODES)
def test_a_number_for_an_input(define: Define, mode: Any) -> None:
    op = define(
        "RegAdd", "(Tensor self, Scalar other) -> Tensor", torch.add, arguments={"other": "x2"}, shape="x1[*s] -> y[*s]"
    )
    for dtype in (torch.float32, torch.float16, torch.int32):
        torch._dynamo.reset()
        result = mode(lambda x: op.overload(x, 2))(npu(3, dtype=dtype))
        assert result.dtype == dtype
        assert result.tolist() == [3, 4, 5]


#: Libraries that stay: PyTorch cannot forget two overloads with equal arguments (functional_variant.py says how).
_kept: list[torch.library.Library] = []


@pytest.mark.parametrize(
    ("calls", "refused"),
    [
        (".DYNAMIC_INPUT(x, {t}).INPUT(x1, {t})", "x1 is a name of its own in REG_OP: rename x1 or x there"),
        (".DYNAMIC_INPUT(x, {t}).INPUT(x01, {t}).INPUT(xs1, {t})", ""),
    ],
)
def test_a_tensor_of_a_list_has_a_name_of_its_own(calls: str, refused: str) -> None:
    op_type = "RegListRefused" if refused else "RegListTaken"
    header = f"REG_OP({op_type}){calls}.OUTPUT(y, {{t}}).OP_END_FACTORY_REG({op_type})"
    ascend_graph.load_prototypes(header.format(t="TensorType({DT_FLOAT})"))
    others = "x1[n]" if refused else "x01[n], xs1[n]"
    if refused:
        with pytest.raises(ConversionError, match=refused):
            ascend_graph.register_op(op_type, shape=f"x[i][n], {others} -> y[n]")
        assert not [op for op in ascend_graph.registered_ops() if op.op_type == op_type]
    else:
        ascend_graph.register_op(op_type, shape=f"x[i][n], {others} -> y[n]").unregister()


def test_names_that_run_together_are_operators_of_their_own() -> None:
    """``a_b::c_`` and ``a::b_c_`` are compiled as themselves, and so is each overload."""
    names = (("reg_a_b", "c_", ""), ("reg_a", "b_c_", ""), ("reg_a", "b_c_", "again"))
    libraries, made = [], []
    ascend_graph.load_prototypes(HEADER)
    try:
        for factor, (namespace, name, overload) in enumerate(names, 1):
            libraries.append(torch.library.Library(namespace, "FRAGMENT"))
            full_name = f"{name}.{overload}" if overload else name
            libraries[-1].define(f"{full_name}(Tensor(a!) total, Tensor x) -> Tensor(a!)")
            libraries[-1].impl(full_name, lambda total, x, factor=factor: total.add_(factor * x), "PrivateUse1")
            eager = getattr(getattr(getattr(torch.ops, namespace), name), overload or "default")
            made.append(ascend_graph.register_op("RegAccumulate", eager=eager))
        for factor, op in enumerate(made, 1):
            torch._dynamo.reset()
            compiled = torch.compile(lambda total, x, op=op: op.overload(total, x) * 2, backend="aot_eager")
            assert compiled(npu(4), npu(4)).tolist() == (npu(4).cpu() * 2 * (1 + factor)).tolist()
    finally:
        for op in made:
            op.unregister()
        _kept.extend(libraries)
        torch._dynamo.reset()
    # PyTorch's table of schemas has nothing of the functional variants, and can be read.
    assert not [s for s in torch._C._jit_get_all_schemas() if s.name.startswith("ascend_in_place_reg_a")]


@pytest.mark.parametrize("mode", MODES)
def test_outputs_passed_in_arguments_for_shapes_and_returns_that_are_computed(define: Define, mode: Any) -> None:
    def kernel(x: Any, rows: int, low: Any) -> Any:
        low.copy_(x - 1)
        return x + 1, x.clone()

    op = define(
        "RegTwo",
        "(Tensor x, int rows, Tensor(a!) low) -> (Tensor high, Tensor same)",
        kernel,
        arguments={"rows": "shape only", "->": ("high", lambda arguments: arguments["x"])},
        shape="x[n, d] -> high[rows, d], same[n, d] where rows == n",
    )
    page = ascend_graph.explain(op).as_dict()
    assert page["shape_only_arguments"] == ["rows"]
    assert [r["note"] for r in page["returns"]] == ["", "computed from the arguments"]

    def f(x: torch.Tensor) -> Any:
        low = torch.zeros_like(x)
        high, same = op.overload(x, 2, low)
        return low * 1, high, same * 2

    x = npu(2, 3)
    for made, expected in zip(mode(f)(x), f(x), strict=True):
        assert torch.equal(made.cpu(), expected.cpu())


def test_with_a_converter_of_ones_own_names_need_not_fit(define: Define) -> None:
    def convert(a: Any, k: int, *, meta_outputs: Any = None) -> Any:
        return ascend_graph.raw_ops.RegTwo(a)[k]

    op = define(
        "RegTwo",
        "(Tensor a, int k) -> Tensor",
        lambda a, k: _two(a)[k],
        meta=lambda a, k: torch.empty_like(a),
        converter=convert,
    )
    assert op.binding.returns[0].output is None
    x = npu(2, 3)
    assert torch.equal(ge(lambda x: op.overload(x, 1))(x).cpu(), x.cpu() + 1)


def test_named_returns_have_their_outputs_whatever_the_order_of_the_relation(define: Define) -> None:
    schema = "(Tensor x) -> (Tensor low, Tensor high)"
    op = define("RegTwo", schema, lambda x: _two(x), shape="x[*s] -> high[*s], low[*s]")
    x = npu(2, 3)
    for got, expected in zip(ge(lambda x: op.overload(x))(x), op.overload(x), strict=True):
        assert torch.equal(got, expected)


def test_what_is_left_unsaid_is_warned_of(define: Define) -> None:
    schema, shape = "(Tensor x, float factor, *, Tensor? shift=None) -> Tensor", "x[*s] -> y[*s]"
    line = r"Write: arguments=\{'shift': …\}, or \{'shift': None\} if it stays at None"
    with pytest.warns(ascend_graph.BindingWarning, match=line) as caught:
        op = define("RegScale", schema, lambda x, factor, *, shift=None: x * factor, shape=shape)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert "goes nowhere" in str(ascend_graph.explain(op))
