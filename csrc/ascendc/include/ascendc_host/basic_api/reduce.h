// Reductions: of a block of 32 bytes, of pairs, of a repeat, of a whole tensor.
//
// Sums are taken pairwise in the wide type and rounded once: at least as exact as the device's tree in the
// element type.
#ifndef ASCENDC_HOST_BASIC_API_REDUCE_H
#define ASCENDC_HOST_BASIC_API_REDUCE_H

#include "ascendc_host/basic_api/arithmetic.h"

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

// An index as the bits of an element, which is how the device stores it next to the value.
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

inline uint32_t instruction_repeats(const char* api, const Mask& mask, uint32_t given, uint32_t lanes,
                                    const Where& where) {
    if (!mask.counter) require_repeats(api, static_cast<int32_t>(given), where);
    return mask.repeats(given, lanes);
}
// Results lie `step` elements apart from one repeat to the next, one for each `group`; those of a repeat
// begin at a multiple of `alignment` bytes.
template <ReduceType type, typename T>
void reduce_groups(const char* api, const LocalTensor<T>& dst, const LocalTensor<T>& src, const Mask& mask,
                   uint32_t repeats, uint32_t group, uint64_t step, uint64_t alignment, Stride stride,
                   const Where& where) {
    constexpr uint32_t lanes = lanes_of<T>();
    repeats = instruction_repeats(api, mask, repeats, lanes, where);
    if (repeats == 0) return;
    const Operand<T> from(src, stride, mask, repeats, lanes, api, "src", where);
    require_order(api, {"dst", dst.bytes(), step * sizeof(T)}, from, mask, repeats, lanes, where);
    if (type == ReduceType::SUM) ascendc_host::current().sum.missing = "a sum of repeats ran after it";
    for (uint32_t repeat = 0; repeat < repeats; ++repeat) {
        const uint32_t end = mask.end(repeat, lanes);
        T results[most_lanes];
        bool present[most_lanes] = {};
        for (uint32_t first = 0; first < end; first += group) {
            const Active<T> active(from, repeat, mask, first, std::min(first + group, end), lanes);
            present[first / group] = active.count != 0;
            if (active.count != 0) results[first / group] = static_cast<T>(reduced<type, T>(active));
        }
        for (uint32_t i = 0; i * group < end; ++i) {
            if (!present[i]) continue;
            const uint64_t at = repeat * step + i;
            vector_operand(dst, (at + 1) * sizeof(T), api, "dst", where, alignment)[at] = results[i];
        }
    }
}
// The result of a reduction, to be read back.
template <typename T>
void keep(Block::Reduced& kept, T value) {
    kept.value = static_cast<double>(static_cast<Wide<T>>(value));
    kept.bits = 0;
    std::memcpy(&kept.bits, &value, std::min(sizeof value, sizeof kept.bits));
    kept.missing = nullptr;
}
// How the extreme of a repeat and its index are stored: one after the other, or one of them. An index alone
// has 4 bytes whatever the type.
template <typename T>
class ExtremeStore {
  public:
    ExtremeStore(const char* api, const LocalTensor<T>& dst, ReduceOrder order, const Where& where)
        : api_(api), dst_(dst), order_(order), where_(where) {}
    uint32_t bytes() const {
        switch (order_) {
            case ReduceOrder::ORDER_ONLY_VALUE:
                return sizeof(T);
            case ReduceOrder::ORDER_ONLY_INDEX:
                return sizeof(uint32_t);
            default:
                return 2 * sizeof(T);
        }
    }
    void store(uint64_t at, Wide<T> value, uint32_t lane) const {
        uint8_t* to = reinterpret_cast<uint8_t*>(
                          vector_operand(dst_, (at + 1) * bytes(), api_, "dst", where_, bytes())) +
                      at * bytes();
        const T number = static_cast<T>(value), index = index_bits<T>(lane);
        if (order_ == ReduceOrder::ORDER_ONLY_VALUE) {
            std::memcpy(to, &number, sizeof number);
        } else if (order_ == ReduceOrder::ORDER_ONLY_INDEX) {
            std::memcpy(to, &lane, sizeof lane);
        } else {
            const bool value_first = order_ == ReduceOrder::ORDER_VALUE_INDEX;
            std::memcpy(to + (value_first ? 0 : sizeof(T)), &number, sizeof number);
            std::memcpy(to + (value_first ? sizeof(T) : 0), &index, sizeof index);
        }
    }

