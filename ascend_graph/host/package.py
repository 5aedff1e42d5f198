"""Operator packages for the host runtime: built from prototypes and host kernels, and called by the graph engine.

A package is a directory laid out like an installed custom operator package of CANN: ``op_proto/inc`` with the prototypes,
``op_api/include`` and ``op_api/lib/libcust_opapi.so`` with the aclnn functions, and, in place of device binaries,
``op_impl/host``. Select it with ``ASCEND_CUSTOM_OPP_PATH`` (or ``--opp`` of the launcher), as a real one.
"""

from __future__ import annotations

import ctypes
import importlib.util
import inspect
import json
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ascend_graph.build import CppLibrary
from ascend_graph.codegen.operator_package import generate_operator_package
from ascend_graph.errors import AscendGraphError
from ascend_graph.host.toolkit import HostRuntimeError, toolkit_directory
from ascend_graph.prototypes import OpPrototype, ParameterKind, find_prototype, package_directories, parse_file
from ascend_graph.prototypes.writer import to_reg_op
from ascend_graph.shapes import Relation, parse_relation

if TYPE_CHECKING:
    import torch

    from ascend_graph.host.ops import HostKernel

_LIBRARY = Path("op_api/lib/libcust_opapi.so")
_METADATA = Path("op_impl/host/kernels.json")


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
            position and the attrs by keyword, and returns the outputs.
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
    if target.exists() and any(target.iterdir()) and not (target / _METADATA).exists():
        raise OperatorPackageError(
            f"{target} exists and is no operator package of the host runtime; choose another directory"
        )
    used = {name: kernel for name, kernel in kernels.items() if name in ops}
    python = {name: kernel for name, kernel in used.items() if callable(kernel)}
    sources = sorted({Path(k).resolve() for k in used.values() if not callable(k)})
    for source in sources:
        if not source.is_file():
            raise OperatorPackageError(f"kernel source {source} does not exist")
    target.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    try:
        functions = {name: _copy_python_kernel(name, function, work) for name, function in python.items()}
        selected = [ops[name] for name in used]
        header, adapter = generate_operator_package(selected, python, work)
        _compile(header, adapter, sources, work)
        proto = work / "op_proto/inc/op_proto.h"
        proto.parent.mkdir(parents=True)
        proto.write_text("\n".join(to_reg_op(p) for p in selected))
        metadata = {
            name: {
                "relation": parsed[name].source if name in parsed else None,
                "python": [functions[name].file, functions[name].function] if name in functions else None,
            }
            for name in used
        }
        (work / _METADATA).write_text(json.dumps(metadata, indent=2) + "\n")
        work.chmod(0o755)
        if target.exists():
            shutil.rmtree(target)
        work.rename(target)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return target


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
        known = {p.name for p in (*ops[name].inputs, *ops[name].outputs)}
        unknown = [n for n in (*relation.inputs, *relation.outputs) if n not in known]
        if unknown:
            raise OperatorPackageError(
                f"relation of {name}: {', '.join(unknown)} is no input or output; there are: {', '.join(sorted(known))}"
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
    neighbours = {h for s in sources for pattern in ("*.h", "*.hpp") for h in s.parent.glob(pattern)}
    aclnn = sorted((work / "op_api/include").glob("*.h"))
    library = CppLibrary(
        name="libcust_opapi",
        sources=(adapter, *sources),
        headers=(header, *aclnn, *sorted(neighbours), *sorted(include.rglob("*.h"))),
        include_directories=(header.parent, work / "op_api/include", include),
        library_directories=(toolkit_directory() / "lib64",),
        libraries=("opapi", "ascendcl"),
    )
    compiled = library.build()
    (work / _LIBRARY).parent.mkdir(parents=True)
    shutil.copyfile(compiled, work / _LIBRARY)
    (work / _LIBRARY).chmod(0o755)


@dataclass(frozen=True, slots=True)
class OperatorPackage:
    """An installed operator package that has host kernels."""

    directory: Path
    metadata: Mapping[str, Mapping[str, Any]]

    def relation(self, op_type: str) -> Relation | None:
        """The operator's shape relation, if the package carries one."""
        text = self.metadata.get(op_type, {}).get("relation")
        return parse_relation(text) if text else None

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
    path = directory / _METADATA
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
        library = package.directory / _LIBRARY
        if library not in _loaded:
            try:
                _loaded[library] = ctypes.CDLL(str(library), ctypes.RTLD_GLOBAL)
            except OSError as error:
                raise OperatorPackageError(f"{library} does not load: {error}") from error
        packages.append(package)
    return tuple(packages)


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
    in_place = frozenset(prototype.in_place)
    defaults = {a.name: a.default for a in prototype.attrs}
    required = frozenset(a.name for a in prototype.attrs if a.required)
    kinds = [
        *("tensors" if p.kind is ParameterKind.DYNAMIC else "tensor" for p in prototype.inputs),
        *(a.type.value for a in prototype.attrs),
        *(
            "tensors" if p.kind is ParameterKind.DYNAMIC else "tensor"
            for p in prototype.outputs
            if p.name not in in_place
        ),
    ]
    call = bridge().call_kernel

    def all_attrs(given: Mapping[str, Any]) -> dict[str, Any]:
        missing = sorted(required - set(given))
        if missing:
            raise HostRuntimeError(f"{op_type}: required attr {', '.join(missing)} is not set on the node")
        return {name: given.get(name, default) for name, default in defaults.items()}

    def infer(*inputs: Any, **given: Any) -> list[Any]:
        if relation is None:
            raise HostRuntimeError(
                f"{op_type}: {package.directory} has no shape relation for it; "
                f"build it with relations={{{op_type!r}: '…'}}"
            )
        named = {p.name: value for p, value in zip(prototype.inputs, inputs, strict=True)}
        used = {name: named[name] for name in relation.inputs}
        specs = relation.infer(_map(used, lambda t: tuple(t.shape)), _map(used, _dtype_name), all_attrs(given))
        by_name = dict(zip(relation.outputs, specs, strict=True))
        return [named[p.name] if p.name in in_place else _empty(by_name.get(p.name)) for p in prototype.outputs]

    def run(*inputs: Any, **given: Any) -> list[Any]:
        outputs = infer(*inputs, **given)
        fresh = [o for p, o in zip(prototype.outputs, outputs, strict=True) if p.name not in in_place]
        call(op_type, [*inputs, *all_attrs(given).values(), *fresh], kinds)
        return outputs

    def run_python(*inputs: Any, **given: Any) -> Any:
        assert function is not None
        return outputs_of(prototype, function, inputs, all_attrs(given))

    def _empty(spec: Any) -> Any:
        if isinstance(spec, list):
            return [_empty(item) for item in spec]
        shape, dtype = spec
        return torch.empty(shape, dtype=getattr(torch, dtype) if isinstance(dtype, str) else torch_dtype(dtype))

    by_running = relation is None and function is not None
    return HostKernel(
        op_type=op_type,
        function=run_python if by_running else run,
        inputs=tuple(p.name for p in prototype.inputs),
        attrs=frozenset(defaults),
        dynamic_inputs=frozenset(p.name for p in prototype.inputs if p.kind is ParameterKind.DYNAMIC),
        infer=None if by_running else infer,
    )


def _map(values: Mapping[str, Any], function: Callable[[Any], Any]) -> dict[str, Any]:
    return {
        name: [function(v) for v in value] if isinstance(value, list) else None if value is None else function(value)
        for name, value in values.items()
    }


def _dtype_name(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def outputs_of(
    prototype: OpPrototype, function: Callable[..., Any], inputs: Sequence[Any], attrs: Mapping[str, Any]
) -> list[Any]:
    """Call a Python kernel; its results in the order of the prototype's outputs.

    Raises:
        OperatorPackageError: it returned another number of outputs.
    """
    result = function(*inputs, **attrs)
    named = dict(zip((p.name for p in prototype.inputs), inputs, strict=True))
    in_place = prototype.in_place
    results = [] if result is None else list(result) if isinstance(result, (tuple, list)) else [result]
    expected = [p.name for p in prototype.outputs if p.name not in in_place]
    if len(results) == len(expected):
        fresh = dict(zip(expected, results, strict=True))
        return [named[p.name] if p.name in in_place else fresh[p.name] for p in prototype.outputs]
    if len(results) == len(prototype.outputs):
        return results
    raise OperatorPackageError(
        f"{prototype.op_type}: the Python kernel returned {len(results)} outputs; the prototype has {len(prototype.outputs)} "
        f"({', '.join(p.name for p in prototype.outputs)}), of them {len(in_place)} in place"
    )


def call_python_kernel(package_dir: str, op_type: str, arguments: Sequence[Any]) -> None:
    """Run a package's Python kernel on the arguments of an aclnn call: inputs, attrs, outputs to write.

    Raises:
        OperatorPackageError: an output has another shape than the caller allocated.
    """
    package = open_package(Path(package_dir))
    function = package.python_function(op_type) if package is not None else None
    if package is None or function is None:
        raise OperatorPackageError(f"{package_dir} has no Python kernel for {op_type}")
    prototype = _package_prototype(package.directory, op_type)
    inputs = arguments[: len(prototype.inputs)]
    attrs = {
        a.name: a.default if value is None else value
        for a, value in zip(prototype.attrs, arguments[len(inputs) :], strict=False)
    }
    targets = iter(arguments[len(inputs) + len(attrs) :])
    results = outputs_of(prototype, function, inputs, attrs)
    named = dict(zip((p.name for p in prototype.inputs), inputs, strict=True))
    for parameter, result in zip(prototype.outputs, results, strict=True):
        target = named[parameter.name] if parameter.name in prototype.in_place else next(targets)
        _write(op_type, parameter.name, target, result)


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
