// bfloat16, the upper half of a float, by its bits.
#ifndef ASCENDC_HOST_INTERNAL_BFLOAT16_H
#define ASCENDC_HOST_INTERNAL_BFLOAT16_H

#include <cstdint>
#include <cstring>

namespace ascendc_host {

// To nearest, ties to even; a NaN stays one.
inline uint16_t bfloat16_bits(float value) {
    uint32_t wide;
    std::memcpy(&wide, &value, sizeof wide);
    const uint32_t nearest = (wide + 0x7fffu + ((wide >> 16) & 1u)) >> 16;
    const bool nan = (wide & 0x7fffffffu) > 0x7f800000u;
    return static_cast<uint16_t>(nan ? (wide >> 16) | 0x40u : nearest);
}
inline float bfloat16_value(uint16_t bits) {
    const uint32_t wide = uint32_t(bits) << 16;
    float value;
    std::memcpy(&value, &wide, sizeof value);
    return value;
}

}  // namespace ascendc_host

#endif  // ASCENDC_HOST_INTERNAL_BFLOAT16_H
