"""Manifests: the files and options that a project's own build files list, which CMake functions collect.

``npu_op_package`` and the functions of msOpGen's templates write a *manifest*, a line for each fact, and run this module
twice, as CANN's run its ``opbuild`` and its compilers: while CMake configures, for the files that are generated from the
definitions, and while it builds, for the package. Listed files go to
:func:`~ascend_graph.host.projects.build.build_project_package`, as the sources of ``ascend-graph build`` do.

A line is a key and its values, separated by tabs. An empty value is an absent one:

=================  ==================================================================================================
``project``        the directory with the top ``CMakeLists.txt``
``units``          the target compute units, with commas
``source``         a source of op_host
``include``        a directory of its headers
``definition``     ``NAME`` or ``NAME=VALUE``
``option``         an option of its compiler
``op_api``         a source of hand-written aclnn functions
``kernels``        a directory of kernels
``kernel``         op type or ``ALL``, chips with commas, directory, file: the source of a kernel
``kernel_option``  op type or ``ALL``, chips with commas, an option of the kernel's compiler
=================  ==================================================================================================
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from ascend_graph.codegen.operator_package import generate_project_package
from ascend_graph.codegen.rendering import write_if_different
from ascend_graph.environment import processor, toolkit_directory
from ascend_graph.errors import AscendGraphError
from ascend_graph.host.architecture import ARCHITECTURES, Architecture
from ascend_graph.host.packages.format import OperatorPackageError
from ascend_graph.host.projects.build import build_project_package
from ascend_graph.host.projects.describe import describe as describe_project
from ascend_graph.host.projects.discover import discover
from ascend_graph.host.projects.model import BuildOptions, ListedFiles, is_for_others
from ascend_graph.host.projects.repository import Repository
from ascend_graph.prototypes.writer import to_reg_op

_ALL = "ALL"
_EVERY_OPERATOR = ("ALL", "All", "all")
#: Compiler options for op_host that change a source's meaning; all others only shape a device's libraries.
_MEANINGFUL = re.compile(r"-[DUI].+|-(?:isystem|iquote|idirafter|include).*|-f(?!PIC|pic|visibility|stack|lto).+")
#: Macros that name a library of the template; on the host one library has all sources.
_PARTS = frozenset({"OP_PROTO_LIB", "OP_TILING_LIB", "LOG_CPP", "ACLNN_WITH_BINARY"})
#: Macros that shape a device's libraries.
_LIBRARY_MACROS = ("_GLIBCXX_USE_CXX11_ABI", "_FORTIFY_SOURCE")
#: Options of CANN's build of kernels, unknown to compilers, and their meaning here.
_FRAMEWORK_OPTIONS = {
    "--tiling_key": "all tiling keys are compiled",
    "--kernel-template-input": "all instances are compiled",
    "--op_relocatable_kernel_binary": "no device binaries",
    "--save-temp-files": "intermediate files are not kept",
}


class ManifestError(AscendGraphError):
    """Malformed line of a manifest: another version of the toolkit's CMake files wrote it."""


def read_manifest(path: Path, target: Architecture) -> tuple[Path, ListedFiles]:
    """Return the project of a manifest, and the files that are listed for an architecture.

    Raises:
        ManifestError: a line is malformed.
        OperatorPackageError: the project is built only for other SoCs.
    """
    lines = list(_lines(path))
    facts: dict[str, list[tuple[str, ...]]] = {}
    for key, *values in lines:
        facts.setdefault(key, []).append(tuple(values))
    project = Path(facts["project"][0][0])
    units = tuple(filter(None, facts.get("units", [("",)])[0][0].split(",")))
    if is_for_others(units, target):
        others = ", ".join(f"--npu-arch {one.name}" for one in ARCHITECTURES if one is not target)
        raise OperatorPackageError(
            f"{project}: ASCEND_COMPUTE_UNIT is {', '.join(units)}; the host stands for {target} here: add "
            f"{min(target.configs)}, or start the build with {others}"
        )
    # Among unknown chips the first stands for all, with the files that are listed for it.
    chosen = target.configs.intersection(units) or frozenset(units[:1])

    def meant(chips: str) -> bool:
        named = {_chip(one) for one in chips.split(",") if one}
        return not named or not named.isdisjoint(chosen)

    roots = _paths(facts.get("kernels", ()))
    directories = list(roots)
    files: dict[str, Path] = {}
    for op_type, chips, directory, file in facts.get("kernel", ()):
        if not meant(chips):
            continue
        places = [root / directory for root in roots]
        if op_type == _ALL:
            directories = [*places, *directories]
        else:
            files[op_type] = next((one for place in places if (one := place / file).is_file()), places[0] / file)
    options: dict[str, tuple[str, ...]] = {}
    for op_type, chips, option in facts.get("kernel_option", ()):
        if meant(chips):
            key = _ALL if op_type in _EVERY_OPERATOR else op_type
            options[key] = (*options.get(key, ()), option)
    return project, ListedFiles(
        host_sources=_paths(facts.get("source", ())),
        include_directories=tuple(
            p for p in _paths(facts.get("include", ())) if not p.is_relative_to(toolkit_directory())
        ),
        host_options=tuple(_host_options(facts)),
        aclnn_sources=_paths(facts.get("op_api", ())),
        kernel_directories=tuple(dict.fromkeys(directories)),
        kernel_files=files,
        kernel_options={one: _kernel_options(texts) for one, texts in options.items() if one != _ALL},
        common_kernel_options=_kernel_options(options.get(_ALL, ())),
        compute_units=units,
    )


