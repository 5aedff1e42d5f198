"""Operators of a project as its templates read them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ascend_graph.codegen.dtype_combinations import dtype_combinations
from ascend_graph.codegen.kernels.source import ELEMENT_TYPES, KernelFunction, KernelSources, StructField
from ascend_graph.codegen.rendering import GenerationError, identifier

from ascend_graph.prototypes import AttrType, DataType, OpPrototype, ParameterKind
from ascend_graph.prototypes.naming import snake_case
from ascend_graph.shapes import Relation
from ascend_graph.shapes.syntax import DimensionGroup, Dims
from ascend_graph.sources.text import read_source

#: Size of the unified buffer of an Atlas A2, and of the widest element: a tile of the skeleton fits into it.
_BUFFER, _WIDEST = 192 * 1024, 8


_OPDEF_ATTRS = frozenset(
    {
        AttrType.INT, AttrType.FLOAT, AttrType.BOOL, AttrType.STRING, AttrType.LIST_INT, AttrType.LIST_FLOAT,
        AttrType.LIST_BOOL, AttrType.LIST_LIST_INT,
    }
)  # fmt: skip


_KERNEL_DTYPES = frozenset(ELEMENT_TYPES.values())


#: Names that the generated kernel uses itself, and C++ keywords that an operator may use for a tensor.
_TAKEN = frozenset(
    [
        "workspace",
        "tiling",
        "data",
        "kernel",
        "pipe",
        "auto",
        "bool",
        "break",
        "case",
        "char",
        "class",
        "const",
        "continue",
        "default",
        "delete",
        "do",
        "double",
        "else",
        "enum",
        "explicit",
        "extern",
        "false",
        "float",
        "for",
        "friend",
        "goto",
        "half",
        "if",
        "inline",
        "int",
        "long",
        "mutable",
        "namespace",
        "new",
        "operator",
        "private",
        "protected",
        "public",
        "register",
        "return",
        "short",
        "signed",
        "sizeof",
        "static",
        "struct",
        "switch",
        "template",
        "this",
        "throw",
        "true",
        "try",
        "typedef",
        "typename",
        "union",
        "unsigned",
        "using",
        "virtual",
        "void",
        "volatile",
        "while",
    ]
)


_TILING_NAME = re.compile(r"\bGET_TILING_DATA\s*\(\s*(\w+)\s*,")


@dataclass(frozen=True, slots=True)
class OperatorDescription:
    """Operator as the templates see it."""

    prototype: OpPrototype
    relation: Relation
    combinations: tuple[tuple[DataType, ...], ...]
    #: Combinations of the prototype for which kernels have no type.
    without_type: tuple[str, ...]
    kernel: KernelFunction | None
    kernel_file: str
    #: Plain structure as which the kernel reads its tiling data, and its header under op_kernel; or fields to define.
    tiling_type: str
    tiling_header: str
    fields: tuple[StructField, ...]

    @property
    def op_type(self) -> str:
        return self.prototype.op_type

    @property
    def name(self) -> str:
        return snake_case(self.op_type)

    def column(self, index: int) -> str:
        """Return the dtypes of one parameter, one for each combination."""
        return ", ".join(f"ge::{row[index].ge_name}" for row in self.combinations)

    @property
    def formats(self) -> str:
        return ", ".join(["ge::FORMAT_ND"] * len(self.combinations))

    @property
    def is_elementwise(self) -> bool:
        """True if all tensors are required and have the same arbitrary shape: ``*s`` each."""
        shapes = [t.alternatives[-1].shape for t in (*self.relation.input_tensors, *self.relation.output_tensors)]
        alone = {str(shape.items[0]) for shape in shapes if isinstance(shape, Dims) and len(shape.items) == 1}
        groups = all(
            isinstance(s, Dims) and len(s.items) == 1 and isinstance(s.items[0], DimensionGroup) for s in shapes
        )
        required = all(p.kind is ParameterKind.REQUIRED for p in self.prototype.inputs)
        named = {t.name for t in self.relation.input_tensors} == {p.name for p in self.prototype.inputs}
        return groups and required and named and len(alone) == 1 and "@" not in "".join(alone)

    @property
    def arguments(self) -> dict[str, str]:
        """Arguments of the kernel by ``in`` or ``out`` and parameter name; an in-place output has its own."""
        inputs = [p.name for p in self.prototype.inputs]
        outputs = [p.name for p in self.prototype.outputs]
        taken = _TAKEN | {macro_name(name) for name in (*inputs, *outputs)}
        names = {f"in {name}": f"{name}_" if name in taken else name for name in inputs}
        return names | {
            f"out {name}": f"{name}_out" if name in inputs else f"{name}_" if name in taken else name
            for name in outputs
        }

    @property
    def tile(self) -> int:
        """Number of elements of a tile of the skeleton, with room for two buffers per tensor."""
        tensors = len(self.prototype.outputs) + (len(self.prototype.inputs) if self.is_elementwise else 0)
        return min(2048, _BUFFER // (2 * _WIDEST * max(tensors, 1)) // 64 * 64)


def macro_name(name: str) -> str:
    """Return the ending of the macro of a parameter's dtype: ``DTYPE_X`` for ``x``."""
    return name.upper()


