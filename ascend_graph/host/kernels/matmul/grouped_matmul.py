"""Grouped matmuls: the rows of each expert times the expert's weight."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F

from ascend_graph.host.dtypes import INT4, torch_dtype
from ascend_graph.host.kernels.checks import check_choice, check_matrices
from ascend_graph.host.kernels.matmul.matmul import integer_product
from ascend_graph.host.kernels.quantization.four_bits import integers, unpacked_where_dense
from ascend_graph.host.kernels.quantization.packed_parameters import unpacked_parameter
from ascend_graph.host.kernels.quantization.quantize import saturated
from ascend_graph.host.kernels.registry import host_kernel

T = torch.Tensor

_ACTIVATIONS: dict[int, Callable[[T], T]] = {
    0: lambda x: x,
    1: torch.relu,
    2: lambda x: F.gelu(x, approximate="tanh"),
    4: lambda x: x * torch.sigmoid(1.702 * x),
    5: F.silu,
}
#: Dtypes by the numbers of GE's attr dtype.
_DTYPES = {0: torch.float16, 1: torch.bfloat16, 2: torch.int32, 3: torch.float32}


def group_spans(group_list: T, kind: int, most: int) -> list[tuple[int, int, int]]:
    """Return each group's number, first row and end."""
    numbers = group_list.tolist()
    if kind == 2:
        groups = [(int(group), int(size)) for group, size in numbers]
    elif kind == 1:
        groups = [(group, int(size)) for group, size in enumerate(numbers)]
    elif kind == 0:
        groups = [
            (group, int(end) - int(start))
            for group, (start, end) in enumerate(zip([0, *numbers], numbers, strict=False))
        ]
    else:
        raise ValueError(f"group_list_type {kind}: expected 0 (ends), 1 (sizes) or 2 (groups and sizes)")
    spans, start = [], 0
    for group, size in groups:
        if size < 0 or start + size > most:
            raise ValueError(
                f"group_list {numbers} of type {kind}: groups must not be negative, nor exceed {most} rows"
            )
        spans.append((group, start, start + size))
        start += size
    return spans


def _given(values: Sequence[T]) -> list[T]:
    """Drop the empty tensors that stand for absent ones."""
    return [value for value in values if value.numel()]


def _of(values: Sequence[T], group: int, groups: int) -> T | None:
    """Return a group's parameter: its own tensor of a list, or a row of the only one."""
    if not values:
        return None
    if len(values) > 1 or groups == 1:
        own = values[group if len(values) > 1 else 0]
        return own[0] if groups == 1 and own.dim() > 1 and own.size(0) == 1 else own
    return values[0][group]


def _four_bit_weights(x: Sequence[T], weight: Sequence[T], antiquant_scale: Sequence[T]) -> list[T]:
    """Unpack 4-bit weights to int8; documents allow them with floats only, and other operands are refused."""
    if not any(w.dtype in (INT4, torch.int32) for w in weight):
        return list(weight)
    if not all(t.dtype in (torch.float16, torch.bfloat16) for t in x) or not _given(antiquant_scale):
        raise ValueError(
            f"weights of 4 bits need an antiquant_scale and x of float16 or bfloat16, not {x[0].dtype}; with x of int4 a device "
            "takes them in FRACTAL_NZ alone, which the host does not have"
        )
    return [unpacked_where_dense(w) if w.dtype is torch.int32 else integers(w) for w in weight]


def group_matmul(
    x: T,
    weight: T,
    scale: T | None,
    offset: T | None,
    antiquant: tuple[T | None, T | None],
    rows: T | None,
    bias: T | None,
) -> T:
    """Compute the matmul with its quantization, as float64 if integers are summed."""
    if antiquant[0] is not None:
        wide = weight.float() if antiquant[1] is None else weight.float() + _by_rows(antiquant[1], weight)
        y = x.float() @ (wide * _by_rows(antiquant[0], weight))
        return y if bias is None else y + bias.float()
    if x.dtype.is_floating_point:
        y = x.float() @ weight.float()
        return y if bias is None else y + bias.float()
    y = integer_product(x, weight).double()
    if bias is not None and not bias.dtype.is_floating_point:
        y = y + bias.double()
    if scale is not None:
        if scale.dtype in (torch.int64, torch.uint64):
            scale, offset = unpacked_parameter(scale)
        y = y * scale.double()
    if rows is not None:
        y = y * rows.double().unsqueeze(-1)
    if bias is not None and bias.dtype.is_floating_point:
        y = y + bias.double()
    return y if offset is None else y + offset.double()


