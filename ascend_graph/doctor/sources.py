"""Checks of C++ sources: the types that their calls of aclnn functions pass, against headers of the sources and of what is installed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from ascend_graph.aclnn import process_catalog
from ascend_graph.adoption.passed_types import called_functions, check_passed_types
from ascend_graph.adoption.repository import read_repository
from ascend_graph.doctor.finding import Finding
from ascend_graph.sources import Severity


def sources(directory: Path) -> Iterator[Finding]:
    """Yield a finding for each call in a directory that passes other types than the function takes; nothing is compiled."""
    findings, known = read_repository(directory.resolve())
    called = called_functions(findings)
    installed = {name: process_catalog.installed(name) for name in called if name not in known.functions}
    findings.diagnostics.clear()
    check_passed_types(findings, replace(known, functions={**installed, **known.functions}))
    for one in findings.diagnostics:
        text, _, fix = one.message.partition(". ")
        yield Finding(f"{one.file}:{one.line}", text, one.severity is Severity.ERROR, fix)
    if not findings.diagnostics:
        text = f"{len(called)} aclnn function(s) get the types that are declared, as far as the sources tell"
        yield Finding(str(directory), text if called else "calls no aclnn function by a macro such as EXEC_NPU_CMD")
