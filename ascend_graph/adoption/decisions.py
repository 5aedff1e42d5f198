"""One decision an operator: how it is registered, from which evidence, or why it is not."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ascend_graph.aclnn import AclnnFunction
from ascend_graph.adoption.cpp import CppFunction
from ascend_graph.adoption.cpp_definitions import schema_of
from ascend_graph.adoption.evidence import outcome_of
from ascend_graph.adoption.ge_binding import Code, GeBinding, NoBindingError, bind_to_prototype
from ascend_graph.adoption.interpreter import Outcome
from ascend_graph.adoption.model import (
    KERNEL_KEYS,
    Definition,
    Findings,
    HandWrittenConverter,
    Implementation,
    PythonFunction,
)
from ascend_graph.adoption.relations import UncertainError, relation_of
from ascend_graph.adoption.values import is_known, without_strides
from ascend_graph.binding.op_schema import ArgumentKind, OpSchema
from ascend_graph.binding.schema_text import SchemaTextError, parse_schema
from ascend_graph.prototypes import OpPrototype
from ascend_graph.sources import Severity
from ascend_graph.sources.kernels import LITERAL

_ACLNN = re.compile(LITERAL + r"|\b(?P<function>aclnn[A-Z0-9]\w*?)(?:GetWorkspaceSize)?\b(?!\s*\.)")
_LAUNCH = re.compile(
    r"\bACLRT_LAUNCH_KERNEL\s*\(\s*(\w+)|\baclrtlaunch_(\w+)\s*\(|\b(\w+)\s*(?:<[^<>;{}]*>)?\s*<<<|\b[A-Z]\w*KERNEL\w*\s*\(\s*(\w+)\s*,"
)
_CALLED = re.compile(r"([A-Za-z_][\w:]*)\s*\(")
#: Maximum nesting of helper functions in which calls are looked for.
_MAX_DEPTH = 3


class State(enum.Enum):
    """State of an operator after adoption."""

    BY_NAMES = "by names"
    WITH_ARGUMENTS = "with arguments"
    UNDECIDED = "undecided"
    IMPOSSIBLE = "impossible"


class RegistrationForm(enum.Enum):
    """Function that registers an operator."""

    OP = "register_op"
    KERNEL = "register_kernel"
    ACLNN = "register_aclnn"


@dataclass(frozen=True, slots=True)
class Decision:
    """Registration of one operator, or the reason why there is none."""

    #: ``namespace::name`` of the operator.
    name: str
    state: State
    form: RegistrationForm | None = None
    #: The first argument of the call: an op type or a function.
    subject: str = ""
    #: ``torch.ops…`` of the operator; empty if the registration defines it.
    eager: str = ""
    relation: str | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    override: bool = False
    #: One sentence for each decision, with its place.
    evidence: tuple[str, ...] = ()
    reason: str = ""
    place: str = ""
    #: Conditions of the preprocessor under which the operator exists.
    conditions: tuple[str, ...] = ()
    #: Files whose declarations the registration needs.
    sources: tuple[str, ...] = ()
    #: Parts of the repository that the registration replaces or describes: file, first and last line.
    replaced: tuple[tuple[str, int, int], ...] = ()
    #: True if the repository has a meta function of it.
    has_meta: bool = False
    #: The Python reference that a test of the repository compares with, as ``file:line``.
    reference: str = ""

    @property
    def registers(self) -> bool:
        """True if the operator is registered."""
        return self.state in (State.BY_NAMES, State.WITH_ARGUMENTS)


@dataclass(frozen=True, slots=True)
class Known:
    """Prototypes and declarations of a repository."""

    prototypes: Mapping[str, Sequence[OpPrototype]]
    functions: Mapping[str, Sequence[AclnnFunction]]

    def prototype(self, op_type: str) -> OpPrototype | None:
        """Return the prototype of an op type.

        Raises:
            NoBindingError: Several definitions differ in more than dtypes.
        """
        found = self.prototypes.get(op_type, ())
        if len({_signature(one) for one in found}) > 1:
            places = " and ".join(one.place for one in found)
            raise NoBindingError(f"{op_type} has several definitions, at {places}")
        return found[0] if found else None

    def function(self, name: str) -> AclnnFunction | None:
        """Return the declaration of an aclnn function.

        Raises:
            NoBindingError: Headers declare it differently.
        """
        found = self.functions.get(name, ())
        if any(not one.agrees_with(found[0]) for one in found):
            raise NoBindingError(f"{name} is declared differently at {' and '.join(one.place for one in found)}")
        return found[0] if found else None


def _signature(prototype: OpPrototype) -> Any:
    inputs = tuple((p.name, p.kind) for p in prototype.inputs)
    attrs = tuple((a.name, a.type, a.required, repr(a.default)) for a in prototype.attrs)
    return inputs, attrs, tuple((p.name, p.kind) for p in prototype.outputs)


def decide_all(findings: Findings, known: Known) -> list[Decision]:
    """Return one decision for each operator, sorted by name."""
    by_name: dict[str, list[Definition]] = {}
    for one in findings.definitions:
        by_name.setdefault(one.schema.qualified_name, []).append(one)
    implementations: dict[str, list[Implementation]] = {}
    for implementation in findings.implementations:
        implementations.setdefault(implementation.name, []).append(implementation)
    converters: dict[str, list[HandWrittenConverter]] = {}
    for converter in findings.converters:
        converters.setdefault(converter.name, []).append(converter)
    found = [
        _Decider(
            findings, known, name, same, implementations.get(same[0].name, []), converters.get(same[0].name, [])
        ).decide()
        for name, same in sorted(by_name.items())
    ]
    found += [
        decision for one in findings.bound_functions if (decision := _bound_function(one, findings, known)) is not None
    ]
    known_names = {one.name for one in findings.definitions}
    for name, some in sorted(implementations.items()):
        if name not in known_names:
            findings.report(
                some[0].place, f"{name} is implemented, and no source here defines it: it is another library's operator", name,
                Severity.WARNING,
            )  # fmt: skip
    return sorted(found, key=lambda one: one.name)


class _Decider:
    """Search for the decision on one operator."""

    def __init__(
        self,
        findings: Findings,
        known: Known,
        name: str,
        definitions: list[Definition],
        implementations: list[Implementation],
        converters: list[HandWrittenConverter],
    ) -> None:
        self.findings, self.known, self.name = findings, known, name
        self.definitions, self.converters = definitions, converters
        self.schema: OpSchema = definitions[0].schema
        self.kernels = sorted((one for one in implementations if not one.is_meta), key=_order)
        self.metas = [one for one in implementations if one.is_meta]
        self.evidence = [f"schema: {definitions[0].place}"]
        self.implementations = implementations

    def decide(self) -> Decision:
        schema = self.schema
        texts = {_canonical(one.schema) for one in self.definitions}
        if len(texts) > 1:
            places = " and ".join(str(one.place) for one in self.definitions)
            return self.left(State.UNDECIDED, f"its schema is defined differently at {places}")
        if any(one.kind is not ArgumentKind.TENSOR for one in schema.returns):
            return self.left(State.IMPOSSIBLE, "it returns something else than tensors, and graphs hold tensors")
        if not schema.returns and not any(a.is_tensor for a in schema.arguments):
            return self.left(State.IMPOSSIBLE, "it has neither tensors nor returns: nothing to register")
        return self.registered()

    def left(self, state: State, reason: str, **more: Any) -> Decision:
        first = self.definitions[0]
        return Decision(
            self.name, state, evidence=tuple(self.evidence), reason=reason, place=str(first.place),
            conditions=first.conditions if len(self.definitions) == 1 else (), replaced=self.replaced(),
            has_meta=bool(self.metas), **more,
        )  # fmt: skip

    def replaced(self) -> tuple[tuple[str, int, int], ...]:
        spans = [(one.place.file, one.place.line, max(one.place.line, one.last_line)) for one in self.definitions]
        for one in self.implementations:
            spans.append((one.place.file, one.place.line, one.place.line))
            function = one.function
            if isinstance(function, CppFunction):
                helpers = helpers_of(function, self.findings)
                spans += [(helper.file, helper.line, helper.last_line) for helper in (function, *helpers)]
            elif function is not None:
                last = getattr(function.node, "end_lineno", None) or function.place.line
                spans.append((function.place.file, function.place.line, last))
        return tuple(spans)

    def outcome(self, implementation: Implementation | None) -> Outcome:
        if implementation is None or implementation.function is None:
            return Outcome()
        return outcome_of(implementation.function, self.schema, self.findings)

    def registered(self) -> Decision:
        kernel = next((one for one in self.kernels if one.function is not None), None)
        meta = next((one for one in self.metas if one.function is not None), None)
        computed, described = self.outcome(kernel), self.outcome(meta)
        relation, why = self.relation(kernel, computed, meta, described)
        arguments: dict[str, Any] = {}
        form, subject = RegistrationForm.KERNEL, ""
        sources: tuple[str, ...] = ()
        try:
            bound, prototype = self.bound(kernel, computed)
        except NoBindingError as reason:
            self.evidence.append(f"no GE operator: {reason}")
        else:
            form, subject = RegistrationForm.OP, prototype.op_type
            arguments = dict(bound.arguments)
            sources = (prototype.file,)
            self.evidence.append(f"prototype: {prototype.place}; {bound.evidence}")
            named = [None if r.output is None else prototype.outputs[r.output].name for r in bound.binding.returns]
            relation = self.renamed(kernel, computed, meta, described, relation, named)
        if relation is None and not self.metas:
            return self.left(
                State.UNDECIDED, f"no meta function, and the shape of its outputs is not certain: {why}",
                form=form, subject=subject, eager=_eager(self.schema), arguments=arguments, sources=sources,
            )  # fmt: skip
        if relation is None:
            self.evidence.append(f"meta kept: {self.metas[0].place}; {why}")
        if relation == "->" and not any(a.mutated for a in self.schema.arguments):
            self.evidence.append("the schema says that nothing is written, so that torch.compile drops calls")
        first = self.definitions[0]
        return Decision(
            self.name,
            State.WITH_ARGUMENTS if arguments else State.BY_NAMES,
            form,
            subject,
            _eager(self.schema),
            relation,
            arguments,
            bool(self.metas) and relation is not None,
            tuple(self.evidence),
            "",
            str(first.place),
            first.conditions if len(self.definitions) == 1 else (),
            sources,
            self.replaced(),
            bool(self.metas),
        )

    # -------------------------------------------------------------------------------------------------------- relations

    def relation(
        self, kernel: Implementation | None, computed: Outcome, meta: Implementation | None, described: Outcome
    ) -> tuple[str | None, str]:
        """Return the relation and, if there is none, the reason."""
        if not self.schema.returns:
            return "->", ""
        names = output_names(self.schema)
        found: dict[str, str] = {}
        why = "its kernel is not found" if kernel is None else ""
        for one, outcome, what in ((kernel, computed, "kernel"), (meta, described, "meta")):
            if one is None:
                continue
            try:
                found[what] = relation_of(outcome, self.schema, names)
            except UncertainError as reason:
                why = why or str(reason)
        if "kernel" in found and "meta" in found:
            assert kernel is not None
            assert meta is not None
            same = without_strides(computed.returned) == without_strides(described.returned)
            if not same and is_known(described.returned):
                self.evidence.append(f"the meta function at {meta.place} says otherwise: {found['meta']}")
        if "kernel" in found:
            assert kernel is not None
            self.evidence.append(f"shape: what the kernel allocates, {_place(kernel)}")
            return found["kernel"], ""
        if "meta" in found:
            assert meta is not None
            self.evidence.append(f"shape: the meta function, {_place(meta)}")
            return found["meta"], ""
        return None, why or "neither a kernel nor a meta function is found"

    def renamed(
        self,
        kernel: Implementation | None,
        computed: Outcome,
        meta: Implementation | None,
        described: Outcome,
        relation: str | None,
        names: list[str | None],
    ) -> str | None:
        """Return the relation with the prototype's names of outputs."""
        if relation is None or relation == "->" or None in names:
            return relation
        taken = {a.name for a in self.schema.arguments}
        proper = [name if name not in taken else f"{name}_out" for name in names if name is not None]
        for one, outcome in ((kernel, computed), (meta, described)):
            if one is not None:
                try:
                    if relation_of(outcome, self.schema, output_names(self.schema)) == relation:
                        return relation_of(outcome, self.schema, proper)
                except UncertainError:
                    continue
        return relation

    # --------------------------------------------------------------------------------------------------------- binding

    def bound(self, kernel: Implementation | None, computed: Outcome) -> tuple[GeBinding, OpPrototype]:
        """Return the binding to a prototype.

        Raises:
            NoBindingError: There is no prototype, or it is not certain that the operator is the one.
        """
        stated: dict[str, str] = {}
        if not self.schema.returns and not any(a.mutated for a in self.schema.arguments):
            raise NoBindingError(
                "a GE graph drops a node that neither returns nor writes; write Tensor(a!) in the schema first"
            )
        if kernel is None or not isinstance(kernel.function, CppFunction):
            if len(self.converters) == 1 and self.converters[0].op_type:
                converter = self.converters[0]
                prototype = self.known.prototype(converter.op_type)
                if prototype is None:
                    raise NoBindingError(
                        f"no prototype of {converter.op_type}, which the converter at {converter.place} adds"
                    )
                self.evidence.append(f"converter: {converter.place}")
                stated, constants = converter.pairs, converter.constants
                return bind_to_prototype(self.schema, prototype, None, Outcome(), stated, constants), prototype
            raise NoBindingError(
                "its kernel is not C++ that is found here" if kernel is None else "its kernel is Python"
            )
        functions, launches = reached(kernel.function, self.findings)
        if len(functions) > 1:
            raise NoBindingError(f"{_place(kernel)} calls {len(functions)} functions: {', '.join(sorted(functions))}")
        if not functions:
            if launches:
                raise NoBindingError(
                    f"{_place(kernel)} launches {', '.join(sorted(launches)[:3])}; name a prototype with register_op"
                )
            raise NoBindingError(f"{_place(kernel)} calls no aclnn function")
        if launches:
            raise NoBindingError(
                f"{_place(kernel)} calls {', '.join(functions)} and launches {', '.join(sorted(launches)[:3])}"
            )
        (name,) = functions
        prototype = self.known.prototype(name.removeprefix("aclnn"))
        function = self.known.function(name)
        if prototype is None:
            raise NoBindingError(
                f"{name} is called, and no prototype of {name.removeprefix('aclnn')} is in this repository"
            )
        if not any(called == name for called, _ in computed.calls):
            raise NoBindingError(f"the call of {name} is not one that is understood")
        if self.converters:
            stated = self.converters[0].pairs
        return bind_to_prototype(self.schema, prototype, function, computed, stated), prototype


