# ruff: noqa: E501, RUF100 - kernels are quoted as they are written
"""Integers of 4 bits, two to a byte: in tensors, in Cast, on the cube and in Matmul, against NumPy."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ..conftest import Build, Toolkit, launch

random = np.random.default_rng(4)


def pack(values: np.ndarray) -> np.ndarray:
    """Pairs of neighbors: the first has the lower half of their byte."""
    nibbles = values.reshape(-1, 2).astype(np.uint8) & 15
    return nibbles[:, 0] | nibbles[:, 1] << 4


def unpack(data: np.ndarray) -> np.ndarray:
    nibbles = np.stack([data.view(np.uint8) & 15, data.view(np.uint8) >> 4], axis=-1).reshape(-1).astype(np.int8)
    return np.where(nibbles > 7, nibbles - 16, nibbles).astype(np.int8)


def _numbers(*shape: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).integers(-8, 8, shape)


VECTORS = """
#include "kernel_operator.h"
using namespace AscendC;
template <typename From, typename To>
__aicore__ inline void Convert(GM_ADDR x, GM_ADDR z, uint32_t from_bytes, uint32_t to_bytes, uint32_t count,
    int32_t mode, int32_t form) {
    TPipe pipe;
    TBuf<TPosition::VECCALC> bx, bz;
    pipe.InitBuffer(bx, 8192);
    pipe.InitBuffer(bz, 8192);
    GlobalTensor<uint8_t> gx, gz;
    gx.SetGlobalBuffer((__gm__ uint8_t*)x, from_bytes);
    gz.SetGlobalBuffer((__gm__ uint8_t*)z, to_bytes);
    DataCopyPadExtParams<uint8_t> pad{false, 0, 0, 0};
    DataCopyPad(bx.Get<uint8_t>(), gx, DataCopyExtParams{1, from_bytes, 0, 0, 0}, pad);
    DataCopyPad(bz.Get<uint8_t>(), gz, DataCopyExtParams{1, to_bytes, 0, 0, 0}, pad);
    auto from = bx.Get<From>();
    auto to = bz.Get<To>();
    const auto round = static_cast<RoundMode>(mode);
    const bool narrows = sizeof(To) < sizeof(From);
    const UnaryRepeatParams strides(1, 1, narrows ? 2 : 8, narrows ? 8 : 2);
    uint64_t bits[2] = {0xcccccccccccccccc, 0x3};
    if (form == 0) Cast(to, from, round, count);
    if (form == 1) Cast(to, from, round, (uint64_t)count, 2, strides);
    if (form == 2) Cast(to, from, round, bits, 2, strides);
    if (form == 3) { bits[0] = 0xe; Cast(to, from, round, bits, 2, strides); }
    if (form == 4) {  // in place
        auto same = bx.Get<To>();
        Cast(same, from, round, count);
        DataCopyPad(gz, same.template ReinterpretCast<uint8_t>(), DataCopyExtParams{1, to_bytes, 0, 0, 0});
        return;
    }
    DataCopyPad(gz, bz.Get<uint8_t>(), DataCopyExtParams{1, to_bytes, 0, 0, 0});
}
#define CONVERT(name, From, To) \\
    extern "C" __global__ __aicore__ void name(GM_ADDR x, GM_ADDR z, uint32_t fb, uint32_t tb, uint32_t n, \\
        int32_t mode, int32_t form) { \\
        Convert<From, To>(x, z, fb, tb, n, mode, form); \\
    }
CONVERT(half_int4, half, int4b_t)
CONVERT(int4_half, int4b_t, half)
#if __NPU_ARCH__ == 3510
CONVERT(int16_int4, int16_t, int4b_t)
CONVERT(int4_int16, int4b_t, int16_t)
CONVERT(int4_bf16, int4b_t, bfloat16_t)
#endif

