// Softmax of rows: of whole ones, and of flash attention, where a row comes in parts, each with the maximum
// and the sum of those before it.
#ifndef ASCENDC_HOST_ADV_API_ACTIVATION_SOFTMAX_H
#define ASCENDC_HOST_ADV_API_ACTIVATION_SOFTMAX_H

#include <array>
#include <limits>
#include <optional>

#include "ascendc_host/adv_api/math/math.h"
#include "ascendc_host/adv_api/reduce/reduce_pattern.h"

namespace AscendC {

struct SoftMaxShapeInfo {
    uint32_t srcM = 0;
    uint32_t srcK = 0;
    uint32_t oriSrcM = 0;
    uint32_t oriSrcK = 0;
};

// Of SoftmaxFlashV3: how many parts of a row there were with this one, and how far a part's mean counts.
struct SoftMaxParams {
    constexpr SoftMaxParams(uint32_t srcM = 0, uint32_t srcK = 0, uint32_t oriSrcM = 0, uint32_t oriSrcK = 0,
                            uint32_t loopCnt = 1, uint32_t splitMeanCnt = 8, float alpha = 0)
        : srcM(srcM),
          srcK(srcK),
          oriSrcM(oriSrcM),
          oriSrcK(oriSrcK),
          loopCnt(loopCnt),
          splitMeanCnt(splitMeanCnt),
          alpha(alpha) {}
    uint32_t srcM, srcK, oriSrcM, oriSrcK, loopCnt, splitMeanCnt;
    float alpha;
};

// Whether a row's sum and maximum fill a block of 32 bytes, or are one element.
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

// All rows at once: a tiling of any structure that says nothing.
struct no_tiling {
    template <typename Tiling>
    constexpr operator Tiling() const {
        return Tiling();
    }
};

// exp(x - largest) of a row, or of the part that follows one of which largest and total are known: `factor`
// is what that one's results are to be multiplied by.
struct Powers {
    std::vector<float> values;
    float own_largest, largest, total, factor;

    template <typename T>
    Powers(const T* row, uint32_t count, float known_largest = -std::numeric_limits<float>::infinity(),
           float known_total = 0)
        : values(row, row + count) {
        own_largest = extreme<ReduceType::MAX>(values.data(), values.size()).value;
        largest = std::max(own_largest, known_largest);
        factor = known_total == 0 ? 0 : std::exp(known_largest - largest);
        for (float& value : values) value = std::exp(value - largest);
        total = pairwise_sum(values.data(), values.size()) + factor * known_total;
    }
};

// The sums and the maxima of rows; those of a packed mode are one element, others a block of 32 bytes.
template <SoftmaxMode mode, typename S>
struct RowFacts {
    static constexpr uint32_t width = mode == SoftmaxMode::SOFTMAX_OUTPUT_WITHOUT_BRC ? 1 : 32 / sizeof(S);

    RowFacts(const LocalTensor<S>& tensor, uint64_t rows, const char* api, const char* name,
             const Where& where)
        : at(vector_operand(tensor, rows * width * sizeof(S), api, name, where)) {}

    float get(uint64_t row) const { return static_cast<float>(at[row * width]); }
    void set(uint64_t row, float value) const { std::fill_n(at + row * width, width, static_cast<S>(value)); }

