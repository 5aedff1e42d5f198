"""Forward mode over an author's operator without a tangent: refused by name, whatever registered its kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch.autograd import forward_ad
from torch.autograd.forward_ad import _set_fwd_grad_enabled

import ascend_graph

HEADER = """
REG_OP(SilentTwice).INPUT(x, ALL()).OUTPUT(y, ALL()).OP_END_FACTORY_REG(SilentTwice)
REG_OP(SilentAdd).INPUT(w, ALL()).INPUT(x, ALL()).OUTPUT(w, ALL()).OP_END_FACTORY_REG(SilentAdd)
REG_OP(SilentSign).INPUT(x, ALL()).OUTPUT(y, TensorType({DT_INT32})).OP_END_FACTORY_REG(SilentSign)
"""
REFUSED = "::{} has no tangent, but forward-mode differentiation .* asks for one"
X = torch.tensor([1.0, 2.0])


@pytest.fixture(scope="module", autouse=True)
def _prototypes() -> None:
    ascend_graph.load_prototypes(HEADER)


@pytest.fixture
def library() -> Iterator[torch.library.Library]:
    made = torch.library.Library("silent", "FRAGMENT")
    yield made
    for registered in ascend_graph.registered_ops():
        if registered.overload.namespace == "silent":
            registered.unregister()
    made._destroy()


def by_library(library: torch.library.Library, name: str, schema: str, kernel: Callable[..., Any]) -> Any:
    library.define(f"{name}{schema}")
    library.impl(name, kernel, "CPU")
    return getattr(torch.ops.silent, name).default


def by_custom_op(library: torch.library.Library, name: str, schema: str, kernel: Callable[..., Any]) -> Any:
    mutates = ["w"] if "!" in schema else []
    torch.library.custom_op(f"silent::{name}", kernel, mutates_args=mutates, schema=schema)
    return getattr(torch.ops.silent, name).default


def by_composite(library: torch.library.Library, name: str, schema: str, kernel: Callable[..., Any]) -> Any:
    library.define(f"{name}{schema}")
    library.impl(name, kernel, "CompositeExplicitAutograd")
    return getattr(torch.ops.silent, name).default


def doubled(x: torch.Tensor) -> torch.Tensor:
    """A kernel that launches something, of which forward mode knows nothing."""
    with _set_fwd_grad_enabled(False):
        return x * 2


DEFINED_BY = pytest.mark.parametrize("define", [by_library, by_custom_op, by_composite])


def derivatives(operator: Any) -> Iterator[Callable[[], Any]]:
    """Yield each way in which forward mode gets to a call."""

    def dual() -> Any:
        with forward_ad.dual_level():
            return operator(forward_ad.make_dual(X, X))

    yield dual
    yield lambda: torch.func.jvp(operator, (X,), (X,))
    yield lambda: torch.func.jacfwd(operator)(X)
    yield lambda: torch.func.hessian(lambda x: (operator(x) * x).sum())(X)
    yield lambda: torch.compile(lambda x: torch.func.jvp(operator, (x,), (x,)), backend="eager")(X)


@DEFINED_BY
@pytest.mark.parametrize("with_prototype", [True, False])
@pytest.mark.filterwarnings("ignore:There is a performance drop")
def test_an_authors_operator_without_a_tangent_is_refused(
    library: torch.library.Library, define: Any, with_prototype: bool
) -> None:
    name = f"twice_{define.__name__}_{with_prototype}".lower()
    overload = define(library, name, "(Tensor x) -> Tensor", doubled)
    # A kernel for all devices is a meta function, too.
    shape = None if define is by_composite else "x[*s] -> y[*s]"
    if with_prototype:
        op = ascend_graph.register_op("SilentTwice", eager=overload, shape=shape)
    else:
        op = ascend_graph.register_kernel(eager=overload, shape=shape)
    torch._dynamo.reset()
    for derivative in derivatives(overload):
        # PyTorch itself refuses transforms of the reverse mode of torch.library.custom_op.
        with pytest.raises(Exception, match=rf"{REFUSED.format(name)}|it must override the setup_context"):
            derivative()
    with forward_ad.dual_level():  # a level alone asks for nothing
        assert overload(X).tolist() == [2, 4]
    op.unregister()
    with forward_ad.dual_level():  # and what PyTorch did is there again
        assert forward_ad.unpack_dual(overload(forward_ad.make_dual(X, X))).tangent is None


@DEFINED_BY
def test_an_authors_operator_that_writes_is_refused_before_it_writes(
    library: torch.library.Library, define: Any
) -> None:
    name = f"add_{define.__name__}"

    def kernel(w: Any, x: Any) -> None:
        w.add_(x)

    overload = define(library, name, "(Tensor(a!) w, Tensor x) -> ()", kernel)
    ascend_graph.register_op("SilentAdd", eager=overload)
    with forward_ad.dual_level():
        for given in ((X.clone(), forward_ad.make_dual(X, X)), (forward_ad.make_dual(X.clone(), X), X)):
            with pytest.raises(NotImplementedError, match=f"::{name} writes w in place and has no tangent"):
                overload(*given)
            assert given[0].tolist() == [1, 2]
    w = X.clone()
    before = w._version
    overload(w, X)
    assert w.tolist() == [2, 4]
    assert w._version > before


def test_integers_have_no_tangents_to_refuse(library: torch.library.Library) -> None:
    overload = by_library(library, "sign", "(Tensor x) -> Tensor", lambda x: x.sign().int())
    ascend_graph.register_op("SilentSign", eager=overload, shape="x[*s] -> y[*s]: int32")
    value, tangent = torch.func.jvp(overload, (X,), (X,))
    assert value.tolist() == [1, 1]
    assert not tangent.any()


def test_reverse_mode_stays_as_it_is(library: torch.library.Library) -> None:
    """A gradient that the author registered with torch.library is still there, and takes no tangent."""
    overload = by_custom_op(library, "own_gradient", "(Tensor x) -> Tensor", lambda x: x * 2)
    torch.library.register_autograd("silent::own_gradient", lambda ctx, grad: grad * 2)
    ascend_graph.register_op("SilentTwice", eager=overload, shape="x[*s] -> y[*s]")
    x = X.clone().requires_grad_()
    overload(x).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [2, 2]
    with forward_ad.dual_level(), pytest.raises(NotImplementedError, match=REFUSED.format("own_gradient")):
        overload(forward_ad.make_dual(X, X))


def test_a_kernel_of_aten_operators_carries_tangents_on(library: torch.library.Library) -> None:
    overload = by_library(library, "of_aten", "(Tensor x) -> Tensor", lambda x: x * 2)
    ascend_graph.register_op("SilentTwice", eager=overload, shape="x[*s] -> y[*s]")
    with forward_ad.dual_level():
        assert forward_ad.unpack_dual(overload(forward_ad.make_dual(X, X))).tangent.tolist() == [2, 4]
