# ruff: noqa: E501, RUF100 - kernels are quoted as they are written
"""Functions of the high-level API other than the elementwise ones, against NumPy in double precision."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from .. import cases as cases_
from ..cases import Case
from ..conftest import Build, Toolkit, launch

random = np.random.default_rng(17)
HALF, FLOAT = ("half", "half", "half"), ("float", "float", "float")


def _uniform(count: int, dtype: type) -> np.ndarray:
    return random.uniform(-3, 3, count).astype(dtype)


def _rows(values: np.ndarray, width: int) -> np.ndarray:
    return values.reshape(-1, width).astype(np.float64)


def _padded(x: np.ndarray, columns: int, kept: int, left: int, right: int, pitch: int, z: np.ndarray) -> np.ndarray:
    result = z.reshape(-1, pitch).copy()
    result[:, : left + kept + right] = np.pad(
        x.reshape(-1, columns)[:, :kept], ((0, 0), (left, right)), constant_values=-7
    )
    return result.ravel()


def _dropped(x: np.ndarray, kept: np.ndarray, keep: float) -> np.ndarray:
    return (np.where(kept, x, 0) * x.dtype.type(1 / np.float32(keep))).astype(x.dtype)


def _bits(mask: np.ndarray) -> np.ndarray:
    return np.unpackbits(mask, bitorder="little").astype(bool)


def _antiquant(x: np.ndarray, y: np.ndarray, groups: int, transposed: bool) -> np.ndarray:
    """Of [k, n] = [64, 32], or [n, k]; y has the offsets and, behind them, the scales."""
    shape = (32, groups) if transposed else (groups, 32)
    offset, scale = (np.repeat(half.reshape(shape), 64 // groups, axis=int(transposed)) for half in np.split(y, 2))
    shifted = x.reshape(offset.shape).astype(np.float16) + offset
    return (shifted.astype(np.float16) * scale).astype(np.float16).ravel()


def _welford(x: np.ndarray, y: np.ndarray, z: np.ndarray, count: int) -> np.ndarray:
    """y has means and sums of blocks before; z is both after."""
    values, (mean, total) = x[:count].astype(np.float64), (half.astype(np.float64) for half in np.split(y, 2))
    result = np.split(z.astype(np.float64), 2)
    result[0][:count] = mean[:count] + (values - mean[:count]) / 4
    result[1][:count] = total[:count] + (values - mean[:count]) * (values - result[0][:count])
    return np.concatenate(result).astype(z.dtype)


def _finished(x: np.ndarray, y: np.ndarray, z: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """What the elements of all blocks have: x are the means of counts elements each, y their sums of squares."""
    mean = (x * counts).sum() / counts.sum()
    variance = (y + counts * (x - mean) ** 2).sum() / counts.sum()
    result = z.copy()
    result[[0, 8]] = mean, variance
    return result


def _normalized(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Rows of 32 of which 29 count; y has four means, four variances (each in eight), gamma and beta."""
    mean, variance, gamma, beta = y[:4], y[8:12], y[16:45], y[48:77]
    result = z.copy()
    rstd = 1 / np.sqrt(variance.astype(np.float64) + 1e-3)
    result[:128].reshape(4, 32)[:, :29] = (_rows(x, 32)[:, :29] - mean[:, None]) * rstd[:, None] * gamma + beta
    result[128:132] = rstd
    return result


