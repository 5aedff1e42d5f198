"""Calls of Python kernels: their results are copied into the tensors that the caller allocated."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from ascend_graph.host.packages.format import OperatorPackageError, open_package, package_prototype
from ascend_graph.host.packages.output_specs import output_sources
from ascend_graph.host.time_limit import within_limit
from ascend_graph.host.triton.nested import PythonKernelCall
from ascend_graph.prototypes import OpPrototype, Parameter, ParameterKind


def references(prototype: OpPrototype) -> dict[str, int]:
    """Return the output index of each in-place input, up to the first dynamic output.

    The indices after a dynamic output are unknown before a call.
    """
    found: dict[str, int] = {}
    for index, output in enumerate(prototype.outputs):
        if output.name in prototype.in_place:
            found[output.name] = index
        if output.kind is ParameterKind.DYNAMIC:
            break
    return found


@contextmanager
def _autograd_on_demand() -> Iterator[None]:
    """Let a kernel differentiate under ``torch.enable_grad``; the dispatch keys of autograd are off where calls run."""
    import torch

    with torch.no_grad():
        if torch.is_inference_mode_enabled():
            yield
            return
        keys, key = torch._C.DispatchKeySet, torch._C.DispatchKey
        off = torch._C._dispatch_tls_local_exclude_set() - (keys(key.AutogradFunctionality) | keys(key.ADInplaceOrView))
        with torch._C._ForceDispatchKeyGuard(torch._C._dispatch_tls_local_include_set(), off):
            yield


#: Function of inputs and attrs that returns every output in the prototype's order.
PythonOperator = Callable[[Sequence[Any], Mapping[str, Any]], Sequence[Any]]


def python_operator(prototype: OpPrototype, function: Callable[..., Any]) -> PythonOperator:
    """Wrap a Python kernel as a function of inputs and attrs that returns every output in the prototype's order."""
    sources = output_sources(prototype)
    fresh = [output for output, (_, i) in zip(prototype.outputs, sources, strict=True) if i is None]
    returned = fresh or prototype.outputs
    only_list = len(returned) == 1 and returned[0].kind is ParameterKind.DYNAMIC
    in_place = [i for _, i in sources if i is not None]
    op_type = prototype.op_type

    def call(inputs: Sequence[Any], attrs: Mapping[str, Any]) -> Sequence[Any]:
        with PythonKernelCall(), _autograd_on_demand():
            result = within_limit(f"{op_type}: the Python kernel", lambda: function(*inputs, **attrs))
        if only_list and isinstance(result, (tuple, list)) and not any(isinstance(r, (tuple, list)) for r in result):
            results: Sequence[Any] = (result,)
        elif isinstance(result, (tuple, list)):
            results = result
        else:
            results = (result,) if fresh or result is not None else ()
        if len(results) == len(sources):
            # In place, None says that the input holds the output.
            results = [
                inputs[i] if i is not None and r is None else r for r, (_, i) in zip(results, sources, strict=True)
            ]
            return _apart(results, sources, inputs, in_place) if in_place else results
        if len(results) == len(fresh):
            new = iter(results)
            results = [next(new) if i is None else inputs[i] for _, i in sources]
            return _apart(results, sources, inputs, in_place) if in_place else results
        names = ", ".join(name for name, _ in sources)
        raise OperatorPackageError(
            f"{op_type}: the Python kernel returned {len(results)} outputs; expected {len(sources)}, as the prototype "
            "has "
            f"({names}), of them {len(sources) - len(fresh)} in place"
        )

    return call


def _apart(
    results: Sequence[Any], sources: Sequence[tuple[str, int | None]], inputs: Sequence[Any], in_place: Sequence[int]
) -> list[Any]:
    """Return the results, with copies of those in the memory of in-place inputs, to which others are written first.

    A kernel may return ``k, q`` for ``q, k``, or ``q + 1, q`` for the new and the old value.
    """
    written = {t.untyped_storage()._cdata for i in in_place for t in _tensors(inputs[i])}

    def apart(result: Any, own: Any) -> Any:
        if isinstance(result, list | tuple):
            owners = own if isinstance(own, list | tuple) and len(own) == len(result) else [None] * len(result)
            return [apart(one, owner) for one, owner in zip(result, owners, strict=True)]
        lies_there = any(t.untyped_storage()._cdata in written for t in _tensors(result))
        return result.clone() if lies_there and result is not own else result

    return [apart(r, None if i is None else inputs[i]) for r, (_, i) in zip(results, sources, strict=True)]


def _tensors(value: Any) -> list[Any]:
    """Return the tensors of an argument: itself, or the elements of a list."""
    return [t for t in (value if isinstance(value, list | tuple) else [value]) if hasattr(t, "untyped_storage")]


def call_python_kernel(package_dir: str, op_type: str, arguments: Sequence[Any]) -> None:
    """Run a package's Python kernel on the arguments of an aclnn call: inputs, attrs and outputs to write.

    Raises:
        OperatorPackageError: an output's shape differs from the shape that the caller allocated.
    """
    _python_caller(package_dir, op_type)(arguments)