  private:
    const char* api_;
    const LocalTensor<T>& dst_;
    ReduceOrder order_;
    const Where& where_;
};
template <ReduceType type, typename T>
void reduce_with_index(const char* api, const LocalTensor<T>& dst, const LocalTensor<T>& src,
                       const Mask& mask, uint32_t repeats, uint64_t step, Stride stride, ReduceOrder order,
                       const Where& where) {
    constexpr uint32_t lanes = lanes_of<T>();
    repeats = instruction_repeats(api, mask, repeats, lanes, where);
    if (repeats == 0) return;
    const Operand<T> from(src, stride, mask, repeats, lanes, api, "src", where);
    const ExtremeStore<T> results(api, dst, order, where);
    require_order(api, {"dst", dst.bytes(), step * results.bytes()}, from, mask, repeats, lanes, where);
    std::vector<Wide<T>> values;
    std::vector<uint32_t> positions;
    for (uint32_t repeat = 0; repeat < repeats; ++repeat) {
        const Active<T> active(from, repeat, mask, 0, mask.end(repeat, lanes), lanes);
        if (active.count == 0) continue;
        const auto best = extreme<type>(active.values, active.count);
        const uint32_t lane = active.lanes[best.index];
        results.store(repeat * step, best.value, lane);
        values.push_back(best.value);
        positions.push_back(repeat * lanes + lane);
    }
    if (values.empty()) return;
    // The register has the extreme of all repeats, where they lie one after the other.
    const auto best = extreme<type>(values.data(), values.size());
    auto& kept = ascendc_host::current().extreme;
    keep(kept, static_cast<T>(best.value));
    kept.index = positions[best.index];
    if (mask.counter) kept.missing = "the last reduction ran in counter mode";
    if (stride.block != 1 || (repeats > 1 && stride.repeat != DEFAULT_REPEAT_STRIDE))
        kept.missing = "the source of the last reduction has gaps";
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

// Whether there is nothing to reduce: then Atlas A2 does nothing, as documented.
inline bool reduces_nothing(int64_t count, const char* api, const Where& where) {
#if __NPU_ARCH__ == 3510
    some_elements(count <= 0 ? 0 : static_cast<size_t>(count), api, where);
#else
    some_elements(count < 0 ? 0 : 1, api, where);
#endif
    return count == 0;
}

// The sum stays to be read back where it is that of a count.
template <typename T>
void store_sum(const LocalTensor<T>& dst, const std::vector<Wide<T>>& values, bool counted,
               const Where& where) {
    if (reduces_nothing(static_cast<int64_t>(values.size()), "ReduceSum", where)) return;
    const T sum = static_cast<T>(pairwise_sum(values.data(), values.size()));
    *vector_operand(dst, sizeof(T), "ReduceSum", "dst", where, sizeof(T)) = sum;
    auto& kept = ascendc_host::current().sum;
    keep(kept, sum);
    if (!counted) kept.missing = "the last ReduceSum had a mask and repeats";
}
// The index that these functions leave to be read back is none of their result's.
constexpr uint32_t unknown_index = 0xa5a5a5a5;
template <ReduceType type, typename T>
void store_extreme(const char* api, const LocalTensor<T>& dst, const std::vector<Wide<T>>& values,
                   const std::vector<uint32_t>* positions, bool with_index, const Where& where) {
    if (reduces_nothing(static_cast<int64_t>(values.size()), api, where)) return;
    const auto best = extreme<type>(values.data(), values.size());
    const uint32_t index = positions == nullptr ? best.index : (*positions)[best.index];
    T* to = vector_operand(dst, (with_index ? 2 : 1) * sizeof(T), api, "dst", where, sizeof(T));
    to[0] = static_cast<T>(best.value);
    if (with_index) to[1] = index_bits<T>(index);
    auto& kept = ascendc_host::current().extreme;
    keep(kept, to[0]);
    kept.index = unknown_index;
}
// Space for what the repeats of a reduction give, as the documents size it: `each` elements a repeat, with an
// index also what later rounds give. dav-3510 uses none, and one repeat needs none.
template <typename T>
uint64_t reduction_space(int64_t repeats, int64_t each, bool with_index) {
    constexpr int64_t block = 32 / sizeof(T);
    const auto in_blocks = [](int64_t count) { return uint64_t((count + block - 1) / block * block); };
    int64_t given = repeats * each;
    uint64_t space = in_blocks(given);
    if (!with_index) return space;
    do {
        given = (given + lanes_of<T>() - 1) / lanes_of<T>() * each;
        space += in_blocks(given);
    } while (given > each);
    return space;
}
// After a reduction nothing can be told of its space: on a device intermediate results are there.
template <typename T>
void use_reduction_space(const char* api, const LocalTensor<T>& space, int64_t repeats, int64_t each,
                         bool with_index, const Where& where) {
#if __NPU_ARCH__ != 3510
    if (repeats <= 1) return;
    const uint64_t bytes = reduction_space<T>(repeats, each, with_index) * sizeof(T);
    std::memset(vector_operand(space, bytes, api, "sharedTmpBuffer", where), 0xa5, bytes);
#else
    (void)api, (void)space, (void)repeats, (void)each, (void)with_index, (void)where;
#endif
}
template <typename T>
std::vector<Wide<T>> first_elements(const char* api, const LocalTensor<T>& src, int64_t count,
                                    const Where& where) {
    if (reduces_nothing(count, api, where)) return {};
    const T* from = vector_operand(src, uint64_t(count) * sizeof(T), api, "src", where);
    return std::vector<Wide<T>>(from, from + count);
}

}  // namespace detail

