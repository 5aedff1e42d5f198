# ruff: noqa: E501, PLR0917, RUF100 - kernels and build files are quoted as they are written
"""The cube path: LoadData, Mmad and Fixpipe, and the Matmul object with its tiling, against exact products."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from ..conftest import Build, Toolkit, launch

SOURCE = """
#include "kernel_operator.h"
using namespace AscendC;

// c[m, n] = a[m, k] * b[k, n] through L1, L0 and L0C; sizes are rounded up to fractals on the way.
template <typename T, typename Acc, typename Out>
struct Product {
    static constexpr uint32_t c0 = 32 / sizeof(T);
    uint32_t m, n, k, mb, nb, kb;
    TPipe pipe;
    TQue<TPosition::A1, 1> a1;
    TQue<TPosition::A2, 1> a2;
    TQue<TPosition::B1, 1> b1;
    TQue<TPosition::B2, 1> b2;
    TQue<TPosition::CO1, 1> co1;
    GlobalTensor<T> a, b;
    GlobalTensor<Out> c;

    Product(GM_ADDR x, GM_ADDR y, GM_ADDR z, uint32_t m, uint32_t n, uint32_t k) : m(m), n(n), k(k) {
        mb = (m + 15) / 16;
        nb = (n + 15) / 16;
        kb = (k + c0 - 1) / c0;
        a.SetGlobalBuffer((__gm__ T*)x, m * k);
        b.SetGlobalBuffer((__gm__ T*)y, k * n);
        c.SetGlobalBuffer((__gm__ Out*)z, m * n);
        pipe.InitBuffer(a1, 1, mb * 16 * kb * c0 * sizeof(T));
        pipe.InitBuffer(a2, 1, mb * 16 * kb * c0 * sizeof(T));
        pipe.InitBuffer(b1, 1, kb * c0 * nb * 32 * sizeof(T));
        pipe.InitBuffer(b2, 1, kb * c0 * nb * 32 * sizeof(T));
        pipe.InitBuffer(co1, 1, mb * 16 * nb * 16 * sizeof(Acc));
    }
    void Load(const LocalTensor<T>& left, const LocalTensor<T>& right) {
        auto al = a1.template AllocTensor<T>();
        DataCopy(al, a, Nd2NzParams(1, m, k, 0, k, mb * 16, 1, 0));
        a1.EnQue(al);
        al = a1.template DeQue<T>();
        for (uint32_t i = 0; i < mb; ++i) {
            LoadData2DParams p;
            p.repeatTimes = kb;
            p.srcStride = mb;
            LoadData(left[i * kb * 16 * c0], al[i * 16 * c0], p);
        }
        a1.FreeTensor(al);
        auto bl = b1.template AllocTensor<T>();
        const uint32_t rows = kb * c0;  // of b in L1, rounded up
        DataCopy(bl, b, Nd2NzParams(1, k, n, 0, n, rows, 1, 0));
        if constexpr (sizeof(T) == 2) {
            for (uint32_t i = 0; i < kb; ++i) {
                LoadData(right[i * nb * 256], bl[i * 256], LoadData2DParams(0, nb, kb, 0, 0, true, inc));
            }
        } else if constexpr (sizeof(T) == 1) {
            for (uint32_t i = 0; i < kb; ++i) {  // squares of 32 x 32: two columns of fractals
                LoadDataWithTranspose(right[i * nb * 512], bl[i * 1024],
                    LoadData2dTransposeParams(0, (nb + 1) / 2, kb, 1, 0));
            }
        } else {
            Trap();
        }
        b1.FreeTensor(bl);
    }
    void Run(MmadParams params, QuantMode_t mode, bool relu) {
        auto left = a2.template AllocTensor<T>();
        auto right = b2.template AllocTensor<T>();
        Load(left, right);
        auto sums = co1.template AllocTensor<Acc>();
        params.m = m; params.n = n; params.k = k;
        Mmad(sums, left, right, params);
        if (params.fmOffset == 2) {  // once more, onto the first result
            params.cmatrixInitVal = false;
            Mmad(sums, left, right, params);
        }
        a2.FreeTensor(left);
        b2.FreeTensor(right);
        co1.EnQue(sums);
        sums = co1.template DeQue<Acc>();
        FixpipeParamsV220 fix;
        fix.nSize = n; fix.mSize = m; fix.srcStride = mb * 16; fix.dstStride = n; fix.reluEn = relu;
        fix.quantPre = mode;
        const float scale = 0.5f;
        memcpy(&fix.deqScalar, &scale, sizeof scale);
        if (relu) {  // by the parameters of earlier versions
            FixpipeParams<Acc> runs(nb, m * 16 * sizeof(Acc) / 32, 0, n);
            runs.reluEn = true;
            runs.quantParams = {mode};
            runs.nz2ndParams = {true, 1, 0, 0, uint16_t(n)};
            Fixpipe(c, sums, runs);
        } else {
            Fixpipe(c, sums, fix);
        }
        co1.FreeTensor(sums);
    }
};
#define PRODUCT(name, T, Acc, Out, params, mode, relu) \\
    extern "C" __global__ __cube__ void name(GM_ADDR x, GM_ADDR y, GM_ADDR z, uint32_t m, uint32_t n, uint32_t k) { \\
        Product<T, Acc, Out>(x, y, z, m, n, k).Run(params, mode, relu); \\
    }
