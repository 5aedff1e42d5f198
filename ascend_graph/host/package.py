"""Operator packages for the host runtime: built from prototypes and host kernels, and called by the graph engine.

A package is a directory laid out like an installed custom operator package of CANN: ``op_proto/inc`` with the prototypes,
``op_api/include`` and ``op_api/lib/libcust_opapi.so`` with the aclnn functions, and, in place of device binaries,
``op_impl/host``. Select it with ``ASCEND_CUSTOM_OPP_PATH`` (or ``--opp`` of the launcher), as a real one.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import inspect
import json
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ascend_graph.codegen.kernel_source import included_files
from ascend_graph.codegen.operator_package import INFER_SUFFIX, generate_operator_package
from ascend_graph.compilation import CppLibrary
from ascend_graph.errors import AscendGraphError
from ascend_graph.host.limit import within_limit
from ascend_graph.host.toolkit import HostRuntimeError, toolkit_directory
from ascend_graph.prototypes import (
    DataType,
    OpPrototype,
    ParameterKind,
    find_prototype,
    package_directories,
    parse_file,
)
from ascend_graph.prototypes.writer import to_reg_op
from ascend_graph.shapes import NAMES, Relation, parse_relation

if TYPE_CHECKING:
    import torch

    from ascend_graph.host.ops import HostKernel

#: Where a package has its aclnn functions, and what the graph engine knows of its operators.
LIBRARY = Path("op_api/lib/libcust_opapi.so")
METADATA = Path("op_impl/host/kernels.json")
#: What Ascend C kernels are compiled by.
TRANSLATOR = tuple(sorted((Path(__file__).parent / "ascendc").glob("*.py")))


class OperatorPackageError(AscendGraphError):
    """An operator package cannot be built, or what is installed is not usable."""


@dataclass(frozen=True, slots=True)
class PythonKernel:
    """Where a package's Python kernel is: a file in the package and a function in it."""

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
        directory: where the package is made; replaced as a whole if it exists and is one.
        prototypes: a header with REG_OPs, or prototypes.
        kernels: by op type: a C++ source that defines ``host_kernels::<OpType>`` (declared in the generated
            ``host_kernels.h``), or a Python function of CPU tensors, defined at the top of a module. It takes the inputs by
            position and the attrs by keyword, and returns the outputs. A source with the suffix ``.asc`` is Ascend C: it may
            include kernels and launch them with ``<<<…>>>``.
        relations: by op type: the shape relation, which the graph engine infers output shapes with. An operator with a
            C++ kernel needs one to run in graphs; a Python kernel shows its output shapes by running.

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
    used = {name: kernel for name, kernel in kernels.items() if name in ops}
    python = {name: kernel for name, kernel in used.items() if callable(kernel)}
    sources = sorted({Path(k).resolve() for k in used.values() if not callable(k)})
    for source in sources:
        if not source.is_file():
            raise OperatorPackageError(f"kernel source {source} does not exist")
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
                }
                for name in used
            },
        )
    return target


@contextlib.contextmanager
def staged_package(target: Path) -> Iterator[Path]:
    """A directory to make a package in, which takes the place of ``target`` when it is whole.

    Raises:
        OperatorPackageError: ``target`` is something else than an operator package of the host runtime.
    """
    if target.exists() and any(target.iterdir()) and not (target / METADATA).exists():
        raise OperatorPackageError(
            f"{target} exists and is no operator package of the host runtime; choose another directory"
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
    """Write a package's prototypes, and what the graph engine must know of each operator."""
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
                f"kernel for {name!r}: there is no such prototype; there are: {', '.join(sorted(ops))}"
            )
    if not kernels:
        raise OperatorPackageError(f"no kernel is given; the prototypes are: {', '.join(sorted(ops))}")
    for name, relation in relations.items():
        if name not in kernels:
            raise OperatorPackageError(f"relation for {name!r}: no kernel of that name is given")
        check_relation(ops[name], relation)


