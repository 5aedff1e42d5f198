"""LSTM and GRU of several layers and directions, and their gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from ascend_graph.host.kernels.registry import host_kernel

T = torch.Tensor
#: Step function: from input, states and weights to the new states and the values kept.
Step = Callable[[T, Sequence[T], Sequence[T]], tuple[tuple[T, ...], tuple[T, ...]]]


def _gates(x: T, h: T, weights: Sequence[T]) -> tuple[T, T]:
    """Return the parts of the gates from the input and from the hidden state."""
    w_input, w_hidden, *biases = weights
    return torch.nn.functional.linear(x, w_input, *biases[:1]), torch.nn.functional.linear(h, w_hidden, *biases[1:])


def lstm_step(x: T, states: Sequence[T], weights: Sequence[T]) -> tuple[tuple[T, ...], tuple[T, ...]]:
    """Compute one LSTM step with PyTorch's weights: input, forget, cell and output gate."""
    h, c = states
    of_input, of_hidden = _gates(x, h, weights)
    i, f, g, o = (of_input + of_hidden).chunk(4, -1)
    i, f, g, o = torch.sigmoid(i), torch.sigmoid(f), torch.tanh(g), torch.sigmoid(o)
    c = f * c + i * g
    tanh_c = torch.tanh(c)
    h = o * tanh_c
    return (h, c), (i, g, f, o, h, c, tanh_c)


def gru_step(x: T, states: Sequence[T], weights: Sequence[T]) -> tuple[tuple[T, ...], tuple[T, ...]]:
    """Compute one GRU step with PyTorch's weights: reset, update and new gate."""
    (h,) = states
    of_input, of_hidden = (part.chunk(3, -1) for part in _gates(x, h, weights))
    r, z = (torch.sigmoid(a + b) for a, b in zip(of_input[:2], of_hidden[:2], strict=True))
    n = torch.tanh(of_input[2] + r * of_hidden[2])
    h = (1 - z) * n + z * h
    return (h,), (r, z, n, of_hidden[2], h)


def run_layers(
    step: Step, x: T, weights: Sequence[T], states: Sequence[T], directions: int, batch_first: bool
) -> tuple[T, list[T], list[list[T]]]:
    """Run all layers.

    Args:
        x: (time, batch, features), or (batch, time, features).
        weights: by layer and direction, as many for each.
        states: each of (layers * directions, batch, hidden).

    Returns:
        The last layer's hidden states; the last states of every layer and direction; and for each value that a step
        keeps, a list by layer and direction: (time, batch, hidden), in the order of time.
    """
    if batch_first:
        x = x.transpose(0, 1)
    count = states[0].size(0)
    size = len(weights) // count
    finals: list[tuple[T, ...]] = []
    kept: list[list[T]] = []
    for layer in range(0, count, directions):
        sides = []
        for place in range(layer, layer + directions):
            own, now = weights[place * size : (place + 1) * size], tuple(state[place] for state in states)
            times = range(len(x)) if place == layer else reversed(range(len(x)))
            saved: list[tuple[T, ...]] = []
            hidden: list[T] = []
            for time in times:
                now, keep = step(x[time], now, own)
                hidden.append(now[0])
                saved.append(keep)
            if place > layer:
                hidden.reverse()
                saved.reverse()
            sides.append(torch.stack(hidden))
            finals.append(now)
            kept.append([torch.stack(values) for values in zip(*saved, strict=True)])
        x = torch.cat(sides, -1)
    result = x.transpose(0, 1) if batch_first else x
    return (
        result,
        [torch.stack(values) for values in zip(*finals, strict=True)],
        [list(v) for v in zip(*kept, strict=True)],
    )


def _checked(name: str, batch_sizes: T | None, dropout: float, train: bool, params: Sequence[T], expected: int) -> None:
    if batch_sizes is not None:
        raise ValueError(f"{name}: packed sequences (batchSizes) are not supported; null is")
    if dropout and train:
        raise ValueError(f"{name}: dropout={dropout} is not supported; 0 is")
    if len(params) != expected:
        raise ValueError(f"{name}: {len(params)} parameters, valid are {expected}")


def _wide(tensors: Sequence[T]) -> list[T]:
    return [t.float() for t in tensors]


def _zeros(x: T, weight: T, layers: int, batch_first: bool) -> T:
    return x.new_zeros(layers, x.size(0 if batch_first else 1), weight.size(1))


