# ruff: noqa: E501, PLR0917, RUF100 - kernels and build files are quoted as they are written
"""Copies between global and local memory, atomic accumulation, queues and pools that hand memory on."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from ..conftest import Build, Toolkit, launch

SOURCE = """
#include "kernel_operator.h"
using namespace AscendC;

#define KERNEL(name) extern "C" __global__ __aicore__ void name(GM_ADDR x, GM_ADDR z, uint32_t nx, uint32_t nz)
template <typename T>
GlobalTensor<T> Gm(GM_ADDR address, uint32_t bytes) {
    GlobalTensor<T> gm;
    gm.SetGlobalBuffer((__gm__ T*)address, bytes / sizeof(T));
    return gm;
}
template <typename T>
struct Space {
    TPipe pipe;
    TBuf<TPosition::VECCALC> buf;
    LocalTensor<T> local;
    Space(uint32_t bytes = 16384) {
        pipe.InitBuffer(buf, bytes);
        local = buf.Get<T>();
    }
};

KERNEL(blocks) {  // every second block of 32 bytes, and back with gaps
    Space<float> s;
    DataCopy(s.local, Gm<float>(x, nx), DataCopyParams(4, 1, 1, 0));
    DataCopy(Gm<float>(z, nz), s.local, DataCopyParams{4, 1, 0, 1});
}
KERNEL(pad_in) {  // rows of 5 floats, 1 on the left and 2 on the right, into 32 bytes each
    Space<float> s;
    DataCopyExtParams params{3, 20, 4, 0, 0};
    DataCopyPadExtParams<float> pad{true, 1, 2, 9.0f};
    DataCopyPad(s.local, Gm<float>(x, nx), params, pad);
    DataCopy(Gm<float>(z, nz), s.local, 24);
}
KERNEL(pad_params) {  // the older structures
    Space<half> s;
    DataCopyPad(s.local, Gm<half>(x, nx), DataCopyParams{2, 6, 2, 0}, DataCopyPadParams{true, 0, 1, 0x3c00});
    DataCopyPad(Gm<half>(z, nz), s.local, DataCopyParams{2, 8, 0, 2});
}
KERNEL(pad_register) {
    Space<float> s;
    SetPadValue(5.0f);
    DataCopyPad(s.local, Gm<float>(x, nx), DataCopyExtParams{1, 12, 0, 0, 0},
        DataCopyPadExtParams<float>{false, 0, 0, 0});
    DataCopy(Gm<float>(z, nz), s.local, 8);
}
KERNEL(dummies) {  // rows of 3 floats: without padding, and with one on the left that leaves 4 more
    Space<float> s;
    const DataCopyExtParams rows{2, 12, 4, 0, 0};
    DataCopyPad(s.local, Gm<float>(x, nx), rows, DataCopyPadExtParams<float>{false, 0, 0, 0});
    DataCopyPad(s.local[16], Gm<float>(x, nx), rows, DataCopyPadExtParams<float>{true, 0, 0, 9.0f});
    DataCopyPad(s.local[32], Gm<float>(x, nx), rows, DataCopyPadExtParams<float>{true, 1, 0, 9.0f});
    Duplicate(s.local[48], 7.0f, 16);
    DataCopyPad(s.local[48], Gm<float>(x, nx), rows, DataCopyPadExtParams<float>{false, 1, 0, 9.0f});
    DataCopy(Gm<float>(z, nz), s.local, 64);
}
KERNEL(slices) {  // rows 1 and 3, columns 8 to 15 of 4 x 16
    Space<float> s;
    SliceInfo from[2] = {{8, 15, 0, 1, 16}, {1, 3, 1, 1, 4}};
    SliceInfo to[2] = {{0, 7, 0, 1, 8}, {0, 1, 0, 1, 2}};
    DataCopy(s.local, Gm<float>(x, nx), to, from, 2);
    DataCopy(Gm<float>(z, nz), s.local, to, to, 2);
}
KERNEL(local_copy) {
    Space<float> s;
    DataCopy(s.local, Gm<float>(x, nx), 64);
    DataCopy(s.local[64], s.local, 64);
    DataCopy(s.local[128], s.local[64], DataCopyParams{4, 1, 1, 0});
    DataCopy(Gm<float>(z, nz), s.local[128], DataCopyParams{1, 4, 0, 0}, DataCopyEnhancedParams());
}
KERNEL(nz) {  // 20 x 24 to fractals and back
    Space<half> s;
    LocalTensor<half> fractals = s.local[4096];
    DataCopy(fractals, Gm<half>(x, nx), Nd2NzParams{1, 20, 24, 0, 24, 32, 1, 0});
    if (fractals.GetValue(32 * 16 + 5 * 16 + 2) != Gm<half>(x, nx).GetValue(5 * 24 + 18)) Trap();
    DataCopy(Gm<half>(z, nz), fractals, Nz2NdParamsFull{1, 20, 24, 1, 32, 24, 1});
}
template <typename T>
void Accumulate(GM_ADDR x, GM_ADDR z, uint32_t nx, uint32_t nz) {
    Space<T> s;
    DataCopy(s.local, Gm<T>(x, nx), nx / sizeof(T));
    DataCopy(Gm<T>(z, nz), s.local, nx / sizeof(T));
    SetAtomicNone();
}
KERNEL(atomic_float) { SetAtomicAdd<float>(); Accumulate<float>(x, z, nx, nz); }
KERNEL(atomic_half) { SetAtomicAdd<half>(); Accumulate<half>(x, z, nx, nz); }
KERNEL(atomic_int) {
    SetAtomicType<int32_t>(); SetAtomicAdd<int32_t>(); Accumulate<int32_t>(x, z, nx, nz); DisableDmaAtomic();
}
KERNEL(atomic_max) { SetAtomicMax<float>(); Accumulate<float>(x, z, nx, nz); }
KERNEL(atomic_min) { SetAtomicMin<float>(); Accumulate<float>(x, z, nx, nz); }
KERNEL(fill) {
    InitOutput<float>(Gm<float>(z, nz), 10, 2.0f);
    GlobalTensor<float> rest = Gm<float>(z, nz)[10];
    Fill(rest, 3, 3.0f);
    InitGlobalMemory(rest, 2, 4.0f);
    rest(2) = 5.0f;
}
KERNEL(tensors) {
    TPipe pipe;
    TQueBind<TPosition::VECIN, TPosition::VECOUT, 2> queue;
    pipe.InitBuffer(queue, 2, 100);  // rounded up to 128 bytes
    LocalTensor<float> a;
    queue.AllocTensor(a);
    auto b = queue.AllocTensor<float>();
    auto out = Gm<float>(z, nz);
    out.SetValue(0, a.GetSize());
    out.SetValue(1, queue.HasIdleBuffer());
    DataCopyPad(a, Gm<float>(x, nx), DataCopyExtParams{1, 32, 0, 0, 0}, DataCopyPadExtParams<float>());
    queue.EnQue(a);
    queue.EnQue(b);
    out.SetValue(2, queue.GetTensorCountInQue());
    out.SetValue(3, queue.VacantInQue());
    auto first = queue.DeQue<float>();
    out.SetValue(4, first.GetValue(3));
    out.SetValue(5, queue.HasTensorInQue());
    LocalTensor<float> second;
    queue.DeQue(second);
    out.SetValue(6, static_cast<int>(queue.GetState(second)));
    second(2) = 8.5f;
    second.SetValue(3, 1);
    out.SetValue(7, second[2].GetValue(0) + second.GetValue(3));
    out.SetValue(8, second.ReinterpretCast<half>().GetSize());
    second.SetUserTag(3);
    out.SetValue(9, second.GetUserTag() + second.GetPosition() * 100);
    uint32_t sizes[2] = {4, 6};
    second.SetShapeInfo(ShapeInfo(2, sizes));
    out.SetValue(10, GetShapeSize(second.GetShapeInfo()));
    LocalTensor<float> moved;
    moved.SetAddrWithOffset(second, 2);
    out.SetValue(11, moved.GetValue(0));
    out.SetValue(12, reinterpret_cast<float*>(second.GetPhyAddr())[2]);
    queue.FreeTensor(first);
    queue.FreeTensor(second);
    out.SetValue(13, out.GetSize());
    out.SetValue(14, *out.GetPhyAddr(8));
}
KERNEL(pools) {
    TPipe pipe;
    TBufPool<TPosition::VECCALC> pool, again;
    pipe.InitBufPool(pool, 65536);
    pipe.InitBufPool(again, 32768, pool);
    TQue<TPosition::VECIN, 1> in;
    TBuf<> calc;
    for (int round = 0; round < 3; ++round) {
        pool.InitBuffer(in, 1, 4096);
        pool.InitBuffer(calc, 1024);
        auto a = in.AllocTensor<float>();
        DataCopy(a, Gm<float>(x, nx), 64);
        in.EnQue(a);
        a = in.DeQue<float>();
        auto b = calc.GetWithOffset<float>(64, 256);
        Adds(b, a, (float)round, 64);
        DataCopy(Gm<float>(z, nz)[round * 64], b, 64);
        in.FreeTensor(a);
        pool.Reset();
    }
    TQue<TPosition::VECOUT, 1> out;
    again.InitBuffer(out, 1, 256);
    auto a = out.AllocTensor<float>();
    Duplicate(a, 4.0f, 64);
    DataCopy(Gm<float>(z, nz)[192], a, 64);
    out.FreeTensor(a);
    pipe.Reset();
    pipe.InitBuffer(out, 2, 98304);  // everything, once more
    pipe.Destroy();
}
KERNEL(without_pipe) {
    LocalMemAllocator<Hardware::UB> allocator;
    auto a = allocator.Alloc<float>(64);
    auto b = allocator.Alloc<TPosition::VECOUT, float, 64>();
    LocalTensor<float> c(TPosition::VECCALC, allocator.GetCurAddr(), 64);
    DataCopy(a, Gm<float>(x, nx), 64);
    Adds(b, a, 1.0f, 64);
    Adds(c, b, 1.0f, 64);
    auto event = GetTPipePtr() == nullptr ? EVENT_ID0 : EVENT_ID1;
    SetFlag<HardEvent::V_MTE3>(event);
    WaitFlag<HardEvent::V_MTE3>(event);
    PipeBarrier<PIPE_ALL>();
    pipe_barrier(PIPE_V);
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    DataSyncBarrier<MemDsbT::ALL>();
    DataCopy(Gm<float>(z, nz), c, 64);
}
KERNEL(events) {
    TPipe pipe;
    const TEventID id = pipe.AllocEventID<HardEvent::MTE2_V>();
    SetFlag<HardEvent::MTE2_V>(id);
    WaitFlag<HardEvent::MTE2_V>(id);
    pipe.ReleaseEventID<HardEvent::MTE2_V>(id);
    TQueSync<PIPE_V, PIPE_MTE3> sync;
    sync.SetFlag(pipe.FetchEventID(HardEvent::V_MTE3));
    sync.WaitFlag(0);
    const MutexID mutex = AllocMutexID();
    Mutex::Lock<PIPE_V>(mutex);
    Mutex::Unlock<PIPE_V>(mutex);
    ReleaseMutexID(mutex);
    LocalTensor<float> rest;
    TBuf<> some;
    pipe.InitBuffer(some, 1024);
    Gm<float>(z, nz).SetValue(0, PopStackBuffer<float, TPosition::LCM>(rest) ? rest.GetSize() : 0);
}
"""


@pytest.fixture(scope="module")
def library(build: Build) -> ctypes.CDLL:
    return build(SOURCE)


@pytest.fixture
def kernel(library: ctypes.CDLL, tools: Toolkit):
    def run(name: str, x: np.ndarray, z: np.ndarray, blocks: int = 1) -> np.ndarray:
        z = z.copy()
        assert launch(library, name, blocks, x, z, x.nbytes, z.nbytes) == 0, tools.message()
        return z

    return run


X = np.arange(64, dtype=np.float32)


def test_blocks(kernel) -> None:
    z = kernel("blocks", X, np.full(56, -1, np.float32))
    expected = np.full((7, 8), -1, np.float32)
    expected[::2] = X.reshape(8, 8)[::2]
    np.testing.assert_array_equal(z, expected.ravel())


def test_pad_in(kernel) -> None:
    z = kernel("pad_in", X, np.zeros(24, np.float32)).reshape(3, 8)
    for row, start in enumerate((0, 6, 12)):
        assert z[row].tolist() == [9, *X[start : start + 5], 9, 9]


def test_pad_params(kernel) -> None:
    x = np.arange(16, dtype=np.float16)
    assert kernel("pad_params", x, np.full(9, -1, np.float16)).tolist() == [0, 1, 2, 1, -1, 4, 5, 6, 1]


def test_pad_register(kernel) -> None:
    assert kernel("pad_register", X, np.zeros(8, np.float32)).tolist() == [0, 1, 2, 5, 5, 5, 5, 5]


def test_what_fills_a_block_that_is_no_unit(kernel) -> None:
    """Its first element without padding, whatever isPad says, else the padding's value."""
    rows = np.array([[0, 1, 2, 0, 0, 0, 0, 0], [4, 5, 6, 4, 4, 4, 4, 4]], np.float32)
    padded = np.array([[9, 0, 1, 2, 9, 9, 9, 9], [9, 4, 5, 6, 9, 9, 9, 9]], np.float32)
    found = kernel("dummies", X, np.zeros(64, np.float32)).reshape(4, 2, 8)
    np.testing.assert_array_equal(
        found, [rows, rows, padded, np.where(padded == 9, 7, padded)]
    )  # isPad gives padding its value, not its place


