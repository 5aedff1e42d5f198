"""Parameters of an aclnn function that each call computes from its arguments. Imports torch."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import torch

from ascend_graph.aclnn import AclnnParameter, ValueKind
from ascend_graph.binding import CallArgument
from ascend_graph.binding.calls.constants import constant
from ascend_graph.binding.dtypes import ge_dtype
from ascend_graph.binding.generated_schema import OperatorSchema
from ascend_graph.dispatch.meta_dtypes import TORCH
from ascend_graph.eager.errors import EagerArgumentError


def computation(
    schema: OperatorSchema, argument: CallArgument, dtypes: Collection[str]
) -> Callable[[dict[str, Any]], Any]:
    """Return the function that computes a parameter from all arguments of a call, by name; it checks the value.

    Args:
        schema: The operator's schema.
        argument: The computed argument.
        dtypes: The schema's arguments of the type ``ScalarType``, which arrive as numbers.
    """
    function, named = argument.value.function, argument.value.argument
    source = next((a.name for a in schema.arguments if a.parameter.name == named), None)
    parameter = AclnnParameter(argument.name, argument.type)

    def compute(arguments: dict[str, Any]) -> Any:
        given = with_dtypes(arguments, dtypes)
        try:
            value = _applied(function, given if source is None else given[source])
            return _checked(parameter, value)
        except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
            raise EagerArgumentError(
                f"{schema.name}: aclnn_arguments={{{parameter.name!r}: …}}: {type(error).__name__}: {error}"
            ) from error

    return compute


def with_dtypes(arguments: dict[str, Any], dtypes: Collection[str]) -> dict[str, Any]:
    """Return the arguments with ``torch.dtype`` in place of the numbers of dtypes."""
    for name in dtypes:
        if isinstance(arguments.get(name), int):
            arguments[name] = TORCH.from_attr(arguments[name])
    return arguments


def _applied(function: Any, value: Any) -> Any:
    if not isinstance(function, Mapping):
        return function(value)
    if value not in function:
        raise ValueError(f"{value!r} is not in the table; expected one of {', '.join(map(repr, function))}")
    return function[value]


def _checked(parameter: AclnnParameter, value: Any) -> Any:
    if isinstance(value, torch.dtype):
        value = int(ge_dtype(value))
    tensors = {ValueKind.TENSOR: (value,), ValueKind.TENSOR_LIST: value}.get(parameter.value)
    if tensors is None or value is None:
        return constant(parameter, value)
    if not isinstance(tensors, list | tuple) or not all(isinstance(tensor, torch.Tensor) for tensor in tensors):
        raise ValueError(f"{parameter} takes {parameter.value.value}, got {type(value).__name__}")
    return value
