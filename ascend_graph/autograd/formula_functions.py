"""Author functions as the gradient or the tangent of an operator: checked, and called by one convention."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ascend_graph.autograd import GradientError
from ascend_graph.autograd.formulas import Formula, separate
from ascend_graph.autograd.saved_call import SavedCall, given_back, has_keywords
from ascend_graph.binding.bound import Binding
from ascend_graph.binding.op_schema import OpSchema
from ascend_graph.signatures import misfit

Function = Callable[..., Any]


def described(function: Any) -> str:
    """Return a function's name and source location."""
    name = getattr(function, "__qualname__", repr(function))
    try:
        return f"{name} ({inspect.getsourcefile(function)}:{inspect.getsourcelines(function)[1]})"
    except (TypeError, OSError):
        return name


def output_names(binding: Binding) -> list[str]:
    """Return the names of the outputs, in the order of the returns."""
    names = []
    for n, returned in enumerate(binding.returns):
        output = returned.output
        names.append(
            binding.prototype.outputs[output].name
            if output is not None
            else binding.schema.returns[n].name or f"output{n}"
        )
    return names


def is_pair(given: Any) -> bool:
    """Return whether something is a formula with a ``setup_context`` of its own."""
    return isinstance(given, tuple) and len(given) == 2 and all(callable(part) for part in given)


def gradient_pair(given: tuple[Function, Function], schema: OpSchema) -> Formula:
    """Return the formula of ``backward=(function, setup_context)``."""
    function, setup = given
    _check_takes(function, schema, "the gradient", _gradients(schema))
    _check_setup(setup, schema)
    return Formula(function, setup)


def gradient_function(function: Function, binding: Binding) -> Formula:
    """Return the formula of ``backward=function``."""
    schema, saved = binding.schema, _Saved(function, binding, "the gradient")
    _check_takes(function, schema, "the gradient", _gradients(schema), keywords=saved.asked)
    positional = [argument for argument in schema.arguments if not argument.kwarg_only]
    tensors = [argument.name for argument in schema.arguments if argument.is_tensor]
    only_list = len(tensors) == 1 and any(a.is_tensor and a.list_depth for a in schema.arguments)

    def backward(ctx: Any, *grads: Any) -> Any:
        gradients = separate(function(ctx, *grads, **saved.values(ctx)), only_list)
        if len(gradients) == len(tensors) != len(positional):
            by_name = dict(zip(tensors, gradients, strict=True))
            gradients = [by_name.get(argument.name) for argument in positional]
        if len(gradients) != len(positional):
            raise GradientError(
                f"the gradient of {schema.qualified_name} returned {len(gradients)} value(s); it has {len(positional)} "
                f"arguments, {len(tensors)} of them tensors ({', '.join(tensors)}); expected one for each tensor. Return None for one without"
            )
        return tuple(
            g if a.is_tensor and g is not None else given_back(g, needed)
            for a, g, needed in zip(positional, gradients, ctx.needs_input_grad, strict=True)
        )

    return Formula(backward, saved.call.setup_context())


def tangent_pair(given: tuple[Function, Function], schema: OpSchema) -> Formula:
    """Return the formula of ``forward=(function, setup_context)``."""
    function, setup = given
    _check_setup(setup, schema)
    return Formula(_taking_tangents(function, schema, ()), setup)


def tangent_function(function: Function, binding: Binding) -> Formula:
    """Return the formula of ``forward=function``."""
    saved = _Saved(function, binding, "the tangent")
    taking = _taking_tangents(function, binding.schema, saved.asked)

    def forward(ctx: Any, *tangents: Any) -> Any:
        return taking(ctx, *tangents, **saved.values(ctx))

    return Formula(forward, saved.call.setup_context())


class _Saved:
    """Values of a call that a function requests by keyword, or finds on ``ctx``."""

    def __init__(self, function: Function, binding: Binding, what: str) -> None:
        schema, outputs = binding.schema, output_names(binding)
        self.asked = _keyword_only(function)
        tensors = {a.name: n for n, a in enumerate(schema.arguments) if a.is_tensor}
        attrs = tuple(a.name for a in schema.arguments if not a.is_tensor)
        if strangers := [name for name in self.asked if name not in (*tensors, *attrs, *outputs)]:
            raise GradientError(
                f"{what} of {schema.qualified_name}, {described(function)}, asks for {', '.join(strangers)}; there are the "
                f"arguments {', '.join((*tensors, *attrs))} and the outputs {', '.join(outputs)}"
            )
        self.inputs = [name for name in self.asked if name in tensors]
        self.outputs = [name for name in self.asked if name not in tensors and name in outputs]
        positions = tuple(tensors[name] for name in self.inputs), tuple(outputs.index(name) for name in self.outputs)
        if not self.asked:
            positions = tuple(tensors.values()), tuple(range(len(schema.returns)))
        self.call = SavedCall(schema, *positions, attrs)

    def values(self, ctx: Any) -> dict[str, Any]:
        """Return the requested values by name."""
        if not self.asked:
            return {}
        inputs, results = self.call.kept(ctx)
        values = dict(zip(self.inputs, inputs, strict=True)) | dict(zip(self.outputs, results, strict=True))
        return values | {name: ctx.arguments[name] for name in self.asked if name not in values}


# ------------------------------------------------------------------------------------------------- what a function takes


def _gradients(schema: OpSchema) -> list[str]:
    return [returned.name or f"grad{n}" for n, returned in enumerate(schema.returns)]


def _taking_tangents(function: Function, schema: OpSchema, keywords: Sequence[str]) -> Function:
    """Adapt the function to take one tangent per positional argument.

    ``torch.autograd.Function.jvp`` calls it that way, with None for other arguments than tensors. A function with as
    many parameters as there are tensor arguments gets their tangents alone.
    """
    positional = [argument for argument in schema.arguments if not argument.kwarg_only]
    tensors = [n for n, argument in enumerate(positional) if argument.is_tensor]
    every, alone = [f"{a.name}_tangent" for a in positional], [f"{positional[n].name}_tangent" for n in tensors]
    if misfit(function, ["ctx", *every], keywords) is None:
        return function
    _check_takes(function, schema, "the tangent", alone, keywords=keywords)

    def of_tensors(ctx: Any, *tangents: Any, **values: Any) -> Any:
        return function(ctx, *(tangents[n] for n in tensors), **values)

    return of_tensors


def _check_setup(setup: Function, schema: OpSchema) -> None:
    keywords = {"ctx", "inputs", "output"} | ({"keyword_only_inputs"} if has_keywords(schema) else set())
    _check_takes(setup, schema, "setup_context", None, keywords=keywords)


def _check_takes(
    function: Any, schema: OpSchema, what: str, values: Sequence[str] | None, *, keywords: Iterable[str] = ()
) -> None:
    """Raise unless the function can be called with ``ctx`` and ``values``, or by keyword alone."""
    positional = [] if values is None else ["ctx", *values]
    if why := misfit(function, positional, keywords):
        wanted = f"({', '.join(positional or sorted(keywords))})"
        raise GradientError(
            f"{what} of {schema.qualified_name}, {described(function)}, has the signature {why}; it is "
            f"called with {wanted}"
        )


def _keyword_only(function: Any) -> list[str]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty]
