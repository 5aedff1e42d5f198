// Arithmetic, logic, comparison and selection on registers.
#ifndef ASCENDC_HOST_REG_COMPUTE_CALCULATE_H
#define ASCENDC_HOST_REG_COMPUTE_CALCULATE_H

#include "ascendc_host/internal/algorithms.h"
#include "ascendc_host/reg_compute/types.h"

namespace AscendC {
namespace Reg {

// How exactly the device computes; the host rounds the exact value once.
struct ExpSpecificMode {
    MaskMergeMode mrgMode = MaskMergeMode::ZEROING;
    ExpAlgo algo = ExpAlgo::INTRINSIC;
};
struct LnSpecificMode {
    MaskMergeMode mrgMode = MaskMergeMode::ZEROING;
    LnAlgo algo = LnAlgo::INTRINSIC;
};
struct LogSpecificMode {
    MaskMergeMode mrgMode = MaskMergeMode::ZEROING;
    LogAlgo algo = LogAlgo::INTRINSIC;
};
struct SqrtSpecificMode {
    MaskMergeMode mrgMode = MaskMergeMode::ZEROING;
    bool precisionMode = false;
    SqrtAlgo algo = SqrtAlgo::INTRINSIC;
};
struct DivSpecificMode {
    MaskMergeMode mrgMode = MaskMergeMode::ZEROING;
    bool precisionMode = false;
    DivAlgo algo = DivAlgo::INTRINSIC;
};

namespace detail {

namespace lane = AscendC::detail;

// Registers of equal elements, computed on in the wide type and rounded once.
template <typename F, typename U, typename... S>
void compute(const char* api, const Where& where, U& dst, const MaskReg& mask, MaskMergeMode mode, const F& f,
             const S&... sources) {
    (check_read(sources, api, "a source", where), ...);
    Result<U>(dst, mask, mode, api, where).each([&](uint32_t i) {
        using T = Element<U>;
        return static_cast<T>(static_cast<Wide<T>>(f(static_cast<Wide<Element<S>>>(sources.get(i))...)));
    });
}

struct log2_op {
    template <typename T>
    T operator()(T a) const {
        return std::log2(a);
    }
};
struct log10_op {
    template <typename T>
    T operator()(T a) const {
        return std::log10(a);
    }
};
struct abs_sub_op {
    template <typename T>
    T operator()(T a, T b) const {
        return lane::abs_op()(lane::sub_op()(a, b));
    }
};
struct prelu_op {
    template <typename T>
    T operator()(T a, T b) const {
        return a > T(0) ? a : a * b;
    }
};
// One rounding for floating point numbers; integers wrap.
struct multiply_add_op {
    template <typename T>
    T operator()(T a, T b, T c) const {
        if constexpr (std::is_floating_point<T>::value)
            return std::fma(a, b, c);
        else
            return lane::add_op()(lane::mul_op()(a, b), c);
    }
};

template <CMPMODE mode, typename T>
bool compare(T a, T b) {
    switch (mode) {
        case CMPMODE::LT:
            return a < b;
        case CMPMODE::GT:
            return a > b;
        case CMPMODE::EQ:
            return a == b;
        case CMPMODE::LE:
            return a <= b;
        case CMPMODE::GE:
            return a >= b;
        default:
            return a != b;
    }
}
template <CMPMODE mode, typename U, typename F>
void compare_lanes(MaskReg& dst, const U& src, const MaskReg& mask, const F& other, const char* api,
                   const Where& where) {
    check_read(src, api, "srcReg", where);
    check_read(mask, api, where);
    using W = Wide<Element<U>>;
    MaskReg result;
    for (uint32_t i = 0; i < U::lanes; ++i) {
        const uint32_t bit = i * U::mask_bits;
        result.set(bit, mask.bit(bit) && compare<mode>(static_cast<W>(src.get(i)), static_cast<W>(other(i))));
    }
    result.written = true;
    dst = result;
}

}  // namespace detail

// The names of the API cannot be template arguments, so each family is written once, as a macro.
#define ASCENDC_REG_UNARY(Name, op, Mode)                                                           \
    template <typename T = DefaultType, Mode mode = MaskMergeMode::ZEROING, typename U,             \
              detail::IfRegisters<U> = 0>                                                           \
    void Name(U& dstReg, U& srcReg, const MaskReg& mask, Where where = Where()) {                   \
        static_assert(detail::agrees<T, U>, #Name ": the registers have elements of another size"); \
        detail::compute(#Name, where, dstReg, mask, detail::merge_mode<mode>(), op(), srcReg);      \
    }
ASCENDC_REG_UNARY(Abs, detail::lane::abs_op, MaskMergeMode)
ASCENDC_REG_UNARY(Neg, detail::lane::neg_op, MaskMergeMode)
ASCENDC_REG_UNARY(Relu, detail::lane::relu_op, MaskMergeMode)
ASCENDC_REG_UNARY(Exp, detail::lane::exp_op, auto)
ASCENDC_REG_UNARY(Ln, detail::lane::ln_op, auto)
ASCENDC_REG_UNARY(Log, detail::lane::ln_op, auto)
ASCENDC_REG_UNARY(Log2, detail::log2_op, auto)
ASCENDC_REG_UNARY(Log10, detail::log10_op, auto)
ASCENDC_REG_UNARY(Sqrt, detail::lane::sqrt_op, auto)
#undef ASCENDC_REG_UNARY

#define ASCENDC_REG_BINARY(Name, op, Mode)                                                               \
    template <typename T = DefaultType, Mode mode = MaskMergeMode::ZEROING, typename U,                  \
              detail::IfRegisters<U> = 0>                                                                \
    void Name(U& dstReg, U& srcReg0, U& srcReg1, const MaskReg& mask, Where where = Where()) {           \
        static_assert(detail::agrees<T, U>, #Name ": the registers have elements of another size");      \
        detail::compute(#Name, where, dstReg, mask, detail::merge_mode<mode>(), op(), srcReg0, srcReg1); \
    }
ASCENDC_REG_BINARY(Add, detail::lane::add_op, MaskMergeMode)
ASCENDC_REG_BINARY(Sub, detail::lane::sub_op, MaskMergeMode)
ASCENDC_REG_BINARY(Mul, detail::lane::mul_op, MaskMergeMode)
ASCENDC_REG_BINARY(Div, detail::lane::div_op, auto)
ASCENDC_REG_BINARY(Max, detail::lane::max_op, MaskMergeMode)
ASCENDC_REG_BINARY(Min, detail::lane::min_op, MaskMergeMode)
ASCENDC_REG_BINARY(AbsSub, detail::abs_sub_op, MaskMergeMode)
ASCENDC_REG_BINARY(Prelu, detail::prelu_op, MaskMergeMode)
#undef ASCENDC_REG_BINARY

// Logic works on the bits, whatever they mean.
#define ASCENDC_REG_LOGIC(Name, op)                                                              \
    template <typename T = DefaultType, MaskMergeMode mode = MaskMergeMode::ZEROING, typename U, \
              detail::IfRegisters<U> = 0>                                                        \
    void Name(U& dstReg, U& srcReg0, U& srcReg1, const MaskReg& mask, Where where = Where()) {   \
        detail::check_read(srcReg0, #Name, "srcReg0", where);                                    \
        detail::check_read(srcReg1, #Name, "srcReg1", where);                                    \
        using E = detail::Element<U>;                                                            \
        detail::Result<U>(dstReg, mask, mode, #Name, where).each([&](uint32_t lane) {            \
            return detail::of_bits<E>(                                                           \
                op()(detail::bits_of(srcReg0.get(lane)), detail::bits_of(srcReg1.get(lane))));   \
        });                                                                                      \
    }
namespace detail {

template <size_t size>
using Bits = std::conditional_t<
    size == 1, uint8_t,
    std::conditional_t<size == 2, uint16_t, std::conditional_t<size == 4, uint32_t, uint64_t>>>;
template <typename T>
Bits<sizeof(T)> bits_of(T value) {
    Bits<sizeof(T)> bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}
template <typename T>
T of_bits(Bits<sizeof(T)> bits) {
    T value;
    std::memcpy(static_cast<void*>(&value), &bits, sizeof value);
    return value;
}

}  // namespace detail
ASCENDC_REG_LOGIC(And, detail::lane::and_op)
ASCENDC_REG_LOGIC(Or, detail::lane::or_op)
ASCENDC_REG_LOGIC(Xor, detail::lane::xor_op)
#undef ASCENDC_REG_LOGIC
template <typename T = DefaultType, MaskMergeMode mode = MaskMergeMode::ZEROING, typename U,
          detail::IfRegisters<U> = 0>
void Not(U& dstReg, U& srcReg, const MaskReg& mask, Where where = Where()) {
    detail::check_read(srcReg, "Not", "srcReg", where);
    using E = detail::Element<U>;
    detail::Result<U>(dstReg, mask, mode, "Not", where).each([&](uint32_t lane) {
        return detail::of_bits<E>(detail::lane::not_op()(detail::bits_of(srcReg.get(lane))));
    });
}

// With a scalar, which the functions of one element see first.
#define ASCENDC_REG_SCALAR(Name, op)                                                                         \
    template <typename T = DefaultType, typename S, MaskMergeMode mode = MaskMergeMode::ZEROING, typename U, \
              detail::IfRegisters<U> = 0>                                                                    \
    void Name(U& dstReg, U& srcReg, S scalarValue, const MaskReg& mask, Where where = Where()) {             \
        static_assert(detail::agrees<T, U>, #Name ": the registers have elements of another size");          \
        using E = detail::Element<U>;                                                                        \
        const auto scalar = static_cast<detail::Wide<E>>(static_cast<E>(scalarValue));                       \
        detail::compute(                                                                                     \
            #Name, where, dstReg, mask, mode, [&](auto value) { return op()(scalar, value); }, srcReg);      \
    }
ASCENDC_REG_SCALAR(Adds, detail::lane::add_op)
ASCENDC_REG_SCALAR(Muls, detail::lane::mul_op)
ASCENDC_REG_SCALAR(Maxs, detail::lane::max_op)
ASCENDC_REG_SCALAR(Mins, detail::lane::min_op)
ASCENDC_REG_SCALAR(LeakyRelu, detail::lane::leaky_relu_op)
#undef ASCENDC_REG_SCALAR
#define ASCENDC_REG_SHIFT(Name, ByRegister, op)                                                              \
    template <typename T = DefaultType, typename S, MaskMergeMode mode = MaskMergeMode::ZEROING, typename U, \
              detail::IfRegisters<U> = 0>                                                                    \
    void Name(U& dstReg, U& srcReg, S scalarValue, const MaskReg& mask, Where where = Where()) {             \
        if (scalarValue < 0)                                                                                 \
            detail::refuse(#Name, where,                                                                     \
                           detail::format("it shifts by %lld", static_cast<long long>(scalarValue)));        \
        detail::compute(                                                                                     \
            #Name, where, dstReg, mask, mode, [&](auto value) { return op()(scalarValue, value); }, srcReg); \
    }                                                                                                        \
    template <typename T = DefaultType, typename S = DefaultType,                                            \
              MaskMergeMode mode = MaskMergeMode::ZEROING, typename U, typename V,                           \
              detail::IfRegisters<U, V> = 0>                                                                 \
    void ByRegister(U& dstReg, U& srcReg0, V& srcReg1, const MaskReg& mask, Where where = Where()) {         \
        detail::compute(                                                                                     \
            #ByRegister, where, dstReg, mask, mode,                                                          \
            [&](auto value, auto distance) { return op()(distance, value); }, srcReg0, srcReg1);             \
    }
ASCENDC_REG_SHIFT(ShiftLefts, ShiftLeft, detail::lane::shift_left_op)
ASCENDC_REG_SHIFT(ShiftRights, ShiftRight, detail::lane::shift_right_op)
#undef ASCENDC_REG_SHIFT

// --- fused
// --------------------------------------------------------------------------------------------------------

// dst = src0 * src1 + dst.
template <typename T = DefaultType, MaskMergeMode mode = MaskMergeMode::ZEROING, typename U,
          detail::IfRegisters<U> = 0>
void MulAddDst(U& dstReg, U& srcReg0, U& srcReg1, const MaskReg& mask, Where where = Where()) {
    detail::compute("MulAddDst", where, dstReg, mask, mode, detail::multiply_add_op(), srcReg0, srcReg1,
                    dstReg);
}
// dst = dst * src0 + src1.
template <typename T = DefaultType, MaskMergeMode mode = MaskMergeMode::ZEROING, typename U,
          detail::IfRegisters<U> = 0>
void MulDstAdd(U& dstReg, U& srcReg0, U& srcReg1, const MaskReg& mask, Where where = Where()) {
    detail::compute("MulDstAdd", where, dstReg, mask, mode, detail::multiply_add_op(), dstReg, srcReg0,
                    srcReg1);
}
// The names that these had before.
#define ASCENDC_REG_OLD_NAME(Old, Name)                                                          \
    template <typename T = DefaultType, MaskMergeMode mode = MaskMergeMode::ZEROING, typename U, \
              detail::IfRegisters<U> = 0>                                                        \
    void Old(U& dstReg, U& srcReg0, U& srcReg1, const MaskReg& mask, Where where = Where()) {    \
        Name<T, mode>(dstReg, srcReg0, srcReg1, mask, where);                                    \
    }
ASCENDC_REG_OLD_NAME(Mula, MulAddDst)
ASCENDC_REG_OLD_NAME(FusedMulDstAdd, MulDstAdd)
#undef ASCENDC_REG_OLD_NAME
// dst = scalar * src + dst.
template <typename T = DefaultType, typename S, MaskMergeMode mode = MaskMergeMode::ZEROING, typename U,
          detail::IfRegisters<U> = 0>
void Axpy(U& dstReg, U& srcReg, S scalarValue, const MaskReg& mask, Where where = Where()) {
    using E = detail::Element<U>;
    const auto scalar = static_cast<detail::Wide<E>>(static_cast<E>(scalarValue));
    detail::compute(
        "Axpy", where, dstReg, mask, mode,
        [&](auto value, auto sum) { return detail::multiply_add_op()(scalar, value, sum); }, srcReg, dstReg);
}
// dst = exp(src0 - src1), in float; of halfs those in the even places or the odd ones.
template <typename T = DefaultType, typename S = DefaultType, RegLayout layout = RegLayout::ZERO,
          MaskMergeMode mode = MaskMergeMode::ZEROING, typename U, typename V, detail::IfRegisters<U, V> = 0>
void ExpSub(U& dstReg, V& srcReg0, V& srcReg1, const MaskReg& mask, Where where = Where()) {
    static_assert(std::is_same<detail::Element<U>, float>::value, "ExpSub: dst has elements of float");
    detail::check_read(srcReg0, "ExpSub", "srcReg0", where);
    detail::check_read(srcReg1, "ExpSub", "srcReg1", where);
    detail::check_read(mask, "ExpSub", where);
    constexpr uint32_t step = V::lanes / U::lanes, first = step == 1 || layout == RegLayout::ZERO ? 0 : 1;
    U result;
    for (uint32_t lane = 0; lane < U::lanes; ++lane) {
        const uint32_t from = lane * step + first;
        const float difference =
            static_cast<float>(srcReg0.get(from)) - static_cast<float>(srcReg1.get(from));
        result.set(lane, mask.bit(from * V::mask_bits) ? std::exp(difference) : 0.0f);
    }
    result.written = true;
    dstReg = result;
}
// The products' low halves, and their high halves.
template <typename T = DefaultType, typename U, detail::IfRegisters<U> = 0>
void Mull(U& dstReg0, U& dstReg1, U& srcReg0, U& srcReg1, const MaskReg& mask, Where where = Where()) {
    using E = detail::Element<U>;
    static_assert(std::is_integral<E>::value && sizeof(E) == 4, "Mull: int32_t or uint32_t");
    using Product = std::conditional_t<std::is_signed<E>::value, int64_t, uint64_t>;
    detail::check_read(srcReg0, "Mull", "srcReg0", where);
    detail::check_read(srcReg1, "Mull", "srcReg1", where);
    const U a = srcReg0, b = srcReg1;
    const auto product = [&](uint32_t lane) { return static_cast<Product>(a.get(lane)) * b.get(lane); };
    constexpr auto mode = MaskMergeMode::ZEROING;
    detail::Result<U>(dstReg0, mask, mode, "Mull", where).each([&](uint32_t i) { return product(i); });
    detail::Result<U>(dstReg1, mask, mode, "Mull", where).each([&](uint32_t i) { return product(i) >> 32; });
}

namespace detail {

// a + b + carry; of a difference the carry says that nothing was borrowed.
template <bool subtract, typename U>
void with_carry(const char* api, const Where& where, MaskReg& carry, U& dst, const U& src0, const U& src1,
                const MaskReg* before, const MaskReg& mask) {
    using E = Element<U>;
    static_assert(std::is_integral<E>::value && sizeof(E) == 4, "with a carry: int32_t or uint32_t");
    check_read(src0, api, "srcReg0", where);
    check_read(src1, api, "srcReg1", where);
    check_read(mask, api, where);
    if (before != nullptr) check_read(*before, api, where);
    U result;
    MaskReg carries;
    for (uint32_t lane = 0; lane < U::lanes; ++lane) {
        const uint32_t bit = lane * U::mask_bits, b = bits_of(src1.get(lane));
        const uint64_t in = before != nullptr ? before->bit(bit) : subtract;
        const uint64_t sum = uint64_t{bits_of(src0.get(lane))} + (subtract ? ~b : b) + in;
        result.set(lane, mask.bit(bit) ? static_cast<E>(static_cast<uint32_t>(sum)) : E(0));
        carries.set(bit, mask.bit(bit) && (sum >> 32) != 0);
    }
    result.written = carries.written = true;
    dst = result;
    carry = carries;
}

}  // namespace detail

template <typename T = DefaultType, typename U, detail::IfRegisters<U> = 0>
void Add(MaskReg& carry, U& dstReg, U& srcReg0, U& srcReg1, const MaskReg& mask, Where where = Where()) {
    detail::with_carry<false>("Add", where, carry, dstReg, srcReg0, srcReg1, nullptr, mask);
}
template <typename T = DefaultType, typename U, detail::IfRegisters<U> = 0>
void AddC(MaskReg& carry, U& dstReg, U& srcReg0, U& srcReg1, const MaskReg& carrySrc, const MaskReg& mask,
          Where where = Where()) {
    detail::with_carry<false>("AddC", where, carry, dstReg, srcReg0, srcReg1, &carrySrc, mask);
}
template <typename T = DefaultType, typename U, detail::IfRegisters<U> = 0>
void Sub(MaskReg& carry, U& dstReg, U& srcReg0, U& srcReg1, const MaskReg& mask, Where where = Where()) {
    detail::with_carry<true>("Sub", where, carry, dstReg, srcReg0, srcReg1, nullptr, mask);
}
template <typename T = DefaultType, typename U, detail::IfRegisters<U> = 0>
void SubC(MaskReg& carry, U& dstReg, U& srcReg0, U& srcReg1, const MaskReg& carrySrc, const MaskReg& mask,
          Where where = Where()) {
    detail::with_carry<true>("SubC", where, carry, dstReg, srcReg0, srcReg1, &carrySrc, mask);
}

// --- comparison and selection
// ---------------------------------------------------------------------------------------

template <typename T = DefaultType, CMPMODE mode = CMPMODE::EQ, typename U, detail::IfRegisters<U> = 0>
void Compare(MaskReg& dst, U& srcReg0, U& srcReg1, const MaskReg& mask, Where where = Where()) {
    detail::check_read(srcReg1, "Compare", "srcReg1", where);
    detail::compare_lanes<mode>(
        dst, srcReg0, mask, [&](uint32_t lane) { return srcReg1.get(lane); }, "Compare", where);
}
template <typename T = DefaultType, CMPMODE mode = CMPMODE::EQ, typename U, typename S,
          detail::IfRegisters<U> = 0>
void Compares(MaskReg& dst, U& srcReg, S scalarValue, const MaskReg& mask, Where where = Where()) {
    const auto scalar = static_cast<detail::Element<U>>(scalarValue);
    detail::compare_lanes<mode>(dst, srcReg, mask, [&](uint32_t) { return scalar; }, "Compares", where);
}
template <typename T = DefaultType, CMPMODE mode = CMPMODE::EQ, typename U, typename S,
          detail::IfRegisters<U> = 0>
void CompareScalar(MaskReg& dst, U& srcReg, S scalarValue, const MaskReg& mask, Where where = Where()) {
    Compares<T, mode>(dst, srcReg, scalarValue, mask, where);
}
// src0 where the mask is set, src1 elsewhere.
template <typename T = DefaultType, typename U, detail::IfRegisters<U> = 0>
void Select(U& dstReg, U& srcReg0, U& srcReg1, const MaskReg& mask, Where where = Where()) {
    detail::check_read(srcReg0, "Select", "srcReg0", where);
    detail::check_read(srcReg1, "Select", "srcReg1", where);
    detail::check_read(mask, "Select", where);
    U result = srcReg1;
    detail::Result<U>(result, mask, MaskMergeMode::MERGING, "Select", where).each([&](uint32_t lane) {
        return srcReg0.get(lane);
    });
    dstReg = result;
}

}  // namespace Reg
}  // namespace AscendC

#endif  // ASCENDC_HOST_REG_COMPUTE_CALCULATE_H