    S* at;
};

template <typename T, typename S, const SoftmaxConfig& config, bool is_log = false>
void softmax(const LocalTensor<T>& dst, const LocalTensor<S>* sum, const LocalTensor<S>* max,
             const LocalTensor<T>& src, const SoftMaxShapeInfo& shape, const Where& where) {
    constexpr const char* api = is_log ? "LogSoftMax" : "SoftMax";
    static_assert(is_one_of<T, half, float>, "SoftMax and LogSoftMax are for half and float");
    ascendc_host::enter(where);
    const auto rows = rows_of_tensor(src, shape);
    const uint64_t bytes = uint64_t(rows.srcM) * rows.srcK * sizeof(T);
    const T* from = vector_operand(src, bytes, api, "srcTensor", where);
    T* to = vector_operand(dst, bytes, api, "dstTensor", where);
    if (is_log) ascendc_host::require_apart(api, {"dstTensor", to, bytes}, {"srcTensor", from, bytes}, where);
    std::optional<RowFacts<config.mode, S>> sums, maxima;
    if (sum != nullptr) {
        sums.emplace(*sum, rows.srcM, api, "sumTensor", where);
        maxima.emplace(*max, rows.srcM, api, "maxTensor", where);
    }
    for (uint64_t row = 0; row < rows.srcM && rows.oriSrcK > 0; ++row) {
        const Powers powers(from + row * rows.srcK, rows.oriSrcK);
        T* row_to = to + row * rows.srcK;
        for (float value : powers.values) {
            const float share = value / powers.total;
            *row_to++ = static_cast<T>(is_log ? std::log10(share) : share);
        }
        if (!sums) continue;
        sums->set(row, powers.total);
        maxima->set(row, powers.largest);
    }
}

// dst = exp(src - max) of each row, not divided. `sum` and `max` are those of the row, with `isUpdate` those
// of the parts before it as well; `expMax` is what their results are to be multiplied by then, and
// `own_max` the maximum of this part alone.
template <bool isUpdate, SoftmaxMode mode, typename T, typename S>
void softmax_flash(const LocalTensor<T>& dst, const LocalTensor<S>& sum, const LocalTensor<S>& max,
                   const LocalTensor<T>& src, const LocalTensor<T>& exp_max, const LocalTensor<S>& in_sum,
                   const LocalTensor<S>& in_max, const SoftMaxShapeInfo& shape, const Where& where,
                   const LocalTensor<S>* own_max = nullptr) {
    constexpr const char* api = "SoftmaxFlashV2";
    ascendc_host::enter(where);
    const auto rows = rows_of_tensor(src, shape);
    const uint64_t bytes = uint64_t(rows.srcM) * rows.srcK * sizeof(T);
    const T* from = vector_operand(src, bytes, api, "src", where);
    T* to = vector_operand(dst, bytes, api, "dst", where);
    const RowFacts<mode, S> sums(sum, rows.srcM, api, "expSumTensor", where);
    const RowFacts<mode, S> maxima(max, rows.srcM, api, "maxTensor", where);
    std::optional<RowFacts<mode, T>> factors;
    std::optional<RowFacts<mode, S>> sums_before, maxima_before, own_maxima;
    if constexpr (isUpdate) {
        if (own_max != nullptr) own_maxima.emplace(*own_max, rows.srcM, api, "outReduceMax", where);
        factors.emplace(exp_max, rows.srcM, api, "expMaxTensor", where);
        sums_before.emplace(in_sum, rows.srcM, api, "inExpSumTensor", where);
        maxima_before.emplace(in_max, rows.srcM, api, "inMaxTensor", where);
    }
    for (uint64_t row = 0; row < rows.srcM && rows.oriSrcK > 0; ++row) {
        const T* part = from + row * rows.srcK;
        const Powers powers = isUpdate
                                  ? Powers(part, rows.oriSrcK, maxima_before->get(row), sums_before->get(row))
                                  : Powers(part, rows.oriSrcK);
        T* row_to = to + row * rows.srcK;
        for (float value : powers.values) *row_to++ = static_cast<T>(value);
        sums.set(row, powers.total);
        maxima.set(row, powers.largest);
        if constexpr (isUpdate) factors->set(row, powers.factor);
        if (own_maxima) own_maxima->set(row, powers.own_largest);
    }
}

// The same divided by the sum, and so is the factor of the parts before it, whose results were.
template <typename T, typename S>
void softmax_flash_of_shares(const LocalTensor<T>& dst, const LocalTensor<S>& sum, const LocalTensor<S>& max,
                             const LocalTensor<T>& src, const LocalTensor<T>& exp_max,
                             const LocalTensor<S>& in_sum, const LocalTensor<S>& in_max,
                             const SoftMaxShapeInfo& shape, const Where& where) {
    constexpr const char* api = "SoftmaxFlash";
    constexpr SoftmaxMode mode = SoftmaxMode::SOFTMAX_NORMAL;
    ascendc_host::enter(where);
    const auto rows = rows_of_tensor(src, shape);
    const uint64_t bytes = uint64_t(rows.srcM) * rows.srcK * sizeof(T);
    const T* from = vector_operand(src, bytes, api, "srcTensor", where);
    T* to = vector_operand(dst, bytes, api, "dstTensor", where);
    const RowFacts<mode, S> sums(sum, rows.srcM, api, "sumTensor", where);
    const RowFacts<mode, S> maxima(max, rows.srcM, api, "maxTensor", where);
    const RowFacts<mode, T> factors(exp_max, rows.srcM, api, "expMaxTensor", where);
    const RowFacts<mode, S> sums_before(in_sum, rows.srcM, api, "inSumTensor", where);
    const RowFacts<mode, S> maxima_before(in_max, rows.srcM, api, "inMaxTensor", where);
    for (uint64_t row = 0; row < rows.srcM && rows.oriSrcK > 0; ++row) {
        const float sum_before = sums_before.get(row);
        const Powers powers(from + row * rows.srcK, rows.oriSrcK, maxima_before.get(row), sum_before);
        T* row_to = to + row * rows.srcK;
        for (float value : powers.values) *row_to++ = static_cast<T>(value / powers.total);
        sums.set(row, powers.total);
        maxima.set(row, powers.largest);
        factors.set(row, powers.factor * sum_before / powers.total);
    }
}

// The means of a row's eight chunks. Its first 512 elements count in the chunk of 64 that they are in, those
// behind in that of their place in each 64, as the documentation's steps add them up.
template <typename T>
std::array<float, 8> means_of_chunks(const T* row, uint32_t count) {
    std::array<float, 8> means{};
    for (uint32_t i = 0; i < count; ++i) means[i < 512 ? i / 64 : i % 64 / 8] += static_cast<float>(row[i]);
    for (float& mean : means) mean /= static_cast<float>(count / 8);
    return means;
}

// softmax_flash of rows from whose chunks a share of their means is taken before (PASA); `mean` is that of
// the row, with `isUpdate` that of the parts before it as well.
template <bool isUpdate, typename T, typename S>
void softmax_flash_of_means(const LocalTensor<T>& dst, const LocalTensor<S>& mean, const LocalTensor<S>& sum,
                            const LocalTensor<S>& max, const LocalTensor<T>& src,
                            const LocalTensor<T>& exp_max, const LocalTensor<S>& in_mean,
                            const LocalTensor<S>& in_sum, const LocalTensor<S>& in_max,
                            const SoftMaxParams& params, const Where& where) {
    constexpr const char* api = "SoftmaxFlashV3";
    constexpr SoftmaxMode mode = SoftmaxMode::SOFTMAX_NORMAL;
    auto& block = ascendc_host::enter(where);
    const uint32_t rows = params.srcM, count = params.srcK;
    if (count < 512 || count % 64 != 0 || rows % 8 != 0 || params.oriSrcM != rows ||
        params.oriSrcK != count || params.splitMeanCnt != 8 || params.loopCnt < 1 || params.alpha == 1) {
        ascendc_host::fail(
            block, where,
            ascendc_host::format(
                "SoftmaxFlashV3: %u rows of %u (oriSrcM %u, oriSrcK %u), splitMeanCnt %u, loopCnt "
                "%u, alpha %g; valid: multiples of 8 rows of multiples of 64 from 512 on, as many in "
                "oriSrcM and oriSrcK, splitMeanCnt 8, loopCnt from 1 on, alpha other than 1",
                rows, count, params.oriSrcM, params.oriSrcK, params.splitMeanCnt, params.loopCnt,
                double(params.alpha)));
    }
    const uint64_t bytes = uint64_t(rows) * count * sizeof(T);
    const T* from = vector_operand(src, bytes, api, "srcTensor", where);
    T* to = vector_operand(dst, bytes, api, "dstTensor", where);
    const RowFacts<mode, S> means(mean, rows, api, "meanTensor", where);
    const RowFacts<mode, S> sums(sum, rows, api, "expSumTensor", where);
    const RowFacts<mode, S> maxima(max, rows, api, "maxTensor", where);
    std::optional<RowFacts<mode, T>> factors;
    std::optional<RowFacts<mode, S>> means_before, sums_before, maxima_before;
    if constexpr (isUpdate) {
        factors.emplace(exp_max, rows, api, "expMaxTensor", where);
        means_before.emplace(in_mean, rows, api, "inMeanTensor", where);
        sums_before.emplace(in_sum, rows, api, "inExpSumTensor", where);
        maxima_before.emplace(in_max, rows, api, "inMaxTensor", where);
    }
    const float scale = params.alpha / (1 - params.alpha);
    std::vector<float> row(count);
    for (uint64_t i = 0; i < rows; ++i, from += count, to += count) {
        const std::array<float, 8> local = means_of_chunks(from, count);
        float here = 0;
        for (float one : local) here += one / 8;
        for (uint32_t k = 0; k < count; ++k)
            row[k] = static_cast<float>(from[k]) - (here - local[k / (count / 8)]) * scale;
        float total_mean = here, largest_before = -std::numeric_limits<float>::infinity(), total_before = 0;
        if constexpr (isUpdate) {
            total_mean = (here + means_before->get(i) * static_cast<float>(params.loopCnt - 1)) /
                         static_cast<float>(params.loopCnt);
            largest_before = (means_before->get(i) - total_mean) * scale + maxima_before->get(i);
            total_before = sums_before->get(i);
        }
        const float shift = (here - total_mean) * scale;
        for (float& value : row) value += shift;
        const Powers powers(row.data(), count, largest_before, total_before);
        for (uint32_t k = 0; k < count; ++k) to[k] = static_cast<T>(powers.values[k]);
        means.set(i, total_mean);
        sums.set(i, powers.total);
        maxima.set(i, powers.largest);
        if constexpr (isUpdate) factors->set(i, std::exp(largest_before - powers.largest));
    }
}

// dst = exp(src - max) / sum, with the sum and the maximum of each row given.
template <SoftmaxMode mode, typename T, typename S>
void simple_softmax(const LocalTensor<T>& dst, const LocalTensor<S>& sum, const LocalTensor<S>& max,
                    const LocalTensor<T>& src, const SoftMaxShapeInfo& shape, const Where& where) {
    constexpr const char* api = "SimpleSoftMax";
    static_assert(is_one_of<T, half, float>, "SimpleSoftMax is for half and float");
    ascendc_host::enter(where);
    const auto rows = rows_of_tensor(src, shape);
    const uint64_t bytes = uint64_t(rows.srcM) * rows.srcK * sizeof(T);
    const T* from = vector_operand(src, bytes, api, "srcTensor", where);
    T* to = vector_operand(dst, bytes, api, "dstTensor", where);
    const RowFacts<mode, S> sums(sum, rows.srcM, api, "inSumTensor", where);
    const RowFacts<mode, S> maxima(max, rows.srcM, api, "inMaxTensor", where);
    for (uint64_t row = 0; row < rows.srcM; ++row) {
        const float largest = maxima.get(row), total = sums.get(row);
        for (uint64_t at = row * rows.srcK, end = at + rows.oriSrcK; at < end; ++at)
            to[at] = static_cast<T>(std::exp(static_cast<float>(from[at]) - largest) / total);
    }
}

// The gradient of softmax: (grad - total) * y, where total is the sum of grad * y over each row; in front,
// the totals alone, each in a block of 32 bytes.
template <typename T>
void softmax_grad(const char* api, const LocalTensor<T>& dst, const LocalTensor<T>& grad,
                  const LocalTensor<T>& src, bool front, const SoftMaxShapeInfo& shape, const Where& where) {
    static_assert(is_one_of<T, half, float>, "SoftmaxGrad is for half and float");
    ascendc_host::enter(where);
    const auto rows = rows_of_tensor(src, shape);
    const uint32_t width = front ? 32 / sizeof(T) : rows.srcK;
    const uint64_t bytes = uint64_t(rows.srcM) * rows.srcK * sizeof(T);
    const T* gradient = vector_operand(grad, bytes, api, "gradTensor", where);
    const T* y = vector_operand(src, bytes, api, "srcTensor", where);
    T* to = vector_operand(dst, uint64_t(rows.srcM) * width * sizeof(T), api, "dstTensor", where);
    std::vector<float> products(rows.oriSrcK);
    for (uint64_t row = 0; row < rows.srcM; ++row) {
        const uint64_t at = row * rows.srcK;
        for (uint32_t i = 0; i < rows.oriSrcK; ++i)
            products[i] = static_cast<float>(gradient[at + i]) * static_cast<float>(y[at + i]);
        const float total = pairwise_sum(products.data(), products.size());
        if (front) {
            std::fill_n(to + row * width, width, static_cast<T>(total));
            continue;
        }
        for (uint32_t i = 0; i < rows.oriSrcK; ++i)
            to[at + i] = static_cast<T>((static_cast<float>(gradient[at + i]) - total) *
                                        static_cast<float>(y[at + i]));
    }
}

}  // namespace detail

