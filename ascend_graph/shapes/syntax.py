"""Syntax tree of a shape relation: frozen values, and their canonical text.

Every node prints as text that parses to an equal node. The tree does not give names a meaning: compiling a relation for
an operator does (:mod:`ascend_graph.shapes.backends.program`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, TypeVar

# --------------------------------------------------------------------------------------------------------- expressions


@dataclass(frozen=True, slots=True)
class Literal:
    """An integer, a string, ``True``, ``False`` or ``None``."""

    value: int | str | bool | None

    def __str__(self) -> str:
        if isinstance(self.value, str):
            escaped = self.value.replace("\\", "\\\\").replace('"', '\\"')
            return f'"{escaped}"'
        return str(self.value)


@dataclass(frozen=True, slots=True)
class Name:
    """Name of a dimension, a group of dimensions, an attr, an input, a definition or a dtype, by context."""

    id: str
    #: Offset in the source, for errors.
    at: int = 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Name) and other.id == self.id

    def __hash__(self) -> int:
        return hash(self.id)

    def __str__(self) -> str:
        return self.id


@dataclass(frozen=True, slots=True)
class Index:
    """Element ``name[index]`` of a list attr or a group, or a dimension that differs per list element."""

    name: Name
    index: Expr

    def __str__(self) -> str:
        return f"{self.name}[{self.index}]"


@dataclass(frozen=True, slots=True)
class GroupPart:
    """Part ``name[start:stop]`` of a group or of a list attr; ``None`` is its beginning or its end."""

    name: Name
    start: Expr | None
    stop: Expr | None

    def __str__(self) -> str:
        start, stop = ("" if bound is None else str(bound) for bound in (self.start, self.stop))
        return f"{self.name}[{start}:{stop}]"


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """Call ``function(arguments)``; the language fixes the functions."""

    function: str
    arguments: tuple[Expr, ...]
    at: int = 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FunctionCall) and (other.function, other.arguments) == (self.function, self.arguments)

    def __hash__(self) -> int:
        return hash((self.function, self.arguments))

    def __str__(self) -> str:
        return f"{self.function}({', '.join(map(str, self.arguments))})"


@dataclass(frozen=True, slots=True)
class Unary:
    """Unary operation ``-x`` or ``not x``."""

    operator: str
    operand: Expr

    def __str__(self) -> str:
        space = " " if self.operator == "not" else ""
        return f"{self.operator}{space}{_operand(self.operand, self, tight=True)}"


@dataclass(frozen=True, slots=True)
class Binary:
    """Binary operation: arithmetic, a comparison, ``in``, ``is``, ``is not``, ``and`` or ``or``."""

    operator: str
    left: Expr
    right: Expr

    def __str__(self) -> str:
        return f"{_operand(self.left, self)} {self.operator} {_operand(self.right, self, tight=True)}"


@dataclass(frozen=True, slots=True)
class Conditional:
    """Conditional expression ``then if condition else otherwise``."""

    then: Expr
    condition: Expr
    otherwise: Expr

    def __str__(self) -> str:
        then, condition = _operand(self.then, self, tight=True), _operand(self.condition, self, tight=True)
        return f"{then} if {condition} else {self.otherwise}"


@dataclass(frozen=True, slots=True)
class Tuple:
    """Tuple ``(a, b)``, only at the right of ``in``."""

    items: tuple[Expr, ...]

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.items))}{',' if len(self.items) == 1 else ''})"


Expr = Literal | Name | Index | GroupPart | FunctionCall | Unary | Binary | Conditional | Tuple

#: Binding strength of the operators; a tighter operator has a larger number.
PRECEDENCE = {
    "or": 1,
    "and": 2,
    "not": 3,
    **dict.fromkeys(("==", "!=", "<", "<=", ">", ">=", "in", "not in", "is", "is not"), 4),
    **dict.fromkeys(("+", "-"), 5),
    **dict.fromkeys(("*", "//", "%"), 6),
    "neg": 7,
}


def _strength(node: Expr) -> int:
    if isinstance(node, Conditional):
        return 0
    if isinstance(node, Unary):
        return PRECEDENCE["neg" if node.operator == "-" else "not"]
    return PRECEDENCE[node.operator] if isinstance(node, Binary) else 9


def _operand(child: Expr, parent: Expr, *, tight: bool = False) -> str:
    """Return the child's text, in parentheses if the parent would otherwise split it."""
    loose = _strength(child) < _strength(parent) or (tight and _strength(child) == _strength(parent))
    if isinstance(parent, Unary):
        loose = _strength(child) < _strength(parent)
    # A comparison does not chain, so both of its sides must bind tighter.
    if isinstance(parent, Binary) and PRECEDENCE[parent.operator] == 4 and _strength(child) == 4:
        loose = True
    return f"({child})" if loose else str(child)


