"""Request → everything that one registration needs, computed and checked before anything is changed."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from ascend_graph.binding import BindingError, Call
from ascend_graph.binding.arguments import bind
from ascend_graph.binding.bound import Binding
from ascend_graph.binding.dtype_ints import Numbers
from ascend_graph.binding.dtypes import dtype_number
from ascend_graph.binding.errors import BindingWarning, CannMismatchWarning, EagerError
from ascend_graph.binding.installed import check_function, prototype_difference
from ascend_graph.binding.op_schema import read_schema
from ascend_graph.dispatch.definition import Definition
from ascend_graph.dispatch.fake import MetaHandle, check_takes_meta, existing_meta, register_meta
from ascend_graph.dispatch.meta import MetaFunction, meta_function
from ascend_graph.dispatch.transaction import Change, Entry
from ascend_graph.eager.operators import PlannedOperator, operator_exists, plan_call, plan_operator
from ascend_graph.inference import infer_relation
from ascend_graph.registration.autograd import Find, gradient_of, register_gradient
from ascend_graph.registration.batching import register_batching
from ascend_graph.registration.comparison import beside
from ascend_graph.registration.converter import make_converter
from ascend_graph.registration.cost import CostModel, register_flops
from ascend_graph.registration.functionalize import needs_twin, register_twin
from ascend_graph.registration.loops import Loops, read_loops
from ascend_graph.registration.request import RegistrationError, Request
from ascend_graph.registration.sharding import register_sharding_rule
from ascend_graph.registration.torchair import (
    ConverterFunction,
    ConverterHandle,
    existing_converter,
    register_converter,
)
from ascend_graph.registration.without_gradient import say_so_in_graphs
from ascend_graph.shapes import Relation
from ascend_graph.shapes.syntax import Itself


@dataclass(slots=True, eq=False)
class Changes:
    """The changes of one registration, by what they are; None where it makes none of that kind."""

    definition: Definition | None = None
    kernels: tuple[Change, ...] = ()
    meta: Entry | None = None
    converter: Entry | None = None
    twin: Entry | None = None
    gradient: Change | None = None
    batching: Entry | None = None
    sharding: Entry | None = None
    cost: Entry | None = None

    def __iter__(self) -> Iterator[Change]:
        """In the order in which they are put in force."""
        every = (self.definition, *self.kernels, self.meta, self.converter, self.twin, self.gradient)
        every += (self.batching, self.sharding, self.cost)
        return (change for change in every if change is not None)


@dataclass(slots=True)
class Plan:
    """What one registration decided, and the changes that put it in force."""

    request: Request
    binding: Binding
    relation: Relation | None
    converter: ConverterFunction | None
    changes: Changes
    #: In words, where the meta function, the converter and the gradient come from.
    evidence: dict[str, str] = field(default_factory=dict)
    #: How the aclnn function is called; None where the operator's kernel is its own.
    call: Call | None = None
    #: The dimensions that are declared independent or reduced, in the schema's names; None where nothing is declared.
    loops: Loops | None = None

    @property
    def overload(self) -> Any:
        """The operator; None before the change that defines it."""
        definition = self.changes.definition
        return self.request.overload if definition is None else definition.overload

    def cost_model(self) -> CostModel | None:
        """What tells a call's cost, in the schema's names, with every output that it writes; None without a relation."""
        if self.relation is None:
            return None
        relation = in_schema_names(self.request.op_type, self.relation, self.binding)
        return CostModel(self.request.operator, relation, self.overload._schema, self.request.flops)


def plan(request: Request, earlier: Plan | None, override: bool, find: Find | None = None) -> Plan:
    """Decide and check everything that a registration needs; nothing is changed.

    Args:
        request: What is asked for.
        earlier: What is in force for the operator, and is replaced.
        override: Whether what others have registered may be replaced.
        find: What finds registered operators by name, for ``backward="OpType"``.

    Raises:
        AscendGraphError: what is asked for cannot be; see :func:`~ascend_graph.registration.register.register_op`.
    """
    return _Planner(request, earlier, override, find).plan()


class _Planner:
    def __init__(self, request: Request, earlier: Plan | None, override: bool, find: Find | None) -> None:
        self.request, self.override, self.find = request, override, find
        self.before = Changes() if earlier is None else earlier.changes
        self.changes = Changes()
        self.relation = request.shape
        self.evidence: dict[str, str] = {}

    def plan(self) -> Plan:
        request = self.request
        defined = self.plan_operator() if request.overload is None else None
        schema = request.overload._schema if defined is None else defined.torch_schema
        bound_to_own = defined is not None and defined.schema.prototype is request.prototype
        self.binding = bind(
            read_schema(schema),
            request.prototype,
            request.arguments,
            relation=self.relation,
            own=defined.schema if defined is not None and bound_to_own else None,
            complete=request.converter is None,
        )
        if defined is None:
            self.plan_meta()
        self.compare_with_installed(None if defined is None else defined.call)
        converter = self.plan_converter()
        self.plan_twin()
        self.plan_gradient()
        loops = self.plan_loops(schema)
        call = None if defined is None else defined.call
        return Plan(request, self.binding, self.relation, converter, self.changes, self.evidence, call, loops)

    # --------------------------------------------------------------------------------------------- independent dimensions

    def plan_loops(self, schema: torch.FunctionSchema) -> Loops | None:
        """What is declared of dimensions, and what follows: rules of vmap and of DTensor, and the number of operations."""
        request = self.request
        if request.batch is None and not request.reduce and request.flops is None:
            return None
        if self.relation is None:
            raise RegistrationError(
                f"{request.op_type}: batch=, reduce= and flops= speak of the dimensions of a shape relation, and there is none: pass shape="
            )
        relation = in_schema_names(request.op_type, returned_outputs(self.relation, self.binding), self.binding)
        if request.flops is not None:
            counted = CostModel(request.operator, relation, schema, request.flops)
            self.changes.cost = Entry(lambda: register_flops(self.overload, counted), stacks=False)
            self.evidence["flops"] = request.flops
        if request.batch is None and not request.reduce:
            return None
        if any(a.alias_info is not None and a.alias_info.is_write for a in schema.arguments):
            raise RegistrationError(
                f"{request.op_type}: {request.operator} writes to its arguments; batch= and reduce= are for others"
            )
        loops = read_loops(request.operator, relation, request.batch or (), request.reduce)
        if request.batch is not None:
            self.changes.batching = Entry(lambda: register_batching(self.overload, loops), stacks=False)
        self.changes.sharding = Entry(lambda: register_sharding_rule(self.overload, loops), stacks=False)
        return loops

    @property
    def overload(self) -> Any:
        """The operator, once it is defined."""
        definition = self.changes.definition
        return self.request.overload if definition is None else definition.overload

    def compare_with_installed(self, call: Call | None) -> None:
        """What the installed CANN says of the op and of its function, where that is not what the operator is bound to.

        Raises:
            CannMismatchError: calls of the function would corrupt memory.
        """
        request = self.request
        found = [prototype_difference(request.prototype)] if request.in_graphs else []
        found += [check_function(call.declared)] if call is not None and call.declared is not None else []
        differences = [difference for difference in found if difference is not None]
        for difference in differences:
            if difference.breaks:
                warnings.warn(f"{difference}. Write: {difference.mend}", CannMismatchWarning, stacklevel=6)
        if differences:
            self.evidence["CANN"] = ". ".join(map(str, differences))

    # ------------------------------------------------------------------------------------------------------- operator

    def plan_operator(self) -> PlannedOperator:
        """The operator that registering defines: its schema, meta function and kernel."""
        request, declared = self.request, self.request.declared
        if declared is not None:
            namespace = request.operator.partition("::")[0]
            planned = plan_call(declared.schema, declared.call, request.meta or request.shape, namespace=namespace)
            self.evidence["schema"] = "the one given" if declared.schema.text else "made from the declaration"
        else:
            planned = plan_operator(
                request.prototype,
                request.meta or request.shape,
                numbers=self.numbers(),
                aclnn=request.aclnn,
                aclnn_arguments=request.aclnn_arguments,
            )
        definition = self.before.definition
        if definition is None and operator_exists(planned.name):
            way = "give another name=" if declared is not None else "pass it as eager="
            raise EagerError(f"{planned.name} exists already; {way}, or remove it first")
        if definition is None or definition.schema != str(planned.schema):
            definition = planned.definition()
        self.changes.definition = definition
        self.changes.kernels = planned.kernels(definition)
        self.changes.gradient = planned.without_gradient(definition)
        self.evidence["eager"] = f"{planned.call.function}, {planned.call.source}"
        given = "the function given" if request.meta is not None else f"the relation given: {request.shape}"
        self.evidence["meta"] = given if planned.schema.returns else "outputs that are inputs"
        return planned

    def numbers(self) -> dict[str, Numbers]:
        """What ``arguments=`` says of the operator that registering defines: no more than whose numbers an Int attr takes.

        The kernel is made from the prototype alone: any other conversion would be the converter's only.
        """
        prototype = self.request.prototype
        known = {p.name for p in prototype.inputs} | {a.name for a in prototype.attrs}
        said: dict[str, Numbers] = {}
        for name, value in self.request.arguments.items():
            match value:
                case (target, hook) if target == name and (hook is dtype_number or hook is int):
                    said[name] = Numbers.TORCH if hook is dtype_number else Numbers.GE
                case _ if name in known and value != name:
                    raise RegistrationError(
                        f"{prototype.op_type}: arguments={{{name!r}: {value!r}}}: without eager= the operator is made from the "
                        f"prototype, and all that can be said of an argument is whose numbers of dtypes it takes: ({name!r}, "
                        f"ascend_graph.dtype_number) or ({name!r}, int)"
                    )
        return said

    # ----------------------------------------------------------------------------------------------------------- meta

    def plan_meta(self) -> None:
        request, overload = self.request, self.request.overload
        wanted, source = request.meta, "the function given"
        if self.relation is not None:
            relation = returned_outputs(self.relation, self.binding)
            checked = self.meta_function(relation, relation_names(self.request.op_type, relation, self.binding))
            if wanted is None and not request.keep_meta:
                wanted, source = checked, f"the relation given: {self.relation}"
        existing = self.existing_meta()
        if wanted is None:
            if existing is not None:
                self.evidence["meta"] = f"kept: {existing}"
                return
            if request.keep_meta:
                raise RegistrationError(f'{overload} has no meta function to keep: leave meta="kept" out')
            wanted, source = self.infer()
        elif existing is not None and not self.override:
            raise RegistrationError(
                f"{overload} has a meta function already ({existing}): leave shape= and meta= out to keep it, or pass "
                "override=True to replace it"
            )
        check_takes_meta(overload)
        function = wanted
        self.changes.meta = Entry(lambda: register_meta(overload, function, override=True))
        self.evidence["meta"] = source

    def existing_meta(self) -> str | None:
        """Where the meta function of others comes from, if there is one."""
        ours = None if self.before.meta is None else self.before.meta.handle
        if isinstance(ours, MetaHandle) and ours.on_top:
            return ours.before
        return existing_meta(self.request.overload)

    def infer(self) -> tuple[MetaFunction, str]:
        overload = self.request.overload
        on_npu = torch._C._dispatch_has_kernel_for_dispatch_key(overload.name(), "PrivateUse1")
        inferred = infer_relation(
            overload, overload._schema, samples=self.request.samples, device="npu" if on_npu else "cpu"
        )
        self.relation = inferred.relation
        self.binding = self.binding.with_relation(inferred.relation)
        ran = f"found by {inferred.runs} runs of the eager kernel" if inferred.runs else "outputs that are inputs"
        notes = "".join(f"; {note}" for note in (inferred.narrower, *inferred.strides) if note)
        return self.meta_function(inferred.relation), f"{ran}: {inferred.relation}{notes}"

    def meta_function(self, relation: Relation, names: Mapping[str, str] | None = None) -> MetaFunction:
        ges = self.binding.ge_dtype_arguments()
        return meta_function(relation, self.request.overload._schema, names, ge_numbers=ges)

    def plan_converter(self) -> ConverterFunction | None:
        request = self.request
        existing = self.existing_converter()
        if request.converter is not None:
            if existing is not None and not self.override:
                raise RegistrationError(
                    f"{request.overload} has a converter already ({_qualified(existing)}): leave "
                    "converter= out to keep it, or pass override=True to replace it"
                )
            self.evidence["converter"] = "the function given"
            converter = request.converter
        elif existing is not None and not self.override:
            self.evidence["converter"] = f"kept: {_qualified(existing)}"
            return None
        elif not request.in_graphs:
            self.evidence["converter"] = "none: no op_type= says which GE operator it is; aclgraph needs none"
            return None
        else:
            self.evidence["converter"] = "made from the binding"
            if existing is not None:
                self.evidence["converter"] += f"; its nodes are compared with those of {_qualified(existing)}"
            converter = make_converter(self.binding)
            for doubt in self.binding.doubts:
                warnings.warn(doubt, BindingWarning, stacklevel=6)

        def around(ours: ConverterFunction) -> ConverterFunction:
            """What says where a converter made from the binding differs from the one that it replaces."""
            if existing is None or request.converter is not None:
                return ours
            return beside(ours, existing, request.operator, request.prototype)

        self.changes.converter = Entry(
            lambda: register_converter(self.overload, converter, override=True, around=around)
        )
        say_so_in_graphs()
        return converter

    def existing_converter(self) -> Any:
        """The converter of others, if there is one."""
        if self.request.overload is None:
            return None
        ours = None if self.before.converter is None else self.before.converter.handle
        if isinstance(ours, ConverterHandle) and ours.on_top:
            return ours.before
        return existing_converter(self.request.overload)

    # ----------------------------------------------------------------------------------------------- twin and gradient

    def plan_twin(self) -> None:
        overload, request, binding = self.request.overload, self.request, self.binding
        # Ours makes room for another one.
        if overload is not None and (self.before.twin is not None or needs_twin(overload, binding.schema)):
            self.changes.twin = Entry(lambda: register_twin(overload, binding, request.converter), stacks=False)

    def plan_gradient(self) -> None:
        if self.request.backward is None:
            return
        gradient = gradient_of(self.request.backward, self.binding, self.relation, self.find)
        self.evidence["gradient"] = gradient.description
        self.changes.gradient = Entry(lambda: register_gradient(self.overload, gradient), stacks=False)


def relation_names(op_type: str, relation: Relation, binding: Binding) -> dict[str, str]:
    """From schema names to the relation's, which speaks either the prototype's names or the schema's."""
    ge_names = binding.argument_names()
    mentioned = {*relation.inputs, *relation.free_names}
    own = {argument.name for argument in binding.schema.arguments}
    if mentioned <= set(ge_names.values()):
        return ge_names
    if mentioned <= own:
        return {}
    strangers = sorted(mentioned - set(ge_names.values()) - own)
    raise BindingError(
        f"{op_type}: the relation {relation} mentions {', '.join(strangers or sorted(mentioned))}; use "
        f"the prototype's names ({', '.join(ge_names.values())}) or the schema's ({', '.join(sorted(own))}), not a mix"
    )


def in_schema_names(op_type: str, relation: Relation, binding: Binding) -> Relation:
    """The relation with the inputs and attrs called as in the schema."""
    names = {theirs: own for own, theirs in relation_names(op_type, relation, binding).items() if own != theirs}
    return relation.renamed(names)


def returned_outputs(relation: Relation, binding: Binding) -> Relation:
    """The relation without the outputs that the schema writes over its arguments and does not return."""
    schema, names = binding.schema, binding.argument_names()
    returned = {output.alias_of for output in schema.returns}
    written = [a.name for a in schema.arguments if a.mutated and a.name not in returned]
    hidden = {name for n in written for name in (n, names.get(n, n))}
    kept = [
        tensor
        for tensor in relation.output_tensors
        if tensor.name not in hidden or not all(isinstance(a.shape, Itself) for a in tensor.alternatives)
    ]
    return replace(relation, output_tensors=tuple(kept))


def _qualified(function: Any) -> str:
    return f"{function.__module__}.{function.__qualname__}"
