"""Macros that build files of a repository define: ``-DNAME=value`` and ``compile_definitions(NAME=value)``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from ascend_graph.adoption.model import relative

#: Values of a macro with the directory of the build file; None for a value that the build computes.
Macros = Mapping[str, list[tuple[str, str | None]]]

_BUILD_FILES = re.compile(r"CMakeLists\.txt|setup\.py|.*\.cmake")
_MAX_BYTES = 1 << 20
_VALUE = r'\\?"?(?P<value>\$\{\w+\}|\w+)'
_DEFINED = re.compile(rf"(?:-D\s*|[\s(])(?P<name>[A-Za-z_]\w*)={_VALUE}")
_MARKS = re.compile(r"-D|compile_definitions")
_SET = re.compile(r'\bset\s*\(\s*(\w+)\s+"?(\w+)"?', re.IGNORECASE)


def build_macros(paths: Iterable[Path], root: Path) -> Macros:
    """Return the macros that build files define."""
    found: dict[str, list[tuple[str, str | None]]] = {}
    for path in paths:
        if not _BUILD_FILES.fullmatch(path.name):
            continue
        try:
            text = path.read_bytes()[:_MAX_BYTES].decode("utf-8", "replace")
        except OSError:
            continue
        if not _MARKS.search(text):
            continue
        variables = dict(_SET.findall(text))
        directory = relative(path.parent, root)
        for match in _DEFINED.finditer(text):
            value: str | None = match["value"]
            if match["value"].startswith("$"):
                value = variables.get(match["value"][2:-1])
            found.setdefault(match["name"], []).append(("" if directory == "." else directory, value))
    return found


def macro_value(name: str, file: str, macros: Macros) -> str | None:
    """Return the value of a macro in a file, or None if the build files do not state one.

    The build file of the innermost directory around the file counts, or all of them if none is around it.

    >>> macro_value("NAME", "a/b/ops.cpp", {"NAME": [("a", "inner"), ("", "outer")]})
    'inner'
    >>> macro_value("NAME", "c/ops.cpp", {"NAME": [("a", "one"), ("b", "two")]})
    """
    stated = macros.get(name, [])
    around = [one for one in stated if not one[0] or file.startswith(f"{one[0]}/")]
    innermost = max((len(directory) for directory, _ in around), default=0)
    values = {value for directory, value in around or stated if not around or len(directory) == innermost}
    return values.pop() if len(values) == 1 else None
