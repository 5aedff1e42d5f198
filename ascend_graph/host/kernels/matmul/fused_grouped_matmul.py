"""Grouped matmuls fused with the steps before or after them."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F

from ascend_graph.host.kernels.checks import check_choice, refuse_given
from ascend_graph.host.kernels.matmul.grouped_matmul import group_spans, matmul_over_sums
from ascend_graph.host.kernels.matmul.matmul import integer_product
from ascend_graph.host.kernels.matmul.quantized_matmul import quant_matmul_dequant
from ascend_graph.host.kernels.quantization.quantize import dynamic
from ascend_graph.host.kernels.registry import host_kernel

T = torch.Tensor


@host_kernel("GroupedMatmulAdd", writes={"y": 0})
def grouped_matmul_add(
    x: T,
    weight: T,
    group_list: T,
    y: T,
    *,
    transpose_x: bool = True,
    transpose_weight: bool = False,
    group_type: int = 2,
    group_list_type: int = 0,
) -> T:
    """Add the matmul of each group's rows of both matrices to y [groups * rows, columns]."""
    for name, flag, valid in (
        ("group_type", group_type, 2),
        ("transpose_x", transpose_x, True),
        ("transpose_weight", transpose_weight, False),
    ):
        check_choice(name, flag, valid)
    if not y.is_meta:
        y.add_(matmul_over_sums(x.t(), weight, group_list, group_list_type, torch.float32).reshape(y.shape))
    return y


@host_kernel(
    "GroupedMatmulSwigluQuantV2",
    "GroupedMatmulSwigluQuant",
    dynamic=("weight", "weight_scale", "weight_assist_matrix"),
    ignores=("tuning_config",),
)
def grouped_matmul_swiglu_quant(
    x: T,
    x_scale: T,
    group_list: T,
    weight: list[T],
    weight_scale: list[T],
    weight_assist_matrix: Sequence[T] = (),
    bias: T | None = None,
    smooth_scale: T | None = None,
    *,
    dequant_mode: int = 0,
    dequant_dtype: int = 0,
    quant_mode: int = 0,
    quant_dtype: int = 1,
    transpose_weight: bool = False,
    group_list_type: int = 0,
) -> tuple[T, T]:
    """Multiply each group's int8 rows by its weight, apply SwiGLU and quantize to int8.

    Rows after the last group are zeros.
    """
    check_choice("dequant_mode", dequant_mode, 0)
    check_choice("quant_mode", quant_mode, 0)
    if any(t.numel() for t in weight_assist_matrix):
        raise ValueError("weight_assist_matrix is not supported; leave it out")
    if x.dtype is not torch.int8 or bias is not None or smooth_scale is not None:
        raise ValueError(f"x is {x.dtype}; expected torch.int8, without bias and smooth_scale")
    weights = [w for given in weight for w in (given.unbind(0) if given.dim() == 3 else (given,))]
    scales = [s for given in weight_scale for s in (given.unbind(0) if given.dim() == 2 else (given,))]
    columns = scales[0].size(-1)
    y, own = x.new_zeros(x.size(0), columns // 2, dtype=torch.int8), x_scale.new_zeros(x.size(0), dtype=torch.float32)
    if x.is_meta:
        return y, own
    for group, start, end in group_spans(group_list, group_list_type, x.size(0)):
        if not 0 <= group < len(weights):
            raise ValueError(f"group_list names group {group}; there are {len(weights)} weights")
        w = weights[group].transpose(-1, -2) if transpose_weight else weights[group]
        if w.dtype is not torch.int8:
            raise ValueError(f"weight is {w.dtype}; torch.int8 is supported")
        product = integer_product(x[start:end], w) * scales[group].double()
        gate, other = (product * x_scale[start:end].double().reshape(-1, 1)).float().chunk(2, -1)
        numbers, scale = dynamic(F.silu(gate) * other)
        y[start:end], own[start:end] = numbers, scale.squeeze(-1)
    return y, own


@host_kernel("GroupedMatmulFinalizeRouting", ignores=("tuning_config",))
def grouped_matmul_finalize_routing(
    x: T,
    w: T,
    scale: T | None = None,
    bias: T | None = None,
    pertoken_scale: T | None = None,
    group_list: T | None = None,
    shared_input: T | None = None,
    logit: T | None = None,
    row_index: T | None = None,
    offset: T | None = None,
    *,
    dtype: int = 0,
    shared_input_weight: float = 1.0,
    shared_input_offset: int = 0,
    transpose_x: bool = False,
    transpose_w: bool = False,
    output_bs: int = 0,
    group_list_type: int = 1,
) -> T:
    """Multiply each group's rows by its weight and their logits, and sum them into their output rows.

    A shared part is added if given.
    """
    if group_list is None or scale is None or pertoken_scale is None or row_index is None or logit is None:
        raise ValueError("group_list, scale, pertoken_scale, row_index and logit are required")
    refuse_given("not supported", bias=bias, offset=offset, transpose_x=transpose_x)
    weight = w.transpose(-1, -2) if transpose_w else w
    if weight.dtype is not torch.int8 or x.dtype is not torch.int8:
        raise ValueError(f"x is {x.dtype}, w {weight.dtype}; torch.int8 is supported")
    y = x.new_zeros(output_bs or x.size(0), weight.size(-1), dtype=torch.float32)
    if x.is_meta:
        return y
    if shared_input is not None:
        y[shared_input_offset : shared_input_offset + shared_input.size(0)] += (
            shared_input.float() * shared_input_weight
        )
    for group, start, end in group_spans(group_list, group_list_type, x.size(0)):
        rows = integer_product(x[start:end], weight[group]) * scale[group].double()
        rows = rows * pertoken_scale[start:end].double().unsqueeze(-1) * logit[start:end].double().unsqueeze(-1)
        y.index_add_(0, row_index[start:end].long(), rows.float())
    return y


@host_kernel("QuantGroupedMatmulDequant")
def quant_grouped_matmul_dequant(
    x: T,
    quantized_weight: T,
    weight_scale: T,
    group_list: T,
    bias: T | None = None,
    x_scale: T | None = None,
    x_offset: T | None = None,
    smooth_scale: T | None = None,
    *,
    x_quant_mode: str = "pertoken",
    transpose_weight: bool = True,
) -> T:
    """Compute QuantMatmulDequant for each group's rows, the groups given by their ends."""
    columns = weight_scale.size(-1)
    y = x.new_zeros(x.size(0), columns)
    if x.is_meta:
        return y
    for group, start, end in group_spans(group_list, 0, x.size(0)):
        of_group = [None if given is None else given[group] for given in (bias, smooth_scale)]
        y[start:end] = quant_matmul_dequant(
            x[start:end], quantized_weight[group], weight_scale[group], of_group[0],
            None if x_scale is None else x_scale if x_scale.numel() == 1 else x_scale[start:end], x_offset, of_group[1],
            x_quant_mode=x_quant_mode, transpose_weight=transpose_weight,
        )  # fmt: skip
    return y
