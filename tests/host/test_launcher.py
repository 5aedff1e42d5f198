"""The launcher: what it runs, what it refuses, and what children inherit."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ascend_graph.environment import toolkit_directory


def outside() -> dict[str, str]:
    """The environment without the host runtime."""
    toolkit = str(toolkit_directory())
    without = {k: ":".join(e for e in v.split(":") if toolkit not in e) for k, v in os.environ.items()}
    return {k: v for k, v in without.items() if v and not k.startswith(("ASCEND", "TASK_QUEUE"))}


def launch(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ascend_graph.host", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**outside(), **environment},
    )


def test_runs_a_plain_script_with_its_arguments(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("import sys, torch\nprint(sys.argv[1:], (torch.ones(2).npu() * 3).tolist(), __name__)\n")
    result = launch(str(script), "--flag", "-m", "x")
    assert result.stdout.strip() == "['--flag', '-m', 'x'] [3.0, 3.0] __main__"
    assert result.stderr.count("host runtime active") == 1


def test_runs_modules_and_code_and_passes_the_exit_status() -> None:
    assert launch("--quiet", "-c", "import sys; sys.exit(7)").returncode == 7
    assert launch("-m", "json.tool", "--help").stdout.startswith("usage:")


def test_the_command_finds_modules_of_the_working_directory(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("print(__name__)\n")
    command = [str(Path(sys.executable).with_name("ascend-graph")), "run", "--quiet", "-m", "beside"]
    result = subprocess.run(command, capture_output=True, text=True, check=False, env=outside(), cwd=tmp_path)
    assert result.stdout == "__main__\n", result.stderr


def test_a_program_is_the_one_that_its_own_path_has_first(tmp_path: Path) -> None:
    """A program finds its files by the PATH that it runs with; one of the same name on the caller's PATH is not
    meant."""
    other = tmp_path / "pytest"
    other.write_text("#!/bin/sh\necho another\n")
    other.chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    assert launch("--quiet", "pytest", "--version", PATH=path).stdout.startswith("pytest ")
    other.rename(tmp_path / "other-program")
    assert launch("--quiet", "other-program", PATH=path).stdout == "another\n"


def test_pipes_are_checked_where_the_launcher_or_mssanitizer_says_so() -> None:
    """mssanitizer takes its options before the program, and those of its documents' samples behind it."""
    shown = ["sh", "-c", 'echo "${ASCEND_GRAPH_KERNEL_PIPES:-off} $*"', "name", "a b"]
    assert launch("--quiet", *shown).stdout == "off a b\n"
    assert launch("--quiet", "--pipes", *shown).stdout == "1 a b\n"
    assert launch("--quiet", "mssanitizer", "-t", "racecheck", *shown, "-t").stdout == "1 a b -t\n"
    assert launch("--quiet", "mssanitizer", *shown, "--tool=initcheck").stdout == "1 a b\n"
    leaks = launch("--quiet", "mssanitizer", "--leak-check=yes", *shown)
    assert (leaks.stdout, leaks.stderr) == ("off a b\n", "mssanitizer: --leak-check is not checked on the host\n")
    wrong = launch("--quiet", "mssanitizer", "--tool=other", *shown)
    assert wrong.returncode == 1
    assert "--tool=other: expected memcheck, racecheck, initcheck or synccheck" in wrong.stderr


def test_the_toolkits_programs_are_found() -> None:
    """They are on the PATH of the process that is started alone."""
    result = launch("--quiet", "bisheng", "--version")
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("bisheng of ascend_graph")


def test_children_inherit_the_host_runtime() -> None:
    code = (
        "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import torch; "
        "print(torch.npu.is_available())'])"
    )
    assert launch("-c", code).stdout.strip() == "True"


def test_refuses_to_shadow_a_real_cann(tmp_path: Path) -> None:
    result = launch("-c", "pass", ASCEND_HOME_PATH=str(tmp_path))
    assert result.returncode == 2
    assert f"ASCEND_HOME_PATH={tmp_path}" in result.stderr
    assert "--force" in result.stderr
    assert launch("--force", "-c", "print('ran')", ASCEND_HOME_PATH=str(tmp_path)).stdout.strip() == "ran"


def test_libraries_of_packages_are_found_by_their_name(tmp_path: Path) -> None:
    """Older extensions open libcust_opapi.so, which a package's set_env.bash puts on the library path; the first
    package wins."""
    for name in ("one", "two"):
        directory = tmp_path / name / "op_api/lib"
        directory.mkdir(parents=True)
        (tmp_path / "which.cpp").write_text(f'extern "C" char which() {{ return "{name}"[0]; }}')
        command = [
            os.environ.get("CXX", "g++"),
            "-shared",
            "-fPIC",
            tmp_path / "which.cpp",
            "-o",
            directory / "libcust_opapi.so",
        ]
        subprocess.run(command, check=True)
    code = "import ctypes; print(chr(ctypes.CDLL('libcust_opapi.so').which()))"
    one, two = str(tmp_path / "one"), str(tmp_path / "two")
    assert launch("--opp", two, "-c", code).stdout == "t\n"
    assert launch("-c", code, ASCEND_CUSTOM_OPP_PATH=f"{one}:{two}").stdout == "o\n"
    assert launch("--opp", two, "-c", code, ASCEND_CUSTOM_OPP_PATH=one).stdout == "t\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "nothing to run"),
        (("--bad", "x.py"), "unknown or incomplete option '--bad'"),
        (("-m",), "unknown or incomplete option '-m'"),
        (("--opp", "/nowhere", "-c", "pass"), "no operator package there"),
    ],
)
def test_unusable_arguments(arguments: tuple[str, ...], message: str) -> None:
    result = launch(*arguments)
    assert result.returncode == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_without_the_launcher_our_names_say_what_to_run() -> None:
    """PyTorch imports torch_npu with itself, and without CANN says so in forty lines."""
    code = "import ascend_graph; ascend_graph.register_op('AddCustom')"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=outside())
    assert result.returncode == 1
    last = result.stderr.splitlines()[-1]
    assert re.fullmatch(
        r"ascend_graph\.errors\.AscendGraphError: ascend_graph\.register_op needs torch_npu: "
        r"torch_npu does not find lib\w+\.so, as "
        r"CANN is not installed here: .* start the program on the host runtime: ascend-graph run script\.py, .*",
        last,
    ), last
    assert len(result.stderr.splitlines()) < 12


def test_without_the_launcher_all_names_have_their_documentation() -> None:
    code = """
import ascend_graph, pydoc, inspect
for name in ascend_graph.__all__:
    if name != "raw_ops":
        assert getattr(ascend_graph, name).__doc__, name
print(inspect.signature(ascend_graph.opcheck))
print(pydoc.render_doc(ascend_graph.opcheck, renderer=pydoc.plaintext))
try:
    ascend_graph.Sample(())
except ascend_graph.AscendGraphError as error:
    print(error)
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=outside())
    assert result.returncode == 0, result.stderr
    assert "reference: 'Callable[..., Any] | None' = None" in result.stdout
    assert "Check an operator against the rules that hold for every operator" in result.stdout
    assert "ascend_graph.Sample needs torch_npu: torch_npu does not find" in result.stdout
