"""``selftest``: the demo's rows and the checks on whatever device is there, as one file of results with versions and times.

``operators`` is what is tried, ``rows`` the process that measures it, ``atc`` CANN's compiler for graphs that are exported.
"""

from __future__ import annotations

import datetime
import json
import os
import platform
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ascend_graph.checks.doctor import examine
from ascend_graph.checks.running import Request, check_module, launcher_arguments
from ascend_graph.checks.selftest.atc import compile_model, find_atc
from ascend_graph.host.toolkit import is_active, real_cann
from ascend_graph.sources.installed import cann_version, version_in
from ascend_graph.versions import installed

#: The form of the file of results.
FORM = 1
_OPERATORS = "ascend_graph.checks.selftest.operators:register"
#: What is asked of each operator; ``dtypes`` on a device alone, for the host computes with what the CPU has.
_CHECKS = (
    "arguments", "repeats", "reference", "meta", "layout", "outside", "gradient", "ge", "ge_dynamic", "npugraph_ex", "export",
    "gradient_in_graphs", "recompilations",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to test.

    Attributes:
        directory: Where exported graphs are put.
        modules: Modules whose operators are checked beside those of the self-test.
        soc: The processor that exported graphs are compiled for.
        limit: Seconds that one row, or the checks of one operator, may take.
        count: Random calls of each operator, beside the special ones.
    """

    directory: Path
    modules: tuple[str, ...] = ()
    soc: str = "Ascend910B1"
    limit: float = 300.0
    count: int = 6


def selftest(wanted: Wanted, started: Callable[[str], None] = lambda _: None) -> dict[str, Any]:
    """The results, as values that JSON has. What crashes or hangs is a result too.

    Args:
        wanted: What to test.
        started: Is told what comes next.
    """
    begun = time.perf_counter()
    on_device = real_cann(os.environ) is not None and not is_active() and has_device()
    about: dict[str, Any] = {}
    rows: list[dict[str, Any]] = []
    exports: list[dict[str, Any]] = []
    for kind, value in _measured(wanted, not on_device, started):
        if kind == "about":
            about = value
        else:
            (rows if kind == "row" else exports).append(value)
    reports: list[dict[str, Any]] = []
    for module in (_OPERATORS, *wanted.modules):
        checks = (*_CHECKS, "dtypes") if on_device else _CHECKS
        request = Request(module, checks=checks, count=wanted.count, limit=wanted.limit, on_host=not on_device)
        reports += [
            report.as_dict() for report in check_module(request, started=lambda name: started(f"checking {name}"))
        ]
    atc = find_atc(os.environ)
    compiled: list[dict[str, Any]] = []
    for export in exports:
        if atc is not None:
            started(f"atc {export['name']}")
        compiled.append({"name": export["name"], **compile_model(atc, Path(export["model"]), wanted.soc)})
    doctor = [finding.as_dict() for finding in examine(os.environ)]
    failed = [
        *(row["name"] for row in rows if not row["ok"]),
        *(report["operator"] for report in reports if not report["ok"]),
        *(graph["name"] for graph in compiled if graph["ok"] is False),
    ]
    return {
        "form": FORM,
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "ran_on": "device" if on_device else "host runtime",
        "device": about,
        "versions": _versions(),
        "rows": rows,
        "checks": reports,
        "atc": {"program": None if atc is None else str(atc), "soc": wanted.soc, "graphs": compiled},
        "doctor": doctor,
        "failed": failed,
        "ok": not failed,
        "seconds": round(time.perf_counter() - begun, 1),
    }


def has_device() -> bool:
    """Whether the driver shows this machine an NPU; a CANN toolkit can be installed without one."""
    return any(path.name.removeprefix("davinci").isdecimal() for path in Path("/dev").glob("davinci*"))


def as_text(results: dict[str, Any]) -> str:
    """The results for people: what ran where, what failed, and how graphs are compiled where that is left to do."""
    rows, graphs = results["rows"], results["atc"]["graphs"]
    versions = ", ".join(f"{name} {version}" for name, version in results["versions"].items() if version)
    width = max((len(row["name"]) for row in rows), default=0)
    lines = [f"on the {results['ran_on']}: {versions}", ""]
    for row in rows:
        said = f"{row['first_ms']:10.1f} ms first {row['call_us']:10.1f} µs per call" if row["ok"] else row["error"]
        lines.append(f"{'ok' if row['ok'] else '!!'}  {row['name']:{width}}  {said}")
    for report in results["checks"]:
        failed = [check for check in report["checks"] if check["state"] == "failed"]
        count = sum(check["state"] == "passed" for check in report["checks"])
        lines.append(f"{'!!' if failed else 'ok'}  {report['operator']}: {count} checks passed, {len(failed)} failed")
        lines += [f"      {check['check']}: {check['message']}" for check in failed]
    if graphs and results["atc"]["program"] is None:
        lines += [
            "",
            "There is no atc here. Where a CANN toolkit is installed (it needs no NPU), these compile the graphs:",
        ]
        lines += [f"  {graph['command']}" for graph in graphs]
    for graph in graphs:
        if graph["ok"] is not None:
            lines.append(
                f"{'ok' if graph['ok'] else '!!'}  atc {graph['name']}{'' if graph['ok'] else ': ' + graph['output']}"
            )
    failed = results["failed"]
    verdict = f"{len(failed)} failed: {', '.join(failed)}" if failed else "all agree"
    return "\n".join([*lines, "", f"{verdict} ({results['seconds']} s)"])


def _versions() -> dict[str, str | None]:
    from ascend_graph import __version__

    packages = {name: installed(name) for name in ("torch", "torch_npu")}
    home = os.environ.get("ASCEND_HOME_PATH") or os.environ.get("ASCEND_TOOLKIT_HOME")
    cann = cann_version(Path(home)) if home and real_cann(os.environ) else None
    return {
        "ascend_graph": __version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "system": platform.platform(),
        **{name: None if package is None else package.version for name, package in packages.items()},
        "cann": cann,
        "driver": version_in((Path("/usr/local/Ascend/driver/version.info"),)),
    }


def _measured(wanted: Wanted, on_host: bool, started: Callable[[str], None]) -> Iterator[tuple[str, dict[str, Any]]]:
    """What the measuring process says; where it dies the row is a failure, and another process goes on behind it."""
    done: list[str] = []
    while True:
        current = ""
        ended = False
        for said in _lines(wanted, on_host, done):
            (kind, value), *_ = said.items()
            if kind == "start":
                current = value
                done.append(current)
                started(current)
            elif kind == "died":
                yield "row", {"name": current or "start", "ok": False, "error": value}
                ended = not current
            elif kind == "ended":
                ended = True
            else:
                current = "" if kind != "about" else current
                yield kind, value
        if ended:
            return


def _lines(wanted: Wanted, on_host: bool, done: Sequence[str]) -> Iterator[dict[str, Any]]:
    launcher = launcher_arguments(on_host=on_host)
    asked = {"done": list(done), "exports": str(wanted.directory.resolve()), "modules": wanted.modules}
    request = json.dumps(asked)
    reading, writing = os.pipe()
    command = [sys.executable, *launcher, "-m", "ascend_graph.checks.selftest.rows", request, str(writing)]
    worker = subprocess.Popen(command, pass_fds=(writing,), stdout=2, start_new_session=True)
    os.close(writing)
    rest, running, died = b"", False, ""
    try:
        while True:
            # What comes before the first row may compile for minutes.
            ready, _, _ = select.select([reading], [], [], wanted.limit if running else None)
            if not ready:
                died = f"did not end within {wanted.limit:g} s"
                break
            read = os.read(reading, 1 << 16)
            *lines, rest = (rest + read).split(b"\n")
            for line in lines:
                running = True
                yield json.loads(line)
            if not read:
                code = worker.wait()
                died = (
                    "" if code == 0 else f"ended by {signal.Signals(-code).name}" if code < 0 else f"ended with {code}"
                )
                break
    finally:
        os.close(reading)
        if worker.poll() is None:
            os.killpg(worker.pid, signal.SIGKILL)
            worker.wait()
    yield {"died": died} if died else {"ended": True}
