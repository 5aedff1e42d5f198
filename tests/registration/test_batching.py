"""Independent and reduced dimensions: declared, checked by running, used by vmap, DTensor's rules and the counter of
operations."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

import ascend_graph
from ascend_graph.registration.cost import FlopsError
from ascend_graph.registration.dimensions.batching import VmapLoopWarning
from ascend_graph.registration.dimensions.independence_checks import find_independent_dims
from ascend_graph.registration.dimensions.independent_dims import BatchError
from ascend_graph.registration.dimensions.sharding import sharding_rule
from ascend_graph.shapes import parse_relation
from ascend_graph.shapes.axis_layout import locate

pytestmark = pytest.mark.filterwarnings("error::ascend_graph.registration.dimensions.batching.VmapLoopWarning")

FLOAT = "TensorType({DT_FLOAT, DT_FLOAT16, DT_BF16})"
HEADER = f"""
REG_OP(BatNorm).INPUT(x, {FLOAT}).INPUT(gamma, {FLOAT}).OUTPUT(y, {FLOAT}).OUTPUT(scale, {FLOAT})
    .OP_END_FACTORY_REG(BatNorm)
REG_OP(BatMatMul).INPUT(a, {FLOAT}).INPUT(b, {FLOAT}).OUTPUT(y, {FLOAT}).OP_END_FACTORY_REG(BatMatMul)
REG_OP(BatSoftmax).INPUT(x, {FLOAT}).OUTPUT(y, {FLOAT}).REQUIRED_ATTR(dim, Int).OP_END_FACTORY_REG(BatSoftmax)
REG_OP(BatNormGrad).INPUT(dy, {FLOAT}).INPUT(x, {FLOAT}).OUTPUT(dx, {FLOAT}).OUTPUT(dgamma, {FLOAT})
    .OP_END_FACTORY_REG(BatNormGrad)
REG_OP(BatTotal).INPUT(x, {FLOAT}).OUTPUT(y, {FLOAT}).REQUIRED_ATTR(dims, ListInt).ATTR(keep, Bool, false)
    .OP_END_FACTORY_REG(BatTotal)
REG_OP(BatRequired).INPUT(x, {FLOAT}).OPTIONAL_INPUT(mask, TensorType({{DT_BOOL}})).INPUT(index, TensorType({{DT_INT32}}))
    .OUTPUT(y, {FLOAT}).REQUIRED_ATTR(mode, String).REQUIRED_ATTR(flags, ListBool).REQUIRED_ATTR(scales, ListFloat)
    .OP_END_FACTORY_REG(BatRequired)
REG_OP(BatMany).DYNAMIC_INPUT(xs, {FLOAT}).INPUT(x, {FLOAT}).OUTPUT(y, {FLOAT}).OP_END_FACTORY_REG(BatMany)
REG_OP(BatEach).DYNAMIC_INPUT(xs, {FLOAT}).DYNAMIC_OUTPUT(ys, {FLOAT}).OP_END_FACTORY_REG(BatEach)
REG_OP(BatRows).INPUT(x, {FLOAT}).DYNAMIC_OUTPUT(ys, {FLOAT}).OP_END_FACTORY_REG(BatRows)
REG_OP(BatWanted).INPUT(x, {FLOAT}).INPUT(w, {FLOAT}).OUTPUT(y, {FLOAT}).OUTPUT(z, {FLOAT}).ATTR(want, Bool, true)
    .OP_END_FACTORY_REG(BatWanted)
REG_OP(BatCentered).INPUT(x, {FLOAT}).OUTPUT(y, {FLOAT}).OUTPUT(mean, {FLOAT}).ATTR(axis, Int, 1)
    .OP_END_FACTORY_REG(BatCentered)
