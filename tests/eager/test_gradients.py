"""Gradient operators, by one plan on both routes: made without C++, and generated C++."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

Operators = Callable[[str], Any]


def double(*sizes: int) -> torch.Tensor:
    return (torch.rand(*sizes, dtype=torch.float64) + 0.5).npu()


def test_they_are_the_derivatives(operators: Operators) -> None:
    blend, parts = operators("Blend"), operators("Parts")
    x, w, b = (double(2, 3).requires_grad_() for _ in range(3))
    assert torch.autograd.gradcheck(lambda x, w: blend(x, w), (x, w))
    assert torch.autograd.gradcheck(lambda x, w: blend(x, w, None, eps=0.25), (x, w))
    assert torch.autograd.gradcheck(lambda x, b: parts(x, b), (x, b))


def test_an_attr_by_another_name_and_all_outputs_count(operators: Operators) -> None:
    """``eps`` is the gradient's ``epsilon``, whose default is another; both outputs are differentiated."""
    x, w = torch.full((2,), 2.0, dtype=torch.float64).npu().requires_grad_(), torch.ones(2, dtype=torch.float64).npu()
    out, aux = operators("Blend")(x, w)
    (out + aux).sum().backward()
    assert x.grad.tolist() == [1.5 + 12] * 2


@pytest.mark.parametrize("with_z", [True, False])
@pytest.mark.parametrize("with_b", [True, False])
@pytest.mark.parametrize("compiled", [False, True])
def test_absent_inputs_and_outputs_shift_nothing(
    operators: Operators, with_z: bool, with_b: bool, compiled: bool
) -> None:
    parts = operators("Parts")
    x, b = double(3).requires_grad_(), double(3).requires_grad_() if with_b else None

    def loss(x: torch.Tensor, b: torch.Tensor | None) -> torch.Tensor:
        z, y = parts(x, b, with_z=with_z)
        return y.sum() + (3 * z.sum() if with_z else 0)

    torch._dynamo.reset()
    (torch.compile(loss, backend="aot_eager") if compiled else loss)(x, b).backward()
    torch.testing.assert_close(x.grad.cpu(), torch.full((3,), 2.0 + 15 * with_z, dtype=torch.float64))
    if b is not None:
        assert b.grad.tolist() == [7, 7, 7]


def test_only_what_is_needed_is_kept(operators: Operators) -> None:
    """Writing over an output that the gradient does not look at is not an error, and its memory goes."""
    x, w = double(4).requires_grad_(), double(4)
    out, aux = operators("Blend")(x, w)
    with torch.no_grad():
        out.zero_()
        aux.zero_()
    (out + aux).sum().backward()
    torch.testing.assert_close(x.grad.cpu(), (w + 0.5 + 6 * x.detach()).cpu())


def test_an_input_that_gets_no_gradient_is_named(operators: Operators) -> None:
    x, w, b = double(4), double(4), double(4)
    operators("Blend")(x, w, b)
    with pytest.raises(
        Exception,
        match=r"blend: its gradient BlendGrad gives none for the argument b, which requires grad.*constant: b",
    ):
        operators("Blend")(x, w, b.requires_grad_())
    with torch.no_grad():
        operators("Blend")(x, w, b)


def test_gradients_that_are_not_contiguous(operators: Operators) -> None:
    x, w = double(3, 4).requires_grad_(), double(3, 4)
    weight = double(4, 3)
    out, _ = operators("Blend")(x, w)
    (out.t() * weight).sum().backward()
    torch.testing.assert_close(x.grad.cpu(), (weight.t() * (w + 0.5)).cpu())


def test_the_gradient_of_a_gradient_that_has_none(operators: Operators) -> None:
    x, w = double(3).requires_grad_(), double(3)
    out, aux = operators("Blend")(x, w)
    (first,) = torch.autograd.grad((out + aux).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match=r"::blend_grad has no gradient, but one is asked for.*backward="):
        torch.autograd.grad(first.sum(), x)
    x = torch.tensor([1.0, 2.0]).npu().requires_grad_()
    y, index = operators("Square")(x, scale=2.0)
    assert not index.requires_grad
    (first,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    (second,) = torch.autograd.grad((first * x).sum(), x)
    assert second.tolist() == [8, 16]
