"""Gradient and tangent of a registered operator: Python functions, or another operator."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch._library.autograd import make_autograd_impl
from torch._library.custom_ops import OPDEFS
from torch._library.utils import is_functional_schema

from ascend_graph.autograd import (
    IN_PYTHON,
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
from ascend_graph.autograd.formula_functions import (
    described,
    gradient_function,
    gradient_pair,
    is_pair,
    output_names,
    tangent_function,
    tangent_pair,
)
from ascend_graph.autograd.formulas import Formula
from ascend_graph.autograd.kernel import autograd_kernel
from ascend_graph.autograd.no_gradient import refused_backward
from ascend_graph.autograd.saved_call import SavedCall, given_back
from ascend_graph.binding.bound import Binding
from ascend_graph.binding.op_schema import OpSchema, read_schema, single_overload, unwrapped
from ascend_graph.shapes import Relation
from ascend_graph.versions import override_kernel

#: Lookup of all registrations by op type or torch operator name; each has ``overload`` and ``binding``.
Find = Callable[[str], Sequence[Any]]

#: Name in the dispatcher of the kernel of csrc/eager/autograd.h, which makes room for a gradient.
_WITHOUT_GRADIENT = "ascend_graph: without gradient"


@dataclass(slots=True)
class GradientHandle:
    """Handle of a registered gradient, by which it is unregistered."""

    _library: torch.library.Library | None
    _overload: Any

    def remove(self) -> None:
        """Unregister the gradient. A second call does nothing."""
        if self._library is None:
            return
        _live.remove(self._library)
        self._library._destroy()
        self._library = None
        definition = OPDEFS.get(self._overload.name())
        if definition is not None:
            # The dispatcher has the kernel of custom_op again; torch's second table, for modes, keeps the last function.
            _register(self._overload, make_autograd_impl(self._overload, definition))._destroy()


# A library that nobody holds takes its registrations back when it is collected.
_live: list[torch.library.Library] = []


@dataclass(frozen=True, slots=True)
class Gradient:
    """Gradient or tangent, with a description of its origin."""

    formula: Formula
    description: str
    #: Plan of an operator as the gradient; None for a function.
    plan: GradientPlan | None = None


def gradient_of(
    backward: Any, binding: Binding, relation: Relation | None = None, find: Find | None = None
) -> Gradient:
    """Return the gradient that ``register_op(backward=…)`` denotes.

    Args:
        backward: A function ``(ctx, *grads)`` that returns one gradient for each argument of the schema, or for each
            tensor argument; a pair of it and a ``setup_context(ctx, inputs, output)`` as
            ``torch.library.register_autograd`` takes; an operator, or ``RegisteredOp``; or a text with the op type of a
            registered one, or the name of a torch operator, with wiring for unmatched names
            (:mod:`ascend_graph.autograd.wiring`). Without ``setup_context``, keyword-only parameters of a function name
            the inputs, outputs and attrs of the forward call that it needs. A function without such parameters finds
            the tensor arguments and then the outputs in ``ctx.saved_tensors``, None for an absent one, and all other
            arguments by name in ``ctx.arguments``.
        binding: The forward operator's binding.
        relation: Its shape relation, which may fix an output's dtype to an integer one.
        find: Lookup of registered operators by name.

    Raises:
        GradientError: It is something else, does not accept its arguments, or leaves a part of the operator unmatched;
            or the forward operator writes to its arguments.
    """
    schema = binding.schema
    _check_differentiable(schema, "backward=")
    if is_pair(backward):
        return Gradient(gradient_pair(backward, schema), f"the function {described(backward[0])}")
    if isinstance(backward, str):
        wiring = parse_wiring(backward)
        return _of_operator(_found(wiring.operator, schema, find), binding, relation, wiring)
    operator = unwrapped(getattr(backward, "overload", backward))
    if isinstance(operator, torch._ops.OpOverloadPacket):
        operator = single_overload(operator)
    if isinstance(operator, torch._ops.OpOverload):
        return _of_operator(backward if hasattr(backward, "binding") else operator, binding, relation, None)
    if isinstance(backward, type):
        raise _is_a_class("backward", backward, "(ctx, *grads)", "backward")
    if callable(backward):
        return Gradient(gradient_function(backward, binding), f"the function {described(backward)}")
    raise GradientError(
        f"backward={backward!r}: pass a function (ctx, *grads), a pair (function, setup_context), an operator or what "
        "register_op returned for it, or its op type"
    )


def tangent_of(forward: Any, binding: Binding) -> Gradient:
    """Return the tangent that ``register_op(forward=…)`` denotes.

    Args:
        forward: A function ``(ctx, *tangents)`` that returns one tangent for each output, None for a zero tangent. It
            takes a tangent for each positional argument, as ``torch.autograd.Function.jvp`` does, or for each tensor
            argument: zeros for a floating-point tensor without one, None for an absent tensor or one of integers, a
            list for a list. It gets values of the call as a gradient does (:func:`gradient_of`): by keyword-only
            parameters, on ``ctx``, or through a pair with a ``setup_context(ctx, inputs, output)``, which may call
            ``ctx.save_for_forward``.
        binding: The operator's binding.

    Raises:
        GradientError: It is not such a function; the operator writes to its arguments.
    """
    schema = binding.schema
    _check_differentiable(schema, "forward=")
    if is_pair(forward):
        return Gradient(tangent_pair(forward, schema), f"the function {described(forward[0])}")
    if isinstance(forward, type):
        raise _is_a_class("forward", forward, "(ctx, *tangents)", "jvp")
    is_operator = isinstance(forward, torch._ops.OpOverload | torch._ops.OpOverloadPacket) or hasattr(
        forward, "overload"
    )
    if callable(forward) and not is_operator:
        return Gradient(tangent_function(forward, binding), f"the function {described(forward)}")
    raise GradientError(
        f"forward={forward!r} of {schema.qualified_name}: expected a function (ctx, *tangents), or a pair (function, setup_context)"
    )


def _is_a_class(what: str, given: type, signature: str, method: str) -> GradientError:
    name = given.__qualname__
    return GradientError(
        f"{what}={name} is a class; pass a function {signature}, of a torch.autograd.Function {name}.{method}, or the pair "
        f"({name}.{method}, setup_context)"
    )


def _check_differentiable(schema: OpSchema, what: str) -> None:
    if written := [argument.name for argument in schema.arguments if argument.mutated]:
        raise GradientError(
            f"{schema.qualified_name} writes {', '.join(written)} in place: {what} is for operators that write "
            "nothing. Register a functional variant"
        )
    if hidden := [a.name for a in schema.arguments if a.is_tensor and a.kwarg_only]:
        raise GradientError(
            f"{schema.qualified_name}: torch.library differentiates no keyword-only tensors ({', '.join(hidden)}); make them positional"
        )


def register_gradient(overload: Any, gradient: Gradient | None, tangent: Gradient | None = None) -> GradientHandle:
    """Register a gradient, a tangent, or both; the overload must have none.

    Args:
        overload: The operator.
        gradient: The gradient; None if the operator has a tangent alone, and backward is an error.
        tangent: The tangent; None if it is derived from the gradient.
    """
    name = overload.name()
    if has_gradient(overload):
        raise GradientError(f"{name} has a gradient already; leave backward= and forward= out")
    backward = refused_backward(overload) if gradient is None else gradient.formula
    kernel = autograd_kernel(overload, backward, None if tangent is None else tangent.formula)
    if (definition := _custom_op_with_no_gradient(name)) is not None:
        kernel = _refuse_second_gradient(kernel, name, definition)
    library = _register(overload, kernel)
    _live.append(library)
    return GradientHandle(library, overload)


def _register(overload: Any, kernel: Any) -> torch.library.Library:
    library = torch.library.Library(overload.namespace, "FRAGMENT")
    try:
        with warnings.catch_warnings():
            # The word that there is no gradient makes room for one.
            warnings.filterwarnings("ignore", message=".*Overriding a previously registered kernel.*")
            override_kernel(library, overload.name(), kernel, "Autograd", with_keyset=True)
    except BaseException:
        library._destroy()
        raise
    return library


def _refuse_second_gradient(kernel: Any, name: str, definition: Any) -> Any:
    """Return a kernel that raises GradientError once ``register_autograd`` gave its operator another gradient."""

    def checked(keyset: Any, *args: Any, **kwargs: Any) -> Any:
        if definition._backward_fn is not None:
            raise GradientError(
                f"{name} has two gradients: backward=, and that of a later register_autograd; leave one out, "
                "or unregister() the first"
            )
        return kernel(keyset, *args, **kwargs)

    return checked


def _custom_op_with_no_gradient(name: str) -> Any:
    """Return the definition by ``torch.library.custom_op``, whose kernel reports that there is no gradient; or None."""
    definition = OPDEFS.get(name)
    return definition if definition is not None and definition._backward_fn is None else None


def refuses_itself(overload: Any) -> bool:
    """Return whether an operator has the kernel of csrc/eager/autograd.h, which refuses to be differentiated."""
    return _WITHOUT_GRADIENT in torch._C._dispatch_dump(overload.name())


def has_gradient(overload: Any) -> bool:
    """Return whether autograd has a kernel for an operator, other than the one that reports a missing gradient."""
    name = overload.name()
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    if any(has(name, key) for key in ("AutogradPrivateUse1", "CompositeImplicitAutograd")):
        return True
    return has(name, "Autograd") and not refuses_itself(overload) and _custom_op_with_no_gradient(name) is None


def _found(name: str, schema: OpSchema, find: Find | None) -> Any:
    registered = list(find(name)) if find is not None else []
    # A library's gradients are its own.
    own = [op for op in registered if op.overload.name().partition("::")[0] == schema.name.partition("::")[0]]
    if len(own) == 1 or len(registered) == 1:
        return (own or registered)[0]
    if registered:
        raise GradientError(
            f"backward={name!r} of {schema.qualified_name}: there are {', '.join(op.overload.name() for op in registered)}; "
            "pass one of these names"
        )
    if "::" in name:
        namespace, _, rest = name.partition("::")
        packet_name, _, overload = rest.partition(".")
        packet = getattr(getattr(torch.ops, namespace), packet_name, None)
        if packet is not None:
            wanted = overload or ("default" if "default" in packet.overloads() else "")
            found = getattr(packet, wanted, None) if wanted else packet
            if found is not None:
                return single_overload(found)
    raise GradientError(
        f"backward={name!r} of {schema.qualified_name}: no operator is registered under that name; register it first, "
        f"register_op({name!r}, shape=…), or pass a torch operator"
    )


# --------------------------------------------------------------------------------------------------------- an operator


def signature_of(schema: OpSchema, binding: Binding | None, relation: Relation | None = None) -> Signature:
    """Return a torch operator's signature for gradients; a binding adds the prototype's names."""
    names = {} if binding is None else binding.argument_names()
    arguments = tuple(
        SignatureArgument(
            a.name,
            a.kind.value + "[]" * a.list_depth,
            names[a.name] if names.get(a.name, a.name) != a.name else "",
            a.optional or a.has_default,
            a.mutated,
        )
        for a in schema.arguments
    )
    results = []
    called = [r.name for r in schema.returns] if binding is None else output_names(binding)
    for n, returned in enumerate(schema.returns):
        kind = returned.kind.value + "[]" * returned.list_depth
        output = None if binding is None else binding.returns[n].output
        floating = output is None or is_differentiable(binding.prototype.outputs[output], relation)  # type: ignore[union-attr]
        results.append(SignatureReturn(called[n], kind, floating and kind.startswith("Tensor")))
    return Signature(schema.qualified_name, arguments, tuple(results))


def _of_operator(operator: Any, forward: Binding, relation: Relation | None, wiring: Wiring | None) -> Gradient:
    overload, binding = getattr(operator, "overload", operator), getattr(operator, "binding", None)
    if not isinstance(overload, torch._ops.OpOverload):
        overload, binding = operator, None
    if not is_functional_schema(overload._schema):
        raise GradientError(
            f"{overload.name()} as the gradient of {forward.schema.qualified_name}: it must neither write to its "
            "arguments nor return them; register a functional variant"
        )
    schema = read_schema(overload._schema)
    name = schema.qualified_name if binding is None else binding.prototype.op_type
    signatures = signature_of(forward.schema, forward, relation), signature_of(schema, binding)
    plan = plan_gradient(*signatures, wiring or Wiring(name), IN_PYTHON)
    kept = SavedCall(
        forward.schema,
        plan.saved(Feed.INPUT),
        plan.saved(Feed.OUTPUT),
        tuple(forward.schema.arguments[n].name for n in plan.saved(Feed.ATTR)),
        plan.constant,
        plan.undifferentiated,
        f"{forward.schema.qualified_name}: its gradient {name} gives none for the argument {{name}}, which requires grad; "
        f'where it needs none say so, backward="{name}; constant: {{name}}", or detach it',
    )
    positional = [n for n, argument in enumerate(forward.schema.arguments) if not argument.kwarg_only]

    def backward(ctx: Any, *grads: Any) -> Any:
        inputs, outputs = kept.kept(ctx)
        by_input, by_output = dict(zip(kept.inputs, inputs, strict=True)), dict(zip(kept.outputs, outputs, strict=True))
        values = {}
        for argument, source in zip(schema.arguments, plan.arguments, strict=True):
            if source is None:
                continue
            if source.feed is Feed.INPUT:
                value = by_input[source.position]
            elif source.feed is Feed.OUTPUT:
                value = by_output[source.position]
            elif source.feed is Feed.GRADIENT:
                value = _contiguous(grads[source.position])
            else:
                value = ctx.arguments[forward.schema.arguments[source.position].name]
            values[argument.name] = value
        made: Sequence[Any] | Any = overload(**values)
        made = made if isinstance(made, tuple) else (made,)
        return tuple(
            given_back(None if (index := plan.gradient_of[n]) is None else made[index], needed)
            for n, needed in zip(positional, ctx.needs_input_grad, strict=False)  # without what was left at its default
        )

    return Gradient(Formula(backward, kept.setup_context()), f"the operator {overload}", plan)


def _contiguous(gradient: Any) -> Any:
    """Make the gradient of an output contiguous, as kernels take it; generated C++ does the same."""
    if isinstance(gradient, list | tuple):
        return [_contiguous(g) for g in gradient]
    return gradient if gradient is None else gradient.contiguous()
