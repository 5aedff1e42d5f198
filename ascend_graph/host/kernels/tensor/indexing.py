"""Gather and scatter operators."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import torch

from ascend_graph.host.dtypes import torch_dtype
from ascend_graph.host.kernels.checks import check_choice, check_range
from ascend_graph.host.kernels.registry import host_kernel
from ascend_graph.host.kernels.tensor.elementwise import scalar
from ascend_graph.host.kernels.tensor.shape import ints

T = torch.Tensor
aten = torch.ops.aten

_REDUCE = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin", "maximum": "amax", "minimum": "amin"}


def _gathered(x: T, indices: T, axis: int, batch_dims: int) -> T:
    if batch_dims:
        dim, batch = axis % x.dim(), batch_dims % (indices.dim() + 1)
        return torch.stack([_gathered(x[i], indices[i], dim - 1, batch - 1) for i in range(x.size(0))])
    # One index tensor keeps its place among the dimensions; negative ones count from the end.
    return aten.index(x, [None] * (axis % max(x.dim(), 1)) + [indices])


def _counted_from_start(index: T, x: T, dim: int) -> T:
    index = index.to(torch.int64)
    return torch.where(index < 0, index + x.size(dim), index) if x.dim() else index


def _check_indices(indices: T, size: int, negative: bool) -> None:
    """Refuse what a device reads from outside of a dimension."""
    check_range(
        f"indices{'' if negative else ', without negative_index_support,'}", indices, size, -size if negative else 0
    )


@host_kernel("Gather", ignores=("validate_indices", "is_preprocessed", "impl_mode"))
def gather(x: T, indices: T, *, batch_dims: int = 0, negative_index_support: bool = False) -> T:
    # Sizes are vectors of integers, which kernels of CANN's gather on the host: these count negative indices from the end.
    sizes = x.dim() == 1 and not x.is_floating_point()
    _check_indices(indices, x.size(batch_dims), negative_index_support or sizes)
    return _gathered(x, indices, batch_dims, batch_dims)


@host_kernel("GatherV2", values=("axis",), ignores=("is_preprocessed", "impl_mode", "mode"))
def gather_v2(x: T, indices: T, axis: T, *, batch_dims: int = 0, negative_index_support: bool = False) -> T:
    _check_indices(indices, x.size(int(axis)) if x.dim() else 1, negative_index_support)
    return _gathered(x, indices, int(axis), batch_dims)


@host_kernel("GatherV2D")
def gather_v2d(x: T, indices: T, *, axis: int) -> T:
    return _gathered(x, indices, axis, 0)


@host_kernel("GatherElements")
def gather_elements(x: T, index: T, *, dim: int = 0) -> T:
    return torch.gather(x, dim, _counted_from_start(index, x, dim))


@host_kernel("GatherNd")
def gather_nd(x: T, indices: T, *, negative_index_support: bool = False) -> T:
    for place, size in zip(indices.unbind(-1), x.shape, strict=False):
        _check_indices(place, size, negative_index_support)
    return (
        aten.index(x, list(indices.unbind(-1))) if indices.size(-1) else x.expand(*indices.shape[:-1], *x.shape).clone()
    )


@host_kernel("IndexByTensor", dynamic=("indices",))
def index_by_tensor(x: T, indices: list[T], *, indices_mask: list[int] = []) -> T:
    return aten.index(x, _placed(indices, indices_mask))


def _placed(indices: list[T], mask: list[int]) -> list[T | None]:
    """Place the index tensors at their dimensions; mask has a 1 for each indexed dimension."""
    if not mask:
        return list(indices)
    if sum(map(bool, mask)) != len(indices):
        raise ValueError(f"the mask {mask} must be true for {len(indices)} dimensions, one for each index tensor")
    rest = iter(indices)
    return [next(rest) if used else None for used in mask]


@host_kernel("ScatterElements", "ScatterElementsV2")
def scatter_elements(data: T, indices: T, updates: T, *, axis: int = 0, reduction: str = "none") -> T:
    index = _counted_from_start(indices, data, axis)
    updates = updates.to(data.dtype)
    if reduction == "none":
        return data.scatter(axis, index, updates)
    if reduction == "add":
        return data.scatter_add(axis, index, updates)
    return data.scatter_reduce(axis, index, updates, _reduction(reduction))


def _reduction(name: str) -> str:
    if name not in _REDUCE:
        raise ValueError(f"reduction {name!r} is not one of none, update, {', '.join(_REDUCE)}")
    return _REDUCE[name]


def _places(x: T, indices: T, updates: T) -> tuple[T, ...]:
    """Return the indices of each dimension, after a range check.

    A device writes to any address that they give.
    """
    count = indices.size(-1) if indices.dim() else 0
    if not 1 <= count <= x.dim() or updates.shape != (*indices.shape[:-1], *x.shape[count:]):
        raise ValueError(
            f"indices {tuple(indices.shape)} and updates {tuple(updates.shape)} do not suit {tuple(x.shape)}; "
            f"updates of {(*indices.shape[:-1], *x.shape[count:])} are expected"
        )
    places = indices.unbind(-1)
    for dimension, place in enumerate(places):
        check_range(f"indices of dimension {dimension}", place, x.size(dimension))
    return places


@host_kernel("ScatterNdUpdate", writes=("var",), ignores=("use_locking",))
def scatter_nd_update(var: T, indices: T, updates: T) -> T:
    return var.index_put_(_places(var, indices, updates), updates)


@host_kernel("ScatterNdAdd", writes=("var",), ignores=("use_locking",))
def scatter_nd_add(var: T, indices: T, updates: T) -> T:
    return var.index_put_(_places(var, indices, updates), updates, accumulate=True)


@host_kernel("TensorScatterUpdate")
def tensor_scatter_update(x: T, indices: T, updates: T) -> T:
    return x.index_put(_places(x, indices, updates), updates)


@host_kernel("ScatterUpdate", writes=("var",), ignores=("use_locking",))
def scatter_update(var: T, indices: T, updates: T) -> T:
    return var.index_copy_(0, indices.reshape(-1).to(torch.int64), updates.reshape(-1, *var.shape[1:]))


@host_kernel("Scatter", writes=("var",))
def scatter(var: T, indices: T, updates: T, *, reduce: str, axis: int = 0) -> T:
    """Write updates, a cache line for each batch, at the positions that indices give along an axis."""
    _only_update("reduce", reduce)
    if var.is_meta:
        return var
    dim = axis % var.dim()
    pairs = ints(indices)
    places = list(zip(pairs[::2], pairs[1::2], strict=True)) if indices.dim() == 2 else list(enumerate(pairs))
    for i, (batch, start) in enumerate(places):
        var[batch].narrow(dim - 1, start, updates.size(dim)).copy_(updates[i])
    return var


@host_kernel("ScatterList", dynamic=("var",), writes=("var",))
def scatter_list(
    var: list[T], indice: T, updates: T, mask: T | None = None, *, reduce: str = "update", axis: int = -2
) -> list[T]:
    """Write updates[i] into var[i] at indice[i] along an axis, if its mask is set."""
    _only_update("reduce", reduce)
    if indice.is_meta:
        return var
    enabled = [True] * len(var) if mask is None else mask.reshape(-1).bool().tolist()
    starts = indice.tolist() if indice.dim() == 2 else [[start, updates.size(axis)] for start in indice.tolist()]
    for i, tensor in enumerate(var):
        if enabled[i]:
            start, length = starts[i]
            tensor.narrow(axis, start, length).copy_(updates[i].narrow(axis, 0, length))
    return var


def _only_update(name: str, value: str) -> None:
    if value != "update":
        raise ValueError(f"{name}={value!r} is not supported; only 'update' is")


@host_kernel("InplaceIndexAdd", "InplaceIndexAddWithSorted", writes=("var",))
def inplace_index_add(var: T, indices: T, updates: T, alpha: T | None = None, *, axis: int) -> T:
    return var.index_add_(axis, indices, (updates if alpha is None else updates * scalar(alpha)).to(var.dtype))


@host_kernel("EmbeddingDenseGrad")
def embedding_dense_grad(
    grad: T, indices: T, *, num_weights: int, padding_idx: int = -1, scale_grad_by_freq: bool = False
) -> T:
    return aten.embedding_dense_backward(grad, indices, num_weights, padding_idx, scale_grad_by_freq)


@host_kernel("EmbeddingBag")
def embedding_bag(
    weight: T,
    indices: T,
    offsets: T | None = None,
    per_sample_weights: T | None = None,
    *,
    mode: str = "mean",
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
    include_last_offset: bool = False,
    padding_idx: int = -1,
) -> tuple[T, T, T, T]:
    if offsets is None:
        offsets = torch.arange(0, indices.numel(), indices.size(-1), dtype=indices.dtype, device=indices.device)
        indices = indices.reshape(-1)
    number = {"sum": 0, "mean": 1, "max": 2}[mode]
    y, bag_of, sizes, maxima = aten._embedding_bag(
        weight,
        indices,
        offsets,
        scale_grad_by_freq,
        number,
        sparse,
        per_sample_weights,
        include_last_offset,
        padding_idx,
    )
    if not weight.is_meta:  # the CPU keeps other sizes for the gradient than meta functions say
        starts = offsets[: offsets.numel() - include_last_offset]
        if bag_of.numel() != indices.numel():
            places = torch.arange(indices.numel(), dtype=offsets.dtype)
            bag_of = (torch.bucketize(places, starts, right=True) - 1).to(indices.dtype)
        sizes = torch.cat([sizes, sizes.new_zeros(offsets.numel() - sizes.numel())])
        maxima = maxima if mode == "max" else maxima.new_empty(0)
    return y, bag_of, sizes, maxima


@host_kernel("NonZero", data_dependent=True)
def non_zero(x: T, *, transpose: bool = False, dtype: int = 9) -> T:
    found = torch.nonzero(x).to(torch_dtype(dtype))
    return found.t().contiguous() if transpose else found


@host_kernel("Where", data_dependent=True)
def where(x: T) -> T:
    return torch.nonzero(x)


@host_kernel("MaskedSelect", data_dependent=True)
def masked_select(x: T, mask: T) -> T:
    return torch.masked_select(x, mask)


@host_kernel("IndexAdd", ignores=("mode",))
def index_add(var: T, indices: T, updates: T, *, axis: int = 0, alpha: float = 1) -> T:
    return var.index_add(axis, indices.reshape(-1), updates, alpha=alpha)


@host_kernel("ArgMaxGrad")
def arg_max_grad(var: T, indices: T, updates: T, *, dimension: int = 0) -> T:
    """Replace one element of each line along a dimension."""
    dim = dimension % var.dim()
    shape = [1 if d == dim else size for d, size in enumerate(var.shape)]
    return var.scatter(dim, indices.reshape(shape).to(torch.int64), updates.reshape(shape).to(var.dtype))


@host_kernel("MaskedFillRange")
def masked_fill_range(x: T, start: T, end: T, value: T, *, axis: int = -1) -> T:
    """Fill each row's elements from each start to its end with the range's value; rows are of the first dimension."""
    if axis % x.dim() != x.dim() - 1 or (x.dim() > 1 and start.size(1) != x.size(0)):
        raise ValueError(
            f"axis {axis} is not the last one, -1, or start {tuple(start.shape)} is not [ranges, {x.size(0)}]"
        )
    places, y = torch.arange(x.size(-1), device=x.device), x.clone()
    for first, last, filling in zip(start.unbind(0), end.unbind(0), value.reshape(-1).unbind(0), strict=True):
        inside = (places >= first.unsqueeze(-1)) & (places < last.unsqueeze(-1))
        shape = (x.size(0), *[1] * (x.dim() - 2), -1) if x.dim() > 1 else (-1,)
        y = torch.where(inside.reshape(shape), filling.to(x.dtype), y)
    return y


@host_kernel("OneHotD")
def one_hot_of_depth(x: T, on_value: T, off_value: T, *, axis: int = -1, depth: int) -> T:
    classes = torch.arange(depth, device=x.device)
    dim = axis % (x.dim() + 1)
    chosen = x.unsqueeze(dim) == classes.reshape(-1, *[1] * (x.dim() - dim))
    return torch.where(chosen, on_value.reshape(()), off_value.reshape(()))


@host_kernel("SortV2", ignores=("stable",))
def sort_v2(x: T, *, axis: int = -1, descending: bool = False) -> T:
    return x.sort(dim=axis, descending=descending, stable=True).values


@host_kernel("RepeatInterleaveGrad")
def repeat_interleave_grad(y_grad: T, repeats: T, *, axis: int = -1) -> T:
    """Sum the gradients of each element's copies."""
    dim = axis % y_grad.dim()
    shape = list(y_grad.shape)
    shape[dim] = repeats.numel()
    result = y_grad.new_zeros(shape)
    if y_grad.is_meta:
        return result
    if int(repeats.sum()) != y_grad.size(dim):
        raise ValueError(f"repeats {repeats.tolist()} must be {y_grad.size(dim)} in all, the size of dimension {dim}")
    sources = torch.arange(repeats.numel()).repeat_interleave(repeats.reshape(-1))
    return result.index_add(dim, sources, y_grad)