PRODUCT(half_float, half, float, float, MmadParams(), QuantMode_t::NoQuant, false)
PRODUCT(half_half, half, float, half, MmadParams(), QuantMode_t::F322F16, false)
PRODUCT(half_relu, half, float, float, MmadParams(), QuantMode_t::NoQuant, true)
PRODUCT(half_twice, half, float, float, MmadParams(0, 0, 0, false, 2, false, false, false), QuantMode_t::NoQuant, false)
PRODUCT(bf16_float, bfloat16_t, float, float, MmadParams(), QuantMode_t::NoQuant, false)
PRODUCT(int8_int32, int8_t, int32_t, int32_t, MmadParams(), QuantMode_t::NoQuant, false)
PRODUCT(int8_half, int8_t, int32_t, half, MmadParams(), QuantMode_t::DEQF16, false)
PRODUCT(half_scaled, half, float, half, MmadParams(), QuantMode_t::QF322F16_PRE, false)

// Both operands through LoadData3DParamsV2: A as it is or turned, B with its rows along k.
extern "C" __global__ __cube__ void patches(GM_ADDR x, GM_ADDR y, GM_ADDR z, uint32_t turned) {
    constexpr uint32_t m = 32, n = 48, k = 64;
    LocalMemAllocator<Hardware::L1> l1;
    LocalMemAllocator<Hardware::L0A> l0a;
    LocalMemAllocator<Hardware::L0B> l0b;
    LocalMemAllocator<Hardware::L0C> l0c;
    auto al = l1.Alloc<TPosition::A1, half>(m * k);
    auto bl = l1.Alloc<TPosition::B1, half>(n * k);
    auto left = l0a.Alloc<half>(m * k);
    auto right = l0b.Alloc<half>(n * k);
    auto sums = l0c.Alloc<float>(m * n);
    GlobalTensor<half> a, b;
    GlobalTensor<float> c;
    a.SetGlobalBuffer((__gm__ half*)x, m * k);
    b.SetGlobalBuffer((__gm__ half*)y, n * k);
    c.SetGlobalBuffer((__gm__ float*)z, m * n);
    const uint16_t rows = turned ? k : m, columns = turned ? m : k;  // of A as it lies in global memory
    DataCopy(al, a, Nd2NzParams(1, rows, columns, 0, columns, rows, 1, 0));
    DataCopy(bl, b, Nd2NzParams(1, k, n, 0, n, k, 1, 0));
    const uint8_t pads[4] = {};
    LoadData(left, al, LoadData3DParamsV2<half>(pads, rows, 1, columns, columns, rows, 0, 0, 1, 1, 1, 1, 1, 1, turned,
        false, (half)0));
    LoadData(right, bl, LoadData3DParamsV2<half>(pads, k, 1, n, n, k, 0, 0, 1, 1, 1, 1, 1, 1, true, false, (half)0));
    Mmad(sums, left, right, MmadParams(m, n, k, 0, false, true));
    Fixpipe(c, sums, FixpipeParamsV220(n, m, m, n, false));
}
// With a bias out of the bias buffer, C in fractals, and the results read through the unified buffer.
template <typename Bias, bool is_passed = true>
__aicore__ inline void add_bias(GM_ADDR x, GM_ADDR y, GM_ADDR z, GM_ADDR bias) {
    constexpr uint32_t m = 32, n = 48, k = 64;
    TPipe pipe;
    TBuf<TPosition::A1> l1;
    TBuf<TPosition::A2> l0a;
    TBuf<TPosition::B2> l0b;
    TBuf<TPosition::CO1> l0c;
    TBuf<TPosition::C1> c1;
    TBuf<TPosition::C2> c2;
    TBuf<TPosition::CO2> co2;
    pipe.InitBuffer(l1, (m + n) * k * 2);
    pipe.InitBuffer(l0a, m * k * 2);
    pipe.InitBuffer(l0b, n * k * 2);
    pipe.InitBuffer(l0c, m * n * 4);
    pipe.InitBuffer(c1, 256);
    pipe.InitBuffer(c2, 256);
    pipe.InitBuffer(co2, m * n * 4);
    GlobalTensor<half> a, b;
    GlobalTensor<float> c;
    GlobalTensor<Bias> bs;
    a.SetGlobalBuffer((__gm__ half*)x, m * k);
    b.SetGlobalBuffer((__gm__ half*)y, n * k);  // transposed: [n, k]
    c.SetGlobalBuffer((__gm__ float*)z, m * n);
    bs.SetGlobalBuffer((__gm__ Bias*)bias, n);
    auto al = l1.Get<half>();
    auto bl = l1.GetWithOffset<half>(n * k, m * k * 2);
    DataCopy(al, a, Nd2NzParams(1, m, k, 0, k, m, 1, 0));
    DataCopy(bl, b, Nd2NzParams(1, n, k, 0, k, n, 1, 0));
    DataCopy(c1.Get<Bias>(), bs, n);
    // In units of 64 bytes at the source; half becomes float on the way.
    DataCopy(c2.Get<float>(), c1.Get<Bias>(), DataCopyParams(1, (n * sizeof(Bias) + 63) / 64, 0, 0));
    auto left = l0a.Get<half>();
    auto right = l0b.Get<half>();
    const uint8_t pads[4] = {};
    LoadData(left, al, LoadData3DParamsV2<half>(pads, m, 1, k, k, m, 0, 0, 1, 1, 1, 1, 1, 1, false, false, (half)0));
    for (uint32_t i = 0; i < k / 16; ++i) {  // [n, k] in fractals is what L0B wants, fractal by fractal
        LoadData(right[i * n * 16], bl[i * n * 16], LoadData2DParams(0, n / 16, 1, 0, 0, false, 0));
    }
    auto sums = l0c.Get<float>();
    SetHF32Mode(false);
    const MmadParams from_table(m, n, k, 0, true, false);
    if constexpr (is_passed) {
        Mmad(sums, left, right, c2.Get<float>(), from_table);
    } else {  // the table is read from its start
        Mmad(sums, left, right, from_table);
    }
    DataCopyEnhancedParams matrix;
    matrix.blockMode = BlockMode::BLOCK_MODE_MATRIX;
    auto out = co2.Get<float>();
    DataCopy(out, sums, DataCopyParams(1, m * n / 256, 0, 0), matrix);
    for (uint32_t j = 0; j < n / 16; ++j) DataCopy(c[j * 16], out[j * m * 16], DataCopyParams(m, 2, 0, (n - 16) / 8));
}
extern "C" __global__ __aicore__ void with_bias(GM_ADDR x, GM_ADDR y, GM_ADDR z, GM_ADDR bias) {
    add_bias<float>(x, y, z, bias);
}
extern "C" __global__ __aicore__ void with_half_bias(GM_ADDR x, GM_ADDR y, GM_ADDR z, GM_ADDR bias) {
    add_bias<half>(x, y, z, bias);
}
extern "C" __global__ __aicore__ void with_the_table(GM_ADDR x, GM_ADDR y, GM_ADDR z, GM_ADDR bias) {
    add_bias<float, false>(x, y, z, bias);
}
extern "C" __global__ __aicore__ void other_paths(GM_ADDR z) {
    TPipe pipe;
    TBuf<TPosition::A2> l0a;
    TBuf<TPosition::CO1> l0c;
    TBuf<TPosition::B1> l1;
    pipe.InitBuffer(l0a, 1024);
    pipe.InitBuffer(l0c, 2048);
    pipe.InitBuffer(l1, 4096);
    GlobalTensor<half> c;
    c.SetGlobalBuffer((__gm__ half*)z, 1024);
    auto left = l0a.Get<half>();
    Fill(left, InitConstValueParams<half>(2, (half)2));
    InitConstValue(l1.Get<half>(), InitConstValueParams<half>(1, 4, 0, (half)3));
    auto sums = l0c.Get<float>();
    for (int i = 0; i < 512; ++i) sums.SetValue(i, i);
    SetFixpipeNz2ndFlag(1, 0, 0);
    SetFixpipePreQuantFlag(0);
    DataCopy(c, sums, DataCopyCO12DstParams(32, 16, 32, 16, QuantMode_t::F322F16, 0, false, true));   // by rows
    // fractals
    DataCopy(l1.Get<half>()[512], sums, DataCopyCO12DstParams(32, 16, 16, 16, QuantMode_t::F322F16, 0, false, false));
    c.SetValue(512, left.GetValue(300));
    auto scales = l1.Get<uint64_t>()[256];
    for (int i = 0; i < 32; ++i) {
        const float scale = i;
        uint64_t word = 0;
        memcpy(&word, &scale, sizeof scale);
        scales.SetValue(i, word);
    }
    auto factors = LocalMemAllocator<Hardware::FIXBUF>().Alloc<uint64_t>(32);
    for (int i = 0; i < 32; ++i) factors.SetValue(i, scales.GetValue(i));
    SetFixPipeConfig(l1.Get<uint64_t>()[384], true);
    SetFixPipeConfig(LocalTensor<uint64_t>(), factors);
    auto whole = l0c.Get<int32_t>();
    for (int i = 0; i < 512; ++i) whole.SetValue(i, i);
    DataCopy(c[600], whole, DataCopyCO12DstParams(32, 4, 32, 16, QuantMode_t::VDEQF16, 0, false, true));  // by columns
    for (int i = 0; i < 32; ++i) factors.SetValue(i, 0);
    SetFixPipeConfig(scales, true);
    // the first rows again
    DataCopy(c[600], whole, DataCopyCO12DstParams(32, 2, 32, 16, QuantMode_t::VDEQF16, 0, false, true));
    FixpipeParams<half> columns(2, 4 * 64 / 32, 0, 0);  // 4 rows of 2 fractals, by the parameters of earlier versions
    columns.quantParams = {QuantMode_t::VDEQF16};
    Fixpipe(l1.Get<half>()[1280], whole, scales, columns);
    c.SetValue(515, l1.Get<half>().GetValue(1280 + 64 + 16));  // row 1 of the second fractal
    columns.dstStride = 32;
    columns.nz2ndParams = {true, 1, 0, 0, 32};
    Fixpipe(c[736], whole, scales, columns);
    c.SetValue(513, l1.Get<half>().GetValue(63));
    c.SetValue(514, l1.Get<half>().GetValue(512 + 300));
}
"""


@pytest.fixture(scope="module")
def library(build: Build) -> ctypes.CDLL:
    return build(SOURCE)


def _small(*shape: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(-4, 5, shape)


SHAPES = [(16, 16, 16), (32, 32, 32), (48, 64, 80), (20, 24, 40), (33, 17, 50), (2, 3, 4), (70, 45, 300)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize(
    ("kernel", "source", "target", "result"),
    [
        ("half_float", np.float16, np.float32, lambda c: c),
        ("half_half", np.float16, np.float16, lambda c: c),
        ("half_relu", np.float16, np.float32, lambda c: np.maximum(c, 0)),
        ("half_twice", np.float16, np.float32, lambda c: 2 * c),
        ("bf16_float", np.uint16, np.float32, lambda c: c),
        ("int8_int32", np.int8, np.int32, lambda c: c),
        ("int8_half", np.int8, np.float16, lambda c: c * 0.5),
    ],
)
def test_product(library: ctypes.CDLL, tools: Toolkit, kernel: str, source: type, target: type, result, shape) -> None:
    m, n, k = shape
    a, b = _small(m, k, seed=1), _small(k, n, seed=2)
    as_bits = source is np.uint16
    x, y = (
        (v.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16) if as_bits else v.astype(source) for v in (a, b)
    )
    z = np.zeros((m, n), target)
    assert launch(library, kernel, 1, x, y, z, m, n, k) == 0, tools.message()
    np.testing.assert_array_equal(z, result(a @ b).astype(target))


def test_scales_that_this_architecture_lacks_are_refused(library: ctypes.CDLL, tools: Toolkit) -> None:
    tools.seam.seam_clear()
    x, z = np.zeros((16, 16), np.float16), np.zeros((16, 16), np.float16)
    launch(library, "half_scaled", 1, x, x, z, 16, 16, 16)
    assert "quantPre 13 is dav-3510's; this architecture has NoQuant, F322F16, F322BF16, (V)DEQF16" in tools.message()


def test_scales_of_columns_on_dav3510(build: Build, tools: Toolkit, monkeypatch: pytest.MonkeyPatch) -> None:
    """Floats scaled by one number for each column, as floats and as halves; and by one for all."""
    monkeypatch.setenv("ASCEND_GRAPH_HOST_SOC", "Ascend950PR_9589")
    code = """
    #include "kernel_operator.h"
    using namespace AscendC;
    template <typename T>
    __aicore__ inline void Store(GM_ADDR z, const LocalTensor<float>& sums, QuantMode_t mode) {
        GlobalTensor<T> out;
        out.SetGlobalBuffer((__gm__ T*)z, 256);
        DataCopyCO12DstParams params(16, 16, 16, 16, mode, 0, false, true);
        DataCopy(out, sums, params);
    }
    extern "C" __global__ __cube__ void scaled(GM_ADDR x, GM_ADDR scales, GM_ADDR wide, GM_ADDR narrow, GM_ADDR same) {
        LocalMemAllocator<Hardware::L1> l1;
        LocalMemAllocator<Hardware::L0C> l0c;
        auto sums = l0c.Alloc<float>(256);
        for (int i = 0; i < 256; ++i) sums.SetValue(i, ((__gm__ float*)x)[i]);
        auto words = l1.Alloc<TPosition::C1, uint64_t>(16);
        auto columns = LocalTensor<uint64_t>(TPosition::C2PIPE2GM, 0, 16);
        GlobalTensor<uint64_t> from;
        from.SetGlobalBuffer((__gm__ uint64_t*)scales, 16);
        DataCopy(words, from, 16);
        PipeBarrier<PIPE_ALL>();
        DataCopy(columns, words, 16);
        SetFixPipeConfig(columns);
        Store<float>(wide, sums, QuantMode_t::VQF322F32_PRE);
        Store<half>(narrow, sums, QuantMode_t::VQF322F16_PRE);
        SetFixpipePreQuantFlag(((__gm__ uint64_t*)scales)[2]);
        Store<float>(same, sums, QuantMode_t::QF322F32_PRE);
    }
    """
    x = np.random.default_rng(4).integers(-50, 50, (16, 16)).astype(np.float32)
    scales = np.arange(1, 17, dtype=np.float32) / 4
    words = scales.view(np.uint32).astype(np.uint64)
    wide, narrow, same = np.zeros((16, 16), np.float32), np.zeros((16, 16), np.float16), np.zeros((16, 16), np.float32)
    library = build(code, "--npu-arch=dav-3510")
    assert launch(library, "scaled", 1, x, words, wide, narrow, same) == 0, tools.message()
    np.testing.assert_array_equal(wide, x * scales)
    np.testing.assert_array_equal(narrow, (x * scales).astype(np.float16))
    np.testing.assert_array_equal(same, x * scales[2])


def test_an_element_is_the_same_wherever_it_lies(library: ctypes.CDLL, tools: Toolkit) -> None:
    """Products are added in the order of k for every element, also in rows and columns that fill no vector."""
    m, n, k = 31, 45, 290
    draw = np.random.default_rng(5)
    x = np.repeat(draw.standard_normal((1, k)).astype(np.float16), m, axis=0)
    y = np.repeat(draw.standard_normal((k, 1)).astype(np.float16), n, axis=1)
    z = np.zeros((m, n), np.float32)
    assert launch(library, "half_float", 1, x, y, z, m, n, k) == 0, tools.message()
    assert np.unique(z.view(np.uint32)).size == 1
    np.testing.assert_allclose(z, x.astype(np.float64) @ y.astype(np.float64), rtol=1e-5, atol=1e-5)


def test_fractions_stay(library: ctypes.CDLL, matmul: ctypes.CDLL, tools: Toolkit) -> None:
    """Results in float are not rounded to whole numbers on their way out."""
    shape = m, n, k = (32, 32, 32)
    a, b = _small(m, k, seed=21) / 8, _small(k, n, seed=22) / 4
    x, y = a.astype(np.float16), b.astype(np.float16)
    z, c = np.zeros((m, n), np.float32), np.zeros((m, n), np.float32)
    assert launch(library, "half_float", 1, x, y, z, m, n, k) == 0, tools.message()
    assert _call(matmul, "half_matmul", x, y, c, None, shape, cores=2) == 0, tools.message()
    np.testing.assert_array_equal(z, (a @ b).astype(np.float32))
    np.testing.assert_array_equal(c, z)


def test_single_row_is_a_vector(library: ctypes.CDLL, build: Build, tools: Toolkit) -> None:
    """With m = 1 the row lies in L0A element after element."""
    vector = build("""
