"""HiFloat8 attention for training, with a scale for each block of tokens, and its gradient."""

from __future__ import annotations

import torch

from ascend_graph.host.kernels.checks import check_choice, check_shape
from ascend_graph.host.kernels.quantization.hifloat8 import decoded
from ascend_graph.host.kernels.registry import host_kernel
from ascend_graph.prototypes import DataType

T = torch.Tensor

_BFLOAT16 = 1
#: Number of tokens that share a scale.
_BLOCKS = {"dScaleQ": 128, "dScaleK": 256, "dScaleV": 512}
_BLOCK_OF_GRADIENTS = 512
#: Shapes of keys by the shape of queries, [batch, tokens, heads, numbers]: the documented cases of the forward and the
#: gradient.
_SCENES: dict[tuple[int, ...], tuple[int, ...]] = {
    (1, 57600, 5, 128): (1, 57600, 5, 128),
    (1, 7200, 40, 128): (1, 512, 40, 128),
}
_SCENES_OF_GRADIENTS: dict[tuple[int, ...], tuple[int, ...]] = _SCENES | {
    shape: shape for shape in ((1, 54000, 5, 128), (1, 9360, 40, 128), (1, 54000, 10, 128), (1, 9360, 80, 128))
}


@host_kernel("QuantFlashAttentionScore", ignores=("pre_tokens", "next_tokens", "sparse_mode"))
def quant_flash_attention_score(
    query: T,
    key: T,
    value: T,
    d_scale_q: T,
    d_scale_k: T,
    d_scale_v: T,
    p_scale: T,
    *,
    scale_value: float = 1.0,
    head_num: int,
    input_layout: str,
) -> tuple[T, T, T]:
    """Return the softmax's maxima and sums, and the result.

    ``p_scale`` and its inverse leave the formula as it is.
    """
    _check(query, key, value, head_num, input_layout, _SCENES)
    scales = _factors(
        {"dScaleQ": (query, d_scale_q), "dScaleK": (key, d_scale_k), "dScaleV": (value, d_scale_v)}, _BLOCKS
    )
    _one("pScale", p_scale)
    shape = (query.size(0), head_num, query.size(1), 1)
    top, total = (torch.empty(shape, device=query.device) for _ in range(2))
    out = torch.empty(query.shape, dtype=torch.bfloat16, device=query.device)
    if query.is_meta:
        return top, total, out
    for batch in range(query.size(0)):
        for head in range(head_num):
            q, k, v = (
                decoded(x[batch, :, head]) * s[batch, head] for x, s in zip((query, key, value), scales, strict=True)
            )
            scores = (q @ k.t()).mul_(scale_value)
            top[batch, head] = scores.amax(-1, keepdim=True)
            weights = scores.sub_(top[batch, head]).exp_()
            total[batch, head] = weights.sum(-1, keepdim=True)
            out[batch, :, head] = ((weights @ v) / total[batch, head]).bfloat16()
    return top, total, out


@host_kernel("QuantFlashAttentionScoreGrad", ignores=("pre_tokens", "next_tokens", "sparse_mode"))
def quant_flash_attention_score_grad(
    query: T,
    key: T,
    value: T,
    dy: T,
    softmax_max: T,
    softmax_sum: T,
    attention_in: T,
    d_scale_q: T,
    d_scale_k: T,
    d_scale_v: T,
    d_scale_dy: T,
    ds_scale: T,
    p_scale: T,
    *,
    scale_value: float = 1.0,
    head_num: int,
    input_layout: str,
    out_dtype: int = _BFLOAT16,
) -> tuple[T, T, T]:
    """Return the gradients of queries, keys and values by the formula.

    The scales of intermediate results do not change them.
    """
    _check(query, key, value, head_num, input_layout, _SCENES_OF_GRADIENTS)
    if dy.shape != query.shape or attention_in.shape != query.shape or out_dtype != _BFLOAT16:
        raise ValueError(
            f"dy {tuple(dy.shape)}, attentionIn {tuple(attention_in.shape)}: valid is {tuple(query.shape)}; outDtype {out_dtype}: "
            f"{_BFLOAT16} (bfloat16) is supported"
        )
    given = {"dScaleQ": (query, d_scale_q), "dScaleK": (key, d_scale_k), "dScaleV": (value, d_scale_v)}
    scales = _factors(given | {"dScaleDy": (dy, d_scale_dy)}, dict.fromkeys([*given, "dScaleDy"], _BLOCK_OF_GRADIENTS))
    for name, values in (("dsScale", ds_scale), ("pScale", p_scale)):
        _one(name, values)
    statistics = (query.size(0), head_num, query.size(1), 1)
    for name, values in (("softmaxMax", softmax_max), ("softmaxSum", softmax_sum)):
        check_shape(name, values, statistics)
    grads = [torch.empty(x.shape, dtype=torch.bfloat16, device=x.device) for x in (query, key, value)]
    if query.is_meta:
        return grads[0], grads[1], grads[2]
    for batch in range(query.size(0)):
        for head in range(head_num):
            q, k, v, g = (
                decoded(x[batch, :, head]) * s[batch, head]
                for x, s in zip((query, key, value, dy), scales, strict=True)
            )
            p = (q @ k.t()).mul_(scale_value).sub_(softmax_max[batch, head]).exp_().div_(softmax_sum[batch, head])
            of_v = p.t() @ g
            rest = (g * attention_in[batch, :, head].float()).sum(-1, keepdim=True)
            of_scores = (g @ v.t()).sub_(rest).mul_(p).mul_(scale_value)
            for target, result in zip(grads, (of_scores @ k, of_scores.t() @ q, of_v), strict=True):
                target[batch, :, head] = result.bfloat16()
    return grads[0], grads[1], grads[2]


def _check(query: T, key: T, value: T, heads: int, layout: str, scenes: dict[tuple[int, ...], tuple[int, ...]]) -> None:
    check_choice("inputLayout", layout, "BSND")
    for name, tensor in (("query", query), ("key", key), ("value", value)):
        if getattr(tensor, "ge_dtype", None) != DataType.HIFLOAT8:
            raise ValueError(f"{name} is {tensor.dtype}; hifloat8 is supported")
    if scenes.get(tuple(query.shape)) != tuple(key.shape) or value.shape != key.shape or heads != query.size(2):
        shown = "; ".join(f"{q} and {k}" for q, k in scenes.items())
        raise ValueError(
            f"query {tuple(query.shape)}, key {tuple(key.shape)}, value {tuple(value.shape)}, headNum {heads}: "
            "expected the heads of query as headNum, and queries and "
            f"keys {shown}"
        )


def _factors(given: dict[str, tuple[T, T]], blocks: dict[str, int]) -> list[T]:
    """Return the scale of each token, [batch, heads, tokens, 1]."""
    found = []
    for name, (tensor, scale) in given.items():
        batch, tokens, heads, _ = tensor.shape
        valid = (batch, heads, -(-tokens // blocks[name]), 1)
        if scale.shape != valid:
            raise ValueError(
                f"{name} of shape {tuple(scale.shape)}: with blocks of {blocks[name]} tokens valid is {valid}"
            )
        found.append(scale.repeat_interleave(blocks[name], 2)[:, :, :tokens])
    return found


def _one(name: str, values: T) -> None:
    check_shape(name, values, (1,))
    if not values.is_meta and not bool(values != 0):
        raise ValueError(f"{name} is 0; expected a scale that can be divided by")
