// Mathematical functions over tensors.
//
// The device needs temporary space for most of them; the forms that take a buffer for it check that it lies
// apart, and nothing else.
#ifndef ASCENDC_HOST_ADV_API_MATH_MATH_H
#define ASCENDC_HOST_ADV_API_MATH_MATH_H

#include "ascendc_host/internal/algorithms.h"
#include "ascendc_host/internal/unary.h"

namespace AscendC {

// CANN's own constant of Lgamma, which its headers let kernels see.
constexpr float PI = 3.14159265358979323846f;

namespace detail {

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

}  // namespace detail

ASCENDC_MATH(
    Sin, refused, [](auto a) { return std::sin(a); }, , const SinConfig& config = detail::default_Sin)
ASCENDC_MATH(
    Cos, refused, [](auto a) { return std::cos(a); }, , const CosConfig& config = detail::default_Cos)
ASCENDC_MATH(Tan, refused, [](auto a) { return std::tan(a); })
ASCENDC_MATH(Asin, refused, [](auto a) { return std::asin(a); })
ASCENDC_MATH(Acos, refused, [](auto a) { return std::acos(a); })
ASCENDC_MATH(
    Atan, refused, [](auto a) { return std::atan(a); }, , const AtanConfig& config = detail::default_Atan)
ASCENDC_MATH(Sinh, refused, [](auto a) { return std::sinh(a); })
ASCENDC_MATH(Cosh, refused, [](auto a) { return std::cosh(a); })
ASCENDC_MATH(
    Tanh, refused, [](auto a) { return std::tanh(a); }, , const TanhConfig& config = detail::default_Tanh)
ASCENDC_MATH(Asinh, refused, [](auto a) { return std::asinh(a); })
ASCENDC_MATH(Acosh, refused, [](auto a) { return std::acosh(a); })
ASCENDC_MATH(Atanh, refused, [](auto a) { return std::atanh(a); })
ASCENDC_MATH(
    Log, refused, [](auto a) { return std::log(a); }, , const LogConfig& config = detail::default_Log)
ASCENDC_MATH(
    Log2, refused, [](auto a) { return std::log2(a); }, , const Log2Config& config = detail::default_Log2)
ASCENDC_MATH(
    Log10, refused, [](auto a) { return std::log10(a); }, , const Log10Config& config = detail::default_Log10)
ASCENDC_MATH(
    Erf, refused, [](auto a) { return std::erf(a); }, , const ErfConfig& config = detail::default_Erf)
ASCENDC_MATH(Erfc, refused, [](auto a) { return std::erfc(a); })
ASCENDC_MATH(Lgamma, refused, [](auto a) { return std::lgamma(a); })
ASCENDC_MATH(Floor, refused, [](auto a) { return std::floor(a); })
ASCENDC_MATH(Ceil, refused, [](auto a) { return std::ceil(a); })
ASCENDC_MATH(Round, in_order, detail::rint_op())
#if __NPU_ARCH__ == 3510
ASCENDC_MATH(Rint, refused, detail::rint_op())
#endif
ASCENDC_MATH(Trunc, in_order, [](auto a) { return std::trunc(a); })
ASCENDC_MATH(Frac, refused, detail::frac_op())
ASCENDC_MATH(Sign, refused, detail::sign_op())

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

#define ASCENDC_HYPOT(Name, T) ASCENDC_ONLY_DAV3510(Name, T, "use Mul, Add and Sqrt")
#define ASCENDC_MATH2(Name, op, ELEMENTS, ...)                                                              \
    template <typename T, bool isReuseSource = false __VA_ARGS__>                                           \
    void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,            \
              const LocalTensor<uint8_t>& space, const uint32_t calCount, Where where = Where()) {          \
        ELEMENTS(Name, T);                                                                                  \
        detail::require_space<T, isReuseSource>(#Name, space, {&dst, &src0, &src1}, calCount, where);       \
        detail::on_count<detail::Overlap::refused>(#Name, where, calCount, dst, op(), src0, src1);          \
    }                                                                                                       \
    template <typename T, bool isReuseSource = false __VA_ARGS__>                                           \
    void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,            \
              const LocalTensor<uint8_t>& space, Where where = Where()) {                                   \
        ELEMENTS(Name, T);                                                                                  \
        detail::require_space<T, isReuseSource>(#Name, space, {&dst, &src0, &src1}, src0.GetSize(), where); \
        detail::on_count<detail::Overlap::refused>(#Name, where, src0.GetSize(), dst, op(), src0, src1);    \
    }                                                                                                       \
    template <typename T, bool isReuseSource = false __VA_ARGS__>                                           \
    void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,            \
              const uint32_t calCount, Where where = Where()) {                                             \
        ELEMENTS(Name, T);                                                                                  \
        detail::on_count<detail::Overlap::refused>(#Name, where, calCount, dst, op(), src0, src1);          \
    }                                                                                                       \
    template <typename T, bool isReuseSource = false __VA_ARGS__>                                           \
    void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,            \
              Where where = Where()) {                                                                      \
        ELEMENTS(Name, T);                                                                                  \
        detail::on_count<detail::Overlap::refused>(#Name, where, src0.GetSize(), dst, op(), src0, src1);    \
    }
ASCENDC_MATH2(Power, detail::power_op, ASCENDC_RELU, , const PowerConfig& config = detail::default_Power)
ASCENDC_MATH2(Fmod, detail::fmod_op, ASCENDC_FLOATS, , const FmodConfig& config = detail::default_Fmod)
ASCENDC_MATH2(Hypot, detail::hypot_op, ASCENDC_HYPOT)
ASCENDC_MATH2(Xor, detail::xor_op, ASCENDC_BITS)
#undef ASCENDC_MATH2

template <typename T, bool isReuseSource = false, const PowerConfig& config = detail::default_Power>
void Power(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const detail::Same<T>& src1,
           uint32_t calCount, Where where = Where()) {
    ASCENDC_RELU(Power, T);
    const detail::Wide<T> exponent = src1;
    detail::on_count<detail::Overlap::refused>(
        "Power", where, calCount, dst,
        [exponent](detail::Wide<T> a) { return detail::power_op()(a, exponent); }, src0);
}
template <typename T, bool isReuseSource = false, const PowerConfig& config = detail::default_Power>
void Power(const LocalTensor<T>& dst, const detail::Same<T>& src0, const LocalTensor<T>& src1,
           uint32_t calCount, Where where = Where()) {
    ASCENDC_RELU(Power, T);
    const detail::Wide<T> base = src0;
    detail::on_count<detail::Overlap::refused>(
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
#define ASCENDC_CLAMP(Name, op)                                                                         \
    template <typename T, bool isReuseSource = false>                                                   \
    void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const detail::Same<T> scalar,       \
              const uint32_t calCount, Where where = Where()) {                                         \
        static_assert(detail::is_one_of<T, half, float>, #Name " is for half and float");               \
        const detail::Wide<T> bound = scalar;                                                           \
        detail::on_count<detail::Overlap::refused>(                                                     \
            #Name, where, calCount, dst, [bound](detail::Wide<T> a) { return detail::op()(bound, a); }, \
            src);                                                                                       \
    }                                                                                                   \
    template <typename T, bool isReuseSource = false>                                                   \
    void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<uint8_t>&,        \
              const detail::Same<T> scalar, const uint32_t calCount, Where where = Where()) {           \
        Name<T, isReuseSource>(dst, src, scalar, calCount, where);                                      \
    }
ASCENDC_CLAMP(ClampMax, min_op)
ASCENDC_CLAMP(ClampMin, max_op)
#undef ASCENDC_CLAMP

}  // namespace AscendC

#endif  // ASCENDC_HOST_ADV_API_MATH_MATH_H
