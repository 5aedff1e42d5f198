"""GE graphs with registered operators that return views of a value: in training, and with sizes that change."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import torchair
from torch.utils._pytree import tree_leaves
from writing_operators import captured, ge, numbers

import ascend_graph
from ascend_graph.host.kernels import host_kernel

T = torch.Tensor
pytestmark = [pytest.mark.filterwarnings("default"), pytest.mark.usefixtures("compiled_anew")]


@host_kernel("ReturnedDouble")
def _double(x: T) -> T:
    return x * 2


@pytest.fixture(scope="module")
def double() -> Iterator[Any]:
    ascend_graph.load_prototypes(
        "REG_OP(ReturnedDouble).INPUT(x, TensorType({DT_FLOAT})).OUTPUT(y, TensorType({DT_FLOAT}))"
        ".OP_END_FACTORY_REG(ReturnedDouble)"
    )
    library = torch.library.Library("returned_views", "DEF")
    library.define("double(Tensor x) -> Tensor")
    for key in ("CPU", "PrivateUse1"):
        library.impl("double", _double, key)
    made = torch.ops.returned_views.double.default
    registered = ascend_graph.register_op("ReturnedDouble", eager=made, backward=lambda ctx, grad: grad * 2)
    yield made
    registered.unregister()
    library._destroy()


#: What is returned of a value of several rows and columns.
RETURNS: dict[str, Callable[[T], tuple[T, ...]]] = {
    "halves": lambda y: (y[: y.shape[0] // 2], y[y.shape[0] // 2 :]),
    "columns": lambda y: (y[:, y.shape[1] // 2 :], y[:, : y.shape[1] // 2].t()),
    "parts of parts": lambda y: (y.tensor_split(3)[1].narrow(0, 0, 1), y * 2, y.tensor_split(3)[0]),
    "the value, too": lambda y: (y[y.shape[0] // 2 :], y, y.expand(2, *y.shape)),
    "flat": lambda y: (y.view(-1)[y.shape[0] :], y.view(-1, 1)[-y.shape[1] :]),
    "of two values": lambda y: (y[y.shape[0] // 2 :], (y + 1)[y.shape[0] // 2 :], y[:1]),
}


@pytest.mark.parametrize("trained", [False, True])
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("returned", RETURNS)
def test_views_of_a_value_are_returned(double: Any, returned: str, dynamic: bool, trained: bool) -> None:
    def run(x: T) -> tuple[T, ...]:
        return *RETURNS[returned](double(x.sin())), x[x.shape[0] // 2 :]

    program = ge(run, dynamic)
    for n, (rows, columns) in enumerate([(5, 3), (8, 4), (6, 2)]):
        x = numbers(rows, columns) if dynamic else numbers(5, 4) + n
        results, gradients = [], []
        for function, device in ((run, "cpu"), (program, "npu")):
            given = x.clone().to(device).requires_grad_(trained)
            values = function(given)
            results.append([value.detach().cpu() for value in values])
            if trained:
                sum((value * (k + 1)).sum() for k, value in enumerate(values)).backward()
                assert given.grad is not None
                gradients.append(given.grad.cpu())
        torch.testing.assert_close(results[1], results[0])
        if trained:
            torch.testing.assert_close(gradients[1], gradients[0])


@pytest.mark.parametrize("trained", [False, True])
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize(
    "views",
    [lambda x: x.chunk(2)[0], lambda x: (x.t(), x.unbind(0)[1]), lambda x: (x[1:], x.view(-1), x[:2].t())],
    ids=["a part", "a row", "several"],
)
def test_views_of_layers_are_returned(double: Any, views: Any, dynamic: bool, trained: bool) -> None:
    """TorchAir makes a view of an input by the offset of the first call's tensor."""

    def run(x: T) -> list[T]:
        return tree_leaves((double(x.t()[1:]), views(x)))

    program = ge(run, dynamic)
    layers = numbers(6, 4, 3).npu()
    for n, layer in enumerate((2, 0, 5)):
        x = layers[layer][: 4 - n if dynamic else 4].detach().requires_grad_(trained)
        values, expected = program(x), run(x)
        for value, right in zip(values, expected, strict=True):
            torch.testing.assert_close(value, right)
        for value in values[1:]:
            assert value.untyped_storage().data_ptr() == layers.untyped_storage().data_ptr()
        if trained:
            found, wanted = (torch.autograd.grad([v.sum() for v in made], x) for made in (values, expected))
            torch.testing.assert_close(found, wanted)


