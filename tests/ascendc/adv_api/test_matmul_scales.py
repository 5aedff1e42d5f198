# ruff: noqa: E501, RUF100 - kernels are quoted as they are written
"""Matmul whose results are scaled as they leave: by one scale, or by one for each column."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from ..conftest import Build, Toolkit

M, N, K = 20, 48, 64
SOURCE = """
#include "kernel_operator.h"
#include "lib/matmul_intf.h"
using namespace AscendC;
template <typename CT>
__aicore__ inline void Run(GM_ADDR a, GM_ADDR b, GM_ADDR c, GM_ADDR scales, const TCubeTiling& tiling, int32_t how) {
    TPipe pipe;
    GlobalTensor<int8_t> ag, bg;
    GlobalTensor<CT> cg;
    GlobalTensor<uint64_t> words;
    ag.SetGlobalBuffer((__gm__ int8_t*)a, tiling.M * tiling.Ka);
    bg.SetGlobalBuffer((__gm__ int8_t*)b, tiling.Kb * tiling.N);
    cg.SetGlobalBuffer((__gm__ CT*)c, tiling.M * tiling.N);
    words.SetGlobalBuffer((__gm__ uint64_t*)scales, tiling.N);
    using In = MatmulType<TPosition::GM, CubeFormat::ND, int8_t>;
    Matmul<In, In, MatmulType<TPosition::GM, CubeFormat::ND, CT>> mm;
    mm.Init(&tiling, &pipe);
    const int column = GetBlockIdx() * tiling.singleCoreN;
    mm.SetTensorA(ag);
    mm.SetTensorB(bg[column]);
    if (how == 0) mm.SetQuantScalar(words.GetValue(0));
    if (how != 0) mm.SetQuantVector(words[column]);
    if (how == 2) while (mm.template Iterate<true>()) mm.template GetTensorC<true>(cg[column]);
    if (how != 2) mm.IterateAll(cg[column]);
    mm.End();
}
extern "C" __global__ __cube__ void to_half(GM_ADDR a, GM_ADDR b, GM_ADDR c, GM_ADDR scales, TCubeTiling tiling,
    int32_t how) {
    Run<half>(a, b, c, scales, tiling, how);
}
extern "C" __global__ __cube__ void to_int8(GM_ADDR a, GM_ADDR b, GM_ADDR c, GM_ADDR scales, TCubeTiling tiling,
    int32_t how) {
    Run<int8_t>(a, b, c, scales, tiling, how);
}
extern "C" void make_tiling(TCubeTiling* tiling, int m, int n, int k) {
    *tiling = {};
    tiling->usedCoreNum = 2;
    tiling->M = tiling->singleCoreM = m;
    tiling->N = n;
    tiling->singleCoreN = n / 2;
    tiling->Ka = tiling->Kb = tiling->singleCoreK = k;
    tiling->baseM = tiling->baseN = tiling->baseK = 16;
}
"""


@pytest.mark.parametrize("how", [0, 1, 2], ids=["scalar", "vector", "vector by blocks"])
def test_scales_of_ten_bits(build: Build, tools: Toolkit, how: int) -> None:
    """Of a scale's mantissa ten bits count: 0.1 is 0.09997559."""
    a, b = np.zeros((M, K), np.int8), np.zeros((K, N), np.int8)
    a[:, 0], b[0] = 127, 124
    words = np.full(N, np.float32(0.1).view(np.uint32), np.uint64)
    c = np.zeros((M, N), np.float16)
    tiling = (ctypes.c_int32 * 50)()
    library = build(SOURCE)
    library.make_tiling(tiling, M, N, K)
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in (a, b, c, words)]
    assert library.aclrtlaunch_to_half(2, None, *pointers, tiling, how) == 0, tools.message()
    short = (words.astype(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)[0]
    assert np.float16(127 * 124 * np.float64(short)) != np.float16(127 * 124 * 0.1)
    assert (c == np.float16(127 * 124 * np.float64(short))).all()


@pytest.mark.parametrize("how", [0, 1, 2], ids=["scalar", "vector", "vector by blocks"])
@pytest.mark.parametrize("kernel", ["to_half", "to_int8"])
def test_scales(build: Build, tools: Toolkit, kernel: str, how: int) -> None:
    """Scales are powers of two, so that products are exact; those to 8 bits have an offset, and saturate."""
    library = build(SOURCE)
    random = np.random.default_rng(5)
    a, b = (random.integers(-20, 21, size).astype(np.int8) for size in ((M, K), (K, N)))
    scales = (2.0 ** random.integers(-8, -2, N)).astype(np.float32)
    scales[0] = 0.125  # many results are beyond 8 bits
    offsets = random.integers(-40, 41, N) if kernel == "to_int8" else np.zeros(N, np.int64)
    words = scales.view(np.uint32).astype(np.uint64) | ((offsets.astype(np.uint64) & np.uint64(0x1FF)) << np.uint64(37))
    words |= np.uint64(1 << 46)  # bytes have a sign
    c = np.zeros((M, N), np.float16 if kernel == "to_half" else np.int8)
    tiling = (ctypes.c_int32 * 50)()
    library.make_tiling(tiling, M, N, K)
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in (a, b, c, words)]
    assert getattr(library, f"aclrtlaunch_{kernel}")(2, None, *pointers, tiling, how) == 0, tools.message()
    if how == 0:
        scales, offsets = np.full(N, scales[0]), np.full(N, offsets[0])
    expected = (a.astype(np.int64) @ b.astype(np.int64)) * scales.astype(np.float64)
    if kernel == "to_int8":
        expected = np.clip(np.clip(np.rint(expected), -256, 255) + offsets, -128, 127)
        assert (expected == 127).any() or (expected == -128).any()
    np.testing.assert_array_equal(c.astype(np.float64), expected.astype(c.dtype).astype(np.float64))
