"""How many floating-point operations a call of an operator has, by a formula over the dimensions of its relation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._pytree import tree_map_only
from torch.utils.flop_counter import flop_registry, register_flop_formula

from ascend_graph.errors import AscendGraphError
from ascend_graph.inference.running import bind
from ascend_graph.shapes import Relation, RelationError, parse_relation


class FlopsError(AscendGraphError):
    """A formula of ``flops=`` that is none, or that the operator has already."""


def flop_formula(operator: str, relation: Relation, formula: str, schema: torch.FunctionSchema) -> Callable[..., int]:
    """The function that ``torch.utils.flop_counter`` calls: from the arguments of a call to the number of operations.

    Raises:
        FlopsError: The formula is no arithmetic of the relation's dimensions and the operator's attrs.
    """
    inputs = ", ".join(map(str, relation.input_tensors))
    clauses = f" where {', '.join(map(str, relation.clauses))}" if relation.clauses else ""
    try:
        counted = parse_relation(f"{inputs} -> flops[{formula}]{clauses}")
        names = {a.name for a in schema.arguments}
        strangers = sorted(set(counted.free_names) - names)
    except RelationError as error:
        raise FlopsError(f"{operator}: flops={formula!r} is no formula over {relation}: {error}") from None
    if strangers:
        raise FlopsError(f"{operator}: flops={formula!r}: {', '.join(strangers)} is no dimension or attr of {relation}")

    def operations(*args: Any, out_val: Any = None, **kwargs: Any) -> int:
        values = bind(schema, args, kwargs)
        shapes = {n: tree_map_only(torch.Tensor, lambda t: tuple(t.shape), values[n]) for n in relation.inputs}
        dtypes = {n: tree_map_only(torch.Tensor, _dtype_name, values[n]) for n in relation.inputs}
        attrs = {a.name: values[a.name] for a in schema.arguments if "Tensor" not in str(a.type)}
        (result,) = counted.infer(shapes, dtypes, attrs)
        assert isinstance(result, tuple)
        return int(result[0][0])

    return operations


def _dtype_name(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


@dataclass(slots=True)
class FlopsHandle:
    """A registered formula that can be taken back."""

    packet: Any

    def remove(self) -> None:
        """Take the formula back. A second call does nothing."""
        flop_registry.pop(self.packet, None)


def register_flops(overload: Any, operations: Callable[..., int]) -> FlopsHandle:
    """Give ``torch.utils.flop_counter`` the formula of an operator."""
    packet = overload.overloadpacket
    if packet in flop_registry:
        raise FlopsError(f"{overload} has a formula of its operations already; leave flops= out to keep it")
    register_flop_formula(packet, get_raw=True)(operations)
    return FlopsHandle(packet)
