"""Relations found by running kernels: the right one, or a refusal that says why."""

from __future__ import annotations

import ctypes
import os
import random
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from ascend_graph.inference import (
    InferenceError,
    NarrowRelationWarning,
    infer_overload,
    infer_relation,
    signature_of,
)
from ascend_graph.inference.domains import domains
from ascend_graph.inference.solver import Observation, Solver
from ascend_graph.shapes import ShapeError, parse_relation
from ascend_graph.shapes.samples import RelationSampleError, sample

pytestmark = pytest.mark.filterwarnings("ignore:.*:UserWarning")


@pytest.fixture
def define() -> Iterator[Callable[..., Any]]:
    library = torch.library.Library("inferred", "FRAGMENT")

    def make(schema: str, kernel: Callable[..., Any]) -> Any:
        name = schema.split("(", maxsplit=1)[0]
        library.define(schema)
        library.impl(name, kernel, "CPU")
        return getattr(torch.ops.inferred, name).default

    yield make
    library._destroy()


@pytest.mark.parametrize(
    ("op", "relation"),
    [
        ("relu", "self[*s] -> out0 like self"),
        ("sin", "self[*s] -> out0 like self: floating(self)"),
        ("eq.Tensor", "self[...], other[...] -> out0[...]: bool"),
        ("add.Tensor", "self[...], other[...] -> out0[...]: promote(self, other)"),
        ("mm", "self[m, k], mat2[k, n] -> out0[m, n]"),
        ("bmm", "self[b, m, k], mat2[b, k, n] -> out0[b, m, n]"),
        ("argmax", None),
        (
            "max.dim",
            (
                "self[*s, n@dim] -> out0[*s, 1@dim] if keepdim else [*s], out1[*s, 1@dim]: int64 if keepdim else [*s]: "
                "int64"
            ),
        ),
        ("cat", "tensors[i][*s, n[i]@dim]: T -> out0[*s, sum(n)@dim]"),
        ("stack", "tensors[i][*s]: T -> out0[*s, len(tensors)@dim]"),
        ("flip", "self[*s] -> out0 like self"),
        ("amax", None),
        ("embedding", "weight[n, d], indices[*t] -> out0[*t, d]"),
        ("index_select", "self[*s, n@dim], index[k] -> out0[*s, k@dim]"),
        ("outer", "self[m], vec2[n] -> out0[m, n]: promote(self, vec2)"),
    ],
)
def test_relations_that_are_found(op: str, relation: str | None) -> None:
    name, _, overload = op.partition(".")
    function = getattr(getattr(torch.ops.aten, name), overload or "default")
    found = infer_relation(function, function._schema)
    if relation is not None:
        assert found.relation == parse_relation(relation)
    assert str(found).splitlines()[0] == f'shape="{found.relation}"'
    assert found.runs > 20


def test_what_was_not_tried_is_not_claimed(define: Callable[..., Any]) -> None:
    def kernel(x: torch.Tensor, mode: str = "full") -> torch.Tensor:
        return x.sum() if mode == "sum" else x.clone()

    found = infer_overload(define('reduce(Tensor x, str mode="full") -> Tensor', kernel))
    assert found.relation == parse_relation('x[*s] -> out0 like x where mode == "full"')
    with pytest.raises(ShapeError, match='mode == "full" must hold'):
        found.relation.infer({"x": (3,)}, {"x": "float32"}, {"mode": "sum"})


def test_a_negative_number_that_never_ran_is_not_claimed(define: Callable[..., Any]) -> None:
    def kernel(x: torch.Tensor, more: int = 0) -> torch.Tensor:
        if more < 0:
            raise ValueError("more is at least 0")
        return x.new_zeros(x.numel() + more)

    found = infer_overload(define("grown(Tensor x, int more=0) -> Tensor", kernel))
    assert str(found.relation).endswith("where more >= 0")
    with pytest.raises(InferenceError, match="no candidate explains output 0"):
        infer_overload(define("apart(Tensor x, int more=0) -> Tensor", lambda x, more=0: x.new_zeros(x.dim() ^ more)))


def test_an_optional_input_that_changes_nothing_may_be_there(define: Callable[..., Any]) -> None:
    def kernel(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor | None = None) -> torch.Tensor:
        return torch.nn.functional.linear(x, w, b)

    found = infer_overload(define("dense(Tensor x, Tensor w, Tensor? b=None) -> Tensor", kernel))
    assert "b is None" not in str(found.relation)
    shapes, dtypes = {"x": (2, 3), "w": (5, 3)}, {"x": "float32", "w": "float32"}
    assert found.relation.infer(shapes, dtypes, {}) == (((2, 5), "float32"),)


