"""Sampling of the next token."""

from __future__ import annotations

import torch

from ascend_graph.host.kernels.registry import host_kernel

T = torch.Tensor


@host_kernel("ApplyTopKTopP")
def apply_top_k_top_p(logits: T, p: T | None = None, k: T | None = None) -> T:
    """Set logits to minus infinity except the k largest, and of these those that make up the probability p."""
    if logits.dim() != 2 or any(x is not None and x.shape != logits.shape[:1] for x in (p, k)):
        raise ValueError(
            f"logits of shape {tuple(logits.shape)}: two dimensions, and p and k for each row, are expected"
        )
    values, order = logits.float().sort(dim=-1, stable=True)
    count = logits.size(1)
    if k is not None:
        if not k.is_meta and bool(((k < 1) | (k > count)).any()):
            raise ValueError(f"k {k.tolist()}: each must be from 1 to {count}")
        least = values.gather(1, (count - k.long()).unsqueeze(1))
        values = values.masked_fill(values < least, -torch.inf)
    if p is not None:
        left_out = values.softmax(-1).cumsum(-1) <= 1 - p.float().unsqueeze(1)
        left_out[:, -1] = False
        values = values.masked_fill(left_out, -torch.inf)
    return torch.empty_like(values).scatter_(1, order, values).to(logits.dtype)


@host_kernel("TopKTopPSampleV2")
def top_k_top_p_sample(
    logits: T,
    top_k: T,
    top_p: T,
    q: T | None = None,
    min_ps: T | None = None,
    *,
    eps: float = 1e-8,
    is_need_logits: bool = False,
    top_k_guess: int = 32,
    ks_max: int = 1024,
    input_is_logits: bool = True,
    is_need_sample_result: bool = False,
) -> tuple[T, T, None, None]:
    """Select the likeliest token of each row, or one by the exponential numbers ``q``, after cuts by k, p and min_p.

    k counts from 1 to ``ks_max``, p and min_p from 0 to 1; values outside do not cut the row. The last two outputs are
    those of ``is_need_sample_result``.
    """
    del top_k_guess  # how a device looks for p
    rows, count = logits.shape
    if any(x is not None and x.shape != (rows,) for x in (top_k, top_p, min_ps)) or not 0 < ks_max <= 1024:
        raise ValueError(f"top_k, top_p and min_ps need a number for each of {rows} rows; ks_max {ks_max} 1 to 1024")
    if q is not None and q.shape != logits.shape:
        raise ValueError(f"q of shape {tuple(q.shape)}, logits of {tuple(logits.shape)}: they must be alike")
    if is_need_sample_result:
        raise ValueError("is_need_sample_result: not supported on the host; post_sample 'qSample' and None are")
    none = -torch.inf if input_is_logits else 0.0
    values, order = logits.float().sort(dim=-1, descending=True, stable=True)
    kept = torch.ones_like(values, dtype=torch.bool)
    k, most = top_k.long().unsqueeze(1), min(count, -(-ks_max // 8) * 8)
    cut = (k >= 1) & (k <= most)
    kept &= ~cut | (torch.arange(count, device=values.device) < k)
    chances = values.masked_fill(~kept, none)
    chances = chances.softmax(-1) if input_is_logits else chances
    p = top_p.float().unsqueeze(1)
    before = chances.cumsum(-1) - chances
    # What makes up p, and at least the first.
    kept &= (p >= 1) | (before <= p) & (p > 0) | (torch.arange(count, device=values.device) == 0)
    chances = chances.masked_fill(~kept, 0.0)
    if min_ps is not None:
        least = min_ps.float().unsqueeze(1)
        kept &= (least <= 0) | (chances >= chances.amax(-1, keepdim=True) * least.clamp(max=1))
        chances = chances.masked_fill(~kept, 0.0)
    if q is not None:
        chances = chances / (q.float() + eps)
    selected = order.gather(1, chances.argmax(-1, keepdim=True)).squeeze(1)
    if not is_need_logits:
        return selected, torch.zeros_like(values), None, None
    return selected, torch.full_like(values, none).scatter(1, order, values.masked_fill(~kept, none)), None, None


@host_kernel("AdvanceStep", writes={"input_tokens": 0, "input_positions": 1, "seq_lens": 2, "slot_mapping": 3})
def advance_step(
    input_tokens: T,
    sampled_token_ids: T,
    input_positions: T,
    seq_lens: T,
    slot_mapping: T,
    block_tables: T,
    *,
    num_seqs: int,
    num_queries: int,
    block_size: int,
) -> tuple[T, T, T, T]:
    """Advance each sequence by one token, and compute the token's slot in the pages of its row of ``block_tables``."""
    if not 0 < num_queries <= num_seqs or block_tables.size(0) < num_queries or block_size <= 0:
        raise ValueError(
            f"num_queries {num_queries}, block_size {block_size}, block_tables of {block_tables.size(0)} rows: "
            f"expected 1 to num_seqs, {num_seqs}, queries, with a row for each, and a block_size above 0"
        )
    if not input_tokens.is_meta:
        positions = seq_lens[:num_queries].clone()
        if int(positions.min()) < 0 or int(positions.max()) // block_size >= block_tables.size(1):
            raise ValueError(
                f"seq_lens {positions.tolist()}: expected 1 to {block_tables.size(1) * block_size}, as a row of "
                "block_tables has"
            )
        rows = torch.arange(num_queries)
        pages = block_tables[rows, positions.long() // block_size]
        input_tokens[:num_queries] = sampled_token_ids.reshape(-1)[:num_queries]
        input_positions[:num_queries] = positions
        seq_lens[:num_queries] = positions + 1
        slot_mapping[:num_queries] = pages * block_size + positions % block_size
    return input_tokens, input_positions, seq_lens, slot_mapping
