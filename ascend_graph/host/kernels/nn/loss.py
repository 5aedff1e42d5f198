"""Losses and their gradients."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import torch
from torch.nn import functional as F

from ascend_graph.host.kernels.checks import check_choice
from ascend_graph.host.kernels.registry import host_kernel

T = torch.Tensor
aten = torch.ops.aten

_REDUCTION = {"none": 0, "mean": 1, "sum": 2}


def _reduction(name: str | int) -> int:
    """Return PyTorch's number of a reduction; aclnn functions pass the number itself."""
    if isinstance(name, int) and name in _REDUCTION.values():
        return name
    check_choice("reduction", name, *_REDUCTION)
    return _REDUCTION[str(name)]


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


def _scaled(grad: T, count: int, reduction: str | int) -> T:
    """Scale the result's gradient to each element's share."""
    return grad / count if _reduction(reduction) == 1 else grad


@host_kernel("KlDivLossGrad")
def kl_div_loss_grad(grad: T, input: T, target: T, *, reduction: str | int = "mean", log_target: bool = False) -> T:
    dy = _scaled(grad, input.size(0) if reduction == "batchmean" else input.numel(), _mean_of_batches(reduction))
    return -(target.exp() * dy) if log_target else torch.where(target > 0, -target * dy, 0)


@host_kernel("KlDivTargetBackward")
def kl_div_target_grad(
    grad_output: T, self: T, target: T, *, reduction: str | int = "mean", log_target: bool = False
) -> T:
    dy = _scaled(
        grad_output, target.size(0) if reduction == "batchmean" else target.numel(), _mean_of_batches(reduction)
    )
    if log_target:
        return (target + 1 - self) * target.exp() * dy
    return torch.where(target > 0, (target.log() + 1 - self) * dy, 0)


def _mean_of_batches(reduction: str | int) -> str | int:
    return "mean" if reduction == "batchmean" else reduction


@host_kernel("L1LossGrad")
def l1_loss_grad(grads: T, predict: T, label: T, *, reduction: str | int = "mean") -> T:
    return torch.sign(predict - label) * _scaled(grads, predict.numel(), reduction)


@host_kernel("SigmoidCrossEntropyWithLogitsGradV2")
def sigmoid_cross_entropy_with_logits_grad(
    predict: T,
    target: T,
    dout: T,
    weight: T | None = None,
    pos_weight: T | None = None,
    *,
    reduction: str | int = "mean",
) -> T:
    positive = target if pos_weight is None else target * pos_weight
    grad = ((positive + 1 - target) * torch.sigmoid(predict) - positive) * _scaled(dout, predict.numel(), reduction)
    return (grad if weight is None else grad * weight).to(predict.dtype)


@host_kernel("SoftmaxCrossEntropyWithLogits")
def softmax_cross_entropy_with_logits(features: T, labels: T) -> tuple[T, T]:
    """Return the loss of each row, and the gradient of the features."""
    scores = F.log_softmax(features.float(), -1)
    loss = -(labels.float() * scores).sum(-1)
    return loss.to(features.dtype), (scores.exp() - labels.float()).to(features.dtype)


def _smoothed_weights(log_prob: T, target: T, weight: T | None, ignore_index: int) -> tuple[T, T]:
    """Return the weights of the classes, and each row's class weight, or 0 for ignored rows."""
    classes = log_prob.new_ones(log_prob.size(1)) if weight is None else weight.float()
    chosen = classes[target.clamp(0, log_prob.size(1) - 1)]
    return classes, torch.where(target == ignore_index, 0, chosen)


def _check_classes(target: T, count: int, ignore_index: int) -> None:
    if not target.is_meta and bool(((target != ignore_index) & ((target < 0) | (target >= count))).any()):
        raise ValueError(f"target has other classes than expected: 0 to {count - 1}, or ignore_index, {ignore_index}")


@host_kernel("CrossEntropyLoss")
def cross_entropy_loss(
    input: T,
    target: T,
    weight: T | None = None,
    *,
    reduction: str = "mean",
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    lse_square_scale_for_zloss: float = 0.0,
    return_zloss: bool = False,
) -> tuple[T, T, T, T]:
    """Return the loss, the log probabilities and two empty outputs.

    The empty ones are for a z loss, which is not supported.
    """
    if lse_square_scale_for_zloss or return_zloss:
        raise ValueError(
            f"lse_square_scale_for_zloss {lse_square_scale_for_zloss} and return_zloss {return_zloss}: only 0 and False are supported"
        )
    _check_classes(target, input.size(1), ignore_index)
    log_prob = F.log_softmax(input.float(), -1)
    classes, weights = _smoothed_weights(log_prob, target, weight, ignore_index)
    places = target.clamp(0, input.size(1) - 1).unsqueeze(1).long()
    loss = -(1 - label_smoothing) * weights * log_prob.gather(1, places).squeeze(1)
    kept = target != ignore_index
    if label_smoothing:
        loss = loss - torch.where(kept, (log_prob * classes).sum(1), 0) * label_smoothing / input.size(1)
    if _reduction(reduction):
        loss = loss.sum()
        loss = (loss / weights.sum() if reduction == "mean" else loss).reshape(1)
    empty = input.new_empty(0)
    return loss.to(input.dtype), log_prob.to(input.dtype), empty, empty


