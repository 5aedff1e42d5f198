#include "kernel_operator.h"

extern "C" __global__ __aicore__ void scale_custom(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling) {
    GET_TILING_DATA_WITH_STRUCT(uint32_t, elements, tiling);
    for (uint32_t i = AscendC::GetBlockIdx(); i < elements; i += AscendC::GetBlockNum())
        ((__gm__ float*)y)[i] = FACTOR * ((__gm__ float*)x)[i] + AscendC::GetBlockNum();
}
