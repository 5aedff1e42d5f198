"""Relations found from shape functions: what the function says, or a refusal that says why."""

from __future__ import annotations

import itertools
import math
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from ascend_graph.host.infer_shape import calls
from ascend_graph.inference import InferenceError
from ascend_graph.inference.functions import isolation
from ascend_graph.inference.functions.comparison import (
    agreement,
    input_with_more_dimensions,
    isolated_agreement,
    needless_condition,
    size_of_its_own,
)
from ascend_graph.inference.functions.presence import with_absence
from ascend_graph.inference.functions.search import infer_from_function
from ascend_graph.prototypes import DataType, parse_text
from ascend_graph.shapes import parse_relation
from ascend_graph.shapes.functions import InferredOutput, ShapeFunction, ShapeFunctionError

BODY = """
    REG_OP(AskedOp)
        .INPUT(x, TensorType({DT_FLOAT16, DT_FLOAT}))
        .INPUT(w, TensorType({DT_FLOAT16, DT_FLOAT}))
        .OPTIONAL_INPUT(bias, TensorType({DT_FLOAT}))
        .OUTPUT(y, TensorType({DT_FLOAT16, DT_FLOAT, DT_INT8}))
        .ATTR(axis, Int, 0)
        .ATTR(mode, String, "keep")
        .ATTR(flag, Bool, false)
        .OP_END_FACTORY_REG(AskedOp)
"""
(PROTOTYPE,) = parse_text(BODY).prototypes
Answer = Callable[[Sequence[Any], Mapping[str, Any]], tuple[Any, ...]]


def function(answer: Answer, texts: tuple[str, ...] = ("sum",), **options: Any) -> ShapeFunction:
    """Return the shape function of AskedOp that answers by a Python function."""

    def call(inputs: Sequence[Any], attrs: Mapping[str, Any]) -> list[InferredOutput | None]:
        shape, dtype, *rest = answer(inputs, attrs)
        return [InferredOutput(tuple(shape), dtype, *rest)]

    return ShapeFunction(PROTOTYPE, "the function", call, texts, **options)


def matmul(inputs: Sequence[Any], attrs: Mapping[str, Any]) -> tuple[tuple[int, ...], DataType | None]:
    x, w, _ = inputs
    if len(x.shape) != 2 or len(w.shape) != 2 or x.shape[1] != w.shape[0]:
        raise ShapeFunctionError("x and w do not fit")
    return (x.shape[0], w.shape[1]), x.dtype


