"""A backward function that takes gradients of results for contiguous is found; ``sum().backward()`` gives it others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

import ascend_graph
from ascend_graph.checks.report import CheckReport


@pytest.fixture
def checked() -> Iterator[Callable[[Callable[..., torch.Tensor]], CheckReport]]:
    library = torch.library.Library("gradient_layouts", "DEF")
    library.define("triple(Tensor x) -> Tensor")
    library.impl("triple", lambda x: x * 3, "PrivateUse1")
    registered = []

    def check(backward: Callable[..., torch.Tensor]) -> CheckReport:
        eager = torch.ops.gradient_layouts.triple
        registered.append(ascend_graph.register_kernel(eager=eager, shape="x[*s] -> y[*s]", backward=backward))
        return ascend_graph.opcheck(
            registered[0], reference=lambda x: x * 3, checks=["gradient"], raise_exception=False
        )

    yield check
    registered[0].unregister()
    library._destroy()


def raw(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
    return grad.as_strided(grad.shape, torch.empty(grad.shape, device="meta").stride()) * 3


def needs_memory(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
    assert grad.is_contiguous(), "the gradient is not contiguous"
    return grad * 3


def test_a_gradient_that_is_taken_for_contiguous_is_found(checked: Callable[..., CheckReport]) -> None:
    (failure,) = checked(raw).failures
    assert "where the gradient of a result is" in failure.message
    assert "call contiguous() on the gradients" in failure.advice


def test_a_gradient_that_must_be_contiguous_is_found(checked: Callable[..., CheckReport]) -> None:
    (failure,) = checked(needs_memory).failures
    assert "backward fails: AssertionError: the gradient is not contiguous" in failure.message


def test_a_gradient_in_any_layout_passes(checked: Callable[..., CheckReport]) -> None:
    assert checked(lambda ctx, grad: grad * 3).ok