def check_relation(prototype: OpPrototype, relation: Relation) -> None:
    """Refuse a relation that names something else than the operator's inputs and outputs."""
    known = {p.name for p in (*prototype.inputs, *prototype.outputs)}
    unknown = [n for n in (*relation.inputs, *relation.outputs) if n not in known]
    if unknown:
        raise OperatorPackageError(
            f"relation of {prototype.op_type}: {', '.join(unknown)} is no input or output; "
            f"there are: {', '.join(sorted(known))}"
        )


def _copy_python_kernel(name: str, function: Callable[..., Any], work: Path) -> PythonKernel:
    qualified = getattr(function, "__qualname__", "")
    file = inspect.getsourcefile(inspect.unwrap(function))
    if not qualified.isidentifier() or file is None or not Path(file).is_file():
        raise OperatorPackageError(
            f"kernel of {name}: {function!r} cannot be loaded again in another process; define it with def at the top of a module"
        )
    copy = work / "op_impl/host/python" / Path(file).name
    copy.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(file, copy)
    return PythonKernel(str(copy.relative_to(work)), qualified)


def _compile(header: Path, adapter: Path, sources: Sequence[Path], work: Path) -> None:
    include = toolkit_directory() / "include"
    neighbours = {h for s in sources for pattern in ("*.h", "*.hpp", "*.cpp", "*.asc") for h in s.parent.glob(pattern)}
    neighbours.update(file for source in sources for file in included_files(source))
    aclnn = sorted((work / "op_api/include").glob("*.h"))
    ascendc = any(source.suffix == ".asc" for source in sources)
    library = CppLibrary(
        name="libcust_opapi",
        sources=(adapter, *sources),
        headers=(header, *aclnn, *sorted(neighbours), *sorted(include.rglob("*.h")), *(TRANSLATOR if ascendc else ())),
        include_directories=(header.parent, work / "op_api/include", include),
        library_directories=(toolkit_directory() / "lib64",),
        libraries=("opapi", "ascendcl", *(("ascendc_runtime",) if ascendc else ())),
        kernel_compiler=kernel_compiler(),
    )
    install_library(library.build(), work / LIBRARY)


def kernel_compiler() -> tuple[str, ...]:
    """The command that compiles Ascend C for the host."""
    return ("env", f"ASCEND_GRAPH_PYTHON={sys.executable}", str(toolkit_directory() / "bin/bisheng"))


def install_library(compiled: Path, target: Path) -> None:
    """Copy a compiled library into a package."""
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(compiled, target)
    target.chmod(0o755)


@dataclass(frozen=True, slots=True)
class OperatorPackage:
    """An installed operator package that has host kernels."""

    directory: Path
    metadata: Mapping[str, Mapping[str, Any]]

    def relation(self, op_type: str) -> Relation | None:
        """The operator's shape relation, if the package carries one."""
        text = self.metadata.get(op_type, {}).get("relation")
        return parse_relation(text) if text else None

    def infers_shapes(self, op_type: str) -> bool:
        """Whether the package's library has the author's InferShape function for the operator."""
        return bool(self.metadata.get(op_type, {}).get("infer_shape"))

    def python_function(self, op_type: str) -> Callable[..., Any] | None:
        """The operator's kernel, if it is a Python function."""
        reference = self.metadata.get(op_type, {}).get("python")
        return _load_function(self.directory, *reference) if reference else None


@cache
def _load_function(directory: Path, file: str, function: str) -> Callable[..., Any]:
    path = directory / file
    spec = importlib.util.spec_from_file_location(f"_ascend_graph_package_{path.stem}_{abs(hash(path))}", path)
    if spec is None or spec.loader is None:
        raise OperatorPackageError(f"{path} is no Python module")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    loaded: Callable[..., Any] = getattr(module, function)
    return loaded


@cache
def open_package(directory: Path) -> OperatorPackage | None:
    """The package in ``directory``, or None where there are no host kernels in it."""
    path = directory / METADATA
    if not path.exists():
        return None
    try:
        return OperatorPackage(directory, json.loads(path.read_text()))
    except (OSError, ValueError) as error:
        raise OperatorPackageError(f"{path}: not readable: {error}") from error


_lock = threading.Lock()
_kernels: dict[str, HostKernel | None] = {}
_loaded: dict[Path, ctypes.CDLL] = {}


