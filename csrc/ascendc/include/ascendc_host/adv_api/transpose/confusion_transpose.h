// Transpose by a tiling (ConfusionTranspose): matrices in fractals and in rows, with heads split and merged.
#ifndef ASCENDC_HOST_ADV_API_TRANSPOSE_CONFUSION_TRANSPOSE_H
#define ASCENDC_HOST_ADV_API_TRANSPOSE_CONFUSION_TRANSPOSE_H

#include <vector>

#include "../../../kernel_tiling/kernel_tiling.h"
#include "ascendc_host/basic_api/reshape.h"

namespace AscendC {

// [B, N, S, H] whose last two dimensions are in fractals of 16 x 16, to the layout of the type; a matrix to
// its transpose. The tiling has the shape.
template <typename T>
void Transpose(const LocalTensor<T>& dst, const LocalTensor<T>& src, TransposeType transposeType,
               const ConfusionTransposeTiling& tiling, Where where = Where()) {
    static_assert(detail::is_one_of<T, int16_t, uint16_t, half, int32_t, uint32_t, float>,
                  "Transpose by a tiling is for int16_t, uint16_t, half, int32_t, uint32_t and float");
    using Type = TransposeType;
    const auto& block = ascendc_host::enter(where);
    const auto type = static_cast<uint32_t>(transposeType);
    const uint64_t b = tiling.param1, n = tiling.param2, s = tiling.param3, h = tiling.param4;
    if (type == 0 || type > static_cast<uint32_t>(Type::TRANSPOSE_ND2ND_ONLY) || tiling.param0 != type ||
        b * n * s * h == 0) {
        ascendc_host::fail(
            block, where,
            ascendc_host::format("Transpose: type %u with a tiling of type %u; valid: 1 to 7, and a "
                                 "tiling that GetTransposeTilingInfo made for it",
                                 type, tiling.param0));
    }
    const uint64_t size = b * n * s * h * sizeof(T);
    const T* data = detail::vector_operand(src, size, "Transpose", "src", where);
    T* to = detail::vector_operand(dst, size, "Transpose", "dst", where);
    const std::vector<T> from(data, data + b * n * s * h);  // what is written may be what is read
    // Element (row, column) of matrix `at` of [count, rows, columns] in fractals.
    const auto fractal = [](uint64_t at, uint64_t rows, uint64_t columns, uint64_t row, uint64_t column) {
        return ((at * (columns / 16) + column / 16) * (rows / 16) + row / 16) * 256 + row % 16 * 16 +
               column % 16;
    };
    const bool splits = transposeType == Type::TRANSPOSE_NZ2NZ_012_WITH_N ||
                        transposeType == Type::TRANSPOSE_NZ2ND_012_WITH_N;
    for (uint64_t i = 0; i < b * n * s * h; ++i) {
        const uint64_t x = i % h, row = i / h % s, head = i / h / s % n, batch = i / h / s / n;
        const uint64_t matrix = batch * n + head, column = head * h + x;
        const auto place = [&]() -> uint64_t {
            switch (transposeType) {
                case Type::TRANSPOSE_NZ2ND_0213:
                    return ((batch * s + row) * n + head) * h + x;
                case Type::TRANSPOSE_NZ2NZ_0213:
                    return fractal(batch * s + row, n, h, head, x);
                case Type::TRANSPOSE_NZ2NZ_012_WITH_N:
                    return fractal(matrix, s, h, row, x);
                case Type::TRANSPOSE_NZ2ND_012_WITH_N:
                    return (matrix * s + row) * h + x;
                case Type::TRANSPOSE_NZ2ND_012_WITHOUT_N:
                    return (batch * s + row) * n * h + column;
                case Type::TRANSPOSE_NZ2NZ_012_WITHOUT_N:
                    return fractal(batch, s, n * h, row, column);
                default:
                    return x * s + row;
            }
        };
        to[place()] = from[transposeType == Type::TRANSPOSE_ND2ND_ONLY ? i
                           : splits                                    ? fractal(batch, s, n * h, row, column)
                                                                       : fractal(matrix, s, h, row, x)];
    }
}
template <typename T>
void Transpose(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<uint8_t>&,
               TransposeType transposeType, const ConfusionTransposeTiling& tiling, Where where = Where()) {
    Transpose(dst, src, transposeType, tiling, where);
}
// As they were called at first.
template <typename T>
void ConfusionTranspose(const LocalTensor<T>& dst, const LocalTensor<T>& src, TransposeType transposeType,
                        const ConfusionTransposeTiling& tiling, Where where = Where()) {
    Transpose(dst, src, transposeType, tiling, where);
}
template <typename T>
void ConfusionTranspose(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<uint8_t>&,
                        TransposeType transposeType, const ConfusionTransposeTiling& tiling,
                        Where where = Where()) {
    Transpose(dst, src, transposeType, tiling, where);
}

}  // namespace AscendC

#endif  // ASCENDC_HOST_ADV_API_TRANSPOSE_CONFUSION_TRANSPOSE_H
