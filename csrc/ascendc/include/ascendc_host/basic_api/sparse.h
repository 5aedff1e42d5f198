// Products with a right matrix of which two in every four elements of a column are kept: where those were
// says an index matrix, two bits for each.
#ifndef ASCENDC_HOST_BASIC_API_SPARSE_H
#define ASCENDC_HOST_BASIC_API_SPARSE_H

#include "ascendc_host/basic_api/cube.h"

namespace AscendC {
namespace detail {

// Which of four elements the two that are kept were.
struct KeptPair {
    uint32_t first, second;
};
// The first index counts from element 0, the second from element 1; (1, 0) and (2, 0) are one element alone.
inline KeptPair kept_pair(uint32_t first, uint32_t second, const char* api, const Where& where) {
    const bool is_alone = first > 0 && second == 0;
    if (first > 2 || second > 2 || (!is_alone && second + 1 <= first))
        ascendc_host::fail(
            ascendc_host::current(), where,
            ascendc_host::format(
                "%s: indices %u and %u of four elements; they are 0 to 2, where the second element "
                "comes after the first or is the same, and those that were not loaded are 3",
                api, first, second));
    return {first, is_alone ? first : second + 1};
}
// whole[k, n] of kept[k / 2, n]; indices(row of kept, column) are the two bits of an element.
template <typename W, typename Indices>
void spread(const W* kept, uint32_t k, uint32_t n, std::vector<W>& whole, const char* api, const Where& where,
            const Indices& indices) {
    whole.assign(size_t(k) * n, W(0));
    for (uint32_t row = 0; row < k / 2; row += 2) {
        for (uint32_t column = 0; column < n; ++column) {
            const KeptPair pair = kept_pair(indices(row, column), indices(row + 1, column), api, where);
            W* to = whole.data() + size_t(row) * 2 * n + column;
            to[size_t(pair.first) * n] += kept[size_t(row) * n + column];
            to[size_t(pair.second) * n] += kept[size_t(row + 1) * n + column];
        }
    }
}

}  // namespace detail

#if __NPU_ARCH__ != 3510
// Fractals of a kept matrix to L0B, and of 128 bytes each of its indices to where MmadWithSparse looks for
// them.
inline void LoadDataWithSparse(const LocalTensor<int8_t>& dst, const LocalTensor<int8_t>& src,
                               const LocalTensor<uint8_t>& idx, const LoadData2dParams& loadDataParam,
                               Where where = Where()) {
    auto& block = ascendc_host::enter(where);
    constexpr uint64_t fractal = detail::fractal_bytes, indices = fractal / 4;
    detail::require_position(dst, ascendc_host::Memory::l0b, "LoadDataWithSparse", "dst", where);
    detail::require_position(src, ascendc_host::Memory::l1, "LoadDataWithSparse", "src", where);
    detail::require_position(idx, ascendc_host::Memory::l1, "LoadDataWithSparse", "idx", where);
    if (loadDataParam.repeatTimes == 0) return;
    const uint64_t bytes = loadDataParam.repeatTimes * fractal, from = loadDataParam.startIndex * fractal;
    uint8_t* to = dst.use_bytes(bytes, "LoadDataWithSparse", "dst", where);
    detail::check_aligned(to, fractal, "LoadDataWithSparse", "dst", where);
    std::memcpy(to, src.use_bytes(from + bytes, "LoadDataWithSparse", "src", where) + from, bytes);
    auto& kept = block.kept_indices;
    if (kept.empty()) kept.assign(ascendc_host::memory_bytes(ascendc_host::Memory::l0b) / 4, 0xff);
    std::memcpy(kept.data() + (to - block.memory(ascendc_host::Memory::l0b)) / 4,
                idx.use_bytes((from + bytes) / 4, "LoadDataWithSparse", "idx", where) + from / 4,
                bytes / fractal * indices);
}
// dst[m, n] = fm[m, k] * filter[k, n], of which filter has k / 2 rows and the indices that came with it.
inline void MmadWithSparse(const LocalTensor<int32_t>& dst, const LocalTensor<int8_t>& fm,
                           const LocalTensor<int8_t>& filter, const MmadParams& mmadParams,
                           Where where = Where()) {
    const auto& block = ascendc_host::enter(where);
    const uint32_t k = mmadParams.k, n = mmadParams.n;
    if (mmadParams.m == 1)
        ascendc_host::fail(
            block, where,
            "MmadWithSparse: m is 1, a product of a vector; it has no such mode, give two rows");
    if (k % 4 != 0)
        ascendc_host::fail(block, where,
                           ascendc_host::format("MmadWithSparse: k is %u; it is a multiple of 4", k));
    detail::mmad(dst, fm, filter, static_cast<const LocalTensor<int32_t>*>(nullptr), mmadParams, where,
                 [&](std::vector<int32_t>& whole) {
                     std::vector<int32_t> kept;
                     detail::unpack_b(filter, k / 2, n, kept, where);
                     const uint64_t begin = filter.bytes() - block.memory(ascendc_host::Memory::l0b);
                     const uint32_t columns = (n + 15) / 16;
                     detail::spread(kept.data(), k, n, whole, "MmadWithSparse", where,
                                    [&](uint32_t row, uint32_t column) -> uint32_t {
                                        if (block.kept_indices.empty()) return 3;
                                        const uint64_t at = begin +
                                                            (uint64_t(row / 32) * columns + column / 16) *
                                                                detail::fractal_bytes +
                                                            column % 16 * 32 + row % 32;
                                        return block.kept_indices[at / 4] >> (at % 4 * 2) & 3;
                                    });
                 });
}
#endif

}  // namespace AscendC

#endif  // ASCENDC_HOST_BASIC_API_SPARSE_H
