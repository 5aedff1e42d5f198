"""Tangents of registered operators: ``forward=``, what is derived without it, and what is refused."""

from __future__ import annotations

import functools
import gc
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch.autograd import forward_ad
from torch.testing._internal.logging_tensor import LoggingTensorMode

import ascend_graph
from ascend_graph.autograd import GradientError
from ascend_graph.registration.request import RegistrationError

HEADER = """
REG_OP(FwdScale).INPUT(x, ALL()).OPTIONAL_INPUT(w, ALL()).OUTPUT(y, ALL()).ATTR(times, Int, 2)
    .OP_END_FACTORY_REG(FwdScale)
REG_OP(FwdCat).DYNAMIC_INPUT(xs, ALL()).OUTPUT(y, ALL()).ATTR(times, Int, 1).OP_END_FACTORY_REG(FwdCat)
REG_OP(FwdSum).DYNAMIC_INPUT(xs, ALL()).OUTPUT(y, ALL()).OUTPUT(index, ALL()).OP_END_FACTORY_REG(FwdSum)
"""
SCALE = "scale(Tensor x, Tensor? w=None, int times=2) -> Tensor"
Define = Callable[..., Any]


def scale(x: Any, w: Any = None, times: int = 2) -> Any:
    return x * times if w is None else x * w * times


@pytest.fixture(scope="module", autouse=True)
def _prototypes() -> None:
    ascend_graph.load_prototypes(HEADER)


@pytest.fixture
def define() -> Iterator[Define]:
    """``define(**options)``: the operator on the CPU, registered; it goes with the test."""
    library = torch.library.Library("fwd", "DEF")

    def one(op_type: str = "FwdScale", schema: str = SCALE, kernel: Any = scale, **options: Any) -> Any:
        name = schema.partition("(")[0]
        if not hasattr(torch.ops.fwd, name):
            library.define(schema)
            library.impl(name, kernel, "CPU")
        options.setdefault("meta", lambda x, *_, **__: torch.empty_like(x))
        return ascend_graph.register_op(op_type, eager=getattr(torch.ops.fwd, name), **options)

    yield one
    for registered in ascend_graph.registered_ops():
        if registered.overload.namespace == "fwd":
            registered.unregister()
    library._destroy()


X, W = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 5.0])
V, U = torch.tensor([1.0, 10.0]), torch.tensor([7.0, 0.5])


def tangent(operator: Any, *args: Any, **tangents: torch.Tensor) -> Any:
    """The tangent of a call with ``x`` and ``w`` that have tangents."""
    with forward_ad.dual_level():
        given = [
            forward_ad.make_dual(value, tangents[name]) if name in tangents else value
            for name, value in zip("xw", args, strict=False)
        ]
        return forward_ad.unpack_dual(operator(*given, *args[2:])).tangent


def of_every_argument(ctx: Any, x: Any, w: Any, times: Any) -> Any:
    assert times is None
    inputs = ctx.saved_tensors
    if inputs[1] is None:
        assert w is None
        return x * ctx.arguments["times"]
    return (x * inputs[1] + w * inputs[0]) * ctx.arguments["times"]


def of_tensors(ctx: Any, dx: Any, dw: Any, *, x: Any, w: Any, times: int) -> Any:
    return dx * times if w is None else (dx * w + dw * x) * times


def in_two(ctx: Any, dx: Any, dw: Any) -> Any:
    x, w = ctx.saved_tensors
    parts = [None if dx is None else dx if w is None else dx * w, None if dw is None else dw * x]
    return ctx.times * sum(part for part in parts if part is not None)


def setup(ctx: Any, inputs: Any, output: Any) -> None:
    x, w, ctx.times = inputs
    ctx.save_for_backward(output)
    ctx.save_for_forward(x, w)
    ctx.set_materialize_grads(False)


