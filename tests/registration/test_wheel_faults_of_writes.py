"""What PyTorch and TorchAir do to operators that write to arguments, without ascend_graph (docs/wheel-faults.md).

Each test asks for what is right, of operators that torch.library and TorchAir's own registration know alone, and is
expected to
fail: once it passes, a wheel does better, and what stands in for it can go.
"""

from __future__ import annotations

import contextlib
import functools
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch._inductor.config
import torch_npu
import torchair
import writing_operators as writing
from writing_operators import assert_apart, assert_as_eager, captured, ge, numbers

from ascend_graph.registration.writing import graph_passes

T = torch.Tensor
pytestmark = [
    pytest.mark.filterwarnings("default"),  # compiling warns of much that is torch's and torchair's own affair
    pytest.mark.usefixtures("compiled_anew"),
    pytest.mark.skipif(not torch_npu.__version__.startswith("2.13."), reason="they are torch_npu 2.13's"),
]


class FaultError(Exception):
    """A test fails as it does for the fault that it is of, not for another reason."""


def fault(reason: str, says: str) -> Callable[[Callable[..., None]], Any]:
    """Expect a test to fail with a message that matches ``says``."""

    def decorate(test: Callable[..., None]) -> Any:
        @functools.wraps(test)
        def run(*args: Any, **kwargs: Any) -> None:
            try:
                test(*args, **kwargs)
            except Exception as error:
                if re.search(says, str(error)):
                    raise FaultError(reason) from error
                raise

        return pytest.mark.xfail(strict=True, reason=reason, raises=FaultError)(run)

    return decorate


#: Of values that differ, without a word.
DIFFERS = "do not match|not close"


@pytest.fixture(scope="module")
def ops() -> Iterator[SimpleNamespace]:
    library = torch.library.Library("writes_unregistered", "DEF")
    yield writing.define(library, registered=False)
    library._destroy()


X, Z = numbers(4, 6), 3 * numbers(4, 6)


@fault(
    "W1: one value for each written argument, where PyTorch expects one for each memory",
    "length of ge_outputs must be equal",
)
def test_two_written_arguments_of_one_tensor_in_ge(ops: SimpleNamespace) -> None:
    def run(x: T) -> T:
        ops.pair(*x.chunk(2, 1))
        return x * 1

    assert_as_eager(run, ge(run), (X,))


@fault(
    "W2: no lists of written arguments",
    "'list' object has no attribute 'view_copy'",
)
def test_written_lists_in_ge(ops: SimpleNamespace) -> None:
    def run(x: T, z: T) -> T:
        ops.list([x, z], x[0] * 1)
        return x + z

    assert_as_eager(run, ge(run), (X, Z))


@fault("W3: an absent written argument is asked for its view", "'NoneType' object has no attribute 'view_copy'")
def test_an_absent_written_argument_in_ge(ops: SimpleNamespace) -> None:
    def run(x: T, z: T) -> T:
        return ops.optional(x, z)

    assert_as_eager(run, ge(run), (X, Z))


@fault("W4: the only result of a node without bases is taken for a tuple", DIFFERS)
def test_absent_written_arguments_in_captures(ops: SimpleNamespace) -> None:
    def run(x: T) -> T:
        return ops.optional(x)

    assert_as_eager(run, captured(run), (X,))


@fault("W5: a clone that is written is dropped, and the operator works in place of what it reads", DIFFERS)
def test_a_clone_that_is_written_in_captures(ops: SimpleNamespace) -> None:
    def run(x: T, z: T) -> T:
        x = x + z
        y = x.clone()
        ops.total(y, x)
        return y

    assert_as_eager(run, captured(run), (X, Z))


@fault("W6: what is put in the place of a dropped clone is copied from where the clone lay in its memory", DIFFERS)
def test_a_clone_of_a_view_that_is_written_in_captures(ops: SimpleNamespace) -> None:
    def run(x: T, z: T) -> T:
        y = x[1].clone()
        ops.total(y, z[0])
        return y

    assert_as_eager(run, captured(run), (X, Z))


@fault("W7: a slice is counted from the memory's start, and taken from a base that starts later", DIFFERS)
def test_slices_of_a_base_with_an_offset(ops: SimpleNamespace) -> None:
    def run(x: T) -> T:
        ops.pair(x[:2], x[2:])
        return x + 0

    compiled = torch.compile(run, backend="aot_eager")
    assert_as_eager(run, compiled, (numbers(8, 6),), arranged=lambda m: m[2:6])


@fault("W8: views are cut out of a compact tensor by the strides that it has in PyTorch", DIFFERS)
def test_views_of_a_base_with_strides_in_ge(ops: SimpleNamespace) -> None:
    def run(x: T, z: T) -> T:
        ops.total(x[1], z[0, :4])
        return x + 0

    compiled = ge(run)
    assert_as_eager(run, compiled, (numbers(8, 8), numbers(8, 8)), arranged=lambda m: m[:4, 1:5])


