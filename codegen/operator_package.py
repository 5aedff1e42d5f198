"""C++ of an operator package for the host runtime: aclnn headers, the kernels' interface, and the functions between."""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ascend_graph.codegen.rendering import GenerationError, cpp_string, identifier, render, write_if_different

from ascend_graph.binding.calls.call import input_type
from ascend_graph.binding.synonyms import HEADER_ENDINGS, stem
from ascend_graph.prototypes import Attr, AttrType, OpPrototype, Parameter, ParameterKind
from ascend_graph.prototypes.naming import INFER_SUFFIX, snake_case

CPP_KEYWORDS = frozenset(
    """alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl const constexpr continue
    decltype default delete do double dynamic_cast else enum explicit export extern false float for friend goto if inline
    int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public register
    reinterpret_cast return short signed sizeof static static_assert static_cast struct switch template this thread_local
    throw true try typedef typeid typename union unsigned using virtual void volatile wchar_t while xor xor_eq""".split()  # noqa: SIM905
)

#: Type of the aclnn parameter, type of the kernel argument, and reader of a Value, by attr type.
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
class LaunchParameter:
    """Parameter of an aclnn function and of the kernel's arguments."""

    #: Name in the prototype, and the same as a C++ name.
    source_name: str
    name: str
    aclnn_type: str
    kernel_type: str
    #: Function that reads it from a Value, with the default it falls back to.
    reader: str
    default: str
    required: bool
    #: True if the function takes the values of an input; the kernel still sees a tensor.
    is_numbers: bool = False
    #: Dtypes of a tensor that the prototype lists, as bits; 0 if it may have any.
    dtypes: int = 0
    #: Name in the header, whose ending marks written parameters and those that may be null.
    header_name: str = ""


def aclnn_parameters(prototype: OpPrototype) -> tuple[LaunchParameter, ...]:
    """Return an aclnn function's parameters in CANN's order: inputs, attrs, outputs; an in-place output is its input.

    Raises:
        GenerationError: A name is not an identifier, or an attr has a type that aclnn functions do not take.
    """
    inputs = [replace(_input(p), header_name=_ending(p, prototype)) for p in prototype.inputs]
    attrs = [_attr(prototype, a) for a in prototype.attrs]
    # Whether an output may be left out is not in a prototype: kernels see one that is as a tensor without elements.
    fresh = [p for p in prototype.outputs if p.name not in prototype.in_place]
    outputs = [replace(_tensor(p), required=False, header_name="Out") for p in fresh]
    seen: set[str] = set()
    unique = []
    for parameter in (*inputs, *attrs, *outputs):  # an attr may be called like an input
        name = parameter.name
        while name in seen:
            name += "_"
        seen.add(name)
        unique.append(replace(parameter, name=name, header_name=f"{name}{parameter.header_name}"))
    # Where names are the same but for an ending, another ending would make one of them the other's name.
    stems = [stem(parameter.name, HEADER_ENDINGS) for parameter in unique]
    return tuple(
        replace(p, header_name=p.name if stems.count(own) > 1 else p.header_name)
        for p, own in zip(unique, stems, strict=True)
    )


def _ending(parameter: Parameter, prototype: OpPrototype) -> str:
    """Return the ending that generated headers append to the name of an input."""
    if parameter.name in prototype.in_place:
        return "Ref"
    return "Optional" if parameter.kind is ParameterKind.OPTIONAL else ""


def _cpp_name(name: str) -> str:
    identifier(name)
    return f"{name}_" if name in CPP_KEYWORDS else name


def _tensor(parameter: Parameter) -> LaunchParameter:
    name = _cpp_name(parameter.name)
    one, several = "const aclTensor*", "const aclTensorList*"
    listed = 0 if parameter.unknown_types else sum(1 << dtype for dtype in set(parameter.dtypes))
    if parameter.kind is ParameterKind.DYNAMIC:
        return LaunchParameter(parameter.name, name, several, "Span<Tensor>", "tensors", "", True, dtypes=listed)
    if parameter.kind is ParameterKind.OPTIONAL:
        return LaunchParameter(parameter.name, name, one, "const Tensor*", "optional_tensor", "", False, dtypes=listed)
    return LaunchParameter(parameter.name, name, one, "Tensor", "tensor", "", True, dtypes=listed)


def _input(parameter: Parameter) -> LaunchParameter:
    base = input_type(parameter).base
    is_numbers = base not in ("aclTensor", "aclTensorList")
    found = replace(_tensor(parameter), aclnn_type=f"const {base}*", is_numbers=is_numbers)
    return replace(found, dtypes=0) if is_numbers else found


def _attr(prototype: OpPrototype, attr: Attr) -> LaunchParameter:
    if attr.type not in _ATTR_CPP:
        raise GenerationError(
            f"{prototype.op_type}: attr {attr.name!r} has type {attr.type.value}, which aclnn functions do not take; they take "
            f"{', '.join(t.value for t in _ATTR_CPP)}"
        )
    aclnn_type, kernel_type, reader = _ATTR_CPP[attr.type]
    return LaunchParameter(
        attr.name, _cpp_name(attr.name), aclnn_type, kernel_type, reader, _default(attr), attr.required
    )


def _default(attr: Attr) -> str:
    """Return the value that a null pointer stands for: the prototype's default as a C++ expression."""
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
    """Return a float literal with the same bits."""
    single = float(struct.unpack("<f", struct.pack("<f", value))[0])
    return f"{single.hex()}f" if single == single and abs(single) != float("inf") else f'std::stof("{single}")'  # noqa: PLR0124


