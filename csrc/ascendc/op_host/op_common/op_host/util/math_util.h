// Integer arithmetic of tiling functions: quotients and multiples, rounded down or up.
#ifndef ASCEND_GRAPH_OP_HOST_MATH_UTIL_H
#define ASCEND_GRAPH_OP_HOST_MATH_UTIL_H

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "util/opbase_export.h"

namespace Ops::Base {

// The quotient, rounded toward zero; `x` itself where `y` is 0.
template <typename T, typename = std::enable_if_t<std::is_integral_v<T>>>
T FloorDiv(T x, T y) {
    return y == 0 ? x : static_cast<T>(x / y);
}

// The quotient, rounded up; `x` itself where `y` is 0.
template <typename T, typename = std::enable_if_t<std::is_integral_v<T>>>
T CeilDiv(T x, T y) {
    if (y == 0) return x;
    const bool rest = x % y != 0;
    const bool positive = (x < T{}) == (y < T{});
    return static_cast<T>(x / y + (rest && positive ? 1 : 0));
}

// The next multiple of `align` below; 0 where that is 0.
template <typename T, typename = std::enable_if_t<std::is_integral_v<T>>>
T FloorAlign(T x, T align) {
    return align == 0 ? T{} : static_cast<T>(x / align * align);
}

// The next multiple of `align` above, or the greatest number there is; 0 where `align` is 0.
template <typename T, typename = std::enable_if_t<std::is_integral_v<T>>>
T CeilAlign(T x, T align) {
    if (align == 0) return T{};
    T result{};
    return __builtin_mul_overflow(CeilDiv(x, align), align, &result) ? std::numeric_limits<T>::max() : result;
}

template <typename T, typename = std::enable_if_t<std::is_floating_point_v<T>>>
bool IsFloatEqual(T a, T b) {
    if (std::isinf(a) || std::isinf(b)) return a == b;
    return std::abs(a - b) <= std::numeric_limits<T>::epsilon();  // false for NaN
}

// The greatest power of two that is not above `n`.
inline uint64_t LastPow2(uint64_t n) {
    if (n == 0) return 0;
    uint64_t power = 1;
    while (power <= n / 2) power *= 2;
    return power;
}

}  // namespace Ops::Base

#endif  // ASCEND_GRAPH_OP_HOST_MATH_UTIL_H
