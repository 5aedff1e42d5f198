// BroadCast: an axis of size 1 of a tensor of one or two dimensions grows to the size of the destination; on
// dav-3510 also a tensor of up to nine dimensions, to a larger shape that is known as the kernel runs.
#ifndef ASCENDC_HOST_ADV_API_PAD_BROADCAST_H
#define ASCENDC_HOST_ADV_API_PAD_BROADCAST_H

#include "ascendc_host/basic_api/arithmetic.h"

namespace AscendC {

// Copies of size 1 along `axis` become the destination's size; the other dimensions agree.
template <typename T, int32_t dim, int32_t axis, bool isReuseSource = false>
void BroadCast(const LocalTensor<T>& dst, const LocalTensor<T>& src, const uint32_t dstShape[dim],
               const uint32_t srcShape[dim], Where where = Where()) {
    const auto& block = ascendc_host::enter(where);
    static_assert(dim == 1 || dim == 2, "BroadCast is for one or two dimensions");
    static_assert(axis >= 0 && axis < dim, "BroadCast: axis counts from 0");
    uint64_t total = 1;
    uint64_t source = 1;
    for (int i = 0; i < dim; ++i) {
        total *= dstShape[i];
        source *= srcShape[i];
        if (srcShape[i] != dstShape[i] && (srcShape[i] != 1 || i != axis)) {
            ascendc_host::fail(
                block, where,
                ascendc_host::format("BroadCast: dimension %d from %u to %u; only axis %d may grow, from 1",
                                     i, srcShape[i], dstShape[i], axis));
        }
    }
    if (dim == 2 && axis == 0 && srcShape[dim - 1] * sizeof(T) % 32 != 0)
        ascendc_host::fail(
            block, where,
            ascendc_host::format(
                "BroadCast: rows of %u elements along axis 0; they must be whole blocks of 32 bytes",
                srcShape[dim - 1]));
    const T* from = detail::vector_operand(src, source * sizeof(T), "BroadCast", "src", where);
    T* to = detail::vector_operand(dst, total * sizeof(T), "BroadCast", "dst", where);
    // Rows that are repeated may begin with the source itself, which is then written as it is.
    if (from != to || (axis != 0 && total != source))
        ascendc_host::require_apart("BroadCast", {"dst", to, total * sizeof(T)},
                                    {"src", from, source * sizeof(T)}, where);
    const uint64_t columns = dim == 2 ? dstShape[dim - 1] : 1;
    for (uint64_t i = 0; i < total; ++i) {
        const uint64_t row = dim == 2 ? i / columns : i;
        const uint64_t column = dim == 2 ? i % columns : 0;
        const uint64_t at_row = srcShape[0] == 1 ? 0 : row;
        const uint64_t at_column = dim == 2 && srcShape[dim - 1] == 1 ? 0 : column;
        to[i] = from[dim == 2 ? at_row * srcShape[dim - 1] + at_column : at_row];
    }
}
template <typename T, int32_t dim, int32_t axis, bool isReuseSource = false>
void BroadCast(const LocalTensor<T>& dst, const LocalTensor<T>& src, const uint32_t dstShape[dim],
               const uint32_t srcShape[dim], LocalTensor<uint8_t>&, Where where = Where()) {
    BroadCast<T, dim, axis, isReuseSource>(dst, src, dstShape, srcShape, where);
}
// As newer kernels call it.
template <typename T, int32_t dim, int32_t axis, bool isReuseSource = false>
void Broadcast(const LocalTensor<T>& dst, const LocalTensor<T>& src, const uint32_t dstShape[dim],
               const uint32_t srcShape[dim], Where where = Where()) {
    BroadCast<T, dim, axis, isReuseSource>(dst, src, dstShape, srcShape, where);
}
template <typename T, int32_t dim, int32_t axis, bool isReuseSource = false>
void Broadcast(const LocalTensor<T>& dst, const LocalTensor<T>& src, const uint32_t dstShape[dim],
               const uint32_t srcShape[dim], LocalTensor<uint8_t>&, Where where = Where()) {
    BroadCast<T, dim, axis, isReuseSource>(dst, src, dstShape, srcShape, where);
}

}  // namespace AscendC

