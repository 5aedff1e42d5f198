"""The project that ``ascend-graph new`` writes: what is in it, what regenerating keeps, what is refused."""

from __future__ import annotations

import ast
import configparser
import os
import re
import shlex
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from ascend_graph.codegen.eager_library.project import generate_project, op_plugin_entries
from click.testing import CliRunner

from ascend_graph import AscendGraphError
from ascend_graph.aclnn import parse_text as parse_functions
from ascend_graph.cli import main
from ascend_graph.compilation import torch_library
from ascend_graph.host import build_operator_package
from ascend_graph.prototypes import parse_text

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
ANY = "TensorType::ALL()"
ADD = f"REG_OP(AddCustom).INPUT(x, {ANY}).INPUT(y, {ANY}).OUTPUT(z, {ANY}).OP_END_FACTORY_REG(AddCustom)\n"
GRAD = f"REG_OP(AddCustomGrad).INPUT(dz, {ANY}).OUTPUT(dx, {ANY}).OUTPUT(dy, {ANY}).OP_END_FACTORY_REG(AddCustomGrad)\n"
SCALE = f"REG_OP(Scale).INPUT(x, {ANY}).OUTPUT(y, {ANY}).REQUIRED_ATTR(factor, Float).OP_END_FACTORY_REG(Scale)\n"


@pytest.fixture
def header(tmp_path: Path) -> Path:
    path = tmp_path / "op_proto.h"
    path.write_text(ADD + GRAD)
    return path


def test_a_new_project(tmp_path: Path, header: Path) -> None:
    result = CliRunner().invoke(
        main, ["new", str(tmp_path / "my_ops"), "--from", str(header), "--shape", "AddCustom=x[*s], y[*s] -> z[*s]"]
    )
    assert result.exit_code == 0, result.output
    assert "2 operators" in result.output
    assert "proposed, check operators.ini: gradient of AddCustom: AddCustomGrad" in result.output
    assert "proposed, check operators.ini: shape of AddCustomGrad: dz -> dx like dz, dy like dz" in result.output
    assert "shape of AddCustom:" not in result.output
    project = tmp_path / "my_ops"
    files = {str(p.relative_to(project)) for p in project.rglob("*") if p.is_file()}
    assert files >= {
        *("pyproject.toml", "setup.py", "README.md", "tests/test_my_ops.py"),
        *("my_ops/__init__.py", "my_ops/_generated.py", "my_ops/op_proto.h", "my_ops/operators.ini", "my_ops/py.typed"),
        *(
            "csrc/generated/operators.h",
            "csrc/generated/operators.cpp",
            "csrc/generated/gradients.cpp",
            "csrc/generated/module.cpp",
        ),
    }
    assert (project / "my_ops/op_proto.h").read_text() == header.read_text()
    for path in project.rglob("*.py"):
        ast.parse(path.read_text(), str(path))
    declared = configparser.ConfigParser(delimiters=("=",), interpolation=None)
    declared.read(project / "my_ops/operators.ini")
    assert declared["AddCustom"]["shape"] == "x[*s], y[*s] -> z[*s]"
    assert declared["AddCustom"]["backward"] == "AddCustomGrad"


def test_regenerating_writes_what_changed_and_keeps_the_authors_files(tmp_path: Path, header: Path) -> None:
    project = tmp_path / "my_ops"
    generate_project(project, header)
    own = ["README.md", "setup.py", "pyproject.toml", "my_ops/__init__.py", "tests/test_my_ops.py"]
    for name in own:
        path = project / name
        path.write_text(f"# mine\n{path.read_text()}")
    (project / "csrc/more.cpp").write_text("// mine\n")
    ini = project / "my_ops/operators.ini"
    ini.write_text(
        ini.read_text().replace("shape = x -> z like x", "shape = x[*s], y[*s] -> z[*s]  # mine") + "\n# the end\n"
    )
    stamps = {p: p.stat().st_mtime_ns for p in project.rglob("*.cpp")}
    assert Path("csrc/generated/operators.cpp") in generate_project(project).written
    text = (project / "csrc/generated/operators.cpp").read_text()
    assert "x[*s], y[*s] -> z[*s]" in text
    assert generate_project(project).written == ()
    changed = {p.name for p, stamp in stamps.items() if p.stat().st_mtime_ns != stamp}
    assert changed <= {"operators.cpp", "gradients.cpp"}
    assert "operators.cpp" in changed

    header.write_text(ADD + GRAD + SCALE)
    again = generate_project(project, header)
    assert again.operators == ("AddCustom", "AddCustomGrad", "Scale")
    assert again.proposed == ("shape of Scale: x -> y like x",)
    assert all((project / name).read_text().startswith("# mine\n") for name in own)
    assert (project / "csrc/more.cpp").read_text() == "// mine\n"
    kept = ini.read_text()
    assert "y[*s] -> z[*s]  # mine" in kept
    assert "# the end" in kept
    assert kept.index("[Scale]") > kept.index("# the end")


