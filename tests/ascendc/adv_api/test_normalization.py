# ruff: noqa: E501, RUF100 - kernels are quoted as they are written
"""Normalizations, gradients of softmax and running sums, against NumPy in double precision."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from .. import cases as cases_
from ..cases import Case
from ..conftest import Build, Toolkit, launch

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
RMS = (
    "RmsNormTiling tiling; tiling.bLength = 3; tiling.sLength = 2; tiling.hLength = 32; "
    "tiling.originalHLength = {count}; "
)
SUMS = (
    "static constexpr CumSumConfig config = {{{last}, false, true}}; "
    "CumSum<{type}, config>(z, z[192], x, {scratch}CumSumInfo{{6, 32}});"
)
CASES: list[Case] = []
for types, dtype, error in ((FLOAT, np.float32, 1e-5), (HALF, np.float16, 2e-3)):
    several, pair, rtol = _uniform(192, dtype), _uniform(64, dtype), {"rtol": error, "atol": error}
    CASES += [
        Case(
            "LayerNorm",
            LAYER + "LayerNorm(z, z[192], z[208], x, y, y[32], 1e-3f, tiling); for (int i = 0; i < 6; "
            "++i) z.SetValue(198 + i, z.GetValue(208 + i));",
            lambda x, y, z: np.concatenate((_layer_norm(x, y, z, 32), z[204:])),
            several,
            pair,
            np.zeros(204, dtype),
            types,
            **rtol,
        ),
        Case(
            "LayerNorm with scratch",
            LAYER + "LayerNorm(z, z[192], z[208], x, y, y[32], t, 1e-3f, tiling); for (int i = 0; i < 6; "
            "++i) z.SetValue(198 + i, z.GetValue(208 + i));",
            lambda x, y, z: np.concatenate((_layer_norm(x, y, z, 32), z[204:])),
            several,
            pair,
            np.zeros(204, dtype),
            types,
            **rtol,
        ),
        Case(
            "RmsNorm",
            RMS.format(count=32) + "RmsNorm(z, x, y, 1e-3f, tiling);",
            lambda x, y, z: _rms_norm(x, y, z, 32, 32),
            several,
            pair,
            types=types,
            **rtol,
        ),
        Case(
            "RmsNorm of part of a row",
            RMS.format(count=29) + "RmsNorm(z, x, y, t, 1e-3f, tiling);",
            lambda x, y, z: _rms_norm(x, y, z, 32, 29),
            several,
            pair,
            _uniform(192, dtype),
            types,
            **rtol,
        ),
        Case(
            "CumSum along rows",
            SUMS.format(last="true", type=types[0], scratch=""),
            lambda x, y, z: np.concatenate(((sums := _rows(x, 32).cumsum(1)).ravel(), sums[-1])).astype(z.dtype),
            several,
            None,
            np.zeros(224, dtype),
            types,
            rtol=error,
            atol=10 * error,
        ),
        Case(
            "CumSum down columns",
            SUMS.format(last="false", type=types[0], scratch="t, "),
            lambda x, y, z: np.concatenate(((sums := _rows(x, 32).cumsum(0)).ravel(), sums[-1])).astype(z.dtype),
            several,
            None,
            np.zeros(224, dtype),
            types,
            rtol=error,
            atol=10 * error,
        ),
        Case(
            "SoftmaxGrad",
            "SoftmaxGrad(z, x, y, t, 0, false, {4, 64, 4, 60});",
            lambda x, y, z: _softmax_grad(x, y, z, 60),
            _uniform(256, dtype),
            _uniform(256, dtype),
            _uniform(256, dtype),
            types,
            rtol=error,
            atol=30 * error,
        ),
        Case(
            "SoftmaxGrad in front",
            "SoftmaxGrad(z, x, y, 0, true, {4, 64, 4, 64});",
            _softmax_grad_front,
            _uniform(256, dtype),
            _uniform(256, dtype),
            np.zeros(4 * 32 // np.dtype(dtype).itemsize, dtype),
            types,
            rtol=error,
            atol=10 * error,
        ),
        Case(
            "SoftmaxGradFront",
            "SoftmaxGradFront(z, x, y, 0, {4, 64, 4, 64});",
            _softmax_grad_front,
            _uniform(256, dtype),
            _uniform(256, dtype),
            np.zeros(4 * 32 // np.dtype(dtype).itemsize, dtype),
            types,
            rtol=error,
            atol=10 * error,
        ),
        Case(
            "SoftmaxGradFront with scratch",
            "SoftmaxGradFront(z, x, y, t, 0, {4, 64, 4, 64});",
            _softmax_grad_front,
            _uniform(256, dtype),
            _uniform(256, dtype),
            np.zeros(4 * 32 // np.dtype(dtype).itemsize, dtype),
            types,
            rtol=error,
            atol=10 * error,
        ),
    ]


def _group_norm(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Of [2, 6, 16] in three groups: the result, six means, six variances; gamma and beta are the halves of y."""
    groups, (gamma, beta) = (
        x.reshape(2, 3, 2, 16).astype(np.float64),
        y.reshape(2, 1, 3, 32)[:, :, :, :2, None].astype(np.float64),
    )
    mean, variance = groups.mean((2, 3)), groups.var((2, 3))
    result = (groups - mean[..., None, None]) / np.sqrt(variance[..., None, None] + 1e-3) * gamma + beta
    return np.concatenate((result.ravel(), mean.ravel(), variance.ravel(), z[204:])).astype(z.dtype)


