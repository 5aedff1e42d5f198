"""Laws that hold for every relation: its text round-trips, symbolic sizes give what numbers give, errors are its
own."""

from __future__ import annotations

import contextlib
import random
import time
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, StatelessSymbolicContext

from ascend_graph.dispatch.meta import meta_function
from ascend_graph.shapes import RelationError, ShapeError, parse_relation
from ascend_graph.shapes.samples import RelationSampleError, sample

SCHEMA_ARGS = "Tensor x, Tensor w, Tensor? b=None, int dim=0, int[] dims=[0], int k=2, bool flag=False, str mode='a'"
ATTRS = ("dim", "dims", "k", "flag", "mode")

INPUTS = {
    "x[*s, n], w[k2, n]": ("n", "k2", "prod(s)", "rank(x)"),
    "x[..., m, n], w[..., n, p], b[p]": ("m", "n", "p", "prod(...)"),
    "x[*s, n@dim], w[n]": ("n", "numel(x)"),
    "x[*s, *r@dims], w[*s]": ("prod(r)", "prod(s)"),
    'x[m, n] if mode == "a" else [n, m], w[m]: (float32, int8)': ("m", "n"),
    "x[m, n]: T, w[n, 2 * m]: T, b[*t]": ("m", "n"),
}
GROUPS = {"*s": "*s", "...": "...", "*r@dims": "*ones(r)@dims"}


@st.composite
def relations(draw: st.DrawFn) -> str:
    """Texts of relations over the arguments of :data:`SCHEMA_ARGS`."""
    inputs = draw(st.sampled_from(sorted(INPUTS)))
    names = st.sampled_from([*INPUTS[inputs], "k", "1", "3"])
    sizes = st.recursive(
        names,
        lambda inner: st.one_of(
            st.tuples(inner, st.sampled_from(["+", "-", "*"]), inner).map(lambda t: f"({t[0]}) {t[1]} ({t[2]})"),
            st.tuples(inner, st.sampled_from(["//", "%"]), st.sampled_from(["2", "3", "k"])).map(
                lambda t: f"({t[0]}) {t[1]} {t[2]}"
            ),
            st.tuples(st.sampled_from(["min", "max", "ceildiv"]), inner, inner).map(
                lambda t: f"{t[0]}({t[1]}, {t[2]} + 1)"
            ),
            st.tuples(inner, inner).map(lambda t: f"({t[0]} if flag and not k == 3 else {t[1]})"),
        ),
        max_leaves=5,
    )
    dtypes = st.sampled_from(["", ": int8", ": promote(x, w)", ": w", ": floating(x)", ": float32 if flag else x"])
    groups = [group for key, group in GROUPS.items() if key in inputs]

    def shape() -> str:
        items = draw(st.lists(sizes, max_size=3)) + draw(
            st.lists(st.sampled_from(groups), max_size=1) if groups else st.just([])
        )
        return f"[{', '.join(draw(st.permutations(items)))}]"

    outputs = []
    for number in range(draw(st.integers(1, 2))):
        dtype = draw(dtypes)
        one = shape()
        two = f" if flag else {shape()}" if draw(st.booleans()) else ""
        outputs.append(draw(st.sampled_from([f"y{number}{one}{two}{dtype}", f"y{number} like x"])))
    where = draw(st.sampled_from(["", " where k >= 0", ' where q = k * 2, q < 40, mode in ("a", "b")']))
    return f"{inputs} -> {', '.join(outputs)}{where}"


def values(seed: int) -> dict[str, Any]:
    rng = random.Random(seed)
    dims = rng.choice([[0], [-1], [0, 1], []])
    return {
        "dim": rng.choice([0, -1, 1]),
        "dims": dims,
        "k": rng.choice([1, 2, 3]),
        "flag": rng.random() < 0.5,
        "mode": rng.choice("ab"),
    }


@given(relations(), st.integers(0, 10**6))
def test_a_relation_and_its_text_are_one(text: str, seed: int) -> None:
    relation = parse_relation(text)
    again = parse_relation(str(relation))
    assert again == relation
    attrs = values(seed)
    try:
        found = sample(relation, attrs, random.Random(seed), optional=["b"], tries=20)
    except (RelationSampleError, RelationError):
        return
    assert relation.infer(found.shapes, found.dtypes, attrs) == again.infer(found.shapes, found.dtypes, attrs)


