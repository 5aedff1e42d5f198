"""Operator project in msOpGen's layout from prototype, relation and kernel; CANN and ``ascend-graph build`` build it.

The definition (``OpDef``) and the shape functions follow from prototype and relation and are generated on every run.
The tiling function, the kernel if none is given, build files and tests are skeletons: written once, then the author's.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ascend_graph.codegen.infer_shape import infer_shape_source, support_source
from ascend_graph.codegen.kernels.source import (
    KernelSources,
    defines_kernels,
    read_kernels,
)
from ascend_graph.codegen.op_description import OperatorDescription, macro_name, project_operator
from ascend_graph.codegen.rendering import (
    GenerationError,
    cpp_string,
    identifier,
    python_literal,
    render,
    write_if_different,
)

from ascend_graph.headers import read_headers
from ascend_graph.prototypes import OpPrototype, Parameter, ParameterKind
from ascend_graph.prototypes.loading import prototype_files
from ascend_graph.prototypes.writer import default_text
from ascend_graph.shapes import Relation
from ascend_graph.shapes.declared_dtypes import complete_relation
from ascend_graph.shapes.syntax import Absent

#: Highest number of dtype combinations, each with its own kernel: more means a mistake in the prototype's lists.
_MOST_COMBINATIONS = 64
#: Header that the shape functions of a project share.
SUPPORT = "ascend_graph_shapes.h"


@dataclass(frozen=True, slots=True)
class OpProject:
    """Project made by :func:`generate_op_project`.

    Attributes:
        directory: The project.
        operators: Its operators, by their op types.
        written: The files that were written, relative to it.
        left_out: Operators of the sources that are not in it, with the reason.
        drafts: Files that the author has to write, with remarks.
    """

    directory: Path
    operators: tuple[str, ...]
    written: tuple[Path, ...]
    left_out: tuple[tuple[str, str], ...]
    drafts: tuple[str, ...]


def _files(
    operators: list[OperatorDescription],
    socs: Sequence[str],
    kernels: KernelSources | None,
    vendor: str,
    target: Path,
    shapes: Mapping[str, str],
) -> tuple[dict[str, str | bytes], dict[str, str | bytes]]:
    """Return the files generated on every run, and those that are the author's once written."""
    generated: dict[str, str | bytes] = {}
    own: dict[str, str | bytes] = {}
    generated[f"op_host/{SUPPORT}"] = support_source()
    for one in operators:
        values = _values(one, socs)
        generated[f"op_host/{one.name}_def.cpp"] = render("op_project/def.cpp.jinja", **values)
        generated[f"op_host/{one.name}_infershape.cpp"] = infer_shape_source(
            one.prototype, one.relation, support=SUPPORT
        )
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
    own["CMakePresets.json"] = presets(socs, vendor)
    own["op_host/CMakeLists.txt"] = render("op_project/op_host.txt.jinja", **values)
    own["op_kernel/CMakeLists.txt"] = render("op_project/op_kernel.txt.jinja", **values)
    own["README.md"] = render("op_project/README.md.jinja", **values)
    own["tests/test_operators.py"] = render("op_project/test.py.jinja", **values)
    own[".gitignore"] = "build_out/\nopp/\n__pycache__/\n"
    return generated, own


def generate_op_project(
    directory: str | Path,
    sources: Iterable[str | Path],
    *,
    shapes: Mapping[str, str],
    socs: Sequence[str] = ("ascend910b",),
    vendor: str = "customize",
) -> OpProject:
    """Write an operator project, or update one.

    Args:
        directory: The project.
        sources: Headers or directories with REG_OPs, and sources of Ascend C kernels, which are copied.
        shapes: The shape relations by op type; operators without one are left out.
        socs: The SoCs that the definition names, as CANN's ``AddConfig`` takes them.
        vendor: The name of the package among the installed ones.

    Raises:
        GenerationError: There is nothing to generate, or a part that such a project cannot express; nothing is written
            then.
        RelationError: A shape relation is malformed.
    """
    target = Path(directory).resolve()
    given = [Path(source) for source in sources]
    headers, kernels = _read(given)
    prototypes = {p.op_type: p for p in headers}
    for op_type in shapes:
        if op_type not in prototypes:
            raise GenerationError(
                f"shape of {op_type}: {', '.join(map(str, given))} lacks this operator; expected one of "
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
    operators = [
        project_operator(prototypes[op_type], complete_relation(prototypes[op_type], text), kernels)
        for op_type, text in shapes.items()
    ]
    generated, own = _files(operators, socs, kernels, vendor, target, shapes)
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
    return found.prototypes, read_kernels(kernels, named=kernels) if kernels else None


# ------------------------------------------------------------------------------------------------------------- writing


def _drafts(one: OperatorDescription) -> list[tuple[str, str]]:
    tiling = f"op_host/{one.name}_tiling.cpp"
    if one.kernel is None:
        return [(f"op_kernel/{one.name}.cpp", "the kernel, which writes zeros as it is")]
    if not one.fields:
        return []
    return [(tiling, f"what the kernel reads of its tiling data: {', '.join(f.name for f in one.fields)}")]


def may_be_absent(relation: Relation, prototype: OpPrototype) -> frozenset[str]:
    """Return the outputs that are absent in some calls by the relation, in the prototype's names."""
    known = [p.name for p in prototype.outputs]
    names = relation.outputs if set(relation.outputs) <= set(known) else known
    pairs = zip(names, relation.output_tensors, strict=False)
    return frozenset(name for name, tensor in pairs if any(isinstance(a.shape, Absent) for a in tensor.alternatives))


def _values(one: OperatorDescription, socs: Sequence[str]) -> dict[str, Any]:
    prototype = one.prototype
    kinds = {kind: kind.name for kind in ParameterKind}
    parameters = (*prototype.inputs, *prototype.outputs)
    absent = may_be_absent(one.relation, prototype)
    return {
        "op": one,
        "socs": socs,
        "place": Path(prototype.file).name if prototype.file else "a REG_OP",
        "inputs": [(p.name, kinds[p.kind], one.column(n)) for n, p in enumerate(prototype.inputs)],
        "outputs": [
            (p.name, "OPTIONAL" if p.name in absent else kinds[p.kind], one.column(n))
            for n, p in enumerate(parameters)
            if n >= len(prototype.inputs)
        ],
        "attrs": [
            (a.name, "REQUIRED" if a.required else "OPTIONAL", a.type.value, "" if a.required else default_text(a))
            for a in prototype.attrs
        ],
        "relation": ascii(" ".join(str(one.relation).split()))[1:-1].replace("\\", "/"),
        "staged": [_tensor(one, "in", p) for p in prototype.inputs] if one.is_elementwise else [],
        "made": [_tensor(one, "out", p) for p in prototype.outputs],
        "may_be_absent": bool(absent),
        "cpp_string": cpp_string,
    }


def _tensor(one: OperatorDescription, side: str, parameter: Parameter) -> dict[str, str]:
    return {"argument": one.arguments[f"{side} {parameter.name}"], "macro": macro_name(parameter.name)}


def _kernel_files(kernels: KernelSources, operators: Sequence[OperatorDescription]) -> dict[str, str | bytes]:
    """Return the given kernels and the files they include, kernels under the names that CANN expects."""
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


def presets(socs: Sequence[str], vendor: str) -> str:
    """Return CMake's preset ``default``, which CANN's documents name."""
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
