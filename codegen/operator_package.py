"""The C++ of an operator package for the host runtime: aclnn headers, the kernels' interface, and the functions between."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ascend_graph.codegen.rendering import GenerationError, cpp_string, identifier, render, write_if_different

from ascend_graph.prototypes import Attr, AttrType, OpPrototype, Parameter, ParameterKind
from ascend_graph.prototypes.naming import snake_case

CPP_KEYWORDS = frozenset(
    """alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl const constexpr continue
    decltype default delete do double dynamic_cast else enum explicit export extern false float for friend goto if inline
    int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public register
    reinterpret_cast return short signed sizeof static static_assert static_cast struct switch template this thread_local
    throw true try typedef typeid typename union unsigned using virtual void volatile wchar_t while xor xor_eq""".split()  # noqa: SIM905
)

#: Per attr type: the aclnn parameter's type, the kernel argument's type, and how a Value is read.
_ATTR_CPP = {
    AttrType.INT: ("int64_t", "int64_t", "integer"),
    AttrType.TYPE: ("int64_t", "int64_t", "integer"),
    AttrType.FLOAT: ("double", "double", "number"),
    AttrType.BOOL: ("bool", "bool", "boolean"),
    AttrType.STRING: ("char*", "std::string_view", "text"),
    AttrType.LIST_INT: ("const aclIntArray*", "Span<int64_t>", "integers"),
    AttrType.LIST_TYPE: ("const aclIntArray*", "Span<int64_t>", "integers"),
    AttrType.LIST_FLOAT: ("const aclFloatArray*", "Span<float>", "numbers"),
    AttrType.LIST_BOOL: ("const aclBoolArray*", "Span<bool>", "booleans"),
}


@dataclass(frozen=True, slots=True)
class AclnnParameter:
    """One parameter of an aclnn function and of the kernel's arguments."""

    #: The name in the prototype, and the same as a C++ name.
    source_name: str
    name: str
    aclnn_type: str
    kernel_type: str
    #: The function that reads it from a Value, with the default it falls back to.
    reader: str
    default: str
    required: bool


def aclnn_parameters(prototype: OpPrototype) -> tuple[AclnnParameter, ...]:
    """An aclnn function's parameters in CANN's order: inputs, attrs, outputs; an in-place output is its input.

    Raises:
        GenerationError: a name is no identifier, or an attr has a type that aclnn functions do not take.
    """
    inputs = [_tensor(p) for p in prototype.inputs]
    attrs = [_attr(prototype, a) for a in prototype.attrs]
    # Whether an output may be left out is not in a prototype: kernels see one that is as a tensor without elements.
    outputs = [replace(_tensor(p), required=False) for p in prototype.outputs if p.name not in prototype.in_place]
    seen: set[str] = set()
    unique = []
    for parameter in (*inputs, *attrs, *outputs):  # an attr may be called like an input
        name = parameter.name
        while name in seen:
            name += "_"
        seen.add(name)
        unique.append(replace(parameter, name=name))
    return tuple(unique)


def _cpp_name(name: str) -> str:
    identifier(name)
    return f"{name}_" if name in CPP_KEYWORDS else name


def _tensor(parameter: Parameter) -> AclnnParameter:
    name = _cpp_name(parameter.name)
    if parameter.kind is ParameterKind.DYNAMIC:
        return AclnnParameter(parameter.name, name, "const aclTensorList*", "Span<Tensor>", "tensors", "", True)
    if parameter.kind is ParameterKind.OPTIONAL:
        return AclnnParameter(parameter.name, name, "const aclTensor*", "const Tensor*", "optional_tensor", "", False)
    return AclnnParameter(parameter.name, name, "const aclTensor*", "Tensor", "tensor", "", True)


def _attr(prototype: OpPrototype, attr: Attr) -> AclnnParameter:
    if attr.type not in _ATTR_CPP:
        raise GenerationError(
            f"{prototype.op_type}: attr {attr.name!r} has type {attr.type.value}, which aclnn functions do not take; they take "
            f"{', '.join(t.value for t in _ATTR_CPP)}"
        )
    aclnn_type, kernel_type, reader = _ATTR_CPP[attr.type]
    return AclnnParameter(
        attr.name, _cpp_name(attr.name), aclnn_type, kernel_type, reader, _default(attr), attr.required
    )


def _default(attr: Attr) -> str:
    """What a null pointer stands for: the prototype's default as a C++ expression."""
    value = () if attr.default is None else attr.default
    if attr.type is AttrType.STRING:
        return str(cpp_string(attr.default if isinstance(attr.default, str) else ""))
    if attr.type in (AttrType.LIST_INT, AttrType.LIST_TYPE):
        return "{" + ", ".join(_integer(int(v)) for v in _items(value)) + "}"
    if attr.type is AttrType.LIST_FLOAT:
        return "{" + ", ".join(f"{_float(float(v))}" for v in _items(value)) + "}"
    if attr.type is AttrType.LIST_BOOL:
        return "{" + ", ".join(str(bool(v)).lower() for v in _items(value)) + "}"
    return ""


def _items(value: object) -> Sequence[int | float | bool]:
    return value if isinstance(value, tuple) else ()


def _integer(value: int) -> str:
    return "INT64_MIN" if value == -(2**63) else f"INT64_C({value})"


def _float(value: float) -> str:
    """A float literal with the same bits."""
    single = float(struct.unpack("<f", struct.pack("<f", value))[0])
    return f"{single.hex()}f" if single == single and abs(single) != float("inf") else f'std::stof("{single}")'  # noqa: PLR0124


@dataclass(frozen=True, slots=True)
class _Op:
    op_type: str
    snake_name: str
    place: str
    parameters: tuple[AclnnParameter, ...]


def generate_operator_package(
    prototypes: Iterable[OpPrototype], python_kernels: Iterable[str], directory: Path
) -> tuple[Path, Path]:
    """Write a package's generated files below ``directory``.

    Args:
        prototypes: the operators of the package.
        python_kernels: op types whose kernel is a Python function.
        directory: the package; ``op_api/include`` and ``op_impl/host`` are written.

    Returns:
        The header that kernels include, and the source that defines the aclnn functions.

    Raises:
        GenerationError: an operator cannot be expressed; nothing was written then.
    """
    python = frozenset(python_kernels)
    ops = [
        _Op(identifier(p.op_type), snake_case(p.op_type), Path(p.file).name, aclnn_parameters(p)) for p in prototypes
    ]
    texts = {
        directory / "op_impl/host/include/host_kernels.h": render("operator_package/host_kernels.h.jinja", ops=ops),
        directory / "op_impl/host/src/op_api.cpp": render("operator_package/op_api.cpp.jinja", ops=ops, python=python),
        directory / "version.info": "Version=8.5.0\n",
    }
    for op in ops:
        texts[directory / f"op_api/include/aclnn_{op.snake_name}.h"] = render("operator_package/aclnn.h.jinja", op=op)
    for path, text in texts.items():
        write_if_different(path, text)
    return directory / "op_impl/host/include/host_kernels.h", directory / "op_impl/host/src/op_api.cpp"
