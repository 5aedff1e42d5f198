"""Attention of training, and rotary embeddings."""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch

from ascend_graph.host.ops.attention_masks import check_triangle
from ascend_graph.host.ops.creation import bits_of
from ascend_graph.host.ops.registry import host_kernel

T = torch.Tensor

#: GE repeats the statistics of the softmax to fill a block of memory.
STATISTICS_WIDTH = 8
_LAYOUTS = ("BSH", "SBH", "BNSD", "BSND", "TND")


def _heads(x: T, layout: str, heads: int) -> T:
    """A tensor of any layout as [batch, heads, sequence, head dimension]; sequences that follow each other are a batch of one."""
    match layout:
        case "BSH":
            return x.reshape(x.size(0), x.size(1), heads, -1).transpose(1, 2)
        case "SBH":
            return x.reshape(x.size(0), x.size(1), heads, -1).permute(1, 2, 0, 3)
        case "BNSD":
            return x
        case "BSND":
            return x.transpose(1, 2)
        case "TND":
            return x.transpose(0, 1).unsqueeze(0)
    raise ValueError(f"input_layout {layout!r} is not one of {', '.join(_LAYOUTS)}")


def _laid_out(x: T, layout: str) -> T:
    """The reverse of ``_heads``."""
    match layout:
        case "BSH":
            return x.transpose(1, 2).flatten(2)
        case "SBH":
            return x.permute(2, 0, 1, 3).flatten(2)
        case "BNSD":
            return x.contiguous()
        case "BSND":
            return x.transpose(1, 2).contiguous()
    return x[0].transpose(0, 1).contiguous()


@dataclass(frozen=True, slots=True)
class _Masking:
    """Which scores do not count: masks are true there; bands are of tokens before and after the query's own.

    Modes: 0 the mask, within the band; 1 the mask alone; 2 and 3 causal, from the first and to the last key; 4 a band that
    ends at the last key; 5 and 6 causal to the last key, and the first keys for all.
    """

    mask: T | None
    mode: int
    before: int
    after: int
    prefix: Sequence[int] = ()

    def __post_init__(self) -> None:
        if self.mode not in (0, 1, 2, 3, 4, 5, 6):
            raise ValueError(f"sparse_mode {self.mode} is not supported; 0 to 6 are")
        if self.mode and self.mask is None:
            raise ValueError(f"sparse_mode {self.mode} needs atten_mask")
        if self.mask is not None and self.mode in (2, 3, 4, 6):
            check_triangle(self.mask, self.mode, 3072 if self.mode == 6 else 2048)

    def of(self, sequence: int | None, batch: int, queries: int, keys: int, device: torch.device) -> T | None:
        """For scores of [batch, heads, queries, keys]; ``sequence`` is the number of one of several of other lengths."""
        if self.mask is None:
            return None
        if self.mode in (0, 1):
            if self.mask.size(-2) < queries or self.mask.size(-1) < keys:
                raise ValueError(
                    f"atten_mask of shape {tuple(self.mask.shape)} is smaller than {queries} queries and {keys} keys"
                )
            masked = self.mask[..., :queries, :keys].bool()
            return masked | self._outside(queries, keys, 0, device) if self.mode == 0 else masked
        if self.mode == 2:
            return _Masking(self.mask, 2, queries + keys, 0)._outside(queries, keys, 0, device)
        if self.mode == 4:
            return self._outside(queries, keys, keys - queries, device)
        causal = _Masking(self.mask, 3, queries + keys, 0)._outside(queries, keys, keys - queries, device)
        if self.mode == 3:
            return causal
        numbers = self.prefix[sequence : sequence + 1] if sequence is not None else self.prefix
        if len(numbers) not in (1, batch):
            raise ValueError(f"prefix {list(self.prefix)}: a number for each of {batch} sequences is needed")
        first = torch.tensor(numbers, device=device).reshape(-1, 1, 1, 1)
        return causal & (torch.arange(keys, device=device) >= first)

    def _outside(self, queries: int, keys: int, shift: int, device: torch.device) -> T:
        distance = torch.arange(keys, device=device) - torch.arange(queries, device=device).unsqueeze(1) - shift
        return (distance > self.after) | (distance < -self.before)


