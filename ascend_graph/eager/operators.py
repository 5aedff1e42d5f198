"""Prototype → a torch operator with schema, NPU kernel and meta function, without C++ of its own. Imports torch."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch

from ascend_graph.aclnn import Value as CValue
from ascend_graph.binding import BindingError, Call, CallArgument, Part, find_call
from ascend_graph.binding.allowed import ANY, AllowedDtypes, allowed_dtypes
from ascend_graph.binding.constants import int_range
from ascend_graph.binding.dtype_ints import Numbers, dtype_ints
from ascend_graph.binding.dtypes import ge_dtype
from ascend_graph.binding.errors import EagerError
from ascend_graph.binding.own_schema import Kind, OperatorSchema, default_of, operator_schema
from ascend_graph.dispatch.definition import Definition, forget_kernels
from ascend_graph.dispatch.fake import register_meta
from ascend_graph.dispatch.meta import TORCH, MetaFunction, meta_function
from ascend_graph.dispatch.transaction import Change, Entry, exchange
from ascend_graph.eager.errors import EagerArgumentError
from ascend_graph.eager.library import kernels
from ascend_graph.eager.shape_code import ShapeCode, attr_kind, encode
from ascend_graph.prototypes import AttrValue, OpPrototype, Parameter, ParameterKind
from ascend_graph.shapes import Relation, parse_relation
from ascend_graph.shapes.syntax import Itself, Value


@dataclass(frozen=True, slots=True)
class ParameterPlan:
    """Where one parameter of the aclnn function comes from; read by csrc/eager/kernel.cpp."""

    kind: int
    #: The position of the schema argument, or of the output; -1 for a value that is always the same.
    source: int
    #: What the argument ``None`` stands for; the value that is always the same.
    default: AttrValue = None
    #: The values that the C type has, for integers; the bytes and the sort of host memory.
    low: int = -(2**63)
    high: int = 2**63 - 1


@dataclass(frozen=True, slots=True)
class UnusedPlan:
    """An argument that the function has nothing for; read by csrc/eager/kernel.cpp."""

    position: int
    kind: int
    #: What it may only be, besides None.
    default: AttrValue


@dataclass(frozen=True, slots=True)
class TensorPlan:
    """One schema argument that is a tensor or a list of them; read by csrc/eager/kernel.cpp."""

    position: int
    #: The dtypes that the prototype allows, as bits and in words.
    dtypes: int
    listed: str


@dataclass(frozen=True, slots=True)
class KernelPlan:
    """How a call of an operator becomes a call of its aclnn function; read by csrc/eager/kernel.cpp."""

    function: str
    #: In the order of the aclnn function.
    parameters: tuple[ParameterPlan, ...]
    unused: tuple[UnusedPlan, ...]
    tensors: tuple[TensorPlan, ...]
    #: How many outputs the kernel allocates and returns.
    outputs: int
    #: Whether a relation or a function says which inputs fit: it is asked also where there is nothing to allocate.
    checked: bool
    shapes: ShapeCode | None
    #: Where the function is declared.
    declared: str = ""
    #: Where no header declares the function: what is asked with its library before the first call, and raises if that is none
    #: whose order is known.
    confirm: Callable[[str], None] | None = None


@dataclass(frozen=True, slots=True)
class PlannedOperator:
    """An operator with everything that it needs, checked; nothing is registered yet."""

    namespace: str
    schema: OperatorSchema
    torch_schema: torch.FunctionSchema
    meta: MetaFunction
    plan: KernelPlan
    #: How the function is called, and why.
    call: Call

    @property
    def name(self) -> str:
        """``namespace::name``."""
        return f"{self.namespace}::{self.schema.name}"

    def definition(self) -> Definition:
        """What defines the operator."""
        return Definition(self.namespace, str(self.schema))

    def kernels(self, definition: Definition) -> tuple[Change, ...]:
        """What registers its meta function, its kernel, and the version counters of what it writes."""
        namespace, name = self.namespace, self.schema.name
        changes = [
            Entry(lambda: register_meta(definition.overload, self.meta, override=True)),
            Entry(lambda: KernelHandle(definition, kernels().register_kernel, namespace, name, self.plan)),
        ]
        if self.schema.prototype.in_place:
            changes.append(Entry(lambda: KernelHandle(definition, kernels().register_bump_versions, namespace, name)))
        return tuple(changes)

    def without_gradient(self, definition: Definition) -> Change:
        """What makes it an error to differentiate the operator, where no gradient is registered."""
        register = kernels().register_without_gradient
        return Entry(lambda: KernelHandle(definition, register, self.namespace, self.schema.name), stacks=False)


class KernelHandle:
    """A kernel of an operator that csrc/eager registers."""

    def __init__(self, definition: Definition, register: Callable[..., Any], *arguments: Any) -> None:
        self._overload = definition.overload
        with warnings.catch_warnings():
            # One may be there still, which then leaves from beneath this one.
            warnings.filterwarnings("ignore", message=".*Overriding a previously registered kernel.*")
            self._registration = register(*arguments)

    def remove(self) -> None:
        self._registration.close()
        forget_kernels(self._overload)


class EagerOperator:
    """An operator defined by :func:`define_operator`; ``remove`` takes it back."""

    def __init__(self, planned: PlannedOperator, definition: Definition, changes: Sequence[Change]) -> None:
        self.schema = planned.schema
        self.overload: torch._ops.OpOverload = definition.overload
        self.plan = planned.plan
        self.call = planned.call
        self._changes = list(changes)

    def remove(self) -> None:
        """Take the operator back: kernel, meta function, schema. A second call does nothing.

        Calls through what was looked up before raise ``RemovedOperatorError``.
        """
        changes, self._changes = self._changes, []
        exchange(changes, ())
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
    aclnn: str | None = None,
    aclnn_arguments: Mapping[str, Any] | None = None,
) -> EagerOperator:
    """Define the torch operator that calls ``aclnn<OpType>`` on NPU tensors.

    Args:
        prototype: The operator.
        shape: The shape relation of its outputs, in the prototype's names; or a meta function with the schema's
            signature, as in ``torch.library.register_fake``. ``None`` where every output is an input.
        namespace: The operator is ``torch.ops.<namespace>.<name>``.
        name: By default the op type in snake case.
        numbers: Of an ``Int`` attr that is a dtype, whose numbers callers give. Without it an attr that the relation takes
            for a dtype has torch's, as an attr of the type ``Type`` has, and any other is what it is.
        aclnn: The aclnn function, where it is not called after the op type.
        aclnn_arguments: What the names of its parameters do not settle; see :func:`~ascend_graph.binding.call.bind_call`.

    Returns:
        A handle with the ``overload``. All is registered, or nothing.

    Raises:
        EagerError: The prototype does not fit aclnn, the operator exists already, or the outputs have no shape.
        BindingError: The function's declaration does not fit, or CANN's own library has it and no header declares it.
        MetaError: The relation does not fit the prototype.
        BuildError: The kernel does not compile.
    """
    planned = plan_operator(
        prototype, shape, namespace=namespace, name=name, numbers=numbers, aclnn=aclnn, aclnn_arguments=aclnn_arguments
    )
    if operator_exists(planned.name):
        raise EagerError(f"{planned.name} exists already; give another name=, or remove it first")
    definition = planned.definition()
    changes = (definition, *planned.kernels(definition), planned.without_gradient(definition))
    exchange((), changes)
    operator = EagerOperator(planned, definition, changes)
    # A torch library that nobody holds takes its definitions back when it is collected.
    _live.add(operator)
    return operator


def plan_operator(
    prototype: OpPrototype,
    shape: Relation | str | MetaFunction | None = None,
    *,
    namespace: str = "ascend",
    name: str | None = None,
    numbers: Mapping[str, Numbers] | None = None,
    aclnn: str | None = None,
    aclnn_arguments: Mapping[str, Any] | None = None,
) -> PlannedOperator:
    """What :func:`define_operator` would define, with every check but whether the name is free; nothing is registered."""
    relation = parse_relation(shape) if isinstance(shape, str) else shape
    operator_schema(prototype, name)  # refuses what no aclnn function takes
    call = _find_call(prototype, aclnn, aclnn_arguments)
    # What the function takes as aclDataType is a dtype, whatever the prototype calls it.
    typed = dict.fromkeys(call.dtype_attrs(prototype), Numbers.TORCH) | dict(numbers or {})
    said = dtype_ints(prototype, relation if isinstance(relation, Relation) else None, typed)
    schema = operator_schema(prototype, name, said, call.number_inputs(prototype))
    return plan_call(schema, call, relation, namespace=namespace)


def plan_call(
    schema: OperatorSchema, call: Call, relation: Relation | MetaFunction | None, *, namespace: str = "ascend"
) -> PlannedOperator:
    """The operator of a schema that calls a function in one way; nothing is registered.

    Args:
        schema: The schema, made from a prototype or from the function.
        call: How the function is called.
        relation: The shapes of its outputs, in the names of what the schema was made from; or a meta function.
        namespace: The operator's.

    Raises:
        EagerError: Nothing says on which device it runs, or what shape an output has.
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
            f"{prototype.op_type}: the shape of {', '.join(p.name for p in schema.returns)} is not known; pass a relation such as "
            f'"{_relation_example(schema)}" or a meta function'
        )
    torch_schema = torch._C.parse_schema(f"{namespace}::{schema}")
    meta, plan = _meta(relation, schema, torch_schema), _plan(schema, relation, call)
    return PlannedOperator(namespace, schema, torch_schema, meta, plan, call)


