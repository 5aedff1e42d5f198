"""Values of an operator project's build: options, files, operators. Nothing here reads a file or runs a compiler."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ascend_graph.codegen.operator_package import TilingStructure
from ascend_graph.host.architecture import ARCHITECTURES, DAV_2201, Architecture
from ascend_graph.host.packages.format import OperatorPackageError
from ascend_graph.prototypes import DataType, OpPrototype
from ascend_graph.prototypes.naming import snake_case

#: Compute units with another vector unit: their kernels are separate code.
_OWN_KERNELS = frozenset({"ascend950", "ascend910_95", "mc62", "mc62cm12a"})
#: Directories with the code of one NPU architecture: arch22, arch35 and so on.
ARCHITECTURE_DIRECTORY = re.compile(r"arch\d+")


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """Extra include paths, macros and CANN roots that the caller gives, and the architecture to build for."""

    #: Directories that the compiler searches first (-I).
    include_directories: tuple[Path, ...] = ()
    #: Macros and their values (-D).
    definitions: tuple[tuple[str, str], ...] = ()
    #: CANN toolkits or checkouts of their sources, for headers that the host toolkit lacks.
    cann: tuple[Path, ...] = ()
    architecture: Architecture = DAV_2201
    #: If true, all tiling keys of every kernel are compiled, however many.
    all_keys: bool = False
    #: If true, each kernel is compiled when it is first launched with its dtypes.
    on_launch: bool = False

    @property
    def definition_flags(self) -> tuple[str, ...]:
        """The ``-D`` options of the compiler."""
        return tuple(f"-D{name}={value}" for name, value in self.definitions)


NO_OPTIONS = BuildOptions()


@dataclass(frozen=True, slots=True)
class ListedFiles:
    """Files and options that a project's own build files list. Such a project is built from these alone."""

    host_sources: tuple[Path, ...]
    #: Include directories of the host sources, besides the toolkit's.
    include_directories: tuple[Path, ...] = ()
    #: Compiler options for the host sources.
    host_options: tuple[str, ...] = ()
    #: Sources of hand-written aclnn functions.
    aclnn_sources: tuple[Path, ...] = ()
    kernel_directories: tuple[Path, ...] = ()
    #: Kernel sources by op type. Other kernels lie in one of the directories, under the kernel's name.
    kernel_files: Mapping[str, Path] = field(default_factory=dict)
    #: Compiler options of one kernel, by op type.
    kernel_options: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    #: Compiler options of all kernels.
    common_kernel_options: tuple[str, ...] = ()
    #: Target compute units, as AddConfig names them.
    compute_units: tuple[str, ...] = ()

    def kernel_file(self, op_type: str, stem: str) -> Path:
        """Return the source of an operator's kernel.

        Raises:
            OperatorPackageError: the file is missing; the message lists the searched paths.
        """
        known = self.kernel_files.get(op_type)
        candidates = [known] if known is not None else [path / f"{stem}.cpp" for path in self.kernel_directories]
        if found := next((path for path in candidates if path.is_file()), None):
            return found
        searched = " and ".join(map(str, candidates)) or "no directory, as npu_op_kernel_library(…) is missing"
        raise OperatorPackageError(
            f"{op_type}: expected the source of its kernel as {searched}; rename it, or say where it is: "
            f"npu_op_kernel_sources(<kernel library> OP_TYPE {op_type} KERNEL_DIR <directory> KERNEL_FILE <file>)"
        )


@dataclass(frozen=True, slots=True)
class IncludedFiles:
    """Repository files that some sources include, and the include directories that reach them."""

    #: Include directories, in search order.
    directories: tuple[Path, ...] = ()
    #: Directories of stand-ins, searched last, for headers that the toolkit lacks.
    stand_ins: tuple[Path, ...] = ()
    #: Included files, directly or not.
    files: tuple[Path, ...] = ()
    #: Sources of the helpers whose headers are included.
    helpers: tuple[Path, ...] = ()
    #: Kernel directories by operator, for ``../<operator>/…``: CANN's build installs all kernels side by side.
    siblings: tuple[tuple[str, Path], ...] = ()
    #: Includes that neither repository nor toolkit has, with the including file.
    missing: tuple[tuple[str, Path], ...] = ()


