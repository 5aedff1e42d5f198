"""Forward mode over an author's operator without a tangent: refused by name, whatever registered its kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch.autograd import forward_ad
from torch.autograd.forward_ad import _set_fwd_grad_enabled

import ascend_graph
from ascend_graph.autograd import no_tangent
from ascend_graph.compilation import BuildError

HEADER = """
REG_OP(SilentTwice).INPUT(x, ALL()).OUTPUT(y, ALL()).OP_END_FACTORY_REG(SilentTwice)
REG_OP(SilentAdd).INPUT(w, ALL()).INPUT(x, ALL()).OUTPUT(w, ALL()).OP_END_FACTORY_REG(SilentAdd)
REG_OP(SilentParts).DYNAMIC_INPUT(xs, ALL()).DYNAMIC_OUTPUT(ys, ALL()).OP_END_FACTORY_REG(SilentParts)
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


def negative(x: torch.Tensor) -> torch.Tensor:
    with _set_fwd_grad_enabled(False):
        return -x


DEFINED_BY = pytest.mark.parametrize("define", [by_library, by_custom_op, by_composite])


def backend_of(name: str) -> Any:
    import torch_npu  # noqa: F401 - torchair can only be imported after it
    import torchair

    return torchair.get_npu_backend() if name == "ge" else name


def derivatives(operator: Any) -> Iterator[Callable[[], Any]]:
    """Yield each way in which forward mode gets to a call."""

    def dual() -> Any:
        with forward_ad.dual_level():
            return operator(forward_ad.make_dual(X, X))

    yield dual
    yield lambda: torch.func.jvp(operator, (X,), (X,))
    yield lambda: torch.func.jacfwd(operator)(X)
    yield lambda: torch.func.hessian(lambda x: (operator(x) * x).sum())(X)
    for backend in ("eager", "aot_eager"):
        yield lambda b=backend: torch.compile(lambda x: torch.func.jvp(operator, (x,), (x,)), backend=b)(X)


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


@DEFINED_BY
def test_lists_are_asked_element_by_element(library: torch.library.Library, define: Any) -> None:
    def kernel(xs: list[torch.Tensor]) -> list[torch.Tensor]:
        return [doubled(x) for x in xs]

    name = f"parts_{define.__name__}"
    overload = define(library, name, "(Tensor[] xs) -> Tensor[]", kernel)
    shape = None if define is by_composite else "xs[i][*s] -> ys[i][*s]"
    ascend_graph.register_op("SilentParts", eager=overload, shape=shape)
    assert [y.tolist() for y in overload([X, X])] == [[2, 4], [2, 4]]
    with forward_ad.dual_level(), pytest.raises(NotImplementedError, match=REFUSED.format(name)):
        overload([X, forward_ad.make_dual(X, X)])


def test_register_autograd_of_an_operator_of_a_library_is_asked_too(library: torch.library.Library) -> None:
    overload = by_library(library, "backward_alone", "(Tensor x) -> Tensor", doubled)
    torch.library.register_autograd("silent::backward_alone", lambda ctx, grad: grad * 2, lib=library)
    ascend_graph.register_op("SilentTwice", eager=overload, shape="x[*s] -> y[*s]")
    x = X.clone().requires_grad_()
    overload(x).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [2, 2]
    with forward_ad.dual_level(), pytest.raises(NotImplementedError, match=REFUSED.format("backward_alone")):
        overload(forward_ad.make_dual(X, X))


def test_a_tangent_that_the_author_registered_is_kept(library: torch.library.Library) -> None:
    overload = by_library(library, "own_tangent", "(Tensor x) -> Tensor", doubled)

    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            with torch._C._AutoDispatchBelowAutograd():
                return overload(x)

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * 2

        @staticmethod
        def jvp(ctx: Any, tangent: Any) -> Any:
            return tangent * 2

    library.impl("own_tangent", Twice.apply, "Autograd")
    ascend_graph.register_op("SilentTwice", eager=overload, shape="x[*s] -> y[*s]")
    with forward_ad.dual_level():
        assert forward_ad.unpack_dual(overload(forward_ad.make_dual(X, X))).tangent.tolist() == [2, 4]


