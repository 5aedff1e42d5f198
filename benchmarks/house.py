"""Structure of the tree: import cycles, long modules and functions, crowded packages, duplicate names, dead functions.

The figures are counted by program over ``ascend_graph``, ``codegen`` and ``tests``. A function counts as used if its name
occurs in the package, in C++ or in a template, in the benchmarks, the examples or the documents: one that only tests call
is dead. Exceptions, each with its reason: ``benchmarks/data/house_explained.txt``.

    python -m ascend_graph.host benchmarks/house.py [--list MEASURE]

Prints a JSON object as the last line.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from vulture import Vulture

ROOT = Path(__file__).resolve().parents[1]
EXPLAINED = Path(__file__).parent / "data" / "house_explained.txt"
_PRODUCT = ("ascend_graph", "codegen")
#: Decorators that pass a function to something that calls it.
_CALLED_BY_OTHERS = (
    "@host_kernel*",
    "@plain_kernel*",
    "@*.register*",
    "@*fixture*",
    "@*.hookimpl*",
    "@overload",
    "@*.command*",
    "@*.group*",
)


def _sources(*places: str) -> list[Path]:
    return sorted(path for place in places for path in (ROOT / place).rglob("*.py"))


def _module(path: Path) -> str:
    name = path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".").removesuffix(".__init__")
    return f"ascend_graph.{name}" if name.startswith("codegen") else name


def _imports(tree: ast.Module, modules: Iterable[str]) -> Iterator[str]:
    """Yield the modules that a module imports at its top level."""
    known = set(modules)
    for node in tree.body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                if inner in known or node.module in known:
                    yield inner if inner in known else node.module


def import_cycles(trees: dict[Path, ast.Module]) -> list[str]:
    """Return the import cycles; each is cut before the search for the next."""
    modules = {_module(path): tree for path, tree in trees.items()}
    graph = {name: set(_imports(tree, modules)) - {name} for name, tree in modules.items()}
    found = []
    while True:
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            cycle = error.args[1]
            found.append(" → ".join(reversed(cycle)))
            graph[cycle[1]].discard(cycle[0])
        else:
            return found


def long_modules(trees: dict[Path, ast.Module], limit: int = 400) -> list[str]:
    """Return the modules of more than ``limit`` lines, the longest first."""
    lengths = {path: len(path.read_text().splitlines()) for path in trees}
    return [
        f"{n} {path.relative_to(ROOT)}" for path, n in sorted(lengths.items(), key=lambda item: -item[1]) if n > limit
    ]


def long_functions(trees: dict[Path, ast.Module], limit: int = 60) -> list[str]:
    """Return the functions of more than ``limit`` lines, docstrings included."""
    found = [
        (node.end_lineno - node.lineno + 1, f"{path.relative_to(ROOT)}:{node.lineno} {node.name}")
        for path, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.end_lineno is not None
    ]
    return [f"{n} {where}" for n, where in sorted(found, reverse=True) if n > limit]


def crowded_packages(trees: dict[Path, ast.Module], limit: int = 16) -> list[str]:
    """Return the packages that directly hold more than ``limit`` modules."""
    held: defaultdict[Path, int] = defaultdict(int)
    for path in trees:
        held[path.parent] += path.stem != "__init__"
    return [f"{n} {package.relative_to(ROOT)}" for package, n in held.items() if n > limit]


def duplicate_class_names(trees: dict[Path, ast.Module]) -> list[str]:
    """Return the public classes whose name occurs more than once."""
    where: defaultdict[str, list[str]] = defaultdict(list)
    for path, tree in trees.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                where[node.name].append(str(path.relative_to(ROOT)))
    return [f"{name}: {', '.join(paths)}" for name, paths in sorted(where.items()) if len(paths) > 1]


def wide_test_lines(limit: int = 120) -> list[str]:
    """Return the lines of tests over ``limit`` columns that are not tables of numbers."""
    return [
        f"{path.relative_to(ROOT)}:{number}"
        for path in _sources("tests")
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if len(line) > limit and not re.fullmatch(r"[\s\d.,()\[\]{}xXeEa-fA-F+*/-]*", line)
    ]


def imported_from_outside(trees: dict[Path, ast.Module]) -> list[str]:
    """Return the imports of the host runtime's internals by modules other than the command line and environment.py."""
    found = []
    for path, tree in trees.items():
        place = path.relative_to(ROOT).as_posix()
        if place.startswith(("ascend_graph/host/", "ascend_graph/cli/")) or place == "ascend_graph/environment.py":
            continue
        for node in ast.walk(tree):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            found += [f"{place}: {name}" for name in names if name.startswith("ascend_graph.host.")]
    return found


