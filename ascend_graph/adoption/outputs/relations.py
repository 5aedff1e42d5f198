"""Shape relations from what the interpreter found: written only where every part is certain."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from ascend_graph.adoption.interpreter.conditions import combined
from ascend_graph.adoption.interpreter.evaluation import Outcome
from ascend_graph.adoption.interpreter.values import (
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
    Unknown,
)
from ascend_graph.adoption.outputs.input_patterns import InputPatterns, UncertainError, not_followed
from ascend_graph.binding.op_schema import ArgumentKind, OpSchema, SchemaReturn
from ascend_graph.prototypes import OpPrototype
from ascend_graph.shapes import RelationError, parse_relation
from ascend_graph.shapes.declared_dtypes import complete_relation
from ascend_graph.shapes.syntax import Like

_KEYWORDS = frozenset(
    {"if", "else", "and", "or", "not", "in", "is", "like", "where", "None", "True", "False", "min", "max", "sum", "len"}
)
#: Reason for a function whose value is no tensor in any call.
NOTHING_RETURNED = (
    "it returns an undefined tensor, and graphs have none: let it return a tensor, or write -> () in its schema"
)
#: Longest relation that is written; a longer one is no line that anybody checks.
MAX_RELATION = 600


def output_names(schema: OpSchema) -> list[str]:
    """Return a name for each return: the schema's, or ``y``; none is that of an argument."""
    taken = {a.name for a in schema.arguments}
    names = []
    for number, one in enumerate(schema.returns):
        name = (
            one.name
            if one.name and not re.fullmatch(r"_\d+", one.name)
            else "y"
            if len(schema.returns) == 1
            else f"y{number}"
        )
        while name in taken:
            name += "_out"
        taken.add(name)
        names.append(name)
    return names


def undeclared_aliases(computed: Outcome, schema: OpSchema) -> list[str]:
    """Return a sentence on the arguments that a kernel returns, and the schema says that it does not."""
    returned = computed.returned
    items = returned.items if isinstance(returned, Several | Sizes) else (returned,)
    names = [
        one.name
        for one, declared in zip(items, schema.returns, strict=False)
        if isinstance(one, Input) and declared.alias_of is None
    ]
    if not names:
        return []
    return [
        f"the kernel returns {', '.join(names)} itself, which the schema has to say: Tensor(a!) {names[0]} and -> Tensor(a!)"
    ]


def with_own_dtypes(relation: str | None, prototype: OpPrototype) -> str | None:
    """Return a relation that says ``y like x: x`` where the prototype would give y another dtype than that of x.

    Raises:
        RelationError: The relation says a dtype that the prototype does not list.
    """
    if relation is None or relation == "->":
        return relation
    parsed = parse_relation(relation)
    completed = complete_relation(prototype, parsed)
    if completed == parsed:
        return relation
    tensors = []
    for tensor in parsed.output_tensors:
        alternatives = tuple(
            replace(one, dtype=one.shape.input) if isinstance(one.shape, Like) and one.dtype is None else one
            for one in tensor.alternatives
        )
        tensors.append(replace(tensor, alternatives=alternatives))
    return str(replace(parsed, output_tensors=tuple(tensors)))


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
        raise UncertainError("it returns a list of tensors, which a relation does not express")
    if isinstance(returned, Unknown):
        raise not_followed(returned)
    if returned == Constant(None):
        raise UncertainError(NOTHING_RETURNED)
    if len(items) != len(schema.returns):
        raise UncertainError(f"{len(items)} value(s) are returned for {len(schema.returns)} return(s)")
    items = [
        NewTensor(Sizes((Slice(one.name),)), DtypeOf(one.name))
        if isinstance(one, Input) and one.contiguous and declared.alias_of is None
        else one
        for one, declared in zip(items, schema.returns, strict=True)
    ]
    writer = InputPatterns(schema, outcome.ranks, outcome.hints)
    writer.taken = {a.name for a in schema.arguments} | {*names} | _KEYWORDS
    for item, name in zip(items, names, strict=True):
        try:
            _check_strides(item)
            writer.collect(item)
        except UncertainError as reason:
            raise UncertainError(f"{name or 'the return'}: {reason}") from None
    writer.check_ranks(outcome.read)
    outputs = [
        _output(writer, one, declared, name) for one, declared, name in zip(items, schema.returns, names, strict=True)
    ]
    inputs = [_input(writer, a.name) for a in schema.arguments if a.is_tensor and a.name in writer.patterns]
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


