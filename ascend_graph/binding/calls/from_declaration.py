"""Operators from an aclnn declaration alone: a schema derived from it. No torch.

The declaration becomes the equivalent of a prototype: inputs, attrs and outputs by name, and the plan of the call.
Later steps do not see a difference. :mod:`ascend_graph.binding.calls.from_schema` does the same with a given schema.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ascend_graph.aclnn import AclnnFunction, AclnnParameter, Direction, ValueKind
from ascend_graph.aclnn.roles import is_output_name
from ascend_graph.binding.calls.call import NO_READER, AclnnCall, ArgumentEvidence, CallArgument, Computed, Part
from ascend_graph.binding.calls.constants import constant, literal
from ascend_graph.binding.calls.matching import computed_argument
from ascend_graph.binding.errors import BindingError
from ascend_graph.binding.generated_schema import (
    AclnnArgumentKind,
    GeneratedArgument,
    OperatorSchema,
    plain_name,
    schema_literal,
)
from ascend_graph.prototypes import Attr, AttrType, OpPrototype, Parameter, ParameterKind
from ascend_graph.prototypes.naming import snake_case

#: Forms of each kind of value: the schema's type, the kernel's parameter kind, and the prototype's attr type.
_VALUES = {
    ValueKind.INT: ("int", AclnnArgumentKind.INT, AttrType.INT),
    ValueKind.FLOAT: ("float", AclnnArgumentKind.FLOAT, AttrType.FLOAT),
    ValueKind.BOOL: ("bool", AclnnArgumentKind.BOOL, AttrType.BOOL),
    ValueKind.STRING: ("str", AclnnArgumentKind.STRING, AttrType.STRING),
    ValueKind.DTYPE: ("ScalarType", AclnnArgumentKind.DTYPE, AttrType.TYPE),
    ValueKind.SCALAR: ("Scalar", AclnnArgumentKind.SCALAR, AttrType.FLOAT),
    ValueKind.SCALAR_LIST: ("Scalar[]", AclnnArgumentKind.SCALARS, AttrType.LIST_FLOAT),
    ValueKind.INTS: ("int[]", AclnnArgumentKind.INTS, AttrType.LIST_INT),
    ValueKind.FLOATS: ("float[]", AclnnArgumentKind.FLOATS, AttrType.LIST_FLOAT),
    ValueKind.BOOLS: ("bool[]", AclnnArgumentKind.BOOLS, AttrType.LIST_BOOL),
}
_TENSORS = (ValueKind.TENSOR, ValueKind.TENSOR_LIST)
#: Values that may be null.
_POINTERS = (
    ValueKind.STRING,
    ValueKind.SCALAR,
    ValueKind.SCALAR_LIST,
    ValueKind.INTS,
    ValueKind.FLOATS,
    ValueKind.BOOLS,
)
_ENDING = re.compile(r"(?<=[a-z0-9_])(?:Optional|Ref)\d*\Z|_(?:optional|ref)\Z")


@dataclass(frozen=True, slots=True)
class Declared:
    """Operator that calls a declared function."""

    #: Its schema; the prototype in it describes the function as an op, and has its name.
    schema: OperatorSchema
    call: AclnnCall
    #: The schema's name of each parameter, by the header's name.
    names: Mapping[str, str]


def derive(
    function: AclnnFunction,
    name: str | None = None,
    fixed: Mapping[str, Any] | None = None,
    outputs: Collection[str] = (),
) -> Declared:
    """Return the operator that a declaration describes.

    Tensors and values come in the function's order. Written tensors are ``Tensor(a!)``, and outputs are returned. If
    the function does not read a tensor, the caller passes the outputs in, because nothing else tells their device. A
    nullable argument is None by default if the order allows it; values after such a default are keyword-only.

    Args:
        function: The function.
        name: The operator's name; the function's in snake case by default.
        fixed: The values of parameters that the operator does not expose.
        outputs: The names of outputs, for a header that has const at every tensor, as generated ones do.

    Raises:
        BindingError: A parameter has a type that we cannot call with, or no argument tells the device of a call.

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
            f"{function.name}: nothing says on which device a call of it runs: expected a tensor that is not "
            f"optional, and it has none; call it from C++\n  {function.place}: {function}"
        )
    return _Derivation(function, dict(fixed or {})).declared(name or snake_case(function.name.removeprefix("aclnn")))


