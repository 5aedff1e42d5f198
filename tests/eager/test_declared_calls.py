"""Calls by a header's declaration: a library that exports the declared C signatures keeps what it was given."""

from __future__ import annotations

import importlib
import os
import random
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from ascend_graph.codegen.eager_library.project import generate_project, op_plugin_entries
from generated_library import generated_library

import ascend_graph
from ascend_graph import load_prototypes, register_op
from ascend_graph.aclnn import AclnnFunction
from ascend_graph.aclnn import parse_text as parse_functions
from ascend_graph.aclnn import process_catalog as aclnn_catalog
from ascend_graph.binding import BindingError
from ascend_graph.eager import EagerArgumentError, EagerError, MissingFunctionError, define_operator
from ascend_graph.prototypes import OpPrototype, parse_text
from ascend_graph.prototypes import process_catalog as prototype_catalog

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
calls = importlib.import_module("_aclnn_calls")
recorder = importlib.import_module("_aclnn_recorder")
sys.path.pop(0)

FLOAT = "TensorType({DT_FLOAT})"
PROTOTYPES = f"""
REG_OP(DcMixed).INPUT(x, {FLOAT}).OPTIONAL_INPUT(sizes, TensorType({{DT_INT64}})).OUTPUT(y, {FLOAT})
    .OUTPUT(count, TensorType({{DT_INT64}}))
    .ATTR(alpha, Float, 0.5).ATTR(small, Int, 1).ATTR(narrow, Float, 0.25).ATTR(flag, Bool, true).ATTR(kind, Int, 1)
    .OP_END_FACTORY_REG(DcMixed)
REG_OP(DcAdd).INPUT(x1, {FLOAT}).INPUT(x2, {FLOAT}).OUTPUT(y, {FLOAT}).ATTR(exact, Bool, false)
    .OP_END_FACTORY_REG(DcAdd)
REG_OP(DcNumbers).INPUT(x, {FLOAT}).INPUT(weight, TensorType({{DT_FLOAT, DT_INT32, DT_COMPLEX64}}))
    .OPTIONAL_INPUT(shift, {FLOAT})
    .INPUT(scalars, {FLOAT}).OUTPUT(y, {FLOAT}).OP_END_FACTORY_REG(DcNumbers)
REG_OP(DcMany).INPUT(x, {FLOAT}).OUTPUT(y, {FLOAT}){"".join(f".ATTR(f{n}, Float, 0)" for n in range(12))}
    {"".join(f".ATTR(i{n}, Int, 0)" for n in range(9))}.OP_END_FACTORY_REG(DcMany)
REG_OP(DcLists).INPUT(x, {FLOAT}).INPUT(sizes, TensorType({{DT_INT64}})).OPTIONAL_INPUT(factors, {FLOAT})
    .OUTPUT(y, {FLOAT}).OUTPUT(small, TensorType({{DT_UINT8}})).OUTPUT(flag, TensorType({{DT_BOOL}}))
    .OUTPUT(mean, {FLOAT}).ATTR(weights, ListFloat, {{0.5, 2}}).REQUIRED_ATTR(counts, ListInt)
    .ATTR(masks, ListBool, {{}})
    .ATTR(unused, ListInt, {{1, 2}}).OP_END_FACTORY_REG(DcLists)
"""
_FLOATS = ", ".join(f"{'float' if n % 2 else 'double'} f{n}, int{8 if n % 3 else 32}_t i{n}" for n in range(9))
NULLABLE = """
int aclnnDcNullGetWorkspaceSize(const aclTensor *x, const aclScalar *alpha, const aclScalar *upperOptional,
    const aclIntArray *sizesOptional, const aclFloatArray *stepsOptional, const aclBoolArray *masksOptional,
    char *wayOptional,
    const aclScalarList *factors, aclTensor *out, TAIL
"""
FUNCTIONS = f"""
int aclnnDcMixedGetWorkspaceSize(int8_t small, const aclScalar *alpha, const aclIntArray *sizesOptional, float narrow,
    const aclTensor *x, aclDataType kind, aclTensor *yOut, bool flag, int64_t *count, TAIL
int aclnnDcAddV2GetWorkspaceSize(const aclTensor *self, const aclTensor *other, const aclScalar *alpha, aclTensor *out,
    TAIL
int aclnnDcListsGetWorkspaceSize(const aclTensor *x, const aclScalarList *weights, const aclIntArray *sizes,
    const aclFloatArray *factorsOptional, const aclScalarList *counts, const aclScalarList *masks,
    const aclScalarList *fixed,
    uint8_t *small, bool *flag, float *mean, int64_t *ignored, aclTensor *yOut, TAIL
int aclnnDcNumbersGetWorkspaceSize(const aclTensor *x, const aclScalar *weight, const aclScalar *shift,
    const aclScalarList *scalars,
    aclTensor *out, TAIL
int aclnnSwiGluGetWorkspaceSize(const aclTensor *x, int64_t dim, aclTensor *out, TAIL
int aclnnDcManyGetWorkspaceSize({_FLOATS}, float f9, double f10, float f11, const aclTensor *x, aclTensor *out, TAIL
{NULLABLE}""".replace("TAIL", "uint64_t *workspaceSize, aclOpExecutor **executor);")


