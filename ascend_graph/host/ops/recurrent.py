"""Recurrent networks of several layers and directions, with what their gradients need, and those gradients."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch

from ascend_graph.host.ops.registry import host_kernel

T = torch.Tensor
#: What a step makes of its input and states: the new states, and everything that is kept of it.
Step = Callable[[T, Sequence[T], Sequence[T]], tuple[tuple[T, ...], tuple[T, ...]]]


def _gates(x: T, h: T, weights: Sequence[T]) -> tuple[T, T]:
    """What the input adds to the gates, and what the hidden state does."""
    w_input, w_hidden, *biases = weights
    return torch.nn.functional.linear(x, w_input, *biases[:1]), torch.nn.functional.linear(h, w_hidden, *biases[1:])


def _lstm_step(x: T, states: Sequence[T], weights: Sequence[T]) -> tuple[tuple[T, ...], tuple[T, ...]]:
    """Weights are PyTorch's: input, forget, cell and output gate."""
    h, c = states
    of_input, of_hidden = _gates(x, h, weights)
    i, f, g, o = (of_input + of_hidden).chunk(4, -1)
    i, f, g, o = torch.sigmoid(i), torch.sigmoid(f), torch.tanh(g), torch.sigmoid(o)
    c = f * c + i * g
    tanh_c = torch.tanh(c)
    h = o * tanh_c
    return (h, c), (i, g, f, o, h, c, tanh_c)


def _gru_step(x: T, states: Sequence[T], weights: Sequence[T]) -> tuple[tuple[T, ...], tuple[T, ...]]:
    """Weights are PyTorch's: reset, update and new gate."""
    (h,) = states
    of_input, of_hidden = (part.chunk(3, -1) for part in _gates(x, h, weights))
    r, z = (torch.sigmoid(a + b) for a, b in zip(of_input[:2], of_hidden[:2], strict=True))
    n = torch.tanh(of_input[2] + r * of_hidden[2])
    h = (1 - z) * n + z * h
    return (h,), (r, z, n, of_hidden[2], h)


def _run(
    step: Step, x: T, weights: Sequence[T], states: Sequence[T], directions: int, batch_first: bool
) -> tuple[T, list[T], list[list[T]]]:
    """All layers.

    Args:
        x: (time, batch, features), or (batch, time, features).
        weights: by layer and direction, as many for each.
        states: each of (layers * directions, batch, hidden).

    Returns:
        The last layer's hidden states, the last states of every layer and direction, and by what a step keeps, a list of these by
        layer and direction: (time, batch, hidden), in the order of time.
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
    hx: list[T],
    batch_sizes: T | None = None,
    *,
    has_bias: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[T | list[T], ...]:
    """Output, last hidden and cell states, and by layer and direction input gate, cell input, forget gate, output gate, hidden
    state, cell state and its tanh."""
    directions = 1 + bidirectional
    count = num_layers * directions
    _checked("LSTM", batch_sizes, dropout, train, params, count * (4 if has_bias else 2))
    states = hx or [_zeros(input, params[1], count, batch_first)] * 2
    y, finals, kept = _run(_lstm_step, input.float(), _wide(params), _wide(states), directions, batch_first)
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
    """Output, last hidden states, and by layer and direction reset gate, update gate, new gate, what the hidden state adds to
    that, and the hidden state."""
    directions = 1 + bidirectional
    count = num_layers * directions
    _checked("GRU", batch_sizes, dropout, train, params, count * (4 if has_bias else 2))
    start = _zeros(input, params[1], count, batch_first) if hx is None else hx
    y, (hidden,), kept = _run(_gru_step, input.float(), _wide(params), [start.float()], directions, batch_first)
    r, z, n, hn, h = ([t.to(input.dtype) for t in values] for values in kept)
    return y.to(input.dtype), hidden.to(input.dtype), r, z, n, hn, h


#: The other way: from the gradients of a step's states, what it kept and the states before it, those of what the input adds to
#: the gates, of what the hidden state adds, and of the states before as far as they do not come by the gates.
StepBack = Callable[[Sequence[T], Sequence[T], Sequence[T]], tuple[T, T, tuple[T, ...]]]


def _lstm_back(grads: Sequence[T], kept: Sequence[T], before: Sequence[T]) -> tuple[T, T, tuple[T, ...]]:
    (dh, dc), (i, g, f, o, _, _, tanh_c) = grads, kept
    dc = dc + dh * o * (1 - tanh_c**2)
    gates = [dc * g * i * (1 - i), dc * before[1] * f * (1 - f), dc * i * (1 - g**2), dh * tanh_c * o * (1 - o)]
    both = torch.cat(gates, -1)
    return both, both, (torch.zeros_like(dh), dc * f)


def _gru_back(grads: Sequence[T], kept: Sequence[T], before: Sequence[T]) -> tuple[T, T, tuple[T, ...]]:
    (dh,), (r, z, n, hidden, _) = grads, kept
    dn = dh * (1 - z) * (1 - n**2)
    dr, dz = dn * hidden * r * (1 - r), dh * (before[0] - n) * z * (1 - z)
    return torch.cat([dr, dz, dn], -1), torch.cat([dr, dz, dn * r], -1), (dh * z,)


def _run_back(
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
    """The gradients of the input, the first states and the parameters.

    Args:
        x, weights, states, directions, batch_first: as in _run.
        kept: as _run gives it.
        histories: which of what is kept are the states.
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
            by_input, by_hidden = [], []
            for time in reversed(range(len(x))):
                now[0] = now[0] + own[time]
                of_input, of_hidden, rest = step(now, [v[time] for v in values], [b[time] for b in before])
                now = [rest[0] + of_hidden @ w_hidden, *rest[1:]]
                by_input.append(of_input)
                by_hidden.append(of_hidden)
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


