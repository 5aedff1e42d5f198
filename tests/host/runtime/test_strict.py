"""A strict host runtime: who touches device memory from the host, after its end or beyond it, dies with a sentence
that names him."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import preloaded
import pytest
import torch
from click.testing import CliRunner

import ascend_graph
from ascend_graph.cli import main
from ascend_graph.environment import HostRuntimeError
from ascend_graph.host import host_environment

PLANTED = """
import ctypes, sys
import torch, torch_npu

def over(pointer, size):
    storage = torch_npu._C._construct_storage_from_data_pointer(pointer, torch.device("npu:0"), size)
    return torch.empty(0, dtype=torch.float32, device="npu").set_(storage, 0, (size // 4,))

x = torch.ones(1024, device="npu")
pointer = x.data_ptr()
float32 = ctypes.c_float.from_address
"""
FAULTS = {
    "print(float32(pointer).value)": "the program, outside any operator, touches device memory: byte 0 of ",
    "float32(pointer + 16).value = 1": "the program, outside any operator, touches device memory: byte 16 of ",
    "del x; print(float32(pointer).value)": (
        "the program, outside any operator, touches device memory after it was freed"
    ),
    "del x; over(pointer, 4096).add(1)": "aten::add touches device memory after it was freed: byte ",
    "over(pointer, 1 << 16).relu_()": "aten::relu_ touches memory ",
    "ctypes.memset(pointer - 8, 0, 4)": "touches memory 8 bytes before ",
}
FINE = """
import torch, torch_npu, torchair

def model(x, y):
    return torch.relu(x @ y) + 1

for backend in (None, "npugraph_ex", torchair.get_npu_backend()):
    torch._dynamo.reset()
    function = torch.compile(model, backend=backend, fullgraph=True) if backend else model
    for _ in range(3):
        x, y = torch.randn(3, 4), torch.randn(4, 5)
        torch.testing.assert_close(function(x.npu(), y.npu()).cpu(), model(x, y))
assert torch.empty(9, device="npu").isnan().all()
assert torch.empty(9, device="npu", dtype=torch.int32).eq(-1).all()
x = torch.zeros(4, device="npu")
graph = torch.npu.NPUGraph()
with torch.npu.graph(graph):
    gone = x * 2
    kept = gone + 1
    del gone
for value in (3.0, 4.0):
    x.fill_(value)
    graph.replay()
    assert kept.tolist() == [2 * value + 1] * 4
layer = torch.nn.Linear(8, 4).npu()
layer(torch.ones(2, 8, device="npu", requires_grad=True)).sum().backward()
assert torch_npu.npu_rms_norm(torch.ones(2, 16).npu(), torch.ones(16).npu())[0].isfinite().all()
print("fine")
"""


def strictly(code: str) -> subprocess.CompletedProcess[str]:
    environment = host_environment({**os.environ, "ASCEND_GRAPH_STRICT": "1"}, None)
    environment["ASCEND_GRAPH_HOST_BRIDGE"] = os.environ["ASCEND_GRAPH_HOST_BRIDGE"]
    return preloaded.run([sys.executable, "-c", code], env=environment)


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_named(fault: str) -> None:
    result = strictly(PLANTED + fault)
    assert result.returncode < 0, result.stderr
    sentence = next(line for line in result.stderr.splitlines() if line.startswith("ascend_graph, strict: "))
    assert FAULTS[fault] in sentence


def test_what_is_right_runs_as_ever_and_fresh_memory_holds_nan() -> None:
    result = strictly(FINE)
    assert result.stdout.endswith("fine\n"), result.stderr


OPERATORS = '''
import ctypes
import torch, torch_npu, ascend_graph

ascend_graph.load_prototypes("""
REG_OP(StrictPeek).INPUT(x, TensorType({DT_FLOAT})).OUTPUT(y, TensorType({DT_FLOAT})).OP_END_FACTORY_REG(StrictPeek)
REG_OP(StrictFill).INPUT(x, TensorType({DT_FLOAT})).OUTPUT(y, TensorType({DT_FLOAT})).OP_END_FACTORY_REG(StrictFill)
""")
library = torch.library.Library("stricts", "DEF")

def peek(x):
    return x + (ctypes.c_float.from_address(x.data_ptr()).value if x.numel() else 0)

for name, kernel in {"peek": peek, "fill": lambda x: torch.empty_like(x).fill_(1)}.items():
    library.define(f"{name}(Tensor x) -> Tensor")
    library.impl(name, kernel, "PrivateUse1")
    op_type = f"Strict{name.capitalize()}"
    ascend_graph.register_op(op_type, eager=getattr(torch.ops.stricts, name), shape="x[*s] -> y[*s]")
'''


@pytest.mark.slow
def test_check_command(tmp_path: Path) -> None:
    module = tmp_path / "operators.py"
    module.write_text(OPERATORS)
    result = CliRunner().invoke(main, ["check", str(module), "--strict", "--check", "arguments", "--check", "meta"])
    assert result.exit_code == 1
    assert "1 of 2 operators failed: stricts.peek.default" in result.output
    assert "checking it ended the process by SIGSEGV" in result.output


def test_strict_is_a_way_to_start(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(HostRuntimeError, match="start the program with python -m ascend_graph.host --strict"):
        ascend_graph.opcheck(torch.ops.aten.relu, [(torch.ones(1),)], strict=True)
    with pytest.raises(HostRuntimeError, match="ASCEND_GRAPH_STRICT=yes: write 1, or 0"):
        host_environment({"ASCEND_GRAPH_STRICT": "yes"}, None)
