# ruff: noqa: E501, RUF100 - kernels are quoted as they are written
"""The C API: copies, arithmetic on arrays of the unified buffer, and addresses in global memory that are checked."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ..conftest import Build, Toolkit, launch

random = np.random.default_rng(23)
SOURCE = """
#include "c_api/asc_simd.h"
template <typename T>
__aicore__ inline void all(__gm__ T* x, __gm__ T* y, __gm__ T* z, bool divides) {
    constexpr uint32_t length = 512 / sizeof(T);
    asc_init();
    __ubuf__ T a[length];
    __ubuf__ T b[length];
    __ubuf__ T c[length];
    const int64_t at = asc_get_block_idx() * length;
    const int64_t step = asc_get_block_num() * length;
    asc_copy_gm2ub_sync(a, x + at, sizeof a);
    asc_copy_gm2ub(b, y + at, sizeof b);
    asc_sync();
    int result = 0;
    const auto keep = [&] { asc_copy_ub2gm_sync(z + at + step * result++, c, sizeof c); };
    asc_add(c, a, b, length); keep();
    asc_sub_sync(c, a, b, length); keep();
    asc_mul(c, a, b, 2, 1, 1, 1, 8, 8, 8); keep();
    asc_max(c, a, b, length); keep();
    asc_min(c, a, b, length); keep();
    if constexpr (!std::is_integral<T>::value) { asc_div(c, a, b, length); keep(); }
}
extern "C" __vector__ __global__ __aicore__ void halfs(__gm__ half* x, __gm__ half* y, __gm__ half* z) {
    all(x, y, z, true);
}
extern "C" __vector__ __global__ __aicore__ void floats(__gm__ float* x, __gm__ float* y, __gm__ float* z) {
    all(x, y, z, true);
}
extern "C" __vector__ __global__ __aicore__ void shorts(__gm__ int16_t* x, __gm__ int16_t* y, __gm__ int16_t* z) {
    all(x, y, z, false);
}
// Every second block of 32 bytes, and the sums of each with itself in reverse order of the strides.
extern "C" __vector__ __global__ __aicore__ void strided(__gm__ float* x, __gm__ float* z) {
    __ubuf__ float a[64];
    __ubuf__ float c[128] = {};
    asc_copy_gm2ub(a, x, 8, 1, 1, 0);
    asc_sync_notify(PIPE_MTE2, PIPE_V, EVENT_ID0);
    asc_sync_wait(PIPE_MTE2, PIPE_V, EVENT_ID0);
    asc_add(c, a, a, 1, 2, 1, 1, 0, 0, 0);
    asc_copy_ub2gm(z, c, 1, 16, 0, 0);
}
extern "C" __vector__ __global__ __aicore__ void dumps(__gm__ float* x) {
    __ubuf__ float a[8];
    asc_copy_gm2ub_sync(a, x, sizeof a);
    asc_dump_gm(x, 1, 2);
    asc_dump(a, 2, 2);
    asc_dump_ubuf(a, 3, 2);
    asc_dump_l1buf(a, 4, 2);
    asc_dump_cbuf(a, 5, 2);
}
extern "C" __vector__ __global__ __aicore__ void beyond(__gm__ float* x, uint32_t bursts) {
    __ubuf__ float a[8];
    asc_copy_gm2ub(a, x, static_cast<uint16_t>(bursts), 1, 0, 0);
}
"""


@pytest.mark.parametrize(("kernel", "dtype"), [("halfs", np.float16), ("floats", np.float32), ("shorts", np.int16)])
def test_arithmetic(build: Build, kernel: str, dtype: type) -> None:
    length = 512 // np.dtype(dtype).itemsize
    draw: Callable[[], np.ndarray] = (
        (lambda: random.integers(-30000, 30000, 2 * length).astype(dtype))
        if dtype is np.int16
        else (lambda: random.uniform(1, 4, 2 * length).astype(dtype))
    )
    x, y = draw(), draw()
    with np.errstate(over="ignore"):
        expected = [x + y, x - y, x * y, np.maximum(x, y), np.minimum(x, y)]
    if dtype is not np.int16:
        expected.append(x / y)
    z = np.zeros(len(expected) * 2 * length, dtype)
    assert launch(build(SOURCE), kernel, 2, x, y, z) == 0
    np.testing.assert_array_equal(z, np.concatenate(expected))


def test_strides(build: Build) -> None:
    x, z = random.uniform(-1, 1, 128).astype(np.float32), np.ones(128, np.float32)
    assert launch(build(SOURCE), "strided", 1, x, z) == 0
    expected = np.zeros((16, 8), np.float32)
    expected[::2] = 2 * x.reshape(16, 8)[::2]
    np.testing.assert_array_equal(z, expected.ravel())


def test_a_copy_of_nothing_is_refused(build: Build, tools: Toolkit) -> None:
    assert launch(build(SOURCE), "beyond", 1, np.zeros(8, np.float32), 0) != 0
    assert "asc_copy_gm2ub: 0 bursts of 32 bytes; 1 to 4095, and none is empty" in tools.message()


def test_dumps(build: Build, capfd: pytest.CaptureFixture[str]) -> None:
    assert launch(build(SOURCE), "dumps", 1, np.arange(3, 11, dtype=np.float32)) == 0
    lines = [line for line in capfd.readouterr().out.splitlines() if line.startswith("DumpTensor")]
    assert lines == [f"DumpTensor: desc={number}, block 0: [3, 4]" for number in range(1, 6)]
