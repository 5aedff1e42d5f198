"""opcheck against an operator that is right, and against the same operator made wrong in one way after another."""

from __future__ import annotations

import ctypes
import json
import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any
from xml.etree import ElementTree

import pytest
import torch

import ascend_graph
from ascend_graph.checks.calls.samples import Sample, SampleError, SampleGenerator
from ascend_graph.checks.kinds.subject import Faulted, Subject
from ascend_graph.checks.opcheck import ALONE, CHECKS, opcheck
from ascend_graph.checks.report import CheckError, CheckReport, CheckResult, CheckState, junit
from ascend_graph.host.kernels import host_kernel

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import torch_npu  # noqa: F401 - torchair can only be imported after it
    import torchair  # noqa: F401

pytestmark = pytest.mark.filterwarnings("ignore")  # compiling warns of much that is torch's and torchair's own affair

HEADER = """
REG_OP(ChkScale)
    .INPUT(x, TensorType({DT_FLOAT, DT_FLOAT16}))
    .OPTIONAL_INPUT(bias, TensorType({DT_FLOAT, DT_FLOAT16}))
    .OUTPUT(y, TensorType({DT_FLOAT, DT_FLOAT16}))
    .ATTR(factor, Float, 2.0)
    .ATTR(negate, Bool, false)
    .OP_END_FACTORY_REG(ChkScale)

REG_OP(ChkScaleGrad)
    .INPUT(dy, TensorType({DT_FLOAT, DT_FLOAT16}))
    .OUTPUT(dx, TensorType({DT_FLOAT, DT_FLOAT16}))
    .ATTR(factor, Float, 2.0)
    .ATTR(negate, Bool, false)
    .OP_END_FACTORY_REG(ChkScaleGrad)

REG_OP(ChkProduct)
    .INPUT(a, TensorType({DT_FLOAT, DT_FLOAT16}))
    .INPUT(b, TensorType({DT_FLOAT, DT_FLOAT16}))
    .OUTPUT(y, TensorType({DT_FLOAT, DT_FLOAT16}))
    .OP_END_FACTORY_REG(ChkProduct)

REG_OP(ChkSpread)
    .INPUT(x, TensorType({DT_FLOAT, DT_FLOAT16}))
    .INPUT(w, TensorType({DT_FLOAT, DT_FLOAT16}))
    .OUTPUT(y, TensorType({DT_FLOAT, DT_FLOAT16}))
    .OUTPUT(norm, TensorType({DT_FLOAT}))
    .ATTR(weight, Float, 0.5)
    .ATTR(want, Bool, false)
    .OP_END_FACTORY_REG(ChkSpread)
"""
#: A declaration that is checked with calls of ones when it is registered.
of_rows: dict[str, Any] = {"batch": ("s",), "samples": [((torch.ones(n, 2),), {}) for n in (2, 3, 4)]}
SCHEMA = "scale(Tensor x, Tensor? bias=None, *, float factor=2.0, bool negate=False) -> Tensor"
RELATION = "x[*s, n]: T, bias[n]: T -> y[*s, n]"


def refuse_dtypes(x: Any, bias: Any) -> None:
    for tensor in (x, bias):
        if tensor is not None and tensor.dtype not in (torch.float32, torch.float16):
            raise TypeError(f"{tensor.dtype} is not float32 or float16")


def scale(x: Any, bias: Any = None, *, factor: float = 2.0, negate: bool = False) -> Any:
    """What the operator is."""
    refuse_dtypes(x, bias)
    y = x * (-factor if negate else factor)
    return y if bias is None else y + bias


#: The kernel of graphs, which tests exchange.
graph_kernel: dict[str, Callable[..., Any]] = {"scale": scale}


@host_kernel("ChkScale")
def _graph_scale(x, bias=None, *, factor=2.0, negate=False):
    return graph_kernel["scale"](x, bias, factor=factor, negate=negate)


@host_kernel("ChkScaleGrad")
def _graph_scale_grad(dy, *, factor=2.0, negate=False):
    return dy * (-factor if negate else factor)


class Operator:
    """Defines and registers the operator, with one piece or another exchanged."""

    def __init__(self, number: int) -> None:
        self.namespace = f"chk{number}"
        self.library = torch.library.Library(self.namespace, "DEF")
        self.registered: Any = None

    def make(self, kernel: Callable[..., Any] = scale, schema: str = SCHEMA, **options: Any) -> Any:
        self.library.define(schema)
        self.library.impl("scale", kernel, "PrivateUse1")
        overload = getattr(torch.ops, self.namespace).scale
        if "meta" not in options:
            options.setdefault("shape", RELATION)
        self.registered = ascend_graph.register_op("ChkScale", eager=overload, **options)
        return self.registered

    def close(self) -> None:
        if self.registered is not None:
            self.registered.unregister()
        self.library._destroy()


_number = iter(range(10_000))


