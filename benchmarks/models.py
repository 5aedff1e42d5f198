"""Language-model decoder in every mode against plain PyTorch on the CPU, and the cost of GE graphs with many nodes.

The decoder is that of ``examples/serving``: norms, rotary embeddings, a paged cache, attention, gated units and linear
layers of 8-bit integers. Its steps, each one more token of four sequences, are timed alternately with those of the same
model with plain PyTorch operators (``data/plain_decoder.py``). The ratios are of medians, and results are compared. ``small``
has two layers of width 256, where each operator's call costs more than its work, ``wide`` eight of width 1024.

    make bench NAME=models
    make bench NAME=models ARGS="--ways eager ge --sizes wide --steps 50"
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
import torchair
from _common import run
from data import plain_decoder
from rich.console import Console
from rich.table import Table

from ascend_graph.host.runtime.engine import CompiledGraph, compile_model

EXAMPLE = Path(__file__).parent.parent / "examples" / "serving" / "decoder.py"
SIZES: dict[str, dict[str, int]] = {
    "small": {},
    "wide": {"vocabulary": 1024, "layers": 8, "hidden": 1024, "heads": 8, "kv_heads": 2, "intermediate": 2816},
}
WAYS = ("eager", "ge", "ge_dynamic", "npugraph_ex")
BATCH, PROMPT = 4, 64
NODES = (100, 1_000, 10_000)


def serving(name: str) -> ModuleType:
    """Load the example as a separate module."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def compiled(model: torch.nn.Module, way: str) -> Callable[..., torch.Tensor]:
    """Return the model compiled for a mode; ``ge_dynamic`` is a GE graph of any batch."""
    torch._dynamo.reset()
    if way == "eager":
        return model
    backend = "npugraph_ex" if way == "npugraph_ex" else torchair.get_npu_backend()
    return torch.compile(model, backend=backend, dynamic=way == "ge_dynamic", fullgraph=True)


def steps(size: str, ways: list[str], count: int, clock: Callable[[], float]) -> dict[str, float]:
    """Return the microseconds of a decoding step by mode; ``plain`` is the CPU's."""
    example, plain = serving("serving_decoder"), serving("plain_serving_decoder")
    plain.torch_npu = plain_decoder  # type: ignore[attr-defined]
    config = example.Config(**SIZES[size])
    torch.manual_seed(0)
    reference = plain.Decoder(config).eval()
    prompts = torch.randint(0, config.vocabulary, (BATCH, PROMPT))
    first = example.prefill(config, prompts)
    step = example.decode(config, prompts[:, -1], PROMPT + 1)

    def given(which: Any, device: str) -> tuple[Any, ...]:
        tensors = (which.tokens, which.positions, which.slots, which.block_table)
        mask = None if which.mask is None else which.mask.to(device)
        return (*(tensor.to(device) for tensor in tensors), which.lengths, mask)

    expected = reference(*given(first, "cpu")), reference(*given(step, "cpu"))
    calls: dict[str, Callable[[], Any]] = {}
    for way in ways:
        model = example.Decoder(config).eval()
        model.load_state_dict(reference.state_dict())
        for layer in model.layers:
            layer.keys.zero_()
            layer.values.zero_()
        model = model.npu()
        function, arguments = compiled(model, way), given(step, "npu")
        results = model(*given(first, "npu")), function(*arguments)
        for result, wanted in zip(results, expected, strict=True):
            torch.testing.assert_close(result.cpu().float(), wanted.float(), rtol=0.05, atol=0.2)

        def call(function: Callable[..., Any] = function, arguments: tuple[Any, ...] = arguments) -> None:
            function(*arguments)
            torch.npu.synchronize()

        calls[way] = call
    arguments = given(step, "cpu")
    calls["plain"] = lambda: reference(*arguments)
    return in_turn(calls, count, clock)


