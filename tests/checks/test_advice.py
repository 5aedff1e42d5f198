"""Each check that opcheck makes has advice, which a report shows where the check fails, and the documents list."""

from __future__ import annotations

import re

import pytest
import torch

from ascend_graph.checks.advice import ADVICE, SPECIFIC, UNSTEADY, advice_on, excluding
from ascend_graph.checks.calls.samples import Sample
from ascend_graph.checks.opcheck import ALONE, CHECKS
from ascend_graph.checks.report import CheckReport, CheckResult, CheckState, junit
from ascend_graph.shapes import parse_relation
from benchmarks._messages import ROOT, Message


def test_each_check_has_advice_that_says_what_to_write() -> None:
    assert ADVICE.keys() == {*CHECKS, *ALONE, "process"}
    assert [name for name, text in ADVICE.items() if not Message("", text, raised=True).says_what_to_write()] == []


def test_advice_on_a_message_says_what_to_write() -> None:
    assert {check for check, _, _ in SPECIFIC} <= ADVICE.keys()
    assert [text for _, _, text in SPECIFIC if not Message("", text, raised=True).says_what_to_write()] == []


@pytest.mark.parametrize(
    ("message", "advice"),
    [
        ("DataCopy: unaligned copy: 1 elements of 1 bytes are 1 bytes, no multiple of 32", "DataCopyPad"),
        ("InitBuffer: 2 buffers of 0 bytes for queue VECIN; both must be above 0", "return early"),
        ("DeQue: queue VECIN is empty (on the device this waits for ever); EnQue a tensor first", "does not balance"),
        ("dst ends at byte 0; the tiling function asked for a workspace of 64 bytes", "GetWorkspaceSizes"),
        ("GET_TILING_DATA: the tiling structure has 32 bytes, its memory 24", "include one header in both"),
        ("tiling key 2 is not one of the kernel's; it asks for 1, 3", "TILING_KEY_IS"),
        ("Op: the tiling function accesses memory through a null or bad pointer", "GetAttrPointer"),
        (
            "Op: the tiling function accesses memory through a null or bad pointer; write ValueDepend(OPTIONAL)",
            "only ValueDepend",
        ),
        ("FreeTensor: the tensor is still in queue VECOUT; DeQue it first", "the line that the message names"),
    ],
)
def test_advice_fits_the_rule_that_was_broken(message: str, advice: str) -> None:
    assert advice in advice_on("runs", message)


def test_where_calls_do_not_repeat_no_other_cause_of_values_is_named() -> None:
    differ = "tensors with gaps: return 0: 1 of 2 elements differ, the first at [0] is 1.0, not 2.0"
    failed = [CheckResult(name, CheckState.FAILED, message=differ) for name in ("repeats", "layout", "npugraph_ex")]
    shape = CheckResult("meta", CheckState.FAILED, message="return 0 has the shape (2,), not (3,)")
    report = CheckReport("op", (*failed, shape))
    assert [o.advice for o in report.failures] == [ADVICE["repeats"], UNSTEADY, UNSTEADY, ADVICE["meta"]]
    assert Message("", UNSTEADY, raised=True).says_what_to_write()
    steady = CheckReport("op", (*failed[1:], shape))
    assert [o.advice for o in steady.failures] == [ADVICE["layout"], ADVICE["npugraph_ex"], ADVICE["meta"]]


@pytest.mark.parametrize(
    ("relation", "tensor", "fault", "condition"),
    [
        ("x[*s, n] -> y[*s, n]", torch.ones(3), "12 bytes, no multiple of 32", ": where n % 8 == 0"),
        ("x[*s, n] -> y[*s, n]", torch.ones(3).half(), "6 bytes, no multiple of 32", ": where n % 16 == 0"),
        ("x[*s] -> y[*s]", torch.ones(3), "12 bytes, no multiple of 32", ": where numel(x) % 8 == 0"),
        ("x[*s, n] -> y[*s, n]", torch.ones(0), "2 buffers of 0 bytes", ": where n > 0"),
        ("x[*s, n] -> y[*s, n]", torch.ones(3), "tiling key 2 is not one of the kernel's", ""),
    ],
)
def test_the_condition_that_excludes_a_call_uses_the_relation_s_names(
    relation: str, tensor: torch.Tensor, fault: str, condition: str
) -> None:
    assert excluding(parse_relation(relation), Sample((tensor,)), fault) == condition


def test_a_report_shows_the_advice_of_what_failed_alone() -> None:
    failed = CheckResult("outside", CheckState.FAILED, 3, "4 bytes behind z were written", "(float32[3])")
    report = CheckReport("npu::op", (failed, CheckResult("meta", CheckState.PASSED, 17)))
    line = f"often: {ADVICE['outside']}"
    assert line in str(report)
    assert line in junit([report])
    assert [check["advice"] for check in report.as_dict()["checks"]] == [ADVICE["outside"], ""]
    assert ADVICE["meta"] not in str(report)


def test_the_documents_list_each_check() -> None:
    page = (ROOT / "docs/troubleshooting.md").read_text(encoding="utf-8").partition("## opcheck")[2]
    listed = {name for cell in re.findall(r"^\| (.*?) \|", page, re.MULTILINE) for name in re.findall(r"`(\w+)`", cell)}
    assert listed >= {*CHECKS, *ALONE}
