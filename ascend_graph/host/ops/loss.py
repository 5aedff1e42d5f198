"""Losses and their gradients."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import torch
from torch.nn import functional as F

from ascend_graph.host.ops.registry import host_kernel

T = torch.Tensor
aten = torch.ops.aten

_REDUCTION = {"none": 0, "mean": 1, "sum": 2}


def _reduction(name: str) -> int:
    if name not in _REDUCTION:
        raise ValueError(f"reduction {name!r} is not one of {', '.join(_REDUCTION)}")
    return _REDUCTION[name]


@host_kernel("MseLoss")
def mse_loss(predict: T, label: T, *, reduction: str = "mean") -> T:
    return F.mse_loss(predict, label, reduction=reduction)


@host_kernel("MseLossGrad")
def mse_loss_grad(predict: T, label: T, dout: T, *, reduction: str = "mean") -> T:
    return aten.mse_loss_backward(dout, predict, label, _reduction(reduction))


@host_kernel("NLLLoss")
def nll_loss(
    x: T, target: T, weight: T | None = None, *, reduction: str = "mean", ignore_index: int = -100
) -> tuple[T, T]:
    y, total_weight = aten.nll_loss_forward(x, target.to(torch.int64), weight, _reduction(reduction), ignore_index)
    return y, total_weight


@host_kernel("NLLLossGrad")
def nll_loss_grad(
    x: T,
    y_grad: T,
    target: T,
    weight: T | None,
    total_weight: T,
    *,
    reduction: str = "mean",
    ignore_index: int = -100,
) -> T:
    return aten.nll_loss_backward(
        y_grad, x, target.to(torch.int64), weight, _reduction(reduction), ignore_index, total_weight
    )