#include "kernel_operator.h"
using namespace AscendC;
extern "C" __global__ __aicore__ void gemv(GM_ADDR x, GM_ADDR y, GM_ADDR z) {
    LocalMemAllocator<Hardware::L1> l1;
    auto al = l1.Alloc<TPosition::A1, half>(256);
    auto bl = l1.Alloc<TPosition::B1, half>(256 * 16);
    LocalMemAllocator<Hardware::L0A> l0a;
    LocalMemAllocator<Hardware::L0B> l0b;
    LocalMemAllocator<Hardware::L0C> l0c;
    auto left = l0a.Alloc<half>(256);
    auto right = l0b.Alloc<half>(256 * 16);
    auto sums = l0c.Alloc<float>(256);
    GlobalTensor<half> a, b;
    GlobalTensor<float> c;
    a.SetGlobalBuffer((__gm__ half*)x, 256);
    b.SetGlobalBuffer((__gm__ half*)y, 256 * 16);
    c.SetGlobalBuffer((__gm__ float*)z, 16);
    DataCopy(al, a, 256);
    DataCopy(bl, b, Nd2NzParams(1, 256, 16, 0, 16, 256, 1, 0));
    LoadData(left, al, LoadData2DParams(0, 1, 0, 0, 0, false, 0));
    LoadData(right, bl, LoadData2DParams(0, 16, 1, 0, 0, true, 0));
    Mmad(sums, left, right, MmadParams(1, 16, 256, 0, false, true));
    Fixpipe(c, sums, FixpipeParamsV220(16, 1, 16, 16, false));
}
""")
    x, y, z = (
        _small(256, seed=3).astype(np.float16),
        _small(256, 16, seed=4).astype(np.float16),
        np.zeros(16, np.float32),
    )
    assert launch(vector, "gemv", 1, x, y, z) == 0, tools.message()
    np.testing.assert_array_equal(z, x.astype(np.float32) @ y.astype(np.float32))


@pytest.mark.parametrize("turned", [0, 1])
def test_patches(library: ctypes.CDLL, tools: Toolkit, turned: int) -> None:
    a, b = _small(32, 64, seed=23), _small(64, 48, seed=24)
    z = np.zeros((32, 48), np.float32)
    x = (a.T if turned else a).astype(np.float16).copy()
    assert launch(library, "patches", 1, x, b.astype(np.float16), z, turned) == 0, tools.message()
    np.testing.assert_array_equal(z, a @ b)


@pytest.mark.parametrize(
    ("kernel", "dtype"),
    [("with_bias", np.float32), ("with_half_bias", np.float16), ("with_the_table", np.float32)],
)
def test_bias(library: ctypes.CDLL, tools: Toolkit, kernel: str, dtype: type) -> None:
    a, b, bias = _small(32, 64, seed=5), _small(64, 48, seed=6), _small(48, seed=7)
    z = np.zeros((32, 48), np.float32)
    arguments = (a.astype(np.float16), b.T.copy().astype(np.float16), z, bias.astype(dtype))
    assert launch(library, kernel, 1, *arguments) == 0, tools.message()
    np.testing.assert_array_equal(z, a @ b + bias)


def test_other_paths(library: ctypes.CDLL, tools: Toolkit) -> None:
    z = np.zeros(1024, np.float16)
    assert launch(library, "other_paths", 1, z) == 0, tools.message()
    fractals = np.arange(512).reshape(2, 16, 16)
    np.testing.assert_array_equal(z[:512].reshape(16, 32), fractals.transpose(1, 0, 2).reshape(16, 32))
    assert z[512:515].tolist() == [2, 3, 300]
    columns = fractals[:, :4].transpose(1, 0, 2).reshape(4, 32) * np.arange(32)
    np.testing.assert_array_equal(z[600:728].reshape(4, 32), columns.astype(np.float16))
    np.testing.assert_array_equal(z[736:864], z[600:728])
    assert z[515] == columns[1, 16]


MATMUL = """
#include "kernel_operator.h"
#include "lib/matmul_intf.h"
#include "tiling/tiling_api.h"
using namespace matmul;
static constexpr MatmulConfig config = GetMDLConfig();
static_assert(GetNormalConfig().doNorm && GetBasicConfig(16, 16, 16).basicK == 16);
static_assert(GetMDLConfig(true, false, 2, false, false, false, true).doMTE2Preload == 2 && !GetMDLConfig().doNorm);
static_assert(GetSpecialMDLConfig().doSpecialMDL && GetIBShareNormConfig().doIBShareNorm && !CFG_IBSHARE_NORM.doNorm);