@dataclass(frozen=True, slots=True)
class ProjectOperator:
    """Operator that a project defines."""

    prototype: OpPrototype
    #: Dtypes of inputs, then outputs, for each kernel.
    combinations: tuple[tuple[DataType, ...], ...]
    #: Storage formats of the same parameters: formats of blocks, ND for all others.
    formats: tuple[tuple[int, ...], ...]
    infers_shapes: bool
    #: Stem of the kernel's source, if the definition names it.
    kernel_file: str
    #: Compute units that AddConfig names.
    compute_units: frozenset[str] = frozenset()
    #: Name of the kernel function, if the definition names it.
    interface: str = ""
    #: Positions of the inputs whose values its host functions read.
    data_inputs: tuple[int, ...] = ()
    #: Instances of a kernel template: tiling key and template arguments, dtypes as numbers.
    instances: tuple[tuple[int, tuple[int, ...]], ...] = ()
    #: For each template parameter: true if it is declared as a dtype.
    template_dtypes: tuple[bool, ...] = ()
    #: For each template parameter: position of the operator's parameter whose dtype it is.
    template_bounds: tuple[int | None, ...] = ()

    @property
    def name(self) -> str:
        """The operator's name in file names."""
        return snake_case(self.prototype.op_type)

    @property
    def kernel(self) -> str:
        """The name of the kernel function."""
        return self.interface or self.name

    @property
    def source_stem(self) -> str:
        """The stem that the kernel's source is expected to have."""
        return self.kernel_file or self.name

    @property
    def launch_parameters(self) -> int:
        """The number of kernel parameters: inputs, outputs, workspace and tiling."""
        return len(self.prototype.inputs) + len(self.prototype.outputs) + 2


@dataclass(frozen=True, slots=True)
class Description:
    """Operators and tiling structures that a project's sources define."""

    operators: tuple[ProjectOperator, ...]
    tilings: tuple[TilingStructure, ...]


@dataclass(frozen=True, slots=True)
class KernelSource:
    """Source of an operator's kernel, and the compiler's options for it."""

    path: Path
    #: Text of the source without comments.
    code: str
    is_template: bool
    include_directories: tuple[Path, ...]
    flags: tuple[str, ...]
    #: Repository files that the source includes, directly or not.
    included: tuple[Path, ...] = ()
    #: Kernel directories by operator, to be installed side by side.
    siblings: tuple[tuple[str, Path], ...] = ()


@dataclass(frozen=True, slots=True)
class HandWrittenFunctions:
    """Aclnn functions that a project's authors wrote, and the compiler's options for them."""

    project: Path
    sources: tuple[Path, ...]
    #: Names of the second halves: ``aclnnAdd``.
    functions: frozenset[str]
    #: Operators whose generated functions these call, in snake case.
    inner: frozenset[str] = frozenset()
    #: Prototypes of those among them that other projects define.
    foreign: tuple[OpPrototype, ...] = ()
    #: Sources of other projects that define called functions.
    borrowed: tuple[Path, ...] = ()
    includes: IncludedFiles = IncludedFiles()
    flags: tuple[str, ...] = ()

    @property
    def directories(self) -> tuple[Path, ...]:
        """The directories of the sources."""
        return tuple(dict.fromkeys(path.parent for path in self.sources))


@dataclass(frozen=True, slots=True)
class OperatorProject:
    """Operator project as discovered: its files, and the compiler's options for them."""

    directory: Path
    #: Root of the repository around the project.
    root: Path
    options: BuildOptions
    host_sources: tuple[Path, ...]
    kernel_sources: tuple[Path, ...] = ()
    headers: tuple[Path, ...] = ()
    #: Includes of the host sources.
    includes: IncludedFiles = IncludedFiles()
    #: Compiler options for macros that the host sources need.
    host_definitions: tuple[str, ...] = ()
    #: Compiler options for headers that the host toolkit lacks.
    late_includes: tuple[str, ...] = ()
    #: Headers that select template instances and that no host source includes.
    instance_headers: tuple[Path, ...] = ()
    #: Kernel directories of other operators, by their names: host sources and these headers include them side by side.
    siblings: tuple[tuple[str, Path], ...] = ()
    listed: ListedFiles | None = None
    #: Kernel sources by op type.
    kernels: Mapping[str, KernelSource] = field(default_factory=dict)
    handwritten: HandWrittenFunctions | None = None

    def is_other_architecture(self, path: Path) -> bool:
        """Return whether a file of the repository is for another architecture."""
        return is_other_architecture(path, self.root, self.options.architecture)


def is_other_architecture(path: Path, root: Path, target: Architecture) -> bool:
    """Return whether a file under a root lies in the directory of another architecture."""
    path = Path(os.path.normpath(path))
    return path.is_relative_to(root) and any(
        ARCHITECTURE_DIRECTORY.fullmatch(part) and part not in target.directories
        for part in path.relative_to(root).parts[:-1]
    )


def is_for_others(compute_units: Collection[str], target: Architecture) -> bool:
    """Return whether a definition for these compute units cannot have a kernel for the architecture.

    Unknown compute units may share the kernels of the known ones.
    """
    if not compute_units or not target.configs.isdisjoint(compute_units):
        return False
    return not _OWN_KERNELS.isdisjoint(target.configs) or _OWN_KERNELS.issuperset(compute_units)


def other_devices(compute_units: Collection[str], options: BuildOptions) -> str:
    """Return the message for a definition that names only other compute units."""
    return f"AddConfig names {', '.join(sorted(compute_units))} alone; {built_for(options)}"


def built_for(options: BuildOptions) -> str:
    """Return a text that names the target architecture and the options for the others."""
    others = ", ".join(f"--npu-arch {one.name}" for one in ARCHITECTURES if one is not options.architecture)
    return f"the host stands for {options.architecture} here; for others there is {others}"
