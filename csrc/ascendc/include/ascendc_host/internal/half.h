// IEEE half precision: the compiler's type where it has one in C++, a class of the same bits elsewhere.
// _Float16 is in g++ from 12 on for x86-64 and from 13 on for AArch64, and in clang++ from 15 on.
#ifndef ASCENDC_HOST_INTERNAL_HALF_H
#define ASCENDC_HOST_INTERNAL_HALF_H

#include <cstdint>
#include <cstring>
#include <type_traits>

namespace ascendc_host {

// The bits of a value as another type; a constant where the compiler can do that.
template <typename To, typename From>
constexpr To bits_as(From value) {
#if defined(__has_builtin)
#if __has_builtin(__builtin_bit_cast)
#define ASCENDC_HOST_HAS_BIT_CAST
#endif
#elif defined(__GNUC__) && __GNUC__ >= 11
#define ASCENDC_HOST_HAS_BIT_CAST
#endif
#ifdef ASCENDC_HOST_HAS_BIT_CAST
    return __builtin_bit_cast(To, value);
#else
    To to{};
    std::memcpy(&to, &value, sizeof to);
    return to;
#endif
}

// It is computed on in float, and rounded where it is stored: to nearest, ties to even.
class SoftwareHalf {
  public:
    SoftwareHalf() = default;
    template <typename T, typename = std::enable_if_t<std::is_convertible<T, float>::value &&
                                                      !std::is_same<T, SoftwareHalf>::value>>
    constexpr SoftwareHalf(T value) : bits_(round(to_float(value))) {}

    constexpr operator float() const {
        const uint32_t sign = (bits_ & 0x8000u) << 16, magnitude = (bits_ & 0x7fffu) << 13;
        if (magnitude >= 0x7c00u << 13) return bits_as<float>(sign | magnitude | 0x7f800000u);
        if (magnitude >= 0x0400u << 13) return bits_as<float>(sign | (magnitude + (112u << 23)));
        const float tiny = static_cast<float>(bits_ & 0x3ffu) * 0x1p-24f;
        return sign != 0 ? -tiny : tiny;
    }
    constexpr SoftwareHalf& operator+=(float other) { return *this = SoftwareHalf(float(*this) + other); }
    constexpr SoftwareHalf& operator-=(float other) { return *this = SoftwareHalf(float(*this) - other); }
    constexpr SoftwareHalf& operator*=(float other) { return *this = SoftwareHalf(float(*this) * other); }
    constexpr SoftwareHalf& operator/=(float other) { return *this = SoftwareHalf(float(*this) / other); }

  private:
    // A float that rounds to the same half: what a double has beyond a float's digits goes to the last of
    // them.
    template <typename T>
    static constexpr float to_float(T value) {
        const float nearest = static_cast<float>(value);
        if constexpr (std::is_floating_point<T>::value && sizeof(T) > sizeof(float)) {
            const uint32_t bits = bits_as<uint32_t>(nearest), magnitude = bits & 0x7fffffffu;
            if (nearest == value || magnitude >= 0x7f800000u || magnitude < 0x00800000u) return nearest;
            const bool away = (nearest > value) == (nearest > 0);
            return bits_as<float>((away ? bits - 1 : bits) | 1u);
        }
        return nearest;
    }
    static constexpr uint16_t round(float value) {
        const uint32_t bits = bits_as<uint32_t>(value), sign = (bits >> 16) & 0x8000u,
                       magnitude = bits & 0x7fffffffu;
        uint32_t half = 0;
        if (magnitude > 0x7f800000u) {
            half = 0x7e00u | ((magnitude >> 13) & 0x3ffu);  // a NaN stays one
        } else if (magnitude >= 0x477ff000u) {              // 65520 and above: infinity
            half = 0x7c00u;
        } else if (magnitude < 113u << 23) {  // subnormal: its unit is the last digit of a float of [0.5, 1)
            half = bits_as<uint32_t>(bits_as<float>(magnitude) + 0.5f) - bits_as<uint32_t>(0.5f);
        } else {
            half = (magnitude + 0xfffu + ((magnitude >> 13) & 1u) - (112u << 23)) >> 13;
        }
        return static_cast<uint16_t>(sign | half);
    }

    uint16_t bits_;
};

#if defined(__aarch64__) && defined(__GNUC__) && !defined(__clang__) && __GNUC__ < 13
using Float16 = __fp16;  // computed on in float, and rounded where it is stored
#elif defined(__clang__) ? __clang_major__ >= 15 : __GNUC__ >= 12
using Float16 = _Float16;
#else
using Float16 = SoftwareHalf;
#endif

}  // namespace ascendc_host

#endif  // ASCENDC_HOST_INTERNAL_HALF_H
