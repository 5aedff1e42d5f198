"""Operations on elements: the dialects ``arith`` and ``math``, and those of Triton's own."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ascend_graph.host.triton.elements import (
    Array,
    constant,
    kept_dtype,
    memory_dtype,
    reinterpreted,
    to_element,
    unsigned,
)
from ascend_graph.host.triton.ir import IrOperation, TritonProgramError
from ascend_graph.host.triton.operations.pure import Function, elementwise, pure, rounded


def _signed_like(a: Array, like: Array) -> Array:
    return a.astype(like.dtype, copy=False) if a.dtype == like.dtype else a.view(like.dtype)


def _wrapping(function: np.ufunc) -> Callable[[Array, Array], Array]:
    """Return a sum or difference of integers: of one bit it wraps, where NumPy's is a logical or, or refused."""
    return lambda a, b: np.bitwise_xor(a, b) if a.dtype == np.bool_ else function(a, b)


def _on_unsigned(function: Callable[..., Array]) -> Callable[[Array, Array], Array]:
    return lambda a, b: _signed_like(function(unsigned(a), unsigned(b)), a)


def _divide(a: Array, b: Array) -> Array:
    """Return the quotient towards zero, and 0 for a division by zero."""
    return (a - np.fmod(a, b)) // b


def _shift_right(a: Array, b: Array) -> Array:
    return _signed_like(unsigned(a) >> unsigned(b), a)


def _high_half(a: Array, b: Array) -> Array:
    """Return the upper half of the products of unsigned integers."""
    x, y = unsigned(a), unsigned(b)
    if x.dtype.itemsize < 8:
        wide = np.dtype(f"u{x.dtype.itemsize * 2}")
        return _signed_like((x.astype(wide) * y.astype(wide) >> x.dtype.itemsize * 8).astype(x.dtype), a)
    half, low = np.uint64(32), np.uint64(0xFFFFFFFF)
    x1, x0, y1, y0 = x >> half, x & low, y >> half, y & low
    middle = (x0 * y0 >> half) + (x1 * y0 & low) + x0 * y1
    return _signed_like(x1 * y1 + (x1 * y0 >> half) + (middle >> half), a)


def _power(a: Array, b: Array) -> Array:
    if a.dtype.kind == "f":
        return np.power(a, b)
    inverse = np.where(a == 1, 1, np.where(a == -1, np.where(b % 2, -1, 1), 0))
    return np.where(b < 0, inverse, np.power(a, np.maximum(b, 0))).astype(a.dtype)


def _erf(a: Array) -> Array:
    return np.asarray(np.frompyfunc(math.erf, 1, 1)(a.astype(np.float64)), np.float64)


def _round_half_away(a: Array) -> Array:
    return np.copysign(np.floor(np.abs(a).astype(np.float64) + 0.5), a)


def _fma(a: Array, b: Array, c: Array) -> Array:
    """Return a * b + c, rounded once: a double holds the product of two floats exactly."""
    if a.dtype == np.float64:
        return a * b + c
    return (a.astype(np.float64) * b + c).astype(a.dtype)