def _find_call(prototype: OpPrototype, function: str | None, arguments: Mapping[str, Any] | None) -> Call:
    """How the operator's function is called; the kernel is compiled here, if it is not."""
    given = {
        name: int(ge_dtype(value)) if isinstance(value, torch.dtype) else value
        for name, value in (arguments or {}).items()
    }
    library = kernels().library_of(function or f"aclnn{prototype.op_type}")
    return find_call(prototype, function, given, library or None)


def operator_exists(name: str) -> bool:
    """Whether there is an operator ``namespace::name``, or a kernel for one."""
    return torch._C._dispatch_has_kernel(name) or any(
        schema.name == name for schema in torch._C._jit_get_schemas_for_operator(name)
    )


_live: set[EagerOperator] = set()


def _relation_example(schema: OperatorSchema) -> str:
    inputs = [a.name for a in schema.arguments if a.kind is Kind.TENSOR]
    outputs = ", ".join(f"{p.name}[*s]" for p in schema.returns)
    return f"{f'{inputs[0]}[*s]' if inputs else ''} -> {outputs}"


def _fresh_outputs(relation: Relation, schema: OperatorSchema) -> Relation:
    """The relation without the outputs that are written in place, which the schema does not return."""
    in_place = schema.prototype.in_place
    outputs = {t.name: t for t in relation.output_tensors}
    for output in relation.output_tensors:
        itself = all(isinstance(a.shape, Itself) for a in output.alternatives)
        if output.name in in_place and not itself:
            raise EagerError(
                f"{schema.prototype.op_type}: {output.name} is written in place; the relation says just '{output.name}'"
            )
        if any(isinstance(a.shape, Value) for a in output.alternatives):
            raise EagerError(
                f"{schema.prototype.op_type}: {output} is a value, not a tensor that an aclnn function writes\n  relation: {relation}"
            )
    expected = [p.name for p in schema.returns]
    unknown = outputs.keys() - {p.name for p in schema.prototype.outputs}
    missing = [name for name in expected if name not in outputs]
    if unknown or missing:
        what = (
            f"has no output {', '.join(sorted(unknown))}"
            if unknown
            else f"has the output {', '.join(missing)}, which the relation lacks"
        )
        raise EagerError(f"{schema.prototype.op_type} {what}\n  relation: {relation}")
    return replace(relation, output_tensors=tuple(outputs[name] for name in expected))