@host_kernel("LSTMLayers", dynamic=("params", "hx"))
def lstm_layers(
    input: T,
    params: list[T],
    hx: Sequence[T] = (),
    batch_sizes: T | None = None,
    *,
    has_bias: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[T | list[T], ...]:
    """Run an LSTM: output, last states, and the values kept by layer and direction.

    These are input gate, cell input, forget gate, output gate, hidden state, cell state and its tanh.
    """
    directions = 1 + bidirectional
    count = num_layers * directions
    _checked("LSTM", batch_sizes, dropout, train, params, count * (4 if has_bias else 2))
    states = hx or [_zeros(input, params[1], count, batch_first)] * 2
    y, finals, kept = run_layers(lstm_step, input.float(), _wide(params), _wide(states), directions, batch_first)
    i, g, f, o, h, c, tanh_c = ([t.to(input.dtype) for t in values] for values in kept)
    hidden, cell = (t.to(input.dtype) for t in finals)
    return y.to(input.dtype), hidden, cell, i, g, f, o, h, c, tanh_c


@host_kernel("GRULayers", dynamic=("params",))
def gru_layers(
    input: T,
    params: list[T],
    hx: T | None = None,
    batch_sizes: T | None = None,
    *,
    has_bias: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[T | list[T], ...]:
    """Run a GRU: output, last hidden states, and the values kept by layer and direction.

    These are reset gate, update gate, new gate, the hidden state's part of the new gate, and the hidden state.
    """
    directions = 1 + bidirectional
    count = num_layers * directions
    _checked("GRU", batch_sizes, dropout, train, params, count * (4 if has_bias else 2))
    start = _zeros(input, params[1], count, batch_first) if hx is None else hx
    y, (hidden,), kept = run_layers(gru_step, input.float(), _wide(params), [start.float()], directions, batch_first)
    r, z, n, hn, h = ([t.to(input.dtype) for t in values] for values in kept)
    return y.to(input.dtype), hidden.to(input.dtype), r, z, n, hn, h


#: Backward step function: from the gradients of a step's states, the values it kept and the states before it. It
#: returns the gradients of the input's part of the gates, of the hidden state's part, and of the states before other
#: than through the gates.
StepBack = Callable[[Sequence[T], Sequence[T], Sequence[T]], tuple[T, T, tuple[T, ...]]]


def lstm_back(grads: Sequence[T], kept: Sequence[T], before: Sequence[T]) -> tuple[T, T, tuple[T, ...]]:
    (dh, dc), (i, g, f, o, _, _, tanh_c) = grads, kept
    dc = dc + dh * o * (1 - tanh_c**2)
    gates = [dc * g * i * (1 - i), dc * before[1] * f * (1 - f), dc * i * (1 - g**2), dh * tanh_c * o * (1 - o)]
    both = torch.cat(gates, -1)
    return both, both, (torch.zeros_like(dh), dc * f)


def gru_back(grads: Sequence[T], kept: Sequence[T], before: Sequence[T]) -> tuple[T, T, tuple[T, ...]]:
    (dh,), (r, z, n, hidden, _) = grads, kept
    dn = dh * (1 - z) * (1 - n**2)
    dr, dz = dn * hidden * r * (1 - r), dh * (before[0] - n) * z * (1 - z)
    return torch.cat([dr, dz, dn], -1), torch.cat([dr, dz, dn * r], -1), (dh * z,)


def _through_time(
    x: T, now: list[T], own: T, step: StepBack, values: Sequence[T], before: Sequence[T], w_hidden: T
) -> tuple[list[T], list[T], list[T]]:
    """Return the gradients of the first states and of each step's input and hidden parts."""
    by_input, by_hidden = [], []
    for time in reversed(range(len(x))):
        now[0] = now[0] + own[time]
        of_input, of_hidden, rest = step(now, [v[time] for v in values], [b[time] for b in before])
        now = [rest[0] + of_hidden @ w_hidden, *rest[1:]]
        by_input.append(of_input)
        by_hidden.append(of_hidden)
    return now, by_input, by_hidden


def run_layers_back(
    step: StepBack,
    x: T,
    weights: Sequence[T],
    states: Sequence[T],
    kept: Sequence[Sequence[T]],
    histories: Sequence[int],
    grads: Sequence[T | None],
    directions: int,
    batch_first: bool,
) -> tuple[T, list[T], list[T]]:
    """Return the gradients of the input, the first states and the parameters.

    Args:
        x, weights, states, directions, batch_first: as in run_layers.
        kept: as run_layers returns it.
        histories: indices of the states among the values kept.
        grads: of the output, and of the last states; None for zeros.
    """
    x = (x.transpose(0, 1) if batch_first else x).float()
    count, size = states[0].size(0), len(weights) // states[0].size(0)
    wide_kept = [_wide(values) for values in kept]
    hidden = wide_kept[histories[0]]
    dy = torch.zeros(*x.shape[:2], hidden[0].size(-1) * directions, device=x.device)
    if grads[0] is not None:
        dy = (grads[0].transpose(0, 1) if batch_first else grads[0]).float()
    last = [torch.zeros_like(s) if g is None else g.float() for s, g in zip(_wide(states), grads[1:], strict=True)]
    of_states: list[list[T]] = [[] for _ in states]
    of_weights: list[T] = []
    for layer in reversed(range(0, count, directions)):
        below = x if layer == 0 else torch.cat(hidden[layer - directions : layer], -1)
        of_below = torch.zeros_like(below)
        of_layer: list[T] = []
        for place in reversed(range(layer, layer + directions)):
            w_input, w_hidden, *biases = _wide(weights[place * size : (place + 1) * size])
            first = [state[place].float()[None] for state in states]
            # Against the order of time for the second direction: the states before a step are those after it in time.
            flip = place > layer
            values = [v[place].flip(0) if flip else v[place] for v in wide_kept]
            before = [torch.cat([start, values[n][:-1]]) for start, n in zip(first, histories, strict=True)]
            own = dy.chunk(directions, -1)[place - layer]
            own = own.flip(0) if flip else own
            now = [g[place] for g in last]
            now, by_input, by_hidden = _through_time(x, now, own, step, values, before, w_hidden)
            inputs, hiddens = torch.stack(by_input[::-1]), torch.stack(by_hidden[::-1])
            seen = below.flip(0) if flip else below
            passed = inputs @ w_input
            of_below = of_below + (passed.flip(0) if flip else passed)
            pairs = ((inputs, seen), (hiddens, before[0]))
            products = [torch.einsum("tbg,tbi->gi", gate, value) for gate, value in pairs]
            of_layer = products + [gate.sum((0, 1)) for gate, _ in pairs][: len(biases)] + of_layer
            for found, grad in zip(of_states, now, strict=True):
                found.insert(0, grad)
        of_weights = of_layer + of_weights
        dy = of_below
    dx = dy.transpose(0, 1) if batch_first else dy
    return dx, [torch.stack(found) for found in of_states], of_weights


@host_kernel("LSTMLayersGrad", dynamic=("params", "i", "g", "f", "o", "h", "c", "tanhc", "hx"))
def lstm_layers_grad(
    input: T,
    params: list[T],
    i: list[T],
    g: list[T],
    f: list[T],
    o: list[T],
    h: list[T],
    c: list[T],
    tanhc: list[T],
    hx: Sequence[T] = (),
    dy: T | None = None,
    dh: T | None = None,
    dc: T | None = None,
    batch_sizes: T | None = None,
    *,
    has_bias: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[T, T, T, list[T]]:
    """Return the gradients of the input, both states and the parameters."""
    directions = 1 + bidirectional
    count = num_layers * directions
    _checked("LSTMBackward", batch_sizes, dropout, train, params, count * (4 if has_bias else 2))
    states = hx or [_zeros(input, params[1], count, batch_first)] * 2
    kept = [i, g, f, o, h, c, tanhc]
    dx, (dh0, dc0), grads = run_layers_back(
        lstm_back, input, params, states, kept, (4, 5), [dy, dh, dc], directions, batch_first
    )
    return dx.to(input.dtype), dh0.to(input.dtype), dc0.to(input.dtype), [t.to(input.dtype) for t in grads]


@host_kernel("GRULayersGrad", dynamic=("params", "r", "z", "n", "hn", "h"))
def gru_layers_grad(
    input: T,
    params: list[T],
    r: list[T],
    z: list[T],
    n: list[T],
    hn: list[T],
    h: list[T],
    hx: T | None = None,
    dy: T | None = None,
    dh: T | None = None,
    batch_sizes: T | None = None,
    *,
    has_bias: bool,
    num_layers: int,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[T, T, list[T]]:
    """Return the gradients of the input, the state and the parameters."""
    directions = 1 + bidirectional
    count = num_layers * directions
    _checked("GRUBackward", batch_sizes, 0, True, params, count * (4 if has_bias else 2))
    start = _zeros(input, params[1], count, batch_first) if hx is None else hx
    kept = [r, z, n, hn, h]
    dx, (dh0,), grads = run_layers_back(gru_back, input, params, [start], kept, (4,), [dy, dh], directions, batch_first)
    return dx.to(input.dtype), dh0.to(input.dtype), [t.to(input.dtype) for t in grads]
