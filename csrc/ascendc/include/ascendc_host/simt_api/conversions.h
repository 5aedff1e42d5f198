// Numbers in threads: conversions with a rounding in their name, arithmetic of half and bfloat16_t. As
// elsewhere the exact value is rounded once.
#ifndef ASCENDC_HOST_SIMT_API_CONVERSIONS_H
#define ASCENDC_HOST_SIMT_API_CONVERSIONS_H

#include "ascendc_host/simt_api/numbers.h"

#define ASCENDC_ROUNDINGS(define, ...)                                             \
    define(rn, CAST_RINT, __VA_ARGS__) define(rd, CAST_FLOOR, __VA_ARGS__) define( \
        ru, CAST_CEIL, __VA_ARGS__) define(rz, CAST_TRUNC, __VA_ARGS__) define(rna, CAST_ROUND, __VA_ARGS__)

// Floats to integers saturate; a NaN is 0.
#define ASCENDC_TO_INTEGER(suffix, mode, from, From, to, To)              \
    inline To __##from##2##to##_##suffix(From x) {                        \
        return AscendC::detail::convert<To>(x, AscendC::RoundMode::mode); \
    }
#define ASCENDC_TO_INTEGERS(from, From)                                   \
    ASCENDC_ROUNDINGS(ASCENDC_TO_INTEGER, from, From, int, int)           \
    ASCENDC_ROUNDINGS(ASCENDC_TO_INTEGER, from, From, uint, unsigned int) \
    ASCENDC_ROUNDINGS(ASCENDC_TO_INTEGER, from, From, ll, long long int)  \
    ASCENDC_ROUNDINGS(ASCENDC_TO_INTEGER, from, From, ull, unsigned long long int)
ASCENDC_TO_INTEGERS(float, float)
ASCENDC_TO_INTEGERS(half, half)
ASCENDC_TO_INTEGERS(bfloat16, bfloat16_t)
// To an integral number of the same type.
ASCENDC_ROUNDINGS(ASCENDC_TO_INTEGER, float, float, float, float)
ASCENDC_ROUNDINGS(ASCENDC_TO_INTEGER, half, half, half, half)
ASCENDC_ROUNDINGS(ASCENDC_TO_INTEGER, bfloat16, bfloat16_t, bfloat16, bfloat16_t)
#undef ASCENDC_TO_INTEGERS
#undef ASCENDC_TO_INTEGER

#define ASCENDC_FROM_INTEGER(suffix, mode, from, From)                            \
    inline float __##from##2float_##suffix(From x) {                              \
        return ascendc_host::to_float(x, AscendC::RoundMode::mode);               \
    }                                                                             \
    inline half __##from##2half_##suffix(From x) {                                \
        return AscendC::detail::convert<half>(x, AscendC::RoundMode::mode);       \
    }                                                                             \
    inline bfloat16_t __##from##2bfloat16_##suffix(From x) {                      \
        return AscendC::detail::convert<bfloat16_t>(x, AscendC::RoundMode::mode); \
    }
ASCENDC_ROUNDINGS(ASCENDC_FROM_INTEGER, int, int)
ASCENDC_ROUNDINGS(ASCENDC_FROM_INTEGER, uint, unsigned int)
#undef ASCENDC_FROM_INTEGER
#define ASCENDC_FROM_LONG(suffix, mode, from, From)                 \
    inline float __##from##2float_##suffix(From x) {                \
        return ascendc_host::to_float(x, AscendC::RoundMode::mode); \
    }
ASCENDC_ROUNDINGS(ASCENDC_FROM_LONG, ll, long long int)
ASCENDC_ROUNDINGS(ASCENDC_FROM_LONG, ull, unsigned long long int)
#undef ASCENDC_FROM_LONG