REG_OP(BatAdd).INPUT(x, {FLOAT}).INPUT(y, {FLOAT}).OUTPUT(z, {FLOAT}).OP_END_FACTORY_REG(BatAdd)
"""


#: One entry for each time that a kernel of ``norm`` has run, other than the reference itself.
norm_calls: list[torch.Size] = []


def norm(x: torch.Tensor, gamma: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    norm_calls.append(x.shape)
    scale = x.norm(dim=-1, keepdim=True)
    return x / scale * gamma, scale


def centered(x: torch.Tensor, axis: int = 1) -> tuple[torch.Tensor, torch.Tensor]:
    mean = x.mean(dim=tuple(range(x.dim()))[axis:], keepdim=True)
    return x - mean, mean


#: Masks that ``required`` was given.
masks: list[bool] = []


def required(
    x: torch.Tensor, mask: torch.Tensor | None, index: torch.Tensor, mode: str, flags: list[bool], scales: list[float]
) -> torch.Tensor:
    """Take only the dtypes of the prototype, as the kernel of a device does, and every attr."""
    if index.dtype is not torch.int32 or (mask is not None and mask.dtype is not torch.bool):
        raise RuntimeError("dtype is not supported")
    masks.append(mask is not None)
    y = x * (sum(scales) + len(mode) + sum(flags)) + index.unsqueeze(-1)
    if mode == "mean":
        y = y - y.mean(-1, keepdim=True)
    return y if mask is None else y * mask


#: Op type → schema, kernel, relation.
OPERATORS: dict[str, tuple[str, Callable[..., Any], str]] = {
    "BatNorm": (
        "norm(Tensor x, Tensor gamma) -> (Tensor, Tensor)",
        norm,
        "x[*s, n], gamma[n] -> y[*s, n], scale[*s, 1]",
    ),
    "BatMatMul": ("mm(Tensor a, Tensor b) -> Tensor", torch.mm, "a[m, k], b[k, n] -> y[m, n]"),
    "BatSoftmax": ("softmax(Tensor x, int dim) -> Tensor", torch.softmax, "x[*s, n@dim] -> y[*s, n@dim]"),
    "BatNormGrad": (
        "norm_grad(Tensor dy, Tensor x) -> (Tensor, Tensor)",
        lambda dy, x: (dy * x.norm(dim=-1, keepdim=True), (dy * x).reshape(-1, x.size(-1)).sum(0)),
        "dy[*s, n], x[*s, n] -> dx[*s, n], dgamma[n]",
    ),
    "BatTotal": (
        "total(Tensor x, int[] dims, *, bool keep=False) -> Tensor",
        lambda x, dims, *, keep: torch.sum(x, dims, keep),
        "x[*s, *r@dims] -> y[*s, *ones(r)@dims] if keep else [*s]",
    ),
    "BatRequired": (
        "required(Tensor x, Tensor? mask, Tensor index, *, str mode, bool[] flags, float[] scales) -> Tensor",
        lambda x, mask, index, *, mode, flags, scales: required(x, mask, index, mode, flags, scales),
        "x[*s, n], mask[*s, n], index[*s] -> y[*s, n]",
    ),
    "BatMany": (
        "many(Tensor[] xs, Tensor x) -> Tensor",
        lambda xs, x: sum(item.sum() for item in xs) + x * 10,
        "xs[i][t], x[*s, n] -> y[*s, n]",
    ),
    "BatEach": (
        "each(Tensor[] xs) -> Tensor[]",
        lambda xs: [item * (n + 1) for n, item in enumerate(xs)],
        "xs[i][t] -> ys[i][t]",
    ),
    "BatRows": (
        "rows(Tensor x) -> Tensor[]",
        lambda x: [row * (n + 1) for n, row in enumerate(x)],
        "x[m, n] -> ys[i < m][n]",
    ),
    "BatWanted": (
        "wanted(Tensor x, Tensor w, bool want=True) -> (Tensor, Tensor)",
        lambda x, w, want=True: (x * w, x + w if want else None),
        "x[*s, n], w[n] -> y[*s, n], z[*s, n] if want else None",
    ),
    "BatCentered": (
        "centered(Tensor x, int axis=1) -> (Tensor, Tensor)",
        centered,
        "x[*s] -> y[*s], mean[*s[:axis], *ones(s[axis:])]",
    ),
    "BatAdd": ("add(Tensor x, Tensor y) -> Tensor", torch.add, "x[...], y[...] -> z[...]: promote(x, y)"),
}


def keep(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.a, ctx.b = inputs


@pytest.fixture(scope="module")
def library() -> Iterator[None]:
    ascend_graph.load_prototypes(HEADER)
    library = torch.library.Library("batching", "DEF")
    for schema, kernel, _ in OPERATORS.values():
        library.define(schema)
        library.impl(schema.partition("(")[0], kernel, "CPU")
    torch.library.register_autograd(
        "batching::mm", lambda ctx, g: (g @ ctx.b.t(), ctx.a.t() @ g), setup_context=keep, lib=library
    )
    yield
    library._destroy()


@pytest.fixture
def register(library: None) -> Iterator[Callable[..., Any]]:
    registered = []

    def make(op_type: str, **given: Any) -> Any:
        schema, _, relation = OPERATORS[op_type]
        eager = getattr(torch.ops.batching, schema.partition("(")[0])
        registered.append(
            ascend_graph.register_op(op_type, eager=eager, meta=None, shape=relation, override=True, **given)
        )
        return registered[-1]

    yield make
    for op in registered:
        op.unregister()


def test_a_declaration_is_checked_forward_and_backward(register: Callable[..., Any]) -> None:
    assert "compared with its parts" in register("BatNorm", batch=("s",)).evidence["batch"]
    assert (
        "compared with its parts 24 times" in register("BatMatMul", batch=("m", "n"), reduce=("k",)).evidence["batch"]
    )


def test_required_attrs_and_listed_dtypes_are_drawn(register: Callable[..., Any]) -> None:
    """Without them no call runs, and a declaration that is right is refused."""
    masks.clear()
    assert "compared with its parts" in register("BatRequired", batch=("s",)).evidence["batch"]
    assert {True, False} == set(masks), "the optional input is given, in its dtype, and left out"
    with pytest.raises(BatchError, match=r"n is not independent in .* with .*mode='mean'"):
        register("BatRequired", batch=("n",))


@pytest.mark.parametrize(
    ("op_type", "given", "match"),
    [
        (
            "BatSoftmax",
            {"batch": ("n",)},
            r"n is not independent in x\[\*s, n@dim\].* with x \(\d.*dim=.* the output y differs by",
        ),
        ("BatSoftmax", {"batch": ("q",)}, r"batch='q' is not a dimension of the inputs .*; those are s, n"),
        (
            "BatMatMul",
            {"batch": ("k",)},
            r"the output y of .* has no k; what is added over it is declared with reduce=",
        ),
        ("BatRows", {"batch": ("n",)}, r"'n' is declared, and the output ys of .* is a list; expected tensors"),
        ("BatMatMul", {"reduce": {"k": "max"}}, r"k is not reduced by max in .* the output y differs by"),
        ("BatMatMul", {"reduce": {"k": "mean"}}, r"parts are combined by sum, max, min"),
        ("BatMatMul", {"batch": ("m", "k"), "reduce": ("k",)}, r"k must not be in batch= and in reduce="),
    ],
)
def test_wrong_declarations_are_refused_with_a_call(
    register: Callable[..., Any], op_type: str, given: dict[str, Any], match: str
) -> None:
    before = ascend_graph.registered_ops()
    with pytest.raises(BatchError, match=match):
        register(op_type, **given)
    assert ascend_graph.registered_ops() == before


def test_a_list_whose_length_is_a_size_is_mapped(register: Callable[..., Any]) -> None:
    op, x = register("BatRows", batch=()), torch.randn(4, 2, 3)
    with pytest.warns(VmapLoopWarning, match=r"calls batching::rows 4 times"):
        found = torch.vmap(op)(x)
    torch.testing.assert_close(list(found), [x[:, n] * (n + 1) for n in range(2)])


@pytest.mark.parametrize("in_dim", [0, 1, 2, -1])
@pytest.mark.parametrize("dim", [0, 1, -1, -2])
def test_vmap_beside_an_axis(register: Callable[..., Any], in_dim: int, dim: int) -> None:
    op = register("BatSoftmax", batch=("s",))
    x = torch.randn(2, 3, 4)
    expected = torch.vmap(lambda t: torch.softmax(t, dim), in_dim)(x)
    torch.testing.assert_close(torch.vmap(lambda t: op(t, dim), in_dim)(x), expected)


def test_vmap_is_one_call_and_nests(register: Callable[..., Any]) -> None:
    op = register("BatNorm", batch=("s",))
    x, gamma = torch.randn(5, 2, 3, 4), torch.randn(4)
    norm_calls.clear()
    y, scale = torch.vmap(torch.vmap(op, (1, None)), (0, None))(x, gamma)
    assert len(norm_calls) == 1
    expected = torch.vmap(torch.vmap(norm, (1, None)), (0, None))(x, gamma)
    torch.testing.assert_close((y, scale), expected)
    product = register("BatMatMul", batch=("m", "n"))
    a, b = torch.randn(6, 2, 3), torch.randn(3, 5)
    torch.testing.assert_close(torch.vmap(product, (0, None))(a, b), a @ b)
    other = torch.randn(3, 5, 6)
    torch.testing.assert_close(
        torch.vmap(product, (None, 2))(a[0], other), torch.vmap(torch.mm, (None, 2))(a[0], other)
    )


def test_vmap_over_what_broadcasts(register: Callable[..., Any]) -> None:
    op = register("BatAdd", batch=("...",))
    for x, y, dims in (
        (torch.randn(5, 3), torch.randn(4, 3), (0, None)),
        (torch.randn(5, 3), torch.randn(5, 4, 3), (0, 0)),
        (torch.randn(3), torch.randn(4, 3, 5), (None, 2)),
    ):
        torch.testing.assert_close(torch.vmap(op, dims)(x, y), torch.vmap(torch.add, dims)(x, y))


def test_where_there_is_no_such_dimension_the_loop_is_announced(register: Callable[..., Any]) -> None:
    op = register("BatNorm", batch=("s",))
    x, gammas = torch.randn(2, 4), torch.randn(3, 4)
    with pytest.warns(
        VmapLoopWarning, match=r"torch.vmap calls batching::norm 3 times: none of its independent dimensions \(s\)"
    ):
        found = torch.vmap(op, (None, 0))(x, gammas)
    torch.testing.assert_close(found, torch.vmap(norm, (None, 0))(x, gammas))
    none = register("BatMatMul", batch=())
    with pytest.warns(VmapLoopWarning):
        torch.vmap(none, (0, None))(torch.randn(6, 2, 3), torch.randn(3, 5))


def test_vmap_over_a_group_of_which_a_part_is_taken_is_a_loop(register: Callable[..., Any]) -> None:
    """One more dimension in the group would move its parts."""
    with pytest.raises(
        BatchError, match=r"takes the part s\[:axis\], which one more dimension would move; leave batch="
    ):
        register("BatCentered", batch=("s",))
    op = register("BatCentered")
    x = torch.randn(3, 4, 5, 6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VmapLoopWarning)
        for axis in (1, -1):
            found = torch.vmap(lambda t, axis=axis: op(t, axis), 1)(x)
            torch.testing.assert_close(found, torch.vmap(lambda t, axis=axis: centered(t, axis), 1)(x))


@pytest.mark.parametrize("dims", [(0, None, None), (None, 1, 0), (0, 1, 0), (None, None, 0)])
def test_vmap_over_elements_of_a_list(register: Callable[..., Any], dims: tuple[int | None, ...]) -> None:
    """The elements are taken one by one, for a list has no dimension that stands for the mapped one."""
    op = register("BatMany", batch=("s", "n"), samples=[(([torch.ones(3), torch.ones(2)], torch.ones(2, 3)), {})])
    given = tuple(torch.randn(4, 4) for _ in dims)

    def call(operator: Callable[..., Any]) -> torch.Tensor:
        return torch.vmap(lambda a, b, x: operator([a, b], x), dims)(*given)

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = call(op)
    torch.testing.assert_close(found, call(lambda xs, x: sum(item.sum() for item in xs) + x * 10))
    expected = (
        [] if dims[:2] == (None, None) else ["torch.vmap calls batching::many 4 times: elements of xs are mapped"]
    )
    assert [str(w.message).partition(", and")[0] for w in said] == expected


def test_vmap_of_a_returned_list(register: Callable[..., Any]) -> None:
    op = register("BatEach", batch=())
    a, b = torch.randn(4, 2), torch.randn(3, 4)
    with pytest.warns(VmapLoopWarning, match="elements of xs are mapped"):
        found = torch.vmap(lambda a, b: tuple(op([a, b])), (0, 1))(a, b)
    torch.testing.assert_close(found, (a, b.t() * 2))


@pytest.mark.parametrize("batch", [("n",), ("s",)])
@pytest.mark.parametrize("want", [True, False])
def test_vmap_of_an_absent_output(register: Callable[..., Any], batch: tuple[str, ...], want: bool) -> None:
    op = register("BatWanted", batch=batch)
    x, w = torch.randn(4, 2, 3), torch.randn(4, 3)

    def present(*tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        outputs = op(*tensors, want)
        assert (outputs[1] is not None) == want
        return tuple(output for output in outputs if output is not None)

    for dims, given in (((0, None), (x, w[0])), ((None, 0), (x[0], w)), ((0, 0), (x, w))):
        expected = torch.vmap(lambda x, w: (x * w, x + w) if want else (x * w,), dims)(*given)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of s alone there is a loop where w is mapped
            found = torch.vmap(present, dims)(*given)
        torch.testing.assert_close(found, expected)


def test_rules_of_placements(register: Callable[..., Any]) -> None:
    from torch.distributed.tensor import Partial, Replicate, Shard

    planned = register("BatMatMul", batch=("m", "n"), reduce=("k",))._plan
    a, b = torch.empty(4, 6, device="meta"), torch.empty(6, 8, device="meta")
    whole = Replicate()
    assert sharding_rule(planned.overload, planned.independent_dims)(a, b) == [
        ([whole], [whole, whole]),
        ([Shard(0)], [Shard(0), whole]),
        ([Partial("sum")], [Shard(1), Shard(0)]),
        ([Shard(1)], [whole, Shard(1)]),
    ]
    planned = register("BatAdd", batch=("...",))._plan
    x, y = torch.empty(4, 6, device="meta"), torch.empty(1, device="meta")
    assert sharding_rule(planned.overload, planned.independent_dims)(x, y)[1:] == [
        ([Shard(0)], [Shard(0), whole]),
        ([Shard(1)], [Shard(1), whole]),
    ]


def test_outputs_that_have_a_reduced_dimension_are_joined_along_it(register: Callable[..., Any]) -> None:
    from torch.distributed.tensor import Partial, Shard

    planned = register("BatNormGrad", reduce=("s",))._plan
    dy = torch.empty(4, 6, device="meta")
    assert sharding_rule(planned.overload, planned.independent_dims)(dy, dy)[1:] == [
        ([Shard(0), Partial("sum")], [Shard(0), Shard(0)])
    ]


def test_placements_are_kept_apart_by_every_attr(register: Callable[..., Any]) -> None:
    from torch.distributed.tensor import DTensor

    planned = register("BatTotal", batch=("s",))._plan
    info = DTensor._op_dispatcher.sharding_propagator.op_to_schema_info[planned.overload]
    assert (info.static_argnum, info.static_kwargkey, info.needs_pytree) == (1, ["keep"], True)


def test_dimensions_are_found_by_running(library: None) -> None:
    mm, norm_grad = torch.ops.batching.mm.default, torch.ops.batching.norm_grad.default
    found = find_independent_dims(mm, parse_relation(OPERATORS["BatMatMul"][2]))
    assert (found.batch, found.reduce) == (("m", "n"), {"k": "sum"})
    found = find_independent_dims(norm_grad, parse_relation(OPERATORS["BatNormGrad"][2]))
    assert (found.batch, found.reduce) == ((), {"s": "sum"})


def test_operations_are_counted(register: Callable[..., Any]) -> None:
    op = register("BatMatMul", flops="2 * m * n * k")
    with FlopCounterMode(display=False) as counter:
        op(torch.randn(3, 4), torch.randn(4, 5))
    counted = counter.get_flop_counts()["Global"]
    assert counted[torch.ops.batching.mm] == 2 * 3 * 5 * 4
    op.unregister()
    with pytest.raises(FlopsError, match="q must be a dimension or attr|flops='2 \\* q'"):
        register("BatMatMul", flops="2 * q")


def test_places() -> None:
    inputs, outputs = locate(
        parse_relation("x[*s, *r@dims], w[*s] -> y[*s, *ones(r)@dims] if keep else [*s]"),
        {"x": 3, "w": 2},
        {"dims": [1], "keep": True},
    )
    assert inputs["x"] is not None
    assert inputs["x"].axes == ("s[0]", "r[0]", "s[1]")
    assert outputs["y"] is not None
    assert outputs["y"].axes == ("s[0]", None, "s[1]")


@pytest.fixture
def undeclared() -> Iterator[Any]:
    """Operators that PyTorch's own loop refuses, registered without ``batch=``."""
    library = torch.library.Library("batching_undeclared", "DEF")
    library.define("join(Tensor[] xs) -> Tensor")
    library.define("parts(Tensor x) -> Tensor[]")
    library.define("grow_(Tensor(a!) x, Tensor by) -> Tensor(a!)")
    library.define("fill(Tensor(a!)[] caches, Tensor x, Tensor(b!)? last=None) -> ()")
    library.impl("join", lambda xs: torch.cat(list(xs)), "CPU")
    library.impl("parts", lambda x: [x[:1] * 2, x[1:] * 3], "CPU")
    library.impl("grow_", lambda x, by: x.add_(by), "CPU")
    library.impl("fill", fill, "CPU")
    ops = torch.ops.batching_undeclared
    relations = {
        ops.join: "xs[i][n] -> y[sum(n[i])]",
        ops.parts: lambda x: [x.new_empty(1), x.new_empty(x.shape[0] - 1)],
        ops.grow_: "x[*s], by[*s] -> x",
        ops.fill: "->",
    }
    registered = [
        ascend_graph.register_kernel(eager=op, **{"shape" if isinstance(shape, str) else "meta": shape})
        for op, shape in relations.items()
    ]
    yield ops
    for op in registered:
        op.unregister()
    library._destroy()


