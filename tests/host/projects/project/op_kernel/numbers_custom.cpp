#include "kernel_operator.h"

struct NumbersTiling {
    uint32_t count, weights, step;
};

extern "C" __global__ __aicore__ void numbers_custom(GM_ADDR x, GM_ADDR scale, GM_ADDR weights, GM_ADDR shift,
                                                     GM_ADDR steps, GM_ADDR y, GM_ADDR workspace,
                                                     GM_ADDR tiling) {
    GET_TILING_DATA_WITH_STRUCT(NumbersTiling, data, tiling);
    float sum = shift == nullptr ? 0 : static_cast<float>(((__gm__ DTYPE_SHIFT*)shift)[0]);
    for (uint32_t i = 0; i < data.weights; ++i) sum += ((__gm__ float*)weights)[i];
    sum += data.step;
    if (((__gm__ int64_t*)steps)[0] < 0) return;
    for (uint32_t i = 0; i < data.count; ++i) {
        const float value =
            static_cast<float>(((__gm__ DTYPE_X*)x)[i]) * static_cast<float>(((__gm__ DTYPE_SCALE*)scale)[0]);
        ((__gm__ DTYPE_Y*)y)[i] = static_cast<DTYPE_Y>(value + sum);
    }
}
