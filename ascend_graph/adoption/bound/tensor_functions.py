"""Functions and methods of tensors by what they do with memory: new values, the same memory, or reading alone."""

from __future__ import annotations

import re

#: Methods whose result is a number, a shape, options, or a new tensor.
FRESH_METHODS = frozenset(
    {
        "size", "sizes", "sym_size", "sym_sizes", "dim", "ndimension", "numel", "nbytes", "itemsize", "element_size", "stride",
        "strides", "storage_offset", "options", "dtype", "scalar_type", "type", "device", "layout", "get_device", "is_cpu",
        "is_contiguous", "is_privateuseone", "is_npu", "is_floating_point", "is_complex", "is_same", "is_same_size", "defined",
        "has_value", "requires_grad", "item", "toInt", "toLong", "toFloat", "equal", "empty", "length", "use_count", "is_sparse",
        "clone", "add", "sub", "mul", "div", "matmul", "mm", "bmm", "pow", "sqrt", "rsqrt", "exp", "log", "abs", "neg", "sum",
        "mean", "max", "min", "amax", "amin", "argmax", "argmin", "all", "any", "eq", "ne", "lt", "le", "gt", "ge", "where",
        "logical_and", "logical_or", "logical_not", "bitwise_and", "bitwise_or", "nonzero", "sort", "argsort", "topk", "cumsum",
        "gather", "scatter", "scatter_add", "index_select", "index_put", "masked_select", "masked_fill", "repeat",
        "repeat_interleave", "new_empty", "new_zeros", "new_ones", "new_full", "floor", "ceil", "round", "clamp", "clamp_min",
        "clamp_max", "sigmoid", "tanh", "relu", "softmax", "norm", "var", "std", "fmod", "remainder", "unique", "to_string",
        "is_same_as", "count_nonzero", "index_add", "floor_divide", "true_divide", "prod", "erf", "sin", "cos", "isnan", "isinf",
    }
)  # fmt: skip
#: Functions of ``at::`` and ``torch::`` whose result may be the memory of an argument.
VIEWS = frozenset(
    {
        "squeeze", "unsqueeze", "transpose", "permute", "reshape", "view", "flatten", "unflatten", "slice", "select", "narrow",
        "expand", "expand_as", "chunk", "split", "split_with_sizes", "unbind", "alias", "detach", "t", "swapaxes", "swapdims",
        "movedim", "diagonal", "as_strided", "view_as", "ravel", "contiguous", "atleast_1d", "atleast_2d", "atleast_3d",
        "from_blob", "real", "imag", "view_as_real", "view_as_complex", "tensor_split", "hsplit", "vsplit", "unfold",
        "value_or_else", "get", "type_as", "to",
    }
)  # fmt: skip
#: Methods that give a tensor another shape or other memory.
RESHAPING = frozenset(
    {
        "resize_", "resize_as_", "set_", "transpose_", "t_", "squeeze_", "unsqueeze_", "swapaxes_", "swapdims_", "as_strided_",
        "detach_", "swap_", "resize_output",
    }
)  # fmt: skip
#: Methods of containers and of operator commands that hold their arguments, or read them.
PASSED_ON = frozenset(
    {
        "push_back", "emplace_back", "append", "insert", "assign", "emplace", "Input", "InputWithoutContiguous", "Output", "Attr",
        "Name", "Run", "Sync", "save_for_backward", "value_or",
    }
)  # fmt: skip
#: Methods of tensors, optional values and containers that write no memory of tensors.
READING_METHODS = (
    FRESH_METHODS
    | VIEWS
    | PASSED_ON
    | {
        "value", "begin", "end", "cbegin", "cend", "at", "back", "front", "data", "data_ptr", "const_data_ptr", "mutable_data_ptr",
        "accessor", "packed_accessor32", "packed_accessor64", "cpu", "npu", "half", "toType", "toTensor", "storage", "has_storage",
        "unsafeGetTensorImpl", "vec", "cast", "is_none", "ptr", "c_str", "reset", "reserve", "clear", "find", "count", "pop_back",
        "is_cuda", "is_meta", "is_pinned", "is_quantized", "get_saved_variables", "mark_dirty",
    }
)  # fmt: skip
#: Functions that read their arguments and return something else.
READERS = frozenset(
    {
        "empty", "zeros", "ones", "full", "empty_like", "zeros_like", "ones_like", "full_like", "empty_with_format", "is_npu",
        "apply_tensor_without_format", "apply_tensor", "apply_tensor_with_format", "ApplyTensor", "ApplyTensorWithoutFormat",
        "ApplyTensorWithFormat", "ApplyTensorWithSizes", "get_npu_format", "get_npu_storage_sizes", "isIntegralType",
        "isFloatingType", "OptionalDeviceGuard", "OptionalNPUGuard", "NPUGuard", "DeviceGuard", "device_of", "toString",
        "aclCreateScalar", "aclCreateIntArray", "aclCreateFloatArray", "aclCreateBoolArray", "infer_size", "broadcast_shapes",
        "result_type", "promote_types", "printf", "cout",
    }
)  # fmt: skip
#: Functions of C and of CANN's runtime whose first argument is the memory that they write.
WRITING_FIRST = frozenset(
    {
        "memcpy", "memmove", "memset", "memcpy_s", "memset_s", "aclrtMemcpy", "aclrtMemcpyAsync", "aclrtMemcpy2d",
        "aclrtMemcpy2dAsync", "aclrtMemset", "aclrtMemsetAsync",
    }
)  # fmt: skip
#: Names of casts and constructors that pass a value on; those of CANN's C interface make handles of it.
HARMLESS = frozenset(
    {
        "", "static_cast", "Tensor", "TensorList", "optional", "vector", "tuple", "make_tuple", "tie", "move", "forward", "make_pair",
        "pair", "List", "if", "while", "for", "sizeof", "return", "value_or_else", "int", "int64_t", "int32_t", "double", "float",
        "bool", "uint32_t", "uint64_t", "size_t", "IntArrayRef", "ScalarType", "TensorOptions", "array", "get",
        "ConvertType", "aclCreateTensor", "aclCreateTensorList",
    }
)  # fmt: skip
#: Functions of the standard library that only read, make a value, or hold their arguments in one.
_STANDARD = frozenset(
    {
        "min", "max", "minmax", "clamp", "abs", "ceil", "floor", "round", "pow", "sqrt", "log", "log2", "exp", "fmod", "lround",
        "isnan", "isinf", "accumulate", "distance", "begin", "end", "size", "empty", "data", "next", "prev", "advance", "find",
        "find_if", "count", "count_if", "any_of", "all_of", "none_of", "equal", "min_element", "max_element", "multiplies", "plus",
        "to_string", "stoi", "stol", "stoll", "string", "string_view", "ostringstream", "stringstream", "getenv", "cout", "cerr",
        "endl", "setw", "make_tuple", "make_pair", "make_optional", "make_shared", "make_unique", "forward_as_tuple", "tuple", "pair",
        "array", "vector", "map", "unordered_map", "set", "unordered_set", "deque", "list", "optional", "initializer_list", "tie",
        "get", "move", "forward", "ref", "cref", "as_const", "addressof", "reference_wrapper", "shared_ptr", "unique_ptr", "span",
        "numeric_limits", "runtime_error", "invalid_argument", "logic_error", "out_of_range", "lock_guard", "unique_lock", "mutex",
        "exit", "abort", "terminate", "isfinite", "signbit", "is_same_v", "static_pointer_cast", "dynamic_pointer_cast", "holds_alternative",
        "function", "div", "lcm", "gcd", "strcmp", "strlen", "strncmp", "hash", "bitset", "sizeof",
    }
)  # fmt: skip
#: Names of functions of torch_npu that run what they are given.
_RUNNING = re.compile(r"(?i)(?:launch|run|exec|invoke|memcpy|copy_)")