for _name, _function in {
    "arith.addi": _wrapping(np.add), "arith.subi": _wrapping(np.subtract), "arith.muli": np.multiply, "arith.divsi": _divide,
    "arith.divui": _on_unsigned(np.floor_divide), "arith.remsi": np.fmod, "arith.remui": _on_unsigned(np.remainder),
    "arith.floordivsi": np.floor_divide, "arith.ceildivsi": lambda a, b: -(-a // b),
    "arith.andi": np.bitwise_and, "arith.ori": np.bitwise_or, "arith.xori": np.bitwise_xor,
    "arith.shli": np.left_shift, "arith.shrsi": np.right_shift, "arith.shrui": _shift_right,
    "arith.addf": np.add, "arith.subf": np.subtract, "arith.mulf": np.multiply, "arith.divf": np.divide,
    "arith.remf": np.fmod, "arith.negf": np.negative, "tt.mod": np.fmod,
    "arith.maximumf": np.maximum, "arith.minimumf": np.minimum, "arith.maxnumf": np.fmax, "arith.minnumf": np.fmin,
    "arith.maxsi": np.maximum, "arith.minsi": np.minimum, "arith.maxui": _on_unsigned(np.maximum),
    "arith.minui": _on_unsigned(np.minimum),
    "math.exp": np.exp, "math.exp2": np.exp2, "math.expm1": np.expm1, "math.log": np.log, "math.log2": np.log2,
    "math.log10": np.log10, "math.log1p": np.log1p, "math.sqrt": np.sqrt, "math.rsqrt": lambda a: 1 / np.sqrt(a),
    "math.sin": np.sin, "math.cos": np.cos, "math.tan": np.tan, "math.asin": np.arcsin, "math.acos": np.arccos,
    "math.atan": np.arctan, "math.atan2": np.arctan2, "math.sinh": np.sinh, "math.cosh": np.cosh, "math.tanh": np.tanh,
    "math.asinh": np.arcsinh, "math.acosh": np.arccosh, "math.atanh": np.arctanh, "math.erf": _erf,
    "math.absf": np.abs, "math.absi": np.abs, "math.floor": np.floor, "math.ceil": np.ceil, "math.trunc": np.trunc,
    "math.round": _round_half_away, "math.roundeven": np.rint, "math.copysign": np.copysign, "math.powf": np.power,
    "math.ipowi": _power, "math.fpowi": lambda a, b: np.power(a, b.astype(a.dtype)), "math.cbrt": np.cbrt,
    "math.fma": _fma, "tt.precise_sqrt": np.sqrt, "tt.precise_divf": np.divide, "tt.mulhiui": _high_half,
}.items():  # fmt: skip
    elementwise(_name, _function)  # type: ignore[arg-type]


_COMPARED = (np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal)


@pure("arith.cmpi")
def _compare_integers(operation: IrOperation) -> Function:
    predicate = int(operation.attributes["predicate"])
    if predicate < 6:
        return _COMPARED[predicate]
    compare = _COMPARED[predicate - 4]
    return lambda a, b: compare(unsigned(a), unsigned(b))


def _is_ordered(a: Array, b: Array) -> Array:
    return ~(np.isnan(a) | np.isnan(b))


@pure("arith.cmpf")
def _compare_floats(operation: IrOperation) -> Function:
    predicate = int(operation.attributes["predicate"])
    compare: list[Callable[[Array, Array], Array]] = [
        np.equal, np.greater, np.greater_equal, np.less, np.less_equal, lambda a, b: (a != b) & _is_ordered(a, b),
    ]  # fmt: skip
    if predicate in (0, 15):
        return lambda a, b: np.broadcast_to(np.bool_(predicate == 15), np.broadcast_shapes(a.shape, b.shape))
    if predicate == 7:
        return _is_ordered
    if predicate == 14:
        return lambda a, b: ~_is_ordered(a, b)
    if predicate < 7:
        return compare[predicate - 1]
    if predicate == 13:
        return np.not_equal
    return lambda a, b: compare[predicate - 8](a, b) | ~_is_ordered(a, b)


@pure("arith.constant")
def _constant(operation: IrOperation) -> Function:
    value = constant(operation.attributes["value"], operation.result_type)
    return lambda: value


@pure("arith.select")
def _select(operation: IrOperation) -> Function:
    def select(condition: Array, a: Array, b: Array) -> Array:
        # A scalar condition chooses between tensors.
        extra = max(a.ndim, b.ndim) - condition.ndim
        return np.where(condition.reshape(condition.shape + (1,) * extra), a, b)

    return select


@pure("arith.extf", "arith.truncf", "arith.trunci", "arith.sitofp", "tt.fp_to_fp", "arith.index_cast")
def _convert(operation: IrOperation) -> Function:
    element, source = operation.result_type.element, operation.operand_types[0].element
    if operation.attributes.get("rounding") == 0 and operation.name == "tt.fp_to_fp":
        return lambda a: _towards_zero(a, element)
    if element == "i1":
        return lambda a: (a & 1).astype(np.bool_)
    if source == "i1" and operation.name in ("arith.sitofp", "arith.index_cast"):
        return lambda a: to_element(-a.astype(np.int8), element)
    return lambda a: to_element(a, element)


def _towards_zero(a: Array, element: str) -> Array:
    nearest = to_element(a, element)
    beyond = np.abs(nearest.astype(np.float64)) > np.abs(a.astype(np.float64))
    bits = {1: np.uint8, 2: np.uint16, 4: np.uint32}[np.dtype(memory_dtype(element)).itemsize]
    unit = {1: "i8", 2: "i16", 4: "i32"}[np.dtype(bits).itemsize]
    code = reinterpreted(nearest, element, unit)
    return reinterpreted(np.where(beyond, code - code.dtype.type(1), code), unit, element)


@pure("arith.extsi")
def _extend_signed(operation: IrOperation) -> Function:
    dtype = kept_dtype(operation.result_type.element)
    if operation.operand_types[0].element == "i1":
        return lambda a: -a.astype(dtype)
    return lambda a: a.astype(dtype)


@pure("arith.extui", "arith.uitofp", "arith.index_castui")
def _convert_unsigned(operation: IrOperation) -> Function:
    element = operation.result_type.element
    return lambda a: to_element(unsigned(a), element)


@pure("arith.fptosi", "arith.fptoui")
def _to_integer(operation: IrOperation) -> Function:
    """Saturate, as the vector unit does; NaN becomes 0."""
    dtype = np.dtype(kept_dtype(operation.result_type.element))
    if dtype.kind == "b":
        return lambda a: a != 0
    range_ = np.iinfo(dtype if operation.name == "arith.fptosi" else np.dtype(f"u{dtype.name}"))

    def convert(a: Array) -> Array:
        whole = np.trunc(np.nan_to_num(a.astype(np.float64), nan=0.0, posinf=np.inf, neginf=-np.inf))
        inside = np.clip(whole, float(range_.min), float(range_.max))
        converted = inside.astype(range_.dtype)
        return np.where(whole >= float(range_.max), range_.max, converted).astype(range_.dtype).view(dtype)

    return convert


@pure("arith.bitcast", "tt.bitcast", "tt.int_to_ptr", "tt.ptr_to_int")
def _bitcast(operation: IrOperation) -> Function:
    source, target = operation.operand_types[0].element, operation.result_type.element
    return (lambda a: a) if source == target else (lambda a: reinterpreted(a, source, target))


@pure("tt.addptr")
def _add_pointer(operation: IrOperation) -> Function:
    pointee = operation.result_type.pointee
    size = np.int64(np.dtype(memory_dtype(pointee.element if pointee is not None else "i8")).itemsize)
    return lambda pointer, offset: pointer + offset.astype(np.int64) * size


@pure("tt.clampf")
def _clamp(operation: IrOperation) -> Function:
    keeps_nan = operation.attributes.get("propagateNan") == 0xFFFF
    low, high = (np.maximum, np.minimum) if keeps_nan else (np.fmax, np.fmin)
    return rounded(lambda a, least, most: high(low(a, least), most), operation.result_type.element)


@pure("arith.mulsi_extended", "arith.mului_extended")
def _extended(operation: IrOperation) -> Function:
    if operation.name == "arith.mului_extended":
        return lambda a, b: (a * b, _high_half(a, b))

    def multiply(a: Array, b: Array) -> tuple[Array, Array]:
        return a * b, _high_half(a, b) - np.where(a < 0, b, 0) - np.where(b < 0, a, 0)

    return multiply


_LIBRARY: dict[str, Callable[..., Any]] = {
    "recip": lambda a: 1 / a, "log1p": np.log1p, "relu": lambda a: np.maximum(a, a.dtype.type(0)), "isinf": np.isinf,
    "isnan": np.isnan, "tan": np.tan, "atan": np.arctan, "tanh": np.tanh, "round": _round_half_away, "powf": np.power,
    "powi": _power, "pow": _power, "ldexp": lambda a, b: np.ldexp(a, b.astype(np.int32)),
    "ilogb": lambda a: np.floor(np.log2(np.abs(a))),
}  # fmt: skip


@pure("tt.extern_elementwise")
def _external(operation: IrOperation) -> Function:
    symbol = str(operation.attributes.get("symbol"))
    name = symbol.removeprefix("__hmf_")
    function = _LIBRARY.get(name) or _LIBRARY.get(name.removesuffix("Dh").removesuffix("f"))
    if function is None or not symbol.startswith("__hmf_"):
        known = ", ".join(f"__hmf_{known}" for known in _LIBRARY)
        raise TritonProgramError(f"external function {symbol!r} is not there on the host; it has {known}")
    return rounded(function, operation.result_type.element)
