"""The cube core's instructions by the compiler's names, on addresses that are bytes from a memory's begin."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from ..conftest import Build, Toolkit, launch

SOURCE = """
#include "kernel_operator.h"

// c[m, n] = a[m, k] * b[k, n]: rows to fractals in L1, fractals to L0A and L0B, product in L0C, rows out of it.
template <typename T, typename Acc, typename Out>
struct Product {
    static constexpr uint16_t c0 = 32 / sizeof(T);
    __cbuf__ T* l1a = reinterpret_cast<__cbuf__ T*>((uintptr_t)0);
    __cbuf__ T* l1b = reinterpret_cast<__cbuf__ T*>((uintptr_t)(64 * 1024));
    __ca__ T* l0a = reinterpret_cast<__ca__ T*>((uintptr_t)0);
    __cb__ T* l0b = reinterpret_cast<__cb__ T*>((uintptr_t)1024);
    __cc__ Acc* l0c = reinterpret_cast<__cc__ Acc*>((uintptr_t)(64 * 1024));

    __aicore__ inline void load(__gm__ T* a, __gm__ T* b, uint16_t m, uint16_t n, uint16_t k) {
        if constexpr (sizeof(T) == 2) {
            copy_gm_to_cbuf_multi_nd2nz_b16(l1a, a, 0, 1, m, k, 0, k, m, 1, 0);
            copy_gm_to_cbuf_multi_nd2nz_b16(l1b, b, 0, 1, k, n, 0, n, k, 1, 0);
        } else if constexpr (sizeof(T) == 4) {
            copy_gm_to_cbuf_multi_nd2nz_b32s(l1a, a, 0, 1, m, k, 0, k, m, 1, 0);
            // Sixteen rows after another, so that squares of two fractals lie together.
            copy_gm_to_cbuf_multi_nd2nz_b32s(l1b, b, 0, k / 16, 16, n, n * 16, n, 16, 1, n * 16);
        } else {
            copy_gm_to_cbuf_multi_nd2nz_b8(l1a, a, 0, 1, m, k, 0, k, m, 1, 0);
            copy_gm_to_cbuf_multi_nd2nz_b8(l1b, b, 0, 1, k, n, 0, n, k, 1, 0);
        }
        set_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
        wait_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
        for (uint16_t i = 0; i < m / 16; ++i)
            load_cbuf_to_ca(l0a + i * k * 16, l1a + i * 16 * c0, 0, k / c0, m / 16, 0, 0, false, inc);
        if constexpr (sizeof(T) == 2) {
            for (uint16_t i = 0; i < k / 16; ++i)
                load_cbuf_to_cb(l0b + i * n * 16, l1b + i * 256, 0, n / 16, k / 16, 0, 0, true, inc);
        } else if constexpr (sizeof(T) == 4) {
            for (uint16_t i = 0; i < k / 16; ++i)
                load_cbuf_to_cb_transpose(l0b + i * n * 16, l1b + i * n * 16, 0, n / 16, 1, 0, inc, n / 16 - 1);
        } else {
            for (uint16_t i = 0; i < k / 32; ++i)
                load_cbuf_to_cb_transpose(l0b + i * n * 32, l1b + i * 1024, 0, n / 32, k / 32, 1, inc, 0);
        }
    }
    __aicore__ inline void run(GM_ADDR x, GM_ADDR y, GM_ADDR z, uint16_t m, uint16_t n, uint16_t k, uint64_t quant) {
        load((__gm__ T*)x, (__gm__ T*)y, m, n, k);
        mad(l0c, l0a, l0b, m, k, n, 0, false, false, true);
        mad(l0c, l0a, l0b, m, k, n, 3, false, false, false);  // once more, added
        set_nd_para(1);
        set_quant_pre(0x40000000);
        copy_matrix_cc_to_gm((__gm__ Out*)z, l0c, 0, n, m, n, m, 3, quant, 0, false, true);
    }
};
extern "C" __global__ __cube__ void halves(GM_ADDR x, GM_ADDR y, GM_ADDR z, int32_t m, int32_t n, int32_t k) {
    Product<half, float, float>().run(x, y, z, m, n, k, NoQuant);
}
extern "C" __global__ __cube__ void narrowed(GM_ADDR x, GM_ADDR y, GM_ADDR z, int32_t m, int32_t n, int32_t k) {
    Product<half, float, half>().run(x, y, z, m, n, k, F322F16);
}
extern "C" __global__ __cube__ void floats(GM_ADDR x, GM_ADDR y, GM_ADDR z, int32_t m, int32_t n, int32_t k) {
    Product<float, float, float>().run(x, y, z, m, n, k, NoQuant);
}
extern "C" __global__ __cube__ void bytes(GM_ADDR x, GM_ADDR y, GM_ADDR z, int32_t m, int32_t n, int32_t k) {
    Product<int8_t, int32_t, int32_t>().run(x, y, z, m, n, k, NoQuant);
}
extern "C" __global__ __cube__ void scaled(GM_ADDR x, GM_ADDR y, GM_ADDR z, int32_t m, int32_t n, int32_t k) {
    Product<int8_t, int32_t, half>().run(x, y, z, m, n, k, DEQF16);  // by 2.0
}
extern "C" __global__ __cube__ void through_l1(GM_ADDR x, GM_ADDR y, int32_t at) {
    auto* l1 = reinterpret_cast<__cbuf__ uint8_t*>((uintptr_t)at);
    copy_gm_to_cbuf(l1, (__gm__ void*)x, 0, 2, 1, 1, 0, PAD_NONE);
    copy_cbuf_to_gm((__gm__ void*)y, l1, 0, 2, 1, 0, 2);
}
extern "C" __global__ __cube__ void unaligned(GM_ADDR x, GM_ADDR y, int32_t at) {
    auto* l0 = reinterpret_cast<__ca__ half*>((uintptr_t)at);
    load_cbuf_to_ca(l0, reinterpret_cast<__cbuf__ half*>((uintptr_t)0), 0, 1, 1, 0, 0, false, inc);
}
extern "C" __global__ __cube__ void loads(GM_ADDR x, GM_ADDR y, int32_t) {
    auto* l1 = reinterpret_cast<__cbuf__ half*>((uintptr_t)512);
    load_gm_to_cbuf(l1, (__gm__ half*)x, 1, 2, 2, 0, 0, inc);  // fractals 1 and 3
    copy_cbuf_to_gm((__gm__ void*)y, l1, 0, 1, 32, 0, 0);
}
// Adds, and takes the larger one, of elements of the type that is set; their copies know bytes alone.
extern "C" __global__ __aicore__ void accumulated(GM_ADDR x, GM_ADDR y, int32_t typed) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    auto* local = reinterpret_cast<__ubuf__ float*>((uintptr_t)4096);
    copy_gm_to_ubuf(local, (__gm__ void*)x, 0, 1, 2, 0, 0);
    set_atomic_add();
    if (typed) set_atomic_f32();
    copy_ubuf_to_gm((__gm__ void*)y, local, 0, 1, 1, 0, 0);
    copy_ubuf_to_gm_align_b32((__gm__ void*)(y + 32), local, 0, 1, 12, 0, 0, 0, 0);
    set_atomic_max();
    copy_ubuf_to_gm((__gm__ void*)(y + 64), local, 0, 1, 1, 0, 0);
    AscendC::SetAtomicAdd<float>();
    copy_ubuf_to_gm((__gm__ void*)(y + 96), local, 0, 1, 1, 0, 0);
    set_atomic_none();
    copy_ubuf_to_gm((__gm__ void*)(y + 128), local, 0, 1, 1, 0, 0);
}
extern "C" __global__ __aicore__ void scalars(GM_ADDR x, GM_ADDR y, int32_t at) {
    auto* local = reinterpret_cast<__ubuf__ float*>((uintptr_t)at);
    copy_gm_to_ubuf(local, (__gm__ void*)x, 0, 1, 1, 0, 0);
    for (int i = 0; i < 8; ++i) local[i] = local[i] * 2;  // the scalar unit
    auto* same = reinterpret_cast<__ubuf__ int32_t*>(local);
    same[7] = 5;
    copy_ubuf_to_gm((__gm__ void*)y, local, 0, 1, 1, 0, 0);
}
"""


@pytest.fixture(scope="module")
def library(build: Build) -> ctypes.CDLL:
    return build(SOURCE)


@pytest.mark.parametrize(
    ("kernel", "dtype", "out", "factor"),
    [
        ("halves", np.float16, np.float32, 2),
        ("narrowed", np.float16, np.float16, 2),
        ("floats", np.float32, np.float32, 2),
        ("bytes", np.int8, np.int32, 2),
        ("scaled", np.int8, np.float16, 4),
    ],
)
@pytest.mark.parametrize(("m", "n", "k"), [(16, 32, 32), (48, 96, 64)])
def test_products(
    library: ctypes.CDLL, tools: Toolkit, kernel: str, dtype: type, out: type, factor: int, m: int, n: int, k: int
) -> None:
    random = np.random.default_rng(5)
    x, y = (random.integers(-4, 5, shape).astype(dtype) for shape in ((m, k), (k, n)))
    z = np.zeros((m, n), out)
    assert launch(library, kernel, 1, x, y, z, m, n, k) == 0, tools.message()
    assert np.array_equal(z, factor * (x.astype("f8") @ y.astype("f8")))


def test_bursts_pass_through_l1(library: ctypes.CDLL, tools: Toolkit) -> None:
    x, y = np.arange(32, dtype=np.int32), np.full(40, -1, np.int32)
    assert launch(library, "through_l1", 1, x, y, 1024) == 0, tools.message()
    assert y.tolist() == [*x[:8], *[-1] * 16, *x[16:24], *[-1] * 8]


def test_fractals_come_from_global_memory(library: ctypes.CDLL, tools: Toolkit) -> None:
    x, y = np.arange(5 * 256, dtype=np.float16), np.zeros(512, np.float16)
    assert launch(library, "loads", 1, x, y, 0) == 0, tools.message()
    assert y.tolist() == [*x[256:512], *x[768:1024]]


@pytest.mark.parametrize(
    ("kernel", "at", "message"),
    [
        ("through_l1", 512 * 1024, "copy_gm_to_cbuf: dst is not in the L1 buffer of 524288 bytes"),
        ("through_l1", 512 * 1024 - 32, "copy_gm_to_cbuf: dst"),
        ("through_l1", 16, "copy_gm_to_cbuf: dst starts at an address that is not a multiple of 32 bytes"),
        ("unaligned", 32, "LoadData: dst starts at an address that is not a multiple of 512 bytes"),
    ],
)
def test_rules(library: ctypes.CDLL, tools: Toolkit, kernel: str, at: int, message: str) -> None:
    tools.seam.seam_clear()
    x = np.zeros(64, np.int32)
    assert launch(library, kernel, 1, x, x, at) != 0
    assert message in tools.message()


def test_copies_of_bytes_accumulate_in_the_type_that_is_set(library: ctypes.CDLL, tools: Toolkit) -> None:
    x, y = np.arange(1, 17, dtype=np.float32), np.full((5, 8), 3, np.float32)
    assert launch(library, "accumulated", 1, x, y, 1) == 0, tools.message()
    first = x[:8]
    assert y[0].tolist() == (first + 3).tolist()
    assert y[1].tolist() == [*(first[:3] + 3), *[3] * 5]
    assert y[2].tolist() == np.maximum(first, 3).tolist()
    assert y[3].tolist() == (first + 3).tolist()
    assert y[4].tolist() == first.tolist()


def test_scalars_are_read_and_written_at_a_byte_of_the_unified_buffer(library: ctypes.CDLL, tools: Toolkit) -> None:
    x, y = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    assert launch(library, "scalars", 1, x, y, 2048) == 0, tools.message()
    assert y[:7].tolist() == (2 * x[:7]).tolist()
    assert y[7:].view(np.int32).tolist() == [5]


def test_accumulation_without_a_type_is_refused(library: ctypes.CDLL, tools: Toolkit) -> None:
    tools.seam.seam_clear()
    x = np.zeros(64, np.float32)
    assert launch(library, "accumulated", 1, x, x, 0) != 0
    assert "an atomic copy to global memory takes float, half" in tools.message()
