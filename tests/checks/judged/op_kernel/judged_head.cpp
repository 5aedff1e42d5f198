#include "kernel_operator.h"

extern "C" __global__ __aicore__ void judged_head(GM_ADDR x, GM_ADDR size, GM_ADDR y, GM_ADDR workspace,
                                                  GM_ADDR tiling) {
    GET_TILING_DATA(data, tiling);
    AscendC::GlobalTensor<float> from, to;
    from.SetGlobalBuffer((__gm__ float*)x, data.total);
    to.SetGlobalBuffer((__gm__ float*)y, data.total);
    for (uint32_t i = 0; i < data.total; ++i) to.SetValue(i, from.GetValue(i));
}
