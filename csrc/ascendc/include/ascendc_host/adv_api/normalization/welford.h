// Mean and variance of rows that are read in blocks, by Welford's method, and the normalization with them.
#ifndef ASCENDC_HOST_ADV_API_NORMALIZATION_WELFORD_H
#define ASCENDC_HOST_ADV_API_NORMALIZATION_WELFORD_H

#include <cmath>
#include <vector>

#include "ascendc_host/adv_api/reduce/reduce_pattern.h"
#include "ascendc_host/internal/sizes.h"

namespace AscendC {

struct WelfordUpdateConfig {
    bool isInplace = false;  // what is not computed is what it was before
};
constexpr WelfordUpdateConfig WFUPDATE_DEFAULT_CFG = {false};
struct WelfordUpdateParam {
    uint32_t rnLength;
    uint32_t abLength;
    uint32_t abComputeLength;
    float nRec;
};
struct WelfordFinalizePara {
    uint32_t rnLength;
    uint32_t abLength;
    uint32_t headCount;
    uint32_t headCountLength;
    uint32_t tailCount;
    uint32_t tailCountLength;
    float abRec;
    float rRec;
};

// One block more: mean += (x - mean) / n for each element, and what is summed for the variance with it.
template <typename T, typename U, bool isReuseSource = false,
          const WelfordUpdateConfig& config = WFUPDATE_DEFAULT_CFG>
void WelfordUpdate(const LocalTensor<U>& outputMean, const LocalTensor<U>& outputVariance,
                   const LocalTensor<U>& inputMean, const LocalTensor<U>& inputVariance,
                   const LocalTensor<T>& inputX, const WelfordUpdateParam& para, Where where = Where()) {
    constexpr const char* api = "WelfordUpdate";
    static_assert(detail::is_one_of<T, half, float> && std::is_same<U, float>::value,
                  "WelfordUpdate is for half and float, with means of float");
    const auto& block = ascendc_host::enter(where);
    const uint32_t size = para.abLength, count = para.abComputeLength;
    if (para.rnLength != 1 || size == 0 || size * sizeof(T) % ONE_BLK_SIZE != 0 || count == 0 ||
        count > size) {
        ascendc_host::fail(
            block, where,
            ascendc_host::format("WelfordUpdate: rnLength %u, abLength %u, abComputeLength %u; valid: 1, "
                                 "whole blocks of 32 bytes, and 1 to abLength",
                                 para.rnLength, size, count));
    }
    const T* x = detail::vector_operand(inputX, uint64_t(size) * sizeof(T), api, "inputX", where);
    const float* mean = detail::vector_operand(inputMean, uint64_t(size) * 4, api, "inputMean", where);
    const float* sum = detail::vector_operand(inputVariance, uint64_t(size) * 4, api, "inputVariance", where);
    float* new_mean = detail::vector_operand(outputMean, uint64_t(size) * 4, api, "outputMean", where);
    float* new_sum = detail::vector_operand(outputVariance, uint64_t(size) * 4, api, "outputVariance", where);
    for (uint32_t i = 0; i < count; ++i) {
        const float value = static_cast<float>(x[i]), distance = value - mean[i], before = sum[i];
        const float found = mean[i] + distance * para.nRec;
        new_mean[i] = found;
        new_sum[i] = before + distance * (value - found);
    }
    if constexpr (config.isInplace) {
        std::copy(mean + count, mean + size, new_mean + count);
        std::copy(sum + count, sum + size, new_sum + count);
    }
}
template <typename T, typename U, bool isReuseSource = false,
          const WelfordUpdateConfig& config = WFUPDATE_DEFAULT_CFG>
void WelfordUpdate(const LocalTensor<U>& outputMean, const LocalTensor<U>& outputVariance,
                   const LocalTensor<U>& inputMean, const LocalTensor<U>& inputVariance,
                   const LocalTensor<T>& inputX, const LocalTensor<uint8_t>&, const WelfordUpdateParam& para,
                   Where where = Where()) {
    WelfordUpdate<T, U, isReuseSource, config>(outputMean, outputVariance, inputMean, inputVariance, inputX,
                                               para, where);
}

namespace detail {

// The mean and the variance of all from those of the elements of a block, each of which stands for count(i).
template <typename Count>
void finish_welford(const LocalTensor<float>& outputMean, const LocalTensor<float>& outputVariance,
                    const LocalTensor<float>& inputMean, const LocalTensor<float>& inputVariance,
                    const WelfordFinalizePara& para, const Where& where, const Count& count) {
    constexpr const char* api = "WelfordFinalize";
    const uint32_t size = para.abLength;
    const auto& block = ascendc_host::enter(where);
    if (size == 0 || size * sizeof(float) % ONE_BLK_SIZE != 0 ||
        para.headCountLength + para.tailCountLength != size ||
        (para.tailCount == 0 && para.tailCountLength != 0)) {
        ascendc_host::fail(
            block, where,
            ascendc_host::format(
                "WelfordFinalize: abLength %u, headCountLength %u, tailCountLength %u, tailCount %u; "
                "the first is whole blocks of 32 bytes and the sum of the others, and without a "
                "tailCount the tail has no length",
                size, para.headCountLength, para.tailCountLength, para.tailCount));
    }
    const float* means = vector_operand(inputMean, uint64_t(size) * 4, api, "inputMean", where);
    const float* sums = vector_operand(inputVariance, uint64_t(size) * 4, api, "inputVariance", where);
    std::vector<float> terms(size);
    for (uint32_t i = 0; i < size; ++i) terms[i] = means[i] * count(i) * para.rRec;
    const float mean = pairwise_sum(terms.data(), size);
    float* to_mean = vector_operand(outputMean, sizeof(float), api, "outputMean", where);
    float* to_variance = vector_operand(outputVariance, sizeof(float), api, "outputVariance", where);
    ascendc_host::require_apart(
        api, {{"outputMean", to_mean, sizeof(float)}, {"outputVariance", to_variance, sizeof(float)}},
        {{"inputMean", means, uint64_t(size) * 4}, {"inputVariance", sums, uint64_t(size) * 4}}, where);
    for (uint32_t i = 0; i < size; ++i)
        terms[i] = (sums[i] + count(i) * (means[i] - mean) * (means[i] - mean)) * para.rRec;
    *to_mean = mean;
    *to_variance = pairwise_sum(terms.data(), size);
}

}  // namespace detail

// How many each element stands for: `counts` says it, or the head and the tail of the block, or, without a
// tail, it is the number of blocks.
template <bool isReuseSource = false>
void WelfordFinalize(const LocalTensor<float>& outputMean, const LocalTensor<float>& outputVariance,
                     const LocalTensor<float>& inputMean, const LocalTensor<float>& inputVariance,
                     const LocalTensor<int32_t>& counts, const WelfordFinalizePara& para,
                     Where where = Where()) {
    const int32_t* each =
        detail::vector_operand(counts, uint64_t(para.abLength) * 4, "WelfordFinalize", "counts", where);
    detail::finish_welford(outputMean, outputVariance, inputMean, inputVariance, para, where,
                           [each](uint32_t i) { return static_cast<float>(each[i]); });
}
template <bool isReuseSource = false>
void WelfordFinalize(const LocalTensor<float>& outputMean, const LocalTensor<float>& outputVariance,
                     const LocalTensor<float>& inputMean, const LocalTensor<float>& inputVariance,
                     const LocalTensor<int32_t>& counts, const LocalTensor<uint8_t>&,
                     const WelfordFinalizePara& para, Where where = Where()) {
    WelfordFinalize<isReuseSource>(outputMean, outputVariance, inputMean, inputVariance, counts, para, where);
}
template <bool isReuseSource = false>
void WelfordFinalize(const LocalTensor<float>& outputMean, const LocalTensor<float>& outputVariance,
                     const LocalTensor<float>& inputMean, const LocalTensor<float>& inputVariance,
                     const WelfordFinalizePara& para, Where where = Where()) {
    detail::finish_welford(
        outputMean, outputVariance, inputMean, inputVariance, para, where, [&para](uint32_t i) {
            if (para.tailCount == 0) return static_cast<float>(para.rnLength);
            return static_cast<float>(i < para.headCountLength ? para.headCount : para.tailCount);
        });
}
template <bool isReuseSource = false>
void WelfordFinalize(const LocalTensor<float>& outputMean, const LocalTensor<float>& outputVariance,
                     const LocalTensor<float>& inputMean, const LocalTensor<float>& inputVariance,
                     const LocalTensor<uint8_t>&, const WelfordFinalizePara& para, Where where = Where()) {
    WelfordFinalize<isReuseSource>(outputMean, outputVariance, inputMean, inputVariance, para, where);
}

struct NormalizeConfig {
    ReducePattern reducePattern = ReducePattern::AR;
    int32_t aLength = -1;
    bool isNoBeta = false;
    bool isNoGamma = false;
    bool isOnlyOutput = false;
};
constexpr NormalizeConfig NLCFG_NORM = {ReducePattern::AR, -1, false, false, false};
struct NormalizePara {
    uint32_t aLength;
    uint32_t rLength;
    uint32_t rLengthWithPadding;
};

// output = (x - mean) * rstd * gamma + beta of the rows of [a, r], whose means and variances are known.
template <typename U, typename T, bool isReuseSource = false, const NormalizeConfig& config = NLCFG_NORM>
void Normalize(const LocalTensor<T>& output, const LocalTensor<float>& outputRstd,
               const LocalTensor<float>& inputMean, const LocalTensor<float>& inputVariance,
               const LocalTensor<T>& inputX, const LocalTensor<U>& gamma, const LocalTensor<U>& beta,
               const float epsilon, const NormalizePara& para, Where where = Where()) {
    constexpr const char* api = "Normalize";
    static_assert(
        detail::is_one_of<T, half, float> && detail::is_one_of<U, half, float> && sizeof(U) >= sizeof(T),
        "Normalize is for half and float; gamma and beta must not be narrower than the rows");
    static_assert(config.reducePattern == ReducePattern::AR, "Normalize is along rows: ReducePattern::AR");
    const auto& block = ascendc_host::enter(where);
    const uint64_t rows = para.aLength, count = para.rLength, width = para.rLengthWithPadding;
    if (rows == 0 || count == 0 || count > width || width * sizeof(T) % ONE_BLK_SIZE != 0) {
        ascendc_host::fail(
            block, where,
            ascendc_host::format("Normalize: aLength %u, rLength %u, rLengthWithPadding %u; none is 0, "
                                 "and the last is whole blocks of 32 bytes, no less than the second",
                                 para.aLength, para.rLength, para.rLengthWithPadding));
    }
    const T* x = detail::vector_operand(inputX, rows * width * sizeof(T), api, "inputX", where);
    const float* means = detail::vector_operand(inputMean, rows * 4, api, "inputMean", where);
    const float* variances = detail::vector_operand(inputVariance, rows * 4, api, "inputVariance", where);
    const U* scale =
        config.isNoGamma ? nullptr : detail::vector_operand(gamma, count * sizeof(U), api, "gamma", where);
    const U* shift =
        config.isNoBeta ? nullptr : detail::vector_operand(beta, count * sizeof(U), api, "beta", where);
    T* y = detail::vector_operand(output, rows * width * sizeof(T), api, "output", where);
    float* reciprocals = config.isOnlyOutput
                             ? nullptr
                             : detail::vector_operand(outputRstd, rows * 4, api, "outputRstd", where);
    for (uint64_t row = 0; row < rows; ++row, x += width, y += width) {
        const float rstd = 1.0f / std::sqrt(variances[row] + epsilon);
        for (uint64_t i = 0; i < count; ++i) {
            float value = (static_cast<float>(x[i]) - means[row]) * rstd;
            if (scale != nullptr) value *= static_cast<float>(scale[i]);
            if (shift != nullptr) value += static_cast<float>(shift[i]);
            y[i] = static_cast<T>(value);
        }
        if (reciprocals != nullptr) reciprocals[row] = rstd;
    }
}
template <typename U, typename T, bool isReuseSource = false, const NormalizeConfig& config = NLCFG_NORM>
void Normalize(const LocalTensor<T>& output, const LocalTensor<float>& outputRstd,
               const LocalTensor<float>& inputMean, const LocalTensor<float>& inputVariance,
               const LocalTensor<T>& inputX, const LocalTensor<U>& gamma, const LocalTensor<U>& beta,
               const LocalTensor<uint8_t>&, const float epsilon, const NormalizePara& para,
               Where where = Where()) {
    Normalize<U, T, isReuseSource, config>(output, outputRstd, inputMean, inputVariance, inputX, gamma, beta,
                                           epsilon, para, where);
}

}  // namespace AscendC

#endif  // ASCENDC_HOST_ADV_API_NORMALIZATION_WELFORD_H
