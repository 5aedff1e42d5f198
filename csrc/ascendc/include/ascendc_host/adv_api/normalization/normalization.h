// Normalizations of rows: their tiling says how long a row is.
#ifndef ASCENDC_HOST_ADV_API_NORMALIZATION_NORMALIZATION_H
#define ASCENDC_HOST_ADV_API_NORMALIZATION_NORMALIZATION_H

#include <cmath>
#include <vector>

#include "../../../kernel_tiling/kernel_tiling.h"
#include "ascendc_host/adv_api/reduce/reduce_pattern.h"
#include "ascendc_host/basic_api/reduce.h"

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
// (x - mean) / sqrt(variance + epsilon), where the variance is that of the elements themselves.
struct Normalized {
    std::vector<float> values;
    float mean, variance;

    Normalized(std::vector<float> elements, float epsilon) : values(std::move(elements)) {
        const auto count = static_cast<uint32_t>(values.size());
        mean = pairwise_sum(values.data(), count) / static_cast<float>(count);
        variance = mean_of_squares(values.data(), count, mean);
        const float factor = 1.0f / std::sqrt(variance + epsilon);
        for (float& value : values) value = (value - mean) * factor;
    }
};

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
        const detail::Normalized normalized(std::vector<float>(x, x + count), static_cast<float>(epsilon));
        for (uint32_t i = 0; i < count; ++i)
            y[i] = static_cast<T>(normalized.values[i] * static_cast<float>(scale[i]) +
                                  static_cast<float>(offset[i]));
        means[row] = static_cast<T>(normalized.mean);
        variances[row] = static_cast<T>(normalized.variance);
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

// The same of rows [a, r], with the reciprocal of the standard deviation for the variance, unless the
// configuration asks for that.
struct LayerNormPara {
    uint32_t aLength;
    uint32_t rLength;
    uint32_t rLengthWithPadding;
};
struct LayerNormConfig {
    bool isNoBeta = false;
    bool isNoGamma = false;
    bool isOnlyOutput = false;
    bool isOutputRstd = true;
};
constexpr LayerNormConfig LNCFG_NORM = {false, false, false, true};