def _order(implementation: Implementation) -> int:
    return KERNEL_KEYS.index(implementation.key) if implementation.key in KERNEL_KEYS else len(KERNEL_KEYS)


def _place(implementation: Implementation) -> str:
    function = implementation.function
    if isinstance(function, CppFunction):
        return function.place
    return str(function.place if isinstance(function, PythonFunction) else implementation.place)


def _canonical(schema: OpSchema) -> Any:
    return schema.name, schema.overload, schema.arguments, schema.returns


def _eager(schema: OpSchema) -> str:
    namespace, _, name = schema.name.partition("::")
    return f"torch.ops.{namespace}.{name}" + (f".{schema.overload}" if schema.overload else "")


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


def helpers_of(function: CppFunction, findings: Findings) -> list[CppFunction]:
    """Return the functions of the repository that a function calls, and those that they call."""
    found: list[CppFunction] = []
    seen = {function.name}

    def visit(one: CppFunction, depth: int) -> None:
        for called in dict.fromkeys(_CALLED.findall(one.body)):
            helper = findings.function(called, one.file)
            if helper is not None and helper.name not in seen:
                seen.add(helper.name)
                found.append(helper)
                if depth < _MAX_DEPTH:
                    visit(helper, depth + 1)

    visit(function, 1)
    return found