#define ASCENDC_NARROWING(suffix, mode, from, From, to, To)                            \
    inline To __##from##2##to##_##suffix(From x) {                                     \
        return ascendc_host::narrow_in_thread<To>(x, AscendC::RoundMode::mode, false); \
    }                                                                                  \
    inline To __##from##2##to##_##suffix##_sat(From x) {                               \
        return ascendc_host::narrow_in_thread<To>(x, AscendC::RoundMode::mode, true);  \
    }
ASCENDC_ROUNDINGS(ASCENDC_NARROWING, float, float, half, half)
ASCENDC_ROUNDINGS(ASCENDC_NARROWING, float, float, bfloat16, bfloat16_t)
ASCENDC_ROUNDINGS(ASCENDC_NARROWING, bfloat16, bfloat16_t, half, half)
ASCENDC_NARROWING(ro, CAST_ODD, float, float, half, half)
#undef ASCENDC_NARROWING
#undef ASCENDC_ROUNDINGS

inline half __float2half(float x) { return __float2half_rn(x); }
inline bfloat16_t __float2bfloat16(float x) { return __float2bfloat16_rn(x); }
inline float __half2float(half x) { return static_cast<float>(x); }
inline float __bfloat162float(bfloat16_t x) { return x; }

inline int __float_as_int(float x) { return ascendc_host::bits_as<int>(x); }
inline unsigned int __float_as_uint(float x) { return ascendc_host::bits_as<unsigned int>(x); }
inline float __int_as_float(int x) { return ascendc_host::bits_as<float>(x); }
inline float __uint_as_float(unsigned int x) { return ascendc_host::bits_as<float>(x); }
inline half __ushort_as_half(unsigned short x) { return ascendc_host::from_bits<half>(x); }
inline bfloat16_t __ushort_as_bfloat16(unsigned short x) { return bfloat16_t(x, nullptr); }

// --- half and bfloat16_t: computed in float, rounded once

#define ASCENDC_SHORT_FUNCTION(T, name, value)            \
    inline T name(T one) {                                \
        const float x = static_cast<float>(one);          \
        return static_cast<T>(static_cast<float>(value)); \
    }
#define ASCENDC_SHORT_BINARY(T, name, value)                                    \
    inline T name(T one, T other) {                                             \
        const float x = static_cast<float>(one), y = static_cast<float>(other); \
        return static_cast<T>(value);                                           \
    }
#define ASCENDC_SHORT_COMPARISON(T, name, op)                                                              \
    inline bool __h##name(T one, T other) { return static_cast<float>(one) op static_cast<float>(other); } \
    /* true where either is a NaN, too */                                                                  \
    inline bool __h##name##u(T one, T other) {                                                             \
        const float x = static_cast<float>(one), y = static_cast<float>(other);                            \
        return std::isnan(x) || std::isnan(y) || x op y;                                                   \
    }
