// The numbers that bound a type of elements.
#ifndef ASCENDC_HOST_BASIC_API_LIMITS_H
#define ASCENDC_HOST_BASIC_API_LIMITS_H

#include <limits>

#include "ascendc_host/basic_api/arithmetic.h"

namespace AscendC {

// The bits are those of the type's format; Min of a float is its smallest normal number above 0.
template <typename T>
struct NumericLimits {
    static constexpr T Max() { return number(0x7f7fffff, 0x7bff, 0x7f7f, Integers::max()); }
    static constexpr T Lowest() { return number(0xff7fffff, 0xfbff, 0xff7f, Integers::lowest()); }
    static constexpr T Min() { return number(0x00800000, 0x0400, 0x0080, Integers::min()); }
    static constexpr T Infinity() { return floating(0x7f800000, 0x7c00, 0x7f80); }
    static constexpr T NegativeInfinity() { return floating(0xff800000, 0xfc00, 0xff80); }
    static constexpr T QuietNaN() { return floating(0x7fc00000, 0x7e00, 0x7fc0); }
    static constexpr T SignalingNaN() { return floating(0x7fa00000, 0x7d00, 0x7fa0); }
    static constexpr T DeNormMin() { return floating(0x00000001, 0x0001, 0x0001); }

    // The same in each of the first `count` elements of a tensor.
#define ASCENDC_LIMIT_OF_TENSOR(Name)                                                    \
    static void Name(const LocalTensor<T>& dst, uint32_t count, Where where = Where()) { \
        Duplicate(dst, Name(), count, where);                                            \
    }
    ASCENDC_LIMIT_OF_TENSOR(Max)
    ASCENDC_LIMIT_OF_TENSOR(Lowest)
    ASCENDC_LIMIT_OF_TENSOR(Min)
    ASCENDC_LIMIT_OF_TENSOR(Infinity)
    ASCENDC_LIMIT_OF_TENSOR(NegativeInfinity)
    ASCENDC_LIMIT_OF_TENSOR(QuietNaN)
    ASCENDC_LIMIT_OF_TENSOR(SignalingNaN)
    ASCENDC_LIMIT_OF_TENSOR(DeNormMin)
#undef ASCENDC_LIMIT_OF_TENSOR

  private:
    static constexpr bool is_bfloat16 = std::is_same<T, bfloat16_t>::value;
    static constexpr bool is_floating =
        std::is_same<T, float>::value || std::is_same<T, half>::value || is_bfloat16;
    static_assert(is_floating ||
                      (std::is_integral<T>::value && sizeof(T) <= 4 && !std::is_same<T, bool>::value),
                  "NumericLimits: integers of 8, 16 and 32 bits, half, float, and bfloat16_t on dav-3510");
    static_assert(!is_bfloat16 || __NPU_ARCH__ == 3510, "NumericLimits: bfloat16_t is for dav-3510");
    using Integers = std::numeric_limits<std::conditional_t<is_floating, int32_t, T>>;

    static constexpr T floating(uint32_t of_float, uint16_t of_half, uint16_t of_bfloat16) {
        static_assert(is_floating, "NumericLimits: integers have neither infinities nor NaNs");
        if constexpr (std::is_same<T, float>::value)
            return ascendc_host::bits_as<T>(of_float);
        else
            return ascendc_host::bits_as<T>(is_bfloat16 ? of_bfloat16 : of_half);
    }
    template <typename Integer>
    static constexpr T number(uint32_t of_float, uint16_t of_half, uint16_t of_bfloat16, Integer integer) {
        if constexpr (is_floating)
            return floating(of_float, of_half, of_bfloat16);
        else
            return integer;
    }
};

}  // namespace AscendC

#endif  // ASCENDC_HOST_BASIC_API_LIMITS_H
