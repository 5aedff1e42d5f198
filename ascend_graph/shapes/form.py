"""Typed form of a shape relation: the input of all back ends. No torch.

The names of a relation mean something only for one operator. :func:`ascend_graph.shapes.lowering.lower` resolves them
once, for a list of inputs and the kinds of the attrs, and gives a :class:`Form`: steps in order, then outputs. Python's
closures (:mod:`ascend_graph.shapes.backends.compiler`), the eager C++ program, the generated C++ and GE's
``InferShape`` translate it node by node and decide nothing themselves:

* **Numbers** are integers of at most 63 bits and a sign. An operation that leaves that range *refuses*, and so do
  ``//``, ``%`` and ``ceildiv`` by 0. Division rounds down and ``%`` has the divisor's sign, as in Python; ``ceildiv``
  rounds up. A bool is 0 or 1 in arithmetic, but it is not a size.
* **Refusing** propagates: an expression refuses if any evaluated part does, and a relation refuses the call. ``and``,
  ``or`` and ``CHOICE`` evaluate only the deciding parts, from left to right: ``n == 0 or m // n > 1`` is safe.
* **Names without a value** refuse when they are evaluated, not before. Such names are a dimension given only by an
  absent input or by another pattern, ``rank`` or the dtype of an absent input, and ``...`` without an input that has
  it.
* **Binding**: the first pattern gives a dimension its value, the others must agree. A size that is an expression is
  compared after all clauses. Several ``...`` broadcast from the right: sizes other than 1 must be equal.
* **Sizes that are not known yet** (GE's -1) make numbers unknown, and a condition on an unknown number may hold or not.
  A back end then follows both branches, and answers what all branches without a refusal have in common. It refuses if
  all branches do. An unknown rank (-2) stands, in the same way, for each rank that the pattern allows.
* **Sizes of outputs** are at least 0, or the relation refuses the call.
* **Dtypes**: ``PROMOTE`` is ``torch.result_type`` (:meth:`ascend_graph.shapes.dtypes.DtypeSystem.promote`); dtypes
  without a common one refuse.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass, field

from ascend_graph.shapes.syntax import Expr


class ExpressionKind(enum.Enum):
    """Kind of an expression, and of the value that is read from an attr."""

    NUMBER = "integer"
    BOOL = "bool"
    FLOAT = "float"
    TEXT = "text"
    SIZES = "list of integers"
    DTYPE = "dtype"
    #: An attr that is certainly None.
    NONE = "None"
    #: A list of something else; only its length can be read.
    LIST = "list"
    #: An attr of a kind that relations cannot read.
    OTHER = "other"

    __hash__ = object.__hash__  # that of Enum, of the name, is most of looking a program up


@dataclass(frozen=True, slots=True)
class AttrKind:
    """Kind of an attr, and the other ways to read it."""

    kind: ExpressionKind
    #: True if it may be None.
    optional: bool = False
    #: True if its number may also name a dtype.
    names_dtype: bool = False

    def __hash__(self) -> int:
        return hash(self.kind)


class Op(enum.Enum):
    """Operation of a node on its ``args`` and its ``value``; a name stands for that name's value."""

    # Of any kind
    CHOICE = enum.auto()  # args[1] if args[0] holds, else args[2]
    REFUSED = enum.auto()  # refuses: `value` is what is refused and what is expected; args may give what it is

    # Numbers
    INTEGER = enum.auto()  # the integer `value`
    DIMENSION = enum.auto()  # a dimension, or a definition that is a number
    ATTR = enum.auto()  # an attr: number, bool, float, text, list or dtype by kind
    ITEM = enum.auto()  # element args[1] of the list args[0]; negative counts from the end
    NEGATE = enum.auto()
    ADD = enum.auto()
    SUBTRACT = enum.auto()
    MULTIPLY = enum.auto()
    FLOOR_DIVIDE = enum.auto()
    MODULO = enum.auto()
    CEIL_DIVIDE = enum.auto()
    MINIMUM = enum.auto()
    MAXIMUM = enum.auto()
    RANK = enum.auto()  # of the input `value`
    ELEMENTS = enum.auto()
    LENGTH = enum.auto()  # of the list args[0]
    PRODUCT = enum.auto()
    SUM = enum.auto()
    SMALLEST = enum.auto()  # of a list that is not empty
    LARGEST = enum.auto()
    POSITION = enum.auto()  # the first of the list args[0] that is args[1]
    FROM_CONDITION = enum.auto()  # 1 or 0
    INDEX = enum.auto()  # that of the tensor in the list outputs with the index `value`

    # Lists of numbers
    GROUP = enum.auto()  # a group, or a definition that is a list
    ELLIPSIS = enum.auto()
    ITEMS = enum.auto()  # the numbers args
    ONES = enum.auto()  # as many as args[0] has
    RANGE = enum.auto()  # from args[0] upwards, as many as args[1] has
    RESHAPE = enum.auto()  # args[1], where -1 is what is left of the elements of args[0]
    PART = enum.auto()  # of the list args[0] those from args[1] on, up to args[2]; negative counts from the end
    ELEMENT = enum.auto()  # the list args[1] of the lists args[0]
    OTHER_AXES = enum.auto()  # as axes: those that no other item takes

    # Conditions
    ALWAYS = enum.auto()  # `value`
    PRESENT = enum.auto()  # whether the input `value` is there
    GIVEN = enum.auto()  # whether the attr `value` is not None
    TRUTH = enum.auto()  # a number that is not 0
    FILLED = enum.auto()  # a text or a list that is not empty
    COMPARE = enum.auto()  # args by the operator `value`; both numbers, texts, lists or dtypes
    NOT = enum.auto()
    AND = enum.auto()
    OR = enum.auto()

    # Of kinds that are only compared
    TEXT = enum.auto()
    NOTHING = enum.auto()  # None

    # Dtypes
    DTYPE = enum.auto()  # the one named `value`
    DTYPE_OF = enum.auto()  # that of the first of the inputs `value` that is present; of a list its first or args[0]
    DTYPE_ATTR = enum.auto()  # the one that the attr `value` names
    PROMOTE = enum.auto()  # of args: TENSOR, SCALAR or dtypes
    TENSOR = enum.auto()  # an operand of PROMOTE: the input `value`
    SCALAR = enum.auto()  # an operand of PROMOTE: the number that the attr args[0] is
    FLOATING = enum.auto()
    INTEGRAL_SUM = enum.auto()
    REAL = enum.auto()


