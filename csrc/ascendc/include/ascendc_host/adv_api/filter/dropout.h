// Elements kept and elements dropped by a mask.
#ifndef ASCENDC_HOST_ADV_API_FILTER_DROPOUT_H
#define ASCENDC_HOST_ADV_API_FILTER_DROPOUT_H

#include "ascendc_host/adv_api/reduce/reduce_pattern.h"

namespace AscendC {

// Modes of DropOut; rows of a misaligned mask end in bytes that do not count. 0 takes the one that fits the
// sizes.
constexpr uint32_t DROPOUT_MODE_BYTE_MISALIGN = 1;
constexpr uint32_t DROPOUT_MODE_BYTE_ALIGN = 2;
constexpr uint32_t DROPOUT_MODE_BIT_ALIGN = 3;
constexpr uint32_t DROPOUT_MODE_BIT_MISALIGN = 4;

// Rows of `srcLastAxis` elements, and of `maskLastAxis` bytes of the mask.
struct DropOutShapeInfo {
    DropOutShapeInfo() {}
    uint32_t firstAxis = 0;
    uint32_t srcLastAxis = 0;
    uint32_t maskLastAxis = 0;
};

namespace detail {

inline uint32_t infer_dropout_mode(const DropOutShapeInfo& info) {
    if (info.maskLastAxis == info.srcLastAxis) return DROPOUT_MODE_BYTE_ALIGN;
    if (info.maskLastAxis > info.srcLastAxis) return DROPOUT_MODE_BYTE_MISALIGN;
    return uint64_t(info.maskLastAxis) * 8 == info.srcLastAxis ? DROPOUT_MODE_BIT_ALIGN
                                                               : DROPOUT_MODE_BIT_MISALIGN;
}

}  // namespace detail

// dst = src / keepProb where the mask says so, and 0 elsewhere. The mask has a byte for each element, or a
// bit, the lowest of a byte first.
template <typename T, bool isInitBitMode = false, uint32_t dropOutMode = 0>
void DropOut(const LocalTensor<T>& dstLocal, const LocalTensor<T>& srcLocal,
             const LocalTensor<uint8_t>& maskLocal, const float keepProb, const DropOutShapeInfo& info,
             Where where = Where()) {
    constexpr const char* api = "DropOut";
    static_assert(detail::is_one_of<T, half, float>, "DropOut is for half and float");
    static_assert(dropOutMode <= DROPOUT_MODE_BIT_MISALIGN, "DropOut's modes are 0 to 4");
    const auto& block = ascendc_host::enter(where);
    if (!(keepProb > 0 && keepProb < 1)) {
        ascendc_host::fail(block, where,
                           ascendc_host::format("DropOut: keepProb is %g; it lies between 0 and 1",
                                                static_cast<double>(keepProb)));
    }
    const uint32_t mode = dropOutMode == 0 ? detail::infer_dropout_mode(info) : dropOutMode;
    const bool bits = mode == DROPOUT_MODE_BIT_ALIGN || mode == DROPOUT_MODE_BIT_MISALIGN;
    const uint64_t columns = info.srcLastAxis, needed = bits ? (columns + 7) / 8 : columns;
    const bool padded = mode == DROPOUT_MODE_BYTE_MISALIGN || mode == DROPOUT_MODE_BIT_MISALIGN;
    if (info.firstAxis == 0 || columns == 0 || info.maskLastAxis < needed ||
        (!padded && info.maskLastAxis != needed) || (padded && needed % 2 != 0)) {
        ascendc_host::fail(
            block, where,
            ascendc_host::format(
                "DropOut: %u rows of %u elements with %u bytes of the mask each, mode %u; no size "
                "is 0, a row of the mask has a %s for each element, and is longer only in the "
                "modes 1 and 4, where an even number of its bytes counts",
                info.firstAxis, info.srcLastAxis, info.maskLastAxis, mode, bits ? "bit" : "byte"));
    }
    const uint64_t size = info.firstAxis * columns;
    const T* from = detail::vector_operand(srcLocal, size * sizeof(T), api, "src", where);
    const uint8_t* mask =
        detail::vector_operand(maskLocal, uint64_t(info.firstAxis) * info.maskLastAxis, api, "mask", where);
    T* to = detail::vector_operand(dstLocal, size * sizeof(T), api, "dst", where);
    const float scale = static_cast<T>(1.0f / keepProb);
    for (uint64_t i = 0; i < size; ++i) {
        const uint8_t* row = mask + i / columns * info.maskLastAxis;
        const uint64_t column = i % columns;
        const bool kept = bits ? (row[column / 8] >> column % 8 & 1) != 0 : row[column] != 0;
        to[i] = kept ? static_cast<T>(static_cast<float>(from[i]) * scale) : T(0);
    }
}
template <typename T, bool isInitBitMode = false, uint32_t dropOutMode = 0>
void DropOut(const LocalTensor<T>& dstLocal, const LocalTensor<T>& srcLocal,
             const LocalTensor<uint8_t>& maskLocal, const LocalTensor<uint8_t>&, const float keepProb,
             const DropOutShapeInfo& info, Where where = Where()) {
    DropOut<T, isInitBitMode, dropOutMode>(dstLocal, srcLocal, maskLocal, keepProb, info, where);
}

// What DropOut with isInitBitMode leaves to its caller: an empty mask of comparisons, and all lanes.
template <typename T>
void DropOutBitModeInit(const LocalTensor<T>& sharedTmpBuffer, Where where = Where()) {
    ascendc_host::enter(where);
    std::memset(detail::vector_operand(sharedTmpBuffer, 256, "DropOutBitModeInit", "sharedTmpBuffer", where),
                0, 256);
    ResetMask();
    std::memset(ascendc_host::current().compare_mask, 0, sizeof ascendc_host::current().compare_mask);
}
inline void DropOutBitModeInit(Where where = Where()) {
    auto& block = ascendc_host::enter(where);
    ResetMask();
    std::memset(block.compare_mask, 0, sizeof block.compare_mask);
}

}  // namespace AscendC

#endif  // ASCENDC_HOST_ADV_API_FILTER_DROPOUT_H
