"""Comparison of a relation that an author's InferShape follows with runs of the eager kernel.

InferShape serves GE, the kernel eager mode: two sources of one author, of which one may be older than the other.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import torch

from ascend_graph.binding.bound import Binding, Conversion
from ascend_graph.dispatch.meta import MetaFunction
from ascend_graph.inference.functions.values import usable_dtypes
from ascend_graph.inference.running import KernelError, Returned, Runner
from ascend_graph.prototypes import Attr, AttrType, ParameterKind
from ascend_graph.registration.request import RegistrationError
from ascend_graph.shapes import Relation, RelationError, ShapeError
from ascend_graph.shapes.samples import RelationSampleError, sample

#: Number of runs, and the sizes of each: those that most kernels take first.
_SIZES = ((16, 32, 48, 64), (8, 16, 24, 32), (16, 32, 64, 96), (2, 3, 5, 6))
_LIMIT = 5.0
_PLAIN: Mapping[AttrType, Any] = {
    AttrType.INT: 1,
    AttrType.FLOAT: 1.0,
    AttrType.BOOL: False,
    AttrType.STRING: "",
    AttrType.LIST_INT: (1,),
}


def compare_with_kernel(overload: Any, binding: Binding, relation: Relation, meta: MetaFunction, source: str) -> int:
    """Compare a relation with a few runs of the overload's kernel.

    Args:
        overload: The operator.
        binding: Its binding.
        relation: The relation, in the prototype's names.
        meta: The meta function made from it.
        source: The origin of the relation, for the message.

    Returns:
        The number of runs that agree; 0 where no kernel is here, or it refuses these inputs.

    Raises:
        RegistrationError: A run contradicts the relation; the message has both answers and the call.
    """
    if not _is_plain(binding):
        return 0
    on_npu = torch._C._dispatch_has_kernel_for_dispatch_key(overload.name(), "PrivateUse1")
    if not on_npu and not torch._C._dispatch_has_kernel_for_dispatch_key(overload.name(), "CPU"):
        return 0
    agreed = 0
    try:
        with Runner(overload, overload._schema, "npu" if on_npu else "cpu", _LIMIT) as runner:
            for seed, sizes in enumerate(_SIZES):
                values = _values(overload, binding, relation, random.Random(seed), sizes)
                run = None if values is None else runner.call(values)
                if values is None or run is None or run.error:
                    continue
                _check(overload, meta, values, run.outputs, relation, source)
                agreed += 1
    except KernelError:
        return agreed  # it hangs, crashes or breaks its schema, which opcheck reports
    return agreed


def _is_plain(binding: Binding) -> bool:
    """Return whether every input and attr is an argument as it is."""
    sources = [source for source in (*binding.inputs, *binding.attrs) if source is not None]
    return all(s.argument is not None and s.hook is None and s.conversion is Conversion.DIRECT for s in sources)


def _values(
    overload: Any, binding: Binding, relation: Relation, rng: random.Random, sizes: tuple[int, ...]
) -> dict[str, Any] | None:
    """Return the arguments of a call that the relation takes, or None if none is found."""
    prototype = binding.prototype
    attrs = {a.name: _usual(a) for a in prototype.attrs}
    try:
        found = sample(relation, attrs, rng, sizes=sizes, tries=10)
    except (RelationSampleError, RelationError, TypeError):
        return None
    values = {a.name: a.default_value if a.has_default_value() else None for a in overload._schema.arguments}
    arguments = binding.schema.arguments
    for parameter, source in zip(prototype.inputs, binding.inputs, strict=True):
        shape = found.shapes.get(parameter.name)
        if source is None or source.argument is None or parameter.kind is ParameterKind.OPTIONAL:
            continue
        if shape is None or isinstance(shape, list):
            return None  # the relation says nothing of an input that the kernel needs
        made = torch.rand(shape).add_(0.1).to(usable_dtypes(parameter.dtypes)[0])
        values[arguments[source.argument].name] = made
    for attr, source in zip(prototype.attrs, binding.attrs, strict=True):
        if source is not None and source.argument is not None:
            value = attrs[attr.name]
            values[arguments[source.argument].name] = list(value) if isinstance(value, tuple) else value
    return values


def _usual(attr: Attr) -> Any:
    return _PLAIN.get(attr.type) if attr.required or attr.default is None else attr.default


def _check(
    overload: Any,
    meta: MetaFunction,
    values: Mapping[str, Any],
    outputs: tuple[Any, ...],
    relation: Relation,
    source: str,
) -> None:
    """Raise RegistrationError if a run has other shapes or dtypes than the meta function makes."""
    given = {n: v.to("meta") if isinstance(v, torch.Tensor) else v for n, v in values.items()}
    try:
        made = meta(*(given[a.name] for a in overload._schema.arguments))
    except (ShapeError, RelationError):
        return
    promised = made if isinstance(made, tuple) else (made,)
    for name, mine, theirs in zip(relation.outputs, promised, outputs, strict=False):
        if not isinstance(theirs, Returned) or not isinstance(mine, torch.Tensor):
            continue
        if (tuple(mine.shape), mine.dtype) != (theirs.shape, theirs.dtype):
            inputs = ", ".join(f"{n}{list(v.shape)}" for n, v in values.items() if isinstance(v, torch.Tensor))
            raise RegistrationError(
                f"{overload.name()}: the relation {relation} of {source} contradicts the eager kernel: of {inputs} it makes "
                f"{name}{list(mine.shape)}: {mine.dtype}, the kernel {name}{list(theirs.shape)}: {theirs.dtype}. Correct the one "
                "that is wrong, or write shape= for the eager operator"
            )