@pytest.fixture(scope="module", autouse=True)
def _prototypes() -> None:
    ascend_graph.load_prototypes(HEADER)


@pytest.fixture
def operator() -> Iterator[Operator]:
    made = Operator(next(_number))
    yield made
    made.close()


def gradient(ctx: Any, dy: Any) -> Any:
    attrs = ctx.arguments
    return dy * (-attrs["factor"] if attrs["negate"] else attrs["factor"]), dy.reshape(-1, dy.shape[-1]).sum(0)


def states(report: CheckReport) -> dict[str, CheckState]:
    return {o.check: o.state for o in report.outcomes}


def test_what_is_right_passes(operator: Operator) -> None:
    found = opcheck(operator.make(backward=gradient, batch=("s",)), reference=scale)
    asked = states(found)
    assert asked.pop("waits") is CheckState.SKIPPED  # the kernel is written in Python
    assert asked == dict.fromkeys([name for name in (*CHECKS, *ALONE) if name != "waits"], CheckState.PASSED)
    assert min(o.calls for o in found.outcomes if o.check != "waits") > 0
    assert found.notes == ()


def test_without_a_gradient_or_a_reference_these_are_not_checked(operator: Operator) -> None:
    found = states(opcheck(operator.make(), count=2))
    assert {name for name, state in found.items() if state is CheckState.SKIPPED} == {
        "waits",
        "reference",
        "vmap",
        "sharding",
        "gradient",
        "gradient_in_graphs",
    }


