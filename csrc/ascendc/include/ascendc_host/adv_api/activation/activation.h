// Activations over tensors, and products with gates.
#ifndef ASCENDC_HOST_ADV_API_ACTIVATION_ACTIVATION_H
#define ASCENDC_HOST_ADV_API_ACTIVATION_ACTIVATION_H

#include "ascendc_host/internal/unary.h"

namespace AscendC {

namespace detail {

struct sigmoid_op {
    template <typename T>
    T operator()(T a) const {
        return T(1) / (T(1) + std::exp(-a));
    }
};
struct silu_op {
    template <typename T>
    T operator()(T a) const {
        return a / (T(1) + std::exp(-a));
    }
};
struct gelu_op {  // the tanh form, which the device computes
    template <typename T>
    T operator()(T a) const {
        return a / (T(1) + std::exp(T(-1.5957691216057308) * (a + T(0.044715) * a * a * a)));
    }
};
struct faster_gelu_op {
    template <typename T>
    T operator()(T a) const {
        return a / (T(1) + std::exp(T(-1.702) * a));
    }
};
struct faster_gelu_v2_op {
    template <typename T>
    T operator()(T a) const {
        const T shifted = a + T(1e-12), sign = shifted / std::abs(shifted);
        const T distance = std::min(std::abs(T(0.7071) * a), T(1.769)) - T(1.769);
        return a * (sign * (T(-0.1444) * distance * distance + T(0.5)) + T(0.5));
    }
};

}  // namespace detail

ASCENDC_MATH(Sigmoid, refused, detail::sigmoid_op())
ASCENDC_MATH(Silu, refused, detail::silu_op())
ASCENDC_MATH(Gelu, in_order, detail::gelu_op(), , bool highPerformance = false)
ASCENDC_MATH(FasterGelu, in_order, detail::faster_gelu_op(), , bool highPerformance = false)
ASCENDC_MATH(FasterGeluV2, in_order, detail::faster_gelu_v2_op(), , bool highPerformance = false)

// The activations are also called with more template arguments; the first two are those of every function
// above.
template <typename T, bool isReuseSource = false>
void Swish(const LocalTensor<T>& dst, const LocalTensor<T>& src, uint32_t dataSize,
           const detail::Same<T> scalarValue, Where where = Where()) {
    static_assert(detail::is_one_of<T, half, float>, "Swish is for half and float");
    const detail::Wide<T> beta = scalarValue;
    detail::unary_math("Swish", where, dst, src, dataSize,
                       [beta](detail::Wide<T> a) { return a / (1 + std::exp(-beta * a)); });
}
template <typename T, bool isReuseSource = false>
void SwiGLU(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,
            const float& scalarValue, uint32_t calCount, Where where = Where()) {
    static_assert(detail::is_one_of<T, half, float>, "SwiGLU is for half and float");
    detail::on_count<detail::Overlap::refused>(
        "SwiGLU", where, calCount, dst,
        [scalarValue](float a, float b) { return a * b / (1 + std::exp(-scalarValue * b)); }, src0, src1);
}
template <typename T, bool isReuseSource = false>
void SwiGLU(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,
            const float& scalarValue, Where where = Where()) {
    SwiGLU(dst, src0, src1, scalarValue, src0.GetSize(), where);
}
template <typename T, bool isReuseSource = false>
void SwiGLU(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,
            const float& scalarValue, const LocalTensor<uint8_t>&, uint32_t calCount, Where where = Where()) {
    SwiGLU(dst, src0, src1, scalarValue, calCount, where);
}
template <typename T, bool isReuseSource = false>
void SwiGLU(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,
            const float& scalarValue, const LocalTensor<uint8_t>&, Where where = Where()) {
    SwiGLU(dst, src0, src1, scalarValue, src0.GetSize(), where);
}
template <typename T, bool isReuseSource = false>
void GeGLU(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,
           uint32_t calCount, Where where = Where()) {
    static_assert(detail::is_one_of<T, half, float>, "GeGLU is for half and float");
    detail::on_count<detail::Overlap::refused>(
        "GeGLU", where, calCount, dst, [](float a, float b) { return a * detail::gelu_op()(b); }, src0, src1);
}
template <typename T, bool isReuseSource = false>
void GeGLU(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,
           Where where = Where()) {
    GeGLU(dst, src0, src1, src0.GetSize(), where);
}
template <typename T, bool isReuseSource = false>
void GeGLU(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,
           const LocalTensor<uint8_t>&, uint32_t calCount, Where where = Where()) {
    GeGLU(dst, src0, src1, calCount, where);
}
template <typename T, bool isReuseSource = false>
void GeGLU(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,
           const LocalTensor<uint8_t>&, Where where = Where()) {
    GeGLU(dst, src0, src1, src0.GetSize(), where);
}
template <typename T, bool isReuseSource = false>
void ReGlu(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,
           const uint32_t calCount, Where where = Where()) {
    static_assert(detail::is_one_of<T, half, bfloat16_t, float>, "ReGlu is for half, bfloat16_t and float");
    detail::on_count<detail::Overlap::refused>(
        "ReGlu", where, calCount, dst, [](float a, float b) { return a * detail::relu_op()(b); }, src0, src1);
}
template <typename T, bool isReuseSource = false>
void ReGlu(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,
           Where where = Where()) {
    ReGlu(dst, src0, src1, src0.GetSize(), where);
}
template <typename T, bool isReuseSource = false>
void ReGlu(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,
           const LocalTensor<uint8_t>&, uint32_t calCount, Where where = Where()) {
    ReGlu(dst, src0, src1, calCount, where);
}
template <typename T, bool isReuseSource = false>
void ReGlu(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,
           const LocalTensor<uint8_t>&, Where where = Where()) {
    ReGlu(dst, src0, src1, src0.GetSize(), where);
}

}  // namespace AscendC

#endif  // ASCENDC_HOST_ADV_API_ACTIVATION_ACTIVATION_H
