"""An aclnn function as an operator by its declaration alone: eager, aclgraph, export, GE graphs, gradients."""

from __future__ import annotations

import importlib
import json
import random
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from eager_package import PROTOTYPES

import ascend_graph
from ascend_graph import register_aclnn
from ascend_graph.aclnn import UnknownFunctionError
from ascend_graph.aclnn import parse_text as parse_functions
from ascend_graph.aclnn import process_catalog as aclnn_catalog
from ascend_graph.binding import BindingError
from ascend_graph.binding.calls.from_declaration import derive
from ascend_graph.eager import EagerArgumentError, EagerError
from ascend_graph.prototypes import process_catalog as prototype_catalog
from ascend_graph.registration import RegisteredOp, RegistrationError

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what torch itself deprecates, in modules that torchair imports
    import torch_npu  # noqa: F401 - torchair can only be imported after it
    import torchair.npu_fx_compiler

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
calls = importlib.import_module("_aclnn_calls")
headers = importlib.import_module("_aclnn_headers")
recorder = importlib.import_module("_aclnn_recorder")
sys.path.pop(0)

# Compiling warns of much that is torch's and torchair's own affair.
compiles = pytest.mark.filterwarnings("default")


@pytest.fixture
def register() -> Iterator[Any]:
    """``register_aclnn``, taken back with the test."""
    made: list[RegisteredOp] = []

    def one(function: str, **options: Any) -> RegisteredOp:
        made.append(register_aclnn(function, name=f"aclnn_tests::{function.lower()}", **options))
        return made[-1]

    yield one
    for op in reversed(made):
        op.unregister()
    aclnn_catalog.clear()


def floats(*sizes: int) -> torch.Tensor:
    return torch.rand(*sizes).npu()


SQUARE = "x[*s], b[*s] -> y[*s], index[*s]: int64"


@compiles
def test_graphs_have_the_operator_that_op_type_names(register: Any) -> None:
    ascend_graph.load_prototypes(PROTOTYPES)
    try:
        op = register("aclnnAddCustom", shape="x[*s], y[*s] -> z[*s]", op_type="AddCustom")
        assert (op.op_type, op.evidence["converter"]) == ("AddCustom", "made from the binding")
        page = ascend_graph.explain(op).as_dict()
        assert [pair["argument"] for pair in page["inputs"]] == ["Tensor x", "Tensor y"]
        assert page["aclnn"]["arguments"][0]["parameter"] == "const aclTensor *x"
        x = floats(2, 3)
        compiled = torch.compile(lambda x: op.overload(x, x) * 1, backend=torchair.get_npu_backend(), dynamic=False)
        torch.testing.assert_close(compiled(x), x + x)
    finally:
        prototype_catalog.clear()


@compiles
def test_eager_aclgraph_and_export_give_the_same(register: Any) -> None:
    op = register("aclnnSquare", shape=SQUARE)
    schema = str(op.overload._schema).partition("(")[2]
    assert schema == "Tensor x, Tensor? b=None, *, float scale) -> (Tensor y, Tensor index)"
    x = floats(2, 3)

    def f(x: torch.Tensor) -> torch.Tensor:
        y, index = op.overload(x + 1, x, scale=0.5)
        return y + index

    expected = (0.5 * (x.cpu() + 1) ** 2 + x.cpu()) + torch.arange(6).view(2, 3)
    torch.testing.assert_close(f(x).cpu(), expected)
    torch.testing.assert_close(torch.compile(f, backend="npugraph_ex")(x).cpu(), expected)

    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return f(x)

    exported = torch.export.export(Model(), (x,), dynamic_shapes=({0: torch.export.Dim.AUTO},))
    assert op.overload in [node.target for node in exported.graph.nodes]
    bigger = floats(5, 3)
    torch.testing.assert_close(exported.module()(bigger).cpu(), f(bigger).cpu())
    meta = op.overload(torch.empty(4, device="meta"), scale=1.0)
    assert [(t.dtype, *t.shape) for t in meta] == [(torch.float32, 4), (torch.int64, 4)]


