"""Strides of results: as asked for, and as PyTorch's fake tensors of the device have them, which compilers trust."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch._prims_common import check_significant_strides
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional as F

Tensor = torch.Tensor

STRIDES = {
    "repeated": ((3,), (0,)),
    "gaps": ((2, 3), (10, 1)),
    "overlaps": ((2, 2), (1, 1)),
    "transposed": ((2, 3), (1, 2)),
    "expanded": ((2, 3), (0, 1)),
    "empty": ((0, 3), (5, 1)),
    "number": ((), ()),
}


@pytest.mark.parametrize("name", STRIDES)
def test_new_empty_strided_has_the_strides_asked_for(name: str) -> None:
    size, stride = STRIDES[name]
    expected = torch.zeros(1).new_empty_strided(size, stride)
    result = torch.zeros(1, device="npu").new_empty_strided(size, stride)
    assert (result.shape, result.stride()) == (expected.shape, expected.stride())
    assert result.untyped_storage().nbytes() >= expected.untyped_storage().nbytes()
    if name not in ("repeated", "overlaps", "expanded"):  # elements that share memory cannot be written
        result.fill_(3)
        assert torch.equal(result.cpu(), expected.fill_(3))


def test_strides_asked_for_in_a_capture() -> None:
    x = torch.ones(1, device="npu")
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph):
        y = x.new_empty_strided((2, 3), (10, 1))
        y.copy_(x.expand(2, 3))
        z = y + 1
    graph.replay()
    assert y.stride() == (10, 1)
    assert torch.equal(z.cpu(), torch.full((2, 3), 2.0))


def ordered(t: Tensor, order: tuple[int, ...]) -> Tensor:
    """The values in another order of memory: that of the dimensions as given."""
    back = [order.index(d) for d in range(t.dim())]
    return t.permute(order).contiguous().permute(back)


def corners(x: Tensor) -> Tensor:
    """Where the first element of each window of 2 is in a tensor that is twice as large, as pooling gives it."""
    sizes = [2 * n for n in x.shape[2:]]
    places = torch.arange(math.prod(sizes)).reshape(sizes)[(slice(None, None, 2),) * len(sizes)]
    return places.expand(x.shape).contiguous().to(x.device)


FUNCTIONS: dict[str, tuple[Callable[[Tensor, Tensor], Tensor], tuple[int, ...], tuple[int, ...]]] = {
    "conv1d": (F.conv1d, (2, 4, 8), (4, 4, 3)),
    "conv2d": (F.conv2d, (2, 4, 8, 8), (4, 4, 3, 3)),
    "conv2d groups": (lambda x, w: F.conv2d(x, w, groups=4), (2, 4, 8, 8), (4, 1, 3, 3)),
    "conv3d": (F.conv3d, (2, 4, 6, 6, 6), (4, 4, 3, 3, 3)),
    "conv_transpose2d": (F.conv_transpose2d, (2, 4, 8, 8), (4, 4, 3, 3)),
    "conv_transpose3d": (F.conv_transpose3d, (2, 4, 5, 5, 5), (4, 4, 3, 3, 3)),
    "pixel_shuffle": (lambda x, w: F.pixel_shuffle(x * w.sum(), 2), (2, 8, 6, 6), (2, 2)),
    "pixel_unshuffle": (lambda x, w: F.pixel_unshuffle(x * w.sum(), 2), (2, 4, 8, 8), (2, 2)),
    "channel_shuffle": (lambda x, w: F.channel_shuffle(x * w.sum(), 2), (2, 8, 6, 6), (2, 2)),
    "replicate": (lambda x, w: F.pad(x * w.sum(), (1, 2, 1, 1), "replicate"), (2, 8, 6, 6), (2, 2)),
    "replicate volumes": (
        lambda x, w: F.pad(x * w.sum(), (1, 2, 1, 1, 2, 1), "replicate"),
        (2, 4, 6, 5, 5),
        (2, 2),
    ),
    "reflect": (lambda x, w: F.pad(x * w.sum(), (1, 2, 1, 1), "reflect"), (2, 8, 6, 6), (2, 2)),
    "reflect volumes": (
        lambda x, w: F.pad(x * w.sum(), (1, 2, 1, 1, 2, 1), "reflect"),
        (2, 4, 6, 5, 5),
        (2, 2),
    ),
    "unpool": (lambda x, w: F.max_unpool2d(x * w, corners(x), 2), (2, 4, 3, 3), (1,)),
    "unpool volumes": (lambda x, w: F.max_unpool3d(x * w, corners(x), 2), (2, 4, 3, 2, 2), (1,)),
}


def results(function: Callable[[Tensor, Tensor], Tensor], x: Tensor, w: Tensor) -> list[Tensor]:
    """A function's result and its gradients."""
    x, w = x.detach().requires_grad_(), w.detach().requires_grad_()
    y = function(x, w)
    return [y, *torch.autograd.grad(y, (x, w), torch.ones_like(y))]


