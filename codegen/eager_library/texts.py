"""Pieces of C++ and Python that the templates of a generated library need, one function per piece."""

from __future__ import annotations

import keyword
import math
from typing import TYPE_CHECKING

from ascend_graph.codegen.rendering import GenerationError, cpp_string, python_docstring, python_literal

from ascend_graph.autograd import Feed
from ascend_graph.binding.dtype_ints import Numbers
from ascend_graph.binding.generated_schema import AclnnArgumentKind, GeneratedArgument, default_of
from ascend_graph.prototypes import AttrValue, Parameter, ParameterKind
from ascend_graph.shapes import parse_relation

if TYPE_CHECKING:
    from ascend_graph.codegen.eager_library.cpp_operators import CppArgument, CppOperator

_LISTS = {
    AclnnArgumentKind.INTS: "int64_t",
    AclnnArgumentKind.DTYPES: "int64_t",
    AclnnArgumentKind.FLOATS: "double",
    AclnnArgumentKind.BOOLS: "bool",
    AclnnArgumentKind.SCALARS: "at::Scalar",
}
_FROM_IVALUE = {
    AclnnArgumentKind.INT: "toInt()",
    AclnnArgumentKind.DTYPE: "toInt()",
    AclnnArgumentKind.FLOAT: "toDouble()",
    AclnnArgumentKind.BOOL: "toBool()",
    AclnnArgumentKind.STRING: "toStringRef()",
    AclnnArgumentKind.INTS: "toIntVector()",
    AclnnArgumentKind.DTYPES: "toIntVector()",
    AclnnArgumentKind.FLOATS: "toDoubleVector()",
    AclnnArgumentKind.BOOLS: "toBoolList()",
    AclnnArgumentKind.SCALAR: "toScalar()",
}
_PYTHON = {
    AclnnArgumentKind.INT: "int",
    AclnnArgumentKind.DTYPE: "torch.dtype | int",
    AclnnArgumentKind.FLOAT: "float",
    AclnnArgumentKind.BOOL: "bool",
    AclnnArgumentKind.STRING: "str",
    AclnnArgumentKind.INTS: "Sequence[int]",
    AclnnArgumentKind.DTYPES: "Sequence[int]",
    AclnnArgumentKind.FLOATS: "Sequence[float]",
    AclnnArgumentKind.BOOLS: "Sequence[bool]",
    AclnnArgumentKind.SCALAR: "float | int",
    AclnnArgumentKind.SCALARS: "Sequence[float | int]",
}


def cpp_value(kind: AclnnArgumentKind, value: AttrValue) -> str:
    """Return an attr's value as a C++ expression; lists as an initializer list."""
    if isinstance(value, tuple):
        items = ", ".join(cpp_value(kind, item) for item in value)
        return (
            f"{{{items}}}" if kind is AclnnArgumentKind.BOOLS else f"std::initializer_list<{_LISTS[kind]}>{{{items}}}"
        )
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        text: str = cpp_string(value)
        return text
    if isinstance(value, float | int) and (
        kind in (AclnnArgumentKind.FLOAT, AclnnArgumentKind.FLOATS)
        or (kind in (AclnnArgumentKind.SCALAR, AclnnArgumentKind.SCALARS) and isinstance(value, float))
    ):
        if math.isnan(value):
            return "std::numeric_limits<double>::quiet_NaN()"
        return (
            repr(float(value))
            if math.isfinite(value)
            else f"{'-' if value < 0 else ''}std::numeric_limits<double>::infinity()"
        )
    if not isinstance(value, int):
        raise GenerationError(
            f"{value!r} is not a value of an attr of an aclnn function; expected a number, a string, or a list of them"
        )
    return "INT64_MIN" if value == -(2**63) else f"INT64_C({value})"


# ------------------------------------------------------------------------------------------------------------ gradients


def attr_value(argument: CppArgument) -> str:
    """Return the C++ value of an attr that ``ctx->saved_data`` keeps."""
    kind, name = argument.argument.kind, argument.name
    value = {
        AclnnArgumentKind.STRING: f"std::string({name})",
        AclnnArgumentKind.INTS: f"{name}.vec()",
        AclnnArgumentKind.DTYPES: f"{name}.vec()",
        AclnnArgumentKind.FLOATS: f"{name}.vec()",
    }
    if kind is AclnnArgumentKind.SCALARS or argument.argument.is_null:
        raise GenerationError(
            f"attr {argument.argument.name} is null or a list of scalars, which C++ does not keep for a gradient; "
            "register the gradient in Python"
        )
    if argument.argument.default is None:
        return str(value.get(kind, name))
    if kind in _LISTS:
        raise GenerationError(
            f"attr {argument.argument.name}: a schema cannot express the default of this list, so that it has no "
            "gradient; give the attr as an argument"
        )
    return f"{name}.has_value() ? c10::IValue({'std::string(*' + name + ')' if kind is AclnnArgumentKind.STRING else '*' + name}) : c10::IValue()"


