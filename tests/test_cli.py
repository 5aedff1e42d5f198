"""The command line: what it prints, what it writes, how it ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ascend_graph.cli import main

HEADER = """
/** Adds. */
REG_OP(AddCustom)
    .INPUT(x, TensorType({DT_FLOAT16, DT_FLOAT}))
    .OPTIONAL_INPUT(y, "T")
    .OUTPUT(z, "T")
    .ATTR(alpha, Float, 1e-7)
    .ATTR(big, Int, 9223372036854775807)
    .ATTR(dtype, Type, DT_BF16)
    .REQUIRED_ATTR(dims, ListInt)
    .DATATYPE(T, TensorType({DT_FLOAT}))
    .OP_END_FACTORY_REG(AddCustom)
"""
BROKEN = "REG_OP(Broken)\n    .INPT(x, T)\n    .OP_END_FACTORY_REG(Broken)\n"


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.fixture
def header(tmp_path: Path) -> Path:
    path = tmp_path / "ops.h"
    path.write_text(HEADER)
    return path


def test_the_command_is_a_module_too(header: Path) -> None:
    command = [sys.executable, "-m", "ascend_graph", "show", "AddCustom", "--from", str(header)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.stdout == run("show", "AddCustom", "--from", header).stdout, result.stderr


def test_parse_json(header: Path) -> None:
    result = run("parse", header, "--format", "json")
    assert result.exit_code == 0
    assert json.loads(result.stdout) == {
        "prototypes": [
            {
                "op": "AddCustom",
                "file": str(header),
                "line": 3,
                "inputs": [
                    {"name": "x", "kind": "required", "dtypes": ["DT_FLOAT16", "DT_FLOAT"]},
                    {"name": "y", "kind": "optional", "dtypes": ["DT_FLOAT"], "symbol": "T"},
                ],
                "attrs": [
                    {"name": "alpha", "type": "Float", "required": False, "default": 1e-7},
                    {"name": "big", "type": "Int", "required": False, "default": 2**63 - 1},
                    {"name": "dtype", "type": "Type", "required": False, "default": "DT_BF16"},
                    {"name": "dims", "type": "ListInt", "required": True, "default": None},
                ],
                "outputs": [{"name": "z", "kind": "required", "dtypes": ["DT_FLOAT"], "symbol": "T"}],
                "doc": "Adds.",
                "symbols": [{"name": "T", "dtypes": ["DT_FLOAT"]}],
            }
        ],
        "functions": [],
        "diagnostics": [],
    }


def test_parse_reports_errors_and_still_gives_the_rest(header: Path, tmp_path: Path) -> None:
    (tmp_path / "broken.h").write_text(BROKEN)
    result = run("parse", tmp_path, "--format", "json")
    assert result.exit_code == 1
    found = json.loads(result.stdout)
    assert [prototype["op"] for prototype in found["prototypes"]] == ["AddCustom"]
    assert found["diagnostics"] == [
        {
            "file": str(tmp_path / "broken.h"),
            "line": 2,
            "column": 6,
            "severity": "error",
            "message": "REG_OP(Broken) has no call .INPT; did you mean .INPUT?",
        }
    ]
    table = run("parse", tmp_path)
    assert table.exit_code == 1
    assert "AddCustom" in table.stdout
    assert "broken.h:2:6: error" in table.stderr


def test_parse_of_sources_that_define_nothing_fails(tmp_path: Path) -> None:
    (tmp_path / "empty.h").write_text("int x;\n")
    result = run("parse", tmp_path)
    assert (result.exit_code, f"no operator is defined in {tmp_path}" in result.stderr) == (1, True)


def test_show(header: Path) -> None:
    result = run("show", "AddCustom", "--from", header)
    assert result.exit_code == 0
    for text in ("Adds.", "FLOAT16, FLOAT", "optional", "= 1e-07", "AddCustom(x, y, *, dims, alpha=1e-07"):
        assert text in result.stdout
    assert json.loads(run("show", "AddCustom", "--from", header, "--format", "json").stdout)["op"] == "AddCustom"
    assert ".ATTR(alpha, Float, 1e-07)" in run("show", "AddCustom", "--from", header, "--format", "reg-op").stdout


def test_show_an_unknown_op_ends_with_one_line(header: Path) -> None:
    result = run("show", "AddCustm", "--from", header)
    assert result.exit_code == 1
    assert result.stderr.strip().startswith("Error: no prototype of the op type 'AddCustm'")
    assert "did you mean 'AddCustom'?" in result.stderr


def test_gen_raw_ops_writes_once(header: Path, tmp_path: Path) -> None:
    output = tmp_path / "my_raw_ops.py"
    result = run("gen", "raw-ops", header, "-o", output)
    assert (result.exit_code, "1 raw ops, written" in result.stderr) == (0, True)
    compile(output.read_text(), "my_raw_ops.py", "exec")
    compile(output.with_suffix(".pyi").read_text(), "my_raw_ops.pyi", "exec")
    assert "already up to date" in run("gen", "raw-ops", header, "-o", output).stderr


@pytest.mark.parametrize("text", [BROKEN + HEADER, "int main();"])
def test_gen_raw_ops_writes_nothing_from_a_bad_source(text: str, tmp_path: Path) -> None:
    (tmp_path / "ops.h").write_text(text)
    result = run("gen", "raw-ops", tmp_path / "ops.h", "-o", tmp_path / "out.py")
    assert result.exit_code == 1
    assert not (tmp_path / "out.py").exists()


def test_diff(header: Path, tmp_path: Path) -> None:
    new = tmp_path / "new.h"
    new.write_text(HEADER.replace("1e-7", "1e-6"))
    result = run("diff", header, new, "--format", "json")
    assert (result.exit_code, json.loads(result.stdout)) == (
        0,
        {
            "changes": [
                {"op": "AddCustom", "effect": "changes", "change": "attr alpha had the default 1e-07, now 1e-06"}
            ],
            "breaking": 0,
        },
    )
    new.write_text(HEADER.replace(".OPTIONAL_INPUT(y", ".INPUT(y"))
    result = run("diff", header, new)
    assert (result.exit_code, "input y was optional and is required" in result.stdout) == (1, True)


def test_many_files_are_read_in_order(tmp_path: Path) -> None:
    for index in range(30):
        (tmp_path / f"{index:02}.h").write_text(HEADER.replace("AddCustom", f"Op{index:02}"))
    found = json.loads(run("parse", tmp_path, "--format", "json").stdout)
    assert [prototype["op"] for prototype in found["prototypes"]] == [f"Op{index:02}" for index in range(30)]


def test_the_command_needs_no_torch(header: Path) -> None:
    code = (
        "import sys\nfrom ascend_graph.cli import main\n"
        f"main(['gen', 'raw-ops', {str(header)!r}, '-o', {str(header.with_suffix('.py'))!r}], standalone_mode=False)\n"
        "assert not {'torch', 'torch_npu', 'torchair'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


ACLNN = """
/** Adds. */
aclnnStatus aclnnAddCustomGetWorkspaceSize(const aclTensor *x, const aclTensor *yOptional, double alpha,
                                           aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor);
