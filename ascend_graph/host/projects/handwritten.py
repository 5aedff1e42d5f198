"""Hand-written aclnn functions of an operator project, in ``op_api``, ``op_host/op_api`` or ``op_host``.

They are C++ over an executor: they check their arguments, make tensors and launch operators by their types. They are
compiled against the headers of ``opdev/`` into a library next to that of the generated functions. The generated ones of the
same operators are then called ``aclnnInner<Op>``; hand-written functions may call these: ``#include "aclnnInner_<op>.h"``.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ascend_graph.codegen.operator_package import generate_project_package
from ascend_graph.compilation import BuildError
from ascend_graph.host.projects.includes import find_includes, host_header_options
from ascend_graph.host.projects.libraries import (
    COMPILE_LIMIT,
    GENERATED_HEADERS,
    LeftOutError,
    complete_sources,
    handwritten_library,
    host_include_directories,
    undefined_functions,
)
from ascend_graph.host.projects.model import HandWrittenFunctions, OperatorProject
from ascend_graph.host.projects.repository import Repository
from ascend_graph.host.projects.source_text import (
    SOURCE_SUFFIXES,
    aclnn_functions,
    code_of,
    inner_calls,
    is_aclnn_source,
)
from ascend_graph.prototypes import OpPrototype
from ascend_graph.prototypes.naming import snake_case

_FORM = "op_api"
_DIRECTORIES = (Path(_FORM), Path("op_host") / _FORM)
_INNER_HEADER = re.compile(r"aclnnInner_(\w+)\.h")
#: Macro of CANN's build of these functions: ``log/log.h`` then leaves the logging macros to ``opdev/op_log.h``.
_OWN_LOG = "OP_LOG_LIBOPAPI_ONLY"


def find_handwritten(repository: Repository, sources: Sequence[Path] | None = None) -> HandWrittenFunctions | None:
    """Return the hand-written aclnn functions of the project that a repository starts from, or None.

    Args:
        repository: the files around the project.
        sources: the sources that build files list; otherwise the project's directories are searched.
    """
    project = repository.start
    if sources is None:
        own = [path for directory in _DIRECTORIES for path in sorted((project / directory).rglob("*"))]
        # Among definitions and tiling functions they are recognized by their contents.
        mixed = [path for path in sorted((project / "op_host").rglob("*")) if path not in own]
        sources = [
            path
            for path in (*own, *mixed)
            if path.suffix in SOURCE_SUFFIXES
            and path.is_file()
            and not repository.is_other_architecture(path)
            and (path in own or is_aclnn_source(code_of(path)))
        ]
    functions = frozenset(name for path in sources for name in aclnn_functions(code_of(path)))
    return HandWrittenFunctions(project, tuple(sources), functions) if functions else None


def complete_handwritten(
    project: OperatorProject, prototypes: Sequence[OpPrototype], repository: Repository, work: Path
) -> OperatorProject:
    """Return a project whose hand-written functions have all their sources, or are left out if they do not compile.

    Args:
        project: the project, with its hand-written functions as discovered.
        prototypes: its operators.
        repository: the files around it.
        work: the package that is made; the headers of the generated functions are written.

    Raises:
        BuildError: a listed source does not compile.
    """
    if project.handwritten is None:
        return project
    try:
        written = name_inner_operators(project.handwritten, prototypes, repository)
        generate_functions(written, prototypes, work)
        return replace(project, handwritten=borrow_sources(written, repository, work / GENERATED_HEADERS))
    except BuildError as error:
        return leave_out(project, error)


def name_inner_operators(
    written: HandWrittenFunctions, prototypes: Sequence[OpPrototype], repository: Repository
) -> HandWrittenFunctions:
    """Return functions with the operators whose generated functions they call.

    Args:
        written: the functions as discovered.
        prototypes: the project's own operators.
        repository: the files around the project, for operators of other projects.
    """
    includes = find_includes(repository, written.sources, written.directories, host_include_directories(), form=_FORM)
    missing = (Path(text).name for text, _ in includes.missing)
    included = {found[1] for name in missing if (found := _INNER_HEADER.fullmatch(name))}
    codes = (code_of(path) for path in (*written.sources, *includes.helpers))
    inner = frozenset(included | {snake_case(op_type) for code in codes for op_type in inner_calls(code)})
    own = {snake_case(prototype.op_type) for prototype in prototypes}
    return replace(written, inner=inner, foreign=repository.prototypes(inner - own))


def borrow_sources(written: HandWrittenFunctions, repository: Repository, generated: Path) -> HandWrittenFunctions:
    """Return functions with the repository's sources that they call; they are compiled to know these.

    Args:
        written: the functions with the names of inner operators.
        repository: the files around the project.
        generated: the directory with the headers of the generated functions.

    Raises:
        BuildError: a source does not compile.
    """
    toolkit = host_include_directories()

    def extend(borrowed: tuple[Path, ...]) -> HandWrittenFunctions:
        sources = (*written.sources, *borrowed)
        includes = find_includes(repository, sources, written.directories, (generated, *toolkit), form=_FORM)
        flags = (
            f"-DASCEND_GRAPH_NPU_ARCH={repository.options.architecture.number}",
            *((f"-D{_OWN_LOG}",) if repository.mentions(_OWN_LOG) else ()),
            *repository.definitions((*written.sources, *includes.files)),
            *host_header_options(repository, includes, toolkit),
        )
        return replace(written, borrowed=borrowed, includes=includes, flags=flags)

    def lacking(current: HandWrittenFunctions) -> tuple[Path, ...]:
        missing = undefined_functions(handwritten_library(current, generated).build(time_limit=COMPILE_LIMIT))
        known = (*current.sources, *current.borrowed, *current.includes.helpers)
        return repository.defining(missing, known, form=_FORM) if missing else ()

    return complete_sources(extend(()), extend, lacking)


def generate_functions(written: HandWrittenFunctions, prototypes: Sequence[OpPrototype], work: Path) -> Path:
    """Write the generated functions next to hand-written ones, and return their source."""
    own = {snake_case(prototype.op_type): f"aclnn{prototype.op_type}" for prototype in prototypes}
    replaced = {*written.functions, *(own[name] for name in written.inner if name in own)}
    source: Path = generate_project_package(prototypes, work, replaced, written.foreign)
    return source


def leave_out(project: OperatorProject, error: BuildError | LeftOutError) -> OperatorProject:
    """Return a project without its hand-written functions, with a warning: the operators do not need them.

    Raises:
        BuildError: build files list the functions; a device's build fails then, too.
        LeftOutError: the same for functions that do not load.
    """
    if project.listed is not None:
        raise error
    reason = first_line(str(error))
    text = f"ascend_graph: {project.directory.name}: its own aclnn functions are left out: {reason}"
    print(text, file=sys.stderr, flush=True)
    return replace(project, handwritten=None)


def install_headers(written: HandWrittenFunctions, directory: Path) -> None:
    """Copy the headers that declare hand-written functions to a directory."""
    places = dict.fromkeys([*(written.project / place for place in _DIRECTORIES), *written.directories])
    for header in dict.fromkeys(path for place in places for path in sorted(place.rglob("*.h"))):
        code = code_of(header)
        if any(f"{name}GetWorkspaceSize" in code for name in written.functions):
            shutil.copyfile(header, directory / header.name)


def first_line(error: str) -> str:
    """Return the line of a compiler's output that names the error."""
    lines = error.splitlines()
    return next((line.strip() for line in lines if " error: " in line), lines[0] if lines else "")
