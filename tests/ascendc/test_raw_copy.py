"""What lies beneath DataCopy and Duplicate, as headers of the first releases and operators of CANN use it."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from .conftest import Build, Toolkit, launch

SOURCE = """
#include "kernel_operator.h"
extern "C" __global__ __aicore__ void there_and_back(GM_ADDR x, GM_ADDR y, uint32_t at) {
    __ubuf__ uint8_t* local = (__ubuf__ uint8_t*)get_imm(at);
    copy_gm_to_ubuf((__ubuf__ void*)local, (__gm__ void*)x, 0, 2, 1, 1, 0);  // every second block
    pipe_barrier(PIPE_ALL);
    copy_ubuf_to_gm((__gm__ void*)y, (__ubuf__ void*)local, 0, 2, 1, 0, 2);
}
extern "C" __global__ __aicore__ void fill(GM_ADDR x, GM_ADDR y, uint32_t at) {
    __ubuf__ half* local = (__ubuf__ half*)get_imm(at);
    copy_gm_to_ubuf((__ubuf__ void*)local, (__gm__ void*)x, 0, 1, 16, 0, 0);
    pipe_barrier(PIPE_ALL);
    AscendC::SetVectorMask<half>(0UL, 0xffff00ffUL);
    AscendC::DuplicateIntrinsicsImpl(local, (half)7, 1, 2, 8);  // every second block
    pipe_barrier(PIPE_ALL);
    copy_ubuf_to_gm((__gm__ void*)y, (__ubuf__ void*)local, 0, 1, 16, 0, 0);
}
extern "C" __global__ __aicore__ void outside(GM_ADDR x, GM_ADDR y, uint32_t) {
    AscendC::DuplicateIntrinsicsImpl((half*)x, (half)AscendC::GetSubBlockIdxImpl(), 1, 1, 8);
}
"""


@pytest.fixture(scope="module")
def library(build: Build) -> ctypes.CDLL:
    return build(SOURCE)


def test_bursts_and_gaps(library: ctypes.CDLL, tools: Toolkit) -> None:
    x, y = np.arange(32, dtype=np.int32), np.full(40, -1, np.int32)
    assert launch(library, "there_and_back", 1, x, y, 64) == 0, tools.message()
    assert y[:8].tolist() == x[:8].tolist()
    assert y[24:32].tolist() == x[16:24].tolist()
    assert (y[8:24] == -1).all()
    assert (y[32:] == -1).all()


@pytest.mark.parametrize(
    ("at", "message"),
    [(16, "byte 16 of the unified buffer is no multiple of 32"), (192 * 1024 - 32, "beyond the unified buffer")],
)
def test_rules(library: ctypes.CDLL, tools: Toolkit, at: int, message: str) -> None:
    tools.seam.seam_clear()
    x = np.zeros(64, np.int32)
    launch(library, "there_and_back", 1, x, x, at)
    assert f"copy_gm_to_ubuf: {message}" in tools.message()


def test_a_value_is_written_under_the_mask_that_is_set(library: ctypes.CDLL, tools: Toolkit) -> None:
    x, y = np.arange(256, dtype=np.float16), np.zeros(256, np.float16)
    assert launch(library, "fill", 1, x, y, 64) == 0, tools.message()
    expected = x.copy()
    # Lanes 0 to 7 are half of the first block; lanes 16 to 31 are the second, which lies two blocks on.
    expected[:8] = expected[32:48] = 7
    assert np.array_equal(y, expected)


def test_a_value_is_written_to_the_unified_buffer_alone(library: ctypes.CDLL, tools: Toolkit) -> None:
    tools.seam.seam_clear()
    x = np.zeros(256, np.float16)
    launch(library, "outside", 1, x, x, 0)
    assert "Duplicate: dst is not in the unified buffer of 196608 bytes" in tools.message()
