"""Command ``selftest``: the demo's rows and the checks on the present device, with one file of results.

The results include versions and times. ``operators`` has the tested operators, ``rows`` is the measuring process, ``atc``
runs CANN's compiler for exported graphs.
"""

from __future__ import annotations

import datetime
import os
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ascend_graph.checks.running import CheckRequest, check_module
from ascend_graph.doctor import examine
from ascend_graph.environment import is_active, real_cann
from ascend_graph.processors import DEFAULT_PROCESSOR
from ascend_graph.selftest.atc import compile_model, find_atc
from ascend_graph.sources.installed import cann_version, version_in
from ascend_graph.versions import installed
from ascend_graph.workers import answers, launcher_arguments

#: Format version of the file of results.
FORM = 1
_OPERATORS = "ascend_graph.selftest.operators:register"
#: Checks of each operator; ``dtypes`` is added only on a device, because the host computes with the CPU's dtypes.
_CHECKS = (
    "arguments", "repeats", "reference", "meta", "layout", "outside", "gradient", "ge", "ge_dynamic", "npugraph_ex", "export",
    "gradient_in_graphs", "recompilations",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Wanted:
    """Options of a self-test.

    Attributes:
        directory: The directory for exported graphs.
        modules: Modules whose operators are checked in addition to those of the self-test.
        soc: The SoC that exported graphs are compiled for.
        limit: Seconds that one row, or the checks of one operator, may take.
        count: Random calls of each operator, in addition to the special ones.
    """

    directory: Path
    modules: tuple[str, ...] = ()
    soc: str = DEFAULT_PROCESSOR
    limit: float = 300.0
    count: int = 6


def selftest(wanted: Wanted, started: Callable[[str], None] = lambda _: None) -> dict[str, Any]:
    """Run the self-test and return the results as JSON-compatible values; a crash or a hang is a result too.

    Args:
        wanted: The options of the self-test.
        started: Called with the name of each step before it runs.
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
        request = CheckRequest(module, checks=checks, count=wanted.count, limit=wanted.limit, on_host=not on_device)
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
    """Return whether the driver shows an NPU on this machine; a CANN toolkit can be installed without one."""
    return any(path.name.removeprefix("davinci").isdecimal() for path in Path("/dev").glob("davinci*"))


def as_text(results: dict[str, Any]) -> str:
    """Return the results as readable text: the device, rows, failures, and commands for graphs not yet compiled."""
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
            "atc was not found. Where a CANN toolkit is installed (it needs no NPU), these compile the graphs:",
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
    """Yield the measuring process's messages; if it dies, its row fails and a new process continues after it."""
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
    asked = {"done": list(done), "exports": str(wanted.directory.resolve()), "modules": wanted.modules}
    command = [*launcher_arguments(on_host=on_host), "-m", "ascend_graph.selftest.rows"]
    for line in answers(command, asked, limit=wanted.limit):
        if "died" not in line:
            yield line
        else:
            yield {"died": line["died"]} if line["exit"] != 0 else {"ended": True}
