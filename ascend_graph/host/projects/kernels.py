"""Kernels of an operator: instances of templates, macros of dtypes and formats, tiling keys, and a library for each."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from ascend_graph.codegen.operator_package import KernelInstance, TilingStructure, project_kernel
from ascend_graph.codegen.rendering import write_if_different
from ascend_graph.compilation import CppLibrary
from ascend_graph.host.packages.format import OperatorPackageError
from ascend_graph.host.packages.kernel_keys import MOST_KEYS, WHOLE, write_later_keys
from ascend_graph.host.projects.libraries import (
    COMPILE_LIMIT,
    GENERATED_SOURCES,
    install_side_by_side,
    kernel_library,
)
from ascend_graph.host.projects.model import OperatorProject, ProjectOperator
from ascend_graph.host.projects.source_text import code_of
from ascend_graph.host.projects.tiling_keys import LISTING, asked_of_preprocessor, listed_keys
from ascend_graph.prototypes import DataType, OpPrototype

#: Macro that leaves one instance of a kernel template: see operator_package/project_kernel.asc.jinja.
INSTANCE = "ASCEND_GRAPH_INSTANCE"
#: Element types in kernels. Not every device's kernel API has all of them; sources declare the others that they use.
_KERNEL_TYPES = {
    DataType.FLOAT: "float",
    DataType.FLOAT16: "half",
    DataType.BF16: "bfloat16_t",
    DataType.DOUBLE: "double",
    DataType.BOOL: "bool",
    DataType.INT8: "int8_t",
    DataType.INT16: "int16_t",
    DataType.INT32: "int32_t",
    DataType.INT64: "int64_t",
    DataType.UINT8: "uint8_t",
    DataType.UINT16: "uint16_t",
    DataType.UINT32: "uint32_t",
    DataType.UINT64: "uint64_t",
    DataType.COMPLEX32: "complex32",
    DataType.COMPLEX64: "complex64",
    DataType.INT4: "int4b_t",
    DataType.FLOAT8_E4M3FN: "fp8_e4m3fn_t",
    DataType.FLOAT8_E5M2: "fp8_e5m2_t",
    DataType.FLOAT8_E8M0: "fp8_e8m0_t",
    DataType.HIFLOAT8: "hifloat8_t",
    DataType.UINT1: "uint1b_t",
}
_FORMATS = {
    "FORMAT_NCHW": 0, "FORMAT_NHWC": 1, "FORMAT_ND": 2, "FORMAT_NC1HWC0": 3, "FORMAT_FRACTAL_Z": 4, "FORMAT_FRACTAL_NZ": 29,
    "FORMAT_NDC1HWC0": 32, "FORMAT_FRACTAL_Z_3D": 33,
}  # fmt: skip


def kernel_libraries(
    project: OperatorProject, operator: ProjectOperator, tilings: Sequence[TilingStructure], work: Path
) -> tuple[CppLibrary, ...]:
    """Return the libraries of an operator's kernel, in the order of its combinations of dtypes.

    Args:
        project: the project with its kernels.
        operator: one of its operators.
        tilings: the registered tiling structures.
        work: the package that is made.

    Raises:
        BuildError: the source does not pass the preprocessor.
        OperatorPackageError: the source asks the preprocessor for tiling keys and names none.
    """
    kernel, prototype = project.kernels[operator.prototype.op_type], operator.prototype
    installed = install_side_by_side(operator.name, kernel.siblings, work)
    codes = (kernel.code, *map(code_of, kernel.included))
    by_key = asked_of_preprocessor(codes)
    undeclared = _undeclared(tilings, codes)
    libraries: list[CppLibrary] = []
    for index, (dtypes, formats) in enumerate(zip(operator.combinations, operator.formats, strict=True)):
        name = f"{operator.name}_{index}"
        source = work / GENERATED_SOURCES / f"{name}.asc"
        instances = _instances(operator, dtypes, kernel.code) if kernel.is_template else ()
        text = project_kernel(
            prototype.op_type,
            operator.kernel,
            kernel.path,
            operator.launch_parameters,
            macros=kernel_macros(prototype, dtypes, formats),
            tilings=undeclared,
            instances=instances,
        )
        write_if_different(source, text)
        library = kernel_library(project, kernel, name, source, installed)
        if by_key:
            # A package that CANN built may list dtypes for which its source has nothing.
            may_lack = project.options.on_launch
            libraries += by_tiling_key(library, [one.key for one in instances], may_lack=may_lack)
        elif len(instances) > MOST_KEYS:
            libraries += _for_each_key(library, [one.key for one in instances], INSTANCE)
        else:
            libraries.append(library)
    return tuple(libraries)


def _for_each_key(library: CppLibrary, keys: Sequence[int], macro: str) -> tuple[CppLibrary, ...]:
    """Return a kernel's library for each tiling key, which a macro names."""
    return tuple(
        replace(library, name=f"{library.name}_{key}", flags=(*library.flags, f"-D{macro}={key}UL")) for key in keys
    )


def take_later_keys(
    libraries: Sequence[CppLibrary], package: Path, directory: Path, *, on_launch: bool = False
) -> tuple[CppLibrary, ...]:
    """Return the kernel libraries to compile now; of many tiling keys the first, and the others when they are launched.

    Args:
        libraries: The libraries of a package's kernels.
        package: The package's directory.
        directory: The directory of its kernels, where the later keys are described.
        on_launch: If true, none is compiled now.
    """
    now: list[CppLibrary] = []
    for _, group in groupby(libraries, key=lambda one: one.sources):
        same = list(group)
        if len(same) > MOST_KEYS or on_launch:
            keys = [_key_of(one) for one in same]
            write_later_keys(same, keys, package, directory)
            now += [] if on_launch else same[:1]
        else:
            now += same
    return tuple(now)


