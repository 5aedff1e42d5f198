// Floating point to int8, by one scale or one for each column, and integers back, row by row.
#ifndef ASCENDC_HOST_ADV_API_QUANTIZATION_QUANTIZATION_H
#define ASCENDC_HOST_ADV_API_QUANTIZATION_QUANTIZATION_H

#include "ascendc_host/adv_api/reduce/reduce_pattern.h"
#include "ascendc_host/basic_api/cast.h"

namespace AscendC {

// Of `m` rows of `n` elements the first `calCount` of each.
struct DequantParams {
    uint32_t m;
    uint32_t n;
    uint32_t calCount;
};
enum class DeQuantMode { DEQUANT_WITH_SINGLE_ROW, DEQUANT_WITH_MULTI_ROW };

namespace detail {

// A scale of 64 bits is a float in its lower half; the rest is for the cube unit.
template <typename S>
float scale_of(S scale) {
    if constexpr (std::is_same<S, uint64_t>::value) {
        const auto bits = static_cast<uint32_t>(scale);
        float value;
        std::memcpy(&value, &bits, sizeof value);
        return value;
    } else {
        return static_cast<float>(scale);
    }
}

template <DeQuantMode mode, typename D, typename S, typename Scale>
void dequantize(const LocalTensor<D>& dst, const LocalTensor<int32_t>& src, DequantParams p,
                const Where& where, const Scale& scale) {
    static_assert(
        (std::is_same<D, half>::value && std::is_same<S, uint64_t>::value) ||
            (is_one_of<D, float, bfloat16_t> && is_one_of<S, float, bfloat16_t>),
        "AscendDequant is for half with scales of uint64_t, float and bfloat16_t with float or bfloat16_t");
    const auto& block = ascendc_host::enter(where);
    constexpr uint32_t per_block = ONE_BLK_SIZE / sizeof(D);
    if (p.n * sizeof(int32_t) % ONE_BLK_SIZE != 0 || p.calCount == 0 || p.calCount > p.n) {
        ascendc_host::fail(block, where,
                           ascendc_host::format("AscendDequant: %u of %u columns; rows are multiples of 8 "
                                                "elements, and calCount is 1 to the row's length",
                                                p.calCount, p.n));
    }
    if (mode == DeQuantMode::DEQUANT_WITH_SINGLE_ROW && p.m == 1 && p.calCount % per_block == 0 &&
        p.n % p.calCount == 0) {
        p = {p.n / p.calCount, p.calCount, p.calCount};
    }
    const uint32_t pitch = (p.n + per_block - 1) / per_block * per_block;
    const int32_t* from =
        vector_operand(src, uint64_t(p.m) * p.n * sizeof(int32_t), "AscendDequant", "src", where);
    D* to = vector_operand(dst, uint64_t(p.m) * pitch * sizeof(D), "AscendDequant", "dst", where);
    ascendc_host::require_apart("AscendDequant", {"dst", to, uint64_t(p.m) * pitch * sizeof(D)},
                                {"src", from, uint64_t(p.m) * p.n * sizeof(int32_t)}, where);
    for (uint32_t row = 0; row < p.m; ++row) {
        for (uint32_t i = 0; i < p.calCount; ++i) {
            const float value = static_cast<float>(from[uint64_t(row) * p.n + i]) * scale(i);
            to[uint64_t(row) * pitch + i] = static_cast<D>(value);
        }
    }
}

}  // namespace detail

template <typename dstT, typename scaleT, DeQuantMode mode = DeQuantMode::DEQUANT_WITH_SINGLE_ROW>
void AscendDequant(const LocalTensor<dstT>& dstTensor, const LocalTensor<int32_t>& srcTensor,
                   const LocalTensor<scaleT>& deqScale, DequantParams params, Where where = Where()) {
    const scaleT* scales = deqScale.use(params.calCount, "AscendDequant", "deqScale", where);
    detail::dequantize<mode, dstT, scaleT>(dstTensor, srcTensor, params, where,
                                           [scales](uint32_t i) { return detail::scale_of(scales[i]); });
}
template <typename dstT, typename scaleT, DeQuantMode mode = DeQuantMode::DEQUANT_WITH_SINGLE_ROW>
void AscendDequant(const LocalTensor<dstT>& dstTensor, const LocalTensor<int32_t>& srcTensor,
                   const LocalTensor<scaleT>& deqScale, const LocalTensor<uint8_t>&, DequantParams params,
                   Where where = Where()) {
    AscendDequant<dstT, scaleT, mode>(dstTensor, srcTensor, deqScale, params, where);
}
template <typename dstT, typename scaleT, DeQuantMode mode = DeQuantMode::DEQUANT_WITH_SINGLE_ROW>
void AscendDequant(const LocalTensor<dstT>& dstTensor, const LocalTensor<int32_t>& srcTensor,
                   const scaleT deqScale, DequantParams params, Where where = Where()) {
    const float scale = detail::scale_of(deqScale);
    detail::dequantize<mode, dstT, scaleT>(dstTensor, srcTensor, params, where,
                                           [scale](uint32_t) { return scale; });
}
template <typename dstT, typename scaleT, DeQuantMode mode = DeQuantMode::DEQUANT_WITH_SINGLE_ROW>
void AscendDequant(const LocalTensor<dstT>& dstTensor, const LocalTensor<int32_t>& srcTensor,
                   const scaleT deqScale, const LocalTensor<uint8_t>&, DequantParams params,
                   Where where = Where()) {
    AscendDequant<dstT, scaleT, mode>(dstTensor, srcTensor, deqScale, params, where);
}

// As it was called at first: the scales again and again, of the first `calCount` elements or of all.
namespace detail {
template <DeQuantMode mode, typename D, typename S>
void dequantize_cycles(const LocalTensor<D>& dst, const LocalTensor<int32_t>& src,
                       const LocalTensor<S>& scales, uint32_t count, const Where& where) {
    const uint32_t columns = scales.GetSize();
    if (columns == 0 || count % columns != 0 || src.GetSize() % columns != 0 || count > src.GetSize() ||
        columns * sizeof(D) % ONE_BLK_SIZE != 0) {
        ascendc_host::fail(
            ascendc_host::enter(where), where,
            ascendc_host::format(
                "AscendDequant: %u of %u elements with %u scales; both are multiples of the number "
                "of scales, which fill whole blocks of 32 bytes of dst; write DequantParams",
                count, src.GetSize(), columns));
    }
    if (count == 0) return;
    const S* values = scales.use(columns, "AscendDequant", "deqScale", where);
    dequantize<mode, D, S>(dst, src, {count / columns, columns, columns}, where,
                           [values](uint32_t i) { return scale_of(values[i]); });
}
}  // namespace detail
#define ASCENDC_DEQUANT_CYCLES(parameters, count)                                                      \
    template <typename dstT, typename scaleT, DeQuantMode mode = DeQuantMode::DEQUANT_WITH_SINGLE_ROW> \
    void AscendDequant(const LocalTensor<dstT>& dstTensor, const LocalTensor<int32_t>& srcTensor,      \
                       const LocalTensor<scaleT>& deqScale parameters, Where where = Where()) {        \
        detail::dequantize_cycles<mode>(dstTensor, srcTensor, deqScale, count, where);                 \
    }
#define ASCENDC_AND ,
ASCENDC_DEQUANT_CYCLES(ASCENDC_AND const LocalTensor<uint8_t>& ASCENDC_AND const uint32_t calCount, calCount)
ASCENDC_DEQUANT_CYCLES(ASCENDC_AND const LocalTensor<uint8_t>&, srcTensor.GetSize())
ASCENDC_DEQUANT_CYCLES(ASCENDC_AND const uint32_t calCount, calCount)
ASCENDC_DEQUANT_CYCLES(, srcTensor.GetSize())
#undef ASCENDC_AND
#undef ASCENDC_DEQUANT_CYCLES

namespace detail {

// src * scale + offset: each step in half, whatever the source is, then the nearest integer, within int8.
template <typename T, typename Scale, typename Offset>
void quantize(const LocalTensor<int8_t>& dst, const LocalTensor<T>& src, uint32_t count, uint32_t columns,
              const Where& where, const Scale& scale, const Offset& offset) {
    static_assert(is_one_of<T, float, half>, "AscendQuant is for half and float");
    const auto& block = ascendc_host::enter(where);
    if (count == 0 || columns == 0 || count % columns != 0) {
        ascendc_host::fail(
            block, where,
            ascendc_host::format("AscendQuant: %u elements with %u scales; the count is a multiple "
                                 "of that of the scales, and neither is 0",
                                 count, columns));
    }
    const T* from = vector_operand(src, uint64_t(count) * sizeof(T), "AscendQuant", "src", where);
    int8_t* to = vector_operand(dst, count, "AscendQuant", "dst", where);
    for (uint32_t i = 0; i < count; ++i) {
        const float narrowed = static_cast<half>(from[i]);
        const float scaled = static_cast<half>(narrowed * scale(i % columns));
        to[i] = convert<int8_t>(static_cast<half>(scaled + offset(i % columns)), RoundMode::CAST_NONE);
    }
}
inline void check_counts(uint32_t scales, uint32_t offsets, const Where& where) {
    if (scales == offsets) return;
    ascendc_host::fail(
        ascendc_host::enter(where), where,
        ascendc_host::format("AscendQuant: %u scales and %u offsets; as many of both", scales, offsets));
}
inline auto each_is(float value) {
    return [value](uint32_t) -> float { return static_cast<half>(value); };
}
template <typename T>
auto column_of(const LocalTensor<T>& values, uint32_t count, const char* name, const Where& where) {
    const T* at = values.use(count, "AscendQuant", name, where);
    return [at](uint32_t i) -> float { return static_cast<half>(at[i]); };
}

}  // namespace detail

// Each form with and without temporary space.
#define ASCENDC_QUANT(Name, ...)                                                                        \
    template <typename T, bool isReuseSource = false>                                                   \
    void Name(const LocalTensor<int8_t>& dstTensor, const LocalTensor<T>& srcTensor,                    \
              __VA_ARGS__ const float scale, const float offset, const uint32_t calCount,               \
              Where where = Where()) {                                                                  \
        detail::quantize(dstTensor, srcTensor, calCount, 1, where, detail::each_is(scale),              \
                         detail::each_is(offset));                                                      \
    }                                                                                                   \
    template <typename T, bool isReuseSource = false>                                                   \
    void Name(const LocalTensor<int8_t>& dstTensor, const LocalTensor<T>& srcTensor,                    \
              __VA_ARGS__ const float scale, const float offset, Where where = Where()) {               \
        Name<T>(dstTensor, srcTensor, scale, offset, srcTensor.GetSize(), where);                       \
    }                                                                                                   \
    template <typename T, bool isReuseSource = false>                                                   \
    void Name(const LocalTensor<int8_t>& dstTensor, const LocalTensor<T>& srcTensor,                    \
              __VA_ARGS__ const LocalTensor<T>& scaleTensor, const T offset, const uint32_t scaleCount, \
              const uint32_t calCount, Where where = Where()) {                                         \
        detail::quantize(dstTensor, srcTensor, calCount, scaleCount, where,                             \
                         detail::column_of(scaleTensor, scaleCount, "scale", where),                    \
                         detail::each_is(static_cast<float>(offset)));                                  \
    }                                                                                                   \
    template <typename T, bool isReuseSource = false>                                                   \
    void Name(const LocalTensor<int8_t>& dstTensor, const LocalTensor<T>& srcTensor,                    \
              __VA_ARGS__ const LocalTensor<T>& scaleTensor, const T offset, Where where = Where()) {   \
        Name<T>(dstTensor, srcTensor, scaleTensor, offset, scaleTensor.GetSize(), srcTensor.GetSize(),  \
                where);                                                                                 \
    }                                                                                                   \
    template <typename T, bool isReuseSource = false>                                                   \
    void Name(const LocalTensor<int8_t>& dstTensor, const LocalTensor<T>& srcTensor,                    \
              __VA_ARGS__ const LocalTensor<T>& scaleTensor, const LocalTensor<T>& offsetTensor,        \
              const uint32_t scaleCount, const uint32_t offsetCount, const uint32_t calCount,           \
              Where where = Where()) {                                                                  \
        detail::check_counts(scaleCount, offsetCount, where);                                           \
        detail::quantize(dstTensor, srcTensor, calCount, scaleCount, where,                             \
                         detail::column_of(scaleTensor, scaleCount, "scale", where),                    \
                         detail::column_of(offsetTensor, offsetCount, "offset", where));                \
    }                                                                                                   \
    template <typename T, bool isReuseSource = false>                                                   \
    void Name(const LocalTensor<int8_t>& dstTensor, const LocalTensor<T>& srcTensor,                    \
              __VA_ARGS__ const LocalTensor<T>& scaleTensor, const LocalTensor<T>& offsetTensor,        \
              Where where = Where()) {                                                                  \
        Name<T>(dstTensor, srcTensor, scaleTensor, offsetTensor, scaleTensor.GetSize(),                 \
                offsetTensor.GetSize(), srcTensor.GetSize(), where);                                    \
    }
ASCENDC_QUANT(AscendQuant)
ASCENDC_QUANT(AscendQuant, const LocalTensor<uint8_t>&, )
#undef ASCENDC_QUANT

}  // namespace AscendC

#endif  // ASCENDC_HOST_ADV_API_QUANTIZATION_QUANTIZATION_H
