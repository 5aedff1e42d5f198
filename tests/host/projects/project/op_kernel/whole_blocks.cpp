#include "kernel_operator.h"

// Kernels move blocks of 32 bytes: the last one goes on behind a tensor that does not end with it.
extern "C" __global__ __aicore__ void whole_blocks(GM_ADDR x, GM_ADDR x_ref, GM_ADDR y, GM_ADDR workspace,
                                                   GM_ADDR tiling) {
    GET_TILING_DATA_WITH_STRUCT(uint32_t, place, tiling);
    AscendC::TPipe pipe;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> buffer;
    pipe.InitBuffer(buffer, 32);
    AscendC::LocalTensor<float> local = buffer.Get<float>();
    AscendC::GlobalTensor<float> own, out;
    own.SetGlobalBuffer((__gm__ float*)x_ref);
    out.SetGlobalBuffer((__gm__ float*)y);
    AscendC::Duplicate(local, 7.0f, 8);
    AscendC::PipeBarrier<PIPE_ALL>();
    AscendC::DataCopy(own, local, 8);
    AscendC::DataCopy(out[place], local, 8);
}
