"""Parser of the JSON that describes operators for msOpGen.

One object or a list of objects ``{"op": …, "input_desc": […], "output_desc": […], "attr": […]}``, as in the CANN
documentation of msOpGen.
"""

from __future__ import annotations

import json
import re
from typing import Any

from ascend_graph.prototypes.dtypes import DTYPE_BY_GE_NAME, NAMED_SETS, DataType
from ascend_graph.prototypes.literal_values import LiteralError
from ascend_graph.prototypes.literals import coerce, read_default
from ascend_graph.prototypes.model import Attr, AttrType, AttrValue, OpPrototype, Parameter, ParameterKind
from ascend_graph.prototypes.parser import ParseResult
from ascend_graph.sources.constants import BOOL, DOUBLE, ConstantError, Number, integer_literal, unary
from ascend_graph.sources.diagnostics import Severity
from ascend_graph.sources.text import SourceText

_NAME = re.compile(r"[A-Za-z_]\w*\Z")
_OP = re.compile(r'"op"\s*:\s*"')
_KINDS = {kind.value: kind for kind in ParameterKind}
_DTYPES = {dtype.name.lower(): dtype for dtype in DataType} | {
    "fp16": DataType.FLOAT16,
    "half": DataType.FLOAT16,
    "fp32": DataType.FLOAT,
    "float32": DataType.FLOAT,
    "fp64": DataType.DOUBLE,
    "float64": DataType.DOUBLE,
    "bfloat16": DataType.BF16,
    "bfp16": DataType.BF16,
}
_SETS = (
    {name.lower(): dtypes for name, dtypes in NAMED_SETS.items() if name != "FLOAT"}
    | {name.lower().removesuffix("type"): dtypes for name, dtypes in NAMED_SETS.items() if name != "FLOAT"}
    | {"quantizedtype": NAMED_SETS["QuantifiedType"]}
)
_ATTR_TYPES = {attr_type.value.lower(): attr_type for attr_type in AttrType} | {
    "str": AttrType.STRING,
    "dtype": AttrType.TYPE,
    "datatype": AttrType.TYPE,
    "liststr": AttrType.LIST_STRING,
    "listdatatype": AttrType.LIST_TYPE,
}


class _Invalid(Exception):  # noqa: N818 - never leaves this module
    """A problem that makes one op unusable."""


def parse_msopgen(source: SourceText) -> ParseResult:
    """Read every op of an msOpGen description.

    >>> source = SourceText('''[{
    ...     "op": "AddCustom",
    ...     "input_desc": [{"name": "x", "param_type": "required", "format": ["ND"], "type": ["fp16", "float"]}],
    ...     "output_desc": [{"name": "z", "param_type": "required", "format": ["ND"], "type": ["fp16", "float"]}],
    ...     "attr": [{"name": "alpha", "param_type": "optional", "type": "float", "default_value": "1.0"}]
    ... }]''')
    >>> found = parse_msopgen(source).prototypes[0]
    >>> found.inputs[0].dtypes, found.attrs[0].default
    ((<DataType.FLOAT16: 1>, <DataType.FLOAT: 0>), 1.0)
    """
    prototypes: list[OpPrototype] = []
    try:
        data = json.loads(source.text)
    except json.JSONDecodeError as error:
        source.report(
            Severity.ERROR,
            min(error.pos, len(source.text)),
            f"this is not JSON: {error.msg}; expected msOpGen's description of an operator",
        )
        return ParseResult((), tuple(source.diagnostics))
    except (RecursionError, ValueError) as error:
        source.report(Severity.ERROR, 0, f"this JSON cannot be read: {error}. Correct it")
        return ParseResult((), tuple(source.diagnostics))
    places = [match.start() for match in _OP.finditer(source.text)]
    for index, item in enumerate(data if isinstance(data, list) else [data]):
        offset = places[index] if index < len(places) else 0
        try:
            prototypes.append(_Reader(source, offset).op(item))
        except _Invalid as error:
            source.report(Severity.ERROR, offset, str(error))
        except RecursionError:
            source.report(
                Severity.ERROR,
                offset,
                "this JSON is nested too deep for an operator; expected an object of names and lists",
            )
        if source.full:
            source.report(Severity.ERROR, offset, "too many problems: the rest was not read; fix these first")
            break
    return ParseResult(tuple(prototypes), tuple(source.diagnostics))