def test_a_custom_op_without_a_gradient_is_not_a_failure() -> None:
    @torch.library.custom_op("chkcustom::double", mutates_args=(), device_types="npu")
    def double(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    double.register_fake(torch.empty_like)
    checks = ["gradient", "gradient_in_graphs"]
    report = opcheck(torch.ops.chkcustom.double, [(torch.ones(3),)], checks=checks)
    assert set(states(report).values()) == {CheckState.SKIPPED}
    assert "no autograd formula was registered" in (report.outcomes[0].message or "")


# ------------------------------------------------------------------------------------------------------ planted faults


def eager(change: Callable[..., Any]) -> dict[str, Any]:
    """A kernel that calls the right one through ``change(right, x, bias, factor, negate)``."""

    def kernel(x: Any, bias: Any = None, *, factor: float = 2.0, negate: bool = False) -> Any:
        refuse_dtypes(x, bias)
        return change(lambda: scale(x, bias, factor=factor, negate=negate), x, bias, factor, negate)

    return {"kernel": kernel}


def in_graphs(kernel: Callable[..., Any]) -> dict[str, Any]:
    return {"graph": kernel}


def metas(function: Callable[..., Any]) -> dict[str, Any]:
    return {"meta": lambda x, bias=None, *, factor=2.0, negate=False: function(x, bias)}


def backwards(function: Callable[..., Any]) -> dict[str, Any]:
    return {"backward": function}


def poke(address: int) -> None:
    ctypes.memset(address, 0x11, 4)


def writes_behind(right: Any, x: Any, *_: Any) -> Any:
    y = right()
    if y.numel():
        poke(y.data_ptr() + y.untyped_storage().nbytes())
    return y


def writes_before(right: Any, x: Any, *_: Any) -> Any:
    if x.storage_offset():
        poke(x.data_ptr() - 4)
    return right()


def skips_the_last(right: Any, *_: Any) -> Any:
    whole = right()
    y = torch.empty_like(whole)
    y.view(-1)[:-1] = whole.view(-1)[:-1]
    return y


def reads_as_contiguous(right: Any, x: Any, bias: Any, factor: float, negate: bool) -> Any:
    strides = torch.empty(x.shape, device="meta").stride()
    return scale(x.as_strided(x.shape, strides), bias, factor=factor, negate=negate)


def wants_contiguous(right: Any, x: Any, *_: Any) -> Any:
    if not x.is_contiguous():
        raise RuntimeError("x must be contiguous")
    return right()


def writes(tensor: str) -> Callable[..., Any]:
    def change(right: Any, x: Any, bias: Any, *_: Any) -> Any:
        y = right()
        target = {"x": x, "bias": bias}[tensor]
        if target is not None:
            target.mul_(3)
        return y

    return change


def counts() -> Callable[..., Any]:
    calls = iter(range(1_000_000))
    return lambda right, *_: right() + next(calls)


def half_in_steps(right: Any, x: Any, *_: Any) -> Any:
    return (right() * 16).round() / 16 if x.dtype is torch.float16 else right()


def without_bias(right: Any, x: Any, bias: Any, factor: float, negate: bool) -> Any:
    return torch.zeros_like(x) if bias is None else right()


def drops_the_attr(
    x: Any, bias: Any = None, *, factor: float = 2.0, negate: bool = False, meta_outputs: Any = None
) -> Any:
    """A converter."""
    return ascend_graph.raw_ops.ChkScale(x, bias, factor=factor)


def drops_the_bias(
    x: Any, bias: Any = None, *, factor: float = 2.0, negate: bool = False, meta_outputs: Any = None
) -> Any:
    return ascend_graph.raw_ops.ChkScale(x, None, factor=factor, negate=negate)


def raises(*_: Any, **__: Any) -> Any:
    raise RuntimeError("not written yet")


def wants_static_sizes(
    x: Any, bias: Any = None, *, factor: float = 2.0, negate: bool = False, meta_outputs: Any = None
) -> Any:
    if any(size == -1 or not isinstance(size, int) for size in x.symsize):
        raise RuntimeError("sizes must be known")
    return ascend_graph.raw_ops.ChkScale(x, bias, factor=factor, negate=negate)


#: A name, what is exchanged, and the checks of which one must find it.
PLANTED: dict[str, tuple[dict[str, Any], str]] = {
    # The kernel computes something else.
    "wrong factor": (
        eager(lambda right, x, bias, factor, negate: scale(x, bias, factor=2 * factor, negate=negate)),
        "reference",
    ),
    "forgets an attr": (eager(lambda right, x, bias, factor, negate: scale(x, bias, factor=factor)), "reference"),
    "forgets an input": (
        eager(lambda right, x, bias, factor, negate: scale(x, factor=factor, negate=negate)),
        "reference",
    ),
    "an absent input is zero": (eager(without_bias), "reference"),
    "half precision in steps": (eager(half_in_steps), "reference"),
    "large tensors": (eager(lambda right, x, *_: right() + (x.numel() > 30)), "reference"),
    "several tiles": (eager(lambda right, x, *_: right() + (x.numel() > 500_000)), "large"),
    "a last element of several tiles": (
        eager(lambda right, x, *_: skips_the_last(right) if x.numel() > 100_000 else right()),
        "large",
    ),
    "a part of a tile after whole ones in each row": (
        eager(lambda right, x, *_: right() + (x.dim() > 1 and x.shape[-1] > 2048 and x.shape[-1] % 1024 != 0)),
        "large",
    ),
    "sizes of 1": (eager(lambda right, x, *_: right() + (1 in x.shape)), "reference"),
    "rank 1": (eager(lambda right, x, *_: right() + (x.dim() == 1)), "reference"),
    # The kernel returns something else.
    "wrong shape": (eager(lambda right, *_: right().unsqueeze(0)), "meta"),
    "wrong shape of empty tensors": (
        eager(lambda right, x, *_: right() if x.numel() else right().new_empty(0)),
        "meta",
    ),
    "wrong dtype": (eager(lambda right, *_: right().double()), "meta"),
    "wrong dtype in half": (eager(lambda right, *_: right().float()), "meta"),
    "transposed strides": (eager(lambda right, *_: right().transpose(0, -1).contiguous().transpose(0, -1)), "meta"),
    # Memory.
    "returns its input": (eager(lambda right, x, *_: x), "arguments"),
    "returns a view": (eager(lambda right, x, *_: x.view(x.shape)), "arguments"),
    "returns its input where it may": (
        eager(lambda right, x, b, factor, n: x if factor == 1.0 and not n and b is None else right()),
        "arguments",
    ),
    "writes x": (eager(writes("x")), "arguments"),
    "writes an optional input": (eager(writes("bias")), "arguments"),
    "resizes x": (eager(lambda right, x, *_: (right(), x.resize_(1))[0]), "arguments"),
    "never written": (eager(lambda right, x, *_: torch.empty_like(x)), "repeats"),
    "the last element is not written": (eager(skips_the_last), "repeats"),
    "reads what is not written": (eager(lambda right, x, *_: right() + torch.empty_like(x)), "repeats"),
    "random": (eager(lambda right, x, *_: right() + torch.rand(1).to(x)), "repeats reference"),
    "state between calls": (eager(counts()), "repeats"),
    "writes behind its output": (eager(writes_behind), "outside"),
    "writes before its input": (eager(writes_before), "outside"),
    "strides are ignored": (eager(reads_as_contiguous), "layout"),
    "offsets are ignored": (
        eager(
            lambda right, x, b, factor, negate: scale(
                x.as_strided(x.shape, x.stride(), 0), b, factor=factor, negate=negate
            )
        ),
        "outside",
    ),
    "only contiguous": (eager(wants_contiguous), "layout"),
    "any dtype": (
        {
            "kernel": lambda x, bias=None, *, factor=2.0, negate=False: (
                x * (-factor if negate else factor) + (0 if bias is None else bias)
            ).to(x.dtype)
        },
        "dtypes",
    ),
    # The meta function.
    "meta: shape": (metas(lambda x, bias: x.new_empty(x.shape[:-1])), "meta"),
    "meta: dtype": (metas(lambda x, bias: torch.empty_like(x, dtype=torch.float32)), "meta"),
    "meta: dtype with bias": (
        metas(lambda x, bias: torch.empty_like(x, dtype=x.dtype if bias is None else torch.int32)),
        "meta",
    ),
    "meta: strides": (
        metas(lambda x, bias: torch.empty_like(x.transpose(0, -1).contiguous()).transpose(0, -1)),
        "meta",
    ),
    "meta: alias": (metas(lambda x, bias: x), "meta"),
    "meta: device": (metas(lambda x, bias: torch.empty_like(x, device="cpu")), "meta"),
    "meta: refuses a rank": (metas(lambda x, bias: torch.empty_like(x) if x.dim() > 1 else raises()), "meta"),
    "meta: asks for a size": (metas(lambda x, bias: x.new_empty([int(n) for n in x.shape])), "recompilations"),
    "meta: another shape for one size": (
        metas(lambda x, bias: x.new_empty((0,)) if x.shape[-1] == 7 else torch.empty_like(x)),
        "meta",
    ),
    # Graphs.
    "graph: other values": (
        in_graphs(lambda x, bias, factor, negate: scale(x, bias, factor=factor + 1, negate=negate)),
        "ge",
    ),
    "graph: no bias": (in_graphs(lambda x, bias, factor, negate: scale(x, factor=factor, negate=negate)), "ge"),
    "graph: an attr forgotten": ({"converter": drops_the_attr}, "ge"),
    "graph: an input forgotten": ({"converter": drops_the_bias}, "ge"),
    "graph: no converter": ({"converter": raises}, "ge"),
    "graph: static sizes alone": ({"converter": wants_static_sizes}, "ge_dynamic"),
    "capture: waits for the device": (eager(lambda right, x, *_: right() + 0 * x.cpu().sum().to(x)), "npugraph_ex"),
    "capture: a value is kept": (eager(lambda right, x, *_: right() + 0 * float(x.sum())), "npugraph_ex"),
    # Parts: registering has looked at calls of ones alone.
    "parts: rows depend on others": (eager(lambda right, x, *_: right() + x.max() - 1) | of_rows, "sharding"),
    "parts: a row alone is refused": (
        eager(lambda right, x, *_: right() if x.numel() == 0 or x.size(0) > 1 or bool((x == 1).all()) else x @ x)
        | of_rows,
        "sharding",
    ),
    # Gradients.
    "gradient: sign": (backwards(lambda ctx, dy: tuple(-g for g in gradient(ctx, dy))), "gradient"),
    "gradient: factor": (backwards(lambda ctx, dy: (dy, gradient(ctx, dy)[1])), "gradient"),
    "gradient: none of bias": (backwards(lambda ctx, dy: (gradient(ctx, dy)[0], None)), "gradient"),
    "gradient: not summed": (
        backwards(lambda ctx, dy: (gradient(ctx, dy)[0], dy.reshape(-1, dy.shape[-1])[0])),
        "gradient",
    ),
}


def planted_report(operator: Operator, name: str, *, every: bool = False) -> CheckReport:
    """The report on an operator with a planted fault, by the checks that must find it or by every check."""
    change, wanted = PLANTED[name]
    options = {"backward": gradient, **change}
    graph_kernel["scale"] = options.pop("graph", scale)
    samples: list[Any] | None = None
    if "meta" in options:  # there is no relation that calls could be drawn from
        shapes = [(4,), (2, 3, 7), (3, 5), (4, 6), (8, 9)]
        samples = [Sample((torch.randn(shape), bias)) for shape in shapes for bias in (None, torch.randn(shape[-1]))]
        samples += [(torch.randn(2, 3).half(),)]
    if "gradient" not in wanted:
        del options["backward"]
    try:
        checks = None if every else wanted.split()
        return opcheck(operator.make(**options), samples, reference=scale, checks=checks, raise_exception=False)
    finally:
        graph_kernel["scale"] = scale


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_found(operator: Operator, name: str) -> None:
    report = planted_report(operator, name)
    assert not report.ok, f"{PLANTED[name][1]} does not find it"
    assert all(o.message and o.sample for o in report.failures)


def test_no_graph_is_compiled_after_a_write_outside_a_tensor(operator: Operator) -> None:
    """The memory of the process may be damaged: a graph would end it, and the report with it."""
    report = planted_report(operator, "writes behind its output", every=True)
    outcomes = {one.check: one for one in report.outcomes}
    assert outcomes["outside"].state is CheckState.FAILED
    assert outcomes["ge"].message == "not made after a write outside a tensor, which may end the process"


def in_turn(info: Any, in_dims: Any, x: Any, bias: Any = None, **attrs: Any) -> Any:
    """A right rule for torch.vmap."""
    parts = [x.select(in_dims[0], n) if in_dims[0] is not None else x for n in range(info.batch_size)]
    biases = [
        bias if bias is None or in_dims[1] is None else bias.select(in_dims[1], n) for n in range(info.batch_size)
    ]
    return torch.stack([scale(p, b, **attrs) for p, b in zip(parts, biases, strict=True)]), 0


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (in_turn, ""),
        (lambda *given, **attrs: (in_turn(*given, **attrs)[0], 1), "call 0, against a call of its own"),
        (lambda *given, **attrs: (in_turn(*given, **attrs)[0].flip(0), 0), "call 0, against a call of its own"),
        (lambda info, dims, x, bias=None, **attrs: (scale(x, bias, **attrs), 0), "over all tensors, call"),
        (lambda *_, **__: 1 / 0, "its rule for torch.vmap refuses what the operator takes: ZeroDivisionError"),
    ],
    ids=["right", "another dimension", "another order", "bias of the first call", "raises"],
)
def test_a_rule_for_vmap_is_judged(operator: Operator, rule: Callable[..., Any], message: str) -> None:
    registered = operator.make()
    torch.library.register_vmap(registered.overload, rule, lib=operator.library)
    report = opcheck(registered, [(torch.randn(2, 2), torch.randn(2))], checks=["vmap"], raise_exception=False)
    assert report.ok is (not message)
    assert message in (report.outcomes[0].message or "")


