// The instructions of the vector unit by the names that the device's compiler has for them, as kernels call
// them on addresses: under the mask that is set, with strides in blocks of 32 bytes. They follow the rules of
// the API, which is made of them.
#ifndef ASCENDC_HOST_INTERNAL_INSTRUCTIONS_H
#define ASCENDC_HOST_INTERNAL_INSTRUCTIONS_H

#include "ascendc_host/basic_api/reshape.h"
#include "ascendc_host/basic_api/sort.h"
#include "ascendc_host/internal/impl_functions.h"

// dav-3510 has vector registers in their place.
#if __NPU_ARCH__ != 3510

enum class Order_t : uint8_t { VALUE_INDEX = 0, INDEX_VALUE, ONLY_VALUE, ONLY_INDEX };
// Registers of eight addresses each.
enum ub_addr8_t { VA0 = 0, VA1, VA2, VA3, VA4, VA5, VA6, VA7 };

// --- masks and registers

inline void set_mask_norm() { AscendC::SetMaskNorm(); }
inline void set_mask_count() { AscendC::SetMaskCount(); }
inline void set_vector_mask(uint64_t high, uint64_t low) { AscendC::SetVectorMask<uint16_t>(high, low); }
inline int64_t get_acc_val(const ascendc_host::Where& where = ascendc_host::Where()) {
    return AscendC::detail::reduced_sum("get_acc_val", where).bits;
}

// --- flags between cores

inline void wait_flag_dev(int64_t flag, const ascendc_host::Where& where = ascendc_host::Where()) {
    AscendC::CrossCoreWaitFlag(static_cast<uint16_t>(flag), where);
}
inline void set_ffts_base_addr(uint64_t) {}
// Bits 4 and 5 of the configuration are the mode, bits 8 to 11 the flag: see GetffstMsg.
inline void ffts_cross_core_sync(pipe_t, uint64_t config,
                                 const ascendc_host::Where& where = ascendc_host::Where()) {
    ascendc_host::enter(where);
    ascendc_host::set_cross_flag(static_cast<uint8_t>(config >> 4 & 3),
                                 static_cast<uint16_t>(config >> 8 & 15), where);
}

namespace AscendC {

inline uint16_t GetffstMsg(uint16_t mode, uint16_t flagId) {
    return static_cast<uint16_t>(1 + ((mode & 3) << 4) + ((flagId & 15) << 8));
}

namespace detail {

// An operand of an instruction.
template <typename T>
struct At {
    T* address;
    uint32_t block, repeat;
    const char* name;

    Operand<T> operand(const char* api, const Mask& mask, uint32_t repeats, uint32_t lanes,
                       const Where& where) const {
        return {local_at(address, api, name, where), {block, repeat}, mask, repeats, lanes, api, name, where};
    }
};
template <typename T, typename F, typename... S>
void instruction(const char* api, const Where& where, uint32_t repeats, bool sums, const F& op,
                 const At<T>& dst, const At<S>&... src) {
    constexpr uint32_t lanes = lanes_of<T, S...>();
    const Mask mask = register_mask();
    repeats = mask.repeats(repeats, lanes);
    const Operand<T> to = dst.operand(api, mask, repeats, lanes, where);
    const auto run = [&](const Operand<S>&... from) {
        uint32_t i = 0;
        (require_order(api, to, from, mask, repeats, lanes, where, sums && ++i == 2), ...);
        repeated(to, mask, repeats, op, from...);
    };
    run(src.operand(api, mask, repeats, lanes, where)...);
}
// The same with the destination as a last source.
template <typename T, typename F, typename... S>
void accumulating_instruction(const char* api, const Where& where, uint32_t repeats, const F& op,
                              const At<T>& dst, const At<S>&... src) {
    constexpr uint32_t lanes = lanes_of<T, S...>();
    const Mask mask = register_mask();
    repeats = mask.repeats(repeats, lanes);
    const Operand<T> to = dst.operand(api, mask, repeats, lanes, where);
    const auto run = [&](const Operand<S>&... from) {
        (require_order(api, to, from, mask, repeats, lanes, where), ...);
        repeated(to, mask, repeats, op, from..., to);
    };
    run(src.operand(api, mask, repeats, lanes, where)...);
}
}  // namespace detail
}  // namespace AscendC

// --- of one operand, of two, and with a number

