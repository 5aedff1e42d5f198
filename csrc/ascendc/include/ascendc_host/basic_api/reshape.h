// Instructions that move elements: gather, scatter, blocks of copies, transpose, index vectors, interleave.
#ifndef ASCENDC_HOST_BASIC_API_RESHAPE_H
#define ASCENDC_HOST_BASIC_API_RESHAPE_H

#include <vector>

#include "ascendc_host/basic_api/arithmetic.h"
#include "ascendc_host/basic_api/copy.h"

namespace AscendC {

struct BrcbRepeatParams {
    BrcbRepeatParams() = default;
    BrcbRepeatParams(uint16_t dst_block, uint16_t dst_repeat)
        : dstRepStride(dst_repeat), dstBlkStride(dst_block) {}
    uint32_t blockNumber = DEFAULT_BLK_NUM;
    uint16_t dstRepStride = DEFAULT_REPEAT_STRIDE;
    uint16_t dstBlkStride = DEFAULT_BLK_STRIDE;
};
struct GatherRepeatParams {
    GatherRepeatParams() = default;
    GatherRepeatParams(uint8_t dst_block, uint8_t dst_repeat)
        : dstRepStride(dst_repeat), dstBlkStride(dst_block) {}
    uint32_t blockNumber = DEFAULT_BLK_NUM;
    uint16_t dstRepStride = DEFAULT_REPEAT_STRIDE;
    uint8_t dstBlkStride = DEFAULT_BLK_STRIDE;
};
struct GatherMaskParams {
    GatherMaskParams() = default;
    GatherMaskParams(uint8_t block, uint16_t repeats, uint16_t repeat, uint8_t pattern_repeat)
        : src0BlockStride(block),
          repeatTimes(repeats),
          src0RepeatStride(repeat),
          src1RepeatStride(pattern_repeat) {}
    uint8_t src0BlockStride = DEFAULT_BLK_STRIDE;
    uint16_t repeatTimes = 0;
    uint16_t src0RepeatStride = DEFAULT_REPEAT_STRIDE;
    uint8_t src1RepeatStride = DEFAULT_REPEAT_STRIDE;
};
struct TransDataTo5HDParams {
    TransDataTo5HDParams() = default;
    constexpr TransDataTo5HDParams(bool dst_high, bool src_high, uint8_t repeats, uint16_t dst_repeat,
                                   uint16_t src_repeat)
        : dstHighHalf(dst_high),
          srcHighHalf(src_high),
          repeatTimes(repeats),
          dstRepStride(dst_repeat),
          srcRepStride(src_repeat) {}
    bool dstHighHalf = false;
    bool srcHighHalf = false;
    uint8_t repeatTimes = 1;
    uint16_t dstRepStride = 0;
    uint16_t srcRepStride = 0;
};
enum class TransposeType : uint8_t {
    TRANSPOSE_TYPE_NONE,
    TRANSPOSE_NZ2ND_0213,
    TRANSPOSE_NZ2NZ_0213,
    TRANSPOSE_NZ2NZ_012_WITH_N,
    TRANSPOSE_NZ2ND_012_WITH_N,
    TRANSPOSE_NZ2ND_012_WITHOUT_N,
    TRANSPOSE_NZ2NZ_012_WITHOUT_N,
    TRANSPOSE_ND2ND_ONLY,
    TRANSPOSE_ND_UB_GM,
    TRANSPOSE_GRAD_ND_UB_GM,
    TRANSPOSE_ND2ND_B16,
    TRANSPOSE_NCHW2NHWC,
    TRANSPOSE_NHWC2NCHW
};
struct TransposeParamsExt {
    TransposeParamsExt() = default;
    TransposeParamsExt(uint16_t n, uint16_t c, uint16_t h, uint16_t w, TransposeType type)
        : nSize(n), cSize(c), hSize(h), wSize(w), transposeType(type) {}
    uint16_t nSize = 0;
    uint16_t cSize = 0;
    uint16_t hSize = 0;
    uint16_t wSize = 0;
    TransposeType transposeType = TransposeType::TRANSPOSE_ND2ND_B16;
};

namespace detail {
// An element of `src` at a byte offset that the kernel computed.
template <typename T>
const T* gather_from(const LocalTensor<T>& src, uint64_t offset, uint64_t bytes, const char* api,
                     const Where& where) {
    ascendc_host::require_whole_bytes<T>();
    if (offset % sizeof(T) != 0) {
        ascendc_host::fail(
            ascendc_host::current(), where,
            ascendc_host::format("%s: offset %llu is not a multiple of the element's %zu bytes", api,
                                 static_cast<unsigned long long>(offset), sizeof(T)));
    }
    return reinterpret_cast<const T*>(src.use_bytes(offset + bytes, api, "src", where) + offset);
}
template <typename T>
void gather_repeats(const LocalTensor<T>& dst, const LocalTensor<T>& src,
                    const LocalTensor<uint32_t>& offsets, uint32_t base, const Mask& mask, uint32_t repeats,
                    uint32_t dst_repeat, const Where& where) {
    constexpr uint32_t lanes = lanes_of<T>();
    repeats = mask.repeats(repeats, lanes);
    const Operand<T> to(dst, {1, dst_repeat}, mask, repeats, lanes, "Gather", "dst", where);
    // Offsets are read one after the other, 4 bytes each, whatever the element's size.
    const uint32_t* from = vector_operand(
        offsets, uint64_t(repeats == 0 ? 0 : (repeats - 1) * lanes + mask.end(repeats - 1, lanes)) * 4,
        "Gather", "srcOffset", where);
    ascendc_host::Written earlier(to.data(), (uint64_t(repeats) * std::max(dst_repeat, 1u) + 8) * 32);
    for (uint32_t repeat = 0; repeat < repeats; ++repeat) {
        const uint32_t end = mask.end(repeat, lanes);
        T values[lanes];
        for (uint32_t lane = 0; lane < end; ++lane) {
            if (!mask.active(repeat, lane, lanes)) continue;
            const T* at =
                gather_from(src, uint64_t(base) + from[repeat * lanes + lane], sizeof(T), "Gather", where);
            if (earlier.has(at)) ascendc_host::fail_order("Gather", "dst", "src", where);
            values[lane] = *at;
        }
        for (uint32_t lane = 0; lane < end; ++lane) {
            if (!mask.active(repeat, lane, lanes)) continue;
            to.at(repeat, lane) = values[lane];
            earlier.add(&to.at(repeat, lane));
        }
    }
}
}  // namespace detail

// dst[i] = the element of src at byte srcBaseOffset + srcOffset[i].
template <typename T>
void Gather(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<uint32_t>& srcOffset,
            uint32_t srcBaseOffset, uint32_t count, Where where = Where()) {
    ascendc_host::enter(where);
    ASCENDC_WORDS_OF_CALL(Gather, T, where);
    detail::gather_repeats(dst, src, srcOffset, srcBaseOffset, {true, count, 0, 0}, 0, DEFAULT_REPEAT_STRIDE,
                           where);
}
template <typename T, typename Lanes>
void Gather(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<uint32_t>& srcOffset,
            uint32_t srcBaseOffset, Lanes mask, uint8_t repeatTime, uint16_t dstRepStride,
            Where where = Where()) {
    ascendc_host::enter(where);
    ASCENDC_WORDS_OF_CALL(Gather, T, where);
    detail::gather_repeats(dst, src, srcOffset, srcBaseOffset,
                           detail::make_mask<true>(mask, detail::lanes_of<T>(), "Gather", where), repeatTime,
                           dstRepStride, where);
}

// Blocks of 32 bytes by byte offsets, eight in a repeat.
template <typename T>
void Gatherb(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<uint32_t>& offset,
             uint8_t repeatTime, const GatherRepeatParams& params, Where where = Where()) {
    ASCENDC_ELEMENTS(Gatherb, T, uint16_t, uint32_t);
    ascendc_host::enter(where);
    const uint32_t block = params.dstBlkStride == 0 ? 1 : params.dstBlkStride;
    const uint32_t* from =
        detail::vector_operand(offset, uint64_t(repeatTime) * 32, "Gatherb", "offset", where);
    for (uint32_t i = 0; i < repeatTime * 8u; ++i) {
        const uint64_t at = (uint64_t(i / 8) * params.dstRepStride + uint64_t(i % 8) * block) * ONE_BLK_SIZE;
        detail::vector_operand(dst, at + ONE_BLK_SIZE, "Gatherb", "dst", where);
        std::memmove(dst.bytes() + at, detail::gather_from(src, from[i], ONE_BLK_SIZE, "Gatherb", where),
                     ONE_BLK_SIZE);
    }
}

#if __NPU_ARCH__ == 3510
// The element of dst at byte dstBaseAddr + dstOffset[i] = src[i].
template <typename T>
void Scatter(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<uint32_t>& dstOffset,
             uint32_t dstBaseAddr, uint32_t count, Where where = Where()) {
    ascendc_host::enter(where);
    const T* from = detail::vector_operand(src, uint64_t(count) * sizeof(T), "Scatter", "src", where);
    const uint32_t* to =
        detail::vector_operand(dstOffset, uint64_t(count) * 4, "Scatter", "dstOffset", where);
    for (uint32_t i = 0; i < count; ++i) {
        *const_cast<T*>(
            detail::gather_from(dst, uint64_t(dstBaseAddr) + to[i], sizeof(T), "Scatter", where)) = from[i];
    }
}
namespace detail {
template <typename T>
void scatter_repeats(const LocalTensor<T>& dst, const LocalTensor<T>& src,
                     const LocalTensor<uint32_t>& offsets, uint32_t base, const Mask& mask, uint32_t repeats,
                     uint32_t src_repeat, const Where& where) {
    static_assert(sizeof(T) > 1, "Scatter: with masks elements have 16 bits or more");
    constexpr uint32_t lanes = lanes_of<T>();
    repeats = mask.repeats(repeats, lanes);
    const Operand<T> from(src, {1, src_repeat}, mask, repeats, lanes, "Scatter", "src", where);
    const uint32_t* to = vector_operand(
        offsets, uint64_t(repeats == 0 ? 0 : (repeats - 1) * lanes + mask.end(repeats - 1, lanes)) * 4,
        "Scatter", "dstOffset", where);
    for (uint32_t repeat = 0; repeat < repeats; ++repeat) {
        for (uint32_t lane = 0; lane < mask.end(repeat, lanes); ++lane) {
            if (!mask.active(repeat, lane, lanes)) continue;
            *const_cast<T*>(gather_from(dst, uint64_t(base) + to[repeat * lanes + lane], sizeof(T), "Scatter",
                                        where)) = from.at(repeat, lane);
        }
    }
}
}  // namespace detail
template <typename T, typename Lanes>
void Scatter(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<uint32_t>& dstOffset,
             uint32_t dstBaseAddr, Lanes mask, uint8_t repeatTime, uint8_t srcRepStride,
             Where where = Where()) {
    ascendc_host::enter(where);
    detail::scatter_repeats(dst, src, dstOffset, dstBaseAddr,
                            detail::make_mask<true>(mask, detail::lanes_of<T>(), "Scatter", where),
                            repeatTime, srcRepStride, where);
}
#endif

namespace detail {
// The patterns 1 to 7 of GatherMask: every second, every fourth, every element.
inline bool in_pattern(uint32_t pattern, uint32_t lane) {
    switch (pattern) {
        case 1:
            return lane % 2 == 0;
        case 2:
            return lane % 2 == 1;
        case 7:
            return true;
        default:
            return lane % 4 == pattern - 3;
    }
}
template <typename T, typename Selected>
void gather_mask(const LocalTensor<T>& dst, const LocalTensor<T>& src, bool counter, uint32_t mask,
                 const GatherMaskParams& params, uint64_t& kept, const Where& where,
                 const Selected& selected) {
    ASCENDC_WORDS_OF_CALL(GatherMask, T, where);
    constexpr uint32_t lanes = lanes_of<T>();
    const uint32_t per_repeat = counter ? mask : lanes;
    kept = 0;
    std::vector<T> values;  // of a repeat of the instruction
    const auto store = [&] {
        if (values.empty()) return;
        T* to = dst.use(kept + values.size(), "GatherMask", "dst", where) + kept;
        std::copy(values.begin(), values.end(), to);
        kept += values.size();
        values.clear();
    };
    for (uint32_t repeat = 0; repeat < params.repeatTimes; ++repeat) {
        for (uint32_t i = 0; i < per_repeat; ++i) {
            if (i % lanes == 0) store();
            if (!selected(repeat, i)) continue;
            const uint64_t at = (uint64_t(repeat) * params.src0RepeatStride +
                                 uint64_t(i / (32 / sizeof(T))) * params.src0BlockStride) *
                                    32 +
                                i % (32 / sizeof(T)) * sizeof(T);
            const uint8_t* from = src.use_bytes(at + sizeof(T), "GatherMask", "src0", where) + at;
            if (ascendc_host::Span{"dst", dst.bytes(), kept * sizeof(T)}.meets({"src0", from, sizeof(T)}))
                ascendc_host::fail_order("GatherMask", "dst", "src0", where);
            values.push_back(*reinterpret_cast<const T*>(from));
        }
    }
    store();
    ascendc_host::current().gathered = kept;
    ascendc_host::current().counter_mode = false;
}
}  // namespace detail

// Keeps the elements whose bit is set, one after the other; `rsvdCnt` is their number.
template <typename T, typename U, GatherMaskMode mode = GatherMaskMode::VERSION_V1>
void GatherMask(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<U>& src1Pattern,
                bool reduceMode, uint32_t mask, const GatherMaskParams& params, uint64_t& rsvdCnt,
                Where where = Where()) {
    static_assert(detail::is_one_of<U, uint16_t, uint32_t>,
                  "GatherMask: src1Pattern has elements of uint16_t or uint32_t; use ReinterpretCast");
    ascendc_host::enter(where);
    detail::gather_mask(
        dst, src0, reduceMode, mask, params, rsvdCnt, where, [&](uint32_t repeat, uint32_t i) {
            const uint64_t byte = uint64_t(repeat) * params.src1RepeatStride * ONE_BLK_SIZE + i / 8;
            return ((src1Pattern.use_bytes(byte + 1, "GatherMask", "src1Pattern", where)[byte] >> (i % 8)) &
                    1) != 0;
        });
}
template <typename T, GatherMaskMode mode = GatherMaskMode::VERSION_V1>
void GatherMask(const LocalTensor<T>& dst, const LocalTensor<T>& src0, uint8_t src1Pattern, bool reduceMode,
                uint32_t mask, const GatherMaskParams& params, uint64_t& rsvdCnt, Where where = Where()) {
    const auto& block = ascendc_host::enter(where);
    if (src1Pattern < 1 || src1Pattern > 7) {
        ascendc_host::fail(
            block, where,
            ascendc_host::format("GatherMask: pattern %u; valid: 1 to 7", unsigned(src1Pattern)));
    }
    detail::gather_mask(dst, src0, reduceMode, mask, params, rsvdCnt, where,
                        [&](uint32_t, uint32_t i) { return detail::in_pattern(src1Pattern, i); });
}
inline int64_t GetGatherMaskRemainCount() { return AscendCUtils::GetRsvdCnt(); }

// Each of eight elements in a repeat fills a block of 32 bytes.
template <typename T>
void Brcb(const LocalTensor<T>& dst, const LocalTensor<T>& src, uint8_t repeatTime,
          const BrcbRepeatParams& params, Where where = Where()) {
    ascendc_host::enter(where);
    ASCENDC_WORDS_OF_CALL(Brcb, T, where);
    if (params.dstBlkStride == 0 && repeatTime != 0)
        ascendc_host::fail(ascendc_host::current(), where,
                           "Brcb: dstBlkStride 0 is undefined; valid: 1 or more");
    const uint32_t block = params.dstBlkStride;
    const T* from = detail::vector_operand(src, uint64_t(repeatTime) * 8 * sizeof(T), "Brcb", "src", where);
    ascendc_host::require_order("Brcb", {"dst", dst.bytes(), uint64_t(params.dstRepStride) * ONE_BLK_SIZE},
                                {"src", from, 8 * sizeof(T)}, repeatTime, where);
    for (uint32_t repeat = 0; repeat < repeatTime; ++repeat) {
        T values[8];
        std::copy_n(from + repeat * 8, 8, values);
        for (uint32_t i = 0; i < 8; ++i) {
            const uint64_t at = (uint64_t(repeat) * params.dstRepStride + uint64_t(i) * block) * ONE_BLK_SIZE;
            detail::vector_operand(dst, at + ONE_BLK_SIZE, "Brcb", "dst", where);
            std::fill_n(reinterpret_cast<T*>(dst.bytes() + at), ONE_BLK_SIZE / sizeof(T), values[i]);
        }
    }
}

// firstValue, firstValue + 1, …
template <typename T>
void CreateVecIndex(LocalTensor<T> dst, const detail::Same<T>& firstValue, uint32_t count,
                    Where where = Where()) {
    ASCENDC_NUMBERS(CreateVecIndex, T);
    ascendc_host::enter(where);
    T* to = detail::vector_operand(dst, uint64_t(count) * sizeof(T), "CreateVecIndex", "dst", where);
    for (uint32_t i = 0; i < count; ++i) to[i] = static_cast<T>(firstValue + static_cast<T>(i));
}
namespace detail {
template <typename T>
void index_repeats(const LocalTensor<T>& dst, T first, const Mask& mask, uint32_t repeats, uint32_t block,
                   uint32_t repeat, const Where& where) {
    constexpr uint32_t lanes = lanes_of<T>();
    repeats = mask.repeats(repeats, lanes);
    const Operand<T> to(dst, {block, repeat}, mask, repeats, lanes, "CreateVecIndex", "dst", where);
    for (uint32_t r = 0; r < repeats; ++r) {
        for (uint32_t lane = 0; lane < mask.end(r, lanes); ++lane) {
            if (mask.active(r, lane, lanes))
                to.at(r, lane) = static_cast<T>(first + static_cast<T>(r * lanes + lane));
        }
    }
}
}  // namespace detail
template <typename T>
void CreateVecIndex(LocalTensor<T>& dst, const detail::Same<T>& firstValue, uint64_t mask, uint8_t repeatTime,
                    uint16_t dstBlkStride, uint8_t dstRepStride, Where where = Where()) {
    ASCENDC_NUMBERS(CreateVecIndex, T);
    ascendc_host::enter(where);
    detail::index_repeats<T>(dst, firstValue,
                             detail::make_mask<true>(mask, detail::lanes_of<T>(), "CreateVecIndex", where),
                             repeatTime, dstBlkStride, dstRepStride, where);
}
template <typename T>
void CreateVecIndex(LocalTensor<T>& dst, const detail::Same<T>& firstValue, uint64_t mask[],
                    uint8_t repeatTime, uint16_t dstBlkStride, uint8_t dstRepStride, Where where = Where()) {
    ASCENDC_NUMBERS(CreateVecIndex, T);
    ascendc_host::enter(where);
    detail::index_repeats<T>(dst, firstValue,
                             detail::make_mask<true>(mask, detail::lanes_of<T>(), "CreateVecIndex", where),
                             repeatTime, dstBlkStride, dstRepStride, where);
}
// Pairs of elements, one of each source, over both destinations; and back.
template <typename T>
void Interleave(const LocalTensor<T>& dst0, const LocalTensor<T>& dst1, const LocalTensor<T>& src0,
                const LocalTensor<T>& src1, int32_t count, Where where = Where()) {
    ASCENDC_ONLY_DAV3510(Interleave, T, "use Gather");
    ascendc_host::enter(where);
    const uint64_t bytes = uint64_t(count) * sizeof(T);
    const T* a = detail::vector_operand(src0, bytes, "Interleave", "src0", where);
    const T* b = detail::vector_operand(src1, bytes, "Interleave", "src1", where);
    T* halves[] = {detail::vector_operand(dst0, bytes, "Interleave", "dst0", where),
                   detail::vector_operand(dst1, bytes, "Interleave", "dst1", where)};
    std::vector<T> all;
    for (int32_t i = 0; i < count; ++i) all.insert(all.end(), {a[i], b[i]});
    for (int32_t i = 0; i < 2 * count; ++i) halves[i / count][i % count] = all[i];
}
template <typename T>
void DeInterleave(const LocalTensor<T>& dst0, const LocalTensor<T>& dst1, const LocalTensor<T>& src0,
                  const LocalTensor<T>& src1, int32_t count, Where where = Where()) {
    ASCENDC_ONLY_DAV3510(DeInterleave, T, "use Gather");
    ascendc_host::enter(where);
    const uint64_t bytes = uint64_t(count) * sizeof(T);
    const T* a = detail::vector_operand(src0, bytes, "DeInterleave", "src0", where);
    const T* b = detail::vector_operand(src1, bytes, "DeInterleave", "src1", where);
    std::vector<T> all(a, a + count);
    all.insert(all.end(), b, b + count);
    T* to[] = {detail::vector_operand(dst0, bytes, "DeInterleave", "dst0", where),
               detail::vector_operand(dst1, bytes, "DeInterleave", "dst1", where)};
    for (int32_t i = 0; i < 2 * count; ++i) to[i % 2][i / 2] = all[i];
}

// A matrix of 16 x 16 elements of 2 bytes.
template <typename T>
void Transpose(const LocalTensor<T>& dst, const LocalTensor<T>& src, Where where = Where()) {
    ascendc_host::enter(where);
    ASCENDC_ELEMENTS_OF_CALL(Transpose, T, where, half, int16_t, uint16_t);
    T block[256];
    std::memcpy(block, detail::vector_operand(src, sizeof block, "Transpose", "src", where), sizeof block);
    T* to = detail::vector_operand(dst, sizeof block, "Transpose", "dst", where);
    for (int i = 0; i < 256; ++i) to[i % 16 * 16 + i / 16] = block[i];
}
// [N, C, H, W] to [N, H, W, C] and back, or one block of 16 x 16.
template <typename T>
void Transpose(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<uint8_t>&,
               const TransposeParamsExt& params, Where where = Where()) {
    const auto& block = ascendc_host::enter(where);
    if (params.transposeType == TransposeType::TRANSPOSE_ND2ND_B16) {
        if constexpr (sizeof(T) == 2) return Transpose(dst, src, where);
        ascendc_host::fail(block, where, "Transpose: TRANSPOSE_ND2ND_B16 is for elements of 2 bytes");
    }
    const uint64_t inner = uint64_t(params.hSize) * params.wSize;
    const bool forth = params.transposeType == TransposeType::TRANSPOSE_NCHW2NHWC;
    if (!forth && params.transposeType != TransposeType::TRANSPOSE_NHWC2NCHW) {
        ascendc_host::fail(
            block, where,
            ascendc_host::format(
                "Transpose: type %d; valid: TRANSPOSE_ND2ND_B16, TRANSPOSE_NCHW2NHWC, TRANSPOSE_NHWC2NCHW",
                static_cast<int>(params.transposeType)));
    }
    const uint64_t rows = forth ? params.cSize : inner;
    const uint64_t columns = forth ? inner : params.cSize;
    const uint64_t count = params.nSize * rows * columns;
    if (count == 0) return;
    if (params.cSize > 4095 || inner > 4095 || inner * sizeof(T) % 32 != 0)
        ascendc_host::fail(
            block, where,
            ascendc_host::format(
                "Transpose: cSize %u, hSize * wSize %llu; each is at most 4095, and hSize * wSize "
                "elements are whole blocks of 32 bytes",
                unsigned(params.cSize), static_cast<unsigned long long>(inner)));
    const T* from = detail::vector_operand(src, count * sizeof(T), "Transpose", "src", where);
    T* to = detail::vector_operand(dst, count * sizeof(T), "Transpose", "dst", where);
    ascendc_host::require_apart("Transpose", {"dst", to, count * sizeof(T)}, {"src", from, count * sizeof(T)},
                                where);
    for (uint64_t i = 0; i < count; ++i) {
        const uint64_t batch = i / (rows * columns);
        const uint64_t at = i % (rows * columns);
        to[batch * rows * columns + at % columns * rows + at / columns] = from[i];
    }
}

namespace detail {
// Sixteen rows of 32 bytes become columns. Elements of 1 byte fill one half of the rows at a time, elements
// of 4 bytes two rows each. A single repeat begins a stride after the addresses, as documented; of several
// the first does not.
template <typename T, typename Address>
void to_5hd(const TransDataTo5HDParams& params, const Address& row) {
    constexpr uint32_t width = 32 / sizeof(T);
    const uint64_t first = params.repeatTimes == 1 ? 1 : 0;
    for (uint64_t repeat = first; repeat < first + params.repeatTimes; ++repeat) {
        T matrix[16][width];
        for (uint32_t i = 0; i < 16; ++i) {
            std::memcpy(matrix[i], row(false, i, repeat * params.srcRepStride * ONE_BLK_SIZE), 32);
        }
        for (uint32_t i = 0; i < 16; ++i) {
            T* to = reinterpret_cast<T*>(row(true, i, repeat * params.dstRepStride * ONE_BLK_SIZE));
            if constexpr (sizeof(T) == 1) {
                const uint32_t column = i + (params.srcHighHalf ? 16 : 0);
                for (uint32_t j = 0; j < 16; ++j) to[j + (params.dstHighHalf ? 16 : 0)] = matrix[j][column];
            } else if constexpr (sizeof(T) == 2) {
                for (uint32_t j = 0; j < 16; ++j) to[j] = matrix[j][i];
            } else {
                for (uint32_t j = 0; j < 8; ++j) to[j] = matrix[i % 2 * 8 + j][i / 2];
            }
        }
    }
}
}  // namespace detail
template <typename T>
void TransDataTo5HD(const LocalTensor<T> (&dstList)[NCHW_CONV_ADDR_LIST_SIZE],
                    const LocalTensor<T> (&srcList)[NCHW_CONV_ADDR_LIST_SIZE],
                    const TransDataTo5HDParams& params, Where where = Where()) {
    ascendc_host::enter(where);
    detail::to_5hd<T>(params, [&](bool destination, uint32_t i, uint64_t at) {
        const char* name = destination ? "dstList" : "srcList";
        return reinterpret_cast<uint8_t*>(detail::vector_operand((destination ? dstList : srcList)[i],
                                                                 at + 32, "TransDataTo5HD", name, where)) +
               at;
    });
}
template <typename T>
void TransDataTo5HD(const uint64_t dstList[NCHW_CONV_ADDR_LIST_SIZE],
                    const uint64_t srcList[NCHW_CONV_ADDR_LIST_SIZE], const TransDataTo5HDParams& params,
                    Where where = Where()) {
    const auto& block = ascendc_host::enter(where);
    const uint64_t begin = reinterpret_cast<uint64_t>(block.memory(ascendc_host::Memory::ub));
    detail::to_5hd<T>(params, [&](bool destination, uint32_t i, uint64_t at) {
        const uint64_t address = (destination ? dstList : srcList)[i] + at;
        if (address < begin || address + 32 > begin + TOTAL_UB_SIZE) {
            ascendc_host::fail(block, where, "TransDataTo5HD: an address outside the unified buffer");
        }
        detail::check_aligned(reinterpret_cast<const void*>(address), 32, "TransDataTo5HD",
                              destination ? "dstList" : "srcList", where);
        return reinterpret_cast<uint8_t*>(address);
    });
}
// The addresses lie in the unified buffer.
template <typename T>
void TransDataTo5HD(const LocalTensor<uint64_t>& dst, const LocalTensor<uint64_t>& src,
                    const TransDataTo5HDParams& params, Where where = Where()) {
    constexpr uint64_t bytes = NCHW_CONV_ADDR_LIST_SIZE * sizeof(uint64_t);
    ascendc_host::enter(where);
    const uint64_t* to = detail::vector_operand(dst, bytes, "TransDataTo5HD", "dst", where);
    TransDataTo5HD<T>(to, detail::vector_operand(src, bytes, "TransDataTo5HD", "src", where), params, where);
}

}  // namespace AscendC

#endif  // ASCENDC_HOST_BASIC_API_RESHAPE_H