def test_shards_are_held_against_the_whole(operator: Operator) -> None:
    def centered_where_negated(x: Any, bias: Any = None, *, factor: float = 2.0, negate: bool = False) -> Any:
        return scale(x - x.mean() if negate else x, bias, factor=factor, negate=negate)

    x = torch.randn(6, 4)
    seen = [((x,), {"negate": False})]  # of a mode in which the rows are independent
    registered = operator.make(kernel=centered_where_negated, batch=("s",), samples=seen)
    assert opcheck(registered, [Sample((x,), {"negate": False})], checks=["sharding"]).ok
    report = opcheck(registered, [Sample((x,), {"negate": True})], checks=["sharding"], raise_exception=False)
    assert "with x sharded on 0, put together against the whole" in (report.failures[0].message or "")


@pytest.mark.parametrize(
    ("kernel", "dtype", "message"),
    [
        (torch.matmul, torch.float32, ""),
        (torch.matmul, torch.float16, ""),
        (
            lambda a, b: a @ b / a.shape[-1],
            torch.float32,
            "with a sharded on 1, b sharded on 0, put together against the whole: return 0: ",
        ),
    ],
    ids=["float32", "float16", "mean"],
)
def test_parts_that_are_added_are_judged(kernel: Callable[..., Any], dtype: torch.dtype, message: str) -> None:
    with torch.library._scoped_library("chkproduct", "DEF") as library:
        library.define("product(Tensor a, Tensor b) -> Tensor")
        library.impl("product", kernel, "PrivateUse1")
        registered = ascend_graph.register_op(
            "ChkProduct",
            eager=torch.ops.chkproduct.product,
            shape="a[m, k]: T, b[k, n]: T -> y[m, n]",
            batch=("m", "n"),
            reduce=("k",),
            samples=[((torch.zeros(2, 4), torch.zeros(4, 2)), {})],
        )
        try:
            drawn = torch.Generator().manual_seed(0)
            a, b = torch.randn(30, 1024, generator=drawn).to(dtype), torch.randn(1024, 50, generator=drawn).to(dtype)
            (found,) = opcheck(registered, [(a, b)], checks=["sharding"], raise_exception=False).outcomes
        finally:
            registered.unregister()
    assert (found.state is CheckState.PASSED) is (not message), found
    assert message in found.message


