"""Projects generated from kernels are built into wheels, installed, and run: eager, GE graphs, aclgraph."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from ascend_graph.codegen.eager_library.project import generate_project

from ascend_graph.compilation import cache_directory, locked
from ascend_graph.environment import toolkit_directory

from .conftest import EXAMPLES, PACKAGE, digest, host_python, run

TILED = """
    launch.tiling.total = narrow<uint32_t>(op.z.numel());
    launch.tiling.block = (launch.tiling.total + 127) / 128 * 16;
    launch.tiling.tile = 2048;
    return launch;
"""


KERNELS = Path(__file__).parent / "kernels"


@dataclass(frozen=True)
class Case:
    """A kernel, what the author writes, and calls that compare with PyTorch on the CPU. Sources may be the
    examples'."""

    sources: tuple[str | Path, ...]
    check: str
    shapes: Mapping[str, str] = field(default_factory=dict)
    #: In place of what a launch function proposes, from its second statement on.
    launch: str = ""
    #: Its public schema, where it has one.
    schema: str = ""


ADD_CHECK = """
for shape in ((8, 2048), (16, 2048), (4, 2, 4096)):
    x, y = torch.rand(2, *shape).half()
    assert torch.equal(my_ops.add_custom(x.npu(), y.npu()).cpu(), x + y)
x = torch.rand(2048, 8).half()
assert torch.equal(my_ops.add_custom(x.npu().t(), x.npu().t()).cpu(), (x + x).t())
assert torch.equal(my_ops.add_custom(x.npu()[1024:].t(), x.npu()[:1024].t()).cpu(), (x[1024:] + x[:1024]).t())
assert my_ops.add_custom(x.npu()[:0], x.npu()[:0]).shape == (0, 8)
with pytest.raises(RuntimeError, match="::add_custom: argument x is torch.float32; allowed are DT_FLOAT16"):
    my_ops.add_custom(x.float().npu(), x.npu())
leaf = torch.rand(8, 2048).half().npu().requires_grad_()
no_gradient = "::add_custom has no gradient, but one is asked for: give it one with backward="
with pytest.raises(RuntimeError, match=no_gradient):
    my_ops.add_custom(leaf, leaf).sum().backward()
with pytest.raises(RuntimeError, match="the sizes are"):
    my_ops.add_custom(x.npu(), x[:4].npu())
"""
CASES = {
    "ascendc_library": Case(("pybind_launch/op_proto.h", "pybind_launch/add_custom.cpp"), ADD_CHECK),
    "chevrons": Case(("torch_library_launch/add_custom.asc",), ADD_CHECK),
    "template_and_tiling_structure": Case(
        (KERNELS / "op_proto.h", KERNELS / "tiled_add.h"),
        """
for dtype in (torch.float16, torch.float32):
    for shape in ((), (1,), (3, 5), (1000, 77)):
        x, y = torch.rand(shape, dtype=dtype), torch.rand(shape, dtype=dtype)
        assert torch.equal(my_ops.add_custom(x.npu(), y.npu()).cpu(), x + y)
""",
        launch=TILED,
    ),
    "public_schema": Case(
        (KERNELS / "op_proto.h", KERNELS / "tiled_add.h"),
        """
x, y = torch.rand(3, 5), torch.rand(3, 5)
for made in (torch.ops.public_ops.plus(other=y.npu(), self=x.npu()), my_ops.plus(x.npu(), y.npu())):
    assert torch.equal(made.cpu(), x + y)
with pytest.raises(RuntimeError, match="public_ops::plus"):
    my_ops.plus(x.npu().double(), y.npu().double())
""",
        launch=TILED,
        schema="public_ops::plus(Tensor self, Tensor other) -> Tensor",
    ),
    "matmul": Case(
        ("template_matmul/graph/op_proto.h", "template_matmul/shared_lib"),
        """
for dtype in (torch.float16, torch.bfloat16, torch.float32):
    for m, k, n in ((2, 3, 4), (33, 65, 17)):
        a, b = torch.randn(m, k, dtype=dtype), torch.randn(n, k, dtype=dtype).t()
        c = my_ops.basic_matmul(a.npu(), b.npu(), outDType="")
        torch.testing.assert_close(c.cpu(), (a.float() @ b.float()).to(dtype), rtol=1e-2, atol=1e-2)
""",
        shapes={"BasicMatmul": "mat1[m, k], mat2[k, n] -> y[m, n]"},
    ),
}


