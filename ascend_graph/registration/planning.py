"""Planning of a registration from its request: everything is computed and checked before any change."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch

from ascend_graph.autograd.no_gradient import say_so_in_graphs
from ascend_graph.autograd.no_tangent import needs_refusal, register_refusal
from ascend_graph.autograd.register import Find, gradient_of, register_gradient, tangent_of
from ascend_graph.binding import AclnnCall
from ascend_graph.binding.arguments import bind
from ascend_graph.binding.bound import Binding
from ascend_graph.binding.calls.installed import check_function, prototype_difference
from ascend_graph.binding.dtype_ints import Numbers
from ascend_graph.binding.dtypes import dtype_number
from ascend_graph.binding.errors import BindingWarning, CannMismatchWarning, EagerError
from ascend_graph.binding.op_schema import OpSchema, check_keywords, read_schema
from ascend_graph.binding.own_binding import own_binding
from ascend_graph.binding.returns import RETURNS
from ascend_graph.dispatch.data_sizes import with_data_sizes
from ascend_graph.dispatch.fake import MetaHandle, check_signature, check_takes_meta, existing_meta, register_meta
from ascend_graph.dispatch.meta import MetaFunction, meta_function
from ascend_graph.dispatch.meta_dtypes import GeNumber
from ascend_graph.dispatch.torchair import (
    ConverterFunction,
    ConverterHandle,
    check_converter,
    existing_converter,
    refuse_in_graphs,
    register_converter,
)
from ascend_graph.dispatch.transaction import HandleChange
from ascend_graph.eager.operators import operator_exists, plan_call, plan_operator, together
from ascend_graph.eager.plans import PlannedOperator
from ascend_graph.inference import declares_aliases, infer_relation
from ascend_graph.registration.author_answers import AuthorAnswers
from ascend_graph.registration.author_kernel import compare_with_kernel
from ascend_graph.registration.author_meta import (
    argument_types,
    author_meta,
    calls_infer_shape,
)
from ascend_graph.registration.author_shapes import compare_with_author
from ascend_graph.registration.conversion.comparison import beside
from ascend_graph.registration.conversion.converter import make_converter
from ascend_graph.registration.cost import CostModel, register_flops
from ascend_graph.registration.defining import unmarked_operator
from ascend_graph.registration.dimensions.batching import has_batching_rule, needs_loop, register_batching
from ascend_graph.registration.dimensions.independent_dims import IndependentDims, read_independent_dims
from ascend_graph.registration.dimensions.sharding import register_sharding_rule
from ascend_graph.registration.effects import warn_of_effects
from ascend_graph.registration.identity import cache_keys
from ascend_graph.registration.plan import Changes, RegistrationPlan, in_schema_names, relation_names
from ascend_graph.registration.request import RegistrationError, RegistrationRequest
from ascend_graph.registration.triton_ops import is_triton_op, keep_whole
from ascend_graph.registration.writing import graph_passes
from ascend_graph.registration.writing.functional_variant import has_own_rule, register_mutation
from ascend_graph.registration.writing.lazy_bits import register_lazy_bits
from ascend_graph.registration.writing.unstated_writes import keep_calls, stand_in
from ascend_graph.shapes import Relation
from ascend_graph.shapes.data_sizes import DataSizes, data_sizes
from ascend_graph.shapes.declared_dtypes import complete_relation
from ascend_graph.shapes.relation_files import loaded_relation
from ascend_graph.shapes.syntax import Itself


def plan(
    request: RegistrationRequest, earlier: RegistrationPlan | None, override: bool, find: Find | None = None
) -> RegistrationPlan:
    """Plan and check everything that a registration needs, without changing anything.

    Args:
        request: The request.
        earlier: The operator's current registration, which is replaced.
        override: If true, registrations by others may be replaced.
        find: Lookup of registered operators by name, for ``backward="OpType"``.

    Raises:
        AscendGraphError: The request cannot be met; see :func:`~ascend_graph.registration.register.register_op`.
    """
    return _Planner(request, earlier, override, find).plan()


class _Planner:
    def __init__(
        self, request: RegistrationRequest, earlier: RegistrationPlan | None, override: bool, find: Find | None
    ) -> None:
        self.request, self.override, self.find = request, override, find
        self.before = Changes() if earlier is None else earlier.changes
        self.changes = Changes()
        self.relation = request.shape
        #: Sizes of outputs that the relation bounds and only the kernel knows, for an operator that exists.
        self.sizes = self.read_sizes()
        if self.sizes is not None:
            self.relation = None
        #: Meta function that calls InferShape, of an operator that the registration defines.
        self.author_meta: MetaFunction | None = None
        self.author = AuthorAnswers(request.prototype)
        #: Origin of the relation, in words.
        self.origin = "the relation given"
        self.evidence: dict[str, str] = {}

    def plan(self) -> RegistrationPlan:
        request = self.request
        if request.overload is None and request.meta is None and request.declared is None:
            self.take_author_relation()
        defined = self.plan_operator() if request.overload is None else None
        schema = request.overload._schema if defined is None else defined.torch_schema
        if self.relation is not None and RETURNS not in (request.arguments or {}):
            self.relation = self.relation.in_order([value.name for value in schema.returns])
        read = read_schema(schema)
        check_keywords(read)
        self.binding = self.bind(read, defined)
        if request.meta is not None:
            arguments = [(a.name, a.kwarg_only) for a in self.binding.schema.arguments]
            check_signature(self.binding.schema.qualified_name, request.meta, arguments)
        if request.converter is not None:
            check_converter(request.converter, self.binding.schema)
        warn_of_effects(request, self.binding.schema)
        if defined is None:
            self.plan_meta()
        for call in (None,) if defined is None else (defined.call, *(other.call for other in defined.others)):
            self.compare_with_installed(call)
        self.compare_with_author()
        converter = self.plan_converter()
        graph_passes.install_when_loaded()
        cache_keys.install_when_loaded()
        self.plan_mutation()
        self.plan_gradient()
        independent = self.plan_independent_dims(schema)
        call = None if defined is None else defined.call
        return RegistrationPlan(
            request, self.binding, self.relation, converter, self.changes, self.evidence, call, independent
        )

    def read_sizes(self) -> DataSizes | None:
        request = self.request
        if request.shape is None or request.overload is None or request.keep_meta or request.meta is not None:
            return None
        attrs = {attr.name for attr in request.prototype.attrs}
        return data_sizes(request.shape, {*attrs, *(a.name for a in request.overload._schema.arguments)})

    def bind(self, schema: OpSchema, defined: PlannedOperator | None) -> Binding:
        request = self.request
        if request.is_kernel:
            return own_binding(schema, self.relation)
        bound_to_own = defined is not None and defined.schema.prototype is request.prototype
        return bind(
            schema,
            request.prototype,
            request.arguments,
            relation=self.relation,
            own=defined.schema if defined is not None and bound_to_own else None,
            complete=request.converter is None,
        )

    # --------------------------------------------------------------------------------------------- independent dimensions

    def plan_independent_dims(self, schema: torch.FunctionSchema) -> IndependentDims | None:
        """Plan the declared dimensions, with the rules of vmap and DTensor, and the number of operations."""
        request = self.request
        by_author = (
            request.overload is not None and self.before.batching is None and has_batching_rule(request.overload)
        )
        if request.batch is None and not by_author and needs_loop(schema):
            self.changes.batching = HandleChange(lambda: register_batching(self.overload, None), stacks=False)
        if request.batch is None and not request.reduce and request.flops is None:
            return None
        if self.relation is None:
            raise RegistrationError(
                f"{request.op_type}: batch=, reduce= and flops= name dimensions of a shape relation, which is missing: pass shape="
            )
        relation = in_schema_names(request.op_type, returned_outputs(self.relation, self.binding), self.binding)
        if request.flops is not None:
            counted = CostModel(request.operator, relation, schema, request.flops)
            self.changes.cost = HandleChange(lambda: register_flops(self.overload, counted), stacks=False)
            self.evidence["flops"] = request.flops
        if request.batch is None and not request.reduce:
            return None
        if any(a.alias_info is not None and a.alias_info.is_write for a in schema.arguments):
            raise RegistrationError(
                f"{request.op_type}: {request.operator} writes to its arguments; batch= and reduce= are for others"
            )
        named = [a.name for a in schema.arguments if a.kwarg_only and "Tensor" in str(a.type)]
        if request.batch is not None and named:
            raise RegistrationError(
                f"{request.op_type}: batch= of {request.operator}: torch.vmap maps no keyword-only tensors ({', '.join(named)}); "
                "make them positional, or leave batch= out"
            )
        independent = read_independent_dims(request.operator, relation, request.batch or (), request.reduce)
        if request.batch is not None:
            self.changes.batching = HandleChange(lambda: register_batching(self.overload, independent), stacks=False)
        self.changes.sharding = HandleChange(lambda: register_sharding_rule(self.overload, independent), stacks=False)
        return independent

    @property
    def overload(self) -> Any:
        """Overload of the operator; None before the change that defines it."""
        definition = self.changes.definition
        return self.request.overload if definition is None else definition.overload

    def compare_with_installed(self, call: AclnnCall | None) -> None:
        """Warn of differences between the installed CANN and the prototype or declaration of the operator.

        Raises:
            CannMismatchError: Calls of the function would corrupt memory.
        """
        request = self.request
        found = [prototype_difference(request.prototype)] if request.in_graphs else []
        found += [check_function(call.declared)] if call is not None and call.declared is not None else []
        differences = [difference for difference in found if difference is not None]
        for difference in differences:
            if difference.breaks:
                warnings.warn(f"{difference}. Write: {difference.fix}", CannMismatchWarning, stacklevel=6)
        if differences:
            self.evidence["CANN"] = ". ".join(map(str, differences))

    def compare_with_author(self) -> None:
        """Record how far the given relation agrees with the shapes that the installed package infers.

        Raises:
            RegistrationError: They contradict each other.
        """
        request = self.request
        if self.relation is None or request.shape is None or self.sizes is not None or not request.in_graphs:
            if self.author:
                self.author.tell(self.evidence)
            return
        relation = returned_outputs(self.relation, self.binding)
        names = relation_names(request.op_type, relation, self.binding)
        found = compare_with_author(request.prototype, relation, names, self.binding)
        if found is not None:
            self.evidence["InferShape"] = found

    def take_author_relation(self) -> None:
        """Take the relation of a file or of the package's author, if the operator needs one and none is given."""
        prototype = self.request.prototype
        fresh = [p for p in prototype.outputs if p.name not in prototype.in_place]
        if self.relation is not None or not fresh or self.request.samples is not None:
            return
        loaded = loaded_relation(prototype.op_type)
        if loaded is not None:
            self.relation = complete_relation(prototype, loaded.relation, f"the relation of {loaded.place}")
            self.origin = f"the relation of {loaded.place}"
            return
        own = self.request.overload is None
        found = self.author.ask(None if own else argument_types(self.binding))
        self.take_found(found, own)

    def take_found(self, relation: Relation | None, own: bool) -> None:
        """Take a relation of the package's author, with the declared dtypes for an operator that the registration defines."""
        if relation is not None:
            self.relation = complete_relation(self.request.prototype, relation, "InferDataType") if own else relation
            self.origin = self.author.origin

    # ------------------------------------------------------------------------------------------------------- operator

    def plan_operator(self) -> PlannedOperator:
        """Plan the operator that the registration defines: its schema, meta function and kernel."""
        request, declared = self.request, self.request.declared
        if declared is not None:
            namespace = request.operator.partition("::")[0]
            shape = request.meta or request.shape
            every = [plan_call(d.schema, d.call, shape, namespace=namespace) for d in (declared, *request.others)]
            planned = together(every, request.alternatives)
            self.evidence["schema"] = "the one given" if declared.schema.text else "made from the declaration"
        else:
            planned = self.plan_own(request.meta or self.relation)
        definition = self.before.definition
        if definition is None and operator_exists(planned.name):
            way = "give another name=" if declared is not None else "pass it as eager="
            raise EagerError(f"{planned.name} exists already; {way}, or remove it first")
        if definition is None or definition.schema != str(planned.schema):
            definition = planned.definition()
        self.changes.definition = definition
        self.changes.kernels = planned.kernels(definition)
        self.changes.gradient = planned.no_gradient(definition)
        self.evidence["eager"] = "; ".join(f"{p.call.function}, {p.call.source}" for p in (planned, *planned.others))
        given = "the function given" if request.meta is not None else f"{self.origin}: {self.relation}"
        if self.author_meta is not None:
            given = f"calls {self.author.source}"
        self.evidence["meta"] = given if planned.schema.returns else "outputs that are inputs"
        return planned

    def plan_own(self, shape: Relation | MetaFunction | None) -> PlannedOperator:
        """Plan the operator of the prototype; what no relation says, its meta function asks the author's InferShape."""
        request = self.request
        namespace = request.operator.partition("::")[0]

        def planned(shape: Relation | MetaFunction | None) -> PlannedOperator:
            return plan_operator(
                request.prototype,
                shape,
                namespace=namespace,
                numbers=self.numbers(),
                aclnn=request.aclnn,
                aclnn_arguments=request.aclnn_arguments,
            )

        @functools.cache
        def binding() -> Binding:
            # The schema does not depend on the shapes, and the function's arguments follow the schema.
            schema = planned(_no_shapes).schema
            read = read_schema(torch._C.parse_schema(f"{namespace}::{schema}"))
            return bind(read, request.prototype, own=schema, complete=False)

        if shape is None and self.author.function is not None:
            self.take_found(self.author.ask_with_values(binding()), own=True)
            shape = self.relation
        function = self.author.function
        if shape is None and function is not None and calls_infer_shape(function, binding()):
            shape = self.author_meta = author_meta(function, binding())
        own = planned(shape)
        if self.relation is None:
            return own
        if self.author.reads_values:  # the kernel calls the meta function, which refuses what the author refuses
            own = own.without_program()
        return replace(own, meta=self.author.beyond(own.meta, binding))

    def numbers(self) -> dict[str, Numbers]:
        """Read the dtype numbering of Int attrs from ``arguments=``, for an operator that the registration defines.

        The kernel is made from the prototype alone: any other conversion would apply to the converter only.
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
        if self.sizes is not None:
            wanted, source = (
                self.data_sized_meta(self.sizes),
                f"the relation given, with sizes from data: {request.shape}",
            )
        existing = self.existing_meta()
        if wanted is None:
            if existing is not None:
                self.evidence["meta"] = f"kept: {existing}"
                return
            if request.keep_meta:
                raise RegistrationError(f'{overload} has no meta function to keep: leave meta="kept" out')
            wanted, source = self.infer()
        elif existing is not None and not self.override:
            both = (
                ', meta="kept" to keep it and draw the calls of checks from shape=,'
                if self.relation is not None
                else ""
            )
            raise RegistrationError(
                f"{overload} has a meta function already ({existing}): leave shape= and meta= out to keep it{both} or pass "
                "override=True to replace it"
            )
        check_takes_meta(overload)
        function = wanted
        self.changes.meta = HandleChange(lambda: register_meta(overload, function, override=True))
        self.evidence["meta"] = source

    def data_sized_meta(self, sizes: DataSizes) -> MetaFunction:
        """Return the meta function of a relation with sizes from data."""
        relation = returned_outputs(sizes.largest, self.binding)
        names = relation_names(self.request.op_type, relation, self.binding)
        dims = [sizes.dims.get(name, {}) for name in relation.outputs]
        return with_data_sizes(self.meta_function(relation, names), dims, self.request.operator)

    def existing_meta(self) -> str | None:
        """Return the origin of a meta function that others registered, or None."""
        ours = None if self.before.meta is None else self.before.meta.handle
        if isinstance(ours, MetaHandle) and ours.on_top:
            return ours.before
        return existing_meta(self.request.overload)

    def infer(self) -> tuple[MetaFunction, str]:
        overload = self.request.overload
        if not declares_aliases(overload._schema):
            self.take_author_relation()
        if self.relation is not None:
            found = self.relation
            relation = returned_outputs(found, self.binding)
            made = self.meta_function(relation, relation_names(self.request.op_type, relation, self.binding))
            self.binding = self.binding.with_relation(found)
            runs = 0
            if self.author:
                runs = compare_with_kernel(overload, self.binding, found, made, self.author.source)
            ran = f"; {runs} runs of the eager kernel agree" if runs else ""
            made = self.author.beyond(made, lambda: self.binding)
            return made, f"{self.origin}: {found}{ran}"
        function = self.author.function
        if function is not None and calls_infer_shape(function, self.binding):
            return author_meta(function, self.binding), f"calls {function.source}"
        on_npu = torch._C._dispatch_has_kernel_for_dispatch_key(overload.name(), "PrivateUse1")
        inferred = infer_relation(
            overload, overload._schema, samples=self.request.samples, device="npu" if on_npu else "cpu"
        )
        self.relation = inferred.relation
        self.binding = self.binding.with_relation(inferred.relation)
        ran = f"found by {inferred.runs} runs of the eager kernel" if inferred.runs else "outputs that are inputs"
        notes = "".join(f"; {note}" for note in (inferred.narrower, *inferred.notes) if note)
        return self.meta_function(inferred.relation), f"{ran}: {inferred.relation}{notes}"

    def meta_function(self, relation: Relation, names: Mapping[str, str] | None = None) -> MetaFunction:
        ges = self.binding.ge_dtype_arguments()
        asked = {name for name, theirs in (names or {}).items() if theirs in relation.asked_for_none}
        defaults = {
            name: GeNumber(value) if dtype else value
            for name, (value, dtype) in self.binding.defaults_of_none().items()
            if name not in asked | relation.asked_for_none
        }
        return meta_function(relation, self.request.overload._schema, names, ge_numbers=ges, defaults=defaults)

    def plan_converter(self) -> ConverterFunction | None:
        request = self.request
        if request.converter is None and not request.in_graphs:
            self.changes.converter = HandleChange(
                lambda: refuse_in_graphs(self.overload, request.without_ge), stacks=False
            )
            what = (
                "the schema alone has no prototype" if request.is_kernel else "no op_type= says which GE operator it is"
            )
            self.evidence["converter"] = f"none: {what}; aclgraph needs none"
            return None
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
        else:
            self.evidence["converter"] = "made from the binding"
            if existing is not None:
                self.evidence["converter"] += f"; its nodes are compared with those of {_qualified(existing)}"
            converter = make_converter(self.binding)
            for doubt in self.binding.doubts:
                warnings.warn(doubt, BindingWarning, stacklevel=6)

        def around(ours: ConverterFunction) -> ConverterFunction:
            """Wrap a converter made from the binding to report differences from the one that it replaces."""
            if existing is None or request.converter is not None:
                return ours
            return beside(ours, existing, request.operator, request.prototype)

        self.changes.converter = HandleChange(
            lambda: register_converter(
                self.overload, converter, override=True, around=around, own=request.overload is None
            )
        )
        say_so_in_graphs()
        return converter

    def existing_converter(self) -> Any:
        """Return the converter that others registered, or None."""
        if self.request.overload is None:
            return None
        ours = None if self.before.converter is None else self.before.converter.handle
        if isinstance(ours, ConverterHandle) and ours.on_top:
            return ours.before
        return existing_converter(self.request.overload)

    # ----------------------------------------------------------------------------------------------- writes and gradient

    def plan_mutation(self) -> None:
        """Plan the functionalization of calls that write, unless the operator has a rule of its own; and their lazy tensors."""
        overload, request, binding = self.request.overload, self.request, self.binding
        is_launches = overload is not None and is_triton_op(overload)
        if is_launches and request.in_graphs:
            self.changes.whole_calls = HandleChange(lambda: keep_whole(overload), stacks=False)
        if not any(argument.mutated for argument in binding.schema.arguments):
            if not binding.schema.returns:
                self.changes.mutation = HandleChange(lambda: keep_calls(self.overload), stacks=False)
            return
        if overload is not None and (unmarked := unmarked_operator(overload)) is not None:
            self.changes.stand_in = HandleChange(lambda: stand_in(overload, unmarked), stacks=False)
        self.changes.lazy_bits = HandleChange(lambda: register_lazy_bits(self.overload), stacks=False)
        if overload is not None and not is_launches and self.before.mutation is None and has_own_rule(overload):
            return
        self.changes.mutation = HandleChange(
            lambda: register_mutation(
                self.overload, binding, request.converter, None if request.in_graphs else request.without_ge
            ),
            stacks=False,
        )

    def plan_gradient(self) -> None:
        request, gradient, tangent = self.request, None, None
        if request.backward is None and request.forward is None:
            overload = request.overload
            if overload is not None and (self.before.refuses_tangents or needs_refusal(overload)):
                self.changes.refuses_tangents = True
                self.changes.gradient = HandleChange(lambda: register_refusal(overload), stacks=False)
            return
        if request.backward is not None:
            gradient = gradient_of(request.backward, self.binding, self.relation, self.find)
            self.evidence["gradient"] = gradient.description
            self.evidence["tangent"] = "derived from the gradient, which is differentiated"
        if request.forward is not None:
            tangent = tangent_of(request.forward, self.binding)
            self.evidence["tangent"] = tangent.description
        self.changes.gradient = HandleChange(lambda: register_gradient(self.overload, gradient, tangent), stacks=False)


def _no_shapes(*args: Any, **kwargs: Any) -> Any:
    """Stand for the meta function of an operator whose schema alone is planned."""
    raise NotImplementedError


def returned_outputs(relation: Relation, binding: Binding) -> Relation:
    """Return the relation without the outputs that the schema writes to its arguments and does not return."""
    schema, names = binding.schema, binding.argument_names()
    returned = {output.alias_of for output in schema.returns}
    written = [a.name for a in schema.arguments if a.mutated and a.name not in returned]
    hidden = {name for n in written for name in (n, names.get(n, n))}
    kept = [
        tensor
        for tensor in relation.output_tensors
        if tensor.name not in hidden or not all(isinstance(a.shape, Itself) for a in tensor.alternatives)
    ]
    return relation if len(kept) == len(relation.output_tensors) else replace(relation, output_tensors=tuple(kept))


def _qualified(function: Any) -> str:
    return f"{function.__module__}.{function.__qualname__}"
