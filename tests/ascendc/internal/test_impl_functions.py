"""What lies under the API: functions and instructions on plain addresses, as headers of the first releases and
operators of CANN use them."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from ..conftest import Build, Toolkit, launch

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
using namespace AscendC;
template <typename T>
__aicore__ inline __ubuf__ T* at(int64_t offset) {
    return (__ubuf__ T*)get_imm(offset);
}
extern "C" __global__ __aicore__ void copies(GM_ADDR x, GM_ADDR y, uint32_t count) {
    const DataCopyExtParams some{1, count * 4, 0, 0, 0};
    const DataCopyParams whole{1, 2, 0, 0}, part{1, 12, 0, 0};
    DataCopyGM2UBImpl(at<float>(0), (__gm__ float*)x, whole);
    DataCopyUB2GMImpl((__gm__ float*)y, at<float>(0), {1, 2, 0, 0});
    DataCopyPadGm2UBImpl(at<float>(64), (__gm__ float*)x, some, DataCopyPadExtParams<float>{true, 0, 3, 5.0f});
    DataCopyPadUB2GMImpl((__gm__ float*)y + 16, at<float>(64), DataCopyExtParams{1, 32, 0, 0, 0});
    DataCopyPadGm2UBImpl(at<float>(128), (__gm__ float*)x, part, DataCopyPadParams{false, 0, 0, 0});
    DataCopyPadUB2GMImpl((__gm__ float*)y + 24, at<float>(128), part);
}
extern "C" __global__ __aicore__ void compute(GM_ADDR x, GM_ADDR y, uint32_t) {
    __gm__ float* out = (__gm__ float*)y;
    DataCopyGM2UBImpl(at<float>(0), (__gm__ float*)x, DataCopyParams{1, 8, 0, 0});
    CastImpl(at<half>(512), at<float>(0), RoundMode::CAST_RINT, 64);
    CastImpl(at<float>(1024), at<half>(512), RoundMode::CAST_NONE, 32, 1, UnaryRepeatParams{1, 1, 8, 4});
    DataCopyUB2GMImpl(out, at<float>(1024), DataCopyParams{1, 4, 0, 0});
    // Bits of x >= 3, and their complement.
    DuplicateImpl(at<float>(2048), 3.0f, 64);
    VcmpvImpl(at<uint8_t>(2304), at<float>(0), at<float>(2048), CMPMODE::GE, 64, 1, {1, 1, 1, 8, 8, 8});
    NotImpl(at<uint16_t>(2368), at<uint16_t>(2304), 4, 1, {1, 1, 8, 8});
    DataCopyUB2GMImpl(out + 32, at<float>(2304), DataCopyParams{1, 1, 0, 0});
    DataCopyUB2GMImpl(out + 40, at<float>(2368), DataCopyParams{1, 1, 0, 0});
    // Each block of 8, of as many as are counted.
    SetMaskCountImpl();
    SetVectorMask<float, MaskMode::COUNTER>(0, 32);
    BlockReduceSumIntrinsicsImpl(at<float>(3072), at<float>(0), 1, 1, 1, 8);
    BlockReduceMaxIntrinsicsImpl(at<float>(3136), at<float>(0), 1, 1, 1, 8);
    BlockReduceMinIntrinsicsImpl(at<float>(3200), at<float>(0), 1, 1, 1, 8);
    SetMaskNormImpl();
    ResetMask();
    DataCopyUB2GMImpl(out + 48, at<float>(3072), DataCopyParams{1, 1, 0, 0});
    DataCopyUB2GMImpl(out + 56, at<float>(3136), DataCopyParams{1, 1, 0, 0});
    DataCopyUB2GMImpl(out + 64, at<float>(3200), DataCopyParams{1, 1, 0, 0});
    ((__gm__ int64_t*)(out + 72))[0] = GetBlockIdxImpl();
}
template <typename List>
__aicore__ inline void transpose(List (&to)[16], List (&from)[16]) {
    TransDataTo5HDParams params;
    params.repeatTimes = 1;
    TransDataTo5HDImpl(to, from, params);
}
extern "C" __global__ __aicore__ void turn(GM_ADDR x, GM_ADDR y, uint32_t beyond) {
    DataCopyGM2UBImpl(at<half>(0), (__gm__ half*)x, DataCopyParams{1, 16, 0, 0});
    pipe_barrier(PIPE_ALL);
    __ubuf__ half *from[16], *to[16];
    for (int i = 0; i < 16; ++i) {
        from[i] = at<half>(i * 32 + beyond);
        to[i] = at<half>(512 + i * 32);
    }
    transpose(to, from);
    DataCopyUB2GMImpl((__gm__ half*)y, at<half>(512), DataCopyParams{1, 16, 0, 0});
}
extern "C" __global__ __aicore__ void multiply(GM_ADDR x, GM_ADDR y, uint32_t) {
    const LocalTensor<half> one(TPosition::A1, 0, 256), left(TPosition::A2, 0, 256), right(TPosition::B2, 0, 256);
    const LocalTensor<float> sums(TPosition::CO1, 0, 256);
    GlobalTensor<half> in;
    in.SetGlobalBuffer((__gm__ half*)x);
    GlobalTensor<float> out;
    out.SetGlobalBuffer((__gm__ float*)y);
    if ASCEND_IS_AIV return;
    DataCopy(one, in, Nd2NzParams(1, 16, 16, 0, 16, 16, 1, 0));
    PipeBarrier<PIPE_ALL>();
    LoadDataImpl(left, one, LoadData2DParams{0, 1, 1, 0, 0, false, 0});
    LoadDataImpl(right, one, LoadData2DParams{0, 1, 1, 0, 0, true, 0});
    PipeBarrier<PIPE_ALL>();
    MmadImpl(sums, left, right, MmadParams(16, 16, 16, 0, false, true));
    PipeBarrier<PIPE_ALL>();
    Fixpipe(out, sums, FixpipeParamsV220(16, 16, 16, 16, false));
}
// Numbers that kernels take from CANN's headers.
static_assert(TWO + FOUR + EIGHT == 14 && SIXTEEN == 16 && MRG_MAX_ARRAY_SIZE == 15);
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
    [(16, "dst starts at an address that is not a multiple of 32 bytes"), (192 * 1024 - 32, "dst")],
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


def test_copies_on_addresses(library: ctypes.CDLL, tools: Toolkit) -> None:
    x, y = np.arange(1, 17, dtype=np.float32), np.full(32, -1, np.float32)
    assert launch(library, "copies", 1, x, y, 5) == 0, tools.message()
    assert y[:16].tolist() == x.tolist()
    assert y[16:24].tolist() == [*x[:5], 5, 5, 5]
    assert y[24:].tolist() == [*x[:3], -1, -1, -1, -1, -1]


def test_computations_on_addresses(library: ctypes.CDLL, tools: Toolkit) -> None:
    x, y = np.random.default_rng(3).permutation(64).astype(np.float32), np.full(80, -1, np.float32)
    assert launch(library, "compute", 1, x, y, 0) == 0, tools.message()
    assert y[:32].tolist() == x[:32].tolist()
    bits = np.packbits(x >= 3, bitorder="little")
    assert y[32:40].tobytes()[:8] == bits.tobytes()
    assert y[40:48].tobytes()[:8] == np.invert(bits).tobytes()
    blocks = x[:32].reshape(4, 8)
    for at, expected in ((48, blocks.sum(1)), (56, blocks.max(1)), (64, blocks.min(1))):
        assert y[at : at + 4].tolist() == expected.tolist()
    assert y[72:74].view(np.int64).tolist() == [0]


def test_rows_at_addresses_are_transposed(library: ctypes.CDLL, tools: Toolkit) -> None:
    x, y = np.arange(256, dtype=np.float16), np.zeros(256, np.float16)
    assert launch(library, "turn", 1, x, y, 0) == 0, tools.message()
    assert np.array_equal(y.reshape(16, 16), x.reshape(16, 16).T)
    tools.seam.seam_clear()
    launch(library, "turn", 1, x, y, 192 * 1024)
    assert "TransDataTo5HD: srcList is not in the unified buffer of 196608 bytes" in tools.message()


def test_tensors_are_loaded_and_multiplied(library: ctypes.CDLL, tools: Toolkit) -> None:
    x, y = np.arange(256, dtype=np.float16) % 7, np.zeros((16, 16), np.float32)
    assert launch(library, "multiply", 1, x, y, 0) == 0, tools.message()
    square = x.reshape(16, 16).astype(np.float32)
    assert np.array_equal(y, square @ square)


def test_the_matrices_of_a_copy_are_set_by_a_number(build: Build, tools: Toolkit) -> None:
    """What SetFixpipeNz2ndFlag takes one by one; and the scales of columns by a tensor."""
    code = """
    #include "kernel_operator.h"
    extern "C" __global__ __cube__ void set(GM_ADDR x, GM_ADDR y, uint32_t) {
        using namespace AscendC;
        SetNdParaImpl((7ULL << 32) | (5ULL << 16) | 3ULL);
        SetFixPipeConfigImpl(LocalTensor<uint64_t>(TPosition::C2PIPE2GM, 64, 16));
        const auto& nd = ascendc_host::current().fixpipe;
        ((__gm__ int32_t*)y)[0] = nd.matrices, ((__gm__ int32_t*)y)[1] = nd.source,
            ((__gm__ int32_t*)y)[2] = nd.destination;
        ((__gm__ int32_t*)y)[3] = nd.scales != nullptr && nd.scales_bytes >= 16 * 8;
    }
    """
    y = np.zeros(8, np.int32)
    assert launch(build(code), "set", 1, y, y, 0) == 0, tools.message()
    assert y[:4].tolist() == [3, 5, 7, 1]
