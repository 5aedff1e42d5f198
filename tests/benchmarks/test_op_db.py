"""The operator database's harness: what is planted is found, what is right is not blamed, and a part of the database
itself."""

from __future__ import annotations

import json
import re
import sys
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import preloaded
import pytest
import torch

from benchmarks.operators.comparison import ComparisonVerdict
from benchmarks.operators.layouts import CHECKS as LAYOUTS
from benchmarks.operators.trees import Mover, difference, tensors
from tests.benchmarks.planted_faults import FAULTS

ROOT = Path(__file__).parents[2]


class Line(NamedTuple):
    verdict: str
    operator: str
    check: str
    message: str


def run_op_db(*arguments: str, timeout: int = 1500) -> tuple[list[Line], dict[str, Any]]:
    """What the benchmark prints: its findings, and its summary."""
    done = preloaded.run(
        [sys.executable, "benchmarks/op_db.py", *arguments],
        cwd=ROOT,
        timeout=timeout,
    )
    *lines, last = done.stdout.splitlines()
    found = [re.fullmatch(r"([a-z ]+): (\S+) \S+ \[\d+\] ([^:]+): (.*)", line) for line in lines]
    return [Line(*match.groups()) for match in found if match], json.loads(last)


PLANTED = ("--setup", "tests.benchmarks.planted_faults:plant")


@pytest.mark.slow
def test_what_is_planted_is_found() -> None:
    wrong = {name: fault for name, fault in FAULTS.items() if fault[2] is not ComparisonVerdict.DIED}
    names = "|".join([*wrong, "sign", "round"])
    checks = ",".join({check for _, _, _, check in wrong.values()} | {"in place"})
    found, _ = run_op_db(
        *("--operators", names, "--dtypes", "float32,complex64", "--samples", "3", "--checks", checks), *PLANTED
    )
    seen = {(line.operator, line.verdict, line.check) for line in found}
    for operator, (_, _, verdict, check) in wrong.items():
        assert (operator, verdict.value, check) in seen, operator
    assert not {"sign", "round"} & {line.operator for line in found}


def test_what_dies_is_named_and_ends_nothing() -> None:
    dying = [name for name, (_, _, verdict, _) in FAULTS.items() if verdict is ComparisonVerdict.DIED]
    found, summary = run_op_db(
        *("--operators", "|".join([*dying, "sign"]), "--dtypes", "float32", "--samples", "1"),
        *("--checks", "forward", "--limit", "6"),
        *PLANTED,
    )
    assert {(line.operator, line.verdict, line.message.strip()) for line in found} == {
        ("asinh", "died", "SIGABRT"),
        ("atanh", "died", "no result after 6 seconds"),
    }
    assert (summary["died"], summary["equal"]) == (2, 1)


@pytest.mark.slow
def test_the_cpu_is_equal_to_itself() -> None:
    found, summary = run_op_db(
        "--device", "cpu", "--samples", "2", "--shard", "5/60", "--checks", "forward,backward,out,in place"
    )
    assert found == []
    assert summary["equal"] > 60


def test_a_slice_of_the_database() -> None:
    """One in twelve operators, with the first sample of float32."""
    found, summary = run_op_db(
        *("--dtypes", "float32", "--samples", "1", "--shard", "3/12"),
        *("--checks", "forward,out empty,in place,noncontiguous"),
    )
    assert summary["unexplained"] == {}, found
    assert summary["operators"] > 50


@pytest.mark.slow
def test_layouts_of_a_slice_of_the_database() -> None:
    """One in forty operators: strides, offsets and dtypes of results and gradients against those of fake tensors."""
    found, summary = run_op_db(
        *("--dtypes", "float32,float16", "--samples", "2", "--shard", "7/40"), *("--checks", ",".join(LAYOUTS))
    )
    assert summary["unexplained"] == {}, found
    assert summary["equal"] > 150


#: Some operators of every kind; not those that leave memory as it is, and are equal whatever is in it.
SPOILED = (
    r"_batch_norm_with_update|byte|cat|copysign|diagonal_copy|fft\.fftshift|full|imag|isposinf|linalg\.qr|masked\.amax"
    r"|matmul|mul"
    r"|nn\.functional\.(dropout3d|fractional_max_pool2d|pad\.constant|relu6|smooth_l1_loss)|round\.decimals_0"
    r"|scatter_reduce\.prod"
    r"|select|signal\.windows\.bartlett|special\.bessel_y1|std\.unbiased|unflatten|xlogy"
)


@pytest.mark.slow
def test_nothing_that_is_wrong_by_a_thousandth_is_found_equal() -> None:
    """With one number of each result spoiled; random operators are known by their moments alone."""
    found, summary = run_op_db(
        *("--dtypes", "float32,complex64", "--samples", "2", "--operators", SPOILED, "--checks", "forward,backward"),
        *("--setup", "tests.benchmarks.planted_faults:spoil_results"),
    )
    wrong = {line.operator for line in found if line.verdict == ComparisonVerdict.WRONG.value}
    assert len(wrong) > 20
    assert summary["equal"] == 0


@pytest.mark.slow
def test_the_whole_database() -> None:
    found, summary = run_op_db(timeout=3600)
    once = [line for line in found if line.verdict in summary["unexplained"] and not line.message.endswith("]")]
    assert bool(once) == bool(summary["unexplained"]), summary["unexplained"]
    # One of 60,000 comparisons has been seen to differ once in several runs. What comes back is a fault; what does not
    # is shown.
    for line in once:
        again = [run_op_db("--operators", re.escape(line.operator)) for _ in range(2)]
        assert [repeated["unexplained"] for _, repeated in again] == [{}, {}], once
        warnings.warn(f"seen once: {line}", stacklevel=1)
    assert len(once) <= 2, once
    assert summary["stale"] == []
    assert summary["no_sample"] == 0
    assert summary["raising_operators"] <= 20
    assert summary["checks"]["captured"]["equal"] > 2800


def test_a_copy_on_the_device_is_the_same_tensor() -> None:
    base = torch.randn(4, 6, dtype=torch.complex64)
    tree = {"x": base[1:, ::2], "y": [base.t().conj(), torch._neg_view(base)], "device": torch.device("cpu")}
    moved = Mover("npu")(tree)
    assert difference(moved, tree, "npu") is None
    assert [t.stride() for t in tensors(moved)] == [t.stride() for t in tensors(tree)]
    assert len({t.untyped_storage().data_ptr() for t in tensors(moved)}) == 1


@pytest.mark.parametrize(
    "changed",
    [
        lambda x: x + 1e-4,
        lambda x: x.double(),
        lambda x: x[:1],
        lambda x: x.clone().requires_grad_(),
        lambda x: x.index_fill(0, torch.tensor([1]), float("nan")),
        lambda x: x.to("npu"),
        lambda x: torch._neg_view(-x),
        lambda x: (x,),
        lambda x: None,
    ],
)
def test_what_differs_is_said(changed: Any) -> None:
    x = torch.tensor([1.0, float("inf"), -3.0])
    assert difference({"x": changed(x)}, {"x": x}, "cpu") is not None
    assert difference({"x": x.clone()}, {"x": x}, "cpu") is None