#define ASCENDC_INSTRUCTION(name, op, ELEMENTS)                                            \
    template <typename T>                                                                  \
    void name(__ubuf__ T* dst, __ubuf__ T* src, uint8_t repeat, uint16_t dstBlockStride,   \
              uint16_t srcBlockStride, uint16_t dstRepeatStride, uint16_t srcRepeatStride, \
              const ascendc_host::Where& where = ascendc_host::Where()) {                  \
        ELEMENTS(name, T);                                                                 \
        AscendC::detail::instruction<T>(                                                   \
            #name, where, repeat, false, AscendC::detail::op(),                            \
            AscendC::detail::At<T>{dst, dstBlockStride, dstRepeatStride, "dst"},           \
            AscendC::detail::At<T>{src, srcBlockStride, srcRepeatStride, "src"});          \
    }
ASCENDC_INSTRUCTION(vabs, abs_op, ASCENDC_FLOATS)
ASCENDC_INSTRUCTION(vexp, exp_op, ASCENDC_FLOATS)
ASCENDC_INSTRUCTION(vln, ln_op, ASCENDC_FLOATS)
ASCENDC_INSTRUCTION(vnot, not_op, ASCENDC_BITS)
ASCENDC_INSTRUCTION(vrec, reciprocal_op, ASCENDC_FLOATS)
ASCENDC_INSTRUCTION(vrelu, relu_op, ASCENDC_RELU)
ASCENDC_INSTRUCTION(vrsqrt, rsqrt_op, ASCENDC_FLOATS)
ASCENDC_INSTRUCTION(vsqrt, sqrt_op, ASCENDC_FLOATS)
#undef ASCENDC_INSTRUCTION

#define ASCENDC_INSTRUCTION2(name, op, ELEMENTS)                                                           \
    template <typename T>                                                                                  \
    void name(__ubuf__ T* dst, __ubuf__ T* src0, __ubuf__ T* src1, uint8_t repeat, uint8_t dstBlockStride, \
              uint8_t src0BlockStride, uint8_t src1BlockStride, uint8_t dstRepeatStride,                   \
              uint8_t src0RepeatStride, uint8_t src1RepeatStride,                                          \
              const ascendc_host::Where& where = ascendc_host::Where()) {                                  \
        using Op = AscendC::detail::op;                                                                    \
        ELEMENTS(name, T);                                                                                 \
        AscendC::detail::instruction<T>(                                                                   \
            #name, where, repeat,                                                                          \
            AscendC::detail::accumulates<Op, T> && (dstRepeatStride == 0 || src1RepeatStride == 0), Op(),  \
            AscendC::detail::At<T>{dst, dstBlockStride, dstRepeatStride, "dst"},                           \
            AscendC::detail::At<T>{src0, src0BlockStride, src0RepeatStride, "src0"},                       \
            AscendC::detail::At<T>{src1, src1BlockStride, src1RepeatStride, "src1"});                      \
    }
ASCENDC_INSTRUCTION2(vadd, add_op, ASCENDC_NUMBERS)
ASCENDC_INSTRUCTION2(vaddrelu, add_relu_op, ASCENDC_SHORTS)
ASCENDC_INSTRUCTION2(vand, and_op, ASCENDC_BITS)
ASCENDC_INSTRUCTION2(vdiv, div_op, ASCENDC_FLOATS)
ASCENDC_INSTRUCTION2(vmax, max_op, ASCENDC_NUMBERS)
ASCENDC_INSTRUCTION2(vmin, min_op, ASCENDC_NUMBERS)
ASCENDC_INSTRUCTION2(vmul, mul_op, ASCENDC_NUMBERS)
ASCENDC_INSTRUCTION2(vor, or_op, ASCENDC_BITS)
ASCENDC_INSTRUCTION2(vsub, sub_op, ASCENDC_NUMBERS)
ASCENDC_INSTRUCTION2(vsubrelu, sub_relu_op, ASCENDC_SHORTS)
#undef ASCENDC_INSTRUCTION2

