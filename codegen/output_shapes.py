"""C++ from a shape relation that checks the inputs of an operator and makes its outputs.

The code serves the kernel and the meta function alike: sizes may be symbolic. It writes the relation's form
(:mod:`ascend_graph.shapes.form`) as far as that has dimensions, groups and ``...``, integer arithmetic, conditions that
are known at a call, ``like`` and the usual dtype rules. For a relation with more there is no code: the generated kernel
then calls the meta function that ``register_op`` made from the relation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ascend_graph.codegen.rendering import cpp_name, cpp_string

from ascend_graph.eager.shape_code import SCALAR_TYPES
from ascend_graph.shapes import Relation, RelationError, form
from ascend_graph.shapes.form import AttrKind, ExpressionKind, ExpressionNode, Op
from ascend_graph.shapes.lowering import lower

_SYM_COMPARE = {"==": "sym_eq", "!=": "sym_ne", "<": "sym_lt", "<=": "sym_le", ">": "sym_gt", ">=": "sym_ge"}
_FUNCTIONS = {
    Op.NEGATE: "negate",
    Op.ADD: "add",
    Op.SUBTRACT: "subtract",
    Op.MULTIPLY: "multiply",
    Op.FLOOR_DIVIDE: "floor_divide",
    Op.MODULO: "modulo",
    Op.CEIL_DIVIDE: "ceil_divide",
}
#: Enumerators of at::ScalarType by torch's number.
ENUMERATORS = {
    **dict(enumerate(("Byte", "Char", "Short", "Int", "Long", "Half", "Float", "Double"))),
    **{8: "ComplexHalf", 9: "ComplexFloat", 10: "ComplexDouble", 11: "Bool", 15: "BFloat16", 23: "Float8_e5m2"},
    **{24: "Float8_e4m3fn", 27: "UInt16", 28: "UInt32", 29: "UInt64", 44: "Float8_e8m0fnu"},
}


@dataclass(frozen=True, slots=True)
class OutputCode:
    """Statements of a function body, and one expression per output."""

    statements: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CppTensor:
    """Tensor argument in C++: its expression, and a flag for ``std::optional``."""

    name: str
    optional: bool

    @property
    def present(self) -> str:
        """Condition that it is present."""
        return f"{self.name}.has_value()" if self.optional else "true"


class _BeyondError(Exception):
    """Error of a relation with a part that this module does not write."""


def output_code(
    relation: Relation, tensors: Mapping[str, CppTensor], attrs: Mapping[str, tuple[str, AttrKind]]
) -> OutputCode | None:
    """Return the C++ of a relation, or ``None`` if it has a part that this module does not write.

    Args:
        relation: The relation, of fresh outputs only.
        tensors: The single-tensor arguments by the relation's name for them.
        attrs: The C++ expression and the kind of each other argument.
    """
    if any(name not in tensors for name in relation.inputs):
        return None
    try:
        lowered = lower(relation, {name: kind for name, (_, kind) in attrs.items()})
        # An argument that may be None is a std::optional, with a default that the kernel knows: left to the meta function.
        plain = {name: expression for name, (expression, kind) in attrs.items() if not kind.optional}
        return _Writer(lowered, tensors, plain).code()
    except (_BeyondError, RelationError):
        return None


class _Writer:
    def __init__(self, lowered: form.Form, tensors: Mapping[str, CppTensor], attrs: Mapping[str, str]) -> None:
        self.form, self.tensors, self.attrs = lowered, tensors, attrs
        self.known: set[str] = set()
        self.ellipses = 0
        self.lines: list[str] = []

    def code(self) -> OutputCode:
        for step in self.form.steps:
            match step:
                case form.Match(name, (pattern,)):
                    self.input(name, pattern)
                case form.CheckDtype(name, allowed):
                    self.dtype_check(name, allowed)
                case form.SameDtype(names, symbol):
                    self.same_dtype(names, symbol)
                case form.Define(name, node) if node.kind is ExpressionKind.NUMBER or node.kind is ExpressionKind.BOOL:
                    self.lines.append(
                        f"[[maybe_unused]] const c10::SymInt {cpp_name('dim', name)} = {self.size(node)};"
                    )
                    self.known.add(name)
                case form.Demand(condition, shown):
                    self.demand(condition, shown)
                case _:
                    raise _BeyondError
        outputs = tuple([self.output(output.leaves) for output in self.form.outputs])
        return OutputCode(tuple(self.lines), outputs)

    # ---------------------------------------------------------------------------------------------------------- inputs

    def input(self, name: str, pattern: form.InputPattern) -> None:
        given = self.tensors[name]
        if pattern.items is None:
            return
        if pattern.placed:
            raise _BeyondError
        outer, self.lines = self.lines, []
        before = set(self.known), self.ellipses
        self.pattern(cpp_string(pattern.shown), f"(*{given.name})" if given.optional else given.name, pattern.items)
        if given.optional:
            if before != (self.known, self.ellipses):
                raise _BeyondError  # a name that is bound only sometimes
            self.lines = [f"if ({given.present}) {{", *[f"    {line}" for line in self.lines], "}"]
        self.lines = outer + self.lines

    def pattern(self, shown: str, value: str, items: Sequence[form.Bind]) -> None:
        open_at = next((n for n, item in enumerate(items) if item.many), None)
        fixed = len(items) - (open_at is not None)
        if fixed or open_at is None:
            self.lines.append(f"check_rank({shown}, {value}, {fixed}, {'false' if open_at is None else 'true'});")
        for n, item in enumerate(items):
            if n == open_at:
                self.open_item(shown, f"middle({value}, {n}, {len(items) - n - 1})", item)
            else:
                position = n if open_at is None or n < open_at else n - len(items)
                self.fixed_item(shown, f"{value}.sym_size({position})", item)

    @property
    def ellipsis(self) -> str:
        """Variable of the leading dimensions so far.

        No name of the relation gives a variable that ends in an underscore.
        """
        return f"dim_leading_{self.ellipses}_"

    def open_item(self, shown: str, sizes: str, item: form.Bind) -> None:
        if item.what == "ellipsis":
            before = self.ellipsis
            self.ellipses += 1
            made = sizes if self.ellipses == 1 else f"broadcast({before}, {sizes})"
            kind = "SymIntArrayRef" if self.ellipses == 1 else "SymDimVector"
            self.lines.append(f"[[maybe_unused]] const c10::{kind} {self.ellipsis} = {made};")
        elif item.what != "group":
            raise _BeyondError
        elif item.name in self.known:
            name = cpp_name("dim", item.name)
            self.lines.append(f"check_sizes({shown}, {cpp_string(item.name)}, {sizes}, {name});")
        else:
            self.known.add(item.name)
            self.lines.append(f"[[maybe_unused]] const c10::SymIntArrayRef {cpp_name('dim', item.name)} = {sizes};")

    def fixed_item(self, shown: str, size: str, item: form.Bind) -> None:
        match item.what:
            case "any":
                return
            case "size" if item.node is not None:
                expected = self.size(item.node)
                self.lines.append(f"check_size({shown}, {cpp_string(item.shown)}, {size}, {expected});")
            case "dimension" if item.name in self.known:
                variable = cpp_name("dim", item.name)
                self.lines.append(f"check_size({shown}, {cpp_string(item.name)}, {size}, {variable});")
            case "dimension":
                self.known.add(item.name)
                self.lines.append(f"[[maybe_unused]] const c10::SymInt {cpp_name('dim', item.name)} = {size};")
            case _:
                raise _BeyondError

    def dtype_check(self, name: str, allowed: Sequence[ExpressionNode]) -> None:
        given = self.tensors[name]
        value = f"given({cpp_string(name)}, {given.name})"
        wanted = " || ".join(f"{value}.scalar_type() == {self.fixed_dtype(option)}" for option in allowed)
        shown = ", ".join(str(option.value) for option in allowed)
        self.dtype_demand(name, wanted, shown)

    def same_dtype(self, names: Sequence[str], symbol: str) -> None:
        if len(names) < 2:
            return
        if self.tensors[names[0]].optional:
            raise _BeyondError
        first, last = (f"given({cpp_string(n)}, {self.tensors[n].name}).scalar_type()" for n in (names[0], names[-1]))
        self.dtype_demand(names[-1], f"{first} == {last}", f"that of {names[0]}, {symbol}")

    def dtype_demand(self, name: str, wanted: str, allowed: str) -> None:
        given = self.tensors[name]
        check = (
            f"TORCH_CHECK({wanted}, {cpp_string(f'{name} has dtype ')}, "
            f"given({cpp_string(name)}, {given.name}).scalar_type(), {cpp_string(f'; allowed: {allowed}')});"
        )
        self.lines.append(f"if ({given.present}) {{ {check} }}" if given.optional else check)

    def demand(self, condition: ExpressionNode, shown: str) -> None:
        if condition.op is Op.AND:
            for part in condition.args:
                self.demand(part, shown)
        elif condition.op is Op.COMPARE and self.are_sizes(condition):
            a, b = map(self.size, condition.args)
            self.lines.append(
                f"TORCH_SYM_CHECK({a}.{_SYM_COMPARE[str(condition.value)]}({b}), {cpp_string(f'{shown} must hold: ')}, {a}, "
                f"{cpp_string(f' {condition.value} ')}, {b});"
            )
        else:
            self.lines.append(f"TORCH_CHECK({self.condition(condition)}, {cpp_string(f'{shown} must hold')});")

    @staticmethod
    def are_sizes(node: ExpressionNode) -> bool:
        return node.value in _SYM_COMPARE and all(
            a.kind in (ExpressionKind.NUMBER, ExpressionKind.BOOL) for a in node.args
        )

    # --------------------------------------------------------------------------------------------------------- outputs

    def output(self, leaves: Sequence[form.Leaf]) -> str:
        text = ""
        for leaf in leaves:
            match leaf.what:
                case "absent":
                    made = "at::Tensor()"
                case "like":
                    assert leaf.dtype is not None
                    own = leaf.dtype == ExpressionNode(Op.DTYPE_OF, ExpressionKind.DTYPE, (), (leaf.input,))
                    dtype = "" if own else f", {self.options(leaf.dtype)}"
                    made = f"at::empty_like({self.tensor(leaf.input)}{dtype})"
                case "fresh":
                    assert leaf.dtype is not None
                    made = f"allocate({self.shape(leaf.pieces)}, {self.options(leaf.dtype)})"
                case _:
                    raise _BeyondError
            text += made if leaf.condition is None else f"{self.condition(leaf.condition)} ? {made} : "
        return text

    def tensor(self, name: str) -> str:
        """Return the expression of a tensor that must be present."""
        given = self.tensors[name]
        return f"given({cpp_string(name)}, {given.name})" if given.optional else given.name

    def shape(self, pieces: Sequence[form.ShapeItem]) -> str:
        texts = [self.piece(piece) for piece in pieces]
        if len(texts) == 1 and pieces[0].node.kind is ExpressionKind.SIZES:
            return texts[0]
        return f"shape({{{', '.join(texts)}}})"

    def piece(self, piece: form.ShapeItem) -> str:
        if piece.axes is not None:
            raise _BeyondError
        match piece.node.op:
            case Op.ELLIPSIS if self.ellipses:
                return self.ellipsis if self.ellipses == 1 else f"c10::SymIntArrayRef({self.ellipsis})"
            case Op.GROUP if piece.node.value in self.known:
                return str(cpp_name("dim", str(piece.node.value)))
        if piece.node.kind is ExpressionKind.SIZES:
            raise _BeyondError
        return self.size(piece.node)

    def options(self, dtype: ExpressionNode) -> str:
        first = next((n for n in self.form.inputs if not self.tensors[n].optional), None)
        if first is None:
            raise _BeyondError
        options = f"{self.tensors[first].name}.options()"
        if dtype.op is Op.DTYPE_OF and isinstance(dtype.value, tuple) and dtype.value[0] == first:
            return options
        return f"{options}.dtype({self.dtype(dtype)})"

    def dtype(self, node: ExpressionNode) -> str:
        match node.op:
            case Op.DTYPE_OF:
                assert isinstance(node.value, tuple)
                return self.first_dtype(node.value)
            case Op.DTYPE_ATTR:
                return f"scalar_type({self.attr(node)})"
            case Op.CHOICE:
                return f"({self.condition(node.args[0])} ? {self.dtype(node.args[1])} : {self.dtype(node.args[2])})"
            case Op.PROMOTE if len(node.args) == 2 and all(a.op is Op.TENSOR for a in node.args):
                return f"at::result_type({', '.join(self.tensor(str(a.value)) for a in node.args)})"
        return self.fixed_dtype(node)

    def first_dtype(self, names: Sequence[str]) -> str:
        """Return the dtype of the first tensor that is present."""
        if len(names) == 1 or not self.tensors[names[0]].optional:
            return f"{self.tensor(names[0])}.scalar_type()"
        rest = self.first_dtype(names[1:])
        return f"({self.tensors[names[0]].present} ? {self.tensor(names[0])}.scalar_type() : {rest})"

    @staticmethod
    def fixed_dtype(node: ExpressionNode) -> str:
        if node.op is Op.DTYPE and node.value in SCALAR_TYPES:
            return f"at::ScalarType::{ENUMERATORS[SCALAR_TYPES[str(node.value)]]}"
        raise _BeyondError

    # ----------------------------------------------------------------------------------------------------- expressions

    def attr(self, node: ExpressionNode) -> str:
        """Return the expression of an attr that always has a value."""
        if str(node.value) not in self.attrs:
            raise _BeyondError
        return self.attrs[str(node.value)]

    def condition(self, node: ExpressionNode) -> str:
        """Return a condition that is known at a call: on the presence of inputs, or on attrs."""
        match node.op:
            case Op.ALWAYS:
                return "true" if node.value else "false"
            case Op.PRESENT:
                return self.tensors[str(node.value)].present
            case Op.TRUTH if node.args[0].op is Op.ATTR:
                return f"({self.attr(node.args[0])} != 0)"
            case Op.NOT:
                return f"!{self.condition(node.args[0])}"
            case Op.AND | Op.OR:
                a, b = map(self.condition, node.args)
                return f"({a} {'&&' if node.op is Op.AND else '||'} {b})"
            case Op.COMPARE if self.are_sizes(node):
                a, b = map(self.plain, node.args)
                return f"({a} {node.value} {b})"
            case Op.COMPARE if all(a.kind is ExpressionKind.DTYPE for a in node.args):
                a, b = map(self.dtype, node.args)
                return f"({a} {node.value} {b})"
        raise _BeyondError

    def plain(self, node: ExpressionNode) -> str:
        """Return a number other than a size: an attr, a rank or an integer."""
        match node.op:
            case Op.INTEGER:
                return f"int64_t{{{node.value}}}"
            case Op.ATTR:
                return f"int64_t{{{self.attr(node)}}}"
            case Op.RANK:
                return f"{self.tensor(str(node.value))}.dim()"
        raise _BeyondError

    def size(self, node: ExpressionNode) -> str:
        """Return a number as a ``c10::SymInt``."""
        match node.op:
            case Op.INTEGER:
                return f"c10::SymInt(int64_t{{{node.value}}})"
            case Op.ATTR if node.kind in (ExpressionKind.NUMBER, ExpressionKind.BOOL):
                return f"c10::SymInt(int64_t{{{self.attr(node)}}})"
            case Op.DIMENSION if node.value in self.known:
                return str(cpp_name("dim", str(node.value)))
            case Op.RANK:
                return f"c10::SymInt({self.tensor(str(node.value))}.dim())"
            case Op.ELEMENTS:
                return f"elements({self.tensor(str(node.value))})"
            case Op.CHOICE:
                then, otherwise = map(self.size, node.args[1:])
                return f"({self.condition(node.args[0])} ? {then} : {otherwise})"
            case Op.FROM_CONDITION:
                return f"c10::SymInt(int64_t{{{self.condition(node.args[0])}}})"
        if node.op in _FUNCTIONS:
            return f"{_FUNCTIONS[node.op]}({', '.join(map(self.size, node.args))})"
        raise _BeyondError