def blocks(inputs: Sequence[Any], attrs: Mapping[str, Any]) -> tuple[tuple[int, ...], DataType | None]:
    """Scales of blocks of 64: one for all sizes that kernels are run with."""
    *leading, last = inputs[0].shape or (1,)
    if not inputs[0].shape:
        raise ShapeFunctionError("rank")
    return (*leading, -(-last // 64)), inputs[0].dtype


def scales(inputs: Sequence[Any], attrs: Mapping[str, Any]) -> tuple[tuple[int, ...], DataType | None]:
    """As norms do: one for each of the dimensions before those of the weight, of which only the number is asked."""
    rank, inner = len(inputs[0].shape), len(inputs[1].shape)
    if rank < inner:
        raise ShapeFunctionError("ranks")
    return (*inputs[0].shape[: rank - inner], *(1,) * inner), inputs[0].dtype


def normalized(inputs: Sequence[Any], attrs: Mapping[str, Any]) -> tuple[tuple[int, ...], DataType | None]:
    """As layer norm does: one for all dimensions from an axis on."""
    shape, axis = inputs[0].shape, attrs["axis"]
    if not -len(shape) <= axis < len(shape):
        raise ShapeFunctionError("axis")
    return tuple(1 if n >= axis % len(shape) else size for n, size in enumerate(shape)), inputs[0].dtype


def turned(inputs: Sequence[Any], attrs: Mapping[str, Any]) -> tuple[tuple[int, ...], DataType | None]:
    """A product whose second operand a flag turns."""
    x, w = inputs[0].shape, inputs[1].shape
    if len(x) != 2 or len(w) != 2 or x[1] != w[1 if attrs["flag"] else 0]:
        raise ShapeFunctionError("x and w do not fit")
    return (x[0], w[0 if attrs["flag"] else 1]), inputs[0].dtype


def channels(inputs: Sequence[Any], attrs: Mapping[str, Any]) -> tuple[tuple[int, ...], DataType | None]:
    """Sums of all but the channels, which a layout has last or second."""
    shape = inputs[0].shape
    if attrs["mode"] not in ("keep", "sum") or len(shape) < 2:
        raise ShapeFunctionError("mode or shape")
    return (shape[1 if attrs["mode"] == "sum" else -1],), inputs[0].dtype


def by_rank(inputs: Sequence[Any], attrs: Mapping[str, Any]) -> tuple[tuple[int, ...], DataType | None]:
    """Blocks of rows, of the matrix or of each."""
    shape = inputs[0].shape
    if len(shape) not in (2, 3):
        raise ShapeFunctionError("rank")
    return (-(-shape[0] // 4), shape[1]) if len(shape) == 2 else (shape[0], -(-shape[2] // 4), 7), inputs[0].dtype


def pooled(inputs: Sequence[Any], attrs: Mapping[str, Any]) -> tuple[tuple[int, ...], DataType | None]:
    shape = inputs[0].shape
    if len(shape) not in (4, 5):
        raise ShapeFunctionError("rank")
    return (*shape[:2], *(1 for _ in shape[2:])), inputs[0].dtype


def product(inputs: Sequence[Any], attrs: Mapping[str, Any]) -> tuple[tuple[int, ...], DataType | None]:
    """As products do: vectors are matrices of one row or column, batches broadcast, a flag turns the second operand."""
    x, w = (list(given.shape) for given in inputs[:2])
    if not x or not w:
        raise ShapeFunctionError("rank")
    left, right = [*x[:-2], *([1] if len(x) == 1 else []), *x[-2:]], [*w[:-2], *w[-2:], *([1] if len(w) == 1 else [])]
    if attrs["flag"]:
        right[-2:] = right[:-3:-1]
    if left[-1] != right[-2]:
        raise ShapeFunctionError("x and w do not fit")
    batch = broadcast(left[:-2], right[:-2])
    made = (*batch, left[-2], right[-1])
    if inputs[2] is not None and inputs[2].shape not in ((made[-1],), (1, made[-1])):
        raise ShapeFunctionError("bias")
    is_vector = len(x) == 1, len(w) == 1
    if not batch and any(is_vector):
        made = tuple(size for size, gone in zip(made, is_vector, strict=True) if not gone)
    return made, inputs[0].dtype


def broadcast(a: Sequence[int], b: Sequence[int]) -> tuple[int, ...]:
    sizes = itertools.zip_longest(reversed(a), reversed(b), fillvalue=1)
    found = tuple(n if m == 1 else m for m, n in sizes if 1 in (m, n) or m == n)
    if len(found) != max(len(a), len(b)):
        raise ShapeFunctionError("batches do not broadcast")
    return found[::-1]


BRANCHES: list[tuple[Answer, str]] = [
    (turned, "x[n, k], w[m, k] if flag else [k, m] -> y[n, m]"),
    (channels, 'x[n, m, *s] if mode == "sum" else [*s, m] -> y[m]'),
    (
        by_rank,
        "x[m, n] if rank(x) == 2 else [m, n, k] -> y[ceildiv(m, 4), n] if rank(x) == 2 else [m, ceildiv(k, 4), 7]",
    ),
    (pooled, "x[b, c, *s] -> y[b, c, *ones(s)] where rank(x) >= 4"),
]


@pytest.mark.parametrize(("answer", "relation"), BRANCHES)
def test_inputs_that_flags_layouts_and_ranks_arrange_are_found(answer: Answer, relation: str) -> None:
    found = infer_from_function(function(answer), isolated=False).relation
    assert not agreement(parse_relation(relation), function(answer), 40, seed=3).differing
    checked = agreement(found, function(answer), 200, seed=4)
    assert (checked.differing, checked.refused_by_relation) == ((), 0), str(found)


def test_products_of_matrices_that_take_vectors_and_a_bias_too_are_found() -> None:
    found = infer_from_function(function(product), isolated=False)
    assert str(found.relation) == "x[..., m, k], w[..., n, k] if flag else [..., k, n] -> y[..., m, n]"
    assert not agreement(found.relation, function(product), 200, seed=4).differing
    narrower, unsaid = found.limits
    assert "narrower than the kernel, which also runs on {'x': (" in narrower
    assert unsaid == "the relation says nothing of bias, of which the function does not take every shape"


CASES: list[tuple[Answer, str]] = [
    (matmul, "x[m, k], w[k, n] -> y[m, n]"),
    (lambda i, a: (i[0].shape, i[0].dtype), "x[*s] -> y[*s]"),
    (lambda i, a: (i[0].shape, DataType.INT8), "x[*s] -> y[*s]: int8"),
    (
        lambda i, a: (i[0].shape, DataType.FLOAT if a["flag"] else i[0].dtype),
        "x[*s] -> y[*s]: float32 if flag else x",
    ),
    (
        lambda i, a: (() if a["mode"] == "sum" else i[0].shape, i[0].dtype),
        'x[*s] -> y[] if mode == "sum" else [*s]',
    ),
    (scales, "x[*s, *t], w[*t] -> y[*s, *ones(t)]"),
    (blocks, "x[*s, n] -> y[*s, ceildiv(n, 64)]"),
    (normalized, "x[*s] -> y[*s[:axis], *ones(s[axis:])]"),
    (lambda i, a: (i[0].shape * 2, i[0].dtype), "x[*s] -> y[*s, *s]: x"),
    (
        lambda i, a: ((-(-math.prod(i[0].shape) // 128) * 16,), DataType.INT8),
        "x[*s] -> y[ceildiv(prod(s), 128) * 16]: int8",
    ),
    (lambda i, a: ((62, 31), i[0].dtype), "x[*s] -> y[62, 31]: x"),
    (lambda i, a: ((*i[0].shape, 24), i[0].dtype), "x[*s] -> y[*s, 24]: x"),
    (
        lambda i, a: ((*i[0].shape, 512 if a["flag"] else 48), i[0].dtype),
        "x[*s] -> y[*s, 512]: x if flag else [*s, 48]: x",
    ),
]


@pytest.mark.parametrize(("answer", "relation"), CASES)
def test_the_relation_that_a_function_follows_is_found(answer: Answer, relation: str) -> None:
    found = infer_from_function(function(answer), isolated=False).relation
    wanted = parse_relation(relation)
    assert not agreement(wanted, function(answer), 40, seed=3).differing
    assert str(found) == str(wanted) or not agreement(found, function(answer), 100, seed=4).differing


(POOLED,) = parse_text("""
    REG_OP(PooledOp)
        .INPUT(x, TensorType({DT_DOUBLE, DT_INT8, DT_FLOAT16, DT_FLOAT}))
        .OUTPUT(y, TensorType({DT_DOUBLE, DT_INT8, DT_FLOAT16, DT_FLOAT}))
        .OUTPUT(indices, TensorType({DT_INT32}))
        .OUTPUT(scale, TensorType({DT_FLOAT}))
        .REQUIRED_ATTR(ksize, ListInt)
        .ATTR(count, Int, 1)
        .ATTR(data_format, String, "NHWC")
        .OP_END_FACTORY_REG(PooledOp)
""").prototypes


def test_lists_of_the_length_and_dtypes_that_a_function_takes_are_drawn() -> None:
    def pool(inputs: Sequence[Any], attrs: Mapping[str, Any]) -> list[InferredOutput | None]:
        shape, dtype = inputs[0].shape, inputs[0].dtype
        if len(attrs["ksize"]) != 4 or attrs["data_format"] != "NHWC":
            raise ShapeFunctionError("ksize or data_format")
        if dtype not in (DataType.FLOAT, DataType.FLOAT16):
            raise ShapeFunctionError("dtype")
        if attrs["count"] < 0:
            raise ShapeFunctionError("count")
        counts = InferredOutput((*shape, attrs["count"]), DataType.INT32)
        return [InferredOutput(shape, dtype), counts, InferredOutput((), DataType.FLOAT)]

    asked = ShapeFunction(POOLED, "the function", pool, ("NHWC", "NCHW"))
    found = infer_from_function(asked, isolated=False).relation
    outputs, _, conditions = str(found).partition(" where ")
    assert outputs == "x[*s] -> y[*s], indices[*s, count]: int32, scale[]: float32"
    assert conditions == 'data_format == "NHWC", count >= 0'


@pytest.mark.parametrize(
    ("fits", "relation"),
    [
        (lambda bias, n: bias == (n,), "x[m, k], w[k, n], bias[n] -> y[m, n]: x"),
        (lambda bias, n: bias == (1, n), "x[m, k], w[k, n], bias[1, n] -> y[m, n]: x"),
        (lambda bias, n: bias in ((n,), (1, n)), "x[m, k], w[k, n] -> y[m, n]: x"),
        (lambda bias, n: bias in ((n,), (1,)), "x[m, k], w[k, n] -> y[m, n]: x"),
        (lambda bias, n: True, "x[m, k], w[k, n] -> y[m, n]: x"),
    ],
)
def test_an_optional_input_that_is_refused_in_all_shapes_but_one_is_in_the_relation(
    fits: Callable[..., bool], relation: str
) -> None:
    def biased(inputs: Sequence[Any], attrs: Mapping[str, Any]) -> tuple[tuple[int, ...], DataType | None]:
        shape, dtype = matmul(inputs, attrs)
        if inputs[2] is not None and not fits(inputs[2].shape, shape[1]):
            raise ShapeFunctionError("bias does not fit")
        return shape, dtype

    found = infer_from_function(function(biased), isolated=False).relation
    wanted = parse_relation(relation)
    assert [len(str(t).split(",")) for t in found.input_tensors] == [
        len(str(t).split(",")) for t in wanted.input_tensors
    ]
    assert not agreement(found, function(biased), 100, seed=4).differing


def test_a_number_that_is_not_one_of_a_dtype_is_refused() -> None:
    with pytest.raises(
        ShapeFunctionError, match="InferDataType makes the dtype of output 0 72, which is not a number of"
    ):
        calls.specs_of([[72, 1, 4]], "InferDataType")


def test_new_dimensions_at_a_list_of_axes_are_found() -> None:
    (prototype,) = parse_text("""
        REG_OP(Widened).INPUT(x, TensorType({DT_FLOAT})).OUTPUT(y, TensorType({DT_FLOAT})).ATTR(axes, ListInt, {})
            .OP_END_FACTORY_REG(Widened)
    """).prototypes

    def widened(inputs: Sequence[Any], attrs: Mapping[str, Any]) -> list[InferredOutput | None]:
        rank = len(inputs[0].shape) + len(attrs["axes"])
        places = {axis % max(rank, 1) for axis in attrs["axes"]}
        if len(places) != len(attrs["axes"]) or not all(-rank <= axis < rank for axis in attrs["axes"]):
            raise ShapeFunctionError("axes")
        sizes = iter(inputs[0].shape)
        return [InferredOutput(tuple(1 if n in places else next(sizes) for n in range(rank)), DataType.FLOAT)]

    found = infer_from_function(ShapeFunction(prototype, "the function", widened, ()), isolated=False)
    assert str(found.relation) == "x[*s] -> y[*s, *ones(axes)@axes]"


(LISTED,) = parse_text("""
    REG_OP(ListedOp)
        .DYNAMIC_INPUT(x, TensorType({DT_FLOAT}))
        .OUTPUT(y, TensorType({DT_FLOAT}))
        .OP_END_FACTORY_REG(ListedOp)
""").prototypes


@pytest.mark.parametrize(
    ("fits", "relation"),
    [(False, "x[i][*s[i]] -> y[1]"), (True, "x[i][*s] -> y[1]")],
)
def test_the_tensors_of_a_list_have_shapes_of_their_own_unless_the_function_refuses_them(
    fits: bool, relation: str
) -> None:
    def call(inputs: Sequence[Any], attrs: Mapping[str, Any]) -> list[InferredOutput | None]:
        if fits and len({one.shape for one in inputs[0]}) > 1:
            raise ShapeFunctionError("x has several shapes")
        return [InferredOutput((1,), DataType.FLOAT)]

    asked = ShapeFunction(LISTED, "the function", call, ())
    found = infer_from_function(asked, isolated=False).relation
    assert str(found) == relation


def test_a_relation_of_fewer_dimensions_than_the_function_takes_is_refused() -> None:
    """A function that reads sizes without asking for the rank is no such one."""

    def rows(inputs: Sequence[Any], attrs: Mapping[str, Any]) -> tuple[tuple[int, ...], DataType | None]:
        x, w, _ = inputs
        if len(x.shape) not in (1, 3) or len(w.shape) != 1:
            raise ShapeFunctionError("ranks")
        return (w.shape[0], *x.shape[1:2], *x.shape[1:]), x.dtype

    narrow = parse_relation("x[m], w[n] -> y[n]: x")
    assert (
        input_with_more_dimensions(narrow, function(lambda i, a: ((i[1].shape[0], *i[0].shape[1:]), i[0].dtype))) == "x"
    )
    assert input_with_more_dimensions(narrow, function(lambda i, a: (i[1].shape[:1], i[0].dtype))) == ""
    assert input_with_more_dimensions(narrow, function(rows)) == ""


def test_a_relation_that_ties_sizes_which_a_function_tells_apart_is_refused() -> None:
    """A function that reads the size of one input, and does not look at the others, is no such one."""
    tied = parse_relation("x[m, k], w[k, n] -> y[k, m]: x")
    assert size_of_its_own(tied, function(lambda i, a: ((i[1].shape[0], i[0].shape[0]), i[0].dtype))) == ""
    apart = function(lambda i, a: ((i[1].shape[0], *i[0].shape), i[0].dtype))
    assert size_of_its_own(parse_relation("x[m, k], w[k, n] -> y[k, m, k]: x"), apart) == "w"
    assert size_of_its_own(parse_relation("x[m, k], w[k, n] -> y[m, n]: x"), function(matmul)) == ""


def test_a_condition_that_a_function_does_not_have_is_refused() -> None:
    def even(inputs: Sequence[Any], attrs: Mapping[str, Any]) -> tuple[tuple[int, ...], DataType | None]:
        if len(inputs[0].shape) != 2 or inputs[0].shape[1] % 2:
            raise ShapeFunctionError("odd")
        return inputs[0].shape, inputs[0].dtype

    def alike(inputs: Sequence[Any], attrs: Mapping[str, Any]) -> tuple[tuple[int, ...], DataType | None]:
        x, w = inputs[0].shape, inputs[1].shape
        if len(x) != 2 or len(w) != 2 or (x != w and x[1] != 1):
            raise ShapeFunctionError("x and w do not fit")
        return w, inputs[0].dtype

    relation = parse_relation("x[m, k] -> y[m, k] where k % 2 == 0")
    assert needless_condition(relation, function(even)) == ""
    assert needless_condition(relation, function(lambda i, a: (i[0].shape, i[0].dtype))) == "k % 2 == 0"
    assert needless_condition(parse_relation("x[m, k] -> y[m, h] where h = k, k % 2 == 0"), function(even)) == ""
    chance = parse_relation("x[m, k], w[m, n] -> y[m, n]: x where k == 1")
    assert needless_condition(chance, function(alike)) == "k == 1"


def test_a_text_that_allows_few_inputs_is_compared_apart() -> None:
    def fused(inputs: Sequence[Any], attrs: Mapping[str, Any]) -> tuple[tuple[int, ...], DataType | None]:
        shape = inputs[0].shape
        if attrs["mode"] == "swiglu":
            if len(shape) != 3 or shape[0] != 2:
                raise ShapeFunctionError("the first of three dimensions must be 2")
            return shape[1:], inputs[0].dtype
        return shape, inputs[0].dtype

    asked = function(fused, texts=("keep", "swiglu"))
    assert agreement(parse_relation("x[*s] -> y[*s]"), asked, 20, {"mode": "swiglu"}).differing
    found = infer_from_function(asked, isolated=False).relation
    assert not agreement(found, asked, 20, {"mode": "swiglu"}).differing


def test_leading_sizes_that_are_read_whatever_the_rank_is_leave_it_open() -> None:
    def gathered(inputs: Sequence[Any], attrs: Mapping[str, Any]) -> tuple[tuple[int, ...], DataType | None]:
        x, w, bias = inputs
        if len(x.shape) < 2 or not w.shape or (bias is not None and not bias.shape):
            raise ShapeFunctionError("rank")
        return ((w if bias is None else bias).shape[0], x.shape[1]), x.dtype

    found = infer_from_function(function(gathered), isolated=False).relation
    assert str(found) == "x[m, n, *s], w[k, *t], bias[d, *u] -> y[d, n] if bias else [k, n]"
    checked = agreement(found, function(gathered), 200, seed=4)
    assert (checked.differing, checked.refused_by_relation) == ((), 0)


def test_an_input_whose_absence_changes_the_answer_is_in_a_condition() -> None:
    def scaled(inputs: Sequence[Any], attrs: Mapping[str, Any]) -> tuple[tuple[int, ...], DataType | None]:
        x, _, bias = inputs
        return x.shape if bias is None else (*bias.shape, 3), x.dtype

    found = infer_from_function(function(scaled), isolated=False).relation
    assert str(found) == "x[*s], bias[*t] -> y[*t, 3] if bias else [*s]"
    checked = agreement(found, function(scaled), 200, seed=4)
    assert (checked.differing, checked.refused_by_relation) == ((), 0)


def test_relations_with_and_without_an_input_join_where_they_say_the_same_of_the_others() -> None:
    given = parse_relation("x[n, m], a[*s], b[*t] -> y[n], da[*s]: a, db[*t]: b where n >= 2")
    found = with_absence(
        given,
        ["a", "b"],
        {
            "a": parse_relation("x[c, d], b[*s] -> y[c], da[], db[*s]: b where c >= 2"),
            "b": parse_relation("x[k, h], a[*u] -> y[k], da[*u]: a, db[0]: int32 where h >= 2"),
        }.__getitem__,
    )
    assert str(found) == (
        "x[n, m], a[*s], b[*t] -> y[n], da[*s]: a if a else []: x, db[*t]: b if b else [0]: int32 "
        "where not b or n >= 2, b or m >= 2"
    )
    for other, why in (
        ("x[c], b[*s] -> y[c], da[], db[*s]: b", "x has other sizes"),
        ("x[c, c], b[*s] -> y[c], da[], db[*s]: b", "x has other sizes"),
        ("x[c, d] -> y[c], da[], db[]", "they have other inputs"),
    ):
        with pytest.raises(InferenceError, match=f"do not join: .*({why}).*; write shape="):
            with_absence(given, ["a"], lambda name, other=other: parse_relation(other))


def test_inputs_that_mean_nothing_to_a_function_are_no_fault_of_it() -> None:
    """As InferShape functions do: the last dimension is set whatever the rank is, to an attr whatever it is."""

    def groups(inputs: Sequence[Any], attrs: Mapping[str, Any]) -> tuple[tuple[int, ...], DataType | None]:
        if attrs["axis"] < 0:
            raise ShapeFunctionError("AskedOp: the InferShape function left dimension 0 of output y unknown")
        return (*inputs[0].shape[:-1], attrs["axis"])[: len(inputs[0].shape)], inputs[0].dtype

    found = infer_from_function(function(groups))
    assert str(found.relation) == "x[*s, n] -> y[*s, axis] where axis >= 0"
    assert found.notes == ()


@pytest.mark.parametrize(
    ("text", "crashed"),
    [
        ("Op: the InferShape function returned GRAPH_FAILED", False),
        ("Op: the InferShape function left dimension 1 of output y unknown; every input shape is known here", False),
        ("Op: no kernel takes x: float32, y: float16; the definition has x: float32, y: float32", False),
        ("Op: the InferShape function accesses memory through a null pointer", True),
    ],
)
def test_a_crash_of_a_package_is_told_from_a_refusal(monkeypatch: pytest.MonkeyPatch, text: str, crashed: bool) -> None:
    monkeypatch.setattr(calls, "recent_error", lambda: text)
    assert (str(calls.recent_failure()), calls.recent_failure().crashed) == (text, crashed)


def test_a_function_that_answers_nothing_is_quoted() -> None:
    def refuse(inputs: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
        raise ShapeFunctionError("AskedOp: the InferShape function returned GRAPH_FAILED")

    with pytest.raises(InferenceError, match="(?s)give shape=: .*the InferShape function returned GRAPH_FAILED"):
        infer_from_function(function(refuse))


def test_a_fork_answers_after_relations_were_evaluated() -> None:
    for text in ("->", "x[*s] -> y[*s]"):  # evaluated relations hold closures, and equal texts are one object
        parse_relation(text).infer({"x": (2,)} if "x" in text else {}, {}, {})
    found = infer_from_function(function(lambda i, a: (i[0].shape, i[0].dtype)))
    assert str(found.relation) == "x[*s] -> y[*s]"


def test_inputs_and_attrs_that_change_nothing_have_no_part_in_the_relation() -> None:
    found = infer_from_function(function(lambda i, a: (i[0].shape, i[0].dtype)))
    assert str(found.relation) == "x[*s] -> y[*s]"
    assert found.runs > 50


def test_a_function_that_changes_its_answer_is_named_with_the_call() -> None:
    numbers = itertools.count()
    with pytest.raises(InferenceError, match="the function must be deterministic: of x\\[.*it made"):
        infer_from_function(function(lambda i, a: ((next(numbers),), i[0].dtype)))


def test_a_relation_of_the_few_calls_with_known_sizes_says_what_it_leaves_out() -> None:
    def unknown(inputs: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
        if inputs[0].shape:
            raise ShapeFunctionError("InferShape made a negative size: output 0 is [-3]", by_value=True)
        return inputs[0].shape, inputs[0].dtype

    found = infer_from_function(function(unknown))
    assert str(found.relation) == "x[] -> y[]"
    assert found.limits[-1].startswith("of x[")
    assert found.limits[-1].endswith("] InferShape made a negative size: output 0 is [-3]")


def test_what_a_function_logs_is_not_shown(capfd: pytest.CaptureFixture[str]) -> None:
    def logging(inputs: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
        os.write(1, b"Begin to do InferShape\n")
        os.write(2, b"End to do InferShape\n")
        return inputs[0].shape, inputs[0].dtype

    assert str(infer_from_function(function(logging)).relation) == "x[*s] -> y[*s]"
    assert capfd.readouterr() == ("", "")


def test_a_function_that_ends_the_process_is_named_with_the_call() -> None:
    def crash(inputs: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
        if attrs["axis"] == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return inputs[0].shape, inputs[0].dtype

    with pytest.raises(InferenceError, match="the function ended the process by SIGKILL of x\\[.*axis=2"):
        infer_from_function(function(crash))


def test_a_function_that_hangs_is_named_with_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    def hang(inputs: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
        if len(inputs[0].shape) == 3:
            time.sleep(60)
        return inputs[0].shape, inputs[0].dtype

    monkeypatch.setattr(isolation, "ANSWER_LIMIT", 0.2)
    with pytest.raises(InferenceError, match=r"the function did not answer in time of x\[\d+, \d+, \d+\]"):
        infer_from_function(function(hang))


def test_texts_whose_dtypes_torch_lacks_are_left_out_of_the_relation() -> None:
    dtypes = {"keep": DataType.FLOAT, "eight": DataType.INT8, "half": DataType.FLOAT16, "hif": DataType.HIFLOAT8}

    def typed(inputs: Sequence[Any], attrs: Mapping[str, Any]) -> tuple[tuple[int, ...], DataType | None]:
        return inputs[0].shape, dtypes.get(attrs["mode"], DataType.INT32)

    found = infer_from_function(function(typed, texts=("eight", "half", "hif")), isolated=False)
    assert str(found.relation).startswith(
        'x[*s] -> y[*s]: float32 if mode == "keep" else [*s]: int8 if mode == "eight"'
    )
    assert str(found.relation).endswith('where mode in ("keep", "eight", "half", "other")')
    assert found.limits == ('the relation does not take mode="hif"',)
    assert found.notes == ()  # the function is called with texts alone


def test_a_search_ends_after_a_number_of_calls() -> None:
    """The number of calls is the same on every machine, and so is what is found."""
    asked: list[Any] = []

    def answer(inputs: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
        asked.append(1)
        return matmul(inputs, attrs)

    counts = []
    for _ in range(2):
        asked.clear()
        with pytest.raises(InferenceError, match="AskedOp: the search took too long; write shape="):
            infer_from_function(function(answer), isolated=False, call_limit=40)
        counts.append(len(asked))
    asked.clear()
    infer_from_function(function(answer), isolated=False)
    assert counts[0] == counts[1] < len(asked)


def test_a_function_that_hangs_for_scalars_is_asked_without_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """As one that sets dimensions while there are fewer than the input has, less one, of an unsigned number."""

    def hang(inputs: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
        if not inputs[0].shape:
            time.sleep(60)
        return inputs[0].shape[:-1], inputs[0].dtype

    monkeypatch.setattr(isolation, "ANSWER_LIMIT", 0.2)
    found = infer_from_function(function(hang))
    assert str(found.relation) == "x[*s, n] -> y[*s]"
    assert found.notes == ("the function does not answer a scalar x in time",)
    assert not found.answers_all


def test_a_function_that_hangs_where_one_input_has_more_dimensions_is_asked_of_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As one that takes the number of dimensions of one from that of another, unsigned."""

    def hang(inputs: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
        x, w, _ = inputs
        if len(w.shape) > len(x.shape):
            time.sleep(60)
        return x.shape, x.dtype

    monkeypatch.setattr(isolation, "ANSWER_LIMIT", 0.2)
    found = infer_from_function(function(hang))
    assert str(found.relation) == "x[*s, n], w[*t] -> y[*s, n] where rank(x) >= rank(w)"
    assert found.notes == ("the function does not answer w with more dimensions than x in time",)
    assert not isolated_agreement(found.relation, function(hang), 40, seed=2).differing


def test_a_scalar_that_is_set_is_one() -> None:
    assert str(infer_from_function(function(lambda i, a: ((), i[0].dtype)), isolated=False).relation) == "x[*s] -> y[]"


def test_the_attr_n_beside_a_list_is_its_length() -> None:
    (prototype,) = parse_text(
        """
        REG_OP(Summed)
            .DYNAMIC_INPUT(x, TensorType({DT_FLOAT}))
            .OUTPUT(y, TensorType({DT_FLOAT}))
            .REQUIRED_ATTR(N, Int)
            .OP_END_FACTORY_REG(Summed)
        """
    ).prototypes

    def call(inputs: Sequence[Any], attrs: Mapping[str, Any]) -> list[InferredOutput | None]:
        assert attrs["N"] == len(inputs[0])
        if len({one.shape for one in inputs[0]}) > 1:
            raise ShapeFunctionError("shapes")
        return [InferredOutput(inputs[0][0].shape, inputs[0][0].dtype)]

    found = infer_from_function(ShapeFunction(prototype, "the function", call), isolated=False)
    assert str(found.relation) == "x[i][*s] -> y[*s]"


def only_the_default(inputs: Sequence[Any], attrs: Mapping[str, Any]) -> tuple[tuple[int, ...], DataType | None]:
    """As functions that take some numbers of dtypes, which nothing tells."""
    if attrs["axis"] not in (0, 36):
        raise ShapeFunctionError("axis")
    return (*inputs[0].shape, attrs["axis"] + 1), inputs[0].dtype


@pytest.mark.parametrize(
    ("answer", "options", "message"),
    [
        (lambda i, a: ((), i[0].dtype, False), {}, "does not set the shape of output y"),
        (lambda i, a: (i[0].shape, i[0].dtype), {"data_inputs": ("w",)}, "reads the values of w"),
        (only_the_default, {}, "says nothing of another axis"),
        (
            lambda i, a: ((sum(n * n * n for n in i[0].shape) + 7,), i[0].dtype),
            {},
            "no shape relation explains the function",
        ),
        (
            lambda i, a: (i[0].shape if len(i[0].shape) == 3 else (sum(i[0].shape) ** 2 + 7,), i[0].dtype),
            {},
            "refuses most of the inputs that the function answers|no shape relation explains the function",
        ),
    ],
)
def test_what_no_relation_explains_is_refused(answer: Answer, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InferenceError, match=message):
        infer_from_function(function(answer, **options), isolated=False)


def test_differences_are_told_with_both_answers() -> None:
    found = agreement(
        parse_relation("x[*s] -> y[*s]"), function(lambda i, a: ((*i[0].shape, 1), i[0].dtype)), 20
    ).differing
    assert "the relation makes y [" in found[0]
    assert "the function [" in found[0]
