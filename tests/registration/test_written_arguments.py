"""Registered operators that write to arguments, in graphs: what eager calls compute, whatever the arguments are
views of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import writing_operators as writing
from writing_operators import MODES, assert_apart, assert_as_eager, captured, ge, numbers

import ascend_graph
from ascend_graph.errors import AscendGraphError
from ascend_graph.registration.writing import graph_passes, mutation

T = torch.Tensor
# Compiling warns of much that is torch's and torchair's own affair.
pytestmark = [pytest.mark.filterwarnings("default"), pytest.mark.usefixtures("compiled_anew")]


@pytest.fixture(scope="module")
def ops() -> Iterator[SimpleNamespace]:
    library = torch.library.Library("writes_registered", "DEF")
    defined = writing.define(library, registered=True)
    yield defined
    for registration in reversed(defined.registrations):
        registration.unregister()
    library._destroy()


Program = Callable[..., Any]
PROGRAMS: dict[str, Callable[[Any], Program]] = {}


def program(make: Callable[[Any], Program]) -> Callable[[Any], Program]:
    """A program of the operators, of two tensors of four to six rows and six columns."""
    PROGRAMS[make.__name__] = make
    return make


@program
def halves_of_rows(ops: Any) -> Program:
    def run(x: T, z: T) -> Any:
        q, k = x.chunk(2, 0)
        ops.pair(q, k)
        return x * 1

    return run


@program
def halves_of_columns(ops: Any) -> Program:
    def run(x: T, z: T) -> Any:
        x = x + z
        q, k = x.chunk(2, 1)
        ops.pair(q, k)
        return q, k, x

    return run


@program
def copies_between_writes(ops: Any) -> Program:
    def run(x: T, z: T) -> Any:
        ops.total(x, z)
        first = x.clone()
        ops.total(x, z)
        second, part = torch.empty_like(x).copy_(x), x[1:].clone() + 1
        ops.total(x, z)
        third = x.clone()
        x.add_(1)
        return first + 1, second, part, third

    return run


@program
def parts_of_a_concatenation(ops: Any) -> Program:
    def run(x: T, z: T) -> Any:
        first, second = x.neg(), z.neg()
        whole, twice = torch.cat([first, second]), torch.cat([second, second], 0)
        ops.pair(first, second)
        return whole, twice, first, second

    return run


@program
def rows_and_columns_in_a_chain(ops: Any) -> Program:
    def run(x: T, z: T) -> Any:
        ops.total(x[0], z[0])
        ops.total(x[1], x[0])
        ops.pair(x[:, ::2], x[:, 1::2])
        ops.pair(x.t()[:3], x.t()[3:])
        return x + 0

    return run


@program
def a_clone_that_is_written(ops: Any) -> Program:
    def run(x: T, z: T) -> Any:
        x = x + z
        y = x.clone()
        ops.total(y, x)
        w = x[1].clone()
        ops.total(w, x[1])
        return y, w

    return run


@program
def a_clone_of_what_is_written(ops: Any) -> Program:
    def run(x: T, z: T) -> Any:
        y = x.clone()
        ops.total(y, x)
        x.copy_(y)
        first, second = z.clone(), z.clone()
        ops.pair(first, second)
        return first, second

    return run


@program
def absent_arguments(ops: Any) -> Program:
    def run(x: T, z: T) -> Any:
        return ops.optional(x), ops.optional(x, z), ops.optional(x, None, z), z * 1

    return run


@program
def views_of_what_was_written(ops: Any) -> Program:
    def run(x: T, z: T) -> Any:
        ops.total(x, z)
        y = z + 1
        ops.total(y[1:3], x[:2])
        return x[1:], x.t(), y[1:]

    return run


@program
def lists(ops: Any) -> Program:
    def run(x: T, z: T) -> Any:
        y = x + z
        ops.list([x, z], x[0] * 1)
        ops.list(list(y.split(2)), z[0] * 1)
        ops.list([x[0], z[:, :6][1], x[1]], y[0])
        return x + z, y

    return run


@program
def what_is_returned(ops: Any) -> Program:
    def run(x: T, z: T) -> Any:
        y = x + z
        return ops.returning(ops.returning(x[1], z[0]), z[1]) * 1, ops.returning(y.clone(), y)

    return run


@program
def attrs_with_names_of_rules_parameters(ops: Any) -> Program:
    def run(x: T, z: T) -> Any:
        ops.named(x, z, amount=2, ctx=3, keyset=4)
        return ops.returning_named(z, x, amount=3, ctx=2) * 1

    return run


@program
def views_that_repeat_what_was_written(ops: Any) -> Program:
    def run(x: T, z: T) -> Any:
        ops.total(x, z)
        return x.expand(2, *x.shape), torch.atleast_3d(x), x[1:]

    return run


@program
def parts_whose_places_are_quotients_of_sizes(ops: Any) -> Program:
    """TorchAir's parser of symbolic places has no ``//``."""

    def run(x: T, z: T) -> Any:
        y, rows, columns = x * 2, x.shape[0] // 3, x.shape[1] // 2
        ops.total(y[rows:], z[rows:] * 1)
        ops.total(y[:, columns - 1 :: 2], z[:, columns - 1 :: 2] * 1)
        return y

    return run


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_compute_what_eager_calls_do(ops: SimpleNamespace, name: str, mode: Any) -> None:
    run = PROGRAMS[name](ops)
    compiled = mode(run)
    calls = [(numbers(rows, 6), 3 * numbers(rows, 6)) for rows in ((4, 4) if mode in (ge, captured) else (4, 6))]
    assert_as_eager(run, compiled, *calls)


