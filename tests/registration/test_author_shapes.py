"""A relation against what the installed package says of the shapes: agreement is evidence, contradiction an error."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import textwrap
from pathlib import Path
from typing import Any

import preloaded
import pytest
from click.testing import CliRunner

from ascend_graph.cli import main
from ascend_graph.host import build_operator_package

PROJECT = Path(__file__).parents[1] / "checks/judged"
EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A package whose author wrote an InferShape function for JudgedHalf."""
    target = tmp_path_factory.mktemp("opp") / "judged"
    result = CliRunner().invoke(main, ["build", str(PROJECT), "-o", str(target)])
    assert result.exit_code == 0, result.output
    return target


def register(package: Path, code: str) -> list[Any]:
    """Run code that registers operators; each call of ``tell`` prints the evidence or the error of one."""
    prelude = """
    import itertools, json, torch, torch_npu, torchair, ascend_graph
    def tell(*args, **options):
        try:
            op = ascend_graph.register_op(*args, **options)
        except Exception as error:
            print(json.dumps(f"{type(error).__name__}: {error}"))
        else:
            print(json.dumps(op.evidence.get("InferShape")))
            op.unregister()
    """
    result = preloaded.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(prelude) + textwrap.dedent(code)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "ASCEND_CUSTOM_OPP_PATH": str(package)},
    )
    assert result.returncode == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.fixture(scope="module")