def walk(node: Expr) -> Iterator[Expr]:
    """Yield the node and all nodes under it, without recursion."""
    todo: list[Expr] = [node]
    while todo:
        node = todo.pop()
        yield node
        todo.extend(children(node))


def children(node: Expr) -> tuple[Expr, ...]:
    """Return the direct operands of a node, in source order."""
    match node:
        case Index(name, index):
            return (name, index)
        case GroupPart(name, start, stop):
            return (name, *(bound for bound in (start, stop) if bound is not None))
        case FunctionCall(_, arguments):
            return arguments
        case Unary(_, operand):
            return (operand,)
        case Binary(_, left, right):
            return (left, right)
        case Conditional(then, condition, otherwise):
            return (then, condition, otherwise)
        case Tuple(items):
            return items
    return ()


# -------------------------------------------------------------------------------------------------------------- shapes


@dataclass(frozen=True, slots=True)
class Size:
    """One dimension: an expression (``None`` for ``_``), and its place with ``@axis``."""

    value: Expr | None
    axis: Expr | None = None

    def __str__(self) -> str:
        if self.axis is None:
            return "_" if self.value is None else str(self.value)
        value = "_" if self.value is None else str(self.value)
        atom = self.value is None or _strength(self.value) == 9
        return f"{value if atom else f'({value})'}{_axis(self.axis)}"


@dataclass(frozen=True, slots=True)
class DimensionGroup:
    """Group ``*s``: any number of dimensions under one name; with ``@axes`` those at the axes of a list."""

    value: Expr
    axis: Expr | None = None

    def __str__(self) -> str:
        return f"*{self.value}{'' if self.axis is None else _axis(self.axis)}"


@dataclass(frozen=True, slots=True)
class Ellipsis_:  # noqa: N801 - Ellipsis is a builtin
    """Ellipsis ``...``: any number of dimensions, broadcast over all inputs that have them."""

    def __str__(self) -> str:
        return "..."


def _axis(axis: Expr) -> str:
    plain = _strength(axis) == 9 or (isinstance(axis, Unary) and isinstance(axis.operand, Literal))
    return f"@{axis}" if plain else f"@({axis})"


Dim = Size | DimensionGroup | Ellipsis_


@dataclass(frozen=True, slots=True)
class Dims:
    """Dimensions ``[d, d, …]`` of a tensor."""

    items: tuple[Dim, ...]

    def __str__(self) -> str:
        return f"[{', '.join(map(str, self.items))}]"


@dataclass(frozen=True, slots=True)
class Like:
    """Shape ``like x`` or ``like xs[0]``: shape and strides of an input."""

    input: Name | Index

    def __str__(self) -> str:
        return f" like {self.input}"


@dataclass(frozen=True, slots=True)
class Absent:
    """Shape ``None``: the output is absent."""

    def __str__(self) -> str:
        return " None"


@dataclass(frozen=True, slots=True)
class Itself:
    """An input of any shape, or an output that is the input of its name (in-place)."""

    def __str__(self) -> str:
        return ""


@dataclass(frozen=True, slots=True)
class ValueOutput:
    """Output ``= expression``: a number, an input, or a tensor of an input list."""

    value: Expr

    def __str__(self) -> str:
        return f" = {self.value}"


