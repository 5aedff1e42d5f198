// Vector arithmetic: unary, binary and scalar instructions, each in three forms: on `count` elements, and on
// repeats with the mask as a number or as bits.
#ifndef ASCENDC_HOST_BASIC_API_ARITHMETIC_H
#define ASCENDC_HOST_BASIC_API_ARITHMETIC_H

#include "ascendc_host/basic_api/mask.h"
#include "ascendc_host/internal/algorithms.h"
#include "ascendc_host/internal/complex.h"

namespace AscendC {
namespace detail {

using ascendc_host::is_float;
using ascendc_host::Unsigned;

// One element of each instruction, in the wide types. Integers wrap.
struct add_op {
    static constexpr ascendc_host::HalfOp on_halfs = ascendc_host::HalfOp::add;
    template <typename T>
    T operator()(T a, T b) const {
        return static_cast<T>(static_cast<Unsigned<T>>(a) + static_cast<Unsigned<T>>(b));
    }
    template <typename T>
    Complex<T> operator()(const Complex<T>& a, const Complex<T>& b) const {
        return add(a, b);
    }
};
struct sub_op {
    static constexpr ascendc_host::HalfOp on_halfs = ascendc_host::HalfOp::sub;
    template <typename T>
    T operator()(T a, T b) const {
        return static_cast<T>(static_cast<Unsigned<T>>(a) - static_cast<Unsigned<T>>(b));
    }
    template <typename T>
    Complex<T> operator()(const Complex<T>& a, const Complex<T>& b) const {
        return subtract(a, b);
    }
};
struct mul_op {
    static constexpr ascendc_host::HalfOp on_halfs = ascendc_host::HalfOp::mul;
    template <typename T>
    T operator()(T a, T b) const {
        return static_cast<T>(static_cast<Unsigned<T>>(a) * static_cast<Unsigned<T>>(b));
    }
    template <typename T>
    Complex<T> operator()(const Complex<T>& a, const Complex<T>& b) const {
        return multiply(a, b);
    }
};
struct div_op {
    template <typename T>
    T operator()(T a, T b) const {
        if constexpr (std::is_integral<T>::value) {
            if (b == 0) return T(-1);
            if (std::is_signed<T>::value && b == T(-1)) return sub_op()(T(0), a);
        }
        return static_cast<T>(a / b);
    }
    template <typename T>
    Complex<T> operator()(const Complex<T>& a, const Complex<T>& b) const {
        return divide(a, b);
    }
};
// A NaN wins over a number.
struct max_op {
    template <typename T>
    T operator()(T a, T b) const {
        return ((a > b) | (a != a)) ? a : b;
    }
};
struct min_op {
    template <typename T>
    T operator()(T a, T b) const {
        return ((a < b) | (a != a)) ? a : b;
    }
};
struct and_op {
    template <typename T>
    T operator()(T a, T b) const {
        return static_cast<T>(a & b);
    }
};
struct or_op {
    template <typename T>
    T operator()(T a, T b) const {
        return static_cast<T>(a | b);
    }
};
struct xor_op {
    template <typename T>
    T operator()(T a, T b) const {
        return static_cast<T>(a ^ b);
    }
};
struct relu_op {
    template <typename T>
    T operator()(T a) const {
        return a < T(0) ? T(0) : a;
    }
};
struct add_relu_op {
    template <typename T>
    T operator()(T a, T b) const {
        return relu_op()(add_op()(a, b));
    }
};
struct sub_relu_op {
    template <typename T>
    T operator()(T a, T b) const {
        return relu_op()(sub_op()(a, b));
    }
};
struct exp_op {
    template <typename T>
    T operator()(T a) const {
        return std::exp(a);
    }
};
struct ln_op {
    template <typename T>
    T operator()(T a) const {
        return std::log(a);
    }
};
struct abs_op {
    template <typename T>
    T operator()(T a) const {
        return a < T(0) ? sub_op()(T(0), a) : a;
    }
};
struct neg_op {
    template <typename T>
    T operator()(T a) const {
        if constexpr (std::is_floating_point<T>::value) return -a;
        return sub_op()(T(0), a);
    }
};
struct reciprocal_op {
    template <typename T>
    T operator()(T a) const {
        return T(1) / a;
    }
};
struct sqrt_op {
    template <typename T>
    T operator()(T a) const {
        return std::sqrt(a);
    }
};
struct rsqrt_op {
    template <typename T>
    T operator()(T a) const {
        return T(1) / std::sqrt(a);
    }
};
struct not_op {
    template <typename T>
    T operator()(T a) const {
        return static_cast<T>(~a);
    }
};
// The scalar instructions see the scalar first.
struct leaky_relu_op {
    template <typename T>
    T operator()(T slope, T a) const {
        return a < T(0) ? a * slope : a;
    }
};
struct sub_scalar_op {
    template <typename T>
    T operator()(T scalar, T a) const {
        return sub_op()(a, scalar);
    }
};
struct div_scalar_op {
    template <typename T>
    T operator()(T scalar, T a) const {
        return div_op()(a, scalar);
    }
};
struct shift_left_op {
    template <typename T, typename U>
    T operator()(U distance, T a) const {
        if (static_cast<uint64_t>(distance) >= sizeof(T) * 8) return 0;
        return static_cast<T>(static_cast<Unsigned<T>>(a) << distance);
    }
};
struct shift_right_op {
    template <typename T, typename U>
    T operator()(U distance, T a) const {
        if (static_cast<uint64_t>(distance) >= sizeof(T) * 8) return a < 0 ? T(-1) : T(0);
        return static_cast<T>(a >> distance);  // arithmetic for signed types, logical for unsigned ones
    }
};

// Bitwise operations know 16 bits alone before dav-3510: one by count works on so many pairs of bytes,
// whatever the type of its tensors, and one with masks does not compile for another type.
#if __NPU_ARCH__ == 3510
template <typename Op>
constexpr bool in_pairs = false;
#else
template <typename Op>
constexpr bool in_pairs = std::is_same<Op, and_op>::value || std::is_same<Op, or_op>::value;
#endif
template <typename Op, typename T>
decltype(auto) as_counted(const LocalTensor<T>& tensor) {
    if constexpr (in_pairs<Op>) {
        return tensor.template ReinterpretCast<uint16_t>();
    } else {
        return (tensor);
    }
}
// As many as an operation on whole tensors counts.
template <typename Op, typename T>
int32_t whole(const LocalTensor<T>& dst) {
    constexpr bool doubled = in_pairs<Op> && std::is_integral<T>::value && sizeof(T) == 4;
    return static_cast<int32_t>(dst.GetSize() * (doubled ? 2 : 1));
}

// Operands that overlap follow the rules of repeats, or the function asks for operands apart.
enum class Overlap { in_order, refused };
template <Overlap overlap, typename T, typename S>
const S* source_operand(const char* api, const Where& where, const T* to, const char* name,
                        const LocalTensor<S>& src, uint64_t count) {
    const S* from = vector_operand(src, count * sizeof(S), api, name, where);
    if constexpr (overlap == Overlap::refused) {
        ascendc_host::require_apart(api, {"dst", to, count * sizeof(T)}, {name, from, count * sizeof(S)},
                                    where);
    } else {
        require_order(api, to, name, from, count, where);
    }
    return from;
}
template <Overlap overlap = Overlap::in_order, typename Op, typename T, typename... S>
void on_count(const char* api, const Where& where, int64_t count, const LocalTensor<T>& dst, const Op& op,
              const LocalTensor<S>&... src) {
    Block& block = ascendc_host::enter(where);
    if (count < 0)
        ascendc_host::fail(block, where,
                           ascendc_host::format("%s: count %lld", api, static_cast<long long>(count)));
    leave_masks(block);
    const char* name = sizeof...(S) == 1 ? "src" : "a source";
    T* to = vector_operand(dst, count * sizeof(T), api, "dst", where);
    contiguous(to, static_cast<size_t>(count), op,
               static_cast<const S*>(source_operand<overlap>(api, where, to, name, src, count))...);
}

// The destination of these may be their second source from one repeat to the next: sums over repeats.
template <typename Op, typename T>
constexpr bool accumulates =
    is_one_of<Op, add_op, sub_op, mul_op, max_op, min_op, add_relu_op, sub_relu_op> &&
    is_one_of<T, half, int32_t, float>;

template <typename Op, typename T, typename S>
void on_repeats(const char* api, const Where& where, const Mask& mask, uint32_t repeats,
                const UnaryRepeatParams& p, const LocalTensor<T>& dst, const Op& op,
                const LocalTensor<S>& src) {
    constexpr uint32_t lanes = lanes_of<T, S>();
    repeats = mask.repeats(repeats, lanes);
    const Operand<T> to(dst, {p.dstBlkStride, p.dstRepStride}, mask, repeats, lanes, api, "dst", where);
    const Operand<S> from(src, {p.srcBlkStride, p.srcRepStride}, mask, repeats, lanes, api, "src", where);
    require_order(api, to, from, mask, repeats, lanes, where);
    repeated(to, mask, repeats, op, from);
}
// The operands of an instruction with two sources.
template <typename T, typename S0, typename S1>
struct BinaryOperands {
    static constexpr uint32_t lanes = lanes_of<T, S0, S1>();
    Operand<T> dst;
    Operand<S0> src0;
    Operand<S1> src1;