#: How an argument lies in a matrix of eight by eight.
ARRANGED: dict[str, Callable[[T], T]] = {
    "later rows": lambda m: m[2:6],
    "columns": lambda m: m[:4, 1:7],
    "transposed": lambda m: m.t()[1:5, 1:7],
}


@pytest.mark.parametrize("mode", [*MODES, pytest.param(lambda f: torch.compile(f, backend="aot_eager"), id="eager")])
@pytest.mark.parametrize("arranged", ARRANGED)
def test_arguments_that_are_views_of_the_callers_tensors(ops: SimpleNamespace, arranged: str, mode: Any) -> None:
    """PyTorch counts slices of a base from the memory's start, and GE holds every tensor contiguously."""

    def run(x: T) -> Any:
        ops.pair(x[:2], x[2:])
        ops.pair(x[:, :2], x[:, 2:4])
        ops.total(x[1], x[0] * 1)
        ops.total(x.t()[1:3], x.t()[:2] * 1)
        return x + 0, x[1:]

    assert_as_eager(run, mode(run), (numbers(8, 8),), (2 * numbers(8, 8),), arranged=ARRANGED[arranged])


def _strided_parts(ops: SimpleNamespace, x: T) -> Any:
    x.mul_(2)
    ops.pair(x[:, ::2], x[:, 1::2])
    ops.total(x[::2], x[1::2] * 1)
    return x[1:]


def _parts_of_parts(ops: SimpleNamespace, x: T) -> Any:
    rows, columns = x[::2], x[:, :3]
    columns.mul_(2)
    ops.pair(rows[:1], rows[1:])
    return rows + 0, x[1]


def _a_detached_row(ops: SimpleNamespace, x: T) -> Any:
    x.mul_(2)
    row = x[1].detach()
    ops.total(row, x[2] * 2)
    return row


def _parts_of_copies(ops: SimpleNamespace, x: T) -> Any:
    x.copy_(x)
    ops.total(x[1], x[0] * 1)
    y = x.t().clone()
    y.copy_(x.t() + 1)
    ops.pair(y[:, ::2], y[:, 1::2])
    return x[1:], y


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("arranged", ARRANGED)
@pytest.mark.parametrize("program", [_strided_parts, _parts_of_parts, _a_detached_row, _parts_of_copies])
def test_parts_of_the_callers_tensors_that_aten_wrote(
    ops: SimpleNamespace, program: Any, arranged: str, mode: Any
) -> None:
    """A tensor keeps its offset and strides when ATen writes to it: its new value in the graph has others."""

    def run(x: T) -> Any:
        return program(ops, x)

    assert_as_eager(run, mode(run), (numbers(8, 8),), (2 * numbers(8, 8),), arranged=ARRANGED[arranged])


