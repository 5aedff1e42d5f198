"""What the build files of an operator project list, as the host toolkit's CMake functions collect it.

``npu_op_package`` and the functions of msOpGen's templates write a *manifest*, a line for each fact, and run this module
twice, as CANN's run its ``opbuild`` and its compilers: while CMake configures, for the files that are generated from the
definitions, and while it builds, for the package. What a project lists reaches
:func:`~ascend_graph.host.project.build_project_package`, as the sources of ``ascend-graph build`` do.

A line is a key and its values between tabs. An empty value is one that was not given:

=================  ==================================================================================================
``project``        the directory with the top ``CMakeLists.txt``
``units``          the chips that it is built for, with commas
``source``         a source of op_host
``include``        a directory of its headers
``definition``     ``NAME`` or ``NAME=VALUE``
``option``         an option of its compiler
``op_api``         a source of hand-written aclnn functions
``kernels``        a directory of kernels
``kernel``         op type or ``ALL``, chips with commas, directory, file: where the source of a kernel is
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
from ascend_graph.errors import AscendGraphError
from ascend_graph.host.architecture import ARCHITECTURES, Architecture
from ascend_graph.host.package import OperatorPackageError
from ascend_graph.host.project import Listed, build_project_package, is_for_others, project_sources
from ascend_graph.host.repository import Given
from ascend_graph.host.toolkit import processor, toolkit_directory
from ascend_graph.prototypes.writer import to_reg_op

_ALL = "ALL"
_EVERY_OPERATOR = ("ALL", "All", "all")
#: Options of the compiler for op_host that change what a source says; all others are how a device's libraries are made.
_SAYS_SOMETHING = re.compile(r"-[DUI].+|-(?:isystem|iquote|idirafter|include).*|-f(?!PIC|pic|visibility|stack|lto).+")
#: Which of the template's libraries a source is compiled for: on the host one library has it all.
_PARTS = frozenset({"OP_PROTO_LIB", "OP_TILING_LIB", "LOG_CPP", "ACLNN_WITH_BINARY"})
#: Definitions of how a device's libraries are made.
_LIBRARIES_FORM = ("_GLIBCXX_USE_CXX11_ABI", "_FORTIFY_SOURCE")
#: Options of CANN's build of kernels, which no compiler has, and what becomes of them here.
_FRAMEWORK_OPTIONS = {
    "--tiling_key": "all tiling keys are compiled",
    "--kernel-template-input": "all instances are compiled",
    "--op_relocatable_kernel_binary": "there are no device binaries",
    "--save-temp-files": "intermediate files are not kept",
}


class ManifestError(AscendGraphError):
    """A manifest has a line that is none: another version of the toolkit's CMake files wrote it."""


def read_manifest(path: Path, built_for: Architecture) -> tuple[Path, Listed]:
    """The project of a manifest, and what is listed for an architecture.

    Raises:
        ManifestError: a line is none of a manifest.
        OperatorPackageError: the project is built for other chips alone.
    """
    lines = list(_lines(path))
    facts: dict[str, list[tuple[str, ...]]] = {}
    for key, *values in lines:
        facts.setdefault(key, []).append(tuple(values))
    project = Path(facts["project"][0][0])
    units = tuple(filter(None, facts.get("units", [("",)])[0][0].split(",")))
    if is_for_others(units, built_for):
        others = ", ".join(f"--npu-arch {one.name}" for one in ARCHITECTURES if one is not built_for)
        raise OperatorPackageError(
            f"{project}: ASCEND_COMPUTE_UNIT is {', '.join(units)}; the host stands for {built_for} here: add "
            f"{min(built_for.configs)}, or start the build with {others}"
        )
    # Of chips that the host does not know the first stands for all: what is there for it is taken.
    chosen = built_for.configs.intersection(units) or frozenset(units[:1])

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
    return project, Listed(
        host=_paths(facts.get("source", ())),
        include_directories=tuple(
            p for p in _paths(facts.get("include", ())) if not p.is_relative_to(toolkit_directory())
        ),
        host_options=tuple(_host_options(facts)),
        op_api=_paths(facts.get("op_api", ())),
        kernel_directories=tuple(dict.fromkeys(directories)),
        kernel_files=files,
        kernel_options={one: _kernel_options(given) for one, given in options.items() if one != _ALL},
        common_kernel_options=_kernel_options(options.get(_ALL, ())),
        units=units,
    )


