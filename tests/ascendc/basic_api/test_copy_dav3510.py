# ruff: noqa: E501, PLR0917, RUF100 - kernels are quoted as they are written
"""Copies and functions over tensors as dav-3510 alone has them, against NumPy: dimensions, loops, rows, broadcasts,
tails."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable

import numpy as np
import pytest

from .. import cases
from ..cases import CTYPES, Case
from ..conftest import Build, Toolkit, launch

ARCHITECTURE = "--npu-arch=dav-3510"
random = np.random.default_rng(11)

#: What copies read from global memory: the kernel writes x there first.
GLOBAL = "GlobalTensor<float> g; g.SetGlobalBuffer((__gm__ float*)scratch, 1024); DataCopy(g, x, 1024);"


@pytest.fixture(autouse=True)
def _stands_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASCEND_GRAPH_HOST_SOC", "Ascend950PR_9589")


def _case(
    name: str, code: str, expected: Callable[..., np.ndarray], count: int, types: str = "float", rtol: float = 0.0
) -> Case:
    x, y = (random.integers(1, 100, 1024).astype(CTYPES[types]) for _ in "xy")
    y[::5] = x[::5]
    return Case(name, code, expected, x, y, z=np.full(count, 9, CTYPES[types]), types=(types,) * 3, rtol=rtol)


def _by_sign(x: np.ndarray) -> np.ndarray:
    """Floats in the order of radix algorithms: -0 below 0, a NaN beyond the infinity of its sign."""
    bits = x.view(np.int32)
    return x[np.argsort(np.where(bits < 0, ~bits ^ np.int32(-(2**31)), bits), kind="stable")]


def _selected(x: np.ndarray, largest: bool, ordered: bool) -> np.ndarray:
    """Indices of TopK of the first 30 elements of 2 rows of 64, 5 of each, in rows of 8; 9 in between."""
    result = np.full((2, 8), 9, np.int32)
    for row, indices in zip(x[:128].reshape(2, 64)[:, :30], result, strict=True):
        order = np.argsort(-row.astype(np.int64) if largest else row, kind="stable")[:5]
        beyond = [i for i in order if row[i] != row[order[4]]]
        indices[:5] = order if ordered else [*sorted(beyond), *order[len(beyond) :]]
    return result.ravel()


def _padded(x: np.ndarray) -> np.ndarray:
    """3 rows of 5 from rows of 32, with 2 on the left, 1 on the right, 1 above, into rows of 8."""
    return np.pad(x.reshape(32, 32)[:3, :5], ((1, 0), (2, 1)), constant_values=-1).ravel()


def _loops(x: np.ndarray, z: np.ndarray, compact: bool) -> np.ndarray:
    """2 x 2 copies of 2 rows of 5 floats: 7 apart in a copy, copies 100 and 300 floats apart, 32 and 128 in the
    result."""
    result = z.copy()
    for outer in range(2):
        for inner in range(2):
            for row in range(2):
                begin = outer * 300 + inner * 100 + row * 7
                to = outer * 128 + inner * 32 + row * (5 if compact else 8)
                result[to : to + 5] = x[begin : begin + 5]
                if not compact or row == 1:
                    result[to + 5 : outer * 128 + inner * 32 + (16 if compact else row * 8 + 8)] = 4
    return result


def _spread(x: np.ndarray, z: np.ndarray, lanes: np.ndarray) -> np.ndarray:
    """Lanes of two repeats, 80 floats apart in x, to falling places 16 floats behind the first."""
    result = z.copy()
    for repeat in range(2):
        result[16 + 159 - (repeat * 64 + lanes)] = x[repeat * 80 + lanes]
    return result


def _truths(hits: np.ndarray, z: np.ndarray, to: str) -> np.ndarray:
    """z that begins with 1 or 0, as numbers or bytes."""
    result = z.copy()
    (result if to == "number" else result.view(np.uint8))[: len(hits)] = hits
    return result


def _with(x: np.ndarray, index: int, value: float) -> np.ndarray:
    x = x.copy()
    x[index] = value
    return x


def _sorted(x: np.ndarray, descend: bool) -> tuple[np.ndarray, np.ndarray]:
    """In order, equal ones as they were, and where each was."""
    order = np.argsort(-x.astype(np.float64) if descend else x, kind="stable")
    return x[order], order


MODES = {"LT": "less", "GE": "greater_equal", "EQ": "equal", "NE": "not_equal"}


def _bits(results: np.ndarray, z: np.ndarray) -> np.ndarray:
    """z with a bit for each result in its first bytes; a register's bits beyond them are 0."""
    at_once = 64 if z.itemsize == 8 else 256 // z.itemsize
    bits = np.pad(results, (0, -len(results) % at_once))
    raw = z.copy().view(np.uint8)
    packed = np.packbits(bits, bitorder="little")
    raw[: len(packed)] = packed
    return raw.view(z.dtype)


