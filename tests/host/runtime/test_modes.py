"""Modes of the caller, a default device, dispatch modes and autocast of the CPU, do not reach host kernels."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import pytest
import torch
from torch.nn import functional as F

import ascend_graph
from ascend_graph.host.kernels import host_kernel

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import torch_npu  # noqa: F401 - torchair can only be imported after it
    import torchair

pytestmark = pytest.mark.filterwarnings("default")
HEADER = "REG_OP(ModesRamp).INPUT(x, {DT_FLOAT}).OUTPUT(y, {DT_FLOAT}).OP_END_FACTORY_REG(ModesRamp)"
seen: list[tuple[str, int, int]] = []


@host_kernel("ModesRamp")
def _ramp(x: torch.Tensor) -> torch.Tensor:
    made = torch.arange(x.size(0), dtype=x.dtype)
    modes = torch._C._len_torch_dispatch_stack(), torch._C._len_torch_function_stack()
    seen.append((made.device.type, *modes))
    return x + made if made.device == x.device else x


@pytest.fixture(scope="module", autouse=True)
def _ramp_operator() -> Iterator[None]:
    ascend_graph.load_prototypes(HEADER)
    library = torch.library.Library("modes_ramp", "DEF")
    library.define("ramp(Tensor x) -> Tensor")
    registered = ascend_graph.register_op("ModesRamp", eager=torch.ops.modes_ramp.ramp, shape="x[n] -> y[n]")
    yield
    registered.unregister()
    library._destroy()


@pytest.mark.parametrize("dynamic", [False, True], ids=["GE", "GE-dynamic"])
def test_kernels_make_tensors_on_the_cpu_whatever_the_default_device(dynamic: bool) -> None:
    torch._dynamo.reset()
    run = torch.compile(lambda x: torch.ops.modes_ramp.ramp(x), backend=torchair.get_npu_backend(), dynamic=dynamic)
    seen.clear()
    x = torch.ones(3).npu()
    with torch.device("npu"):
        assert run(x).tolist() == [1, 2, 3]
        assert torch.ones(1).device.type == "npu"  # the mode is the caller's again
    assert set(seen) == {("cpu", 0, 0)}


def test_dynamic_graphs_of_aten_run_under_a_default_device() -> None:
    torch._dynamo.reset()
    q = torch.arange(8.0).view(1, 1, 2, 4) / 8
    attention = torch.compile(
        lambda q: F.scaled_dot_product_attention(q, q, q), backend=torchair.get_npu_backend(), dynamic=True
    )
    with torch.device("npu"):
        got = attention(q.npu())
    torch.testing.assert_close(got.cpu(), F.scaled_dot_product_attention(q, q, q))


def test_autocast_of_the_cpu_leaves_tensors_of_the_device_alone() -> None:
    x = torch.randn(4, 4).npu()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        results = x @ x, F.linear(x, x), torch.bmm(x[None], x[None])[0], torch.addmm(x, x, x)
        own = x.cpu() @ x.cpu()
    assert own.dtype == torch.bfloat16
    for result, expected in zip(results, (x @ x, F.linear(x, x), x @ x, torch.addmm(x, x, x)), strict=True):
        assert result.dtype == torch.float32
        assert torch.equal(result, expected)