@pytest.mark.parametrize("in_eager_mode", [False, True])
def test_a_gradient_that_is_wrong_in_graphs_alone_is_found(operator: Operator, in_eager_mode: bool) -> None:
    def by_mode(ctx: Any, dy: Any) -> Any:
        dx, bias = gradient(ctx, dy)
        in_graph = type(dy) is not torch.Tensor  # a tensor that is traced; torch 2.7 does not say here that it compiles
        wrong = in_graph is not in_eager_mode
        return (dx * 2 if wrong else dx), bias

    report = opcheck(operator.make(backward=by_mode), checks=["gradient_in_graphs"], raise_exception=False)
    assert [o.check for o in report.failures] == ["gradient_in_graphs"]


def test_gradients_are_compared_with_differences_where_there_is_no_reference(operator: Operator) -> None:
    def wrong(ctx: Any, dy: Any) -> Any:
        return dy, gradient(ctx, dy)[1]

    report = opcheck(operator.make(backward=wrong), checks=["gradient"], raise_exception=False)
    assert "along a random direction" in report.failures[0].message


def test_the_gradient_of_a_result_that_some_calls_have_is_checked() -> None:
    def spread(x: Any, w: Any, *, weight: float = 0.5, want: bool = False) -> Any:
        return weight * x + w, x.float().square().sum(-1) if want else None

    def of_y_alone(ctx: Any, dy: Any, dnorm: Any) -> Any:
        return dy * ctx.arguments["weight"], dy

    library = torch.library.Library("chk_absent", "DEF")
    library.define("spread(Tensor x, Tensor w, *, float weight=0.5, bool want=False) -> (Tensor y, Tensor norm)")
    library.impl("spread", spread, "PrivateUse1")
    registered = ascend_graph.register_op(
        "ChkSpread",
        eager=torch.ops.chk_absent.spread,
        shape="x[*s, d], w[*s, d] -> y[*s, d], norm[*s]: float32 if want else None",
        backward=of_y_alone,
    )
    try:
        report = opcheck(registered, reference=spread, checks=["gradient"], raise_exception=False)
    finally:
        registered.unregister()
        library._destroy()
    assert [one.check for one in report.failures] == ["gradient"]
    assert "want=True" in report.failures[0].sample