def built(project: Path) -> Path:
    """A directory in which a copy of the project is built; kept as long as nothing it is made of changes."""
    toolkit = toolkit_directory()
    tools = [
        toolkit / "include",
        toolkit / "compiler/tikcpp/ascendc_kernel_cmake",
        *(PACKAGE / "host" / name for name in ("packages", "projects")),
    ]
    target = cache_directory() / "examples" / f"kernel_project-{digest([project, *tools, PACKAGE / 'host/ascendc'])}"
    with locked(target.with_suffix(".lock")):
        if not target.exists():
            work = target.with_name(f"{target.name}.work")
            shutil.rmtree(work, ignore_errors=True)
            shutil.copytree(project, work / "my_ops")
            build(work)
            work.rename(target)
    return target


def build(work: Path) -> None:
    """Builds the project in ``work/my_ops`` as its README says, and the operator package of its kernels."""
    pip = ["-m", "pip", "--disable-pip-version-check", "-q"]
    wheel = [*pip, "wheel", "--no-build-isolation", "--no-deps", "-w", "dist", "./my_ops"]
    run(host_python(*wheel), work, MAX_JOBS="2", PATH=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    (made,) = (work / "dist").glob("my_ops-0.1.0-*.whl")
    run([sys.executable, *pip, "install", "--no-deps", "--target", "site", str(made)], work)
    run([sys.executable, "my_ops/kernels/generated/operator_package.py", "opp"], work)


def installed(work: Path, *arguments: str | Path, **environment: str) -> str:
    """What a program prints on the host runtime with the wheel and the operator package installed."""
    return run(host_python(*arguments, opp=work / "opp"), work, PYTHONPATH=str(work / "site"), **environment)


def own_tests(work: Path) -> None:
    """The tests that were generated: opcheck, GE and aclgraph against eager calls."""
    output = installed(work, "-m", "pytest", "-q", "-p", "no:cacheprovider", work / "my_ops/tests")
    assert "failed" not in output


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["ascendc_library", *(pytest.param(name, marks=pytest.mark.slow) for name in CASES if name != "ascendc_library")],
)
def test_a_project_from_an_examples_kernel(tmp_path: Path, name: str) -> None:
    case = CASES[name]
    sources = [EXAMPLES / source for source in case.sources]
    project = generate_project(
        tmp_path / "my_ops",
        sources,
        launch="kernel",
        shapes=case.shapes,
        schemas={"": case.schema} if case.schema else None,
    )
    if case.launch:
        (launch,) = (project.directory / "csrc/launch").glob("*.cpp")
        proposed = launch.read_text()
        end = proposed.index("}\n\n}  // namespace")
        start = proposed.index("    launch.block_dim = 8;")
        launch.write_text(proposed[:start] + case.launch + proposed[end:])
    directory = built(project.directory)
    installed(directory, "-c", f"import pytest, torch, torch_npu, my_ops\n{case.check}")
    own_tests(directory)


@pytest.mark.slow
def test_the_steps_of_the_generated_workflow(tmp_path: Path) -> None:
    """All but those that install PyTorch and this package, with the wheel in a directory of its own."""
    sources = [EXAMPLES / "torch_library_launch/add_custom.asc"]
    project = generate_project(tmp_path / "my_ops", sources, launch="kernel").directory
    workflow = (project / ".github/workflows/operators.yml").read_text()
    steps = re.findall(r"- run: (.*)", workflow)
    assert [step.split()[:3] for step in steps[:2]] == [
        ["pip", "install", "torch==2.13.0"],
        ["pip", "install", "torch_npu==2.13.0"],
    ]
    site = tmp_path / "site"
    settings = {"PIP_TARGET": str(site), "PIP_NO_DEPS": "1", "PYTHONPATH": str(site), "MAX_JOBS": "2"}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for step in steps[2:]:
        output = run(["bash", "-ec", step], project, PATH=path, **settings)
    assert re.search(r"\d+ passed", output)


