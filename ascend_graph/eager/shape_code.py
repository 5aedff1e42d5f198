"""Shape relation → the program that the C++ kernel allocates outputs with (csrc/eager/shape_program.h). No torch.

The program covers what eager calls meet every day: patterns of dimensions, groups and ``...``, integer arithmetic,
conditions on sizes and on the presence of inputs, ``like``, and the usual dtype rules. For a relation with more,
:func:`encode` gives ``None``; the kernel then asks the operator's meta function, as it does when a program finds that
a call does not fit.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ascend_graph.shapes import Relation
from ascend_graph.shapes.dtypes import CATEGORY
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
    Tensor,
    Tuple,
    Unary,
)

# The numbers of the enumerations in csrc/eager/shape_program.h.
_Item = enum.IntEnum("_Item", "DIMENSION LITERAL ANY ELLIPSIS GROUP ARGUMENT EXPRESSION", start=0)
_Node = enum.IntEnum(
    "_Node",
    "INTEGER SLOT ARGUMENT PRESENT RANK ELEMENTS NEGATE NOT "
    "ADD SUBTRACT MULTIPLY FLOOR_DIVIDE MODULO CEIL_DIVIDE MINIMUM MAXIMUM "
    "EQUAL NOT_EQUAL LESS LESS_EQUAL GREATER GREATER_EQUAL AND OR CONDITIONAL",
    start=0,
)
_Dtype = enum.IntEnum("_Dtype", "FIRST_PRESENT FIXED ARGUMENT PROMOTE", start=0)
_Output = enum.IntEnum("_Output", "FRESH LIKE ABSENT", start=0)

_BINARY = {
    "+": _Node.ADD,
    "-": _Node.SUBTRACT,
    "*": _Node.MULTIPLY,
    "//": _Node.FLOOR_DIVIDE,
    "%": _Node.MODULO,
    "==": _Node.EQUAL,
    "!=": _Node.NOT_EQUAL,
    "<": _Node.LESS,
    "<=": _Node.LESS_EQUAL,
    ">": _Node.GREATER,
    ">=": _Node.GREATER_EQUAL,
    "and": _Node.AND,
    "or": _Node.OR,
}
_FUNCTIONS = {"ceildiv": _Node.CEIL_DIVIDE, "min": _Node.MINIMUM, "max": _Node.MAXIMUM}
_MAX_SLOTS = 64

#: The numbers of c10::ScalarType for the language's dtypes that torch has.
SCALAR_TYPES = {
    name: number
    for number, name in enumerate(
        (
            *("uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"),
            *("complex32", "complex64", "complex128", "bool"),
        )
    )
} | {
    "bfloat16": 15,
    "float8_e5m2": 23,
    "float8_e4m3fn": 24,
    "uint16": 27,
    "uint32": 28,
    "uint64": 29,
    "float8_e8m0fnu": 44,
}

Items = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class InputCode:
    """An input's pattern; ``items`` is ``None`` where any shape fits."""

    argument: int
    items: Items | None


@dataclass(frozen=True, slots=True)
class CheckCode:
    """Arguments of one dtype, or an argument of some dtypes."""

    same: tuple[int, ...] = ()
    argument: int = 0
    among: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class DtypeCode:
    """How an output's dtype is found."""

    kind: int
    values: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class BranchCode:
    """One alternative of an output; ``condition`` is a node, or -1."""

    condition: int
    kind: int
    like: int
    items: Items
    dtype: DtypeCode


@dataclass(frozen=True, slots=True)
class ShapeCode:
    """A relation as numbers, for ``read_program`` in csrc/eager/kernel.cpp."""

    #: How many dimensions and groups have a name.
    slots: int
    inputs: tuple[InputCode, ...]
    checks: tuple[CheckCode, ...]
    clauses: tuple[tuple[int, int], ...]
    nodes: tuple[tuple[int, int, int, int], ...]
    outputs: tuple[tuple[BranchCode, ...], ...]


class _BeyondError(Exception):
    """The relation has something that the program does not."""


def encode(
    relation: Relation, tensors: Mapping[str, int], attrs: Mapping[str, int], dtypes: frozenset[str]
) -> ShapeCode | None:
    """The program of a relation, or ``None`` where only the meta function can evaluate it.

    Args:
        relation: The relation, of fresh outputs only.
        tensors: The position in the schema of each single-tensor argument, by the relation's name for it.
        attrs: The position of each integer, boolean or dtype argument.
        dtypes: Which of ``attrs`` are dtypes.
    """
    try:
        return _Encoder(relation, tensors, attrs, dtypes).code()
    except _BeyondError:
        return None


