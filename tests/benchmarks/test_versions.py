"""What was tried of each version, and what its wheels link: the records agree with the project and its document."""

from __future__ import annotations

from pathlib import Path

import pytest

from ascend_graph.host.toolkit import toolkit_directory
from ascend_graph.versions import TESTED, release, requirement
from benchmarks import symbols, versions

TREE = Path(__file__).resolve().parents[2]


def test_what_was_tested_is_in_the_project_and_in_the_document() -> None:
    project = (TREE / "pyproject.toml").read_text()
    assert f'"torch{requirement()}"' in project
    assert f'"torch_npu{requirement()}"' in project
    results = versions.recorded()
    ran = {
        r.version
        for r in results
        if r.imports and r.passed and r.demo_rows_equal == r.demo_rows > 0 == r.missing_symbols
    }
    assert {r.version for r in results if r.is_good} <= set(TESTED) <= ran
    # A range has no gaps: one version at least of each minor release between its ends.
    minors = {tuple(map(int, release(version).split(".")[:2])) for version in TESTED}
    assert minors == {(2, minor) for minor in range(min(minors)[1], max(minors)[1] + 1)}
    assert versions.table(versions.recorded()) in (TREE / "docs/versions.md").read_text()


def test_what_no_version_can_change_does_not_name_torch() -> None:
    sources = [path for directory in versions.WITHOUT_TORCH for path in (TREE / directory).rglob("*.py")]
    assert len(sources) > len(versions.WITHOUT_TORCH)
    assert [path for path in sources if "torch" in path.read_text()] == []


def test_every_known_wheel_finds_what_it_links() -> None:
    wheels = symbols.load()
    assert {name for w in wheels for name in w.name.split()} >= {*TESTED, *symbols.MACHINES}
    assert symbols.missing(wheels, symbols.exported(toolkit_directory() / "lib64")) == {}


@pytest.mark.parametrize(
    ("symbol", "canns"),
    [
        ("aclrtMalloc", True),
        ("HcclAllReduce", True),
        ("rtKernelLaunch", True),
        ("strcpy_s", True),
        ("_ZN2ge5GraphC1EPKc", True),
        ("_ZN2at6native5emptyEv", False),
        ("_ZNK3c1010TensorImpl5sizesEv", False),
        ("_ZNSt6vectorIiE4pushEv", False),
        ("PyList_New", False),
        ("THPVariableClass", False),
        ("pthread_create", False),
        ("memcpy", False),
    ],
)
def test_whose_a_symbol_is(symbol: str, canns: bool) -> None:
    assert symbols.is_canns(symbol) is canns
