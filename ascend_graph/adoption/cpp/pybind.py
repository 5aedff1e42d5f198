"""Functions that ``PYBIND11_MODULE`` binds without a schema, in its block and in the functions that it calls."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ascend_graph.adoption.cpp.function_names import function_of, text_of
from ascend_graph.adoption.cpp.functions import CppFunction, close_of, split
from ascend_graph.adoption.cpp.preprocessor import conditions_at
from ascend_graph.adoption.model import BoundFunction, Findings, SourcePlace
from ascend_graph.sources.text import SourceText

_MODULE = re.compile(r"\bPYBIND11_MODULE\s*\(")
_ARGUMENT = re.compile(r"\A(?:py|pybind11)\s*::\s*arg\s*\(|\A(?P<literal>\"[^\"]*\")\s*_a\b")
_KEYWORDS = re.compile(r"\A(?:py|pybind11)\s*::\s*kw_only\b")
_SUBMODULE = re.compile(r"([A-Za-z_]\w*)\s*=\s*([A-Za-z_]\w*)\s*\.\s*def_submodule\s*\(\s*(\"[^\"]*\")")
_CALL = re.compile(r"(?<![\w.>:])((?:\w+\s*::\s*)*[A-Za-z_]\w*)\s*\(\s*([A-Za-z_]\w*)\s*[,)]")
_MACRO_CALL = re.compile(r"(?<![\w.>:])([A-Za-z_]\w*)\s*\(")
_NEXT = re.compile(r"\s*\.\s*def\s*\(")
_DEFINES = re.compile(r"\.\s*def\s*\(")
#: Maximum nesting of functions that a block calls with the module.
_MAX_DEPTH = 4


def read_bindings(source: SourceText, file: str, findings: Findings, sources: Mapping[str, SourceText]) -> None:
    """Add the functions that the modules of a file bind to ``findings.bound_functions``.

    Args:
        source: The file.
        file: Its path, relative to the repository.
        findings: The findings, with the functions of all files.
        sources: The other files with C++, by path.
    """
    code = source.code
    for match in _MODULE.finditer(code):
        close = close_of(code, match.end() - 1)
        opening = re.compile(r"\s*\{").match(code, close + 1) if close >= 0 else None
        end = close_of(code, opening.end() - 1) if opening else -1
        given = split(code[match.end() : close]) if close >= 0 else []
        if opening and end > 0 and len(given) >= 2:
            reader = _BindingReader(given[0].strip(), file, findings, sources, source)
            reader.read(source, file, opening.end(), end, given[1].strip(), "", 1)


class _BindingReader:
    """Reader of one module, which several functions may fill."""

    def __init__(
        self, module: str, opened: str, findings: Findings, sources: Mapping[str, SourceText], source: SourceText
    ) -> None:
        self.module, self.opened = module, opened
        self.findings, self.sources, self.source = findings, sources, source
        self.seen: set[tuple[str, int, str]] = set()

    def read(self, source: SourceText, file: str, start: int, end: int, variable: str, prefix: str, depth: int) -> None:
        """Read a part of a file in which a variable is the module, or a submodule named ``prefix``."""
        if (file, start, prefix) in self.seen or depth > _MAX_DEPTH:
            return
        self.seen.add((file, start, prefix))
        body = source.code[start:end]
        for match in _MACRO_CALL.finditer(body):
            held = source.macros.get(match[1]) or source._names.get(match[1], [])
            if held and _DEFINES.search(held[-1].body or ""):
                close = close_of(body, match.end() - 1)
                if close > 0:
                    text = source.expanded(body[match.start() : close + 1], start + match.start())
                    self.definitions(text, source, file, variable, prefix, start + match.start(), moves=False)
        self.definitions(body, source, file, variable, prefix, start, moves=True)
        for match in _SUBMODULE.finditer(body):
            if match[2] == variable:
                self.read(source, file, start + match.end(), end, match[1], f"{prefix}{match[3][1:-1]}.", depth + 1)
        for match in _CALL.finditer(body):
            if match[2] == variable:
                self.called(match[1], prefix, depth)

    def called(self, name: str, prefix: str, depth: int) -> None:
        """Read a function that takes the module."""
        function = self.findings.function(name)
        held = self.sources.get(function.file) if function is not None else None
        if function is None or held is None or not function.parameters:
            return
        start = held.code.find(function.body)
        if start >= 0:
            end = start + len(function.body)
            self.read(held, function.file, start, end, function.parameters[0].name, prefix, depth + 1)

    def definitions(
        self, text: str, source: SourceText, file: str, variable: str, prefix: str, offset: int, *, moves: bool
    ) -> None:
        """Read the calls of ``def`` in a text that begins at ``offset`` of a file."""
        pattern = re.compile(rf"\b{re.escape(variable)}\s*\.\s*def\s*\(")
        for first in pattern.finditer(text):
            match: re.Match[str] | None = first
            while match is not None:
                close = close_of(text, match.end() - 1)
                given = split(text[match.end() : close]) if close >= 0 else []
                place = offset + match.start() * moves
                name = text_of(source, given[0], place) if len(given) > 1 else None
                if name is not None and re.fullmatch(r"[A-Za-z_]\w*", name):
                    self.bound(f"{prefix}{name}", given[1:], source, SourcePlace(file, source.line_of(place)), place)
                match = _NEXT.match(text, close + 1) if close >= 0 else None

    def bound(self, name: str, given: list[str], source: SourceText, place: SourcePlace, offset: int) -> None:
        function = self.chosen(given[0], source, place)
        arguments: list[tuple[str, str | None]] = []
        positional = None
        for one in given[1:]:
            if _KEYWORDS.match(one):
                positional = len(arguments)
            argument = _read_argument(one, source, offset)
            if argument is not None:
                arguments.append(argument)
        conditions = conditions_at(source.text, source.origin(offset))
        made = BoundFunction(
            name, self.module, function, given[0].strip(), place, tuple(arguments), positional, conditions, self.opened
        )
        self.findings.bound_functions.append(made)

    def chosen(self, written: str, source: SourceText, place: SourcePlace) -> CppFunction | None:
        """Return the function of a ``def``; a cast to a type that is declared elsewhere chooses among overloads."""
        plain = re.sub(r"\A(?:torch\s*::\s*)?wrap_pybind_function(?:_no_gil)?\s*\((.*)\)\Z", r"\1", written.strip())
        plain = re.sub(r"\A(&?\s*[\w:]+)\s*<[^()]*>\Z", r"\1", plain)
        cast = re.fullmatch(r"\(\s*([A-Za-z_]\w*)\s*\)\s*(&?[\w:\s]+)", plain) or re.fullmatch(
            r"static_cast\s*<\s*([A-Za-z_]\w*)\s*>\s*\(\s*(&?[\w:\s]+)\)", plain
        )
        if cast is not None:
            declared = re.search(
                rf"\busing\s+{cast[1]}\s*=\s*([^;]+);|\btypedef\s+([^;]*\(\s*\*\s*{cast[1]}\s*\)[^;]*);", source.code
            )
            if declared is None:
                return None
            kind = declared[1] or re.sub(rf"\(\s*\*\s*{cast[1]}\s*\)", "(*)", declared[2])
            plain = f"static_cast<{kind}>({cast[2]})"
        overloaded = re.fullmatch(
            r"(?:py|pybind11)\s*::\s*overload_cast\s*<(.*)>\s*\(\s*(&?[\w:\s]+)\)", plain, re.DOTALL
        )
        if overloaded is not None:
            plain = f"static_cast<void (*)({overloaded[1]})>({overloaded[2]})"
        return function_of(plain, place, self.findings)


def _read_argument(text: str, source: SourceText, offset: int) -> tuple[str, str | None] | None:
    """Return the name, which may be empty, and the default of a ``py::arg``, or None if the text is something else."""
    match = _ARGUMENT.match(text)
    if match is None:
        return None
    close = match.end() - 1 if match["literal"] else close_of(text, match.end() - 1)
    written = match["literal"] or text[match.end() : close]
    name = text_of(source, written, offset) if written.strip() else ""
    if name is None:
        return None
    rest = text[close + 1 :]
    default = re.match(r"\s*(?:\.\s*(?:none|noconvert)\s*\([^()]*\)\s*)*=(.*)", rest, re.DOTALL)
    return name, default[1].strip() if default else None
