// The older names of what threads call, which kernel_operator.h has: AscendC::Simt. Those of places, barriers
// and atomic operations stand next to the newer ones.
#ifndef ASCENDC_HOST_SIMT_API_OLDER_NAMES_H
#define ASCENDC_HOST_SIMT_API_OLDER_NAMES_H

#include "ascendc_host/simt_api/memory.h"
#include "ascendc_host/simt_api/numbers.h"
#include "ascendc_host/simt_api/warps.h"

namespace AscendC {
namespace Simt {

using ascendc_host::is_one_of;

enum class SatMode { NO_SAT = 0, SAT };

inline int32_t GetWarpSize() { return warpSize; }

// --- functions of floats: the exact value, rounded once

#define ASCENDC_OF_FLOATS(name) \
    static_assert(is_one_of<T, float>, "Simt::" #name ": no such type of elements; valid: float")
#define ASCENDC_FLOAT_1(Name, value)  \
    template <typename T>             \
    T Name(T x) {                     \
        ASCENDC_OF_FLOATS(Name);      \
        return static_cast<T>(value); \
    }
#define ASCENDC_FLOAT_2(Name, value)  \
    template <typename T>             \
    T Name(T x, T y) {                \
        ASCENDC_OF_FLOATS(Name);      \
        return static_cast<T>(value); \
    }
ASCENDC_FLOAT_1(Tan, std::tan(double(x)))
ASCENDC_FLOAT_1(Tanh, std::tanh(double(x)))
ASCENDC_FLOAT_1(Tanpi, ascendc_host::tan_of_pi(x))
ASCENDC_FLOAT_1(Atan, std::atan(double(x)))
ASCENDC_FLOAT_1(Atanh, std::atanh(double(x)))
ASCENDC_FLOAT_1(Cos, std::cos(double(x)))
ASCENDC_FLOAT_1(Cosh, std::cosh(double(x)))
ASCENDC_FLOAT_1(Cospi, ascendc_host::cos_of_pi(x))
ASCENDC_FLOAT_1(Asin, std::asin(double(x)))
ASCENDC_FLOAT_1(Acos, std::acos(double(x)))
ASCENDC_FLOAT_1(Acosh, std::acosh(double(x)))
ASCENDC_FLOAT_1(Sin, std::sin(double(x)))
ASCENDC_FLOAT_1(Sinh, std::sinh(double(x)))
ASCENDC_FLOAT_1(Sinpi, ascendc_host::sin_of_pi(x))
ASCENDC_FLOAT_1(Asinh, std::asinh(double(x)))
ASCENDC_FLOAT_1(Exp, std::exp(double(x)))
ASCENDC_FLOAT_1(Exp2, std::exp2(double(x)))
ASCENDC_FLOAT_1(Exp10, std::pow(10.0, double(x)))
ASCENDC_FLOAT_1(Expm1, std::expm1(double(x)))
ASCENDC_FLOAT_1(Sqrt, std::sqrt(x))
ASCENDC_FLOAT_1(Rsqrt, 1 / std::sqrt(double(x)))
ASCENDC_FLOAT_1(Log, std::log(double(x)))
ASCENDC_FLOAT_1(Log2, std::log2(double(x)))
ASCENDC_FLOAT_1(Log10, std::log10(double(x)))
ASCENDC_FLOAT_1(Log1p, std::log1p(double(x)))
ASCENDC_FLOAT_1(Logb, std::logb(x))
ASCENDC_FLOAT_1(Cbrt, std::cbrt(double(x)))
ASCENDC_FLOAT_1(Rcbrt, 1 / std::cbrt(double(x)))
ASCENDC_FLOAT_1(Erf, std::erf(double(x)))
ASCENDC_FLOAT_1(Erfc, std::erfc(double(x)))
ASCENDC_FLOAT_1(Erfinv, ascendc_host::inverse_erf(x))
ASCENDC_FLOAT_1(Erfcinv, ascendc_host::inverse_erfc(x))
ASCENDC_FLOAT_1(Erfcx, ascendc_host::scaled_erfc(x))
ASCENDC_FLOAT_1(Tgamma, std::tgamma(double(x)))
ASCENDC_FLOAT_1(Lgamma, std::lgamma(double(x)))
ASCENDC_FLOAT_1(CylBesselI0, ascendc_host::modified_bessel(0, x))
ASCENDC_FLOAT_1(CylBesselI1, ascendc_host::modified_bessel(1, x))
ASCENDC_FLOAT_1(Normcdf, ascendc_host::normal_distribution(x))
ASCENDC_FLOAT_1(J0, ::j0(double(x)))
ASCENDC_FLOAT_1(J1, ::j1(double(x)))
ASCENDC_FLOAT_1(Y0, ascendc_host::bessel_second(0, x))
ASCENDC_FLOAT_1(Y1, ascendc_host::bessel_second(1, x))
ASCENDC_FLOAT_1(NearbyInt, std::nearbyint(x))
// Of Atan2 the first is the sine.
ASCENDC_FLOAT_2(Atan2, std::atan2(double(x), double(y)))
ASCENDC_FLOAT_2(Pow, std::pow(double(x), double(y)))
ASCENDC_FLOAT_2(Hypot, ascendc_host::norm_of({x, y}))
ASCENDC_FLOAT_2(Rhypot, ascendc_host::reciprocal_norm(ascendc_host::norm_of({x, y})))
ASCENDC_FLOAT_2(Fdim, std::fdim(x, y))
ASCENDC_FLOAT_2(Mod, std::fmod(x, y))
ASCENDC_FLOAT_2(Remainder, std::remainder(x, y))
ASCENDC_FLOAT_2(CopySign, std::copysign(x, y))
ASCENDC_FLOAT_2(NextAfter, std::nextafter(x, y))
#undef ASCENDC_FLOAT_1
#undef ASCENDC_FLOAT_2

template <typename T>
void Sincos(T x, T& s, T& c) {
    s = Sin(x);
    c = Cos(x);
}
template <typename T>
void Sincospi(T x, T& s, T& c) {
    s = Sinpi(x);
    c = Cospi(x);
}
template <typename T>
T Norm3d(T a, T b, T c) {
    ASCENDC_OF_FLOATS(Norm3d);
    return static_cast<T>(ascendc_host::norm_of({a, b, c}));
}
template <typename T>
T Norm4d(T a, T b, T c, T d) {
    ASCENDC_OF_FLOATS(Norm4d);
    return static_cast<T>(ascendc_host::norm_of({a, b, c, d}));
}
template <typename T>
T Rnorm3d(T a, T b, T c) {
    ASCENDC_OF_FLOATS(Rnorm3d);
    return ascendc_host::reciprocal_norm(ascendc_host::norm_of({a, b, c}));
}
template <typename T>
T Rnorm4d(T a, T b, T c, T d) {
    ASCENDC_OF_FLOATS(Rnorm4d);
    return ascendc_host::reciprocal_norm(ascendc_host::norm_of({a, b, c, d}));
}
template <typename N, typename T>
T Norm(N n, T* a) {
    ASCENDC_OF_FLOATS(Norm);
    return static_cast<T>(ascendc_host::norm_of(n, a));
}
template <typename N, typename T>
T Rnorm(N n, T* a) {
    ASCENDC_OF_FLOATS(Rnorm);
    return ascendc_host::reciprocal_norm(ascendc_host::norm_of(n, a));
}
template <typename N, typename T>
T Jn(N n, T x) {
    ASCENDC_OF_FLOATS(Jn);
    return ascendc_host::bessel_first(n, x);
}
template <typename N, typename T>
T Yn(N n, T x) {
    ASCENDC_OF_FLOATS(Yn);
    return ascendc_host::bessel_second(n, x);
}
template <typename T>
int Ilogb(T x) {
    ASCENDC_OF_FLOATS(Ilogb);
    return std::ilogb(x);
}
template <typename T, typename U>
T Frexp(T x, U& exp) {
    ASCENDC_OF_FLOATS(Frexp);
    return std::frexp(x, &exp);
}
template <typename T, typename U>
T Ldexp(T x, U exp) {
    ASCENDC_OF_FLOATS(Ldexp);
    return std::ldexp(x, exp);
}
template <typename T, typename U>
T ScaLbn(T x, U n) {
    ASCENDC_OF_FLOATS(ScaLbn);
    return std::scalbln(x, n);
}
template <typename T, typename U>
T RemQuo(T x, T y, U* quo) {
    ASCENDC_OF_FLOATS(RemQuo);
    return ascendc_host::remainder_and_quotient(x, y, quo);
}
#undef ASCENDC_OF_FLOATS

// --- functions of more types

#define ASCENDC_TYPES(name, valid, ...) \
    static_assert(is_one_of<T, __VA_ARGS__>, "Simt::" #name ": no such type of elements; valid: " valid)

template <typename T>
T Abs(T x) {
    ASCENDC_TYPES(Abs, "int32_t, int64_t, half, float", int32_t, int64_t, half, float);
    if constexpr (std::is_integral<T>::value)
        return x < 0 ? static_cast<T>(-static_cast<std::make_unsigned_t<T>>(x)) : x;
    else
        return static_cast<T>(std::fabs(static_cast<float>(x)));
}
template <typename T>
T Fma(T x, T y, T z) {
    ASCENDC_TYPES(Fma, "half, float", half, float);
    if constexpr (std::is_same<T, float>::value)
        return std::fma(x, y, z);
    else
        return AscendC::detail::convert<T>(double(float(x)) * float(y) + float(z), RoundMode::CAST_RINT);
}
// Of a NaN and a number the number.
#define ASCENDC_EXTREME(Name, chosen, function)                                                             \
    template <typename T>                                                                                   \
    T Name(T x, T y) {                                                                                      \
        ASCENDC_TYPES(Name, "integers, half, float", int8_t, uint8_t, int16_t, uint16_t, int32_t, uint32_t, \
                      int64_t, uint64_t, half, float);                                                      \
        if constexpr (std::is_integral<T>::value)                                                           \
            return chosen;                                                                                  \
        else                                                                                                \
            return static_cast<T>(function(static_cast<float>(x), static_cast<float>(y)));                  \
    }
ASCENDC_EXTREME(Max, x < y ? y : x, std::fmax)
ASCENDC_EXTREME(Min, y < x ? y : x, std::fmin)
#undef ASCENDC_EXTREME
#define ASCENDC_CLASS(Name, function)                    \
    template <typename T>                                \
    bool Name(T x) {                                     \
        ASCENDC_TYPES(Name, "half, float", half, float); \
        return function(static_cast<float>(x));          \
    }
ASCENDC_CLASS(IsFinite, std::isfinite)
ASCENDC_CLASS(IsNan, std::isnan)
ASCENDC_CLASS(IsInf, std::isinf)
#undef ASCENDC_CLASS

#define ASCENDC_ROUNDED(Name, mode)                                              \
    template <typename T>                                                        \
    T Name(T x) {                                                                \
        ASCENDC_TYPES(Name, "float, half, bfloat16_t", float, half, bfloat16_t); \
        return AscendC::detail::convert<T>(x, RoundMode::mode);                  \
    }
ASCENDC_ROUNDED(Round, CAST_ROUND)
ASCENDC_ROUNDED(Rint, CAST_RINT)
ASCENDC_ROUNDED(Floor, CAST_FLOOR)
ASCENDC_ROUNDED(Ceil, CAST_CEIL)
ASCENDC_ROUNDED(Trunc, CAST_TRUNC)
#undef ASCENDC_ROUNDED

template <typename T>
T Brev(T x) {
    ASCENDC_TYPES(Brev, "uint32_t, uint64_t", uint32_t, uint64_t);
    return ascendc_host::reversed_bits(x);
}
template <typename T>
int32_t Clz(T x) {
    ASCENDC_TYPES(Clz, "int32_t, int64_t, uint32_t, uint64_t", int32_t, int64_t, uint32_t, uint64_t);
    return ascendc_host::leading_zeros(x);
}
template <typename T>
int32_t Popc(T x) {
    ASCENDC_TYPES(Popc, "uint32_t, uint64_t", uint32_t, uint64_t);
    return __builtin_popcountll(x);
}
template <typename T>
int32_t Ffs(T x) {
    ASCENDC_TYPES(Ffs, "int32_t, int64_t", int32_t, int64_t);
    return __builtin_ffsll(x);
}
template <typename T>
T BytePerm(T x, T y, T s) {
    ASCENDC_TYPES(BytePerm, "uint32_t", uint32_t);
    return ascendc_host::selected_bytes(x, y, s);
}
template <typename T>
T MulHi(T x, T y) {
    ASCENDC_TYPES(MulHi, "int32_t, uint32_t", int32_t, uint32_t);
    return ascendc_host::high_half(x, y);
}

// --- conversions

namespace detail {

template <typename From, typename To>
constexpr bool is_pair_of_floats =
    !std::is_same<From, To>::value && is_one_of<From, float, half, bfloat16_t> &&
    is_one_of<To, float, half, bfloat16_t>;
template <typename Integer, typename Float>
constexpr bool is_integer_and_float =
    is_one_of<Integer, int32_t, uint32_t> ? is_one_of<Float, float, half, bfloat16_t>
                                          : is_one_of<Integer, int64_t, uint64_t> && is_one_of<Float, float>;
template <typename From, typename To, RoundMode mode>
constexpr bool is_cast() {
    switch (mode) {
        case RoundMode::CAST_RINT:
        case RoundMode::CAST_FLOOR:
        case RoundMode::CAST_CEIL:
        case RoundMode::CAST_ROUND:
        case RoundMode::CAST_TRUNC:
            return is_pair_of_floats<From, To> || is_integer_and_float<From, To> ||
                   is_integer_and_float<To, From>;
        case RoundMode::CAST_ODD:
            return is_one_of<From, float> && is_one_of<To, half>;
        case RoundMode::CAST_EVEN:
        case RoundMode::CAST_ZERO:
            return is_one_of<From, float> ? is_one_of<To, int32_t, int64_t, half, bfloat16_t>
                                          : is_one_of<From, int32_t, int64_t> && is_one_of<To, float>;
        case RoundMode::CAST_NONE:
            return is_one_of<From, half, bfloat16_t> && is_one_of<To, float>;
        default:
            return false;
    }
}

}  // namespace detail

// To integers what is out of range saturates, to floats by `satMode`.
template <typename T, typename U, RoundMode roundMode, SatMode satMode = SatMode::NO_SAT>
T Cast(U x) {
    static_assert(detail::is_cast<U, T, roundMode>(), "Simt::Cast: no such conversion in this mode");
    constexpr RoundMode mode = roundMode == RoundMode::CAST_EVEN   ? RoundMode::CAST_RINT
                               : roundMode == RoundMode::CAST_ZERO ? RoundMode::CAST_TRUNC
                                                                   : roundMode;
    if constexpr (std::is_integral<T>::value)
        return AscendC::detail::convert<T>(x, mode);
    else if constexpr (!std::is_same<T, float>::value)
        return ascendc_host::narrow_in_thread<T>(x, mode, satMode == SatMode::SAT);
    else if constexpr (std::is_integral<U>::value)
        return ascendc_host::to_float(x, mode);
    else
        return static_cast<float>(x);
}

// --- warps

inline int32_t WarpAllSync(int32_t predicate, Where where = Where()) { return asc_all(predicate, where); }
inline int32_t WarpAnySync(int32_t predicate, Where where = Where()) { return asc_any(predicate, where); }
inline uint32_t WarpBallotSync(int32_t predicate, Where where = Where()) {
    return asc_ballot(predicate, where);
}
inline uint32_t WarpActiveMask(Where where = Where()) { return asc_activemask(where); }
#define ASCENDC_SHUFFLE(Name, name, Lane)                                                                  \
    template <typename T>                                                                                  \
    T Name(T var, Lane lane, int32_t width = warpSize, Where where = Where()) {                            \
        ASCENDC_TYPES(Name, "int32_t, uint32_t, int64_t, uint64_t, half, half2, float", int32_t, uint32_t, \
                      int64_t, uint64_t, half, half2, float);                                              \
        return name(var, lane, width, where);                                                              \
    }
ASCENDC_SHUFFLE(WarpShflSync, asc_shfl, int32_t)
ASCENDC_SHUFFLE(WarpShflUpSync, asc_shfl_up, uint32_t)
ASCENDC_SHUFFLE(WarpShflDownSync, asc_shfl_down, uint32_t)
ASCENDC_SHUFFLE(WarpShflXorSync, asc_shfl_xor, int32_t)
#undef ASCENDC_SHUFFLE
#define ASCENDC_WARP_REDUCTION(Name, name)                                                     \
    template <typename T>                                                                      \
    T Name(T val, Where where = Where()) {                                                     \
        ASCENDC_TYPES(Name, "int32_t, uint32_t, half, float", int32_t, uint32_t, half, float); \
        return name(val, where);                                                               \
    }
ASCENDC_WARP_REDUCTION(WarpReduceAddSync, asc_reduce_add)
ASCENDC_WARP_REDUCTION(WarpReduceMaxSync, asc_reduce_max)
ASCENDC_WARP_REDUCTION(WarpReduceMinSync, asc_reduce_min)
#undef ASCENDC_WARP_REDUCTION
#undef ASCENDC_TYPES
inline void ThreadFence() { asc_threadfence(); }

}  // namespace Simt
}  // namespace AscendC

#endif  // ASCENDC_HOST_SIMT_API_OLDER_NAMES_H
