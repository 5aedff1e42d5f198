"""Discovery of an operator project in the repository around it.

:func:`discover` finds a project's files by their texts. Two steps need a compiler or its result, and add to the project:
:func:`complete` the sources of other projects that define called functions, :func:`locate_kernels` the kernels of the
described operators. :func:`~ascend_graph.host.projects.handwritten.complete_handwritten` does the same for aclnn functions.
Afterwards nothing asks the repository.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from ascend_graph.host.packages.format import OperatorPackageError
from ascend_graph.host.projects.describe import compile_definitions, describe
from ascend_graph.host.projects.handwritten import find_handwritten
from ascend_graph.host.projects.includes import find_includes, host_header_options, late_includes
from ascend_graph.host.projects.kernels import check_parameters
from ascend_graph.host.projects.libraries import (
    complete_sources,
    host_include_directories,
    kernel_include_directories,
    undefined_functions,
)
from ascend_graph.host.projects.model import (
    IncludedFiles,
    KernelSource,
    ListedFiles,
    OperatorProject,
    ProjectOperator,
    built_for,
)
from ascend_graph.host.projects.repository import Repository
from ascend_graph.host.projects.source_text import (
    HEADER_SUFFIXES,
    KERNEL_SUFFIXES,
    SOURCE_SUFFIXES,
    code_of,
    defined_operators,
    is_aclnn_source,
    is_fallback,
    selects_instances,
)


def discover(repository: Repository, listed: ListedFiles | None = None, more: Sequence[Path] = ()) -> OperatorProject:
    """Return the operator project in the directory that a repository starts from.

    Args:
        repository: the files around the project, with the options of the build.
        listed: the files that the project's build files list; otherwise its directories are searched.
        more: more host sources.

    Raises:
        OperatorPackageError: the directory is not an operator project; the message says what one has.
    """
    return _discover_directories(repository, more) if listed is None else _discover_listed(repository, listed)


def complete(project: OperatorProject, repository: Repository, work: Path) -> OperatorProject:
    """Return a project with the sources of other projects that define what its sources call.

    Raises:
        BuildError: a source does not compile.
        OperatorPackageError: the project is for other devices.
    """

    def lacking(found: OperatorProject) -> tuple[Path, ...]:
        missing = undefined_functions(compile_definitions(found, work))
        others = repository.defining(missing, found.host_sources) if missing else ()
        return others or _registrations_of_macros(found, repository, work)

    # Build files list all sources.
    if project.listed is not None:
        return project
    return complete_sources(project, lambda more: discover(repository, more=more), lacking)


def locate_kernels(
    project: OperatorProject, operators: Iterable[ProjectOperator], repository: Repository
) -> OperatorProject:
    """Return a project with the kernel sources of its operators, and the compiler's options for them.

    Raises:
        OperatorPackageError: no source, or more than one, defines a kernel, or a kernel takes other parameters.
    """
    return replace(project, kernels={o.prototype.op_type: _locate_kernel(project, o, repository) for o in operators})


def _discover_listed(repository: Repository, listed: ListedFiles) -> OperatorProject:
    """Return the project that build files list, without searching; the compiler reports the headers that it read."""
    if not listed.host_sources:
        raise OperatorPackageError(
            f"{repository.start}: its build files list no source of op_host; expected at least one"
        )
    host = tuple(path for path in listed.host_sources if not is_aclnn_source(code_of(path)))
    mixed = (path for path in listed.host_sources if path not in host)
    includes = IncludedFiles(listed.include_directories)
    return OperatorProject(
        repository.start,
        repository.root,
        repository.options,
        host,
        includes=includes,
        host_definitions=repository.options.definition_flags,
        late_includes=host_header_options(repository, includes, host_include_directories()),
        listed=listed,
        handwritten=find_handwritten(repository, (*listed.aclnn_sources, *mixed)),
    )


def _discover_directories(repository: Repository, more: Sequence[Path]) -> OperatorProject:
    """Return the project of op_host and op_kernel, or of a directory that has the sources itself."""
    directory = repository.start
    if not directory.is_dir():
        raise OperatorPackageError(
            f"{directory} is not a directory; give that of a project, with op_host and op_kernel"
        )
    has_both = (directory / "op_host").is_dir() and (directory / "op_kernel").is_dir()
    host, kernel, headers = _files_of_template(repository) if has_both else _files_of_directory(directory)
    _check_files(repository, host, kernel)
    defined = {name for path in host for name in defined_operators(code_of(path))}
    host = tuple(dict.fromkeys((*host, *repository.registrations(defined, host), *more)))
    own = (*dict.fromkeys(path.parent for path in (*host, *headers)), directory)
    includes = find_includes(repository, host, own, host_include_directories())
    host = (*host, *includes.helpers)
    instances, siblings = _instance_headers(repository, kernel, includes)
    return OperatorProject(
        directory,
        repository.root,
        repository.options,
        host,
        kernel,
        headers,
        includes,
        host_definitions=repository.definitions(dict.fromkeys((*host, *includes.files, *instances))),
        late_includes=host_header_options(repository, includes, host_include_directories()),
        instance_headers=instances,
        siblings=(*includes.siblings, *siblings),
        handwritten=find_handwritten(repository),
    )


def _files_of_template(repository: Repository) -> tuple[tuple[Path, ...], tuple[Path, ...], tuple[Path, ...]]:
    """Return the host sources, kernel sources and headers of a project that is laid out as msOpGen makes it."""
    host_directory, kernel_directory = repository.start / "op_host", repository.start / "op_kernel"
    host_files = [
        path
        for path in host_directory.rglob("*")
        if not repository.is_other_architecture(path) and not _is_aside(path.relative_to(host_directory))
    ]
    kernel_files = [path for path in kernel_directory.rglob("*") if not repository.is_other_architecture(path)]
    host = tuple(
        path
        for path in _files(host_files, SOURCE_SUFFIXES)
        if not is_fallback(code_of(path)) and not is_aclnn_source(code_of(path))
    )
    return host, _files(kernel_files, KERNEL_SUFFIXES), _files([*host_files, *kernel_files], HEADER_SUFFIXES)


def _files_of_directory(directory: Path) -> tuple[tuple[Path, ...], tuple[Path, ...], tuple[Path, ...]]:
    """Return the host sources, kernel sources and headers of a directory, told apart by their texts."""
    code = {path: code_of(path) for path in _files(directory.iterdir(), KERNEL_SUFFIXES)}
    kernel = tuple(path for path, text in code.items() if "__global__" in text)
    host = tuple(path for path, text in code.items() if path not in kernel and "register/" in text)
    return host, kernel, _files(directory.iterdir(), HEADER_SUFFIXES)


def _check_files(repository: Repository, host: Sequence[Path], kernel: Sequence[Path]) -> None:
    """Reject a project without host or kernel sources, with the likely reason."""
    if host and kernel:
        return
    project = repository.start
    name, content = ("op_host", "definitions") if not host else ("op_kernel", "kernels")
    if others := repository.other_architectures(project / name):
        raise OperatorPackageError(
            f"{project}: its {content} are for {', '.join(others)} alone; build it for that: {built_for(repository.options)}"
        )
    inside = sorted({p.parent.relative_to(project) for p in project.rglob("op_host") if p.is_dir()})
    hint = f"; projects lie in {', '.join(map(str, inside))}" if inside else ""
    missing = "definition (a source with OP_ADD) in op_host" if not host else "kernel in op_kernel"
    raise OperatorPackageError(f"{project} is not an operator project: it has no {missing}{hint}")


def _instance_headers(
    repository: Repository, kernel: Sequence[Path], includes: IncludedFiles
) -> tuple[tuple[Path, ...], tuple[tuple[str, Path], ...]]:
    """Return the headers that select instances of kernels and that op_host does not include, and the kernels' siblings."""
    directories = tuple(dict.fromkeys(path.parent for path in kernel))
    found = find_includes(repository, kernel, directories, kernel_include_directories())
    seen = set(includes.files)
    chosen = tuple(path for path in found.files if path not in seen and selects_instances(code_of(path)))
    return chosen, found.siblings if chosen else ()


