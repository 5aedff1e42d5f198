"""Torch operator from a prototype: schema, NPU kernel and meta function without C++ code. Imports torch."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import torch

from ascend_graph.aclnn import ValueKind as CValue
from ascend_graph.binding import AclnnCall, BindingError, CallArgument, Part, find_call
from ascend_graph.binding.calls.called_schema import called_schema
from ascend_graph.binding.calls.constants import int_range
from ascend_graph.binding.dtype_ints import Numbers
from ascend_graph.binding.dtype_mask import ANY, AllowedDtypes, allowed_dtypes
from ascend_graph.binding.dtypes import ge_dtype
from ascend_graph.binding.errors import EagerError
from ascend_graph.binding.generated_schema import AclnnArgumentKind, OperatorSchema, default_of, operator_schema
from ascend_graph.dispatch.announced import is_announced
from ascend_graph.dispatch.definition import SchemaDefinition
from ascend_graph.dispatch.meta import MetaFunction, meta_function
from ascend_graph.dispatch.meta_dtypes import TORCH
from ascend_graph.dispatch.transaction import Change, swap_changes
from ascend_graph.eager.choices import (
    FunctionChoice,
    Functions,
    arguments_of,
    chooser,
    read_alternatives,
    without_unknown,
)
from ascend_graph.eager.computed import computation
from ascend_graph.eager.errors import EagerArgumentError
from ascend_graph.eager.library import kernels
from ascend_graph.eager.plans import KernelPlan, ParameterPlan, PlannedOperator, TensorPlan, UnusedPlan
from ascend_graph.eager.shape_code import ShapeCode, attr_kind, encode
from ascend_graph.prototypes import OpPrototype, Parameter, ParameterKind
from ascend_graph.shapes import Relation
from ascend_graph.shapes.declared_dtypes import complete_relation
from ascend_graph.shapes.syntax import Itself, ValueOutput


class EagerOperator:
    """Operator defined by :func:`define_operator`; ``remove`` unregisters it."""

    def __init__(self, planned: PlannedOperator, definition: SchemaDefinition, changes: Sequence[Change]) -> None:
        self.schema = planned.schema
        self.overload: torch._ops.OpOverload = definition.overload
        self.plan = planned.plan
        self.call = planned.call
        self._changes = list(changes)

    def remove(self) -> None:
        """Unregister the operator: kernel, meta function, schema. A second call does nothing.

        Calls through earlier lookups raise ``RemovedOperatorError``.
        """
        changes, self._changes = self._changes, []
        swap_changes(changes, ())
        _live.discard(self)

    def __repr__(self) -> str:
        return f"EagerOperator({self.overload.namespace}::{self.schema})"


def define_operator(
    prototype: OpPrototype,
    shape: Relation | str | MetaFunction | None = None,
    *,
    namespace: str = "ascend",
    name: str | None = None,
    numbers: Mapping[str, Numbers] | None = None,
    aclnn: Functions | None = None,
    aclnn_arguments: Mapping[str, Any] | None = None,
) -> EagerOperator:
    """Define the torch operator that calls ``aclnn<OpType>`` on NPU tensors.

    Args:
        prototype: The operator.
        shape: The shape relation of its outputs, in the prototype's names; or a meta function with the schema's
            signature, as in ``torch.library.register_fake``. ``None`` if every output is an input.
        namespace: The operator is ``torch.ops.<namespace>.<name>``.
        name: By default the op type in snake case.
        numbers: The dtype numbering that callers use for an ``Int`` attr that is a dtype. By default an attr that the
            relation takes for a dtype has torch's numbers, as an attr of the type ``Type`` has, and any other is a
            plain integer.
        aclnn: The aclnn function, if it is not named after the op type; or several, see
            :func:`~ascend_graph.eager.choices.read_alternatives`.
        aclnn_arguments: Sources of parameters that names do not settle;
            see :func:`~ascend_graph.binding.calls.matching.bind_call`.

    Returns:
        A handle with the ``overload``. All is registered, or nothing.

    Raises:
        EagerError: The prototype does not fit aclnn, the operator exists already, or the outputs have no shape.
        BindingError: The function's declaration does not fit, or CANN's own library has it and no header declares it.
        MetaError: The relation does not fit the prototype.
        BuildError: The kernel does not compile.
    """
    if isinstance(shape, str | Relation):
        shape = complete_relation(prototype, shape)
    planned = plan_operator(
        prototype, shape, namespace=namespace, name=name, numbers=numbers, aclnn=aclnn, aclnn_arguments=aclnn_arguments
    )
    if operator_exists(planned.name):
        raise EagerError(f"{planned.name} exists already; give another name=, or remove it first")
    definition = planned.definition()
    changes = (definition, *planned.kernels(definition), planned.no_gradient(definition))
    swap_changes((), changes)
    operator = EagerOperator(planned, definition, changes)
    # A torch library that nobody holds takes its definitions back when it is collected.
    _live.add(operator)
    return operator


def plan_operator(
    prototype: OpPrototype,
    relation: Relation | MetaFunction | None = None,
    *,
    namespace: str = "ascend",
    name: str | None = None,
    numbers: Mapping[str, Numbers] | None = None,
    aclnn: Functions | None = None,
    aclnn_arguments: Mapping[str, Any] | None = None,
) -> PlannedOperator:
    """Plan the operator for :func:`define_operator`, with every check except for a free name; register nothing.

    The relation has the dtypes that the prototype declares
    (:func:`~ascend_graph.shapes.declared_dtypes.complete_relation`).
    """
    schema = operator_schema(prototype, name)  # refuses what no aclnn function takes
    own = f"aclnn{prototype.op_type}"
    alternatives = without_unknown(read_alternatives(prototype.op_type, aclnn) or (FunctionChoice(own),), own)
    planned = []
    for alternative in alternatives:
        function = None if alternative.function == own else alternative.function
        call = _find_call(prototype, function, arguments_of(aclnn_arguments, alternative, alternatives))
        planned.append(_plan_one(schema, relation, call, namespace, numbers))
    return together(planned, alternatives)


def together(planned: Sequence[PlannedOperator], alternatives: Sequence[FunctionChoice]) -> PlannedOperator:
    """Return the operator that calls one of several functions, from its plan for each.

    Raises:
        EagerError: The functions make different schemas.
    """
    first, *others = planned
    for other, alternative in zip(others, alternatives[1:], strict=True):
        if str(other.torch_schema) != str(first.torch_schema):
            raise EagerError(
                f"{first.name}: {alternatives[0].function} and {alternative.function} make different schemas; expected one for all\n"
                f"  {first.torch_schema}\n  {other.torch_schema}"
            )
    if not others and alternatives[0].when is None:
        return first
    choose = chooser(first.name, alternatives, dtype_arguments(first.torch_schema))
    return replace(first, others=tuple(others), choose=choose)


def dtype_arguments(schema: torch.FunctionSchema) -> frozenset[str]:
    """Return the arguments of the type ``ScalarType``, which a kernel gets as numbers."""
    return frozenset(a.name for a in schema.arguments if "ScalarType" in str(a.real_type))


def _plan_one(
    schema: OperatorSchema,
    relation: Relation | MetaFunction | None,
    call: AclnnCall,
    namespace: str,
    numbers: Mapping[str, Numbers] | None,
) -> PlannedOperator:
    """Plan the operator for one function, from its schema without that function's types."""
    schema = called_schema(schema, call, relation if isinstance(relation, Relation) else None, numbers)
    return plan_call(schema, call, relation, namespace=namespace)


