"""Parser of REG_OP text.

This module reads only the form of a definition: the calls, their order and their arguments. ``types`` interprets type
arguments, ``literals`` interprets defaults.

Sources: the macros of the CANN header graph/operator_reg.h, and the headers that use them.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from ascend_graph.prototypes.literal_values import LiteralError
from ascend_graph.prototypes.literals import read_default
from ascend_graph.prototypes.model import (
    Attr,
    AttrType,
    AttrValue,
    DataTypeSymbol,
    OpPrototype,
    Parameter,
    ParameterKind,
    Subgraph,
)
from ascend_graph.prototypes.types import MAX_ARGUMENT, TypeFacts, read_type
from ascend_graph.sources.diagnostics import Diagnosed, Diagnostic, Severity
from ascend_graph.sources.text import SourceText, read_source


@dataclass(frozen=True, slots=True)
class ParseResult(Diagnosed):
    """The prototypes of a source in its order, and the diagnostics about it."""

    prototypes: tuple[OpPrototype, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()


_REQUIRED, _OPTIONAL, _DYNAMIC = ParameterKind.REQUIRED, ParameterKind.OPTIONAL, ParameterKind.DYNAMIC
_INPUTS = {"INPUT": _REQUIRED, "OPTIONAL_INPUT": _OPTIONAL, "DYNAMIC_INPUT": _DYNAMIC}
_OUTPUTS = {"OUTPUT": _REQUIRED, "DYNAMIC_OUTPUT": _DYNAMIC}
_GRAPHS = {"GRAPH": _REQUIRED, "DYNAMIC_GRAPH": _DYNAMIC}
_ENDS = ("OP_END_FACTORY_REG", "OP_END_FACTORY_REG_WITHOUT_REGISTER")
_CALLS = (*_INPUTS, *_OUTPUTS, "ATTR", "REQUIRED_ATTR", "DATATYPE", *_GRAPHS, *_ENDS)

_ATTR_TYPES = {attr_type.value: attr_type for attr_type in AttrType} | {
    "AscendString": AttrType.STRING,
    "ListAscendString": AttrType.LIST_STRING,
    "ListAcendString": AttrType.LIST_STRING,  # so spelled in graph/operator.h, next to the right spelling
}
#: C++ types in place of the macro's own names: some headers contain them, but no compiler accepts them.
_FOREIGN_ATTR_TYPES = {
    "int": AttrType.INT,
    "int64_t": AttrType.INT,
    "int32_t": AttrType.INT,
    "float": AttrType.FLOAT,
    "bool": AttrType.BOOL,
    "string": AttrType.STRING,
    "DataType": AttrType.TYPE,
}

_BEGIN = re.compile(r"REG_OP(?<!\wREG_OP)\s*\(")  # a literal first: searching for it is fast
_OP_TYPE = re.compile(r"\s*([A-Za-z_]\w*)\s*\)")
_CALL = re.compile(r"\s*\.\s*([A-Za-z_]\w*)\s*\(")
_SPACE = re.compile(r"\s*")
_NAME = re.compile(r"\s*([A-Za-z_]\w*)\s*")
_BRACKET = re.compile(
    r"[()]"
    r'|"[^"\\\n]*(?:\\(?:\r\n|.)[^"\\\n]*)*(?P<end>")?'
    r"|'(?:[^'\\\n]|\\.){1,64}'"
    rf"|\.\s*(?:{'|'.join(_CALLS)})\s*\(",
    re.DOTALL,
)
_BLANKS = re.compile(r"\s+")


class _SyntaxProblem(Exception):  # noqa: N818 - never leaves this module
    """A problem that stops the reading of one definition, at ``offset``."""

    def __init__(self, offset: int, message: str) -> None:
        super().__init__(message)
        self.offset = offset


def parse_source(source: SourceText) -> ParseResult:
    """Read every REG_OP of a source."""
    code = source.code
    begins = [match.start() for match in _BEGIN.finditer(code) if not source.is_string(match.start())]
    prototypes: list[OpPrototype] = []
    for index, begin in enumerate(begins):
        if source.full:
            source.report(Severity.ERROR, begin, "too many problems: the rest was not read; fix these first")
            break
        limit = begins[index + 1] if index + 1 < len(begins) else len(code)
        definition = _Definition(source, begin, limit)
        try:
            prototypes.append(definition.read())
        except _SyntaxProblem as problem:
            source.report(Severity.ERROR, problem.offset, str(problem), definition.op_type)
    diagnostics = sorted(source.diagnostics, key=lambda diagnostic: (diagnostic.line, diagnostic.column))
    return ParseResult(tuple(prototypes), tuple(diagnostics))


def parse_text(text: str, file: str = "") -> ParseResult:
    """Read every REG_OP of a text.

    ``file`` is the file name in diagnostics and prototypes. The contents of the text never raise: problems are in
    ``ParseResult.diagnostics``.

    >>> result = parse_text('''
    ... REG_OP(AddCustom)
    ...     .INPUT(x, TensorType({DT_FLOAT16, DT_FLOAT}))
    ...     .INPUT(y, TensorType({DT_FLOAT16, DT_FLOAT}))
    ...     .OUTPUT(z, TensorType({DT_FLOAT16, DT_FLOAT}))
    ...     .ATTR(alpha, Float, 1.0)
    ...     .OP_END_FACTORY_REG(AddCustom)
    ... ''')
    >>> [parameter.name for parameter in result.prototypes[0].inputs]
    ['x', 'y']
    >>> result.prototypes[0].attrs[0].default
    1.0
    """
    return parse_source(SourceText(text, file))


def parse_file(path: str | Path) -> ParseResult:
    """Read every REG_OP of a file.

    Raises:
        SourceError: the file cannot be read as text.
    """
    return parse_source(read_source(Path(path)))


class _Definition:
    """Reader of one REG_OP … OP_END_FACTORY_REG."""

    def __init__(self, source: SourceText, begin: int, limit: int) -> None:
        self.source = source
        self.code = source.code
        self.begin = begin
        self.limit = limit
        self.op_type = ""
        self.inputs: dict[str, Parameter] = {}
        self.outputs: dict[str, Parameter] = {}
        self.attrs: dict[str, Attr] = {}
        self.symbols: dict[str, DataTypeSymbol] = {}
        self.graphs: list[Subgraph] = []
        #: Name and offset of each type argument that is a lone name; only the end shows if the name is declared.
        self.lone_names: list[tuple[str, int]] = []

    def read(self) -> OpPrototype:
        code, limit = self.code, self.limit
        opening = code.index("(", self.begin)
        match = _OP_TYPE.match(code, opening + 1, limit)
        if match is None:
            raise self._problem(opening + 1, "REG_OP needs the name of the op, as in REG_OP(AddCustom)")
        self.op_type = match.group(1)
        position = match.end()
        while True:
            match = _CALL.match(code, position, limit)
            if match is None:
                raise self._no_call(position)
            call = match.group(1)
            opening = match.end() - 1
            closing = self._closing(opening, call)
            position = closing + 1
            if call in _INPUTS:
                self._parameter(call, opening + 1, closing, self.inputs, _INPUTS[call])
            elif call in _OUTPUTS:
                self._parameter(call, opening + 1, closing, self.outputs, _OUTPUTS[call])
            elif call in ("ATTR", "REQUIRED_ATTR"):
                self._attr(call, opening + 1, closing)
            elif call == "DATATYPE":
                self._symbol(opening + 1, closing)
            elif call in _GRAPHS:
                name, rest = self._leading_name(call, opening + 1, closing)
                if rest < closing:
                    raise self._problem(rest, f"{call} takes one argument, the name of the subgraph")
                self.graphs.append(Subgraph(name, _GRAPHS[call]))
            elif call in _ENDS:
                self._end(call, opening + 1, closing)
                return self._prototype()
            else:
                close = difflib.get_close_matches(call, _CALLS, 1)
                hint = f"; did you mean .{close[0]}?" if close else f"; expected one of {', '.join(_CALLS)}"
                raise self._problem(match.start(1), f"REG_OP({self.op_type}) has no call .{call}{hint}")

    def _problem(self, offset: int, message: str) -> _SyntaxProblem:
        return _SyntaxProblem(min(offset, len(self.code)), message)

    def _warn(self, offset: int, message: str) -> None:
        if not self.source.full:
            self.source.report(Severity.WARNING, offset, f"{self.op_type}: {message}", self.op_type)

    def _no_call(self, position: int) -> _SyntaxProblem:
        offset = _SPACE.match(self.code, position).end()  # type: ignore[union-attr]
        if offset >= self.limit:
            return self._problem(
                self.begin,
                f"REG_OP({self.op_type}) is never closed by .OP_END_FACTORY_REG; write .OP_END_FACTORY_REG({self.op_type}) at its end",
            )
        return self._problem(offset, f"REG_OP({self.op_type}): a call such as .INPUT(…) was expected here")

    def _closing(self, opening: int, call: str) -> int:
        depth = 1
        position = opening + 1
        unfinished = False
        while depth:
            match = _BRACKET.search(self.code, position, self.limit)
            if match is None or match.group()[0] == ".":
                raise self._problem(
                    opening, f"REG_OP({self.op_type}): the bracket of .{call} is never closed; add its ')'"
                )
            bracket = match.group()
            if bracket == "(":
                depth += 1
            elif bracket == ")":
                depth -= 1
            elif bracket[0] == '"' and match["end"] is None and not unfinished:
                unfinished = True  # a string without an end on its line: what follows it is code, but only once
                position = match.start() + 1
                continue
            position = match.end()
        return position - 1

    def _leading_name(self, call: str, start: int, end: int) -> tuple[str, int]:
        """Return the first argument, and the offset of the comma after it (or of the end)."""
        match = _NAME.match(self.code, start, end)
        if match is None or (match.end() < end and self.code[match.end()] != ","):
            offset = _SPACE.match(self.code, start, end).end()  # type: ignore[union-attr]
            raise self._problem(offset, f"REG_OP({self.op_type}): .{call} needs a name as its first argument")
        return match.group(1), match.end()

    def _parameter(self, call: str, start: int, end: int, into: dict[str, Parameter], kind: ParameterKind) -> None:
        name, comma = self._leading_name(call, start, end)
        if name in into:
            side = "inputs" if into is self.inputs else "outputs"
            raise self._problem(start, f"REG_OP({self.op_type}) has two {side} named {name}; rename one")
        text, facts = self._type(call, name, comma, end)
        into[name] = Parameter(
            name,
            kind,
            facts.dtypes,
            text,
            facts.symbol,
            facts.promote,
            facts.list_type,
            tuple(unknown for unknown, _ in facts.unknown),
        )

    def _symbol(self, start: int, end: int) -> None:
        name, comma = self._leading_name("DATATYPE", start, end)
        if name in self.symbols:
            raise self._problem(
                start, f"REG_OP({self.op_type}) has two DATATYPEs named {name}; leave one out, or rename it"
            )
        text, facts = self._type("DATATYPE", name, comma, end)
        unknown = tuple(unknown for unknown, _ in facts.unknown)
        self.symbols[name] = DataTypeSymbol(name, facts.dtypes, text, facts.promote, facts.list_type, unknown)

    def _type(self, call: str, name: str, comma: int, end: int) -> tuple[str, TypeFacts]:
        start = comma + 1
        raw = self.code[start:end]
        text = raw.strip()
        if not text:
            raise self._problem(min(comma, end), f"REG_OP({self.op_type}): .{call}({name}, …) needs a type")
        if len(raw) > MAX_ARGUMENT:
            self._warn(
                start, f"type of {name}: {len(raw):,} characters are too many for a type; the limit is {MAX_ARGUMENT:,}"
            )
            return "", TypeFacts()
        facts = read_type(raw)
        if facts.unknown or facts.symbol:
            expanded = self.source.expanded(raw, start)
            if (
                expanded != raw and len(expanded) <= MAX_ARGUMENT
            ):  # offsets no longer fit: remarks go to the start of the argument
                facts = read_type(expanded)
                facts = replace(
                    facts,
                    unknown=tuple((unknown, 0) for unknown, _ in facts.unknown),
                    problems=tuple((0, message) for _, message in facts.problems),
                )
        if facts.symbol is not None:
            self.lone_names.append((facts.symbol, start + len(raw) - len(raw.lstrip())))
        for offset, message in facts.problems:
            self._warn(start + (offset or len(raw) - len(raw.lstrip())), f"type of {name}: {message}")
        return _BLANKS.sub(" ", text) if not text.isprintable() or "  " in text else text, facts

    def _attr(self, call: str, start: int, end: int) -> None:
        name, comma = self._leading_name(call, start, end)
        if name in self.attrs:
            raise self._problem(start, f"REG_OP({self.op_type}) has two attrs named {name}; rename one")
        match = _NAME.match(self.code, comma + 1, end)
        if match is None:
            raise self._problem(
                min(comma, end), f"REG_OP({self.op_type}): .{call}({name}, …) needs a type such as Int or ListFloat"
            )
        type_name, type_offset = match.group(1), match.start(1)
        attr_type = _ATTR_TYPES.get(type_name)
        if attr_type is None:
            attr_type = _FOREIGN_ATTR_TYPES.get(type_name)
            if attr_type is None:
                close = difflib.get_close_matches(type_name, _ATTR_TYPES, 1)
                hint = f"did you mean {close[0]}?" if close else f"expected one of {', '.join(_ATTR_TYPES)}"
                raise self._problem(
                    type_offset, f"REG_OP({self.op_type}): attr {name} has the unknown type {type_name}; {hint}"
                )
            self._warn(
                type_offset, f"attr {name}: {type_name} is not an attr type; write {attr_type.value}, as it is read"
            )
        rest = match.end()
        if rest < end and self.code[rest] != ",":
            raise self._problem(rest, f"REG_OP({self.op_type}): a comma was expected after the type of attr {name}")
        if call == "REQUIRED_ATTR":
            if rest < end:
                self._warn(rest, f"attr {name} is required: its default is never used")
            self.attrs[name] = Attr(name, attr_type, True)
            return
        default, text, known = self._default(name, attr_type, rest, end)
        self.attrs[name] = Attr(name, attr_type, False, default, text, known)

    def _default(self, name: str, attr_type: AttrType, comma: int, end: int) -> tuple[AttrValue, str, bool]:
        start = min(comma + 1, end)
        raw = self.code[start:end]
        if len(raw) > MAX_ARGUMENT:
            self._warn(
                start, f"attr {name}: {len(raw):,} characters are too many for a default; the limit is {MAX_ARGUMENT:,}"
            )
            return None, "", False
        text = _BLANKS.sub(" ", raw.strip()) if '"' not in raw else raw.strip()
        if not text:
            value = read_default(attr_type, "")
            self._warn(min(comma, end), f"attr {name} has no default; {value!r} is assumed. Write one")
            return value, "", True
        try:
            try:
                return read_default(attr_type, raw), text, True
            except LiteralError:
                expanded = self.source.expanded(raw, start)
                if expanded == raw:
                    raise
                return read_default(attr_type, expanded), text, True
        except LiteralError as error:
            offset = start + min(error.offset, len(raw))
            self._warn(
                offset,
                f"attr {name}: the default {_shortened(text)} is not a constant {attr_type.value} ({error}); write a literal",
            )
            return None, text, False

    def _end(self, call: str, start: int, end: int) -> None:
        name, rest = self._leading_name(call, start, end)
        if rest < end or name != self.op_type:
            raise self._problem(
                start,
                f"{call}({self.code[start:end].strip()[:80]}) closes REG_OP({self.op_type}); write {call}({self.op_type})",
            )

    def _prototype(self) -> OpPrototype:
        symbols = self.symbols
        typed_attrs = {
            attr.name for attr in self.attrs.values() if attr.type in (AttrType.TYPE, AttrType.LIST_TYPE, AttrType.INT)
        }
        for name, offset in self.lone_names:
            if name not in symbols and name not in typed_attrs:
                self._warn(
                    offset, f"no DATATYPE({name}, …) declares the type {name}; add .DATATYPE({name}, TensorType({{…}}))"
                )
        return OpPrototype(
            self.op_type,
            tuple(_resolved(parameter, symbols) for parameter in self.inputs.values()),
            tuple(self.attrs.values()),
            tuple(_resolved(parameter, symbols) for parameter in self.outputs.values()),
            self.source.comment_before(self.begin),
            self.source.file,
            self.source.line_of(self.begin),
            tuple(self.symbols.values()),
            tuple(self.graphs),
        )


def _resolved(parameter: Parameter, symbols: dict[str, DataTypeSymbol]) -> Parameter:
    if parameter.symbol is None:
        return parameter
    symbol = symbols.get(parameter.symbol)
    if symbol is None:
        return replace(parameter, unknown_types=(parameter.symbol,))
    return replace(
        parameter,
        dtypes=symbol.dtypes,
        promote=symbol.promote,
        list_type=symbol.list_type,
        unknown_types=symbol.unknown_types,
    )


def _shortened(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}…"


def merge_results(results: Iterable[ParseResult]) -> ParseResult:
    """Merge several results into one, in order."""
    prototypes: list[OpPrototype] = []
    diagnostics: list[Diagnostic] = []
    for result in results:
        prototypes += result.prototypes
        diagnostics += result.diagnostics
    return ParseResult(tuple(prototypes), tuple(diagnostics))
