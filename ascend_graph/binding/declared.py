"""An operator by its aclnn function alone: a schema made from the declaration, or a given one bound to it. No torch.

Both become what a prototype would be: inputs, attrs and outputs by name, and the plan of the call. From there on nothing knows the
difference.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ascend_graph.aclnn import AclnnFunction, AclnnParameter, Direction, Value
from ascend_graph.aclnn.roles import is_output_name
from ascend_graph.binding.call import NO_READER, Call, CallArgument, Evidence, Part
from ascend_graph.binding.call_matching import bind_call
from ascend_graph.binding.constants import constant, literal
from ascend_graph.binding.errors import BindingError
from ascend_graph.binding.op_schema import ArgumentKind, OpSchema
from ascend_graph.binding.op_schema import SchemaArgument as GivenArgument
from ascend_graph.binding.own_schema import Kind, OperatorSchema, SchemaArgument, plain_name, schema_literal
from ascend_graph.prototypes import Attr, AttrType, OpPrototype, Parameter, ParameterKind
from ascend_graph.prototypes.naming import snake_case

#: What a value of the function is for torch: the schema's type, how the kernel takes it, and what it would be in a prototype.
_VALUES = {
    Value.INT: ("int", Kind.INT, AttrType.INT),
    Value.FLOAT: ("float", Kind.FLOAT, AttrType.FLOAT),
    Value.BOOL: ("bool", Kind.BOOL, AttrType.BOOL),
    Value.STRING: ("str", Kind.STRING, AttrType.STRING),
    Value.DTYPE: ("ScalarType", Kind.DTYPE, AttrType.TYPE),
    Value.SCALAR: ("Scalar", Kind.SCALAR, AttrType.FLOAT),
    Value.SCALAR_LIST: ("Scalar[]", Kind.SCALARS, AttrType.LIST_FLOAT),
    Value.INTS: ("int[]", Kind.INTS, AttrType.LIST_INT),
    Value.FLOATS: ("float[]", Kind.FLOATS, AttrType.LIST_FLOAT),
    Value.BOOLS: ("bool[]", Kind.BOOLS, AttrType.LIST_BOOL),
}
_TENSORS = (Value.TENSOR, Value.TENSOR_LIST)
#: Values that may be null.
_POINTERS = (Value.STRING, Value.SCALAR, Value.SCALAR_LIST, Value.INTS, Value.FLOATS, Value.BOOLS)
_ENDING = re.compile(r"(?<=[a-z0-9_])(?:Optional|Ref)\d*\Z|_(?:optional|ref)\Z")


@dataclass(frozen=True, slots=True)
class Declared:
    """An operator that calls a declared function."""

    #: Its schema; the prototype in it is what the function would be in a graph, and is named after it.
    schema: OperatorSchema
    call: Call
    #: From the header's name of each parameter to the schema's.
    names: Mapping[str, str]


def derive(
    function: AclnnFunction,
    name: str | None = None,
    fixed: Mapping[str, Any] | None = None,
    outputs: Collection[str] = (),
) -> Declared:
    """The operator that a declaration describes.

    Tensors and values come in the function's order, ``Tensor(a!)`` where they are written, and outputs are returned; of a function
    that reads no tensor they are written too, for nothing else says on which device they are. What may be null is None by default
    where the order allows it; values behind such a default are keyword-only.

    Args:
        function: The function.
        name: The operator's name; the function's in snake case by default.
        fixed: The values of parameters that the operator shall not have.
        outputs: The names of outputs, for a header that does not tell what is written: generated ones have const everywhere.

    Raises:
        BindingError: A parameter has a type that no call is made with, or no argument says on which device a call runs.

    >>> from ascend_graph.aclnn import parse_text
    >>> print(derive(parse_text('''int aclnnAddRmsNormGetWorkspaceSize(const aclTensor *x, const aclTensor *biasOptional,
    ...     const aclScalar *alpha, double epsilon, aclDataType outType, aclTensor *yOut, uint64_t *workspaceSize,
    ...     aclOpExecutor **executor);''').functions[0]).schema)
    add_rms_norm(Tensor x, Tensor? bias=None, *, Scalar alpha, float epsilon, ScalarType out_type) -> Tensor y
    """
    function = _with_outputs(function, outputs)
    if not any(map(_says_the_device, function.parameters)):
        function = _with_outputs_passed_in(function)
    if not any(map(_says_the_device, function.parameters)):
        raise BindingError(
            f"{function.name}: nothing says on which device a call of it runs: it has no tensor, and a list that may be None "
            f"is none to PyTorch; call it from C++\n  {function.place}: {function}"
        )
    return _Derivation(function, dict(fixed or {})).declared(name or snake_case(function.name.removeprefix("aclnn")))


def _with_outputs(function: AclnnFunction, outputs: Collection[str]) -> AclnnFunction:
    """The function with the outputs that are named, where the header has const at every tensor."""
    tensors = [p for p in function.parameters if p.value in _TENSORS]
    if not all(p.type.const for p in tensors):
        return function
    named = {snake_case(output) for output in outputs}
    parameters = [
        replace(p, direction=Direction.OUT) if p in tensors and {snake_case(p.name), _short(p)} & named else p
        for p in function.parameters
    ]
    return replace(function, parameters=tuple(parameters))


def _says_the_device(parameter: AclnnParameter) -> bool:
    """Whether PyTorch finds the device of a call by it: an argument of tensors, but no list that may be None."""
    if parameter.direction is Direction.OUT or parameter.value not in _TENSORS:
        return False
    return not (parameter.optional and parameter.value is Value.TENSOR_LIST)


def _with_outputs_passed_in(function: AclnnFunction) -> AclnnFunction:
    """A function that reads no tensor, as one whose caller passes the outputs in: nothing else says on which device they are."""
    parameters = [
        replace(p, direction=Direction.INOUT) if p.value in _TENSORS and p.direction is Direction.OUT else p
        for p in function.parameters
    ]
    return replace(function, parameters=tuple(parameters))


class _Derivation:
    def __init__(self, function: AclnnFunction, fixed: dict[str, Any]) -> None:
        self.function = function
        self.values = {n: self.fixed_value(p, fixed) for n, p in enumerate(function.parameters) if p.name in fixed}
        strangers = fixed.keys() - {p.name for p in function.parameters}
        if strangers:
            raise self.refuse(
                f"aclnn_arguments= mentions {', '.join(sorted(strangers))}; parameters are "
                f"{', '.join(p.name for p in function.parameters)}"
            )
        self.open = [n for n in range(len(function.parameters)) if n not in self.values]
        self.names = self.unique_names()

    def refuse(self, message: str) -> BindingError:
        return BindingError(f"{self.function.name}: {message}\n  {self.function.place}: {self.function}")

    def fixed_value(self, parameter: AclnnParameter, fixed: Mapping[str, Any]) -> Any:
        try:
            return constant(parameter, fixed[parameter.name])
        except ValueError as error:
            wanted = fixed[parameter.name]
            raise self.refuse(
                f"aclnn_arguments={{{parameter.name!r}: {wanted!r}}}: {error}; names of arguments are for schema="
            ) from None

    def unique_names(self) -> dict[int, str]:
        """The schema's name of each parameter; what is read or written first keeps the shorter one."""
        found: dict[int, str] = {}
        for n in sorted(self.open, key=self.is_output):
            parameter = self.function.parameters[n]
            candidates = [_short(parameter), snake_case(parameter.name)]
            name = next((c for c in map(plain_name, candidates) if c not in found.values()), "")
            if not name:
                name = next(c for k in range(len(found) + 1) if (c := f"{candidates[1]}_{k}") not in found.values())
            found[n] = name
        return found

    def is_output(self, n: int) -> bool:
        return self.function.parameters[n].direction is Direction.OUT

    def declared(self, name: str) -> Declared:
        parameters = self.function.parameters
        for n in self.open:
            self.check_type(parameters[n])
        read = [n for n in self.open if not self.is_output(n)]
        inputs = {n: self.input(n) for n in read if parameters[n].value in _TENSORS}
        attrs = {n: self.attr(n) for n in read if n not in inputs}
        outputs = {n: self.output(n) for n in self.open if self.is_output(n)}
        written = {n: inputs[n] for n in inputs if parameters[n].direction is Direction.INOUT}
        prototype = OpPrototype(
            self.function.name,
            tuple(inputs.values()),
            tuple(attrs.values()),
            (*outputs.values(), *written.values()),
            self.function.doc,
            self.function.file,
            self.function.line,
        )
        schema = OperatorSchema(
            plain_name(name), prototype, self.arguments(inputs, attrs, written), tuple(outputs.values())
        )
        where: dict[int, tuple[Part, int]] = {}
        for part, group in ((Part.INPUT, inputs), (Part.ATTR, attrs), (Part.OUTPUT, outputs)):
            where |= {n: (part, index) for index, n in enumerate(group)}
        arguments = []
        for n, parameter in enumerate(parameters):
            if n in self.values:
                arguments.append(
                    CallArgument(
                        parameter.name, parameter.type, Part.CONSTANT, -1, self.values[n], evidence=Evidence.EXPLICIT
                    )
                )
            else:
                arguments.append(CallArgument(parameter.name, parameter.type, *where[n], evidence=Evidence.DERIVED))
        call = Call(self.function.name, tuple(arguments), self.function, source=f"declared at {self.function.place}")
        return Declared(schema, call, {parameters[n].name: name for n, name in self.names.items()})

    def check_type(self, parameter: AclnnParameter) -> None:
        known = parameter.value in (*_VALUES, *_TENSORS)
        known = known or (parameter.value is Value.HOST_OUTPUT and parameter.type.pointers == 1)
        if not known:
            if parameter.type.pointers == 2 and parameter.value is Value.HOST_OUTPUT:
                raise self.refuse(f"{parameter} {NO_READER}")
            line = f"aclnn_arguments={{{parameter.name!r}: None}}"
            nothing = f"; where it may be null: {line}" if parameter.type.pointers == 1 else ""
            raise self.refuse(f"{parameter} has a type that no call is made with here{nothing}")

    def input(self, n: int) -> Parameter:
        parameter = self.function.parameters[n]
        kind = ParameterKind.OPTIONAL if parameter.optional else ParameterKind.REQUIRED
        if parameter.value is Value.TENSOR_LIST:
            kind = ParameterKind.DYNAMIC
        return Parameter(self.names[n], kind)

    def output(self, n: int) -> Parameter:
        dynamic = self.function.parameters[n].value is Value.TENSOR_LIST
        return Parameter(self.names[n], ParameterKind.DYNAMIC if dynamic else ParameterKind.REQUIRED)

    def attr(self, n: int) -> Attr:
        parameter = self.function.parameters[n]
        kind = _VALUES[parameter.value][2]
        if self.may_be_null(parameter):
            return Attr(self.names[n], kind, False)
        default = self.header_default(parameter)
        return Attr(self.names[n], kind, default is None, default, parameter.default)

    def may_be_null(self, parameter: AclnnParameter) -> bool:
        return parameter.optional and parameter.value in _POINTERS and self.header_default(parameter) is None

    def header_default(self, parameter: AclnnParameter) -> Any:
        """The value of the header's default argument; None without one, and of a null."""
        if not parameter.default:
            return None
        try:
            return constant(parameter, literal(parameter.default))
        except ValueError:
            return None

    def arguments(
        self, inputs: Mapping[int, Parameter], attrs: Mapping[int, Attr], written: Mapping[int, Parameter]
    ) -> tuple[SchemaArgument, ...]:
        last_required = max((n for n in inputs if not self.function.parameters[n].optional), default=-1)
        tensors = [n for n in inputs if n > last_required]
        defaulted = [n for n in attrs if not attrs[n].required]
        # Values behind the first default are keyword-only, and those with a default that a schema may have no text for.
        first = min([*tensors, *(n for n in defaulted if n > last_required)], default=len(self.function.parameters))
        keyword = [n for n in attrs if n > first or (n in defaulted and (n < last_required or attrs[n].default_text))]
        made = []
        for n in sorted({*inputs, *attrs}, key=lambda n: (n in keyword, n)):
            if n in inputs:
                made.append(self.tensor_argument(n, inputs[n], n > last_required, list(written)))
            else:
                made.append(replace(self.value_argument(n, attrs[n]), keyword=n in keyword))
        return tuple(made)

    def tensor_argument(self, n: int, parameter: Parameter, trailing: bool, written: list[int]) -> SchemaArgument:
        declared = self.function.parameters[n]
        is_list = declared.value is Value.TENSOR_LIST
        alias = f"({chr(ord('a') + written.index(n) % 26)}!)" if n in written else ""
        text = f"Tensor{alias}{'[]' if is_list else ''}{'?' if declared.optional else ''} {parameter.name}"
        text += "=None" if declared.optional and trailing else ""
        return SchemaArgument(parameter.name, parameter, Kind.TENSOR_LIST if is_list else Kind.TENSOR, text)

    def value_argument(self, n: int, attr: Attr) -> SchemaArgument:
        declared = self.function.parameters[n]
        type_, kind, _ = _VALUES[declared.value]
        if self.may_be_null(declared):
            return SchemaArgument(attr.name, attr, kind, f"{type_}? {attr.name}=None")
        if attr.required:
            return SchemaArgument(attr.name, attr, kind, f"{type_} {attr.name}")
        shown = None if kind is Kind.DTYPE else schema_literal(kind, attr.default)
        if shown is None:
            return SchemaArgument(attr.name, attr, kind, f"{type_}? {attr.name}=None", attr.default)
        return SchemaArgument(attr.name, attr, kind, f"{type_} {attr.name}={shown}")


