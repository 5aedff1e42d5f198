"""Plan of an aclnn call as C++: the arguments that a generated kernel passes to ``call``, in the function's order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ascend_graph.codegen.eager_library.texts import cpp_value
from ascend_graph.codegen.rendering import GenerationError, cpp_string

from ascend_graph.aclnn import ValueKind
from ascend_graph.binding import AclnnCall, CallArgument, Part
from ascend_graph.binding.generated_schema import AclnnArgumentKind, GeneratedArgument, OperatorSchema, default_of


@dataclass(frozen=True, slots=True)
class CppCall:
    """Call of an aclnn function as the templates write it."""

    function: str
    #: Checks before the call, of arguments without a parameter of the function.
    checks: tuple[str, ...]
    #: Arguments as C++ expressions; an output is its index among those that the kernel allocates.
    arguments: tuple[str | int, ...]
    #: Host memory that the function writes: the type of each variable, and the output that it becomes or None.
    host: tuple[tuple[str, int | None], ...]
    #: True if no header declares the function, so that only an operator package's may be called.
    package_only: bool
    #: Origin of the order, in words.
    source: str


#: C++ of a constant in the call, by its kind.
_CONSTANTS = {
    ValueKind.INT: (AclnnArgumentKind.INT, "int64_t({})"),
    ValueKind.DTYPE: (AclnnArgumentKind.INT, "int64_t({})"),
    ValueKind.FLOAT: (AclnnArgumentKind.FLOAT, "double({})"),
    ValueKind.BOOL: (AclnnArgumentKind.BOOL, "{}"),
    ValueKind.STRING: (AclnnArgumentKind.STRING, "std::string_view({})"),
    ValueKind.INTS: (AclnnArgumentKind.INTS, "at::IntArrayRef({})"),
    ValueKind.FLOATS: (AclnnArgumentKind.FLOATS, "at::ArrayRef<double>({})"),
    ValueKind.BOOLS: (AclnnArgumentKind.BOOLS, "c10::List<bool>({})"),
}
#: Placeholder of host memory in the arguments, with its index among the host memory.
_HOST = "&host_{}"


def cpp_call(
    call: AclnnCall, schema: OperatorSchema, arguments: Mapping[str, tuple[GeneratedArgument, str, str]]
) -> CppCall:
    """Return the C++ of a call.

    Args:
        call: The plan.
        schema: The operator's schema.
        arguments: By ``input x`` and ``attr x``, each argument of the schema, its value in C++, and its form in a call.

    Raises:
        GenerationError: The plan has a part that generated code does not support.
    """
    host: list[tuple[str, int | None]] = []
    written: list[str | int] = []
    for argument in call.arguments:
        if argument.type.value is ValueKind.HOST_OUTPUT:
            written.append(_HOST.format(len(host)))
            output = _output(schema, argument) if argument.part is Part.OUTPUT else None
            host.append((argument.type.pointee.canonical.base, output))
        else:
            written.append(_argument(schema, argument, arguments))
    checks = tuple(_check(schema, call, name, arguments) for name in call.unused)
    place = call.declared and f"declared in {Path(call.declared.file).name}"
    return CppCall(call.function, checks, tuple(written), tuple(host), call.declared is None, place or call.source)


def _argument(
    schema: OperatorSchema, argument: CallArgument, arguments: Mapping[str, tuple[GeneratedArgument, str, str]]
) -> str | int:
    prototype, value, type_ = schema.prototype, argument.type.value, argument.type
    if argument.part is Part.OUTPUT:
        return _output(schema, argument)
    narrow = value is ValueKind.FLOAT and type_.width == 4
    if argument.part is Part.CONSTANT:
        text = _constant(value, argument.value)
        return _narrowed(argument, text) if narrow else text
    if argument.part is Part.COMPUTED:
        raise GenerationError(
            f"{schema.name}: the parameter {argument.name} is computed by a Python function, which generated C++ "
            "cannot call; give a constant, or register the operator with register_op"
        )
    if argument.part is Part.INPUT:
        return arguments[f"input {prototype.inputs[argument.index].name}"][2]
    given, plain, taken = arguments[f"attr {prototype.attrs[argument.index].name}"]
    if narrow:
        return _narrowed(argument, plain)
    if value is ValueKind.SCALAR:
        return taken if given.kind is AclnnArgumentKind.SCALAR else f"at::Scalar({plain})"
    if value is ValueKind.SCALAR_LIST:
        return taken if given.kind is AclnnArgumentKind.SCALARS else f"ascend_graph::eager::scalars_of({plain})"
    if value is ValueKind.INT and type_.canonical.base != "int64_t" and given.kind is AclnnArgumentKind.INT:
        return f'ascend_graph::eager::ranged<{type_.canonical.base}>("{argument.name}", {plain})'
    return taken


def _narrowed(argument: CallArgument, text: str) -> str:
    return f'ascend_graph::eager::narrowed("{argument.name}", {text})'


def _output(schema: OperatorSchema, argument: CallArgument) -> int:
    """Return the position among the kernel's outputs."""
    name = schema.prototype.outputs[argument.index].name
    return next(n for n, output in enumerate(schema.returns) if output.name == name)


def _constant(value: ValueKind, held: Any) -> str:
    if held is None:
        return "nullptr"
    if value is ValueKind.SCALAR_LIST:
        return f"std::vector<at::Scalar>{{{', '.join(_constant(ValueKind.SCALAR, item) for item in held)}}}"
    if value is ValueKind.SCALAR:
        kind = (
            AclnnArgumentKind.BOOL
            if isinstance(held, bool)
            else AclnnArgumentKind.INT
            if isinstance(held, int)
            else AclnnArgumentKind.FLOAT
        )
        wide = {AclnnArgumentKind.BOOL: "bool", AclnnArgumentKind.INT: "int64_t", AclnnArgumentKind.FLOAT: "double"}[
            kind
        ]
        return f"at::Scalar({wide}({cpp_value(kind, held)}))"
    kind, text = _CONSTANTS[value]
    return text.format(cpp_value(kind, held))


def _check(
    schema: OperatorSchema, call: AclnnCall, name: str, arguments: Mapping[str, tuple[GeneratedArgument, str, str]]
) -> str:
    """Return the check that an argument without a parameter of the function stays at its default."""
    message = cpp_string(f"{schema.name}: {call.function} has nothing for {name}: it may only be left at its default")
    if f"attr {name}" not in arguments:
        tensor = arguments[f"input {name}"][1]
        return f"TORCH_CHECK(!{tensor}.has_value() || !{tensor}->defined(), {message});"
    given, plain, _ = arguments[f"attr {name}"]
    # What the function computes with: the prototype's default, whatever the operator's own is.
    attr = next(attr for attr in schema.prototype.attrs if attr.name == name)
    default = cpp_value(given.kind, default_of(replace(given, parameter=attr)))
    lists = {
        AclnnArgumentKind.INTS: "at::IntArrayRef",
        AclnnArgumentKind.DTYPES: "at::IntArrayRef",
        AclnnArgumentKind.FLOATS: "at::ArrayRef<double>",
        AclnnArgumentKind.BOOLS: "c10::List<bool>",
    }
    if (list_ := lists.get(given.kind)) is None:
        return f"TORCH_CHECK(({plain}) == {default}, {message});"
    equal = " == {}" if given.kind is AclnnArgumentKind.BOOLS else ".equals({})"
    return f"TORCH_CHECK({list_}({plain}){equal.format(f'{list_}({default})')}, {message});"