def plan_call(
    schema: OperatorSchema, call: AclnnCall, relation: Relation | MetaFunction | None, *, namespace: str = "ascend"
) -> PlannedOperator:
    """Plan the operator of a schema for one way of calling a function; register nothing.

    Args:
        schema: The schema, made from a prototype or from the function.
        call: The call of the function.
        relation: The shapes of its outputs, in the names of the schema's prototype; or a meta function.
        namespace: The operator's namespace.

    Raises:
        EagerError: Its device, or the shape of an output, is not determined.
        MetaError: The relation does not fit.
    """
    prototype = schema.prototype
    if not prototype.inputs:
        raise EagerError(
            f"{prototype.op_type} has no inputs, so nothing says on which device it runs; write the operator by hand, with a "
            "device argument, or use the raw op in a converter; of an aclnn function, schema= may have its output as an argument "
            "Tensor(a!) that the caller passes in"
        )
    if isinstance(relation, Relation):
        relation = _fresh_outputs(relation, schema)
    if relation is None and schema.returns:
        raise EagerError(
            f"{prototype.op_type}: the shape of {', '.join(p.name for p in schema.returns)} is not known; pass a relation (shape=) such "
            f'as "{_relation_example(schema)}" where all shapes are the same, or a meta function (meta=)'
        )
    torch_schema = torch._C.parse_schema(f"{namespace}::{schema}")
    allowed = _allowed(schema)
    meta = _with_dtypes(_meta(relation, schema, torch_schema), schema, allowed, torch_schema.name)
    plan = _plan(schema, relation, call, allowed, torch_schema)
    return PlannedOperator(namespace, schema, torch_schema, meta, plan, call)