def test_operators_that_a_new_source_lacks_are_named(tmp_path: Path, header: Path) -> None:
    shapes = {"AddCustom": "x[*s], y[*s] -> z[*s]"}
    generate_project(tmp_path / "my_ops", header, shapes=shapes)
    other = tmp_path / "scale.h"
    other.write_text(SCALE)
    alone = generate_project(tmp_path / "my_ops", other)
    assert [name for name, why in alone.skipped if "give its header to --from, too" in why] == [
        "AddCustom",
        "AddCustomGrad",
    ]
    both = generate_project(tmp_path / "my_ops", [header, other])
    assert (both.operators, both.skipped) == (("AddCustom", "AddCustomGrad", "Scale"), ())


def test_a_project_names_its_operators_to_pytorch(tmp_path: Path, header: Path) -> None:
    generate_project(tmp_path / "my_ops", header)
    text = (tmp_path / "my_ops" / "pyproject.toml").read_text()
    assert '[project.entry-points."ascend_graph.operators"]\nmy_ops = "my_ops"\n' in text
    assert re.findall(r"(?m)^\[(.*)\]$", text)[-2:] == ["tool.setuptools", "tool.setuptools.package-data"]


@pytest.mark.parametrize("bindings", ["torch", "pybind", "both"])
def test_bindings_are_remembered(tmp_path: Path, header: Path, bindings: str) -> None:
    project = tmp_path / "my_ops"
    generate_project(project, header, bindings=bindings)
    module = (project / "csrc/generated/module.cpp").read_text()
    assert ("PYBIND11_MODULE" in module) == (bindings != "torch")
    python = (project / "my_ops/_generated.py").read_text()
    assert ("return _C.add_custom(x, y)" in python) == (bindings == "pybind")
    assert generate_project(project).written == ()


def test_its_tests_follow_the_declarations(tmp_path: Path, header: Path) -> None:
    """Shapes, gradients and operators of the tests are those of operators.ini and op_proto.h, whatever the author
    made of them."""
    project = tmp_path / "my_ops"
    generate_project(project, header, shapes={"AddCustom": "x[*s], y[*s] -> z[*s]"})
    calls, ini, test = (project / f for f in ("tests/my_ops_calls.py", "my_ops/operators.ini", "tests/test_my_ops.py"))
    assert 'WITH_GRADIENT = ["add_custom"]' in calls.read_text()
    test.write_text(test.read_text() + "# mine\n")
    ini.write_text(
        ini.read_text()
        .replace("backward = AddCustomGrad\n", "")
        .replace("x[*s], y[*s] -> z[*s]", "x[m, 4], y[m, 4] -> z[m, 4]")
    )
    (project / "my_ops/op_proto.h").write_text(
        header.read_text() + header.read_text().replace("AddCustom", "MulCustom")
    )
    assert Path("tests/my_ops_calls.py") in generate_project(project).written
    text = calls.read_text()
    assert 'WITH_GRADIENT = ["mul_custom"]' in text
    assert re.search(r'"add_custom": lambda: \{"x": _tensor\(\(\d, 4\)', text)
    assert '"mul_custom": lambda:' in text
    assert test.read_text().endswith("# mine\n")


