// A function that is another one for each key: were all of them in one library, one would be taken for the
// others.
#include "kernel_operator.h"

#define KEY_TWO 2UL
#define KEY_THREE (KEY_TWO + 1)

template <typename T>
__aicore__ inline T Times(T x) {
#if TILING_KEY_VAR == KEY_TWO
    return x + x;
#elif (TILING_KEY_VAR == KEY_THREE)
    return x + x + x;
#endif
}