def _check_strides(value: Any) -> None:
    """Raise if a tensor is a view, whose strides no relation states."""
    if isinstance(value, Choice):
        _check_strides(value.then)
        _check_strides(value.otherwise)
    elif isinstance(value, NewTensor) and value.view is not None:
        raise UncertainError("its dimensions are in another order in memory")


def _input(writer: InputPatterns, tensor: str) -> str:
    pattern = writer.patterns[tensor]
    if not (pattern.front or pattern.back or pattern.whole):
        return tensor
    return f"{tensor}[{', '.join(writer.items(tensor))}]"


def _output(writer: InputPatterns, value: Any, declared: SchemaReturn, name: str) -> str:
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


def _dtype_suffix(writer: InputPatterns, dtype: Any, value: Any) -> str:
    if dtype is None:
        return ""
    if isinstance(value, NewTensor) and value.like and dtype == DtypeOf(value.like):
        return ""
    return f": {_dtype(writer, dtype)}"


def _dtype(writer: InputPatterns, value: Any) -> str:
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
        *chosen, last = alternatives(value)
        parts = [f"{_dtype(writer, one)} if {_condition(writer, condition)} else" for condition, one in chosen]
        return " ".join([*parts, _dtype(writer, last[1])])
    raise UncertainError("its dtype is not certain")


def alternatives(value: Any) -> list[tuple[Any, Any]]:
    """Return the alternatives of a choice in order: the first whose condition holds is the value, the last otherwise.

    The condition of the last is ``Constant(True)``.
    """
    found: list[tuple[Any, Any]] = []
    excluded: set[Any] = set()
    for terms, one in _paths(value):
        condition = combined("and", [_without(term, excluded) for term in _needed(terms)])
        if condition == Constant(True):
            return [*found, (condition, one)]
        found.append((condition, one))
        excluded.add(condition)
    return found


def _paths(value: Any) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Yield each value that a choice may be with the conditions that hold then, if none before it is the value."""
    if not isinstance(value, Choice):
        yield (), value
        return
    for terms, one in _paths(value.then):
        yield (value.condition, *terms), one
    yield from _paths(value.otherwise)


def _needed(terms: tuple[Any, ...]) -> list[Any]:
    """Return conditions without those that another one implies: ``a or b`` next to ``a``."""
    return [
        one
        for one in dict.fromkeys(terms)
        if not (isinstance(one, Operation) and one.operator == "or" and {*one.operands} & {*terms})
    ]


def _without(term: Any, excluded: set[Any]) -> Any:
    """Return ``a or b or c`` without the parts that do not hold."""
    if isinstance(term, Operation) and term.operator == "or":
        return combined("or", [one for one in term.operands if one not in excluded])
    return term


def _alternatives(writer: InputPatterns, value: Any, *, with_dtype: bool, first: bool = True) -> str:
    if isinstance(value, Choice):
        *chosen, last = alternatives(value)
        text = ""
        for condition, one in chosen:
            part = _alternatives(writer, one, with_dtype=with_dtype, first=not text and first)
            text += f"{part} if {_condition(writer, condition)} else "
        return text + _alternatives(writer, last[1], with_dtype=with_dtype, first=False)
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


def _shape(writer: InputPatterns, sizes: Any) -> list[str]:
    if not isinstance(sizes, Sizes):
        raise UncertainError("its shape is not certain")
    found: list[str] = []
    for one in sizes.items:
        if isinstance(one, Slice):
            found += writer.items(one.tensor, one.start, one.stop)
        else:
            found.append(_number(writer, one))
    return found


def _number(writer: InputPatterns, value: Any, *, nested: bool = False) -> str:
    if isinstance(value, Constant):
        if isinstance(value.value, bool) or not isinstance(value.value, int):
            raise UncertainError(f"{value.value!r} is not a size")
        return str(value.value)
    if isinstance(value, SizeValue):
        return writer.dimension(value.tensor, value.axis)
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


def _condition(writer: InputPatterns, value: Any, *, nested: bool = False) -> str:
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


def _operand(writer: InputPatterns, value: Any) -> str:
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