def declared(name: str) -> AclnnFunction:
    return next(f for f in parse_functions(FUNCTIONS).functions if f.name == name)


def prototype(name: str) -> OpPrototype:
    return next(p for p in parse_text(PROTOTYPES).prototypes if p.op_type == name)


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Any:
    directory = tmp_path_factory.mktemp("recording") / "opp"
    return recorder.RecordingPackage(directory, parse_functions(FUNCTIONS).functions)


@pytest.fixture(autouse=True)
def _selected(recording: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("ASCEND_CUSTOM_OPP_PATH", str(recording.directory))
    yield
    aclnn_catalog.clear()


def mixed(x: Any, sizes: Any = None, **attrs: Any) -> Any:
    return x.new_empty(3), x.new_empty((), dtype=torch.int64)


def test_values_arrive_with_the_types_that_the_header_declares(recording: Any) -> None:
    operator = define_operator(prototype("DcMixed"), mixed, namespace="declared_calls")
    try:
        assert str(operator.schema).startswith("dc_mixed(Tensor x, int[]? sizes=None, *, float alpha=0.5")
        x = torch.ones(2).npu()
        y, count = operator.overload(x, [4, 5], alpha=1.5, small=-128, narrow=0.1, flag=False, kind=torch.float16)
        name, given = recording.given()
        assert name == "aclnnDcMixed"
        narrow = torch.tensor(0.1).item()  # in 32 bits
        assert given == [
            -128,
            1.5,
            [4, 5],
            narrow,
            {"tensor": x.data_ptr()},
            1,
            {"tensor": y.data_ptr()},
            False,
            "host memory",
        ]
        assert count.item() == recorder.WRITTEN
        operator.overload(x)
        assert recording.given()[1][:4] == [1, 0.5, None, 0.25]
        with pytest.raises(
            EagerArgumentError, match="300 does not fit a parameter of aclnnDcMixed; expected -128 to 127"
        ):
            operator.overload(x, small=300)
        with pytest.raises(EagerArgumentError, match="-1e\\+300 does not fit a parameter of aclnnDcMixed"):
            operator.overload(x, narrow=-1e300)
        operator.overload(x, narrow=float("inf"))
    finally:
        operator.remove()


LISTS = {"fixed": [1, 0.5, False], "ignored": None, "unused": None}


def check_lists(recording: Any, call: Any) -> None:
    """What aclnnDcLists is given, by whatever operator calls it, and what it writes into host memory."""
    x = torch.ones(2).npu()
    y, small, flag, mean = call(x, [4, 5], [0.5, 0.25], counts=[7, 8], masks=[True, False])
    name, given = recording.given()
    tensor, *values, out = given
    assert (name, tensor, out) == ("aclnnDcLists", {"tensor": x.data_ptr()}, {"tensor": y.data_ptr()})
    lists = [[0.5, 2.0], [4, 5], [0.5, 0.25], [7, 8], [True, False], [1, 0.5, False]]
    assert values == [*lists, *["host memory"] * 4]
    assert [type(v) for v in values[3]] == [int, int]
    assert [type(v) for v in values[4]] == [bool, bool]
    assert (small.item(), flag.item(), mean.item()) == (recorder.WRITTEN, True, recorder.WRITTEN)
    call(x, [], counts=[], weights=[1.5])
    assert recording.given()[1][1:6] == [[1.5], [], None, [], []]
    with pytest.raises((EagerArgumentError, RuntimeError), match="aclnnDcLists has nothing for"):
        call(x, [], counts=[], unused=[1])
    with pytest.raises((EagerArgumentError, RuntimeError), match="1e\\+300.*float32"):
        call(x, [], [0.5, 1e300], counts=[])
    call(x, [], [float("inf")], counts=[])


def test_lists_of_scalars_and_values_of_inputs_and_host_memory_of_every_type(recording: Any) -> None:
    def results(x: Any, sizes: Any, factors: Any = None, **attrs: Any) -> Any:
        kinds = (torch.uint8, torch.bool, torch.float32)
        return x.new_empty(3), *(x.new_empty((), dtype=kind) for kind in kinds)

    operator = define_operator(prototype("DcLists"), results, namespace="declared_calls", aclnn_arguments=LISTS)
    try:
        assert "int[] sizes, float[]? factors=None, *, float[] weights=[0.5, 2.0], int[] counts" in str(operator.schema)
        check_lists(recording, operator.overload)
    finally:
        operator.remove()


def check_numbers(recording: Any, call: Any) -> None:
    """What aclnnDcNumbers is given: inputs of the prototype as numbers."""
    x = torch.ones(2).npu()
    for weight in (3, 2.5, True):
        y = call(x, weight, None, [1, 0.5])
        name, given = recording.given()
        numbers = [weight, None, [1, 0.5]]
        assert (name, given) == ("aclnnDcNumbers", [{"tensor": x.data_ptr()}, *numbers, {"tensor": y.data_ptr()}])
        assert type(given[1]) is type(weight)
    call(x, 1, 4, [])
    assert recording.given()[1][1:4] == [1, 4, []]
    call(x, 2j, 4, [])
    assert recording.given()[1][1] == "a scalar of dtype 17"


def test_inputs_that_the_function_takes_as_numbers(recording: Any) -> None:
    operator = define_operator(prototype("DcNumbers"), "x[*s] -> y[*s]", namespace="declared_calls")
    try:
        assert (
            str(operator.schema) == "dc_numbers(Tensor x, Scalar weight, Scalar? shift, Scalar[] scalars) -> Tensor y"
        )
        check_numbers(recording, operator.overload)
    finally:
        operator.remove()


def test_an_array_that_the_function_makes_is_refused() -> None:
    ascend_graph.load_aclnn(
        "int aclnnDcMakesGetWorkspaceSize(const aclTensor *x1, aclIntArray **shape, aclTensor *out, uint64_t *s, "
        "aclOpExecutor **e);"
    )
    with pytest.raises(
        BindingError, match=r"aclIntArray \*\*shape is an array that the function makes, and no function of"
    ):
        define_operator(prototype("DcAdd"), mixed, namespace="declared_calls", aclnn="aclnnDcMakes")
    with pytest.raises(
        BindingError, match=r"aclIntArray \*\*shape is an array that the function makes, and no function of"
    ):
        ascend_graph.register_aclnn("aclnnDcMakes", shape="x1[*s] -> out[*s]")


def test_a_package_that_is_selected_now_comes_before_the_library_of_cann(recording: Any) -> None:
    """Its header is the one that is read, so its function must be the one that is called."""
    registered = ascend_graph.register_aclnn("aclnnSwiGlu", shape="x[*s] -> out[*s]", name="declared_calls::swi_glu")
    try:
        x = torch.ones(2).npu()
        out = registered(x, 7)
        assert recording.given() == ("aclnnSwiGlu", [{"tensor": x.data_ptr()}, 7, {"tensor": out.data_ptr()}])
    finally:
        registered.unregister()


def test_floats_and_integers_of_every_width_in_registers_and_on_the_stack(recording: Any) -> None:
    verdict = calls.check(recording, prototype("DcMany"), declared("aclnnDcMany"))
    assert verdict.kind == "bound", verdict.text


def test_register_op_by_another_function_with_fixed_values(recording: Any) -> None:
    load_prototypes(PROTOTYPES)
    relation = "x1[*s], x2[*s] -> y[*s]"
    try:
        with pytest.raises(BindingError, match=r"DcAdd ↔ aclnnDcAddV2: nothing says what const aclScalar \*alpha is"):
            register_op("DcAdd", shape=relation, aclnn="aclnnDcAddV2")
        settled = {"alpha": 2, "exact": None}
        registered = register_op("DcAdd", shape=relation, aclnn="aclnnDcAddV2", aclnn_arguments=settled)
        try:
            assert registered is register_op("DcAdd", shape=relation, aclnn="aclnnDcAddV2", aclnn_arguments=settled)
            with pytest.raises(ascend_graph.AscendGraphError, match="aclnn_arguments: registered"):
                register_op("DcAdd", shape=relation, aclnn="aclnnDcAddV2", aclnn_arguments={"alpha": 3, "exact": None})
            x = torch.ones(2).npu()
            y = registered(x, x)
            assert recording.given() == ("aclnnDcAddV2", [{"tensor": x.data_ptr()}] * 2 + [2, {"tensor": y.data_ptr()}])
            with pytest.raises(
                EagerArgumentError,
                match="argument exact is True, but aclnnDcAddV2 has nothing for it; expected False",
            ):
                registered(x, x, exact=True)
            page = ascend_graph.explain(registered).as_dict()["aclnn"]
            assert page["declared"].endswith("aclnn_dc_add_v2.h:1")
            assert [(a["parameter"], a["from"], a["evidence"]) for a in page["arguments"]] == [
                ("const aclTensor *self", "x1 (input)", "synonyms"),
                ("const aclTensor *other", "x2 (input)", "synonyms"),
                ("const aclScalar *alpha", "2", "aclnn_arguments="),
                ("aclTensor *out", "y (output)", "the only output left on both sides"),
            ]
            assert "const aclScalar *alpha" in str(ascend_graph.explain(registered))
        finally:
            registered.unregister()
    finally:
        prototype_catalog.clear()


def test_a_header_that_does_not_fit_registers_nothing(recording: Any) -> None:
    bad = parse_text(
        PROTOTYPES.replace("DcMixed", "DcAdd").replace("REG_OP(DcAdd).INPUT(x1", "REG_OP(Other).INPUT(x1")
    ).prototypes[0]
    with pytest.raises(BindingError):
        define_operator(bad, mixed, namespace="declared_calls", aclnn="aclnnDcAddV2")
    assert not hasattr(torch.ops.declared_calls, "dc_add")


def test_a_library_without_what_its_header_declares(recording: Any, tmp_path: Path) -> None:
    header = tmp_path / "aclnn_dc_missing.h"
    header.write_text(FUNCTIONS.replace("DcAddV2", "DcMissing"))
    ascend_graph.load_aclnn(header)
    operator = define_operator(
        prototype("DcAdd"),
        "x1[*s], x2[*s] -> y[*s]",
        namespace="declared_calls",
        aclnn="aclnnDcMissing",
        aclnn_arguments={"alpha": 1, "exact": None},
    )
    try:
        x = torch.ones(2).npu()
        with pytest.raises(MissingFunctionError, match=rf"aclnnDcMissing is declared at {header}:4"):
            operator.overload(x, x)
    finally:
        operator.remove()


def test_a_function_of_cann_without_a_header_is_refused_when_it_is_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Also where its library is selected after registering, and where a header turns up that says otherwise."""
    late = parse_text(PROTOTYPES.replace("DcAdd", "DcLate")).prototypes[1]
    function = parse_functions(FUNCTIONS.replace("DcAddV2", "DcLate")).functions[1]
    operator = define_operator(late, "x1[*s], x2[*s] -> y[*s]", namespace="declared_calls")
    try:
        assert "msOpGen's order, if an operator package has it" in operator.call.source
        x = torch.ones(2).npu()
        with pytest.raises(MissingFunctionError):
            operator.overload(x, x)
        package = recorder.RecordingPackage(tmp_path / "late", [function])
        monkeypatch.setenv("ASCEND_CUSTOM_OPP_PATH", str(package.directory))
        with pytest.raises(BindingError, match=r"DcLate ↔ aclnnDcLate: nothing says what const aclScalar \*alpha is"):
            operator.overload(x, x)
        assert package._read() == b""  # it was not called
    finally:
        operator.remove()


def test_random_pairs_are_bound_rightly_or_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What a function was given is what the operator's truth says, for everything that was bound."""
    new = 0 if "CI" in os.environ else random.SystemRandom().randrange(2**32)
    seed = int(os.environ.get("ASCEND_GRAPH_TEST_SEED", new))
    pairs = [calls.random_pair(random.Random(seed + n), n) for n in range(40)]
    package = recorder.RecordingPackage(tmp_path / "opp", [function for _, function, _ in pairs])
    monkeypatch.setenv("ASCEND_CUSTOM_OPP_PATH", str(package.directory))
    verdicts = [calls.check(package, *pair[:2], truth=pair[2]) for pair in pairs]
    assert [(verdict.text, seed) for verdict in verdicts if verdict.kind == "wrong"] == []
    assert Counter(verdict.kind for verdict in verdicts)["bound"] > 10


GENERATED = f"""
{PROTOTYPES[PROTOTYPES.index("REG_OP(DcNumbers)") : PROTOTYPES.index("REG_OP(DcMany)")]}
REG_OP(DcMany).INPUT(x, {FLOAT}).OUTPUT(y, {FLOAT}){"".join(f".ATTR(f{n}, Float, 0)" for n in range(12))}
    {"".join(f".ATTR(i{n}, Int, 0)" for n in range(9))}.OP_END_FACTORY_REG(DcMany)
REG_OP(DcAdd).INPUT(x1, {FLOAT}).INPUT(x2, {FLOAT}).OUTPUT(y, {FLOAT}).ATTR(exact, Bool, false)
    .OP_END_FACTORY_REG(DcAdd)
REG_OP(DcMixed).INPUT(x, {FLOAT}).OPTIONAL_INPUT(sizes, TensorType({{DT_INT64}})).OUTPUT(y, {FLOAT})
    .OUTPUT(count, TensorType({{DT_INT64}}))
    .ATTR(alpha, Float, 0.5).ATTR(small, Int, 1).ATTR(narrow, Float, 0.25).ATTR(flag, Bool, true).ATTR(kind, Int, 1)
    .OP_END_FACTORY_REG(DcMixed)
{PROTOTYPES[PROTOTYPES.index("REG_OP(DcLists)") :]}
"""
LISTS_INI = (
    "[DcLists]\nshape = x[*s] -> y[*s], small[]: uint8, flag[]: bool, mean[]: float32\n"
    "aclnn_arguments = fixed: [1, 0.5, False], ignored: None, unused: None\n"
)
SETTLED = LISTS_INI + (
    "[DcAdd]\nshape = x1[*s], x2[*s] -> y[*s]\naclnn = aclnnDcAddV2\naclnn_arguments = alpha: 2, out: y, exact: None\n"
)


@pytest.mark.slow
def test_generated_libraries_call_by_the_same_plan(recording: Any, tmp_path: Path) -> None:
    (tmp_path / "op_proto.h").write_text(GENERATED)
    project_directory = tmp_path / "dc_generated"
    shapes = dict.fromkeys(("DcMany", "DcNumbers"), "x[*s] -> y[*s]") | {"DcMixed": "x[*s] -> y[*s], count[]: int64"}
    (tmp_path / "aclnn_dc_null.h").write_text(FUNCTIONS[FUNCTIONS.index("int aclnnDcNull") :])
    sources = [tmp_path / "op_proto.h", tmp_path / "aclnn_dc_null.h"]
    project = generate_project(project_directory, sources, shapes=shapes)
    assert set(project.operators) == {"DcMany", "DcAdd", "DcMixed", "DcNumbers", "aclnnDcNull"}
    written = (project_directory / "csrc/generated/operators.cpp").read_text()
    assert "// aclnnDcAdd: no header declares aclnnDcAdd: msOpGen's order, if an operator package has it." in written
    assert 'find_function("aclnnDcAdd", true)' in written
    assert "// aclnnDcMany: declared in aclnn_dc_many.h." in written
    mixed_ini = "[DcMixed]\nshape = x[*s] -> y[*s], count[]: int64\n"
    (project_directory / "dc_generated/operators.ini").write_text(
        SETTLED + mixed_ini + "[DcMany]\nshape = x[*s] -> y[*s]\n[DcNumbers]\nshape = x[*s] -> y[*s]\n[aclnnDcNull]\n"
        "shape = x[*s] -> out[*s]\n"
    )
    project = generate_project(project_directory, bindings="both")
    assert set(project.operators) == {"DcMany", "DcAdd", "DcMixed", "DcNumbers", "DcLists", "aclnnDcNull"}
    library = generated_library("_dc_generated", project_directory)
    torch.ops.load_library(library.build())
    add, many = torch.ops.dc_generated.dc_add, torch.ops.dc_generated.dc_many
    x = torch.ones(2).npu()
    y = add(x, x)
    assert recording.given() == ("aclnnDcAddV2", [{"tensor": x.data_ptr()}] * 2 + [2, {"tensor": y.data_ptr()}])
    with pytest.raises(RuntimeError, match="dc_add: aclnnDcAddV2 has nothing for exact"):
        add(x, x, exact=True)
    values = {f"f{n}": n + 0.25 for n in range(12)} | {f"i{n}": -n for n in range(9)}
    y = many(x, **values)
    expected = [values[name] for n in range(9) for name in (f"f{n}", f"i{n}")] + [values[f"f{n}"] for n in (9, 10, 11)]
    assert recording.given() == ("aclnnDcMany", [*expected, {"tensor": x.data_ptr()}, {"tensor": y.data_ptr()}])
    with pytest.raises(RuntimeError, match="i1 is 300, which does not fit"):
        many(x, **(values | {"i1": 300}))
    check_lists(recording, torch.ops.dc_generated.dc_lists)
    y, count = torch.ops.dc_generated.dc_mixed(x, [3], small=-3, kind=torch.float16)
    assert recording.given()[1][:6] == [-3, 0.5, [3], 0.25, {"tensor": x.data_ptr()}, 1]
    assert count.item() == recorder.WRITTEN
    with pytest.raises(RuntimeError, match="narrow is 1e\\+300, which float32 does not hold"):
        torch.ops.dc_generated.dc_mixed(x, narrow=1e300)
    torch.ops.dc_generated.dc_mixed(x)
    assert recording.given()[1][2] is None
    check_nulls(recording, torch.ops.dc_generated.dc_null)
    check_numbers(recording, torch.ops.dc_generated.dc_numbers)


def check_nulls(recording: Any, call: Any) -> None:
    """What aclnnDcNull is given: scalars with their own types, and null where nothing is given."""
    x = torch.ones(2).npu()
    y = call(x, alpha=2, factors=[1, 0.5, True])
    assert recording.given() == (
        "aclnnDcNull",
        [{"tensor": x.data_ptr()}, 2, *[None] * 5, [1, 0.5, True], {"tensor": y.data_ptr()}],
    )
    assert type(recording.given()[1][1]) is int
    call(x, alpha=2.5, upper=3, sizes=[4, 5], steps=[0.5], masks=[True, False], way="up", factors=[])
    assert recording.given()[1][1:8] == [2.5, 3, [4, 5], [0.5], [True, False], "up", []]
    call(x, alpha=True, upper=0.5, sizes=[], steps=[], masks=[], way="", factors=[2])
    assert recording.given()[1][1:8] == [True, 0.5, [], [], [], "", [2]]


def test_op_plugin_entries_name_the_parameters_where_the_order_differs(tmp_path: Path) -> None:
    text = f"REG_OP(DcSwap).INPUT(x, {FLOAT}).OUTPUT(y, {FLOAT}).ATTR(n, Int, 1).OP_END_FACTORY_REG(DcSwap)"
    ascend_graph.load_aclnn(
        "int aclnnDcSwapGetWorkspaceSize(int64_t n, const aclTensor *x, aclTensor *out, uint64_t *s, "
        "aclOpExecutor **e);"
    )
    assert "exec: aclnnDcSwap, n, x, out\n" in op_plugin_entries(parse_text(text).prototypes)
    ascend_graph.load_aclnn(
        "int aclnnDcFloatGetWorkspaceSize(const aclTensor *x, float n, aclTensor *out, uint64_t *s, aclOpExecutor **e);"
    )
    entries = op_plugin_entries(parse_text(text.replace("DcSwap", "DcFloat").replace("Int, 1", "Float, 1")).prototypes)
    assert "# DcFloat: op-plugin's generator does not pass float n of aclnnDcFloat" in entries


STRIDED = """
int aclnnDcPutGetWorkspaceSize(const aclTensor *cache, int64_t cacheStride, int64_t layout, const aclTensor *x,
    aclTensor *out, TAIL
int aclnnDcPutV2GetWorkspaceSize(const aclTensor *cache, const aclTensor *x, aclTensor *out, TAIL
""".replace("TAIL", "uint64_t *workspaceSize, aclOpExecutor **executor);")
PUT = "dc_put(Tensor cache, Tensor x, str layout, int block, ScalarType dtype) -> Tensor"
PUT_SHAPE = "x[*s] -> out[*s]: dtype"


@pytest.fixture(scope="module")
def strided(tmp_path_factory: pytest.TempPathFactory) -> Any:
    directory = tmp_path_factory.mktemp("strided") / "opp"
    return recorder.RecordingPackage(directory, parse_functions(STRIDED).functions)


def test_values_that_a_call_computes_and_arguments_that_the_function_lacks(
    strided: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASCEND_CUSTOM_OPP_PATH", str(strided.directory))
    with pytest.raises(BindingError, match="'block': 'shape only', 'dtype': 'shape only'"):
        ascend_graph.register_aclnn("aclnnDcPutV2", schema=PUT.replace("str layout, ", ""), shape=PUT_SHAPE)
    operator = ascend_graph.register_aclnn(
        "aclnnDcPut",
        schema=PUT,
        shape=PUT_SHAPE,
        aclnn_arguments={
            "cacheStride": lambda args: args["cache"].stride(0) + (args["dtype"] is torch.int8),
            "layout": ("layout", {"BSND": 0, "TND": 3}),
            "block": "shape only",
            "dtype": "shape only",
        },
    )
    try:
        cache, x = torch.ones(6, 4).npu()[:, :2], torch.ones(2).npu()
        y = operator(cache, x, "TND", 7, torch.int8)
        assert y.dtype is torch.int8
        name, given = strided.given()
        assert (name, given[1:3]) == ("aclnnDcPut", [5, 3])
        operator(cache[:, :1].contiguous(), x, "BSND", 8, torch.float32)
        assert strided.given()[1][1:3] == [1, 0]
        with pytest.raises(
            EagerArgumentError, match=r"'layout': …}: ValueError: 'X' is not in the table; expected one of"
        ):
            operator(cache, x, "X", 7, torch.int8)
        page = ascend_graph.explain(operator).as_dict()["aclnn"]
        assert page["dropped"] == ["block", "dtype"]
        assert "all arguments" in page["arguments"][1]["from"]
        assert page["arguments"][2]["from"] == "a table(layout)"
        meta = operator(torch.empty(3, 2, device="meta"), torch.empty(2, device="meta"), "X", 1, torch.int8)
        assert meta.shape == (2,)
    finally:
        operator.unregister()


def test_a_parameter_that_the_derived_schema_lacks_may_be_computed(
    strided: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASCEND_CUSTOM_OPP_PATH", str(strided.directory))
    computed = {"cacheStride": lambda args: args["cache"].stride(0), "layout": 1}
    operator = ascend_graph.register_aclnn("aclnnDcPut", shape="x[*s] -> out[*s]", aclnn_arguments=computed)
    try:
        assert str(operator.overload._schema).endswith("(Tensor cache, Tensor x) -> Tensor out")
        operator(torch.ones(6, 4).npu()[:, :2], torch.ones(2).npu())
        assert strided.given()[1][1:3] == [4, 1]
    finally:
        operator.unregister()


def test_a_call_takes_one_of_several_functions(strided: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASCEND_CUSTOM_OPP_PATH", str(strided.directory))
    cache, x, dtype = torch.ones(2, 4).npu(), torch.ones(2).npu(), torch.float16

    def taken(functions: Any, *calls: Any, **options: Any) -> list[str]:
        operator = ascend_graph.register_aclnn(
            functions,
            name="declared_calls::put",
            shape="x[*s] -> out[*s]",
            aclnn_arguments={"aclnnDcPut": {"cacheStride": 1, "layout": 0}},
            **options,
        )
        try:
            names = []
            for call in calls:
                operator(*call)
                names.append(strided.given()[0])
            assert "aclnnDcPut," in operator.evidence["eager"]
            return names
        finally:
            operator.unregister()

    halves = (cache, x.to(dtype))
    assert taken(("aclnnDcPutV3", "aclnnDcPutV2", "aclnnDcPut"), (cache, x)) == ["aclnnDcPutV2"]
    by_dtype = {"aclnnDcPutV2": lambda args: args["x"].dtype == dtype, "aclnnDcPut": None}
    assert taken(by_dtype, (cache, x), halves) == ["aclnnDcPut", "aclnnDcPutV2"]
    assert taken({"aclnnDcPut": "Ascend310P", "aclnnDcPutV2": "Ascend910B"}, (cache, x)) == ["aclnnDcPutV2"]
    with pytest.raises(
        MissingFunctionError, match="expected one of aclnnDcPut on Ascend310P; aclnnDcPutV2 on Ascend950"
    ):
        taken({"aclnnDcPut": "Ascend310P", "aclnnDcPutV2": "Ascend950"}, (cache, x))
    with pytest.raises(EagerError, match="make different schemas"):
        ascend_graph.register_aclnn(("aclnnDcPut", "aclnnDcPutV2"), shape="x[*s] -> out[*s]")
