"""Registration of an operator with torch in one transaction. Imports torch.

It covers schema, binding, meta function, converter and gradient.
"""

from ascend_graph.autograd import GradientError
from ascend_graph.binding import BindingError
from ascend_graph.binding.arguments import bind
from ascend_graph.binding.bound import Argument, Binding, Evidence
from ascend_graph.binding.dtypes import DtypeError, dtype_number
from ascend_graph.binding.op_schema import OpSchema, SchemaError, read_schema
from ascend_graph.dispatch.fake import register_meta
from ascend_graph.dispatch.fitting import MetaError
from ascend_graph.dispatch.meta import meta_function
from ascend_graph.dispatch.torchair import ConverterError
from ascend_graph.registration.conversion.comparison import ReplacedConverterWarning
from ascend_graph.registration.conversion.converter import make_converter
from ascend_graph.registration.conversion.node_outputs import ConversionError
from ascend_graph.registration.register import register_aclnn, register_kernel, register_op
from ascend_graph.registration.registered import RegisteredOp, registered_ops
from ascend_graph.registration.request import RegistrationError

__all__ = [
    "Argument",
    "Binding",
    "BindingError",
    "ConversionError",
    "ConverterError",
    "DtypeError",
    "Evidence",
    "GradientError",
    "MetaError",
    "OpSchema",
    "RegisteredOp",
    "RegistrationError",
    "ReplacedConverterWarning",
    "SchemaError",
    "bind",
    "dtype_number",
    "make_converter",
    "meta_function",
    "read_schema",
    "register_aclnn",
    "register_kernel",
    "register_meta",
    "register_op",
    "registered_ops",
]
