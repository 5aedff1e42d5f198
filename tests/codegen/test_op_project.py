"""Operator projects made from prototype, relation and kernel: what they say, what they refuse, and that they build
and run."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ascend_graph.codegen.eager_library.sample_calls import DTYPE_NAMES
from ascend_graph.codegen.op_project import generate_op_project
from click.testing import CliRunner, Result

from ascend_graph import AscendGraphError
from ascend_graph.cli import main
from ascend_graph.prototypes import read_prototypes
from ascend_graph.shapes import Relation, parse_relation
from tests.codegen.random_operators import random_operator

KERNEL = Path(__file__).parents[2] / "examples/operator_package/op_kernel/add_custom.cpp"
HEADER = """
REG_OP(GenAdd)
    .INPUT(x, TensorType({DT_FLOAT}))
    .INPUT(y, TensorType({DT_FLOAT}))
    .OUTPUT(z, TensorType({DT_FLOAT}))
    .OP_END_FACTORY_REG(GenAdd)
REG_OP(GenPick)
    .INPUT(x, TensorType({DT_FLOAT16, DT_FLOAT, DT_STRING}))
    .INPUT(default, TensorType({DT_INT32, DT_INT64}))
    .OPTIONAL_INPUT(bias, TensorType({DT_FLOAT16, DT_FLOAT, DT_STRING}))
    .OUTPUT(y, TensorType({DT_FLOAT16, DT_FLOAT}))
    .OUTPUT(mask, TensorType({DT_BOOL}))
    .REQUIRED_ATTR(dims, ListInt)
    .ATTR(mode, String, "sum")
    .OP_END_FACTORY_REG(GenPick)
REG_OP(GenList)
    .DYNAMIC_INPUT(x, TensorType({DT_FLOAT}))
    .DYNAMIC_OUTPUT(y, TensorType({DT_FLOAT}))
    .OP_END_FACTORY_REG(GenList)
REG_OP(GenWords)
    .INPUT(x, TensorType({DT_STRING}))
    .OUTPUT(y, TensorType({DT_STRING}))
    .OP_END_FACTORY_REG(GenWords)
REG_OP(GenType)
    .INPUT(x, TensorType({DT_FLOAT}))
    .OUTPUT(y, TensorType({DT_FLOAT}))
    .ATTR(to, Type, DT_FLOAT)
    .OP_END_FACTORY_REG(GenType)