def _twice(ops: SimpleNamespace, x: T) -> Any:
    ops.pair(x[:, ::2], x[:, 1::2])
    ops.total(x[::2], x[1::2] * 1)
    return x[:1]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("program", [lambda ops, x: ops.pair(x[:2], x[2:]), _twice, _strided_parts])
def test_layers_of_a_cache_are_written(ops: SimpleNamespace, program: Any, mode: Any) -> None:
    """Nothing compiles a program anew for a tensor that begins elsewhere in its memory."""

    def run(x: T) -> Any:
        return program(ops, x)

    compiled = mode(run)
    cache = numbers(6, 4, 6)
    on_device = cache.npu()
    for layer in (2, 0, 5, 2):
        right, found = run(cache[layer]), compiled(on_device[layer])
        torch.testing.assert_close(on_device.cpu(), cache)
        if right is not None:
            torch.testing.assert_close(found.cpu(), right)
            assert found.untyped_storage().data_ptr() == on_device.untyped_storage().data_ptr()


def _whole_and_parts(ops: SimpleNamespace, x: T) -> T:
    y = x[1:].mul_(2)
    ops.total(y, y * 1)
    ops.pair(y[:, ::2], y[:, 1::2])
    return y[1:]


def _parts_and_whole(ops: SimpleNamespace, x: T) -> T:
    y = x.t().clone()
    ops.total(y, y * 1)
    ops.total(y[1:, ::2], y[1:, 1::2] * 1)
    x.add_(y.t())
    return y * 1


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("arranged", ARRANGED)
@pytest.mark.parametrize("program", [_whole_and_parts, _parts_and_whole])
def test_a_value_that_is_written_twice_moves_with_both_calls(
    ops: SimpleNamespace, program: Any, arranged: str, mode: Any
) -> None:
    """Where the second call alone goes by places in memory, the value begins elsewhere for the first one, too."""

    def run(x: T) -> T:
        return program(ops, x)

    assert_as_eager(run, mode(run), (numbers(8, 8),), (2 * numbers(8, 8),), arranged=ARRANGED[arranged])


@pytest.mark.parametrize("mode", MODES)
def test_halves_of_an_argument_that_begins_within_a_row(ops: SimpleNamespace, mode: Any) -> None:
    def run(x: T) -> T:
        x = x.view(3, 2, 6)
        ops.pair(*x.chunk(2, -1))
        ops.list(list(x.chunk(2, -1)), x[..., :3] * 1)
        return x * 1

    assert_as_eager(run, mode(run), (numbers(39),), arranged=lambda m: m[3:])


@pytest.mark.parametrize("mode", MODES)
def test_a_view_of_all_of_a_written_row_is_returned(ops: SimpleNamespace, mode: Any) -> None:
    def run(x: T) -> tuple[T, T]:
        same = x.to(x.dtype)
        ops.total(same, x * 1)
        return same, x.narrow(-2, 0, 1).flatten()

    assert_as_eager(run, mode(run), (numbers(3, 9),), arranged=lambda m: m[:1, 1::3])


@pytest.mark.parametrize("mode", MODES[::2])
def test_an_attr_named_mode_is_refused_in_graphs(mode: Any) -> None:
    ascend_graph.load_prototypes(
        "REG_OP(WritesMode).INPUT(x, TensorType({DT_FLOAT})).OUTPUT(x, TensorType({DT_FLOAT}))"
        ".ATTR(mode, Int, 0).OP_END_FACTORY_REG(WritesMode)"
    )
    library = torch.library.Library("writes_mode", "DEF")
    library.define("op(Tensor(a!) x, *, int mode=0) -> ()")
    library.impl("op", lambda x, *, mode=0: (x.add_(mode), None)[1], "PrivateUse1")
    op = ascend_graph.register_op("WritesMode", eager=torch.ops.writes_mode.op.default)
    try:
        with pytest.raises(Exception, match="an argument is named 'mode', and the operator writes"):
            mode(lambda x: op(x, mode=2))(numbers(2).npu())
    finally:
        op.unregister()
        library._destroy()


