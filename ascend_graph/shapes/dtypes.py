"""Dtype rules of relations, for any representation of dtypes.

A relation is evaluated for torch dtypes, for GE data types or for their names alike: :class:`DtypeSystem` maps the
names of the language to the caller's values. The promotion rules exist once, over categories and one lattice of names.
They follow ``torch.result_type`` (c10/core/ScalarType.cpp and aten/src/ATen/native/TypeProperties.cpp).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

T = TypeVar("T")

_BOOL, _INT, _FLOAT, _COMPLEX = range(4)

#: The dtype names of the language (torch's) and the category that promotion puts each in.
CATEGORY: Mapping[str, int] = {
    "bool": _BOOL,
    **dict.fromkeys(("uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64"), _INT),
    **dict.fromkeys(("int4", "uint4", "int2", "uint2", "uint1", "bits8"), _INT),
    **dict.fromkeys(("float16", "bfloat16", "float32", "float64"), _FLOAT),
    **dict.fromkeys(("float8_e5m2", "float8_e4m3fn", "float8_e8m0fnu", "hifloat8"), _FLOAT),
    **dict.fromkeys(("float6_e3m2fn", "float6_e2m3fn", "float4_e2m1fn_x2", "float4_e1m2fn_x2"), _FLOAT),
    **dict.fromkeys(("complex32", "bcomplex32", "complex64", "complex128"), _COMPLEX),
    **dict.fromkeys(("qint8", "quint8", "qint32"), _INT),
}

REAL_OF = {"complex32": "float16", "bcomplex32": "bfloat16", "complex64": "float32", "complex128": "float64"}
#: Complex dtypes by component dtype. torch has a complex bfloat16 from 2.14 on, GE does not have one: see
#: ``DtypeSystem.complex_of_bfloat16``.
COMPLEX_OF = {"float16": "complex32", "bfloat16": "complex64", "float32": "complex64", "float64": "complex128"}


#: Promotion order within each category, smallest first; uint8, bfloat16 and bcomplex32 are handled apart.
_ORDER = {
    _INT: ("int8", "int16", "int32", "int64"),
    _FLOAT: ("float16", "float32", "float64"),
    _COMPLEX: ("complex32", "complex64", "complex128"),
}
_PROMOTING = frozenset(
    ("bool", "uint8", "bfloat16", "bcomplex32", *(name for order in _ORDER.values() for name in order))
)
#: Unsigned dtypes that promote only with floating ones. A dtype in neither set, such as float8, promotes only with
#: itself.
_UNSIGNED = frozenset(("uint16", "uint32", "uint64", "uint4", "uint2", "uint1"))


def promote_names(a: str, b: str) -> str:
    """Return the smallest dtype that holds both, as ``torch.promote_types`` does.

    >>> promote_names("uint8", "int8"), promote_names("float16", "bfloat16"), promote_names("int64", "float16")
    ('int16', 'float32', 'float16')

    Raises:
        ValueError: No such dtype exists: one is float8, quantized, or a wide unsigned integer with another integer.
    """
    if a == b:
        return a
    low, high = (a, b) if CATEGORY[a] <= CATEGORY[b] else (b, a)
    if low in _UNSIGNED and high in (*_ORDER[_FLOAT], "bfloat16", "float4_e2m1fn_x2"):
        return high
    if not {a, b} <= _PROMOTING:
        raise ValueError(f"{a} and {b} have no common dtype; write the dtype that is meant")
    category = CATEGORY[high]
    if {a, b} == {"bfloat16", "bcomplex32"}:
        return "bcomplex32"
    if CATEGORY[low] != category:
        return promote_names(COMPLEX_OF[low], high) if low in COMPLEX_OF and category == _COMPLEX else high
    if {a, b} == {"uint8", "int8"}:
        return "int16"
    if {a, b} == {"bfloat16", "float16"}:
        return "float32"
    if {a, b} == {"bcomplex32", "complex32"}:
        return "complex64"
    order = _ORDER[category]
    return order[max(order.index(name) if name in order else 0 for name in (a, b))]


def other_name(name: str) -> str:
    """Return the language's name of a dtype that CANN, C++ or a paper names otherwise; empty if it is none.

    >>> other_name("DT_FLOAT"), other_name("fp16"), other_name("bf16"), other_name("batch")
    ('float32', 'float16', 'bfloat16', '')
    """
    short = name.lower().removeprefix("dt_").removesuffix("_t")
    known = {"float": "float32", "half": "float16", "double": "float64", "long": "int64", "int": "int32"}
    known |= {"bf16": "bfloat16", "boolean": "bool", "short": "int16", "char": "int8", "byte": "uint8"}
    number = re.fullmatch(r"(fp|f|i|s|u)(\d+)", short)
    if number is not None:
        short = {"fp": "float", "f": "float", "i": "int", "s": "int", "u": "uint"}[number[1]] + number[2]
    return known.get(short, short if short in CATEGORY else "")


@dataclass(frozen=True, slots=True)
class PromotionOperand(Generic[T]):
    """One operand of a promotion: a tensor's dtype and whether it has dimensions, or a number."""

    dtype: T | None
    has_dims: bool = True
    #: The Python number of a scalar attr, for an operand without dtype.
    number: bool | int | float | complex | None = None


