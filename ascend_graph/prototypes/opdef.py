"""Parser of an operator project's ``OpDef`` classes (op_host/*_def.cpp) into the prototypes that its build gives.

It reads the calls on the class itself: ``this->Input("x").ParamType(REQUIRED).DataType({…})``, ``Output``, ``Attr``.
The ``OpAICoreConfig`` of one chip is read if the class itself has no inputs and outputs. Tiling and shape functions are
not part of the prototype.
"""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ascend_graph.prototypes.literal_values import LiteralError, unquote
from ascend_graph.prototypes.literals import read_default
from ascend_graph.prototypes.model import Attr, AttrType, AttrValue, OpPrototype, Parameter, ParameterKind, PassedAs
from ascend_graph.prototypes.parser import ParseResult
from ascend_graph.prototypes.types import MAX_ARGUMENT, read_type
from ascend_graph.sources.diagnostics import Severity
from ascend_graph.sources.text import SourceText

_CLASS = re.compile(r"\bclass\s+([A-Za-z_]\w*)\s*(?:final\s*)?:\s*public\s+(?:(?:::)?\s*ops\s*::\s*)?OpDef\s*\{")
_REGISTERED = re.compile(r"\bOP_ADD\s*\(\s*([A-Za-z_]\w*)")
_BEGIN = re.compile(r'(?:\bthis\s*->\s*|(?<![\w.>:]))(Input|Output|Attr)\s*\(\s*("[^"\\\n]*")?')
_CONFIG = re.compile(r"\bOpAICoreConfig\s+([A-Za-z_]\w*)\s*[;({]")
_METHOD = re.compile(r"\s*\.\s*([A-Za-z_]\w*)\s*\(")
_BRACKET = re.compile(r"""[(){}]|"[^"\\\n]*(?:\\.[^"\\\n]*)*"?|'(?:[^'\\\n]|\\.){1,64}'""", re.DOTALL)
_NAME = re.compile(r"[A-Za-z_]\w*\Z")
#: Control flow that makes the iterations of a loop differ.
_BRANCH = re.compile(r"\b(?:if|for|while|switch|break|continue|return|goto)\b|\?")
#: Maximum number of loops that are checked in a class.
MOST_LOOPS = 64
#: A loop over names: its variable, and the list of them or the name of an array.
_LOOP = re.compile(
    r"\bfor\s*\(\s*(?:const\s+)?(?:\w+\s*::\s*)?\w+(?:\s+const\b)?[\s*&]+([A-Za-z_]\w*)\s*:\s*(\w+|\{[^{}()]*\})\s*\)\s*\{"
)
_STRINGS = re.compile(r'\s*"[^"\\\n]*"\s*(?:,\s*"[^"\\\n]*"\s*)*,?\s*\Z')
#: Vectors of dtypes: a copy of another one's elements, and one dtype repeated.
_VECTOR = r"(?:std\s*::\s*)?vector\s*<\s*(?:ge\s*::\s*)?DataType\s*>\s*"
_ALL_OF = re.compile(_VECTOR + r"[({]\s*(\w+)\s*\.\s*c?begin\s*\(\s*\)\s*,\s*\1\s*\.\s*c?end\s*\(\s*\)\s*[)}]")
_REPEATED = re.compile(_VECTOR + r"\(\s*(?:\{[^{}]*\}|\w+)(?:\s*\.\s*size\s*\(\s*\))?\s*,\s*((?:\w+\s*::\s*)*\w+)\s*\)")
_MADE_OF = re.compile(_VECTOR + r"(?=[({])")
#: Syntax of a computed list: members and template arguments.
_COMPUTED = re.compile(r"\.\s*[A-Za-z_]|->|[\w>]\s*<")

#: Parameter kinds by their OpDef name. Nothing in a graph feeds a virtual one: a pass of the graph engine, or a
#: hand-written function, supplies it.
_KINDS = {**{kind.name: kind for kind in ParameterKind}, "VIRTUAL": ParameterKind.OPTIONAL}
_PASSED_AS = {
    "ValueDepend": PassedAs.VALUES,
    "Scalar": PassedAs.SCALAR,
    "ScalarList": PassedAs.SCALAR_LIST,
}
_ATTR_TYPES = {
    name: AttrType(name)
    for name in ("Int", "Float", "Bool", "String", "ListInt", "ListFloat", "ListBool", "ListString", "ListListInt")
}


