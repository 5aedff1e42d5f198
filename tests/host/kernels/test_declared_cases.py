"""TorchAir's own declared cases on the host runtime, against PyTorch on the CPU: one of each operator, and all of
them."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from benchmarks._declared_cases import (
    KNOWN_DIFFERENCES,
    NOT_TRACED,
    CaseState,
    DeclaredCase,
    Variant,
    declared_cases,
    difference,
    run_case,
)

pytestmark = pytest.mark.filterwarnings("ignore")  # compiling warns of much that is not ours

CASES = [c for c in declared_cases() if not str(c.op).startswith("npu")]
FIRST = [c for c in CASES if c.index == 0]


def check(case: DeclaredCase, dynamic: bool) -> None:
    outcome = run_case(case, dynamic=dynamic)
    as_declared = case.variant is Variant.DECLARED and not dynamic  # which TorchAir has promised to convert
    if outcome.result is CaseState.NOT_CONVERTED and (not as_declared or str(case.op).startswith(NOT_TRACED)):
        lines = outcome.message.splitlines()
        pytest.skip(f"not converted: {next((line for line in lines if 'Error: ' in line), lines[0]).strip()}")
    if dynamic and outcome.result is CaseState.FAILED and str(case.op) == "aten.as_strided_scatter.default":
        pytest.xfail("TorchAir's graph has one stride: it takes the rank of the tensor of sizes for their number")
    # Those of its cases that end at 2**63 - 1.
    if dynamic and outcome.result is not CaseState.AGREE and str(case.op) == "aten.slice_scatter.default":
        assert 2**63 - 1 in case.support.args
        pytest.xfail("TorchAir casts an end of 2**63 - 1, which stands for the last element, to int32: -1")
    if outcome.result is CaseState.DISAGREE and str(case.op) in KNOWN_DIFFERENCES:
        pytest.xfail(KNOWN_DIFFERENCES[str(case.op)])
    assert outcome.result in (CaseState.AGREE, CaseState.NO_REFERENCE), outcome.message


@pytest.mark.parametrize("case", FIRST, ids=lambda case: case.name)
def test_one_case_of_each_operator(case: DeclaredCase) -> None:
    if any(isinstance(a, torch.Tensor) and a.numel() > 1 << 22 for a in case.inputs()[0]):
        pytest.skip("too large for the fast tests; the sweep has it")
    check(case, dynamic=False)


@pytest.mark.parametrize("case", FIRST[::10], ids=lambda case: case.name)
def test_some_operators_of_dynamic_shapes(case: DeclaredCase) -> None:
    check(case, dynamic=True)


@pytest.mark.slow
@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_all_cases(case: DeclaredCase, dynamic: bool) -> None:
    check(case, dynamic)


@pytest.mark.slow
@pytest.mark.parametrize("variant", [v for v in Variant if v is not Variant.DECLARED], ids=lambda v: v.name.lower())
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_other_shapes_and_values(case: DeclaredCase, variant: Variant) -> None:
    """Shapes that are easily taken for something else, NaN and infinities; what the CPU refuses is not looked at."""
    check(replace(case, variant=variant), dynamic=False)


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (torch.zeros(2, 3), r"shape \(2, 3\), expected \(2,\)"),
        (torch.zeros(2, dtype=torch.int32), "torch.int32, expected torch.float32"),
        (torch.tensor([1.0, 1.5]), "differs by up to 0.5"),
        (torch.tensor([1.0, float("nan")]), "differs by up to inf"),
        ([torch.ones(2)] * 2, "2 outputs, expected 1 outputs"),
    ],
)
def test_differences_are_found(result: object, message: str) -> None:
    import re

    assert re.search(message, difference(result, torch.ones(2)))
