# ruff: noqa: E501, PLR0917, RUF100 - kernels and build files are quoted as they are written
"""Vector arithmetic in its three forms, against NumPy."""

from __future__ import annotations

import ctypes
import math

import numpy as np
import pytest

from .. import cases as cases_
from ..cases import CTYPES, Case
from ..conftest import Build, Toolkit

random = np.random.default_rng(1)
N = 256 + 32  # one repeat of halfs and more, a chunk and a rest


def _values(kind: str, count: int = N, low: float = -8, high: float = 8) -> np.ndarray:
    dtype = CTYPES[kind]
    if dtype.kind == "f":
        return random.uniform(low, high, count).astype(dtype)
    return random.integers(int(low) if dtype.kind == "i" else 0, int(high), count).astype(dtype)


def _widely(kind: str, count: int = N) -> np.ndarray:
    info = np.iinfo(CTYPES[kind])
    return random.integers(info.min, info.max, count, dtype=np.int64).astype(CTYPES[kind])


def _f(function):
    """Computes in float and rounds once, as the host does with halfs."""
    return lambda x, y, z: (function(x.astype(np.float32), y.astype(np.float32), z.astype(np.float32))).astype(x.dtype)


BINARY = {
    "Add": lambda x, y, z: x + y,
    "Sub": lambda x, y, z: x - y,
    "Mul": lambda x, y, z: x * y,
    "Div": lambda x, y, z: x / y,
    "Max": lambda x, y, z: np.maximum(x, y),
    "Min": lambda x, y, z: np.minimum(x, y),
    "AddRelu": lambda x, y, z: np.maximum(x + y, 0),
    "SubRelu": lambda x, y, z: np.maximum(x - y, 0),
    "FusedMulAdd": lambda x, y, z: x * z + y,
    "FusedMulAddRelu": lambda x, y, z: np.maximum(x * z + y, 0),
    "MulAddRelu": lambda x, y, z: np.maximum(x * z + y, 0),
    "MulAddDst": lambda x, y, z: z + x * y,
}
UNARY = {
    "Relu": lambda x: np.maximum(x, 0),
    "Exp": np.exp,
    "Ln": np.log,
    "Abs": np.abs,
    "Reciprocal": lambda x: 1 / x,
    "Sqrt": np.sqrt,
    "Rsqrt": lambda x: (1 / np.sqrt(x)).astype(x.dtype),
}
SCALAR = {
    "Adds": lambda x, s: x + s,
    "Muls": lambda x, s: x * s,
    "Maxs": np.maximum,
    "Mins": np.minimum,
    "LeakyRelu": lambda x, s: np.where(x < 0, x * s, x),
}

CASES: list[Case] = []
for kind in ("float", "half"):
    types = (kind, kind, kind)
    rtol = 2e-6 if kind == "float" else 1e-3
    for name, function in BINARY.items():
        exact = name in ("Add", "Sub", "Mul", "Div", "Max", "Min", "AddRelu", "SubRelu")
        CASES.append(
            Case(
                name,
                f"{name}(z, x, y, n);",
                _f(function),
                _values(kind),
                _values(kind),
                _values(kind),
                types,
                0 if exact else rtol,
                0 if exact else rtol,
            )
        )
    for name, unary in UNARY.items():
        positive = name in ("Ln", "Sqrt", "Rsqrt")
        CASES.append(
            Case(
                name,
                f"{name}(z, x, n);",
                lambda x, y, z, f=unary: f(x.astype(np.float32)).astype(x.dtype),
                _values(kind, low=0.01 if positive else -4),
                types=types,
                rtol=rtol,
            )
        )
    for name, scalar in SCALAR.items():
        CASES.append(
            Case(
                name,
                f"{name}(z, x, ({kind})0.5, n);",
                lambda x, y, z, f=scalar: f(x.astype(np.float32), np.float32(0.5)).astype(x.dtype),
                _values(kind),
                types=types,
            )
        )
    CASES += [
        Case(
            "Axpy",
            f"Axpy(z, x, ({kind})0.5, n);",
            _f(lambda x, y, z: z + x * np.float32(0.5)),
            _values(kind),
            None,
            _values(kind),
            types,
            rtol,
            rtol,
        ),
        Case(
            "Duplicate",
            f"Duplicate(z, ({kind})1.5, n);",
            lambda x, y, z: np.full_like(x, 1.5),
            _values(kind),
            types=types,
        ),
    ]
