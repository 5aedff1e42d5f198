"""Public names of a package, imported on first use; the package's stub is their only list.

Only the standard library is needed, and not even ``ast``: a build imports the package before anything is installed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

_LINE = re.compile(r"^from (\.[\w.]*) import (\w+) as (\w+)$", re.MULTILINE)


def public_names(package: str, file: str) -> dict[str, str]:
    """Return the module of each public name, read from the package's stub.

    Args:
        package: The package's name.
        file: Its ``__init__.py``; the stub is next to it.
    """
    stub = Path(file).with_suffix(".pyi").read_text(encoding="utf-8")
    return {name: package + module if module != "." else package for module, name, _ in _LINE.findall(stub)}


def load(package: str, name: str, holder: str) -> Any:
    """Import a public name; a name whose holder is the package itself is a submodule."""
    return import_module(f"{package}.{name}") if holder == package else getattr(import_module(holder), name)


def attributes(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a package."""
    names = public_names(package, file)

    def look_up(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}; it has {', '.join(sorted(names))}")
        return load(package, name, names[name])

    return look_up, lambda: sorted(names), sorted(names)
