"""Executors of earlier calls are used again: for equal calls only, with the tensors of the new call."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from eager_package import SHAPES, prototype
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_arguments import RECORDER, calls, check_recorded

from ascend_graph.eager import EagerOperator, define_operator

_SETTINGS = {"deadline": None, "suppress_health_check": [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]}


@pytest.fixture(scope="module")
def recorder() -> Iterator[EagerOperator]:
    operator = define_operator(RECORDER, SHAPES["Recorder"], namespace="executor_cache_tests")
    yield operator
    operator.remove()


@pytest.fixture(scope="module")
def add() -> Iterator[Any]:
    operator = define_operator(prototype("AddCustom"), SHAPES["AddCustom"], namespace="executor_cache_tests")
    yield operator.overload
    operator.remove()


def used() -> int:
    """How many calls of this process had the executor of an earlier one."""
    function = ctypes.CDLL("libopapi.so").ascendgraphKeptExecutorsUsed
    function.restype = ctypes.c_uint64
    return int(function())


def elsewhere(value: Any) -> Any:
    """The same argument in other memory."""
    if isinstance(value, list):
        return [elsewhere(element) for element in value]
    if not isinstance(value, torch.Tensor):
        return value
    storage = torch.zeros(value.untyped_storage().nbytes() // value.itemsize, dtype=value.dtype, device=value.device)
    return storage.as_strided(value.shape, value.stride(), value.storage_offset())


@settings(max_examples=60, **_SETTINGS)
@given(first=calls(), second=calls(), order=st.lists(st.sampled_from([0, 1]), min_size=3, max_size=6))
def test_a_kept_executor_has_the_arguments_of_its_call(
    recorder: EagerOperator, recorded: Callable[[], dict[str, Any]], first: Any, second: Any, order: list[int]
) -> None:
    for n in order:
        inputs, attrs = (first, second)[n]
        moved = [elsewhere(value) for value in inputs]
        check_recorded(recorded, (moved, attrs), recorder.overload(*moved, **attrs))


def _tensor(shape: tuple[int, ...], seed: int, kind: str) -> torch.Tensor:
    values = torch.arange(float(seed), seed + 12).npu()
    if kind == "offset":
        return torch.cat([values[:3], values]).contiguous()[3:].view(shape)
    made = values.view(shape)
    return made.t().contiguous().t() if kind == "strided" else made


@settings(max_examples=80, **_SETTINGS)
@given(
    plan=st.lists(
        st.tuples(
            st.sampled_from([(3, 4), (4, 3), (2, 6)]),
            st.integers(0, 99),
            st.sampled_from(["plain", "strided", "offset", "same"]),
        ),
        min_size=2,
        max_size=12,
    )
)
def test_random_calls_that_share_some_facts(add: Any, plan: list[Any]) -> None:
    for shape, seed, kind in plan:
        x = _tensor(shape, seed, "plain")
        y = x if kind == "same" else _tensor(shape, seed + 5, kind)
        assert torch.equal(add(x, y).cpu(), x.cpu() + y.cpu())


def test_equal_calls_use_the_executor_again_and_no_others(add: Any) -> None:
    x, y = torch.ones(5, 7).npu(), torch.ones(5, 7).npu()
    add(x, y)
    before = used()
    for n in range(10):
        assert add(x + n, y).sum().item() == 35 * (n + 2)
    assert used() == before + 10
    add(x.half(), y.half())
    for other in (
        add(x, x),  # in one memory
        add(x.t(), y.t()),
        add(x[1:], y[1:]),
        add(torch.ones(7, 7).npu()[1:6], y),
    ):
        assert other.min().item() == other.max().item() == 2
    assert used() == before + 10


def test_a_failing_call_keeps_nothing() -> None:
    operator = define_operator(prototype("Failing"), "x[*s] -> y[*s]", namespace="executor_cache_tests")
    try:
        x = torch.zeros(3).npu()
        before = used()
        for _ in range(3):
            with pytest.raises(RuntimeError, match="aclnnFailing"):
                operator.overload(x)
        assert used() == before
    finally:
        operator.remove()


def test_calls_of_several_threads_do_not_share_one_executor(add: Any) -> None:
    failures: list[str] = []

    def work(seed: int) -> None:
        for n in range(200):
            x = torch.full((4, 5), float(seed + n)).npu()
            y = torch.full((4, 5), float(n)).npu()
            if not torch.equal(add(x, y).cpu(), torch.full((4, 5), float(seed + 2 * n))):
                failures.append(f"thread {seed}, call {n}")

    threads = [threading.Thread(target=work, args=(1000 * n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_a_captured_call_keeps_its_executor_to_itself(add: Any) -> None:
    x, y = torch.ones(6).npu(), torch.full((6,), 2.0).npu()
    add(x, y)
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph):
        z = add(x, y)
    others = [add(torch.full((6,), float(n)).npu(), y) for n in range(3)]  # equal but for their memory
    x.fill_(5)
    graph.replay()
    assert z.cpu().tolist() == [7] * 6
    assert [other.cpu()[0].item() for other in others] == [2, 3, 4]
    graph.replay()
    del graph
    assert add(x, x).cpu().tolist() == [10] * 6