@pytest.mark.parametrize("launch", ["aclnn", "kernel"])
def test_the_readme_installs_what_the_build_needs(tmp_path: Path, header: Path, launch: str) -> None:
    """Without isolation everything of build-system.requires has to be there; torch and torch_npu are."""
    kernel = EXAMPLES / "pybind_launch"
    sources = [header] if launch == "aclnn" else [kernel / "op_proto.h", kernel / "add_custom.cpp"]
    project = generate_project(tmp_path / "my_ops", sources, launch=launch).directory
    (requires,) = re.findall(r"(?m)^requires = \[(.*)\]", (project / "pyproject.toml").read_text())
    needed = {re.split(r"[<>=]", text)[0] for text in re.findall(r'"([^"]+)"', requires)} - {"torch", "torch_npu"}
    (line,) = re.findall(r"pip install (build .*?)(?: #|$)", (project / "README.md").read_text(), re.MULTILINE)
    assert needed <= {re.split(r"[<>=]", text)[0] for text in shlex.split(line)}


def test_the_gradient_may_be_taken_out(tmp_path: Path, header: Path) -> None:
    project = tmp_path / "my_ops"
    generate_project(project, header)
    ini = project / "my_ops/operators.ini"
    ini.write_text(ini.read_text().replace("backward = AddCustomGrad\n", ""))
    generate_project(project)
    assert not (project / "csrc/generated/gradients.cpp").exists()
    assert generate_project(project).written == ()


@pytest.mark.parametrize(
    ("ini", "match"),
    [
        ("[AddCustom]\nshape = x[n -> z[n]\n", r"operators.ini, \[AddCustom\]: expected"),
        ("[AddCustom]\nshape = w[n] -> z[n]\n", "w is not an input or output; there are x, y, z"),
        ("[AddCustom]\nshape = x[n] -> \n", "the output z is missing"),
        ("[AddCustom]\nshape = x[n] -> z[k]\n", "k must be a dimension or an attr"),
        (
            "[AddCustom]\nshape = x -> z like x\nbackward = Nothing\n",
            "the gradient of AddCustom is 'Nothing', which is not an operator here",
        ),
        (
            "[AddCustom]\nshape = x -> z like x\nbackward = Scale\n",
            "Scale as the gradient of AddCustom: its argument factor is not an input",
        ),
        ("[AddCustom]\nshapes = x -> z like x\n", r"\[AddCustom\] has shapes; it may have shape and backward"),
        ("shape = x\n", "no section headers"),
        ("[AddCustom]\nshape = x\n[AddCustom]\n", "already exists"),
    ],
)
def test_a_wrong_declaration_changes_nothing(tmp_path: Path, header: Path, ini: str, match: str) -> None:
    project = tmp_path / "my_ops"
    header.write_text(ADD + SCALE)
    generate_project(project, header)
    (project / "my_ops/operators.ini").write_text(ini)
    before = {p: p.read_bytes() for p in project.rglob("*") if p.is_file()}
    with pytest.raises(AscendGraphError, match=match):
        generate_project(project)
    assert before == {p: p.read_bytes() for p in project.rglob("*") if p.is_file()}


@pytest.mark.parametrize(
    ("name", "text", "match"),
    [
        ("MyOps", ADD, "'MyOps' cannot be the name"),
        ("my-ops", ADD, "'my-ops' cannot be the name"),
        ("my_ops", "// nothing\n", "expected a REG_OP"),
        ("my_ops", ADD.replace("(x,", "(x;system(0),"), "x"),
        ("my_ops", f"REG_OP(Made).OUTPUT(y, {ANY}).OP_END_FACTORY_REG(Made)", "it has no inputs"),
    ],
)
def test_prototypes_that_make_no_project(tmp_path: Path, name: str, text: str, match: str) -> None:
    header = tmp_path / "op_proto.h"
    header.write_text(text)
    with pytest.raises(AscendGraphError, match=match):
        generate_project(tmp_path / name, header)
    assert not (tmp_path / name).exists()


def test_a_directory_that_is_no_project(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["new", str(tmp_path / "my_ops")])
    assert result.exit_code == 1
    assert "is not a project yet; say which prototypes it is for: --from op_proto.h" in result.output


