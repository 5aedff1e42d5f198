"""Operators that C++ defines and implements: TORCH_LIBRARY, TORCH_LIBRARY_IMPL, RegisterOperators, PYBIND11_MODULE."""

from __future__ import annotations

import ast
import bisect
import contextlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from ascend_graph.adoption.cpp.build_macros import Macros, build_macros, macro_value
from ascend_graph.adoption.cpp.device_registry import resolve_dispatches
from ascend_graph.adoption.cpp.expressions import expression
from ascend_graph.adoption.cpp.function_names import function_name, function_of, text_of
from ascend_graph.adoption.cpp.functions import CppFunction, calls, close_of, functions, split, string_of
from ascend_graph.adoption.cpp.preprocessor import conditions_at, variants_of
from ascend_graph.adoption.cpp.pybind import read_bindings
from ascend_graph.adoption.cpp.schema_types import plain_type, schema_type
from ascend_graph.adoption.cpp.structures import structures
from ascend_graph.adoption.model import Definition, Findings, Implementation, SourcePlace, operator_key, relative
from ascend_graph.binding.schema_text import SchemaTextError, parse_schema
from ascend_graph.sources import Severity, SourceError, read_source
from ascend_graph.sources.macros import constants
from ascend_graph.sources.text import SourceText

_INCLUDED = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.MULTILINE)
#: Largest header without tensors whose functions are read.
_LARGEST_HELPERS = 100_000
_ENUM = re.compile(
    r"\benum\s+(?P<scoped>(?:class|struct)\s+)?(?P<name>\w*)\s*(?::\s*[\w:]+\s*)?\{(?P<body>[^{}]{0,4000})\}"
)
#: Endings of files that C++ may define operators in.
CPP_SUFFIXES = (".cpp", ".cc", ".cxx", ".h", ".hpp", ".hh", ".inc", ".cu", ".asc")
_USEFUL = re.compile(
    rb"TORCH_LIBRARY|RegisterOperators|PYBIND11_MODULE|\b(?:at|torch|c10)::(?:Tensor|optional|IntArrayRef)|\bTensor\s*&?\s+\w+\s*[,)=(;]"
)
_LIBRARY = re.compile(r"\b(?P<macro>\w*TORCH_LIBRARY\w*)\s*\(")
_PLAIN = re.compile(r"\A\s*(?P<macro>TORCH_LIBRARY(?:_FRAGMENT|_IMPL)?)\s*\(")
_OLD = re.compile(r"\bRegisterOperators\s*\(\s*\)")
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_CONDITION = re.compile(r"[ \t]*#[ \t]*(?:if|ifdef|ifndef|elif|else)\b")
_KEYS = re.compile(r"\b(?:k|DispatchKey::)([A-Z]\w*)\b")


def source_files(paths: list[Path]) -> list[Path]:
    """Return the files that C++ may define operators in."""
    return [path for path in paths if path.name.endswith(CPP_SUFFIXES)]


def read_cpp(paths: list[Path], root: Path, findings: Findings) -> None:
    """Read the definitions, implementations and functions of files into ``findings``; report what cannot be read."""
    sources: list[tuple[Path, SourceText]] = []
    headers: dict[str, list[Path]] = {}
    for path in source_files(paths):
        source = _useful(path, root, findings)
        if path.suffix in (".h", ".hpp"):
            headers.setdefault(path.name, []).append(path)
        if source is not None:
            sources.append((path, source))
            _read_functions(source, relative(path, root), findings)
    for path in findings.kernel_files:
        # Functions next to kernels launch them for others.
        with contextlib.suppress(OSError, SourceError):
            if path.stat().st_size <= _LARGEST_HELPERS and b"<<<" in path.read_bytes():
                _read_functions(read_source(path), relative(path, root), findings, only="<<<")
    known = {path for path, _ in sources}
    pending = list(sources)
    while pending:
        path, source = pending.pop()
        for header in _headers_of(path, source, headers):
            file = relative(header, root)
            findings.included.setdefault(relative(path, root), []).append(file)
            # Helpers of sizes stand in headers that know no tensor, and in those that these include.
            with contextlib.suppress(OSError, SourceError):
                if header not in known and header.stat().st_size <= _LARGEST_HELPERS:
                    known.add(header)
                    pending.append((header, read_source(header)))
                    _read_functions(pending[-1][1], file, findings)
    resolve_dispatches((source.code for _, source in sources), findings)
    modules = {relative(path, root): source for path, source in sources}
    macros = build_macros(paths, root)
    for path, source in sources:
        if "TORCH_LIBRARY" in source.text or "RegisterOperators" in source.text or "PYBIND11_MODULE" in source.text:
            source.add_included(path)
            _Reader(source, relative(path, root), findings, macros).read()
            read_bindings(source, relative(path, root), findings, modules)