class _Part(NamedTuple):
    """Sequences of one length: a slice of the queries and of the keys, what is added to and left out of their scores, and which
    probabilities dropout keeps."""

    queries: slice
    keys: slice
    bias: T | None
    masked: T | None
    kept: T | None

    def dropped(self, probabilities: T, keep_prob: float) -> T:
        """Probabilities, or their gradients, after dropout."""
        return probabilities if self.kept is None else torch.where(self.kept, probabilities / keep_prob, 0)


def _numbers(x: T | None) -> list[int]:
    return [] if x is None or x.is_meta else [int(n) for n in x.reshape(-1).tolist()]


def _parts(
    query: T,
    key: T,
    layout: str,
    ends: tuple[T | None, T | None],
    pse: T | None,
    masking: _Masking,
    drop_mask: T | None,
) -> Iterator[_Part]:
    """All sequences at once, or one after the other where they follow each other.

    A mask of dropout has a bit for each probability, of [heads, queries, keys] of one sequence after the other.
    """
    heads = query.size(1)
    batch, queries, keys = query.size(0), query.size(2), key.size(2)
    if layout != "TND":
        bias = None if pse is None else pse[..., :queries, :keys]
        kept = None if drop_mask is None else bits_of(drop_mask, batch * heads * queries * keys).bool()
        kept = None if kept is None else kept.view(batch, heads, queries, keys)
        masked = masking.of(None, batch, queries, keys, query.device)
        yield _Part(slice(0, queries), slice(0, keys), bias, masked, kept)
        return
    q_ends, k_ends = _numbers(ends[0]), _numbers(ends[1])
    if query.is_meta:
        return
    if not q_ends or len(q_ends) != len(k_ends) or q_ends[-1] > queries or k_ends[-1] > keys:
        raise ValueError(
            f"actual_seq_qlen {q_ends} and actual_seq_kvlen {k_ends} do not suit {queries} queries and {keys} keys"
        )
    q_start = k_start = used = 0
    for number, (q_end, k_end) in enumerate(zip(q_ends, k_ends, strict=True)):
        if q_end < q_start or k_end < k_start:
            raise ValueError(f"actual_seq_qlen {q_ends} and actual_seq_kvlen {k_ends} must not fall")
        s, t = q_end - q_start, k_end - k_start
        bias = None if pse is None else pse[number if pse.size(0) > 1 else 0][..., :s, :t]
        kept = (
            None if drop_mask is None else bits_of(drop_mask, used + heads * s * t)[used:].bool().view(1, heads, s, t)
        )
        masked = masking.of(number, 1, s, t, query.device)
        yield _Part(slice(q_start, q_end), slice(k_start, k_end), bias, masked, kept)
        used += heads * s * t
        q_start, k_start = q_end, k_end


def _scores(query: T, key: T, scale: float, part: _Part, pse_type: int) -> T:
    """Bias and then scale (pse_type 0), or scale and then bias (1)."""
    scores = query.float() @ key.float().transpose(-1, -2)
    if part.bias is None:
        scores = scores * scale
    else:
        scores = (scores + part.bias.float()) * scale if pse_type == 0 else scores * scale + part.bias.float()
    return scores if part.masked is None else scores.masked_fill(part.masked, -math.inf)