@pytest.mark.parametrize("mode", MODES[::2])
def test_a_list_next_to_what_is_written_is_refused_in_graphs(mode: Any) -> None:
    ascend_graph.load_prototypes(
        "REG_OP(WritesAndLists).INPUT(x, TensorType({DT_FLOAT})).DYNAMIC_INPUT(xs, TensorType({DT_FLOAT}))"
        ".OUTPUT(x, TensorType({DT_FLOAT})).DYNAMIC_OUTPUT(ys, TensorType({DT_FLOAT})).OP_END_FACTORY_REG(WritesAndLists)"
    )
    library = torch.library.Library("writes_lists", "DEF")
    library.define("op(Tensor(a!) x, Tensor[] xs) -> Tensor[] ys")
    library.impl("op", lambda x, xs: (x.add_(1), [y + 1 for y in xs])[1], "PrivateUse1")
    op = ascend_graph.register_op(
        "WritesAndLists", eager=torch.ops.writes_lists.op.default, shape="xs[i][n] -> ys[i][n]"
    )
    try:
        with pytest.raises(Exception, match="writes to an argument and returns a list of tensors.*make two operators"):
            mode(lambda x: op(x, [x * 2]))(numbers(2).npu())
    finally:
        op.unregister()
        library._destroy()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("arranged", ARRANGED)
def test_copies_of_inputs_with_strides(ops: SimpleNamespace, arranged: str, mode: Any) -> None:
    """A capture has its inputs contiguous, and what is written is copied by the strides of the caller's tensor."""

    def run(x: T, z: T) -> Any:
        y = x.clone()
        ops.total(y, z)
        w = x * 1
        ops.total(w.t()[1:3], z.t()[1:3] * 1)
        return y, w

    assert_as_eager(
        run, mode(run), (numbers(8, 8), numbers(8, 8)), (2 * numbers(8, 8), numbers(8, 8)), arranged=ARRANGED[arranged]
    )


@pytest.mark.parametrize("mode", MODES[1::2])
def test_tails_of_a_cache_begin_where_the_call_says(ops: SimpleNamespace, mode: Any) -> None:
    def run(cache: T, start: int) -> T:
        ops.total(cache[start], cache[0] * 0)
        return cache[start:]

    assert_as_eager(run, mode(run), *((numbers(4, 3), start) for start in range(4)))


class Decoder(torch.nn.Module):
    """Layers that rotate halves of one tensor and write to one cache."""

    def __init__(self, ops: SimpleNamespace, layers: int = 2) -> None:
        super().__init__()
        self.ops, self.layers = ops, layers
        self.register_buffer("cache", torch.zeros(2, layers, 4, 6))
        self.linear = torch.nn.Linear(6, 6)

    def forward(self, x: T) -> Any:
        keys, values = self.cache[0], self.cache[1]
        for layer in range(self.layers):
            q, k = self.linear(x).chunk(2, -1)
            self.ops.pair(q, k)
            self.ops.total(keys[layer][:, :3], k)
            self.ops.total(values[layer][1:3], x[:2])
            x = torch.cat((q, values[layer][:, 3:]), -1)
        return x, self.cache[1:]


@pytest.mark.parametrize("mode", [pytest.param(ge, id="GE"), pytest.param(captured, id="npugraph_ex")])
def test_caches_of_two_modules(ops: SimpleNamespace, mode: Any) -> None:
    """A view of what was written is not memory of the capture's pool: the next capture would not find it there."""
    pairs = []
    for layers in (2, 3):
        module, copy = Decoder(ops, layers), Decoder(ops, layers)
        copy.load_state_dict(module.state_dict())
        pairs.append((module, mode(copy.npu())))
    with torch.no_grad():
        for scale in (1, 2):
            for module, compiled in pairs:
                assert_as_eager(module, compiled, (scale * numbers(4, 6) / 100,))