def test_slices(kernel) -> None:
    np.testing.assert_array_equal(kernel("slices", X, np.zeros(16, np.float32)), X.reshape(4, 16)[1::2, 8:].ravel())


def test_local_copy(kernel) -> None:
    np.testing.assert_array_equal(kernel("local_copy", X, np.zeros(32, np.float32)), X.reshape(8, 8)[::2].ravel())


def test_fractals(kernel) -> None:
    x = np.arange(20 * 24).astype(np.float16)
    np.testing.assert_array_equal(kernel("nz", x, np.zeros_like(x)), x)


@pytest.mark.parametrize(
    ("name", "dtype", "combine"),
    [
        ("atomic_float", np.float32, lambda x, z, n: z + n * x),
        ("atomic_half", np.float16, lambda x, z, n: z + n * x),
        ("atomic_int", np.int32, lambda x, z, n: z + n * x),
        ("atomic_max", np.float32, lambda x, z, n: np.maximum(x, z)),
        ("atomic_min", np.float32, lambda x, z, n: np.minimum(x, z)),
    ],
)
def test_atomic(kernel, name: str, dtype: type, combine) -> None:
    """Sixteen blocks add to the same memory, and nothing is lost."""
    x = (np.arange(2048) % 7).astype(dtype)
    z = (np.arange(2048) % 5).astype(dtype)
    np.testing.assert_array_equal(kernel(name, x, z, blocks=16), combine(x, z, 16).astype(dtype))


