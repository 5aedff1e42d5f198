"""Comparison of a relation's promise for a call with the outputs of the kernel."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from ascend_graph.dispatch.meta_dtypes import TORCH
from ascend_graph.inference.domains import OperatorSignature
from ascend_graph.inference.running import Returned
from ascend_graph.shapes import Relation, RelationError, ShapeError, parse_relation
from ascend_graph.shapes.syntax import Like, Name


def refusal(relation: Relation, signature: OperatorSignature, values: Mapping[str, Any]) -> str:
    """Return the reason for which a relation refuses the inputs of a run, or an empty text."""
    try:
        _promised(relation, signature, values)
    except (ShapeError, RelationError) as error:
        return str(error)
    return ""


def compare_run(
    relation: Relation,
    signature: OperatorSignature,
    values: Mapping[str, Any],
    outputs: Sequence[Any],
    *,
    may_refuse: bool = False,
) -> str:
    """Describe the difference between a relation and one run, or return an empty text.

    A relation that refuses the inputs differs from the run, unless it may refuse them.
    """
    try:
        promised = _promised(relation, signature, values)
    except (ShapeError, RelationError) as error:
        return "" if may_refuse else f"{relation} refuses an input that runs: {error}"
    for name, said, output in zip(relation.outputs, promised, outputs, strict=True):
        got = [_spec(t) for t in output] if isinstance(output, list) else _spec(output)
        if got != said:
            shapes = {n: shapes_of(values[n]) for n in relation.inputs}
            return f"{name}: {relation} says {said}, the kernel returned {got} for {shapes}"
    return ""


def valid(relation: Relation, shapes: Mapping[str, Any], attrs: Mapping[str, Any]) -> bool:
    """Return whether shapes and attrs fit a relation; dtypes are not checked."""
    shapes = {n: shapes.get(n) for n in relation.inputs}
    dtypes = {
        n: None if s is None else ["float32"] * len(s) if isinstance(s, list) else "float32" for n, s in shapes.items()
    }
    try:
        relation.infer(shapes, dtypes, attrs)
    except (ShapeError, RelationError):
        return False
    return True


def _promised(relation: Relation, signature: OperatorSignature, values: Mapping[str, Any]) -> list[Any]:
    names = relation.inputs
    shapes = {n: shapes_of(values[n]) for n in names if values.get(n) is not None}
    dtypes = {n: dtypes_of(values[n]) for n in names if values.get(n) is not None}
    specs = relation.infer(shapes, dtypes, {a.name: values[a.name] for a in signature.attrs}, system=TORCH)
    return [
        [(tuple(s), d) for s, d in spec] if isinstance(spec, list) else spec and (tuple(spec[0]), spec[1])
        for spec in specs
    ]


def _spec(output: Returned | None) -> tuple[tuple[int, ...], torch.dtype] | None:
    return None if output is None else (output.shape, output.dtype)


def spec_of(value: Any) -> Any:
    """Return the part of an argument that tells calls apart: shape, dtype and strides, or the value."""
    if isinstance(value, list) and value and isinstance(value[0], torch.Tensor):
        return [spec_of(item) for item in value]
    return (tuple(value.shape), value.dtype, value.stride()) if isinstance(value, torch.Tensor) else value


def shapes_of(value: Any) -> Any:
    """Return the shape of a tensor, the shapes of a list of tensors, or ``None`` for an absent one."""
    if value is None:
        return None
    return [tuple(t.shape) for t in value] if isinstance(value, list) else tuple(value.shape)


def dtypes_of(value: Any) -> Any:
    """Return the dtype of a tensor, or the dtypes of a list of tensors."""
    return [t.dtype for t in value] if isinstance(value, list) else value.dtype


def flat(shapes: Iterable[Any]) -> Iterator[tuple[int, ...]]:
    """Yield all shapes, including those in lists."""
    for shape in shapes:
        if isinstance(shape, list):
            yield from shape
        else:
            yield shape


def contiguous(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of a contiguous tensor of this shape."""
    return tuple(torch.empty(tuple(shape), device="meta").stride())


def same_strides(output: Returned, strides: Sequence[int]) -> bool:
    """Return whether the strides are equal, ignoring dimensions of size 1 and empty tensors."""
    return 0 in output.shape or all(
        a == b for a, b, size in zip(output.strides, strides, output.shape, strict=True) if size != 1
    )


def is_like(output: Returned, source: torch.Tensor) -> bool:
    """Return whether an output has the shape of an input, and the strides that ``torch.empty_like`` gives."""
    if output.shape != tuple(source.shape):
        return False
    meta = torch.empty_strided(source.shape, source.stride(), device="meta")
    return same_strides(output, torch.empty_like(meta).stride())


def listed(value: Any) -> list[Any]:
    """Return a list as it is, and another value as a list of one."""
    return value if isinstance(value, list) else [value]


def with_like(relation: Relation, number: int, source: str) -> Relation:
    """Return the relation with one output as ``like source``."""
    tensor = relation.output_tensors[number]
    (alternative,) = tensor.alternatives if len(tensor.alternatives) == 1 else (None,)
    if alternative is None:
        return relation
    first = relation.inputs[0]
    dtype = alternative.dtype if alternative.dtype is not None else Name(first) if first != source else None
    outputs = list(relation.output_tensors)
    outputs[number] = replace(tensor, alternatives=(replace(alternative, shape=Like(Name(source)), dtype=dtype),))
    return parse_relation(str(replace(relation, output_tensors=tuple(outputs))))
