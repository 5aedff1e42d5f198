// Functions of the elements of whole tensors that dav-3510 alone has: what a number is, logic, bits, limits.
#ifndef ASCENDC_HOST_ADV_API_MATH_ELEMENTS_H
#define ASCENDC_HOST_ADV_API_MATH_ELEMENTS_H

#include "ascendc_host/basic_api/arithmetic.h"

#if __NPU_ARCH__ == 3510
namespace AscendC {

#define ASCENDC_REUSE(Name)                       \
    struct Name##Config {                         \
        bool isReuseSource;                       \
    };                                            \
    namespace detail {                            \
    constexpr Name##Config kept_##Name = {false}; \
    }
ASCENDC_REUSE(IsNan)
ASCENDC_REUSE(IsInf)
ASCENDC_REUSE(LogicalAnd)
ASCENDC_REUSE(LogicalOr)
ASCENDC_REUSE(LogicalXor)
ASCENDC_REUSE(LogicalNot)
ASCENDC_REUSE(BitwiseAnd)
ASCENDC_REUSE(BitwiseOr)
ASCENDC_REUSE(BitwiseXor)
ASCENDC_REUSE(BitwiseNot)
ASCENDC_REUSE(Fma)
ASCENDC_REUSE(Clamp)
#undef ASCENDC_REUSE

namespace detail {

template <typename T>
struct ElementOf {
    using type = T;
};
template <typename T>
struct ElementOf<LocalTensor<T>> {
    using type = T;
};
// An operand that is a tensor or one number for all elements.
template <typename T>
class EachOrAll {
  public:
    EachOrAll(const LocalTensor<T>& tensor, uint64_t count, const char* api, const char* name,
              const Where& where)
        : from_(vector_operand(tensor, count * sizeof(T), api, name, where)), bytes_(count * sizeof(T)) {}
    EachOrAll(const T& value, uint64_t, const char*, const char*, const Where&) : value_(value) {}
    T operator[](uint64_t index) const { return from_ == nullptr ? value_ : from_[index]; }
    ascendc_host::Span span() const { return {"a source", from_, bytes_}; }

  private:
    const T* from_ = nullptr;
    uint64_t bytes_ = 0;
    T value_{};
};

// dst[i] = op(sources[i] …); the result lies apart from the sources.
template <typename T, typename Op, typename... S>
void of_elements(const char* api, const Where& where, const LocalTensor<T>& dst, uint32_t count, const Op& op,
                 const S&... sources) {
    ascendc_host::enter(where);
    const uint64_t bytes = uint64_t(count) * sizeof(T);
    T* to = vector_operand(dst, bytes, api, "dst", where);
    const auto run = [&](const auto&... each) {
        ascendc_host::require_apart(api, {{"dst", to, bytes}}, {each.span()...}, where);
        for (uint32_t i = 0; i < count; ++i) to[i] = op(each[i]...);
    };
    run(EachOrAll<typename ElementOf<S>::type>(sources, count, api, "a source", where)...);
}
template <typename T>
constexpr bool is_number = is_one_of<T, int8_t, uint8_t, int16_t, uint16_t, half, bfloat16_t, int32_t,
                                     uint32_t, float, int64_t, uint64_t>;
template <typename T>
constexpr bool is_whole_number =
    is_one_of<T, int8_t, uint8_t, int16_t, uint16_t, int32_t, uint32_t, int64_t, uint64_t>;

}  // namespace detail