// --- of a repeat
// -----------------------------------------------------------------------------------------------------

// `mask` is a number or bits; dstRepStride counts elements.
template <typename T, bool isSetMask = true, typename Lanes>
void WholeReduceSum(const LocalTensor<T>& dst, const LocalTensor<T>& src, Lanes mask, int32_t repeatTime,
                    int32_t dstRepStride, int32_t srcBlkStride, int32_t srcRepStride, Where where = Where()) {
    ASCENDC_FLOATS(WholeReduceSum, T);
    ascendc_host::enter(where);
    detail::reduce_groups<ReduceType::SUM>(
        "WholeReduceSum", dst, src,
        detail::make_mask<isSetMask>(mask, detail::lanes_of<T>(), "WholeReduceSum", where), repeatTime,
        detail::most_lanes, dstRepStride, sizeof(T), {uint32_t(srcBlkStride), uint32_t(srcRepStride)}, where);
}
template <typename T, bool isSetMask = true, typename Lanes>
void WholeReduceMax(const LocalTensor<T>& dst, const LocalTensor<T>& src, Lanes mask, int32_t repeatTime,
                    int32_t dstRepStride, int32_t srcBlkStride, int32_t srcRepStride,
                    ReduceOrder order = ReduceOrder::ORDER_VALUE_INDEX, Where where = Where()) {
    ASCENDC_FLOATS(WholeReduceMax, T);
    ascendc_host::enter(where);
    detail::reduce_with_index<ReduceType::MAX>(
        "WholeReduceMax", dst, src,
        detail::make_mask<isSetMask>(mask, detail::lanes_of<T>(), "WholeReduceMax", where), repeatTime,
        dstRepStride, {uint32_t(srcBlkStride), uint32_t(srcRepStride)}, order, where);
}
template <typename T, bool isSetMask = true, typename Lanes>
void WholeReduceMin(const LocalTensor<T>& dst, const LocalTensor<T>& src, Lanes mask, int32_t repeatTime,
                    int32_t dstRepStride, int32_t srcBlkStride, int32_t srcRepStride,
                    ReduceOrder order = ReduceOrder::ORDER_VALUE_INDEX, Where where = Where()) {
    ASCENDC_FLOATS(WholeReduceMin, T);
    ascendc_host::enter(where);
    detail::reduce_with_index<ReduceType::MIN>(
        "WholeReduceMin", dst, src,
        detail::make_mask<isSetMask>(mask, detail::lanes_of<T>(), "WholeReduceMin", where), repeatTime,
        dstRepStride, {uint32_t(srcBlkStride), uint32_t(srcRepStride)}, order, where);
}
template <ReduceType reduceType, typename T, typename U = T, bool isSetMask = true, typename Lanes>
void ReduceRepeat(const LocalTensor<T>& dst, const LocalTensor<U>& src, Lanes mask, int32_t repeatTime,
                  int32_t dstRepStride, int32_t srcBlkStride, int32_t srcRepStride,
                  ReduceOrder order = ReduceOrder::ORDER_VALUE_INDEX, Where where = Where()) {
    ASCENDC_FLOATS(ReduceRepeat, T);
    ascendc_host::enter(where);
    const auto active = detail::make_mask<isSetMask>(mask, detail::lanes_of<T>(), "ReduceRepeat", where);
    const detail::Stride stride{uint32_t(srcBlkStride), uint32_t(srcRepStride)};
    if constexpr (reduceType == ReduceType::SUM) {
        detail::reduce_groups<reduceType>("ReduceRepeat", dst, src, active, repeatTime, detail::most_lanes,
                                          dstRepStride, sizeof(T), stride, where);
    } else {
        detail::reduce_with_index<reduceType>("ReduceRepeat", dst, src, active, repeatTime, dstRepStride,
                                              stride, order, where);
    }
}
template <ReduceType reduceType, typename T, typename U = T, bool isSetMask = true, typename Lanes>
void ReduceDataBlock(const LocalTensor<T>& dst, const LocalTensor<U>& src, Lanes mask, int32_t repeatTime,
                     int32_t dstRepStride, int32_t srcBlkStride, int32_t srcRepStride,
                     Where where = Where()) {
    ASCENDC_FLOATS(ReduceDataBlock, T);
    ascendc_host::enter(where);
    detail::reduce_groups<reduceType>(
        "ReduceDataBlock", dst, src,
        detail::make_mask<isSetMask>(mask, detail::lanes_of<T>(), "ReduceDataBlock", where), repeatTime,
        32 / sizeof(T), uint64_t(dstRepStride) * 8, 8 * sizeof(T),
        {uint32_t(srcBlkStride), uint32_t(srcRepStride)}, where);
}
template <ReduceType reduceType, typename T, typename U = T, bool isSetMask = true, typename Lanes>
void ReducePairElem(const LocalTensor<T>& dst, const LocalTensor<U>& src, Lanes mask, int32_t repeatTime,
                    int32_t dstRepStride, int32_t srcBlkStride, int32_t srcRepStride, Where where = Where()) {
    ASCENDC_FLOATS(ReducePairElem, T);
    ascendc_host::enter(where);
    detail::reduce_groups<reduceType>(
        "ReducePairElem", dst, src,
        detail::make_mask<isSetMask>(mask, detail::lanes_of<T>(), "ReducePairElem", where), repeatTime, 2,
        uint64_t(dstRepStride) * detail::lanes_of<T>() / 2, 32,
        {uint32_t(srcBlkStride), uint32_t(srcRepStride)}, where);
}
template <typename T, bool isSetMask = true, typename Lanes>
void PairReduceSum(const LocalTensor<T>& dst, const LocalTensor<T>& src, int32_t repeatTime, Lanes mask,
                   int32_t dstRepStride, int32_t srcBlkStride, int32_t srcRepStride, Where where = Where()) {
    ReducePairElem<ReduceType::SUM, T, T, isSetMask>(dst, src, mask, repeatTime, dstRepStride, srcBlkStride,
                                                     srcRepStride, where);
}
template <typename T, bool isSetMask = true, typename Lanes>
void BlockReduceSum(const LocalTensor<T>& dst, const LocalTensor<T>& src, int32_t repeatTime, Lanes mask,
                    int32_t dstRepStride, int32_t srcBlkStride, int32_t srcRepStride, Where where = Where()) {
    ReduceDataBlock<ReduceType::SUM, T, T, isSetMask>(dst, src, mask, repeatTime, dstRepStride, srcBlkStride,
                                                      srcRepStride, where);
}
template <typename T, bool isSetMask = true, typename Lanes>
void BlockReduceMax(const LocalTensor<T>& dst, const LocalTensor<T>& src, int32_t repeatTime, Lanes mask,
                    int32_t dstRepStride, int32_t srcBlkStride, int32_t srcRepStride, Where where = Where()) {
    ReduceDataBlock<ReduceType::MAX, T, T, isSetMask>(dst, src, mask, repeatTime, dstRepStride, srcBlkStride,
                                                      srcRepStride, where);
}
template <typename T, bool isSetMask = true, typename Lanes>
void BlockReduceMin(const LocalTensor<T>& dst, const LocalTensor<T>& src, int32_t repeatTime, Lanes mask,
                    int32_t dstRepStride, int32_t srcBlkStride, int32_t srcRepStride, Where where = Where()) {
    ReduceDataBlock<ReduceType::MIN, T, T, isSetMask>(dst, src, mask, repeatTime, dstRepStride, srcBlkStride,
                                                      srcRepStride, where);
}
template <typename T, bool isSetMask = true, typename Lanes>
void RepeatReduceSum(const LocalTensor<T>& dst, const LocalTensor<T>& src, int32_t repeatTime, Lanes mask,
                     int32_t, int32_t srcBlkStride, int32_t dstRepStride, int32_t srcRepStride,
                     Where where = Where()) {
    WholeReduceSum<T, isSetMask>(dst, src, mask, repeatTime, dstRepStride, srcBlkStride, srcRepStride, where);
}
template <typename T, typename Lanes>
void ReduceSum(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<T>& sharedTmpBuffer,
               Lanes mask, int32_t repeatTime, int32_t srcRepStride, Where where = Where()) {
    ASCENDC_FLOATS(ReduceSum, T);
    ascendc_host::enter(where);
    std::vector<uint32_t> positions;
    const auto values = detail::all_active(
        "ReduceSum", src, detail::make_mask<true>(mask, detail::lanes_of<T>(), "ReduceSum", where),
        repeatTime, srcRepStride, positions, where);
    detail::use_reduction_space("ReduceSum", sharedTmpBuffer, repeatTime, 1, false, where);
    detail::store_sum(dst, values, false, where);
}
template <typename T, typename Lanes>
void ReduceMax(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<T>& sharedTmpBuffer,
               Lanes mask, int32_t repeatTime, int32_t srcRepStride, bool calIndex = false,
               Where where = Where()) {
    ASCENDC_FLOATS(ReduceMax, T);
    ascendc_host::enter(where);
    std::vector<uint32_t> positions;
    const auto values = detail::all_active(
        "ReduceMax", src, detail::make_mask<true>(mask, detail::lanes_of<T>(), "ReduceMax", where),
        repeatTime, srcRepStride, positions, where);
    detail::use_reduction_space("ReduceMax", sharedTmpBuffer, repeatTime, 2, calIndex, where);
    detail::store_extreme<ReduceType::MAX>("ReduceMax", dst, values, &positions, calIndex, where);
}
template <typename T, typename Lanes>
void ReduceMin(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<T>& sharedTmpBuffer,
               Lanes mask, int32_t repeatTime, int32_t srcRepStride, bool calIndex = false,
               Where where = Where()) {
    ASCENDC_FLOATS(ReduceMin, T);
    ascendc_host::enter(where);
    std::vector<uint32_t> positions;
    const auto values = detail::all_active(
        "ReduceMin", src, detail::make_mask<true>(mask, detail::lanes_of<T>(), "ReduceMin", where),
        repeatTime, srcRepStride, positions, where);
    detail::use_reduction_space("ReduceMin", sharedTmpBuffer, repeatTime, 2, calIndex, where);
    detail::store_extreme<ReduceType::MIN>("ReduceMin", dst, values, &positions, calIndex, where);
}