"""
ADD = "x[*s], y[*s] -> z[*s]"
PICK = "x[m, n], default[k], bias[n] -> y[k, n]: x, mask[m]: bool"


@pytest.fixture
def header(tmp_path: Path) -> Path:
    path = tmp_path / "op_proto.h"
    path.write_text(HEADER)
    return path


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def test_the_definition_is_the_prototype(header: Path, tmp_path: Path) -> None:
    """What the written OpDef says, read back, is what the header says; combinations are those the relation gives."""
    generate_op_project(tmp_path / "p", [header], shapes={"GenPick": PICK})
    [found] = read_prototypes(tmp_path / "p/op_host/gen_pick_def.cpp").prototypes
    said = {p.op_type: p for p in read_prototypes(header).prototypes}["GenPick"]
    assert [(p.name, p.kind) for p in found.inputs] == [(p.name, p.kind) for p in said.inputs]
    assert [p.name for p in found.outputs] == [p.name for p in said.outputs]
    assert found.attrs == said.attrs
    text = (tmp_path / "p/op_host/gen_pick_def.cpp").read_text()
    rows = [
        line.split("{")[1].split("}")[0].replace("ge::DT_", "") for line in text.splitlines() if ".DataType(" in line
    ]
    assert rows == [
        "FLOAT16, FLOAT16, FLOAT, FLOAT",
        "INT32, INT64, INT32, INT64",
        "FLOAT16, FLOAT16, FLOAT, FLOAT",
        "FLOAT16, FLOAT16, FLOAT, FLOAT",
        "BOOL, BOOL, BOOL, BOOL",
    ]
    kernel = (tmp_path / "p/op_kernel/gen_pick.cpp").read_text()
    assert (
        "void gen_pick(GM_ADDR x, GM_ADDR default_, GM_ADDR bias, GM_ADDR y, GM_ADDR mask, GM_ADDR workspace" in kernel
    )


@pytest.mark.parametrize(
    ("outputs", "relation", "expected"),
    [
        (
            "DT_FLOAT16, DT_FLOAT, DT_INT8",
            "x[*s] -> y[*s]: int8 if quantize else x",
            ["FLOAT16 FLOAT16", "FLOAT16 INT8", "FLOAT FLOAT", "FLOAT INT8"],
        ),
        (
            "DT_FLOAT16, DT_FLOAT",
            'x[*s] -> y[*s]: float32 if mode == "wide" else x',
            ["FLOAT16 FLOAT16", "FLOAT16 FLOAT", "FLOAT FLOAT"],
        ),
        ("DT_INT8, DT_INT32", "x[*s] -> y[*s]: to", ["FLOAT16 INT8", "FLOAT16 INT32", "FLOAT INT8", "FLOAT INT32"]),
        (
            "DT_INT8",
            "x[*s], bias[n] -> y[*s]: int8 if bias is None else None",
            ["FLOAT16 INT8", "FLOAT INT8"],
        ),
    ],
)
def test_an_output_has_every_dtype_that_the_relation_gives_it(
    outputs: str, relation: str, expected: list[str], tmp_path: Path
) -> None:
    header = tmp_path / "op_proto.h"
    header.write_text(
        "REG_OP(GenGives)\n    .INPUT(x, TensorType({DT_FLOAT16, DT_FLOAT}))\n"
        "    .OPTIONAL_INPUT(bias, TensorType({DT_FLOAT16, DT_FLOAT}))\n"
        f"    .OUTPUT(y, TensorType({{{outputs}}}))\n    .ATTR(quantize, Bool, false)\n"
        '    .ATTR(mode, String, "same")\n    .ATTR(to, Int, 2)\n    .OP_END_FACTORY_REG(GenGives)\n'
    )
    generate_op_project(tmp_path / "p", [header], shapes={"GenGives": relation})
    text = (tmp_path / "p/op_host/gen_gives_def.cpp").read_text()
    x, _, y = [
        line.split("{")[1].split("}")[0].replace("ge::DT_", "").split(", ")
        for line in text.splitlines()
        if ".DataType(" in line
    ]
    assert [" ".join(pair) for pair in zip(x, y, strict=True)] == expected


def test_an_output_that_may_be_absent_is_optional(tmp_path: Path) -> None:
    header = tmp_path / "op_proto.h"
    header.write_text(
        "REG_OP(GenMaybe)\n    .INPUT(x, TensorType({DT_FLOAT}))\n    .OUTPUT(y, TensorType({DT_FLOAT}))\n"
        "    .OUTPUT(z, TensorType({DT_FLOAT}))\n    .ATTR(want, Bool, false)\n    .OP_END_FACTORY_REG(GenMaybe)\n"
    )
    generate_op_project(tmp_path / "p", [header], shapes={"GenMaybe": "x[*s] -> y[*s], z[*s] if want else None"})
    definition = (tmp_path / "p/op_host/gen_maybe_def.cpp").read_text()
    assert definition.count(".ParamType(REQUIRED)") == 2
    assert definition.split('Output("z")')[1].lstrip().startswith(".ParamType(OPTIONAL)")
    tiling = (tmp_path / "p/op_host/gen_maybe_tiling.cpp").read_text()
    assert "tiling.set_total_z(static_cast<uint32_t>(Elements(context, 1)));" in tiling


def test_what_is_the_authors_stays(header: Path, tmp_path: Path) -> None:
    project = tmp_path / "p"
    first = generate_op_project(project, [header], shapes={"GenAdd": ADD}, socs=["ascend910b", "ascend910_93"])
    assert "op_kernel/gen_add.cpp: the kernel, which writes zeros as it is" in first.drafts
    presets = json.loads((project / "CMakePresets.json").read_text())
    units = presets["configurePresets"][0]["cacheVariables"]["ASCEND_COMPUTE_UNIT"]["value"]
    assert units == "ascend910b;ascend910_93"
    assert 'AddConfig("ascend910_93")' in (project / "op_host/gen_add_def.cpp").read_text()
    (project / "op_kernel/gen_add.cpp").write_text("// mine\n")
    (project / "op_host/gen_add_def.cpp").write_text("// lost\n")
    again = generate_op_project(project, [header], shapes={"GenAdd": ADD})
    assert [str(path) for path in again.written] == ["op_host/gen_add_def.cpp"]
    assert (project / "op_kernel/gen_add.cpp").read_text() == "// mine\n"
    assert again.drafts == ()


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ({}, "nothing to generate: say the output shapes of an operator, --shape 'GenAdd="),
        ({"GenAdds": ADD}, "shape of GenAdds: .* lacks this operator; expected one of GenAdd, GenPick"),
        ({"GenList": "x[n] -> y[n]"}, "GenList: y is a dynamic output, whose shapes no relation says"),
        ({"GenType": "x[n] -> y[n]"}, "GenType: attr to is a Type; expected one of Bool, Float, Int"),
        ({"GenAdd": "x[n], w[n] -> z[n]"}, "the prototype has no input w"),
        ({"GenAdd": "x[n], y[n] -> z[n]: float16"}, "GenAdd: the output z is float16 by the relation"),
        ({"GenWords": "x[n] -> y[n]"}, "GenWords: no combination of its dtypes has types in a kernel"),
    ],
)
def test_refusals_write_nothing(shapes: dict[str, str], message: str, header: Path, tmp_path: Path) -> None:
    with pytest.raises(AscendGraphError, match=message):
        generate_op_project(tmp_path / "p", [header], shapes=shapes)
    assert not (tmp_path / "p").exists()


def test_a_kernel_of_another_form_is_refused(header: Path, tmp_path: Path) -> None:
    kernel = tmp_path / "gen_add.cpp"
    kernel.write_text('extern "C" __global__ __aicore__ void gen_add(GM_ADDR x, GM_ADDR y, GM_ADDR z, uint32_t n) {}\n')
    result = run("gen", "op-project", tmp_path / "p", "--from", header, "--from", kernel, "--shape", f"GenAdd={ADD}")
    assert result.exit_code == 1
    assert "gen_add(GM_ADDR x, GM_ADDR y, GM_ADDR z, GM_ADDR workspace, GM_ADDR tiling)" in result.stderr
    assert "ascend-graph new --launch kernel" in result.stderr


def test_infer_shape_command(header: Path, tmp_path: Path) -> None:
    output = tmp_path / "shapes.cpp"
    arguments = ["gen", "infer-shape", header, "--shape", f"GenAdd={ADD}", "--shape", f"GenPick={PICK}"]
    found = json.loads(run(*arguments, "-o", output, "--format", "json").stdout)
    assert found["written"]
    assert "ascend_graph_GenPick::InferDataType" in found["functions"]
    assert output.read_text() == found["source"] == run(*arguments).stdout
    assert "already up to date" in run(*arguments, "-o", output).stderr
    refused = run("gen", "infer-shape", header, "--shape", "GenNone=x[n] -> y[n]")
    assert (refused.exit_code, "no REG_OP of GenNone: the sources define GenAdd, GenPick" in refused.stderr) == (
        1,
        True,
    )


@pytest.mark.slow
def test_a_project_with_a_kernel_builds_and_passes_its_own_test(header: Path, tmp_path: Path) -> None:
    """The author writes what the kernel reads of its tiling data, and what the operator computes; nothing else."""
    kernel = tmp_path / "my_kernel.cpp"
    kernel.write_text(KERNEL.read_text().replace("void add_custom", "void gen_add"))
    project, package = tmp_path / "p", tmp_path / "opp"
    arguments = ["gen", "op-project", project, "--from", header, "--from", kernel, "--shape", f"GenAdd={ADD}"]
    made = json.loads(run(*arguments, "--format", "json").stdout)
    assert made["drafts"] == [
        "op_host/gen_add_tiling.cpp: what the kernel reads of its tiling data: total, block, tile"
    ]
    assert made["left_out"].keys() == {"GenPick", "GenList", "GenWords", "GenType"}
    tiling = project / "op_host/gen_add_tiling.cpp"
    text = tiling.read_text()
    assert "does not say yet what the kernel reads" in text
    text = text.replace("set_total(0)", "set_total(static_cast<uint32_t>(elements))")
    text = text.replace("set_block(0)", "set_block(static_cast<uint32_t>((elements / cores + 16) / 16 * 16))")
    text = text.replace("set_tile(0)", "set_tile(2048)")
    lines = [line for line in text.splitlines() if "fprintf" not in line and "GRAPH_FAILED" not in line]
    tiling.write_text("\n".join(lines))
    test = project / "tests/test_operators.py"
    test.write_text(test.read_text().replace("Callable[..., Any]] = {}", 'Callable[..., Any]] = {"GenAdd": torch.add}'))
    built = run("build", project, "-o", package)
    assert built.exit_code == 0, built.output
    (project / "pytest.ini").write_text("[pytest]\n")
    launcher = [sys.executable, "-m", "ascend_graph.host", "--quiet", "--force", "--opp", str(package)]
    command = [*launcher, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", "tests"]
    result = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    states = [line.split()[:2] for line in result.stdout.splitlines() if line.startswith("  ")]
    assert ["reference", "passed"] in states
    assert ["ge", "passed"] in states


def calls_of(relation: Relation, dtype: str) -> Iterator[tuple[Any, ...]]:
    """Outputs of the relation, by combinations of present inputs and values of attrs."""
    values = {"want": (False, True), "mode": ("keep", "drop"), "level": (2, 3), "alpha": (0.5,), "axes": ([0],)}
    attrs = [name for name in values if name in relation.free_names]
    sizes = {
        "x": (2, 3),
        "w": (3, 4) if "w[n, k]" in str(relation) else (3,) if "w[n]" in str(relation) else (2, 3),
        "bias": (3,),
    }
    optional = [(name, None) if name == "bias" else (name,) for name in relation.inputs]
    for present in itertools.product(*optional):
        given = {name: sizes[name] for name in present if name}
        for chosen in itertools.product(*(values[name] for name in attrs)):
            dtypes = dict.fromkeys(given, dtype)
            yield relation.infer(given, dtypes, dict(zip(attrs, chosen, strict=True)))


@pytest.mark.parametrize("seed", range(20))
def test_the_text_of_random_prototypes_has_all_that_their_relations_give(seed: int, tmp_path: Path) -> None:
    """Every dtype of every output is in a combination, absent outputs are optional, and no tiling reads through null."""
    one, header = random_operator(seed), tmp_path / "op_proto.h"
    header.write_text(one.reg_op)
    generate_op_project(tmp_path / "p", [header], shapes={one.op_type: one.relation})
    host = tmp_path / "p/op_host"
    relation = parse_relation(one.relation)
    [said] = read_prototypes(header).prototypes
    definition = (host / f"{one.op_type.lower()}_def.cpp").read_text()
    blocks = dict(re.findall(r'this->(?:In|Out)put\("(\w+)"\)(.*?);', definition, re.DOTALL))
    rows = {
        name: re.findall(r"ge::DT_(\w+)", text.partition(".DataType(")[2].partition(")")[0])
        for name, text in blocks.items()
    }
    combinations = set(zip(rows["x"], *(rows[output.name] for output in said.outputs), strict=True))
    absent = set()
    for dtype in said.inputs[0].dtypes:
        torch_name = DTYPE_NAMES[dtype.name]
        for made in calls_of(relation, torch_name):
            names = [None if one is None else one[1] for one in made]
            absent |= {output.name for output, name in zip(said.outputs, names, strict=True) if name is None}
            assert any(
                row[0] == dtype.name
                and all(name in (None, DTYPE_NAMES[d]) for name, d in zip(names, row[1:], strict=True))
                for row in combinations
            ), (one.relation, dtype.name, names)
    assert {name for name, text in blocks.items() if "ParamType(OPTIONAL)" in text} == absent | (
        {"bias"} & {*relation.inputs}
    )
    tiling = (host / f"{one.op_type.lower()}_tiling.cpp").read_text()
    for n, output in enumerate(said.outputs):
        if output.name in absent:
            assert f"Elements(context, {n})" in tiling
            assert f"GetOutputShape({n})->" not in tiling


CHECK = """
import json, sys, torch, torch_npu, torchair, ascend_graph
from ascend_graph.shapes import parse_relation

