"""Inputs and attrs of a prototype as targets of a schema's arguments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ascend_graph.binding.bound import Evidence, ValueSource
from ascend_graph.binding.op_schema import ArgumentKind, SchemaArgument
from ascend_graph.prototypes import Attr, AttrType, Parameter, ParameterKind


@dataclass(slots=True, eq=False)
class BindingTarget:
    """One input or attr of the prototype that may be fed."""

    parameter: Parameter | Attr
    index: int
    source: ValueSource | None = None

    @property
    def name(self) -> str:
        return self.parameter.name

    @property
    def is_input(self) -> bool:
        return isinstance(self.parameter, Parameter)

    @property
    def is_settled(self) -> bool:
        """True if ``arguments=`` names the source of its value."""
        return self.source is not None and self.source.evidence is Evidence.EXPLICIT

    @property
    def must_be_fed(self) -> bool:
        if isinstance(self.parameter, Parameter):
            return self.parameter.kind is not ParameterKind.OPTIONAL
        return self.parameter.required or not self.parameter.default_known

    def accepts(self, argument: SchemaArgument) -> bool:
        if isinstance(self.parameter, Parameter):
            return _input_accepts(self.parameter, argument)
        return argument.kind in _ATTR_KINDS[self.parameter.type][0] and (
            argument.list_depth in _ATTR_KINDS[self.parameter.type][1]
        )


_NUMBERS = (ArgumentKind.INT, ArgumentKind.BOOL, ArgumentKind.SCALAR)


#: Arguments that may feed an attr as they are: the kinds of an element, and the list depths. A hook may convert any
#: value.
_ATTR_KINDS: Mapping[AttrType, tuple[tuple[ArgumentKind, ...], tuple[int, ...]]] = {
    AttrType.INT: ((*_NUMBERS, ArgumentKind.DTYPE), (0,)),
    AttrType.FLOAT: ((*_NUMBERS, ArgumentKind.FLOAT), (0,)),
    AttrType.BOOL: (_NUMBERS, (0,)),
    AttrType.STRING: ((ArgumentKind.STR,), (0,)),
    AttrType.BYTES: ((ArgumentKind.STR,), (0,)),
    AttrType.TYPE: ((ArgumentKind.DTYPE, ArgumentKind.INT), (0,)),
    AttrType.TENSOR: ((*_NUMBERS, ArgumentKind.FLOAT), (0, 1)),
    AttrType.NAMED_ATTRS: ((), ()),
    AttrType.LIST_INT: ((*_NUMBERS, ArgumentKind.DTYPE), (0, 1)),
    AttrType.LIST_FLOAT: ((*_NUMBERS, ArgumentKind.FLOAT), (0, 1)),
    AttrType.LIST_BOOL: (_NUMBERS, (0, 1)),
    AttrType.LIST_STRING: ((ArgumentKind.STR,), (0, 1)),
    AttrType.LIST_TYPE: ((ArgumentKind.DTYPE, ArgumentKind.INT), (0, 1)),
    AttrType.LIST_TENSOR: ((), ()),
    AttrType.LIST_LIST_INT: (_NUMBERS, (1, 2)),
    AttrType.LIST_LIST_FLOAT: ((*_NUMBERS, ArgumentKind.FLOAT), (1, 2)),
    AttrType.LIST_NAMED_ATTRS: ((), ()),
}


def _input_accepts(parameter: Parameter, argument: SchemaArgument) -> bool:
    dynamic = parameter.kind is ParameterKind.DYNAMIC
    if argument.is_tensor:
        return argument.list_depth <= dynamic
    constant = argument.kind in (*_NUMBERS, ArgumentKind.FLOAT, ArgumentKind.COMPLEX) and argument.list_depth <= 1
    return constant and not dynamic


def names_of(targets: Iterable[BindingTarget]) -> str:
    return ", ".join(target.name for target in targets) or "none"


def kind_of(target: BindingTarget) -> str:
    parameter = target.parameter
    if isinstance(parameter, Parameter):
        return f"the {parameter.kind.value} input"
    return f"the {'required' if parameter.required else 'optional'} {parameter.type.value} attr"
