"""Catalog of the aclnn functions that a process knows.

It holds the functions of loaded headers, and those of installed headers, which are read on demand.
"""

from __future__ import annotations

import difflib
import itertools
import os
import re
import threading
import warnings
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path

from ascend_graph.aclnn.declaration import FIRST_PHASE
from ascend_graph.aclnn.model import AclnnFunction
from ascend_graph.aclnn.parser import AclnnResult, merge_results, parse_file, parse_text
from ascend_graph.errors import AscendGraphError
from ascend_graph.sources import Diagnostic, Severity
from ascend_graph.sources.installed import custom_packages, existing, inside, modified, once_a_state
from ascend_graph.sources.reading import HEADER_SUFFIXES, Reader

_VERSION = re.compile(r"v\d+\Z")
#: First phase of a function, in the bytes of a header.
_DECLARED = re.compile(rf"(\w+){FIRST_PHASE}".encode())
#: Minimum length of a family name: a header may be named after a family of functions.
_SHORTEST_FAMILY = 3


class UnknownFunctionError(AscendGraphError, LookupError):
    """Unknown function: no loaded or installed header declares it."""


class AclnnWarning(UserWarning):
    """Warning about an explicitly loaded source: part was lost, or it declares no aclnn function."""


class ConflictingDeclarationsError(AscendGraphError):
    """Two different declarations of one function, so its parameters are ambiguous; the error shows both."""


def header_directories(environment: Mapping[str, str] | None = None) -> tuple[Path, ...]:
    """Return the directories of installed headers: custom operator packages first, then CANN's own."""
    environment = os.environ if environment is None else environment
    candidates = inside(custom_packages(environment), "op_api", "include")
    if environment.get("ASCEND_HOME_PATH"):
        candidates += (Path(environment["ASCEND_HOME_PATH"]) / "include" / "aclnnop",)
    return existing(candidates)


def is_text(source: str) -> bool:
    """Return whether a string is the text of a header, not a path: it has several lines or a bracket."""
    return "\n" in source or "(" in source


_READER = Reader(
    is_text,
    parse_text,
    parse_file,
    lambda path: path.name.endswith(HEADER_SUFFIXES),
    merge_results,
    lambda diagnostic: AclnnResult(diagnostics=(diagnostic,)),
    "an aclnn header, a directory, or a text",
)
#: Reader of a text, a file, or all headers of a directory; see :meth:`~ascend_graph.sources.reading.Reader.read`.
read_functions = _READER.read
#: Iterator over the headers under a directory, in name order.
header_files = _READER.files