def zeros(relation, names):
    def reference(*args, **kwargs):
        given = dict(zip(names, args)) | kwargs
        tensors = {n: given.get(n) for n in relation.inputs}
        shapes = {n: None if t is None else tuple(t.shape) for n, t in tensors.items()}
        dtypes = {n: None if t is None else str(t.dtype).removeprefix("torch.") for n, t in tensors.items()}
        attrs = {n: v for n, v in given.items() if n not in tensors}
        found = relation.infer(shapes, dtypes, attrs)
        made = [None if one is None else torch.zeros(one[0], dtype=getattr(torch, one[1])) for one in found]
        return made[0] if len(made) == 1 else tuple(made)
    return reference

for op_type, relation in json.loads(sys.argv[1]).items():
    op = ascend_graph.register_op(op_type, shape=relation)
    names = [a.name for a in op.overload._schema.arguments]
    reference = zeros(parse_relation(relation), names)
    report = ascend_graph.opcheck(op, reference=reference, checks=CHECKS, count=2, raise_exception=False)
    print(json.dumps(report.as_dict()))
"""


@pytest.mark.slow
def test_projects_of_random_prototypes_build_and_run(tmp_path: Path) -> None:
    """As generated: the kernels write zeros to all outputs that a call has, and to nothing else."""
    operators = [random_operator(seed) for seed in range(20)]
    header, project, package = tmp_path / "op_proto.h", tmp_path / "p", tmp_path / "opp"
    header.write_text("\n".join(one.reg_op for one in operators))
    generate_op_project(project, [header], shapes={one.op_type: one.relation for one in operators})
    built = run("build", project, "-o", package)
    assert built.exit_code == 0, built.output
    relations = json.dumps({one.op_type: one.relation for one in operators})
    checks = ["runs", "waits", "arguments", "reference", "meta", "outside", "ge", "npugraph_ex"]
    launcher = [sys.executable, "-W", "ignore", "-m", "ascend_graph.host", "--quiet", "--force", "--opp", str(package)]
    code = CHECK.replace("CHECKS", repr(checks))
    result = subprocess.run([*launcher, "-c", code, relations], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    reports = [json.loads(line) for line in result.stdout.splitlines()]
    assert len(reports) == len(operators)
    wrong = {
        one.relation: [check for check in report["checks"] if check["state"] != "passed"]
        for one, report in zip(operators, reports, strict=True)
        if not report["ok"]
    }
    assert not wrong
