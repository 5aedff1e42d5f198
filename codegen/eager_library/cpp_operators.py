"""Operators of a generated C++ library: the names, parameters and shapes that the templates need."""

from __future__ import annotations

import keyword
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ascend_graph.codegen.declarations import Declaration
from ascend_graph.codegen.eager_library import texts
from ascend_graph.codegen.eager_library.aclnn_call import CppCall, cpp_call
from ascend_graph.codegen.eager_library.gradients import CppGradient
from ascend_graph.codegen.kernels.launch_model import KernelLaunch
from ascend_graph.codegen.operator_package import CPP_KEYWORDS
from ascend_graph.codegen.output_shapes import CppTensor, OutputCode, output_code
from ascend_graph.codegen.rendering import cpp_string, identifier

from ascend_graph.aclnn import AclnnFunction
from ascend_graph.binding import AclnnCall
from ascend_graph.binding.dtype_mask import ANY, AllowedDtypes, allowed_dtypes
from ascend_graph.binding.generated_schema import AclnnArgumentKind, GeneratedArgument, OperatorSchema
from ascend_graph.eager.shape_code import attr_kind
from ascend_graph.prototypes import Parameter, ParameterKind
from ascend_graph.shapes import Relation
from ascend_graph.shapes.declared_dtypes import complete_relation
from ascend_graph.shapes.form import AttrKind
from ascend_graph.shapes.syntax import Itself

#: Functions of csrc/eager that generated functions call, and those that only calls of aclnn functions need.
HELPERS = (
    *("add", "allocate", "broadcast", "ceil_divide", "check_dtype", "check_given", "check_rank", "check_size"),
    *("check_sizes", "elements", "floor_divide", "given", "middle", "modulo", "multiply", "negate", "npu_of"),
    *("scalar_type", "shape", "subtract", "with_data", "without_data"),
)
ACLNN_HELPERS = ("call", "find_function")
_MACROS = {"assert", "errno", "linux", "unix"}
#: Names that no function can have in C++ or Python: the operator is ``<name>_op`` then.
NO_FUNCTION = CPP_KEYWORDS | _MACROS | {*keyword.kwlist}
#: Names that the generated functions use themselves.
_RESERVED = (
    CPP_KEYWORDS
    | _MACROS
    | {*HELPERS, *ACLNN_HELPERS}
    | {
        "function",
        "guard",
        "outputs",
        "metas",
        "leading_dims",
        "saved",
        "grads",
        "ctx",
        "result",
        "device",
        "kernel",
        "op",
        "operands",
        "launch",
        "stream",
    }
)
#: C++ type of an argument, type of an optional one, and form in an aclnn call, by kind.
_CPP = {
    AclnnArgumentKind.INT: ("int64_t", "std::optional<int64_t>", "{}"),
    AclnnArgumentKind.FLOAT: ("double", "std::optional<double>", "{}"),
    AclnnArgumentKind.BOOL: ("bool", "std::optional<bool>", "{}"),
    AclnnArgumentKind.STRING: ("c10::string_view", "std::optional<c10::string_view>", "{}"),
    AclnnArgumentKind.INTS: ("at::IntArrayRef", "at::OptionalIntArrayRef", "{}"),
    AclnnArgumentKind.FLOATS: ("at::ArrayRef<double>", "std::optional<at::ArrayRef<double>>", "{}"),
    AclnnArgumentKind.BOOLS: ("c10::List<bool>", "std::optional<c10::List<bool>>", "{}"),
    AclnnArgumentKind.DTYPE: ("int64_t", "std::optional<int64_t>", "Dtype{{{}}}"),
    AclnnArgumentKind.DTYPES: ("at::IntArrayRef", "at::OptionalIntArrayRef", "Dtypes{{{}}}"),
    AclnnArgumentKind.SCALAR: ("const at::Scalar&", "const std::optional<at::Scalar>&", "{}"),
    AclnnArgumentKind.SCALARS: ("at::ArrayRef<at::Scalar>", "std::optional<at::ArrayRef<at::Scalar>>", "{}"),
}


@dataclass(frozen=True, slots=True)
class CppArgument:
    """Argument of an operator in C++."""

    name: str
    type: str
    #: Value, with the default in place if no schema can express it.
    value: str
    #: Form in an aclnn call.
    aclnn: str
    argument: GeneratedArgument
    #: Dtypes that the prototype allows for a tensor; None for any dtype.
    dtypes: AllowedDtypes | None = None