@dataclass(frozen=True, slots=True, eq=False)
class DtypeSystem(Generic[T]):
    """Mapping from the dtypes of the language to the caller's values.

    Args:
        from_name: The value for a name of :data:`CATEGORY`; raises ``KeyError`` for names it does not have.
        to_name: Its inverse.
        from_attr: The dtype that an attr value means, e.g. torch's number of a ``ScalarType``, or ``None``.
    """

    from_name: Callable[[str], T]
    to_name: Callable[[T], str]
    from_attr: Callable[[Any], T | None]
    #: The dtype that integers become if a floating dtype is needed (``torch.get_default_dtype``).
    default_float: Callable[[], str] = lambda: "float32"
    #: The result dtype of a bfloat16 tensor with a complex number.
    complex_of_bfloat16: str = "complex64"

    def promote(self, operands: Iterable[PromotionOperand[T]]) -> T:
        """Return the result dtype of an elementwise operator, as ``torch.result_type`` does.

        Tensors with dimensions decide before 0-dimensional ones, and these before numbers. A later operand counts only
        if its category (bool, integer, floating, complex) is higher.
        """
        ranked: list[str | None] = [None, None, None]
        for operand in operands:
            if operand.dtype is not None:
                name, rank = self.to_name(operand.dtype), 0 if operand.has_dims else 1
            else:
                name, rank = self._number(operand.number), 2
            before = ranked[rank]
            ranked[rank] = name if before is None else promote_names(before, name)
        result = ranked[0]
        for name_ in ranked[1:]:
            if result is None or (name_ is not None and CATEGORY[name_] > CATEGORY[result]):
                result = name_ if result is None or name_ is None else self._combine(result, name_)
        assert result is not None
        return self.from_name(result)

    def _combine(self, higher: str, lower: str) -> str:
        if CATEGORY[lower] != _COMPLEX:
            return promote_names(higher, lower)
        # A complex number with a half tensor gives complex half, not the default complex.
        if CATEGORY[higher] != _FLOAT:
            return lower
        if higher not in COMPLEX_OF:
            raise ValueError(f"{higher} and {lower} have no common dtype; write the dtype that is meant")
        return self.complex_of_bfloat16 if higher == "bfloat16" else COMPLEX_OF[higher]

    def _number(self, value: object) -> str:
        if isinstance(value, bool):
            return "bool"
        if isinstance(value, complex):
            return COMPLEX_OF[self.default_float()]
        # A symbolic number of a traced graph is recognized by its class name: nothing here imports torch.
        if isinstance(value, float) or type(value).__name__ == "SymFloat":
            return self.default_float()
        return "bool" if type(value).__name__ == "SymBool" else "int64"

    def floating(self, dtype: T) -> T:
        """Return ``dtype`` if it is floating or complex, otherwise the default floating dtype."""
        return dtype if CATEGORY[self.to_name(dtype)] >= _FLOAT else self.from_name(self.default_float())

    def integral_sum(self, dtype: T) -> T:
        """Return the dtype of a sum: int64 for bool and integers, otherwise ``dtype``."""
        return dtype if CATEGORY[self.to_name(dtype)] >= _FLOAT else self.from_name("int64")

    def real(self, dtype: T) -> T:
        """Return the dtype of the real part: complex64 → float32; others stay."""
        return self.from_name(REAL_OF.get(self.to_name(dtype), self.to_name(dtype)))


def _known(name: str) -> str:
    if name not in CATEGORY:
        raise KeyError(name)
    return name


#: Dtypes that are their own names.
NAMES: DtypeSystem[str] = DtypeSystem(
    _known, lambda name: name, lambda value: value if isinstance(value, str) and value in CATEGORY else None
)