@pytest.mark.parametrize("forward", [of_every_argument, of_tensors, (in_two, setup)])
def test_a_function_gives_the_tangent(define: Define, forward: Any) -> None:
    operator = define(forward=forward)
    assert "test_forward.py" in operator.evidence["tangent"]
    assert tangent(operator, X, W, 3, x=V, w=U).tolist() == [(1 * 3 + 7 * 1) * 3, (10 * 5 + 0.5 * 2) * 3]
    assert tangent(operator, X, W, x=V).tolist() == [6, 100]
    assert tangent(operator, X, x=V).tolist() == [2, 20]
    assert torch.func.jacfwd(lambda x: operator(x, W))(X).tolist() == [[6, 0], [0, 10]]
    assert torch.autograd.gradcheck(
        lambda x, w: operator(x, w) * 1,
        (X.double().requires_grad_(), W.double().requires_grad_()),
        check_forward_ad=True,
        check_backward_ad=False,
    )


def test_a_tangent_alone_is_no_gradient(define: Define) -> None:
    operator = define(forward=of_tensors)
    x = X.clone().requires_grad_()
    y = operator(x)
    with pytest.raises(
        RuntimeError, match="fwd::scale has no gradient, but one is asked for: give it one with backward="
    ):
        y.sum().backward()
    torch._dynamo.reset()
    torch.compile(lambda x: operator.overload(x), backend="aot_eager", fullgraph=True)(x)


def test_the_function_is_preferred_to_what_is_derived(define: Define) -> None:
    def backward(ctx: Any, grad: Any, *, w: Any, times: int) -> Any:
        return grad * times if w is None else grad * w * times, None

    operator = define(backward=backward)
    assert operator.evidence["tangent"] == "derived from the gradient, which is differentiated"
    assert tangent(operator, X, W, x=V).tolist() == [6, 100]
    operator = define(backward=backward, forward=lambda ctx, dx, dw: dx * 100, override=True)
    assert tangent(operator, X, W, x=V).tolist() == [100, 1000]
    assert torch.func.grad(lambda x: operator(x, W).sum())(X).tolist() == [6, 10]


def test_a_registration_with_a_tangent_is_a_transaction(define: Define) -> None:
    operator = define(forward=of_tensors)
    assert define(meta=operator._plan.request.meta, forward=of_tensors) is operator
    with pytest.raises(
        RegistrationError, match=r"forward: registered <function of_tensors .*asked for <function of_every"
    ):
        define(meta=operator._plan.request.meta, forward=of_every_argument)
    operator.unregister()
    assert not torch._C._dispatch_has_kernel_for_dispatch_key("fwd::scale", "Autograd")


def test_lists_and_outputs_of_integers(define: Define) -> None:
    def kernel(xs: Any) -> Any:
        total = torch.stack(xs).sum(0)
        return total, total.argmax()

    def forward(ctx: Any, xs: Any) -> Any:
        return sum(xs), None

    operator = define("FwdSum", "sum_of(Tensor[] xs) -> (Tensor, Tensor)", kernel, meta=kernel, forward=forward)
    with forward_ad.dual_level():
        y, index = operator([X, forward_ad.make_dual(W, V)])
        assert forward_ad.unpack_dual(y).tangent.tolist() == V.tolist()
        assert forward_ad.unpack_dual(index).tangent is None
    derived = define(
        "FwdSum",
        "sum_of(Tensor[] xs) -> (Tensor, Tensor)",
        kernel,
        meta=kernel,
        backward=lambda ctx, grad, _, *, xs: ([grad * 1 for _ in xs],),
        override=True,
    )
    assert torch.func.jvp(lambda a, b: derived([a, b])[0], (X, W), (V, U))[1].tolist() == (V + U).tolist()
    assert torch.func.grad(lambda a: derived([a, a])[0].sum())(X).tolist() == [2, 2]


