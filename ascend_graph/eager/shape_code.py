"""Encoding of a shape relation as the program by which the C++ kernel allocates outputs. Imports no torch.

The program (csrc/eager/shape_program.h) covers the usual eager calls: patterns of dimensions, groups and ``...``,
integer arithmetic, conditions on sizes and on the presence of inputs, ``like``, and the usual dtype rules. It is the
relation's form (:mod:`ascend_graph.shapes.form`) as numbers. For a relation with more, :func:`encode` returns ``None``.
The kernel then calls the operator's meta function, as it does when a program finds that a call does not fit.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass

from ascend_graph.binding.generated_schema import AclnnArgumentKind
from ascend_graph.shapes import Relation, RelationError, form
from ascend_graph.shapes.form import AttrKind, ExpressionKind, ExpressionNode, Op

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

#: Operations with a node of the same operands.
_SAME = {
    op: _Node[op.name]
    for op in (
        *(Op.NEGATE, Op.NOT, Op.ADD, Op.SUBTRACT, Op.MULTIPLY, Op.FLOOR_DIVIDE, Op.MODULO, Op.CEIL_DIVIDE),
        *(Op.MINIMUM, Op.MAXIMUM, Op.AND, Op.OR),
    )
}
_COMPARE = {
    "==": _Node.EQUAL,
    "!=": _Node.NOT_EQUAL,
    "<": _Node.LESS,
    "<=": _Node.LESS_EQUAL,
    ">": _Node.GREATER,
    ">=": _Node.GREATER_EQUAL,
}
_MAX_SLOTS = 64

#: Numbers of c10::ScalarType for the language's dtypes that torch has.
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

_KINDS = {
    AclnnArgumentKind.INT: ExpressionKind.NUMBER,
    AclnnArgumentKind.BOOL: ExpressionKind.BOOL,
    AclnnArgumentKind.FLOAT: ExpressionKind.FLOAT,
    AclnnArgumentKind.STRING: ExpressionKind.TEXT,
    AclnnArgumentKind.INTS: ExpressionKind.SIZES,
    AclnnArgumentKind.DTYPE: ExpressionKind.DTYPE,
}


def attr_kind(parameter: AclnnArgumentKind, optional: bool) -> AttrKind:
    """Return the kind of an argument other than a tensor, as a relation reads it."""
    return AttrKind(_KINDS.get(parameter, ExpressionKind.OTHER), optional)


Items = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class InputCode:
    """Pattern of an input; ``items`` is ``None`` if any shape fits."""

    argument: int
    items: Items | None


@dataclass(frozen=True, slots=True)
class CheckCode:
    """Dtype check: arguments of one dtype, or an argument with one of some dtypes."""

    same: tuple[int, ...] = ()
    argument: int = 0
    among: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class DtypeCode:
    """Rule for an output's dtype."""

    kind: int
    values: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class BranchCode:
    """Alternative of an output; ``condition`` is a node, or -1."""

    condition: int
    kind: int
    like: int
    items: Items
    dtype: DtypeCode


@dataclass(frozen=True, slots=True)
class ShapeCode:
    """Relation as numbers, for ``read_program`` in csrc/eager/kernel.cpp."""

    #: Number of named dimensions and groups.
    slots: int
    inputs: tuple[InputCode, ...]
    checks: tuple[CheckCode, ...]
    clauses: tuple[tuple[int, int], ...]
    nodes: tuple[tuple[int, int, int, int], ...]
    outputs: tuple[tuple[BranchCode, ...], ...]


class _BeyondError(Exception):
    """Error of a relation that the program cannot express."""


def encode(
    relation: Relation, tensors: Mapping[str, int], attrs: Mapping[str, tuple[int, AttrKind]]
) -> ShapeCode | None:
    """Encode a relation as a program, or return ``None`` if only the meta function can evaluate it.

    Args:
        relation: The relation, of fresh outputs only.
        tensors: The position in the schema of each single-tensor argument, by the relation's name for it.
        attrs: The position and the kind of each other argument.
    """
    if any(name not in tensors for name in relation.inputs):
        return None  # a list of tensors
    try:
        lowered = relation.lowered({name: kind for name, (_, kind) in attrs.items()})
        return _Encoder(lowered, tensors, {name: position for name, (position, _) in attrs.items()}).code()
    except (_BeyondError, RelationError):
        return None