// src [8, 64] to half, by columns.
template <bool turned>
__aicore__ inline void Antiquant(GM_ADDR x, GM_ADDR s, GM_ADDR z) {
    TPipe pipe;
    TBuf<TPosition::VECCALC> bx, bs, bz, bt;
    pipe.InitBuffer(bx, 256);
    pipe.InitBuffer(bs, 256);
    pipe.InitBuffer(bz, 1024);
    pipe.InitBuffer(bt, 1024);
    GlobalTensor<uint8_t> gx;
    gx.SetGlobalBuffer((__gm__ uint8_t*)x, 256);
    GlobalTensor<half> gs, gz;
    gs.SetGlobalBuffer((__gm__ half*)s, 128);
    gz.SetGlobalBuffer((__gm__ half*)z, 512);
    DataCopy(bx.Get<uint8_t>(), gx, 256);
    DataCopy(bs.Get<half>(), gs, 128);
    auto scales = bs.Get<half>();
    auto offsets = scales[64];
    AntiQuantShapeInfo info{1, 64, 1, 64};
    if (turned) info = {8, 1, 8, 1};
    AscendAntiQuant<int4b_t, half, turned>(bz.Get<half>(), bx.Get<int4b_t>(512), offsets, scales, bt.Get<uint8_t>(),
        turned ? 64 : 8, info);
    DataCopy(gz, bz.Get<half>(), 512);
}
#if __NPU_ARCH__ != 3510
extern "C" __global__ __aicore__ void antiquant(GM_ADDR x, GM_ADDR s, GM_ADDR z) { Antiquant<false>(x, s, z); }
extern "C" __global__ __aicore__ void antiquant_turned(GM_ADDR x, GM_ADDR s, GM_ADDR z) { Antiquant<true>(x, s, z); }
#endif

