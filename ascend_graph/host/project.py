"""Operator projects: an operator package for the host runtime from the sources that build one for a device.

A project is laid out as msOpGen makes it: ``op_host`` with the definitions (classes derived from ``OpDef``), tiling
functions and shape functions, ``op_kernel`` with the Ascend C kernels. The package's aclnn functions run the author's
tiling function on the call's real shapes, dtypes and attrs, and launch the author's kernel with what it decided.

The build goes as CANN's: the sources of op_host are compiled and asked what they define; from that come the prototypes and
the aclnn functions; each kernel is compiled once for every combination of dtypes, with the macros ``DTYPE_<PARAMETER>``.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ascend_graph.codegen.operator_package import (
    KernelInstance,
    TilingField,
    TilingStructure,
    generate_project_package,
    project_kernel,
)
from ascend_graph.codegen.rendering import write_if_different
from ascend_graph.compilation import BuildError, CppLibrary, jobs
from ascend_graph.host.architecture import ARCHITECTURES, Architecture
from ascend_graph.host.handwritten import (
    HandWritten,
    LeftOutError,
    announce,
    check_loads,
    first_line,
    undefined_functions,
)
from ascend_graph.host.package import (
    LIBRARY,
    TRANSLATOR,
    OperatorPackageError,
    check_relation,
    install_library,
    kernel_compiler,
    staged_package,
    write_package_files,
)
from ascend_graph.host.repository import Given, Includes, Repository, code_of, defined_operators, headers_beside
from ascend_graph.host.tiling_keys import LISTING, asked_of_preprocessor, listed_keys
from ascend_graph.host.toolkit import toolkit_directory
from ascend_graph.prototypes import Attr, AttrType, DataType, OpPrototype, Parameter, ParameterKind, PassedAs
from ascend_graph.prototypes.naming import snake_case
from ascend_graph.shapes import parse_relation

#: Seconds that compiling one library of a project may take, and that asking it what it defines may take.
COMPILE_LIMIT = 600.0
DESCRIBE_LIMIT = 60.0

_HOST_SUFFIXES = frozenset({".cpp", ".cc", ".cxx"})
_KERNEL_SUFFIXES = _HOST_SUFFIXES | {".asc", ".cce"}
_HEADER_SUFFIXES = frozenset({".h", ".hpp", ".inl", ".inc"})

#: What a kernel calls the elements of a tensor; other dtypes have no type there. Not all of these are types of the kernel API
#: on every device: sources declare what they use of the rest.
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
_SELECTS = re.compile(r"^[ \t]*ASCENDC_TPL_SEL\s*\(", re.MULTILINE)
_ADD_CONFIG = re.compile(r'\bAddConfig\s*\(\s*"(\w+)"')
#: What AddConfig calls chips with another vector unit, whose kernels are other code than that for the rest.
_OWN_KERNELS = frozenset({"ascend950", "ascend910_95", "mc62", "mc62cm12a"})
#: How a source registers a function that launches the operator through aclnn, and how it registers all others.
_FALLBACK = re.compile(r"\.\s*(?:OpExecuteFunc|Op2StageExecuteFuncs)\s*\(")
_FUNCTION = re.compile(r"\bOP_ADD\s*\(|\.\s*(?:Tiling|InferShape|InferDataType)\s*\(")
_FORMATS = {
    "FORMAT_NCHW": 0, "FORMAT_NHWC": 1, "FORMAT_ND": 2, "FORMAT_NC1HWC0": 3, "FORMAT_FRACTAL_Z": 4, "FORMAT_FRACTAL_NZ": 29,
    "FORMAT_NDC1HWC0": 32, "FORMAT_FRACTAL_Z_3D": 33,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ProjectOperator:
    """An operator that a project defines."""

    prototype: OpPrototype
    #: The dtypes of inputs, then outputs, of each kernel.
    combinations: tuple[tuple[DataType, ...], ...]
    #: Beside these the formats in which memory holds each parameter: those of blocks, ND for all others.
    formats: tuple[tuple[int, ...], ...]
    infers_shapes: bool
    #: The source of the kernel by its stem, where the definition names it.
    kernel_file: str
    #: What AddConfig calls the chips that it is for.
    chips: frozenset[str] = frozenset()
    #: The kernel function, where the definition names it.
    interface: str = ""
    #: The instances of a kernel that is a template: tiling key and template arguments, dtypes by their numbers.
    instances: tuple[tuple[int, tuple[int, ...]], ...] = ()
    #: By template parameter: whether it is declared as a dtype, and the parameter of the operator whose dtype it is.
    template_dtypes: tuple[bool, ...] = ()
    template_bounds: tuple[int | None, ...] = ()

    @property
    def name(self) -> str:
        """What files of the operator are called after."""
        return snake_case(self.prototype.op_type)

    @property
    def kernel(self) -> str:
        """The kernel function."""
        return self.interface or self.name


@dataclass(frozen=True, slots=True)
class Listed:
    """What a project's own build files list: it is built from that alone, where otherwise its directories say it."""

    #: The sources of op_host.
    host: tuple[Path, ...]
    #: Where they look for headers, beside the toolkit.
    include_directories: tuple[Path, ...] = ()
    #: The compiler's options for them.
    host_options: tuple[str, ...] = ()
    #: The sources of hand-written aclnn functions.
    op_api: tuple[Path, ...] = ()
    #: Directories with sources of kernels.
    kernel_directories: tuple[Path, ...] = ()
    #: By op type: the source of its kernel; others are called like the kernel and lie in one of the directories.
    kernel_files: Mapping[str, Path] = field(default_factory=dict)
    #: By op type: the compiler's options for its kernel.
    kernel_options: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    #: The compiler's options for all kernels.
    common_kernel_options: tuple[str, ...] = ()
    #: The chips that it is built for, as AddConfig calls them.
    units: tuple[str, ...] = ()

    def kernel_file(self, op_type: str, stem: str) -> Path:
        """The source of an operator's kernel.

        Raises:
            OperatorPackageError: there is none; the message says where it is looked for.
        """
        known = self.kernel_files.get(op_type)
        candidates = [known] if known is not None else [path / f"{stem}.cpp" for path in self.kernel_directories]
        if found := next((path for path in candidates if path.is_file()), None):
            return found
        looked = " and ".join(map(str, candidates)) or "no directory, as npu_op_kernel_library(…) is missing"
        raise OperatorPackageError(
            f"{op_type}: the source of its kernel is looked for in {looked}; call it so, or say where it is: "
            f"npu_op_kernel_sources(<kernel library> OP_TYPE {op_type} KERNEL_DIR <directory> KERNEL_FILE <file>)"
        )