def keep_sizes(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.sizes = [len(x) for x in inputs[0]]


@pytest.mark.parametrize("several", [list, tuple])
@pytest.mark.parametrize(
    ("schema", "backward"),
    [
        ("joined(Tensor[] xs) -> Tensor", lambda ctx, grad, *, xs: grad.split([len(x) for x in xs])),
        ("joined(Tensor[] xs) -> Tensor", (lambda ctx, grad: grad.split(ctx.sizes), keep_sizes)),
        ("joined(Tensor[] xs, int times=1) -> Tensor", lambda ctx, grad, *, xs: grad.split([len(x) for x in xs])),
    ],
)
def test_tensors_are_the_gradients_of_the_elements_of_the_only_list(
    define: Define, schema: str, backward: Any, several: Any
) -> None:
    function, *setup = backward if isinstance(backward, tuple) else (backward,)

    @functools.wraps(function)
    def returned(ctx: Any, grad: Any, **saved: Any) -> Any:
        return several(function(ctx, grad, **saved))

    operator = define(
        "FwdCat",
        schema,
        lambda xs, times=1: torch.cat(xs),
        meta=torch.cat,
        backward=(returned, *setup) if setup else returned,
    )
    for count in (1, 2):
        leaves = [X.clone().requires_grad_() for _ in range(count)]
        (operator(leaves) * torch.arange(2.0 * count)).sum().backward()
        assert [x.grad.tolist() for x in leaves if x.grad is not None] == [[2.0 * n, 2.0 * n + 1] for n in range(count)]


@pytest.mark.parametrize("compiled", [False, True])
def test_an_operator_of_custom_op_takes_a_gradient(compiled: bool) -> None:
    @torch.library.custom_op("by_custom_op::squared", mutates_args=())
    def squared(x: torch.Tensor) -> torch.Tensor:
        return x * x

    overload = torch.ops.by_custom_op.squared.default
    registered = ascend_graph.register_kernel(
        eager=overload, shape="x[*s] -> y[*s]", backward=lambda ctx, grad, *, x: 2 * x * grad
    )
    torch._dynamo.reset()
    function = torch.compile(overload, backend="aot_eager", fullgraph=True) if compiled else overload
    x = X.clone().requires_grad_()
    function(x).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [2, 4]
    assert torch.func.grad(lambda x: overload(x).sum())(X).tolist() == [2, 4]
    registered.unregister()
    with LoggingTensorMode():  # a mode finds kernels in a table of its own
        y = overload(X.clone().requires_grad_())
    with pytest.raises(RuntimeError, match="no autograd formula was registered"):
        y.sum().backward()


def test_a_second_gradient_of_a_custom_op_is_refused() -> None:
    @torch.library.custom_op("by_custom_op::doubled", mutates_args=())
    def doubled(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    overload = torch.ops.by_custom_op.doubled.default
    registered = ascend_graph.register_kernel(
        eager=overload, shape="x[*s] -> y[*s]", backward=lambda ctx, grad: 2 * grad
    )
    doubled.register_autograd(lambda ctx, grad: 7 * grad)
    x = X.clone().requires_grad_()
    with pytest.raises(ascend_graph.AscendGraphError, match="doubled has two gradients"):
        overload(x)
    registered.unregister()
    overload(x).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [7, 7]


def cubed(define: Define) -> Any:
    """``x ** 3``, by a function that PyTorch differentiates as often as it is asked to."""
    return define(kernel=lambda x, w=None, times=2: x**3, backward=lambda ctx, grad, *, x: (3 * x**2 * grad, None))


@pytest.mark.filterwarnings("ignore:There is a performance drop")  # of vmap over an operator without batch=
@pytest.mark.parametrize("compiled", [False, True])
def test_transforms_compose(define: Define, compiled: bool) -> None:
    operator = cubed(define)

    def total(x: torch.Tensor) -> Any:
        return operator.overload(x).sum()

    transforms = [
        (lambda x: torch.func.hessian(total)(x), [[6, 0], [0, 12]]),
        (lambda x: torch.func.jacrev(torch.func.jacfwd(total))(x), [[6, 0], [0, 12]]),
        (lambda x: torch.func.jacfwd(torch.func.jacfwd(total))(x), [[6, 0], [0, 12]]),
        (lambda x: torch.func.jacrev(torch.func.jacrev(total))(x), [[6, 0], [0, 12]]),
        (lambda x: torch.vmap(torch.func.grad(total))(x[:, None]), [[3], [12]]),
        (lambda x: torch.func.grad(lambda x: torch.func.jvp(total, (x,), (V,))[1])(x), [6, 120]),
    ]
    for transform, expected in transforms:
        torch._dynamo.reset()
        function = torch.compile(transform, backend="aot_eager", fullgraph=True) if compiled else transform
        assert function(X).tolist() == expected


def test_a_tangent_is_differentiated_backwards(define: Define) -> None:
    operator, x, v = cubed(define), X.clone().requires_grad_(), V.clone().requires_grad_()
    found = tangent(operator, x, x=v)
    assert found.tolist() == [3, 120]
    with forward_ad.dual_level():
        again = forward_ad.unpack_dual(operator(forward_ad.make_dual(x, v))).tangent
        by_x, by_v = torch.autograd.grad(again.sum(), (x, v))
    assert by_x.tolist() == [6, 120]
    assert by_v.tolist() == [3, 12]
    with torch.no_grad():
        assert not tangent(operator, x, x=v).requires_grad


@pytest.mark.parametrize("forward", [None, lambda ctx, dx, dw, *, y: dx * y])
def test_a_gradient_has_a_tangent(define: Define, forward: Any) -> None:
    operator = define(kernel=lambda x, *_: x.exp(), backward=lambda ctx, grad, *, y: (grad * y, None), forward=forward)
    x = X.clone().requires_grad_()
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, V)
        (grad,) = torch.autograd.grad(operator(dual).sum(), dual, create_graph=True)
        torch.testing.assert_close(forward_ad.unpack_dual(grad).tangent, X.exp() * V)
    assert torch.autograd.gradgradcheck(operator, (X.double().requires_grad_(),), check_fwd_over_rev=True)


# ---------------------------------------------------------------------------------------------------------------
# refusals


@pytest.mark.parametrize(
    ("forward", "match"),
    [
        (
            lambda ctx: None,
            r"the tangent of fwd::scale, .* has the signature \(ctx\).*it is called with \(ctx, x_tangent, w_tangent\)",
        ),
        (
            lambda ctx, x, w, *, gamma: None,
            "the tangent of fwd::scale, .* asks for gamma; there are the arguments x, w, times",
        ),
        ((lambda ctx, x, w: None, lambda ctx, output: None), "setup_context of fwd::scale"),
        ("FwdScale", r"forward='FwdScale' of fwd::scale: expected a function \(ctx, \*tangents\), or a pair"),
        (torch.ops.aten.mul.Tensor, r"of fwd::scale: expected a function \(ctx, \*tangents\), or a pair"),
        (3, r"forward=3 of fwd::scale: expected a function"),
    ],
)
def test_what_cannot_be_called_is_refused_at_registration(define: Define, forward: Any, match: str) -> None:
    with pytest.raises(GradientError, match=match):
        define(forward=forward)
    assert not torch._C._dispatch_has_kernel_for_dispatch_key("fwd::scale", "Autograd")


@pytest.mark.parametrize(
    ("returned", "match"),
    [
        (lambda v: (v, v), r"returned 2 value\(s\); expected one for each of the 1 outputs"),
        (lambda v: v[:1], r"returned torch.float32\[1\] on cpu as the tangent of an output torch.float32\[2\]"),
        (lambda v: v.double(), r"returned torch.float64\[2\]"),
        (lambda v: 3, r"returned 3; expected a tensor, or None"),
    ],
)
def test_a_tangent_that_does_not_fit_its_output_is_refused(define: Define, returned: Any, match: str) -> None:
    operator = define(forward=lambda ctx, dx, dw: returned(dx))
    with pytest.raises(GradientError, match=r"the tangent \(forward=\) of fwd::scale " + match):
        tangent(operator, X, x=V)


def test_none_is_a_tangent_of_zero(define: Define) -> None:
    assert tangent(define(forward=lambda ctx, dx, dw: None), X, x=V) is None


@pytest.mark.parametrize(
    "backward",
    [
        lambda ctx, grad, *, times: (grad.detach() * times, None),
        torch.autograd.function.once_differentiable(lambda ctx, grad: (grad * 2, None, None)),
    ],
)
def test_a_gradient_that_cannot_be_differentiated_gives_no_tangent(define: Define, backward: Any) -> None:
    operator = define(backward=backward)
    with pytest.raises(
        NotImplementedError, match=r"fwd::scale: forward-mode differentiation asks .*Give the operator forward="
    ):
        tangent(operator, X, x=V)


def test_operators_that_write_take_no_tangent(define: Define) -> None:
    with pytest.raises(GradientError, match="writes x in place: forward= is for operators that write nothing"):
        define(
            schema="scale_(Tensor(a!) x, Tensor? w=None, int times=2) -> ()", kernel=lambda *_: None, forward=of_tensors
        )


def test_functions_of_aclnn_take_a_tangent() -> None:
    ascend_graph.load_aclnn("""
    aclnnStatus aclnnFwdLerpGetWorkspaceSize(const aclTensor *self, const aclTensor *end, const aclScalar *weight,
        aclTensor *out,
        uint64_t *workspaceSize, aclOpExecutor **executor);
    aclnnStatus aclnnFwdLerp(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream);
    """)
    operator = ascend_graph.register_aclnn(
        "aclnnFwdLerp",
        shape="self[*s], end[*s] -> out[*s]",
        forward=lambda ctx, dself, dend, *, weight: dself + (dend - dself) * weight,
    )
    try:
        values = [torch.empty(2, device="meta") for _ in range(4)]
        _, found = torch.func.jvp(lambda a, b: operator(a, b, 0.5), tuple(values[:2]), tuple(values[2:]))
        assert found.shape == (2,)
    finally:
        operator.unregister()


# ----------------------------------------------------------------------------------------------------------- lifetimes


@pytest.fixture
def _no_garbage_collection() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def product_gradient(ctx: Any, grad: torch.Tensor) -> Any:
    x, w = ctx.saved_tensors
    return grad * w * 2, grad * x * 2, None


def save_product(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(*inputs[:2])


def in_inference(operator: Any, *tensors: torch.Tensor) -> None:
    operator(*tensors)


def with_gradients(operator: Any, *tensors: torch.Tensor) -> None:
    leaves = [t.requires_grad_() for t in tensors]
    torch.autograd.grad(operator(*leaves).sum(), leaves)


def with_tangents(operator: Any, *tensors: torch.Tensor) -> None:
    torch.func.jvp(operator, tensors, tuple(torch.ones_like(t) for t in tensors))


def with_transforms(operator: Any, *tensors: torch.Tensor) -> None:
    torch.func.grad(lambda x, w: operator(x, w).sum(), argnums=(0, 1))(*tensors)
    torch.func.vjp(operator, *tensors)
    torch.func.jacrev(operator)(*tensors)


@pytest.mark.usefixtures("_no_garbage_collection")
@pytest.mark.parametrize("call", [in_inference, with_gradients, with_tangents, with_transforms])
def test_a_call_keeps_no_tensor_until_garbage_is_collected(define: Define, call: Callable[..., None]) -> None:
    """Memory of captured graphs is handed out again by reference counts, and a process dies where one was kept."""
    operator = define(backward=(product_gradient, save_product), forward=of_tensors)
    call(operator, torch.ones(2, 3), torch.ones(2, 3))  # of the first transforms of a process PyTorch itself keeps some
    given = [torch.ones(2, 3), torch.ones(2, 3)]
    kept = [weakref.ref(t) for t in given]
    call(operator, *given)
    del given
    assert [k() for k in kept] == [None, None]
