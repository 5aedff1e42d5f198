"""Gathering and scattering."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import torch

from ascend_graph.host.dtypes import torch_dtype
from ascend_graph.host.ops.elementwise import scalar
from ascend_graph.host.ops.registry import host_kernel
from ascend_graph.host.ops.shape import ints

T = torch.Tensor
aten = torch.ops.aten

_REDUCE = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin", "maximum": "amax", "minimum": "amin"}


def _gathered(x: T, indices: T, axis: int, batch_dims: int) -> T:
    if batch_dims:
        dim, batch = axis % x.dim(), batch_dims % (indices.dim() + 1)
        return torch.stack([_gathered(x[i], indices[i], dim - 1, batch - 1) for i in range(x.size(0))])
    # One index tensor keeps its place among the dimensions; negative ones count from the end.
    return aten.index(x, [None] * (axis % max(x.dim(), 1)) + [indices])


@host_kernel("Gather", ignores=("validate_indices", "is_preprocessed", "negative_index_support", "impl_mode"))
def gather(x: T, indices: T, *, batch_dims: int = 0) -> T:
    return _gathered(x, indices, batch_dims, batch_dims)


@host_kernel("GatherV2", values=("axis",), ignores=("is_preprocessed", "negative_index_support", "impl_mode"))
def gather_v2(x: T, indices: T, axis: T, *, batch_dims: int = 0) -> T:
    return _gathered(x, indices, int(axis), batch_dims)


@host_kernel("GatherV2D")
def gather_v2d(x: T, indices: T, *, axis: int) -> T:
    return _gathered(x, indices, axis, 0)


@host_kernel("GatherElements")
def gather_elements(x: T, index: T, *, dim: int = 0) -> T:
    return torch.gather(x, dim, index.to(torch.int64))


@host_kernel("GatherNd", ignores=("negative_index_support",))
def gather_nd(x: T, indices: T) -> T:
    return (
        aten.index(x, list(indices.unbind(-1))) if indices.size(-1) else x.expand(*indices.shape[:-1], *x.shape).clone()
    )


@host_kernel("IndexByTensor", dynamic=("indices",))
def index_by_tensor(x: T, indices: list[T], *, indices_mask: list[int] = []) -> T:
    return aten.index(x, _placed(indices, indices_mask))


def _placed(indices: list[T], mask: list[int]) -> list[T | None]:
    """The index tensors at their dimensions; mask has a 1 for each dimension that is indexed."""
    if not mask:
        return list(indices)
    if sum(map(bool, mask)) != len(indices):
        raise ValueError(f"the mask {mask} does not fit {len(indices)} index tensors")
    rest = iter(indices)
    return [next(rest) if used else None for used in mask]


@host_kernel("ScatterElements", "ScatterElementsV2")
def scatter_elements(data: T, indices: T, updates: T, *, axis: int = 0, reduction: str = "none") -> T:
    index = indices.to(torch.int64)
    index = torch.where(index < 0, index + data.size(axis), index) if data.dim() else index
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


@host_kernel("ScatterNdUpdate", writes=("var",), ignores=("use_locking",))
def scatter_nd_update(var: T, indices: T, updates: T) -> T:
    return var.index_put_(indices.unbind(-1), updates)


@host_kernel("ScatterNdAdd", writes=("var",), ignores=("use_locking",))
def scatter_nd_add(var: T, indices: T, updates: T) -> T:
    return var.index_put_(indices.unbind(-1), updates, accumulate=True)


@host_kernel("TensorScatterUpdate")
def tensor_scatter_update(x: T, indices: T, updates: T) -> T:
    return x.index_put(indices.unbind(-1), updates)


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
    """Write updates[i] into var[i] at indice[i] along an axis, where mask is set."""
    _only_update("reduce", reduce)
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
    result: tuple[T, T, T, T] = aten._embedding_bag(
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
    return result


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
