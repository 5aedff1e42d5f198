// The softmax of flash attention: a row in parts, each with the maximum and the sum of those before it.
#ifndef ASCENDC_HOST_SOFTMAX_H
#define ASCENDC_HOST_SOFTMAX_H

#include "math.h"

namespace AscendC {

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

}  // namespace AscendC

#endif  // ASCENDC_HOST_SOFTMAX_H