def _short(parameter: AclnnParameter) -> str:
    """The schema's name for a parameter: without what the header says in its ending.

    >>> from ascend_graph.aclnn import CType
    >>> tensor = CType("aclTensor", 1)
    >>> [_short(AclnnParameter(name, tensor)) for name in ("cuSeqlensOptional", "cacheRef", "href")]
    ['cu_seqlens', 'cache', 'href']
    >>> [_short(AclnnParameter(name, tensor, Direction.OUT)) for name in ("yOut", "out", "values_out")]
    ['y', 'out', 'values']
    """
    name = parameter.name
    if parameter.direction is Direction.OUT and is_output_name(name) and len(name) > 3:
        name = name[: max(name.rfind("Out"), name.rfind("_out"))] or name
    for _ in range(2):
        name = _ENDING.sub("", name) or name
    return snake_case(name)


# ------------------------------------------------------------------------------------------------------ a given schema

_GIVEN = {
    (ArgumentKind.INT, 0): (Kind.INT, AttrType.INT),
    (ArgumentKind.FLOAT, 0): (Kind.FLOAT, AttrType.FLOAT),
    (ArgumentKind.BOOL, 0): (Kind.BOOL, AttrType.BOOL),
    (ArgumentKind.STR, 0): (Kind.STRING, AttrType.STRING),
    (ArgumentKind.SCALAR, 0): (Kind.SCALAR, AttrType.FLOAT),
    (ArgumentKind.DTYPE, 0): (Kind.DTYPE, AttrType.TYPE),
    (ArgumentKind.SCALAR, 1): (Kind.SCALARS, AttrType.LIST_FLOAT),
    (ArgumentKind.INT, 1): (Kind.INTS, AttrType.LIST_INT),
    (ArgumentKind.FLOAT, 1): (Kind.FLOATS, AttrType.LIST_FLOAT),
    (ArgumentKind.BOOL, 1): (Kind.BOOLS, AttrType.LIST_BOOL),
}