def _headers_of(path: Path, source: SourceText, headers: dict[str, list[Path]]) -> Iterator[Path]:
    """Yield the headers of the repository that a file includes: those next to it, and those that have a path alone."""
    for written in _INCLUDED.findall(source.text):
        beside = (path.parent / written).resolve()
        named = headers.get(written.rpartition("/")[2], ())
        same = [one for one in named if one.as_posix().endswith(f"/{written}")]
        if beside in named:
            yield beside
        elif len(same) == 1:
            yield same[0]


def _useful(path: Path, root: Path, findings: Findings) -> SourceText | None:
    """Return a source if it has to do with tensors; None if it does not, or cannot be read."""
    try:
        data = path.read_bytes()
        if b"__global__" in data:
            findings.kernel_files.append(path)
        # Without its zeros, a text in UTF-16 is found, too.
        if not _USEFUL.search(data.replace(b"\0", b"")):
            return None
        source = read_source(path)
    except (OSError, SourceError) as error:
        findings.report(SourcePlace(relative(path, root), 1), str(error).removeprefix(f"{path}: "))
        return None
    errors = [one for one in source.diagnostics if one.severity is Severity.ERROR]
    findings.diagnostics += [replace(one, file=relative(path, root)) for one in errors]
    return source


def _read_functions(source: SourceText, file: str, findings: Findings, *, only: str = "") -> None:
    """Add the functions and the constants of a file to the findings; with ``only`` those whose body has that text."""
    findings.constants[file] = _constants(source.code)
    for name, macro in ((name, one) for name, found in source.macros.items() for one in found if one.parameters):
        body = macro.body if len(macro.parameters or ()) == 2 and (macro.parameters or ())[1] == "..." else ""
        findings.macros.setdefault(name, []).append(body or "")
    lines, code = source.text.split("\n"), source.code.split("\n")
    directives = [n for n, line in enumerate(lines, 1) if _CONDITION.match(line)]
    for function in functions(source.code, file):
        if only not in function.body or (
            only and function in findings.functions.get(function.name.rpartition("::")[2], ())
        ):
            continue
        first, last = bisect.bisect_left(directives, function.line), bisect.bisect(directives, function.last_line)
        if first != last:
            whole = variants_of(lines, code, function.body_line, function.last_line)
            bodies = tuple(one[one.find("{") + 1 : one.rfind("}")] if "{" in one else one for one in whole)
            function = replace(function, is_conditional=True, variants=bodies)  # noqa: PLW2901
        findings.functions.setdefault(function.name.rpartition("::")[2], []).append(function)


_STRING = re.compile(r'\b(\w+)\s{0,8}(?:\[\s{0,8}\])?\s{0,8}[={(]\s{0,80}("(?:\\.|[^"\\\n])*")')
_MAP = re.compile(r"\b(?:std\s*::\s*)?(?:unordered_)?map\s*<[^;{}()]*>\s+(?P<name>\w+)\s*=?\s*\{")
_CONSTANT_STRING = re.compile(r"\b(?:const|constexpr)\b.*\b(?:string_view|string|char)\b", re.DOTALL)


def _constants(code: str) -> dict[str, ast.expr]:
    """Return the constants that a file declares once, as expressions."""
    found: dict[str, list[str]] = {}
    for name, macro in constants(code):
        found.setdefault(name, []).append(macro.body or "")
    for match in _STRING.finditer(code):
        declared = re.split(r"[;{}]", code[max(0, match.start() - 120) : match.start()])[-1]
        if _CONSTANT_STRING.search(declared):
            found[match[1]] = [match[2]]
    for name, value in _enumerators(code):
        found.setdefault(name, []).append(value)
    for match in _MAP.finditer(code):
        close = close_of(code, match.end() - 1)
        if close > 0:
            found.setdefault(match["name"], []).append(code[match.end() - 1 : close + 1])
    # A number that is declared in several functions is that of each only.
    return structures(code) | {name: expression(values[0]) for name, values in found.items() if len(set(values)) == 1}


