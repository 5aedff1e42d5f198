"""Operators that query shapes, change them, and concatenate or split tensors."""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch.nn import functional as F

from ascend_graph.host.dtypes import torch_dtype
from ascend_graph.host.kernels.checks import check_count
from ascend_graph.host.kernels.quantization.four_bits import moves
from ascend_graph.host.kernels.registry import host_kernel

T = torch.Tensor


def ints(tensor: T) -> list[int]:
    """Return the values of a tensor of integers of any shape."""
    values: list[int] = (tensor if tensor.dim() == 1 else tensor.reshape(-1)).tolist()
    return [int(value) for value in values] if tensor.dtype.is_floating_point else values


@host_kernel("Shape", shapes_only=True)
def shape(x: T, *, dtype: int = 3) -> T:
    return torch.tensor(x.shape, dtype=torch_dtype(dtype))


@host_kernel("ShapeN", dynamic=("x",), shapes_only=True)
def shape_n(x: list[T], *, dtype: int = 3) -> list[T]:
    return [torch.tensor(t.shape, dtype=torch_dtype(dtype)) for t in x]


@host_kernel("Rank", shapes_only=True)
def rank(x: T) -> T:
    return torch.tensor(x.dim(), dtype=torch.int32)


@host_kernel("Size", shapes_only=True)
def size(x: T, *, dtype: int = 3) -> T:
    return torch.tensor(x.numel(), dtype=torch_dtype(dtype))


@host_kernel("Reshape", values=("shape",), views=("x",))
@moves
def reshape(x: T, shape: T, *, axis: int = 0, num_axes: int = -1) -> T:
    if (axis, num_axes) != (0, -1):
        raise ValueError(f"axis={axis}, num_axes={num_axes}: reshaping a part of the dimensions is not supported")
    return x.reshape(ints(shape))


@host_kernel("Squeeze", views=("x",))
def squeeze(x: T, *, axis: list[int] = []) -> T:
    wrong = [dim for dim in axis if x.size(dim) != 1]
    if wrong:
        raise ValueError(f"dimensions {wrong} to squeeze are not of size 1")
    return x.squeeze(axis) if axis else x.squeeze()


@host_kernel("Unsqueeze", views=("x",))
def unsqueeze(x: T, *, axes: list[int] = []) -> T:
    rank = x.dim() + len(axes)
    for axis in sorted(axis % rank for axis in axes):
        x = x.unsqueeze(axis)
    return x


@host_kernel("ExpandDims", values=("axis",), views=("x",))
def expand_dims(x: T, axis: T) -> T:
    return x.unsqueeze(int(axis))


@host_kernel("Flatten", "FlattenV2", views=("x",))
@moves
def flatten(x: T, *, axis: int = 1, end_axis: int = -1) -> T:
    return x.flatten(axis, end_axis)


@host_kernel("Transpose", values=("perm",), views=("x",))
@moves
def transpose(x: T, perm: T) -> T:
    return x.permute(ints(perm)).contiguous()


@host_kernel("Permute", views=("x",))
@moves
def permute(x: T, *, order: list[int] = [0]) -> T:
    return x.permute(order).contiguous()


@host_kernel("TransposeD", views=("x",))
@moves
def transpose_d(x: T, *, perm: list[int]) -> T:
    return x.permute(perm).contiguous()


@host_kernel("BroadcastTo", values=("shape",), views=("x",))
def broadcast_to(x: T, shape: T) -> T:
    return x.expand(ints(shape)).contiguous()


@host_kernel("Expand", values=("shape",), views=("x",))
def expand(x: T, shape: T) -> T:
    return x.expand(torch.broadcast_shapes(x.shape, ints(shape))).contiguous()


@host_kernel("Tile", values=("multiples",), views=("x",))
def tile(x: T, multiples: T) -> T:
    return x.tile(ints(multiples))


