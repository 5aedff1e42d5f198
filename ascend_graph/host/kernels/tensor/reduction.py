"""Reductions over dimensions, scans, and searches for extremes and order."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from ascend_graph.host.dtypes import torch_dtype
from ascend_graph.host.kernels.checks import check_choice
from ascend_graph.host.kernels.registry import host_kernel
from ascend_graph.host.kernels.tensor.elementwise import wide

T = torch.Tensor
#: Infinite order of a norm in GE, a 32-bit integer as a float.
_INFINITE_ORDER = 2147483647.0


def _dims(axes: T) -> list[int]:
    return [int(axis) for axis in axes.reshape(-1).tolist()]


def _product(x: T, dims: list[int], keep: bool) -> T:
    if x.dim() == 0:
        return x.clone()
    for dim in sorted((d % x.dim() for d in dims), reverse=True):
        x = torch.prod(x, dim, keepdim=keep, dtype=x.dtype)
    return x


_REDUCTIONS: dict[str, Callable[[T, list[int], bool], T]] = {
    "Sum": lambda x, dims, keep: torch.sum(x, dims, keepdim=keep, dtype=x.dtype),
    "Max": lambda x, dims, keep: torch.amax(x, dims, keepdim=keep),
    "Min": lambda x, dims, keep: torch.amin(x, dims, keepdim=keep),
    "Prod": _product,
    "All": lambda x, dims, keep: torch.all(x, dim=tuple(dims), keepdim=keep),
    "Any": lambda x, dims, keep: torch.any(x, dim=tuple(dims), keepdim=keep),
    "LogSumExp": lambda x, dims, keep: torch.logsumexp(x, dims, keepdim=keep),
}


def _register(name: str, reduce: Callable[[T, list[int], bool], T]) -> None:
    # GE leaves a tensor as it is where there is no dimension to reduce; PyTorch would reduce all.
    @host_kernel(f"Reduce{name}", values=("axes",))
    def kernel(x: T, axes: T, *, keep_dims: bool = False) -> T:
        dims = _dims(axes)
        return reduce(x, dims, keep_dims) if dims else _unreduced(name, x)

    @host_kernel(f"Reduce{name}D")
    def kernel_d(x: T, *, axes: list[int], keep_dims: bool = False) -> T:
        return reduce(x, axes, keep_dims) if axes else _unreduced(name, x)


def _unreduced(name: str, x: T) -> T:
    return torch.logsumexp(x.unsqueeze(0), 0) if name == "LogSumExp" else x.clone()


for _name, _reduce in _REDUCTIONS.items():
    _register(_name, _reduce)


@host_kernel("ReduceMean", values=("axes",))
def reduce_mean(x: T, axes: T, *, keep_dims: bool = False, noop_with_empty_axes: bool = True) -> T:
    return _mean(x, _dims(axes), keep_dims, noop_with_empty_axes)


@host_kernel("ReduceMeanD")
def reduce_mean_d(x: T, *, axes: list[int], keep_dims: bool = False, noop_with_empty_axes: bool = True) -> T:
    return _mean(x, axes, keep_dims, noop_with_empty_axes)


@host_kernel("ReduceMeanWithCast", values=("axes",))
def reduce_mean_with_cast(
    x: T, axes: T, *, keep_dims: bool = False, noop_with_empty_axes: bool = True, dtype: int = 28
) -> T:
    undefined = 28
    return _mean(x if dtype == undefined else x.to(torch_dtype(dtype)), _dims(axes), keep_dims, noop_with_empty_axes)


def _mean(x: T, dims: list[int], keep: bool, noop: bool) -> T:
    if not dims and noop:
        return x.clone()
    if not x.dtype.is_floating_point and not x.dtype.is_complex:
        return torch.mean(x.double(), dims or None, keepdim=keep).to(x.dtype)
    return torch.mean(x, dims or None, keepdim=keep)


@host_kernel("ReduceStdWithMean", ignores=("epsilon",))
def reduce_std_with_mean(
    x: T,
    mean: T,
    *,
    dim: list[int] = [],
    unbiased: bool = True,
    keepdim: bool = False,
    invert: bool = False,
    correction: int = 1,
) -> T:
    # ``mean`` is by definition the mean of ``x``: computing it anew serves calls without dimensions, where TorchAir's
    # graph hands over ``x`` itself.
    check_choice("invert", invert, False)
    return torch.std(x, dim or None, correction=correction if unbiased else 0, keepdim=keepdim)


@host_kernel("ReduceStdV2", ignores=("is_mean_out",))
def reduce_std_v2(x: T, *, dim: list[int] = [], correction: int = 1, keepdim: bool = False) -> tuple[T, T]:
    std, mean = torch.std_mean(x, dim or None, correction=correction, keepdim=keepdim)
    return std, mean


@host_kernel("LpNormV2")
def lp_norm(x: T, *, p: float = 2.0, axes: list[int] = [], keepdim: bool = False, epsilon: float = 1e-12) -> T:
    if epsilon > 1e-6:
        raise ValueError(f"epsilon={epsilon} is not supported; only values that vanish, such as 0 and 1e-12, are")
    order = float("inf") if p >= _INFINITE_ORDER else float("-inf") if p <= -_INFINITE_ORDER else p
    return torch.linalg.vector_norm(x, order, axes or None, keepdim)


@host_kernel("L2Loss")
def l2_loss(x: T) -> T:
    return (wide(x).square().sum() / 2).to(x.dtype)


def _arg(search: Callable[..., T], x: T, dimension: T, dtype: int) -> T:
    return search(x, int(dimension)).to(torch_dtype(dtype))


@host_kernel("ArgMaxV2", values=("dimension",))
def arg_max(x: T, dimension: T, *, dtype: int = 9) -> T:
    return _arg(torch.argmax, x, dimension, dtype)


@host_kernel("ArgMin", values=("dimension",))
def arg_min(x: T, dimension: T, *, dtype: int = 9) -> T:
    return _arg(torch.argmin, x, dimension, dtype)


@host_kernel("ArgMaxWithValue")
def arg_max_with_value(x: T, *, dimension: int, keep_dims: bool = False) -> tuple[T, T]:
    values, indices = torch.max(x, dimension, keepdim=keep_dims)
    return indices.to(torch.int32), values


@host_kernel("ArgMinWithValue")
def arg_min_with_value(x: T, *, dimension: int, keep_dims: bool = False) -> tuple[T, T]:
    values, indices = torch.min(x, dimension, keepdim=keep_dims)
    return indices.to(torch.int32), values


def _scan(scan: Callable[..., T], x: T, axis: T, identity: int, exclusive: bool, reverse: bool) -> T:
    dim = int(axis)
    if reverse:
        x = x.flip(dim)
    if exclusive:
        first = torch.full_like(x.narrow(dim, 0, min(1, x.size(dim))), identity)
        x = torch.cat([first, x.narrow(dim, 0, max(0, x.size(dim) - 1))], dim)
    y = scan(x, dim, dtype=x.dtype)
    return y.flip(dim) if reverse else y


@host_kernel("Cumsum", values=("axis",))
def cumsum(x: T, axis: T, *, exclusive: bool = False, reverse: bool = False) -> T:
    return _scan(torch.cumsum, x, axis, 0, exclusive, reverse)


@host_kernel("Cumprod", values=("axis",))
def cumprod(x: T, axis: T, *, exclusive: bool = False, reverse: bool = False) -> T:
    return _scan(torch.cumprod, x, axis, 1, exclusive, reverse)


@host_kernel("TopKV2", "TopK", values=("k",), ignores=("sort_policy",))
def top_k(x: T, k: T, *, sorted: bool = True, dim: int = -1, largest: bool = True) -> tuple[T, T]:
    values, indices = torch.topk(x, int(k), dim, largest, sorted)
    return values, indices.to(torch.int32)


@host_kernel("Sort")
def sort(x: T, *, axis: int = -1, descending: bool = False, stable: bool = False) -> tuple[T, T]:
    values, indices = torch.sort(x, dim=axis, descending=descending, stable=stable)
    return values, indices.to(torch.int32)


@host_kernel("SearchSorted")
def search_sorted(sorted_sequence: T, values: T, sorter: T | None = None, *, dtype: int = 9, right: bool = False) -> T:
    order: Any = None if sorter is None else sorter.to(torch.int64)
    return torch.searchsorted(sorted_sequence, values, right=right, sorter=order).to(torch_dtype(dtype))


@host_kernel("LpNormReduceV2", ignores=("epsilon",))
def lp_norm_reduce(x: T, *, p: float = 2.0, axes: list[int] | None = None, keepdim: bool = False) -> T:
    """Return the sum of the powers, or the greatest or smallest absolute value, as LpNormUpdateV2's input."""
    dims = list(axes or range(x.dim()))
    wide = x.abs()
    if math.isinf(p):
        return wide.amax(dims, keepdim) if p > 0 else wide.amin(dims, keepdim)
    if p == 0:
        return (wide != 0).to(x.dtype).sum(dims, keepdim)
    return wide.pow(p).sum(dims, keepdim)


@host_kernel("LpNormUpdateV2", ignores=("epsilon",))
def lp_norm_update(x: T, *, p: float = 2.0) -> T:
    return x.clone() if p == 0 or math.isinf(p) else x.pow(1 / p)