def answers(package: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """The results of registrations with relations and without, in one process."""
    relations = tmp_path_factory.mktemp("relations") / "relations.ini"
    relations.write_text("[JudgedHalf]\nshape = x[n] -> y[n // 2]\n")
    return register(
        package,
        f"""
        tell("JudgedHalf", shape="x[*s, d] -> y[*s, d // 2]")
        tell("JudgedHalf", shape="x[*s, d] -> y[*s, d]")
        tell("JudgedHalf", shape=lambda x: x.new_empty(x.shape))
        tell("JudgedCopy", shape="x[*s] -> y[*s]")
        op = ascend_graph.register_op("JudgedHalf")
        shape = op(torch.empty(4, 6, device="meta")).shape
        print(json.dumps([op.evidence["meta"], op.evidence["InferShape"], [*shape]]))
        op.unregister()
        ascend_graph.load_relations({str(relations)!r})
        print(json.dumps(ascend_graph.register_op("JudgedHalf").evidence["meta"]))
        """,
    )


def test_a_relation_that_contradicts_infer_shape_is_refused_with_both_answers(answers: list[Any]) -> None:
    right, wrong, function, copy = answers[:4]
    assert right is not None
    assert "the InferShape function of the package" in right
    assert "agrees in" in right
    assert wrong.startswith(
        "RegistrationError: JudgedHalf: the relation x[*s, d] -> y[*s, d] contradicts the InferShape"
    )
    assert re.search(r"of x(\[.*\d\]) the relation makes y\1, the package y\[.*\d\]", wrong)
    assert function is None
    assert copy is None  # its author has none


def test_a_relation_that_is_right_up_to_a_block_is_refused(package: Path) -> None:
    (refused,) = register(package, 'tell("JudgedHalf", shape="x[*s, d] -> y[*s, d // 2 if d <= 128 else 64]")')
    assert "contradicts the InferShape" in refused


PICKS = """
REG_OP(JudgedPick)
    .INPUT(x, TensorType({DT_FLOAT}))
    .OUTPUT(y, TensorType({DT_FLOAT}))
    .ATTR(axis, Int, -1)
    .ATTR(whole, Bool, false)
    .OP_END_FACTORY_REG(JudgedPick)
"""


def test_a_relation_that_forgets_an_attr_is_refused(tmp_path: Path) -> None:
    """Whatever its default makes of it."""
    (tmp_path / "op_proto.h").write_text(PICKS)
    (tmp_path / "picks.py").write_text("def pick(x, *, axis, whole):\n    return x if whole else x.select(axis, 0)\n")
    theirs = "x[*s, n@axis] -> y[*s, n@axis] if whole else [*s]"
    printed = register(
        tmp_path / "opp",
        f"""
        import sys
        sys.path.insert(0, {str(tmp_path)!r})
        from picks import pick
        from ascend_graph.host import build_operator_package
        package = {str(tmp_path / "opp")!r}
        header, relations = {str(tmp_path / "op_proto.h")!r}, {{"JudgedPick": {theirs!r}}}
        build_operator_package(package, header, {{"JudgedPick": pick}}, relations=relations)
        tell("JudgedPick", shape={theirs!r})
        tell("JudgedPick", shape="x[*s, n@axis] -> y[*s]")
        tell("JudgedPick", shape="x[*s, n] -> y[*s, n] if whole else [*s]")
        """,
    )
    right, whole, axis = printed
    assert "agrees in" in right
    assert "contradicts the relation" in whole
    assert "contradicts the relation" in axis


def test_a_loaded_prototype_with_other_parameters_is_not_asked_by_position(package: Path) -> None:
    printed = register(
        package,
        """
        from ascend_graph.host.packages.author_shapes import author_function, author_shapes
        text = "REG_OP(JudgedHalf).INPUT(x, TensorType({DT_FLOAT})).OUTPUT(y, TensorType({DT_FLOAT}))"
        for attrs in ("", ".ATTR(mode, Int, 0)"):
            prototype = ascend_graph.load_prototypes(f"{text}{attrs}.OP_END_FACTORY_REG(JudgedHalf)").prototypes[0]
            print(json.dumps([author_function(prototype) is None, author_shapes(prototype) is None]))
        """,
    )
    assert printed == [[False, False], [True, True]]


def test_without_a_relation_the_author_is_asked_before_any_kernel_runs(answers: list[Any], package: Path) -> None:
    """The relation found from InferShape serves eager mode and metas; a file of relations comes before it."""
    (meta, infer_shape, shape), from_file = answers[4:]
    assert meta.startswith(f"found from the InferShape function of the package {package}, which answered ")
    assert meta.endswith(": x[*s, n] -> y[*s, n // 2] where n % 2 == 0")
    assert str(package) in infer_shape
    assert shape == [4, 3]
    assert from_file.startswith("the relation of ")
    assert from_file.endswith("relations.ini:2: x[n] -> y[n // 2]")


def test_infer_shape_is_asked_of_calls_that_a_narrower_relation_refuses(package: Path) -> None:
    """So eager calls, and graphs of static sizes, take what the author's function takes."""
    printed = register(
        package,
        """
        import dataclasses, warnings
        import ascend_graph.registration.author_meta as author, ascend_graph.registration.author_answers as answers
        from ascend_graph.inference.results import Inferred
        from ascend_graph.shapes import parse_relation
        narrow = Inferred(parse_relation("x[n] -> y[n // 2] where n % 2 == 0"), 9, limits=("narrower than it is",))
        author.infer_with_values = lambda function, values: (narrow, function)
        op = ascend_graph.register_op("JudgedHalf")
        print(json.dumps(op.evidence["meta"]))
        x = torch.arange(12.0).reshape(2, 6)
        made = op(x.npu())
        print(json.dumps([made.shape == (2, 3), torch.equal(op(x.npu().flatten()).cpu().view(2, 3), made.cpu())]))
        compiled = torch.compile(lambda x: op(x), backend="npugraph_ex", fullgraph=True, dynamic=False)
        print(json.dumps(torch.equal(compiled(x.npu()).cpu(), made.cpu())))
        for odd in (x[:, :5].npu(), x[0, :5].npu()):
            try:
                op(odd)
            except RuntimeError as error:
                print(json.dumps(str(error)))
        op.unregister()
        author._found.clear()
        answers.calls_infer_shape = lambda function, binding: False
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            op = ascend_graph.register_op("JudgedHalf")
        print(json.dumps([str(one.message) for one in caught if "narrower" in str(one.message)]))
        """,
    )
    meta, eager, compiled, rows, row, warned = printed
    assert meta.endswith("; InferShape, asked with static sizes, for the calls that it refuses")
    assert (eager, compiled) == ([True, True], True)
    assert all("shape relation: x[n] -> y[n // 2]" in refused for refused in (rows, row))
    assert len(warned) == 1
    assert warned[0].startswith(
        "JudgedHalf: narrower than it is. Write shape= to say more; the meta function is found from"
    )


def test_values_that_infer_shape_reads_are_arguments_of_relations(package: Path) -> None:
    """So graphs of symbolic sizes are made of operators whose shapes follow from ``int[]`` arguments."""
    meta, *shapes = register(
        package,
        """
        op = ascend_graph.register_op("JudgedHead")
        print(json.dumps(op.evidence["meta"]))
        x = torch.arange(12.0).view(4, 3)
        for backend, dynamic in itertools.product((None, "npugraph_ex", torchair.get_npu_backend()), (False, True)):
            call = lambda x, size: op(x * 1, [size])
            if backend is not None:
                torch._dynamo.reset()
                call = torch.compile(call, backend=backend, fullgraph=True, dynamic=dynamic)
            print(json.dumps([call(x.npu(), 2).cpu().tolist(), [*call(torch.ones(7, 2).npu(), 5).shape]]))
        for given in (x.npu(), x.to("meta")):
            try:
                op(given, [5])
            except RuntimeError as error:
                print(json.dumps(str(error)))
            except ascend_graph.AscendGraphError as error:
                print(json.dumps(str(error)))
        """,
    )
    *shapes, eager, of_meta = shapes
    assert "the InferShape function returned GRAPH_FAILED" in eager  # five rows of four
    assert "the InferShape function returned GRAPH_FAILED" in of_meta
    assert meta.startswith(f"found from the InferShape function of the package {package}, which answered ")
    assert meta.endswith(": x[b, *s] -> y[size[0], *s] where len(size) == 1")
    assert shapes == [[[[0, 1, 2], [3, 4, 5]], [5, 2]]] * 6


@pytest.mark.slow
def test_an_input_that_is_given_by_values_has_no_other_dtype(package: Path) -> None:
    (states,) = register(
        package,
        """
        op = ascend_graph.register_op("JudgedHead")
        report = ascend_graph.opcheck(op, checks=["dtypes"], raise_exception=False)
        print(json.dumps([o.state.value for o in report.outcomes if o.check == "dtypes"]))
        """,
    )
    assert states == ["passed"]


def test_the_command_says_which_inputs_are_arguments(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASCEND_CUSTOM_OPP_PATH", "")  # the command changes it
    result = CliRunner().invoke(main, ["infer", "--package", str(package), "--op", "JudgedHead"])
    assert 'register_op("JudgedHead", shape=\'x[b, *s] -> y[size[0], *s]' in result.output
    assert "# size is an argument int[] of the schema" in result.output
    assert "JudgedHalf" not in result.output


def test_the_command_finds_the_relations_of_a_package_and_writes_them(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASCEND_CUSTOM_OPP_PATH", "")  # the command changes it
    target = tmp_path / "relations.ini"
    result = CliRunner().invoke(main, ["infer", "--package", str(package), "-o", str(target)])
    assert result.exit_code == 0, result.output
    assert "shape = x[*s, n] -> y[*s, n // 2] where n % 2 == 0" in target.read_text()
    target.write_text("[JudgedHalf]\nshape = x[n] -> y[n // 2]\n")
    result = CliRunner().invoke(main, ["infer", "--package", str(package), "-o", str(target)])
    assert f"{target}:2: JudgedHalf: kept x[n] -> y[n // 2]; the InferShape function" in result.output
    assert "x[n] -> y[n // 2]" in target.read_text()


def judged_peak(x: Any) -> Any:
    return x.amax(-1)


def test_a_package_without_infer_shape_is_named_by_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASCEND_CUSTOM_OPP_PATH", "")  # the command changes it
    header = tmp_path / "op_proto.h"
    header.write_text(
        "REG_OP(JudgedPeak).INPUT(x, TensorType({DT_FLOAT})).OUTPUT(y, TensorType({DT_FLOAT}))"
        ".OP_END_FACTORY_REG(JudgedPeak)\n"
    )
    build_operator_package(tmp_path / "opp", header, {"JudgedPeak": judged_peak})
    result = CliRunner().invoke(main, ["infer", "--package", str(tmp_path / "opp")])
    assert result.exit_code == 1
    assert "opp: has no InferShape function of JudgedPeak" in result.output
    assert "--meta MODULE:FUNCTION" in result.output


def test_leading_dimensions_that_only_the_relation_broadcasts_are_a_warning(tmp_path: Path) -> None:
    """Where no operand is broadcast the two agree: the warning says how to write that."""
    (project := tmp_path / "project").mkdir()
    for name in ("op_host", "op_kernel"):
        shutil.copytree(EXAMPLES / "operator_package" / name, project / name)
    target = tmp_path / "opp"
    result = CliRunner().invoke(main, ["build", str(project), "-o", str(target)])
    assert result.exit_code == 0, result.output
    broadcast, alike = register(
        target,
        """
        import warnings
        for shape in ("x[...], y[...] -> z[...]", "x[*s], y[*s] -> z[*s]"):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", ascend_graph.BindingWarning)
                ascend_graph.register_op("AddCustom", shape=shape).unregister()
            found = [one for one in caught if one.category is ascend_graph.BindingWarning]
            print(json.dumps([(str(one.message), one.filename, one.lineno) for one in found]))
        """,
    )
    assert alike == []
    ((said, file, line),) = broadcast
    assert "broadcasts its leading dimensions" in said
    assert "write shape='x[*leading], y[*leading] -> z[*leading]'" in said
    assert "ascend_graph" not in Path(file).parts, "the line of the author's own code"
    assert line > 1


def test_branches_of_the_relation_are_compared(tmp_path: Path) -> None:
    """What a package's own relation says counts as well, at other values of attrs than their defaults, too."""
    header = """
    REG_OP(AutBranch)
        .INPUT(x, TensorType({DT_FLOAT}))
        .OPTIONAL_INPUT(bias, TensorType({DT_FLOAT}))
        .OUTPUT(y, TensorType({DT_FLOAT}))
        .ATTR(mode, String, "keep")
        .ATTR(flat, Bool, false)
        .OP_END_FACTORY_REG(AutBranch)
    """
    kernels = tmp_path / "aut_kernels.py"
    kernels.write_text("def branch(x, bias=None, *, mode='keep', flat=False):\n    return x\n")
    own = 'x[m, n], bias[n] -> y[m, n] if mode != "sum" else [m, 1]'
    code = f"""
        import sys; sys.path.insert(0, {str(tmp_path)!r})
        import aut_kernels
        from ascend_graph.host import build_operator_package
        from ascend_graph.prototypes import parse_text
        build_operator_package({str(tmp_path / "opp")!r}, parse_text({header!r}).prototypes,
            {{"AutBranch": aut_kernels.branch}},
                               relations={{"AutBranch": {own!r}}})
    """
    preloaded.run([sys.executable, "-c", textwrap.dedent(code)], check=True)
    same, other, absent = register(
        tmp_path / "opp",
        f"""
        tell("AutBranch", shape={own!r})
        tell("AutBranch", shape='x[m, n], bias[n] -> y[m, n] if mode != "sum" else [m]')
        tell("AutBranch", shape="x[m, n], bias[n] -> y[m, n]")
        """,
    )
    assert "agrees in" in same
    assert "mode='sum'" in other
    assert re.search(r"the relation makes y\[(\d+)\], the package y\[\1, 1\]", other)
    # The relation has no branch, and that of the package names another mode.
    assert "mode='sum'" in absent


@pytest.mark.slow
def test_the_command_compiles_a_source_and_asks_its_infer_shape(tmp_path: Path) -> None:
    """A source that does not compile is told, and the others go on."""
    broken = tmp_path / "broken_infershape.cpp"
    broken.write_text("static int broken( {\n")
    source = PROJECT / "op_host/judged_half.cpp"
    result = CliRunner().invoke(main, ["infer", str(broken), str(source)])
    assert result.exit_code == 0, result.output
    assert "# broken_infershape: no relation: " in result.output
    assert "register_op(\"JudgedHalf\", shape='x[*s, n] -> y[*s, n // 2] where n % 2 == 0')" in result.output


@pytest.mark.slow
def test_what_a_function_of_dtypes_calls_lies_beside_it(tmp_path: Path) -> None:
    """The project's function of dtypes is in op_graph, and calls a function in another project's op_graph."""
    project = tmp_path / "random" / "drawn"
    shapes = project / "op_host" / "drawn_infershape.cpp"
    dtypes = project / "op_graph" / "drawn_graph_infer.cpp"
    common = tmp_path / "random" / "common" / "op_graph" / "common_infer.cpp"
    for path in (shapes, dtypes, common):
        path.parent.mkdir(parents=True)
    (tmp_path / ".git").mkdir()
    (project / "op_graph" / "drawn_proto.h").write_text(
        "REG_OP(Drawn).INPUT(x, TensorType({DT_FLOAT, DT_FLOAT16})).OUTPUT(y, TensorType({DT_FLOAT, DT_FLOAT16}))\n"
        ".OP_END_FACTORY_REG(Drawn)\n"
    )
    shapes.write_text(
        """#include "register/op_impl_registry.h"
        static ge::graphStatus Shape(gert::InferShapeContext* context) {
            *context->GetOutputShape(0) = *context->GetInputShape(0);
            return ge::GRAPH_SUCCESS;
        }
        IMPL_OP_INFERSHAPE(Drawn).InferShape(Shape);
        """
    )
    dtypes.write_text(
        """#include "register/op_impl_registry.h"
        namespace common { ge::graphStatus SameDtype(gert::InferDataTypeContext* context); }
        static ge::graphStatus Dtype(gert::InferDataTypeContext* context) { return common::SameDtype(context); }
        IMPL_OP(Drawn).InferDataType(Dtype);
        """
    )
    found = CliRunner().invoke(main, ["infer", str(shapes)])
    assert "# drawn_infershape: no relation: " in found.output
    assert (
        f"calls common::SameDtype, which no source in {tmp_path} defines; expected their source there" in found.output
    )
    common.write_text(
        """#include "register/op_impl_registry.h"
        namespace common {
        ge::graphStatus SameDtype(gert::InferDataTypeContext* context) {
            return context->SetOutputDataType(0, context->GetInputDataType(0));
        }
        }  // namespace common
        """
    )
    found = CliRunner().invoke(main, ["infer", str(shapes)])
    assert found.exit_code == 0, found.output
    assert "register_op(\"Drawn\", shape='x[*s] -> y[*s]')" in found.output


@pytest.mark.slow
@pytest.mark.parametrize("read", ["GetAttrPointer<ge::DataType>(1)", "GetInt(1)"])
def test_a_type_attr_is_read_as_a_dtype_or_as_a_number(read: str, tmp_path: Path) -> None:
    """The bits of x, eight a number, in rows, of the dtype that the attr names."""
    (tmp_path / "op_graph").mkdir()
    (tmp_path / "op_host").mkdir()
    (tmp_path / "op_graph" / "unpacked_proto.h").write_text(
        "REG_OP(Unpacked).INPUT(x, TensorType({DT_UINT8})).OUTPUT(y, TensorType({DT_FLOAT, DT_INT32}))\n"
        ".REQUIRED_ATTR(rows, Int).ATTR(out, Type, DT_INT32).OP_END_FACTORY_REG(Unpacked)\n"
    )
    source = tmp_path / "op_host" / "unpacked_infershape.cpp"
    source.write_text(
        f"""#include "register/op_impl_registry.h"
        static ge::graphStatus Shape(gert::InferShapeContext* context) {{
            const auto* x = context->GetInputShape(0);
            const int64_t rows = *context->GetAttrs()->GetInt(0);
            if (x->GetDimNum() != 1 || rows <= 0) return ge::GRAPH_FAILED;
            *context->GetOutputShape(0) = gert::Shape({{rows, x->GetDim(0) * 8 / rows}});
            return ge::GRAPH_SUCCESS;
        }}
        static ge::graphStatus Dtype(gert::InferDataTypeContext* context) {{
            const auto* out = context->GetAttrs()->{read};
            if (out == nullptr) return ge::GRAPH_FAILED;
            return context->SetOutputDataType(0, *out == ge::DT_FLOAT ? ge::DT_FLOAT : ge::DT_INT32);
        }}
        IMPL_OP_INFERSHAPE(Unpacked).InferShape(Shape).InferDataType(Dtype);
        """
    )
    found = CliRunner().invoke(main, ["infer", str(source)])
    assert found.exit_code == 0, found.output
    relation = "x[n] -> y[rows, 8 * n // rows]: float32 if out == float32 else int32 where rows >= "
    assert f'register_op("Unpacked", shape=\'{relation}' in found.output


@pytest.mark.slow
def test_outputs_may_have_the_dtype_of_the_first_input_by_rule(tmp_path: Path) -> None:
    """Of two rules the later one holds."""
    for name in ("op_graph", "op_host"):
        (tmp_path / name).mkdir()
    (tmp_path / "op_graph" / "kept_proto.h").write_text(
        "REG_OP(Kept).INPUT(x, TensorType({DT_FLOAT, DT_INT8})).INPUT(w, TensorType({DT_FLOAT}))\n"
        ".OUTPUT(y, TensorType({DT_FLOAT, DT_INT8})).OP_END_FACTORY_REG(Kept)\n"
    )
    source = tmp_path / "op_host" / "kept_infershape.cpp"
    source.write_text(
        """#include "register/op_impl_registry.h"
        static ge::graphStatus Shape(gert::InferShapeContext* context) {
            std::cerr << "asked" << std::endl;
            *context->GetOutputShape(0) = *context->GetInputShape(0);
            return ge::GRAPH_SUCCESS;
        }
        static ge::graphStatus Dtype(gert::InferDataTypeContext* context) {
            return context->SetOutputDataType(0, ge::DT_FLOAT);
        }
        IMPL_OP_INFERSHAPE(Kept).InferShape(Shape).InferDataType(Dtype).InferOutDataTypeSameWithFirstInput();
        """
    )
    found = CliRunner().invoke(main, ["infer", str(source)])
    assert found.exit_code == 0, found.output
    assert "register_op(\"Kept\", shape='x[*s] -> y[*s]')" in found.output


@pytest.mark.slow
@pytest.mark.parametrize("sets", [True, False])
def test_a_scalar_is_told_from_a_shape_that_is_not_set(sets: bool, tmp_path: Path) -> None:
    for name in ("op_graph", "op_host"):
        (tmp_path / name).mkdir()
    (tmp_path / "op_graph" / "normed_proto.h").write_text(
        "REG_OP(Normed).INPUT(x, TensorType({DT_FLOAT})).OUTPUT(y, TensorType({DT_FLOAT}))\n"
        ".OUTPUT(norm, TensorType({DT_FLOAT})).OP_END_FACTORY_REG(Normed)\n"
    )
    source = tmp_path / "op_host" / "normed_infershape.cpp"
    source.write_text(
        f"""#include "register/op_impl_registry.h"
        static ge::graphStatus Shape(gert::InferShapeContext* context) {{
            *context->GetOutputShape(0) = *context->GetInputShape(0);
            {"context->GetOutputShape(1)->SetDimNum(0);" if sets else ""}
            return ge::GRAPH_SUCCESS;
        }}
        IMPL_OP_INFERSHAPE(Normed).InferShape(Shape);
        """
    )
    found = CliRunner().invoke(main, ["infer", str(source)])
    if sets:
        assert "register_op(\"Normed\", shape='x[*s] -> y[*s], norm[]')" in found.output
    else:
        assert "does not set the shape of output norm" in found.output