def in_turn(
    calls: dict[str, Callable[[], Any]], count: int, clock: Callable[[], float] = time.perf_counter
) -> dict[str, float]:
    """Return the medians in microseconds of alternating calls."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for round_ in range(count + 3):
        for name, call in calls.items():
            start = clock()
            call()
            if round_ >= 3:
                times[name].append((clock() - start) * 1e6)
    return {name: statistics.median(values) for name, values in times.items()}


#: Operators of a layer of the long graphs, with its input ``x``, [4, 16]: GE operator, inputs, attrs.
LAYER: list[tuple[str, dict[str, str], dict[str, Any]]] = [
    ("MatMul", {"x1": "x", "x2": "weight"}, {"transpose_x1": False, "transpose_x2": False}),
    ("Relu", {"x": "MatMul"}, {}),
    ("Muls", {"x": "Relu"}, {"value": 0.5}),
    ("Add", {"x1": "Muls", "x2": "x"}, {}),
    ("SoftmaxV2", {"x": "Add"}, {}),
    ("Mul", {"x1": "SoftmaxV2", "x2": "Add"}, {}),
    ("Reshape", {"x": "Mul", "shape": "shape"}, {}),
    ("Sub", {"x1": "Reshape", "x2": "x"}, {}),
    ("Sigmoid", {"x": "Sub"}, {}),
    ("Add", {"x1": "Sigmoid", "x2": "x"}, {}),
]


def long_graph(nodes: int) -> bytes:
    """Return a serialized graph with that many nodes, as TorchAir passes it to GE."""
    from torchair._ge_concrete_graph.ge_ir_pb2 import DataType, ModelDef

    model = ModelDef()
    graph = model.graph.add()
    for index, (name, shape) in enumerate((("x", [4, 16]), ("weight", [16, 16]))):
        op = graph.op.add(name=name, type="Data")
        op.attr["index"].i = index
        op.output_desc.add(name="y", dtype=DataType.DT_FLOAT).shape.dim.extend(shape)
    op = graph.op.add(name="shape", type="Const")
    value = op.attr["value"].t
    value.desc.dtype = DataType.DT_INT64
    value.desc.shape.dim.extend([2])
    value.data = torch.tensor([4, 16]).numpy().tobytes()
    op.output_desc.add(name="y", dtype=DataType.DT_INT64)
    edges = {"x": "x:0", "weight": "weight:0", "shape": "shape:0"}
    for number in range(nodes):
        kind, inputs, attrs = LAYER[number % len(LAYER)]
        op = graph.op.add(name=f"{kind}_{number}", type=kind)
        for key, value in attrs.items():
            setattr(op.attr[key], "b" if isinstance(value, bool) else "f", value)
        for key, source in inputs.items():
            op.input.append(edges[source])
            op.input_desc.add(name=key)
        op.output_desc.add(name="y", dtype=DataType.DT_FLOAT)
        edges[kind] = f"{op.name}:0"
        if number % len(LAYER) == len(LAYER) - 1:
            edges["x"] = edges[kind]
    op = graph.op.add(name="NetOutput", type="NetOutput")
    op.input.append(f"{graph.op[-2].name}:0")
    op.input_desc.add(name="input0", dtype=DataType.DT_FLOAT)
    return model.SerializeToString()


def plain_layers(nodes: int) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    """Return the same computation in plain PyTorch."""

    def layers(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        for _ in range(nodes // len(LAYER)):
            y = torch.relu(torch.matmul(x, weight)) * 0.5 + x
            z = torch.softmax(y, -1) * y
            x = torch.sigmoid(z.reshape(4, 16) - x) + x
        return x

    return layers


def engine(clock: Callable[[], float]) -> tuple[dict[int, float], float, float]:
    """Return µs of compiling per node by number of nodes, and of running a node in GE and in plain PyTorch."""
    text = long_graph(100)
    compile_model(text, {})
    compiling, plan = {}, CompiledGraph(True, (), tuple, tuple)
    for nodes in NODES:
        text = long_graph(nodes)
        found = []
        for _ in range(3):
            start = clock()
            plan = compile_model(text, {})
            found.append((clock() - start) / nodes * 1e6)
        compiling[nodes] = min(found)
    nodes = NODES[-1]
    x, weight = torch.rand(4, 16), torch.rand(16, 16) / 16
    layers = plain_layers(nodes)
    torch.testing.assert_close(plan.run(x, weight)[0], layers(x, weight))
    times = in_turn({"node": lambda: plan.run(x, weight), "plain": lambda: layers(x, weight)}, 7, clock)
    return compiling, times["node"] / nodes, times["plain"] / nodes


def main() -> dict[str, Any]:
    """Print the tables and return the summary."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ways", nargs="*", default=WAYS, choices=WAYS)
    parser.add_argument("--sizes", nargs="*", default=list(SIZES), choices=list(SIZES))
    parser.add_argument("--steps", type=int, default=60, help="timed steps of each way")
    parser.add_argument(
        "--threads", type=int, default=1, help="PyTorch's; two wait for each other where other work runs"
    )
    parser.add_argument(
        "--processor", action="store_true", help="the process's own time, which tells more on a busy machine"
    )
    options = parser.parse_args()
    clock = time.process_time if options.processor else time.perf_counter
    torch.set_num_threads(options.threads)
    summary: dict[str, Any] = {}
    table = Table("decoder", "way", "µs a step", "of plain PyTorch")
    with torch.no_grad():
        for size in options.sizes:
            times = steps(size, list(options.ways), options.steps, clock)
            for way, microseconds in times.items():
                ratio = microseconds / times["plain"]
                table.add_row(size, way, f"{microseconds:.0f}", f"{ratio:.2f}")
                if way != "plain":
                    summary[f"{size}_{way}"] = round(ratio, 2)
        compiling, node, plain = engine(clock)
    for nodes, microseconds in compiling.items():
        table.add_row("a graph", f"compiling, {nodes} nodes", f"{microseconds:.1f} a node", "")
        summary[f"compile_{nodes}"] = round(microseconds, 1)
    table.add_row("a graph", "running, 10000 nodes", f"{node:.2f} a node", f"{node / plain:.2f}")
    Console(width=110).print(table)
    return summary | {"node": round(node, 2), "node_of_plain": round(node / plain, 2)}


if __name__ == "__main__":
    run(main)
