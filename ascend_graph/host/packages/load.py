"""Load the kernels of installed packages into the graph engine."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ascend_graph.environment import HostRuntimeError
from ascend_graph.errors import AscendGraphError
from ascend_graph.host.packages.format import (
    LIBRARY,
    OperatorPackage,
    OperatorPackageError,
    open_package,
    package_prototype,
)
from ascend_graph.host.packages.output_specs import dtype_when_absent, kernel_kinds, output_sources, output_specs
from ascend_graph.host.packages.python_kernels import (
    PythonOperator,
    check_dtype,
    python_operator,
    references,
    write_results,
    written_to,
)
from ascend_graph.prototypes import OpPrototype, ParameterKind, package_directories

if TYPE_CHECKING:
    from ascend_graph.host.kernels import HostKernel

_lock = threading.Lock()


_kernels: dict[str, HostKernel | None] = {}


_loaded: dict[Path, ctypes.CDLL] = {}


def installed_packages() -> tuple[OperatorPackage, ...]:
    """Load the libraries of the packages with host kernels and return the packages in CANN's search order.

    Raises:
        OperatorPackageError: ``ASCEND_CUSTOM_OPP_PATH`` names a missing directory, or a library does not load.
    """
    for part in os.environ.get("ASCEND_CUSTOM_OPP_PATH", "").split(os.pathsep):
        if part and not Path(part).is_dir():
            raise OperatorPackageError(f"ASCEND_CUSTOM_OPP_PATH names {part}, which is not a directory; correct it")
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
                raise OperatorPackageError(
                    f"{library} does not load: {_why(error)}; build it anew for this machine"
                ) from error
        packages.append(package)
    return tuple(packages)


def _why(error: OSError) -> str:
    """Return the loader's message, or advice to rebuild a library that was built with another version."""
    # Symbols that only our own libraries have: those of the kernel API and of operator packages.
    if "ascendc_host" in str(error) or "ascendgraphRegisterKernel" in str(error):
        return (
            "it was built by another version of ascend_graph; build it again with this one, as with ascend-graph build"
        )
    return str(error)


def find_package_kernel(op_type: str) -> HostKernel | None:
    """Return an installed package's kernel for a GE operator in the graph engine's form, or None without one."""
    with _lock:
        if op_type not in _kernels:
            package = next((p for p in installed_packages() if op_type in p.metadata), None)
            _kernels[op_type] = None if package is None else package_kernel(package, op_type)
        return _kernels[op_type]


def package_kernel(package: OperatorPackage, op_type: str) -> HostKernel:
    """Return a package's kernel for a GE operator in the graph engine's form; the package's library is loaded."""
    from ascend_graph.host.kernels import HostKernel

    prototype = package_prototype(package.directory, op_type)  # that of its library, whatever the program has loaded
    function = package.python_function(op_type)
    by_running = package.relation(op_type) is None and function is not None
    operator = _PackagedOperator(package, prototype, None if function is None else python_operator(prototype, function))
    inputs = frozenset(p.name for p in prototype.inputs)
    return HostKernel(
        op_type=op_type,
        function=operator.run_python if by_running else operator.run,
        inputs=tuple(p.name for p in prototype.inputs),
        attrs=frozenset(operator.defaults),
        dynamic_inputs=frozenset(p.name for p in prototype.inputs if p.kind is ParameterKind.DYNAMIC),
        infer=None if by_running else operator.infer,
        inferred_from=inputs if by_running else package.inputs_of_infer_shape(prototype),
        written_inputs=inputs & frozenset(prototype.in_place),
        references=references(prototype),
        # The author's function may hand an input back, or a view of one; outputs that it is not asked for are allocated.
        views=inputs if by_running else frozenset(),
        optional_outputs=tuple(name for name, _ in operator.sources) if by_running else (),
    )


