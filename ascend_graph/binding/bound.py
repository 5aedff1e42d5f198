"""Which schema argument feeds which prototype input or attr, and which output is which return: what a binding is.

The meta function, the converter, the eager kernel and generated C++ read it; :mod:`ascend_graph.binding.arguments` finds it.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ascend_graph.binding.dtype_ints import Numbers
from ascend_graph.binding.op_schema import OpSchema
from ascend_graph.binding.ties import Tie, find_ties
from ascend_graph.prototypes import Attr, OpPrototype, Parameter
from ascend_graph.shapes import Relation

Hook = Callable[[Any], Any] | Mapping[Any, Any]


class Evidence(enum.Enum):
    """Why two names are taken for the same thing."""

    EXPLICIT = "arguments="
    SAME_NAME = "same name"
    NORMALIZED = "same name but for case and underscores"
    FIRST_TENSOR = "first tensor, first input"
    SYNONYM = "synonyms"
    IN_PLACE = "output named like the input"
    RELATION = "named by the shape relation"
    ONLY = "the only one"
    POSITION = "order of the returns, which have no names"
    #: Nothing says it, and nothing asks: the converter is not made from the binding.
    UNSETTLED = "not asked"


class Conversion(enum.Enum):
    """How the value of an argument becomes what GE wants; a hook comes before it."""

    #: A tensor for an input, a value for an attr: handed on.
    DIRECT = "direct"
    #: A dtype, as ``torch.dtype`` or torch's number of it → GE's number of it.
    DTYPE = "dtype"
    #: A Python value or list → a Const node.
    CONST = "Const"


@dataclass(frozen=True, slots=True)
class Argument:
    """The long form of a value of ``arguments=``: what feeds what, and how.

    >>> Argument("axes", default=(-2, -1))
    Argument(name='axes', convert=None, default=(-2, -1), copy=None)
    """

    #: The GE name.
    name: str
    #: A function of the value, or a table of the allowed ones.
    convert: Hook | None = None
    #: What None stands for, before ``convert``. Without it None leaves an attr at the prototype's default.
    default: Any = None
    #: For a tensor: whether GE works on a copy. By default it does where the prototype writes an input that the schema
    #: does not; False lets GE write over the caller's tensor.
    copy: bool | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """Where the value of one input or attr comes from."""

    #: The position in the schema's arguments; None for a value that ``arguments=`` gives.
    argument: int | None
    evidence: Evidence
    conversion: Conversion = Conversion.DIRECT
    hook: Hook | None = None
    #: The value, or a function of all arguments by name, where ``argument`` is None; otherwise what None stands for.
    value: Any = None
    copy: bool | None = None
    #: Why the conversion is what it is, where that is not plain from the types.
    reason: str = ""
    #: Of a dtype: whose number the value is. GE's own goes into the attr as it is.
    numbers: Numbers | None = None


@dataclass(frozen=True, slots=True)
class ReturnSource:
    """Which output one return is: an output's position, or an argument that is returned itself."""

    output: int | None
    evidence: Evidence
    argument: int | None = None
    #: Of a return that is no output: a function of all arguments by name that computes it; None where graphs do not have it.
    compute: Callable[[Mapping[str, Any]], Any] | None = None


@dataclass(frozen=True, slots=True)
class Mutation:
    """An argument that the schema says is written, and the output that holds its new value."""

    argument: int
    output: int
    #: Whether the prototype's output is named like the input, so that GE writes over it.
    in_place: bool


@dataclass(frozen=True, slots=True)
class Binding:
    """What feeds what. ``inputs`` and ``attrs`` follow the prototype, None where nothing feeds one."""

    schema: OpSchema
    prototype: OpPrototype
    inputs: tuple[Source | None, ...]
    attrs: tuple[Source | None, ...]
    returns: tuple[ReturnSource, ...]
    mutations: tuple[Mutation, ...] = ()
    #: Inputs the prototype writes although the schema does not: they are copied first.
    copied: tuple[int, ...] = ()
    #: Arguments the prototype has nothing for; a call may only leave them at their default or None.
    unused: tuple[int, ...] = ()
    #: Outputs that no return takes.
    dropped: tuple[int, ...] = ()
    #: Arguments that only the shapes of outputs need.
    shape_only: tuple[int, ...] = ()
    #: What is left unsaid although it may matter, each with the line to write.
    doubts: tuple[str, ...] = ()
    #: Inputs of one dtype.
    ties: tuple[Tie, ...] = ()

    def ge_dtype_arguments(self) -> frozenset[str]:
        """The schema's arguments whose values are GE's numbers of dtypes."""
        return frozenset(
            self.schema.arguments[source.argument].name
            for source in self.attrs
            if source is not None and source.argument is not None and source.numbers is Numbers.GE
        )

    def with_relation(self, relation: Relation | None) -> Binding:
        """The same with what a shape relation, in the prototype's names or in the schema's, says of dtypes."""
        if relation is None or {*relation.inputs, *relation.free_names} <= {*self.argument_names().values()}:
            return replace(self, ties=find_ties(self.prototype, relation))
        positions = {
            self.schema.arguments[source.argument].name: n
            for n, source in enumerate(self.inputs)
            if source is not None and source.argument is not None
        }
        return replace(self, ties=find_ties(self.prototype, relation, positions))

    def argument_names(self) -> dict[str, str]:
        """From the schema's name of each bound argument to the prototype's."""
        pairs: list[tuple[Parameter | Attr, Source | None]] = []
        pairs += zip(self.prototype.inputs, self.inputs, strict=True)
        pairs += zip(self.prototype.attrs, self.attrs, strict=True)
        names: dict[str, str] = {}
        for parameter, source in pairs:
            if source is not None and source.argument is not None:
                names.setdefault(self.schema.arguments[source.argument].name, parameter.name)
        return names
