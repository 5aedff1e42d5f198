"""An operator package is found by its directory, its vendor, or an installed Python distribution."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ascend_graph.packages.locate import PackageNotFound, locate_package


def make_package(directory: Path) -> Path:
    (directory / "op_proto" / "inc").mkdir(parents=True)
    return directory.resolve()


def make_distribution(site: Path, name: str, module: str) -> None:
    (site / module).mkdir(parents=True)
    (site / module / "__init__.py").write_text("raise RuntimeError('imported')")
    info = site / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "RECORD").write_text(f"{module}/__init__.py,,\n{info.name}/METADATA,,\n")


@pytest.mark.parametrize("place", ["opp/vendors/mine", "opp/vendors", "opp"])
def test_a_directory_that_is_or_holds_the_package(tmp_path: Path, place: str) -> None:
    package = make_package(tmp_path / "opp/vendors/mine")
    assert locate_package(tmp_path / place) == package
    assert locate_package(str(tmp_path / place)) == package


def test_a_vendor_that_the_environment_selects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = make_package(tmp_path / "vendors/mine")
    monkeypatch.setenv("ASCEND_OPP_PATH", str(tmp_path))
    assert locate_package("mine") == package
    with pytest.raises(PackageNotFound, match="vendors with a similar name: mine"):
        locate_package("mines")


def test_an_installed_distribution_is_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_distribution(tmp_path, "some-ops", "the_ops")
    package = make_package(tmp_path / "the_ops/opp/vendors/customize")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert locate_package("some-ops") == package
    assert locate_package("the_ops") == package
    assert "the_ops" not in sys.modules


def test_several_packages_and_none_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_package(tmp_path / "vendors/one")
    make_package(tmp_path / "vendors/two")
    with pytest.raises(PackageNotFound, match=r"2 operator packages.*Write one of: .*one, .*two"):
        locate_package(tmp_path)
    with pytest.raises(PackageNotFound, match="the directory does not exist"):
        locate_package(tmp_path / "nowhere")
    make_distribution(tmp_path / "site", "bare-ops", "bare_ops")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    with pytest.raises(PackageNotFound, match="bare-ops: has no operator package"):
        locate_package("bare-ops")
    with pytest.raises(PackageNotFound, match="3: not a name or a path"):
        locate_package(3)  # type: ignore[arg-type]
    with pytest.raises(PackageNotFound, match="'no_such_thing': not an operator package"):
        locate_package("no_such_thing")