def _batch_norm(x: np.ndarray, y: np.ndarray, z: np.ndarray, count: int) -> np.ndarray:
    """Of [16, 16], of whose rows `count` count: the result, the means, the variances."""
    rows, (gamma, beta) = _rows(x, 16)[:count], y.reshape(2, 16, 1)[:, :count].astype(np.float64)
    mean, variance, result = rows.mean(0), rows.var(0), z.copy()
    result[: rows.size] = ((rows - mean) / np.sqrt(variance + 1e-3) * gamma + beta).ravel()
    result[256:] = np.concatenate((mean, variance))
    return result


def _softmax_flash(x: np.ndarray, y: np.ndarray, z: np.ndarray, count: int) -> np.ndarray:
    """Rows of 64 in two parts, y behind x: softmax of both together."""
    whole = np.exp(np.concatenate((_rows(x, 64)[:, :count], _rows(y, 64)[:, :count]), 1))
    shares = whole / whole.sum(1, keepdims=True)
    result = z.reshape(2, -1, 64).copy()
    result[0, :, :count], result[1, :, :count] = shares[:, :count], shares[:, count:]
    return result.ravel()


def _layer_norm_rows(x: np.ndarray, y: np.ndarray, z: np.ndarray, uses: tuple[bool, bool]) -> np.ndarray:
    """Of six rows of 32, of which 29 count: the rows, the means, the reciprocals of the deviations, as float; y has
    gamma and beta."""
    rows, (gamma, beta) = _rows(x, 32)[:, :29], y.reshape(2, 32)[:, :29].astype(np.float64)
    factors = 1 / np.sqrt(rows.var(1) + 1e-3)
    result = z.reshape(-1, 32).copy()
    result[:6, :29] = (rows - rows.mean(1)[:, None]) * factors[:, None] * (gamma if uses[0] else 1) + (
        beta if uses[1] else 0
    )
    result[6, :6], result[7, :6] = rows.mean(1), factors
    return result.ravel()


