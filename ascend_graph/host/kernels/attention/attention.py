"""Flash attention of training and its gradients."""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch

from ascend_graph.host.kernels.attention.masks import check_triangle
from ascend_graph.host.kernels.checks import check_choice, check_covers, refuse_given
from ascend_graph.host.kernels.registry import host_kernel
from ascend_graph.host.kernels.tensor.creation import bits_of

T = torch.Tensor

#: Number of copies of each softmax statistic: GE repeats them to fill a block of memory.
STATISTICS_WIDTH = 8
_LAYOUTS = ("BSH", "SBH", "BNSD", "BSND", "TND")


def _heads(x: T, layout: str, heads: int) -> T:
    """Return a tensor of any layout as [batch, heads, sequence, head dimension].

    In layout TND all sequences form a batch of one.
    """
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
    """Undo ``_heads``: return a tensor in ``layout``."""
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
    """Masking of scores: masks are true where scores do not count.

    Bands count tokens before and after the query's own. Modes: 0 the mask, within the band; 1 the mask alone; 2 and 3
    causal, from the first and to the last key; 4 a band that ends at the last key; 5 and 6 causal to the last key, and
    the first keys for all.
    """

    mask: T | None
    mode: int
    before: int
    after: int
    prefix: Sequence[int] = ()

    def __post_init__(self) -> None:
        check_choice("sparse_mode", self.mode, 0, 1, 2, 3, 4, 5, 6)
        if self.mode and self.mask is None:
            raise ValueError(f"sparse_mode {self.mode} needs atten_mask")
        if self.mask is not None and self.mode in (2, 3, 4, 6):
            check_triangle(self.mask, self.mode, 3072 if self.mode == 6 else 2048)

    def of(self, sequence: int | None, batch: int, queries: int, keys: int, device: torch.device) -> T | None:
        """Return the mask for scores of [batch, heads, queries, keys], or None if all count.

        ``sequence`` is the number of one sequence if lengths differ.
        """
        if self.mask is None:
            return None
        if self.mode in (0, 1):
            check_covers("atten_mask", self.mask, queries, keys)
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
    """Sequences of one length: slices of queries and keys, their bias, mask and dropout mask.

    ``bias`` is added to the scores, ``masked`` leaves scores out, ``kept`` is true for probabilities that dropout
    keeps.
    """

    queries: slice
    keys: slice
    bias: T | None
    masked: T | None
    kept: T | None

    def dropped(self, probabilities: T, keep_prob: float) -> T:
        """Apply dropout to probabilities, or to their gradients."""
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
    """Yield all sequences at once or, in layout TND, one after the other.

    A dropout mask has a bit for each probability, of [heads, queries, keys] of one sequence after the other.
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
            f"actual_seq_qlen {q_ends} and actual_seq_kvlen {k_ends} do not fit; expected the ends of as many "
            "sequences in both, up to "
            f"{queries} queries and {keys} keys"
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
    """Compute masked scores: bias and then scale (pse_type 0), or scale and then bias (1)."""
    scores = query.float() @ key.float().transpose(-1, -2)
    if part.bias is None:
        scores = scores * scale
    else:
        scores = (scores + part.bias.float()) * scale if pse_type == 0 else scores * scale + part.bias.float()
    return scores if part.masked is None else scores.masked_fill(part.masked, -math.inf)


def softmax_with_statistics(scores: T, sink: T | None = None) -> tuple[T, T, T]:
    """Return probabilities, row maxima and row sums; fully masked rows are all zeros."""
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
    """Repeat keys or values for each head of the query."""
    return kv.repeat_interleave(heads // kv.size(1), 1) if kv.size(1) != heads else kv


def _kv_heads(key: T, query: T, heads: int, layout: str) -> int:
    """Return the number of heads of keys: as many as fit at the query's head dimension."""
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
    check_choice("input_layout", layout, *_LAYOUTS)
    if layout in ("BNSD", "BSND", "TND"):
        check_choice("head_num", heads, query.size(layout.index("N")))
    kv_heads = _kv_heads(key, query, heads, layout)
    if not kv_heads or heads % kv_heads:
        raise ValueError(f"key has {kv_heads} heads; expected a divisor of head_num, {heads}")
    if not 0 < keep_prob <= 1 or (keep_prob < 1 and drop_mask is None):
        raise ValueError(f"keep_prob={keep_prob}: valid are those above 0, up to 1, and below 1 with drop_mask")
    if pse_type not in (0, 1) or any(any(_numbers(start)) for start in starts):
        raise ValueError(f"pse_type {pse_type}: 0 and 1 are supported, and q_start_idx and kv_start_idx of 0")


def _refuse_padding(mask: T | None) -> None:
    if mask is not None and mask.numel():  # torch_npu gives one without elements for none
        refuse_given("not supported on the host", padding_mask=mask)


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
    """Compute flash attention: softmax maxima and sums, an empty tensor, and the result."""
    _refuse_padding(padding_mask)
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


def _add_bias_gradient(
    pse_shift: T | None, part: _Part, ds: T, scale_value: float, pse_type: int, input_layout: str, dpse: T, number: int
) -> None:
    """Add the gradient of one part's bias to ``dpse``."""
    if pse_shift is not None and part.bias is not None:
        by_bias = (ds * scale_value if pse_type == 0 else ds).sum_to_size(
            part.bias.shape if input_layout != "TND" else (1, *part.bias.shape)
        )
        place = dpse if input_layout != "TND" else dpse[number if pse_shift.size(0) > 1 else 0].unsqueeze(0)
        place[..., : part.bias.size(-2), : part.bias.size(-1)] += by_bias


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
    """Return the gradients of query, key, value, bias and a given sink; the scores are computed again."""
    _refuse_padding(padding_mask)
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
        _add_bias_gradient(pse_shift, part, ds, scale_value, pse_type, input_layout, dpse, number)
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
