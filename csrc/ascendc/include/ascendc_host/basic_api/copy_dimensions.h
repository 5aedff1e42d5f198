// Copies of dav-3510 from global memory to the unified buffer along up to five dimensions, each with strides,
// and padding on both sides.
#ifndef ASCENDC_HOST_BASIC_API_COPY_DIMENSIONS_H
#define ASCENDC_HOST_BASIC_API_COPY_DIMENSIONS_H

#include "ascendc_host/basic_api/copy.h"

#if __NPU_ARCH__ == 3510

namespace AscendC {

struct NdDmaConfig {
    static constexpr uint16_t unsetPad = 0xffff;
    bool isNearestValueMode = false;  // padding is the nearest value of its dimension, not a constant
    uint16_t loopLpSize = unsetPad;   // of all dimensions, in place of what the parameters say
    uint16_t loopRpSize = unsetPad;
    bool ascOptimize = false;
};
constexpr NdDmaConfig kDefaultNdDmaConfig = {};

// Sizes, and strides in elements, from the innermost dimension on.
template <uint8_t dim>
struct NdDmaLoopInfo {
    static_assert(dim >= 1 && dim <= 5, "NdDmaLoopInfo: one to five dimensions");
    uint64_t loopSrcStride[dim] = {};
    uint32_t loopDstStride[dim] = {};
    uint32_t loopSize[dim] = {};
    uint8_t loopLpSize[dim] = {};
    uint8_t loopRpSize[dim] = {};
};
template <typename T, uint8_t dim>
struct NdDmaParams {
    NdDmaLoopInfo<dim> loopInfo;
    T constantValue;
};

// The older names of the same.
using MultiCopyConfig = NdDmaConfig;
constexpr MultiCopyConfig kDefaultMultiCopyConfig = {};
template <uint8_t dim>
using MultiCopyLoopInfo = NdDmaLoopInfo<dim>;
template <typename T, uint8_t dim>
using MultiCopyParams = NdDmaParams<T, dim>;

// Drops what the copy's own cache keeps of global memory; the host has none.
inline void NdDmaDci() {}

namespace detail {

// The element that stands at place `i` of a dimension, as an offset in the source; -1: it is padding.
inline int64_t source_place(int64_t i, uint32_t left, uint32_t size, bool nearest) {
    const int64_t inside = i - int64_t{left};
    if (nearest) return std::clamp<int64_t>(inside, 0, int64_t{size} - 1);
    return inside >= 0 && inside < int64_t{size} ? inside : -1;
}

template <typename T, uint8_t dim, bool nearest>
struct DimensionsCopy {
    const NdDmaLoopInfo<dim>& info;
    uint32_t left[dim], places[dim];
    const T* from;
    T* to;
    T padding;

    void run(int axis, uint64_t source, uint64_t target, bool inside) const {
        for (uint32_t i = 0; i < places[axis]; ++i) {
            const int64_t place = source_place(i, left[axis], info.loopSize[axis], nearest);
            const bool is_there = inside && place >= 0;
            const uint64_t at =
                source + (is_there ? static_cast<uint64_t>(place) * info.loopSrcStride[axis] : 0);
            const uint64_t next = target + uint64_t{i} * info.loopDstStride[axis];
            if (axis > 0)
                run(axis - 1, at, next, is_there);
            else
                to[next] = is_there ? from[at] : padding;
        }
    }
};

}  // namespace detail

template <typename T, uint8_t dim, const NdDmaConfig& config = kDefaultNdDmaConfig>
void DataCopy(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const NdDmaParams<T, dim>& params,
              Where where = Where()) {
    constexpr const char* api = "DataCopy";
    static_assert(!config.isNearestValueMode || sizeof(T) < 8,
                  "DataCopy: isNearestValueMode is for elements of less than 8 bytes");
    const auto& block = ascendc_host::enter(where);
    const auto& info = params.loopInfo;
    detail::require_local(dst, {ascendc_host::Memory::ub}, api, "dst", where);
    detail::DimensionsCopy<T, dim, config.isNearestValueMode> copy{info,    {},      {},
                                                                   nullptr, nullptr, params.constantValue};
    uint64_t source = 0, target = 0;
    for (uint8_t axis = 0; axis < dim; ++axis) {
        if (info.loopSize[axis] == 0) return;
        if (info.loopSize[axis] >> 20 != 0 || info.loopDstStride[axis] >> 20 != 0 ||
            info.loopSrcStride[axis] >> 40 != 0) {
            ascendc_host::fail(
                block, where,
                ascendc_host::format(
                    "%s: dimension %u has size %u, strides %llu and %u; valid: sizes and strides "
                    "of dst below 2^20, strides of src below 2^40",
                    api, axis, info.loopSize[axis], static_cast<unsigned long long>(info.loopSrcStride[axis]),
                    info.loopDstStride[axis]));
        }
        const bool set_left = config.loopLpSize != NdDmaConfig::unsetPad;
        const bool set_right = config.loopRpSize != NdDmaConfig::unsetPad;
        copy.left[axis] = set_left ? config.loopLpSize : info.loopLpSize[axis];
        copy.places[axis] =
            copy.left[axis] + info.loopSize[axis] + (set_right ? config.loopRpSize : info.loopRpSize[axis]);
        source += uint64_t{info.loopSize[axis] - 1} * info.loopSrcStride[axis];
        target += uint64_t{copy.places[axis] - 1} * info.loopDstStride[axis];
    }
    ascendc_host::require_whole_bytes<T>();
    const detail::OnPipe pipe(detail::Pipe::mte2);
    copy.from = reinterpret_cast<const T*>(src.use_bytes(0, (source + 1) * sizeof(T), api, "src", where));
    copy.to = reinterpret_cast<T*>(dst.use_bytes((target + 1) * sizeof(T), api, "dst", where));
    // The instruction takes any address of an element: copies of more than five dimensions begin within a
    // block.
    detail::check_aligned(copy.to, sizeof(T), api, "dst", where);
    copy.run(dim - 1, 0, 0, true);
}

}  // namespace AscendC

#endif

#endif  // ASCENDC_HOST_BASIC_API_COPY_DIMENSIONS_H