template <typename U, typename T, bool isReuseSource = false, const LayerNormConfig& config = LNCFG_NORM>
void LayerNorm(const LocalTensor<T>& output, const LocalTensor<float>& outputMean,
               const LocalTensor<float>& outputRstd, const LocalTensor<T>& inputX,
               const LocalTensor<U>& gamma, const LocalTensor<U>& beta, const float epsilon,
               const LayerNormPara& para, const LayerNormSeparateTiling& tiling, Where where = Where()) {
    constexpr const char* api = "LayerNorm";
#if __NPU_ARCH__ == 3510
    constexpr bool takes = detail::is_one_of<T, half, bfloat16_t, float>, gives = true;
#else
    constexpr bool takes = detail::is_one_of<T, half, float>, gives = config.isOutputRstd;
#endif
    static_assert(
        takes && detail::is_one_of<U, T, float>,
        "LayerNorm of rows is for half and float (dav-3510: bfloat16_t), with gamma and beta of the same "
        "type or float");
    static_assert(gives, "LayerNorm gives variances of rows on dav-3510 alone: isOutputRstd is true");
    static_assert(!isReuseSource && !config.isOnlyOutput,
                  "LayerNorm of rows: isReuseSource and isOnlyOutput are reserved, false is valid");
    const auto& block = ascendc_host::enter(where);
    const uint32_t rows = para.aLength, count = para.rLength, width = para.rLengthWithPadding;
    if (count == 0 || count > width || width * sizeof(T) % ONE_BLK_SIZE != 0 || tiling.rLength == 0 ||
        rows > tiling.aLength) {
        ascendc_host::fail(
            block, where,
            ascendc_host::format(
                "LayerNorm: %u rows of %u elements of which %u count, with a tiling for %u rows of %u; "
                "rows are whole blocks of 32 bytes, no more than the tiling's, which "
                "GetLayerNormNDTilingInfo fills",
                rows, width, count, tiling.aLength, tiling.rLength));
    }
    const T* x = detail::vector_operand(inputX, uint64_t(rows) * width * sizeof(T), api, "inputX", where);
    T* y = detail::vector_operand(output, uint64_t(rows) * width * sizeof(T), api, "output", where);
    float* means = detail::vector_operand(outputMean, rows * sizeof(float), api, "outputMean", where);
    float* others = detail::vector_operand(outputRstd, rows * sizeof(float), api, "outputRstd", where);
    const U* scale =
        config.isNoGamma ? nullptr : detail::vector_operand(gamma, count * sizeof(U), api, "gamma", where);
    const U* offset =
        config.isNoBeta ? nullptr : detail::vector_operand(beta, count * sizeof(U), api, "beta", where);
    for (uint32_t row = 0; row < rows; ++row, x += width, y += width) {
        const detail::Normalized normalized(std::vector<float>(x, x + count), epsilon);
        for (uint32_t i = 0; i < count; ++i) {
            float value = normalized.values[i];
            if constexpr (!config.isNoGamma) value *= static_cast<float>(scale[i]);
            if constexpr (!config.isNoBeta) value += static_cast<float>(offset[i]);
            y[i] = static_cast<T>(value);
        }
        means[row] = normalized.mean;
        others[row] =
            config.isOutputRstd ? 1.0f / std::sqrt(normalized.variance + epsilon) : normalized.variance;
    }
}
template <typename U, typename T, bool isReuseSource = false, const LayerNormConfig& config = LNCFG_NORM>
void LayerNorm(const LocalTensor<T>& output, const LocalTensor<float>& outputMean,
               const LocalTensor<float>& outputRstd, const LocalTensor<T>& inputX,
               const LocalTensor<U>& gamma, const LocalTensor<U>& beta, const float epsilon,
               const LocalTensor<uint8_t>&, const LayerNormPara& para, const LayerNormSeparateTiling& tiling,
               Where where = Where()) {
    LayerNorm<U, T, isReuseSource, config>(output, outputMean, outputRstd, inputX, gamma, beta, epsilon, para,
                                           tiling, where);
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

// output = (x - mean) / sqrt(variance + epsilon) * gamma + beta of each group of channels of [n, c, hw], with
// its mean and its variance; gamma and beta are those of the channels.
template <typename T, bool isReuseSource = false>
void GroupNorm(const LocalTensor<T>& output, const LocalTensor<T>& outputMean,
               const LocalTensor<T>& outputVariance, const LocalTensor<T>& inputX,
               const LocalTensor<T>& gamma, const LocalTensor<T>& beta, const detail::Same<T> epsilon,
               const GroupNormTiling& tiling, Where where = Where()) {
    constexpr const char* api = "GroupNorm";
    static_assert(detail::is_one_of<T, half, float>, "GroupNorm is for half and float");
    static_assert(!isReuseSource || std::is_same<T, float>::value,
                  "GroupNorm reuses its source of float alone");
    const auto& block = ascendc_host::enter(where);
    const uint64_t batches = tiling.n, channels = tiling.c, groups = tiling.g, plane = tiling.hw;
    if (groups == 0 || channels == 0 || channels % groups != 0 || plane == 0) {
        ascendc_host::fail(
            block, where,
            ascendc_host::format("GroupNorm: tiling with %u groups of %u channels of %u elements; "
                                 "fill it with GetGroupNormNDTilingInfo",
                                 tiling.g, tiling.c, tiling.hw));
    }
    const uint64_t size = batches * channels * plane, length = channels / groups * plane;
    const T* x = detail::vector_operand(inputX, size * sizeof(T), api, "inputX", where);
    const T* scale = detail::vector_operand(gamma, channels * sizeof(T), api, "gamma", where);
    const T* offset = detail::vector_operand(beta, channels * sizeof(T), api, "beta", where);
    T* y = detail::vector_operand(output, size * sizeof(T), api, "output", where);
    T* means = detail::vector_operand(outputMean, batches * groups * sizeof(T), api, "outputMean", where);
    T* variances =
        detail::vector_operand(outputVariance, batches * groups * sizeof(T), api, "outputVariance", where);
    for (uint64_t group = 0; group < batches * groups; ++group, x += length, y += length) {
        const detail::Normalized normalized(std::vector<float>(x, x + length), static_cast<float>(epsilon));
        for (uint64_t i = 0; i < length; ++i) {
            const uint64_t channel = group % groups * (channels / groups) + i / plane;
            y[i] = static_cast<T>(normalized.values[i] * static_cast<float>(scale[channel]) +
                                  static_cast<float>(offset[channel]));
        }
        means[group] = static_cast<T>(normalized.mean);
        variances[group] = static_cast<T>(normalized.variance);
    }
}
template <typename T, bool isReuseSource = false>
void GroupNorm(const LocalTensor<T>& output, const LocalTensor<T>& outputMean,
               const LocalTensor<T>& outputVariance, const LocalTensor<T>& inputX,
               const LocalTensor<T>& gamma, const LocalTensor<T>& beta, const LocalTensor<uint8_t>&,
               const detail::Same<T> epsilon, const GroupNormTiling& tiling, Where where = Where()) {
    GroupNorm<T, isReuseSource>(output, outputMean, outputVariance, inputX, gamma, beta, epsilon, tiling,
                                where);
}

// The same of each place of [b, sh] over b, of which the first originalBLength count; gamm and beta are those
// of b.
template <typename T, bool isReuseSource = false, bool isBasicBlock = false>
void BatchNorm(const LocalTensor<T>& output, const LocalTensor<T>& outputMean,
               const LocalTensor<T>& outputVariance, const LocalTensor<T>& inputX, const LocalTensor<T>& gamm,
               const LocalTensor<T>& beta, const detail::Same<T> epsilon, const BatchNormTiling& tiling,
               Where where = Where()) {
    constexpr const char* api = "BatchNorm";
    static_assert(detail::is_one_of<T, half, float>, "BatchNorm is for half and float");
    static_assert(!isReuseSource, "BatchNorm: isReuseSource is reserved, false is valid");
    const auto& block = ascendc_host::enter(where);
    const uint64_t batches = tiling.originalBLength, places = tiling.meanVarSize;
    if (batches == 0 || places == 0) {
        ascendc_host::fail(
            block, where,
            ascendc_host::format(
                "BatchNorm: tiling with %u batches of %u elements; fill it with GetBatchNormNDTilingInfo",
                tiling.originalBLength, tiling.meanVarSize));
    }
    if (isBasicBlock && (batches % 8 != 0 || places % 64 != 0 || places >= 2048)) {
        ascendc_host::fail(
            block, where,
            ascendc_host::format("BatchNorm with isBasicBlock: %u batches of %u elements; valid: "
                                 "multiples of 8, of multiples of 64 below 2048",
                                 tiling.originalBLength, tiling.meanVarSize));
    }
    const T* x = detail::vector_operand(inputX, batches * places * sizeof(T), api, "inputX", where);
    const T* scale = detail::vector_operand(gamm, batches * sizeof(T), api, "gamm", where);
    const T* offset = detail::vector_operand(beta, batches * sizeof(T), api, "beta", where);
    T* y = detail::vector_operand(output, batches * places * sizeof(T), api, "output", where);
    T* means = detail::vector_operand(outputMean, places * sizeof(T), api, "outputMean", where);
    T* variances = detail::vector_operand(outputVariance, places * sizeof(T), api, "outputVariance", where);
    std::vector<float> column(batches);
    for (uint64_t place = 0; place < places; ++place) {
        for (uint64_t i = 0; i < batches; ++i) column[i] = static_cast<float>(x[i * places + place]);
        const detail::Normalized normalized(column, static_cast<float>(epsilon));
        for (uint64_t i = 0; i < batches; ++i)
            y[i * places + place] = static_cast<T>(normalized.values[i] * static_cast<float>(scale[i]) +
                                                   static_cast<float>(offset[i]));
        means[place] = static_cast<T>(normalized.mean);
        variances[place] = static_cast<T>(normalized.variance);
    }
}
template <typename T, bool isReuseSource = false, bool isBasicBlock = false>
void BatchNorm(const LocalTensor<T>& output, const LocalTensor<T>& outputMean,
               const LocalTensor<T>& outputVariance, const LocalTensor<T>& inputX, const LocalTensor<T>& gamm,
               const LocalTensor<T>& beta, const LocalTensor<uint8_t>&, const detail::Same<T> epsilon,
               const BatchNormTiling& tiling, Where where = Where()) {
    BatchNorm<T, isReuseSource, isBasicBlock>(output, outputMean, outputVariance, inputX, gamm, beta, epsilon,
                                              tiling, where);
}

// dst = LayerNorm(alpha * src + gx), with the means and, whatever the parameter is called, the variances:
// that is what the device leaves there.
template <typename T, bool isReuseSrc = false, bool isBasicBlock = false>
void DeepNorm(const LocalTensor<T>& dstLocal, const LocalTensor<T>& meanLocal,
              const LocalTensor<T>& rstdLocal, const LocalTensor<T>& srcLocal, const LocalTensor<T>& gxLocal,
              const LocalTensor<T>& betaLocal, const LocalTensor<T>& gammaLocal, const detail::Same<T> alpha,
              const detail::Same<T> epsilon, DeepNormTiling& tiling, Where where = Where()) {
    constexpr const char* api = "DeepNorm";
    static_assert(detail::is_one_of<T, half, float>, "DeepNorm is for half and float");
    const uint64_t rows = detail::rows_of_tiling(tiling, api, where);
    const uint32_t width = tiling.hLength, count = tiling.originalHLength;
    const T* x = detail::vector_operand(srcLocal, rows * width * sizeof(T), api, "srcLocal", where);
    const T* gx = detail::vector_operand(gxLocal, rows * width * sizeof(T), api, "gxLocal", where);
    const T* scale = detail::vector_operand(gammaLocal, count * sizeof(T), api, "gammaLocal", where);
    const T* offset = detail::vector_operand(betaLocal, count * sizeof(T), api, "betaLocal", where);
    T* y = detail::vector_operand(dstLocal, rows * width * sizeof(T), api, "dstLocal", where);
    T* means = detail::vector_operand(meanLocal, rows * sizeof(T), api, "meanLocal", where);
    T* variances = detail::vector_operand(rstdLocal, rows * sizeof(T), api, "rstdLocal", where);
    std::vector<float> values(count);
    for (uint64_t row = 0; row < rows; ++row, x += width, gx += width, y += width) {
        for (uint32_t i = 0; i < count; ++i)
            values[i] = static_cast<float>(alpha) * static_cast<float>(x[i]) + static_cast<float>(gx[i]);
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
template <typename T, bool isReuseSrc = false, bool isBasicBlock = false>
void DeepNorm(const LocalTensor<T>& dstLocal, const LocalTensor<T>& meanLocal,
              const LocalTensor<T>& rstdLocal, const LocalTensor<T>& srcLocal, const LocalTensor<T>& gxLocal,
              const LocalTensor<T>& betaLocal, const LocalTensor<T>& gammaLocal, const LocalTensor<uint8_t>&,
              const detail::Same<T> alpha, const detail::Same<T> epsilon, DeepNormTiling& tiling,
              Where where = Where()) {
    DeepNorm<T, isReuseSrc, isBasicBlock>(dstLocal, meanLocal, rstdLocal, srcLocal, gxLocal, betaLocal,
                                          gammaLocal, alpha, epsilon, tiling, where);
}

struct LayerNormGradShapeInfo {
    DataFormat dataFormat = DataFormat::ND;
};

// The gradient of LayerNorm with respect to x, and what LayerNormGradBeta sums: (x - mean) / sqrt(variance +
// epsilon).
template <typename T, bool isReuseSource = false>
void LayerNormGrad(const LocalTensor<T>& outputPdX, const LocalTensor<T>& resForGamma,
                   const LocalTensor<T>& inputDy, const LocalTensor<T>& inputX,
                   const LocalTensor<T>& inputVariance, const LocalTensor<T>& inputMean,
                   const LocalTensor<T>& inputGamma, detail::Same<T> epsilon, LayerNormGradTiling& tiling,
                   const LayerNormGradShapeInfo& = {}, Where where = Where()) {
    constexpr const char* api = "LayerNormGrad";
    static_assert(detail::is_one_of<T, half, float>, "LayerNormGrad is for half and float");
    const uint64_t rows = detail::rows_of_tiling(tiling, api, where);
    const uint32_t width = tiling.hLength, count = tiling.originalHLength;
    const T* dy = detail::vector_operand(inputDy, rows * width * sizeof(T), api, "inputDy", where);
    const T* x = detail::vector_operand(inputX, rows * width * sizeof(T), api, "inputX", where);
    const T* variance = detail::vector_operand(inputVariance, rows * sizeof(T), api, "inputVariance", where);
    const T* mean = detail::vector_operand(inputMean, rows * sizeof(T), api, "inputMean", where);
    const T* scale = detail::vector_operand(inputGamma, count * sizeof(T), api, "inputGamma", where);
    T* dx = detail::vector_operand(outputPdX, rows * width * sizeof(T), api, "outputPdX", where);
    T* normal = detail::vector_operand(resForGamma, rows * width * sizeof(T), api, "resForGamma", where);
    std::vector<float> gradient(count), distance(count), terms(count);
    const auto sum = [&](const auto& term) {
        for (uint32_t i = 0; i < count; ++i) terms[i] = term(i);
        return detail::pairwise_sum(terms.data(), count);
    };
    for (uint64_t row = 0; row < rows; ++row, dy += width, x += width, dx += width, normal += width) {
        const float rstd = 1.0f / std::sqrt(static_cast<float>(variance[row]) + static_cast<float>(epsilon));
        for (uint32_t i = 0; i < count; ++i) {
            gradient[i] = static_cast<float>(dy[i]) * static_cast<float>(scale[i]);
            distance[i] = static_cast<float>(x[i]) - static_cast<float>(mean[row]);
        }
        const float by_variance =
            sum([&](uint32_t i) { return gradient[i] * distance[i]; }) * -0.5f * rstd * rstd * rstd;
        const float by_mean = sum([&](uint32_t i) { return gradient[i]; }) * -rstd +
                              by_variance * sum([&](uint32_t i) { return distance[i]; }) * -2.0f / count;
        for (uint32_t i = 0; i < count; ++i) {
            dx[i] = static_cast<T>(gradient[i] * rstd + (2 * by_variance * distance[i] + by_mean) / count);
            normal[i] = static_cast<T>(distance[i] * rstd);
        }
    }
}
template <typename T, bool isReuseSource = false>
void LayerNormGrad(const LocalTensor<T>& outputPdX, const LocalTensor<T>& resForGamma,
                   const LocalTensor<T>& inputDy, const LocalTensor<T>& inputX,
                   const LocalTensor<T>& inputVariance, const LocalTensor<T>& inputMean,
                   const LocalTensor<T>& inputGamma, const LocalTensor<uint8_t>&, detail::Same<T> epsilon,
                   LayerNormGradTiling& tiling, const LayerNormGradShapeInfo& info = {},
                   Where where = Where()) {
    LayerNormGrad<T, isReuseSource>(outputPdX, resForGamma, inputDy, inputX, inputVariance, inputMean,
                                    inputGamma, epsilon, tiling, info, where);
}

// The gradients of LayerNorm with respect to gamma and beta: sums over the rows.
template <typename T, bool isReuseSource = false>
void LayerNormGradBeta(const LocalTensor<T>& outputPdGamma, const LocalTensor<T>& outputPdBeta,
                       const LocalTensor<T>& resForGamma, const LocalTensor<T>& inputDy,
                       const LayerNormGradBetaTiling& tiling, Where where = Where()) {
    constexpr const char* api = "LayerNormGradBeta";
    static_assert(detail::is_one_of<T, half, float>, "LayerNormGradBeta is for half and float");
    const uint64_t rows = detail::rows_of_tiling(tiling, api, where);
    const uint32_t width = tiling.hLength, count = tiling.originalHLength;
    const T* normal =
        detail::vector_operand(resForGamma, rows * width * sizeof(T), api, "resForGamma", where);
    const T* dy = detail::vector_operand(inputDy, rows * width * sizeof(T), api, "inputDy", where);
    T* gamma = detail::vector_operand(outputPdGamma, count * sizeof(T), api, "outputPdGamma", where);
    T* beta = detail::vector_operand(outputPdBeta, count * sizeof(T), api, "outputPdBeta", where);
    std::vector<float> by_gamma(rows), by_beta(rows), found(2 * count);
    for (uint32_t i = 0; i < count; ++i) {
        for (uint64_t row = 0; row < rows; ++row) {
            by_beta[row] = static_cast<float>(dy[row * width + i]);
            by_gamma[row] = by_beta[row] * static_cast<float>(normal[row * width + i]);
        }
        found[i] = detail::pairwise_sum(by_gamma.data(), rows);
        found[count + i] = detail::pairwise_sum(by_beta.data(), rows);
    }
    for (uint32_t i = 0; i < count; ++i) {  // what is written may be what is read
        gamma[i] = static_cast<T>(found[i]);
        beta[i] = static_cast<T>(found[count + i]);
    }
}
template <typename T, bool isReuseSource = false>
void LayerNormGradBeta(const LocalTensor<T>& outputPdGamma, const LocalTensor<T>& outputPdBeta,
                       const LocalTensor<T>& resForGamma, const LocalTensor<T>& inputDy,
                       const LocalTensor<uint8_t>&, const LayerNormGradBetaTiling& tiling,
                       Where where = Where()) {
    LayerNormGradBeta<T, isReuseSource>(outputPdGamma, outputPdBeta, resForGamma, inputDy, tiling, where);
}

}  // namespace AscendC

#endif  // ASCENDC_HOST_ADV_API_NORMALIZATION_NORMALIZATION_H
