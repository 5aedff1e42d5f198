"""Products of groups of matrices: the rows of each expert with the expert's weight."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F

from ascend_graph.host.dtypes import INT4, torch_dtype
from ascend_graph.host.ops.four_bits import integers, unpacked_where_dense
from ascend_graph.host.ops.matmul import integer_product
from ascend_graph.host.ops.packed_parameters import unpacked_parameter
from ascend_graph.host.ops.quantisation import dynamic, saturated
from ascend_graph.host.ops.quantised_products import quant_matmul_dequant
from ascend_graph.host.ops.registry import host_kernel

T = torch.Tensor

_ACTIVATIONS: dict[int, Callable[[T], T]] = {
    0: lambda x: x,
    1: torch.relu,
    2: lambda x: F.gelu(x, approximate="tanh"),
    4: lambda x: x * torch.sigmoid(1.702 * x),
    5: F.silu,
}
#: What the numbers of GE's attr dtype mean.
_DTYPES = {0: torch.float16, 1: torch.bfloat16, 2: torch.int32, 3: torch.float32}


def _spans(group_list: T, kind: int, most: int) -> list[tuple[int, int, int]]:
    """Of each group its number and where its rows begin and end."""
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
        raise ValueError(f"group_list_type {kind} is not 0 (ends), 1 (sizes) or 2 (groups and sizes)")
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
    """Without tensors that stand for none."""
    return [value for value in values if value.numel()]


def _of(values: Sequence[T], group: int, groups: int) -> T | None:
    """A group's parameter: of a list its own, or a row of the only one."""
    if not values:
        return None
    if len(values) > 1 or groups == 1:
        own = values[group if len(values) > 1 else 0]
        return own[0] if groups == 1 and own.dim() > 1 and own.size(0) == 1 else own
    return values[0][group]


def _four_bit_weights(x: Sequence[T], weight: Sequence[T], antiquant_scale: Sequence[T]) -> list[T]:
    """Weights of 4 bits as int8; what documents leave out is refused: they suit floats alone."""
    if not any(w.dtype in (INT4, torch.int32) for w in weight):
        return list(weight)
    if not all(t.dtype in (torch.float16, torch.bfloat16) for t in x) or not _given(antiquant_scale):
        raise ValueError(
            f"weights of 4 bits need an antiquant_scale and x of float16 or bfloat16, not {x[0].dtype}; with x of int4 a device "
            "takes them in FRACTAL_NZ alone, which the host does not have"
        )
    return [unpacked_where_dense(w) if w.dtype is torch.int32 else integers(w) for w in weight]


def _product(
    x: T,
    weight: T,
    scale: T | None,
    offset: T | None,
    antiquant: tuple[T | None, T | None],
    rows: T | None,
    bias: T | None,
) -> T:
    """The product with its quantisation, as float64 where integers are summed up."""
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
    """Parameters of columns, or of groups of rows and columns, for each number of a weight."""
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
    bias: list[T],
    scale: list[T],
    offset: list[T],
    antiquant_scale: list[T],
    antiquant_offset: list[T],
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
    """Each group's rows, or part of the sum, with its weight; ``out_dtype`` is the host's own: the results' number in GE."""
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