class _Reader:
    """Reader of one op."""

    def __init__(self, source: SourceText, offset: int) -> None:
        self.source = source
        self.offset = offset
        self.op_type = ""

    def warn(self, message: str) -> None:
        if not self.source.full:
            self.source.report(Severity.WARNING, self.offset, f"{self.op_type}: {message}", self.op_type)

    def op(self, item: Any) -> OpPrototype:
        if not isinstance(item, dict) or "op" not in item:
            raise _Invalid('an msOpGen description must be an object with "op", "input_desc", "output_desc" and "attr"')
        self.op_type = self.name(item["op"], "the op")
        return OpPrototype(
            self.op_type,
            self.parameters(item, "input_desc"),
            self.attrs(item),
            self.parameters(item, "output_desc"),
            file=self.source.file,
            line=self.source.line_of(self.offset),
        )

    def name(self, value: Any, what: str) -> str:
        if not isinstance(value, str) or not _NAME.match(value) or not value.isascii():
            raise _Invalid(f"{self.op_type or 'op'}: {what} needs a name that is an identifier, not {value!r}")
        return value

    def entries(self, item: dict[str, Any], key: str) -> list[dict[str, Any]]:
        entries = item.get(key) or []
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            raise _Invalid(f'{self.op_type}: "{key}" must be a list of objects')
        names = [entry.get("name") for entry in entries]
        for name in names:
            self.name(name, f'an entry of "{key}"')
        if len(set(names)) < len(names):
            raise _Invalid(f'{self.op_type}: "{key}" has two entries of one name; rename one')
        return entries

    def parameters(self, item: dict[str, Any], key: str) -> tuple[Parameter, ...]:
        found = []
        for entry in self.entries(item, key):
            kind = self.kind(entry)
            if key == "output_desc" and kind is ParameterKind.OPTIONAL:
                kind = ParameterKind.REQUIRED  # REG_OP has no optional outputs
            names = entry.get("type") or []
            dtypes: dict[DataType, None] = {}
            unknown = []
            for name in names if isinstance(names, list) else str(names).split(","):
                known = _dtypes(str(name))
                dtypes.update(dict.fromkeys(known))
                if not known:
                    unknown.append(str(name).strip())
                    self.warn(f"type of {entry['name']}: {name!r} is not a dtype that is known here")
            found.append(Parameter(entry["name"], kind, tuple(dtypes), unknown_types=tuple(unknown)))
        return tuple(found)

    def kind(self, entry: dict[str, Any]) -> ParameterKind:
        value = entry.get("param_type", "required")
        kind = _KINDS.get(str(value).lower())
        if kind is None:
            raise _Invalid(f"{self.op_type}: param_type of {entry['name']} is {value!r}; known are {', '.join(_KINDS)}")
        return kind

    def attrs(self, item: dict[str, Any]) -> tuple[Attr, ...]:
        found = []
        for entry in self.entries(item, "attr"):
            name = entry["name"]
            attr_type = _ATTR_TYPES.get(str(entry.get("type")).lower().replace("_", ""))
            if attr_type is None:
                raise _Invalid(
                    f"{self.op_type}: attr {name} has the unknown type {entry.get('type')!r}; "
                    f"known are {', '.join(sorted(_ATTR_TYPES))}"
                )
            if self.kind(entry) is ParameterKind.REQUIRED:
                found.append(Attr(name, attr_type, True))
                continue
            value = entry.get("default_value")
            try:
                default = _default(attr_type, value)
                found.append(Attr(name, attr_type, False, default, "" if value is None else str(value)))
            except LiteralError as error:
                self.warn(
                    f"attr {name}: the default {value!r} is not {attr_type.value} ({error}); write a value of that type"
                )
                found.append(Attr(name, attr_type, False, None, str(value), False))
        return tuple(found)


def _dtypes(name: str) -> tuple[DataType, ...]:
    name = name.strip()
    ge_name = DTYPE_BY_GE_NAME.get(name.upper())
    if ge_name is not None:
        return (ge_name,)
    dtype = _DTYPES.get(name.lower())
    return (dtype,) if dtype is not None else _SETS.get(name.lower(), ())


def _default(attr_type: AttrType, value: Any) -> AttrValue:
    if value is None:
        return read_default(attr_type, "")
    if attr_type is AttrType.TYPE and isinstance(value, str) and (dtypes := _dtypes(value)):
        return dtypes[0]
    if isinstance(value, str):
        if attr_type is AttrType.STRING:
            return value
        return read_default(attr_type, value)
    return coerce(attr_type, _constant(value))


def _constant(value: Any) -> object:
    """Return the C++ constant that a JSON value stands for."""
    if isinstance(value, list):
        return tuple(map(_constant, value))
    if isinstance(value, bool):
        return Number(int(value), BOOL)
    if isinstance(value, float):
        return Number(value, DOUBLE)
    if isinstance(value, int):
        try:  # as C++ has it: a sign before a literal
            literal = integer_literal(abs(value), "", decimal=True)
            return unary("-", literal) if value < 0 else literal
        except ConstantError as error:
            raise LiteralError(str(error)) from None
    return value.encode(errors="surrogatepass") if isinstance(value, str) else value
