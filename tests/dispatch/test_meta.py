"""Meta functions from relations: values, symbolic sizes, registration, and what is refused."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from ascend_graph.codegen.output_shapes import CppTensor, output_code
from torch._dispatch.python import enable_python_dispatcher
from torch._subclasses.fake_tensor import FakeTensorMode, unset_fake_temporarily
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, StatelessSymbolicContext

from ascend_graph.dispatch.fake import MetaHandle, existing_meta, register_meta
from ascend_graph.dispatch.fitting import MetaError
from ascend_graph.dispatch.meta import meta_function
from ascend_graph.dispatch.meta_dtypes import TORCH
from ascend_graph.shapes import RelationError, ShapeError, parse_relation
from ascend_graph.shapes.dtypes import CATEGORY, PromotionOperand, promote_names
from ascend_graph.shapes.form import AttrKind, ExpressionKind

Define = Callable[..., Any]


@pytest.fixture
def define() -> Iterator[Define]:
    """Defines operators that vanish after the test, with a meta function if a relation is given."""
    library = torch.library.Library("metas", "FRAGMENT")
    handles: list[MetaHandle] = []

    def make(schema: str, relation: str | None = None, kernel: Callable[..., Any] | None = None) -> Any:
        name = schema.split("(", maxsplit=1)[0]
        library.define(schema)
        if kernel is not None:
            library.impl(name, kernel, "CPU")
        overload = getattr(torch.ops.metas, name).default
        if relation is not None:
            handles.append(register_meta(overload, meta_function(parse_relation(relation), overload._schema)))
        return overload

    yield make
    for handle in handles:
        handle.remove()
    library._destroy()


def meta(*shape: int, dtype: torch.dtype = torch.float16) -> torch.Tensor:
    return torch.empty(shape, dtype=dtype, device="meta")


# ----------------------------------------------------------------------------------------------------------------
# values


def test_shapes_dtypes_and_defaults(define: Define) -> None:
    op = define(
        "glu(Tensor x, Tensor? bias=None, *, int dim=-1, ScalarType? out=None) -> (Tensor, Tensor)",
        "x[*s, n@dim], bias[m] -> y[*s, n // 2@dim]: x if out is None else out, z[m]: bias if bias else [0]: int8",
    )
    y, z = op(meta(4, 6))
    assert (y.shape, y.dtype, z.shape, z.dtype) == ((4, 3), torch.float16, (0,), torch.int8)
    y, z = op(meta(4, 6), meta(7, dtype=torch.float32), dim=0, out=torch.bfloat16)
    assert (y.shape, y.dtype, z.shape, z.dtype) == ((2, 6), torch.bfloat16, (7,), torch.float32)


def test_like_keeps_strides_and_brackets_are_contiguous(define: Define) -> None:
    op = define("like(Tensor x) -> (Tensor, Tensor)", "x[*s] -> y like x, z[*s]")
    y, z = op(meta(4, 6).t())
    assert (y.stride(), z.stride()) == ((1, 6), (4, 1))


def test_in_place_gives_the_tensor_itself(define: Define) -> None:
    op = define("scale_(Tensor(a!) x, Tensor w) -> Tensor(a!)", "x[n], w[n] -> x")
    x = meta(3)
    assert op(x, meta(3)) is x


def test_lists_absent_outputs_and_numbers(define: Define) -> None:
    cat = define("cat(Tensor[] xs, int dim=0) -> Tensor", "xs[i][*s, n[i]@dim] -> y[*s, sum(n)@dim]")
    assert cat([meta(2, 3), meta(2, 4)], 1).shape == (2, 7)
    parts = define("parts(Tensor x, int[] sizes) -> Tensor[]", "x[_, d] -> ys[i < len(sizes)][sizes[i], d]")
    assert [tuple(t.shape) for t in parts(meta(5, 2), [2, 3])] == [(2, 2), (3, 2)]
    each = define("each(Tensor[] xs) -> Tensor[]", "xs[i][*s[i]] -> ys[i] like xs")
    assert [(tuple(t.shape), t.dtype) for t in each([meta(2), meta(3, dtype=torch.int8)])] == [
        ((2,), torch.float16),
        ((3,), torch.int8),
    ]
    some = define(
        "some(Tensor x, bool b, int seed=3) -> (Tensor, Tensor, int)", "x[n] -> y[n], z[n] if b else None, s = seed"
    )
    y, z, s = some(meta(3), False)
    assert (y.shape, z, s) == ((3,), None, 3)
    none = define("none(Tensor(a!) x) -> ()", "->")
    assert none(meta(3)) is None


def test_a_factory_follows_its_device_argument(define: Define) -> None:
    op = define("make(int n, *, Device? device=None) -> Tensor", "-> y[n]: int8")
    with FakeTensorMode():
        assert op(3, device="cpu").device.type == "cpu"
        assert op(3, device="meta").device.type == "meta"


# --------------------------------------------------------------------------------------------------------------
# symbolic


def fake(mode: FakeTensorMode, *shape: int) -> torch.Tensor:
    context = StatelessSymbolicContext(dynamic_sizes=[DimDynamic.DYNAMIC] * len(shape))
    with unset_fake_temporarily():
        real = torch.empty(shape)
    return mode.from_tensor(real, symbolic_context=context)


@pytest.mark.skipif(torch.__version__ < (2, 8), reason="torch 2.7 guards which of two symbolic sizes is the smaller")
def test_sizes_stay_symbolic_without_guards(define: Define) -> None:
    op = define(
        "route(Tensor x, Tensor y, int k) -> (Tensor, Tensor)",
        "x[*s, n], y[m] -> a[*s, 2 * n + 1, ceildiv(m, k)], b[min(n, m), prod(s)]",
    )
    environment = ShapeEnv()
    with FakeTensorMode(shape_env=environment) as mode:
        a, b = op(fake(mode, 4, 5, 6), fake(mode, 7), 3)
    assert [type(size) for size in (*a.shape, *b.shape)] == [torch.SymInt] * 6
    assert [size.node.hint for size in (*a.shape, *b.shape)] == [4, 5, 13, 3, 6, 20]
    assert environment.guards == []


def test_equal_names_become_one_guard(define: Define) -> None:
    op = define("mm(Tensor x, Tensor w) -> Tensor", "x[m, k], w[k, n] -> y[m, n]")
    environment = ShapeEnv()
    with FakeTensorMode(shape_env=environment) as mode:
        op(fake(mode, 2, 3), fake(mode, 3, 5))
    assert len(environment.guards) <= 1
    with FakeTensorMode(shape_env=ShapeEnv()) as mode, pytest.raises(RuntimeError, match="metas::mm: w"):
        op(fake(mode, 2, 3), fake(mode, 4, 5))


def test_broadcasting_guards_no_more_than_torch() -> None:
    relation = parse_relation("self[...], other[...] -> y[...]")
    function = meta_function(relation, torch.ops.aten.add.Tensor._schema)
    counts = []
    for call in (function, torch.add):
        environment = ShapeEnv()
        with FakeTensorMode(shape_env=environment) as mode:
            out = call(fake(mode, 2, 3), fake(mode, 7, 1, 3))
        assert [size if isinstance(size, int) else size.node.hint for size in out.shape] == [7, 2, 3]
        counts.append(len(environment.guards))
    assert counts[0] <= counts[1]


def test_unbacked_sizes(define: Define) -> None:
    op = define("rows(Tensor x, Tensor w) -> Tensor", "x[n, k], w[k] -> y[n + 1, k]")
    with FakeTensorMode(shape_env=ShapeEnv()) as mode:
        size = mode.shape_env.create_unbacked_symint()
        torch._check(size >= 0)
        out = op(torch.empty(size, 4), torch.empty(4))
        assert isinstance(out.shape[0], torch.SymInt)
        assert out.shape[1] == 4


def test_one_compilation_for_many_shapes(define: Define) -> None:
    op = define("dense(Tensor x, Tensor w) -> Tensor", "x[..., m, k], w[k, n] -> y[..., m, n]", torch.matmul)
    compiled = 0

    def backend(graph: Any, _: Any) -> Any:
        nonlocal compiled
        compiled += 1
        return graph

    function = torch.compile(lambda x, w: op(x, w) + 1, backend=backend, dynamic=True, fullgraph=True)
    for n in range(2, 22):
        out = function(torch.ones(n + 50, n + 30, n), torch.ones(n, n + 70))
        assert out.shape == (n + 50, n + 30, n + 70)
    assert compiled == 1


def test_export(define: Define) -> None:
    op = define(
        "half(Tensor x) -> Tensor", "x[b, n] -> y[b, n // 2]", lambda x: x[:, ::2][:, : x.shape[1] // 2].clone()
    )

    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return op(x)

    batch = torch.export.Dim("batch", min=2)
    program = torch.export.export(Model(), (torch.ones(3, 4),), dynamic_shapes={"x": {0: batch}})
    assert program.module()(torch.ones(9, 4)).shape == (9, 2)


def test_opcheck(define: Define) -> None:
    op = define("shift(Tensor x, int n) -> Tensor", "x[m] -> y[m + n]", lambda x, n: torch.cat([x, x.new_zeros(n)]))
    torch.library.opcheck(op, (torch.ones(3), 2), test_utils=("test_schema", "test_faketensor"))


# ----------------------------------------------------------------------------------------------------------
# registration


def test_removal_brings_back_what_was(define: Define) -> None:
    op = define("twice(Tensor x) -> Tensor")
    assert existing_meta(op) is None
    first = register_meta(op, lambda x: torch.empty(1, device="meta"))
    with pytest.raises(MetaError, match=r"has a meta function already: register_fake at .*override=True"):
        register_meta(op, lambda x: x)
    second = register_meta(op, lambda x: torch.empty(2, device="meta"), override=True)
    assert op(meta(5)).shape == (2,)
    second.remove()
    second.remove()
    assert op(meta(5)).shape == (1,)
    first.remove()
    assert existing_meta(op) is None
    with pytest.raises(NotImplementedError):
        op(meta(5))


def test_a_removed_meta_function_is_forgotten_by_the_python_dispatcher(define: Define) -> None:
    op = define("forgotten(Tensor x) -> Tensor")
    handle = register_meta(op, lambda x: x.new_empty(2))
    with enable_python_dispatcher():
        assert op(meta(5)).shape == (2,)
        assert op._dispatch_cache
        handle.remove()
        assert not op._dispatch_cache
        with pytest.raises(NotImplementedError):
            op(meta(5))


def test_what_takes_no_meta_function(define: Define) -> None:
    with pytest.raises(MetaError, match="expected one overload"):
        register_meta(torch.ops.aten.mm, lambda x: x)  # type: ignore[arg-type]
    with pytest.raises(MetaError, match="it takes no meta function"):
        register_meta(torch.ops.aten.matmul.default, lambda x: x, override=True)


SCHEMA = "refused(Tensor x, Tensor? b, Tensor[] xs, Tensor(a!) w, int k=1) -> (Tensor, Tensor(a!))"


@pytest.mark.parametrize(
    ("relation", "match"),
    [
        ("q[n], w -> y[n], w", "q is not an argument; expected one of the tensor arguments: x, b, xs, w"),
        ("k[n], w -> y[n], w", "k is not a tensor argument"),
        ("x[n], w -> y[m], w", "m must be a dimension or an argument; dimensions: n; .*not tensors: k"),
        ("x[*k], w -> y[*k], w", r"\*k stands for dimensions, and k is an argument of type int, .* such as \*k_dims"),
        ("x[n], w -> y[n], w, z[n]", r"the relation has 3 output\(s\); expected 2"),
        ("x[i][n], w -> y[n], w", r"x is one tensor, not a list; write x\[n\]"),
        ("xs[n], w -> y[n], w", r"xs is a list of tensors; write xs\[i\]\[n\]"),
        ("x[n], w -> x, w", "output x would be the input itself, but the schema does not declare the alias"),
        ("x[n] -> y[n], z[n]", "output z is the argument w itself; write 'w'"),
        ("xs[i][n[i]], w -> ys[i][n[i]], w", "output ys is not a list of tensors in the schema"),
    ],
)
def test_signature_differences_are_refused(define: Define, relation: str, match: str) -> None:
    op = define(SCHEMA)
    with pytest.raises(MetaError, match=match):
        meta_function(parse_relation(relation), op._schema)
    assert existing_meta(op) is None


@pytest.mark.parametrize(
    ("schema", "relation", "match"),
    [
        ("nested(Tensor[][] xs) -> Tensor", "xs[i][*s] -> y[*s]", r"xs is a List\[List\[Tensor\]\]; .* pass meta="),
        (
            "named(Dict(str, Tensor) xs) -> Tensor",
            "xs[*s] -> y[*s]",
            r"xs is a Dict\[str, Tensor\]; expected Tensor or",
        ),
        ("nests(Tensor x) -> Tensor[][]", "x[*s] -> ys[i < 2][*s]", r"output ys is a List\[List\[Tensor\]\]; expected"),
    ],
)
def test_tensors_in_other_containers_are_refused(define: Define, schema: str, relation: str, match: str) -> None:
    with pytest.raises(MetaError, match=match):
        meta_function(parse_relation(relation), define(schema)._schema)


def test_names_map_arguments(define: Define) -> None:
    op = define("renamed(Tensor self, int size) -> Tensor")
    function = meta_function(parse_relation("x[n] -> y[n * k]"), op._schema, {"self": "x", "size": "k"})
    assert function(meta(3), 4).shape == (12,)
    with pytest.raises(MetaError, match="names= mentions other"):
        meta_function(parse_relation("x[n] -> y[n]"), op._schema, {"other": "x"})


def test_an_output_that_only_an_absent_input_gives(define: Define) -> None:
    op = define("needs(Tensor x, Tensor? b=None) -> Tensor", "x[n], b[m] -> y[m]")
    assert op(meta(3), meta(4)).shape == (4,)
    with pytest.raises(ShapeError, match=r"metas::needs: .*m is given only by b, which is absent"):
        op(meta(3))


def test_a_relation_that_never_fits_is_refused_before_registration(define: Define) -> None:
    op = define("wrong(Tensor x) -> Tensor")
    with pytest.raises(RelationError, match="x is a tensor; write rank"):
        meta_function(parse_relation("x[n] -> y[x + 1]"), op._schema)


# ----------------------------------------------------------------------------------------------------------------
# dtypes

TORCH_DTYPES = [name for name in CATEGORY if isinstance(getattr(torch, name, None), torch.dtype)]


def answer(function: Callable[..., Any], *arguments: Any) -> Any:
    """What a function returns, or ``None`` where it refuses."""
    try:
        return function(*arguments)
    except (ValueError, RuntimeError):
        return None


def test_promotion_is_that_of_torch() -> None:
    for a, b in itertools.product(TORCH_DTYPES, repeat=2):
        ours = answer(promote_names, a, b)
        torchs = answer(torch.promote_types, getattr(torch, a), getattr(torch, b))
        assert (ours and getattr(torch, ours)) == torchs, (a, b)


@pytest.mark.parametrize("ranks", [(1, 1), (0, 1), (1, 0), (0, 0)])
@pytest.mark.filterwarnings("ignore:ComplexHalf", "ignore:BComplex32")
def test_result_type_of_every_two_dtypes_is_that_of_torch(ranks: tuple[int, int]) -> None:
    dtypes = [getattr(torch, name) for name in TORCH_DTYPES if not name.startswith(("q", "bits"))]
    for pair in itertools.product(dtypes, repeat=2):
        tensors = [torch.empty([1] * rank, dtype=t, device="meta") for rank, t in zip(ranks, pair, strict=True)]
        operands = [PromotionOperand(t.dtype, t.ndim > 0) for t in tensors]
        assert answer(TORCH.promote, operands) == answer(torch.result_type, *tensors), pair


@pytest.mark.parametrize("a", [torch.bool, torch.uint8, torch.int64, torch.float16, torch.float32, torch.complex64])
@pytest.mark.parametrize(
    "b", [torch.bool, torch.int8, torch.int32, torch.bfloat16, torch.float64, torch.complex128, 2, 2.5, True, 2j]
)
@pytest.mark.parametrize("ranks", [(1, 1), (0, 1), (1, 0), (0, 0)])
def test_result_type_is_that_of_torch(a: torch.dtype, b: Any, ranks: tuple[int, int]) -> None:
    x = torch.ones([1] * ranks[0], dtype=a)
    y = torch.ones([1] * ranks[1], dtype=b) if isinstance(b, torch.dtype) else b
    second = PromotionOperand(b, ranks[1] > 0) if isinstance(b, torch.dtype) else PromotionOperand(None, number=b)
    assert TORCH.promote([PromotionOperand(a, ranks[0] > 0), second]) == torch.result_type(x, y)


def test_dtype_attrs() -> None:
    assert TORCH.from_attr(5) == torch.float16
    assert TORCH.from_attr(torch.int8) == torch.int8
    assert TORCH.from_attr("bfloat16") == torch.bfloat16
    assert TORCH.from_attr(None) is None
    assert TORCH.from_attr(9999) is None
    for number in range(30):  # the numbers of c10::ScalarType, as torch itself reads them
        assert isinstance(TORCH.from_attr(number), torch.dtype | None)


def test_dtypes_are_compared(define: Define) -> None:
    choice = "x[n] -> y[n]: float16 if dst in (float16, bfloat16) else int8"
    by_dtype = define("by_dtype(Tensor x, ScalarType? dst=None) -> Tensor", choice)
    by_number = define("by_number(Tensor x, int dst) -> Tensor", choice)
    x = torch.empty(3, device="meta")
    assert [by_dtype(x, d).dtype for d in (torch.bfloat16, torch.float32, None)] == [
        torch.float16,
        torch.int8,
        torch.int8,
    ]
    # torch's number of float16, and torch_npu's of float8_e5m2
    assert [by_number(x, d).dtype for d in (5, 291)] == [torch.float16, torch.int8]
    with pytest.raises(ShapeError, match="attr dst is 9999; expected a dtype"):
        by_number(x, 9999)


def test_cpp_compares_dtypes() -> None:
    relation = parse_relation("x[n] -> y[n]: float16 if dst == float16 else int8")
    made = output_code(relation, {"x": CppTensor("x", False)}, {"dst": ("dst_type", AttrKind(ExpressionKind.DTYPE))})
    assert made is not None
    assert (
        "((scalar_type(dst_type) == at::ScalarType::Half) ? at::ScalarType::Half : at::ScalarType::Char)"
        in made.outputs[0]
    )


def test_a_condition_on_symbolic_sizes_stops_where_it_is_decided(define: Define) -> None:
    overload = define("short(Tensor x, int[] pad) -> Tensor", "x[n] -> y[n] where n > 5 or pad[2] > 0")
    divided = define("divided(Tensor x, int k) -> Tensor", "x[n] -> y[n] where n > 5 and 12 % n >= 0 or n == 0")
    for size in (7, 8):
        x = symbolic(size)
        with x.fake_mode:
            assert overload(x, [1]).shape[0].node.hint == size
    for size in (0, 7):
        x = symbolic(size)
        with x.fake_mode:
            assert divided(x, 1).shape[0] == size
    x = symbolic(3)
    with x.fake_mode, pytest.raises(ShapeError, match="2 is out of range"):
        overload(x, [1])


def symbolic(size: int) -> Any:
    mode = FakeTensorMode(shape_env=ShapeEnv())
    context = StatelessSymbolicContext(dynamic_sizes=[DimDynamic.DYNAMIC])
    return mode.from_tensor(torch.empty(size), symbolic_context=context)