def installed_packages() -> tuple[OperatorPackage, ...]:
    """The packages with host kernels, in the order CANN searches them; their libraries are loaded.

    Raises:
        OperatorPackageError: ``ASCEND_CUSTOM_OPP_PATH`` names a directory that is not there, or a library does not load.
    """
    for part in os.environ.get("ASCEND_CUSTOM_OPP_PATH", "").split(os.pathsep):
        if part and not Path(part).is_dir():
            raise OperatorPackageError(f"ASCEND_CUSTOM_OPP_PATH names {part}, which is no directory")
    packages = []
    for inc in package_directories():
        package = open_package(inc.parent.parent)
        if package is None:
            continue
        library = package.directory / LIBRARY
        if library not in _loaded:
            try:
                _loaded[library] = ctypes.CDLL(str(library), ctypes.RTLD_GLOBAL)
            except OSError as error:
                raise OperatorPackageError(f"{library} does not load: {_why(error)}") from error
        packages.append(package)
    return tuple(packages)


def _why(error: OSError) -> str:
    """What the loader says; of what was compiled against another runtime, what to do."""
    # What only our own libraries have: of the kernel API, and of operator packages.
    if "ascendc_host" in str(error) or "ascendgraphRegisterKernel" in str(error):
        return (
            "it was built by another version of ascend_graph; build it again with this one, as with ascend-graph build"
        )
    return str(error)


def find_package_kernel(op_type: str) -> HostKernel | None:
    """The kernel that an installed package has for a GE operator, as the graph engine calls it."""
    with _lock:
        if op_type not in _kernels:
            package = next((p for p in installed_packages() if op_type in p.metadata), None)
            _kernels[op_type] = None if package is None else _package_kernel(package, op_type)
        return _kernels[op_type]


def _package_kernel(package: OperatorPackage, op_type: str) -> HostKernel:
    import torch

    from ascend_graph.host.bridge import bridge
    from ascend_graph.host.dtypes import torch_dtype
    from ascend_graph.host.ops import HostKernel

    prototype = find_prototype(op_type)
    relation = package.relation(op_type)
    function = package.python_function(op_type)
    sources = _output_sources(prototype)
    defaults = {a.name: a.default for a in prototype.attrs}
    required = frozenset(a.name for a in prototype.attrs if a.required)
    kinds = [
        *("tensors" if p.kind is ParameterKind.DYNAMIC else "tensor" for p in prototype.inputs),
        *(a.type.value for a in prototype.attrs),
        *(
            "tensors" if p.kind is ParameterKind.DYNAMIC else "tensor"
            for p in prototype.outputs
            if p.name not in prototype.in_place
        ),
    ]
    call = bridge().call_kernel

    def all_attrs(given: Mapping[str, Any]) -> dict[str, Any]:
        missing = sorted(required - set(given))
        if missing:
            raise HostRuntimeError(f"{op_type}: required attr {', '.join(missing)} is not set on the node")
        return {name: given.get(name, default) for name, default in defaults.items()}

    specs_of = (
        _specs_by_relation(prototype, relation)
        if relation is not None
        else _specs_by_library(prototype, call, kinds)
        if package.infers_shapes(op_type)
        else None
    )

    def output_specs(inputs: Sequence[Any], given: Mapping[str, Any]) -> Mapping[str, Any]:
        if specs_of is None:
            raise HostRuntimeError(
                f"{op_type}: {package.directory} has neither a shape relation nor an InferShape function for it; "
                f"build it with relations={{{op_type!r}: '…'}}"
            )
        return specs_of(inputs, all_attrs(given))

    def infer(*inputs: Any, **given: Any) -> list[Any]:
        specs = output_specs(inputs, given)
        return [inputs[i] if i is not None else _empty(specs.get(name)) for name, i in sources]

    def run(*inputs: Any, **given: Any) -> list[Any]:
        outputs = infer(*inputs, **given)
        fresh = [o for o, (_, i) in zip(outputs, sources, strict=True) if i is None]
        call(op_type, [*inputs, *all_attrs(given).values(), *fresh], kinds)
        return outputs

    by_running = relation is None and function is not None
    python = _python_operator(prototype, function) if function is not None else None

    def run_python(*inputs: Any, **given: Any) -> Any:
        assert python is not None
        return python(inputs, all_attrs(given))

    def _empty(spec: Any) -> Any:
        if isinstance(spec, list):
            return [_empty(item) for item in spec]
        shape, dtype = spec
        return torch.empty(shape, dtype=getattr(torch, dtype) if isinstance(dtype, str) else torch_dtype(dtype))

    return HostKernel(
        op_type=op_type,
        function=run_python if by_running else run,
        inputs=tuple(p.name for p in prototype.inputs),
        attrs=frozenset(defaults),
        dynamic_inputs=frozenset(p.name for p in prototype.inputs if p.kind is ParameterKind.DYNAMIC),
        infer=None if by_running else infer,
        written_inputs=frozenset(p.name for p in prototype.inputs if p.name in prototype.in_place),
        references=references(prototype),
        # The author's function may hand an input back, or a view of one; outputs that it is not asked for are allocated.
        views=frozenset(p.name for p in prototype.inputs) if by_running else frozenset(),
    )


