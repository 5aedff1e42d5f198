// Shapes with strides: where the element of a coordinate lies.
#ifndef ASCENDC_HOST_BASIC_API_LAYOUT_H
#define ASCENDC_HOST_BASIC_API_LAYOUT_H

#include <tuple>

#include "ascendc_host/basic_api/enums.h"

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

}  // namespace AscendC
#endif