def test_fill(kernel) -> None:
    assert kernel("fill", X, np.zeros(14, np.float32)).tolist() == [2.0] * 10 + [4, 4, 5, 0]


def test_tensors(kernel) -> None:
    z = kernel("tensors", X, np.zeros(16, np.float32))
    assert z.tolist() == [32, 0, 2, 0, 3, 1, 3, 9.5, 64, 903, 24, 8.5, 8.5, 16, 64, 0]


def test_pools(kernel) -> None:
    z = kernel("pools", X, np.zeros(256, np.float32)).reshape(4, 64)
    np.testing.assert_array_equal(z, np.stack([X, X + 1, X + 2, np.full(64, 4)]))


def test_without_pipe(kernel) -> None:
    np.testing.assert_array_equal(kernel("without_pipe", X, np.zeros(64, np.float32)), X + 2)


def test_events(kernel) -> None:
    assert kernel("events", X, np.zeros(1, np.float32))[0] == (192 * 1024 - 1024) // 4


@pytest.mark.parametrize("name", ["fp8_e4m3fn_t", "fp8_e5m2_t", "fp8_e8m0_t", "hifloat8_t", "complex32", "complex64"])
def test_types_that_are_only_stored(build: Build, tools: Toolkit, name: str) -> None:
    """Copied from and to global memory, as elements and as bytes, also where nothing computes with them."""
    width = {"complex32": 4, "complex64": 8}.get(name, 1)
    code = f"""
    #include "kernel_operator.h"
    using namespace AscendC;
    static_assert(sizeof({name}) == {width} && std::is_same<AscendC::{name}, {name}>::value, "");
    extern "C" __global__ __aicore__ void copied(GM_ADDR x, GM_ADDR z) {{
        TPipe pipe;
        TBuf<TPosition::VECCALC> buffer;
        pipe.InitBuffer(buffer, 256);
        GlobalTensor<{name}> in, out;
        in.SetGlobalBuffer((__gm__ {name}*)x), out.SetGlobalBuffer((__gm__ {name}*)z);
        LocalTensor<{name}> local = buffer.Get<{name}>();
        DataCopyPad(local, in, DataCopyExtParams{{1, 12 * {width}, 0, 0, 0}},
            DataCopyPadExtParams<{name}>{{false, 0, 0, {name}()}});
        PipeBarrier<PIPE_ALL>();
        DataCopyPad(out, local, DataCopyExtParams{{1, 12 * {width}, 0, 0, 0}});
    }}
    """
    x, z = np.arange(128, dtype=np.uint8), np.zeros(128, np.uint8)
    assert launch(build(code), "copied", 1, x, z) == 0, tools.message()
    count = 12 * width
    assert z[:count].tolist() == x[:count].tolist()
    assert not z[count:].any()
