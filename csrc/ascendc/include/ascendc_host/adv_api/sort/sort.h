// Sorting of whole tensors, and the largest or smallest elements of rows.
#ifndef ASCENDC_HOST_ADV_API_SORT_SORT_H
#define ASCENDC_HOST_ADV_API_SORT_SORT_H

#include <algorithm>
#include <numeric>
#include <vector>

#include "ascendc_host/basic_api/arithmetic.h"
#include "ascendc_host/basic_api/sort.h"
#include "ascendc_host/internal/sizes.h"

// Numbers that CANN's header of TopK leaves in the global namespace, where kernels of others use them.
namespace {
constexpr uint16_t MIN_SORT32_SIZE = 32, MIN_RPSORT16_SIZE = 16;
constexpr uint32_t BUF_LIST_SIZE = 2;
constexpr uint32_t MRG_MAX_ARRAY_SIZE = 15;
constexpr uint32_t MRGSORT_VALID_QUEUE = 4, MRGSORT_VALID_TWO = 2, MRGSORT_VALID_TWO_OFFSET = 769;
constexpr uint32_t TWO = 2, THREE = 3, FOUR = 4, FIVE = 5, SIX = 6, SEVEN = 7, EIGHT = 8, NINE = 9;
constexpr uint32_t TWELVE = 12, SIXTEEN = 16, THIRTY_TWO = 32, FORTYEIGHT = 48;
}  // namespace

