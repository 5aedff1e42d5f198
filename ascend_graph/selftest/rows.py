"""Measuring process: it compares each operator in each mode with the CPU and takes its times.

The results are lines of JSON on a file descriptor.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

#: Number of calls over which a time per call is averaged.
CALLS = 50


def main(arguments: list[str]) -> None:
    """Measure as ``{"done": […], "exports": directory, "modules": […]}`` requests, and write to a file descriptor.

    The lines are ``{"about": {…}}`` on the device, then for each row ``{"start": name}`` and ``{"row": {…}}``, and for each
    graph exported for CANN's compiler ``{"start": name}`` and ``{"export": {…}}``.
    """
    request = json.loads(arguments[0])
    with os.fdopen(int(arguments[1]), "w", buffering=1) as lines:
        warnings.simplefilter("ignore")  # the wheels' own, about how they compile and copy
        import torch_npu  # noqa: F401 - torchair can only be imported after it

        _say(lines, {"about": _about()})
        for name, measure in _all(Path(request["exports"]), request["modules"]):
            if name in request["done"]:
                continue
            _say(lines, {"start": name})
            try:
                _say(lines, measure())
            except Exception as error:  # of whatever fails: it is a result
                said = f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"
                _say(lines, {"row": {"name": name, "ok": False, "error": said}})


def _all(exports: Path, modules: Sequence[str]) -> Iterator[_Measured]:
    yield from _rows()
    yield from _exports(exports, modules)


def _say(lines: TextIO, what: dict[str, Any]) -> None:
    lines.write(json.dumps(what) + "\n")


def _about() -> dict[str, Any]:
    """Return the device's name, count and memory."""
    import torch

    npu: Any = torch.npu  # type: ignore[attr-defined]
    return {
        "name": npu.get_device_name(),
        "count": npu.device_count(),
        "memory": npu.get_device_properties(0).total_memory,
    }


_Measured = tuple[str, Callable[[], dict[str, Any]]]


def _rows() -> Iterator[_Measured]:
    """Yield the demo's rows: each operator, and a module of all of them that trains, in every mode."""
    import torch
    from torch import nn

    from ascend_graph.registration.registered import registered_ops
    from ascend_graph.selftest import operators

    operators.register()

    class Net(nn.Module):
        """Gated unit of matmul, RmsNorm and FastGelu; on the NPU it uses the operators of the self-test."""

        def __init__(self, norm: Callable[..., Any], gelu: Callable[..., Any]) -> None:
            super().__init__()
            torch.manual_seed(0)
            self.linear = nn.Linear(16, 16)
            self.gamma = nn.Parameter(torch.rand(16) + 0.5)
            self.calls: Any = (norm, gelu)

        def forward(self, x: torch.Tensor) -> Any:
            norm, gelu = self.calls
            normed, _ = norm(self.linear(x), self.gamma)
            return gelu(normed) @ self.linear.weight

    for op in registered_ops():
        yield from _modes(
            op.overload.name(), op.overload, operators.REFERENCES[op.op_type], operators.INPUTS[op.op_type]
        )
    made = Net(torch.ops.npu.npu_rms_norm, torch.ops.npu.npu_fast_gelu).to("npu")
    inputs = operators.INPUTS["FastGelu"]
    expected = Net(operators.REFERENCES["RmsNorm"], operators.REFERENCES["FastGelu"])
    yield from _modes("module, forward", made, expected, inputs)
    yield from _modes("module, forward and backward", made, expected, inputs, trains=True)


def _modes(
    what: str, function: Any, reference: Any, inputs: Sequence[tuple[Any, ...]], *, trains: bool = False
) -> Iterator[_Measured]:
    import torch
    import torchair

    backend = torchair.get_npu_backend()
    modes: dict[str, tuple[Any, dict[str, Any], int]] = {
        "eager": (None, {}, 2),
        "GE graph, static shape": (backend, {"dynamic": False}, 1),
        "GE graph, dynamic=True, two shapes": (backend, {"dynamic": True}, 2),
        "aclgraph (npugraph_ex)": ("npugraph_ex", {"dynamic": False}, 1),
    }
    for mode, (chosen, options, shapes) in modes.items():
        name = f"{what}: {mode}"

        def measure(
            name: str = name,
            mode: str = mode,
            chosen: Any = chosen,
            options: dict[str, Any] = options,
            shapes: int = shapes,
        ) -> dict[str, Any]:
            torch._dynamo.reset()
            run = function if chosen is None else torch.compile(function, backend=chosen, **options)
            ours, expected = (_trained(run, function), _trained(reference, reference)) if trains else (run, reference)
            row = _measure(ours, expected, inputs[:shapes])
            return {"row": {"name": name, "what": what, "mode": mode, **row}}

        yield name, measure