# One kernel with everything that a launch may have: an optional operand, one that is written over, memory of its own,
# tiling data in global memory, and a number.
PROTOTYPE = """
#include "graph/operator_reg.h"
REG_OP(AxpyAll)
    .INPUT(x, TensorType({DT_FLOAT}))
    .OPTIONAL_INPUT(bias, TensorType({DT_FLOAT}))
    .INPUT(total, TensorType({DT_FLOAT}))
    .OUTPUT(total, TensorType({DT_FLOAT}))
    .OUTPUT(out, TensorType({DT_FLOAT}))
    .REQUIRED_ATTR(alpha, Float)
    .OP_END_FACTORY_REG(AxpyAll);
"""
KERNEL = """
#include "kernel_operator.h"
#include "axpy_tiling.h"

// out = alpha * x + bias; total += out
extern "C" __global__ __aicore__ void axpy_all(GM_ADDR x, GM_ADDR bias, GM_ADDR total, GM_ADDR out, GM_ADDR workspace,
                                               GM_ADDR tiling, float alpha) {
    const auto* t = reinterpret_cast<__gm__ AxpyTiling*>(tiling);
    AscendC::GlobalTensor<float> xGm, biasGm, totalGm, outGm, scratch;
    xGm.SetGlobalBuffer((__gm__ float*)x, t->count);
    totalGm.SetGlobalBuffer((__gm__ float*)total, t->count);
    outGm.SetGlobalBuffer((__gm__ float*)out, t->count);
    scratch.SetGlobalBuffer((__gm__ float*)workspace, t->count);
    if (bias != nullptr) biasGm.SetGlobalBuffer((__gm__ float*)bias, t->count);
    const uint32_t block = AscendC::GetBlockIdx();
    for (uint32_t i = block * t->step; i < t->count && i < (block + 1) * t->step; ++i) {
        scratch.SetValue(i, scratch.GetValue(i) + alpha * xGm.GetValue(i));
        if (bias != nullptr) scratch.SetValue(i, scratch.GetValue(i) + biasGm.GetValue(i));
        outGm.SetValue(i, scratch.GetValue(i));
        totalGm.SetValue(i, totalGm.GetValue(i) + scratch.GetValue(i));
    }
}
"""
TILING = "#pragma once\nstruct AxpyTiling {\n    uint32_t count;\n    uint32_t step;\n};\n"
LAUNCH = """
#include "../generated/kernels.h"

my_ops::AxpyAllLaunch my_ops::launch_of(const AxpyAllOperands& op) {
    AxpyAllLaunch launch;
    launch.block_dim = op.alpha == 13 ? 0 : 4;
    launch.alpha = narrow<float>(op.alpha);
    launch.tiling.count = narrow<uint32_t>(op.out.numel());
    launch.tiling.step = (launch.tiling.count + 3) / 4;
    launch.workspace = {sizeof(float) * launch.tiling.count, true};
    if (op.bias && op.bias.dim() != op.x.dim()) throw std::invalid_argument("bias has another number of dimensions");
    return launch;
}
"""
CHECK = """
import pytest, torch, torch_npu, my_ops


def expected(x, bias, total, alpha):
    out = alpha * x + (0 if bias is None else bias)
    return out, total + out


def check(x, bias, total, alpha):
    wanted = expected(x.cpu(), None if bias is None else bias.cpu(), total.cpu(), alpha)
    out = my_ops.axpy_all(x, bias, total, alpha=alpha)
    torch.testing.assert_close((out.cpu(), total.cpu()), wanted)


def rand(*shape):
    return torch.rand(shape).npu()


check(rand(6, 7), rand(6, 7), rand(6, 7), 2.5)
check(rand(6, 7), None, rand(6, 7), -1.0)
check(rand(7, 6).t(), rand(6, 14)[:, ::2], rand(7, 6).t(), 0.5)  # views, the one written over too
check(rand(0, 7), None, rand(0, 7), 2.0)
leaf = rand(7, 6).requires_grad_()
assert torch.equal(my_ops.axpy_all(leaf.t(), None, rand(6, 7), alpha=1.0).detach(), leaf.detach().t())
with pytest.raises(RuntimeError, match="launch function says block_dim = 0"):
    check(rand(3), None, rand(3), 13.0)
with pytest.raises(IndexError, match="does not fit; expected a number that the kernel's parameter holds, a float"):
    my_ops.axpy_all(rand(3), None, rand(3), alpha=1e300)
with pytest.raises(ValueError, match="another number of dimensions"):
    my_ops.axpy_all(rand(3), rand(1, 3), rand(3), alpha=1.0)
with pytest.raises(RuntimeError, match="argument bias is torch.float16; allowed are DT_FLOAT"):
    my_ops.axpy_all(rand(3), rand(3).half(), rand(3), alpha=1.0)

# The relation and the dtypes are those of every route, without a launch and in graphs.
import torchair

for device in ("npu", "meta"):
    three, four = torch.zeros(3, device=device), torch.zeros(4, device=device)
    with pytest.raises(RuntimeError, match=r"total\\[\\*s\\]"):
        my_ops.axpy_all(three, None, four, alpha=1.0)
    with pytest.raises(RuntimeError, match="argument x is torch.int32; allowed are DT_FLOAT"):
        my_ops.axpy_all(three.int(), None, three, alpha=1.0)
for backend in (torchair.get_npu_backend(), "npugraph_ex", "aot_eager"):
    torch._dynamo.reset()
    step = torch.compile(
        lambda x, total: my_ops.axpy_all(x, None, total, alpha=1.0) * 2, backend=backend, dynamic=False
    )
    assert step(rand(3), rand(3)).shape == (3,)
    with pytest.raises(Exception, match=r"total\\[\\*s\\]"):
        step(rand(3), rand(4))
    with pytest.raises(Exception, match="argument x is torch.float16; allowed are DT_FLOAT"):
        step(rand(3).half(), rand(3))
    with pytest.raises(Exception, match="::axpy_all writes total in place and has no gradient"):
        step(rand(3).requires_grad_(), rand(3)).sum().backward()

# What it writes has the contract of PyTorch's own in-place operators.
with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad is being used in an in-place"):
    my_ops.axpy_all(rand(6, 7), None, leaf.t(), alpha=1.0)
x, total = rand(6, 7).requires_grad_(), rand(6, 7)
saved = x * total
my_ops.axpy_all(rand(6, 7), None, total, alpha=1.0)
assert total._version == 1
with pytest.raises(RuntimeError, match="modified by an inplace operation"):
    saved.sum().backward()
out = my_ops.axpy_all(x, None, total, alpha=1.0)
for result in (out, total):
    with pytest.raises(RuntimeError, match="::axpy_all writes total in place and has no gradient"):
        result.sum().backward()

# A capture records the launch, with tiling data that the device has not seen before, and does not run it.
x, bias, total = rand(5, 11), rand(5, 11), torch.zeros(5, 11).npu()
graph = torch.npu.NPUGraph()
with torch.npu.graph(graph):
    out = my_ops.axpy_all(x, bias, total, alpha=3.0)
assert not total.any(), "the capture ran the kernel"
sums = torch.zeros(5, 11)
for _ in range(3):
    x.add_(1)
    graph.replay()
    sums += 3 * x.cpu() + bias.cpu()
    torch.testing.assert_close((out.cpu(), total.cpu()), (3 * x.cpu() + bias.cpu(), sums))

print("agrees")
"""

