"""The cube path of dav-3510: blocks of fractals, A by columns of fractals, and results by rows, columns and fractals."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from numpy.typing import NDArray

from ..conftest import Build, Toolkit, launch

SOURCE = """
#include "kernel_operator.h"
using namespace AscendC;

template <typename T>
__aicore__ inline void Load(const LocalTensor<T>& to, GM_ADDR from, uint32_t rows, uint32_t columns, uint32_t padded) {
    GlobalTensor<T> matrix;
    matrix.SetGlobalBuffer((__gm__ T*)from, rows * columns);
    DataCopy(to, matrix, Nd2NzParams(1, rows, columns, 0, columns, padded, 1, 0));
}
__aicore__ inline uint32_t Fractals(uint32_t size, uint32_t of) { return (size + of - 1) / of; }

// c[m, n] = a[m, k] * b[k, n]; `turned` says that a is given as [k, m].
template <typename T, typename U, const FixpipeConfig& config>
__aicore__ inline void Multiply(GM_ADDR x, GM_ADDR y, GM_ADDR z, uint32_t m, uint32_t n, uint32_t k, bool turned) {
    constexpr uint32_t c0 = 32 / sizeof(T);
    LocalTensor<T> a1(TPosition::A1, 0, 8192), b1(TPosition::B1, 65536, 8192), a2(TPosition::A2, 0, 8192),
        b2(TPosition::B2, 0, 8192);
    LocalTensor<U> c(TPosition::CO1, 0, 8192);
    // Both steps of b are whole fractals either way.
    const uint32_t mb = Fractals(m, 16), nb = Fractals(n, 16);
    if (turned) {
        Load(a1, x, k, m, Fractals(k, 16) * 16);
        LoadData(a2, a1, LoadData2DParamsV2(0, 0, Fractals(k, 16), Fractals(m, c0), Fractals(k, 16), mb, true, 0));
    } else {
        Load(a1, x, m, k, mb * 16);
        LoadData2DParamsV2 params;
        params.mStep = mb;
        params.kStep = Fractals(k, c0);
        params.srcStride = mb;
        params.dstStride = mb;
        LoadData(a2, a1, params);
    }
    Load(b1, y, k, n, Fractals(k, 16) * 16);
    LoadData(b2, b1, LoadData2DParamsV2(0, 0, Fractals(k, 16), Fractals(n, c0), Fractals(k, 16), nb, true, 0));
    MmadParams product;
    product.m = m;
    product.n = n;
    product.k = k;
    product.disableGemv = true;
    Mmad(c, a2, b2, product);
    GlobalTensor<U> out;
    out.SetGlobalBuffer((__gm__ U*)z, nb * 16 * mb * 16);
    FixpipeParamsC310<config.format> params(n, m, mb * 16, config.format == CO2Layout::ROW_MAJOR ? n : m);
    if constexpr (config.format == CO2Layout::COLUMN_MAJOR) params.params.srcNzC0Stride = 1;
    if constexpr (config.format == CO2Layout::NZ) params.dstStride = m * 16;
    Fixpipe<U, U, config>(out, c, params);
}
extern "C" __global__ __cube__ void halfs(GM_ADDR x, GM_ADDR y, GM_ADDR z, uint32_t m, uint32_t n, uint32_t k, bool turned) {
    Multiply<half, float, CFG_ROW_MAJOR>(x, y, z, m, n, k, turned);
}
extern "C" __global__ __cube__ void bytes(GM_ADDR x, GM_ADDR y, GM_ADDR z, uint32_t m, uint32_t n, uint32_t k, bool turned) {
    Multiply<int8_t, int32_t, CFG_ROW_MAJOR>(x, y, z, m, n, k, turned);
}
extern "C" __global__ __cube__ void floats(GM_ADDR x, GM_ADDR y, GM_ADDR z, uint32_t m, uint32_t n, uint32_t k, bool turned) {
    Multiply<float, float, CFG_ROW_MAJOR>(x, y, z, m, n, k, turned);
}
extern "C" __global__ __cube__ void columns(GM_ADDR x, GM_ADDR y, GM_ADDR z, uint32_t m, uint32_t n, uint32_t k) {
    Multiply<half, float, CFG_COLUMN_MAJOR>(x, y, z, m, n, k, false);
}
extern "C" __global__ __cube__ void fractals(GM_ADDR x, GM_ADDR y, GM_ADDR z, uint32_t m, uint32_t n, uint32_t k) {
    Multiply<half, float, CFG_NZ>(x, y, z, m, n, k, false);
}
extern "C" __global__ __cube__ void odd_step(GM_ADDR) {
    LocalTensor<int8_t> a1(TPosition::A1, 0, 8192), a2(TPosition::A2, 0, 8192);
    LoadData(a2, a1, LoadData2DParamsV2(0, 0, 3, 1, 3, 1, true, 0));
}
extern "C" __global__ __cube__ void to_vectors(GM_ADDR) {
    LocalTensor<float> sums(TPosition::CO1, 0, 256), result(TPosition::VECIN, 0, 256);
    Fixpipe(result, sums, FixpipeParamsArch3510<>(16, 16, 16, 16));
}
extern "C" __global__ __cube__ void ragged(GM_ADDR z) {
    LocalTensor<float> sums(TPosition::CO1, 0, 1024);
    GlobalTensor<float> result;
    result.SetGlobalBuffer((__gm__ float*)z, 1024);
    Fixpipe<float, float, CFG_NZ>(result, sums, FixpipeParamsArch3510<CO2Layout::NZ>(24, 16, 16, 256));
}
extern "C" __global__ __cube__ void no_stride(GM_ADDR z) {
    LocalTensor<float> sums(TPosition::CO1, 0, 1024);
    GlobalTensor<float> result;
    result.SetGlobalBuffer((__gm__ float*)z, 1024);
    Fixpipe(result, sums, FixpipeParamsArch3510<>(16, 16, 16, 0));
}
extern "C" __global__ __cube__ void scales_elsewhere(GM_ADDR z) {
    LocalTensor<float> sums(TPosition::CO1, 0, 1024);
    LocalTensor<uint64_t> scales(TPosition::CO1, 0, 16);
    GlobalTensor<half> result;
    result.SetGlobalBuffer((__gm__ half*)z, 1024);
    Fixpipe(result, sums, scales, FixpipeParamsArch3510<>(16, 16, 16, 16));
}
// Rows of a block that begins within the matrix, as fractals; and columns that become rows.
extern "C" __global__ __cube__ void parts(GM_ADDR x, GM_ADDR y, GM_ADDR z) {
    LocalTensor<half> from(TPosition::A1, 0, 4096), block(TPosition::A2, 0, 1024), turned(TPosition::A1, 65536, 4096);
    Load(from, x, 48, 48, 48);
    LoadData(block, from, LoadData2DParamsV2(1, 2, 2, 1, 3, 2, false, 0));
    GlobalTensor<half> matrices;
    matrices.SetGlobalBuffer((__gm__ half*)x, 48 * 48);
    DataCopy(turned, matrices, Dn2NzParams(2, 8, 20, 24, 48, 16, 1, 1024));
    for (int i = 0; i < 512; ++i) ((__gm__ half*)y)[i] = block.GetValue(i);
    for (int i = 0; i < 2048; ++i) ((__gm__ half*)z)[i] = turned.GetValue(i);
}
extern "C" __global__ __cube__ void patches(GM_ADDR x, GM_ADDR z, uint32_t stride) {
    LocalTensor<half> from(TPosition::A1, 0, 4096), a2(TPosition::A2, 0, 4096);
    GlobalTensor<half> map;
    map.SetGlobalBuffer((__gm__ half*)x, 2 * 8 * 4 * 16);
    DataCopy(from, map, 2 * 8 * 4 * 16);
    SetLoadDataRepeatWithStride(LoadDataRepeatParamWithStride(0, 1, 0, stride));
    LoadData3DParamsV2<half> params;
    params.l1H = 8;
    params.l1W = 4;
    params.channelSize = 32;
    params.kExtension = 32;
    params.mExtension = 32;
    LoadDataWithStride(a2, from, params);
    for (int i = 0; i < 2048; ++i) ((__gm__ half*)z)[i] = a2.GetValue(i);
}
"""


@pytest.fixture(autouse=True)
def _soc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASCEND_GRAPH_HOST_SOC", "Ascend950PR_9589")


@pytest.fixture(scope="module")
def library(build: Build) -> ctypes.CDLL:
    return build(SOURCE, "--npu-arch=dav-3510", "-O0")


def _matrices(m: int, n: int, k: int) -> tuple[NDArray[np.int8], NDArray[np.int8]]:
    draw = np.random.default_rng(6)
    return draw.integers(-8, 8, (m, k)).astype(np.int8), draw.integers(-8, 8, (k, n)).astype(np.int8)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(
    ("kernel", "kind", "sizes"),
    [
        ("halfs", np.float16, (48, 32, 64)),
        ("halfs", np.float16, (40, 20, 56)),
        ("halfs", np.float16, (1, 16, 48)),
        ("bytes", np.int8, (64, 32, 96)),
        ("floats", np.float32, (32, 48, 48)),
    ],
)
def test_products(
    library: ctypes.CDLL, tools: Toolkit, kernel: str, kind: type, sizes: tuple[int, int, int], turned: bool
) -> None:
    """Of A several fractals high and wide: they lie by columns, which dav-2201 does not have."""
    m, n, k = sizes
    a, b = _matrices(m, n, k)
    z = np.zeros((m, n), np.int32 if kind is np.int8 else np.float32)
    given = np.ascontiguousarray((a.T if turned else a).astype(kind))
    padded = np.zeros(-(-n // 16) * 16 * -(-m // 16) * 16, z.dtype)
    assert launch(library, kernel, 1, given, b.astype(kind), padded, m, n, k, turned) == 0, tools.message()
    np.testing.assert_array_equal(padded[: m * n].reshape(m, n), a.astype(np.int32) @ b.astype(np.int32))


def test_columns_and_fractals_of_results(library: ctypes.CDLL, tools: Toolkit) -> None:
    a, b = _matrices(32, 48, 32)
    expected = (a.astype(np.int32) @ b.astype(np.int32)).astype(np.float32)
    z = np.zeros((48, 32), np.float32)
    x, y = a.astype(np.float16), b.astype(np.float16)
    assert launch(library, "columns", 1, x, y, z, 32, 48, 32) == 0, tools.message()
    np.testing.assert_array_equal(z, expected.T)
    z = np.zeros((3, 32, 16), np.float32)
    assert launch(library, "fractals", 1, x, y, z, 32, 48, 32) == 0, tools.message()
    np.testing.assert_array_equal(z, expected.reshape(32, 3, 16).transpose(1, 0, 2))


def test_parts_of_a_matrix_and_its_columns(library: ctypes.CDLL, tools: Toolkit) -> None:
    x = np.arange(48 * 48, dtype=np.float16).reshape(48, 48)
    block, turned = np.zeros((2, 16, 16), np.float16), np.zeros((2, 1024), np.float16)
    assert launch(library, "parts", 1, x, block, turned) == 0, tools.message()
    np.testing.assert_array_equal(block.reshape(32, 16), x[16:48, 32:48])
    for matrix in range(2):
        columns = x.reshape(-1)[24 * matrix :][: 19 * 48 + 8]
        for n in range(8):
            expected = np.zeros(32, np.float16)
            expected[:20] = columns[n::48]
            found = turned[matrix].reshape(-1, 16)
            np.testing.assert_array_equal(np.concatenate([found[n], found[16 + n]]), expected)


@pytest.mark.parametrize("stride", [2, 3])
def test_patches_lie_by_columns_of_fractals(library: ctypes.CDLL, tools: Toolkit, stride: int) -> None:
    x = np.arange(2 * 32 * 16, dtype=np.float16).reshape(2, 32, 16)
    z = np.zeros((8, 16, 16), np.float16)
    assert launch(library, "patches", 1, x, z, stride) == 0, tools.message()
    for column in range(2):
        np.testing.assert_array_equal(z[column * stride :][:2].reshape(32, 16), x[column])


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        ("odd_step", "ifTranspose with mStep 3, kStep 1 of elements of 1 bytes; mStep must be a multiple of 2"),
        ("to_vectors", "Fixpipe: dst lies in the unified buffer of a vector core"),
        ("ragged", "Fixpipe: nSize must be a multiple of 16 for CO2Layout::NZ, of 8 with isChannelSplit"),
        ("no_stride", "Fixpipe: dstStride is 0"),
        ("scales_elsewhere", "Fixpipe: cbufWorkspace lies in CO1; it must lie in the "),
    ],
)
def test_refusals(library: ctypes.CDLL, tools: Toolkit, kernel: str, message: str) -> None:
    tools.seam.seam_clear()
    launch(library, kernel, 1, np.zeros(1, np.float32))
    assert message in tools.message()