def project_operator(prototype: OpPrototype, relation: Relation, kernels: KernelSources | None) -> OperatorDescription:
    op_type = identifier(prototype.op_type)
    for parameter in (*prototype.inputs, *prototype.outputs):
        identifier(parameter.name)
    for parameter in prototype.outputs:
        if parameter.kind is ParameterKind.DYNAMIC:
            raise GenerationError(
                f"{op_type}: {parameter.name} is a dynamic output, whose shapes no relation says; write its InferShape "
                "by hand"
            )
    for attr in prototype.attrs:
        identifier(attr.name)
        if attr.type not in _OPDEF_ATTRS:
            valid = ", ".join(sorted(kind.value for kind in _OPDEF_ATTRS))
            raise GenerationError(f"{op_type}: attr {attr.name} is a {attr.type.value}; expected one of {valid}")
        if not attr.required and not attr.default_known:
            raise GenerationError(
                f"{op_type}: the default of attr {attr.name}, {attr.default_text}, is not a constant; write a literal"
            )
    combinations = dtype_combinations(prototype, relation)
    typed = tuple(row for row in combinations if set(row) <= _KERNEL_DTYPES)
    if not typed:
        raise GenerationError(
            f"{op_type}: no combination of its dtypes has types in a kernel; those are "
            f"{', '.join(sorted(dtype.name for dtype in _KERNEL_DTYPES))}"
        )
    kernel = None if kernels is None else kernels.by_name.get(snake_case(op_type))
    if kernel is None or kernels is None:
        return OperatorDescription(prototype, relation, typed, _shown(combinations, typed), None, "", "", "", ())
    _check_kernel(prototype, kernel)
    code = read_source(kernel.file).code
    own = [k for k in kernels.kernels if k.file == kernel.file]
    relative = kernel.file.relative_to(kernels.root)
    file = relative if len(own) > 1 else relative.with_name(f"{snake_case(op_type)}.cpp")
    tiling_type, header, fields = "", "", tuple(_fields_read(code))
    if kernels.tiling_type in kernels.structs:
        tiling_type = kernels.tiling_type or ""
        fields = kernels.structs[tiling_type].fields
        holders = [
            path
            for path in kernels.files
            if re.search(rf"\bstruct\s+{tiling_type}\b", read_source(kernels.root / path).code)
        ]
        header = holders[0].as_posix() if holders and holders[0] != relative else ""
        if not header:
            tiling_type = ""  # it is defined in the kernel itself, which the host cannot include
    return OperatorDescription(
        prototype,
        relation,
        typed,
        _shown(combinations, typed),
        kernel,
        file.as_posix(),
        tiling_type,
        header,
        fields,
    )


def _shown(all_rows: Iterable[tuple[DataType, ...]], typed: Sequence[tuple[DataType, ...]]) -> tuple[str, ...]:
    return tuple(", ".join(dtype.ge_name for dtype in row) for row in all_rows if row not in typed)


def _check_kernel(prototype: OpPrototype, kernel: KernelFunction) -> None:
    """Refuse a kernel that CANN's projects do not launch."""
    names = [p.name for p in (*prototype.inputs, *prototype.outputs)]
    count = len(names) + 2
    if kernel.templates:
        raise GenerationError(
            f"{prototype.op_type}: the kernel {kernel} is a template, whose instances its tiling function chooses: write the "
            "project's op_host yourself, or take a kernel without template parameters, by DTYPE_X"
        )
    if len(kernel.parameters) != count or not all(p.is_pointer for p in kernel.parameters):
        raise GenerationError(
            f"{prototype.op_type}: the kernel {kernel} of {kernel.file.name} is not one of an operator project, which takes "
            f"addresses alone: {kernel.name}({', '.join(f'GM_ADDR {n}' for n in [*names, 'workspace', 'tiling'])}); sizes "
            "are read from the tiling data, by GET_TILING_DATA. A project that launches it as it is: ascend-graph new --launch kernel"
        )


def _fields_read(code: str) -> Iterable[StructField]:
    """Return the fields that a kernel reads of its tiling data, through the name that GET_TILING_DATA declares."""
    match = _TILING_NAME.search(code)
    if match is None:
        return []
    names = re.findall(rf"\b{match[1]}\s*\.\s*([A-Za-z_]\w*)", code)
    return [StructField("uint32_t", name) for name in dict.fromkeys(names)]
