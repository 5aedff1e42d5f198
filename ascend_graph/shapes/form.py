"""The typed form of a shape relation: what all back ends are made from. No torch.

A relation is a text whose names mean something only for one operator. :func:`ascend_graph.shapes.lowering.lower` settles
that once, for a list of inputs and the kinds of the attrs, and gives a :class:`Form`: steps to be taken in order, then
outputs. Python's closures (:mod:`ascend_graph.shapes.compiler`), the eager C++ program, the generated C++ and GE's
``InferShape`` translate it node by node and decide nothing themselves:

* **Numbers** are integers of at most 63 bits and a sign. What leaves that range *refuses*, and so does ``//``, ``%`` and
  ``ceildiv`` by 0. Division rounds down and ``%`` has the divisor's sign, as in Python; ``ceildiv`` rounds up. A bool is 0
  or 1 in arithmetic, but no size.
* **Refusing** propagates: an expression refuses if anything that it evaluates does, and a relation refuses the call.
  ``and``, ``or`` and ``CHOICE`` evaluate only what decides, from left to right, so that ``n == 0 or m // n > 1`` is safe.
* **Names without a value** refuse when they are evaluated, not before: a dimension given only by an input that is absent or
  that has another pattern here, ``rank`` or the dtype of an absent input, ``...`` that no input has.
* **Binding**: the first pattern gives a dimension its value, the others must agree. A size that is an expression is compared
  after all clauses. Several ``...`` broadcast: sizes from the right, of which all that are not 1 must be equal.
* **Sizes that are not known yet** (GE's -1) make numbers unknown, and a condition on an unknown number may hold or not. Where
  a back end meets one it follows both, and answers what all ways that do not refuse have in common; it refuses where all do.
  An unknown rank (-2) is in the same way each rank that the pattern allows.
* **Sizes of outputs** are at least 0, or the call is refused.
* **Dtypes**: ``PROMOTE`` is ``torch.result_type`` (:meth:`ascend_graph.shapes.dtypes.DtypeSystem.promote`); dtypes
  without a common one refuse.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass, field

from ascend_graph.shapes.syntax import Expr


class Kind(enum.Enum):
    """What an expression is, and how the values of an attr are read."""

    NUMBER = "integer"
    BOOL = "bool"
    FLOAT = "float"
    TEXT = "text"
    SIZES = "list of integers"
    DTYPE = "dtype"
    #: An attr that is None, for certain.
    NONE = "None"
    #: A list of something else, of which only the length is read.
    LIST = "list"
    #: An attr of a kind that no relation can read.
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class AttrKind:
    """How an attr is read."""

    kind: Kind
    #: Whether it may be None.
    optional: bool = False
    #: Whether it may also name a dtype by its number.
    names_dtype: bool = False


class Op(enum.Enum):
    """What a node computes from its ``args`` and its ``value``; a name stands for that name's value."""

    # Of any kind
    CHOICE = enum.auto()  # args[1] if args[0] holds, else args[2]
    REFUSED = enum.auto()  # refuses: `value` is what is refused and what it is not; args may give what it is

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
class Node:
    """One operation; :class:`Op` says which."""

    op: Op
    kind: Kind
    args: tuple[Node, ...] = ()
    value: int | bool | str | tuple[str, ...] | None = None
    #: What the relation says, for messages.
    shown: Expr | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return self.op.name if self.shown is None else str(self.shown)


@dataclass(frozen=True, slots=True)
class Bind:
    """One item of an input's pattern: what its size, or its sizes, must be."""

    #: ``dimension`` and ``group`` bind a name; ``size`` and ``sizes`` are compared with a node; ``later`` is kept under
    #: the name for an :class:`Agree`; ``ellipsis``; ``any``. In a list of tensors ``element`` and ``elements`` bind what
    #: differs from tensor to tensor.
    what: str
    name: str = ""
    node: Node | None = None
    #: The axis, or the axes, where the item is; a list.
    axes: Node | None = None
    shown: str = ""

    @property
    def many(self) -> bool:
        """Whether it stands for any number of dimensions."""
        return self.what in ("group", "sizes", "ellipsis", "elements")


@dataclass(frozen=True, slots=True)
class Pattern:
    """The dimensions of an input; ``None`` as items is any shape."""

    condition: Node | None
    items: tuple[Bind, ...] | None
    shown: str = ""

    @property
    def placed(self) -> tuple[Bind, ...]:
        """The items at an axis."""
        return tuple(item for item in self.items or () if item.axes is not None)

    @property
    def ordered(self) -> tuple[Bind, ...]:
        """The others, in order."""
        return tuple(item for item in self.items or () if item.axes is None)


@dataclass(frozen=True, slots=True)
class Match:
    """Matches an input, if it is present, with the first pattern whose condition holds."""

    input: str
    patterns: tuple[Pattern, ...]
    #: Of a list of tensors, each of which is matched: the name of its index.
    index: str | None = None


@dataclass(frozen=True, slots=True)
class CheckDtype:
    """Demands that an input, if present, has one of some dtypes."""

    input: str
    allowed: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class SameDtype:
    """Demands that those of the inputs that are present have one dtype."""

    inputs: tuple[str, ...]
    symbol: str


@dataclass(frozen=True, slots=True)
class Define:
    """Gives a name the value of a node."""

    name: str
    node: Node


@dataclass(frozen=True, slots=True)
class Demand:
    """Demands that a condition holds."""

    condition: Node
    shown: str


@dataclass(frozen=True, slots=True)
class Agree:
    """Demands that the size which a pattern kept under a name, if it did, is a number."""

    name: str
    node: Node
    shown: str


Step = Match | CheckDtype | SameDtype | Define | Demand | Agree


@dataclass(frozen=True, slots=True)
class Piece:
    """One item of an output's shape: a number, or a list of them; with ``axes`` its place."""

    node: Node
    axes: Node | None = None


@dataclass(frozen=True, slots=True)
class Leaf:
    """One alternative of an output."""

    condition: Node | None
    #: ``fresh``, ``like``, ``itself``, ``absent``, or ``number`` with that as its only piece.
    what: str
    pieces: tuple[Piece, ...] = ()
    #: The input of ``like`` and ``itself``.
    input: str = ""
    #: ``None``: that of the input.
    dtype: Node | None = None
    shown: str = ""
    #: Which tensor of the list that the input is.
    element: int | None = None


@dataclass(frozen=True, slots=True)
class Output:
    """An output: alternatives, of which the last has no condition."""

    name: str
    leaves: tuple[Leaf, ...]
    #: Of a list of tensors, the name of its index, and how many there are: without a count as many as in the input lists.
    index: str | None = None
    count: Node | None = None


@dataclass(frozen=True, slots=True)
class Form:
    """A relation for one operator; see the module."""

    inputs: tuple[str, ...]
    steps: tuple[Step, ...]
    outputs: tuple[Output, ...]

    @property
    def nodes(self) -> Iterator[Node]:
        """Every node, those that occur twice twice."""
        todo: list[Node | None] = []
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


def below(node: Node) -> Iterator[Node]:
    """The node and everything below it."""
    todo = [node]
    while todo:
        node = todo.pop()
        yield node
        todo += node.args
