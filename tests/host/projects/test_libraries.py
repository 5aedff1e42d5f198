"""Libraries of an operator project."""

from __future__ import annotations

from pathlib import Path

from ascend_graph.host.projects.discover import discover
from ascend_graph.host.projects.libraries import GENERATED_HEADERS, host_library
from ascend_graph.host.projects.model import NO_OPTIONS
from ascend_graph.host.projects.repository import Repository

PROJECT = Path(__file__).parents[3] / "examples/operator_package"


def test_the_packages_temporary_directory_is_in_no_library(tmp_path: Path) -> None:
    """The library of one project is the same for each build, so its objects are those of the cache."""
    project = discover(Repository.around(PROJECT, NO_OPTIONS), None)
    libraries = []
    for name in ("first", "second"):
        work = tmp_path / name
        (work / GENERATED_HEADERS).mkdir(parents=True)
        (work / GENERATED_HEADERS / "aclnn_add_custom.h").write_text("int declared();\n")
        source = work / "op_api.cpp"
        source.write_text('#include "aclnn_add_custom.h"\n')
        libraries.append(host_library(project, "libcust_opapi", source, work))
    assert libraries[0] == libraries[1]
    assert not any(str(tmp_path) in str(path) for path in (*libraries[0].sources, *libraries[0].include_directories))
