"""What torch_npu and torchair build on captures: the backend "npugraphs", printing and saving in a graph, scopes."""

from __future__ import annotations

import importlib.util
import itertools
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch_npu
import torchair

pytestmark = pytest.mark.filterwarnings("ignore")  # compiling warns of much that is not ours


_CONFIGURATION = Path(torch_npu.__file__).parent / "_inductor/config.py"
npugraphs = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None and "from triton" in _CONFIGURATION.read_text(),
    reason=f"torch_npu {torch_npu.__version__} imports triton for its backend npugraphs, and it is not installed",
)

FUNCTIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "elementwise": lambda x: (x * 2).relu() + 1,
    "attention": lambda x: torch.softmax(x @ x.mT, -1) @ x,
    "views": lambda x: torch.cat([x[1:].t(), x[:-1].t()], 1).cumsum(0),
    "in place": lambda x: x.clone().mul_(3).add_(x[0]),
}


@npugraphs
@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_npugraphs(name: str) -> None:
    """Intermediates go back to the graph's memory while it is captured: torch_npu checks what is live after it."""
    torch._dynamo.reset()
    function = FUNCTIONS[name]
    compiled = torch.compile(function, backend="npugraphs")
    for seed in range(4):
        x = torch.rand(4, 4, generator=torch.Generator().manual_seed(seed))
        torch.testing.assert_close(compiled(x.npu()).cpu(), function(x))


@npugraphs
def test_npugraphs_draw_anew() -> None:
    torch._dynamo.reset()
    compiled = torch.compile(lambda x: torch.nn.functional.dropout(x * 2, 0.5), backend="npugraphs")
    x = torch.ones(64).npu()
    drawn = [compiled(x).cpu() for _ in range(4)]
    assert all(set(values.tolist()) == {0.0, 4.0} for values in drawn)
    assert not any(torch.equal(a, b) for a, b in itertools.combinations(drawn, 2))


@npugraphs
@pytest.mark.xfail(strict=True, raises=RuntimeError, reason="meta-functions-of-inductor of docs/wheel-faults.md")
def test_dropout_in_graphs_of_torchair_after_npugraphs() -> None:
    torchair.get_npu_backend()  # puts TorchAir's in the place of PyTorch's, once in a process
    torch._dynamo.reset()
    x = torch.ones(64).npu().requires_grad_()
    torch.compile(lambda x: x * 2, backend="npugraphs")(x)
    torch._dynamo.reset()
    compiled = torch.compile(lambda x: torch.nn.functional.dropout(x * 2, 0.5), backend=torchair.get_npu_backend())
    compiled(x).sum().backward()


@npugraphs
def test_npugraphs_train() -> None:
    torch._dynamo.reset()
    torch.manual_seed(0)
    on_cpu = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.GELU(), torch.nn.LayerNorm(8), torch.nn.Linear(8, 2))
    on_device = torch.nn.Sequential(
        torch.nn.Linear(4, 8), torch.nn.GELU(), torch.nn.LayerNorm(8), torch.nn.Linear(8, 2)
    )
    on_device.load_state_dict(on_cpu.state_dict())
    on_device.npu()
    compiled = torch.compile(on_device, backend="npugraphs")
    optimizers = [torch.optim.SGD(model.parameters(), 0.1) for model in (on_cpu, on_device)]
    for seed in range(4):
        x = torch.rand(3, 4, generator=torch.Generator().manual_seed(seed))
        expected, result = on_cpu(x).square().sum(), compiled(x.npu()).square().sum()
        torch.testing.assert_close(result.cpu(), expected)
        expected.backward()
        result.backward()
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()


def test_memory_that_is_gone_is_refused() -> None:
    x = torch.ones(1 << 22, device="npu")  # more than what torch_npu's allocator puts side by side
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph):
        y = x * 2
    graph.replay()
    assert y[0].item() == 2
    del x
    torch.npu.empty_cache()
    with pytest.raises(RuntimeError, match=r"shape \[4194304\] that the captured graph uses was released"):
        graph.replay()


def test_memory_of_others_may_go() -> None:
    x, number, other = torch.ones(4, device="npu"), torch.tensor(3.0), torch.ones(1 << 20, device="npu")
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph):
        y = x - number
        y -= 1.0
    del number, other
    torch.npu.empty_cache()
    graph.replay()
    assert y.tolist() == [-3, -3, -3, -3]


@pytest.mark.skipif(
    not hasattr(torch.ops.npu, "print_npugraph_tensor"),
    reason=f"torch_npu {torch_npu.__version__} has no print_npugraph_tensor",
)
def test_tensors_are_printed_and_saved_by_each_replay(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x = torch.arange(3.0).npu()
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph):
        y = x * 2
        torch.ops.npu.print_npugraph_tensor(y, tensor_name="y")
        torch.ops.npu.save_npugraph_tensor(y, save_path=str(tmp_path / "y.pt"), overwrite=True)
    torch.npu.synchronize()
    assert not list(tmp_path.iterdir())
    for value in ([2.0, 4.0, 6.0], [4.0, 6.0, 8.0]):
        x.add_(1)
        graph.replay()
        torch.npu.synchronize()
        (file,) = tmp_path.iterdir()
        assert torch.load(file).tolist() == value
        assert f"y={torch.tensor(value)}" in capsys.readouterr().out


@pytest.mark.parametrize("backend", ["ge", "npugraph_ex"])
def test_scopes_change_nothing_that_is_computed(backend: str) -> None:
    def function(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        with torchair.scope.data_dump():
            z = x * 2 + y
        return z.relu()

    torch._dynamo.reset()
    compiled = torch.compile(
        function, backend=torchair.get_npu_backend() if backend == "ge" else backend, dynamic=False
    )
    x, y = torch.randn(4), torch.randn(4)
    for _ in range(2):
        torch.testing.assert_close(compiled(x.npu(), y.npu()).cpu(), function(x, y))
