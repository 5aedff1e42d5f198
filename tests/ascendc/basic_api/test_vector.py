# ruff: noqa: E501, PLR0917, RUF100, PLW0108 - kernels and build files are quoted as they are written
"""Comparisons, casts, reductions, reshaping, sorting and mathematics, against NumPy."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from .. import cases as cases_
from ..cases import Case
from ..conftest import Build, Toolkit

random = np.random.default_rng(2)
F = ("float", "float", "float")
H = ("half", "half", "half")


def _floats(count: int, low: float = -8, high: float = 8, dtype: type = np.float32) -> np.ndarray:
    return random.uniform(low, high, count).astype(dtype)


def _pack(bits: np.ndarray) -> np.ndarray:
    return np.packbits(bits, bitorder="little")


FLASH = """
    static constexpr SoftmaxConfig config = {{false, 0, 0, SoftmaxMode::{mode}}};
    SoftMaxShapeInfo shape = {{4, 64, 4, 60}};
    const auto tiling = SoftMaxFlashV2TilingFunc(shape, 4, 4, 1024);
    const auto updating = SoftMaxFlashV2TilingFuncImpl(4, 64, 4, 4, 1024, true, true);
    ICachePreLoad(2);
    const auto facts = t.ReinterpretCast<float>();
    const auto sum = facts, max = facts[32], factor = facts[64];
    SoftmaxFlashV2<float, false, true, false, false, config>(x, sum, max, x, factor, sum, max, tiling, shape);
    SoftmaxFlashV2<float, true, true, false, false, config>(y, sum, max, y, factor, sum, max, t, updating, shape);
    for (int i = 0; i < 4; ++i) {{
        Muls(x[i * 64], x[i * 64], factor.GetValue(i * {width}) / sum.GetValue(i * {width}), 64);
        Muls(y[i * 64], y[i * 64], 1 / sum.GetValue(i * {width}), 64);
    }}
    Add(z, x, y, n);"""


def _flash(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    """The two parts of a row as one softmax, added to each other; what is beyond 60 elements is scaled alone."""
    first, second = (part.reshape(4, 64).astype(np.float64) for part in (x, y))
    row = np.concatenate((first[:, :60], second[:, :60]), 1)
    powers = np.exp(row - row.max(1, keepdims=True))
    total = powers.sum(1, keepdims=True)
    factor = np.exp(first[:, :60].max(1, keepdims=True) - row.max(1, keepdims=True))
    rest = first[:, 60:] * factor / total + second[:, 60:] / total
    return np.concatenate(((powers[:, :60] + powers[:, 60:]) / total, rest), 1).astype(np.float32).ravel()


def _flash_of_means(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    """The third part of a row by SoftmaxFlashV3's documented steps, of whose two before it there are mean, sum and
    maximum."""
    alpha, rows, width = 0.9375, 8, 576
    scale = alpha / (1 - alpha)
    src = x.reshape(rows, width).astype(np.float64)
    in_mean, in_sum, in_max = y.reshape(3, rows, 8)[:, :, :1].astype(np.float64)
    eighths = src[:, :512].reshape(rows, 64, 8).sum(-1) + src[:, 512:].reshape(rows, -1, 64).sum(1)
    local = eighths.reshape(rows, 8, 8).sum(-1) / (width / 8)
    here = local.mean(1, keepdims=True)
    src -= np.repeat((here - local) * scale, width // 8, axis=1)
    mean = (here + in_mean * 2) / 3
    shift, before = (here - mean) * scale, (in_mean - mean) * scale
    most = np.maximum(src.max(1, keepdims=True) + shift, before + in_max)
    powers, factor = np.exp(src - (most - shift)), np.exp(in_max - most + before)
    facts = [mean, factor * in_sum + powers.sum(1, keepdims=True), most, factor]
    return np.concatenate([powers.ravel(), *(np.repeat(fact, 16, 1).ravel() for fact in facts)]).astype("f2")


def _in_blocks(x: np.ndarray, fractal: bool) -> np.ndarray:
    """[N, C, D, H, W] of 3, 20, 2, 3, 5 with rows of 16, as NDC1HWC0 or FRACTAL_Z_3D."""
    plain = np.pad(x.reshape(3, 20, 2, 16)[..., :15], ((0, 13 if fractal else 0), (0, 12), (0, 0), (0, 0)))
    if fractal:
        return plain.reshape(1, 16, 2, 16, 2, 15).transpose(4, 2, 5, 0, 1, 3).ravel()
    return plain.reshape(3, 2, 16, 2, 15).transpose(0, 3, 1, 4, 2).ravel()


def _in_rows(x: np.ndarray, fractal: bool) -> np.ndarray:
    """The other way; what fills a row is what was there."""
    if fractal:
        plain = x.reshape(2, 2, 15, 16, 16).transpose(3, 1, 4, 0, 2).reshape(16, 32, 2, 15)
    else:
        plain = x.reshape(3, 2, 2, 15, 16).transpose(0, 2, 4, 1, 3).reshape(3, 32, 2, 15)
    return np.pad(plain[:3, :20], ((0, 0), (0, 0), (0, 0), (0, 1))).ravel()


_LAYOUTS = (
    "const auto plain = MakeLayout(MakeShape(3, 20, 2, 3, 5), MakeStride()); const auto {blocks} "
    "static constexpr TransDataConfig way = {{{source}, {target}}};"
    "TransDataParams<decltype({first}), decltype({second})> params = {{{first}, {second}}}; "
    "TransData<way>(z, x, {space}params);"
)
_NDC1HWC0 = "blocks = MakeLayout(MakeShape(3, 2, 2, 3, 5, 16), MakeStride());"
_FRACTAL = "blocks = MakeLayout(MakeShape(2, 2, 3, 5, 1, 16, 16), MakeStride());"


def _trans_data(name: str, blocks: str, to_blocks: bool, space: str) -> str:
    """The call, with the space that it is given."""
    formats, layouts = ["DataFormat::NCDHW", f"DataFormat::{name}"], ["plain", "blocks"]
    (source, target), (first, second) = (part if to_blocks else part[::-1] for part in (formats, layouts))
    return _LAYOUTS.format(blocks=blocks, source=source, target=target, first=first, second=second, space=space)


def _softmax_facts(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    """The first 60 of 64, and behind them the row's sum and maximum."""
    result = _softmax(x, z, 60).reshape(4, 64)
    part = x.reshape(4, 64)[:, :60].astype(np.float64)
    result[:, 62] = np.exp(part - part.max(1, keepdims=True)).sum(1)
    result[:, 63] = part.max(1)
    return result.ravel()


def _softmax(x: np.ndarray, z: np.ndarray, count: int) -> np.ndarray:
    result = z.copy().reshape(4, 64)
    part = x.reshape(4, 64)[:, :count].astype(np.float64)
    powers = np.exp(part - part.max(1, keepdims=True))
    result[:, :count] = powers / powers.sum(1, keepdims=True)
    return result.ravel()


def _log_softmax(x: np.ndarray) -> np.ndarray:
    """Decimal; in front the sum and the maximum of the second row."""
    part = x.reshape(4, 64).astype(np.float64)
    powers = np.exp(part - part.max(1, keepdims=True))
    result = np.log10(powers / powers.sum(1, keepdims=True)).ravel()
    result[:2] = powers[1].sum(), part[1].max()
    return result.astype(np.float32)


CASES: list[Case] = []

# --- Compare and Select ----------------------------------------------------------------------------------------------
COMPARES = {
    "LT": np.less,
    "GT": np.greater,
    "EQ": np.equal,
    "LE": np.less_equal,
    "GE": np.greater_equal,
    "NE": np.not_equal,
}
WHOLE = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide}
SYMBOLS = dict(zip(("<", ">", "==", "<=", ">=", "!="), COMPARES.values(), strict=True))
bits = random.integers(0, 1 << 16, (2, 128)).astype(np.uint16)
# Tensors of the cases have more room than elements: those of a view's size are what an operator counts.
VIEWS = "auto a = x, b = y; auto c = z; a.SetSize({n}); b.SetSize({n}); c.SetSize({m}); c = a {symbol} b;"
CASES += [
    *(
        Case(
            f"whole {symbol}",
            VIEWS.format(n=256, m=200, symbol=symbol),
            lambda x, y, z, f=function: np.concatenate((f(x, y)[:200], z[200:])),
            _floats(256),
            random.integers(1, 9, 256).astype("f4"),
            np.ones(256, "f4"),
            rtol=1e-6,
        )
        for symbol, function in WHOLE.items()
    ),
    *(
        Case(
            f"whole {symbol}",
            VIEWS.format(n=128, m=128, symbol=symbol),
            lambda x, y, z, f=function: f(x, y),
            bits[0],
            bits[1],
            types=("uint16_t",) * 3,
        )
        for symbol, function in {"&": np.bitwise_and, "|": np.bitwise_or}.items()
    ),
    *(
        Case(
            f"whole {symbol}",
            VIEWS.format(n=256, m=32, symbol=symbol),
            lambda x, y, z, f=function: _pack(f(x, y)),
            random.integers(0, 3, 256).astype("f4"),
            random.integers(0, 3, 256).astype("f4"),
            np.zeros(32, np.uint8),
            ("float", "float", "uint8_t"),
        )
        for symbol, function in SYMBOLS.items()
    ),
]
for mode, function in COMPARES.items():
    few = random.integers(0, 3, 256).astype(np.float32)
    CASES += [
        Case(
            f"Compare {mode}",
            f"Compare(z, x, y, CMPMODE::{mode}, 256);",
            lambda x, y, z, f=function: _pack(f(x, y)),
            few,
            random.integers(0, 3, 256).astype(np.float32),
            np.zeros(32, np.uint8),
            ("float", "float", "uint8_t"),
        ),
        Case(
            f"CompareScalar {mode}",
            f"CompareScalar(z, x, 1.0f, CMPMODE::{mode}, 256);",
            lambda x, y, z, f=function: _pack(f(x, 1)),
            few,
            None,
            np.zeros(32, np.uint8),
            ("float", "float", "uint8_t"),
        ),
    ]