template <typename AT, typename BT, typename CT, CubeFormat format>
__aicore__ inline void Run(GM_ADDR a, GM_ADDR b, GM_ADDR c, GM_ADDR bias, const TCubeTiling& tiling, bool at, bool bt,
    int how) {
    TPipe pipe;
    GlobalTensor<AT> ag;
    GlobalTensor<BT> bg;
    GlobalTensor<CT> cg;
    GlobalTensor<CT> biasg;
    ag.SetGlobalBuffer((__gm__ AT*)a, tiling.M * tiling.Ka);
    bg.SetGlobalBuffer((__gm__ BT*)b, tiling.Kb * tiling.N);
    cg.SetGlobalBuffer((__gm__ CT*)c, tiling.M * tiling.N);
    if (bias != nullptr) biasg.SetGlobalBuffer((__gm__ CT*)bias, tiling.N);
    Matmul<MatmulType<TPosition::GM, format, AT>, MatmulType<TPosition::GM, format, BT>,
        MatmulType<TPosition::GM, CubeFormat::ND, CT>,
        MatmulType<TPosition::GM, CubeFormat::ND, CT>, config> mm;
    REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), mm, &tiling);
    if (GetBlockIdx() >= tiling.usedCoreNum) return;
    const int rows = (tiling.M + tiling.singleCoreM - 1) / tiling.singleCoreM;
    const int row = GetBlockIdx() % rows, column = GetBlockIdx() / rows;
    const int m = row * tiling.singleCoreM, n = column * tiling.singleCoreN;
    mm.SetTensorA(ag[at ? m : m * tiling.Ka], at);
    mm.SetTensorB(bg[bt ? n * tiling.Kb : n], bt);
    if (bias != nullptr) mm.SetBias(biasg[n]);
    mm.SetTail(min(tiling.singleCoreM, tiling.M - m), min(tiling.singleCoreN, tiling.N - n));
    auto part = cg[m * tiling.N + n];
    if (how == 0) mm.IterateAll(part);
    if (how == 1) while (mm.template Iterate<true>()) mm.template GetTensorC<true>(part);
    if (how == 2) { mm.IterateAll(part); mm.IterateAll(part, 1); }
    // through the unified buffer; with 4 added to what is in global memory already, with 5 without waiting
    if (how >= 3) {
        TQue<TPosition::VECIN, 1> queue;
        pipe.InitBuffer(queue, 1, tiling.baseM * tiling.baseN * sizeof(CT));
        int block = 0;
        const int own_m = min(tiling.singleCoreM, tiling.M - m), own_n = min(tiling.singleCoreN, tiling.N - n);
        const int blocks = (own_m + tiling.baseM - 1) / tiling.baseM;
        const int all = blocks * ((own_n + tiling.baseN - 1) / tiling.baseN);
        if (how == 5) mm.template Iterate<false>();
        while (how == 5 ? block < all : mm.Iterate()) {
            auto local = queue.AllocTensor<CT>();
            if (how == 3) mm.GetTensorC(local);
            if (how == 4) mm.GetTensorC(part, local);
            if (how == 5) { mm.AsyncGetTensorC(local); mm.WaitGetTensorC(); }
            if (how == 4) SetAtomicAdd<CT>();
            Muls(local, local, (CT)2, tiling.baseM * tiling.baseN);
            const int i = block % blocks * tiling.baseM, j = block / blocks * tiling.baseN;
            const uint16_t height = min(tiling.baseM, own_m - i), width = min(tiling.baseN, own_n - j);
            for (int r = 0; r < height; ++r) {
                DataCopyPad(part[(i + r) * tiling.N + j], local[r * tiling.baseN],
                    DataCopyExtParams{1, uint32_t(width * sizeof(CT)), 0, 0, 0});
            }
            SetAtomicNone();
            queue.FreeTensor(local);
            ++block;
        }
    }
    mm.End();
}
#define MATMUL(name, AT, CT) \\
    extern "C" __global__ __aicore__ void name(GM_ADDR a, GM_ADDR b, GM_ADDR c, GM_ADDR bias, TCubeTiling tiling, \\
        bool at, bool bt, int32_t how) { \\
        Run<AT, AT, CT, CubeFormat::ND>(a, b, c, bias, tiling, at, bt, how); \\
    }
