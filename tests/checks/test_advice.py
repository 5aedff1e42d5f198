"""Each check that opcheck makes has advice, which a report shows where the check fails, and the documents list."""

from __future__ import annotations

import re

from ascend_graph.checks.advice import ADVICE
from ascend_graph.checks.opcheck import ALONE, CHECKS
from ascend_graph.checks.report import CheckReport, CheckResult, CheckState, junit
from benchmarks._messages import ROOT, Message


def test_each_check_has_advice_that_says_what_to_write() -> None:
    assert ADVICE.keys() == {*CHECKS, *ALONE, "process"}
    assert [name for name, text in ADVICE.items() if not Message("", text, raised=True).says_what_to_write()] == []


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
