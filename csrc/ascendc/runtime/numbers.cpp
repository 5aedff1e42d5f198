// Conversion between half and float in bulk.
// The compiler's headers come first: the API makes __bf16, which they use, a name of its own.
#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

#include "ascendc_host/internal/numbers.h"

namespace ascendc_host {
namespace {

void widen_plain(const half* from, float* to, size_t count) {
    for (size_t i = 0; i < count; ++i) to[i] = from[i];
}
void narrow_plain(const float* from, half* to, size_t count) {
    for (size_t i = 0; i < count; ++i) to[i] = static_cast<half>(from[i]);
}

template <HalfOp op>
half combine_one(half a, half b) {
    const float x = a, y = b;
    return static_cast<half>(op == HalfOp::add ? x + y : op == HalfOp::sub ? x - y : x * y);
}
template <HalfOp op>
void combine_plain(const half* a, const half* b, half* to, size_t count) {
    for (size_t i = 0; i < count; ++i) to[i] = combine_one<op>(a[i], b[i]);
}

#if defined(__x86_64__)
__attribute__((target("avx,f16c"))) void widen_f16c(const half* from, float* to, size_t count) {
    size_t i = 0;
    for (; i + 8 <= count; i += 8) {
        _mm256_storeu_ps(to + i,
                         _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i))));
    }
    for (; i < count; ++i) to[i] = from[i];
}
__attribute__((target("avx,f16c"))) void narrow_f16c(const float* from, half* to, size_t count) {
    size_t i = 0;
    for (; i + 8 <= count; i += 8) {
        _mm_storeu_si128(
            reinterpret_cast<__m128i*>(to + i),
            _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    }
    for (; i < count; ++i) to[i] = static_cast<half>(from[i]);
}
template <HalfOp op>
__attribute__((target("avx,f16c"))) void combine_f16c(const half* a, const half* b, half* to, size_t count) {
    size_t i = 0;
    for (; i + 8 <= count; i += 8) {
        const __m256 x = _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(a + i)));
        const __m256 y = _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(b + i)));
        const __m256 z = op == HalfOp::add   ? _mm256_add_ps(x, y)
                         : op == HalfOp::sub ? _mm256_sub_ps(x, y)
                                             : _mm256_mul_ps(x, y);
        _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i),
                         _mm256_cvtps_ph(z, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    }
    for (; i < count; ++i) to[i] = combine_one<op>(a[i], b[i]);
}
bool has_f16c() {
    // Not every compiler that has the instructions has their name for __builtin_cpu_supports.
    static const bool has = [] {
        unsigned a = 0, b = 0, c = 0, d = 0;
        return __builtin_cpu_supports("avx") && __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
    }();
    return has;
}
#endif

}  // namespace

void widen(const half* from, float* to, size_t count) {
#if defined(__x86_64__)
    if (has_f16c()) return widen_f16c(from, to, count);
#endif
    widen_plain(from, to, count);
}

void narrow(const float* from, half* to, size_t count) {
#if defined(__x86_64__)
    if (has_f16c()) return narrow_f16c(from, to, count);
#endif
    narrow_plain(from, to, count);
}

namespace {
template <HalfOp op>
void combine_as(const half* a, const half* b, half* to, size_t count) {
#if defined(__x86_64__)
    if (has_f16c()) return combine_f16c<op>(a, b, to, count);
#endif
    combine_plain<op>(a, b, to, count);
}
}  // namespace

void combine(HalfOp op, const half* a, const half* b, half* to, size_t count) {
    switch (op) {
        case HalfOp::add:
            return combine_as<HalfOp::add>(a, b, to, count);
        case HalfOp::sub:
            return combine_as<HalfOp::sub>(a, b, to, count);
        case HalfOp::mul:
            return combine_as<HalfOp::mul>(a, b, to, count);
    }
}

}  // namespace ascendc_host