// --- of a tensor
// -----------------------------------------------------------------------------------------------------

template <typename T, bool isSetMask = true>
void ReduceSum(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<T>&,  // not used
               const int32_t count, Where where = Where()) {
    ASCENDC_FLOATS(ReduceSum, T);
    detail::leave_masks(ascendc_host::enter(where));
    detail::store_sum(dst, detail::first_elements("ReduceSum", src, count, where), true, where);
}
template <typename T>
void ReduceMax(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<T>& sharedTmpBuffer,
               const int32_t count, bool calIndex = false, Where where = Where()) {
    ASCENDC_FLOATS(ReduceMax, T);
    ascendc_host::enter(where);
    const auto values = detail::first_elements("ReduceMax", src, count, where);
    detail::use_reduction_space("ReduceMax", sharedTmpBuffer, count / detail::lanes_of<T>(), 2, calIndex,
                                where);
    detail::store_extreme<ReduceType::MAX>("ReduceMax", dst, values, nullptr, calIndex, where);
}
template <typename T>
void ReduceMin(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<T>& sharedTmpBuffer,
               const int32_t count, bool calIndex = false, Where where = Where()) {
    ASCENDC_FLOATS(ReduceMin, T);
    ascendc_host::enter(where);
    const auto values = detail::first_elements("ReduceMin", src, count, where);
    detail::use_reduction_space("ReduceMin", sharedTmpBuffer, count / detail::lanes_of<T>(), 2, calIndex,
                                where);
    detail::store_extreme<ReduceType::MIN>("ReduceMin", dst, values, nullptr, calIndex, where);
}