def softmax_with_statistics(scores: T, sink: T | None = None) -> tuple[T, T, T]:
    """Probabilities, row maxima and row sums; a row in which nothing counts is all zeros."""
    top = scores.amax(-1, keepdim=True)
    if sink is not None:
        sink = sink.float().reshape(-1, 1, 1)
        top = torch.maximum(top, sink)
    weights = torch.exp(scores - torch.where(top == -math.inf, 0, top))
    total = weights.sum(-1, keepdim=True)
    if sink is not None:
        total = total + torch.exp(sink - top)
    return weights / torch.where(total == 0, 1, total), top, total


def _shared(kv: T, heads: int) -> T:
    """Keys or values once for each head of the query."""
    return kv.repeat_interleave(heads // kv.size(1), 1) if kv.size(1) != heads else kv


def _kv_heads(key: T, query: T, heads: int, layout: str) -> int:
    """The number of heads that keys have: as many as fit at the query's head dimension."""
    if layout in ("BSH", "SBH"):
        return key.size(-1) * heads // query.size(-1)
    return key.size(layout.index("N"))


def _check(
    query: T,
    key: T,
    heads: int,
    layout: str,
    drop_mask: T | None,
    keep_prob: float,
    pse_type: int,
    starts: Sequence[T | None],
) -> None:
    if layout not in _LAYOUTS:
        raise ValueError(f"input_layout {layout!r} is not one of {', '.join(_LAYOUTS)}")
    if layout in ("BNSD", "BSND", "TND") and query.size(layout.index("N")) != heads:
        raise ValueError(f"head_num {heads} is not the N of query {tuple(query.shape)} in layout {layout}")
    kv_heads = _kv_heads(key, query, heads, layout)
    if not kv_heads or heads % kv_heads:
        raise ValueError(f"the {kv_heads} heads of the keys do not divide head_num {heads}")
    if not 0 < keep_prob <= 1 or (keep_prob < 1 and drop_mask is None):
        raise ValueError(f"keep_prob={keep_prob}: valid are those above 0, up to 1, and below 1 with drop_mask")
    if pse_type not in (0, 1) or any(any(_numbers(start)) for start in starts):
        raise ValueError(f"pse_type {pse_type}: 0 and 1 are supported, and q_start_idx and kv_start_idx of 0")


def _reject(**inputs: T | None) -> None:
    present = [name for name, value in inputs.items() if value is not None and value.numel()]
    if present:
        raise ValueError(f"{', '.join(present)}: not supported on the host")


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
    sink: T | None = None,
    *,
    scale_value: float = 1.0,
    keep_prob: float = 1.0,
    pre_tockens: int = 2147483647,
    next_tockens: int = 2147483647,
    head_num: int,
    input_layout: str,
    sparse_mode: int = 0,
    pse_type: int = 0,
) -> tuple[T, T, T, T]:
    """The maxima and sums of the softmax, nothing, and the result."""
    _reject(padding_mask=padding_mask)
    _check(query, key, head_num, input_layout, drop_mask, keep_prob, pse_type, (q_start_idx, kv_start_idx))
    kv_heads = _kv_heads(key, query, head_num, input_layout)
    q = _heads(query, input_layout, head_num)
    k, v = (_shared(_heads(x, input_layout, kv_heads), q.size(1)) for x in (key, value))
    masking = _Masking(atten_mask, sparse_mode, pre_tockens, next_tockens, _numbers(prefix))
    y = q.new_zeros(*q.shape[:3], v.size(-1))
    top, total = (q.new_zeros(*q.shape[:3], STATISTICS_WIDTH, dtype=torch.float32) for _ in range(2))
    for part in _parts(q, k, input_layout, (actual_seq_qlen, actual_seq_kvlen), real_shift, masking, drop_mask):
        scores = _scores(q[:, :, part.queries], k[:, :, part.keys], scale_value, part, pse_type)
        probabilities, top[:, :, part.queries], total[:, :, part.queries] = softmax_with_statistics(scores, sink)
        y[:, :, part.queries] = (part.dropped(probabilities, keep_prob) @ v[:, :, part.keys].float()).to(y.dtype)
    if input_layout == "TND":
        top, total = (_laid_out(x, "TND") for x in (top, total))
    return top, total, query.new_empty(0), _laid_out(y, input_layout)


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
    sink: T | None = None,
    *,
    scale_value: float = 1.0,
    keep_prob: float = 1.0,
    pre_tockens: int = 65536,
    next_tockens: int = 65536,
    head_num: int,
    input_layout: str,
    sparse_mode: int = 0,
    pse_type: int = 0,
) -> tuple[T, ...]:
    """The gradients by query, key, value, bias and, where there is one, the sink; the scores are computed once more."""
    _reject(padding_mask=padding_mask)
    _check(query, key, head_num, input_layout, drop_mask, keep_prob, pse_type, (q_start_idx, kv_start_idx))
    kv_heads = _kv_heads(key, query, head_num, input_layout)
    q = _heads(query, input_layout, head_num).float()
    k, v = (_shared(_heads(x, input_layout, kv_heads), q.size(1)).float() for x in (key, value))
    grad = _heads(dy, input_layout, head_num).float()
    masking = _Masking(atten_mask, sparse_mode, pre_tockens, next_tockens, _numbers(prefix))
    dq, dk, dv = (torch.zeros_like(x) for x in (q, k, v))
    dpse = query.new_zeros(0) if pse_shift is None else torch.zeros_like(pse_shift, dtype=torch.float32)
    dsink = query.new_zeros(0, dtype=torch.float32) if sink is None else torch.zeros_like(sink, dtype=torch.float32)
    parts = _parts(q, k, input_layout, (actual_seq_qlen, actual_seq_kvlen), pse_shift, masking, drop_mask)
    for number, part in enumerate(parts):
        qs, ks, vs, gs = q[:, :, part.queries], k[:, :, part.keys], v[:, :, part.keys], grad[:, :, part.queries]
        probabilities, top, total = softmax_with_statistics(_scores(qs, ks, scale_value, part, pse_type), sink)
        dp = part.dropped(gs @ vs.transpose(-1, -2), keep_prob)
        mean = (dp * probabilities).sum(-1, keepdim=True)
        ds = probabilities * (dp - mean)
        dq[:, :, part.queries] = ds @ ks * scale_value
        dk[:, :, part.keys] = ds.transpose(-1, -2) @ qs * scale_value
        dv[:, :, part.keys] = part.dropped(probabilities, keep_prob).transpose(-1, -2) @ gs
        if pse_shift is not None and part.bias is not None:
            by_bias = (ds * scale_value if pse_type == 0 else ds).sum_to_size(
                part.bias.shape if input_layout != "TND" else (1, *part.bias.shape)
            )
            place = dpse if input_layout != "TND" else dpse[number if pse_shift.size(0) > 1 else 0].unsqueeze(0)
            place[..., : part.bias.size(-2), : part.bias.size(-1)] += by_bias
        if sink is not None:
            share = torch.exp(sink.float().reshape(-1, 1, 1) - top) / total
            dsink += (-share * mean).sum((0, 2, 3))
    gradients = (
        _laid_out(_summed_over_shared(g, heads), input_layout).to(query.dtype)
        for g, heads in zip((dq, dk, dv), (q.size(1), kv_heads, kv_heads), strict=True)
    )
    return (*gradients, dpse.to(query.dtype), *([] if sink is None else [dsink]))


