"""Chrome traces of PyTorch's and torch_npu's profilers, with the cost of each call of a registered operator."""

from __future__ import annotations

import ast
import json
import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from ascend_graph.codegen.rendering import write_if_different
from ascend_graph.errors import AscendGraphError
from ascend_graph.registration import RegisteredOp, registered_ops
from ascend_graph.registration.cost import Cost, CostModel

#: PyTorch's dtypes by their names in profiler traces.
DTYPES = {
    "float": "float32",
    "double": "float64",
    "c10::Half": "float16",
    "c10::BFloat16": "bfloat16",
    "c10::complex<float>": "complex64",
    "c10::complex<double>": "complex128",
    "unsigned char": "uint8",
    "signed char": "int8",
    "short": "int16",
    "short int": "int16",
    "int": "int32",
    "long": "int64",
    "long int": "int64",
    "bool": "bool",
}


class TraceError(AscendGraphError):
    """File that is not a chrome trace of a profiler, or a call in it whose cost cannot be computed."""


@dataclass(frozen=True, slots=True)
class TraceCosts:
    """Counts of the calls of registered operators in a trace, with and without cost."""

    #: Number of calls that have their cost now.
    added: int
    #: Reasons why other calls do not, each with the number of calls.
    left: Mapping[str, int] = field(default_factory=dict)


def _annotate(events: list[Any], models: Mapping[str, Any]) -> tuple[int, dict[str, int]]:
    """Write costs to the events of registered operators; return their number, and why other events get none."""
    added, left = 0, defaultdict[str, int](int)
    for event in events:
        name = event.get("name")
        if event.get("ph") != "X" or not isinstance(name, str) or name not in models:
            continue
        arguments = event.get("args")
        try:
            cost = _cost(models[name], arguments if isinstance(arguments, dict) else {})
        except AscendGraphError as error:
            left[f"{name}: {error}"] += 1
            continue
        assert isinstance(arguments, dict)
        arguments |= {"Bytes": cost.bytes} if cost.flops is None else {"FLOPs": cost.flops, "Bytes": cost.bytes}
        added += 1
    return added, left


def add_costs(trace: str | os.PathLike[str], output: str | os.PathLike[str] | None = None) -> TraceCosts:
    """Write floating-point operations and bytes to the calls of registered operators in a chrome trace.

    An event of ``mine::mm`` gets ``"FLOPs"``, if the operator was registered with ``flops=``, and ``"Bytes"`` among its
    ``args``, which Perfetto and ``chrome://tracing`` show. Both are computed from the recorded shapes, so the profiler must
    run with ``record_shapes=True``. Graph nodes have no shapes in traces and get no cost.

    Args:
        trace: A file of ``torch.profiler`` (``export_chrome_trace``) or of ``torch_npu.profiler`` (``trace_view.json``).
        output: The file to write; by default the input file is replaced.

    Returns:
        The number of calls with a cost, and the reasons why others have none. A cost that depends on an attr is unknown in
        torch_npu's traces, because they hold no numbers.

    Raises:
        TraceError: The file is not such a trace; nothing is written.
        GenerationError: ``output`` cannot be written.

    >>> import json, pathlib, tempfile, torch
    >>> import ascend_graph
    >>> library = torch.library.Library("traces_example", "DEF")
    >>> _ = library.define("mm(Tensor a, Tensor b) -> Tensor")
    >>> library.impl("mm", torch.matmul, "CPU")
    >>> f = "TensorType({DT_FLOAT})"
    >>> header = f"REG_OP(TracesExample).INPUT(a, {f}).INPUT(b, {f}).OUTPUT(y, {f}).OP_END_FACTORY_REG(TracesExample)"
    >>> _ = ascend_graph.load_prototypes(header)
    >>> op = ascend_graph.register_op(
    ...     "TracesExample", eager=torch.ops.traces_example.mm, shape="a[m, k], b[k, n] -> y[m, n]", flops="2 * m * n * k"
    ... )
    >>> on_cpu = [torch.profiler.ProfilerActivity.CPU]
    >>> with torch.profiler.profile(activities=on_cpu, record_shapes=True, acc_events=True) as profile:
    ...     _ = op(torch.ones(2, 3), torch.ones(3, 4))
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "trace.json"
    >>> profile.export_chrome_trace(str(path))
    >>> ascend_graph.add_costs(path)
    TraceCosts(added=1, left={})
    >>> events = json.loads(path.read_text())["traceEvents"]
    >>> [(e["args"]["FLOPs"], e["args"]["Bytes"]) for e in events if e["name"] == "traces_example::mm"]
    [(48, 104)]
    >>> op.unregister()
    """
    source = Path(trace)
    content, events = _read(source)
    models = _models(registered_ops())
    added, left = _annotate(events, models)
    write_if_different(source if output is None else Path(output), json.dumps(content))
    return TraceCosts(added, dict(left))