@pytest.mark.parametrize("mode", [pytest.param(ge, id="GE"), pytest.param(captured, id="npugraph_ex")])
def test_training(ops: SimpleNamespace, mode: Any) -> None:
    def run(weight: T, statistics: T, x: T) -> Any:
        ops.total(statistics, x)
        y = x.clone()
        ops.total(y, x)
        return (x @ weight * y).sum(), statistics[1:]

    compiled = mode(run)
    weight, statistics, x = torch.rand(6, 6), numbers(4, 6), numbers(4, 6)
    there = [weight.npu().requires_grad_(), statistics.npu(), x.npu()]
    weight.requires_grad_()
    for _ in range(2):
        (loss, tail), (right, right_tail) = compiled(*there), run(weight, statistics, x)
        loss.backward()
        right.backward()
        torch.testing.assert_close(loss.cpu(), right)
        torch.testing.assert_close(tail.cpu(), right_tail)
        torch.testing.assert_close(there[0].grad.cpu(), weight.grad)


# ---------------------------------------------------------------------------------------------------------------
# refused


@pytest.mark.parametrize(
    ("q", "k"), [(lambda x: x, lambda x: x), (lambda x: x[:3], lambda x: x[1:])], ids=["one tensor", "windows"]
)
def test_ge_refuses_what_is_written_twice(ops: SimpleNamespace, q: Any, k: Any) -> None:
    def run(x: T) -> T:
        ops.pair(q(x), k(x))
        return x + 0

    with pytest.raises(Exception, match=r"q and k are written and overlap in memory, .* Write: k\.clone\(\)"):
        ge(run)(numbers(4, 6).npu())
    torch._dynamo.reset()
    assert_as_eager(run, captured(run), (numbers(4, 6),))


@pytest.mark.parametrize("compiled", MODES)
def test_two_arguments_may_get_one_value(ops: SimpleNamespace, compiled: Callable[..., Any]) -> None:
    def run(x: T, y: T, z: T) -> None:
        ops.total(y, z)
        x.copy_(y)

    assert_as_eager(run, compiled(run), (numbers(4), numbers(4) + 10, numbers(4)))


@pytest.mark.parametrize("compiled", MODES)
def test_a_returned_value_that_an_argument_gets_is_not_the_argument(
    ops: SimpleNamespace, compiled: Callable[..., Any]
) -> None:
    def run(x: T, z: T) -> T:
        y = z * 2
        ops.total(y, z)
        x.copy_(y)
        return y

    assert_as_eager(run, compiled(run), (numbers(4), numbers(4)))
    torch._dynamo.reset()
    assert_apart(compiled(run), numbers(4), numbers(4))


@pytest.mark.parametrize("compiled", MODES)
def test_a_returned_value_of_others_that_an_argument_gets_is_apart(
    ops: SimpleNamespace, compiled: Callable[..., Any]
) -> None:
    def run(x: T, z: T) -> T:
        y = x * 2
        x.copy_(y)
        ops.total(z, x)
        return y

    assert_apart(compiled(run), numbers(4), numbers(4))


# ---------------------------------------------------------------------------------------------------- others, and the
# way back


def test_graphs_of_others_are_handed_on_as_they_are() -> None:
    graph = torch.fx.symbolic_trace(lambda x: x + 1)
    assert graph_passes.prepared(graph, captured=True) is graph


