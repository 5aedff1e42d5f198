"""Formulas that differentiate an operator, and the conversion of its calls for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch._library.utils import fill_defaults, has_kwarg_only_args

from ascend_graph.autograd import GradientError

Function = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Formula:
    """Derivative function, and a ``setup_context`` that saves the parts of the call that it needs.

    ``function(ctx, *values)`` takes gradients of the outputs and returns one for each positional argument, or takes
    tangents of the positional arguments and returns one for each output.
    """

    function: Function
    setup_context: Function


# ------------------------------------------------------------------------------------------- tensors among other values

#: Slot of each value of a call: its index among the tensors, None for another value, or the slots of a list.
Slots = tuple[Any, ...]


def flatten(values: Sequence[Any]) -> tuple[Slots, list[torch.Tensor]]:
    """Return the slots of tensors among values and in lists, and the tensors.

    >>> x, y = torch.ones(1), torch.ones(2)
    >>> flatten((x, 2, [y, None], [1]))
    ((0, None, (1, None), None), [tensor([1.]), tensor([1., 1.])])
    """
    tensors: list[torch.Tensor] = []
    return tuple([_slot(value, tensors) for value in values]), tensors


# A nested function that calls itself is a reference cycle: it keeps the tensors of a call until Python collects garbage.


def _slot(value: Any, tensors: list[torch.Tensor]) -> Any:
    if isinstance(value, torch.Tensor):
        tensors.append(value)
        return len(tensors) - 1
    if isinstance(value, list | tuple) and any(isinstance(item, torch.Tensor) for item in value):
        return tuple([_slot(item, tensors) for item in value])
    return None


def rebuild(values: Sequence[Any], slots: Slots, tensors: Sequence[Any]) -> tuple[Any, ...]:
    """Return the values with other ones in the slots of tensors."""
    return tuple([_placed(value, slot, tensors) for value, slot in zip(values, slots, strict=True)])


def _placed(value: Any, slot: Any, tensors: Sequence[Any]) -> Any:
    if isinstance(slot, tuple):
        return [_placed(None, part, tensors) for part in slot]
    return value if slot is None else tensors[slot]


def listed(output: Any) -> tuple[Any, ...]:
    """Return the outputs of an operator as a tuple, a single output too."""
    return output if isinstance(output, tuple) else (output,)


def full_arguments(
    overload: Any, args: Sequence[Any], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of a call with the defaults that the dispatcher leaves out."""
    positional, named = fill_defaults(overload._schema, tuple(args), kwargs)
    return tuple(positional), dict(named)


def set_up(overload: Any, formula: Formula, ctx: Any, args: Sequence[Any], kwargs: dict[str, Any], output: Any) -> None:
    """Call a formula's ``setup_context`` with the arguments and outputs of a call."""
    positional, named = full_arguments(overload, args, kwargs)
    more = {"keyword_only_inputs": named} if has_kwarg_only_args(overload._schema) else {}
    formula.setup_context(ctx=ctx, inputs=positional, output=output, **more)


def flatten_optional(values: Sequence[Any], slots: Slots) -> list[Any]:
    """Return the values in the slots of tensors, in their order."""
    found: list[Any] = []
    for value, slot in zip(values, slots, strict=True):
        if isinstance(slot, tuple):
            found += [part for part, number in zip(value, slot, strict=True) if number is not None]
        elif slot is not None:
            found.append(value)
    return found


def separate(made: Any, only_list: bool) -> list[Any]:
    """Return the gradients that a function returned, one for each argument.

    Args:
        made: A gradient, or several.
        only_list: True if there is one argument, and it is a list: then tensors are the gradients of its elements.

    >>> separate([1, 2], only_list=False), separate(([None], 2), only_list=False)
    ([1, 2], [[None], 2])
    >>> len(separate([torch.ones(1), None], only_list=True))
    1
    """
    if not isinstance(made, tuple | list):
        return [made]
    return [made] if only_list and any(isinstance(part, torch.Tensor) for part in made) else list(made)


def flat_gradients(overload: Any, slots: Slots, made: Any) -> list[Any]:
    """Return the gradients of the tensors, taken from those of the arguments."""
    gradients = separate(made, only_list=len(slots) == 1 and isinstance(slots[0], tuple))
    arguments = overload._schema.arguments

    def refuse(what: str) -> GradientError:
        return GradientError(f"the gradient of {overload.name()} returned {what}")

    if len(gradients) != len(slots):
        raise refuse(f"{len(gradients)} value(s); expected one for each of the {len(slots)} positional arguments")
    flat: list[Any] = []
    for argument, slot, gradient in zip(arguments, slots, gradients, strict=False):
        if isinstance(slot, tuple):
            parts = [None] * len(slot) if gradient is None else gradient
            if not isinstance(parts, list | tuple) or len(parts) != len(slot):
                raise refuse(f"{gradient!r} for {argument.name}; expected a list of {len(slot)} gradients, or None")
            flat += [part for part, number in zip(parts, slot, strict=True) if number is not None]
        elif slot is not None:
            flat.append(gradient)
        elif isinstance(gradient, torch.Tensor) and "Tensor" not in str(
            argument.type
        ):  # of an absent tensor it is dropped
            raise refuse(f"a tensor for {argument.name}, which is of the type {argument.type}; expected None")
    return flat