    BinaryOperands(const char* api, const Where& where, const Mask& mask, uint32_t repeats,
                   const BinaryRepeatParams& p, const LocalTensor<T>& to, const LocalTensor<S0>& first,
                   const LocalTensor<S1>& second, bool sums)
        : dst(to, {p.dstBlkStride, p.dstRepStride}, mask, repeats, lanes, api, "dst", where),
          src0(first, {p.src0BlkStride, p.src0RepStride}, mask, repeats, lanes, api, "src0", where),
          src1(second, {p.src1BlkStride, p.src1RepStride}, mask, repeats, lanes, api, "src1", where) {
        require_order(api, dst, src0, mask, repeats, lanes, where);
        require_order(api, dst, src1, mask, repeats, lanes, where,
                      sums && (p.dstRepStride == 0 || p.src1RepStride == 0));
    }
};
template <typename Op, typename T, typename S, typename S1>
void on_repeats(const char* api, const Where& where, const Mask& mask, uint32_t repeats,
                const BinaryRepeatParams& p, const LocalTensor<T>& dst, const Op& op,
                const LocalTensor<S>& src0, const LocalTensor<S1>& src1) {
    static_assert(!is_complex<T>, "complex numbers are computed by a count, not by masks and repeats");
    repeats = mask.repeats(repeats, lanes_of<T, S, S1>());
    const BinaryOperands<T, S, S1> on(api, where, mask, repeats, p, dst, src0, src1, accumulates<Op, T>);
    repeated(on.dst, mask, repeats, op, on.src0, on.src1);
}
// With the destination as a third source.
template <typename Op, typename T, typename S>
void on_repeats_with_dst(const char* api, const Where& where, const Mask& mask, uint32_t repeats,
                         const BinaryRepeatParams& p, const LocalTensor<T>& dst, const Op& op,
                         const LocalTensor<S>& src0, const LocalTensor<S>& src1) {
    repeats = mask.repeats(repeats, lanes_of<T, S>());
    const BinaryOperands<T, S, S> on(api, where, mask, repeats, p, dst, src0, src1, false);
    repeated(on.dst, mask, repeats, op, on.src0, on.src1, on.dst);
}

}  // namespace detail

namespace detail {
// Marks the form of a function with a count or mask that is taken as a pointer or a template argument, where
// there can be no `Where`. A call takes the other form, which is the more specialized.
template <typename Count, typename Wanted>
using IfPointed = std::enable_if_t<std::is_same<Count, Wanted>::value>;
}  // namespace detail

// The names of the API cannot be template arguments, so each family of overloads is written once, as a macro.
#define ASCENDC_UNARY(Name, op, ELEMENTS)                                                           \
    template <typename T, typename Count, typename = detail::IfPointed<Count, int32_t>>             \
    void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const Count& count) {           \
        Name(dst, src, count, ascendc_host::current().where);                                       \
    }                                                                                               \
    template <typename T>                                                                           \
    void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const int32_t& count,           \
              Where where = Where()) {                                                              \
        ELEMENTS(Name, T);                                                                          \
        detail::on_count(#Name, where, count, dst, op(), src);                                      \
    }                                                                                               \
    template <typename T, bool isSetMask = true, typename Lanes>                                    \
    void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, Lanes mask, uint8_t repeatTime, \
              const UnaryRepeatParams& repeatParams, Where where = Where()) {                       \
        ELEMENTS(Name, T);                                                                          \
        ascendc_host::enter(where);                                                                 \
        detail::on_repeats(#Name, where,                                                            \
                           detail::make_mask<isSetMask>(mask, detail::lanes_of<T>(), #Name, where), \
                           repeatTime, repeatParams, dst, op(), src);                               \
    }

ASCENDC_UNARY(Relu, detail::relu_op, ASCENDC_RELU)
ASCENDC_UNARY(Exp, detail::exp_op, ASCENDC_FLOATS)
ASCENDC_UNARY(Ln, detail::ln_op, ASCENDC_FLOATS)
ASCENDC_UNARY(Abs, detail::abs_op, ASCENDC_FLOATS)
ASCENDC_UNARY(Neg, detail::neg_op, ASCENDC_NEG)
ASCENDC_UNARY(Reciprocal, detail::reciprocal_op, ASCENDC_FLOATS)
ASCENDC_UNARY(Sqrt, detail::sqrt_op, ASCENDC_FLOATS)
ASCENDC_UNARY(Rsqrt, detail::rsqrt_op, ASCENDC_FLOATS)
ASCENDC_UNARY(Not, detail::not_op, ASCENDC_BITS)
#undef ASCENDC_UNARY

// With a choice of the algorithm, as the forms with a count have it.
#define ASCENDC_UNARY_BY(Name, op)                                                        \
    template <typename T, const Name##Config& config>                                     \
    void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const int32_t& count, \
              Where where = Where()) {                                                    \
        detail::on_count(#Name, where, count, dst, op(), src);                            \
    }
ASCENDC_UNARY_BY(Exp, detail::exp_op)
ASCENDC_UNARY_BY(Ln, detail::ln_op)
ASCENDC_UNARY_BY(Reciprocal, detail::reciprocal_op)
ASCENDC_UNARY_BY(Sqrt, detail::sqrt_op)
ASCENDC_UNARY_BY(Rsqrt, detail::rsqrt_op)
#undef ASCENDC_UNARY_BY

#define ASCENDC_BINARY(Name, op, COUNTED, MASKED)                                                           \
    template <typename T, typename Count, typename = detail::IfPointed<Count, int32_t>>                     \
    void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,            \
              const Count& count) {                                                                         \
        Name(dst, src0, src1, count, ascendc_host::current().where);                                        \
    }                                                                                                       \
    template <typename T>                                                                                   \
    void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,            \
              const int32_t& count, Where where = Where()) {                                                \
        COUNTED(Name, T);                                                                                   \
        detail::on_count(#Name, where, count, detail::as_counted<op>(dst), op(),                            \
                         detail::as_counted<op>(src0), detail::as_counted<op>(src1));                       \
    }                                                                                                       \
    template <typename T, bool isSetMask = true, typename Mask,                                             \
              typename = detail::IfPointed<Mask, uint64_t>>                                                 \
    void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1, Mask mask, \
              uint8_t repeatTime, const BinaryRepeatParams& repeatParams) {                                 \
        Name<T, isSetMask>(dst, src0, src1, mask, repeatTime, repeatParams, ascendc_host::current().where); \
    }                                                                                                       \
    template <typename T, bool isSetMask = true>                                                            \
    void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,            \
              uint64_t mask, uint8_t repeatTime, const BinaryRepeatParams& repeatParams,                    \
              Where where = Where()) {                                                                      \
        MASKED(Name, T);                                                                                    \
        ascendc_host::enter(where);                                                                         \
        detail::on_repeats(#Name, where,                                                                    \
                           detail::make_mask<isSetMask>(mask, detail::lanes_of<T>(), #Name, where),         \
                           repeatTime, repeatParams, dst, op(), src0, src1);                                \
    }                                                                                                       \
    template <typename T, bool isSetMask = true>                                                            \
    void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,            \
              const uint64_t mask[], uint8_t repeatTime, const BinaryRepeatParams& repeatParams,            \
              Where where = Where()) {                                                                      \
        MASKED(Name, T);                                                                                    \
        ascendc_host::enter(where);                                                                         \
        detail::on_repeats(#Name, where,                                                                    \
                           detail::make_mask<isSetMask>(mask, detail::lanes_of<T>(), #Name, where),         \
                           repeatTime, repeatParams, dst, op(), src0, src1);                                \
    }

ASCENDC_BINARY(Add, detail::add_op, ASCENDC_NUMBERS, ASCENDC_NUMBERS)
ASCENDC_BINARY(Sub, detail::sub_op, ASCENDC_NUMBERS, ASCENDC_NUMBERS)
ASCENDC_BINARY(Mul, detail::mul_op, ASCENDC_NUMBERS, ASCENDC_NUMBERS)
ASCENDC_BINARY(Div, detail::div_op, ASCENDC_FLOATS, ASCENDC_FLOATS)
ASCENDC_BINARY(Max, detail::max_op, ASCENDC_NUMBERS, ASCENDC_NUMBERS)
ASCENDC_BINARY(Min, detail::min_op, ASCENDC_NUMBERS, ASCENDC_NUMBERS)
ASCENDC_BINARY(And, detail::and_op, ASCENDC_INTEGERS, ASCENDC_BITS)
ASCENDC_BINARY(Or, detail::or_op, ASCENDC_INTEGERS, ASCENDC_BITS)
ASCENDC_BINARY(AddRelu, detail::add_relu_op, ASCENDC_SHORTS, ASCENDC_SHORTS)
ASCENDC_BINARY(SubRelu, detail::sub_relu_op, ASCENDC_SHORTS, ASCENDC_SHORTS)
#undef ASCENDC_BINARY

template <typename T, const DivConfig& config>
void Div(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,
         const int32_t& count, Where where = Where()) {
    detail::on_count("Div", where, count, dst, detail::div_op(), src0, src1);
}

// dst = src0 + src1 and its like, over as many elements as dst has.
#define ASCENDC_WHOLE_TENSOR(Name, symbol, op)                                                       \
    namespace detail {                                                                               \
    template <typename T>                                                                            \
    struct Whole##Name : WholeTensorOperation {                                                      \
        const LocalTensor<T>&src0, &src1;                                                            \
        Whole##Name(const LocalTensor<T>& a, const LocalTensor<T>& b) : src0(a), src1(b) {}          \
        void store(const LocalTensor<T>& dst) const { Name(dst, src0, src1, whole<op>(dst)); }       \
    };                                                                                               \
    }                                                                                                \
    template <typename T>                                                                            \
    detail::Whole##Name<T> operator symbol(const LocalTensor<T>& src0, const LocalTensor<T>& src1) { \
        return {src0, src1};                                                                         \
    }
