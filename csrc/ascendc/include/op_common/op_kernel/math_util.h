// Integer arithmetic of kernels: quotients and multiples, rounded down or up.
#ifndef ASCEND_GRAPH_OP_KERNEL_MATH_UTIL_H
#define ASCEND_GRAPH_OP_KERNEL_MATH_UTIL_H

#include <cstdint>

namespace Ops::Base {

// Of numbers that are not negative, as if they had 64 bits.
template <typename T>
__aicore__ inline T CeilDiv(T a, T b) {
    const auto dividend = static_cast<uint64_t>(a), divisor = static_cast<uint64_t>(b);
    return static_cast<T>((dividend + divisor - 1) / divisor);
}
template <typename T>
__aicore__ inline T CeilAlign(T a, T b) {
    const auto value = static_cast<uint64_t>(a), unit = static_cast<uint64_t>(b);
    return static_cast<T>((value + unit - 1) / unit * unit);
}
template <typename T>
__aicore__ inline T FloorDiv(T a, T b) {
    return a / b;
}
template <typename T>
__aicore__ inline T FloorAlign(T a, T b) {
    return a / b * b;
}

}  // namespace Ops::Base

#endif  // ASCEND_GRAPH_OP_KERNEL_MATH_UTIL_H