def test_operators_that_do_not_fit_are_left_out_and_named(tmp_path: Path, header: Path) -> None:
    header.write_text(
        ADD + f"REG_OP(Odd).INPUT(x, {ANY}).OUTPUT(y, {ANY}).ATTR(t, ListListInt, {{}}).OP_END_FACTORY_REG(Odd)\n"
        f"REG_OP(Split).INPUT(x, {ANY}).DYNAMIC_OUTPUT(ys, {ANY}).OP_END_FACTORY_REG(Split)\n"
    )
    project = generate_project(tmp_path / "my_ops", header)
    assert project.operators == ("AddCustom",)
    assert [name for name, _ in project.skipped] == ["Odd", "Split"]
    assert "ListListInt" in project.skipped[0][1]
    assert "write shape = … below [Split]" in project.skipped[1][1]


STATISTICS = f"""
REG_OP(Stats).INPUT(x, {ANY}).OUTPUT(y, {ANY}).OUTPUT(r, {ANY}).REQUIRED_ATTR(groups, Int).ATTR(block, Int, 16)
    .OP_END_FACTORY_REG(Stats)
REG_OP(StatsGrad).INPUT(dy, {ANY}).INPUT(r, {ANY}).OUTPUT(dx, {ANY})
    .REQUIRED_ATTR(groups, Int).OP_END_FACTORY_REG(StatsGrad)
"""


def test_a_gradient_that_does_not_fit_is_said_with_the_line_to_write(tmp_path: Path) -> None:
    (tmp_path / "op_proto.h").write_text(STATISTICS)
    shapes = {"Stats": "x[*s, d] -> y[*s, d], r[*s, groups]", "StatsGrad": "dy[*s, d], r[*s, groups] -> dx[*s, d]"}
    project = generate_project(tmp_path / "my_ops", tmp_path / "op_proto.h", shapes=shapes)
    (said,) = project.proposed
    assert said.startswith(
        "gradient of Stats: none, for StatsGrad as the gradient of Stats: it does not take the attr block"
    )
    assert said.endswith(". Write: backward = StatsGrad; unused: block; constant: r")


def test_calls_of_the_generated_tests_fit_attrs_in_sizes(tmp_path: Path) -> None:
    (tmp_path / "op_proto.h").write_text(STATISTICS)
    shapes = {"Stats": "x[*s, d] -> y[*s, d], r[*s, d // block]", "StatsGrad": "dy[*s, d], r[*s, groups] -> dx[*s, d]"}
    generate_project(tmp_path / "my_ops", tmp_path / "op_proto.h", shapes=shapes)
    calls = (tmp_path / "my_ops/tests/my_ops_calls.py").read_text()
    assert '"stats": lambda: {"x": _tensor((2, 3, 32), torch.float32), "groups": 1}' in calls
    assert '{"dy": _tensor((2, 3, 4), torch.float32), "r": _tensor((2, 3, 1), torch.float32), "groups": 1}' in calls


@pytest.mark.parametrize("again", [False, True])
def test_a_project_is_brought_up_to_date_in_a_directory_of_another_name(
    tmp_path: Path, header: Path, again: bool
) -> None:
    generate_project(tmp_path / "my_ops", header)
    moved = (tmp_path / "my_ops").rename(tmp_path / "my-ops-main")
    (moved / "my_ops/_generated.py").write_text("old")
    generate_project(moved, header if again else None)
    assert (moved / "my_ops/_generated.py").read_text() != "old"
    assert [path.parent.name for path in moved.glob("*/operators.ini")] == ["my_ops"]


def test_entries_for_op_plugin() -> None:
    prototypes = parse_text(ADD + SCALE).prototypes
    text = op_plugin_entries(prototypes, {"AddCustom": "x[*s], y[*s] -> z[*s]", "Scale": "x[n, m] -> y[m]: float16"})
    assert (
        "  - func: npu_add_custom(Tensor x, Tensor y) -> Tensor z\n    op_api: all_version\n    gen_opapi:\n"
        "      out:\n        size: x\n" in text
    )
    assert "  - func: npu_scale(Tensor x, *, float factor) -> Tensor y\n" in text
    assert "        size: …  # x[n, m] -> y[m]: float16\n        dtype: at::kHalf\n      exec: aclnnScale\n" in text