// What views say, and elements one by one.
extern "C" __global__ __aicore__ void views(GM_ADDR x, GM_ADDR z, int32_t how) {
    TPipe pipe;
    TBuf<TPosition::VECCALC> buffer;
    TQue<TPosition::VECIN, 1> queue;
    pipe.InitBuffer(buffer, 256);
    pipe.InitBuffer(queue, 1, 64);
    GlobalTensor<int4b_t> gx;
    gx.SetGlobalBuffer((__gm__ int4b_t*)x, 128);  // 64 bytes
    GlobalTensor<int32_t> gz;
    gz.SetGlobalBuffer((__gm__ int32_t*)z, 64);
    auto tensor = buffer.Get<int4b_t>();
    auto bytes = tensor.ReinterpretCast<int8_t>();
    gz.SetValue(0, tensor.GetSize());
    gz.SetValue(1, tensor.GetLength());
    gz.SetValue(2, bytes.GetSize());
    gz.SetValue(3, bytes.ReinterpretCast<int4b_t>().GetSize());
    gz.SetValue(4, buffer.Get<int4b_t>(64).GetLength());
    gz.SetValue(5, tensor[64].GetPhyAddr() - tensor.GetPhyAddr());
    gz.SetValue(6, tensor.GetPhyAddr(64) - tensor.GetPhyAddr());
    gz.SetValue(7, (int32_t)(gx[64].GetPhyAddr() - gx.GetPhyAddr()));
    gz.SetValue(8, gx.ReinterpretCast<int8_t>().GetSize());
    gz.SetValue(9, tensor[128].ReinterpretCast<half>().GetSize());
    auto queued = queue.AllocTensor<int4b_t>();
    gz.SetValue(10, queued.GetSize());
    DataCopy(queued, gx, DataCopyParams(1, 2, 0, 0));  // blocks of 32 bytes
    for (int i = 0; i < 8; ++i) gz.SetValue(16 + i, (int8_t)queued.GetValue(i + 1));
    for (int i = 0; i < 8; ++i) gz.SetValue(24 + i, (int8_t)gx[64].GetValue(i));
    queued.SetValue(3, int4b_t(-5));
    queued.SetValue(2, int4b_t(6));
    gx.SetValue(5, int4b_t(-8));
    for (int i = 0; i < 4; ++i) gz.SetValue(32 + i, queued.ReinterpretCast<uint8_t>().GetValue(i));
    gz.SetValue(36, gx.ReinterpretCast<uint8_t>().GetValue(2));
    if (how == 1) gz.SetValue(40, tensor[3].GetSize());
    if (how == 2) gz.SetValue(40, gx[3].GetSize());
    if (how == 3) gz.SetValue(40, gx.GetValue(128));
    if (how == 4) gz.SetValue(40, queued.GetValue(128));
    if (how == 5) DataCopy(queued, gx, 64);
    if (how == 6) DataCopyPad(queued, gx, DataCopyExtParams{1, 30, 0, 0, 0},
        DataCopyPadExtParams<int4b_t>{true, 0, 2, 0});
    if (how == 7) DataCopyPad(queued, gx, DataCopyExtParams{1, 65, 0, 0, 0},
        DataCopyPadExtParams<int4b_t>{false, 0, 0, 0});
    queue.FreeTensor(queued);
}
"""

MODES = {1: np.rint, 2: np.floor, 3: np.ceil, 4: lambda v: np.copysign(np.floor(np.abs(v) + 0.5), v), 5: np.trunc}


@pytest.fixture(scope="module")
def vectors(build: Build) -> ctypes.CDLL:
    return build(VECTORS)


@pytest.fixture(scope="module")
def vectors3510(build: Build) -> ctypes.CDLL:
    return build(VECTORS, "--npu-arch=dav-3510")


def _convert(
    library: ctypes.CDLL, kernel: str, x: np.ndarray, z: np.ndarray, count: int, mode: int, form: int = 0
) -> int:
    return launch(library, kernel, 1, x, z, x.nbytes, z.nbytes, count, mode, form)


def _rounded(x: np.ndarray, mode: int) -> np.ndarray:
    known = np.nan_to_num(x.astype(np.float32), nan=0.0, posinf=7, neginf=-8)
    return np.clip(MODES[mode or 1](known), -8, 7).astype(np.int8)


@pytest.mark.parametrize("mode", range(6))
def test_of_every_half(vectors: ctypes.CDLL, tools: Toolkit, mode: int) -> None:
    """Rounded, then between -8 and 7; a NaN is 0."""
    for x in np.arange(1 << 16, dtype=np.uint16).view(np.float16).reshape(-1, 4096):
        z = np.zeros(x.size // 2, np.uint8)
        assert _convert(vectors, "half_int4", x, z, x.size, mode) == 0, tools.message()
        np.testing.assert_array_equal(unpack(z), _rounded(x, mode))


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 2000).map(lambda n: 2 * n), st.integers(0, 99))
def test_there_and_back(vectors: ctypes.CDLL, tools: Toolkit, count: int, seed: int) -> None:
    """Every 4-bit integer is a half; what lies behind the elements stays."""
    values = _numbers(count, seed=seed)
    x, between = pack(values), np.full(count, 3, np.float16)
    assert _convert(vectors, "int4_half", x, between, count, 0) == 0, tools.message()
    np.testing.assert_array_equal(between, values)
    back = np.full(count // 2 + 1, 0x5A, np.uint8)
    assert _convert(vectors, "half_int4", between, back, count, 0) == 0, tools.message()
    assert back[:-1].tolist() == x.tolist()
    assert back[-1] == 0x5A


def test_masks(vectors: ctypes.CDLL, tools: Toolkit) -> None:
    """Repeats of 128 elements: 64 bytes of int4b_t, 256 of half."""
    x = (random.uniform(-9, 9, 256)).astype(np.float16)
    bits = np.arange(128) % 4 >= 2
    bits[64:] = np.arange(64) < 2
    for form, count, active in ((1, 34, np.arange(128) < 34), (1, 128, np.ones(128, bool)), (2, 0, bits)):
        z = np.full(128, 0x77, np.uint8)
        assert _convert(vectors, "half_int4", x, z, count, 4, form) == 0, tools.message()
        np.testing.assert_array_equal(unpack(z), np.where(np.tile(active, 2), _rounded(x, 4), 7))
        wide = np.full(256, 9, np.float16)
        assert _convert(vectors, "int4_half", z, wide, count, 0, form) == 0, tools.message()
        np.testing.assert_array_equal(wide, np.where(np.tile(active, 2), unpack(z), 9))


def test_in_place(vectors: ctypes.CDLL, tools: Toolkit) -> None:
    x, z = random.uniform(-9, 9, 1000).astype(np.float16), np.zeros(500, np.uint8)
    assert _convert(vectors, "half_int4", x, z, 1000, 2, 4) == 0, tools.message()
    np.testing.assert_array_equal(unpack(z), _rounded(x, 2))


@pytest.mark.parametrize(
    ("kernel", "count", "mode", "form", "text"),
    [
        ("half_int4", 33, 1, 0, "count 33 with int4b_t"),
        ("half_int4", 33, 1, 1, "with int4b_t, two of which share a byte"),
        ("half_int4", 0, 1, 3, "bits 2i and 2i"),
        ("half_int4", 32, 6, 0, "mode 6 to int4b_t; valid: all but CAST_ODD"),
        ("int4_half", 32, 1, 0, "mode 1 from int4b_t; valid: CAST_NONE"),
        ("int4_half", 31, 0, 0, "count 31"),
    ],
)
def test_cast_refuses(
    vectors: ctypes.CDLL, tools: Toolkit, kernel: str, count: int, mode: int, form: int, text: str
) -> None:
    x, z = np.zeros(1024, np.uint8), np.zeros(1024, np.uint8)
    assert _convert(vectors, kernel, x, z, count, mode, form) != 0
    assert text in tools.message()


def test_of_dav3510(vectors3510: ctypes.CDLL, tools: Toolkit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASCEND_GRAPH_HOST_SOC", "Ascend950PR_9589")
    values = _numbers(512)
    x = pack(values)
    for kernel, dtype in (("int4_int16", np.int16), ("int4_half", np.float16), ("int4_bf16", np.uint16)):
        z = np.zeros(512, dtype)
        assert _convert(vectors3510, kernel, x, z, 512, 0) == 0, tools.message()
        found = (z.astype(np.uint32) << 16).view(np.float32) if dtype is np.uint16 else z
        np.testing.assert_array_equal(found, values)
    wide = random.integers(-40000, 40000, 512).clip(-32768, 32767).astype(np.int16)
    wide[::3] %= 12
    z = np.zeros(256, np.uint8)
    assert _convert(vectors3510, "int16_int4", wide, z, 512, 0) == 0, tools.message()
    np.testing.assert_array_equal(unpack(z), wide.clip(-8, 7))
    assert _convert(vectors3510, "half_int4", np.zeros(32, np.float16), z, 32, 0) != 0
    assert "CAST_TRUNC" in tools.message()


@pytest.mark.parametrize("kernel", ["antiquant", "antiquant_turned"])
def test_antiquant(vectors: ctypes.CDLL, tools: Toolkit, kernel: str) -> None:
    """(x + offset) * scale, of each column, turned of each row."""
    values, z = _numbers(8, 64, seed=12), np.zeros((8, 64), np.float16)
    scales = random.integers(-3, 4, 128).astype(np.float16)
    assert launch(vectors, kernel, 1, pack(values), scales, z) == 0, tools.message()
    of = (lambda s: s[:8, None]) if kernel == "antiquant_turned" else (lambda s: s[None, :64])
    np.testing.assert_array_equal(z, (values + of(scales[64:])) * of(scales))


def test_views(vectors: ctypes.CDLL, tools: Toolkit) -> None:
    values = _numbers(128, seed=8)
    x, z = pack(values), np.zeros(64, np.int32)
    before = x.copy()
    assert launch(vectors, "views", 1, x, z, 0) == 0, tools.message()
    assert z[:11].tolist() == [512, 256, 256, 512, 32, 32, 32, 32, 64, 96, 128]
    np.testing.assert_array_equal(z[16:24], values[1:9])
    np.testing.assert_array_equal(z[24:32], values[64:72])
    changed = values.copy()
    changed[2:4] = 6, -5
    np.testing.assert_array_equal(z[32:36], pack(changed)[:4])
    values[5] = -8
    assert z[36] == pack(values)[2]
    np.testing.assert_array_equal(x, pack(values))
    assert (x != before).sum() <= 1


@pytest.mark.parametrize(
    ("how", "text"),
    [
        (1, "LocalTensor[3]: two elements of int4b_t share a byte"),
        (2, "GlobalTensor[3]: two elements"),
        (3, "out of bounds: bytes 64 to 65"),
        (4, "needs 65 bytes"),
        (5, "a count is not for this type"),
        (6, "padding of int4b_t"),
        (7, "dst needs 96 bytes"),
    ],
)
def test_views_refuse(vectors: ctypes.CDLL, tools: Toolkit, how: int, text: str) -> None:
    assert launch(vectors, "views", 1, np.zeros(64, np.uint8), np.zeros(64, np.int32), how) != 0
    assert text in tools.message()


@pytest.mark.parametrize(
    ("code", "options", "text"),
    [
        ("LocalTensor<int4b_t> t; Duplicate(t, int4b_t(1), 64);", (), "this is not for int4b_t, which has Cast alone"),
        (
            (
                "LocalTensor<int4b_t> t; LocalTensor<uint8_t> u; uint64_t n; "
                "GatherMask(t, t, 1, false, 0, {1, 1, 8, 8}, n);"
            ),
            (),
            "this is not for int4b_t, which has Cast alone",
        ),
        ("LocalTensor<int4b_t> t; Add(t, t, t, 64);", (), "this is not for int4b_t, which has Cast alone"),
        (
            "LocalTensor<int4b_t> t; LocalTensor<float> f; Cast(t, f, RoundMode::CAST_RINT, 64);",
            (),
            "int4b_t from half",
        ),
        (
            "LocalTensor<int4b_t> t; LocalTensor<int16_t> f; Cast(t, f, RoundMode::CAST_NONE, 64);",
            (),
            "int4b_t from half",
        ),
        (
            "LocalTensor<int4b_t> t; LocalTensor<int32_t> c; Mmad(c, t, t, c, MmadParams());",
            (),
            "with a bias not for int4b_t",
        ),
        (
            "LocalTensor<int4b_t> t; LocalTensor<int8_t> u; LocalTensor<int32_t> c; Mmad(c, t, u, MmadParams());",
            (),
            "int4b_t is multiplied with int4b_t",
        ),
        (
            "LocalTensor<int4b_t> t; GlobalTensor<int4b_t> g; LoadData(t, g, LoadData2DParams());",
            (),
            "int4b_t comes to L0A and L0B from L1",
        ),
        (
            "LocalTensor<int4b_t> t; LocalTensor<int32_t> c; Mmad(c, t, t, MmadParams());",
            ("--npu-arch=dav-3510",),
            "dav-3510 does not have int4b_t",
        ),
        (
            "LocalTensor<int4b_t> t; GlobalTensor<int4b_t> g; DataCopy(t, g, Nd2NzParams());",
            ("--npu-arch=dav-3510",),
            "dav-3510 does not have int4b_t",
        ),
    ],
)
def test_does_not_compile(build: Build, code: str, options: tuple[str, ...], text: str) -> None:
    with pytest.raises(AssertionError, match=text):
        build(
            f"""
