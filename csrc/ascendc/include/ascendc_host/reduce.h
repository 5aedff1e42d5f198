// Reductions: of a block of 32 bytes, of pairs, of a repeat, of a whole tensor.
//
// Sums are taken pairwise in the wide type and rounded once: at least as exact as the device's tree in the
// element type.
#ifndef ASCENDC_HOST_REDUCE_H
#define ASCENDC_HOST_REDUCE_H

#include "arithmetic.h"

namespace AscendC {
namespace detail {

template <typename W>
W pairwise_sum(const W* values, size_t count) {
    if (count <= 8) {
        W sum = 0;
        for (size_t i = 0; i < count; ++i) sum = add_op()(sum, values[i]);
        return sum;
    }
    const size_t half_count = count / 2;
    return add_op()(pairwise_sum(values, half_count), pairwise_sum(values + half_count, count - half_count));
}

template <typename W>
struct Extreme {
    W value;
    uint32_t index;
};
// The first largest or smallest element; a NaN counts as both.
template <ReduceType type, typename W>
Extreme<W> extreme(const W* values, size_t count) {
    Extreme<W> best{values[0], 0};
    for (size_t i = 1; i < count; ++i) {
        const bool better = type == ReduceType::MAX ? values[i] > best.value : values[i] < best.value;
        if (better || (values[i] != values[i] && best.value == best.value))
            best = {values[i], static_cast<uint32_t>(i)};
    }
    return best;
}

// An index as the bits of an element, which is how the device stores it beside the value.
template <typename T>
T index_bits(uint32_t index) {
    T value;
    const auto bits = static_cast<Bits<T>>(index);
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

// The active lanes of a repeat from `begin` to `end`, in the wide type, and where each comes from.
template <typename T>
struct Active {
    Wide<T> values[most_lanes];
    uint16_t lanes[most_lanes];
    uint32_t count = 0;

    Active(const Operand<T>& from, uint32_t repeat, const Mask& mask, uint32_t begin, uint32_t end,
           uint32_t all) {
        for (uint32_t lane = begin; lane < end; ++lane) {
            if (!mask.active(repeat, lane, all)) continue;
            values[count] = static_cast<Wide<T>>(from.at(repeat, lane));
            lanes[count++] = static_cast<uint16_t>(lane);
        }
    }
};

template <ReduceType type, typename T>
Wide<T> reduced(const Active<T>& active) {
    if constexpr (type == ReduceType::SUM) {
        return pairwise_sum(active.values, active.count);
    } else {
        return extreme<type>(active.values, active.count).value;
    }
}

// Results lie `step` elements apart from one repeat to the next, `per_repeat` in each.
template <ReduceType type, typename T>
void reduce_groups(const char* api, const LocalTensor<T>& dst, const LocalTensor<T>& src, const Mask& mask,
                   uint32_t repeats, uint32_t group, uint64_t step, Stride stride, const Where& where) {
    constexpr uint32_t lanes = lanes_of<T>();
    repeats = mask.repeats(repeats, lanes);
    if (repeats == 0) return;
    const Operand<T> from(src, stride, mask, repeats, lanes, api, "src", where);
    for (uint32_t repeat = 0; repeat < repeats; ++repeat) {
        const uint32_t end = mask.end(repeat, lanes);
        for (uint32_t first = 0; first < end; first += group) {
            const Active<T> active(from, repeat, mask, first, std::min(first + group, end), lanes);
            if (active.count == 0) continue;
            const uint64_t at = repeat * step + first / group;
            T* to = vector_operand(dst, (at + 1) * sizeof(T), api, "dst", where, sizeof(T));
            to[at] = static_cast<T>(reduced<type, T>(active));
        }
    }
}
template <ReduceType type, typename T>
void reduce_with_index(const char* api, const LocalTensor<T>& dst, const LocalTensor<T>& src,
                       const Mask& mask, uint32_t repeats, uint64_t step, Stride stride, ReduceOrder order,
                       const Where& where) {
    constexpr uint32_t lanes = lanes_of<T>();
    repeats = mask.repeats(repeats, lanes);
    if (repeats == 0) return;
    const Operand<T> from(src, stride, mask, repeats, lanes, api, "src", where);
    auto& block = ascendc_host::current();
    const bool pair = order == ReduceOrder::ORDER_VALUE_INDEX || order == ReduceOrder::ORDER_INDEX_VALUE;
    for (uint32_t repeat = 0; repeat < repeats; ++repeat) {
        const Active<T> active(from, repeat, mask, 0, mask.end(repeat, lanes), lanes);
        if (active.count == 0) continue;
        const auto best = extreme<type>(active.values, active.count);
        const uint32_t lane = active.lanes[best.index];
        const uint64_t at = repeat * step * (pair ? 2 : 1);
        T* to = vector_operand(dst, (at + (pair ? 2 : 1)) * sizeof(T), api, "dst", where, sizeof(T)) + at;
        if (pair) {
            const bool value_first = order == ReduceOrder::ORDER_VALUE_INDEX;
            to[value_first ? 0 : 1] = static_cast<T>(best.value);
            to[value_first ? 1 : 0] = index_bits<T>(lane);
        } else {
            to[0] = order == ReduceOrder::ORDER_ONLY_VALUE ? static_cast<T>(best.value) : index_bits<T>(lane);
        }
        block.extreme = static_cast<double>(best.value);
        block.extreme_index = lane;
    }
}

// All active elements of all repeats, in order.
template <typename T>
std::vector<Wide<T>> all_active(const char* api, const LocalTensor<T>& src, const Mask& mask,
                                uint32_t repeats, uint32_t repeat_stride, std::vector<uint32_t>& positions,
                                const Where& where) {
    constexpr uint32_t lanes = lanes_of<T>();
    repeats = mask.repeats(repeats, lanes);
    const Operand<T> from(src, {1, repeat_stride}, mask, repeats, lanes, api, "src", where);
    std::vector<Wide<T>> values;
    for (uint32_t repeat = 0; repeat < repeats; ++repeat) {
        const Active<T> active(from, repeat, mask, 0, mask.end(repeat, lanes), lanes);
        values.insert(values.end(), active.values, active.values + active.count);
        for (uint32_t i = 0; i < active.count; ++i) positions.push_back(repeat * lanes + active.lanes[i]);
    }
    return values;
}
inline void some_elements(size_t count, const char* api, const Where& where) {
    if (count == 0)
        ascendc_host::fail(ascendc_host::current(), where, ascendc_host::format("%s: no elements", api));
}

template <typename T>
void store_sum(const LocalTensor<T>& dst, const std::vector<Wide<T>>& values, const Where& where) {
    const T sum = static_cast<T>(pairwise_sum(values.data(), values.size()));
    *vector_operand(dst, sizeof(T), "ReduceSum", "dst", where, sizeof(T)) = sum;
    auto& block = ascendc_host::current();
    block.accumulator = static_cast<double>(static_cast<Wide<T>>(sum));
    block.accumulator_bits = 0;
    std::memcpy(&block.accumulator_bits, &sum, std::min(sizeof sum, sizeof block.accumulator_bits));
}
template <ReduceType type, typename T>
void store_extreme(const char* api, const LocalTensor<T>& dst, const std::vector<Wide<T>>& values,
                   const std::vector<uint32_t>* positions, bool with_index, const Where& where) {
    some_elements(values.size(), api, where);
    const auto best = extreme<type>(values.data(), values.size());
    const uint32_t index = positions == nullptr ? best.index : (*positions)[best.index];
    T* to = vector_operand(dst, (with_index ? 2 : 1) * sizeof(T), api, "dst", where, sizeof(T));
    to[0] = static_cast<T>(best.value);
    if (with_index) to[1] = index_bits<T>(index);
    auto& block = ascendc_host::current();
    block.extreme = static_cast<double>(best.value);
    block.extreme_index = index;
}
template <typename T>
std::vector<Wide<T>> first_elements(const char* api, const LocalTensor<T>& src, int64_t count,
                                    const Where& where) {
    some_elements(count <= 0 ? 0 : static_cast<size_t>(count), api, where);
    const T* from = vector_operand(src, uint64_t(count) * sizeof(T), api, "src", where);
    return std::vector<Wide<T>>(from, from + count);
}

}  // namespace detail

// --- of a repeat
// -----------------------------------------------------------------------------------------------------

// The macros write the two forms of the mask; dstRepStride counts elements.
#define ASCENDC_REDUCE(MaskType)                                                                             \
    template <typename T, bool isSetMask = true>                                                             \
    void WholeReduceSum(const LocalTensor<T>& dst, const LocalTensor<T>& src, MaskType mask,                 \
                        int32_t repeatTime, int32_t dstRepStride, int32_t srcBlkStride,                      \
                        int32_t srcRepStride, Where where = Where()) {                                       \
        ascendc_host::enter(where);                                                                          \
        detail::reduce_groups<ReduceType::SUM>(                                                              \
            "WholeReduceSum", dst, src,                                                                      \
            detail::make_mask<isSetMask>(mask, detail::lanes_of<T>(), "WholeReduceSum", where), repeatTime,  \
            detail::most_lanes, dstRepStride, {uint32_t(srcBlkStride), uint32_t(srcRepStride)}, where);      \
    }                                                                                                        \
    template <typename T, bool isSetMask = true>                                                             \
    void WholeReduceMax(const LocalTensor<T>& dst, const LocalTensor<T>& src, MaskType mask,                 \
                        int32_t repeatTime, int32_t dstRepStride, int32_t srcBlkStride,                      \
                        int32_t srcRepStride, ReduceOrder order = ReduceOrder::ORDER_VALUE_INDEX,            \
                        Where where = Where()) {                                                             \
        ascendc_host::enter(where);                                                                          \
        detail::reduce_with_index<ReduceType::MAX>(                                                          \
            "WholeReduceMax", dst, src,                                                                      \
            detail::make_mask<isSetMask>(mask, detail::lanes_of<T>(), "WholeReduceMax", where), repeatTime,  \
            dstRepStride, {uint32_t(srcBlkStride), uint32_t(srcRepStride)}, order, where);                   \
    }                                                                                                        \
    template <typename T, bool isSetMask = true>                                                             \
    void WholeReduceMin(const LocalTensor<T>& dst, const LocalTensor<T>& src, MaskType mask,                 \
                        int32_t repeatTime, int32_t dstRepStride, int32_t srcBlkStride,                      \
                        int32_t srcRepStride, ReduceOrder order = ReduceOrder::ORDER_VALUE_INDEX,            \
                        Where where = Where()) {                                                             \
        ascendc_host::enter(where);                                                                          \
        detail::reduce_with_index<ReduceType::MIN>(                                                          \
            "WholeReduceMin", dst, src,                                                                      \
            detail::make_mask<isSetMask>(mask, detail::lanes_of<T>(), "WholeReduceMin", where), repeatTime,  \
            dstRepStride, {uint32_t(srcBlkStride), uint32_t(srcRepStride)}, order, where);                   \
    }                                                                                                        \
    template <ReduceType reduceType, typename T, typename U = T, bool isSetMask = true>                      \
    void ReduceRepeat(const LocalTensor<T>& dst, const LocalTensor<U>& src, MaskType mask,                   \
                      int32_t repeatTime, int32_t dstRepStride, int32_t srcBlkStride, int32_t srcRepStride,  \
                      ReduceOrder order = ReduceOrder::ORDER_VALUE_INDEX, Where where = Where()) {           \
        ascendc_host::enter(where);                                                                          \
        const auto active =                                                                                  \
            detail::make_mask<isSetMask>(mask, detail::lanes_of<T>(), "ReduceRepeat", where);                \
        const detail::Stride stride{uint32_t(srcBlkStride), uint32_t(srcRepStride)};                         \
        if constexpr (reduceType == ReduceType::SUM) {                                                       \
            detail::reduce_groups<reduceType>("ReduceRepeat", dst, src, active, repeatTime,                  \
                                              detail::most_lanes, dstRepStride, stride, where);              \
        } else {                                                                                             \
            detail::reduce_with_index<reduceType>("ReduceRepeat", dst, src, active, repeatTime,              \
                                                  dstRepStride, stride, order, where);                       \
        }                                                                                                    \
    }                                                                                                        \
    template <ReduceType reduceType, typename T, typename U = T, bool isSetMask = true>                      \
    void ReduceDataBlock(const LocalTensor<T>& dst, const LocalTensor<U>& src, MaskType mask,                \
                         int32_t repeatTime, int32_t dstRepStride, int32_t srcBlkStride,                     \
                         int32_t srcRepStride, Where where = Where()) {                                      \
        ascendc_host::enter(where);                                                                          \
        detail::reduce_groups<reduceType>(                                                                   \
            "ReduceDataBlock", dst, src,                                                                     \
            detail::make_mask<isSetMask>(mask, detail::lanes_of<T>(), "ReduceDataBlock", where), repeatTime, \
            32 / sizeof(T), uint64_t(dstRepStride) * 8, {uint32_t(srcBlkStride), uint32_t(srcRepStride)},    \
            where);                                                                                          \
    }                                                                                                        \
    template <ReduceType reduceType, typename T, typename U = T, bool isSetMask = true>                      \
    void ReducePairElem(const LocalTensor<T>& dst, const LocalTensor<U>& src, MaskType mask,                 \
                        int32_t repeatTime, int32_t dstRepStride, int32_t srcBlkStride,                      \
                        int32_t srcRepStride, Where where = Where()) {                                       \
        ascendc_host::enter(where);                                                                          \
        detail::reduce_groups<reduceType>(                                                                   \
            "ReducePairElem", dst, src,                                                                      \
            detail::make_mask<isSetMask>(mask, detail::lanes_of<T>(), "ReducePairElem", where), repeatTime,  \
            2, uint64_t(dstRepStride) * detail::lanes_of<T>() / 2,                                           \
            {uint32_t(srcBlkStride), uint32_t(srcRepStride)}, where);                                        \
    }                                                                                                        \
    template <typename T, bool isSetMask = true>                                                             \
    void PairReduceSum(const LocalTensor<T>& dst, const LocalTensor<T>& src, int32_t repeatTime,             \
                       MaskType mask, int32_t dstRepStride, int32_t srcBlkStride, int32_t srcRepStride,      \
                       Where where = Where()) {                                                              \
        ReducePairElem<ReduceType::SUM, T, T, isSetMask>(dst, src, mask, repeatTime, dstRepStride,           \
                                                         srcBlkStride, srcRepStride, where);                 \
    }                                                                                                        \
    template <typename T, bool isSetMask = true>                                                             \
    void BlockReduceSum(const LocalTensor<T>& dst, const LocalTensor<T>& src, int32_t repeatTime,            \
                        MaskType mask, int32_t dstRepStride, int32_t srcBlkStride, int32_t srcRepStride,     \
                        Where where = Where()) {                                                             \
        ReduceDataBlock<ReduceType::SUM, T, T, isSetMask>(dst, src, mask, repeatTime, dstRepStride,          \
                                                          srcBlkStride, srcRepStride, where);                \
    }                                                                                                        \
    template <typename T, bool isSetMask = true>                                                             \
    void BlockReduceMax(const LocalTensor<T>& dst, const LocalTensor<T>& src, int32_t repeatTime,            \
                        MaskType mask, int32_t dstRepStride, int32_t srcBlkStride, int32_t srcRepStride,     \
                        Where where = Where()) {                                                             \
        ReduceDataBlock<ReduceType::MAX, T, T, isSetMask>(dst, src, mask, repeatTime, dstRepStride,          \
                                                          srcBlkStride, srcRepStride, where);                \
    }                                                                                                        \
    template <typename T, bool isSetMask = true>                                                             \
    void BlockReduceMin(const LocalTensor<T>& dst, const LocalTensor<T>& src, int32_t repeatTime,            \
                        MaskType mask, int32_t dstRepStride, int32_t srcBlkStride, int32_t srcRepStride,     \
                        Where where = Where()) {                                                             \
        ReduceDataBlock<ReduceType::MIN, T, T, isSetMask>(dst, src, mask, repeatTime, dstRepStride,          \
                                                          srcBlkStride, srcRepStride, where);                \
    }                                                                                                        \
    template <typename T, bool isSetMask = true>                                                             \
    void RepeatReduceSum(const LocalTensor<T>& dst, const LocalTensor<T>& src, int32_t repeatTime,           \
                         MaskType mask, int32_t, int32_t srcBlkStride, int32_t dstRepStride,                 \
                         int32_t srcRepStride, Where where = Where()) {                                      \
        WholeReduceSum<T, isSetMask>(dst, src, mask, repeatTime, dstRepStride, srcBlkStride, srcRepStride,   \
                                     where);                                                                 \
    }                                                                                                        \
    template <typename T>                                                                                    \
    void ReduceSum(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<T>&,              \
                   MaskType mask, int32_t repeatTime, int32_t srcRepStride, Where where = Where()) {         \
        ascendc_host::enter(where);                                                                          \
        std::vector<uint32_t> positions;                                                                     \
        detail::store_sum(                                                                                   \
            dst,                                                                                             \
            detail::all_active("ReduceSum", src,                                                             \
                               detail::make_mask<true>(mask, detail::lanes_of<T>(), "ReduceSum", where),     \
                               repeatTime, srcRepStride, positions, where),                                  \
            where);                                                                                          \
    }                                                                                                        \
    template <typename T>                                                                                    \
    void ReduceMax(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<T>&,              \
                   MaskType mask, int32_t repeatTime, int32_t srcRepStride, bool calIndex = false,           \
                   Where where = Where()) {                                                                  \
        ascendc_host::enter(where);                                                                          \
        std::vector<uint32_t> positions;                                                                     \
        const auto values = detail::all_active(                                                              \
            "ReduceMax", src, detail::make_mask<true>(mask, detail::lanes_of<T>(), "ReduceMax", where),      \
            repeatTime, srcRepStride, positions, where);                                                     \
        detail::store_extreme<ReduceType::MAX>("ReduceMax", dst, values, &positions, calIndex, where);       \
    }                                                                                                        \
    template <typename T>                                                                                    \
    void ReduceMin(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<T>&,              \
                   MaskType mask, int32_t repeatTime, int32_t srcRepStride, bool calIndex = false,           \
                   Where where = Where()) {                                                                  \
        ascendc_host::enter(where);                                                                          \
        std::vector<uint32_t> positions;                                                                     \
        const auto values = detail::all_active(                                                              \
            "ReduceMin", src, detail::make_mask<true>(mask, detail::lanes_of<T>(), "ReduceMin", where),      \
            repeatTime, srcRepStride, positions, where);                                                     \
        detail::store_extreme<ReduceType::MIN>("ReduceMin", dst, values, &positions, calIndex, where);       \
    }
ASCENDC_REDUCE(int32_t)
ASCENDC_REDUCE(const uint64_t*)
#undef ASCENDC_REDUCE

// --- of a tensor
// -----------------------------------------------------------------------------------------------------

template <typename T, bool isSetMask = true>
void ReduceSum(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<T>&,
               const int32_t count, Where where = Where()) {
    ascendc_host::enter(where);
    detail::store_sum(dst, detail::first_elements("ReduceSum", src, count, where), where);
}
template <typename T>
void ReduceMax(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<T>&,
               const int32_t count, bool calIndex = false, Where where = Where()) {
    ascendc_host::enter(where);
    detail::store_extreme<ReduceType::MAX>(
        "ReduceMax", dst, detail::first_elements("ReduceMax", src, count, where), nullptr, calIndex, where);
}
template <typename T>
void ReduceMin(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<T>&,
               const int32_t count, bool calIndex = false, Where where = Where()) {
    ascendc_host::enter(where);
    detail::store_extreme<ReduceType::MIN>(
        "ReduceMin", dst, detail::first_elements("ReduceMin", src, count, where), nullptr, calIndex, where);
}

// --- the registers of the last reduction
// -----------------------------------------------------------------------------

template <typename T>
T GetAccVal() {
    return static_cast<T>(ascendc_host::current().accumulator);
}
// The register itself: the sum's bits, in the lowest of the word.
inline int64_t GetAccVal() { return ascendc_host::current().accumulator_bits; }
template <typename T>
T GetReduceRepeatSumSpr() {
    return GetAccVal<T>();
}
template <typename T>
void GetReduceMaxMinCount(T& maxMinValue, T& maxMinIndex) {
    maxMinValue = static_cast<T>(ascendc_host::current().extreme);
    maxMinIndex = detail::index_bits<T>(ascendc_host::current().extreme_index);
}
template <typename T>
void GetReduceMaxMinCount(T& maxMinValue) {
    maxMinValue = static_cast<T>(ascendc_host::current().extreme);
}
template <typename T>
void GetReduceRepeatMaxMinSpr(T& maxMinValue, T& maxMinIndex) {
    GetReduceMaxMinCount(maxMinValue, maxMinIndex);
}
template <typename T>
void GetReduceRepeatMaxMinSpr(T& maxMinValue) {
    GetReduceMaxMinCount(maxMinValue);
}

// --- of rows
// ---------------------------------------------------------------------------------------------------------

// `outter` rows of `inner` elements, of which the first `n` are added: one sum for each row.
struct SumParams {
    uint32_t outter = 1;
    uint32_t inner;
    uint32_t n;
};
template <typename T, int32_t reduceDim = -1, bool isReuseSource = false, bool isBasicBlock = false>
void Sum(const LocalTensor<T>& dst, const LocalTensor<T>& src, const SumParams& params,
         Where where = Where()) {
    ascendc_host::enter(where);
    detail::vector_operand(dst, uint64_t(params.outter) * sizeof(T), "Sum", "dst", where);
    for (uint32_t row = 0; row < params.outter; ++row) {
        const uint64_t first = uint64_t(row) * params.inner;
        const T* from = src.use(first + params.n, "Sum", "src", where) + first;
        const std::vector<detail::Wide<T>> values(from, from + params.n);
        dst.use(row + 1, "Sum", "dst", where)[row] =
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
    Sum(dst, src, SumParams{params.outter, params.inner, params.n}, where);
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
    *detail::vector_operand(dstTensor, sizeof(T), api, "dstTensor", where) =
        static_cast<T>(std::clamp<int64_t>(sum, Limits::min(), Limits::max()));
}
template <typename T, bool isReuseSource = false>
void ReduceXorSum(const LocalTensor<T>& dstTensor, const LocalTensor<T>& src0Tensor,
                  const LocalTensor<T>& src1Tensor, const LocalTensor<uint8_t>&, const uint32_t calCount,
                  Where where = Where()) {
    ReduceXorSum<T, isReuseSource>(dstTensor, src0Tensor, src1Tensor, calCount, where);
}

}  // namespace AscendC

#endif  // ASCENDC_HOST_REDUCE_H
