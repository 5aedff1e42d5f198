"""Schemas bound to prototypes: by which name, how converted, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ascend_graph import Argument, dtype_number
from ascend_graph.binding.bound import Conversion, Evidence
from ascend_graph.prototypes import OpPrototype, ParameterKind, parse_text
from ascend_graph.registration import Binding, BindingError, bind, read_schema
from ascend_graph.shapes import parse_relation


def schema(text: str) -> Any:
    return read_schema(torch._C.parse_schema(f"binding::op{text}"))


def prototype(*calls: str) -> OpPrototype:
    floats = "TensorType({DT_FLOAT, DT_FLOAT16})"
    text = "".join(f".{call.replace('F', floats) if 'PUT' in call else call}" for call in calls)
    return parse_text(f"REG_OP(Op){text}.OP_END_FACTORY_REG(Op)").prototypes[0]


def sources(binding: Binding) -> dict[str, tuple[str | None, Evidence]]:
    pairs = [*zip(binding.prototype.inputs, binding.inputs, strict=True)]
    pairs += [*zip(binding.prototype.attrs, binding.attrs, strict=True)]
    arguments = binding.schema.arguments
    return {
        p.name: (None if s.argument is None else arguments[s.argument].name, s.evidence)
        for p, s in pairs
        if s is not None
    }


Y = "OUTPUT(y, F)"


@pytest.mark.parametrize(
    ("signature", "calls", "expected"),
    [
        ("(Tensor x) -> Tensor", ["INPUT(x, F)", Y], {"x": ("x", Evidence.SAME_NAME)}),
        ("(Tensor self) -> Tensor", ["INPUT(var, F)", Y], {"var": ("self", Evidence.FIRST_TENSOR)}),
        (
            "(Tensor b, Tensor a) -> Tensor",
            ["INPUT(a, F)", "INPUT(b, F)", Y],
            {"a": ("a", Evidence.SAME_NAME), "b": ("b", Evidence.SAME_NAME)},
        ),
        (
            "(Tensor x, Tensor weight_b) -> Tensor",
            ["INPUT(x, F)", "INPUT(weightB, F)", Y],
            {"x": ("x", Evidence.SAME_NAME), "weightB": ("weight_b", Evidence.NORMALIZED)},
        ),
        (
            "(Tensor grad, Tensor input, int dim) -> Tensor",
            ["INPUT(dy, F)", "INPUT(x, F)", Y, "ATTR(axis, Int, -1)"],
            {
                "dy": ("grad", Evidence.SYNONYM),
                "x": ("input", Evidence.SYNONYM),
                "axis": ("dim", Evidence.SYNONYM),
            },
        ),
        # A name that is an input and an attr: the tensor goes to the input, the number to the attr.
        (
            "(Tensor x, float scale) -> Tensor",
            ["INPUT(x, F)", "OPTIONAL_INPUT(scale, F)", Y, "ATTR(scale, Float, 1.0)"],
            {"x": ("x", Evidence.SAME_NAME), "scale": ("scale", Evidence.SAME_NAME)},
        ),
    ],
)
def test_names(signature: str, calls: list[str], expected: dict[str, Any]) -> None:
    assert sources(bind(schema(signature), prototype(*calls))) == expected


@given(st.permutations(["q", "k", "v", "mask"]), st.permutations(["q", "k", "v", "mask"]))
def test_order_never_matters(left: list[str], right: list[str]) -> None:
    binding = bind(
        schema(f"({', '.join(f'Tensor {n}' for n in left)}) -> Tensor"),
        prototype(*[f"INPUT({n}, F)" for n in right], Y),
    )
    assert {ge: torch_name for ge, (torch_name, _) in sources(binding).items()} == {n: n for n in left}


@pytest.mark.parametrize(
    ("signature", "calls", "arguments", "match"),
    [
        ("(Tensor a) -> Tensor", ["INPUT(b, F)", Y], {}, r"Write: arguments=\{'a': 'b'\}  # if a and b mean the same"),
        (
            "(Tensor a, Tensor? c=None, *, float e) -> Tensor",
            ["INPUT(b, F)", "OPTIONAL_INPUT(d, F)", "REQUIRED_ATTR(f, Float)", Y],
            {},
            r"arguments=\{'a': 'b', 'c': 'd', 'e': 'f'\}  # if a and b, e and f, c and d mean the same",
        ),
        # Two tensors that could be either: never by position.
        ("(Tensor a, Tensor b) -> Tensor", ["INPUT(c, F)", "INPUT(d, F)", Y], {}, "'a': …, 'b': …, 'c': …, 'd': …"),
        ("(Tensor x, int n) -> Tensor", ["INPUT(x, F)", Y], {}, "nothing takes the argument int n"),
        (
            "(Tensor x) -> Tensor",
            ["INPUT(x, F)", Y, "REQUIRED_ATTR(n, Int)"],
            {},
            "nothing feeds the required Int attr n",
        ),
        # What a layout is for GE has to be said.
        (
            "(Tensor x, Layout l) -> Tensor",
            ["INPUT(x, F)", Y, "ATTR(l, Int, 0)"],
            {},
            "nothing takes the argument Layout l",
        ),
        # A default that GE might have under another name.
        (
            "(Tensor x, float e=0.5) -> Tensor",
            ["INPUT(x, F)", Y, "ATTR(tiny, Float, 0.1)"],
            {},
            "may be an attr by another",
        ),
        ("(Tensor x) -> Tensor", ["INPUT(x, F)", Y], {"x": "z"}, r"has no input or attr 'z'; it has x"),
        ("(Tensor x) -> Tensor", ["INPUT(x, F)", Y], {"w": "x"}, "mentions 'w'; expected an argument"),
        ("(Tensor x, Tensor w) -> Tensor", ["INPUT(x, F)", Y], {"x": "x", "w": "x"}, "feeds x twice"),
        ("(Tensor x, str s) -> Tensor", ["INPUT(x, F)", Y, "ATTR(s, Int, 0)"], {"s": "s"}, "str s cannot feed"),
        ("(Tensor x) -> Tensor", ["INPUT(x, F)", Y], {"x": None}, "has no default to stay at"),
        ("(Tensor x) -> Tensor", ["INPUT(x, F)", Y], {"x": 3}, r"arguments=\{'x': 3\}: write the GE name"),
        ("(Tensor x) -> (Tensor, Tensor)", ["INPUT(x, F)", Y], {}, r"the schema has 2 returns, and Op 1 output\(s\)"),
        ("(Tensor x) -> Tensor", ["INPUT(x, F)", Y, "OUTPUT(z, F)"], {}, r"'->': \(…,\)\}"),
        ("(Tensor x) -> Tensor", ["INPUT(x, F)", Y], {"->": "w"}, "name one output for each of the 1 return"),
        (
            "(Tensor x) -> (Tensor, Tensor)",
            ["INPUT(x, F)", Y, "OUTPUT(z, F)"],
            {"->": ("y", "y")},
            "names an output twice",
        ),
        ("(Tensor(a!) x) -> ()", ["INPUT(x, F)"], {}, "writes x, but no output of Op holds its new value"),
        (
            "(Tensor(a!) x, Tensor w) -> Tensor(a!)",
            ["INPUT(x, F)", "INPUT(w, F)", Y],
            {"->": "y"},
            r"write: binding::op\(Tensor x, Tensor w\) -> Tensor\n",
        ),
        # What GE rewrites comes before or after its other outputs: both occur.
        (
            "(Tensor x, Tensor cache) -> (Tensor, Tensor)",
            ["INPUT(x, F)", "INPUT(cache, F)", "OUTPUT(cache, F)", Y],
            {},
            "which is which",
        ),
        (
            "(Tensor x, int? out_dtype=None) -> Tensor",
            ["INPUT(x, F)", Y, "ATTR(out_dtype, Int, 0)"],
            {},
            "ascend_graph.dtype_number",
        ),
        (
            "(Tensor x, ScalarType dtype) -> Tensor",
            ["INPUT(x, F)", Y, "ATTR(dtype, Int, -1)"],
            {},
            "a meaning of their own",
        ),
    ],
)
def test_refused(signature: str, calls: list[str], arguments: dict[str, Any], match: str) -> None:
    with pytest.raises(BindingError, match=match) as caught:
        bind(schema(signature), prototype(*calls), arguments)
    text = str(caught.value)
    assert "binding::op(" in text, "both signatures are shown"
    assert "REG_OP(Op)" in text


@pytest.mark.parametrize(
    ("argument", "attr", "conversion"),
    [
        ("ScalarType dtype", "REQUIRED_ATTR(dtype, Int)", Conversion.DTYPE),
        ("ScalarType dtype", "ATTR(dtype, Type, DT_FLOAT)", Conversion.DTYPE),
        ("int dst_type=1", "ATTR(dst_type, Int, 2)", Conversion.DTYPE),  # int8 by torch's and by GE's number
        ("int dst_type=291", "REQUIRED_ATTR(dst_type, Int)", Conversion.DTYPE),
        ("int token_dtype=0", "ATTR(token_dtype, Int, 0)", Conversion.DIRECT),
        ("int groups=1", "ATTR(groups, Int, 1)", Conversion.DIRECT),
    ],
)
def test_dtype_numbers(argument: str, attr: str, conversion: Conversion) -> None:
    binding = bind(schema(f"(Tensor x, {argument}) -> Tensor"), prototype("INPUT(x, F)", Y, attr))
    assert binding.attrs[0] is not None
    assert binding.attrs[0].conversion is conversion


def test_explicit_forms() -> None:
    made = bind(
        schema("(Tensor a, int d, str mode, int? t=None, bool flag=False) -> Tensor"),
        prototype("INPUT(b, F)", Y, "ATTR(e, Int, 0)", "ATTR(m, Int, 0)", "ATTR(t, Int, 0)", "ATTR(k, Bool, true)"),
        {
            "a": Argument("b", copy=True),
            "d": "e",
            "mode": ("m", {"half": 0, "full": 1}),
            "t": Argument("t", dtype_number, default=torch.int8),
            "flag": None,
            "k": False,
        },
    )
    assert made.copied == (0,)
    assert made.unused == (4,)
    assert made.attrs[2] is not None
    assert made.attrs[2].conversion is Conversion.DTYPE
    assert made.attrs[3] is not None
    assert (made.attrs[3].argument, made.attrs[3].value) == (None, False)
    assert {evidence for _, evidence in sources(made).values()} == {Evidence.EXPLICIT}


def test_the_suggested_line_settles_it() -> None:
    """What an error says to write is what makes the call work."""
    signature = schema("(Tensor conv_state, int compress_ratio, Tensor weight_npu) -> (Tensor, Tensor)")
    op = prototype("INPUT(convStates, F)", "INPUT(weight, F)", Y, "OUTPUT(z, F)", "REQUIRED_ATTR(cmpRatio, Int)")
    with pytest.raises(BindingError) as caught:
        bind(signature, op)
    arguments = eval(str(caught.value).rpartition("Write: arguments=")[2])
    assert arguments == {"conv_state": "convStates", "compress_ratio": "cmpRatio", "weight_npu": "weight"}
    assert bind(signature, op, arguments).argument_names() == arguments


def test_returns_without_names_are_not_proposed_by_position() -> None:
    op = prototype("INPUT(x, F)", Y, "OUTPUT(z, F)", "OUTPUT(w, F)")
    with pytest.raises(BindingError, match=r"Write: arguments=\{'->': \(…, …\)\}"):
        bind(schema("(Tensor x) -> (Tensor, Tensor)"), op)


def test_more_returns_than_outputs_are_told_with_both_counts() -> None:
    op = prototype("INPUT(x, F)", Y, "OUTPUT(z, F)")
    for returns in ("(Tensor, Tensor, Tensor)", "(Tensor y, Tensor z, Tensor w)"):
        with pytest.raises(BindingError, match="the schema has 3 returns, and Op 2 output.* or None where"):
            bind(schema(f"(Tensor x) -> {returns}"), op)
    names = {"->": ("y", "z", None)}
    assert bind(schema("(Tensor x) -> (Tensor, Tensor, Tensor)"), op, names).returns[1].output == 1


def test_outputs_follow_a_relation() -> None:
    op = prototype("INPUT(x, F)", Y, "OUTPUT(z, F)")
    binding = bind(schema("(Tensor x) -> (Tensor, Tensor)"), op, relation=parse_relation("x[n] -> z[n], y[n]"))
    assert [r.output for r in binding.returns] == [1, 0]
    assert binding.returns[0].evidence is Evidence.RELATION


@pytest.mark.parametrize(
    ("returns", "relation", "doubtful"),
    [
        ("(Tensor, Tensor)", "x[n] -> z[n], y[n]", True),
        ("(Tensor, Tensor)", "x[n] -> y[n], z[n]", False),
        ("(Tensor z, Tensor y)", "x[n] -> z[n], y[n]", False),
    ],
)
def test_an_order_that_only_a_relation_tells_is_doubtful(returns: str, relation: str, doubtful: bool) -> None:
    op = prototype("INPUT(x, F)", Y, "OUTPUT(z, F)")
    doubts = bind(schema(f"(Tensor x) -> {returns}"), op, relation=parse_relation(relation)).doubts
    assert bool(doubts) == doubtful
    if doubtful:
        assert "arguments={'->': ('z', 'y')}" in doubts[0]
        assert "arguments={'->': ('y', 'z')}" in doubts[0]
        settled = bind(schema(f"(Tensor x) -> {returns}"), op, {"->": ("y", "z")}, relation=parse_relation(relation))
        assert settled.doubts == ()


def test_in_place() -> None:
    op = prototype("INPUT(ref, F)", "INPUT(x, F)", "OUTPUT(ref, F)")
    written = bind(schema("(Tensor(a!) self, Tensor x) -> Tensor(a!)"), op, {"self": "ref"})
    assert written.mutations[0].in_place
    assert written.copied == ()
    assert bind(schema("(Tensor self, Tensor x) -> Tensor"), op, {"self": "ref"}).copied == (0,)


_NAMES = [
    "x",
    "self",
    "input",
    "weight",
    "axis",
    "dim",
    "eps",
    "epsilon",
    "dtype",
    "out_dtype",
    "k_cache",
    "kCache",
    "mode",
]
_ARGUMENTS = [
    "Tensor {}",
    "Tensor(a!) {}",
    "Tensor? {}=None",
    "Tensor[] {}",
    "int {}",
    "int {}=0",
    "int? {}=None",
    "float {}=0.5",
    "str {}=''",
    "bool {}=False",
    "int[] {}",
    "ScalarType {}",
    "Scalar {}",
    "SymInt[] {}=[]",
]
_CALLS = [
    "INPUT({}, F)",
    "OPTIONAL_INPUT({}, F)",
    "DYNAMIC_INPUT({}, F)",
    "ATTR({}, Int, 0)",
    "REQUIRED_ATTR({}, Int)",
    "ATTR({}, Float, 0.5)",
    'ATTR({}, String, "")',
    "ATTR({}, ListInt, {{}})",
    "ATTR({}, Bool, false)",
    "OUTPUT({}, F)",
    "DYNAMIC_OUTPUT({}, F)",
    "ATTR({}, Type, DT_FLOAT)",
]


@settings(max_examples=600, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(_NAMES), st.sampled_from(_ARGUMENTS)), max_size=5, unique_by=lambda pair: pair[0]
    ),
    st.lists(st.tuples(st.sampled_from(_NAMES), st.sampled_from(_CALLS)), max_size=6, unique_by=lambda pair: pair),
    st.sampled_from(["()", "Tensor", "(Tensor, Tensor)", "Tensor[]", "(Tensor x, Tensor weight)"]),
)
def test_whatever_is_bound_is_accounted_for(
    arguments: list[tuple[str, str]], calls: list[tuple[str, str]], returns: str
) -> None:
    plain = [text.format(name) for name, text in arguments if "=" not in text]
    optional = [text.format(name) for name, text in arguments if "=" in text]
    signature = schema(f"({', '.join([*plain, *optional])}) -> {returns}")
    parameters = [text.format(name) for name, text in calls]
    result = parse_text(
        f"REG_OP(Op){''.join('.' + c.replace('F)', 'TensorType({DT_FLOAT}))') for c in parameters)}.OP_END_FACTORY_REG("
        f"Op)"
    )
    if not result.prototypes:
        return
    op = result.prototypes[0]
    try:
        binding = bind(signature, op)
    except BindingError:
        return
    fed = [s.argument for s in (*binding.inputs, *binding.attrs) if s is not None]
    passed_in = [m.argument for m in binding.mutations if m.argument not in fed]
    assert sorted([*fed, *passed_in, *binding.unused]) == list(range(len(signature.arguments))), "each argument once"
    filled = [m.output for m in binding.mutations]
    assert len(set(filled)) == len(filled), "an output holds one argument's new value"
    for parameter, source in zip(op.inputs, binding.inputs, strict=True):
        assert source is not None or parameter.kind is ParameterKind.OPTIONAL
    for attr, source in zip(op.attrs, binding.attrs, strict=True):
        assert source is not None or not attr.required
    for n in binding.unused:
        assert signature.arguments[n].has_default
    outputs = [r.output for r in binding.returns]
    assert len(outputs) == len(signature.returns)
    assert len(set(outputs)) == len(outputs)
    assert {m.argument for m in binding.mutations} == {n for n, a in enumerate(signature.arguments) if a.mutated}


def test_outputs_that_the_caller_passes_in() -> None:
    op = prototype("INPUT(x, F)", "OUTPUT(compressCos, F)", "OUTPUT(sin, F)", Y)
    written = bind(schema("(Tensor x, Tensor(a!) compress_cos, Tensor(b!) sine) -> Tensor"), op, {"sine": "sin"})
    assert [(m.argument, m.output, m.in_place) for m in written.mutations] == [(2, 1, False), (1, 0, False)]
    assert (written.returns[0].output, written.dropped, written.unused) == (2, (), ())
    returned = bind(
        schema("(Tensor x, Tensor(a!) sin) -> (Tensor(a!), Tensor, Tensor)"), op, {"->": ("sin", "y", "compressCos")}
    )
    assert [(r.output, r.argument) for r in returned.returns] == [(1, 1), (2, None), (0, None)]
    with pytest.raises(BindingError, match=r"takes the argument Tensor\(a!\) cosine(.|\n)*'cosine': …"):
        bind(schema("(Tensor x, Tensor(a!) cosine, Tensor z) -> Tensor"), op)


def test_arguments_that_only_shapes_need_and_returns_that_are_no_output() -> None:
    op = prototype("INPUT(x, F)", Y)
    signature = schema("(Tensor x, int rows) -> (Tensor, Tensor, Tensor)")
    with pytest.raises(BindingError, match="'shape only' is for an argument that only shapes need"):
        bind(signature, op, {"->": ("y", None, None)})
    binding = bind(signature, op, {"rows": "shape only", "->": ("y", None, lambda arguments: arguments["x"])})
    assert (binding.shape_only, binding.unused) == ((1,), ())
    assert [(r.output, r.compute is not None) for r in binding.returns] == [(0, False), (None, False), (None, True)]
    with pytest.raises(BindingError, match="of a return that is not an output, write a function of all arguments"):
        bind(signature, op, {"rows": "shape only", "->": ("y", "w", None)})


@pytest.mark.parametrize(
    ("signature", "calls", "doubt", "settled"),
    [
        (
            "(Tensor x, Tensor? shift=None) -> Tensor",
            ["INPUT(x, F)", "OPTIONAL_INPUT(bias, F)", Y],
            (
                "argument Tensor? shift goes nowhere, and nothing feeds bias. "
                "Write: arguments={'shift': …}, or {'shift': None} if"
            ),
            {"shift": None},
        ),
        (
            "(Tensor x, float? scale_factor=None) -> Tensor",
            ["INPUT(x, F)", "ATTR(scaleFact, Float, 1.0)", Y],
            "nothing feeds scaleFact. Write: arguments={'scale_factor': 'scaleFact'}, or",
            {"scale_factor": "scaleFact"},
        ),
        (
            "(Tensor kv_cache) -> Tensor",
            ["INPUT(kv_cache, F)", "ATTR(kvCacheStride0, Int, 0)", Y],
            (
                "attr kvCacheStride0 stays at 0, but looks like a property of kv_cache. "
                "Write: arguments={'kvCacheStride0': lambda"
            ),
            {"kvCacheStride0": lambda arguments: 3},
        ),
        (
            "(Tensor x) -> Tensor",
            ["INPUT(x, F)", "ATTR(x_size, Int, 7)", "ATTR(head_dim, Int, 1)", Y],
            "attr x_size stays at 7, but looks like a property of x. ",
            {"x_size": 7},
        ),
    ],
)
def test_what_is_left_unsaid_is_a_doubt(signature: str, calls: list[str], doubt: str, settled: dict[str, Any]) -> None:
    op = prototype(*calls)
    doubts = bind(schema(signature), op).doubts
    assert len(doubts) == 1
    assert doubt in doubts[0]
    assert bind(schema(signature), op, settled).doubts == ()


def test_without_a_converter_to_make_nothing_has_to_be_settled() -> None:
    op = prototype("INPUT(a, F)", "INPUT(b, F)", Y, "OUTPUT(z, F)", "REQUIRED_ATTR(n, Int)")
    binding = bind(schema("(Tensor a, Tensor w, int k, Layout l) -> (Tensor, Tensor)"), op, complete=False)
    assert binding.argument_names() == {"a": "a"}
    assert [r.output for r in binding.returns] == [None, None]
    with pytest.raises(BindingError, match="has no input or attr 'q'"):
        bind(schema("(Tensor a) -> Tensor"), op, {"a": "q"}, complete=False)
