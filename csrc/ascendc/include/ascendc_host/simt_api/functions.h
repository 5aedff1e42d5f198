// Functions of threads on integers and floats, in addition to those of <cmath>; where a device bounds its
// results in another way, instead of them.
#ifndef ASCENDC_HOST_SIMT_API_FUNCTIONS_H
#define ASCENDC_HOST_SIMT_API_FUNCTIONS_H

#include "ascendc_host/simt_api/numbers.h"

// --- integers

inline int __mulhi(int x, int y) { return ascendc_host::high_half(x, y); }
inline unsigned int __umulhi(unsigned int x, unsigned int y) { return ascendc_host::high_half(x, y); }
inline long long int __mul64hi(long long int x, long long int y) {
    return static_cast<long long int>((static_cast<__int128>(x) * y) >> 64);
}
inline unsigned long long int __umul64hi(unsigned long long int x, unsigned long long int y) {
    return static_cast<unsigned long long int>((static_cast<unsigned __int128>(x) * y) >> 64);
}
inline long long int __mul_i32toi64(int x, int y) { return static_cast<long long int>(x) * y; }
// The low 32 bits of the product of the low 24 bits.
inline unsigned int __umul24(unsigned int x, unsigned int y) { return (x & 0xffffff) * (y & 0xffffff); }
inline int __mul24(int x, int y) {
    const auto low = [](int one) { return static_cast<unsigned int>(static_cast<int>(one << 8) >> 8); };
    return static_cast<int>(low(x) * low(y));
}
// Means, rounded down or up; sums of z and a distance.
inline int __hadd(int x, int y) { return static_cast<int>((int64_t{x} + y) >> 1); }
inline int __rhadd(int x, int y) { return static_cast<int>((int64_t{x} + y + 1) >> 1); }
inline unsigned int __uhadd(unsigned int x, unsigned int y) {
    return static_cast<unsigned int>((uint64_t{x} + y) >> 1);
}
inline unsigned int __urhadd(unsigned int x, unsigned int y) {
    return static_cast<unsigned int>((uint64_t{x} + y + 1) >> 1);
}
inline unsigned int __usad(unsigned int x, unsigned int y, unsigned int z) {
    return (x < y ? y - x : x - y) + z;
}
inline unsigned int __sad(int x, int y, unsigned int z) {
    return static_cast<unsigned int>(std::llabs(int64_t{x} - y)) + z;
}
inline unsigned int __byte_perm(unsigned int x, unsigned int y, unsigned int s) {
    return ascendc_host::selected_bytes(x, y, s);
}
#define ASCENDC_BIT_FUNCTIONS(signed_type, unsigned_type)                      \
    inline int __popc(unsigned_type x) { return __builtin_popcountll(x); }     \
    inline int __clz(signed_type x) { return ascendc_host::leading_zeros(x); } \
    inline int __ffs(signed_type x) { return __builtin_ffsll(x); }             \
    inline unsigned_type __brev(unsigned_type x) { return ascendc_host::reversed_bits(x); }
ASCENDC_BIT_FUNCTIONS(int, unsigned int)
ASCENDC_BIT_FUNCTIONS(long, unsigned long)
ASCENDC_BIT_FUNCTIONS(long long, unsigned long long)
#undef ASCENDC_BIT_FUNCTIONS
#define ASCENDC_EXTREMES(prefix, T)                                         \
    constexpr T prefix##max(const T x, const T y) { return x < y ? y : x; } \
    constexpr T prefix##min(const T x, const T y) { return y < x ? y : x; }
ASCENDC_EXTREMES(u, unsigned int)
ASCENDC_EXTREMES(ll, long long int)
ASCENDC_EXTREMES(ull, unsigned long long int)
#undef ASCENDC_EXTREMES

// --- floats

inline float rsqrtf(float x) { return static_cast<float>(1 / std::sqrt(double(x))); }
inline float rcbrtf(float x) { return static_cast<float>(1 / std::cbrt(double(x))); }
inline float rhypotf(float x, float y) {
    return ascendc_host::reciprocal_norm(ascendc_host::norm_of({x, y}));
}
inline float fdividef(float x, float y) { return x / y; }
inline float __fdividef(float x, float y) { return x / y; }
inline float __saturatef(float x) { return x >= 0 ? std::fmin(x, 1.0f) : 0.0f; }
inline float sinpif(float x) { return ascendc_host::sin_of_pi(x); }
inline float cospif(float x) { return ascendc_host::cos_of_pi(x); }
inline float tanpif(float x) { return ascendc_host::tan_of_pi(x); }
inline void sincospif(float x, float* sine, float* cosine) {
    *sine = sinpif(x);
    *cosine = cospif(x);
}
inline float norm3df(float a, float b, float c) {
    return static_cast<float>(ascendc_host::norm_of({a, b, c}));
}
inline float norm4df(float a, float b, float c, float d) {
    return static_cast<float>(ascendc_host::norm_of({a, b, c, d}));
}
inline float rnorm3df(float a, float b, float c) {
    return ascendc_host::reciprocal_norm(ascendc_host::norm_of({a, b, c}));
}
inline float rnorm4df(float a, float b, float c, float d) {
    return ascendc_host::reciprocal_norm(ascendc_host::norm_of({a, b, c, d}));
}
inline float normf(int n, const float* a) { return static_cast<float>(ascendc_host::norm_of(n, a)); }
inline float rnormf(int n, const float* a) {
    return ascendc_host::reciprocal_norm(ascendc_host::norm_of(n, a));
}
#define ASCENDC_FLOAT_FUNCTION(name, function) \
    inline float name(float x) { return static_cast<float>(ascendc_host::function(double(x))); }
ASCENDC_FLOAT_FUNCTION(erfinvf, inverse_erf)
ASCENDC_FLOAT_FUNCTION(erfcinvf, inverse_erfc)
ASCENDC_FLOAT_FUNCTION(erfcxf, scaled_erfc)
ASCENDC_FLOAT_FUNCTION(normcdff, normal_distribution)
ASCENDC_FLOAT_FUNCTION(normcdfinvf, inverse_normal_distribution)
#undef ASCENDC_FLOAT_FUNCTION
inline float cyl_bessel_i0f(float x) { return static_cast<float>(ascendc_host::modified_bessel(0, x)); }
inline float cyl_bessel_i1f(float x) { return static_cast<float>(ascendc_host::modified_bessel(1, x)); }

// The C library's of these names have other results of NaN, of what is out of range, of negative orders.
#define jnf(n, x) ascendc_host::bessel_first(n, x)
#define ynf(n, x) ascendc_host::bessel_second(n, x)
#define remquof(x, y, quo) ascendc_host::remainder_and_quotient(x, y, quo)
#define lroundf(x) static_cast<long>(ascendc_host::rounded_away(x))
#define llroundf(x) ascendc_host::rounded_away(x)
#define lrintf(x) static_cast<long>(ascendc_host::rounded_to_even(x))
#define llrintf(x) ascendc_host::rounded_to_even(x)

#endif  // ASCENDC_HOST_SIMT_API_FUNCTIONS_H
