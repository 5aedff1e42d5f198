"""An operator as the gradient of another: what each of its arguments is, and what each of its outputs belongs to.

Names decide, as in ``register_op(backward=…)``: an argument called like an input, output or attr of the forward operator
is that one; ``grad_<output>``, ``<output>_grad`` or ``d<output>`` is the gradient of an output (of the only output also
``grad``, ``dy``, ``grad_output`` and the like); an output ``grad_<input>``, ``<input>_grad`` or ``d<input>`` is the
gradient of an input.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ascend_graph.codegen.rendering import GenerationError

from ascend_graph.eager.schema import OperatorSchema, SchemaArgument
from ascend_graph.prototypes import ParameterKind

_ONLY = ("grad", "dy", "gradoutput", "gradout", "gradoutputs", "dout", "gradients", "ygrad", "outgrad")


@dataclass(frozen=True, slots=True)
class GradientArgument:
    """One argument of the gradient operator."""

    name: str
    #: ``input``, ``output``, ``grad`` or ``attr``; the position of it in the forward operator.
    what: str
    position: int


@dataclass(frozen=True, slots=True)
class GradientPlan:
    """How the gradient operator is called, and where its outputs go."""

    op: OperatorSchema
    arguments: tuple[GradientArgument, ...]
    #: Per argument of the forward operator, the output of the gradient operator that is its gradient.
    gradient_of: tuple[int | None, ...]

    @property
    def saved_inputs(self) -> tuple[int, ...]:
        """The forward arguments that the gradient needs, each once."""
        return tuple(dict.fromkeys(a.position for a in self.arguments if a.what == "input"))

    @property
    def saved_outputs(self) -> tuple[int, ...]:
        """The forward outputs that the gradient needs."""
        return tuple(dict.fromkeys(a.position for a in self.arguments if a.what == "output"))

    @property
    def saved_attrs(self) -> tuple[int, ...]:
        """The forward attrs that the gradient needs."""
        return tuple(dict.fromkeys(a.position for a in self.arguments if a.what == "attr"))


def gradient_plan(forward: OperatorSchema, backward: OperatorSchema) -> GradientPlan:
    """Bind a gradient operator to its forward operator.

    Raises:
        GenerationError: A name fits nothing, or something of an operator cannot be differentiated in generated C++.
    """
    subject = f"{backward.prototype.op_type} as the gradient of {forward.prototype.op_type}"
    for schema in (forward, backward):
        if any(p.kind is ParameterKind.DYNAMIC for p in (*schema.prototype.inputs, *schema.returns)):
            raise GenerationError(
                f"{subject}: lists of tensors are differentiated in Python: register_op(…, backward=…)"
            )
    if forward.prototype.in_place:
        raise GenerationError(f"{subject}: an operator that writes in place has no gradient")
    arguments = []
    for argument in backward.arguments:
        found = _origin(argument, forward)
        if found is None:
            if "=" in argument.text:
                continue  # its default
            raise GenerationError(
                f"{subject}: its argument {argument.name} is no input ({_names(forward)}), no output "
                f"({', '.join(p.name for p in forward.returns)}), no attr of it and no gradient of an output "
                f"({', '.join(f'grad_{p.name}' for p in forward.returns)})"
            )
        arguments.append(GradientArgument(argument.name, *found))
    gradient_of: list[int | None] = [None] * len(forward.arguments)
    for n, output in enumerate(backward.returns):
        fitting = [
            i
            for i, a in enumerate(forward.arguments)
            if a.is_tensor and _normal(output.name) in _gradient_names(a.name)
        ]
        if not fitting and len(backward.returns) == 1 and sum(a.is_tensor for a in forward.arguments) == 1:
            fitting = [i for i, a in enumerate(forward.arguments) if a.is_tensor]
        if len(fitting) != 1:
            raise GenerationError(
                f"{subject}: its output {output.name} is the gradient of no input; name it grad_<input> or d<input>: {_names(forward)}"
            )
        gradient_of[fitting[0]] = n
    return GradientPlan(backward, tuple(arguments), tuple(gradient_of))


def proposed_gradient(forward: OperatorSchema, schemas: Mapping[str, OperatorSchema]) -> str:
    """The operator that is called like this one's gradient and fits by name, or nothing."""
    for suffix in ("Grad", "Backward"):
        candidate = schemas.get(f"{forward.prototype.op_type}{suffix}")
        if candidate is None:
            continue
        try:
            gradient_plan(forward, candidate)
        except GenerationError:
            continue
        return candidate.prototype.op_type
    return ""


def _origin(argument: SchemaArgument, forward: OperatorSchema) -> tuple[str, int] | None:
    name = _normal(argument.name)
    for n, given in enumerate(forward.arguments):
        if given.is_tensor == argument.is_tensor and _normal(given.name) == name:
            return ("input" if given.is_tensor else "attr"), n
    if not argument.is_tensor:
        return None
    for n, output in enumerate(forward.returns):
        if _normal(output.name) == name:
            return "output", n
        if name in _gradient_names(output.name) or (len(forward.returns) == 1 and name in _ONLY):
            return "grad", n
    return None


def _normal(name: str) -> str:
    return name.replace("_", "").lower()


def _gradient_names(name: str) -> frozenset[str]:
    base = _normal(name)
    return frozenset({f"grad{base}", f"{base}grad", f"d{base}", f"grad{base}out", f"d{base}out"})


def _names(schema: OperatorSchema) -> str:
    return ", ".join(_tensor_names(schema))


def _tensor_names(schema: OperatorSchema) -> Iterator[str]:
    return (a.name for a in schema.arguments if a.is_tensor)