x256, y256 = _floats(256), _floats(256)
h256 = _floats(256, dtype=np.float16)
chosen = random.integers(0, 2, 256).astype(bool)
CASES += [
    Case(
        "Compare repeats",
        "Compare(z, x, y, CMPMODE::LT, (uint64_t)64, 4, {1, 1, 1, 8, 8, 8});",
        lambda x, y, z: _pack(x < y),
        x256,
        y256,
        np.zeros(32, np.uint8),
        ("float", "float", "uint8_t"),
    ),
    Case(
        "Compares repeats",
        "Compares(z, x, (half)0.0, CMPMODE::GE, (uint64_t)128, 2, {1, 1, 8, 8});",
        lambda x, y, z: _pack(x >= 0),
        h256,
        None,
        np.zeros(32, np.uint8),
        ("half", "half", "uint8_t"),
    ),
    Case(
        "Compares",
        "Compares(z, x, (half)0.0, CMPMODE::GE, 256);",
        lambda x, y, z: _pack(x >= 0),
        h256,
        None,
        np.zeros(32, np.uint8),
        ("half", "half", "uint8_t"),
    ),
    Case(
        "Select",
        "Select(z, y, x, x[256], SELMODE::VSEL_TENSOR_TENSOR_MODE, 256);",
        lambda x, y, z: np.where(chosen, x[:256], x[256:]),
        _floats(512),
        _pack(chosen),
        np.zeros(256, np.float32),
        ("float", "uint8_t", "float"),
    ),
    Case(
        "Select scalar",
        "Select(z, y, x, 7.0f, SELMODE::VSEL_TENSOR_SCALAR_MODE, 256);",
        lambda x, y, z: np.where(chosen, x, 7).astype("f4"),
        x256,
        _pack(chosen),
        types=("float", "uint8_t", "float"),
    ),
    Case(
        "Select mode 0",
        "Select(z, y, x, x[256], SELMODE::VSEL_CMPMASK_SPR, (uint64_t)64, 4, {1, 1, 1, 8, 8, 8});",
        lambda x, y, z: np.where(np.tile(chosen[:64], 4), x[:256], x[256:]),
        _floats(512),
        _pack(chosen[:64]),
        np.zeros(256, np.float32),
        ("float", "uint8_t", "float"),
    ),
    Case(
        "Select mask",
        "Select(z, y, x, x[256], SELMODE::VSEL_TENSOR_TENSOR_MODE, (uint64_t)10, 4, {1, 1, 1, 8, 8, 8});",
        lambda x, y, z: np.where(np.arange(256) % 64 < 10, np.where(chosen, x[:256], x[256:]), z),
        _floats(512),
        _pack(chosen),
        _floats(256),
        ("float", "uint8_t", "float"),
    ),
    Case(
        "compare mask register",
        "Compare(x, y, CMPMODE::GT, (uint64_t)64, {1, 1, 1, 8, 8, 8});"
        "Select<float, SELMODE::VSEL_CMPMASK_SPR>(z, x, y, 1, {1, 1, 1, 8, 8, 8});",
        lambda x, y, z: np.maximum(x, y),
        x256[:64],
        y256[:64],
        types=F,
    ),
    Case(
        "GetCmpMask",
        "Compare(x, y, CMPMODE::GT, (uint64_t)64, {1, 1, 1, 8, 8, 8}); GetCmpMask(z);",
        lambda x, y, z: np.concatenate([_pack(x > y), z[8:]]),
        x256[:64],
        y256[:64],
        np.zeros(16, np.uint8),
        ("float", "float", "uint8_t"),
    ),
    Case(
        "SetCmpMask",
        "SetCmpMask(y); Select<float, SELMODE::VSEL_CMPMASK_SPR>(z, x, x[64], 1, {1, 1, 1, 8, 8, 8});",
        lambda x, y, z: np.where(chosen[:64], x[:64], x[64:]),
        _floats(128),
        _pack(chosen[:128]),
        np.zeros(64, np.float32),
        ("float", "uint8_t", "float"),
    ),
]

# --- Cast ------------------------------------------------------------------------------------------------------------
halves = np.array([0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 1.4, 1.6, -1.4, -1.6, 0, 3, -3, 1e6, -1e6, 100.5], np.float32)
away = lambda x: np.trunc(x + np.copysign(0.5, x))  # noqa: E731
ROUNDS = {"RINT": np.rint, "FLOOR": np.floor, "CEIL": np.ceil, "ROUND": away, "TRUNC": np.trunc}
for mode, function in ROUNDS.items():
    CASES += [
        Case(
            f"Cast float to int32 {mode}",
            f"Cast(z, x, RoundMode::CAST_{mode}, 16);",
            lambda x, y, z, f=function: f(x).astype(np.int32),
            halves,
            None,
            np.zeros(16, np.int32),
            ("float", "float", "int32_t"),
        ),
        Case(
            f"Cast half to int16 {mode}",
            f"Cast(z, x, RoundMode::CAST_{mode}, 16);",
            lambda x, y, z, f=function: f(x.astype("f4")).astype("i2"),
            np.clip(halves, -300, 300).astype(np.float16),
            None,
            np.zeros(16, np.int16),
            ("half", "half", "int16_t"),
        ),
        Case(
            f"Cast float to float {mode}",
            f"Cast(z, x, RoundMode::CAST_{mode}, 16);",
            lambda x, y, z, f=function: f(x),
            halves,
            types=F,
        ),
        Case(
            f"Truncate {mode}",
            f"Truncate<float, RoundMode::CAST_{mode}>(z, x, 16);",
            lambda x, y, z, f=function: f(x),
            halves,
            types=F,
        ),
    ]