def test_unregistering_leaves_the_operator_to_pytorch(ops: SimpleNamespace) -> None:
    library = torch.library.Library("writes_once", "DEF")
    defined = writing.define(library, registered=True)
    assert mutation.is_ours(defined.pair)
    for registration in reversed(defined.registrations):
        registration.unregister()
    assert not mutation.is_ours(defined.pair)
    assert not defined.pair.python_key_table
    compiled = torch.compile(lambda q, k: defined.pair(q, k), backend="aot_eager")
    q, k = numbers(3), numbers(3)
    compiled(q, k)
    assert q.tolist() == [11, 21, 31]
    library._destroy()


def test_a_pytorch_that_describes_calls_otherwise_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("torch._higher_order_ops.auto_functionalize.try_use_slice")
    with pytest.raises(
        graph_passes.UnknownWheelError, match=r"auto_functionalize: lacks try_use_slice; expected a torch"
    ):
        graph_passes.install()


def test_a_torchair_that_converts_calls_otherwise_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    import torchair._ge_concrete_graph.auto_functionalized_v2 as conversion

    monkeypatch.delattr(conversion, "force_op_unknown_shape")
    with pytest.raises(
        AscendGraphError, match=r"auto_functionalized_v2: lacks force_op_unknown_shape; expected TorchAir"
    ):
        graph_passes.install()


def test_an_argument_with_strides_that_is_written_may_grow(ops: SimpleNamespace) -> None:
    """TorchAir does not say again how many bytes a tensor has at an address that an earlier and smaller one had."""

    def run(x: T) -> T:
        x.add_(1)
        return x

    compiled = ge(run, dynamic=True)
    for rows in (3, 4, 7, 2, 5):
        assert_as_eager(run, compiled, (numbers(rows, 4),), arranged=lambda m: m[:, 1])


def test_a_part_of_a_tensor_without_elements_is_written_in_dynamic_graphs(ops: SimpleNamespace) -> None:
    def run(x: T, z: T) -> T:
        whole = torch.cat([x, x])
        ops.total(whole[: x.shape[0]], z)
        return whole + 0

    assert_as_eager(run, ge(run, dynamic=True), [torch.ones(3, 0), torch.ones(3, 0)])


#: Operators that give the same elements anew, which TorchAir drops.
COPIES: list[Callable[[T], T]] = [
    lambda x: torch.empty_like(x).copy_(x),
    lambda x: x.clone(),
    lambda x: x.clone().clone()[1:],
    lambda x: x.repeat(1, 1),
    lambda x: x.to(x.dtype, copy=True),
    lambda x: x.t().clone(),
]


@pytest.mark.parametrize(
    "copied", COPIES, ids=["into a new one", "clone", "part of a clone", "repeat", "to", "clone of a view"]
)
@pytest.mark.parametrize("compiled", MODES)
def test_a_copy_of_a_written_input_is_apart_from_it(
    ops: SimpleNamespace, compiled: Callable[[Program], Program], copied: Callable[[T], T]
) -> None:
    def run(x: T, z: T) -> T:
        ops.total(x, z)
        return copied(x)

    assert_as_eager(run, compiled(run), (numbers(4, 6), numbers(4, 6)))
    torch._dynamo.reset()
    assert_apart(compiled(run), numbers(4, 6), numbers(4, 6))


LAZY: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "nothing is returned": (lambda ops, x, z: ops.total(x, z), lambda x, z: x * 10 + z),
    "it is returned": (lambda ops, x, z: ops.returning(x, z), lambda x, z: x * 10 + z),
    "another is returned": (lambda ops, x, z: ops.optional(z, x), lambda x, z: x * 10 + z),
    "two are written": (lambda ops, x, z: ops.pair(x, z.clone()), lambda x, z: x * 10 + 1),
    "in a list": (lambda ops, x, z: ops.list([z.clone(), x], z), lambda x, z: x * 10 + z + 1),
    "by name": (lambda ops, x, z: ops.named(total=x, x=z, amount=10), lambda x, z: x * 10 + z - 1),
}


@pytest.mark.parametrize("compiled", MODES)
def test_a_copy_of_a_copy_of_an_input_is_apart_from_it(
    ops: SimpleNamespace, compiled: Callable[[Program], Program]
) -> None:
    """PyTorch's pass keeps one copy between an input and a result, and drops the two here."""

    def run(x: T, z: T) -> T:
        ops.total(z, x)
        return x.clone().t().clone()

    assert_apart(compiled(run), numbers(4, 4), numbers(4, 4))


