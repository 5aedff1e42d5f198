"""What a shape relation says, as a value: inputs, outputs and clauses, and which names are given by what."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ascend_graph.shapes.dtypes import CATEGORY
from ascend_graph.shapes.syntax import Definition, Expr, Name, Tensor, bound_names, expressions, walk


@dataclass(frozen=True, slots=True)
class Statement:
    """A shape relation without what evaluates it."""

    input_tensors: tuple[Tensor, ...]
    output_tensors: tuple[Tensor, ...]
    clauses: tuple[Definition | Expr, ...] = ()
    #: What was found out, by its name: every registration asks again.
    _facts: dict[str, Any] = field(default_factory=dict, init=False, compare=False, repr=False)

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of the inputs the relation mentions, in its order."""
        return tuple(tensor.name for tensor in self.input_tensors)

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of the outputs, in order."""
        return tuple(tensor.name for tensor in self.output_tensors)

    @property
    def free_names(self) -> frozenset[str]:
        """The names that no input, definition, index or dtype gives: each must be an attr of the operator."""
        if "free" not in self._facts:
            self._facts["free"] = frozenset(name.id for name in _uses(self)) - _given_names(self)
        found: frozenset[str] = self._facts["free"]
        return found

    @property
    def attr_names(self) -> frozenset[str]:
        """The names that are attrs if the operator has attrs of these names: free names, and dimensions."""
        return self.free_names.union(*map(bound_names, self.input_tensors))

    def __str__(self) -> str:
        text = f"{', '.join(map(str, self.input_tensors))} -> {', '.join(map(str, self.output_tensors))}".strip()
        return text + (f" where {', '.join(map(str, self.clauses))}" if self.clauses else "")


def dtype_symbols(relation: Statement) -> frozenset[str]:
    """Names that tie the dtypes of inputs together: ``T`` in ``x[n]: T, w[n]: T -> y[n]: T``."""
    return frozenset(
        alternative.dtype.id
        for tensor in relation.input_tensors
        for alternative in tensor.alternatives
        if isinstance(alternative.dtype, Name) and alternative.dtype.id not in CATEGORY
    ) - frozenset(relation.inputs)


def _uses(relation: Statement) -> list[Name]:
    tensors = (*relation.input_tensors, *relation.output_tensors)
    found = [e for tensor in tensors for e in expressions(tensor)]
    found += [clause.value if isinstance(clause, Definition) else clause for clause in relation.clauses]
    return [node for e in found for node in walk(e) if isinstance(node, Name)]


def _given_names(relation: Statement) -> frozenset[str]:
    given = set(relation.inputs) | set(CATEGORY) | dtype_symbols(relation) | {"_", "..."}
    given |= {clause.name for clause in relation.clauses if isinstance(clause, Definition)}
    for tensor in relation.input_tensors:
        given |= bound_names(tensor)
    for tensor in (*relation.input_tensors, *relation.output_tensors):
        given |= {tensor.index} if tensor.index else set()
    return frozenset(given)