// The decimal logarithm of SoftMax: of shares that are 0 in float it is -inf.
template <typename T, bool isReuseSource = false, bool isDataFormatNZ = false, typename Tiling>
void LogSoftMax(const LocalTensor<T>& dst, const LocalTensor<T>& sum, const LocalTensor<T>& max,
                const LocalTensor<T>& src, const LocalTensor<uint8_t>&, const Tiling&,
                const SoftMaxShapeInfo& softmaxShapeInfo = {}, Where where = Where()) {
    static_assert(!isDataFormatNZ, "LogSoftMax of the host runtime is for ND");
    detail::softmax<T, T, SOFTMAX_DEFAULT_CFG, true>(dst, &sum, &max, src, softmaxShapeInfo, where);
}

// dst = exp(src - max) / sum over each row.
template <typename T, bool isReuseSource = false, bool isBasicBlock = false, bool isDataFormatNZ = false,
          const SoftmaxConfig& config = SOFTMAX_DEFAULT_CFG, typename S, typename Tiling>
void SoftMax(const LocalTensor<T>& dstTensor, const LocalTensor<S>& sumTensor,
             const LocalTensor<S>& maxTensor, const LocalTensor<T>& srcTensor, const Tiling&,
             const SoftMaxShapeInfo& softmaxShapeInfo = {}, Where where = Where()) {
    static_assert(!isDataFormatNZ, "SoftMax of the host runtime is for ND");
    detail::softmax<T, S, config>(dstTensor, &sumTensor, &maxTensor, srcTensor, softmaxShapeInfo, where);
}
template <typename T, bool isReuseSource = false, bool isBasicBlock = false, bool isDataFormatNZ = false,
          const SoftmaxConfig& config = SOFTMAX_DEFAULT_CFG, typename S, typename Tiling>