ROWS = (
    "LayerNormSeparateTiling tiling; tiling.aLength = 6; tiling.rLength = 32; "
    "const LayerNormPara para = {6, 29, 32}; LocalTensor<float> facts = t.ReinterpretCast<float>(); "
)
GROUP = "GroupNormTiling tiling; tiling.n = 2; tiling.c = 6; tiling.hw = 16; tiling.g = 3; "
GATHER = "for (int i = 0; i < {count}; ++i) z.SetValue({to} + i, z.GetValue({at} + i));"
BATCH = "BatchNormTiling tiling; tiling.originalBLength = {count}; tiling.meanVarSize = 16; "
SHARES = """
    SoftMaxShapeInfo shape = {{4, 64, 4, {count}}};
    SoftMaxTiling tiling;
    const auto sum = t.ReinterpretCast<{fact}>(), max = sum[64];
    const auto factor = t.ReinterpretCast<{type}>()[512];
    SoftmaxFlash<{type}>(z, sum, max, x, factor, sum, max, {scratch}tiling, false, shape);
    SoftmaxFlash<{type}>(z[256], sum, max, y, factor, sum, max, {scratch}tiling, true, shape);
    for (int i = 0; i < 4; ++i) Muls(z[i * 64], z[i * 64], factor.GetValue(i * 32 / sizeof({type})), {count});
"""
for types, dtype, error in ((FLOAT, np.float32, 1e-5), (HALF, np.float16, 3e-3)):
    rtol = {"rtol": error, "atol": error}
    kind, planes, channels = types[0], _uniform(192, dtype), _uniform(192, dtype)
    columns, pair, several_rows = _uniform(256, dtype), _uniform(32, dtype), _uniform(192, dtype)
    for scratch in ("", "t[4096], "):
        for uses, config in (((True, True), ""), ((False, True), "false, true"), ((True, False), "true, false")):
            setting = f"static constexpr LayerNormConfig config = {{{config}, false, true}}; " if config else ""
            call = f"LayerNorm<float, {kind}, false, config>" if config else "LayerNorm"
            CASES.append(
                Case(
                    f"LayerNorm of rows({scratch}…) {config}",
                    ROWS + setting + f"{call}(z, facts, facts[8], x, y, y[32], 1e-3f, {scratch}para, tiling);"
                    "for (int i = 0; i < 6; ++i) z.SetValue(192 + i, facts.GetValue(i)); for (int i = 0; i < 6; "
                    "++i) z.SetValue(224 + i, facts.GetValue(8 + i));",
                    lambda x, y, z, uses=uses: _layer_norm_rows(x, y, z, uses),
                    several_rows,
                    _uniform(64, np.float32),
                    np.full(256, 7, dtype),
                    (kind, "float", kind),
                    **rtol,
                )
            )
    for scratch in ("", "t, "):
        CASES += [
            Case(
                f"GroupNorm({scratch}…)",
                GROUP
                + "LocalTensor<"
                + kind
                + "> gamma = t.ReinterpretCast<"
                + kind
                + ">()[64]; for (int i = 0; i < 6; ++i) gamma.SetValue(i, y.GetValue(i / 2 * 32 + i % 2));"
                "LocalTensor<"
                + kind
                + "> beta = gamma[32]; for (int i = 0; i < 6; ++i) beta.SetValue(i, y.GetValue(96 + i / 2 * 32 + i "
                "% 2));"
                f"GroupNorm(z, z[224], z[240], x, gamma, beta, {scratch}1e-3f, tiling);"
                + GATHER.format(count=6, to=192, at=224)
                + GATHER.format(count=6, to=198, at=240),
                lambda x, y, z: _group_norm(x, y, np.zeros(224, z.dtype)),
                planes,
                channels,
                np.zeros(224, dtype),
                types,
                **rtol,
            ),
            *(
                Case(
                    f"BatchNorm({scratch}…) of {count}",
                    BATCH.format(count=count) + f"BatchNorm(z, z[256], z[272], x, y, y[16], {scratch}1e-3f, tiling);",
                    lambda x, y, z, count=count: _batch_norm(x, y, z, count),
                    columns,
                    pair,
                    np.full(288, 7, dtype),
                    types,
                    **rtol,
                )
                for count in (16, 13)
            ),
            *(
                Case(
                    f"SoftmaxFlash({scratch}…) of {count}, facts of {fact}",
                    SHARES.format(count=count, type=kind, fact=fact, scratch=scratch.replace("t", "t[8192]")),
                    lambda x, y, z, count=count: _softmax_flash(x, y, z, count),
                    _uniform(256, dtype),
                    _uniform(256, dtype),
                    np.full(512, 7, dtype),
                    types,
                    **rtol,
                )
                for count in (64, 60)
                for fact in sorted({kind, "float"})
            ),
        ]
    # The maximum of the second part alone, one element for each row.
    for scratch in ("", "t[8192], "):
        CASES.append(
            Case(
                f"SoftmaxFlashV2({scratch}…) with its own maxima",
                "static constexpr SoftmaxConfig config = {false, 0, 0, SoftmaxMode::SOFTMAX_OUTPUT_WITHOUT_BRC};"
                f"SoftMaxShapeInfo shape = {{16, 16, 16, 16}}; SoftMaxTiling tiling; "
                f"const auto facts = t.ReinterpretCast<{kind}>();"
                "const auto sum = facts, max = facts[32], factor = facts[64];"
                f"SoftmaxFlashV2<{kind}, false, false, false, false, config>(x, z, sum, max, x, factor, sum, max, "
                f"{scratch}tiling, shape);"
                f"SoftmaxFlashV2<{kind}, true, false, false, false, config>(y, z[16], sum, max, y, factor, sum, max, "
                f"{scratch}tiling, shape);",
                lambda x, y, z: np.concatenate((z[:16], y.reshape(16, 16).max(1))),
                _uniform(256, dtype),
                _uniform(256, dtype),
                np.full(32, 7, dtype),
                types,
            )
        )