def _read(path: Path) -> tuple[Any, list[dict[str, Any]]]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise TraceError(f"{path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise TraceError(f"{path} is not JSON: {error}; expected a chrome trace of torch.profiler") from None
    events = content.get("traceEvents") if isinstance(content, dict) else content
    if not isinstance(events, list):
        raise TraceError(
            f"{path} is not a chrome trace: it has no list of events; pass what export_chrome_trace wrote, or torch_npu's trace_view.json"
        )
    return content, [event for event in events if isinstance(event, dict)]


def _models(operators: Sequence[RegisteredOp]) -> dict[str, list[CostModel]]:
    """Return the cost models of the overloads by the operator name that profilers use."""
    models = defaultdict[str, list[CostModel]](list)
    for operator in operators:
        if operator.cost_model is not None:
            models[operator.overload._schema.name].append(operator.cost_model)
    return dict(models)


def _cost(models: list[CostModel], arguments: Mapping[str, Any]) -> Cost:
    dims, types = _listed(arguments.get("Input Dims")), _listed(arguments.get("Input type"))
    values = arguments.get("Concrete Inputs")
    if dims is None or types is None or len(dims) != len(types):
        raise TraceError("the trace has no shapes; profile with record_shapes=True")
    fitting = [model for model in models if len(model.schema.arguments) == len(dims)]
    if len(fitting) != 1:
        which = "none" if not fitting else "several"
        raise TraceError(
            f"{which} of its registered overloads takes the {len(dims)} arguments of the trace; expected one"
        )
    (model,) = fitting
    shapes, dtypes, attrs = {}, {}, {}
    for i, argument in enumerate(model.schema.arguments):
        if argument.name in model.tensors:
            shapes[argument.name], dtypes[argument.name] = _tensor(argument.name, dims[i], types[i])
        elif argument.name in model.needed:
            value = values[i] if isinstance(values, list) and len(values) == len(dims) else ""
            attrs[argument.name] = _number(argument, types[i], value)
        else:
            attrs[argument.name] = argument.default_value if argument.has_default_value() else None
    return model.cost(shapes, dtypes, attrs)


def _listed(value: Any) -> list[Any] | None:
    """Return the entry of each argument: PyTorch writes a list, torch_npu a text ``"8,16;\\r\\n16,4;\\r\\n"``."""
    if not isinstance(value, str):
        return value if isinstance(value, list) else None
    return [entry.strip() for entry in value.split(";")]


def _tensor(argument: str, dims: Any, dtype: Any) -> tuple[Any, Any]:
    if dtype in ("", "None", None):
        return None, None
    if dtype == "TensorList":
        raise TraceError(f"traces do not have the dtypes of lists of tensors; expected single tensors, not {argument}")
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise TraceError(
            f"the trace calls the dtype of {argument} {dtype!r}, and that is not one of {', '.join(DTYPES)}"
        )
    sizes = dims.split(",") if isinstance(dims, str) and dims else dims or []
    try:
        shape = tuple(int(size) for size in sizes)
    except (TypeError, ValueError, OverflowError):
        shape = (-1,)
    if min(shape, default=0) < 0:
        raise TraceError(f"the trace has {dims!r} as the shape of {argument}; expected sizes of 0 or more")
    return shape, DTYPES[dtype]


def _number(argument: torch.Argument, kind: Any, value: Any) -> Any:
    """Return an argument's value in the trace; strings are not recorded and look as if they were absent."""
    try:
        if kind in ("Scalar", "ScalarList") and isinstance(value, str) and value:
            return ast.literal_eval(value)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        pass
    if kind in ("", "None") and isinstance(argument.type, torch.OptionalType) and "str" not in str(argument.type):
        return None
    raise TraceError(
        f"its cost depends on {argument.name}, whose value the trace does not have; leave it out of flops="
    )