def _deep_norm(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    """y has gx, then beta and gamma; behind the rows come their means and variances."""
    rows = -1.5 * _rows(x, 32) + _rows(y[:192], 32)
    beta, gamma = _rows(y[192:], 32)
    mean, variance = rows.mean(1), rows.var(1)
    result = (rows - mean[:, None]) / np.sqrt(variance[:, None] + 1e-3) * gamma + beta
    return np.concatenate((result.ravel(), mean, np.zeros(10), variance)).astype(z.dtype)


def _layer_norm_grad(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    """By its definition, dx = (g - mean(g) - n * mean(g * n)) / std for the true mean and variance of the rows."""
    rows, dy, gamma = _rows(x, 32), _rows(y[:192], 32), y[192:224].astype(np.float64)
    std = np.sqrt(rows.var(1, keepdims=True) + 1e-3)
    normal, gradient = (rows - rows.mean(1, keepdims=True)) / std, dy * gamma
    # The variance that is divided by contains epsilon, so n's own mean square is a little less than one.
    dx = (gradient - gradient.mean(1, keepdims=True) - normal * (gradient * normal).mean(1, keepdims=True)) / std
    by_gamma, by_beta = (dy * normal).sum(0), dy.sum(0)
    return np.concatenate((dx.ravel(), normal.ravel(), by_gamma, by_beta)).astype(z.dtype)


def _facts(x: np.ndarray) -> np.ndarray:
    rows = _rows(x, 32)
    return np.concatenate((rows.mean(1), np.zeros(10), rows.var(1), np.zeros(10)))


CASES: list[Case] = []
for types, dtype, error in ((FLOAT, np.float32, 1e-5), (HALF, np.float16, 3e-3)):
    rtol, block = {"rtol": error, "atol": 3 * error}, 32 // np.dtype(dtype).itemsize
    odd, wide = 2 * block - 3, 2 * block
    pad = (
        "PadTiling tiling; tiling.srcHeight = {rows}; tiling.srcWidth = {columns}; tiling.srcOriWidth = {kept}; "
        "PadParams params{{{left}, {right}, -7}}; "
    )
    six, gradients = _uniform(192, dtype), _uniform(224, dtype)
    CASES += [
        Case(
            "Pad on both sides",
            pad.format(rows=block, columns=odd, kept=odd, left=1, right=2) + "Pad(z, x, params, tiling);",
            lambda x, y, z, o=odd, w=wide: _padded(x, o, o, 1, 2, w, z),
            _uniform(block * odd, dtype),
            None,
            _uniform(block * wide, dtype),
            types,
        ),
        Case(
            "Pad of columns that do not count",
            pad.format(rows=4, columns=wide, kept=odd, left=0, right=3) + "Pad(z, x, params, t, tiling);",
            lambda x, y, z, o=odd, w=wide: _padded(x, w, o, 0, 3, w, z),
            _uniform(4 * wide, dtype),
            None,
            _uniform(4 * wide, dtype),
            types,
        ),
        Case(
            "UnPad",
            f"UnPadTiling tiling; tiling.srcHeight = 5; tiling.srcWidth = {wide}; UnPadParams params{{0, 3}}; "
            f"UnPad(z, x, params, tiling);",
            lambda x, y, z, w=wide: x.reshape(5, w)[:, : w - 3].ravel(),
            _uniform(5 * wide, dtype),
            None,
            np.zeros(5 * (wide - 3), dtype),
            types,
        ),
        Case(
            "DropOut by bytes",
            "DropOutShapeInfo info; info.firstAxis = 2; info.srcLastAxis = info.maskLastAxis = 32; "
            "DropOut(z, x, y, 0.8f, info);",
            lambda x, y, z: _dropped(x, y != 0, 0.8),
            _uniform(64, dtype),
            random.integers(0, 3, 64).astype(np.uint8),
            types=(types[0], "uint8_t", types[0]),
        ),
        Case(
            "DropOut by bytes of longer rows",
            "DropOutShapeInfo info; info.firstAxis = 3; info.srcLastAxis = 16; info.maskLastAxis = 32; "
            "DropOut(z, x, y, t, 0.4f, info);",
            lambda x, y, z: _dropped(x, y.reshape(3, 32)[:, :16].ravel() != 0, 0.4),
            _uniform(48, dtype),
            random.integers(0, 2, 96).astype(np.uint8),
            types=(types[0], "uint8_t", types[0]),
        ),
        Case(
            "DropOutBitModeInit",
            "DropOutShapeInfo info; info.firstAxis = 4; info.srcLastAxis = 64; info.maskLastAxis = 8; "
            f"DropOutBitModeInit(); DropOutBitModeInit(t); DropOut<{types[0]}, true>(z, x, y, 0.5f, info);",
            lambda x, y, z: _dropped(x, _bits(y), 0.5),
            _uniform(256, dtype),
            random.integers(0, 256, 32).astype(np.uint8),
            types=(types[0], "uint8_t", types[0]),
        ),
        Case(
            "DropOut by bits",
            "DropOutShapeInfo info; info.firstAxis = 4; info.srcLastAxis = 64; info.maskLastAxis = 8; "
            "DropOut(z, x, y, 0.5f, info);",
            lambda x, y, z: _dropped(x, _bits(y), 0.5),
            _uniform(256, dtype),
            random.integers(0, 256, 32).astype(np.uint8),
            types=(types[0], "uint8_t", types[0]),
        ),
        Case(
            "DropOut by bits of longer rows",
            f"DropOutShapeInfo info; info.firstAxis = 2; info.srcLastAxis = 48; info.maskLastAxis = 32; "
            f"DropOut<{types[0]}, false, DROPOUT_MODE_BIT_MISALIGN>(z, x, y, 0.5f, info);",
            lambda x, y, z: _dropped(x, _bits(y).reshape(2, 256)[:, :48].ravel(), 0.5),
            _uniform(96, dtype),
            random.integers(0, 256, 64).astype(np.uint8),
            types=(types[0], "uint8_t", types[0]),
        ),
        Case(
            "DeepNorm",
            "DeepNormTiling tiling; tiling.bLength = 2; tiling.sLength = 3; "
            "tiling.hLength = tiling.originalHLength = 32; "
            "DeepNorm(z, z[192], z[208], x, y, y[192], y[224], -1.5f, 1e-3f, tiling);",
            _deep_norm,
            six,
            _uniform(256, dtype),
            np.zeros(214, dtype),
            types,
            **rtol,
        ),
        Case(
            "LayerNormGrad and LayerNormGradBeta",
            "LayerNormGradTiling tiling; tiling.bLength = 2; tiling.sLength = 3; "
            "tiling.hLength = tiling.originalHLength = 32; "
            "LayerNormGradBetaTiling sums; sums.bLength = 2; sums.sLength = 3; "
            "sums.hLength = sums.originalHLength = 32; "
            "LayerNormGrad(z, z[192], y, x, y[240], y[224], y[192], 1e-3f, tiling); "
            "LayerNormGradBeta(z[384], z[416], z[192], y, t, sums);",
            _layer_norm_grad,
            six,
            np.concatenate((gradients, _facts(six))).astype(dtype),
            np.zeros(448, dtype),
            types,
            rtol=10 * error,
            atol=10 * error,
        ),
    ]
    CASES += [
        Case(
            f"{name} {form}",
            f"{name}(z, x, y{arguments});",
            expected,
            six,
            six[::-1].copy(),
            np.zeros(192, dtype),
            types,
            rtol=error,
            atol=error,
        )
        for name, expected, scalar in (
            ("SwiGLU", lambda x, y, z: (x * (y / (1 + np.exp(-y.astype(np.float64))))).astype(z.dtype), ", 1.0f"),
            ("ReGlu", lambda x, y, z: (x * np.maximum(y, 0)).astype(z.dtype), ""),
            (
                "GeGLU",
                lambda x, y, z: (
                    x
                    * (
                        y
                        / (
                            1
                            + np.exp(
                                -1.5957691216057308 * (y.astype(np.float64) + 0.044715 * y.astype(np.float64) ** 3)
                            )
                        )
                    )
                ).astype(z.dtype),
                "",
            ),
        )
        for form, arguments in (
            ("with scratch and count", f"{scalar}, t, 192u"),
            ("with scratch", f"{scalar}, t"),
            ("of all", scalar),
        )
    ]

COUNTS, SQUARES = np.repeat([5, 4], [10, 22]), random.uniform(1, 9, 32).astype(np.float32)
WELFORD = "WelfordUpdateParam param{1, 64, 50, 0.25f}; "
FINAL = (
    "WelfordFinalizePara para{{{rn}, 32, {head}, {head_length}, {tail}, {tail_length}, 1.0f / 32, 1.0f / {total}}}; "
)
GROUPED = (
    "x.SetSize(2048); uint32_t shape[] = {{{rows}, {columns}}}; y.SetShapeInfo(ShapeInfo(2, shape, DataFormat::ND)); "
)
SMALL = random.integers(-128, 128, 2048).astype(np.int8)
CASES += [
    Case(
        "AscendAntiQuant by groups of rows",
        GROUPED.format(rows=4, columns=32) + "AscendAntiQuant<int8_t, half, false>(z, x, y, y[128], t, 64);",
        lambda x, y, z: _antiquant(x, y, 4, False),
        SMALL,
        _uniform(256, np.float16),
        np.zeros(2048, np.float16),
        ("int8_t", "half", "half"),
    ),
    Case(
        "AscendAntiQuant transposed",
        "x.SetSize(2048); AscendAntiQuant<int8_t, half, true>(z, x, y, y[64], 64, AntiQuantShapeInfo{32, 2, 32, 2});",
        lambda x, y, z: _antiquant(x, y, 2, True),
        SMALL,
        _uniform(128, np.float16),
        np.zeros(2048, np.float16),
        ("int8_t", "half", "half"),
    ),
    Case(
        "AscendAntiQuant by one",
        "x.SetSize(2048); AscendAntiQuant<int8_t, half, false>(z, x, half(1.5f), half(0.25f), 64);",
        lambda x, y, z: ((x.astype(np.float16) + np.float16(1.5)) * np.float16(0.25)).astype(np.float16),
        SMALL,
        None,
        np.zeros(2048, np.float16),
        ("int8_t", "half", "half"),
    ),
    Case(
        "WelfordUpdate",
        WELFORD + "WelfordUpdate<float, float>(z, z[64], y, y[64], x, t, param);",
        lambda x, y, z: _welford(x, y, z, 50),
        _uniform(64, np.float32),
        _uniform(128, np.float32),
        _uniform(128, np.float32),
        rtol=1e-5,
        atol=1e-5,
    ),
    Case(
        "WelfordUpdate in place",
        "static constexpr WelfordUpdateConfig same{true}; "
        + WELFORD
        + "WelfordUpdate<half, float, false, same>(z, z[64], y, y[64], x, param);",
        lambda x, y, z: _welford(x, y, y, 50),
        _uniform(64, np.float16),
        _uniform(128, np.float32),
        _uniform(128, np.float32),
        ("half", "float", "float"),
        rtol=1e-5,
        atol=1e-5,
    ),
    Case(
        "WelfordFinalize with a tail",
        FINAL.format(rn=5, head=5, head_length=10, tail=4, tail_length=22, total=138)
        + "WelfordFinalize(z, z[8], x, y, t, para);",
        lambda x, y, z: _finished(x, y, z, COUNTS),
        _uniform(32, np.float32),
        SQUARES,
        np.zeros(16, np.float32),
        rtol=1e-5,
        atol=1e-5,
    ),
    Case(
        "WelfordFinalize without a tail",
        FINAL.format(rn=5, head=5, head_length=32, tail=0, tail_length=0, total=160)
        + "WelfordFinalize(z, z[8], x, y, para);",
        lambda x, y, z: _finished(x, y, z, np.full(32, 5)),
        _uniform(32, np.float32),
        SQUARES,
        np.zeros(16, np.float32),
        rtol=1e-5,
        atol=1e-5,
    ),
    Case(
        "WelfordFinalize with counts",
        FINAL.format(rn=5, head=0, head_length=32, tail=0, tail_length=0, total=138)
        + "auto counts = t.ReinterpretCast<int32_t>(); for (int i = 0; i < 32; "
        "++i) counts.SetValue(i, i < 10 ? 5 : 4); WelfordFinalize(z, z[8], x, y, counts, para);",
        lambda x, y, z: _finished(x, y, z, COUNTS),
        _uniform(32, np.float32),
        SQUARES,
        np.zeros(16, np.float32),
        rtol=1e-5,
        atol=1e-5,
    ),
    Case(
        "Normalize",
        "Normalize<float, float>(z, z[128], y, y[8], x, y[16], y[48], t, 1e-3f, NormalizePara{4, 29, 32});",
        _normalized,
        _uniform(128, np.float32),
        random.uniform(0.5, 3, 80).astype(np.float32),
        _uniform(136, np.float32),
        rtol=1e-5,
        atol=1e-5,
    ),
    Case(
        "Broadcast",
        "const uint32_t to[] = {3, 16}, from[] = {3, 1}; Broadcast<float, 2, 1>(z, x, to, from);",
        lambda x, y, z: np.repeat(x[:3], 16),
        _uniform(8, np.float32),
        None,
        np.zeros(48, np.float32),
    ),
    Case(
        "Axpy with scratch",
        "Axpy(z, x, half(2.0f), t, 64);",
        lambda x, y, z: (z + 2 * x.astype(np.float32)).astype(np.float32),
        _uniform(64, np.float16),
        None,
        _uniform(64, np.float32),
        ("half", "half", "float"),
        rtol=1e-6,
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
    auto mask = buffer.Get<uint8_t>();
    PadTiling tiling;
    PadParams wide{0, 9, 0}, none{0, 1, 0};
    UnPadTiling cut;
    UnPadParams nothing{0, 0};
    DropOutShapeInfo info;
    info.firstAxis = 1;
    info.srcLastAxis = info.maskLastAxis = 32;
    cut.srcHeight = tiling.srcHeight = 4;
    cut.srcWidth = tiling.srcWidth = tiling.srcOriWidth = which == 1 ? 16 : 14;
    DeepNormTiling deep;
    switch (which) {
        case 0: Pad(x, x, wide, tiling); break;
        case 1: Pad(x, x, none, tiling); break;
        case 2: UnPad(x, x, nothing, cut); break;
        case 3: DropOut(x, x, mask, 1.5f, info); break;
        case 4: info.maskLastAxis = 3; DropOut(x, x, mask, 0.5f, info); break;
        case 5: WelfordUpdate<float, float>(x, x, x, x, x, WelfordUpdateParam{2, 8, 8, 1}); break;
        case 6: WelfordFinalize(x, x, x, x, WelfordFinalizePara{1, 8, 1, 4, 0, 4, 1, 1}); break;
        case 7: Normalize<float, float>(x, x, x, x, x, x, x, 1e-5f, NormalizePara{1, 9, 8}); break;
        case 8: DeepNorm(x, x, x, x, x, x, x, 1.0f, 1e-5f, deep); break;
        case 9: mask.SetSize(4096); AscendAntiQuant<int8_t, half, false>(buffer.Get<half>(),
            mask.ReinterpretCast<int8_t>(), buffer.Get<half>(), buffer.Get<half>(), 64); break;
        default: Trap();
    }
}
"""

TILINGS = """
#include "kernel_operator.h"
#include "tiling/tiling_api.h"
using AscendC::TensorShape;
extern "C" void pad(const int64_t* sizes, uint32_t* fields) {
    optiling::PadTiling tiling;
    uint32_t most, least;
    const TensorShape shape({sizes[0], sizes[1]}), counted({sizes[0], sizes[2]});
    AscendC::GetPadMaxMinTmpSize(shape, 4, most, least);
    AscendC::PadTilingFunc(shape, counted, most, 4, tiling);
    const uint32_t found[] = {tiling.srcHeight, tiling.srcWidth, tiling.srcOriWidth, least};
    for (int i = 0; i < 4; ++i) fields[i] = found[i];
}
extern "C" int deep_norm(const int64_t* sizes, int is_basic, uint32_t* fields) {
    optiling::DeepNormTiling tiling;
    const TensorShape shape({sizes[0], sizes[1], sizes[2]}), counted({sizes[0], sizes[1], sizes[3]});
    const bool is_given = AscendC::GetDeepNormTilingInfo(shape, counted, 1024, 4, false, is_basic != 0, tiling);
    const uint32_t found[] = {tiling.bLength, tiling.sLength, tiling.hLength, tiling.originalHLength};
    for (int i = 0; i < 4; ++i) fields[i] = found[i];
    return is_given;
}
extern "C" void gradient(const int64_t* sizes, uint32_t* fields) {
    optiling::LayerNormGradTiling tiling;
    AscendC::GetLayerNormGradNDTilingInfo(TensorShape({sizes[0], sizes[1], sizes[2], sizes[3]}), 1024, 4, false,
        tiling);
    const uint32_t found[] = {tiling.bLength, tiling.sLength, tiling.hLength, tiling.originalHLength};
    for (int i = 0; i < 4; ++i) fields[i] = found[i];
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
        (
            0,
            (
                "Pad: 4 rows of 14 columns of which 14 count, 0 columns on the left and 9 on the right; "
                "a padded row is no longer"
            ),
        ),
        (
            1,
            (
                "Pad: 4 rows of 16 columns of which 16 count, 0 columns on the left and 1 on the right; "
                "rows of whole blocks"
            ),
        ),
        (2, "UnPad: 4 rows of 14 columns"),
        (3, "DropOut: keepProb is 1.5; it lies between 0 and 1"),
        (4, "DropOut: 1 rows of 32 elements with 3 bytes of the mask each, mode 4"),
        (5, "WelfordUpdate: rnLength 2, abLength 8, abComputeLength 8; valid: 1,"),
        (6, "WelfordFinalize: abLength 8, headCountLength 4, tailCountLength 4, tailCount 0"),
        (7, "Normalize: aLength 1, rLength 9, rLengthWithPadding 8"),
        (8, "DeepNorm: tiling with rows of 0 elements of which 0 count"),
        (9, "AscendAntiQuant: offset of 0 rows and 0 columns for a source with k = 64 and n = 64"),
    ],
)
def test_refusals(build: Build, tools: Toolkit, which: int, said: str) -> None:
    assert launch(build(REFUSALS), "refusals", 1, which) != 0
    assert said in tools.message()


def test_tilings(build: Build) -> None:
    """What the kernels above take is what the host's functions fill in."""
    library = build(TILINGS)
    fields = (ctypes.c_uint32 * 4)()

    def sizes(*given: int) -> ctypes.Array[ctypes.c_int64]:
        return (ctypes.c_int64 * 4)(*given)

    library.pad(sizes(4, 16, 13), fields)
    assert list(fields[:3]) == [4, 16, 13]
    assert fields[3] > 0
    assert library.deep_norm(sizes(2, 4, 64, 64), 1, fields) == 1
    assert list(fields) == [2, 4, 64, 64]
    assert library.deep_norm(sizes(2, 4, 64, 60), 1, fields) == 0
    assert library.deep_norm(sizes(2, 4, 64, 60), 0, fields) == 1
    assert library.deep_norm(sizes(2, 4, 2048, 2048), 0, fields) == 0
    library.gradient(sizes(2, 3, 16, 13), fields)
    assert list(fields) == [2, 3, 16, 13]
    library.gradient(sizes(2, 3, 12, 12), fields)
    assert list(fields) == [0, 0, 0, 0]
