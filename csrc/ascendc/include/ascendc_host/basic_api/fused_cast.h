// Conversions of what is computed in the same instruction: of sums, differences and products of two tensors,
// and of products with the scale that SetDeqScale set.
#ifndef ASCENDC_HOST_BASIC_API_FUSED_CAST_H
#define ASCENDC_HOST_BASIC_API_FUSED_CAST_H

#include "ascendc_host/basic_api/cast.h"
#include "ascendc_host/basic_api/pipe.h"

namespace AscendC {
namespace detail {

template <typename From, typename To>
struct Conversion {};

#if __NPU_ARCH__ == 3510
constexpr bool converts_wide = true;
#else
constexpr bool converts_wide = false;
#endif
// int64_t is for dav-3510, to int32_t in the forms with a count alone.
template <typename U, typename T, bool counted>
constexpr bool is_wide_conversion =
    converts_wide && (is_one_of<Conversion<U, T>, Conversion<int64_t, float>> ||
                      (counted && is_one_of<Conversion<U, T>, Conversion<int64_t, int32_t>>));
template <typename U, typename T, bool counted>
constexpr bool is_sum_conversion = is_one_of<Conversion<U, T>, Conversion<half, int8_t>,
                                             Conversion<int16_t, int8_t>, Conversion<float, half>> ||
                                   is_wide_conversion<U, T, counted>;
template <typename U, typename T, bool counted>
constexpr bool is_product_conversion =
    is_one_of<Conversion<U, T>, Conversion<half, int8_t>, Conversion<half, uint8_t>> ||
    (counted && is_wide_conversion<U, T, counted>);

// The result of `op` in the type of the sources, then converted.
template <typename T, typename U, typename Op>
auto converted(const Op& op) {
    return [op](Wide<U> a, Wide<U> b) {
        return static_cast<Wide<T>>(convert<T>(static_cast<U>(op(a, b)), RoundMode::CAST_NONE));
    };
}

}  // namespace detail

#define ASCENDC_FUSED_CAST(Name, op, takes, types)                                                           \
    template <typename T, typename U>                                                                        \
    void Name(const LocalTensor<T>& dst, const LocalTensor<U>& src0, const LocalTensor<U>& src1,             \
              const uint32_t count, Where where = Where()) {                                                 \
        static_assert(detail::takes<U, T, true>, #Name " is for " types);                                    \
        detail::on_count(#Name, where, count, dst, detail::converted<T, U>(detail::op()), src0, src1);       \
    }                                                                                                        \
    template <typename T, typename U, bool isSetMask = true, typename Lanes>                                 \
    void Name(const LocalTensor<T>& dst, const LocalTensor<U>& src0, const LocalTensor<U>& src1, Lanes mask, \
              const uint8_t repeatTime, const BinaryRepeatParams& repeatParams, Where where = Where()) {     \
        static_assert(detail::takes<U, T, false>, #Name " with masks is for " types);                        \
        ascendc_host::enter(where);                                                                          \
        detail::on_repeats(                                                                                  \
            #Name, where, detail::make_mask<isSetMask>(mask, detail::lanes_of<T, U>(), #Name, where),        \
            repeatTime, repeatParams, dst, detail::converted<T, U>(detail::op()), src0, src1);               \
    }
#define ASCENDC_SUM_TYPES \
    "half and int16_t to int8_t, float to half (dav-3510: int64_t to float, by a count to int32_t too)"
ASCENDC_FUSED_CAST(AddReluCast, add_relu_op, is_sum_conversion, ASCENDC_SUM_TYPES)
ASCENDC_FUSED_CAST(SubReluCast, sub_relu_op, is_sum_conversion, ASCENDC_SUM_TYPES)
ASCENDC_FUSED_CAST(MulCast, mul_op, is_product_conversion,
                   "half to int8_t and uint8_t (dav-3510, by a count: int64_t to float and int32_t)")
#undef ASCENDC_SUM_TYPES
#undef ASCENDC_FUSED_CAST

// --- the register of scales
// ------------------------------------------------------------------------------------------

// A scale, an offset and a sign for each place in a block of 32 bytes.
struct VdeqInfo {
    VdeqInfo() = default;
    VdeqInfo(const float scales[VDEQ_TENSOR_SIZE], const int16_t offsets[VDEQ_TENSOR_SIZE],
             const bool signs[VDEQ_TENSOR_SIZE]) {
        std::copy_n(scales, VDEQ_TENSOR_SIZE, vdeqScale);
        std::copy_n(offsets, VDEQ_TENSOR_SIZE, vdeqOffset);
        std::copy_n(signs, VDEQ_TENSOR_SIZE, vdeqSignMode);
    }
    float vdeqScale[VDEQ_TENSOR_SIZE] = {};
    int16_t vdeqOffset[VDEQ_TENSOR_SIZE] = {};
    bool vdeqSignMode[VDEQ_TENSOR_SIZE] = {};
};

namespace detail {

using Dequantizer = ascendc_host::Block::Dequantizer;

// The register's word: the scale in bits 0 to 31, nine bits of the offset from bit 37 on, the sign in bit 46.
inline uint64_t quantizer_word(float scale, int16_t offset, bool is_signed) {
    return bits_of(scale) | (uint64_t(offset) & 0x1ff) << 37 | uint64_t(is_signed) << 46;
}
// value * scale + offset, within the type. How the device rounds is not documented, nor how it takes a scale
// of more than ten bits of mantissa: what depends on it is refused.
template <typename T>
T dequantized(int16_t value, uint64_t word, const char* api, const Where& where) {
    const auto bits = static_cast<uint32_t>(word);
    const int offset = static_cast<int>((word >> 37 & 0x1ff) ^ 0x100) - 0x100;
    const bool is_signed = (word >> 46 & 1) != 0;
    float scale;
    std::memcpy(&scale, &bits, sizeof scale);
    if (is_signed != std::is_signed<T>::value) {
        ascendc_host::fail(
            ascendc_host::current(), where,
            ascendc_host::format("%s to %s: SetDeqScale set signMode %s; int8_t takes true, uint8_t false",
                                 api, std::is_signed<T>::value ? "int8_t" : "uint8_t",
                                 is_signed ? "true" : "false"));
    }
    const double result = static_cast<double>(value) * static_cast<double>(scale) + offset;
    const bool is_within = result > static_cast<double>(std::numeric_limits<T>::min()) &&
                           result < static_cast<double>(std::numeric_limits<T>::max());
    if ((bits & 0x1fff) != 0 || std::isnan(result) || (is_within && result != std::trunc(result))) {
        ascendc_host::fail(
            ascendc_host::current(), where,
            ascendc_host::format(
                "%s: %d * %.9g + %d; valid on the host: scales of ten bits of mantissa and results that are "
                "whole, for how a device rounds others is not documented; write Cast to float, Muls, Adds "
                "and "
                "Cast with a RoundMode",
                api, int(value), double(scale), offset));
    }
    return saturate<T>(result);
}

// Of each block of 32 bytes of src the sixteen results fill one half of a block of dst; the other half stays.
template <bool isVecDeq, bool halfBlock, typename T>
void dequantize_repeats(const char* api, const LocalTensor<T>& dst, const LocalTensor<int16_t>& src,
                        const Mask& mask, uint32_t repeats, const UnaryRepeatParams& p, const Where& where) {
    constexpr uint32_t lanes = lanes_of<int16_t>(), per_block = ONE_BLK_SIZE / sizeof(int16_t);
    const Dequantizer& deq = ascendc_host::enter(where).deq;
    if (deq.kind != (isVecDeq ? Dequantizer::Kind::words : Dequantizer::Kind::word)) {
        ascendc_host::fail(
            ascendc_host::current(), where,
            ascendc_host::format("%s of int16_t with isVecDeq %s; write %s before it", api,
                                 isVecDeq ? "true" : "false",
                                 isVecDeq ? "SetDeqScale(vdeq, VdeqInfo), or isVecDeq false"
                                          : "SetDeqScale(scale, offset, signMode), or isVecDeq true"));
    }
    uint64_t words[VDEQ_TENSOR_SIZE];
    if constexpr (isVecDeq) {
        std::memcpy(words, deq.words, sizeof words);
    } else {
        std::fill_n(words, VDEQ_TENSOR_SIZE, deq.word);
    }
    repeats = mask.repeats(repeats, lanes);
    const auto place = [&p](uint32_t repeat, uint32_t lane) {
        return (uint64_t(repeat) * p.dstRepStride + uint64_t(lane / per_block) * p.dstBlkStride) *
                   ONE_BLK_SIZE +
               (halfBlock ? per_block : 0) + lane % per_block;
    };
    uint64_t bytes = 0;
    for (uint32_t repeat = repeats > 1 ? repeats - 2 : 0; repeat < repeats; ++repeat) {
        const uint32_t end = mask.end(repeat, lanes);
        if (end != 0) bytes = std::max(bytes, place(repeat, end - 1) + 1);
    }
    T* to = vector_operand(dst, bytes, api, "dst", where);
    const Operand<int16_t> from(src, {p.srcBlkStride, p.srcRepStride}, mask, repeats, lanes, api, "src",
                                where);
    // A block of the source becomes half a block.
    ascendc_host::require_order(api, {"dst", to, p.dstBlkStride, p.dstRepStride, 16}, from.walk(),
                                {repeats, lanes, mask.counter, mask.count, mask.low, mask.high}, false,
                                where);
    for (uint32_t repeat = 0; repeat < repeats; ++repeat) {
        int16_t values[lanes];
        const uint32_t end = mask.end(repeat, lanes);
        from.load(repeat, end, values);
        for (uint32_t lane = 0; lane < end; ++lane) {
            if (mask.active(repeat, lane, lanes))
                to[place(repeat, lane)] = dequantized<T>(values[lane], words[lane % per_block], api, where);
        }
    }
}

template <bool isVecDeq, bool halfBlock, typename T, typename U>
void dequantize(const char* api, const LocalTensor<T>& dst, const LocalTensor<U>& src, const Mask& mask,
                uint32_t repeats, const UnaryRepeatParams& p, const Where& where) {
    static_assert(is_one_of<Conversion<U, T>, Conversion<int32_t, half>, Conversion<int16_t, int8_t>,
                            Conversion<int16_t, uint8_t>>,
                  "CastDequant and CastDeq are for int32_t to half, and int16_t to int8_t and uint8_t");
    if constexpr (takes_scale<T, U>) {
        on_repeats(api, where, mask, repeats, p, dst, scaled_by(scale_of_register(api, where)), src);
    } else {
        dequantize_repeats<isVecDeq, halfBlock>(api, dst, src, mask, repeats, p, where);
    }
}

}  // namespace detail

// Of int32_t to half.
inline void SetDeqScale(half scale) {
    auto& deq = ascendc_host::current().deq;
    deq.kind = detail::Dequantizer::Kind::half;
    deq.scale = scale;
}
// Of int16_t to 8 bits: the same for all elements, or by their places in a block, where `vdeq` has what the
// instruction reads when it runs.
inline void SetDeqScale(float scale, int16_t offset, bool signMode) {
    auto& deq = ascendc_host::current().deq;
    deq.kind = detail::Dequantizer::Kind::word;
    deq.word = detail::quantizer_word(scale, offset, signMode);
}
template <typename T>
void SetDeqScale(const LocalTensor<T>& vdeq, const VdeqInfo& vdeqInfo, Where where = Where()) {
    static_assert(std::is_same<T, uint64_t>::value, "SetDeqScale takes a vdeq of uint64_t");
    auto& deq = ascendc_host::enter(where).deq;
    T* words =
        detail::vector_operand(vdeq, VDEQ_TENSOR_SIZE * sizeof(uint64_t), "SetDeqScale", "vdeq", where);
    for (int32_t i = 0; i < VDEQ_TENSOR_SIZE; ++i)
        words[i] =
            detail::quantizer_word(vdeqInfo.vdeqScale[i], vdeqInfo.vdeqOffset[i], vdeqInfo.vdeqSignMode[i]);
    deq.kind = detail::Dequantizer::Kind::words;
    deq.words = reinterpret_cast<const uint8_t*>(words);
}

#define ASCENDC_DEQUANT(Name)                                                                               \
    template <typename T, typename U, bool isVecDeq = true, bool halfBlock = true>                          \
    void Name(const LocalTensor<T>& dst, const LocalTensor<U>& src, const uint32_t count,                   \
              Where where = Where()) {                                                                      \
        constexpr uint8_t step = ONE_REPEAT_BYTE_SIZE / ONE_BLK_SIZE;                                       \
        const UnaryRepeatParams packed(1, 1, std::is_same<T, half>::value ? step / 2 : step, step);         \
        detail::dequantize<isVecDeq, halfBlock>(#Name, dst, src, {true, count, 0, 0}, 0, packed, where);    \
    }                                                                                                       \
    template <typename T, typename U, bool isSetMask = true, bool isVecDeq = true, bool halfBlock = true>   \
    void Name(const LocalTensor<T>& dst, const LocalTensor<U>& src, const int32_t mask, uint8_t repeatTime, \
              const UnaryRepeatParams& repeatParams, Where where = Where()) {                               \
        ascendc_host::enter(where);                                                                         \
        detail::dequantize<isVecDeq, halfBlock>(                                                            \
            #Name, dst, src,                                                                                \
            detail::make_mask<isSetMask>(static_cast<uint64_t>(mask), detail::lanes_of<T, U>(), #Name,      \
                                         where),                                                            \
            repeatTime, repeatParams, where);                                                               \
    }                                                                                                       \
    template <typename T, typename U, bool isSetMask = true, bool isVecDeq = true, bool halfBlock = true>   \
    void Name(const LocalTensor<T>& dst, const LocalTensor<U>& src, const uint64_t mask[],                  \
              uint8_t repeatTime, const UnaryRepeatParams& repeatParams, Where where = Where()) {           \
        ascendc_host::enter(where);                                                                         \
        detail::dequantize<isVecDeq, halfBlock>(                                                            \
            #Name, dst, src, detail::make_mask<isSetMask>(mask, detail::lanes_of<T, U>(), #Name, where),    \
            repeatTime, repeatParams, where);                                                               \
    }
ASCENDC_DEQUANT(CastDequant)
ASCENDC_DEQUANT(CastDeq)  // as it was called at first
#undef ASCENDC_DEQUANT

namespace detail {
inline auto dequantized_relu(const Where& where) {
    return [scaled = scaled_by(scale_of_register("AddDeqRelu", where))](int32_t a, int32_t b) {
        return std::max(0.0f, scaled(add_op()(a, b)));
    };
}
}  // namespace detail

// dst = relu((src0 + src1) * scale), with the scale of SetDeqScale(half).
template <typename T, typename U>
void AddDeqRelu(const LocalTensor<T>& dst, const LocalTensor<U>& src0, const LocalTensor<U>& src1,
                const int32_t& count, Where where = Where()) {
    static_assert(detail::takes_scale<T, U>, "AddDeqRelu is for int32_t to half");
    ascendc_host::enter(where);
    detail::use_reserved_space("AddDeqRelu", uint8_t{0xa5}, uint64_t(std::max(count, 0)) * sizeof(U));
    detail::on_count("AddDeqRelu", where, count, dst, detail::dequantized_relu(where), src0, src1);
}
#define ASCENDC_ADD_DEQ_RELU(T, U, MaskType, ...)                                                          \
    template <__VA_ARGS__ bool isSetMask = true>                                                           \
    void AddDeqRelu(const LocalTensor<T>& dst, const LocalTensor<U>& src0, const LocalTensor<U>& src1,     \
                    MaskType, const uint8_t repeatTime, const BinaryRepeatParams& repeatParams,            \
                    Where where = Where()) {                                                               \
        static_assert(detail::takes_scale<T, U>, "AddDeqRelu is for int32_t to half");                     \
        ascendc_host::enter(where);                                                                        \
        detail::use_reserved_space("AddDeqRelu", uint8_t{0xa5},                                            \
                                   uint64_t(repeatTime) * ONE_REPEAT_BYTE_SIZE);                           \
        detail::on_repeats(                                                                                \
            "AddDeqRelu", where,                                                                           \
            detail::make_mask<isSetMask>(mask, detail::lanes_of<T, U>(), "AddDeqRelu", where), repeatTime, \
            repeatParams, dst, detail::dequantized_relu(where), src0, src1);                               \
    }
ASCENDC_ADD_DEQ_RELU(half, int32_t, uint64_t mask, )
ASCENDC_ADD_DEQ_RELU(half, int32_t, const uint64_t mask[], )
ASCENDC_ADD_DEQ_RELU(T, U, uint64_t mask, typename T, typename U, )
ASCENDC_ADD_DEQ_RELU(T, U, const uint64_t mask[], typename T, typename U, )
#undef ASCENDC_ADD_DEQ_RELU

}  // namespace AscendC

#endif  // ASCENDC_HOST_BASIC_API_FUSED_CAST_H