def describe(manifest: Path, target: Path) -> tuple[str, ...]:
    """Write the files that CANN's opbuild makes: ``aclnn_<op>.h`` and ``.cpp``, ``op_proto.h`` and ``.cc``.

    The functions are in the package's library. The sources are empty and exist because build files list them.

    Returns:
        The op types.

    Raises:
        BuildError: a source does not compile.
        OperatorPackageError: no operator is defined, or one that cannot be built.
        GenerationError: an operator has an attr that aclnn functions do not take.
    """
    project, options, listed = _read(manifest)
    with tempfile.TemporaryDirectory(prefix="ascend-graph-") as scratch:
        work = Path(scratch)
        found = discover(Repository.around(project, options), listed)
        prototypes = [one.prototype for one in describe_project(found, work).operators]
        generate_project_package(prototypes, work)
        target.mkdir(parents=True, exist_ok=True)
        for header in sorted((work / "op_api/include").glob("*.h")):
            write_if_different(target / header.name, header.read_text())
            write_if_different(target / f"{header.stem}.cpp", _EMPTY_SOURCE)
        write_if_different(target / "op_proto.h", "\n".join(map(to_reg_op, prototypes)))
        write_if_different(target / "op_proto.cc", _EMPTY_SOURCE)
    return tuple(one.op_type for one in prototypes)


_EMPTY_SOURCE = "// The code of a device's build is in the package's libcust_opapi.so, which the host's build makes.\n"


def build(manifest: Path, target: Path) -> Path:
    """Build the package of a manifest; see :func:`~ascend_graph.host.projects.build.build_project_package`."""
    project, options, listed = _read(manifest)
    return build_project_package(target, project, options=options, listed=listed)


def _read(manifest: Path) -> tuple[Path, BuildOptions, ListedFiles]:
    name = processor(os.environ)
    # Other SoCs get the first architecture, as with ascend-graph build.
    target = next((one for one in ARCHITECTURES if name.startswith(one.chips)), ARCHITECTURES[0])
    project, listed = read_manifest(manifest, target)
    return project, BuildOptions(architecture=target, all_keys=True), listed


_COUNTS = {"project": 1, "units": 1, "source": 1, "include": 1, "definition": 1, "option": 1, "op_api": 1, "kernels": 1,
           "kernel": 4, "kernel_option": 3}  # fmt: skip


def _lines(path: Path) -> Iterator[list[str]]:
    for line in path.read_text(encoding="utf-8").splitlines():
        if line:
            fields = line.split("\t")
            if _COUNTS.get(fields[0]) != len(fields) - 1:
                raise ManifestError(
                    f"{path}: {line!r} is not a line of a manifest; run CMake again in an empty directory"
                )
            yield fields


def _paths(lines: Iterable[tuple[str, ...]]) -> tuple[Path, ...]:
    return tuple(dict.fromkeys(Path(os.path.normpath(one)) for (one,) in lines if one))


def _chip(name: str) -> str:
    """Return AddConfig's name of a chip, for a name of npu-smi's: ascend910b for Ascend910B2."""
    lower = name.lower()
    series = [config for one in ARCHITECTURES for config in one.configs if lower.startswith(config)]
    return max(series, key=len, default=lower)


def _host_options(facts: Mapping[str, Sequence[tuple[str, ...]]]) -> Iterator[str]:
    for (definition,) in dict.fromkeys(facts.get("definition", ())):
        name = definition.removeprefix("-D").partition("=")[0]
        if name and name not in _PARTS and name not in _LIBRARY_MACROS:
            yield f"-D{definition.removeprefix('-D')}"
    for (option,) in dict.fromkeys(facts.get("option", ())):
        name = option.removeprefix("-D").partition("=")[0]
        if _MEANINGFUL.fullmatch(option) and name not in _LIBRARY_MACROS and name not in _PARTS:
            yield option


def _kernel_options(options: Iterable[str]) -> tuple[str, ...]:
    kept = []
    for option in options:
        for name, instead in _FRAMEWORK_OPTIONS.items():
            if option.partition("=")[0] == name:
                print(f"ascend_graph: {option}: on the host {instead}", file=sys.stderr, flush=True)
                break
        else:
            kept.append(option)
    return tuple(kept)


def main(arguments: Sequence[str]) -> int:
    """Run ``describe MANIFEST DIRECTORY`` or ``build MANIFEST DIRECTORY``; print an error on stderr and return 1."""
    try:
        what, manifest, target = arguments
        if what == "describe":
            print("\n".join(describe(Path(manifest), Path(target))))
        else:
            print(f"operator package: {build(Path(manifest), Path(target))}", flush=True)
    except AscendGraphError as error:
        print(f"ascend_graph: {error}", file=sys.stderr, flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
