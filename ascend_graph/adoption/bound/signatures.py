"""Schemas of bound functions: types of C++ as schemas have them, names and defaults of ``py::arg``."""

from __future__ import annotations

import ast
import keyword
import math
import re
import struct
from dataclasses import dataclass

from ascend_graph.adoption.bound.object_types import cast_type, is_object
from ascend_graph.adoption.cpp.expressions import expression
from ascend_graph.adoption.cpp.functions import CppFunction, CppParameter, split
from ascend_graph.adoption.cpp.schema_types import plain_type
from ascend_graph.adoption.model import BoundFunction, Findings

_INTS = (
    "int", "int64_t", "int32_t", "int16_t", "int8_t", "uint8_t", "uint16_t", "uint32_t", "uint64_t", "size_t", "long", "longlong",
    "unsigned", "unsignedint", "short", "c10::SymInt", "std::size_t", "std::int64_t", "std::int32_t", "c10::DeviceIndex",
)  # fmt: skip
_PLAIN = (
    dict.fromkeys(_INTS, "int")
    | dict.fromkeys(("double", "float"), "float")
    | dict.fromkeys(("std::string", "string", "char*", "std::string_view", "c10::string_view"), "str")
    | dict.fromkeys(("at::Tensor", "torch::Tensor", "Tensor"), "Tensor")
    | dict.fromkeys(("at::ScalarType", "torch::Dtype", "c10::ScalarType", "torch::ScalarType"), "ScalarType")
    | dict.fromkeys(("at::Scalar", "c10::Scalar", "torch::Scalar"), "Scalar")
    | dict.fromkeys(("at::Device", "c10::Device", "torch::Device"), "Device")
    | dict.fromkeys(("at::Generator", "torch::Generator", "c10::Generator"), "Generator")
    | dict.fromkeys(("at::TensorList", "torch::TensorList", "c10::TensorList"), "Tensor[]")
    | dict.fromkeys(("at::IntArrayRef", "torch::IntArrayRef", "c10::IntArrayRef"), "int[]")
    | dict.fromkeys(("at::OptionalIntArrayRef", "c10::OptionalIntArrayRef"), "int[]?")
    | {"bool": "bool"}
)
_LIST = re.compile(r"(?:std::vector|at::ArrayRef|c10::ArrayRef|torch::ArrayRef|c10::List|std::array)<(.*)>")
_OPTIONAL = re.compile(r"(?:c10|std|at|torch)::optional<(.*)>|optional<(.*)>")
_NUMBER = re.compile(r"-?(?:0[xX][\da-fA-F]+|\d[\d']*)[uUlL]*")


#: Return of a lambda that does not state its type, or of a tuple of Python's.
UNSTATED = "auto"


class SignatureError(Exception):
    """Reason why a function has no schema."""


@dataclass(frozen=True, slots=True)
class BoundSignature:
    """Parts of the schema of a bound function."""

    #: Type and name of each argument, as the schema has them; in the order of the function's parameters.
    arguments: tuple[tuple[str, str], ...]
    #: Defaults as the schema writes them, or None.
    defaults: tuple[str | None, ...]
    returns: tuple[str, ...]
    #: Number of arguments that may be given by position.
    positional: int
    #: Arguments whose default no schema states, with it as written: they have to be given.
    required: tuple[tuple[str, str], ...] = ()

    @property
    def has_tensors(self) -> bool:
        """True if a tensor is taken or returned."""
        return any("Tensor" in kind for kind in (*self.returns, *(kind for kind, _ in self.arguments)))

    def text(self, name: str, written: dict[int, str], aliases: dict[int, str]) -> str:
        """Return the schema.

        Args:
            name: ``namespace::name``.
            written: The alias of each argument that is written, by position.
            aliases: The alias of each return that is an argument.
        """
        parts = []
        for number, ((kind, argument), default) in enumerate(zip(self.arguments, self.defaults, strict=True)):
            if number == self.positional:
                parts.append("*")
            shown = kind.replace("Tensor", f"Tensor({written[number]}!)", 1) if number in written else kind
            parts.append(f"{shown} {argument}" + ("" if default is None else f"={default}"))
        returns = [
            kind.replace("Tensor", f"Tensor({aliases[number]}!)", 1) if number in aliases else kind
            for number, kind in enumerate(self.returns)
        ]
        result = returns[0] if len(returns) == 1 else f"({', '.join(returns)})"
        return f"{name}({', '.join(parts)}) -> {result}"