MATMUL(half_matmul, half, float)
// Fractals in and out, on unified cores, with another name for the same things.
extern "C" __global__ __cube__ void nz_matmul(GM_ADDR a, GM_ADDR b, GM_ADDR c, TCubeTiling tiling) {
    TPipe pipe;
    GlobalTensor<half> ag, bg;
    GlobalTensor<float> cg;
    ag.SetGlobalBuffer((__gm__ half*)a, tiling.M * tiling.Ka);
    bg.SetGlobalBuffer((__gm__ half*)b, tiling.Kb * tiling.N);
    cg.SetGlobalBuffer((__gm__ float*)c, tiling.M * tiling.N);
    using In = MatmulType<TPosition::GM, CubeFormat::NZ, half>;
    MatmulImpl<In, In, MatmulType<TPosition::GM, CubeFormat::NZ, float>> mm;
    mm.Init(&tiling, &pipe);
    mm.SetTensorA(ag);
    mm.SetTensorB(bg);
    mm.IterateAll(cg);
    AscendC::MatmulImpl<In, In, MatmulType<TPosition::GM, CubeFormat::NZ, float>> second;
    if (GetBlockNum() == 2) { REGIST_CUBE_OBJ(&pipe, GetSysWorkSpacePtr(), second, &tiling); }
}
// Tilings that are constants: of the blocks, and of everything.
constexpr MatmulShapeParams blocks{0, 0, 0, 16, 32, 16}, everything{32, 32, 64, 16, 32, 16};
constexpr MatmulFuncParams functions{false, false, false, false, 2, IterateOrder::ORDER_N};
constexpr MatmulConfig blocks_config = GetMMConfig<MatmulConfigMode::CONFIG_MDL>(functions, blocks);
static_assert(blocks_config.doMultiDataLoad && blocks_config.doMTE2Preload == 2 && blocks_config.basicN == 32);
static_assert(GetMMConfig<MatmulConfigMode::CONFIG_NORM>(MatmulBatchParams{true}, MatmulQuantParams{true}).isNBatch);
static_assert(GetMMConfig<MatmulConfigMode::CONFIG_IBSHARE>().doIBShareNorm
    && GetMMConfig<MatmulConfigMode::CONFIG_SPECIALMDL>().doSpecialMDL);