def mentions_op_def(code: str) -> bool:
    """Return whether a C++ source defines operators as OpDef classes."""
    return "OpDef" in code and _CLASS.search(code) is not None


def parse_op_defs(source: SourceText) -> ParseResult:
    """Read every OpDef class of a source.

    >>> source = SourceText('''
    ... class AddCustom : public OpDef {
    ... public:
    ...     explicit AddCustom(const char* name) : OpDef(name) {
    ...         this->Input("x").ParamType(REQUIRED).DataType({ge::DT_FLOAT16, ge::DT_FLOAT});
    ...         this->Output("z").ParamType(REQUIRED).DataType({ge::DT_FLOAT16, ge::DT_FLOAT});
    ...         this->Attr("alpha").AttrType(OPTIONAL).Float(1e-6);
    ...     }
    ... };
    ... OP_ADD(AddCustom);
    ... ''')
    >>> found = parse_op_defs(source).prototypes[0]
    >>> found.inputs[0].dtypes
    (<DataType.FLOAT16: 1>, <DataType.FLOAT: 0>)
    >>> found.attrs[0].default
    1e-06
    """
    registered = {match.group(1) for match in _REGISTERED.finditer(source.code)}
    prototypes = []
    classes = list(_CLASS.finditer(source.code))
    limits = [match.start() for match in classes[1:]] + [len(source.code)]
    for match, limit in zip(classes, limits, strict=True):
        if source.full:
            source.report(Severity.ERROR, match.start(), "too many problems: the rest was not read; fix these first")
            break
        reader = _ClassReader(source, match.group(1), match.start())
        end = _closing(source.code, match.end() - 1, limit)
        if end is None:
            source.report(
                Severity.ERROR,
                match.end() - 1,
                f"class {reader.op_type} is never closed; add its '}};'",
                reader.op_type,
            )
            continue
        if registered and reader.op_type not in registered:
            reader.warn(match.start(1), f"no OP_ADD({reader.op_type}) registers this class; add it below the class")
        prototype = reader.read(match.end(), end)
        if prototype is not None:
            prototypes.append(prototype)
    diagnostics = sorted(source.diagnostics, key=lambda diagnostic: (diagnostic.line, diagnostic.column))
    return ParseResult(tuple(prototypes), tuple(diagnostics))


@dataclass(frozen=True, slots=True)
class _Call:
    """One method call of a chain, with its argument text and the offset of that text."""

    method: str
    argument: str
    offset: int


@dataclass(frozen=True, slots=True)
class _Loop:
    """A loop over listed names: the range of its body, and the values of its variable."""

    begin: int
    end: int
    variable: str
    names: tuple[str, ...]


def _loops(code: str, start: int, end: int) -> Iterator[_Loop]:
    """Yield the loops over names in source order, up to ``MOST_LOOPS``."""
    for match in itertools.islice(_LOOP.finditer(code, start, end), MOST_LOOPS):
        listed = match.group(2)
        if listed.startswith("{"):
            text = listed[1:-1]
        else:
            arrays = re.compile(rf"\b{listed}\s*(?:\[\s*\w*\s*\])?\s*=?\s*\{{([^{{}}]*)\}}")
            text = next((found.group(1) for found in reversed(list(arrays.finditer(code, 0, match.start())))), "")
        closing = _closing(code, match.end() - 1, end)
        if closing is not None and _STRINGS.match(text) and not _BRANCH.search(code, match.end(), closing):
            names = tuple(unquote(one).decode(errors="replace") for one in re.findall(r'"[^"\n]*"', text))
            yield _Loop(match.end(), closing, match.group(1), names)


def _closing(code: str, opening: int, limit: int) -> int | None:
    """Return the offset of the bracket that closes the one at ``opening``, or None."""
    pair = {"(": "()", "{": "{}"}[code[opening]]
    depth = 0
    for match in _BRACKET.finditer(code, opening, limit):
        bracket = match.group()
        if bracket == pair[0]:
            depth += 1
        elif bracket == pair[1]:
            depth -= 1
            if depth == 0:
                return match.start()
    return None