def read_signature(bound: BoundFunction, findings: Findings) -> BoundSignature:
    """Return the signature of a bound function.

    An argument whose default is computed has no default; neither have those in front of it.

    Raises:
        SignatureError: A type or a default has no counterpart in schemas, or the function is not found.
    """
    function = bound.function
    if function is None:
        raise SignatureError(
            f"{bound.written[:80]} is not a function that is found here; give the sources that define it"
        )
    kinds = []
    for parameter in function.parameters:
        kind = _object_type(function, parameter, findings) if is_object(parameter) else bound_type(parameter.type)
        if kind is None:
            raise SignatureError(
                f"a schema has no type for {parameter.type}, at {function.place}; write the schema by hand"
            )
        kinds.append(kind)
    given = bound.arguments
    if given and len(given) != len(kinds):
        raise SignatureError(
            f"{len(given)} names are given for {len(kinds)} parameters, at {bound.place}; give one py::arg for each"
        )
    names = [p.name for p in function.parameters]
    names = [name or own for (name, _), own in zip(given, names, strict=True)] if given else names
    if len(set(names)) != len(names):
        raise SignatureError(f"two arguments have one name, at {bound.place}; rename one")
    written = [default for _, default in given] or [None] * len(kinds)
    defaults = [None if one is None else _default(one, kind) for one, kind in zip(written, kinds, strict=True)]
    computed = [n for n, (one, default) in enumerate(zip(written, defaults, strict=True)) if one and default is None]
    if computed:
        defaults[: computed[-1]] = [None] * computed[-1]
    return BoundSignature(
        tuple((kind, f"{name}_" if keyword.iskeyword(name) else name) for kind, name in zip(kinds, names, strict=True)),
        tuple(defaults),
        _returns(function.returns, function.place),
        len(kinds) if bound.positional is None else bound.positional,
        tuple((names[n], written[n] or "") for n in computed),
    )


def _object_type(function: CppFunction, parameter: CppParameter, findings: Findings) -> str | None:
    """Return the schema's type of an object that a function casts, or None."""
    cast, optional = cast_type(function, parameter, findings)
    kind = bound_type(cast) if cast else None
    return f"{kind}?" if kind is not None and optional and not kind.endswith("?") else kind


def bound_type(text: str) -> str | None:
    """Return the schema's type of a C++ type as pybind11 converts it, or None.

    >>> bound_type("const c10::optional<std::vector<int64_t>> &"), bound_type("int32_t"), bound_type("py::dict")
    ('int[]?', 'int', None)
    """
    plain = plain_type(text).removeprefix("::")
    optional = _OPTIONAL.fullmatch(plain)
    if optional is not None:
        inner = bound_type(optional[1] or optional[2])
        return None if inner is None or inner.endswith("?") else f"{inner}?"
    listed = _LIST.fullmatch(plain)
    if listed is not None:
        inner = bound_type(split(listed[1])[0])
        return None if inner is None or inner.endswith("[]") else f"{inner}[]"
    return _PLAIN.get(plain)


def _returns(text: str, place: str) -> tuple[str, ...]:
    """Return the types of what a function returns.

    Raises:
        SignatureError: A schema has no type for one.
    """
    plain = plain_type(re.sub(r"\Atemplate\s*<[^<>]*>|\b(?:static|inline|constexpr)\b|\[\[\w+\]\]", " ", text))
    if plain == "void":
        return ()
    if plain in ("auto", "py::tuple", "pybind11::tuple"):
        return (UNSTATED,)
    several = re.fullmatch(r"(?:std::)?(?:tuple|pair)<(.*)>", plain)
    found = []
    for part in split(several[1]) if several else [plain]:
        kind = bound_type(part)
        if kind is None:
            raise SignatureError(f"a schema has no type for {part}, at {place}; write the schema by hand")
        # A tensor that is not defined is None in Python.
        found.append("Tensor" if kind == "Tensor?" else kind)
    return tuple(found)


def _default(text: str, kind: str) -> str | None:
    """Return a default as a schema writes it; None if its value is computed, or not one of its type."""
    plain = text.strip()
    if re.fullmatch(r"(?:py|pybind11)::none\(\)|(?:c10|std|at)::nullopt|nullptr", plain):
        return "None" if kind.endswith("?") else None
    if re.fullmatch(r"(?:std::vector<[^<>]*>)?(?:\{\}|\(\))", plain) and "[]" in kind:
        return "[]"
    if re.fullmatch(r"-?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?[fF]", plain) and kind.rstrip("?") == "float":
        return repr(struct.unpack("f", struct.pack("f", float(plain[:-1])))[0])
    try:
        value = ast.literal_eval(ast.unparse(expression(plain)))
    except (ValueError, SyntaxError, RecursionError):
        return None
    wanted = kind.rstrip("?")
    if wanted == "int" and isinstance(value, bool | int) and _NUMBER.fullmatch(plain):
        return str(int(value))
    if wanted == "float" and isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return repr(float(value))
    if wanted == "bool" and isinstance(value, bool):
        return str(value)
    if wanted == "str" and isinstance(value, str) and re.fullmatch(r"[\w .,:;/+-]*", value):
        return f'"{value}"'
    if wanted == "int[]" and isinstance(value, list) and all(type(one) is int for one in value):
        return f"[{', '.join(map(str, value))}]"
    return None