# -------------------------------------------------------------------------------------------------- samples and reports


def test_the_smallest_call_is_shown(operator: Operator) -> None:
    wrong = eager(lambda right, x, *_: right() + (x.numel() > 1))
    report = opcheck(operator.make(**wrong), reference=scale, checks=["reference"], raise_exception=False)
    assert report.failures[0].sample.count("2") == 1 + 1  # of x, and the factor


def test_calls_that_are_refused_are_notes_and_all_of_them_an_error(operator: Operator) -> None:
    def flat_alone(right: Any, x: Any, *_: Any) -> Any:
        if x.dim() > 1:
            raise ValueError("x has one dimension")
        return right()

    op = operator.make(**eager(flat_alone))
    report = opcheck(op, checks=["arguments"])
    assert "ValueError: x has one dimension" in report.notes[0]
    with pytest.raises(SampleError, match="refuses each of 1 calls.*x has one dimension"):
        opcheck(op, [(torch.ones(2, 2),)])


def test_a_reference_that_judges_no_call_is_a_failure(operator: Operator) -> None:
    def broken(x: Any, *_: Any, **__: Any) -> Any:
        return x.no_such_method()

    op = operator.make()
    report = opcheck(op, reference=broken, checks=["reference"], raise_exception=False)
    assert "no call was judged: the reference refuses the call: AttributeError" in report.failures[0].message

    def some(x: Any, *rest: Any, **options: Any) -> Any:
        if x.dim() == 1:
            raise ValueError("not of one dimension")
        return scale(x, *rest, **options)

    given = [(torch.ones(2),), (torch.ones(2, 2),)]
    [outcome] = opcheck(op, given, reference=some, checks=["reference"]).outcomes
    assert outcome.calls == 1


def test_given_samples_and_operators_that_nobody_registered() -> None:
    with torch.library._scoped_library("chk_plain", "DEF") as library:
        library.define("twice(Tensor x, int times=2) -> Tensor")
        library.impl("twice", lambda x, times=2: x * times, "CompositeExplicitAutograd")
        op = torch.ops.chk_plain.twice
        given = [(torch.ones(3),), Sample((torch.ones(2),), {"times": 3})]
        report = opcheck(op, given, reference=lambda x, times=2: x * times, checks=["arguments", "reference", "layout"])
        assert [o.calls for o in report.outcomes] == [2, 2, 2]
        assert opcheck("chk_plain::twice", given, checks="repeats").ok
        with pytest.raises(SampleError, match="not registered with ascend_graph.*give samples="):
            opcheck(op)
        with pytest.raises(SampleError, match="unknown check 'meta_'; the checks are runs, waits, arguments"):
            opcheck(op, given, checks=["meta_"])
        with pytest.raises(SampleError, match="no call to check it with"):
            opcheck(op, [])
    with pytest.raises(SampleError, match="opcheck takes an operator"):
        opcheck(len)


def test_an_operator_without_a_relation_needs_samples(operator: Operator) -> None:
    op = operator.make(meta=lambda x, bias=None, *, factor=2.0, negate=False: torch.empty_like(x))
    with pytest.raises(SampleError, match="has no shape relation"):
        opcheck(op)
    assert opcheck(op, [(torch.ones(2, 3),)], checks=["meta", "ge"]).ok


def normalized(x: Any, bias: Any, *, factor: float = 2.0, negate: bool = False) -> Any:
    """As :func:`scale`, with a vector that always belongs to it: what no shape of an output depends on."""
    if tuple(bias.shape) != tuple(x.shape[-1:]):
        raise ValueError(f"bias has the shape {tuple(bias.shape)}")
    return scale(x, bias, factor=factor, negate=negate)


@pytest.mark.parametrize("given", [None, scale])
def test_an_input_that_the_relation_does_not_name_gets_the_shape_that_the_operator_takes(
    operator: Operator, given: Any
) -> None:
    required = SCHEMA.replace("Tensor? bias=None", "Tensor bias")
    report = opcheck(operator.make(normalized, required, shape="x[*s, n] -> y[*s, n]"), reference=given)
    assert report.ok
    note = "bias has the last dimension of x, which the operator takes; the relation does not state its shape"
    assert note in report.notes


