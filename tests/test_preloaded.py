"""Programs in forks of a server that imported torch end as programs of a Python of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import preloaded
import pytest

PROGRAMS = {
    "output": "print('out'); import sys; print('err', file=sys.stderr)",
    "arguments": "import sys; print(sys.argv, sys.path[0], __name__)",
    "environment": "import os; print(os.environ['GIVEN'], 'HOME' in os.environ, os.getcwd())",
    "status": "raise SystemExit(7)",
    "text as status": "raise SystemExit('why')",
    "signal": "import os, signal; print('before', flush=True); os.kill(os.getpid(), signal.SIGKILL)",
    "at exit": "import atexit; atexit.register(print, 'at exit')",
    "standard input": "import sys; print(sys.stdin.read())",
    "a child": "import subprocess, sys; print(subprocess.run([sys.executable, '-c', 'print(6)'], capture_output=True).stdout)",
    "own class": "import pickle\nclass A: pass\nprint(type(pickle.loads(pickle.dumps(A()))).__module__)",
}


def plainly(command: list[str], **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # type: ignore[call-overload,no-any-return]
        command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, **options
    )


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_ends_as_in_a_python_of_its_own(name: str, tmp_path: Path) -> None:
    options = {"env": {"GIVEN": "value", "PATH": os.environ["PATH"]}, "cwd": tmp_path}
    command = [sys.executable, "-c", PROGRAMS[name], "-x", "1"]
    expected = plainly(command, **options)
    found = preloaded.run(command, **options)  # type: ignore[arg-type]
    assert (found.returncode, found.stdout, found.stderr) == (expected.returncode, expected.stdout, expected.stderr)


def test_scripts_and_modules_are_found_as_ever(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("VALUE = 5")
    (tmp_path / "script.py").write_text("import sys, beside; print(beside.VALUE, __file__, sys.argv)")
    for command in ([str(tmp_path / "script.py"), "a"], ["-m", "script", "a"]):
        expected = plainly([sys.executable, *command], cwd=tmp_path)
        found = preloaded.run([sys.executable, *command], cwd=tmp_path)
        assert (found.returncode, found.stdout) == (0, expected.stdout), found.stderr


def test_an_exception_shows_the_programs_frames_alone() -> None:
    found = preloaded.run([sys.executable, "-c", "def f():\n    raise KeyError(3)\nf()"])
    assert found.returncode == 1
    assert found.stderr.splitlines()[:2] == [
        "Traceback (most recent call last):",
        '  File "<string>", line 3, in <module>',
    ]
    assert found.stderr.endswith("KeyError: 3\n")


def test_a_program_that_does_not_end_is_killed() -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        preloaded.run([sys.executable, "-c", "import time; time.sleep(600)"], timeout=0.5)


def test_programs_run_at_once_and_know_nothing_of_each_other() -> None:
    code = "import sys; sys.stdin.read(); import time; time.sleep(0.2); print(sys.argv[1])"
    running = [
        preloaded.Process([sys.executable, "-c", code, str(n)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for n in range(8)
    ]
    assert [process.communicate()[0] for process in running] == [f"{n}\n" for n in range(8)]


def test_what_is_no_python_program_is_refused() -> None:
    with pytest.raises(ValueError, match=r"command\[0\] must be sys.executable, got 'ls'"):
        preloaded.run(["ls"])