def test_a_kernel_that_crashes_is_an_error_not_the_end(define: Callable[..., Any]) -> None:
    def kernel(x: torch.Tensor) -> torch.Tensor:
        ctypes.string_at(0)
        return x.clone()

    overload = define("crash(Tensor x) -> Tensor", kernel)
    with pytest.raises(InferenceError, match=r"inferred::crash crashed the process it ran in \(SIGSEGV\) for"):
        infer_overload(overload)


def test_a_kernel_that_ends_its_process(define: Callable[..., Any]) -> None:
    overload = define("leave(Tensor x) -> Tensor", lambda x: os._exit(3))
    with pytest.raises(InferenceError, match="exit code 3"):
        infer_overload(overload)


@pytest.mark.slow
def test_strides_of_the_kernel_are_carried_or_named(define: Callable[..., Any]) -> None:
    kept = infer_overload(define("kept(Tensor x, Tensor w) -> Tensor", lambda x, w: w.clone()))
    assert str(kept.relation).startswith("x[*s], w[*t] -> out0 like w")
    packed = infer_overload(define("packed(Tensor x) -> Tensor", lambda x: x.contiguous().clone()))
    assert packed.relation == parse_relation("x[*s] -> out0[*s]")
    turned = infer_overload(define("turned(Tensor x, Tensor y) -> Tensor", lambda x, y: (y.t() @ x.t()).t()))
    assert turned.relation == parse_relation("x[m, k], y[k, n] -> out0[m, n]")
    assert turned.notes[0].startswith("the strides of out0 are not always contiguous: (1, ")
    assert "# the strides of out0" in str(turned)