#: Output shapes and dtypes by name, from inputs and attrs.
_Specs = Callable[[Sequence[Any], Mapping[str, Any]], Mapping[str, Any]]


def _specs_by_relation(prototype: OpPrototype, relation: Relation) -> _Specs:
    remembered: dict[Any, Mapping[str, Any]] = {}
    system = replace(NAMES, from_attr=_dtype_attr)
    used = [(i, p.name) for i, p in enumerate(prototype.inputs) if p.name in relation.inputs]

    def specs(inputs: Sequence[Any], attrs: Mapping[str, Any]) -> Mapping[str, Any]:
        key = (*map(_shape_key, inputs), repr(attrs) if attrs else None)
        found = remembered.get(key)
        if found is None:
            shapes = {name: _each(inputs[i], lambda t: tuple(t.shape)) for i, name in used}
            dtypes = {name: _each(inputs[i], _dtype_name) for i, name in used}
            results = relation.infer(shapes, dtypes, attrs, system=system)
            found = remembered[key] = dict(zip(relation.outputs, results, strict=True))
        return found

    return specs


def _specs_by_library(prototype: OpPrototype, call: Callable[..., None], kinds: Sequence[str]) -> _Specs:
    """By the author's InferShape and InferDataType: each output comes as a tensor of dtype, rank and sizes."""
    import torch

    names = [p.name for p in prototype.outputs]
    given = [*kinds[: len(prototype.inputs) + len(prototype.attrs)], *("tensor" for _ in names)]

    def specs(inputs: Sequence[Any], attrs: Mapping[str, Any]) -> Mapping[str, Any]:
        # Nothing is remembered: an InferShape function may read values.
        found = [torch.empty(2 + _MOST_DIMENSIONS, dtype=torch.int64) for _ in names]
        call(prototype.op_type + INFER_SUFFIX, [*inputs, *attrs.values(), *found], given)
        lists = [f.tolist() for f in found]
        return {name: (tuple(v[2 : 2 + v[1]]), DataType(v[0])) for name, v in zip(names, lists, strict=True)}

    return specs


#: Of a gert::Shape.
_MOST_DIMENSIONS = 25


def _each(value: Any, function: Callable[[Any], Any]) -> Any:
    if value is None:
        return None
    return [function(v) for v in value] if isinstance(value, list) else function(value)


def _shape_key(value: Any) -> Any:
    if value is None:
        return None
    if isinstance(value, list):
        return tuple((t.shape, t.dtype) for t in value)
    return value.shape, value.dtype


def _dtype_attr(value: object) -> str | None:
    """The name of the dtype that an attr of a node means: GE's number of it."""
    from ascend_graph.host.dtypes import torch_dtype

    try:
        return str(torch_dtype(value)).removeprefix("torch.") if isinstance(value, int) else None
    except HostRuntimeError:
        return None