// 1 or true where a number is one, and where it is none.
template <typename T, typename U>
void IsFinite(const LocalTensor<U>& dst, const LocalTensor<T>& src, uint32_t calCount,
              Where where = Where()) {
    static_assert(detail::is_one_of<T, half, bfloat16_t, float> && detail::is_one_of<U, bool, T>,
                  "IsFinite is for half, bfloat16_t and float, to the same or bool");
    detail::of_elements(
        "IsFinite", where, dst, calCount,
        [](T a) { return static_cast<U>(std::isfinite(static_cast<float>(a)) ? 1.0f : 0.0f); }, src);
}
#define ASCENDC_IS(Name, test)                                                                   \
    template <const Name##Config& config = detail::kept_##Name, typename T, typename U>          \
    void Name(const LocalTensor<T>& dst, const LocalTensor<U>& src, const uint32_t count,        \
              Where where = Where()) {                                                           \
        static_assert(detail::is_one_of<U, half, float> && detail::is_one_of<T, bool, U>,        \
                      #Name " is for half and float, to the same or bool");                      \
        detail::of_elements(                                                                     \
            #Name, where, dst, count,                                                            \
            [](U a) { return static_cast<T>(test(static_cast<float>(a)) ? 1.0f : 0.0f); }, src); \
    }                                                                                            \
    template <const Name##Config& config = detail::kept_##Name, typename T, typename U>          \
    void Name(const LocalTensor<T>& dst, const LocalTensor<U>& src, const LocalTensor<uint8_t>&, \
              const uint32_t count, Where where = Where()) {                                     \
        Name<config>(dst, src, count, where);                                                    \
    }
ASCENDC_IS(IsNan, std::isnan)
ASCENDC_IS(IsInf, std::isinf)
#undef ASCENDC_IS

// What is not 0 is true.
#define ASCENDC_LOGICAL(Name, op)                                                                      \
    template <const Name##Config& config = detail::kept_##Name, typename T, typename U>                \
    void Name(const LocalTensor<T>& dst, const LocalTensor<U>& src0, const LocalTensor<U>& src1,       \
              const uint32_t count, Where where = Where()) {                                           \
        static_assert(                                                                                 \
            std::is_same<T, bool>::value && (std::is_same<U, bool>::value || detail::is_number<U>),    \
            #Name " is for numbers and bool, to bool");                                                \
        detail::of_elements(                                                                           \
            #Name, where, dst, count, [](U a, U b) { return (a != U(0)) op(b != U(0)); }, src0, src1); \
    }
ASCENDC_LOGICAL(LogicalAnd, &&)
ASCENDC_LOGICAL(LogicalOr, ||)
ASCENDC_LOGICAL(LogicalXor, !=)
#undef ASCENDC_LOGICAL
template <const LogicalNotConfig& config = detail::kept_LogicalNot, typename T, typename U>
void LogicalNot(const LocalTensor<T>& dst, const LocalTensor<U>& src, const uint32_t count,
                Where where = Where()) {
    static_assert(std::is_same<T, bool>::value && (std::is_same<U, bool>::value || detail::is_number<U>),
                  "LogicalNot is for numbers and bool, to bool");
    detail::of_elements("LogicalNot", where, dst, count, [](U a) { return a == U(0); }, src);
}

// Of a tensor and one value for all of its elements, which may be the first element of a tensor.
#define ASCENDC_LOGICAL_SCALAR(Name, op)                                                                   \
    struct Name##Config {                                                                                  \
        bool isReuseSource;                                                                                \
        int8_t scalarTensorIndex;                                                                          \
    };                                                                                                     \
    namespace detail {                                                                                     \
    constexpr Name##Config kept_##Name = {false, 1};                                                       \
    }                                                                                                      \
    template <const Name##Config& config = detail::kept_##Name, typename T, typename U, typename S>        \
    void Name(const LocalTensor<T>& dst, const U& src0, const S& src1, const uint32_t count,               \
              Where where = Where()) {                                                                     \
        using A = typename detail::ElementOf<U>::type;                                                     \
        using B = typename detail::ElementOf<S>::type;                                                     \
        constexpr bool has_tensor = !std::is_same<A, U>::value, has_second = !std::is_same<B, S>::value;   \
        static_assert(std::is_same<T, bool>::value &&                                                      \
                          (std::is_same<A, bool>::value || detail::is_number<A>) &&                        \
                          (std::is_same<B, bool>::value || detail::is_number<B>),                          \
                      #Name " is for numbers and bool, to bool");                                          \
        static_assert(has_tensor || has_second, #Name ": one source is a tensor of `count` elements");     \
        if constexpr (has_tensor && has_second) {                                                          \
            static_assert(config.scalarTensorIndex == 0 || config.scalarTensorIndex == 1,                  \
                          #Name ": scalarTensorIndex is 0 or 1");                                          \
            if constexpr (config.scalarTensorIndex == 0) {                                                 \
                Name<config>(dst, src0.GetValue(0, where), src1, count, where);                            \
            } else {                                                                                       \
                Name<config>(dst, src0, src1.GetValue(0, where), count, where);                            \
            }                                                                                              \
        } else {                                                                                           \
            detail::of_elements(                                                                           \
                #Name, where, dst, count, [](A a, B b) { return (a != A(0)) op(b != B(0)); }, src0, src1); \
        }                                                                                                  \
    }
ASCENDC_LOGICAL_SCALAR(LogicalAnds, &&)
ASCENDC_LOGICAL_SCALAR(LogicalOrs, ||)
#undef ASCENDC_LOGICAL_SCALAR

#define ASCENDC_BITWISE(Name, op)                                                                   \
    template <const Name##Config& config = detail::kept_##Name, typename T>                         \
    void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,    \
              const uint32_t count, Where where = Where()) {                                        \
        static_assert(detail::is_whole_number<T>, #Name " is for whole numbers");                   \
        detail::of_elements(                                                                        \
            #Name, where, dst, count, [](T a, T b) { return static_cast<T>(a op b); }, src0, src1); \
    }
ASCENDC_BITWISE(BitwiseAnd, &)
ASCENDC_BITWISE(BitwiseOr, |)
ASCENDC_BITWISE(BitwiseXor, ^)
#undef ASCENDC_BITWISE
template <const BitwiseNotConfig& config = detail::kept_BitwiseNot, typename T>
void BitwiseNot(const LocalTensor<T>& dst, const LocalTensor<T>& src, const uint32_t count,
                Where where = Where()) {
    static_assert(detail::is_whole_number<T>, "BitwiseNot is for whole numbers");
    detail::of_elements("BitwiseNot", where, dst, count, [](T a) { return static_cast<T>(~a); }, src);
}

// src0 * src1 + src2, rounded once.
template <const FmaConfig& config = detail::kept_Fma, typename T>
void Fma(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,
         const LocalTensor<T>& src2, const uint32_t count, Where where = Where()) {
    static_assert(detail::is_one_of<T, half, float>, "Fma is for half and float");
    using W = std::conditional_t<std::is_same<T, half>::value, double, float>;
    const auto fma = [](T a, T b, T c) {
        const auto wide = [](T x) { return static_cast<W>(static_cast<float>(x)); };
        return static_cast<T>(static_cast<float>(std::fma(wide(a), wide(b), wide(c))));
    };
    detail::of_elements("Fma", where, dst, count, fma, src0, src1, src2);
}
template <const FmaConfig& config = detail::kept_Fma, typename T>
void Fma(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,
         const LocalTensor<T>& src2, const LocalTensor<uint8_t>&, const uint32_t count,
         Where where = Where()) {
    Fma<config>(dst, src0, src1, src2, count, where);
}

// Numbers between min and max, tensors or one for all; max where min is above it. NaN stays.
template <const ClampConfig& config = detail::kept_Clamp, typename T, typename U, typename S>
void Clamp(const LocalTensor<T>& dst, const LocalTensor<T>& src, const U& min, const S& max,
           const uint32_t count, Where where = Where()) {
    static_assert(detail::is_number<T> && std::is_same<typename detail::ElementOf<U>::type, T>::value &&
                      std::is_same<typename detail::ElementOf<S>::type, T>::value,
                  "Clamp is for numbers, with limits of the same type");
    const auto clamp = [](T a, T low, T high) {
        const T least = a < low ? low : a;
        return high < least ? high : least;
    };
    detail::of_elements("Clamp", where, dst, count, clamp, src, min, max);
}

}  // namespace AscendC
#endif

#endif  // ASCENDC_HOST_ADV_API_MATH_ELEMENTS_H