// --- the registers of the last reduction
// -----------------------------------------------------------------------------

namespace detail {
inline const Block::Reduced& reduced_sum(const char* api, const Where& where) {
    const Block& block = ascendc_host::enter(where);
    if (block.sum.missing != nullptr)
        ascendc_host::fail(block, where,
                           ascendc_host::format("%s: no sum can be read, for %s; call ReduceSum of a "
                                                "count right before it, or read its dst",
                                                api, block.sum.missing));
    return block.sum;
}
inline const Block::Reduced& reduced_extreme(const char* api, const Where& where) {
    const Block& block = ascendc_host::enter(where);
#if __NPU_ARCH__ == 3510
    ascendc_host::fail(block, where,
                       ascendc_host::format("%s: dav-3510 does not have it; read the result from dst", api));
#endif
    if (block.extreme.missing != nullptr)
        ascendc_host::fail(
            block, where,
            ascendc_host::format("%s: no extreme can be read, for %s; call WholeReduceMax or "
                                 "WholeReduceMin of repeats one after the other right before it",
                                 api, block.extreme.missing));
    return block.extreme;
}
[[noreturn]] inline void extreme_alone(const char* api, const Where& where) {
    ascendc_host::fail(ascendc_host::enter(where), where,
                       ascendc_host::format("%s: this SoC gives a value with its index alone; write "
                                            "%s(value, index)",
                                            api, api));
}
}  // namespace detail

