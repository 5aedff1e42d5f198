// Ops::Base::fp16_t: a half on the host, by its bits.
#ifndef ASCEND_GRAPH_OP_HOST_FP16_H
#define ASCEND_GRAPH_OP_HOST_FP16_H

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "ascendc_host/internal/half.h"

namespace Ops::Base {

// Arithmetic is done in float and rounded once.
struct fp16_t {
    uint16_t val = 0;

    fp16_t() = default;
    template <typename T, typename = std::enable_if_t<std::is_arithmetic_v<T>>>
    fp16_t(const T& value) : val(bits_of(static_cast<float>(value))) {}

    float toFloat() const {
        ascendc_host::Float16 half;
        std::memcpy(&half, &val, sizeof half);
        return static_cast<float>(half);
    }
    template <typename T, typename = std::enable_if_t<std::is_arithmetic_v<T>>>
    operator T() const {
        return static_cast<T>(toFloat());
    }
    bool operator==(const fp16_t& other) const { return toFloat() == other.toFloat(); }
    bool operator!=(const fp16_t& other) const { return toFloat() != other.toFloat(); }
    bool operator<(const fp16_t& other) const { return toFloat() < other.toFloat(); }
    bool operator>(const fp16_t& other) const { return toFloat() > other.toFloat(); }
    fp16_t operator+(const fp16_t& other) const { return toFloat() + other.toFloat(); }
    fp16_t operator-(const fp16_t& other) const { return toFloat() - other.toFloat(); }
    fp16_t operator*(const fp16_t& other) const { return toFloat() * other.toFloat(); }
    fp16_t operator/(const fp16_t& other) const { return toFloat() / other.toFloat(); }

  private:
    static uint16_t bits_of(float value) {
        const auto half = static_cast<ascendc_host::Float16>(value);
        uint16_t bits;
        std::memcpy(&bits, &half, sizeof bits);
        return bits;
    }
};

}  // namespace Ops::Base

#endif  // ASCEND_GRAPH_OP_HOST_FP16_H
