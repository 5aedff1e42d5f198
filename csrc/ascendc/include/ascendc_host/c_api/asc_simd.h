// The C API on the host: copies between global memory and arrays in the unified buffer, and arithmetic on
// these.
//
// An array `__ubuf__ float x[n]` is one of the host's own: that it is long enough, and where it begins, is
// not checked. Addresses in global memory are. What is called after one another happens after one another, so
// the functions that wait have nothing to wait for.
#ifndef ASCENDC_HOST_C_API_ASC_SIMD_H
#define ASCENDC_HOST_C_API_ASC_SIMD_H

#include <cstring>

#include "../../kernel_operator.h"

namespace ascendc_host {

constexpr uint64_t c_api_block = 32;

// `count` elements or `repeat` times eight blocks of 32 bytes, each with strides in blocks.
template <typename T, typename Operation>
void on_array(T* dst, const T* src0, const T* src1, uint32_t count, const Operation& operation) {
    for (uint32_t i = 0; i < count; ++i)
        dst[i] = static_cast<T>(operation(static_cast<AscendC::detail::Wide<T>>(src0[i]),
                                          static_cast<AscendC::detail::Wide<T>>(src1[i])));
}
struct BlockStrides {
    uint8_t block, repeat;
    template <typename T>
    T* at(T* begin, uint32_t block_number, uint32_t repeat_number) const {
        constexpr uint64_t elements = c_api_block / sizeof(T);
        return begin + (uint64_t(block_number) * block + uint64_t(repeat_number) * repeat) * elements;
    }
};
template <typename T, typename Operation>
void on_blocks(T* dst, const T* src0, const T* src1, uint8_t repeat, BlockStrides to, BlockStrides from0,
               BlockStrides from1, const Operation& operation) {
    for (uint32_t r = 0; r < repeat; ++r)
        for (uint32_t b = 0; b < 8; ++b)
            on_array(to.at(dst, b, r), from0.at(src0, b, r), from1.at(src1, b, r), c_api_block / sizeof(T),
                     operation);
}

// `bytes` of global memory, which must be there.
inline uint8_t* global_bytes(const void* address, uint64_t bytes, const char* api, const char* name,
                             const AscendC::Where& where) {
    AscendC::GlobalTensor<uint8_t> tensor;
    tensor.SetGlobalBuffer(const_cast<uint8_t*>(static_cast<const uint8_t*>(address)));
    return tensor.use_bytes(0, bytes, api, name, where);
}
inline void copy_array(const char* api, void* dst, const void* src, bool from_global, uint16_t bursts,
                       uint64_t burst_bytes, uint64_t src_gap, uint64_t dst_gap,
                       const AscendC::Where& where) {
    const auto& block = enter(where);
    if (bursts == 0 || bursts > 4095 || burst_bytes == 0)
        fail(block, where,
             format("%s: %u bursts of %llu bytes; 1 to 4095, and none is empty", api, bursts,
                    static_cast<unsigned long long>(burst_bytes)));
    for (uint64_t i = 0; i < bursts; ++i) {
        const uint8_t* from = static_cast<const uint8_t*>(src) + i * (burst_bytes + src_gap);
        uint8_t* to = static_cast<uint8_t*>(dst) + i * (burst_bytes + dst_gap);
        if (from_global)
            from = global_bytes(from, burst_bytes, api, "src", where);
        else
            to = global_bytes(to, burst_bytes, api, "dst", where);
        std::memcpy(to, from, burst_bytes);
    }
}

}  // namespace ascendc_host

inline void asc_init() {}
inline int64_t asc_get_block_num() { return AscendC::GetBlockNum(); }
inline int64_t asc_get_block_idx() { return get_block_idx(); }

inline void asc_sync() {}
inline void asc_sync_pipe(pipe_t) {}
inline void asc_sync_vec() {}
inline void asc_sync_mte2() {}
inline void asc_sync_mte3() {}
template <typename Event>
void asc_sync_notify(pipe_t, pipe_t, Event) {}
template <typename Event>
void asc_sync_wait(pipe_t, pipe_t, Event) {}

// Each copy of so many bytes, with or without waiting for it, and of bursts of blocks of 32 bytes with gaps.
#define ASCENDC_C_COPY(name, from_global)                                                                   \
    inline void name(void* dst, const void* src, uint32_t size, AscendC::Where where = AscendC::Where()) {  \
        ::ascendc_host::copy_array(#name, dst, src, from_global, 1, size, 0, 0, where);                     \
    }                                                                                                       \
    inline void name##_sync(void* dst, const void* src, uint32_t size,                                      \
                            AscendC::Where where = AscendC::Where()) {                                      \
        ::ascendc_host::copy_array(#name "_sync", dst, src, from_global, 1, size, 0, 0, where);             \
    }                                                                                                       \
    inline void name(void* dst, const void* src, uint16_t n_burst, uint16_t len_burst, uint16_t src_gap,    \
                     uint16_t dst_gap, AscendC::Where where = AscendC::Where()) {                           \
        constexpr uint64_t unit = ::ascendc_host::c_api_block;                                              \
        ::ascendc_host::copy_array(#name, dst, src, from_global, n_burst, len_burst * unit, src_gap * unit, \
                                   dst_gap * unit, where);                                                  \
    }
ASCENDC_C_COPY(asc_copy_gm2ub, true)
ASCENDC_C_COPY(asc_copy_ub2gm, false)
#undef ASCENDC_C_COPY

// dst = a ∘ b of the first `count` elements, with or without waiting for it, and of repeats of eight blocks.
#define ASCENDC_C_BINARY(name, operation, ...)                                                            \
    template <typename T>                                                                                 \
    void name(T* dst, const T* src0, const T* src1, uint32_t count) {                                     \
        static_assert(AscendC::detail::is_one_of<T, __VA_ARGS__>, #name " is for " #__VA_ARGS__);         \
        ::ascendc_host::on_array(dst, src0, src1, count, AscendC::detail::operation());                   \
    }                                                                                                     \
    template <typename T>                                                                                 \
    void name##_sync(T* dst, const T* src0, const T* src1, uint32_t count) {                              \
        name(dst, src0, src1, count);                                                                     \
    }                                                                                                     \
    template <typename T>                                                                                 \
    void name(T* dst, const T* src0, const T* src1, uint8_t repeat, uint8_t dst_block_stride,             \
              uint8_t src0_block_stride, uint8_t src1_block_stride, uint8_t dst_repeat_stride,            \
              uint8_t src0_repeat_stride, uint8_t src1_repeat_stride) {                                   \
        static_assert(AscendC::detail::is_one_of<T, __VA_ARGS__>, #name " is for " #__VA_ARGS__);         \
        ::ascendc_host::on_blocks(dst, src0, src1, repeat, {dst_block_stride, dst_repeat_stride},         \
                                  {src0_block_stride, src0_repeat_stride},                                \
                                  {src1_block_stride, src1_repeat_stride}, AscendC::detail::operation()); \
    }
ASCENDC_C_BINARY(asc_add, add_op, int16_t, half, int32_t, float)
ASCENDC_C_BINARY(asc_sub, sub_op, int16_t, half, int32_t, float)
ASCENDC_C_BINARY(asc_mul, mul_op, int16_t, half, int32_t, float)
ASCENDC_C_BINARY(asc_div, div_op, half, float)
ASCENDC_C_BINARY(asc_max, max_op, int16_t, half, int32_t, float)
ASCENDC_C_BINARY(asc_min, min_op, int16_t, half, int32_t, float)
#undef ASCENDC_C_BINARY

#endif  // ASCENDC_HOST_C_API_ASC_SIMD_H
