# ruff: noqa: E501, RUF100 - kernels are quoted as they are written
"""How Matmul lays out C: in rows of whole blocks, in fractals of 8 columns, and block by block without waiting."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from ..conftest import Build, Toolkit

M, N, K = 20, 43, 32
SOURCE = """
#include "kernel_operator.h"
#include "lib/matmul_intf.h"
using namespace AscendC;
constexpr MatmulConfig split() {
    MatmulConfig config = GetNormalConfig();
    config.isEnableChannelSplit = true;
    return config;
}
constexpr MatmulConfig SPLIT = split();
template <CubeFormat format, const auto& CONFIG = CFG_NORM,
    template <const auto&, typename...> class POLICY = Impl::Detail::MatmulPolicy>
__aicore__ inline void Run(GM_ADDR a, GM_ADDR b, GM_ADDR c, uint32_t size, const TCubeTiling& tiling, int32_t how) {
    TPipe pipe;
    GlobalTensor<float> ag, bg, cg;
    ag.SetGlobalBuffer((__gm__ float*)a, tiling.M * tiling.Ka);
    bg.SetGlobalBuffer((__gm__ float*)b, tiling.Kb * tiling.N);
    cg.SetGlobalBuffer((__gm__ float*)c, size);
    using In = MatmulType<TPosition::GM, CubeFormat::ND, float>;
    Matmul<In, In, MatmulType<TPosition::GM, format, float>, In, CONFIG, MatmulCallBackFunc<nullptr, nullptr, nullptr>,
        POLICY> mm;
    mm.Init(&tiling, &pipe);
    mm.SetTensorA(ag);
    mm.SetTensorB(bg);
    const int blocks = (tiling.M + 15) / 16 * ((tiling.N + 15) / 16);
    if (how == 0) mm.IterateAll(cg);
    using Plain = Impl::Detail::MatmulPolicy<CONFIG, void, In, In, In, In>;
    if constexpr (std::is_same<POLICY<CONFIG, void, In, In, In, In>, Plain>::value) {
    if (how == 1) while (mm.template Iterate<true>()) mm.template GetTensorC<true>(cg);
    if (how == 2) while (mm.template Iterate<false>()) mm.template GetTensorC<false>(cg);
    if (how >= 3) {
        mm.template Iterate<false>();
        for (int i = 0; i < blocks + how - 3; ++i) mm.template GetTensorC<false>(cg);
    }
    }
    mm.End();
}
extern "C" __global__ __cube__ void rows(GM_ADDR a, GM_ADDR b, GM_ADDR c, uint32_t size, TCubeTiling tiling,
    int32_t how) {
    Run<CubeFormat::ND>(a, b, c, size, tiling, how);
}
extern "C" __global__ __cube__ void aligned(GM_ADDR a, GM_ADDR b, GM_ADDR c, uint32_t size, TCubeTiling tiling,
    int32_t how) {
    Run<CubeFormat::ND_ALIGN>(a, b, c, size, tiling, how);
}
extern "C" __global__ __cube__ void fractals(GM_ADDR a, GM_ADDR b, GM_ADDR c, uint32_t size, TCubeTiling tiling,
    int32_t how) {
    Run<CubeFormat::NZ>(a, b, c, size, tiling, how);
}
extern "C" __global__ __cube__ void halved(GM_ADDR a, GM_ADDR b, GM_ADDR c, uint32_t size, TCubeTiling tiling,
    int32_t how) {
    Run<CubeFormat::NZ, SPLIT>(a, b, c, size, tiling, how);
}
extern "C" __global__ __cube__ void upper(GM_ADDR a, GM_ADDR b, GM_ADDR c, uint32_t size, TCubeTiling tiling,
    int32_t how) {
    Run<CubeFormat::ND, CFG_NORM, Impl::Detail::TrianUpperMatmulPolicy>(a, b, c, size, tiling, how);
}
extern "C" __global__ __cube__ void lower(GM_ADDR a, GM_ADDR b, GM_ADDR c, uint32_t size, TCubeTiling tiling,
    int32_t how) {
    Run<CubeFormat::ND, CFG_MDL, Impl::Detail::TrianLowerMatmulPolicy>(a, b, c, size, tiling, how);
}
extern "C" __global__ __cube__ void kept(GM_ADDR a, GM_ADDR b, GM_ADDR c, uint32_t size, TCubeTiling tiling,
    int32_t how) {
    Run<CubeFormat::ND, CFG_MDL, Impl::Detail::NBuffer33MatmulPolicy>(a, b, c, size, tiling, how);
}
// A policy of an author's own has the parameters that CANN's have.
template <const auto& CONFIG, class IMPL, class A, class B, class C, class BIAS>
struct Own : Impl::Detail::TrianUpperMatmulPolicy<CONFIG, IMPL, A, B, C, BIAS> {
#ifdef OWN_MODULE
    struct CopyCubeInA {};
#endif
};
extern "C" __global__ __cube__ void own(GM_ADDR a, GM_ADDR b, GM_ADDR c, uint32_t size, TCubeTiling tiling,
    int32_t how) {
    Run<CubeFormat::ND, CFG_NORM, Own>(a, b, c, size, tiling, how);
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


def _fractals(c: np.ndarray, width: int) -> np.ndarray:
    padded = np.pad(c, ((0, -M % 16), (0, -N % width)))
    return padded.reshape(padded.shape[0], -1, width).transpose(1, 0, 2).ravel()


def _run(build: Build, kernel: str, how: int, size: int, steps: int = 0) -> tuple[int, np.ndarray, np.ndarray]:
    library = build(SOURCE)
    random = np.random.default_rng(6)
    a, b = (random.integers(-8, 9, shape).astype(np.float32) for shape in ((M, K), (K, N)))
    c = np.zeros(size, np.float32)
    tiling = (ctypes.c_int32 * 50)()
    library.make_tiling(tiling, M, N, K)
    tiling[26] = tiling[27] = steps  # stepKa and stepKb
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in (a, b, c)]
    return getattr(library, f"aclrtlaunch_{kernel}")(1, None, *pointers, size, tiling, how), a @ b, c