def gradient_values(op: CppOperator) -> str:
    """Return the arguments of the gradient operator's call."""
    gradient = op.gradient
    assert gradient is not None
    inputs, outputs = gradient.saved_inputs, gradient.saved_outputs
    values = []
    for argument, source in zip(gradient.op.arguments, gradient.plan.arguments, strict=True):
        if source is None:
            values.append(
                "std::nullopt"
                if argument.is_tensor or argument.default is not None
                else cpp_value(argument.kind, default_of(argument))
            )
        elif source.feed is Feed.ATTR:
            forward = op.arguments[source.position].argument
            kept = f'ctx->saved_data["{forward.name}"]'
            value = f"{kept}.{_FROM_IVALUE[forward.kind]}"
            if forward.default is not None and argument.default is not None:
                value = f"{kept}.isNone() ? std::nullopt : std::make_optional({value})"
            elif forward.default is not None:
                value = f"{kept}.isNone() ? {cpp_value(forward.kind, forward.default)} : {value}"
            values.append(value)
        else:
            n = source.position
            tensor = {
                Feed.GRADIENT: lambda n: f"contiguous(grads[{n}])",
                Feed.INPUT: lambda n: f"saved[{inputs.index(n)}]",
                Feed.OUTPUT: lambda n: f"saved[{len(inputs) + outputs.index(n)}]",
            }[source.feed](n)
            values.append(f"optional({tensor})" if _optional(argument) else tensor)
    return ", ".join(values)


def optional_inputs(op: CppOperator) -> list[CppArgument]:
    """Return the optional arguments that get a gradient if they are given."""
    gradient = op.gradient
    assert gradient is not None
    pairs = zip(op.arguments, gradient.plan.gradient_of, strict=True)
    return [argument for argument, n in pairs if n is not None and "optional" in argument.type]


def gradient_results(op: CppOperator) -> str:
    """Return the gradient of each argument; an empty tensor for an argument that was absent or needs none."""
    gradient = op.gradient
    assert gradient is not None
    single = len(gradient.op.returns) == 1
    results = []
    for argument, n in zip(op.arguments, gradient.plan.gradient_of, strict=True):
        if n is None:
            results.append("at::Tensor()")
            continue
        value = "result" if single else f"std::get<{n}>(result)"
        absent = f'ctx->saved_data["{argument.argument.name} is given"].toBool() ? {value} : at::Tensor()'
        results.append(absent if "optional" in argument.type else value)
    return ", ".join(results)


def _optional(argument: GeneratedArgument) -> bool:
    return isinstance(argument.parameter, Parameter) and argument.parameter.kind is ParameterKind.OPTIONAL


def _may_be_none(argument: GeneratedArgument) -> bool:
    """Return whether a value is optional in C++: None stands for a default, or for an absent input."""
    return argument.default is not None or argument.is_null or (_optional(argument) and not argument.is_tensor)


# ------------------------------------------------------------------------------------------------------------- bindings


def binding_type(argument: CppArgument) -> str:
    """Return the type of a pybind function's parameter."""
    given = argument.argument
    if given.kind is AclnnArgumentKind.TENSOR_LIST:
        return "const std::vector<at::Tensor>&"
    if given.is_tensor:
        return str(argument.type)
    plain = (
        f"std::vector<{_LISTS[given.kind]}>"
        if given.kind in _LISTS
        else "py::object"
        if given.kind is AclnnArgumentKind.DTYPE
        else argument.type
    )
    if _may_be_none(given) and (given.kind in _LISTS or given.kind is AclnnArgumentKind.DTYPE):
        plain = f"std::optional<{plain}>"
    return plain if plain == argument.type else f"const {plain}&"


def binding_value(argument: CppArgument) -> str:
    """Return the value that a pybind function passes on."""
    given, name = argument.argument, argument.name
    convert = {AclnnArgumentKind.DTYPE: "dtype_number({})", AclnnArgumentKind.BOOLS: "booleans({})"}.get(given.kind)
    if not _may_be_none(given):
        return convert.format(name) if convert else name
    if convert:
        return f"{name}.has_value() ? std::make_optional({convert.format('*' + name)}) : std::nullopt"
    return f"{name}.has_value() ? {argument.type}(*{name}) : std::nullopt" if given.kind in _LISTS else name


def binding_arguments(op: CppOperator) -> list[str]:
    """Return the names and defaults of a pybind function's parameters."""
    texts = []
    for a in op.arguments:
        if a.argument.keyword and "py::kw_only()" not in texts:
            texts.append("py::kw_only()")
        default = ""
        if a.argument.is_input:
            default = " = py::none()" if "=None" in a.argument.text else ""
        elif a.argument.default is not None or a.argument.is_null:
            default = " = py::none()"
        elif "=" in a.argument.text:
            value = cpp_value(a.argument.kind, default_of(a.argument))
            element = _LISTS.get(a.argument.kind)
            default = f" = {f'std::vector<{element}>({value})' if element else f'py::int_({value})' if a.argument.kind is AclnnArgumentKind.DTYPE else value}"
        texts.append(f'py::arg("{a.argument.name}"){default}')
    return texts