class _PackagedOperator:
    """An operator of a package: its attrs, the outputs of a call, and the call of its kernel."""

    def __init__(self, package: OperatorPackage, prototype: OpPrototype, python: PythonOperator | None) -> None:
        import torch

        from ascend_graph.host.bridge import bridge
        from ascend_graph.host.dtypes import torch_dtype

        self.meta, self.dtypes, self.numbered_dtype = torch.empty, torch, torch_dtype
        self.package, self.op_type, self.python = package, prototype.op_type, python
        self.outputs, self.sources = prototype.outputs, output_sources(prototype)
        self.defaults = {a.name: a.held_default for a in prototype.attrs}
        self.required = frozenset(a.name for a in prototype.attrs if a.required)
        self.kinds = kernel_kinds(prototype)
        self.specs_of = output_specs(package, prototype)
        self.absent = {p.name: dtype_when_absent(p) for p in prototype.outputs}
        self.call, self.memory = bridge().call_kernel, bridge().device_memory

    def attrs(self, given: Mapping[str, Any]) -> dict[str, Any]:
        if not self.required <= given.keys():
            missing = sorted(self.required - given.keys())
            raise HostRuntimeError(f"{self.op_type}: required attr {', '.join(missing)} is not set on the node")
        return {name: given.get(name, default) for name, default in self.defaults.items()}

    def specs(self, inputs: Sequence[Any], attrs: Mapping[str, Any]) -> Mapping[str, Any]:
        if self.specs_of is None:
            raise HostRuntimeError(
                f"{self.op_type}: {self.package.directory} has neither a shape relation nor an InferShape function for it; "
                f"build it with relations={{{self.op_type!r}: '…'}}"
            )
        return self.specs_of(inputs, attrs)

    def allocated(self, inputs: Sequence[Any], specs: Mapping[str, Any], make: Callable[..., Any]) -> list[Any]:
        return [self.made(name, specs.get(name), make) if i is None else inputs[i] for name, i in self.sources]

    def made(self, name: str, spec: Any, make: Callable[..., Any]) -> Any:
        if spec is None:
            return make((0,), dtype=self.absent[name])
        if isinstance(spec, list):
            return [self.made(name, item, make) for item in spec]
        shape, dtype = spec
        return make(shape, dtype=getattr(self.dtypes, dtype) if isinstance(dtype, str) else self.numbered_dtype(dtype))

    def infer(self, /, *inputs: Any, **given: Any) -> list[Any]:
        return self.allocated(inputs, self.specs(inputs, self.attrs(given)), self.meta)

    def run(self, /, *inputs: Any, **given: Any) -> Any:
        attrs = self.attrs(given)
        specs = self.specs(inputs, attrs)
        outputs = self.allocated(inputs, specs, self.memory)
        # For an absent output an aclnn call has a null pointer. A device's kernel sees what GE has: a tensor without elements.
        fresh = [
            None if specs.get(name) is None and not self.package.infers_shapes(self.op_type) else output
            for output, (name, i) in zip(outputs, self.sources, strict=True)
            if i is None
        ]
        if self.python is None:
            self.call(self.op_type, [*inputs, *attrs.values(), *fresh], self.kinds)
        else:  # what the package's library would call; the way through C takes three times as long
            self.call_python(self.python, inputs, attrs, fresh)
        return outputs[0] if len(outputs) == 1 else outputs

    def call_python(
        self, python: PythonOperator, inputs: Sequence[Any], attrs: Mapping[str, Any], fresh: Sequence[Any]
    ) -> None:
        try:
            write_results(self.op_type, self.sources, inputs, fresh, python(inputs, attrs))
        except AscendGraphError:
            raise
        except Exception as error:
            raise HostRuntimeError(f"{type(error).__name__}: {error}") from error

    def run_python(self, /, *inputs: Any, **given: Any) -> Any:
        assert self.python is not None
        results = self.python(inputs, self.attrs(given))
        for output, result in zip(self.outputs, results, strict=True):
            check_dtype(self.op_type, output, result)
        # A kernel may return what an input becomes; later nodes read the input's own memory.
        pairs = zip(self.sources, results, strict=True)
        return [written_to(self.op_type, inputs, i, name, result) for (name, i), result in pairs]
