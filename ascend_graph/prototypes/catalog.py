"""The prototypes a process knows, and the place each came from."""

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
from ascend_graph.sources.installed import existing, named_packages, named_places, opp_roots, vendor_packages
from ascend_graph.sources.reading import HEADER_SUFFIXES


class PrototypeSyntaxError(AscendGraphError):
    """Prototype text of which nothing could be used; ``diagnostics`` says what is wrong where."""

    def __init__(self, message: str, diagnostics: tuple[Diagnostic, ...]) -> None:
        super().__init__(message)
        self.diagnostics = diagnostics


class UnknownPrototypeError(AscendGraphError, LookupError):
    """No prototype of that name was loaded or is installed."""


class PrototypeWarning(UserWarning):
    """Part of an explicitly loaded source was lost, or it replaces a different definition."""


def package_directories(environment: Mapping[str, str] | None = None) -> tuple[Path, ...]:
    """The op_proto/inc directories of the installed operator packages, in the order CANN searches them.

    First each path of ASCEND_CUSTOM_OPP_PATH; then below ASCEND_OPP_PATH (or ASCEND_HOME_PATH/opp where that is not
    set) the vendors in the order of ``load_priority`` in vendors/config.ini, or by name where there is no such file;
    then the built-in operators.
    """
    packages = list(named_packages(environment))
    for root in opp_roots(environment):
        packages += [*vendor_packages(root), root / "built-in"]
    return existing([package / "op_proto" / "inc" for package in packages])


class Catalog:
    """Prototypes by op type. All methods may be called from any thread.

    Two definitions of one op that are equal count as one. Of different ones, this is the rule: a definition loaded
    explicitly wins over one from an installed package, a later load over an earlier one; within one load, and among
    installed packages, the first wins, as it does in CANN. Every such choice is in ``diagnostics``.
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

        Where some ops could be used and some not, those are added and a ``PrototypeWarning`` tells of the others; another
        tells of a source that defines none.
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
        """The prototype of an op.

        Installed packages are read on the first lookup that no loaded prototype answers, and again when the
        environment names others.

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
        """The definition that CANN takes for an op, whatever is loaded: that of the first installed package that has one.

        Only the headers that mention the op are read, unless all were before: CANN's have thousands of definitions.
        """
        with self._lock:
            directories = package_directories()
            if directories == self._installed_from:
                return self._installed.get(op_type)
            mentioned = re.compile(rb"\bREG_OP\s*\(\s*" + re.escape(op_type.encode()) + rb"\s*\)")
            for directory in directories:
                for path in prototype_files(directory):
                    if _mentions(path, mentioned):
                        known = _read(path, path.stat().st_mtime_ns).prototypes
                        found = next((prototype for prototype in known if prototype.op_type == op_type), None)
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
        """Every prototype, by name."""
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
        """All remarks on what was read so far."""
        with self._lock:
            return (*self._load_diagnostics, *self._package_diagnostics)

    def clear(self) -> None:
        """Forget everything; installed packages are read again when they are needed."""
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
            where = ", ".join(map(str, self._installed_from or ())) or "no operator package was found: none of "
            if not self._installed_from:
                where += "ASCEND_CUSTOM_OPP_PATH, ASCEND_OPP_PATH, ASCEND_HOME_PATH names one"
            message += f" ({where})"
        else:
            message += f" among the {len(known)} known"
        return f'{message}. Load its header: load_prototypes("…/op_proto/{op_type}.h")'


def _mentions(path: Path, what: re.Pattern[bytes]) -> bool:
    try:
        return what.search(path.read_bytes()) is not None
    except OSError:
        return False


@lru_cache(maxsize=32)
def _read(path: Path, changed: int) -> ParseResult:
    """An installed header, as it was at a time."""
    return read_all([path])


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
    """That a source defines no op, and what was looked for in it."""
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

    A string is text when it has several lines or a ``REG_OP(``, otherwise a path. See ``Catalog`` for what happens
    when an op is defined twice.

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
    """The prototype of an op, loaded before or found in an installed operator package.

    >>> find_prototype("NoSuchOp")
    Traceback (most recent call last):
        ...
    ascend_graph.prototypes.catalog.UnknownPrototypeError: no prototype of the op type 'NoSuchOp' is loaded...

    Raises:
        UnknownPrototypeError: no such prototype; the message names those with a similar name.
    """
    return process_catalog.find(op_type)
