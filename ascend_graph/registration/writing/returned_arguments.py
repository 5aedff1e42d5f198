"""Check of operators that return what they write: graphs give the argument, whatever the operator returned."""

from __future__ import annotations

from typing import Any

import torch

from ascend_graph.binding.op_schema import OpSchema
from ascend_graph.errors import AscendGraphError
from ascend_graph.registration.writing.layouts import layout_of


def check_returned_argument(schema: OpSchema, number: int, value: Any, argument: Any) -> None:
    """Check that a return which is an argument by the schema is that argument.

    Args:
        schema: The operator's schema.
        number: The position of the return.
        value: The result there.
        argument: The argument that the schema names.

    Raises:
        AscendGraphError: It is another tensor, or another view.
    """
    if not _is_same(value, argument):
        returned = schema.returns[number]
        raise AscendGraphError(
            f"{schema.qualified_name}: {returned.name or f'result {number}'} is not the argument {returned.alias_of}; expected that "
            f"tensor, which the schema says and graphs take for granted. Write: return {returned.alias_of} in the function, or a "
            "schema without (a!) at this return"
        )


def _is_same(value: Any, argument: Any) -> bool:
    """Return whether a result is an argument, as the same object or as the same elements of one memory."""
    if isinstance(value, list | tuple) and isinstance(argument, list | tuple):
        return len(value) == len(argument) and all(map(_is_same, value, argument))
    if value is argument or not (isinstance(value, torch.Tensor) and isinstance(argument, torch.Tensor)):
        return value is argument
    return (
        value.layout == argument.layout == torch.strided
        and value.untyped_storage()._cdata == argument.untyped_storage()._cdata
        and (value.dtype, value.is_conj(), value.is_neg()) == (argument.dtype, argument.is_conj(), argument.is_neg())
        and layout_of(value) == layout_of(argument)
    )
