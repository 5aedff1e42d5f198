# ruff: noqa: E501, RUF100 - kernels are quoted as they are written
"""Memory that kernels divide themselves: pools with functions of their own, data that waits in global memory; and
dumps with shapes."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from ..conftest import Build, Toolkit, launch

SOURCE = """
#include "kernel_operator.h"
using namespace AscendC;
class Pool {
  public:
    __aicore__ inline Pool() { Init(); }
    template <class T>
    __aicore__ inline bool InitBuffer(T& que, uint8_t num, uint32_t len) {
        const uint32_t at = GetCurAddr();
        que.InitStartBufHandle(GetBufHandle(GetCurBufSize()), num, len);
        for (uint32_t i = 0; i < num; ++i) {
            que.InitBufHandle(this, i, GetBufHandle(GetCurBufSize() + i), at + i * len, len);
        }
        SetCurAddr(at + num * len);
        SetCurBufSize(GetCurBufSize() + num);
        return true;
    }
    template <TPosition pos>
    __aicore__ inline bool InitBuffer(TBuf<pos>& buf, uint32_t len) { return InitBuffer(buf, 1, len); }
    EXTERN_IMPL_BUFPOOL(Pool, TPosition::VECCALC, 8);
};
// z = 2 * x + 1 by a queue and a buffer of a pool behind other memory, a second time after Reset, in a pool that shares
// it.
extern "C" __global__ __aicore__ void pools(GM_ADDR x, GM_ADDR z) {
    TPipe pipe;
    TBuf<> before;
    Pool first, second;
    pipe.InitBuffer(before, 64);
    pipe.InitBufPool(first, 4096);
    pipe.InitBufPool(second, 2048, first);
    GlobalTensor<float> from, to;
    from.SetGlobalBuffer((__gm__ float*)x, 128);
    to.SetGlobalBuffer((__gm__ float*)z, 130);
    for (int round = 0; round < 2; ++round) {
        Pool& pool = round == 0 ? first : second;
        TQue<TPosition::VECIN, 2> queue;
        TBuf<> buffer;
        pool.InitBuffer(queue, 2, 256);
        pool.InitBuffer(buffer, 256);
        auto in = queue.AllocTensor<float>();
        DataCopy(in, from[64 * round], 64);
        queue.EnQue(in);
        in = queue.DeQue<float>();
        auto ones = buffer.Get<float>();
        Duplicate(ones, 1.0f, 64);
        Axpy(ones, in, 2.0f, 64);
        DataCopy(to[64 * round], ones, 64);
        queue.FreeTensor(in);
        to.SetValue(128 + round, pool.GetCurBufSize() * 10000 + pool.GetCurAddr());
        pool.Reset();
    }
    pipe.DestroyWithoutPipeAll();
}
// What waits in global memory, with gaps and without.
extern "C" __global__ __aicore__ void spills(GM_ADDR x, GM_ADDR z, GM_ADDR workspace) {
    TPipe pipe;
    TBuf<> buffer;
    pipe.InitBuffer(buffer, 1024);
    auto local = buffer.Get<float>();
    GlobalTensor<float> from, to;
    GlobalTensor<half> space;
    from.SetGlobalBuffer((__gm__ float*)x, 128);
    to.SetGlobalBuffer((__gm__ float*)z, 128);
    space.SetGlobalBuffer((__gm__ half*)workspace, 512);
    pipe.InitSpmBuffer(space, 1024);
    DataCopy(local, from, 128);
    pipe.WriteSpmBuffer(local, 64);
    pipe.WriteSpmBuffer(local[64], DataCopyParams(2, 2, 2, 0), 256);
    Duplicate(local, -1.0f, 128);
    pipe.ReadSpmBuffer(local, 32, 32);
    pipe.ReadSpmBuffer(local[64], DataCopyParams(2, 2, 0, 2), 256);
    DataCopy(to, local, 128);
}
extern "C" __global__ __aicore__ void breaks(GM_ADDR x, uint32_t which) {
    TPipe pipe;
    Pool pool;
    TQue<TPosition::VECIN, 1> queue;
    TBuf<> buffer, other;
    pipe.InitBuffer(buffer, 256);
    pipe.InitBufPool(pool, 256);
    GlobalTensor<float> space;
    space.SetGlobalBuffer((__gm__ float*)x, 64);
    switch (which) {
        case 0: pool.InitBuffer(queue, 2, 256); break;
        case 1:
            queue.InitStartBufHandle(nullptr, 1, 32);
            queue.InitBufHandle(&pool, 1, nullptr, pool.GetCurAddr(), 32);
            break;
        case 2: queue.InitBufHandle(&pool, 0, nullptr, pool.GetCurAddr(), 32); break;
        case 3: other.InitStartBufHandle(nullptr, 2, 32); break;
        case 4: pool.GetBufHandle(8); break;
        case 5: pipe.WriteSpmBuffer(buffer.Get<float>(), 8); break;
        case 6: pipe.InitSpmBuffer(space, 512); break;
        case 7: pipe.InitSpmBuffer(space, 128); pipe.WriteSpmBuffer(buffer.Get<float>(), 32, 32); break;
        case 8: pipe.InitSpmBuffer(space, 128); pipe.ReadSpmBuffer(buffer.Get<float>(), 8, 128); break;
        case 9: DumpAccChkPoint(buffer.Get<float>(), 1, 3, 8); break;
        case 10: DumpTensor(buffer.Get<float>(), 1, 8, ShapeInfo()); break;
        default: Trap();
    }
}
extern "C" __global__ __aicore__ void dumps(GM_ADDR x) {
    TPipe pipe;
    TBuf<> buffer;
    pipe.InitBuffer(buffer, 64);
    auto local = buffer.Get<float>();
    GlobalTensor<float> from;
    from.SetGlobalBuffer((__gm__ float*)x, 16);
    MetricsProfStart();
    DataCopy(local, from, 16);
    MetricsProfStop();
    const uint32_t whole[] = {2, 2, 2}, fewer[] = {3}, more[] = {2, 5};
    DumpTensor(local, 1, 8, ShapeInfo(3, whole));
    DumpTensor(from, 2, 8, ShapeInfo(1, fewer));
    DumpTensor(local, 3, 8, ShapeInfo(2, more));
    DumpAccChkPoint(local, 4, 8, 3);
    DumpAccChkPoint(from, 5, 9, 2);
}
"""


@pytest.fixture(scope="module")
def library(build: Build) -> ctypes.CDLL:
    return build(SOURCE)


def test_pools(library: ctypes.CDLL, tools: Toolkit) -> None:
    """Addresses count from the start of the unified buffer: the pool begins behind 64 bytes."""
    x, z = np.arange(128, dtype=np.float32), np.zeros(130, np.float32)
    assert launch(library, "pools", 1, x, z) == 0, tools.message()
    np.testing.assert_array_equal(z[:128], 2 * x + 1)
    assert z[128:].tolist() == [30000 + 64 + 768] * 2


def test_spills(library: ctypes.CDLL, tools: Toolkit) -> None:
    x, z, space = np.arange(128, dtype=np.float32), np.zeros(128, np.float32), np.zeros(512, np.float16)
    assert launch(library, "spills", 1, x, z, space) == 0, tools.message()
    there = space.view(np.float32)
    np.testing.assert_array_equal(there[:64], x[:64])
    np.testing.assert_array_equal(there[64:96], np.concatenate((x[64:80], x[96:112])))
    expected = np.full(128, -1, np.float32)
    expected[:32], expected[64:80], expected[96:112] = x[8:40], x[64:80], x[96:112]
    np.testing.assert_array_equal(z, expected)


@pytest.mark.parametrize(
    ("which", "said"),
    [
        (
            0,
            (
                "InitBufHandle: 256 bytes from byte 512 of the unified buffer; "
                "valid: multiples of 32, within the pool's 256 bytes from GetCurAddr() = 256 on"
            ),
        ),
        (1, "InitBufHandle: index 1; InitStartBufHandle made 1 buffers"),
        (2, "InitBufHandle: the queue VECIN has no buffers"),
        (3, "InitStartBufHandle: 2 buffers of 32 bytes for a TBuf"),
        (4, "GetBufHandle: buffer 8; EXTERN_IMPL_BUFPOOL has 8"),
        (5, "WriteSpmBuffer: call TPipe::InitSpmBuffer first"),
        (6, "InitSpmBuffer: out of bounds: bytes 0 to 512"),
        (7, "DataCopy: out of bounds: bytes 32 to 160"),
        (8, "ReadSpmBuffer: offset 128 of 128 bytes"),
        (9, "DumpAccChkPoint: countOff starts at an address that is not a multiple of 32 bytes"),
        (10, "DumpTensor: a shape of 0 dimensions []; valid: 1 to 8, none 0"),
    ],
)
def test_refusals(library: ctypes.CDLL, tools: Toolkit, which: int, said: str) -> None:
    assert launch(library, "breaks", 1, np.zeros(64, np.float32), which) != 0
    assert said in tools.message()


def test_dumps(library: ctypes.CDLL, capfd: pytest.CaptureFixture[str]) -> None:
    """In the brackets of the shape, with a dash for what the dump does not have."""
    assert launch(library, "dumps", 1, np.arange(16, dtype=np.float32)) == 0
    assert capfd.readouterr().out.splitlines() == [
        "DumpTensor: desc=1, block 0:",
        "[[[0,1],",
        "[2,3]],",
        "[[4,5],",
        "[6,7]]]",
        "DumpTensor: desc=2, block 0:",
        "shape is [3], dumpSize is 8, dumpSize is greater than shapeSize.",
        "[0,1,2]",
        "DumpTensor: desc=3, block 0:",
        "shape is [2, 5], dumpSize is 8, data is not enough.",
        "[[0,1,2,3,4],",
        "[5,6,7,-,-]]",
        "DumpTensor: desc=4, block 0: [8, 9, 10]",
        "DumpTensor: desc=5, block 0: [9, 10]",
    ]