@dataclass(frozen=True, slots=True)
class _Op:
    op_type: str
    snake_name: str
    place: str
    parameters: tuple[LaunchParameter, ...]
    #: True if its author wrote the aclnn function; the generated one then has CANN's name for inner functions.
    is_inner: bool = False

    @property
    def function(self) -> str:
        return f"aclnnInner{self.op_type}" if self.is_inner else f"aclnn{self.op_type}"

    @property
    def header(self) -> str:
        return f"aclnnInner_{self.snake_name}.h" if self.is_inner else f"aclnn_{self.snake_name}.h"

    @property
    def guard(self) -> str:
        return f"ACLNN_{'INNER_' if self.is_inner else ''}{self.snake_name.upper()}_H_"


def generate_operator_package(
    prototypes: Iterable[OpPrototype], python_kernels: Iterable[str], directory: Path
) -> tuple[Path, Path]:
    """Write a package's generated files under ``directory``.

    Args:
        prototypes: The operators of the package.
        python_kernels: Op types whose kernel is a Python function.
        directory: The package; ``op_api/include`` and ``op_impl/host`` are written.

    Returns:
        The header that kernels include, and the source that defines the aclnn functions.

    Raises:
        GenerationError: an operator cannot be expressed; nothing was written then.
    """
    python = frozenset(python_kernels)
    ops = [_op(p) for p in prototypes]
    texts = {
        directory / "op_impl/host/include/host_kernels.h": render("operator_package/host_kernels.h.jinja", ops=ops),
        directory / "op_impl/host/src/op_api.cpp": render("operator_package/op_api.cpp.jinja", ops=ops, python=python),
        **_common_files(ops, directory),
    }
    for path, text in texts.items():
        write_if_different(path, text)
    return directory / "op_impl/host/include/host_kernels.h", directory / "op_impl/host/src/op_api.cpp"


def _op(prototype: OpPrototype, hand_written: Collection[str] = ()) -> _Op:
    return _Op(
        identifier(prototype.op_type),
        snake_case(prototype.op_type),
        Path(prototype.file).name,
        aclnn_parameters(prototype),
        f"aclnn{prototype.op_type}" in hand_written,
    )


def _common_files(ops: Sequence[_Op], directory: Path) -> dict[Path, str]:
    named: dict[str, str] = {}
    for op in ops:
        other = named.setdefault(op.snake_name, op.op_type)
        if other != op.op_type:
            raise GenerationError(
                f"{other} and {op.op_type} would both have the header aclnn_{op.snake_name}.h; rename one of them"
            )
    texts = {directory / "op_api/include" / op.header: render("operator_package/aclnn.h.jinja", op=op) for op in ops}
    return texts | {directory / "version.info": "Version=8.5.0\n"}


def generate_project_package(
    prototypes: Iterable[OpPrototype],
    directory: Path,
    hand_written: Collection[str] = (),
    others: Iterable[OpPrototype] = (),
) -> Path:
    """Write the generated files of a package made from an operator project.

    Args:
        prototypes: The operators that the project defines.
        directory: The package; ``op_api/include`` and ``op_impl/host/src`` are written.
        hand_written: The aclnn functions that the project's own sources define instead of the generated ones: those of
            these operators are called ``aclnnInner<Op>`` in ``aclnnInner_<op>.h``, as CANN's build calls them.
        others: Operators of other projects whose ``aclnnInner<Op>`` the project's sources call: they are searched for
            in the loaded packages.

    Returns:
        The source that defines the aclnn functions.

    Raises:
        GenerationError: an operator cannot be expressed; nothing was written then.
    """
    ops = [_op(p, hand_written) for p in prototypes]
    inner = [_op(p, {f"aclnn{p.op_type}"}) for p in others]
    source = directory / "op_impl/host/src/op_api.cpp"
    texts = {
        source: render("operator_package/project_api.cpp.jinja", ops=ops, others=inner, infer_suffix=INFER_SUFFIX),
        **_common_files([*ops, *inner], directory),
    }
    for path, text in texts.items():
        write_if_different(path, text)
    return source


@dataclass(frozen=True, slots=True)
class TilingField:
    """Field of a tiling structure; ``count`` is an array's length, 0 for other fields."""

    type: str
    name: str
    count: int


@dataclass(frozen=True, slots=True)
class TilingStructure:
    """Structure that a tiling function fills and a kernel reads."""

    #: Operators that it is registered for.
    ops: tuple[str, ...]
    name: str
    size: int
    fields: tuple[TilingField, ...]


@dataclass(frozen=True, slots=True)
class KernelInstance:
    """Instance of a kernel template: its tiling key, and its arguments as C++ text."""

    key: int
    arguments: tuple[str, ...]


def project_kernel(
    op_type: str,
    kernel: str,
    source: Path,
    parameters: int,
    *,
    macros: Iterable[tuple[str, str]],
    tilings: Iterable[TilingStructure],
    instances: Iterable[KernelInstance] = (),
) -> str:
    """Return the source as which a kernel of an operator project is compiled, for one combination of dtypes.

    Args:
        op_type: The operator.
        kernel: The kernel function, ``add_custom``.
        source: The file that defines it.
        parameters: The number of addresses that it takes: inputs, outputs, workspace, tiling.
        macros: The macros defined before it, such as ``("DTYPE_X", "half")``.
        tilings: The structures that the project registers, in the order of their definition.
        instances: The instances to compile of a kernel template.
    """
    structures = tuple(tilings)
    default = next((t.name for t in structures if op_type in t.ops), None)
    text: str = render(
        "operator_package/project_kernel.asc.jinja",
        op_type=identifier(op_type),
        kernel=identifier(kernel),
        source=cpp_string(str(source)),
        count=parameters,
        macros=tuple((identifier(name), value) for name, value in macros),
        tilings=structures,
        instances=tuple(instances),
        default_tiling=default,
    )
    return text