def _complex(compute: Callable[..., np.ndarray], *parts: np.ndarray) -> np.ndarray:
    """Of complex numbers whose real and imaginary parts lie side by side."""
    result = compute(*(one.astype(np.float64).view(np.complex128) for one in parts))
    return result.view(np.float64).astype(parts[0].dtype)


SET = "LoopModeParams loops{{2, 2, {}}}; SetLoopModePara(loops, DataCopyMVType::{});"
IN = SET.format("400, 128, 1200, 512", "OUT_TO_UB")
OUT = SET.format("128, 400, 512, 1200", "UB_TO_OUT")
ROWS = "DataCopyExtParams rows{2, 20, 8, 0, 0}; DataCopyPadExtParams<float> pad{true, 0, %s, 4.0f};"
CASES = [
    *(
        _case(f"Copy {kind}", "Copy(z, x, 1000);", lambda x, y, z: np.concatenate((x[:1000], z[1000:])), 1024, kind)
        for kind in ("float", "half", "int32_t", "int16_t")
    ),
    _case(
        "DataCopy-padded",
        f"{GLOBAL} NdDmaParams<float, 2> p{{{{{{1, 32}}, {{1, 8}}, {{5, 3}}, {{2, 1}}, {{1, 0}}}}, -1.0f}}; "
        f"NdDmaDci(); DataCopy<float, 2>(z, g, p);",
        lambda x, y, z: _padded(x),
        32,
    ),
    _case(
        "DataCopy-nearest",
        f"{GLOBAL} static constexpr NdDmaConfig config = {{true, 3, 1}}; "
        f"NdDmaParams<float, 1> p{{{{{{2}}, {{1}}, {{4}}}}, 0}}; DataCopy<float, 1, config>(z, g, p);",
        lambda x, y, z: x[[0, 0, 0, 0, 2, 4, 6, 6]],
        8,
    ),
    _case(
        "DataCopy-transposed",
        f"{GLOBAL} MultiCopyParams<float, 2> p{{{{{{1, 16}}, {{8, 1}}, {{16, 8}}}}, 0}}; "
        f"DataCopy<float, 2, kDefaultMultiCopyConfig>(z, g, p);",
        lambda x, y, z: x[:128].reshape(8, 16).T.ravel(),
        128,
    ),
    _case(
        "DataCopy-broadcast",
        f"{GLOBAL} NdDmaParams<float, 3> p{{{{{{0, 1, 100}}, {{1, 4, 32}}, {{4, 8, 2}}}}, 0}}; "
        f"DataCopy<float, 3>(z, g, p);",
        lambda x, y, z: np.repeat(np.concatenate((x[:8], x[100:108])), 4),
        64,
    ),
    _case(
        "DataCopy-anywhere",
        f"{GLOBAL} Duplicate(z, 9.0f, 16); NdDmaParams<float, 1> p{{{{{{2}}, {{1}}, {{4}}}}, 0}}; "
        f"DataCopy<float, 1>(z[3], g, p);",
        lambda x, y, z: np.r_[z[:3], x[:8:2], z[7:]],
        16,
    ),
    _case(
        "DataCopyPad-loops",
        f"{GLOBAL} {IN} {ROWS % 3} DataCopyPad(z, g, rows, pad); ResetLoopModePara(DataCopyMVType::OUT_TO_UB);",
        lambda x, y, z: _loops(x, z, False),
        192,
    ),
    _case(
        "DataCopyPad-compact",
        f"{GLOBAL} {IN} {ROWS % 0} DataCopyPad<float, PaddingMode::Compact>(z, g, rows, pad); "
        f"ResetLoopModePara(DataCopyMVType::OUT_TO_UB);",
        lambda x, y, z: _loops(x, z, True),
        192,
    ),
    _case(
        "DataCopyPad-out",
        f"{GLOBAL} {OUT} DataCopyExtParams rows{{2, 20, 0, 8, 0}}; "
        f"DataCopyPad<float, PaddingMode::Compact>(g, x, rows); ResetLoopModePara(DataCopyMVType::UB_TO_OUT);"
        "DataCopy(z, g, 512);",
        lambda x, y, z: _scattered(x),
        512,
    ),
    *[
        _case(
            f"{name}-complex{bits}",
            f"{name}(z.ReinterpretCast<complex{bits}>(), x.ReinterpretCast<complex{bits}>(), "
            f"y.ReinterpretCast<complex{bits}>(), 30);",
            lambda x, y, z, compute=compute: _complex(compute, x[:60], y[:60]),
            60,
            ctype,
            rtol=rtol,
        )
        for name, compute in (("Add", np.add), ("Sub", np.subtract), ("Mul", np.multiply), ("Div", np.divide))
        for bits, ctype, rtol in ((64, "float", 1e-6), (32, "half", 1e-3))
    ],
    *[
        _case(
            f"Reduce{name}-{pattern}",
            f"const uint32_t shape[] = {{7, 5}}; Reduce{name}<{ctype}, Pattern::Reduce::{pattern}, true>(z, x, shape, "
            f"{pad});",
            lambda x, y, z, name=name, axis=axis: np.r_[
                getattr(np, name.lower())(x[:35].reshape(7, 5), axis).astype(x.dtype), z[5 + 2 * axis :]
            ],
            8,
            ctype,
        )
        for name, ctype, pad in (
            ("Sum", "float", "false"),
            ("Sum", "int64_t", "true"),
            ("Max", "int8_t", "false"),
            ("Min", "uint32_t", "true"),
        )
        for pattern, axis in (("AR", 1), ("RA", 0))
    ],
    *[
        _case(
            "Compare-tail",
            f"auto bits = z.ReinterpretCast<uint8_t>(); Compare(bits, x, y, CMPMODE::{mode}, {count});",
            lambda x, y, z, mode=mode, count=count: _bits(getattr(np, MODES[mode])(x[:count], y[:count]), z),
            32,
            ctype,
        )
        for mode, count, ctype in (
            ("LT", 75, "float"),
            ("GE", 130, "half"),
            ("EQ", 3, "int32_t"),
            ("NE", 100, "int64_t"),
        )
    ],
    _case(
        "CompareScalar-tail",
        "auto bits = z.ReinterpretCast<uint8_t>(); CompareScalar(bits, x, 40.0f, CMPMODE::GT, 70);",
        lambda x, y, z: _bits(x[:70] > 40, z),
        32,
    ),
    *[
        _case(
            "Broadcast",
            f"uint32_t to[3] = {{3, 4, 10}}, from[3] = {{3, 1, 10}}; BroadcastTiling tiling; "
            f"GetBroadcastTilingInfo<{ctype}, 3>(3, to, from, false, tiling); "
            f"Broadcast<{ctype}, 3>(z, x, to, from, &tiling);",
            lambda x, y, z: np.broadcast_to(x[:30].reshape(3, 1, 10), (3, 4, 10)).ravel(),
            120,
            ctype,
        )
        for ctype in ("float", "int8_t", "int64_t")
    ],
    *[
        _case(
            f"{name}-to-{to}",
            f"const float odd[] = {{0.0f / (x.GetValue(0) - x.GetValue(0)), 1.0f / (x.GetValue(0) - x.GetValue(0)), "
            f"-1.0f / (x.GetValue(0) - x.GetValue(0)), 0.0f, 3.0f}}; for (int i = 0; i < 70; "
            f"++i) x.SetValue(i, odd[i % 5]); {name}({result}, x, {space}70);",
            lambda x, y, z, hits=hits, to=to: _truths(np.resize(hits, 70), z, to),
            96,
        )
        for name, hits, spaces in (
            ("IsFinite", [0, 0, 0, 1, 1], ("",)),
            ("IsNan", [1, 0, 0, 0, 0], ("", "t, ")),
            ("IsInf", [0, 1, 1, 0, 0], ("", "t, ")),
        )
        for space in spaces
        for to, result in (("number", "z"), ("bool", "z.ReinterpretCast<bool>()"))
    ],
    *[
        _case(
            name,
            f"Adds(x, x, ({ctype})-50, 256); Adds(y, y, ({ctype})-50, 256); x.SetValue(3, 0); "
            f"{name}(z.ReinterpretCast<bool>(), {sources}, 75);",
            lambda x, y, z, f=f: _truths(f(_with(x - 50, 3, 0)[:75] != 0, (y - 50)[:75] != 0), z, "bool"),
            96,
            ctype,
        )
        for name, f, sources in (
            ("LogicalAnd", np.logical_and, "x, y"),
            ("LogicalOr", np.logical_or, "x, y"),
            ("LogicalXor", np.logical_xor, "x, y"),
            ("LogicalNot", lambda a, b: ~a, "x"),
        )
        for ctype in ("float", "int32_t")
    ],
    *[
        _case(
            f"{name}-of-{value}",
            f"Adds(x, x, ({ctype})-50, 256); x.SetValue(3, 0); y.SetValue(0, ({ctype}){value}); "
            f"static constexpr {name}Config first = {{false, 0}}; (void)first; "
            f"{name}{config}(z.ReinterpretCast<bool>(), {sources}, 75);",
            lambda x, y, z, f=f, value=value: _truths(f(_with(x - 50, 3, 0)[:75] != 0, value != 0), z, "bool"),
            96,
            ctype,
        )
        for name, f in (("LogicalAnds", np.logical_and), ("LogicalOrs", np.logical_or))
        for value in (0, 2)
        for ctype in ("float", "int32_t")
        for config, sources in (
            ("", f"x, ({ctype}){value}"),
            ("", f"({ctype}){value}, x"),
            ("", "x, y"),
            ("<first>", "y, x"),
        )
    ],
    *[
        _case(name, f"{name}(z, {sources}, 75);", lambda x, y, z, f=f: np.r_[f(x[:75], y[:75]), z[75:]], 96, ctype)
        for name, f, sources in (
            ("BitwiseAnd", np.bitwise_and, "x, y"),
            ("BitwiseOr", np.bitwise_or, "x, y"),
            ("BitwiseXor", np.bitwise_xor, "x, y"),
            ("BitwiseNot", lambda a, b: ~a, "x"),
        )
        for ctype in ("int8_t", "uint16_t", "int64_t")
    ],
    *[
        _case(
            "Fma",
            f"Muls(x, x, ({ctype})0.37, 128); Fma(z, x, y, x[512], {space}75);",
            lambda x, y, z: np.r_[
                ((x[:75] * x.dtype.type(0.37)).astype(np.float64) * y[:75] + x[512:587]).astype(x.dtype), z[75:]
            ],
            96,
            ctype,
            rtol=rtol,
        )
        for ctype, rtol in (("float", 1e-7), ("half", 5e-4))
        for space in ("", "t, ")
    ],
    *[
        _case(
            "Clamp",
            f"Clamp(z, x, {low}, {high}, 75);",
            lambda x, y, z, f=f: np.r_[f(x[:75], y), z[75:]].astype(x.dtype),
            96,
            ctype,
        )
        for ctype in ("float", "int16_t")
        for low, high, f in (
            (f"({ctype})20", f"({ctype})60", lambda x, y: np.clip(x, 20, 60)),
            ("y", f"({ctype})60", lambda x, y: np.minimum(np.maximum(x, y[:75]), 60)),
            (f"({ctype})20", "y", lambda x, y: np.minimum(np.maximum(x, 20), y[:75])),
            ("y", "y[512]", lambda x, y: np.minimum(np.maximum(x, y[:75]), y[512:587])),
            (f"({ctype})70", f"({ctype})60", lambda x, y: np.full_like(x, 60)),
        )
    ],
    _case(
        "Scatter",
        "auto to = y.ReinterpretCast<uint32_t>(); for (int i = 0; i < 100; ++i) to.SetValue(i, 4 * (99 - i)); "
        "Scatter(z, x, to, 64, 100);",
        lambda x, y, z: np.r_[z[:16], x[:100][::-1]],
        116,
    ),
    *[
        _case(
            "Scatter-mask",
            f"auto to = y.ReinterpretCast<uint32_t>(); for (int i = 0; i < 160; ++i) to.SetValue(i, 4 * (159 - i)); "
            f"{code} Scatter(z, x, to, 64, mask, 2, 10);",
            lambda x, y, z, lanes=lanes: _spread(x, z, lanes),
            192,
        )
        for code, lanes in (
            ("const uint64_t mask = 40;", np.arange(40)),
            ("const uint64_t mask[2] = {0x8000000000000005ull, 0};", np.array([0, 2, 63])),
        )
    ],
    *[
        _case(
            "Sort-config",
            f"static constexpr SortConfig config = {{SortType::{algorithm}, {str(descend).lower()}}}; "
            f"auto r = y.ReinterpretCast<{ctype}>()[512]; Sort<{ctype}, false, config>(r, x, {space}{count}); "
            f"DataCopy(z, r, {count});",
            lambda x, y, z, count=count, descend=descend: _sorted(x[:count], descend)[0],
            count,
            ctype,
        )
        for algorithm, descend, ctype, count, space in (
            ("RADIX_SORT", False, "float", 200, ""),
            ("RADIX_SORT", True, "int16_t", 48, "y.ReinterpretCast<uint8_t>(), "),
            ("MERGE_SORT", True, "float", 64, ""),
            ("RADIX_SORT", False, "uint8_t", 64, ""),
        )
    ],
    *[
        _case(
            "Sort-indices",
            f"static constexpr SortConfig config = {{SortType::RADIX_SORT, {str(descend).lower()}}}; auto r = y[512]; "
            f"auto i = z.ReinterpretCast<uint32_t>(); Sort<int32_t, false, config>(r, i, x, {space}96);",
            lambda x, y, z, descend=descend: _sorted(x[:96], descend)[1].astype(np.int32),
            96,
            "int32_t",
        )
        for descend in (False, True)
        for space in ("", "y.ReinterpretCast<uint8_t>(), ")
    ],
    *[
        _case(
            "Sort-given",
            f"auto r = y[512]; Sort(r, z, x, y, {space}96);",
            lambda x, y, z: y[:96][_sorted(x[:96], False)[1]],
            96,
            "int32_t",
        )
        for space in ("", "z.ReinterpretCast<uint8_t>(), ")
    ],
    *[
        _case(
            "TopK-radix",
            "static constexpr TopKConfig config = {TopKAlgo::RADIX_SELECT, "
            f"TopKOrder::{order}, {str(ordered).lower()}}}; TopKInfo info; info.outter = 2; info.inner = 64; "
            "info.n = 30; LocalTensor<bool> none; const int tiling = 0; "
            f"TopK<{ctype}, false, false, false, TopKMode::TOPK_NORMAL, config>(y.ReinterpretCast<{ctype}>()[256], "
            f"z, x.ReinterpretCast<{ctype}>(), LocalTensor<int32_t>(), none, 5, tiling, info, {str(given).lower()});",
            lambda x, y, z, largest=largest, ordered=ordered, ctype=ctype: _selected(
                x.view(CTYPES[ctype]), largest, ordered
            ),
            16,
            "int32_t",
        )
        for ctype, order, given, largest, ordered in (
            ("int32_t", "UNSET", True, True, True),
            ("uint16_t", "UNSET", False, False, True),
            ("int8_t", "SMALLEST", True, False, False),
            ("int16_t", "LARGEST", False, True, False),
        )
    ],
    Case(
        "Sort-signs",
        "Sort(z, x, 64);",
        lambda x, y, z: _by_sign(x),
        np.resize(np.array([0.0, -0.0, np.nan, -np.inf, np.inf, -np.nan, 1, -1], "f4"), 64),
        z=np.zeros(64, "f4"),
    ),
    _case(
        "Broadcast-last",
        "uint32_t to[2] = {5, 7}, from[2] = {5, 1}; BroadcastTiling tiling; "
        "GetBroadcastTilingInfo<float>(2, to, from, false, tiling); Broadcast(z, x, to, from, &tiling);",
        lambda x, y, z: np.repeat(x[:5], 7),
        35,
    ),
    *[
        _case(
            name,
            f"static constexpr {name}Config config = {{{name}Algo::{algorithm}}}; "
            f"{name}<float, {false}config>(z, {arguments}, 64);",
            expected,
            64,
        )
        for name, algorithm, false, arguments, expected in (
            ("Sqrt", "PRECISION_0ULP_FTZ_FALSE", "", "x", lambda x, y, z: np.sqrt(x[:64])),
            ("Div", "DIFF_COMPENSATION", "", "x, y", lambda x, y, z: x[:64] / y[:64]),
            ("Fmod", "ITERATION_COMPENSATION", "false, ", "x, y", lambda x, y, z: np.fmod(x[:64], y[:64])),
        )
    ],
    *[
        _case(
            name,
            f"static constexpr {name}Config config = {{{name}Algo::{algorithm}}}; Muls(x, x, 0.01f, 64); "
            f"{name}<float, false, config>(z, x, 64);",
            lambda x, y, z, f=f: f(x[:64] * np.float32(0.01)).astype(np.float32),
            64,
            rtol=1e-6,
        )
        for name, algorithm, f in (
            ("Sin", "RADIAN_REDUCTION", np.sin),
            ("Cos", "RADIAN_REDUCTION", np.cos),
            ("Atan", "POLYNOMIAL_APPROXIMATION", np.arctan),
        )
    ],
]


