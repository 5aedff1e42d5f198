#include "kernel_operator.h"

extern "C" __global__ __aicore__ void faulty(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling) {
    GET_TILING_DATA(data, tiling);
    AscendC::TPipe pipe;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> buffer;
    AscendC::GlobalTensor<DTYPE_X> in;
    in.SetGlobalBuffer((__gm__ DTYPE_X*)x, 4);
    pipe.InitBuffer(buffer, 256);
    AscendC::LocalTensor<DTYPE_X> local = buffer.Get<DTYPE_X>();
    if (data.way == 1) AscendC::DataCopy(local, in, 3);
    if (data.way == 2) in.GetValue(4);
    if (TILING_KEY_IS(0)) {
        reinterpret_cast<__gm__ DTYPE_Y*>(y)[0] = 1;
    } else if (TILING_KEY_IS(1)) {
        reinterpret_cast<__gm__ DTYPE_Y*>(y)[0] = 2;
    }
}

// A plain program's launch, which the build of a package does not look at.
void faulty_do(void* stream, uint8_t* x) { faulty<<<1, nullptr, stream>>>(x); }