def test_a_wrong_kernel_does_not_change_the_shape_that_an_input_is_taken_to_have(operator: Operator) -> None:
    """It takes a vector, too, and reads on after it: the shape with which it is right in most calls is the one."""

    def wrong(x: Any, bias: Any, *, factor: float = 2.0, negate: bool = False) -> Any:
        read = bias if bias.shape == x.shape else torch.full_like(x, 1e9)
        return scale(x, read, factor=factor, negate=negate) + (x.numel() > 300)

    required = SCHEMA.replace("Tensor? bias=None", "Tensor bias")
    operator.make(wrong, required, shape="x[*s, n] -> y[*s, n]")
    report = opcheck(operator.registered, reference=scale, checks=["reference", "large"], raise_exception=False)
    assert "bias has the shape of x, which the operator takes; the relation does not state its shape" in report.notes
    assert not report.ok


def test_an_optional_input_with_which_each_call_breaks_a_rule_is_a_failure(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was absent in all calls, and the operator passed."""
    run = Subject.run

    def faults(subject: Subject, sample: Sample) -> Any:
        if len(sample.args) > 1 and sample.args[1] is not None:
            raise Faulted(f"error 507015: block 0 of {len(sample.tensors)}: tiling key 2 is not one of the kernel's")
        return run(subject, sample)

    monkeypatch.setattr(Subject, "run", faults)
    operator.make(shape="x[*s, n] -> y[*s, n]")
    report = opcheck(operator.registered, reference=scale, checks=["reference"], raise_exception=False)
    assert [(o.check, o.state) for o in report.failures] == [("runs", CheckState.FAILED)]
    assert "tiling key 2" in report.failures[0].message
    assert (
        "bias has the last dimension of x, with which the operator fails as with each likely shape; the relation "
        "does not state its shape" in report.notes
    )


def test_a_kernel_that_fails_with_each_shape_is_said_to_in_its_own_words(operator: Operator) -> None:
    def fails(x: Any, bias: Any, **attrs: Any) -> Any:
        if bias.dim() == 0:
            raise ValueError("bias is a scalar")
        raise ValueError(f"{x.numel()} elements are in a queue at the end")

    required = SCHEMA.replace("Tensor? bias=None", "Tensor bias")
    operator.make(fails, required, shape="x[*s, n] -> y[*s, n]")
    with pytest.raises(
        SampleError, match=r"elements are in a queue at the end. Correct the kernel if it is wrong there"
    ):
        opcheck(operator.registered, reference=scale)


def test_an_optional_input_that_the_relation_does_not_name_is_drawn_too(operator: Operator) -> None:
    """A kernel that forgets it is found."""
    operator.make(lambda x, bias=None, **attrs: scale(x, None, **attrs), shape="x[*s, n] -> y[*s, n]")
    report = opcheck(operator.registered, checks=["repeats"])
    assert (
        "bias has the last dimension of x, which the operator takes; the relation does not state its shape"
        in report.notes
    )
    with pytest.raises(CheckError, match="reference"):
        opcheck(operator.registered, reference=scale, checks=["reference"])


def test_where_no_likely_shape_is_taken_the_relation_to_write_is_named(operator: Operator) -> None:
    def odd(x: Any, bias: Any, **attrs: Any) -> Any:
        if tuple(bias.shape) != (7, 11):
            raise ValueError(f"bias has the shape {tuple(bias.shape)}, and needs 7, 11")
        return x * 2

    required = SCHEMA.replace("Tensor? bias=None", "Tensor bias")
    operator.make(odd, required, shape="x[*s, n] -> y[*s, n]")
    with pytest.raises(SampleError, match=r"does not state the shape of bias.*and needs 7, 11.*has bias\[…\]"):
        opcheck(operator.registered)


def test_drawing_is_repeatable_and_covers_what_the_prototype_says(operator: Operator) -> None:
    drawer = SampleGenerator(operator.make(), seed=3)
    assert str(drawer.draw(0)) == str(SampleGenerator(operator.registered, seed=3).draw(0))
    assert drawer.optional() == ["bias"]
    assert drawer.combinations() == [dict.fromkeys(("x", "bias"), d) for d in (torch.float32, torch.float16)]
    two = [drawer.draw(1, values=n) for n in range(2)]
    assert [t.dim() for t in two[0].tensors] == [t.dim() for t in two[1].tensors]


def test_the_report_as_text_data_and_junit() -> None:
    report = CheckReport(
        "npu::op",
        (
            CheckResult("meta", CheckState.PASSED, 3, seconds=0.5),
            CheckResult("ge", CheckState.FAILED, 1, "return 0: [1] <&>\x00", "(x)", 1.0),
            CheckResult("export", CheckState.SKIPPED, message="nothing to do"),
        ),
        ("a note",),
    )
    text = str(report)
    for part in ("npu::op", "3 calls", "return 0: [1] <&>", "with (x)", "nothing to do", "note: a note"):
        assert part in text
    assert json.loads(json.dumps(report.as_dict()))["checks"][1]["state"] == "failed"
    suite = ElementTree.fromstring(junit([report])).find("testsuite")
    assert suite is not None
    assert [suite.attrib[name] for name in ("tests", "failures", "skipped")] == ["3", "1", "1"]
    assert [len(case) for case in suite] == [0, 1, 1]
    with pytest.raises(CheckError, match=r"npu::op\n  ge: return 0"):
        report.raise_on_failure()


def tangent(ctx: Any, dx: Any, dbias: Any, *, factor: float, negate: bool) -> Any:
    scaled = dx * (-factor if negate else factor)
    return scaled if dbias is None else scaled + dbias


def wrong_tangent(ctx: Any, dx: Any, dbias: Any) -> Any:
    return dx


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize("forward", [None, tangent, wrong_tangent])
def test_tangents_are_compared_with_differences(operator: Operator, forward: Any, alone: bool) -> None:
    if alone and forward is None:
        pytest.skip("an operator with neither has nothing to compare")
    registered = operator.make(forward=forward, backward=None if alone else gradient)
    (found,) = opcheck(registered, checks=["gradient"], raise_exception=False).outcomes
    if forward is wrong_tangent:
        assert "the tangent of forward mode along a random direction" in found.message
    else:
        assert found.state is CheckState.PASSED, found


KEPT = {"fill": "(Tensor(a!) x) -> ()", "join": "(Tensor(a!) out, Tensor[] xs, Tensor index) -> ()"}


def fill(x: Any) -> None:
    x.fill_(3.0)


def join(out: Any, xs: Any, index: Any) -> None:
    out[: index.numel()] = torch.cat(xs)


@pytest.fixture
def in_place() -> Iterator[Callable[..., Any]]:
    """Define an operator that returns nothing, register it with a relation and undo both."""
    kept: list[Any] = []

    def make(name: str, kernel: Callable[..., None], shape: str) -> Any:
        library = torch.library.Library("chk_in_place", "FRAGMENT")
        library.define(name + KEPT[name])
        library.impl(name, kernel, "PrivateUse1")
        op = ascend_graph.register_kernel(eager=getattr(torch.ops.chk_in_place, name), shape=shape)
        kept.extend((library, op))
        return op

    yield make
    for one in reversed(kept):
        one.unregister() if hasattr(one, "unregister") else one._destroy()


def test_an_operator_that_returns_nothing_is_checked_with_tensors_of_any_shape(in_place: Any) -> None:
    report = opcheck(in_place("fill", fill, "->"), checks=["runs", "layout", "reference"])
    assert report.ok
    assert [one.calls > 1 for one in report.outcomes[:2]] == [True, True]
    assert report.notes == ("x has any shape, the same for all; the relation does not state its shape",)


def test_a_kernel_that_ignores_strides_is_found_in_an_operator_that_returns_nothing(in_place: Any) -> None:
    def packed(x: Any) -> None:
        x.as_strided((x.numel(),), (1,)).fill_(3.0)

    with pytest.raises(CheckError, match="layout: tensors with gaps"):
        opcheck(in_place("fill", packed, "->"), reference=fill, checks=["layout"])


def test_a_size_that_is_the_sum_over_a_list_is_drawn(in_place: Any) -> None:
    op = in_place("join", join, "out[max(n) * len(xs), d], xs[i][n[i], d], index[sum(n)] ->")
    report = opcheck(op, reference=join, checks=["runs", "reference", "recompilations"])
    assert report.ok
    assert {one.check: one.calls > 1 for one in report.outcomes} == dict.fromkeys(
        ("runs", "reference", "recompilations"), True
    )


def test_a_call_that_cannot_be_drawn_is_named_with_its_reason(in_place: Any) -> None:
    op = in_place("join", join, "out[n, d], xs[i][n, d], index[rank(out)] ->")
    with pytest.raises(SampleError, match=r"no call to check it with .*cannot choose a size for rank\(out\).*samples="):
        opcheck(op)


def test_refusals_that_differ_in_numbers_alone_are_one_note(operator: Operator) -> None:
    def even(x: Any, bias: Any = None, **attrs: Any) -> Any:
        if x.shape[-1] % 2:
            raise ValueError(f"the last dimension is {x.shape[-1]}; it must be even")
        return scale(x, bias, **attrs)

    report = opcheck(operator.make(even), checks=["runs"])
    (note,) = [note for note in report.notes if "must be even" in note]
    assert re.match(r"refused \d+ calls, first \(.*the last dimension is \d+; it must be even", note)