def _summed_over_shared(grad: T, heads: int) -> T:
    return grad if grad.size(1) == heads else grad.reshape(grad.size(0), heads, -1, *grad.shape[2:]).sum(2)


def _rotated(x: T, interleaved: bool) -> T:
    if interleaved:
        even, odd = x[..., ::2], x[..., 1::2]
        return torch.stack([-odd, even], -1).flatten(-2)
    first, second = x.chunk(2, -1)
    return torch.cat([-second, first], -1)


def _broadcasts(factor: T, x: T) -> bool:
    """Whether a tensor broadcasts to the shape of another."""
    sizes = zip(reversed(factor.shape), reversed(x.shape), strict=False)
    return factor.dim() <= x.dim() and all(size in (1, wanted) for size, wanted in sizes)


def _rotary(x: T, cos: T, sin: T, mode: int) -> T:
    if mode not in (0, 1):
        raise ValueError(f"mode {mode} is not supported; 0, half, and 1, interleaved, are")
    if not all(_broadcasts(factor, x) for factor in (cos, sin)):
        raise ValueError(f"cos {tuple(cos.shape)} and sin {tuple(sin.shape)} do not suit {tuple(x.shape)}")
    wide = x.float()
    return (wide * cos.float()).addcmul_(_rotated(wide, mode == 1), sin.float()).to(x.dtype)


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


