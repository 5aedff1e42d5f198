"""Making an operator known to torch: schema, binding, meta function, converter, gradient, as one transaction. Imports torch."""

from ascend_graph.binding import BindingError
from ascend_graph.binding.arguments import bind
from ascend_graph.binding.bound import Argument, Binding, Evidence
from ascend_graph.binding.dtypes import DtypeError, dtype_number
from ascend_graph.binding.op_schema import OpSchema, SchemaError, read_schema
from ascend_graph.dispatch.fake import register_meta
from ascend_graph.dispatch.meta import MetaError, meta_function
from ascend_graph.gradients import GradientError
from ascend_graph.registration.comparison import ReplacedConverterWarning
from ascend_graph.registration.converter import ConversionError, make_converter
from ascend_graph.registration.register import RegisteredOp, register_aclnn, register_op, registered_ops
from ascend_graph.registration.request import RegistrationError
from ascend_graph.registration.torchair import ConverterError

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
    "register_meta",
    "register_op",
    "registered_ops",
]