class _Encoder:
    def __init__(self, lowered: form.Form, tensors: Mapping[str, int], attrs: Mapping[str, int]) -> None:
        self.form, self.tensors, self.attrs = lowered, tensors, attrs
        self.slots: dict[str, int] = {}
        self.nodes: list[tuple[int, int, int, int]] = []
        self.numbers: dict[ExpressionNode, int] = {}

    def code(self) -> ShapeCode:
        inputs: list[InputCode] = []
        checks: list[CheckCode] = []
        clauses: list[tuple[int, int]] = []
        for step in self.form.steps:
            match step:
                case form.Match(name, (pattern,)):
                    items = None if pattern.items is None else tuple(map(self.pattern_item, pattern.items))
                    inputs.append(InputCode(self.tensors[name], items))
                case form.CheckDtype(name, allowed):
                    among = tuple([self.fixed_dtype(node) for node in allowed])
                    checks.append(CheckCode(argument=self.tensors[name], among=among))
                case form.SameDtype(names, _):
                    if len(names) > 1:
                        checks.append(CheckCode(same=tuple([self.tensors[name] for name in names])))
                case form.Define(name, node) if node.kind is ExpressionKind.NUMBER or node.kind is ExpressionKind.BOOL:
                    number = self.node(node)
                    clauses.append((self.slot(name), number))
                case form.Demand(condition, _):
                    clauses.append((-1, self.node(condition)))
                case _:
                    raise _BeyondError
        outputs = tuple([tuple(map(self.branch, output.leaves)) for output in self.form.outputs])
        if len(self.slots) > _MAX_SLOTS:
            raise _BeyondError
        return ShapeCode(len(self.slots), tuple(inputs), tuple(checks), tuple(clauses), tuple(self.nodes), outputs)

    def slot(self, name: str) -> int:
        return self.slots.setdefault(name, len(self.slots))

    def pattern_item(self, item: form.Bind) -> tuple[int, int]:
        if item.axes is not None:
            raise _BeyondError
        match item.what:
            case "any":
                return _Item.ANY, 0
            case "ellipsis":
                return _Item.ELLIPSIS, 0
            case "group":
                return _Item.GROUP, self.slot(item.name)
            case "dimension":
                return _Item.DIMENSION, self.slot(item.name)
            case "size" if item.node is not None and isinstance(item.node.value, int) and item.node.op is Op.INTEGER:
                return _Item.LITERAL, item.node.value
            case "size" if item.node is not None and item.node.op is Op.ATTR:
                return _Item.ARGUMENT, self.attrs[str(item.node.value)]
        raise _BeyondError

    # --------------------------------------------------------------------------------------------------------- outputs

    def branch(self, leaf: form.Leaf) -> BranchCode:
        condition = -1 if leaf.condition is None else self.node(leaf.condition)
        if leaf.what == "absent":
            return BranchCode(condition, _Output.ABSENT, 0, (), DtypeCode(_Dtype.FIXED, (0,)))
        assert leaf.dtype is not None
        dtype = self.dtype(leaf.dtype)
        if leaf.what == "like":
            return BranchCode(condition, _Output.LIKE, self.tensors[leaf.input], (), dtype)
        if leaf.what != "fresh":
            raise _BeyondError
        return BranchCode(condition, _Output.FRESH, 0, tuple(map(self.output_item, leaf.pieces)), dtype)

    def output_item(self, piece: form.ShapeItem) -> tuple[int, int]:
        if piece.axes is not None:
            raise _BeyondError
        match piece.node.op:
            case Op.ELLIPSIS:
                return _Item.ELLIPSIS, 0
            case Op.GROUP if str(piece.node.value) in self.slots:
                return _Item.GROUP, self.slots[str(piece.node.value)]
        if piece.node.kind is ExpressionKind.SIZES:
            raise _BeyondError
        return _Item.EXPRESSION, self.node(piece.node)

    def dtype(self, node: ExpressionNode) -> DtypeCode:
        match node.op:
            case Op.DTYPE_OF:
                assert isinstance(node.value, tuple)
                return DtypeCode(_Dtype.FIRST_PRESENT, tuple([self.tensors[name] for name in node.value]))
            case Op.DTYPE_ATTR:
                return DtypeCode(_Dtype.ARGUMENT, (self.attrs[str(node.value)],))
            case Op.PROMOTE if all(operand.op is Op.TENSOR for operand in node.args):
                return DtypeCode(_Dtype.PROMOTE, tuple([self.tensors[str(operand.value)] for operand in node.args]))
        return DtypeCode(_Dtype.FIXED, (self.fixed_dtype(node),))

    @staticmethod
    def fixed_dtype(node: ExpressionNode) -> int:
        if node.op is Op.DTYPE and node.value in SCALAR_TYPES:
            return SCALAR_TYPES[str(node.value)]
        raise _BeyondError

    # ----------------------------------------------------------------------------------------------------- expressions

    def add(self, kind: _Node, a: int = 0, b: int = 0, c: int = 0) -> int:
        self.nodes.append((kind, a, b, c))
        return len(self.nodes) - 1

    def node(self, node: ExpressionNode) -> int:
        """Return the number of the node that computes a number or a condition, without duplicates."""
        number = self.numbers.get(node)
        if number is None:
            number = self.numbers[node] = self.new_node(node)
        return number

    def new_node(self, node: ExpressionNode) -> int:
        op, args, value = node.op, node.args, node.value
        if op in _SAME:
            return self.add(_SAME[op], *map(self.node, args))
        match op:
            case Op.INTEGER | Op.ALWAYS:
                assert isinstance(value, int)
                return self.add(_Node.INTEGER, int(value))
            case Op.DIMENSION if str(value) in self.slots:
                return self.add(_Node.SLOT, self.slots[str(value)])
            case Op.ATTR if node.kind in (ExpressionKind.NUMBER, ExpressionKind.BOOL):
                return self.add(_Node.ARGUMENT, self.attrs[str(value)])
            case Op.GIVEN:
                return self.add(_Node.PRESENT, self.attrs[str(value)])
            case Op.PRESENT:
                return self.add(_Node.PRESENT, self.tensors[str(value)])
            case Op.RANK:
                return self.add(_Node.RANK, self.tensors[str(value)])
            case Op.ELEMENTS:
                return self.add(_Node.ELEMENTS, self.tensors[str(value)])
            case Op.CHOICE:
                return self.add(_Node.CONDITIONAL, *map(self.node, args))
            case Op.TRUTH if args[0].kind is not ExpressionKind.FLOAT:
                return self.node(args[0])
            case Op.FROM_CONDITION:  # any number that is not 0 is a condition that holds
                return self.add(_Node.NOT, self.add(_Node.NOT, self.node(args[0])))
            case Op.COMPARE if str(value) in _COMPARE and all(
                a.kind in (ExpressionKind.NUMBER, ExpressionKind.BOOL) for a in args
            ):
                return self.add(_COMPARE[str(value)], *map(self.node, args))
        raise _BeyondError