@host_kernel("LSTMLayersGrad", dynamic=("hx", "params", "i", "g", "f", "o", "h", "c", "tanhc"))
def lstm_layers_grad(
    input: T,
    hx: list[T],
    params: list[T],
    dy: T | None,
    dh: T | None,
    dc: T | None,
    i: list[T],
    g: list[T],
    f: list[T],
    o: list[T],
    h: list[T],
    c: list[T],
    tanhc: list[T],
    batch_sizes: T | None = None,
    *,
    has_bias: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[T, T, T, list[T]]:
    """Gradients of the input, both states and the parameters."""
    directions = 1 + bidirectional
    count = num_layers * directions
    _checked("LSTMBackward", batch_sizes, dropout, train, params, count * (4 if has_bias else 2))
    states = hx or [_zeros(input, params[1], count, batch_first)] * 2
    kept = [i, g, f, o, h, c, tanhc]
    dx, (dh0, dc0), grads = _run_back(
        _lstm_back, input, params, states, kept, (4, 5), [dy, dh, dc], directions, batch_first
    )
    return dx.to(input.dtype), dh0.to(input.dtype), dc0.to(input.dtype), [t.to(input.dtype) for t in grads]


@host_kernel("GRULayersGrad", dynamic=("params", "r", "z", "n", "hn", "h"))
def gru_layers_grad(
    input: T,
    params: list[T],
    hx: T | None,
    dy: T | None,
    dh: T | None,
    r: list[T],
    z: list[T],
    n: list[T],
    hn: list[T],
    h: list[T],
    batch_sizes: T | None = None,
    *,
    has_bias: bool,
    num_layers: int,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[T, T, list[T]]:
    """Gradients of the input, the state and the parameters."""
    directions = 1 + bidirectional
    count = num_layers * directions
    _checked("GRUBackward", batch_sizes, 0, True, params, count * (4 if has_bias else 2))
    start = _zeros(input, params[1], count, batch_first) if hx is None else hx
    kept = [r, z, n, hn, h]
    dx, (dh0,), grads = _run_back(_gru_back, input, params, [start], kept, (4,), [dy, dh], directions, batch_first)
    return dx.to(input.dtype), dh0.to(input.dtype), [t.to(input.dtype) for t in grads]


#: What GE's operators of one layer and direction can be asked for, and what documents have of it.
_PLAIN: dict[str, tuple[object, ...]] = {
    "cell_type": ("LSTM", True),  # torch_npu gives a gradient the text as a bool
    "direction": ("UNIDIRECTIONAL",),
    "cell_depth": (0, 1),
    "use_peephole": (False,),
    "keep_prob": (1.0, -1.0),
    "cell_clip": (-1.0,),
    "num_proj": (0,),
    "time_major": (True,),
    "activation": ("tanh",),
    "recurrent_activation": ("sigmoid",),
    "forget_bias": (0.0,),
    "reset_after": (True,),
    "stateful": (False,),
    "merge_mode": ("concat",),
    "bias_type": ("no_bias",),  # the gradient's name for its default, whatever it is given
    "is_training": (True, False),
}


def _gate_order(attrs: Mapping[str, object], default: str, own: str) -> list[int]:
    """Where among the operator's gates each of the host's is; the other attrs are checked."""
    for name, value in attrs.items():
        allowed = _PLAIN.get(name)
        if name != "gate_order" and (allowed is None or value not in allowed):
            valid = "is not known" if allowed is None else f"is not one of {allowed}"
            raise ValueError(f"{name} {value!r} {valid}")
    order = str(attrs.get("gate_order", default)).replace("c", "j").replace("h", "n")
    if sorted(order) != sorted(own):
        raise ValueError(f"gate_order {order!r} is not an order of {own!r}")
    return [order.index(gate) for gate in own]


def _ordered(x: T, places: Sequence[int]) -> T:
    """The gates of the last dimension, in another order."""
    parts = x.chunk(len(places), -1)
    return torch.cat([parts[place] for place in places], -1)


def _back_in_order(x: T, places: Sequence[int]) -> T:
    return _ordered(x, [list(places).index(number) for number in range(len(places))])


def _no_lengths(seq_length: T | None) -> None:
    """Without dimensions it is what torch_npu gives in the place of none."""
    if seq_length is not None and seq_length.dim():
        raise ValueError(
            f"seq_length of shape {tuple(seq_length.shape)} (packed sequences): documents do not say what it does; none is supported"
        )


def _first_states(x: T, hidden: int, *states: T | None) -> list[T]:
    shape = (1, x.size(1), hidden)
    for state in states:
        if state is not None and state.numel() != x.size(1) * hidden:
            raise ValueError(f"a first state of shape {tuple(state.shape)}: {list(shape)} is expected")
    return [x.new_zeros(shape).float() if s is None else s.float().reshape(shape) for s in states]


def _lstm_of_one_layer(
    x: T, weights: list[T], bias: T | None, init_h: T | None, init_c: T | None, attrs: Mapping[str, object]
) -> tuple[T, ...]:
    places = _gate_order(attrs, "ijfo", "ifjo")
    hidden = weights[1].size(0)
    if x.dim() != 3 or any(w.shape != (s, 4 * hidden) for w, s in zip(weights, (x.size(2), hidden), strict=True)):
        shapes = [tuple(w.shape) for w in weights]
        raise ValueError(f"x {tuple(x.shape)}, weights of input and state {shapes}: [time, batch, size], 4 gates each")
    own = [_ordered(w.float(), places).t() for w in weights]
    biases = [] if bias is None else [_ordered(bias.float(), places)]
    states = _first_states(x, hidden, init_h, init_c)
    y, _, kept = _run(_lstm_step, x.float(), [*own, *biases], states, 1, False)
    i, g, f, o, h, c, tanh_c = (values[0].to(x.dtype) for values in kept)
    return y.to(x.dtype), h, c, i, g, f, o, tanh_c


def _lstm_of_one_layer_back(
    x: T,
    weights: list[T],
    states: list[T],
    kept: list[T],
    grads: list[T],
    places: Sequence[int],
) -> tuple[T, T, T, T, T, T]:
    """Of both weights, the bias, the input and the states."""
    hidden = weights[1].size(0)
    x3 = x if x.dim() == 3 else x[None]
    steps = [value.float().reshape(len(x3), -1, hidden) for value in kept]
    own = [_ordered(w.float(), places).t() for w in weights]
    dy, *last = (g.float().reshape(-1, x3.size(1), hidden) for g in grads)
    first = _first_states(x3, hidden, *states)
    dx, (dh, dc), (w_input, w_hidden, b) = _run_back(
        _lstm_back, x3, [*own, own[0].new_zeros(4 * hidden)], first, [[s] for s in steps], (4, 5), [dy, *last], 1, False
    )
    of_weights = (_back_in_order(w.t(), places).to(weights[0].dtype) for w in (w_input, w_hidden))
    of_states = (d.reshape(s.shape).to(s.dtype) for d, s in zip((dh, dc), states, strict=True))
    return (*of_weights, _back_in_order(b, places), dx.reshape(x.shape).to(x.dtype), *of_states)  # type: ignore[return-value]


def _no_peepholes(wci: T | None, wcf: T | None, wco: T | None, mask: T | None) -> None:
    if any(x is not None and x.dim() for x in (wci, wcf, wco, mask)):
        raise ValueError("wci, wcf, wco and mask are reserved: none is supported")


@host_kernel("DynamicRNN")
def dynamic_rnn(
    x: T,
    w: T,
    b: T,
    seq_length: T | None = None,
    init_h: T | None = None,
    init_c: T | None = None,
    wci: T | None = None,
    wcf: T | None = None,
    wco: T | None = None,
    mask: T | None = None,
    **attrs: object,
) -> tuple[T, ...]:
    """An LSTM of one layer, whose weights of input and state are below each other: output, states, gates and the tanh of the cell state."""
    _no_lengths(seq_length)
    _no_peepholes(wci, wcf, wco, mask)
    return _lstm_of_one_layer(x, [w[: x.size(-1)], w[x.size(-1) :]], b, init_h, init_c, attrs)


@host_kernel("DynamicRNNGrad")
def dynamic_rnn_grad(
    x: T,
    w: T,
    b: T,
    y: T,
    init_h: T,
    init_c: T,
    h: T,
    c: T,
    dy: T,
    dh: T,
    dc: T,
    i: T,
    j: T,
    f: T,
    o: T,
    tanhct: T,
    seq_length: T | None = None,
    mask: T | None = None,
    wci: T | None = None,
    wcf: T | None = None,
    wco: T | None = None,
    **attrs: object,
) -> tuple[T | list[T], ...]:
    """Of weights, bias, input and states, of what is kept; ``y`` is ``h``."""
    del y
    _no_lengths(seq_length)
    _no_peepholes(wci, wcf, wco, mask)
    places, size = _gate_order(attrs, "ijfo", "ifjo"), x.size(-1)
    kept, grads = [i, j, f, o, h, c, tanhct], [dy, dh, dc]
    w_input, w_hidden, bias, dx, dh_prev, dc_prev = _lstm_of_one_layer_back(
        x, [w[:size], w[size:]], [init_h, init_c], kept, grads, places
    )
    return torch.cat([w_input, w_hidden]), bias.to(b.dtype), dx, dh_prev, dc_prev, [], [], []


@host_kernel("DynamicRNNV2")
def dynamic_rnn_v2(
    x: T,
    weight_input: T,
    weight_hidden: T,
    b: T | None = None,
    seq_length: T | None = None,
    init_h: T | None = None,
    init_c: T | None = None,
    wci: T | None = None,
    wcf: T | None = None,
    wco: T | None = None,
    mask: T | None = None,
    **attrs: object,
) -> tuple[T, ...]:
    """As DynamicRNN, of two weights."""
    _no_lengths(seq_length)
    _no_peepholes(wci, wcf, wco, mask)
    return _lstm_of_one_layer(x, [weight_input, weight_hidden], b, init_h, init_c, attrs)


@host_kernel("DynamicRNNV2Grad")
def dynamic_rnn_v2_grad(
    x: T,
    w_x: T,
    w_h: T,
    y: T,
    init_h: T,
    init_c: T,
    h: T,
    c: T,
    dy: T,
    dh: T,
    dc: T,
    i: T,
    j: T,
    f: T,
    o: T,
    tanhct: T,
    seq_length: T | None = None,
    wci: T | None = None,
    wcf: T | None = None,
    wco: T | None = None,
    mask: T | None = None,
    **attrs: object,
) -> tuple[T, ...]:
    """Of both weights, bias, input and states; ``y`` is ``h``."""
    del y
    _no_lengths(seq_length)
    _no_peepholes(wci, wcf, wco, mask)
    places = _gate_order(attrs, "ijfo", "ifjo")
    kept, grads = [i, j, f, o, h, c, tanhct], [dy, dh, dc]
    w_input, w_hidden, bias, *rest = _lstm_of_one_layer_back(x, [w_x, w_h], [init_h, init_c], kept, grads, places)
    return w_input, w_hidden, bias.to(i.dtype), *rest


def _gru_weights(x: T, weight_input: T, weight_hidden: T, places: Sequence[int]) -> list[T]:
    hidden, weights = weight_hidden.size(0), [weight_input, weight_hidden]
    if x.dim() != 3 or any(w.shape != (s, 3 * hidden) for w, s in zip(weights, (x.size(2), hidden), strict=True)):
        shapes = [tuple(w.shape) for w in weights]
        raise ValueError(f"x {tuple(x.shape)}, weights of input and state {shapes}: [time, batch, size], 3 gates each")
    return [_ordered(w.float(), places).t() for w in weights]


@host_kernel("DynamicGRUV2")
def dynamic_gru_v2(
    x: T,
    weight_input: T,
    weight_hidden: T,
    bias_input: T | None = None,
    bias_hidden: T | None = None,
    seq_length: T | None = None,
    init_h: T | None = None,
    **attrs: object,
) -> tuple[T, ...]:
    """A GRU of one layer: output, states, update, reset and new gate, and what the state adds to that, as biases in their dtype."""
    _no_lengths(seq_length)
    places = _gate_order(attrs, "zrh", "rzn")
    weights = _gru_weights(x, weight_input, weight_hidden, places)
    if (bias_input is None) != (bias_hidden is None):
        raise ValueError("bias_input and bias_hidden: both, or none of them, are expected")
    biases = [_ordered(b.float(), places) for b in (bias_input, bias_hidden) if b is not None]
    states = _first_states(x, weight_hidden.size(0), init_h)
    y, _, kept = _run(_gru_step, x.float(), [*weights, *biases], states, 1, False)
    target = x.dtype if bias_input is None else bias_input.dtype
    r, z, n, hidden, h = (values[0].to(target) for values in kept)
    return y.to(target), h, z, r, n, hidden


@host_kernel("DynamicGRUV2Grad")
def dynamic_gru_v2_grad(
    x: T,
    weight_input: T,
    weight_hidden: T,
    y: T,
    init_h: T,
    h: T,
    dy: T,
    dh: T,
    update: T,
    reset: T,
    new: T,
    hidden_new: T,
    seq_length: T | None = None,
    mask: T | None = None,
    **attrs: object,
) -> tuple[T, ...]:
    """Of both weights, both biases, the input and the state, of what is kept; ``y`` is ``h``."""
    del y
    _no_lengths(seq_length)
    _no_peepholes(None, None, None, mask)
    places = _gate_order(attrs, "zrh", "rzn")
    weights = _gru_weights(x, weight_input, weight_hidden, places)
    hidden = weight_hidden.size(0)
    zeros = [weights[0].new_zeros(3 * hidden)] * 2
    first = _first_states(x, hidden, init_h)
    last = dh.float().reshape(1, -1, hidden)
    kept = [[value] for value in (reset, update, new, hidden_new, h)]
    dx, (of_state,), grads = _run_back(_gru_back, x, [*weights, *zeros], first, kept, (4,), [dy, last], 1, False)
    of_weights = [_back_in_order(w.t(), places).to(x.dtype) for w in grads[:2]]
    of_biases = [_back_in_order(b, places).to(x.dtype) for b in grads[2:]]
    return *of_weights, *of_biases, dx.to(x.dtype), of_state.reshape(init_h.shape).to(x.dtype)
