"""What chooses the next token."""

from __future__ import annotations

import torch

from ascend_graph.host.ops.registry import host_kernel

T = torch.Tensor


@host_kernel("ApplyTopKTopP")
def apply_top_k_top_p(logits: T, p: T | None = None, k: T | None = None) -> T:
    """Logits of which only the k largest, and of these those that make up the probability p, are not minus infinity."""
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
