"""AddCustom from its operator package, whose kernel is Ascend C, with one call of register_op and nothing else."""

from __future__ import annotations

from pathlib import Path

from .conftest import EXAMPLES, python

SHAPES = """
import pytest, torch, torch_npu, ascend_graph
op = ascend_graph.register_op("AddCustom", shape="x[*s], y[*s] -> z[*s]")
x = torch.rand(3, 5).half().npu()
assert torch.equal(op(x, x), x + x)
assert op(x[:0], x[:0]).shape == (0, 5)
assert torch.equal(op(x.t().contiguous(), x.t().contiguous()), (x + x).t())
"""


def test_every_mode_by_one_call(opp: Path, tmp_path: Path) -> None:
    output = python(tmp_path, EXAMPLES / "operator_package/graph.py", opp=opp)
    assert output.count("agrees with the CPU") == 4


def test_any_number_of_elements(opp: Path, tmp_path: Path) -> None:
    python(tmp_path, "-c", SHAPES, opp=opp)
