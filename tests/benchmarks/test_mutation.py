"""Planted faults: off they change nothing, on they are the fault; which test reaches one is recorded, a verdict right."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.mutation import cpp_sites, sites
from benchmarks.mutation.judge import BATCH_TESTS, RecordedTest, batches
from benchmarks.mutation.plant import IMPORT, choose

ROOT = Path(__file__).resolve().parents[2]
PYTHON = '''"""Ä module."""
from __future__ import annotations

LIMIT = 3


def f(ä, b=1):
    """Say it."""
    if ä < b and not b:  # a comment
        print("x" + f"{b + 1}")
    return [x for x in range(10) if x == ä]
'''


def test_python_is_right_with_the_faults_off_and_wrong_with_one_on() -> None:
    found = list(sites.apart(sites.sites(PYTHON)))
    text = sites.planted(PYTHON, dict(enumerate(found, 1)), "from planted import asked as _planted_fault_\n")
    assert text.splitlines()[2] == "from planted import asked as _planted_fault_"

    def value(active: int) -> object:
        names: dict[str, object] = {sites.ASK: lambda number: number == active}
        exec(text.replace("from planted import asked as _planted_fault_\n", ""), names)
        return names["f"](7)  # type: ignore[operator]

    assert value(0) == [7]
    assert any(value(number) != [7] for number in range(1, len(found) + 1))


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some packages of the product."""
    copy = tmp_path_factory.mktemp("tree")
    for part in ("ascend_graph/shapes", "ascend_graph/binding", "codegen/eager_library", "csrc/eager"):
        shutil.copytree(ROOT / part, copy / part)
    return copy


def test_modules_read_with_their_faults(tree: Path) -> None:
    drawn = choose(tree, 60, seed=3)
    assert {file.suffix for file in drawn} == {".py", ".cpp", ".h"}
    for file, chosen in drawn.items():
        text = file.read_text(encoding="utf-8")
        if file.suffix == ".py":
            ast.parse(sites.planted(text, chosen, IMPORT))
        else:
            assert cpp_sites.planted(text, chosen).count(f"({cpp_sites.ASK}(") == len(chosen)


def test_the_same_seed_draws_the_same(tree: Path) -> None:
    first, again, other = (choose(tree, 40, seed) for seed in (1, 1, 2))
    assert first == again != other


def test_cpp_is_right_with_the_faults_off_and_wrong_with_one_on(tmp_path: Path) -> None:
    text = "int f(int a) {\n    if (a < 3) return a + 1;\n    return 0;\n}\nint main() { return f(3) * 10 + f(1); }\n"
    (tmp_path / "f.cpp").write_text(cpp_sites.planted(text, dict(enumerate(cpp_sites.sites(text), 1))))
    subprocess.run([os.environ.get("CXX", "g++"), "-std=c++17", "f.cpp", "-o", "f"], cwd=tmp_path, check=True)
    results = {
        number: subprocess.run(["./f"], check=False, cwd=tmp_path, env={"AG_FAULT": str(number)}).returncode
        for number in range(3)
    }
    assert results == {0: 2, 1: 42, 2: 0}


@pytest.mark.parametrize(
    "text", ["#define F(x) if (x < 3) return;\n", "constexpr int f(int x) {\n  if (x < 3) return 1;\n}\n"]
)
def test_what_a_compiler_evaluates_has_no_faults(text: str) -> None:
    assert not cpp_sites.sites(text)


def test_quick_tests_that_reach_little_else_are_asked_first() -> None:
    tests = [
        RecordedTest("slow", 30.0, frozenset({1})),
        RecordedTest("wide", 0.1, frozenset(range(100))),
        RecordedTest("near", 0.1, frozenset({1})),
    ]
    assert [[test.name for test in lot] for lot in batches(tests)] == [["near", "wide"], ["slow"]]
    assert [len(lot) for lot in batches([RecordedTest("t", 0.0, frozenset())] * (BATCH_TESTS + 1))] == [BATCH_TESTS, 1]


def test_a_runs_record_says_what_each_test_reaches(tmp_path: Path) -> None:
    (tmp_path / "test_two.py").write_text(
        "import mmap, os\n"
        "def reach(number):\n"
        "    with open(os.environ['AG_REACHED'], 'r+b') as file:\n"
        "        mmap.mmap(file.fileno(), 4096)[number] = 1\n"
        "def test_one(): reach(3)\n"
        "def test_other():\n    reach(5)\n    assert False\n"
    )
    plugins = ["-p", "xdist.plugin", "-p", "benchmarks.mutation.reach"]
    command = [sys.executable, "-m", "pytest", *plugins, "-n1", "-c/dev/null", str(tmp_path)]
    variables = {"AG_REACH_DIRECTORY": str(tmp_path), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PATH": "/usr/bin:/bin"}
    subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, check=False)
    lines = [json.loads(line) for line in (tmp_path / "gw0.jsonl").read_text().splitlines()]
    assert [(failed, reached) for _, _, failed, reached in lines] == [(False, [3]), (True, [5])]
