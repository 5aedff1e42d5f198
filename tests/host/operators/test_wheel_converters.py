"""ATen operators that TorchAir's converters compute otherwise, or refuse, in GE graphs (docs/wheel-faults.md).

Each test fails once the wheel does better.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
import torch_npu
import torchair

T = torch.Tensor
pytestmark = [
    pytest.mark.skipif(not torch_npu.__version__.startswith("2.13."), reason="they are torch_npu 2.13's"),
    pytest.mark.filterwarnings("ignore"),
]


def _in_ge(function: Callable[..., Any], dynamic: bool = False) -> Callable[..., Any]:
    torch._dynamo.reset()
    return torch.compile(function, backend=torchair.get_npu_backend(), dynamic=dynamic)


def _bags(weight: T, **options: Any) -> T:
    """Embeddings of two bags of two."""
    indices = torch.arange(4, device=weight.device)
    return F.embedding_bag(indices, weight, indices[::2].contiguous(), **options)


#: Programs that compute other values, with their argument.
OTHER_VALUES: dict[str, tuple[Callable[[T], T], T]] = {
    "integers < a float": (lambda x: x < 1.5, torch.arange(4)),
    "integers >= a float": (lambda x: x >= 1.5, torch.arange(4)),
    "padding of avg_pool1d": (lambda x: F.avg_pool1d(x, 2, 1, 1), torch.ones(1, 1, 4).half()),
    "padding of avg_pool2d": (lambda x: F.avg_pool2d(x, 2, 1, 1), torch.ones(1, 1, 4, 4).half()),
    "indices of max_pool2d": (
        lambda x: F.max_pool2d(x, 2, 1, return_indices=True)[1],
        torch.arange(12.0).reshape(1, 1, 3, 4) / 2,
    ),
    "a row of attention that is masked": (
        lambda x: F.scaled_dot_product_attention(x, x, x, attn_mask=torch.zeros_like(x[..., :1]).bool().mT),
        torch.ones(1, 1, 3, 4),
    ),
    "scales of nearest neighbors": (
        lambda x: F.interpolate(x, scale_factor=1.7, mode="nearest"),
        torch.arange(16.0).reshape(1, 1, 4, 4),
    ),
    "deviations of batch norm": (
        lambda x: torch.native_batch_norm(x, x[0] + 1, x[0] + 0, x[0] + 0, x[0] + 1, True, 0.1, 1e-5)[2],
        torch.arange(4.0).reshape(4, 1),
    ),
    "sums of embedding_bag": (lambda w: _bags(w, mode="sum"), torch.arange(12.0).reshape(4, 3)),
}


@pytest.mark.xfail(strict=True, raises=AssertionError, reason="docs/wheel-faults.md, other values")
@pytest.mark.parametrize("name", OTHER_VALUES)
def test_values_are_those_of_pytorch(name: str) -> None:
    program, x = OTHER_VALUES[name]
    assert torch.equal(_in_ge(program)(x.npu()).cpu(), program(x))


#: Their siblings, which are right.
RIGHT: dict[str, tuple[Callable[[T], T], T]] = {
    "integers > a float": (lambda x: x > 1.5, torch.arange(4)),
    "integers <= a float": (lambda x: x <= 1.5, torch.arange(4)),
    "integers == a float": (lambda x: x == 1.5, torch.arange(4)),
    "floats < a float": (lambda x: x < 1.5, torch.arange(4.0)),
    "means of embedding_bag": (lambda w: _bags(w, mode="mean"), torch.arange(12.0).reshape(4, 3)),
    "maxima of embedding_bag": (lambda w: _bags(w, mode="max"), torch.arange(12.0).reshape(4, 3)),
    "sums of embedding_bag with padding": (
        lambda w: _bags(w, mode="sum", padding_idx=1),
        torch.arange(12.0).reshape(4, 3),
    ),
    "weighted sums of embedding_bag": (
        lambda w: _bags(w, mode="sum", per_sample_weights=torch.ones_like(w[:, 0])),
        torch.arange(12.0).reshape(4, 3),
    ),
    "padding of float32": (lambda x: F.avg_pool2d(x, 2, 1, 1), torch.ones(1, 1, 4, 4)),
}


@pytest.mark.parametrize("name", RIGHT)
def test_values_of_siblings_are_those_of_pytorch(name: str) -> None:
    program, x = RIGHT[name]
    assert torch.equal(_in_ge(program)(x.npu()).cpu(), program(x))


#: Programs that are refused, with their argument and the message.
REFUSED: dict[str, tuple[Callable[[T], T], T, str]] = {
    "a view of smaller elements": (
        lambda x: x.view(torch.uint8) + 1,
        torch.ones(3, 4),
        r"NetOutput: \[3, 4, 4\] is not equal to FX graph NetOutput: \[3, 16\]",
    ),
    "a list that is clamped": (
        lambda x: torch._foreach_clamp_min([x, x + 1], 2.0)[0],
        torch.arange(4.0),
        r"auto-generated converter for aten\._foreach_clamp_min\.Scalar",
    ),
    "the gradient of embedding_bag": (
        lambda w: torch.func.grad(lambda w: _bags(w, mode="mean").sum())(w),
        torch.arange(12.0).reshape(4, 3),
        r"auto-generated converter for aten\._embedding_bag_backward\.default",
    ),
    "a number of Python in torch.vmap": (
        lambda x: torch.vmap(lambda row: row * 2)(x),
        torch.ones(3),
        "'int' object has no attribute 'dtype'",
    ),
    "a returned real part": (torch.real, torch.ones(3, 4, dtype=torch.complex64), "incorrect out shape"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_programs_that_ge_graphs_refuse(name: str) -> None:
    program, x, message = REFUSED[name]
    with pytest.raises((RuntimeError, AssertionError), match=message):
        _in_ge(program)(x.npu())


@pytest.mark.xfail(strict=True, raises=AssertionError, reason="docs/wheel-faults.md, other values")
def test_a_result_and_a_returned_view_of_it_are_one_memory() -> None:
    def program(x: T) -> tuple[T, T]:
        y = x.sin()
        return y, y[1:]

    whole, part = _in_ge(program)(torch.ones(3).npu())
    whole.zero_()
    assert part.tolist() == [0, 0]


@pytest.mark.parametrize("specialized", [False, True])
def test_a_float_of_python_in_the_gradient_of_a_dynamic_graph(
    specialized: bool,
) -> None:
    """The forward graph keeps the float for the gradient on the device, whose graph was compiled for the host."""
    x, y = (torch.ones(3, 4).npu().requires_grad_() for _ in range(2))
    with torch._dynamo.config.patch(specialize_float=specialized):
        total = _in_ge(lambda x, y, k: x * k + y, dynamic=True)(x, y, 0.5).sum()
        if not specialized:
            with pytest.raises(RuntimeError, match=r"expecting placement type .* to be \[Host\], but got \[DEVICE\]"):
                total.backward()
            return
        total.backward()
    assert x.grad is not None
    assert x.grad.unique().tolist() == [0.5]
