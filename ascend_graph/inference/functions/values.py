"""Dtypes and attrs of a shape function, as searches and relations have them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from ascend_graph.inference.domains import AttrArgument, safe_name
from ascend_graph.prototypes import Attr, AttrType, DataType, OpPrototype, Parameter
from ascend_graph.prototypes.dtypes import TORCH_NAMES
from ascend_graph.shapes import Relation
from ascend_graph.shapes.functions import Answer, InferredOutput, InputSpec, ShapeFunction

_KINDS: Mapping[AttrType, str] = {
    AttrType.INT: "int",
    AttrType.LIST_INT: "int[]",
    AttrType.BOOL: "bool",
    AttrType.FLOAT: "float",
    AttrType.STRING: "str",
    AttrType.TYPE: "dtype",
}


PLAIN: Mapping[AttrType, Any] = {
    AttrType.INT: 1,
    AttrType.FLOAT: 1.0,
    AttrType.BOOL: False,
    AttrType.STRING: "",
    AttrType.TYPE: DataType.FLOAT,
}


DTYPES: Mapping[DataType, torch.dtype] = {
    dtype: getattr(torch, name) for dtype, name in TORCH_NAMES.items() if hasattr(torch, name)
}


NUMBERS: Mapping[torch.dtype, DataType] = {dtype: number for number, dtype in DTYPES.items()}


def attr_argument(
    attr: Attr, texts: Sequence[str], dtypes: Sequence[torch.dtype] | None = None, length: int = 0
) -> AttrArgument:
    """Return an attr as inference needs it.

    Args:
        attr: The attr.
        texts: Values to try of a ``String``.
        dtypes: The dtypes to try, of an attr that is one.
        length: The number of items that a ``ListInt`` must have, 0 if any; a default of another length goes over it.
    """
    name, has_default = safe_name(attr.name), not attr.required and attr.default_known
    if dtypes is not None or attr.type is AttrType.TYPE:
        return AttrArgument(name, "dtype", choices=tuple(str(d).removeprefix("torch.") for d in dtypes or ()))
    default = attr.default if has_default else PLAIN.get(attr.type)
    if attr.type is AttrType.STRING:
        return AttrArgument(name, "str", False, default, has_default, tuple(dict.fromkeys(texts)))
    if attr.type is AttrType.LIST_INT:
        listed = list(default) if isinstance(default, tuple) else None
        return AttrArgument(name, "int[]", False, listed, has_default, length=length and (len(listed or ()) or length))
    return AttrArgument(name, _KINDS.get(attr.type, "other"), False, default, has_default)


def usable_dtypes(dtypes: Sequence[DataType]) -> tuple[torch.dtype, ...]:
    """Return torch's dtypes of a parameter; the usual ones if the prototype does not say."""
    found = tuple(DTYPES[d] for d in dtypes if d in DTYPES and not str(DTYPES[d]).startswith("torch.q"))
    return found or (torch.float32, torch.float16)


#: Dtypes that most functions take, of those that a prototype lists.
_USUAL = (torch.float32, torch.float16, torch.bfloat16)


def tried_texts(function: ShapeFunction) -> tuple[str, ...]:
    """Return the values to try of a ``String``: the texts of the function, and one that it does not have."""
    return (*function.texts, "other")


def input_dtypes(prototype: OpPrototype) -> list[tuple[torch.dtype, ...]]:
    """Return torch's dtypes of each input, the usual ones of the first input first, with those at their places."""
    found = [usable_dtypes(p.dtypes) for p in prototype.inputs]
    if not found:
        return []
    order = sorted(range(len(found[0])), key=lambda place: _rank(found[0][place]))
    return [
        tuple(some[place] for place in order) if len(some) == len(order) else tuple(sorted(some, key=_rank))
        for some in found
    ]


def _rank(dtype: torch.dtype) -> int:
    return _USUAL.index(dtype) if dtype in _USUAL else len(_USUAL)


def first_dtype(dtypes: Sequence[DataType]) -> DataType:
    return NUMBERS[min(usable_dtypes(dtypes), key=_rank)]


def dtype_attrs(relation: Relation, prototype: OpPrototype) -> set[str]:
    """Return the attrs that are dtypes: by their type, or as a relation takes them."""
    from ascend_graph.binding.dtype_ints import dtype_ints

    return {a.name for a in prototype.attrs if a.type is AttrType.TYPE} | set(dtype_ints(prototype, relation, {}))


def relation_attrs(relation: Relation, prototype: OpPrototype, attrs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attrs with dtypes in place of GE's numbers where the relation takes them for dtypes."""
    types = dtype_attrs(relation, prototype)
    return {
        n: DTYPES.get(DataType(v), v) if n in types and isinstance(v, int) and v in _MEMBERS else v
        for n, v in attrs.items()
    }


_MEMBERS = frozenset(map(int, DataType))


def on_each(value: Any, function: Callable[[Any], Any]) -> Any:
    if value is None:
        return None
    return [function(v) for v in value] if isinstance(value, list) else function(value)


def with_declared_dtypes(
    prototype: OpPrototype, inputs: Sequence[Any], outputs: Sequence[Answer], *, steady: bool = False
) -> list[Answer]:
    """Return the outputs with the dtypes that the prototype says where the function does not.

    Args:
        prototype: The prototype.
        inputs: The inputs of the call.
        outputs: The function's answers.
        steady: Whether an output follows the same input in every call, even into a dtype that it does not list, rather
            than one whose dtype it lists.
    """

    def with_dtype(parameter: Parameter, output: Answer) -> Answer:
        if output is None:
            return None
        if not isinstance(output, InferredOutput):
            return [with_dtype(parameter, one) for one in output]  # type: ignore[misc]
        if output.dtype is not None:
            return output
        return replace(output, dtype=_declared_dtype(prototype, parameter, inputs, steady))

    return [with_dtype(parameter, output) for parameter, output in zip(prototype.outputs, outputs, strict=True)]


def _declared_dtype(prototype: OpPrototype, output: Parameter, inputs: Sequence[Any], steady: bool) -> DataType:
    """Return an output's dtype by the prototype: its only one, that of the input of its symbol, or of its dtypes."""
    if len(output.dtypes) == 1:
        return DataType(output.dtypes[0])
    given = [
        (p, spec if isinstance(spec, InputSpec) else spec[0])
        for p, spec in zip(prototype.inputs, inputs, strict=True)
        if spec
    ]
    alike = [
        *(spec for p, spec in given if output.symbol is not None and p.symbol == output.symbol),
        *(spec for p, spec in given if p.name == output.name),
        *(spec for p, spec in given if p.dtypes == output.dtypes),
        *(spec for p, spec in given if p.dtypes and {*p.dtypes} <= {*output.dtypes}),
        *(spec for p, spec in given if steady and {*p.dtypes} & {*output.dtypes}),
        *(spec for _, spec in given if spec.dtype in output.dtypes),
    ]
    if alike:
        return DataType(alike[0].dtype)
    if output.dtypes:
        return DataType(output.dtypes[0])
    return DataType(given[0][1].dtype) if given else DataType.FLOAT