namespace AscendC {

namespace detail {
// An unsigned number in the order of the elements, as radix algorithms compare them: -0 is below 0, and a NaN
// is beyond the infinity of its sign.
template <typename T>
Bits<T> radix_key(const T& value) {
    using U = Bits<T>;
    constexpr U sign = static_cast<U>(U{1} << (8 * sizeof(T) - 1));
    const U bits = bits_of(value);
    if constexpr (std::is_unsigned<T>::value)
        return bits;
    else if constexpr (std::is_integral<T>::value)
        return static_cast<U>(bits ^ sign);
    else
        return static_cast<U>((bits & sign) != 0 ? ~bits : bits ^ sign);
}
}  // namespace detail

// On this architecture the scores are sorted as they are: there is nothing to bring together.
template <typename T>
void Concat(LocalTensor<T>& concat, const LocalTensor<T>& src, const LocalTensor<T>&, const int32_t) {
    concat = src;
}
template <typename T, bool isFullSort>
void Sort(const LocalTensor<T>& dst, const LocalTensor<T>& concat, const LocalTensor<uint32_t>& index,
          LocalTensor<T>& tmp, const int32_t repeatTime, Where where = Where()) {
    Sort32(dst, concat, index, repeatTime, where);
    if (!isFullSort) return;
    // A device merges from there: GetSortTmpSize says its size.
    const uint64_t bytes = uint64_t(repeatTime) * 32 * 8;
    const T* space = detail::vector_operand(tmp, bytes, "Sort", "tmp", where);
    ascendc_host::require_apart("Sort", {"tmp", space, bytes}, {"dst", dst.bytes(), bytes}, where);
    auto* all = reinterpret_cast<detail::Scored<T>*>(dst.use_bytes(bytes, "Sort", "dst", where));
    std::stable_sort(all, all + repeatTime * 32,
                     [](const auto& a, const auto& b) { return a.score > b.score; });
}
#if __NPU_ARCH__ == 3510
constexpr SortConfig DEFAULT_SORT_CONFIG = {SortType::RADIX_SORT, false};
namespace detail {
// Numbers by size, with their indices where they are asked for; of equal ones the first stays before. Without
// indices of the caller's they are counted from 0.
template <typename T, const SortConfig& config, typename U>
void sort_by(const LocalTensor<T>& dst, const LocalTensor<U>* dst_index, const LocalTensor<T>& src,
             const LocalTensor<U>* src_index, uint32_t count, const Where& where) {
    constexpr bool merges = config.type == SortType::MERGE_SORT;
    static_assert(!merges || ((std::is_same<T, half>::value || std::is_same<T, float>::value) &&
                              std::is_same<U, uint32_t>::value),
                  "Sort: MERGE_SORT is for half and float, with indices of uint32_t");
    static_assert(is_one_of<U, uint32_t, int32_t, uint64_t, int64_t>,
                  "Sort: indices are of uint32_t, int32_t, uint64_t or int64_t");
    const auto& block = ascendc_host::enter(where);
    if (merges && count % 32 != 0)
        ascendc_host::fail(
            block, where, ascendc_host::format("Sort: %u elements; MERGE_SORT takes multiples of 32", count));
    const T* from = vector_operand(src, uint64_t(count) * sizeof(T), "Sort", "srcTensor", where);
    // Merged lists have 8 bytes for each number.
    T* to = vector_operand(dst, uint64_t(count) * (merges ? 8 : sizeof(T)), "Sort", "dstTensor", where);
    const U* given = nullptr;
    U* indices = nullptr;
    if (src_index != nullptr)
        given = vector_operand(*src_index, uint64_t(count) * sizeof(U), "Sort", "srcIndexTensor", where);
    if (dst_index != nullptr)
        indices = vector_operand(*dst_index, uint64_t(count) * sizeof(U), "Sort", "dstIndexTensor", where);
    const uint64_t index_bytes = uint64_t(count) * sizeof(U);
    ascendc_host::require_apart("Sort",
                                {{"dstTensor", to, uint64_t(count) * (merges ? 8 : sizeof(T))},
                                 {"dstIndexTensor", indices, indices == nullptr ? 0 : index_bytes}},
                                {{"srcTensor", from, uint64_t(count) * sizeof(T)},
                                 {"srcIndexTensor", given, given == nullptr ? 0 : index_bytes}},
                                where);
    std::vector<uint32_t> order(count);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [from](uint32_t a, uint32_t b) {
        if (config.isDescend) std::swap(a, b);
        if constexpr (merges)
            return from[a] < from[b];
        else
            return radix_key(from[a]) < radix_key(from[b]);
    });
    for (uint32_t i = 0; i < count; ++i) {
        to[i] = from[order[i]];
        if (indices != nullptr) indices[i] = given == nullptr ? static_cast<U>(order[i]) : given[order[i]];
    }
}
}  // namespace detail
template <typename T, bool isReuseSource = false, const SortConfig& config = DEFAULT_SORT_CONFIG>
void Sort(LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor, const uint32_t calCount,
          Where where = Where()) {
    detail::sort_by<T, config, uint32_t>(dstTensor, nullptr, srcTensor, nullptr, calCount, where);
}
template <typename T, bool isReuseSource = false, const SortConfig& config = DEFAULT_SORT_CONFIG>
void Sort(LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor, const LocalTensor<uint8_t>&,
          const uint32_t calCount, Where where = Where()) {
    detail::sort_by<T, config, uint32_t>(dstTensor, nullptr, srcTensor, nullptr, calCount, where);
}
template <typename T, bool isReuseSource = false, const SortConfig& config = DEFAULT_SORT_CONFIG>
void Sort(LocalTensor<T>& dstTensor, LocalTensor<uint32_t>& dstIndexTensor, const LocalTensor<T>& srcTensor,
          const uint32_t calCount, Where where = Where()) {
    detail::sort_by<T, config, uint32_t>(dstTensor, &dstIndexTensor, srcTensor, nullptr, calCount, where);
}
template <typename T, bool isReuseSource = false, const SortConfig& config = DEFAULT_SORT_CONFIG>
void Sort(LocalTensor<T>& dstTensor, LocalTensor<uint32_t>& dstIndexTensor, const LocalTensor<T>& srcTensor,
          const LocalTensor<uint8_t>&, const uint32_t calCount, Where where = Where()) {
    detail::sort_by<T, config, uint32_t>(dstTensor, &dstIndexTensor, srcTensor, nullptr, calCount, where);
}
template <typename T, typename U, bool isReuseSource = false, const SortConfig& config = DEFAULT_SORT_CONFIG>
void Sort(const LocalTensor<T>& dstTensor, const LocalTensor<U>& dstIndexTensor,
          const LocalTensor<T>& srcTensor, const LocalTensor<U>& srcIndexTensor, const uint32_t calCount,
          Where where = Where()) {
    detail::sort_by<T, config, U>(dstTensor, &dstIndexTensor, srcTensor, &srcIndexTensor, calCount, where);
}
template <typename T, typename U, bool isReuseSource = false, const SortConfig& config = DEFAULT_SORT_CONFIG>
void Sort(LocalTensor<T>& dstTensor, LocalTensor<U>& dstIndexTensor, const LocalTensor<T>& srcTensor,
          const LocalTensor<U>& srcIndexTensor, const LocalTensor<uint8_t>&, const uint32_t calCount,
          Where where = Where()) {
    detail::sort_by<T, config, U>(dstTensor, &dstIndexTensor, srcTensor, &srcIndexTensor, calCount, where);
}
#endif
template <typename T>
void Extract(const LocalTensor<T>& dstValue, const LocalTensor<uint32_t>& dstIndex,
             const LocalTensor<T>& sorted, const int32_t repeatTime, Where where = Where()) {
    ascendc_host::enter(where);
    const uint64_t count = uint64_t(repeatTime) * 32;
    const auto* from = reinterpret_cast<const detail::Scored<T>*>(
        detail::vector_operand(sorted, count * 8, "Extract", "sorted", where));
    T* values = detail::vector_operand(dstValue, count * sizeof(T), "Extract", "dstValue", where);
    uint32_t* indices = detail::vector_operand(dstIndex, count * 4, "Extract", "dstIndex", where);
    for (uint64_t i = 0; i < count; ++i) {
        values[i] = from[i].score;
        indices[i] = from[i].index;
    }
}
// Elements of T that `elemCount` sorted entries take, and where the entry `elemOffset` starts.
template <typename T>
uint32_t GetSortLen(const uint32_t elemCount) {
    return elemCount * 8 / sizeof(T);
}
template <typename T>
uint32_t GetSortOffset(const uint32_t elemOffset) {
    return elemOffset * 8 / sizeof(T);
}

