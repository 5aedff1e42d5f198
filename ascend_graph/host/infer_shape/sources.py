"""InferShape functions of a source file, ``op_host/x_infershape.cpp``: compiled alone, without definition, tiling and kernel."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ascend_graph.compilation import CppLibrary
from ascend_graph.environment import toolkit_directory
from ascend_graph.errors import AscendGraphError
from ascend_graph.host.infer_shape.calls import ANSWER, load_toolkit, specs_of, values_of
from ascend_graph.host.projects.includes import find_includes, host_header_options
from ascend_graph.host.projects.libraries import (
    COMPILE_LIMIT,
    complete_sources,
    host_include_directories,
    undefined_functions,
)
from ascend_graph.host.projects.model import NO_OPTIONS, BuildOptions
from ascend_graph.host.projects.repository import Repository
from ascend_graph.host.projects.source_text import code_of, registered
from ascend_graph.prototypes import OpPrototype, ParameterKind, PassedAs, read_prototypes
from ascend_graph.prototypes.loading import is_prototype_file
from ascend_graph.shapes.functions import Answer, Inputs, ShapeFunction, ShapeFunctionError
from ascend_graph.sources.compared import compared_texts

_SOURCE = "include/op_host/ascend_graph/shape_functions.cpp"
_REFUSED, _MISSING, _CRASHED = 1, 2, 3
_CAPACITY = 4096
#: Directories of a project in which definitions and prototypes lie.
_PLACES = ("op_host", "op_graph", "op_proto", "op_proto/inc", ".")


class ShapeSourceError(AscendGraphError):
    """Error of a source without an InferShape function, or of one whose operator has no prototype."""


@dataclass(frozen=True, slots=True)
class SourceFunctions:
    """Shape functions that a source registers, and the operators whose prototype was not found."""

    functions: tuple[ShapeFunction, ...]
    without_prototype: tuple[str, ...] = ()


def source_functions(
    path: Path, *, prototypes: Iterable[OpPrototype] = (), options: BuildOptions = NO_OPTIONS
) -> SourceFunctions:
    """Compile a source with the host toolkit and return the shape functions that it registers.

    Args:
        path: The source. The files that it includes are found in the repository around it.
        prototypes: Prototypes that come before those of the project around the source.
        options: Include directories, macros and headers of CANN besides.

    Raises:
        ShapeSourceError: The source registers no InferShape function, or calls what no source defines.
        BuildError: It does not compile.
    """
    source = path.resolve()
    known = {prototype.op_type: prototype for prototype in prototypes}
    library = compile_source(source, options)
    try:
        registrations = registered_functions(library)
    except OSError as error:
        undefined = ", ".join(undefined_functions(library)) or str(error)
        root = Repository.around(_project(source), options).root
        raise ShapeSourceError(
            f"{path}: calls {undefined}, which no source in {root} defines; expected their source there"
        ) from error
    found: list[ShapeFunction] = []
    missing: list[str] = []
    for op_type, says_dtypes, data_inputs in registrations:
        prototype = known.get(op_type) or _project_prototypes(source).get(op_type)
        if prototype is None:
            missing.append(op_type)
            continue
        names = tuple(prototype.inputs[n].name for n in data_inputs if n < len(prototype.inputs))
        found.append(
            ShapeFunction(
                prototype,
                f"the InferShape function in {path}",
                _caller(library, prototype),
                compared_texts(code_of(source)),
                names,
                says_dtypes,
                value_inputs=tuple(p.name for p in prototype.inputs if p.passed_as is PassedAs.VALUES),
            )
        )
    if not found and not missing:
        raise ShapeSourceError(
            f"{path}: registers no InferShape function; expected IMPL_OP_INFERSHAPE(Op).InferShape(…)"
        )
    return SourceFunctions(tuple(found), tuple(missing))


def compile_source(source: Path, options: BuildOptions = NO_OPTIONS) -> Path:
    """Compile a source of shape functions, with the sources that define what it calls, and return the library.

    Raises:
        BuildError: It does not compile.
    """
    repository = Repository.around(_project(source), options)

    def library(sources: Sequence[Path]) -> CppLibrary:
        own = tuple(dict.fromkeys((*(one.parent for one in sources), repository.start)))
        includes = find_includes(repository, sources, own, host_include_directories())
        files = (*sources, *(one for one in includes.helpers if one not in sources))
        return CppLibrary(
            name="libshape_functions",
            sources=(toolkit_directory() / _SOURCE, *files),
            include_directories=(
                *dict.fromkeys((*own, *includes.directories)),
                *host_include_directories(),
                toolkit_directory() / "include/op_host/fallback",
            ),
            library_directories=(toolkit_directory() / "lib64",),
            libraries=("opapi", "ascendcl", "ascendc_runtime", "dl"),
            flags=(
                "-fvisibility=hidden",
                "-fno-gnu-unique",
                "-w",
                "-O0",
                f"-DASCEND_GRAPH_NPU_ARCH={options.architecture.number}",
                *repository.definitions((*files, *includes.files)),
                *host_header_options(repository, includes, host_include_directories()),
            ),
        )

    def lacking(sources: tuple[Path, ...]) -> tuple[Path, ...]:
        missing = undefined_functions(library(sources).build(time_limit=COMPILE_LIMIT))
        # Functions of dtypes lie in op_graph, and so does what they call.
        return repository.defining(missing, sources) or repository.defining(missing, sources, form="op_graph")

    first = (source, *_dtype_sources(source))
    sources = complete_sources(first, lambda more: (*first, *more), lacking)
    return library(sources).build(time_limit=COMPILE_LIMIT)


def registered_functions(library: Path) -> list[tuple[str, bool, tuple[int, ...]]]:
    """Return the op types with an InferShape function, whether it says dtypes, and the inputs whose values it reads."""
    text = ctypes.create_string_buffer(1 << 16)
    _loaded(library).ascendgraphShapeFunctions(text, len(text))
    found = []
    for line in text.value.decode().splitlines():
        op_type, kind, *inputs = line.split(" ")
        found.append((op_type, kind == "dtype", tuple(map(int, inputs))))
    return found


@cache
def _loaded(library: Path) -> ctypes.CDLL:
    load_toolkit()
    loaded = ctypes.CDLL(str(library))
    loaded.ascendgraphShapeFunctions.restype = ctypes.c_size_t
    loaded.ascendgraphShapeFunctions.argtypes = (ctypes.c_char_p, ctypes.c_size_t)
    loaded.ascendgraphInferShapes.argtypes = (
        *(ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_size_t),
        *(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t),
    )
    return loaded


def _caller(library: Path, prototype: OpPrototype) -> Callable[[Inputs, Mapping[str, Any]], Sequence[Answer]]:
    """Return the function that asks a library's InferShape function."""
    entry = _loaded(library).ascendgraphInferShapes
    name, outputs = prototype.op_type.encode(), len(prototype.outputs)
    message = ctypes.create_string_buffer(_CAPACITY)
    lists = [p.kind is ParameterKind.DYNAMIC for p in prototype.outputs]

    def call(inputs: Inputs, attrs: Mapping[str, Any]) -> Sequence[Answer]:
        given, _ = values_of(prototype, inputs, attrs)
        # As with foreach operators, an output that is a list is as long as the first input that is one.
        length = next((len(one) for one in inputs if isinstance(one, list)), 1)
        numbers = [length if is_list else 1 for is_list in lists]
        answers = ((ctypes.c_int64 * ANSWER) * max(sum(numbers), 1))()
        counts = (ctypes.c_size_t * max(outputs, 1))(*numbers)
        status = entry(
            name, given.values, len(inputs), len(prototype.attrs), outputs, counts, answers, message, _CAPACITY
        )  # fmt: skip
        if status:
            text = message.value.decode(errors="replace")
            raise ShapeFunctionError(text, crashed=status == _CRASHED)
        rest = iter(specs_of([list(one) for one in answers][: sum(numbers)], "InferShape"))
        return [
            [next(rest) for _ in range(n)] if is_list else next(rest) for n, is_list in zip(numbers, lists, strict=True)
        ]

    return call