@host_kernel("CoalesceSparse")
def coalesce_sparse(unique_len: T, unique_indices: T, indices: T, values: T) -> tuple[T, T]:
    """Add up the values of rows of ``indices`` that are the same one, and keep that row once."""
    check_choice("the dtype of values", values.dtype, torch.float32, torch.int32, torch.float16)
    count, places = unique_len.size(0), unique_indices.long()
    new_indices = indices.new_zeros(count, *indices.shape[1:])
    new_values = values.new_zeros(count, *values.shape[1:])
    return new_indices.index_copy(0, places, indices), new_values.index_add(0, places, values)


_SIGNS = torch.tensor([1 << i for i in range(8)], dtype=torch.uint8)


@host_kernel("SignBitsPack")
def sign_bits_pack(x: T, *, size: int) -> T:
    """Pack a bit for each number, set from zero on, the first in the lowest bit."""
    count = -(-x.numel() // 8)
    bits = torch.nn.functional.pad((x.reshape(-1) >= 0).to(torch.uint8), (0, count * 8 - x.numel()))
    return (bits.reshape(count, 8) * _SIGNS.to(x.device)).sum(1, dtype=torch.uint8).reshape(size, -1)


@host_kernel("SignBitsUnpack")
def sign_bits_unpack(x: T, *, size: int, dtype: int) -> T:
    """Unpack bits to 1 if set and -1 otherwise."""
    bits = x.reshape(-1, 1) & _SIGNS.to(x.device)
    return torch.where(bits != 0, 1.0, -1.0).to(torch_dtype(dtype)).reshape(size, -1)