Shape = Dims | Like | Absent | Itself | ValueOutput


@dataclass(frozen=True, slots=True)
class Alternative:
    """One shape and dtype of a tensor, and the condition under which it holds (``None``: otherwise)."""

    shape: Shape
    dtype: Expr | None = None
    condition: Expr | None = None

    def __str__(self) -> str:
        # A conditional dtype before another shape needs parentheses, or its `else` would take that shape.
        dtype = "" if self.dtype is None else f": {self.dtype}"
        if self.condition is not None and isinstance(self.dtype, Conditional):
            dtype = f": ({self.dtype})"
        return f"{self.shape}{dtype}"


@dataclass(frozen=True, slots=True)
class Tensor:
    """An input or an output: its name and its alternatives; the last has no condition."""

    name: str
    alternatives: tuple[Alternative, ...]
    #: The index of a list of tensors: ``i`` in ``xs[i][n, d]``.
    index: str | None = None
    #: The length of a list output: ``k`` in ``ys[i < k][n, d]``; without it the inputs of the same index give it.
    count: Expr | None = None
    at: int = 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tensor) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        return (self.name, self.alternatives, self.index, self.count)

    def __str__(self) -> str:
        text = self.name
        if self.index is not None:
            text += f"[{self.index}]" if self.count is None else f"[{self.index} < {self.count}]"
        for alternative in self.alternatives:
            piece = str(alternative)
            text += piece.lstrip() if text.endswith(" ") else piece
            if alternative.condition is not None:
                condition = alternative.condition
                text += f" if ({condition}) else " if isinstance(condition, Conditional) else f" if {condition} else "
        return text


@dataclass(frozen=True, slots=True)
class WhereDefinition:
    """Definition ``name = expression`` after ``where``."""

    name: str
    value: Expr

    def __str__(self) -> str:
        return f"{self.name} = {self.value}"


# ------------------------------------------------------------------------------------------------- what a tensor holds


def expressions(tensor: Tensor) -> Sequence[Expr]:
    """Return every expression of a tensor: sizes, groups, axes, dtypes, conditions, the count."""
    found: list[Expr] = [] if tensor.count is None else [tensor.count]
    for alternative in tensor.alternatives:
        found += [e for e in (alternative.dtype, alternative.condition) if e is not None]
        if isinstance(alternative.shape, Like):
            found.append(alternative.shape.input)
        if isinstance(alternative.shape, ValueOutput):
            found.append(alternative.shape.value)
        if isinstance(alternative.shape, Dims):
            for item in alternative.shape.items:
                if not isinstance(item, Ellipsis_):
                    found += [e for e in (item.value, item.axis) if e is not None]
    return found


def bound_names(tensor: Tensor) -> frozenset[str]:
    """Return the dimensions and groups that an input binds: plain names (or ``n[i]``) in its pattern."""
    found: set[str] = set()
    for alternative in tensor.alternatives:
        if isinstance(alternative.shape, Dims):
            for item in alternative.shape.items:
                value = None if isinstance(item, Ellipsis_) else item.value
                if isinstance(value, Name):
                    found.add(value.id)
                elif isinstance(value, Index) and value.index == Name(tensor.index or ""):
                    found.add(value.name.id)
    return frozenset(found)


Node = TypeVar("Node")


def renamed(node: Node, names: Mapping[str, str]) -> Node:
    """Return a node, or a tuple of nodes, with its names replaced."""
    return _renamed(node, names)  # type: ignore[no-any-return]


def _renamed(node: Any, names: Mapping[str, str]) -> Any:
    if isinstance(node, Name):
        return replace(node, id=names.get(node.id, node.id))
    if isinstance(node, tuple):
        return tuple(_renamed(part, names) for part in node)
    if not is_dataclass(node) or isinstance(node, type):
        return node
    changed = {f.name: _renamed(getattr(node, f.name), names) for f in fields(node) if f.init}
    if isinstance(node, Tensor | WhereDefinition):
        changed["name"] = names.get(node.name, node.name)
    return replace(node, **changed)
