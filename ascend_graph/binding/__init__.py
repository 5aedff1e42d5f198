"""Binding of a prototype's inputs, attrs and outputs to a schema's arguments and an aclnn function. No torch."""

from ascend_graph.binding.calls.call import AclnnCall, ArgumentEvidence, CallArgument, Part, msopgen_call
from ascend_graph.binding.calls.finding import find_call
from ascend_graph.binding.calls.matching import bind_call
from ascend_graph.binding.errors import BindingError, BindingWarning, CannMismatchError, CannMismatchWarning

__all__ = [
    "AclnnCall",
    "ArgumentEvidence",
    "BindingError",
    "BindingWarning",
    "CallArgument",
    "CannMismatchError",
    "CannMismatchWarning",
    "Part",
    "bind_call",
    "find_call",
    "msopgen_call",
]