def describe(manifest: Path, target: Path) -> tuple[str, ...]:
    """Write what CANN's opbuild makes of the definitions: ``aclnn_<op>.h`` and ``.cpp``, ``op_proto.h`` and ``.cc``.

    The functions themselves are in the package's library, so the sources are empty; build files list them.

    Returns:
        The operators.

    Raises:
        BuildError: a source does not compile.
        OperatorPackageError: nothing is defined, or something that cannot be built.
        GenerationError: an operator has an attr that aclnn functions do not take.
    """
    project, given, listed = _read(manifest)
    with tempfile.TemporaryDirectory(prefix="ascend-graph-") as scratch:
        work = Path(scratch)
        sources = project_sources(project, given, listed)
        prototypes = [one.prototype for one in sources.describe(work).operators]
        generate_project_package(prototypes, work)
        target.mkdir(parents=True, exist_ok=True)
        for header in sorted((work / "op_api/include").glob("*.h")):
            write_if_different(target / header.name, header.read_text())
            write_if_different(target / f"{header.stem}.cpp", _ELSEWHERE)
        write_if_different(target / "op_proto.h", "\n".join(map(to_reg_op, prototypes)))
        write_if_different(target / "op_proto.cc", _ELSEWHERE)
    return tuple(one.op_type for one in prototypes)


_ELSEWHERE = "// What a device's build has here is in the package's libcust_opapi.so, which the host's build makes.\n"


def build(manifest: Path, target: Path) -> Path:
    """Build the package of a manifest; see :func:`~ascend_graph.host.project.build_project_package`."""
    project, given, listed = _read(manifest)
    return build_project_package(target, project, given=given, listed=listed)


def _read(manifest: Path) -> tuple[Path, Given, Listed]:
    name = processor(os.environ)
    # Of other processors, as by ascend-graph build, the first.
    built_for = next((one for one in ARCHITECTURES if name.startswith(one.chips)), ARCHITECTURES[0])
    project, listed = read_manifest(manifest, built_for)
    return project, Given(architecture=built_for), listed


_COUNTS = {"project": 1, "units": 1, "source": 1, "include": 1, "definition": 1, "option": 1, "op_api": 1, "kernels": 1,
           "kernel": 4, "kernel_option": 3}  # fmt: skip


def _lines(path: Path) -> Iterator[list[str]]:
    for line in path.read_text().splitlines():
        if line:
            fields = line.split("\t")
            if _COUNTS.get(fields[0]) != len(fields) - 1:
                raise ManifestError(f"{path}: {line!r} is no line of a manifest; run CMake again in an empty directory")
            yield fields


def _paths(lines: Iterable[tuple[str, ...]]) -> tuple[Path, ...]:
    return tuple(dict.fromkeys(Path(os.path.normpath(one)) for (one,) in lines if one))


def _chip(name: str) -> str:
    """A chip as AddConfig calls it, where an option names it as npu-smi does: Ascend910B2 is ascend910b."""
    lower = name.lower()
    series = [config for one in ARCHITECTURES for config in one.configs if lower.startswith(config)]
    return max(series, key=len, default=lower)


def _host_options(facts: Mapping[str, Sequence[tuple[str, ...]]]) -> Iterator[str]:
    for (definition,) in dict.fromkeys(facts.get("definition", ())):
        name = definition.removeprefix("-D").partition("=")[0]
        if name and name not in _PARTS and name not in _LIBRARIES_FORM:
            yield f"-D{definition.removeprefix('-D')}"
    for (option,) in dict.fromkeys(facts.get("option", ())):
        name = option.removeprefix("-D").partition("=")[0]
        if _SAYS_SOMETHING.fullmatch(option) and name not in _LIBRARIES_FORM and name not in _PARTS:
            yield option


def _kernel_options(given: Iterable[str]) -> tuple[str, ...]:
    kept = []
    for option in given:
        for name, instead in _FRAMEWORK_OPTIONS.items():
            if option.partition("=")[0] == name:
                print(f"ascend_graph: {option}: on the host {instead}", file=sys.stderr, flush=True)
                break
        else:
            kept.append(option)
    return tuple(kept)


def main(arguments: Sequence[str]) -> int:
    """``describe MANIFEST DIRECTORY``, or ``build MANIFEST DIRECTORY``; an error is one on stderr, and the status 1."""
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