def _trained(call: Callable[..., Any], module: Any) -> Callable[..., Any]:
    """Return a function that returns the output and the gradients of input and parameters."""
    import torch

    def run(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        x = x.detach().requires_grad_()
        y = call(x)
        return (y, *torch.autograd.grad(y.square().sum(), [x, *module.parameters()]))

    return run


def _measure(
    run: Callable[..., Any], reference: Callable[..., Any], inputs: Sequence[tuple[Any, ...]]
) -> dict[str, Any]:
    import torch

    from ascend_graph.checks.results import CallResult, differences
    from ascend_graph.checks.tolerances import Tolerances

    npu: Any = torch.npu  # type: ignore[attr-defined]
    device = [tuple(t.npu() for t in tensors) for tensors in inputs]
    start = time.perf_counter()
    run(*device[0])
    npu.synchronize()
    first = time.perf_counter() - start
    found = [
        text
        for placed, tensors in zip(device, inputs, strict=True)
        for text in differences(
            CallResult.of(run(*placed), ()), CallResult.of(reference(*tensors), ()), tolerances=Tolerances(1e-3, 1e-4)
        )
    ]
    npu.synchronize()
    start = time.perf_counter()
    for _ in range(CALLS):
        run(*device[0])
    npu.synchronize()
    each = (time.perf_counter() - start) / CALLS
    return {
        "ok": not found,
        "error": "; ".join(found),
        "first_ms": round(first * 1e3, 3),
        "call_us": round(each * 1e6, 2),
    }


def _exports(directory: Path, modules: Sequence[str]) -> Iterator[_Measured]:
    """Yield the export of each operator's graph to a file for CANN's offline compiler.

    The compiler tests converters without a device.
    """
    import torch
    import torchair
    from torch.utils._pytree import tree_flatten, tree_unflatten

    from ascend_graph.checks.calls.samples import SampleGenerator
    from ascend_graph.registration.registered import registered_ops
    from ascend_graph.workers import import_operators

    class Calling(torch.nn.Module):
        """Exported module with one operator call: its inputs are the tensors, its other arguments are constants."""

        def __init__(self, overload: Any, leaves: Sequence[Any], structure: Any) -> None:
            super().__init__()
            self.overload, self.leaves, self.structure = overload, leaves, structure

        def forward(self, *tensors: torch.Tensor) -> Any:
            rest = iter(tensors)
            leaves = [next(rest) if isinstance(leaf, torch.Tensor) else leaf for leaf in self.leaves]
            args, kwargs = tree_unflatten(leaves, self.structure)
            return self.overload(*args, **kwargs)

    for module in modules:
        import_operators(module)
    for op in registered_ops():
        if op.prototype is None or op.relation is None:
            continue
        for dynamic in (False, True):
            kind = "dynamic" if dynamic else "static"

            def export(op: Any = op, kind: str = kind) -> dict[str, Any]:
                torch._dynamo.reset()
                sample = SampleGenerator(op, 0).draw(0, "export", sizes=(4, 6, 8), absent=[], plain=True)
                if sample is None:
                    raise ValueError(
                        f"no call of {op.overload.name()} could be drawn from its relation {op.relation}; export it "
                        "with torchair.dynamo_export and inputs of yours"
                    )
                leaves, structure = tree_flatten((sample.args, dict(sample.kwargs)))
                place = directory / f"{op.overload.name().replace('::', '.')}_{kind}"
                tensors = sample.on(torch.device("npu", 0)).tensors
                calling = Calling(op.overload, leaves, structure)
                torchair.dynamo_export(*tensors, model=calling, export_path=str(place), dynamic=kind == "dynamic")
                return {"export": {"name": f"export {op.overload.name()} {kind}", "model": str(place / "export.air")}}

            yield f"export {op.overload.name()} {kind}", export


if __name__ == "__main__":
    main(sys.argv[1:])
