"""The gradient of a registered operator: a Python function or another operator, through ``torch.library``."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ascend_graph.errors import AscendGraphError
from ascend_graph.registration.binding import Binding
from ascend_graph.registration.schema import ArgumentKind, OpSchema, read_schema
from ascend_graph.registration.synonyms import are_synonyms, normalize

Backward = Callable[..., Any]


class GradientError(AscendGraphError):
    """A gradient cannot be registered, or its operator cannot be bound to the forward operator."""


@dataclass(slots=True)
class GradientHandle:
    """A registered gradient that can be taken back."""

    _library: torch.library.Library | None

    def remove(self) -> None:
        """Take the gradient back. A second call does nothing."""
        if self._library is not None:
            _live.remove(self._library)
            self._library._destroy()
            self._library = None


# A library that nobody holds takes its registrations back when it is collected.
_live: list[torch.library.Library] = []


@dataclass(frozen=True, slots=True)
class Gradient:
    """What ``torch.library.register_autograd`` takes, and in words where it came from."""

    backward: Backward
    setup_context: Backward
    description: str


def plan_gradient(backward: Any, binding: Binding) -> Gradient:
    """The gradient that ``register_op(backward=…)`` means.

    Args:
        backward: A function ``(ctx, *grads)`` that returns one gradient for each argument of the schema, or for each
            tensor argument; a pair of it and a ``setup_context(ctx, inputs, output)`` as
            ``torch.library.register_autograd`` takes; or an operator, or ``RegisteredOp``, whose arguments are named after
            the forward operator's: its inputs and outputs by name, the gradients of its outputs ``grad_<output>`` (or
            ``grad``, ``grad_output``, ``dy`` of a single one). Without ``setup_context``, ``ctx.saved_tensors`` holds the
            tensor arguments and then the outputs, ``ctx.arguments`` all other arguments by name.

    Raises:
        GradientError: It is none of these, or the operator's arguments are not to be found by name.
    """
    if isinstance(backward, tuple) and len(backward) == 2 and all(callable(part) for part in backward):
        return Gradient(backward[0], backward[1], f"the function {_described(backward[0])}")
    overload = getattr(backward, "overload", backward)
    if isinstance(overload, torch._ops.OpOverloadPacket):
        from ascend_graph.registration.schema import single_overload

        overload = single_overload(overload)
    setup = _setup_context(binding.schema)
    if isinstance(overload, torch._ops.OpOverload):
        function = _backward_of_operator(overload, getattr(backward, "binding", None), binding)
        return Gradient(function, setup, f"the operator {overload}")
    if callable(backward):
        return Gradient(_padded(backward, binding.schema), setup, f"the function {_described(backward)}")
    raise GradientError(
        f"backward={backward!r}: pass a function (ctx, *grads), a pair (function, setup_context), an operator or what "
        "register_op returned for it"
    )


def register_gradient(overload: Any, gradient: Gradient) -> GradientHandle:
    """Register a gradient; the overload must have none."""
    name = overload.name()
    for key in ("Autograd", "AutogradPrivateUse1", "CompositeImplicitAutograd"):
        if torch._C._dispatch_has_kernel_for_dispatch_key(name, key):
            raise GradientError(f"{name} has a gradient already ({key}); leave backward= out")
    library = torch.library.Library(overload.namespace, "FRAGMENT")
    try:
        torch.library.register_autograd(name, gradient.backward, setup_context=gradient.setup_context, lib=library)
    except BaseException:
        library._destroy()
        raise
    _live.append(library)
    return GradientHandle(library)


def _described(function: Any) -> str:
    name = getattr(function, "__qualname__", repr(function))
    try:
        return f"{name} ({inspect.getsourcefile(function)}:{inspect.getsourcelines(function)[1]})"
    except (TypeError, OSError):
        return name


def _flat(values: Sequence[Any]) -> list[torch.Tensor]:
    flat: list[torch.Tensor] = []
    for value in values:
        flat += [v for v in (value if isinstance(value, list | tuple) else (value,)) if isinstance(v, torch.Tensor)]
    return flat


def _setup_context(schema: OpSchema) -> Backward:
    """A ``setup_context`` that keeps everything, whatever the gradient needs."""
    arguments = schema.arguments

    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any = None, **keywords: Any) -> None:
        keyword_values = keywords.pop("keyword_only_inputs", {})
        values = {a.name: v for a, v in zip(arguments, inputs, strict=False)} | dict(keyword_values)
        outputs = output if isinstance(output, tuple | list) else (output,)
        ctx.save_for_backward(*_flat(list(values.values())), *_flat(outputs))
        # Where each saved tensor belongs: None stays None.
        ctx.present = {name: isinstance(value, torch.Tensor) for name, value in values.items()}
        ctx.arguments = {a.name: values.get(a.name, a.default) for a in arguments if not a.is_tensor}

    if any(argument.kwarg_only for argument in arguments):

        def with_keywords(ctx: Any, inputs: tuple[Any, ...], keyword_only_inputs: dict[str, Any], output: Any) -> None:
            setup_context(ctx, inputs, output, keyword_only_inputs=keyword_only_inputs)

        return with_keywords
    return setup_context


def _padded(function: Backward, schema: OpSchema) -> Backward:
    """``function``, but free to return gradients for the tensor arguments alone."""
    positional = [argument for argument in schema.arguments if not argument.kwarg_only]
    tensors = [n for n, argument in enumerate(positional) if argument.is_tensor]

    def backward(ctx: Any, *grads: Any) -> Any:
        result = function(ctx, *grads)
        gradients = result if isinstance(result, tuple | list) else (result,)
        if len(gradients) == len(positional):
            return tuple(gradients)
        if len(gradients) != len(tensors):
            raise GradientError(
                f"the gradient of {schema.qualified_name} returned {len(gradients)} value(s); it has {len(positional)} "
                f"arguments, {len(tensors)} of them tensors ({', '.join(positional[n].name for n in tensors)})"
            )
        padded: list[Any] = [None] * len(positional)
        for n, gradient in zip(tensors, gradients, strict=True):
            padded[n] = gradient
        return tuple(padded)

    return backward


# ----------------------------------------------------------------------------------------------- an operator as gradient


def _backward_of_operator(overload: Any, gradient_binding: Binding | None, forward: Binding) -> Backward:
    schema = read_schema(overload._schema)
    positional = [argument for argument in forward.schema.arguments if not argument.kwarg_only]
    tensors = [argument.name for argument in forward.schema.arguments if argument.is_tensor]
    outputs = _output_names(forward)
    ge_names = forward.argument_names()
    plan: list[tuple[str, str, Any]] = []  # (argument of the gradient, "input" | "output" | "grad" | "attr", which)
    for argument in schema.arguments:
        found = _origin(argument.name, argument.kind, tensors, outputs, forward, ge_names)
        if found is not None:
            plan.append((argument.name, *found))
        elif not argument.has_default:
            raise GradientError(
                f"{overload} as the gradient of {forward.schema.qualified_name}: its argument {argument.name} is no "
                f"argument ({', '.join(a.name for a in forward.schema.arguments)}), no output ({', '.join(outputs)}) and no "
                f"gradient of an output ({', '.join(f'grad_{name}' for name in outputs)}); pass a function (ctx, *grads)"
            )
    order = _gradient_order(schema, gradient_binding, overload, forward, ge_names)
    count = len(outputs)

    def backward(ctx: Any, *grads: Any) -> Any:
        saved = iter(ctx.saved_tensors)
        inputs = {name: next(saved) if ctx.present.get(name) else None for name in tensors}
        results = [next(saved, None) for _ in range(count)]
        values = {}
        for name, what, which in plan:
            if what == "input":
                values[name] = inputs[which]
            elif what == "output":
                values[name] = results[which]
            elif what == "grad":
                gradient = grads[which]
                values[name] = torch.zeros_like(results[which]) if gradient is None else gradient.contiguous()
            else:
                values[name] = ctx.arguments[which]
        made = overload(**values)
        made = made if isinstance(made, tuple | list) else (made,)
        by_argument = dict(zip(order, made, strict=True))
        return tuple([by_argument.get(argument.name) for argument in positional])

    return backward


def _output_names(binding: Binding) -> list[str]:
    names = []
    for n, returned in enumerate(binding.returns):
        output = returned.output
        names.append(binding.prototype.outputs[output].name if output is not None else f"output{n}")
    return names


def _origin(
    name: str,
    kind: ArgumentKind,
    tensors: Sequence[str],
    outputs: Sequence[str],
    forward: Binding,
    ge_names: dict[str, str],
) -> tuple[str, Any] | None:
    if kind is not ArgumentKind.TENSOR:
        by_name = {normalize(a.name): a.name for a in forward.schema.arguments if not a.is_tensor}
        by_name |= {normalize(g): t for t, g in ge_names.items() if t in by_name.values()}
        return ("attr", by_name[normalize(name)]) if normalize(name) in by_name else None
    by_tensor = {normalize(ge_names[t]): t for t in tensors if t in ge_names} | {normalize(t): t for t in tensors}
    if normalize(name) in by_tensor:
        return "input", by_tensor[normalize(name)]
    by_output = {normalize(output): n for n, output in enumerate(outputs)}
    if normalize(name) in by_output:
        return "output", by_output[normalize(name)]
    for n, output in enumerate(outputs):
        if normalize(name) in _gradient_names(output):
            return "grad", n
    if are_synonyms(name, "grad_output"):
        return "grad", 0  # of the first output, the one that is differentiated
    return None


def _gradient_names(name: str) -> set[str]:
    base = normalize(name)
    return {f"grad{base}", f"{base}grad", f"d{base}", f"grad{base}out", f"{base}gradout", f"d{base}out"}


def _gradient_order(
    schema: OpSchema, gradient: Binding | None, overload: Any, forward: Binding, ge_names: dict[str, str]
) -> list[str]:
    """The forward argument that each return of the gradient operator belongs to."""
    tensors = [argument.name for argument in forward.schema.arguments if argument.is_tensor]
    names = [returned.name for returned in schema.returns]
    if gradient is not None:
        names = [
            name or (gradient.prototype.outputs[r.output].name if r.output is not None else "")
            for name, r in zip(names, gradient.returns, strict=True)
        ]
    if len(names) == 1 and len(tensors) == 1:
        return tensors
    order = []
    for name in names:
        fitting = [t for t in tensors if {normalize(name)} & (_gradient_names(t) | _gradient_names(ge_names.get(t, t)))]
        if len(fitting) != 1:
            raise GradientError(
                f"{overload} as the gradient of {forward.schema.qualified_name}: which argument its return "
                f"{name or '(without a name)'} belongs to is not to be seen; name the outputs grad_<input> or d<input> "
                f"(inputs: {', '.join(tensors)}), or pass a function (ctx, *grads)"
            )
        order.append(fitting[0])
    return order
