"""Dtypes and attrs of a shape function, as searches and relations have them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from ascend_graph.inference.domains import AttrArgument, safe_name
from ascend_graph.prototypes import Attr, AttrType, DataType, OpPrototype
from ascend_graph.prototypes.dtypes import TORCH_NAMES
from ascend_graph.shapes import Relation

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


def attr_argument(attr: Attr, texts: Sequence[str], dtypes: Sequence[torch.dtype] | None = None) -> AttrArgument:
    """Return an attr as inference needs it; ``dtypes`` are those to try, of one that is a dtype."""
    name, has_default = safe_name(attr.name), not attr.required and attr.default_known
    if dtypes is not None or attr.type is AttrType.TYPE:
        return AttrArgument(name, "dtype", choices=tuple(str(d).removeprefix("torch.") for d in dtypes or ()))
    default = attr.default if has_default else PLAIN.get(attr.type)
    if attr.type is AttrType.STRING:
        choices = tuple(dict.fromkeys((*texts, "other")))
        return AttrArgument(name, "str", False, default, has_default, choices)
    if attr.type is AttrType.LIST_INT:
        default = list(default) if isinstance(default, tuple) else default
    return AttrArgument(name, _KINDS.get(attr.type, "other"), False, default, has_default)


def usable_dtypes(dtypes: Sequence[DataType]) -> tuple[torch.dtype, ...]:
    """Return torch's dtypes of a parameter; the usual ones if the prototype does not say."""
    found = tuple(DTYPES[d] for d in dtypes if d in DTYPES and not str(DTYPES[d]).startswith("torch.q"))
    return found or (torch.float32, torch.float16)


def first_dtype(dtypes: Sequence[DataType]) -> DataType:
    return NUMBERS[usable_dtypes(dtypes)[0]]


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