def test_entries_for_op_plugin_say_no_other_dtype_than_the_relation() -> None:
    text = f"""REG_OP(Quant).INPUT(x, {ANY}).OPTIONAL_INPUT(w, {ANY}).DYNAMIC_INPUT(rows, {ANY})
    .OUTPUT(y, {ANY}).OUTPUT(z, {ANY})
        .OUTPUT(p, {ANY}).OUTPUT(r, {ANY}).OUTPUT(o, {ANY}).ATTR(to, Type, DT_INT8).OP_END_FACTORY_REG(Quant)
        REG_OP(Pick).DYNAMIC_INPUT(rows, {ANY}).INPUT(at, {ANY}).OUTPUT(y, {ANY}).OP_END_FACTORY_REG(Pick)
        REG_OP(Mix).INPUT(x, {ANY}).INPUT(w, {ANY}).OUTPUT(y, {ANY}).OP_END_FACTORY_REG(Mix)"""
    shapes = {
        "Quant": "x[*s], w[*t] -> y[*s]: int8, z[*s]: to, p[*s]: bfloat16, r[*t]: w, o like x",
        "Pick": "rows[i][n[i], d], at[k] -> y[k, d]",
        "Mix": "x[*s], w[*s] -> y[*s]: promote(x, w)",
    }
    entries = op_plugin_entries(parse_text(text).prototypes, shapes)
    values = [line.strip().partition("  #")[0] for line in entries.splitlines() if "size:" in line or "dtype:" in line]
    assert values == [
        *("size: x", "dtype: at::kChar", "size: x", "dtype: …", "size: x", "dtype: at::kBFloat16"),
        *("size: …", "dtype: …", "size: x", "dtype: x"),
        *("size: …", "dtype: rows[0].scalar_type()"),
        *("size: x", "dtype: c10::promoteTypes(x.scalar_type(), w.scalar_type())"),
    ]


KERNELS = """
#include "host_kernels.h"
static float& at(const host_kernels::Tensor& t, int64_t i) { return t.as<float>()[t.offset(i)]; }
void host_kernels::AddCustom(const AddCustomArgs& a) {
    for (int64_t i = 0; i < a.z.numel(); ++i) at(a.z, i) = at(a.x, i) + at(a.y, i);
}
void host_kernels::AddCustomGrad(const AddCustomGradArgs& a) {
    for (int64_t i = 0; i < a.dz.numel(); ++i) at(a.dx, i) = at(a.dy, i) = at(a.dz, i);
}
"""


@pytest.mark.slow
def test_the_wheel_installs_and_its_own_tests_pass(tmp_path: Path, header: Path) -> None:
    project = generate_project(tmp_path / "my_ops", header, bindings="both").directory
    (tmp_path / "kernels.cpp").write_text(KERNELS)
    package = build_operator_package(
        tmp_path / "opp",
        header,
        dict.fromkeys(("AddCustom", "AddCustomGrad"), tmp_path / "kernels.cpp"),
        relations={"AddCustom": "x -> z like x", "AddCustomGrad": "dz -> dx like dz, dy like dz"},
    )
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
    environment = {**os.environ, "MAX_JOBS": "2"}
    # The documented command: a source distribution, and the wheel from what is in it.
    build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", tmp_path / "dist", project]
    subprocess.run(build, check=True, env=environment)
    (wheel,) = (tmp_path / "dist").glob("my_ops-0.1.0-*.whl")
    subprocess.run([*pip, "install", "--no-deps", "--target", tmp_path / "site", wheel], check=True)
    tests = subprocess.run(
        [
            sys.executable,
            "-m",
            "ascend_graph.host",
            "--quiet",
            "--opp",
            package,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            project / "tests",
        ],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "site")},
        cwd=tmp_path,
    )
    assert tests.returncode == 0, tests.stdout + tests.stderr


@pytest.mark.slow
def test_it_builds_in_an_environment_of_its_own(tmp_path: Path, header: Path) -> None:
    """``python -m build`` installs what pyproject.toml asks for, here in the versions that are installed, and
    nothing else."""
    project = generate_project(tmp_path / "my_ops", header).directory
    constraints = tmp_path / "constraints.txt"
    constraints.write_text("".join(f"{name}=={version(name)}\n" for name in ("torch", "torch_npu")))
    build = subprocess.run(
        [sys.executable, "-m", "build", "--outdir", tmp_path / "dist", project],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "MAX_JOBS": "2", "PIP_CONSTRAINT": str(constraints)},
    )
    assert build.returncode == 0, build.stdout + build.stderr
    assert [p.name.partition("-")[0] for p in sorted((tmp_path / "dist").iterdir())] == ["my_ops", "my_ops"]


