# ruff: noqa: E501, RUF100 - kernels are quoted as they are written
"""Normalisations, gradients of softmax and running sums, against NumPy in double precision."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from . import cases as cases_
from .cases import Case
from .conftest import Build, Toolkit, launch

random = np.random.default_rng(14)
HALF, FLOAT = ("half", "half", "half"), ("float", "float", "float")


def _rows(values: np.ndarray, width: int) -> np.ndarray:
    return values.reshape(-1, width).astype(np.float64)


def _layer_norm(x: np.ndarray, y: np.ndarray, z: np.ndarray, width: int) -> np.ndarray:
    """The rows, then their means, then their variances; gamma and beta are the halves of y."""
    rows, (gamma, beta) = _rows(x, width), _rows(y, width)
    mean, variance = rows.mean(1), rows.var(1)
    result = (rows - mean[:, None]) / np.sqrt(variance[:, None] + 1e-3) * gamma + beta
    return np.concatenate((result.ravel(), mean, variance)).astype(z.dtype)


def _rms_norm(x: np.ndarray, y: np.ndarray, z: np.ndarray, width: int, count: int) -> np.ndarray:
    rows, result = _rows(x, width)[:, :count], z.reshape(-1, width).copy()
    result[:, :count] = rows / np.sqrt((rows**2).mean(1, keepdims=True) + 1e-3) * y[:count].astype(np.float64)
    return result.ravel()


def _softmax_grad(x: np.ndarray, y: np.ndarray, z: np.ndarray, count: int) -> np.ndarray:
    grad, rows = _rows(x, 64)[:, :count], _rows(y, 64)[:, :count]
    result = z.reshape(-1, 64).copy()
    result[:, :count] = (grad - (grad * rows).sum(1, keepdims=True)) * rows
    return result.ravel()


def _softmax_grad_front(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    totals = (_rows(x, 64) * _rows(y, 64)).sum(1)
    return np.repeat(totals, 32 // z.itemsize).astype(z.dtype)


def _simple_softmax(x: np.ndarray, y: np.ndarray, z: np.ndarray, step: int) -> np.ndarray:
    """Of rows of 64, of which 60 count; y has a sum for each row, and behind all of them a maximum for each."""
    sums, maxima = y.astype(np.float64).reshape(2, 4, step)[:, :, :1]
    result = z.reshape(4, 64).copy()
    result[:, :60] = np.exp(_rows(x, 64)[:, :60] - maxima) / sums
    return result.ravel()


def _facts(step: int, dtype: type) -> np.ndarray:
    return np.repeat(random.uniform(1, 3, 8), step).astype(dtype)


def _uniform(count: int, dtype: type) -> np.ndarray:
    return random.uniform(-3, 3, count).astype(dtype)


LAYER = "LayerNormTiling tiling; tiling.bLength = 2; tiling.sLength = 3; tiling.hLength = tiling.originalHLength = 32; "
RMS = "RmsNormTiling tiling; tiling.bLength = 3; tiling.sLength = 2; tiling.hLength = 32; tiling.originalHLength = {count}; "
SUMS = "static constexpr CumSumConfig config = {{{last}, false, true}}; CumSum<{type}, config>(z, z[192], x, {scratch}CumSumInfo{{6, 32}});"
CASES: list[Case] = []
for types, dtype, error in ((FLOAT, np.float32, 1e-5), (HALF, np.float16, 2e-3)):
    several, pair, rtol = _uniform(192, dtype), _uniform(64, dtype), {"rtol": error, "atol": error}
    CASES += [
        Case("LayerNorm", LAYER + "LayerNorm(z, z[192], z[208], x, y, y[32], 1e-3f, tiling); for (int i = 0; i < 6; ++i) z.SetValue(198 + i, z.GetValue(208 + i));",
             lambda x, y, z: np.concatenate((_layer_norm(x, y, z, 32), z[204:])), several, pair, np.zeros(204, dtype), types, **rtol),
        Case("LayerNorm with scratch", LAYER + "LayerNorm(z, z[192], z[208], x, y, y[32], t, 1e-3f, tiling); for (int i = 0; i < 6; ++i) z.SetValue(198 + i, z.GetValue(208 + i));",
             lambda x, y, z: np.concatenate((_layer_norm(x, y, z, 32), z[204:])), several, pair, np.zeros(204, dtype), types, **rtol),
        Case("RmsNorm", RMS.format(count=32) + "RmsNorm(z, x, y, 1e-3f, tiling);", lambda x, y, z: _rms_norm(x, y, z, 32, 32), several, pair, types=types, **rtol),
        Case("RmsNorm of part of a row", RMS.format(count=29) + "RmsNorm(z, x, y, t, 1e-3f, tiling);", lambda x, y, z: _rms_norm(x, y, z, 32, 29),
             several, pair, _uniform(192, dtype), types, **rtol),
        Case("CumSum along rows", SUMS.format(last="true", type=types[0], scratch=""), lambda x, y, z: np.concatenate(
             ((sums := _rows(x, 32).cumsum(1)).ravel(), sums[-1])).astype(z.dtype), several, None, np.zeros(224, dtype), types, rtol=error, atol=10 * error),
        Case("CumSum down columns", SUMS.format(last="false", type=types[0], scratch="t, "), lambda x, y, z: np.concatenate(
             ((sums := _rows(x, 32).cumsum(0)).ravel(), sums[-1])).astype(z.dtype), several, None, np.zeros(224, dtype), types, rtol=error, atol=10 * error),
        Case("SoftmaxGrad", "SoftmaxGrad(z, x, y, t, 0, false, {4, 64, 4, 60});", lambda x, y, z: _softmax_grad(x, y, z, 60),
             _uniform(256, dtype), _uniform(256, dtype), _uniform(256, dtype), types, rtol=error, atol=30 * error),
        Case("SoftmaxGrad in front", "SoftmaxGrad(z, x, y, 0, true, {4, 64, 4, 64});", _softmax_grad_front,
             _uniform(256, dtype), _uniform(256, dtype), np.zeros(4 * 32 // np.dtype(dtype).itemsize, dtype), types, rtol=error, atol=10 * error),
        Case("SoftmaxGradFront", "SoftmaxGradFront(z, x, y, 0, {4, 64, 4, 64});", _softmax_grad_front,
             _uniform(256, dtype), _uniform(256, dtype), np.zeros(4 * 32 // np.dtype(dtype).itemsize, dtype), types, rtol=error, atol=10 * error),
        Case("SoftmaxGradFront with scratch", "SoftmaxGradFront(z, x, y, t, 0, {4, 64, 4, 64});", _softmax_grad_front,
             _uniform(256, dtype), _uniform(256, dtype), np.zeros(4 * 32 // np.dtype(dtype).itemsize, dtype), types, rtol=error, atol=10 * error),
    ]  # fmt: skip
PACKED = "static constexpr SoftmaxConfig config = {true, 0, 0, SoftmaxMode::SOFTMAX_OUTPUT_WITHOUT_BRC}; "
CASES += [
    Case("SimpleSoftMax", "SimpleSoftMax<float>(z, y, y[32], x, 0, {4, 64, 4, 60});", lambda x, y, z: _simple_softmax(x, y, z, 8),
         _uniform(256, np.float32), _facts(8, np.float32), _uniform(256, np.float32), FLOAT, rtol=1e-5),
    Case("SimpleSoftMax of half, facts of float", "SimpleSoftMax<half>(z, y, y[32], x, t, 0, {4, 64, 4, 60});", lambda x, y, z: _simple_softmax(x, y, z, 8),
         _uniform(256, np.float16), _facts(8, np.float32), _uniform(256, np.float16), ("half", "float", "half"), rtol=2e-3, atol=1e-3),
]  # fmt: skip

REFUSALS = """
#include "kernel_operator.h"
using namespace AscendC;
extern "C" __global__ __aicore__ void refusals(uint32_t which) {
    TPipe pipe;
    TBuf<TPosition::VECCALC> buffer;
    pipe.InitBuffer(buffer, 4096);
    auto x = buffer.Get<float>();
    LayerNormTiling layer;
    RmsNormTiling rms;
    rms.bLength = rms.sLength = 1;
    rms.hLength = 32;
    rms.originalHLength = 40;
    switch (which) {
        case 0: LayerNorm(x, x, x, x, x, x, 1e-5f, layer); break;
        case 1: RmsNorm(x, x, x, 1e-5f, rms); break;
        case 2: CumSum(x, x, x, CumSumInfo{2, 12}); break;
        case 3: CumSum(x, x, x, CumSumInfo{64, 32}); break;
        default: Trap();
    }
}
"""

TILINGS = """
#include "kernel_operator.h"
#include "tiling/tiling_api.h"
using AscendC::TensorShape;
template <typename Tiling>
int told(bool is_given, const Tiling& tiling, uint32_t* fields) {
    const uint32_t found[] = {tiling.bLength, tiling.sLength, tiling.hLength, tiling.originalHLength};
    for (int i = 0; i < 4; ++i) fields[i] = found[i];
    return is_given;
}
extern "C" int layer_norm(const int64_t* sizes, int item_size, uint32_t* fields) {
    optiling::LayerNormTiling tiling;
    AscendC::GetLayerNormNDTilingInfo(TensorShape({sizes[0], sizes[1], sizes[2]}), 1024, item_size, false, tiling);
    return told(tiling.inputXSize == sizes[0] * sizes[1] * sizes[2] && tiling.meanVarSize == sizes[0] * sizes[1], tiling, fields);
}
extern "C" int rms_norm(const int64_t* sizes, int item_size, uint32_t* fields) {
    optiling::RmsNormTiling tiling;
    uint32_t most, least;
    const TensorShape shape({sizes[0], sizes[1], sizes[2]}), counted({sizes[0], sizes[1], sizes[3]});
    const bool is_given = AscendC::GetRmsNormTilingInfo(shape, counted, 1024, item_size, tiling);
    if (is_given && !AscendC::GetRmsNormMaxMinTmpSize(shape, item_size, most, least)) return -1;
    return told(is_given, tiling, fields);
}
"""


@pytest.fixture(scope="module")
def library(build: Build) -> ctypes.CDLL:
    return build(cases_.source(CASES))


@pytest.mark.parametrize("index", range(len(CASES)), ids=[case.id for case in CASES])
def test_case(library: ctypes.CDLL, tools: Toolkit, index: int) -> None:
    cases_.check(library, index, CASES[index], tools.message)


@pytest.mark.parametrize(
    ("which", "said"),
    [
        (0, "LayerNorm: tiling with rows of 0 elements of which 0 count; fill it with GetLayerNorm"),
        (1, "RmsNorm: tiling with rows of 32 elements of which 40 count"),
        (2, "CumSum: 2 rows of 12 elements"),
        (3, "CumSum"),
    ],
)
def test_refusals(build: Build, tools: Toolkit, which: int, said: str) -> None:
    assert launch(build(REFUSALS), "refusals", 1, which) != 0
    assert said in tools.message()


def test_tilings(build: Build) -> None:
    """What the kernels above take is what the host's functions fill in, from a shape of whole blocks of 32 bytes."""
    library = build(TILINGS)

    def tile(function: str, *sizes: int, item_size: int) -> tuple[int, list[int]]:
        fields = (ctypes.c_uint32 * 4)()
        return getattr(library, function)((ctypes.c_int64 * 4)(*sizes), item_size, fields), list(fields)

    assert tile("layer_norm", 2, 3, 16, 16, item_size=2) == (1, [2, 3, 16, 16])
    assert tile("layer_norm", 2, 3, 12, 12, item_size=2) == (0, [0, 0, 0, 0])
    assert tile("rms_norm", 2, 3, 16, 13, item_size=4) == (1, [2, 3, 16, 13])
    assert tile("rms_norm", 2, 3, 16, 17, item_size=4)[0] == 0
    assert tile("rms_norm", 2, 3, 12, 12, item_size=2)[0] == 0
