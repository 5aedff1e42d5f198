"""Binding as a value: the source of each prototype input and attr, and the output of each schema return.

The meta function, the converter, the eager kernel and generated C++ read it; :mod:`ascend_graph.binding.arguments` finds it.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ascend_graph.binding.dtype_constraints import DtypeConstraint, find_dtype_constraints
from ascend_graph.binding.dtype_ints import Numbers
from ascend_graph.binding.op_schema import OpSchema
from ascend_graph.prototypes import Attr, OpPrototype, Parameter
from ascend_graph.shapes import Relation

Hook = Callable[[Any], Any] | Mapping[Any, Any]


class Evidence(enum.Enum):
    """Evidence that two names mean the same thing."""

    EXPLICIT = "arguments="
    SAME_NAME = "same name"
    NORMALIZED = "same name but for case and underscores"
    ENDING = "same name but for an ending such as ref, optional or in"
    FIRST_TENSOR = "first tensor, first input"
    SYNONYM = "synonyms"
    IN_PLACE = "output named like the input"
    RELATION = "named by the shape relation"
    ONLY = "the only one"
    POSITION = "order of the returns, which have no names"
    #: No evidence, and none needed: the converter is not made from the binding.
    UNSETTLED = "not asked"


class Conversion(enum.Enum):
    """Conversion of an argument's value to GE's form; a hook comes before it."""

    #: A tensor for an input, or a value for an attr, passed on unchanged.
    DIRECT = "direct"
    #: A dtype, as ``torch.dtype`` or torch's number of it → GE's number of it.
    DTYPE = "dtype"
    #: A Python value or list → a Const node.
    CONST = "Const"


@dataclass(frozen=True, slots=True)
class Argument:
    """The long form of a value in ``arguments=``: a GE name, and the conversion of the value.

    >>> Argument("axes", default=(-2, -1))
    Argument(name='axes', convert=None, default=(-2, -1), copy=None)
    """

    #: The GE name.
    name: str
    #: A function of the value, or a table of the allowed values.
    convert: Hook | None = None
    #: The value that None stands for, before ``convert``. Without it, None leaves an attr at the prototype's default.
    default: Any = None
    #: True if GE works on a copy of a tensor. By default it does if the prototype writes an input that the schema does
    #: not; False lets GE write over the caller's tensor.
    copy: bool | None = None


@dataclass(frozen=True, slots=True)
class ValueSource:
    """Source of the value of one input or attr."""

    #: The position in the schema's arguments; None for a value that ``arguments=`` gives.
    argument: int | None
    evidence: Evidence
    conversion: Conversion = Conversion.DIRECT
    hook: Hook | None = None
    #: The value, or a function of all arguments by name, if ``argument`` is None; otherwise the value for None.
    value: Any = None
    copy: bool | None = None
    #: The reason for the conversion, if the types do not make it obvious.
    reason: str = ""
    #: The numbering of a dtype's value. GE's own number goes into the attr as it is.
    numbers: Numbers | None = None


@dataclass(frozen=True, slots=True)
class ReturnSource:
    """Source of one return: an output's position, or an argument that is returned itself."""

    output: int | None
    evidence: Evidence
    argument: int | None = None
    #: A function of all arguments by name that computes a return that is not an output; None if graphs do not have it.
    compute: Callable[[Mapping[str, Any]], Any] | None = None


@dataclass(frozen=True, slots=True)
class Mutation:
    """An argument that the schema writes, and the output that holds its new value."""

    argument: int
    output: int
    #: True if the prototype's output has the name of the input, so that GE writes over it.
    in_place: bool


@dataclass(frozen=True, slots=True)
class Binding:
    """Complete mapping of a schema to a prototype.

    ``inputs`` and ``attrs`` follow the prototype, with None for an input or attr that nothing feeds.
    """

    schema: OpSchema
    prototype: OpPrototype
    inputs: tuple[ValueSource | None, ...]
    attrs: tuple[ValueSource | None, ...]
    returns: tuple[ReturnSource, ...]
    mutations: tuple[Mutation, ...] = ()
    #: Inputs that the prototype writes although the schema does not: they are copied first.
    copied: tuple[int, ...] = ()
    #: Arguments that the prototype has nothing for; a call may only leave them at their default or None.
    unused: tuple[int, ...] = ()
    #: Outputs that no return takes.
    dropped: tuple[int, ...] = ()
    #: Arguments that only the shapes of outputs need.
    shape_only: tuple[int, ...] = ()
    #: Open questions that may matter, each with the line to write.
    doubts: tuple[str, ...] = ()
    #: Groups of inputs of one dtype.
    dtype_constraints: tuple[DtypeConstraint, ...] = ()

    def ge_dtype_arguments(self) -> frozenset[str]:
        """Return the schema's arguments whose values are GE's dtype numbers."""
        return frozenset(
            self.schema.arguments[source.argument].name
            for source in self.attrs
            if source is not None and source.argument is not None and source.numbers is Numbers.GE
        )

    def defaults_of_none(self) -> dict[str, tuple[Any, bool]]:
        """Return the graph's value for each argument's None, and whether that is GE's dtype number.

        Without a value in ``arguments=`` it is the default of the attr. An attr whose values a hook converts is left
        out, because its default is a value after the hook.
        """
        found: dict[str, tuple[Any, bool]] = {}
        for attr, source in zip(self.prototype.attrs, self.attrs, strict=True):
            if source is None or source.argument is None:
                continue
            argument = self.schema.arguments[source.argument]
            if source.value is not None:
                found[argument.name] = source.value, False
            elif argument.optional and source.hook is None and not attr.required and attr.default_known:
                is_dtype = source.numbers is not None and isinstance(attr.default, int)
                found[argument.name] = attr.default, is_dtype
        return found

    def with_relation(self, relation: Relation | None) -> Binding:
        """Return the binding with the dtype facts of a shape relation, in the prototype's or the schema's names."""
        if relation is None or {*relation.inputs, *relation.free_names} <= {*self.argument_names().values()}:
            return replace(self, dtype_constraints=find_dtype_constraints(self.prototype, relation))
        positions = {
            self.schema.arguments[source.argument].name: n
            for n, source in enumerate(self.inputs)
            if source is not None and source.argument is not None
        }
        return replace(self, dtype_constraints=find_dtype_constraints(self.prototype, relation, positions))

    def argument_names(self) -> dict[str, str]:
        """Return the prototype's name of each bound argument, by the schema's name."""
        pairs: list[tuple[Parameter | Attr, ValueSource | None]] = []
        pairs += zip(self.prototype.inputs, self.inputs, strict=True)
        pairs += zip(self.prototype.attrs, self.attrs, strict=True)
        names: dict[str, str] = {}
        for parameter, source in pairs:
            if source is not None and source.argument is not None:
                names.setdefault(self.schema.arguments[source.argument].name, parameter.name)
        return names