// Of `outter` rows of `inner` elements, a multiple of 32, the first `n` of each count.
struct TopKInfo {
    int32_t outter = 1;
    int32_t inner;
    int32_t n;
};

namespace detail {
inline void check_topk(const TopKInfo& info, int32_t k, TopKMode mode, const Where& where) {
    const char* rule = nullptr;
    if (info.outter < 1) rule = "outter is positive";
    if (info.inner < 1 || info.inner % 32 != 0 || info.inner > 4096) rule = "inner is 32, 64 … 4096";
    if (mode == TopKMode::TOPK_NSMALL && info.inner != 32) rule = "inner is 32 in the small mode";
    if (info.n < 1 || info.n > info.inner) rule = "n is 1 to inner";
    if (k < 1 || k > info.n) rule = "k is 1 to n";
    if (rule == nullptr) return;
    ascendc_host::fail(ascendc_host::current(), where,
                       ascendc_host::format("TopK: outter %d, inner %d, n %d, k %d; %s", info.outter,
                                            info.inner, info.n, k, rule));
}
// The order in which MERGE_SORT takes the elements of a row: equal ones as they stand, NaN before all.
template <typename T>
void order_by_merging(std::vector<uint32_t>& order, const T* row, bool is_largest) {
    std::stable_sort(order.begin(), order.end(), [=](uint32_t a, uint32_t b) {
        const float x = static_cast<float>(row[a]), y = static_cast<float>(row[b]);
        if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && !std::isnan(y);
        return is_largest ? x > y : x < y;
    });
}
// The order in which RADIX_SELECT takes them. Unsorted, the elements beyond the k-th one stay as they stand,
// before those that equal it; kernels cannot rely on it.
template <typename T>
void order_by_radix(std::vector<uint32_t>& order, const T* row, bool is_largest, bool sorted, uint64_t k) {
    const auto is_before = [=](uint32_t a, uint32_t b) {
        return is_largest ? radix_key(row[a]) > radix_key(row[b]) : radix_key(row[a]) < radix_key(row[b]);
    };
    std::stable_sort(order.begin(), order.end(), is_before);
    const auto equal = std::lower_bound(order.begin(), order.begin() + k, order[k - 1], is_before);
    if (!sorted) std::sort(order.begin(), equal);
}
}  // namespace detail

constexpr TopKConfig defaultTopKConfig = {TopKAlgo::MERGE_SORT, TopKOrder::UNSET, true};

// The k largest or smallest of each row with their indices. MERGE_SORT sorts all `inner` elements of a row;
// without indices of the caller's its indices are of no use: -1. A row that is marked finished has its
// values, and n as every index. RADIX_SELECT looks at the first `n`, and counts them from 0 without indices.
template <typename T, bool isInitIndex = false, bool isHasfinish = false, bool isReuseSrc = false,
          enum TopKMode topkMode = TopKMode::TOPK_NORMAL, const TopKConfig& config = defaultTopKConfig,
          typename Tiling>
