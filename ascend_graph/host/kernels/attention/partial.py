"""Merging of attention results over parts of the keys."""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import torch

from ascend_graph.host.kernels.checks import check_choice
from ascend_graph.host.kernels.registry import host_kernel

T = torch.Tensor


@host_kernel("AttentionUpdate", dynamic=("lse", "go"))
def attention_update(lse: list[T], go: list[T], *, update_type: int = 0, sp: int = 0) -> tuple[T, T]:
    """Merge results over parts of the keys by the logarithms of their sums.

    ``sp``, if given, is the number of parts.
    """
    check_choice("update_type", update_type, 0, 1)
    if len(lse) != len(go) or sp not in (0, len(lse)):
        raise ValueError(
            f"sp {sp}, {len(lse)} lse, {len(go)} results: expected as many lse as results, and sp 0 or their number"
        )
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
    """Merge the attention to two parts of the keys; each row has its maximum and its sum eight times."""
    check_choice("input_layout", input_layout, "SBH", "TND")
    check_choice("input_softmax_layout", input_softmax_layout, "", input_layout)
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
    """Broadcast a factor of [batch, heads, length, 8] or [tokens, heads, 8] to the result's shape."""
    if layout == "TND":
        return factor[..., :1]
    width = out.size(-1) // factor.size(1)
    return factor[..., 0].permute(2, 0, 1).repeat_interleave(width, -1)
