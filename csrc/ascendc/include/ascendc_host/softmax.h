// Softmax of rows: of whole ones, and of flash attention, where a row comes in parts, each with the maximum
// and the sum of those before it.
#ifndef ASCENDC_HOST_SOFTMAX_H
#define ASCENDC_HOST_SOFTMAX_H

#include "math.h"

namespace AscendC {

struct SoftMaxShapeInfo {
    uint32_t srcM = 0;
    uint32_t srcK = 0;
    uint32_t oriSrcM = 0;
    uint32_t oriSrcK = 0;
};

namespace detail {
// Rows of `srcK` elements of which `oriSrcK` count; by default the last dimension of the tensor's shape.
template <typename T>
SoftMaxShapeInfo rows_of_tensor(const LocalTensor<T>& src, SoftMaxShapeInfo info) {
    if (info.srcK == 0) {
        const ShapeInfo shape = src.GetShapeInfo();
        info.srcK = shape.shapeDim == 0 ? src.GetSize() : shape.shape[shape.shapeDim - 1];
        info.srcM = info.srcK == 0 ? 0 : src.GetSize() / info.srcK;
        info.oriSrcM = info.srcM;
        info.oriSrcK =
            shape.originalShapeDim == 0 ? info.srcK : shape.originalShape[shape.originalShapeDim - 1];
    }
    return info;
}
}  // namespace detail

// dst = exp(src - max) / sum over each row; `sum` and `max` get the row's value in a whole block of 32 bytes.
template <typename T, typename Tiling, bool isReuseSource = false, bool isBasicBlock = false,
          bool isDataFormatNZ = false>
void SoftMax(const LocalTensor<T>& dst, const LocalTensor<T>& sum, const LocalTensor<T>& max,
             const LocalTensor<T>& src, const LocalTensor<uint8_t>&, const Tiling&,
             const SoftMaxShapeInfo& shape = {}, Where where = Where()) {
    ascendc_host::enter(where);
    const auto rows = detail::rows_of_tensor(src, shape);
    const uint64_t count = uint64_t(rows.srcM) * rows.srcK;
    const T* from = detail::vector_operand(src, count * sizeof(T), "SoftMax", "src", where);
    T* to = detail::vector_operand(dst, count * sizeof(T), "SoftMax", "dst", where);
    constexpr uint32_t width = 32 / sizeof(T);
    T* sums = detail::vector_operand(sum, uint64_t(rows.srcM) * 32, "SoftMax", "sumTensor", where);
    T* maxima = detail::vector_operand(max, uint64_t(rows.srcM) * 32, "SoftMax", "maxTensor", where);
    for (uint32_t row = 0; row < rows.srcM; ++row) {
        std::vector<detail::Wide<T>> values(from + uint64_t(row) * rows.srcK,
                                            from + uint64_t(row) * rows.srcK + rows.oriSrcK);
        if (values.empty()) continue;
        const auto largest = detail::extreme<ReduceType::MAX>(values.data(), values.size()).value;
        for (auto& value : values) value = std::exp(value - largest);
        const auto total = detail::pairwise_sum(values.data(), values.size());
        for (size_t i = 0; i < values.size(); ++i)
            to[uint64_t(row) * rows.srcK + i] = static_cast<T>(values[i] / total);
        std::fill_n(sums + row * width, width, static_cast<T>(total));
        std::fill_n(maxima + row * width, width, static_cast<T>(largest));
    }
}
template <typename T, bool isReuseSource = false, bool isBasicBlock = false, bool isDataFormatNZ = false,
          typename Tiling = int>
void SoftMax(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<uint8_t>&, const Tiling&,
             const SoftMaxShapeInfo& shape = {}, Where where = Where()) {
    ascendc_host::enter(where);
    const auto rows = detail::rows_of_tensor(src, shape);
    const uint64_t count = uint64_t(rows.srcM) * rows.srcK;
    const T* from = detail::vector_operand(src, count * sizeof(T), "SoftMax", "src", where);
    T* to = detail::vector_operand(dst, count * sizeof(T), "SoftMax", "dst", where);
    for (uint32_t row = 0; row < rows.srcM; ++row) {
        std::vector<detail::Wide<T>> values(from + uint64_t(row) * rows.srcK,
                                            from + uint64_t(row) * rows.srcK + rows.oriSrcK);
        if (values.empty()) continue;
        const auto largest = detail::extreme<ReduceType::MAX>(values.data(), values.size()).value;
        for (auto& value : values) value = std::exp(value - largest);
        const auto total = detail::pairwise_sum(values.data(), values.size());
        for (size_t i = 0; i < values.size(); ++i)
            to[uint64_t(row) * rows.srcK + i] = static_cast<T>(values[i] / total);
    }
}

// --- parts
// ------------------------------------------------------------------------------------------------------------

enum class SoftmaxMode { SOFTMAX_NORMAL = 0, SOFTMAX_OUTPUT_WITHOUT_BRC = 1 };

struct SoftmaxConfig {
    constexpr SoftmaxConfig(bool check, uint32_t m = 0, uint32_t k = 0,
                            SoftmaxMode mode = SoftmaxMode::SOFTMAX_NORMAL)
        : isCheckTiling(check), oriSrcM(m), oriSrcK(k), mode(mode) {}

