"""What a relation promises of a call, beside what the kernel returned."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch

from ascend_graph.dispatch.meta import TORCH
from ascend_graph.inference.running import Returned
from ascend_graph.shapes import Relation, RelationError, ShapeError
from ascend_graph.shapes.domains import Signature


def refusal(relation: Relation, signature: Signature, values: Mapping[str, Any]) -> str:
    """Why a relation refuses the inputs of a run, or an empty text."""
    try:
        _promised(relation, signature, values)
    except (ShapeError, RelationError) as error:
        return str(error)
    return ""


def compare_run(relation: Relation, signature: Signature, values: Mapping[str, Any], outputs: Sequence[Any]) -> str:
    """How a relation differs from one run, or an empty text."""
    try:
        promised = _promised(relation, signature, values)
    except (ShapeError, RelationError) as error:
        return f"{relation} refuses an input that runs: {error}"
    for name, said, output in zip(relation.outputs, promised, outputs, strict=True):
        got = [_spec(t) for t in output] if isinstance(output, list) else _spec(output)
        if got != said:
            shapes = {n: shapes_of(values[n]) for n in relation.inputs}
            return f"{name}: {relation} says {said}, the kernel returned {got} for {shapes}"
    return ""


def valid(relation: Relation, shapes: Mapping[str, Any], attrs: Mapping[str, Any]) -> bool:
    """Whether shapes and attrs fit a relation; what dtypes it has is not asked."""
    shapes = {n: shapes.get(n) for n in relation.inputs}
    dtypes = {
        n: None if s is None else ["float32"] * len(s) if isinstance(s, list) else "float32" for n, s in shapes.items()
    }
    try:
        relation.infer(shapes, dtypes, attrs)
    except (ShapeError, RelationError):
        return False
    return True


def _promised(relation: Relation, signature: Signature, values: Mapping[str, Any]) -> list[Any]:
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
    """What of an argument tells calls apart."""
    if isinstance(value, list) and value and isinstance(value[0], torch.Tensor):
        return [spec_of(item) for item in value]
    return (tuple(value.shape), value.dtype, value.stride()) if isinstance(value, torch.Tensor) else value


def shapes_of(value: Any) -> Any:
    """The shape of a tensor, or the shapes of a list of them; ``None`` of none."""
    if value is None:
        return None
    return [tuple(t.shape) for t in value] if isinstance(value, list) else tuple(value.shape)


def dtypes_of(value: Any) -> Any:
    """The dtype of a tensor, or the dtypes of a list of them."""
    return [t.dtype for t in value] if isinstance(value, list) else value.dtype


def flat(shapes: Iterable[Any]) -> Iterator[tuple[int, ...]]:
    """All shapes, those in lists too."""
    for shape in shapes:
        if isinstance(shape, list):
            yield from shape
        else:
            yield shape


def contiguous(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of a contiguous tensor of a shape."""
    return tuple(torch.empty(tuple(shape), device="meta").stride())


def same_strides(output: Returned, strides: Sequence[int]) -> bool:
    """Equal where it matters: the stride of a dimension of size 1 means nothing, nor do any of an empty tensor."""
    return 0 in output.shape or all(
        a == b for a, b, size in zip(output.strides, strides, output.shape, strict=True) if size != 1
    )


def is_like(output: Returned, source: torch.Tensor) -> bool:
    """Whether an output has the shape of an input, and the strides that ``torch.empty_like`` gives."""
    if output.shape != tuple(source.shape):
        return False
    meta = torch.empty_strided(source.shape, source.stride(), device="meta")
    return same_strides(output, torch.empty_like(meta).stride())


def listed(value: Any) -> list[Any]:
    """A list as it is, another value as a list of one."""
    return value if isinstance(value, list) else [value]
