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
#: Functions that read their arguments and return something else.
READERS = frozenset(
    {
        "empty", "zeros", "ones", "full", "empty_like", "zeros_like", "ones_like", "full_like", "empty_with_format", "is_npu",
        "apply_tensor_without_format", "apply_tensor", "apply_tensor_with_format", "ApplyTensor", "ApplyTensorWithoutFormat",
        "ApplyTensorWithFormat", "ApplyTensorWithSizes", "get_npu_format", "get_npu_storage_sizes", "isIntegralType",
        "isFloatingType", "OptionalDeviceGuard", "OptionalNPUGuard", "NPUGuard", "DeviceGuard", "device_of", "toString",
        "infer_size", "broadcast_shapes", "result_type", "promote_types", "printf", "cout",
    }
)  # fmt: skip
#: Names of casts and constructors that pass a value on.
HARMLESS = frozenset(
    {
        "", "static_cast", "Tensor", "TensorList", "optional", "vector", "tuple", "make_tuple", "tie", "move", "forward", "make_pair",
        "pair", "List", "if", "while", "for", "sizeof", "return", "value_or_else", "int", "int64_t", "int32_t", "double", "float",
        "bool", "uint32_t", "uint64_t", "size_t", "IntArrayRef", "ScalarType", "TensorOptions", "array", "get",
    }
)  # fmt: skip
_CHECK = re.compile(
    r"(?i)\A_*(?:torch_|aten_|npu_|ascend_|op_)?(?:\w*_)?(?:check|assert|log|warn|require|expect|count|trace|profile|print|debug)s?(?:_\w*)?\Z"
)


def is_check(name: str) -> bool:
    """Return whether a name is that of a macro that checks, counts or logs.

    >>> [is_check(name) for name in ("TORCH_CHECK_NPU", "CHECK_INPUT", "AT_ASSERTM", "checked_launch")]
    [True, True, True, False]
    """
    return (name.isupper() and _CHECK.match(name) is not None) or name == "AT_ASSERTM"
