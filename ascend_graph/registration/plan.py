"""Plan of one registration: its decisions, and the changes that apply it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ascend_graph.binding import AclnnCall, BindingError
from ascend_graph.binding.bound import Binding
from ascend_graph.dispatch.definition import SchemaDefinition
from ascend_graph.dispatch.torchair import ConverterFunction
from ascend_graph.dispatch.transaction import Change, HandleChange
from ascend_graph.registration.cost import CostModel
from ascend_graph.registration.dimensions.independent_dims import IndependentDims
from ascend_graph.registration.request import RegistrationRequest
from ascend_graph.shapes import Relation
from ascend_graph.shapes.dtypes import CATEGORY
from ascend_graph.shapes.unknown import advice


@dataclass(slots=True, eq=False)
class Changes:
    """Changes of one registration, by kind; None for a kind without a change."""

    definition: SchemaDefinition | None = None
    kernels: tuple[Change, ...] = ()
    meta: HandleChange | None = None
    converter: HandleChange | None = None
    #: Keeps calls of a Triton operator in graphs.
    whole_calls: HandleChange | None = None
    mutation: HandleChange | None = None
    #: Replaces calls of an operator whose schema lacks the marks at what is written.
    stand_in: HandleChange | None = None
    lazy_bits: HandleChange | None = None
    gradient: Change | None = None
    #: True if ``gradient`` only refuses forward mode.
    refuses_tangents: bool = False
    batching: HandleChange | None = None
    sharding: HandleChange | None = None
    cost: HandleChange | None = None

    def __iter__(self) -> Iterator[Change]:
        """Yield the changes in the order in which they are applied."""
        every = (self.definition, *self.kernels, self.meta, self.converter, self.whole_calls, self.mutation)
        every += (self.stand_in, self.lazy_bits, self.gradient, self.batching, self.sharding, self.cost)
        return (change for change in every if change is not None)


@dataclass(slots=True)
class RegistrationPlan:
    """Decisions of one registration, and the changes that apply it."""

    request: RegistrationRequest
    binding: Binding
    relation: Relation | None
    converter: ConverterFunction | None
    changes: Changes
    #: Origins of the meta function, the converter and the gradient, in words.
    evidence: dict[str, str] = field(default_factory=dict)
    #: Call plan of the aclnn function; None if the operator has its own kernel.
    call: AclnnCall | None = None
    #: Dimensions declared independent or reduced, in the schema's names; None without a declaration.
    independent_dims: IndependentDims | None = None

    @property
    def overload(self) -> Any:
        """Overload of the operator; None before the change that defines it."""
        definition = self.changes.definition
        return self.request.overload if definition is None else definition.overload

    def cost_model(self) -> CostModel | None:
        """Return the cost model in schema names (all written outputs included), or None without a shape relation."""
        if self.relation is None:
            return None
        relation = in_schema_names(self.request.op_type, self.relation, self.binding)
        return CostModel(self.request.operator, relation, self.overload._schema, self.request.flops)


def relation_names(op_type: str, relation: Relation, binding: Binding) -> dict[str, str]:
    """Return the relation's names by schema name; the relation uses either the prototype's names or the schema's."""
    ge_names = binding.argument_names()
    mentioned = {*relation.inputs, *relation.free_names}
    own = {argument.name for argument in binding.schema.arguments}
    if mentioned <= set(ge_names.values()):
        return ge_names
    if mentioned <= own:
        return {}
    strangers = sorted(mentioned - set(ge_names.values()) - own)
    if hint := advice(relation, strangers, sorted({*own, *ge_names.values(), *CATEGORY})):
        raise BindingError(
            f"{op_type}: the relation {relation} mentions {', '.join(strangers)}; expected dimensions and arguments; "
            f"arguments: {', '.join(sorted(own))}{hint}"
        )
    if binding.prototype.op_type == binding.schema.qualified_name:  # without a prototype there is one set of names
        raise BindingError(
            f"{op_type}: the relation {relation} mentions {', '.join(strangers)}, which is not an argument; expected one of "
            f"{', '.join(sorted(own))}"
        )
    raise BindingError(
        f"{op_type}: the relation {relation} mentions {', '.join(strangers or sorted(mentioned))}; use "
        f"the prototype's names ({', '.join(ge_names.values())}) or the schema's ({', '.join(sorted(own))}), not a mix"
    )


def in_schema_names(op_type: str, relation: Relation, binding: Binding) -> Relation:
    """Rename the inputs and attrs of a relation as in the schema."""
    names = {theirs: own for own, theirs in relation_names(op_type, relation, binding).items() if own != theirs}
    return relation.renamed(names)