void SoftMax(const LocalTensor<T>& dstTensor, const LocalTensor<S>& sumTensor,
             const LocalTensor<S>& maxTensor, const LocalTensor<T>& srcTensor, const LocalTensor<uint8_t>&,
             const Tiling& tiling, const SoftMaxShapeInfo& softmaxShapeInfo = {}, Where where = Where()) {
    SoftMax<T, isReuseSource, isBasicBlock, isDataFormatNZ, config>(
        dstTensor, sumTensor, maxTensor, srcTensor, tiling, softmaxShapeInfo, where);
}
template <typename T, bool isReuseSource = false, bool isBasicBlock = false,
          const SoftmaxConfig& config = SOFTMAX_DEFAULT_CFG, typename Tiling>
void SoftMax(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor, const Tiling&,
             const SoftMaxShapeInfo& softmaxShapeInfo = {}, Where where = Where()) {
    const LocalTensor<float>* none = nullptr;
    detail::softmax<T, float, config>(dstTensor, none, none, srcTensor, softmaxShapeInfo, where);
}
template <typename T, bool isReuseSource = false, bool isBasicBlock = false,
          const SoftmaxConfig& config = SOFTMAX_DEFAULT_CFG, typename Tiling>
void SoftMax(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor, const LocalTensor<uint8_t>&,
             const Tiling& tiling, const SoftMaxShapeInfo& softmaxShapeInfo = {}, Where where = Where()) {
    SoftMax<T, isReuseSource, isBasicBlock, config>(dstTensor, srcTensor, tiling, softmaxShapeInfo, where);
}