def _find_call(prototype: OpPrototype, function: str | None, arguments: Mapping[str, Any] | None) -> AclnnCall:
    """Find the call of the operator's function; compile the kernel here if needed."""
    given = {
        name: int(ge_dtype(value)) if isinstance(value, torch.dtype) else value
        for name, value in (arguments or {}).items()
    }
    library = kernels().library_of(function or f"aclnn{prototype.op_type}")
    return find_call(prototype, function, given, library or None)


def operator_exists(name: str) -> bool:
    """Return whether there is an operator ``namespace::name``, or a kernel for one, other than an announced one."""
    if is_announced(name):
        return False
    return torch._C._dispatch_has_kernel(name) or any(
        schema.name == name for schema in torch._C._jit_get_schemas_for_operator(name)
    )


_live: set[EagerOperator] = set()


def _relation_example(schema: OperatorSchema) -> str:
    inputs = ", ".join(f"{a.name}[*s]" for a in schema.arguments if a.kind is AclnnArgumentKind.TENSOR)
    outputs = ", ".join(f"{p.name}[*s]" for p in schema.returns)
    return f"{inputs} -> {outputs}"


def _fresh_outputs(relation: Relation, schema: OperatorSchema) -> Relation:
    """Return the relation without the outputs that are written in-place, which the schema does not return."""
    in_place = schema.prototype.in_place
    outputs = {t.name: t for t in relation.output_tensors}
    for output in relation.output_tensors:
        itself = all(isinstance(a.shape, Itself) for a in output.alternatives)
        if output.name in in_place and not itself:
            raise EagerError(
                f"{schema.prototype.op_type}: {output.name} is written in place, so its output must be its name alone; "
                f"write '-> {output.name}' instead of '-> {output}'"
            )
        if any(isinstance(a.shape, ValueOutput) for a in output.alternatives):
            raise EagerError(
                f"{schema.prototype.op_type}: {output} is a value; expected a tensor that an aclnn function writes\n  "
                f"relation: {relation}"
            )
    expected = [p.name for p in schema.returns]
    unknown = outputs.keys() - {p.name for p in schema.prototype.outputs}
    missing = [name for name in expected if name not in outputs]
    if unknown or missing:
        what = (
            f"has no output {', '.join(sorted(unknown))}; it has {', '.join(p.name for p in schema.prototype.outputs)}"
            if unknown
            else f"has the output {', '.join(missing)}, which the relation lacks; add it behind ->"
        )
        raise EagerError(f"{schema.prototype.op_type} {what}\n  relation: {relation}")
    ordered = tuple(outputs[name] for name in expected)
    # The relation itself, where it can be, has its lowered form already.
    return relation if ordered == relation.output_tensors else replace(relation, output_tensors=ordered)


def _names(schema: OperatorSchema) -> dict[str, str]:
    """Return the relation's name by schema argument: the prototype's, unless an input has that name already."""
    inputs = {p.name for p in schema.prototype.inputs}
    return {a.name: a.parameter.name for a in schema.arguments if a.is_input or a.parameter.name not in inputs}