for kind in ("int32_t", "int16_t"):
    types = (kind, kind, kind)
    bits = CTYPES[kind].itemsize * 8
    CASES += [
        Case("Add", "Add(z, x, y, n);", lambda x, y, z: x + y, _widely(kind), _widely(kind), types=types),
        Case("Sub", "Sub(z, x, y, n);", lambda x, y, z: x - y, _widely(kind), _widely(kind), types=types),
        Case("Mul", "Mul(z, x, y, n);", lambda x, y, z: x * y, _widely(kind), _widely(kind), types=types),
        Case("Max", "Max(z, x, y, n);", lambda x, y, z: np.maximum(x, y), _widely(kind), _widely(kind), types=types),
        Case("Min", "Min(z, x, y, n);", lambda x, y, z: np.minimum(x, y), _widely(kind), _widely(kind), types=types),
        *(
            [Case("Relu", "Relu(z, x, n);", lambda x, y, z: np.maximum(x, 0), _widely(kind), types=types)]
            if kind == "int32_t"
            else []
        ),
        Case("Adds", "Adds(z, x, 3, n);", lambda x, y, z: x + x.dtype.type(3), _widely(kind), types=types),
        Case("Muls", "Muls(z, x, 3, n);", lambda x, y, z: x * x.dtype.type(3), _widely(kind), types=types),
        Case("ShiftLeft", "ShiftLeft(z, x, 3, n);", lambda x, y, z: x << x.dtype.type(3), _widely(kind), types=types),
        Case("ShiftRight", "ShiftRight(z, x, 3, n);", lambda x, y, z: x >> x.dtype.type(3), _widely(kind), types=types),
        Case(
            "ShiftRight rounds",
            f"ShiftRight(z, x, 3, {2048 // bits}, 2, {{1, 1, 8, 8}}, true);",
            lambda x, y, z: (x >> x.dtype.type(3)) + ((x >> x.dtype.type(2)) & x.dtype.type(1)),
            _widely(kind, 4096 // bits),
            types=types,
        ),
    ]
types = ("uint16_t", "uint16_t", "uint16_t")
CASES += [
    Case("And", "And(z, x, y, n);", lambda x, y, z: x & y, _widely("uint16_t"), _widely("uint16_t"), types=types),
    Case("Or", "Or(z, x, y, n);", lambda x, y, z: x | y, _widely("uint16_t"), _widely("uint16_t"), types=types),
    # Atlas A2 counts pairs of bytes, whatever the type.
    *(
        Case(
            f"{name} of {kind} by count",
            f"{name}(z, x, y, n);",
            lambda x, y, z, f=f: np.concatenate([f(x, y)[: len(x) // 2], z[len(x) // 2 :]]),
            _widely(kind),
            _widely(kind),
            types=(kind,) * 3,
        )
        for name, f in (("And", np.bitwise_and), ("Or", np.bitwise_or))
        for kind in ("int32_t", "uint32_t")
    ),
    *(
        Case(
            f"{symbol} of {kind}",
            f"z = x {symbol} y;",
            lambda x, y, z, f=f: f(x, y),
            _widely(kind),
            _widely(kind),
            types=(kind,) * 3,
        )
        for symbol, f in (("&", np.bitwise_and), ("|", np.bitwise_or))
        for kind in ("int16_t", "int32_t")
    ),
    Case("Not", "Not(z, x, n);", lambda x, y, z: ~x, _widely("uint16_t"), types=types),
    Case("ShiftRight", "ShiftRight(z, x, 5, n);", lambda x, y, z: x >> np.uint16(5), _widely("uint16_t"), types=types),
    Case(
        "MulAddDst mixed",
        "MulAddDst(z, x, y, n);",
        lambda x, y, z: z + x.astype(np.float32) * y.astype(np.float32),
        _values("half"),
        _values("half"),
        _values("float"),
        ("half", "half", "float"),
        1e-6,
        1e-6,
    ),
    Case(
        "Axpy mixed",
        "Axpy(z, x, (half)0.5, n);",
        lambda x, y, z: z + np.float32(0.5) * x.astype(np.float32),
        _values("half"),
        None,
        _values("float"),
        ("half", "half", "float"),
        1e-6,
        1e-6,
    ),
]

# Repeats: the mask as a number, as bits, in counter mode and from the registers; strides; a destination read again.
HALF = ("half", "half", "half")
FLOAT = ("float", "float", "float")


def _masked(lanes: int, active: np.ndarray, function):
    """z where lanes are inactive, f(x, y) where they are active, repeat by repeat."""

    def expected(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        result = z.copy()
        for start in range(0, x.size, lanes):
            index = start + np.flatnonzero(active)
            result[index] = function(x[index], y[index])
        return result

    return expected


odd = np.arange(128) % 2 == 1
CASES += [
    Case(
        "Add mask",
        "Add(z, x, y, (uint64_t)100, 2, {1, 1, 1, 8, 8, 8});",
        _masked(128, np.arange(128) < 100, np.add),
        _values("half", 256),
        _values("half", 256),
        _values("half", 256),
        HALF,
    ),
    Case(
        "Add bits",
        "uint64_t mask[2] = {0xaaaaaaaaaaaaaaaa, 0xaaaaaaaaaaaaaaaa}; Add(z, x, y, mask, 2, {1, 1, 1, 8, 8, 8});",
        _masked(128, odd, np.add),
        _values("half", 256),
        _values("half", 256),
        _values("half", 256),
        HALF,
    ),
    # The destination is read too: of the lanes that are off it stays.
    *(
        Case(
            f"MulAddRelu {form}",
            f"uint64_t bits[2] = {{0xaaaaaaaaaaaaaaaa, 0xaaaaaaaaaaaaaaaa}}; (void)bits; "
            f"{setting} MulAddRelu{types_}(z, x, y, {mask}, 2, {{1, 1, 1, 8, 8, 8}}); ResetMask();",
            lambda x, y, z, on=on: np.where(
                np.resize(on, 256), np.maximum(x.astype("f4") * z.astype("f4") + y.astype("f4"), 0).astype("f2"), z
            ),
            _values("half", 256),
            _values("half", 256),
            _values("half", 256),
            HALF,
            1e-3,
            1e-3,
        )
        for form, setting, types_, mask, on in (
            ("mask", "", "", "(uint64_t)100", np.arange(128) < 100),
            ("bits", "", "", "bits", odd),
            (
                "registers",
                "SetVectorMask<half, MaskMode::NORMAL>(0, 0xffff);",
                "<half, false>",
                "MASK_PLACEHOLDER",
                np.arange(128) < 16,
            ),
        )
    ),
    Case(
        "Exp bits",
        "uint64_t mask[1] = {0xf0}; Exp(z, x, mask, 4, {1, 1, 8, 8});",
        _masked(64, (np.arange(64) >= 4) & (np.arange(64) < 8), lambda x, y: np.exp(x)),
        _values("float", 256),
        None,
        _values("float", 256),
        FLOAT,
        1e-6,
    ),
    Case(
        "Muls mask",
        "Muls(z, x, 2.0f, (uint64_t)64, 4, {1, 1, 8, 8});",
        lambda x, y, z: x * 2,
        _values("float", 256),
        types=FLOAT,
    ),
    Case(
        "Add counter",
        "SetMaskCount(); Add(z, x, y, (uint64_t)200, 1, {1, 1, 1, 8, 8, 8}); SetMaskNorm();",
        lambda x, y, z: np.where(np.arange(256) < 200, x + y, z),
        _values("float", 256),
        _values("float", 256),
        _values("float", 256),
        FLOAT,
    ),
    Case(
        "Add registers",
        "SetVectorMask<half, MaskMode::NORMAL>(0, 0xffff); Add<half, false>(z, x, y, MASK_PLACEHOLDER, 2,"
        " {1, 1, 1, 8, 8, 8}); ResetMask();",
        _masked(128, np.arange(128) < 16, np.add),
        _values("half", 256),
        _values("half", 256),
        _values("half", 256),
        HALF,
    ),
    # As template arguments, which is how kernels of a family share their code.
    Case(
        "Exp pointed",
        "using Unary = void(const LocalTensor<float>&, const LocalTensor<float>&, const int32_t&);"
        "Unary* f = Exp<float>; f(z, x, 64); f = &Abs<float>; f(z[64], x, 64); Exp(z[128], x, 64);",
        lambda x, y, z: np.concatenate([np.exp(x[:64]), np.abs(x[:64]), np.exp(x[:64])]).astype("f4"),
        _values("float", 64),
        None,
        np.zeros(192, np.float32),
        FLOAT,
        1e-6,
    ),
    Case(
        "Add pointed",
        "using Binary = void(const LocalTensor<float>&, const LocalTensor<float>&, const LocalTensor<float>&, "
        "const int32_t&);"
        "using Scalar = void(const LocalTensor<float>&, const LocalTensor<float>&, const float&, const int32_t&);"
        "using Math = void(const LocalTensor<float>&, const LocalTensor<float>&, const uint32_t);"
        "Binary* f = Add<float>; Scalar* g = Muls<float, true>; Math* h = Floor<float, false>;"
        "f(z, x, y, 64); g(z[64], x, 3.0f, 64); h(z[128], x, 64); const uint32_t count = 64; Floor(z[192], x, count);",
        lambda x, y, z: np.concatenate([x + y, x * 3, np.floor(x), np.floor(x)]).astype("f4"),
        _values("float", 64),
        _values("float", 64),
        np.zeros(256, np.float32),
        FLOAT,
    ),
    Case(
        "Div pointed",
        "using Binary = void(const LocalTensor<float>&, const LocalTensor<float>&, const LocalTensor<float>&, uint64_t,"
        "const uint8_t, const BinaryRepeatParams&); Binary* f = Div; f(z, x, y, 16, 4, {1, 1, 1, 8, 8, 8});"
        "f = &Sub<float, true>; const uint64_t mask = 8; f(z[256], x, y, mask, 4, {1, 1, 1, 8, 8, 8});"
        "Sub(z[256], x, y, mask, 2, {1, 1, 1, 8, 8, 8});",
        lambda x, y, z: np.concatenate(
            [np.where(np.arange(256) % 64 < 16, x / y, 0), np.where(np.arange(256) % 64 < 8, x - y, 0)]
        ).astype("f4"),
        _values("float", 256),
        _values("float", 256, 1, 8),
        np.zeros(512, np.float32),
        FLOAT,
    ),
    Case(
        "Add with members",
        "AscendCUtils::SetMask<half>(16); Add<half, false>(z, x, y, MASK_PLACEHOLDER, 2,"
        " {1, 1, 1, 8, 8, 8}); AscendCUtils::ResetMask();",
        _masked(128, np.arange(128) < 16, np.add),
        _values("half", 256),
        _values("half", 256),
        _values("half", 256),
        HALF,
    ),
    Case(
        "Add counter registers",
        "SetMaskCount(); SetVectorMask<half, MaskMode::COUNTER>(0, 130);"
        "Add<half, false>(z, x, y, MASK_PLACEHOLDER, 1, {1, 1, 1, 8, 8, 8}); SetMaskNorm(); ResetMask();",
        lambda x, y, z: np.where(np.arange(256) < 130, x + y, z),
        _values("half", 256),
        _values("half", 256),
        _values("half", 256),
        HALF,
    ),
    # Every second block of x, one block of y again and again.
    Case(
        "Mul strides",
        "Mul(z, x, y, (uint64_t)64, 2, {1, 2, 0, 8, 16, 0});",
        lambda x, y, z: (x.reshape(32, 8)[::2].ravel() * np.tile(y[:8], 16)).astype(np.float32),
        _values("float", 256),
        _values("float", 8),
        np.zeros(128, np.float32),
        FLOAT,
    ),
    # All repeats add into one: the sum over repeats.
    Case(
        "Add accumulates",
        "Add(z, x, z, (uint64_t)64, 4, {1, 1, 1, 0, 8, 0});",
        lambda x, y, z: x.reshape(4, 64).sum(0),
        np.arange(256, dtype=np.float32),
        None,
        np.zeros(64, np.float32),
        FLOAT,
    ),
    Case(
        "Duplicate repeats",
        "Duplicate(z, 2.0f, (uint64_t)8, 4, 1, 8);",
        lambda x, y, z: np.where(np.arange(256) % 64 < 8, np.float32(2), z),
        _values("float", 256),
        None,
        _values("float", 256),
        FLOAT,
    ),
    Case(
        "Copy repeats",
        "Copy(z, x, (uint64_t)64, 2, {1, 2, 8, 16});",
        lambda x, y, z: x.reshape(32, 8)[::2].ravel(),
        _values("float", 256),
        None,
        np.zeros(128, np.float32),
        FLOAT,
    ),
    Case(
        "in place",
        "Adds(x, x, 1.0f, n); Mul(x, x, x, n); DataCopy(z, x, n);",
        lambda x, y, z: (x + 1) * (x + 1),
        _values("float"),
        types=FLOAT,
    ),
    Case("nothing", "Add(z, x, y, 0);", lambda x, y, z: z, _values("float"), _values("float"), _values("float"), FLOAT),
]


@pytest.fixture(scope="module")
def library(build: Build) -> ctypes.CDLL:
    return build(cases_.source(CASES))


@pytest.mark.parametrize("index", range(len(CASES)), ids=[case.id for case in CASES])
def test_case(library: ctypes.CDLL, tools: Toolkit, index: int) -> None:
    cases_.check(library, index, CASES[index], tools.message)


def test_nan_wins(library: ctypes.CDLL) -> None:
    """Max and Min of a NaN and a number are NaN."""
    index = next(i for i, case in enumerate(CASES) if case.id == "Max-float")
    x = np.array([math.nan, 1, math.nan, 2] * 2, np.float32)
    y = np.array([1, math.nan, math.nan, 1] * 2, np.float32)
    case = Case("Max", "", lambda x, y, z: np.maximum(x, y), x, y)
    status, z = cases_.run(library, index, case)
    assert status == 0
    np.testing.assert_array_equal(z, np.maximum(x, y))
