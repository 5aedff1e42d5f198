# ruff: noqa: E501, PLR0917, RUF100 - kernels and build files are quoted as they are written
"""Blocks that wait for one another, cores of a group, deterministic order, tiling, and output from kernels."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from ..conftest import Build, Toolkit, launch

SOURCE = """
#include "kernel_operator.h"
#include "utils/std/algorithm.h"
#include "utils/std/cmath.h"
#include "utils/std/tuple.h"
#include "utils/std/type_traits.h"
#include "utils/std/utility.h"
#include "kernel_tiling/kernel_tiling.h"
using namespace AscendC;
#define OUT(T, n) GlobalTensor<T> out; out.SetGlobalBuffer((__gm__ T*)z, n)

extern "C" __global__ __aicore__ void all_meet(GM_ADDR z, uint32_t rounds) {  // each block reads what all wrote
    const auto n = GetBlockNum(), me = GetBlockIdx();
    OUT(int32_t, 2 * n);
    for (uint32_t round = 0; round < rounds; ++round) {
        int32_t sum = 0;
        for (int i = 0; i < n; ++i) sum += out.GetValue(round % 2 * n + i);
        out.SetValue((round + 1) % 2 * n + me, sum % 1000 + me);
        SyncAll();
    }
}
extern "C" __global__ __aicore__ void crowd(GM_ADDR z, uint32_t) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_2);
    SyncAll<false>();
}
extern "C" __global__ __aicore__ void soft_meet(GM_ADDR z) {
    TPipe pipe;
    TBuf<> buf;
    pipe.InitBuffer(buf, 1024);
    GlobalTensor<int32_t> workspace;
    OUT(int32_t, GetBlockNum() + 1);
    out.SetValue(GetBlockIdx(), 1);
    SyncAll(workspace, buf.Get<int32_t>());
    int32_t sum = 0;
    for (int i = 0; i < GetBlockNum(); ++i) sum += out.GetValue(i);
    SyncAll(workspace, buf.Get<int32_t>());
    out.SetValue(GetBlockIdx(), sum);
}
extern "C" __global__ __aicore__ void chain(GM_ADDR z) {  // one after the other, by events of blocks
    OUT(int32_t, GetBlockNum() + 1);
    GlobalTensor<int32_t> workspace;
    LocalTensor<int32_t> local;
    const auto me = GetBlockIdx();
    if (me > 0) IBWait(workspace, local, me - 1, 0);
    out.SetValue(me + 1, out.GetValue(me) + me);
    IBSet(workspace, local, me, 0);
}
extern "C" __global__ __aicore__ void in_order(GM_ADDR z) {
    OUT(int32_t, GetBlockNum() + 1);
    GlobalTensor<int32_t> workspace;
    LocalTensor<int32_t> local;
    InitDetermineComputeWorkspace(workspace, local);
    WaitPreBlock(workspace, local);
    const int32_t at = out.GetValue(0);
    out.SetValue(at + 1, GetBlockIdx());
    out.SetValue(0, at + 1);
    NotifyNextBlock(workspace, local);
}
extern "C" __global__ __aicore__ void polls(GM_ADDR z) {  // the first block waits for the last by reading its word
    OUT(int32_t, GetBlockNum());
    if (GetBlockIdx() == 0) {
        while (ReadGmByPassDCache<int32_t>((__gm__ int32_t*)z + GetBlockNum() - 1) == 0) {
            DataCacheCleanAndInvalid<int32_t, CacheLine::SINGLE_CACHE_LINE, DcciDst::CACHELINE_OUT>(out);
        }
        out.SetValue(0, 2);
    } else {
        WriteGmByPassDCache<int32_t>((__gm__ int32_t*)z + GetBlockIdx(), 1);
    }
}
// Blocks 0 and 1 tell the others, twice; all wait for what was written before.
extern "C" __global__ __aicore__ void groups(GM_ADDR z, GM_ADDR workspace) {
    OUT(int32_t, 8);
    GroupBarrier<PipeMode::MTE3_MODE> barrier(workspace, 2, 3);
    const int32_t block = GetBlockIdx();
    for (int32_t round = 1; round <= 2; ++round) {
        if (block < 2) {
            out.SetValue(block, 10 * round + block);
            barrier.Arrive(block);
        } else {
            barrier.Wait(block - 2);
            out.SetValue(block, out.GetValue(0) + out.GetValue(1) >= 20 * round + 1);
        }
    }
    if (block == 4) out.SetValue(5, barrier.GetWorkspaceLen());
}
// One cube core and two vector cores in a group, asked for by the kernel's first question.
extern "C" __global__ __aicore__ void split(GM_ADDR z) {
    OUT(int32_t, 64);
    if ASCEND_IS_AIC {
        out.SetValue(GetBlockIdx(), 100 + GetBlockIdx());
        NotifyEvent<PIPE_FIX>(3);
        WaitEvent<PIPE_MTE2>(4);
        out.SetValue(40 + GetBlockIdx(), out.GetValue(8 + 2 * GetBlockIdx()) + out.GetValue(9 + 2 * GetBlockIdx()));
    }
    if ASCEND_IS_AIV {
        CrossCoreWaitFlag(3);
        const Std::tuple<int64_t, int64_t> at = Std::make_tuple(GetBlockIdx() / GetSubBlockNum(),
            Std::abs(int64_t(-63)));
        const auto group = Std::min(Std::get<0>(at), Std::get<1>(at));
        out.SetValue(8 + GetBlockIdx(), out.GetValue(group) * 10 + GetSubBlockIdx());
        CrossCoreSetFlag<1, PIPE_MTE3>(5);
        CrossCoreWaitFlag<1, PIPE_S>(5);
        CrossCoreSetFlag<0, PIPE_MTE3>(SYNC_AIC_FLAG);
        WaitEvent(SYNC_AIC_FLAG);
        SyncAll();
        CrossCoreSetFlag<2, PIPE_MTE3>(4);
    }
    SyncAll<false>();
}
extern "C" __global__ __aicore__ void types(GM_ADDR z, uint32_t which) {
    if (which == 0) KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    if (which == 1) KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    if (which == 2) KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_1);
    if (which == 3) KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_2);
    OUT(int32_t, 16);
    if ASCEND_IS_AIV out.SetValue(GetBlockIdx(), 10 * GetSubBlockNum() + 1 + GetSubBlockIdx());
    if ASCEND_IS_NOT_AIV out.SetValue(8 + GetBlockIdx(), 10 * GetSubBlockNum() + GetTaskRation());
}
extern "C" __global__ __mix__(1, 2) void core_type(GM_ADDR z) {
    OUT(int32_t, 16);
    // The intrinsic's index is the group's; so is the object's.
    if (get_block_idx() != (g_coreType == AIV ? GetBlockIdx() / 2 : GetBlockIdx())) return;
    if (block_idx != get_block_idx()) return;
    const int32_t numbers[3] = {1, 2, 3};
    int32_t copied[3] = {};
    copy_data_align64((uint8_t*)copied, (uint8_t*)numbers, sizeof numbers);
    if (copied[0] + copied[1] * 10 + copied[2] * 100 != 321) return;
    if (g_coreType == AIV) out.SetValue(GetBlockIdx(), 1 + GetSubBlockIdx());
    if (g_coreType != AscendC::AIV) out.SetValue(8 + GetBlockIdx(), 10 + (AscendC::g_coreType == AscendC::AIC));
}
extern "C" __global__ __vector__ void qualified_vector(GM_ADDR z) {
    OUT(int32_t, 8);
    if ASCEND_IS_AIV out.SetValue(GetBlockIdx(), 1);
    if ASCEND_IS_NOT_AIC out.SetValue(4 + GetBlockIdx(), 2);
}
extern "C" __global__ __mix__(1, 1) void qualified_mix(GM_ADDR z) {
    OUT(int32_t, 8);
    if ASCEND_IS_AIV out.SetValue(GetBlockIdx(), 1);
    if ASCEND_IS_AIC out.SetValue(4 + GetBlockIdx(), 2);
}
BEGIN_TILING_DATA_DEF(Part)
TILING_DATA_FIELD_DEF(uint32_t, rows);
END_TILING_DATA_DEF;
BEGIN_TILING_DATA_DEF(Tiling)
TILING_DATA_FIELD_DEF(uint8_t, flag);
TILING_DATA_FIELD_DEF(int64_t, length);
TILING_DATA_FIELD_DEF_ARR(int16_t, 3, sizes);
TILING_DATA_FIELD_DEF_STRUCT(Part, part);
END_TILING_DATA_DEF;
REGISTER_TILING_DATA_CLASS(Demo, Tiling)
extern "C" void save(uint8_t* buffer, uint32_t capacity) {
    Tiling tiling;
    const int16_t sizes[3] = {4, 5, 6};
    tiling.set_flag(7);
    tiling.set_length(-8);
    tiling.set_sizes(sizes);
    tiling.part.set_rows(9);
    tiling.SaveToBuffer(buffer, capacity);
    if (tiling.GetDataSize() != sizeof(Tiling) || tiling.get_length() != -8
        || tiling.get_sizes()[1] != 5) buffer[0] = 0;
}
extern "C" __global__ __aicore__ void tiled(GM_ADDR z, GM_ADDR workspace, GM_ADDR tiling) {
    REGISTER_TILING_DEFAULT(ascendc_tiling_of_Demo);
    GET_TILING_DATA(data, tiling);
    GET_TILING_DATA_MEMBER(Tiling, length, length, tiling);
    SetSysWorkspace(workspace);
    OUT(int32_t, 8);
    out.SetValue(0, data.flag);
    out.SetValue(1, length);
    out.SetValue(2, data.sizes[2] + data.part.rows);
    out.SetValue(3, GetUserWorkspace(workspace) == workspace && GetSysWorkSpacePtr() == workspace);
    out.SetValue(4, TILING_KEY_IS(0) ? 1 : TILING_KEY_IS(77) ? 2 : 3);
}
extern "C" __global__ __aicore__ void settings(GM_ADDR z) {
    KERNEL_TASK_TYPE(5, KERNEL_TYPE_MIX_AIC_1_2);
    InitSocState();
    SetNextTaskStart();
    WaitPreTaskEnd();
    SetHF32TransMode(true);
    SetHF32TransMode(HF32TransMode::NEAREST_ZERO);
    SetMMRowMajor();
    SetMMColumnMajor();
    SetMMLayoutTransform(false);
    SetSysWorkspaceForce(z);
    ASCENDC_ASSERT(GetSysWorkSpacePtr() == z, { Trap(); });
    REGISTER_NONE_TILING;
    GET_TILING_DATA_PTR_WITH_STRUCT(Tiling, found, z);
    __tiling_data_ptr__ Tiling* tiling = found;
    OUT(int32_t, 8);
    DataCachePreload<int32_t, CacheLine::SINGLE_CACHE_LINE>(out, 0);
    out.SetValue(GetBlockIdx(), GetTaskRatio() + (GetRuntimeUBSize() == GetUBSizeInBytes())
        + (reinterpret_cast<GM_ADDR>(const_cast<Tiling*>(tiling)) == z));
}
extern "C" __global__ __aicore__ void prints(GM_ADDR z) {
    OUT(float, 4);
    TPipe pipe;
    TBuf<> buf;
    pipe.InitBuffer(buf, 32);
    auto local = buf.Get<float>();
    DataCopyPad(local, out, DataCopyExtParams{1, 16, 0, 0, 0}, DataCopyPadExtParams<float>());
    AscendC::printf("block %d of %d\\n", (int)GetBlockIdx(), (int)GetBlockNum());
    PRINTF("plain\\n");
    DumpTensor(local, 5, 4);
    DumpTensor(out, 6, 2);
    local.Print(2);
    uint32_t version;
    GetArchVersion(version);
    printf("%u %d %u %d\\n", version, (int)GetDataBlockSizeInBytes(), GetUBSizeInBytes(),
        GetSystemCycle() > 0 && GetProgramCounter() != 0);
}
"""


@pytest.fixture(scope="module")
def library(build: Build) -> ctypes.CDLL:
    return build(SOURCE)


@pytest.mark.parametrize("blocks", [1, 2, 7, 48])
def test_sync_all(library: ctypes.CDLL, tools: Toolkit, blocks: int) -> None:
    rounds = 20
    z = np.zeros(2 * blocks, np.int32)
    assert launch(library, "all_meet", blocks, z, rounds) == 0, tools.message()
    state = np.zeros(blocks, np.int64)
    for _ in range(rounds):
        state = state.sum() % 1000 + np.arange(blocks)
    assert z[:blocks].tolist() == state.tolist()


@pytest.mark.parametrize(
    ("kernel", "blocks", "cores"), [("all_meet", 49, "48 vector cores"), ("crowd", 25, "24 cube cores")]
)
def test_more_blocks_than_cores_never_meet(
    library: ctypes.CDLL, tools: Toolkit, kernel: str, blocks: int, cores: str
) -> None:
    assert launch(library, kernel, blocks, np.zeros(512, np.int32), 1) == 507014
    assert f"{blocks} blocks wait for one another, and Ascend910B1 has {cores}: there they wait for ever" in (
        tools.message()
    )


def test_soft_sync(library: ctypes.CDLL) -> None:
    z = np.zeros(25, np.int32)
    assert launch(library, "soft_meet", 24, z) == 0
    assert z[:24].tolist() == [24] * 24


def test_block_events(library: ctypes.CDLL) -> None:
    z = np.zeros(13, np.int32)
    assert launch(library, "chain", 12, z) == 0
    assert z[1:].tolist() == np.cumsum(np.arange(12)).tolist()


def test_deterministic_order(library: ctypes.CDLL) -> None:
    z = np.zeros(13, np.int32)
    assert launch(library, "in_order", 12, z) == 0
    assert z.tolist() == [12, *range(12)]


def test_polling(library: ctypes.CDLL) -> None:
    z = np.zeros(12, np.int32)
    assert launch(library, "polls", 12, z) == 0
    assert z.tolist() == [2, *[1] * 11]


def test_groups_of_blocks_wait_for_others(library: ctypes.CDLL, tools: Toolkit) -> None:
    z, workspace = np.zeros(8, np.int32), np.zeros(3 * 128, np.int32)
    assert launch(library, "groups", 5, z, workspace) == 0, tools.message()
    assert z.tolist() == [20, 21, 1, 1, 1, 3 * 512, 0, 0]
    assert workspace[::128].tolist() == [2, 2, 0]


def test_atlas_a3_has_no_barrier_of_groups(
    library: ctypes.CDLL, tools: Toolkit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASCEND_GRAPH_HOST_SOC", "Ascend910_9391")
    launch(library, "groups", 5, np.zeros(8, np.int32), np.zeros(3 * 128, np.int32))
    assert "GroupBarrier::" in tools.message()
    assert "Atlas A3 does not have it" in tools.message()


def test_split_cores(library: ctypes.CDLL, tools: Toolkit) -> None:
    z = np.zeros(64, np.int32)
    assert launch(library, "split", 3, z) == 0, tools.message()
    assert z[:3].tolist() == [100, 101, 102]
    assert z[8:14].tolist() == [1000, 1001, 1010, 1011, 1020, 1021]
    assert z[40:43].tolist() == [2001, 2021, 2041]


@pytest.mark.parametrize(
    ("which", "vector", "cube"),
    [
        (0, [11, 11, 0, 0], [0, 0]),
        (1, [0, 0, 0, 0], [11, 11]),
        (2, [11, 11, 0, 0], [11, 11]),
        (3, [21, 22, 21, 22], [11, 11]),
    ],
)
def test_kernel_types(library: ctypes.CDLL, which: int, vector: list[int], cube: list[int]) -> None:
    z = np.zeros(16, np.int32)
    assert launch(library, "types", 2, z, which) == 0
    assert (z[:4].tolist(), z[8:10].tolist()) == (vector, cube)


def test_qualifiers(library: ctypes.CDLL) -> None:
    z = np.zeros(8, np.int32)
    sixteen = np.zeros(16, np.int32)
    assert launch(library, "core_type", 2, sixteen) == 0
    assert sixteen.tolist() == [1, 2, 1, 2, 0, 0, 0, 0, 11, 11, 0, 0, 0, 0, 0, 0]
    assert launch(library, "qualified_vector", 2, z) == 0
    assert z.tolist() == [1, 1, 0, 0, 2, 2, 0, 0]
    z[:] = 0
    assert launch(library, "qualified_mix", 2, z) == 0
    assert z.tolist() == [1, 1, 0, 0, 2, 2, 0, 0]


def test_tiling(library: ctypes.CDLL, tools: Toolkit) -> None:
    buffer = np.zeros(64, np.uint8)
    library.save(ctypes.c_void_p(buffer.ctypes.data), 64)
    z = np.zeros(8, np.int32)
    assert launch(library, "tiled", 1, z, buffer, buffer) == 0, tools.message()
    assert z[:5].tolist() == [7, -8, 15, 1, 1]
    tools.seam.ascendcHostSetTilingKey(ctypes.c_uint64(77))
    assert launch(library, "tiled", 1, z, buffer, buffer) == 0
    assert z[4] == 2
    assert launch(library, "tiled", 1, z, buffer, buffer) == 0
    assert z[4] == 1, "a tiling key is for one launch"


def test_settings(library: ctypes.CDLL, tools: Toolkit) -> None:
    """What only tunes the device changes nothing; KERNEL_TASK_TYPE declares a type for one tiling key."""
    z = np.zeros(8, np.int32)
    assert launch(library, "settings", 2, z) == 0, tools.message()
    assert z.tolist() == [3, 3, 0, 0, 0, 0, 0, 0]
    tools.seam.ascendcHostSetTilingKey(ctypes.c_uint64(5))
    assert launch(library, "settings", 2, z) == 0
    assert z[2:].tolist() == [4, 4, 0, 0, 0, 0], "the vector cores of two groups"


def test_output(library: ctypes.CDLL, capfd: pytest.CaptureFixture[str]) -> None:
    z = np.arange(4, dtype=np.float32)
    assert launch(library, "prints", 1, z) == 0
    lines = capfd.readouterr().out.splitlines()
    assert lines == [
        "block 0 of 1",
        "plain",
        "DumpTensor: desc=5, block 0: [0, 1, 2, 3]",
        "DumpTensor: desc=6, block 0: [0, 1]",
        "0 1 ",
        "220 32 196608 1",
    ]


KEYS = """
#include "kernel_operator.h"
struct One { int32_t value; };
struct Two { int32_t first, second; };
extern "C" __global__ __aicore__ void keyed(GM_ADDR tiling, GM_ADDR to) {
    __gm__ int32_t* result = (__gm__ int32_t*)to;
    REGISTER_TILING_DEFAULT(One);
    REGISTER_TILING_FOR_TILINGKEY("(TILING_KEY_VAR & 0xF0) == 16 && !(TILING_KEY_VAR > 17)", Two);
    REGISTER_TILING_FOR_TILINGKEY("TILING_KEY_VAR == 40 && MODE == 1", Two);
    result[0] = TILING_KEY_VAR >= 16 ? 1 : 0;
    if (TILING_KEY_VAR == 16) {
        GET_TILING_DATA_WITH_STRUCT(Two, data, tiling);
        result[1] = data.second;
    } else {
        GET_TILING_DATA(data, tiling);
        result[1] = data.value;
    }
}
"""


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (3, [0, 7]),
        (16, [1, 9]),
        (18, [1, 7]),
        (32, [1, 7]),
        (17, "tiling key 17 has the structure Two (REGISTER_TILING_FOR_TILINGKEY: (TILING_KEY_VAR & 0xF0) == 16"),
        (
            40,
            (
                "tiling key 40 may have the structure Two (REGISTER_TILING_FOR_TILINGKEY: "
                "TILING_KEY_VAR == 40 && MODE == "
                "1"
            ),
        ),
    ],
)
def test_structures_of_some_tiling_keys(build: Build, tools: Toolkit, key: int, expected: list[int] | str) -> None:
    """GET_TILING_DATA reads the default's, and is refused where the key has, or may have, another."""
    library = build(KEYS)
    tiling, z = np.array([7, 9], np.int32), np.zeros(8, np.int32)
    tools.seam.seam_clear()
    tools.seam.ascendcHostSetTilingKey(ctypes.c_uint64(key))
    status = launch(library, "keyed", 1, tiling, z)
    if isinstance(expected, str):
        assert expected in tools.message()
        assert "write GET_TILING_DATA_WITH_STRUCT" in tools.message()
    else:
        assert (status, z[:2].tolist()) == (0, expected), tools.message()