@host_kernel("Pack", dynamic=("x",), ignores=("N",))
def pack(x: list[T], *, axis: int = 0) -> T:
    if len({t.shape for t in x}) > 1 and all(t.numel() == 1 for t in x):
        x = [t.reshape(()) for t in x]  # sizes, only some of them as tensors of one element
    return torch.stack(x, axis)


@host_kernel("Unpack", views=("x",))
def unpack(x: T, *, num: int, axis: int = 0) -> list[T]:
    if x.size(axis) != num:
        raise ValueError(f"num {num}: expected {x.size(axis)}, the size of dimension {axis} of {list(x.shape)}")
    return list(x.unbind(axis))


@host_kernel("ConcatV2", dynamic=("x",), values=("concat_dim",), ignores=("N",))
def concat_v2(x: list[T], concat_dim: T) -> T:
    return _concatenated(x, int(concat_dim))


@host_kernel("Concat", dynamic=("x",), values=("concat_dim",), ignores=("N",))
def concat(concat_dim: T, x: list[T]) -> T:
    return _concatenated(x, int(concat_dim))


@host_kernel("ConcatD", "ConcatV2D", dynamic=("x",), ignores=("N",))
def concat_d(x: list[T], *, concat_dim: int) -> T:
    return _concatenated(x, concat_dim)


def _concatenated(x: list[T], dim: int) -> T:
    return torch.cat([t if t.dim() else t.reshape(1) for t in x], dim)


@host_kernel("Split", values=("split_dim",), views=("x",))
def split(split_dim: T, x: T, *, num_split: int) -> list[T]:
    return _split(x, [-1] * num_split, int(split_dim))


@host_kernel("SplitD", views=("x",))
def split_d(x: T, *, split_dim: int, num_split: int) -> list[T]:
    return _split(x, [-1] * num_split, split_dim)


@host_kernel("SplitV", values=("size_splits", "split_dim"), views=("x",))
def split_v(x: T, size_splits: T, split_dim: T, *, num_split: int) -> list[T]:
    sizes = ints(size_splits)
    check_count("size_splits", sizes, num_split, "output (num_split)")
    return _split(x, sizes, int(split_dim))


