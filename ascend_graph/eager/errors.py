"""What can go wrong when an operator is defined or called; raised by Python and by the C++ kernel."""

from __future__ import annotations

from ascend_graph.binding.errors import EagerError


class EagerArgumentError(EagerError, RuntimeError):
    """A call's arguments do not fit the kernel; also a ``RuntimeError``, as torch's own argument checks raise."""


class AclnnError(EagerError, RuntimeError):
    """An aclnn function returned an error. The message has its text, the operator and the arguments."""

    #: The function's return value.
    code: int = 0


class MissingFunctionError(EagerError, RuntimeError):
    """An aclnn function is in none of the libraries that CANN searches; the message lists them."""
