"""The plan of a gradient: what names settle, what is refused and with which line, and that both sides read it alike."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
from ascend_graph.codegen.eager_library.gradients import cpp_gradient, proposed_gradient
from ascend_graph.codegen.eager_library.gradients import signature_of as signature_of_prototype
from hypothesis import given, settings
from hypothesis import strategies as st

from ascend_graph import AscendGraphError, parse_relation
from ascend_graph.autograd import (
    Feed,
    GradientError,
    GradientPlan,
    GradientSource,
    Signature,
    SignatureArgument,
    SignatureReturn,
    Wiring,
    parse_wiring,
    plan_gradient,
)
from ascend_graph.autograd.register import signature_of
from ascend_graph.binding.arguments import bind
from ascend_graph.binding.op_schema import read_schema
from ascend_graph.eager import OperatorSchema, operator_schema
from ascend_graph.prototypes import parse_text


def forward(
    inputs: str = "x w", attrs: str = "scale:float", outputs: str = "y", integers: str = "", **options: Any
) -> Signature:
    """``x w`` and ``scale:float`` as arguments, ``y`` as a result."""
    return Signature(
        options.get("name", "Op"),
        (
            *(SignatureArgument(name, "Tensor") for name in inputs.split()),
            *(SignatureArgument(a.partition(":")[0], a.partition(":")[2]) for a in attrs.split()),
        ),
        tuple(SignatureReturn(name, "Tensor", name not in integers.split()) for name in outputs.split()),
    )


def backward(inputs: str, attrs: str, outputs: str, optional: str = "") -> Signature:
    made = forward(inputs, attrs, outputs, name="OpGrad")
    arguments = tuple(SignatureArgument(a.name, a.kind, optional=a.name in optional.split()) for a in made.arguments)
    return Signature("OpGrad", arguments, made.results)


def plan(one: Signature, other: Signature, line: str = "OpGrad") -> GradientPlan:
    return plan_gradient(one, other, parse_wiring(line))


INPUT, OUTPUT, GRADIENT, ATTR = (lambda n, f=f: GradientSource(f, n) for f in Feed)


# ------------------------------------------------------------------------------------------------------- what names say


@pytest.mark.parametrize(
    ("one", "other", "arguments", "gradient_of"),
    [
        (
            forward(),
            backward("grad_y x w", "scale:float", "dx dw"),
            [GRADIENT(0), INPUT(0), INPUT(1), ATTR(2)],
            [0, 1, None],
        ),
        (forward(), backward("dy w", "scale:float", "w_grad x_grad"), [GRADIENT(0), INPUT(1), ATTR(2)], [1, 0, None]),
        (
            forward("x", "epsilon:float"),
            backward("grad_output x", "eps:float", "dx"),
            [GRADIENT(0), INPUT(0), ATTR(1)],
            [0, None],
        ),
        (forward("x", "axis:int"), backward("grad y", "dim:int", "out"), [GRADIENT(0), OUTPUT(0), ATTR(1)], [0, None]),
        (forward("x", "n:int"), backward("dy", "N:float", "dx"), [GRADIENT(0), ATTR(1)], [0, None]),
        (forward("x", "", "y i", integers="i"), backward("grad i", "", "dx"), [GRADIENT(0), OUTPUT(1)], [0]),
        (forward("x", "", "y z"), backward("dz dy", "", "dx"), [GRADIENT(1), GRADIENT(0)], [0]),
        (forward("input", ""), backward("dy self", "", "grad_input"), [GRADIENT(0), INPUT(0)], [0]),
    ],
)
def test_names(
    one: Signature, other: Signature, arguments: list[GradientSource], gradient_of: list[int | None]
) -> None:
    found = plan(one, other)
    assert list(found.arguments) == arguments
    assert list(found.gradient_of) == gradient_of
    assert found.constant == ()


def test_what_is_saved_is_what_is_needed() -> None:
    found = plan(forward("x w b", "", "y z"), backward("dy dz w z", "", "dx dw"))
    assert (found.saved(Feed.INPUT), found.saved(Feed.OUTPUT), found.saved(Feed.ATTR)) == ((1,), (1,), ())
    assert found.undifferentiated == (2,)
    assert (
        plan(forward("x w b", "", "y z"), backward("dy dz w z", "", "dx dw"), "OpGrad; constant: b").undifferentiated
        == ()
    )


# ---------------------------------------------------------------------------------------------------- what is refused

REFUSED = [
    # An attr under a name that says nothing keeps no default silently.
    (
        forward("x", "alpha:float"),
        backward("dy", "slope:float", "dx", "slope"),
        "OpGrad; unused: alpha; default: slope",
        ["its argument slope is not an input or attr (x, alpha)", "it does not take the attr alpha"],
    ),
    (forward("x"), backward("dy x", "", "dx"), "OpGrad; unused: scale", ["it does not take the attr scale"]),
    # The gradient of every output counts.
    (
        forward("x", "", "out aux"),
        backward("grad_out", "", "dx"),
        "OpGrad; constant: aux",
        ["it does not take the gradient of the output aux"],
    ),
    (
        forward("x", ""),
        backward("dy", "version:int", "dx", "version"),
        "OpGrad; default: version",
        ["its argument version is not an input or attr (x)"],
    ),
    (
        forward("x", "", "y z"),
        backward("grad", "", "dx"),
        "OpGrad(grad: …)",
        ["its argument grad is not an argument (x), no output (y, z) and no gradient of one (grad_y, grad_z)"],
    ),
    (
        forward("x w", ""),
        backward("dy", "", "out"),
        "OpGrad -> out: …",
        ["its output out is the gradient of no input; name it grad_<input> or d<input> (x, w)"],
    ),
    # The gradient of the only output is what an argument of another name takes.
    (
        forward("x", ""),
        backward("upstream", "", "dx"),
        "OpGrad(upstream: grad_y)",
        ["its argument upstream is not an argument (x)", "it does not take the gradient of the output y"],
    ),
    (
        forward("x", ""),
        backward("x upstream", "", "dx", "upstream"),
        "OpGrad(upstream: grad_y)",
        ["it does not take the gradient of the output y"],
    ),
    (
        forward("x", "", "y z"),
        backward("dy more", "", "dx"),
        "OpGrad(more: grad_z)",
        ["it does not take the gradient of the output z"],
    ),
    (
        forward("x", "", "y z"),
        backward("dy more", "", "dx", "more"),
        "OpGrad; default: more; constant: z",
        ["it does not take the gradient of the output z"],
    ),
    (forward("x", ""), backward("x", "", "dx"), "OpGrad(x: grad_y)", ["it does not take the gradient of the output y"]),
]


@pytest.mark.parametrize(("one", "other", "line", "problems"), REFUSED)
def test_nothing_is_left_over_silently(one: Signature, other: Signature, line: str, problems: list[str]) -> None:
    with pytest.raises(GradientError) as caught:
        plan(one, other)
    message = str(caught.value)
    assert message.startswith("OpGrad as the gradient of Op: ")
    for problem in problems:
        assert problem in message
    assert f"Write: backward = {line}" in message
    if "…" not in line:
        followed = plan(one, other, line)
        assert followed.constant == (() if "constant" not in line else (1,))
        assert any(source is not None and source.feed is Feed.GRADIENT for source in followed.arguments)


@pytest.mark.parametrize(
    ("one", "other", "line", "match"),
    [
        (
            forward(),
            backward("dy x w", "scale:float", "dx dw"),
            "OpGrad; unused: scal",
            "unused names scal; expected one of scale",
        ),
        (
            forward(),
            backward("dy x w", "scale:float", "dx dw"),
            "OpGrad; unused: scale",
            "unused: scale, but it feeds an argument",
        ),
        (
            forward("x", "", "y z"),
            backward("dy", "", "dx"),
            "OpGrad; constant: y",
            "constant: y, but its gradient feeds",
        ),
        (
            forward("x", ""),
            backward("x", "", "dx"),
            "OpGrad; constant: y",
            "constant: y: then nothing of Op is differentiated",
        ),
        (forward("x", "", "y z"), backward("x", "", "dx"), "OpGrad; constant: y, z", "constant: y, z: then nothing"),
        (
            forward("x w", ""),
            backward("x w", "", "dx"),
            "OpGrad",
            "expected an argument that takes it, of x, w: say .*grad_y",
        ),
        (forward(), backward("dy x w", "scale:float", "dx dw"), "OpGrad; default: x", "x, but it has no default"),
        (
            forward(),
            backward("dy x w", "scale:float", "dx dw"),
            "OpGrad(dy: z)",
            "z is not one of x, w, scale, y, grad_y",
        ),
        (
            forward(),
            backward("dy x w", "scale:float", "dx dw"),
            "OpGrad(dz: y)",
            "names dz; expected one of dy, x, w, scale",
        ),
        (
            forward(),
            backward("dy x w", "scale:float", "dx dw"),
            "OpGrad -> dq: x",
            "expected one of its returns, dx, dw",
        ),
        (
            forward(),
            backward("dy x w", "scale:float", "dx dw"),
            "OpGrad -> dx: w",
            "two of its outputs are the gradient of w",
        ),
        (forward(), backward("dy x w", "scale:float", "dx dw"), "OpGrad -> dx: scale", "scale: expected an input"),
        (
            forward(),
            backward("dy x w", "scale:str", "dx dw"),
            "OpGrad",
            "its argument scale is str; expected float, as scale .* is",
        ),
        (forward(), backward("dy x w", "scale:float[]", "dx dw"), "OpGrad", "its argument scale is float"),
    ],
)
def test_what_is_said_must_be_so(one: Signature, other: Signature, line: str, match: str) -> None:
    with pytest.raises(GradientError, match=match):
        plan(one, other, line)


def test_an_operator_that_writes() -> None:
    writing = Signature("Op", (SignatureArgument("x", "Tensor", written=True),), ())
    with pytest.raises(GradientError, match="Op writes x in place; expected one that writes nothing"):
        plan(writing, backward("x", "", "dx"))


@pytest.mark.parametrize(
    "line",
    [
        "",
        "(x: y)",
        "A(x)",
        "A(x: y, x: z)",
        "A -> x",
        "A; used: x",
        "A; unused",
        "A; unused: 1 2",
        "A; unused: a; unused: b",
        "A B",
    ],
)
def test_lines_of_another_form(line: str) -> None:
    with pytest.raises(GradientError, match=re.escape(f"backward = {line}: ")):
        parse_wiring(line)


NAME = st.from_regex(r"[a-z][a-z0-9_]{0,5}", fullmatch=True)
PAIRS = st.dictionaries(NAME, NAME, max_size=3).map(lambda d: tuple(d.items()))
NAMES = st.lists(NAME, max_size=3, unique=True).map(tuple)


@given(st.builds(Wiring, st.sampled_from(["OpGrad", "ns::op_grad", "ns::op.over"]), PAIRS, PAIRS, NAMES, NAMES, NAMES))
def test_a_wiring_reads_as_it_is_written(wiring: Wiring) -> None:
    assert parse_wiring(str(wiring)) == wiring


# --------------------------------------------------------------------------------- one value, from a schema and a
# prototype

KINDS = ("Float", "Int", "Bool", "String", "ListInt", "ListFloat", "ListBool")
DEFAULTS = {
    "Float": "1.5",
    "Int": "2",
    "Bool": "true",
    "String": '"a"',
    "ListInt": "{1}",
    "ListFloat": "{0.5}",
    "ListBool": "{true}",
}
SETS = ("TensorType({DT_FLOAT})", "TensorType({DT_FLOAT, DT_INT32})", "TensorType({DT_INT64})", "TensorType::ALL()")


@st.composite
def operators(draw: st.DrawFn) -> tuple[str, str, str]:
    """A forward and a gradient prototype whose names mostly fit, and a line that says some of the rest."""
    words = ["x", "w", "b", "gamma", "input", "self", "index"]
    inputs = draw(st.lists(st.sampled_from(words), min_size=1, max_size=4, unique=True))
    outputs = draw(st.lists(st.sampled_from(["y", "z", "mean", "mask_out"]), min_size=1, max_size=3, unique=True))
    attrs = draw(
        st.dictionaries(
            st.sampled_from(["eps", "axis", "scale", "keepdim", "mode"]), st.sampled_from(KINDS), max_size=3
        )
    )
    kinds = [draw(st.sampled_from([".INPUT", ".INPUT", ".OPTIONAL_INPUT"])) for _ in inputs]
    lines = ["REG_OP(Op)"]
    lines += [f"{kind}({name}, {draw(st.sampled_from(SETS))})" for kind, name in zip(kinds, inputs, strict=True)]
    lines += [f".OUTPUT({name}, {draw(st.sampled_from(SETS))})" for name in outputs]
    lines += [f".ATTR({name}, {kind}, {DEFAULTS[kind]})" for name, kind in attrs.items()]
    lines.append(".OP_END_FACTORY_REG(Op)")

    synonyms = {"eps": "epsilon", "axis": "dim", "keepdim": "keepdims"}
    back = ["REG_OP(OpGrad)"]
    taken = draw(st.lists(st.sampled_from([*inputs, *outputs]), max_size=4, unique=True))
    given_gradients = draw(st.lists(st.sampled_from(outputs), max_size=3, unique=True))
    back += [f".INPUT({draw(st.sampled_from(['grad_', 'd']))}{name}, {SETS[3]})" for name in given_gradients]
    back += [f".INPUT({name}, {SETS[3]})" for name in taken]
    if draw(st.booleans()):
        back.append(f".OPTIONAL_INPUT(extra, {SETS[3]})")
    returned = draw(st.lists(st.sampled_from(inputs), min_size=1, max_size=3, unique=True))
    back += [f".OUTPUT({draw(st.sampled_from(['grad_', 'd']))}{name}, {SETS[3]})" for name in returned]
    for name, kind in attrs.items():
        if draw(st.integers(0, 3)):
            renamed = draw(st.sampled_from([name, synonyms.get(name, name)]))
            back.append(f".ATTR({renamed}, {kind}, {DEFAULTS[kind]})")
    back.append(".OP_END_FACTORY_REG(OpGrad)")
    some = st.lists(st.sampled_from([*inputs, *outputs]), max_size=2, unique=True)
    wiring = Wiring(
        "OpGrad",
        unused=tuple(draw(st.lists(st.sampled_from(list(attrs)), max_size=2, unique=True))) if attrs else (),
        default=("extra",) if ".OPTIONAL_INPUT(extra" in "".join(back) and draw(st.booleans()) else (),
        constant=tuple(draw(some)),
    )
    return "\n".join(lines), "\n".join(back), str(wiring)


def read(text: str) -> OperatorSchema:
    return operator_schema(parse_text(text).prototypes[0])


def outcome(make: Any) -> Any:
    """A plan, or the words of the refusal but for the names of the operators."""
    try:
        return make()
    except AscendGraphError as error:
        return str(error).replace("ascend::op_grad", "OpGrad").replace("ascend::op", "Op")


@settings(max_examples=300, deadline=None)
@given(operators())
def test_python_and_generated_cpp_follow_one_plan(texts: tuple[str, str, str]) -> None:
    one, other, line = texts
    ahead, behind = read(one), read(other)
    wiring = parse_wiring(line)

    def from_schemas() -> GradientPlan:
        bindings = [
            bind(read_schema(torch._C.parse_schema(f"ascend::{schema}")), schema.prototype, own=schema)
            for schema in (ahead, behind)
        ]
        signatures = [signature_of(binding.schema, binding) for binding in bindings]
        return plan_gradient(*signatures, wiring)

    generated = outcome(lambda: cpp_gradient(ahead, None, wiring, {"Op": ahead, "OpGrad": behind}).plan)
    assert generated == outcome(from_schemas)
    if isinstance(generated, GradientPlan):
        described = signature_of_prototype(ahead)
        taken = {s.position for s in generated.arguments if s is not None and s.feed is Feed.GRADIENT}
        for n, result in enumerate(described.results):
            assert not result.differentiable or n in taken or n in generated.constant
        used = {s.position for s in generated.arguments if s is not None and s.feed is Feed.ATTR}
        attrs = {n for n, a in enumerate(described.arguments) if not a.is_tensor and a.name not in wiring.unused}
        assert attrs == used
    elif "Write: backward = " in generated and "…" not in generated:
        # The line that is offered settles it.
        offered = parse_wiring(generated.partition("Write: backward = ")[2])
        assert isinstance(
            plan_gradient(described_pair(ahead, behind)[0], described_pair(ahead, behind)[1], offered), GradientPlan
        )


def described_pair(one: OperatorSchema, other: OperatorSchema) -> tuple[Signature, Signature]:
    return signature_of_prototype(one), signature_of_prototype(other)


def test_a_proposal_loses_nothing() -> None:
    """A gradient that is found by its operator's name alone is proposed only if it takes everything."""
    add = "REG_OP(Two).INPUT(x, ALL()).OUTPUT(out, ALL()).OUTPUT(aux, ALL()).OP_END_FACTORY_REG(Two)"
    grad = "REG_OP(TwoGrad).INPUT(grad_out, ALL()).OUTPUT(dx, ALL()).OP_END_FACTORY_REG(TwoGrad)"
    schemas = {"Two": read(add), "TwoGrad": read(grad)}
    assert proposed_gradient(schemas["Two"], parse_relation("x[n] -> out[n], aux[n]"), schemas) == (
        "",
        "TwoGrad as the gradient of Two: it does not take the gradient of the output aux. Write: "
        "backward = TwoGrad; constant: aux",
    )
    assert proposed_gradient(schemas["Two"], parse_relation("x[n] -> out[n], aux[n]: int64"), schemas) == (
        "TwoGrad",
        "",
    )
