"""The process that measures: each operator in each mode against the CPU, with its times; lines of JSON on a file descriptor."""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

#: Calls that a time per call is the mean of.
CALLS = 50


def main(arguments: list[str]) -> None:
    """Take ``{"done": […], "exports": directory, "modules": […]}`` and the number of a file descriptor.

    The lines are ``{"about": {…}}`` on the device, then for each row ``{"start": name}`` and ``{"row": {…}}``, and for each graph
    that is exported for CANN's compiler ``{"start": name}`` and ``{"export": {…}}``.
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
    """What the device says of itself."""
    import torch

    npu: Any = torch.npu  # type: ignore[attr-defined]
    return {
        "name": npu.get_device_name(),
        "count": npu.device_count(),
        "memory": npu.get_device_properties(0).total_memory,
    }


_Measured = tuple[str, Callable[[], dict[str, Any]]]


def _rows() -> Iterator[_Measured]:
    """The demo's rows: each operator, and a module of all of them that trains, in every mode."""
    import torch
    from torch import nn

    from ascend_graph.checks.selftest import operators
    from ascend_graph.registration.register import registered_ops

    operators.register()

    class Net(nn.Module):
        """A gated unit: matmul, RmsNorm, FastGelu, and on the NPU through the operators of the self-test."""

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
    """The output and the gradients of input and parameters."""
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

    from ascend_graph.checks.results import Result, differences

    npu: Any = torch.npu  # type: ignore[attr-defined]
    device = [tuple(t.npu() for t in tensors) for tensors in inputs]
    start = time.perf_counter()
    run(*device[0])
    npu.synchronize()
    first = time.perf_counter() - start
    found = [
        text
        for placed, tensors in zip(device, inputs, strict=True)
        for text in differences(Result.of(run(*placed), ()), Result.of(reference(*tensors), ()), rtol=1e-3, atol=1e-4)
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
    """The graph of each operator as a file for CANN's offline compiler, which judges converters without a device."""
    import torch
    import torchair
    from torch.utils._pytree import tree_flatten, tree_unflatten

    from ascend_graph.checks.running import import_operators
    from ascend_graph.checks.samples import Drawer
    from ascend_graph.registration.register import registered_ops

    class Calling(torch.nn.Module):
        """A call of an operator as a module, which is what is exported: it takes the tensors, the rest is its own."""

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
                sample = Drawer(op, 0).draw(0, "export", sizes=(4, 6, 8), absent=[], plain=True)
                if sample is None:
                    raise ValueError("no call could be drawn for it")
                leaves, structure = tree_flatten((sample.args, dict(sample.kwargs)))
                place = directory / f"{op.overload.name().replace('::', '.')}_{kind}"
                tensors = sample.on(torch.device("npu", 0)).tensors
                calling = Calling(op.overload, leaves, structure)
                torchair.dynamo_export(*tensors, model=calling, export_path=str(place), dynamic=kind == "dynamic")
                return {"export": {"name": f"export {op.overload.name()} {kind}", "model": str(place / "export.air")}}

            yield f"export {op.overload.name()} {kind}", export


if __name__ == "__main__":
    main(sys.argv[1:])