@dataclass(frozen=True, slots=True)
class ExpressionNode:
    """One operation of kind :class:`Op`."""

    op: Op
    kind: ExpressionKind
    args: tuple[ExpressionNode, ...] = ()
    value: int | bool | str | tuple[str, ...] | None = None
    #: The expression in the relation, for messages.
    shown: Expr | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return self.op.name if self.shown is None else str(self.shown)


@dataclass(frozen=True, slots=True)
class Bind:
    """One item of an input's pattern: the constraint on its size or sizes."""

    #: The kind of item. ``dimension`` and ``group`` bind a name; ``size`` and ``sizes`` are compared with a node;
    #: ``later`` is kept under the name for an :class:`Agree`; ``ellipsis``; ``any``. In a list of tensors, ``element``
    #: and ``elements`` bind a dimension or group that differs from tensor to tensor.
    what: str
    name: str = ""
    node: ExpressionNode | None = None
    #: The axis or axes of the item, as a list.
    axes: ExpressionNode | None = None
    shown: str = ""

    @property
    def many(self) -> bool:
        """True if the item stands for any number of dimensions."""
        return self.what in ("group", "sizes", "ellipsis", "elements")


@dataclass(frozen=True, slots=True)
class InputPattern:
    """The dimensions of an input; ``items`` is ``None`` for any shape."""

    condition: ExpressionNode | None
    items: tuple[Bind, ...] | None
    shown: str = ""

    @property
    def placed(self) -> tuple[Bind, ...]:
        """Items with an axis."""
        return tuple(item for item in self.items or () if item.axes is not None)

    @property
    def ordered(self) -> tuple[Bind, ...]:
        """Items without an axis, in order."""
        return tuple(item for item in self.items or () if item.axes is None)


