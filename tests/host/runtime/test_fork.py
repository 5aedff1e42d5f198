"""A fork of a process that has used a device cannot use it, as on a device; one from before can."""

from __future__ import annotations

import sys
import textwrap

import preloaded
import pytest

IN_CHILD = """
import os, sys, torch, torch_npu
{before}
def child():
    {child}
pid = os.fork()
if pid == 0:
    try:
        child()
        print("computed", flush=True)
    except RuntimeError as error:
        print("refused", " ".join(str(error).split()), flush=True)
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
{after}
"""
USED = "x = torch.ones(3, device='npu')"
FORKED = "was forked from one that had used a device"


def run(child: str, before: str = USED, after: str = "assert (x + 1).tolist() == [2, 2, 2]") -> str:
    code = IN_CHILD.format(before=before, child=child, after=after)
    done = preloaded.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=900, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "child",
    [
        "x + 1",
        "x.add_(1)",
        "x.cpu()",
        "x.tolist()",
        "torch.ones(3, device='npu')",
        "torch.npu.synchronize()",
        "torch_npu.npu_swiglu(x.new_ones(4))",
        "graph.replay()",
    ],
)
def test_a_child_is_refused(child: str) -> None:
    before = USED
    if "graph" in child:
        before += "\ngraph = torch.npu.NPUGraph()\nwith torch.npu.graph(graph):\n    y = x + 1"
    out = run(child, before)
    assert out.startswith("refused"), out
    assert FORKED in out
    assert "'spawn'" in out


@pytest.mark.parametrize("before", ["", "torch.npu.device_count()", "torch.npu.is_available()"])
def test_a_child_from_before_the_first_use_computes(before: str) -> None:
    child = "assert torch.ones(3, device='npu').sum().item() == 3"
    assert run(child, before, after="assert torch.ones(3, device='npu').sum().item() == 3") == "computed\n"


def test_a_child_that_leaves_the_device_alone_is_free() -> None:
    """Workers of a DataLoader are such children."""
    assert run("assert torch.ones(3).sum().item() == 3") == "computed\n"
