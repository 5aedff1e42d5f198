"""What was tried of each version, and what its wheels link: the records agree with the project and its document."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

from ascend_graph.environment import toolkit_directory
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


def test_examples() -> None:
    assert doctest.testmod(versions).failed == 0


def test_what_failed_is_run_again_and_counted_in_its_run(monkeypatch: pytest.MonkeyPatch) -> None:
    before = versions.VersionResult(
        "2.9.0", passed=7, failed=2, failures=("tests.a.test_b::test_c[d::e]", "tests.a.test_b::test_f")
    )
    asked = []

    def tests(run: object, files: list[str], jobs: int) -> dict[str, object]:
        asked.extend(files)
        return {"passed": 1, "failed": 0, "skipped_for_version": 1, "failures": ()}

    monkeypatch.setattr(versions, "_tests", tests)
    monkeypatch.setattr(versions, "_environment", lambda run: None)
    after = versions._again(before, 1)
    assert asked == ["tests/a/test_b.py::test_c[d::e]", "tests/a/test_b.py::test_f"]
    assert (after.passed, after.failed, after.skipped_for_version, after.again) == (8, 0, 1, 2)
    assert "With 2.9.0 2 of these had failed, and were run again alone after a fix." in versions.table([after])
    monkeypatch.setattr(versions, "_tests", lambda *_: {"failures": ("the tests did not end",), "failed": 1})
    with pytest.raises(RuntimeError, match="could not be run again"):
        versions._again(before, 1)


def test_what_no_version_can_change_does_not_name_torch() -> None:
    sources = [path for directory in versions.WITHOUT_TORCH for path in (TREE / directory).rglob("*.py")]
    assert len(sources) > len(versions.WITHOUT_TORCH)
    naming = {path.relative_to(TREE).as_posix() for path in sources if "torch" in path.read_text()}
    assert naming == set(versions.WITH_TORCH_AS_REFERENCE)
    assert not [name for name in naming if "torch_npu" in (TREE / name).read_text()]


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
