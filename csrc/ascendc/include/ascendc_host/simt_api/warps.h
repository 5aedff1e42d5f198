// What the 32 threads of a warp do together: votes, exchange of values, reductions. The active lanes are
// those that come to the same call; which lanes meet where they come to different calls is not known, and
// refused.
#ifndef ASCENDC_HOST_SIMT_API_WARPS_H
#define ASCENDC_HOST_SIMT_API_WARPS_H

#include "ascendc_host/simt_api/threads.h"
#include "ascendc_host/simt_api/vectors.h"

namespace ascendc_host {

// What types asc_shfl and its relatives, and the reductions, are there for.
template <typename T>
using IfShuffled = std::enable_if_t<is_one_of<T, int32_t, uint32_t, float, long, unsigned long, long long,
                                              unsigned long long, half, half2, bfloat16_t, bfloat16x2_t>,
                                    int>;
template <typename T>
using IfReduced = std::enable_if_t<is_one_of<T, int32_t, uint32_t, float, half>, int>;

// The value of lane `source(lane, begin, end)` of the group of `width` lanes from begin to end; outside of
// the warp it is the own one. A lane that is not there has a value that nobody knows.
template <typename T, typename F>
T shuffle(T value, int32_t width, const char* api, const Where& where, const F& source) {
    const uint32_t lane = thread_number(api, where) % warp_size;
    if (width < 1 || width > static_cast<int32_t>(warp_size) || (width & (width - 1)) != 0) {
        fail(current(), where, format("%s: width %d; valid: 1, 2, 4, 8, 16, 32", api, width));
    }
    const uint32_t size = static_cast<uint32_t>(width), begin = lane / size * size;
    const WarpValues& warp = meet_warp(as_bits(value), api, where);
    const uint32_t from = source(lane, begin, begin + size);
    const bool is_there = (warp.active >> from & 1) != 0;
    return from_bits<T>(is_there ? warp.values[from] : 0xa5a5a5a5a5a5a5a5u);
}

// Halves with halves, as far as lanes are active.
template <typename T, typename F>
T reduce_warp(T value, const char* api, const Where& where, const F& f) {
    const WarpValues& warp = meet_warp(as_bits(value), api, where);
    T values[warp_size];
    bool there[warp_size];
    for (uint32_t lane = 0; lane < warp_size; ++lane) {
        there[lane] = (warp.active >> lane & 1) != 0;
        if (there[lane]) values[lane] = from_bits<T>(warp.values[lane]);
    }
    for (uint32_t step = warp_size / 2; step > 0; step /= 2) {
        for (uint32_t lane = 0; lane < step; ++lane) {
            if (there[lane] && there[lane + step])
                values[lane] = f(values[lane], values[lane + step]);
            else if (there[lane + step])
                values[lane] = values[lane + step];
            there[lane] = there[lane] || there[lane + step];
        }
    }
    return values[0];
}

}  // namespace ascendc_host