template <typename T, bool isReuseSource = false, bool isBasicBlock = false, bool isDataFormatNZ = false,
          const SoftmaxConfig& config = SOFTMAX_DEFAULT_CFG, typename S, typename Tiling>
void SimpleSoftMax(const LocalTensor<T>& dstTensor, const LocalTensor<S>& inSumTensor,
                   const LocalTensor<S>& inMaxTensor, const LocalTensor<T>& srcTensor, const Tiling&,
                   const SoftMaxShapeInfo& softmaxShapeInfo = {}, Where where = Where()) {
    static_assert(!isDataFormatNZ, "SimpleSoftMax of the host runtime is for ND");
    detail::simple_softmax<config.mode>(dstTensor, inSumTensor, inMaxTensor, srcTensor, softmaxShapeInfo,
                                        where);
}
template <typename T, bool isReuseSource = false, bool isBasicBlock = false, bool isDataFormatNZ = false,
          const SoftmaxConfig& config = SOFTMAX_DEFAULT_CFG, typename S, typename Tiling>
void SimpleSoftMax(const LocalTensor<T>& dstTensor, const LocalTensor<S>& inSumTensor,
                   const LocalTensor<S>& inMaxTensor, const LocalTensor<T>& srcTensor,
                   const LocalTensor<uint8_t>&, const Tiling& tiling,
                   const SoftMaxShapeInfo& softmaxShapeInfo = {}, Where where = Where()) {
    SimpleSoftMax<T, isReuseSource, isBasicBlock, isDataFormatNZ, config>(
        dstTensor, inSumTensor, inMaxTensor, srcTensor, tiling, softmaxShapeInfo, where);
}

