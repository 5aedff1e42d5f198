"""Cost of an eager call of an operator whose kernel does nothing, from Python, with two tensors as arguments.

- bare: a C++ operator that returns its argument: the cost of PyTorch's dispatcher itself;
- bare_allocating: a C++ operator that only returns ``at::empty`` of its argument's shape: the minimum cost of an operator
  with an output on this backend, which is torch_npu's allocation and the new Python object;
- stock: the extension of torch_npu's documents, EXEC_NPU_CMD_EXT (examples/add_custom/extension.cpp);
- dynamic: ``define_operator``: no C++ per operator;
- generated: the C++ that ``ascend-graph new`` writes.

    python -m ascend_graph.host benchmarks/eager_calls.py
"""

from __future__ import annotations

import os
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ascend_graph.codegen.eager_library.project import generate_project
from rich.console import Console
from rich.table import Table

from ascend_graph.compilation import torch_library
from ascend_graph.host import build_operator_package
from ascend_graph.prototypes import parse_file

sys.path.insert(0, str(Path(__file__).parent))
from _common import run

ROOT = Path(__file__).parents[1]
RELATION = "x[*s], y[*s] -> z[*s]"
KERNEL = '#include "host_kernels.h"\nvoid host_kernels::AddCustom(const AddCustomArgs&) {}\n'
#: Operators that do nothing, added to the documented extension.
BARE = """
TORCH_LIBRARY(bench_bare, m) {
    m.def("nothing(Tensor x, Tensor y) -> Tensor");
    m.def("allocating(Tensor x, Tensor y) -> Tensor");
}
TORCH_LIBRARY_IMPL(bench_bare, PrivateUse1, m) {
    m.impl("nothing", [](const at::Tensor& x, const at::Tensor&) { return x; });
    m.impl("allocating", [](const at::Tensor& x, const at::Tensor&) { return at::empty(x.sizes(), x.options()); });
}
"""
CALLS = 2000
ROUNDS = 41


def _stock(work: Path) -> None:
    """Build and load the documented extension with the operators that do nothing."""
    import torch

    source = work / "extension.cpp"
    major, minor = torch.__version__.split(".")[:2]
    text = (ROOT / "examples/add_custom/extension.cpp").read_text()
    source.write_text(f"#define CURRENT_VERSION V{major}R{minor}\n{text}{BARE}")
    torch.ops.load_library(torch_library("stock_extension", [source]).build())


def _generated(work: Path, header: Path) -> tuple[float, float]:
    """Generate, build and load the library; return the seconds to generate and to compile it."""
    import torch

    start = time.perf_counter()
    project = generate_project(work / "bench_ops", header, shapes={"AddCustom": RELATION}).directory
    generated = time.perf_counter()
    sources = project / "csrc/generated"
    library = torch_library(
        "_C", sorted(sources.glob("*.cpp")), headers=sorted(sources.rglob("*.h")), include_directories=[sources]
    )
    torch.ops.load_library(library.build())
    return generated - start, time.perf_counter() - generated


def _microseconds(ways: dict[str, Callable[[], Any]]) -> dict[str, list[float]]:
    """Return the times of a call in each round by way; the ways alternate, so that a busy machine slows all equally."""
    samples: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, call in ways.items():
            for _ in range(200):
                call()
            start = time.perf_counter()
            for _ in range(CALLS):
                call()
            samples[name].append((time.perf_counter() - start) / CALLS * 1e6)
    return samples


def _ratio(samples: dict[str, list[float]], way: str, other: str) -> float:
    """Return the median of the rounds' ratios."""
    return statistics.median(a / b for a, b in zip(samples[way], samples[other], strict=True))


@contextmanager
def kernel_package(work: Path) -> Iterator[Path]:
    """Select the operator package of an operator whose kernel does nothing, and yield its prototype's header."""
    header = ROOT / "examples/add_custom/op_proto.h"
    (work / "kernel.cpp").write_text(KERNEL)
    package = build_operator_package(work / "opp", header, {"AddCustom": work / "kernel.cpp"})
    before = os.environ.get("ASCEND_CUSTOM_OPP_PATH")
    # torch_npu reads the variable when it is imported, for the stock extension.
    os.environ["ASCEND_CUSTOM_OPP_PATH"] = str(package)
    try:
        yield header
    finally:
        os.environ.pop("ASCEND_CUSTOM_OPP_PATH")
        if before is not None:
            os.environ["ASCEND_CUSTOM_OPP_PATH"] = before


def ways_of(work: Path, header: Path) -> tuple[dict[str, Callable[..., Any]], float, float]:
    """Return the overloads by way, and the seconds to generate and to compile the library."""
    import torch
    import torch_npu  # noqa: F401

    from ascend_graph.eager import define_operator

    _stock(work)
    generation, compilation = _generated(work, header)
    define_operator(parse_file(header).prototypes[0], RELATION)
    ways = {
        "bare": torch.ops.bench_bare.nothing.default,
        "bare_allocating": torch.ops.bench_bare.allocating.default,
        "stock": torch.ops.npu.npu_add_custom.default,
        "dynamic": torch.ops.ascend.add_custom.default,
        "generated": torch.ops.bench_ops.add_custom.default,
    }
    return ways, generation, compilation


def main() -> dict[str, Any]:
    """Build the ways, measure them, print a table."""
    with tempfile.TemporaryDirectory(prefix="eager_calls.", ignore_cleanup_errors=True) as directory:
        work = Path(directory)
        with kernel_package(work) as header:
            import torch

            ways, generation, compilation = ways_of(work, header)
            x = torch.zeros(16, 16).npu()
            samples = _microseconds({name: (lambda op=op: op(x, x)) for name, op in ways.items()})
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            for _ in range(200_000):
                ways["dynamic"](x, x)
            growth = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    table = Table(title="an eager call of an operator that does nothing", title_justify="left")
    for heading in ("way", "µs", "of stock", "times bare"):
        table.add_column(heading, justify="left" if heading == "way" else "right")
    for name, values in samples.items():
        ratios = (f"{_ratio(samples, name, 'stock'):.2f}", f"{_ratio(samples, name, 'bare'):.2f}")
        table.add_row(name, f"{statistics.median(values):.2f}", *ratios)
    console = Console()
    console.print(table)
    console.print(f"generating: {generation * 1e3:.0f} ms, compiling (or from the cache): {compilation:.1f} s")
    console.print(f"resident memory over 200,000 calls: +{growth} kB")
    return {
        **{f"{name}_us": round(statistics.median(values), 3) for name, values in samples.items()},
        **{f"{name}_of_stock": round(_ratio(samples, name, "stock"), 3) for name in ("dynamic", "generated")},
        **{f"{name}_of_bare": round(_ratio(samples, name, "bare"), 2) for name in ("dynamic", "generated")},
        "growth_kb": growth,
    }


if __name__ == "__main__":
    run(main)