def _scattered(x: np.ndarray) -> np.ndarray:
    result = x[:512].copy()
    for outer in range(2):
        for inner in range(2):
            for row in range(2):
                to, begin = outer * 300 + inner * 100 + row * 7, outer * 128 + inner * 32 + row * 5
                result[to : to + 5] = x[begin : begin + 5]
    return result


#: The code, and what the error says.
BROKEN = {
    "Broadcast": (
        (
            "uint32_t to[2] = {5, 7}, from[2] = {5, 2}; BroadcastTiling tiling; "
            "GetBroadcastTilingInfo<float>(2, to, from, false, tiling);"
        ),
        r"GetBroadcastTilingInfo: dimension 1 from 2 to 7; only 1 may grow",
    ),
    "other shapes": (
        (
            "uint32_t to[1] = {7}, from[1] = {1}, more[1] = {9}; BroadcastTiling tiling; "
            "GetBroadcastTilingInfo<float>(1, to, from, false, tiling); Broadcast(z, x, more, from, &tiling);"
        ),
        r"Broadcast: the tiling is of other shapes",
    ),
    "overlap": (
        (
            "uint32_t to[1] = {8}, from[1] = {1}; BroadcastTiling tiling; "
            "GetBroadcastTilingInfo<float>(1, to, from, false, tiling); Broadcast(x, x, to, from, &tiling);"
        ),
        r"Broadcast: dst is src, which the API does not support",
    ),
    "limits in place": ("Clamp(x, x, 1.0f, 2.0f, 64);", r"Clamp: dst is a source, which the API does not support"),
    "truths in place": ("LogicalNot(x.ReinterpretCast<bool>()[32], x, 64);", r"LogicalNot: dst overlaps a source"),
    "truths of all in place": (
        "LogicalAnds(x.ReinterpretCast<bool>()[32], x, 1.0f, 64);",
        r"LogicalAnds: dst overlaps a source",
    ),
    "sorted in place": ("Sort(x, x, 64);", r"Sort: dstTensor is srcTensor, which the API does not support"),
    "selected rows": (
        "static constexpr TopKConfig config = {TopKAlgo::RADIX_SELECT}; TopKInfo info; info.inner = 64; info.n = 65; "
        "LocalTensor<bool> none; const int tiling = 0; TopK<float, false, false, false, TopKMode::TOPK_NORMAL, config>"
        "(z, z.ReinterpretCast<int32_t>(), x, LocalTensor<int32_t>(), none, 5, tiling, info);",
        r"TopK: outter 1, inner 64, n 65, k 5; n is 1 to inner",
    ),
    "merged lists": (
        "static constexpr SortConfig config = {SortType::MERGE_SORT, true}; Sort<float, false, config>(z, x, 40);",
        r"Sort: 40 elements; MERGE_SORT takes multiples of 32",
    ),
    "stride": (
        "SetLoopModePara({2, 2, 4, 40, 4, 64}, DataCopyMVType::OUT_TO_UB);",
        r"SetLoopModePara: loop1DstStride 40; valid: multiples of 32 below 2\^21 in the unified buffer",
    ),
    "plain copy": (
        f"{GLOBAL} {IN} DataCopy(z, g, 8);",
        r"DataCopy within the loops of SetLoopModePara is not supported on the host",
    ),
    "size": (
        f"{GLOBAL} NdDmaParams<float, 1> p{{{{{{1}}, {{1}}, {{1u << 20}}}}, 0}}; DataCopy<float, 1>(z, g, p);",
        r"DataCopy: dimension 0 has size 1048576",
    ),
    "beyond": (
        f"{GLOBAL} NdDmaParams<float, 1> p{{{{{{1}}, {{1}}, {{1025}}}}, 0}}; DataCopy<float, 1>(z, g, p);",
        r"DataCopy: .*src",
    ),
}


@pytest.fixture(scope="module")
def library(build: Build) -> ctypes.CDLL:
    broken = [Case(name, code, lambda x, y, z: z, np.zeros(1024, np.float32)) for name, (code, _) in BROKEN.items()]
    text = cases.source([*CASES, *broken]).replace(
        "using namespace AscendC;", "using namespace AscendC;\n__gm__ float scratch[1024];", 1
    )
    return build(text, ARCHITECTURE, "-O0")


@pytest.mark.parametrize("index", range(len(CASES)), ids=[f"{case.id}-{i}" for i, case in enumerate(CASES)])
def test_case(library: ctypes.CDLL, tools: Toolkit, index: int) -> None:
    cases.check(library, index, CASES[index], tools.message)


@pytest.mark.parametrize("index", range(len(BROKEN)), ids=list(BROKEN))
def test_broken_rule(library: ctypes.CDLL, tools: Toolkit, index: int) -> None:
    x = np.zeros(1024, np.float32)
    status = launch(library, "cases", 1, x, x, x.copy(), x.nbytes, x.nbytes, x.nbytes, x.size, len(CASES) + index)
    assert status == 507015
    assert re.search(list(BROKEN.values())[index][1], tools.message()), tools.message()