// With `isFront` what SoftmaxGradFront gives.
template <typename T, bool isReuseSource = false, bool isDataFormatNZ = false, typename Tiling>
void SoftmaxGrad(const LocalTensor<T>& dstTensor, const LocalTensor<T>& gradTensor,
                 const LocalTensor<T>& srcTensor, const Tiling&, bool isFront = false,
                 const SoftMaxShapeInfo& softmaxShapeInfo = {}, Where where = Where()) {
    static_assert(!isDataFormatNZ, "SoftmaxGrad of the host runtime is for ND");
    detail::softmax_grad("SoftmaxGrad", dstTensor, gradTensor, srcTensor, isFront, softmaxShapeInfo, where);
}
template <typename T, bool isReuseSource = false, bool isDataFormatNZ = false, typename Tiling>
void SoftmaxGrad(const LocalTensor<T>& dstTensor, const LocalTensor<T>& gradTensor,
                 const LocalTensor<T>& srcTensor, const LocalTensor<uint8_t>&, const Tiling& tiling,
                 bool isFront = false, const SoftMaxShapeInfo& softmaxShapeInfo = {}, Where where = Where()) {
    SoftmaxGrad<T, isReuseSource, isDataFormatNZ>(dstTensor, gradTensor, srcTensor, tiling, isFront,
                                                  softmaxShapeInfo, where);
}
template <typename T, bool isBasicBlock = false, bool isDataFormatNZ = false, typename Tiling>
void SoftmaxGradFront(const LocalTensor<T>& dstTensor, const LocalTensor<T>& gradTensor,
                      const LocalTensor<T>& srcTensor, const Tiling&,
                      const SoftMaxShapeInfo& softmaxShapeInfo = {}, Where where = Where()) {
    static_assert(!isDataFormatNZ, "SoftmaxGradFront of the host runtime is for ND");
    detail::softmax_grad("SoftmaxGradFront", dstTensor, gradTensor, srcTensor, true, softmaxShapeInfo, where);
}
template <typename T, bool isBasicBlock = false, bool isDataFormatNZ = false, typename Tiling>
void SoftmaxGradFront(const LocalTensor<T>& dstTensor, const LocalTensor<T>& gradTensor,
                      const LocalTensor<T>& srcTensor, const LocalTensor<uint8_t>&, const Tiling& tiling,
                      const SoftMaxShapeInfo& softmaxShapeInfo = {}, Where where = Where()) {
    SoftmaxGradFront<T, isBasicBlock, isDataFormatNZ>(dstTensor, gradTensor, srcTensor, tiling,
                                                      softmaxShapeInfo, where);
}