def test_transforms_that_ask_for_no_tangent_pass(library: torch.library.Library) -> None:
    overload = by_library(library, "no_question", "(Tensor x) -> Tensor", doubled)
    ascend_graph.register_op("SilentTwice", eager=overload, shape="x[*s] -> y[*s]", batch=("s",))
    rows = torch.ones(3, 2)
    assert torch.equal(torch.vmap(overload)(rows), rows * 2)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(overload(rows), rows * 2)
    with torch.inference_mode():
        assert torch.equal(overload(torch.ones(2)), torch.full((2,), 2.0))
    # An argument without a tangent at the level that is asked about, within another that is.
    _, tangent = torch.func.jvp(lambda x: x * overload(X), (X,), (torch.ones(2),))
    assert tangent.tolist() == [2, 4]

    class Net(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return overload(x) + 1

    assert torch.equal(torch.export.export(Net(), (rows,)).module()(rows), rows * 2 + 1)
    with pytest.raises(NotImplementedError, match=REFUSED.format("no_question")):
        torch.vmap(lambda x: torch.func.jvp(overload, (x,), (x,)))(rows)


def test_a_gradient_takes_the_place_of_the_refusal(library: torch.library.Library) -> None:
    overload = by_library(library, "later", "(Tensor x) -> Tensor", doubled)
    ascend_graph.register_op("SilentTwice", eager=overload, shape="x[*s] -> y[*s]")
    with pytest.raises(NotImplementedError, match=REFUSED.format("later")):
        torch.func.jvp(overload, (X,), (X,))
    ascend_graph.register_op(
        "SilentTwice", eager=overload, shape="x[*s] -> y[*s]", backward=lambda ctx, grad: grad * 2, override=True
    )
    assert torch.func.jvp(overload, (X,), (X,))[1].tolist() == [2, 4]


def test_without_a_compiler_a_warning_says_that_tangents_are_silent(
    library: torch.library.Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_compiler() -> Any:
        raise BuildError("no C++ compiler")

    monkeypatch.setattr(no_tangent, "tangent_refusals", no_compiler)
    no_tangent._library.cache_clear()
    try:
        first = by_library(library, "uncompiled", "(Tensor x) -> Tensor", doubled)
        with pytest.warns(no_tangent.SilentTangentWarning, match="eager= gives zeros here .* no C.. compiler"):
            op = ascend_graph.register_op("SilentTwice", eager=first, shape="x[*s] -> y[*s]")
        assert op(X).tolist() == [2, 4]
        second = by_library(library, "uncompiled_too", "(Tensor x) -> Tensor", doubled)
        ascend_graph.register_kernel(eager=second, shape="x[*s] -> y[*s]")  # once is enough
    finally:
        no_tangent._library.cache_clear()


@pytest.mark.filterwarnings("ignore:Because acl graph fixes memory addresses")
@pytest.mark.parametrize("backend", ["ge", "npugraph_ex"])
def test_graphs_and_captures_of_such_operators_compute_what_calls_do(
    library: torch.library.Library, backend: str
) -> None:
    library.define("on_device(Tensor x) -> Tensor")
    library.impl("on_device", doubled, "PrivateUse1")
    overload = torch.ops.silent.on_device.default
    header = "REG_OP(Neg).INPUT(x, ALL()).OUTPUT(y, ALL()).OP_END_FACTORY_REG(Neg)"
    ascend_graph.load_prototypes(header)
    if backend == "ge":
        library.define("negative(Tensor x) -> Tensor")
        library.impl("negative", negative, "PrivateUse1")
        overload, expected = torch.ops.silent.negative.default, negative
        ascend_graph.register_op("Neg", eager=overload, shape="x[*s] -> y[*s]")
    else:
        ascend_graph.register_kernel(eager=overload, shape="x[*s] -> y[*s]")
        expected = doubled
    torch._dynamo.reset()
    compiled = torch.compile(lambda x: overload(x + 1) * 3, backend=backend_of(backend), dynamic=True)
    for size in (3, 4, 5, 3):
        x = torch.arange(float(size), device="npu")
        assert torch.equal(compiled(x), expected(x + 1) * 3)
    with forward_ad.dual_level(), pytest.raises(NotImplementedError, match="::(on_device|negative) has no tangent"):
        overload(forward_ad.make_dual(x, x))
