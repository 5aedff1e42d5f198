"""Operator projects made from prototype, relation and kernel: what they say, what they refuse, and that they build and run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from ascend_graph.codegen.op_project import generate_op_project
from ascend_graph.codegen.rendering import GenerationError
from click.testing import CliRunner, Result

from ascend_graph.cli import main
from ascend_graph.prototypes import read_prototypes

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
        ({"GenAdds": ADD}, "shape of GenAdds: .* define no such operator; they define GenAdd, GenPick"),
        ({"GenList": "x[n] -> y[n]"}, "GenList: y is a dynamic output, whose shapes no relation says"),
        ({"GenType": "x[n] -> y[n]"}, "GenType: attr to is a Type; an OpDef has Bool, Float, Int"),
        ({"GenAdd": "x[n], w[n] -> z[n]"}, "the prototype has no input w"),
        ({"GenAdd": "x[n], y[n] -> z[n]: float16"}, "GenAdd: no combination of its dtypes"),
    ],
)
def test_refusals_write_nothing(shapes: dict[str, str], message: str, header: Path, tmp_path: Path) -> None:
    with pytest.raises(GenerationError, match=message):
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
    assert made["left_out"].keys() == {"GenPick", "GenList", "GenType"}
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
