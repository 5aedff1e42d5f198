"""Prototype, relation and kernel → an operator project as msOpGen lays it out, which CANN and ``ascend-graph build`` build.

The definition (``OpDef``) and the shape functions follow from prototype and relation and are generated again by every call.
The tiling function, the kernel where none is given, build files and tests are skeletons: written once, the author's from then on.
"""

from __future__ import annotations

import itertools
import json
import random
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ascend_graph.codegen.infer_shape import GE_DTYPES, infer_shape_source
from ascend_graph.codegen.kernel_source import (
    ELEMENT_TYPES,
    KernelFunction,
    KernelSources,
    StructField,
    defines_kernels,
    read_kernels,
)
from ascend_graph.codegen.rendering import (
    GenerationError,
    cpp_string,
    identifier,
    python_literal,
    render,
    write_if_different,
)

from ascend_graph.headers import read_headers
from ascend_graph.prototypes import AttrType, DataType, OpPrototype, Parameter, ParameterKind
from ascend_graph.prototypes.loading import prototype_files
from ascend_graph.prototypes.naming import snake_case
from ascend_graph.prototypes.writer import default_text
from ascend_graph.shapes import Relation, ShapeError, parse_relation
from ascend_graph.shapes.errors import RelationError
from ascend_graph.shapes.samples import SampleError, sample
from ascend_graph.shapes.syntax import Dims, Group
from ascend_graph.sources.text import read_source

#: Kernels are compiled for each combination of dtypes: more than this is a mistake in the prototype's lists.
_MOST_COMBINATIONS = 64
#: The unified buffer of an Atlas A2, and the widest element: what a tile of the skeleton fits into.
_BUFFER, _WIDEST = 192 * 1024, 8

