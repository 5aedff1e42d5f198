// Integers to the floating point that they were quantized from.
#ifndef ASCENDC_HOST_ADV_API_QUANTIZATION_ANTIQUANTIZATION_H
#define ASCENDC_HOST_ADV_API_QUANTIZATION_ANTIQUANTIZATION_H

#include <utility>

#include "ascendc_host/adv_api/reduce/reduce_pattern.h"

namespace AscendC {

// The shapes of offset and scale, where the tensors do not say them.
struct AntiQuantShapeInfo {
    uint32_t offsetHeight{0};
    uint32_t offsetWidth{0};
    uint32_t scaleHeight{0};
    uint32_t scaleWidth{0};
};

namespace detail {

// (src + offset) * scale of a matrix [k, n], transposed [n, k]: each step in half, or in float for
// bfloat16_t.
template <typename U, typename T, bool isTranspose, typename Offset, typename Scale>
void antiquantize(const LocalTensor<T>& dst, const LocalTensor<U>& src, uint32_t k, const Where& where,
                  const Offset& offset, const Scale& scale) {
    constexpr const char* api = "AscendAntiQuant";
    constexpr bool is_packed = ascendc_host::is_packed<U>;
    static_assert((is_packed || std::is_same<U, int8_t>::value) && is_one_of<T, half, bfloat16_t>,
                  "AscendAntiQuant on the host is from int8_t or int4b_t to half or bfloat16_t");
    static_assert(!is_packed || ascendc_host::npu_architecture != 3510,
                  "AscendAntiQuant: dav-3510 does not have int4b_t");
    constexpr uint32_t whole = ascendc_host::elements_of<U>(ONE_BLK_SIZE);
    const auto& block = ascendc_host::enter(where);
    const uint32_t size = src.GetSize();
    if (k == 0 || size == 0 || size % k != 0 || size % whole != 0 || (isTranspose && k % whole != 0)) {
        ascendc_host::fail(
            block, where,
            ascendc_host::format("AscendAntiQuant: %u elements with k = %u; the source is whole blocks "
                                 "of 32 bytes and a multiple of k, and k, transposed, too",
                                 size, k));
    }
    using Step = std::conditional_t<std::is_same<T, half>::value, half, float>;
    const uint32_t columns = isTranspose ? k : size / k;
    const U* from = vector_operand<true>(src, ascendc_host::bytes_of<U>(size), api, "src", where);
    T* to = vector_operand(dst, uint64_t(size) * sizeof(T), api, "dst", where);
    ascendc_host::require_apart(api, {"dst", to, uint64_t(size) * sizeof(T)},
                                {"src", from, ascendc_host::bytes_of<U>(size)}, where);
    for (uint32_t i = 0; i < size; ++i) {
        const uint32_t row = i / columns, column = i % columns;
        const auto shifted = static_cast<Step>(
            static_cast<float>(static_cast<int8_t>(ascendc_host::element<U>(from, i))) + offset(row, column));
        to[i] = static_cast<T>(static_cast<float>(shifted) * scale(row, column));
    }
}

// The shape that a tensor of groups has; another's, where it says none.
template <typename T>
std::pair<uint32_t, uint32_t> group_shape(const LocalTensor<T>& values, uint32_t height, uint32_t width,
                                          std::pair<uint32_t, uint32_t> other = {0, 0}) {
    if (height != 0 && width != 0) return {height, width};
    const ShapeInfo shape = values.GetShapeInfo();
    return shape.shapeDim == 2 ? std::pair<uint32_t, uint32_t>(shape.shape[0], shape.shape[1]) : other;
}

// The element of a group of rows, or transposed of columns.
template <bool isTranspose, typename T>
auto by_group(const LocalTensor<T>& values, std::pair<uint32_t, uint32_t> shape, uint32_t size, uint32_t k,
              const char* name, const Where& where) {
    const auto [height, width] = shape;
    const uint32_t n = k == 0 ? 0 : size / k;
    const uint32_t groups = isTranspose ? width : height, rest = isTranspose ? height : width;
    if (groups == 0 || k % groups != 0 || rest != n) {
        ascendc_host::fail(
            ascendc_host::enter(where), where,
            ascendc_host::format(
                "AscendAntiQuant: %s of %u rows and %u columns for a source with k = %u and n = %u; "
                "along n it is as long, along k its length divides k: say it in shapeInfo, or with "
                "SetShapeInfo",
                name, height, width, k, n));
    }
    const T* at =
        vector_operand(values, uint64_t(height) * width * sizeof(T), "AscendAntiQuant", name, where);
    const uint32_t group = k / groups, pitch = width;
    return [at, group, pitch](uint32_t row, uint32_t column) -> float {
        const uint32_t at_row = isTranspose ? row : row / group;
        return static_cast<float>(at[at_row * pitch + (isTranspose ? column / group : column)]);
    };
}
inline auto everywhere(float value) {
    return [value](uint32_t, uint32_t) { return value; };
}

}  // namespace detail

// Each form with and without temporary space: an offset and a scale for each channel, the scale alone, one of
// both.
#define ASCENDC_ANTIQUANT(Name, ...)                                                                     \
    template <typename InputDataType, typename OutputDataType, bool isTranspose>                         \
    void Name(const LocalTensor<OutputDataType>& dst, const LocalTensor<InputDataType>& src,             \
              const LocalTensor<OutputDataType>& offset,                                                 \
              const LocalTensor<OutputDataType>& scale __VA_ARGS__, const uint32_t k,                    \
              const AntiQuantShapeInfo& shapeInfo = {}, Where where = Where()) {                         \
        const auto shape = detail::group_shape(offset, shapeInfo.offsetHeight, shapeInfo.offsetWidth);   \
        const auto own = detail::group_shape(scale, shapeInfo.scaleHeight, shapeInfo.scaleWidth, shape); \
        const auto offsets =                                                                             \
            detail::by_group<isTranspose>(offset, shape, src.GetSize(), k, "offset", where);             \
        const auto scales = detail::by_group<isTranspose>(scale, own, src.GetSize(), k, "scale", where); \
        detail::antiquantize<InputDataType, OutputDataType, isTranspose>(dst, src, k, where, offsets,    \
                                                                         scales);                        \
    }                                                                                                    \
    template <typename InputDataType, typename OutputDataType, bool isTranspose>                         \
    void Name(const LocalTensor<OutputDataType>& dst, const LocalTensor<InputDataType>& src,             \
              const OutputDataType offset, const OutputDataType scale __VA_ARGS__, const uint32_t k,     \
              const AntiQuantShapeInfo& = {}, Where where = Where()) {                                   \
        detail::antiquantize<InputDataType, OutputDataType, isTranspose>(                                \
            dst, src, k, where, detail::everywhere(static_cast<float>(offset)),                          \
            detail::everywhere(static_cast<float>(scale)));                                              \
    }
ASCENDC_ANTIQUANT(AscendAntiQuant)
ASCENDC_ANTIQUANT(AscendAntiQuant, , const LocalTensor<uint8_t>&)
#undef ASCENDC_ANTIQUANT
template <typename InputDataType, typename OutputDataType, bool isTranspose>
void AscendAntiQuant(const LocalTensor<OutputDataType>& dst, const LocalTensor<InputDataType>& src,
                     const LocalTensor<OutputDataType>& scale, const LocalTensor<uint8_t>&, const uint32_t k,
                     const AntiQuantShapeInfo& shapeInfo = {}, Where where = Where()) {
    detail::antiquantize<InputDataType, OutputDataType, isTranspose>(
        dst, src, k, where, detail::everywhere(0),
        detail::by_group<isTranspose>(scale,
                                      detail::group_shape(scale, shapeInfo.scaleHeight, shapeInfo.scaleWidth),
                                      src.GetSize(), k, "scale", where));
}
template <typename InputDataType, typename OutputDataType, bool isTranspose>
void AscendAntiQuant(const LocalTensor<OutputDataType>& dst, const LocalTensor<InputDataType>& src,
                     const OutputDataType scale, const LocalTensor<uint8_t>&, const uint32_t k,
                     const AntiQuantShapeInfo& = {}, Where where = Where()) {
    detail::antiquantize<InputDataType, OutputDataType, isTranspose>(
        dst, src, k, where, detail::everywhere(0), detail::everywhere(static_cast<float>(scale)));
}

}  // namespace AscendC

#endif  // ASCENDC_HOST_ADV_API_QUANTIZATION_ANTIQUANTIZATION_H