template <typename T>
T GetAccVal(Where where = Where()) {
    return static_cast<T>(detail::reduced_sum("GetAccVal", where).value);
}
// The register itself: the sum's bits, in the lowest of the word.
inline int64_t GetAccVal(Where where = Where()) { return detail::reduced_sum("GetAccVal", where).bits; }
template <typename T>
T GetReduceRepeatSumSpr(Where where = Where()) {
    return static_cast<T>(detail::reduced_sum("GetReduceRepeatSumSpr", where).value);
}
// The extreme of all repeats, and its index among all elements as the bits of an element; after ReduceMax and
// ReduceMin the index is not that of the extreme.
#define ASCENDC_EXTREME(Name)                                                        \
    template <typename T>                                                            \
    void Name(T& maxMinValue, T& maxMinIndex, Where where = Where()) {               \
        const auto& kept = detail::reduced_extreme(#Name, where);                    \
        maxMinValue = static_cast<T>(kept.value);                                    \
        maxMinIndex = detail::index_bits<T>(kept.index);                             \
    }                                                                                \
    template <typename T>                                                            \
    void Name(uint32_t& maxMinValue, uint32_t& maxMinIndex, Where where = Where()) { \
        const auto& kept = detail::reduced_extreme(#Name, where);                    \
        maxMinValue = detail::bits_of(static_cast<T>(kept.value));                   \
        maxMinIndex = kept.index;                                                    \
    }                                                                                \
    template <typename T>                                                            \
    void Name(T&, Where where = Where()) {                                           \
        detail::extreme_alone(#Name, where);                                         \
    }
ASCENDC_EXTREME(GetReduceMaxMinCount)
ASCENDC_EXTREME(GetReduceRepeatMaxMinSpr)
#undef ASCENDC_EXTREME

}  // namespace AscendC

#endif  // ASCENDC_HOST_BASIC_API_REDUCE_H
