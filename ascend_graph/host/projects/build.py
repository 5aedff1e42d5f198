"""Build of an operator package for the host runtime, from the sources that build one for a device.

A project is laid out as msOpGen makes it: ``op_host`` with the definitions (classes derived from ``OpDef``), tiling
functions and shape functions, ``op_kernel`` with the Ascend C kernels. The package's aclnn functions run the author's
tiling function on the call's real shapes, dtypes and attrs, and launch the author's kernel with its result.

The steps are CANN's. The project is discovered; the sources of op_host are compiled and asked for their definitions; from
these come the prototypes and the aclnn functions; each kernel is compiled once for every combination of dtypes, with the
macros ``DTYPE_<PARAMETER>``.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ascend_graph.codegen.operator_package import generate_project_package
from ascend_graph.compilation import BuildError, jobs
from ascend_graph.host.packages.build import check_relation, install_library, staged_package, write_package_files
from ascend_graph.host.packages.format import LIBRARY, OperatorPackageError
from ascend_graph.host.projects.describe import describe
from ascend_graph.host.projects.discover import complete, discover, locate_kernels
from ascend_graph.host.projects.handwritten import (
    complete_handwritten,
    generate_functions,
    install_headers,
    leave_out,
)
from ascend_graph.host.projects.kernels import kernel_libraries, take_later_keys
from ascend_graph.host.projects.libraries import (
    COMPILE_LIMIT,
    GENERATED_HEADERS,
    SIDE_BY_SIDE,
    LeftOutError,
    check_loads,
    handwritten_library,
    host_library,
    install_opened,
)
from ascend_graph.host.projects.model import (
    NO_OPTIONS,
    BuildOptions,
    Description,
    HandWrittenFunctions,
    ListedFiles,
    OperatorProject,
)
from ascend_graph.host.projects.repository import Repository
from ascend_graph.host.projects.source_text import code_of
from ascend_graph.prototypes import OpPrototype, PassedAs
from ascend_graph.shapes import Relation, parse_relation
from ascend_graph.shapes.declared_dtypes import complete_relation
from ascend_graph.sources.compared import compared_texts


def build_project_package(
    directory: str | Path,
    project: str | Path,
    *,
    relations: Mapping[str, str] | None = None,
    options: BuildOptions = NO_OPTIONS,
    listed: ListedFiles | None = None,
) -> Path:
    """Build an operator package from an operator project.

    Args:
        directory: the package's directory; an existing package there is replaced as a whole.
        project: the directory with ``op_host`` and ``op_kernel``, or with the sources themselves.
        relations: by op type: a shape relation, which the graph engine uses in place of the author's InferShape.
        options: include directories, macros and headers of CANN besides those of the repository around the project.
        listed: the files that the project's own build files list; otherwise its directories are searched.

    Returns:
        The package's directory, for ``ASCEND_CUSTOM_OPP_PATH``.

    Raises:
        OperatorPackageError: the project defines no operator or one that cannot be built, or has no kernel for it.
        BuildError: a source does not compile, or not in ten minutes.
        GenerationError: an operator has an attr that aclnn functions do not take.
        RelationError: a relation is malformed.
    """
    target = Path(directory).resolve()
    repository = Repository.around(Path(project).resolve(), options)
    found = discover(repository, listed)
    parsed = {name: parse_relation(text) for name, text in (relations or {}).items()}
    with staged_package(target) as work:
        found = complete(found, repository, work)
        description = describe(found, work)
        parsed = _completed(parsed, description, found.directory)
        found = locate_kernels(found, description.operators, repository)
        prototypes = [operator.prototype for operator in description.operators]
        found = complete_handwritten(found, prototypes, repository, work)
        build(found, description, parsed, work)
    return target


def build(project: OperatorProject, description: Description, relations: Mapping[str, Relation], work: Path) -> None:
    """Build the package of a project whose files are all known.

    Args:
        project: the project with its kernels and hand-written functions.
        description: its operators and tiling structures.
        relations: shape relations by op type.
        work: the package that is made.

    Raises:
        OperatorPackageError: a kernel names no tiling key.
        BuildError: a source does not compile.
        GenerationError: an operator has an attr that aclnn functions do not take.
    """
    operators = description.operators
    prototypes = [operator.prototype for operator in operators]
    directory = work / "op_impl/host/kernels"
    declared = [library for o in operators for library in kernel_libraries(project, o, description.tilings, work)]
    kernels = tuple(declared)
    if not project.options.all_keys:
        kernels = take_later_keys(declared, work, directory, on_launch=project.options.on_launch)
    _install_functions(project, prototypes, work)
    install_opened((work / LIBRARY).parent)
    with ThreadPoolExecutor(jobs()) as pool:
        built = list(pool.map(lambda one: one.build(time_limit=COMPILE_LIMIT), kernels))
    for kernel, library in zip(kernels, built, strict=True):
        install_library(library, directory / f"{kernel.name}.so")
    if len(kernels) == len(declared):
        shutil.rmtree(work / SIDE_BY_SIDE, ignore_errors=True)
    metadata = {
        (name := operator.prototype.op_type): {
            "relation": relations[name].source if name in relations else None,
            "python": None,
            "infer_shape": operator.infers_shapes,
            "data_inputs": list(operator.data_inputs),
            "value_inputs": [n for n, p in enumerate(operator.prototype.inputs) if p.passed_as is PassedAs.VALUES],
            "compared": _compared(project, name),
        }
        for operator in operators
    }
    write_package_files(work, prototypes, metadata)


def _completed(relations: Mapping[str, Relation], description: Description, project: Path) -> dict[str, Relation]:
    """Return the relations with the dtypes that the definitions declare; raise for those of other operators."""
    completed: dict[str, Relation] = {}
    by_name = {operator.prototype.op_type: operator for operator in description.operators}
    for name, relation in relations.items():
        if name not in by_name:
            raise OperatorPackageError(
                f"relation for {name!r}: {project} defines no such operator; it defines {', '.join(by_name)}"
            )
        check_relation(by_name[name].prototype, relation)
        completed[name] = complete_relation(by_name[name].prototype, relation)
    return completed


def _compared(project: OperatorProject, op_type: str) -> tuple[str, ...]:
    """Return the strings that an operator's host sources compare with: mostly values of attrs."""
    codes = (code for path in project.host_sources if op_type in (code := code_of(path)))
    return compared_texts("\n".join(codes))