ASCENDC_WHOLE_TENSOR(Add, +, add_op)
ASCENDC_WHOLE_TENSOR(Sub, -, sub_op)
ASCENDC_WHOLE_TENSOR(Mul, *, mul_op)
ASCENDC_WHOLE_TENSOR(Div, /, div_op)
ASCENDC_WHOLE_TENSOR(And, &, and_op)
ASCENDC_WHOLE_TENSOR(Or, |, or_op)
#undef ASCENDC_WHOLE_TENSOR

// The scalar may be of another arithmetic type than the tensor: `S` is converted to the element type, as the
// device does.
#define ASCENDC_SCALAR(Name, op, ELEMENTS)                                                                \
    template <typename T, bool isSetMask = true, typename Count,                                          \
              typename = detail::IfPointed<Count, int32_t>>                                               \
    void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const detail::Same<T>& scalarValue,   \
              const Count& count) {                                                                       \
        Name<T, isSetMask>(dst, src, scalarValue, count, ascendc_host::current().where);                  \
    }                                                                                                     \
    template <typename T, bool isSetMask = true>                                                          \
    void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const detail::Same<T>& scalarValue,   \
              const int32_t& count, Where where = Where()) {                                              \
        if constexpr (detail::by_registers<isSetMask>)                                                    \
            return Name<T, false>(dst, src, scalarValue, MASK_PLACEHOLDER, 1, {1, 1, 8, 8}, where);       \
        ELEMENTS(Name, T);                                                                                \
        const detail::Wide<T> scalar = scalarValue;                                                       \
        detail::on_count(                                                                                 \
            #Name, where, count, dst, [scalar](detail::Wide<T> a) { return op()(scalar, a); }, src);      \
    }                                                                                                     \
    template <typename T, bool isSetMask = true, typename Lanes>                                          \
    void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const detail::Same<T>& scalarValue,   \
              Lanes mask, uint8_t repeatTime, const UnaryRepeatParams& repeatParams,                      \
              Where where = Where()) {                                                                    \
        ascendc_host::enter(where);                                                                       \
        ELEMENTS(Name, T);                                                                                \
        const detail::Wide<T> scalar = scalarValue;                                                       \
        detail::on_repeats(                                                                               \
            #Name, where, detail::make_mask<isSetMask>(mask, detail::lanes_of<T>(), #Name, where),        \
            repeatTime, repeatParams, dst, [scalar](detail::Wide<T> a) { return op()(scalar, a); }, src); \
    }

