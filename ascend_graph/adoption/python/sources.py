"""Functions that a Python file takes from another file of the repository."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

from ascend_graph.adoption.annotations import last_name
from ascend_graph.adoption.model import PythonFunction, SourcePlace, relative
from ascend_graph.adoption.python.decorators import FakeWrapper, fake_wrappers

#: Maximum number of modules that pass on what they import.
_MAX_IMPORTS = 4
_Node = TypeVar("_Node", ast.FunctionDef, ast.ClassDef)


class PythonSources:
    """Python files of a repository by module; one is parsed when a function of it is first asked for."""

    def __init__(self, paths: Iterable[Path], root: Path) -> None:
        self._files = {relative(path, root).removesuffix(".py"): path for path in paths if path.suffix == ".py"}
        self._root = root
        self._read: dict[str, dict[str, ast.AST]] = {}
        self._wrappers: dict[str, dict[str, FakeWrapper]] = {}
        #: Classes whose instances define operators, and definitions with a computed schema with the class that has them.
        self.defining: set[tuple[str, str]] = set()
        self.computed: list[tuple[SourcePlace, tuple[str, str] | None]] = []

    def function(self, node: ast.ImportFrom, name: str, file: str) -> PythonFunction | None:
        """Return the function that an import of a file names, or None if it is not one of this repository."""
        found = self._imported(node, name, file, ast.FunctionDef)
        if found is None:
            return None
        where, held = found
        return PythonFunction(held.name, held, SourcePlace(where, held.lineno), self._read[where.removesuffix(".py")])

    def named(self, name: str, file: str, kind: type[_Node]) -> tuple[str, _Node] | None:
        """Return the function or class that a name means in a file, with its own file; imports are followed."""
        held = self._names(file.removesuffix(".py")).get(name)
        if isinstance(held, kind):
            return file, held
        return self._imported(held, name, file, kind) if isinstance(held, ast.ImportFrom) else None

    def called(self, node: ast.expr, file: str) -> PythonFunction | None:
        """Return the function that a name, or an attribute of an imported module, means in a file."""
        match node:
            case ast.Name():
                found = self.named(node.id, file, ast.FunctionDef)
            case ast.Attribute(value=ast.Name(id=owner)):
                held = self._names(file.removesuffix(".py")).get(owner)
                module = self._submodule(held, owner, file) if isinstance(held, ast.ImportFrom) else None
                found = None if module is None else self.named(node.attr, f"{module}.py", ast.FunctionDef)
            case _:
                found = None
        if found is None:
            return None
        where, function = found
        place = SourcePlace(where, function.lineno)
        return PythonFunction(function.name, function, place, self._names(where.removesuffix(".py")))

    def library(self, node: ast.expr, file: str) -> str | None:
        """Return the namespace of the library that an expression of a file is: made there, or by a function."""
        if isinstance(node, ast.Name):
            held = self._names(file.removesuffix(".py")).get(node.id)
            return _namespace_of(held) if isinstance(held, ast.Call) else None
        if not isinstance(node, ast.Call):
            return None
        made = None if last_name(node.func) == "Library" else self.named(last_name(node.func), file, ast.FunctionDef)
        if made is None:
            return _namespace_of(node)
        spaces = {space for one in ast.walk(made[1]) if isinstance(one, ast.Call) and (space := _namespace_of(one))}
        return spaces.pop() if len(spaces) == 1 else None

    def fake_of(self, call: ast.Call, file: str) -> tuple[ast.expr, bool] | None:
        """Return the operator whose meta function a decorator of the repository's own registers.

        With it: whether the decorated function is the meta function. None if the decorator registers none.
        """
        module, name = file.removesuffix(".py"), last_name(call.func)
        found: str | None = module
        match call.func:
            case ast.Attribute(value=ast.Name(id=owner)):
                held = self._names(module).get(owner)
                found = self._submodule(held, owner, file) if isinstance(held, ast.ImportFrom) else None
            case ast.Name() if (taken := self.named(name, file, ast.FunctionDef)) is not None:
                found, name = taken[0].removesuffix(".py"), taken[1].name
        if found is None:
            return None
        if found not in self._wrappers:
            self._wrappers[found] = self._read_wrappers(found)
        wrapper = self._wrappers[found].get(name)
        return None if wrapper is None else (wrapper.named(call, self._names(found)), wrapper.decorates)

    def _read_wrappers(self, module: str) -> dict[str, FakeWrapper]:
        try:
            return fake_wrappers(ast.parse(self._files[module].read_bytes()))
        except (KeyError, OSError, SyntaxError, ValueError, RecursionError, MemoryError):
            return {}

    def _submodule(self, node: ast.ImportFrom, name: str, file: str) -> str | None:
        """Return the file of a module that an import takes from its package, without its suffix."""
        real = next((one.name for one in node.names if (one.asname or one.name) == name), name)
        path = f"{node.module}.{real}" if node.module else real
        return self._module(ast.ImportFrom(path, [], node.level), file)

    def _imported(
        self, node: ast.ImportFrom, name: str, file: str, kind: type[_Node], depth: int = 0
    ) -> tuple[str, _Node] | None:
        """Return what an import of a file takes, with its file; a package may pass on what a module of it has."""
        found = self._module(node, file)
        if found is None or depth > _MAX_IMPORTS:
            return None
        real = next((one.name for one in node.names if (one.asname or one.name) == name), name)
        held = self._names(found).get(real)
        if isinstance(held, kind):
            return f"{found}.py", held
        if isinstance(held, ast.ImportFrom):
            return self._imported(held, real, f"{found}.py", kind, depth + 1)
        return None

    def _module(self, node: ast.ImportFrom, file: str) -> str | None:
        """Return the file of a module, without its suffix; None if there is none, or several."""
        parts = (node.module or "").replace(".", "/")
        if node.level:
            above = file.split("/")[: -node.level]
            return self._one(["/".join([*above, parts]) if parts else "/".join(above)])
        exact = self._one([parts])
        return exact or self._one([one.removesuffix("/__init__") for one in self._files if _ends(one, parts)])

    def _one(self, modules: list[str]) -> str | None:
        found = {one for module in modules for one in (module, f"{module}/__init__") if one in self._files}
        return found.pop() if len(found) == 1 else None

    def _names(self, module: str) -> dict[str, ast.AST]:
        """Return the functions, classes, assigned values and imports of a module by name."""
        if module not in self._read:
            names: dict[str, ast.AST] = {}
            try:
                body = ast.parse(self._files[module].read_bytes()).body
            except (KeyError, OSError, SyntaxError, ValueError, RecursionError, MemoryError):
                body = []
            for one in body:
                if isinstance(one, ast.FunctionDef | ast.ClassDef):
                    names[one.name] = one
                elif isinstance(one, ast.ImportFrom):
                    names |= {taken.asname or taken.name: one for taken in one.names}
                elif isinstance(one, ast.Assign):
                    names |= {target.id: one.value for target in one.targets if isinstance(target, ast.Name)}
            self._read[module] = names
        return self._read[module]


def _namespace_of(node: ast.Call) -> str | None:
    """Return the namespace of ``Library("namespace", …)``, or None."""
    match node.args:
        case [ast.Constant(str(value)), *_] if last_name(node.func) == "Library":
            return value
    return None


def _ends(file: str, module: str) -> bool:
    """Return whether a file is a module below a directory of the repository, such as ``src`` or ``python``."""
    return file.removesuffix("/__init__").endswith(f"/{module}")
