"""Feed-forward layers of experts and low-rank adapters."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F

from ascend_graph.host.kernels.matmul.grouped_matmul import group_matmul, group_spans
from ascend_graph.host.kernels.quantization.quantize import saturated
from ascend_graph.host.kernels.registry import host_kernel

T = torch.Tensor

_OF_FFN: dict[str, Callable[[T], T]] = {
    "fastgelu": lambda x: x * torch.sigmoid(1.702 * x),
    "gelu": F.gelu,
    "relu": torch.relu,
    "silu": F.silu,
}


_GATED: dict[str, Callable[[T], T]] = {"geglu": F.gelu, "swiglu": F.silu, "reglu": torch.relu}


def _activated(x: T, activation: str) -> T:
    if activation in _GATED:
        first, second = x.chunk(2, -1)
        return _GATED[activation](first) * second
    if activation not in _OF_FFN:
        raise ValueError(f"activation {activation!r} is not one of {', '.join((*_OF_FFN, *_GATED))}")
    return _OF_FFN[activation](x)


@host_kernel("FFN", ignores=("inner_precise",))
def ffn(
    x: T,
    weight1: T,
    weight2: T,
    expert_tokens: T | None = None,
    bias1: T | None = None,
    bias2: T | None = None,
    scale: T | None = None,
    offset: T | None = None,
    deq_scale1: T | None = None,
    deq_scale2: T | None = None,
    antiquant_scale1: T | None = None,
    antiquant_scale2: T | None = None,
    antiquant_offset1: T | None = None,
    antiquant_offset2: T | None = None,
    *,
    activation: str,
    output_dtype: int = 0,
    tokens_index_flag: bool = False,
) -> T:
    """Compute two matmuls with an activation between them.

    With experts, each has its own rows, given by their number or their end.
    """
    quantized = x.dtype is torch.int8
    target = (torch.float16, torch.bfloat16)[output_dtype] if quantized else x.dtype
    flat = x.reshape(-1, x.size(-1))

    def run(rows: T, expert: int | None) -> T:
        def of(values: T | None) -> T | None:
            return values if values is None or expert is None else values[expert]

        def product(a: T, weight: T, bias: T | None, dequant: T | None, anti: tuple[T | None, T | None]) -> T:
            w = of(weight)
            assert w is not None
            return group_matmul(a, w, of(dequant), None, (of(anti[0]), of(anti[1])), None, of(bias))

        hidden = product(rows, weight1, bias1, deq_scale1, (antiquant_scale1, antiquant_offset1))
        hidden = _activated(hidden.float(), activation)
        if quantized:
            factor, shift = of(scale), of(offset)
            if factor is None:
                raise ValueError("x of int8 needs scale")
            hidden = saturated(hidden * factor.float() + (0 if shift is None else shift.float()))
        elif antiquant_scale1 is not None or weight1.dtype.is_floating_point:
            hidden = hidden.to(x.dtype)
        return product(hidden, weight2, bias2, deq_scale2, (antiquant_scale2, antiquant_offset2)).to(target)

    if expert_tokens is None or not expert_tokens.numel():
        y = run(flat, None)
        return y.reshape(*x.shape[:-1], y.size(-1))
    y = flat.new_zeros(flat.size(0), weight2.size(-1), dtype=target)
    if x.is_meta:
        return y.reshape(*x.shape[:-1], -1)
    spans = group_spans(expert_tokens, 0 if tokens_index_flag else 1, flat.size(0))
    if spans[-1][2] != flat.size(0):
        raise ValueError(f"expert_tokens {expert_tokens.tolist()} must end with the number of rows, {flat.size(0)}")
    for expert, start, end in spans:
        y[start:end] = run(flat[start:end], expert)
    return y.reshape(*x.shape[:-1], -1)


@host_kernel("AddLora")
def add_lora(
    y: T,
    x: T,
    weightB: T,  # noqa: N803 - GE's name
    indices: T,
    weightA: T | None = None,  # noqa: N803
    *,
    layer_idx: int = 0,
    scale: float = 1e-3,
    y_offset: int = 0,
    y_slice_size: int = -1,
) -> T:
    """Add to a slice of each row of y its row of x times the two matrices of its adapter.

    The index after the last adapter means none.
    """
    adapters = weightB.size(0)
    if not y.is_meta and bool(((indices < 0) | (indices > adapters)).any()):
        raise ValueError(f"indices {indices.tolist()}: there are adapters 0 to {adapters - 1}, and {adapters} for none")
    places = indices.long().clamp(max=adapters - 1)
    hidden = x.float()
    if weightA is not None:
        hidden = torch.einsum("nk,nrk->nr", hidden, weightA[places, layer_idx].float())
    part = torch.einsum("nr,nor->no", hidden, weightB[places, layer_idx].float()) * scale
    part = part.masked_fill((indices >= adapters).unsqueeze(-1), 0)
    size = part.size(-1) if y_slice_size < 0 else y_slice_size
    result = y.float()
    result = torch.cat(
        [result[:, :y_offset], result[:, y_offset : y_offset + size] + part[:, :size], result[:, y_offset + size :]], 1
    )
    return result.to(y.dtype)
