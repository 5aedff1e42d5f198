"""What every operator owes autograd and its prototype, on every route: made without C++, and generated C++."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from eager_package import PROTOTYPES, WRITING
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ascend_graph
from ascend_graph.dispatch.definition import RemovedOperatorError

# Compiling warns of much that is torch's and torchair's own affair.
pytestmark = pytest.mark.filterwarnings("default")

Operators = Callable[[str], Any]
ROUTES = ("prototype", "generated")
COMPILERS = ("aot_eager", "GE", "aclgraph")


@pytest.fixture(scope="module")
def made_without_cpp(package: Any) -> Iterator[dict[str, Any]]:
    ascend_graph.load_prototypes(PROTOTYPES)
    registered = [ascend_graph.register_op(name, shape=shape) for name, shape in WRITING.items()]
    yield {op.op_type: op.overload for op in registered}
    for op in registered:
        op.unregister()


@pytest.fixture(params=ROUTES)
def operators(request: pytest.FixtureRequest) -> Operators:
    """``operators(op_type)``: the overload, made on one of the routes."""
    if request.param == "prototype":
        made = request.getfixturevalue("made_without_cpp")
        return lambda op_type: made[op_type]
    request.getfixturevalue("library")
    names = {"AddTo": "add_to", "Put": "put", "Twice": "twice"}
    return lambda op_type: getattr(torch.ops.generated_ops, names[op_type]).default


def ones(*sizes: int) -> torch.Tensor:
    return torch.ones(*sizes).npu()


def compiled(function: Callable[..., Any], compiler: str) -> Callable[..., Any]:
    torch._dynamo.reset()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import torchair
    backend = {"GE": torchair.get_npu_backend, "aclgraph": lambda: "npugraph_ex", "aot_eager": lambda: "aot_eager"}
    return torch.compile(function, backend=backend[compiler](), dynamic=False, fullgraph=True)


# ------------------------------------------------------------------------------------------------------ in-place writes


def test_a_saved_value_that_is_written_over_is_refused(operators: Operators) -> None:
    x, w = ones(2).requires_grad_(), ones(2)
    y = x * w
    before = w._version
    operators("AddTo")(w, ones(2))
    assert w._version == before + 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_leaves_and_their_views_are_refused_unless_nothing_is_recorded(operators: Operators) -> None:
    add_to = operators("AddTo")
    leaf = ones(2, 2).requires_grad_()
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
        add_to(leaf, ones(2, 2))
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad is being used in an in-place"):
        add_to(leaf[0], ones(2))
    with pytest.raises(RuntimeError, match="output of a function that returns multiple views"):
        add_to((leaf * 1).unbind()[0], ones(2))
    assert leaf.tolist() == [[1, 1], [1, 1]]
    with torch.no_grad():
        add_to(leaf, ones(2, 2))
    assert leaf.requires_grad
    assert leaf._version == 1
    assert leaf.tolist() == [[2, 2], [2, 2]]


def test_what_is_read_is_not_forgotten(operators: Operators) -> None:
    add_to = operators("AddTo")
    x, written, base = ones(2).requires_grad_(), ones(2), ones(2, 2)
    view = base[0]
    add_to(written, x)
    add_to(view, x)
    for tensor in (written, view, base):
        assert tensor.requires_grad
        with pytest.raises(RuntimeError, match=r"::add_to writes w in place and has no gradient.*backward="):
            tensor.sum().backward()
    integers = torch.zeros(3, dtype=torch.int32).npu()
    assert not integers.requires_grad


STEPS = st.sampled_from(["write", "write_view", "write_grad", "read", "no_grad", "detached"])


def _history(write: Callable[[torch.Tensor, torch.Tensor], Any], steps: list[str], leaf: bool) -> list[Any]:
    """What a program of writes looks like to autograd: versions, flags, and the error that stops it."""
    w = ones(2, 2).requires_grad_() if leaf else ones(2, 2)
    seen: list[Any] = []
    try:
        for step in steps:
            if step == "write":
                write(w, ones(2, 2))
            elif step == "write_view":
                write(w[0], ones(2))
            elif step == "write_grad":
                write(w, ones(2, 2).requires_grad_())
            elif step == "read":
                w = w * 1
            elif step == "no_grad":
                with torch.no_grad():
                    write(w, ones(2, 2))
            else:
                write(w.detach(), ones(2, 2))
            seen.append((w._version, w.requires_grad, w.is_leaf, w.grad_fn is None))
    except RuntimeError as error:
        seen.append(str(error))
    return [*seen, w.tolist()]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(STEPS, max_size=5), leaf=st.booleans())
def test_programs_of_writes_are_those_of_add_(operators: Operators, steps: list[str], leaf: bool) -> None:
    """An operator that adds in place looks like ``add_`` to autograd, and to whoever reads versions and flags."""
    assert _history(operators("AddTo"), steps, leaf) == _history(lambda w, x: w.add_(x), steps, leaf)


@pytest.mark.parametrize("compiler", COMPILERS)
def test_writes_in_graphs(operators: Operators, compiler: str) -> None:
    add_to = operators("AddTo")

    def step(w: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        add_to(w, x)
        return w * 2

    function = compiled(step, compiler)
    w = ones(2)
    assert function(w, ones(2)).tolist() == [4, 4]
    assert w.tolist() == [2, 2]
    with pytest.raises(Exception, match="a leaf Variable that requires grad is being used in an in-place operation"):
        function(ones(2).requires_grad_(), ones(2))
    result = function(ones(2), ones(2).requires_grad_())  # forward alone is not an error
    assert result.tolist() == [4, 4]
    with pytest.raises(Exception, match=r"::add_to writes w in place and has no gradient.*backward="):
        result.sum().backward()


# --------------------------------------------------------------------------------------------------- without a gradient


@pytest.mark.parametrize("device", ["npu", "meta"])
def test_differentiating_an_operator_without_a_gradient(operators: Operators, device: str) -> None:
    twice = operators("Twice")
    x = torch.ones(2, device=device, requires_grad=True)
    y = twice(x)
    assert y.requires_grad
    with pytest.raises(
        RuntimeError, match=r"::twice has no gradient, but one is asked for: give it one with backward="
    ):
        y.sum().backward()
    assert x.grad is None
    with torch.no_grad():
        assert not twice(x).requires_grad
    assert not twice(x.detach()).requires_grad
    with torch.inference_mode():
        assert twice(x).is_inference()


@pytest.mark.parametrize("compiler", COMPILERS)
def test_differentiating_a_graph_with_an_operator_without_a_gradient(operators: Operators, compiler: str) -> None:
    twice = operators("Twice")
    function = compiled(lambda x: twice(x) * 2, compiler)
    result = function(ones(2).requires_grad_())
    assert result.tolist() == [4, 4], "forward alone is not an error"
    with pytest.raises(Exception, match=r"::twice has no gradient, but one is asked for: give it one with backward="):
        result.sum().backward()


# --------------------------------------------------------------------------------------------------------------- checks

FITS: dict[str, Any] = {"cache": (8, 20), "update": (3, 20), "slots": (3,)}
BAD_SHAPES = [{"update": (3, 10)}, {"update": (20,)}, {"slots": (4,)}, {"cache": (8, 20, 1)}]
BAD_DTYPES = [
    ("slots", torch.float32, "DT_INT32, DT_INT64"),
    ("cache", torch.float16, "DT_FLOAT"),
    ("update", torch.int64, "DT_FLOAT"),
]


def _arguments(device: str, shapes: dict[str, Any], dtypes: dict[str, torch.dtype]) -> list[torch.Tensor]:
    usual = {"slots": torch.int32}
    return [
        torch.zeros(shape, device=device, dtype=dtypes.get(name, usual.get(name, torch.float32)))
        for name, shape in (FITS | shapes).items()
    ]


@pytest.mark.parametrize("device", ["npu", "meta"])
@pytest.mark.parametrize("shapes", BAD_SHAPES, ids=str)
def test_the_relation_holds_for_operators_that_return_nothing(
    operators: Operators, device: str, shapes: dict[str, Any]
) -> None:
    put = operators("Put")
    assert put(*_arguments(device, {}, {"slots": torch.int64})) is None
    with pytest.raises(RuntimeError, match=r"update\[t, d\]|slots\[t\]|cache\[n, d\]"):
        put(*_arguments(device, shapes, {}))


@pytest.mark.parametrize("device", ["npu", "meta"])
@pytest.mark.parametrize(("name", "dtype", "listed"), BAD_DTYPES)
def test_dtypes_that_the_prototype_does_not_list(
    operators: Operators, device: str, name: str, dtype: torch.dtype, listed: str
) -> None:
    with pytest.raises(RuntimeError, match=rf"::put: argument {name} is {dtype}; allowed are {listed}"):
        operators("Put")(*_arguments(device, {}, {name: dtype}))


@pytest.mark.parametrize("compiler", COMPILERS)
def test_checks_in_graphs(operators: Operators, compiler: str) -> None:
    put = operators("Put")

    def step(cache: torch.Tensor, update: torch.Tensor, slots: torch.Tensor) -> torch.Tensor:
        put(cache, update, slots)
        return cache * 2

    function = compiled(step, compiler)
    assert function(*_arguments("npu", {}, {})).shape == (8, 20)
    with pytest.raises(Exception, match=r"update\[t, d\]"):
        function(*_arguments("npu", {"update": (3, 10)}, {}))
    with pytest.raises(Exception, match=r"::put: argument slots is torch.float32; allowed are DT_INT32, DT_INT64"):
        function(*_arguments("npu", {}, {"slots": torch.float32}))


def test_what_was_registered_goes_with_the_operator(package: Any) -> None:
    ascend_graph.load_prototypes(PROTOTYPES)
    for _ in range(2):
        operator = ascend_graph.register_op("Increment", shape="x -> x")
        w = ones(2)
        operator(w)
        assert (w.tolist(), w._version) == ([2, 2], 1)
        overload = operator.overload
        operator.unregister()
        with pytest.raises(RemovedOperatorError):
            overload(w)