NAMES = {  # operators, inputs and attrs that are called like keywords, macros and the helpers of generated code
    "Switch": "REG_OP(Switch).INPUT(x, ALL()).OUTPUT(y, ALL()).OP_END_FACTORY_REG(Switch)",
    "Assert": (
        "REG_OP(Assert).INPUT(errno, ALL()).DYNAMIC_INPUT(data, ALL()).ATTR(summarize, Int, "
        "3).OP_END_FACTORY_REG(Assert)"
    ),
    "Allocate": (
        "REG_OP(Allocate).INPUT(call, ALL()).INPUT(broadcast, ALL()).OUTPUT(y, ALL()).ATTR(allocate, Int, 2)"
        ".OP_END_FACTORY_REG(Allocate)"
    ),
    "Broadcast": "REG_OP(Broadcast).INPUT(x, ALL()).INPUT(y, ALL()).OUTPUT(z, ALL()).OP_END_FACTORY_REG(Broadcast)",
    "Shape": "REG_OP(Shape).INPUT(x, ALL()).OUTPUT(y, ALL()).OP_END_FACTORY_REG(Shape)",
    "Pass": "REG_OP(Pass).INPUT(lambda, ALL()).OUTPUT(y, ALL()).ATTR(from, Int, 2).OP_END_FACTORY_REG(Pass)",
}
NAMES_SHAPES = {
    "Allocate": "call[n], broadcast[n] -> y[n, allocate]",
    "Broadcast": "x[..., n], y[..., n] -> z[..., n // 2, ceildiv(n, 2), n % 2]",
    "Shape": "x[*s] -> y[rank(x)]: int64",
}


@pytest.mark.slow
def test_names_that_stand_in_the_way_compile(tmp_path: Path) -> None:
    header = tmp_path / "op_proto.h"
    header.write_text("\n".join(NAMES.values()))
    project = generate_project(tmp_path / "names_ops", header, shapes=NAMES_SHAPES, bindings="both")
    assert project.skipped == ()
    python = (project.directory / "names_ops/_generated.py").read_text()
    compile(python, "_generated.py", "exec")
    assert "def switch_op(x: Tensor) -> Tensor:" in python
    sources = project.directory / "csrc/generated"
    torch_library(
        "names", [sources / "operators.cpp"], headers=sorted(sources.rglob("*.h")), include_directories=[sources]
    ).build()


def test_a_project_whose_shapes_are_all_still_to_be_written(tmp_path: Path) -> None:
    header = tmp_path / "op_proto.h"
    header.write_text("REG_OP(Split).INPUT(x, ALL()).DYNAMIC_OUTPUT(ys, ALL()).OP_END_FACTORY_REG(Split)")
    project = generate_project(tmp_path / "later_ops", header)
    assert project.operators == ()
    assert "write shape" in project.skipped[0][1]
    ini = project.directory / "later_ops/operators.ini"
    ini.write_text(ini.read_text().replace("shape =", "shape = x[n] -> ys[i < n][1]"))
    assert generate_project(project.directory).operators == ("Split",)


CAST = f"""REG_OP(CastTo).INPUT(x, {ANY}).OUTPUT(y, {ANY}).ATTR(dst_type, Int, 2).ATTR(round_dtype, Int, 0)
    .OP_END_FACTORY_REG(CastTo)\n"""