@host_kernel("CrossEntropyLossGrad")
def cross_entropy_loss_grad(
    grad_loss: T,
    log_prob: T,
    target: T,
    weight: T | None = None,
    grad_zloss: T | None = None,
    lse_for_zloss: T | None = None,
    *,
    reduction: str = "mean",
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    lse_square_scale_for_zloss: float = 0.0,
) -> T:
    if lse_square_scale_for_zloss:
        raise ValueError(f"lse_square_scale_for_zloss {lse_square_scale_for_zloss} is not supported; 0 is")
    wide, count = log_prob.float(), log_prob.size(1)
    classes, weights = _smoothed_weights(wide, target, weight, ignore_index)
    dy = grad_loss.float()
    if _reduction(reduction):
        dy = (dy.reshape(()) / weights.sum() if reduction == "mean" else dy.reshape(())).expand(target.shape)
    of_log = torch.zeros_like(wide).scatter(
        1, target.clamp(0, count - 1).unsqueeze(1).long(), (-(1 - label_smoothing) * weights * dy).unsqueeze(1)
    )
    if label_smoothing:
        kept = (target != ignore_index).unsqueeze(1)
        of_log = of_log - torch.where(kept, classes * dy.unsqueeze(1), 0) * label_smoothing / count
    return (of_log - wide.exp() * of_log.sum(1, keepdim=True)).to(grad_loss.dtype)


@host_kernel("FusedLinearOnlineMaxSum")
def fused_linear_online_max_sum(
    input: T,
    weight: T,
    target: T,
    *,
    vocab_start_index: int,
    vocab_end_index: int,
    vocab_parallel_logits_out_flag: bool = False,
) -> tuple[T, T, T, T, T, T]:
    """Return one vocabulary part's share of a linear layer's cross entropy.

    It consists of row maxima, sums and the target's score, with the masks and, if requested, the logits.
    """
    logits = input.float() @ weight.float().t()
    largest = logits.amax(-1)
    shifted = logits - largest.unsqueeze(-1)
    elsewhere = (target < vocab_start_index) | (target > vocab_end_index)
    masked = torch.where(elsewhere, 0, target - vocab_start_index)
    predicted = torch.where(elsewhere, 0, shifted.gather(1, masked.long().unsqueeze(1)).squeeze(1))
    count = -(-target.numel() // 8)
    bits = F.pad(elsewhere.to(torch.uint8), (0, count * 8 - target.numel()), value=1).reshape(count, 8)
    packed = (bits << torch.arange(7, -1, -1, dtype=torch.uint8, device=bits.device)).sum(1, dtype=torch.uint8)
    given = logits.to(input.dtype) if vocab_parallel_logits_out_flag else input.new_empty(0)
    return largest, shifted.exp().sum(-1), predicted, packed, masked, given


@host_kernel("FusedCrossEntropyLossWithMaxSum")
def fused_cross_entropy_loss_with_max_sum(
    logits_max: T,
    sum_exp_logits: T,
    predicted_logits: T,
    input: T | None = None,
    weight: T | None = None,
    vocab_parallel_logits: T | None = None,
    *,
    label_smoothing: float = 0.0,
) -> tuple[T, T]:
    if label_smoothing or input is not None or weight is not None:
        raise ValueError(f"label_smoothing {label_smoothing}, input and weight: only 0 and None are supported")
    loss = sum_exp_logits.log() - predicted_logits
    if vocab_parallel_logits is None:
        return loss, loss.new_empty(0)
    scores = vocab_parallel_logits.float() - logits_max.unsqueeze(-1)
    return loss, scores.exp() / sum_exp_logits.unsqueeze(-1)


@host_kernel("FusedLinearCrossEntropyLossGrad")
def fused_linear_cross_entropy_loss_grad(
    grad: T,
    input: T,
    weight: T,
    target_mask: T,
    masked_target: T,
    logits_max: T | None = None,
    sum_exp_logits: T | None = None,
    softmax: T | None = None,
    *,
    label_smoothing: float = 0.0,
) -> tuple[T, T]:
    if label_smoothing:
        raise ValueError(f"label_smoothing {label_smoothing} is not supported; 0 is")
    if softmax is None:
        if logits_max is None or sum_exp_logits is None:
            raise ValueError("without softmax, logits_max and sum_exp_logits are needed")
        scores = input.float() @ weight.float().t() - logits_max.unsqueeze(-1)
        softmax = scores.exp() / sum_exp_logits.unsqueeze(-1)
    shifts = torch.arange(7, -1, -1, device=grad.device)
    elsewhere = ((target_mask.to(torch.int64).unsqueeze(-1) >> shifts) & 1).reshape(-1)[: grad.numel()]
    rows = torch.arange(grad.numel(), device=grad.device)
    of_logits = softmax.index_put((rows, masked_target.long()), -(1.0 - elsewhere), accumulate=True) * grad.unsqueeze(
        -1
    )
    return (of_logits @ weight.float()).to(input.dtype), (of_logits.t() @ input.float()).to(weight.dtype)
