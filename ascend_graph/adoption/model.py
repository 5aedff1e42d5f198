"""Definitions and implementations of operators, as a repository's sources state them."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from ascend_graph.adoption.cpp.functions import CppFunction
from ascend_graph.binding.op_schema import OpSchema
from ascend_graph.sources import Diagnostic, Severity

#: Dispatch keys whose implementation is a meta function.
META_KEYS = frozenset({"Meta", "FakeTensor", "fake"})
#: Dispatch keys whose implementation computes.
KERNEL_KEYS = (
    "PrivateUse1",
    "NPU",
    "XLA",
    "CompositeExplicitAutograd",
    "CompositeImplicitAutograd",
    "AutogradPrivateUse1",
    "CPU",
    "",
)

#: Dispatch keys of other devices.
OTHER_DEVICES = frozenset(
    {"CUDA", "HIP", "XPU", "MPS", "HPU", "IPU", "MTIA", "MAIA", "Vulkan", "VE", "PrivateUse2", "PrivateUse3"}
)


@dataclass(frozen=True, slots=True)
class SourcePlace:
    """Position in a source: the file relative to the repository, and the line."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class PythonFunction:
    """A Python function with its syntax tree."""

    name: str
    node: ast.FunctionDef | ast.Lambda
    place: SourcePlace
    #: The functions and constants of its module, by name.
    module: dict[str, ast.AST] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Definition:
    """Schema of an operator, as a source defines it."""

    name: str
    schema: OpSchema
    place: SourcePlace
    #: Conditions of the preprocessor around the definition.
    conditions: tuple[str, ...] = ()
    #: True if the schema is made from a function's declaration.
    inferred: bool = False
    #: The line on which the definition ends; 0 if it is one line.
    last_line: int = 0
    #: The Python function that computes it, ``module:function``, if the operator is defined from it.
    computed_by: str = ""


@dataclass(frozen=True, slots=True)
class Implementation:
    """Implementation of an operator for one dispatch key."""

    #: ``namespace::name``, with ``.overload`` if it is that of one; see :func:`operator_key`.
    name: str
    key: str
    #: The function, if it is found; its name as written otherwise.
    function: CppFunction | PythonFunction | None
    written: str
    place: SourcePlace

    @property
    def is_meta(self) -> bool:
        """True for a meta function."""
        return self.key in META_KEYS


@dataclass(frozen=True, slots=True)
class BoundFunction:
    """A C++ function that pybind11 binds without a schema."""

    #: The name in the module; those of submodules have a dot.
    name: str
    #: The first argument of ``PYBIND11_MODULE``.
    module: str
    function: CppFunction | None
    #: The function as written.
    written: str
    place: SourcePlace
    #: ``py::arg``: names, with the default as written.
    arguments: tuple[tuple[str, str | None], ...] = ()
    #: Number of arguments in front of ``py::kw_only()``.
    positional: int | None = None
    #: Conditions of the preprocessor around the line.
    conditions: tuple[str, ...] = ()
    #: The file with ``PYBIND11_MODULE``.
    opened: str = ""


@dataclass(frozen=True, slots=True)
class HandWrittenConverter:
    """A converter to GE, with the operator that it adds and the pairs that it states."""

    name: str
    op_type: str
    #: GE name → argument, of what is written as a plain pair.
    pairs: dict[str, str]
    place: SourcePlace
    #: GE name → value, of what is a literal.
    constants: dict[str, object] = field(default_factory=dict)