def _with_outputs(function: AclnnFunction, outputs: Collection[str]) -> AclnnFunction:
    """Return the function with the named outputs, if the header has const at every tensor."""
    tensors = [p for p in function.parameters if p.value in _TENSORS]
    if not all(p.type.const for p in tensors):
        return function
    named = {snake_case(output) for output in outputs}
    parameters = [
        replace(p, direction=Direction.OUT) if p in tensors and {snake_case(p.name), short_name(p)} & named else p
        for p in function.parameters
    ]
    return replace(function, parameters=tuple(parameters))


def _says_the_device(parameter: AclnnParameter) -> bool:
    """Return whether PyTorch can take a call's device from it: a tensor argument, but not an optional list."""
    if parameter.direction is Direction.OUT or parameter.value not in _TENSORS:
        return False
    return not (parameter.optional and parameter.value is ValueKind.TENSOR_LIST)


def _with_outputs_passed_in(function: AclnnFunction) -> AclnnFunction:
    """Return a function that reads no tensor with its outputs passed in: nothing else tells their device."""
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
                f"aclnn_arguments= mentions {', '.join(sorted(strangers))}; expected one of "
                f"{', '.join(p.name for p in function.parameters)}"
            )
        self.open = [n for n in range(len(function.parameters)) if n not in self.values]
        self.names = self.unique_names()

    def refuse(self, message: str) -> BindingError:
        return BindingError(f"{self.function.name}: {message}\n  {self.function.place}: {self.function}")

    def fixed_value(self, parameter: AclnnParameter, fixed: Mapping[str, Any]) -> Any:
        if callable(fixed[parameter.name]):
            return Computed(fixed[parameter.name])
        try:
            return constant(parameter, fixed[parameter.name])
        except ValueError as error:
            wanted = fixed[parameter.name]
            raise self.refuse(
                f"aclnn_arguments={{{parameter.name!r}: {wanted!r}}}: {error}; give schema= to name arguments"
            ) from None

    def unique_names(self) -> dict[int, str]:
        """Return the schema's name of each parameter: without its ending, if that stays unambiguous.

        An input and an output may differ only in the ending, as ``x`` and ``xOut``: the input gets the shorter name.
        """
        parameters = self.function.parameters
        found: dict[int, str] = {}
        exact = {n: snake_case(parameters[n].name) == parameters[n].name for n in self.open}
        for n in sorted(self.open, key=lambda n: (self.is_output(n), not exact[n])):
            short, full = plain_name(short_name(parameters[n])), plain_name(snake_case(parameters[n].name))
            side = [m for m in self.open if m != n and self.is_output(m) == self.is_output(n)]
            alike = any(plain_name(short_name(parameters[m])) == short for m in side)
            taken = {*found.values(), *(parameters[m].name for m in self.open if m != n)}
            candidates = [*([] if alike else [short]), full, *(f"{full}_{k}" for k in range(2 * len(parameters)))]
            found[n] = next(name for name in candidates if name not in taken)
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
            if isinstance(self.values.get(n), Computed):
                arguments.append(computed_argument(parameter, self.values[n]))
            elif n in self.values:
                arguments.append(
                    CallArgument(
                        parameter.name,
                        parameter.type,
                        Part.CONSTANT,
                        -1,
                        self.values[n],
                        evidence=ArgumentEvidence.EXPLICIT,
                    )
                )
            else:
                arguments.append(
                    CallArgument(parameter.name, parameter.type, *where[n], evidence=ArgumentEvidence.DERIVED)
                )
        call = AclnnCall(
            self.function.name, tuple(arguments), self.function, source=f"declared at {self.function.place}"
        )
        return Declared(schema, call, {parameters[n].name: name for n, name in self.names.items()})

    def check_type(self, parameter: AclnnParameter) -> None:
        known = parameter.value in (*_VALUES, *_TENSORS)
        known = known or (parameter.value is ValueKind.HOST_OUTPUT and parameter.type.pointers == 1)
        if not known:
            if parameter.type.pointers == 2 and parameter.value is ValueKind.HOST_OUTPUT:
                raise self.refuse(f"{parameter} {NO_READER}")
            line = f"aclnn_arguments={{{parameter.name!r}: None}}"
            nothing = f"; where it may be null: {line}" if parameter.type.pointers == 1 else ""
            raise self.refuse(f"{parameter} has a type that no call can pass; write the operator in C++{nothing}")

    def input(self, n: int) -> Parameter:
        parameter = self.function.parameters[n]
        kind = ParameterKind.OPTIONAL if parameter.optional else ParameterKind.REQUIRED
        if parameter.value is ValueKind.TENSOR_LIST:
            kind = ParameterKind.DYNAMIC
        return Parameter(self.names[n], kind)

    def output(self, n: int) -> Parameter:
        dynamic = self.function.parameters[n].value is ValueKind.TENSOR_LIST
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
        """Return the value of the header's default argument; None without a known one, and for null."""
        if not parameter.default:
            return None
        try:
            return constant(parameter, literal(parameter.default))
        except ValueError:
            return None

    def arguments(
        self, inputs: Mapping[int, Parameter], attrs: Mapping[int, Attr], written: Mapping[int, Parameter]
    ) -> tuple[GeneratedArgument, ...]:
        last_required = max((n for n in inputs if not self.function.parameters[n].optional), default=-1)
        tensors = [n for n in inputs if n > last_required]
        defaulted = [n for n in attrs if not attrs[n].required]
        # Values after the first default are keyword-only, and those with a default that a schema may have no text for.
        first = min([*tensors, *(n for n in defaulted if n > last_required)], default=len(self.function.parameters))
        keyword = [n for n in attrs if n > first or (n in defaulted and (n < last_required or attrs[n].default_text))]
        made = []
        for n in sorted({*inputs, *attrs}, key=lambda n: (n in keyword, n)):
            if n in inputs:
                made.append(self.tensor_argument(n, inputs[n], n > last_required, list(written)))
            else:
                made.append(replace(self.value_argument(n, attrs[n]), keyword=n in keyword))
        return tuple(made)

    def tensor_argument(self, n: int, parameter: Parameter, trailing: bool, written: list[int]) -> GeneratedArgument:
        declared = self.function.parameters[n]
        is_list = declared.value is ValueKind.TENSOR_LIST
        alias = f"({chr(ord('a') + written.index(n) % 26)}!)" if n in written else ""
        text = f"Tensor{alias}{'[]' if is_list else ''}{'?' if declared.optional else ''} {parameter.name}"
        text += "=None" if declared.optional and trailing else ""
        return GeneratedArgument(
            parameter.name, parameter, AclnnArgumentKind.TENSOR_LIST if is_list else AclnnArgumentKind.TENSOR, text
        )

    def value_argument(self, n: int, attr: Attr) -> GeneratedArgument:
        declared = self.function.parameters[n]
        type_, kind, _ = _VALUES[declared.value]
        if self.may_be_null(declared):
            return GeneratedArgument(attr.name, attr, kind, f"{type_}? {attr.name}=None")
        if attr.required:
            return GeneratedArgument(attr.name, attr, kind, f"{type_} {attr.name}")
        shown = None if kind is AclnnArgumentKind.DTYPE else schema_literal(kind, attr.default)
        if shown is None:
            return GeneratedArgument(attr.name, attr, kind, f"{type_}? {attr.name}=None", attr.default)
        return GeneratedArgument(attr.name, attr, kind, f"{type_} {attr.name}={shown}")


def short_name(parameter: AclnnParameter) -> str:
    """Return the schema's name for a parameter: without endings that mark direction or optionality.

    >>> from ascend_graph.aclnn import CType
    >>> tensor = CType("aclTensor", 1)
    >>> [short_name(AclnnParameter(name, tensor)) for name in ("cuSeqlensOptional", "cacheRef", "href")]
    ['cu_seqlens', 'cache', 'href']
    >>> [short_name(AclnnParameter(name, tensor, Direction.OUT)) for name in ("yOut", "out", "values_out")]
    ['y', 'out', 'values']
    """
    name = parameter.name
    if parameter.direction is Direction.OUT and is_output_name(name) and len(name) > 3:
        name = name[: max(name.rfind("Out"), name.rfind("_out"))] or name
    for _ in range(2):
        name = _ENDING.sub("", name) or name
    return snake_case(name)