def _names(schema: OperatorSchema) -> dict[str, str]:
    """From schema argument to the relation's name for it: the prototype's, unless an input has that already."""
    inputs = {p.name for p in schema.prototype.inputs}
    return {a.name: a.parameter.name for a in schema.arguments if a.is_input or a.parameter.name not in inputs}


def _meta(
    relation: Relation | MetaFunction | None, schema: OperatorSchema, torch_schema: torch.FunctionSchema
) -> MetaFunction:
    meta: MetaFunction
    if relation is None:
        meta = _nothing
    elif isinstance(relation, Relation):
        ges = {a.name for a in schema.arguments if schema.dtype_ints.get(a.parameter.name) is Numbers.GE}
        meta = meta_function(relation, torch_schema, _names(schema), ge_numbers=frozenset(ges))
        defaults = {a.name: a.default for a in schema.arguments if a.default is not None}
        meta = _with_defaults(meta, defaults) if defaults else meta
    else:
        meta = relation
    return _with_dtypes(meta, schema, torch_schema.name)


def _nothing(*args: Any, **kwargs: Any) -> None:
    """The meta function of an operator that returns nothing and takes whatever fits its schema."""


def _with_dtypes(meta: MetaFunction, schema: OperatorSchema, operator: str) -> MetaFunction:
    """The meta function of an operator that takes only the dtypes that the prototype lists, as its kernel does."""
    checks = [
        (n, schema.arguments[n].name, _torch_dtypes(allowed), allowed.listed)
        for n, allowed in _allowed(schema)
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


def _torch_dtypes(allowed: AllowedDtypes) -> frozenset[torch.dtype]:
    """The dtypes of a mask."""
    return frozenset(d for n in range(64) if n in allowed and (d := TORCH.from_attr(n)) is not None)


def _with_defaults(meta: MetaFunction, defaults: dict[str, Any]) -> MetaFunction:
    """Attrs whose default no schema can express arrive as ``None``."""

    def completed(*args: Any, **kwargs: Any) -> Any:
        for argument, default in defaults.items():
            if kwargs.get(argument) is None:
                kwargs[argument] = default
        return meta(*args, **kwargs)

    return completed


def _plan(schema: OperatorSchema, relation: Relation | MetaFunction | None, call: Call) -> KernelPlan:
    parameters = tuple([_parameter(schema, argument) for argument in call.arguments])
    positions = {a.parameter.name: n for n, a in enumerate(schema.arguments) if not a.is_tensor}
    positions |= {a.parameter.name: n for n, a in enumerate(schema.arguments) if a.is_tensor}
    unused = tuple(
        UnusedPlan(
            positions[name], schema.arguments[positions[name]].kind, default_of(schema.arguments[positions[name]])
        )
        for name in call.unused
    )
    tensors = tuple(TensorPlan(n, allowed.mask, allowed.listed) for n, allowed in _allowed(schema))
    shapes = _shape_code(schema, relation) if isinstance(relation, Relation) else None
    declared = "" if call.declared is None else call.declared.place
    confirm = partial(_confirm, schema.prototype, call) if call.declared is None else None
    checked = relation is not None
    return KernelPlan(
        call.function, parameters, unused, tensors, len(schema.returns), checked, shapes, declared, confirm
    )


def _confirm(prototype: OpPrototype, call: Call, library: str) -> None:
    """Raise if a function that no header declared when it was planned is called otherwise than it was planned."""
    found = find_call(prototype, call.function, None, library)
    same = [(a.part, a.index, a.type.canonical.base) for a in found.arguments] == [
        (a.part, a.index, a.type.canonical.base) for a in call.arguments
    ]
    if not same or found.unused:
        raise BindingError(
            f"{prototype.op_type} ↔ {call.function}: {found.source}, where the parameters are not those of msOpGen's order that "
            "was taken when there was no header: register the operator again"
        )


#: What a value that is always the same goes as.
_CONSTANTS = {
    CValue.INT: Kind.INT,
    CValue.DTYPE: Kind.INT,
    CValue.FLOAT: Kind.FLOAT,
    CValue.BOOL: Kind.BOOL,
    CValue.STRING: Kind.STRING,
    CValue.INTS: Kind.INTS,
    CValue.FLOATS: Kind.FLOATS,
    CValue.BOOLS: Kind.BOOLS,
    CValue.SCALAR: Kind.SCALAR,
    CValue.TENSOR: Kind.TENSOR,
    CValue.TENSOR_LIST: Kind.TENSOR_LIST,
    CValue.SCALAR_LIST: Kind.SCALARS,
}


def _parameter(schema: OperatorSchema, argument: CallArgument) -> ParameterPlan:
    """Where one argument of the function comes from in a call of the operator."""
    value, prototype = argument.type.value, schema.prototype
    low, high = int_range(argument.type) if value in (CValue.INT, CValue.DTYPE) else (-(2**63), 2**63 - 1)
    if value is CValue.HOST_OUTPUT:
        name = prototype.outputs[argument.index].name if argument.part is Part.OUTPUT else ""
        source = next((n for n, output in enumerate(schema.returns) if output.name == name), -1)
        pointee = argument.type.pointee
        sort = {CValue.FLOAT: 1, CValue.BOOL: 2}.get(pointee.value, 3 if pointee.canonical.base.startswith("u") else 0)
        return ParameterPlan(Kind.HOST_OUTPUT, source, None, pointee.width, sort)
    if argument.part is Part.OUTPUT:
        output = prototype.outputs[argument.index]
        n = next(n for n, returned in enumerate(schema.returns) if returned.name == output.name)
        return ParameterPlan(Kind.OUTPUT_LIST if output.kind is ParameterKind.DYNAMIC else Kind.OUTPUT, n)
    narrow = value is CValue.FLOAT and argument.type.width == 4
    if argument.part is Part.CONSTANT:
        return ParameterPlan(Kind.FLOAT32 if narrow else _CONSTANTS[value], -1, argument.value, low, high)
    declared = (prototype.inputs if argument.part is Part.INPUT else prototype.attrs)[argument.index]
    n = next(n for n, a in enumerate(schema.arguments) if a.parameter is declared)
    given = schema.arguments[n]
    made = {CValue.SCALAR: Kind.SCALAR, CValue.SCALAR_LIST: Kind.SCALARS}
    kind = Kind.FLOAT32 if narrow else made.get(value, given.kind)
    return ParameterPlan(kind, n, given.default, low, high)


def _allowed(schema: OperatorSchema) -> list[tuple[int, AllowedDtypes]]:
    """The dtypes of each tensor argument, by its position."""
    return [
        (n, allowed_dtypes(a.parameter))
        for n, a in enumerate(schema.arguments)
        if isinstance(a.parameter, Parameter) and a.is_tensor
    ]


def _shape_code(schema: OperatorSchema, relation: Relation) -> ShapeCode | None:
    names = _names(schema)
    position = {names[a.name]: n for n, a in enumerate(schema.arguments) if a.name in names}
    kinds = {names[a.name]: a.kind for a in schema.arguments if a.name in names}
    tensors = {name: n for name, n in position.items() if kinds[name] is Kind.TENSOR}
    attrs = {
        names[a.name]: (n, attr_kind(a.kind, a.default is not None))
        for n, a in enumerate(schema.arguments)
        if a.name in names and not a.is_tensor
    }
    return encode(relation, tensors, attrs)