@dataclass(frozen=True, slots=True)
class Description:
    """What the sources of a project define."""

    operators: tuple[ProjectOperator, ...]
    tilings: tuple[TilingStructure, ...]


def build_project_package(
    directory: str | Path,
    project: str | Path,
    *,
    relations: Mapping[str, str] | None = None,
    given: Given = Given(),  # noqa: B008 - it is frozen
    listed: Listed | None = None,
) -> Path:
    """Build an operator package from an operator project.

    Args:
        directory: where the package is made; replaced as a whole if it exists and is one.
        project: the directory with ``op_host`` and ``op_kernel``; sources that lie in it directly are taken where it has
            neither.
        relations: by op type: a shape relation, which the graph engine uses in place of the author's InferShape.
        given: directories, macros and headers of CANN beside what the repository around the project has.
        listed: what the project's own build files list; without it the project's directories say what there is.

    Returns:
        The package's directory, for ``ASCEND_CUSTOM_OPP_PATH``.

    Raises:
        OperatorPackageError: the project defines nothing or something that cannot be built, or has no kernel for it.
        BuildError: a source does not compile, or not in ten minutes.
        GenerationError: an operator has an attr that aclnn functions do not take.
        RelationError: a relation is malformed.
    """
    target = Path(directory).resolve()
    found = project_sources(Path(project).resolve(), given, listed)
    parsed = {name: parse_relation(text) for name, text in (relations or {}).items()}
    with staged_package(target) as work:
        sources = found.completed(work)
        description = sources.describe(work)
        by_name = {o.prototype.op_type: o for o in description.operators}
        for name, relation in parsed.items():
            if name not in by_name:
                raise OperatorPackageError(
                    f"relation for {name!r}: {sources.project} defines no such operator; it defines {', '.join(by_name)}"
                )
            check_relation(by_name[name].prototype, relation)
        kernels = [library for o in description.operators for library in sources.kernels(o, description.tilings, work)]
        prototypes = [o.prototype for o in description.operators]
        install_functions(sources, prototypes, work)
        with ThreadPoolExecutor(jobs()) as pool:
            built = list(pool.map(lambda one: one.build(time_limit=COMPILE_LIMIT), kernels))
        for kernel, library in zip(kernels, built, strict=True):
            install_library(library, work / "op_impl/host/kernels" / f"{kernel.name}.so")
        shutil.rmtree(work / _SIDE_BY_SIDE, ignore_errors=True)
        metadata = {
            name: {
                "relation": parsed[name].source if name in parsed else None,
                "python": None,
                "infer_shape": operator.infers_shapes,
            }
            for name, operator in by_name.items()
        }
        write_package_files(work, prototypes, metadata)
    return target


def project_sources(project: Path, given: Given, listed: Listed | None) -> ProjectSources:
    """The files of a project: those that are listed, or else those of its directories.

    Raises:
        OperatorPackageError: there are none.
    """
    return (
        ProjectSources.find(project, given) if listed is None else ProjectSources.of_build_files(project, given, listed)
    )