PACKED = "static constexpr SoftmaxConfig config = {true, 0, 0, SoftmaxMode::SOFTMAX_OUTPUT_WITHOUT_BRC}; "
CASES += [
    Case(
        "SimpleSoftMax",
        "SimpleSoftMax<float>(z, y, y[32], x, 0, {4, 64, 4, 60});",
        lambda x, y, z: _simple_softmax(x, y, z, 8),
        _uniform(256, np.float32),
        _facts(8, np.float32),
        _uniform(256, np.float32),
        FLOAT,
        rtol=1e-5,
    ),
    Case(
        "SimpleSoftMax of half, facts of float",
        "SimpleSoftMax<half>(z, y, y[32], x, t, 0, {4, 64, 4, 60});",
        lambda x, y, z: _simple_softmax(x, y, z, 8),
        _uniform(256, np.float16),
        _facts(8, np.float32),
        _uniform(256, np.float16),
        ("half", "float", "half"),
        rtol=2e-3,
        atol=1e-3,
    ),
]

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
        case 4: GroupNorm(x, x, x, x, x, x, 1e-5f, GroupNormTiling()); break;
        case 7: LayerNorm(x, x, x, x, x, x, 1e-5f, LayerNormPara{2, 31, 31}, LayerNormSeparateTiling()); break;
        case 5: BatchNorm(x, x, x, x, x, x, 1e-5f, BatchNormTiling()); break;
        case 6: { BatchNormTiling batch; batch.originalBLength = 8; batch.meanVarSize = 32;
            BatchNorm<float, false, true>(x, x, x, x, x, x, 1e-5f, batch); break; }
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
    return told(tiling.inputXSize == sizes[0] * sizes[1] * sizes[2]
        && tiling.meanVarSize == sizes[0] * sizes[1], tiling, fields);
}
extern "C" int layer_norm_of_rows(const int64_t* sizes, int item_size, uint32_t* fields) {
    optiling::LayerNormSeparateTiling tiling;
    uint32_t most, least;
    AscendC::GetLayerNormMaxMinTmpSize(TensorShape({sizes[0], sizes[1]}), item_size, false, true, false, most, least);
    AscendC::GetLayerNormNDTilingInfo(TensorShape({sizes[0], sizes[1]}), least, item_size, false, true, tiling);
    fields[0] = tiling.aLength;
    fields[1] = tiling.rLength;
    return most >= least;
}
extern "C" int group_norm(const int64_t* sizes, int item_size, uint32_t* fields) {
    optiling::GroupNormTiling tiling;
    uint32_t most, least;
    const TensorShape shape({sizes[0], sizes[1], 4, sizes[2]});
    AscendC::GetGroupNormMaxMinTmpSize(shape, item_size, false, sizes[3], most, least);
    AscendC::GetGroupNormNDTilingInfo(shape, most, item_size, false, sizes[3], tiling);
    const uint32_t found[] = {tiling.n, tiling.c, tiling.hw, tiling.g};
    for (int i = 0; i < 4; ++i) fields[i] = found[i];
    return tiling.inputXSize == sizes[0] * sizes[1] * sizes[2] * 4 && tiling.meanVarSize == sizes[0] * sizes[3]
        && most >= least;
}
extern "C" int batch_norm(const int64_t* sizes, int item_size, uint32_t* fields) {
    optiling::BatchNormTiling tiling;
    uint32_t most, least;
    const TensorShape shape({sizes[0], sizes[1], sizes[2]}), counted({sizes[3], sizes[1], sizes[2]});
    const bool is_given = AscendC::GetBatchNormNDTilingInfo(shape, counted, 1024, item_size, false, tiling);
    if (is_given != AscendC::GetBatchNormMaxMinTmpSize(shape, counted, item_size, false, most, least)) return -1;
    fields[0] = tiling.originalBLength;
    fields[1] = tiling.meanVarSize;
    fields[2] = AscendC::GetBatchNormNDTilingInfo(shape, counted, 1024, item_size, false, tiling, true);
    return is_given;
}
extern "C" int softmax_flash(const int64_t* sizes, int item_size, uint32_t* fields) {
    optiling::SoftMaxTiling tiling;
    uint32_t most, least;
    const TensorShape shape({sizes[0], sizes[1]});
    AscendC::SoftMaxFlashTilingFunc(shape, item_size, AscendC::GetSoftMaxFlashMaxTmpSize(shape, item_size, true, false),
        tiling, true);
    AscendC::GetReduceXorSumMaxMinTmpSize(shape, 2, false, most, least);
    AscendC::GetDigammaMaxMinTmpSize(shape, 2, false, most, least);
    AscendC::GetDigammaTmpBufferFactorSize(2, most, least);
    fields[0] = tiling.srcM;
    fields[1] = tiling.srcK;
    return AscendC::GetSoftMaxFlashMinTmpSize(shape, item_size, true, false) > 0;
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
        (4, "GroupNorm: tiling with 0 groups of 0 channels of 0 elements; fill it with GetGroupNormNDTilingInfo"),
        (5, "BatchNorm: tiling with 0 batches of 0 elements; fill it with GetBatchNormNDTilingInfo"),
        (7, "LayerNorm: 2 rows of 31 elements of which 31 count, with a tiling for 0 rows of 0"),
        (6, "BatchNorm with isBasicBlock: 8 batches of 32 elements"),
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
    assert tile("layer_norm_of_rows", 6, 32, item_size=2) == (1, [6, 32, 0, 0])
    assert tile("group_norm", 2, 6, 4, 3, item_size=2) == (1, [2, 6, 16, 3])
    assert tile("group_norm", 2, 6, 4, 4, item_size=2)[0] == 0
    assert tile("group_norm", 2, 6, 3, 3, item_size=2) == (0, [0, 0, 0, 0])
    assert tile("batch_norm", 16, 4, 16, 15, item_size=2) == (1, [15, 64, 0, 0])
    assert tile("batch_norm", 16, 4, 16, 8, item_size=2) == (1, [8, 64, 1, 0])
    assert tile("batch_norm", 16, 4, 2, 16, item_size=2)[0] == 0
    assert tile("batch_norm", 16, 4, 16, 17, item_size=2)[0] == 0
    assert tile("softmax_flash", 4, 64, 0, 0, item_size=4) == (1, [4, 64, 0, 0])
