#include "kernel_operator.h"
using namespace AscendC;

// Ways: 0 sets the workspace to 0 first; 1 forgets it; 2 waits by memory that is not 0. Of 3, 4 and 8 the
// tiling function asks for too little, and 5 uses none. 6 and 7 write beyond y.
extern "C" __global__ __aicore__ void partial_sum(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling) {
    GET_TILING_DATA(data, tiling);
    TPipe pipe;
    TBuf<TPosition::VECCALC> space;
    pipe.InitBuffer(space, 1024);
    const LocalTensor<float> tile = space.Get<float>();
    GlobalTensor<float> from, to, sums;
    GlobalTensor<int32_t> waits;
    from.SetGlobalBuffer((__gm__ float*)x + GetBlockIdx() * 64, 64);
    to.SetGlobalBuffer((__gm__ float*)y, 64);
    sums.SetGlobalBuffer((__gm__ float*)GetUserWorkspace(workspace), 64);
    waits.SetGlobalBuffer((__gm__ int32_t*)GetUserWorkspace(workspace) + 512, 512);
    if (data.way == 6 || data.way == 7) {
        if (data.way == 6) to.SetGlobalBuffer((__gm__ float*)y);
        if (data.way == 7) to.SetGlobalBuffer((__gm__ float*)y, 1024);
        if (GetBlockIdx() != 0) return;
        DataCopy(tile, from, 64);
        PipeBarrier<PIPE_ALL>();
        DataCopy(to[128], tile, 64);
        return;
    }
    if (data.way == 5) {
        if (workspace == nullptr || GetUserWorkspace(workspace) != workspace || GetBlockIdx() != 0) return;
        DataCopy(tile, from, 64);
        PipeBarrier<PIPE_ALL>();
        DataCopy(to, tile, 64);
        return;
    }
    if (data.way != 1) {
        if (GetBlockIdx() == 0) InitGlobalMemory(sums, 64, 0.0f);
        if (data.way == 2) {
            SyncAll(waits, space.Get<int32_t>());
        } else {
            SyncAll();
        }
    }
    DataCopy(tile, from, 64);
    PipeBarrier<PIPE_ALL>();
    SetAtomicAdd<float>();
    DataCopy(sums, tile, 64);
    SetAtomicNone();
    SyncAll();
    if (GetBlockIdx() != 0) return;
    DataCopy(tile, sums, 64);
    PipeBarrier<PIPE_ALL>();
    DataCopy(to, tile, 64);
}