def test_a_compiled_program_that_is_kept_returns_views(double: Any, tmp_path: Path) -> None:
    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.kept = torchair.inference.cache_compile(self.program, dynamic=True, cache_dir=str(tmp_path))

        def program(self, x: T) -> tuple[T, T]:
            y = double(x)
            return y, y[y.shape[0] // 2 :]

    for _ in range(2):  # the second one reads what the first one wrote
        torch._dynamo.reset()
        model = Model()
        for rows in (4, 7):
            whole, part = model.kept(numbers(rows, 3).npu())
            torch.testing.assert_close(whole.cpu(), numbers(rows, 3) * 2)
            torch.testing.assert_close(part.cpu(), numbers(rows, 3)[rows // 2 :] * 2)


def _agrees(run: Callable[[T], T], program: Callable[[T], T], trained: bool, rows: int, columns: int) -> None:
    """Compare a program's result, and its gradient, with those of the function on the CPU."""
    results = []
    for function, device in ((run, "cpu"), (program, "npu")):
        given = numbers(rows, columns).to(device).requires_grad_(trained)
        found = function(given)
        results.append(found.detach().cpu())
        if trained:
            (found * numbers(*found.shape).to(device)).sum().backward()
            assert given.grad is not None
            results.append(given.grad.cpu())
    half = len(results) // 2
    torch.testing.assert_close(results[half:], results[:half])


#: Values that are computed in the order of their columns, and seen row by row.
ORDERS: dict[str, Callable[[Any, T], T]] = {
    "computed before": lambda double, x: double((x.t() * 2).t().view(-1)),
    "computed after": lambda double, x: (double(x).t() * 2).t().view(-1),
    "written": lambda double, x: double(x).t().mul_(2).t().flatten(),
    "in a gradient": lambda double, x: (double(x.view(-1)).view(x.shape).t() * 2).t() * 1,
    "of parts": lambda double, x: (
        double((x.t() * 2).t().view(2, -1, x.shape[1]).permute(1, 0, 2)).permute(1, 0, 2).view(-1)
    ),
}


@pytest.mark.parametrize("trained", [False, True])
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("order", ORDERS)
def test_views_see_a_value_in_pytorchs_order(double: Any, order: str, dynamic: bool, trained: bool) -> None:
    """TorchAir's pass for views takes a value's strides for those of a contiguous one."""

    def run(x: T) -> T:
        return ORDERS[order](double, x)

    program = ge(run, dynamic)
    for rows, columns in [(4, 6), (6, 2) if dynamic else (4, 6)]:
        _agrees(run, program, trained, rows, columns)


#: Views by their place in memory, of values of four rows and six columns.
PLACES: dict[str, Callable[[Any, T], T]] = {
    "of columns": lambda double, x: double(double(x)[:, 2:].as_strided((2, 2), (6, 1), 3)),
    "at its own offset": lambda double, x: double(double(x)[1:, 2:].as_strided((2, 2), (6, 1))),
    "of a part": lambda double, x: double(double(x).chunk(2, 1)[1].as_strided((4,), (6,), 4)),
    "of a computed order": lambda double, x: double((double(x).t() * 2).as_strided((3,), (2,), 5)),
    "in order again": lambda double, x: double((double(x).t() * 2).t().as_strided((2, 3), (3, 2), 1)),
    "beyond what is viewed": lambda double, x: double(double(x)[:2].as_strided((3,), (6,), 5)),
    "of a view of its kind": lambda double, x: double(
        double(x).as_strided((3, 4), (6, 1), 2).as_strided((2,), (7,), 1)
    ),
    "with overlap": lambda double, x: double(double(x)[1].as_strided((3, 3), (1, 1), 6)),
    "of an input": lambda double, x: double(x.as_strided((3,), (6,), 5)),
}


@pytest.mark.parametrize(
    ("dynamic", "trained"),
    [(False, False), (True, False), (False, True)],  # TorchAir cannot convert the dynamic gradient of as_strided
    ids=["static", "dynamic", "trained"],
)
@pytest.mark.parametrize("place", PLACES)
def test_views_by_their_place_in_memory(double: Any, place: str, dynamic: bool, trained: bool) -> None:
    """GE has what is viewed contiguously, and nothing of the memory around it."""

    def run(x: T) -> T:
        return PLACES[place](double, x)

    _agrees(run, ge(run, dynamic), trained, 4, 6)


class _Ordered(torch.autograd.Function):
    """The values themselves; the gradient of twice them, computed column by column and seen row by row."""

    @staticmethod
    def forward(ctx: Any, x: T) -> T:
        return x * 1

    @staticmethod
    def backward(ctx: Any, grad: T) -> T:
        return (grad.t() * 2).as_strided(grad.shape, (grad.shape[1], 1))


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_gradient_views_by_place(double: Any, dynamic: bool) -> None:
    def run(x: T) -> T:
        return double(_Ordered.apply(x))

    program = ge(run, dynamic)
    for rows, columns in [(4, 6), (5, 3) if dynamic else (4, 6)]:
        _agrees(run, program, True, rows, columns)


def test_a_place_beyond_an_input_with_strides_is_refused(double: Any) -> None:
    """It has elements that GE is not given."""

    def run(x: T) -> T:
        return double(x.as_strided((4,), (6,), 5))

    with pytest.raises(Exception, match=r"expected elements of that tensor, which alone GE has. View the whole"):
        ge(run, False)(numbers(4, 6).npu()[:, :3])


@pytest.mark.parametrize("compiled", [ge, captured], ids=["ge", "npugraph_ex"])
def test_a_given_offset_counts_from_the_start_of_the_memory(double: Any, compiled: Any) -> None:
    """There an input that begins elsewhere has other elements; without an offset it has its own."""

    def given(x: T) -> T:
        return double(x.as_strided((2,), (1,), 1))

    def own(x: T) -> T:
        return double(x.as_strided((2,), (2,)))

    memory = numbers(24).npu()
    program = compiled(own, False)
    for start in (12, 6, 0):
        torch.testing.assert_close(program(memory[start : start + 6]).cpu(), own(memory.cpu()[start : start + 6]))
    program = compiled(given, False)
    torch.testing.assert_close(program(memory[:6]).cpu(), given(memory.cpu()[:6]))
    with pytest.raises(Exception, match=r"sees its memory from the start, and it begins at element 12; expected 0"):
        program(memory[12:18])


def test_a_written_view_at_a_given_offset_is_refused(double: Any) -> None:
    """PyTorch writes to the tensor's own memory in a graph, and to that of the whole elsewhere."""

    def run(x: T) -> T:
        x.as_strided((2,), (1,), 1).mul_(2)
        return double(x)

    with pytest.raises(Exception, match=r"and it begins at element 12; expected 0, where the graph has it"):
        ge(run, False)(numbers(24).npu()[12:18])