#include "kernel_operator.h"
using namespace AscendC;
extern "C" __global__ __aicore__ void refused(GM_ADDR x) {{ {code} }}
""",
            *options,
        )


CUBE = """
#include "kernel_operator.h"
using namespace AscendC;
// c[m, n] = a[m, k] * b, which is [k, n] or turned [n, k].
struct Product {
    static constexpr uint32_t c0 = 64;
    uint32_t m, n, k, mb, nb, kb;
    LocalTensor<int4b_t> a1, b1, a2, b2;
    LocalTensor<int32_t> sums;
    GlobalTensor<int4b_t> a, b;
    GlobalTensor<int32_t> c;
    Product(GM_ADDR x, GM_ADDR y, GM_ADDR z, uint32_t m, uint32_t n, uint32_t k) : m(m), n(n), k(k) {
        mb = (m + 15) / 16;
        nb = (n + 63) / 64 * 4;
        kb = (k + 63) / 64;
        a.SetGlobalBuffer((__gm__ int4b_t*)x, m * k);
        b.SetGlobalBuffer((__gm__ int4b_t*)y, k * n);
        c.SetGlobalBuffer((__gm__ int32_t*)z, m * n);
        LocalMemAllocator<Hardware::L1> l1;
        LocalMemAllocator<Hardware::L0A> l0a;
        LocalMemAllocator<Hardware::L0B> l0b;
        LocalMemAllocator<Hardware::L0C> l0c;
        a1 = l1.Alloc<TPosition::A1, int4b_t>(mb * 16 * kb * c0);
        b1 = l1.Alloc<TPosition::B1, int4b_t>(kb * c0 * nb * 16);
        a2 = l0a.Alloc<int4b_t>(mb * 16 * kb * c0);
        b2 = l0b.Alloc<int4b_t>(kb * c0 * nb * 16);
        sums = l0c.Alloc<int32_t>(mb * nb * 256);
    }
    void LoadA(bool patches) {
        DataCopy(a1, a, Nd2NzParams(1, m, k / 2, 0, k / 2, mb * 16, 1, 0));
        if (patches) {
            const uint8_t pads[4] = {};
            LoadData(a2, a1, LoadData3DParamsV2<int4b_t>(pads, 1, mb * 16, kb * c0, kb * c0, mb * 16, 0, 0, 1, 1, 1, 1,
                1, 1, false, false, int4b_t(0)));
            return;
        }
        for (uint32_t i = 0; i < mb; ++i)
            LoadData(a2[i * kb * 16 * c0], a1[i * 16 * c0], LoadData2DParams(0, kb, mb, 0, 0, false, 0));
    }
    void LoadB(bool turned) {
        if (turned) {
            DataCopy(b1, b, Nd2NzParams(1, n, k / 2, 0, k / 2, nb * 16, 1, 0));
            for (uint32_t i = 0; i < kb; ++i)
                LoadData(b2[i * nb * 16 * c0], b1[i * nb * 16 * c0], LoadData2DParams(0, nb, 1, 0, 0, false, 0));
        } else {
            DataCopy(b1, b, Nd2NzParams(1, k, n / 2, 0, n / 2, kb * c0, 1, 0));
            for (uint32_t i = 0; i < kb; ++i)
                LoadDataWithTranspose(b2[i * nb * 16 * c0], b1[i * 64 * c0],
                    LoadData2dTransposeParams(0, nb / 4, kb, 3, 0));
        }
    }
    void Run(bool patches, bool turned) {
        LoadA(patches);
        LoadB(turned);
        Mmad(sums, a2, b2, MmadParams(m, nb * 16, k, 0, false, true));
        Fixpipe(c, sums, FixpipeParamsV220(n, m, mb * 16, n, false));
    }
};
extern "C" __global__ __cube__ void product(GM_ADDR x, GM_ADDR y, GM_ADDR z, uint32_t m, uint32_t n, uint32_t k,
    uint32_t patches, uint32_t turned) {
    Product(x, y, z, m, n, k).Run(patches != 0, turned != 0);
}
extern "C" __global__ __cube__ void refused(GM_ADDR x, uint32_t how) {
    LocalMemAllocator<Hardware::L1> l1;
    LocalMemAllocator<Hardware::L0A> l0a;
    auto from = l1.Alloc<TPosition::A1, int4b_t>(64 * 64);
    auto to = l0a.Alloc<int4b_t>(64 * 64);
    const uint8_t pads[4] = {};
    if (how == 0) LoadDataWithTranspose(to, from, LoadData2dTransposeParams(0, 1, 1, 0, 0));
    if (how == 1) LoadData(to, from, LoadData2DParams(0, 1, 1, 0, 0, true, 0));
    if (how == 2) LoadData(to, from,
        LoadData3DParamsV2<int4b_t>(pads, 1, 16, 24, 64, 16, 0, 0, 1, 1, 1, 1, 1, 1, false, false, int4b_t(0)));
    if (how == 3) LoadData(to, from,
        LoadData3DParamsV2<int4b_t>(pads, 1, 16, 64, 64, 16, 0, 0, 1, 1, 1, 1, 1, 1, true, false, int4b_t(0)));
    if (how == 4) LoadData(to[64], from, LoadData2DParams(0, 1, 1, 0, 0, false, 0));
}
"""


@pytest.fixture(scope="module")
def cube(build: Build) -> ctypes.CDLL:
    return build(CUBE)


@pytest.mark.parametrize("shape", [(16, 16, 64), (1, 16, 64), (40, 50, 70), (33, 130, 192), (5, 2, 6)], ids=str)
@pytest.mark.parametrize("turned", [0, 1], ids=["", "turned"])
@pytest.mark.parametrize("patches", [0, 1], ids=["2d", "3d"])
def test_product(cube: ctypes.CDLL, tools: Toolkit, shape: tuple[int, int, int], turned: int, patches: int) -> None:
    m, n, k = shape
    a, b = _numbers(m, k, seed=1), _numbers(k, n, seed=2)
    z = np.zeros((m, n), np.int32)
    assert launch(cube, "product", 1, pack(a), pack(b.T.copy() if turned else b), z, m, n, k, patches, turned) == 0, (
        tools.message()
    )
    np.testing.assert_array_equal(z, a @ b)


@pytest.mark.parametrize(
    ("how", "text"),
    [
        (0, "dst of int4b_t lies in A2; it must lie in the L0B"),
        (1, "ifTranspose is for elements of 2 bytes"),
        (2, "channelSize 24 of int4b_t"),
        (3, "enTranspose are for elements of 2 and 4 bytes"),
        (4, "not a multiple of 512 bytes"),
    ],
)
def test_cube_refuses(cube: ctypes.CDLL, tools: Toolkit, how: int, text: str) -> None:
    assert launch(cube, "refused", 1, np.zeros(64, np.uint8), how) != 0
    assert text in tools.message()


MATMUL = """
#include "kernel_operator.h"
#define ASCENDC_CUBE_ONLY
#include "lib/matmul_intf.h"
#include "tiling/tiling_api.h"
using namespace AscendC;
template <CubeFormat format, typename Out>
__aicore__ inline void Run(GM_ADDR x, GM_ADDR y, GM_ADDR z, GM_ADDR bias, const TCubeTiling& tiling, int32_t turned,
    int32_t how) {
    TPipe pipe;
    using In = MatmulType<TPosition::GM, CubeFormat::ND, int4b_t, true>;  // allowed to be, and is not
    Matmul<In, MatmulType<TPosition::GM, format, int4b_t, true>, MatmulType<TPosition::GM, CubeFormat::ND, Out>,
           MatmulType<TPosition::GM, CubeFormat::ND, int32_t>, CFG_MDL> mm;
    REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), mm, &tiling);
    GlobalTensor<int4b_t> a, b;
    GlobalTensor<Out> c;
    GlobalTensor<int32_t> biases;
    a.SetGlobalBuffer((__gm__ int4b_t*)x, tiling.M * tiling.Ka);
    b.SetGlobalBuffer((__gm__ int4b_t*)y);
    c.SetGlobalBuffer((__gm__ Out*)z, tiling.M * tiling.N);
    biases.SetGlobalBuffer((__gm__ int32_t*)bias, tiling.N);
    if (GetBlockIdx() >= tiling.usedCoreNum) return;
    const int rows = (tiling.M + tiling.singleCoreM - 1) / tiling.singleCoreM;
    const int m = GetBlockIdx() % rows * tiling.singleCoreM, n = GetBlockIdx() / rows * tiling.singleCoreN;
    mm.SetTensorA(a[m * tiling.Ka], how == 1);
    mm.SetTensorB(b[format == CubeFormat::NZ ? 0 : turned ? n * tiling.Kb : n], turned);
    mm.SetBias(biases[n]);
    mm.SetTail(std::min(tiling.singleCoreM, tiling.M - m), std::min(tiling.singleCoreN, tiling.N - n));
    if (std::is_same<Out, half>::value) {
        const float scale = 0.25f;
        uint64_t word = 0;
        memcpy(&word, &scale, sizeof scale);
        mm.SetQuantScalar(word);
    }
    if (how == 2) {
        while (mm.Iterate()) mm.GetTensorC(c[m * tiling.N + n]);
    } else {
        mm.IterateAll(c[m * tiling.N + n]);
    }
    mm.End();
}
#define MATMUL(name, format, Out) \\
    extern "C" __global__ __cube__ void name(GM_ADDR x, GM_ADDR y, GM_ADDR z, GM_ADDR bias, TCubeTiling tiling, \\
        int32_t turned, int32_t how) { \\
        Run<CubeFormat::format, Out>(x, y, z, bias, tiling, turned, how); \\
    }