def install_functions(sources: ProjectSources, prototypes: Sequence[OpPrototype], work: Path) -> None:
    """Build the aclnn functions of a package: the generated ones, and those that the project's authors wrote.

    What does not compile or does not link of the latter is left out, with a warning: the operators do not need them. Where
    build files list them it is an error, as it is for a device.
    """
    written = sources.hand_written()
    if written is not None:
        try:
            beneath = written.beneath(host_include_directories())
            own = {snake_case(p.op_type): f"aclnn{p.op_type}" for p in prototypes}
            replaced = {*written.functions, *(own[name] for name in beneath if name in own)}
            others = sources.repository.prototypes(beneath - own.keys())
            source = generate_project_package(prototypes, work, replaced, others)
            library = written.build(work / "op_api/include", host_include_directories(), COMPILE_LIMIT)
            functions = sources.host_library("libcust_opapi", source, work, beside=library)
            install_library(functions.build(time_limit=COMPILE_LIMIT), work / LIBRARY)
            install_library(library, work / LIBRARY.with_name(library.name))
            check_loads(work / LIBRARY)
            written.install_headers(work / "op_api/include")
            return
        except (BuildError, LeftOutError) as error:
            if sources.listed is not None:
                raise
            for path in (work / "op_api").glob("*/*"):
                path.unlink()
            announce(f"{sources.project.name}: its own aclnn functions are left out: {first_line(str(error))}")
    functions = sources.host_library("libcust_opapi", generate_project_package(prototypes, work), work)
    install_library(functions.build(time_limit=COMPILE_LIMIT), work / LIBRARY)