#define ASCENDC_SHORT_FLOATS(T)                                                                         \
    ASCENDC_SHORT_BINARY(T, __hadd, x + y)                                                              \
    ASCENDC_SHORT_BINARY(T, __hsub, x - y)                                                              \
    ASCENDC_SHORT_BINARY(T, __hmul, x* y)                                                               \
    ASCENDC_SHORT_BINARY(T, __hdiv, x / y)                                                              \
    ASCENDC_SHORT_BINARY(T, __hmax, std::fmax(x, y))                                                    \
    ASCENDC_SHORT_BINARY(T, __hmin, std::fmin(x, y))                                                    \
    ASCENDC_SHORT_BINARY(T, __hmax_nan, std::isnan(x) || std::isnan(y) ? NAN : std::fmax(x, y))         \
    ASCENDC_SHORT_BINARY(T, __hmin_nan, std::isnan(x) || std::isnan(y) ? NAN : std::fmin(x, y))         \
    ASCENDC_SHORT_COMPARISON(T, eq, ==)                                                                 \
    ASCENDC_SHORT_COMPARISON(T, ne, !=)                                                                 \
    ASCENDC_SHORT_COMPARISON(T, lt, <)                                                                  \
    ASCENDC_SHORT_COMPARISON(T, le, <=)                                                                 \
    ASCENDC_SHORT_COMPARISON(T, gt, >)                                                                  \
    ASCENDC_SHORT_COMPARISON(T, ge, >=)                                                                 \
    inline bool __hisnan(T x) { return std::isnan(static_cast<float>(x)); }                             \
    inline bool __hisinf(T x) { return std::isinf(static_cast<float>(x)); }                             \
    ASCENDC_SHORT_FUNCTION(T, __habs, std::fabs(x))                                                     \
    ASCENDC_SHORT_FUNCTION(T, __hneg, -x)                                                               \
    ASCENDC_SHORT_FUNCTION(T, htanh, std::tanh(double(x)))                                              \
    ASCENDC_SHORT_FUNCTION(T, hexp, std::exp(double(x)))                                                \
    ASCENDC_SHORT_FUNCTION(T, hexp2, std::exp2(double(x)))                                              \
    ASCENDC_SHORT_FUNCTION(T, hexp10, std::pow(10.0, double(x)))                                        \
    ASCENDC_SHORT_FUNCTION(T, hlog, std::log(double(x)))                                                \
    ASCENDC_SHORT_FUNCTION(T, hlog2, std::log2(double(x)))                                              \
    ASCENDC_SHORT_FUNCTION(T, hlog10, std::log10(double(x)))                                            \
    ASCENDC_SHORT_FUNCTION(T, hcos, std::cos(double(x)))                                                \
    ASCENDC_SHORT_FUNCTION(T, hsin, std::sin(double(x)))                                                \
    ASCENDC_SHORT_FUNCTION(T, hsqrt, std::sqrt(x))                                                      \
    ASCENDC_SHORT_FUNCTION(T, hrsqrt, 1 / std::sqrt(double(x)))                                         \
    ASCENDC_SHORT_FUNCTION(T, hrcp, 1 / x)                                                              \
    ASCENDC_SHORT_FUNCTION(T, hrint, std::nearbyint(x))                                                 \
    ASCENDC_SHORT_FUNCTION(T, hfloor, std::floor(x))                                                    \
    ASCENDC_SHORT_FUNCTION(T, hceil, std::ceil(x))                                                      \
    ASCENDC_SHORT_FUNCTION(T, htrunc, std::trunc(x))                                                    \
    inline T __hfma(T a, T b, T c) {                                                                    \
        return AscendC::detail::convert<T>(                                                             \
            static_cast<double>(static_cast<float>(a)) * static_cast<float>(b) + static_cast<float>(c), \
            AscendC::RoundMode::CAST_RINT);                                                             \
    }                                                                                                   \
    inline T __hfma_relu(T a, T b, T c) { return __hmax(__hfma(a, b, c), static_cast<T>(0.0f)); }
ASCENDC_SHORT_FLOATS(half)
ASCENDC_SHORT_FLOATS(bfloat16_t)
#undef ASCENDC_SHORT_FLOATS
#undef ASCENDC_SHORT_COMPARISON
#undef ASCENDC_SHORT_BINARY
#undef ASCENDC_SHORT_FUNCTION

inline half2 make_half2(half x, half y) { return {x, y}; }
inline half2 __halves2half2(half x, half y) { return {x, y}; }
inline half2 __floats2half2_rn(float x, float y) { return {__float2half_rn(x), __float2half_rn(y)}; }
inline half2 __float22half2_rn(float2 x) { return __floats2half2_rn(x.x, x.y); }
inline float2 __half22float2(half2 x) { return {__half2float(x.x), __half2float(x.y)}; }
inline half __low2half(half2 x) { return x.x; }
inline half __high2half(half2 x) { return x.y; }
inline bfloat16x2_t __floats2bfloat162_rn(float x, float y) {
    return {__float2bfloat16_rn(x), __float2bfloat16_rn(y)};
}
inline float2 __bfloat1622float2(bfloat16x2_t x) { return {x.x, x.y}; }

#endif  // ASCENDC_HOST_SIMT_API_CONVERSIONS_H
