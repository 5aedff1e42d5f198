"""Cost of a call of an operator: floating-point operations, by a formula over the relation's dimensions, and bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._pytree import tree_map_only
from torch.utils.flop_counter import flop_registry, register_flop_formula

from ascend_graph.errors import AscendGraphError
from ascend_graph.inference.running import bind
from ascend_graph.shapes import Relation, RelationError, parse_relation


class FlopsError(AscendGraphError):
    """Error of an invalid formula in ``flops=``, or of a formula that exists already."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Least cost of one call."""

    #: Floating-point operations; None if no formula is declared.
    flops: int | None
    #: Bytes of every tensor read and every tensor written, each once.
    bytes: int


class CostModel:
    """Cost model of an operator: from the shapes, dtypes and attrs of a call to its cost.

    Args:
        operator: Its name in messages.
        relation: Its shape relation, in the schema's names.
        schema: The operator's schema.
        formula: The number of floating-point operations over the relation's dimensions and the attrs.

    Raises:
        FlopsError: The formula is not arithmetic of the relation's dimensions and the operator's attrs.
    """

    def __init__(self, operator: str, relation: Relation, schema: torch.FunctionSchema, formula: str | None) -> None:
        self.relation, self.schema = relation, schema
        #: Arguments that are tensors, or lists of them.
        self.tensors = tuple(a.name for a in schema.arguments if "Tensor" in str(a.type))
        #: Other arguments.
        self.attrs = tuple(a.name for a in schema.arguments if a.name not in self.tensors)
        self._read = tuple(a.name for a in schema.arguments if a.name in self.tensors and not a.is_out)
        self._counted = None if formula is None else _counted(operator, relation, formula, schema)

    @property
    def needed(self) -> frozenset[str]:
        """Attrs that the cost depends on."""
        names = (
            self.relation.attr_names if self._counted is None else self.relation.attr_names | self._counted.attr_names
        )
        return names & frozenset(self.attrs)

    def flops(self, shapes: Mapping[str, Any], dtypes: Mapping[str, Any], attrs: Mapping[str, Any]) -> int | None:
        """Compute the number of floating-point operations by the formula; return None without one."""
        if self._counted is None:
            return None
        (result,) = self._counted.infer(self._mentioned(shapes), self._mentioned(dtypes), attrs)
        assert isinstance(result, tuple)
        return int(result[0][0])

    def cost(self, shapes: Mapping[str, Any], dtypes: Mapping[str, Any], attrs: Mapping[str, Any]) -> Cost:
        """Compute the cost of a call.

        Args:
            shapes: Sizes by tensor argument: a list of sizes for a list of tensors, ``None`` for an absent one.
            dtypes: Dtypes in the same form, as names (``"float16"``).
            attrs: The other arguments by name, all of them.

        Raises:
            ShapeError: The call does not fit the relation.
        """
        outputs = self.relation.infer(self._mentioned(shapes), self._mentioned(dtypes), attrs)
        read = sum(_bytes(shapes[name], dtypes[name]) for name in self._read)
        return Cost(self.flops(shapes, dtypes, attrs), read + sum(map(_output_bytes, outputs)))

    def facts(
        self, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
        """Return the shapes, dtypes and attrs of a call."""
        values = bind(self.schema, args, kwargs)
        shapes = {n: tree_map_only(torch.Tensor, lambda t: tuple(t.shape), values[n]) for n in self.tensors}
        dtypes = {n: tree_map_only(torch.Tensor, _dtype_name, values[n]) for n in self.tensors}
        return shapes, dtypes, {name: values[name] for name in self.attrs}

    def _mentioned(self, facts: Mapping[str, Any]) -> dict[str, Any]:
        return {name: facts[name] for name in self.relation.inputs}


def _counted(operator: str, relation: Relation, formula: str, schema: torch.FunctionSchema) -> Relation:
    if not str(formula).strip():
        raise FlopsError(f"{operator}: flops={formula!r} is empty; write a formula over {relation}, or leave it out")
    inputs = ", ".join(map(str, relation.input_tensors))
    clauses = f" where {', '.join(map(str, relation.clauses))}" if relation.clauses else ""
    try:
        counted = parse_relation(f"{inputs} -> flops[{formula}]{clauses}")
        strangers = sorted(counted.free_names - {a.name for a in schema.arguments})
    except RelationError as error:
        raise FlopsError(f"{operator}: flops={formula!r} must be a formula over {relation}: {error}") from None
    if strangers:
        raise FlopsError(
            f"{operator}: flops={formula!r}: {', '.join(strangers)} must be a dimension or attr of {relation}"
        )
    return counted


def _dtype_name(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _size(shape: Sequence[int], dtype: str) -> int:
    elements = 1
    for size in shape:
        elements *= size
    return elements * int(getattr(torch, dtype).itemsize)


def _bytes(shape: Any, dtype: Any) -> int:
    if shape is None:
        return 0
    if isinstance(dtype, str):
        return _size(shape, dtype)
    return sum(_bytes(s, d) for s, d in zip(shape, dtype, strict=True))


def _output_bytes(output: Any) -> int:
    if output is None:
        return 0
    return sum(map(_output_bytes, output)) if isinstance(output, list) else _size(*output)


@dataclass(slots=True)
class FlopsHandle:
    """Handle of a registered formula, by which it is unregistered."""

    packet: Any

    def remove(self) -> None:
        """Unregister the formula. A second call does nothing."""
        flop_registry.pop(self.packet, None)


def register_flops(overload: Any, model: CostModel) -> FlopsHandle:
    """Register the formula of an operator with ``torch.utils.flop_counter``."""
    packet = overload.overloadpacket
    if packet in flop_registry:
        raise FlopsError(f"{overload} has a formula of its operations already; leave flops= out to keep it")

    def operations(*args: Any, out_val: Any = None, **kwargs: Any) -> int | None:
        return model.flops(*model.facts(args, kwargs))

    register_flop_formula(packet, get_raw=True)(operations)
    return FlopsHandle(packet)