# With torch_npu's task queue on, launches run later, on its thread; the host runtime's other operators run at once.
QUEUED = """
import os
os.environ["TASK_QUEUE_ENABLE"] = "1"
import torch, torch_npu, my_ops

wanted, outs, total = [], [], torch.zeros(800, 9).npu()
for n in range(200):
    x, bias = torch.rand(800, 9), torch.rand(800, 9)
    wanted.append(2 * x + bias)
    outs.append(my_ops.axpy_all(x.npu(), bias.npu(), total, alpha=2.0))  # nothing but the launch holds its inputs
torch.npu.synchronize()
for out, expected in zip(outs, wanted, strict=True):
    torch.testing.assert_close(out.cpu(), expected)
torch.testing.assert_close(total.cpu(), sum(wanted))
print("agrees")
"""


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["asc", "cpp"])
def test_everything_that_a_launch_may_have(tmp_path: Path, suffix: str) -> None:
    kernel, tiling, header = tmp_path / f"axpy_all.{suffix}", tmp_path / "axpy_tiling.h", tmp_path / "op_proto.h"
    kernel.write_text(KERNEL)
    tiling.write_text(TILING)
    header.write_text(PROTOTYPE)
    project = generate_project(
        tmp_path / "my_ops", [header, kernel], launch="kernel", shapes={"AxpyAll": "x[*s], total[*s] -> total, out[*s]"}
    )
    assert (
        "kernel of AxpyAll: axpy_all(x, bias, total, out, workspace: scratch, tiling: AxpyTiling)" in project.proposed
    )
    (project.directory / "csrc/launch/axpy_all.cpp").write_text(LAUNCH)
    directory = built(project.directory)
    for script in (CHECK, QUEUED):
        assert "agrees" in installed(directory, "-c", script)
    own_tests(directory)


