"""Gated units and their gradients, quantized in one operator by blocks of the last dimension and of rows."""

from __future__ import annotations

import torch

from ascend_graph.host.kernels.checks import check_choice
from ascend_graph.host.kernels.quantization.activation_quantization import gated
from ascend_graph.host.kernels.quantization.microscaling import BLOCK, E4M3, no_maximum, quantized, quantized_by_groups
from ascend_graph.host.kernels.registry import host_kernel

T = torch.Tensor


def _by_both_axes(x: T, group_index: T | None, dst_type: int, algorithm: int, mode: str) -> tuple[T, T, T, T]:
    rows = quantized(x, dst_type, -1, BLOCK, algorithm, mode)
    if group_index is None:
        return (*rows, *quantized(x, dst_type, -2, BLOCK, algorithm, mode))
    if x.dim() != 2 or group_index.dim() != 1 or not group_index.numel():
        raise ValueError(
            f"group_index {tuple(group_index.shape)} for x of {tuple(x.shape)}: expected the ends of groups in one "
            "dimension, and x as a matrix"
        )
    if not group_index.is_meta and int(group_index[0]) <= 0:
        raise ValueError(f"group_index {group_index.tolist()}: expected positive ends of groups")
    return (*rows, *quantized_by_groups(x, group_index, dst_type, BLOCK, algorithm, mode))


@host_kernel("SwigluMxQuantWithDualAxis")
def swiglu_mx_quant_with_dual_axis(
    x: T,
    group_index: T | None = None,
    *,
    activate_left: bool = True,
    round_mode: str = "rint",
    scale_alg: int = 1,
    dst_type: int = E4M3,
    max_dtype_value: float = 0.0,
) -> tuple[T, T, T, T]:
    """Compute a gated unit, rounded to the dtype of x, and quantize it along both axes."""
    no_maximum(max_dtype_value)
    if x.dim() != 2 or not x.numel():
        raise ValueError(f"x of shape {tuple(x.shape)}: a matrix that is not empty is expected")
    y = gated(x.float(), activate_left).to(x.dtype)
    return _by_both_axes(y, group_index, dst_type, scale_alg, round_mode)


@host_kernel("SwigluBackwardMxQuantWithDualAxis")
def swiglu_backward_mx_quant_with_dual_axis(
    x: T,
    y_grad: T,
    group_index: T | None = None,
    *,
    activate_left: bool = True,
    round_mode: str = "rint",
    scale_alg: int = 1,
    dst_type: int = E4M3,
    max_dtype_value: float = 0.0,
) -> tuple[T, T, T, T]:
    """Quantize the gradients of the activated half and then of the other, in this order as documented.

    The order is independent of the halves' order in x.
    """
    no_maximum(max_dtype_value)
    check_choice("dst_type", dst_type, E4M3)
    check_choice("scale_alg", scale_alg, 1)
    if not 2 <= x.dim() <= 6 or x.size(-1) % (2 * BLOCK) or not x.numel():
        raise ValueError(
            f"x of shape {tuple(x.shape)}: 2 to 6 dimensions are expected, the last one a multiple of {2 * BLOCK}, none of them 0"
        )
    if y_grad.shape != (*x.shape[:-1], x.size(-1) // 2) or y_grad.dtype != x.dtype:
        raise ValueError(
            f"y_grad {tuple(y_grad.shape)} of {y_grad.dtype}: expected half of x, {tuple(x.shape)} of {x.dtype}, in "
            "the last dimension"
        )
    halves = x.float().chunk(2, -1)
    a, b = halves if activate_left else halves[::-1]
    grad, share = y_grad.float(), torch.sigmoid(a)
    by_a, by_b = grad * b * share * (1 + a - a * share), grad * a * share
    return _by_both_axes(torch.cat([by_a, by_b], -1).to(x.dtype), group_index, dst_type, scale_alg, round_mode)