@host_kernel("RotaryMulGrad")
def rotary_mul_grad(x: T, r1: T, r2: T, dy: T, *, need_backward: bool = True) -> tuple[T, T, T]:
    """The gradients by x, r1 and r2; zeros for the last two where they are not wanted."""
    dx, dr1, dr2 = rotary_position_embedding_grad(dy, r1, r2, x if need_backward else None)
    return (dx, dr1, dr2) if need_backward else (dx, torch.zeros_like(r1), torch.zeros_like(r2))


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
    mode, cos, sin = modes[rotary_mode], cos.float(), sin.float()
    return query.copy_(_rotary(query, cos, sin, mode)), key.copy_(_rotary(key, cos, sin, mode))


@host_kernel("AttentionUpdate", dynamic=("lse", "go"))
def attention_update(lse: list[T], go: list[T], *, update_type: int = 0, sp: int = 0) -> tuple[T, T]:
    """Results over parts of the keys as one, by the logarithms of their sums; ``sp``, if given, is how many parts there are."""
    if update_type not in (0, 1) or len(lse) != len(go) or sp not in (0, len(lse)):
        raise ValueError(f"update_type {update_type} (0, 1), sp {sp}, {len(lse)} lse for {len(go)} results")
    sums = torch.stack([part.float() for part in lse])
    total = torch.logsumexp(sums, 0)
    weights = torch.exp(sums - total).unsqueeze(-1)
    y = (torch.stack([part.float() for part in go]) * weights).sum(0).to(go[0].dtype)
    return y, total if update_type == 1 else total.new_empty(0)


@host_kernel("RingAttentionUpdate")
def ring_attention_update(
    prev_attn_out: T,
    prev_softmax_max: T,
    prev_softmax_sum: T,
    cur_attn_out: T,
    cur_softmax_max: T,
    cur_softmax_sum: T,
    actual_seq_qlen: T | None = None,
    *,
    input_layout: str = "SBH",
    input_softmax_layout: str = "",
) -> tuple[T, T, T]:
    """The attention to two parts of the keys as one; each row has its maximum and its sum eight times."""
    if input_layout not in ("SBH", "TND") or input_softmax_layout not in ("", input_layout):
        raise ValueError(
            f"input_layout {input_layout!r} (SBH, TND), input_softmax_layout {input_softmax_layout!r} (the same)"
        )
    if input_layout == "TND" and input_softmax_layout != "TND":
        raise ValueError("input_layout TND needs input_softmax_layout TND on the host")
    if input_layout == "TND":
        _check_ends(actual_seq_qlen, prev_attn_out.size(0))
    largest = torch.maximum(prev_softmax_max, cur_softmax_max)
    before = prev_softmax_sum * torch.exp(prev_softmax_max - largest)
    now = cur_softmax_sum * torch.exp(cur_softmax_max - largest)
    total = before + now
    y = sum(
        out.float() * _of_heads(part / total, out, input_layout)
        for out, part in ((prev_attn_out, before), (cur_attn_out, now))
    )
    assert isinstance(y, T)
    return y.to(prev_attn_out.dtype), largest, total