#define ASCENDC_INSTRUCTION3(name, op, U)                                                                  \
    template <typename T, typename U>                                                                      \
    void name(__ubuf__ T* dst, __ubuf__ U* src0, __ubuf__ U* src1, uint8_t repeat, uint8_t dstBlockStride, \
              uint8_t src0BlockStride, uint8_t src1BlockStride, uint8_t dstRepeatStride,                   \
              uint8_t src0RepeatStride, uint8_t src1RepeatStride,                                          \
              const ascendc_host::Where& where = ascendc_host::Where()) {                                  \
        AscendC::detail::accumulating_instruction<T>(                                                      \
            #name, where, repeat, AscendC::detail::op(),                                                   \
            AscendC::detail::At<T>{dst, dstBlockStride, dstRepeatStride, "dst"},                           \
            AscendC::detail::At<U>{src0, src0BlockStride, src0RepeatStride, "src0"},                       \
            AscendC::detail::At<U>{src1, src1BlockStride, src1RepeatStride, "src1"});                      \
    }
ASCENDC_INSTRUCTION3(vmla, mul_add_dst_op, U)     // dst += src0 * src1
ASCENDC_INSTRUCTION3(vmadd, fused_mul_add_op, U)  // dst = src0 * dst + src1
ASCENDC_INSTRUCTION3(vmaddrelu, fused_mul_add_relu_op, U)
#undef ASCENDC_INSTRUCTION3

#define ASCENDC_INSTRUCTION_SCALAR(name, op, ELEMENTS)                                                  \
    template <typename T>                                                                               \
    void name(__ubuf__ T* dst, __ubuf__ T* src, AscendC::detail::Same<T> value, uint8_t repeat,         \
              uint16_t dstBlockStride, uint16_t srcBlockStride, uint16_t dstRepeatStride,               \
              uint16_t srcRepeatStride, const ascendc_host::Where& where = ascendc_host::Where()) {     \
        ELEMENTS(name, T);                                                                              \
        using Wide = AscendC::detail::Wide<T>;                                                          \
        const Wide scalar = value;                                                                      \
        AscendC::detail::instruction<T>(                                                                \
            #name, where, repeat, false, [scalar](Wide a) { return AscendC::detail::op()(scalar, a); }, \
            AscendC::detail::At<T>{dst, dstBlockStride, dstRepeatStride, "dst"},                        \
            AscendC::detail::At<T>{src, srcBlockStride, srcRepeatStride, "src"});                       \
    }
ASCENDC_INSTRUCTION_SCALAR(vadds, add_op, ASCENDC_NUMBERS)
ASCENDC_INSTRUCTION_SCALAR(vlrelu, leaky_relu_op, ASCENDC_FLOATS)
ASCENDC_INSTRUCTION_SCALAR(vmaxs, max_op, ASCENDC_NUMBERS)
ASCENDC_INSTRUCTION_SCALAR(vmins, min_op, ASCENDC_NUMBERS)
ASCENDC_INSTRUCTION_SCALAR(vmuls, mul_op, ASCENDC_NUMBERS)
ASCENDC_INSTRUCTION_SCALAR(vshl, shift_left_op, ASCENDC_INTEGERS)
#undef ASCENDC_INSTRUCTION_SCALAR
template <typename T>
void vshr(__ubuf__ T* dst, __ubuf__ T* src, int32_t distance, uint8_t repeat, uint16_t dstBlockStride,
          uint16_t srcBlockStride, uint16_t dstRepeatStride, uint16_t srcRepeatStride, bool round = false,
          const ascendc_host::Where& where = ascendc_host::Where()) {
    using AscendC::detail::At;
    AscendC::detail::instruction<T>("vshr", where, repeat, false,
                                    AscendC::detail::shift_right<T>(distance, round),
                                    At<T>{dst, dstBlockStride, dstRepeatStride, "dst"},
                                    At<T>{src, srcBlockStride, srcRepeatStride, "src"});
}
template <typename T, typename U>
void vaxpy(__ubuf__ T* dst, __ubuf__ U* src, AscendC::detail::Same<U> value, uint8_t repeat,
           uint16_t dstBlockStride, uint16_t srcBlockStride, uint16_t dstRepeatStride,
           uint16_t srcRepeatStride, const ascendc_host::Where& where = ascendc_host::Where()) {
    using AscendC::detail::At;
    AscendC::detail::accumulating_instruction<T>("vaxpy", where, repeat, AscendC::detail::axpy<T, U>(value),
                                                 At<T>{dst, dstBlockStride, dstRepeatStride, "dst"},
                                                 At<U>{src, srcBlockStride, srcRepeatStride, "src"});
}
// The strides of a source have no use.
template <typename T>
void vector_dup(__ubuf__ T* dst, AscendC::detail::Same<T> value, uint8_t repeat, uint16_t dstBlockStride,
                uint16_t, uint16_t dstRepeatStride, uint16_t,
                const ascendc_host::Where& where = ascendc_host::Where()) {
    AscendC::detail::duplicate_repeats<T>(AscendC::detail::local_at(dst, "vector_dup", "dst", where), value,
                                          AscendC::detail::register_mask(), repeat, dstBlockStride,
                                          dstRepeatStride, where);
}