@dataclass(frozen=True, slots=True)
class ProjectSources:
    """The files of a project."""

    project: Path
    host: tuple[Path, ...]
    kernel: tuple[Path, ...]
    headers: tuple[Path, ...]
    repository: Repository
    includes: Includes
    listed: Listed | None = None

    @staticmethod
    def of_build_files(project: Path, given: Given, listed: Listed) -> ProjectSources:
        """The files that a project's own build files list; nothing is looked for beside them.

        Raises:
            OperatorPackageError: no source is listed.
        """
        if not listed.host:
            raise OperatorPackageError(f"{project}: its build files list no source of op_host")
        # The compiler says which headers it read.
        return ProjectSources(
            project,
            listed.host,
            (),
            (),
            Repository.around(project, given),
            Includes(listed.include_directories),
            listed,
        )

    def hand_written(self) -> HandWritten | None:
        """The sources of the aclnn functions that the project's authors wrote; None where there are none."""
        if self.listed is None:
            return HandWritten.of(self.project, self.repository)
        return HandWritten.among(self.listed.op_api, self.project, self.repository)

    @staticmethod
    def find(
        project: Path,
        given: Given = Given(),  # noqa: B008 - it is frozen
        more: Sequence[Path] = (),
    ) -> ProjectSources:
        """The files of the project in a directory, and more sources for op_host.

        Raises:
            OperatorPackageError: there is none; the message says what a project has.
        """
        if not project.is_dir():
            raise OperatorPackageError(f"{project} is no directory; give that of a project, with op_host and op_kernel")
        repository = Repository.around(project, given)
        host_directory, kernel_directory = project / "op_host", project / "op_kernel"
        if host_directory.is_dir() and kernel_directory.is_dir():
            host_files = [
                path
                for path in host_directory.rglob("*")
                if not repository.is_other_architecture(path) and not _is_aside(path.relative_to(host_directory))
            ]
            kernel_files = [path for path in kernel_directory.rglob("*") if not repository.is_other_architecture(path)]
            host = tuple(path for path in _files(host_files, _HOST_SUFFIXES) if not _is_fallback(code_of(path)))
            kernel = _files(kernel_files, _KERNEL_SUFFIXES)
            headers = _files([*host_files, *kernel_files], _HEADER_SUFFIXES)
        else:
            code = {path: code_of(path) for path in _files(project.iterdir(), _KERNEL_SUFFIXES)}
            kernel = tuple(path for path, text in code.items() if "__global__" in text)
            host = tuple(path for path, text in code.items() if path not in kernel and "register/" in text)
            headers = _files(project.iterdir(), _HEADER_SUFFIXES)
        if not host or not kernel:
            lacking, what = (host_directory, "definitions") if not host else (kernel_directory, "kernels")
            if others := repository.other_architectures(lacking):
                raise OperatorPackageError(
                    f"{project}: its {what} are for {', '.join(others)} alone; {_built_for(repository.given)}"
                )
        if not host or not kernel:
            inside = sorted({p.parent.relative_to(project) for p in project.rglob("op_host") if p.is_dir()})
            hint = f"; projects lie in {', '.join(map(str, inside))}" if inside else ""
            missing = "definition (a source with OP_ADD) in op_host" if not host else "kernel in op_kernel"
            raise OperatorPackageError(f"{project} is no operator project: there is no {missing}{hint}")
        defined = {name for path in host for name in defined_operators(code_of(path))}
        host = tuple(dict.fromkeys((*host, *repository.registrations(defined, host), *more)))
        own = (*dict.fromkeys(path.parent for path in (*host, *headers)), project)
        includes = repository.includes(host, own, host_include_directories())
        return ProjectSources(project, (*host, *includes.helpers), kernel, headers, repository, includes)

    def completed(self, work: Path) -> ProjectSources:
        """With the sources of other projects that define what these call.

        Raises:
            BuildError: a source does not compile.
            OperatorPackageError: the project is for other devices.
        """
        self._refuse_other_devices()
        if self.listed is not None:
            return self
        sources: ProjectSources = self
        more: tuple[Path, ...] = ()
        while True:
            missing = undefined_functions(sources._definitions(work))
            others = sources.repository.defining(missing, sources.host) if missing else ()
            others = others or sources._registrations_of_macros(work)
            if not others:
                return sources
            more = (*more, *others)
            sources = ProjectSources.find(self.project, self.repository.given, more)

    def _registrations_of_macros(self, work: Path) -> tuple[Path, ...]:
        """Where operators are registered whose names no text has, as macros make them: the sources are asked."""
        if any(defined_operators(code_of(path)) for path in self.host):
            return ()
        named = [operator.prototype.op_type for operator in self.describe(work).operators]
        return tuple(path for path in self.repository.registrations(named, self.host) if path not in self.host)

    def _definitions(self, work: Path) -> Path:
        """The library that says what the sources of op_host define, and what headers of kernels alone select."""
        source = toolkit_directory() / "include/op_host/ascend_graph/describe.cpp"
        selecting = []
        for index, header in enumerate(self._selecting_headers()):
            selecting.append(work / f"op_impl/host/src/selections_{index}.cpp")
            write_if_different(selecting[-1], f'#include "{header}"\n')
        return self.host_library("libdefinitions", source, work, more=selecting).build(time_limit=COMPILE_LIMIT)

    def _selecting_headers(self) -> tuple[Path, ...]:
        """The headers that select instances of kernels and that op_host does not include."""
        kernel = self.repository.includes(
            self.kernel, tuple(dict.fromkeys(path.parent for path in self.kernel)), _kernel_include_directories()
        )
        seen = set(self.includes.files)
        return tuple(path for path in kernel.files if path not in seen and _SELECTS.search(code_of(path)))

    def describe(self, work: Path) -> Description:
        """What the sources of op_host define: they are compiled and asked.

        Raises:
            BuildError: a source does not compile.
            OperatorPackageError: nothing is defined, or something that no kernel can be built for.
        """
        self._refuse_other_devices()
        library = self._definitions(work)
        with tempfile.TemporaryDirectory(prefix="ascend-graph-") as scratch:
            result = Path(scratch) / "definitions.json"
            code = "import ctypes, sys; sys.exit(ctypes.CDLL(sys.argv[1]).ascendgraphDescribe(sys.argv[2].encode()))"
            try:
                run = subprocess.run(
                    [sys.executable, "-c", code, str(library), str(result)],
                    capture_output=True,
                    text=True,
                    check=False,
                    timeout=DESCRIBE_LIMIT,
                )
            except subprocess.TimeoutExpired:
                raise OperatorPackageError(
                    f"{self.project}: the definitions did not end in {DESCRIBE_LIMIT:g} seconds"
                ) from None
            if run.returncode != 0:
                ended = f"ended by signal {-run.returncode}" if run.returncode < 0 else "failed"
                raise OperatorPackageError(f"{self.project}: the definitions {ended}: {run.stderr.strip()[-2000:]}")
            description = _description(json.loads(result.read_text()), self.project, self.repository)
        if self.listed is not None:
            for operator in description.operators:
                _check_unit(operator, self.listed.units)
        return description

    def _refuse_other_devices(self) -> None:
        """Refuse what is for other devices alone before it is compiled: its tiling functions would not be there."""
        named = {soc for path in self.host for soc in _ADD_CONFIG.findall(code_of(path))}
        if is_for_others(named, self.repository.given.architecture):
            raise OperatorPackageError(f"{self.project}: {_other_devices(named, self.repository.given)}")

    def host_library(
        self, name: str, source: Path, work: Path, *, beside: Path | None = None, more: Sequence[Path] = ()
    ) -> CppLibrary:
        """A library of the project's host sources and some more, which needs the one beside it."""
        toolkit = toolkit_directory()
        # Before CANN's library, which may have a function of the same name: the loader takes the first.
        linked: tuple[str, ...] = ()
        if beside is not None:
            linked = ("-Wl,--push-state,--no-as-needed", f"-L{beside.parent}", f"-l:{beside.name}", "-Wl,--pop-state")
        generated = tuple(sorted((work / "op_api/include").glob("*.h")))
        directories: dict[Path, None] = {}
        if self.listed is None:
            directories = {**dict.fromkeys(path.parent for path in (*self.host, *self.headers)), self.project: None}
        found = dict.fromkeys(self.includes.directories)
        return CppLibrary(
            name=name,
            sources=(source, *more, *self.host),
            headers=(*generated, *self.headers, *_toolkit_headers()),
            include_directories=(
                work / "op_api/include",
                *directories,
                *(path for path in found if path not in directories),
                *host_include_directories(),
            ),
            library_directories=(toolkit / "lib64",),
            libraries=("opapi", "ascendcl", "ascendc_runtime", "dl"),
            # Packages are loaded into one process: what is not exported must not be shared between them.
            flags=(
                "-fvisibility=hidden",
                "-fno-gnu-unique",
                "-w",
                f"-DASCEND_GRAPH_NPU_ARCH={self.repository.given.architecture.number}",
                *self.definitions(self.host, self.includes),
                *(self.listed.host_options if self.listed is not None else ()),
                *headers_beside(self.repository, self.includes, host_include_directories()),
            ),
            link_first=linked,
            link_options=("-Wl,-rpath,$ORIGIN",) if beside is not None else (),
        )

    def definitions(self, sources: Iterable[Path], includes: Includes) -> tuple[str, ...]:
        """The compiler's options for what the repository's build files define."""
        if self.listed is not None:
            return tuple(f"-D{name}={value}" for name, value in self.repository.given.definitions)
        found = self.repository.definitions((*sources, *includes.files))
        return tuple(f"-D{name}={value}" for name, value in found)

    def kernels(
        self, operator: ProjectOperator, tilings: Sequence[TilingStructure], work: Path
    ) -> tuple[CppLibrary, ...]:
        """The libraries of an operator's kernel, in the order of its combinations of dtypes.

        Raises:
            OperatorPackageError: no source, or more than one, defines the kernel, or it takes other parameters.
        """
        source, code = self._kernel_source(operator)
        prototype = operator.prototype
        count = len(prototype.inputs) + len(prototype.outputs) + 2
        is_template = _check_parameters(operator, source, code, count)
        toolkit = toolkit_directory()
        listed = self.listed
        if listed is None:
            given: tuple[Path, ...] = (source.parent, self.project / "op_kernel", self.project)
            options = self.repository.kernel_definitions(self.project, prototype.op_type)
        else:
            given = (source.parent, *listed.kernel_directories)
            options = (*listed.common_kernel_options, *listed.kernel_options.get(prototype.op_type, ()))
        includes = self.repository.includes([source], given, _kernel_include_directories())
        installed = _installed_side_by_side(operator, includes, work) if listed is None else ()
        found = includes.directories if listed is None else self.repository.given.directories
        codes = (code, *map(code_of, includes.files))
        tilings = _not_declared_by(tilings, codes)
        libraries: list[CppLibrary] = []
        for index, (dtypes, formats) in enumerate(zip(operator.combinations, operator.formats, strict=True)):
            name = f"{operator.name}_{index}"
            path = work / "op_impl/host/src" / f"{name}.asc"
            instances = _instances(operator, dtypes, code) if is_template else ()
            text = project_kernel(
                prototype.op_type,
                operator.kernel,
                source,
                count,
                macros=_macros(prototype, dtypes, formats),
                tilings=tilings,
                instances=instances,
            )
            write_if_different(path, text)
            library = CppLibrary(
                name=name,
                sources=(path,),
                headers=(*self.kernel, *self.headers, *_toolkit_headers(), *TRANSLATOR),
                include_directories=(*given, *found, *installed, *_kernel_include_directories()),
                library_directories=(toolkit / "lib64",),
                libraries=("ascendcl", "ascendc_runtime"),
                # As above; and the classes of a kernel have the same names for every combination of dtypes.
                flags=(
                    "-fvisibility=hidden",
                    "-fno-gnu-unique",
                    "-w",
                    "--cce-aicore-only",
                    f"--npu-arch={self.repository.given.architecture.name}",
                    *(f"-D{key}={value}" for key, value in self.repository.given.definitions),
                    *options,
                    *headers_beside(self.repository, includes, _kernel_include_directories()),
                ),
                kernel_compiler=kernel_compiler(),
            )
            if asked_of_preprocessor(codes):
                libraries += _by_tiling_key(library, [one.key for one in instances])
            else:
                libraries.append(library)
        return tuple(libraries)

    def _kernel_source(self, operator: ProjectOperator) -> tuple[Path, str]:
        if self.listed is not None:
            path = self.listed.kernel_file(operator.prototype.op_type, operator.kernel_file or operator.name)
            return path, code_of(path)
        function = re.compile(rf"__global__[^;{{}}()]*\b{operator.kernel}\s*\(")
        found = {path: text for path in self.kernel if function.search(text := code_of(path))}
        if not found:
            # Builds put the kernels of all projects into one directory: it may lie in another project.
            others = self.repository.kernels_named(operator.kernel_file or operator.name)
            found = {path: text for path in others if function.search(text := code_of(path))}
        named = {path: text for path, text in found.items() if path.stem == (operator.kernel_file or operator.name)}
        chosen = named or found
        op_type = operator.prototype.op_type
        if not chosen:
            raise OperatorPackageError(
                f"{op_type}: no source in {self.project}/op_kernel defines its kernel, a function "
                f'extern "C" __global__ __aicore__ void {operator.kernel}(…)'
            )
        if len(chosen) > 1:
            raise OperatorPackageError(
                f"{op_type}: its kernel {operator.kernel} is defined by {', '.join(map(str, chosen))}; keep one of them"
            )
        return next(iter(chosen.items()))


