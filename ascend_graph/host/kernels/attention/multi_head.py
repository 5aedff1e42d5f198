"""Multi-head attention with its projections in one operator, and its gradient: single operators, float16 only.

The document of torch_npu.npu_multi_head_attention (https://gitcode.com/Ascend/op-plugin) names the inputs and outputs.
Its test (https://gitcode.com/Ascend/pytorch, test/custom_ops/test_npu_multi_head_attention.py) gives the computation.
"""

from __future__ import annotations

import torch

from ascend_graph.host.kernels.checks import check_multiple
from ascend_graph.host.kernels.registry import host_kernel

T = torch.Tensor

_ALIGNED = 16


def _heads(x: T, length: int, heads: int) -> T:
    return x.reshape(-1, length, heads, x.size(-1) // heads).transpose(1, 2)


def _rows(x: T) -> T:
    """Return [batch, heads, length, head size] as rows, heads side by side."""
    return x.transpose(1, 2).flatten(0, 1).flatten(1)


def _checked(heads: int, size: int, src_len: int, tgt_len: int, keep_prob: float, weights: list[T]) -> int:
    sizes = {"attn_head_num": heads, "attn_dim_per_head": size, "src_len": src_len, "tgt_len": tgt_len}
    for name, value in sizes.items():
        check_multiple(name, value, _ALIGNED)
    if keep_prob != 1:
        raise ValueError(
            f"keep_prob {keep_prob}: documents do not say how a mask is drawn or kept; dropout_prob 0 is supported"
        )
    width = heads * size
    if any(w.shape != (width, width) for w in weights):
        raise ValueError(f"weights {[tuple(w.shape) for w in weights]}: [{width}, {width}] are expected")
    return width


@host_kernel("MultiHeadAttention")
def multi_head_attention(
    query: T,
    key: T,
    value: T,
    query_weight: T,
    key_weight: T,
    value_weight: T,
    attn_mask: T,
    out_proj_weight: T,
    query_bias: T | None = None,
    key_bias: T | None = None,
    value_bias: T | None = None,
    out_proj_bias: T | None = None,
    dropout_mask_input: T | None = None,
    *,
    attn_head_num: int,
    attn_dim_per_head: int,
    src_len: int,
    tgt_len: int,
    keep_prob: float,
    softmax_use_float: bool,
) -> tuple[T, ...]:
    """Compute multi-head attention and return the result with the tensors that the gradient needs.

    These are a mask that keeps everything, scaled queries, keys, values, probabilities, the same in float16, and the
    input of the output projection.
    """
    weights = [query_weight, key_weight, value_weight, out_proj_weight]
    width = _checked(attn_head_num, attn_dim_per_head, src_len, tgt_len, keep_prob, weights)
    biases = [query_bias, key_bias, value_bias, out_proj_bias]
    given = [b for b in biases if b is not None]
    if len(given) not in (0, 4) or any(
        b.shape != (width,) for b in given
    ):  # those that are absent are not in their places
        raise ValueError(
            f"biases {[tuple(b.shape) for b in given]}: four of [{width}] are expected, or none and no dropout_mask"
        )
    if dropout_mask_input is not None and not given:
        raise ValueError("dropout_mask without biases cannot be told from a bias; give all four biases with it")
    half = query.dtype

    def projected(x: T, number: int) -> T:
        bias = biases[number]
        wide = None if bias is None else bias.float()
        return torch.nn.functional.linear(x.float(), weights[number].float(), wide).to(half)

    q = _heads(projected(query, 0) * attn_dim_per_head**-0.5, tgt_len, attn_head_num)
    k, v = (_heads(projected(x, n), src_len, attn_head_num) for n, x in ((1, key), (2, value)))
    products = (q.float() @ k.float().transpose(-1, -2)).to(half)
    scores = torch.softmax((products + attn_mask).float(), -1)
    scores = scores if softmax_use_float else scores.to(half)
    probs = scores.to(half)
    context = _rows((probs.float() @ v.float()).to(half))
    kept = torch.full((probs.numel() // 8,), 255, dtype=torch.uint8, device=query.device)
    q, k, v = (x.contiguous() for x in (q, k, v))
    return projected(context, 3), kept, q, k, v, scores, probs, context


@host_kernel("MultiHeadAttentionGrad", ignores=("bias_grad_mask", "softmax_use_float"))
def multi_head_attention_grad(
    query: T,
    key: T,
    value: T,
    query_weight: T,
    key_weight: T,
    value_weight: T,
    out_proj_weight: T,
    query_res: T,
    key_res: T,
    value_res: T,
    attn_scores: T,
    attn_res: T,
    context: T,
    y_grad: T,
    dropout_mask: T | None = None,
    *,
    attn_head_num: int,
    attn_dim_per_head: int,
    src_len: int,
    tgt_len: int,
    keep_prob: float,
) -> tuple[T, ...]:
    """Return the gradients of the weights, of queries, keys and values, and of biases [1, width].

    The gradients of biases are computed even if the forward has no biases.
    """
    del dropout_mask  # keeps everything
    weights = [query_weight, key_weight, value_weight, out_proj_weight]
    _checked(attn_head_num, attn_dim_per_head, src_len, tgt_len, keep_prob, weights)
    half, dy = query.dtype, y_grad.float()
    by_context = _heads(dy @ out_proj_weight.float(), tgt_len, attn_head_num)
    scores, by_probs = attn_scores.float(), by_context @ value_res.float().transpose(-1, -2)
    by_products = scores * (by_probs - (by_probs * scores).sum(-1, keepdim=True))
    by_v = attn_res.float().transpose(-1, -2) @ by_context
    by_q = by_products @ key_res.float() * attn_dim_per_head**-0.5
    by_k = by_products.transpose(-1, -2) @ query_res.float()
    of_projections = [_rows(x) for x in (by_q, by_k, by_v)]
    inputs = [query, key, value]
    of_weights = [g.t() @ x.float() for g, x in zip([*of_projections, dy], [*inputs, context], strict=True)]
    of_inputs = [g @ w.float() for g, w in zip(of_projections, weights[:3], strict=True)]
    of_biases = [g.sum(0, keepdim=True) for g in (*of_projections, dy)]
    return tuple(g.to(half) for g in (*of_weights, *of_inputs, *of_biases))