def _meta(
    relation: Relation | MetaFunction | None, schema: OperatorSchema, torch_schema: torch.FunctionSchema
) -> MetaFunction:
    if relation is None:
        return _nothing
    if not isinstance(relation, Relation):
        return relation
    ges = {a.name for a in schema.arguments if schema.dtype_ints.get(a.parameter.name) is Numbers.GE}
    # Attrs whose default no schema can express arrive as None.
    defaults = {a.name: a.default for a in schema.arguments if a.default is not None}
    return meta_function(relation, torch_schema, _names(schema), ge_numbers=frozenset(ges), defaults=defaults)


def _nothing(*args: Any, **kwargs: Any) -> None:
    """Accept any call that fits the schema, as the meta function of an operator that returns nothing."""


def _with_dtypes(
    meta: MetaFunction, schema: OperatorSchema, allowed_of: Sequence[tuple[int, AllowedDtypes]], operator: str
) -> MetaFunction:
    """Wrap a meta function to accept only the dtypes that the prototype lists, as the kernel does."""
    checks = [
        (n, schema.arguments[n].name, _torch_dtypes(allowed), allowed.listed)
        for n, allowed in allowed_of
        if allowed.mask != ANY
    ]
    if not checks:
        return meta

    def checked(*args: Any, **kwargs: Any) -> Any:
        for n, name, dtypes, listed in checks:
            value = args[n] if n < len(args) else kwargs.get(name)
            for tensor in value if isinstance(value, list | tuple) else (value,):
                if tensor is not None and tensor.dtype not in dtypes:
                    raise EagerArgumentError(f"{operator}: argument {name} is {tensor.dtype}; allowed are {listed}")
        return meta(*args, **kwargs)

    if hasattr(meta, "relation"):
        checked.relation = meta.relation  # type: ignore[attr-defined]
    return checked


@lru_cache(maxsize=64)
def _torch_dtypes(allowed: AllowedDtypes) -> frozenset[torch.dtype]:
    """Return the dtypes of a mask."""
    return frozenset(d for n in range(64) if n in allowed and (d := TORCH.from_attr(n)) is not None)


def _plan(
    schema: OperatorSchema,
    relation: Relation | MetaFunction | None,
    call: AclnnCall,
    allowed_of: Sequence[tuple[int, AllowedDtypes]],
    torch_schema: torch.FunctionSchema,
) -> KernelPlan:
    computed = any(argument.part is Part.COMPUTED for argument in call.arguments)
    dtypes = dtype_arguments(torch_schema) if computed else ()
    parameters = tuple([_parameter(schema, argument, dtypes) for argument in call.arguments])
    positions = {a.parameter.name: n for n, a in enumerate(schema.arguments) if not a.is_tensor}
    positions |= {a.parameter.name: n for n, a in enumerate(schema.arguments) if a.is_tensor}
    unused = tuple(
        UnusedPlan(
            positions[name], schema.arguments[positions[name]].kind, default_of(schema.arguments[positions[name]])
        )
        for name in call.unused
    )
    tensors = tuple([TensorPlan(n, allowed.mask, allowed.listed) for n, allowed in allowed_of])
    shapes = _shape_code(schema, relation) if isinstance(relation, Relation) else None
    declared = "" if call.declared is None else call.declared.place
    confirm = partial(_confirm, schema.prototype, call) if call.declared is None else None
    checked = relation is not None
    return KernelPlan(
        call.function, parameters, unused, tensors, len(schema.returns), checked, shapes, declared, confirm
    )


def _confirm(prototype: OpPrototype, call: AclnnCall, library: str) -> None:
    """Raise if the function's call differs from the plan, which was made without a header."""
    found = find_call(prototype, call.function, None, library)
    same = [(a.part, a.index, a.type.canonical.base) for a in found.arguments] == [
        (a.part, a.index, a.type.canonical.base) for a in call.arguments
    ]
    if not same or found.unused:
        raise BindingError(
            f"{prototype.op_type} ↔ {call.function}: {found.source}, where the parameters are not those of msOpGen's order that "
            "was taken before a header was known: register the operator again"
        )


