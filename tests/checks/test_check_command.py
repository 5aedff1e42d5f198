"""``ascend-graph check``, ``run`` and the pytest plugin, as users start them: in processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import preloaded
import pytest
from click.testing import CliRunner

from ascend_graph.cli import main

MODULE = '''
import os
import torch, torch_npu, ascend_graph

ascend_graph.load_prototypes("""
REG_OP(CmdTwice).INPUT(x, TensorType({DT_FLOAT})).OUTPUT(y, TensorType({DT_FLOAT})).OP_END_FACTORY_REG(CmdTwice)
REG_OP(CmdCrash).INPUT(x, TensorType({DT_FLOAT})).OUTPUT(y, TensorType({DT_FLOAT})).OP_END_FACTORY_REG(CmdCrash)
REG_OP(CmdHang).INPUT(x, TensorType({DT_FLOAT})).OUTPUT(y, TensorType({DT_FLOAT})).OP_END_FACTORY_REG(CmdHang)
REG_OP(CmdLeave).INPUT(x, TensorType({DT_FLOAT})).OUTPUT(y, TensorType({DT_FLOAT})).OP_END_FACTORY_REG(CmdLeave)
REG_OP(CmdView).INPUT(x, TensorType({DT_FLOAT})).OUTPUT(y, TensorType({DT_FLOAT})).OP_END_FACTORY_REG(CmdView)
""")
library = torch.library.Library("cmd", "DEF")

def hang(x):
    import time
    time.sleep(1000)

for name, kernel in {
    "twice": lambda x: x * 2, "crash": lambda x: os.abort(), "hang": hang,
    "leave": lambda x: os._exit(0), "view": lambda x: x.view(x.shape)
}.items():
    library.define(f"{name}(Tensor x) -> Tensor")
    library.impl(name, kernel, "PrivateUse1")
    op_type = f"Cmd{name.capitalize()}"
    ascend_graph.register_op(op_type, eager=getattr(torch.ops.cmd, name), shape="x[*s] -> y[*s]")
'''


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("operators") / "my_ops.py"
    path.write_text(MODULE)
    return path


@pytest.mark.slow
def test_what_crashes_and_what_hangs_is_reported_and_the_rest_goes_on(module: Path, tmp_path: Path) -> None:
    output = tmp_path / "report.json"
    options = ["--check", "arguments", "--check", "meta", "--timeout", "5", "--format", "json", "-o", str(output)]
    result = CliRunner().invoke(main, ["check", str(module), *options])
    assert result.exit_code == 1
    assert (
        "4 of 5 operators failed: cmd.crash.default, cmd.hang.default, cmd.leave.default, cmd.view.default"
        in result.output
    )
    reports = {report["operator"]: report for report in json.loads(output.read_text())}
    found = {name: [(c["check"], c["state"]) for c in report["checks"]] for name, report in reports.items()}
    assert found == {
        "cmd.twice.default": [("arguments", "passed"), ("meta", "passed")],
        "cmd.crash.default": [("process", "failed")],
        "cmd.hang.default": [("process", "failed")],
        "cmd.leave.default": [("process", "failed")],
        "cmd.view.default": [("arguments", "failed"), ("meta", "failed")],
    }
    assert reports["cmd.crash.default"]["checks"][0]["message"] == "checking it ended the process by SIGABRT"
    assert reports["cmd.leave.default"]["checks"][0]["message"] == "checking it ended the process with status 0"
    assert reports["cmd.hang.default"]["checks"][0]["message"] == "checking it did not end within 5 s"


@pytest.mark.slow
def test_modules_that_cannot_be_checked(module: Path, tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("import no_such_module")
    (tmp_path / "empty.py").write_text("x = 1")
    (tmp_path / "leaves.py").write_text("raise SystemExit(3)")
    (tmp_path / "checkout.py").write_text(
        "raise ImportError(\"cannot import name '_C' from partially initialized module 'checkout'\")"
    )
    for arguments, message in (
        ([str(tmp_path / "broken.py")], "cannot be imported: ModuleNotFoundError: No module named 'no_such_module'"),
        ([str(tmp_path / "checkout.py")], "a checkout whose C++ is not compiled in it, and hides an installed wheel."),
        ([str(tmp_path / "missing.py")], f"file {tmp_path / 'missing.py'} not found in"),
        (["no_such_module.operators"], "module no_such_module not found in"),
        ([f"{module}:no_such"], "has no such function; it has"),
        ([str(tmp_path / "leaves.py")], "importing it ended the process with status 3"),
        ([str(tmp_path / "empty.py")], "registers no operator: importing it has to call ascend_graph.register_op or"),
        (
            [str(module), "NoSuchOp"],
            "does not register NoSuchOp; expected one of: cmd.twice.default, cmd.crash.default",
        ),
        ([str(module), "cmd::twice", "NoSuchOp"], "does not register NoSuchOp; expected one of: cmd.twice.default"),
    ):
        result = CliRunner().invoke(main, ["check", *arguments])
        assert result.exit_code == 1
        assert message in result.output
    result = CliRunner().invoke(main, ["check", str(module), "--check", "gradients"])
    assert result.exit_code == 2
    assert "unknown check 'gradients'; the checks are runs, waits, arguments, repeats," in " ".join(
        result.output.split()
    )


def test_a_process_that_does_not_start_is_not_blamed_on_the_module(
    module: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = ["-c", "raise SystemExit('the cache cannot be written')"]
    monkeypatch.setattr("ascend_graph.checks.running.launcher_arguments", lambda **_: refused)
    result = CliRunner().invoke(main, ["check", str(module)])
    assert result.exit_code == 1
    assert "Python did not start; see the output above" in result.output


def test_operators_of_other_wheels_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their entry points register them with the import of torch."""
    head, _, rest = MODULE.partition(', "crash":')
    twice = head + rest[rest.index("\n}.items()") :]
    distribution = tmp_path / "others-1.0.dist-info"
    distribution.mkdir()
    (distribution / "METADATA").write_text("Metadata-Version: 2.1\nName: others\nVersion: 1.0\n")
    (distribution / "entry_points.txt").write_text("[ascend_graph.operators]\nothers = others\n")
    others = twice.replace("Cmd", "Oth").replace('"cmd"', '"oth"').replace("ops.cmd", "ops.oth")
    (tmp_path / "others.py").write_text(others)
    (tmp_path / "mine.py").write_text(twice)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    options = ["--check", "meta", "--format", "json"]
    for named, found in (([], "cmd.twice.default"), (["OthTwice"], "oth.twice.default")):
        result = CliRunner().invoke(main, ["check", str(tmp_path / "mine.py"), *named, *options])
        assert [report["operator"] for report in json.loads(result.stdout)] == [found]