def _short(mode: str, kind: str):
    """The neighbor of each float that the mode asks for, found by exact search among the numbers of 16 bits."""

    def convert(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        bits = np.arange(1 << 16, dtype=np.uint32).astype(np.uint16)
        numbers = (
            bits.view(np.float16).astype(np.float64)
            if kind == "half"
            else (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
        )
        finite = np.isfinite(numbers)
        table = np.unique(numbers[finite])
        result = []
        for value in x.astype(np.float64):
            low, high = table[table <= value].max(), table[table >= value].min()
            middle = (low + high) / 2
            smaller, larger = sorted((low, high), key=abs)
            odd = {int(bits[finite & (numbers == v)].min()) & 1: v for v in (low, high)}
            if low == high or mode == "FLOOR":
                result.append(low)
            elif mode == "CEIL":
                result.append(high)
            elif mode == "TRUNC":
                result.append(smaller)
            elif mode == "ODD":
                result.append(odd[1])
            elif value == middle:
                result.append(larger if mode == "ROUND" else odd[0])
            else:
                result.append(low if value < middle else high)
        exact = np.array(result)
        if kind == "half":
            return exact.astype(np.float16)
        return (exact.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)

    return convert


hard = np.concatenate(
    [
        _floats(200, -100, 100),
        np.array([1 + 2**-11, 1 + 3 * 2**-11, -1 - 2**-11, 2**-24, 2**-25, -(2**-26), 65504, 1.00390625], "f4"),
        (1 + np.arange(48) * 2**-9).astype("f4"),
    ]
)
for mode in ("NONE", "RINT", "FLOOR", "CEIL", "ROUND", "TRUNC", "ODD"):
    for kind, dtype in (("half", np.float16), ("bfloat16_t", np.uint16)):
        if kind == "bfloat16_t" and mode not in ROUNDS:
            continue
        CASES.append(
            Case(
                f"Cast float to {kind} {mode}",
                f"Cast(z, x, RoundMode::CAST_{mode}, n);",
                _short(mode, kind),
                hard,
                None,
                np.zeros(hard.size, dtype),
                ("float", "float", kind),
            )
        )
CASES += [
    Case(
        "Cast half to float",
        "Cast(z, x, RoundMode::CAST_NONE, n);",
        lambda x, y, z: x.astype("f4"),
        h256,
        None,
        np.zeros(256, "f4"),
        ("half", "half", "float"),
    ),
    Case(
        "Cast int32 to float",
        "Cast(z, x, RoundMode::CAST_NONE, n);",
        lambda x, y, z: x.astype("f4"),
        random.integers(-(2**31), 2**31 - 1, 64).astype(np.int32),
        None,
        np.zeros(64, "f4"),
        ("int32_t", "int32_t", "float"),
    ),
    Case(
        "Cast int32 to int16 saturates",
        "Cast(z, x, RoundMode::CAST_NONE, n);",
        lambda x, y, z: np.clip(x, -32768, 32767).astype("i2"),
        random.integers(-70000, 70000, 64).astype(np.int32),
        None,
        np.zeros(64, "i2"),
        ("int32_t", "int32_t", "int16_t"),
    ),
    Case(
        "Cast half to int8 saturates",
        "Cast(z, x, RoundMode::CAST_RINT, n);",
        lambda x, y, z: np.clip(np.rint(x.astype("f4")), -128, 127).astype("i1"),
        _floats(64, -300, 300, np.float16),
        None,
        np.zeros(64, "i1"),
        ("half", "half", "int8_t"),
    ),
    Case(
        "Cast half to uint8",
        "Cast(z, x, RoundMode::CAST_NONE, n);",
        lambda x, y, z: np.clip(np.rint(x.astype("f4")), 0, 255).astype("u1"),
        _floats(64, -10, 300, np.float16),
        None,
        np.zeros(64, "u1"),
        ("half", "half", "uint8_t"),
    ),
    Case(
        "Cast int8 to half",
        "Cast(z, x, RoundMode::CAST_NONE, n);",
        lambda x, y, z: x.astype("f2"),
        np.arange(-64, 64, dtype=np.int8),
        None,
        np.zeros(128, "f2"),
        ("int8_t", "int8_t", "half"),
    ),
    Case(
        "Cast repeats",
        "Cast(z, x, RoundMode::CAST_NONE, (uint64_t)64, 4, {1, 1, 8, 4});",
        lambda x, y, z: x.astype("f4"),
        h256,
        None,
        np.zeros(256, "f4"),
        ("half", "half", "float"),
    ),
    Case(
        "Cast of the end of a buffer to all of it",
        "LocalTensor<half> w = z.ReinterpretCast<half>()[n]; Adds(w, x, (half)0, n);"
        "Cast(z, w, RoundMode::CAST_NONE, n);",
        lambda x, y, z: x.astype("f4"),
        h256,
        None,
        np.zeros(256, "f4"),
        ("half", "float", "float"),
    ),
    Case(
        "Cast of bytes at the end of a buffer",
        "LocalTensor<int8_t> w = z.ReinterpretCast<int8_t>()[n]; "
        "Cast(t.ReinterpretCast<half>(), x, RoundMode::CAST_NONE, n);"
        "Cast(w, t.ReinterpretCast<half>(), RoundMode::CAST_NONE, n); Cast(z, w, RoundMode::CAST_NONE, n);",
        lambda x, y, z: x.astype("f2"),
        np.resize(np.arange(-64, 64, dtype=np.int8), 384),
        None,
        np.zeros(384, "f2"),
        ("int8_t", "half", "half"),
    ),
    Case(
        "Cast in place",
        "LocalTensor<half> w = x.ReinterpretCast<half>(); Cast(w, x, RoundMode::CAST_RINT, n);DataCopy(z, w, n);",
        lambda x, y, z: x.astype("f2"),
        x256,
        None,
        np.zeros(256, "f2"),
        ("float", "float", "half"),
    ),
    Case(
        "ScalarCast",
        "z.SetValue(0, ScalarCast<float, int32_t, RoundMode::CAST_FLOOR>(x.GetValue(0)));"
        "z.SetValue(1, Cast<float, int32_t, RoundMode::CAST_CEIL>(x.GetValue(0)));"
        "z.SetValue(2, (int32_t)(4 * ToFloat(ToBfloat16(1.25f))));",
        lambda x, y, z: np.array([1, 2, 5], "i4"),
        np.array([1.5], "f4"),
        None,
        np.zeros(3, "i4"),
        ("float", "float", "int32_t"),
    ),
    Case(
        "MulCast",
        "MulCast(z, x, y, n);",
        lambda x, y, z: np.clip(np.rint((x * y).astype("f4")), -128, 127).astype("i1"),
        _floats(64, -9, 9, np.float16),
        _floats(64, -9, 9, np.float16),
        np.zeros(64, "i1"),
        ("half", "half", "int8_t"),
    ),
    Case(
        "AddReluCast",
        "AddReluCast(z, x, y, n);",
        lambda x, y, z: np.maximum(x + y, 0).astype("f2"),
        x256,
        y256,
        np.zeros(256, "f2"),
        ("float", "float", "half"),
    ),
    Case(
        "SubReluCast",
        "SubReluCast(z, x, y, n);",
        lambda x, y, z: np.maximum(x - y, 0).astype("f2"),
        x256,
        y256,
        np.zeros(256, "f2"),
        ("float", "float", "half"),
    ),
    Case(
        "AddDeqRelu",
        "SetDeqScale((half)0.5); AddDeqRelu(z, x, y, n);",
        lambda x, y, z: np.maximum((x + y) * 0.5, 0).astype("f2"),
        np.arange(-32, 32, dtype="i4"),
        np.full(64, 3, "i4"),
        np.zeros(64, "f2"),
        ("int32_t", "int32_t", "half"),
    ),
    Case(
        "CastDeq",
        "SetDeqScale((half)0.25); CastDeq(z, x, n);",
        lambda x, y, z: (x * 0.25).astype("f2"),
        np.arange(-32, 32, dtype="i4"),
        None,
        np.zeros(64, "f2"),
        ("int32_t", "int32_t", "half"),
    ),
]

# --- reductions ------------------------------------------------------------------------------------------------------
ints = random.permutation(512).astype(np.float32)  # sums are exact
hints = random.permutation(256).astype(np.float16)
index = lambda i: np.array([i], np.uint32).view(np.float32)[0]  # noqa: E731
hindex = lambda i: np.array([i], np.uint16).view(np.float16)[0]  # noqa: E731
rows = ints[:256].reshape(4, 64)
whole = random.integers(-99, 99, 64).astype(np.int32)


def _dequantized(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    """The first 12 of each 16 columns."""
    return np.concatenate((x.reshape(4, 16)[:, :12].astype("f4") * y[:12], z.reshape(4, 16)[:, 12:]), 1).ravel()


spread = np.random.default_rng(12)


def _quantized(x: np.ndarray, scale: np.ndarray | float, offset: np.ndarray | float) -> np.ndarray:
    """Every step in half, then the nearest integer."""
    narrowed, scale, offset = (np.asarray(value).astype("f2") for value in (x, scale, offset))
    return np.clip(np.rint((narrowed * scale + offset).astype("f4")), -128, 127).astype("i1")


flags = random.integers(0, 4, 128).astype(np.uint8)
CASES += [
    Case(
        "ReduceSum",
        "ReduceSum(z, x, t.ReinterpretCast<float>(), n);",
        lambda x, y, z: np.array([x.sum()], "f4"),
        ints,
        None,
        np.zeros(1, "f4"),
    ),
    Case(
        "ReduceSum half",
        "ReduceSum(z, x, t.ReinterpretCast<half>(), n);",
        lambda x, y, z: np.array([x.astype("f4").sum()], "f2"),
        hints,
        None,
        np.zeros(1, "f2"),
        H,
    ),
    Case(
        "ReduceSum mask",
        "ReduceSum(z, x, t.ReinterpretCast<float>(), 10, 4, 8);",
        lambda x, y, z: np.array([rows[:, :10].sum()], "f4"),
        ints[:256],
        None,
        np.zeros(1, "f4"),
    ),
    Case(
        "ReduceMax",
        "ReduceMax(z, x, t.ReinterpretCast<float>(), n, true);",
        lambda x, y, z: np.array([x.max(), index(x.argmax())], "f4"),
        ints,
        None,
        np.zeros(2, "f4"),
    ),
    Case(
        "ReduceMin",
        "ReduceMin(z, x, t.ReinterpretCast<half>(), n, true);",
        lambda x, y, z: np.array([x.min(), hindex(x.argmin())], "f2"),
        hints,
        None,
        np.zeros(2, "f2"),
        H,
    ),
    Case(
        "ReduceMax mask",
        "ReduceMax(z, x, t.ReinterpretCast<float>(), 64, 4, 8, true);",
        lambda x, y, z: np.array([x.max(), index(x.argmax())], "f4"),
        ints[:256],
        None,
        np.zeros(2, "f4"),
    ),
    Case(
        "ReduceMin mask",
        "uint64_t m[1] = {~0ull}; ReduceMin(z, x, t.ReinterpretCast<float>(), m, 4, 8);",
        lambda x, y, z: np.array([x.min()], "f4"),
        ints[:256],
        None,
        np.zeros(1, "f4"),
    ),
    Case(
        "WholeReduceSum",
        "WholeReduceSum(z, x, 64, 4, 1, 1, 8);",
        lambda x, y, z: rows.sum(1),
        ints[:256],
        None,
        np.zeros(4, "f4"),
    ),
    Case(
        "WholeReduceSum bits",
        "uint64_t m[1] = {3}; WholeReduceSum(z, x, m, 4, 2, 1, 8);",
        lambda x, y, z: np.stack([rows[:, :2].sum(1), np.zeros(4, "f4")], 1).ravel()[:7],
        ints[:256],
        None,
        np.zeros(7, "f4"),
    ),
    Case(
        "WholeReduceMax",
        "WholeReduceMax(z, x, 64, 4, 1, 1, 8);",
        lambda x, y, z: np.stack([rows.max(1), rows.argmax(1).astype("u4").view("f4")], 1).ravel(),
        ints[:256],
        None,
        np.zeros(8, "f4"),
    ),
    Case(
        "WholeReduceMin",
        "WholeReduceMin(z, x, 64, 4, 1, 1, 8, ReduceOrder::ORDER_ONLY_VALUE);",
        lambda x, y, z: rows.min(1),
        ints[:256],
        None,
        np.zeros(4, "f4"),
    ),
    Case(
        "ReduceRepeat",
        "ReduceRepeat<ReduceType::MAX>(z, x, 64, 4, 1, 1, 8, ReduceOrder::ORDER_INDEX_VALUE);",
        lambda x, y, z: np.stack([rows.argmax(1).astype("u4").view("f4"), rows.max(1)], 1).ravel(),
        ints[:256],
        None,
        np.zeros(8, "f4"),
    ),
    Case(
        "RepeatReduceSum",
        "RepeatReduceSum(z, x, 4, 64, 0, 1, 1, 8);",
        lambda x, y, z: rows.sum(1),
        ints[:256],
        None,
        np.zeros(4, "f4"),
    ),
    Case(
        "BlockReduceSum",
        "BlockReduceSum(z, x, 4, 64, 1, 1, 8);",
        lambda x, y, z: x.reshape(32, 8).sum(1),
        ints[:256],
        None,
        np.zeros(32, "f4"),
    ),
    Case(
        "BlockReduceMax",
        "BlockReduceMax(z, x, 2, 128, 1, 1, 8);",
        lambda x, y, z: x.reshape(16, 16).max(1),
        hints,
        None,
        np.zeros(16, "f2"),
        H,
    ),
    Case(
        "BlockReduceMin",
        "BlockReduceMin(z, x, 2, 128, 1, 1, 8);",
        lambda x, y, z: x.reshape(16, 16).min(1),
        hints,
        None,
        np.zeros(16, "f2"),
        H,
    ),
    Case(
        "ReduceDataBlock",
        "ReduceDataBlock<ReduceType::SUM>(z, x, 64, 4, 1, 1, 8);",
        lambda x, y, z: x.reshape(32, 8).sum(1),
        ints[:256],
        None,
        np.zeros(32, "f4"),
    ),
    Case(
        "PairReduceSum",
        "PairReduceSum(z, x, 4, 64, 1, 1, 8);",
        lambda x, y, z: x.reshape(128, 2).sum(1),
        ints[:256],
        None,
        np.zeros(128, "f4"),
    ),
    Case(
        "ReducePairElem",
        "ReducePairElem<ReduceType::MAX>(z, x, 64, 4, 1, 1, 8);",
        lambda x, y, z: x.reshape(128, 2).max(1),
        ints[:256],
        None,
        np.zeros(128, "f4"),
    ),
    Case(
        "Sum",
        "Sum(z, x, SumParams{4, 64, 60});",
        lambda x, y, z: rows[:, :60].sum(1),
        ints[:256],
        None,
        np.zeros(4, "f4"),
    ),
    Case(
        "ReduceSum rows",
        "const uint32_t shape[] = {4, 60}; ReduceSum<float, Pattern::Reduce::AR>(z, x, t, shape, true);",
        lambda x, y, z: rows[:, :60].sum(1),
        ints[:256],
        None,
        np.zeros(4, "f4"),
    ),
    Case(
        "ReduceMean columns",
        "const uint32_t shape[] = {4, 60}; ReduceMean<float, Pattern::Reduce::RA, true>(z, x, shape, true);",
        lambda x, y, z: rows[:, :60].mean(0),
        ints[:256],
        None,
        np.zeros(60, "f4"),
    ),
    Case(
        "ReduceMax rows",
        "const uint32_t shape[] = {4, 60}; ReduceMax<float, Pattern::Reduce::AR, true>(z, x, shape, true);",
        lambda x, y, z: rows[:, :60].max(1),
        ints[:256],
        None,
        np.zeros(4, "f4"),
    ),
    Case(
        "ReduceMin columns",
        "const uint32_t shape[] = {4, 64}; ReduceMin<half, Pattern::Reduce::RA>(z, x, t, shape, true);",
        lambda x, y, z: x.reshape(4, 64).min(0),
        hints[:256],
        None,
        np.zeros(64, "f2"),
        H,
    ),
    Case(
        "ReduceProd rows",
        "const uint32_t shape[] = {4, 4}; ReduceProd<float, Pattern::Reduce::AR>(z, x, t, shape, true);",
        lambda x, y, z: x.reshape(4, 8)[:, :4].prod(1),
        ints[:32],
        None,
        np.zeros(4, "f4"),
    ),
    Case(
        "ReduceAny columns",
        "const uint32_t shape[] = {4, 30}; ReduceAny<uint8_t, Pattern::Reduce::RA>(z, x, t, shape, true);",
        lambda x, y, z: np.bitwise_or.reduce(x.reshape(4, 32)[:, :30]),
        flags,
        None,
        np.zeros(30, "u1"),
        ("uint8_t",) * 3,
    ),
    Case(
        "ReduceAll rows",
        "const uint32_t shape[] = {4, 30}; ReduceAll<uint8_t, Pattern::Reduce::AR>(z, x, t, shape, true);",
        lambda x, y, z: x.reshape(4, 32)[:, :30].min(1),
        flags,
        None,
        np.zeros(4, "u1"),
        ("uint8_t",) * 3,
    ),
    Case(
        "Exp by a series",
        "Exp<float, 5>(z, x, t, n);",
        lambda x, y, z: np.exp(x),
        spread.uniform(-4, 4, 64).astype("f4"),
        None,
        np.zeros(64, "f4"),
        rtol=1e-6,
    ),
    Case(
        "AscendQuant",
        "AscendQuant(z, x, 2.0f, 0.9f, n);",
        lambda x, y, z: _quantized(x, 2.0, 0.9),
        spread.uniform(-90, 90, 64).astype("f4"),
        None,
        np.zeros(64, "i1"),
        ("float", "float", "int8_t"),
    ),
    Case(
        "AscendQuant by column",
        "AscendQuant(z, x, t, y, half(-1.5), 16, n);",
        lambda x, y, z: _quantized(x, np.tile(y, 4), -1.5),
        spread.uniform(-90, 90, 64).astype("f2"),
        spread.uniform(0, 2, 16).astype("f2"),
        np.zeros(64, "i1"),
        ("half", "half", "int8_t"),
    ),
    Case(
        "AscendQuant by column with offsets",
        "AscendQuant(z, x, y, y, 16, 16, n);",
        lambda x, y, z: _quantized(x, np.tile(y, 4), np.tile(y, 4)),
        spread.uniform(-90, 90, 64).astype("f4"),
        spread.uniform(0, 2, 16).astype("f4"),
        np.zeros(64, "i1"),
        ("float", "float", "int8_t"),
    ),
    Case(
        "AscendDequant by column",
        "AscendDequant(z, x, y, t, {4, 16, 12});",
        _dequantized,
        whole,
        random.uniform(0, 2, 16).astype("f4"),
        np.zeros(64, "f4"),
        ("int32_t", "float", "float"),
    ),
    Case(
        "AscendDequant of one row as two",
        "AscendDequant(z, x, y, {1, 64, 16});",
        lambda x, y, z: (x.reshape(4, 16).astype("f4") * y[:16]).ravel(),
        whole,
        random.integers(1, 9, 16).astype("f4"),
        np.zeros(64, "f4"),
        ("int32_t", "float", "float"),
    ),
    *(
        Case(
            f"AscendDequant again and again({form})",
            f"y.SetSize(16); x.SetSize(64); AscendDequant(z, x, y{form});",
            lambda x, y, z, n=count: np.where(np.arange(64) < n, x.astype("f4") * np.resize(y, 64), z).astype("f4"),
            np.arange(-32, 32, dtype="i4"),
            random.uniform(0, 2, 16).astype("f4"),
            np.full(64, 7, "f4"),
            ("int32_t", "float", "float"),
        )
        for form, count in (("", 64), (", t", 64), (", 32u", 32), (", t, 48u", 48))
    ),
    Case(
        "AscendDequant of a padded row",
        "AscendDequant(z, x, uint64_t(0xff0000003f000000), t, {4, 8, 8});",
        lambda x, y, z: np.concatenate((x[:32].reshape(4, 8) * 0.5, z.reshape(4, 16)[:, 8:]), 1).astype("f2").ravel(),
        whole,
        None,
        np.full(64, 3, "f2"),
        ("int32_t", "half", "half"),
    ),
    Case(
        "Mean", "Mean(z, x, MeanParams{4, 64, 64});", lambda x, y, z: rows.mean(1), ints[:256], None, np.zeros(4, "f4")
    ),
    Case(
        "registers of reductions",
        "ReduceSum(z, x, t.ReinterpretCast<float>(), n); float sum = GetAccVal<float>();"
        "ReduceMax(z, x, t.ReinterpretCast<float>(), n); float value, where; GetReduceMaxMinCount(value, where);"
        "z.SetValue(0, sum); z.SetValue(1, value); z.SetValue(2, where); z.SetValue(3, GetReduceRepeatSumSpr<float>());"
        "GetReduceRepeatMaxMinSpr(value, where); z.SetValue(4, value); const uint64_t word = GetAccVal(); "
        "z.ReinterpretCast<uint32_t>().SetValue(5, word);",
        lambda x, y, z: np.array([x.sum(), x.max(), index(0xA5A5A5A5), x.sum(), x.max(), x.sum()], "f4"),
        ints,
        None,
        np.zeros(6, "f4"),
    ),
    *(
        Case(
            f"the register of {name} of repeats",
            f"{name}(z, x, 64, 4, 1, 1, 8); float value, place; GetReduceMaxMinCount(value, place); uint32_t bits, at;"
            "GetReduceRepeatMaxMinSpr<float>(bits, at); z.SetValue(0, value); z.SetValue(1, place); "
            "z.ReinterpretCast<uint32_t>().SetValue(2, bits); z.SetValue(3, at);",
            lambda x, y, z, f=found: np.array([x[f(x)], index(f(x)), x[f(x)], f(x)], "f4"),
            given,
            None,
            np.zeros(4, "f4"),
        )
        for name, found in (("WholeReduceMax", np.argmax), ("WholeReduceMin", np.argmin))
        for given in (np.roll(np.arange(256, dtype="f4"), 130), np.roll(np.arange(256, dtype="f4")[::-1], 130).copy())
    ),
    *(
        Case(
            f"indices of half alone, {name}",
            f"{name}(z, x, 128, 2, 1, 1, 8, ReduceOrder::ORDER_ONLY_INDEX);",
            lambda x, y, z, f=found: f(x.reshape(2, 128), axis=1).astype("u4").view("f2"),
            np.roll(np.arange(256), 77).astype("f2"),
            None,
            np.zeros(4, "f2"),
            H,
        )
        for name, found in (("WholeReduceMax", np.argmax), ("WholeReduceMin", np.argmin))
    ),
    *(
        Case(f"nothing is reduced, {form}", form, lambda x, y, z: z, x256, None, np.full(4, 7, "f4"))
        for form in (
            "ReduceMax(z, x, y, 0, true);",
            "ReduceSum(z, x, y, 0);",
            "WholeReduceSum(z, x, 0, 1, 1, 1, 8);",
            "WholeReduceMax(z, x, 64, 0, 1, 1, 8);",
            "uint64_t m[2] = {0, 0}; BlockReduceMin(z, x, 1, m, 1, 1, 8);",
            "ReduceMin(z, x, y, 0, 1, 8, true);",
        )
    ),
    *(
        Case(f"a mask of nothing, {form}", form, lambda x, y, z: z, x256, None, np.full(64, 7, "f4"))
        for form in (
            "Adds(z, x, 1.0f, uint64_t(0), 1, {1, 1, 8, 8});",
            "uint64_t m[2] = {0, 0}; Add(z, x, y, m, 1, {1, 1, 1, 8, 8, 8});",
            "Cast(z, x, RoundMode::CAST_CEIL, uint64_t(0), 1, {1, 1, 8, 8});",
            (
                "SetVectorMask<float>(0, 0); Adds<float, false>(z, x, 1.0f, MASK_PLACEHOLDER, 1, {1, 1, 8, 8}); "
                "ResetMask();"
            ),
        )
    ),
    Case(
        "a mask of more than all",
        "Adds(z, x, 1.0f, uint64_t(128), 1, {1, 1, 8, 8});",
        lambda x, y, z: np.concatenate((x[:64] + 1, z[64:])),
        x256[:128],
        None,
        np.full(128, 7, "f4"),
    ),
    Case(
        "the sum's register",
        "ReduceSum(z, x, t.ReinterpretCast<half>(), n); z.ReinterpretCast<int64_t>().SetValue(1, GetAccVal());",
        lambda x, y, z: np.array([x.sum(), 0, 0, 0, x.sum(), 0, 0, 0], "f2"),
        np.arange(16).astype("f2"),
        None,
        np.zeros(8, "f2"),
        H,
    ),
]


# --- choosing by bytes, the k best, rows of softmax
# ---------------------------------------------------------------------
def _best(largest: bool, k: int, pitch: int, count: int) -> Callable[..., np.ndarray]:
    """Rows of the k best, the rest of each row as it was; NaN first, equal ones in order."""

    def expected(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        result = z.copy().reshape(-1, pitch)
        for row, values in enumerate(x.reshape(len(result), -1)[:, :count].astype("f4")):
            key = np.where(np.isnan(values), -np.inf, -values if largest else values)
            result[row, :k] = values[np.argsort(key, kind="stable")[:k]]
        return result.ravel()

    return expected


def _best_indices(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    """The second row is marked as finished; what is behind five indices stays."""
    result = z.copy().reshape(2, 8)
    result[0, :5] = y[np.argsort(x[:30])[:5]]
    result[1, :5] = 30
    return result.ravel()


choices = random.integers(0, 2, 4 * 96).astype("u1")
gaps = np.where(random.random(128) < 0.1, np.nan, random.integers(-9, 9, 128)).astype("f4")
TOPK = (
    "const int tiling = 0; TopKInfo info; info.outter = {rows}; info.inner = {inner}; info.n = {n}; "
    "LocalTensor<bool> none;"
)
CASES += [
    Case(
        "SelectWithBytesMask",
        "SelectWithBytesMaskShapeInfo info; info.firstAxis = 4; info.srcLastAxis = 64; info.maskLastAxis = 96;"
        "SelectWithBytesMask(z, x, 2.5f, y, t, info);",
        lambda x, y, z: np.where(y.reshape(4, 96)[:, :64], 2.5, x.reshape(4, 64)).astype("f4").ravel(),
        x256,
        choices,
        types=("float", "uint8_t", "float"),
    ),
    Case(
        "Select by bytes",
        "SelectWithBytesMaskShapeInfo info; info.firstAxis = 4; info.srcLastAxis = 64; info.maskLastAxis = 64;"
        "Select<half, int32_t>(z, half(2.5f), x, y, t, info);",
        lambda x, y, z: np.where(y, x, 2.5).astype("f2"),
        h256,
        np.where(choices[:256], 256, 0).astype("i4"),
        types=("half", "int32_t", "half"),
    ),
    Case(
        "TopK largest",
        TOPK.format(rows=4, inner=32, n=30)
        + "TopK(z, t.ReinterpretCast<int32_t>(), x, LocalTensor<int32_t>(), none, 5, tiling, info);",
        _best(True, 5, 8, 30),
        gaps,
        None,
        np.full(32, 7, "f4"),
    ),
    Case(
        "TopK smallest, small",
        TOPK.format(rows=4, inner=32, n=30)
        + "TopK<float, false, false, false, TopKMode::TOPK_NSMALL>(z, t.ReinterpretCast<int32_t>(), x, "
        "LocalTensor<int32_t>(), none, t, 5, tiling, info, false);",
        _best(False, 5, 5, 30),
        gaps,
        None,
        np.zeros(20, "f4"),
    ),
    Case(
        "TopK half",
        TOPK.format(rows=2, inner=64, n=64)
        + "TopK(z, t.ReinterpretCast<int32_t>(), x, LocalTensor<int32_t>(), none, t, 3, tiling, info);",
        _best(True, 3, 16, 64),
        h256[:128],
        None,
        np.full(32, 7, "f2"),
        ("half", "half", "half"),
    ),
    Case(
        "TopK indices",
        TOPK.format(rows=2, inner=32, n=30)
        + "const auto done = t.ReinterpretCast<bool>(); done.SetValue(0, false); done.SetValue(1, true);"
        "TopK<float, true, true>(t.ReinterpretCast<float>()[8], z, x, y, done, 5, tiling, info, false);",
        _best_indices,
        random.permutation(64).astype("f4"),
        np.arange(100, 132, dtype="i4"),
        np.zeros(16, "i4"),
        ("float", "int32_t", "int32_t"),
    ),
    Case(
        "TopK without indices",
        TOPK.format(rows=1, inner=32, n=32)
        + "TopK(t.ReinterpretCast<float>(), z, x, LocalTensor<int32_t>(), none, 3, tiling, info);",
        lambda x, y, z: np.array([-1, -1, -1, 0, 0, 0, 0, 0], "i4"),
        x256[:32],
        None,
        np.zeros(8, "i4"),
        ("float", "int32_t", "int32_t"),
    ),
    Case(
        "AdjustSoftMaxRes",
        "bool found = AdjustSoftMaxRes(z, y, 0x3f800000, 5.0f, {4, 8, 4, 8});"
        "if (!found || AdjustSoftMaxRes(z, y, 0x40400000, 6.0f, {4, 8, 4, 8})) z.SetValue(0, 9.0f);",
        lambda x, y, z: np.repeat(np.where(y[::8] == 1, 5, z[::8]), 8).astype("f4"),
        x256,
        np.repeat([1, 2, 1, 4], 8).astype("f4"),
        np.arange(32, dtype="f4") // 8,
    ),
    Case(
        "AdjustSoftMaxRes packed",
        "const bool found = AdjustSoftMaxRes<float, half, false, 1>(z, y, 0x3c00, 5.0f, {4, 8, 4, 8}); "
        "if (!found) z.SetValue(0, 9.0f);",
        lambda x, y, z: np.repeat(np.where(y[:4] == 1, 5, z[::8]), 8).astype("f4"),
        x256,
        np.resize([2, 1, 1, 4], 16).astype("f2"),
        np.arange(32, dtype="f4") // 8,
        ("float", "half", "float"),
    ),
]

# --- reshaping -------------------------------------------------------------------------------------------------------
order = random.permutation(256).astype(np.uint32)
square = np.arange(256, dtype=np.int16)
CASES += [
    Case(
        "Gather",
        "Gather(z, x, y, 0, n);",
        lambda x, y, z: x[order],
        x256,
        order * 4,
        types=("float", "uint32_t", "float"),
    ),
    Case(
        "Gather half",
        "Gather(z, x, y, 2, 255);",
        lambda x, y, z: np.concatenate([x[1:][np.minimum(order[:255], 254)], z[255:]]),
        h256,
        np.minimum(order, 254) * 2,
        types=("half", "uint32_t", "half"),
    ),
    Case(
        "Gather repeats",
        "Gather(z, x, y, 0, (uint64_t)64, 4, 8);",
        lambda x, y, z: x[order],
        x256,
        order * 4,
        types=("float", "uint32_t", "float"),
    ),
    Case(
        "Gatherb",
        "Gatherb(z, x, y, 4, {1, 8});",
        lambda x, y, z: x.reshape(32, 8)[order[order < 32]].ravel(),
        np.arange(256, dtype="u4"),
        order[order < 32] * 32,
        types=("uint32_t", "uint32_t", "uint32_t"),
    ),
    Case(
        "GatherMask pattern",
        "uint64_t kept; GatherMask(z, x, 2, false, 0, {1, 4, 8, 0}, kept); z.SetValue(128, (float)kept);"
        "z.SetValue(129, (float)GetGatherMaskRemainCount());",
        lambda x, y, z: np.concatenate([x[1::2], [128, 128]]).astype("f4"),
        x256,
        None,
        np.zeros(130, "f4"),
    ),
    Case(
        "GatherMask fourth",
        "uint64_t kept; GatherMask(z, x, 5, true, 70, {1, 2, 8, 0}, kept);",
        lambda x, y, z: np.concatenate([x[:70][2::4], x[64:134][2::4]]),
        x256,
        None,
        np.zeros(34, "f4"),
    ),
    Case(
        "GatherMask tensor",
        "uint64_t kept; GatherMask(z, x, y, false, 0, {1, 4, 8, 1}, kept); z.SetValue(200, (float)kept);",
        lambda x, y, z: _kept(x, y, z),
        x256,
        np.resize(np.array([3, 5, 0, 0, 0, 0, 0, 0], "u4"), 32),
        np.zeros(201, "f4"),
        ("float", "uint32_t", "float"),
    ),
    # In counter mode a repeat of Copy has as many elements as the mask says, unlike those of other instructions: the
    # document's third scenario, and rows.
    Case(
        "Copy counted blocks",
        "SetMaskCount(); SetVectorMask<int32_t, MaskMode::COUNTER>(144); "
        "Copy<int32_t, false>(z, x, MASK_PLACEHOLDER, 1, {1, 8, 8, 8});"
        "SetMaskNorm(); ResetMask();",
        lambda x, y, z: x.reshape(18, 64)[:, :8].ravel(),
        np.arange(1152, dtype="i4"),
        None,
        np.zeros(144, "i4"),
        types=("int32_t",) * 3,
    ),
    Case(
        "Copy counted rows",
        "SetMaskCount(); SetVectorMask<half, MaskMode::COUNTER>(150); "
        "Copy<half, false>(z, x[16], MASK_PLACEHOLDER, 3, {1, 1, 10, 20});"
        "SetMaskNorm(); ResetMask();",
        lambda x, y, z: np.pad(x.reshape(3, 320)[:, 16:166], ((0, 0), (0, 10))).ravel(),
        np.arange(960, dtype="f2"),
        None,
        np.zeros(480, "f2"),
        types=H,
    ),
    Case("Brcb", "Brcb(z, x, 2, {1, 8});", lambda x, y, z: np.repeat(x, 8), _floats(16), None, np.zeros(128, "f4")),
    Case(
        "CreateVecIndex",
        "CreateVecIndex(z, 5, 64);",
        lambda x, y, z: np.arange(5, 69, dtype="i4"),
        np.zeros(64, "i4"),
        types=("int32_t",) * 3,
    ),
    Case(
        "CreateVecIndex repeats",
        "CreateVecIndex(z, 5.0f, (uint64_t)64, 2, 1, 8);",
        lambda x, y, z: np.arange(5, 133, dtype="f4"),
        np.zeros(128, "f4"),
    ),
    Case(
        "ArithProgression",
        "ArithProgression(z, 1.0f, 0.5f, 64);",
        lambda x, y, z: (1 + 0.5 * np.arange(64)).astype("f4"),
        np.zeros(64, "f4"),
    ),
    Case(
        "ArithProgression of rows shorter than a block",
        "for (int i = 0; i < 8; ++i) ArithProgression(z[i * 6], i, 10, 6);",
        lambda x, y, z: np.array([i + 10 * k for i in range(8) for k in range(6)], "i4"),
        np.zeros(48, "i4"),
        types=("int32_t",) * 3,
    ),
    Case(
        "Arange",
        "Arange(z, 3, 2, 64);",
        lambda x, y, z: 3 + 2 * np.arange(64, dtype="i4"),
        np.zeros(64, "i4"),
        types=("int32_t",) * 3,
    ),
    Case("Transpose", "Transpose(z, x);", lambda x, y, z: x.reshape(16, 16).T.ravel(), square, types=("int16_t",) * 3),
    Case(
        "Transpose NCHW",
        "Transpose(z, x, t, TransposeParamsExt(2, 4, 4, 8, TransposeType::TRANSPOSE_NCHW2NHWC));",
        lambda x, y, z: x.reshape(2, 4, 32).transpose(0, 2, 1).ravel(),
        x256,
    ),
    Case(
        "Transpose NHWC",
        "Transpose(z, x, t, TransposeParamsExt(2, 4, 4, 8, TransposeType::TRANSPOSE_NHWC2NCHW));",
        lambda x, y, z: x.reshape(2, 32, 4).transpose(0, 2, 1).ravel(),
        x256,
    ),
    Case(
        "TransDataTo5HD",
        "uint64_t to[16], from[16]; for (int i = 0; i < 16; ++i) { to[i] = z[i * 16].GetPhyAddr();"
        " from[i] = x[i * 16].GetPhyAddr(); } TransDataTo5HD<int16_t>(to, from, TransDataTo5HDParams());",
        lambda x, y, z: x.reshape(16, 16).T.ravel(),
        square,
        types=("int16_t",) * 3,
    ),
    Case(
        "TransDataTo5HD float",
        "LocalTensor<float> to[16], from[16]; for (int i = 0; i < 16; ++i) { to[i] = z[i * 8];"
        " from[i] = x[i * 8]; } TransDataTo5HD(to, from, TransDataTo5HDParams());",
        lambda x, y, z: x.reshape(16, 8).T.ravel(),
        _floats(128),
    ),
    Case(
        "TransData NDC1HWC0",
        _trans_data("NDC1HWC0", _NDC1HWC0, True, "t, "),
        lambda x, y, z: _in_blocks(x, False),
        np.arange(1920, dtype="u2"),
        None,
        np.ones(2880, "u2"),
        types=("uint16_t",) * 3,
    ),
    Case(
        "TransData of NDC1HWC0",
        _trans_data("NDC1HWC0", _NDC1HWC0, False, ""),
        lambda x, y, z: _in_rows(x, False),
        np.arange(2880, dtype="i2"),
        None,
        np.zeros(1920, "i2"),
        types=("int16_t",) * 3,
    ),
    Case(
        "TransData FRACTAL_Z_3D",
        _trans_data("FRACTAL_Z_3D", _FRACTAL, True, "t, "),
        lambda x, y, z: _in_blocks(x, True),
        np.arange(1920, dtype="f2"),
        None,
        np.ones(15360, "f2"),
        types=H,
    ),
    Case(
        "TransData of FRACTAL_Z_3D",
        _trans_data("FRACTAL_Z_3D", _FRACTAL, False, "t, "),
        lambda x, y, z: _in_rows(x, True),
        np.arange(15360, dtype="u2"),
        None,
        np.zeros(1920, "u2"),
        types=("uint16_t",) * 3,
    ),
    # The numbers of the documents' examples of Layout and Crd2Idx.
    Case(
        "Layout",
        "Shape<int, int, int> shape = MakeShape(10, 20, 30); Stride<int, int, int> stride = MakeStride(1, 100, 200);"
        "Layout<Shape<int, int, int>, Stride<int, int, int>> layout(shape, stride); "
        "z.SetValue(0, Std::get<2>(layout.GetShape()));"
        "z.SetValue(1, Std::get<1>(layout.GetStride())); z.SetValue(2, is_layout<decltype(layout)>::value * 2 + "
        "is_layout<decltype(shape)>::value);"
        "const auto parts = MakeLayout(MakeShape(MakeShape(13, 0), MakeShape(14, 0)), MakeStride(MakeStride(14, 182), "
        "MakeStride(1, 154)));"
        "z.SetValue(3, parts(MakeCoord(20, 30))); z.SetValue(4, Crd2Idx(MakeCoord(20, 30), parts)); "
        "z.SetValue(5, Crd2Idx(MakeCoord(0, 12), "
        "MakeShape(MakeShape(13, 13), MakeShape(14, 14)), MakeStride(MakeStride(15, 15), MakeStride(16, 16)))); "
        "z.SetValue(6, layout(Coord<int, int, int>(1, 2, 3)));",
        lambda x, y, z: np.array([30, 100, 2, 590, 590, 192, 801, 0], "i4"),
        np.zeros(8, "i4"),
        types=("int32_t",) * 3,
    ),
    Case(
        "BroadCast rows",
        "uint32_t to[2] = {4, 16}, from[2] = {4, 1}; BroadCast<float, 2, 1>(z, x, to, from);",
        lambda x, y, z: np.repeat(x[:4], 16),
        _floats(8),
        None,
        np.zeros(64, "f4"),
    ),
    Case(
        "BroadCast columns",
        "uint32_t to[2] = {4, 16}, from[2] = {1, 16}; BroadCast<float, 2, 0>(z, x, to, from);",
        lambda x, y, z: np.tile(x, 4),
        _floats(16),
        None,
        np.zeros(64, "f4"),
    ),
]


def _kept(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Four repeats of 64 floats, each with the first 64 bits of its 32-byte row of the pattern."""
    result = z.copy()
    bits = np.unpackbits(y.view(np.uint8), bitorder="little").reshape(4, 256)[:, :64].astype(bool)
    kept = x.reshape(4, 64)[bits]
    result[: kept.size] = kept
    result[200] = kept.size
    return result


# --- sorting ---------------------------------------------------------------------------------------------------------
scores = random.permutation(128).astype(np.float32)


def _sorted(values: np.ndarray, indices: np.ndarray) -> np.ndarray:
    order = np.argsort(-values, kind="stable")
    return np.stack([values[order].view(np.uint32), indices[order]], 1).ravel().view(np.float32)


def _groups(values: np.ndarray) -> np.ndarray:
    indices = np.arange(values.size, dtype=np.uint32)
    return np.concatenate([_sorted(values[i : i + 32], indices[i : i + 32]) for i in range(0, values.size, 32)])


CASES += [
    Case(
        "Sort32",
        "Sort32(z, x, y, 4);",
        lambda x, y, z: _groups(x),
        scores,
        np.arange(128, dtype="u4"),
        np.zeros(256, "f4"),
        ("float", "uint32_t", "float"),
    ),
    Case(
        "MrgSort",
        "MrgSort4Info info; for (auto& l : info.elementLengths) l = 32; info.validBit = 15;"
        "MrgSort(z, MrgSortSrcList<float>(x, x[64], x[128], x[192]), info);"
        "uint16_t a, b, c, d; GetMrgSortResult(a, b, c, d); if (a + b + c + d != 128) Trap();",
        lambda x, y, z: _sorted(scores, np.arange(128, dtype="u4")),
        _groups(scores),
        None,
        np.zeros(256, "f4"),
    ),
    Case(
        "MrgSort of two lists, after one of four",
        "MrgSort4Info info; for (auto& l : info.elementLengths) l = 32; info.validBit = 15;"
        "MrgSort(z, MrgSortSrcList<float>(x, x[64], x[128], x[192]), info);"
        "info.validBit = 3; info.ifExhaustedSuspension = true; info.elementLengths[1] = 16;"
        "MrgSort(t.ReinterpretCast<float>(), MrgSortSrcList<float>(x, x[64], x, x), info);"
        "uint16_t a, b, c, d; GetMrgSortResult(a, b, c, d);"
        "if (c != 0 || d != 0 || (a == 32) == (b == 16)) Trap();",
        lambda x, y, z: _sorted(scores, np.arange(128, dtype="u4")),
        _groups(scores),
        None,
        np.zeros(256, "f4"),
    ),
    Case(
        "Sort",
        "LocalTensor<float> c, w = t.ReinterpretCast<float>(); Concat(c, x, w, 4); Sort<float, true>(z, c, y, w, 4);"
        "if (GetSortLen<float>(128) != 256 || GetSortOffset<half>(3) != 12) Trap();",
        lambda x, y, z: _sorted(scores, np.arange(128, dtype="u4")),
        scores,
        np.arange(128, dtype="u4"),
        np.zeros(256, "f4"),
        ("float", "uint32_t", "float"),
    ),
    Case(
        "Extract",
        "LocalTensor<uint32_t> i = z.ReinterpretCast<uint32_t>()[128]; Extract(z, i, x, 4);",
        lambda x, y, z: np.concatenate([x[::2], x[1::2]]),
        _groups(scores),
    ),
    Case(
        "Sort32 half",
        "Sort32(t.ReinterpretCast<half>(), x, y, 1); Extract(z, t[1024].ReinterpretCast<uint32_t>(), "
        "t.ReinterpretCast<half>(), 1);",
        lambda x, y, z: np.sort(x)[::-1].copy(),
        random.permutation(32).astype("f2"),
        np.arange(32, dtype="u4"),
        types=("half", "uint32_t", "half"),
    ),
]

# --- mathematics -----------------------------------------------------------------------------------------------------
small = _floats(64, -0.95, 0.95)
positive = _floats(64, 1.05, 9)
vector = np.vectorize


def _gelu(x: Any) -> Any:
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def _digamma(x: Any) -> Any:
    """By its recurrence up to where the asymptotic series is exact to 1e-10."""
    x = x.astype(np.float64)
    below = sum(1 / (x + k) for k in range(24))
    x = x + 24
    return np.log(x) - 1 / (2 * x) - 1 / (12 * x**2) + 1 / (120 * x**4) - 1 / (252 * x**6) - below


MATH = {
    "Sin": (np.sin, x256),
    "Cos": (np.cos, x256),
    "Tan": (np.tan, small),
    "Asin": (np.arcsin, small),
    "Acos": (np.arccos, small),
    "Atan": (np.arctan, x256),
    "Sinh": (np.sinh, small),
    "Cosh": (np.cosh, small),
    "Tanh": (np.tanh, x256),
    "Asinh": (np.arcsinh, x256),
    "Acosh": (np.arccosh, positive),
    "Atanh": (np.arctanh, small),
    "Log": (np.log, positive),
    "Log2": (np.log2, positive),
    "Log10": (np.log10, positive),
    "Erf": (vector(math.erf), x256),
    "Erfc": (vector(math.erfc), small),
    "Lgamma": (vector(math.lgamma), positive),
    "Digamma": (_digamma, np.concatenate([x256, positive])),
    "Floor": (np.floor, x256),
    "Ceil": (np.ceil, x256),
    "Round": (np.rint, x256),
    "Trunc": (np.trunc, x256),
    "Frac": (lambda x: x - np.trunc(x), x256),
    "Sign": (np.sign, x256),
    "Sigmoid": (lambda x: 1 / (1 + np.exp(-x)), x256),
    "Silu": (lambda x: x / (1 + np.exp(-x)), x256),
    "Gelu": (_gelu, small),
    "FasterGelu": (lambda x: x / (1 + np.exp(-1.702 * x)), x256),
    "FasterGeluV2": (
        lambda x: x * (np.sign(x) * (0.5 - 0.1444 * (np.clip(np.abs(0.7071 * x), None, 1.769) - 1.769) ** 2) + 0.5),
        x256,
    ),
}
for name, (function, values) in MATH.items():
    for form in ("z, x, n", "z, x, t, n"):
        CASES.append(
            Case(
                f"{name}({form})",
                f"{name}({form});",
                lambda x, y, z, f=function: f(x.astype(np.float64)).astype("f4"),
                values,
                rtol=2e-5,
                atol=1e-6,
            )
        )
# The numbers that the function's document shows, in half.
shown = np.resize(np.array([-1.251, 1.074, -6.137, 0.0841, 5.633, -0.0], "f2"), 64)
results = np.resize(np.array([-0.1411, 0.916, 0, 0.0486, 5.633, 0], "f2"), 64)
for modes in ("half", "half, true", "half, false, true", "half, true, true"):
    CASES.append(
        Case(
            f"FasterGeluV2<{modes}>",
            f"FasterGeluV2<{modes}>(z, x, n);",
            lambda x, y, z: results,
            shown,
            types=H,
            rtol=2e-3,
            atol=1e-3,
        )
    )
    CASES.append(
        Case(
            f"Gelu<{modes}>",
            f"Gelu<{modes}>(z, x, n);",
            lambda x, y, z: _gelu(x.astype("f4")).astype("f2"),
            h256,
            types=H,
            rtol=2e-3,
            atol=1e-3,
        )
    )
CASES += [
    Case("Sin whole", "x.SetSize(n); Sin(z, x);", lambda x, y, z: np.sin(x), x256, rtol=1e-5, atol=1e-6),
    Case("Sin half", "Sin(z, x, n);", lambda x, y, z: np.sin(x.astype("f4")).astype("f2"), h256, types=H, rtol=1e-3),
    Case("Power", "Power(z, x, y, n);", lambda x, y, z: x**y, positive, _floats(64, -2, 2), rtol=1e-5),
    Case("Power scalar", "Power(z, x, 2.5f, n);", lambda x, y, z: x ** np.float32(2.5), positive, rtol=1e-5),
    *[
        Case(
            "Power scalar, space",
            f"Power<float, false>(z, x, 2.5f, {rest});",
            lambda x, y, z: x ** np.float32(2.5),
            positive,
            rtol=1e-5,
        )
        for rest in ("y.ReinterpretCast<uint8_t>()", "y.ReinterpretCast<uint8_t>(), n")
    ],
    Case("Power scalar, whole", "Power(z, x, 2.5f);", lambda x, y, z: x ** np.float32(2.5), positive, rtol=1e-5),
    *[
        Case(
            "Power base, space",
            f"const float base = 2.0f; Power<float, false>(z, base, x, {rest});",
            lambda x, y, z: np.float32(2) ** x,
            small,
            rtol=1e-5,
        )
        for rest in ("y.ReinterpretCast<uint8_t>()", "y.ReinterpretCast<uint8_t>(), n")
    ],
    Case("Power base, whole", "Power(z, 2.0f, x);", lambda x, y, z: np.float32(2) ** x, small, rtol=1e-5),
    Case("Power base", "Power(z, 2.0f, x, n);", lambda x, y, z: np.float32(2) ** x, small, rtol=1e-5),
    Case(
        "Power int",
        "Power(z, x, y, n);",
        lambda x, y, z: x**y,
        np.arange(-8, 8, dtype="i4"),
        np.full(16, 3, "i4"),
        types=("int32_t",) * 3,
    ),
    Case("Fmod", "Fmod(z, x, y, n);", lambda x, y, z: np.fmod(x, y), x256, np.full(256, 3, "f4")),
    Case("Xor", "Xor(z, x, y, n);", lambda x, y, z: x ^ y, square, square[::-1].copy(), types=("int16_t",) * 3),
    Case("Swish", "Swish(z, x, n, 2.0f);", lambda x, y, z: x / (1 + np.exp(-2 * x)), x256, rtol=1e-5),
    Case("SwiGLU", "SwiGLU(z, x, y, 1.0f, n);", lambda x, y, z: x * y / (1 + np.exp(-y)), x256, y256, rtol=1e-5),
    Case(
        "GeGLU",
        "GeGLU(z, x, y, n);",
        lambda x, y, z: x * MATH["Gelu"][0](y),
        small,
        small[::-1].copy(),
        rtol=1e-5,
        atol=1e-6,
    ),
    Case("ReGlu", "ReGlu(z, x, y, n);", lambda x, y, z: x * np.maximum(y, 0), x256, y256),
    Case("ClampMax(z, x, s, n)", "ClampMax(z, x, 1.0f, n);", lambda x, y, z: np.minimum(x, 1), x256),
    Case("ClampMin(z, x, s, n)", "ClampMin(z, x, 1.0f, n);", lambda x, y, z: np.maximum(x, 1), x256),
    # The numbers that the function's document shows, and its poles.
    Case(
        "Digamma as shown",
        "Digamma<float, false>(z, x, t, n);",
        lambda x, y, z: np.array(
            [1.5843406, -3.978809, -6.2081366, 0.8983184, 2.1407988, np.nan, np.nan, np.nan], "f4"
        ),
        np.array([5.3675685, 0.26528683, -2.872628, 2.9387941, 9.001339, 0, -1, -7], "f4"),
        rtol=1e-5,
    ),
    Case(
        "Digamma of half",
        "Digamma(z, x, n);",
        lambda x, y, z: _digamma(x).astype("f2"),
        positive.astype("f2"),
        types=H,
        rtol=1e-3,
        atol=1e-3,
    ),
    *(
        Case(
            f"ReduceXorSum {form}",
            f"ReduceXorSum<int16_t>(z, x, y, {form});",
            lambda x, y, z, d=dtype, s=step: np.concatenate(
                [np.clip((x ^ y)[: len(x) // s].astype("i8").sum(keepdims=True), -32768, 32767), z[1:]]
            ).astype("i2"),
            *pair,
            np.full(16, 7, "i2"),
            ("int16_t",) * 3,
        )
        for form, step in (("n", 1), ("t, n / 2", 2))
        for dtype in ("i2",)
        for pair in (
            (np.arange(-50, 78, dtype="i2"), np.full(128, 3, "i2")),
            (np.full(64, 2000, "i2"), np.zeros(64, "i2")),
            (np.full(64, 2000, "i2"), np.full(64, -1, "i2")),
        )
    ),
    Case("ClampMax", "ClampMax(z, x, t, 1.0f, n);", lambda x, y, z: np.minimum(x, 1), x256),
    Case("ClampMin", "ClampMin(z, x, t, 1.0f, n);", lambda x, y, z: np.maximum(x, 1), x256),
    Case(
        "SoftMax",
        "SoftMax<float>(z, x, t, 0, {4, 64, 4, 60});",
        lambda x, y, z: _softmax(x, z, 60),
        x256,
        rtol=1e-5,
        atol=1e-7,
    ),
    Case(
        "LogSoftMax",
        "LocalTensor<float> s = t.ReinterpretCast<float>(), m = s[64]; LogSoftMaxTiling tiling;"
        "LogSoftMax(z, s, m, x, t, tiling, {4, 64, 4, 64}); z.SetValue(0, s.GetValue(8)); "
        "z.SetValue(1, m.GetValue(8));",
        lambda x, y, z: _log_softmax(x),
        x256,
        rtol=1e-5,
        atol=1e-6,
    ),
    Case(
        "SoftMax sums",
        "LocalTensor<float> s = t.ReinterpretCast<float>(), m = s[64]; "
        "SoftMax<float>(z, s, m, x, t, 0, {4, 64, 4, 64});"
        "for (int i = 0; i < 4; ++i) Muls(z[i * 64], z[i * 64], s.GetValue(i * 8), 64);"
        "for (int i = 0; i < 4; ++i) { Ln(z[i * 64], z[i * 64], 64); "
        "Adds(z[i * 64], z[i * 64], m.GetValue(i * 8), 64); }",
        lambda x, y, z: x,
        x256,
        rtol=1e-5,
        atol=1e-5,
    ),
    Case(
        "SoftMax of half, sums of float",
        "LocalTensor<float> s = t.ReinterpretCast<float>(), m = s[64]; static constexpr SoftmaxConfig c = "
        "{true, 0, 0, SoftmaxMode::SOFTMAX_OUTPUT_WITHOUT_BRC}; "
        "SoftMax<half, false, false, false, c>(z, s, m, x, 0, {4, 64, 4, 60});"
        "for (int i = 0; i < 4; ++i) { z.SetValue(i * 64 + 62, (half)s.GetValue(i)); "
        "z.SetValue(i * 64 + 63, (half)m.GetValue(i)); }",
        _softmax_facts,
        h256,
        types=("half", "half", "half"),
        rtol=2e-3,
        atol=1e-6,
    ),
    # The second of two parts, with the maximum and the sum of the first; in place, one fact a row, then a block of
    # them.
    Case(
        "SoftmaxFlashV2 packed",
        FLASH.format(mode="SOFTMAX_OUTPUT_WITHOUT_BRC", width=1),
        _flash,
        x256,
        y256,
        rtol=1e-5,
        atol=1e-6,
    ),
    Case(
        "SoftmaxFlashV2 blocks", FLASH.format(mode="SOFTMAX_NORMAL", width=8), _flash, x256, y256, rtol=1e-5, atol=1e-6
    ),
    Case(
        "SoftmaxFlashV3",
        "const auto mean = y, sum = y[64], max = y[128]; const auto factor = z[8 * 576 + 3 * 128];"
        "SoftmaxFlashV3<half, float, true>(z, mean, sum, max, x, factor, mean, sum, max, t, 0, SoftMaxParams(8, 576, "
        "8, 576, 3, 8, 0.9375f));"
        "for (int i = 0; i < 3 * 128; ++i) z.SetValue(8 * 576 + i, (half)y.GetValue(i / 16 * 8 + i % 8));",
        _flash_of_means,
        _floats(8 * 576, -4, 4, np.float16),
        np.repeat(_floats(24, 0.5, 2), 8),
        np.zeros(8 * 576 + 4 * 128, "f2"),
        types=("half", "float", "half"),
        rtol=4e-3,
        atol=1e-6,
    ),
    Case(
        "SoftmaxFlashV3 first",
        "const auto s = y[64], m = y[128]; SoftmaxFlashV3<half, float>(z, y, s, m, x, z, y, s, m, 0, SoftMaxParams(8, "
        "512, 8, 512, 1, 8, 0.9375f));"
        "for (int i = 0; i < 8; ++i) { Ln(z[i * 512], z[i * 512], 512); "
        "Adds(z[i * 512], z[i * 512], (half)m.GetValue(i * 8), 512); }",
        lambda x, y, z: (
            (
                x.reshape(8, 8, 64)
                + 15
                * (
                    x.reshape(8, 8, 64).mean(2, keepdims=True, dtype="f4")
                    - x.reshape(8, 512).mean(1, dtype="f4")[:, None, None]
                )
            )
            .ravel()
            .astype("f2")
        ),
        _floats(8 * 512, -1, 1, np.float16),
        np.zeros(192, "f4"),
        np.zeros(8 * 512, "f2"),
        types=("half", "float", "half"),
        rtol=2e-2,
        atol=2e-2,
    ),
    Case(
        "scalar helpers",
        "z.SetValue(0, ScalarGetCountOfValue<1>(7)); z.SetValue(1, ScalarCountLeadingZero(1));"
        "z.SetValue(2, ScalarGetSFFValue<1>(8)); z.SetValue(3, CountBitsCntSameAsSignBit(-1)); "
        "z.SetValue(4, GetBitCount<0>(~1ull));"
        "z.SetValue(5, GetSFFValue<0>(7)); z.SetValue(6, CountLeadingZero(0)); SetCtrlSpr<3, 5>(6); "
        "z.SetValue(7, GetCtrlSpr<3, 5>());"
        "ResetCtrlSpr<3, 5>(); z.SetValue(8, GetCtrlSpr<0, 63>()); "
        "z.SetValue(9, DivCeil(7, 2) * 100 + AlignUp(7, 4) + unlikely(likely(false))); "
        "z.SetValue(10, GetScalarBitcodeValue(half(1)) + GetScalarBitcodeValue<float, int32_t>(-2.0f)); ",
        lambda x, y, z: np.array([3, 63, 3, 63, 1, 3, 64, 6, 0, 408, (0x3C00 + 0xC0000000) % 2**64 - 2**32], "i8"),
        np.zeros(11, "i8"),
        types=("int64_t",) * 3,
    ),
]


@pytest.fixture(scope="module")
def library(build: Build) -> ctypes.CDLL:
    return build(cases_.source(CASES))


@pytest.mark.parametrize("index", range(len(CASES)), ids=[case.id for case in CASES])
def test_case(library: ctypes.CDLL, tools: Toolkit, index: int) -> None:
    cases_.check(library, index, CASES[index], tools.message)
