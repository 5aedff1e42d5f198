"""The gradient of a registered operator: a Python function or another operator, through ``torch.library``."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch._library.utils import is_functional_schema

from ascend_graph.binding.bound import Binding
from ascend_graph.binding.op_schema import OpSchema, read_schema, single_overload
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
from ascend_graph.shapes import Relation

Backward = Callable[..., Any]

#: From an op type, or the name of a torch operator, to all that is registered for it: each with ``overload`` and ``binding``.
Find = Callable[[str], Sequence[Any]]

#: How the dispatcher names the kernel of csrc/eager/autograd.h, which makes room for a gradient.
_WITHOUT_GRADIENT = "ascend_graph: without gradient"


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
    #: How an operator is bound as the gradient; None for a function.
    plan: GradientPlan | None = None


def gradient_of(
    backward: Any, binding: Binding, relation: Relation | None = None, find: Find | None = None
) -> Gradient:
    """The gradient that ``register_op(backward=…)`` means.

    Args:
        backward: A function ``(ctx, *grads)`` that returns one gradient for each argument of the schema, or for each
            tensor argument; a pair of it and a ``setup_context(ctx, inputs, output)`` as
            ``torch.library.register_autograd`` takes; an operator, or ``RegisteredOp``; or in words the op type of one
            that is registered, or the name of a torch operator, with what names do not settle
            (:mod:`ascend_graph.gradients.wiring`). Without ``setup_context``, keyword-only parameters of a function are
            what it needs of the forward call, inputs, outputs and attrs by name; one without such parameters finds the
            tensor arguments and then the outputs in ``ctx.saved_tensors``, None where one is absent, and all other arguments
            by name in ``ctx.arguments``.
        binding: The forward operator's.
        relation: Its shape relation, which may say that an output is of integers.
        find: What finds registered operators by name.

    Raises:
        GradientError: It is none of these, does not take what it would be called with, or something of the operator is left
            over; the forward operator writes to its arguments.
    """
    schema = binding.schema
    if written := [argument.name for argument in schema.arguments if argument.mutated]:
        raise GradientError(
            f"{schema.qualified_name} writes {', '.join(written)} in place: backward= is for operators that write nothing"
        )
    if hidden := [a.name for a in schema.arguments if a.is_tensor and a.kwarg_only]:
        raise GradientError(
            f"{schema.qualified_name}: torch.library differentiates no keyword-only tensors ({', '.join(hidden)}); make them positional"
        )
    if isinstance(backward, tuple) and len(backward) == 2 and all(callable(part) for part in backward):
        function, setup = backward
        _check_takes(function, schema, "the gradient", grads=len(schema.returns))
        keywords = {"ctx", "inputs", "output"} | ({"keyword_only_inputs"} if _has_keywords(schema) else set())
        _check_takes(setup, schema, "setup_context", keywords=keywords)
        return Gradient(function, setup, f"the function {_described(function)}")
    if isinstance(backward, str):
        wiring = parse_wiring(backward)
        return _of_operator(_found(wiring.operator, schema, find), binding, relation, wiring)
    operator = getattr(backward, "overload", backward)
    if isinstance(operator, torch._ops.OpOverloadPacket):
        operator = single_overload(operator)
    if isinstance(operator, torch._ops.OpOverload):
        return _of_operator(backward if hasattr(backward, "binding") else operator, binding, relation, None)
    if callable(backward):
        return _of_function(backward, binding)
    raise GradientError(
        f"backward={backward!r}: pass a function (ctx, *grads), a pair (function, setup_context), an operator or what "
        "register_op returned for it, or its op type"
    )


def register_gradient(overload: Any, gradient: Gradient) -> GradientHandle:
    """Register a gradient; the overload must have none."""
    name = overload.name()
    if has_gradient(overload):
        raise GradientError(f"{name} has a gradient already; leave backward= out")
    library = torch.library.Library(overload.namespace, "FRAGMENT")
    try:
        with warnings.catch_warnings():
            # The word that there is no gradient makes room for one.
            warnings.filterwarnings("ignore", message=".*Overriding a previously registered kernel.*")
            torch.library.register_autograd(name, gradient.backward, setup_context=gradient.setup_context, lib=library)
    except BaseException:
        library._destroy()
        raise
    _live.append(library)
    return GradientHandle(library)


def has_gradient(overload: Any) -> bool:
    """Whether autograd has a kernel for an operator that is more than the word that there is no gradient."""
    name = overload.name()
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    if any(has(name, key) for key in ("AutogradPrivateUse1", "CompositeImplicitAutograd")):
        return True
    return has(name, "Autograd") and _WITHOUT_GRADIENT not in torch._C._dispatch_dump(name)


def _described(function: Any) -> str:
    name = getattr(function, "__qualname__", repr(function))
    try:
        return f"{name} ({inspect.getsourcefile(function)}:{inspect.getsourcelines(function)[1]})"
    except (TypeError, OSError):
        return name


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


# ---------------------------------------------------------------------------------------------- what is kept of a call


def _has_keywords(schema: OpSchema) -> bool:
    return any(argument.kwarg_only for argument in schema.arguments)


@dataclass(frozen=True, slots=True)
class _Kept:
    """What a ``setup_context`` keeps of the forward call, in slots: a tensor, a list of them, or None."""

    schema: OpSchema
    #: Positions of tensor arguments and of outputs.
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    #: The other arguments, by name.
    attrs: tuple[str, ...]
    #: Outputs through which nothing is differentiated, and arguments that get no gradient.
    constant: tuple[int, ...] = ()
    undifferentiated: tuple[int, ...] = ()
    refusal: str = ""

    def setup_context(self) -> Backward:
        """As ``torch.library.register_autograd`` takes it."""
        if _has_keywords(self.schema):

            def with_keywords(
                ctx: Any, inputs: tuple[Any, ...], keyword_only_inputs: dict[str, Any], output: Any
            ) -> None:
                self.keep(ctx, inputs, keyword_only_inputs, output)

            return with_keywords

        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
            self.keep(ctx, inputs, {}, output)

        return setup_context

    def keep(self, ctx: Any, inputs: tuple[Any, ...], keywords: Mapping[str, Any], output: Any) -> None:
        """Keep what is needed, and tell autograd what is constant."""
        arguments = self.schema.arguments
        positional = [a.name for a in arguments if not a.kwarg_only]
        by_name = dict(zip(positional, inputs, strict=False)) | dict(keywords)
        values = [by_name.get(a.name, a.default) for a in arguments]
        outputs = output if isinstance(output, tuple) else (output,)
        for n in self.undifferentiated:
            if any(tensor.requires_grad for tensor in _tensors(values[n])):
                raise GradientError(self.refusal.format(name=arguments[n].name))
        flat: list[torch.Tensor | None] = []
        slots: list[int | None] = []
        for value in (*(values[n] for n in self.inputs), *(outputs[n] for n in self.outputs)):
            many = isinstance(value, list | tuple)
            slots.append(len(value) if many else None)
            flat.extend(value if many else [value])
        ctx.save_for_backward(*flat)
        ctx.slots = slots
        ctx.arguments = {name: by_name.get(name, self.schema.argument(name).default) for name in self.attrs}
        if self.constant:
            ctx.mark_non_differentiable(*(t for n in self.constant for t in _tensors(outputs[n])))

    def kept(self, ctx: Any) -> tuple[list[Any], list[Any]]:
        """The inputs and outputs that were kept, in their order."""
        saved = iter(ctx.saved_tensors)
        values = [next(saved) if count is None else [next(saved) for _ in range(count)] for count in ctx.slots]
        return values[: len(self.inputs)], values[len(self.inputs) :]


def _tensors(value: Any) -> Iterable[torch.Tensor]:
    values = value if isinstance(value, list | tuple) else (value,)
    return (v for v in values if isinstance(v, torch.Tensor))


def _given_back(gradient: Any, needed: Any) -> Any:
    """A gradient in the form of its argument: nothing where none is needed, and a list for a list."""
    if isinstance(needed, list | tuple):
        gradients = [None] * len(needed) if gradient is None else gradient
        return [_given_back(g, n) for g, n in zip(gradients, needed, strict=True)]
    return gradient if needed else None


# --------------------------------------------------------------------------------------------------------- a function


def _check_takes(
    function: Any, schema: OpSchema, what: str, *, grads: int | None = None, keywords: Iterable[str] = ()
) -> None:
    """Refuse a function that cannot be called as it will be."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return  # of C: it does not say
    positional: list[Any] = [] if grads is None else [None] * (1 + grads)
    try:
        signature.bind(*positional, **dict.fromkeys(keywords))
    except TypeError as error:
        names = ", ".join(r.name or f"grad{n}" for n, r in enumerate(schema.returns))
        wanted = f"(ctx, {names})" if grads is not None else f"({', '.join(sorted(keywords))})"
        raise GradientError(
            f"{what} of {schema.qualified_name}, {_described(function)}, has the signature {signature}: {error}; it is "
            f"called with {wanted}"
        ) from None


