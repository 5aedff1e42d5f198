"""Catalog of the prototypes that a process knows, with the origin of each."""

from __future__ import annotations

import difflib
import re
import threading
import warnings
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from ascend_graph.errors import AscendGraphError
from ascend_graph.prototypes.loading import is_text, prototype_files, read_all, read_prototypes
from ascend_graph.prototypes.model import OpPrototype
from ascend_graph.prototypes.parser import ParseResult
from ascend_graph.sources.diagnostics import Diagnostic, Severity
from ascend_graph.sources.installed import (
    custom_packages,
    existing,
    inside,
    modified,
    named_packages,
    named_places,
    once_a_state,
    opp_roots,
    vendor_packages,
)
from ascend_graph.sources.reading import HEADER_SUFFIXES


class PrototypeSyntaxError(AscendGraphError):
    """Prototype text without anything usable; ``diagnostics`` lists what is wrong and where."""

    def __init__(self, message: str, diagnostics: tuple[Diagnostic, ...]) -> None:
        super().__init__(message)
        self.diagnostics = diagnostics


class UnknownPrototypeError(AscendGraphError, LookupError):
    """Unknown op type: no such prototype is loaded or installed."""


class PrototypeWarning(UserWarning):
    """Warning about an explicitly loaded source: part was lost, or it replaces a different definition."""


def package_directories(environment: Mapping[str, str] | None = None) -> tuple[Path, ...]:
    """Return the op_proto/inc directories of installed operator packages, in CANN's search order.

    The paths of ASCEND_CUSTOM_OPP_PATH come first. Then, under ASCEND_OPP_PATH and ASCEND_HOME_PATH/opp, come the
    vendors in the order of ``load_priority`` in vendors/config.ini (or by name without that file), and the built-in
    operators.
    """
    packages = named_packages(environment)
    for root in opp_roots(environment):
        packages = (*packages, *vendor_packages(root), *inside((root,), "built-in"))
    return existing(inside(packages, "op_proto", "inc"))


def _modified_directories() -> dict[Path, int]:
    """Return the op_proto/inc directories of installed packages with their modification times."""
    return {directory: modified(directory) for directory in package_directories()}


