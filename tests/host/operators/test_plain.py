"""Operators of torch_npu that are one or two of PyTorch's: views and copies, casts, products, convolutions,
elementwise ones, and gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from operator_modes import ASCEND_950, check, listed

T = torch.Tensor
npu = torch.ops.npu
Reference = Callable[..., Any]

ALL = "eager captured ge npugraph_ex"
#: torch_npu launches these by their GE name, as single operators, which it refuses in captures.
EAGER = "eager"
#: What torch_npu launches as a single operator, which no capture records.
SINGLE = "eager ge"


def gradients(function: Reference, wanted: Sequence[int], *args: Any) -> Any:
    """PyTorch's gradients of a function of all arguments but the first, which is the result's."""
    grad, *rest = args
    leaves = [t.detach().requires_grad_() if n in wanted else t for n, t in enumerate(rest)]
    found = torch.autograd.grad(function(*leaves), [leaves[n] for n in wanted], grad)
    return found if len(found) > 1 else found[0]


def of(function: Reference, *wanted: int) -> Reference:
    return lambda *args: gradients(function, wanted, *args)


def filled(function: Callable[..., Any]) -> Reference:
    """What a function leaves in its first argument."""

    def run(x: T, *rest: Any) -> T:
        function(x, *rest)
        return x

    return run


def dropped_and_back(x: T) -> T:
    y, mask = npu._npu_dropout(x, 0.5)
    kept = torch.where(y == 0, 0, 2 * x)  # what is not dropped is doubled
    return (y - npu.npu_dropout_backward(x, mask, 0.5)).abs() + (y - kept).abs()


def statistics_of_all(x: T, sums: T, squares: T, mean: T, variance: T, counts: T) -> tuple[T, T, T, T]:
    """Of every part the sums; the statistics of all, and the running ones after them.

    https://gitcode.com/cann/ops-nn/tree/master/norm/sync_batch_norm_gather_stats
    """
    count = counts.sum()
    own = sums.sum(0) / count
    biased = squares.sum(0) / count - own**2
    moved = variance * 0.7 + 0.3 * biased * count / (count - 1)
    return own, 1 / (biased + 1e-5).sqrt(), mean * 0.7 + 0.3 * own, moved


def image(*shape: int) -> T:
    return torch.randn(shape)


#: By name: the operator, its arguments, the reference, and the modes in which the wheel can run it.
CASES: dict[str, tuple[Reference, Callable[[], list[Any]], Reference, str]] = {
    # Views, copies and casts
    "npu_dtype_cast": (
        lambda x: npu.npu_dtype_cast(x, torch.float16),
        lambda: [image(3, 4)],
        lambda x: x.half(),
        "eager captured ge npugraph_ex",
    ),
    "_npu_dtype_cast": (
        lambda x: npu._npu_dtype_cast(x, torch.int32),
        lambda: [image(3, 4) * 9],
        lambda x: x.to(torch.int32),
        ALL,
    ),
    "npu_dtype_cast_": (
        lambda x, y: npu.npu_dtype_cast_(x, y),
        lambda: [torch.zeros(3, 4).half(), image(3, 4)],
        lambda x, y: y.half(),
        EAGER,
    ),
    "npu_dtype_cast_backward": (
        lambda g: npu.npu_dtype_cast_backward(g, torch.float16),
        lambda: [image(3, 4)],
        lambda g: g.half(),
        "eager ge npugraph_ex",
    ),
    "_npu_dtype_cast_backward": (
        lambda g: npu._npu_dtype_cast_backward(g, torch.float16),
        lambda: [image(3, 4)],
        lambda g: g.half(),
        "eager ge npugraph_ex",
    ),
    "npu_format_cast": (
        lambda x: npu.npu_format_cast(x, 2),
        lambda: [image(2, 16, 4, 4)],
        lambda x: x,
        "eager captured",
    ),
    "npu_format_cast_": (
        lambda x: npu.npu_format_cast_(x, 2),
        lambda: [image(2, 16, 4, 4)],
        lambda x: x,
        "eager captured",
    ),
    "_npu_format_cast": (
        lambda x: npu._npu_format_cast(x, 2),
        lambda: [image(2, 16, 4, 4)],
        lambda x: x,
        "eager captured",
    ),
    "get_npu_format": (
        lambda x: torch.tensor(npu.get_npu_format(x)),
        lambda: [image(3, 4)],
        lambda x: torch.tensor(2),
        "eager captured",
    ),
    "get_storage_size": (
        lambda x: torch.tensor(npu.get_storage_size(x)),
        lambda: [image(3, 4)],
        lambda x: torch.tensor(12),
        "eager captured",
    ),
    "copy_memory_": (lambda x, y: npu.copy_memory_(x, y), lambda: [image(3, 4), image(3, 4)], lambda x, y: y, EAGER),
    "npu_view_copy": (
        lambda x, y: npu.npu_view_copy(x, y, False),
        lambda: [image(3, 4), image(3, 4)],
        lambda x, y: y,
        EAGER,
    ),
    "npu_reshape": (
        lambda x: npu.npu_reshape(x, (4, 3)),
        lambda: [image(3, 4)],
        lambda x: x.reshape(4, 3),
        "eager captured ge npugraph_ex",
    ),
    "npu_transpose": (
        lambda x: npu.npu_transpose(x, (2, 0, 1)),
        lambda: [image(2, 3, 4)],
        lambda x: x.permute(2, 0, 1),
        EAGER,
    ),
    "npu_broadcast": (lambda x: npu.npu_broadcast(x, (3, 4)), lambda: [image(3, 1)], lambda x: x.expand(3, 4), EAGER),
    "npu_slice": (
        lambda x: npu.npu_slice(x, [1, 2], [2, 3]),
        lambda: [image(4, 6)],
        lambda x: x[1:3, 2:5],
        EAGER,
    ),
    "npu_indexing": (
        lambda x: npu.npu_indexing(x, [1, 0], [4, 6], [2, 3]),
        lambda: [image(4, 6)],
        lambda x: x[1:4:2, ::3],
        EAGER,
    ),
    "npu_stride_copy": (
        lambda x: npu.npu_stride_copy(x, (2, 2), (1, 2), 1),
        lambda: [image(3, 3)],
        lambda x: x.as_strided((2, 2), (1, 2), 1),
        EAGER,
    ),
    "npu_pad": (
        lambda x: npu.npu_pad(x, (2, 1, 0, 3)),
        lambda: [image(3, 4)],
        lambda x: F.pad(x, (0, 3, 2, 1)),
        EAGER,
    ),
    "npu_confusion_transpose": (
        lambda x: npu.npu_confusion_transpose(x, (0, 2, 1, 3), (2, 4, 18), True),
        lambda: [image(2, 3, 4, 6)],
        lambda x: x.permute(0, 2, 1, 3).reshape(2, 4, 18),
        EAGER,
    ),
    "npu_confusion_transpose_after": (
        lambda x: npu.npu_confusion_transpose(x, (0, 2, 1), (2, 12, 6), False),
        lambda: [image(2, 3, 4, 6)],
        lambda x: x.reshape(2, 12, 6).permute(0, 2, 1),
        EAGER,
    ),
    "npu_confusion_transpose_backward": (
        lambda g: npu.npu_confusion_transpose_backward(g, (0, 2, 3, 1), (2, 3, 4, 6), False),
        lambda: [image(2, 4, 6, 3)],
        lambda g: g.permute(0, 3, 1, 2),
        EAGER,
    ),
    "one_": (lambda x: npu.one_(x), lambda: [image(3, 4)], torch.ones_like, "eager captured ge npugraph_ex"),
    "set_op_timeout_ms": (
        filled(lambda x: npu.set_op_timeout_ms(1000)),
        lambda: [image(2)],
        lambda x: x,
        "eager captured npugraph_ex",
    ),
    # Products
    "npu_bmmV2": (lambda a, b: npu.npu_bmmV2(a, b, []), lambda: [image(2, 3, 4), image(2, 4, 5)], torch.bmm, EAGER),
    "npu_bmm_v2_mat1_backward": (
        lambda g, a, b: npu.npu_bmm_v2_mat1_backward(g, a, b, [2, 3, 4]),
        lambda: [image(2, 3, 5), image(2, 3, 4), image(2, 4, 5)],
        of(torch.bmm, 0),
        EAGER,
    ),
    "npu_bmm_v2_mat2_backward": (
        lambda g, a, b: npu.npu_bmm_v2_mat2_backward(g, a, b, [2, 4, 5]),
        lambda: [image(2, 3, 5), image(2, 3, 4), image(2, 4, 5)],
        of(torch.bmm, 1),
        EAGER,
    ),
    "npu_linear": (npu.npu_linear, lambda: [image(3, 4), image(5, 4), image(5)], F.linear, ALL),
    "npu_linear_backward": (
        npu.npu_linear_backward,
        lambda: [image(3, 5), image(3, 4), image(5, 4)],
        of(F.linear, 0, 1),
        "eager captured ge npugraph_ex",
    ),
    "matmul_double_backward": (
        lambda ga, gb, g, a, b: npu.matmul_double_backward(ga, gb, g, a, b, [True, True, True]),
        lambda: [image(3, 4), image(4, 5), image(3, 5), image(3, 4), image(4, 5)],
        lambda ga, gb, g, a, b: (ga @ b + a @ gb, g @ gb.t(), ga.t() @ g),
        "eager captured",
    ),
    # Convolutions
    "npu_conv2d": (
        lambda x, w, b: npu.npu_conv2d(x, w, b, [2, 1], [1, 2], [1, 1], 2),
        lambda: [image(2, 4, 8, 8), image(6, 2, 3, 3), image(6)],
        lambda x, w, b: F.conv2d(x, w, b, (2, 1), (1, 2), 1, 2),
        EAGER,
    ),
    "npu_conv2d_backward": (
        lambda g, x, w: npu.npu_conv2d_backward(x, g, w, [1, 1], [1, 1], [1, 1], 1, [True, True, True]),
        lambda: [image(2, 6, 8, 8), image(2, 4, 8, 8), image(6, 4, 3, 3)],
        lambda g, x, w: (*gradients(lambda x, w: F.conv2d(x, w, padding=1), [0, 1], g, x, w), g.sum((0, 2, 3))),
        EAGER,
    ),
    "npu_convolution": (
        lambda x, w, b: npu.npu_convolution(x, w, b, [1, 1], [0, 0], [2, 2], 1),
        lambda: [image(2, 4, 8, 8), image(6, 4, 3, 3), image(6)],
        lambda x, w, b: F.conv2d(x, w, b, dilation=2),
        EAGER,
    ),
    "npu_convolution_backward": (
        lambda g, x, w: npu.npu_convolution_backward(x, g, w, [1, 1], [0, 0], [1, 1], 1, [True, True, False])[:2],
        lambda: [image(2, 6, 6, 6), image(2, 4, 8, 8), image(6, 4, 3, 3)],
        of(F.conv2d, 0, 1),
        EAGER,
    ),
    "npu_conv3d": (
        lambda x, w, b: npu.npu_conv3d(x, w, b, [1, 1, 1], [1, 1, 1], [1, 1, 1], 1),
        lambda: [image(1, 2, 4, 4, 4), image(3, 2, 3, 3, 3), image(3)],
        lambda x, w, b: F.conv3d(x, w, b, padding=1),
        EAGER,
    ),
    "npu_conv3d_backward": (
        lambda g, x, w: npu.npu_conv3d_backward(x, g, w, [1, 1, 1], [0, 0, 0], [1, 1, 1], 1, [True, True, False])[:2],
        lambda: [image(1, 3, 2, 2, 2), image(1, 2, 4, 4, 4), image(3, 2, 3, 3, 3)],
        of(F.conv3d, 0, 1),
        EAGER,
    ),
    "npu_conv_transpose2d": (
        lambda x, w, b: npu.npu_conv_transpose2d(x, w, b, [1, 1], [1, 1], [2, 2], [1, 1], 1),
        lambda: [image(2, 4, 5, 5), image(4, 3, 3, 3), image(3)],
        lambda x, w, b: F.conv_transpose2d(x, w, b, 2, 1, 1),
        EAGER,
    ),
    "npu_conv_transpose2d_backward": (
        lambda g, x, w: npu.npu_conv_transpose2d_backward(
            x, g, w, [0, 0], [0, 0], [1, 1], [1, 1], 1, [True, True, False]
        )[:2],
        lambda: [image(2, 3, 7, 7), image(2, 4, 5, 5), image(4, 3, 3, 3)],
        of(F.conv_transpose2d, 0, 1),
        EAGER,
    ),
    "npu_conv_transpose3d_backward": (
        lambda g, x, w: npu.npu_conv_transpose3d_backward(
            x, g, w, [0] * 3, [0] * 3, [1] * 3, [1] * 3, 1, [True, True, False]
        )[:2],
        lambda: [image(1, 3, 5, 5, 5), image(1, 2, 3, 3, 3), image(2, 3, 3, 3, 3)],
        of(F.conv_transpose3d, 0, 1),
        EAGER,
    ),
    "npu_convolution_transpose": (
        lambda x, w, b: npu.npu_convolution_transpose(x, w, b, [0, 0], [0, 0], [2, 2], [1, 1], 1),
        lambda: [image(2, 4, 5, 5), image(4, 3, 3, 3), image(3)],
        lambda x, w, b: F.conv_transpose2d(x, w, b, 2),
        EAGER,
    ),
    "npu_convolution_transpose_backward": (
        lambda g, x, w: npu.npu_convolution_transpose_backward(
            x, g, w, [0, 0], [0, 0], [1, 1], [1, 1], 1, [True, True, False]
        )[:2],
        lambda: [image(2, 3, 7, 7), image(2, 4, 5, 5), image(4, 3, 3, 3)],
        of(F.conv_transpose2d, 0, 1),
        EAGER,
    ),
    "slow_conv_transpose2d_backward": (
        lambda g, x, w: npu.slow_conv_transpose2d_backward(
            g, x, w, [3, 3], [1, 1], [0, 0], [0, 0], [1, 1], [True, True, False]
        )[:2],
        lambda: [image(2, 3, 7, 7), image(2, 4, 5, 5), image(4, 3, 3, 3)],
        of(F.conv_transpose2d, 0, 1),
        EAGER,
    ),
    "_conv_depthwise2d_backward": (
        lambda g, x, w: npu._conv_depthwise2d_backward(g, x, w, [3, 3], [1, 1], [1, 1], [1, 1], [True, True]),
        lambda: [image(2, 4, 6, 6), image(2, 4, 6, 6), image(4, 1, 3, 3)],
        of(lambda x, w: F.conv2d(x, w, padding=1, groups=4), 0, 1),
        EAGER,
    ),
    # Elementwise
    "fast_gelu": (npu.fast_gelu, lambda: [image(3, 4)], lambda x: x * torch.sigmoid(1.702 * x), ALL),
    "npu_mish": (npu.npu_mish, lambda: [image(3, 4)], F.mish, EAGER),
    "npu_mish_backward": (npu.npu_mish_backward, lambda: [image(3, 4), image(3, 4)], of(F.mish, 0), EAGER),
    "npu_silu": (npu.npu_silu, lambda: [image(3, 4)], F.silu, SINGLE),
    "npu_silu_": (npu.npu_silu_, lambda: [image(3, 4)], F.silu, EAGER),
    "npu_silu_backward": (
        lambda g, x: npu.npu_silu_backward(g, x, x * torch.sigmoid(x)),
        lambda: [image(3, 4), image(3, 4)],
        of(F.silu, 0),
        SINGLE,
    ),
    "npu_stride_add": (
        lambda x, y: npu.npu_stride_add(x, y, 1, 0, 1),
        lambda: [image(1, 32, 2, 2), image(1, 32, 2, 2)],
        lambda x, y: x[:, 16:32] + y[:, :16],
        EAGER,
    ),
    "npu_masked_fill_range": (
        lambda x, start, end, value: npu.npu_masked_fill_range(x, start, end, value, -1),
        lambda: [
            image(2, 6),
            torch.tensor([[1, 0], [4, 2]], dtype=torch.int32),
            torch.tensor([[3, 1], [6, 4]], dtype=torch.int32),
            torch.tensor([5.0, 7.0]),
        ],
        lambda x, start, end, value: torch.stack(
            [
                torch.stack([x[0, 0], *[value[0]] * 2, x[0, 3], *[value[1]] * 2]),
                torch.stack([value[0], x[1, 1], *[value[1]] * 2, x[1, 4], x[1, 5]]),
            ]
        ),
        EAGER,
    ),
    # The largest, the smallest, and what goes to places
    "npu_max": (lambda x: npu.npu_max(x, 1), lambda: [image(3, 4)], lambda x: (x.max(1)[0], x.max(1)[1].int()), EAGER),
    "npu_min": (
        lambda x: npu.npu_min(x, 1, True),
        lambda: [image(3, 4)],
        lambda x: (x.min(1, True)[0], x.min(1, True)[1].int()),
        EAGER,
    ),
    "npu_max_backward": (
        lambda g, n: npu.npu_max_backward(g, 1, n, [3, 4], False),
        lambda: [image(3), torch.tensor([3, 0, 2], dtype=torch.int32)],
        lambda g, n: torch.zeros(3, 4).scatter(1, n.long()[:, None], g[:, None]),
        EAGER,
    ),
    "npu_min_backward": (
        lambda g, n: npu.npu_min_backward(g, 1, n, [3, 4], True),
        lambda: [image(3, 1), torch.tensor([[3], [0], [2]], dtype=torch.int32)],
        lambda g, n: torch.zeros(3, 4).scatter(1, n.long(), g),
        EAGER,
    ),
    "npu_scatter": (
        lambda x, n, u: npu.npu_scatter(x, n, u, 1),
        lambda: [image(3, 4), torch.tensor([3, 0, 2], dtype=torch.int32), image(3)],
        lambda x, n, u: x.scatter(1, n.long()[:, None], u[:, None]),
        EAGER,
    ),
    "npu_one_hot": (
        lambda x: npu.npu_one_hot(x, depth=5, on_value=2, off_value=-1),
        lambda: [torch.tensor([4, 3, 9, 0], dtype=torch.int32)],
        lambda x: torch.stack([torch.tensor([2.0 if n == k else -1.0 for n in range(5)]) for k in x.tolist()]),
        EAGER,
    ),
    "npu_sort_v2": (
        lambda x: npu.npu_sort_v2(x, -1, True),
        lambda: [image(3, 9)],
        lambda x: x.sort(-1, True).values,
        EAGER,
    ),
    "npu_gather_backward": (
        lambda g, n: npu.npu_gather_backward(g, [3, 4], 1, n, False),
        lambda: [image(3, 2), torch.tensor([[1, 1], [0, 3], [2, 0]])],
        lambda g, n: torch.zeros(3, 4).scatter_add(1, n, g),
        ALL,
    ),
    "npu_gather_sparse_index": (
        npu.npu_gather_sparse_index,
        lambda: [image(5, 4), torch.tensor([[1, 4], [0, 1]])],
        lambda x, n: x[n],
        "eager captured ge npugraph_ex",
    ),
    "npu_gather_sparse_index_backward": (
        lambda g, n: npu.npu_gather_sparse_index_backward(g, [5, 4], n),
        lambda: [image(3, 4), torch.tensor([1, 4, 1])],
        lambda g, n: torch.zeros(5, 4).index_add(0, n, g),
        "eager captured",
    ),
    "_npu_index_add": (
        lambda x, n, s: npu._npu_index_add(x, n, s, alpha=2),
        lambda: [image(5, 4), torch.tensor([1, 4, 1]), image(3, 4)],
        lambda x, n, s: x.index_add(0, n, s, alpha=2),
        "eager captured ge npugraph_ex",
    ),
    "_npu_index_add_": (
        lambda x, n, s: npu._npu_index_add_(x, n, s),
        lambda: [image(5, 4), torch.tensor([1, 4, 1]), image(3, 4)],
        lambda x, n, s: x.index_add(0, n, s),
        "eager captured ge npugraph_ex",
    ),
    "repeat_interleave_backward_int": (
        lambda g, x: npu.repeat_interleave_backward_int(g, x, 3, 1),
        lambda: [image(2, 12), image(2, 4)],
        of(lambda x: x.repeat_interleave(3, 1), 0),
        "eager captured ge npugraph_ex",
    ),
    "repeat_interleave_backward_tensor": (
        lambda g, x, n: npu.repeat_interleave_backward_tensor(g, x, n, 1),
        lambda: [image(2, 6), image(2, 3), torch.tensor([1, 3, 2])],
        of(lambda x, n: x.repeat_interleave(n, 1), 0),
        "eager captured",
    ),
    "npu_sign_bits_pack": (
        lambda x: npu.npu_sign_bits_pack(x, 2),
        lambda: [torch.tensor([5.0, 4, 3, 2, 0, -1, -2, 4, 3, 2, 1, 0, -1, -2])],
        lambda x: torch.tensor([[159], [15]], dtype=torch.uint8),
        EAGER,
    ),
    "npu_sign_bits_unpack": (
        lambda x: npu.npu_sign_bits_unpack(x, 2, torch.float32),
        lambda: [torch.tensor([159, 15], dtype=torch.uint8)],
        lambda x: torch.tensor([[1.0, 1, 1, 1, 1, -1, -1, 1], [1, 1, 1, 1, -1, -1, -1, -1]]),
        EAGER,
    ),
    "npu_scatter_nd_update": (
        npu.npu_scatter_nd_update,
        lambda: [image(5, 4), torch.tensor([[1], [4]]), image(2, 4)],
        lambda x, n, u: x.index_copy(0, n.flatten(), u),
        ALL,
    ),
    "scatter_update": (
        lambda x, n, u: npu.scatter_update(x, n, u, 1),
        lambda: [image(2, 6, 4), torch.tensor([3, 0]), image(2, 1, 4)],
        lambda x, n, u: torch.stack(
            [x[0].index_copy(0, torch.tensor([3]), u[0]), x[1].index_copy(0, torch.tensor([0]), u[1])]
        ),
        ALL,
    ),
    # Memory
    "empty_with_format": (
        lambda x: npu.empty_with_format([3, 4], dtype=torch.float32, device=x.device).copy_(x),
        lambda: [image(3, 4)],
        lambda x: x,
        "eager captured",
    ),
    "unsafe_empty_with_format": (
        lambda x: npu.unsafe_empty_with_format([3, 4], dtype=torch.float32, device=x.device).copy_(x),
        lambda: [image(3, 4)],
        lambda x: x,
        "eager captured",
    ),
    "empty_with_swapped_memory": (
        lambda x: npu.empty_with_swapped_memory([3, 4], dtype=torch.float32, device=x.device).fill_(2),
        lambda: [image(3, 4)],
        lambda x: torch.full_like(x, 2),
        "eager captured",
    ),
    "npu_convert_weight_to_int4pack": (
        npu.npu_convert_weight_to_int4pack,
        lambda: [torch.tensor([[1, -1, 7, -8, 0, 2, -2, 3]], dtype=torch.int32)],
        lambda x: torch.tensor([[0x3E2087F1]], dtype=torch.int32),
        EAGER,
    ),
    # Dropout: what is kept is scaled, and the gradient is the same function of what comes back
    "_npu_dropout": (
        dropped_and_back,
        lambda: [image(64, 8)],
        torch.zeros_like,
        EAGER,
    ),
    "npu_dropout_do_mask": (
        lambda x, m: npu.npu_dropout_do_mask(x, m, 0.5)[0],
        lambda: [image(16, 8), torch.full((16,), 0b01010101, dtype=torch.uint8)],
        lambda x, m: x * torch.tensor([2.0, 0.0]).repeat(4),
        EAGER,
    ),
    "npu_dropout_backward": (
        lambda x, m: npu.npu_dropout_backward(x, m, 0.5),
        lambda: [image(16, 8), torch.full((16,), 0b01010101, dtype=torch.uint8)],
        lambda x, m: x * torch.tensor([2.0, 0.0]).repeat(4),
        EAGER,
    ),
    # not in GE: torch_npu's second stream does not know GE's, and ends the process
    "_npu_dropout_gen_mask": (
        lambda x: npu._npu_dropout_gen_mask(x, [128], 0.0, 1, 0),
        lambda: [image(128)],
        lambda x: torch.full((16,), 255, dtype=torch.uint8),
        "eager captured npugraph_ex",
    ),
    "batch_norm_reduce": (
        lambda x: npu.batch_norm_reduce(x, 1e-5),
        lambda: [image(3, 4, 5)],
        lambda x: (x.sum((0, 2)), x.square().sum((0, 2))),
        "eager captured npugraph_ex",
    ),
    "batch_norm_gather_stats_update": (
        lambda x, s, q, m, v, n: [*npu.batch_norm_gather_stats_update(x, s, q, m, v, 0.3, 1e-5, n), m, v],
        lambda: [
            image(2, 4, 5),
            image(3, 4),
            30 + 10 * torch.rand(3, 4),
            image(4),
            torch.rand(4),
            torch.tensor([10, 20, 10], dtype=torch.int32),
        ],
        statistics_of_all,
        EAGER,
    ),
    # Spectra
    "fft_r2c_backward": (
        lambda g: npu.fft_r2c_backward(g, [1], 0, True, 8),
        lambda: [torch.randn(3, 5, dtype=torch.complex64)],
        lambda g: gradients(lambda x: torch.fft.rfft(x), [0], g, torch.zeros(3, 8)),
        "eager captured",
    ),
    "fft_c2r_backward": (
        lambda g: npu.fft_c2r_backward(g, [1], 0),
        lambda: [image(3, 8)],
        lambda g: gradients(
            lambda x: torch.fft.irfft(x, 8, norm="forward"), [0], g, torch.zeros(3, 5, dtype=torch.complex64)
        ),
        "eager captured",
    ),
    "stft_backward": (
        lambda g, x, w: npu.stft_backward(g, x, 8, 4, 8, w, False, True, True),
        lambda: [torch.randn(5, 5, dtype=torch.complex64), image(24), torch.hann_window(8)],
        lambda g, x, w: gradients(
            lambda x, w: torch.stft(x, 8, 4, 8, w, center=False, return_complex=True), [0], g, x, w
        ).reshape(1, 1, -1),
        "eager captured",
    ),
    # Gradients of losses and norms
    "kl_div_backward": (
        lambda g, x, t: npu.kl_div_backward(g, x, t, 2),
        lambda: [image(3, 4).sum(), image(3, 4), torch.rand(3, 4)],
        of(lambda x, t: F.kl_div(x, t, reduction="sum"), 0),
        "eager captured ge npugraph_ex",
    ),
    "kl_div_target_backward": (
        lambda g, x, t: npu.kl_div_target_backward(g, x, t, 2),
        lambda: [image(3, 4).sum(), image(3, 4), torch.rand(3, 4)],
        of(lambda x, t: F.kl_div(x, t, reduction="sum"), 1),
        "eager captured",
    ),
    "l1_loss_backward": (
        lambda g, x, t: npu.l1_loss_backward(g, x, t, 1),
        lambda: [image(1).sum(), image(3, 4), image(3, 4)],
        of(lambda x, t: F.l1_loss(x, t), 0),
        "eager captured ge npugraph_ex",
    ),
    "npu_binary_cross_entropy_with_logits_backward": (
        lambda g, x, t, w, p: npu.npu_binary_cross_entropy_with_logits_backward(g, x, t, w, p, 1),
        lambda: [image(1).sum(), image(3, 4), torch.rand(3, 4), torch.rand(4), torch.rand(4)],
        of(lambda x, t, w, p: F.binary_cross_entropy_with_logits(x, t, w, pos_weight=p), 0),
        "eager captured",
    ),
    "npu_renorm_backward": (
        lambda g, x: npu.npu_renorm_backward(g, x, 2.0, 0, 1.0),
        lambda: [image(3, 4), image(3, 4)],
        of(lambda x: torch.renorm(x, 2.0, 0, 1.0), 0),
        EAGER,
    ),
    "npu_softmax_cross_entropy_with_logits": (
        npu.npu_softmax_cross_entropy_with_logits,
        lambda: [image(3, 4), torch.rand(3, 4)],
        lambda x, t: -(t * F.log_softmax(x, -1)).sum(-1),
        EAGER,
    ),
    "npu_softmax_cross_entropy_with_logits_backward": (
        npu.npu_softmax_cross_entropy_with_logits_backward,
        lambda: [image(3), image(3, 4), torch.rand(3, 4).softmax(-1)],
        of(lambda x, t: -(t * F.log_softmax(x, -1)).sum(-1), 0),
        EAGER,
    ),
    # The integers of a tensor: https://gitcode.com/cann/ops-nn/tree/master/quant/quantize
    "_quantize_per_tensor_impl": (
        lambda x, s, z, out: npu._quantize_per_tensor_impl(x, s, z, torch.quint8, result=out),
        lambda: [
            image(5, 6) * 3,
            torch.tensor([0.05]),
            torch.tensor([120], dtype=torch.int32),
            torch.zeros(5, 6, dtype=torch.uint8),
        ],
        lambda x, s, z, out: (x / s + z).round().clamp(0, 255).to(torch.uint8),
        "eager captured npugraph_ex",
    ),
    "_quantize_per_channel_impl": (
        lambda x, s, z, out: npu._quantize_per_channel_impl(x, s, z, 1, torch.qint8, result=out),
        lambda: [
            image(5, 3),
            torch.tensor([0.05, 0.1, 0.01]),
            torch.tensor([3, 0, -9], dtype=torch.int32),
            torch.zeros(5, 3, dtype=torch.int8),
        ],
        lambda x, s, z, out: (x / s + z).round().clamp(-128, 127).to(torch.int8),
        "eager captured npugraph_ex",
    ),
    "npu_layer_norm_eval": (
        lambda x, w, b: npu.npu_layer_norm_eval(x, [2, 4], w, b),
        lambda: [image(3, 2, 4), image(2, 4), image(2, 4)],
        lambda x, w, b: F.layer_norm(x, (2, 4), w, b),
        SINGLE,
    ),
}


#: Operators that not every processor has.
ELSEWHERE = {"repeat_interleave_backward_tensor": ASCEND_950}


@pytest.mark.parametrize("name", [pytest.param(name, marks=ELSEWHERE.get(name, ())) for name in CASES])
def test_an_operator_is_as_documented(name: str) -> None:
    function, arguments, reference, modes = CASES[name]
    args = arguments()
    expected = reference(*[a.clone() if isinstance(a, T) else a for a in args])
    check(function, args, [t.detach() for t in listed(expected)], modes)


def test_prefetch_changes_nothing() -> None:
    """docs/zh/custom_APIs/torch_npu/torch_npu-npu_prefetch.md of https://gitee.com/ascend/op-plugin: it is for the
    cache alone."""

    def call(x: T, y: T) -> T:
        ready = x + 1
        npu.npu_prefetch(y, ready, 40)
        npu.npu_prefetch(y, ready, 1 << 20, 16)
        return ready * y

    x, y = torch.randn(8, 8), torch.randn(8, 8)
    check(call, [x, y], (x + 1) * y, ALL)


@pytest.mark.parametrize(
    ("size", "offset", "message"),
    [(0, 0, "max_size should be greater than zero"), (4, 256, "offset out of range"), (4, -1, "not be smaller")],
)
def test_prefetch_of_what_is_not_there(size: int, offset: int, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        npu.npu_prefetch(torch.randn(8, 8).npu(), None, size, offset)
