"""C++ types of arguments as a schema of torch writes them."""

from __future__ import annotations

import re

#: Types of C++ and of schemas, for schemas that torch makes from a function.
_CPP_TYPES = {
    "at::Tensor": "Tensor", "torch::Tensor": "Tensor", "Tensor": "Tensor", "int64_t": "int", "double": "float",
    "bool": "bool", "at::TensorList": "Tensor[]", "torch::TensorList": "Tensor[]", "at::IntArrayRef": "int[]",
    "torch::IntArrayRef": "int[]", "c10::string_view": "str", "std::string": "str", "at::Scalar": "Scalar",
    "c10::Scalar": "Scalar", "std::string_view": "str", "at::ScalarType": "ScalarType", "c10::SymInt": "SymInt",
    "std::vector<at::Tensor>": "Tensor[]", "std::vector<torch::Tensor>": "Tensor[]", "std::vector<int64_t>": "int[]",
    "at::ArrayRef<int64_t>": "int[]", "c10::IntArrayRef": "int[]", "std::vector<double>": "float[]",
}  # fmt: skip


def plain_type(text: str) -> str:
    """Return a C++ type without const, references and spaces around."""
    return re.sub(r"\s+", " ", re.sub(r"\bconst\b|&", " ", text)).strip().replace(" ", "")


def schema_type(text: str) -> str | None:
    """Return the schema's type of a C++ type, or None."""
    plain = plain_type(text)
    optional = re.fullmatch(r"(?:c10|std|at)::optional<(.*)>", plain)
    inner = _CPP_TYPES.get(optional[1] if optional else plain)
    return f"{inner}?" if inner and optional else inner
