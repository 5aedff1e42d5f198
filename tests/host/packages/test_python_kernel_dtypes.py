"""Results of Python kernels in another dtype than their operator has."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import preloaded
import pytest

HEADER = """
REG_OP(DtypeQuant).INPUT(x, TensorType({DT_FLOAT})).OUTPUT(y, TensorType({DT_INT8})).OP_END_FACTORY_REG(DtypeQuant)
REG_OP(DtypeJoin)
    .DYNAMIC_INPUT(xs, TensorType({DT_FLOAT, DT_INT64}))
    .OUTPUT(y, TensorType({DT_FLOAT, DT_INT64}))
    .OP_END_FACTORY_REG(DtypeJoin)
REG_OP(DtypeWiden).INPUT(x, TensorType({DT_FLOAT16})).OUTPUT(y, TensorType({DT_FLOAT16})).OP_END_FACTORY_REG(DtypeWiden)
REG_OP(DtypeList)
    .DYNAMIC_INPUT(xs, TensorType({DT_FLOAT}))
    .DYNAMIC_OUTPUT(xs, TensorType({DT_FLOAT}))
    .OP_END_FACTORY_REG(DtypeList)
"""
KERNELS = """
import torch

def quant(x):
    return x * 1.5

def join(xs):
    return torch.cat(xs)

def widen(x):
    return x.float() * 2

def grow(xs):
    return [x + n for n, x in enumerate(xs)]
"""
PROGRAM = """
import sys, warnings
warnings.simplefilter("ignore")
import torch, torch_npu, torchair
import kernels
import ascend_graph
from ascend_graph.host import build_operator_package

chosen = {"DtypeQuant": kernels.quant, "DtypeJoin": kernels.join}
chosen |= {"DtypeWiden": kernels.widen, "DtypeList": kernels.grow}
build_operator_package("opp", "op_proto.h", chosen)
ascend_graph.register_op("DtypeQuant", shape="x[*s] -> y[*s]: int8")
ascend_graph.register_op("DtypeJoin", shape="xs[i][n[i]] -> y[sum(n)]")
ascend_graph.register_op("DtypeWiden", shape="x[*s] -> y[*s]")
ascend_graph.register_op("DtypeList")
ops = torch.ops.ascend
ge = lambda f: torch.compile(f, backend=torchair.get_npu_backend(), dynamic=False)

def refused(call, words):
    try:
        call()
    except Exception as error:
        assert words in str(error), error
    else:
        raise AssertionError(f"not refused: {words}")

x = torch.tensor([1.0, 2.0, 3.0]).npu()
QUANT = "DtypeQuant: the Python kernel returned float32 for output y; expected int8."
JOIN = "DtypeJoin: the Python kernel returned float32 for output y; expected int64."
"""
CASES = {
    "fractions are not cut off in eager calls": "refused(lambda: ops.dtype_quant(x), QUANT)",
    "nor go on in graphs": "refused(lambda: ge(lambda x: ops.dtype_quant(x) * 2)(x), QUANT)",
    "a list of two dtypes": "refused(lambda: ops.dtype_join([torch.arange(3).npu(), x]), JOIN)",
    "a wider float is narrowed": "assert ops.dtype_widen(x.half()).dtype == torch.half",
    "a graph would go on with the wider one": """
words = "DtypeWiden: the Python kernel returned float32 for output y; expected float16."
refused(lambda: ge(lambda x: ops.dtype_widen(x) * 2)(x.half()), words)""",
    "a list that is written may be returned alone": """
a, b = x.clone(), x[:2].clone()
ops.dtype_list([a, b])
assert a.tolist() == [1, 2, 3] and b.tolist() == [2, 3], (a, b)""",
}


@pytest.mark.parametrize("case", CASES)
def test_dtypes_of_results(tmp_path: Path, case: str) -> None:
    (tmp_path / "op_proto.h").write_text(HEADER)
    (tmp_path / "kernels.py").write_text(KERNELS)
    environment = {**os.environ, "ASCEND_CUSTOM_OPP_PATH": str(tmp_path / "opp"), "PYTHONPATH": str(tmp_path)}
    program = PROGRAM + CASES[case]
    done = preloaded.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
