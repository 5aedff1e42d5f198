"""C++ types of the values that a function passes on, where its text says them for certain."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ascend_graph.adoption.cpp.functions import CppFunction

_SPACES = re.compile(r"(?:std|c10|at|torch|::)+::|\b(?:const|static|constexpr|volatile|inline|typename)\b|&")
#: Names of one type, after the one that is kept.
_SAME = {
    "ArrayRef<int64_t>": "IntArrayRef", "OptionalArrayRef<int64_t>": "OptionalIntArrayRef",
    "optional<IntArrayRef>": "OptionalIntArrayRef", "ArrayRef<Tensor>": "TensorList", "long int": "long", "unsigned": "unsigned int",
    "long long int": "long long", "unsigned long int": "unsigned long", "string_view": "string_view",
    "basic_string_view<char>": "string_view", "char*": "char *",
}  # fmt: skip
_NOT_A_TYPE = frozenset(
    {"return", "delete", "throw", "else", "case", "goto", "new", "using", "typedef", "and", "or", "not"}
)
_DECLARED = re.compile(
    r"(?:^|[;{}(,])\s*(?P<type>(?:(?:const|static|constexpr|volatile)\s+)*(?:(?:unsigned|signed|long|short)\s+)*[A-Za-z_][\w:]*"
    r"(?:\s*<[^;(){}=]*>)?(?:\s+const)?[\s&*]+)(?P<name>[A-Za-z_]\w*)\s*(?=(?P<after>[=;({,)\[:])|$)"
)
_UNPACKED = re.compile(r"\bauto\s*&*\s*\[([^\]]*)\]")
_CAST = re.compile(r"(?:static_cast\s*<(?P<cast>[^()]*)>|(?P<type>float|double|bool|u?int\d+_t))\s*\(.*\)", re.DOTALL)
_NUMBER = re.compile(
    r"[-+]?(?:(?P<int>\d+)|(?P<real>(?:\d+\.\d*|\.\d+)(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+)(?P<single>[fF]?))"
)
_METHOD = re.compile(r"(?P<owner>[A-Za-z_]\w*)\s*\.\s*(?P<name>\w+)\s*(?:<(?P<of>[\w:\s]+)>)?\s*\([^()]*\)")
_OPTIONAL = re.compile(r"optional<(.*)>")
#: Types of what methods of tensors and scalars return.
_RESULTS = {
    "Tensor": {"size": "int64_t", "dim": "int64_t", "numel": "int64_t", "stride": "int64_t", "is_contiguous": "bool"},
    "Scalar": {"toDouble": "double", "toFloat": "float", "toLong": "int64_t", "toInt": "int", "toBool": "bool"},
}


def type_name(text: str) -> str:
    """Return a C++ type without qualifiers, references and the namespaces of PyTorch and of the standard library.

    >>> type_name("const c10::optional<at::Tensor> &"), type_name("std::int64_t"), type_name("const char *")
    ('optional<Tensor>', 'int64_t', 'char *')
    """
    plain = " ".join(_SPACES.sub(" ", text).split())
    plain = re.sub(r"\s*([<>,])\s*", r"\1", plain)
    return _SAME.get(plain, re.sub(r"\s*\*", " *", plain))


def declared_types(function: CppFunction) -> dict[str, str]:
    """Return the types of a function's parameters and variables; empty for a name that has several, and for ``auto``.

    >>> declared_types(CppFunction("f", "void", (), "float eps = 1; auto n = g();"))
    {'eps': 'float', 'n': ''}
    """
    found = {one.name: type_name(one.type) for one in function.parameters}
    for match in _DECLARED.finditer(function.body):
        name, kind = match["name"], type_name(match["type"])
        if match["type"].split()[0] not in _NOT_A_TYPE:
            certain = kind != "auto" and match["after"] != "[" and found.get(name, kind) == kind
            found[name] = kind if certain else ""
    return found | {one.strip(): "" for names in _UNPACKED.findall(function.body) for one in names.split(",")}


def value_type(text: str, declared: Mapping[str, str]) -> str:
    """Return the type of an expression as :func:`type_name` writes it; empty if it is not certain.

    >>> value_type("eps", {"eps": "float"}), value_type("n", {"n": ""}), value_type("1e-5", {})
    ('float', '', 'double')
    """
    text = text.strip()
    if text in ("true", "false"):
        return "bool"
    if text.isidentifier():
        return declared.get(text, "")
    if number := _NUMBER.fullmatch(text):
        return "int" if number["int"] else "float" if number["single"] else "double"
    if (cast := _CAST.fullmatch(text)) and _is_one_call(text):
        return type_name(cast["cast"] or cast["type"])
    if (method := _METHOD.fullmatch(text)) is None:
        return ""
    owner = declared.get(method["owner"], "")
    if method["of"]:
        return type_name(method["of"]) if (owner, method["name"]) in (("Tensor", "item"), ("Scalar", "to")) else ""
    optional = _OPTIONAL.fullmatch(owner)
    if optional is not None:
        return (
            optional[1] if method["name"] in ("value", "value_or") else "bool" if method["name"] == "has_value" else ""
        )
    return _RESULTS.get(owner, {}).get(method["name"], "")


def _is_one_call(text: str) -> bool:
    """Return whether the bracket that opens first is closed by the last character."""
    depth = 0
    for position, mark in enumerate(text):
        depth += (mark == "(") - (mark == ")")
        if mark == ")" and depth == 0:
            return position == len(text) - 1
    return False
