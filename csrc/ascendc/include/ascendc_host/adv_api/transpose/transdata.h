// TransData: a tensor from one format to another, by the layouts of both.
#ifndef ASCENDC_HOST_ADV_API_TRANSPOSE_TRANSDATA_H
#define ASCENDC_HOST_ADV_API_TRANSPOSE_TRANSDATA_H

#include <array>
#include <string>
#include <tuple>

#include "ascendc_host/basic_api/arithmetic.h"
#include "ascendc_host/basic_api/layout.h"
#include "ascendc_host/internal/sizes.h"

namespace AscendC {

template <typename T, typename U>
struct TransDataParams {
    T srcLayout;
    U dstLayout;
};

namespace detail {

// The sizes of a layout; as many as its format has.
template <size_t rank, typename L>
std::array<uint64_t, rank> sizes_of(const L& layout) {
    static_assert(is_layout<L>::value, "TransData: a layout is expected, as MakeLayout gives");
    using Sizes = std::decay_t<decltype(layout.GetShape())>;
    static_assert(std::tuple_size_v<Sizes> == rank, "TransData: a layout has another rank than its format");
    return std::apply([](auto... sizes) { return std::array<uint64_t, rank>{uint64_t(sizes)...}; },
                      layout.GetShape());
}

// A tensor of [N, C, D, H, W] with rows of H·W that are filled up to 32 bytes, and the same in blocks of 16
// channels, which FRACTAL_Z_3D has in blocks of 16 batches each: copies between them, in either direction.
template <DataFormat blocks, bool to_blocks, typename T>
void trans_data(const LocalTensor<T>& dst, const LocalTensor<T>& src, const std::array<uint64_t, 5>& plain,
                const std::array<uint64_t, blocks == DataFormat::NDC1HWC0 ? 6 : 7>& blocked,
                const Where& where) {
    constexpr uint64_t block = 16;
    constexpr bool is_fractal = blocks == DataFormat::FRACTAL_Z_3D;
    auto& at = ascendc_host::enter(where);
    const auto [N, C, D, H, W] = plain;
    const uint64_t area = H * W, row = (area + block - 1) / block * block;
    const uint64_t C1 = (C + block - 1) / block, N1 = (N + block - 1) / block;
    std::decay_t<decltype(blocked)> expected;
    if constexpr (is_fractal) {
        expected = {D, C1, H, W, N1, block, block};
    } else {
        expected = {N, D, C1, H, W, block};
    }
    if (blocked != expected) {
        std::string found, needed;
        for (uint64_t size : blocked) found += " " + std::to_string(size);
        for (uint64_t size : expected) needed += " " + std::to_string(size);
        ascendc_host::fail(at, where,
                           ascendc_host::format("TransData: a layout of%s; of NCDHW %u %u %u %u %u it is%s",
                                                found.c_str(), unsigned(N), unsigned(C), unsigned(D),
                                                unsigned(H), unsigned(W), needed.c_str()));
    }
    const uint64_t plain_bytes = N * C * D * row * sizeof(T);
    const uint64_t blocked_bytes = (is_fractal ? N1 * block : N) * D * C1 * area * block * sizeof(T);
    const T* from =
        vector_operand(src, to_blocks ? plain_bytes : blocked_bytes, "TransData", "srcTensor", where);
    T* to = vector_operand(dst, to_blocks ? blocked_bytes : plain_bytes, "TransData", "dstTensor", where);
    if constexpr (to_blocks) std::fill_n(to, blocked_bytes / sizeof(T), T());
    for (uint64_t n = 0; n < N; ++n)
        for (uint64_t c = 0; c < C; ++c)
            for (uint64_t d = 0; d < D; ++d)
                for (uint64_t i = 0; i < area; ++i) {
                    const uint64_t in_row = ((n * C + c) * D + d) * row + i;
                    const uint64_t outer = is_fractal ? d * C1 + c / block : (n * D + d) * C1 + c / block;
                    const uint64_t pixel = outer * area + i;
                    const uint64_t in_block =
                        (is_fractal ? pixel * N1 * block + n : pixel) * block + c % block;
                    to[to_blocks ? in_block : in_row] = from[to_blocks ? in_row : in_block];
                }
}

}  // namespace detail

template <const TransDataConfig& config, typename T, typename U, typename S>
void TransData(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor,
               const TransDataParams<U, S>& params, Where where = Where()) {
    static_assert(detail::is_one_of<T, int16_t, uint16_t, half, bfloat16_t>,
                  "TransData is for int16_t, uint16_t, half and bfloat16_t");
    constexpr bool to_blocks = config.srcFormat == DataFormat::NCDHW;
    constexpr DataFormat plain = to_blocks ? config.srcFormat : config.dstFormat;
    constexpr DataFormat blocks = to_blocks ? config.dstFormat : config.srcFormat;
    static_assert(
        plain == DataFormat::NCDHW && (blocks == DataFormat::NDC1HWC0 || blocks == DataFormat::FRACTAL_Z_3D),
        "TransData converts between NCDHW and NDC1HWC0 or FRACTAL_Z_3D");
    constexpr size_t rank = blocks == DataFormat::NDC1HWC0 ? 6 : 7;
    if constexpr (to_blocks) {
        detail::trans_data<blocks, true>(dstTensor, srcTensor, detail::sizes_of<5>(params.srcLayout),
                                         detail::sizes_of<rank>(params.dstLayout), where);
    } else {
        detail::trans_data<blocks, false>(dstTensor, srcTensor, detail::sizes_of<5>(params.dstLayout),
                                          detail::sizes_of<rank>(params.srcLayout), where);
    }
}
template <const TransDataConfig& config, typename T, typename U, typename S>
void TransData(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor, const LocalTensor<uint8_t>&,
               const TransDataParams<U, S>& params, Where where = Where()) {
    TransData<config>(dstTensor, srcTensor, params, where);
}

}  // namespace AscendC

#endif  // ASCENDC_HOST_ADV_API_TRANSPOSE_TRANSDATA_H