@fault("W9: a new value of an input has no offset, and PyTorch makes the view of the input by it", DIFFERS)
def test_the_tail_of_a_written_input_in_dynamic_ge() -> None:
    def run(cache: T, start: int) -> T:
        cache[start].add_(1)
        return cache[start:]

    assert_as_eager(run, ge(run, dynamic=True), *((numbers(4, 3), start) for start in range(3)))


@fault(
    "W10: an output that shares memory with a written input is taken for memory of the capture's pool",
    "definitely_stale_pointers",
)
def test_the_tail_of_a_written_input_in_captures() -> None:
    def run(cache: T, start: int) -> T:
        cache.add_(1)
        return cache[start:]

    assert_as_eager(run, captured(run, dynamic=True), *((numbers(4, 3), start) for start in range(3)))


@fault("W11: an absent gradient is an output that has no description", "Unsupported input type.*NoneType")
def test_a_second_size_of_a_training_step_in_captures(monkeypatch: pytest.MonkeyPatch) -> None:
    # Once an operator is registered, None stays outside of captured gradients.
    monkeypatch.setattr(
        graph_passes, "compile_with_returned_inputs", lambda compile_graph, *given: compile_graph(*given)
    )
    weight = torch.rand(4, 4).npu().requires_grad_()
    compiled = captured(lambda x: torch.relu(x @ weight).sum(), dynamic=True)
    for rows in (2, 3):
        compiled(torch.ones(rows, 4).npu()).backward()


@fault("W12: what is done once is not locked", "twice")
def test_what_is_done_once_is_done_once_by_two_threads() -> None:
    """Each of two threads that first compile for GE registers PyTorch's decompositions; the second is refused."""
    inside, done = threading.Barrier(2), []

    @torchair._utils.run_once
    def once() -> None:
        done.append(threading.get_ident())
        with contextlib.suppress(threading.BrokenBarrierError):
            inside.wait(timeout=2)  # as long as it takes another thread to come in, if it can

    threads = [threading.Thread(target=once) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) == 1, "it was done twice"


@fault("W13: a default that is None is given to an attr", "must be real number, not NoneType")
def test_nan_to_num_without_limits_in_ge() -> None:
    def run(x: Any) -> Any:
        return torch.nan_to_num(x, 0.0, 1.0)

    assert_as_eager(run, ge(run), (torch.tensor([1.0, float("nan"), float("inf")]),))


@fault("W15: a capture holds its inputs contiguously, and what is written is copied by their strides", DIFFERS)
def test_a_copy_of_an_input_with_strides_in_captures(ops: SimpleNamespace) -> None:
    def run(x: T, z: T) -> T:
        y = x.clone()
        ops.total(y, z)
        return y

    assert_as_eager(run, captured(run), (numbers(4, 4), numbers(4, 4)), arranged=lambda m: m.t())


@fault("W20: of two arguments that get one value one is written", DIFFERS)
def test_two_arguments_that_get_one_value_in_ge(ops: SimpleNamespace) -> None:
    def run(x: T, y: T, z: T) -> None:
        ops.total(y, z)
        x.copy_(y)

    assert_as_eager(run, ge(run), (numbers(4), numbers(4) + 10, numbers(4)))


@fault("W21: a returned value that an argument gets is the argument", DIFFERS)
def test_a_returned_value_that_an_argument_gets_in_ge(ops: SimpleNamespace) -> None:
    def run(x: T, z: T) -> T:
        y = torch.sin(z)
        x.copy_(y)
        return y

    assert_apart(ge(run), numbers(4), numbers(4))


@fault("W22: a copy of a written argument is the argument", DIFFERS)
@pytest.mark.parametrize("compiled", [ge, captured])
def test_a_clone_of_an_argument_that_is_written(compiled: Callable[..., Any]) -> None:
    def run(x: T, z: T) -> T:
        x.mul_(2)
        return x.clone()

    assert_apart(compiled(run), numbers(4), numbers(4))


@fault("W23: the fallback of lazy tensors takes a result for the written argument", "is_same")
def test_a_lazily_negated_argument_is_written(ops: SimpleNamespace) -> None:
    x = torch._neg_view(numbers(3))
    ops.optional(numbers(3), x)  # an operator that returns nothing may end the process
    torch.testing.assert_close(x.clone(), numbers(3) * -9)


@fault("W24: a copy into a new tensor is the value", DIFFERS)
def test_a_copy_of_a_result_into_a_new_tensor_in_ge_graphs() -> None:
    def run(y: T) -> tuple[T, T]:
        z = y * 2
        return z, torch.empty_like(z).copy_(z)

    first, second = ge(run)(numbers(4).npu())
    first.zero_()
    torch.testing.assert_close(second.cpu(), numbers(4) * 2)