@pytest.mark.parametrize("order", ["channels last", "reversed"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_layouts_are_those_of_fake_tensors(name: str, order: str) -> None:
    function, input_size, weight_size = FUNCTIONS[name]
    rank = len(input_size)
    dimensions = (0, *range(2, rank), 1) if order == "channels last" else tuple(reversed(range(rank)))
    torch.manual_seed(0)
    x, w = ordered(torch.randn(input_size), dimensions), torch.randn(weight_size)
    on_device = x.npu(), w.npu()
    found = results(function, *on_device)
    with FakeTensorMode() as mode:
        fakes = results(function, *map(mode.from_tensor, on_device))
    for result, fake in zip(found, fakes, strict=True):
        same, _ = check_significant_strides(result, fake, only_cuda=False)
        assert same, (result.stride(), fake.stride())
    for result, expected in zip(found, results(function, x, w), strict=True):
        torch.testing.assert_close(result.cpu(), expected, rtol=1e-4, atol=1e-4)


def test_a_captured_convolution_has_the_same_layout() -> None:
    x = ordered(torch.randn(2, 4, 8, 8), (0, 2, 3, 1)).npu()
    w = torch.randn(4, 4, 3, 3).npu()
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph):
        y = F.conv2d(x, w)
        flat = y.view(2, -1)
    graph.replay()
    assert torch.equal(flat.cpu(), F.conv2d(x, w).view(2, -1).cpu())


COPIES: dict[str, Callable[[Tensor], object]] = {
    "slice from number": lambda x: x.view(-1).__setitem__(slice(1), x[0, 0]),
    "rows from row": lambda x: x.__setitem__(slice(1), x[0]),
    "block from number": lambda x: x.__setitem__((slice(1), slice(1)), x[0, 0]),
    "column from column": lambda x: x[:, :1].copy_(x[:, 0].unsqueeze(1)),
    "itself": lambda x: x.copy_(x.view(1, 3, 4)[0]),
}


@pytest.mark.parametrize("name", COPIES)
def test_a_tensor_is_copied_to_where_it_is(name: str) -> None:
    x = torch.arange(12.0).reshape(3, 4)
    y = x.npu()
    COPIES[name](y)
    assert torch.equal(y.cpu(), x)


def test_a_copy_between_elements_of_one_memory_is_refused() -> None:
    for x in (torch.arange(16.0).reshape(4, 4), torch.arange(16.0).reshape(4, 4).npu()):
        with pytest.raises(RuntimeError, match="single memory location"):
            x.copy_(x.t())
        with pytest.raises(RuntimeError, match="single memory location"):
            x.view(-1)[1:].copy_(x.view(-1)[:-1])


# PyTorch's CPU kernels of these write an output as if it were contiguous.
WITH_OUTPUT: dict[str, Callable[..., Tensor]] = {
    "softmax": lambda x, **out: torch.softmax(x, -1, **out),
    "log_softmax": lambda x, **out: torch.log_softmax(x, 1, **out),
    "gelu": lambda x, **out: torch.ops.aten.gelu(x, **out),
    "stack": lambda x, **out: torch.stack([x, x + 1], 2, **out),
    "narrow_copy": lambda x, **out: torch.narrow_copy(x, 1, 1, 2, **out),
    "avg_pool3d": lambda x, **out: torch.ops.aten.avg_pool3d(x, 2, **out),
    "add": lambda x, **out: torch.add(x, 1, **out),
}
OUTPUTS: dict[str, Callable[[Tensor], Tensor]] = {
    "gaps": lambda like: torch.zeros(*like.shape, 2, device="npu")[..., 1],
    "reversed": lambda like: torch.zeros(like.shape[::-1], device="npu").permute(*range(like.dim())[::-1]),
    "channels_last": lambda like: torch.zeros(*like.shape[1:], like.shape[0], device="npu").movedim(-1, 0),
}


@pytest.mark.parametrize("layout", OUTPUTS)
@pytest.mark.parametrize("name", WITH_OUTPUT)
def test_outputs_in_any_layout_are_written(name: str, layout: str) -> None:
    x = torch.randn(2, 4, 4, 6)
    expected = WITH_OUTPUT[name](x)
    out = OUTPUTS[layout](expected)
    strides = out.stride()
    assert WITH_OUTPUT[name](x.npu(), out=out) is out
    assert out.stride() == strides
    torch.testing.assert_close(out.cpu(), expected)


def test_an_output_in_any_layout_may_be_the_input_or_be_resized() -> None:
    buffer = torch.randn(4, 16, device="npu")
    left, right = buffer[:, :8], buffer[:, 8:].clone()
    expected = torch.softmax(left.cpu(), -1)
    torch.softmax(left, -1, out=left)
    torch.testing.assert_close(left.cpu(), expected)
    assert torch.equal(buffer[:, 8:], right)
    empty = torch.zeros(4, 3, device="npu")[1:3, 1:1]
    torch.softmax(right, -1, out=empty)
    torch.testing.assert_close(empty.cpu(), torch.softmax(right.cpu(), -1))


def test_captured_outputs_in_any_layout_are_written() -> None:
    x, buffer = torch.zeros(3, 4, device="npu"), torch.zeros(3, 8, device="npu")
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph):
        torch.softmax(x, -1, out=buffer[:, ::2])
    x.copy_(torch.arange(12.0).reshape(3, 4))
    graph.replay()
    torch.testing.assert_close(buffer[:, ::2].cpu(), torch.softmax(x.cpu(), -1))
