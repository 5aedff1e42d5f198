"""Options of TorchAir's compilers that run a graph once more, or have its inputs written outside of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torchair
from writing_operators import assert_as_eager, define, numbers

import ascend_graph
from ascend_graph.checks.kinds.graph_checks import compile_for_ge_once

T = torch.Tensor


@pytest.fixture(autouse=True)
def _apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """TorchAir makes a directory where the program runs."""
    monkeypatch.chdir(tmp_path)
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.fixture(scope="module")
def add_() -> Iterator[Any]:
    compile_for_ge_once()

    def add(cache: T, x: T) -> None:
        cache.add_(x)

    operator = ascend_graph.define_from_function("static_kernels::add_(Tensor(a!) cache, Tensor x) -> ()", add)
    registered = ascend_graph.register_kernel(eager=operator)
    yield operator
    registered.unregister()


@pytest.fixture(scope="module")
def ops() -> Iterator[SimpleNamespace]:
    library = torch.library.Library("compiler_options", "DEF")
    found = define(library, registered=True)
    yield found
    for one in found.registrations:
        one.unregister()
    library._destroy()


def _backend(name: str) -> tuple[Any, dict[str, Any]]:
    if name == "npugraph_ex":
        return name, {"options": {"static_kernel_compile": True}}
    config = torchair.CompilerConfig()
    config.mode = "reduce-overhead"
    config.experimental_config.aclgraph._aclnn_static_shape_kernel = True
    return torchair.get_npu_backend(compiler_config=config), {}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("kind", ["whole", "part", "buffer"])
@pytest.mark.parametrize("name", ["npugraph_ex", "reduce-overhead"])
def test_an_input_is_written_once(add_: Any, name: str, kind: str, dynamic: bool) -> None:
    class Adding(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("cache", torch.ones(4, 3))

        def forward(self, cache: T, x: T) -> T:
            cache = self.cache if kind == "buffer" else cache
            add_(cache, x)
            return cache * 2

    backend, options = _backend(name)
    eager, module = Adding().npu(), Adding().npu()
    compiled = torch.compile(module, backend=backend, dynamic=dynamic, **options)
    for size in (3, 3, 4) if dynamic and kind != "buffer" else (3, 3):
        memory = torch.arange(8.0 * size).reshape(8, size).npu()
        x = torch.arange(1.0, size + 1).npu()
        both = [m[::2] if kind == "part" else m[:4] for m in (memory, memory.clone())]
        with torch.no_grad():
            assert torch.equal(compiled(both[0], x), eager(both[1], x))
        assert torch.equal(both[0], both[1])
        assert torch.equal(module.cache, eager.cache)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_an_input_behind_one_that_nothing_reads_is_written_once(add_: Any) -> None:
    """A capture does not take inputs that are returned as they are: those behind them have other places."""

    def run(returned: T, cache: T, x: T) -> tuple[T, T]:
        part = returned[1:]
        add_(cache, x)
        return part, cache * 2

    program = torch.compile(run, backend="npugraph_ex", options={"static_kernel_compile": True})
    cache = numbers(3).npu()
    assert torch.equal(program(numbers(3).npu(), cache, numbers(3).npu())[1].cpu(), numbers(3) * 4)
    assert torch.equal(cache.cpu(), numbers(3) * 2)


#: Arguments in memory, with what a program returns of one that it wrote.
ARRANGED = {"gaps": lambda m: m[:, ::2], "offset": lambda m: m[1:, 1:], "turned": lambda m: m.t(), "whole": lambda m: m}
RETURNED: dict[str, Callable[[T], Any]] = {
    "half": lambda x: x.chunk(2)[1],
    "several": lambda x: (x[1:], x.t(), x),
    "row": lambda x: x[-1].view(-1, 1),
    "value": lambda x: x * 2,
}


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("arranged", ARRANGED)
@pytest.mark.parametrize("returned", RETURNED)
def test_inputs_that_are_written_outside_of_the_graph(
    ops: SimpleNamespace, returned: str, arranged: str, dynamic: bool
) -> None:
    """A view of such an input has the place of the input's memory, not of the graph's result."""

    def run(x: T, y: T) -> Any:
        ops.total(x, y)
        ops.pair(x[0], y[-1])
        return RETURNED[returned](x)

    config = torchair.CompilerConfig()
    config.experimental_config.keep_inference_input_mutations = False
    backend = torchair.get_npu_backend(compiler_config=config)
    compiled = torch.compile(run, backend=backend, dynamic=dynamic, fullgraph=True)
    calls = [(numbers(n, n), numbers(n, n) - 5) for n in ((4, 6, 8) if dynamic else (6, 6))]
    assert_as_eager(run, compiled, *calls, arranged=ARRANGED[arranged])