def bind_schema(
    function: AclnnFunction, schema: OpSchema, text: str, arguments: Mapping[str, Any] | None = None
) -> Declared:
    """A given schema bound to a declaration, by names and types.

    Args:
        function: The function.
        schema: The schema, read.
        text: The same as it is defined, without the namespace.
        arguments: What names do not settle; see :func:`~ascend_graph.binding.call.bind_call`.

    Raises:
        BindingError: The two do not fit; the message shows both and the line to write.
    """
    inputs: list[Parameter] = []
    attrs: list[Attr] = []
    written: list[Parameter] = []
    made: list[SchemaArgument] = []
    for given in schema.arguments:
        if given.is_tensor:
            tensor = _given_tensor(given)
            inputs.append(tensor)
            written += [tensor] if given.mutated else []
            made.append(SchemaArgument(given.name, tensor, Kind.TENSOR_LIST if given.list_depth else Kind.TENSOR, ""))
        else:
            value = _given_value(schema, given)
            attrs.append(value.parameter)  # type: ignore[arg-type]
            made.append(value)
    taken = {p.name for p in inputs}
    outs = [p for p in function.parameters if p.direction is Direction.OUT]
    outputs: list[Parameter] = []
    for n, returned in enumerate(schema.returns):
        if returned.kind is not ArgumentKind.TENSOR or returned.alias_of is not None:
            raise BindingError(
                f"{schema.qualified_name} ↔ {function.name}: return {n} is {returned.type_text}; returns are new tensors: what is "
                "written is an argument Tensor(a!) alone\n  schema: " + text
            )
        name = returned.name or (_short(outs[n]) if len(outs) == len(schema.returns) else f"out{n}")
        name = f"{name}_out" if name in taken else name
        outputs.append(Parameter(name, ParameterKind.DYNAMIC if returned.list_depth else ParameterKind.REQUIRED))
    prototype = OpPrototype(
        function.name,
        tuple(inputs),
        tuple(attrs),
        (*outputs, *written),
        function.doc,
        function.file,
        function.line,
    )
    call = bind_call(prototype, function, arguments, schema=text)
    made_kinds = {a.parameter.name: a.kind for a in made if not a.is_input}
    for argument in call.arguments:
        given_kind = made_kinds.get(prototype.attrs[argument.index].name) if argument.part is Part.ATTR else None
        wanted = {Kind.SCALAR: Value.SCALAR, Kind.SCALARS: Value.SCALAR_LIST}.get(given_kind) if given_kind else None
        if wanted is not None and argument.type.value is not wanted:
            name = prototype.attrs[argument.index].name
            raise BindingError(
                f"{schema.qualified_name} ↔ {function.name}: {name} is {wanted.value}, which may be ints, floats or bools, and "
                f"{argument.type} {argument.name} takes {argument.type.value.value}\n  schema: {text}"
            )
    operator = OperatorSchema(schema.name.partition("::")[2], prototype, tuple(made), tuple(outputs), text=text)
    sides: dict[Part, Any] = {Part.INPUT: prototype.inputs, Part.ATTR: prototype.attrs, Part.OUTPUT: prototype.outputs}
    names = {a.name: sides[a.part][a.index].name for a in call.arguments if a.part in sides}
    return Declared(operator, call, names)


def _given_tensor(given: GivenArgument) -> Parameter:
    kind = ParameterKind.OPTIONAL if given.optional else ParameterKind.REQUIRED
    return Parameter(given.name, ParameterKind.DYNAMIC if given.list_depth else kind)


def _given_value(schema: OpSchema, given: GivenArgument) -> SchemaArgument:
    found = _GIVEN.get((given.kind, given.list_depth))
    if found is None:
        raise BindingError(
            f"{schema.qualified_name}: {given.type_text} {given.name} is nothing that an aclnn function takes; schemas for these have "
            f"Tensor, Tensor[], {', '.join(f'{kind.value}{depth * chr(91) + depth * chr(93)}' for kind, depth in _GIVEN)}"
        )
    kind, type_ = found
    required = not (given.has_default or given.optional)
    return SchemaArgument(given.name, Attr(given.name, type_, required, given.default), kind, "")