@dataclass(slots=True)
class Findings:
    """Everything that the sources of a repository state about its operators."""

    definitions: list[Definition] = field(default_factory=list)
    implementations: list[Implementation] = field(default_factory=list)
    converters: list[HandWrittenConverter] = field(default_factory=list)
    #: Where the repository states the gradient of an operator, which its own build registers, by the operator's name.
    gradients: dict[str, SourcePlace] = field(default_factory=dict)
    #: Operators that have an overload besides those of ``definitions``.
    more_overloads: set[str] = field(default_factory=set)
    #: Functions that Python calls without a schema.
    bound_functions: list[BoundFunction] = field(default_factory=list)
    #: Files with kernels of Ascend C.
    kernel_files: list[Path] = field(default_factory=list)
    #: Bodies of macros ``NAME(first, ...)`` by name; empty for a macro with other parameters.
    macros: dict[str, list[str]] = field(default_factory=dict)
    #: Keys under which macros register functions for devices.
    dispatch_keys: set[str] = field(default_factory=set)
    #: Namespaces that Python opens.
    libraries: set[str] = field(default_factory=set)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    #: C++ functions by their last name.
    functions: dict[str, list[CppFunction]] = field(default_factory=dict)
    #: Constants of each C++ file, as expressions.
    constants: dict[str, dict[str, ast.expr]] = field(default_factory=dict)
    #: Returns the Python function that an expression means in a file, from another file of the repository.
    python_function: Callable[[ast.expr, str], PythonFunction | None] = lambda node, file: None
    #: Headers of the repository that each C++ file includes itself.
    included: dict[str, list[str]] = field(default_factory=dict)

    def report(self, place: SourcePlace, message: str, name: str = "", severity: Severity = Severity.ERROR) -> None:
        """Add a remark on a place."""
        self.diagnostics.append(Diagnostic(severity, message, place.file, place.line, 1, op_type=name))

    def leave_out_other_devices(self) -> None:
        """Leave out definitions next to kernels of other devices alone: those of another build, if a name has others."""
        keys: dict[str, set[str]] = {}
        for one in self.implementations:
            keys.setdefault(one.place.file, set()).add(one.key)
        files = {file for file, found in keys.items() if found & OTHER_DEVICES and not found & {*KERNEL_KEYS[:3]}}
        kept = {one.schema.qualified_name for one in self.definitions if one.place.file not in files}
        self.definitions[:] = [
            one for one in self.definitions if one.place.file not in files or one.schema.qualified_name not in kept
        ]

    def dispatched(self, name: str) -> CppFunction | None:
        """Return the C++ kernel that a call of an operator runs on the NPU, or None if it is not one function."""
        found = [one for one in self.implementations if one.name == operator_key(name) and not one.is_meta]
        keys = [*KERNEL_KEYS, "Autograd"]
        for key in sorted({one.key for one in found} & {*keys}, key=keys.index):
            kernels = [one.function for one in found if one.key == key]
            return kernels[0] if len(kernels) == 1 and isinstance(kernels[0], CppFunction) else None
        return None

    def bound(self, name: str) -> CppFunction | None:
        """Return the C++ function that pybind11 binds under a name, if it is one."""
        found = [one.function for one in self.bound_functions if one.name.rpartition(".")[2] == name]
        return found[0] if len(found) == 1 else None

    def bound_by(self, function: CppFunction | PythonFunction | None) -> set[str]:
        """Return the names of bound functions that a Python function calls, as methods of what it loads.

        What is made of its arguments, or by torch, is a tensor, whose methods have names of their own.
        """
        if not isinstance(function, PythonFunction):
            return set()
        nodes = list(ast.walk(function.node))
        computed = {"torch", *(one.arg for one in nodes if isinstance(one, ast.arg))} - {"self", "cls"}
        stores = [(one.targets, one.value) for one in nodes if isinstance(one, ast.Assign)]
        known = 0
        while known < len(computed):
            known = len(computed)
            made = [targets for targets, value in stores if computed & _names(value)]
            computed |= {name for targets in made for one in targets for name in _names(one)}
        calls = [one.func for one in nodes if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute)]
        return {one.attr for one in calls if not computed & _names(one.value) and self.bound(one.attr) is not None}

    def constants_of(self, file: str) -> dict[str, ast.expr]:
        """Return the constants of a file, and those of its headers that have one value."""
        found: dict[str, list[ast.expr]] = {}
        for header in self.included.get(file, ()):
            for name, value in self.constants.get(header, {}).items():
                found.setdefault(name, []).append(value)
        alone = {name: some[0] for name, some in found.items() if len({ast.dump(one) for one in some}) == 1}
        return alone | self.constants.get(file, {})

    def function(self, written: str, file: str = "", count: int | None = None) -> CppFunction | None:
        """Return the only definition that a written name can mean, or None; one of ``file``, or next to it, comes first.

        Only one that takes ``count`` arguments is meant; among overloads the one with so many parameters.
        """
        parts = [part for part in written.replace("&", "").split("::") if part.strip()]
        if not parts:
            return None
        parts = [part.strip() for part in parts]
        found = [
            one for one in self.functions.get(parts[-1], ()) if ("::" + one.name).endswith("::" + "::".join(parts))
        ] or self.functions.get(parts[-1], [])
        found = [one for one in found if one.file == file] or found
        if count is not None:
            found = [one for one in found if one.takes(count)]
        if len(found) > 1 and count is not None:
            found = [one for one in found if len(one.parameters) == count]
        if len({(one.returns, one.parameters, "".join(one.body.split())) for one in found}) == 1:
            return found[0]  # copies of a header
        if len(found) > 1:
            here = file.rpartition("/")[0]
            found = [one for one in found if one.file.rpartition("/")[0] == here]
        return found[0] if len(found) == 1 else None


def _names(node: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}


def operator_key(name: str) -> str:
    """Return the name under which an operator and its implementations are found: the overload ``default`` has none.

    >>> operator_key("mine::add.default"), operator_key("mine::add.Scalar")
    ('mine::add', 'mine::add.Scalar')
    """
    return name.strip().removesuffix(".default")


def relative(path: Path, root: Path) -> str:
    """Return a path as messages and comments show it: relative to the repository, with slashes."""
    try:
        return path.relative_to(root).as_posix()
    except ValueError:
        return path.as_posix()