def _by_tiling_key(library: CppLibrary, keys: Sequence[int]) -> tuple[CppLibrary, ...]:
    """A kernel compiled for each tiling key: those of its instances, or else those that its source names.

    Raises:
        BuildError: the source does not pass the preprocessor.
        OperatorPackageError: it names none.
    """
    (source,) = library.sources
    keys = keys or listed_keys(library.preprocessed(source, f"-D{LISTING}", time_limit=COMPILE_LIMIT))
    if not keys:
        raise OperatorPackageError(
            f"{library.name}: its source asks the preprocessor for TILING_KEY_VAR and names no key for these dtypes; write "
            f"TILING_KEY_IS(key) for each, with the key as a constant"
        )
    return tuple(
        replace(library, name=f"{library.name}_{key}", flags=(*library.flags, f"-DTILING_KEY_VAR={key}UL"))
        for key in keys
    )


def _check_unit(operator: ProjectOperator, units: Sequence[str]) -> None:
    """Refuse an operator that has no kernel for any chip that the build files name: a device's package has none either."""
    if units and operator.chips and operator.chips.isdisjoint(units):
        raise OperatorPackageError(
            f"{operator.prototype.op_type}: AddConfig names {', '.join(sorted(operator.chips))} alone, and the package is built "
            f"for {', '.join(units)} (ASCEND_COMPUTE_UNIT); write "
            f'this->AICore().AddConfig("{units[0]}"), or another ASCEND_COMPUTE_UNIT'
        )


