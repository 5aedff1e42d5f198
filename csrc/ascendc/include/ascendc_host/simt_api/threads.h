// Threads of dav-3510: a vector function in SIMT form (`__simt_vf__`) runs once for each thread of a block of
// threads, 32 of which are a warp.
//
// The threads of a block are one thread of the processor: each runs up to its next asc_syncthreads or warp
// function, where it waits for the others. So no memory barrier has anything to do. Kernels cannot rely on an
// order of threads; ASCEND_GRAPH_KERNEL_THREADS=reversed turns it round.
#ifndef ASCENDC_HOST_SIMT_API_THREADS_H
#define ASCENDC_HOST_SIMT_API_THREADS_H

#include <tuple>
#include <utility>

#include "ascendc_host/internal/runtime.h"

// A hint for the compiler's use of registers.
#define __launch_bounds__(...)
#define __maxnreg__(...)
#define LAUNCH_BOUND(...)

// How many threads there are, along three dimensions.
struct dim3 {
    uint32_t x, y, z;
    constexpr dim3(uint32_t x = 1, uint32_t y = 1, uint32_t z = 1) : x(x), y(y), z(z) {}
};

namespace ascendc_host {

constexpr uint32_t warp_size = 32;
constexpr uint32_t most_threads_of_block = 2048;

// The place of a thread, and sizes: built-in variables, which a kernel's own variables may hide.
struct ThreadPlace {
    uint32_t x, y, z;
    operator dim3() const { return dim3(x, y, z); }
};

// What the lanes of a warp bring to a warp function: `active` has a bit for each lane that is there.
struct WarpValues {
    uint32_t active;
    uint64_t values[warp_size];
};

// Runs `body(state)` for each thread.
void run_threads(const dim3& threads, void (*body)(void* state), void* state, const Where& where);
// What a thread waits for: all threads of its block; the lanes of its warp that come to the same call. The
// values stay until this thread waits again.
void thread_barrier(const Where& where);
const WarpValues& meet_warp(uint64_t value, const char* api, const Where& where);
// Lets the other threads of the block, and other blocks, go on: a thread that waits for memory to change.
void yield_thread();
// The number of this thread in its block; fails outside of threads.
uint32_t thread_number(const char* api, const Where& where);

#define ASCENDC_THREAD_STATE extern __attribute__((tls_model("initial-exec"), visibility("default"))) __thread

}  // namespace ascendc_host

// Outside of threads they are numbers that nobody knows.
ASCENDC_THREAD_STATE ascendc_host::ThreadPlace threadIdx, blockIdx, blockDim, gridDim;
#undef ASCENDC_THREAD_STATE

constexpr int32_t warpSize = ascendc_host::warp_size;

// A vector function ends before its caller goes on, as the host runs it. With a number of threads first it is
// one in SIMT form, which is called once for each; without, one on vector registers.
template <auto function, typename... Ts>
void asc_vf_call(Ts&&... arguments) {
    auto* const called = function;
    called(std::forward<Ts>(arguments)...);
}
template <auto function, typename... Ts>
void asc_vf_call(const dim3& threads, Ts&&... arguments) {
    std::tuple<std::decay_t<Ts>...> values(std::forward<Ts>(arguments)...);
    const auto body = [](void* state) {
        // Each thread has arguments of its own.
        auto* const called =
            function;  // by its name it would be private if it is so in the class that calls it
        std::apply([called](auto... own) { called(own...); }, *static_cast<decltype(values)*>(state));
    };
    ascendc_host::run_threads(threads, body, &values, ascendc_host::current().where);
}
// More than a reference to what is constant, the exact types that calls pass.
template <auto function, typename... Ts>
void asc_vf_call(dim3&& threads, Ts&&... arguments) {
    asc_vf_call<function>(std::as_const(threads), std::forward<Ts>(arguments)...);
}
template <auto function, typename... Ts>
void asc_vf_call(dim3& threads, Ts&&... arguments) {
    asc_vf_call<function>(std::as_const(threads), std::forward<Ts>(arguments)...);
}
#define VF_CALL asc_vf_call

// Waits until every thread of the block is here.
inline void asc_syncthreads(ascendc_host::Where where = ascendc_host::Where()) {
    ascendc_host::thread_barrier(where);
}
// What a thread has written is seen by all that run after it. Others get to run, for a kernel that needs a
// fence may be waiting for them.
inline void asc_threadfence() { ascendc_host::yield_thread(); }
inline void asc_threadfence_block() { ascendc_host::yield_thread(); }

namespace AscendC {
// The older names of the same, and a division by a number that is known before: see GetUintDivMagicAndShift.
namespace Simt {

using ascendc_host::Where;

using Dim3 = ::dim3;
using ::asc_vf_call;

template <int32_t dimension = 0>
uint32_t GetThreadIdx() {
    static_assert(dimension >= 0 && dimension < 3, "GetThreadIdx: dimension 0, 1 or 2");
    return dimension == 0 ? threadIdx.x : dimension == 1 ? threadIdx.y : threadIdx.z;
}
template <int32_t dimension = 0>
uint32_t GetThreadNum() {
    static_assert(dimension >= 0 && dimension < 3, "GetThreadNum: dimension 0, 1 or 2");
    return dimension == 0 ? blockDim.x : dimension == 1 ? blockDim.y : blockDim.z;
}
inline uint32_t GetBlockIdx() { return blockIdx.x; }
inline uint32_t GetBlockNum() { return gridDim.x; }
inline void ThreadBarrier(Where where = Where()) { ascendc_host::thread_barrier(where); }

// dividend / divisor, where GetUintDivMagicAndShift made `magic` and `shift` of the divisor. As on the
// device, the sum wraps: a dividend of 2^31 (2^63) or more may come out wrong.
template <typename T>
T UintDiv(T dividend, T magic, T shift) {
    static_assert(std::is_same<T, uint32_t>::value || std::is_same<T, uint64_t>::value,
                  "UintDiv: uint32_t or uint64_t");
    using Twice = std::conditional_t<sizeof(T) == 4, uint64_t, unsigned __int128>;
    const T high = static_cast<T>((static_cast<Twice>(dividend) * magic) >> (8 * sizeof(T)));
    return static_cast<T>(dividend + high) >> shift;
}

}  // namespace Simt

// What UintDiv needs to divide by `divisor`, which is at most the largest signed number of the type.
template <typename T>
void GetUintDivMagicAndShift(T& magic, T& shift, T divisor,
                             ascendc_host::Where where = ascendc_host::Where()) {
    static_assert(std::is_same<T, uint32_t>::value || std::is_same<T, uint64_t>::value,
                  "GetUintDivMagicAndShift: uint32_t or uint64_t");
    constexpr int bits = 8 * sizeof(T);
    const ascendc_host::Block& block = ascendc_host::enter(where);
    if (divisor == 0 || divisor >> (bits - 1) != 0) {
        ascendc_host::fail(block, where,
                           ascendc_host::format("GetUintDivMagicAndShift: divisor %llu; valid: 1 to %llu",
                                                static_cast<unsigned long long>(divisor),
                                                static_cast<unsigned long long>(T(~T{0}) >> 1)));
    }
    // The least shift with 2^shift >= divisor, and 2^bits * (2^shift - divisor) / divisor + 1.
    shift = 0;
    while ((T{1} << shift) < divisor) ++shift;
    magic = static_cast<T>((static_cast<unsigned __int128>((T{1} << shift) - divisor) << bits) / divisor + 1);
}

}  // namespace AscendC

#endif  // ASCENDC_HOST_SIMT_API_THREADS_H
