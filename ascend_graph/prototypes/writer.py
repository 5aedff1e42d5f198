"""Writer of REG_OP text that parses back to the same prototypes."""

from __future__ import annotations

import math

from ascend_graph.prototypes.dtypes import NAMED_SETS, DataType
from ascend_graph.prototypes.model import (
    Attr,
    AttrType,
    AttrValue,
    DataTypeSymbol,
    OpPrototype,
    Parameter,
    ParameterKind,
)
from ascend_graph.prototypes.types import read_type

_INPUT_CALLS = {
    ParameterKind.REQUIRED: "INPUT",
    ParameterKind.OPTIONAL: "OPTIONAL_INPUT",
    ParameterKind.DYNAMIC: "DYNAMIC_INPUT",
}
_OUTPUT_CALLS = {ParameterKind.REQUIRED: "OUTPUT", ParameterKind.DYNAMIC: "DYNAMIC_OUTPUT"}
_GRAPH_CALLS = {ParameterKind.REQUIRED: "GRAPH", ParameterKind.DYNAMIC: "DYNAMIC_GRAPH"}
_SET_NAMES = {dtypes: name for name, dtypes in NAMED_SETS.items()}
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def to_reg_op(prototype: OpPrototype, *, doc: bool = True) -> str:
    """Write a prototype as the REG_OP text that declares it.

    ``parse_text(to_reg_op(p)).prototypes[0] == p`` for every prototype. A type keeps its source text if that text is
    complete, otherwise it is written from its dtypes.

    >>> from ascend_graph.prototypes import OpPrototype, Parameter, DataType, Attr, AttrType
    >>> x, y = (Parameter(name, dtypes=(DataType.FLOAT16, DataType.FLOAT)) for name in "xy")
    >>> print(to_reg_op(OpPrototype("ReluCustom", (x,), (Attr("slope", AttrType.FLOAT, False, 0.5),), (y,))))
    REG_OP(ReluCustom)
        .INPUT(x, TensorType({DT_FLOAT16, DT_FLOAT}))
        .OUTPUT(y, TensorType({DT_FLOAT16, DT_FLOAT}))
        .ATTR(slope, Float, 0.5)
        .OP_END_FACTORY_REG(ReluCustom)
    """
    lines = _comment(prototype.doc) if doc and prototype.doc else []
    lines.append(f"REG_OP({prototype.op_type})")
    lines += (f"    {call}" for call in reg_op_calls(prototype))
    lines.append(f"    .OP_END_FACTORY_REG({prototype.op_type})")
    return "\n".join(lines)


def reg_op_calls(prototype: OpPrototype) -> list[str]:
    """Return the calls of a REG_OP: inputs, outputs, attrs, dtype symbols, subgraphs.

    The opening REG_OP and the closing OP_END_FACTORY_REG are not included.
    """
    calls = [f".{_INPUT_CALLS[p.kind]}({p.name}, {type_text(p)})" for p in prototype.inputs]
    calls += (f".{_OUTPUT_CALLS[p.kind]}({p.name}, {type_text(p)})" for p in prototype.outputs)
    for attr in prototype.attrs:
        if attr.required:
            calls.append(f".REQUIRED_ATTR({attr.name}, {attr.type.value})")
        else:
            calls.append(f".ATTR({attr.name}, {attr.type.value}, {default_text(attr)})")
    calls += (f".DATATYPE({symbol.name}, {type_text(symbol)})" for symbol in prototype.symbols)
    calls += (f".{_GRAPH_CALLS[graph.kind]}({graph.name})" for graph in prototype.graphs)
    return calls


def type_text(typed: Parameter | DataTypeSymbol) -> str:
    """Return the type argument of a parameter or symbol."""
    symbol = typed.symbol if isinstance(typed, Parameter) else None
    text = typed.type_text
    if text:
        facts = read_type(text)
        if facts.symbol is None:
            unknown = tuple(name for name, _ in facts.unknown)
            says = (facts.dtypes, facts.promote, facts.list_type, unknown)
            if symbol is None and says == (typed.dtypes, typed.promote, typed.list_type, typed.unknown_types):
                return text
    if symbol is not None:
        return f'"{symbol}"'
    if typed.promote:
        return "Promote({" + ", ".join(f'"{name}"' for name in typed.promote) + "})"
    if typed.dtypes in _SET_NAMES and not typed.unknown_types:
        plain = f"TensorType::{_SET_NAMES[typed.dtypes]}()"
    else:
        names = [*(dtype.ge_name for dtype in typed.dtypes), *typed.unknown_types]
        plain = "TensorType({" + ", ".join(names) + "})"
    return f"ListTensorType({plain})" if typed.list_type else plain


def default_text(attr: Attr) -> str:
    """Return the default of an attr as a C++ expression."""
    if not attr.default_known:
        return attr.default_text
    return literal(attr.type, attr.default)


def literal(attr_type: AttrType, value: AttrValue) -> str:
    """Return a value of an attr type as a C++ expression."""
    if isinstance(value, DataType):
        return value.ge_name
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if math.isnan(value):
            return "NAN"
        if math.isinf(value):
            return "INFINITY" if value > 0 else "-INFINITY"
        return repr(value)
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, bytes):
        return "{" + ", ".join(map(str, value)) + "}"
    if isinstance(value, tuple):
        return "{" + ", ".join(literal(attr_type, item) for item in value) + "}"
    if value is None:
        return "NamedAttrs()" if attr_type in (AttrType.NAMED_ATTRS, AttrType.LIST_NAMED_ATTRS) else "Tensor()"
    return str(value)


def quote(text: str) -> str:
    """Return a text as a C++ string literal.

    >>> print(quote('say "hi"'))
    "say \\"hi\\""
    """
    return '"' + "".join(_ESCAPES.get(c) or (c if c.isprintable() else _octal(c)) for c in text) + '"'


def _octal(character: str) -> str:
    code = ord(character)
    return f"\\{code:03o}" if code < 0x80 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _comment(doc: str) -> list[str]:
    body = [f" * {line}".rstrip() for line in doc.replace("*/", "* /").split("\n")]
    return ["/**", *body, " */"]
