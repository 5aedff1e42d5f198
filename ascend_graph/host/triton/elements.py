"""Element types of Triton: how values are kept in NumPy's arrays, and how memory holds them.

NumPy has no bfloat16 and no floats of 8 bits: such values are kept in float32, rounded after each operation.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ascend_graph.host.triton.ir import Bits, Dense, TritonProgramError, Type

Array = npt.NDArray[Any]

_KEPT: dict[str, Any] = {
    "i1": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "index": np.int64, "ptr": np.int64,
    "f16": np.float16, "f32": np.float32, "f64": np.float64, "bf16": np.float32,
    "f8E5M2": np.float32, "f8E4M3FN": np.float32,
}  # fmt: skip

_IN_MEMORY: dict[str, Any] = {**_KEPT, "i1": np.uint8, "bf16": np.uint16, "f8E5M2": np.uint8, "f8E4M3FN": np.uint8}

#: Bits of exponent and mantissa of floats of 8 bits, and whether they have infinities.
_EIGHT_BITS = {"f8E5M2": (5, 2, True), "f8E4M3FN": (4, 3, False)}


def kept_dtype(element: str) -> Any:
    """Return the dtype of NumPy that keeps values of an element type.

    Raises:
        TritonProgramError: the host does not know the element type.
    """
    if element not in _KEPT:
        raise TritonProgramError(f"element type {element!r}: must be one of {', '.join(_KEPT)}")
    return _KEPT[element]


def memory_dtype(element: str) -> Any:
    """Return the dtype of NumPy whose bits memory holds for an element type."""
    kept_dtype(element)
    return _IN_MEMORY[element]


def unsigned(a: Array) -> Array:
    """Return integers seen without a sign."""
    return a.view(np.dtype(f"u{a.dtype.name}")) if a.dtype.kind == "i" else a


def _round_bfloat16(a: Array) -> Array:
    bits = np.ascontiguousarray(a, np.float32).view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) & np.uint32(0xFFFF0000)
    return np.where(np.isnan(a), np.float32(np.nan), rounded.view(np.float32))


@cache
def _eight_bit_values(element: str) -> Array:
    """Return the values of the 256 codes."""
    exponents, mantissas, infinities = _EIGHT_BITS[element]
    codes = np.arange(256)
    exponent, mantissa = (codes >> mantissas) & ((1 << exponents) - 1), codes & ((1 << mantissas) - 1)
    bias = (1 << (exponents - 1)) - 1
    normal = (1 + mantissa / (1 << mantissas)) * 2.0 ** (exponent - bias)
    values = np.where(exponent == 0, mantissa / (1 << mantissas) * 2.0 ** (1 - bias), normal)
    last = exponent == (1 << exponents) - 1
    if infinities:
        values = np.where(last, np.where(mantissa == 0, np.inf, np.nan), values)
    else:
        values = np.where(last & (mantissa == (1 << mantissas) - 1), np.nan, values)
    signed: Array = np.where(codes >> 7, -values, values).astype(np.float32)
    return signed


def _eight_bit_codes(a: Array, element: str) -> Array:
    """Return the codes of the nearest values, of the even one between two."""
    values = _eight_bit_values(element)[:128].astype(np.float64)
    finite = values[np.isfinite(values)]
    magnitude = np.abs(a.astype(np.float64))
    middles = (finite[:-1] + finite[1:]) / 2
    below = np.searchsorted(middles, magnitude, side="left")
    above = np.searchsorted(middles, magnitude, side="right")
    code = np.where(below % 2 == 0, below, above)
    nan = 127 if element == "f8E4M3FN" else 126
    if element == "f8E5M2":
        code = np.where(magnitude >= finite[-1] + (finite[-1] - finite[-2]) / 2, 124, code)
    code = np.where(np.isnan(a), nan, code)
    codes: Array = (code | (np.signbit(a) << 7)).astype(np.uint8)
    return codes


def rounding(element: str) -> Callable[[Array], Array] | None:
    """Return the function that rounds float32 to an element type that NumPy lacks; None for the others."""
    if element == "bf16":
        return _round_bfloat16
    if element in _EIGHT_BITS:
        return lambda a: _eight_bit_values(element)[_eight_bit_codes(a, element)]
    return None


def to_element(a: Array, element: str) -> Array:
    """Return values converted to an element type: floats are rounded, integers wrap."""
    rounds = rounding(element)
    if rounds is not None:
        return rounds(a.astype(np.float32))
    return a.astype(kept_dtype(element), copy=False)


def from_memory(a: Array, element: str) -> Array:
    """Return the values of what memory holds."""
    if element == "bf16":
        return (a.astype(np.uint32) << np.uint32(16)).view(np.float32)
    if element in _EIGHT_BITS:
        return _eight_bit_values(element)[a]
    return a != 0 if element == "i1" else a


def to_memory(a: Array, element: str) -> Array:
    """Return what memory holds of values."""
    if element == "bf16":
        return (np.ascontiguousarray(_round_bfloat16(a)).view(np.uint32) >> np.uint32(16)).astype(np.uint16)
    if element in _EIGHT_BITS:
        return _eight_bit_codes(a, element)
    return a.astype(memory_dtype(element), copy=False)


def reinterpreted(a: Array, source: str, target: str) -> Array:
    """Return the values whose bits are those of the values of another element type."""
    bits = np.ascontiguousarray(to_memory(a, source))
    return from_memory(bits.view(memory_dtype(target)), target)


def _scalar(value: Any, element: str) -> Any:
    """Return one number of a constant in the element type."""
    if isinstance(value, Bits):
        width = np.dtype(memory_dtype(element)).itemsize
        bits = np.array([value.value], np.dtype(f"u{width}"))
        return from_memory(bits.view(memory_dtype(element)), element)[0]
    if element[0] == "i" and element != "i1":
        width = np.dtype(kept_dtype(element)).itemsize * 8
        wrapped = int(value) & ((1 << width) - 1)
        return wrapped - (1 << width) if wrapped >> (width - 1) else wrapped
    return value


def constant(value: Any, type_: Type) -> Array:
    """Return a constant, the same in every program: its first dimension, of programs, is 1."""
    dtype = kept_dtype(type_.element)
    if isinstance(value, Dense):
        return _dense(value.text, type_, dtype)
    return np.full((1, *type_.shape), _scalar(value, type_.element), dtype)


def _dense(text: str, type_: Type, dtype: Any) -> Array:
    if text.startswith('"0x'):
        raw = np.frombuffer(bytes.fromhex(text.strip('"')[2:]), memory_dtype(type_.element))
        return from_memory(raw, type_.element).reshape(1, *type_.shape)
    words = [word for word in text.replace("[", " ").replace("]", " ").replace(",", " ").split() if word]
    values = [_scalar(_word(word, type_.element), type_.element) for word in words]
    if len(values) == 1:
        return np.broadcast_to(np.full((1,) * (len(type_.shape) + 1), values[0], dtype), (1, *type_.shape))
    return np.array(values, dtype).reshape(1, *type_.shape)


def _word(word: str, element: str) -> Any:
    if word in ("true", "false"):
        return word == "true"
    if word.startswith("0x"):
        return Bits(int(word, 16)) if element[0] in "fb" else int(word, 16)
    return float(word) if element[0] in "fb" else int(word)
