"""Recurrent networks of one layer and direction, against PyTorch's: https://gitcode.com/Ascend/op-plugin,
docs/zh/custom_APIs/torch_npu (npu_lstm, npu_gru); https://gitcode.com/cann/ops-nn, rnn/dynamic_rnn and
rnn/dynamic_rnnv2."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from operator_modes import check

T = torch.Tensor
npu = torch.ops.npu

TIME, BATCH, FEATURES, HIDDEN = 5, 3, 4, 6
LSTM = [True, 1, 0.0, True, False, False, False, False]


def network(kind: Any, dtype: torch.dtype) -> tuple[torch.nn.Module, T, list[T], list[T]]:
    """PyTorch's on the CPU, an input, states and parameters, all of numbers that float16 has."""
    torch.manual_seed(0)
    net = kind(FEATURES, HIDDEN)
    for parameter in net.parameters():
        parameter.data = parameter.data.to(dtype).float()
    count = 1 if kind is torch.nn.GRU else 2
    states = [torch.randn(1, BATCH, HIDDEN).to(dtype).float() for _ in range(count)]
    return net, torch.randn(TIME, BATCH, FEATURES).to(dtype).float(), states, [p.detach() for p in net.parameters()]


def gradients(net: torch.nn.Module, x: T, states: list[T], given: list[T]) -> tuple[list[T], list[T]]:
    """The output and last states; gradients of input, states and parameters."""
    leaves = [x.clone().requires_grad_(), *(s.clone().requires_grad_() for s in states)]
    y, last = net(leaves[0], tuple(leaves[1:]) if len(states) > 1 else leaves[1])
    results = [y, *(last if isinstance(last, tuple) else [last])]
    own = [r.reshape(g.shape) for r, g in zip(results, given, strict=True)]
    return results, list(torch.autograd.grad(own, [*leaves, *net.parameters()], given))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
@pytest.mark.parametrize("name", ["npu_lstm", "npu_lstm_data"])
def test_lstm(dtype: torch.dtype, name: str) -> None:
    net, x, states, (w_input, w_hidden, *biases) = network(torch.nn.LSTM, dtype)
    w, b = torch.cat([w_input, w_hidden], 1).t().contiguous(), sum(biases).to(dtype).float()
    net.bias_ih_l0.data, net.bias_hh_l0.data = b, torch.zeros_like(b)
    given = [
        torch.randn(TIME, BATCH, HIDDEN).to(dtype).float(),
        *(torch.randn(1, BATCH, HIDDEN).to(dtype).float() for _ in range(2)),
    ]
    (y, h, c), (dx, dh, dc, dw_input, dw_hidden, db, _) = gradients(net, x, states, given)

    def forward(x: T, w: T, b: T, h: T, c: T) -> Any:
        mask = x.new_empty(0)
        if name == "npu_lstm":
            return npu.npu_lstm(x, w, b, mask, h, c, *LSTM)
        return npu.npu_lstm_data(x, torch.full((TIME,), BATCH).npu(), w, b, mask, h, c, *LSTM)

    arguments = [t.to(dtype) for t in (x, w, b, *states)]
    check(
        lambda *a: [forward(*a)[0], forward(*a)[1][-1:], forward(*a)[2][-1:]],
        arguments,
        [t.detach().to(dtype) for t in (y, h, c)],
        "eager",
    )

    def backward(x: T, w: T, b: T, h: T, c: T, *given: T) -> Any:
        leaves = [t.detach().requires_grad_() for t in (x, w, b, h, c)]
        y, hidden, cell = forward(*leaves)[:3]
        return torch.autograd.grad([y, hidden[-1:], cell[-1:]], leaves, given)

    expected = [dx, torch.cat([dw_input, dw_hidden], 1).t(), db, dh, dc]
    if name == "npu_lstm":
        check(backward, [*arguments, *(g.to(dtype) for g in given)], [t.to(dtype) for t in expected], "eager")


def test_gates_are_those_of_the_cell() -> None:
    """Each step's: input gate, cell input, forget gate, output gate, and the tanh of the cell state."""
    _, x, (h, c), (w_input, w_hidden, *biases) = network(torch.nn.LSTM, torch.float32)
    w, b = torch.cat([w_input, w_hidden], 1).t().contiguous(), sum(biases)
    found = [t.cpu() for t in npu.npu_lstm(*(t.npu() for t in (x, w, b, x.new_empty(0), h, c)), *LSTM)]
    h, c = h[0], c[0]
    for step in range(TIME):
        i, f, j, o = (torch.cat([x[step], h], 1) @ w + b).chunk(4, 1)
        i, f, j, o = i.sigmoid(), f.sigmoid(), j.tanh(), o.sigmoid()
        c = f * c + i * j
        h = o * c.tanh()
        for got, wanted in zip(found, (h, h, c, i, j, f, o, c.tanh()), strict=True):
            torch.testing.assert_close(got[step], wanted)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
