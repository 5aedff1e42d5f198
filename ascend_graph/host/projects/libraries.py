"""Shared libraries of an operator project: how they are compiled, whether they load, which functions they lack."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

from ascend_graph.compilation import CppLibrary, lasting_copies
from ascend_graph.environment import toolkit_directory
from ascend_graph.errors import AscendGraphError
from ascend_graph.host.packages.build import TRANSLATOR, kernel_compiler
from ascend_graph.host.projects.model import HandWrittenFunctions, KernelSource, OperatorProject

#: Seconds that compiling one library may take.
COMPILE_LIMIT = 600.0
#: Directory of the generated headers in a package.
GENERATED_HEADERS = Path("op_api/include")
#: Directory of the generated sources in a package.
GENERATED_SOURCES = Path("op_impl/host/src")
#: Links to kernel directories of the repository, side by side while a package is built.
SIDE_BY_SIDE = GENERATED_SOURCES / "ascendc"
#: Library that functions look for in CANN's directory of operators, and next to their own library.
_OPENED_LIBRARY = "libophost_comm_legacy.so"
_LOAD_LIMIT = 60.0
#: Symbol of a class's virtual functions, as c++filt writes it; it is where the first of them is defined.
_TABLE = "vtable for "
#: Compiler options of code whose symbols must not be shared: packages are loaded into one process.
_SEPARATE = ("-fvisibility=hidden", "-fno-gnu-unique", "-w")

T = TypeVar("T")


class LeftOutError(AscendGraphError):
    """Library of hand-written functions that does not load, because a function that it calls is undefined."""


def host_include_directories() -> tuple[Path, ...]:
    """Return the toolkit's include directories for sources of op_host and op_api."""
    host, include = toolkit_directory() / "include/op_host", toolkit_directory() / "include"
    return host, include, host / "op_common", host / "op_common/op_host", host / "exe_graph"


def kernel_include_directories() -> tuple[Path, ...]:
    """Return the toolkit's include directories for kernels."""
    include = toolkit_directory() / "include"
    return include, include / "op_common"


def install_side_by_side(name: str, siblings: Iterable[tuple[str, Path]], work: Path) -> tuple[Path, ...]:
    """Link the kernel directories that sources include side by side, as CANN's build installs them.

    Args:
        name: the directory that the includes start from.
        siblings: the other directories, by their names.
        work: the package that is made.

    Returns:
        The include directories from which ``../<operator>/…`` and ``../../<operator>/…`` are found.
    """
    linked = dict(siblings)
    if not linked:
        return ()
    tree = work / SIDE_BY_SIDE
    own = tree / name
    (own / "inner").mkdir(parents=True, exist_ok=True)
    for sibling, directory in linked.items():
        link = tree / sibling
        if not link.exists():
            link.symlink_to(directory)
    return own, own / "inner"


def host_library(
    project: OperatorProject,
    name: str,
    source: Path,
    work: Path,
    *,
    needed: Path | None = None,
    more: Sequence[Path] = (),
) -> CppLibrary:
    """Return the library of a project's host sources and one generated source.

    Args:
        project: the project with its files.
        name: the library's name.
        source: the generated source, or that of the toolkit.
        work: the package that is made.
        needed: a library of the package that this one links.
        more: more sources.
    """
    toolkit, listed = toolkit_directory(), project.listed
    # It comes before CANN's library, which may have a function of the same name: the loader takes the first.
    linked: tuple[str, ...] = ()
    if needed is not None:
        linked = ("-Wl,--push-state,--no-as-needed", f"-L{needed.parent}", f"-l:{needed.name}", "-Wl,--pop-state")
    own: tuple[Path, ...] = ()
    if listed is None:
        own = (*(path.parent for path in (*project.host_sources, *project.headers)), project.directory)
    headers = sorted((work / GENERATED_HEADERS).glob("*.h"))
    temporary = tuple(path for path in (source, *more) if path.is_relative_to(work))
    generated = lasting_copies((*headers, *temporary))
    return CppLibrary(
        name=name,
        sources=(
            *(generated / path.name if path in temporary else path for path in (source, *more)),
            *project.host_sources,
        ),
        headers=(*(generated / path.name for path in headers), *project.headers, *_toolkit_headers()),
        include_directories=(
            generated,
            *dict.fromkeys((*own, *project.includes.directories)),
            *install_side_by_side("op_host", project.siblings, work),
            *host_include_directories(),
            # For projects without their repository, which has these files itself.
            toolkit / "include/op_host/fallback",
        ),
        library_directories=(toolkit / "lib64",),
        libraries=("opapi", "ascendcl", "ascendc_runtime", "dl"),
        flags=(
            *_SEPARATE,
            f"-DASCEND_GRAPH_NPU_ARCH={project.options.architecture.number}",
            *project.host_definitions,
            *(listed.host_options if listed is not None else ()),
            *project.late_includes,
        ),
        link_first=linked,
        link_options=("-Wl,-rpath,$ORIGIN",) if needed is not None else (),
        stable_directories=(toolkit,),
    )


