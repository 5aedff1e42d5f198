// Sorting: 32 elements at a time, and merging of sorted lists of (score, index) in 8 bytes each.
#ifndef ASCENDC_HOST_BASIC_API_SORT_H
#define ASCENDC_HOST_BASIC_API_SORT_H

#include "ascendc_host/basic_api/arithmetic.h"

namespace AscendC {

struct MrgSort4Info {
    MrgSort4Info() = default;
    MrgSort4Info(const uint16_t lengths[MRG_SORT_ELEMENT_LEN], bool suspend, uint16_t valid, uint16_t repeats)
        : ifExhaustedSuspension(suspend), validBit(valid), repeatTimes(static_cast<uint8_t>(repeats)) {
        std::copy_n(lengths, MRG_SORT_ELEMENT_LEN, elementLengths);
    }
    uint16_t elementLengths[MRG_SORT_ELEMENT_LEN] = {};
    bool ifExhaustedSuspension = false;
    uint16_t validBit = 0;
    uint8_t repeatTimes = 1;
};
template <typename T>
struct MrgSortSrcList {
    MrgSortSrcList() = default;
    MrgSortSrcList(const LocalTensor<T>& first, const LocalTensor<T>& second, const LocalTensor<T>& third,
                   const LocalTensor<T>& fourth)
        : src1(first), src2(second), src3(third), src4(fourth) {}
    LocalTensor<T> src1, src2, src3, src4;
};

namespace detail {

// An element of a sorted list: the score in the low bytes, the index in the high four.
template <typename T>
struct Scored;
template <>
struct Scored<float> {
    float score;
    uint32_t index;
};
template <>
struct Scored<half> {
    half score;
    uint16_t unused;
    uint32_t index;
};

// Merges `lists` by falling score; of equal scores the earlier list goes first. Returns how many were taken
// of each.
template <typename T>
std::vector<uint32_t> merge(Scored<T>* to, const std::vector<std::pair<const Scored<T>*, uint32_t>>& lists,
                            bool stop_when_one_ends) {
    std::vector<uint32_t> taken(lists.size(), 0);
    for (;;) {
        int best = -1;
        for (size_t i = 0; i < lists.size(); ++i) {
            if (taken[i] == lists[i].second) {
                if (stop_when_one_ends) return taken;
                continue;
            }
            if (best < 0 || lists[i].first[taken[i]].score > lists[best].first[taken[best]].score)
                best = static_cast<int>(i);
        }
        if (best < 0) return taken;
        *to++ = lists[best].first[taken[best]++];
    }
}

}  // namespace detail

// Each repeat sorts 32 scores with their indices by falling score.
template <typename T>
void Sort32(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<uint32_t>& src1,
            const int32_t repeatTime, Where where = Where()) {
    ascendc_host::enter(where);
    detail::require_repeats("Sort32", repeatTime, where);
    const uint64_t count = uint64_t(repeatTime) * 32;
    const T* scores = detail::vector_operand(src0, count * sizeof(T), "Sort32", "src0", where);
    const uint32_t* indices = detail::vector_operand(src1, count * 4, "Sort32", "src1", where);
    auto* to =
        reinterpret_cast<detail::Scored<T>*>(detail::vector_operand(dst, count * 8, "Sort32", "dst", where));
    const auto repeats = static_cast<uint32_t>(repeatTime);
    ascendc_host::require_order("Sort32", {"dst", to, 32 * 8}, {"src0", scores, 32 * sizeof(T)}, repeats,
                                where);
    ascendc_host::require_order("Sort32", {"dst", to, 32 * 8}, {"src1", indices, 32 * 4}, repeats, where);
    for (int32_t repeat = 0; repeat < repeatTime; ++repeat) {
        detail::Scored<T> group[32] = {};
        for (int i = 0; i < 32; ++i) {
            group[i].score = scores[repeat * 32 + i];
            group[i].index = indices[repeat * 32 + i];
        }
        std::stable_sort(group, group + 32, [](const auto& a, const auto& b) { return a.score > b.score; });
        std::copy_n(group, 32, to + repeat * 32);
    }
}

// Merges up to four sorted lists, chosen by validBit.
template <typename T>
void MrgSort(const LocalTensor<T>& dst, const MrgSortSrcList<T>& src, const MrgSort4Info& params,
             Where where = Where()) {
    auto& block = ascendc_host::enter(where);
    if (params.validBit != 3 && params.validBit != 7 && params.validBit != 15) {
        ascendc_host::fail(
            block, where,
            ascendc_host::format("MrgSort: validBit %u; valid: 3, 7, 15", unsigned(params.validBit)));
    }
    const LocalTensor<T>* lists[] = {&src.src1, &src.src2, &src.src3, &src.src4};
    uint64_t total = 0;
    for (int i = 0; i < 4; ++i) {
        if ((params.validBit >> i & 1) == 0) continue;
        total += params.elementLengths[i];
        if (params.elementLengths[i] > 4095)
            ascendc_host::fail(
                block, where,
                ascendc_host::format("MrgSort: elementLengths[%d] is %u; valid: 0 to 4095; merge in parts", i,
                                     unsigned(params.elementLengths[i])));
    }
    for (uint32_t repeat = 0; repeat < params.repeatTimes; ++repeat) {
        std::vector<std::pair<const detail::Scored<T>*, uint32_t>> chosen;
        for (int i = 0; i < 4; ++i) {
            if ((params.validBit >> i & 1) == 0) continue;
            const uint64_t skipped = repeat * total * 8;
            const uint8_t* at =
                reinterpret_cast<const uint8_t*>(detail::vector_operand(
                    *lists[i], skipped + params.elementLengths[i] * 8u, "MrgSort", "a source", where, 8)) +
                skipped;
            ascendc_host::require_apart("MrgSort", {"dst", dst.bytes(), total * params.repeatTimes * 8},
                                        {"a source", at, params.elementLengths[i] * uint64_t{8}}, where);
            chosen.emplace_back(reinterpret_cast<const detail::Scored<T>*>(at), params.elementLengths[i]);
        }
        detail::vector_operand(dst, (repeat + 1) * total * 8, "MrgSort", "dst", where);
        std::vector<detail::Scored<T>> merged(total);
        const auto taken = detail::merge(merged.data(), chosen, params.ifExhaustedSuspension);
        uint64_t count = 0;
        for (size_t i = 0; i < 4; ++i) {
            block.sorted[i] = i < taken.size() ? static_cast<uint16_t>(taken[i]) : 0;
            count += block.sorted[i];
        }
        std::memcpy(dst.bytes() + repeat * total * 8, merged.data(), count * 8);
    }
}
template <typename T, bool isExhaustedSuspension = false>
void MrgSort(const LocalTensor<T>& dst, const MrgSortSrcList<T>& sortList, const uint16_t elementCountList[4],
             uint32_t sortedNum[4], uint16_t validBit, const int32_t repeatTime, Where where = Where()) {
    ascendc_host::enter(where);
    detail::require_repeats("MrgSort", repeatTime, where);
    const MrgSort4Info info(elementCountList, isExhaustedSuspension, validBit,
                            static_cast<uint16_t>(repeatTime));
    MrgSort(dst, sortList, info, where);
    std::copy_n(ascendc_host::current().sorted, 4, sortedNum);
}
inline void GetMrgSortResult(uint16_t& first, uint16_t& second, uint16_t& third, uint16_t& fourth) {
    const auto& sorted = ascendc_host::current().sorted;
    first = sorted[0];
    second = sorted[1];
    third = sorted[2];
    fourth = sorted[3];
}

}  // namespace AscendC

#endif  // ASCENDC_HOST_BASIC_API_SORT_H