void TopK(const LocalTensor<T>& dstValueLocal, const LocalTensor<int32_t>& dstIndexLocal,
          const LocalTensor<T>& srcLocal, const LocalTensor<int32_t>& srcIndexLocal,
          const LocalTensor<bool>& finishLocal, const int32_t k, const Tiling&, const TopKInfo& topKInfo,
          const bool isLargest = true, Where where = Where()) {
    constexpr bool selects = config.algo == TopKAlgo::RADIX_SELECT;
    static_assert(!selects || __NPU_ARCH__ == 3510, "TopK: RADIX_SELECT is of dav-3510");
    static_assert(!selects || !isHasfinish, "TopK: isHasfinish is false with RADIX_SELECT");
    static_assert(selects || std::is_same<T, half>::value || std::is_same<T, float>::value,
                  "TopK: MERGE_SORT is for half and float");
    static_assert(!selects || detail::is_one_of<T, int8_t, uint8_t, int16_t, uint16_t, int32_t, uint32_t,
                                                int64_t, uint64_t, half, float, bfloat16_t>,
                  "TopK: RADIX_SELECT is for integers, half, float and bfloat16_t");
    constexpr bool small = topkMode == TopKMode::TOPK_NSMALL;
    const auto& block = ascendc_host::enter(where);
    if (small && isHasfinish)
        ascendc_host::fail(block, where, "TopK: isHasfinish is false with TopKMode::TOPK_NSMALL");
    detail::check_topk(topKInfo, k, topkMode, where);
    const uint64_t rows = topKInfo.outter, inner = topKInfo.inner, taken = k;
    const auto pitch = [taken](uint64_t per_block) {
        return small ? taken : (taken + per_block - 1) / per_block * per_block;
    };
    const uint64_t value_pitch = pitch(ONE_BLK_SIZE / sizeof(T)), index_pitch = pitch(8);
    const T* from = detail::vector_operand(srcLocal, rows * inner * sizeof(T), "TopK", "srcLocal", where);
    T* values =
        detail::vector_operand(dstValueLocal, rows * value_pitch * sizeof(T), "TopK", "dstValueLocal", where);
    int32_t* indices =
        detail::vector_operand(dstIndexLocal, rows * index_pitch * 4, "TopK", "dstIndexLocal", where);
    const int32_t* given = nullptr;
    if constexpr (isInitIndex) {
        given = detail::vector_operand(srcIndexLocal, (small ? rows : 1) * inner * 4, "TopK", "srcIndexLocal",
                                       where);
    }
    const bool* finished = nullptr;
    if constexpr (isHasfinish) {
        finished = detail::vector_operand(finishLocal, rows, "TopK", "finishLocal", where);
    }
    ascendc_host::require_apart(
        "TopK",
        {{"dstValueLocal", values, rows * value_pitch * sizeof(T)},
         {"dstIndexLocal", indices, rows * index_pitch * 4}},
        {{"srcLocal", from, rows * inner * sizeof(T)},
         {"srcIndexLocal", given, given == nullptr ? 0 : (small ? rows : 1) * inner * 4}},
        where);
    const bool takes_largest =
        selects && config.order != TopKOrder::UNSET ? config.order == TopKOrder::LARGEST : isLargest;
    std::vector<uint32_t> order(selects ? topKInfo.n : inner);
    for (uint64_t row = 0; row < rows; ++row) {
        const T* row_from = from + row * inner;
        std::iota(order.begin(), order.end(), 0);
        if constexpr (selects)
            detail::order_by_radix(order, row_from, takes_largest, config.sorted, taken);
        else
            detail::order_by_merging(order, row_from, takes_largest);
        for (uint64_t i = 0; i < taken; ++i) {
            values[row * value_pitch + i] = row_from[order[i]];
            int32_t& index = indices[row * index_pitch + i];
            const int32_t unnamed = selects ? static_cast<int32_t>(order[i]) : -1;
            index = given == nullptr ? unnamed : given[(small ? row * inner : 0) + order[i]];
            if (finished != nullptr && finished[row]) index = topKInfo.n;
        }
    }
}
template <typename T, bool isInitIndex = false, bool isHasfinish = false, bool isReuseSrc = false,
          enum TopKMode topkMode = TopKMode::TOPK_NORMAL, const TopKConfig& config = defaultTopKConfig,
          typename Tiling>
void TopK(const LocalTensor<T>& dstValueLocal, const LocalTensor<int32_t>& dstIndexLocal,
          const LocalTensor<T>& srcLocal, const LocalTensor<int32_t>& srcIndexLocal,
          const LocalTensor<bool>& finishLocal, const LocalTensor<uint8_t>&, const int32_t k,
          const Tiling& tilling, const TopKInfo& topKInfo, const bool isLargest = true,
          Where where = Where()) {
    TopK<T, isInitIndex, isHasfinish, isReuseSrc, topkMode, config>(dstValueLocal, dstIndexLocal, srcLocal,
                                                                    srcIndexLocal, finishLocal, k, tilling,
                                                                    topKInfo, isLargest, where);
}

}  // namespace AscendC

#endif  // ASCENDC_HOST_ADV_API_SORT_SORT_H