def _check_ends(actual_seq_qlen: T | None, tokens: int) -> None:
    if actual_seq_qlen is None:
        raise ValueError("input_layout TND needs actual_seq_qlen")
    if actual_seq_qlen.is_meta:
        return
    ends = actual_seq_qlen.tolist()
    if ends != sorted(ends) or (ends and not 0 <= ends[0] <= ends[-1] <= tokens):
        raise ValueError(f"actual_seq_qlen {ends} must not fall, nor exceed T, {tokens}")


def _of_heads(factor: T, out: T, layout: str) -> T:
    """A factor for each row and head, [batch, heads, length, 8] or [tokens, heads, 8], for each number of the result."""
    if layout == "TND":
        return factor[..., :1]
    width = out.size(-1) // factor.size(1)
    return factor[..., 0].permute(2, 0, 1).repeat_interleave(width, -1)


@host_kernel("RecurrentGatedDeltaRule", writes={"state": 1})
def recurrent_gated_delta_rule(
    query: T,
    key: T,
    value: T,
    beta: T | None,
    state: T,
    actual_seq_lengths: T | None = None,
    ssm_state_indices: T | None = None,
    g: T | None = None,
    gk: T | None = None,
    num_accepted_tokens: T | None = None,
    *,
    scale_value: float = 1.0,
) -> tuple[T, T]:
    """Linear attention, a token after the other: the state decays, forgets the key's value and takes the new one.

    A sequence begins with the state of its last accepted token; each token's state goes to the place that it names.
    """
    if actual_seq_lengths is None or ssm_state_indices is None:
        raise ValueError("actual_seq_lengths and ssm_state_indices are required")
    y = torch.zeros_like(value)
    if value.is_meta:
        return y, state
    lengths, places = actual_seq_lengths.tolist(), ssm_state_indices.reshape(-1).tolist()
    if sum(lengths) != value.size(0) or len(places) < value.size(0):
        raise ValueError(
            f"actual_seq_lengths {lengths}, {len(places)} ssm_state_indices: there are {value.size(0)} tokens"
        )
    if places and not 0 <= min(places) <= max(places) < state.size(0):
        raise ValueError(f"ssm_state_indices {places}: there are states 0 to {state.size(0) - 1}")
    accepted = [1] * len(lengths) if num_accepted_tokens is None else num_accepted_tokens.tolist()
    if len(accepted) != len(lengths):
        raise ValueError(
            f"num_accepted_tokens {accepted}: one for each of {len(lengths)} sequences of actual_seq_lengths {lengths}"
        )
    repeats = value.size(1) // query.size(1)
    q, k = (x.float().repeat_interleave(repeats, 1) for x in (query, key))
    start = 0
    for length, count in zip(lengths, accepted, strict=True):
        if not 1 <= count <= max(length, 1):
            raise ValueError(f"num_accepted_tokens {accepted}: from 1 to the sequence's length, {length}")
        current = state[places[start + count - 1]].float() if length else state[0].float()
        for t in range(start, start + length):
            if g is not None:
                current = current * g[t].float().exp().reshape(-1, 1, 1)
            if gk is not None:
                current = current * gk[t].float().exp().unsqueeze(1)
            change = value[t].float() - torch.einsum("nvk,nk->nv", current, k[t])
            if beta is not None:
                change = change * beta[t].float().unsqueeze(-1)
            current = current + change.unsqueeze(-1) * k[t].unsqueeze(1)
            y[t] = (torch.einsum("nvk,nk->nv", current, q[t]) * scale_value).to(y.dtype)
            state[places[t]] = current.to(state.dtype)
        start += length
    return y, state


