"""Shape relation → GE's InferShape and InferDataType in C++, for operator projects.

The functions follow the interface of CANN's ``gert::InferShapeContext`` and ``gert::InferDataTypeContext``. A size that
GE does not know yet (-1) stays unknown through all arithmetic, and constrains nothing; an input of unknown rank (-2)
makes the outputs' rank unknown. What the template's helpers do is what :mod:`ascend_graph.shapes` does with integers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ascend_graph.codegen.rendering import GenerationError, cpp_string, identifier, render

from ascend_graph.prototypes.model import Attr, AttrType, OpPrototype, ParameterKind
from ascend_graph.shapes import Relation
from ascend_graph.shapes.dtypes import CATEGORY
from ascend_graph.shapes.syntax import (
    Absent,
    Binary,
    Call,
    Conditional,
    Definition,
    Dims,
    Ellipsis_,
    Expr,
    Group,
    Index,
    Itself,
    Like,
    Literal,
    Name,
    Size,
    Tensor,
    Tuple,
    Unary,
    Value,
    bound_names,
    walk,
)

#: The names of the language as enumerators of ge::DataType (graph/types.h).
GE_DTYPES = {
    "bool": "DT_BOOL",
    "uint8": "DT_UINT8",
    "int8": "DT_INT8",
    "int16": "DT_INT16",
    "int32": "DT_INT32",
    "int64": "DT_INT64",
    "uint16": "DT_UINT16",
    "uint32": "DT_UINT32",
    "uint64": "DT_UINT64",
    "int4": "DT_INT4",
    "int2": "DT_INT2",
    "uint2": "DT_UINT2",
    "uint1": "DT_UINT1",
    "float16": "DT_FLOAT16",
    "bfloat16": "DT_BF16",
    "float32": "DT_FLOAT",
    "float64": "DT_DOUBLE",
    "complex32": "DT_COMPLEX32",
    "complex64": "DT_COMPLEX64",
    "complex128": "DT_COMPLEX128",
    "qint8": "DT_QINT8",
    "quint8": "DT_QUINT8",
    "qint32": "DT_QINT32",
}

_ATTR_READERS = {
    AttrType.INT: ("int64_t", "*{attrs}->GetInt({n})"),
    AttrType.TYPE: ("int64_t", "*{attrs}->GetInt({n})"),
    AttrType.BOOL: ("bool", "*{attrs}->GetBool({n})"),
    AttrType.FLOAT: ("float", "*{attrs}->GetFloat({n})"),
    AttrType.STRING: ("std::string", "{attrs}->GetStr({n})"),
    AttrType.LIST_INT: ("Sizes", "ReadList({attrs}->GetListInt({n}))"),
}
_HELPERS = {"+": "Add", "-": "Subtract", "*": "Multiply", "//": "FloorDivide", "%": "Modulo"}


@dataclass(slots=True)
class _Function:
    """The statements of one function, in order."""

    lines: list[str] = field(default_factory=list)
    attrs: set[str] = field(default_factory=set)


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
            (lists of tensors, ``reshape``, ``index``, numbers as outputs).

    >>> from ascend_graph.prototypes.model import Parameter
    >>> from ascend_graph.shapes import parse_relation
    >>> inputs, outputs = (Parameter("x"), Parameter("w")), (Parameter("y"),)
    >>> relation = parse_relation("x[m, k], w[k, n] -> y[m, n]")
    >>> source = infer_shape_source(OpPrototype("Mm", inputs, (), outputs), relation)
    >>> "Bind(dim_k, w.at(0))" in source
    True
    """
    generator = _Generator(prototype, relation, dict(names or {}))
    source: str = render(
        "infer_shape.cpp.jinja",
        op_type=identifier(prototype.op_type),
        relation=" ".join(str(relation).split()),
        shape=generator.shape_function(),
        dtype=generator.dtype_function(),
    )
    return source