def fill(caches: list[torch.Tensor], x: torch.Tensor, last: torch.Tensor | None = None) -> None:
    for cache in (*caches, *([] if last is None else [last])):
        cache.copy_(x)


def looped(*given: Any) -> Callable[..., Any]:
    """Return ``torch.vmap`` of a function that announces its loop."""

    def call(*tensors: torch.Tensor) -> Any:
        with pytest.warns(VmapLoopWarning):
            return torch.vmap(*given)(*tensors)

    return call


@pytest.mark.parametrize("dim", [0, 1])
def test_lists_and_writes_are_mapped_without_a_declaration(undeclared: Any, dim: int) -> None:
    x, row = torch.randn(3, 3), torch.randn(3)
    each = x.movedim(dim, 0)
    found = looped(lambda a: undeclared.join([a, row]), dim)(x)
    torch.testing.assert_close(found, torch.cat([each, row.expand(3, 3)], 1))
    first, rest = looped(lambda a: tuple(undeclared.parts(a)), dim)(x)
    torch.testing.assert_close((first, rest), (each[:, :1] * 2, each[:, 1:] * 3))

    written = x.clone()
    found = looped(undeclared.grow_, (dim, None), dim)(written, row)
    torch.testing.assert_close(found, (each + row).movedim(0, dim))
    torch.testing.assert_close(written, found)

    caches = torch.zeros(4, 3, 3)

    def write(caches: torch.Tensor, a: torch.Tensor) -> torch.Tensor:
        undeclared.fill([caches[0], caches[1]], a, caches[3])
        return caches

    looped(write, (dim + 1, dim))(caches, x)
    torch.testing.assert_close(caches, torch.stack([x, x, torch.zeros(3, 3), x]))


