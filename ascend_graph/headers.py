"""Reader of the prototypes and aclnn functions in files, each file read once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ascend_graph.aclnn.declaration import FIRST_PHASE
from ascend_graph.aclnn.json_format import function_as_json
from ascend_graph.aclnn.model import AclnnFunction
from ascend_graph.aclnn.parser import parse_source as parse_functions
from ascend_graph.prototypes.json_format import prototype_as_json
from ascend_graph.prototypes.loading import parse_any
from ascend_graph.prototypes.model import OpPrototype
from ascend_graph.sources import Diagnosed, Diagnostic, Severity, SourceError, read_source


@dataclass(frozen=True, slots=True)
class Headers(Diagnosed):
    """Declarations of files, in their order, with the remarks on them."""

    prototypes: tuple[OpPrototype, ...] = ()
    functions: tuple[AclnnFunction, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return ``{"prototypes": […], "functions": […], "diagnostics": […]}``, as the command line prints it."""
        return {
            "prototypes": [prototype_as_json(prototype) for prototype in self.prototypes],
            "functions": [function_as_json(function) for function in self.functions],
            "diagnostics": [diagnostic.as_json() for diagnostic in self.diagnostics],
        }


def read_headers(paths: Iterable[Path]) -> Headers:
    """Read several files; one that cannot be read is reported in the diagnostics."""
    prototypes: list[OpPrototype] = []
    functions: list[AclnnFunction] = []
    diagnostics: list[Diagnostic] = []
    for path in paths:
        try:
            source = read_source(path)
        except SourceError as error:
            message = str(error).removeprefix(f"{path}: ")
            diagnostics.append(Diagnostic(Severity.ERROR, message, str(path)))
            continue
        found = parse_any(source, path.suffix)
        prototypes += found.prototypes
        if FIRST_PHASE in source.text:
            # The second reader gives the remarks of the first too, for they are the source's.
            declared = parse_functions(source)
            functions += declared.functions
            diagnostics += declared.diagnostics
        else:
            diagnostics += found.diagnostics
    return Headers(tuple(prototypes), tuple(functions), (*diagnostics, *_conflicts(functions)))


def _conflicts(functions: Iterable[AclnnFunction]) -> list[Diagnostic]:
    """Return warnings on functions that two files declare differently; the reader warns of those within one file."""
    first: dict[str, AclnnFunction] = {}
    found = []
    for function in functions:
        earlier = first.setdefault(function.name, function)
        if earlier.file != function.file and not function.agrees_with(earlier):
            message = f"{function} is declared differently at {earlier.place}: {earlier}"
            found.append(Diagnostic(Severity.WARNING, message, function.file, function.line, 1, op_type=function.name))
    return found
