"""Optimizer steps, which update their parameters in place."""

from __future__ import annotations

import torch

from ascend_graph.host.kernels.checks import check_choice
from ascend_graph.host.kernels.registry import host_kernel

T = torch.Tensor

_STATE = {"var": 0, "m": 1, "v": 2}


def _moments(m: T, v: T, grad: T, beta1: T, beta2: T) -> None:
    m.add_((grad - m) * (1 - beta1))
    v.add_((grad.square() - v) * (1 - beta2))


@host_kernel("ApplyAdam", "ApplyAdamD", ignores=("use_locking",), writes=_STATE)
def apply_adam(
    var: T,
    m: T,
    v: T,
    beta1_power: T,
    beta2_power: T,
    lr: T,
    beta1: T,
    beta2: T,
    epsilon: T,
    grad: T,
    *,
    use_nesterov: bool = False,
) -> tuple[T, T, T]:
    _moments(m, v, grad, beta1, beta2)
    step = lr * (1 - beta2_power).sqrt() / (1 - beta1_power)
    direction = m * beta1 + grad * (1 - beta1) if use_nesterov else m
    var.sub_(step * direction / (v.sqrt() + epsilon))
    return var, m, v


@host_kernel("ApplyAdamW", writes=_STATE)
def apply_adam_w(
    var: T,
    m: T,
    v: T,
    beta1_power: T,
    beta2_power: T,
    lr: T,
    weight_decay: T,
    beta1: T,
    beta2: T,
    epsilon: T,
    grad: T,
    max_grad_norm: T | None = None,
    *,
    amsgrad: bool = False,
    maximize: bool = False,
) -> tuple[T, T, T]:
    """Apply a step of AdamW; the powers of the betas are those before the step."""
    if amsgrad:
        raise ValueError("amsgrad is not supported; False is")
    grad = -grad if maximize else grad
    _moments(m, v, grad, beta1, beta2)
    var.mul_(1 - lr * weight_decay)
    denominator = (v / (1 - beta2_power * beta2)).sqrt() + epsilon
    var.sub_(lr / (1 - beta1_power * beta1) * m / denominator)
    return var, m, v


@host_kernel("ApplyAdamV2", writes=_STATE)
def apply_adam_v2(
    var: T,
    m: T,
    v: T,
    lr: T,
    beta1: T,
    beta2: T,
    epsilon: T,
    grad: T,
    max_grad_norm: T,
    global_grad_norm: T,
    weight_decay: T,
    step_size: T | None = None,
    *,
    adam_mode: str = "adam",
) -> tuple[T, T, T]:
    """Apply a step of BERT's Adam, with the gradient clipped to a norm unless that is -1.

    The moments are not corrected, and weight decay belongs to the step.
    """
    check_choice("adam_mode", adam_mode, "adam")
    if not grad.is_meta and bool(max_grad_norm > 0) and bool(global_grad_norm > max_grad_norm):
        grad = grad * (max_grad_norm / global_grad_norm)
    _moments(m, v, grad, beta1, beta2)
    var.sub_((m / (v.sqrt() + epsilon) + weight_decay * var) * (lr if step_size is None else step_size))
    return var, m, v


# A device keeps flags of overflow while it computes; the host's arithmetic sets none.


@host_kernel("NPUAllocFloatStatus")
def npu_alloc_float_status() -> T:
    return torch.zeros(8)


@host_kernel("NPUGetFloatStatus", "NPUClearFloatStatus")
def npu_float_status(addr: T) -> T:
    return torch.zeros_like(addr)


@host_kernel("NPUGetFloatStatusV2")
def npu_get_float_status() -> T:
    return torch.zeros(8, dtype=torch.int32)


@host_kernel("NPUClearFloatStatusV2")
def npu_clear_float_status() -> None:
    return None
