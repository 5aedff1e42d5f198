"""Processes that may crash or hang: run on the host runtime without a CANN, and read line by line. Imports no torch."""

from __future__ import annotations

import importlib.util
import json
import os
import runpy
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

from ascend_graph.compilation.processes import end, started
from ascend_graph.environment import is_active, real_cann
from ascend_graph.errors import AscendGraphError


class ModuleError(AscendGraphError):
    """Error of a module that cannot be imported, or registers none of the requested operators."""


def launcher_arguments(*, on_host: bool = False) -> list[str]:
    """Return the arguments that start Python on the host runtime; empty if this process is on it, or with a CANN."""
    cann = real_cann(os.environ)
    if is_active() or (cann and not on_host):
        return []
    return ["-m", "ascend_graph.host", "--quiet", *(["--force"] if cann else [])]


def _not_found(name: str) -> ModuleError:
    return ModuleError(
        f"module {name} not found in {Path.cwd()}, nor among the installed ones; name another module, or a .py file"
    )


def require_module(module: str) -> None:
    """Raise if a module or .py file does not exist, before anything is started or compiled for it.

    Raises:
        ModuleError: There is no such file or package.
    """
    name = module.partition(":")[0]
    if name.endswith(".py"):
        if not Path(name).is_file():
            raise ModuleError(f"file {name} not found in {Path.cwd()}; name one that exists")
        return
    package = name.partition(".")[0]
    if PathFinder.find_spec(package, [str(Path.cwd())]) is None and importlib.util.find_spec(package) is None:
        raise _not_found(package)


def import_operators(module: str) -> dict[str, Any]:
    """Import a module, or run a .py file, for the operators that it registers; the working directory is searched.

    Args:
        module: Its name or path; ``module:function`` if a function of it registers them.

    Returns:
        Its definitions by name.

    Raises:
        ModuleError: There is no such file, module or function.
    """
    require_module(module)
    module, _, function = module.partition(":")
    if module.endswith(".py"):
        names = runpy.run_path(module)
    else:
        sys.path.insert(0, str(Path.cwd()))
        try:
            names = vars(importlib.import_module(module))
        except ModuleNotFoundError as error:
            if error.name is None or not f"{module}.".startswith(f"{error.name}."):
                raise  # one that it imports is missing
            raise _not_found(error.name) from None
    if function:
        if not callable(names.get(function)):
            functions = sorted(name for name, value in names.items() if callable(value) and not name.startswith("_"))
            raise ModuleError(
                f"{module}:{function}: {module} has no such function; it has {', '.join(functions) or 'none'}"
            )
        names[function]()
    return names


def answers(
    arguments: Sequence[str],
    request: object,
    *,
    limit: float = float("inf"),
    restarts: Callable[[dict[str, Any]], bool] = lambda _: True,
) -> Iterator[dict[str, Any]]:
    """Start Python with a request, and yield the JSON objects that it writes, one per line.

    Args:
        arguments: Python's arguments; the request as JSON and the number of the file to write to come after them.
        request: The request to the process.
        limit: The time limit in seconds from a line that ``restarts`` to the next such line; before the first one there
            is no limit, for the process may compile.
        restarts: Returns whether a line restarts the limit; every line by default.

    Yields:
        Its objects, and at last ``{"exit": its status, or None, "died": how it ended}``.
    """
    reading, writing = os.pipe()
    command = [sys.executable, *arguments, json.dumps(request), str(writing)]
    try:
        with started(command, pass_fds=(writing,), stdout=2) as worker:
            os.close(writing)
            yield from _lines(reading, worker, limit, restarts)
    finally:
        os.close(reading)


def _lines(
    reading: int, worker: subprocess.Popen[bytes], limit: float, restarts: Callable[[dict[str, Any]], bool]
) -> Iterator[dict[str, Any]]:
    rest = b""
    until: float | None = None
    while True:
        wait = None if until is None or limit == float("inf") else max(until - time.monotonic(), 0.0)
        ready, _, _ = select.select([reading], [], [], wait)
        if not ready:
            end(worker)
            yield {"exit": None, "died": f"did not end within {limit:g} s"}
            return
        read = os.read(reading, 1 << 16)
        *lines, rest = (rest + read).split(b"\n")
        for line in lines:
            said = json.loads(line)
            if restarts(said):
                until = time.monotonic() + limit
            yield said
        if not read:
            break
    code = worker.wait()
    how = f"by {signal.Signals(-code).name}" if code < 0 else f"with status {code}"
    yield {"exit": code, "died": f"ended the process {how}"}