def kernel_library(
    project: OperatorProject, kernel: KernelSource, name: str, source: Path, installed: Sequence[Path]
) -> CppLibrary:
    """Return the library of one kernel for one combination of dtypes.

    Args:
        project: the project with its files.
        kernel: the kernel's source and options.
        name: the library's name.
        source: the generated source, which includes that of the kernel.
        installed: include directories of the kernels that are installed side by side.
    """
    return CppLibrary(
        name=name,
        sources=(source,),
        headers=(*project.kernel_sources, *project.headers, *_toolkit_headers(), *TRANSLATOR),
        include_directories=(*kernel.include_directories, *installed, *kernel_include_directories()),
        library_directories=(toolkit_directory() / "lib64",),
        libraries=("ascendcl", "ascendc_runtime"),
        # A kernel's classes have the same names for every combination of dtypes.
        flags=(
            *_SEPARATE,
            "--cce-aicore-only",
            f"--npu-arch={project.options.architecture.name}",
            *project.options.definition_flags,
            *kernel.flags,
        ),
        kernel_compiler=kernel_compiler(),
    )


def handwritten_library(written: HandWrittenFunctions, generated: Path) -> CppLibrary:
    """Return the library of hand-written aclnn functions and of the repository's sources that they call.

    Args:
        written: the functions' sources and options.
        generated: the directory with the headers of the generated functions.
    """
    common = toolkit_directory() / "include/op_host/ascend_graph/op_api/op_api.cpp"
    digest = hashlib.sha256(str(written.project).encode()).hexdigest()[:8]
    copies = lasting_copies(generated.glob("*.h"))
    return CppLibrary(
        name=f"libcust_aclnn_{written.project.name}_{digest}",
        sources=(common, *written.sources, *written.borrowed, *written.includes.helpers),
        headers=tuple(sorted(copies.glob("*.h"))),
        include_directories=(
            *written.directories,
            written.project,
            *written.includes.directories,
            copies,
            *host_include_directories(),
        ),
        library_directories=(toolkit_directory() / "lib64",),
        libraries=("opapi", "ascendcl"),
        flags=("-fno-gnu-unique", "-w", *written.flags),
        # Other packages have functions of the same names, each its own.
        link_options=("-Wl,-Bsymbolic",),
        stable_directories=(toolkit_directory(),),
    )


def install_opened(directory: Path) -> None:
    """Put the libraries of CANN that a package's functions open next to themselves into their directory."""
    opened = toolkit_directory() / "lib64" / _OPENED_LIBRARY
    if any(_OPENED_LIBRARY.encode() in path.read_bytes() for path in directory.glob("*.so")):
        shutil.copyfile(opened, directory / opened.name)


def check_loads(library: Path) -> None:
    """Load a library in a separate process.

    Raises:
        LeftOutError: it does not load; the message names the undefined symbol.
    """
    load = "import ctypes, os, sys; ctypes.CDLL(sys.argv[1], os.RTLD_NOW)"
    done = subprocess.run([sys.executable, "-c", load, str(library)], capture_output=True, text=True, check=False,
                          timeout=_LOAD_LIMIT)  # fmt: skip
    if done.returncode != 0:
        said = done.stderr.strip().splitlines()[-1:] or [f"ended with status {done.returncode}"]
        symbol = re.search(r"undefined symbol: (\S+)", said[0])
        if symbol is None:
            raise LeftOutError(said[0])
        readable = subprocess.run(["c++filt", symbol[1]], capture_output=True, text=True, check=False).stdout.strip()
        raise LeftOutError(f"undefined symbol: {readable or symbol[1]}")


def undefined_functions(library: Path) -> tuple[str, ...]:
    """Return the functions that a library calls and no library defines, with their namespaces and classes.

    A name that ends with ``::`` is a class whose virtual functions nothing defines. The result is empty without the programs
    ldd and c++filt. Loading the library then names one of them.
    """
    if shutil.which("ldd") is None or shutil.which("c++filt") is None:
        return ()
    found = subprocess.run(
        ["ldd", "-r", str(library)], capture_output=True, text=True, check=False, timeout=_LOAD_LIMIT
    )
    symbols = re.findall(r"undefined symbol: (\S+)", found.stdout + found.stderr)
    if not symbols:
        return ()
    readable = subprocess.run(["c++filt", *symbols], capture_output=True, text=True, check=False).stdout
    lines = readable.splitlines()
    names = [line.partition("(")[0].strip() for line in lines if "(" in line]
    functions = [name for name in names if name.rpartition("::")[2].isidentifier()]
    classes = [f"{line.removeprefix(_TABLE)}::" for line in lines if line.startswith(_TABLE)]
    return tuple(dict.fromkeys((*functions, *classes)))


def complete_sources(start: T, extend: Callable[[tuple[Path, ...]], T], lacking: Callable[[T], tuple[Path, ...]]) -> T:
    """Return sources that lack no other: compile, add what is lacking, and start again.

    The set of sources depends on compiling, because the linker alone knows the undefined functions. This is the one loop
    for it, of host sources as of aclnn functions.

    Args:
        start: the first set of sources.
        extend: called with all added files; returns the first set extended by them.
        lacking: compiles a set and returns the files that it lacks.
    """
    added: tuple[Path, ...] = ()
    current = start
    while others := lacking(current):
        added = (*added, *others)
        current = extend(added)
    return current


def _toolkit_headers() -> tuple[Path, ...]:
    return tuple(sorted(path for path in (toolkit_directory() / "include").rglob("*") if path.is_file()))
