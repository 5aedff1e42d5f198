"""torch.library and a kernel launched with <<<>>>: compiled by bisheng, loaded, compared with the CPU, put into
graphs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from .conftest import Builder, host_python, python, run

RULE = """
import pytest, torch, torch_npu
torch.ops.load_library("build/libadd_custom.so")
x = torch.rand(8, 128, dtype=torch.float16).npu()  # 128 halfs per core, in tiles of 8: 16 bytes
z = torch.ops.ascendc_ops.ascendc_add(x, x)
unaligned = r"kernel add_custom, block \\d of 8: DataCopy: unaligned copy.*add_custom_kernel.h:\\d+"
with pytest.raises(RuntimeError, match=unaligned):
    z.cpu()
x = torch.rand(8, 2048, dtype=torch.float16).npu()  # the process lives on
assert torch.equal(torch.ops.ascendc_ops.ascendc_add(x, x), x + x)
"""

REPLAY = """
import torch, torch_npu
torch.ops.load_library("build/libadd_custom.so")
x, y = (torch.rand(8, 2048, dtype=torch.float16).npu() for _ in range(2))
z = torch.zeros_like(x)
graph = torch.npu.NPUGraph()
with torch.npu.graph(graph):
    z.copy_(torch.ops.ascendc_ops.ascendc_add(x, y))
assert not z.any(), "the capture ran the kernel"
for _ in range(2):
    x.add_(1)
    graph.replay()
    assert torch.equal(z, x + y)
"""


pytestmark = pytest.mark.slow  # it compiles an extension with PyTorch's headers


@pytest.fixture(scope="module")
def directory(built: Builder) -> Path:
    def build(work: Path) -> None:
        run(host_python("run.sh"), work)
        run([sys.executable, "package.py", "build/opp"], work)

    package = ["op_proto.h", "host_op.asc", "package.py"]
    return built("torch_library_launch", build, ["add_custom_kernel.h", "add_custom.asc", "run.sh", *package])


def test_the_documents_script(directory: Path) -> None:
    assert "OK" in python(directory, "add_custom_test.py")


def test_compiled_in_every_mode(directory: Path) -> None:
    assert python(directory, "graph.py", opp=directory / "build/opp").count("agrees with the CPU") == 3


def test_a_launch_is_recorded_and_replayed(directory: Path) -> None:
    python(directory, "-c", REPLAY)


def test_a_broken_rule_is_an_error_of_pytorch(directory: Path) -> None:
    python(directory, "-c", RULE)
