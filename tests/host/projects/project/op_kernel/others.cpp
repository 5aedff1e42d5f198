#include "kernel_operator.h"

extern "C" __global__ __aicore__ void accumulate_custom(GM_ADDR acc, GM_ADDR x, GM_ADDR acc_ref,
                                                        GM_ADDR workspace, GM_ADDR tiling) {
    GET_TILING_DATA_WITH_STRUCT(uint32_t, count, tiling);
    for (uint32_t i = 0; i < count; ++i) ((__gm__ float*)acc_ref)[i] += ((__gm__ float*)x)[i];
}

extern "C" __global__ __aicore__ void untiled(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling) {}