@pytest.mark.parametrize("biased", [True, False])
def test_lstm_cell(dtype: torch.dtype, biased: bool) -> None:
    net, x, (h, c), params = network(torch.nn.LSTMCell, dtype)
    x, h, c = x[0], h[0], c[0]
    if not biased:
        for bias in (net.bias_ih, net.bias_hh):
            bias.data = torch.zeros_like(bias)
    weights = [p.t().contiguous() for p in params[:2]]
    biases = params[2:] if biased else []
    given = [torch.randn(BATCH, HIDDEN).to(dtype).float() for _ in range(2)]
    x1, h1, c1 = (t.clone().requires_grad_() for t in (x, h, c))
    results = net(x1, (h1, c1))
    sources = [x1, net.weight_ih, net.weight_hh, h1, c1, *([net.bias_ih, net.bias_hh] if biased else [])]
    dx, dw_input, dw_hidden, dh, dc, *of_biases = torch.autograd.grad(results, sources, given)

    def cell(x: T, w: T, u: T, h: T, c: T, *biases: T) -> Any:
        return npu.npu_lstm_cell(x, w, u, h, c, *biases)[1:3]

    arguments = [t.to(dtype) for t in (x, *weights, h, c, *biases)]
    check(cell, arguments, [r.detach().to(dtype) for r in results], "eager")

    def backward(given: list[T], *tensors: T) -> Any:
        leaves = [t.detach().requires_grad_() for t in tensors]
        return torch.autograd.grad(cell(*leaves), leaves, given)

    expected = [dx, dw_input.t(), dw_hidden.t(), dh, dc, *of_biases]
    check(
        lambda a, b, *tensors: backward([a, b], *tensors),
        [*(g.to(dtype) for g in given), *arguments],
        [t.to(dtype) for t in expected],
        "eager",
    )


def test_gru() -> None:
    """Its input and weights are float16, as the prototype says."""
    dtype = torch.float16
    net, x, states, params = network(torch.nn.GRU, dtype)
    given = [torch.randn(TIME, BATCH, HIDDEN).to(dtype).float(), torch.randn(1, BATCH, HIDDEN).to(dtype).float()]
    (y, h), (dx, dh, dw_input, dw_hidden, db_input, db_hidden) = gradients(net, x, states, given)
    w_input, w_hidden, *biases = params

    def forward(x: T, h: T, w: T, u: T, *biases: T) -> Any:
        return npu.npu_gru(
            x, h, w, u, *biases, torch.tensor([1], dtype=torch.int32).npu(), True, 1, 0.0, True, False, False
        )

    arguments = [t.to(dtype) for t in (x, states[0], w_input.t().contiguous(), w_hidden.t().contiguous(), *biases)]
    check(lambda *a: [forward(*a)[0], forward(*a)[1][-1:]], arguments, [t.detach().to(dtype) for t in (y, h)], "eager")

    def backward(dy: T, dh: T, *tensors: T) -> Any:
        leaves = [t.detach().requires_grad_() for t in tensors]
        y, hidden = forward(*leaves)[:2]
        return torch.autograd.grad([y, hidden[-1:]], leaves, [dy, dh])

    expected = [dx, dh, dw_input.t(), dw_hidden.t(), db_input, db_hidden]
    check(backward, [*(g.to(dtype) for g in given), *arguments], [t.to(dtype) for t in expected], "eager")


def test_gates_of_a_gru() -> None:
    """Each step's: update and reset gate, the new one, and what the state adds to that."""
    _, x, (h,), (w, u, b, d) = network(torch.nn.GRU, torch.float16)
    tensors = [t.half().npu() for t in (x, h, w.t().contiguous(), u.t().contiguous(), b, d)]
    found = npu.npu_gru(*tensors, torch.tensor([1], dtype=torch.int32).npu(), True, 1, 0.0, True, False, False)
    h = h[0]
    for step in range(TIME):
        of_input, of_state = (x[step] @ w.t() + b).chunk(3, 1), (h @ u.t() + d).chunk(3, 1)
        r, z = ((a + e).sigmoid() for a, e in zip(of_input[:2], of_state[:2], strict=True))
        n = (of_input[2] + r * of_state[2]).tanh()
        h = (1 - z) * n + z * h
        for got, wanted in zip(found, (h, h, z, r, n, of_state[2]), strict=True):
            torch.testing.assert_close(got[step].cpu().float(), wanted, rtol=4e-3, atol=4e-3)


def test_what_documents_do_not_have_is_refused() -> None:
    _, x, (h, c), (w_input, w_hidden, *biases) = network(torch.nn.LSTM, torch.float32)
    w, b = torch.cat([w_input, w_hidden], 1).t().contiguous(), sum(biases)
    x, w, b, h, c = (t.npu() for t in (x, w, b, h, c))
    mask = torch.ones(TIME, BATCH, HIDDEN).half().npu()
    with pytest.raises(RuntimeError, match="packed sequences"):
        npu.npu_lstm(x, w, b, mask, h, c, *LSTM[:6], True, False)
    with pytest.raises(RuntimeError, match="direction 'REDIRECTIONAL' is not known; expected one of"):
        npu.npu_lstm(x, w, b, mask, h, c, *LSTM[:6], False, True)
    with pytest.raises(RuntimeError, match="4 gates each"):
        npu.npu_lstm(x, w[1:], b, mask, h, c, *LSTM)
