"""Forward-mode differentiation and the transforms of torch.func: the right tangent, or a refusal by name, on both
routes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.autograd import forward_ad

# vmap calls operators without batch= one by one, and PyTorch says so.
pytestmark = pytest.mark.filterwarnings("ignore:There is a performance drop")

Operators = Callable[[str], Any]
REFUSED = r"has no tangent, but forward-mode differentiation .* asks for one"


def npu(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float32).npu()


def dual(primal: torch.Tensor, tangent: torch.Tensor) -> torch.Tensor:
    made: torch.Tensor = forward_ad.make_dual(primal, tangent)
    return made


def scaled(operators: Operators) -> Callable[[torch.Tensor], torch.Tensor]:
    """``2 * x * x``: of an operator whose gradient has a gradient, which has none."""
    square = operators("Square")
    return lambda x: square(x, scale=2.0)[0]


# ------------------------------------------------------------------------------------------------------- derived
# tangents


def test_the_tangent_is_derived_from_the_gradient(operators: Operators) -> None:
    x, v = npu(1, 2, 3), npu(1, 10, 100)
    value, tangent = torch.func.jvp(scaled(operators), (x,), (v,))
    assert value.tolist() == [2, 8, 18]
    assert tangent.tolist() == [4, 80, 1200]
    assert torch.func.jacfwd(scaled(operators))(x).tolist() == [[4, 0, 0], [0, 8, 0], [0, 0, 12]]
    with forward_ad.dual_level():
        y, index = operators("Square")(dual(x, v), scale=2.0)
        assert forward_ad.unpack_dual(y).tangent.tolist() == [4, 80, 1200]
        assert forward_ad.unpack_dual(index).tangent is None


def test_a_tangent_is_as_the_call_is(operators: Operators) -> None:
    """Without gradients, in inference, and where another argument has a tangent."""
    x, v = npu(1, 2, 3), npu(1, 1, 1)
    with torch.no_grad(), forward_ad.dual_level():
        tangent = forward_ad.unpack_dual(scaled(operators)(dual(x, v))).tangent
        assert tangent.tolist() == [4, 8, 12]
        assert not tangent.requires_grad
    with forward_ad.dual_level():
        assert forward_ad.unpack_dual(scaled(operators)(x)).tangent is None


def test_a_gradient_has_a_tangent(operators: Operators) -> None:
    x, v = npu(1, 2, 3).requires_grad_(), npu(1, 10, 100)

    def of_gradient() -> Any:
        argument = dual(x, v)
        (grad,) = torch.autograd.grad(scaled(operators)(argument).sum(), argument, create_graph=True)
        return forward_ad.unpack_dual(grad)

    def last(x: torch.Tensor, grad_y: torch.Tensor, grad_dx: torch.Tensor, scale: float) -> tuple[torch.Tensor, ...]:
        return 2 * scale * grad_y * grad_dx, 2 * scale * x * grad_dx

    with forward_ad.dual_level():
        with pytest.raises(
            NotImplementedError, match=r"::square_grad: forward-mode .*::square_grad_grad has no gradient"
        ):
            of_gradient()
        library = torch.library.Library(operators("Square").namespace, "IMPL")
        library.impl("square_grad_grad", last, "AutogradPrivateUse1")
        try:
            grad, tangent = of_gradient()
        finally:
            library._destroy()
    assert grad.tolist() == [4, 8, 12]
    assert tangent.tolist() == [4, 40, 400]


def test_transforms_of_torch_func(operators: Operators) -> None:
    one, x = scaled(operators), npu(1, 2, 3)

    def total(x: torch.Tensor) -> torch.Tensor:
        return one(x).sum()

    diagonal = [[4, 0, 0], [0, 8, 0], [0, 0, 12]]
    constant = [[4, 0, 0], [0, 4, 0], [0, 0, 4]]
    assert torch.func.grad(total)(x).tolist() == [4, 8, 12]
    assert torch.func.vjp(one, x)[1](npu(1, 10, 100))[0].tolist() == [4, 80, 1200]
    assert torch.func.jacrev(one)(x).tolist() == diagonal
    assert torch.func.jacrev(torch.func.jacrev(total))(x).tolist() == constant
    batch = x[:, None].expand(3, 2)
    assert torch.vmap(torch.func.grad(total))(batch).tolist() == [[4, 4], [8, 8], [12, 12]]
    assert torch.func.grad(lambda x: torch.vmap(one)(x).sum())(batch).tolist() == [[4, 4], [8, 8], [12, 12]]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("dynamic", [False, True])
def test_compiled_programs_differentiate(operators: Operators, backend: str, dynamic: bool) -> None:
    one = scaled(operators)

    def derivatives(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        def total(x: torch.Tensor) -> torch.Tensor:
            return one(x).sum()

        return (
            torch.func.jvp(one, (x,), (torch.ones_like(x),))[1],
            torch.func.grad(total)(x),
            torch.func.jacrev(torch.func.jacrev(total))(x),
            torch.vmap(torch.func.grad(total))(x[:, None]),
        )

    torch._dynamo.reset()
    compiled = torch.compile(derivatives, backend=backend, fullgraph=True, dynamic=dynamic)
    for values in ((1, 2, 3), (1, 2, 3, 4)):
        x = npu(*values)
        for found, expected in zip(compiled(x), derivatives(x), strict=True):
            torch.testing.assert_close(found.cpu(), expected.cpu())


# ---------------------------------------------------------------------------------------------------------------
# refusals


def test_an_operator_without_a_gradient_refuses_forward_mode(operators: Operators) -> None:
    twice, x = operators("Twice"), npu(1, 2)
    for derivative in (lambda: torch.func.jvp(twice, (x,), (x,)), lambda: torch.func.jacfwd(twice)(x)):
        with pytest.raises(NotImplementedError, match=r"::twice " + REFUSED):
            derivative()
    with forward_ad.dual_level():
        given = dual(x, x)
        with pytest.raises(NotImplementedError, match=r"::twice " + REFUSED):
            twice(given)
        assert twice(forward_ad.unpack_dual(given).primal).tolist() == [2, 4]


@pytest.mark.parametrize("tangent_of", ["w", "x"])
def test_an_operator_that_writes_refuses_before_it_writes(operators: Operators, tangent_of: str) -> None:
    """What is written kept the tangent of its old value, or had none."""
    add_to, w, x = operators("AddTo"), npu(1, 2), npu(10, 20)
    with forward_ad.dual_level():
        given = {"w": w, "x": x} | {tangent_of: dual({"w": w, "x": x}[tangent_of], npu(1, 1))}
        with pytest.raises(NotImplementedError, match=r"::add_to writes w in place and " + REFUSED):
            add_to(**given)
    assert w.tolist() == [1, 2]


def test_in_place_writes_within_transforms_are_refused(operators: Operators) -> None:
    add_to, x = operators("AddTo"), npu(1, 2)

    def written(x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        add_to(y, x)
        return y.sum()

    with pytest.raises(RuntimeError, match="::add_to writes w in place and has no gradient"):
        torch.func.grad(written)(x)
    with pytest.raises(NotImplementedError, match="::add_to writes w in place and has no tangent"):
        torch.func.jvp(written, (x,), (x,))


def test_a_gradient_without_one_of_its_own_gives_no_tangent(operators: Operators) -> None:
    """PartsGrad is differentiated for it; both are named, and what to write."""
    x = torch.ones(2, dtype=torch.float64).npu()
    with pytest.raises(
        NotImplementedError, match=r"::parts: forward-mode differentiation asks .*::parts_grad has no gradient"
    ):
        torch.func.jvp(lambda x: operators("Parts")(x, None)[1], (x,), (x,))


def test_each_order_asks_for_one_gradient_more(operators: Operators) -> None:
    """Forward over backward differentiates the gradient twice: the last one has no gradient, and is named."""
    with pytest.raises(NotImplementedError, match=r"::square_grad: forward-mode .*::square_grad_grad has no gradient"):
        torch.func.hessian(lambda x: scaled(operators)(x).sum())(npu(1, 2))


def test_a_tangent_of_an_argument_without_a_gradient_is_named(operators: Operators) -> None:
    x = torch.ones(2, dtype=torch.float64).npu()
    with pytest.raises(Exception, match=r"::blend: its gradient BlendGrad gives none for the argument b"):
        torch.func.jvp(lambda b: operators("Blend")(x, x, b)[0], (x,), (x,))