def _of_function(function: Backward, binding: Binding) -> Gradient:
    schema, outputs = binding.schema, output_names(binding)
    asked = _keyword_only(function)
    tensors = {a.name: n for n, a in enumerate(schema.arguments) if a.is_tensor}
    attrs = [a.name for a in schema.arguments if not a.is_tensor]
    _check_takes(function, schema, "the gradient", grads=len(schema.returns), keywords=asked)
    if strangers := [name for name in asked if name not in (*tensors, *attrs, *outputs)]:
        raise GradientError(
            f"the gradient of {schema.qualified_name}, {_described(function)}, asks for {', '.join(strangers)}; there are the "
            f"arguments {', '.join((*tensors, *attrs))} and the outputs {', '.join(outputs)}"
        )
    if asked:
        of_inputs = [name for name in asked if name in tensors]
        of_outputs = [name for name in asked if name not in tensors and name in outputs]
        kept = _Kept(
            schema,
            tuple(tensors[name] for name in of_inputs),
            tuple(outputs.index(name) for name in of_outputs),
            tuple(attrs),
        )
    else:
        kept = _Kept(schema, tuple(tensors.values()), tuple(range(len(schema.returns))), tuple(attrs))
    positional = [argument for argument in schema.arguments if not argument.kwarg_only]

    def backward(ctx: Any, *grads: Any) -> Any:
        values: dict[str, Any] = {}
        if asked:
            inputs, results = kept.kept(ctx)
            values = dict(zip(of_inputs, inputs, strict=True)) | dict(zip(of_outputs, results, strict=True))
            values |= {name: ctx.arguments[name] for name in asked if name not in values}
        made = function(ctx, *grads, **values)
        gradients = list(made) if isinstance(made, tuple | list) else [made]
        if len(gradients) == len(tensors) != len(positional):
            by_name = dict(zip(tensors, gradients, strict=True))
            gradients = [by_name.get(argument.name) for argument in positional]
        if len(gradients) != len(positional):
            raise GradientError(
                f"the gradient of {schema.qualified_name} returned {len(gradients)} value(s); it has {len(positional)} "
                f"arguments, {len(tensors)} of them tensors ({', '.join(tensors)})"
            )
        return tuple(
            g if a.is_tensor and g is not None else _given_back(g, needed)
            for a, g, needed in zip(positional, gradients, ctx.needs_input_grad, strict=False)  # without defaults
        )

    return Gradient(backward, kept.setup_context(), f"the function {_described(function)}")


