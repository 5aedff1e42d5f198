// Numbers of threads under the names of the API: conversions, and functions of floats that <cmath> lacks or
// that a device rounds or bounds in another way.
#ifndef ASCENDC_HOST_SIMT_API_NUMBERS_H
#define ASCENDC_HOST_SIMT_API_NUMBERS_H

#include <math.h>

#include "ascendc_host/basic_api/cast.h"
#include "ascendc_host/simt_api/threads.h"
#include "ascendc_host/simt_api/vectors.h"

namespace ascendc_host {

using AscendC::RoundMode;

// A number in a type that cannot hold all: what is out of range saturates, a NaN is 0. Otherwise as IEEE has
// it. Control register: bit 48 decides for all where bit 60 is set.
template <typename To, typename From>
To narrow_in_thread(From value, RoundMode mode, bool saturated) {
    const int64_t control = current().control;
    if ((control >> 60 & 1) != 0) saturated = (control >> 48 & 1) == 0;
    const To converted = AscendC::detail::convert<To>(value, mode);
    if (!saturated || std::isfinite(static_cast<float>(converted))) return converted;
    if (std::isnan(static_cast<float>(converted))) return static_cast<To>(0.0f);
    const uint16_t largest = std::is_same<To, half>::value ? 0x7bff : 0x7f7f;
    To limit;
    std::memcpy(static_cast<void*>(&limit), &largest, sizeof limit);
    return static_cast<float>(converted) < 0 ? static_cast<To>(-static_cast<float>(limit)) : limit;
}

// An integer as a float, rounded once.
template <typename From>
float to_float(From value, RoundMode mode) {
    const float nearest = static_cast<float>(value);
    // 2^64 and 2^63 are floats that the integers end below.
    using Wider = __int128;
    const Wider exact = static_cast<Wider>(value), at = static_cast<Wider>(nearest);
    if (at == exact || mode == RoundMode::CAST_RINT) return nearest;
    const float other = std::nextafter(nearest, at < exact ? INFINITY : -INFINITY);
    const Wider beyond = static_cast<Wider>(other);
    const auto magnitude = [](Wider one) { return one < 0 ? -one : one; };
    const bool other_is_above = beyond > exact;
    switch (mode) {
        case RoundMode::CAST_FLOOR:
            return other_is_above ? nearest : other;
        case RoundMode::CAST_CEIL:
            return other_is_above ? other : nearest;
        case RoundMode::CAST_TRUNC:
            return magnitude(beyond) < magnitude(at) ? other : nearest;
        default: {  // to nearest, ties away from zero
            const Wider from_at = magnitude(exact - at), from_other = magnitude(exact - beyond);
            if (from_at != from_other) return nearest;
            return magnitude(beyond) > magnitude(at) ? other : nearest;
        }
    }
}

// Of pi * x: exact for halves of an integer.
inline float sin_of_pi(float x) {
    const double turn = std::fmod(double(x), 2.0);
    return static_cast<float>(std::fmod(turn, 1.0) == 0 ? std::copysign(0.0, double(x))
                                                        : std::sin(M_PI * turn));
}
inline float cos_of_pi(float x) {
    const double turn = std::fmod(std::fabs(double(x)), 2.0);
    return static_cast<float>(turn == 0.5 || turn == 1.5 ? 0.0 : std::cos(M_PI * turn));
}
inline float tan_of_pi(float x) {
    const double turn = std::fmod(double(x), 1.0);
    if (std::fabs(turn) == 0.5) return std::fmod(std::floor(double(x)), 2.0) == 0 ? INFINITY : -INFINITY;
    return static_cast<float>(turn == 0 ? std::copysign(0.0, double(x)) : std::tan(M_PI * turn));
}

// The root of squares: an infinity of any argument is the result, whatever the others are.
inline double norm_of(std::initializer_list<float> values) {
    double sum = 0, largest = 0;
    for (const float value : values) {
        sum += double(value) * value;
        largest = std::fmax(largest, std::fabs(double(value)));
    }
    return std::isinf(largest) ? largest : std::sqrt(sum);
}
inline double norm_of(int32_t count, const float* values) {
    double sum = 0, largest = 0;
    for (int32_t index = 0; index < std::max(count, 1); ++index) {
        sum += double(values[index]) * values[index];
        largest = std::fmax(largest, std::fabs(double(values[index])));
    }
    return std::isinf(largest) ? largest : std::sqrt(sum);
}
// Of a norm that is beyond the numbers of float it is 0.
inline float reciprocal_norm(double norm) {
    return static_cast<float>(static_cast<float>(norm) == INFINITY ? 0.0 : 1 / norm);
}

// The x with erfc(x) = y, by Newton's steps from an approximation of Winitzki's kind.
inline double inverse_erfc(double y) {
    if (std::isnan(y) || y < 0 || y > 2) return NAN;
    if (y == 0 || y == 2) return y == 0 ? INFINITY : -INFINITY;
    if (y > 1) return -inverse_erfc(2 - y);
    const double logarithm = std::log(y * (2 - y)), half = 2 / (M_PI * 0.147) + logarithm / 2;
    double x = std::sqrt(std::sqrt(half * half - logarithm / 0.147) - half);
    for (int step = 0; step < 4; ++step) x += (std::erfc(x) - y) / (M_2_SQRTPI * std::exp(-x * x));
    return x;
}
inline double inverse_erf(double y) {
    if (std::fabs(y) > 0.5) return std::copysign(inverse_erfc(1 - std::fabs(y)), y);
    double x = y * 0.5 * std::sqrt(M_PI);
    for (int step = 0; step < 6; ++step) x += (y - std::erf(x)) / (M_2_SQRTPI * std::exp(-x * x));
    return x;
}
// exp(x^2) erfc(x), by the asymptotic series where the first overflows.
inline double scaled_erfc(double x) {
    if (x < 25) return std::exp(x * x) * std::erfc(x);
    const double square = 1 / (2 * x * x);
    return M_2_SQRTPI / 2 / x * (1 - square * (1 - 3 * square * (1 - 5 * square)));
}
inline double normal_distribution(double x) { return std::erfc(-x * M_SQRT1_2) / 2; }
inline double inverse_normal_distribution(double p) { return -M_SQRT2 * inverse_erfc(2 * p); }

// Modified Bessel functions of the first kind: the series, which has no differences.
inline double modified_bessel(int order, double x) {
    if (std::isnan(x)) return x;
    if (std::fabs(x) > 100) return order % 2 != 0 ? std::copysign(INFINITY, x) : INFINITY;
    const double quarter = x * x / 4;
    double term = order == 0 ? 1 : x / 2, sum = term;
    for (int k = 1; std::fabs(term) > std::fabs(sum) * 1e-17; ++k) {
        term *= quarter / (double(k) * (k + order));
        sum += term;
    }
    return sum;
}
// Of a negative order they are not defined, as a device has it.
inline float bessel_first(int order, float x) {
    return order < 0 ? NAN : static_cast<float>(::jn(order, double(x)));
}
inline float bessel_second(int order, float x) {
    return order < 0 || x < 0 ? NAN : static_cast<float>(::yn(order, double(x)));
}

// The remainder of the nearest quotient, of which *quotient has the sign and the last three bits.
inline float remainder_and_quotient(float x, float y, int32_t* quotient) {
    int whole = 0;
    const float result = ::remquof(x, y, &whole);
    const int bits = std::abs(whole) % 8;
    *quotient = whole < 0 ? -bits : bits;
    return result;
}

// To integers: what is out of range saturates, a NaN is 0.
inline long long rounded_away(float x) {
    return AscendC::detail::convert<long long>(x, RoundMode::CAST_ROUND);
}
inline long long rounded_to_even(float x) {
    return AscendC::detail::convert<long long>(x, RoundMode::CAST_RINT);
}

inline unsigned int high_half(unsigned int x, unsigned int y) {
    return static_cast<unsigned int>((uint64_t{x} * y) >> 32);
}
inline int high_half(int x, int y) { return static_cast<int>((int64_t{x} * y) >> 32); }

template <typename T>
T reversed_bits(T x) {
    T result = 0;
    for (size_t bit = 0; bit < 8 * sizeof(T); ++bit, x >>= 1) result = static_cast<T>(result << 1 | (x & 1));
    return result;
}
template <typename T>
int leading_zeros(T x) {
    if (x == 0) return 8 * sizeof(T);
    if constexpr (sizeof(T) == 8)
        return __builtin_clzll(static_cast<unsigned long long>(x));
    else
        return __builtin_clz(static_cast<unsigned int>(x));
}
// The bytes of y and x, from the lowest of x on, that the digits of `selector` name.
inline uint32_t selected_bytes(uint32_t x, uint32_t y, uint32_t selector) {
    const uint64_t bytes = uint64_t{y} << 32 | x;
    uint32_t result = 0;
    for (int byte = 0; byte < 4; ++byte)
        result |= static_cast<uint32_t>(bytes >> (selector >> 4 * byte & 7) * 8 & 0xff) << 8 * byte;
    return result;
}

}  // namespace ascendc_host

#endif  // ASCENDC_HOST_SIMT_API_NUMBERS_H
