// Mathematical functions over tensors, activations and normalisations of the high-level API.
//
// The device needs temporary space for most of them; the forms that take a buffer for it check nothing of it
// here.
#ifndef ASCENDC_HOST_MATH_H
#define ASCENDC_HOST_MATH_H

#include "algorithms.h"
#include "cast.h"
#include "reduce.h"

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
struct sign_op {
    template <typename T>
    T operator()(T a) const {
        return a > T(0) ? T(1) : a < T(0) ? T(-1) : a;
    }
};
struct frac_op {
    template <typename T>
    T operator()(T a) const {
        return a - std::trunc(a);
    }
};
// The derivative of lgamma: by reflection to positive arguments, by recurrence to those whose asymptotic
// series is exact. It has poles at 0 and the negative whole numbers, where it is no number.
struct digamma_op {
    template <typename T>
    T operator()(T a) const {
        constexpr double pi = 3.14159265358979323846;
        double x = static_cast<double>(a), result = 0;
        if (x <= 0 && x == std::floor(x)) return std::numeric_limits<T>::quiet_NaN();
        if (x < 0.5) {
            // tan has the period pi: of the fraction alone, for far from 0 pi * x is not exact.
            result = -pi / std::tan(pi * (x - std::floor(x)));
            x = 1 - x;
        }
        for (; x < 10; x += 1) result -= 1 / x;
        const double square = 1 / (x * x);
        const double series =
            square *
            (1.0 / 12 - square * (1.0 / 120 - square * (1.0 / 252 - square * (1.0 / 240 - square / 132))));
        return static_cast<T>(result + std::log(x) - 0.5 / x - series);
    }
};
struct rint_op {
    template <typename T>
    T operator()(T a) const {
        return std::nearbyint(a);
    }
};

// `tensor.GetSize()` elements where no count is given.
template <typename Op, typename T>
void unary_math(const char* api, const Where& where, const LocalTensor<T>& dst, const LocalTensor<T>& src,
                uint64_t count, const Op& op) {
    on_count(api, where, static_cast<int64_t>(count), dst, op, src);
}

}  // namespace detail