def docstring(op: CppOperator) -> str:
    """Return the docstring of a pybind function."""
    return str(cpp_string(_summary(op)))


# --------------------------------------------------------------------------------------------------------------- Python


def _summary(op: CppOperator) -> str:
    kind = "The function " if op.op_type.startswith("aclnn") else "GE's "
    return f"{kind}{op.op_type}{f': {op.relation}' if op.relation else ''}."


def python_name(argument: GeneratedArgument) -> str:
    """Return the name of a parameter; a keyword gets an underscore."""
    return f"{argument.name}_" if keyword.iskeyword(argument.name) else argument.name


def python_definition(op: CppOperator) -> str:
    """Return the definition line, ``def name(x: Tensor, *, axis: int = -1) -> Tensor:``."""
    positional: list[str] = []
    keyword_only: list[str] = []
    for cpp in op.arguments:
        argument, parameter = cpp.argument, cpp.argument.parameter
        name = python_name(argument)
        if isinstance(parameter, Parameter):
            annotation = {
                ParameterKind.REQUIRED: "Tensor",
                ParameterKind.OPTIONAL: "Tensor | None",
                ParameterKind.DYNAMIC: "Sequence[Tensor]",
            }[parameter.kind]
            if not argument.is_tensor:
                optional = parameter.kind is ParameterKind.OPTIONAL
                annotation = f"{_PYTHON[argument.kind]}{' | None' if optional else ''}"
            text = f"{name}: {annotation}{' = None' if '=None' in argument.text else ''}"
        elif argument.default is not None or argument.is_null:
            text = f"{name}: {_PYTHON[argument.kind]} | None = None"
        else:
            default = f" = {python_literal(default_of(argument))}" if "=" in argument.text else ""
            text = f"{name}: {_PYTHON[argument.kind]}{default}"
        (keyword_only if argument.keyword else positional).append(text)
    parameters = [*positional, *(["*", *keyword_only] if keyword_only else [])]
    absent = parse_relation(op.relation).optional_outputs if op.relation else ()
    kinds = [
        "list[Tensor]" if is_list else "Tensor | None" if output.name in absent else "Tensor"
        for is_list, output in zip(op.list_outputs, op.op_schema.returns, strict=True)
    ]
    returned = "None" if not kinds else kinds[0] if len(kinds) == 1 else f"tuple[{', '.join(kinds)}]"
    line = f"def {op.name}({', '.join(parameters)}) -> {returned}:"
    if len(line) <= 120:
        return line
    return "\n".join([f"def {op.name}(", *(f"    {p}," for p in parameters), f") -> {returned}:"])


def python_documentation(op: CppOperator) -> str:
    """Return the docstring of a Python function: a summary of its call, and the prototype's documentation."""
    doc = op.op_schema.prototype.doc.strip()
    return str(python_docstring(f"{_summary(op)}\n\n{doc}" if doc else _summary(op)))


def python_arguments(op: CppOperator) -> str:
    """Return ``arguments=`` of ``register_op``: renamed arguments, and the numbering of ``Int`` attrs that are dtypes."""
    hooks = {Numbers.TORCH: "ascend_graph.dtype_number", Numbers.GE: "int"}
    numbers = op.op_schema.dtype_ints
    said = []
    for a in op.op_schema.arguments:
        if not a.is_tensor and a.parameter.name in numbers:
            said.append(f'"{a.name}": ("{a.parameter.name}", {hooks[numbers[a.parameter.name]]})')
        elif a.name in op.renamed:
            said.append(f'"{a.name}": "{a.parameter.name}"')
    if op.renamed and op.op_schema.returns:
        returned = ", ".join(f'"{p.name}"' for p in op.op_schema.returns)
        said.append(f'"->": ({returned},)')
    return f", arguments={{{', '.join(said)}}}" if said else ""


def python_relation(op: CppOperator) -> str:
    """Return the arguments of ``register_op`` for an operator whose meta function was compiled from its relation."""
    return f', shape={python_literal(op.relation)}, meta="kept"' if op.relation else ""


def python_values(op: CppOperator) -> str:
    """Return the arguments of the call in a Python function."""
    values = [python_name(a.argument) for a in op.arguments if not a.argument.keyword]
    attrs = [a.argument for a in op.arguments if a.argument.keyword]
    values += [f"{a.name}={a.name}" for a in attrs if not keyword.iskeyword(a.name)]
    hidden = [f'"{a.name}": {python_name(a)}' for a in attrs if keyword.iskeyword(a.name)]
    return ", ".join([*values, *([f"**{{{', '.join(hidden)}}}"] if hidden else [])])
