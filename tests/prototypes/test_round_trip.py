"""Random prototypes, written in every layout and with every trouble of real headers, read back as themselves."""

from __future__ import annotations

import json
import math
import random
import string

from hypothesis import given, settings
from hypothesis import strategies as st

from ascend_graph.prototypes import (
    Attr,
    AttrType,
    DataType,
    DataTypeSymbol,
    OpPrototype,
    Parameter,
    ParameterKind,
    Severity,
    Subgraph,
    parse_text,
)
from ascend_graph.prototypes.dtypes import NAMED_SETS
from ascend_graph.prototypes.msopgen import parse_msopgen
from ascend_graph.prototypes.writer import literal, quote, reg_op_calls, to_reg_op
from ascend_graph.sources.text import SourceText

names = st.text(string.ascii_letters + "_", min_size=1, max_size=6).flatmap(
    lambda head: st.text(string.ascii_letters + string.digits + "_", max_size=4).map(lambda tail: head + tail)
) | st.sampled_from(["from", "lambda", "class", "node_name", "int", "INPUT", "x1"])
dtype_sets = st.lists(st.sampled_from(DataType), unique=True, max_size=6).map(tuple) | st.sampled_from(
    list(NAMED_SETS.values())
)
int64 = st.integers(-(2**63), 2**63 - 1)
floats = st.floats(allow_nan=False)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(
    ['"', "\\", '");', "*/", "//", "REG_OP(X)", ")", "\\\n", "'", "#if 0", "'''\"\"\"", "\r\n", "??/"]
)
scalars = {
    AttrType.INT: int64,
    AttrType.FLOAT: floats,
    AttrType.BOOL: st.booleans(),
    AttrType.STRING: texts,
    AttrType.TYPE: st.sampled_from(DataType),
    AttrType.BYTES: st.binary(max_size=4),
    AttrType.TENSOR: st.none(),
    AttrType.NAMED_ATTRS: st.none(),
}
lists = {
    AttrType.LIST_INT: int64,
    AttrType.LIST_FLOAT: floats,
    AttrType.LIST_BOOL: st.booleans(),
    AttrType.LIST_STRING: texts,
    AttrType.LIST_TYPE: st.sampled_from(DataType),
    AttrType.LIST_LIST_INT: st.lists(int64, max_size=3).map(tuple),
    AttrType.LIST_LIST_FLOAT: st.lists(floats, max_size=3).map(tuple),
    AttrType.LIST_TENSOR: st.none(),
    AttrType.LIST_NAMED_ATTRS: st.none(),
}
values = scalars | {attr_type: st.lists(item, max_size=3).map(tuple) for attr_type, item in lists.items()}


@st.composite
def attrs(draw: st.DrawFn, name: str) -> Attr:
    attr_type = draw(st.sampled_from(AttrType))
    if draw(st.booleans()):
        return Attr(name, attr_type, True)
    return Attr(name, attr_type, False, draw(values[attr_type]))


@st.composite
def prototypes(draw: st.DrawFn) -> OpPrototype:
    symbols = tuple(
        DataTypeSymbol(name, draw(dtype_sets), list_type=draw(st.booleans()))
        for name in draw(st.lists(st.sampled_from(["T", "T1", "Tidx"]), unique=True, max_size=2))
    )

    def parameter(name: str, kinds: list[ParameterKind]) -> Parameter:
        kind = draw(st.sampled_from(kinds))
        if symbols and draw(st.booleans()):
            symbol = draw(st.sampled_from(symbols))
            return Parameter(name, kind, symbol.dtypes, symbol=symbol.name, list_type=symbol.list_type)
        if draw(st.integers(0, 9)) == 0:
            return Parameter(name, kind, promote=("T1", "T2"))
        unknown = tuple(draw(st.lists(st.sampled_from(["DI_UINT16", "DT_B16", "MY_TYPES"]), unique=True, max_size=1)))
        return Parameter(name, kind, draw(dtype_sets), list_type=draw(st.booleans()), unknown_types=unknown)

    def distinct(most: int) -> list[str]:
        return draw(st.lists(names, unique=True, max_size=most))

    every = list(ParameterKind)
    return OpPrototype(
        draw(names),
        tuple(parameter(name, every) for name in distinct(4)),
        tuple(draw(attrs(name)) for name in distinct(4)),
        tuple(parameter(name, [ParameterKind.REQUIRED, ParameterKind.DYNAMIC]) for name in distinct(3)),
        symbols=symbols,
        graphs=tuple(
            Subgraph(name, draw(st.sampled_from([ParameterKind.REQUIRED, ParameterKind.DYNAMIC])))
            for name in distinct(2)
        ),
    )


BLANKS = [" ", "\n", "\t", "\r\n", "  \\\n ", "/* REG_OP(Z) */", "// .INPUT(a, b)\n", "/*\n * ) } \" ' 中文\n */", ""]