// --- reductions

namespace AscendC {
namespace detail {
// The sum of all repeats goes to the register that get_acc_val reads, and nowhere else.
template <typename T>
void sum_to_register(const LocalTensor<T>& src, uint32_t repeats, Stride stride, const Where& where) {
    constexpr uint32_t lanes = lanes_of<T>();
    const Mask mask = register_mask();
    repeats = mask.repeats(repeats, lanes);
    const Operand<T> from(src, stride, mask, repeats, lanes, "vcadd", "src", where);
    std::vector<Wide<T>> values;
    for (uint32_t repeat = 0; repeat < repeats; ++repeat) {
        const Active<T> active(from, repeat, mask, 0, mask.end(repeat, lanes), lanes);
        values.insert(values.end(), active.values, active.values + active.count);
    }
    keep(ascendc_host::current().sum, static_cast<T>(pairwise_sum(values.data(), values.size())));
}
}  // namespace detail
}  // namespace AscendC

// `whole` adds the repeats, too.
template <typename T>
void vcadd(AscendC::detail::Same<__ubuf__ T*> dst, __ubuf__ T* src, uint8_t repeat, uint16_t dstRepeatStride,
           uint16_t srcBlockStride, uint16_t srcRepeatStride, bool whole = false,
           const ascendc_host::Where& where = ascendc_host::Where()) {
    using namespace AscendC::detail;
    const Stride stride{srcBlockStride, srcRepeatStride};
    const auto from = local_at(src, "vcadd", "src", where);
    if (whole) return sum_to_register(from, repeat, stride, where);
    reduce_groups<AscendC::ReduceType::SUM>("vcadd", local_at(dst, "vcadd", "dst", where), from,
                                            register_mask(), repeat, most_lanes, dstRepeatStride, sizeof(T),
                                            stride, where);
}
#define ASCENDC_INSTRUCTION_GROUPS(name, type, group, step, alignment)                                 \
    template <typename T>                                                                              \
    void name(__ubuf__ T* dst, __ubuf__ T* src, uint8_t repeat, uint16_t dstRepeatStride,              \
              uint16_t srcBlockStride, uint16_t srcRepeatStride,                                       \
              const ascendc_host::Where& where = ascendc_host::Where()) {                              \
        using namespace AscendC::detail;                                                               \
        reduce_groups<AscendC::ReduceType::type>(#name, local_at(dst, #name, "dst", where),            \
                                                 local_at(src, #name, "src", where), register_mask(),  \
                                                 repeat, group, uint64_t(dstRepeatStride) * (step),    \
                                                 alignment, {srcBlockStride, srcRepeatStride}, where); \
    }
ASCENDC_INSTRUCTION_GROUPS(vcgadd, SUM, 32 / sizeof(T), 8, 8 * sizeof(T))
ASCENDC_INSTRUCTION_GROUPS(vcgmax, MAX, 32 / sizeof(T), 8, 8 * sizeof(T))
ASCENDC_INSTRUCTION_GROUPS(vcgmin, MIN, 32 / sizeof(T), 8, 8 * sizeof(T))
ASCENDC_INSTRUCTION_GROUPS(vcpadd, SUM, 2, lanes_of<T>() / 2, 32)
#undef ASCENDC_INSTRUCTION_GROUPS
#define ASCENDC_INSTRUCTION_EXTREME(name, type)                                                             \
    template <typename T>                                                                                   \
    void name(__ubuf__ T* dst, __ubuf__ T* src, uint8_t repeat, uint16_t dstRepeatStride,                   \
              uint16_t srcBlockStride, uint16_t srcRepeatStride, Order_t order,                             \
              const ascendc_host::Where& where = ascendc_host::Where()) {                                   \
        using namespace AscendC::detail;                                                                    \
        using AscendC::ReduceOrder;                                                                         \
        constexpr ReduceOrder orders[] = {ReduceOrder::ORDER_VALUE_INDEX, ReduceOrder::ORDER_INDEX_VALUE,   \
                                          ReduceOrder::ORDER_ONLY_VALUE, ReduceOrder::ORDER_ONLY_INDEX};    \
        reduce_with_index<AscendC::ReduceType::type>(                                                       \
            #name, local_at(dst, #name, "dst", where), local_at(src, #name, "src", where), register_mask(), \
            repeat, dstRepeatStride, {srcBlockStride, srcRepeatStride}, orders[static_cast<int>(order)],    \
            where);                                                                                         \
    }
ASCENDC_INSTRUCTION_EXTREME(vcmax, MAX)
ASCENDC_INSTRUCTION_EXTREME(vcmin, MIN)
#undef ASCENDC_INSTRUCTION_EXTREME
// The value in the lower half, the index in the upper one.
inline int64_t get_max_min_cnt(const ascendc_host::Where& where = ascendc_host::Where()) {
    const auto& kept = AscendC::detail::reduced_extreme("get_max_min_cnt", where);
    return static_cast<int64_t>(uint64_t{kept.index} << 32 | kept.bits);
}

// --- conversions, by the types and the rounding in their names

#define ASCENDC_CONVERSION(name, From, To, mode)                                                          \
    inline void name(__ubuf__ To* dst, __ubuf__ From* src, uint8_t repeat, uint16_t dstBlockStride,       \
                     uint16_t srcBlockStride, uint16_t dstRepeatStride, uint16_t srcRepeatStride,         \
                     const ascendc_host::Where& where = ascendc_host::Where()) {                          \
        AscendC::Cast<To, From, false>(AscendC::detail::local_at(dst, #name, "dst", where),               \
                                       AscendC::detail::local_at(src, #name, "src", where),               \
                                       AscendC::RoundMode::mode, uint64_t{0}, repeat,                     \
                                       AscendC::UnaryRepeatParams(dstBlockStride, srcBlockStride,         \
                                                                  static_cast<uint8_t>(dstRepeatStride),  \
                                                                  static_cast<uint8_t>(srcRepeatStride)), \
                                       where);                                                            \
    }
#define ASCENDC_ROUNDED_CONVERSIONS(name, From, To)   \
    ASCENDC_CONVERSION(name##a, From, To, CAST_ROUND) \
    ASCENDC_CONVERSION(name##c, From, To, CAST_CEIL)  \
    ASCENDC_CONVERSION(name##f, From, To, CAST_FLOOR) \
    ASCENDC_CONVERSION(name##r, From, To, CAST_RINT)  \
    ASCENDC_CONVERSION(name##z, From, To, CAST_TRUNC)
ASCENDC_CONVERSION(vconv_bf162f32, bfloat16_t, float, CAST_NONE)
ASCENDC_CONVERSION(vconv_f162f32, half, float, CAST_NONE)
ASCENDC_CONVERSION(vconv_f162s8, half, int8_t, CAST_NONE)
ASCENDC_CONVERSION(vconv_f162u8, half, uint8_t, CAST_NONE)
ASCENDC_CONVERSION(vconv_f322f16, float, half, CAST_NONE)
ASCENDC_CONVERSION(vconv_f322f16o, float, half, CAST_ODD)
ASCENDC_CONVERSION(vconv_s162f16, int16_t, half, CAST_NONE)
ASCENDC_CONVERSION(vconv_s162f32, int16_t, float, CAST_NONE)
ASCENDC_CONVERSION(vconv_s322f32, int32_t, float, CAST_NONE)
ASCENDC_CONVERSION(vconv_s322s16, int32_t, int16_t, CAST_NONE)
ASCENDC_CONVERSION(vconv_s322s64, int32_t, int64_t, CAST_NONE)
ASCENDC_CONVERSION(vconv_s642s32, int64_t, int32_t, CAST_NONE)
ASCENDC_CONVERSION(vconv_s82f16, int8_t, half, CAST_NONE)
ASCENDC_CONVERSION(vconv_u82f16, uint8_t, half, CAST_NONE)
ASCENDC_CONVERSION(vconv_deq, int32_t, half, CAST_NONE)  // by the scale of SetDeqScale
ASCENDC_ROUNDED_CONVERSIONS(vconv_bf162s32, bfloat16_t, int32_t)
ASCENDC_ROUNDED_CONVERSIONS(vconv_f162s16, half, int16_t)
ASCENDC_ROUNDED_CONVERSIONS(vconv_f162s32, half, int32_t)
ASCENDC_ROUNDED_CONVERSIONS(vconv_f162s8, half, int8_t)
ASCENDC_ROUNDED_CONVERSIONS(vconv_f162u8, half, uint8_t)
ASCENDC_ROUNDED_CONVERSIONS(vconv_f322bf16, float, bfloat16_t)
ASCENDC_ROUNDED_CONVERSIONS(vconv_f322f16, float, half)
ASCENDC_ROUNDED_CONVERSIONS(vconv_f322f32, float, float)
ASCENDC_ROUNDED_CONVERSIONS(vconv_f322s16, float, int16_t)
ASCENDC_ROUNDED_CONVERSIONS(vconv_f322s32, float, int32_t)
ASCENDC_ROUNDED_CONVERSIONS(vconv_f322s64, float, int64_t)
ASCENDC_ROUNDED_CONVERSIONS(vconv_s162f16, int16_t, half)
ASCENDC_ROUNDED_CONVERSIONS(vconv_s322f32, int32_t, float)
ASCENDC_ROUNDED_CONVERSIONS(vconv_s642f32, int64_t, float)
#undef ASCENDC_ROUNDED_CONVERSIONS
#undef ASCENDC_CONVERSION

// --- comparisons

#define ASCENDC_COMPARISON(mode, MODE)                                                                     \
    template <typename T>                                                                                  \
    void vcmpv_##mode(__ubuf__ uint8_t* dst, __ubuf__ T* src0, __ubuf__ T* src1, uint8_t repeat,           \
                      uint8_t dstBlockStride, uint8_t src0BlockStride, uint8_t src1BlockStride,            \
                      uint8_t dstRepeatStride, uint8_t src0RepeatStride, uint8_t src1RepeatStride,         \
                      const ascendc_host::Where& where = ascendc_host::Where()) {                          \
        constexpr const char* api = "vcmpv_" #mode;                                                        \
        AscendC::Compare<T, uint8_t, false>(                                                               \
            AscendC::detail::local_at(dst, api, "dst", where),                                             \
            AscendC::detail::local_at(src0, api, "src0", where),                                           \
            AscendC::detail::local_at(src1, api, "src1", where), AscendC::CMPMODE::MODE, uint64_t{0},      \
            repeat,                                                                                        \
            AscendC::BinaryRepeatParams(dstBlockStride, src0BlockStride, src1BlockStride, dstRepeatStride, \
                                        src0RepeatStride, src1RepeatStride),                               \
            where);                                                                                        \
    }                                                                                                      \
    template <typename T>                                                                                  \
    void vcmpvs_##mode(__ubuf__ uint8_t* dst, __ubuf__ T* src, AscendC::detail::Same<T> value,             \
                       uint8_t repeat, uint16_t dstBlockStride, uint16_t srcBlockStride,                   \
                       uint16_t dstRepeatStride, uint16_t srcRepeatStride,                                 \
                       const ascendc_host::Where& where = ascendc_host::Where()) {                         \
        constexpr const char* api = "vcmpvs_" #mode;                                                       \
        AscendC::CompareScalar<T, uint8_t, false>(                                                         \
            AscendC::detail::local_at(dst, api, "dst", where),                                             \
            AscendC::detail::local_at(src, api, "src", where), value, AscendC::CMPMODE::MODE, uint64_t{0}, \
            repeat,                                                                                        \
            AscendC::UnaryRepeatParams(dstBlockStride, srcBlockStride,                                     \
                                       static_cast<uint8_t>(dstRepeatStride),                              \
                                       static_cast<uint8_t>(srcRepeatStride)),                             \
            where);                                                                                        \
    }
ASCENDC_COMPARISON(eq, EQ)
ASCENDC_COMPARISON(ge, GE)
ASCENDC_COMPARISON(gt, GT)
ASCENDC_COMPARISON(le, LE)
ASCENDC_COMPARISON(lt, LT)
ASCENDC_COMPARISON(ne, NE)
#undef ASCENDC_COMPARISON

#endif

#endif  // ASCENDC_HOST_INTERNAL_INSTRUCTIONS_H