def _plain(text: str) -> str:
    """Return the text with vector constructors reduced to the list of dtypes in them."""
    return _MADE_OF.sub("", _REPEATED.sub(r"\1", _ALL_OF.sub(r"\1", text)))


class _ClassReader:
    """Reader of one class."""

    def __init__(self, source: SourceText, op_type: str, begin: int) -> None:
        self.source = source
        self.op_type = op_type
        self.begin = begin
        self.inputs: dict[str, Parameter] = {}
        self.outputs: dict[str, Parameter] = {}
        self.attrs: dict[str, Attr] = {}

    def warn(self, offset: int, message: str) -> None:
        if not self.source.full:
            self.source.report(Severity.WARNING, offset, f"{self.op_type}: {message}", self.op_type)

    def error(self, offset: int, message: str) -> None:
        self.source.report(Severity.ERROR, offset, f"{self.op_type}: {message}", self.op_type)

    def read(self, start: int, end: int) -> OpPrototype | None:
        if not self.declarations(_BEGIN, start, end) or not self.configured(start, end):
            return None
        return OpPrototype(
            self.op_type,
            tuple(self.inputs.values()),
            tuple(self.attrs.values()),
            tuple(self.outputs.values()),
            self.source.comment_before(self.begin),
            self.source.file,
            self.source.line_of(self.begin),
        )

    def configured(self, start: int, end: int) -> bool:
        """Read the inputs and outputs of the first chip that has any, of a class that leaves them to its chips."""
        for match in _CONFIG.finditer(self.source.code, start, end):
            if self.inputs or self.outputs:
                break
            begin = rf'\b{match[1]}\s*\.\s*(Input|Output)\s*\(\s*("[^"\\\n]*")?'
            if not self.declarations(re.compile(begin), start, end):
                return False
        return True

    def declarations(self, pattern: re.Pattern[str], start: int, end: int) -> bool:
        """Read the calls that a pattern finds; false if the name of one is not known."""
        done = start
        loops: list[_Loop] | None = None
        for match in pattern.finditer(self.source.code, start, end):
            if match.start() < done:
                continue  # inside the arguments of a call that was read
            kind = match.group(1)
            closing = _closing(self.source.code, self.source.code.index("(", match.start(1)), end)
            if match.group(2) is None and loops is None:
                loops = list(_loops(self.source.code, start, end))
            names = () if closing is None else self.names(kind, match, closing, loops or ())
            if closing is None or not names:
                self.error(
                    match.start(1), f"{kind} needs a string as its name; a name that is computed is not known here"
                )
                return False
            calls = list(self.chain(closing + 1, end))
            done = calls[-1].offset + len(calls[-1].argument) if calls else closing
            for name in names:
                if not _NAME.match(name):
                    self.error(match.end(1), f"{kind} needs a name that is an identifier, not {name!r}")
                    return False
                if kind == "Attr":
                    self.attrs[name] = self.attr(name, calls, match.end(1))
                else:
                    into = self.inputs if kind == "Input" else self.outputs
                    into[name] = self.parameter(name, calls, match.end(1), is_output=kind == "Output")
        return True

    def names(self, kind: str, match: re.Match[str], closing: int, loops: Sequence[_Loop]) -> tuple[str, ...]:
        """Return the names of a call: its string, or a loop variable's values; empty if unknown."""
        if match.group(2) is not None:
            return (unquote(match.group(2)).decode(errors="replace"),)
        argument = self.source.code[match.end(1) : closing].lstrip(" \t\n(").rstrip()
        around = [loop for loop in loops if loop.begin <= match.start() < loop.end]
        if len(around) != 1 or around[0].variable != argument:
            return ()
        # Two inputs of one turn would take turns: a, b, a, b.
        alike = [m for m in _BEGIN.finditer(self.source.code, around[0].begin, around[0].end) if m.group(1) == kind]
        return around[0].names if len(alike) == 1 else ()

    def chain(self, position: int, end: int) -> Iterator[_Call]:
        while match := _METHOD.match(self.source.code, position, end):
            closing = _closing(self.source.code, match.end() - 1, end)
            if closing is None:
                self.error(match.end() - 1, f"the bracket of .{match.group(1)} is never closed; add its ')'")
                return
            yield _Call(match.group(1), self.source.code[match.end() : closing], match.end())
            position = closing + 1

    def parameter(self, name: str, calls: list[_Call], offset: int, *, is_output: bool) -> Parameter:
        kind = ParameterKind.REQUIRED
        parameter = Parameter(name, kind)
        for call in calls:
            argument = call.argument.strip()
            if call.method == "ParamType":
                kind = self.option(argument, call.offset)
            elif call.method in ("DataType", "DataTypeList"):
                if len(call.argument) > MAX_ARGUMENT:
                    self.warn(call.offset, f"type of {name}: the limit is {MAX_ARGUMENT:,} characters")
                    continue
                text = _plain(call.argument)
                facts = read_type(text)
                if facts.unknown or facts.symbol:
                    text = _plain(self.source.expanded(text, call.offset))
                    facts = read_type(text)
                if facts.problems and _COMPUTED.search(text):
                    self.warn(call.offset, f"type of {name}: {argument[:80]} is computed; build the project to know it")
                    parameter = Parameter(name, kind, unknown_types=(argument[:80],))
                    continue
                for problem_offset, message in facts.problems:
                    self.warn(
                        call.offset + (problem_offset if text is call.argument else 0), f"type of {name}: {message}"
                    )
                if facts.symbol is not None:
                    self.warn(call.offset, f"type of {name}: {argument} is not a list of dtypes that is known here")
                unknown = tuple(unknown for unknown, _ in facts.unknown)
                parameter = Parameter(name, kind, facts.dtypes, unknown_types=unknown)
            elif call.method == "Follow" and ("DTYPE" in argument or "FollowType" not in argument):
                followed = self.inputs.get(argument.split(",")[0].strip().strip('"'))
                if followed is not None:
                    parameter = Parameter(name, kind, followed.dtypes, unknown_types=followed.unknown_types)
        if is_output and kind is ParameterKind.OPTIONAL:
            kind = ParameterKind.REQUIRED  # REG_OP has no optional outputs; the package's header says OUTPUT
        said = [
            _PASSED_AS[call.method] for call in calls if call.method in _PASSED_AS and "IGNORE" not in call.argument
        ]
        passed_as = said[-1] if said and not is_output else PassedAs.TENSOR
        return replace(
            parameter, kind=kind, passed_as=passed_as, initialized=any(one.method == "InitValue" for one in calls)
        )

    def attr(self, name: str, calls: list[_Call], offset: int) -> Attr:
        attr_type: AttrType | None = None
        required = True
        default: AttrValue = None
        text, known = "", True
        for call in calls:
            if call.method == "AttrType":
                required = self.option(call.argument.strip(), call.offset) is ParameterKind.REQUIRED
            elif call.method in _ATTR_TYPES:
                attr_type = _ATTR_TYPES[call.method]
                text = call.argument.strip()
                try:
                    if len(call.argument) > MAX_ARGUMENT:
                        raise LiteralError(f"the limit is {MAX_ARGUMENT:,} characters")
                    default = read_default(attr_type, self.source.expanded(call.argument, call.offset))
                except LiteralError as error:
                    known = False
                    self.warn(
                        call.offset + min(error.offset, len(call.argument)),
                        f"attr {name}: the default {text[:60]} is not a constant ({error}); write a literal",
                    )
        if attr_type is None:
            self.warn(
                offset,
                f"attr {name} has no type and is read as Int; expected a call of one of {', '.join(_ATTR_TYPES)}",
            )
            attr_type, default = AttrType.INT, 0
        if required:
            return Attr(name, attr_type, True)
        return Attr(name, attr_type, False, default, text, known)

    def option(self, argument: str, offset: int) -> ParameterKind:
        name = argument.rpartition("::")[2].strip()
        kind = _KINDS.get(name)
        if kind is None:
            close = difflib.get_close_matches(name, _KINDS, 1)
            hint = f"did you mean {close[0]}?" if close else f"expected one of {', '.join(_KINDS)}"
            self.warn(offset, f"{name} is unknown and is read as REQUIRED; {hint}")
            return ParameterKind.REQUIRED
        return kind
