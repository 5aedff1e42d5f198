"""The plan of an aclnn call as C++: what a generated kernel hands to ``call``, in the function's order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ascend_graph.codegen.eager_texts import cpp_value
from ascend_graph.codegen.rendering import cpp_string

from ascend_graph.aclnn import Value
from ascend_graph.binding import Call, CallArgument, Part
from ascend_graph.binding.own_schema import Kind, OperatorSchema, SchemaArgument, default_of


@dataclass(frozen=True, slots=True)
class CppCall:
    """A call of an aclnn function as the templates write it."""

    function: str
    #: What comes before: the checks of arguments that the function has nothing for.
    checks: tuple[str, ...]
    #: The arguments as C++ expressions; an output is a number among those that the kernel allocates.
    arguments: tuple[str | int, ...]
    #: Host memory that the function writes: the type of each variable, and the output that it becomes or None.
    host: tuple[tuple[str, int | None], ...]
    #: Whether no header declares the function, so that only an operator package's may be called.
    package_only: bool
    #: In words, where the order comes from.
    source: str


#: By the kind of a constant, the C++ that holds it for the call.
_CONSTANTS = {
    Value.INT: (Kind.INT, "int64_t({})"),
    Value.DTYPE: (Kind.INT, "int64_t({})"),
    Value.FLOAT: (Kind.FLOAT, "double({})"),
    Value.BOOL: (Kind.BOOL, "{}"),
    Value.STRING: (Kind.STRING, "std::string_view({})"),
    Value.INTS: (Kind.INTS, "at::IntArrayRef({})"),
    Value.FLOATS: (Kind.FLOATS, "at::ArrayRef<double>({})"),
    Value.BOOLS: (Kind.BOOLS, "c10::List<bool>({})"),
}
#: What stands for host memory in the arguments; the number is that among the host memory.
_HOST = "&host_{}"


def cpp_call(call: Call, schema: OperatorSchema, arguments: Mapping[str, tuple[SchemaArgument, str, str]]) -> CppCall:
    """The C++ of a call.

    Args:
        call: The plan.
        schema: The operator's schema.
        arguments: By ``input x`` and ``attr x``, each argument of the schema, its value in C++, and how a call takes it.

    Raises:
        GenerationError: The plan has something that generated code does not do.
    """
    host: list[tuple[str, int | None]] = []
    written: list[str | int] = []
    for argument in call.arguments:
        if argument.type.value is Value.HOST_OUTPUT:
            written.append(_HOST.format(len(host)))
            output = _output(schema, argument) if argument.part is Part.OUTPUT else None
            host.append((argument.type.pointee.canonical.base, output))
        else:
            written.append(_argument(schema, argument, arguments))
    checks = tuple(_check(schema, call, name, arguments) for name in call.unused)
    place = call.declared and f"declared in {Path(call.declared.file).name}"
    return CppCall(call.function, checks, tuple(written), tuple(host), call.declared is None, place or call.source)


def _argument(
    schema: OperatorSchema, argument: CallArgument, arguments: Mapping[str, tuple[SchemaArgument, str, str]]
) -> str | int:
    prototype, value, type_ = schema.prototype, argument.type.value, argument.type
    if argument.part is Part.OUTPUT:
        return _output(schema, argument)
    narrow = value is Value.FLOAT and type_.width == 4
    if argument.part is Part.CONSTANT:
        text = _constant(value, argument.value)
        return f"static_cast<float>({text})" if narrow else text
    if argument.part is Part.INPUT:
        return arguments[f"input {prototype.inputs[argument.index].name}"][2]
    given, plain, taken = arguments[f"attr {prototype.attrs[argument.index].name}"]
    if narrow:
        return f"static_cast<float>({plain})"
    if value is Value.SCALAR:
        return taken if given.kind is Kind.SCALAR else f"at::Scalar({plain})"
    if value is Value.SCALAR_LIST:
        return taken if given.kind is Kind.SCALARS else f"ascend_graph::eager::scalars_of({plain})"
    if value is Value.INT and type_.canonical.base != "int64_t" and given.kind is Kind.INT:
        return f'ascend_graph::eager::ranged<{type_.canonical.base}>("{argument.name}", {plain})'
    return taken


def _output(schema: OperatorSchema, argument: CallArgument) -> int:
    """The place among the kernel's outputs."""
    name = schema.prototype.outputs[argument.index].name
    return next(n for n, output in enumerate(schema.returns) if output.name == name)


def _constant(value: Value, held: Any) -> str:
    if held is None:
        return "nullptr"
    if value is Value.SCALAR_LIST:
        return f"std::vector<at::Scalar>{{{', '.join(_constant(Value.SCALAR, item) for item in held)}}}"
    if value is Value.SCALAR:
        kind = Kind.BOOL if isinstance(held, bool) else Kind.INT if isinstance(held, int) else Kind.FLOAT
        wide = {Kind.BOOL: "bool", Kind.INT: "int64_t", Kind.FLOAT: "double"}[kind]
        return f"at::Scalar({wide}({cpp_value(kind, held)}))"
    kind, text = _CONSTANTS[value]
    return text.format(cpp_value(kind, held))


def _check(
    schema: OperatorSchema, call: Call, name: str, arguments: Mapping[str, tuple[SchemaArgument, str, str]]
) -> str:
    """That an argument which the function has nothing for stays at its default."""
    message = cpp_string(f"{schema.name}: {call.function} has nothing for {name}: it may only be left at its default")
    if f"attr {name}" not in arguments:
        tensor = arguments[f"input {name}"][1]
        return f"TORCH_CHECK(!{tensor}.has_value() || !{tensor}->defined(), {message});"
    given, plain, _ = arguments[f"attr {name}"]
    default = cpp_value(given.kind, default_of(given))
    lists = {
        Kind.INTS: "at::IntArrayRef",
        Kind.DTYPES: "at::IntArrayRef",
        Kind.FLOATS: "at::ArrayRef<double>",
        Kind.BOOLS: "c10::List<bool>",
    }
    if (list_ := lists.get(given.kind)) is None:
        return f"TORCH_CHECK(({plain}) == {default}, {message});"
    equal = " == {}" if given.kind is Kind.BOOLS else ".equals({})"
    return f"TORCH_CHECK({list_}({plain}){equal.format(f'{list_}({default})')}, {message});"
