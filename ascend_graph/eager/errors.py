"""Errors of defining or calling an operator, raised by Python and by the C++ kernel."""

from __future__ import annotations

from ascend_graph.binding.errors import EagerError


class EagerArgumentError(EagerError, RuntimeError):
    """Error of arguments that do not fit the kernel; also a ``RuntimeError``, as torch's own argument checks raise."""


class AclnnError(EagerError, RuntimeError):
    """Error returned by an aclnn function. The message has its text, the operator and the arguments."""

    #: Return value of the function.
    code: int = 0


class MissingFunctionError(EagerError, RuntimeError):
    """Error of an aclnn function absent from all libraries that CANN searches; the message lists them."""