@dataclass(frozen=True, slots=True)
class CppOperator:
    """Texts of one operator for the templates."""

    op_type: str
    name: str
    schema: str
    #: Call of its aclnn function; None if it launches a kernel.
    call: CppCall | None
    arguments: tuple[CppArgument, ...]
    returns: str
    outputs: int
    #: True for each output that is a list.
    list_outputs: tuple[bool, ...]
    relation: str
    #: C++ of its output shapes; None if the meta function is in Python.
    shapes: OutputCode | None
    gradient: CppGradient | None
    op_schema: OperatorSchema
    #: Declaration that its call is compiled by; None if no header declares the function, or it calls none.
    declared: AclnnFunction | None = None
    #: Launch of its kernel; None if it calls an aclnn function.
    launch: KernelLaunch | None = None
    namespace: str = ""
    #: Name of its own files, which stays when the operator is renamed.
    file: str = ""
    #: Prototype's name of each argument that is called otherwise.
    renamed: Mapping[str, str] = field(default_factory=dict)

    @property
    def qualified(self) -> str:
        """Name as messages and the dispatcher have it."""
        return f"{self.namespace}::{self.name}"

    @property
    def parameters(self) -> str:
        """Parameters of its functions."""
        return ", ".join(f"{a.type} {a.name}" for a in self.arguments)

    @property
    def values(self) -> str:
        """Arguments as passed on to another function."""
        return ", ".join(a.name for a in self.arguments)


def cpp_name(name: str) -> str:
    """Return an argument's name in C++, distinct from the names that generated functions use."""
    return f"{identifier(name)}_" if name in _RESERVED or name.startswith(("dim_", "host_")) else identifier(name)


def cpp_operator(
    schema: OperatorSchema, relation: Relation | None, declaration: Declaration, call: AclnnCall | None = None
) -> CppOperator:
    """Return the texts of an operator, without its gradient and without a launch."""
    arguments = tuple(_cpp_argument(a) for a in schema.arguments)
    written = {
        f"{'input' if a.argument.is_input else 'attr'} {a.argument.parameter.name}": (a.argument, a.value, a.aclnn)
        for a in arguments
    }
    lists = tuple(p.kind is ParameterKind.DYNAMIC for p in schema.returns)
    types = ["std::vector<at::Tensor>" if is_list else "at::Tensor" for is_list in lists]
    returns = "void" if not types else types[0] if len(types) == 1 else f"std::tuple<{', '.join(types)}>"
    return CppOperator(
        identifier(schema.prototype.op_type),
        identifier(schema.name),
        cpp_string(str(schema)),
        None if call is None else cpp_call(call, schema, written),
        arguments,
        returns,
        len(lists),
        lists,
        str(complete_relation(schema.prototype, declaration.shape)) if declaration.shape else "",
        OutputCode((), ()) if relation is None else _shapes(relation, arguments),
        None,
        schema,
        declared=None if call is None else call.declared,
    )


def _shapes(relation: Relation, arguments: Sequence[CppArgument]) -> OutputCode | None:
    if any(isinstance(a.shape, Itself) for t in relation.output_tensors for a in t.alternatives):
        return None
    tensors: dict[str, CppTensor] = {}
    attrs: dict[str, tuple[str, AttrKind]] = {}
    for argument in arguments:
        name, given = argument.argument.parameter.name, argument.argument
        if given.kind is AclnnArgumentKind.TENSOR:
            tensors[name] = CppTensor(argument.name, argument.type.startswith("const std::optional"))
        elif not given.is_tensor and name not in tensors:
            attrs[name] = argument.name, attr_kind(given.kind, given.default is not None or given.is_null)
    return output_code(relation, tensors, attrs)


def _cpp_argument(argument: GeneratedArgument) -> CppArgument:
    name = cpp_name(argument.name)
    parameter = argument.parameter
    if isinstance(parameter, Parameter) and not argument.is_tensor:
        plain, optional, aclnn = _CPP[argument.kind]
        return CppArgument(name, optional if parameter.kind is ParameterKind.OPTIONAL else plain, name, name, argument)
    if isinstance(parameter, Parameter):
        type_ = {
            ParameterKind.REQUIRED: "const at::Tensor&",
            ParameterKind.OPTIONAL: "const std::optional<at::Tensor>&",
            ParameterKind.DYNAMIC: "at::TensorList",
        }[parameter.kind]
        allowed = allowed_dtypes(parameter)
        return CppArgument(name, type_, name, name, argument, None if allowed.mask == ANY else allowed)
    plain, optional, aclnn = _CPP[argument.kind]
    if argument.default is None:
        return CppArgument(name, optional if argument.is_null else plain, name, aclnn.format(name), argument)
    default = texts.cpp_value(argument.kind, argument.default)
    value = f"{name}.has_value() ? {plain}(*{name}) : {plain}({default})"
    return CppArgument(name, optional, value, aclnn.format(value), argument)
