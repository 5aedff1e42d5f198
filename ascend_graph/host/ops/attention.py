"""Attention of training, and rotary embeddings."""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import math

import torch

from ascend_graph.host.ops.registry import host_kernel

T = torch.Tensor

#: Where batch, heads, sequence and head dimension are in a layout of four dimensions.
_PERMUTATIONS = {"BNSD": (0, 1, 2, 3), "BSND": (0, 2, 1, 3)}
#: GE repeats the statistics of the softmax to fill a block of memory.
_STATISTICS_WIDTH = 8


def _heads(x: T, layout: str, heads: int) -> T:
    """A tensor of any layout as [batch, heads, sequence, head dimension]."""
    if layout == "BSH":
        return x.reshape(x.size(0), x.size(1), heads, -1).transpose(1, 2)
    if layout == "SBH":
        return x.reshape(x.size(0), x.size(1), heads, -1).permute(1, 2, 0, 3)
    if layout in _PERMUTATIONS:
        return x.permute(_PERMUTATIONS[layout])
    raise ValueError(f"input_layout {layout!r} is not supported; BSH, SBH, BNSD and BSND are")


def _laid_out(x: T, layout: str) -> T:
    """The reverse of ``_heads``."""
    if layout == "BSH":
        return x.transpose(1, 2).flatten(2)
    if layout == "SBH":
        return x.permute(2, 0, 1, 3).flatten(2)
    return x.permute(_PERMUTATIONS[layout]).contiguous()


def _masked_out(scores: T, mask: T | None, sparse_mode: int, before: int, after: int) -> T | None:
    """Which scores do not count: masks are true there; bands are of tokens before and after the query's own.

    Modes: 0 the mask, within the band; 1 the mask alone; 2 and 3 causal, from the first and to the last key.
    """
    queries, keys = scores.shape[-2:]
    if sparse_mode not in (0, 1, 2, 3):
        raise ValueError(f"sparse_mode {sparse_mode} is not supported; 0, 1, 2 and 3 are")
    if mask is None:
        if sparse_mode:
            raise ValueError(f"sparse_mode {sparse_mode} needs atten_mask")
        return None
    distance = torch.arange(keys, device=scores.device) - torch.arange(queries, device=scores.device).unsqueeze(1)
    if sparse_mode >= 2:
        return distance > (keys - queries if sparse_mode == 3 else 0)
    masked = mask.bool()
    if sparse_mode == 0:
        masked = masked | (distance > after) | (distance < -before)
    return masked


def _scores(query: T, key: T, scale: float, bias: T | None, sparse: tuple[T | None, int, int, int]) -> T:
    scores = query.float() @ key.float().transpose(-1, -2) * scale
    if bias is not None:
        scores = scores + bias.float()
    masked = _masked_out(scores, *sparse)
    return scores if masked is None else scores.masked_fill(masked, -math.inf)


def _softmax(scores: T) -> tuple[T, T, T]:
    """Probabilities, row maxima and row sums; a row in which nothing counts is all zeros."""
    top = scores.amax(-1, keepdim=True)
    weights = torch.exp(scores - torch.where(top == -math.inf, 0, top))
    total = weights.sum(-1, keepdim=True)
    return weights / torch.where(total == 0, 1, total), top, total