# An output that is absent: the kernel gets a null address, its launch function an operand without a dtype.
HALVES_PROTOTYPE = """
#include "graph/operator_reg.h"
REG_OP(Halves)
    .INPUT(x, TensorType({DT_FLOAT}))
    .OUTPUT(low, TensorType({DT_FLOAT}))
    .OUTPUT(high, TensorType({DT_FLOAT}))
    .ATTR(both, Bool, true)
    .OP_END_FACTORY_REG(Halves);
"""
HALVES_KERNEL = """
#include "kernel_operator.h"

extern "C" __global__ __aicore__ void halves(GM_ADDR x, GM_ADDR low, GM_ADDR high, uint32_t count) {
    AscendC::GlobalTensor<float> xGm, lowGm, highGm;
    xGm.SetGlobalBuffer((__gm__ float*)x, count);
    lowGm.SetGlobalBuffer((__gm__ float*)low, count);
    if (high != nullptr) highGm.SetGlobalBuffer((__gm__ float*)high, count);
    for (uint32_t i = 0; i < count; ++i) {
        lowGm.SetValue(i, xGm.GetValue(i) - 1);
        if (high != nullptr) highGm.SetValue(i, xGm.GetValue(i) + 1);
    }
}
"""
HALVES_LAUNCH = """
#include "../generated/kernels.h"

my_ops::HalvesLaunch my_ops::launch_of(const HalvesOperands& op) {
    HalvesLaunch launch;
    if (static_cast<bool>(op.high) != op.both) throw std::invalid_argument("high is not what both says");
    launch.block_dim = 1;
    launch.count = narrow<uint32_t>(op.low.numel());
    return launch;
}
"""
HALVES_CHECK = """
import torch, torch_npu, torchair, my_ops

x = torch.arange(3.0).npu()
for backend in (None, torchair.get_npu_backend(), "npugraph_ex"):
    for both in (True, False):
        torch._dynamo.reset()
        call = lambda x: my_ops.halves(x, both=both)
        low, high = (call if backend is None else torch.compile(call, backend=backend))(x)
        assert low.tolist() == [-1, 0, 1]
        assert (None if high is None else high.tolist()) == ([1, 2, 3] if both else None), high
print("agrees")
"""


@pytest.mark.slow
def test_a_launch_with_an_output_that_is_absent(tmp_path: Path) -> None:
    kernel, header = tmp_path / "halves.asc", tmp_path / "op_proto.h"
    kernel.write_text(HALVES_KERNEL)
    header.write_text(HALVES_PROTOTYPE)
    shapes = {"Halves": "x[*s] -> low[*s], high[*s] if both else None"}
    project = generate_project(tmp_path / "my_ops", [header, kernel], launch="kernel", shapes=shapes)
    (project.directory / "csrc/launch/halves.cpp").write_text(HALVES_LAUNCH)
    directory = built(project.directory)
    assert "agrees" in installed(directory, "-c", HALVES_CHECK)
    own_tests(directory)
