"""Content of a shape relation as a value: inputs, outputs and clauses, and the origin of its names."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ascend_graph.shapes.dtypes import CATEGORY
from ascend_graph.shapes.syntax import Binary, Expr, Name, Tensor, WhereDefinition, bound_names, expressions, walk


@dataclass(frozen=True, slots=True)
class Statement:
    """A shape relation without its evaluation."""

    input_tensors: tuple[Tensor, ...]
    output_tensors: tuple[Tensor, ...]
    clauses: tuple[WhereDefinition | Expr, ...] = ()
    #: Cache of derived facts by name, because every registration needs them again.
    _facts: dict[str, Any] = field(default_factory=dict, init=False, compare=False, repr=False)

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the relation's inputs, in order."""
        if "inputs" not in self._facts:
            self._facts["inputs"] = tuple(tensor.name for tensor in self.input_tensors)
        found: tuple[str, ...] = self._facts["inputs"]
        return found

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the relation's outputs, in order."""
        if "outputs" not in self._facts:
            self._facts["outputs"] = tuple(tensor.name for tensor in self.output_tensors)
        found: tuple[str, ...] = self._facts["outputs"]
        return found

    @property
    def free_names(self) -> frozenset[str]:
        """Names without an input, definition, index or dtype that gives them: each must be an attr of the operator."""
        if "free" not in self._facts:
            self._facts["free"] = frozenset(name.id for name in _uses(self)) - _given_names(self)
        found: frozenset[str] = self._facts["free"]
        return found

    @property
    def asked_for_none(self) -> frozenset[str]:
        """Names that the relation compares with None by ``is`` or ``is not``."""
        return frozenset(
            node.left.id
            for expression in _expressions(self)
            for node in walk(expression)
            if isinstance(node, Binary) and node.operator in ("is", "is not") and isinstance(node.left, Name)
        )

    @property
    def attr_names(self) -> frozenset[str]:
        """Names that are attrs if the operator has such attrs: free names, and dimensions."""
        if "attrs" not in self._facts:
            self._facts["attrs"] = self.free_names.union(*map(bound_names, self.input_tensors))
        found: frozenset[str] = self._facts["attrs"]
        return found

    def expressions(self) -> list[Expr]:
        """Return all expressions of the relation: sizes, dtypes, conditions and clauses."""
        return _expressions(self)

    def __hash__(self) -> int:
        if "hash" not in self._facts:
            self._facts["hash"] = hash((self.input_tensors, self.output_tensors, self.clauses))
        found: int = self._facts["hash"]
        return found

    def __str__(self) -> str:
        if "text" not in self._facts:
            text = f"{', '.join(map(str, self.input_tensors))} -> {', '.join(map(str, self.output_tensors))}".strip()
            self._facts["text"] = text + (f" where {', '.join(map(str, self.clauses))}" if self.clauses else "")
        found: str = self._facts["text"]
        return found


def dtype_symbols(relation: Statement) -> frozenset[str]:
    """Return the names that give inputs a common dtype: ``T`` in ``x[n]: T, w[n]: T -> y[n]: T``."""
    return frozenset(
        alternative.dtype.id
        for tensor in relation.input_tensors
        for alternative in tensor.alternatives
        if isinstance(alternative.dtype, Name) and alternative.dtype.id not in CATEGORY
    ) - frozenset(relation.inputs)


def _expressions(relation: Statement) -> list[Expr]:
    tensors = (*relation.input_tensors, *relation.output_tensors)
    found = [e for tensor in tensors for e in expressions(tensor)]
    return [*found, *(clause.value if isinstance(clause, WhereDefinition) else clause for clause in relation.clauses)]


def _uses(relation: Statement) -> list[Name]:
    return [node for e in _expressions(relation) for node in walk(e) if isinstance(node, Name)]


def _given_names(relation: Statement) -> frozenset[str]:
    given = set(relation.inputs) | set(CATEGORY) | dtype_symbols(relation) | {"_", "..."}
    given |= {clause.name for clause in relation.clauses if isinstance(clause, WhereDefinition)}
    for tensor in relation.input_tensors:
        given |= bound_names(tensor)
    for tensor in (*relation.input_tensors, *relation.output_tensors):
        given |= {tensor.index} if tensor.index else set()
    return frozenset(given)
