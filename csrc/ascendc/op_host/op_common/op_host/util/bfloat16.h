// Ops::Base::bfloat16: the upper half of a float, by its bits.
#ifndef ASCEND_GRAPH_OP_HOST_BFLOAT16_H
#define ASCEND_GRAPH_OP_HOST_BFLOAT16_H

#include <cstdint>
#include <type_traits>

#include "ascendc_host/internal/bfloat16.h"

namespace Ops::Base {

struct bfloat16 {
    uint16_t value = 0;

    bfloat16() = default;
    template <typename T, typename = std::enable_if_t<std::is_arithmetic_v<T>>>
    explicit bfloat16(T number) : value(ascendc_host::bfloat16_bits(static_cast<float>(number))) {}
    operator float() const { return ascendc_host::bfloat16_value(value); }
};

}  // namespace Ops::Base

#endif  // ASCEND_GRAPH_OP_HOST_BFLOAT16_H
