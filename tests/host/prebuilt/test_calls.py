"""Operators of a package that CANN built: its aclnn function, its tiling function, and its kernel from its source."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import preloaded
import pytest

CALLS = """
import sys, torch, torch_npu, torchair, ascend_graph
from ascend_graph.errors import AscendGraphError
ascend_graph.register_op("Doubled", shape="x[n] -> y[n]")
op = torch.ops.ascend.doubled
for dtype in (torch.float32, torch.int32):
    x = torch.arange(7, dtype=dtype)
    assert torch.equal(op(x.npu()).cpu(), 2 * x), dtype
in_place = ascend_graph.register_aclnn(
    "aclnnDoubledInPlace", schema="tests::double_(Tensor(a!) x_ref, int mode=0) -> ()")
x, strided = torch.arange(7.0).npu(), torch.arange(12.0).npu().view(6, 2)
in_place(x)
in_place(strided[:, 0])
assert x.tolist() == [0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0]
assert strided.tolist() == [[0.0, 1.0], [4.0, 3.0], [8.0, 5.0], [12.0, 7.0], [16.0, 9.0], [20.0, 11.0]], strided
for backend in ("npugraph_ex", torchair.get_npu_backend()):
    torch._dynamo.reset()
    compiled = torch.compile(lambda x: op(x) + 1, backend=backend, dynamic=False)
    x = torch.arange(5, dtype=torch.float32)
    assert torch.equal(compiled(x.npu()).cpu(), 2 * x + 1), backend
for mode in range(1, 7):
    try:
        op(x.npu(), mode=mode)
        print(mode, "passed")
    except (AscendGraphError, RuntimeError) as error:
        print(mode, str(error).replace(chr(10), " "))
assert torch.equal(op(x.npu()).cpu(), 2 * x)  # the process goes on
"""
EXPECTED = (
    "1 .*Doubled: the tiling function returned GRAPH_FAILED",
    "2 .*Doubled: the tiling function accesses memory through a null or bad pointer",
    "3 .*Doubled: the tiling function did not end in 1 seconds",
    "4 .*Doubled: the tiling function accesses memory through a null or bad pointer",
    "5 .*made 24 bytes of tiling data; their buffer has 16",
    "6 .*Doubled: the tiling function asked for 17 workspaces; expected at most 16",
)


@pytest.mark.slow
def test_calls_in_every_mode_agree_and_bad_tiling_functions_are_named(package: Path) -> None:
    environment = os.environ | {"ASCEND_CUSTOM_OPP_PATH": str(package), "ASCEND_GRAPH_KERNEL_TIMEOUT": "1"}
    environment["LD_LIBRARY_PATH"] = f"{package}/op_api/lib:{environment['LD_LIBRARY_PATH']}"
    done = preloaded.run([sys.executable, "-c", CALLS], env=environment, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    lines = [line for line in done.stdout.splitlines() if line[:1].isdigit()]
    for line, expected in zip(lines, EXPECTED, strict=True):
        assert re.search(expected, line), line


CLASSES = """
import sys, torch, torch_npu, ascend_graph
op = ascend_graph.register_aclnn(
    "aclnnQuadrupled", name="hand::quadrupled", shape=lambda self, sizes, mode: torch.empty_like(self))
def call(x, mode=0):
    return op(x.npu(), sizes=list(x.shape), mode=mode)
for dtype in (torch.float32, torch.int32):
    x = torch.arange(15, dtype=dtype)
    assert torch.equal(call(x).cpu(), 4 * x), dtype
graph, x = torch.npu.NPUGraph(), torch.arange(6, dtype=torch.float32).npu()
with torch.npu.graph(graph):
    y = op(x, sizes=[6], mode=0)
x.add_(1)
graph.replay()
torch.npu.synchronize()
assert torch.equal(y.cpu(), 4 * x.cpu())
for mode in (1, 2, 3):
    try:
        call(x.cpu(), mode)
        print(mode, "passed")
    except RuntimeError as error:
        print(mode, str(error).replace(chr(10), " "))
assert torch.equal(call(x.cpu()).cpu(), 4 * x.cpu())  # the process goes on
"""
REFUSED = (
    r"1 .*161002: mode of .*\[6\].* with \[6\] must not be 1",
    r"2 .*Doubled: attr 0 of the launch has the OpArgType 15; expected a number, a text or an array",
    r"3 .*the operator type id 999 is not one that GenOpTypeId returned",
)


@pytest.mark.slow
def test_functions_that_are_written_against_the_classes_of_opbase_run_and_are_refused_by_name(package: Path) -> None:
    environment = os.environ | {"ASCEND_CUSTOM_OPP_PATH": str(package)}
    environment["LD_LIBRARY_PATH"] = f"{package}/op_api/lib:{environment['LD_LIBRARY_PATH']}"
    done = preloaded.run([sys.executable, "-c", CLASSES], env=environment, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    lines = [line for line in done.stdout.splitlines() if line[:1].isdigit()]
    for line, expected in zip(lines, REFUSED, strict=True):
        assert re.search(expected, line), line