def _shared(kv: T, heads: int) -> T:
    """Keys or values once for each head of the query."""
    return kv.repeat_interleave(heads // kv.size(1), 1) if kv.size(1) != heads else kv


def _attention(
    query: T,
    key: T,
    value: T,
    heads: int,
    kv_heads: int,
    layout: str,
    scale: float,
    bias: T | None,
    sparse: tuple[T | None, int, int, int],
) -> tuple[T, T, T, T]:
    """Attention in the input's layout, its probabilities, and the maxima and sums of the softmax."""
    q = _heads(query, layout, heads)
    k = _shared(_heads(key, layout, kv_heads), q.size(1))
    v = _shared(_heads(value, layout, kv_heads), q.size(1))
    probabilities, top, total = _softmax(_scores(q, k, scale, bias, sparse))
    return _laid_out((probabilities @ v.float()).to(query.dtype), layout), probabilities, top, total


def _reject(**inputs: T | None) -> None:
    present = [name for name, value in inputs.items() if value is not None]
    if present:
        raise ValueError(f"{', '.join(present)}: not supported on the host")


def _kv_heads(key: T, query: T, heads: int, layout: str) -> int:
    """The number of heads that keys have: as many as fit at the query's head dimension."""
    if layout in ("BSH", "SBH"):
        return key.size(-1) * heads // query.size(-1)
    return key.size(layout.index("N"))


@host_kernel("FlashAttentionScore", ignores=("inner_precise",))
def flash_attention_score(
    query: T,
    key: T,
    value: T,
    real_shift: T | None = None,
    drop_mask: T | None = None,
    padding_mask: T | None = None,
    atten_mask: T | None = None,
    prefix: T | None = None,
    actual_seq_qlen: T | None = None,
    actual_seq_kvlen: T | None = None,
    q_start_idx: T | None = None,
    kv_start_idx: T | None = None,
    *,
    scale_value: float = 1.0,
    keep_prob: float = 1.0,
    pre_tockens: int = 2147483647,
    next_tockens: int = 2147483647,
    head_num: int,
    input_layout: str,
    sparse_mode: int = 0,
) -> tuple[T, T, T, T]:
    _reject(real_shift=real_shift, drop_mask=drop_mask, padding_mask=padding_mask, prefix=prefix)
    _reject(actual_seq_qlen=actual_seq_qlen, actual_seq_kvlen=actual_seq_kvlen)
    _keep_all(keep_prob)
    sparse = (atten_mask, sparse_mode, pre_tockens, next_tockens)
    kv_heads = _kv_heads(key, query, head_num, input_layout)
    y, _, top, total = _attention(query, key, value, head_num, kv_heads, input_layout, scale_value, None, sparse)
    wide = (*top.shape[:-1], _STATISTICS_WIDTH)
    return top.expand(wide).contiguous(), total.expand(wide).contiguous(), query.new_empty(0), y


def _keep_all(keep_prob: float) -> None:
    if keep_prob != 1.0:
        raise ValueError(f"keep_prob={keep_prob} is not supported; attention without dropout, 1.0, is")


@host_kernel("FlashAttentionScoreGrad", ignores=("inner_precise",))
def flash_attention_score_grad(
    query: T,
    key: T,
    value: T,
    dy: T,
    pse_shift: T | None = None,
    drop_mask: T | None = None,
    padding_mask: T | None = None,
    atten_mask: T | None = None,
    softmax_max: T | None = None,
    softmax_sum: T | None = None,
    softmax_in: T | None = None,
    attention_in: T | None = None,
    prefix: T | None = None,
    actual_seq_qlen: T | None = None,
    actual_seq_kvlen: T | None = None,
    q_start_idx: T | None = None,
    kv_start_idx: T | None = None,
    *,
    scale_value: float = 1.0,
    keep_prob: float = 1.0,
    pre_tockens: int = 65536,
    next_tockens: int = 65536,
    head_num: int,
    input_layout: str,
    sparse_mode: int = 0,
) -> tuple[T, T, T, T]:
    _reject(pse_shift=pse_shift, drop_mask=drop_mask, padding_mask=padding_mask, prefix=prefix)
    _reject(actual_seq_qlen=actual_seq_qlen, actual_seq_kvlen=actual_seq_kvlen)
    _keep_all(keep_prob)
    kv_heads = _kv_heads(key, query, head_num, input_layout)
    q = _heads(query, input_layout, head_num).float()
    k, v = (_shared(_heads(x, input_layout, kv_heads), q.size(1)).float() for x in (key, value))
    grad = _heads(dy, input_layout, head_num).float()
    sparse = (atten_mask, sparse_mode, pre_tockens, next_tockens)
    probabilities, _, _ = _softmax(_scores(q, k, scale_value, None, sparse))
    dp = grad @ v.transpose(-1, -2)
    ds = probabilities * (dp - (dp * probabilities).sum(-1, keepdim=True)) * scale_value
    gradients = (ds @ k, ds.transpose(-1, -2) @ q, probabilities.transpose(-1, -2) @ grad)
    dq, dk, dv = (
        _laid_out(_summed_over_shared(g, heads), input_layout).to(query.dtype)
        for g, heads in zip(gradients, (q.size(1), kv_heads, kv_heads), strict=True)
    )
    return dq, dk, dv, query.new_empty(0)


def _summed_over_shared(grad: T, heads: int) -> T:
    return grad if grad.size(1) == heads else grad.unflatten(1, (heads, -1)).sum(2)


def _rotated(x: T, interleaved: bool) -> T:
    if interleaved:
        even, odd = x[..., ::2], x[..., 1::2]
        return torch.stack([-odd, even], -1).flatten(-2)
    first, second = x.chunk(2, -1)
    return torch.cat([-second, first], -1)


def _rotary(x: T, cos: T, sin: T, mode: int) -> T:
    if mode not in (0, 1):
        raise ValueError(f"mode {mode} is not supported; 0, half, and 1, interleaved, are")
    wide = x.float()
    return (wide * cos.float() + _rotated(wide, mode == 1) * sin.float()).to(x.dtype)


@host_kernel("RotaryMul")
def rotary_mul(x: T, r1: T, r2: T) -> T:
    return _rotary(x, r1, r2, 0)


@host_kernel("RotaryPositionEmbedding")
def rotary_position_embedding(x: T, cos: T, sin: T, rotate: T | None = None, *, mode: int = 0) -> T:
    if rotate is not None:
        return (x.float() * cos.float() + x.float() @ rotate.float() * sin.float()).to(x.dtype)
    return _rotary(x, cos, sin, mode)


@host_kernel("RotaryPositionEmbeddingGrad")
def rotary_position_embedding_grad(dy: T, cos: T, sin: T, x: T | None = None, *, mode: int = 0) -> tuple[T, T, T]:
    """The gradients by x, cos and sin; the last two only where x is given."""
    if mode not in (0, 1):
        raise ValueError(f"mode {mode} is not supported; 0, half, and 1, interleaved, are")
    grad = dy.float()
    dx = (grad * cos.float() - _rotated(grad * sin.float(), mode == 1)).to(dy.dtype)
    if x is None:
        return dx, cos.new_empty(0), sin.new_empty(0)
    wide = x.float()
    dcos = (grad * wide).sum_to_size(cos.shape).to(cos.dtype)
    dsin = (grad * _rotated(wide, mode == 1)).sum_to_size(sin.shape).to(sin.dtype)
    return dx, dcos, dsin


@host_kernel("InterleaveRope")
def interleave_rope(x: T, cos: T, sin: T) -> T:
    halves = x.unflatten(-1, (-1, 2)).transpose(-1, -2).flatten(-2)
    return _rotary(halves, cos, sin, 0)


@host_kernel("ApplyRotaryPosEmb", writes=("query", "key"))
def apply_rotary_pos_emb(
    query: T, key: T, cos: T, sin: T, *, layout: int = 1, rotary_mode: str = "half"
) -> tuple[T, T]:
    del layout  # cosines and sines broadcast against heads whatever the layout is
    modes = {"half": 0, "interleave": 1}
    if rotary_mode not in modes:
        raise ValueError(f"rotary_mode {rotary_mode!r} is not supported; half and interleave are")
    mode = modes[rotary_mode]
    return query.copy_(_rotary(query, cos, sin, mode)), key.copy_(_rotary(key, cos, sin, mode))
