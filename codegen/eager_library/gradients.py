"""Gradients of a generated library: the plan of :mod:`ascend_graph.autograd` for operators known by prototypes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ascend_graph.codegen.rendering import GenerationError

from ascend_graph.autograd import (
    Feed,
    GradientError,
    GradientPlan,
    Signature,
    SignatureArgument,
    SignatureReturn,
    Wiring,
    is_differentiable,
    parse_wiring,
    plan_gradient,
)
from ascend_graph.binding.generated_schema import ATTR_KINDS, GeneratedArgument, OperatorSchema
from ascend_graph.prototypes import Attr, ParameterKind
from ascend_graph.shapes import Relation


@dataclass(frozen=True, slots=True)
class CppGradient:
    """Gradient operator of the library, with its call plan."""

    op: OperatorSchema
    plan: GradientPlan
    #: Wiring of the author, by which an argument needs no gradient.
    wiring: Wiring

    @property
    def saved_inputs(self) -> tuple[int, ...]:
        """Forward arguments that the gradient needs."""
        return self.plan.saved(Feed.INPUT)

    @property
    def saved_outputs(self) -> tuple[int, ...]:
        """Forward outputs that the gradient needs."""
        return self.plan.saved(Feed.OUTPUT)

    @property
    def saved_attrs(self) -> tuple[int, ...]:
        """Forward attrs that the gradient needs."""
        return self.plan.saved(Feed.ATTR)


def signature_of(schema: OperatorSchema, relation: Relation | None = None) -> Signature:
    """Return an operator's signature for gradients."""
    return Signature(
        schema.prototype.op_type,
        tuple(_argument(schema, a) for a in schema.arguments),
        tuple(
            SignatureReturn(
                p.name, "Tensor[]" if p.kind is ParameterKind.DYNAMIC else "Tensor", is_differentiable(p, relation)
            )
            for p in schema.returns
        ),
    )


def _argument(schema: OperatorSchema, argument: GeneratedArgument) -> SignatureArgument:
    parameter = argument.parameter
    also = parameter.name if parameter.name != argument.name else ""
    optional = "=" in argument.text or "?" in argument.text
    if isinstance(parameter, Attr):
        return SignatureArgument(argument.name, ATTR_KINDS[parameter.type][0], also, optional)
    kind = "Tensor[]" if parameter.kind is ParameterKind.DYNAMIC else "Tensor"
    return SignatureArgument(argument.name, kind, also, optional, parameter.name in schema.prototype.in_place)


def cpp_gradient(
    forward: OperatorSchema, relation: Relation | None, wiring: Wiring, operators: Mapping[str, OperatorSchema]
) -> CppGradient:
    """Bind a gradient operator to its forward operator.

    Args:
        forward: The operator that is differentiated.
        relation: Its shape relation.
        wiring: The wiring of its declaration.
        operators: The operators of the library by op type.

    Raises:
        GradientError: Something is left over; see :func:`ascend_graph.autograd.plan_gradient`.
        GenerationError: There is no such operator, or lists of tensors are differentiated.
    """
    op_type = forward.prototype.op_type
    if wiring.operator not in operators:
        raise GenerationError(
            f"the gradient of {op_type} is {wiring.operator!r}, which is not an operator here; there are {', '.join(operators)}"
        )
    backward = operators[wiring.operator]
    for schema in (forward, backward):
        if any(p.kind is ParameterKind.DYNAMIC for p in (*schema.prototype.inputs, *schema.returns)):
            raise GenerationError(
                f"{wiring.operator} as the gradient of {op_type}: lists of tensors are differentiated in Python: take backward "
                f"out of [{op_type}] and write, after the import of _generated, "
                f"register_op({op_type!r}, eager=…, backward={str(wiring)!r}, override=True)"
            )
    plan = plan_gradient(signature_of(forward, relation), signature_of(backward), wiring)
    return CppGradient(backward, plan, wiring)


def proposed_gradient(
    forward: OperatorSchema, relation: Relation | None, operators: Mapping[str, OperatorSchema]
) -> tuple[str, str]:
    """Return the operator that is named like this one's gradient and fits it completely, and why one does not fit."""
    reason = ""
    for suffix in ("Grad", "Backward"):
        name = f"{forward.prototype.op_type}{suffix}"
        if name not in operators:
            continue
        try:
            cpp_gradient(forward, relation, Wiring(name), operators)
        except (GenerationError, GradientError) as error:
            reason = reason or ". ".join(str(error).splitlines())
            continue
        return name, ""
    return "", reason


__all__ = ["CppGradient", "cpp_gradient", "parse_wiring", "proposed_gradient", "signature_of"]
