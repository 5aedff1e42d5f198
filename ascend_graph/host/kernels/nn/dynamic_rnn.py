"""Single-layer recurrent operators of GE: DynamicRNN and DynamicGRU with their gradients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from ascend_graph.host.kernels.nn.recurrent import gru_back, gru_step, lstm_back, lstm_step, run_layers, run_layers_back
from ascend_graph.host.kernels.registry import host_kernel

T = torch.Tensor

#: Attrs of GE's single-layer, single-direction operators, with the documented values.
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
    """Return the index of each of the host's gates among the operator's, after checking the other attrs."""
    for name, value in attrs.items():
        allowed = _PLAIN.get(name)
        if name != "gate_order" and (allowed is None or value not in allowed):
            valid = f"no attr but gate_order, {', '.join(_PLAIN)}" if allowed is None else f"one of {allowed}"
            raise ValueError(f"{name} {value!r} is not known; expected {valid}")
    order = str(attrs.get("gate_order", default)).replace("c", "j").replace("h", "n")
    if sorted(order) != sorted(own):
        raise ValueError(f"gate_order {order!r} must be an order of {own!r}")
    return [order.index(gate) for gate in own]


def _ordered(x: T, places: Sequence[int]) -> T:
    """Reorder the gates of the last dimension."""
    parts = x.chunk(len(places), -1)
    return torch.cat([parts[place] for place in places], -1)


def _back_in_order(x: T, places: Sequence[int]) -> T:
    return _ordered(x, [list(places).index(number) for number in range(len(places))])


def _no_lengths(seq_length: T | None) -> None:
    """Refuse lengths of sequences; torch_npu passes a tensor without dimensions for none."""
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
        raise ValueError(
            f"x {tuple(x.shape)}, weights of input and state {shapes}: expected [time, batch, size] and 4 gates each"
        )
    own = [_ordered(w.float(), places).t() for w in weights]
    biases = [] if bias is None else [_ordered(bias.float(), places)]
    states = _first_states(x, hidden, init_h, init_c)
    y, _, kept = run_layers(lstm_step, x.float(), [*own, *biases], states, 1, False)
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
    """Return the gradients of both weights, the bias, the input and the states."""
    hidden = weights[1].size(0)
    x3 = x if x.dim() == 3 else x[None]
    steps = [value.float().reshape(len(x3), -1, hidden) for value in kept]
    own = [_ordered(w.float(), places).t() for w in weights]
    dy, *last = (g.float().reshape(-1, x3.size(1), hidden) for g in grads)
    first = _first_states(x3, hidden, *states)
    dx, (dh, dc), (w_input, w_hidden, b) = run_layers_back(
        lstm_back, x3, [*own, own[0].new_zeros(4 * hidden)], first, [[s] for s in steps], (4, 5), [dy, *last], 1, False
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
    """Run a one-layer LSTM: output, states, gates and the tanh of the cell state.

    The weights of the state are below those of the input in one matrix.
    """
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
    """Return the gradients of weights, bias, input and states, from the values kept; ``y`` is ``h``."""
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
    """Run DynamicRNN with two weights."""
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
    """Return the gradients of both weights, bias, input and states; ``y`` is ``h``."""
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
        raise ValueError(
            f"x {tuple(x.shape)}, weights of input and state {shapes}: expected [time, batch, size] and 3 gates each"
        )
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
    """Run a one-layer GRU: output, states, update, reset and new gate, and the state's part of the new gate.

    The results have the dtype of the biases, if given.
    """
    _no_lengths(seq_length)
    places = _gate_order(attrs, "zrh", "rzn")
    weights = _gru_weights(x, weight_input, weight_hidden, places)
    if (bias_input is None) != (bias_hidden is None):
        raise ValueError("bias_input and bias_hidden: expected both or neither")
    biases = [_ordered(b.float(), places) for b in (bias_input, bias_hidden) if b is not None]
    states = _first_states(x, weight_hidden.size(0), init_h)
    y, _, kept = run_layers(gru_step, x.float(), [*weights, *biases], states, 1, False)
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
    """Return the gradients of both weights, both biases, the input and the state, from the values kept.

    ``y`` is ``h``.
    """
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
    dx, (of_state,), grads = run_layers_back(gru_back, x, [*weights, *zeros], first, kept, (4,), [dy, last], 1, False)
    of_weights = [_back_in_order(w.t(), places).to(x.dtype) for w in grads[:2]]
    of_biases = [_back_in_order(b, places).to(x.dtype) for b in grads[2:]]
    return *of_weights, *of_biases, dx.to(x.dtype), of_state.reshape(init_h.shape).to(x.dtype)