def disarranged(prototype: OpPrototype, rng: random.Random) -> str:
    """The text of a prototype with blanks and comments wherever C++ allows them, and the sides' calls interleaved."""

    def gap() -> str:
        return "".join(rng.choice(BLANKS) for _ in range(rng.randrange(3)))

    # Inputs, outputs, attrs, symbols and graphs keep their own order, but follow each other in any.
    queues: dict[str, list[str]] = {}
    for call in reg_op_calls(prototype):
        queues.setdefault(call[1:].split("(")[0].rpartition("_")[2], []).append(call)
    calls = []
    while any(queues.values()):
        calls.append(rng.choice([queue for queue in queues.values() if queue]).pop(0))
    parts = [f"REG_OP{gap()}({gap()}{prototype.op_type}{gap()})"]
    for call in [*calls, f".OP_END_FACTORY_REG({prototype.op_type})"]:
        name, _, rest = call[1:].partition("(")
        arguments = rest[:-1].split(", ", 2)
        parts.append(f".{gap()}{name}{gap()}({gap()}" + f"{gap()},{gap()}".join(arguments) + f"{gap()})")
    return gap().join(parts) + rng.choice(["", ";", "\n"])


@settings(max_examples=200, deadline=None)
@given(st.lists(prototypes(), max_size=3))
def test_written_text_reads_back(wanted: list[OpPrototype]) -> None:
    result = parse_text("\n\n".join(map(to_reg_op, wanted)))
    assert result.errors == ()
    assert list(result.prototypes) == wanted


@settings(max_examples=300, deadline=None)
@given(st.lists(prototypes(), min_size=1, max_size=3), st.randoms(use_true_random=False), st.booleans())
def test_every_layout_reads_as_the_same(wanted: list[OpPrototype], rng: random.Random, windows: bool) -> None:
    text = "\n".join(disarranged(prototype, rng) for prototype in wanted)
    if windows:
        text = text.replace("\r\n", "\n").replace("\n", "\r\n")
    result = parse_text(text)
    assert result.errors == (), text
    assert list(result.prototypes) == wanted


@settings(max_examples=200, deadline=None)
@given(st.lists(prototypes(), min_size=2, max_size=3, unique_by=lambda prototype: prototype.op_type), st.data())
def test_an_error_costs_its_own_op_only(wanted: list[OpPrototype], data: st.DataObject) -> None:
    broken = data.draw(st.sampled_from(wanted))
    damage = data.draw(
        st.sampled_from(
            [("    .OP_END", "    .INPUTS(x, T)\n    .OP_END"), ("    .OP_END", "    x .OP_END"), ("(", "((")]
        )
    )
    text = "\n".join(
        to_reg_op(prototype).replace(*damage) if prototype is broken else to_reg_op(prototype) for prototype in wanted
    )
    result = parse_text(text)
    assert [error.op_type for error in result.errors if error.op_type] in ([broken.op_type], [])
    assert len(result.errors) == 1
    assert list(result.prototypes) == [prototype for prototype in wanted if prototype is not broken]


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(sorted(values, key=lambda attr_type: attr_type.value)).flatmap(
        lambda attr_type: st.tuples(st.just(attr_type), values[attr_type])
    )
)
def test_literals_keep_every_bit(case: tuple[AttrType, object]) -> None:
    attr_type, value = case
    default = literal(attr_type, value)  # type: ignore[arg-type]
    text = f"REG_OP(A).ATTR(a, {attr_type.value}, {default}).OP_END_FACTORY_REG(A)"
    result = parse_text(text)
    assert not [d for d in result.diagnostics if d.severity is Severity.ERROR]
    found = result.prototypes[0].attrs[0].default
    assert found == value
    if isinstance(value, float):
        assert isinstance(found, float)
        assert math.copysign(1, found) == math.copysign(1, value)


@given(texts)
def test_quoted_strings_stay_on_one_line(text: str) -> None:
    assert "\n" not in quote(text)
    assert quote(text).isprintable()


plain_types = [AttrType.INT, AttrType.FLOAT, AttrType.BOOL, AttrType.STRING, AttrType.LIST_INT, AttrType.LIST_LIST_INT]


@settings(max_examples=100, deadline=None)
@given(prototypes())
def test_msopgen_json_gives_the_same_prototype(prototype: OpPrototype) -> None:
    """What both forms can say, both say alike."""

    def entries(parameters: tuple[Parameter, ...]) -> list[dict[str, object]]:
        return [
            {"name": p.name, "param_type": p.kind.value, "type": [dtype.name.lower() for dtype in p.dtypes]}
            for p in parameters
        ]

    def plain(value: object) -> object:
        return [plain(item) for item in value] if isinstance(value, tuple) else value

    kept = tuple(attr for attr in prototype.attrs if attr.type in plain_types and "inf" not in str(attr.default))
    described = {
        "op": prototype.op_type,
        "input_desc": entries(prototype.inputs),
        "output_desc": entries(prototype.outputs),
        "attr": [
            {
                "name": attr.name,
                "param_type": "required" if attr.required else "optional",
                "type": attr.type.value,
                **({} if attr.required else {"default_value": plain(attr.default)}),
            }
            for attr in kept
        ],
    }
    result = parse_msopgen(SourceText(json.dumps([described])))
    assert result.errors == ()

    def bare(parameters: tuple[Parameter, ...]) -> tuple[Parameter, ...]:
        return tuple(Parameter(p.name, p.kind, p.dtypes) for p in parameters)

    assert result.prototypes == (OpPrototype(prototype.op_type, bare(prototype.inputs), kept, bare(prototype.outputs)),)
