// Normalisations of rows, and sums along them: their tiling says how long a row is.
#ifndef ASCENDC_HOST_NORMALIZATION_H
#define ASCENDC_HOST_NORMALIZATION_H

#include <cmath>
#include <vector>

#include "../kernel_tiling/kernel_tiling.h"
#include "patterns.h"
#include "reduce.h"

namespace AscendC {
namespace detail {

// Rows of hLength elements, of which originalHLength count.
template <typename Tiling>
uint64_t rows_of_tiling(const Tiling& tiling, const char* api, const Where& where) {
    const auto& block = ascendc_host::enter(where);
    if (tiling.hLength == 0 || tiling.originalHLength == 0 || tiling.originalHLength > tiling.hLength) {
        ascendc_host::fail(
            block, where,
            ascendc_host::format(
                "%s: tiling with rows of %u elements of which %u count; fill it with Get%s…TilingInfo", api,
                tiling.hLength, tiling.originalHLength, api));
    }
    return uint64_t(tiling.bLength) * tiling.sLength;
}
template <typename T>
float mean_of_squares(const T* row, uint32_t count, float around) {
    std::vector<float> squares(count);
    for (uint32_t i = 0; i < count; ++i) {
        const float distance = static_cast<float>(row[i]) - around;
        squares[i] = distance * distance;
    }
    return pairwise_sum(squares.data(), count) / static_cast<float>(count);
}

}  // namespace detail

// output = (x - mean) / sqrt(variance + epsilon) * gamma + beta of each row of [b, s, h], with its mean and
// its variance, which is that of the elements themselves (divided by h).
template <typename T, bool isReuseSource = false>
void LayerNorm(const LocalTensor<T>& output, const LocalTensor<T>& outputMean,
               const LocalTensor<T>& outputVariance, const LocalTensor<T>& inputX,
               const LocalTensor<T>& gamma, const LocalTensor<T>& beta, const detail::Same<T> epsilon,
               const LayerNormTiling& tiling, Where where = Where()) {
    constexpr const char* api = "LayerNorm";
    static_assert(detail::is_one_of<T, half, float>, "LayerNorm is for half and float");
    const uint64_t rows = detail::rows_of_tiling(tiling, api, where);
    const uint32_t width = tiling.hLength, count = tiling.originalHLength;
    const T* x = detail::vector_operand(inputX, rows * width * sizeof(T), api, "inputX", where);
    const T* scale = detail::vector_operand(gamma, count * sizeof(T), api, "gamma", where);
    const T* offset = detail::vector_operand(beta, count * sizeof(T), api, "beta", where);
    T* y = detail::vector_operand(output, rows * width * sizeof(T), api, "output", where);
    T* means = detail::vector_operand(outputMean, rows * sizeof(T), api, "outputMean", where);
    T* variances = detail::vector_operand(outputVariance, rows * sizeof(T), api, "outputVariance", where);
    for (uint64_t row = 0; row < rows; ++row, x += width, y += width) {
        const std::vector<float> values(x, x + count);
        const float mean = detail::pairwise_sum(values.data(), count) / static_cast<float>(count);
        const float variance = detail::mean_of_squares(values.data(), count, mean);
        const float factor = 1.0f / std::sqrt(variance + static_cast<float>(epsilon));
        for (uint32_t i = 0; i < count; ++i)
            y[i] = static_cast<T>((values[i] - mean) * factor * static_cast<float>(scale[i]) +
                                  static_cast<float>(offset[i]));
        means[row] = static_cast<T>(mean);
        variances[row] = static_cast<T>(variance);
    }
}
template <typename T, bool isReuseSource = false>
void LayerNorm(const LocalTensor<T>& output, const LocalTensor<T>& outputMean,
               const LocalTensor<T>& outputVariance, const LocalTensor<T>& inputX,
               const LocalTensor<T>& gamma, const LocalTensor<T>& beta, const LocalTensor<uint8_t>&,
               const detail::Same<T> epsilon, const LayerNormTiling& tiling, Where where = Where()) {
    LayerNorm<T, isReuseSource>(output, outputMean, outputVariance, inputX, gamma, beta, epsilon, tiling,
                                where);
}

// dst = src / sqrt(mean of the squares + epsilon) * gamma of each row of [b, s, h].
template <typename T, bool isBasicBlock = false>
void RmsNorm(const LocalTensor<T>& dstLocal, const LocalTensor<T>& srcLocal, const LocalTensor<T>& gammaLocal,
             const detail::Same<T> epsilon, const RmsNormTiling& tiling, Where where = Where()) {
    constexpr const char* api = "RmsNorm";
    static_assert(detail::is_one_of<T, half, float>, "RmsNorm is for half and float");
    const uint64_t rows = detail::rows_of_tiling(tiling, api, where);
    const uint32_t width = tiling.hLength, count = tiling.originalHLength;
    const T* x = detail::vector_operand(srcLocal, rows * width * sizeof(T), api, "srcLocal", where);
    const T* scale = detail::vector_operand(gammaLocal, count * sizeof(T), api, "gammaLocal", where);
    T* y = detail::vector_operand(dstLocal, rows * width * sizeof(T), api, "dstLocal", where);
    for (uint64_t row = 0; row < rows; ++row, x += width, y += width) {
        const float factor =
            1.0f / std::sqrt(detail::mean_of_squares(x, count, 0) + static_cast<float>(epsilon));
        for (uint32_t i = 0; i < count; ++i)
            y[i] = static_cast<T>(static_cast<float>(x[i]) * factor * static_cast<float>(scale[i]));
    }
}
template <typename T, bool isBasicBlock = false>
void RmsNorm(const LocalTensor<T>& dstLocal, const LocalTensor<T>& srcLocal, const LocalTensor<T>& gammaLocal,
             const LocalTensor<uint8_t>&, const detail::Same<T> epsilon, const RmsNormTiling& tiling,
             Where where = Where()) {
    RmsNorm<T, isBasicBlock>(dstLocal, srcLocal, gammaLocal, epsilon, tiling, where);
}

struct CumSumConfig {
    bool isLastAxis = true;
    bool isReuseSource = false;
    bool outputLastRow = true;
};
constexpr CumSumConfig defaultCumSumConfig = {true, false, true};
struct CumSumInfo {
    uint32_t outter = 0;
    uint32_t inner = 0;
};

// dst = the running sums of [outter, inner] along its rows, or down its columns; `lastRow` is the last row of
// them.
template <typename T, const CumSumConfig& config = defaultCumSumConfig>
void CumSum(const LocalTensor<T>& dst, const LocalTensor<T>& lastRow, const LocalTensor<T>& src,
            const CumSumInfo& info, Where where = Where()) {
    constexpr const char* api = "CumSum";
    static_assert(detail::is_one_of<T, half, float>, "CumSum is for half and float");
    const auto& block = ascendc_host::enter(where);
    const uint64_t size = uint64_t(info.outter) * info.inner;
    if (size == 0 || info.inner * sizeof(T) % ONE_BLK_SIZE != 0) {
        ascendc_host::fail(
            block, where,
            ascendc_host::format(
                "CumSum: %u rows of %u elements; neither can be 0, and a row is whole blocks of 32 bytes",
                info.outter, info.inner));
    }
    const T* from = detail::vector_operand(src, size * sizeof(T), api, "srcTensor", where);
    T* to = detail::vector_operand(dst, size * sizeof(T), api, "dstTensor", where);
    std::vector<float> sums(config.isLastAxis ? 1 : info.inner);
    for (uint64_t at = 0; at < size; ++at) {
        const uint64_t column = at % info.inner;
        float& sum = sums[config.isLastAxis ? 0 : column];
        if (config.isLastAxis && column == 0) sum = 0;
        sum += static_cast<float>(from[at]);
        to[at] = static_cast<T>(sum);
    }
    if constexpr (config.outputLastRow) {
        std::copy_n(to + size - info.inner, info.inner,
                    detail::vector_operand(lastRow, info.inner * sizeof(T), api, "lastRowTensor", where));
    }
}
template <typename T, const CumSumConfig& config = defaultCumSumConfig>
void CumSum(const LocalTensor<T>& dst, const LocalTensor<T>& lastRow, const LocalTensor<T>& src,
            const LocalTensor<uint8_t>&, const CumSumInfo& info, Where where = Where()) {
    CumSum<T, config>(dst, lastRow, src, info, where);
}

}  // namespace AscendC

#endif  // ASCENDC_HOST_NORMALIZATION_H