def _registrations_of_macros(project: OperatorProject, repository: Repository, work: Path) -> tuple[Path, ...]:
    """Return the registrations of operators whose names macros make; only the compiled sources have the names."""
    if any(defined_operators(code_of(path)) for path in project.host_sources):
        return ()
    named = [operator.prototype.op_type for operator in describe(project, work).operators]
    registering = repository.registrations(named, project.host_sources)
    return tuple(path for path in registering if path not in project.host_sources)


def _locate_kernel(project: OperatorProject, operator: ProjectOperator, repository: Repository) -> KernelSource:
    path, op_type, listed = _kernel_file(project, operator, repository), operator.prototype.op_type, project.listed
    if listed is None:
        own: tuple[Path, ...] = (path.parent, project.directory / "op_kernel", project.directory)
        options = repository.kernel_definitions(project.directory, op_type)
    else:
        own = (path.parent, *listed.kernel_directories)
        options = (*listed.common_kernel_options, *listed.kernel_options.get(op_type, ()))
    code = code_of(path)
    is_template = check_parameters(operator, path, code)
    includes = find_includes(repository, [path], own, kernel_include_directories())
    return KernelSource(
        path,
        code,
        is_template,
        (*own, *(includes.directories if listed is None else project.options.include_directories)),
        (*options, *late_includes(repository, includes, kernel_include_directories())),
        includes.files,
        includes.siblings if listed is None else (),
    )


def _kernel_file(project: OperatorProject, operator: ProjectOperator, repository: Repository) -> Path:
    """Return the source that defines an operator's kernel."""
    op_type, stem = operator.prototype.op_type, operator.source_stem
    if project.listed is not None:
        return project.listed.kernel_file(op_type, stem)
    function = re.compile(rf"__global__[^;{{}}()]*\b{operator.kernel}\s*\(")
    found = [path for path in project.kernel_sources if function.search(code_of(path))]
    if not found:
        # Builds put the kernels of all projects into one directory: it may lie in another project.
        found = [path for path in repository.kernels_named(stem) if function.search(code_of(path))]
    chosen = [path for path in found if path.stem == stem] or found
    if not chosen:
        raise OperatorPackageError(
            f"{op_type}: no source in {project.directory}/op_kernel defines its kernel; write a function "
            f'extern "C" __global__ __aicore__ void {operator.kernel}(…)'
        )
    if len(chosen) > 1:
        raise OperatorPackageError(
            f"{op_type}: its kernel {operator.kernel} is defined by {', '.join(map(str, chosen))}; keep one of them"
        )
    return chosen[0]


def _is_aside(path: Path) -> bool:
    """Return whether a file under op_host belongs to aclnn functions, graphs, configurations or tests."""
    return not {"op_api", "op_graph", "config", "tests"}.isdisjoint(path.parts[:-1])


def _files(paths: Iterable[Path], suffixes: Iterable[str]) -> tuple[Path, ...]:
    chosen = frozenset(suffixes)
    return tuple(sorted(path for path in paths if path.suffix in chosen and path.is_file()))