def engine_imports_codegen() -> bool:
    """Return whether importing the GE graph engine loads the code generator or Jinja."""
    code = (
        "import sys, ascend_graph.host.runtime.engine, ascend_graph.host.packages.load; "
        "sys.exit(any(name in sys.modules for name in ('ascend_graph.codegen', 'jinja2')))"
    )
    return bool(subprocess.run([sys.executable, "-c", code], check=False).returncode)


def explained() -> set[str]:
    """Return the names that only look dead; each line of the list is ``name  # reason``."""
    lines = EXPLAINED.read_text().splitlines() if EXPLAINED.exists() else []
    return {line.partition("#")[0].strip() for line in lines if line.partition("#")[2].strip()}


def dead_public_functions() -> list[str]:
    """Return the public functions, methods and classes that only tests name."""
    finder = Vulture(ignore_decorators=list(_CALLED_BY_OTHERS))
    finder.scavenge([str(ROOT / place) for place in (*_PRODUCT, "benchmarks", "trials", "examples")])
    patterns = ("*.cpp", "*.h", "*.jinja", "*.md", "*.toml", "*.cmake", "*.txt", "Makefile", "bisheng", "*.in")
    places = ("csrc", "codegen", "docs", "examples", "ascend_graph", "CMakeLists.txt", "pyproject.toml", "mkdocs.yml")
    texts = [
        path.read_text(errors="replace")
        for place in places
        for path in ([ROOT / place] if (ROOT / place).is_file() else (ROOT / place).rglob("*"))
        if path.is_file() and any(path.match(pattern) for pattern in patterns)
    ]
    named = {word for text in texts for word in re.findall(r"[A-Za-z_]\w*", text)}
    # Names in strings of the product: attributes that are looked up, module:function.
    for path in _sources(*_PRODUCT):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 80:
                named |= set(re.findall(r"[A-Za-z_]\w*", node.value))
    known = explained()
    return [
        f"{item.filename.relative_to(ROOT)}:{item.first_lineno} {item.name}"
        for item in finder.get_unused_code()
        if item.typ in ("function", "method", "class", "property")
        and item.filename.relative_to(ROOT).parts[0] in _PRODUCT
        and not item.name.startswith("_")
        and item.name not in named | known
    ]


def product_lines() -> int:
    """Return the number of shipped lines: Python, C++, templates and CMake."""
    suffixes = {".py", ".cpp", ".h", ".jinja", ".cmake", ".in", ".toml", ".txt", ".pyi"}
    files = subprocess.run(
        ["git", "ls-files", *_PRODUCT, "csrc"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    return sum(
        len((ROOT / name).read_text(errors="replace").splitlines())
        for name in files
        if Path(name).suffix in suffixes and (ROOT / name).is_file()
    )


def main() -> None:
    """Print the figures, and with ``--list`` the entries of one of them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--list", metavar="MEASURE", help="print the entries of one figure")
    wanted = parser.parse_args().list
    trees = {path: ast.parse(path.read_text()) for path in _sources(*_PRODUCT)}
    all_lengths = [len(path.read_text().splitlines()) for path in trees]
    lists = {
        "import_cycles": import_cycles(trees),
        "modules_over_400_lines": long_modules(trees),
        "functions_over_60_lines": long_functions(trees),
        "packages_over_16_modules": crowded_packages(trees),
        "duplicate_class_names": duplicate_class_names(trees),
        "test_lines_over_120": wide_test_lines(),
        "host_imported_from_outside": imported_from_outside(trees),
        "dead_public_functions": dead_public_functions(),
    }
    if wanted is not None:
        if wanted not in lists:
            raise SystemExit(f"--list {wanted}: expected one of {', '.join(lists)}")
        print("\n".join(lists[wanted]))
    figures = {name: len(found) for name, found in lists.items()}
    print(
        json.dumps(
            {
                **figures,
                "largest": max(all_lengths),
                "engine_imports_codegen": engine_imports_codegen(),
                "product_lines": product_lines(),
            }
        )
    )


if __name__ == "__main__":
    main()
