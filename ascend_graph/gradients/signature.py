"""What of an operator decides how it is differentiated, whether it is known as a torch schema or as a prototype."""

from __future__ import annotations

from dataclasses import dataclass

from ascend_graph.binding.synonyms import normalize
from ascend_graph.prototypes import DataType, Parameter
from ascend_graph.shapes import Relation
from ascend_graph.shapes.dtypes import CATEGORY
from ascend_graph.shapes.syntax import Name


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument."""

    name: str
    #: The type of a value without its ``?``: ``Tensor``, ``Tensor[]``, ``float``, ``int[]``, …
    kind: str
    #: What the prototype calls it, if that is another name.
    also: str = ""
    #: Whether a call may leave it out, or give None.
    optional: bool = False
    #: Whether the operator writes to it.
    written: bool = False

    @property
    def is_tensor(self) -> bool:
        """Whether it is a tensor or a list of tensors."""
        return self.kind.startswith("Tensor")

    @property
    def names(self) -> frozenset[str]:
        """Its names, normalized."""
        return frozenset(normalize(name) for name in (self.name, self.also) if name)


@dataclass(frozen=True, slots=True)
class Result:
    """One return; without a name where nobody gives it one."""

    name: str
    kind: str = "Tensor"
    #: Whether it may be of a floating or complex dtype.
    differentiable: bool = True


@dataclass(frozen=True, slots=True)
class Signature:
    """An operator, as far as gradients are concerned."""

    name: str
    arguments: tuple[Argument, ...]
    results: tuple[Result, ...]


_FLOATING = frozenset(
    d
    for d in DataType
    if d.name.startswith(("FLOAT", "COMPLEX", "DOUBLE", "BF16", "HIFLOAT")) or d is DataType.UNDEFINED
)
_FLOAT_CATEGORY = CATEGORY["float32"]


def is_differentiable(output: Parameter, relation: Relation | None) -> bool:
    """Whether an output may be of a floating or complex dtype: what the relation fixes counts, then the prototype's set.

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
