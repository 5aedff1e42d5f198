// Reductions of rows, and ReduceXorSum.
#ifndef ASCENDC_HOST_ADV_API_REDUCE_REDUCE_H
#define ASCENDC_HOST_ADV_API_REDUCE_REDUCE_H

#include <algorithm>
#include <limits>
#include <vector>

#include "ascendc_host/basic_api/reduce.h"

namespace AscendC {

// `outter` rows of `inner` elements, of which the first `n` are added: one sum for each row.
struct SumParams {
    uint32_t outter = 1;
    uint32_t inner;
    uint32_t n;
};
template <typename T, int32_t reduceDim = -1, bool isReuseSource = false, bool isBasicBlock = false>
void Sum(const LocalTensor<T>& dst, const LocalTensor<T>& src, const SumParams& params, Where where = Where(),
         const char* api = "Sum") {
    static_assert(detail::is_one_of<T, half, float>, "Sum is for half and float");
    const auto& block = ascendc_host::enter(where);
    if (params.inner * sizeof(T) % 32 != 0 || params.n > params.inner)
        ascendc_host::fail(
            block, where,
            ascendc_host::format(
                "%s: inner %u of rows of n = %u; rows are whole blocks of 32 bytes: inner is n "
                "rounded up to a multiple of %u",
                api, params.inner, params.n, static_cast<unsigned>(32 / sizeof(T))));
    T* to = detail::vector_operand(dst, uint64_t(params.outter) * sizeof(T), api, "dst", where);
    const T* all = src.use(uint64_t(params.outter) * params.inner, api, "src", where);
    ascendc_host::require_apart(api, {"dst", to, params.outter * sizeof(T)},
                                {"src", all, uint64_t(params.outter) * params.inner * sizeof(T)}, where);
    for (uint32_t row = 0; row < params.outter; ++row) {
        const uint64_t first = uint64_t(row) * params.inner;
        const T* from = src.use(first + params.n, api, "src", where) + first;
        const std::vector<detail::Wide<T>> values(from, from + params.n);
        dst.use(row + 1, api, "dst", where)[row] =
            static_cast<T>(detail::pairwise_sum(values.data(), values.size()));
    }
}
template <typename T, int32_t reduceDim = -1, bool isReuseSource = false, bool isBasicBlock = false>
void Sum(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<uint8_t>&,
         const SumParams& params, Where where = Where()) {
    Sum(dst, src, params, where);
}
struct MeanParams {
    uint32_t outter = 1;
    uint32_t inner;
    uint32_t n;
};
template <typename T, typename accType = T, bool isReuseSource = false, bool isBasicBlock = false,
          int32_t reduceDim = -1>
void Mean(const LocalTensor<T>& dst, const LocalTensor<T>& src, const MeanParams& params,
          Where where = Where()) {
    static_assert(detail::is_one_of<T, half, float>, "Mean is for half and float");
    Sum(dst, src, SumParams{params.outter, params.inner, params.n}, where, "Mean");
    T* to = dst.use(params.outter, "Mean", "dst", where);
    for (uint32_t row = 0; row < params.outter; ++row)
        to[row] = static_cast<T>(static_cast<detail::Wide<T>>(to[row]) / params.n);
}
template <typename T, typename accType = T, bool isReuseSource = false, bool isBasicBlock = false,
          int32_t reduceDim = -1>
void Mean(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<uint8_t>&,
          const MeanParams& params, Where where = Where()) {
    Mean(dst, src, params, where);
}

// The sum of src0 ^ src1, within int16_t.
template <typename T, bool isReuseSource = false>
void ReduceXorSum(const LocalTensor<T>& dstTensor, const LocalTensor<T>& src0Tensor,
                  const LocalTensor<T>& src1Tensor, const uint32_t calCount, Where where = Where()) {
    constexpr const char* api = "ReduceXorSum";
    static_assert(std::is_same<T, int16_t>::value, "ReduceXorSum is for int16_t");
    ascendc_host::enter(where);
    detail::some_elements(calCount, api, where);
    const T* a = detail::vector_operand(src0Tensor, calCount * sizeof(T), api, "src0Tensor", where);
    const T* b = detail::vector_operand(src1Tensor, calCount * sizeof(T), api, "src1Tensor", where);
    int64_t sum = 0;
    for (uint32_t i = 0; i < calCount; ++i) sum += detail::xor_op()(a[i], b[i]);
    using Limits = std::numeric_limits<T>;
    T* to = detail::vector_operand(dstTensor, sizeof(T), api, "dstTensor", where);
    for (const auto& read : {ascendc_host::Span{"src0Tensor", a, calCount * sizeof(T)},
                             ascendc_host::Span{"src1Tensor", b, calCount * sizeof(T)}})
        ascendc_host::require_apart(api, {"dstTensor", to, sizeof(T)}, read, where);
    *to = static_cast<T>(std::clamp<int64_t>(sum, Limits::min(), Limits::max()));
}
template <typename T, bool isReuseSource = false>
void ReduceXorSum(const LocalTensor<T>& dstTensor, const LocalTensor<T>& src0Tensor,
                  const LocalTensor<T>& src1Tensor, const LocalTensor<uint8_t>&, const uint32_t calCount,
                  Where where = Where()) {
    ReduceXorSum<T, isReuseSource>(dstTensor, src0Tensor, src1Tensor, calCount, where);
}

}  // namespace AscendC

#endif  // ASCENDC_HOST_ADV_API_REDUCE_REDUCE_H