    bool isCheckTiling = true;
    uint32_t oriSrcM = 0;
    uint32_t oriSrcK = 0;
    SoftmaxMode mode = SoftmaxMode::SOFTMAX_NORMAL;
};
constexpr SoftmaxConfig SOFTMAX_DEFAULT_CFG = {true, 0, 0, SoftmaxMode::SOFTMAX_NORMAL};

namespace detail {

// All rows at once: a tiling of any structure that says nothing.
struct no_tiling {
    template <typename Tiling>
    constexpr operator Tiling() const {
        return Tiling();
    }
};

// dst = exp(src - max) of each row, not divided. `sum` and `max` are those of the row, with `isUpdate` those
// of the parts before it as well; `expMax` is what their results are to be multiplied by then. Per row these
// have a block of 32 bytes, or one element where the mode says so.
template <bool isUpdate, SoftmaxMode mode, typename T, typename S>
void softmax_flash(const LocalTensor<T>& dst, const LocalTensor<S>& sum, const LocalTensor<S>& max,
                   const LocalTensor<T>& src, const LocalTensor<T>& exp_max, const LocalTensor<S>& in_sum,
                   const LocalTensor<S>& in_max, const SoftMaxShapeInfo& shape, const Where& where) {
    constexpr const char* api = "SoftmaxFlashV2";
    ascendc_host::enter(where);
    const auto rows = rows_of_tensor(src, shape);
    const uint64_t count = uint64_t(rows.srcM) * rows.srcK;
    constexpr bool packed = mode == SoftmaxMode::SOFTMAX_OUTPUT_WITHOUT_BRC;
    constexpr uint32_t wide = packed ? 1 : 32 / sizeof(S), narrow = packed ? 1 : 32 / sizeof(T);
    const uint64_t facts = uint64_t(rows.srcM) * wide * sizeof(S);
    const T* from = vector_operand(src, count * sizeof(T), api, "src", where);
    T* to = vector_operand(dst, count * sizeof(T), api, "dst", where);
    S* sums = vector_operand(sum, facts, api, "expSumTensor", where);
    S* maxima = vector_operand(max, facts, api, "maxTensor", where);
    T* factors = nullptr;
    const S *sums_before = nullptr, *maxima_before = nullptr;
    if constexpr (isUpdate) {
        factors =
            vector_operand(exp_max, uint64_t(rows.srcM) * narrow * sizeof(T), api, "expMaxTensor", where);
        sums_before = vector_operand(in_sum, facts, api, "inExpSumTensor", where);
        maxima_before = vector_operand(in_max, facts, api, "inMaxTensor", where);
    }
    for (uint32_t row = 0; row < rows.srcM; ++row) {
        const uint64_t first = uint64_t(row) * rows.srcK;
        std::vector<float> values(from + first, from + first + rows.oriSrcK);
        if (values.empty()) continue;
        float largest = extreme<ReduceType::MAX>(values.data(), values.size()).value;
        float factor = 0, before = 0;
        if constexpr (isUpdate) {
            const float known = static_cast<float>(maxima_before[uint64_t(row) * wide]);
            largest = std::max(largest, known);
            factor = std::exp(known - largest);
            before = static_cast<float>(sums_before[uint64_t(row) * wide]);
        }
        for (float& value : values) value = std::exp(value - largest);
        const float total = pairwise_sum(values.data(), values.size()) + factor * before;
        for (size_t i = 0; i < values.size(); ++i) to[first + i] = static_cast<T>(values[i]);
        std::fill_n(sums + uint64_t(row) * wide, wide, static_cast<S>(total));
        std::fill_n(maxima + uint64_t(row) * wide, wide, static_cast<S>(largest));
        if constexpr (isUpdate) std::fill_n(factors + uint64_t(row) * narrow, narrow, static_cast<T>(factor));
    }
}

}  // namespace detail

constexpr detail::no_tiling SoftMaxFlashV2TilingFunc(const SoftMaxShapeInfo&, uint32_t, uint32_t, uint32_t,
                                                     bool = false, bool = false, bool = false, bool = false) {
    return {};
}

template <typename T, bool isUpdate = false, bool isReuseSource = false, bool isBasicBlock = false,
          bool isDataFormatNZ = false, const SoftmaxConfig& config = SOFTMAX_DEFAULT_CFG, typename S,
          typename Tiling>
void SoftmaxFlashV2(const LocalTensor<T>& dstTensor, const LocalTensor<S>& expSumTensor,
                    const LocalTensor<S>& maxTensor, const LocalTensor<T>& srcTensor,
                    const LocalTensor<T>& expMaxTensor, const LocalTensor<S>& inExpSumTensor,
                    const LocalTensor<S>& inMaxTensor, const Tiling&,
                    const SoftMaxShapeInfo& softmaxShapeInfo = {}, Where where = Where()) {
    static_assert(!isDataFormatNZ, "SoftmaxFlashV2 of the host runtime is for ND");
    detail::softmax_flash<isUpdate, config.mode>(dstTensor, expSumTensor, maxTensor, srcTensor, expMaxTensor,
                                                 inExpSumTensor, inMaxTensor, softmaxShapeInfo, where);
}
template <typename T, bool isUpdate = false, bool isReuseSource = false, bool isBasicBlock = false,
          bool isDataFormatNZ = false, const SoftmaxConfig& config = SOFTMAX_DEFAULT_CFG, typename S,
          typename Tiling>
void SoftmaxFlashV2(const LocalTensor<T>& dstTensor, const LocalTensor<S>& expSumTensor,
                    const LocalTensor<S>& maxTensor, const LocalTensor<T>& srcTensor,
                    const LocalTensor<T>& expMaxTensor, const LocalTensor<S>& inExpSumTensor,
                    const LocalTensor<S>& inMaxTensor, const LocalTensor<uint8_t>&, const Tiling& tiling,
                    const SoftMaxShapeInfo& softmaxShapeInfo = {}, Where where = Where()) {
    SoftmaxFlashV2<T, isUpdate, isReuseSource, isBasicBlock, isDataFormatNZ, config>(
        dstTensor, expSumTensor, maxTensor, srcTensor, expMaxTensor, inExpSumTensor, inMaxTensor, tiling,
        softmaxShapeInfo, where);
}

// Sets the rows whose maximum has the bits `from` to `to`; whether there is one. Each row's maximum is the
// first element of a block of 32 bytes, or with `stepSizeMode` one element.
template <typename T1, typename T2, bool isDataFormatNZ = false, uint8_t stepSizeMode = 0>
bool AdjustSoftMaxRes(const LocalTensor<T1>& softMaxRes, const LocalTensor<T2>& maxTensor,
                      const uint32_t from, const T1 to, const SoftMaxShapeInfo& softMaxShapeInfo,
                      Where where = Where()) {
    static_assert(!isDataFormatNZ, "AdjustSoftMaxRes of the host runtime is for ND");
    static_assert(sizeof(T2) == 2 || sizeof(T2) == 4, "AdjustSoftMaxRes is for half and float");
    ascendc_host::enter(where);
    const auto rows = detail::rows_of_tensor(softMaxRes, softMaxShapeInfo);
    constexpr uint64_t step = stepSizeMode != 0 ? 1 : ONE_BLK_SIZE / sizeof(T2);
    T1* values = detail::vector_operand(softMaxRes, uint64_t(rows.srcM) * rows.srcK * sizeof(T1),
                                        "AdjustSoftMaxRes", "softMaxRes", where);
    const T2* maxima = detail::vector_operand(maxTensor, rows.srcM * step * sizeof(T2), "AdjustSoftMaxRes",
                                              "maxTensor", where);
    bool found = false;
    for (uint64_t row = 0; row < rows.srcM; ++row) {
        std::conditional_t<sizeof(T2) == 2, uint16_t, uint32_t> bits;
        std::memcpy(&bits, maxima + row * step, sizeof bits);
        if (bits != from) continue;
        found = true;
        std::fill_n(values + row * rows.srcK, rows.srcK, to);
    }
    return found;
}

}  // namespace AscendC

#endif  // ASCENDC_HOST_SOFTMAX_H
