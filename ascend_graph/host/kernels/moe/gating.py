"""Choice of experts for each token."""

from __future__ import annotations

import torch

from ascend_graph.host.kernels.checks import check_between, check_choice, check_range, refuse_given
from ascend_graph.host.kernels.registry import host_kernel

T = torch.Tensor


def _top(scores: T, k: int, name: str) -> tuple[T, T]:
    """Return the k largest of each row; among equal ones the first."""
    check_between(name, k, 1, scores.size(-1), "the number of experts")
    values, order = scores.sort(dim=-1, descending=True, stable=True)
    return values[..., :k].contiguous(), order[..., :k].contiguous()


def _without_finished(experts: T, finished: T | None, count: int) -> T:
    """Replace every expert of finished rows by the number of experts."""
    if finished is not None:
        experts = experts.masked_fill(finished.bool().reshape(*experts.shape[:-1], 1), count)
    return experts.to(torch.int32)


@host_kernel("MoeGatingTopKSoftmax")
def moe_gating_top_k_softmax(x: T, finished: T | None = None, *, k: int) -> tuple[T, T, T]:
    values, experts = _top(torch.softmax(x.float(), -1), k, "k")
    count = experts.numel() // k
    rows = torch.arange(count * k, dtype=torch.int32, device=x.device).reshape(k, count).t().reshape(experts.shape)
    return values.to(x.dtype), _without_finished(experts, finished, x.size(-1)), rows.contiguous()


@host_kernel("MoeGatingTopKSoftmaxV2")
def moe_gating_top_k_softmax_v2(
    x: T, finished: T | None = None, *, k: int, renorm: int = 0, output_softmax: bool = False
) -> tuple[T, T, T]:
    """Take the softmax of all scores and then the largest (renorm 0), or the softmax of the largest (1)."""
    check_choice("renorm", renorm, 0, 1)
    if renorm:
        largest, experts = _top(x.float(), k, "k")
        values, softmax = torch.softmax(largest, -1), x.new_empty(0, dtype=torch.float32)
    else:
        softmax = torch.softmax(x.float(), -1)
        values, experts = _top(softmax, k, "k")
    softmax = softmax if output_softmax else x.new_empty(0, dtype=torch.float32)
    return values.to(x.dtype), _without_finished(experts, finished, x.size(-1)), softmax


@host_kernel("MoeGatingTopK")
def moe_gating_top_k(
    x: T,
    bias: T | None = None,
    input_ids: T | None = None,
    tid2eid: T | None = None,
    *,
    k: int,
    k_group: int = 1,
    group_count: int = 1,
    group_select_mode: int = 0,
    renorm: int = 0,
    norm_type: int = 0,
    out_flag: bool = False,
    routed_scaling_factor: float = 1.0,
    eps: float = 1e-20,
) -> tuple[T, T, T]:
    """Choose the best experts of the best groups, by softmax (norm_type 0) or sigmoid (1).

    The bias affects the choice only.
    """
    refuse_given("not supported on the host", input_ids=input_ids, tid2eid=tid2eid)
    check_choice("norm_type", norm_type, 0, 1)
    check_choice("renorm", renorm, 0)
    check_choice("group_select_mode", group_select_mode, 0, 1)
    experts_in_group, rest = divmod(x.size(-1), group_count)
    if rest or not 1 <= k_group <= group_count or k > k_group * experts_in_group:
        raise ValueError(
            f"k {k}, k_group {k_group}, group_count {group_count} do not fit {x.size(-1)} experts; expected a "
            "group_count that divides them, k_group up to it, and k up to the experts of k_group groups"
        )
    normalized = torch.sigmoid(x.float()) if norm_type else torch.softmax(x.float(), -1)
    scores = normalized if bias is None else normalized + bias.float()
    if group_count > 1:
        groups = scores.unflatten(-1, (group_count, experts_in_group))
        by_group = groups.amax(-1) if group_select_mode == 0 else groups.topk(2, -1).values.sum(-1)
        chosen = _top(by_group, k_group, "k_group")[1]
        kept = torch.zeros_like(by_group, dtype=torch.bool).scatter(-1, chosen, True)
        scores = groups.masked_fill(~kept.unsqueeze(-1), -torch.inf).flatten(-2)
    experts = _top(scores, k, "k")[1]
    values = normalized.gather(-1, experts)
    if norm_type == 1:
        values = values / (values.sum(-1, keepdim=True) + eps)
    values = (values * routed_scaling_factor).to(x.dtype)
    return values, experts.to(torch.int32), normalized if out_flag else x.new_empty(0, dtype=torch.float32)


@host_kernel("MoeGatingTopKBackward")
def moe_gating_top_k_backward(
    x_norm: T,
    grad_y: T,
    expert_idx: T,
    *,
    renorm: int = 0,
    norm_type: int = 0,
    routed_scaling_factor: float = 1.0,
    eps: float = 1e-20,
) -> T:
    """Return the gradient of the scores, from the normalized ones."""
    check_choice("norm_type", norm_type, 0, 1)
    check_choice("renorm", renorm, 0)
    norm, places = x_norm.float(), expert_idx.long()
    check_range("expert_idx", places, norm.size(-1))
    grad = grad_y.float() * routed_scaling_factor
    chosen = norm.gather(-1, places)
    if norm_type == 1:
        total = chosen.sum(-1, keepdim=True) + eps
        grad = grad / total - (grad * chosen).sum(-1, keepdim=True) / total.square()
    of_norm = torch.zeros_like(norm).scatter(-1, places, grad)
    if norm_type == 1:
        return (of_norm * norm * (1 - norm)).to(grad_y.dtype)
    return (norm * (of_norm - (of_norm * norm).sum(-1, keepdim=True))).to(grad_y.dtype)