@host_kernel("ChunkGatedDeltaRule", values=("actual_seq_lengths",))
def chunk_gated_delta_rule(
    query: T,
    key: T,
    value: T,
    beta: T,
    initial_state: T,
    actual_seq_lengths: T,
    g: T | None = None,
    *,
    scale_value: float = 1.0,
) -> tuple[T, T]:
    """RecurrentGatedDeltaRule for whole sequences, of which each begins with a state and ends with one."""
    tokens, heads = value.shape[:2]
    expected = {
        "query": (tokens, query.size(1), key.size(-1)),
        "key": tuple(query.shape),
        "beta": (tokens, heads),
        "g": (tokens, heads),
        "initial_state": (actual_seq_lengths.numel(), heads, value.size(-1), key.size(-1)),
    }
    given = {"query": query, "key": key, "beta": beta, "g": g, "initial_state": initial_state}
    for name, tensor in given.items():
        if tensor is not None and tuple(tensor.shape) != expected[name]:
            raise ValueError(
                f"{name} of shape {tuple(tensor.shape)}: with value {tuple(value.shape)} {expected[name]} is expected"
            )
    if heads % query.size(1):
        raise ValueError(f"{heads} heads of value are no multiple of {query.size(1)} heads of query and key")
    lengths = actual_seq_lengths.tolist()
    if min(lengths, default=0) < 0 or sum(lengths) != tokens:
        raise ValueError(f"actual_seq_lengths {lengths}: there are {tokens} tokens")
    # The recurrent form writes a state for each token; a sequence's last one is what remains.
    states = initial_state.new_zeros((tokens + 1, *initial_state.shape[1:]), dtype=torch.float32)
    out, final, start = torch.zeros_like(value), initial_state.clone(), 0
    for sequence, length in enumerate(lengths):
        if length == 0:
            continue
        part, places = slice(start, start + length), torch.arange(1, length + 1)
        states[1] = initial_state[sequence].float()
        out[part], _ = recurrent_gated_delta_rule(
            query[part],
            key[part],
            value[part],
            beta[part],
            states,
            torch.tensor([length]),
            places,
            None if g is None else g[part],
            scale_value=scale_value,
        )
        final[sequence] = states[length].to(final.dtype)
        start += length
    return out, final


@host_kernel("RopeWithSinCosCache")
def rope_with_sin_cos_cache(
    positions: T,
    query: T,
    key: T,
    cos_sin_cache: T,
    *,
    mrope_section: list[int] | None = None,
    head_size: int,
    is_neox_style: bool = True,
) -> tuple[T, T]:
    """Rotary embeddings from a table of cosines and sines; positions of several kinds have a section of it each."""
    if (
        not positions.is_meta
        and positions.numel()
        and not (int(positions.min()) >= 0 and int(positions.max()) < cos_sin_cache.size(0))
    ):
        raise ValueError(f"positions {positions.tolist()}: the cache has 0 to {cos_sin_cache.size(0) - 1}")
    cos, sin = cos_sin_cache.float()[positions.long()].chunk(2, -1)
    if positions.dim() == 2:
        sections = mrope_section or []
        if len(sections) != positions.size(0) or sum(sections) != cos.size(-1):
            raise ValueError(f"mrope_section {sections} are not {positions.size(0)} parts of {cos.size(-1)}")
        cos, sin = (
            torch.cat([part[n] for n, part in enumerate(table.split(sections, -1))], -1) for table in (cos, sin)
        )

    def rotated(x: T) -> T:
        heads = x.float().unflatten(-1, (-1, head_size))
        size = 2 * cos.size(-1)
        turning, rest = heads[..., :size], heads[..., size:]
        first, second = turning.chunk(2, -1) if is_neox_style else (turning[..., ::2], turning[..., 1::2])
        c, s = cos.unsqueeze(-2), sin.unsqueeze(-2)
        pair = (first * c - second * s, second * c + first * s)
        done = torch.cat(pair, -1) if is_neox_style else torch.stack(pair, -1).flatten(-2)
        return torch.cat([done, rest], -1).flatten(-2).to(x.dtype)

    return rotated(query), rotated(key)
