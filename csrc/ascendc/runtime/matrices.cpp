// The product of matrices: tiles of C stay in registers while k runs, next to a panel of B that lies in the
// cache.
//
// Each element of C gets its products one after the other in the order of k, whatever tile it falls into and
// whatever vectors the processor has; with a processor that fuses multiplication and addition each step is
// rounded once.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "ascendc_host/internal/numbers.h"

#define ASCENDC_INLINE inline __attribute__((always_inline))

namespace ascendc_host {
namespace {

template <typename T, size_t bytes>
struct VectorOf {
    typedef T type __attribute__((vector_size(bytes), aligned(alignof(T)), may_alias));
};

// c[rows, two vectors] += a[rows, k] * panel[k, two vectors]
template <typename T, size_t bytes, int rows>
ASCENDC_INLINE void multiply_tile(const T* a, size_t a_row, const T* panel, T* c, size_t c_row, size_t k) {
    using Vector = typename VectorOf<T, bytes>::type;
    constexpr size_t lanes = bytes / sizeof(T);
    Vector sum[rows][2];
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
        sum[r][0] = *reinterpret_cast<const Vector*>(c + r * c_row);
        sum[r][1] = *reinterpret_cast<const Vector*>(c + r * c_row + lanes);
    }
    for (size_t i = 0; i < k; ++i) {
        const Vector low = *reinterpret_cast<const Vector*>(panel + i * 2 * lanes);
        const Vector high = *reinterpret_cast<const Vector*>(panel + i * 2 * lanes + lanes);
#pragma GCC unroll 16
        for (int r = 0; r < rows; ++r) {
            const T factor = a[r * a_row + i];
            sum[r][0] += factor * low;
            sum[r][1] += factor * high;
        }
    }
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
        *reinterpret_cast<Vector*>(c + r * c_row) = sum[r][0];
        *reinterpret_cast<Vector*>(c + r * c_row + lanes) = sum[r][1];
    }
}

// Tiles of `rows` rows and two vectors; what is left of the columns is computed in a whole tile next to C.
template <typename T, size_t bytes, int rows>
ASCENDC_INLINE void multiply_blocked(const T* a, const T* b, T* c, size_t m, size_t n, size_t k) {
    constexpr size_t width = 2 * bytes / sizeof(T);
    constexpr size_t depth = 256;
    alignas(64) T panel[depth * width];
    alignas(64) T edge[rows * width] = {};
    for (size_t first = 0; first < k; first += depth) {
        const size_t deep = std::min(depth, k - first);
        for (size_t column = 0; column < n; column += width) {
            const size_t wide = std::min(width, n - column);
            for (size_t i = 0; i < deep; ++i) {
                T* to = std::copy_n(b + (first + i) * n + column, wide, panel + i * width);
                std::fill_n(to, width - wide, T(0));
            }
            for (size_t row = 0; row < m;) {
                const size_t high = m - row >= size_t(rows) ? rows : m - row >= 4 ? 4 : 1;
                T* const results = c + row * n + column;
                T* to = results;
                size_t to_row = n;
                if (wide < width) {
                    for (size_t r = 0; r < high; ++r) std::copy_n(results + r * n, wide, edge + r * width);
                    to = edge;
                    to_row = width;
                }
                const T* left = a + row * k + first;
                if (high == size_t(rows)) {
                    multiply_tile<T, bytes, rows>(left, k, panel, to, to_row, deep);
                } else if (high == 4) {
                    multiply_tile<T, bytes, 4>(left, k, panel, to, to_row, deep);
                } else {
                    multiply_tile<T, bytes, 1>(left, k, panel, to, to_row, deep);
                }
                if (wide < width) {
                    for (size_t r = 0; r < high; ++r) std::copy_n(edge + r * width, wide, results + r * n);
                }
                row += high;
            }
        }
    }
}

#if defined(__x86_64__)
// As many rows as leave registers for two vectors of the panel and a factor.
template <typename T>
__attribute__((target("avx512f,fma"))) void multiply_avx512(const T* a, const T* b, T* c, size_t m, size_t n,
                                                            size_t k) {
    multiply_blocked<T, 64, 12>(a, b, c, m, n, k);
}
template <typename T>
__attribute__((target("avx2,fma"))) void multiply_avx2(const T* a, const T* b, T* c, size_t m, size_t n,
                                                       size_t k) {
    multiply_blocked<T, 32, 6>(a, b, c, m, n, k);
}
#endif

template <typename T>
void multiply(const T* a, const T* b, T* c, size_t m, size_t n, size_t k) {
#if defined(__x86_64__)
    static const bool has_fma = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    static const bool has_avx512 = has_fma && __builtin_cpu_supports("avx512f");
    if (has_avx512) return multiply_avx512(a, b, c, m, n, k);
    if (has_fma) return multiply_avx2(a, b, c, m, n, k);
#endif
    multiply_blocked<T, 16, 6>(a, b, c, m, n, k);
}

}  // namespace

void multiply_add(const float* a, const float* b, float* c, size_t m, size_t n, size_t k) {
    multiply(a, b, c, m, n, k);
}

void multiply_add(const int32_t* a, const int32_t* b, int32_t* c, size_t m, size_t n, size_t k) {
    // As unsigned numbers: sums wrap, as on the device.
    multiply(reinterpret_cast<const uint32_t*>(a), reinterpret_cast<const uint32_t*>(b),
             reinterpret_cast<uint32_t*>(c), m, n, k);
}

}  // namespace ascendc_host