def _dtype_name(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _output_sources(prototype: OpPrototype) -> list[tuple[str, int | None]]:
    """Per output: its name, and the input that it is where it is in place."""
    inputs = {p.name: i for i, p in enumerate(prototype.inputs)}
    return [(p.name, inputs.get(p.name)) for p in prototype.outputs]


def references(prototype: OpPrototype) -> dict[str, int]:
    """The index of the output that an in-place input is; behind a dynamic output there is none to tell before a call."""
    found: dict[str, int] = {}
    for index, output in enumerate(prototype.outputs):
        if output.name in prototype.in_place:
            found[output.name] = index
        if output.kind is ParameterKind.DYNAMIC:
            break
    return found


def _python_operator(
    prototype: OpPrototype, function: Callable[..., Any]
) -> Callable[[Sequence[Any], Mapping[str, Any]], Sequence[Any]]:
    """A Python kernel as a function of inputs and attrs that returns every output, in the prototype's order."""
    sources = _output_sources(prototype)
    fresh = sum(i is None for _, i in sources)
    op_type = prototype.op_type

    def call(inputs: Sequence[Any], attrs: Mapping[str, Any]) -> Sequence[Any]:
        result = within_limit(f"{op_type}: the Python kernel", lambda: function(*inputs, **attrs))
        results = () if result is None else result if isinstance(result, (tuple, list)) else (result,)
        if len(results) == len(sources):
            return results
        if len(results) == fresh:
            new = iter(results)
            return [next(new) if i is None else inputs[i] for _, i in sources]
        names = ", ".join(name for name, _ in sources)
        raise OperatorPackageError(
            f"{op_type}: the Python kernel returned {len(results)} outputs; the prototype has {len(sources)} "
            f"({names}), of them {len(sources) - fresh} in place"
        )

    return call


def call_python_kernel(package_dir: str, op_type: str, arguments: Sequence[Any]) -> None:
    """Run a package's Python kernel on the arguments of an aclnn call: inputs, attrs, outputs to write.

    Raises:
        OperatorPackageError: an output has another shape than the caller allocated.
    """
    _python_caller(package_dir, op_type)(arguments)


@cache
def _python_caller(package_dir: str, op_type: str) -> Callable[[Sequence[Any]], None]:
    import torch

    package = open_package(Path(package_dir))
    function = package.python_function(op_type) if package is not None else None
    if package is None or function is None:
        raise OperatorPackageError(f"{package_dir} has no Python kernel for {op_type}")
    prototype = _package_prototype(package.directory, op_type)
    operator = _python_operator(prototype, function)
    sources = _output_sources(prototype)
    attrs = [(a.name, a.default) for a in prototype.attrs]
    inputs_end = len(prototype.inputs)
    attrs_end = inputs_end + len(attrs)

    def call(arguments: Sequence[Any]) -> None:
        inputs = arguments[:inputs_end]
        given = zip(attrs, arguments[inputs_end:attrs_end], strict=True)
        results = operator(inputs, {name: default if value is None else value for (name, default), value in given})
        targets = iter(arguments[attrs_end:])
        for (name, source), result in zip(sources, results, strict=True):
            _write(op_type, name, next(targets) if source is None else inputs[source], result)

    # Where a graph breaks, Dynamo would trace into the kernel, which is no part of the model.
    disabled: Callable[[Sequence[Any]], None] = torch.compiler.disable(call)
    return disabled


def _write(op_type: str, name: str, target: Any, result: Any) -> None:
    if isinstance(target, list):
        if len(target) != len(result):
            raise OperatorPackageError(
                f"{op_type}: output {name} has {len(target)} tensors, the kernel returned {len(result)}"
            )
        for t, r in zip(target, result, strict=True):
            _write(op_type, name, t, r)
        return
    if target is result:
        return
    if target.shape != result.shape:
        raise OperatorPackageError(
            f"{op_type}: the kernel returned output {name} of shape {tuple(result.shape)}; "
            f"the caller allocated {tuple(target.shape)}"
        )
    target.copy_(result)


@cache
def _package_prototype(directory: Path, op_type: str) -> OpPrototype:
    for header in sorted((directory / "op_proto/inc").glob("*.h")):
        for prototype in parse_file(header).prototypes:
            if prototype.op_type == op_type:
                return prototype
    raise OperatorPackageError(f"{directory}/op_proto/inc has no prototype of {op_type}")
