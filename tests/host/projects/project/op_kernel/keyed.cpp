#include "keyed.h"

extern "C" __global__ __aicore__ void times_key(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling) {
    TILING_KEY_IS(KEY_TWO);
#if ORIG_DTYPE_X == DT_FLOAT
    TILING_KEY_IS(KEY_THREE);
#endif
    GET_TILING_DATA_WITH_STRUCT(int64_t, count, tiling);
    for (int64_t i = 0; i < count; ++i) ((__gm__ DTYPE_Y*)y)[i] = Times(((__gm__ DTYPE_X*)x)[i]);
}
