"""Eager kernels without C++ code: one boxed kernel that calls ``aclnn<OpType>`` from a plan.

Importing this package imports no torch; :func:`define_operator` does, and compiles the kernel on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ascend_graph.binding.errors import EagerError
from ascend_graph.binding.generated_schema import GeneratedArgument, OperatorSchema, operator_schema
from ascend_graph.eager.errors import AclnnError, EagerArgumentError, MissingFunctionError

if TYPE_CHECKING:
    from ascend_graph.eager.operators import EagerOperator, define_operator

__all__ = [
    "AclnnError",
    "EagerArgumentError",
    "EagerError",
    "EagerOperator",
    "GeneratedArgument",
    "MissingFunctionError",
    "OperatorSchema",
    "define_operator",
    "operator_schema",
]


def __getattr__(name: str) -> Any:
    if name in ("EagerOperator", "define_operator"):
        from ascend_graph.eager import operators

        return getattr(operators, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}; expected one of {', '.join(__all__)}")