HOSTILE = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=True),
    st.text(max_size=3),
    st.lists(st.one_of(st.none(), st.integers(-5, 5), st.text(max_size=1)), max_size=3),
)
SHAPE = st.lists(st.integers(0, 4), max_size=4).map(tuple)


@given(relations(), st.tuples(SHAPE, SHAPE, SHAPE | st.none()), st.tuples(HOSTILE, HOSTILE, HOSTILE, HOSTILE, HOSTILE))
def test_whatever_the_inputs_are_the_error_is_the_languages_own(text: str, shapes: Any, attrs: Any) -> None:
    relation = parse_relation(text)
    given_shapes = {name: shape for name, shape in zip("xwb", shapes, strict=True) if name in relation.inputs}
    with contextlib.suppress(ShapeError, RelationError):
        relation.infer(given_shapes, dict.fromkeys(given_shapes, "float16"), dict(zip(ATTRS, attrs, strict=True)))


@pytest.fixture(scope="module")
def library() -> Any:
    library = torch.library.Library("laws", "FRAGMENT")
    library.define(f"one({SCHEMA_ARGS}) -> Tensor")
    library.define(f"two({SCHEMA_ARGS}) -> (Tensor, Tensor)")
    yield library
    library._destroy()


@settings(max_examples=40, deadline=None)
@given(text=relations(), seed=st.integers(0, 10**6))
def test_symbolic_sizes_give_what_numbers_give(library: Any, text: str, seed: int) -> None:
    relation = parse_relation(text)
    overload = (torch.ops.laws.one if len(relation.outputs) == 1 else torch.ops.laws.two).default
    function, attrs = meta_function(relation, overload._schema), values(seed)
    try:
        found = sample(relation, attrs, random.Random(seed), optional=["b"], dtypes=["float16", "float32"], tries=20)
    except (RelationSampleError, RelationError):
        return
    wanted = relation.infer(found.shapes, found.dtypes, attrs)
    mode = FakeTensorMode(shape_env=ShapeEnv())

    def fake(name: str) -> Any:
        shape = found.shapes.get(name)
        if shape is None:
            return torch.empty(1) if name != "b" else None
        context = StatelessSymbolicContext(dynamic_sizes=[DimDynamic.DYNAMIC] * len(shape))
        tensor = torch.empty(shape, dtype=getattr(torch, found.dtypes[name]))
        return mode.from_tensor(tensor, symbolic_context=context)

    tensors = [fake(name) for name in "xwb"]
    with mode:
        made = function(*tensors, *attrs.values())
    outputs = (made,) if len(wanted) == 1 else made
    got = [
        (tuple(d.node.hint if isinstance(d, torch.SymInt) else d for d in t.shape), str(t.dtype).removeprefix("torch."))
        for t in outputs
    ]
    assert got == [(tuple(s), d) for s, d in wanted]


@pytest.mark.parametrize(
    "text",
    [
        "x[" + ", ".join(f"d{n}" for n in range(3000)) + "] -> y[n]",
        ", ".join(f"x{n}[n]" for n in range(1500)) + " -> y[n]",
        "x[n] -> " + ", ".join(f"y{n}[n]" for n in range(1500)),
        "x[n] -> y[a0] where a0 = n, " + ", ".join(f"a{i + 1} = a{i} * a{i}" for i in range(800)),
        "x[n] -> y[n] " + "if n else [n] " * 1000,
        "x[n] -> y[" + "-" * 16000 + "n]",
        "x[n] -> y[n] where " + "not " * 3900 + "n",
    ],
    ids=["dims", "inputs", "outputs", "definitions", "alternatives", "signs", "nots"],
)
def test_huge_texts_are_quick_or_refused(text: str) -> None:
    start = time.process_time()
    try:
        relation = parse_relation(text)
        relation.infer(dict.fromkeys(relation.inputs, (2,)), dict.fromkeys(relation.inputs, "int8"), {})
    except (RelationError, ShapeError):
        pass
    assert time.process_time() - start < 5