def test_the_pytest_plugin(module: Path, tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    plugin = ["-p", "ascend_graph.checks.pytest_plugin", "--check-operators", "my_ops"]
    chosen = ["-k", "(twice or view) and (meta or arguments)"]
    command = [sys.executable, "-m", "pytest", "-q", *plugin, *chosen]
    environment = os.environ | {"PYTHONPATH": str(module.parent)}
    result = preloaded.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 1, result.stdout + result.stderr
    assert "2 failed, 2 passed" in result.stdout
    assert "arguments: return 0 is memory of argument x, and the schema does not say so; return a copy" in result.stdout
    assert "often: the kernel writes or returns its input" in result.stdout
    assert "laws.py" not in result.stdout


def test_run_is_the_launcher(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("import sys, torch, torch_npu; print((torch.ones(2).npu() + 1).cpu().tolist(), sys.argv[1:])")
    command = [sys.executable, "-m", "ascend_graph.cli", "run", "--quiet", str(script), "--quiet", "-x"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.stdout == "[2.0, 2.0] ['--quiet', '-x']\n", result.stderr


def test_a_module_may_say_what_values_are_right(tmp_path: Path) -> None:
    path = tmp_path / "with_references.py"
    references = "REFERENCES = {'CmdTwice': lambda x: x * 2, 'cmd::view': lambda x: x + 1}"
    path.write_text(MODULE.replace("x.view(x.shape)", "x.clone()") + references)
    result = CliRunner().invoke(
        main, ["check", str(path), "CmdTwice", "CmdView", "--check", "reference", "--format", "json"]
    )
    found = {report["operator"]: report["checks"][0]["state"] for report in json.loads(result.stdout)}
    assert found == {"cmd.twice.default": "passed", "cmd.view.default": "failed"}


def test_names_of_one_overload_and_of_references_are_understood(tmp_path: Path) -> None:
    (tmp_path / "overloads.py").write_text(
        "import torch, torch_npu, ascend_graph\n"
        "library = torch.library.Library('cmd_out', 'DEF')\n"
        "library.define('twice.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)')\n"
        "library.impl('twice.out', lambda x, *, out: out.copy_(x * 2), 'PrivateUse1')\n"
        "ascend_graph.register_kernel(eager=torch.ops.cmd_out.twice.out, shape='x[*s], out[*s] -> out')\n"
        "REFERENCES = {'cmd_out::twice': lambda x, *, out: out.copy_(x * 2), 'cmd_out::thrice': None}\n"
    )
    command = [sys.executable, "-m", "ascend_graph.cli", "check", str(tmp_path / "overloads.py"), "cmd_out::twice"]
    done = subprocess.run([*command, "--check", "reference"], capture_output=True, text=True, check=True)
    assert "reference    passed" in done.stdout
    assert "names cmd_out::thrice, which nothing registers; expected one of: cmd_out.twice.out" in done.stderr


def test_samples_of_a_module_are_calls_of_operators_without_a_relation(tmp_path: Path) -> None:
    (tmp_path / "meta_alone.py").write_text(
        "import torch, torch_npu, ascend_graph\n"
        "library = torch.library.Library('cmd_meta', 'DEF')\n"
        "library.define('cast(Tensor x, str to) -> Tensor')\n"
        "library.impl('cast', lambda x, to: x.to(getattr(torch, to)), 'PrivateUse1')\n"
        "meta = lambda x, to: x.new_empty(x.shape, dtype=getattr(torch, to))\n"
        "ascend_graph.register_kernel(eager=torch.ops.cmd_meta.cast, meta=meta)\n"
        "SAMPLES = {'cmd_meta::cast': [(torch.ones(3), 'float16'), (torch.ones(2), 'int32')]}\n"
    )
    command = [sys.executable, "-m", "ascend_graph.cli", "check", str(tmp_path / "meta_alone.py"), "--check", "meta"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "meta    passed    2 calls" in done.stdout