@compiles
def test_what_is_read_and_written_is_an_argument(register: Any) -> None:
    op = register("aclnnAddTo")
    assert str(op.overload._schema).endswith("(Tensor(a!) w, Tensor x) -> ()")
    w, x = torch.zeros(3).npu(), floats(3)
    version = w._version
    op(w, x)
    assert w._version > version
    torch.testing.assert_close(w, x)

    def f(w: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        w = w * 1
        op.overload(w, x)
        return w

    torch.testing.assert_close(torch.compile(f, backend="npugraph_ex")(x, x), x + x)


def test_gradients_and_a_given_schema(register: Any) -> None:
    def backward(ctx: Any, grad: torch.Tensor, _: Any, *, x: torch.Tensor, factor: float) -> tuple[Any, ...]:
        return 2 * factor * x * grad, None

    op = register_aclnn(
        "aclnnSquare",
        schema="aclnn_tests::squared(Tensor x, Tensor? b=None, float factor=2.) -> (Tensor y, Tensor index)",
        aclnn_arguments={"scale": "factor"},
        shape="x[*s], b[*s] -> y[*s], index[*s]: int64",
        backward=backward,
    )
    try:
        x = floats(4).requires_grad_()
        y, _ = op(x)
        torch.testing.assert_close(y, 2 * x * x)
        y.sum().backward()
        torch.testing.assert_close(x.grad, 4 * x.detach())
        assert op.evidence["schema"] == "the one given"
    finally:
        op.unregister()
        aclnn_catalog.clear()


def test_outputs_that_the_caller_passes_in_and_values_that_are_fixed(register: Any) -> None:
    op = register_aclnn(
        "aclnnSquare",
        schema="aclnn_tests::square_out(Tensor x, Tensor? b, float scale, *, Tensor(a!) y, Tensor(b!) index) -> ()",
    )
    try:
        x, y, index = floats(3), floats(3), torch.zeros(3, dtype=torch.int64).npu()
        op(x, None, 3.0, y=y, index=index)
        torch.testing.assert_close(y, 3 * x * x)
        assert index.tolist() == [0, 1, 2]
    finally:
        op.unregister()
    fixed = register(
        "aclnnSquare", shape="x[*s] -> y[*s], index[*s]: int64", aclnn_arguments={"scale": 2.0, "bOptional": None}
    )
    assert str(fixed.overload._schema).endswith("(Tensor x) -> (Tensor y, Tensor index)")
    torch.testing.assert_close(fixed(x)[0], 2 * x * x)


def test_the_same_is_one_registration_and_another_is_refused(register: Any) -> None:
    relation = "x[*s], y[*s] -> z[*s]"
    op = register("aclnnAddCustom", shape=relation)
    assert register("aclnnAddCustom", shape=relation) is op
    with pytest.raises(RegistrationError, match=r"is registered already, differently.*\n  shape: registered x\[\*s\]"):
        register("aclnnAddCustom", shape="x[n], y[n] -> z[n]")
    assert ascend_graph.explain("aclnnAddCustom").as_dict()["prototype"] is None
    assert "no op_type= says which GE operator it is" in str(ascend_graph.explain(op))
    with pytest.raises(
        EagerError, match=r'the shape of z is not known; pass a relation .* as "x\[\*s\], y\[\*s\] -> z\[\*s\]"'
    ):
        register("aclnnAddCustom", override=True)


@pytest.mark.parametrize(
    ("function", "options", "error", "message"),
    [
        ("aclnnNowhereAtAll", {}, UnknownFunctionError, r"no header declares aclnnNowhereAtAll.*\n?.*load_aclnn"),
        (
            "aclnnAddCustom",
            {"schema": "f(Tensor x"},
            RegistrationError,
            "schema='f\\(Tensor x' must parse as a schema of torch: expected",
        ),
        (
            "aclnnAddCustom",
            {"schema": "f(Tensor x, Tensor q) -> Tensor"},
            BindingError,
            (
                r"f ↔ aclnnAddCustom: nothing says what const aclTensor \*y is; nothing takes the input q\n(.*\n"
                r")*Write: aclnn_arguments=\{'y': …\}$"
            ),
        ),
        (
            "aclnnAddCustom",
            {"schema": "f(Tensor x, Device y) -> Tensor"},
            BindingError,
            "Device y is nothing that an aclnn",
        ),
        ("aclnnAddTo", {"schema": "f(Tensor(a!) w, Tensor x) -> Tensor(a!)"}, BindingError, "returns are new tensors"),
        (
            "aclnnSquare",
            {"schema": "f(Tensor x, Tensor? b, Scalar scale) -> (Tensor, Tensor)"},
            BindingError,
            "scale is a scalar, which may be ints",
        ),
        (
            "aclnnSquare",
            {"aclnn_arguments": {"scale": "x"}},
            BindingError,
            "double scale takes a float; give schema= to name arguments",
        ),
        (
            "aclnnSquare",
            {"aclnn_arguments": {"nope": 1}},
            BindingError,
            "aclnn_arguments= mentions nope; expected one of x, bOptional",
        ),
        (
            "aclnnSquare",
            {"arguments": {"x": "x"}},
            RegistrationError,
            "arguments= is for a prototype: give op_type=",
        ),
        ("aclnnSquare", {"name": "a", "schema": "a(Tensor x) -> Tensor"}, RegistrationError, "leave name= out"),
    ],
)
def test_refusals(function: str, options: dict[str, Any], error: type[Exception], message: str) -> None:
    before = ascend_graph.registered_ops()
    with pytest.raises(error, match=message):
        register_aclnn(function, shape=None, **options)
    assert ascend_graph.registered_ops() == before
    aclnn_catalog.clear()


# --------------------------------------------------------------------------------------------- what schemas are made of

TAIL = "uint64_t *workspaceSize, aclOpExecutor **executor);"


def derived(parameters: str, name: str = "aclnnFoo") -> str:
    function = parse_functions(f"int {name}GetWorkspaceSize({parameters}, {TAIL}").functions[0]
    return str(derive(function).schema)


@pytest.mark.parametrize(
    ("parameters", "schema"),
    [
        (
            "const aclTensor *self, const aclTensor *mat2, const aclScalar *beta, aclTensor *out, int8_t cubeMathType",
            "foo(Tensor self, Tensor mat2, Scalar beta, int cube_math_type) -> Tensor out",
        ),
        (
            (
                "const aclTensor *x, const aclTensor *biasOptional, const aclTensor *gamma, "
                "const aclIntArray *dimsOptional, bool k, "
                "aclTensor *yOut, aclTensor *xOut"
            ),
            "foo(Tensor x, Tensor? bias, Tensor gamma, int[]? dims=None, *, bool k) -> (Tensor y, Tensor x_out)",
        ),
        (
            (
                "aclTensor *varRef, aclTensorList *xsRef, const aclTensorList *ys, const aclFloatArray *f, "
                "const aclBoolArray *b, "
                "char *modeOptional, aclDataType dtype"
            ),
            (
                "foo(Tensor(a!) var, Tensor(b!)[] xs, Tensor[] ys, float[] f, bool[] b, str? mode=None, *, "
                "ScalarType dtype) -> ()"
            ),
        ),
        (
            "const aclTensor *x, int64_t lambda, double eps = 1e-5, aclTensorList *out = nullptr",
            "foo(Tensor x, int lambda_, *, float eps=1e-05) -> Tensor[] out",
        ),
        ("int64_t n, int64_t m, aclTensor *out", "foo(int n, int m, Tensor(a!) out) -> ()"),
        ("const aclTensorList *xsOptional, aclTensor *out", "foo(Tensor[]? xs, Tensor(a!) out) -> ()"),
        ("const aclTensor *x, aclTensor *y, int64_t *count", "foo(Tensor x) -> (Tensor y, Tensor count)"),
        (
            "const aclTensor *cuSeqlensQ, const aclTensor *cu_seqlens_qOptional, aclTensor *out",
            "foo(Tensor cu_seqlens_q, Tensor? cu_seqlens_q_optional=None) -> Tensor out",
        ),
    ],
)
def test_schemas_follow_the_declaration(parameters: str, schema: str) -> None:
    assert derived(parameters) == schema
    torch._C.parse_schema(f"ns::{schema}")


@pytest.mark.parametrize("parameters", ["int64_t n", "const aclTensorList *xsOptional, int64_t *count"])
def test_what_says_on_no_device_it_runs_is_refused(parameters: str) -> None:
    with pytest.raises(BindingError, match="aclnnFoo: nothing says on which device a call of it runs"):
        derived(parameters)


def test_any_declaration_becomes_a_schema_of_torch_or_is_refused() -> None:
    functions = refused = derived_schemas = 0
    for seed in range(150):
        rng = random.Random(seed)
        text, _ = headers.random_header(rng, rng.randrange(1, 6), rng.choice([6, 12, 45]))
        for function in parse_functions(text).functions:
            functions += 1
            try:
                declared = derive(function)
            except BindingError as error:
                refused += any(why in str(error) for why in ("is an array that the function makes", "on which device"))
                continue
            derived_schemas += 1
            schema = torch._C.parse_schema(f"ns::{declared.schema}")
            assert [a.name for a in schema.arguments] == [a.name for a in declared.schema.arguments]
            assert len(declared.call.arguments) == len(function.parameters)
    assert derived_schemas + refused == functions > 300
    assert derived_schemas > functions / 2


EVERY = """
int aclnnEveryGetWorkspaceSize(int8_t small, const aclScalar *alpha, const aclIntArray *sizesOptional, float narrow,
    const aclTensor *x, const aclTensorList *xs, aclDataType kind, const aclFloatArray *fs, const aclBoolArray *bs,
    char *text,
    const aclScalar *betaOptional, aclTensor *yOut, bool flag, int64_t *count, aclTensorList *ysOut, TAIL
""".replace("TAIL", TAIL)


def test_every_type_arrives_as_the_header_declares_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    functions = parse_functions(EVERY).functions
    recording = recorder.RecordingPackage(tmp_path / "opp", functions)
    monkeypatch.setenv("ASCEND_CUSTOM_OPP_PATH", str(tmp_path / "opp"))
    try:
        verdict = calls.check_derived(recording, functions[0])
        assert verdict.kind == "bound", verdict.text
        op = register_aclnn("aclnnEvery", name="aclnn_tests::every", shape=lambda *a, **k: (a[3], a[3][0], [a[3]]))
        x = floats(2)
        values = {"sizes": None, "fs": [1.0], "bs": [True], "text": "t", "kind": torch.int8, "flag": False}
        for alpha in (2, 2.5, True):
            op(small=1, alpha=alpha, narrow=0.5, x=x, xs=[x], **values)
            given = recording.given()[1]
            assert json.dumps(given[1:3]) == json.dumps([alpha, None])
        with pytest.raises(EagerArgumentError, match="300 does not fit a parameter of aclnnEvery"):
            op(small=300, alpha=1, narrow=0.5, x=x, xs=[x], **values)
        op.unregister()
    finally:
        aclnn_catalog.clear()


RMS_NORM = f"""
aclnnStatus aclnnRmsNormGetWorkspaceSize(const aclTensor *x, const aclTensor *gamma, double epsilon,
    const aclTensor *yOut,
                                         const aclTensor *rstdOut, {TAIL}
aclnnStatus aclnnRmsNorm(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream);
"""


@compiles
def test_a_function_of_canns_own_library(register: Any) -> None:
    ascend_graph.load_aclnn(RMS_NORM)
    op = register("aclnnRmsNorm", shape="x[*s, d], gamma[d] -> yOut[*s, d], rstdOut[*s, 1]: float32")
    assert str(op.overload._schema).endswith("(Tensor x, Tensor gamma, float epsilon) -> (Tensor y, Tensor rstd)")
    x, gamma = floats(3, 4), floats(4)
    norm = torch.rsqrt(x.cpu().square().mean(-1, keepdim=True) + 1e-5)
    for f in (op.overload, torch.compile(op.overload, backend="npugraph_ex")):
        y, rstd = f(x, gamma, 1e-5)
        torch.testing.assert_close((y.cpu(), rstd.cpu()), (x.cpu() * norm * gamma.cpu(), norm))