class Catalog:
    """Prototypes by op type. All methods may be called from any thread.

    Equal definitions of one op count as one. Among different ones, an explicitly loaded definition wins over one from
    an installed package, and a later load over an earlier one. Within one load, and among installed packages, the first
    wins, as in CANN. Every such choice is in ``diagnostics``.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._loaded: dict[str, OpPrototype] = {}
        self._installed: dict[str, OpPrototype] = {}
        self._installed_from: tuple[Path, ...] | None = None
        self._environment: tuple[str | None, ...] | None = None
        self._load_diagnostics: list[Diagnostic] = []
        self._package_diagnostics: list[Diagnostic] = []

    def load(self, source: str | Path, *, strict: bool = False) -> ParseResult:
        """Read a header, a directory or a text and add its prototypes.

        Raises:
            SourceError: the path cannot be read.
            PrototypeSyntaxError: nothing could be used, or ``strict`` and anything was wrong. Nothing was added then.

        If only some ops are usable, those are added and a ``PrototypeWarning`` reports the others. A source without any
        op also gives a warning.
        """
        result = read_prototypes(source)
        errors = result.errors
        if errors and (strict or not result.prototypes):
            raise PrototypeSyntaxError("\n".join(map(str, errors)), result.diagnostics)
        if not result.prototypes:
            warnings.warn(nothing_in(source), PrototypeWarning, stacklevel=3)
        chosen, conflicts = _first_of_each(result.prototypes)
        with self._lock:
            for prototype in chosen.values():
                earlier = self._loaded.get(prototype.op_type)
                if earlier is not None and earlier != prototype:
                    conflicts.append(_conflict(prototype, earlier, "was loaded later and wins"))
        if errors or conflicts:
            message = "\n".join(map(str, (*errors, *conflicts)))
            warnings.warn(message, PrototypeWarning, stacklevel=3)
        with self._lock:
            self._loaded.update(chosen)
            self._load_diagnostics += (*result.diagnostics, *conflicts)
        return ParseResult(result.prototypes, (*result.diagnostics, *conflicts))

    def find(self, op_type: str) -> OpPrototype:
        """Return the prototype of an op.

        Installed packages are read when a lookup first finds no loaded prototype, and again when the environment names
        other packages.

        Raises:
            UnknownPrototypeError: no such prototype; the message names those with a similar name.
        """
        with self._lock:
            found = self._loaded.get(op_type)
            if found is None:
                self._discover()
                found = self._installed.get(op_type)
            if found is None:
                raise UnknownPrototypeError(self._unknown(op_type))
            return found

    def installed(self, op_type: str) -> OpPrototype | None:
        """Return CANN's own definition of an op, from the first installed package that has one, or None.

        Loaded prototypes do not matter.

        Only headers that mention the op are read, unless all were read before: CANN's have thousands of definitions.
        """
        with self._lock:
            directories = once_a_state(_modified_directories)
            if tuple(directories) == self._installed_from:
                return self._installed.get(op_type)
            for directory, changed in directories.items():
                for path in _mentions(directory, changed).get(op_type, ()):
                    found = _by_op_type(path, modified(path)).get(op_type)
                    if found is not None:
                        return found
            return None

    def __contains__(self, op_type: str) -> bool:
        with self._lock:
            if op_type in self._loaded:
                return True
            self._discover()
            return op_type in self._installed

    def __iter__(self) -> Iterator[OpPrototype]:
        """Iterate over all prototypes, sorted by op type."""
        with self._lock:
            self._discover()
            known = {**self._installed, **self._loaded}
        return iter([known[op_type] for op_type in sorted(known)])

    def __len__(self) -> int:
        with self._lock:
            self._discover()
            return len(self._installed.keys() | self._loaded.keys())

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """All diagnostics so far, of loaded sources and installed packages."""
        with self._lock:
            return (*self._load_diagnostics, *self._package_diagnostics)

    def clear(self) -> None:
        """Forget everything; installed packages are read again when needed."""
        with self._lock:
            self._loaded.clear()
            self._installed.clear()
            self._installed_from = self._environment = None
            self._load_diagnostics.clear()
            self._package_diagnostics.clear()

    def _discover(self) -> None:
        environment = named_places()
        if environment == self._environment:
            return
        directories = package_directories()
        if directories != self._installed_from:
            prototypes: list[OpPrototype] = []
            diagnostics: list[Diagnostic] = []
            for directory in directories:
                result = read_prototypes(directory)
                prototypes += result.prototypes
                diagnostics += result.diagnostics
            self._installed, conflicts = _first_of_each(prototypes)
            self._package_diagnostics = [*diagnostics, *conflicts]
            self._installed_from = directories
        self._environment = environment

    def _unknown(self, op_type: str) -> str:
        for diagnostic in (*self._load_diagnostics, *self._package_diagnostics):
            if diagnostic.op_type == op_type and diagnostic.severity is Severity.ERROR:
                return f"the prototype of {op_type!r} could not be read:\n{diagnostic}"
        known = sorted(self._installed.keys() | self._loaded.keys())
        message = f"no prototype of the op type {op_type!r} is loaded or installed"
        by_key = {name.lower().replace("_", ""): name for name in known}
        close = [
            by_key[key] for key in difflib.get_close_matches(op_type.lower().replace("_", ""), list(by_key), 3, 0.75)
        ]
        if close:
            return f"{message}; did you mean {' or '.join(map(repr, close))}?"
        if not known:
            if functions := existing(inside(custom_packages(), "op_api", "include")):
                packages = ", ".join(str(directory.parents[1]) for directory in functions)
                return (
                    f"{message}: {packages} has headers of aclnn functions alone (op_api/include); register one with "
                    f'register_aclnn("aclnn{op_type}", …), or write its prototype and load it with load_prototypes'
                )
            where = ", ".join(map(str, self._installed_from or ()))
            variables = "ASCEND_CUSTOM_OPP_PATH, ASCEND_OPP_PATH and ASCEND_HOME_PATH name no operator package"
            message += f" ({where or variables})"
        elif len(known) <= _MOST_NAMED:
            message += f"; known: {', '.join(known)}"
        else:
            message += f" among the {len(known)} known"
        return f'{message}. Load its header: load_prototypes("…/op_proto/{op_type}.h"), in a shell --from'


#: Number of known op types that a message names.
_MOST_NAMED = 8
#: REG_OP with an op type, in the bytes of a header.
_REG_OP = re.compile(rb"\bREG_OP\s*\(\s*(\w+)\s*\)")


@lru_cache(maxsize=32)
def _mentions(directory: Path, changed: int) -> Mapping[str, tuple[Path, ...]]:
    """Return the installed headers by the op types that they mention; a modified directory is a new cache entry."""
    found: dict[str, tuple[Path, ...]] = {}
    for path in prototype_files(directory):
        try:
            text = path.read_bytes()
        except OSError:
            continue
        for op_type in dict.fromkeys(_REG_OP.findall(text)):
            found[op_type.decode()] = (*found.get(op_type.decode(), ()), path)
    return found


def installed_op_types() -> Iterator[tuple[str, Path]]:
    """Yield the op types that headers of installed packages mention, with the directory of the header."""
    for directory in package_directories():
        for op_type in _mentions(directory, modified(directory)):
            yield op_type, directory


@lru_cache(maxsize=32)
def _read(path: Path, changed: int) -> ParseResult:
    """Read an installed header; ``changed`` makes a modified file a new cache entry."""
    return read_all([path])


@lru_cache(maxsize=32)
def _by_op_type(path: Path, changed: int) -> dict[str, OpPrototype]:
    """Return the definitions of an installed header by op type, the first of each."""
    return _first_of_each(_read(path, changed).prototypes)[0]


def _first_of_each(
    prototypes: list[OpPrototype] | tuple[OpPrototype, ...],
) -> tuple[dict[str, OpPrototype], list[Diagnostic]]:
    chosen: dict[str, OpPrototype] = {}
    conflicts: list[Diagnostic] = []
    for prototype in prototypes:
        first = chosen.setdefault(prototype.op_type, prototype)
        if first != prototype:
            conflicts.append(_conflict(first, prototype, "comes first and wins"))
    return chosen, conflicts


def _conflict(winner: OpPrototype, loser: OpPrototype, why: str) -> Diagnostic:
    message = (
        f"REG_OP({winner.op_type}) is defined differently at {winner.place} and {loser.place}: "
        f"the one at {winner.place} {why}"
    )
    return Diagnostic(Severity.WARNING, message, loser.file, loser.line, 1, op_type=loser.op_type)


#: The prototypes of this process.
process_catalog = Catalog()


def nothing_in(source: str | Path) -> str:
    """Return the message that a source defines no op, with what the search covered."""
    if isinstance(source, str) and is_text(source):
        return "the text defines no op: it has no REG_OP(…)"
    path = Path(source)
    if path.is_dir() and not any(True for _ in prototype_files(path)):
        return (
            f"{path} has no header with prototypes in it or below it: no {', '.join(HEADER_SUFFIXES)}, no *_def.cpp, nothing in "
            "op_host; name a header, or the op_proto directory of an operator package"
        )
    return f"{path} defines no op: no REG_OP(…) and no OpDef class in {'its headers' if path.is_dir() else 'it'}"


def load_prototypes(source: str | Path, *, strict: bool = False) -> ParseResult:
    """Add the prototypes of a header, a directory or a text to this process's catalog.

    A string is text if it has several lines or a ``REG_OP(``, otherwise a path. ``Catalog`` describes the rule for an
    op that is defined twice.

    >>> load_prototypes('''
    ... REG_OP(ReluCustom)
    ...     .INPUT(x, TensorType({DT_FLOAT}))
    ...     .OUTPUT(y, TensorType({DT_FLOAT}))
    ...     .OP_END_FACTORY_REG(ReluCustom)
    ... ''').prototypes[0].op_type
    'ReluCustom'
    >>> find_prototype("ReluCustom").outputs[0].name
    'y'

    Raises:
        SourceError: the path cannot be read.
        PrototypeSyntaxError: nothing in it could be used, or ``strict`` and anything was wrong.
    """
    return process_catalog.load(source, strict=strict)


def find_prototype(op_type: str) -> OpPrototype:
    """Return the prototype of an op, loaded before or found in an installed operator package.

    >>> find_prototype("NoSuchOp")
    Traceback (most recent call last):
        ...
    ascend_graph.prototypes.catalog.UnknownPrototypeError: no prototype of the op type 'NoSuchOp' is loaded...

    Raises:
        UnknownPrototypeError: no such prototype; the message names those with a similar name.
    """
    if not isinstance(op_type, str):
        raise UnknownPrototypeError(
            f"op_type={op_type!r} must be a string, the name in REG_OP; eager= takes an operator"
        )
    return process_catalog.find(op_type)
