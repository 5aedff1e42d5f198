// A template, whose instance the tiling function picks: y = x * factor, or its negative.
#include "kernel_operator.h"
#include "pick_tiling_key.h"

template <typename T, int factor, bool negative>
__global__ __aicore__ void pick(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling) {
    GET_TILING_DATA_WITH_STRUCT(uint64_t, count, tiling);
    for (uint64_t i = 0; i < count; ++i) {
        const float value = static_cast<float>(((__gm__ T*)x)[i]) * factor;
        ((__gm__ T*)y)[i] = static_cast<T>(negative ? -value : value);
    }
}

// A function that tests of kernels alone would call.
#ifdef __CCE_UT_TEST__
extern "C" __global__ __aicore__ void pick(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling) {
    pick<float, 1, true>(x, y, workspace, tiling);
}
#endif
