"""Checks of a module's operators in separate processes, without importing torch.

A crash or a hang is reported, and the rest continues.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ascend_graph.checks.report import AttrCoverage, CheckReport, CheckResult, CheckState
from ascend_graph.environment import is_active, is_strict, real_cann
from ascend_graph.errors import AscendGraphError
from ascend_graph.workers import ModuleError, answers, launcher_arguments, require_module


class RequestError(AscendGraphError):
    """Request for a check that does not exist, whatever the module registers."""


@dataclass(frozen=True, slots=True)
class CheckRequest:
    """Request for the checks of a module's operators.

    Attributes:
        module: A module, or a .py file, that registers operators when it is imported.
        operators: Op types or names; all if empty.
        checks: The checks to run; all if empty.
        limit: Seconds that one operator may take.
        strict: If true, the host runtime lets only kernels and copies access device memory.
        pipes: If true, kernels in Ascend C end where one pipe does not wait for another.
        on_host: If true, use the host runtime even if a CANN is installed.
    """

    module: str
    operators: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    count: int = 6
    seed: int = 0
    limit: float = 300.0
    strict: bool = False
    pipes: bool = False
    on_host: bool = False


def _hint(message: str) -> str:
    """Return the cause of an import error that is seen in checkouts of generated projects; empty for any other."""
    if "cannot import name '_C' from partially initialized module" not in message:
        return ""
    return (
        ": this is a checkout whose C++ is not compiled in it, and hides an installed wheel. Start elsewhere, or write "
        "pip install -e . --no-build-isolation"
    )


def check_module(request: CheckRequest, started: Callable[[str], None] = lambda _: None) -> list[CheckReport]:
    """Check all operators of a module and return the reports.

    Args:
        request: The module, operators and checks.
        started: Called with the name of each operator before it is checked.

    Raises:
        ModuleError: The module cannot be imported, or it registers none of the operators.
        RequestError: A check of that name does not exist.
    """
    require_module(request.module)
    reports: list[CheckReport] = []
    while True:
        current, ended, begun, listed = "", True, False, False
        for line in _lines(request, [r.operator for r in reports]):
            match line:
                case {"begins": _}:
                    begun = True
                case {"error": message}:
                    raise ModuleError(
                        f"{request.module} cannot be imported: {message}. Correct that first{_hint(message)}"
                    )
                case {"unknown": message}:
                    raise RequestError(message)
                case {"operators": [], "registered": known, **more}:
                    if not known:
                        raise ModuleError(
                            f"{request.module} registers no operator: importing it has to call ascend_graph.register_op or "
                            "ascend_graph.register_aclnn; where a function of it does, write module:function"
                        )
                    raise ModuleError(
                        f"{request.module} does not register {', '.join(more.get('missing', ()))}; expected one of: "
                        f"{', '.join(known)}"
                    )
                case {"operators": _}:
                    listed = True
                case {"start": str(name)}:
                    current, ended = name, False
                    started(name)
                case {"report": dict(report)}:
                    reports.append(_report(report))
                    ended = True
                case {"died": _} if ended and listed:
                    pass  # on its way out, with everything said
                case {"died": str(how)}:
                    if not begun:
                        raise ModuleError(f"{request.module}: Python did not start; see the output above")
                    if not listed:
                        name = request.module.partition(":")[0]
                        alone = name if name.endswith(".py") else f"-c 'import {name}'"
                        raise ModuleError(
                            f"{request.module}: importing it {how}; see where with: ascend-graph run {alone}"
                        )
                    reports.append(
                        CheckReport(current, (CheckResult("process", CheckState.FAILED, message=f"checking it {how}"),))
                    )
        if ended:
            return reports


def _report(data: dict[str, Any]) -> CheckReport:
    outcomes = [
        CheckResult(c["check"], CheckState(c["state"]), c["calls"], c["message"], c["sample"], c["seconds"])
        for c in data["checks"]
    ]
    attrs = [
        AttrCoverage(
            a["name"],
            tuple(a["tried"]),
            tuple((r["value"], r["message"]) for r in a["refused"]),
            tuple(a["untried"]),
            a["remark"],
        )
        for a in data["attrs"]
    ]
    return CheckReport(data["operator"], tuple(outcomes), tuple(data["notes"]), tuple(attrs))


def _lines(request: CheckRequest, done: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield the lines that a worker writes, and finally how it ended; the time limit applies to each operator."""
    asked = {
        "module": request.module,
        "operators": request.operators,
        "checks": request.checks,
        "count": request.count,
        "seed": request.seed,
        "done": list(done),
    }
    launcher = launcher_arguments(on_host=request.on_host)
    modes = ["--strict"] if request.strict and not is_strict(os.environ) else []
    modes += ["--pipes"] if request.pipes else []
    if modes:
        if real_cann(os.environ) and not is_active():
            raise ModuleError(f"{modes[0]} is a mode of the host runtime, and a CANN is installed here; leave it out")
        launcher = ["-m", "ascend_graph.host", "--quiet", *modes, *(["--force"] if is_active() else [])]
    command = [*launcher, "-m", "ascend_graph.checks.worker"]
    return answers(command, asked, limit=request.limit, restarts=lambda said: "start" in said)
