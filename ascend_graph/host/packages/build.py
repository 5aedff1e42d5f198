"""Build operator packages from prototypes and host kernels."""

from __future__ import annotations

import contextlib
import inspect
import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ascend_graph.codegen.kernels.source import included_files
from ascend_graph.codegen.operator_package import generate_operator_package
from ascend_graph.compilation import CppLibrary, lasting_copies
from ascend_graph.environment import toolkit_directory
from ascend_graph.host.packages.format import LIBRARY, METADATA, OperatorPackageError
from ascend_graph.host.packages.importable import check_importable
from ascend_graph.prototypes import OpPrototype, parse_file
from ascend_graph.prototypes.writer import to_reg_op
from ascend_graph.shapes import Relation, parse_relation
from ascend_graph.shapes.declared_dtypes import complete_relation
from ascend_graph.sources.compared import compared_texts

#: Modules of the Ascend C compiler; the build of a package with .asc sources depends on them.
TRANSLATOR = tuple(sorted((Path(__file__).parents[1] / "ascendc").glob("*.py")))


@dataclass(frozen=True, slots=True)
class PythonKernel:
    """Location of a package's Python kernel: a file in the package and a function in that file."""

    file: str
    function: str


def build_operator_package(
    directory: str | Path,
    prototypes: str | Path | Sequence[OpPrototype],
    kernels: Mapping[str, str | Path | Callable[..., Any]],
    *,
    relations: Mapping[str, str] | None = None,
) -> Path:
    """Build an operator package from prototypes and one host kernel for each.

    Args:
        directory: the package's directory; an existing package there is replaced as a whole.
        prototypes: a header with REG_OPs, or prototypes.
        kernels: by op type: a C++ source that defines ``host_kernels::<OpType>`` (declared in the generated
            ``host_kernels.h``), or a Python function of CPU tensors, defined at the top of a module. It takes the inputs by
            position and the attrs by keyword, and returns the outputs: a tensor, a list of tensors for a dynamic output, None
            for an output that the relation makes None. In-place outputs may be left out. A source with the suffix ``.asc``
            is Ascend C: it may include kernels and launch them with ``<<<…>>>``.
        relations: by op type: the shape relation from which the graph engine infers output shapes. An operator with a
            C++ kernel needs one to run in graphs; for a Python kernel, running it gives the output shapes.

    Returns:
        The package's directory, for ``ASCEND_CUSTOM_OPP_PATH``.

    Raises:
        OperatorPackageError: a kernel or a prototype is missing, or a Python kernel cannot be found again from its module.
        BuildError: a kernel does not compile.
        RelationError: a relation is malformed.
    """
    target = Path(directory).resolve()
    ops = _prototypes(prototypes)
    parsed = {name: parse_relation(text) for name, text in (relations or {}).items()}
    _check_names(ops, kernels, parsed)
    parsed = {name: complete_relation(ops[name], relation) for name, relation in parsed.items()}
    used = {name: kernel for name, kernel in kernels.items() if name in ops}
    python = {name: kernel for name, kernel in used.items() if callable(kernel)}
    sources = sorted({Path(k).resolve() for k in used.values() if not callable(k)})
    for source in sources:
        if not source.is_file():
            raise OperatorPackageError(f"kernel source {source} does not exist; name a file that does")
    with staged_package(target) as work:
        functions = {name: _copy_python_kernel(name, function, work) for name, function in python.items()}
        selected = [ops[name] for name in used]
        header, adapter = generate_operator_package(selected, python, work)
        _compile(header, adapter, sources, work)
        write_package_files(
            work,
            selected,
            {
                name: {
                    "relation": parsed[name].source if name in parsed else None,
                    "python": [functions[name].file, functions[name].function] if name in functions else None,
                    "compared": []
                    if name in functions
                    else compared_texts(Path(str(used[name])).read_text(encoding="utf-8", errors="replace")),
                }
                for name in used
            },
        )
    return target