_OPDEF_ATTRS = frozenset(
    {
        AttrType.INT, AttrType.FLOAT, AttrType.BOOL, AttrType.STRING, AttrType.LIST_INT, AttrType.LIST_FLOAT,
        AttrType.LIST_BOOL, AttrType.LIST_LIST_INT,
    }
)  # fmt: skip
_SAMPLE_VALUES: Mapping[AttrType, Any] = {
    AttrType.INT: 1, AttrType.FLOAT: 1.0, AttrType.BOOL: False, AttrType.STRING: "", AttrType.LIST_INT: (1,),
    AttrType.LIST_FLOAT: (1.0,), AttrType.LIST_BOOL: (False,), AttrType.LIST_LIST_INT: ((1,),),
}  # fmt: skip
_NAMES = {dtype: name for name, dtype in GE_DTYPES.items()}
_KERNEL_DTYPES = frozenset(ELEMENT_TYPES.values())
#: What the generated kernel calls things of its own, and words of C++ that an operator may call a tensor.
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
class OpProject:
    """What :func:`generate_op_project` has made.

    Attributes:
        directory: The project.
        operators: Its operators, by their op types.
        written: The files that were written, relative to it.
        left_out: Operators of the sources that are not in it, with the reason.
        drafts: What the author has to write, as file and remark.
    """

    directory: Path
    operators: tuple[str, ...]
    written: tuple[Path, ...]
    left_out: tuple[tuple[str, str], ...]
    drafts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Operator:
    """An operator as the templates see it."""

    prototype: OpPrototype
    relation: Relation
    combinations: tuple[tuple[DataType, ...], ...]
    #: Combinations of the prototype that no kernel can have a type for.
    without_type: tuple[str, ...]
    kernel: KernelFunction | None
    kernel_file: str
    #: The plain structure that the kernel reads its tiling data as, and its header below op_kernel; or fields to be defined.
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
        """The dtypes of one parameter, one for each combination."""
        return ", ".join(f"ge::{row[index].ge_name}" for row in self.combinations)

    @property
    def formats(self) -> str:
        return ", ".join(["ge::FORMAT_ND"] * len(self.combinations))

    @property
    def is_elementwise(self) -> bool:
        """Whether all tensors are required and have one and the same shape, whatever it is: ``*s`` each."""
        shapes = [t.alternatives[-1].shape for t in (*self.relation.input_tensors, *self.relation.output_tensors)]
        alone = {str(shape.items[0]) for shape in shapes if isinstance(shape, Dims) and len(shape.items) == 1}
        groups = all(isinstance(s, Dims) and len(s.items) == 1 and isinstance(s.items[0], Group) for s in shapes)
        required = all(p.kind is ParameterKind.REQUIRED for p in self.prototype.inputs)
        named = {t.name for t in self.relation.input_tensors} == {p.name for p in self.prototype.inputs}
        return groups and required and named and len(alone) == 1 and "@" not in "".join(alone)

    @property
    def arguments(self) -> dict[str, str]:
        """The kernel's arguments by what the macro DTYPE_… calls their parameters; an output written in place is apart."""
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
        """Elements of a tile of the skeleton: what two buffers for each tensor have room for."""
        tensors = len(self.prototype.outputs) + (len(self.prototype.inputs) if self.is_elementwise else 0)
        return min(2048, _BUFFER // (2 * _WIDEST * max(tensors, 1)) // 64 * 64)


def macro_name(name: str) -> str:
    """What the macro of a parameter's dtype ends with: ``DTYPE_X`` for ``x``."""
    return name.upper()


def generate_op_project(
    directory: str | Path,
    sources: Iterable[str | Path],
    *,
    shapes: Mapping[str, str],
    socs: Sequence[str] = ("ascend910b",),
    vendor: str = "customize",
) -> OpProject:
    """Write an operator project, or bring one up to date.

    Args:
        directory: The project.
        sources: Headers or directories with REG_OPs, and sources of Ascend C kernels, which are copied.
        shapes: By op type the shape relation; what has none is left out.
        socs: The processors that the definition names, as CANN's ``AddConfig`` takes them.
        vendor: The name of the package among those that are installed.

    Raises:
        GenerationError: There is nothing to generate, or something that such a project cannot say; nothing is written then.
        RelationError: A shape relation is malformed.
    """
    target = Path(directory).resolve()
    given = [Path(source) for source in sources]
    headers, kernels = _read(given)
    prototypes = {p.op_type: p for p in headers}
    for op_type in shapes:
        if op_type not in prototypes:
            raise GenerationError(
                f"shape of {op_type}: {', '.join(map(str, given))} define no such operator; they define "
                f"{', '.join(prototypes) or 'none'}"
            )
    left_out = [(name, f"no shape relation; add --shape '{name}=…'") for name in prototypes if name not in shapes]
    if not shapes:
        raise GenerationError(
            "nothing to generate: say the output shapes of an operator, "
            f"--shape '{next(iter(prototypes), 'AddCustom')}=x[*s], y[*s] -> z[*s]'"
        )
    for name in (*socs, vendor):
        identifier(name)
    operators = [_operator(prototypes[op_type], parse_relation(text), kernels) for op_type, text in shapes.items()]
    generated: dict[str, str | bytes] = {}
    own: dict[str, str | bytes] = {}
    for one in operators:
        values = _values(one, socs)
        generated[f"op_host/{one.name}_def.cpp"] = render("op_project/def.cpp.jinja", **values)
        generated[f"op_host/{one.name}_infershape.cpp"] = infer_shape_source(one.prototype, one.relation)
        own[f"op_host/{one.name}_tiling.cpp"] = render("op_project/tiling.cpp.jinja", **values)
        if not one.tiling_type:
            own[f"op_host/{one.name}_tiling.h"] = render("op_project/tiling.h.jinja", **values)
        if one.kernel is None:
            own[f"op_kernel/{one.name}.cpp"] = render("op_project/kernel.cpp.jinja", **values)
    if kernels is not None:
        own |= _kernel_files(kernels, operators)
    values = {"operators": operators, "socs": socs, "vendor": vendor, "project": target.name, "shapes": shapes}
    values["literal"] = python_literal
    own["CMakeLists.txt"] = render("op_project/CMakeLists.txt.jinja", **values)
    own["CMakePresets.json"] = _presets(socs, vendor)
    own["op_host/CMakeLists.txt"] = render("op_project/op_host.txt.jinja", **values)
    own["op_kernel/CMakeLists.txt"] = render("op_project/op_kernel.txt.jinja", **values)
    own["README.md"] = render("op_project/README.md.jinja", **values)
    own["tests/test_operators.py"] = render("op_project/test.py.jinja", **values)
    own[".gitignore"] = "build_out/\nopp/\n__pycache__/\n"
    drafts = [
        f"{file}: {what}"
        for one in operators
        for file, what in _drafts(one)
        if not (target / file).exists()
    ]  # fmt: skip
    written = [name for name, text in generated.items() if write_if_different(target / name, text)]
    written += [
        name for name, text in own.items() if not (target / name).exists() and write_if_different(target / name, text)
    ]
    return OpProject(target, tuple(shapes), tuple(map(Path, written)), tuple(left_out), tuple(drafts))


# ------------------------------------------------------------------------------------------------------------- reading


def _read(given: Sequence[Path]) -> tuple[tuple[OpPrototype, ...], KernelSources | None]:
    files = [file for path in given for file in (prototype_files(path) if path.is_dir() else [path])]
    kernels = [path for path in given if path.is_file() and defines_kernels(path)]
    found = read_headers([file for file in files if file not in kernels])
    if found.errors:
        raise GenerationError("\n".join(map(str, found.errors)))
    if not found.prototypes:
        raise GenerationError(f"no operator is defined in {', '.join(map(str, given))}: give a header with its REG_OP")
    return found.prototypes, read_kernels(kernels) if kernels else None


def _operator(prototype: OpPrototype, relation: Relation, kernels: KernelSources | None) -> _Operator:
    op_type = identifier(prototype.op_type)
    for parameter in (*prototype.inputs, *prototype.outputs):
        identifier(parameter.name)
    for parameter in prototype.outputs:
        if parameter.kind is ParameterKind.DYNAMIC:
            raise GenerationError(f"{op_type}: {parameter.name} is a dynamic output, whose shapes no relation says")
    for attr in prototype.attrs:
        identifier(attr.name)
        if attr.type not in _OPDEF_ATTRS:
            valid = ", ".join(sorted(kind.value for kind in _OPDEF_ATTRS))
            raise GenerationError(f"{op_type}: attr {attr.name} is a {attr.type.value}; an OpDef has {valid}")
        if not attr.required and not attr.default_known:
            raise GenerationError(f"{op_type}: the default of attr {attr.name}, {attr.default_text}, is no constant")
    combinations = tuple(row for row in _combinations(prototype) if _agrees(prototype, relation, row))
    typed = tuple(row for row in combinations if set(row) <= _KERNEL_DTYPES)
    if not typed:
        raise GenerationError(
            f"{op_type}: no combination of its dtypes has types in a kernel; those are "
            f"{', '.join(sorted(dtype.name for dtype in _KERNEL_DTYPES))}"
        )
    kernel = None if kernels is None else kernels.by_name.get(snake_case(op_type))
    if kernel is None or kernels is None:
        return _Operator(prototype, relation, typed, _shown(combinations, typed), None, "", "", "", ())
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
    return _Operator(
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


def _combinations(prototype: OpPrototype) -> list[tuple[DataType, ...]]:
    """The dtypes of inputs, then outputs, of each kernel: parameters with one list go together, and different lists are multiplied."""
    parameters = (*prototype.inputs, *prototype.outputs)
    lists: dict[Any, list[DataType]] = {}
    keys = []
    for parameter in parameters:
        if not parameter.dtypes:
            said = ", ".join(parameter.unknown_types) or "nothing"
            raise GenerationError(
                f"{prototype.op_type}: the dtypes of {parameter.name} are not known; the prototype says {said}"
            )
        dtypes = list(dict.fromkeys(parameter.dtypes))
        key = parameter.symbol or tuple(dtypes)
        keys.append(key)
        lists[key] = dtypes
    rows = [dict(zip(lists, row, strict=True)) for row in itertools.product(*lists.values())]
    return [tuple(row[key] for key in keys) for row in rows]


def _agrees(prototype: OpPrototype, relation: Relation, row: tuple[DataType, ...]) -> bool:
    """Whether the relation gives the outputs these dtypes; it may depend on sizes and attrs, and then nothing is known."""
    names = [_NAMES.get(dtype) for dtype in row]
    inputs = dict(zip((p.name for p in prototype.inputs), names, strict=False))
    expected = names[len(prototype.inputs) :]
    attrs = {a.name: _SAMPLE_VALUES[a.type] if a.required or a.default is None else a.default for a in prototype.attrs}
    try:
        shapes = sample(relation, attrs, random.Random(0), tries=200).shapes
    except (SampleError, ShapeError):
        return True
    try:
        found = relation.infer(shapes, {name: inputs[name] for name in shapes if name in inputs}, attrs)
    except (RelationError, ShapeError):
        return False
    return all(one is None or isinstance(one, list) or one[1] == e for one, e in zip(found, expected, strict=False))


def _check_kernel(prototype: OpPrototype, kernel: KernelFunction) -> None:
    """Refuse a kernel that the projects of CANN do not launch."""
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
    """The fields of the tiling data that a kernel reads, as what GET_TILING_DATA declares."""
    match = _TILING_NAME.search(code)
    if match is None:
        return []
    names = re.findall(rf"\b{match[1]}\s*\.\s*([A-Za-z_]\w*)", code)
    return [StructField("uint32_t", name) for name in dict.fromkeys(names)]


# ------------------------------------------------------------------------------------------------------------- writing


def _drafts(one: _Operator) -> list[tuple[str, str]]:
    tiling = f"op_host/{one.name}_tiling.cpp"
    if one.kernel is None:
        return [(f"op_kernel/{one.name}.cpp", "the kernel, which writes zeros as it is")]
    if not one.fields:
        return []
    return [(tiling, f"what the kernel reads of its tiling data: {', '.join(f.name for f in one.fields)}")]


def _values(one: _Operator, socs: Sequence[str]) -> dict[str, Any]:
    prototype = one.prototype
    kinds = {kind: kind.name for kind in ParameterKind}
    parameters = (*prototype.inputs, *prototype.outputs)
    return {
        "op": one,
        "socs": socs,
        "place": Path(prototype.file).name if prototype.file else "a REG_OP",
        "inputs": [(p.name, kinds[p.kind], one.column(n)) for n, p in enumerate(prototype.inputs)],
        "outputs": [
            (p.name, kinds[p.kind], one.column(n)) for n, p in enumerate(parameters) if n >= len(prototype.inputs)
        ],
        "attrs": [
            (a.name, "REQUIRED" if a.required else "OPTIONAL", a.type.value, "" if a.required else default_text(a))
            for a in prototype.attrs
        ],
        "relation": ascii(" ".join(str(one.relation).split()))[1:-1].replace("\\", "/"),
        "staged": [_tensor(one, "in", p) for p in prototype.inputs] if one.is_elementwise else [],
        "made": [_tensor(one, "out", p) for p in prototype.outputs],
        "cpp_string": cpp_string,
    }


def _tensor(one: _Operator, side: str, parameter: Parameter) -> dict[str, str]:
    return {"argument": one.arguments[f"{side} {parameter.name}"], "macro": macro_name(parameter.name)}


def _kernel_files(kernels: KernelSources, operators: Sequence[_Operator]) -> dict[str, str | bytes]:
    """The given kernels and what they include, the former under the names that CANN looks for."""
    names = {
        one.kernel.file.relative_to(kernels.root).as_posix(): one.kernel_file
        for one in operators
        if one.kernel is not None
    }
    files = {}
    for path in kernels.files:
        place = path.as_posix()
        files[f"op_kernel/{names.get(place, place)}"] = (kernels.root / path).read_bytes()
    return files


def _presets(socs: Sequence[str], vendor: str) -> str:
    """CMake's preset ``default``, which CANN's documents name."""
    variables = {
        "CMAKE_BUILD_TYPE": ("STRING", "Release"),
        "ASCEND_COMPUTE_UNIT": ("STRING", ";".join(socs)),
        "ASCEND_CANN_PACKAGE_PATH": ("PATH", "$env{ASCEND_HOME_PATH}"),
        "CMAKE_INSTALL_PREFIX": ("PATH", "${sourceDir}/build_out"),
        "vendor_name": ("STRING", vendor),
    }
    preset = {
        "name": "default",
        "generator": "Unix Makefiles",
        "binaryDir": "${sourceDir}/build_out",
        "cacheVariables": {name: {"type": kind, "value": value} for name, (kind, value) in variables.items()},
    }
    required = {"major": 3, "minor": 19, "patch": 0}
    return json.dumps({"version": 1, "cmakeMinimumRequired": required, "configurePresets": [preset]}, indent=2) + "\n"