def _key_of(library: CppLibrary) -> str:
    """Return the tiling key that a kernel's library is for, or the word for one that is for all of them."""
    return library.name.removeprefix(library.sources[0].stem).lstrip("_") or WHOLE


def by_tiling_key(library: CppLibrary, keys: Sequence[int], *, may_lack: bool = False) -> tuple[CppLibrary, ...]:
    """Return a kernel's library for each tiling key: those of its instances, or else those that its source names.

    Args:
        library: the library of a kernel and a combination of dtypes.
        keys: the keys of its instances.
        may_lack: if true, a source that names no key has no library.

    Raises:
        BuildError: the source does not pass the preprocessor.
        OperatorPackageError: the source names no key.
    """
    (source,) = library.sources
    keys = keys or listed_keys(library.preprocessed(source, f"-D{LISTING}", time_limit=COMPILE_LIMIT))
    if not keys and not may_lack:
        raise OperatorPackageError(
            f"{library.name}: its source asks the preprocessor for TILING_KEY_VAR and names no key for these dtypes; write "
            f"TILING_KEY_IS(key) for each, with the key as a constant"
        )
    return _for_each_key(library, keys, "TILING_KEY_VAR")


def kernel_macros(
    prototype: OpPrototype, dtypes: Sequence[DataType], formats: Sequence[int]
) -> tuple[tuple[str, str], ...]:
    """Return the macros that CANN's build defines for a kernel: dtype and format of each parameter, and their names."""
    macros = [(dtype.ge_name, str(int(dtype))) for dtype in DataType]
    macros += [(name, str(number)) for name, number in _FORMATS.items()]
    names = {number: name for name, number in _FORMATS.items()}
    for parameter, dtype, stored in zip((*prototype.inputs, *prototype.outputs), dtypes, formats, strict=True):
        name = parameter.name.upper()
        if dtype in _KERNEL_TYPES:
            macros.append((f"DTYPE_{name}", _KERNEL_TYPES[dtype]))
        macros += [(f"ORIG_DTYPE_{name}", dtype.ge_name), (f"FORMAT_{name}", names.get(stored, str(stored)))]
    return tuple(dict(macros).items())


def check_parameters(operator: ProjectOperator, source: Path, code: str) -> bool:
    """Check a kernel function against its operator, and return whether it is a template.

    Raises:
        OperatorPackageError: a template without instances, or another number of parameters. The compiler says less.
    """
    head = rf"(?P<before>[^;{{}}]*)__global__[^;{{}}()]*\b{operator.kernel}\s*\((?P<parameters>[^()]*)\)"
    heads = list(re.finditer(head, code))  # more than one if the preprocessor leaves some out
    op_type = operator.prototype.op_type
    templates = [bool(re.search(r"\btemplate\s*<", one["before"])) for one in heads]
    # Next to a template may be a function for tests that is not a kernel.
    is_template = any(templates) if operator.instances else bool(heads) and all(templates)
    if is_template and not operator.instances:
        raise OperatorPackageError(
            f"{source}: {operator.kernel} is a template, and nothing in op_host declares its instances: include the "
            f"header with ASCENDC_TPL_ARGS_DECL({op_type}, …) and ASCENDC_TPL_SEL in the source of the tiling function"
        )
    given = [len([p for p in one["parameters"].split(",") if p.strip()]) for one in heads]
    if given and operator.launch_parameters not in given:
        names = [p.name for p in (*operator.prototype.inputs, *operator.prototype.outputs)]
        raise OperatorPackageError(
            f"{source}: {operator.kernel} takes {given[0]} parameters; {op_type} calls it with "
            f"{operator.launch_parameters}: {', '.join([*names, 'workspace', 'tiling'])}"
        )
    # Without a visible definition op_host's declaration decides.
    return is_template or not heads


def _undeclared(tilings: Sequence[TilingStructure], codes: Sequence[str]) -> tuple[TilingStructure, ...]:
    """Return the structures that a kernel does not declare itself, as one with REGISTER_TILING_DEFAULT does."""
    if not any("REGISTER_TILING_DEFAULT" in code for code in codes):
        return tuple(tilings)
    return tuple(
        t
        for t in tilings
        if not any(re.search(rf"\bstruct\s+(?:alignas\([^()]*\)\s*)?{t.name}\s*\{{", code) for code in codes)
    )


def _instances(operator: ProjectOperator, dtypes: Sequence[DataType], code: str) -> tuple[KernelInstance, ...]:
    """Return the template instances that are possible for these dtypes of the operator's parameters."""
    is_type = _type_parameters(operator, code)
    instances = {}
    for key, arguments in operator.instances:
        texts = []
        for value, as_type, bound in zip(arguments, is_type, operator.template_bounds, strict=True):
            if bound is not None and value != dtypes[bound]:
                break
            if not as_type:
                texts.append(str(value))
            elif value in dtypes and DataType(value) in _KERNEL_TYPES:
                texts.append(_KERNEL_TYPES[DataType(value)])
            else:
                break
        else:
            instances[key] = KernelInstance(key, tuple(texts))
    return tuple(instances.values())


def _type_parameters(operator: ProjectOperator, code: str) -> tuple[bool, ...]:
    """Return which template parameters are types: a declared dtype may be passed on as its number."""
    head = re.search(rf"\btemplate\s*<([^;{{}}()]*)>[^;{{}}()]*__global__[^;{{}}()]*\b{operator.kernel}\s*\(", code)
    written = [] if head is None else [p.split() for p in head[1].split(",")]
    if len(written) != len(operator.template_dtypes):
        return operator.template_dtypes
    return tuple(words[:1] in (["typename"], ["class"]) for words in written)