class _Encoder:
    def __init__(
        self, relation: Relation, tensors: Mapping[str, int], attrs: Mapping[str, int], dtypes: frozenset[str]
    ) -> None:
        self.relation = relation
        self.tensors = tensors
        self.attrs = attrs
        self.dtypes = dtypes
        self.slots: dict[str, int] = {}
        self.nodes: list[tuple[int, int, int, int]] = []
        self.symbols = {name: self.symbol_users(name) for name in dtype_symbols(relation) - attrs.keys()}

    def code(self) -> ShapeCode:
        relation = self.relation
        if any(name not in self.tensors for name in relation.inputs):
            raise _BeyondError  # a list of tensors
        inputs = tuple([self.input(tensor) for tensor in relation.input_tensors])
        clauses = []
        for clause in relation.clauses:
            if isinstance(clause, Definition):
                node = self.node(clause.value)
                clauses.append((self.slot(clause.name), node))
            else:
                clauses.append((-1, self.node(clause)))
        checks = [self.dtype_check(tensor) for tensor in relation.input_tensors]
        same = [CheckCode(same=users) for users in self.symbols.values() if len(users) > 1]
        outputs = tuple([self.output(tensor) for tensor in relation.output_tensors])
        if len(self.slots) > _MAX_SLOTS:
            raise _BeyondError
        all_checks = (*same, *[c for c in checks if c is not None])
        return ShapeCode(len(self.slots), inputs, all_checks, tuple(clauses), tuple(self.nodes), outputs)

    def symbol_users(self, symbol: str) -> tuple[int, ...]:
        return tuple(
            self.tensors[t.name]
            for t in self.relation.input_tensors
            if t.name in self.tensors and any(a.dtype == Name(symbol) for a in t.alternatives)
        )

    def slot(self, name: str) -> int:
        return self.slots.setdefault(name, len(self.slots))

    # ---------------------------------------------------------------------------------------------------------- inputs

    def input(self, tensor: Tensor) -> InputCode:
        if tensor.index is not None or len(tensor.alternatives) != 1:
            raise _BeyondError
        shape = tensor.alternatives[0].shape
        argument = self.tensors[tensor.name]
        if not isinstance(shape, Dims):
            return InputCode(argument, None)
        return InputCode(argument, tuple([self.pattern_item(item) for item in shape.items]))

    def pattern_item(self, item: Dim) -> tuple[int, int]:
        if isinstance(item, Ellipsis_):
            return _Item.ELLIPSIS, 0
        if item.axis is not None:
            raise _BeyondError
        match item.value:
            case None:
                return _Item.ANY, 0
            case Literal(int() as value):
                return _Item.LITERAL, value
            case Name(name) if name in self.attrs:
                if isinstance(item, Group):
                    raise _BeyondError
                return _Item.ARGUMENT, self.attrs[name]
            case Name(name) if name not in self.definitions:
                return (_Item.GROUP if isinstance(item, Group) else _Item.DIMENSION), self.slot(name)
        raise _BeyondError

    @property
    def definitions(self) -> set[str]:
        return {c.name for c in self.relation.clauses if isinstance(c, Definition)}

    def dtype_check(self, tensor: Tensor) -> CheckCode | None:
        dtype = tensor.alternatives[0].dtype
        if dtype is None or (isinstance(dtype, Name) and dtype.id in self.symbols):
            return None
        options = dtype.items if isinstance(dtype, Tuple) else (dtype,)
        return CheckCode(argument=self.tensors[tensor.name], among=tuple([self.fixed_dtype(o) for o in options]))

    @staticmethod
    def fixed_dtype(node: Expr) -> int:
        if isinstance(node, Name) and node.id in SCALAR_TYPES:
            return SCALAR_TYPES[node.id]
        raise _BeyondError

    # --------------------------------------------------------------------------------------------------------- outputs

    def output(self, tensor: Tensor) -> tuple[BranchCode, ...]:
        if tensor.index is not None:
            raise _BeyondError
        shared = next((a.dtype for a in reversed(tensor.alternatives) if a.dtype is not None), None)
        branches = []
        for alternative in tensor.alternatives:
            condition = -1 if alternative.condition is None else self.node(alternative.condition)
            like = 0
            items: Items = ()
            default: tuple[int, ...]
            match alternative.shape:
                case Absent():
                    branches.append(BranchCode(condition, _Output.ABSENT, 0, (), DtypeCode(_Dtype.FIXED, (0,))))
                    continue
                case Like(Name(name)):
                    kind, like = _Output.LIKE, self.tensors[name]
                    default = (like,)
                case Dims(dims):
                    kind, items = _Output.FRESH, tuple([self.output_item(item) for item in dims])
                    default = tuple(self.tensors[name] for name in self.relation.inputs)
                case _:
                    raise _BeyondError
            # A dtype at the end holds for all shapes in brackets; `like x` brings that of x.
            dtype = alternative.dtype or (shared if kind is _Output.FRESH else None)
            code = DtypeCode(_Dtype.FIRST_PRESENT, default) if dtype is None else self.dtype(dtype)
            branches.append(BranchCode(condition, kind, like, items, code))
        return tuple(branches)

    def output_item(self, item: Dim) -> tuple[int, int]:
        if isinstance(item, Ellipsis_):
            return _Item.ELLIPSIS, 0
        if item.axis is not None or item.value is None:
            raise _BeyondError
        if isinstance(item, Group):
            if not (isinstance(item.value, Name) and item.value.id in self.slots):
                raise _BeyondError
            return _Item.GROUP, self.slots[item.value.id]
        return _Item.EXPRESSION, self.node(item.value)

    def dtype(self, node: Expr) -> DtypeCode:
        match node:
            case Name(name) if name in self.tensors and name in self.relation.inputs:
                return DtypeCode(_Dtype.FIRST_PRESENT, (self.tensors[name],))
            case Name(name) if name in self.symbols:
                return DtypeCode(_Dtype.FIRST_PRESENT, self.symbols[name])
            case Name(name) if name in self.dtypes:
                return DtypeCode(_Dtype.ARGUMENT, (self.attrs[name],))
            case Call("dtype", (argument,)):
                return self.dtype(argument)
            case Call("promote", arguments):
                return DtypeCode(_Dtype.PROMOTE, tuple([self.single(a) for a in arguments]))
        return DtypeCode(_Dtype.FIXED, (self.fixed_dtype(node),))

    def single(self, node: Expr) -> int:
        if isinstance(node, Name) and node.id in self.relation.inputs:
            return self.tensors[node.id]
        raise _BeyondError

    # ----------------------------------------------------------------------------------------------------- expressions

    def add(self, kind: _Node, a: int = 0, b: int = 0, c: int = 0) -> int:
        self.nodes.append((kind, a, b, c))
        return len(self.nodes) - 1

    def node(self, node: Expr) -> int:
        """The number of the node that computes an expression."""
        match node:
            case Literal(bool() | int() as value):
                return self.add(_Node.INTEGER, int(value))
            case Name(name) if name in self.relation.inputs:
                return self.add(_Node.PRESENT, self.tensors[name])
            case Name(name) if name in self.attrs and name not in self.dtypes:
                return self.add(_Node.ARGUMENT, self.attrs[name])
            case Name(name) if name in self.slots and name not in CATEGORY:
                return self.add(_Node.SLOT, self.slots[name])
            case Unary(operator, operand):
                return self.add(_Node.NEGATE if operator == "-" else _Node.NOT, self.node(operand))
            case Binary(("is" | "is not") as operator, Name(name), Literal(None)) if name in self.relation.inputs:
                present = self.add(_Node.PRESENT, self.tensors[name])
                return present if operator == "is not" else self.add(_Node.NOT, present)
            case Binary(operator, left, right) if operator in _BINARY:
                return self.add(_BINARY[operator], self.node(left), self.node(right))
            case Conditional(then, condition, otherwise):
                return self.add(_Node.CONDITIONAL, self.node(condition), self.node(then), self.node(otherwise))
            case Call("rank" | "numel", (Name(name),)) if name in self.relation.inputs:
                kind = _Node.RANK if node.function == "rank" else _Node.ELEMENTS
                return self.add(kind, self.tensors[name])
            case Call(("ceildiv" | "min" | "max") as function, arguments) if len(arguments) > 1:
                return self.fold(_FUNCTIONS[function], arguments)
        raise _BeyondError

    def fold(self, kind: _Node, arguments: Sequence[Expr]) -> int:
        result = self.node(arguments[0])
        for argument in arguments[1:]:
            result = self.add(kind, result, self.node(argument))
        return result