#if __NPU_ARCH__ == 3510

namespace AscendC {

// What GetBroadcastTilingInfo found; the host needs no more of it than the shapes.
struct BroadcastTiling {
    static constexpr uint32_t most = 9;
    uint32_t rank = 0;
    uint32_t dst_shape[most] = {};
    uint32_t src_shape[most] = {};
};

template <class T, int constRank = -1, uint32_t* constDstShape = nullptr, uint32_t* constSrcShape = nullptr>
void GetBroadcastTilingInfo(uint32_t rank, const uint32_t* dstShape, const uint32_t* srcShape,
                            bool srcInnerPad, BroadcastTiling& tiling, Where where = Where()) {
    constexpr const char* api = "GetBroadcastTilingInfo";
    static_assert(constDstShape == nullptr && constSrcShape == nullptr,
                  "GetBroadcastTilingInfo: constDstShape and constSrcShape are reserved; leave them out");
    const auto& block = ascendc_host::enter(where);
    if (rank < 1 || rank > BroadcastTiling::most ||
        (constRank > 0 && rank != static_cast<uint32_t>(constRank)))
        ascendc_host::fail(
            block, where,
            ascendc_host::format("%s: rank %u; valid: 1 to %u, and constRank where it is given", api, rank,
                                 BroadcastTiling::most));
    if (srcInnerPad)
        ascendc_host::fail(block, where, ascendc_host::format("%s: srcInnerPad must be false", api));
    tiling.rank = rank;
    for (uint32_t axis = 0; axis < rank; ++axis) {
        if (srcShape[axis] != dstShape[axis] && srcShape[axis] != 1) {
            ascendc_host::fail(block, where,
                               ascendc_host::format("%s: dimension %u from %u to %u; only 1 may grow", api,
                                                    axis, srcShape[axis], dstShape[axis]));
        }
        tiling.dst_shape[axis] = dstShape[axis];
        tiling.src_shape[axis] = srcShape[axis];
    }
}

// `dst` and `src` do not overlap.
template <class T, int constRank = -1, uint32_t* constDstShape = nullptr, uint32_t* constSrcShape = nullptr,
          bool constSrcInnerPad = false>
void Broadcast(const LocalTensor<T>& dst, const LocalTensor<T>& src, const uint32_t* dstShape,
               const uint32_t* srcShape, BroadcastTiling* tiling, Where where = Where()) {
    constexpr const char* api = "Broadcast";
    static_assert(!constSrcInnerPad, "Broadcast: constSrcInnerPad is reserved; leave it out");
    const auto& block = ascendc_host::enter(where);
    const uint32_t rank = tiling->rank;
    uint64_t count = rank == 0 ? 0 : 1, source = count;
    uint64_t steps[BroadcastTiling::most] = {};  // in src, from one place along an axis of dst to the next
    for (uint32_t axis = rank; axis-- > 0;) {
        if (dstShape[axis] != tiling->dst_shape[axis] || srcShape[axis] != tiling->src_shape[axis])
            ascendc_host::fail(
                block, where,
                ascendc_host::format(
                    "%s: the tiling is of other shapes; call GetBroadcastTilingInfo with these", api));
        steps[axis] = srcShape[axis] == 1 ? 0 : source;
        source *= srcShape[axis];
        count *= dstShape[axis];
    }
    if (count == 0) return;
    const T* from = detail::vector_operand(src, source * sizeof(T), api, "src", where);
    T* to = detail::vector_operand(dst, count * sizeof(T), api, "dst", where);
    ascendc_host::require_apart(api, {"dst", to, count * sizeof(T)}, {"src", from, source * sizeof(T)},
                                where);
    for (uint64_t i = 0; i < count; ++i) {
        uint64_t rest = i, at = 0;
        for (uint32_t axis = rank; axis-- > 0; rest /= dstShape[axis])
            at += rest % dstShape[axis] * steps[axis];
        to[i] = from[at];
    }
}

}  // namespace AscendC

#endif

#endif  // ASCENDC_HOST_ADV_API_PAD_BROADCAST_H
