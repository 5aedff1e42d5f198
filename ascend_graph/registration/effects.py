"""Warnings of schemas whose declared effects keep an operator out of compiled programs, with the schema to write."""

from __future__ import annotations

import re
import warnings
from typing import Any

from ascend_graph.binding.errors import BindingWarning
from ascend_graph.binding.op_schema import OpSchema
from ascend_graph.registration.request import RegistrationRequest
from ascend_graph.registration.writing.functional_variant import has_own_rule


def warn_of_effects(request: RegistrationRequest, schema: OpSchema) -> None:
    """Warn of an operator whose writes compiled programs lose, or whose calls they refuse, by what its schema declares."""
    text = _without_effects(request, schema) or _returning_a_view(request.overload, schema)
    if text:
        warnings.warn(f"{schema.qualified_name}: {text}", BindingWarning, stacklevel=6)


def _without_effects(request: RegistrationRequest, schema: OpSchema) -> str:
    """Return the warning of an operator that by its schema returns and writes nothing, or an empty text."""
    tensors = [argument for argument in schema.arguments if argument.is_tensor]
    if schema.returns or not tensors or any(argument.mutated for argument in schema.arguments):
        return ""
    text = schema.text
    for n, argument in enumerate(tensors):
        text = re.sub(rf"\bTensor(?=[\[\]?]* {argument.name}\b)", f"Tensor({chr(ord('a') + n % 26)}!)", text)
    outputs = ""
    if request.in_graphs and not request.prototype.outputs:
        outputs = " and .OUTPUT of the same name in the prototype"
    line = ""
    if request.overload is not None:
        namespace, _, rest = text.partition("::")
        line = (
            f'. If it cannot be changed, pass eager=ascend_graph.define_from_function("{namespace}_writes::{rest}", '
            f"torch.ops.{schema.name.replace('::', '.')}.{schema.overload or 'default'})"
        )
    return (
        "its schema says that it returns nothing and writes nothing. Captures keep its calls, and may lose what they write; a GE graph "
        f"drops them. Write (a!) at each argument that it writes{outputs}: {text}, without the marks at what it only reads{line}"
    )


def _returning_a_view(overload: Any, schema: OpSchema) -> str:
    """Return the warning of an operator that by its schema returns a view of what it only reads, or an empty text."""
    views = [r for r in schema.returns if r.alias_of is not None and not schema.argument(r.alias_of).mutated]
    if not views or overload is None or has_own_rule(overload):
        return ""
    text = re.sub(r"\bTensor\([^()!]*\)", "Tensor", schema.text)
    return (
        f"its schema says that it returns a view of {views[0].alias_of}, which PyTorch takes into no compiled or exported program "
        f"for a custom operator. Return new tensors and write: {text}; or keep it for eager calls and captures of streams"
    )