def test_whose_numbers_of_dtypes(tmp_path: Path) -> None:
    """An Int attr that the relation takes for a dtype has torch's numbers; the author may say otherwise."""
    header = tmp_path / "op_proto.h"
    header.write_text(CAST)
    project = tmp_path / "my_ops"
    made = generate_project(project, header, shapes={"CastTo": "x[*s] -> y[*s]: dst_type"})
    assert "dtypes of CastTo: dst_type: torch, round_dtype: ge" in made.proposed
    ini, python = project / "my_ops/operators.ini", project / "my_ops/_generated.py"
    cpp = project / "csrc/generated/operators.cpp"
    assert "dtypes = dst_type: torch, round_dtype: ge\n" in ini.read_text()
    said = 'arguments={"dst_type": ("dst_type", ascend_graph.dtype_number), "round_dtype": ("round_dtype", int)}'
    assert said in python.read_text()
    assert "int dst_type=1, int round_dtype=0" in cpp.read_text()
    assert "Dtype{dst_type}, round_dtype" in cpp.read_text()

    ini.write_text(ini.read_text().replace("dst_type: torch", "dst_type: ge"))
    generate_project(project)
    assert '"dst_type": ("dst_type", int)' in python.read_text()
    assert "int dst_type=2" in cpp.read_text()
    assert "Dtype{dst_type}" not in cpp.read_text()

    ini.write_text(ini.read_text().replace("dtypes = dst_type: ge, round_dtype: ge\n", ""))
    generate_project(project)
    assert said in python.read_text(), "what is not said is proposed again"


@pytest.mark.parametrize(
    ("dtypes", "match"),
    [
        (
            "dst_type",
            "write each Int attr with whose numbers of dtypes it takes, torch or ge: dtypes = dst_type: torch",
        ),
        ("dst_type: acl", r"operators.ini, \[CastTo\]: dtypes = dst_type: acl"),
        ("mode: torch", "mode takes is said, but it is not an Int attr; expected one of: dst_type, round_dtype"),
    ],
)
def test_numbers_that_make_no_sense(tmp_path: Path, dtypes: str, match: str) -> None:
    header = tmp_path / "op_proto.h"
    header.write_text(CAST)
    project = tmp_path / "my_ops"
    generate_project(project, header)
    (project / "my_ops/operators.ini").write_text(f"[CastTo]\nshape = x -> y like x\ndtypes = {dtypes}\n")
    with pytest.raises(AscendGraphError, match=match):
        generate_project(project)


TAIL = "uint64_t *workspaceSize, aclOpExecutor **executor);\n"
ACLNN = f"""#include "aclnn/acl_meta.h"
int aclnnGenLerpGetWorkspaceSize(const aclTensor *self, int64_t dim, const aclTensor *endOptional,
    const aclScalar *weight,
    const aclIntArray *sizesOptional, aclDataType outType, int8_t small, float eps, char *mode,
    const aclScalar *upperOptional,
    const aclFloatArray *stepsOptional, const aclBoolArray *masksOptional, char *wayOptional,
    const aclScalarList *factors,
    const aclScalarList *limitsOptional, aclTensor *out, {TAIL}
int aclnnInplaceGenAddGetWorkspaceSize(aclTensor *selfRef, const aclTensor *other, {TAIL}
int aclnnGenCountGetWorkspaceSize(const aclTensor *self, int64_t *count, {TAIL}
int aclnnGenEyeGetWorkspaceSize(int64_t n, aclTensor *out, {TAIL}
"""
LERP = "aclnnGenLerp=self[*s] -> out[*s]: out_type"


def test_aclnn_headers_are_sources_as_prototypes_are(tmp_path: Path) -> None:
    (tmp_path / "aclnn_gen.h").write_text(ACLNN)
    project = tmp_path / "gen_ops"
    arguments = ["new", str(project), "--from", str(tmp_path / "aclnn_gen.h"), "--shape", LERP]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    assert "2 operators" in result.output
    assert "proposed, check operators.ini: limitsOptional of aclnnGenLerp: always null" in result.output
    assert "left out: aclnnGenEye: it reads no tensor" in result.output
    assert "left out: aclnnGenCount: count of its aclnn function is host memory" in result.output
    code = (project / "csrc/generated/operators.cpp").read_text()
    assert (
        'm.def("gen_lerp(Tensor self, Tensor? end=None, *, int dim, Scalar weight, int[]? sizes=None, int out_type, '
        "int small, "
        "float eps, str mode, Scalar? upper=None, float[]? steps=None, bool[]? masks=None, str? way=None, "
        "Scalar[] factors) "
        '-> Tensor out"' in code
    )
    assert (
        'call("gen_ops::gen_lerp", function, self, dim, end, weight, sizes, Dtype{out_type}, '
        'ascend_graph::eager::ranged<int8_t>("small", small), ascend_graph::eager::narrowed("eps", eps), mode, upper, '
        "steps, masks, way, factors, "
        "nullptr, outputs);" in code
    )
    assert "inplace_gen_add(Tensor(a!) self, Tensor other) -> ()" in code
    assert (project / "gen_ops/aclnn.h").read_text() == ACLNN
    generated = (project / "gen_ops/_generated.py").read_text()
    assert "register_op" not in generated
    assert "load_prototypes" not in generated
    # What C++ passes, for the CANN that is there when the library is imported.
    compiled = parse_functions(generated.partition('check_declarations(\n    """')[2].partition('"""')[0]).functions
    for function, own in zip(compiled, parse_functions(ACLNN).functions[:2], strict=True):
        assert function.name == own.name
        assert [(p.name, p.type) for p in function.parameters] == [(p.name, p.type) for p in own.parameters]
    assert generate_project(project).written == ()

    ini = project / "gen_ops/operators.ini"
    ini.write_text(ini.read_text().replace("shape = self -> self", "shape = self -> self\naclnn = aclnnOther"))
    with pytest.raises(
        AscendGraphError, match=r"\[aclnnInplaceGenAdd\]: aclnn, aclnn_arguments and dtypes are for prototypes"
    ):
        generate_project(project)


