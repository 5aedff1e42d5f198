"""Call plan of an aclnn function for an operator whose schema exists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ascend_graph.aclnn import AclnnFunction, AclnnParameter, Direction, ValueKind
from ascend_graph.binding.calls.call import AclnnCall, Part
from ascend_graph.binding.calls.from_declaration import Declared, short_name
from ascend_graph.binding.calls.matching import bind_call
from ascend_graph.binding.errors import BindingError
from ascend_graph.binding.generated_schema import AclnnArgumentKind, GeneratedArgument, OperatorSchema
from ascend_graph.binding.op_schema import ArgumentKind, OpSchema, SchemaArgument
from ascend_graph.prototypes import Attr, AttrType, OpPrototype, Parameter, ParameterKind
from ascend_graph.prototypes.naming import snake_case

#: Forms of each type of value: the kernel's parameter kind, and the prototype's attr type.
GIVEN = {
    (ArgumentKind.INT, 0): (AclnnArgumentKind.INT, AttrType.INT),
    (ArgumentKind.FLOAT, 0): (AclnnArgumentKind.FLOAT, AttrType.FLOAT),
    (ArgumentKind.BOOL, 0): (AclnnArgumentKind.BOOL, AttrType.BOOL),
    (ArgumentKind.STR, 0): (AclnnArgumentKind.STRING, AttrType.STRING),
    (ArgumentKind.SCALAR, 0): (AclnnArgumentKind.SCALAR, AttrType.FLOAT),
    (ArgumentKind.DTYPE, 0): (AclnnArgumentKind.DTYPE, AttrType.TYPE),
    (ArgumentKind.SCALAR, 1): (AclnnArgumentKind.SCALARS, AttrType.LIST_FLOAT),
    (ArgumentKind.INT, 1): (AclnnArgumentKind.INTS, AttrType.LIST_INT),
    (ArgumentKind.FLOAT, 1): (AclnnArgumentKind.FLOATS, AttrType.LIST_FLOAT),
    (ArgumentKind.BOOL, 1): (AclnnArgumentKind.BOOLS, AttrType.LIST_BOOL),
}


def _outputs(
    schema: OpSchema, function: AclnnFunction, text: str, outs: list[AclnnParameter], taken: set[str]
) -> list[Parameter]:
    """Return the outputs of a schema, named as the function names them."""
    outputs: list[Parameter] = []
    for n, returned in enumerate(schema.returns):
        if returned.kind is not ArgumentKind.TENSOR or returned.alias_of is not None:
            raise BindingError(
                f"{schema.qualified_name} ↔ {function.name}: return {n} is {returned.type_text}; returns are new tensors: what is "
                "written is an argument Tensor(a!) alone\n  schema: " + text
            )
        short = [short_name(out) for out in outs]
        called = [s if short.count(s) == 1 else snake_case(out.name) for s, out in zip(short, outs, strict=True)]
        name = returned.name or (called[n] if len(outs) == len(schema.returns) else f"out{n}")
        name = f"{name}_out" if name in taken else name
        outputs.append(Parameter(name, ParameterKind.DYNAMIC if returned.list_depth else ParameterKind.REQUIRED))
    return outputs


def _check_scalars(
    made: Sequence[GeneratedArgument],
    call: AclnnCall,
    prototype: OpPrototype,
    schema: OpSchema,
    function: AclnnFunction,
    text: str,
) -> None:
    """Raise ``BindingError`` if the function takes a Scalar of the schema as a number of one type."""
    made_kinds = {a.parameter.name: a.kind for a in made if not a.is_input}
    for argument in call.arguments:
        given_kind = made_kinds.get(prototype.attrs[argument.index].name) if argument.part is Part.ATTR else None
        wanted = (
            {AclnnArgumentKind.SCALAR: ValueKind.SCALAR, AclnnArgumentKind.SCALARS: ValueKind.SCALAR_LIST}.get(
                given_kind
            )
            if given_kind
            else None
        )
        if wanted is not None and argument.type.value is not wanted:
            name = prototype.attrs[argument.index].name
            raise BindingError(
                f"{schema.qualified_name} ↔ {function.name}: {name} is {wanted.value}, which may be ints, floats or bools, and "
                f"{argument.type} {argument.name} takes {argument.type.value.value}\n  schema: {text}"
            )


def bind_schema(
    function: AclnnFunction, schema: OpSchema, text: str, arguments: Mapping[str, Any] | None = None
) -> Declared:
    """Bind a given schema to a declaration, by names and types.

    Args:
        function: The function.
        schema: The schema, read.
        text: The schema as it is defined, without the namespace.
        arguments: The pairs that names do not settle; see :func:`~ascend_graph.binding.calls.matching.bind_call`.

    Raises:
        BindingError: The two do not fit; the message shows both and the line to write.
    """
    inputs: list[Parameter] = []
    attrs: list[Attr] = []
    written: list[Parameter] = []
    made: list[GeneratedArgument] = []
    for given in schema.arguments:
        if given.is_tensor:
            tensor = given_tensor(given)
            inputs.append(tensor)
            written += [tensor] if given.mutated else []
            made.append(
                GeneratedArgument(
                    given.name,
                    tensor,
                    AclnnArgumentKind.TENSOR_LIST if given.list_depth else AclnnArgumentKind.TENSOR,
                    "",
                )
            )
        else:
            value = _given_value(schema, given)
            attrs.append(value.parameter)  # type: ignore[arg-type]
            made.append(value)
    taken = {p.name for p in inputs}
    outs = [p for p in function.parameters if p.direction is Direction.OUT]
    outputs = _outputs(schema, function, text, outs, taken)
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
    _check_scalars(made, call, prototype, schema, function, text)
    operator = OperatorSchema(schema.name.partition("::")[2], prototype, tuple(made), tuple(outputs), text=text)
    sides: dict[Part, Any] = {Part.INPUT: prototype.inputs, Part.ATTR: prototype.attrs, Part.OUTPUT: prototype.outputs}
    names = {a.name: sides[a.part][a.index].name for a in call.arguments if a.part in sides}
    return Declared(operator, call, names)


def given_tensor(given: SchemaArgument) -> Parameter:
    """Return the prototype's input of a tensor argument."""
    kind = ParameterKind.OPTIONAL if given.optional else ParameterKind.REQUIRED
    return Parameter(given.name, ParameterKind.DYNAMIC if given.list_depth else kind)


def _given_value(schema: OpSchema, given: SchemaArgument) -> GeneratedArgument:
    found = GIVEN.get((given.kind, given.list_depth))
    if found is None:
        raise BindingError(
            f"{schema.qualified_name}: {given.type_text} {given.name} is nothing that an aclnn function takes; schemas for these have "
            f"Tensor, Tensor[], {', '.join(f'{kind.value}{depth * chr(91) + depth * chr(93)}' for kind, depth in GIVEN)}"
        )
    kind, type_ = found
    required = not (given.has_default or given.optional)
    return GeneratedArgument(given.name, Attr(given.name, type_, required, given.default), kind, "")