@pytest.mark.parametrize("how", [0, 1, 2, 3], ids=["all", "by blocks", "without sync", "begun once"])
@pytest.mark.parametrize("kernel", ["rows", "aligned", "fractals", "halved"])
def test_formats(build: Build, tools: Toolkit, kernel: str, how: int) -> None:
    """Products of small integers are exact."""
    layouts = {
        "rows": lambda c: c.ravel(),
        "aligned": lambda c: np.pad(c, ((0, 0), (0, -N % 8))).ravel(),
        "fractals": lambda c: _fractals(c, 16),
        "halved": lambda c: _fractals(c, 8),
    }
    size = layouts[kernel](np.zeros((M, N), np.float32)).size
    status, product, c = _run(build, kernel, how, size)
    assert status == 0, tools.message()
    np.testing.assert_array_equal(c, layouts[kernel](product))


@pytest.mark.parametrize(("kernel", "beside"), [("upper", np.greater), ("lower", np.less), ("own", np.greater)])
def test_triangles(build: Build, tools: Toolkit, kernel: str, beside: np.ufunc) -> None:
    """Base blocks of 16 x 16 on the other side of the diagonal stay as they were, here 0."""
    status, product, c = _run(build, kernel, 0, M * N)
    assert status == 0, tools.message()
    others = beside(np.arange(M)[:, None] // 16, np.arange(N) // 16)
    np.testing.assert_array_equal(c.reshape(M, N), np.where(others, 0, product))


def test_a_policy_that_replaces_a_module_is_refused(build: Build) -> None:
    with pytest.raises(AssertionError, match=r"the policy replaces a module of Matmul"):
        build("#define OWN_MODULE\n" + SOURCE)


def test_three_blocks_of_a(build: Build, tools: Toolkit) -> None:
    """The tiling says how many blocks stay in L1."""
    status, product, c = _run(build, "kept", 0, M * N, steps=K // 16)
    assert status == 0, tools.message()
    np.testing.assert_array_equal(c.reshape(M, N), product)
    assert _run(build, "kept", 0, M * N)[0] != 0
    assert (
        "NBuffer33MatmulPolicy with stepM 0, stepKa 0 and stepKb 0, where singleCoreK / baseK is 2" in tools.message()
    )


def test_more_blocks_than_there_are_are_refused(build: Build, tools: Toolkit) -> None:
    assert _run(build, "rows", 4, M * N)[0] != 0
    assert "Matmul: GetTensorC after the last base block" in tools.message()


def test_rows_of_the_vector_core(build: Build, tools: Toolkit, monkeypatch: pytest.MonkeyPatch) -> None:
    """On dav-3510 rows of A in local memory are whole blocks of 32 bytes, as DataCopyPad leaves them."""
    monkeypatch.setenv("ASCEND_GRAPH_HOST_SOC", "Ascend950PR_9589")
    source = """
#include "kernel_operator.h"
#include "lib/matmul_intf.h"
using namespace AscendC;
extern "C" __global__ __vector__ void f(GM_ADDR a, GM_ADDR b, GM_ADDR c, TCubeTiling tiling) {
    TPipe pipe;
    GlobalTensor<half> ag, bg;
    GlobalTensor<float> cg;
    ag.SetGlobalBuffer((__gm__ half*)a);
    bg.SetGlobalBuffer((__gm__ half*)b);
    cg.SetGlobalBuffer((__gm__ float*)c);
    TBuf<TPosition::VECOUT> buffer;
    pipe.InitBuffer(buffer, tiling.M * 32 * sizeof(half));
    LocalTensor<half> rows = buffer.Get<half>();
    DataCopyPad(rows, ag, {static_cast<uint16_t>(tiling.M), static_cast<uint32_t>(tiling.Ka * sizeof(half)), 0, 0, 0},
        {false, 0, 0, 0});
    using In = MatmulType<TPosition::GM, CubeFormat::ND, half>;
    Matmul<MatmulType<TPosition::VECOUT, CubeFormat::ND, half>, In,
        MatmulType<TPosition::GM, CubeFormat::ND, float>> mm;
    mm.Init(&tiling, &pipe);
    mm.SetTensorA(rows);
    mm.SetTensorB(bg);
    mm.IterateAll(cg);
    mm.End();
}
extern "C" void make_tiling(TCubeTiling* tiling) {
    *tiling = {};
    tiling->usedCoreNum = 1;
    tiling->M = tiling->singleCoreM = 5;
    tiling->N = tiling->singleCoreN = 16;
    tiling->Ka = tiling->Kb = tiling->singleCoreK = 31;
    tiling->baseM = tiling->baseN = tiling->baseK = 16;
}
"""
    library = build(source, "--npu-arch=dav-3510")
    random = np.random.default_rng(4)
    a, b = (random.integers(-8, 9, shape).astype(np.float16) for shape in ((5, 31), (31, 16)))
    c = np.zeros((5, 16), np.float32)
    tiling = (ctypes.c_int32 * 50)()
    library.make_tiling(tiling)
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in (a, b, c)]
    assert library.aclrtlaunch_f(1, None, *pointers, tiling) == 0, tools.message()
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))


def test_functions_of_sizes_come_with_matmul(build: Build) -> None:
    """Sources call them unqualified after ``using namespace matmul``."""
    build("""
    #include "lib/matmul_intf.h"
    using namespace matmul;
    static_assert(std::is_same<decltype(Ceil(int32_t(7), int32_t(2))), int32_t>::value, "of numbers, in their type");
    static constexpr MatmulApiStaticTiling constants = GetMatmulApiTiling<int, int, int, int>(CFG_MDL);
    static_assert(ToMatmulConfig(CFG_NORM).doNorm && ToMatmulConfig(constants).doMultiDataLoad, "");
    static_assert(Align<uint32_t>(5, 8) == 8 && Align(16, 8) == 16 && AlignDown(15, 8) == 8, "");
    static_assert(CeilNoLog(9, 4) == 3 && CeilNoLog(9, 0) == 0 && Align(9, 0) == 0, "");
    static_assert(MaxValue(3, 7, 5) == 7 && MinValue(3, 7, 5) == 3 && MaxValue(4) == 4, "");
    extern "C" __global__ __aicore__ void nothing(GM_ADDR) {}
    """)
