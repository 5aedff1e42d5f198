// CumSum: running sums along rows or down columns.
#ifndef ASCENDC_HOST_ADV_API_MATH_CUMSUM_H
#define ASCENDC_HOST_ADV_API_MATH_CUMSUM_H

#include <vector>

#include "ascendc_host/basic_api/arithmetic.h"

namespace AscendC {

// How the sums are made; it changes none of them here.
enum class CumSumAlgorithm { CUMSUM_ALGORITHM_LINEBYLINE = 0, CUMSUM_ALGORITHM_SKLANSKY = 1 };
struct CumSumConfig {
    bool isLastAxis = true;
    bool isReuseSource = false;
    bool outputLastRow = true;
    CumSumAlgorithm algorithm = CumSumAlgorithm::CUMSUM_ALGORITHM_LINEBYLINE;
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

#endif  // ASCENDC_HOST_ADV_API_MATH_CUMSUM_H
