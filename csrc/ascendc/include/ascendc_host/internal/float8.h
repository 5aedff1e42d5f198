// The 8-bit floats of CANN: tensors hold and copy them, the cube core multiplies them, and no vector
// instruction computes with them here.
#ifndef ASCENDC_HOST_INTERNAL_FLOAT8_H
#define ASCENDC_HOST_INTERNAL_FLOAT8_H

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace AscendC {

#define ASCENDC_HOST_FLOAT8(name)                                                         \
    struct name {                                                                         \
        uint8_t bits = 0;                                                                 \
        constexpr bool operator==(const name& other) const { return bits == other.bits; } \
        constexpr bool operator!=(const name& other) const { return bits != other.bits; } \
    };
ASCENDC_HOST_FLOAT8(fp8_e4m3fn_t)
ASCENDC_HOST_FLOAT8(fp8_e5m2_t)
ASCENDC_HOST_FLOAT8(fp8_e8m0_t)
ASCENDC_HOST_FLOAT8(hifloat8_t)
#undef ASCENDC_HOST_FLOAT8

}  // namespace AscendC

namespace ascendc_host {

template <typename T>
constexpr bool is_hifloat8 = std::is_same<T, AscendC::hifloat8_t>::value;
// The types of factors; fp8_e8m0_t has scales.
template <typename T>
constexpr bool is_float8 = std::is_same<T, AscendC::fp8_e4m3fn_t>::value ||
                           std::is_same<T, AscendC::fp8_e5m2_t>::value || is_hifloat8<T>;

namespace detail {

inline float parts_of(uint32_t code, int mantissa_bits, int exponent_bias) {
    const int exponent = static_cast<int>(code >> mantissa_bits);
    const float mantissa = static_cast<float>(code & ((1u << mantissa_bits) - 1));
    const float whole = exponent == 0 ? 0.0f : static_cast<float>(1 << mantissa_bits);
    return std::ldexp(whole + mantissa, (exponent == 0 ? 1 : exponent) - exponent_bias - mantissa_bits);
}
// The seven bits after the sign, "Ascend HiFloat8 Format for Deep Learning"
// (https://arxiv.org/abs/2409.16626): a prefix gives the number of bits of the exponent, and what is left is
// the mantissa.
inline float hifloat8_of(uint32_t code) {
    if (code == 0x6f) return std::numeric_limits<float>::infinity();
    if (code < 8) return code == 0 ? 0.0f : std::ldexp(1.0f, static_cast<int>(code) - 23);
    const int width = code >= 96 ? 4 : code >= 64 ? 3 : code >= 32 ? 2 : code >= 16 ? 1 : 0;
    const int mantissa_bits = width == 4 ? 1 : width == 3 ? 2 : 3;
    const uint32_t leading = (1u << width) >> 1;
    const uint32_t field = (code >> mantissa_bits) & ((1u << width) - 1);
    const int magnitude = static_cast<int>(field | leading);
    const float mantissa = static_cast<float>(code & ((1u << mantissa_bits) - 1));
    return std::ldexp(1.0f + std::ldexp(mantissa, -mantissa_bits),
                      (field & leading) != 0 ? -magnitude : magnitude);
}
template <typename T>
float float8_of(uint32_t code) {
    constexpr float nan = std::numeric_limits<float>::quiet_NaN();
    const uint32_t rest = code & 0x7f;
    float value;
    if constexpr (is_hifloat8<T>) {
        value = code == 0x80 ? nan : hifloat8_of(rest);
    } else if constexpr (std::is_same<T, AscendC::fp8_e4m3fn_t>::value) {
        value = rest == 0x7f ? nan : parts_of(rest, 3, 7);
    } else {
        value = rest > 0x7c    ? nan
                : rest == 0x7c ? std::numeric_limits<float>::infinity()
                               : parts_of(rest, 2, 15);
    }
    return (code & 0x80) != 0 ? -value : value;
}

}  // namespace detail

// The value of each code.
template <typename T>
const std::array<float, 256>& float8_values() {
    static const auto values = [] {
        std::array<float, 256> made;
        for (uint32_t code = 0; code < made.size(); ++code) made[code] = detail::float8_of<T>(code);
        return made;
    }();
    return values;
}

}  // namespace ascendc_host

using AscendC::fp8_e4m3fn_t;
using AscendC::fp8_e5m2_t;
using AscendC::fp8_e8m0_t;
using AscendC::hifloat8_t;

#endif  // ASCENDC_HOST_INTERNAL_FLOAT8_H