def _enumerators(code: str) -> Iterator[tuple[str, str]]:
    """Yield the names of enumerations with their numbers, as ``Type::NAME`` and, of plain ones, as ``NAME``."""
    for match in _ENUM.finditer(code):
        number: int | None = -1
        for part in split(match["body"]):
            name, _, stated = (one.strip() for one in part.partition("="))
            if stated:
                number = int(stated, 0) if re.fullmatch(r"-?(?:0[xX][\da-fA-F]+|\d+)", stated) else None
            elif number is not None:
                number += 1
            if number is None or not _IDENTIFIER.fullmatch(name):
                break
            if match["name"]:
                yield f"{match['name']}::{name}", str(number)
            if not match["scoped"]:
                yield name, str(number)


class _Reader:
    """Reader of one file."""

    def __init__(self, source: SourceText, file: str, findings: Findings, macros: Macros) -> None:
        self.source, self.file, self.findings, self.macros = source, file, findings, macros

    def place(self, offset: int) -> SourcePlace:
        return SourcePlace(self.file, self.source.line_of(offset))

    def read(self) -> None:
        code = self.source.code
        for match in _LIBRARY.finditer(code):
            close = close_of(code, match.end() - 1)
            opening = re.compile(r"\s*\{").match(code, close + 1) if close >= 0 else None
            if opening is None:
                continue  # a macro's definition, or a use that another macro completes
            end = close_of(code, opening.end() - 1)
            if end < 0:
                self.findings.report(
                    self.place(match.start()),
                    f"{match['macro']}: its block has no end, and nothing of it was read; close it with }}",
                )
                continue
            head = self.source.expanded(code[match.start() : close + 1], match.start())
            plain = _PLAIN.match(head)
            if plain is None and not _PLAIN.match(code, match.start()):
                self.findings.report(
                    self.place(match.start()), f"{match['macro']}: no macro of this file says that it is TORCH_LIBRARY"
                )
                continue
            given = (
                split(head[plain.end() : close_of(head, plain.end() - 1)])
                if plain
                else split(code[match.end() : close])
            )
            macro = plain["macro"] if plain else match["macro"]
            if len(given) < 2:
                continue
            variable = split(code[match.end() : close])[-1]
            if _IDENTIFIER.fullmatch(variable) and not _IDENTIFIER.fullmatch(given[-1]):
                given[-1] = variable  # a constant of that name is another function's
            key = given[1].rpartition("::")[2] if macro.endswith("_IMPL") else ""
            self.block(given[0], key, given[-1], opening.end(), end)
        for match in _OLD.finditer(code):
            end = code.find(";", match.end())
            self.registrations(
                "", "", match.end(), len(code) if end < 0 else end, re.compile(r"\.\s*(?P<what>op)\s*\(")
            )

    def block(self, namespace: str, key: str, variable: str, start: int, end: int) -> None:
        body = self.source.code[start:end]
        if not _IDENTIFIER.fullmatch(namespace) or namespace == "TORCH_EXTENSION_NAME" or namespace in self.macros:
            value = string_of(namespace) or macro_value(namespace, self.file, self.macros)
            if value is None:
                self.findings.report(
                    self.place(start),
                    f"the namespace is {namespace!r}, which the build decides; expected a name that the sources state. "
                    "Write the definitions under a plain namespace, or complete the lines by hand",
                    namespace,
                )
                return
            namespace = value
        name = re.escape(variable)
        pattern = re.compile(
            rf"(?:\b{name}\s*|(?<=\))\s*)\.\s*(?P<what>def|impl|impl_UNBOXED|impl_abstract_pystub)\s*\("
        )
        self.registrations(namespace, key, start, end, pattern, self.classes(name, start, end))
        users = [
            match
            for match in re.finditer(r"\b([A-Za-z_]\w*)\s*\(", body)
            if re.search(r"\.\s*(?:def|impl)\s*\(", self.body_of(match[1]))
        ]
        for match in users:
            close = close_of(body, match.end() - 1)
            if close < 0:
                continue
            text = self.source.expanded(body[match.start() : close + 1], start + match.start())
            for one, given, _ in calls(text, pattern):
                self.registration(namespace, key, one["what"], given, start + match.start())

    def classes(self, variable: str, start: int, end: int) -> list[range]:
        """Return where classes of TorchScript are bound, ``m.class_<T>("T").def(…)``: their methods are not operators."""
        found = []
        code = self.source.code
        for match in re.compile(rf"\b{variable}\s*\.\s*class_\s*<").finditer(code, start, end):
            offset = match.end()
            while offset < end and code[offset] != ";":
                close = close_of(code, offset) if code[offset] in "([{" else offset
                offset = max(close, offset) + 1
            found.append(range(match.start(), offset))
        return found

    def body_of(self, name: str) -> str:
        found = self.source._names.get(name, ())
        return (found[-1].body or "") if found else ""

    def registrations(
        self, namespace: str, key: str, start: int, end: int, pattern: re.Pattern[str], classes: Sequence[range] = ()
    ) -> None:
        code = self.source.code
        for match in pattern.finditer(code, start, end):
            if any(match.start() in one for one in classes):
                continue
            close = close_of(code, match.end() - 1)
            if close < 0:
                self.findings.report(
                    self.place(match.start()), f"{match['what']}(: its call has no end; close it with )"
                )
                continue
            self.registration(namespace, key, match["what"], split(code[match.end() : close]), match.start(), close)

    def registration(self, namespace: str, key: str, what: str, given: list[str], offset: int, end: int = 0) -> None:
        place = self.place(offset)
        if not given:
            return
        text = text_of(self.source, given[0], offset)
        if text is None:
            shown = " ".join(given[0].split())
            self.findings.report(
                place,
                f"{what}({shown[:60]}: the {'name' if what == 'impl' else 'schema'} is computed; expected string literals",
            )
            return
        if what in ("def", "op"):
            self.definition(namespace, text, given, offset, end or offset)
        elif what == "impl":
            space, _, name = text.rpartition("::")
            full = operator_key(f"{space or namespace}::{name}")
            keys = [found for one in given[1:-1] for found in _KEYS.findall(one)]
            dispatched = re.match(r"\s*(?:torch|c10)::dispatch\s*\(", given[-1])
            if dispatched:
                inner = split(given[-1][dispatched.end() : close_of(given[-1], dispatched.end() - 1)])
                keys += _KEYS.findall(inner[0])
                given = inner
            self.implementation(full, keys[0] if keys else key, given[-1], place)

    def definition(self, namespace: str, text: str, given: list[str], offset: int, end: int) -> None:
        place = self.place(offset)
        # c10::List of tags may stand between.
        function = next((one for one in given[1:] if not one.lstrip().startswith("{") and "Tag" not in one), None)
        inferred = False
        if "(" not in text:
            found = function_of(function, place, self.findings) if function else None
            made = schema_of(text, found) if found else None
            if made is None:
                self.findings.report(
                    place,
                    f"{text}: the schema is that of its function, which is not found or has other types; write the "
                    "schema as a string",
                    text,
                )
                return
            text, inferred = made, True
        try:
            schema = parse_schema(text, namespace)
        except SchemaTextError as error:
            self.findings.report(place, str(error), text.partition("(")[0].strip())
            return
        name = schema.name
        if not name.partition("::")[2]:
            self.findings.report(place, f"{name}: the schema has no namespace; write namespace::name(…)", name)
            return
        conditions = conditions_at(self.source.text, self.source.origin(offset))
        self.findings.definitions.append(
            Definition(name, schema, place, conditions, inferred, self.source.line_of(end))
        )
        if function is not None:
            keys = _KEYS.findall(function) if "dispatch(" in function else []
            self.implementation(schema.qualified_name, keys[0] if keys else "", function, place)

    def implementation(self, name: str, key: str, written: str, place: SourcePlace) -> None:
        function = function_of(written, place, self.findings)
        shown = function_name(written) or " ".join(written.split())[:60]
        self.findings.implementations.append(Implementation(name, key, function, shown, place))


def schema_of(name: str, function: CppFunction) -> str | None:
    """Return the schema that torch makes from a function's declaration; None for a type that it does not take."""
    arguments = []
    for number, parameter in enumerate(function.parameters):
        kind = schema_type(parameter.type)
        if kind is None:
            return None
        arguments.append(f"{kind} _{number}")
    declared = plain_type(function.returns)
    if declared == "void":
        returns = "()"
    elif declared.startswith("std::tuple<"):
        parts = [schema_type(one) for one in split(declared[len("std::tuple<") : -1])]
        if None in parts:
            return None
        returns = f"({', '.join(f'{part} _{n}' for n, part in enumerate(parts))})"
    else:
        kind = schema_type(declared)
        if kind is None:
            return None
        returns = f"{kind} _0"
        returns = f"({returns})"
    return f"{name}({', '.join(arguments)}) -> {returns}"
