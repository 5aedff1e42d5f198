// SelectWithBytesMask: the elements of a tensor or a scalar, by the bytes of a mask.
#ifndef ASCENDC_HOST_ADV_API_SELECT_SELECT_H
#define ASCENDC_HOST_ADV_API_SELECT_SELECT_H

#include "ascendc_host/basic_api/compare.h"

namespace AscendC {

// Rows of a tensor and of its mask: what the mask's rows are longer by does not count.
struct SelectWithBytesMaskShapeInfo {
    uint32_t firstAxis = 0;
    uint32_t srcLastAxis = 0;
    uint32_t maskLastAxis = 0;
};

namespace detail {
template <typename T, typename U, typename Choice>
void select_by_bytes(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<U>& mask,
                     const SelectWithBytesMaskShapeInfo& info, const Where& where, const Choice& choose) {
    static_assert(std::is_same<T, half>::value || std::is_same<T, float>::value,
                  "SelectWithBytesMask is for half and float");
    static_assert(std::is_integral<U>::value && sizeof(U) <= 4,
                  "SelectWithBytesMask takes masks of bool and of integers of 8, 16 and 32 bits");
    constexpr const char* api = "SelectWithBytesMask";
    const auto& block = ascendc_host::enter(where);
    const uint64_t rows = info.firstAxis, columns = info.srcLastAxis, pitch = info.maskLastAxis;
    if (columns * sizeof(T) % ONE_BLK_SIZE != 0 || pitch * sizeof(U) % ONE_BLK_SIZE != 0 || pitch % 16 != 0 ||
        pitch < columns) {
        ascendc_host::fail(
            block, where,
            ascendc_host::format("%s: rows of %u elements and of %u in the mask; both are multiples of 32 "
                                 "bytes, the mask's of 16 elements too, and not shorter",
                                 api, info.srcLastAxis, info.maskLastAxis));
    }
    const T* from = vector_operand(src, rows * columns * sizeof(T), api, "src", where);
    const U* masks = vector_operand(mask, rows * pitch * sizeof(U), api, "mask", where);
    T* to = vector_operand(dst, rows * columns * sizeof(T), api, "dst", where);
    for (uint64_t row = 0; row < rows; ++row) {
        for (uint64_t i = 0; i < columns; ++i) {
            to[row * columns + i] = choose(masks[row * pitch + i] != U(0), from[row * columns + i]);
        }
    }
}
}  // namespace detail

// dst[i] = mask[i] ? src1 : src0; one of the two is a scalar.
#define ASCENDC_SELECT_BY_BYTES(Name)                                                              \
    template <typename T, typename U, bool isReuseMask = true>                                     \
    void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const detail::Same<T> src1,   \
              const LocalTensor<U>& mask, const LocalTensor<uint8_t>&,                             \
              const SelectWithBytesMaskShapeInfo& info, Where where = Where()) {                   \
        detail::select_by_bytes(dst, src0, mask, info, where,                                      \
                                [src1](bool second, T tensor) { return second ? src1 : tensor; }); \
    }                                                                                              \
    template <typename T, typename U, bool isReuseMask = true>                                     \
    void Name(const LocalTensor<T>& dst, const detail::Same<T> src0, const LocalTensor<T>& src1,   \
              const LocalTensor<U>& mask, const LocalTensor<uint8_t>&,                             \
              const SelectWithBytesMaskShapeInfo& info, Where where = Where()) {                   \
        detail::select_by_bytes(dst, src1, mask, info, where,                                      \
                                [src0](bool second, T tensor) { return second ? tensor : src0; }); \
    }
ASCENDC_SELECT_BY_BYTES(Select)
ASCENDC_SELECT_BY_BYTES(SelectWithBytesMask)
#undef ASCENDC_SELECT_BY_BYTES

}  // namespace AscendC

#endif  // ASCENDC_HOST_ADV_API_SELECT_SELECT_H
