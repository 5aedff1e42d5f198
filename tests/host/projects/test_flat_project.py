"""A project with everything in op_host: definition, tiling, and the aclnn function that its author wrote."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ascend_graph.host.projects import build
from ascend_graph.host.projects.build import build_project_package
from ascend_graph.host.projects.discover import discover
from ascend_graph.host.projects.repository import Repository
from ascend_graph.host.projects.source_text import is_aclnn_source

from .test_handwritten import run

PROJECT = Path(__file__).parent / "flat"
PRELUDE = """
import torch, torch_npu, ascend_graph
op = ascend_graph.register_aclnn("aclnnRunningTotal", name="flat::running_total", shape="self[*s] -> out[*s]")

def refused(*arguments):
    try:
        op(torch.ones(16).npu(), *arguments)
        torch.npu.synchronize()
    except RuntimeError as error:
        print(error)
    else:
        raise AssertionError("taken")
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_project_package(tmp_path_factory.mktemp("opp") / "vendor", PROJECT)


def test_sources_are_known_by_what_they_contain() -> None:
    project = discover(Repository.around(PROJECT))
    assert [path.name for path in project.host_sources] == ["running_total.cpp"]
    written = project.handwritten
    assert written is not None
    assert [path.name for path in written.sources] == ["aclnn_running_total.cpp", "running_total_l0.cpp"]
    assert written.functions == {"aclnnRunningTotal"}


@pytest.mark.slow
def test_a_build_reads_the_repository_before_it_compiles_kernels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the completed project on everything is known: no step of the build asks the repository again."""
    complete = build.build

    def refuse(*arguments: object, **options: object) -> None:
        raise AssertionError("the build asks the repository")

    def without_repository(*arguments: Any) -> None:
        for name, value in vars(Repository).items():
            if not name.startswith("__") and name not in Repository.__dataclass_fields__:
                monkeypatch.setattr(Repository, name, property(refuse) if hasattr(value, "attrname") else refuse)
        complete(*arguments)

    monkeypatch.setattr(build, "build", without_repository)
    build_project_package(tmp_path / "vendor", PROJECT)


def test_describing_and_compiling_import_no_repository() -> None:
    code = "import sys, ascend_graph.host.projects.kernels; print([name for name in sys.modules if name.endswith({names!r})])"
    names = (".projects.repository", ".projects.includes", ".projects.discover")
    program = [sys.executable, "-c", code.format(names=names)]
    assert subprocess.run(program, capture_output=True, text=True, check=True).stdout == "[]\n"


def test_what_registers_is_no_source_of_aclnn_functions() -> None:
    """Tiling functions may include the headers of aclnn functions, for their logs."""
    assert not is_aclnn_source('#include "opdev/op_log.h"\nIMPL_OP_OPTILING(Add).Tiling(Tile);')
    assert is_aclnn_source('#include "opdev/op_log.h"\nnamespace l0op {}')
    assert is_aclnn_source("#include <aclnn/opdev/op_log.h>\nnamespace l0op {}")


def test_blocks_share_results_in_the_workspace(package: Path) -> None:
    """Each block has a tensor of one element; the workspace is one argument."""
    run(
        package,
        """
        x = torch.arange(64.0)
        torch.testing.assert_close(op(x.npu(), 0).cpu(), x.cumsum(0))
        torch.testing.assert_close(op(x.npu(), 7).cpu(), x.cumsum(0))  # of 8 elements
        """,
        PRELUDE,
    )


def test_the_workspace_ends_where_the_tiling_function_says(package: Path) -> None:
    printed = run(package, "refused(8)", PRELUDE)
    assert "SetValue: out of bounds: bytes 32 to 36 of the tensor, whose global buffer ends at byte 32" in printed


def test_a_number_is_written_beside_pointers(package: Path) -> None:
    """``ToString(0)`` is the author's overload for numbers, not one of ``opdev`` for pointers."""
    assert "behind -1 is less than 0 of " in run(package, "refused(-1)", PRELUDE)
