// The 8-bit floats of CANN as what tensors hold: they are copied, and nothing computes with them here.
#ifndef ASCENDC_HOST_INTERNAL_FLOAT8_H
#define ASCENDC_HOST_INTERNAL_FLOAT8_H

#include <cstdint>

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

using AscendC::fp8_e4m3fn_t;
using AscendC::fp8_e5m2_t;
using AscendC::fp8_e8m0_t;
using AscendC::hifloat8_t;

#endif  // ASCENDC_HOST_INTERNAL_FLOAT8_H