def _keyword_only(function: Any) -> list[str]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty]


# --------------------------------------------------------------------------------------------------------- an operator


def output_names(binding: Binding) -> list[str]:
    """What the outputs are called, in the order of the returns."""
    names = []
    for n, returned in enumerate(binding.returns):
        output = returned.output
        names.append(
            binding.prototype.outputs[output].name
            if output is not None
            else binding.schema.returns[n].name or f"output{n}"
        )
    return names


def signature_of(schema: OpSchema, binding: Binding | None, relation: Relation | None = None) -> Signature:
    """A torch operator as far as gradients are concerned; with a binding also by the prototype's names."""
    names = {} if binding is None else binding.argument_names()
    arguments = tuple(
        Argument(
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
        results.append(Result(called[n], kind, floating and kind.startswith("Tensor")))
    return Signature(schema.qualified_name, arguments, tuple(results))


def _of_operator(operator: Any, forward: Binding, relation: Relation | None, wiring: Wiring | None) -> Gradient:
    overload, binding = getattr(operator, "overload", operator), getattr(operator, "binding", None)
    if not isinstance(overload, torch._ops.OpOverload):
        overload, binding = operator, None
    if not is_functional_schema(overload._schema):
        raise GradientError(
            f"{overload.name()} as the gradient of {forward.schema.qualified_name}: it writes to, or hands on, its arguments"
        )
    schema = read_schema(overload._schema)
    name = schema.qualified_name if binding is None else binding.prototype.op_type
    plan = plan_gradient(
        signature_of(forward.schema, forward, relation), signature_of(schema, binding), wiring or Wiring(name)
    )
    kept = _Kept(
        forward.schema,
        plan.saved(Feed.INPUT),
        plan.saved(Feed.OUTPUT),
        tuple(forward.schema.arguments[n].name for n in plan.saved(Feed.ATTR)),
        plan.constant,
        plan.undifferentiated,
        f"{forward.schema.qualified_name}: its gradient {name} gives none for the argument {{name}}, which requires grad; "
        f"where it needs none say so, backward='{name}; constant: {{name}}', or detach it",
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
            _given_back(None if (index := plan.gradient_of[n]) is None else made[index], needed)
            for n, needed in zip(positional, ctx.needs_input_grad, strict=False)  # without what was left at its default
        )

    return Gradient(backward, kept.setup_context(), f"the operator {overload}", plan)


def _contiguous(gradient: Any) -> Any:
    """The gradient of an output as kernels take it; generated C++ does the same."""
    if isinstance(gradient, list | tuple):
        return [_contiguous(g) for g in gradient]
    return gradient if gradient is None else gradient.contiguous()
