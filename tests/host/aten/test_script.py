"""TorchScript on npu tensors: its lists, whose element types are others than those of eager calls, and what they
hold."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import pytest
import torch

Tensor = torch.Tensor


@torch.jit.script
def index_column(x: Tensor, i: Tensor) -> Tensor:
    return x[:, i]


@torch.jit.script
def index_row(x: Tensor, i: Tensor) -> Tensor:
    return x[i]


@torch.jit.script
def index_both(x: Tensor, i: Tensor) -> Tensor:
    return x[i, None, i]


@torch.jit.script
def assign_mask(x: Tensor, i: Tensor) -> Tensor:
    x[x < 5] = 1.0
    return x


@torch.jit.script
def assign_columns(x: Tensor, i: Tensor) -> Tensor:
    x[:, i] = x[0, i]
    return x


@torch.jit.script
def put_with_none(x: Tensor, i: Tensor) -> Tensor:
    return x.index_put_([None, i], torch.full([1], 2.0, device=x.device), accumulate=True)


@torch.jit.script
def put(x: Tensor, i: Tensor) -> Tensor:
    return torch.index_put(x, [i], x[i] * 3)


@torch.jit.script
def concatenate(x: Tensor, i: Tensor) -> Tensor:
    parts = [x, x * 2]
    parts.append(x[i])
    return torch.cat(parts)


@torch.jit.script
def split_and_stack(x: Tensor, i: Tensor) -> Tensor:
    return torch.stack(x.split(2, 1)).sum(0) + torch.stack(torch.unbind(x)[:2])[0, 0]


@torch.jit.script
def lists_in_lists(x: Tensor, i: Tensor) -> Tensor:
    groups = {"a": [x, x + 1], "b": [x[i]]}
    return torch.cat([torch.cat(groups["a"]), torch.cat(groups["b"])])


@torch.jit.script
def foreach(x: Tensor, i: Tensor) -> Tensor:
    return torch.stack(torch._foreach_add([x, x * 2], 1))


SCRIPTS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    f.name: f
    for f in (
        index_column,
        index_row,
        index_both,
        assign_mask,
        assign_columns,
        put_with_none,
        put,
        concatenate,
        split_and_stack,
        lists_in_lists,
        foreach,
    )
}


def arguments(device: str) -> tuple[Tensor, Tensor]:
    return torch.arange(16.0).reshape(4, 4).to(device), torch.tensor([1, 0, 3]).to(device)


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_agree_with_the_cpu(name: str) -> None:
    script = SCRIPTS[name]
    for _ in range(3):  # the executor specializes after the first runs
        result = script(*arguments("npu"))
        assert result.device.type == "npu"
        torch.testing.assert_close(result.cpu(), script(*arguments("cpu")))


@pytest.mark.parametrize("name", SCRIPTS)
def test_gradients_of_scripts_agree_with_the_cpu(name: str) -> None:
    def gradient(device: str) -> Tensor:
        x, i = arguments(device)
        x.requires_grad_()
        SCRIPTS[name](x.clone(), i).square().sum().backward()
        assert x.grad is not None
        return x.grad.cpu()

    torch.testing.assert_close(gradient("npu"), gradient("cpu"))


def test_a_traced_index_is_captured_and_replayed() -> None:
    x, i = arguments("npu")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        traced = torch.jit.trace(lambda x, i: x[i], arguments("cpu"))
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph):
        y = traced(x, i)
    i.copy_(torch.tensor([2, 2, 1]))
    graph.replay()
    assert torch.equal(y.cpu(), x.cpu()[[2, 2, 1]])


@pytest.mark.parametrize("operator", ["index", "_unsafe_index"])
def test_lists_of_tensors_are_indices(operator: str) -> None:
    """A `Tensor[]` where the operator declares `Tensor?[]`, and one with absent and undefined elements."""
    x, i = arguments("npu")
    call = getattr(torch.ops.aten, operator).Tensor
    assert torch.equal(call(x, [i]).cpu(), x.cpu()[i.cpu()])
    assert torch.equal(call(x, [None, i]).cpu(), x.cpu()[:, i.cpu()])


def test_an_operator_that_calls_itself_on_the_device_ends_with_its_name() -> None:
    x = torch.ones(2, device="npu")
    library = torch.library.Library("aten", "IMPL")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            library.impl("special_log_ndtr", lambda _: torch.special.log_ndtr(x).cpu(), "CPU")
        with pytest.raises(RuntimeError, match=r"aten::special_log_ndtr: its CPU kernel called .* 32 times"):
            torch.special.log_ndtr(x)
    finally:
        library._destroy()
    torch.testing.assert_close(torch.special.log_ndtr(x).cpu(), torch.special.log_ndtr(x.cpu()))


@pytest.mark.parametrize(
    ("make", "shapes"),
    [
        (lambda: torch.nn.Conv1d(2, 3, 3), [(2, 2, 6)]),
        (lambda: torch.nn.Conv2d(2, 3, 3, bias=False), [(2, 2, 6, 6)]),
        (lambda: torch.nn.ConvTranspose2d(2, 3, 3), [(2, 2, 6, 6)]),
        (lambda: torch.nn.Conv3d(2, 3, 2), [(1, 2, 4, 4, 4)]),
        (lambda: torch.nn.LSTMCell(2, 3), [(2, 2)]),
        (lambda: torch.nn.GRUCell(2, 3), [(2, 2)]),
        (lambda: torch.nn.RNNCell(2, 3), [(2, 2)]),
    ],
    ids=["conv1d", "conv2d", "conv_transpose2d", "conv3d", "lstm_cell", "gru_cell", "rnn_cell"],
)
def test_a_trace_has_the_operators_that_the_tracer_leaves_out(
    make: Callable[[], torch.nn.Module], shapes: list[tuple[int, ...]]
) -> None:
    """The tracer records what these call instead; values of new inputs show that it has."""
    module = make().npu()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        traced = torch.jit.trace(module, tuple(torch.randn(shape).npu() for shape in shapes))
    inputs = [torch.randn(shape).npu() for shape in shapes]
    torch.testing.assert_close(traced(*inputs), module(*inputs))
