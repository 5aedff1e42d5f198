// Reductions of matrices by a pattern: which of the dimensions stays (A) and which goes (R).
#ifndef ASCENDC_HOST_ADV_API_REDUCE_REDUCE_PATTERN_H
#define ASCENDC_HOST_ADV_API_REDUCE_REDUCE_PATTERN_H

#include <functional>
#include <numeric>

#include "ascendc_host/basic_api/reduce.h"

namespace AscendC {

namespace Pattern {
namespace Reduce {
struct AR {};
struct RA {};
}  // namespace Reduce
}  // namespace Pattern

namespace detail {

template <typename pattern>
constexpr bool reduces_rows = std::is_same<pattern, Pattern::Reduce::AR>::value;

// Functions of a matrix are told from those of a count by their pattern.
template <typename pattern>
using IfPattern = std::enable_if_t<is_one_of<pattern, Pattern::Reduce::AR, Pattern::Reduce::RA>>;

// Where the rows of a matrix begin: at multiples of 32 bytes, or side by side.
enum class MatrixRows { PADDED, ADJOINING };

// With AR the results lie side by side, with RA they are one row.
template <typename pattern, MatrixRows layout, typename T, typename F>
void reduce_matrix(const char* api, const LocalTensor<T>& dst, const LocalTensor<T>& src,
                   const uint32_t shape[], bool inner_pad, const Where& where, const F& reduce) {
    const auto& block = ascendc_host::enter(where);
    const uint64_t rows = shape[0], columns = shape[1];
    if (layout == MatrixRows::PADDED && !inner_pad) {
        ascendc_host::fail(
            block, where,
            ascendc_host::format("%s: srcInnerPad is false; rows begin at multiples of 32 bytes: pad them, "
                                 "and pass true",
                                 api));
    }
    some_elements(std::min(rows, columns), api, where);
    constexpr uint64_t per_block = layout == MatrixRows::PADDED ? ONE_BLK_SIZE / sizeof(T) : 1;
    const uint64_t pitch = (columns + per_block - 1) / per_block * per_block;
    const T* from = vector_operand(src, ((rows - 1) * pitch + columns) * sizeof(T), api, "src", where);
    constexpr bool by_row = reduces_rows<pattern>;
    const uint64_t results = by_row ? rows : columns, length = by_row ? columns : rows;
    T* to = vector_operand(dst, results * sizeof(T), api, "dst", where);
    ascendc_host::require_apart(api, {"dst", to, results * sizeof(T)},
                                {"src", from, ((rows - 1) * pitch + columns) * sizeof(T)}, where);
    std::vector<Wide<T>> values(length);
    std::vector<T> found(results);  // what is written may be what is read
    for (uint64_t i = 0; i < results; ++i) {
        for (uint64_t j = 0; j < length; ++j)
            values[j] = static_cast<Wide<T>>(by_row ? from[i * pitch + j] : from[j * pitch + i]);
        found[i] = static_cast<T>(reduce(values));
    }
    std::copy(found.begin(), found.end(), to);
}

}  // namespace detail

#define ASCENDC_REDUCE_PATTERN(Name, layout, reduce, ...)                                              \
    template <typename T, typename pattern, bool isReuseSource = false,                                \
              typename = detail::IfPattern<pattern>>                                                   \
    void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<uint8_t>&,       \
              const uint32_t srcShape[], bool srcInnerPad, Where where = Where()) {                    \
        static_assert(detail::is_one_of<T, __VA_ARGS__>, #Name " by a pattern is for " #__VA_ARGS__);  \
        detail::reduce_matrix<pattern, layout>(#Name, dst, src, srcShape, srcInnerPad, where, reduce); \
    }                                                                                                  \
    template <typename T, typename pattern, bool isReuseSource = false,                                \
              typename = detail::IfPattern<pattern>>                                                   \
    void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const uint32_t srcShape[],         \
              bool srcInnerPad, Where where = Where()) {                                               \
        static_assert(detail::is_one_of<T, __VA_ARGS__>, #Name " by a pattern is for " #__VA_ARGS__);  \
        detail::reduce_matrix<pattern, layout>(#Name, dst, src, srcShape, srcInnerPad, where, reduce); \
    }

// dav-3510 finds out from the shape whether rows are aligned; its srcInnerPad has no meaning.
#if __NPU_ARCH__ == 3510
#define ASCENDC_REDUCE_ROWS detail::MatrixRows::ADJOINING
#define ASCENDC_REDUCE_SUM_TYPES int32_t, uint32_t, float, int64_t, uint64_t
#define ASCENDC_REDUCE_EXTREME_TYPES \
    int8_t, uint8_t, int16_t, uint16_t, half, bfloat16_t, int32_t, uint32_t, float, int64_t, uint64_t
#else
#define ASCENDC_REDUCE_ROWS detail::MatrixRows::PADDED
#define ASCENDC_REDUCE_SUM_TYPES float
#define ASCENDC_REDUCE_EXTREME_TYPES half, float
#endif

ASCENDC_REDUCE_PATTERN(
    ReduceSum, ASCENDC_REDUCE_ROWS, [](const auto& v) { return detail::pairwise_sum(v.data(), v.size()); },
    ASCENDC_REDUCE_SUM_TYPES)
ASCENDC_REDUCE_PATTERN(
    ReduceMean, detail::MatrixRows::PADDED,
    [](const auto& v) { return detail::pairwise_sum(v.data(), v.size()) / v.size(); }, half, float)
ASCENDC_REDUCE_PATTERN(
    ReduceMax, ASCENDC_REDUCE_ROWS,
    [](const auto& v) { return detail::extreme<ReduceType::MAX>(v.data(), v.size()).value; },
    ASCENDC_REDUCE_EXTREME_TYPES)
ASCENDC_REDUCE_PATTERN(
    ReduceMin, ASCENDC_REDUCE_ROWS,
    [](const auto& v) { return detail::extreme<ReduceType::MIN>(v.data(), v.size()).value; },
    ASCENDC_REDUCE_EXTREME_TYPES)
ASCENDC_REDUCE_PATTERN(
    ReduceProd, detail::MatrixRows::PADDED,
    [](const auto& v) {
        float product = 1;
        for (const float one : v) product *= one;
        return product;
    },
    float)
// As the device has it: the largest of the elements and the smallest, but whole numbers of a column bit by
// bit.
ASCENDC_REDUCE_PATTERN(
    ReduceAny, detail::MatrixRows::PADDED,
    [](const auto& v) {
        if constexpr (std::is_same<T, float>::value || detail::reduces_rows<pattern>) {
            return *std::max_element(v.begin(), v.end());
        } else {
            return std::accumulate(v.begin(), v.end(), 0, std::bit_or<int>());
        }
    },
    float, uint8_t)
ASCENDC_REDUCE_PATTERN(
    ReduceAll, detail::MatrixRows::PADDED,
    [](const auto& v) {
        if constexpr (std::is_same<T, float>::value || detail::reduces_rows<pattern>) {
            return *std::min_element(v.begin(), v.end());
        } else {
            return std::accumulate(v.begin(), v.end(), 0xff, std::bit_and<int>());
        }
    },
    float, uint8_t)
#undef ASCENDC_REDUCE_PATTERN
#undef ASCENDC_REDUCE_ROWS
#undef ASCENDC_REDUCE_SUM_TYPES
#undef ASCENDC_REDUCE_EXTREME_TYPES

}  // namespace AscendC

#endif  // ASCENDC_HOST_ADV_API_REDUCE_REDUCE_PATTERN_H