MATMUL(rows, ND, int32_t)
MATMUL(halves, ND, half)
MATMUL(fractals, NZ, int32_t)
extern "C" int make_tiling(TCubeTiling* tiling, int m, int n, int k, int cores, int turned) {
    matmul_tiling::MultiCoreMatmulTiling api;
    api.SetDim(cores);
    if (api.SetAType(matmul_tiling::TPosition::GM, matmul_tiling::CubeFormat::ND,
        matmul_tiling::DataType::DT_INT4) != 0) return -1;
    if (api.SetBType(matmul_tiling::TPosition::GM, matmul_tiling::CubeFormat::ND, matmul_tiling::DataType::DT_INT4,
        turned != 0) != 0) return -1;
    api.SetCType(matmul_tiling::TPosition::GM, matmul_tiling::CubeFormat::ND, matmul_tiling::DataType::DT_INT32);
    api.SetBiasType(matmul_tiling::TPosition::GM, matmul_tiling::CubeFormat::ND, matmul_tiling::DataType::DT_INT32);
    api.SetShape(m, n, k);
    api.SetOrgShape(m, n, k);
    api.EnableBias(true);
    optiling::TCubeTiling data;
    if (api.GetTiling(data) == -1) return -1;
    data.SaveToBuffer(tiling, sizeof *tiling);
    return 0;
}
"""


def _matmul(
    library: ctypes.CDLL,
    kernel: str,
    x: np.ndarray,
    y: np.ndarray,
    z: np.ndarray,
    bias: np.ndarray,
    shape: tuple[int, int, int],
    turned: int,
    how: int = 0,
    cores: int = 3,
) -> tuple[int, list[int]]:
    tiling = (ctypes.c_int32 * 50)()
    assert library.make_tiling(tiling, *shape, cores, turned) == 0
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in (x, y, z, bias)]
    return getattr(library, f"aclrtlaunch_{kernel}")(cores, None, *pointers, tiling, turned, how), list(tiling)


@pytest.fixture(scope="module")
def matmul(build: Build) -> ctypes.CDLL:
    return build(MATMUL)


@pytest.mark.parametrize("how", [0, 2], ids=["all", "by blocks"])
@pytest.mark.parametrize("turned", [0, 1], ids=["", "turned"])
@pytest.mark.parametrize("kernel", ["rows", "halves", "fractals"])
@pytest.mark.parametrize("shape", [(64, 128, 256), (50, 70, 130), (300, 600, 64)], ids=str)
def test_matmul(
    matmul: ctypes.CDLL, tools: Toolkit, kernel: str, shape: tuple[int, int, int], turned: int, how: int
) -> None:
    m, n, k = shape
    a, b, bias = _numbers(m, k, seed=3), _numbers(k, n, seed=4), _numbers(n, seed=5).astype(np.int32)
    z = np.zeros((m, n), np.float16 if kernel == "halves" else np.int32)
    stored = b.T if turned else b
    if kernel == "fractals":  # 16 rows of 64 elements
        whole = np.pad(stored, ((0, -stored.shape[0] % 16), (0, -stored.shape[1] % 64)))
        stored = whole.reshape(whole.shape[0], -1, 64).transpose(1, 0, 2)
    status, _ = _matmul(
        matmul, kernel, pack(a), pack(stored.copy()), z, bias, shape, turned, how, 1 if kernel == "fractals" else 3
    )
    assert status == 0, tools.message()
    product = a @ b + bias
    np.testing.assert_array_equal(z, (product * 0.25).astype(np.float16) if kernel == "halves" else product)


def test_tiling(matmul: ctypes.CDLL) -> None:
    """Blocks along k are whole fractals, 64 elements wide, and both operands lie twice in L0."""
    tiling = (ctypes.c_int32 * 50)()
    for m, n, k in ((64, 64, 64), (256, 7680, 128), (1000, 1000, 1000)):
        assert matmul.make_tiling(tiling, m, n, k, 8, 0) == 0
        base_m, base_n, base_k = tiling[8:11]
        assert base_k % 64 == 0
        assert base_k * base_m // 2 <= 32 * 1024
        assert base_k * base_n // 2 <= 32 * 1024


@pytest.mark.parametrize(
    ("shape", "how", "text"),
    [
        ((64, 64, 64), 1, "SetTensorA of int4b_t with isTransposeA"),
        ((16, 33, 64), 0, "rows of 33 elements"),
        ((16, 32, 63), 0, "rows of 63 elements"),
    ],
)
def test_matmul_refuses(matmul: ctypes.CDLL, tools: Toolkit, shape: tuple[int, int, int], how: int, text: str) -> None:
    m, n, k = shape
    x, y = np.zeros(m * k, np.uint8), np.zeros(k * n, np.uint8)
    status, _ = _matmul(matmul, "rows", x, y, np.zeros((m, n), np.int32), np.zeros(n, np.int32), shape, 0, how, 1)
    assert status != 0
    assert text in tools.message()
