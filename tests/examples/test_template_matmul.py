"""A templated matmul through a pybind module and through torch.ops.load_library."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch
import torch_npu

from .conftest import Builder, host_python, python, run

pytestmark = pytest.mark.slow  # compiles every instance of a template

DTYPES = """
import pytest, torch, torch_npu
torch.ops.load_library("../../output/python_extension/libascendct_torch.so")
basic_matmul = torch.ops.AscendCTTorch.basic_matmul
torch.manual_seed(0)
for dtype in (torch.float16, torch.bfloat16, torch.float32):
    for out, name in ((torch.float16, "float16"), (torch.bfloat16, "bf16"), (torch.float32, "float32")):
        for m, k, n in ((2, 3, 4), (1, 1, 1), (130, 64, 33), (64, 300, 128), (5, 0, 7), (0, 4, 2)):
            a, b = torch.randn(m, k, dtype=dtype), torch.randn(n, k, dtype=dtype).t()
            if out not in (dtype, torch.float32) and m * k:
                with pytest.raises(RuntimeError, match="no kernel from"):
                    basic_matmul(a.npu(), b.npu(), name)
                continue
            result = basic_matmul(a.npu(), b.npu(), name)
            assert result.dtype == out
            torch.testing.assert_close(result.cpu(), (a.float() @ b.float()).to(out), rtol=2e-3, atol=2e-3)
x = torch.ones(2, 3).half().npu()
for bad, message in (((x, x, "float16"), "cannot be multiplied"), ((x, x.t(), "int8"), "outDType is 'int8'"),
                     ((x, x.t().float(), "float16"), "differ")):
    with pytest.raises(RuntimeError, match=message):
        basic_matmul(*bad)
"""


@pytest.fixture(scope="module")
def directory(built: Builder) -> Path:
    def build(work: Path) -> None:
        run(host_python("scripts/build.sh", "python_extension"), work)
        run([sys.executable, "graph/package.py", "build/opp"], work)

    sources = ["shared_lib", "python_extension", "scripts", "graph/op_proto.h", "graph/host_op.asc", "graph/package.py"]
    return built("template_matmul", build, sources)


def test_the_documents_script(directory: Path) -> None:
    try:
        output = run(host_python("tests/python_extension/run.sh"), directory)
    except AssertionError as error:
        # torch_npu's __init__ takes its own library, when something has loaded it before, for that of another device.
        if torch.__version__ < (2, 10) and "Two accelerators cannot be used at the same time" in str(error):
            pytest.skip(f"torch_npu {torch_npu.__version__} cannot be imported once its library is loaded")
        raise
    assert "OK" in output


def test_every_instance_of_the_template(directory: Path) -> None:
    python(directory / "tests/python_extension", "-c", DTYPES)


def test_compiled_in_every_mode(directory: Path) -> None:
    assert python(directory / "graph", "graph.py", opp=directory / "build/opp").count("agrees") == 9