@pytest.mark.parametrize("case", LAZY.values(), ids=LAZY)
@pytest.mark.parametrize("arranged", ["negated", "imaginary", "conjugated"])
def test_a_lazily_negated_or_conjugated_tensor_is_written(ops: SimpleNamespace, case: Any, arranged: str) -> None:
    write, expected = case
    conjugated = torch.complex(numbers(3), numbers(3) + 1).npu().conj()
    arrangements = {"negated": torch._neg_view(numbers(3).npu()), "imaginary": conjugated.imag}
    x, z = arrangements.get(arranged, conjugated), numbers(3).npu()
    wanted = expected(x.clone(), z)
    returned = write(ops, x, z)
    torch.testing.assert_close(x.clone(), wanted)
    if case is LAZY["it is returned"]:
        assert returned.data_ptr() == x.data_ptr()
        torch.testing.assert_close(returned.clone(), wanted)
    if case is LAZY["another is returned"]:
        torch.testing.assert_close(returned, z + 1)


@pytest.mark.parametrize("mode", MODES)
def test_a_lazily_negated_tensor_is_written_in_graphs(
    ops: SimpleNamespace, mode: Any, request: pytest.FixtureRequest
) -> None:
    if "GE" in request.node.callspec.id and torch.__version__ < (2, 11):
        pytest.skip(f"torch {torch.__version__} runs auto_functionalized_v2 on no negated tensor, loudly")
    compiled = mode(lambda x, z: (ops.total(x, z), ops.optional(z, x), x * 1)[1:])
    for size in (3, 4):
        x, z = torch._neg_view(numbers(size).npu()), numbers(size).npu()
        wanted = (x * 10 + z) * 10 + z
        results = compiled(x, z)
        for found, right in zip((*results, x.clone()), (z + 1, wanted, wanted), strict=True):
            torch.testing.assert_close(found, right)


@pytest.mark.parametrize("dynamic", [False, True])
def test_captures_of_overlapping_inputs_need_sizes_that_stay(ops: SimpleNamespace, dynamic: bool) -> None:
    compiled = captured(lambda q, k: (ops.pair(q, k), q * 1)[1], dynamic=dynamic)
    for size in (4, 6):
        base = numbers(size).npu()
        if dynamic:
            with pytest.raises(Exception, match=r"two inputs that overlap.*take the parts inside"):
                compiled(base[:3], base[1:4])
            continue
        found = compiled(base[:3], base[1:4])
        expected = numbers(size)
        writing._pair(expected[:3], expected[1:4])
        torch.testing.assert_close(base.cpu(), expected)
        torch.testing.assert_close(found.cpu(), expected[:3])


@pytest.mark.parametrize("compiled", MODES)
def test_a_copy_of_another_result_is_apart_from_it(ops: SimpleNamespace, compiled: Callable[..., Any]) -> None:
    def run(z: T) -> tuple[T, T]:
        y = z * 1
        ops.total(y, z)
        return y, torch.empty_like(y).copy_(y)

    first, second = compiled(run)(numbers(3).npu())
    first.zero_()
    torch.testing.assert_close(second.cpu(), numbers(3) * 11)


