"""Companion of an operator whose package CANN built: a package for the host, made when the operator is first called.

It has the kernel that is compiled from the package's own source, and calls the package's own tiling and shape functions.
Companions lie in the cache, by the content of the package's files. Each combination of dtypes is compiled when it is
first launched.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from ascend_graph.codegen.msopgen_project import soc_config
from ascend_graph.codegen.rendering import template
from ascend_graph.compilation.cache import locked, writable_cache
from ascend_graph.environment import processor, toolkit_directory
from ascend_graph.errors import AscendGraphError
from ascend_graph.host.architecture import architecture
from ascend_graph.host.packages.build import staged_package
from ascend_graph.host.packages.format import METADATA
from ascend_graph.host.packages.prebuilt import registered_functions
from ascend_graph.host.prebuilt.contents import PrebuiltOperator, check_includes, find_operator
from ascend_graph.host.prebuilt.definition import definition_source
from ascend_graph.host.prebuilt.tiling_structures import library_facts
from ascend_graph.host.projects.build import build
from ascend_graph.host.projects.describe import describe
from ascend_graph.host.projects.discover import discover, locate_kernels
from ascend_graph.host.projects.model import BuildOptions, ListedFiles
from ascend_graph.host.projects.repository import Repository


def companion(package: Path, op_type: str) -> Path:
    """Return the companion of an operator of a package for this process's SoC; build it if it is not there.

    Raises:
        OperatorPackageError: The package cannot be used; the message names what stands in for it.
        BuildError: The kernel's source or the definition does not compile.
    """
    soc = processor(os.environ)
    operator = find_operator(package.resolve(), op_type, soc_config(soc))
    files = check_includes(operator)
    with writable_cache() as cache:
        root = cache / "prebuilt" / f"{operator.kernel.stem}-{_digest(operator, soc)}"
        if not (root / "package" / METADATA).exists():
            with locked(root.with_suffix(".lock"), f"building the kernel of {op_type}"):
                if not (root / "package" / METADATA).exists():
                    _build(operator, files, root, soc)
    return root / "package"


def _build(operator: PrebuiltOperator, files: Sequence[Path], root: Path, soc: str) -> None:
    facts = library_facts(operator.tiling_library, operator.prototype.op_type)
    project = root / "project"
    shutil.rmtree(root, ignore_errors=True)
    kernels = project / "op_kernel"
    shutil.copytree(operator.sources, kernels)
    source = project / "op_host" / f"{operator.kernel.stem}.cpp"
    source.parent.mkdir(parents=True)
    declares = re.compile(rf"\bASCENDC_TPL_ARGS_DECL\s*\(\s*{operator.prototype.op_type}\b")
    headers = [path for path in files if declares.search(path.read_text(errors="replace"))]
    names = [f"../op_kernel/{path.relative_to(operator.sources)}" for path in headers]
    source.write_text(definition_source(operator, facts, _shape_functions(operator), names))
    kernel = kernels / operator.kernel.relative_to(operator.sources)
    listed = ListedFiles(
        host_sources=(source,),
        kernel_directories=tuple(dict.fromkeys((kernel.parent, kernels))),
        kernel_files={operator.prototype.op_type: kernel},
        compute_units=(operator.soc,),
    )
    repository = Repository(project, project, BuildOptions(architecture=architecture(soc), on_launch=True))
    with staged_package(root / "package") as work:
        found = discover(repository, listed)
        description = describe(found, work)
        build(locate_kernels(found, description.operators, repository), description, {}, work)


def _shape_functions(operator: PrebuiltOperator) -> tuple[bool, bool, tuple[int, ...]]:
    """Return if the package infers shapes and dtypes, and the inputs whose values it reads for that."""
    if operator.shape_library is None:
        return False, False, ()
    functions = registered_functions(operator.shape_library).get(operator.prototype.op_type)
    if functions is None or functions.infer_shape is None:
        return False, False, ()
    return True, functions.infer_dtype is not None, functions.data_inputs


def _digest(operator: PrebuiltOperator, soc: str) -> str:
    """Return a digest of the package's files and of all that makes the companion of them."""
    digest = hashlib.sha256(f"{operator}\0{soc}\0{sys.version}".encode())
    # The operator's value has what the other modules make of the package.
    own = (Path(__file__), Path(__file__).with_name("definition.py"), template("operator_package/prebuilt.cpp.jinja"))
    for path in own:
        digest.update(path.read_bytes())
    for path in _read_files(operator):
        digest.update(path.name.encode())
        digest.update(path.read_bytes())
    toolkit = toolkit_directory()
    for path in sorted((*(toolkit / "include").rglob("*.h"), *(toolkit / "lib64").glob("*.so"))):
        state = path.stat()
        digest.update(f"{path}\0{state.st_size}\0{state.st_mtime_ns}\0".encode())
    return digest.hexdigest()[:24]


def _read_files(operator: PrebuiltOperator) -> Iterator[Path]:
    yield operator.tiling_library
    if operator.shape_library is not None:
        yield operator.shape_library
    yield from sorted(path for path in operator.sources.rglob("*") if path.is_file())


def main() -> None:
    """Print the companion of the package and operator that this process's arguments name, or what is wrong with it."""
    try:
        print(companion(Path(sys.argv[1]), sys.argv[2]))
    except (AscendGraphError, OSError, ValueError) as error:
        print(error)
        raise SystemExit(1) from None


if __name__ == "__main__":
    main()