class AclnnCatalog:
    """aclnn functions by name. All methods may be called from any thread.

    Declarations that agree count as one. The catalog never chooses between different ones: a call with the parameters
    of another declaration corrupts memory. It rejects such a function, and shows both declarations, until one of the
    headers is loaded explicitly: loaded headers come before installed ones. Loading a file again replaces its
    functions.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        #: The declarations of loaded sources by name; those of a text do not have a file.
        self._loaded: dict[str, list[AclnnFunction]] = {}
        self._loaded_diagnostics: list[Diagnostic] = []
        #: The searched directories with their modification times at that moment.
        self._looked_at: dict[Path, int] | None = None
        #: The installed headers by normalized name. ``_read`` holds their results and modification times.
        self._headers: dict[str, list[Path]] = {}
        self._read: dict[Path, tuple[int, AclnnResult]] = {}

    def load(self, source: str | Path) -> AclnnResult:
        """Read a header, a directory or a text, and add its functions.

        Raises:
            SourceError: the path cannot be read.
            ConflictingDeclarationsError: a header or a text declares a function in two ways. Nothing is added.

        An ``AclnnWarning`` reports unreadable declarations, and a source that has none. It also reports a function that the
        headers of a directory declare in two ways: the others are added, and asking for that one is an error.
        """
        result = read_functions(source)
        by_name: dict[str, list[AclnnFunction]] = {}
        for function in result.functions:
            by_name.setdefault(function.name, []).append(function)
        conflicts = _conflicts(by_name)
        if conflicts and ((isinstance(source, str) and is_text(source)) or not Path(source).is_dir()):
            raise conflicts[0]
        errors = [str(error) for error in result.errors]
        errors += map(str, conflicts)
        if errors or not result.functions:
            warnings.warn("\n".join(errors) or nothing_in(source), AclnnWarning, stacklevel=3)
        with self._lock:
            files = {function.file for function in result.functions if function.file}
            for functions in self._loaded.values():
                functions[:] = [function for function in functions if function.file not in files]
            for name, functions in by_name.items():
                self._loaded.setdefault(name, []).extend(functions)
            self._loaded_diagnostics += result.diagnostics
        return result

    def find(self, name: str) -> AclnnFunction:
        """Return the function of that name.

        Installed headers with a matching name are read first, the others only if none of those declares the function.

        Raises:
            UnknownFunctionError: no header declares it; the message names those with a similar name.
            ConflictingDeclarationsError: headers declare it differently.
        """
        with self._lock:
            functions = self._loaded.get(name) or self._installed(name)
            if functions:
                return _only(functions)
            raise UnknownFunctionError(self._unknown(name))

    def get(self, name: str) -> AclnnFunction | None:
        """Return the function of that name, or None if no header declares it.

        Raises:
            ConflictingDeclarationsError: headers declare it differently.
        """
        with self._lock:
            functions = self._loaded.get(name) or self._installed(name)
            return _only(functions) if functions else None

    def installed(self, name: str) -> tuple[AclnnFunction, ...]:
        """Return the declarations of a function in the installed headers; loaded ones do not matter."""
        with self._lock:
            return tuple(self._installed(name))

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """All diagnostics so far, of loaded sources and installed headers."""
        with self._lock:
            installed = [diagnostic for _, result in self._read.values() for diagnostic in result.diagnostics]
            return (*self._loaded_diagnostics, *installed)

    def clear(self) -> None:
        """Forget everything; installed headers are read again when needed."""
        with self._lock:
            self._loaded.clear()
            self._loaded_diagnostics.clear()
            self._looked_at = None
            self._headers.clear()
            self._read.clear()

    # ------------------------------------------------------------------------------------------------------- installed

    def _installed(self, name: str) -> list[AclnnFunction]:
        self._look()
        if not self._headers:
            return []
        stem = _stem(name)
        bare = stem.removeprefix("inplace")
        exact = [stem, bare, _VERSION.sub("", stem), _VERSION.sub("", bare)]
        families = [bare[:length] for length in range(len(bare) - 1, _SHORTEST_FAMILY - 1, -1)]
        for keys in (exact, families):
            paths = [path for key in dict.fromkeys(keys) for path in self._headers.get(key, ())]
            found = self._declarations(name, paths)
            if found:
                return found
        return self._declarations(name, once_a_state(self._unread).get(name, ()))

    def _unread(self) -> dict[str, list[Path]]:
        """Return the headers that nothing has read yet, by the functions that they mention."""
        found: dict[str, list[Path]] = {}
        for path in itertools.chain(*self._headers.values()):
            for name in () if path in self._read else _mentioned(path, modified(path)):
                found.setdefault(name, []).append(path)
        return found

    def _look(self) -> None:
        """Search the header directories again if their list or one of their modification times has changed."""
        directories = once_a_state(_modified_directories)
        if directories is self._looked_at or directories == self._looked_at:
            return
        self._headers.clear()
        for directory in directories:
            for path in header_files(directory):
                self._headers.setdefault(_stem(path.stem), []).append(path)
        known = {path for paths in self._headers.values() for path in paths}
        self._read = {path: read for path, read in self._read.items() if path in known}
        self._looked_at = directories

    def _declarations(self, name: str, paths: Iterable[Path]) -> list[AclnnFunction]:
        found = []
        for path in paths:
            changed = modified(path)
            if path not in self._read or self._read[path][0] != changed:
                self._read[path] = changed, _READER.read_or_report(path)
            found += [function for function in self._read[path][1].functions if function.name == name]
        return found

    def _unknown(self, name: str) -> str:
        for diagnostic in self.diagnostics:
            if diagnostic.op_type == name and diagnostic.severity is Severity.ERROR:
                return f"the declaration of {name} could not be read:\n{diagnostic}"
        message = f"no header declares {name}"
        count = sum(map(len, self._headers.values()))
        if not count:
            return (
                f"{message}: no header is installed where ASCEND_CUSTOM_OPP_PATH, ASCEND_OPP_PATH and ASCEND_HOME_PATH say. "
                f'Load it: load_aclnn("…/aclnn_….h")'
            )
        stems = {stem: paths[0].name for stem, paths in self._headers.items()}
        close = [stems[stem] for stem in difflib.get_close_matches(_stem(name), list(stems), 3, 0.75)]
        near = f"; headers with a similar name: {', '.join(close)}" if close else ""
        return f'{message} among the {count} installed headers{near}. Load another: load_aclnn("…/aclnn_….h")'


def _modified_directories() -> dict[Path, int]:
    """Return the directories of installed headers with their modification times."""
    return {directory: modified(directory) for directory in header_directories()}


def _stem(name: str) -> str:
    """Return ``aclnnAddRmsNorm`` and ``aclnn_add_rms_norm`` as ``addrmsnorm``."""
    return name.removeprefix("aclnn").replace("_", "").lower()


@lru_cache(maxsize=4096)
def _mentioned(path: Path, changed: int) -> frozenset[str]:
    """Return the functions that a header may declare; ``changed`` makes a modified file a new cache entry."""
    try:
        return frozenset(name.decode() for name in _DECLARED.findall(path.read_bytes()))
    except OSError:
        return frozenset()


def _conflicts(by_name: Mapping[str, list[AclnnFunction]]) -> list[ConflictingDeclarationsError]:
    """Return an error for each function that is declared in two ways."""
    found = []
    for functions in by_name.values():
        try:
            _only(functions)
        except ConflictingDeclarationsError as error:
            found.append(error)
    return found


def _only(functions: list[AclnnFunction]) -> AclnnFunction:
    """Return the one declaration of a function.

    Raises:
        ConflictingDeclarationsError: several declarations differ.
    """
    first = functions[0]
    other = next((function for function in functions if not function.agrees_with(first)), None)
    if other is not None:
        raise ConflictingDeclarationsError(
            f"{first.name} is declared in two ways, and nothing says which one its library has:\n"
            f"  {first.place}: {first}\n  {other.place}: {other}\n"
            'Load the header that belongs to the library, load_aclnn("…"), or remove the other one'
        )
    return first


#: The functions of this process.
process_catalog = AclnnCatalog()


def nothing_in(source: str | Path) -> str:
    """Return the message that a source declares no aclnn function, with what the search covered."""
    if isinstance(source, str) and is_text(source):
        return f"the text declares no aclnn function: it has no aclnn…{FIRST_PHASE}(…)"
    path = Path(source)
    if path.is_dir() and not any(True for _ in header_files(path)):
        return (
            f"{path} has no header in it or below it: no {', '.join(HEADER_SUFFIXES)}; name a header, the op_api/include directory "
            "of an operator package, or include/aclnnop of CANN"
        )
    return f"{path} declares no aclnn function: no aclnn…{FIRST_PHASE}(…) in {'its headers' if path.is_dir() else 'it'}"


def load_aclnn(source: str | Path) -> AclnnResult:
    """Add the functions of an aclnn header, a directory or a text to this process's catalog.

    Raises:
        SourceError: the path cannot be read.
        ConflictingDeclarationsError: a header or a text declares a function in two ways. Of a directory the other
            functions are added, with an ``AclnnWarning``.

    >>> load_aclnn('''
    ... aclnnStatus aclnnReluExampleGetWorkspaceSize(const aclTensor *x, const aclTensor *out, uint64_t *workspaceSize,
    ...                                              aclOpExecutor **executor);
    ... aclnnStatus aclnnReluExample(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream);
    ... ''').functions[0].name
    'aclnnReluExample'
    >>> find_aclnn("aclnnReluExample").parameters[1].direction
    <Direction.OUT: 'out'>
    """
    return process_catalog.load(source)


def find_aclnn(name: str) -> AclnnFunction:
    """Return an aclnn function of a loaded or installed header.

    Raises:
        UnknownFunctionError: no header declares it; the message names those with a similar name.
        ConflictingDeclarationsError: headers declare it differently.
    """
    return process_catalog.find(name)
