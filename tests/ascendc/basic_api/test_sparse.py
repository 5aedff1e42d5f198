# ruff: noqa: E501, RUF100 - kernels are quoted as they are written
"""Products with a right matrix of which two in every four elements are kept, against the whole matrix."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ..conftest import Build, Toolkit

MMAD = """
#include "kernel_operator.h"
using namespace AscendC;
extern "C" __global__ __cube__ void sparse(GM_ADDR a, GM_ADDR b, GM_ADDR index, GM_ADDR c, uint16_t m, uint16_t n,
    uint16_t k, int32_t how) {
    const uint32_t rows = (m + 15) / 16 * 16, columns = (n + 15) / 16 * 16, kept = (k / 2 + 31) / 32 * 32;
    LocalTensor<int8_t> a1(TPosition::A1, 0, rows * k), b1(TPosition::B1, 131072, columns * kept);
    LocalTensor<uint8_t> i1(TPosition::B1, 262144, columns * kept / 4);
    LocalTensor<int8_t> a2(TPosition::A2, 0, rows * k), b2(TPosition::B2, 1024, columns * kept);
    LocalTensor<int32_t> c0(TPosition::CO1, 0, rows * columns);
    GlobalTensor<int8_t> ag, bg;
    GlobalTensor<uint8_t> ig;
    GlobalTensor<int32_t> cg;
    ag.SetGlobalBuffer((__gm__ int8_t*)a);
    bg.SetGlobalBuffer((__gm__ int8_t*)b);
    ig.SetGlobalBuffer((__gm__ uint8_t*)index);
    cg.SetGlobalBuffer((__gm__ int32_t*)c);
    DataCopy(a1, ag, rows * k);
    DataCopy(b1, bg, columns * kept);
    DataCopy(i1, ig, columns * kept / 4);
    LoadData2DParams load;
    load.repeatTimes = k / 32;
    load.srcStride = rows / 16;
    for (uint32_t i = 0; i < rows / 16; ++i) LoadData(a2[i * 16 * k], a1[i * 512], load);
    LoadData2DParams keep;
    keep.repeatTimes = columns * kept / 512;
    if (how == 0) LoadDataWithSparse(b2, b1, i1, keep);
    if (how == 1) LoadData(b2, b1, keep);
    MmadParams params;
    params.m = m;
    params.n = n;
    params.k = how == 2 ? 6 : k;
    MmadWithSparse(c0, a2, b2, params);
    FixpipeParamsV220 fix;
    fix.nSize = n;
    fix.mSize = m;
    fix.srcStride = rows;
    fix.dstStride = n;
    fix.ndNum = 1;
    Fixpipe(cg, c0, fix);
}
"""
MATMUL = """
#define ASCENDC_CUBE_ONLY
#include "kernel_operator.h"
#include "lib/matmul_intf.h"
using namespace AscendC;
template <CubeFormat FORMAT>
__aicore__ inline void Run(GM_ADDR a, GM_ADDR b, GM_ADDR index, GM_ADDR c, const TCubeTiling& tiling, int32_t how) {
    TPipe pipe;
    GlobalTensor<int8_t> ag, bg;
    GlobalTensor<uint8_t> ig;
    GlobalTensor<int32_t> cg;
    ag.SetGlobalBuffer((__gm__ int8_t*)a);
    bg.SetGlobalBuffer((__gm__ int8_t*)b);
    ig.SetGlobalBuffer((__gm__ uint8_t*)index);
    cg.SetGlobalBuffer((__gm__ int32_t*)c);
    Matmul<MatmulType<TPosition::GM, CubeFormat::ND, int8_t>,
        SparseMatmulType<TPosition::GM, TPosition::GM, FORMAT, int8_t, true>,
        MatmulType<TPosition::GM, CubeFormat::ND, int32_t>,
        MatmulType<TPosition::GM, CubeFormat::ND, int32_t>, CFG_MDL> mm;
    REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), mm, &tiling);
    mm.SetTensorA(ag);
    mm.SetTensorB(bg, true);
    if (how < 2) mm.SetSparseIndex(ig);
    if (how == 1) {
        while (mm.Iterate()) mm.GetTensorC(cg);
    } else {
        mm.IterateAll(cg);
    }
    mm.End();
}
extern "C" __global__ __cube__ void rows(GM_ADDR a, GM_ADDR b, GM_ADDR index, GM_ADDR c, TCubeTiling tiling,
    int32_t how) {
    Run<CubeFormat::ND>(a, b, index, c, tiling, how);
}
extern "C" __global__ __cube__ void fractals(GM_ADDR a, GM_ADDR b, GM_ADDR index, GM_ADDR c, TCubeTiling tiling,
    int32_t how) {
    Run<CubeFormat::NZ>(a, b, index, c, tiling, how);
}
extern "C" void make_tiling(TCubeTiling* tiling, int m, int n, int k) {
    *tiling = {};
    tiling->usedCoreNum = 1;
    tiling->M = tiling->singleCoreM = m;
    tiling->N = tiling->singleCoreN = n;
    tiling->Ka = tiling->Kb = tiling->singleCoreK = k;
    tiling->baseM = tiling->baseN = tiling->baseK = 16;
}
"""


def _kept(b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of B [n, k] the first two elements that are not 0 of each four, and their indices, as the document codes them."""
    kept, index = (np.zeros((b.shape[0], b.shape[1] // 2), np.uint8) for _ in "bi")
    for n, row in enumerate(b):
        for g in range(b.shape[1] // 4):
            four = row[4 * g : 4 * g + 4]
            places = np.flatnonzero(four)
            if len(places) == 1:
                slot, codes = (1, (0, 2)) if places[0] == 3 else (0, (places[0], 0))
                kept[n, 2 * g + slot] = four.view(np.uint8)[places[0]]
            else:
                codes = (0, 0) if len(places) == 0 else (places[0], places[1] - 1)
                kept[n, 2 * g : 2 * g + len(places)] = four.view(np.uint8)[places]
            index[n, 2 * g : 2 * g + 2] = codes
    return kept.view(np.int8), index


def _fractals(x: np.ndarray, width: int) -> np.ndarray:
    """Rows in fractals of 16 x width, those of the same columns one after the other."""
    x = np.pad(x, ((0, -x.shape[0] % 16), (0, -x.shape[1] % width)))
    return np.ascontiguousarray(x.reshape(x.shape[0] // 16, 16, -1, width).transpose(2, 0, 1, 3))


def _bytes(index: np.ndarray) -> np.ndarray:
    four = index.reshape(index.shape[0], -1, 4)
    return (four << (2 * np.arange(4, dtype=np.uint8))).sum(2).astype(np.uint8)


def _matrices(m: int, n: int, k: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A, and B [n, k] with at most two numbers in each four."""
    random = np.random.default_rng(seed)
    a = random.integers(-9, 10, (m, k)).astype(np.int8)
    b = random.integers(-9, 10, (n, k // 4, 4)).astype(np.int8)
    order = np.argsort(random.random(b.shape), -1)
    np.put_along_axis(b, order[..., :2], 0, -1)
    return a, b.reshape(n, k)


def _product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a.astype(np.int32) @ b.T.astype(np.int32)


def _mmad(build: Build, a: np.ndarray, kept: np.ndarray, index: np.ndarray, how: int = 0) -> tuple[int, np.ndarray]:
    c = np.zeros((len(a), len(kept)), np.int32)
    operands = _fractals(a, 32), _fractals(kept, 32), _fractals(_bytes(index), 8)
    pointers = [ctypes.c_void_p(x.ctypes.data) for x in (*operands, c)]
    return build(MMAD).aclrtlaunch_sparse(1, None, *pointers, len(a), len(kept), a.shape[1], how), c


@pytest.mark.parametrize(("m", "n", "k"), [(16, 16, 64), (33, 40, 128), (2, 7, 64)])
def test_mmad(build: Build, tools: Toolkit, m: int, n: int, k: int) -> None:
    a, b = _matrices(m, n, k, 3)
    status, c = _mmad(build, a, *_kept(b))
    assert status == 0, tools.message()
    np.testing.assert_array_equal(c, _product(a, b))


def test_what_mmad_refuses(build: Build, tools: Toolkit) -> None:
    a, b = _matrices(16, 16, 64, 3)
    kept, index = _kept(b)
    assert _mmad(build, a, kept, index, 1)[0] != 0
    assert "MmadWithSparse: indices 3 and 3 of four elements" in tools.message()  # LoadData brings none
    assert _mmad(build, a, kept, index, 2)[0] != 0
    assert "MmadWithSparse: k is 6; it is a multiple of 4" in tools.message()
    assert _mmad(build, a[:1], kept, index)[0] != 0
    assert "MmadWithSparse: m is 1" in tools.message()
    index[0, :2] = 2, 1
    assert _mmad(build, a, kept, index)[0] != 0
    assert "MmadWithSparse: indices 2 and 1 of four elements" in tools.message()


def _matmul(build: Build, a: np.ndarray, b: np.ndarray, kernel: str = "rows", how: int = 0) -> tuple[int, np.ndarray]:
    library = build(MATMUL)
    (m, k), n = a.shape, len(b)
    kept, index = _kept(b)
    c = np.zeros((m, n), np.int32)
    tiling = (ctypes.c_int32 * 50)()
    library.make_tiling(tiling, m, n, k)
    stored = _fractals(kept, 32) if kernel == "fractals" else kept
    indices = _fractals(_bytes(index), 8) if k % 8 == 0 else np.zeros(64, np.uint8)
    pointers = [ctypes.c_void_p(x.ctypes.data) for x in (a, stored, indices, c)]
    return getattr(library, f"aclrtlaunch_{kernel}")(1, None, *pointers, tiling, how), c


@pytest.mark.parametrize("how", [0, 1], ids=["all", "by blocks"])
@pytest.mark.parametrize("kernel", ["rows", "fractals"])
def test_matmul(build: Build, tools: Toolkit, kernel: str, how: int) -> None:
    a, b = _matrices(20, 36, 1152, 5)  # more of K than a panel
    status, c = _matmul(build, a, b, kernel, how)
    assert status == 0, tools.message()
    np.testing.assert_array_equal(c, _product(a, b))


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(m=st.integers(1, 40), n=st.integers(1, 40), eights=st.integers(1, 20), seed=st.integers(0, 99))
def test_sparse_product_is_that_of_the_whole(
    build: Build, tools: Toolkit, m: int, n: int, eights: int, seed: int
) -> None:
    a, b = _matrices(m, n, 8 * eights, seed)
    status, c = _matmul(build, a, b)
    assert status == 0, tools.message()
    np.testing.assert_array_equal(c, _product(a, b))


def test_what_matmul_refuses(build: Build, tools: Toolkit) -> None:
    a, b = _matrices(16, 16, 64, 3)
    assert _matmul(build, a, b, how=2)[0] != 0
    assert "Matmul: B of a SparseMatmulType without indices; call SetSparseIndex" in tools.message()
    a, b = _matrices(16, 16, 12, 3)
    assert _matmul(build, a, b)[0] != 0
    assert "Matmul: K is 12 of 12 with a SparseMatmulType; they are multiples of 8" in tools.message()
    with pytest.raises(AssertionError, match="on cube cores alone, define ASCENDC_CUBE_ONLY"):
        build(MATMUL.replace("#define ASCENDC_CUBE_ONLY", ""))