inline int32_t laneid(ascendc_host::Where where = ascendc_host::Where()) {
    return static_cast<int32_t>(ascendc_host::thread_number("laneid", where) % ascendc_host::warp_size);
}
// Bits of the lanes that compare with this one as the name says.
#define ASCENDC_LANEMASK(name, mask)                                                                   \
    inline int32_t name(ascendc_host::Where where = ascendc_host::Where()) {                           \
        const uint32_t one = uint32_t{1}                                                               \
                             << (ascendc_host::thread_number(#name, where) % ascendc_host::warp_size); \
        return static_cast<int32_t>(mask);                                                             \
    }
ASCENDC_LANEMASK(lanemask_eq, one)
ASCENDC_LANEMASK(lanemask_lt, one - 1)
ASCENDC_LANEMASK(lanemask_le, (one - 1) | one)
ASCENDC_LANEMASK(lanemask_gt, ~((one - 1) | one))
ASCENDC_LANEMASK(lanemask_ge, ~(one - 1))
#undef ASCENDC_LANEMASK

inline uint32_t asc_activemask(ascendc_host::Where where = ascendc_host::Where()) {
    return ascendc_host::meet_warp(0, "asc_activemask", where).active;
}
// A bit for each active lane whose predicate is not 0.
inline uint32_t asc_ballot(int32_t predicate, ascendc_host::Where where = ascendc_host::Where()) {
    const ascendc_host::WarpValues& warp = ascendc_host::meet_warp(predicate != 0, "asc_ballot", where);
    uint32_t bits = 0;
    for (uint32_t lane = 0; lane < ascendc_host::warp_size; ++lane)
        bits |= static_cast<uint32_t>(warp.values[lane] & 1) << lane;
    return bits & warp.active;
}
inline int32_t asc_any(int32_t predicate, ascendc_host::Where where = ascendc_host::Where()) {
    return asc_ballot(predicate, where) != 0;
}
inline int32_t asc_all(int32_t predicate, ascendc_host::Where where = ascendc_host::Where()) {
    return asc_ballot(predicate == 0, where) == 0;
}

template <typename T, ascendc_host::IfShuffled<T> = 0>
T asc_shfl(T var, int32_t src_lane, int32_t width = warpSize,
           ascendc_host::Where where = ascendc_host::Where()) {
    return ascendc_host::shuffle(var, width, "asc_shfl", where, [=](uint32_t, uint32_t begin, uint32_t end) {
        return begin + static_cast<uint32_t>(src_lane) % (end - begin);
    });
}
template <typename T, ascendc_host::IfShuffled<T> = 0>
T asc_shfl_up(T var, uint32_t delta, int32_t width = warpSize,
              ascendc_host::Where where = ascendc_host::Where()) {
    return ascendc_host::shuffle(
        var, width, "asc_shfl_up", where,
        [=](uint32_t lane, uint32_t begin, uint32_t) { return lane - begin < delta ? lane : lane - delta; });
}
template <typename T, ascendc_host::IfShuffled<T> = 0>
T asc_shfl_down(T var, uint32_t delta, int32_t width = warpSize,
                ascendc_host::Where where = ascendc_host::Where()) {
    return ascendc_host::shuffle(
        var, width, "asc_shfl_down", where,
        [=](uint32_t lane, uint32_t, uint32_t end) { return end - lane <= delta ? lane : lane + delta; });
}
// Of a lane of the own group or of one before it.
template <typename T, ascendc_host::IfShuffled<T> = 0>
T asc_shfl_xor(T var, int32_t lane_mask, int32_t width = warpSize,
               ascendc_host::Where where = ascendc_host::Where()) {
    return ascendc_host::shuffle(var, width, "asc_shfl_xor", where,
                                 [=](uint32_t lane, uint32_t, uint32_t end) {
                                     const uint32_t other = lane ^ static_cast<uint32_t>(lane_mask);
                                     return other < end ? other : lane;
                                 });
}

// Of all active lanes. Integers wrap.
template <typename T, ascendc_host::IfReduced<T> = 0>
T asc_reduce_add(T val, ascendc_host::Where where = ascendc_host::Where()) {
    using U = ascendc_host::Unsigned<T>;
    return ascendc_host::reduce_warp(val, "asc_reduce_add", where, [](T a, T b) {
        return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
    });
}
template <typename T, ascendc_host::IfReduced<T> = 0>
T asc_reduce_max(T val, ascendc_host::Where where = ascendc_host::Where()) {
    return ascendc_host::reduce_warp(val, "asc_reduce_max", where, [](T a, T b) { return a < b ? b : a; });
}
template <typename T, ascendc_host::IfReduced<T> = 0>
T asc_reduce_min(T val, ascendc_host::Where where = ascendc_host::Where()) {
    return ascendc_host::reduce_warp(val, "asc_reduce_min", where, [](T a, T b) { return b < a ? b : a; });
}

#endif  // ASCENDC_HOST_SIMT_API_WARPS_H