template <typename T>
using Plain = MatmulType<TPosition::GM, CubeFormat::ND, T>;
constexpr auto of_blocks = GetMatmulApiTiling<Plain<half>, Plain<half>, Plain<float>, Plain<float>>(blocks_config);
constexpr MatmulApiStaticTiling of_everything =
    GetMatmulApiTiling<Plain<half>, Plain<half>, Plain<float>, Plain<float>>(
    GetMMConfig<MatmulConfigMode::CONFIG_NORM>(everything), 524288);
template <const auto& constants>
__aicore__ inline void RunConstant(GM_ADDR a, GM_ADDR b, GM_ADDR c, const TCubeTiling* tiling, bool shape) {
    TPipe pipe;
    GlobalTensor<half> ag, bg;
    GlobalTensor<float> cg;
    ag.SetGlobalBuffer((__gm__ half*)a, 32 * 64);
    bg.SetGlobalBuffer((__gm__ half*)b, 64 * 32);
    cg.SetGlobalBuffer((__gm__ float*)c, 32 * 32);
    Matmul<Plain<half>, Plain<half>, Plain<float>, Plain<float>, constants> mm;
    REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), mm, (void*)tiling);
    if (GetBlockIdx() != 0) return;
    if (shape) mm.SetOrgShape(32, 32, 64);
    mm.SetTensorA(ag);
    mm.SetTensorB(bg);
    // Blocks of 16 x 32: two of them, one below the other.
    for (int i = 0; mm.Iterate(); ++i) mm.GetTensorC(cg[i * 16 * 32], 0, true);
    mm.End();
}
extern "C" __global__ __aicore__ void constant_matmul(GM_ADDR a, GM_ADDR b, GM_ADDR c, TCubeTiling tiling,
    int32_t how) {
    if (how == 0) RunConstant<of_blocks>(a, b, c, &tiling, false);
    if (how == 1) RunConstant<of_everything>(a, b, c, nullptr, true);
    if (how == 2) RunConstant<of_blocks>(a, b, c, nullptr, true);
    if (how == 3) RunConstant<of_everything>(a, b, c, nullptr, false);
}
MATMUL(half_half_matmul, half, half)
MATMUL(float_matmul, float, float)
MATMUL(int8_matmul, int8_t, int32_t)
extern "C" int64_t make_tiling(TCubeTiling* tiling, int m, int n, int k, int cores, int bias) {
    matmul_tiling::MultiCoreMatmulTiling api(*platform_ascendc::PlatformAscendCManager::GetInstance());
    api.SetDim(cores);
    api.SetAType(matmul_tiling::TPosition::GM, matmul_tiling::CubeFormat::ND, matmul_tiling::DataType::DT_FLOAT16,
        false);
    api.SetBType(matmul_tiling::TPosition::GM, matmul_tiling::CubeFormat::ND, matmul_tiling::DataType::DT_FLOAT16,
        false);
    api.SetCType(matmul_tiling::TPosition::GM, matmul_tiling::CubeFormat::ND, matmul_tiling::DataType::DT_FLOAT);
    api.SetOrgShape(m, n, k);
    api.SetShape(m, n, k);
    api.EnableBias(bias);
    api.SetBufferSpace(-1, -1, -1);
    if (m < 64) api.SetFixSplit(16, 16, -1);
    const int64_t status = api.GetTiling(*tiling);
    return status == 0 ? tiling->usedCoreNum : status;
}
"""


@pytest.fixture(scope="module")
def matmul(build: Build) -> ctypes.CDLL:
    return build(MATMUL)


def _call(matmul: ctypes.CDLL, kernel: str, a, b, c, bias, shape, *, cores: int, at=False, bt=False, how=0) -> int:
    tiling = (ctypes.c_int32 * 50)()
    m, n, k = shape
    used = matmul.make_tiling(tiling, m, n, k, cores, bias is not None)
    assert 1 <= used <= cores
    pointer = lambda array: ctypes.c_void_p(None if array is None else array.ctypes.data)  # noqa: E731
    # Two vector cores stand for one cube core, so a group is launched for every two parts.
    function = getattr(matmul, f"aclrtlaunch_{kernel}")
    return function((used + 1) // 2, None, *map(pointer, (a, b, c, bias)), tiling, at, bt, how)


@pytest.mark.parametrize(
    ("shape", "cores", "part"),
    [
        # Documented by CANN's samples: the first is divided over N, the second over M.
        ((512, 128, 128), 2, (512, 64)),
        ((512, 512, 128), 2, (256, 512)),
        # Whole blocks of 16, more of M than of N; what is left over is the kernel's business.
        ((1000, 700, 500), 20, (126, 352)),
        ((128, 7680, 16), 20, (128, 384)),
        ((32, 32, 32), 4, (32, 32)),
    ],
    ids=str,
)
def test_a_product_is_divided_among_cores_as_cann_divides_it(
    matmul: ctypes.CDLL, shape: tuple[int, int, int], cores: int, part: tuple[int, int]
) -> None:
    tiling = (ctypes.c_int32 * 50)()
    used = matmul.make_tiling(tiling, *shape, cores, 0)
    assert tuple(tiling[5:7]) == part
    assert used == -(-shape[0] // part[0]) * -(-shape[1] // part[1])


@pytest.mark.parametrize("how", [0, 1, 2, 3, 4, 5], ids=["all", "iterate", "atomic", "local", "both", "async"])
@pytest.mark.parametrize("shape", [(32, 32, 32), (128, 256, 64), (100, 70, 33), (300, 520, 600)], ids=str)
def test_matmul(matmul: ctypes.CDLL, tools: Toolkit, shape: tuple[int, int, int], how: int) -> None:
    m, n, k = shape
    a, b = _small(m, k, seed=8), _small(k, n, seed=9)
    c = np.zeros((m, n), np.float32)
    assert (
        _call(matmul, "half_matmul", a.astype(np.float16), b.astype(np.float16), c, None, shape, cores=4, how=how) == 0
    ), tools.message()
    np.testing.assert_array_equal(c, a @ b * (1, 1, 2, 2, 3, 2)[how])


@pytest.mark.parametrize(
    ("kernel", "source", "target"),
    [
        ("half_half_matmul", np.float16, np.float16),
        ("float_matmul", np.float32, np.float32),
        ("int8_matmul", np.int8, np.int32),
    ],
)
@pytest.mark.parametrize(("at", "bt"), [(False, False), (True, False), (False, True), (True, True)])
def test_matmul_types(
    matmul: ctypes.CDLL, tools: Toolkit, kernel: str, source: type, target: type, at: bool, bt: bool
) -> None:
    shape = m, n, k = (48, 80, 64)
    a, b, bias = _small(m, k, seed=10), _small(k, n, seed=11), _small(n, seed=12).astype(target)
    c = np.zeros((m, n), target)
    x = (a.T if at else a).astype(source).copy()
    y = (b.T if bt else b).astype(source).copy()
    assert _call(matmul, kernel, x, y, c, bias, shape, cores=3, at=at, bt=bt) == 0, tools.message()
    np.testing.assert_array_equal(c, (a @ b + bias).astype(target))


def test_matmul_fractals(matmul: ctypes.CDLL, tools: Toolkit) -> None:
    m, n, k = 32, 48, 64
    a, b = _small(m, k, seed=13), _small(k, n, seed=14)

    def fractals(matrix: np.ndarray, dtype: type) -> np.ndarray:
        rows, columns = matrix.shape
        return matrix.reshape(rows, columns // 16, 16).transpose(1, 0, 2).astype(dtype).copy()

    tiling = (ctypes.c_int32 * 50)()
    assert matmul.make_tiling(tiling, m, n, k, 1, 0) == 1
    arrays = fractals(a, np.float16), fractals(b, np.float16), np.zeros((n // 16, m, 16), np.float32)
    assert (
        matmul.aclrtlaunch_nz_matmul(1, None, *(ctypes.c_void_p(array.ctypes.data) for array in arrays), tiling) == 0
    ), tools.message()
    np.testing.assert_array_equal(arrays[2], fractals(a @ b, np.float32))


def test_matmul_with_constant_tilings(matmul: ctypes.CDLL, tools: Toolkit) -> None:
    a, b = _small(32, 64, seed=14), _small(64, 32, seed=15)
    halves = a.astype(np.float16), b.astype(np.float16)
    tiling = (ctypes.c_int32 * 50)()
    assert matmul.make_tiling(tiling, 32, 32, 64, 1, 0) == 1

    def call(how: int) -> tuple[int, np.ndarray]:
        c = np.zeros((32, 32), np.float32)
        pointers = [ctypes.c_void_p(array.ctypes.data) for array in (*halves, c)]
        return matmul.aclrtlaunch_constant_matmul(1, None, *pointers, tiling, how), c

    for how in (0, 1):
        status, c = call(how)
        assert status == 0, tools.message()
        np.testing.assert_array_equal(c, a @ b)
    for how, message in (
        (2, "Matmul: not initialized; call REGIST_MATMUL_OBJ with its tiling, or Init"),
        (3, "Matmul: the sizes of the matrices are not known; without a tiling call SetOrgShape first"),
    ):
        assert call(how)[0] == 507015
        assert message in tools.message()


def test_matmul_checks(matmul: ctypes.CDLL, tools: Toolkit) -> None:
    """A tiling for a larger matrix than there is breaks the bounds of global memory."""
    c = np.zeros((32, 32), np.float32)
    tiling = (ctypes.c_int32 * 50)()
    x = np.zeros((32, 32), np.float16)
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in (x, x, c)]
    assert matmul.aclrtlaunch_half_matmul(1, None, *pointers, None, tiling, False, False, 0) == 507015
    assert "Matmul: tiling with singleCore 0 x 0 x 0" in tools.message()
    assert matmul.make_tiling(tiling, 0, 32, 32, 1, 0) == -1