@cache
def _python_caller(package_dir: str, op_type: str) -> Callable[[Sequence[Any]], None]:
    import torch

    package = open_package(Path(package_dir))
    function = package.python_function(op_type) if package is not None else None
    if package is None or function is None:
        raise OperatorPackageError(f"{package_dir} has no Python kernel for {op_type}; build the package anew")
    prototype = package_prototype(package.directory, op_type)
    operator = python_operator(prototype, function)
    sources = output_sources(prototype)
    attrs = [(a.name, a.held_default) for a in prototype.attrs]
    inputs_end = len(prototype.inputs)
    attrs_end = inputs_end + len(attrs)

    lists = {n for n, p in enumerate(prototype.inputs) if p.kind is ParameterKind.DYNAMIC}
    fresh = [p for p in prototype.outputs if p.name not in prototype.in_place]
    lists |= {attrs_end + n for n, p in enumerate(fresh) if p.kind is ParameterKind.DYNAMIC}

    def call(arguments: Sequence[Any]) -> None:
        # An empty list is a null pointer to an aclnn function.
        arguments = [[] if a is None and n in lists else a for n, a in enumerate(arguments)]
        inputs = arguments[:inputs_end]
        given = zip(attrs, arguments[inputs_end:attrs_end], strict=True)
        results = operator(inputs, {name: default if value is None else value for (name, default), value in given})
        write_results(op_type, sources, inputs, arguments[attrs_end:], results)

    # At a graph break, Dynamo would trace into the kernel, which is not part of the model.
    disabled: Callable[[Sequence[Any]], None] = torch.compiler.disable(call)
    return disabled


def write_results(
    op_type: str,
    sources: Sequence[tuple[str, int | None]],
    inputs: Sequence[Any],
    fresh: Sequence[Any],
    results: Sequence[Any],
) -> None:
    """Copy the results of a Python kernel into its in-place inputs, and the others into ``fresh``.

    Raises:
        OperatorPackageError: A result differs from its place in kind, number of tensors or shape.
    """
    targets = iter(fresh)
    for (name, source), result in zip(sources, results, strict=True):
        _write(op_type, name, next(targets) if source is None else inputs[source], result)


def written_to(op_type: str, inputs: Sequence[Any], index: int | None, name: str, result: Any) -> Any:
    """Return an output of a Python kernel; if it is in-place, write it to its input and return that."""
    if index is None or inputs[index] is None:
        return result
    _write(op_type, name, inputs[index], result)
    return inputs[index]


def _write(op_type: str, name: str, target: Any, result: Any) -> None:
    """Copy the kernel's result for an output into what the caller allocated; do nothing for an absent output.

    Raises:
        OperatorPackageError: result and target differ in kind, number of tensors or shape.
    """
    if target is result:
        return
    if type(target) is type(result) and getattr(target, "shape", None) == getattr(result, "shape", ()):
        _copy(op_type, name, target, result)
        return
    kind = _kind_of(target)
    if kind != _kind_of(result):
        raise OperatorPackageError(_other_kind(op_type, name, target, result))
    if kind is _Kind.LIST:
        if len(target) != len(result):
            raise OperatorPackageError(
                f"{op_type}: the kernel returned {len(result)} tensors for output {name}; expected {len(target)}"
            )
        for n, (t, r) in enumerate(zip(target, result, strict=True)):
            _write(op_type, f"{name}[{n}]", t, r)
        return
    if target.shape != result.shape:
        raise OperatorPackageError(
            f"{op_type}: the kernel returned output {name} of shape {tuple(result.shape)}; "
            f"expected {tuple(target.shape)}, as the caller allocated. Correct the kernel or the relation"
        )
    _copy(op_type, name, target, result)


def _copy(op_type: str, name: str, target: Any, result: Any) -> None:
    if result.dtype is not target.dtype:
        import torch

        if not torch.can_cast(result.dtype, target.dtype):
            raise OperatorPackageError(_other_dtype(op_type, name, result, [target.dtype]))
    target.copy_(result)


def check_dtype(op_type: str, output: Parameter, result: Any) -> None:
    """Check that an output of a Python kernel has a dtype that the prototype lists.

    Raises:
        OperatorPackageError: It has another: a graph goes on with it, and an eager call does not.
    """
    from ascend_graph.host.dtypes import ge_dtype, torch_dtype

    for tensor in _tensors(result):
        if output.dtypes and ge_dtype(tensor.dtype) not in output.dtypes:
            raise OperatorPackageError(_other_dtype(op_type, output.name, tensor, map(torch_dtype, output.dtypes)))


def _other_dtype(op_type: str, name: str, result: Any, valid: Iterable[Any]) -> str:
    names = sorted({str(dtype).removeprefix("torch.") for dtype in valid})
    return (
        f"{op_type}: the Python kernel returned {str(result.dtype).removeprefix('torch.')} for output {name}; expected {', '.join(names)}. "
        f"Round what needs it, and convert it in the kernel with .to(torch.{names[0]})"
    )


def _other_kind(op_type: str, name: str, target: Any, result: Any) -> str:
    """Return the message for a kernel that returned another kind (tensor, list or None) than the caller expects."""
    returned = f"the Python kernel returned {_shown(result)} for output {name}"
    if target is None:
        return (
            f"{op_type}: {returned}, which is absent in this call; expected None. Return None where the relation says it, or "
            f"give {name} a shape there"
        )
    if result is None:
        return (
            f"{op_type}: {returned}, which the caller allocated; expected {_shown(target)}. For an output that is absent write "
            f"'{name}[…] if … else None' in the relation"
        )
    return f"{op_type}: {returned}; expected {_shown(target)}"


class _Kind(enum.Enum):
    """Kinds of value that a kernel can return for an output."""

    NOTHING, LIST, TENSOR, OTHER = range(4)


def _kind_of(value: Any) -> _Kind:
    if value is None:
        return _Kind.NOTHING
    if isinstance(value, (tuple, list)):
        return _Kind.LIST
    return _Kind.TENSOR if hasattr(value, "shape") else _Kind.OTHER


def _shown(value: Any) -> str:
    match _kind_of(value):
        case _Kind.NOTHING:
            return "None"
        case _Kind.LIST:
            return f"a list of {len(value)} tensors"
        case _Kind.TENSOR:
            return f"a tensor of shape {tuple(value.shape)}"
    return f"{type(value).__name__} {value!r}"
