// Shapes with strides, and TransData, which is told by them what lies where.
#ifndef ASCENDC_HOST_LAYOUT_H
#define ASCENDC_HOST_LAYOUT_H

#include <array>
#include <tuple>

#include "arithmetic.h"
#include "patterns.h"

namespace AscendC {

template <typename... Shapes>
using Shape = Std::tuple<Shapes...>;
template <typename... Strides>
using Stride = Std::tuple<Strides...>;
template <typename... Coords>
using Coord = Std::tuple<Coords...>;

template <typename... Ts>
constexpr Shape<Ts...> MakeShape(const Ts&... t) {
    return {t...};
}
template <typename... Ts>
constexpr Stride<Ts...> MakeStride(const Ts&... t) {
    return {t...};
}
template <typename... Ts>
constexpr Coord<Ts...> MakeCoord(const Ts&... t) {
    return {t...};
}

namespace detail {

template <typename T>
struct is_tuple : std::false_type {};
template <typename... Ts>
struct is_tuple<std::tuple<Ts...>> : std::true_type {};

// Where a coordinate lies. One number for a dimension of several parts counts through them, the first one
// fastest; the last part takes what is left.
template <typename C, typename S, typename D>
constexpr auto index_of(const C& coord, const S& shape, const D& stride);

template <size_t part, typename C, typename S, typename D>
constexpr auto index_of_parts(const C& coord, const S& shape, const D& stride) {
    if constexpr (part + 1 == std::tuple_size_v<S>) {
        return index_of(coord, std::get<part>(shape), std::get<part>(stride));
    } else {
        const auto& size = std::get<part>(shape);
        return index_of(coord % size, size, std::get<part>(stride)) +
               index_of_parts<part + 1>(coord / size, shape, stride);
    }
}
template <typename C, typename S, typename D, size_t... parts>
constexpr auto index_of_each(const C& coord, const S& shape, const D& stride, std::index_sequence<parts...>) {
    return (index_of(std::get<parts>(coord), std::get<parts>(shape), std::get<parts>(stride)) + ...);
}
template <typename C, typename S, typename D>
constexpr auto index_of(const C& coord, const S& shape, const D& stride) {
    if constexpr (is_tuple<C>::value) {
        static_assert(
            std::tuple_size_v<C> == std::tuple_size_v<S> && std::tuple_size_v<S> == std::tuple_size_v<D>,
            "a coordinate, its shape and its stride have as many dimensions");
        return index_of_each(coord, shape, stride, std::make_index_sequence<std::tuple_size_v<C>>());
    } else if constexpr (is_tuple<S>::value) {
        return index_of_parts<0>(coord, shape, stride);
    } else {
        return coord * stride;
    }
}

}  // namespace detail

template <typename ShapeType, typename StrideType>
class Layout : private Std::tuple<ShapeType, StrideType> {
    using Parts = Std::tuple<ShapeType, StrideType>;

  public:
    constexpr Layout(const ShapeType& shape = {}, const StrideType& stride = {}) : Parts(shape, stride) {}
    constexpr decltype(auto) GetShape() { return std::get<0>(static_cast<Parts&>(*this)); }
    constexpr decltype(auto) GetShape() const { return std::get<0>(static_cast<const Parts&>(*this)); }
    constexpr decltype(auto) GetStride() { return std::get<1>(static_cast<Parts&>(*this)); }
    constexpr decltype(auto) GetStride() const { return std::get<1>(static_cast<const Parts&>(*this)); }
    template <typename CoordType>
    constexpr auto operator()(const CoordType& coord) const {
        return detail::index_of(coord, GetShape(), GetStride());
    }
};

template <typename T>
struct is_layout : std::false_type {};
template <typename ShapeType, typename StrideType>
struct is_layout<Layout<ShapeType, StrideType>> : std::true_type {};

template <typename ShapeType, typename StrideType>
constexpr auto MakeLayout(const ShapeType& shape, const StrideType& stride) {
    return Layout<ShapeType, StrideType>(shape, stride);
}
template <typename CoordType, typename ShapeType, typename StrideType>
constexpr auto Crd2Idx(const CoordType& coord, const Layout<ShapeType, StrideType>& layout) {
    return layout(coord);
}
template <typename CoordType, typename ShapeType, typename StrideType>
constexpr auto Crd2Idx(const CoordType& coord, const ShapeType& shape, const StrideType& stride) {
    return detail::index_of(coord, shape, stride);
}

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
#endif
