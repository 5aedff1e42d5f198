"""Names that are the same but for case or an ending: paired where nothing else could be meant, refused otherwise."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from ascend_graph.codegen.operator_package import aclnn_parameters
from hypothesis import assume, example, given
from hypothesis import strategies as st

import ascend_graph
from ascend_graph.aclnn import AclnnFunction
from ascend_graph.aclnn import parse_text as parse_header
from ascend_graph.autograd import (
    GradientError,
    Signature,
    SignatureArgument,
    SignatureReturn,
    Wiring,
    plan_gradient,
)
from ascend_graph.binding.arguments import bind
from ascend_graph.binding.calls.call import Part
from ascend_graph.binding.calls.from_declaration import derive
from ascend_graph.binding.calls.matching import bind_call
from ascend_graph.binding.errors import BindingError
from ascend_graph.binding.op_schema import OpSchema, read_schema
from ascend_graph.binding.synonyms import HEADER_ENDINGS, differ_in_endings, normalize
from ascend_graph.host import build_operator_package
from ascend_graph.prototypes import OpPrototype, parse_text

sys.path.insert(0, str(Path(__file__).parent))
import alike_kernels

FLOAT = "TensorType({DT_FLOAT})"
BASES = ("x", "w", "k_cache", "KCache")
SCHEMA_NAMES = st.sampled_from(
    [base + ending for base in BASES for ending in ("", "_ref", "Ref", "_optional", "Optional", "_opt", "_in", "In")]
)
HEADER_NAMES = st.sampled_from(
    [base + ending for base in BASES for ending in ("", "Ref", "Optional", "Out", "_ref", "_out", "RefOptional")]
)


def names_of(names: st.SearchStrategy[str]) -> st.SearchStrategy[list[str]]:
    return st.lists(names, min_size=1, max_size=4, unique=True)


def prototype_of(
    inputs: Sequence[str], outputs: Sequence[str] = (), attrs: Sequence[str] = (), optional: Sequence[str] = ()
) -> OpPrototype:
    text = "REG_OP(Alike)"
    text += "".join(f".{'OPTIONAL_' if name in optional else ''}INPUT({name}, {FLOAT})" for name in inputs)
    text += "".join(f".OUTPUT({name}, {FLOAT})" for name in outputs)
    text += "".join(f".ATTR({name}, Int, 0)" for name in attrs)
    return parse_text(f"{text}.OP_END_FACTORY_REG(Alike)").prototypes[0]


def schema_of(text: str) -> OpSchema:
    return read_schema(torch._C.parse_schema(f"alike::{text}"))


def function_of(parameters: Sequence[str]) -> AclnnFunction:
    """A function whose header has const everywhere, as generated ones have."""
    tensors = "".join(f"const aclTensor *{name}, " for name in parameters)
    tail = "uint64_t *workspaceSize, aclOpExecutor **executor"
    return parse_header(f"int aclnnAlikeGetWorkspaceSize({tensors}{tail});").functions[0]


def check(
    pairs: dict[str, str], left: Sequence[str], right: Sequence[str], endings: Sequence[str] | None = None
) -> None:
    """Exact names win; any other pair is the only reading on both sides."""

    def alike(a: str, b: str) -> bool:
        return differ_in_endings(a, b) if endings is None else differ_in_endings(a, b, endings)

    assert len({*pairs.values()}) == len(pairs), "two names are paired with one"
    for a, b in pairs.items():
        if a in right:
            assert b == a
            continue
        same = (lambda a, b: normalize(a) == normalize(b)) if normalize(a) == normalize(b) else alike
        if same(a, b):
            assert [name for name in right if same(a, name)] == [b]
            assert [name for name in left if same(name, b)] == [a]


def check_refusal(error: BindingError, left: Sequence[str], right: Sequence[str]) -> None:
    """Where several names could be meant, the message has each of them."""
    first = str(error).splitlines()[0]
    for name in left:
        if f"{name} may be " in first:
            said = first.partition(f"{name} may be ")[2].partition(":")[0].partition(", ")[0].split(" or ")
            assert said == [other for other in right if other in said]
            assert f"'{name}': …" in str(error)


@example(schema=["x", "x_ref"], inputs=["x", "xOptional"])
@example(schema=["x_ref", "x"], inputs=["xRef", "x_ref"])
@given(schema=names_of(SCHEMA_NAMES), inputs=names_of(SCHEMA_NAMES))
def test_schema_and_prototype(schema: list[str], inputs: list[str]) -> None:
    try:
        binding = bind(
            schema_of(f"op({', '.join(f'Tensor {name}' for name in schema)}) -> Tensor y"), prototype_of(inputs, ["y"])
        )
    except BindingError as error:
        check_refusal(error, schema, inputs)
        return
    check(binding.argument_names(), schema, inputs)


@given(schema=names_of(SCHEMA_NAMES), attrs=names_of(SCHEMA_NAMES))
def test_schema_and_attrs(schema: list[str], attrs: list[str]) -> None:
    """Attrs have defaults on both sides, so that a pair that is not found could go unseen."""
    arguments = ", ".join(f"int {name}=0" for name in schema)
    assume("y" not in schema)
    try:
        binding = bind(schema_of(f"op(Tensor y, {arguments}) -> Tensor z"), prototype_of(["y"], ["z"], attrs))
    except BindingError as error:
        check_refusal(error, schema, attrs)
        return
    pairs = {a: b for a, b in binding.argument_names().items() if a != "y"}
    check(pairs, schema, attrs)
    for name in {*schema} - pairs.keys():
        assert not [a for a in attrs if a not in pairs.values() and differ_in_endings(name, a)]


@example(parameters=["z", "yOutOut", "yOut"], outputs=["yOut", "y"])
@example(parameters=["z", "y", "yOut"], outputs=["yOut", "y"])
@given(parameters=names_of(HEADER_NAMES), outputs=names_of(HEADER_NAMES))
def test_outputs_and_parameters(parameters: list[str], outputs: list[str]) -> None:
    prototype, function = (
        prototype_of(["z"], outputs),
        function_of(["z", *dict.fromkeys(p for p in parameters if p != "z")]),
    )
    try:
        call = bind_call(prototype, function)
    except BindingError as error:
        check_refusal(error, parameters, outputs)
        return
    pairs = {a.name: outputs[a.index] for a in call.arguments if a.part is Part.OUTPUT}
    check(pairs, parameters, outputs, HEADER_ENDINGS)


@st.composite
def prototypes(draw: Any) -> OpPrototype:
    """Operators whose inputs and outputs have alike names, some of them written in place."""
    inputs = draw(names_of(HEADER_NAMES))
    in_place = [name for name in inputs if draw(st.booleans())]
    outputs = [name for name in draw(names_of(HEADER_NAMES)) if name not in inputs]
    optional = [name for name in inputs if name not in in_place and draw(st.booleans())]
    attrs = draw(names_of(st.sampled_from("abc")))
    return prototype_of(inputs, draw(st.permutations([*in_place, *outputs])), attrs, optional)


@example(prototype=prototype_of(["x"], ["yOut", "y"]))
@example(prototype=prototype_of(["x", "xRef"], ["x", "xRef"]))
@example(prototype=prototype_of(["x", "xRef"], ["x"]))
@example(prototype=prototype_of(["x", "wRef"], ["y"], optional=["wRef"]))
@given(prototype=prototypes())
def test_a_generated_header_means_what_it_was_generated_from(prototype: OpPrototype) -> None:
    values = {"const aclTensor*": "const aclTensor *", "int64_t": "int64_t "}
    generated = aclnn_parameters(prototype)
    text = "".join(f"{values[p.aclnn_type]}{p.header_name}, " for p in generated)
    tail = "uint64_t *workspaceSize, aclOpExecutor **executor"
    function = parse_header(f"int aclnnAlikeGetWorkspaceSize({text}{tail});").functions[0]
    sides: dict[Part, Sequence[Any]] = {
        Part.INPUT: prototype.inputs,
        Part.ATTR: prototype.attrs,
        Part.OUTPUT: prototype.outputs,
    }
    call = bind_call(prototype, function)
    assert [sides[a.part][a.index].name for a in call.arguments] == [p.source_name for p in generated]


@given(parameters=names_of(HEADER_NAMES))
def test_a_schema_from_a_header_keeps_names_apart(parameters: list[str]) -> None:
    names = derive(function_of(["z", *parameters, "out"])).names
    assert len({*names.values()}) == len(names)
    shortened = {name for name in parameters if names[name] in parameters and names[name] != name}
    assert not shortened, "a parameter has the name of another one"


def test_a_name_that_could_be_two_is_refused_with_both() -> None:
    schema = schema_of("op(Tensor x, Tensor x_ref) -> Tensor y")
    match = r"x_ref may be x or xOptional: these names are the same but for.*(?s:.*)Write: arguments=\{'x_ref': …\}"
    with pytest.raises(BindingError, match=match):
        bind(schema, prototype_of(["x", "xOptional"], ["y"]))
    said = bind(schema, prototype_of(["x", "xOptional"], ["y"]), {"x_ref": "xOptional"})
    assert said.argument_names() == {"x": "x", "x_ref": "xOptional"}


def test_parameters_that_could_be_two_are_refused_with_both() -> None:
    prototype, function = prototype_of(["x"], ["yOut", "y"]), function_of(["x", "yOutOut", "yOut"])
    match = r"yOutOut may be yOut or y: these names(?s:.*)Write: aclnn_arguments=\{'yOutOut': …\}"
    with pytest.raises(BindingError, match=match):
        bind_call(prototype, function)
    call = bind_call(prototype, function, {"yOutOut": "yOut", "yOut": "y"})
    assert [(a.name, a.index) for a in call.arguments][1:] == [("yOutOut", 0), ("yOut", 1)]


@pytest.mark.parametrize("names", [("grad_y", "grad_yOut"), ("dyOut", "dy")])
def test_gradients_of_outputs_with_alike_names(names: tuple[str, str]) -> None:
    forward = Signature("f", (SignatureArgument("x", "Tensor"),), (SignatureReturn("y"), SignatureReturn("yOut")))
    backward = Signature("g", tuple(SignatureArgument(name, "Tensor") for name in names), (SignatureReturn("dx"),))
    plan = plan_gradient(forward, backward, Wiring("g"))
    expected = [1 if "Out" in name else 0 for name in names]
    assert [source.position for source in plan.arguments if source is not None] == expected


def test_two_arguments_are_not_the_gradient_of_one_output() -> None:
    forward = Signature("f", (SignatureArgument("x", "Tensor"),), (SignatureReturn("y"),))
    backward = Signature(
        "g",
        (SignatureArgument("grad_y", "Tensor"), SignatureArgument("grad_y_out", "Tensor")),
        (SignatureReturn("dx"),),
    )
    with pytest.raises(GradientError, match="its argument grad_y_out is not an argument"):
        plan_gradient(forward, backward, Wiring("g"))


# ------------------------------------------------------------------------------------------------------------ end to
# end

HEADER = f"""
REG_OP(AlikeOutputs)
    .INPUT(x, {FLOAT})
    .OUTPUT(yOut, {FLOAT})
    .OUTPUT(y, {FLOAT})
    .OP_END_FACTORY_REG(AlikeOutputs)