@contextlib.contextmanager
def staged_package(target: Path) -> Iterator[Path]:
    """Yield a temporary directory to build a package in; it replaces ``target`` once the block completes.

    Raises:
        OperatorPackageError: ``target`` exists but is not an operator package of the host runtime.
    """
    if target.exists() and any(target.iterdir()) and not (target / METADATA).exists():
        raise OperatorPackageError(
            f"{target} exists and is not an operator package of the host runtime; choose another directory"
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    try:
        yield work
        work.chmod(0o755)
        if target.exists():
            shutil.rmtree(target)
        work.rename(target)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def write_package_files(
    directory: Path, prototypes: Sequence[OpPrototype], metadata: Mapping[str, Mapping[str, Any]]
) -> None:
    """Write a package's prototypes and the metadata that the graph engine needs for each operator."""
    proto = directory / "op_proto/inc/op_proto.h"
    proto.parent.mkdir(parents=True)
    proto.write_text("\n".join(to_reg_op(p) for p in prototypes))
    (directory / METADATA).write_text(json.dumps(metadata, indent=2) + "\n")


def _prototypes(source: str | Path | Sequence[OpPrototype]) -> dict[str, OpPrototype]:
    if not isinstance(source, (str, Path)):
        return {p.op_type: p for p in source}
    result = parse_file(Path(source))
    if result.errors:
        raise OperatorPackageError("\n".join(str(d) for d in result.errors))
    return {p.op_type: p for p in result.prototypes}


def _check_names(
    ops: Mapping[str, OpPrototype], kernels: Mapping[str, object], relations: Mapping[str, Relation]
) -> None:
    for name in kernels:
        if name not in ops:
            raise OperatorPackageError(
                f"kernel for {name!r}: unknown prototype; expected one of {', '.join(sorted(ops))}"
            )
    if not kernels:
        raise OperatorPackageError(f"no kernel is given; the prototypes are: {', '.join(sorted(ops))}")
    for name, relation in relations.items():
        if name not in kernels:
            raise OperatorPackageError(f"relation for {name!r}: expected the name of a kernel that is given")
        check_relation(ops[name], relation)


def check_relation(prototype: OpPrototype, relation: Relation) -> None:
    """Raise an error if a relation names anything other than the operator's inputs and outputs."""
    known = {p.name for p in (*prototype.inputs, *prototype.outputs)}
    unknown = [n for n in (*relation.inputs, *relation.outputs) if n not in known]
    if unknown:
        raise OperatorPackageError(
            f"relation of {prototype.op_type}: {', '.join(unknown)} is not an input or output; "
            f"there are: {', '.join(sorted(known))}"
        )


def _copy_python_kernel(name: str, function: Callable[..., Any], work: Path) -> PythonKernel:
    qualified = getattr(function, "__qualname__", "")
    file = inspect.getsourcefile(inspect.unwrap(function))
    if not qualified.isidentifier() or file is None or not Path(file).is_file():
        raise OperatorPackageError(
            f"kernel of {name}: {function!r} cannot be loaded again in another process; define it with def at the top of a module"
        )
    check_importable(name, Path(file))
    copy = work / "op_impl/host/python" / Path(file).name
    copy.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(file, copy)
    return PythonKernel(str(copy.relative_to(work)), qualified)


def _compile(header: Path, adapter: Path, sources: Sequence[Path], work: Path) -> None:
    include = toolkit_directory() / "include"
    neighbors = {h for s in sources for pattern in ("*.h", "*.hpp", "*.cpp", "*.asc") for h in s.parent.glob(pattern)}
    neighbors.update(file for source in sources for file in included_files(source))
    aclnn = sorted((work / "op_api/include").glob("*.h"))
    generated = lasting_copies((adapter, header, *aclnn))
    ascendc = any(source.suffix == ".asc" for source in sources)
    library = CppLibrary(
        name="libcust_opapi",
        sources=(generated / adapter.name, *sources),
        headers=(
            *(generated / path.name for path in (header, *aclnn)),
            *sorted(neighbors),
            *sorted(include.rglob("*.h")),
            *(TRANSLATOR if ascendc else ()),
        ),
        include_directories=(generated, include),
        library_directories=(toolkit_directory() / "lib64",),
        libraries=("opapi", "ascendcl", *(("ascendc_runtime",) if ascendc else ())),
        kernel_compiler=kernel_compiler(),
        stable_directories=(toolkit_directory(),),
    )
    install_library(library.build(), work / LIBRARY)


def kernel_compiler() -> tuple[str, ...]:
    """Return the command that compiles Ascend C for the host."""
    return ("env", f"ASCEND_GRAPH_PYTHON={sys.executable}", str(toolkit_directory() / "bin/bisheng"))


def install_library(compiled: Path, target: Path) -> None:
    """Copy a compiled library into a package."""
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(compiled, target)
    target.chmod(0o755)
