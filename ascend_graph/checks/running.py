"""Checking the operators of a module in processes of their own: what crashes or hangs is reported, and the rest goes on. No torch."""

from __future__ import annotations

import importlib
import json
import os
import runpy
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ascend_graph.checks.report import Outcome, Report, State
from ascend_graph.compilation.processes import end, started
from ascend_graph.errors import AscendGraphError


class ModuleError(AscendGraphError):
    """The module cannot be imported, or registers nothing that is asked for."""


class RequestError(AscendGraphError):
    """What is asked for does not exist, whatever the module registers."""


@dataclass(frozen=True, slots=True)
class Request:
    """What to check.

    Attributes:
        module: A module, or a .py file, that registers operators when it is imported.
        operators: Op types or names; all without one.
        checks: The checks to make; all without one.
        limit: Seconds that one operator may take.
        strict: Whether the host runtime keeps device memory from all but kernels and copies.
        on_host: Whether it runs on the host runtime even where a CANN is installed.
    """

    module: str
    operators: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    count: int = 6
    seed: int = 0
    limit: float = 300.0
    strict: bool = False
    on_host: bool = False


def import_operators(module: str) -> dict[str, Any]:
    """Import a module, or run a .py file, for the operators that it registers; one of the working directory is found.

    Args:
        module: Its name or path; ``module:function`` where a function of it registers them.

    Returns:
        What it defines, by name.

    Raises:
        ModuleError: There is no such file.
    """
    module, _, function = module.partition(":")
    if module.endswith(".py"):
        if not Path(module).is_file():
            raise ModuleError(f"there is no file {module} in {Path.cwd()}")
        names = runpy.run_path(module)
    else:
        sys.path.insert(0, str(Path.cwd()))
        names = vars(importlib.import_module(module))
    if function:
        names[function]()
    return names


def check_module(request: Request, started: Callable[[str], None] = lambda _: None) -> list[Report]:
    """The reports of all operators of a module.

    Args:
        request: What to check.
        started: Is told the name of each operator before it is checked.

    Raises:
        ModuleError: The module cannot be imported, or it registers none of the operators.
        RequestError: There is no check of such a name.
    """
    reports: list[Report] = []
    while True:
        current, ended, begun, listed = "", True, False, False
        for line in _lines(request, [r.operator for r in reports]):
            match line:
                case {"begins": _}:
                    begun = True
                case {"error": message}:
                    raise ModuleError(f"{request.module} cannot be imported: {message}")
                case {"unknown": message}:
                    raise RequestError(message)
                case {"operators": [], "registered": known}:
                    if not known:
                        raise ModuleError(
                            f"{request.module} registers no operator: importing it has to call ascend_graph.register_op or "
                            "ascend_graph.register_aclnn; where a function of it does, write module:function"
                        )
                    raise ModuleError(
                        f"{request.module} registers none of {', '.join(request.operators)}; it registers: {', '.join(known)}"
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
                        raise ModuleError(f"{request.module}: Python did not start; why is said above")
                    if not listed:
                        raise ModuleError(f"{request.module}: importing it {how}")
                    reports.append(Report(current, (Outcome("process", State.FAILED, message=f"checking it {how}"),)))
        if ended:
            return reports


def _report(data: dict[str, Any]) -> Report:
    outcomes = [
        Outcome(c["check"], State(c["state"]), c["calls"], c["message"], c["sample"], c["seconds"])
        for c in data["checks"]
    ]
    return Report(data["operator"], tuple(outcomes), tuple(data["notes"]))


def launcher_arguments(*, on_host: bool = False) -> list[str]:
    """What starts Python on the host runtime: nothing where this process is on it, or where there is a CANN."""
    from ascend_graph.host.toolkit import is_active, real_cann

    cann = real_cann(os.environ)
    if is_active() or (cann and not on_host):
        return []
    return ["-m", "ascend_graph.host", "--quiet", *(["--force"] if cann else [])]


def _lines(request: Request, done: Sequence[str]) -> Iterator[dict[str, Any]]:
    """What a worker writes, and at last how it died if it did."""
    from ascend_graph.host.toolkit import is_active, is_strict, real_cann

    reading, writing = os.pipe()
    asked = {
        "module": request.module,
        "operators": request.operators,
        "checks": request.checks,
        "count": request.count,
        "seed": request.seed,
        "done": list(done),
    }
    launcher = launcher_arguments(on_host=request.on_host)
    if request.strict and not is_strict(os.environ):
        if real_cann(os.environ) and not is_active():
            raise ModuleError("--strict is a mode of the host runtime, and a CANN is installed here")
        launcher = ["-m", "ascend_graph.host", "--quiet", "--strict", *(["--force"] if is_active() else [])]
    command = [sys.executable, *launcher, "-m", "ascend_graph.checks.worker", json.dumps(asked), str(writing)]
    try:
        with started(command, pass_fds=(writing,), stdout=2) as worker:
            os.close(writing)
            yield from _read(reading, worker, request.limit)
    finally:
        os.close(reading)


def _read(reading: int, worker: subprocess.Popen[bytes], limit: float) -> Iterator[dict[str, Any]]:
    rest, running = b"", False
    until = time.monotonic() + limit
    while True:
        # Only an operator has a limit: what comes before may compile for minutes.
        ready, _, _ = select.select([reading], [], [], max(until - time.monotonic(), 0.0) if running else None)
        if not ready:
            end(worker)
            yield {"died": f"did not end within {limit:g} s"}
            return
        read = os.read(reading, 1 << 16)
        *lines, rest = (rest + read).split(b"\n")
        for line in lines:
            said = json.loads(line)
            if "start" in said:
                running, until = True, time.monotonic() + limit
            yield said
        if not read:
            break
    code = worker.wait()
    yield {"died": f"ended the process {f'by {signal.Signals(-code).name}' if code < 0 else f'with status {code}'}"}
