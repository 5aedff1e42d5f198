"""Shape relation → the C++ that checks the inputs of an operator and makes its outputs.

The code serves the kernel and the meta function alike: sizes may be symbolic. It covers dimensions, groups and ``...``,
integer arithmetic, conditions on the presence of inputs, ``like`` and the usual dtype rules. For a relation with more there
is none; the generated kernel then asks the meta function that ``register_op`` made from the relation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ascend_graph.codegen.rendering import cpp_string, identifier

from ascend_graph.eager.shape_code import SCALAR_TYPES
from ascend_graph.shapes import Relation
from ascend_graph.shapes.relation import dtype_symbols
from ascend_graph.shapes.syntax import (
    Absent,
    Binary,
    Call,
    Conditional,
    Definition,
    Dim,
    Dims,
    Ellipsis_,
    Expr,
    Group,
    Like,
    Literal,
    Name,
    Size,
    Tensor,
    Tuple,
    Unary,
    bound_names,
)

_COMPARE = {"==": "sym_eq", "!=": "sym_ne", "<": "sym_lt", "<=": "sym_le", ">": "sym_gt", ">=": "sym_ge"}
_DIVISIONS = {"//": "floor_divide", "%": "modulo"}
#: at::ScalarType's enumerators by torch's number.
ENUMERATORS = {
    **dict(enumerate(("Byte", "Char", "Short", "Int", "Long", "Half", "Float", "Double"))),
    **{8: "ComplexHalf", 9: "ComplexFloat", 10: "ComplexDouble", 11: "Bool", 15: "BFloat16", 23: "Float8_e5m2"},
    **{24: "Float8_e4m3fn", 27: "UInt16", 28: "UInt32", 29: "UInt64", 44: "Float8_e8m0fnu"},
}


@dataclass(frozen=True, slots=True)
class OutputCode:
    """The statements of a function body, and one expression per output."""

    statements: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CppTensor:
    """A tensor argument in C++: its expression, and whether it is a ``std::optional``."""

    name: str
    optional: bool

    @property
    def present(self) -> str:
        """The condition that it is there."""
        return f"{self.name}.has_value()"

    @property
    def value(self) -> str:
        """The tensor."""
        return f"(*{self.name})" if self.optional else self.name


class _BeyondError(Exception):
    """The relation has something that this does not write."""


def output_code(
    relation: Relation, tensors: Mapping[str, CppTensor], attrs: Mapping[str, str], dtypes: Mapping[str, str]
) -> OutputCode | None:
    """The C++ of a relation, or ``None`` where it has more than this writes.

    Args:
        relation: The relation, of fresh outputs only.
        tensors: The single-tensor arguments by the relation's name for them.
        attrs: The C++ expressions of integer and boolean attrs.
        dtypes: Those of dtype attrs.
    """
    try:
        return _Writer(relation, tensors, attrs, dtypes).code()
    except _BeyondError:
        return None


class _Writer:
    def __init__(
        self, relation: Relation, tensors: Mapping[str, CppTensor], attrs: Mapping[str, str], dtypes: Mapping[str, str]
    ) -> None:
        self.relation = relation
        self.tensors = tensors
        self.attrs = attrs
        self.dtypes = dtypes
        self.known: dict[str, str] = {}
        self.ellipsis: str | None = None
        self.lines: list[str] = []
        self.symbols = dtype_symbols(relation) - attrs.keys() - dtypes.keys()
        self.definitions = {c.name for c in relation.clauses if isinstance(c, Definition)}

    def code(self) -> OutputCode:
        relation = self.relation
        if any(
            t.name not in self.tensors or t.index is not None or len(t.alternatives) != 1
            for t in relation.input_tensors
        ):
            raise _BeyondError
        for tensor in relation.input_tensors:
            self.input(tensor)
        self.dtype_checks()
        for clause in relation.clauses:
            if isinstance(clause, Definition):
                name = f"dim_{identifier(clause.name)}"
                self.lines.append(f"const c10::SymInt {name} = {self.size(clause.value)};")
                self.known[clause.name] = name
            else:
                self.demand(clause, str(clause))
        outputs = tuple([self.output(tensor) for tensor in relation.output_tensors])
        return OutputCode(tuple(self.lines), outputs)

    # ---------------------------------------------------------------------------------------------------------- inputs

    def input(self, tensor: Tensor) -> None:
        shape = tensor.alternatives[0].shape
        given = self.tensors[tensor.name]
        if not isinstance(shape, Dims):
            return
        outer, self.lines = self.lines, []
        new = bound_names(tensor) - self.known.keys() - self.attrs.keys()
        if given.optional and (new or any(isinstance(i, Ellipsis_) for i in shape.items)):
            raise _BeyondError  # a name that is bound only sometimes
        self.pattern(cpp_string(f"{tensor.name}{shape}"), given.value, shape.items)
        if given.optional:
            outer += [f"if ({given.present}) {{", *[f"    {line}" for line in self.lines], "}"]
        else:
            outer += self.lines
        self.lines = outer

    def pattern(self, shown: str, value: str, items: Sequence[Dim]) -> None:
        open_at = next((n for n, i in enumerate(items) if isinstance(i, Ellipsis_ | Group)), None)
        fixed = len(items) - (open_at is not None)
        if fixed or open_at is None:
            self.lines.append(f"check_rank({shown}, {value}, {fixed}, {'false' if open_at is None else 'true'});")
        for n, item in enumerate(items):
            if n == open_at:
                self.open_item(shown, f"middle({value}, {n}, {len(items) - n - 1})", item)
            elif isinstance(item, Size):
                position = n if open_at is None or n < open_at else n - len(items)
                self.fixed_item(shown, f"{value}.sym_size({position})", item)

    def open_item(self, shown: str, sizes: str, item: Dim) -> None:
        if isinstance(item, Ellipsis_):
            if self.ellipsis is None:
                self.ellipsis = "leading_dims"
                self.lines.append(f"const c10::SymIntArrayRef leading_dims = {sizes};")
            else:
                before, self.ellipsis = self.ellipsis, f"{self.ellipsis}_"
                self.lines.append(f"const c10::SymDimVector {self.ellipsis} = broadcast({before}, {sizes});")
            return
        assert isinstance(item, Group)
        if item.axis is not None or not isinstance(item.value, Name) or item.value.id in self.attrs:
            raise _BeyondError
        name = item.value.id
        if name in self.known:
            self.lines.append(f"check_sizes({shown}, {cpp_string(name)}, {sizes}, {self.known[name]});")
        else:
            self.known[name] = f"dim_{identifier(name)}"
            self.lines.append(f"const c10::SymIntArrayRef {self.known[name]} = {sizes};")

    def fixed_item(self, shown: str, size: str, item: Size) -> None:
        if item.axis is not None:
            raise _BeyondError
        match item.value:
            case None:
                return
            case Literal(int() as value):
                self.lines.append(f'check_size({shown}, "the size", {size}, {value});')
            case Name(name) if name in self.attrs:
                self.lines.append(f"check_size({shown}, {cpp_string(name)}, {size}, {self.attrs[name]});")
            case Name(name) if name in self.known:
                self.lines.append(f"check_size({shown}, {cpp_string(name)}, {size}, {self.known[name]});")
            case Name(name) if name not in self.definitions:
                self.known[name] = f"dim_{identifier(name)}"
                self.lines.append(f"const c10::SymInt {self.known[name]} = {size};")
            case _:
                raise _BeyondError

    def dtype_checks(self) -> None:
        users: dict[str, CppTensor] = {}
        for tensor in self.relation.input_tensors:
            dtype = tensor.alternatives[0].dtype
            given = self.tensors[tensor.name]
            if dtype is None:
                continue
            if isinstance(dtype, Name) and dtype.id in self.symbols:
                first = users.setdefault(dtype.id, given)
                if first is given:
                    if given.optional:
                        raise _BeyondError
                    continue
                wanted, allowed = f"{given.value}.scalar_type() == {first.value}.scalar_type()", f"that of {first.name}"
            else:
                options = dtype.items if isinstance(dtype, Tuple) else (dtype,)
                wanted = " || ".join(f"{given.value}.scalar_type() == {self.fixed_dtype(o)}" for o in options)
                allowed = ", ".join(map(str, options))
            if given.optional:
                wanted = f"!{given.present} || {wanted}"
            self.lines.append(
                f"TORCH_CHECK({wanted}, {cpp_string(f'{tensor.name} has dtype ')}, {given.value}.scalar_type(), "
                f"{cpp_string(f'; allowed: {allowed}')});"
            )

    def demand(self, condition: Expr, shown: str) -> None:
        match condition:
            case Binary("and", left, right):
                self.demand(left, shown)
                self.demand(right, shown)
            case Binary(operator, left, right) if operator in _COMPARE:
                a, b = self.size(left), self.size(right)
                self.lines.append(
                    f"TORCH_SYM_CHECK({a}.{_COMPARE[operator]}({b}), {cpp_string(f'{shown} must hold: ')}, {a}, "
                    f"{cpp_string(f' {operator} ')}, {b});"
                )
            case _:
                raise _BeyondError

    # --------------------------------------------------------------------------------------------------------- outputs

    def output(self, tensor: Tensor) -> str:
        if tensor.index is not None:
            raise _BeyondError
        shared = next((a.dtype for a in reversed(tensor.alternatives) if a.dtype is not None), None)
        text = ""
        for alternative in tensor.alternatives:
            match alternative.shape:
                case Absent():
                    made = "at::Tensor()"
                case Like(Name(name)):
                    given = self.tensors[name]
                    dtype = "" if alternative.dtype is None else f", {self.options(alternative.dtype)}"
                    made = f"at::empty_like({given.value}{dtype})"
                case Dims(items):
                    made = f"allocate({self.shape(items)}, {self.options(alternative.dtype or shared)})"
                case _:
                    raise _BeyondError
            text += made if alternative.condition is None else f"{self.condition(alternative.condition)} ? {made} : "
        return text

    def shape(self, items: Sequence[Dim]) -> str:
        pieces = [self.piece(item) for item in items]
        if len(pieces) == 1 and not isinstance(items[0], Size):
            return pieces[0]
        return f"shape({{{', '.join(pieces)}}})"

    def piece(self, item: Dim) -> str:
        if isinstance(item, Ellipsis_):
            if self.ellipsis is None:
                raise _BeyondError
            return f"c10::SymIntArrayRef({self.ellipsis})" if self.ellipsis != "leading_dims" else self.ellipsis
        if item.axis is not None or item.value is None:
            raise _BeyondError
        if isinstance(item, Group):
            if not isinstance(item.value, Name) or item.value.id not in self.known:
                raise _BeyondError
            return self.known[item.value.id]
        return self.size(item.value)

    def options(self, dtype: Expr | None) -> str:
        first = next((self.tensors[n] for n in self.relation.inputs if not self.tensors[n].optional), None)
        if first is None:
            raise _BeyondError
        if dtype is None:
            if self.relation.inputs[0] != next(n for n, t in self.tensors.items() if t is first):
                raise _BeyondError  # the first input decides, and may be absent
            return f"{first.value}.options()"
        return f"{first.value}.options().dtype({self.dtype(dtype)})"

    def dtype(self, node: Expr) -> str:
        match node:
            case Name(name) if name in self.relation.inputs:
                return f"{self.required(name).value}.scalar_type()"
            case Name(name) if name in self.symbols:
                user = next(t for t in self.relation.input_tensors if t.alternatives[0].dtype == Name(name))
                return f"{self.required(user.name).value}.scalar_type()"
            case Name(name) if name in self.dtypes:
                return f"scalar_type({self.dtypes[name]})"
            case Call("dtype", (argument,)):
                return self.dtype(argument)
            case Call("promote", (Name(a), Name(b))) if a in self.relation.inputs and b in self.relation.inputs:
                return f"at::result_type({self.required(a).value}, {self.required(b).value})"
        return self.fixed_dtype(node)

    def required(self, name: str) -> CppTensor:
        tensor = self.tensors[name]
        if tensor.optional:
            raise _BeyondError
        return tensor

    @staticmethod
    def fixed_dtype(node: Expr) -> str:
        if isinstance(node, Name) and node.id in SCALAR_TYPES:
            return f"at::ScalarType::{ENUMERATORS[SCALAR_TYPES[node.id]]}"
        raise _BeyondError

    def condition(self, node: Expr) -> str:
        """A condition that is known when a call is made: the presence of inputs, attrs."""
        match node:
            case Name(name) if name in self.relation.inputs:
                tensor = self.tensors[name]
                return tensor.present if tensor.optional else "true"
            case Name(name) if name in self.attrs:
                return f"({self.attrs[name]} != 0)"
            case Unary("not", operand):
                return f"!{self.condition(operand)}"
            case Binary(("is" | "is not") as operator, Name(name), Literal(None)) if name in self.relation.inputs:
                return f"{'!' if operator == 'is' else ''}{self.condition(Name(name))}"
            case Binary(("and" | "or") as operator, left, right):
                return f"({self.condition(left)} {'&&' if operator == 'and' else '||'} {self.condition(right)})"
            case Binary(operator, Name(name), Literal(int() as value)) if operator in _COMPARE and name in self.attrs:
                return f"({self.attrs[name]} {operator} {int(value)})"
        raise _BeyondError

    def size(self, node: Expr) -> str:
        """An expression of type ``c10::SymInt``."""
        match node:
            case Literal(bool() | int() as value):
                return f"c10::SymInt({int(value)})"
            case Name(name) if name in self.attrs:
                return f"c10::SymInt({self.attrs[name]})"
            case Name(name) if name in self.known:
                return self.known[name]
            case Unary("-", operand):
                return f"(-{self.size(operand)})"
            case Binary(("+" | "-" | "*") as operator, left, right):
                return f"({self.size(left)} {operator} {self.size(right)})"
            case Binary(("//" | "%") as operator, left, right):
                return f"{_DIVISIONS[operator]}({self.size(left)}, {self.size(right)})"
            case Call("ceildiv", (a, b)):
                return f"ceil_divide({self.size(a)}, {self.size(b)})"
            case Call("rank", (Name(name),)) if name in self.relation.inputs:
                return f"c10::SymInt({self.required(name).value}.dim())"
            case Call("numel", (Name(name),)) if name in self.relation.inputs:
                return f"{self.required(name).value}.sym_numel()"
            case Conditional(then, condition, otherwise):
                return f"({self.condition(condition)} ? {self.size(then)} : {self.size(otherwise)})"
        raise _BeyondError
