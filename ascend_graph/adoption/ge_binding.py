"""Pairs of schema arguments and prototype parts: those that names settle, checked and completed by the aclnn call."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ascend_graph.aclnn import AclnnFunction
from ascend_graph.adoption.interpreter.evaluation import Outcome
from ascend_graph.adoption.interpreter.values import (
    ArgumentValue,
    Choice,
    Constant,
    Input,
    NewTensor,
    Operation,
    Property,
    Several,
    Unknown,
    allocations,
)
from ascend_graph.binding.arguments import bind
from ascend_graph.binding.bound import Argument, Binding
from ascend_graph.binding.calls.call import AclnnCall, Part, msopgen_call
from ascend_graph.binding.calls.matching import bind_call
from ascend_graph.binding.errors import BindingError
from ascend_graph.binding.op_schema import OpSchema
from ascend_graph.prototypes import Attr, OpPrototype, Parameter, ParameterKind


class NoBindingError(Exception):
    """Reason why an operator is not bound to a prototype."""


@dataclass(frozen=True, slots=True)
class Code:
    """Python code of a value in ``arguments=``."""

    text: str


@dataclass(frozen=True, slots=True)
class GeBinding:
    """Binding to a prototype, with the pairs to write."""

    binding: Binding
    #: ``arguments=``: values as Python has them, or :class:`Code`.
    arguments: dict[str, Any]
    #: Statement of what the pairs follow from.
    evidence: str


@dataclass(slots=True)
class _Evidence:
    """Values that the aclnn call gives to each part of a prototype."""

    inputs: dict[str, Any]
    attrs: dict[str, Any]
    outputs: dict[str, Any]


def bind_to_prototype(
    schema: OpSchema,
    prototype: OpPrototype,
    function: AclnnFunction | None,
    outcome: Outcome,
    stated: Mapping[str, str],
    constants: Mapping[str, Any] | None = None,
) -> GeBinding:
    """Bind a schema to a prototype, by names and by what the kernel passes to the aclnn function.

    Args:
        schema: The schema.
        prototype: The prototype.
        function: The declaration of the aclnn function, if a header has one.
        outcome: The outcome of the kernel, with its calls.
        stated: GE name → argument of a hand-written converter.
        constants: GE name → value of a hand-written converter.

    Raises:
        NoBindingError: Names and call do not settle everything, or contradict each other.
    """
    name = f"aclnn{prototype.op_type}" if function is None else function.name
    made = [arguments for called, arguments in outcome.calls if called == name]
    evidence = _read_call(prototype, function, made) if made else None
    if evidence is not None:
        _check_effects(name, prototype, evidence, outcome)
    candidates = _candidates(schema, prototype, evidence, outcome.returned, stated) | (
        dict(constants or {}) if evidence is None else {}
    )
    arguments: dict[str, Any] = {}
    problem = ""
    try:
        bound = _bound(schema, prototype, {})
        problem = _problem(bound, prototype, evidence, outcome.returned)
    except BindingError as error:
        problem = _first_line(error)
    if problem:
        arguments = dict(candidates)
        try:
            bound = _bound(schema, prototype, arguments)
            again = _problem(bound, prototype, evidence, outcome.returned)
        except BindingError as error:
            again = _first_line(error)
        if again:
            # The first problem is that of the sources; the second may be that of a pair that was tried.
            raise NoBindingError(problem if evidence is not None and "↔" not in problem else again)
    arguments = _least(schema, prototype, arguments, bound)
    if evidence is not None:
        how = f"the call of {name} agrees"
    elif stated:
        how = "the hand-written converter agrees"
    else:
        how = "by names alone: no call was found to compare with"
    return GeBinding(bound, arguments, how)


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0]


def _bound(schema: OpSchema, prototype: OpPrototype, arguments: dict[str, Any]) -> Binding:
    plain = {
        key: _Placeholder() if isinstance(value, Code) and value.text.startswith("lambda") else value
        for key, value in arguments.items()
    }
    plain = {key: _argument(value) if isinstance(value, Code) else value for key, value in plain.items()}
    return bind(schema, prototype, plain)


class _Placeholder:
    """Stands for a function that computes a value from all arguments."""

    def __call__(self, arguments: Mapping[str, Any]) -> Any:  # pragma: no cover - never called
        raise NotImplementedError


def _argument(value: Code) -> Any:
    """Return the pair that ``ascend_graph.Argument(name, default=…)`` is."""
    call = ast.parse(value.text, mode="eval").body
    assert isinstance(call, ast.Call)
    return Argument(ast.literal_eval(call.args[0]), default=ast.literal_eval(call.keywords[0].value))


def _least(schema: OpSchema, prototype: OpPrototype, arguments: dict[str, Any], bound: Binding) -> dict[str, Any]:
    """Return the arguments without those that names settle alike."""
    kept = dict(arguments)
    for key in list(arguments):
        fewer = {other: value for other, value in kept.items() if other != key}
        try:
            again = _bound(schema, prototype, fewer)
        except BindingError:
            continue
        if not again.doubts and _feeds(again) == _feeds(bound):
            kept = fewer
    return kept


def _feeds(bound: Binding) -> Any:
    sources = [
        None if one is None else (one.argument, one.conversion, type(one.value), one.value)
        for one in (*bound.inputs, *bound.attrs)
    ]
    plain = [
        None if one is None else (*one[:2], "function" if isinstance(one[3], _Placeholder) else one[3])
        for one in sources
    ]
    returns = [(one.output, one.argument) for one in bound.returns]
    return plain, returns, [(m.argument, m.output, m.in_place) for m in bound.mutations]


def _read_call(prototype: OpPrototype, function: AclnnFunction | None, made: list[tuple[Any, ...]]) -> _Evidence:
    """Return what each part of a prototype is given, by the calls of its function."""
    try:
        call: AclnnCall = msopgen_call(prototype) if function is None else bind_call(prototype, function)
    except BindingError as error:
        raise NoBindingError(_first_line(error)) from None
    first = made[0]
    if any(len(one) != len(call.arguments) for one in made):
        raise NoBindingError(
            f"the call passes {len(first)} arguments, and {call.function} has {len(call.arguments)} by {call.source or 'its OpDef'}"
        )
    found = _Evidence({}, {}, {})
    for position, argument in enumerate(call.arguments):
        values = [one[position] for one in made]
        value = values[0] if all(one == values[0] for one in values) else Unknown()
        if argument.part is Part.INPUT:
            found.inputs[prototype.inputs[argument.index].name] = value
        elif argument.part is Part.ATTR:
            found.attrs[prototype.attrs[argument.index].name] = value
        elif argument.part is Part.OUTPUT:
            found.outputs[prototype.outputs[argument.index].name] = value
    return found


def _check_effects(name: str, prototype: OpPrototype, evidence: _Evidence, outcome: Outcome) -> None:
    """Raise if the kernel does more than one call of the function, which is all that a node does.

    Raises:
        NoBindingError: The function runs never or several times in some calls, or a tensor is changed besides.
    """
    in_place = any(isinstance(value, Input) for value in evidence.outputs.values())
    in_place |= any(output.name in evidence.inputs for output in prototype.outputs)
    if outcome.runs[1] > 1 or (outcome.repeats and in_place):
        raise NoBindingError(f"{name} runs several times in some calls, and a node once")
    if not outcome.runs[0]:
        raise NoBindingError(f"{name} does not run in some calls, and a node always")
    for part, value in (*evidence.outputs.items(), *evidence.inputs.items()):
        if {*allocations(value), getattr(value, "name", "")} & outcome.changed:
            raise NoBindingError(f"{part} is changed outside of the call of {name}, and a node only runs {name}")
    initialized = {output.name for output in prototype.outputs if output.initialized}
    for part, value in evidence.outputs.items():
        if {*allocations(value)} & outcome.filled and part not in initialized:
            raise NoBindingError(
                f"{part} holds values before the call of {name}, and an output of a node holds none; add "
                f'.InitValue(0) to Output("{part}") if the kernel counts on zeros, or name it with register_op'
            )


def _plain(value: Any) -> tuple[str | None, Any]:
    """Return the argument that a value is, and what stands for its None; (None, None) for anything else."""
    if isinstance(value, Input | ArgumentValue):
        return value.name, None
    if isinstance(value, Choice):
        condition = value.condition
        if isinstance(condition, Property) and condition.what == "present" and value.then == Input(condition.tensor):
            # An empty tensor in the place of one that is absent.
            return (condition.tensor, None) if isinstance(value.otherwise, NewTensor) else (None, None)
        if (
            isinstance(condition, Operation)
            and condition.operator == "!="
            and condition.operands[1] == Constant(None)
            and value.then == condition.operands[0]
            and isinstance(value.then, ArgumentValue)
            and isinstance(value.otherwise, Constant)
        ):
            return value.then.name, value.otherwise.value
    return None, None


def _lambda(value: Any, optional: frozenset[str]) -> str | None:
    """Return a function of all arguments that computes a value, or None."""
    if isinstance(value, Property) and value.what.startswith("stride"):
        if value.tensor in optional or "[" in value.tensor:
            return None
        axis = value.what.partition(":")[2]
        held = f'arguments["{value.tensor}"]'
        return f"lambda arguments: {held}.stride({axis})" if axis else f"lambda arguments: list({held}.stride())"
    if isinstance(value, Choice):
        condition = value.condition
        then = _lambda(value.then, optional - {getattr(condition, "tensor", "")})
        if (
            isinstance(condition, Property)
            and condition.what == "present"
            and then is not None
            and isinstance(value.otherwise, Constant)
            and isinstance(value.otherwise.value, int)
        ):
            return f'{then} if arguments["{condition.tensor}"] is not None else {value.otherwise.value}'
    return None


def _candidates(
    schema: OpSchema, prototype: OpPrototype, evidence: _Evidence | None, returned: Any, stated: Mapping[str, str]
) -> dict[str, Any]:
    """Return the pairs to write, all of those that the evidence states."""
    found: dict[str, Any] = {}
    used: set[str] = set()
    optional = frozenset(a.name for a in schema.arguments if a.optional)
    if evidence is None:
        return {argument: ge for ge, argument in stated.items() if ge != argument}
    for ge, value in evidence.inputs.items():
        argument, _ = _plain(value)
        if argument is not None:
            used.add(argument)
            found[argument] = ge
    for attr in prototype.attrs:
        value = evidence.attrs.get(attr.name)
        argument, default = _plain(value)
        if argument is not None:
            used.add(argument)
            plain_default = default is None or (not attr.required and attr.default == default)
            found[argument] = (
                attr.name if plain_default else Code(f'ascend_graph.Argument("{attr.name}", default={default!r})')
            )
        elif isinstance(value, Constant) and value.value is not None:
            found[attr.name] = value.value
        elif value is not None:
            text = _lambda(value, optional)
            if text is not None:
                found[attr.name] = Code(text)
    names = {p.name for p in prototype.inputs}
    for output, value in evidence.outputs.items():
        if isinstance(value, Input):
            used.add(value.name)
            if output not in names and any(a.name == value.name and a.mutated for a in schema.arguments):
                found[value.name] = output
    order = _returned_outputs(schema, evidence, returned)
    if order is not None:
        found["->"] = order
    for given in schema.arguments:
        if given.name not in used and (given.has_default or given.optional):
            found[given.name] = None
    return found


def _returned_outputs(schema: OpSchema, evidence: _Evidence, returned: Any) -> tuple[str, ...] | None:
    """Return the output of each return, by the allocations that the call and the return share."""
    items = returned.items if isinstance(returned, Several) else (returned,)
    if len(items) != len(schema.returns) or not items:
        return None
    by_allocation = {allocations(value): name for name, value in evidence.outputs.items() if allocations(value)}
    by_argument = {value.name: name for name, value in evidence.outputs.items() if isinstance(value, Input)}
    names = []
    for one in items:
        name = by_argument.get(one.name) if isinstance(one, Input) else by_allocation.get(allocations(one))
        if name is None:
            return None
        names.append(name)
    return tuple(names) if len(set(names)) == len(names) else None


def _problem(bound: Binding, prototype: OpPrototype, evidence: _Evidence | None, returned: Any) -> str:
    """Return what is open in a binding or contradicts the call; empty if nothing does."""
    return _disagreement(bound, prototype, evidence, returned) or (
        bound.doubts[0].partition(". Write")[0] if bound.doubts else ""
    )


def _disagreement(bound: Binding, prototype: OpPrototype, evidence: _Evidence | None, returned: Any) -> str:
    """Return what the call and a binding say differently; empty if they agree."""
    if evidence is None:
        return ""
    arguments = bound.schema.arguments
    parameters: tuple[Parameter | Attr, ...] = (*prototype.inputs, *prototype.attrs)
    for parameter, source in zip(parameters, (*bound.inputs, *bound.attrs), strict=True):
        side = evidence.attrs if isinstance(parameter, Attr) else evidence.inputs
        if parameter.name not in side:
            continue
        value = side[parameter.name]
        argument, default = _plain(value)
        fed = None if source is None or source.argument is None else arguments[source.argument].name
        if argument is not None:
            if fed is None and argument == parameter.name:
                taken = f"{parameter.type.value} attr" if isinstance(parameter, Attr) else "input"
                return f"{argument} of the schema has a type that the {taken} {argument} of {prototype.op_type} does not take"
            if fed != argument:
                return f"{parameter.name} is {argument} in the call, and {fed or 'nothing'} by names"
            if default is not None and isinstance(parameter, Attr):
                stands = source.value if source is not None and source.value is not None else parameter.default
                if stands != default:
                    return f"None of {argument} is {default!r} in the call, and {stands!r} in a graph"
        elif isinstance(value, Constant):
            problem = _constant_differs(parameter, source, fed, value.value)
            if problem:
                return problem
        elif _lambda(value, frozenset()) is not None and source is not None and isinstance(source.value, _Placeholder):
            continue
        else:
            return f"{parameter.name} is computed in the call"
    order = _returned_outputs(bound.schema, evidence, returned)
    if order is not None:
        names = tuple(None if r.output is None else prototype.outputs[r.output].name for r in bound.returns)
        if names != order:
            return f"the returns are {', '.join(order)} in the call, and {', '.join(map(str, names))} by names"
    elif _is_made_from_outputs(evidence, returned):
        return "what is returned is made from the outputs of the call"
    elif any(isinstance(one, Unknown) for one in (returned.items if isinstance(returned, Several) else (returned,))):
        return "it is not understood what is made from the outputs of the call"
    elif len(bound.schema.returns) > 1 and any(one.evidence.name == "POSITION" for one in bound.returns):
        return "nothing says which output each return is"
    return ""


def _is_made_from_outputs(evidence: _Evidence, returned: Any) -> bool:
    """Return whether a new tensor is returned that is not an output of the call: a permuted one, a cast."""
    outputs = {number for value in evidence.outputs.values() for number in allocations(value)}
    items = returned.items if isinstance(returned, Several) else (returned,)
    return any(number not in outputs for one in items for number in allocations(one))


def _constant_differs(parameter: Any, source: Any, fed: str | None, value: Any) -> str:
    if fed is not None:
        return f"{parameter.name} is {value!r} in the call, and {fed} by names"
    if isinstance(parameter, Attr):
        # A null pointer of an attr is its default.
        stands = source.value if source is not None else None if parameter.required else parameter.default
        if value is not None and stands != value:
            return f"{parameter.name} is {value!r} in the call, and {stands!r} in a graph"
        return ""
    if value is None:
        return (
            "" if parameter.kind is ParameterKind.OPTIONAL else f"{parameter.name} is absent in the call, and required"
        )
    return f"{parameter.name} is {value!r} in the call"
