"""The gradients of a generated library: the plan of :mod:`ascend_graph.gradients` for operators known by their prototypes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ascend_graph.codegen.rendering import GenerationError

from ascend_graph.binding.own_schema import ATTR_KINDS, OperatorSchema, SchemaArgument
from ascend_graph.gradients import (
    Argument,
    Feed,
    GradientError,
    GradientPlan,
    Result,
    Signature,
    Wiring,
    is_differentiable,
    parse_wiring,
    plan_gradient,
)
from ascend_graph.prototypes import Attr, ParameterKind
from ascend_graph.shapes import Relation


@dataclass(frozen=True, slots=True)
class CppGradient:
    """A gradient operator of the library, and how it is called."""

    op: OperatorSchema
    plan: GradientPlan
    #: What the author writes to say that an argument needs no gradient.
    wiring: Wiring

    @property
    def saved_inputs(self) -> tuple[int, ...]:
        """The forward arguments that the gradient needs."""
        return self.plan.saved(Feed.INPUT)

    @property
    def saved_outputs(self) -> tuple[int, ...]:
        """The forward outputs that the gradient needs."""
        return self.plan.saved(Feed.OUTPUT)

    @property
    def saved_attrs(self) -> tuple[int, ...]:
        """The forward attrs that the gradient needs."""
        return self.plan.saved(Feed.ATTR)


def signature_of(schema: OperatorSchema, relation: Relation | None = None) -> Signature:
    """An operator as far as gradients are concerned."""
    return Signature(
        schema.prototype.op_type,
        tuple(_argument(schema, a) for a in schema.arguments),
        tuple(
            Result(p.name, "Tensor[]" if p.kind is ParameterKind.DYNAMIC else "Tensor", is_differentiable(p, relation))
            for p in schema.returns
        ),
    )


def _argument(schema: OperatorSchema, argument: SchemaArgument) -> Argument:
    parameter = argument.parameter
    also = parameter.name if parameter.name != argument.name else ""
    optional = "=" in argument.text or "?" in argument.text
    if isinstance(parameter, Attr):
        return Argument(argument.name, ATTR_KINDS[parameter.type][0], also, optional)
    kind = "Tensor[]" if parameter.kind is ParameterKind.DYNAMIC else "Tensor"
    return Argument(argument.name, kind, also, optional, parameter.name in schema.prototype.in_place)


def cpp_gradient(
    forward: OperatorSchema, relation: Relation | None, wiring: Wiring, operators: Mapping[str, OperatorSchema]
) -> CppGradient:
    """Bind a gradient operator to its forward operator.

    Args:
        forward: The operator that is differentiated.
        relation: Its shape relation.
        wiring: What its declaration says.
        operators: The operators of the library by op type.

    Raises:
        GradientError: Something is left over; see :func:`ascend_graph.gradients.plan_gradient`.
        GenerationError: There is no such operator, or lists of tensors are differentiated.
    """
    op_type = forward.prototype.op_type
    if wiring.operator not in operators:
        raise GenerationError(
            f"the gradient of {op_type} is {wiring.operator!r}, which is no operator here; there are {', '.join(operators)}"
        )
    backward = operators[wiring.operator]
    for schema in (forward, backward):
        if any(p.kind is ParameterKind.DYNAMIC for p in (*schema.prototype.inputs, *schema.returns)):
            raise GenerationError(
                f"{wiring.operator} as the gradient of {op_type}: lists of tensors are differentiated in Python: take backward "
                f"out of [{op_type}] and write, behind the import of _generated, "
                f"register_op({op_type!r}, eager=…, backward={str(wiring)!r}, override=True)"
            )
    plan = plan_gradient(signature_of(forward, relation), signature_of(backward), wiring)
    return CppGradient(backward, plan, wiring)


def proposed_gradient(
    forward: OperatorSchema, relation: Relation | None, operators: Mapping[str, OperatorSchema]
) -> str:
    """The operator that is called like this one's gradient and loses nothing, or nothing."""
    for suffix in ("Grad", "Backward"):
        name = f"{forward.prototype.op_type}{suffix}"
        try:
            cpp_gradient(forward, relation, Wiring(name), operators)
        except (GenerationError, GradientError):
            continue
        return name
    return ""


__all__ = ["CppGradient", "cpp_gradient", "parse_wiring", "proposed_gradient", "signature_of"]
