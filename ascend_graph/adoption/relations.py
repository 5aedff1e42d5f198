"""Shape relations from what the interpreter found: written only where every part is certain."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ascend_graph.adoption.interpreter import Outcome
from ascend_graph.adoption.values import (
    ArgumentValue,
    Choice,
    Constant,
    Dtype,
    DtypeOf,
    Input,
    NewTensor,
    Operation,
    Property,
    Several,
    Sizes,
    SizeValue,
    Slice,
)
from ascend_graph.binding.op_schema import ArgumentKind, OpSchema, SchemaReturn
from ascend_graph.shapes import RelationError, parse_relation

_KEYWORDS = frozenset(
    {"if", "else", "and", "or", "not", "in", "is", "like", "where", "None", "True", "False", "min", "max", "sum", "len"}
)
#: Longest relation that is written; a longer one is no line that anybody checks.
MAX_RELATION = 600


class UncertainError(Exception):
    """Reason why no relation is written."""


@dataclass(slots=True)
class _Pattern:
    """Dimensions of one input that the relation names."""

    front: int = 0
    back: int = 0
    whole: bool = False
    #: Dimensions that every call has: those of parts that no condition chooses.
    sure: int = 0


@dataclass(slots=True)
class _Writer:
    schema: OpSchema
    ranks: Mapping[str, int]
    hints: Mapping[Any, str]
    patterns: dict[str, _Pattern] = field(default_factory=dict)
    names: dict[tuple[str, Any], str] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)
    #: Optional arguments that the condition around the current part says are given.
    given: set[str] = field(default_factory=set)


def relation_of(outcome: Outcome, schema: OpSchema, names: Sequence[str]) -> str:
    """Return the shape relation of a function's outcome.

    Args:
        outcome: The outcome.
        schema: The schema; the relation is in its names.
        names: The outputs' names, one a return.

    Raises:
        UncertainError: Some part is not certain, or not expressible; the message says which.
    """
    if not schema.returns:
        return "->"
    returned = outcome.returned
    items = list(returned.items) if isinstance(returned, Several) else [returned]
    if isinstance(returned, Sizes) and all(isinstance(one, Constant | Input | NewTensor) for one in returned.items):
        items = list(returned.items)
    if any(one.kind is not ArgumentKind.TENSOR for one in schema.returns):
        raise UncertainError("it returns something else than tensors")
    if any(one.list_depth for one in schema.returns):
        raise UncertainError("it returns a list of tensors")
    if len(items) != len(schema.returns):
        raise UncertainError(f"{len(items)} value(s) are returned for {len(schema.returns)} return(s)")
    writer = _Writer(schema, outcome.ranks, outcome.hints)
    writer.taken = {a.name for a in schema.arguments} | {*names} | _KEYWORDS
    for item, declared, name in zip(items, schema.returns, names, strict=True):
        try:
            _collect(writer, item)
        except UncertainError as reason:
            raise UncertainError(f"{name or 'the return'}: {reason}") from None
        del declared
    _check_ranks(writer, outcome.read)
    outputs = [
        _output(writer, one, declared, name) for one, declared, name in zip(items, schema.returns, names, strict=True)
    ]
    inputs = [_input(writer, a.name) for a in schema.arguments if a.is_tensor and _used(writer, a.name)]
    inputs += [
        _input(writer, name) for name in writer.patterns if "[" in name and not any(i.startswith(name) for i in inputs)
    ]
    text = f"{', '.join(inputs)} -> {', '.join(outputs)}".strip()
    if len(text) > MAX_RELATION:
        raise UncertainError("its relation would be too long to read")
    try:
        parse_relation(text)
    except RelationError as error:
        raise UncertainError(f"not expressible: {str(error).splitlines()[0]}") from None
    return text


def _used(writer: _Writer, name: str) -> bool:
    return name in writer.patterns


def _pattern(writer: _Writer, tensor: str) -> _Pattern:
    base = tensor.partition("[")[0]
    argument = next((a for a in writer.schema.arguments if a.name == base), None)
    if argument is None or not argument.is_tensor:
        raise UncertainError(f"{tensor} is not a tensor of the schema")
    if argument.list_depth:
        raise UncertainError(f"it depends on {tensor}, a tensor of a list")
    return writer.patterns.setdefault(tensor, _Pattern())


def _check_ranks(writer: _Writer, read: Mapping[str, int]) -> None:
    """Raise if a call that the function takes may have fewer dimensions than the relation names."""
    for tensor, pattern in writer.patterns.items():
        needed = pattern.front + pattern.back
        # A tensor without any dimension is no input of such a function.
        if tensor not in writer.ranks and needed > max(pattern.sure, read.get(tensor, 0), 1):
            raise UncertainError(f"dimensions of {tensor} are read in some calls only, and others may not have them")


def _collect(writer: _Writer, value: Any, *, sure: bool = True) -> None:
    """Note which dimensions of which inputs a value needs."""
    if isinstance(value, Constant | Dtype):
        return
    if isinstance(value, ArgumentValue):
        _attr(writer, value.name)
    elif isinstance(value, Input | DtypeOf):
        _pattern(writer, value.name if isinstance(value, Input) else value.tensor)
    elif isinstance(value, SizeValue):
        pattern = _pattern(writer, value.tensor)
        rank = writer.ranks.get(value.tensor)
        if rank is not None and not -rank <= value.axis < rank:
            raise UncertainError(f"{value.tensor} has {rank} dimensions, and the one at {value.axis} is read")
        if value.axis >= 0:
            pattern.front = max(pattern.front, value.axis + 1)
        else:
            pattern.back = max(pattern.back, -value.axis)
        if sure:
            pattern.sure = max(pattern.sure, value.axis + 1 if value.axis >= 0 else -value.axis)
        if max(pattern.front, pattern.back) > 12:
            raise UncertainError(f"{value.tensor}: dimension {value.axis} is read")
    elif isinstance(value, Slice):
        pattern = _pattern(writer, value.tensor)
        pattern.whole = True
        if value.start < 0:
            raise UncertainError(f"a part of the shape of {value.tensor} that counts from its end")
        pattern.front = max(pattern.front, value.start)
        if value.stop is not None:
            if value.stop >= 0:
                raise UncertainError(f"a part of the shape of {value.tensor}")
            pattern.back = max(pattern.back, -value.stop)
            if sure:
                pattern.sure = max(pattern.sure, value.start - value.stop)
    elif isinstance(value, Property):
        if value.what not in ("rank", "numel", "present"):
            raise UncertainError(f"it depends on {value.what} of {value.tensor}")
        if value.what == "present" and not any(a.name == value.tensor for a in writer.schema.arguments):
            raise UncertainError(f"{value.tensor} is not an argument")
        if value.what == "rank" and value.tensor in writer.ranks:
            return
        _pattern(writer, value.tensor)
    elif isinstance(value, Operation):
        for number, one in enumerate(value.operands):
            _collect(writer, one, sure=sure and (number == 0 or value.operator not in ("and", "or")))
    elif isinstance(value, Choice):
        _collect(writer, value.condition, sure=sure)
        _collect(writer, value.then, sure=False)
        _collect(writer, value.otherwise, sure=False)
    elif isinstance(value, Sizes | Several):
        for one in value.items:
            _collect(writer, one, sure=sure)
    elif isinstance(value, NewTensor):
        _collect(writer, value.sizes, sure=sure)
        _collect(writer, value.dtype, sure=sure)
    else:
        raise UncertainError("its size or dtype is not stated in a form that is understood")


def _attr(writer: _Writer, name: str) -> None:
    if not any(a.name == name and not a.is_tensor for a in writer.schema.arguments):
        raise UncertainError(f"it depends on {name}, which is not an argument")


def _fresh(writer: _Writer, wanted: str) -> str:
    name = wanted
    number = 1
    while name in writer.taken or not re.fullmatch(r"[A-Za-z]\w*", name):
        name = f"{wanted.strip('_') or 'd'}_{number}"
        number += 1
    writer.taken.add(name)
    return name


def _dimension(writer: _Writer, tensor: str, axis: int) -> str:
    rank = writer.ranks.get(tensor)
    if rank is not None and axis < 0:
        axis += rank
    key = (tensor, axis)
    if key not in writer.names:
        hint = writer.hints.get(SizeValue(tensor, axis))
        if hint is None and rank is not None:
            hint = writer.hints.get(SizeValue(tensor, axis - rank))
        base = tensor if axis >= 0 else f"{tensor}_last" if axis == -1 else f"{tensor}_back"
        index = axis if axis >= 0 else "" if axis == -1 else -axis
        writer.names[key] = _fresh(
            writer, hint.strip("_") if hint and hint.strip("_") else f"{base}{index}".replace("__", "_")
        )
    return writer.names[key]


def _group(writer: _Writer, tensor: str) -> str:
    key = (tensor, "*")
    if key not in writer.names:
        whole = writer.patterns[tensor]
        base = "s" if not (whole.front or whole.back) and len(writer.patterns) == 1 else f"{tensor}_rest"
        writer.names[key] = _fresh(writer, base)
    return writer.names[key]


def _items(writer: _Writer, tensor: str, start: int = 0, stop: int | None = None) -> list[str]:
    """Return the pattern items of an input from ``start`` to ``stop``."""
    pattern = writer.patterns[tensor]
    rank = writer.ranks.get(tensor)
    if rank is not None:
        axes = list(range(rank))[start:stop]
        return [_dimension(writer, tensor, axis) for axis in axes]
    front = [_dimension(writer, tensor, axis) for axis in range(start, pattern.front)]
    last = 0 if stop is None else stop
    back = [_dimension(writer, tensor, axis) for axis in range(-pattern.back, last)]
    return [*front, f"*{_group(writer, tensor)}", *back]


def _input(writer: _Writer, tensor: str) -> str:
    pattern = writer.patterns[tensor]
    if not (pattern.front or pattern.back or pattern.whole) and tensor not in writer.ranks:
        return tensor
    if not (pattern.front or pattern.back or pattern.whole):
        return tensor
    return f"{tensor}[{', '.join(_items(writer, tensor))}]"


def _output(writer: _Writer, value: Any, declared: SchemaReturn, name: str) -> str:
    if isinstance(value, Input):
        if declared.alias_of is not None:
            if declared.alias_of != value.name:
                raise UncertainError(f"it returns {value.name}, and the schema says {declared.alias_of}")
            return value.name
        return f"{name} like {value.name}"
    if declared.alias_of is not None:
        raise UncertainError(f"the schema says that it returns {declared.alias_of} itself, and it does not")
    dtype, same = _common_dtype(value)
    if same:
        shape = _alternatives(writer, value, with_dtype=False)
        return f"{name}{shape}{_dtype_suffix(writer, dtype, value)}"
    return f"{name}{_alternatives(writer, value, with_dtype=True)}"


def _common_dtype(value: Any) -> tuple[Any, bool]:
    """Return the dtype of all alternatives that are tensors, and whether it is the same."""
    found = []

    def visit(one: Any) -> None:
        if isinstance(one, Choice):
            visit(one.then)
            visit(one.otherwise)
        elif isinstance(one, NewTensor):
            found.append(one.dtype)

    visit(value)
    return (found[0], all(one == found[0] for one in found)) if found else (None, True)


def _dtype_suffix(writer: _Writer, dtype: Any, value: Any) -> str:
    if dtype is None:
        return ""
    if isinstance(value, NewTensor) and value.like and dtype == DtypeOf(value.like):
        return ""
    return f": {_dtype(writer, dtype)}"


def _dtype(writer: _Writer, value: Any) -> str:
    if isinstance(value, Dtype):
        return value.name
    if isinstance(value, DtypeOf):
        return value.tensor
    if isinstance(value, ArgumentValue):
        argument = next((a for a in writer.schema.arguments if a.name == value.name), None)
        if argument is None or argument.kind is not ArgumentKind.DTYPE or argument.optional:
            raise UncertainError(f"{value.name} is not certainly a dtype")
        return value.name
    if isinstance(value, Choice):
        return f"{_dtype(writer, value.then)} if {_condition(writer, value.condition)} else {_dtype(writer, value.otherwise)}"
    raise UncertainError("its dtype is not certain")


def _alternatives(writer: _Writer, value: Any, *, with_dtype: bool, first: bool = True) -> str:
    if isinstance(value, Choice):
        if isinstance(value.then, Choice):
            raise UncertainError("its shape depends on nested conditions")
        head = _alternatives(writer, value.then, with_dtype=with_dtype, first=first)
        rest = _alternatives(writer, value.otherwise, with_dtype=with_dtype, first=False)
        return f"{head} if {_condition(writer, value.condition)} else {rest}"
    if value == Constant(None):
        return " None" if first else "None"
    if isinstance(value, Input):
        return f"{' ' if first else ''}like {value.name}"
    if not isinstance(value, NewTensor):
        raise UncertainError("one of its alternatives is not a tensor that is made")
    suffix = f": {_dtype(writer, value.dtype)}" if with_dtype else ""
    if value.like and value.sizes == Sizes((Slice(value.like),)):
        return f"{' ' if first else ''}like {value.like}{suffix}"
    return f"[{', '.join(_shape(writer, value.sizes))}]{suffix}"


def _shape(writer: _Writer, sizes: Any) -> list[str]:
    if not isinstance(sizes, Sizes):
        raise UncertainError("its shape is not certain")
    found: list[str] = []
    for one in sizes.items:
        if isinstance(one, Slice):
            found += _items(writer, one.tensor, one.start, one.stop)
        else:
            found.append(_number(writer, one))
    return found


def _number(writer: _Writer, value: Any, *, nested: bool = False) -> str:
    if isinstance(value, Constant):
        if isinstance(value.value, bool) or not isinstance(value.value, int):
            raise UncertainError(f"{value.value!r} is not a size")
        return str(value.value)
    if isinstance(value, SizeValue):
        return _dimension(writer, value.tensor, value.axis)
    if isinstance(value, ArgumentValue):
        argument = next(a for a in writer.schema.arguments if a.name == value.name)
        absent = argument.optional and value.name not in writer.given
        if argument.kind is not ArgumentKind.INT or argument.list_depth or absent:
            raise UncertainError(f"{value.name} is not certainly a number")
        return value.name
    if isinstance(value, Property):
        if value.what == "rank" and value.tensor in writer.ranks:
            return str(writer.ranks[value.tensor])
        return f"{value.what}({value.tensor})"
    if isinstance(value, Operation):
        if value.operator in ("max", "min"):
            return f"{value.operator}({', '.join(_number(writer, one) for one in value.operands)})"
        if value.operator == "item":
            owner, index = value.operands
            return f"{owner.name}[{index.value}]"
        if value.operator not in ("+", "-", "*", "//", "%"):
            raise UncertainError(f"{value.operator} is not a size")
        left, right = (_number(writer, one, nested=True) for one in value.operands)
        text = f"{left} {value.operator} {right}"
        return f"({text})" if nested else text
    if isinstance(value, Choice):
        condition = _condition(writer, value.condition)
        asked = value.condition.operands[0] if condition.endswith(" is not None") else None
        added = {asked.name} - writer.given if isinstance(asked, ArgumentValue) else set()
        writer.given |= added
        then = _number(writer, value.then, nested=True)
        writer.given -= added
        return f"({then} if {condition} else {_number(writer, value.otherwise, nested=True)})"
    raise UncertainError("a size is not certain")


def _condition(writer: _Writer, value: Any, *, nested: bool = False) -> str:
    if isinstance(value, Property) and value.what == "present":
        return value.tensor
    if isinstance(value, ArgumentValue):
        argument = next(a for a in writer.schema.arguments if a.name == value.name)
        if argument.kind not in (ArgumentKind.BOOL, ArgumentKind.INT) or argument.list_depth or argument.optional:
            raise UncertainError(f"{value.name} is not certainly true or false")
        return value.name
    if isinstance(value, Operation):
        if value.operator in ("and", "or"):
            text = f" {value.operator} ".join(_condition(writer, one, nested=True) for one in value.operands)
            return f"({text})" if nested else text
        if value.operator == "not":
            return f"not {_condition(writer, value.operands[0], nested=True)}"
        if value.operator in ("==", "!=", "<", "<=", ">", ">="):
            left, right = value.operands
            if right == Constant(None) or left == Constant(None):
                other = left if right == Constant(None) else right
                if not isinstance(other, ArgumentValue):
                    raise UncertainError("a comparison with None")
                return f"{other.name} is {'not ' if value.operator == '!=' else ''}None"
            text = f"{_operand(writer, left)} {value.operator} {_operand(writer, right)}"
            return f"({text})" if nested else text
    raise UncertainError("a condition is not expressible")


def _operand(writer: _Writer, value: Any) -> str:
    if isinstance(value, Constant) and isinstance(value.value, str):
        if not re.fullmatch(r"[\w .\-]*", value.value):
            raise UncertainError("a string with special characters")
        return f'"{value.value}"'
    if isinstance(value, DtypeOf):
        return f"dtype({value.tensor})"
    if isinstance(value, Dtype):
        return value.name
    if isinstance(value, ArgumentValue):
        argument = next(a for a in writer.schema.arguments if a.name == value.name)
        if argument.optional or argument.list_depth:
            raise UncertainError(f"a comparison with {value.name}, which may be None or a list")
        if argument.kind is ArgumentKind.DTYPE:
            raise UncertainError(f"a dtype, {value.name}, is compared")
        return value.name
    return _number(writer, value, nested=True)