def _grouped(
    tensors: tuple[list[T], ...],
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
    if act_type not in _ACTIVATIONS:
        raise ValueError(f"act_type {act_type} is not supported; {', '.join(map(str, _ACTIVATIONS))} are")
    if group_type not in (-1, 0, 2):
        raise ValueError(f"group_type {group_type} is not -1 (none), 0 (rows) or 2 (the summed dimension)")
    per_token_scale = None if per_token_scale is None or not per_token_scale.numel() else per_token_scale
    stacked = len(weight) == 1 and weight[0].dim() == 3
    groups = weight[0].size(0) if stacked else len(weight) if group_type != 2 else -1
    parameters = [_given(given) for given in tensors[2:]]
    if group_type != 2:
        _check_operands(x, weight, group_list, group_list_type, groups)
        _check_parameters(parameters, weight, groups if stacked else 0)
        if per_token_scale is not None and len(x) == 1 and per_token_scale.numel() != x[0].size(0):
            raise ValueError(
                f"per_token_scale of shape {tuple(per_token_scale.shape)} has not a number for each of {x[0].size(0)} rows"
            )

    def product(a: T, group: int, rows: T | None) -> T:
        w = weight[0][group] if stacked else weight[group if len(weight) > 1 else 0]
        if a.size(-1) != w.size(0):
            raise ValueError(
                f"x {tuple(a.shape)} and the weight of group {group}, {tuple(w.shape)}, cannot be multiplied"
            )
        bias, scale, offset, factor, shift = (_of(given, group, groups) for given in parameters)
        y = _ACTIVATIONS[act_type](_product(a, w, scale, offset, (factor, shift), rows, bias))
        return saturated(y) if target is torch.int8 else y.to(target)

    if len(x) > 1 or (group_list is None and group_type == -1):
        results = [product(a, group, None) for group, a in enumerate(x)]
        return results if split_item < 2 else [torch.cat(results)]
    if group_list is None:
        raise ValueError("group_list is needed where one x is split")
    if group_type == 2:
        return [_over_sums(x[0], weight[0], group_list, group_list_type, target)]
    y = x[0].new_zeros(x[0].size(0), weight[0].size(-1), dtype=target)
    if group_list.is_meta or (x[0].is_meta and split_item >= 2):
        return [y]
    spans = _spans(group_list, group_list_type, x[0].size(0))
    for group, start, end in spans:
        if not 0 <= group < groups:
            raise ValueError(f"group_list names group {group}; there are {groups} weights")
        if end > start and not y.is_meta:
            rows = None if per_token_scale is None else per_token_scale.reshape(-1)[start:end]
            y[start:end] = product(x[0][start:end], group, rows)
    return [y] if split_item >= 2 else [y[start:end] for _, start, end in spans]


def _check_operands(x: list[T], weight: list[T], group_list: T | None, kind: int, groups: int) -> None:
    """Refuse what cannot be multiplied, and groups that are not the weights'."""
    if len(x) > 1 and len(weight) not in (1, len(x)):
        raise ValueError(f"x has {len(x)} tensors and weight {len(weight)}; the same number or one weight is expected")
    for number in range(max(len(x), len(weight))):
        a, w = (given[number if len(given) > 1 else 0] for given in (x, weight))
        if w.dim() < 2 or a.dim() < 2 or a.size(-1) != w.size(-2):
            raise ValueError(f"weight of shape {tuple(w.shape)} does not suit x of shape {tuple(a.shape)}")
    if group_list is not None and len(x) == 1:
        expected = [groups, 2] if kind == 2 else [groups]
        if (
            group_list.dim() != len(expected)
            or group_list.size(0) > groups
            or (kind != 2 and group_list.size(0) < groups)
        ):
            raise ValueError(f"group_list of shape {tuple(group_list.shape)} is not {expected}")


def _check_parameters(parameters: list[list[T]], weight: list[T], stacked: int) -> None:
    """Refuse biases, scales and offsets that are not for the weights' columns; ``stacked`` is the number of groups in one tensor."""
    columns = [w.size(-1) for w in weight]
    for name, values in zip(
        ("bias", "scale", "offset", "antiquant_scale", "antiquant_offset"), parameters, strict=True
    ):
        if values and len(values) != len(weight):
            raise ValueError(f"{name} has {len(values)} tensors; weight has {len(weight)}")
        for value, count in zip(values, columns, strict=False):
            shape = tuple(value.shape)
            if not shape or shape[-1] not in (1, count) or (stacked and shape[0] != stacked):
                expected = f"[{stacked}, {count}], for each group" if stacked else f"[{count}]"
                raise ValueError(f"{name} of shape {shape} is not {expected}, a number for each column")


def _over_sums(x: T, weight: T, group_list: T, kind: int, target: torch.dtype) -> T:
    """[groups, rows, columns]: each group's part of the sum, of x [rows, sum] and weight [sum, columns]."""
    y = x.new_zeros(group_list.size(0), x.size(0), weight.size(1), dtype=target)
    if not x.is_meta:
        for group, start, end in _spans(group_list, kind, x.size(1)):
            y[group] = (x[:, start:end].float() @ weight[start:end].float()).to(target)
    return y


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
    """The product of each group's rows of both matrices, added to y [groups * rows, columns]."""
    if group_type != 2 or not transpose_x or transpose_weight:
        raise ValueError(
            f"group_type {group_type} (2), transpose_x {transpose_x} (True), transpose_weight {transpose_weight} (False)"
        )
    if not y.is_meta:
        y.add_(_over_sums(x.t(), weight, group_list, group_list_type, torch.float32).reshape(y.shape))
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
    weight_assist_matrix: list[T],
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
    """Each group's rows of 8-bit integers with its weight, a gated unit, and 8 bits again; rows behind the groups are zeros."""
    if dequant_mode != 0 or quant_mode != 0 or any(t.numel() for t in weight_assist_matrix):
        raise ValueError(
            f"dequant_mode {dequant_mode} (0), quant_mode {quant_mode} (0), weight_assist_matrix (none): no other is supported"
        )
    if x.dtype is not torch.int8 or bias is not None or smooth_scale is not None:
        raise ValueError(f"x is {x.dtype} (torch.int8), bias and smooth_scale are not supported")
    weights = [w for given in weight for w in (given.unbind(0) if given.dim() == 3 else (given,))]
    scales = [s for given in weight_scale for s in (given.unbind(0) if given.dim() == 2 else (given,))]
    columns = scales[0].size(-1)
    y, own = x.new_zeros(x.size(0), columns // 2, dtype=torch.int8), x_scale.new_zeros(x.size(0), dtype=torch.float32)
    if x.is_meta:
        return y, own
    for group, start, end in _spans(group_list, group_list_type, x.size(0)):
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
    """Each group's rows with its weight, times their logits, summed up at the rows that they belong to, and a shared part."""
    if group_list is None or scale is None or pertoken_scale is None or row_index is None or logit is None:
        raise ValueError("group_list, scale, pertoken_scale, row_index and logit are required")
    if bias is not None or offset is not None or transpose_x:
        raise ValueError("bias, offset and transpose_x are not supported")
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
    for group, start, end in _spans(group_list, group_list_type, x.size(0)):
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
    """QuantMatmulDequant for each group's rows, the groups given by their ends."""
    columns = weight_scale.size(-1)
    y = x.new_zeros(x.size(0), columns)
    if x.is_meta:
        return y
    for group, start, end in _spans(group_list, 0, x.size(0)):
        of_group = [None if given is None else given[group] for given in (bias, smooth_scale)]
        y[start:end] = quant_matmul_dequant(
            x[start:end], quantized_weight[group], weight_scale[group], of_group[0],
            None if x_scale is None else x_scale if x_scale.numel() == 1 else x_scale[start:end], x_offset, of_group[1],
            x_quant_mode=x_quant_mode, transpose_weight=transpose_weight,
        )  # fmt: skip
    return y


_OF_FFN: dict[str, Callable[[T], T]] = {
    "fastgelu": lambda x: x * torch.sigmoid(1.702 * x),
    "gelu": F.gelu,
    "relu": torch.relu,
    "silu": F.silu,
}
_GATED: dict[str, Callable[[T], T]] = {"geglu": F.gelu, "swiglu": F.silu, "reglu": torch.relu}


def _activated(x: T, activation: str) -> T:
    if activation in _GATED:
        first, second = x.chunk(2, -1)
        return _GATED[activation](first) * second
    if activation not in _OF_FFN:
        raise ValueError(f"activation {activation!r} is not one of {', '.join((*_OF_FFN, *_GATED))}")
    return _OF_FFN[activation](x)


@host_kernel("FFN", ignores=("inner_precise",))
def ffn(
    x: T,
    weight1: T,
    weight2: T,
    expert_tokens: T | None = None,
    bias1: T | None = None,
    bias2: T | None = None,
    scale: T | None = None,
    offset: T | None = None,
    deq_scale1: T | None = None,
    deq_scale2: T | None = None,
    antiquant_scale1: T | None = None,
    antiquant_scale2: T | None = None,
    antiquant_offset1: T | None = None,
    antiquant_offset2: T | None = None,
    *,
    activation: str,
    output_dtype: int = 0,
    tokens_index_flag: bool = False,
) -> T:
    """Two products with an activation between; with experts each has its rows, given by their number or their end."""
    quantised = x.dtype is torch.int8
    target = (torch.float16, torch.bfloat16)[output_dtype] if quantised else x.dtype
    flat = x.reshape(-1, x.size(-1))

    def run(rows: T, expert: int | None) -> T:
        def of(values: T | None) -> T | None:
            return values if values is None or expert is None else values[expert]

        def product(a: T, weight: T, bias: T | None, dequant: T | None, anti: tuple[T | None, T | None]) -> T:
            w = of(weight)
            assert w is not None
            return _product(a, w, of(dequant), None, (of(anti[0]), of(anti[1])), None, of(bias))

        hidden = product(rows, weight1, bias1, deq_scale1, (antiquant_scale1, antiquant_offset1))
        hidden = _activated(hidden.float(), activation)
        if quantised:
            factor, shift = of(scale), of(offset)
            if factor is None:
                raise ValueError("x of int8 needs scale")
            hidden = saturated(hidden * factor.float() + (0 if shift is None else shift.float()))
        elif antiquant_scale1 is not None or weight1.dtype.is_floating_point:
            hidden = hidden.to(x.dtype)
        return product(hidden, weight2, bias2, deq_scale2, (antiquant_scale2, antiquant_offset2)).to(target)

    if expert_tokens is None or not expert_tokens.numel():
        y = run(flat, None)
        return y.reshape(*x.shape[:-1], y.size(-1))
    y = flat.new_zeros(flat.size(0), weight2.size(-1), dtype=target)
    if x.is_meta:
        return y.reshape(*x.shape[:-1], -1)
    spans = _spans(expert_tokens, 0 if tokens_index_flag else 1, flat.size(0))
    if spans[-1][2] != flat.size(0):
        raise ValueError(f"expert_tokens {expert_tokens.tolist()} are not all {flat.size(0)} rows")
    for expert, start, end in spans:
        y[start:end] = run(flat[start:end], expert)
    return y.reshape(*x.shape[:-1], -1)


@host_kernel("AddLora")
def add_lora(
    y: T,
    x: T,
    weightB: T,  # noqa: N803 - GE's name
    indices: T,
    weightA: T | None = None,  # noqa: N803
    *,
    layer_idx: int = 0,
    scale: float = 1e-3,
    y_offset: int = 0,
    y_slice_size: int = -1,
) -> T:
    """To a slice of each row of y its row of x times the two matrices of its adapter; one behind the last is none."""
    adapters = weightB.size(0)
    if not y.is_meta and bool(((indices < 0) | (indices > adapters)).any()):
        raise ValueError(f"indices {indices.tolist()}: there are adapters 0 to {adapters - 1}, and {adapters} for none")
    places = indices.long().clamp(max=adapters - 1)
    hidden = x.float()
    if weightA is not None:
        hidden = torch.einsum("nk,nrk->nr", hidden, weightA[places, layer_idx].float())
    part = torch.einsum("nr,nor->no", hidden, weightB[places, layer_idx].float()) * scale
    part = part.masked_fill((indices >= adapters).unsqueeze(-1), 0)
    size = part.size(-1) if y_slice_size < 0 else y_slice_size
    result = y.float()
    result = torch.cat(
        [result[:, :y_offset], result[:, y_offset : y_offset + size] + part[:, :size], result[:, y_offset + size :]], 1
    )
    return result.to(y.dtype)