namespace detail {
// With isSetMask = false the count says nothing: mode and mask are those of SetMaskCount and SetVectorMask.
template <bool isSetMask>
constexpr bool by_registers = !isSetMask && __NPU_ARCH__ != 3510;
// Keeps an argument out of template argument deduction.
template <typename T>
struct SameAs {
    using type = T;
};
template <typename T>
using Same = typename SameAs<T>::type;

template <typename T>
void require_distance(const char* api, int64_t distance, const Where& where) {
    constexpr int64_t most = __NPU_ARCH__ == 3510 ? std::numeric_limits<int64_t>::max() : 8 * sizeof(T);
    if (distance < 0 || distance > most)
        ascendc_host::fail(
            ascendc_host::current(), where,
            ascendc_host::format("%s: scalarValue %lld; valid: 0 to %lld, the bits of an element", api,
                                 static_cast<long long>(distance), static_cast<long long>(most)));
}
}  // namespace detail

ASCENDC_SCALAR(Adds, detail::add_op, ASCENDC_NUMBERS)
ASCENDC_SCALAR(Muls, detail::mul_op, ASCENDC_NUMBERS)
ASCENDC_SCALAR(Maxs, detail::max_op, ASCENDC_NUMBERS)
ASCENDC_SCALAR(Mins, detail::min_op, ASCENDC_NUMBERS)
ASCENDC_SCALAR(LeakyRelu, detail::leaky_relu_op, ASCENDC_FLOATS)
#define ASCENDC_SHIFTS(Name, T) \
    ASCENDC_INTEGERS(Name, T);  \
    detail::require_distance<T>(#Name, static_cast<int64_t>(scalarValue), where)
ASCENDC_SCALAR(ShiftLeft, detail::shift_left_op, ASCENDC_SHIFTS)
ASCENDC_SCALAR(Subs, detail::sub_scalar_op, ASCENDC_SUBS)
ASCENDC_SCALAR(Divs, detail::div_scalar_op, ASCENDC_DIVS)
ASCENDC_SCALAR(Ands, detail::and_op, ASCENDC_BITS_OF_SCALAR)
ASCENDC_SCALAR(Ors, detail::or_op, ASCENDC_BITS_OF_SCALAR)
#undef ASCENDC_SCALAR

// --- shifts
// ----------------------------------------------------------------------------------------------------------

namespace detail {
// To the right with half of the last bit shifted out added first, when rounding is asked for.
template <typename T>
auto shift_right(int64_t distance, bool round) {
    return [distance, round](T a) {
        if (distance >= int64_t(sizeof(T) * 8)) return a < T(0) ? T(-1) : T(0);
        const T shifted = static_cast<T>(a >> distance);
        return static_cast<T>(shifted + ((round && distance > 0) ? ((a >> (distance - 1)) & 1) : 0));
    };
}
}  // namespace detail

template <typename T, bool isSetMask = true>
void ShiftRight(const LocalTensor<T>& dst, const LocalTensor<T>& src, const detail::Same<T>& scalarValue,
                const int32_t& count, Where where = Where()) {
    if constexpr (detail::by_registers<isSetMask>)
        return ShiftRight<T, false>(dst, src, scalarValue, MASK_PLACEHOLDER, 1, {1, 1, 8, 8}, false, where);
    ASCENDC_SHIFTS(ShiftRight, T);
    detail::on_count("ShiftRight", where, count, dst, detail::shift_right<T>(int64_t(scalarValue), false),
                     src);
}
template <typename T, bool isSetMask = true, typename Lanes>
void ShiftRight(const LocalTensor<T>& dst, const LocalTensor<T>& src, const detail::Same<T>& scalarValue,
                Lanes mask, uint8_t repeatTime, const UnaryRepeatParams& repeatParams, bool roundEn = false,
                Where where = Where()) {
    ascendc_host::enter(where);
    ASCENDC_SHIFTS(ShiftRight, T);
    detail::on_repeats(
        "ShiftRight", where, detail::make_mask<isSetMask>(mask, detail::lanes_of<T>(), "ShiftRight", where),
        repeatTime, repeatParams, dst, detail::shift_right<T>(int64_t(scalarValue), roundEn), src);
}

// --- with the destination as a source, or with two element types
// -----------------------------------------------------

namespace detail {
struct mul_add_dst_op {  // dst += src0 * src1
    template <typename S, typename T>
    T operator()(S a, S b, T c) const {
        return add_op()(mul_op()(static_cast<T>(a), static_cast<T>(b)), c);
    }
};
struct fused_mul_add_op {  // dst = src0 * dst + src1
    template <typename T>
    T operator()(T a, T b, T c) const {
        return add_op()(mul_op()(a, c), b);
    }
};
struct fused_mul_add_relu_op {
    template <typename T>
    T operator()(T a, T b, T c) const {
        return relu_op()(fused_mul_add_op()(a, b, c));
    }
};
template <typename Op, typename T, bool counted>
constexpr void require_accumulated() {
    constexpr bool takes = is_one_of<T, half, float> || (counted && is_one_of<T, int64_t, uint64_t>);
    static_assert(__NPU_ARCH__ != 3510 || takes || !std::is_same<Op, fused_mul_add_relu_op>::value,
                  "MulAddRelu is for half and float, and by a count for int64_t and uint64_t");
}
}  // namespace detail

// What follows the sources' type is added to the template: only MulAddDst has another type for its sources.
#define ASCENDC_ACCUMULATE(Name, op, U, ...)                                                                 \
    template <typename T __VA_ARGS__>                                                                        \
    void Name(const LocalTensor<T>& dst, const LocalTensor<U>& src0, const LocalTensor<U>& src1,             \
              const int32_t& count, Where where = Where()) {                                                 \
        ASCENDC_FLOATS(Name, T);                                                                             \
        detail::require_accumulated<op, T, true>();                                                          \
        detail::on_count(#Name, where, count, dst, op(), src0, src1, dst);                                   \
    }                                                                                                        \
    template <typename T __VA_ARGS__, bool isSetMask = true, typename Lanes>                                 \
    void Name(const LocalTensor<T>& dst, const LocalTensor<U>& src0, const LocalTensor<U>& src1, Lanes mask, \
              uint8_t repeatTime, const BinaryRepeatParams& repeatParams, Where where = Where()) {           \
        ASCENDC_FLOATS(Name, T);                                                                             \
        detail::require_accumulated<op, T, false>();                                                         \
        ascendc_host::enter(where);                                                                          \
        detail::on_repeats_with_dst(                                                                         \
            #Name, where, detail::make_mask<isSetMask>(mask, detail::lanes_of<T, U>(), #Name, where),        \
            repeatTime, repeatParams, dst, op(), src0, src1);                                                \
    }

ASCENDC_ACCUMULATE(MulAddDst, detail::mul_add_dst_op, U, , typename U = T)
ASCENDC_ACCUMULATE(FusedMulAdd, detail::fused_mul_add_op, T)
ASCENDC_ACCUMULATE(MulAddRelu, detail::fused_mul_add_relu_op, T)
ASCENDC_ACCUMULATE(FusedMulAddRelu, detail::fused_mul_add_relu_op, T)  // as it was called at first
#undef ASCENDC_ACCUMULATE

namespace detail {
// dst = scalar * src + dst
template <typename T, typename U>
auto axpy(U scalar) {
    const Wide<T> factor = static_cast<Wide<T>>(scalar);
    return [factor](Wide<U> a, Wide<T> c) { return add_op()(mul_op()(factor, static_cast<Wide<T>>(a)), c); };
}
template <typename T, typename U>
void axpy_repeats(const LocalTensor<T>& dst, const LocalTensor<U>& src, U scalar, const Mask& mask,
                  uint32_t repeats, const UnaryRepeatParams& p, const Where& where) {
    constexpr uint32_t lanes = lanes_of<T, U>();
    repeats = mask.repeats(repeats, lanes);
    const Operand<T> result(dst, {p.dstBlkStride, p.dstRepStride}, mask, repeats, lanes, "Axpy", "dst",
                            where);
    const Operand<U> from(src, {p.srcBlkStride, p.srcRepStride}, mask, repeats, lanes, "Axpy", "src", where);
    require_order("Axpy", result, from, mask, repeats, lanes, where);
    repeated(result, mask, repeats, axpy<T, U>(scalar), from, result);
}
}  // namespace detail

template <typename T, typename U>
void Axpy(const LocalTensor<T>& dst, const LocalTensor<U>& src, const detail::Same<U>& scalarValue,
          const int32_t& count, Where where = Where()) {
    ASCENDC_FLOATS(Axpy, T);
    detail::on_count("Axpy", where, count, dst, detail::axpy<T, U>(scalarValue), src, dst);
}
template <typename T, typename U>
void Axpy(const LocalTensor<T>& dst, const LocalTensor<U>& src, const detail::Same<U> scalarValue,
          const LocalTensor<uint8_t>&, const uint32_t calCount, Where where = Where()) {
    Axpy(dst, src, scalarValue, static_cast<int32_t>(calCount), where);
}
template <typename T, typename U, bool isSetMask = true, typename Lanes>
void Axpy(const LocalTensor<T>& dst, const LocalTensor<U>& src, const detail::Same<U>& scalarValue,
          Lanes mask, uint8_t repeatTime, const UnaryRepeatParams& repeatParams, Where where = Where()) {
    ASCENDC_FLOATS(Axpy, T);
    ascendc_host::enter(where);
    detail::axpy_repeats(dst, src, scalarValue,
                         detail::make_mask<isSetMask>(mask, detail::lanes_of<T, U>(), "Axpy", where),
                         repeatTime, repeatParams, where);
}

// --- moving and filling
// ----------------------------------------------------------------------------------------------

namespace detail {
struct same_op {
    template <typename T>
    T operator()(T a) const {
        return a;
    }
};
// Bytes are moved as they are: a NaN keeps its payload, whatever the element type.
template <size_t size>
struct BitsOf;
template <>
struct BitsOf<1> {
    using type = uint8_t;
};
template <>
struct BitsOf<2> {
    using type = uint16_t;
};
template <>
struct BitsOf<4> {
    using type = uint32_t;
};
template <>
struct BitsOf<8> {
    using type = uint64_t;
};
template <typename T>
using Bits = typename BitsOf<sizeof(T)>::type;
template <typename T>
Bits<T> bits_of(T value) {
    ascendc_host::require_whole_bytes<T>();
    Bits<T> bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}
// Copy in counter mode is like no other instruction: each of its repeats has `count` elements, in as many
// blocks as they fill.
template <typename T>
void copy_counted(const LocalTensor<T>& dst, const LocalTensor<T>& src, uint64_t count, uint32_t repeats,
                  const CopyRepeatParams& p, const Where& where) {
    if (count == 0 || repeats == 0) return;
    constexpr uint64_t per_block = ONE_BLK_SIZE / sizeof(T);
    const uint64_t last = (count - 1) / per_block, rest = count - last * per_block;
    const auto end = [&](uint64_t stride, uint64_t repeat) {
        return ((repeats - 1) * repeat + last * stride) * ONE_BLK_SIZE + rest * sizeof(T);
    };
    const T* from = vector_operand(src, end(p.srcStride, p.srcRepeatSize), "Copy", "src", where);
    T* to = vector_operand(dst, end(p.dstStride, p.dstRepeatSize), "Copy", "dst", where);
    for (uint64_t repeat = 0; repeat < repeats; ++repeat)
        for (uint64_t block = 0; block <= last; ++block)
            std::memmove(to + (repeat * p.dstRepeatSize + block * p.dstStride) * per_block,
                         from + (repeat * p.srcRepeatSize + block * p.srcStride) * per_block,
                         (block == last ? rest : per_block) * sizeof(T));
}
template <typename T>
void copy_repeats(const LocalTensor<T>& dst, const LocalTensor<T>& src, const Mask& mask, uint32_t repeats,
                  const CopyRepeatParams& p, const Where& where) {
    using B = Bits<T>;
    if (mask.counter) return copy_counted(dst, src, mask.count, repeats, p, where);
    constexpr uint32_t lanes = lanes_of<T>();
    const Operand<B> to(dst.template ReinterpretCast<B>(), {p.dstStride, p.dstRepeatSize}, mask, repeats,
                        lanes, "Copy", "dst", where);
    const Operand<B> from(src.template ReinterpretCast<B>(), {p.srcStride, p.srcRepeatSize}, mask, repeats,
                          lanes, "Copy", "src", where);
    require_order("Copy", to, from, mask, repeats, lanes, where);
    repeated(to, mask, repeats, same_op(), from);
}
template <typename T>
void duplicate_repeats(const LocalTensor<T>& dst, T value, const Mask& mask, uint32_t repeats, uint32_t block,
                       uint32_t repeat, const Where& where) {
    using B = Bits<T>;
    constexpr uint32_t lanes = lanes_of<T>();
    repeats = mask.repeats(repeats, lanes);
    const B bits = bits_of(value);
    repeated(Operand<B>(dst.template ReinterpretCast<B>(), {block, repeat}, mask, repeats, lanes, "Duplicate",
                        "dst", where),
             mask, repeats, [bits] { return bits; });
}
}  // namespace detail

template <typename T, bool isSetMask = true, typename Lanes>
void Copy(const LocalTensor<T>& dst, const LocalTensor<T>& src, Lanes mask, uint8_t repeatTime,
          const CopyRepeatParams& repeatParams, Where where = Where()) {
    ascendc_host::enter(where);
    ASCENDC_WORDS_OF_CALL(Copy, T, where);
    detail::copy_repeats(dst, src, detail::make_mask<isSetMask>(mask, detail::lanes_of<T>(), "Copy", where),
                         repeatTime, repeatParams, where);
}
#if __NPU_ARCH__ == 3510
template <typename T, bool isSetMask = true>
void Copy(const LocalTensor<T>& dst, const LocalTensor<T>& src, const uint32_t count, Where where = Where()) {
    using B = detail::Bits<T>;
    detail::on_count("Copy", where, count, dst.template ReinterpretCast<B>(), detail::same_op(),
                     src.template ReinterpretCast<B>());
}
#endif
template <typename T>
void Duplicate(const LocalTensor<T>& dst, const detail::Same<T>& scalarValue, const int32_t& count,
               Where where = Where()) {
    ASCENDC_WORDS(Duplicate, T);
    using B = detail::Bits<T>;
    const B bits = detail::bits_of<T>(scalarValue);
    detail::on_count("Duplicate", where, count, dst.template ReinterpretCast<B>(), [bits] { return bits; });
}
template <typename T, bool isSetMask = true, typename Lanes>
void Duplicate(const LocalTensor<T>& dst, const detail::Same<T>& scalarValue, Lanes mask, uint8_t repeatTime,
               uint16_t dstBlockStride, uint8_t dstRepeatStride, Where where = Where()) {
    ASCENDC_WORDS(Duplicate, T);
    ascendc_host::enter(where);
    detail::duplicate_repeats<T>(
        dst, scalarValue, detail::make_mask<isSetMask>(mask, detail::lanes_of<T>(), "Duplicate", where),
        repeatTime, dstBlockStride, dstRepeatStride, where);
}

}  // namespace AscendC

#endif  // ASCENDC_HOST_BASIC_API_ARITHMETIC_H
