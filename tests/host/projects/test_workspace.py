"""What kernels find in the workspace: nothing that they can count on, as on a device."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ascend_graph.host.projects.build import build_project_package

PROJECT = Path(__file__).parent / "workspace"
CALL = """
import torch, torch_npu, ascend_graph
x = torch.arange(256.0)
ascend_graph.register_aclnn("aclnnPartialSum", name="w::partial_sum", shape="x[n] -> y[64]")
for way in map(int, {ways!r}):
    try:
        y = torch.ops.w.partial_sum(x.npu(), way).cpu()
        torch.npu.synchronize()
        print("right" if torch.equal(y, x.reshape(4, 64).sum(0)) else y[0].item())
    except RuntimeError as error:
        print(str(error).splitlines()[0])
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_project_package(tmp_path_factory.mktemp("opp") / "vendor", PROJECT)


def _said(package: Path, ways: str, *modes: str) -> list[str]:
    command = [sys.executable, "-m", "ascend_graph.host", "--quiet", *modes, "-c", CALL.format(ways=ways)]
    environment = {**os.environ, "ASCEND_CUSTOM_OPP_PATH": str(package)}
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600, env=environment)
    return done.stdout.splitlines()


def test_sums_in_a_workspace_that_nothing_wrote_are_wrong(package: Path) -> None:
    """Every call of the kernel finds other numbers than zeros, though the memory was new or zeros before."""
    right, wrong, refused, again = _said(package, "0121")
    assert right == "right"
    assert float(wrong) == float(again) < -1e38
    assert "SyncAll: its workspace in global memory was not set to 0" in refused


def test_a_workspace_without_the_part_of_the_system(package: Path) -> None:
    """A kernel's own part begins behind the system's, whatever its tiling function asked for."""
    refused, empty, unused, short = _said(package, "3458")
    for asked, said in ((4096, refused), (16 << 20, empty)):
        assert "InitOutput: out of bounds: bytes 0 to 256 of " in said
        assert f"the tiling function asked for a workspace of {asked} bytes, of which the first 16 MiB" in said
        assert "add platform.GetLibApiWorkSpaceSize() to what the kernel uses itself" in said
    assert float(unused) == 0
    assert "InitOutput: out of bounds: bytes 0 to 256 of " in short
    assert "asked for 128 bytes of workspace after the 16 MiB of the system: ask for all that" in short
    assert "GetLibApiWorkSpaceSize" not in short


def test_writes_beyond_a_tensor_whatever_size_its_buffer_was_given(package: Path) -> None:
    """Memory behind a tensor is the next tensor's, in one allocation of torch's."""
    for said in _said(package, "67"):
        assert "DataCopy: out of bounds: bytes 512 to 768 of dst, whose global buffer ends at byte 256" in said


def test_reads_of_the_workspace_that_nothing_wrote_are_named(package: Path) -> None:
    right, refused = _said(package, "01", "--pipes")
    assert right == "right"
    assert "DataCopy reads bytes 16777216 to 16777472 of the workspace, which nothing wrote" in refused
