"""C++ expressions of InferShape for the nodes of a relation's form."""

from __future__ import annotations

from ascend_graph.codegen.infer_shape_names import COMPARISONS, CONDITIONS, FUNCTIONS, GE_DTYPES, KINDS, READING, TYPES
from ascend_graph.codegen.rendering import GenerationError, cpp_name, cpp_string

from ascend_graph.prototypes.model import OpPrototype, ParameterKind
from ascend_graph.shapes import Relation, form
from ascend_graph.shapes.errors import RelationError
from ascend_graph.shapes.form import AttrKind, ExpressionKind, ExpressionNode, Op
from ascend_graph.shapes.lowering import lower
from ascend_graph.shapes.unknown import advice


class ExpressionWriter:
    """Writer of the nodes of a relation's form as C++ expressions."""

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
                f"{advice(relation, missing)}"
            )
        if len(relation.outputs) != len(prototype.outputs):
            raise self.fault(
                f"the relation has {len(relation.outputs)} outputs; expected {len(prototype.outputs)}, as the "
                "prototype has"
            )
        for name in relation.attr_names & self.attrs.keys():
            if (kind := self.attrs[name][1].type) not in KINDS:
                raise self.fault(
                    f"attr {name} is a {kind.value}, which a shape cannot depend on; expected one of "
                    f"{', '.join(k.value for k in KINDS)}"
                )
        try:
            kinds = {name: KINDS.get(a.type, AttrKind(ExpressionKind.OTHER)) for name, (_, a) in self.attrs.items()}
            self.form: form.Form = lower(relation, kinds)
        except RelationError as error:
            raise self.fault(str(error)) from None
        for name in relation.inputs:
            if self.inputs[name][1].kind is ParameterKind.DYNAMIC:
                raise self.fault(
                    f"{name} is a dynamic input, which generated InferShape does not support; write it by hand"
                )
        for node in self.form.nodes:
            if node.op is Op.DTYPE and node.value not in GE_DTYPES:
                raise self.fault(f"{node.value} is not a dtype of GE; expected one of {', '.join(GE_DTYPES)}")
        #: Definitions that need shapes.
        self.of_shapes: set[str] = set()

    def fault(self, message: str) -> GenerationError:
        return GenerationError(f"InferShape of {self.prototype.op_type}: {message}\n  relation: {self.relation}")

    def optional(self, name: str) -> bool:
        return self.inputs[name][1].kind is ParameterKind.OPTIONAL

    def input(self, name: str) -> str:
        variable: str = cpp_name("input", name)
        return variable

    def emit(self, node: ExpressionNode) -> str:
        """Return a node as a C++ expression: Number, Sizes, bool, double, std::string or ge::DataType by its kind."""
        args, value = node.args, node.value
        match node.op:
            case Op.CHOICE:
                kind = TYPES.get(node.kind)
                a, b = self.emit(args[1]), self.emit(args[2])
                if kind is None:
                    kind = "bool" if self.is_bool(node) else "Number"
                return f"({self.emit(args[0])} ? {kind}({a}) : {kind}({b}))"
            case Op.REFUSED:
                kind = TYPES.get(node.kind, "bool" if node.kind is ExpressionKind.BOOL else "Number")
                assert isinstance(value, tuple)
                return f"Refuse<{kind}>({cpp_string('; expected '.join(value))})"
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
                kind = "double" if args[0].kind is ExpressionKind.FLOAT else "Number"
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
        if node.op in READING:
            prefix, text = READING[node.op]
            return str(text.format(cpp_name(prefix, str(value))))
        return f"{FUNCTIONS[node.op]}({', '.join(map(self.emit, args))})"

    def is_bool(self, node: ExpressionNode) -> bool:
        """Return whether a choice is between conditions rather than numbers."""
        return all(
            a.op in CONDITIONS
            or (a.op is Op.REFUSED and a.kind is ExpressionKind.BOOL)
            or (a.op is Op.CHOICE and self.is_bool(a))
            for a in node.args[1:]
        )

    def compare(self, operator: str, left: ExpressionNode, right: ExpressionNode) -> str:
        a, b = self.emit(left), self.emit(right)
        if operator == "in":
            return f"Holds(ways, Number({a}), {b})"
        if left.kind is ExpressionKind.DTYPE:
            return f"({a} {operator} {b})"
        kinds = {ExpressionKind.FLOAT: "double", ExpressionKind.TEXT: "std::string", ExpressionKind.SIZES: "Sizes"}
        a, b = (f"{kinds.get(node.kind, 'Number')}({text})" for node, text in ((left, a), (right, b)))
        return f"Compare<{COMPARISONS[operator]}>(ways, {a}, {b})"
