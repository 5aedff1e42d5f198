// Dtypes: their sizes, and float16 for hosts whose compilers have none.
#include <cmath>

#include "acl/abi.h"
#include "graph/dtype_table.h"

using aclFloat16 = uint16_t;

ACL_EXPORT size_t aclDataTypeSize(aclDataType dtype) {
    switch (static_cast<int>(dtype)) {
#define ASCEND_GRAPH_SIZE(name, number, bits, torch) \
    case number:                                     \
        return bits % 8 == 0 ? bits / 8 : 0;
        ASCEND_GRAPH_ACL_DTYPES(ASCEND_GRAPH_SIZE)
#undef ASCEND_GRAPH_SIZE
        default:
            return 0;
    }
}

ACL_EXPORT float aclFloat16ToFloat(aclFloat16 value) {
    const int exponent = value >> 10 & 0x1f, fraction = value & 0x3ff;
    float magnitude = 0;
    if (exponent == 0x1f)
        magnitude = fraction == 0 ? INFINITY : NAN;
    else if (exponent == 0)
        magnitude = std::ldexp(static_cast<float>(fraction), -24);
    else
        magnitude = std::ldexp(static_cast<float>(fraction | 0x400), exponent - 25);
    return (value & 0x8000) != 0 ? -magnitude : magnitude;
}

// To the nearest, ties to even.
ACL_EXPORT aclFloat16 aclFloatToFloat16(float value) {
    const int sign = std::signbit(value) ? 0x8000 : 0;
    const float magnitude = std::fabs(value);
    if (std::isnan(value)) return static_cast<aclFloat16>(sign | 0x7e00);
    if (magnitude >= 65520) return static_cast<aclFloat16>(sign | 0x7c00);
    if (magnitude < std::ldexp(1.0f, -14))
        return static_cast<aclFloat16>(sign | static_cast<int>(std::nearbyint(std::ldexp(magnitude, 24))));
    int exponent = 0;
    std::frexp(magnitude, &exponent);
    const int fraction = static_cast<int>(std::nearbyint(std::ldexp(magnitude, 11 - exponent)));
    return static_cast<aclFloat16>(sign | (((exponent + 14) << 10) + fraction - 0x400));
}
