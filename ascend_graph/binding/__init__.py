"""What feeds what: the prototype's inputs, attrs and outputs, and the parameters of an aclnn function. No torch."""

from ascend_graph.binding.call import Call, CallArgument, Evidence, Part, msopgen_call
from ascend_graph.binding.call_matching import bind_call
from ascend_graph.binding.errors import BindingError, BindingWarning, CannMismatchError, CannMismatchWarning
from ascend_graph.binding.finding import find_call

__all__ = [
    "BindingError",
    "BindingWarning",
    "Call",
    "CallArgument",
    "CannMismatchError",
    "CannMismatchWarning",
    "Evidence",
    "Part",
    "bind_call",
    "find_call",
    "msopgen_call",
]
