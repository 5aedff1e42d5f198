"""A gradient over an author's operator that has none: an error by name, in eager calls and in graphs."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch_npu  # noqa: F401 - torchair can only be imported after it
import torchair
from torch.library import Library

import ascend_graph
from ascend_graph.host.kernels import host_kernel

T = torch.Tensor
REFUSED = "{} has no gradient, but one is asked for: give it one with backward="
pytestmark = pytest.mark.filterwarnings("default")  # compiling warns of much that is torch's and torchair's own affair

HEADER = """
REG_OP(Neg).INPUT(x, ALL()).OUTPUT(y, ALL()).OP_END_FACTORY_REG(Neg)
REG_OP(AuthorsParts).INPUT(x, ALL()).DYNAMIC_OUTPUT(ys, ALL()).OUTPUT(n, TensorType({DT_INT64}))
    .OP_END_FACTORY_REG(AuthorsParts)
REG_OP(AuthorsShift).INPUT(y, ALL()).INPUT(x, ALL()).OUTPUT(y, ALL()).OUTPUT(z, ALL()).OP_END_FACTORY_REG(AuthorsShift)
"""


@host_kernel("AuthorsShift", writes=("y",))
def _shift(y: T, x: T) -> tuple[T, T]:
    return y.detach().copy_(x.detach()), x.detach() * 2


@pytest.fixture
def library() -> Iterator[Library]:
    ascend_graph.load_prototypes(HEADER)
    torch._dynamo.reset()
    made = Library("authors", "FRAGMENT")
    yield made
    for registered in reversed(ascend_graph.registered_ops()):
        if registered.overload.namespace == "authors":
            registered.unregister()
    made._destroy()


def launched(x: T) -> T:
    """A kernel that launches something, of which autograd knows nothing."""
    return -x.detach()


def define(library: Library, name: str, kernel: Any = launched, schema: str = "(Tensor x) -> Tensor") -> Any:
    library.define(name + schema)
    for key in ("CPU", "PrivateUse1"):
        library.impl(name, kernel, key)
    return getattr(torch.ops.authors, name).default


COMPILED = {
    "eager": lambda f: f,
    "aot_eager": lambda f: torch.compile(f, backend="aot_eager"),
    "GE": lambda f: torch.compile(f, backend=torchair.get_npu_backend()),
    "GE-dynamic": lambda f: torch.compile(f, backend=torchair.get_npu_backend(), dynamic=True),
    "npugraph_ex": lambda f: torch.compile(f, backend="npugraph_ex"),
}


@pytest.mark.parametrize("mode", COMPILED)
def test_a_gradient_is_refused_by_name_where_it_is_asked_for(library: Library, mode: str) -> None:
    op = define(library, "plain")
    ascend_graph.register_op("Neg", eager=op, shape="x[*s] -> y[*s]")
    program = COMPILED[mode](lambda x, w: op(x * 2) + w)
    x, w = (torch.ones(3, device="npu", requires_grad=True) for _ in range(2))
    assert program(x, w).tolist() == [-1, -1, -1]  # forward alone is right
    with pytest.raises(RuntimeError, match=REFUSED.format("authors::plain")):
        program(x, w).sum().backward()


@pytest.mark.parametrize("device", ["cpu", "npu"])
def test_torch_func_is_refused_too(library: Library, device: str) -> None:
    op = define(library, "func")
    ascend_graph.register_kernel(eager=op, shape="x[*s] -> y[*s]")
    with pytest.raises(RuntimeError, match=REFUSED.format("authors::func")):
        torch.func.grad(lambda x: op(x).sum())(torch.ones(3, device=device))


def test_functions_that_became_operators_are_refused_too(library: Library) -> None:
    op = ascend_graph.define_from_function("authors::of_function(Tensor x) -> Tensor", launched)
    ascend_graph.register_kernel(eager=op, shape="x[*s] -> y[*s]")
    with pytest.raises(RuntimeError, match=REFUSED.format("authors::of_function")):
        op(torch.ones(3, device="npu", requires_grad=True)).sum().backward()


def test_calls_without_a_gradient_pass(library: Library) -> None:
    op = define(library, "passes")
    ascend_graph.register_kernel(eager=op, shape="x[*s] -> y[*s]")
    x = torch.ones(3, requires_grad=True)
    with torch.no_grad():
        assert not op(x).requires_grad
    with torch.inference_mode():
        assert op(x).tolist() == [-1, -1, -1]
    assert not op(x.detach()).requires_grad
    (op(x).detach() * x).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [-1, -1, -1]


def test_a_kernel_of_aten_operators_has_the_gradient_of_its_parts(library: Library) -> None:
    op = define(library, "of_aten", lambda x: x * 3)
    ascend_graph.register_kernel(eager=op, shape="x[*s] -> y[*s]")
    x = torch.ones(3, device="npu", requires_grad=True)
    op(x).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [3, 3, 3]
    with pytest.raises(RuntimeError, match=REFUSED.format("authors::of_aten")):  # where its parts are not seen
        torch.compile(op, backend="aot_eager")(x).sum().backward()


def test_lists_are_refused_and_integers_are_not_differentiable(library: Library) -> None:
    op = define(
        library, "parts", lambda x: ([-x.detach(), x.detach()], x.argsort()), "(Tensor x) -> (Tensor[], Tensor)"
    )
    ascend_graph.register_op("AuthorsParts", eager=op, shape="x[n] -> ys[i < 2][n], n[n]: int64")
    x = torch.ones(3, requires_grad=True)
    parts, places = op(x)
    assert not places.requires_grad
    for part in parts:
        with pytest.raises(RuntimeError, match=REFUSED.format("authors::parts")):
            part.sum().backward()


@pytest.mark.parametrize("mode", COMPILED)
def test_writes_to_what_has_a_gradient_are_refused_by_name(library: Library, mode: str) -> None:
    """The gradient of what was written would be that of the values before."""
    op = define(library, "shift", lambda y, x: _shift(y, x)[1], "(Tensor(a!) y, Tensor x) -> Tensor")
    ascend_graph.register_op("AuthorsShift", eager=op, shape="y[*s], x[*s] -> z[*s]")

    def of_result(x: T, w: T) -> T:
        result: T = op(x * 2, w)  # w is a leaf
        return result

    def of_written(x: T, w: T) -> T:
        y = x * 2
        op(y[1:], w[1:])
        return y

    refused = "authors::shift writes y in place and has no gradient"
    for program, forward in ((of_result, [2, 2, 2]), (of_written, [2, 1, 1])):
        compiled = COMPILED[mode](program)
        x, w = (torch.ones(3, device="npu", requires_grad=True) for _ in range(2))
        assert compiled(x, w).tolist() == forward  # forward alone is right
        with pytest.raises(RuntimeError, match=refused):
            compiled(x, w).sum().backward()


@pytest.mark.parametrize("mode", ["eager", "aot_eager", "npugraph_ex"])
def test_writes_to_what_a_gradient_needs_are_refused(library: Library, mode: str) -> None:
    op = define(library, "late", lambda y: (y.data.mul_(2), None)[1], "(Tensor(a!) y) -> ()")
    ascend_graph.register_kernel(eager=op, shape="->")

    def program(x: T) -> T:
        y = x * 1
        z = y.sin()
        with torch.no_grad():
            op(y)
        return z

    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        COMPILED[mode](program)(torch.ones(3, device="npu", requires_grad=True)).sum().backward()


def test_what_inference_made_may_be_written_outside_of_it(library: Library) -> None:
    op = define(library, "in_inference", lambda y: (y.data.mul_(2), None)[1], "(Tensor(a!) y) -> ()")
    ascend_graph.register_kernel(eager=op, shape="->")
    with torch.inference_mode():
        y = torch.ones(3)
    op(y)
    assert y.tolist() == [2, 2, 2]


def test_writes_of_a_kernel_of_aten_operators_have_the_gradient_of_its_parts(library: Library) -> None:
    op = define(library, "fill", lambda y, x: (y.copy_(x * 3), None)[1], "(Tensor(a!) y, Tensor x) -> ()")
    ascend_graph.register_kernel(eager=op, shape="->")
    x = torch.ones(3, device="npu", requires_grad=True)
    y = x * 2
    op(y[1:], x[1:])
    y.sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [2, 3, 3]


def test_parts_of_one_tensor_may_be_written(library: Library) -> None:
    def halve(ys: list[T]) -> None:
        for y in ys:
            y.detach().div_(2)

    op = define(library, "halve", halve, "(Tensor(a!)[] ys) -> ()")
    ascend_graph.register_kernel(eager=op, shape="->")
    y = torch.ones(4, device="npu", requires_grad=True) * 2
    op([y[:2], y[2:]])
    assert y.tolist() == [1, 1, 1, 1]
    with pytest.raises(RuntimeError, match="authors::halve writes ys in place"):
        y.sum().backward()


def test_parameters_are_written_where_no_gradient_is_asked_for(library: Library) -> None:
    op = define(library, "load", lambda p, x: (p.detach().copy_(x), None)[1], "(Tensor(a!) p, Tensor x) -> ()")
    ascend_graph.register_kernel(eager=op, shape="->")
    parameter = torch.nn.Parameter(torch.zeros(3))
    op(parameter, torch.ones(3))
    op(parameter[1:], torch.ones(2) * 2)
    assert parameter.tolist() == [1, 2, 2]
    assert parameter.is_leaf


def test_a_written_cache_gets_no_gradient(library: Library) -> None:
    def put(cache: T, x: T) -> None:
        cache.detach().copy_(x.detach())

    op = define(library, "put", put, "(Tensor(a!) cache, Tensor x) -> ()")
    ascend_graph.register_kernel(eager=op, shape="cache[*s], x[*s] ->")
    cache, x = torch.zeros(3), torch.ones(3, requires_grad=True)
    op(cache, x)
    assert cache.tolist() == [1, 1, 1]
    assert not cache.requires_grad


def test_a_gradient_of_the_author_counts_before_and_after(library: Library) -> None:
    before = define(library, "before")
    torch.library.register_autograd("authors::before", lambda ctx, grad: grad * 5, lib=library)
    ascend_graph.register_kernel(eager=before, shape="x[*s] -> y[*s]")
    after = define(library, "after")
    registered = ascend_graph.register_kernel(eager=after, shape="x[*s] -> y[*s]")
    torch.library.register_autograd("authors::after", lambda ctx, grad: grad * 5, lib=library)
    for _ in range(2):
        for op in (before, after):
            x = torch.ones(3, requires_grad=True)
            op(x).sum().backward()
            assert x.grad is not None
            assert x.grad.tolist() == [5, 5, 5]
        registered.unregister()


def test_a_given_gradient_takes_the_place_of_the_refusal(library: Library) -> None:
    op = define(library, "later")
    first = ascend_graph.register_kernel(eager=op, shape="x[*s] -> y[*s]")
    given = {"shape": "x[*s] -> y[*s]", "backward": lambda ctx, grad: -grad}
    second = ascend_graph.register_kernel(eager=op, override=True, **given)
    x = torch.ones(3, requires_grad=True)
    op(x).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [-1, -1, -1]
    second.unregister()
    first.unregister()
    with pytest.warns(UserWarning, match="an autograd kernel was not registered"):  # PyTorch's own word again
        op(x).sum().backward()


def test_results_do_not_keep_what_they_were_computed_from_longer_than_needed(library: Library) -> None:
    op = define(library, "short")
    ascend_graph.register_kernel(eager=op, shape="x[*s] -> y[*s]")
    x = torch.ones(3, requires_grad=True)
    between = x * 2
    gone = weakref.ref(between)
    made = op(between)
    del between
    gc.collect()
    assert gone() is None
    assert made.requires_grad
