// Columns added to a matrix in the unified buffer, and taken away.
#ifndef ASCENDC_HOST_ADV_API_PAD_PAD_H
#define ASCENDC_HOST_ADV_API_PAD_PAD_H

#include <vector>

#include "../../../kernel_tiling/kernel_tiling.h"
#include "ascendc_host/adv_api/reduce/reduce_pattern.h"

namespace AscendC {

struct PadParams {
    uint16_t leftPad = 0;
    uint16_t rightPad = 0;
    int32_t padValue = 0;
};
struct UnPadParams {
    uint16_t leftPad = 0;  // without effect, as on the device
    uint16_t rightPad = 0;
};

namespace detail {

template <typename T>
constexpr bool can_pad = is_one_of<T, int16_t, uint16_t, half, int32_t, uint32_t, float>;

inline void check_padded(bool fits, const char* api, uint32_t rows, uint32_t columns, uint32_t counted,
                         uint32_t left, uint32_t right, const char* rule, const Where& where) {
    if (fits) return;
    ascendc_host::fail(ascendc_host::enter(where), where,
                       ascendc_host::format("%s: %u rows of %u columns of which %u count, %u columns on the "
                                            "left and %u on the right; %s",
                                            api, rows, columns, counted, left, right, rule));
}

}  // namespace detail

// dst = the rows of src with columns of padValue on both sides, each row as long as whole blocks of 32 bytes;
// or, where the rows of src are as long already, its last columns replaced by padValue.
template <typename T>
void Pad(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor, PadParams& padParams,
         PadTiling& tiling, Where where = Where()) {
    constexpr const char* api = "Pad";
    static_assert(detail::can_pad<T>, "Pad is for int16_t, uint16_t, half, int32_t, uint32_t and float");
    constexpr uint32_t per_block = ONE_BLK_SIZE / sizeof(T);
    const uint32_t rows = tiling.srcHeight, columns = tiling.srcWidth, counted = tiling.srcOriWidth;
    const uint32_t left = padParams.leftPad, right = padParams.rightPad;
    const uint32_t pitch = (columns + per_block - 1) / per_block * per_block;
    const bool aligned = pitch == columns;
    const auto check = [&](bool fits, const char* rule) {
        detail::check_padded(fits, api, rows, columns, counted, left, right, rule, where);
    };
    check(rows != 0 && columns != 0 && counted != 0 && counted <= columns,
          "neither may be 0; fill the tiling with PadTilingFunc");
    check(uint64_t(rows) * columns % per_block == 0, "the matrix is whole blocks of 32 bytes");
    check(!aligned || (left == 0 && counted < columns),
          "rows of whole blocks are padded on the right alone, in place of columns that do not count");
    check(left + counted + right <= pitch,
          "a padded row is no longer than the blocks of 32 bytes it began in");
    const T* from =
        detail::vector_operand(srcTensor, uint64_t(rows) * columns * sizeof(T), api, "src", where);
    T* to = detail::vector_operand(dstTensor, uint64_t(rows) * pitch * sizeof(T), api, "dst", where);
    const std::vector<T> source(from, from + uint64_t(rows) * columns);  // dst may lie where src does
    const T value = static_cast<T>(padParams.padValue);
    for (uint32_t row = 0; row < rows; ++row) {
        T* at = to + uint64_t(row) * pitch;
        at = std::fill_n(at, left, value);
        at = std::copy_n(source.begin() + uint64_t(row) * columns, counted, at);
        std::fill_n(at, right, value);
    }
}
template <typename T>
void Pad(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor, PadParams& padParams,
         const LocalTensor<uint8_t>&, PadTiling& tiling, Where where = Where()) {
    Pad(dstTensor, srcTensor, padParams, tiling, where);
}

// dst = the rows of src without their last rightPad columns, side by side.
template <typename T>
void UnPad(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor, UnPadParams& unPadParams,
           UnPadTiling& tiling, Where where = Where()) {
    constexpr const char* api = "UnPad";
    static_assert(detail::can_pad<T>, "UnPad is for int16_t, uint16_t, half, int32_t, uint32_t and float");
    constexpr uint32_t per_block = ONE_BLK_SIZE / sizeof(T);
    const uint32_t rows = tiling.srcHeight, columns = tiling.srcWidth, right = unPadParams.rightPad;
    detail::check_padded(
        rows != 0 && columns != 0 && columns % per_block == 0 && right != 0 && right < per_block, api, rows,
        columns, columns, unPadParams.leftPad, right,
        "rows are whole blocks of 32 bytes, and 1 column to one less than a block goes; fill "
        "the tiling with UnPadTilingFunc",
        where);
    const uint32_t kept = columns - right;
    const T* from =
        detail::vector_operand(srcTensor, uint64_t(rows) * columns * sizeof(T), api, "src", where);
    T* to = detail::vector_operand(dstTensor, uint64_t(rows) * kept * sizeof(T), api, "dst", where);
    for (uint32_t row = 0; row < rows; ++row) to = std::copy_n(from + uint64_t(row) * columns, kept, to);
}
template <typename T>
void UnPad(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor, UnPadParams& unPadParams,
           LocalTensor<uint8_t>&, UnPadTiling& tiling, Where where = Where()) {
    UnPad(dstTensor, srcTensor, unPadParams, tiling, where);
}

}  // namespace AscendC

#endif  // ASCENDC_HOST_ADV_API_PAD_PAD_H