def test_a_relation_narrower_than_the_kernel_is_not_silent(define: Callable[..., Any]) -> None:
    def kernel(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        if x.dim() == w.dim() == 1 and x.shape != w.shape:
            return x.new_zeros(x.shape[0] ** 2 % 7 + w.shape[0] ** 3 % 5)
        return x + w

    overload = define("odd_pair(Tensor x, Tensor w) -> Tensor", kernel)
    with pytest.warns(NarrowRelationWarning, match="narrower than the kernel, which also runs on"):
        found = infer_overload(overload)
    assert found.narrow


@pytest.mark.parametrize("count", [3, 4, 6])
def test_inputs_that_say_nothing_of_the_output_have_any_shape(define: Callable[..., Any], count: int) -> None:
    names = [f"x{number}" for number in range(count)]
    schema = f"first_of_{count}({', '.join(f'Tensor {name}' for name in names)}) -> Tensor"
    overload = define(schema, lambda x, *_: x.clone())
    for seed in range(6):
        groups = zip(names, "stuvwp"[:count], strict=True)
        inputs = ", ".join(f"{name}[*{group}]" for name, group in groups)
        assert str(infer_overload(overload, seed=seed).relation) == f"{inputs} -> out0 like x0"


def test_dtype_attrs(define: Callable[..., Any]) -> None:
    cast = infer_overload(
        define("cast(Tensor x, *, ScalarType dtype) -> Tensor", lambda x, *, dtype: x.to(dtype, copy=True))
    )
    assert cast.relation == parse_relation("x[*s] -> out0 like x: dtype")
    maybe = infer_overload(
        define(
            "maybe_cast(Tensor x, *, ScalarType? dtype=None) -> Tensor",
            lambda x, *, dtype=None: x.clone() if dtype is None else x.to(dtype, copy=True),
        )
    )
    assert maybe.relation == parse_relation("x[*s] -> out0 like x: x if dtype is None else dtype")


def test_declared_aliases_need_no_run() -> None:
    function = torch.ops.aten.relu_.default
    found = infer_relation(function, function._schema)
    assert (found.relation, found.runs) == (parse_relation("self -> self"), 0)


def test_an_operator_with_a_meta_function_is_left_alone() -> None:
    with pytest.raises(InferenceError, match=r"mm\.default has a meta function already"):
        infer_overload(torch.ops.aten.mm.default)


def test_a_shape_that_depends_on_values_is_refused() -> None:
    function = torch.ops.aten.nonzero.default
    with pytest.raises(InferenceError, match="no shape relation was found for aten::nonzero"):
        infer_relation(function, function._schema)


def test_a_refusal_shows_what_was_tried(define: Callable[..., Any]) -> None:
    def kernel(x: torch.Tensor) -> torch.Tensor:
        return x.new_zeros(x.numel() ** 2 % 7 + x.dim())

    with pytest.raises(InferenceError) as caught:
        infer_overload(define("odd(Tensor x) -> Tensor", kernel))
    text = str(caught.value)
    assert "x[*s]" in text
    assert "no candidate explains output 0" in text
    assert 'write shape="x[…] -> out0[…]"' in text
    assert "samples=" in text
    with pytest.raises(InferenceError, match=r"x\[\*s\], w\[\*t\](.|\n)*x\[…\], w\[…\] -> out0"):
        infer_overload(define("odder(Tensor x, Tensor w) -> Tensor", lambda x, w: kernel(x) + kernel(w)[:1]))


def failing(kind: str) -> Callable[..., Any]:
    def kernel(x: torch.Tensor) -> Any:
        if kind == "raise":
            raise ValueError("bad input")
        if kind == "alias":
            return x
        if kind == "hang":
            time.sleep(1.5)
        return (x.clone(), x.clone(), x.clone()) if kind == "count" else 1

    return kernel


@pytest.mark.parametrize(
    ("kind", "match"),
    [
        ("raise", "no input ran\n  the last error of the kernel: ValueError: bad input"),
        ("alias", "output 0 of inferred::bad is an alias of its input x, which the schema does not declare"),
        ("count", r"returned 3 output\(s\); expected 1 by its schema"),
        ("type", "returned int as output 0; expected a tensor"),
        ("hang", "did not return within 0.2 s for"),
    ],
)
def test_kernels_that_misbehave(define: Callable[..., Any], kind: str, match: str) -> None:
    overload = define("bad(Tensor x) -> Tensor", lambda x: x)
    with pytest.raises(InferenceError, match=match):
        infer_relation(failing(kind), overload._schema, time_limit=0.2)


def test_samples_instead_of_random_inputs(define: Callable[..., Any]) -> None:
    def kernel(x: torch.Tensor) -> torch.Tensor:
        if x.shape[-1] % 8:
            raise ValueError("the last dimension must be a multiple of 8")
        return x[..., ::2].clone()

    overload = define("halved(Tensor x) -> Tensor", kernel)
    samples = [((torch.ones(shape),), {}) for shape in ((3, 8), (5, 16), (2, 7, 24), (48,))]
    found = infer_overload(overload, samples=samples)
    assert found.relation == parse_relation("x[*s, n] -> out0[*s, n // 2]")
    with pytest.raises(InferenceError, match=r"2 sample\(s\) say too little"):
        infer_overload(overload, samples=samples[:2])
    with pytest.raises(InferenceError, match="raised for a sample: ValueError"):
        infer_overload(overload, samples=[((torch.ones(3),), {})])


def test_samples_of_arguments_named_like_dimensions(define: Callable[..., Any]) -> None:
    overload = define("tied(Tensor n, Tensor w, *, int k) -> Tensor", lambda n, w, *, k: (n @ w).repeat(1, k))
    samples = [
        ((torch.ones(a, b), torch.ones(b, c)), {"k": k}) for a, b, c, k in ((2, 3, 5, 2), (7, 4, 9, 1), (3, 8, 2, 3))
    ]
    found = infer_overload(overload, samples=samples)
    specs = found.relation.infer({"n": (2, 3), "w": (3, 5)}, {"n": "float32", "w": "float32"}, {"k": 2})
    assert specs == (((2, 10), "float32"),)


def test_a_schema_that_returns_numbers(define: Callable[..., Any]) -> None:
    overload = define("count(Tensor x) -> int", lambda x: 3)
    with pytest.raises(InferenceError, match="returns int; expected tensors only"):
        infer_overload(overload)


def test_arguments_named_like_dimensions(define: Callable[..., Any]) -> None:
    overload = define("named(Tensor n, Tensor s, *, int k=1) -> Tensor", lambda n, s, *, k=1: (n @ s).repeat(1, k))
    found = infer_overload(overload)
    specs = found.relation.infer({"n": (2, 3), "s": (3, 5)}, {"n": "float32", "s": "float32"}, {"k": 2})
    assert specs == (((2, 10), "float32"),)


def everyday(name: str) -> Any:
    """One of the operators of ``benchmarks/data/everyday.py``."""
    from benchmarks.data.everyday import OPERATORS

    return next(op for op in OPERATORS if op.name == name)


@pytest.mark.parametrize(
    ("name", "relation"),
    [
        ("rotate_half", "x[*s, n] -> out0[*s, n] where n % 2 == 0"),
        ("pad_to_multiple", "x[*s, n] -> out0[*s, ceildiv(n, multiple) * multiple] where multiple >= 1"),
        ("rms_norm_any", "x[*s, *t, n], gamma[*t, n] -> out0 like x, out1[*s, *ones(t), 1]: float32"),
        ("flatten_from", "x[*s] -> out0[*s[:start], prod(s[start:])] where start >= 0"),
        ("token_loss", "logits[n, m], target[n] -> out0[n]: float32"),
        ("append_cache", "cache[n, m, k, d], new[n, m, c, d] -> out0[n, m, k + c, d]: promote(cache, new)"),
        ("head_scale", "x[n, m, k, d], scale[m] -> out0 like x: promote(x, scale)"),
        ("grouped_linear", "x[*s, n * m], w[m, n, k] -> out0[*s, m * k]"),
        ("pack_nibbles", "x[*s, n] -> out0[*s, n // 2] where n % 2 == 0, dtype(x) in (int64, int32, uint8)"),
    ],
)
def test_structures_and_conditions_are_found_before_formulas(
    define: Callable[..., Any], name: str, relation: str
) -> None:
    op = everyday(name)
    found = infer_relation(op.kernel, define(op.schema, op.kernel)._schema)
    assert found.relation == parse_relation(relation)
    assert not found.narrow


def test_what_attrs_of_several_values_forbid_is_seen(define: Callable[..., Any]) -> None:
    """Conditions on an attr that hold for small sizes by chance are not left standing."""

    def kernel(x: torch.Tensor, start: int) -> torch.Tensor:
        if not 0 <= start < x.dim():
            raise ValueError("start is an axis")
        return x.flatten(start, min(start + 1, x.dim() - 1)).clone()

    with pytest.warns(NarrowRelationWarning):
        assert infer_relation(kernel, define("flatten_two(Tensor x, int start) -> Tensor", kernel)._schema).narrow


def test_a_kernel_that_returns_its_input_now_and_then(define: Callable[..., Any]) -> None:
    def kernel(x: torch.Tensor, times: int) -> torch.Tensor:
        if times < 1:
            raise ValueError("times is at least 1")
        return x if times == 1 else x.repeat_interleave(times, 0)

    found = infer_overload(define("now_and_then(Tensor x, int times) -> Tensor", kernel))
    assert "is an alias of its input x" in str(found)


def test_sizes_that_no_list_of_terms_has() -> None:
    from ascend_graph.inference.terms import terms_for

    n, p, k, s = (9, 14, 7, 12, 20), (1, 0, 2, 1, 3), (3, 4, 3, 5, 2), (2, 3, 1, 2, 4)
    window = tuple((a + 2 * b - c) // d + 1 for a, b, c, d in zip(n, p, k, s, strict=True))
    assert terms_for(window, {"n": n, "p": p, "k": k, "s": s}) == ["(n + 2 * p - k) // s + 1"]
    assert terms_for((2, 2, 2, 2, 2), {"n": n}) == []
    assert terms_for(tuple(8 * a // c for a, c in zip(n, k, strict=True)), {"n": n, "k": k}) == ["(8 * n) // k"]
    aligned = tuple(-(-a // 32) * 32 for a in (*n, 90, 41))
    assert terms_for(aligned, {"n": (*n, 90, 41)}) == ["ceildiv(n, 32) * 32"]


def test_sizes_that_attrs_make_negative_are_not_tried() -> None:
    relation = parse_relation("x[n] -> y[n] where n >= 0")
    assert sample(parse_relation("x[count] -> y[count]"), {"count": 2}, random.Random(0)).shapes == {"x": (2,)}
    with pytest.raises(RelationSampleError, match=r"x would have a negative size: \(-2,\)"):
        sample(parse_relation("x[count], w[n] -> y[n]"), {"count": -2}, random.Random(0))
    assert sample(relation, {}, random.Random(0)).shapes["x"][0] >= 0


@pytest.mark.slow
def test_same_seed_same_search() -> None:
    overload = torch.ops.aten.layer_norm.default
    found = [infer_relation(overload, overload._schema, seed=3) for _ in range(3)]
    assert len({(str(one.relation), one.runs) for one in found}) == 1


def test_what_a_solver_knows_of_an_observation_is_not_of_the_next() -> None:
    signature = signature_of(torch.ops.aten.relu.default._schema)
    solver = Solver(next(iter(domains(signature))), signature)
    for n in range(50):  # each is gone when the next is made, often in its place
        assert solver.value("y[numel(self)]", Observation({"self": (n, 2)}, {}, ())) == (2 * n,)
