"""Operator signature for differentiation, from a torch schema or a prototype."""

from __future__ import annotations

from dataclasses import dataclass

from ascend_graph.binding.synonyms import normalize
from ascend_graph.prototypes import DataType, Parameter
from ascend_graph.shapes import Relation
from ascend_graph.shapes.dtypes import CATEGORY
from ascend_graph.shapes.syntax import Name


@dataclass(frozen=True, slots=True)
class SignatureArgument:
    """Argument of an operator."""

    name: str
    #: Type of a value without its ``?``: ``Tensor``, ``Tensor[]``, ``float``, ``int[]``, …
    kind: str
    #: Name in the prototype, if it differs.
    also: str = ""
    #: True if a call may leave it out, or give None.
    optional: bool = False
    #: True if the operator writes to it.
    written: bool = False

    @property
    def is_tensor(self) -> bool:
        """True if it is a tensor or a list of tensors."""
        return self.kind.startswith("Tensor")

    @property
    def names(self) -> frozenset[str]:
        """Names, normalized."""
        return frozenset(normalize(name) for name in (self.name, self.also) if name)


@dataclass(frozen=True, slots=True)
class SignatureReturn:
    """Return of an operator; the name is empty if it has none."""

    name: str
    kind: str = "Tensor"
    #: True if it may have a floating or complex dtype.
    differentiable: bool = True


@dataclass(frozen=True, slots=True)
class Signature:
    """Operator as gradients see it."""

    name: str
    arguments: tuple[SignatureArgument, ...]
    results: tuple[SignatureReturn, ...]


_FLOATING = frozenset(
    d
    for d in DataType
    if d.name.startswith(("FLOAT", "COMPLEX", "DOUBLE", "BF16", "HIFLOAT")) or d is DataType.UNDEFINED
)
_FLOAT_CATEGORY = CATEGORY["float32"]


def is_differentiable(output: Parameter, relation: Relation | None) -> bool:
    """Return whether an output may have a floating or complex dtype, by the relation or else the prototype's dtypes.

    >>> from ascend_graph.prototypes import parse_text
    >>> from ascend_graph.shapes import parse_relation
    >>> text = "REG_OP(TopK).INPUT(x, ALL()).OUTPUT(y, ALL()).OUTPUT(i, ALL()).OP_END_FACTORY_REG(TopK)"
    >>> outputs = parse_text(text).prototypes[0].outputs
    >>> [is_differentiable(o, parse_relation("x[n] -> y[n], i[n]: int32")) for o in outputs]
    [True, False]
    """
    for tensor in relation.output_tensors if relation is not None else ():
        if tensor.name == output.name:
            fixed = [a.dtype.id for a in tensor.alternatives if isinstance(a.dtype, Name) and a.dtype.id in CATEGORY]
            if fixed and len(fixed) == len(tensor.alternatives):
                return any(CATEGORY[name] >= _FLOAT_CATEGORY for name in fixed)
    return not output.dtypes or not _FLOATING.isdisjoint(output.dtypes)