def test_prototypes_and_aclnn_headers_in_one_project(tmp_path: Path, header: Path) -> None:
    (tmp_path / "aclnn_gen.h").write_text(ACLNN)
    shapes = {"aclnnGenLerp": LERP.partition("=")[2], "AddCustom": "x[*s], y[*s] -> z[*s]"}
    project = generate_project(tmp_path / "both_ops", [header, tmp_path / "aclnn_gen.h"], shapes=shapes)
    assert project.operators == ("AddCustom", "AddCustomGrad", "aclnnGenLerp", "aclnnInplaceGenAdd")
    assert 'register_op("AddCustom"' in (project.directory / "both_ops/_generated.py").read_text()
    (tmp_path / "aclnn_bad.h").write_text(ACLNN.replace("aclnnGenLerp", "aclnnGenEye"))
    with pytest.raises(AscendGraphError, match="aclnnGenEye is declared in two ways"):
        generate_project(tmp_path / "bad_ops", tmp_path / "aclnn_bad.h")


def test_in_a_project_of_aclnn_headers_relations_may_be_more_than_cpp_does(tmp_path: Path) -> None:
    (tmp_path / "aclnn_gen.h").write_text(
        f"int aclnnGenCatGetWorkspaceSize(const aclTensorList *xs, aclTensor *out, {TAIL}"
    )
    shapes = {"aclnnGenCat": "xs[i][n[i], d] -> out[sum(n), d]"}
    project = generate_project(tmp_path / "cat_ops", tmp_path / "aclnn_gen.h", shapes=shapes)
    generated = (project.directory / "cat_ops/_generated.py").read_text()
    assert "register_meta(\n    torch.ops.cat_ops.gen_cat.default," in generated
    ast.parse(generated)


def test_an_output_that_may_be_absent_is_optional_in_python(tmp_path: Path) -> None:
    header = tmp_path / "op_proto.h"
    header.write_text(
        """
        REG_OP(Maybe)
            .INPUT(x, TensorType({DT_FLOAT}))
            .OUTPUT(z, TensorType({DT_FLOAT}))
            .OUTPUT(y, TensorType({DT_FLOAT}))
            .ATTR(with_z, Bool, true)
            .OP_END_FACTORY_REG(Maybe)
        REG_OP(Only)
            .INPUT(x, TensorType({DT_FLOAT}))
            .OUTPUT(y, TensorType({DT_FLOAT}))
            .OP_END_FACTORY_REG(Only)
        """
    )
    shapes = {
        "Maybe": "x[*s] -> z[*s] if with_z else None, y[*s]",
        "Only": "x[*s] -> y[*s] if rank(x) > 1 else None",
    }
    project = tmp_path / "my_ops"
    generate_project(project, header, shapes=shapes)
    python = (project / "my_ops/_generated.py").read_text()
    assert "def maybe(x: Tensor, *, with_z: bool = True) -> tuple[Tensor | None, Tensor]:" in python
    assert "def only(x: Tensor) -> Tensor | None:" in python