class _Generator:
    def __init__(self, prototype: OpPrototype, relation: Relation, names: dict[str, str]) -> None:
        self.prototype, self.relation = prototype, relation
        self.inputs = {names.get(p.name, p.name): (n, p) for n, p in enumerate(prototype.inputs)}
        self.attrs: dict[str, tuple[int, Attr]] = {
            names.get(a.name, a.name): (n, a) for n, a in enumerate(prototype.attrs)
        }
        self.dims: set[str] = set()
        self.groups: set[str] = set()
        self.definitions = {c.name for c in relation.clauses if isinstance(c, Definition)}
        self.fresh = 0
        for tensor in (*relation.input_tensors, *relation.output_tensors):
            if tensor.index is not None:
                raise self.fault(f"{tensor.name} is a list of tensors")
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

    def fault(self, message: str) -> GenerationError:
        return GenerationError(f"InferShape of {self.prototype.op_type}: {message}\n  relation: {self.relation}")

    # ----------------------------------------------------------------------------------------------------------- shape

    def shape_function(self) -> list[str]:
        """The statements of InferShape."""
        f = _Function()
        body: list[str] = []
        deferred: list[str] = []
        for name in sorted({n for t in self.relation.input_tensors for n in bound_names(t)} - self.attrs.keys()):
            kind = "Group" if self.is_group(name) else "Dim"
            (self.groups if kind == "Group" else self.dims).add(name)
            body.append(f"{kind} {self.local(name)};")
        if any("..." in str(t) for t in self.relation.input_tensors):
            body.append("Group batch;")
        for tensor in self.relation.input_tensors:
            body += self.match(tensor, deferred, f)
        for clause in self.relation.clauses:
            if isinstance(clause, Definition):
                body.append(f"const int64_t {self.local(clause.name)} = {self.number(clause.value, f)};")
            else:
                body.append(
                    f"if (!({self.condition(clause, f, unknown_holds=True)})) return Refuse({cpp_string(str(clause))});"
                )
        body += deferred
        for number, tensor in enumerate(self.relation.output_tensors):
            body += self.output(number, tensor, f)
        locals_ = [f"int64_t deferred_{n} = kUnknown;" for n in range(self.fresh)]
        return [*self.readers(f, shapes=True), *locals_, *body]

    def is_group(self, name: str) -> bool:
        return any(
            isinstance(item, Group) and item.value == Name(name)
            for t in self.relation.input_tensors
            for a in t.alternatives
            if isinstance(a.shape, Dims)
            for item in a.shape.items
        )

    def local(self, name: str) -> str:
        """The C++ variable of a name of the relation."""
        name = identifier(name)
        if name in self.definitions:
            return f"def_{name}"
        if name in self.attrs:
            return f"attr_{name}"
        return f"group_{name}" if name in self.groups or self.is_group(name) else f"dim_{name}"

    def readers(self, f: _Function, *, shapes: bool) -> list[str]:
        """Reading the inputs and the attrs that the statements use."""
        lines = []
        before = [parameter for _, parameter in sorted(self.inputs.values(), key=lambda numbered: numbered[0])]
        for tensor in self.relation.input_tensors:
            number, parameter = self.inputs[tensor.name]
            name = identifier(tensor.name)
            optional = parameter.kind is ParameterKind.OPTIONAL
            if parameter.kind is ParameterKind.DYNAMIC:
                raise self.fault(f"{name} is a dynamic input")
            # GetInputShape counts the tensors there are: behind an optional input only this form says which one is meant.
            counted = (
                "OptionalInput" if any(p.kind is not ParameterKind.REQUIRED for p in before[: number + 1]) else "Input"
            )
            if shapes:
                getter = f"Get{counted}Shape"
                lines.append(f"const Input {name} = ReadShape(context->{getter}({number}));")
                if not optional:
                    lines.append(f'if (!{name}.present) return Refuse("input {name} has no shape");')
                lines.append(f"if ({name}.unknown_rank()) return UnknownRanks(context, {len(self.relation.outputs)});")
            else:
                lines.append(
                    f"[[maybe_unused]] const ge::DataType dtype_{name} = context->Get{counted}DataType({number});"
                )
        for name in sorted(f.attrs):
            number, attr = self.attrs[name]
            if attr.type not in _ATTR_READERS:
                raise self.fault(f"attr {name} is a {attr.type.value}, which a shape cannot depend on")
            kind, reader = _ATTR_READERS[attr.type]
            lines.append(
                f"const {kind} attr_{identifier(name)} = {reader.format(attrs='context->GetAttrs()', n=number)};"
            )
        return lines

    def match(self, tensor: Tensor, deferred: list[str], f: _Function) -> list[str]:
        blocks = []
        for alternative in tensor.alternatives:
            if isinstance(alternative.shape, Itself):
                continue
            assert isinstance(alternative.shape, Dims)
            lines = self.pattern(tensor.name, alternative.shape, deferred, f)
            condition = None if alternative.condition is None else self.condition(alternative.condition, f)
            blocks.append((condition, lines))
        found: list[str] = []
        for number, (condition, lines) in enumerate(blocks):
            opening = "{" if condition is None else f"if ({condition}) {{"
            found += [("else " if number else "") + opening, *lines, "}"]
        if found and self.inputs[tensor.name][1].kind is ParameterKind.OPTIONAL:
            found = [f"if ({identifier(tensor.name)}.present) {{", *found, "}"]
        return found

    def pattern(self, name: str, shape: Dims, deferred: list[str], f: _Function) -> list[str]:
        name = identifier(name)
        placed = [i for i in shape.items if isinstance(i, Size | Group) and i.axis is not None]
        ordered = [i for i in shape.items if isinstance(i, Ellipsis_) or i.axis is None]
        source, lines = name, []
        if placed:
            source = f"rest_of_{name}"
            lines.append(f"Axes axes_of_{name}({name}.rank());")
            for number, item in enumerate(placed):
                assert item.axis is not None
                axes = self.axis_list(item.axis, f)
                lines.append(f"Sizes part_{number};")
                lines.append(
                    f"if (!axes_of_{name}.Take({axes}, {name}, part_{number})) "
                    f"return Refuse({cpp_string(f'{name}: bad axis {item.axis}')});"
                )
                lines.append(self.bind(item, name, deferred, f, size=f"part_{number}.at(0)", part=f"part_{number}"))
            lines.append(f"const Input {source} = axes_of_{name}.Rest({name});")
        middle = next((n for n, i in enumerate(ordered) if not isinstance(i, Size)), None)
        fixed = len(ordered) - (middle is not None)
        test = f"{source}.rank() {'<' if middle is not None else '!='} {fixed}"
        if fixed or middle is None:
            lines.append(f"if ({test}) return Refuse({cpp_string(f'{name} does not have the dimensions {shape}')});")
        for number, piece in enumerate(ordered):
            if middle is None or number < middle:
                lines.append(self.bind(piece, name, deferred, f, size=f"{source}.at({number})"))
            elif number == middle:
                part = f"{source}.Slice({middle}, {source}.rank() - {fixed - middle})"
                lines.append(self.bind(piece, name, deferred, f, part=part))
            else:
                size = f"{source}.at({source}.rank() - {len(ordered) - number})"
                lines.append(self.bind(piece, name, deferred, f, size=size))
        return [line for line in lines if line]

    def bind(
        self, item: Any, subject: str, deferred: list[str], f: _Function, *, size: str = "", part: str = ""
    ) -> str:
        """The statement that binds or compares one size, or with ``part`` a group of them."""
        refusal = f"return Refuse({cpp_string(f'{subject}: {item} differs')});"
        if isinstance(item, Ellipsis_):
            return f"if (!Broadcast(batch, {part})) return Refuse({cpp_string(f'{subject} does not broadcast')});"
        value = item.value
        if isinstance(item, Group):
            return f"if (!BindGroup({self.local(str(value))}, {part})) {refusal}"
        if value is None:
            return ""
        if isinstance(value, Name) and value.id not in self.attrs and value.id not in self.definitions:
            return f"if (!Bind({self.local(value.id)}, {size})) {refusal}"
        check = f"if (!Same({size}, {self.number(value, f)})) {refusal}"
        if isinstance(value, Literal | Name) and str(value) not in self.definitions:
            return check
        local = f"deferred_{self.fresh}"
        self.fresh += 1
        deferred.append(f"if (!Same({local}, {self.number(value, f)})) {refusal}")
        return f"{local} = {size};"

    def axis_list(self, axis: Expr, f: _Function) -> str:
        if isinstance(axis, Name) and axis.id in self.attrs and self.attrs[axis.id][1].type is AttrType.LIST_INT:
            f.attrs.add(axis.id)
            return self.local(axis.id)
        return f"Sizes{{{self.number(axis, f)}}}"

    def output(self, number: int, tensor: Tensor, f: _Function) -> list[str]:
        found: list[str] = []
        for position, alternative in enumerate(tensor.alternatives):
            shape = alternative.shape
            if isinstance(shape, Value):
                raise self.fault(f"output {tensor.name} is a number or an element, not a shape")
            if isinstance(shape, Absent):
                lines = [f"WriteShape(context->GetOutputShape({number}), Sizes{{0}});"]
            elif isinstance(shape, Like | Itself):
                name = tensor.name if isinstance(shape, Itself) else str(shape.input)
                lines = [f"WriteShape(context->GetOutputShape({number}), {identifier(name)}.sizes);"]
            else:
                lines = self.sizes(number, shape, f)
            condition = None
            if alternative.condition is not None:
                condition = self.condition(alternative.condition, f)
                unknown = self.unknown(alternative.condition, f)
                if unknown:  # a choice that a size not known yet decides
                    opening = "else if" if position else "if"
                    found += [f"{opening} ({unknown}) {{", f"WriteUnknownRank(context->GetOutputShape({number}));", "}"]
                    found += [f"else if ({condition}) {{", *lines, "}"]
                    continue
            opening = "{" if condition is None else f"if ({condition}) {{"
            found += [("else " if position else "") + opening, *lines, "}"]
        return found

    def unknown(self, node: Expr, f: _Function) -> str:
        names = [n.id for n in walk(node) if isinstance(n, Name)]
        dims = [self.local(n) for n in dict.fromkeys(names) if n in self.dims or n in self.definitions]
        return " || ".join(f"IsUnknown({d})" for d in dims)

    def sizes(self, number: int, shape: Dims, f: _Function) -> list[str]:
        lines = ["Layout layout;"]
        for item in shape.items:
            if isinstance(item, Ellipsis_):
                lines.append("layout.Append(batch.sizes);")
                continue
            value = self.group(item.value, f) if isinstance(item, Group) else f"Sizes{{{self.number(item.value, f)}}}"  # type: ignore[arg-type]
            if item.axis is None:
                lines.append(f"layout.Append({value});")
            else:
                lines.append(f"layout.Place({self.axis_list(item.axis, f)}, {value});")
        refusal = cpp_string(f"output {self.relation.outputs[number]} has no shape {shape}")
        return [*lines, f"if (!layout.Write(context->GetOutputShape({number}))) return Refuse({refusal});"]

    def group(self, value: Expr, f: _Function) -> str:
        if isinstance(value, Call) and value.function == "ones":
            return f"Sizes({self.group(value.arguments[0], f)}.size(), 1)"
        if not isinstance(value, Name):
            raise self.fault(f"*{value} is only for Python")
        if value.id in self.attrs:
            f.attrs.add(value.id)
            return self.local(value.id)
        return f"{self.local(value.id)}.sizes"

    # ----------------------------------------------------------------------------------------------------- expressions

    def number(self, node: Expr, f: _Function) -> str:
        match node:
            case Literal(bool() | int() as value):
                return f"int64_t{{{int(value)}}}"
            case Name("..."):
                raise self.fault("'...' is no number")
            case Name(name):
                if name in self.attrs:
                    f.attrs.add(name)
                    return self.local(name)
                return self.local(name) if name in self.definitions else f"{self.local(name)}.value"
            case Index(Name(name), index):
                if name in self.attrs:
                    f.attrs.add(name)
                    return f"At({self.local(name)}, {self.number(index, f)})"
                return f"At({self.local(name)}.sizes, {self.number(index, f)})"
            case Unary("-", operand):
                return f"Subtract(0, {self.number(operand, f)})"
            case Binary(operator, left, right) if operator in _HELPERS:
                return f"{_HELPERS[operator]}({self.number(left, f)}, {self.number(right, f)})"
            case Conditional(then, condition, otherwise):
                return f"({self.condition(condition, f)} ? {self.number(then, f)} : {self.number(otherwise, f)})"
            case Call(function, arguments):
                return self.call(function, arguments, f)
        return f"int64_t{{{self.condition(node, f)}}}"

    def call(self, function: str, arguments: tuple[Expr, ...], f: _Function) -> str:
        first = arguments[0]
        if function in ("rank", "numel", "len") and isinstance(first, Name) and first.id in self.inputs:
            name = identifier(first.id)
            return f"Product({name}.sizes)" if function == "numel" else f"int64_t({name}.rank())"
        if function == "ceildiv":
            return f"CeilDivide({self.number(first, f)}, {self.number(arguments[1], f)})"
        if function in ("min", "max") and len(arguments) > 1:
            helper = "Minimum" if function == "min" else "Maximum"
            text = self.number(first, f)
            for argument in arguments[1:]:
                text = f"{helper}({text}, {self.number(argument, f)})"
            return text
        if function in ("len", "prod", "sum"):
            group = "batch.sizes" if first == Name("...") else self.group(first, f)
            return (
                f"int64_t({group}.size())"
                if function == "len"
                else f"{'Product' if function == 'prod' else 'Sum'}({group})"
            )
        raise self.fault(f"{function} is only for Python")

    def condition(self, node: Expr, f: _Function, *, unknown_holds: bool = False, dtypes: bool = False) -> str:
        """A C++ condition; with ``unknown_holds`` a comparison of sizes not known yet is true."""

        def recur(operand: Expr) -> str:
            return self.condition(operand, f, unknown_holds=unknown_holds, dtypes=dtypes)

        match node:
            case Literal(bool() as value):
                return str(value).lower()
            case Name(name) if name in self.inputs:
                return self.present(name, dtypes=dtypes)
            case Name(name) if name in self.attrs:
                f.attrs.add(name)
                local = self.local(name)
                return (
                    f"!{local}.empty()"
                    if self.attrs[name][1].type in (AttrType.STRING, AttrType.LIST_INT)
                    else f"({local} != 0)"
                )
            case Unary("not", operand):
                return f"!({recur(operand)})"
            case Binary(("and" | "or") as operator, left, right):
                return f"({recur(left)} {'&&' if operator == 'and' else '||'} {recur(right)})"
            case Binary(("is" | "is not") as operator, Name(name), Literal(None)):
                if name in self.inputs:
                    there = self.present(name, dtypes=dtypes)
                    return f"!{there}" if operator == "is" else there
                return "false" if operator == "is" else "true"  # a GE attr always has a value
            case Binary(("in" | "not in") as operator, left, Tuple(items)):
                tests = " || ".join(self.comparison("==", left, item, f, unknown_holds) for item in items)
                return f"({tests})" if operator == "in" else f"!({tests})"
            case Binary(operator, left, right) if operator in ("==", "!=", "<", "<=", ">", ">="):
                return self.comparison(operator, left, right, f, unknown_holds)
        return f"({self.number(node, f)} != 0)"

    def present(self, name: str, *, dtypes: bool) -> str:
        return f"(dtype_{identifier(name)} != ge::DT_UNDEFINED)" if dtypes else f"{identifier(name)}.present"

    def comparison(self, operator: str, left: Expr, right: Expr, f: _Function, unknown_holds: bool) -> str:
        for side, other in ((left, right), (right, left)):
            if isinstance(side, Literal) and isinstance(side.value, str):
                assert isinstance(other, Name)
                f.attrs.add(other.id)
                return f"({self.local(other.id)} {operator} {cpp_string(side.value)})"
            if isinstance(side, Call) and side.function in ("dtype", "promote", "floating", "real", "integral_sum"):
                raise self.fault(f"{left} {operator} {right}: a shape that depends on a dtype")
        boolean = [n for n in (left, right) if isinstance(n, Binary | Unary) and not isinstance(n, Unary | Literal)]
        boolean = [n for n in boolean if isinstance(n, Binary) and n.operator not in _HELPERS]
        if boolean:
            return f"(({self.condition(left, f)}) {operator} ({self.condition(right, f)}))"
        a, b = self.number(left, f), self.number(right, f)
        return f"(IsUnknown({a}) || IsUnknown({b}) || {a} {operator} {b})" if unknown_holds else f"({a} {operator} {b})"

    # ---------------------------------------------------------------------------------------------------------- dtypes

    def dtype_function(self) -> list[str]:
        """The statements of InferDataType."""
        f = _Function()
        body = []
        symbols = {
            a.dtype.id: t.name
            for t in reversed(self.relation.input_tensors)
            for a in t.alternatives
            if isinstance(a.dtype, Name) and a.dtype.id not in CATEGORY and a.dtype.id not in self.inputs
        }
        for number, tensor in enumerate(self.relation.output_tensors):
            shared = next((a.dtype for a in reversed(tensor.alternatives) if a.dtype is not None), None)
            text = ""
            for alternative in tensor.alternatives:
                value = self.output_dtype(
                    tensor, alternative.shape, alternative.dtype, shared=shared, symbols=symbols, f=f
                )
                if alternative.condition is None:
                    text += value
                elif self.unknown(alternative.condition, f):
                    raise self.fault(f"the dtype of {tensor.name} depends on a size")
                else:
                    text += f"{self.condition(alternative.condition, f, dtypes=True)} ? {value} : "
            body.append(f"context->SetOutputDataType({number}, {text});")
        return [*self.readers(f, shapes=False), *body]

    def output_dtype(
        self,
        tensor: Tensor,
        shape: Any,
        dtype: Expr | None,
        *,
        shared: Expr | None,
        symbols: Mapping[str, str],
        f: _Function,
    ) -> str:
        """The dtype of an output in one of its alternatives."""
        if isinstance(shape, Like | Itself) and dtype is None:
            return f"dtype_{identifier(tensor.name if isinstance(shape, Itself) else str(shape.input))}"
        if isinstance(shape, Dims):
            dtype = dtype or shared
        if dtype is None and isinstance(shape, Absent):
            return "ge::DT_UNDEFINED"
        if dtype is not None:
            return self.dtype(dtype, symbols, f)
        if not self.relation.inputs:
            raise self.fault(f"output {tensor.name} has no dtype and no input gives one")
        text = f"dtype_{identifier(self.relation.inputs[-1])}"
        for name in reversed(self.relation.inputs[:-1]):  # the first input that is there
            optional = self.inputs[name][1].kind is ParameterKind.OPTIONAL
            own = f"dtype_{identifier(name)}"
            text = f"({own} != ge::DT_UNDEFINED ? {own} : {text})" if optional else own
        return text

    def dtype(self, node: Expr, symbols: Mapping[str, str], f: _Function) -> str:

        def recur(argument: Expr) -> str:
            return self.dtype(argument, symbols, f)

        match node:
            case Name(name) if name in self.inputs:
                return f"dtype_{identifier(name)}"
            case Name(name) if name in self.attrs:
                f.attrs.add(name)
                return f"static_cast<ge::DataType>({self.local(name)})"
            case Name(name) if name in symbols:
                return f"dtype_{identifier(symbols[name])}"
            case Name(name) if name in GE_DTYPES:
                return f"ge::{GE_DTYPES[name]}"
            case Conditional(then, condition, otherwise):
                return f"({self.condition(condition, f, dtypes=True)} ? {recur(then)} : {recur(otherwise)})"
            case Call("dtype", (argument,)):
                return recur(argument)
            case Call(("promote" | "floating") as function, arguments):
                text = recur(arguments[0])
                for argument in arguments[1:]:
                    text = f"Promote({text}, {recur(argument)})"
                return text if function == "promote" else f"Floating({text})"
            case Call(("real" | "integral_sum") as function, (argument,)):
                return f"{'Real' if function == 'real' else 'IntegralSum'}({recur(argument)})"
        raise self.fault(f"{node} is no dtype of GE")