def reached(function: CppFunction, findings: Findings) -> tuple[set[str], set[str]]:
    """Return the aclnn functions and the kernels that a function and its helpers call."""
    functions: set[str] = set()
    launches: set[str] = set()
    for one in (function, *helpers_of(function, findings)):
        functions.update(match["function"] for match in _ACLNN.finditer(one.body) if match["function"])
        texts = findings.constants.get(one.file, {})
        for match in re.finditer(r"<\s*([A-Z][A-Z0-9_]*)\s*>\s*\(", one.body):
            value = getattr(texts.get(match[1]), "value", None)
            if isinstance(value, str) and value.startswith("aclnn"):
                functions.add(value)
        launches.update(next(part for part in match.groups() if part) for match in _LAUNCH.finditer(one.body))
    return functions, launches


def _bound_function(one: Implementation, findings: Findings, known: Known) -> Decision | None:
    """Return the decision on a function that Python calls without a schema; None if it calls no aclnn function."""
    if not isinstance(one.function, CppFunction):
        return None
    functions, launches = reached(one.function, findings)
    if not functions and not launches:
        return None
    name, place = f"(pybind) {one.name}", str(one.place)
    evidence = [f"bound without a schema: {place}"]
    function = one.function
    span = ((function.file, function.line, function.last_line),)
    if launches or len(functions) != 1:
        what = ", ".join(sorted({*functions, *launches})[:3])
        return Decision(
            name, State.IMPOSSIBLE, reason=f"it has no schema, and launches {what}: define one with TORCH_LIBRARY", place=place,
            replaced=span, evidence=tuple(evidence),
        )  # fmt: skip
    (called,) = functions
    text = schema_of(f"ascend::{one.name}", function)
    schema, prototype, declared, missing = None, None, None, ""
    try:
        schema = None if text is None else _named(parse_schema(text), function)
        prototype, declared = known.prototype(called.removeprefix("aclnn")), known.function(called)
    except (SchemaTextError, NoBindingError) as error:
        missing = str(error)
    form = RegistrationForm.OP if prototype is not None else RegistrationForm.ACLNN
    source = prototype or declared
    if not missing and schema is None:
        missing = f"a schema has no type for one of its C++ types, at {function.place}: define one with TORCH_LIBRARY"
    elif not missing and source is None:
        missing = f"{called}: neither a prototype nor a header of it is in this repository"
    if schema is None or source is None:
        return Decision(name, State.UNDECIDED, reason=missing, place=place, replaced=span, evidence=tuple(evidence))
    outcome = outcome_of(function, schema, findings)
    subject = prototype.op_type if prototype is not None else called
    try:
        if prototype is None or declared is not None:
            raise UncertainError("its declaration and its prototype name the outputs")
        bound = bind_to_prototype(schema, prototype, declared, outcome, {})
        names = [None if r.output is None else prototype.outputs[r.output].name for r in bound.binding.returns]
        if (
            bound.arguments
            or None in names
            or bound.binding.argument_names() != {n: n for n in bound.binding.argument_names()}
        ):
            raise UncertainError("its arguments have other names than the prototype's")
        relation = _function_relation(prototype, outcome, schema, [str(n) for n in names])
    except (UncertainError, NoBindingError) as reason:
        return Decision(
            name, State.UNDECIDED, form, subject, reason=f"it has no schema; {reason}", place=place, replaced=span,
            evidence=tuple(evidence), sources=(source.file,),
        )  # fmt: skip
    shape = "" if relation is None else f"; shape: what the kernel allocates, {function.place}"
    evidence.append(f"prototype: {source.place}{shape}")
    return Decision(
        name,
        State.BY_NAMES,
        form,
        subject,
        "",
        relation,
        {},
        False,
        tuple(evidence),
        "",
        place,
        (),
        (source.file,),
        span,
    )


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
    from dataclasses import replace

    arguments = tuple(replace(a, name=p.name) for a, p in zip(schema.arguments, function.parameters, strict=True))
    return replace(schema, arguments=arguments)


def arguments_text(arguments: Mapping[str, Any]) -> str:
    """Return ``arguments=`` as Python code.

    >>> print(arguments_text({"self": "x", "->": ("y", "z"), "stride": Code("lambda arguments: 1")}))
    {"self": "x", "->": ("y", "z"), "stride": lambda arguments: 1}
    """
    return f"{{{', '.join(f'{literal(key)}: {literal(value)}' for key, value in arguments.items())}}}"


def literal(value: Any) -> str:
    """Return a value as Python code; strings are in double quotes where nothing needs to be escaped.

    >>> print(literal("x -> y"), literal('mode == "BSND"'), literal(("y",)))
    "x -> y" 'mode == "BSND"' ("y",)
    """
    if isinstance(value, Code):
        return value.text
    if isinstance(value, tuple):
        return f"({', '.join(map(literal, value))}{',' if len(value) == 1 else ''})"
    shown = repr(value)
    plain = isinstance(value, str) and shown.startswith("'") and '"' not in shown and "\\'" not in shown
    return f'"{shown[1:-1]}"' if plain else shown


def count(decisions: Iterable[Decision], state: State) -> int:
    """Return the number of decisions in a state."""
    return sum(one.state is state for one in decisions)
