"""Shape relation → GE's InferShape and InferDataType in C++, for operator projects.

The functions follow the interface of CANN's ``gert::InferShapeContext`` and ``gert::InferDataTypeContext``. The relation's
form (:mod:`ascend_graph.shapes.form`) is written down node by node; what the nodes do is in the template of the support
header. Where GE does not know a size (-1) or a rank (-2) yet and the relation asks for it, the function is run once for every
answer, and the outputs are what the answers that are not refused have in common.

``InferDataType`` knows no shapes: what a relation demands of sizes is left to ``InferShape``, and a tensor in a promotion
counts as one with dimensions.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from ascend_graph.codegen.rendering import GenerationError, cpp_name, cpp_string, identifier, render

from ascend_graph.prototypes.dtypes import DataType
from ascend_graph.prototypes.model import AttrType, OpPrototype, ParameterKind
from ascend_graph.shapes import Relation, form
from ascend_graph.shapes.dtypes import CATEGORY, COMPLEX_OF, REAL_OF, promote_names
from ascend_graph.shapes.errors import RelationError
from ascend_graph.shapes.form import AttrKind, Kind, Node, Op, below
from ascend_graph.shapes.lowering import lower

#: The dtypes of the language that GE has.
GE_DTYPES: Mapping[str, DataType] = {
    **{
        name: DataType[name.upper()]
        for name in ("bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32")
    },
    **{name: DataType[name.upper()] for name in ("uint64", "int4", "int2", "uint2", "uint1", "float16", "hifloat8")},
    **{name: DataType[name.upper()] for name in ("complex32", "complex64", "complex128", "qint8", "quint8", "qint32")},
    "bfloat16": DataType.BF16,
    "float32": DataType.FLOAT,
    "float64": DataType.DOUBLE,
    "float8_e5m2": DataType.FLOAT8_E5M2,
    "float8_e4m3fn": DataType.FLOAT8_E4M3FN,
    "float8_e8m0fnu": DataType.FLOAT8_E8M0,
    "float6_e3m2fn": DataType.FLOAT6_E3M2,
    "float6_e2m3fn": DataType.FLOAT6_E2M3,
    "float4_e2m1fn_x2": DataType.FLOAT4_E2M1,
    "float4_e1m2fn_x2": DataType.FLOAT4_E1M2,
}

_KINDS = {
    AttrType.INT: AttrKind(Kind.NUMBER, names_dtype=True),
    AttrType.TYPE: AttrKind(Kind.DTYPE),
    AttrType.BOOL: AttrKind(Kind.BOOL),
    AttrType.FLOAT: AttrKind(Kind.FLOAT),
    AttrType.STRING: AttrKind(Kind.TEXT),
    AttrType.LIST_INT: AttrKind(Kind.SIZES),
}
_READERS = {
    AttrType.INT: ("Number", "There(context->GetAttrs()->GetInt({n}))"),
    AttrType.TYPE: ("Number", "There(context->GetAttrs()->GetInt({n}))"),
    AttrType.BOOL: ("bool", "There(context->GetAttrs()->GetBool({n}))"),
    AttrType.FLOAT: ("double", "There(context->GetAttrs()->GetFloat({n}))"),
    AttrType.STRING: ("std::string", "&There(context->GetAttrs()->GetStr({n}))"),
    AttrType.LIST_INT: ("Sizes", "ReadList(context->GetAttrs()->GetListInt({n}))"),
}
#: Operations that are a function of the support header.
_FUNCTIONS = {
    Op.NEGATE: "Negate",
    Op.ADD: "Add",
    Op.SUBTRACT: "Subtract",
    Op.MULTIPLY: "Multiply",
    Op.FLOOR_DIVIDE: "FloorDivide",
    Op.MODULO: "Modulo",
    Op.CEIL_DIVIDE: "CeilDivide",
    Op.MINIMUM: "Minimum",
    Op.MAXIMUM: "Maximum",
    Op.ITEM: "Item",
    Op.LENGTH: "Length",
    Op.PRODUCT: "Product",
    Op.SUM: "Sum",
    Op.SMALLEST: "Smallest",
    Op.LARGEST: "Largest",
    Op.POSITION: "Position",
    Op.FROM_CONDITION: "FromCondition",
    Op.ONES: "Ones",
    Op.RANGE: "Range",
    Op.RESHAPE: "Reshape",
    Op.SCALAR: "Scalar",
    Op.FLOATING: "Floating",
    Op.INTEGRAL_SUM: "IntegralSum",
    Op.REAL: "Real",
}
#: Operations that read what a name stands for: the prefix of its variable, and what is made of that.
_READING = {
    Op.DIMENSION: ("dim", "Get({})"),
    Op.GROUP: ("group", "Get({})"),
    Op.ATTR: ("attr", "{}"),
    Op.DTYPE_ATTR: ("attr", "DtypeAttr({})"),
    Op.RANK: ("input", "Rank(ways, {})"),
    Op.ELEMENTS: ("input", "Elements({})"),
    Op.PRESENT: ("input", "{}.present"),
    Op.TENSOR: ("input", "Tensor({})"),
}
_COMPARISONS = {
    "==": "Equal",
    "!=": "NotEqual",
    "<": "Less",
    "<=": "LessEqual",
    ">": "Greater",
    ">=": "GreaterEqual",
}
_TYPES = {Kind.SIZES: "Sizes", Kind.DTYPE: "ge::DataType"}
#: Operations that ask for the shape of an input.
_OF_SHAPES = frozenset({Op.DIMENSION, Op.GROUP, Op.ELLIPSIS, Op.RANK, Op.ELEMENTS})


def infer_shape_source(prototype: OpPrototype, relation: Relation, names: Mapping[str, str] | None = None) -> str:
    """C++ with ``InferShape`` and ``InferDataType`` of one operator.

    Args:
        prototype: The operator; its order of inputs and attrs is that of the C++ interface.
        relation: Its shape relation.
        names: From the prototype's names to the relation's, where they differ.

    Returns:
        A source file that defines ``ascend_graph_<op_type>::InferShape`` and ``InferDataType``, to be passed to
        ``SetInferShape`` and ``SetInferDataType`` of its OpDef.

    Raises:
        GenerationError: The relation names what the prototype has not, or says something that only Python can compute
            (lists of tensors, numbers as outputs), or a dtype depends on a size.

    >>> from ascend_graph.prototypes.model import Parameter
    >>> from ascend_graph.shapes import parse_relation
    >>> inputs, outputs = (Parameter("x"), Parameter("w")), (Parameter("y"),)
    >>> relation = parse_relation("x[m, k], w[k, n] -> y[m, n]")
    >>> source = infer_shape_source(OpPrototype("Mm", inputs, (), outputs), relation)
    >>> "Bind(dim_k, sizes_w[0])" in source
    True
    """
    generator = _Generator(prototype, relation, dict(names or {}))
    source: str = render(
        "infer_shape.cpp.jinja",
        op_type=identifier(prototype.op_type),
        relation=ascii(" ".join(str(relation).split()))[1:-1].replace("\\", "/"),
        outputs=len(prototype.outputs),
        shape=generator.shape_body(),
        dtype=generator.dtype_body(),
        **_dtype_tables(),
    )
    return source


@lru_cache(maxsize=1)
def _dtype_tables() -> dict[str, Any]:
    """The promotion rules of the language as tables, for the support header."""
    names = list(GE_DTYPES)
    rows = {name: number for number, name in enumerate(names)}

    def promoted(a: str, b: str) -> int:
        try:
            return rows[promote_names(a, b)]
        except ValueError:
            return -1

    return {
        "rows": rows,
        "dtypes": [
            (int(GE_DTYPES[n]), CATEGORY[n], rows[REAL_OF.get(n, n)], rows.get(COMPLEX_OF.get(n, ""), -1))
            for n in names
        ],
        "promoted": [[promoted(a, b) for b in names] for a in names],
    }


class _Generator:
    def __init__(self, prototype: OpPrototype, relation: Relation, names: dict[str, str]) -> None:
        self.prototype, self.relation = prototype, relation
        self.inputs = {names.get(p.name, p.name): (n, p) for n, p in enumerate(prototype.inputs)}
        self.attrs = {names.get(a.name, a.name): (n, a) for n, a in enumerate(prototype.attrs)}
        unknown = [t.name for t in relation.input_tensors if t.name not in self.inputs]
        if unknown:
            raise self.fault(
                f"the prototype has no input {', '.join(unknown)}; it has {', '.join(self.inputs) or 'none'}"
            )
        missing = relation.free_names - self.attrs.keys()
        if missing:
            raise self.fault(
                f"the prototype has no attr {', '.join(sorted(missing))}; it has {', '.join(self.attrs) or 'none'}"
            )
        if len(relation.outputs) != len(prototype.outputs):
            raise self.fault(
                f"the relation has {len(relation.outputs)} outputs, the prototype {len(prototype.outputs)}"
            )
        for name in relation.attr_names & self.attrs.keys():
            if (kind := self.attrs[name][1].type) not in _KINDS:
                raise self.fault(f"attr {name} is a {kind.value}, which a shape cannot depend on")
        try:
            kinds = {name: _KINDS.get(a.type, AttrKind(Kind.OTHER)) for name, (_, a) in self.attrs.items()}
            self.form: form.Form = lower(relation, kinds)
        except RelationError as error:
            raise self.fault(str(error)) from None
        for name in relation.inputs:
            if self.inputs[name][1].kind is ParameterKind.DYNAMIC:
                raise self.fault(f"{name} is a dynamic input")
        for node in self.form.nodes:
            if node.op is Op.DTYPE and node.value not in GE_DTYPES:
                raise self.fault(f"{node.value} is no dtype of GE")
        #: Definitions that ask for shapes.
        self.of_shapes: set[str] = set()

    def fault(self, message: str) -> GenerationError:
        return GenerationError(f"InferShape of {self.prototype.op_type}: {message}\n  relation: {self.relation}")

    # ----------------------------------------------------------------------------------------------------------- shape

    def shape_body(self) -> list[str]:
        """The statements of InferShape, for one way."""
        lines = []
        for name in self.form.inputs:
            number, _ = self.inputs[name]
            # GetInputShape counts the tensors there are: only this form says which one is meant behind an optional input.
            lines.append(
                f"[[maybe_unused]] Input {self.input(name)} = ReadInput(context->GetOptionalInputShape({number}), "
                f"context->GetOptionalInputDesc({number}));"
            )
            if not self.optional(name):
                lines.append(f"Given({self.input(name)});")
        lines += self.read_attrs()
        bound: dict[str, str] = {}
        for step in self.form.steps:
            if isinstance(step, form.Match):
                for item in (item for pattern in step.patterns for item in pattern.items or ()):
                    if item.what in ("dimension", "group", "later", "ellipsis"):
                        kind = "Dim" if item.what in ("dimension", "later") else "Group"
                        bound[self.bound(item)] = kind
        lines += [f"{kind} {variable};" for variable, kind in bound.items()]
        for step in self.form.steps:
            lines += self.step(step)
        for number, output in enumerate(self.form.outputs):
            for position, leaf in enumerate(output.leaves):
                opening = "{" if leaf.condition is None else f"if ({self.emit(leaf.condition)}) {{"
                lines += [("else " if position else "") + opening, *self.leaf(number, leaf), "}"]
        return lines

    def optional(self, name: str) -> bool:
        return self.inputs[name][1].kind is ParameterKind.OPTIONAL

    def input(self, name: str) -> str:
        variable: str = cpp_name("input", name)
        return variable

    @staticmethod
    def bound(item: form.Bind) -> str:
        """The variable that an item binds."""
        return "ellipsis" if item.what == "ellipsis" else cpp_name(_PREFIX[item.what], item.name)

    def read_attrs(self, nodes: list[Node] | None = None) -> list[str]:
        """Reading the attrs that are used."""
        used = {n.value for n in (self.form.nodes if nodes is None else nodes) if n.op in (Op.ATTR, Op.DTYPE_ATTR)}
        lines = []
        for name, (number, attr) in self.attrs.items():
            if name in used:
                kind, reader = _READERS[attr.type]
                lines.append(f"[[maybe_unused]] const {kind} {cpp_name('attr', name)} = {reader.format(n=number)};")
        return lines

    def step(self, step: form.Step) -> list[str]:
        match step:
            case form.Match(name, patterns):
                return self.match(name, patterns)
            case form.Define(name, node):
                kind = "Sizes" if node.kind is Kind.SIZES else "Number"
                variable = cpp_name("group" if node.kind is Kind.SIZES else "dim", name)
                holder = "Group" if node.kind is Kind.SIZES else "Dim"
                return [f"[[maybe_unused]] const {holder} {variable}{{true, {kind}({self.emit(node)})}};"]
            case form.Demand(condition, shown):
                return [f"Require({self.emit(condition)}, {cpp_string(f'{shown} must hold')});"]
            case form.Agree(name, node, _):
                variable = cpp_name("later", name)
                # What an input that is absent would be compared with is not evaluated.
                return [f"if ({variable}.bound) Agreed({variable}.size, {self.emit(node)});"]
        return []  # dtypes are InferDataType's

    def match(self, name: str, patterns: tuple[form.Pattern, ...]) -> list[str]:
        if all(pattern.items is None for pattern in patterns):
            return []
        lines: list[str] = []
        for position, pattern in enumerate(patterns):
            opening = "{" if pattern.condition is None else f"if ({self.emit(pattern.condition)}) {{"
            lines += [("else " if position else "") + opening, *self.pattern(name, pattern), "}"]
        return [f"if ({self.input(name)}.present) {{", *lines, "}"]

    def pattern(self, name: str, pattern: form.Pattern) -> list[str]:
        if pattern.items is None:
            return []
        placed, ordered = pattern.placed, pattern.ordered
        middle = next((n for n, item in enumerate(ordered) if item.many), None)
        fixed = len(ordered) - (middle is not None)
        is_open = "false" if middle is None else "true"
        sizes = cpp_name("sizes", name)
        if placed:
            lots = any(item.many for item in placed)
            least = fixed + sum(not item.many for item in placed)
            ranked = f"Ranked(ways, {self.input(name)}, {least}, {'true' if lots else is_open})"
            lines = [f"Axes axes({ranked});"]
            for item in placed:
                assert item.axes is not None
                taken = f"axes.{'Take' if item.many else 'TakeOne'}({self.emit(item.axes)})"
                lines.append(self.bind(item, taken))
            lines.append(f"[[maybe_unused]] const Sizes {sizes} = axes.Rest({fixed}, {is_open});")
        else:
            ranked = f"Ranked(ways, {self.input(name)}, {fixed}, {is_open})"
            lines = [f"[[maybe_unused]] const Sizes &{sizes} = {ranked};"]
        for number, item in enumerate(ordered):
            if number == middle:
                lines.append(self.bind(item, f"Slice({sizes}, {number}, {len(ordered) - number - 1})"))
            elif middle is None or number < middle:
                lines.append(self.bind(item, f"{sizes}[{number}]"))
            else:
                lines.append(self.bind(item, f"{sizes}[{sizes}.size() - {len(ordered) - number}]"))
        return [line for line in lines if line]

    def bind(self, item: form.Bind, value: str) -> str:
        match item.what:
            case "any":
                return f"{value};" if item.axes is not None else ""
            case "ellipsis":
                return f"Broadcast(ellipsis, {value});"
            case "size":
                assert item.node is not None
                return f"Agreed({value}, {self.emit(item.node)});"
            case "sizes":
                assert item.node is not None
                return f"Agree({value}, {self.emit(item.node)});"
        return f"Bind({self.bound(item)}, {value});"

    def leaf(self, number: int, leaf: form.Leaf) -> list[str]:
        if leaf.what == "absent":
            return [f"results[{number}] = Absent();"]
        if leaf.what in ("like", "itself"):
            return [f"results[{number}] = Like({self.input(leaf.input)});"]
        lines = ["Layout layout;"]
        for piece in leaf.pieces:
            value = self.emit(piece.node)
            if piece.axes is None:
                lines.append(f"layout.Append({value});")
            else:
                lines.append(f"layout.Place({self.emit(piece.axes)}, {value});")
        return [*lines, f"results[{number}] = {{true, layout.Done()}};"]

    # ----------------------------------------------------------------------------------------------------------- nodes

    def emit(self, node: Node) -> str:
        """A node as a C++ expression: a Number, Sizes, bool, double, std::string or ge::DataType by its kind."""
        args, value = node.args, node.value
        match node.op:
            case Op.CHOICE:
                kind = _TYPES.get(node.kind)
                a, b = self.emit(args[1]), self.emit(args[2])
                if kind is None:
                    kind = "bool" if self.is_bool(node) else "Number"
                return f"({self.emit(args[0])} ? {kind}({a}) : {kind}({b}))"
            case Op.REFUSED:
                kind = _TYPES.get(node.kind, "bool" if node.kind is Kind.BOOL else "Number")
                assert isinstance(value, tuple)
                return f"Refuse<{kind}>({cpp_string(' is '.join(value))})"
            case Op.INTEGER:
                return f"Number(int64_t{{{value}}})"
            case Op.ELLIPSIS:
                return "Get(ellipsis)"
            case Op.ITEMS:
                return f"Sizes{{{', '.join(f'Number({self.emit(a)})' for a in args)}}}"
            case Op.ALWAYS:
                return "true" if value else "false"
            case Op.GIVEN:
                return "true"  # an attr of GE always has a value
            case Op.TRUTH:
                kind = "double" if args[0].kind is Kind.FLOAT else "Number"
                return f"Truth(ways, {kind}({self.emit(args[0])}))"
            case Op.FILLED:
                return f"!{self.emit(args[0])}.empty()"
            case Op.COMPARE:
                return self.compare(str(value), *args)
            case Op.NOT:
                return f"!({self.emit(args[0])})"
            case Op.AND | Op.OR:
                return f"({self.emit(args[0])} {'&&' if node.op is Op.AND else '||'} {self.emit(args[1])})"
            case Op.TEXT:
                return f"std::string({cpp_string(str(value))})"
            case Op.NOTHING:
                return "ge::DT_UNDEFINED"  # of an output that is not there
            case Op.DTYPE:
                return f"ge::DataType({int(GE_DTYPES[str(value)])})"
            case Op.DTYPE_OF:
                assert isinstance(value, tuple)
                return f"DtypeOf({{{', '.join('&' + self.input(name) for name in value)}}})"
            case Op.PROMOTE:
                operands = [self.emit(a) if a.op in (Op.TENSOR, Op.SCALAR) else f"Dtype({self.emit(a)})" for a in args]
                return f"Promote({{{', '.join(operands)}}})"
        if node.op in _READING:
            prefix, text = _READING[node.op]
            return text.format(cpp_name(prefix, str(value)))
        return f"{_FUNCTIONS[node.op]}({', '.join(map(self.emit, args))})"

    def is_bool(self, node: Node) -> bool:
        """Whether a choice is between conditions rather than numbers."""
        return all(
            a.op in _CONDITIONS
            or (a.op is Op.REFUSED and a.kind is Kind.BOOL)
            or (a.op is Op.CHOICE and self.is_bool(a))
            for a in node.args[1:]
        )

    def compare(self, operator: str, left: Node, right: Node) -> str:
        a, b = self.emit(left), self.emit(right)
        if operator == "in":
            return f"Holds(ways, Number({a}), {b})"
        if left.kind is Kind.DTYPE:
            return f"({a} {operator} {b})"
        kinds = {Kind.FLOAT: "double", Kind.TEXT: "std::string", Kind.SIZES: "Sizes"}
        a, b = (f"{kinds.get(node.kind, 'Number')}({text})" for node, text in ((left, a), (right, b)))
        return f"Compare<{_COMPARISONS[operator]}>(ways, {a}, {b})"

    # ---------------------------------------------------------------------------------------------------------- dtypes

    def dtype_body(self) -> list[str]:
        """The statements of InferDataType."""
        lines = []
        roots: list[Node] = []
        steps: list[str] = []
        for step in self.form.steps:
            match step:
                case form.CheckDtype(name, allowed) if not any(map(self.asks_for_shape, allowed)):
                    roots += allowed
                    among = ", ".join(map(self.emit, allowed))
                    steps.append(f"if ({self.input(name)}.present) CheckAmong({self.input(name)}, {{{among}}});")
                case form.CheckDtype(name):
                    raise self.fault(f"the dtype of {name} depends on a size")
                case form.SameDtype(names, _) if len(names) > 1:
                    steps.append(f"CheckSame({{{', '.join('&' + self.input(name) for name in names)}}});")
                case form.Define(name, node):
                    if self.asks_for_shape(node):
                        self.of_shapes.add(name)
                    else:
                        roots.append(node)
                        steps += self.step(step)
                case form.Demand(condition, _) if not self.asks_for_shape(condition):
                    roots.append(condition)
                    steps += self.step(step)
        for number, output in enumerate(self.form.outputs):
            dtype = self.output_dtype(output.name, output.leaves)
            if dtype is None:
                steps.append(f"context->SetOutputDataType({number}, ge::DT_UNDEFINED);")
            else:
                roots.append(dtype)
                steps.append(f"context->SetOutputDataType({number}, {self.emit(dtype)});")
        for name in self.form.inputs:
            n, _ = self.inputs[name]
            lines.append(
                f"[[maybe_unused]] const Input {self.input(name)} = ReadDtype(context->GetOptionalInputDataType({n}));"
            )
        return [*lines, *self.read_attrs([node for root in roots for node in below(root)]), *steps]

    def asks_for_shape(self, node: Node) -> bool:
        """Whether a node's value depends on the shape of an input."""
        return any(
            n.op in _OF_SHAPES and not (n.op in (Op.DIMENSION, Op.GROUP) and self.is_defined_without(n))
            for n in below(node)
        )

    def is_defined_without(self, node: Node) -> bool:
        """Whether a name is a definition that no shape is needed for."""
        return node.value not in self.of_shapes and any(
            isinstance(step, form.Define) and step.name == node.value for step in self.form.steps
        )

    def may_refuse(self, dtype: Node) -> bool:
        """Whether a dtype is none for some inputs, as that of an absent one."""
        return any(
            n.op in (Op.PROMOTE, Op.REFUSED) or (n.op is Op.DTYPE_OF and all(map(self.optional, n.value or ())))  # type: ignore[arg-type]
            for n in below(dtype)
        )

    def output_dtype(self, name: str, leaves: tuple[form.Leaf, ...]) -> Node | None:
        """The dtype of an output; ``None`` for one that is never there."""
        found: Node | None = None
        for leaf in reversed(leaves):
            dtype = leaf.dtype
            if leaf.condition is None:
                found = dtype
            elif (
                dtype is None
                and found is not None
                and self.may_refuse(found)
                and not self.asks_for_shape(leaf.condition)
            ):
                found = Node(Op.CHOICE, Kind.DTYPE, (leaf.condition, Node(Op.NOTHING, Kind.DTYPE), found))
            elif dtype is None or found is None:
                # An output that is not there has whatever dtype it has when it is.
                found = dtype or found
            elif dtype != found:
                if self.asks_for_shape(leaf.condition):
                    raise self.fault(f"the dtype of {name} depends on a size")
                found = Node(Op.CHOICE, Kind.DTYPE, (leaf.condition, dtype, found))
        if found is not None and self.asks_for_shape(found):
            raise self.fault(f"the dtype of {name} depends on a size")
        return found


_PREFIX = {"dimension": "dim", "group": "group", "later": "later"}
_CONDITIONS = frozenset({Op.ALWAYS, Op.PRESENT, Op.GIVEN, Op.TRUTH, Op.FILLED, Op.COMPARE, Op.NOT, Op.AND, Op.OR})
