// half and bfloat16_t, and how arrays of them are computed on: in float, rounded once per operation.
//
// For +, -, *, / and sqrt this equals the device's half arithmetic bit for bit: float has more than 2p + 2
// bits of half's p, so rounding twice is rounding once.
#ifndef ASCENDC_HOST_INTERNAL_NUMBERS_H
#define ASCENDC_HOST_INTERNAL_NUMBERS_H

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "ascendc_host/internal/bfloat16.h"
#include "ascendc_host/internal/half.h"

using half = ascendc_host::Float16;
using float16_t = half;
using float32_t = float;

#ifndef unlikely
constexpr bool unlikely(bool value) { return __builtin_expect(value, false); }
#endif
#ifndef likely
constexpr bool likely(bool value) { return __builtin_expect(value, true); }
#endif

// A truncated float with arithmetic by conversion, as the scalar unit does it.
struct bfloat16_t {
    uint16_t bits;

    bfloat16_t() = default;
    constexpr explicit bfloat16_t(uint16_t raw, std::nullptr_t) : bits(raw) {}
    template <typename T,
              typename = std::enable_if_t<std::is_arithmetic<T>::value || std::is_same<T, half>::value>>
    bfloat16_t(T value) : bits(ascendc_host::bfloat16_bits(static_cast<float>(value))) {}

    operator float() const { return ascendc_host::bfloat16_value(bits); }
    bfloat16_t& operator+=(float other) { return *this = bfloat16_t(*this + other); }
    bfloat16_t& operator-=(float other) { return *this = bfloat16_t(*this - other); }
    bfloat16_t& operator*=(float other) { return *this = bfloat16_t(*this * other); }
    bfloat16_t& operator/=(float other) { return *this = bfloat16_t(*this / other); }
};

// The absolute value of any number, as the device's compiler has it: C's own function takes an int, and would
// cut what lies after the point. A template, so that an author's own function goes before it.
template <typename T, typename = std::enable_if_t<!std::is_same_v<T, int> && std::is_arithmetic_v<T>>>
constexpr T abs(T value) {
    return value < T(0) ? static_cast<T>(-value) : value == T(0) ? T(0) : value;
}
inline half abs(half value) { return half(std::fabs(static_cast<float>(value))); }
inline bfloat16_t abs(bfloat16_t value) { return bfloat16_t(std::fabs(static_cast<float>(value))); }

// The compiler's name for it on the device. Compilers for the host that have the word mean a type of their
// own.
#define __bf16 bfloat16_t

namespace ascendc_host {

template <typename T>
struct WideOf {
    using type = T;
};
template <>
struct WideOf<half> {
    using type = float;
};
template <>
struct WideOf<bfloat16_t> {
    using type = float;
};
// The type in which elements of T are computed.
template <typename T>
using Wide = typename WideOf<T>::type;

template <typename T>
constexpr bool is_float = std::is_floating_point<T>::value || !std::is_same<Wide<T>, T>::value;

// Defined in the runtime library, with the conversion instructions of the CPU that runs it. What has half in
// its type has a name of its own: the compiler of a kernel may have another half than the runtime's.
void widen(const half* from, float* to, size_t count) __asm__("ascendcHostWidenHalf");
void narrow(const float* from, half* to, size_t count) __asm__("ascendcHostNarrowHalf");

// to[i] = a[i] op b[i] in float, rounded once: without the way through a buffer of floats.
enum class HalfOp { add, sub, mul };
void combine(HalfOp op, const half* a, const half* b, half* to,
             size_t count) __asm__("ascendcHostCombineHalf");

// c[m, n] += a[m, k] * b[k, n], all by rows, in the order of k. Integers wrap. Defined in the runtime
// library.
void multiply_add(const float* a, const float* b, float* c, size_t m, size_t n, size_t k);
void multiply_add(const int32_t* a, const int32_t* b, int32_t* c, size_t m, size_t n, size_t k);

inline void widen(const bfloat16_t* from, float* to, size_t count) {
    for (size_t i = 0; i < count; ++i) to[i] = from[i];
}
inline void narrow(const float* from, bfloat16_t* to, size_t count) {
    for (size_t i = 0; i < count; ++i) to[i].bits = bfloat16_bits(from[i]);
}

// Signed overflow wraps on the device; in C++ it does so only for unsigned types.
template <typename T, bool integral = std::is_integral<T>::value>
struct Wrapping {
    using type = T;
};
template <typename T>
struct Wrapping<T, true> {
    // Narrow types would be promoted to int, whose multiplication may overflow.
    using type = std::conditional_t<(sizeof(T) < 4), uint32_t, std::make_unsigned_t<T>>;
};
template <typename T>
using Unsigned = typename Wrapping<T>::type;

}  // namespace ascendc_host

#endif  // ASCENDC_HOST_INTERNAL_NUMBERS_H