def reads_alone(name: str) -> bool:
    """Return whether a function of a library that is known by its namespace writes none of its arguments.

    Operators of torch_npu are not known: their schemas are not in the sources.

    >>> [reads_alone(n) for n in ("at::add", "std::max", "std::memcpy", "at::_ops::add_out::call", "at_npu::native::custom_ops::npu_x")]
    [True, True, False, False, False]
    """
    space, _, last = name.rpartition("::")
    if name.startswith("std::"):
        return last in _STANDARD
    if name.startswith("at::_ops::"):
        return re.search(r"(?:_out|_)\Z", space) is None
    if name.startswith(("at_npu::", "torch_npu::", "c10_npu::")):
        return "custom_ops" not in space and _RUNNING.search(last) is None
    return name.startswith(("at::", "torch::", "c10::", "<"))


_CHECK = re.compile(
    r"(?i)\A_*(?:torch_|aten_|npu_|ascend_|op_)?(?:\w*_)?(?:check|assert|log|warn|require|expect|count|trace|profile|print|debug)s?(?:_\w*)?\Z"
)


def is_check(name: str) -> bool:
    """Return whether a name is that of a macro that checks, counts or logs.

    >>> [is_check(name) for name in ("TORCH_CHECK_NPU", "CHECK_INPUT", "AT_ASSERTM", "checked_launch")]
    [True, True, True, False]
    """
    return (name.isupper() and _CHECK.match(name) is not None) or name == "AT_ASSERTM"