def is_for_others(configs: Collection[str], built_for: Architecture) -> bool:
    """Whether a definition that names these chips has no kernel for the architecture: of chips that are unknown it may."""
    if not configs or not built_for.configs.isdisjoint(configs):
        return False
    return not _OWN_KERNELS.isdisjoint(built_for.configs) or _OWN_KERNELS.issuperset(configs)


def _other_devices(configs: Collection[str], given: Given) -> str:
    return f"AddConfig names {', '.join(sorted(configs))} alone; {_built_for(given)}"


def _built_for(given: Given) -> str:
    """What a build is for, and how to build for another architecture."""
    others = ", ".join(f"--npu-arch {one.name}" for one in ARCHITECTURES if one is not given.architecture)
    return f"the host stands for {given.architecture} here; for others there is {others}"


def host_include_directories() -> tuple[Path, ...]:
    """Where the headers of op_host and op_api are."""
    host, include = toolkit_directory() / "include/op_host", toolkit_directory() / "include"
    return host, include, host / "op_common", host / "op_common/op_host", host / "exe_graph"


def _kernel_include_directories() -> tuple[Path, ...]:
    include = toolkit_directory() / "include"
    return include, include / "op_common"


def _is_aside(path: Path) -> bool:
    """Whether a file below op_host is something else than a definition, tiling or shapes: aclnn functions, configurations."""
    return not {"op_api", "op_graph", "config", "tests"}.isdisjoint(path.parts[:-1])


def _is_fallback(code: str) -> bool:
    """Whether a source holds what the graph engine may call in place of the kernel, and nothing else."""
    return bool(_FALLBACK.search(code)) and not _FUNCTION.search(code)


#: Where kernels' directories stand beside each other while a package is built: links into the repository.
_SIDE_BY_SIDE = Path("op_impl/host/src/ascendc")


def _installed_side_by_side(operator: ProjectOperator, includes: Includes, work: Path) -> tuple[Path, ...]:
    """Directories to look in where a kernel includes another operator's as CANN's build installs them, side by side."""
    if not includes.siblings:
        return ()
    tree = work / _SIDE_BY_SIDE
    own = tree / operator.name
    (own / "inner").mkdir(parents=True, exist_ok=True)
    for name, directory in includes.siblings:
        link = tree / name
        if not link.exists():
            link.symlink_to(directory)
    return own, own / "inner"


