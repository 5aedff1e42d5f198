"""One decision an operator: how it is registered, from which evidence, or why it is not."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import replace
from typing import Any

from ascend_graph.adoption.bound.definitions import BoundOperator, bound_operators
from ascend_graph.adoption.bound.gradient_decisions import with_gradients
from ascend_graph.adoption.bound.writes import NOT_FOR_NPU
from ascend_graph.adoption.cpp.calls import commands_of, helpers_of, reached
from ascend_graph.adoption.cpp.functions import CppFunction
from ascend_graph.adoption.decision import Decision, RegistrationForm, State
from ascend_graph.adoption.evidence import outcome_of
from ascend_graph.adoption.ge_binding import GeBinding, NoBindingError, bind_to_prototype
from ascend_graph.adoption.implementations import (
    first_of,
    kernel_order,
    miscounted,
    place_of,
    report_crossed,
    report_foreign,
)
from ascend_graph.adoption.interpreter.evaluation import RAISED, Outcome
from ascend_graph.adoption.interpreter.values import is_known, without_strides
from ascend_graph.adoption.known import Known
from ascend_graph.adoption.model import (
    OTHER_DEVICES,
    Definition,
    Findings,
    HandWrittenConverter,
    Implementation,
)
from ascend_graph.adoption.outputs.input_patterns import UncertainError, comes_from_data
from ascend_graph.adoption.outputs.meta_functions import meta_function_of
from ascend_graph.adoption.outputs.relations import output_names, relation_of, undeclared_aliases, with_own_dtypes
from ascend_graph.adoption.unstated_writes import unstated_writes
from ascend_graph.binding.op_schema import ArgumentKind, OpSchema
from ascend_graph.prototypes import OpPrototype
from ascend_graph.shapes import RelationError


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
        _Decider(findings, known, name, same, implementations.get(name, []), converters.get(name, [])).decide()
        for name, same in sorted(by_name.items())
    ]
    bound = [(one, _decide_bound(one, findings, known)) for one in bound_operators(findings, known)]
    found += with_gradients(bound, known)
    report_foreign(implementations, findings)
    return sorted(found, key=lambda one: one.name)


def _decide_bound(one: BoundOperator, findings: Findings, known: Known) -> Decision:
    """Return the decision on an operator made from a bound function."""
    if one.definition is None or one.implementation is None:
        return Decision(
            one.name, State.UNDECIDED, evidence=(f"bound without a schema: {one.bound.place}",), reason=one.reason,
            place=str(one.bound.place), conditions=one.bound.conditions,
        )  # fmt: skip
    name = one.definition.schema.qualified_name
    decider = _Decider(findings, known, name, [one.definition], [one.implementation], [])
    decider.evidence[:] = one.evidence
    decision = decider.decide()
    if one.reason and decision.state is not State.IMPOSSIBLE:
        state = State.IMPOSSIBLE if one.reason.endswith(NOT_FOR_NPU) else State.UNDECIDED
        decision = replace(decision, state=state, reason=one.reason)
    return replace(decision, defined_from=(one.definition.schema.text, one.definition.computed_by))


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
        kernels = sorted((one for one in implementations if not one.is_meta), key=kernel_order)
        self.kernels = [one for one in kernels if one.key not in OTHER_DEVICES] or kernels
        self.metas = [one for one in implementations if one.is_meta]
        #: Schema of an operator that stands for this one, if its own does not say what it writes.
        self.marked: OpSchema | None = None
        #: How the meta function contradicts the kernel, if sizes come from the data.
        self.wrong_meta = ""
        self.evidence = [f"schema: {definitions[0].place}"]
        self.implementations = implementations
        stated = [one.place for one in implementations if one.key.startswith("Autograd")]
        stated += [findings.gradients[name]] if name in findings.gradients else []
        self.evidence += [f"gradient: the library's own, which stays: {place}" for place in stated[:1]]

    def decide(self) -> Decision:
        schema = self.schema
        texts = {_canonical(one.schema) for one in self.definitions}
        if len(texts) > 1:
            places = " and ".join(str(one.place) for one in self.definitions)
            return self.left(State.UNDECIDED, f"its schema is defined differently at {places}")
        if self.kernels and not self.metas and all(one.key in OTHER_DEVICES for one in self.kernels):
            first = self.kernels[0]
            return self.left(State.IMPOSSIBLE, f"its kernel at {first.place} is for {first.key}: {NOT_FOR_NPU}")
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
            has_meta=bool(self.metas), defined_from=self.defined_from(), schema=first.schema.text, **more,
        )  # fmt: skip

    def eager(self) -> str:
        """Return the operator as Python writes it; one of several overloads has the name of the overload."""
        own = self.definitions[0].schema
        namespace, _, name = own.name.partition("::")
        overloads = {one.schema.overload for one in self.findings.definitions if one.name == own.name}
        overload = own.overload or ("default" if len(overloads) > 1 or own.name in self.findings.more_overloads else "")
        return f"torch.ops.{namespace}.{name}" + (f".{overload}" if overload else "")

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

    def facts(self, implementation: Implementation) -> object:
        """Return what is taken from an implementation."""
        outcome = self.outcome(implementation)
        writes = unstated_writes(self.definitions[0], implementation, outcome, self.findings, self.known)
        return outcome.returned, outcome.calls, outcome.ranks, outcome.read, outcome.filled, writes

    def read(self) -> tuple[Implementation | None, Implementation | None, str]:
        """Return the kernel and the meta function that are read, and the reason why the kernel is not certain."""
        if self.kernels and self.kernels[0].key in OTHER_DEVICES:
            self.evidence.append(f"its kernel at {self.kernels[0].place} is for {self.kernels[0].key}: not read")
            self.kernels = []
        kernel, places = first_of(self.kernels, self.facts)
        if places:
            return None, None, f"its kernels at {places} differ, and one of them is built; adopt one directory"
        meta, places = first_of(self.metas, lambda one: self.outcome(one).returned)
        if places:
            self.evidence.append(f"its meta functions at {places} differ: not read")
        return kernel, None if places else meta, ""

    def registered(self) -> Decision:
        kernel, meta, reason = self.read()
        if reason:
            return self.left(State.UNDECIDED, reason)
        computed, described = self.outcome(kernel), self.outcome(meta)
        if computed.returned is RAISED and kernel is not None and not self.metas:
            return self.left(State.IMPOSSIBLE, f"its kernel only raises, {place_of(kernel)}")
        if reason := self.unstated(kernel, computed):
            return self.left(
                State.UNDECIDED, reason, eager=self.eager(), relation=None if self.schema.returns else "->"
            )
        relation, why = self.relation(kernel, computed, meta, described)
        arguments: dict[str, Any] = {}
        form, subject = RegistrationForm.KERNEL, ""
        sources: tuple[str, ...] = ()
        try:
            bound, prototype = self.bound(kernel, computed)
            named = [None if r.output is None else prototype.outputs[r.output].name for r in bound.binding.returns]
            relation = with_own_dtypes(self.renamed(kernel, computed, meta, described, relation, named), prototype)
        except (NoBindingError, RelationError) as reason:
            self.evidence.append(f"no GE operator: {str(reason).splitlines()[0]}")
        else:
            form, subject = RegistrationForm.OP, prototype.op_type
            arguments = dict(bound.arguments)
            sources = (prototype.file,)
            self.evidence.append(f"prototype: {prototype.place}; {bound.evidence}")
            self.evidence += report_crossed(arguments, self.definitions[0], prototype, self.findings)
        written: tuple[str, ...] = ()
        if relation is None and not self.metas and kernel is not None:
            written, why = self.meta_function(kernel, computed, why)
        if relation is None and (self.wrong_meta or not self.metas) and not written:
            uncertain = f"no meta function, and the shape of its outputs is not certain: {why}"
            return self.left(
                State.UNDECIDED, self.wrong_meta or miscounted(kernel, self.schema) or uncertain,
                form=form, subject=subject, eager=self.eager(), arguments=arguments, sources=sources,
            )  # fmt: skip
        if relation is None and not written:
            self.evidence.append(f"meta kept: {self.metas[0].place}; {why}")
            written = self.author_meta()
        first = self.definitions[0]
        return Decision(
            self.name,
            State.WITH_ARGUMENTS if arguments else State.BY_NAMES,
            form,
            subject,
            self.eager(),
            relation,
            arguments,
            bool(self.metas) and relation is not None and self.marked is None,
            tuple(self.evidence),
            "",
            str(first.place),
            first.conditions if len(self.definitions) == 1 else (),
            sources,
            self.replaced(),
            bool(self.metas),
            meta=written,
            defined_from=self.defined_from(),
            schema=first.schema.text,
        )

    # ----------------------------------------------------------------------------------------------------------- writes

    def unstated(self, kernel: Implementation | None, computed: Outcome) -> str:
        """Take the schema that marks what the kernel writes and, if that is not certain, return the reason."""
        found = unstated_writes(self.definitions[0], kernel, computed, self.findings, self.known)
        self.marked = found.schema
        if found.reason:
            return found.reason
        self.schema = found.schema or self.schema
        self.evidence += [found.evidence] if found.evidence else []
        return ""

    def defined_from(self) -> tuple[str, str] | tuple[()]:
        return () if self.marked is None else (self.marked.text, "")

    def author_meta(self) -> tuple[str, ...]:
        """Return the lines of a meta function that asks the author's, for an operator that stands for another one."""
        if self.marked is None:
            return ()
        name = "_" + re.sub(r"\W+", "_", self.name.partition("::")[2])
        return f"def {name}(*args, **kwargs):", f"    return {self.eager()}(*args, **kwargs)"

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
        if "meta" in found and comes_from_data(computed.returned):
            assert meta is not None
            self.wrong_meta = f"the meta function at {meta.place} says {found['meta']}, and {why}"
            return None, why
        if "kernel" in found and meta is not None and "meta" not in found and self.marked is not None:
            # It returns no argument, as the author's schema says.
            with suppress(UncertainError):
                found["meta"] = relation_of(described, self.definitions[0].schema, names)
        if "kernel" in found and "meta" in found:
            assert meta is not None
            same = without_strides(computed.returned) == without_strides(described.returned)
            if not same and is_known(described.returned):
                self.evidence.append(f"the meta function at {meta.place} says otherwise: {found['meta']}")
        if "kernel" in found:
            assert kernel is not None
            self.evidence += undeclared_aliases(computed, self.schema)
            self.evidence.append(f"shape: what the kernel allocates, {place_of(kernel)}")
            return found["kernel"], ""
        if "meta" in found:
            assert meta is not None
            self.evidence.append(f"shape: the meta function, {place_of(meta)}")
            return found["meta"], ""
        return None, why or "neither a kernel nor a meta function is found"

    def meta_function(self, kernel: Implementation, computed: Outcome, why: str) -> tuple[tuple[str, ...], str]:
        """Return the lines of a meta function for what a kernel allocates and, if there is none, the reason."""
        name = "_" + re.sub(r"\W+", "_", self.name.partition("::")[2])
        try:
            lines = meta_function_of(computed, self.schema, name)
        except UncertainError as reason:
            return (), f"{why}; in Python: {reason}" if str(reason) not in why else why
        self.evidence.append(f"meta function: what the kernel allocates, {place_of(kernel)}; as a relation: {why}")
        return tuple(lines), ""

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
        if not self.schema.returns and not any(a.mutated for a in self.schema.arguments):
            raise NoBindingError("a GE graph drops a node that neither returns nor writes")
        computing = None if kernel is None else kernel.function
        names = () if kernel is None else self.findings.bound_by(kernel.function)
        called = {name: self.findings.bound(name) for name in names}
        if len(called) == 1:
            (computing,) = called.values()
        if kernel is None or not isinstance(computing, CppFunction):
            if len(self.converters) == 1 and self.converters[0].op_type:
                return self.bound_as_converted()
            raise NoBindingError(
                "its kernel is not C++ that is found here" if kernel is None else "its kernel is Python"
            )
        functions, launches = reached(computing, self.findings)
        if len(functions) > 1:
            raise NoBindingError(f"{place_of(kernel)} calls {len(functions)} functions: {', '.join(sorted(functions))}")
        if not functions:
            if launches:
                raise NoBindingError(
                    f"{place_of(kernel)} launches {', '.join(sorted(launches)[:3])}; name a prototype with register_op"
                )
            commands = sorted(commands_of(computing, self.findings))
            if commands:
                raise NoBindingError(
                    f"{place_of(kernel)} runs {', '.join(commands[:3])} by OpCommand; name a prototype with register_op"
                )
            raise NoBindingError(f"{place_of(kernel)} calls no aclnn function")
        if launches:
            raise NoBindingError(
                f"{place_of(kernel)} calls {', '.join(functions)} and launches {', '.join(sorted(launches)[:3])}"
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
        stated = self.converters[0].pairs if self.converters else {}
        return bind_to_prototype(self.schema, prototype, function, computed, stated), prototype

    def bound_as_converted(self) -> tuple[GeBinding, OpPrototype]:
        """Return the binding that the author's only converter states."""
        (converter,) = self.converters
        prototype = self.known.prototype(converter.op_type)
        if prototype is None:
            raise NoBindingError(f"no prototype of {converter.op_type}, which the converter at {converter.place} adds")
        self.evidence.append(f"converter: {converter.place}")
        pairs, constants = converter.pairs, converter.constants
        return bind_to_prototype(self.schema, prototype, None, Outcome(), pairs, constants), prototype


def _canonical(schema: OpSchema) -> Any:
    return schema.name, schema.overload, schema.arguments, schema.returns