def test_what_vmap_cannot_map_is_refused_by_name(undeclared: Any) -> None:
    cache, x = torch.zeros(3), torch.randn(4, 3)
    with pytest.raises(RuntimeError, match="writes to x, which is not mapped"):
        torch.vmap(undeclared.grow_, (None, 0))(cache, x)
    with pytest.raises(RuntimeError, match="writes to caches, which is not mapped"):
        torch.vmap(lambda c, a: undeclared.fill([c, cache], a))(x.clone(), x)
    assert not cache.any()
    with pytest.raises(RuntimeError, match="the mapped dimension has size 0; expected at least 1"):
        torch.vmap(lambda a: undeclared.join([a]))(torch.empty(0, 3))


def test_a_rule_of_the_author_for_vmap_is_kept(library: None) -> None:
    own = torch.library.Library("batching_own", "DEF")
    own.define("join(Tensor[] xs) -> Tensor")
    own.impl("join", lambda xs: torch.cat(list(xs)), "CPU")
    name = "batching_own::join"
    torch.library.register_vmap(name, lambda info, dims, xs: (torch.cat(list(xs), -1), 0), lib=own)
    op = ascend_graph.register_kernel(eager=torch.ops.batching_own.join, shape="xs[i][n] -> y[sum(n[i])]")
    x = torch.randn(4, 3)
    torch.testing.assert_close(torch.vmap(lambda a: torch.ops.batching_own.join([a, a]))(x), torch.cat([x, x], 1))
    op.unregister()
    own._destroy()


def test_an_attr_may_have_the_name_of_a_parameter_of_pytorch() -> None:
    with torch.library._scoped_library("bat_names", "DEF") as library:
        library.define("scaled(Tensor x, *, int op=1, int keyset=0, int interpreter=0, int vmap_function=0) -> Tensor")

        def scaled(x, op=1, keyset=0, interpreter=0, vmap_function=0):  # type: ignore[no-untyped-def]
            return x * op + keyset + interpreter + vmap_function

        library.impl("scaled", scaled, "PrivateUse1")
        overload = torch.ops.bat_names.scaled
        op = ascend_graph.register_kernel(eager=overload, shape="x[*s] -> y[*s]", batch=("*s",))
        x = torch.arange(6.0).reshape(2, 3).npu()
        mapped = torch.vmap(lambda row: overload(row, op=3, keyset=1, interpreter=2, vmap_function=4))
        assert torch.equal(mapped(x), x * 3 + 7)
        assert torch.equal(torch.vmap(lambda row: overload(x, op=3), out_dims=None)(x), x * 3)
        op.unregister()
