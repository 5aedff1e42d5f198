"""Tracer of the lines of the stack's Python that no program reached.

It traces only a few files, because it slows down Python's own calls.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import ascend_graph

#: Traced parts, relative to the package.
PARTS = (
    "registration/conversion",
    "registration/writing",
    "registration/dimensions/batching.py",
    "autograd",
    "binding",
    "dispatch",
    "eager",
    "host/runtime/engine",
    "host/packages",
    "host/bridge.py",
)

_new: set[tuple[str, int]] = set()
_known: set[tuple[str, int]] = set()


def files(parts: Iterable[str] = PARTS) -> list[Path]:
    """Return the files of the parts.

    Raises:
        FileNotFoundError: a part is not in the package, as after a move.
    """
    root = Path(ascend_graph.__file__).parent
    found = []
    for part in parts:
        path = root / part
        if not path.exists():
            raise FileNotFoundError(f"{part} is not in {root}; expected a module or a package of it")
        found += sorted(path.rglob("*.py")) if path.is_dir() else [path]
    return found


def start(_: str = "") -> None:
    """Trace the lines of the parts' files in this process from now on."""
    names = {str(path): str(path) for path in files()}

    def line(frame: FrameType, event: str, _: Any) -> Any:
        if event == "line":
            place = frame.f_code.co_filename, frame.f_lineno
            if place not in _known:
                _known.add(place)
                _new.add(place)
        return line

    def call(frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code.co_filename not in names:
            return None
        return line(frame, "line", None)

    threading.settrace(call)
    sys.settrace(call)


def taken() -> set[tuple[str, int]]:
    """Return the lines that were reached since the last call."""
    found = set(_new)
    _new.clear()
    return found


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def lines(path: Path) -> set[int]:
    """Return the lines with code in a file's functions; a definition's own line runs at import and is left out."""
    module = compile(path.read_text(), str(path), "exec")
    found: set[int] = set()
    for code in _codes(module):
        if (
            code is module or code.co_name == "<module>" or not code.co_flags & 0x2
        ):  # neither a module's body nor a class's
            continue
        found |= {n for _, _, n in code.co_lines() if n is not None and n != code.co_firstlineno}
    return found


def report(reached: set[tuple[str, int]]) -> Iterator[str]:
    """Yield a line for each file: the number and the ranges of unreached lines in its functions."""
    root = Path(ascend_graph.__file__).parent
    for path in files():
        there = lines(path)
        missed = sorted(there - {n for name, n in reached if name == str(path)})
        if there:
            text = ", ".join(_ranges(missed, there)) or "all reached"
            yield f"{path.relative_to(root)}: {len(missed)} of {len(there)} lines unreached: {text}"


def _ranges(missed: list[int], there: set[int]) -> Iterator[str]:
    start = end = 0
    for n in missed:
        if start and not any(end < other < n for other in there):
            end = n
            continue
        if start:
            yield f"{start}-{end}" if end > start else str(start)
        start = end = n
    if start:
        yield f"{start}-{end}" if end > start else str(start)
