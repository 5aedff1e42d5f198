"""The engine of Triton's IR, on NumPy's arrays: the IR is what Triton-Ascend's wheel made of ``kernels.py``."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ascend_graph.host.time_limit import within_limit
from ascend_graph.host.triton.elements import from_memory, to_memory
from ascend_graph.host.triton.ir import TritonProgramError
from ascend_graph.host.triton.memory import Extent, KernelMemory, TritonKernelError
from ascend_graph.host.triton.parsing import parse
from ascend_graph.host.triton.program import Program

STORED = Path(__file__).parent / "ir"


def launch(name: str, grid: tuple[int, int, int], *arguments: Any, strict: bool = False) -> None:
    """Run a stored kernel: tensors are pointers, each with memory of its own."""
    pointers = {i: a for i, a in enumerate(arguments) if isinstance(a, torch.Tensor)}
    extents = {i: Extent(f"argument {i}", a.data_ptr(), a.nbytes) for i, a in pointers.items()}
    values = [a.data_ptr() if isinstance(a, torch.Tensor) else a for a in arguments]
    Program((STORED / f"{name}.mlir").read_text()).run(grid, values, KernelMemory(extents, strict=strict))


def test_bfloat16_is_rounded_as_pytorch_rounds() -> None:
    x, y = (torch.randn(200).bfloat16() for _ in range(2))
    z = torch.empty_like(x)
    launch("vector_add", (4, 1, 1), x, y, z, 200)
    assert torch.equal(z, x + y)


def test_masked_elements_are_left_alone() -> None:
    x = torch.randn(5, 50)
    y = torch.full((5, 60), 7.0)
    launch("row_softmax", (5, 1, 1), x, x, 50, 50)
    assert torch.allclose(x.sum(1), torch.ones(5))
    launch("row_softmax", (1, 1, 1), x, y, 50, 50)
    assert torch.equal(y[0, 50:], torch.full((10,), 7.0))


def test_loops_of_different_lengths_meet_again() -> None:
    q, k, v = (torch.randn(3, 70, 32, generator=torch.Generator().manual_seed(i)).half() for i in range(3))
    out = torch.empty_like(q)
    launch("causal_attention", (5, 3, 1), q, k, v, out, 70, 32**-0.5)
    expected = torch.nn.functional.scaled_dot_product_attention(q.float(), k.float(), v.float(), is_causal=True)
    torch.testing.assert_close(out.float(), expected, rtol=1e-2, atol=2e-3)


def test_reduction_with_a_combination_of_its_own() -> None:
    x = torch.tensor([[1.0, 5, 2, 5, 0, 0, 0, 5], [float("nan"), 1, 2, 3, 4, 5, 6, 7]])
    values, places = torch.zeros(2), torch.zeros(2, dtype=torch.int32)
    launch("largest_and_where", (2, 1, 1), x, values, places)
    assert (values[0], places[0]) == (5, 1)


def test_early_returns_and_divergent_loops() -> None:
    def steps_of(value: int) -> int:
        steps = 0
        while value > 1:
            value, steps = value // 2 if value % 2 == 0 else 3 * value + 1, steps + 1
        return steps

    x = torch.arange(1, 201, dtype=torch.int32)
    steps = torch.full((210,), -1, dtype=torch.int32)
    launch("collatz", (210, 1, 1), x, steps, 200)
    assert steps.tolist() == [*map(steps_of, range(1, 201)), *[-1] * 10]


def test_atomics_of_one_address_follow_each_other() -> None:
    counter, tickets = torch.tensor([5], dtype=torch.int32), torch.zeros(300, dtype=torch.int32)
    launch("count_up", (300, 1, 1), counter, tickets)
    assert counter.item() == 305
    assert sorted(tickets.tolist()) == list(range(5, 305))


def test_programs_wait_for_earlier_and_later_ones() -> None:
    arrived, x = torch.zeros(1, dtype=torch.int32), torch.arange(40, dtype=torch.int32)
    launch("exchange", (40, 1, 1), arrived, x, torch.zeros(40, dtype=torch.int32))
    assert x.tolist() == [2 * i for i in reversed(range(40))]


def test_programs_wait_with_volatile_loads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASCEND_GRAPH_KERNEL_TIMEOUT", "20")
    counts = torch.zeros(12, dtype=torch.int32)
    within_limit("count_followers", lambda: launch("count_followers", (12, 1, 1), counts))
    assert counts.tolist() == [*range(12, 0, -1)]


def test_error_of_one_program_ends_those_that_wait_for_it() -> None:
    arrived, x = torch.zeros(1, dtype=torch.int32), torch.arange(6, dtype=torch.int32)
    before = threading.active_count()
    with pytest.raises(TritonKernelError, match=r"store at kernels.py:\d+: writes elements 5 to 5 of argument 2"):
        launch("exchange", (6, 1, 1), arrived, x, torch.zeros(5, dtype=torch.int32))
    while threading.active_count() > before:
        time.sleep(0.01)


def test_many_atomics_of_one_address_take_little_time() -> None:
    counter, tickets = torch.zeros(1, dtype=torch.int32), torch.zeros(20000, dtype=torch.int32)
    begin = time.process_time()
    launch("count_up", (20000, 1, 1), counter, tickets)
    assert time.process_time() - begin < 1.5  # 4 s where each turn sorts what is left
    assert sorted(tickets.tolist()) == list(range(20000))


def test_access_outside_of_an_argument_names_line_and_elements() -> None:
    x = torch.randn(100).bfloat16()
    with pytest.raises(TritonKernelError, match=r"load at kernels.py:\d+: reads elements 100 to 127 of"):
        launch("vector_add", (2, 1, 1), x, x, torch.empty(128).bfloat16(), 128)


RACE = """
"builtin.module"() ({
  "tt.func"() <{function_type = (!tt.ptr<i32>) -> (), sym_name = "race", sym_visibility = "public"}> ({
  ^bb0(%arg0: !tt.ptr<i32>):
    %0 = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %1 = "BINARY"(%0, %0) : (i32, i32) -> i32
    "tt.store"(%arg0, %1) : (!tt.ptr<i32>, i32) -> () loc("race.py":7:1)
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
"""


def run_text(text: str, out: torch.Tensor, strict: bool = False) -> None:
    extents = {0: Extent("out", out.data_ptr(), out.nbytes)}
    Program(text).run((4, 1, 1), [out.data_ptr()], KernelMemory(extents, strict=strict))


def test_different_values_for_one_address_are_a_race_in_strict_mode() -> None:
    out = torch.zeros(1, dtype=torch.int32)
    with pytest.raises(TritonKernelError, match="store at race.py:7: two programs write different values, 0 and 2"):
        run_text(RACE.replace("BINARY", "arith.addi"), out, strict=True)
    run_text(RACE.replace("BINARY", "arith.subi"), out, strict=True)  # all write 0


def test_unknown_operation_is_refused_by_name() -> None:
    with pytest.raises(TritonProgramError, match="tt.custom is not there on the host"):
        Program(RACE.replace("BINARY", "tt.custom"))


@pytest.mark.parametrize("text", ["", "module {}", '"builtin.module"() ({ "tt.func"('])
def test_text_that_is_no_module_is_refused(text: str) -> None:
    with pytest.raises(TritonProgramError):
        parse(text)


@pytest.mark.parametrize(
    ("name", "a", "b", "expected"),
    [
        ("arith.divsi", -7, 2, -3),  # towards zero
        ("arith.remsi", -7, 2, -1),
        ("arith.divui", -1, 2, 0x7FFFFFFF),
        ("arith.shrsi", -8, 1, -4),
        ("arith.shrui", -8, 1, 0x7FFFFFFC),
        ("arith.maxui", -1, 1, -1),
        ("arith.muli", 0x40000000, 4, 0),  # wraps
        ("tt.mulhiui", -1, -1, -2),
    ],
)
def test_integers_are_those_of_the_device(name: str, a: int, b: int, expected: int) -> None:
    constants = (
        f'%a = "arith.constant"() <{{value = {a} : i32}}> : () -> i32\n%b = "arith.constant"() <{{value = {b} : i32}}>'
    )
    text = RACE.replace('%1 = "BINARY"(%0, %0)', f'{constants} : () -> i32\n%1 = "{name}"(%a, %b)')
    out = torch.zeros(1, dtype=torch.int32)
    run_text(text, out, strict=True)
    assert out.item() == expected


@pytest.mark.parametrize(
    ("name", "a", "b", "expected"),
    [
        ("arith.addi", "true", "true", 0),
        ("arith.addi", "true", "false", 1),
        ("arith.subi", "false", "true", 1),
        ("arith.subi", "true", "true", 0),
        ("arith.muli", "true", "true", 1),
    ],
)
def test_integers_of_one_bit_wrap(name: str, a: str, b: str, expected: int) -> None:
    constants = "\n".join(f'%{n} = "arith.constant"() <{{value = {v}}}> : () -> i1' for n, v in (("a", a), ("b", b)))
    text = f'{constants}\n%c = "{name}"(%a, %b) : (i1, i1) -> i1\n%1 = "arith.extui"(%c) : (i1) -> i32'
    out = torch.full((1,), 7, dtype=torch.int32)
    run_text(RACE.replace('%1 = "BINARY"(%0, %0) : (i32, i32) -> i32', text), out, strict=True)
    assert out.item() == expected


@pytest.mark.parametrize("element", ["bf16", "f8E4M3FN", "f8E5M2"])
def test_small_floats_are_those_of_pytorch(element: str) -> None:
    dtype = {"bf16": torch.bfloat16, "f8E4M3FN": torch.float8_e4m3fn, "f8E5M2": torch.float8_e5m2}[element]
    values = torch.cat([torch.randn(500) * 10, torch.randn(500) * 1e-3, torch.tensor([0.0, -0.0, 448, -448, 1.0625])])
    kept = torch.from_numpy(from_memory(to_memory(values.numpy(), element), element))
    assert torch.equal(kept, values.to(dtype).float())
    assert np.isnan(from_memory(to_memory(np.array([np.nan], np.float32), element), element)).all()