def _install_functions(project: OperatorProject, prototypes: Sequence[OpPrototype], work: Path) -> None:
    """Build the aclnn functions of a package: the generated ones, and the hand-written ones if they load."""
    if project.handwritten is not None:
        try:
            _install_handwritten(project, project.handwritten, prototypes, work)
            return
        except (BuildError, LeftOutError) as error:
            project = leave_out(project, error)
    # Files of functions that were left out.
    for path in (work / "op_api").glob("*/*"):
        path.unlink()
    functions = host_library(project, "libcust_opapi", generate_project_package(prototypes, work), work)
    install_library(functions.build(time_limit=COMPILE_LIMIT), work / LIBRARY)


def _install_handwritten(
    project: OperatorProject, written: HandWrittenFunctions, prototypes: Sequence[OpPrototype], work: Path
) -> None:
    """Build the generated functions with a library of hand-written ones next to them.

    Raises:
        BuildError: a source does not compile.
        LeftOutError: the library does not load.
    """
    source = generate_functions(written, prototypes, work)
    library = handwritten_library(written, work / GENERATED_HEADERS).build(time_limit=COMPILE_LIMIT)
    functions = host_library(project, "libcust_opapi", source, work, needed=library)
    install_library(functions.build(time_limit=COMPILE_LIMIT), work / LIBRARY)
    install_library(library, work / LIBRARY.with_name(library.name))
    check_loads(work / LIBRARY)
    install_headers(written, work / GENERATED_HEADERS)
