"""AddCustom in every mode: eager, GE graph (static and dynamic shapes), aclgraph; alone and inside a module that trains.

Run by ``make demo``. Every row is compared with the same computation on the CPU; the exit status tells whether all agree.
With ``--svg FILE`` the table is also drawn there, as the README shows it.
"""

from __future__ import annotations

import re
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
import torchair
from rich.console import Console
from rich.table import Table
from torch import nn
from torch._dynamo.utils import counters

import ascend_graph

# Defines torch.ops.npu.npu_add_custom. It registers operators alone, and needs no Python module of its own.
torch.ops.load_library(next(Path(sys.argv[1]).glob("add_custom_ext*.so")))

# The whole of what an author writes to bring an operator into graphs:
ascend_graph.load_prototypes(Path(__file__).with_name("op_proto.h"))
ascend_graph.register_op(
    "AddCustom",
    eager=torch.ops.npu.npu_add_custom,
    shape="x[...], y[...] -> z[...]",
    backward=lambda ctx, grad: (grad, grad),
)

warnings.simplefilter("ignore", UserWarning)  # the wheels' own, about how they compile and copy
npu_backend = torchair.get_npu_backend()


class Net(nn.Module):
    """A residual block around the custom operator and ATen's matmul, relu and layer norm."""

    def __init__(self, add: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.linear = nn.Linear(16, 16)
        self.norm = nn.LayerNorm(16)
        self.add = add

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(self.add(torch.relu(self.linear(x)), x) @ self.linear.weight)


def forward_and_backward(model: nn.Module, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Return the output and the gradients of input and parameters."""
    x = x.detach().requires_grad_()
    y = model(x)
    return (y, *torch.autograd.grad(y.square().sum(), [x, *model.parameters()]))


def flat(result: Any) -> list[torch.Tensor]:
    return [t.detach().cpu() for t in (result if isinstance(result, tuple) else (result,))]


def measure(
    function: Callable[..., Any], reference: Callable[..., Any], inputs: Sequence[tuple[torch.Tensor, ...]]
) -> tuple[bool, float, float]:
    """Whether all results agree with the reference; seconds of the first call; seconds of a later one."""
    start = time.perf_counter()
    function(*(t.npu() for t in inputs[0]))
    first = time.perf_counter() - start
    agrees = True
    for tensors in inputs:
        pairs = zip(flat(function(*(t.npu() for t in tensors))), flat(reference(*tensors)), strict=True)
        agrees &= all(torch.allclose(a, b, rtol=1e-4, atol=1e-5) for a, b in pairs)
    device = [t.npu() for t in inputs[0]]
    calls = 50
    start = time.perf_counter()
    for _ in range(calls):
        function(*device)
    torch.npu.synchronize()
    return agrees, first, (time.perf_counter() - start) / calls


def main() -> int:
    """Print the table; return the process's exit status."""
    pairs = [(torch.randn(4, 16), torch.randn(4, 16)), (torch.randn(9, 16), torch.randn(9, 16))]
    op, net, cpu_net = torch.ops.npu.npu_add_custom, Net(torch.ops.npu.npu_add_custom).npu(), Net(torch.add)
    subjects = {
        "npu_add_custom(x, y)": (op, torch.add, pairs),
        "module, forward": (net, cpu_net, [(x,) for x, _ in pairs]),
        "module, forward and backward": (
            lambda x, f=net: forward_and_backward(f, x), lambda x: forward_and_backward(cpu_net, x), [(x,) for x, _ in pairs]
        ),
    }  # fmt: skip
    modes: dict[str, tuple[Any, dict[str, Any], int]] = {
        "eager": (None, {}, 2),
        "GE graph, static shape": (npu_backend, {"dynamic": False}, 1),
        "GE graph, dynamic=True, two shapes": (npu_backend, {"dynamic": True}, 2),
        "aclgraph (npugraph_ex)": ("npugraph_ex", {"dynamic": False}, 1),
    }
    table = Table(title="AddCustom, registered by one call from its REG_OP header")
    for column in ("what", "mode", "agrees with CPU", "graphs compiled", "first call", "per call"):
        table.add_column(column, justify="left" if column in ("what", "mode") else "right")
    ok = True
    for what, (function, reference, inputs) in subjects.items():
        for mode, (backend, options, shapes) in modes.items():
            torch._dynamo.reset()
            counters.clear()
            run = function
            if backend is not None:
                compiled = torch.compile(net if what.startswith("module") else op, backend=backend, **options)
                run = compiled if "backward" not in what else lambda x, f=compiled: forward_and_backward(f, x)
            agrees, first, each = measure(run, reference, inputs[:shapes])
            graphs = counters["stats"]["unique_graphs"]
            once = graphs == (backend is not None)
            ok &= agrees and once
            compilations = str(graphs) if backend is not None else ""
            table.add_row(
                what,
                mode,
                "yes" if agrees else "[red]NO",
                compilations if once else f"[red]{compilations}",
                f"{first * 1e3:.0f} ms",
                f"{each * 1e6:.0f} µs",
            )
        table.add_section()
    console = Console(width=130, record=True)
    console.print(table)
    if "--svg" in sys.argv:
        picture = console.export_svg(title="make demo")
        # Nothing is loaded from elsewhere: the reader's own monospaced font does.
        picture = re.sub(r"@font-face \{.*?\}\s*", "", picture, flags=re.DOTALL)
        Path(sys.argv[sys.argv.index("--svg") + 1]).write_text(picture, encoding="utf-8")
    print("all agree" if ok else "NOT all agree")
    return 0 if ok else 1


if __name__ == "__main__":
    raise SystemExit(main())