aclnnStatus aclnnAddCustom(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream);
"""


def test_aclnn_functions(tmp_path: Path) -> None:
    path = tmp_path / "aclnn_add_custom.h"
    path.write_text(ACLNN)
    result = run("parse", path, "--format", "json")
    assert result.exit_code == 0
    function = {
        "name": "aclnnAddCustom",
        "parameters": [
            {"name": "x", "type": "const aclTensor *", "direction": "in", "optional": False},
            {"name": "yOptional", "type": "const aclTensor *", "direction": "in", "optional": True},
            {"name": "alpha", "type": "double", "direction": "in", "optional": False},
            {"name": "out", "type": "aclTensor *", "direction": "out", "optional": False},
        ],
        "file": str(path),
        "line": 3,
    }
    assert json.loads(result.stdout) == {"prototypes": [], "functions": [function], "diagnostics": []}
    assert json.loads(run("show", "aclnnAddCustom", "--from", path, "--format", "json").stdout) == function
    assert "yOptional" in run("show", "aclnnAddCustom", "--from", path).stdout
    assert "no header declares aclnnNone" in run("show", "aclnnNone", "--from", path).stderr
    assert "1 aclnn functions" in run("parse", path).stdout


def test_diff_of_aclnn_functions(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    for directory, text in ((old, ACLNN), (new, ACLNN.replace("double alpha", "const aclScalar *alpha, int64_t mode"))):
        directory.mkdir()
        (directory / "aclnn_add_custom.h").write_text(text)
    result = run("diff", old, new, "--format", "json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["changes"] == [
        {"op": "aclnnAddCustom", "effect": "breaks", "change": "parameter 4 is new: int64_t mode"},
        {"op": "aclnnAddCustom", "effect": "breaks", "change": "alpha was double and is const aclScalar *"},
    ]
    assert run("diff", old, old).exit_code == 0


def test_headers_that_declare_a_function_differently_are_both_shown(tmp_path: Path) -> None:
    (tmp_path / "a.h").write_text(ACLNN)
    (tmp_path / "b.h").write_text(ACLNN.replace("double", "float"))
    result = run("show", "aclnnAddCustom", "--from", tmp_path)
    assert result.exit_code == 1
    assert f"{tmp_path}/a.h:3" in result.stderr
    assert f"{tmp_path}/b.h:3" in result.stderr
    assert "declared differently at" in run("parse", tmp_path).stderr


#: Every command that prints what it found; the rest starts something else's output (run), or is the shell's
#: (completion).
WITHOUT_JSON = {"run", "completion", "build", "gen"}


def test_every_command_has_json() -> None:
    commands = {**main.commands, **main.commands["gen"].commands}  # type: ignore[attr-defined]
    for name, command in commands.items():
        formats = [o.type.choices for o in command.params if o.name == "output_format"]  # type: ignore[attr-defined]
        assert name in WITHOUT_JSON or "json" in formats[0], name


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell: str) -> None:
    assert "_ASCEND_GRAPH_COMPLETE" in run("completion", shell).stdout
    assert run("completion", "tcsh").exit_code == 2


def test_without_cann_one_sentence_says_what_to_run(tmp_path: Path) -> None:
    """What is raised by ``import torch`` where torch_npu finds no CANN is not a traceback in our commands, nor in the
    plugin."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("ASCEND", "LD_"))}
    (tmp_path / "operators.py").write_text("import torch\n")
    (tmp_path / "test_first.py").write_text(
        "import torch\n"
    )  # collected before; torch imported twice says something else
    code = """
from ascend_graph.cli import main
@main.command()
def broken():
    import torch
main(["broken"])
"""
    plugin = ["-m", "pytest", "-p", "ascend_graph.checks.pytest_plugin", "--check-operators", "operators"]
    for command in (["-c", code], plugin):
        result = subprocess.run(
            [sys.executable, *command], env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert result.returncode != 0
        assert "as CANN is not installed here" in result.stderr
        assert "ascend-graph run script.py" in result.stderr
        assert "Traceback" not in result.stderr