def _files(paths: Any, suffixes: frozenset[str]) -> tuple[Path, ...]:
    return tuple(sorted(path for path in paths if path.suffix in suffixes and path.is_file()))


def _toolkit_headers() -> tuple[Path, ...]:
    return tuple(sorted(path for path in (toolkit_directory() / "include").rglob("*") if path.is_file()))


def _not_declared_by(tilings: Sequence[TilingStructure], codes: Sequence[str]) -> tuple[TilingStructure, ...]:
    """Without the structures that a kernel declares itself, as one with REGISTER_TILING_DEFAULT does."""
    if not any("REGISTER_TILING_DEFAULT" in code for code in codes):
        return tuple(tilings)
    return tuple(
        t
        for t in tilings
        if not any(re.search(rf"\bstruct\s+(?:alignas\([^()]*\)\s*)?{t.name}\s*\{{", code) for code in codes)
    )


def _check_parameters(operator: ProjectOperator, source: Path, code: str, count: int) -> bool:
    """Refuse a kernel that the launch could not call, with more to say than the compiler has; is it a template?"""
    head = rf"(?P<before>[^;{{}}]*)__global__[^;{{}}()]*\b{operator.kernel}\s*\((?P<parameters>[^()]*)\)"
    heads = list(re.finditer(head, code))  # more than one where some are left out by the preprocessor
    op_type = operator.prototype.op_type
    templates = [bool(re.search(r"\btemplate\s*<", one["before"])) for one in heads]
    # Beside a template may be a function for tests that is no kernel.
    is_template = any(templates) if operator.instances else bool(heads) and all(templates)
    if is_template and not operator.instances:
        raise OperatorPackageError(
            f"{source}: {operator.kernel} is a template, and nothing in op_host declares its instances: include the "
            f"header with ASCENDC_TPL_ARGS_DECL({op_type}, …) and ASCENDC_TPL_SEL in the source of the tiling function"
        )
    given = [len([p for p in one["parameters"].split(",") if p.strip()]) for one in heads]
    if given and count not in given:
        names = [p.name for p in (*operator.prototype.inputs, *operator.prototype.outputs)]
        raise OperatorPackageError(
            f"{source}: {operator.kernel} takes {given[0]} parameters; {op_type} calls it with {count}: "
            f"{', '.join([*names, 'workspace', 'tiling'])}"
        )
    # Where no definition of it is seen, what op_host declares decides.
    return is_template or not heads


def _instances(operator: ProjectOperator, dtypes: Sequence[DataType], code: str) -> list[KernelInstance]:
    """The instances that can be meant where the operator's parameters have these dtypes."""
    is_type = _template_types(operator, code)
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
    return list(instances.values())


def _template_types(operator: ProjectOperator, code: str) -> tuple[bool, ...]:
    """Which template parameters of the kernel are types: what is declared as a dtype may be passed on as its number."""
    head = re.search(rf"\btemplate\s*<([^;{{}}()]*)>[^;{{}}()]*__global__[^;{{}}()]*\b{operator.kernel}\s*\(", code)
    written = [] if head is None else [p.split() for p in head[1].split(",")]
    if len(written) != len(operator.template_dtypes):
        return operator.template_dtypes
    return tuple(words[:1] in (["typename"], ["class"]) for words in written)


def _macros(prototype: OpPrototype, dtypes: Sequence[DataType], formats: Sequence[int]) -> list[tuple[str, str]]:
    """What CANN's build defines for a kernel: dtype and format of every parameter, and the names they are compared to."""
    macros = [(dtype.ge_name, str(int(dtype))) for dtype in DataType]
    macros += [(name, str(number)) for name, number in _FORMATS.items()]
    names = {number: name for name, number in _FORMATS.items()}
    for parameter, dtype, kept in zip((*prototype.inputs, *prototype.outputs), dtypes, formats, strict=True):
        name = parameter.name.upper()
        if dtype in _KERNEL_TYPES:
            macros.append((f"DTYPE_{name}", _KERNEL_TYPES[dtype]))
        macros += [(f"ORIG_DTYPE_{name}", dtype.ge_name), (f"FORMAT_{name}", names.get(kept, str(kept)))]
    return list(dict(macros).items())


_KINDS = {
    "optional": ParameterKind.OPTIONAL,
    "virtual": ParameterKind.OPTIONAL,
    "required": ParameterKind.REQUIRED,
    "dynamic": ParameterKind.DYNAMIC,
}