REG_OP(AlikeInputs)
    .INPUT(xRef, {FLOAT})
    .INPUT(x, {FLOAT})
    .OPTIONAL_INPUT(xOptional, {FLOAT})
    .OUTPUT(y, {FLOAT})
    .OP_END_FACTORY_REG(AlikeInputs)
REG_OP(AlikeWritten)
    .INPUT(x, {FLOAT})
    .INPUT(xRef, {FLOAT})
    .OUTPUT(x, {FLOAT})
    .OUTPUT(xRef, {FLOAT})
    .OP_END_FACTORY_REG(AlikeWritten)
REG_OP(AlikeHalfWritten)
    .INPUT(x, {FLOAT})
    .INPUT(xRef, {FLOAT})
    .OUTPUT(x, {FLOAT})
    .OP_END_FACTORY_REG(AlikeHalfWritten)
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    kernels = {
        "AlikeOutputs": alike_kernels.outputs,
        "AlikeInputs": alike_kernels.inputs,
        "AlikeWritten": alike_kernels.written,
        "AlikeHalfWritten": alike_kernels.half_written,
    }
    return build_operator_package(tmp_path_factory.mktemp("alike") / "opp", parse_text(HEADER).prototypes, kernels)


@pytest.fixture
def register(package: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("ASCEND_CUSTOM_OPP_PATH", str(package))
    made: list[Any] = []

    def one(op_type: str, shape: str | None = None) -> Any:
        made.append(ascend_graph.register_op(op_type, shape=shape))
        return made[-1].overload

    torch._dynamo.reset()
    yield one
    for operator in made:
        operator.unregister()
    torch._dynamo.reset()


@pytest.fixture(params=["eager", "GE", "npugraph_ex"])
def mode(request: pytest.FixtureRequest) -> Any:
    if request.param == "eager":
        return lambda function: function
    import torch_npu  # noqa: F401 - torchair can only be imported after it
    import torchair

    backend = torchair.get_npu_backend() if request.param == "GE" else request.param
    return lambda function: torch.compile(function, backend=backend, fullgraph=True)


@pytest.mark.filterwarnings("default")
def test_each_output_is_its_own(register: Any, mode: Any) -> None:
    operator = register("AlikeOutputs", "x[n] -> yOut[n], y[n]")
    assert str(operator._schema).endswith("-> (Tensor yOut, Tensor y)")
    assert [t.tolist() for t in mode(lambda x: operator(x))(torch.ones(1).npu())] == [[2], [10]]


@pytest.mark.filterwarnings("default")
def test_each_input_is_its_own(register: Any, mode: Any) -> None:
    operator = register("AlikeInputs", "xRef[n], x[n], xOptional[n] -> y[n]")
    a, b, c = (torch.full((1,), value).npu() for value in (1.0, 2.0, 3.0))
    run = mode(lambda a, b, c: (operator(a, b, c), operator(a, b)))
    assert [t.tolist() for t in run(a, b, c)] == [[321], [21]]


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(("op_type", "expected"), [("AlikeWritten", [11, 22]), ("AlikeHalfWritten", [3, 2])])
def test_each_argument_is_written_for_itself(register: Any, mode: Any, op_type: str, expected: list[float]) -> None:
    operator = register(op_type)

    def step(x: torch.Tensor, ref: torch.Tensor) -> torch.Tensor:
        operator(x, ref)
        return x + 0

    x, ref = torch.full((1,), 1.0).npu(), torch.full((1,), 2.0).npu()
    mode(step)(x, ref)
    assert [x.item(), ref.item()] == expected
