"""Shape and dtype inference for a kernel's outputs, from a relation or from the author's InferShape."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ascend_graph.environment import HostRuntimeError
from ascend_graph.host.packages.format import OperatorPackage
from ascend_graph.prototypes import DataType, OpPrototype, Parameter, ParameterKind
from ascend_graph.prototypes.naming import INFER_SUFFIX
from ascend_graph.shapes import NAMES, Relation

if TYPE_CHECKING:
    import torch


def kernel_kinds(prototype: OpPrototype) -> list[str]:
    """Return how the kernel takes each input, attr and new output: ``tensor``, ``tensors`` or the attr's type."""
    return [
        *("tensors" if p.kind is ParameterKind.DYNAMIC else "tensor" for p in prototype.inputs),
        *(a.type.value for a in prototype.attrs),
        *(
            "tensors" if p.kind is ParameterKind.DYNAMIC else "tensor"
            for p in prototype.outputs
            if p.name not in prototype.in_place
        ),
    ]


def output_specs(package: OperatorPackage, prototype: OpPrototype) -> _Specs | None:
    """Return the function that infers an operator's output shapes and dtypes, or None without one.

    It uses the package's relation, or else its InferShape function.
    """
    from ascend_graph.host.bridge import bridge

    relation = package.relation(prototype.op_type)
    if relation is not None:
        return _specs_by_relation(prototype, relation)
    if package.infers_shapes(prototype.op_type):
        return _specs_by_library(prototype, bridge().call_kernel, kernel_kinds(prototype))
    return None


#: Function that maps inputs and attrs to output shapes and dtypes by name.
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
    """Return the function that calls the author's InferShape and InferDataType.

    Each output arrives as a tensor of dtype, rank and sizes.
    """
    import torch

    names = [p.name for p in prototype.outputs]
    given = [*kinds[: len(prototype.inputs) + len(prototype.attrs)], *("tensor" for _ in names)]

    def specs(inputs: Sequence[Any], attrs: Mapping[str, Any]) -> Mapping[str, Any]:
        # Nothing is remembered: an InferShape function may read values.
        found = [torch.empty(2 + _MOST_DIMENSIONS, dtype=torch.int64) for _ in names]
        call(prototype.op_type + INFER_SUFFIX, [*inputs, *attrs.values(), *found], given)
        lists = [f.tolist() for f in found]
        return {name: _library_spec(prototype, name, v[0], v[1], v[2:]) for name, v in zip(names, lists, strict=True)}

    return specs


def _library_spec(
    prototype: OpPrototype, name: str, dtype: int, rank: int, sizes: Sequence[int]
) -> tuple[tuple[int, ...], DataType] | None:
    """Decode one output of InferShape and InferDataType; return None if it is absent: no elements and no dtype."""
    shape = tuple(sizes[: max(rank, 0)])  # -1 of a scalar
    if DataType(dtype) is not DataType.UNDEFINED:
        return shape, DataType(dtype)
    if shape == (0,):
        return None
    raise HostRuntimeError(
        f"{prototype.op_type}: InferDataType gave output {name} of shape {list(shape)} no dtype; expected one, or shape [0] "
        "for an output that is absent"
    )


#: Maximum rank of a gert::Shape.
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
    """Return the name of the dtype whose GE number is a node attr's value, or None if it is not a dtype number."""
    from ascend_graph.host.dtypes import torch_dtype

    try:
        return str(torch_dtype(value)).removeprefix("torch.") if isinstance(value, int) else None
    except HostRuntimeError:
        return None


def _dtype_name(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def dtype_when_absent(output: Parameter) -> torch.dtype:
    """Return the dtype of the empty tensor that stands for an absent output in a GE graph."""
    import torch

    from ascend_graph.host.dtypes import torch_dtype

    for dtype in output.dtypes:
        with contextlib.suppress(HostRuntimeError):
            return torch_dtype(dtype)
    return torch.float32


def output_sources(prototype: OpPrototype) -> list[tuple[str, int | None]]:
    """Return each output's name and the index of the input it aliases, or None if it is not in-place."""
    inputs = {p.name: i for i, p in enumerate(prototype.inputs)}
    return [(p.name, inputs.get(p.name)) for p in prototype.outputs]