#: Argument kind of a constant, by its C type.
_CONSTANTS = {
    CValue.INT: AclnnArgumentKind.INT,
    CValue.DTYPE: AclnnArgumentKind.INT,
    CValue.FLOAT: AclnnArgumentKind.FLOAT,
    CValue.BOOL: AclnnArgumentKind.BOOL,
    CValue.STRING: AclnnArgumentKind.STRING,
    CValue.INTS: AclnnArgumentKind.INTS,
    CValue.FLOATS: AclnnArgumentKind.FLOATS,
    CValue.BOOLS: AclnnArgumentKind.BOOLS,
    CValue.SCALAR: AclnnArgumentKind.SCALAR,
    CValue.TENSOR: AclnnArgumentKind.TENSOR,
    CValue.TENSOR_LIST: AclnnArgumentKind.TENSOR_LIST,
    CValue.SCALAR_LIST: AclnnArgumentKind.SCALARS,
}


def _parameter(schema: OperatorSchema, argument: CallArgument, dtypes: Collection[str]) -> ParameterPlan:
    """Plan the source of one argument of the function in a call of the operator."""
    value, prototype = argument.type.value, schema.prototype
    low, high = int_range(argument.type) if value in (CValue.INT, CValue.DTYPE) else (-(2**63), 2**63 - 1)
    if value is CValue.HOST_OUTPUT:
        name = prototype.outputs[argument.index].name if argument.part is Part.OUTPUT else ""
        source = next((n for n, output in enumerate(schema.returns) if output.name == name), -1)
        pointee = argument.type.pointee
        sort = {CValue.FLOAT: 1, CValue.BOOL: 2}.get(pointee.value, 3 if pointee.canonical.base.startswith("u") else 0)
        return ParameterPlan(AclnnArgumentKind.HOST_OUTPUT, source, None, pointee.width, sort)
    if argument.part is Part.OUTPUT:
        output = prototype.outputs[argument.index]
        n = next(n for n, returned in enumerate(schema.returns) if returned.name == output.name)
        return ParameterPlan(
            AclnnArgumentKind.OUTPUT_LIST if output.kind is ParameterKind.DYNAMIC else AclnnArgumentKind.OUTPUT, n
        )
    narrow = value is CValue.FLOAT and argument.type.width == 4
    if argument.part is Part.COMPUTED:
        compute = computation(schema, argument, dtypes)
        kind = AclnnArgumentKind.FLOAT32 if narrow else _CONSTANTS[value]
        return ParameterPlan(kind, -1, None, low, high, compute)
    if argument.part is Part.CONSTANT:
        return ParameterPlan(AclnnArgumentKind.FLOAT32 if narrow else _CONSTANTS[value], -1, argument.value, low, high)
    declared = (prototype.inputs if argument.part is Part.INPUT else prototype.attrs)[argument.index]
    n = next(n for n, a in enumerate(schema.arguments) if a.parameter is declared)
    given = schema.arguments[n]
    made = {CValue.SCALAR: AclnnArgumentKind.SCALAR, CValue.SCALAR_LIST: AclnnArgumentKind.SCALARS}
    kind = AclnnArgumentKind.FLOAT32 if narrow else made.get(value, given.kind)
    return ParameterPlan(kind, n, given.default, low, high)


def _allowed(schema: OperatorSchema) -> list[tuple[int, AllowedDtypes]]:
    """Return the allowed dtypes of each tensor argument, with its position."""
    return [
        (n, allowed_dtypes(a.parameter))
        for n, a in enumerate(schema.arguments)
        if isinstance(a.parameter, Parameter) and a.is_tensor
    ]


def _shape_code(schema: OperatorSchema, relation: Relation) -> ShapeCode | None:
    names = _names(schema)
    position = {names[a.name]: n for n, a in enumerate(schema.arguments) if a.name in names}
    kinds = {names[a.name]: a.kind for a in schema.arguments if a.name in names}
    tensors = {name: n for name, n in position.items() if kinds[name] is AclnnArgumentKind.TENSOR}
    attrs = {
        names[a.name]: (n, attr_kind(a.kind, a.default is not None))
        for n, a in enumerate(schema.arguments)
        if a.name in names and not a.is_tensor
    }
    return encode(relation, tensors, attrs)
