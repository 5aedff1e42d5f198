"""Decisions on functions that Python calls without a schema."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ascend_graph.aclnn import AclnnFunction
from ascend_graph.adoption.cpp.calls import reached
from ascend_graph.adoption.cpp.definitions import schema_of
from ascend_graph.adoption.cpp.functions import CppFunction
from ascend_graph.adoption.decision import Decision, RegistrationForm, State
from ascend_graph.adoption.evidence import outcome_of
from ascend_graph.adoption.ge_binding import NoBindingError, bind_to_prototype
from ascend_graph.adoption.input_patterns import UncertainError
from ascend_graph.adoption.interpreter.evaluation import Outcome
from ascend_graph.adoption.known import Known
from ascend_graph.adoption.model import Findings, Implementation
from ascend_graph.adoption.relations import relation_of
from ascend_graph.binding.op_schema import OpSchema
from ascend_graph.binding.schema_text import SchemaTextError, parse_schema
from ascend_graph.prototypes import OpPrototype


@dataclass(frozen=True, slots=True)
class _Called:
    """The aclnn function that a function calls: its prototype or its declaration, and the schema of the caller."""

    schema: OpSchema
    prototype: OpPrototype | None
    declared: AclnnFunction | None


def decide_bound_function(one: Implementation, findings: Findings, known: Known) -> Decision | None:
    """Return the decision on a function that Python calls without a schema; None if it calls no aclnn function."""
    function = one.function
    if not isinstance(function, CppFunction):
        return None
    functions, launches = reached(function, findings)
    if not functions and not launches:
        return None
    place = str(one.place)
    decision = Decision(
        f"(pybind) {one.name}", State.UNDECIDED, evidence=(f"bound without a schema: {place}",), place=place,
        replaced=((function.file, function.line, function.last_line),),
    )  # fmt: skip
    if launches or len(functions) != 1:
        what = ", ".join(sorted({*functions, *launches})[:3])
        reason = f"it has no schema, and launches {what}: define one with TORCH_LIBRARY"
        return replace(decision, state=State.IMPOSSIBLE, reason=reason)
    (name,) = functions
    try:
        called = _read_called(one.name, name, function, known)
    except NoBindingError as error:
        return replace(decision, reason=str(error))
    if called.prototype is not None:
        decision = replace(decision, form=RegistrationForm.OP, subject=called.prototype.op_type)
    else:
        decision = replace(decision, form=RegistrationForm.ACLNN, subject=name)
    source = called.prototype or called.declared
    assert source is not None
    decision = replace(decision, sources=(source.file,))
    try:
        relation = _certain_relation(called, outcome_of(function, called.schema, findings))
    except (UncertainError, NoBindingError) as uncertain:
        return replace(decision, reason=f"it has no schema; {uncertain}")
    shape = "" if relation is None else f"; shape: what the kernel allocates, {function.place}"
    evidence = (*decision.evidence, f"prototype: {source.place}{shape}")
    return replace(decision, state=State.BY_NAMES, relation=relation, evidence=evidence)


def _read_called(bound_name: str, name: str, function: CppFunction, known: Known) -> _Called:
    """Return what is known of the aclnn function that a function calls.

    Raises:
        NoBindingError: The caller has no schema, or neither a prototype nor a declaration is known.
    """
    text = schema_of(f"ascend::{bound_name}", function)
    try:
        schema = None if text is None else _named(parse_schema(text), function)
    except SchemaTextError as error:
        raise NoBindingError(str(error)) from None
    prototype, declared = known.prototype(name.removeprefix("aclnn")), known.function(name)
    if schema is None:
        raise NoBindingError(
            f"a schema has no type for one of its C++ types, at {function.place}: define one with TORCH_LIBRARY"
        )
    if prototype is None and declared is None:
        raise NoBindingError(f"{name}: neither a prototype nor a header of it is in this repository")
    return _Called(schema, prototype, declared)


def _certain_relation(called: _Called, outcome: Outcome) -> str | None:
    """Return the relation of a function that names bind to its prototype; None if it returns inputs that it writes.

    Raises:
        UncertainError: The names do not tell which argument is which, or no relation is certain.
        NoBindingError: The function is not the prototype's.
    """
    prototype = called.prototype
    if prototype is None or called.declared is not None:
        raise UncertainError("its declaration and its prototype name the outputs")
    bound = bind_to_prototype(called.schema, prototype, None, outcome, {})
    names = [prototype.outputs[r.output].name for r in bound.binding.returns if r.output is not None]
    renames = any(name != other for name, other in bound.binding.argument_names().items())
    if bound.arguments or renames or len(names) < len(bound.binding.returns):
        raise UncertainError("its arguments have other names than the prototype's")
    return _function_relation(prototype, outcome, called.schema, names)


def _function_relation(prototype: OpPrototype, outcome: Outcome, schema: OpSchema, names: list[str]) -> str | None:
    """Return the relation of a function's returns; None if they are inputs that it writes.

    Raises:
        UncertainError: No relation is certain.
    """
    written = [name for name in names if name in prototype.in_place]
    if len(written) < len(names):
        if written:
            raise UncertainError(f"it returns {written[0]}, which it writes, next to new tensors")
        return relation_of(outcome, schema, names)
    return None


def _named(schema: OpSchema, function: CppFunction) -> OpSchema:
    """Return a schema made from a function with the function's own names."""
    arguments = tuple(replace(a, name=p.name) for a, p in zip(schema.arguments, function.parameters, strict=True))
    return replace(schema, arguments=arguments)
