"""Parameters of an aclnn function as targets of a prototype's inputs, attrs and outputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ascend_graph.aclnn import AclnnParameter, Direction, ValueKind
from ascend_graph.aclnn.roles import is_reference_name
from ascend_graph.binding.calls.call import NUMBERS, Part
from ascend_graph.binding.synonyms import HEADER_ENDINGS, differ_in_endings, stem
from ascend_graph.prototypes import Attr, AttrType, Parameter, ParameterKind

_ATTR_VALUES: Mapping[AttrType, tuple[ValueKind, ...]] = {
    AttrType.INT: (ValueKind.INT, ValueKind.DTYPE, ValueKind.SCALAR),
    AttrType.FLOAT: (ValueKind.FLOAT, ValueKind.SCALAR),
    AttrType.BOOL: (ValueKind.BOOL, ValueKind.SCALAR),
    AttrType.STRING: (ValueKind.STRING,),
    AttrType.TYPE: (ValueKind.DTYPE, ValueKind.INT),
    AttrType.LIST_INT: (ValueKind.INTS, ValueKind.SCALAR_LIST),
    AttrType.LIST_FLOAT: (ValueKind.FLOATS, ValueKind.SCALAR_LIST),
    AttrType.LIST_BOOL: (ValueKind.BOOLS, ValueKind.SCALAR_LIST),
    AttrType.LIST_TYPE: (ValueKind.INTS,),
}


TENSORS = (ValueKind.TENSOR, ValueKind.TENSOR_LIST)


@dataclass(slots=True, eq=False)
class CallTarget:
    """Input, attr or output that the function has to take."""

    part: Part
    index: int
    declared: Parameter | Attr
    in_place: bool = False
    taken: bool = False

    @property
    def name(self) -> str:
        return self.declared.name

    @property
    def described(self) -> str:
        if isinstance(self.declared, Attr):
            return f"attr {self.declared.type.value} {self.name}"
        return f"{self.part.value} {self.name}{' (written in place)' if self.in_place else ''}"

    def takes(self, value: ValueKind) -> bool:
        """Return whether the types agree."""
        if isinstance(self.declared, Attr):
            return value in _ATTR_VALUES.get(self.declared.type, ())
        if self.declared.kind is ParameterKind.DYNAMIC:
            return value is ValueKind.TENSOR_LIST
        if value is ValueKind.TENSOR:
            return True
        if self.part is Part.OUTPUT:
            return value is ValueKind.HOST_OUTPUT
        return value in NUMBERS and not self.in_place and NUMBERS[value].issuperset(self.declared.dtypes)


def stem_of(name: str) -> str:
    """Return a name without case, underscores, and the endings that aclnn functions add.

    >>> [stem_of(name) for name in ("biasOptional", "cacheRefOptional", "yOut", "out", "layout", "cout")]
    ['bias', 'cache', 'y', 'out', 'layout', 'cout']
    """
    return stem(name, HEADER_ENDINGS)


def differ_in_header_endings(a: str, b: str) -> bool:
    return differ_in_endings(a, b, HEADER_ENDINGS)


def can_be(parameter: AclnnParameter, target: CallTarget) -> bool:
    """Return whether a parameter can be made from a part of the prototype, regardless of names."""
    if not target.takes(parameter.value) or (parameter.value is ValueKind.HOST_OUTPUT and parameter.type.pointers != 1):
        return False
    if target.part is not Part.OUTPUT or parameter.direction is not Direction.INOUT:
        return True
    return parameter.name == target.name and is_reference_name(parameter.name)
