// Broadcast of dav-3510: a tensor of up to nine dimensions to a larger shape that is known as the kernel
// runs.
#ifndef ASCENDC_HOST_BROADCAST_H
#define ASCENDC_HOST_BROADCAST_H

#include "lanes.h"

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
    if (from < to + count && to < from + source)
        ascendc_host::fail(block, where, ascendc_host::format("%s: dst and src overlap", api));
    for (uint64_t i = 0; i < count; ++i) {
        uint64_t rest = i, at = 0;
        for (uint32_t axis = rank; axis-- > 0; rest /= dstShape[axis])
            at += rest % dstShape[axis] * steps[axis];
        to[i] = from[at];
    }
}

}  // namespace AscendC

#endif

#endif  // ASCENDC_HOST_BROADCAST_H