constexpr detail::no_tiling SoftMaxFlashV2TilingFunc(const SoftMaxShapeInfo&, uint32_t, uint32_t, uint32_t,
                                                     bool = false, bool = false, bool = false, bool = false) {
    return {};
}
// The same from rows and columns, as kernels call it that have no SoftMaxShapeInfo.
constexpr detail::no_tiling SoftMaxFlashV2TilingFuncImpl(uint32_t, uint32_t, uint32_t, uint32_t, uint32_t,
                                                         bool = false, bool = false, bool = false,
                                                         bool = false) {
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

// With the maximum of this part of a row alone, which is there with isUpdate.
template <typename T, bool isUpdate = false, bool isReuseSource = false, bool isBasicBlock = false,
          bool isDataFormatNZ = false, const SoftmaxConfig& config = SOFTMAX_DEFAULT_CFG, typename Tiling>
void SoftmaxFlashV2(const LocalTensor<T>& dstTensor, const LocalTensor<T>& outReduceMax,
                    const LocalTensor<T>& outExpSum, const LocalTensor<T>& outMax,
                    const LocalTensor<T>& srcTensor, const LocalTensor<T>& outExpMax,
                    const LocalTensor<T>& inExpSum, const LocalTensor<T>& inMax, const Tiling&,
                    const SoftMaxShapeInfo& softmaxShapeInfo = {}, Where where = Where()) {
    static_assert(detail::is_one_of<T, half, float>, "SoftmaxFlashV2 is for half and float");
    static_assert(
        !isDataFormatNZ && !config.isCheckTiling && config.mode == SoftmaxMode::SOFTMAX_OUTPUT_WITHOUT_BRC,
        "SoftmaxFlashV2 with outReduceMax takes isDataFormatNZ false, and a config with isCheckTiling "
        "false and SoftmaxMode::SOFTMAX_OUTPUT_WITHOUT_BRC");
    detail::softmax_flash<isUpdate, config.mode>(dstTensor, outExpSum, outMax, srcTensor, outExpMax, inExpSum,
                                                 inMax, softmaxShapeInfo, where, &outReduceMax);
}
template <typename T, bool isUpdate = false, bool isReuseSource = false, bool isBasicBlock = false,
          bool isDataFormatNZ = false, const SoftmaxConfig& config = SOFTMAX_DEFAULT_CFG, typename Tiling>
void SoftmaxFlashV2(const LocalTensor<T>& dstTensor, const LocalTensor<T>& outReduceMax,
                    const LocalTensor<T>& expSumTensor, const LocalTensor<T>& maxTensor,
                    const LocalTensor<T>& srcTensor, const LocalTensor<T>& expMaxTensor,
                    const LocalTensor<T>& inExpSumTensor, const LocalTensor<T>& inMaxTensor,
                    const LocalTensor<uint8_t>&, const Tiling& tiling,
                    const SoftMaxShapeInfo& softmaxShapeInfo = {}, Where where = Where()) {
    SoftmaxFlashV2<T, isUpdate, isReuseSource, isBasicBlock, isDataFormatNZ, config>(
        dstTensor, outReduceMax, expSumTensor, maxTensor, srcTensor, expMaxTensor, inExpSumTensor,
        inMaxTensor, tiling, softmaxShapeInfo, where);
}

// Without isUpdate it is SoftMax.
template <typename T, bool isReuseSource = false, bool isBasicBlock = false, typename S, typename Tiling>
void SoftmaxFlash(const LocalTensor<T>& dstTensor, const LocalTensor<S>& sumTensor,
                  const LocalTensor<S>& maxTensor, const LocalTensor<T>& srcTensor,
                  const LocalTensor<T>& expMaxTensor, const LocalTensor<S>& inSumTensor,
                  const LocalTensor<S>& inMaxTensor, const Tiling&, bool isUpdate = false,
                  const SoftMaxShapeInfo& softmaxShapeInfo = {}, Where where = Where()) {
    static_assert(detail::is_one_of<T, half, float> && detail::is_one_of<S, T, float>,
                  "SoftmaxFlash is for half and float, and for half with sums and maxima of float");
    static_assert(!isReuseSource, "SoftmaxFlash: isReuseSource is reserved, false is valid");
    if (isUpdate) {
        detail::softmax_flash_of_shares(dstTensor, sumTensor, maxTensor, srcTensor, expMaxTensor, inSumTensor,
                                        inMaxTensor, softmaxShapeInfo, where);
    } else {
        detail::softmax<T, S, SOFTMAX_DEFAULT_CFG>(dstTensor, &sumTensor, &maxTensor, srcTensor,
                                                   softmaxShapeInfo, where);
    }
}
template <typename T, bool isReuseSource = false, bool isBasicBlock = false, typename S, typename Tiling>
void SoftmaxFlash(const LocalTensor<T>& dstTensor, const LocalTensor<S>& sumTensor,
                  const LocalTensor<S>& maxTensor, const LocalTensor<T>& srcTensor,
                  const LocalTensor<T>& expMaxTensor, const LocalTensor<S>& inSumTensor,
                  const LocalTensor<S>& inMaxTensor, const LocalTensor<uint8_t>&, const Tiling& tiling,
                  bool isUpdate = false, const SoftMaxShapeInfo& softmaxShapeInfo = {},
                  Where where = Where()) {
    SoftmaxFlash<T, isReuseSource, isBasicBlock>(dstTensor, sumTensor, maxTensor, srcTensor, expMaxTensor,
                                                 inSumTensor, inMaxTensor, tiling, isUpdate, softmaxShapeInfo,
                                                 where);
}

template <typename T, typename U, bool isUpdate = false, bool isReuseSource = false,
          bool isBasicBlock = false, bool isDataFormatNZ = false,
          const SoftmaxConfig& config = SOFTMAX_DEFAULT_CFG, typename Tiling>
void SoftmaxFlashV3(const LocalTensor<T>& dstTensor, const LocalTensor<U>& meanTensor,
                    const LocalTensor<U>& expSumTensor, const LocalTensor<U>& maxTensor,
                    const LocalTensor<T>& srcTensor, const LocalTensor<T>& expMaxTensor,
                    const LocalTensor<U>& inMeanTensor, const LocalTensor<U>& inExpSumTensor,
                    const LocalTensor<U>& inMaxTensor, const Tiling&, const SoftMaxParams& params,
                    Where where = Where()) {
    static_assert(std::is_same_v<T, half> && std::is_same_v<U, float>,
                  "SoftmaxFlashV3 is for half with float");
    static_assert(!isReuseSource && !isBasicBlock && !isDataFormatNZ,
                  "SoftmaxFlashV3: reserved, false is valid");
    detail::softmax_flash_of_means<isUpdate>(dstTensor, meanTensor, expSumTensor, maxTensor, srcTensor,
                                             expMaxTensor, inMeanTensor, inExpSumTensor, inMaxTensor, params,
                                             where);
}
template <typename T, typename U, bool isUpdate = false, bool isReuseSource = false,
          bool isBasicBlock = false, bool isDataFormatNZ = false,
          const SoftmaxConfig& config = SOFTMAX_DEFAULT_CFG, typename Tiling>
void SoftmaxFlashV3(const LocalTensor<T>& dstTensor, const LocalTensor<U>& meanTensor,
                    const LocalTensor<U>& expSumTensor, const LocalTensor<U>& maxTensor,
                    const LocalTensor<T>& srcTensor, const LocalTensor<T>& expMaxTensor,
                    const LocalTensor<U>& inMeanTensor, const LocalTensor<U>& inExpSumTensor,
                    const LocalTensor<U>& inMaxTensor, const LocalTensor<uint8_t>&, const Tiling& tiling,
                    const SoftMaxParams& params, Where where = Where()) {
    SoftmaxFlashV3<T, U, isUpdate, isReuseSource, isBasicBlock, isDataFormatNZ, config>(
        dstTensor, meanTensor, expSumTensor, maxTensor, srcTensor, expMaxTensor, inMeanTensor, inExpSumTensor,
        inMaxTensor, tiling, params, where);
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

#endif  // ASCENDC_HOST_ADV_API_ACTIVATION_SOFTMAX_H