// Four forms: with or without temporary space, with or without a count; and one for pointers. What follows
// the operation is added to the template; activations call its second parameter highPrecision.
#define ASCENDC_MATH(Name, op, ...)                                                              \
    template <typename T, bool isReuseSource = false __VA_ARGS__, typename Count,                \
              typename = detail::IfPointed<Count, uint32_t>>                                     \
    void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const Count calCount) {      \
        detail::unary_math(#Name, ascendc_host::current().where, dst, src, calCount, op);        \
    }                                                                                            \
    template <typename T, bool isReuseSource = false __VA_ARGS__>                                \
    void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<uint8_t>&, \
              const uint32_t calCount, Where where = Where()) {                                  \
        detail::unary_math(#Name, where, dst, src, calCount, op);                                \
    }                                                                                            \
    template <typename T, bool isReuseSource = false __VA_ARGS__>                                \
    void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<uint8_t>&, \
              Where where = Where()) {                                                           \
        detail::unary_math(#Name, where, dst, src, src.GetSize(), op);                           \
    }                                                                                            \
    template <typename T, bool isReuseSource = false __VA_ARGS__>                                \
    void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const uint32_t calCount,     \
              Where where = Where()) {                                                           \
        detail::unary_math(#Name, where, dst, src, calCount, op);                                \
    }                                                                                            \
    template <typename T, bool isReuseSource = false __VA_ARGS__>                                \
    void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, Where where = Where()) {     \
        detail::unary_math(#Name, where, dst, src, src.GetSize(), op);                           \
    }

ASCENDC_MATH(Sin, [](auto a) { return std::sin(a); }, , const SinConfig& config = detail::default_Sin)
ASCENDC_MATH(Cos, [](auto a) { return std::cos(a); }, , const CosConfig& config = detail::default_Cos)
ASCENDC_MATH(Tan, [](auto a) { return std::tan(a); })
ASCENDC_MATH(Asin, [](auto a) { return std::asin(a); })
ASCENDC_MATH(Acos, [](auto a) { return std::acos(a); })
ASCENDC_MATH(Atan, [](auto a) { return std::atan(a); }, , const AtanConfig& config = detail::default_Atan)
ASCENDC_MATH(Sinh, [](auto a) { return std::sinh(a); })
ASCENDC_MATH(Cosh, [](auto a) { return std::cosh(a); })
ASCENDC_MATH(Tanh, [](auto a) { return std::tanh(a); }, , const TanhConfig& config = detail::default_Tanh)
ASCENDC_MATH(Asinh, [](auto a) { return std::asinh(a); })
ASCENDC_MATH(Acosh, [](auto a) { return std::acosh(a); })
ASCENDC_MATH(Atanh, [](auto a) { return std::atanh(a); })
ASCENDC_MATH(Log, [](auto a) { return std::log(a); }, , const LogConfig& config = detail::default_Log)
ASCENDC_MATH(Log2, [](auto a) { return std::log2(a); }, , const Log2Config& config = detail::default_Log2)
ASCENDC_MATH(Log10, [](auto a) { return std::log10(a); }, , const Log10Config& config = detail::default_Log10)
ASCENDC_MATH(Erf, [](auto a) { return std::erf(a); }, , const ErfConfig& config = detail::default_Erf)
ASCENDC_MATH(Erfc, [](auto a) { return std::erfc(a); })
ASCENDC_MATH(Lgamma, [](auto a) { return std::lgamma(a); })
ASCENDC_MATH(Floor, [](auto a) { return std::floor(a); })
ASCENDC_MATH(Ceil, [](auto a) { return std::ceil(a); })
ASCENDC_MATH(Round, detail::rint_op())
ASCENDC_MATH(Rint, detail::rint_op())
ASCENDC_MATH(Trunc, [](auto a) { return std::trunc(a); })
ASCENDC_MATH(Frac, detail::frac_op())
ASCENDC_MATH(Sign, detail::sign_op())
ASCENDC_MATH(Sigmoid, detail::sigmoid_op())
ASCENDC_MATH(Silu, detail::silu_op())
ASCENDC_MATH(Gelu, detail::gelu_op(), , bool highPerformance = false)
ASCENDC_MATH(FasterGelu, detail::faster_gelu_op(), , bool highPerformance = false)
ASCENDC_MATH(FasterGeluV2, detail::faster_gelu_v2_op(), , bool highPerformance = false)
#undef ASCENDC_MATH

template <typename T, bool isReuseSource = false>
void Digamma(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor, const uint32_t calCount,
             Where where = Where()) {
    static_assert(detail::is_one_of<T, half, float>, "Digamma is for half and float");
    detail::unary_math("Digamma", where, dstTensor, srcTensor, calCount, detail::digamma_op());
}
template <typename T, bool isReuseSource = false>
void Digamma(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor, const LocalTensor<uint8_t>&,
             const uint32_t calCount, Where where = Where()) {
    Digamma<T, isReuseSource>(dstTensor, srcTensor, calCount, where);
}

// The device takes more terms of the series with a higher level; the host's result is exact.
template <typename T, uint8_t taylorExpandLevel, bool isReuseSource = false>
void Exp(const LocalTensor<T>& dstLocal, const LocalTensor<T>& srcLocal, const uint32_t calCount,
         Where where = Where()) {
    static_assert(std::is_same<T, float>::value || std::is_same<T, half>::value,
                  "Exp with a level of expansion is for half and float");
    detail::unary_math("Exp", where, dstLocal, srcLocal, calCount, [](auto a) { return std::exp(a); });
}
template <typename T, uint8_t taylorExpandLevel, bool isReuseSource = false>
void Exp(const LocalTensor<T>& dstLocal, const LocalTensor<T>& srcLocal, const LocalTensor<uint8_t>&,
         const uint32_t calCount, Where where = Where()) {
    Exp<T, taylorExpandLevel, isReuseSource>(dstLocal, srcLocal, calCount, where);
}

// The activations are also called with more template arguments; the first two are those of every function
// above.
template <typename T, bool isReuseSource = false>
void Swish(const LocalTensor<T>& dst, const LocalTensor<T>& src, uint32_t dataSize,
           const detail::Same<T> scalarValue, Where where = Where()) {
    const detail::Wide<T> beta = scalarValue;
    detail::unary_math("Swish", where, dst, src, dataSize,
                       [beta](detail::Wide<T> a) { return a / (1 + std::exp(-beta * a)); });
}
template <typename T, bool isReuseSource = false>
void SwiGLU(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,
            const float& scalarValue, uint32_t calCount, Where where = Where()) {
    detail::on_count(
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
    detail::on_count(
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
    detail::on_count(
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

// --- two arguments
// ---------------------------------------------------------------------------------------------------

namespace detail {
struct power_op {
    template <typename T>
    T operator()(T a, T b) const {
        if constexpr (std::is_integral<T>::value) {
            T result = 1;
            for (; b > 0; b = static_cast<T>(b >> 1), a = mul_op()(a, a)) {
                if ((b & 1) != 0) result = mul_op()(result, a);
            }
            return result;
        } else {
            return std::pow(a, b);
        }
    }
};
struct fmod_op {
    template <typename T>
    T operator()(T a, T b) const {
        return std::fmod(a, b);
    }
};
struct hypot_op {
    template <typename T>
    T operator()(T a, T b) const {
        return std::hypot(a, b);
    }
};
}  // namespace detail

#define ASCENDC_MATH2(Name, op, ...)                                                             \
    template <typename T, bool isReuseSource = false __VA_ARGS__>                                \
    void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1, \
              const LocalTensor<uint8_t>&, const uint32_t calCount, Where where = Where()) {     \
        detail::on_count(#Name, where, calCount, dst, op(), src0, src1);                         \
    }                                                                                            \
    template <typename T, bool isReuseSource = false __VA_ARGS__>                                \
    void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1, \
              const LocalTensor<uint8_t>&, Where where = Where()) {                              \
        detail::on_count(#Name, where, src0.GetSize(), dst, op(), src0, src1);                   \
    }                                                                                            \
    template <typename T, bool isReuseSource = false __VA_ARGS__>                                \
    void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1, \
              const uint32_t calCount, Where where = Where()) {                                  \
        detail::on_count(#Name, where, calCount, dst, op(), src0, src1);                         \
    }                                                                                            \
    template <typename T, bool isReuseSource = false __VA_ARGS__>                                \
    void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1, \
              Where where = Where()) {                                                           \
        detail::on_count(#Name, where, src0.GetSize(), dst, op(), src0, src1);                   \
    }
ASCENDC_MATH2(Power, detail::power_op, , const PowerConfig& config = detail::default_Power)
ASCENDC_MATH2(Fmod, detail::fmod_op, , const FmodConfig& config = detail::default_Fmod)
ASCENDC_MATH2(Hypot, detail::hypot_op)
ASCENDC_MATH2(Xor, detail::xor_op)
#undef ASCENDC_MATH2

template <typename T, bool isReuseSource = false, const PowerConfig& config = detail::default_Power>
void Power(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const detail::Same<T>& src1,
           uint32_t calCount, Where where = Where()) {
    const detail::Wide<T> exponent = src1;
    detail::on_count(
        "Power", where, calCount, dst,
        [exponent](detail::Wide<T> a) { return detail::power_op()(a, exponent); }, src0);
}
template <typename T, bool isReuseSource = false, const PowerConfig& config = detail::default_Power>
void Power(const LocalTensor<T>& dst, const detail::Same<T>& src0, const LocalTensor<T>& src1,
           uint32_t calCount, Where where = Where()) {
    const detail::Wide<T> base = src0;
    detail::on_count(
        "Power", where, calCount, dst, [base](detail::Wide<T> b) { return detail::power_op()(base, b); },
        src1);
}
// With temporary space, which nothing needs, and of whole tensors.
#define ASCENDC_POWER(A, B, whole)                                                                       \
    template <typename T, bool isReuseSource = false, const PowerConfig& config = detail::default_Power> \
    void Power(const LocalTensor<T>& dst, const A& src0, const B& src1, const LocalTensor<uint8_t>&,     \
               uint32_t calCount, Where where = Where()) {                                               \
        Power<T, isReuseSource, config>(dst, src0, src1, calCount, where);                               \
    }                                                                                                    \
    template <typename T, bool isReuseSource = false, const PowerConfig& config = detail::default_Power> \
    void Power(const LocalTensor<T>& dst, const A& src0, const B& src1, const LocalTensor<uint8_t>&,     \
               Where where = Where()) {                                                                  \
        Power<T, isReuseSource, config>(dst, src0, src1, static_cast<uint32_t>(whole.GetSize()), where); \
    }                                                                                                    \
    template <typename T, bool isReuseSource = false, const PowerConfig& config = detail::default_Power> \
    void Power(const LocalTensor<T>& dst, const A& src0, const B& src1, Where where = Where()) {         \
        Power<T, isReuseSource, config>(dst, src0, src1, static_cast<uint32_t>(whole.GetSize()), where); \
    }
ASCENDC_POWER(LocalTensor<T>, detail::Same<T>, src0)
ASCENDC_POWER(detail::Same<T>, LocalTensor<T>, src1)
#undef ASCENDC_POWER
#define ASCENDC_CLAMP(Name, Function)                                                             \
    template <typename T, bool isReuseSource = false>                                             \
    void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const detail::Same<T> scalar, \
              const uint32_t calCount, Where where = Where()) {                                   \
        static_assert(detail::is_one_of<T, half, float>, #Name " is for half and float");         \
        Function(dst, src, scalar, static_cast<int32_t>(calCount), where);                        \
    }                                                                                             \
    template <typename T, bool isReuseSource = false>                                             \
    void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<uint8_t>&,  \
              const detail::Same<T> scalar, const uint32_t calCount, Where where = Where()) {     \
        Name<T, isReuseSource>(dst, src, scalar, calCount, where);                                \
    }
ASCENDC_CLAMP(ClampMax, Mins)
ASCENDC_CLAMP(ClampMin, Maxs)
#undef ASCENDC_CLAMP

// --- broadcast
// -------------------------------------------------------------------------------------------------------

// Copies of size 1 along `axis` become the destination's size; the other dimensions agree.
template <typename T, int32_t dim, int32_t axis, bool isReuseSource = false>
void BroadCast(const LocalTensor<T>& dst, const LocalTensor<T>& src, const uint32_t dstShape[dim],
               const uint32_t srcShape[dim], Where where = Where()) {
    const auto& block = ascendc_host::enter(where);
    static_assert(dim == 1 || dim == 2, "BroadCast is for one or two dimensions");
    static_assert(axis >= 0 && axis < dim, "BroadCast: axis counts from 0");
    uint64_t total = 1;
    uint64_t source = 1;
    for (int i = 0; i < dim; ++i) {
        total *= dstShape[i];
        source *= srcShape[i];
        if (srcShape[i] != dstShape[i] && (srcShape[i] != 1 || i != axis)) {
            ascendc_host::fail(
                block, where,
                ascendc_host::format("BroadCast: dimension %d from %u to %u; only axis %d may grow, from 1",
                                     i, srcShape[i], dstShape[i], axis));
        }
    }
    const T* from = detail::vector_operand(src, source * sizeof(T), "BroadCast", "src", where);
    T* to = detail::vector_operand(dst, total * sizeof(T), "BroadCast", "dst", where);
    const uint64_t columns = dim == 2 ? dstShape[dim - 1] : 1;
    for (uint64_t i = 0; i < total; ++i) {
        const uint64_t row = dim == 2 ? i / columns : i;
        const uint64_t column = dim == 2 ? i % columns : 0;
        const uint64_t at_row = srcShape[0] == 1 ? 0 : row;
        const uint64_t at_column = dim == 2 && srcShape[dim - 1] == 1 ? 0 : column;
        to[i] = from[dim == 2 ? at_row * srcShape[dim - 1] + at_column : at_row];
    }
}
template <typename T, int32_t dim, int32_t axis, bool isReuseSource = false>
void BroadCast(const LocalTensor<T>& dst, const LocalTensor<T>& src, const uint32_t dstShape[dim],
               const uint32_t srcShape[dim], LocalTensor<uint8_t>&, Where where = Where()) {
    BroadCast<T, dim, axis, isReuseSource>(dst, src, dstShape, srcShape, where);
}
// As newer kernels call it.
template <typename T, int32_t dim, int32_t axis, bool isReuseSource = false>
void Broadcast(const LocalTensor<T>& dst, const LocalTensor<T>& src, const uint32_t dstShape[dim],
               const uint32_t srcShape[dim], Where where = Where()) {
    BroadCast<T, dim, axis, isReuseSource>(dst, src, dstShape, srcShape, where);
}
template <typename T, int32_t dim, int32_t axis, bool isReuseSource = false>
void Broadcast(const LocalTensor<T>& dst, const LocalTensor<T>& src, const uint32_t dstShape[dim],
               const uint32_t srcShape[dim], LocalTensor<uint8_t>&, Where where = Where()) {
    BroadCast<T, dim, axis, isReuseSource>(dst, src, dstShape, srcShape, where);
}

}  // namespace AscendC

#endif  // ASCENDC_HOST_MATH_H
