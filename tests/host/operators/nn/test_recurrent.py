"""Recurrent networks: https://gitcode.com/cann/ops-nn/tree/master/rnn (dynamic_rnn, single_layer_lstm_grad, gru,
gru_grad)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from operator_modes import check

T = torch.Tensor
npu = torch.ops.npu

TIME, BATCH, FEATURES, HIDDEN = 5, 3, 4, 6
#: By name: layers, whether there are two directions, biases, and whether batches come first.
NETWORKS = {
    "plain": (1, False, True, False),
    "without_biases": (1, False, False, False),
    "two_directions": (1, True, True, False),
    "layers": (3, False, True, False),
    "all": (2, True, True, True),
}


def network(kind: type[torch.nn.RNNBase], name: str) -> tuple[torch.nn.RNNBase, T, list[T], list[T]]:
    """PyTorch's network on the CPU, an input, its states and its parameters."""
    layers, bidirectional, bias, batch_first = NETWORKS[name]
    net = kind(FEATURES, HIDDEN, layers, bias=bias, batch_first=batch_first, bidirectional=bidirectional)
    x = torch.randn(*((BATCH, TIME) if batch_first else (TIME, BATCH)), FEATURES)
    count = 2 if kind is torch.nn.LSTM else 1
    states = [torch.randn(layers * (1 + bidirectional), BATCH, HIDDEN) for _ in range(count)]
    return net, x, states, [p.detach().clone() for p in net.parameters()]


def options(name: str) -> tuple[list[Any], dict[str, bool]]:
    layers, bidirectional, bias, batch_first = NETWORKS[name]
    return [bias, layers, 0.0, True, bidirectional], {"batch_first": batch_first}


def gradients_of(net: torch.nn.RNNBase, x: T, states: Sequence[T], grads: Sequence[T]) -> list[T]:
    """Of the input, the states and the parameters, from those of the output and the last states."""
    leaves = [x.clone().requires_grad_(), *(s.clone().requires_grad_() for s in states)]
    y, last = net(leaves[0], tuple(leaves[1:]) if len(states) > 1 else leaves[1])
    results = [y, *(last if isinstance(last, tuple) else [last])]
    return list(torch.autograd.grad(results, [*leaves, *net.parameters()], grads))


def random_like(results: Sequence[T]) -> list[T]:
    return [torch.randn(r.shape) for r in results]


@pytest.mark.parametrize("name", NETWORKS)
def test_lstm(name: str) -> None:
    net, x, states, params = network(torch.nn.LSTM, name)
    y, (h, c) = net(x, tuple(states))
    args, keywords = options(name)

    def forward(x: T, states: list[T], params: list[T]) -> Any:
        return npu._lstm_npu(x, states, params, *args, **keywords)[:3]

    expected = [t.detach() for t in (y, h, c)]
    check(forward, [x, states, params], expected, "eager captured")

    def backward(grads: list[T], x: T, states: list[T], params: list[T]) -> Any:
        kept = npu._lstm_npu(x, states, params, *args, **keywords)[3:]
        found = npu._lstm_npu_backward(*grads, x, states, params, *kept, *args, **keywords)
        return [found[0], *found[1], *found[2]]

    grads = random_like(expected)
    check(backward, [grads, x, states, params], gradients_of(net, x, states, grads), "eager captured")


@pytest.mark.parametrize("name", NETWORKS)
def test_gru(name: str) -> None:
    net, x, states, params = network(torch.nn.GRU, name)
    y, h = net(x, states[0])
    args, keywords = options(name)

    def forward(x: T, state: T, params: list[T]) -> Any:
        return npu._gru_npu(x, state, params, *args, **keywords)[:2]

    expected = [t.detach() for t in (y, h)]
    check(forward, [x, states[0], params], expected, "eager captured")

    def backward(grads: list[T], x: T, state: T, params: list[T]) -> Any:
        kept = npu._gru_npu(x, state, params, *args, **keywords)[2:]
        found = npu._gru_npu_backward(*grads, x, state, params, *kept, *args, **keywords)
        return [found[0], found[1], *found[2]]

    grads = random_like(expected)
    check(backward, [grads, x, states[0], params], gradients_of(net, x, states, grads), "eager captured")


def test_what_is_kept_for_gradients_is_as_documented() -> None:
    _, x, (h, c), params = network(torch.nn.LSTM, "plain")
    w_input, w_hidden, b_input, b_hidden = params
    args, keywords = options("plain")
    states = [h, c]
    kept: list[list[T]] = []
    h, c = h[0], c[0]
    for now in x:
        i, f, g, o = (now @ w_input.t() + b_input + h @ w_hidden.t() + b_hidden).chunk(4, 1)
        i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
        c = f * c + i * g
        h = o * c.tanh()
        kept.append([i, g, f, o, h, c, c.tanh()])
    expected = [torch.stack(values)[None] for values in zip(*kept, strict=True)]
    check(lambda *a: npu._lstm_npu(*a, *args, **keywords)[3:], [x, states, params], expected, "eager")


@pytest.mark.parametrize("kind", [torch.nn.LSTM, torch.nn.GRU])
def test_a_module_trains(kind: type[torch.nn.RNNBase]) -> None:
    net, x, _, _ = network(kind, "plain")
    expected, _ = net(x)
    expected.square().sum().backward()
    wanted = [p.grad.clone() for p in net.parameters()]
    net.zero_grad()
    device = net.npu()
    result, _ = device(x.npu())
    result.square().sum().backward()
    torch.testing.assert_close(result.cpu(), expected, rtol=1e-4, atol=1e-5)
    for parameter, grad in zip(device.parameters(), wanted, strict=True):
        torch.testing.assert_close(parameter.grad.cpu(), grad, rtol=1e-4, atol=1e-5)


def test_packed_sequences_and_dropout_are_refused() -> None:
    _, x, states, params = network(torch.nn.LSTM, "layers")
    where = [x.npu(), [s.npu() for s in states], [p.npu() for p in params]]
    with pytest.raises(RuntimeError, match=r"dropout=0.5 is not supported; 0 is"):
        npu._lstm_npu(*where, True, 3, 0.5, True, False)
    sizes = torch.tensor([3, 3])
    with pytest.raises(RuntimeError, match=r"packed sequences \(batchSizes\) are not supported"):
        npu._lstm_npu(torch.randn(6, FEATURES).npu(), *where[1:], True, 3, 0.0, True, False, batch_sizes=sizes.npu())
