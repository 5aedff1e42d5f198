"""Default ``setup_context`` of a gradient or a tangent without its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from ascend_graph.autograd import GradientError
from ascend_graph.binding.op_schema import OpSchema

Function = Callable[..., Any]


def has_keywords(schema: OpSchema) -> bool:
    """Return whether the schema has keyword-only arguments."""
    return any(argument.kwarg_only for argument in schema.arguments)


@dataclass(frozen=True, slots=True)
class SavedCall:
    """Part of a call that a ``setup_context`` saves, in slots: a tensor, a list of them, or None."""

    schema: OpSchema
    #: Positions of tensor arguments and of outputs.
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    #: Names of the other arguments.
    attrs: tuple[str, ...]
    #: Outputs that are not differentiated, and arguments that get no gradient.
    constant: tuple[int, ...] = ()
    undifferentiated: tuple[int, ...] = ()
    refusal: str = ""

    def setup_context(self) -> Function:
        """Return the ``setup_context`` function, as ``torch.library.register_autograd`` takes it."""
        if has_keywords(self.schema):

            def with_keywords(
                ctx: Any, inputs: tuple[Any, ...], keyword_only_inputs: dict[str, Any], output: Any
            ) -> None:
                self.keep(ctx, inputs, keyword_only_inputs, output)

            return with_keywords

        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
            self.keep(ctx, inputs, {}, output)

        return setup_context

    def keep(self, ctx: Any, inputs: tuple[Any, ...], keywords: Mapping[str, Any], output: Any) -> None:
        """Save the needed values on ``ctx``, and mark constant outputs."""
        arguments = self.schema.arguments
        positional = [a.name for a in arguments if not a.kwarg_only]
        by_name = dict(zip(positional, inputs, strict=False)) | dict(keywords)
        values = [by_name.get(a.name, a.default) for a in arguments]
        outputs = output if isinstance(output, tuple) else (output,)
        needed = dict(zip(positional, ctx.needs_input_grad, strict=False))
        for n in self.undifferentiated:
            if _any(needed.get(arguments[n].name, False)):
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
        """Return the saved inputs and outputs, in their order."""
        saved = iter(ctx.saved_tensors)
        values = [next(saved) if count is None else [next(saved) for _ in range(count)] for count in ctx.slots]
        return values[: len(self.inputs)], values[len(self.inputs) :]


def _tensors(value: Any) -> Iterable[torch.Tensor]:
    values = value if isinstance(value, list | tuple) else (value,)
    return (v for v in values if isinstance(v, torch.Tensor))


def _any(needed: Any) -> bool:
    return any(needed) if isinstance(needed, list | tuple) else bool(needed)


def given_back(gradient: Any, needed: Any) -> Any:
    """Return a gradient in the form of its argument: None if not needed, and a list for a list."""
    if isinstance(needed, list | tuple):
        gradients = [None] * len(needed) if gradient is None else gradient
        return [given_back(g, n) for g, n in zip(gradients, needed, strict=True)]
    return gradient if needed else None