@dataclass(frozen=True, slots=True)
class Match:
    """Step that matches a present input with the first pattern whose condition holds."""

    input: str
    patterns: tuple[InputPattern, ...]
    #: The name of the index of a list of tensors, each of which is matched.
    index: str | None = None


@dataclass(frozen=True, slots=True)
class CheckDtype:
    """Step that demands one of some dtypes from a present input."""

    input: str
    allowed: tuple[ExpressionNode, ...]


@dataclass(frozen=True, slots=True)
class SameDtype:
    """Step that demands one common dtype from the present inputs among ``inputs``."""

    inputs: tuple[str, ...]
    symbol: str


@dataclass(frozen=True, slots=True)
class Define:
    """Step that gives a name the value of a node."""

    name: str
    node: ExpressionNode


@dataclass(frozen=True, slots=True)
class Demand:
    """Step that demands that a condition holds."""

    condition: ExpressionNode
    shown: str


@dataclass(frozen=True, slots=True)
class Agree:
    """Step that demands that a size kept by a pattern, if any, equals a number."""

    name: str
    node: ExpressionNode
    shown: str


Step = Match | CheckDtype | SameDtype | Define | Demand | Agree


@dataclass(frozen=True, slots=True)
class ShapeItem:
    """One item of an output's shape: a number or a list of numbers; ``axes`` gives its place."""

    node: ExpressionNode
    axes: ExpressionNode | None = None


@dataclass(frozen=True, slots=True)
class Leaf:
    """One alternative of an output."""

    condition: ExpressionNode | None
    #: The kind of output: ``fresh``, ``like``, ``itself``, ``absent``, or ``number`` with that as its only piece.
    what: str
    pieces: tuple[ShapeItem, ...] = ()
    #: The input of ``like`` and ``itself``.
    input: str = ""
    #: The dtype; ``None`` means that of the input.
    dtype: ExpressionNode | None = None
    shown: str = ""
    #: The index of the tensor if the input is a list.
    element: int | None = None


@dataclass(frozen=True, slots=True)
class OutputForm:
    """An output as alternatives; the last has no condition."""

    name: str
    leaves: tuple[Leaf, ...]
    #: The name of the index of a list of tensors, and its length; without ``count``, that of the input lists.
    index: str | None = None
    count: ExpressionNode | None = None


@dataclass(frozen=True, slots=True)
class Form:
    """A relation for one operator; the module describes it."""

    inputs: tuple[str, ...]
    steps: tuple[Step, ...]
    outputs: tuple[OutputForm, ...]

    @property
    def nodes(self) -> Iterator[ExpressionNode]:
        """All nodes; a node that occurs twice comes twice."""
        todo: list[ExpressionNode | None] = []
        for step in self.steps:
            match step:
                case Match(patterns=patterns):
                    for pattern in patterns:
                        todo.append(pattern.condition)
                        for item in pattern.items or ():
                            todo += (item.node, item.axes)
                case CheckDtype(_, allowed):
                    todo += allowed
                case Define(_, node) | Demand(node, _) | Agree(_, node, _):
                    todo.append(node)
        for output in self.outputs:
            todo.append(output.count)
            for leaf in output.leaves:
                todo += (leaf.condition, leaf.dtype)
                for piece in leaf.pieces:
                    todo += (piece.node, piece.axes)
        for root in todo:
            if root is not None:
                yield from below(root)


def below(node: ExpressionNode) -> Iterator[ExpressionNode]:
    """Yield the node and all nodes under it."""
    todo = [node]
    while todo:
        node = todo.pop()
        yield node
        todo += node.args