def _split(x: T, sizes: list[int], dim: int) -> list[T]:
    """Split into parts of the given sizes; those of -1 share the rest evenly."""
    free = sizes.count(-1)
    rest = x.size(dim) - sum(s for s in sizes if s != -1)
    if free and rest % free:
        raise ValueError(f"dimension {dim} of {list(x.shape)} must split into {free} equal parts")
    return [part.contiguous() for part in x.split([rest // free if s == -1 else s for s in sizes], dim)]


@host_kernel("Slice", values=("offsets", "size"), views=("x",))
@moves
def slice_(x: T, offsets: T, size: T) -> T:
    for dim, (start, length) in enumerate(zip(ints(offsets), ints(size), strict=True)):
        x = x.narrow(dim, start, x.size(dim) - start if length == -1 else length)
    return x.contiguous()


@host_kernel("StridedSlice", values=("begin", "end", "strides"), views=("x",))
def strided_slice(
    x: T,
    begin: T,
    end: T,
    strides: T,
    *,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
) -> T:
    masks = (begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask)
    return _sliced(x, list(zip(ints(begin), ints(end), ints(strides), strict=True)), masks)


@host_kernel("StridedSliceV2", values=("begin", "end", "axes", "strides"), views=("x",))
def strided_slice_v2(
    x: T,
    begin: T,
    end: T,
    axes: T | None = None,
    strides: T | None = None,
    *,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
) -> T:
    starts, ends = ints(begin), ints(end)
    steps = [1] * len(starts) if strides is None else ints(strides)
    masks = (begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask)
    given = list(zip(starts, ends, steps, strict=True))
    if axes is None:
        return _sliced(x, given, masks)
    if any(masks):
        raise ValueError("masks together with axes are not supported; give one or the other")
    whole = [(0, size, 1) for size in x.shape]
    for axis, part in zip(ints(axes), given, strict=True):
        whole[axis] = part
    return _sliced(x, whole, masks)


def _sliced(x: T, parts: list[tuple[int, int, int]], masks: tuple[int, int, int, int, int]) -> T:
    """Apply TensorFlow's strided slice: bit i of a mask is about part i, not about dimension i.

    Source: https://www.tensorflow.org/api_docs/python/tf/strided_slice
    """
    begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask = masks
    dim = 0
    for i, (begin, end, step) in enumerate(parts):
        bit = 1 << i
        if ellipsis_mask & bit:
            left = sum(not new_axis_mask & (1 << j) for j in range(i + 1, len(parts)))
            dim = x.dim() - left
        elif new_axis_mask & bit:
            x = x.unsqueeze(dim)
            dim += 1
        elif shrink_axis_mask & bit:
            x = x.select(dim, begin)
        else:
            start = None if begin_mask & bit else begin
            stop = None if end_mask & bit else end
            picked = range(x.size(dim))[slice(start, stop, step)]
            if step > 0:
                x = x[(slice(None),) * dim + (slice(picked.start, max(picked.start, picked.stop), step),)]
            else:
                x = x.index_select(dim, torch.tensor(list(picked), dtype=torch.int64, device=x.device))
            dim += 1
    return x.contiguous()


@host_kernel("AsStrided", values=("size", "stride", "storage_offset"), views=("x",))
def as_strided(x: T, size: T, stride: T, storage_offset: T) -> T:
    return _strided(x, ints(size), ints(stride), int(storage_offset)).contiguous()


def _strided(x: T, size: list[int], stride: list[int], offset: int) -> T:
    """Return a view of the elements of a contiguous tensor.

    Raises:
        ValueError: it would reach outside of the tensor, or has another number of strides than of sizes.
    """
    if len(size) != len(stride):
        raise ValueError(f"size {size} and stride {stride} differ in length; expected one stride for each size")
    x = x.contiguous()
    last = offset + sum((n - 1) * s for n, s in zip(size, stride, strict=True))
    if 0 not in size and (min(stride, default=0) < 0 or offset < 0 or last >= x.numel()):
        raise ValueError(
            f"size {size}, stride {stride} and offset {offset} reach outside of {x.numel()} elements; expected offsets "
            "of 0 or more, within them"
        )
    return x.as_strided(size, stride, x.storage_offset() + offset)


@host_kernel(
    "ViewCopy",
    values=("dst_size", "dst_stride", "dst_storage_offset", "src_size", "src_stride", "src_storage_offset"),
)
def view_copy(
    dst: T,
    dst_size: T,
    dst_stride: T,
    dst_storage_offset: T,
    src: T,
    src_size: T,
    src_stride: T,
    src_storage_offset: T,
) -> T:
    # GE's operator writes to dst; TorchAir makes it for operators that do not, of tensors that are used after it.
    result = dst.clone(memory_format=torch.contiguous_format)
    source = _strided(src, ints(src_size), ints(src_stride), int(src_storage_offset))
    _strided(result, ints(dst_size), ints(dst_stride), int(dst_storage_offset)).copy_(source)
    return result


@host_kernel("ReverseV2", values=("axis",))
def reverse(x: T, axis: T) -> T:
    return x.flip(ints(axis))


@host_kernel("Roll")
def roll(x: T, *, shifts: list[int], dims: list[int] = []) -> T:
    return torch.roll(x, shifts, dims or ())


def _pairs(paddings: T, contiguous: bool) -> list[tuple[int, int]]:
    """Return the numbers of elements to add before and after each dimension."""
    flat = ints(paddings)
    half = len(flat) // 2
    return list(zip(flat[::2], flat[1::2], strict=True) if contiguous else zip(flat[:half], flat[half:], strict=True))


def _in_torch_order(pairs: list[tuple[int, int]]) -> list[int]:
    return [amount for pair in reversed(pairs) for amount in pair]


@host_kernel("Pad", values=("paddings",))
def pad(x: T, paddings: T) -> T:
    return F.pad(x, _in_torch_order(_pairs(paddings, True)))


@host_kernel("PadV2", values=("paddings",))
def pad_v2(x: T, paddings: T, constant_values: T) -> T:
    return _constant_pad(x, _pairs(paddings, True), constant_values)


@host_kernel("PadV3", values=("paddings",), views=("x",))
def pad_v3(
    x: T, paddings: T, constant_values: T | None = None, *, mode: str = "constant", paddings_contiguous: bool = True
) -> T:
    pairs = _pairs(paddings, paddings_contiguous)
    if mode == "constant":
        return _constant_pad(x, pairs, constant_values)
    for dim, index in enumerate(_padded_indices(x, pairs, mode)):
        x = x.index_select(dim, index.to(x.device))
    return x


@host_kernel("PadV3Grad", values=("paddings",), views=("x",))
def pad_v3_grad(x: T, paddings: T, *, mode: str = "reflect", paddings_contiguous: bool = True) -> T:
    pairs = _pairs(paddings, paddings_contiguous)
    inner = [n - before - after for n, (before, after) in zip(x.shape, pairs, strict=True)]
    source = torch.empty(inner, device="meta")
    for dim, index in enumerate(_padded_indices(source, pairs, mode)):
        shape = list(x.shape)
        shape[dim] = inner[dim]
        x = x.new_zeros(shape).index_add(dim, index.to(x.device), x)
    return x


@host_kernel("MirrorPad", values=("paddings",), views=("x",))
def mirror_pad(x: T, paddings: T, *, mode: str) -> T:
    for dim, index in enumerate(_padded_indices(x, _pairs(paddings, True), mode.lower())):
        x = x.index_select(dim, index.to(x.device))
    return x


def _constant_pad(x: T, pairs: list[tuple[int, int]], value: T | None) -> T:
    # Not by F.pad with a number: the value is a tensor, without data where only shapes are wanted.
    shape = [n + before + after for n, (before, after) in zip(x.shape, pairs, strict=True)]
    if min(shape, default=0) < 0:
        raise ValueError(f"{pairs} must not take away more than {list(x.shape)} has")
    fill = x.new_zeros(()) if value is None else value.reshape(()).to(x.dtype)
    result = fill.expand(shape).clone(memory_format=torch.contiguous_format)
    inner, outer = x, result
    for dim, (before, after) in enumerate(pairs):
        outer = outer.narrow(dim, max(before, 0), shape[dim] - max(before, 0) - max(after, 0))
        inner = inner.narrow(dim, max(-before, 0), x.size(dim) - max(-before, 0) - max(-after, 0))
    outer.copy_(inner)
    return result


def _padded_indices(x: T, pairs: list[tuple[int, int]], mode: str) -> Iterator[T]:
    """Yield for each dimension the positions in ``x`` that a padding without a constant repeats."""
    modes = {"reflect": 1, "symmetric": 0, "edge": None}
    if mode not in modes:
        raise ValueError(f"mode {mode!r} is not one of constant, {', '.join(modes)}")
    for size, (before, after) in zip(x.shape, pairs, strict=True):
        positions = range(-before, size + after)
        offset = modes[mode]
        if offset is None:
            found = [min(max(p, 0), size - 1) for p in positions]
        else:
            period = max(1, 2 * (size - offset))
            wrapped = [p % period for p in positions]
            found = [p if p < size else period - p - (1 - offset) for p in wrapped]
        yield torch.tensor(found, dtype=torch.int64)


@host_kernel("ConfusionTransposeD", views=("x",))
def confusion_transpose(x: T, *, perm: list[int], shape: list[int], transpose_first: bool) -> T:
    """Permute and reshape, in either order."""
    return x.permute(perm).reshape(shape) if transpose_first else x.reshape(shape).permute(perm)