@fault("W22: a copy of a written argument is the argument", DIFFERS)
def test_a_copy_of_an_argument_that_is_written_into_a_new_tensor_in_captures() -> None:
    def run(x: T, z: T) -> T:
        x.mul_(2)
        return torch.empty_like(x).copy_(x)

    assert_apart(captured(run), numbers(4), numbers(4))


@fault("W25: a written part of complex numbers is made again by as_strided of the numbers", "out of bounds")
def test_a_written_part_of_complex_numbers(ops: SimpleNamespace) -> None:
    def run(z: T, y: T) -> T:
        ops.total(z.imag, y)
        return z + 0

    compiled = torch.compile(run, backend="aot_eager")
    assert_as_eager(run, compiled, (numbers(3) * (1 + 2j), numbers(3)))


@fault("W26: a call that writes stays in a graph with complex numbers", "auto_functionalized_v2 was not removed")
def test_complex_numbers_next_to_what_is_written_in_captures(ops: SimpleNamespace) -> None:
    def run(z: T, y: T) -> T:
        ops.total(y, z)
        return y + 0

    assert_as_eager(run, captured(run), (numbers(3) * (1 + 0j), numbers(3) * (1 + 0j)))


@fault("W27: a view of an input is made again from the memory that it shares with another", DIFFERS)
@pytest.mark.parametrize("compiled", [ge, captured])
def test_a_view_of_an_input_that_overlaps_with_a_written_one(compiled: Callable[..., Any]) -> None:
    def run(x: T, part: T) -> T:
        x.mul_(2)
        return part[0]

    matrix, on_device = numbers(4, 6), numbers(4, 6).npu()
    torch.testing.assert_close(compiled(run)(on_device, on_device[1:]).cpu(), run(matrix, matrix[1:]))


@fault("W28: what is written to a part of a concatenation is in the whole", DIFFERS)
def test_a_part_of_a_concatenation_that_is_written_in_captures(ops: SimpleNamespace) -> None:
    def run(x: T) -> tuple[T, T]:
        part = x.neg()
        whole = torch.cat([part, x.abs()])
        ops.total(part, x)
        return whole, part

    assert_as_eager(run, captured(run), (numbers(4),))


@fault("W29: a copy of what is written again is dropped", DIFFERS)
def test_a_copy_between_two_writes_in_captures(ops: SimpleNamespace) -> None:
    def run(x: T, z: T) -> T:
        ops.total(x, z)
        before = x.clone()
        ops.total(x, z)
        return before + 1

    assert_as_eager(run, captured(run), (numbers(4), numbers(4)))


@fault("W30: places of inputs that overlap are those of the first call", DIFFERS)
@pytest.mark.parametrize("compiled", [ge, captured])
def test_inputs_that_overlap_elsewhere_in_a_later_call(compiled: Callable[..., Any]) -> None:
    def run(x: T, y: T) -> T:
        x.mul_(2)
        return y + 0

    program = compiled(run)
    for second in (2, 1):
        matrix, on_device = numbers(6, 3), numbers(6, 3).npu()
        found = program(on_device[:4], on_device[second : second + 4])
        torch.testing.assert_close(found.cpu(), run(matrix[:4], matrix[second : second + 4]))


@fault("W31: a returned view of an input has the offset of the first call", DIFFERS)
def test_parts_of_layers_are_returned_by_a_training_step() -> None:
    def run(x: T) -> tuple[T, T]:
        return x * 2, x.chunk(2)[0]

    program = ge(run)
    for layer in (2, 0):
        x = numbers(4, 6, 3)[layer]
        found = program(numbers(4, 6, 3).npu()[layer].requires_grad_())
        torch.testing.assert_close([value.detach().cpu() for value in found], list(run(x)))


@fault("W32: a graph whose kernels are compiled for one shape writes twice", DIFFERS)
def test_an_input_of_a_capture_with_kernels_of_one_shape(
    ops: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(x: T, y: T) -> T:
        ops.total(x, y)
        return x * 2

    monkeypatch.chdir(tmp_path)  # where it makes a directory
    program = torch.compile(run, backend="npugraph_ex", options={"static_kernel_compile": True})
    assert_as_eager(run, program, (numbers(4), numbers(4)))


@fault("W33: a call that writes cannot be kept", "pickle")
def test_captures_without_the_pass_for_written_inputs(ops: SimpleNamespace) -> None:
    def run(x: T, y: T) -> T:
        ops.total(x, y)
        return x * 2

    program = torch.compile(run, backend="npugraph_ex", options={"input_inplace_pass": False})
    assert_as_eager(run, program, (numbers(4), numbers(4)))


@fault(
    "W34: GE has no converter of the first form of a call that writes",
    "auto-generated converter for auto_functionalized",
)
def test_the_first_form_of_a_call_that_writes_in_ge(ops: SimpleNamespace) -> None:
    def run(x: T, z: T) -> T:
        ops.total(x, z)
        return x * 2

    with torch._inductor.config.patch(enable_auto_functionalized_v2=False):
        assert_as_eager(run, ge(run), (X, Z))
