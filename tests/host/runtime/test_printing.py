"""torchair's npu_print in GE graphs: what it shows outside of them comes on stderr when the graph runs."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torchair

from ascend_graph.environment import HostRuntimeError
from ascend_graph.host.kernels import find_host_kernel

VALUES: dict[str, Callable[[], torch.Tensor]] = {
    "number": lambda: torch.tensor(2.5),
    "integers": lambda: torch.arange(9),
    "matrix": lambda: torch.arange(4 * 8, dtype=torch.float32).reshape(4, 8) / 3,
    "long matrix": lambda: torch.arange(8 * 2, dtype=torch.int32).reshape(8, 2),
    "volume": lambda: torch.arange(12, dtype=torch.float32).reshape(2, 3, 2),
    "booleans": lambda: torch.tensor([True, False]),
    "halves": lambda: torch.tensor([0.5, -1.0], dtype=torch.float16),
    "bfloat16": lambda: torch.tensor([0.5, -1.0], dtype=torch.bfloat16),
}


def compiled(function: Callable[..., Any], *, dynamic: bool = False) -> Callable[..., Any]:
    torch._dynamo.reset()
    return torch.compile(function, backend=torchair.get_npu_backend(), dynamic=dynamic)


@pytest.mark.parametrize("detail", [False, True], ids=["values", "detail"])
@pytest.mark.parametrize("name", VALUES)
def test_a_graph_prints_what_eager_prints(name: str, detail: bool, capfd: pytest.CaptureFixture[str]) -> None:
    x = VALUES[name]().npu()

    def function(x: torch.Tensor) -> torch.Tensor:
        torchair.ops.npu_print("x =", x, "and", 3, tensor_detail=detail)
        return x.clone()

    function(x)
    # A graph has the shape as a tensor.
    expected = re.sub(r"shape=\[.*?\]", lambda m: m[0].replace(",", ""), capfd.readouterr().out)
    compiled(function)(x)
    assert expected.strip()
    assert expected in capfd.readouterr().err


def test_prints_come_in_order_and_with_every_run(capfd: pytest.CaptureFixture[str]) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        torchair.ops.npu_print("before", x, summarize_size=-1)
        y = x * 2
        torchair.ops.npu_print("after", y, x)
        return y

    graph = compiled(function, dynamic=True)
    for size in (2, 3):
        graph(torch.arange(size).npu())
    shown = [line for line in capfd.readouterr().err.splitlines() if line.startswith(("before", "after"))]
    assert shown == ["before [0 1]", "after [0 2] [0 1]", "before [0 1 2]", "after [0 2 4] [0 1 2]"]


def test_a_template_that_does_not_fit_is_refused() -> None:
    kernel = find_host_kernel("StringFormat")
    assert kernel is not None
    with pytest.raises(HostRuntimeError, match="has 1 placeholders for 2 tensors"):
        kernel.function([torch.ones(1)] * 2, template="{}", placeholder="{}")
    with pytest.raises(HostRuntimeError, match="summarize is 0"):
        kernel.function([torch.ones(1)], template="{}", placeholder="{}", summarize=0)