@pytest.mark.parametrize("compiled", MODES)
def test_an_argument_that_gets_a_result_is_apart_from_it(ops: SimpleNamespace, compiled: Callable[..., Any]) -> None:
    def run(x: T, z: T) -> tuple[T, T]:
        y, w = z * 1, z * 3
        ops.total(y, z)
        ops.total(w, z)
        x[:1][0:].copy_(y.clone())
        z[z.shape[0] // 2 :].copy_(w)
        return y, w

    program = compiled(run)
    x, z = numbers(1, 3).npu(), numbers(1, 3).npu()
    first, second = program(x, z)
    x.zero_()
    z.zero_()
    torch.testing.assert_close(first.cpu(), numbers(1, 3) * 11)
    torch.testing.assert_close(second.cpu(), numbers(1, 3) * 31)


@pytest.mark.parametrize("compiled", MODES)
def test_a_part_of_a_concatenation_is_apart_from_it(ops: SimpleNamespace, compiled: Callable[..., Any]) -> None:
    def run(z: T) -> tuple[T, T]:
        y = z.neg()
        whole = torch.cat([y, z.abs()], dim=0)
        ops.total(z, y)
        return y, whole

    first, second = compiled(run)(numbers(3).npu())
    first.zero_()
    torch.testing.assert_close(second.cpu(), torch.cat([-numbers(3), numbers(3)]))


@pytest.mark.parametrize("compiled", MODES)
def test_a_copy_of_another_result_with_other_strides_is_apart_from_it(
    ops: SimpleNamespace, compiled: Callable[..., Any]
) -> None:
    def run(z: T) -> tuple[T, T]:
        y, other = (z * 2).t().contiguous(), z.t().clone()
        ops.total(y, other)
        return y, other.copy_(y)

    first, second = compiled(run)(numbers(3, 2).npu())
    first.zero_()
    torch.testing.assert_close(second.cpu(), numbers(3, 2).t() * 21)


@pytest.mark.parametrize("compiled", MODES)
def test_parts_whose_offset_is_a_square_are_written(ops: SimpleNamespace, compiled: Callable[..., Any]) -> None:
    def run(x: T) -> T:
        both = torch.stack([x, x])
        ops.total(both[0], x)
        ops.total(both[1], x)
        return both

    # PyTorch makes one symbol of two equal sizes, so that the offset is s * s, which is no input of the graph.
    assert_as_eager(run, compiled(run), (numbers(2, 1, 2),), (numbers(3, 1, 3),))


@pytest.mark.parametrize("dynamic", [False, True])
def test_ge_refuses_to_write_to_an_expanded_tensor(ops: SimpleNamespace, dynamic: bool) -> None:
    def run(x: T, z: T) -> T:
        y = x * 1
        ops.total(y.expand(4, 3), z)
        return y

    with pytest.raises(
        Exception, match=r"total is written.*several of its elements are one.*Write: total.contiguous\(\)"
    ):
        ge(run, dynamic=dynamic)(numbers(1, 3).npu(), numbers(4, 3).npu())


@pytest.mark.parametrize("mode", MODES)
def test_aten_writes_to_windows_of_an_input(ops: SimpleNamespace, mode: Any) -> None:
    """Of an expanded input PyTorch refuses it itself."""

    def run(x: T) -> T:
        y = x * 2
        ops.total(y, y * 1)
        x[2].add_(1)
        return y

    x, right = numbers(16).npu(), numbers(16)
    if mode in [parameter.values[0] for parameter in MODES[:2]]:
        with pytest.raises(Exception, match=r"one in memory, which GE holds apart; .*Pass .contiguous\(\)"):
            mode(run)(x.as_strided((4, 6), (1, 1)))
        return
    mode(run)(x.as_strided((4, 6), (1, 1)))
    run(right.as_strided((4, 6), (1, 1)))
    torch.testing.assert_close(x.cpu(), right)


@pytest.mark.parametrize("compiled", MODES)
@pytest.mark.parametrize("part", [lambda t: t[:1], lambda t: t[1]], ids=["slice", "row"])
def test_a_part_of_an_expanded_input_is_refused_as_a_written_tensor(
    ops: SimpleNamespace, compiled: Callable[..., Any], part: Callable[[T], T]
) -> None:
    """PyTorch's own description of the slice divides by the stride."""
    expanded = numbers(1, 3).npu().expand(4, 3)
    with pytest.raises(
        Exception, match="more than one element of the written-to tensor refers to a single memory location"
    ):
        compiled(lambda t, x: ops.total(part(t), part(x)))(expanded, numbers(4, 3).npu())