def _dtype_sources(source: Path) -> tuple[Path, ...]:
    """Return the project's other sources with the InferDataType functions of a source's operators."""
    operators = {operator for operator, _ in registered(code_of(source))}
    if not operators or "InferDataType" in code_of(source):
        return ()
    project = _project(source)
    found = []
    for path in sorted({*project.glob("op_graph/*.cpp"), *project.glob("op_host/*.cpp")} - {source}):
        code = code_of(path)
        if "InferDataType" in code and not operators.isdisjoint(operator for operator, _ in registered(code)):
            found.append(path)
    return tuple(found)


def _project(source: Path) -> Path:
    """Return the project's directory of a source in ``op_host``, or the source's own directory."""
    return next((p.parent for p in source.parents if p.name == "op_host"), source.parent)


@cache
def _project_prototypes(source: Path) -> dict[str, OpPrototype]:
    """Return the prototypes that the project around a source defines, REG_OPs before OpDefs."""
    project = _project(source)
    files = {path for place in _PLACES for path in (project / place).glob("*") if path.is_file()}
    found: dict[str, OpPrototype] = {}
    for path in sorted(files, key=lambda one: (one.suffix not in (".h", ".hpp"), str(one))):
        if is_prototype_file(path) or path.suffix in (".h", ".hpp"):
            for prototype in read_prototypes(path).prototypes:
                found.setdefault(prototype.op_type, prototype)
    return found