def _description(found: Mapping[str, Any], project: Path, repository: Repository) -> Description:
    def worth(one: Mapping[str, Any]) -> tuple[bool, int]:
        """Tables of other architectures are for other kernels; one without instances is there to compute keys alone."""
        return not repository.is_other_architecture(Path(one["file"])), len(one["instances"])

    given = repository.given
    templates = {one["op"]: one for one in sorted(found["templates"], key=worth)}
    only = next(iter(templates.values())) if len(templates) == len(found["operators"]) == 1 else None
    operators = tuple(
        _operator(one, templates.get(one["type"]) or templates.get(snake_case(one["type"])) or only, project, given)
        for one in found["operators"]
    )
    if not operators:
        raise OperatorPackageError(f"{project}: op_host defines no operator; register its class with OP_ADD(…)")
    tilings: dict[str, TilingStructure] = {}
    for one in found["tiling_classes"]:
        fields = tuple(TilingField(f["type"].rpartition("::")[2], f["name"], f["count"]) for f in one["fields"])
        known = tilings.get(one["name"])
        ops = (*(known.ops if known is not None else ()), one["op"])
        tilings[one["name"]] = TilingStructure(ops, one["name"], one["size"], fields)
    return Description(operators, _in_order(tilings))


def _in_order(tilings: Mapping[str, TilingStructure]) -> tuple[TilingStructure, ...]:
    """Every structure after those that it contains."""
    ordered: dict[str, TilingStructure] = {}

    def add(one: TilingStructure) -> None:
        for member in one.fields:
            if member.type in tilings and member.type not in ordered and member.type != one.name:
                add(tilings[member.type])
        ordered.setdefault(one.name, one)

    for one in tilings.values():
        add(one)
    return tuple(ordered.values())


def _operator(
    found: Mapping[str, Any], template: Mapping[str, Any] | None, project: Path, given: Given
) -> ProjectOperator:
    op_type = found["type"]
    for parameter in (*found["inputs"], *found["outputs"]):
        if parameter["kind"] not in _KINDS:
            raise OperatorPackageError(
                f"{op_type}: {parameter['name']} is {parameter['kind']}; it must be one of {', '.join(_KINDS)}"
            )
    if is_for_others(found["socs"], given.architecture):
        raise OperatorPackageError(f"{op_type}: {_other_devices(found['socs'], given)}")
    if by_kernel := [p["name"] for p in found["outputs"] if p["shape_by_kernel"]]:
        raise OperatorPackageError(
            f"{op_type}: its kernel writes the shape of {', '.join(by_kernel)} (OutputShapeDependOnCompute), which the "
            f"host runtime does not read"
        )
    combinations = tuple(tuple(DataType(number) for number in one) for one in found["combinations"])
    formats = tuple(map(tuple, found["formats"]))
    columns = [tuple(dict.fromkeys(column)) for column in zip(*combinations, strict=True)]
    inputs = tuple(
        Parameter(p["name"], _KINDS[p["kind"]], dtypes, passed_as=PassedAs(p["passed_as"]))
        for p, dtypes in zip(found["inputs"], columns, strict=False)
    )
    outputs = tuple(
        # As in CANN's header: REG_OP has no optional outputs.
        Parameter(p["name"], ParameterKind.DYNAMIC if p["kind"] == "dynamic" else ParameterKind.REQUIRED, dtypes)
        for p, dtypes in zip(found["outputs"], columns[len(inputs) :], strict=True)
    )
    attrs = tuple(_attr(one) for one in found["attrs"])
    prototype = OpPrototype(op_type, inputs, attrs, outputs, file=str(project))
    chips = frozenset(found["socs"])
    if template is None:
        return ProjectOperator(
            prototype, combinations, formats, found["infer_shape"], found["kernel_file"], chips, found["kernel"]
        )
    return ProjectOperator(
        prototype,
        combinations,
        formats,
        found["infer_shape"],
        found["kernel_file"],
        chips,
        found["kernel"],
        instances=tuple((one["key"], tuple(one["arguments"])) for one in template["instances"]),
        template_dtypes=tuple(template["dtypes"]),
        template_bounds=tuple(_bound(one, op_type, inputs, outputs) for one in template["bounds"]),
    )


def _bound(
    found: Sequence[Any] | None, op_type: str, inputs: Sequence[Parameter], outputs: Sequence[Parameter]
) -> int | None:
    """The place among all parameters of the one that ASCENDC_TPL_INPUT or ASCENDC_TPL_OUTPUT names."""
    if found is None:
        return None
    is_output, index = found
    if index >= len(outputs if is_output else inputs):
        what = "OUTPUT" if is_output else "INPUT"
        raise OperatorPackageError(
            f"{op_type}: ASCENDC_TPL_{what}({index}): it has {len(outputs if is_output else inputs)}"
        )
    return int(index) + (len(inputs) if is_output else 0)


def _attr(found: Mapping[str, Any]) -> Attr:
    kind = AttrType(found["type"])
    if found["required"]:
        return Attr(found["name"], kind, True)
    convert = float if kind in (AttrType.FLOAT, AttrType.LIST_FLOAT) else _as_tuple
    value = found["default"]
    if isinstance(value, list):
        return Attr(found["name"], kind, False, tuple(convert(v) for v in value))
    return Attr(found["name"], kind, False, convert(value))


def _as_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