def _by_rows(values: T, weight: T) -> T:
    """Expand parameters of columns, or of groups of rows and columns, to the rows of a weight."""
    wide = values.float()
    return wide if wide.dim() < 2 else wide.repeat_interleave(weight.size(0) // wide.size(0), 0)


@host_kernel(
    "GroupedMatmul",
    dynamic=("x", "weight", "bias", "scale", "offset", "antiquant_scale", "antiquant_offset"),
    ignores=("tuning_config",),
)
def grouped_matmul(
    x: list[T],
    weight: list[T],
    bias: Sequence[T] = (),
    scale: Sequence[T] = (),
    offset: Sequence[T] = (),
    antiquant_scale: Sequence[T] = (),
    antiquant_offset: Sequence[T] = (),
    group_list: T | None = None,
    per_token_scale: T | None = None,
    *,
    split_item: int = 0,
    dtype: int = 0,
    out_dtype: int = -1,
    transpose_weight: bool = False,
    transpose_x: bool = False,
    group_type: int = -1,
    group_list_type: int = 0,
    act_type: int = 0,
) -> list[T]:
    """Multiply each group's rows, or its part of the sum, by its weight.

    ``out_dtype`` exists on the host only: the number in GE of the results' dtype.
    """
    if out_dtype >= 0:
        target = torch_dtype(out_dtype)
    else:
        target = x[0].dtype if x[0].dtype.is_floating_point else _DTYPES.get(dtype, x[0].dtype)
    return _grouped(
        (x, weight, bias, scale, offset, antiquant_scale, antiquant_offset),
        group_list,
        per_token_scale,
        split_item,
        target,
        (transpose_x, transpose_weight),
        group_type,
        group_list_type,
        act_type,
    )


def _check_modes(act_type: int, group_type: int) -> None:
    """Raise if a mode is not supported."""
    check_choice("act_type", act_type, *_ACTIVATIONS)
    if group_type not in (-1, 0, 2):
        raise ValueError(f"group_type {group_type}: expected -1 (none), 0 (rows) or 2 (the summed dimension)")


def _grouped(
    tensors: tuple[Sequence[T], ...],
    group_list: T | None,
    per_token_scale: T | None,
    split_item: int,
    target: torch.dtype,
    transposed: tuple[bool, bool],
    group_type: int,
    group_list_type: int,
    act_type: int,
) -> list[T]:
    if not tensors[0] or not tensors[1]:
        raise ValueError(f"x has {len(tensors[0])} tensors and weight {len(tensors[1])}; each needs one")
    x, weight = (
        [t.transpose(-1, -2) if is_transposed else t for t in given]
        for given, is_transposed in zip(
            (tensors[0], _four_bit_weights(tensors[0], tensors[1], tensors[5])), transposed, strict=True
        )
    )
    _check_modes(act_type, group_type)
    per_token_scale = None if per_token_scale is None or not per_token_scale.numel() else per_token_scale
    stacked = len(weight) == 1 and weight[0].dim() == 3
    groups = weight[0].size(0) if stacked else len(weight) if group_type != 2 else -1
    parameters = [_given(given) for given in tensors[2:]]
    if group_type != 2:
        _check_operands(x, weight, group_list, group_list_type, groups)
        _check_parameters(parameters, weight, groups if stacked else 0)
        if per_token_scale is not None and len(x) == 1 and per_token_scale.numel() != x[0].size(0):
            raise ValueError(
                f"per_token_scale of shape {tuple(per_token_scale.shape)} must have {x[0].size(0)} elements, one for "
                "each row"
            )

    def product(a: T, group: int, rows: T | None) -> T:
        w = weight[0][group] if stacked else weight[group if len(weight) > 1 else 0]
        check_matrices("x", a, f"the weight of group {group}", w)
        bias, scale, offset, factor, shift = (_of(given, group, groups) for given in parameters)
        y = _ACTIVATIONS[act_type](group_matmul(a, w, scale, offset, (factor, shift), rows, bias))
        return saturated(y) if target is torch.int8 else y.to(target)

    if len(x) > 1 or (group_list is None and group_type == -1):
        results = [product(a, group, None) for group, a in enumerate(x)]
        return results if split_item < 2 else [torch.cat(results)]
    if group_list is None:
        raise ValueError("group_list is needed where one x is split")
    if group_type == 2:
        return [matmul_over_sums(x[0], weight[0], group_list, group_list_type, target)]
    y = x[0].new_zeros(x[0].size(0), weight[0].size(-1), dtype=target)
    if group_list.is_meta or (x[0].is_meta and split_item >= 2):
        return [y]
    spans = group_spans(group_list, group_list_type, x[0].size(0))
    for group, start, end in spans:
        if not 0 <= group < groups:
            raise ValueError(f"group_list names group {group}; there are {groups} weights")
        if end > start and not y.is_meta:
            rows = None if per_token_scale is None else per_token_scale.reshape(-1)[start:end]
            y[start:end] = product(x[0][start:end], group, rows)
    return [y] if split_item >= 2 else [y[start:end] for _, start, end in spans]


def _check_operands(x: list[T], weight: list[T], group_list: T | None, kind: int, groups: int) -> None:
    """Refuse operands that cannot be multiplied, and groups that do not fit the weights."""
    if len(x) > 1 and len(weight) not in (1, len(x)):
        raise ValueError(f"x has {len(x)} tensors and weight {len(weight)}; the same number or one weight is expected")
    for number in range(max(len(x), len(weight))):
        a, w = (given[number if len(given) > 1 else 0] for given in (x, weight))
        check_matrices("x", a, "weight", w)
    if group_list is not None and len(x) == 1:
        expected = [groups, 2] if kind == 2 else [groups]
        if (
            group_list.dim() != len(expected)
            or group_list.size(0) > groups
            or (kind != 2 and group_list.size(0) < groups)
        ):
            raise ValueError(f"group_list of shape {tuple(group_list.shape)}: expected {expected}")


def _check_parameters(parameters: list[list[T]], weight: list[T], stacked: int) -> None:
    """Refuse biases, scales and offsets that do not fit the weights' columns.

    ``stacked`` is the number of groups in one tensor.
    """
    columns = [w.size(-1) for w in weight]
    for name, values in zip(
        ("bias", "scale", "offset", "antiquant_scale", "antiquant_offset"), parameters, strict=True
    ):
        if values and len(values) != len(weight):
            raise ValueError(f"{name} has {len(values)} tensors; expected {len(weight)}, as weight has")
        for value, count in zip(values, columns, strict=False):
            shape = tuple(value.shape)
            if not shape or shape[-1] not in (1, count) or (stacked and shape[0] != stacked):
                expected = f"[{stacked}, {count}], for each group" if stacked else f"[{count}]"
                raise ValueError(f"{name} of shape {shape} is not valid; expected {expected}, one for each column")


def matmul_over_sums(x: T, weight: T, group_list: T, kind: int, target: torch.dtype) -> T:
    """Compute each group's part of the sum of x [rows, sum] and weight [sum, columns], as [groups, rows, columns]."""
    y = x.new_zeros(group_list.size(0), x.size(0), weight.size(1), dtype=target)
    if not x.is_meta:
        for group, start, end in group_spans(group_list, kind, x.size(1)):
            y[group] = (x[:, start:end].float() @ weight[start:end].float()).to(target)
    return y
