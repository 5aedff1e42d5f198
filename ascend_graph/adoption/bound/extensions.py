"""Python modules of bound functions: where a repository's Python imports them from, or its build files name them."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ascend_graph.adoption.annotations import last_name
from ascend_graph.adoption.bound.gradients import GradientPair, read_gradients
from ascend_graph.adoption.model import BoundFunction, relative

#: Packages that are not a repository's own extension.
_OTHERS = frozenset(
    {"torch", "torch_npu", "torchair", "torchvision", "numpy", "np", "math", "os", "sys", "scipy", "triton", "tl"}
)
_MACRO = re.compile(r"\bTORCH_EXTENSION_NAME\s*=\s*(\w+)")
_MAX_BYTES = 4 << 20


@dataclass(slots=True)
class Extensions:
    """Python files of a repository, as far as they tell the modules of bound functions."""

    root: Path
    #: Modules and packages that the repository has in Python.
    modules: set[str] = field(default_factory=set)
    #: Those that are files, not packages.
    files: set[str] = field(default_factory=set)
    #: Module → names that Python takes from it.
    taken: dict[str, Counter[str]] = field(default_factory=dict)
    #: Module:class → C++ files that the class builds and loads.
    builders: dict[str, tuple[str, ...]] = field(default_factory=dict)
    #: Function → the autograd function that computes with it, and the functions of its gradient.
    gradients: dict[str, GradientPair] = field(default_factory=dict)
    #: Name of an extension → C++ files that build files list; none if they list patterns.
    built: dict[str, tuple[str, ...]] = field(default_factory=dict)
    #: Name of an extension → directory of its build file, relative to the root.
    directories: dict[str, str] = field(default_factory=dict)

    def target(self, bound: BoundFunction, others: Iterable[BoundFunction], *, is_alone: bool = True) -> str:
        """Return ``module:function`` of a bound function; empty if nothing tells the module.

        Args:
            bound: The function.
            others: The functions of its module.
            is_alone: Whether no other file of the repository binds a module that its build names.
        """
        file = bound.function.file if bound.function is not None else bound.place.file
        files = {bound.place.file, file}
        for maker, sources in self.builders.items():
            if any(_names(one, files) for one in sources):
                return f"{maker}().load().{bound.name}"
        names = {one.name.partition(".")[0] for one in others}
        votes = {
            module: len(names & {*taken})
            for module, taken in self.taken.items()
            if names & {*taken} and self._may_be(module, bound.module)
        }
        best = [module for module, count in votes.items() if count == max(votes.values())]
        if len(best) == 1:
            parent, _, held = best[0].rpartition(".")
            # What a module of the repository holds is an object: the extension that it has loaded.
            return f"{parent}:{held}.{bound.name}" if parent in self.files else f"{best[0]}:{bound.name}"
        listed = [name for name, sources in self.built.items() if any(_names(one, files) for one in sources)]
        listed = listed or self._around(bound.place.file) or (list(self.built) if is_alone else [])
        if len(listed) == 1:
            return f"{listed[0]}:{bound.name}"
        return "" if bound.module == "TORCH_EXTENSION_NAME" else f"{bound.module}:{bound.name}"

    def _around(self, file: str) -> list[str]:
        """Return the extensions of the innermost build file around a file, as far as these list no sources."""
        around = [
            name for name, directory in self.directories.items() if directory == "." or file.startswith(f"{directory}/")
        ]
        depth = max((_depth(self.directories[one]) for one in around), default=0)
        return [one for one in around if _depth(self.directories[one]) == depth and not self.built[one]]

    def _may_be(self, module: str, stated: str) -> bool:
        if stated != "TORCH_EXTENSION_NAME" and module.rpartition(".")[2] != stated:
            return False
        return module not in self.modules and module.partition(".")[0] not in _OTHERS


def _depth(directory: str) -> int:
    return 0 if directory == "." else directory.count("/") + 1


def _names(written: str, files: set[str]) -> bool:
    """Return whether a path of a build file is one of these files."""
    plain = written.replace("\\", "/").lstrip("./")
    return bool(plain) and any(("/" + one).endswith("/" + plain) for one in files)


def read_extensions(paths: Iterable[Path], root: Path, names: set[str]) -> Extensions:
    """Read the Python files and build files of a repository.

    Args:
        paths: Its files.
        root: Its directory.
        names: The names of bound functions.
    """
    found = Extensions(root)
    pattern = re.compile(
        rb"\b(?:" + b"|".join(sorted(re.escape(one.encode()) for one in names)) + rb")\b|\bsources\b|Extension"
    )
    for path in paths:
        if path.suffix == ".py":
            found.modules.add(module_of(path, root))
            if path.name != "__init__.py":
                found.files.add(module_of(path, root))
        if path.suffix not in (".py", ".txt", ".cmake"):
            continue
        try:
            data = path.read_bytes()
        except OSError:
            continue
        if len(data) > _MAX_BYTES:
            continue
        if path.suffix != ".py":
            for match in _MACRO.finditer(data.decode("utf-8", "replace")):
                found.built.setdefault(match[1], ())
                found.directories.setdefault(match[1], relative(path.parent, root))
        elif pattern.search(data):
            try:
                tree = ast.parse(data, str(path))
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                continue
            nodes = list(ast.walk(tree))
            _read_uses(nodes, module_of(path, root), path.name == "__init__.py", names, found)
            _read_builders(tree, nodes, module_of(path, root), relative(path.parent, root), found)
            for name, pair in read_gradients(nodes, relative(path, root), names):
                found.gradients.setdefault(name, pair)
    return found


def module_of(path: Path, root: Path) -> str:
    """Return the dotted name of a Python file, from the outermost package in the repository."""
    parts = [] if path.stem == "__init__" else [path.stem]
    parent = path.parent
    while parent != root.parent and (parent / "__init__.py").exists():
        parts.insert(0, parent.name)
        parent = parent.parent
    if len(parts) <= 1 and not (path.parent / "__init__.py").exists():
        # A namespace package: the path from the root.
        parts = [*relative(path.parent, root).split("/"), path.stem] if path.parent != root else [path.stem]
    return ".".join(part for part in parts if part not in (".", ""))


def _read_uses(nodes: list[ast.AST], module: str, is_package: bool, names: set[str], found: Extensions) -> None:
    """Note the modules from which names of bound functions are taken."""
    held: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            for one in node.names:
                held[one.asname or one.name.partition(".")[0]] = one.name if one.asname else one.name.partition(".")[0]
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, module, is_package)
            for one in node.names:
                held[one.asname or one.name] = f"{base}.{one.name}" if base else one.name
                if one.name in names and base:
                    found.taken.setdefault(base, Counter())[one.name] += 1
    for node in nodes:
        if isinstance(node, ast.Attribute) and node.attr in names:
            owner = ast.unparse(node.value)
            first, _, rest = owner.partition(".")
            if re.fullmatch(r"[\w.]+", owner) and first in held:
                full = f"{held[first]}.{rest}" if rest else held[first]
                found.taken.setdefault(full, Counter())[node.attr] += 1


def _absolute(node: ast.ImportFrom, module: str, is_package: bool) -> str:
    if not node.level:
        return node.module or ""
    parts = module.split(".")
    kept = parts[: len(parts) - node.level + is_package]
    return ".".join([*kept, *((node.module or "").split("."))]).strip(".")


def _read_builders(tree: ast.Module, nodes: list[ast.AST], module: str, directory: str, found: Extensions) -> None:
    """Note classes that list sources and load what is built of them, and extensions of setup files."""
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    for name, node in classes.items():
        sources = tuple(_listed(node, classes))
        if sources and _is_made_without_arguments(node) and not name.startswith("_"):
            found.builders.setdefault(f"{module}:{name}", sources)
    calls = [one for one in nodes if isinstance(one, ast.Call) and last_name(one.func).endswith("Extension")]
    constants = _constants(nodes) if calls else {}
    for call in calls:
        given = {one.arg: one.value for one in call.keywords}
        stated = given.get("name", call.args[0] if call.args else None)
        if isinstance(stated, ast.Name):
            stated = constants.get(stated.id)
        if isinstance(stated, ast.Constant) and isinstance(stated.value, str):
            listed = given.get("sources", call.args[1] if len(call.args) > 1 else None)
            sources = tuple(_strings(listed)) if listed is not None else ()
            found.built[stated.value] = () if any("*" in one for one in sources) else sources
            found.directories[stated.value] = directory


def _constants(nodes: list[ast.AST]) -> dict[str, ast.expr]:
    """Return the names that a file assigns strings, wherever it does, to one string alone."""
    found: dict[str, dict[str, ast.expr]] = {}
    for node in nodes:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            found.setdefault(node.targets[0].id, {})[ast.unparse(node.value)] = node.value
    return {name: next(iter(some.values())) for name, some in found.items() if len(some) == 1}


def _listed(node: ast.ClassDef, classes: dict[str, ast.ClassDef]) -> Iterator[str]:
    """Yield the sources that a class, or its base in the same file, lists."""
    for one in node.body:
        if isinstance(one, ast.FunctionDef) and one.name == "sources":
            yield from _strings(one)
            return
    for base in node.bases:
        if last_name(base) in classes and last_name(base) != node.name:
            yield from _listed(classes[last_name(base)], {k: v for k, v in classes.items() if k != node.name})


def _is_made_without_arguments(node: ast.ClassDef) -> bool:
    made = next((one for one in node.body if isinstance(one, ast.FunctionDef) and one.name == "__init__"), None)
    return made is not None and len(made.args.args) - len(made.args.defaults) == 1


def _strings(node: ast.AST) -> Iterator[str]:
    for one in ast.walk(node):
        if isinstance(one, ast.Constant) and isinstance(one.value, str):
            yield one.value
